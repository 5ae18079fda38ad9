//! What differs between the elements of a set and those that it is to have.
//!
//! Elements of a tree of intervals are compared by interval: its start and its end come and go together.

use std::collections::HashMap;

use crate::netlink::Attribute;
use crate::nft::snapshot::SnapshotSet;
use crate::nft::snapshot::compare::Compare;
use crate::nft::snapshot::elements::is_tree;
use crate::nft::{ElementRef, SetFlags};

/// What an element, or the two of an interval, is called.
type Name<'s> = (Option<&'s [u8]>, Option<&'s [u8]>, u32);

/// An element, or the two of an interval.
#[derive(Clone, Copy)]
struct Item<'s> {
    name: Name<'s>,
    first: Attribute<'s>,
    second: Option<Attribute<'s>>,
}

/// What is to be done to the elements of a set.
#[derive(Default)]
pub(super) struct Elements<'c, 'd> {
    pub(super) deleted: Vec<Attribute<'c>>,
    pub(super) added: Vec<Attribute<'d>>,
}

/// What is to be done so that a set has the elements of another. `keep` says that an element stays that
/// the other lacks; `renewed`, that one is to be made anew even if it is the same.
pub(super) fn changes<'c, 'd>(
    compare: Compare,
    current: &SnapshotSet<'c>,
    desired: &SnapshotSet<'d>,
    keep: bool,
    renewed: impl Fn(&ElementRef<'_>) -> bool,
) -> Elements<'c, 'd> {
    let mut changes = Elements::default();
    let now = items(current);
    let wanted = items(desired);
    // Same order, nothing changed: nearly always.
    let mut rest: HashMap<Name<'_>, &Item<'_>> = HashMap::new();
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
    let common = now
        .iter()
        .zip(&wanted)
        .take_while(|(now, wanted)| now.name == wanted.name && same(now, wanted))
        .count();
    let (now, wanted) = (&now[common..], &wanted[common..]);
    rest.reserve(now.len());
    rest.extend(now.iter().map(|item| (item.name, item)));
    let add = |changes: &mut Elements<'c, 'd>, item: &Item<'d>| {
        changes.added.push(item.first);
        changes.added.extend(item.second);
    };
    let mut changed = Vec::new();
    for item in wanted {
        match rest.remove(&item.name) {
            Some(now) if same(now, item) => {}
            Some(now) => {
                changed.push(now.name);
                add(&mut changes, item);
            }
            None => add(&mut changes, item),
        }
    }
    let changed: std::collections::HashSet<_> = changed.into_iter().collect();
    for item in now {
        let gone = rest.contains_key(&item.name) && !keep;
        if gone || changed.contains(&item.name) {
            changes.deleted.push(item.first);
            changes.deleted.extend(item.second);
        }
    }
    changes
}

fn items<'s>(set: &SnapshotSet<'s>) -> Vec<Item<'s>> {
    let flags = set.set().flags().unwrap_or_default();
    if is_tree(flags.bits()) {
        return intervals(set, flags);
    }
    let elements = set.snapshot.listed_elements(set.index);
    elements
        .map(|element| {
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
        })
        .collect()
}

/// The intervals of a tree, from the lowest.
fn intervals<'s>(set: &SnapshotSet<'s>, flags: SetFlags) -> Vec<Item<'s>> {
    let bounds = set.snapshot.bounds(set.index, flags.bits());
    let mut items: Vec<Item<'s>> = Vec::with_capacity(bounds.len() / 2 + 1);
    let mut open = false;
    for bound in bounds {
        let kind = u32::from(bound.is_start);
        match items.last_mut() {
            Some(last) if open && !bound.is_start => {
                last.name.1 = bound.key;
                last.second = Some(bound.element);
            }
            _ => items.push(Item {
                name: (bound.key, None, kind),
                first: bound.element,
                second: None,
            }),
        }
        open = bound.is_start && bound.key.is_some();
    }
    items
}
