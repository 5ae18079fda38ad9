//! What a rule does with a packet.

use std::fmt;

use chainwright_sys::netfilter::NF_QUEUE;

use super::entry::{VERDICT_ACCEPT, VERDICT_DROP, VERDICT_RETURN};
use super::{ChainRef, ExtensionRef, Malformed, Problem, RuleRef};

pub(super) const VERDICT_QUEUE: i32 = -NF_QUEUE - 1;

/// What a rule does with a packet that it is for.
///
/// Source: `struct xt_standard_target` and its verdict in `linux/netfilter/x_tables.h`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target<'t> {
    /// Lets the packet go on.
    Accept,
    /// Throws the packet away.
    Drop,
    /// Hands the packet to a program.
    Queue,
    /// Goes back to the calling chain, or to the policy in a built-in chain.
    Return,
    /// Goes on with the next rule: a rule without a target, which only counts.
    FallThrough,
    /// Goes to the start of another chain; its return leads to the next rule.
    Jump(ChainRef<'t>),
    /// Goes to the start of another chain for good: its return leads to where this chain was
    /// jumped to from. ARP tables do not have it.
    Goto(ChainRef<'t>),
    /// Does what the extension says.
    Extension(ExtensionRef<'t>),
    /// A verdict that is none of the above: the number as the kernel keeps it (minus one minus the
    /// verdict).
    Verdict(i32),
}

impl<'t> Target<'t> {
    /// The target of a rule.
    pub(super) fn of(rule: &RuleRef<'t>) -> Result<Self, Malformed> {
        let raw = rule.raw_target()?;
        if !raw.name().is_empty() {
            return Ok(Self::Extension(raw));
        }
        let Some(verdict) = rule.entry().verdict() else {
            let offset = rule.offset() + rule.entry().target_offset;
            // It is as long as its u16 of a size says.
            let (size, room) = (raw.bytes().len() as u16, rule.entry().target().len());
            return Err(Malformed::new(
                offset,
                Problem::ExtensionSize { size, room },
            ));
        };
        let Ok(to) = u32::try_from(verdict) else {
            return Ok(match verdict {
                VERDICT_ACCEPT => Self::Accept,
                VERDICT_DROP => Self::Drop,
                VERDICT_QUEUE => Self::Queue,
                VERDICT_RETURN => Self::Return,
                other => Self::Verdict(other),
            });
        };
        if to as usize == rule.offset() + rule.bytes().len() {
            return Ok(Self::FallThrough);
        }
        let Some(chain) = rule.table().chain_at(to as usize) else {
            return Err(Malformed::new(rule.offset(), Problem::Jump { to }));
        };
        Ok(if rule.header().is_goto() {
            Self::Goto(chain)
        } else {
            Self::Jump(chain)
        })
    }

    /// The chain that a jump or goto leads to.
    #[must_use]
    pub const fn chain(&self) -> Option<ChainRef<'t>> {
        match self {
            Self::Jump(chain) | Self::Goto(chain) => Some(*chain),
            _ => None,
        }
    }
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accept => f.write_str("Accept"),
            Self::Drop => f.write_str("Drop"),
            Self::Queue => f.write_str("Queue"),
            Self::Return => f.write_str("Return"),
            Self::FallThrough => f.write_str("FallThrough"),
            // The chain's name; all of it could be much.
            Self::Jump(chain) => f.debug_tuple("Jump").field(&chain.name()).finish(),
            Self::Goto(chain) => f.debug_tuple("Goto").field(&chain.name()).finish(),
            Self::Extension(extension) => f.debug_tuple("Extension").field(extension).finish(),
            Self::Verdict(verdict) => f.debug_tuple("Verdict").field(verdict).finish(),
        }
    }
}
