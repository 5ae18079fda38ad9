//! Predicts how versions of iptables-nft read rules in nf_tables: a single rule ([`reading`]), the rules of a table
//! ([`table`]), and those of a transaction before the commit ([`transaction`]). Also infers from a rule's encoding
//! which program wrote it ([`writer`]).
//!
//! A version that misreads a rule does no harm by reading. The harm comes when it saves the misread rule and restores
//! that, as agents and `restart iptables` do: [`Effect`] describes the result for packets. An example: iptables 1.8.8
//! and newer encode `-m mark --mark 0x8000/0x8000 -j DROP` with expressions that 1.8.7 silently ignores, and a 1.8.7 in
//! an agent's image turned the rule into `-j DROP`.
//!
//! 1.8.12, which [`Version::ALL`] lacks, reads like 1.8.13. The predictions for 1.8.7, 1.8.9, 1.8.10, 1.8.11 and 1.8.13
//! come from running them; the prediction for 1.8.8 is inferred. The module knows in which version an
//! extension's syntax changed, but assumes that each version has the extension and its revision.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use chainwright::iptables::compat::{self, Effect, Reading, Version};
//! use chainwright::iptables::nft::{Encoder, Profile};
//! use chainwright::iptables::{Family, Rule};
//! use chainwright::nft::{self, Transaction};
//!
//! let rule = Rule::parse(Family::Ipv4, "-m mark --mark 0x8000/0x8000 -j DROP")?;
//! let mut encoded = nft::Rule::new(nft::Family::IP, "filter", "KUBE-FIREWALL");
//! let encoder = Encoder { family: Family::Ipv4, profile: Profile::V1_8_8 };
//! encoder.fill(&mut encoded, &rule, Default::default())?;
//! let mut tx = Transaction::new();
//! tx.add(&encoded)?;
//!
//! let predictions = compat::transaction(&tx, Version::V1_8_7);
//! let Reading::Other(misreading) = &predictions[0].reading else { panic!() };
//! assert_eq!(misreading.read_as.to_string(), "-j DROP");
//! assert_eq!(misreading.effect, Effect::DropsEverything);
//! assert!(compat::transaction(&tx, Version::V1_8_8).is_empty());
//! # Ok(())
//! # }
//! ```

use std::fmt;

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::nf_tables::{NFT_MSG_NEWCHAIN, NFT_MSG_NEWRULE};

use super::nft::{Encoded, Read, meaning, read};
pub use super::nft::{Writer, writer};
use super::{Address, ChainKind, Entry, NotExpressible, Rule, Target, builtins};
use crate::netlink::Messages;
use crate::nft::{ChainRef, Family, RuleRef, SnapshotTable, Transaction};
use crate::xt;

/// A version of iptables whose reading can be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(non_camel_case_types)]
pub enum Version {
    /// 1.8.7
    V1_8_7,
    /// 1.8.8
    V1_8_8,
    /// 1.8.9
    V1_8_9,
    /// 1.8.10
    V1_8_10,
    /// 1.8.11
    V1_8_11,
    /// 1.8.13
    V1_8_13,
}

impl Version {
    /// All known versions, oldest first.
    pub const ALL: [Self; 6] = [
        Self::V1_8_7,
        Self::V1_8_8,
        Self::V1_8_9,
        Self::V1_8_10,
        Self::V1_8_11,
        Self::V1_8_13,
    ];

    /// Returns the version's name: `1.8.7`, …
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1_8_7 => "1.8.7",
            Self::V1_8_8 => "1.8.8",
            Self::V1_8_9 => "1.8.9",
            Self::V1_8_10 => "1.8.10",
            Self::V1_8_11 => "1.8.11",
            Self::V1_8_13 => "1.8.13",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A version whose reading cannot be predicted.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("unsupported iptables version {name:?}: 1.8.7 to 1.8.11 and 1.8.13 are supported")]
pub struct UnknownVersion {
    /// The requested version.
    pub name: String,
}

