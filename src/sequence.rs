//! Differences between two sequences of rules.
//!
//! The lengths alone bound the work, so the same sequences give the same list on every machine. The list is the
//! shortest one unless the sequences are long, differ at more than [`MAX_MYERS_EDITS`] places, and repeat the same rules many
//! times.

use std::collections::HashMap;
use std::hash::Hash;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Sequences whose lengths have at most this product are always compared with Myers' algorithm.
const MAX_MYERS_PRODUCT: usize = 4_000_000;
/// Longer sequences are also compared with it if they differ by at most this many deletions and insertions.
const MAX_MYERS_EDITS: usize = 500;
/// The most pairs of equal rules to examine.
const MAX_EQUAL_PAIRS: usize = 4_000_000;

/// Returns the shortest list of changes between two sequences, including the equal parts.
pub(crate) fn changes<T: Eq + Hash + Ord>(old: &[T], new: &[T]) -> Vec<DiffOp> {
    let mut numbers: HashMap<&T, usize> = HashMap::new();
    let mut number = |value| {
        let next = numbers.len();
        *numbers.entry(value).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(&mut number).collect();
    let new: Vec<usize> = new.iter().map(&mut number).collect();
    let kinds = numbers.len();
    let (old, new) = (&old[..], &new[..]);
    if old.len().saturating_mul(new.len()) <= MAX_MYERS_PRODUCT || is_near(old, new) {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let mut counts = vec![(0, 0); kinds];
    old.iter().for_each(|&value| counts[value].0 += 1);
    new.iter().for_each(|&value| counts[value].1 += 1);
    let pairs = counts.iter().map(|(old, new): &(usize, usize)| old * new);
    let all = pairs.fold(0_usize, usize::saturating_add) <= MAX_EQUAL_PAIRS;
    operations(&longest(old, new, kinds, all), old.len(), new.len())
}

/// Returns `true` if no more than [`MAX_MYERS_EDITS`] deletions and insertions separate the sequences: Myers' forward
/// search without recording the path.
fn is_near(old: &[usize], new: &[usize]) -> bool {
    let (length, other) = (old.len() as isize, new.len() as isize);
    if length.abs_diff(other) > MAX_MYERS_EDITS {
        return false;
    }
    let middle = MAX_MYERS_EDITS as isize + 1;
    // How far each diagonal reaches in the old sequence.
    let mut reached = vec![0_isize; 2 * MAX_MYERS_EDITS + 3];
    for steps in 0..=MAX_MYERS_EDITS as isize {
        for diagonal in (-steps..=steps).step_by(2) {
            let at = |diagonal: isize| (middle + diagonal) as usize; // within: |diagonal| <= NEAR + 1
            let down = diagonal == -steps
                || (diagonal != steps && reached[at(diagonal - 1)] < reached[at(diagonal + 1)]);
            let mut x = match down {
                true => reached[at(diagonal + 1)],
                false => reached[at(diagonal - 1)] + 1,
            };
            while x < length
                && x - diagonal >= 0
                && x - diagonal < other
                && old[x as usize] == new[(x - diagonal) as usize]
            {
                x += 1;
            }
            if x >= length && x - diagonal >= other {
                return true;
            }
            reached[at(diagonal)] = x;
        }
    }
    false
}

/// Returns a longest common subsequence, as pairs of places (Hunt and Szymanski). Unless `all` pairs of equal values
/// are examined, it pairs the first occurrence of each value with the first, the second with the second, and so on.
fn longest(old: &[usize], new: &[usize], kinds: usize, all: bool) -> Vec<(usize, usize)> {
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); kinds];
    for (at, &value) in new.iter().enumerate() {
        places[value].push(at);
    }
    let mut next = vec![0; kinds];
    // For each length, the last pair of a common subsequence that ends first in the new sequence; each pair
    // refers to the one before it.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut pairs: Vec<(usize, usize, Option<usize>)> = Vec::new();
    for (at, &value) in old.iter().enumerate() {
        let places = match all {
            true => &places[value][..],
            false => {
                next[value] += 1;
                let one = places[value].get(next[value] - 1..next[value]);
                one.unwrap_or_default()
            }
        };
        for &place in places.iter().rev() {
            let length = ends.partition_point(|(end, _)| *end < place);
            if ends.get(length).is_some_and(|(end, _)| *end == place) {
                continue;
            }
            let before = length.checked_sub(1).map(|shorter| ends[shorter].1);
            pairs.push((at, place, before));
            let end = (place, pairs.len() - 1);
            match ends.get_mut(length) {
                Some(longer) => *longer = end,
                None => ends.push(end),
            }
        }
    }
    let mut common = Vec::with_capacity(ends.len());
    let mut last = ends.last().map(|(_, pair)| *pair);
    while let Some(number) = last {
        let (at, place, before) = pairs[number];
        common.push((at, place));
        last = before;
    }
    common.reverse();
    common
}

