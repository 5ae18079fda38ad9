//! Packet state in one branch of a trace, as rules see it.
//!
//! Expressions *query* it ([`PathState::is`], [`PathState::test_value`], [`PathState::once`], [`PathState::always`]).
//! If the result is unknown, the query returns [`Undetermined::Split`], which the expression propagates (`?`). The
//! branch then splits, and **the same expression is evaluated again** in each part, where the query has a result. So an
//! expression must make all its queries before it changes anything.

use std::sync::Arc;

use super::ct::Tracking;
use super::field::Field;
use super::packet::{Direction, Hook, Node};
use super::persistent_list::PersistentList;
use super::steps::Action;
use super::symbolic::{Origin, Unknowns};
use super::value::{Bit, Test, Value};
use super::value_set::{Constraint, Domain, ones};
use chainwright::xt::Family;

/// Reason why an expression could not be evaluated.
#[derive(Debug)]
pub(super) enum Undetermined {
    /// The result depends on something unknown. The expression is evaluated again for each alternative.
    Split(Vec<Alternative>),
    /// Evaluation is not possible, for this reason.
    Unknown(String),
}

impl Undetermined {
    /// Creates an error for something that cannot be evaluated.
    pub(super) fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(why.into())
    }
}

/// One alternative of a split.
#[derive(Debug, Clone)]
pub(super) struct Alternative {
    /// Assumption of this alternative.
    pub(super) assumption: Assumption,
    /// Probability, if it is random with known odds.
    pub(super) probability: Option<f64>,
}

/// Assumption of a part of a branch.
#[derive(Debug, Clone)]
pub(super) enum Assumption {
    /// Constraint on an unknown.
    Unknown(u32, Constraint),
    /// Result of a query that has one result for the whole trace.
    Always(Arc<str>, bool),
    /// Result of a query about this moment.
    Once(Arc<str>, bool),
}

/// Assumption that a branch made.
#[derive(Debug, Clone)]
struct Assumed {
    assumption: Assumption,
    /// Whether it is random with a known probability.
    chance: bool,
}

/// Packet state in a branch.
#[derive(Debug, Clone)]
pub(super) struct PathState {
    pub(super) family: Family,
    /// Current hook.
    pub(super) hook: Hook,
    /// Data about the machine, and the direction of the packet.
    pub(super) context: Arc<TraceContext>,
    fields: Vec<(Field, Value)>,
    unknowns: Unknowns,
    always: Vec<(Arc<str>, bool)>,
    /// Results of queries about this moment, for the current expression.
    once: Vec<bool>,
    result_index: usize,
    pub(super) probability: f64,
    assumed: PersistentList<Assumed>,
    /// Actions of the current rule.
    pub(super) current_actions: Vec<Action>,
    /// Reservations about the whole branch.
    pub(super) notes: Vec<Arc<str>>,
    pub(super) tracking: Tracking,
    /// Addresses and ports of the packet when connection tracking saw it.
    pub(super) seen: Option<Arc<[Value; 4]>>,
}

/// Data for the whole trace, apart from the packet.
#[derive(Debug)]
pub(super) struct TraceContext {
    pub(super) node: Node,
    pub(super) direction: Direction,
    /// Whether sets that rules update may have changed since the snapshot.
    pub(super) sets_may_differ: bool,
}

/// Effect of a target or statement on the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Continues with the next rule.
    Continue,
    /// Accepts the packet in this base chain.
    Accept,
    /// Drops the packet.
    Drop,
    /// Drops the packet and sends this reply.
    Reject(String),
    /// Passes the packet to a program on one of these queues.
    Queue {
        /// The first queue.
        first: u16,
        /// Number of queues.
        queues: u16,
        /// Whether the packet continues if no program listens.
        bypass: bool,
    },
    /// Something else takes the packet; later rules do not see it.
    Stolen(String),
    /// Returns to the calling chain.
    Return,
}

impl PathState {
    pub(super) fn new(family: Family, hook: Hook, context: Arc<TraceContext>) -> Self {
        Self {
            family,
            hook,
            context,
            fields: Vec::with_capacity(24),
            unknowns: Unknowns::new(),
            always: Vec::new(),
            once: Vec::new(),
            result_index: 0,
            probability: 1.0,
            assumed: PersistentList::new(),
            current_actions: Vec::new(),
            notes: Vec::new(),
            tracking: Tracking::default(),
            seen: None,
        }
    }

    /// Returns the length of an address in bits.
    pub(super) const fn address_bits(&self) -> u32 {
        match self.family {
            Family::Ipv4 => 32,
            Family::Ipv6 => 128,
        }
    }