crate::debug_as_message!(UnknownVersion);

impl std::str::FromStr for Version {
    type Err = UnknownVersion;

    /// Parses the output of [`name`](Self::name).
    fn from_str(name: &str) -> Result<Self, UnknownVersion> {
        let known = Self::ALL.into_iter().find(|known| known.name() == name);
        known.ok_or_else(|| UnknownVersion {
            name: name.to_owned(),
        })
    }
}

/// The effect of a misread rule on packets after a version has saved and restored it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// It drops every packet that reaches it.
    DropsEverything,
    /// It drops packets that the rule did not match.
    DropsMore,
    /// It accepts every packet that reaches it.
    AcceptsEverything,
    /// It accepts packets that the rule did not match.
    AcceptsMore,
    /// It applies another target than `DROP` and `ACCEPT` to every packet that reaches it.
    MatchesEverything,
    /// It matches additional packets.
    MatchesMore,
    /// It matches fewer packets.
    MatchesFewer,
    /// It matches other packets.
    MatchesOthers,
    /// It has lost its target, and only counts.
    NoTarget,
    /// It has another target.
    OtherTarget,
}

impl Effect {
    /// Returns `true` if the effect concerns every packet that reaches the rule.
    #[must_use]
    pub const fn is_everything(self) -> bool {
        matches!(
            self,
            Self::DropsEverything | Self::AcceptsEverything | Self::MatchesEverything
        )
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DropsEverything => "drops everything",
            Self::DropsMore => "drops more than it should",
            Self::AcceptsEverything => "accepts everything",
            Self::AcceptsMore => "accepts more than it should",
            Self::MatchesEverything => "matches every packet",
            Self::MatchesMore => "matches more packets than it should",
            Self::MatchesFewer => "matches fewer packets than it should",
            Self::MatchesOthers => "matches other packets than it should",
            Self::NoTarget => "does nothing",
            Self::OtherTarget => "does something else",
        })
    }
}

/// A rule that a version reads as another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Misreading {
    /// The rule that it reads.
    pub read_as: Rule,
    /// The effect of that rule after a save and restore.
    pub effect: Effect,
}

impl fmt::Display for Misreading {
    /// Formats as `after a save and restore, it drops everything`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after a save and restore, it {}", self.effect)
    }
}

