//! Numbers, as far as they are known: each bit by itself.

use std::sync::Arc;

use super::domain::ones;

/// A bit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bit {
    /// It is known.
    Known(bool),
    /// It is a bit of something that is not known, counted from the lowest; or its opposite.
    Of {
        /// Of which.
        unknown: u32,
        /// Which bit.
        bit: u8,
        /// Whether it is the opposite.
        not: bool,
    },
}

/// A number, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// It is known.
    Known {
        /// The number.
        number: u128,
        /// Of how many bits.
        bits: u32,
    },
    /// Its bits, the highest first, at most 128.
    Open(Arc<[Bit]>),
}

impl Bit {
    /// The same bit, or its opposite.
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

    /// Of these bits, the highest first.
    pub(super) fn of_bits(bits: &[Bit]) -> Self {
        let mut number = 0_u128;
        for bit in bits {
            match bit {
                Bit::Known(set) => number = number << 1 | u128::from(*set),
                Bit::Of { .. } => return Self::Open(bits.into()),
            }
        }
        Self::known(number, bits.len() as u32)
    }

    pub(super) fn bits(&self) -> u32 {
        match self {
            Self::Known { bits, .. } => *bits,
            Self::Open(bits) => bits.len() as u32,
        }
    }

    /// The bit that is this far from the lowest.
    pub(super) fn bit(&self, at: u32) -> Bit {
        match self {
            Self::Known { number, bits } => Bit::Known(at < *bits && number >> at & 1 != 0),
            Self::Open(bits) => match bits.len().checked_sub(at as usize + 1) {
                Some(index) => bits[index],
                None => Bit::Known(false),
            },
        }
    }

    /// Its bits, the highest first.
    pub(super) fn to_bits(&self) -> Vec<Bit> {
        (0..self.bits()).rev().map(|at| self.bit(at)).collect()
    }

    /// The same under a mask, other bits 0, and then with these bits turned over.
    pub(super) fn masked(&self, mask: u128, xor: u128) -> Self {
        match self {
            Self::Known { number, bits } => Self::known((number & mask ^ xor) & ones(*bits), *bits),
            Self::Open(bits) => {
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

    /// The bits from `low` on, as many as said.
    pub(super) fn part(&self, low: u32, bits: u32) -> Self {
        match self {
            Self::Known { number, .. } => {
                let moved = if low < 128 { number >> low } else { 0 };
                Self::known(moved & ones(bits), bits)
            }
            Self::Open(_) => {
                let part: Vec<Bit> = (low..low + bits).rev().map(|at| self.bit(at)).collect();
                Self::of_bits(&part)
            }
        }
    }

    /// The same with other bits in the place of those from `low` on.
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

/// What is asked of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Test<'t> {
    /// Whether it is this number.
    Is(u128),
    /// Whether its bits under a mask are these.
    Masked {
        /// The mask.
        mask: u128,
        /// The bits.
        value: u128,
    },
    /// Whether it is from the first to the last.
    Within(u128, u128),
    /// Whether it is within any of these.
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
