//! The ranges of an interval set.

use std::collections::BTreeMap;

use super::ElementRef;
use super::connection::Connection;
use super::{CommitError, Element, SetId, Transaction};
use crate::netlink::{Error, MessageError};

/// The ranges of a set of single values (`flags interval`), to check other ranges for overlaps.
///
/// The kernel stores a range as two elements, its first value and the first value after it. A range up to the last
/// value of its type has no second element. Therefore the kernel does not detect that such a range overlaps another one
/// that is added before or after it, and a deletion of such a range deletes any range with the same start. Read the set
/// and check:
///
/// ```
/// use chainwright::nft::{Element, Ranges};
///
/// let existing = Element::interval(&[10, 0, 0, 0], &[11, 0, 0, 0]);
/// let ranges = Ranges::of(&existing);
/// let all = [Element::open_interval(&[0, 0, 0, 0])];
/// assert_eq!(ranges.overlapping(&all), Some(0)); // not to be added
/// let rest = [Element::open_interval(&[10, 0, 0, 0])];
/// assert_eq!(ranges.missing(&rest), Some(0)); // not to be deleted
/// assert_eq!(ranges.missing(&existing), None);
/// ```
///
/// [`Connection::change_ranges`] reads the ranges of a set, checks both and commits. [`Connection::ranges`] only reads
/// them: a transaction that depends on the result should [expect](super::Transaction::expect_generation) the generation
/// in which they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges(BTreeMap<u128, u128>);

/// Error of a change of ranges. Nothing was applied, unless [`CommitError::outcome`] is unknown.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RangesError {
    /// The element to delete at this index begins a range that is not in the set, or that begins inside another range
    /// to delete.
    #[error("the set has no range that starts with element {0} of the elements to delete")]
    Missing(usize),
    /// The element to add at this index begins a range that overlaps another one.
    #[error("the range that starts with element {0} of the elements to add overlaps another range")]
    Overlapping(usize),
    /// Reading the set failed.
    #[error("the ranges of the set were not read: {0}")]
    Unread(Error),
    /// The elements do not fit into messages.
    #[error(transparent)]
    MessageError(#[from] MessageError),
    /// The commit failed. If [`CommitError::generation_moved`], the ruleset was changed concurrently: try again.
    #[error(transparent)]
    Refused(#[from] CommitError),
}

crate::debug_as_message!(RangesError);
crate::cause_from!(RangesError { Error => Unread });

/// Converts a key to a number.
pub(super) fn number(key: &[u8]) -> u128 {
    key.iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Returns the highest key of this length in bytes.
pub(super) const fn highest(length: usize) -> u128 {
    match length {
        0..16 => (1 << (length * 8)) - 1,
        _ => u128::MAX,
    }
}

/// A key, and whether it begins a range.
type Bound<'k> = (&'k [u8], bool);

/// Pairs sorted bounds as ranges: the first and the last value, and the index of the element that begins it.
fn paired<'k>(bounds: &[(Bound<'k>, usize)]) -> impl Iterator<Item = (u128, u128, usize)> {
    let begins = bounds.iter().enumerate();
    begins
        .filter(|(_, ((_, is_start), _))| *is_start)
        .map(|(at, ((from, _), index))| {
            let behind = bounds.get(at + 1).map(|((behind, _), _)| number(behind));
            let last = match behind {
                Some(behind) => behind.saturating_sub(1),
                None => highest(from.len()),
            };
            (number(from), last, *index)
        })
}

/// Returns the sorted bounds of elements; at the same value an end comes before a start.
fn bounds<'k>(keys: impl Iterator<Item = Option<Bound<'k>>>) -> Vec<(Bound<'k>, usize)> {
    let keys = keys.enumerate();
    let mut all: Vec<_> = keys
        .filter_map(|(index, bound)| Some((bound?, index)))
        .collect();
    all.sort_unstable();
    all
}

