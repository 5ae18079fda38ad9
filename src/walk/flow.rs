//! A branch of a walk as rules see it: what is known of the packet there, and what happens when more is asked.
//!
//! An instruction *asks* ([`Flow::is`], [`Flow::ask`], [`Flow::once`], [`Flow::always`]). Where the answer is not
//! known it gets an [`Open::Split`], which it hands on (`?`): the branch is then split, and **the same instruction is
//! carried out again** in each of its parts, in which the question has an answer. So an instruction asks all that it
//! needs before it changes anything.

use std::fmt;
use std::sync::Arc;

use super::domain::{Constraint, Domain, ones};
use super::field::{Field, TupleField};
use super::packet::{Direction, Hook, Node};
use super::steps::Action;
use crate::xt::Family;

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
                        match *bit {
                            _ if mask >> at & 1 == 0 => Bit::Known(turned),
                            Bit::Known(set) => Bit::Known(set != turned),
                            Bit::Of { unknown, bit, not } => Bit::Of {
                                unknown,
                                bit,
                                not: not != turned,
                            },
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
    fn holds(&self, number: u128) -> bool {
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

/// Why an instruction could not be carried out.
#[derive(Debug)]
pub(super) enum Open {
    /// It depends on what is not known: it is carried out again for each of these.
    Split(Vec<Alternative>),
    /// It cannot be evaluated, for this reason.
    Unknown(String),
}

impl Open {
    /// That something cannot be evaluated.
    pub(super) fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(why.into())
    }
}

/// One way in which something may be.
#[derive(Debug, Clone)]
pub(super) struct Alternative {
    /// What is so then.
    pub(super) narrow: Narrow,
    /// How probable that is, if chance decides.
    pub(super) probability: Option<f64>,
}

/// What is so in a part of a branch.
#[derive(Debug, Clone)]
pub(super) enum Narrow {
    /// Of something that is not known.
    Unknown(u32, Constraint),
    /// A question that has one answer for the whole walk.
    Always(Arc<str>, bool),
    /// A question of this very moment.
    Once(Arc<str>, bool),
}

/// Something that is not known.
#[derive(Debug, Clone)]
struct Unknown {
    what: What,
    domain: Domain,
    /// Whether each of its values is as probable as any other.
    uniform: bool,
}

#[derive(Debug, Clone)]
enum What {
    /// A field of the packet as it came.
    Field(Field),
    /// Something else.
    Made(Arc<str>),
}

/// What was assumed.
#[derive(Debug, Clone)]
struct Assumed {
    narrow: Narrow,
    /// Whether chance has it so, with a probability that is known.
    chance: bool,
    before: Option<Arc<Assumed>>,
}

/// A branch of a walk as its rules see it.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) family: Family,
    /// Where the packet is.
    pub(super) hook: Hook,
    /// What is known of the machine, and which way the packet was said to take.
    pub(super) place: Arc<Place>,
    fields: Vec<(Field, Value)>,
    unknowns: Vec<Unknown>,
    always: Vec<(Arc<str>, bool)>,
    /// Answers to questions of this moment, for the instruction that is carried out.
    once: Vec<bool>,
    asked: usize,
    pub(super) probability: f64,
    assumed: Option<Arc<Assumed>>,
    /// What the rule does that is carried out.
    pub(super) doing: Vec<Action>,
    /// What is not as sure as it looks, of the whole branch.
    pub(super) notes: Vec<Arc<str>>,
    pub(super) tracking: Tracking,
    /// The ends of the packet when connection tracking saw it.
    pub(super) seen: Option<Arc<[Value; 4]>>,
}

/// What the whole walk knows beside the packet.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) node: Node,
    pub(super) direction: Direction,
    /// Whether sets that rules fill may hold other elements by now.
    pub(super) sets_may_differ: bool,
}