/// A version's reading of a rule.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reading {
    /// The version reads the rule correctly.
    Correct,
    /// The version reads another rule.
    Other(Box<Misreading>),
    /// It fails at the rule: its save ends there, with exit code 3, and lacks the rest.
    Fails(&'static str),
    /// It hides the table with the rule: its save succeeds, but lacks the whole table. Restoring that
    /// leaves the table unchanged; if the file is the only copy, the table is lost.
    Hides(&'static str),
}

/// Predicts how a version reads a rule in nf_tables.
#[must_use]
pub fn reading(rule: &RuleRef<'_>, version: Version) -> Reading {
    let rule = Encoded::from(rule);
    compare_reading(&rule, version, &meaning(&rule))
}

/// Like [`reading`], for several versions, in their order.
pub(super) fn readings(
    rule: &RuleRef<'_>,
    versions: &[Version],
) -> impl Iterator<Item = (Version, Reading)> {
    let rule = Encoded::from(rule);
    let is = meaning(&rule);
    let versions = versions.iter();
    versions.map(move |&version| (version, compare_reading(&rule, version, &is)))
}

/// Compares a version's reading of a rule with the rule's meaning.
fn compare_reading(
    rule: &Encoded<'_>,
    version: Version,
    is: &Result<Entry, NotExpressible>,
) -> Reading {
    let (read, lost, resolves_interface) = match read(rule, version) {
        Read::As {
            rule,
            lost,
            resolves_interface,
        } => (rule, lost, resolves_interface),
        Read::Failed(why) => return Reading::Fails(why),
        Read::Hidden(why) => return Reading::Hides(why),
    };
    let effect = match is {
        Ok(is) if is.rule.means_the_same(&read) => return Reading::Correct,
        Ok(is) => effect(&is.rule, &read),
        Err(_) if resolves_interface => Effect::MatchesOthers,
        Err(_) => widened_effect(
            &read,
            if lost {
                Effect::MatchesMore
            } else {
                Effect::MatchesOthers
            },
        ),
    };
    let read_as = read;
    Reading::Other(Box::new(Misreading { read_as, effect }))
}

/// Classifies the difference between a rule and the rule that a version reads.
fn effect(is: &Rule, read: &Rule) -> Effect {
    let target = |rule: &Rule| Rule::new(rule.target.clone());
    if !target(is).means_the_same(&target(read)) {
        return match read.target {
            Target::None => Effect::NoTarget,
            _ => Effect::OtherTarget,
        };
    }
    let (of, among) = (conditions(is), conditions(read));
    let within = |some: &[String], all: &[String]| some.iter().all(|one| all.contains(one));
    match (within(&among, &of), within(&of, &among)) {
        (true, _) => widened_effect(read, Effect::MatchesMore),
        (_, true) => Effect::MatchesFewer,
        _ => widened_effect(read, Effect::MatchesOthers),
    }
}

/// Returns the effect of a rule that matches additional packets, or others.
fn widened_effect(read: &Rule, other: Effect) -> Effect {
    let more = other == Effect::MatchesMore;
    match (&read.target, read.matches_all_packets()) {
        (Target::None, _) => Effect::NoTarget,
        (Target::Drop | Target::Extension(xt::Target::Reject(_)), true) => Effect::DropsEverything,
        (Target::Drop | Target::Extension(xt::Target::Reject(_)), false) if more => {
            Effect::DropsMore
        }
        (Target::Accept, true) => Effect::AcceptsEverything,
        (Target::Accept, false) if more => Effect::AcceptsMore,
        (_, true) => Effect::MatchesEverything,
        (_, false) => other,
    }
}

/// Returns the rule's conditions one by one, without comments.
fn conditions(rule: &Rule) -> Vec<String> {
    let Rule {
        source,
        destination,
        in_interface,
        out_interface,
        protocol,
        fragment,
        matches,
        target: _,
    } = rule.canonical();
    let parts = |address: Option<Address>| address.filter(|address| !address.is_everything());
    let none = Rule::default;
    let mut all = vec![
        Rule {
            source: parts(source),
            ..none()
        },
        Rule {
            destination: parts(destination),
            ..none()
        },
        Rule {
            in_interface,
            ..none()
        },
        Rule {
            out_interface,
            ..none()
        },
        Rule { protocol, ..none() },
        Rule { fragment, ..none() },
    ];
    all.retain(|part| *part != none());
    let matches = matches.into_iter();
    let matches_without_comments = matches.filter(|one| !matches!(one, xt::Match::Comment(_)));
    all.extend(matches_without_comments.map(|one| none().with(one)));
    all.iter().map(ToString::to_string).collect()
}

/// A place in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The chain.
    pub chain: BString,
    /// The rule's number, from 1; `None` for the chain itself.
    pub rule: Option<usize>,
}

impl fmt::Display for Location {
    /// Formats as `rule 3 of chain INPUT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule {
            Some(rule) => write!(f, "rule {rule} of chain {}", self.chain),
            None => write!(f, "chain {}", self.chain),
        }
    }
}

/// The part of a table that a version shows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Visibility {
    /// The chains that iptables has, and their rules.
    Yes,
    /// Nothing, as if the table did not exist.
    Hidden {
        /// The first rule or chain that causes it.
        at: Location,
        /// The reason.
        reason: &'static str,
    },
    /// Everything before the rule at which the version fails.
    Truncated {
        /// The first such rule.
        at: Location,
        /// The reason why it fails.
        reason: &'static str,
    },
}

/// A version's reading of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableCompat {
    /// Whether it shows the table.
    pub visibility: Visibility,
    /// The rules that it misreads.
    pub readings: Vec<(Location, Reading)>,
}

