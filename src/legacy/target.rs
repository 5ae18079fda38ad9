//! The target of a rule.

use std::fmt;

use chainwright_sys::netfilter::NF_QUEUE;

use super::entry::{VERDICT_ACCEPT, VERDICT_DROP, VERDICT_RETURN};
use super::{ChainRef, ExtensionRef, Malformed, Problem, RuleRef};

pub(super) const VERDICT_QUEUE: i32 = -NF_QUEUE - 1;

/// The target of a rule: the action for a matching packet.
///
/// Source: `struct xt_standard_target` and its verdict in `linux/netfilter/x_tables.h`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target<'t> {
    /// Accepts the packet.
    Accept,
    /// Drops the packet.
    Drop,
    /// Queues the packet to user space.
    Queue,
    /// Returns to the calling chain, or to the policy in a built-in chain.
    Return,
    /// Continues with the next rule: a rule without a target, which only counts.
    FallThrough,
    /// Jumps to another chain; a return from it continues with the next rule.
    Jump(ChainRef<'t>),
    /// Goes to another chain; a return from it continues in the chain that called this one. Not in
    /// ARP tables.
    Goto(ChainRef<'t>),
    /// Applies the extension.
    Extension(ExtensionRef<'t>),
    /// Another verdict, as the kernel stores it (`-verdict - 1`).
    Verdict(i32),
}

impl<'t> Target<'t> {
    /// Decodes the target of a rule.
    pub(super) fn of(rule: &RuleRef<'t>) -> Result<Self, Malformed> {
        let raw = rule.raw_target()?;
        if !raw.name().is_empty() {
            return Ok(Self::Extension(raw));
        }
        let Some(verdict) = rule.entry().verdict() else {
            let offset = rule.offset() + rule.entry().target_offset;
            // The length of the extension comes from its u16 size field.
            let (size, available) = (raw.bytes().len() as u16, rule.entry().target().len());
            return Err(Malformed::new(
                offset,
                Problem::ExtensionSize { size, available },
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

    /// Returns the chain of a jump or goto.
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
            // Only the chain's name, to keep the output short.
            Self::Jump(chain) => f.debug_tuple("Jump").field(&chain.name()).finish(),
            Self::Goto(chain) => f.debug_tuple("Goto").field(&chain.name()).finish(),
            Self::Extension(extension) => f.debug_tuple("Extension").field(extension).finish(),
            Self::Verdict(verdict) => f.debug_tuple("Verdict").field(verdict).finish(),
        }
    }
}
