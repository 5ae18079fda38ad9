//! The operations of a change, and the deletions that it postpones.

use std::collections::HashSet;
use std::time::Instant;

use super::port_ids::IdAllocator;
use super::rules::PickKey;
use super::sets::{ElementData, Entry, SetKind};

/// The parts to write that do not depend on services.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) table: bool,
    pub(super) sets: bool,
    /// The chains whose rules to write; all if `None`.
    pub(super) chains: Option<HashSet<String>>,
}

impl Base {
    pub(super) const ALL: Self = Self {
        table: true,
        sets: true,
        chains: None,
    };
}

/// The element operations of a [change](super::Flat::execute).
#[derive(Debug, Default)]
pub(super) struct Elements {
    pub(super) base: Option<Base>,
    /// Elements to add before everything else, by the index of the set in [`SetKind::ALL`].
    pub(super) first: [Vec<Entry>; SetKind::ALL.len()],
    pub(super) delete: [Vec<Entry>; SetKind::ALL.len()],
    pub(super) add: [Vec<Entry>; SetKind::ALL.len()],
    /// Elements to delete after everything else.
    pub(super) last: [Vec<Entry>; SetKind::ALL.len()],
    /// Pick keys whose chains must exist before an element refers to them.
    pub(super) pick_keys: Vec<PickKey>,
    /// Prefix lengths whose rules must exist before a load balancer needs them.
    pub(super) lengths: Vec<u8>,
    /// Elements and chains for numbers of endpoints that no service has any more, to delete after everything else.
    pub(super) picks: Vec<(SetKind, u32)>,
    pub(super) chains: Vec<String>,
    pub(super) count: usize,
}

impl Elements {
    pub(super) fn push(&mut self, kind: SetKind, entry: Entry, add: bool) {
        let of = match add {
            true if kind.is_added_first() => &mut self.first,
            true => &mut self.add,
            false if kind.is_deleted_last() => &mut self.last,
            false => &mut self.delete,
        };
        of[kind as usize].push(entry);
        self.count += 1;
    }

    /// Moves the deletion of elements that get another value to the transaction that adds them.
    pub(super) fn join_replaced(&mut self) {
        for kind in SetKind::ALL.map(|kind| kind as usize) {
            if self.last[kind].is_empty() || self.add[kind].is_empty() {
                continue;
            }
            let added: HashSet<&ElementData> = self.add[kind].iter().map(|(key, _)| key).collect();
            let delete = &mut self.delete[kind];
            self.last[kind].retain(|entry| {
                let is_replaced = added.contains(&entry.0);
                if is_replaced {
                    delete.push(*entry);
                }
                !is_replaced
            });
        }
    }

    /// Returns `true` if the elements of the last step may stay in the kernel until the next change: they are few,
    /// nothing refers to them, and this change commits other operations.
    pub(super) fn may_leave_last(&self) -> bool {
        let mut last = SetKind::ALL.iter().zip(&self.last);
        let mut others = [&self.first, &self.delete, &self.add].into_iter().flatten();
        self.picks.is_empty()
            && self.chains.is_empty()
            && others.any(|entries| !entries.is_empty())
            && self.last.iter().map(Vec::len).sum::<usize>() <= DeferredDeletions::MAX
            && last.all(|(kind, entries)| entries.is_empty() || kind.is_unreachable_alone())
    }

    /// Clears everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        let lists = self.delete.iter_mut().chain(&mut self.add);
        let lists = lists.chain(&mut self.first).chain(&mut self.last);
        lists.for_each(Vec::clear);
        self.base = None;
        self.pick_keys.clear();
        self.lengths.clear();
        self.picks.clear();
        self.chains.clear();
        self.count = 0;
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
            && self.base.is_none()
            && self.pick_keys.is_empty()
            && self.lengths.is_empty()
            && self.picks.is_empty()
            && self.chains.is_empty()
    }
}

/// Elements that the last changes no longer need but left in the kernel, because packets in flight may still look them
/// up. A later change deletes them.
#[derive(Debug, Default)]
pub(super) struct DeferredDeletions {
    /// By the index of the set in [`SetKind::ALL`].
    pub(super) entries: [Vec<Entry>; SetKind::ALL.len()],
    /// The numbers of ports in these elements.
    pub(super) ids: Vec<u32>,
    /// When the last of these changes was committed.
    pub(super) since: Option<Instant>,
}

impl DeferredDeletions {
    /// Largest number of elements that stay in the kernel.
    pub(super) const MAX: usize = 64;

    pub(super) fn len(&self) -> usize {
        self.entries.iter().map(Vec::len).sum()
    }

    /// Returns `true` if packets in flight may still look these elements up.
    pub(super) fn may_be_in_use(&self) -> bool {
        IdAllocator::is_quarantined(self.since)
    }

    /// Keeps the elements that a change adds again. Returns `true` if it adds other ones with the same keys.
    pub(super) fn keep(&mut self, elements: &mut Elements) -> bool {
        let mut conflicts = false;
        for added in [&mut elements.first, &mut elements.add] {
            for (there, added) in self.entries.iter_mut().zip(added) {
                if there.is_empty() {
                    continue;
                }
                added.retain(|entry| {
                    let Some(index) = there.iter().position(|(key, _)| *key == entry.0) else {
                        return true;
                    };
                    let is_same = there[index].1 == entry.1;
                    conflicts |= !is_same;
                    if is_same {
                        there.swap_remove(index);
                    }
                    !is_same
                });
            }
        }
        conflicts
    }
}
