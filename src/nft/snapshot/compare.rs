//! Builds the comparison keys of objects: their [normal form](super::super::normalize) without what the kernel assigns
//! (handles, use counts, a rule's position, a table's owner, the remaining time of a timeout) and, unless requested,
//! without counters (counters, quotas, `last`).

#[cfg(feature = "diff")]
use bstr::BString;
use chainwright_sys::nf_tables::{
    NFTA_CHAIN_POLICY, NFTA_OBJ_DATA, NFTA_RULE_CHAIN, NFTA_RULE_EXPRESSIONS, NFTA_SET_NAME,
    NFTA_SET_USERDATA, NFTA_TABLE_FLAGS, NFTA_TABLE_USERDATA,
};

use crate::netlink::{Attributes, MessageWriter};
use crate::nft::declare::{AttributeNote, AttributeNotes, AttributeSet, Field};
use crate::nft::expr::{
    Cmp, CmpOp, Counter, Data, Decoded, ExpressionRef, Expressions, Fib, FibFlags, Last,
    NestedExpression, Quota, Range,
};
use crate::nft::normalize::Normal as _;
use crate::nft::{
    Chain, ChainRef, Element, ElementRef, Flowtable, FlowtableRef, ObjectData, Rule, RuleRef, Set,
    SetRef, StatefulObject, StatefulObjectRef, Table, TableRef, userdata,
};

/// The attributes that are ignored in a comparison, that contain counters, and that contain stateful expressions.
#[derive(Clone, Copy)]
struct ComparedAttributes {
    not: AttributeSet,
    counts: AttributeSet,
    lists: AttributeSet,
    ones: AttributeSet,
}

impl ComparedAttributes {
    const fn of(known: &'static [AttributeNotes]) -> Self {
        Self {
            not: AttributeSet::not_compared(known),
            counts: AttributeSet::noted(known, &[AttributeNote::counter]),
            lists: AttributeSet::noted(known, &[AttributeNote::expressions]),
            ones: AttributeSet::noted(known, &[AttributeNote::expression]),
        }
    }
}

const TABLE: ComparedAttributes = ComparedAttributes::of(Table::ATTRIBUTE_NOTES);
const CHAIN: ComparedAttributes = ComparedAttributes::of(Chain::ATTRIBUTE_NOTES);
const RULE: ComparedAttributes = ComparedAttributes::of(Rule::ATTRIBUTE_NOTES);
const SET: ComparedAttributes = ComparedAttributes::of(Set::ATTRIBUTE_NOTES);
const ELEMENT: ComparedAttributes = ComparedAttributes::of(Element::ATTRIBUTE_NOTES);
const OBJECT: ComparedAttributes = ComparedAttributes::of(StatefulObject::ATTRIBUTE_NOTES);
const FLOWTABLE: ComparedAttributes = ComparedAttributes::of(Flowtable::ATTRIBUTE_NOTES);

/// Options of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Compare {
    /// Whether counters are compared, too.
    pub(super) counters: bool,
}

impl Compare {
    #[cfg(feature = "diff")]
    pub(super) fn table(self, table: &TableRef<'_>) -> Vec<u8> {
        self.table_as(table, TABLE)
    }

    /// Returns the key of a table without its creator, which newer versions of nft and this library store in it.
    fn table_as(self, table: &TableRef<'_>, compared: ComparedAttributes) -> Vec<u8> {
        let mut compared = compared;
        compared.not = compared.not.and(NFTA_TABLE_USERDATA);
        let mut key = self.key(&table.to_builder().into_normal(), compared);
        let mut noted = userdata::UserData::new(table.userdata().unwrap_or_default());
        for (kind, value) in noted.by_ref() {
            if !matches!(
                kind,
                userdata::TABLE_NFT_VERSION | userdata::TABLE_NFT_BUILD | userdata::TABLE_CREATOR
            ) {
                key.extend([kind, value.len() as u8]); // as it was in one byte
                key.extend(value);
            }
        }
        key.extend(noted.rest());
        key
    }

    /// Returns `true` if two tables differ at most in their flags.
    pub(super) fn is_same_table_but_flags(self, one: &TableRef<'_>, other: &TableRef<'_>) -> bool {
        let mut compared = TABLE;
        compared.not = compared.not.and(NFTA_TABLE_FLAGS);
        is_identical(one.attributes(), other.attributes(), compared)
            || self.table_as(one, compared) == self.table_as(other, compared)
    }

    pub(super) fn chain(self, chain: &ChainRef<'_>) -> Vec<u8> {
        self.key(&chain.to_builder().into_normal(), CHAIN)
    }

