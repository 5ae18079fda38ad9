//! What versions of iptables-nft read of rules in nf_tables: of one ([`reading`]), of those of a table ([`table`]), and of
//! those of a transaction before it is committed ([`transaction`]); and by which encoding one may see who wrote a rule
//! ([`writer`]).
//!
//! A version that takes a rule for another one does no harm by looking. The harm is done when it saves what it read
//! and restores that, as agents and `restart iptables` do: [`Effect`] says what becomes of packets then. The story that
//! this comes from: iptables 1.8.8 and newer write `-m mark --mark 0x8000/0x8000 -j DROP` by expressions that 1.8.7 passes
//! over in silence, and a 1.8.7 in an agent's image made `-j DROP` of it.
//!
//! Of a version beside those of [`Version::ALL`]: 1.8.12 reads as 1.8.13 does. Read from the real programs were 1.8.7, 1.8.9,
//! 1.8.10, 1.8.11 and 1.8.13; what is said of 1.8.8 is put together from what is known of it. Of extensions it is known in which
//! version they have other words; that a version has an extension, or a revision of it, is taken for granted.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use chainwright::iptables::forecast::{self, Effect, Reading, Version};
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
//! let foreseen = forecast::transaction(&tx, Version::V1_8_7);
//! let Reading::Other(misreading) = &foreseen[0].reading else { panic!() };
//! assert_eq!(misreading.read_as.to_string(), "-j DROP");
//! assert_eq!(misreading.effect, Effect::DropsEverything);
//! assert!(forecast::transaction(&tx, Version::V1_8_8).is_empty());
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

/// A version of iptables that reads.
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
    /// All that are known, oldest first.
    pub const ALL: [Self; 6] = [
        Self::V1_8_7,
        Self::V1_8_8,
        Self::V1_8_9,
        Self::V1_8_10,
        Self::V1_8_11,
        Self::V1_8_13,
    ];

    /// `1.8.7`, …
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

/// A version of which it is not known how it reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is not known how iptables {name:?} reads: 1.8.7 to 1.8.11 and 1.8.13 are known")]
pub struct UnknownVersion {
    /// What was asked for.
    pub name: String,
}

impl std::str::FromStr for Version {
    type Err = UnknownVersion;

    /// As [`name`](Self::name).
    fn from_str(name: &str) -> Result<Self, UnknownVersion> {
        let known = Self::ALL.into_iter().find(|known| known.name() == name);
        known.ok_or_else(|| UnknownVersion {
            name: name.to_owned(),
        })
    }
}

/// What becomes of packets when a rule was saved and restored by a version that took it for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Every packet that comes to the rule is dropped.
    DropsEverything,
    /// Packets are dropped that the rule was not for.
    DropsMore,
    /// Every packet that comes to the rule is accepted.
    AcceptsEverything,
    /// Packets are accepted that the rule was not for.
    AcceptsMore,
    /// Every packet that comes to the rule is taken by it: to its target, if that is another one.
    TakesEverything,
    /// The rule is for packets that it was not for.
    TakesMore,
    /// The rule is for fewer packets than it was.
    TakesFewer,
    /// The rule is for other packets than it was.
    TakesOthers,
    /// The rule has lost its target, and only counts.
    DoesNothing,
    /// The rule does something else with its packets.
    DoesOther,
}

impl Effect {
    /// Whether every packet that comes to the rule is concerned.
    #[must_use]
    pub const fn is_everything(self) -> bool {
        matches!(
            self,
            Self::DropsEverything | Self::AcceptsEverything | Self::TakesEverything
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
            Self::TakesEverything => "is for every packet",
            Self::TakesMore => "is for more packets than it should be",
            Self::TakesFewer => "is for fewer packets than it should be",
            Self::TakesOthers => "is for other packets than it should be",
            Self::DoesNothing => "does nothing",
            Self::DoesOther => "does something else",
        })
    }
}

/// A rule that a version takes for another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Misreading {
    /// What it takes it for.
    pub read_as: Rule,
    /// What the rule does, when it was saved and restored.
    pub effect: Effect,
}

impl fmt::Display for Misreading {
    /// `saved and restored, it drops everything`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "saved and restored, it {}", self.effect)
    }
}

