//! A branch of a walk as rules see it: what is known of the packet there, and what happens when more is asked.
//!
//! An instruction *asks* ([`Flow::is`], [`Flow::ask`], [`Flow::once`], [`Flow::always`]). Where the answer is not
//! known it gets an [`Open::Split`], which it hands on (`?`): the branch is then split, and **the same instruction is
//! carried out again** in each of its parts, in which the question has an answer. So an instruction asks all that it
//! needs before it changes anything.

use std::sync::Arc;

use super::ct::Tracking;
use super::domain::{Constraint, Domain, ones};
use super::field::Field;
use super::packet::{Direction, Hook, Node};
use super::steps::Action;
use super::trail::Trail;
use super::unknown::{Unknowns, What};
use super::value::{Bit, Test, Value};
use chainwright::xt::Family;

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

/// What was assumed.
#[derive(Debug, Clone)]
struct Assumed {
    narrow: Narrow,
    /// Whether chance has it so, with a probability that is known.
    chance: bool,
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
    unknowns: Unknowns,
    always: Vec<(Arc<str>, bool)>,
    /// Answers to questions of this moment, for the instruction that is carried out.
    once: Vec<bool>,
    asked: usize,
    pub(super) probability: f64,
    assumed: Trail<Assumed>,
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
            unknowns: Unknowns::new(),
            always: Vec::new(),
            once: Vec::new(),
            asked: 0,
            probability: 1.0,
            assumed: Trail::new(),
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
        let value = self
            .unknowns
            .make(What::Field(field), Domain::any(bits), false);
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
        let value = self
            .unknowns
            .make(What::Field(field), Domain::within(bits, ranges), false);
        self.set(field, value);
    }

    /// What a field holds now, of which nothing larger than this is there.
    pub(super) fn limited(&mut self, field: Field, last: u128) -> Value {
        if self.peek(field).is_none() {
            self.limit(field, vec![(0, last)]);
        }
        self.get(field)
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
        self.unknowns.make(What::Made(what.into()), domain, uniform)
    }

    /// The number that a value is, if that is known by now.
    pub(super) fn known(&self, value: &Value) -> Option<u128> {
        self.unknowns.known(value)
    }

    /// The smallest and the largest number that a value may be, as far as that is known.
    pub(super) fn ends_of(&self, value: &Value) -> Option<(u128, u128)> {
        self.unknowns.ends_of(value)
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
        for (unknown, mut mask, value) in wanted {
            if self.unknowns.is_interface_name(unknown) {
                mask = mask_of_name(mask, value);
            }
            let domain = self.unknowns.domain(unknown);
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
        let domain = self.unknowns.domain(unknown);
        let opposite = constraint.not(domain.bits());
        Open::Split(self.unknowns.ways(unknown, vec![constraint, opposite]))
    }

    fn ask_ranges(&mut self, value: &Value, ranges: &[(u128, u128)]) -> Result<bool, Open> {
        if let Some(run) = self.unknowns.run(value) {
            let wanted = Constraint::within(run.of_ranges(ranges));
            let domain = self.unknowns.domain(run.unknown);
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
        let Some(run) = self.unknowns.run(value) else {
            for (number, group) in groups.iter().enumerate() {
                if self.ask_ranges(value, group)? {
                    return Ok(Some(number));
                }
            }
            return Ok(None);
        };
        let domain = self.unknowns.domain(run.unknown);
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
        Err(Open::Split(self.unknowns.ways(run.unknown, possible)))
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
                if !self.unknowns.take(*unknown, constraint) {
                    return false;
                }
            }
            Narrow::Always(words, answer) => self.always.push((words.clone(), *answer)),
            Narrow::Once(_, answer) => self.once.push(*answer),
        }
        if let Some(probability) = way.probability {
            self.probability *= probability;
        }
        self.assumed.push(Assumed {
            narrow: way.narrow.clone(),
            chance: way.probability.is_some(),
        });
        true
    }

    /// What was assumed, in words: first what nothing but its being assumed makes so, then what chance has it.
    pub(super) fn assumptions(&self) -> (Vec<String>, Vec<String>) {
        let (mut assumed, mut chances) = (Vec::new(), Vec::new());
        let mut seen = Vec::new();
        for one in self.assumed.backwards() {
            let words = match &one.narrow {
                Narrow::Unknown(unknown, _) => {
                    if seen.contains(unknown) {
                        continue; // what it is in the end says all
                    }
                    seen.push(*unknown);
                    self.unknowns.described(*unknown)
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
            None => match self.unknowns.what(value.bit(0)) {
                Some(What::Made(words)) => words.to_string(),
                Some(What::Field(of)) if *of == field => "unchanged".to_owned(),
                Some(What::Field(of)) => format!("what {of} was"),
                None => "not wholly known".to_owned(),
            },
        }
    }

    /// What a value is that is not known, in words.
    pub(super) fn origin(&self, value: &Value) -> String {
        let mut words = Vec::new();
        for bit in value.to_bits() {
            let one = match self.unknowns.what(bit) {
                Some(What::Made(made)) => made.to_string(),
                Some(What::Field(field)) => field.to_string(),
                None => continue,
            };
            if !words.contains(&one) {
                words.push(one);
            }
        }
        words.join(" and ")
    }

    /// Gives a field another value, and says so.
    pub(super) fn give(&mut self, field: Field, value: &Value) {
        let value = self.settled(value);
        let words = self.words(field, &value);
        self.does(Action::Set {
            field,
            value: words,
        });
        self.set(field, value);
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

/// The mask of a comparison with an interface's name, where the highest byte is the first letter. A name ends at its first
/// NUL, and the kernel pads it with NULs, so what compares that NUL compares the whole name.
fn mask_of_name(mask: u128, value: u128) -> u128 {
    let bytes = mask.to_be_bytes().into_iter().zip(value.to_be_bytes());
    for (mask_byte, byte) in bytes {
        match (mask_byte, byte) {
            (0xff, 0) => return u128::MAX,
            (0xff, _) => {}
            _ => return mask,
        }
    }
    mask
}