    /// Returns the key of a chain without its policy, which can be changed separately.
    pub(super) fn chain_but_policy(self, chain: &ChainRef<'_>) -> Vec<u8> {
        let mut compared = CHAIN;
        compared.not = compared.not.and(NFTA_CHAIN_POLICY);
        self.key(&chain.to_builder().into_normal(), compared)
    }

    /// Returns the key of a rule without its expressions and the name of its chain.
    pub(super) fn rule_around(self, rule: &RuleRef<'_>) -> Vec<u8> {
        let mut compared = RULE;
        compared.not = compared.not.and(NFTA_RULE_CHAIN);
        let mut rule = rule.to_builder();
        rule.expressions = None;
        self.key(&rule.into_normal(), compared)
    }

    pub(super) fn set(self, set: &SetRef<'_>) -> Vec<u8> {
        self.set_as(set, SET)
    }

    /// Returns the key of a set without the version of nft that declared it.
    fn set_as(self, set: &SetRef<'_>, compared: ComparedAttributes) -> Vec<u8> {
        let mut compared = compared;
        compared.not = compared.not.and(NFTA_SET_USERDATA);
        let mut key = self.key(&set.to_builder().into_normal(), compared);
        let mut noted = userdata::UserData::new(set.userdata().unwrap_or_default());
        for (kind, value) in noted.by_ref() {
            let value = match kind {
                userdata::SET_KEY_TYPEOF | userdata::SET_DATA_TYPEOF => {
                    userdata::typeof_of_any_version(value)
                }
                _ => Some(value.to_vec()),
            };
            if let Some(value) = value {
                key.extend([kind, value.len() as u8]); // at most one byte, as in the original
                key.extend(value);
            }
        }
        key.extend(noted.rest());
        key
    }

    /// Returns the key of a set without its name.
    pub(super) fn set_but_name(self, set: &SetRef<'_>) -> Vec<u8> {
        let mut compared = SET;
        compared.not = compared.not.and(NFTA_SET_NAME);
        self.set_as(set, compared)
    }

    pub(super) fn element(self, element: &ElementRef<'_>) -> Vec<u8> {
        self.key(&element.to_builder().into_normal(), ELEMENT)
    }

    pub(super) fn object(self, object: &StatefulObjectRef<'_>) -> Vec<u8> {
        let mut compared = OBJECT;
        let data = object
            .data()
            .filter(|_| !self.counters)
            .and_then(reset_object);
        if data.is_some() {
            compared.not = compared.not.and(NFTA_OBJ_DATA);
        }
        let mut key = self.key(&object.to_builder().into_normal(), compared);
        key.extend(data.unwrap_or_default());
        key
    }

    pub(super) fn flowtable(self, flowtable: &FlowtableRef<'_>) -> Vec<u8> {
        self.key(&flowtable.to_builder().into_normal(), FLOWTABLE)
    }

    /// Returns the compared attributes of a normal form.
    fn key(self, normal: &[u8], compared: ComparedAttributes) -> Vec<u8> {
        let mut key = Vec::with_capacity(normal.len());
        let mut writer = MessageWriter::bare(&mut key);
        for attribute in Attributes::new(normal).map_while(Result::ok) {
            let kind = attribute.kind;
            let counts = compared.counts.contains(kind) && !self.counters;
            if compared.not.contains(kind) || counts {
                continue;
            }
            if !self.counters && compared.lists.contains(kind) {
                let list = Expressions::decode(attribute.payload).unwrap_or_default();
                without_state(&list).encode(&mut writer, kind);
            } else if !self.counters
                && compared.ones.contains(kind)
                && let Some(one) = <NestedExpression<'_> as Field<'_>>::decode(attribute.payload)
                && let Ok(decoded) = one.decode()
            {
                NestedExpression::of_decoded(&reset(decoded)).encode(&mut writer, kind);
            } else {
                writer.bytes(kind, attribute.payload);
            }
        }
        // An attribute that is too long cannot have been received.
        let _ = writer.finish_bare();
        key
    }

    /// Returns `true` if two rules are the same. Sets and chains that belong to them are the same if their names are.
    pub(super) fn is_same_rule(self, one: &RuleRef<'_>, other: &RuleRef<'_>) -> bool {
        if is_identical(one.attributes(), other.attributes(), RULE) {
            return true;
        }
        let mut around = RULE;
        around.not = around.not.and(NFTA_RULE_EXPRESSIONS).and(NFTA_RULE_CHAIN);
        self.are_same_expressions(one, other)
            && (is_identical(one.attributes(), other.attributes(), around)
                || self.rule_around(one) == self.rule_around(other))
    }

