//! Persistent ranges of numbers. Branches share them, so that removing one range from many does not copy all of them.

use std::sync::Arc;

/// Sorted ranges that include both ends and do not touch, as an immutable weight-balanced tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges(Option<Arc<Node>>);

#[derive(Debug)]
struct Node {
    range: (u128, u128),
    /// First and last number of the subtree.
    ends: (u128, u128),
    /// Number of ranges.
    length: usize,
    /// Count of the numbers in all ranges, saturating.
    size: u128,
    left: Ranges,
    right: Ranges,
}

/// Balance parameters: maximum weight ratio of siblings, and ratio of inner to outer subtree that requires a double
/// rotation. These values keep joined trees balanced (Hirai and Yamamoto).
const OUTWEIGHS: usize = 3;
const INNER: usize = 2;

impl Ranges {
    /// Creates a tree from sorted ranges that do not touch.
    pub(super) fn of(ranges: &[(u128, u128)]) -> Self {
        let (left, right) = ranges.split_at(ranges.len() / 2);
        match right.split_first() {
            None => Self(None),
            Some((middle, right)) => Self::node(Self::of(left), *middle, Self::of(right)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |node| node.length)
    }

    /// Returns the count of the numbers in all ranges, saturating.
    pub(super) fn size(&self) -> u128 {
        self.0.as_ref().map_or(0, |node| node.size)
    }

    /// Returns the first and last number.
    pub(super) fn ends(&self) -> Option<(u128, u128)> {
        self.0.as_ref().map(|node| node.ends)
    }

    pub(super) fn contains(&self, number: u128) -> bool {
        let mut at = self;
        while let Some(node) = &at.0 {
            let (low, high) = node.range;
            at = match number {
                below if below < low => &node.left,
                above if above > high => &node.right,
                _ => return true,
            };
        }
        false
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u128, u128)> + '_ {
        let mut waiting: Vec<&Node> = Vec::new();
        let mut at = self;
        std::iter::from_fn(move || {
            while let Some(node) = &at.0 {
                waiting.push(node);
                at = &node.left;
            }
            let node = waiting.pop()?;
            at = &node.right;
            Some(node.range)
        })
    }

    /// Returns the intersection.
    pub(super) fn meet(&self, others: &[(u128, u128)]) -> Self {
        let few = others.len() <= 1 + self.len() / 16;
        if few {
            let parts = others.iter().map(|(low, high)| self.cut(*low, *high));
            return parts.fold(Self(None), |all, part| all.followed_by(&part));
        }
        let (mut left, mut right) = (self.iter().peekable(), others.iter().peekable());
        let mut both = Vec::new();
        while let (Some(&(a, b)), Some(&&(c, d))) = (left.peek(), right.peek()) {
            let (low, high) = (a.max(c), b.min(d));
            if low <= high {
                both.push((low, high));
            }
            if b <= d {
                left.next();
            }
            if d <= b {
                right.next();
            }
        }
        Self::of(&both)
    }

    /// Restricts the ranges to `low..=high`.
    fn cut(&self, low: u128, high: u128) -> Self {
        let Some(node) = &self.0 else {
            return Self(None);
        };
        let (from, to) = node.range;
        if low <= node.ends.0 && node.ends.1 <= high {
            self.clone()
        } else if high < from {
            node.left.cut(low, high)
        } else if low > to {
            node.right.cut(low, high)
        } else {
            let middle = (from.max(low), to.min(high));
            Self::joined(
                &node.left.cut(low, high),
                middle,
                &node.right.cut(low, high),
            )
        }
    }

    /// Appends ranges after these.
    fn followed_by(&self, behind: &Self) -> Self {
        let Some(first) = behind.iter().next() else {
            return self.clone();
        };
        match first.1.checked_add(1) {
            Some(next) => Self::joined(self, first, &behind.cut(next, u128::MAX)),
            None => Self::joined(self, first, &Self(None)),
        }
    }

    /// Joins two trees of any weights with a range between them.
    fn joined(left: &Self, middle: (u128, u128), right: &Self) -> Self {
        match (&left.0, &right.0) {
            (Some(heavy), _) if left.outweighs(right) => {
                let right = Self::joined(&heavy.right, middle, right);
                Self::balanced(heavy.left.clone(), heavy.range, right)
            }
            (_, Some(heavy)) if right.outweighs(left) => {
                let left = Self::joined(left, middle, &heavy.left);
                Self::balanced(left, heavy.range, heavy.right.clone())
            }
            _ => Self::node(left.clone(), middle, right.clone()),
        }
    }

    /// Joins two trees that are slightly out of balance.
    fn balanced(left: Self, middle: (u128, u128), right: Self) -> Self {
        match (&left.0, &right.0) {
            (_, Some(heavy)) if right.outweighs(&left) => {
                let (inner, outer) = (&heavy.left, heavy.right.clone());
                match &inner.0 {
                    Some(top) if inner.weight() >= INNER * outer.weight() => Self::node(
                        Self::node(left, middle, top.left.clone()),
                        top.range,
                        Self::node(top.right.clone(), heavy.range, outer),
                    ),
                    _ => Self::node(Self::node(left, middle, inner.clone()), heavy.range, outer),
                }
            }
            (Some(heavy), _) if left.outweighs(&right) => {
                let (outer, inner) = (heavy.left.clone(), &heavy.right);
                match &inner.0 {
                    Some(top) if inner.weight() >= INNER * outer.weight() => Self::node(
                        Self::node(outer, heavy.range, top.left.clone()),
                        top.range,
                        Self::node(top.right.clone(), middle, right),
                    ),
                    _ => Self::node(outer, heavy.range, Self::node(inner.clone(), middle, right)),
                }
            }
            _ => Self::node(left, middle, right),
        }
    }

