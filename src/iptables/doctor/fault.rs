//! The faults that the doctor reports, and their descriptions.

use std::fmt;

use bstr::BString;

use crate::iptables::compat::{Location, Misreading, Version};
use crate::iptables::{Backend, Family, NotExpressible};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth checking: it accepts or drops no packets.
    Note,
    /// Packets are, or will be, treated differently than readers of the rules expect.
    Risk,
}

/// The place of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FindingLocation {
    /// The family.
    pub family: Family,
    /// The backend; `None` if it concerns both.
    pub backend: Option<Backend>,
    /// The table, if it concerns one.
    pub table: Option<BString>,
    /// The chain, if it concerns one or a rule.
    pub chain: Option<BString>,
    /// The rule's number, from 1.
    pub rule: Option<usize>,
}

impl fmt::Display for FindingLocation {
    /// Formats as `table filter (IPv4, nf_tables), chain INPUT, rule 3`.
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

/// A fault.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Versions of iptables-nft read the rule as another one, and would restore that.
    Misread {
        /// The versions.
        versions: Vec<Version>,
        /// The rule that they read.
        reading: Box<Misreading>,
    },
    /// Versions of iptables-nft fail at the rule: their save ends there.
    Unreadable {
        /// The versions.
        versions: Vec<Version>,
        /// The reason.
        reason: &'static str,
    },
    /// Versions of iptables-nft hide the whole table, and their saves lack it.
    Hidden {
        /// The versions.
        versions: Vec<Version>,
        /// The first rule or chain that causes it.
        at: Location,
        /// The reason.
        reason: &'static str,
    },
    /// iptables cannot express the rule in any version.
    NotExpressible(NotExpressible),
    /// iptables cannot express the chain with its rules.
    ChainNotExpressible {
        /// The reason.
        reason: &'static str,
    },
    /// The rule repeats an earlier one.
    Duplicate {
        /// The number of the earlier rule.
        of: usize,
    },
    /// No packet reaches this rule and those after it.
    Unreachable {
        /// The number of the rule that takes all packets.
        catch_all: usize,
    },
    /// No rule jumps to the chain, although it has rules that accept or drop packets.
    Unreached,
    /// The policy drops every packet, because the chain has no rules.
    DropsAll,
    /// The table is dormant: no packet meets its rules.
    Dormant,
    /// A process owns the table: no other process can change it.
    Owned {
        /// Its port.
        port: Option<u32>,
    },
    /// There are sets, maps, flowtables or objects in the table, which iptables does not show.
    Objects {
        /// The number of objects.
        number: usize,
    },
    /// Packets meet the rules of both backends.
    BothBackends {
        /// The number of rules in nf_tables.
        nft: usize,
        /// The number of rules in the legacy tables.
        legacy: usize,
        /// A chain that exists in both, if any.
        shared: Option<BString>,
    },
    /// Both backends have chains that indicate an active agent.
    AgentsInBoth {
        /// Such a chain of nf_tables.
        nft: BString,
        /// Such a chain of the legacy tables.
        legacy: BString,
    },
    /// A legacy table without rules: packets traverse it, and its policies accept them.
    EmptyLegacy,
}

impl Fault {
    /// Returns the severity.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::Misread { .. }
            | Self::Unreadable { .. }
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

    /// Returns an identifier for programs: `misread`, `hidden`, ….
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Misread { .. } => "misread",
            Self::Unreadable { .. } => "unread",
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

    /// Returns `true` if the fault affects every packet that reaches a rule: the most urgent ones.
    pub(super) const fn is_everything(&self) -> bool {
        match self {
            Self::Misread { reading, .. } => reading.effect.is_everything(),
            Self::DropsAll => true,
            _ => false,
        }
    }

    /// Returns the versions of iptables-nft that it concerns, if any.
    #[must_use]
    pub fn versions(&self) -> &[Version] {
        match self {
            Self::Misread { versions, .. }
            | Self::Unreadable { versions, .. }
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
                "misread by iptables {}: {reading}",
                Listed(versions)
            ),
            Self::Unreadable { versions, reason: why } => write!(
                f,
                "not readable by iptables {} (iptables-save stops there): {why}",
                Listed(versions)
            ),
            Self::Hidden { versions, at, reason: why } => write!(
                f,
                "not shown by iptables {} (iptables-save omits the whole table), because of {at}: {why}",
                Listed(versions)
            ),
            Self::NotExpressible(why) => write!(f, "iptables cannot express it: {why}"),
            Self::ChainNotExpressible { reason: why } => {
                write!(f, "iptables does not support this chain: {why}")
            }
            Self::Duplicate { of } => write!(f, "duplicate of rule {of}"),
            Self::Unreachable { catch_all } => write!(
                f,
                "no packet reaches this rule: rule {catch_all} matches them all"
            ),
            Self::Unreached => f.write_str("it has rules with verdicts, but no rule jumps to it"),
            Self::DropsAll => {
                f.write_str("its policy drops every packet, because it has no rules")
            }
            Self::Dormant => f.write_str("it is dormant: its rules see no packets"),
            Self::Owned { port: Some(port) } => write!(
                f,
                "the process with netlink port {port} owns it: no other process can change it, and it is deleted with that process"
            ),
            Self::Owned { port: None } => {
                f.write_str("it persists for an owner, and no other process can change it")
            }
            Self::Objects { number: 1 } => f.write_str(
                "it has a set, map, flowtable or object, which iptables does not show or save",
            ),
            Self::Objects { number } => write!(
                f,
                "it has {number} sets, maps, flowtables or objects, which iptables does not show or save"
            ),
            Self::BothBackends {
                nft,
                legacy,
                shared,
            } => {
                write!(
                    f,
                    "packets pass the rules of both backends, {nft} in nf_tables and {legacy} in the legacy tables"
                )?;
                match shared {
                    Some(chain) => write!(f, "; both have a chain {chain}, for example"),
                    None => Ok(()),
                }
            }
            Self::AgentsInBoth { nft, legacy } => write!(
                f,
                "agents write to both backends, or wrote to one before: {nft} is in nf_tables, {legacy} in the legacy tables"
            ),
            Self::EmptyLegacy => f.write_str(
                "it has no rules, but packets pass through it, and iptables-nft warns about it: it remains until its module is unloaded",
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
    /// The place.
    pub place: FindingLocation,
    /// The fault.
    pub fault: Fault,
}

impl Finding {
    /// Returns the severity.
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
