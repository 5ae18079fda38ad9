//! Unknown values: their origin, their possible values and their description.

use std::fmt;
use std::sync::Arc;

use super::field::Field;
use super::path_state::{Alternative, Assumption};
use super::ranges::gaps;
use super::value::{Bit, Value};
use super::value_set::{Constraint, Domain, ones};

/// An unknown number.
#[derive(Debug, Clone)]
struct Unknown {
    what: Origin,
    domain: Domain,
    /// Whether all its values are equally probable.
    uniform: bool,
}

/// Origin of an unknown.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// A field of the original packet.
    Field(Field),
    /// Something else, with its description.
    Made(Arc<str>),
}

/// All unknowns of a branch, by index.
#[derive(Debug, Clone)]
pub(super) struct Unknowns(Vec<Unknown>);

impl Unknowns {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an unknown. If its domain has only one value, that value is returned instead.
    pub(super) fn make(&mut self, what: Origin, domain: Domain, uniform: bool) -> Value {
        let unknown = self.0.len() as u32;
        let bits = domain.bits();
        let (mask, value) = domain.known();
        self.0.push(Unknown {
            what,
            domain,
            uniform,
        });
        let bit = |bit: u32| match mask >> bit & 1 != 0 {
            true => Bit::Known(value >> bit & 1 != 0),
            false => Bit::Of {
                unknown,
                bit: bit as u8,
                not: false,
            },
        };
        // Otherwise all bits are kept together, so that they can be compared as a number.
        let known: Vec<Bit> = (0..bits).rev().map(bit).collect();
        if known.iter().all(|bit| matches!(bit, Bit::Known(_))) {
            return Value::of_bits(&known);
        }
        let open = |bit: u32| Bit::Of {
            unknown,
            bit: bit as u8,
            not: false,
        };
        let open: Vec<Bit> = (0..bits).rev().map(open).collect();
        Value::Undetermined(open.into())
    }

    fn resolve(&self, bit: Bit) -> Bit {
        match bit {
            Bit::Of { unknown, bit, not } => {
                let (mask, value) = self.domain(unknown).known();
                match mask >> bit & 1 != 0 {
                    true => Bit::Known((value >> bit & 1 != 0) != not),
                    false => Bit::Of { unknown, bit, not },
                }
            }
            known => known,
        }
    }

    fn entry(&self, unknown: u32) -> &Unknown {
        // Indexes only come from `make`, and unknowns are never removed.
        &self.0[unknown as usize]
    }

    /// Returns the possible values.
    pub(super) fn domain(&self, unknown: u32) -> &Domain {
        &self.entry(unknown).domain
    }

    /// Returns the origin of a bit if it belongs to an unknown.
    pub(super) fn what(&self, bit: Bit) -> Option<&Origin> {
        match bit {
            Bit::Of { unknown, .. } => Some(&self.entry(unknown).what),
            Bit::Known(_) => None,
        }
    }

    /// Returns `true` if the unknown is an interface name.
    pub(super) fn is_interface_name(&self, unknown: u32) -> bool {
        let what = &self.entry(unknown).what;
        matches!(what, Origin::Field(Field::InName | Field::OutName))
    }

    /// Describes an unknown and its possible values.
    pub(super) fn described(&self, unknown: u32) -> String {
        Described(self.entry(unknown)).to_string()
    }

    /// Applies a constraint; `false` if no value remains.
    pub(super) fn take(&mut self, unknown: u32, constraint: &Constraint) -> bool {
        match self.domain(unknown).with(constraint) {
            Some(domain) => {
                self.0[unknown as usize].domain = domain;
                true
            }
            None => false,
        }
    }

    /// Returns the number of a value if it is known by now.
    pub(super) fn known(&self, value: &Value) -> Option<u128> {
        match value {
            Value::Known { number, .. } => Some(*number),
            Value::Undetermined(bits) => {
                let mut number = 0;
                for bit in bits.iter() {
                    match self.resolve(*bit) {
                        Bit::Known(set) => number = number << 1 | u128::from(set),
                        Bit::Of { .. } => return None,
                    }
                }
                Some(number)
            }
        }
    }

    /// Returns the possible alternatives among mutually exclusive constraints.
    pub(super) fn alternatives(
        &self,
        unknown: u32,
        constraints: Vec<Constraint>,
    ) -> Vec<Alternative> {
        let entry = self.entry(unknown);
        let count = |domain: &Domain| entry.uniform.then(|| domain.count()).flatten();
        let all = count(&entry.domain);
        let alternatives = constraints.into_iter().filter_map(|constraint| {
            let left = entry.domain.with(&constraint)?;
            let probability = all.zip(count(&left)).map(|(all, left)| left / all);
            Some(Alternative {
                assumption: Assumption::Unknown(unknown, constraint),
                probability,
            })
        });
        alternatives.collect()
    }

