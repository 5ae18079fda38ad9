//! Conflicts and pairing of bounds in interval trees, in which an interval is a start element and an end element.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::element::Conflict;
use super::state::{Element, Key, Set};
use super::wire::{Refusal, refuse};

/// State of an interval tree during a transaction.
#[derive(Debug, Default)]
pub(super) struct TreeState {
    /// The last start that the transaction used, of those that exist or were deleted: the next existing end must then
    /// belong to the same interval.
    start: Option<Key>,
    /// Bounds that the transaction deleted, which remain in the kernel's tree until the commit.
    gone: BTreeSet<Key>,
}

impl TreeState {
    /// Records a bound that is added or deleted.
    pub(super) fn name(&mut self, key: &Key) {
        // The end without a start at the lowest key.
        let is_null = key.is_end && key.key.iter().flatten().all(|&byte| byte == 0);
        if !key.is_end || is_null {
            self.start = None;
        }
    }

    /// Records the repeated addition of an existing bound.
    pub(super) fn add_again(&mut self, set: &Set, key: &Key) -> Result<(), Refusal> {
        if !key.is_end {
            self.start = Some(key.clone());
            return Ok(());
        }
        match self.start.take() {
            Some(start) if below(set, key) != Some(&start) => Err(refuse(libc::EEXIST)),
            _ => Ok(()),
        }
    }

    /// Checks the deletion of an existing bound.
    pub(super) fn delete(&mut self, set: &Set, key: &Key) -> Result<(), Refusal> {
        if !key.is_end {
            self.start = Some(key.clone());
            return Ok(());
        }
        let Some(start) = self.start.take() else {
            return Ok(());
        };
        // The start must be directly below the end, and deleted too.
        let is_its_own = self.gone.range(..key).next_back() == Some(&start)
            && below(set, key).is_none_or(|below| *below < start);
        match is_its_own {
            true => Ok(()),
            false => Err(refuse(libc::ENOENT)),
        }
    }

    /// Records the removal of a bound.
    pub(super) fn take_out(&mut self, key: &Key) {
        self.gone.insert(key.clone());
    }
}

/// Returns the next bound below a key.
fn below<'s>(set: &'s Set, key: &Key) -> Option<&'s Key> {
    let below = set.elements.range(..key).next_back();
    below.map(|(key, _)| key).filter(|key| key.key.is_some())
}

/// Returns the conflict of a new bound with the tree: two consecutive starts or ends don't form intervals.
///
/// Not detected are intervals inside of an existing one whose end is added first.
pub(super) fn conflict<'s>(
    set: &'s Set,
    tree_state: &TreeState,
    element: &Element,
) -> Conflict<'s> {
    let new = &element.key;
    let at = |is_end| Key {
        key: new.key.clone(),
        is_end,
    };
    let behind = (Bound::Excluded(at(false)), Bound::Unbounded);
    let start = set.elements.get_key_value(&at(false));
    // The search above starts at the nearest bound, and stops if that one was deleted.
    let gone = tree_state.gone.range(behind.clone()).next();
    let above = set.elements.range(behind).next();
    let above = above.filter(|(above, _)| gone.is_none_or(|gone| above.key <= gone.key));
    let above = start.or(above);
    let end = set.elements.get_key_value(&at(true));
    let below = end.or_else(|| set.elements.range(..at(true)).next_back());
    let below = below.filter(|(key, _)| key.key.is_some());
    for (key, known) in above.iter().chain(&below) {
        if *key == new {
            return Conflict::Same(known);
        }
    }
    let is_end = |neighbor: Option<(&Key, _)>| neighbor.map(|(key, _)| key.is_end);
    let overlaps = match new.is_end {
        true => is_end(below) == Some(true) || is_end(above) == Some(true),
        false => is_end(below) == Some(false) && !set.is_anonymous(),
    };
    match overlaps {
        true => Conflict::Overlap,
        false => Conflict::None,
    }
}