    /// Returns the current value of a field.
    pub(super) fn get(&mut self, field: Field) -> Value {
        if let Some((_, value)) = self.fields.iter().find(|(known, _)| *known == field) {
            return value.clone();
        }
        let bits = field.bits(self.family);
        let value = self
            .unknowns
            .make(Origin::Field(field), Domain::any(bits), false);
        self.fields.push((field, value.clone()));
        value
    }

    /// Returns the current value of a field if it was ever read or set.
    pub(super) fn peek(&self, field: Field) -> Option<&Value> {
        let found = self.fields.iter().find(|(known, _)| *known == field);
        found.map(|(_, value)| value)
    }

    /// Returns the number in a field if it is known.
    pub(super) fn number(&mut self, field: Field) -> Option<u128> {
        let value = self.get(field);
        self.known(&value)
    }

    /// Sets a field.
    pub(super) fn set(&mut self, field: Field, value: Value) {
        match self.fields.iter_mut().find(|(known, _)| *known == field) {
            Some((_, stored)) => *stored = value,
            None => self.fields.push((field, value)),
        }
    }

    /// Sets a field to a number.
    pub(super) fn set_number(&mut self, field: Field, number: u128) {
        let bits = field.bits(self.family);
        self.set(field, Value::known(number & ones(bits), bits));
    }

    /// Discards the value of a field; its new value is unknown.
    pub(super) fn forget(&mut self, field: Field) {
        self.fields.retain(|(known, _)| *known != field);
    }

    /// Discards the values of fields that satisfy the predicate.
    pub(super) fn forget_if(&mut self, which: impl Fn(Field) -> bool) {
        self.fields.retain(|(known, _)| !which(*known));
    }

    /// Sets a field to an unknown number in these ranges.
    pub(super) fn limit(&mut self, field: Field, ranges: Vec<(u128, u128)>) {
        let bits = field.bits(self.family);
        let value = self
            .unknowns
            .make(Origin::Field(field), Domain::within(bits, ranges), false);
        self.set(field, value);
    }

    /// Returns the current value of a field whose values are at most `last`.
    pub(super) fn limited(&mut self, field: Field, last: u128) -> Value {
        if self.peek(field).is_none() {
            self.limit(field, vec![(0, last)]);
        }
        self.get(field)
    }

    /// Creates an unknown number that is not a field. `uniform` means that all its values are equally probable.
    pub(super) fn new_unknown(
        &mut self,
        what: impl Into<Arc<str>>,
        bits: u32,
        ranges: Vec<(u128, u128)>,
        uniform: bool,
    ) -> Value {
        let domain = Domain::within(bits, ranges);
        self.unknowns
            .make(Origin::Made(what.into()), domain, uniform)
    }

    /// Returns the number of a value if it is known by now.
    pub(super) fn known(&self, value: &Value) -> Option<u128> {
        self.unknowns.known(value)
    }

    /// Returns the smallest and largest possible number of a value, if determined.
    pub(super) fn ends_of(&self, value: &Value) -> Option<(u128, u128)> {
        self.unknowns.ends_of(value)
    }

    /// Replaces a value by its number if it is known by now.
    pub(super) fn resolved(&self, value: &Value) -> Value {
        match (value, self.known(value)) {
            (Value::Undetermined(_), Some(number)) => Value::known(number, value.bits()),
            _ => value.clone(),
        }
    }

