//! Possible values of unknown numbers.

use std::sync::Arc;

use super::ranges::{Ranges, gaps};

/// Maximum number of values that are enumerated. With more values, a domain may include a few impossible ones.
const MAX_ENUMERATED: u128 = 1024;

/// Constraint on a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Constraint {
    /// In one of these ranges, which include both ends, are sorted and do not touch.
    Within(Arc<[(u128, u128)]>),
    /// The masked bits equal `value`.
    Bits {
        /// The mask.
        mask: u128,
        /// The bits.
        value: u128,
    },
    /// The masked bits differ from `value`.
    NotBits {
        /// The mask.
        mask: u128,
        /// The bits.
        value: u128,
    },
}

/// Returns the largest number with this many bits.
pub(super) const fn ones(bits: u32) -> u128 {
    match 128_u32.checked_sub(bits) {
        Some(shift) if shift < 128 => u128::MAX >> shift,
        Some(_) => 0,
        None => u128::MAX,
    }
}

impl Constraint {
    /// Creates a constraint from ranges in any order.
    pub(super) fn within(mut ranges: Vec<(u128, u128)>) -> Self {
        ranges.sort_unstable();
        let mut joined: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges.into_iter().filter(|(low, high)| low <= high) {
            match joined.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => joined.push((low, high)),
            }
        }
        Self::Within(joined.into())
    }

    /// Creates a constraint on masked bits; a range if the mask covers the upper bits.
    pub(super) fn bits(mask: u128, value: u128, bits: u32) -> Self {
        let below = !mask & ones(bits);
        if below & below.wrapping_add(1) == 0 {
            return Self::Within([(value & mask, value & mask | below)].into());
        }
        Self::Bits { mask, value }
    }

    /// Returns the inverse constraint.
    pub(super) fn not(&self, bits: u32) -> Self {
        match self {
            Self::Within(ranges) => {
                Self::Within(gaps(ranges.iter().copied(), ones(bits)).collect())
            }
            Self::Bits { mask, value } => Self::NotBits {
                mask: *mask,
                value: *value,
            },
            Self::NotBits { mask, value } => Self::Bits {
                mask: *mask,
                value: *value,
            },
        }
    }

    fn holds(&self, number: u128) -> bool {
        match self {
            Self::Within(ranges) => contains(ranges, number),
            Self::Bits { mask, value } => number & mask == value & mask,
            Self::NotBits { mask, value } => number & mask != value & mask,
        }
    }
}

fn contains(ranges: &[(u128, u128)], number: u128) -> bool {
    let behind = ranges.partition_point(|(low, _)| *low <= number);
    behind > 0 && number <= ranges[behind - 1].1
}

/// Set of possible values of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Domain {
    bits: u32,
    /// Ranges whose ends have the known bits.
    ranges: Ranges,
    /// Mask of known bits, and their values.
    mask: u128,
    value: u128,
    /// Excluded values of unknown bits, one entry for each mask.
    excluded: Vec<Excluded>,
}

/// Excluded values under a mask.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excluded {
    mask: u128,
    /// Remaining values.
    left: Ranges,
}

impl Domain {
    /// Creates the domain of all numbers with this many bits.
    pub(super) fn any(bits: u32) -> Self {
        Self::of(bits, &[(0, ones(bits))])
    }

    /// Creates a domain from ranges.
    pub(super) fn within(bits: u32, ranges: Vec<(u128, u128)>) -> Self {
        match Constraint::within(ranges) {
            Constraint::Within(ranges) => Self::of(bits, &ranges),
            _ => Self::any(bits),
        }
    }

    fn of(bits: u32, ranges: &[(u128, u128)]) -> Self {
        let domain = Self {
            bits,
            ranges: Ranges::of(ranges),
            mask: !ones(bits),
            value: 0,
            excluded: Vec::new(),
        };
        domain.clone().tightened(false).unwrap_or(domain)
    }

    pub(super) const fn bits(&self) -> u32 {
        self.bits
    }

    pub(super) const fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// Returns the mask of known bits and their values.
    pub(super) const fn known(&self) -> (u128, u128) {
        (self.mask, self.value)
    }

    /// Returns the number if there is only one.
    #[cfg(test)]
    pub(super) fn only(&self) -> Option<u128> {
        let (low, high) = self.ranges.ends()?;
        (low == high).then_some(low)
    }

    /// Applies a constraint; `None` if no value remains.
    pub(super) fn with(&self, constraint: &Constraint) -> Option<Self> {
        let mut narrowed = self.clone();
        match constraint {
            Constraint::Within(ranges) => {
                let fitting: Vec<_> = ranges.iter().filter_map(|it| self.fitting(*it)).collect();
                narrowed.ranges = self.ranges.meet(&fitting);
            }
            Constraint::Bits { mask, value } => {
                if (self.value ^ value) & self.mask & mask != 0 {
                    return None;
                }
                narrowed.mask |= mask;
                narrowed.value |= value & mask;
            }
            Constraint::NotBits { mask, value } => narrowed.exclude(*mask, value & mask),
        }
        narrowed.tightened(matches!(constraint, Constraint::Bits { .. }))
    }

