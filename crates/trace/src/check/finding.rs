//! Findings: faults and their locations.

use std::fmt;

use bstr::{BStr, BString};
use chainwright::internal::Escaped;
use chainwright::nft::Family;
use chainwright::nft::expr::ObjectType;

/// Severity of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// The ruleset has a part without effect.
    Note,
    /// A rule or chain does not have the effect that it suggests.
    Warning,
    /// Packets are dropped although no rule does so, or the kernel rejects the ruleset.
    Risk,
}

impl Severity {
    /// Returns `note`, `warning` or `risk`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Risk => "risk",
        }
    }
}

/// Location of a fault.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Location {
    /// Family of the table.
    pub family: Family,
    /// Name of the table.
    pub table: BString,
    /// Part of the table; `None` for the table itself.
    pub part: Option<Part>,
}

/// Part of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// Chain.
    Chain(BString),
    /// Rule.
    #[non_exhaustive]
    Rule {
        /// Name of its chain.
        chain: BString,
        /// Its number in the chain, from 1.
        number: usize,
        /// Its handle; a rule from a file may have none.
        handle: Option<u64>,
    },
    /// Set or map.
    Set(BString),
    /// Stateful object.
    Object(ObjectType, BString),
    /// Flowtable.
    Flowtable(BString),
}

impl Location {
    /// Returns the name of the chain, if it is a chain or a rule.
    #[must_use]
    pub fn chain(&self) -> Option<&BStr> {
        match &self.part {
            Some(Part::Chain(chain) | Part::Rule { chain, .. }) => Some(chain.as_ref()),
            _ => None,
        }
    }

    /// Returns the number of the rule in its chain, from 1.
    #[must_use]
    pub const fn rule(&self) -> Option<usize> {
        match &self.part {
            Some(Part::Rule { number, .. }) => Some(*number),
            _ => None,
        }
    }
}

/// Prints `table inet filter, chain input, rule 2`.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |name: &BString| Escaped(BStr::new(name)).to_string();
        write!(f, "table {} {}", self.family, name(&self.table))?;
        match &self.part {
            None => Ok(()),
            Some(Part::Chain(chain)) => write!(f, ", chain {}", name(chain)),
            Some(Part::Rule { chain, number, .. }) => {
                write!(f, ", chain {}, rule {number}", name(chain))
            }
            Some(Part::Set(set)) => write!(f, ", set {}", name(set)),
            Some(Part::Object(kind, object)) => {
                let kind = kind.name().unwrap_or("object");
                write!(f, ", {kind} {}", name(object))
            }
            Some(Part::Flowtable(flowtable)) => write!(f, ", flowtable {}", name(flowtable)),
        }
    }
}

/// Fault of a ruleset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The rule has the same conditions and statements as an earlier rule of the chain, apart from counters and
    /// comments.
    #[non_exhaustive]
    Duplicate {
        /// Number of the earlier rule.
        of: usize,
    },
    /// An earlier rule matches every packet that this rule matches, and ends the chain for it.
    #[non_exhaustive]
    Shadowed {
        /// Number of the earlier rule.
        by: usize,
        /// Whether the earlier rule has the same verdict.
        has_same_verdict: bool,
    },
    /// An earlier rule ends the chain for every packet. Reported for the first rule behind it.
    #[non_exhaustive]
    Unreachable {
        /// Number of the earlier rule.
        catch_all: usize,
        /// Number of rules behind it.
        rules: usize,
    },
    /// The conditions of the rule exclude one another.
    Contradiction,
    /// The rule or map leads to a chain that does not exist.
    #[non_exhaustive]
    MissingChain {
        /// Name of that chain.
        name: BString,
    },
    /// Chains lead to one another in a loop.
    #[non_exhaustive]
    Loop {
        /// The chains of the loop, beginning with the one of the location.
        chains: Vec<BString>,
    },
    /// No rule and no map leads to the chain.
    #[non_exhaustive]
    Unreferenced {
        /// Number of rules in the chain.
        rules: usize,
        /// Whether the table has a comment: its owner may use the chain later.
        has_owner: bool,
    },
    /// Only chains that no packet reaches lead to the chain.
    Unreached,
    /// No rule uses the set, map, object or flowtable.
    #[non_exhaustive]
    Unused {
        /// Whether it has a comment: its owner may use it later.
        has_comment: bool,
    },
    /// Rules look up the set, but it has no elements, and no rule adds any.
    EmptySet,
    /// The policy of the base chain drops every packet, because the chain has no rules.
    DropsAll,
    /// The table is dormant: no packet passes its chains.
    Dormant,
    /// The chain is too long to compare all of its rules: from this rule on, rules were only compared in part.
    PartlyCompared,
}