    /// Returns the bits of a value that belong to an unknown, if they are consecutive bits of one unknown and all
    /// others are known.
    pub(super) fn run(&self, value: &Value) -> Option<Run> {
        let bits = value.to_bits();
        let is_open = |bit: &Bit| matches!(bit, Bit::Of { .. });
        let first = bits.iter().position(is_open)?;
        let last = bits.iter().rposition(is_open)?;
        let Bit::Of {
            unknown, bit: top, ..
        } = bits[first]
        else {
            return None;
        };
        for (index, bit) in bits[first..=last].iter().enumerate() {
            let wanted = Bit::Of {
                unknown,
                bit: top.checked_sub(index as u8)?,
                not: false,
            };
            if *bit != wanted {
                return None;
            }
        }
        let length = (last - first + 1) as u32;
        let low = u32::from(top) + 1 - length;
        let domain = self.domain(unknown);
        let above = ones(domain.bits()) & !ones(u32::from(top) + 1);
        let (mask, known) = domain.known();
        if above & !mask != 0 {
            return None; // the bits above may have any value
        }
        let mut base = 0_u128;
        for (index, bit) in bits.iter().enumerate() {
            if *bit == Bit::Known(true) {
                base |= 1 << (bits.len() - 1 - index);
            }
        }
        Some(Run {
            unknown,
            low,
            length,
            above: known & above,
            base,
            shift: (bits.len() - 1 - last) as u32,
        })
    }

    /// Returns the smallest and largest possible number of a value, if determined.
    pub(super) fn ends_of(&self, value: &Value) -> Option<(u128, u128)> {
        if let Some(number) = self.known(value) {
            return Some((number, number));
        }
        let run = self.run(value)?;
        let (first, last) = self.domain(run.unknown).ranges().ends()?;
        // Only if no bits of the number are cut off.
        (run.low == 0 && last <= ones(run.length))
            .then(|| (run.base | first << run.shift, run.base | last << run.shift))
    }
}

/// Consecutive bits of an unknown within a value.
pub(super) struct Run {
    pub(super) unknown: u32,
    /// Lowest bit, in the unknown.
    low: u32,
    length: u32,
    /// Bits above it in the unknown.
    above: u128,
    /// Remaining bits of the value.
    base: u128,
    /// Position of its lowest bit in the value.
    shift: u32,
}

impl Run {
    /// Returns the values of the unknown for which the value is in these ranges.
    pub(super) fn of_ranges(&self, ranges: &[(u128, u128)]) -> Vec<(u128, u128)> {
        let last = ones(self.length);
        let mut found = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            let Some(distance) = high.checked_sub(self.base) else {
                continue;
            };
            let above = low.saturating_sub(self.base);
            let step = ones(self.shift);
            // Rounds up without overflow.
            let rest = u128::from(above & step != 0);
            let from = shifted_down(above, self.shift).saturating_add(rest);
            let to = shifted_down(distance, self.shift).min(last);
            if from <= to {
                let place = |part: u128| part << self.low;
                found.push((
                    self.above | place(from),
                    self.above | place(to) | ones(self.low),
                ));
            }
        }
        found
    }
}

const fn shifted_down(number: u128, shift: u32) -> u128 {
    if shift < 128 { number >> shift } else { 0 }
}

/// Displays an unknown with its possible values.
struct Described<'u>(&'u Unknown);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unknown { what, domain, .. } = self.0;
        let bits = domain.bits();
        let value = |number: u128| match what {
            Origin::Field(field) => field.value(number, bits),
            Origin::Made(_) => number.to_string(),
        };
        match what {
            Origin::Field(field) => write!(f, "{field}")?,
            Origin::Made(description) => f.write_str(description)?,
        }
        let is = domain.ranges();
        let Some((first, last)) = is.ends() else {
            return Ok(());
        };
        // Print the ranges or their gaps, whichever are fewer.
        let is_not = is.len() - 1 + usize::from(first > 0) + usize::from(last < ones(bits));
        const MAX_PRINTED_RANGES: usize = 4;
        let (verb, number, printed): (_, _, Vec<_>) = match is_not < is.len() {
            true => (
                " is not",
                is_not,
                gaps(is.iter(), ones(bits))
                    .take(MAX_PRINTED_RANGES)
                    .collect(),
            ),
            false => (
                " is",
                is.len(),
                is.iter().take(MAX_PRINTED_RANGES).collect(),
            ),
        };
        f.write_str(verb)?;
        let mut between = " ";
        for (low, high) in &printed {
            f.write_str(between)?;
            between = ", ";
            let size = high - low;
            match size {
                0 => f.write_str(&value(*low))?,
                _ if matches!(
                    what,
                    Origin::Field(Field::Source | Field::Destination | Field::Tuple(_))
                ) && size & size.wrapping_add(1) == 0
                    && low & size == 0 =>
                {
                    write!(f, "{}/{}", value(*low), bits - size.count_ones())?;
                }
                _ if matches!(what, Origin::Field(Field::InName | Field::OutName)) => {
                    let same = (low ^ high).leading_zeros() / 8;
                    let name = super::field::name_of(low & !ones(128 - same * 8));
                    match same {
                        0 => f.write_str("any other name")?,
                        _ => write!(f, "{name}*")?,
                    }
                }
                _ => write!(f, "{}-{}", value(*low), value(*high))?,
            }
        }
        if number > MAX_PRINTED_RANGES {
            write!(f, " or any of {} more", number - MAX_PRINTED_RANGES)?;
        }
        let (mask, bits_known) = domain.known();
        let open = mask & ones(bits);
        if printed.len() == 1 && printed[0] == (0, ones(bits)) && open != 0 {
            write!(f, ", with the bits {:#x} of {open:#x}", bits_known & open)?;
        }
        Ok(())
    }
}
