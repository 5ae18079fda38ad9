//! Trees of intervals, each of a start and an end: what is in a new bound's way, and what of a transaction's bounds
//! belongs together.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::element::Clash;
use super::state::{Element, Key, Set};
use super::wire::{Refusal, refuse};

/// What is known of a tree while a transaction is at work.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The start that was named last, of those that are there or were deleted: an end that is there as well may then be
    /// named only if it is the same interval's.
    start: Option<Key>,
    /// What the transaction took out, which stands in the tree until it is committed.
    gone: BTreeSet<Key>,
}

impl Memory {
    /// A bound is named, to be added or deleted.
    pub(super) fn name(&mut self, key: &Key) {
        // The end of nothing, at the lowest key.
        let is_null = key.is_end && key.key.iter().flatten().all(|&byte| byte == 0);
        if !key.is_end || is_null {
            self.start = None;
        }
    }

    /// One that is there is added once more.
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

    /// One that is there is deleted.
    pub(super) fn delete(&mut self, set: &Set, key: &Key) -> Result<(), Refusal> {
        if !key.is_end {
            self.start = Some(key.clone());
            return Ok(());
        }
        let Some(start) = self.start.take() else {
            return Ok(());
        };
        // Directly below it, gone as well.
        let is_its_own = self.gone.range(..key).next_back() == Some(&start)
            && below(set, key).is_none_or(|below| *below < start);
        match is_its_own {
            true => Ok(()),
            false => Err(refuse(libc::ENOENT)),
        }
    }

    /// One is taken out.
    pub(super) fn take_out(&mut self, key: &Key) {
        self.gone.insert(key.clone());
    }
}

/// The bound below another.
fn below<'s>(set: &'s Set, key: &Key) -> Option<&'s Key> {
    let below = set.elements.range(..key).next_back();
    below.map(|(key, _)| key).filter(|key| key.key.is_some())
}

/// What of a tree is in a new bound's way: two starts, or two ends, in a row make no intervals.
///
/// Not seen are intervals that begin and end within one that is there already and whose end is added first.
pub(super) fn clash<'s>(set: &'s Set, memory: &Memory, element: &Element) -> Clash<'s> {
    let new = &element.key;
    let at = |is_end| Key {
        key: new.key.clone(),
        is_end,
    };
    let behind = (Bound::Excluded(at(false)), Bound::Unbounded);
    let start = set.elements.get_key_value(&at(false));
    // What is above is looked for from the nearest on, and not beyond it if that is gone.
    let gone = memory.gone.range(behind.clone()).next();
    let above = set.elements.range(behind).next();
    let above = above.filter(|(above, _)| gone.is_none_or(|gone| above.key <= gone.key));
    let above = start.or(above);
    let end = set.elements.get_key_value(&at(true));
    let below = end.or_else(|| set.elements.range(..at(true)).next_back());
    let below = below.filter(|(key, _)| key.key.is_some());
    for (key, known) in above.iter().chain(&below) {
        if *key == new {
            return Clash::Same(known);
        }
    }
    let is_end = |neighbour: Option<(&Key, _)>| neighbour.map(|(key, _)| key.is_end);
    let overlaps = match new.is_end {
        true => is_end(below) == Some(true) || is_end(above) == Some(true),
        false => is_end(below) == Some(false) && !set.is_anonymous(),
    };
    match overlaps {
        true => Clash::Overlap,
        false => Clash::None,
    }
}
