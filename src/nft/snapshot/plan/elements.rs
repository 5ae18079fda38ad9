//! Plans the changes of the elements of a set.
//!
//! Elements of an interval tree are compared by interval: its start and its end are added and deleted together, and a
//! bound without the other separately. Remaining elements of a tree can conflict with new ones (`tree.rs`).

use std::collections::BTreeSet;

use hashbrown::{HashMap, HashSet};

use super::tree;
use crate::netlink::{Attribute, Attributes};
use crate::nft::ElementRef;
use crate::nft::element::ElementKey;
use crate::nft::snapshot::SnapshotSet;
use crate::nft::snapshot::compare::Compare;
use crate::nft::snapshot::element_positions::ElementPositions;
use crate::nft::snapshot::elements::is_tree;

/// The number of elements that are searched for one that was next before a change.
const AHEAD: usize = 4;

/// The identity of an element, or of the two of an interval.
pub(super) type Name<'s> = (Option<&'s [u8]>, Option<&'s [u8]>, u32);

/// An element, or the two of an interval.
#[derive(Clone, Copy)]
pub(super) struct Item<'s> {
    pub(super) name: Name<'s>,
    pub(super) first: Attribute<'s>,
    pub(super) second: Option<Attribute<'s>>,
}

impl<'s> Item<'s> {
    pub(super) fn parts(&self) -> impl Iterator<Item = Attribute<'s>> + use<'s> {
        std::iter::once(self.first).chain(self.second)
    }
}

/// The changes of the elements of a set.
#[derive(Default)]
pub(super) struct Elements<'c, 'd> {
    /// Whether all elements are deleted first.
    pub(super) flushes: bool,
    pub(super) deleted: Vec<Attribute<'c>>,
    pub(super) added: Vec<Attribute<'d>>,
    /// Whether the current set has starts without an end, or ends without a start.
    pub(super) has_halves: bool,
}

impl Elements<'_, '_> {
    /// Returns the number of added elements; an interval counts once.
    pub(super) fn added_keys(&self) -> usize {
        let views = self
            .added
            .iter()
            .filter_map(|element| ElementRef::parse(element.payload).ok());
        let (mut starts, mut ends) = (0, 0);
        for view in views {
            match view.is_interval_end() {
                true => ends += 1,
                false => starts += 1,
            }
        }
        // The end below all intervals doesn't count.
        usize::max(starts, (starts + ends) / 2)
    }
}

/// The elements of two sets to compare.
#[derive(Clone, Copy)]
pub(super) enum ElementSelection<'t> {
    /// All.
    All,
    /// All except those that are equal byte for byte: no equal element has to be recreated.
    Others,
    /// Those with one of these keys, with the positions of the desired set. All others are equal.
    Keys(&'t BTreeSet<ElementKey<Box<[u8]>>>, &'t ElementPositions),
}

/// Computes the changes that give a set the elements of another. With `keep`, elements remain that the other lacks;
/// `renewed` returns whether an element must be recreated even if it is the same.
pub(super) fn changes<'c, 'd>(
    compare: Compare,
    current: &SnapshotSet<'c>,
    desired: &SnapshotSet<'d>,
    keep: bool,
    compared: ElementSelection<'_>,
    renewed: impl Fn(&ElementRef<'_>) -> bool,
) -> Elements<'c, 'd> {
    let same = |now: &Item<'_>, wanted: &Item<'_>| {
        let views = || {
            let now = ElementRef::parse(now.first.payload).ok()?;
            Some((now, ElementRef::parse(wanted.first.payload).ok()?))
        };
        match now.first.payload == wanted.first.payload {
            true => views().is_none_or(|(now, _)| !renewed(&now)),
            false => views().is_some_and(|(now, wanted)| {
                compare.element(&now) == compare.element(&wanted) && !renewed(&now)
            }),
        }
    };
    let flags = current.set().flags().unwrap_or_default();
    if is_tree(flags.bits()) {
        // (Rules cannot add to a tree: there is nothing to keep.)
        return tree::changes(current, desired, same);
    }
    let few = match compared {
        ElementSelection::Keys(keys, element_positions) => {
            with_keys(current, desired, keys, element_positions)
        }
        _ => None,
    };
    let (now, wanted) = match (few, compared) {
        (Some(few), _) => few,
        (None, ElementSelection::Others | ElementSelection::Keys(..)) => {
            differing(current, desired)
        }
        _ => (items(current), items(desired)),
    };
    // Usually nothing has changed, and the order is the same.
    let common = now
        .iter()
        .zip(&wanted)
        .take_while(|(now, wanted)| now.name == wanted.name && same(now, wanted))
        .count();
    let (now, wanted) = (&now[common..], &wanted[common..]);
    let mut rest: HashMap<Name<'_>, &Item<'_>> = now.iter().map(|item| (item.name, item)).collect();
    let mut changes = Elements::default();
    for item in wanted {
        let there = rest.remove(&item.name);
        if there.is_some_and(|now| same(now, item)) {
            continue;
        }
        changes
            .deleted
            .extend(there.into_iter().flat_map(Item::parts));
        changes.added.extend(item.parts());
    }
    if !keep {
        let gone = now.iter().filter(|item| rest.contains_key(&item.name));
        changes.deleted.extend(gone.flat_map(Item::parts));
    }
    changes
}

fn items<'s>(set: &SnapshotSet<'s>) -> Vec<Item<'s>> {
    let elements = set.snapshot.listed_elements(set.index);
    elements.map(item).collect()
}

