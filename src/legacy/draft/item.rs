//! What a chain under change is made of.

use super::Maker;
use std::cell::OnceCell;
use std::ops::Range;

use zerocopy::IntoBytes;

use crate::arena::{Arena, Position};
use crate::legacy::Counters;

/// Where a rule's counters come from: 0 for its own, 1 for zero, otherwise 2 more than the position
/// of the given ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counting(pub(super) u32);

impl Counting {
    pub(super) const OWN: Self = Self(0);
    pub(super) const ZEROED: Self = Self(1);

    pub(super) fn given(given: &mut Vec<Counters>, counters: Counters) -> Self {
        given.push(counters);
        // There are never that many: each has a system call's worth of memory behind it.
        Self(u32::try_from(given.len() + 1).unwrap_or(u32::MAX))
    }

    pub(super) fn resolve(self, given: &[Counters]) -> Count {
        match self.0 {
            0 => Count::Own,
            1 => Count::Zeroed,
            n => Count::Given(given.get(n as usize - 2).copied().unwrap_or_default()),
        }
    }
}

/// Where an entry's counters come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// Those that it had, or was built with.
    Own,
    /// Zero, and what is counted since it was read.
    Zeroed,
    /// These.
    Given(Counters),
}

/// A rule of a chain that is no longer as it was read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// One that was read.
    Kept {
        /// Where its entry is in the table, in bytes.
        offset: u32,
        /// Its length in bytes.
        length: u16,
        /// Its number among the table's entries.
        number: u32,
        counting: Counting,
    },
    /// A new one: its position among those that were built.
    New { built: u32, counting: Counting },
}

/// A rule that was built.
#[derive(Clone, Debug)]
pub(super) struct Built {
    /// Where its entry is in the arena, without the gap.
    pub(super) at: Position,
    /// Its length in bytes, with the gap.
    pub(super) length: u16,
    /// Zeros in it that are left out in the arena: nearly half of an entry with a comment.
    pub(super) gap: Gap,
    /// The entry with the gap, once somebody looked at it.
    pub(super) whole: OnceCell<Box<[u64]>>,
    pub(super) target: BuiltTarget,
    pub(super) counters: Counters,
    /// The draft that built it.
    pub(super) maker: Maker,
}

/// A built rule's target, as far as its bytes are not known before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuiltTarget {
    /// The bytes say it.
    Bytes,
    /// To the next entry.
    FallThrough,
    /// To that chain.
    Jump(u32),
}

/// Where an entry has zeros, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) start: u16,
    pub(super) length: u16,
}

impl Gap {
    /// Its place in the entry.
    pub(super) fn range(self) -> Range<usize> {
        let start = usize::from(self.start);
        start..start + usize::from(self.length)
    }
}

impl Built {
    /// The entry's bytes before and behind the gap.
    pub(super) fn parts<'a>(&self, arena: &'a Arena) -> (&'a [u8], &'a [u8]) {
        let stored = usize::from(self.length).saturating_sub(self.gap.length.into());
        let bytes = arena.bytes(self.at).get(..stored).unwrap_or_default();
        bytes
            .split_at_checked(self.gap.start.into())
            .unwrap_or_default()
    }

    /// The entry's bytes, aligned as the kernel's are.
    pub(super) fn bytes(&self, arena: &Arena) -> &[u8] {
        let length = usize::from(self.length);
        let whole = self.whole.get_or_init(|| {
            let mut words = vec![0; length.div_ceil(size_of::<u64>())].into_boxed_slice();
            let bytes = words.as_mut_bytes();
            let (head, tail) = self.parts(arena);
            // Both have their places in the entry's length.
            if let Some(place) = bytes.get_mut(..head.len()) {
                place.copy_from_slice(head);
            }
            if let Some(place) = bytes.get_mut(length.saturating_sub(tail.len())..length) {
                place.copy_from_slice(tail);
            }
            words
        });
        whole.as_bytes().get(..length).unwrap_or_default()
    }
}
