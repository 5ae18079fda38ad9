//! One entry of a table, in the layout of any family.

use chainwright_sys::netfilter::{NF_ACCEPT, NF_DROP};
use chainwright_sys::x_tables::{
    XT_ALIGN, XT_ERROR_TARGET, XT_RETURN, xt_counters, xt_entry_target, xt_error_target,
    xt_standard_target,
};
use std::mem::offset_of;
use zerocopy::FromBytes;

use super::chain::Policy;
use super::family::Layout;
use super::name::until_nul;
use super::{Counters, Malformed, Problem};

/// Size of the header of a match or target.
pub(super) const EXTENSION_HEAD: usize = size_of::<xt_entry_target>();
/// Offset of the name in a target.
pub(super) const TARGET_NAME: usize = offset_of!(xt_entry_target, name);
/// Offset of the verdict in a standard target.
pub(super) const VERDICT: usize = offset_of!(xt_standard_target, verdict);
/// Offset of the chain's name in an `ERROR` target.
pub(super) const ERROR_NAME: usize = offset_of!(xt_error_target, errorname);
const ERROR_NAME_END: usize = offset_of!(xt_error_target, __pad);
/// Sizes of these targets in an entry, with padding.
pub(super) const ERROR_TARGET: usize = size_of::<xt_error_target>().next_multiple_of(XT_ALIGN);
pub(super) const STANDARD_TARGET: usize =
    size_of::<xt_standard_target>().next_multiple_of(XT_ALIGN);

/// Verdicts as a standard target stores them: `-verdict - 1`.
pub(super) const VERDICT_ACCEPT: i32 = -NF_ACCEPT - 1;
pub(super) const VERDICT_DROP: i32 = -NF_DROP - 1;
pub(super) const VERDICT_RETURN: i32 = XT_RETURN;

/// An entry with checked bounds: it lies within the table, and its matches and the header of its
/// target lie within it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'t> {
    /// From the start of the entry to the next one.
    pub(super) bytes: &'t [u8],
    /// Offset of the target. The matches lie between the end of the entry's header and the target.
    pub(super) target_offset: usize,
}

/// Reads the number at an offset. The caller has checked that two bytes are there.
#[inline]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

impl<'t> Entry<'t> {
    /// Returns the entry at an offset into the table's entries.
    ///
    /// # Errors
    /// An entry with at least the header of a target does not fit there.
    #[inline]
    pub(super) fn at(layout: &Layout, entries: &'t [u8], offset: usize) -> Result<Self, Malformed> {
        let rest = entries.get(offset..).unwrap_or_default();
        let malformed = |problem| Err(Malformed::new(offset, problem));
        let smallest = layout.entry + EXTENSION_HEAD;
        if rest.len() < smallest {
            return malformed(Problem::Truncated {
                needed: smallest,
                left: rest.len(),
            });
        }
        let target_offset = u16_at(rest, layout.target_offset);
        let next_offset = u16_at(rest, layout.next_offset);
        let (target, next) = (usize::from(target_offset), usize::from(next_offset));
        if target < layout.entry || target + EXTENSION_HEAD > next {
            return malformed(Problem::TargetOffset {
                target_offset,
                next_offset,
            });
        }
        if target % XT_ALIGN != 0 {
            return malformed(Problem::Misaligned {
                value: target_offset,
            });
        }
        if next % XT_ALIGN != 0 {
            return malformed(Problem::Misaligned { value: next_offset });
        }
        match rest.get(..next) {
            Some(bytes) => Ok(Self {
                bytes,
                target_offset: target,
            }),
            None => malformed(Problem::NextOffset {
                next_offset,
                left: rest.len(),
            }),
        }
    }

    /// Returns the entry's counters.
    pub(super) fn counters(&self, layout: &Layout) -> Counters {
        match xt_counters::read_from_prefix(&self.bytes[layout.counters..]) {
            Ok((counters, _)) => Counters {
                packets: counters.pcnt,
                bytes: counters.bcnt,
            },
            // Unreachable: `at` checks the whole header.
            Err(_) => Counters::default(),
        }
    }

    /// Returns the target and what follows it in the entry.
    #[inline]
    pub(super) fn target(&self) -> &'t [u8] {
        &self.bytes[self.target_offset..]
    }

    /// Returns the name in an `ERROR` target, which makes the entry the head of a user-defined
    /// chain or the end of the table.
    #[inline]
    pub(super) fn error_name(&self) -> Option<&'t [u8]> {
        // Check the size first: it is next to bytes already read, unlike the name.
        if self.bytes.len() - self.target_offset < ERROR_TARGET {
            return None;
        }
        let target = self.target();
        let name = XT_ERROR_TARGET.as_bytes();
        let rest = target[TARGET_NAME..].strip_prefix(name)?;
        (rest[0] == 0).then(|| until_nul(&target[ERROR_NAME..ERROR_NAME_END]))
    }

    /// Returns the verdict of a standard target, the one with an empty name.
    #[inline]
    pub(super) fn verdict(&self) -> Option<i32> {
        let target = self.target();
        if target[TARGET_NAME] != 0 {
            return None;
        }
        let verdict = target.get(VERDICT..VERDICT + 4)?;
        Some(i32::from_ne_bytes([
            verdict[0], verdict[1], verdict[2], verdict[3],
        ]))
    }

    /// Returns the verdict if the entry applies it to every packet, as the last entry of a chain
    /// does.
    #[inline]
    fn unconditional_verdict(&self, layout: &Layout) -> Option<i32> {
        // The cheap conditions first; the sizes are known already.
        if self.target_offset != layout.entry || self.bytes.len() != layout.entry + STANDARD_TARGET
        {
            return None;
        }
        let verdict = self.verdict()?;
        self.is_unconditional(layout).then_some(verdict)
    }

    /// Returns `true` if the entry's own header (not its matches) matches every packet.
    pub(super) fn is_unconditional(&self, layout: &Layout) -> bool {
        const ZEROS: [u8; 256] = [0; 256];
        self.bytes[..layout.header] == ZEROS[..layout.header]
    }

    /// Returns `true` if this is the implicit return at the end of a user-defined chain.
    #[inline]
    pub(super) fn is_implicit_return(&self, layout: &Layout) -> bool {
        self.unconditional_verdict(layout) == Some(VERDICT_RETURN)
    }

    /// Returns the policy if this can be the last entry of a built-in chain.
    #[inline]
    pub(super) fn policy(&self, layout: &Layout) -> Option<Policy> {
        match self.unconditional_verdict(layout)? {
            VERDICT_ACCEPT => Some(Policy::Accept),
            VERDICT_DROP => Some(Policy::Drop),
            _ => None,
        }
    }
}