/// Predicts how a version reads a table of nf_tables.
///
/// Takes linear time.
#[must_use]
pub fn table(table: &SnapshotTable<'_>, version: Version) -> TableCompat {
    let mut hidden = None;
    let mut truncated = None;
    let mut readings = Vec::new();
    for chain in table.chains() {
        let name = chain.chain().name();
        let at = |rule| Location {
            chain: name.to_owned(),
            rule,
        };
        if is_foreign_base_chain(&chain.chain()) {
            if let Some(why) = hides_foreign_hooks(version) {
                hidden.get_or_insert((at(None), why));
            }
            continue;
        }
        for (number, rule) in (1..).zip(chain.rules()) {
            let reading = reading(&rule, version);
            match reading {
                Reading::Correct => continue,
                Reading::Hides(why) => {
                    hidden.get_or_insert((at(Some(number)), why));
                }
                Reading::Fails(why) => {
                    truncated.get_or_insert((at(Some(number)), why));
                }
                _ => {}
            }
            readings.push((at(Some(number)), reading));
        }
    }
    let visibility = match (hidden, truncated) {
        (Some((at, why)), _) => Visibility::Hidden { at, reason: why },
        (None, Some((at, why))) => Visibility::Truncated { at, reason: why },
        (None, None) => Visibility::Yes,
    };
    TableCompat {
        visibility,
        readings,
    }
}

/// Returns the reason for which a version hides a table with a chain that is [entered
/// elsewhere](is_foreign_base_chain); `None` if it shows the table. Newer versions omit such a chain, and do not look
/// at its rules.
pub(super) fn hides_foreign_hooks(version: Version) -> Option<&'static str> {
    let why = "its hook or priority is not that of a built-in chain";
    (version == Version::V1_8_7).then_some(why)
}

/// Returns `true` if the chain has a hook without being a chain of iptables.
fn is_foreign_base_chain(chain: &ChainRef<'_>) -> bool {
    ChainKind::of_nft(chain.table(), chain).has_foreign_hook(chain)
}

/// A version's misreading of an operation in a transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Index of the operation.
    pub operation: usize,
    /// The table.
    pub table: BString,
    /// The chain.
    pub chain: BString,
    /// The reading of the rule; for a chain, the reason to [hide](Reading::Hides) its table.
    pub reading: Reading,
}

/// Predicts how a version will read the rules and chains that a transaction adds to iptables' tables, and returns the
/// misread ones. It makes no requests to the kernel.
#[must_use]
pub fn transaction(transaction: &Transaction, version: Version) -> Vec<Prediction> {
    let is_iptables = |family: Family, table: &BStr| {
        let has = table.to_str().is_ok_and(|table| builtins(table).is_some());
        matches!(family, Family::IP | Family::IP6) && has
    };
    let mut predictions = Vec::new();
    let messages = Messages::new(transaction.as_bytes()).map_while(Result::ok);
    for (operation, message) in messages.enumerate() {
        // The upper byte is nf_tables' subsystem.
        let [kind, _] = message.kind.to_le_bytes();
        if kind == NFT_MSG_NEWRULE
            && let Some((rule, table, chain)) = Encoded::of_operation(message.payload)
            && is_iptables(rule.family(), table)
        {
            let reading = compare_reading(&rule, version, &meaning(&rule));
            if reading != Reading::Correct {
                predictions.push(Prediction {
                    operation,
                    table: table.to_owned(),
                    chain: chain.to_owned(),
                    reading,
                });
            }
        } else if kind == NFT_MSG_NEWCHAIN
            && let Ok(chain) = ChainRef::of_payload(message.payload)
            && is_iptables(chain.family(), chain.table())
            && is_foreign_base_chain(&chain)
            && let Some(why) = hides_foreign_hooks(version)
        {
            predictions.push(Prediction {
                operation,
                table: chain.table().to_owned(),
                chain: chain.name().to_owned(),
                reading: Reading::Hides(why),
            });
        }
    }
    predictions
}
