//! What may be found, and its words.

use std::fmt;

use bstr::BString;

use crate::iptables::forecast::{At, Misreading, Version};
use crate::iptables::{Backend, Family, NotExpressible};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth a look: nothing is let through or dropped by it.
    Note,
    /// Packets are, or will be, treated otherwise than the rules' readers think.
    Risk,
}

/// Where it was found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The family.
    pub family: Family,
    /// The backend; `None` if it is about both.
    pub backend: Option<Backend>,
    /// The table, if it is about one.
    pub table: Option<BString>,
    /// The chain, if it is about one or about a rule.
    pub chain: Option<BString>,
    /// The rule by its number, from 1.
    pub rule: Option<usize>,
}

impl fmt::Display for Place {
    /// `table filter (IPv4, nf_tables), chain INPUT, rule 3`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.table, self.backend) {
            (Some(table), Some(backend)) => write!(f, "table {table} ({}, {backend})", self.family),
            (Some(table), None) => write!(f, "table {table} ({})", self.family),
            (None, Some(backend)) => write!(f, "{} in {backend}", self.family),
            (None, None) => write!(f, "{}", self.family),
        }?;
        if let Some(chain) = &self.chain {
            write!(f, ", chain {chain}")?;
        }
        match self.rule {
            Some(rule) => write!(f, ", rule {rule}"),
            None => Ok(()),
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Versions of iptables-nft take the rule for another one, and would restore that.
    Misread {
        /// Which.
        versions: Vec<Version>,
        /// What they take it for.
        reading: Box<Misreading>,
    },
    /// Versions of iptables-nft give up at the rule: their save ends there.
    Unread {
        /// Which.
        versions: Vec<Version>,
        /// Why.
        why: &'static str,
    },
    /// Versions of iptables-nft do not show the table at all, and a save by them lacks it.
    Hidden {
        /// Which.
        versions: Vec<Version>,
        /// What they do not bear: the first such rule or chain.
        at: At,
        /// Why.
        why: &'static str,
    },
    /// The rule is none of iptables': no version has words for it.
    NotExpressible(NotExpressible),
    /// The chain, with its rules, is none of iptables'.
    ChainNotExpressible {
        /// Why.
        why: &'static str,
    },
    /// The rule is there already: the one with this number.
    Duplicate {
        /// The number of the first.
        of: usize,
    },
    /// No packet comes as far as this rule and those behind it.
    Unreachable {
        /// The number of the rule that takes all packets.
        behind: usize,
    },
    /// No rule leads to the chain, though it has rules that decide on packets.
    Unreached,
    /// The policy drops every packet, because the chain has no rules.
    DropsAll,
    /// The table is dormant: no packet meets its rules.
    Dormant,
    /// A process owns the table: nobody else can change it.
    Owned {
        /// Its port.
        port: Option<u32>,
    },
    /// There are sets, maps, flowtables or objects in the table, which iptables does not show.
    Objects {
        /// How many.
        number: usize,
    },
    /// Packets meet the rules of both backends.
    BothBackends {
        /// How many rules there are in nf_tables.
        nft: usize,
        /// How many in the legacy tables.
        legacy: usize,
        /// A chain that both have, if there is one.
        shared: Option<BString>,
    },
    /// Both backends have chains that say that an agent is at work there.
    AgentsInBoth {
        /// Such a chain of nf_tables.
        nft: BString,
        /// Such a chain of the legacy tables.
        legacy: BString,
    },
    /// A legacy table without rules: packets go through it, and its policies let them.
    EmptyLegacy,
}