/// Returns the index of an element that begins a range inside another range of these elements.
fn nested(elements: &[Element<'_>]) -> Option<usize> {
    let bounds = bounds(elements.iter().map(bound));
    let both = bounds.windows(2);
    both.filter_map(|both| match both {
        [((_, true), _), ((_, true), index)] => Some(*index),
        _ => None,
    })
    .next()
}

fn bound<'k>(element: &'k Element<'_>) -> Option<Bound<'k>> {
    let is_end = element
        .flags
        .is_some_and(|flags| flags.contains(super::ElementFlags::INTERVAL_END));
    match &element.key {
        Some(super::expr::Data::Value(key)) => Some((key, !is_end)),
        _ => None,
    }
}

impl Ranges {
    /// Returns the ranges of these elements, as created by [`Element::interval`] and [`Element::open_interval`].
    #[must_use]
    pub fn of(elements: &[Element<'_>]) -> Self {
        let bounds = bounds(elements.iter().map(bound));
        Self(paired(&bounds).map(|(from, to, _)| (from, to)).collect())
    }

    /// Returns the index of an element that begins a range overlapping one of the set without being equal to it; such a
    /// range must not be added.
    #[must_use]
    pub fn overlapping(&self, elements: &[Element<'_>]) -> Option<usize> {
        let bounds = bounds(elements.iter().map(bound));
        let found = paired(&bounds).find(|(from, to, _)| self.overlaps(*from, *to));
        found.map(|(_, _, index)| index)
    }

    /// Returns the index of an element that begins a range not in the set; such a range must not be deleted.
    #[must_use]
    pub fn missing(&self, elements: &[Element<'_>]) -> Option<usize> {
        let bounds = bounds(elements.iter().map(bound));
        let found = paired(&bounds).find(|(from, to, _)| !self.has(*from, *to));
        found.map(|(_, _, index)| index)
    }

    /// Returns `true` if a range overlaps one of the set and is not equal to it.
    #[doc(hidden)]
    pub fn overlaps(&self, from: u128, to: u128) -> bool {
        let last = self.0.range(..=to).next_back();
        last.is_some_and(|(start, end)| *end >= from && (*start, *end) != (from, to))
    }

    /// Returns `true` if this range is in the set.
    #[doc(hidden)]
    pub fn has(&self, from: u128, to: u128) -> bool {
        self.0.get(&from) == Some(&to)
    }
}

impl Ranges {
    /// Returns the ranges of listed elements.
    #[doc(hidden)]
    pub fn of_listed<'e>(elements: impl Iterator<Item = ElementRef<'e>>) -> Self {
        let bounds =
            bounds(elements.map(|each| Some((each.key_bytes()?, !each.is_interval_end()))));
        Self(paired(&bounds).map(|(from, to, _)| (from, to)).collect())
    }

    #[doc(hidden)]
    pub fn extend(&mut self, ranges: impl IntoIterator<Item = (u128, u128)>) {
        self.0.extend(ranges);
    }

    /// Returns the range that contains all of this one.
    #[doc(hidden)]
    pub fn around(&self, from: u128, to: u128) -> Option<(u128, u128)> {
        let (start, end) = self.0.range(..=from).next_back()?;
        (*end >= to).then_some((*start, *end))
    }

    /// Removes the range with this start.
    #[doc(hidden)]
    pub fn remove(&mut self, from: u128) {
        self.0.remove(&from);
    }

    /// Limits the last value of every range to the highest valid value.
    #[doc(hidden)]
    pub fn up_to(mut self, highest: u128) -> Self {
        for to in self.0.values_mut() {
            *to = (*to).min(highest);
        }
        self
    }

    /// Returns the ranges that overlap or touch one of these, and those that touch each other after them.
    #[doc(hidden)]
    pub fn near(&self, ranges: impl Iterator<Item = (u128, u128)>) -> BTreeMap<u128, u128> {
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable();
        // Merged first, so that fewer lookups are needed.
        ranges.dedup_by(|(from, to), (_, end)| {
            let touches = end.saturating_add(1) >= *from;
            if touches {
                *end = (*end).max(*to);
            }
            touches
        });
        let mut all = BTreeMap::new();
        for (from, mut to) in ranges {
            let before = self.0.range(..from).next_back();
            let touching = before.filter(|(_, end)| end.saturating_add(1) >= from);
            if let Some((start, end)) = touching {
                to = to.max(*end);
                all.insert(*start, *end);
            }
            for (start, end) in self.0.range(from..) {
                if *start > to.saturating_add(1) {
                    break;
                }
                to = to.max(*end);
                all.insert(*start, *end);
            }
        }
        all
    }
}

impl Connection {
    /// Reads the ranges of a set of single values.
    ///
    /// # Errors
    /// The errors of a listing; [`Error::Interrupted`] if the set was changed concurrently.
    pub fn ranges(&mut self, set: &SetId<'_>) -> Result<Ranges, Error> {
        let mut listing = self.elements(set.family, set.table.clone(), set.set.clone())?;
        let mut keys: Vec<(Vec<u8>, bool)> = Vec::new();
        while let Some(element) = listing.try_next()? {
            if let Some(key) = element.key_bytes() {
                keys.push((key.to_vec(), !element.is_interval_end()));
            }
        }
        let bounds = bounds(
            keys.iter()
                .map(|(key, is_start)| Some((&key[..], *is_start))),
        );
        Ok(Ranges(
            paired(&bounds).map(|(from, to, _)| (from, to)).collect(),
        ))
    }

    /// Deletes ranges of a set of single values and adds others in one commit, after reading the set to check them: the
    /// kernel does not detect every overlap and every missing range, see [`Ranges`]. The elements must be created by
    /// [`Element::interval`] and [`Element::open_interval`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// # chainwright_testing::Sandbox::new()?.run(|| {
    /// use chainwright::nft::{
    ///     Connection, DataType, Element, Family, RangesError, Set, SetFlags, Table, Transaction,
    /// };
    ///
    /// let mut set = Set::new(Family::IP, "example", "addresses", DataType::IPV4_ADDR, 4);
    /// set.flags = Some(SetFlags::INTERVAL);
    /// let mut tx = Transaction::new();
    /// tx.add(&Table::new(Family::IP, "example"))?.add(&set)?;
    /// let mut nft = Connection::open()?;
    /// nft.commit(&tx)?;
    ///
    /// let set = set.set_id();
    /// nft.change_ranges(&set, &[], &Element::interval(&[10, 0, 0, 0], &[11, 0, 0, 0]))?;
    /// let all = [Element::open_interval(&[0, 0, 0, 0])];
    /// let refused = nft.change_ranges(&set, &[], &all);
    /// assert!(matches!(refused, Err(RangesError::Overlapping(0))));
    /// # Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    /// # })??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RangesError`].
    pub fn change_ranges(
        &mut self,
        set: &SetId<'_>,
        delete: &[Element<'_>],
        add: &[Element<'_>],
    ) -> Result<(), RangesError> {
        let generation = self.stable_generation()?;
        let mut existing = self.ranges(set)?;
        if let Some(index) = nested(delete).or_else(|| existing.missing(delete)) {
            return Err(RangesError::Missing(index));
        }
        for from in Ranges::of(delete).0.keys() {
            existing.0.remove(from);
        }
        if let Some(index) = nested(add).or_else(|| existing.overlapping(add)) {
            return Err(RangesError::Overlapping(index));
        }
        let mut tx = Transaction::new();
        tx.expect_generation(generation)
            .delete_elements(set, delete)?
            .add_elements(set, add)?;
        Ok(self.commit(&tx)?)
    }
}
