//! What came of a walk: its ends, and the steps to each.

use std::fmt;

use bstr::BString;

use super::field::Field;
use super::packet::Hook;
use chainwright::iptables::Backend;

/// What came of a walk.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Walk {
    /// The ends that there are, each for another answer to what is not known or left to chance.
    pub ends: Vec<End>,
    /// Whether there were more branches, or longer ones, than were followed; what was not followed is an end of its
    /// own ([`Outcome::NotFollowed`]).
    pub is_cut: bool,
}

/// One end of a walk.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct End {
    /// How probable it is, if all that is assumed is so.
    pub probability: f64,
    /// What is assumed, in words: what was not known, and nothing but its being assumed makes so.
    pub assumptions: Vec<String>,
    /// What chance had so, in words; the probability counts it.
    pub chances: Vec<String>,
    /// The rules that were met, and the ends of base chains, in order.
    pub steps: Vec<Step>,
    /// What each hook said.
    pub hooks: Vec<HookVerdict>,
    /// What became of the packet.
    pub outcome: Outcome,
    /// The packet as it was then.
    pub packet: Arrived,
    /// What is not as sure as it looks.
    pub notes: Vec<String>,
}

/// A packet at the end of its way, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Arrived {
    /// Source address; if it is not known, in words.
    pub source: Part,
    /// Destination address.
    pub destination: Part,
    /// Source port.
    pub source_port: Part,
    /// Destination port.
    pub destination_port: Part,
    /// Mark.
    pub mark: Part,
}

/// A part of a packet that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Part {
    /// It is known, and this, as it is written.
    Known(String),
    /// It is not known, but this is.
    Open(String),
    /// The packet has no such part.
    #[default]
    None,
}

impl Part {
    /// It, if it is known.
    #[must_use]
    pub fn known(&self) -> Option<&str> {
        match self {
            Self::Known(words) => Some(words),
            Self::Open(_) | Self::None => None,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(words) => f.write_str(words),
            Self::Open(words) => write!(f, "({words})"),
            Self::None => Ok(()),
        }
    }
}

/// What a hook said in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct HookVerdict {
    /// The hook.
    pub hook: Hook,
    /// Whether the packet went on from there.
    pub passed: bool,
}

/// What became of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Outcome {
    /// It reached this machine.
    Delivered,
    /// It went on to another machine.
    Forwarded,
    /// It left this machine, which had sent it.
    Sent,
    /// The last step dropped it.
    Dropped,
    /// The last step dropped it and answered with this.
    Rejected(String),
    /// The last step handed it to a program that decides.
    Queued(String),
    /// The last step handed it to something else, and these rules see it no more.
    Stolen(String),
    /// What becomes of it cannot be said.
    Unknown(String),
    /// It was not followed further.
    NotFollowed(String),
}

/// A rule that was met, or the end of a base chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Step {
    /// Where its table lives.
    #[cfg_attr(feature = "serde", serde(serialize_with = "backend"))]
    pub backend: Backend,
    /// The table's family, as nft names it: `ip`, `ip6` or `inet`.
    pub family: &'static str,
    /// The table.
    #[cfg_attr(feature = "serde", serde(serialize_with = "text"))]
    pub table: BString,
    /// The chain.
    #[cfg_attr(feature = "serde", serde(serialize_with = "text"))]
    pub chain: BString,
    /// Where in the packet's way.
    pub hook: Hook,
    /// Priority of the base chain.
    pub priority: i32,
    /// Which rule; `None` for the end of a base chain.
    pub rule: Option<RuleAt>,
    /// Whether the packet met all of the rule. If not, the rule did something before that was found out.
    pub is_whole: bool,
    /// What the rule did to the packet or elsewhere.
    pub actions: Vec<Action>,
    /// Where it went on.
    pub verdict: Verdict,
}

#[cfg(feature = "serde")]
fn backend<S: serde::Serializer>(backend: &Backend, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match backend {
        Backend::Nft => "nft",
        Backend::Legacy => "legacy",
    })
}

/// Which rule of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RuleAt {
    /// Its handle, in nf_tables.
    pub handle: Option<u64>,
    /// The how manieth of its chain it is, from 1.
    pub number: usize,
}

