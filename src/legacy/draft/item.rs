//! What a chain under change is made of.

use super::Maker;
use crate::arena::Position;
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Built {
    /// Where its entry is in the arena.
    pub(super) at: Position,
    /// Its length in bytes.
    pub(super) length: u16,
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