    /// Tests the value of a field.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn is(&mut self, field: Field, test: Test<'_>) -> Result<bool, Undetermined> {
        let value = self.get(field);
        self.test_value(&value, test)
    }

    /// Tests a value.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn test_value(
        &mut self,
        value: &Value,
        test: Test<'_>,
    ) -> Result<bool, Undetermined> {
        if let Some(number) = self.known(value) {
            return Ok(test.holds(number));
        }
        let length = value.bits();
        match test {
            Test::Is(number) => {
                if number & !ones(length) != 0 {
                    return Ok(false);
                }
                self.test_bits(value, ones(length), number)
            }
            Test::Masked { mask, value: bits } => self.test_bits(value, mask, bits),
            Test::Within(low, high) => self.test_ranges(value, &[(low, high)]),
            Test::Among(ranges) => self.test_ranges(value, ranges),
        }
    }

    fn test_bits(&mut self, value: &Value, mask: u128, bits: u128) -> Result<bool, Undetermined> {
        let length = value.bits();
        let wanted = (0..length)
            .rev()
            .filter(|at| mask >> at & 1 != 0)
            .map(|at| (value.bit(at), bits >> at & 1 != 0));
        self.test_each(wanted)
    }

    /// Tests several bits together.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn test_each(
        &mut self,
        bits: impl Iterator<Item = (Bit, bool)>,
    ) -> Result<bool, Undetermined> {
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

    /// Splits into a constraint and its inverse.
    fn split(&self, unknown: u32, constraint: Constraint) -> Undetermined {
        let domain = self.unknowns.domain(unknown);
        let opposite = constraint.not(domain.bits());
        Undetermined::Split(
            self.unknowns
                .alternatives(unknown, vec![constraint, opposite]),
        )
    }

    fn test_ranges(
        &mut self,
        value: &Value,
        ranges: &[(u128, u128)],
    ) -> Result<bool, Undetermined> {
        if let Some(run) = self.unknowns.run(value) {
            let wanted = Constraint::within(run.of_ranges(ranges));
            let domain = self.unknowns.domain(run.unknown);
            return match domain.decides(&wanted) {
                Some(decided) => Ok(decided),
                None => Err(self.split(run.unknown, wanted)),
            };
        }
        // Divide the range into blocks with common leading bits.
        for (low, high) in ranges {
            let (mut from, end) = (*low, (*high).min(ones(value.bits())));
            while from <= end {
                let mut size = from.trailing_zeros().min(value.bits());
                while size > 0 && from.checked_add(ones(size)).is_none_or(|last| last > end) {
                    size -= 1;
                }
                if self.test_bits(value, ones(value.bits()) & !ones(size), from)? {
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

    /// Returns which group of numbers contains a value, or `None`. The branch splits into one part for each possible
    /// group, and one for none.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn select_group(
        &mut self,
        value: &Value,
        groups: &[Vec<(u128, u128)>],
    ) -> Result<Option<usize>, Undetermined> {
        if let Some(number) = self.known(value) {
            let is = |group: &Vec<_>| Test::Among(group).holds(number);
            return Ok(groups.iter().position(is));
        }
        let Some(run) = self.unknowns.run(value) else {
            for (number, group) in groups.iter().enumerate() {
                if self.test_ranges(value, group)? {
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
        Err(Undetermined::Split(
            self.unknowns.alternatives(run.unknown, possible),
        ))
    }

    /// Queries a condition at this moment, with its probability if it is known.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn once(
        &mut self,
        description: impl Into<Arc<str>>,
        probability: Option<f64>,
    ) -> Result<bool, Undetermined> {
        match probability {
            Some(all) if all >= 1.0 => return Ok(true),
            Some(none) if none <= 0.0 => return Ok(false),
            _ => {}
        }
        let number = self.result_index;
        self.result_index += 1;
        if let Some(result) = self.once.get(number) {
            return Ok(*result);
        }
        let description = description.into();
        Err(Undetermined::Split(vec![
            Alternative {
                assumption: Assumption::Once(description.clone(), true),
                probability,
            },
            Alternative {
                assumption: Assumption::Once(description, false),
                probability: probability.map(|probability| 1.0 - probability),
            },
        ]))
    }

    /// Queries a condition that has the same result throughout the trace. Its description identifies it.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn always(
        &mut self,
        description: impl Into<Arc<str>>,
    ) -> Result<bool, Undetermined> {
        let description = description.into();
        if let Some((_, result)) = self.always.iter().find(|(known, _)| *known == description) {
            return Ok(*result);
        }
        let alternative = |result| Alternative {
            assumption: Assumption::Always(description.clone(), result),
            probability: None,
        };
        Err(Undetermined::Split(vec![
            alternative(true),
            alternative(false),
        ]))
    }

    /// Sets the result of a query, because a rule determined it.
    pub(super) fn remember(&mut self, description: impl Into<Arc<str>>, result: bool) {
        let description = description.into();
        match self
            .always
            .iter_mut()
            .find(|(known, _)| *known == description)
        {
            Some((_, stored)) => *stored = result,
            None => self.always.push((description, result)),
        }
    }

    /// Begins the evaluation of an expression, for the first time or again.
    pub(super) fn begin(&mut self) {
        self.result_index = 0;
    }

    /// Ends the evaluation of an expression.
    pub(super) fn end(&mut self) {
        self.once.clear();
    }

    /// Applies the assumption of an alternative; `false` if it contradicts earlier ones.
    pub(super) fn take(&mut self, alternative: &Alternative) -> bool {
        match &alternative.assumption {
            Assumption::Unknown(unknown, constraint) => {
                if !self.unknowns.take(*unknown, constraint) {
                    return false;
                }
            }
            Assumption::Always(description, result) => {
                self.always.push((description.clone(), *result))
            }
            Assumption::Once(_, result) => self.once.push(*result),
        }
        if let Some(probability) = alternative.probability {
            self.probability *= probability;
        }
        self.assumed.push(Assumed {
            assumption: alternative.assumption.clone(),
            chance: alternative.probability.is_some(),
        });
        true
    }

    /// Describes the assumptions without a known probability, and those with one.
    pub(super) fn assumptions(&self) -> (Vec<String>, Vec<String>) {
        let (mut assumed, mut chances) = (Vec::new(), Vec::new());
        let mut seen = Vec::new();
        for one in self.assumed.backwards() {
            let description = match &one.assumption {
                Assumption::Unknown(unknown, _) => {
                    if seen.contains(unknown) {
                        continue; // the final domain describes it completely
                    }
                    seen.push(*unknown);
                    self.unknowns.described(*unknown)
                }
                Assumption::Always(description, true) | Assumption::Once(description, true) => {
                    description.to_string()
                }
                Assumption::Always(description, false) | Assumption::Once(description, false) => {
                    negation(description)
                }
            };
            match one.chance {
                true => chances.push(description),
                false => assumed.push(description),
            }
        }
        assumed.reverse();
        chances.reverse();
        (assumed, chances)
    }

    /// Formats a value of this field.
    pub(super) fn description(&self, field: Field, value: &Value) -> String {
        match self.known(value) {
            Some(number) => field.value(number, value.bits()),
            None => match self.unknowns.what(value.bit(0)) {
                Some(Origin::Made(description)) => description.to_string(),
                Some(Origin::Field(of)) if *of == field => "unchanged".to_owned(),
                Some(Origin::Field(of)) => format!("the old value of {of}"),
                None => "partly unknown".to_owned(),
            },
        }
    }

    /// Describes the origin of an unknown value.
    pub(super) fn origin(&self, value: &Value) -> String {
        let mut description = Vec::new();
        for bit in value.to_bits() {
            let one = match self.unknowns.what(bit) {
                Some(Origin::Made(made)) => made.to_string(),
                Some(Origin::Field(field)) => field.to_string(),
                None => continue,
            };
            if !description.contains(&one) {
                description.push(one);
            }
        }
        description.join(" and ")
    }

    /// Sets a field, and records the action.
    pub(super) fn give(&mut self, field: Field, value: &Value) {
        let value = self.resolved(value);
        let description = self.description(field, &value);
        self.record_action(Action::Set {
            field,
            value: description,
        });
        self.set(field, value);
    }

    /// Records a reservation about the branch.
    pub(super) fn note(&mut self, description: impl Into<Arc<str>>) {
        let description = description.into();
        if !self.notes.contains(&description) {
            self.notes.push(description);
        }
    }

    /// Records an action of the current rule.
    pub(super) fn record_action(&mut self, action: Action) {
        self.current_actions.push(action);
    }
}

/// Extends the mask of a comparison with an interface name, whose first letter is in the highest byte. A name ends at
/// its first NUL, and the kernel pads it with NULs. So a comparison that includes the first NUL compares the whole
/// name.
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

/// Formats the negation of a condition: with `not` if that gives a sentence, otherwise after `not:`.
fn negation(description: &str) -> String {
    const WITHOUT_VERB: [&str; 4] = ["above ", "chosen by ", "more than ", "within "];
    // Other verbs and quotations before the first `is`.
    const OTHER: [&str; 6] = [" has ", " or", " that ", "`", "\"", "("];
    match description.split_once(" is ") {
        Some((subject, rest))
            if !rest.starts_with("not ") && !OTHER.iter().any(|other| subject.contains(other)) =>
        {
            format!("{subject} is not {rest}")
        }
        None if WITHOUT_VERB
            .iter()
            .any(|start| description.starts_with(start)) =>
        {
            format!("not {description}")
        }
        _ => format!("not: {description}"),
    }
}

#[cfg(test)]
mod tests {
    use super::negation;

    #[test]
    fn negations_are_sentences() {
        for (description, negated) in [
            (
                "10.0.0.5 is in seen, which rules fill",
                "10.0.0.5 is not in seen, which rules fill",
            ),
            (
                "chosen by `statistic --mode random`",
                "not chosen by `statistic --mode random`",
            ),
            (
                "the quota of 5 bytes is not used up",
                "not: the quota of 5 bytes is not used up",
            ),
            (
                "the accounting object a has no quota or is over it",
                "not: the accounting object a has no quota or is over it",
            ),
            (
                "the packet has \"this is it\" from byte 0 to byte 9",
                "not: the packet has \"this is it\" from byte 0 to byte 9",
            ),
            (
                "it answers a packet from SYNPROXY",
                "not: it answers a packet from SYNPROXY",
            ),
        ] {
            assert_eq!(negation(description), negated);
        }
    }
}
