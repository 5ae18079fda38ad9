//! What differs between two trees of intervals, and in which order the kernel takes it.
//!
//! An interval is two elements, its bounds. A *half* is one without the other: a start that no end follows, or an end
//! that no start precedes. A *lone end* is an end of those that may belong to a start that has timed out.
//!
//! Somebody may have deleted the start or the end of an interval alone, so that in what is there and in what is desired
//! starts, and ends, may stand in a row. The kernel looks at a new element's neighbours, of those that are not deleted:
//!
//! - Directly above a start it takes no start. Desired ones in a row are added from the highest; those of them below
//!   such a one that are there already are deleted, and come after it.
//! - Directly above or below an end it takes no end. A desired end above another one ends nothing; it stays where it
//!   is there, unless the one that it is above has to come, and is not added.
//!
//! Newer kernels (6.18 with its corrections) remember which start was deleted last, and take no other interval's end
//! then (`ENOENT`), and some of them no new one above all others (`EEXIST`). So intervals go first, which also makes
//! them forget what somebody else's transaction of the same tick left, then ends without a start, then starts without
//! an end.
//!
//! Where elements time out, an end without a start is not looked at, as its start may be one that has timed out, with
//! which the kernel collects it, and, were it not there any more, another one. If it is in the way of what comes, the
//! set is flushed, and filled anew.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::elements::{Elements, Item, Name};
use crate::nft::snapshot::SnapshotSet;
use crate::nft::snapshot::elements::{Bound, order_bounds};

/// What an item is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    CatchAll,
    Interval,
    End,
    Start,
}

impl Item<'_> {
    fn kind(&self) -> Kind {
        match (self.name, self.second) {
            ((None, ..), _) => Kind::CatchAll,
            (_, Some(_)) => Kind::Interval,
            ((_, _, END), None) => Kind::End,
            _ => Kind::Start,
        }
    }
}

/// The last part of the names of ends.
const END: u32 = 0;

/// What is to be done so that a tree has the intervals of another.
pub(super) fn changes<'c, 'd>(
    current: &SnapshotSet<'c>,
    desired: &SnapshotSet<'d>,
    same: impl Fn(&Item<'_>, &Item<'_>) -> bool,
) -> Elements<'c, 'd> {
    let flags = current.set().flags().unwrap_or_default().bits();
    let (now, lone_ends) = current.snapshot.bounds_and_lone_ends(current.index, flags);
    let wanted = desired.snapshot.bounds(desired.index, flags);
    between(&items(now), &lone_ends, &items(wanted), same)
}

