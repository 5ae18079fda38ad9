//! The ranges of a set of ranges.

use std::collections::BTreeMap;

use super::ElementRef;
use super::connection::Connection;
use super::{CommitError, Element, SetId, Transaction};
use crate::netlink::{Error, MessageError};

/// The ranges of a set of single values (`flags interval`), which tell whether others overlap them.
///
/// The kernel holds a range as two elements, its first value and the first value behind it. A range that reaches the last
/// value of its type has no second element, so the kernel does not see that such a range overlaps another one that is added
/// before or after it, and it deletes any range that begins where such a range would. Read the set and ask:
///
/// ```
/// use chainwright::nft::{Element, Ranges};
///
/// let there = Element::interval(&[10, 0, 0, 0], &[11, 0, 0, 0]);
/// let ranges = Ranges::of(&there);
/// let all = [Element::open_interval(&[0, 0, 0, 0])];
/// assert_eq!(ranges.overlapping(&all), Some(0)); // not to be added
/// let rest = [Element::open_interval(&[10, 0, 0, 0])];
/// assert_eq!(ranges.missing(&rest), Some(0)); // not to be deleted
/// assert_eq!(ranges.missing(&there), None);
/// ```
///
/// [`Connection::change_ranges`] reads those of a set, asks both and commits. [`Connection::ranges`] reads them alone: a
/// transaction that depends on them is to [expect](super::Transaction::expect_generation) the generation in which they were
/// read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges(BTreeMap<u128, u128>);

/// Why ranges of a set were not changed. Nothing was applied, unless [`CommitError::outcome`] says that it cannot be known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RangesError {
    /// The range that this one of the elements to be deleted begins is not in the set, or begins inside another one of them.
    #[error("the set has no range that element {0} of those to be deleted begins")]
    Missing(usize),
    /// The range that this one of the elements to be added begins overlaps another one.
    #[error("the range that element {0} of those to be added begins overlaps another one")]
    Overlapping(usize),
    /// The set was not read.
    #[error("the ranges of the set were not read")]
    Unread(#[from] Error),
    /// The elements do not fit into messages.
    #[error(transparent)]
    MessageError(#[from] MessageError),
    /// The commit failed. Others changed the ruleset meanwhile where
    /// [`CommitError::generation_moved`] says so: try again.
    #[error(transparent)]
    Refused(#[from] CommitError),
}

/// A key as a number.
fn number(key: &[u8]) -> u128 {
    key.iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// The highest key of this length in bytes.
const fn highest(length: usize) -> u128 {
    match length {
        0..16 => (1 << (length * 8)) - 1,
        _ => u128::MAX,
    }
}

/// A key, and whether it begins a range.
type Bound<'k> = (&'k [u8], bool);

/// The bounds in their order as ranges: the first and the last value, and which of the bounds begins it.
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

/// The bounds of elements in their order, an end before a start at the same value.
fn bounds<'k>(keys: impl Iterator<Item = Option<Bound<'k>>>) -> Vec<(Bound<'k>, usize)> {
    let keys = keys.enumerate();
    let mut all: Vec<_> = keys
        .filter_map(|(index, bound)| Some((bound?, index)))
        .collect();
    all.sort_unstable();
    all
}

/// Which of these elements begins a range inside of another one of them.
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
    /// Those of these elements, as [`Element::interval`] and [`Element::open_interval`] make them.
    #[must_use]
    pub fn of(elements: &[Element<'_>]) -> Self {
        let bounds = bounds(elements.iter().map(bound));
        Self(paired(&bounds).map(|(from, to, _)| (from, to)).collect())
    }

    /// Returns which of these elements begins a range that overlaps one of those without being the same: such a range is not
    /// to be added.
    #[must_use]
    pub fn overlapping(&self, elements: &[Element<'_>]) -> Option<usize> {
        let bounds = bounds(elements.iter().map(bound));
        let found = paired(&bounds).find(|(from, to, _)| self.overlaps(*from, *to));
        found.map(|(_, _, index)| index)
    }

    /// Returns which of these elements begins a range that is not one of those: such a range is not to be deleted.
    #[must_use]
    pub fn missing(&self, elements: &[Element<'_>]) -> Option<usize> {
        let bounds = bounds(elements.iter().map(bound));
        let found = paired(&bounds).find(|(from, to, _)| !self.has(*from, *to));
        found.map(|(_, _, index)| index)
    }

    /// Whether a range overlaps one of those and is not the same.
    #[doc(hidden)]
    pub fn overlaps(&self, from: u128, to: u128) -> bool {
        let last = self.0.range(..=to).next_back();
        last.is_some_and(|(start, end)| *end >= from && (*start, *end) != (from, to))
    }

    /// Whether this is one of them.
    #[doc(hidden)]
    pub fn has(&self, from: u128, to: u128) -> bool {
        self.0.get(&from) == Some(&to)
    }
}

impl Ranges {
    /// Those of elements that are listed.
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

    /// The one in which all of this range lies.
    #[doc(hidden)]
    pub fn around(&self, from: u128, to: u128) -> Option<(u128, u128)> {
        let (start, end) = self.0.range(..=from).next_back()?;
        (*end >= to).then_some((*start, *end))
    }

    /// Takes the range away that begins here.
    #[doc(hidden)]
    pub fn remove(&mut self, from: u128) {
        self.0.remove(&from);
    }

    /// Takes no value of a range for more than this one, the highest there is.
    #[doc(hidden)]
    pub fn up_to(mut self, highest: u128) -> Self {
        for to in self.0.values_mut() {
            *to = (*to).min(highest);
        }
        self
    }

    /// Those that overlap one of these, or touch it or one another behind it.
    #[doc(hidden)]
    pub fn near(&self, ranges: impl Iterator<Item = (u128, u128)>) -> BTreeMap<u128, u128> {
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable();
        // Joined with one another, so that what is there is looked at for few of them.
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
    /// Those of a listing; [`Error::Interrupted`] if others changed the set meanwhile.
    pub fn ranges(&mut self, set: &SetId<'_>) -> Result<Ranges, Error> {
        let mut listing = self.elements(set.family, set.table.clone(), set.set.clone())?;
        let mut keys: Vec<(Vec<u8>, bool)> = Vec::new();
        while let Some(element) = listing.next()? {
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

    /// Deletes ranges of a set of single values and adds others in one commit, once it has read the set: the kernel does
    /// not see every range that overlaps another one or is not there, see [`Ranges`]. The elements are those that
    /// [`Element::interval`] and [`Element::open_interval`] make.
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
        let generation = self.generation()?;
        let mut there = self.ranges(set)?;
        if let Some(index) = nested(delete).or_else(|| there.missing(delete)) {
            return Err(RangesError::Missing(index));
        }
        for from in Ranges::of(delete).0.keys() {
            there.0.remove(from);
        }
        if let Some(index) = nested(add).or_else(|| there.overlapping(add)) {
            return Err(RangesError::Overlapping(index));
        }
        let mut tx = Transaction::new();
        tx.expect_generation(generation)
            .delete_elements(set, delete)?
            .add_elements(set, add)?;
        Ok(self.commit(&tx)?)
    }
}
