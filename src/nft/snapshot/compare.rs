//! Builds the comparison keys of objects: their attributes as sent by the kernel, without those that it assigns
//! (handles, use counts, a rule's position, a table's owner, the remaining time of a timeout) and, unless requested,
//! without counters (counters, quotas, `last`).

#[cfg(feature = "diff")]
use bstr::BString;
use chainwright_sys::nf_tables::{
    NFTA_CHAIN_POLICY, NFTA_OBJ_DATA, NFTA_RULE_CHAIN, NFTA_RULE_EXPRESSIONS, NFTA_SET_NAME,
    NFTA_SET_USERDATA, NFTA_TABLE_FLAGS, NFTA_TABLE_USERDATA,
};

use crate::netlink::{Attributes, MessageWriter};
use crate::nft::declare::{AttributeNotes, AttributeSet, Field, Note, Padded};
use crate::nft::expr::{Counter, Decoded, Expressions, Last, NestedExpression, Quota};
use crate::nft::{
    Chain, ChainRef, Element, ElementRef, Flowtable, FlowtableRef, ObjectData, Rule, RuleRef, Set,
    SetRef, StatefulObject, StatefulObjectRef, Table, TableRef, userdata,
};

/// The attributes that are ignored in a comparison, that contain counters, and that contain stateful expressions.
#[derive(Clone, Copy)]
struct Compared {
    known: &'static [AttributeNotes],
    not: AttributeSet,
    counts: AttributeSet,
    lists: AttributeSet,
    ones: AttributeSet,
}

impl Compared {
    const fn of(known: &'static [AttributeNotes]) -> Self {
        Self {
            known,
            not: AttributeSet::not_compared(known),
            counts: AttributeSet::noted(known, &[Note::counts]),
            lists: AttributeSet::noted(known, &[Note::expressions]),
            ones: AttributeSet::noted(known, &[Note::expression]),
        }
    }
}

const TABLE: Compared = Compared::of(Table::ATTRIBUTE_NOTES);
const CHAIN: Compared = Compared::of(Chain::ATTRIBUTE_NOTES);
const RULE: Compared = Compared::of(Rule::ATTRIBUTE_NOTES);
const SET: Compared = Compared::of(Set::ATTRIBUTE_NOTES);
const ELEMENT: Compared = Compared::of(Element::ATTRIBUTE_NOTES);
const OBJECT: Compared = Compared::of(StatefulObject::ATTRIBUTE_NOTES);
const FLOWTABLE: Compared = Compared::of(Flowtable::ATTRIBUTE_NOTES);

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
    fn table_as(self, table: &TableRef<'_>, compared: Compared) -> Vec<u8> {
        let mut compared = compared;
        compared.not = compared.not.and(NFTA_TABLE_USERDATA);
        let mut key = self.key(table.attributes(), compared);
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
        self.table_as(one, compared) == self.table_as(other, compared)
    }

    pub(super) fn chain(self, chain: &ChainRef<'_>) -> Vec<u8> {
        self.key(chain.attributes(), CHAIN)
    }

    /// Returns the key of a chain without its policy, which can be changed separately.
    pub(super) fn chain_but_policy(self, chain: &ChainRef<'_>) -> Vec<u8> {
        let mut compared = CHAIN;
        compared.not = compared.not.and(NFTA_CHAIN_POLICY);
        self.key(chain.attributes(), compared)
    }

    /// Returns the key of a rule without its expressions and the name of its chain.
    pub(super) fn rule_around(self, rule: &RuleRef<'_>) -> Vec<u8> {
        let mut compared = RULE;
        compared.not = compared.not.and(NFTA_RULE_EXPRESSIONS).and(NFTA_RULE_CHAIN);
        self.key(rule.attributes(), compared)
    }

    pub(super) fn set(self, set: &SetRef<'_>) -> Vec<u8> {
        self.set_as(set, SET)
    }

    /// Returns the key of a set without the version of nft that declared it.
    fn set_as(self, set: &SetRef<'_>, compared: Compared) -> Vec<u8> {
        let mut compared = compared;
        compared.not = compared.not.and(NFTA_SET_USERDATA);
        let mut key = self.key(set.attributes(), compared);
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
        self.key(element.attributes(), ELEMENT)
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
        let mut key = self.key(object.attributes(), compared);
        key.extend(data.unwrap_or_default());
        key
    }

    pub(super) fn flowtable(self, flowtable: &FlowtableRef<'_>) -> Vec<u8> {
        self.key(flowtable.attributes(), FLOWTABLE)
    }

    fn key(self, attributes: Attributes<'_>, compared: Compared) -> Vec<u8> {
        let stripped = Padded::Group(compared.known).without_padding(attributes.rest());
        let attributes = stripped.as_deref().map_or(attributes, Attributes::new);
        let mut key = Vec::new();
        let mut writer = MessageWriter::bare(&mut key);
        for attribute in attributes.map_while(Result::ok) {
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

    /// Returns an expression without its state, unless counters are compared.
    pub(super) fn without_state<'d>(self, expression: Decoded<'d>) -> Decoded<'d> {
        match self.counters {
            true => expression,
            false => reset(expression),
        }
    }
}

/// Returns `true` if two rules are equal byte for byte except for the values that the kernel assigns. Fast; a negative
/// result is inconclusive.
#[doc(hidden)]
pub fn is_same_rule(one: &RuleRef<'_>, other: &RuleRef<'_>) -> bool {
    fn compared<'r>(rule: &RuleRef<'r>) -> impl Iterator<Item = &'r [u8]> {
        let attributes = rule.attributes().map_while(Result::ok);
        let compared = attributes.filter(|attribute| !RULE.not.contains(attribute.kind));
        compared.map(|attribute| attribute.raw)
    }
    compared(one).eq(compared(other))
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
fn reset_object(data: ObjectData<'_>) -> Option<Vec<u8>> {
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