/// Returns the list of changes that preserves these pairs.
fn operations(common: &[(usize, usize)], old_len: usize, new_len: usize) -> Vec<DiffOp> {
    let mut operations = Vec::new();
    let (mut old_index, mut new_index) = (0, 0);
    for &(old, new) in common.iter().chain([&(old_len, new_len)]) {
        let (old_gap, new_gap) = (old - old_index, new - new_index);
        match (old_gap, new_gap) {
            (0, 0) => {}
            (old_len, 0) => operations.push(DiffOp::Delete {
                old_index,
                old_len,
                new_index,
            }),
            (0, new_len) => operations.push(DiffOp::Insert {
                old_index,
                new_index,
                new_len,
            }),
            (old_len, new_len) => operations.push(DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            }),
        }
        if (old, new) != (old_len, new_len) {
            match operations.last_mut() {
                Some(DiffOp::Equal { len, .. }) => *len += 1,
                _ => operations.push(DiffOp::Equal {
                    old_index: old,
                    new_index: new,
                    len: 1,
                }),
            }
        }
        (old_index, new_index) = (old + 1, new + 1);
    }
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers.
    struct Random(u64);

    impl Random {
        fn below(&mut self, most: usize) -> usize {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (self.0 >> 33) as usize % most
        }

        fn shuffled(&mut self, length: usize) -> Vec<usize> {
            let mut all: Vec<usize> = (0..length).collect();
            for at in (1..length).rev() {
                all.swap(at, self.below(at + 1));
            }
            all
        }
    }

    /// Counts the equal items; checks that the list turns `old` into `new`.
    fn kept(operations: &[DiffOp], old: &[usize], new: &[usize]) -> usize {
        let (mut old_at, mut new_at, mut kept) = (0, 0, 0);
        for operation in operations {
            let (before, after) = (operation.old_range(), operation.new_range());
            assert_eq!((before.start, after.start), (old_at, new_at));
            (old_at, new_at) = (before.end, after.end);
            if let DiffOp::Equal { .. } = operation {
                assert_eq!(old[before.clone()], new[after]);
                kept += before.len();
            }
        }
        assert_eq!((old_at, new_at), (old.len(), new.len()));
        kept
    }

    fn longest_by_table(old: &[usize], new: &[usize]) -> usize {
        let mut lengths = vec![0; new.len() + 1];
        for value in old {
            let mut before = 0;
            for (at, other) in new.iter().enumerate() {
                let above = lengths[at + 1];
                lengths[at + 1] = match value == other {
                    true => before + 1,
                    false => above.max(lengths[at]),
                };
                before = above;
            }
        }
        lengths[new.len()]
    }

    #[test]
    fn the_longest_common_subsequence_stays() {
        let mut random = Random(1);
        for round in 0..300 {
            let kinds = 1 + random.below(8);
            let mut some = || -> Vec<usize> {
                let length = random.below(30);
                (0..length).map(|_| random.below(kinds)).collect()
            };
            let (old, new) = (some(), some());
            let expected = longest_by_table(&old, &new);
            let common = longest(&old, &new, kinds, true);
            let made = operations(&common, old.len(), new.len());
            assert_eq!(
                kept(&made, &old, &new),
                expected,
                "{round}: {old:?} {new:?}"
            );
            assert_eq!(
                kept(&changes(&old, &new), &old, &new),
                expected,
                "{old:?} {new:?}"
            );
            // A common subsequence is also found without examining all pairs.
            let some = longest(&old, &new, kinds, false);
            kept(&operations(&some, old.len(), new.len()), &old, &new);
            assert!(
                is_near(&old, &new),
                "short sequences should be within the edit limit"
            );
        }
    }

    #[test]
    fn long_sequences_are_compared_with_bounded_work() {
        let mut random = Random(2);
        let sorted: Vec<usize> = (0..50_000).collect();
        // All items in another order.
        let shuffled = random.shuffled(50_000);
        let made = changes(&sorted, &shuffled);
        let longest = kept(&made, &sorted, &shuffled);
        assert!(
            (400..500).contains(&longest),
            "the length should be about twice the square root: {longest}"
        );
        assert_eq!(made, changes(&sorted, &shuffled));
        // The same items except for a few moves: few changes.
        let mut few = sorted.clone();
        for _ in 0..50 {
            let value = few.remove(random.below(few.len()));
            few.insert(random.below(few.len()), value);
        }
        assert!(kept(&changes(&sorted, &few), &sorted, &few) >= 49_950);
        assert!(is_near(&sorted, &few) && !is_near(&sorted, &shuffled));
        // Many repetitions of the same rules: part of the common subsequence is found.
        let many: Vec<usize> = shuffled.iter().map(|value| value % 7).collect();
        let others: Vec<usize> = random
            .shuffled(50_000)
            .iter()
            .map(|value| value % 7)
            .collect();
        let made = changes(&many, &others);
        assert!(kept(&made, &many, &others) > 100);
        assert_eq!(made, changes(&many, &others));
        // Many repetitions with one insertion in front: all are kept.
        let mut more = many.clone();
        more.insert(0, 3);
        assert_eq!(kept(&changes(&many, &more), &many, &more), 50_000);
        // Reversed.
        let reversed: Vec<usize> = sorted.iter().rev().copied().collect();
        assert_eq!(kept(&changes(&sorted, &reversed), &sorted, &reversed), 1);
    }
}