/// What a rule says becomes of the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Verdict {
    /// The next rule.
    Continue,
    /// It passes this base chain.
    Accept,
    /// It is dropped.
    Drop,
    /// It is dropped, and this is answered.
    Reject(String),
    /// A program decides.
    Queue(String),
    /// Something else takes it.
    Stolen(String),
    /// On in this chain, and back.
    Jump(#[cfg_attr(feature = "serde", serde(serialize_with = "text"))] BString),
    /// On in this chain, and not back.
    Goto(#[cfg_attr(feature = "serde", serde(serialize_with = "text"))] BString),
    /// Back to the chain that jumped here.
    Return,
    /// What the rule does cannot be said.
    Unknown(String),
}

/// What a rule does beside its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Action {
    /// It gives something another value.
    Set {
        /// What.
        #[cfg_attr(feature = "serde", serde(serialize_with = "words"))]
        field: Field,
        /// The value in words.
        value: String,
    },
    /// It translates the source or destination.
    Translate {
        /// Whether it is the destination.
        destination: bool,
        /// How it is named: `dnat`, `snat`, `masquerade`, `redirect`, …
        how: &'static str,
        /// The address in words, if it changes that.
        address: Option<String>,
        /// The port in words, if it changes that.
        port: Option<String>,
    },
    /// It adds to a set, renews an element of it or deletes one.
    Update {
        /// The set.
        #[cfg_attr(feature = "serde", serde(serialize_with = "text"))]
        set: BString,
        /// The key in words.
        key: String,
        /// Whether it takes it out.
        delete: bool,
    },
    /// It logs the packet, with this before it.
    Log(#[cfg_attr(feature = "serde", serde(serialize_with = "text"))] BString),
    /// It does something else.
    Other(String),
}

/// Bytes of the kernel's as text.
#[cfg(feature = "serde")]
fn text<S: serde::Serializer>(bytes: &BString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(bytes)
}

#[cfg(feature = "serde")]
fn words<S: serde::Serializer>(field: &Field, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(field)
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered => f.write_str("delivered to this machine"),
            Self::Forwarded => f.write_str("forwarded"),
            Self::Sent => f.write_str("sent"),
            Self::Dropped => f.write_str("dropped"),
            Self::Rejected(with) => write!(f, "rejected with {with}"),
            Self::Queued(queue) => write!(f, "queued: {queue}"),
            Self::Stolen(by) => f.write_str(by),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
            Self::NotFollowed(why) => write!(f, "not followed: {why}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Continue => f.write_str("continue"),
            Self::Accept => f.write_str("accept"),
            Self::Drop => f.write_str("drop"),
            Self::Reject(with) => write!(f, "reject with {with}"),
            Self::Queue(queue) => write!(f, "queue {queue}"),
            Self::Stolen(by) => f.write_str(by),
            Self::Jump(chain) => write!(f, "jump {chain}"),
            Self::Goto(chain) => write!(f, "goto {chain}"),
            Self::Return => f.write_str("return"),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { field, value } => write!(f, "{field} set to {value}"),
            Self::Translate {
                how, address, port, ..
            } => {
                f.write_str(how)?;
                if let Some(address) = address {
                    write!(f, " to {address}")?;
                }
                // A number, or words for one.
                match port {
                    Some(port) if port.starts_with(|c: char| c.is_ascii_digit()) => {
                        write!(f, " port {port}")
                    }
                    Some(port) => write!(f, ", {port}"),
                    None => Ok(()),
                }
            }
            Self::Update { set, key, delete } => match delete {
                true => write!(f, "{key} deleted from {set}"),
                false => write!(f, "{key} added to {set}"),
            },
            Self::Log(prefix) if prefix.is_empty() => f.write_str("logged"),
            Self::Log(prefix) => write!(f, "logged as \"{prefix}\""),
            Self::Other(words) => f.write_str(words),
        }
    }
}

/// One line: table, chain, rule, what it did, where it went on.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.family, self.table, self.chain)?;
        match self.rule {
            Some(RuleAt {
                handle: Some(handle),
                ..
            }) => write!(f, " handle {handle}")?,
            Some(RuleAt { number, .. }) => write!(f, " rule {number}")?,
            None => f.write_str(" policy")?,
        }
        f.write_str(":")?;
        for action in &self.actions {
            write!(f, " {action},")?;
        }
        write!(f, " {}", self.verdict)
    }
}

/// An end as a list of lines: what is assumed, the steps, what became of the packet.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for words in &self.assumptions {
            writeln!(f, "assuming {words}")?;
        }
        for words in &self.chances {
            writeln!(f, "by chance {words}")?;
        }
        let mut hook = None;
        for step in &self.steps {
            if hook != Some((step.hook, step.priority)) {
                hook = Some((step.hook, step.priority));
                writeln!(f, "{} {}", step.hook, step.priority)?;
            }
            writeln!(f, "  {step}")?;
        }
        write!(f, "{}", self.outcome)?;
        let packet = &self.packet;
        for (address, port, between) in [
            (&packet.source, &packet.source_port, " from "),
            (&packet.destination, &packet.destination_port, " to "),
        ] {
            if *address != Part::None {
                write!(f, "{between}{address}")?;
            }
            if *port != Part::None {
                write!(f, " port {port}")?;
            }
        }
        for note in &self.notes {
            write!(f, "\nnote: {note}")?;
        }
        Ok(())
    }
}

/// Its ends, each with its probability.
impl fmt::Display for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, end) in self.ends.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            writeln!(f, "{:.1} %", end.probability * 100.0)?;
            writeln!(f, "{end}")?;
        }
        Ok(())
    }
}