    /// Shrinks a range so that both ends have the known bits.
    fn fitting(&self, (low, high): (u128, u128)) -> Option<(u128, u128)> {
        let low = next_up(low, self.mask, self.value)?;
        let high = next_down(high, self.mask, self.value)?;
        (low <= high).then_some((low, high))
    }

    fn exclude(&mut self, mask: u128, value: u128) {
        let known = self.excluded.iter().position(|it| it.mask == mask);
        let at = known.unwrap_or_else(|| {
            let left = Ranges::of(&[(0, u128::MAX)]);
            self.excluded.push(Excluded { mask, left });
            self.excluded.len() - 1
        });
        let others: Vec<_> = gaps([(value, value)].into_iter(), u128::MAX).collect();
        let excluded = &mut self.excluded[at];
        excluded.left = excluded.left.meet(&others);
    }

    /// Returns the number of values; `None` if it is not known exactly.
    pub(super) fn count(&self) -> Option<f64> {
        if !self.excluded.is_empty() {
            return None;
        }
        let mask = self.mask & ones(self.bits);
        let up_to = |end: u128| count_up_to(end, mask, self.value, self.bits);
        let mut sum = 0.0;
        for (low, high) in self.ranges.iter() {
            let below = low.checked_sub(1).map_or(0.0, up_to);
            sum += up_to(high) - below;
        }
        Some(sum)
    }

    /// Normalizes the domain. `bits` means that bits became known that the ends of ranges may not have.
    fn tightened(mut self, mut bits: bool) -> Option<Self> {
        let all = ones(self.bits);
        loop {
            if bits {
                let ranges = self.ranges.iter();
                let fitting: Vec<_> = ranges.filter_map(|it| self.fitting(it)).collect();
                self.ranges = Ranges::of(&fitting);
            }
            let (low, high) = self.ranges.ends()?;
            if self.ranges.size() <= MAX_ENUMERATED {
                let plain = self.mask & all == 0 && self.excluded.is_empty();
                return self.enumerated(plain);
            }
            // Common leading bits.
            let same = (low ^ high).leading_zeros();
            let prefix = if same == 0 {
                0
            } else {
                !ones(128 - same.min(128))
            };
            self.mask |= prefix;
            self.value |= low & prefix;
            let before = self.mask;
            let mut kept = Vec::with_capacity(self.excluded.len());
            for excluded in std::mem::take(&mut self.excluded) {
                let Excluded { mask, left } = &excluded;
                let (known, open) = (self.value & mask, mask & !self.mask);
                match (open.count_ones(), left.contains(known)) {
                    (0, true) => {}
                    (0, false) => return None,
                    (1, is_0) => match (is_0, left.contains(known | open)) {
                        (true, true) => {}
                        (false, false) => return None,
                        (_, is_1) => {
                            self.mask |= open;
                            self.value |= if is_1 { open } else { 0 };
                        }
                    },
                    _ => {
                        // Keep the entry unless the known bits already rule out all its excluded values.
                        let may_be = |(low, high): (u128, u128)| {
                            let first = next_up(low, mask & self.mask, known);
                            first.is_some_and(|first| first <= high)
                        };
                        if gaps(left.iter(), u128::MAX).any(may_be) {
                            kept.push(excluded);
                        }
                    }
                }
            }
            self.excluded = kept;
            if self.mask == before {
                return Some(self);
            }
            bits = true;
        }
    }

    /// Enumerates the values of a small domain.
    fn enumerated(mut self, plain: bool) -> Option<Self> {
        if !plain {
            let numbers = self.ranges.iter().flat_map(|(low, high)| low..=high);
            let left = numbers.filter(|number| self.admits(*number));
            let left: Vec<_> = left.map(|number| (number, number)).collect();
            if let Constraint::Within(ranges) = Constraint::within(left) {
                self.ranges = Ranges::of(&ranges);
            }
            self.excluded.clear();
        }
        self.ranges.ends()?;
        // Bits that all values have in common.
        let (mut both, mut any) = (u128::MAX, 0);
        for number in self.ranges.iter().flat_map(|(low, high)| low..=high) {
            both &= number;
            any |= number;
        }
        self.mask = both | !any;
        self.value = both;
        Some(self)
    }

    /// Returns `true` if a number has the known bits and is not excluded.
    fn admits(&self, number: u128) -> bool {
        let differs = |it: &Excluded| it.left.contains(number & it.mask);
        number & self.mask == self.value & self.mask && self.excluded.iter().all(differs)
    }

    /// Returns `true` if the domain contains a number.
    #[cfg(test)]
    fn has(&self, number: u128) -> bool {
        self.ranges.contains(number) && self.admits(number)
    }

    /// Returns `true` if all values satisfy a constraint, `false` if none does; `None` if it depends on the value.
    pub(super) fn decides(&self, constraint: &Constraint) -> Option<bool> {
        if let Some((low, high)) = self.ranges.ends()
            && low == high
        {
            return Some(constraint.holds(low));
        }
        match (self.with(constraint), self.with(&constraint.not(self.bits))) {
            (Some(_), Some(_)) => None,
            (Some(_), None) => Some(true),
            (None, _) => Some(false),
        }
    }
}