/// The intervals of a tree, from the lowest.
fn items(bounds: Vec<Bound<'_>>) -> Vec<Item<'_>> {
    let mut items: Vec<Item<'_>> = Vec::with_capacity(bounds.len() / 2 + 1);
    let mut open = false;
    for bound in bounds {
        let kind = if bound.is_start { END + 1 } else { END };
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

/// What is to be done so that a tree of these intervals, beside which there are some ends, becomes one of those.
fn between<'c, 'd>(
    now: &[Item<'c>],
    lone_ends: &[Bound<'c>],
    wanted: &[Item<'d>],
    same: impl Fn(&Item<'_>, &Item<'_>) -> bool,
) -> Elements<'c, 'd> {
    // Nearly always nothing changed; and above an interval that stays nothing depends on what is below it.
    let below = now.iter().zip(wanted);
    let mut common = below
        .take_while(|(now, wanted)| now.name == wanted.name && same(now, wanted))
        .count();
    while common > 0 && wanted[common - 1].kind() != Kind::Interval && common < wanted.len() {
        common -= 1;
    }
    // (The end below all intervals counts for none.)
    let is_half = |item: &Item<'_>| match item.kind() {
        Kind::Start => true,
        Kind::End => item
            .name
            .0
            .is_some_and(|key| key.iter().any(|&byte| byte != 0)),
        Kind::CatchAll | Kind::Interval => false,
    };
    let has_halves = now.iter().any(is_half);
    let all = wanted;
    let (now, wanted) = (&now[common..], &wanted[common..]);
    let mut deleted: HashMap<Name<'_>, &Item<'_>> =
        now.iter().map(|item| (item.name, item)).collect();
    let mut stays: Vec<bool> = wanted
        .iter()
        .map(|item| {
            let there = deleted.get(&item.name);
            there.is_some_and(|now| same(now, item))
        })
        .collect();
    let kind = |at: usize| wanted[at].kind();
    // Below a start that comes, of those in a row, none stays.
    for at in (1..wanted.len()).rev() {
        let is_in_row = kind(at - 1) == Kind::Start;
        stays[at - 1] &= !is_in_row || stays[at];
    }
    // An end above an end is not added; and none stays above one that comes.
    let mut comes: Vec<bool> = stays.iter().map(|stays| !stays).collect();
    let mut lowest_stays = (common > 0).then_some(true);
    for at in 0..wanted.len() {
        let is_above_end = kind(at) == Kind::End && lowest_stays.is_some();
        match is_above_end {
            true => {
                comes[at] = false;
                stays[at] &= lowest_stays == Some(true);
            }
            false => {
                let has_end = matches!(kind(at), Kind::End | Kind::Interval);
                lowest_stays = has_end.then_some(stays[at]);
            }
        }
    }
    for (item, _) in wanted.iter().zip(&stays).filter(|(_, stays)| **stays) {
        deleted.remove(&item.name);
    }
    let mut gone: Vec<&Item<'c>> = now
        .iter()
        .filter(|item| deleted.contains_key(&item.name))
        .collect();
    gone.sort_by_key(|item| item.kind());
    let flushes = are_in_the_way(lone_ends, wanted, &stays, &comes);
    let mut added: Vec<Bound<'d>> = match flushes {
        // (Ends above ends are none of what times out.)
        true => all.iter().flat_map(bounds).collect(),
        false => {
            let coming = wanted.iter().zip(comes).filter(|(_, comes)| *comes);
            coming.flat_map(|(item, _)| bounds(item)).collect()
        }
    };
    order_bounds(&mut added);
    let gone = gone.into_iter().filter(|_| !flushes);
    Elements {
        flushes,
        deleted: gone.flat_map(Item::parts).collect(),
        added: added.iter().map(|bound| bound.element).collect(),
        has_halves,
    }
}

/// Whether some ends are directly below or above one that comes, which then the kernel does not take, or end what they
/// are not to end.
fn are_in_the_way(
    lone_ends: &[Bound<'_>],
    wanted: &[Item<'_>],
    stays: &[bool],
    comes: &[bool],
) -> bool {
    if lone_ends.is_empty() {
        return false;
    }
    // Of each whether it comes; `None` of ends that are in no interval.
    let mut all = BTreeMap::new();
    all.extend(lone_ends.iter().map(|end| (end.place(), None)));
    for (item, (stays, comes)) in wanted.iter().zip(stays.iter().zip(comes)) {
        if *stays || *comes {
            all.extend(bounds(item).map(|bound| (bound.place(), Some(*comes))));
        }
    }
    let is_end = |place: &(_, bool)| !place.1;
    let all: Vec<_> = all.into_iter().collect();
    let mut is_in_the_way = all.windows(2).any(|pair| match (&pair[0], &pair[1]) {
        ((_, None), (above, Some(true))) => is_end(above),
        ((below, Some(_)), (_, None)) => below.0.is_some() && !is_end(below),
        _ => false,
    });
    // What comes does so from the lowest: no start that comes is above it then, but an end that is there already.
    let there: BTreeSet<_> = lone_ends.iter().map(Bound::place).collect();
    let mut ends = all
        .iter()
        .filter(|(place, comes)| is_end(place) || *comes != Some(true));
    let mut below = ends.next();
    for above in ends {
        let new = below.replace(above);
        is_in_the_way |= there.contains(&above.0)
            && new.is_some_and(|(place, comes)| *comes == Some(true) && !there.contains(place));
    }
    is_in_the_way
}

fn bounds<'s>(item: &Item<'s>) -> impl Iterator<Item = Bound<'s>> + use<'s> {
    let (low, high, kind) = item.name;
    let first = Bound {
        key: low,
        is_start: kind != END,
        element: item.first,
    };
    let second = item.second.map(|element| Bound {
        key: high,
        is_start: false,
        element,
    });
    std::iter::once(first).chain(second)
}