impl Fault {
    /// How bad it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::Misread { .. }
            | Self::Unread { .. }
            | Self::Hidden { .. }
            | Self::NotExpressible(_)
            | Self::ChainNotExpressible { .. }
            | Self::Unreached
            | Self::DropsAll
            | Self::Dormant
            | Self::BothBackends { .. }
            | Self::AgentsInBoth { .. } => Severity::Risk,
            Self::Duplicate { .. }
            | Self::Unreachable { .. }
            | Self::Owned { .. }
            | Self::Objects { .. }
            | Self::EmptyLegacy => Severity::Note,
        }
    }

    /// A word for programs: `misread`, `hidden`, ….
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Misread { .. } => "misread",
            Self::Unread { .. } => "unread",
            Self::Hidden { .. } => "hidden",
            Self::NotExpressible(_) => "not_expressible",
            Self::ChainNotExpressible { .. } => "chain_not_expressible",
            Self::Duplicate { .. } => "duplicate",
            Self::Unreachable { .. } => "unreachable",
            Self::Unreached => "unreached",
            Self::DropsAll => "drops_all",
            Self::Dormant => "dormant",
            Self::Owned { .. } => "owned",
            Self::Objects { .. } => "objects",
            Self::BothBackends { .. } => "both_backends",
            Self::AgentsInBoth { .. } => "agents_in_both",
            Self::EmptyLegacy => "empty_legacy",
        }
    }

    /// Whether every packet is concerned that comes to a rule: what is to be looked at first.
    pub(super) const fn is_everything(&self) -> bool {
        match self {
            Self::Misread { reading, .. } => reading.effect.is_everything(),
            Self::DropsAll => true,
            _ => false,
        }
    }

    /// The versions of iptables-nft that it is about; none if it is about no version.
    #[must_use]
    pub fn versions(&self) -> &[Version] {
        match self {
            Self::Misread { versions, .. }
            | Self::Unread { versions, .. }
            | Self::Hidden { versions, .. } => versions,
            _ => &[],
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misread { versions, reading } => write!(
                f,
                "taken for another rule by iptables {}: {reading}",
                Listed(versions)
            ),
            Self::Unread { versions, why } => write!(
                f,
                "cannot be read by iptables {}, whose save ends there: {why}",
                Listed(versions)
            ),
            Self::Hidden { versions, at, why } => write!(
                f,
                "not shown by iptables {}, whose save lacks all of it, because of {at}: {why}",
                Listed(versions)
            ),
            Self::NotExpressible(why) => write!(f, "iptables has no words for it: {why}"),
            Self::ChainNotExpressible { why } => {
                write!(f, "iptables cannot have the chain: {why}")
            }
            Self::Duplicate { of } => write!(f, "it is there already, as rule {of}"),
            Self::Unreachable { behind } => write!(
                f,
                "no packet comes as far as this rule: rule {behind} takes them all"
            ),
            Self::Unreached => f.write_str("it has rules that decide, but no rule leads to it"),
            Self::DropsAll => {
                f.write_str("its policy drops every packet, as it has no rules")
            }
            Self::Dormant => f.write_str("it is dormant: no packet meets its rules"),
            Self::Owned { port: Some(port) } => write!(
                f,
                "the process with netlink port {port} owns it: nobody else can change it, and it goes with that process"
            ),
            Self::Owned { port: None } => {
                f.write_str("it persists for an owner, and nobody else can change it")
            }
            Self::Objects { number: 1 } => f.write_str(
                "there is a set, map, flowtable or object in it, which iptables does not show and a save lacks",
            ),
            Self::Objects { number } => write!(
                f,
                "there are {number} sets, maps, flowtables or objects in it, which iptables does not show and a save lacks"
            ),
            Self::BothBackends {
                nft,
                legacy,
                shared,
            } => {
                write!(
                    f,
                    "packets meet the rules of both backends, {nft} in nf_tables and {legacy} in the legacy tables"
                )?;
                match shared {
                    Some(chain) => write!(f, "; both have a chain {chain}, for instance"),
                    None => Ok(()),
                }
            }
            Self::AgentsInBoth { nft, legacy } => write!(
                f,
                "agents write to both backends, or did: {nft} is in nf_tables, {legacy} in the legacy tables"
            ),
            Self::EmptyLegacy => f.write_str(
                "it has no rules, but packets go through it, and iptables-nft warns of it: it stays until its module goes",
            ),
        }
    }
}

/// `1.8.7, 1.8.9 and 1.8.10`, `1.8.9 to 1.8.13`
struct Listed<'v>(&'v [Version]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let follows = |one: &Version, next: &Version| {
            Version::ALL.windows(2).any(|pair| pair == [*one, *next])
        };
        let runs = self.0.chunk_by(follows);
        let mut words = Vec::new();
        for run in runs {
            match run {
                [first, _, .., last] => words.push(format!("{first} to {last}")),
                few => words.extend(few.iter().map(ToString::to_string)),
            }
        }
        for (position, word) in words.iter().enumerate() {
            let before = match position {
                0 => "",
                _ if position + 1 == words.len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}{word}")?;
        }
        Ok(())
    }
}

/// A fault with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// What.
    pub fault: Fault,
}

impl Finding {
    /// How bad it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.fault.severity()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.fault)
    }
}