/// What connection tracking and translation have done with the packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tracking {
    /// Whether connection tracking has seen it.
    pub(super) seen: bool,
    /// Whether a rule said that it is not to be tracked.
    pub(super) untracked: bool,
    /// Whether its destination's translation is settled.
    pub(super) destination_settled: bool,
    /// Whether its source's translation is settled.
    pub(super) source_settled: bool,
    /// Whether its destination was translated.
    pub(super) destination_translated: bool,
    /// Whether its source was translated.
    pub(super) source_translated: bool,
    /// Whether a rule gave it a destination of this machine.
    pub(super) redirected: bool,
    /// Whether a rule gave it another destination than it came with.
    pub(super) diverted: bool,
    /// Whether it came back over `lo`, as this machine sent it.
    pub(super) looped: bool,
}

/// What a target does with a packet, when that is not the next rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// The next rule.
    Continue,
    /// It passes this base chain.
    Accept,
    /// It is dropped.
    Drop,
    /// It is dropped, and this is answered.
    Reject(String),
    /// A program decides, on this queue or one of those behind it; without one it passes if that is said.
    Queue {
        /// The first queue.
        first: u16,
        /// How many there are.
        queues: u16,
        /// Whether it passes if no program listens.
        bypass: bool,
    },
    /// Something else takes it, and these rules see it no more.
    Stolen(String),
    /// Back to the calling chain.
    Return,
}

impl Flow {
    pub(super) fn new(family: Family, hook: Hook, place: Arc<Place>) -> Self {
        Self {
            family,
            hook,
            place,
            fields: Vec::with_capacity(24),
            unknowns: Vec::new(),
            always: Vec::new(),
            once: Vec::new(),
            asked: 0,
            probability: 1.0,
            assumed: None,
            doing: Vec::new(),
            notes: Vec::new(),
            tracking: Tracking::default(),
            seen: None,
        }
    }

    /// How many bits an address has.
    pub(super) const fn address_bits(&self) -> u32 {
        match self.family {
            Family::Ipv4 => 32,
            Family::Ipv6 => 128,
        }
    }

    /// What a field holds now.
    pub(super) fn get(&mut self, field: Field) -> Value {
        if let Some((_, value)) = self.fields.iter().find(|(known, _)| *known == field) {
            return value.clone();
        }
        let bits = field.bits(self.family);
        let value = self.make(What::Field(field), Domain::any(bits), false);
        self.fields.push((field, value.clone()));
        value
    }

    /// What a field holds now, if that was ever said.
    pub(super) fn peek(&self, field: Field) -> Option<&Value> {
        let found = self.fields.iter().find(|(known, _)| *known == field);
        found.map(|(_, value)| value)
    }

    /// The number that a field holds now, if that is known.
    pub(super) fn number(&mut self, field: Field) -> Option<u128> {
        let value = self.get(field);
        self.known(&value)
    }

    /// Makes a field hold this.
    pub(super) fn set(&mut self, field: Field, value: Value) {
        match self.fields.iter_mut().find(|(known, _)| *known == field) {
            Some((_, held)) => *held = value,
            None => self.fields.push((field, value)),
        }
    }

    /// Makes a field hold a number.
    pub(super) fn set_number(&mut self, field: Field, number: u128) {
        let bits = field.bits(self.family);
        self.set(field, Value::known(number & ones(bits), bits));
    }

    /// Forgets what a field holds: from now on it is something else, that is not known.
    pub(super) fn forget(&mut self, field: Field) {
        self.fields.retain(|(known, _)| *known != field);
    }

    /// Forgets what such fields hold.
    pub(super) fn forget_if(&mut self, which: impl Fn(Field) -> bool) {
        self.fields.retain(|(known, _)| !which(*known));
    }

    /// That a field holds one of these numbers.
    pub(super) fn limit(&mut self, field: Field, ranges: Vec<(u128, u128)>) {
        let bits = field.bits(self.family);
        let value = self.make(What::Field(field), Domain::within(bits, ranges), false);
        self.set(field, value);
    }

    /// A number that is not known and has no field: one of these, each as probable as any other if that is so.
    pub(super) fn fresh(
        &mut self,
        what: impl Into<Arc<str>>,
        bits: u32,
        ranges: Vec<(u128, u128)>,
        uniform: bool,
    ) -> Value {
        let domain = Domain::within(bits, ranges);
        self.make(What::Made(what.into()), domain, uniform)
    }