    fn are_same_expressions(self, one: &RuleRef<'_>, other: &RuleRef<'_>) -> bool {
        let mut ours = one.expressions().into_iter().flatten();
        let mut theirs = other.expressions().into_iter().flatten();
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return true,
                (Some(Ok(one)), Some(Ok(other))) if one.raw == other.raw => {}
                (Some(Ok(ours)), Some(Ok(theirs))) => {
                    if is_half_range(&ours) || is_half_range(&theirs) {
                        return self.expressions(one) == self.expressions(other);
                    }
                    let compared = |expression: ExpressionRef<'_>| {
                        let decoded = expression.decode().ok()?;
                        Some(self.expression(decoded).into_owned())
                    };
                    let one = compared(ours);
                    if one.is_none() || one != compared(theirs) {
                        return false;
                    }
                }
                _ => return false,
            }
        }
    }

    /// Returns the compared form of a rule's expressions.
    fn expressions(self, rule: &RuleRef<'_>) -> Expressions<'static> {
        let mut list = Expressions::new();
        for expression in rule
            .expressions()
            .into_iter()
            .flatten()
            .map_while(Result::ok)
        {
            match expression.decode() {
                Ok(decoded) => list.push_decoded(&self.expression(decoded)),
                Err(_) => list.push_raw(&expression),
            };
        }
        in_newer_form(list)
    }

    /// Returns `true` if two chains differ at most in their policy.
    pub(super) fn is_same_chain_but_policy(self, one: &ChainRef<'_>, other: &ChainRef<'_>) -> bool {
        is_identical(one.attributes(), other.attributes(), CHAIN)
            || self.chain_but_policy(one) == self.chain_but_policy(other)
    }

    /// Returns `true` if two sets are the same, apart from their elements.
    pub(super) fn is_same_set(self, one: &SetRef<'_>, other: &SetRef<'_>) -> bool {
        is_identical(one.attributes(), other.attributes(), SET) || self.set(one) == self.set(other)
    }

    /// Returns `true` if two stateful objects are the same.
    pub(super) fn is_same_object(
        self,
        one: &StatefulObjectRef<'_>,
        other: &StatefulObjectRef<'_>,
    ) -> bool {
        is_identical(one.attributes(), other.attributes(), OBJECT)
            || self.object(one) == self.object(other)
    }

    /// Returns `true` if two flowtables are the same.
    pub(super) fn is_same_flowtable(
        self,
        one: &FlowtableRef<'_>,
        other: &FlowtableRef<'_>,
    ) -> bool {
        is_identical(one.attributes(), other.attributes(), FLOWTABLE)
            || self.flowtable(one) == self.flowtable(other)
    }

    /// Returns the compared form of an expression: normal, and without its state unless counters are compared.
    pub(super) fn expression<'d>(self, mut expression: Decoded<'d>) -> Decoded<'d> {
        expression.normalize();
        expression.forget_unlisted();
        match self.counters {
            true => expression,
            false => reset(expression),
        }
    }
}

/// Returns `true` if two rules are the same, except for what the kernel assigns and for their counters. Sets and chains
/// are the same if their names are.
#[doc(hidden)]
#[must_use]
pub fn is_same_rule(one: &RuleRef<'_>, other: &RuleRef<'_>) -> bool {
    Compare::default().is_same_rule(one, other)
}

/// Returns `true` if this is a comparison with the lower end of a range, which the upper end may follow.
fn is_half_range(expression: &ExpressionRef<'_>) -> bool {
    expression.name == "cmp"
        && matches!(
            expression.decode(),
            Ok(Decoded::Cmp(Cmp {
                op: Some(CmpOp::GTE),
                ..
            }))
        )
}