/// What a version makes of a rule.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reading {
    /// It reads the rule as what it is.
    Right,
    /// It takes the rule for another one.
    Other(Box<Misreading>),
    /// It gives up at the rule: its save ends there, with exit code 3, and lacks what is behind.
    Fails(&'static str),
    /// It does not show the table with the rule: its save succeeds, and lacks all of the table. A restore of that
    /// leaves the table as it is; where the file is all that there is, the table is gone.
    Hides(&'static str),
}

/// What a version reads of a rule in nf_tables.
#[must_use]
pub fn reading(rule: &RuleRef<'_>, version: Version) -> Reading {
    let rule = Encoded::from(rule);
    compared(&rule, version, &meaning(&rule))
}

/// The same of several versions, in their order.
pub(super) fn readings(
    rule: &RuleRef<'_>,
    versions: &[Version],
) -> impl Iterator<Item = (Version, Reading)> {
    let rule = Encoded::from(rule);
    let is = meaning(&rule);
    let versions = versions.iter();
    versions.map(move |&version| (version, compared(&rule, version, &is)))
}

/// What a version reads of a rule that is this one.
fn compared(rule: &Encoded<'_>, version: Version, is: &Result<Entry, NotExpressible>) -> Reading {
    let (read, lost, looks_up) = match read(rule, version) {
        Read::As {
            rule,
            lost,
            looks_up,
        } => (rule, lost, looks_up),
        Read::Failed(why) => return Reading::Fails(why),
        Read::Hidden(why) => return Reading::Hides(why),
    };
    let effect = match is {
        Ok(is) if is.rule.means_the_same(&read) => return Reading::Right,
        Ok(is) => effect(&is.rule, &read),
        Err(_) if looks_up => Effect::TakesOthers,
        Err(_) => wider(
            &read,
            if lost {
                Effect::TakesMore
            } else {
                Effect::TakesOthers
            },
        ),
    };
    let read_as = read;
    Reading::Other(Box::new(Misreading { read_as, effect }))
}

/// What differs between what a rule is and what it was read as.
fn effect(is: &Rule, read: &Rule) -> Effect {
    let target = |rule: &Rule| Rule::new(rule.target.clone());
    if !target(is).means_the_same(&target(read)) {
        return match read.target {
            Target::None => Effect::DoesNothing,
            _ => Effect::DoesOther,
        };
    }
    let (of, among) = (conditions(is), conditions(read));
    let within = |some: &[String], all: &[String]| some.iter().all(|one| all.contains(one));
    match (within(&among, &of), within(&of, &among)) {
        (true, _) => wider(read, Effect::TakesMore),
        (_, true) => Effect::TakesFewer,
        _ => wider(read, Effect::TakesOthers),
    }
}

/// What a rule does that is for more packets, or for others.
fn wider(read: &Rule, other: Effect) -> Effect {
    let more = other == Effect::TakesMore;
    match (&read.target, read.is_for_all()) {
        (Target::None, _) => Effect::DoesNothing,
        (Target::Drop | Target::Extension(xt::Target::Reject(_)), true) => Effect::DropsEverything,
        (Target::Drop | Target::Extension(xt::Target::Reject(_)), false) if more => {
            Effect::DropsMore
        }
        (Target::Accept, true) => Effect::AcceptsEverything,
        (Target::Accept, false) if more => Effect::AcceptsMore,
        (_, true) => Effect::TakesEverything,
        (_, false) => other,
    }
}

/// What packets are asked for, each by itself, but for comments.
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
    let asking = matches.filter(|one| !matches!(one, xt::Match::Comment(_)));
    all.extend(asking.map(|one| none().with(one)));
    all.iter().map(ToString::to_string).collect()
}

/// Where something is in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At {
    /// The chain.
    pub chain: BString,
    /// The rule by its number, from 1; `None` if it is the chain itself.
    pub rule: Option<usize>,
}

impl fmt::Display for At {
    /// `rule 3 of chain INPUT`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rule {
            Some(rule) => write!(f, "rule {rule} of chain {}", self.chain),
            None => write!(f, "chain {}", self.chain),
        }
    }
}

/// What a version shows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// The chains that iptables has, and their rules.
    Yes,
    /// Nothing, as if it were not there.
    Hidden {
        /// Because of what: the first such thing.
        at: At,
        /// What that is.
        why: &'static str,
    },
    /// As much as stands before a rule at which it gives up.
    Cut {
        /// The rule: the first such.
        at: At,
        /// What it has no words for.
        why: &'static str,
    },
}