    fn make(&mut self, what: What, domain: Domain, uniform: bool) -> Value {
        let unknown = self.unknowns.len() as u32;
        let bits = domain.bits();
        let (mask, value) = domain.known();
        self.unknowns.push(Unknown {
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
        // A single value is known; of others all bits are kept together, so that they can be compared as numbers.
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
        Value::Open(open.into())
    }

    fn resolve(&self, bit: Bit) -> Bit {
        match bit {
            Bit::Of { unknown, bit, not } => {
                let (mask, value) = self.unknowns[unknown as usize].domain.known();
                match mask >> bit & 1 != 0 {
                    true => Bit::Known((value >> bit & 1 != 0) != not),
                    false => Bit::Of { unknown, bit, not },
                }
            }
            known => known,
        }
    }

    /// The number that a value is, if that is known by now.
    pub(super) fn known(&self, value: &Value) -> Option<u128> {
        match value {
            Value::Known { number, .. } => Some(*number),
            Value::Open(bits) => {
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

    /// The same value, with the number in its place if that is known by now.
    pub(super) fn settled(&self, value: &Value) -> Value {
        match (value, self.known(value)) {
            (Value::Open(_), Some(number)) => Value::known(number, value.bits()),
            _ => value.clone(),
        }
    }

    /// Whether a field's value is as said.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn is(&mut self, field: Field, test: Test<'_>) -> Result<bool, Open> {
        let value = self.get(field);
        self.ask(&value, test)
    }

    /// Whether a value is as said.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn ask(&mut self, value: &Value, test: Test<'_>) -> Result<bool, Open> {
        if let Some(number) = self.known(value) {
            return Ok(test.holds(number));
        }
        let length = value.bits();
        match test {
            Test::Is(number) => {
                if number & !ones(length) != 0 {
                    return Ok(false);
                }
                self.ask_bits(value, ones(length), number)
            }
            Test::Masked { mask, value: bits } => self.ask_bits(value, mask, bits),
            Test::Within(low, high) => self.ask_ranges(value, &[(low, high)]),
            Test::Among(ranges) => self.ask_ranges(value, ranges),
        }
    }

    fn ask_bits(&mut self, value: &Value, mask: u128, bits: u128) -> Result<bool, Open> {
        let length = value.bits();
        let wanted = (0..length)
            .rev()
            .filter(|at| mask >> at & 1 != 0)
            .map(|at| (value.bit(at), bits >> at & 1 != 0));
        self.ask_each(wanted)
    }

    /// Whether each of these bits is as said.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn ask_each(
        &mut self,
        bits: impl Iterator<Item = (Bit, bool)>,
    ) -> Result<bool, Open> {
        let mut wanted: Vec<(u32, u128, u128)> = Vec::new();
        for (bit, set) in bits {
            match bit {
                Bit::Known(is) if is != set => return Ok(false),
                Bit::Known(_) => {}
                Bit::Of { unknown, bit, not } => {
                    let (mask, value) = (1_u128 << bit, u128::from(set != not) << bit);
                    match wanted.iter_mut().find(|(other, ..)| *other == unknown) {
                        Some((_, known, is)) => {
                            if *known & mask != 0 && (*is ^ value) & mask != 0 {
                                return Ok(false);
                            }
                            *known |= mask;
                            *is |= value;
                        }
                        None => wanted.push((unknown, mask, value)),
                    }
                }
            }
        }
        let mut first = None;
        for (unknown, mask, value) in wanted {
            let domain = &self.unknowns[unknown as usize].domain;
            let constraint = Constraint::bits(mask, value, domain.bits());
            match domain.decides(&constraint) {
                Some(false) => return Ok(false),
                Some(true) => {}
                None => {
                    first.get_or_insert((unknown, constraint));
                }
            }
        }
        match first {
            None => Ok(true),
            Some((unknown, constraint)) => Err(self.split(unknown, constraint)),
        }
    }

    /// Both ways in which something that is not known can be.
    fn split(&self, unknown: u32, constraint: Constraint) -> Open {
        let domain = &self.unknowns[unknown as usize].domain;
        let opposite = constraint.not(domain.bits());
        Open::Split(self.ways(unknown, vec![constraint, opposite]))
    }

    /// Ways in which something that is not known can be: each is possible, and no two are at once.
    fn ways(&self, unknown: u32, constraints: Vec<Constraint>) -> Vec<Alternative> {
        let held = &self.unknowns[unknown as usize];
        let all = held.domain.count();
        let ways = constraints.into_iter().filter_map(|constraint| {
            let left = held.domain.with(&constraint)?;
            let probability = match (held.uniform, all, left.count()) {
                (true, Some(all), Some(left)) => Some(left / all),
                _ => None,
            };
            Some(Alternative {
                narrow: Narrow::Unknown(unknown, constraint),
                probability,
            })
        });
        ways.collect()
    }

    fn ask_ranges(&mut self, value: &Value, ranges: &[(u128, u128)]) -> Result<bool, Open> {
        if let Some(run) = self.run(value) {
            let wanted = Constraint::within(run.of_ranges(ranges));
            let domain = &self.unknowns[run.unknown as usize].domain;
            return match domain.decides(&wanted) {
                Some(decided) => Ok(decided),
                None => Err(self.split(run.unknown, wanted)),
            };
        }
        // Blocks of numbers that begin with the same bits.
        for (low, high) in ranges {
            let (mut from, end) = (*low, (*high).min(ones(value.bits())));
            while from <= end {
                let mut size = from.trailing_zeros().min(value.bits());
                while size > 0 && from.checked_add(ones(size)).is_none_or(|last| last > end) {
                    size -= 1;
                }
                if self.ask_bits(value, ones(value.bits()) & !ones(size), from)? {
                    return Ok(true);
                }
                match from
                    .checked_add(ones(size))
                    .and_then(|last| last.checked_add(1))
                {
                    Some(next) => from = next,
                    None => break,
                }
            }
        }
        Ok(false)
    }

    /// Which of several groups of numbers a value is in, if in any: the branch splits into as many.
    ///
    /// # Errors
    /// The branch splits. `Ok(None)` inside is none of them.
    pub(super) fn ask_which(
        &mut self,
        value: &Value,
        groups: &[Vec<(u128, u128)>],
    ) -> Result<Option<usize>, Open> {
        if let Some(number) = self.known(value) {
            let is = |group: &Vec<_>| Test::Among(group).holds(number);
            return Ok(groups.iter().position(is));
        }
        let Some(run) = self.run(value) else {
            for (number, group) in groups.iter().enumerate() {
                if self.ask_ranges(value, group)? {
                    return Ok(Some(number));
                }
            }
            return Ok(None);
        };
        let domain = &self.unknowns[run.unknown as usize].domain;
        let mut possible = Vec::new();
        let mut all = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            let wanted = Constraint::within(run.of_ranges(group));
            match domain.decides(&wanted) {
                Some(true) => return Ok(Some(number)),
                Some(false) => {}
                None => {
                    if let Constraint::Within(ranges) = &wanted {
                        all.extend_from_slice(ranges);
                    }
                    possible.push(wanted);
                }
            }
        }
        if possible.is_empty() {
            return Ok(None);
        }
        possible.push(Constraint::within(all).not(domain.bits()));
        Err(Open::Split(self.ways(run.unknown, possible)))
    }

    /// The bits of a value that are bits of one unknown number, all the others being known, if they are one run.
    fn run(&self, value: &Value) -> Option<Run> {
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
        let domain = &self.unknowns[unknown as usize].domain;
        let above = ones(domain.bits()) & !ones(u32::from(top) + 1);
        let (mask, known) = domain.known();
        if above & !mask != 0 {
            return None; // what stands above them may be anything
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

    /// A question of this very moment, that chance or something unknown decides: with a probability if that is known.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn once(
        &mut self,
        words: impl Into<Arc<str>>,
        probability: Option<f64>,
    ) -> Result<bool, Open> {
        match probability {
            Some(all) if all >= 1.0 => return Ok(true),
            Some(none) if none <= 0.0 => return Ok(false),
            _ => {}
        }
        let number = self.asked;
        self.asked += 1;
        if let Some(answer) = self.once.get(number) {
            return Ok(*answer);
        }
        let words = words.into();
        Err(Open::Split(vec![
            Alternative {
                narrow: Narrow::Once(words.clone(), true),
                probability,
            },
            Alternative {
                narrow: Narrow::Once(words, false),
                probability: probability.map(|probability| 1.0 - probability),
            },
        ]))
    }

    /// A question that has the same answer whenever it is asked, told by its words alone.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn always(&mut self, words: impl Into<Arc<str>>) -> Result<bool, Open> {
        let words = words.into();
        if let Some((_, answer)) = self.always.iter().find(|(known, _)| *known == words) {
            return Ok(*answer);
        }
        let way = |answer| Alternative {
            narrow: Narrow::Always(words.clone(), answer),
            probability: None,
        };
        Err(Open::Split(vec![way(true), way(false)]))
    }

    /// That a question is answered so from now on, because a rule has made it so.
    pub(super) fn remember(&mut self, words: impl Into<Arc<str>>, answer: bool) {
        let words = words.into();
        match self.always.iter_mut().find(|(known, _)| *known == words) {
            Some((_, held)) => *held = answer,
            None => self.always.push((words, answer)),
        }
    }

    /// That the instruction begins, or begins anew.
    pub(super) fn begin(&mut self) {
        self.asked = 0;
    }

    /// That the instruction was carried out.
    pub(super) fn end(&mut self) {
        self.once.clear();
    }

    /// Makes it the part of the branch in which this is so; `false` if there is none.
    pub(super) fn take(&mut self, way: &Alternative) -> bool {
        match &way.narrow {
            Narrow::Unknown(unknown, constraint) => {
                let held = &mut self.unknowns[*unknown as usize];
                match held.domain.with(constraint) {
                    Some(domain) => held.domain = domain,
                    None => return false,
                }
            }
            Narrow::Always(words, answer) => self.always.push((words.clone(), *answer)),
            Narrow::Once(_, answer) => self.once.push(*answer),
        }
        if let Some(probability) = way.probability {
            self.probability *= probability;
        }
        self.assumed = Some(Arc::new(Assumed {
            narrow: way.narrow.clone(),
            chance: way.probability.is_some(),
            before: self.assumed.take(),
        }));
        true
    }

    /// What was assumed, in words: first what nothing but its being assumed makes so, then what chance has it.
    pub(super) fn assumptions(&self) -> (Vec<String>, Vec<String>) {
        let (mut assumed, mut chances) = (Vec::new(), Vec::new());
        let mut seen = Vec::new();
        let mut at = self.assumed.as_ref();
        while let Some(one) = at {
            at = one.before.as_ref();
            let words = match &one.narrow {
                Narrow::Unknown(unknown, _) => {
                    if seen.contains(unknown) {
                        continue; // what it is in the end says all
                    }
                    seen.push(*unknown);
                    let held = &self.unknowns[*unknown as usize];
                    Described(held).to_string()
                }
                Narrow::Always(words, true) | Narrow::Once(words, true) => words.to_string(),
                Narrow::Always(words, false) | Narrow::Once(words, false) => {
                    format!("not: {words}")
                }
            };
            match one.chance {
                true => chances.push(words),
                false => assumed.push(words),
            }
        }
        assumed.reverse();
        chances.reverse();
        (assumed, chances)
    }

    /// A value in words, as one of this field.
    pub(super) fn words(&self, field: Field, value: &Value) -> String {
        match self.known(value) {
            Some(number) => field.value(number, value.bits()),
            None => match value.bit(0) {
                Bit::Of { unknown, .. } => match &self.unknowns[unknown as usize].what {
                    What::Made(words) => words.to_string(),
                    What::Field(of) if *of == field => "unchanged".to_owned(),
                    What::Field(of) => format!("what {of} was"),
                },
                Bit::Known(_) => "not wholly known".to_owned(),
            },
        }
    }

    /// Notes what is not as sure as it looks.
    pub(super) fn note(&mut self, words: impl Into<Arc<str>>) {
        let words = words.into();
        if !self.notes.contains(&words) {
            self.notes.push(words);
        }
    }

    /// That the rule does this.
    pub(super) fn does(&mut self, action: Action) {
        self.doing.push(action);
    }
}

/// A run of bits of an unknown number within a value.
struct Run {
    unknown: u32,
    /// Its lowest bit, in the unknown number.
    low: u32,
    length: u32,
    /// What stands above it there.
    above: u128,
    /// The rest of the value.
    base: u128,
    /// How far above the value's lowest bit it ends.
    shift: u32,
}

impl Run {
    /// The unknown numbers for which the value is in these ranges.
    fn of_ranges(&self, ranges: &[(u128, u128)]) -> Vec<(u128, u128)> {
        let last = ones(self.length);
        let mut found = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            let Some(room) = high.checked_sub(self.base) else {
                continue;
            };
            let above = low.saturating_sub(self.base);
            let step = ones(self.shift);
            // Rounded up without an overflow.
            let rest = u128::from(above & step != 0);
            let from = shifted_down(above, self.shift).saturating_add(rest);
            let to = shifted_down(room, self.shift).min(last);
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

/// Something that is not known, with what is known of it.
struct Described<'u>(&'u Unknown);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unknown { what, domain, .. } = self.0;
        let bits = domain.bits();
        let value = |number: u128| match what {
            What::Field(field) => field.value(number, bits),
            What::Made(_) => number.to_string(),
        };
        match what {
            What::Field(field) => write!(f, "{field}")?,
            What::Made(words) => f.write_str(words)?,
        }
        let (is, within) = (domain.ranges(), Constraint::Within(domain.ranges().into()));
        let Constraint::Within(is_not) = within.not(bits) else {
            return Ok(());
        };
        let (verb, told) = match is_not.len() < is.len() {
            true => (" is not", &*is_not),
            false => (" is", is),
        };
        f.write_str(verb)?;
        const SHOWN: usize = 4;
        let mut between = " ";
        for (low, high) in told.iter().take(SHOWN) {
            f.write_str(between)?;
            between = ", ";
            let size = high - low;
            match size {
                0 => f.write_str(&value(*low))?,
                _ if matches!(
                    what,
                    What::Field(Field::Source | Field::Destination | Field::Tuple(_))
                ) && size & size.wrapping_add(1) == 0
                    && low & size == 0 =>
                {
                    write!(f, "{}/{}", value(*low), bits - size.count_ones())?;
                }
                _ if matches!(what, What::Field(Field::InName | Field::OutName)) => {
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
        if told.len() > SHOWN {
            write!(f, " or any of {} more", told.len() - SHOWN)?;
        }
        let (mask, bits_known) = domain.known();
        let open = mask & ones(bits);
        if told.len() == 1 && told[0] == (0, ones(bits)) && open != 0 {
            write!(f, ", with the bits {:#x} of {open:#x}", bits_known & open)?;
        }
        Ok(())
    }
}

/// The fields that a connection's direction has: source, destination, and their ports.
pub(super) const ENDS: [Field; 4] = [
    Field::Source,
    Field::Destination,
    Field::SourcePort,
    Field::DestinationPort,
];

/// The same of the first packet's tuple.
pub(super) const ORIGINAL: [Field; 4] = [
    Field::Tuple(TupleField::OriginalSource),
    Field::Tuple(TupleField::OriginalDestination),
    Field::Tuple(TupleField::OriginalSourcePort),
    Field::Tuple(TupleField::OriginalDestinationPort),
];

/// The same of the replies' tuple, in the order in which they answer [`ENDS`]: its destination first.
pub(super) const REPLY: [Field; 4] = [
    Field::Tuple(TupleField::ReplyDestination),
    Field::Tuple(TupleField::ReplySource),
    Field::Tuple(TupleField::ReplyDestinationPort),
    Field::Tuple(TupleField::ReplySourcePort),
];
