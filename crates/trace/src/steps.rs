//! Results of a trace: its ends and the steps to each.

use std::fmt;

use bstr::BString;

use super::field::Field;
use super::packet::Hook;
use chainwright::iptables::Backend;

/// Result of a trace.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Trace {
    /// Ends of all branches. Each branch has different assumptions about unknown or random data.
    pub ends: Vec<End>,
    /// Whether a limit cut the trace. Branches that were not followed are ends of their own
    /// ([`Outcome::NotFollowed`]).
    pub is_truncated: bool,
}

/// End of one branch of a trace.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct End {
    /// Probability, given the assumptions.
    pub probability: f64,
    /// Assumptions about unknown data, without a known probability.
    pub assumptions: Vec<String>,
    /// Assumptions about random data; they are part of the probability.
    pub chances: Vec<String>,
    /// Rules that were evaluated, and the ends of base chains, in order.
    pub steps: Vec<Step>,
    /// Expressions with state that were evaluated, in order, except for those of legacy tables.
    pub changes: Vec<StateChange>,
    /// Result of each hook.
    pub hooks: Vec<HookVerdict>,
    /// Outcome for the packet.
    pub outcome: Outcome,
    /// Final state of the packet.
    pub packet: FinalPacket,
    /// Reservations about the result.
    pub notes: Vec<String>,
}

/// Final state of a packet, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FinalPacket {
    /// Source address, or a description if it is unknown.
    pub source: FinalValue,
    /// Destination address.
    pub destination: FinalValue,
    /// Source port.
    pub source_port: FinalValue,
    /// Destination port.
    pub destination_port: FinalValue,
    /// Mark.
    pub mark: FinalValue,
}

/// A value in the final state of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum FinalValue {
    /// Known, formatted value.
    Known(String),
    /// Description of an unknown value.
    Open(String),
    /// The packet has no such part.
    #[default]
    None,
}

impl FinalValue {
    /// Returns the value if it is known.
    #[must_use]
    pub fn known(&self) -> Option<&str> {
        match self {
            Self::Known(words) => Some(words),
            Self::Open(_) | Self::None => None,
        }
    }
}

impl fmt::Display for FinalValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(words) => f.write_str(words),
            Self::Open(words) => write!(f, "({words})"),
            Self::None => Ok(()),
        }
    }
}

/// Result of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct HookVerdict {
    /// The hook.
    pub hook: Hook,
    /// Whether the packet passed the hook.
    pub passed: bool,
}

/// Outcome for a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Outcome {
    /// Delivered to this machine.
    Delivered,
    /// Forwarded to another machine.
    Forwarded,
    /// Sent by this machine to another one.
    Sent,
    /// Dropped by the last step.
    Dropped,
    /// Dropped by the last step, with this reply.
    Rejected(String),
    /// Passed to a queue by the last step; a program decides.
    Queued(String),
    /// Taken by something else in the last step; later rules do not see it.
    Stolen(String),
    /// The outcome cannot be determined, for this reason.
    Unknown(String),
    /// Not followed further, for this reason.
    NotFollowed(String),
}

/// Rule that was evaluated, or the end of a base chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Step {
    /// Backend of the table.
    #[cfg_attr(feature = "serde", serde(serialize_with = "backend"))]
    pub backend: Backend,
    /// Family of the table in nft's language: `ip`, `ip6` or `inet`.
    pub family: &'static str,
    /// The table.
    #[cfg_attr(feature = "serde", serde(serialize_with = "text"))]
    pub table: BString,
    /// The chain.
    #[cfg_attr(feature = "serde", serde(serialize_with = "text"))]
    pub chain: BString,
    /// Hook.
    pub hook: Hook,
    /// Priority of the base chain.
    pub priority: i32,
    /// The rule; `None` for the end of a base chain.
    pub rule: Option<RuleAt>,
    /// Whether the whole rule matched. Otherwise it acted before a part that did not match.
    pub is_full_match: bool,
    /// Actions of the rule.
    pub actions: Vec<Action>,
    /// RuleVerdict.
    pub verdict: RuleVerdict,
}

#[cfg(feature = "serde")]
fn backend<S: serde::Serializer>(backend: &Backend, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match backend {
        Backend::Nft => "nft",
        Backend::Legacy => "legacy",
    })
}

/// Position of a rule in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RuleAt {
    /// Handle, for nf_tables.
    pub handle: Option<u64>,
    /// Position in the chain, from 1.
    pub number: usize,
}

