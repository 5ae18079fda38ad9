//! Plans the changes of an interval tree, and their order.
//!
//! An interval consists of two elements, its bounds. A *half* is one without the other: a start without a following
//! end, or an end without a preceding start. A *lone end* is an end whose start may have timed out.
//!
//! Another program may have deleted only the start or the end of an interval, so that the current and the desired set
//! may have consecutive starts or ends. The kernel checks the neighbors of a new element, ignoring deleted ones:
//!
//! - It refuses a start directly above another start. Desired consecutive starts are added from the highest; those of
//!   them below a new one that already exist are deleted, and added after it.
//! - It refuses an end directly above or below another end. A desired end above another one has no effect. It remains
//!   if it exists, unless the one below it has to be added; it is never added.
//!
//! Newer kernels (6.18 with its corrections) remember the last deleted start, and then refuse another interval's end
//! (`ENOENT`), and some of them a new end above all others (`EEXIST`). Therefore intervals are deleted first, which
//! also clears the state of another transaction in the same tick, then ends without a start, then starts without an
//! end.
//!
//! If elements time out, an end without a start is not compared, because its start may have timed out. The kernel
//! collects it with that start; if the end were deleted, it would collect another one instead. If it conflicts with a
//! new element, the set is flushed and filled again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::elements::{Elements, Item, Name};
use crate::nft::snapshot::SnapshotSet;
use crate::nft::snapshot::elements::{Bound, order_bounds};

/// The kind of an item.
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

/// The last field of the names of ends.
const END: u32 = 0;

/// Computes the changes that give a tree the intervals of another.
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

/// Returns the intervals of a tree, from the lowest.
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

/// Computes the changes from these intervals and lone ends to the desired intervals.
fn between<'c, 'd>(
    now: &[Item<'c>],
    lone_ends: &[Bound<'c>],
    wanted: &[Item<'d>],
    same: impl Fn(&Item<'_>, &Item<'_>) -> bool,
) -> Elements<'c, 'd> {
    // Usually nothing has changed; and nothing above a remaining interval depends on elements below it.
    let below = now.iter().zip(wanted);
    let mut common = below
        .take_while(|(now, wanted)| now.name == wanted.name && same(now, wanted))
        .count();
    while common > 0 && wanted[common - 1].kind() != Kind::Interval && common < wanted.len() {
        common -= 1;
    }
    // (The end below all intervals doesn't count.)
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
    let mut remains: Vec<bool> = wanted
        .iter()
        .map(|item| {
            let there = deleted.get(&item.name);
            there.is_some_and(|now| same(now, item))
        })
        .collect();
    let kind = |at: usize| wanted[at].kind();
    // Of consecutive starts, none below a new one remains.
    for at in (1..wanted.len()).rev() {
        let is_in_row = kind(at - 1) == Kind::Start;
        remains[at - 1] &= !is_in_row || remains[at];
    }
    // An end above another end is not added, and doesn't remain above a new one.
    let mut is_added: Vec<bool> = remains.iter().map(|remains| !remains).collect();
    let mut lowest_stays = (common > 0).then_some(true);
    for at in 0..wanted.len() {
        let is_above_end = kind(at) == Kind::End && lowest_stays.is_some();
        match is_above_end {
            true => {
                is_added[at] = false;
                remains[at] &= lowest_stays == Some(true);
            }
            false => {
                let has_end = matches!(kind(at), Kind::End | Kind::Interval);
                lowest_stays = has_end.then_some(remains[at]);
            }
        }
    }
    for (item, _) in wanted.iter().zip(&remains).filter(|(_, remains)| **remains) {
        deleted.remove(&item.name);
    }
    let mut deleted_items: Vec<&Item<'c>> = now
        .iter()
        .filter(|item| deleted.contains_key(&item.name))
        .collect();
    deleted_items.sort_by_key(|item| item.kind());
    let flushes = have_conflict(lone_ends, wanted, &remains, &is_added);
    let mut added: Vec<Bound<'d>> = match flushes {
        // (Sets with timeouts have no ends above other ends here.)
        true => all.iter().flat_map(bounds).collect(),
        false => {
            let coming = wanted
                .iter()
                .zip(is_added)
                .filter(|(_, is_added)| *is_added);
            coming.flat_map(|(item, _)| bounds(item)).collect()
        }
    };
    order_bounds(&mut added);
    let deleted_items = deleted_items.into_iter().filter(|_| !flushes);
    Elements {
        flushes,
        deleted: deleted_items.flat_map(Item::parts).collect(),
        added: added.iter().map(|bound| bound.element).collect(),
        has_halves,
    }
}

/// Returns `true` if a lone end is directly below or above a new bound, which the kernel then refuses or pairs wrongly.
fn have_conflict(
    lone_ends: &[Bound<'_>],
    wanted: &[Item<'_>],
    remains: &[bool],
    is_added: &[bool],
) -> bool {
    if lone_ends.is_empty() {
        return false;
    }
    // Maps bounds to whether they are new; lone ends to `None`.
    let mut all = BTreeMap::new();
    all.extend(lone_ends.iter().map(|end| (end.sort_key(), None)));
    for (item, (remains, is_added)) in wanted.iter().zip(remains.iter().zip(is_added)) {
        if *remains || *is_added {
            all.extend(bounds(item).map(|bound| (bound.sort_key(), Some(*is_added))));
        }
    }
    let is_end = |sort_key: &(_, bool)| !sort_key.1;
    let all: Vec<_> = all.into_iter().collect();
    let mut is_in_the_way = all.windows(2).any(|pair| match (&pair[0], &pair[1]) {
        ((_, None), (above, Some(true))) => is_end(above),
        ((below, Some(_)), (_, None)) => below.0.is_some() && !is_end(below),
        _ => false,
    });
    // New bounds are added from the lowest: only existing ends can be above, no new starts.
    let there: BTreeSet<_> = lone_ends.iter().map(Bound::sort_key).collect();
    let mut ends = all
        .iter()
        .filter(|(sort_key, is_added)| is_end(sort_key) || *is_added != Some(true));
    let mut below = ends.next();
    for above in ends {
        let new = below.replace(above);
        is_in_the_way |= there.contains(&above.0)
            && new.is_some_and(|(sort_key, is_added)| {
                *is_added == Some(true) && !there.contains(sort_key)
            });
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
