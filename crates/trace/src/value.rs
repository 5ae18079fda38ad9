//! Numbers whose bits may be unknown.

use std::sync::Arc;

use super::value_set::ones;

/// Bit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Bit {
    /// Known bit.
    Known(bool),
    /// Bit of an unknown, counted from the lowest, or its inverse.
    Of {
        /// Index of the unknown.
        unknown: u32,
        /// Bit number.
        bit: u8,
        /// Whether it is inverted.
        not: bool,
    },
}

/// Number whose bits may be unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Known number.
    Known {
        /// The number.
        number: u128,
        /// Number of bits.
        bits: u32,
    },
    /// Bits, highest first, at most 128.
    Undetermined(Arc<[Bit]>),
}

impl Bit {
    /// Returns the bit, inverted if `turn` is set.
    pub(super) const fn turned(self, turn: bool) -> Self {
        match self {
            Self::Known(set) => Self::Known(set != turn),
            Self::Of { unknown, bit, not } => Self::Of {
                unknown,
                bit,
                not: not != turn,
            },
        }
    }
}

impl Value {
    pub(super) const fn known(number: u128, bits: u32) -> Self {
        Self::Known { number, bits }
    }

    /// Creates a value from bits, highest first.
    pub(super) fn of_bits(bits: &[Bit]) -> Self {
        let mut number = 0_u128;
        for bit in bits {
            match bit {
                Bit::Known(set) => number = number << 1 | u128::from(*set),
                Bit::Of { .. } => return Self::Undetermined(bits.into()),
            }
        }
        Self::known(number, bits.len() as u32)
    }

    pub(super) fn bits(&self) -> u32 {
        match self {
            Self::Known { bits, .. } => *bits,
            Self::Undetermined(bits) => bits.len() as u32,
        }
    }

    /// Returns the bit at this position from the lowest.
    pub(super) fn bit(&self, at: u32) -> Bit {
        match self {
            Self::Known { number, bits } => Bit::Known(at < *bits && number >> at & 1 != 0),
            Self::Undetermined(bits) => match bits.len().checked_sub(at as usize + 1) {
                Some(index) => bits[index],
                None => Bit::Known(false),
            },
        }
    }

    /// Returns all bits, highest first.
    pub(super) fn to_bits(&self) -> Vec<Bit> {
        (0..self.bits()).rev().map(|at| self.bit(at)).collect()
    }

    /// Applies a mask and an xor.
    pub(super) fn masked(&self, mask: u128, xor: u128) -> Self {
        match self {
            Self::Known { number, bits } => Self::known((number & mask ^ xor) & ones(*bits), *bits),
            Self::Undetermined(bits) => {
                let length = bits.len();
                let changed: Vec<Bit> = bits
                    .iter()
                    .enumerate()
                    .map(|(index, bit)| {
                        let at = length - 1 - index;
                        let turned = xor >> at & 1 != 0;
                        match mask >> at & 1 {
                            0 => Bit::Known(turned),
                            _ => bit.turned(turned),
                        }
                    })
                    .collect();
                Self::of_bits(&changed)
            }
        }
    }

    /// Returns `bits` bits from `low` on.
    pub(super) fn part(&self, low: u32, bits: u32) -> Self {
        match self {
            Self::Known { number, .. } => {
                let moved = if low < 128 { number >> low } else { 0 };
                Self::known(moved & ones(bits), bits)
            }
            Self::Undetermined(_) => {
                let part: Vec<Bit> = (low..low + bits).rev().map(|at| self.bit(at)).collect();
                Self::of_bits(&part)
            }
        }
    }

    /// Replaces the bits from `low` on.
    pub(super) fn with_part(&self, low: u32, part: &Self) -> Self {
        let high = low + part.bits();
        let bit = |at| match at >= low && at < high {
            true => part.bit(at - low),
            false => self.bit(at),
        };
        let bits: Vec<Bit> = (0..self.bits()).rev().map(bit).collect();
        Self::of_bits(&bits)
    }
}

/// Test of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Test<'t> {
    /// Equals this number.
    Is(u128),
    /// The masked bits equal `value`.
    Masked {
        /// The mask.
        mask: u128,
        /// The bits.
        value: u128,
    },
    /// In this range, including both ends.
    Within(u128, u128),
    /// In any of these ranges, including both ends.
    Among(&'t [(u128, u128)]),
}

impl Test<'_> {
    pub(super) fn holds(&self, number: u128) -> bool {
        match *self {
            Self::Is(value) => number == value,
            Self::Masked { mask, value } => number & mask == value & mask,
            Self::Within(low, high) => low <= number && number <= high,
            Self::Among(ranges) => {
                let mut ranges = ranges.iter();
                ranges.any(|(low, high)| *low <= number && number <= *high)
            }
        }
    }
}