/// Returns a list in the form of nft 1.1. For a range it has one expression; older versions write two comparisons. For the
/// existence of a route it compares one byte; older versions compare four.
pub(super) fn in_newer_form(list: Expressions<'static>) -> Expressions<'static> {
    if !list
        .iter()
        .map_while(Result::ok)
        .any(|expression| expression.name == "fib" || is_half_range(&expression))
    {
        return list;
    }
    let mut out = Expressions::new();
    let mut rest = list.iter().map_while(Result::ok).peekable();
    while let Some(expression) = rest.next() {
        out.push_raw(&expression);
        let next = rest.peek().and_then(|next| existence_of(&expression, next));
        if let Some(comparison) = next {
            rest.next();
            out.push(&comparison);
        }
    }
    let list = std::mem::take(&mut out);
    let mut rest = list.iter().map_while(Result::ok).peekable();
    while let Some(expression) = rest.next() {
        let range = rest.peek().and_then(|next| range_of(&expression, next));
        match range {
            Some(range) => {
                rest.next();
                out.push(&range)
            }
            None => out.push_raw(&expression),
        };
    }
    out
}

/// Returns the comparison of one byte that follows a test for the existence of a route.
fn existence_of<'e>(
    test: &ExpressionRef<'e>,
    comparison: &ExpressionRef<'e>,
) -> Option<Cmp<'static>> {
    match (test.decode().ok()?, comparison.decode().ok()?) {
        (
            Decoded::Fib(Fib {
                flags: Some(flags),
                dreg,
                ..
            }),
            Decoded::Cmp(Cmp {
                op,
                sreg,
                data: Some(Data::Value(value)),
                unknown,
            }),
        ) if flags.contains(FibFlags::PRESENT) && dreg == sreg && unknown.is_empty() => {
            let (first, rest) = value.split_at_checked(1)?;
            let comparison = Cmp {
                op,
                sreg,
                data: Some(Data::value(first)),
                ..Cmp::default()
            };
            (rest.iter().all(|byte| *byte == 0)).then(|| comparison.into_owned())
        }
        _ => None,
    }
}

/// Returns the range that two comparisons of the same register mean together.
fn range_of<'e>(lower: &ExpressionRef<'e>, upper: &ExpressionRef<'e>) -> Option<Range<'e>> {
    match (lower.decode().ok()?, upper.decode().ok()?) {
        (
            Decoded::Cmp(Cmp {
                op: Some(CmpOp::GTE),
                sreg: Some(register),
                data: Some(Data::Value(from)),
                unknown,
            }),
            Decoded::Cmp(Cmp {
                op: Some(CmpOp::LTE),
                sreg,
                data: Some(Data::Value(to)),
                unknown: more,
            }),
        ) if sreg == Some(register)
            && from.len() == to.len()
            && unknown.is_empty()
            && more.is_empty() =>
        {
            Some(Range::within(register, &from, &to).into_owned())
        }
        _ => None,
    }
}

/// Returns `true` if two objects are equal byte for byte except for what is not compared.
fn is_identical<'a>(
    one: Attributes<'a>,
    other: Attributes<'a>,
    compared: ComparedAttributes,
) -> bool {
    let parts = |attributes: Attributes<'a>| {
        let attributes = attributes.map_while(Result::ok);
        let compared = attributes.filter(move |attribute| !compared.not.contains(attribute.kind));
        compared.map(|attribute| attribute.raw)
    };
    parts(one).eq(parts(other))
}

#[cfg(feature = "diff")]
/// Returns the name of an element for comparisons: its keys, and whether it ends an interval.
pub(super) fn element_name(element: &ElementRef<'_>) -> BString {
    let mut name = BString::from(element.key_bytes().unwrap_or_default());
    name.push(element.is_interval_end().into());
    name.push(element.is_catch_all().into());
    name.extend_from_slice(element.key_end_bytes().unwrap_or_default());
    name
}

/// Returns the expressions with all counters at zero.
fn without_state(list: &Expressions<'_>) -> Expressions<'static> {
    let mut out = Expressions::new();
    for expression in list.iter().map_while(Result::ok) {
        let name: &[u8] = expression.name;
        let stateful = matches!(name, b"counter" | b"quota" | b"last" | b"dynset");
        match stateful.then(|| expression.decode()) {
            Some(Ok(decoded)) => out.push_decoded(&reset(decoded)),
            _ => out.push_raw(&expression),
        };
    }
    out
}

/// Returns the expression with its counters at zero.
fn reset(expression: Decoded<'_>) -> Decoded<'_> {
    match expression {
        Decoded::Counter(_) => Counter::default().into(),
        Decoded::Quota(quota) => Quota {
            consumed: None,
            ..quota.into_request()
        }
        .into(),
        Decoded::Last(_) => Last::default().into(),
        other => other,
    }
}

/// Returns the encoded data of a stateful object with its counters at zero.
fn reset_object(mut data: ObjectData<'_>) -> Option<Vec<u8>> {
    data.normalize();
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::bare(&mut bytes);
    match data {
        ObjectData::Counter(_) => {}
        ObjectData::Quota(quota) => Quota {
            consumed: None,
            ..quota.into_request()
        }
        .write_attributes(&mut writer),
        _ => return None,
    }
    writer.finish_bare().ok()?;
    Some(bytes)
}