fn item(element: Attribute<'_>) -> Item<'_> {
    let view = ElementRef::parse(element.payload).ok();
    let name = view.map_or((None, None, 0), |view| {
        let flags = view.flags().unwrap_or_default();
        (view.key_bytes(), view.key_end_bytes(), flags.bits())
    });
    Item {
        name,
        first: element,
        second: None,
    }
}

/// Returns the elements of two sets with these keys. `None` if the positions of the current ones are unknown: a set
/// indexes them once one of its elements has changed.
fn with_keys<'c, 'd>(
    current: &SnapshotSet<'c>,
    desired: &SnapshotSet<'d>,
    keys: &BTreeSet<ElementKey<Box<[u8]>>>,
    element_positions: &ElementPositions,
) -> Option<(Vec<Item<'c>>, Vec<Item<'d>>)> {
    let (mut now, mut wanted) = (Vec::new(), Vec::new());
    for key in keys {
        let found = current.element_of(key.borrowed())?;
        now.extend(found.map(item));
        wanted.extend(element_positions.find(desired, key.borrowed()).map(item));
    }
    Some(in_order(now, wanted))
}

/// Sorts elements by name, so that the order of operations is deterministic.
fn in_order<'c, 'd>(
    mut now: Vec<Item<'c>>,
    mut wanted: Vec<Item<'d>>,
) -> (Vec<Item<'c>>, Vec<Item<'d>>) {
    now.sort_by_key(|item| item.name);
    wanted.sort_by_key(|item| item.name);
    (now, wanted)
}

/// Returns the elements of two sets without those that are equal byte for byte: for sets with a million elements this
/// compares mostly complete messages, or the elements of a message in order, and leaves few elements.
fn differing<'c, 'd>(
    current: &SnapshotSet<'c>,
    desired: &SnapshotSet<'d>,
) -> (Vec<Item<'c>>, Vec<Item<'d>>) {
    let mut lists: HashMap<&[u8], Attributes<'c>> = HashMap::new();
    let (mut now, mut wanted) = (Vec::new(), Vec::new());
    for list in current.lists() {
        match list.clone().next() {
            Some(Ok(first)) if !lists.contains_key(first.payload) => {
                _ = lists.insert(first.payload, list);
            }
            // Two messages begin with the same element only in files.
            _ => now.extend(list.map_while(Result::ok)),
        }
    }
    for list in desired.lists() {
        if let Some(Ok(first)) = list.clone().next()
            && let Some(other) = lists.get(first.payload)
            && other.rest() == list.rest()
        {
            lists.remove(first.payload);
            continue;
        }
        // The order of messages and elements depends on earlier changes.
        let mut other = Attributes::new(&[]);
        for element in list.map_while(Result::ok) {
            let is = |other: &Attribute<'_>| other.payload == element.payload;
            let mut ahead = other.clone();
            if let Some(skipped) = ahead
                .by_ref()
                .map_while(Result::ok)
                .take(AHEAD)
                .position(|other| is(&other))
            {
                now.extend(other.map_while(Result::ok).take(skipped));
                other = ahead;
            } else if let Some(mut next) = lists.remove(element.payload) {
                now.extend(other.map_while(Result::ok));
                next.next();
                other = next;
            } else {
                wanted.push(element);
            }
        }
        now.extend(other.map_while(Result::ok));
    }
    now.extend(
        lists
            .into_values()
            .flat_map(|list| list.map_while(Result::ok)),
    );
    let mut rest: HashMap<&[u8], Attribute<'d>> = wanted
        .into_iter()
        .map(|element| (element.payload, element))
        .collect();
    now.retain(|element| rest.remove(element.payload).is_none());
    let now: Vec<_> = now.into_iter().map(item).collect();
    let wanted: Vec<_> = rest.into_values().map(item).collect();
    let gone = without_repeated(&now, &wanted, desired);
    let new = without_repeated(&wanted, &now, current);
    in_order(gone, new)
}

/// Returns the items without those that the other set has, too: a set from a file may name an element twice. Only an
/// item whose name is not among the `others` can be one.
fn without_repeated<'s>(
    items: &[Item<'s>],
    others: &[Item<'_>],
    other_set: &SnapshotSet<'_>,
) -> Vec<Item<'s>> {
    let names: HashSet<Name<'_>> = others.iter().map(|item| item.name).collect();
    let alone = items.iter().filter(|item| !names.contains(&item.name));
    let mut alone: HashSet<&[u8]> = alone.map(|item| item.first.payload).collect();
    let mut repeated = HashSet::new();
    if !alone.is_empty() {
        for element in other_set
            .lists()
            .flat_map(|list| list.map_while(Result::ok))
        {
            repeated.extend(alone.take(element.payload));
        }
    }
    let is_kept = |item: &&Item<'_>| !repeated.contains(item.first.payload);
    items.iter().filter(is_kept).copied().collect()
}