/// RuleVerdict of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum RuleVerdict {
    /// Continues with the next rule.
    Continue,
    /// Accepts the packet in this base chain.
    Accept,
    /// Drops the packet.
    Drop,
    /// Drops the packet and sends this reply.
    Reject(String),
    /// Passes the packet to a queue.
    Queue(String),
    /// Something else takes the packet.
    Stolen(String),
    /// Jumps to this chain.
    Jump(#[cfg_attr(feature = "serde", serde(serialize_with = "text"))] BString),
    /// Goes to this chain without return.
    Goto(#[cfg_attr(feature = "serde", serde(serialize_with = "text"))] BString),
    /// Returns to the calling chain.
    Return,
    /// Cannot be evaluated, for this reason.
    Unknown(String),
}

/// Action of a rule other than its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Action {
    /// Sets a field.
    Set {
        /// The field.
        #[cfg_attr(feature = "serde", serde(serialize_with = "words"))]
        field: Field,
        /// The value, formatted.
        value: String,
    },
    /// Translates the source or destination.
    Translate {
        /// Whether it translates the destination.
        destination: bool,
        /// Name of the operation: `dnat`, `snat`, `masquerade`, `redirect`, …
        how: &'static str,
        /// The new address, formatted, if it changes.
        address: Option<String>,
        /// The new port, formatted, if it changes.
        port: Option<String>,
    },
    /// Adds, updates or deletes a set element.
    Update {
        /// The set.
        #[cfg_attr(feature = "serde", serde(serialize_with = "text"))]
        set: BString,
        /// The key, formatted.
        key: String,
        /// Whether it deletes the element.
        delete: bool,
    },
    /// Logs the packet with this prefix.
    Log(#[cfg_attr(feature = "serde", serde(serialize_with = "text"))] BString),
    /// Something else.
    Other(String),
}

/// Expression with state that was evaluated: a counter, a `last`, a quota, a rate, a connection limit, or a change of a
/// set.
///
/// Rules that do not match are included if such an expression precedes the part that does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StateChange {
    /// Family of the table in nft's language: `ip`, `ip6` or `inet`.
    pub family: &'static str,
    /// The table.
    #[cfg_attr(feature = "serde", serde(serialize_with = "text"))]
    pub table: BString,
    /// The chain.
    #[cfg_attr(feature = "serde", serde(serialize_with = "text"))]
    pub chain: BString,
    /// Handle of the rule.
    pub rule: u64,
    /// Index of the expression in the rule, from 0.
    pub expression: usize,
    /// Owner of the state.
    pub owner: StateOwner,
    /// Whether the packet exceeds the quota, the rate or the number of connections; `None` for other expressions.
    pub exceeded: Option<bool>,
}

/// Owner of the state that an expression changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum StateOwner {
    /// The expression of the rule.
    Rule,
    /// A named object.
    Object {
        /// Type of the object (`NFT_OBJECT_*`).
        object_type: u32,
        /// Name of the object.
        #[cfg_attr(feature = "serde", serde(serialize_with = "text"))]
        name: BString,
    },
    /// An expression of an element.
    Element {
        /// The set.
        #[cfg_attr(feature = "serde", serde(serialize_with = "text"))]
        set: BString,
        /// The element's own key, which is the first one of a range; `None` for the catch-all element.
        key: Option<ElementBytes>,
        /// Index of the expression in the element, from 0.
        expression: usize,
    },
    /// A set: the expression (`dynset`) adds, updates or deletes an element.
    Set {
        /// The set.
        #[cfg_attr(feature = "serde", serde(serialize_with = "text"))]
        set: BString,
        /// The key.
        key: ElementBytes,
        /// The data, for a map.
        data: Option<ElementBytes>,
    },
}

/// Key or data of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum ElementBytes {
    /// The bytes as in the kernel's messages.
    Known(Vec<u8>),
    /// Description of bytes that are not all known.
    Open(String),
}

/// Serializes bytes of the kernel as text.
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

impl fmt::Display for RuleVerdict {
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
                // A number, or a description.
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

/// Prints one line: table, chain, rule, actions, verdict.
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

/// Prints an end as lines: assumptions, steps, outcome.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for words in &self.assumptions {
            writeln!(f, "assuming {words}")?;
        }
        for words in &self.chances {
            writeln!(f, "random: {words}")?;
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
            if *address != FinalValue::None {
                write!(f, "{between}{address}")?;
            }
            if *port != FinalValue::None {
                write!(f, " port {port}")?;
            }
        }
        for note in &self.notes {
            write!(f, "\nnote: {note}")?;
        }
        Ok(())
    }
}

/// Prints the ends with their probabilities.
impl fmt::Display for Trace {
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