impl Fault {
    /// Returns the severity.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::MissingChain { .. } | Self::Loop { .. } | Self::DropsAll | Self::Dormant => {
                Severity::Risk
            }
            Self::Shadowed {
                has_same_verdict: false,
                ..
            }
            | Self::Contradiction
            | Self::Unreferenced {
                rules: 1..,
                has_owner: false,
            }
            | Self::Unreached
            | Self::Unused { has_comment: false } => Severity::Warning,
            Self::Duplicate { .. }
            | Self::Shadowed { .. }
            | Self::Unreachable { .. }
            | Self::Unreferenced { .. }
            | Self::Unused { .. }
            | Self::EmptySet
            | Self::PartlyCompared => Severity::Note,
        }
    }

    /// Returns an identifier for programs: `shadowed`, `duplicate`, ….
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Duplicate { .. } => "duplicate",
            Self::Shadowed { .. } => "shadowed",
            Self::Unreachable { .. } => "unreachable",
            Self::Contradiction => "contradiction",
            Self::MissingChain { .. } => "missing_chain",
            Self::Loop { .. } => "loop",
            Self::Unreferenced { .. } => "unreferenced",
            Self::Unreached => "unreached",
            Self::Unused { .. } => "unused",
            Self::EmptySet => "empty_set",
            Self::DropsAll => "drops_all",
            Self::Dormant => "dormant",
            Self::PartlyCompared => "partly_compared",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |name: &BString| Escaped(BStr::new(name)).to_string();
        match self {
            Self::Duplicate { of } => write!(f, "duplicate of rule {of}"),
            Self::Shadowed {
                by,
                has_same_verdict,
            } => {
                write!(
                    f,
                    "no packet matches this rule: rule {by} matches all of its packets first"
                )?;
                match has_same_verdict {
                    true => f.write_str(", with the same verdict"),
                    false => Ok(()),
                }
            }
            Self::Unreachable { catch_all, rules } => {
                write!(
                    f,
                    "no packet reaches this rule: rule {catch_all} matches them all"
                )?;
                match rules {
                    0..=1 => Ok(()),
                    _ => write!(f, "; the chain has {rules} rules behind that one"),
                }
            }
            Self::Contradiction => {
                f.write_str("no packet matches this rule: its conditions exclude one another")
            }
            Self::MissingChain { name: chain } => {
                write!(f, "it leads to the chain {}, which does not exist", name(chain))
            }
            Self::Loop { chains } => {
                f.write_str("its rules lead back to it: ")?;
                for chain in chains {
                    write!(f, "{} → ", name(chain))?;
                }
                f.write_str(&chains.first().map(name).unwrap_or_default())
            }
            Self::Unreferenced { rules: 0, .. } => f.write_str("no rule or map leads to it"),
            Self::Unreferenced { .. } => {
                f.write_str("it has rules, but no rule or map leads to it")
            }
            Self::Unreached => {
                f.write_str("only chains that no packet reaches lead to it")
            }
            Self::Unused { has_comment } => {
                f.write_str("no rule uses it")?;
                match has_comment {
                    true => f.write_str("; it has a comment, so that its owner may use it later"),
                    false => Ok(()),
                }
            }
            Self::EmptySet => {
                f.write_str("rules look it up, but it has no elements, and no rule adds any")
            }
            Self::DropsAll => {
                f.write_str("its policy drops every packet, because it has no rules")
            }
            Self::Dormant => f.write_str("it is dormant: its rules see no packets"),
            Self::PartlyCompared => f.write_str(
                "the chain is too long to compare all of its rules: from this one on, rules were only compared in part",
            ),
        }
    }
}

/// A fault with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The location.
    pub location: Location,
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

/// Prints `table inet filter, chain input, rule 2: duplicate of rule 1`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.fault)
    }
}