/// What a version reads of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Whether it shows the table.
    pub shown: Shown,
    /// The rules that it does not read as what they are.
    pub readings: Vec<(At, Reading)>,
}

/// What a version reads of a table of nf_tables.
///
/// Takes linear time.
#[must_use]
pub fn table(table: &SnapshotTable<'_>, version: Version) -> Forecast {
    let mut hidden = None;
    let mut cut = None;
    let mut readings = Vec::new();
    for chain in table.chains() {
        let name = chain.chain().name();
        let at = |rule| At {
            chain: name.to_owned(),
            rule,
        };
        if entered_elsewhere(&chain.chain()) {
            if let Some(why) = hides_a_chain_entered_elsewhere(version) {
                hidden.get_or_insert((at(None), why));
            }
            continue;
        }
        for (number, rule) in (1..).zip(chain.rules()) {
            let reading = reading(&rule, version);
            match reading {
                Reading::Right => continue,
                Reading::Hides(why) => {
                    hidden.get_or_insert((at(Some(number)), why));
                }
                Reading::Fails(why) => {
                    cut.get_or_insert((at(Some(number)), why));
                }
                _ => {}
            }
            readings.push((at(Some(number)), reading));
        }
    }
    let shown = match (hidden, cut) {
        (Some((at, why)), _) => Shown::Hidden { at, why },
        (None, Some((at, why))) => Shown::Cut { at, why },
        (None, None) => Shown::Yes,
    };
    Forecast { shown, readings }
}

/// Why a table with a chain that is [entered elsewhere](entered_elsewhere) is not shown, if a version does not. The newer
/// ones leave such a chain out, and do not look at its rules.
pub(super) fn hides_a_chain_entered_elsewhere(version: Version) -> Option<&'static str> {
    let why = "packets enter it elsewhere than a built-in chain";
    (version == Version::V1_8_7).then_some(why)
}

/// Whether packets enter the chain where they enter no chain of iptables'.
fn entered_elsewhere(chain: &ChainRef<'_>) -> bool {
    ChainKind::of_nft(chain.table(), chain).is_entered_elsewhere(chain)
}

/// What a version will make of something in a transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Foreseen {
    /// Which of the operations, from 0.
    pub operation: usize,
    /// The table.
    pub table: BString,
    /// The chain.
    pub chain: BString,
    /// What the version makes of the rule; of a chain that it [hides](Reading::Hides) the table for it.
    pub reading: Reading,
}

/// What a version will make of the rules and chains that a transaction puts into iptables' tables: those that it will not
/// read as what they are. Nothing is asked of the kernel.
#[must_use]
pub fn transaction(transaction: &Transaction, version: Version) -> Vec<Foreseen> {
    let is_iptables = |family: Family, table: &BStr| {
        let has = table.to_str().is_ok_and(|table| builtins(table).is_some());
        matches!(family, Family::IP | Family::IP6) && has
    };
    let mut foreseen = Vec::new();
    let messages = Messages::new(transaction.as_bytes()).map_while(Result::ok);
    for (operation, message) in messages.enumerate() {
        // The upper byte is nf_tables' own.
        let [kind, _] = message.kind.to_le_bytes();
        if kind == NFT_MSG_NEWRULE
            && let Some((rule, table, chain)) = Encoded::of_operation(message.payload)
            && is_iptables(rule.family(), table)
        {
            let reading = compared(&rule, version, &meaning(&rule));
            if reading != Reading::Right {
                foreseen.push(Foreseen {
                    operation,
                    table: table.to_owned(),
                    chain: chain.to_owned(),
                    reading,
                });
            }
        } else if kind == NFT_MSG_NEWCHAIN
            && let Ok(chain) = ChainRef::of_payload(message.payload)
            && is_iptables(chain.family(), chain.table())
            && entered_elsewhere(&chain)
            && let Some(why) = hides_a_chain_entered_elsewhere(version)
        {
            foreseen.push(Foreseen {
                operation,
                table: chain.table().to_owned(),
                chain: chain.name().to_owned(),
                reading: Reading::Hides(why),
            });
        }
    }
    foreseen
}