    fn node(left: Self, range: (u128, u128), right: Self) -> Self {
        let (low, high) = range;
        let ends = (
            left.ends().map_or(low, |(first, _)| first),
            right.ends().map_or(high, |(_, last)| last),
        );
        let own = (high - low).saturating_add(1);
        Self(Some(Arc::new(Node {
            range,
            ends,
            length: left.len() + 1 + right.len(),
            size: left.size().saturating_add(own).saturating_add(right.size()),
            left,
            right,
        })))
    }

    fn weight(&self) -> usize {
        self.len() + 1
    }

    fn outweighs(&self, other: &Self) -> bool {
        self.weight() > OUTWEIGHS * other.weight()
    }
}

impl PartialEq for Ranges {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Ranges {}

/// Returns the gaps between, before and after sorted ranges that do not touch, up to `last`.
pub(super) fn gaps(
    mut ranges: impl Iterator<Item = (u128, u128)>,
    last: u128,
) -> impl Iterator<Item = (u128, u128)> {
    let mut from = Some(0);
    std::iter::from_fn(move || {
        loop {
            let start = from.filter(|start| *start <= last)?;
            let Some((low, high)) = ranges.next() else {
                from = None;
                return Some((start, last));
            };
            from = high.checked_add(1);
            if start < low {
                return Some((start, low - 1));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::value_set::Constraint;
    use super::*;

    /// Creates normalized ranges from arbitrary numbers.
    fn list(pairs: Vec<(u16, u16)>) -> Vec<(u128, u128)> {
        let ranges = pairs.into_iter().map(|(low, length)| {
            let low = u128::from(low);
            (low, low + u128::from(length % 64))
        });
        match Constraint::within(ranges.collect()) {
            Constraint::Within(ranges) => ranges.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    fn numbers(ranges: impl Iterator<Item = (u128, u128)>) -> BTreeSet<u128> {
        ranges.flat_map(|(low, high)| low..=high).collect()
    }

    /// Checks the balance and the cached values of all subtrees.
    fn check(ranges: &Ranges) {
        let Some(node) = &ranges.0 else {
            return;
        };
        assert!(!node.left.outweighs(&node.right) && !node.right.outweighs(&node.left));
        assert_eq!(ranges.len(), ranges.iter().count());
        assert_eq!(ranges.ends().unwrap().0, ranges.iter().next().unwrap().0);
        assert_eq!(ranges.ends().unwrap().1, ranges.iter().last().unwrap().1);
        let size: u128 = ranges.iter().map(|(low, high)| high - low + 1).sum();
        assert_eq!(ranges.size(), size);
        check(&node.left);
        check(&node.right);
    }

    proptest! {
        /// Repeated intersections with few or many ranges leave the numbers in all of them.
        #[test]
        fn intersections_contain_common_numbers(
            first in prop::collection::vec(any::<(u16, u16)>(), 0..400),
            others in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(any::<(u16, u16)>(), 0..40)),
                0..12,
            ),
        ) {
            let first = list(first);
            let mut ranges = Ranges::of(&first);
            let mut left = numbers(first.into_iter());
            for (turns, other) in others {
                let within = Constraint::Within(list(other).into());
                let within = if turns { within } else { within.not(17) };
                let Constraint::Within(other) = within else {
                    unreachable!("the intersection consists of ranges");
                };
                ranges = ranges.meet(&other);
                left = &left & &numbers(other.iter().copied());
                check(&ranges);
                prop_assert_eq!(&numbers(ranges.iter()), &left);
                for number in (0..1 << 17).step_by(97) {
                    prop_assert_eq!(ranges.contains(number), left.contains(&number));
                }
            }
        }
    }

    /// Ranges can reach the largest number.
    #[test]
    fn the_largest_numbers() {
        const LAST: u128 = u128::MAX;
        let all = Ranges::of(&[(0, LAST)]);
        assert_eq!((all.len(), all.size()), (1, LAST));
        let ends = all.meet(&[(0, 0), (LAST, LAST)]);
        assert_eq!(ends.iter().collect::<Vec<_>>(), [(0, 0), (LAST, LAST)]);
        let last = ends.meet(&[(1, LAST)]);
        assert_eq!(last.iter().collect::<Vec<_>>(), [(LAST, LAST)]);
    }

    /// The tree stays balanced when ranges are removed one by one.
    #[test]
    fn many_ranges_stay_balanced() {
        let mut ranges = Ranges::of(&[(0, u128::from(u32::MAX))]);
        for at in 0..20_000_u128 {
            ranges = ranges.meet(&[(0, at * 8), (at * 8 + 2, u128::from(u32::MAX))]);
        }
        assert_eq!(ranges.len(), 20_001);
        check(&ranges);
    }
}
