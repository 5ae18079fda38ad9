//! Rules of an edited chain.

use super::EditorId;
use std::cell::OnceCell;
use std::ops::Range;

use zerocopy::IntoBytes;

use crate::arena::{Arena, Position};
use crate::legacy::Counters;

/// Compact source of a rule's counters: 0 for its own, 1 for zero, otherwise the index of the given
/// counters plus 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompactCounters(pub(super) u32);

impl CompactCounters {
    pub(super) const OWN: Self = Self(0);
    pub(super) const ZEROED: Self = Self(1);

    pub(super) fn explicit(explicit: &mut Vec<Counters>, counters: Counters) -> Self {
        explicit.push(counters);
        // Cannot overflow: each of them has a system call's worth of memory.
        Self(u32::try_from(explicit.len() + 1).unwrap_or(u32::MAX))
    }

    pub(super) fn resolve(self, explicit: &[Counters]) -> EntryCounters {
        match self.0 {
            0 => EntryCounters::Own,
            1 => EntryCounters::Zeroed,
            n => EntryCounters::Explicit(explicit.get(n as usize - 2).copied().unwrap_or_default()),
        }
    }
}

/// Source of an entry's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryCounters {
    /// The counters that it had, or was built with.
    Own,
    /// Zero, plus what the kernel has counted since the table was read.
    Zeroed,
    /// These counters.
    Explicit(Counters),
}

/// A rule of a chain that was changed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// A rule that was read.
    Preserved {
        /// Offset of its entry in the table, in bytes.
        offset: u32,
        /// Its length in bytes.
        length: u16,
        /// Index of its entry among the table's entries.
        number: u32,
        counter_ref: CompactCounters,
    },
    /// A new rule: its index in the list of built rules.
    New {
        built: u32,
        counter_ref: CompactCounters,
    },
}

/// A new rule that was built.
#[derive(Clone, Debug)]
pub(super) struct Built {
    /// Position of its entry in the arena, without the gap.
    pub(super) at: Position,
    /// Its length in bytes, with the gap.
    pub(super) length: u16,
    /// Zeros that the arena omits: nearly half of an entry with a comment.
    pub(super) gap: Gap,
    /// The entry with the gap, cached on first access.
    pub(super) whole: OnceCell<Box<[u64]>>,
    pub(super) target: BuiltTarget,
    pub(super) counters: Counters,
    /// The editor that built it.
    pub(super) editor_id: EditorId,
}

/// A built rule's target, which may depend on offsets that are only known at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuiltTarget {
    /// The target is in the entry's bytes.
    Bytes,
    /// Continues with the next entry.
    FallThrough,
    /// Jumps to that chain.
    Jump(u32),
}

/// A run of zeros in an entry, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) start: u16,
    pub(super) length: u16,
}

impl Gap {
    /// Returns its range in the entry.
    pub(super) fn range(self) -> Range<usize> {
        let start = usize::from(self.start);
        start..start + usize::from(self.length)
    }
}

impl Built {
    /// Returns the entry's bytes before and after the gap.
    pub(super) fn parts<'a>(&self, arena: &'a Arena) -> (&'a [u8], &'a [u8]) {
        let stored = usize::from(self.length).saturating_sub(self.gap.length.into());
        let bytes = arena.bytes(self.at).get(..stored).unwrap_or_default();
        bytes
            .split_at_checked(self.gap.start.into())
            .unwrap_or_default()
    }

    /// Returns the entry's bytes, with the kernel's alignment.
    pub(super) fn bytes(&self, arena: &Arena) -> &[u8] {
        let length = usize::from(self.length);
        let whole = self.whole.get_or_init(|| {
            let mut words = vec![0; length.div_ceil(size_of::<u64>())].into_boxed_slice();
            let bytes = words.as_mut_bytes();
            let (head, tail) = self.parts(arena);
            // Both ranges lie within the entry's length.
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