/// Returns the first number, from this one on, with these masked bits.
fn next_up(from: u128, mask: u128, value: u128) -> Option<u128> {
    let wanted = value & mask;
    if from & mask == wanted {
        return Some(from);
    }
    // Highest differing bit.
    let differ = 127 - ((from ^ wanted) & mask).leading_zeros();
    let bit = 1_u128 << differ;
    let above = !(bit | (bit - 1));
    if wanted & bit != 0 {
        // The number increases at this bit; all lower bits are minimal.
        return Some(from & above | bit | wanted & (bit - 1));
    }
    // An unmasked zero bit above must become one.
    let open = !mask & !from & above;
    if open == 0 {
        return None;
    }
    let up = open & open.wrapping_neg();
    Some(from & !(up | (up - 1)) | up | wanted & (up - 1))
}

/// Returns the last number, up to this one, with these masked bits.
fn next_down(from: u128, mask: u128, value: u128) -> Option<u128> {
    next_up(!from, mask, !value).map(|number| !number)
}

/// Returns the count of numbers, up to this one, with these masked bits.
fn count_up_to(end: u128, mask: u128, value: u128, bits: u32) -> f64 {
    let free = |below: u32| 2_f64.powi((!mask & ones(below)).count_ones() as i32);
    let mut sum = 0.0;
    for at in (0..bits).rev() {
        let bit = 1_u128 << at;
        if end & bit != 0 {
            // With a zero here, all lower bits are free.
            if mask & bit == 0 || value & bit == 0 {
                sum += free(at);
            }
            if mask & bit != 0 && value & bit == 0 {
                return sum;
            }
        } else if mask & bit != 0 && value & bit != 0 {
            return sum;
        }
    }
    sum + 1.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn constraints() -> impl Strategy<Value = Constraint> {
        let byte = || any::<u8>().prop_map(u128::from);
        prop_oneof![
            prop::collection::vec((byte(), byte()), 0..4).prop_map(Constraint::within),
            (byte(), byte()).prop_map(|(mask, value)| Constraint::bits(mask, value & mask, 8)),
            (byte(), byte())
                .prop_map(|(mask, value)| Constraint::bits(mask, value & mask, 8).not(8)),
        ]
    }

    proptest! {
        /// Small domains are exact.
        #[test]
        fn few_numbers(all in prop::collection::vec(constraints(), 0..5)) {
            let mut domain = Some(Domain::any(8));
            for constraint in &all {
                domain = domain.and_then(|domain| domain.with(constraint));
            }
            let left: Vec<u128> = (0..256)
                .filter(|number| all.iter().all(|constraint| constraint.holds(*number)))
                .collect();
            match domain {
                None => prop_assert!(left.is_empty()),
                Some(domain) => {
                    let actual: Vec<u128> = (0..256).filter(|number| domain.has(*number)).collect();
                    prop_assert_eq!(&actual, &left);
                    prop_assert_eq!(domain.count(), Some(left.len() as f64));
                    prop_assert_eq!(domain.only(), (left.len() == 1).then(|| left[0]));
                }
            }
        }

        /// In large domains, membership of sampled numbers is exact.
        #[test]
        fn many_numbers(
            all in prop::collection::vec(constraints(), 0..4),
            shift in 0_u32..24,
            numbers in prop::collection::vec(any::<u32>(), 32),
        ) {
            let moved = |constraint: &Constraint| match constraint {
                Constraint::Within(ranges) => Constraint::within(
                    ranges
                        .iter()
                        .map(|(low, high)| (low << shift, (high << shift) | ones(shift)))
                        .collect(),
                ),
                Constraint::Bits { mask, value } => {
                    Constraint::bits(mask << shift, value << shift, 32)
                }
                Constraint::NotBits { mask, value } => {
                    Constraint::bits(mask << shift, value << shift, 32).not(32)
                }
            };
            let all: Vec<_> = all.iter().map(moved).collect();
            let mut domain = Some(Domain::any(32));
            for constraint in &all {
                domain = domain.and_then(|domain| domain.with(constraint));
            }
            for number in numbers.into_iter().map(u128::from) {
                let is = all.iter().all(|constraint| constraint.holds(number));
                let actual = domain.as_ref().is_some_and(|domain| domain.has(number));
                prop_assert_eq!(is, actual, "{}", number);
            }
        }

        #[test]
        fn numbers_with_bits(from: u16, mask: u16, value: u16) {
            let (from, mask) = (u128::from(from), u128::from(mask));
            let value = u128::from(value) & mask;
            let fits = |number: &u128| number & mask == value;
            let up = (from..1 << 16).find(fits);
            prop_assert_eq!(next_up(from, mask | !ones(16), value), up);
            let down = (0..=from).rev().find(fits);
            prop_assert_eq!(next_down(from, mask | !ones(16), value), down);
            let count = (0..=from).filter(fits).count();
            prop_assert_eq!(count_up_to(from, mask, value, 16), count as f64);
        }
    }
}
