//! Sets and maps: keys that rules look up, maps with a value, verdict or object for each.
//!
//! | set | built by |
//! |---|---|
//! | of addresses, ports, … | [`Set::new`] |
//! | of several values at once | [`Set::with_fields`] |
//! | of ranges | [`Set::with_interval`]; of several values at once [`Set::with_interval_fields`] |
//! | map to a value, verdict, object | [`Set::with_data`], [`Set::with_verdicts`], [`Set::with_objects`] |
//! | whose elements time out | [`Set::with_timeout`] |
//! | that rules add to | [`Set::with_updates`] |
//! | of one rule, without a name of its own | [`Set::anonymous`] |
//!
//! The elements are [`Element`](super::Element)s, in messages of their own.

use std::fmt;
use std::time::Duration;

use chainwright_sys::nf_tables::{
    NFT_MSG_DELSET, NFT_MSG_DESTROYSET, NFT_MSG_GETSET, NFT_MSG_NEWSET, NFT_SET_ANONYMOUS,
    NFT_SET_CONCAT, NFT_SET_CONSTANT, NFT_SET_EVAL, NFT_SET_EXPR, NFT_SET_INTERVAL, NFT_SET_MAP,
    NFT_SET_OBJECT, NFT_SET_POL_MEMORY, NFT_SET_POL_PERFORMANCE, NFT_SET_TIMEOUT, NFTA_LIST_ELEM,
    NFTA_SET_COUNT, NFTA_SET_DATA_LEN, NFTA_SET_DATA_TYPE, NFTA_SET_DESC, NFTA_SET_DESC_CONCAT,
    NFTA_SET_DESC_SIZE, NFTA_SET_EXPR, NFTA_SET_EXPRESSIONS, NFTA_SET_FIELD_LEN, NFTA_SET_FLAGS,
    NFTA_SET_GC_INTERVAL, NFTA_SET_HANDLE, NFTA_SET_ID, NFTA_SET_KEY_LEN, NFTA_SET_KEY_TYPE,
    NFTA_SET_NAME, NFTA_SET_OBJ_TYPE, NFTA_SET_PAD, NFTA_SET_POLICY, NFTA_SET_TABLE,
    NFTA_SET_TIMEOUT, NFTA_SET_TYPE, NFTA_SET_USERDATA,
};

use super::Family;
use super::data_type::DataType;
use super::declare::{Field, attributes, flags, nested_field, object, values};
use super::element::SetId;
use super::expr::{Expression, Expressions, NestedExpression, ObjectType};
use super::name::{Bytes, Name};
use super::object::{listed, written};
use super::userdata::{self, commented};
use super::{Milliseconds, Milliseconds32};
use crate::escape::Escaped;
use crate::netlink::{Attributes, MessageWriter};

flags! {
    /// Flags of a set (`enum nft_set_flags`).
    pub struct SetFlags: u32 {
        /// Has no name of its own and goes with the rule that uses it.
        const ANONYMOUS = NFT_SET_ANONYMOUS,
        /// Its elements do not change once a rule uses it.
        const CONSTANT = NFT_SET_CONSTANT,
        /// Its elements are ranges.
        const INTERVAL = NFT_SET_INTERVAL,
        /// A map to values or verdicts.
        const MAP = NFT_SET_MAP,
        /// Its elements time out.
        const TIMEOUT = NFT_SET_TIMEOUT,
        /// Rules add, change and delete its elements (`dynamic` in `nft`).
        const EVAL = NFT_SET_EVAL,
        /// A map to stateful objects.
        const OBJECT = NFT_SET_OBJECT,
        /// Its keys are ranges of several values at once.
        const CONCAT = NFT_SET_CONCAT,
        /// More than one expression is made with each element.
        const EXPR = NFT_SET_EXPR,
    }
}

values! {
    /// What the kernel chooses a set's implementation by (`enum nft_set_policies`).
    pub struct SetPolicy: u32 {
        /// Speed.
        PERFORMANCE = NFT_SET_POL_PERFORMANCE => "performance",
        /// Memory.
        MEMORY = NFT_SET_POL_MEMORY => "memory",
    }
}

attributes! {
    /// One field of a concatenation: `enum nft_set_field_attributes`.
    pub struct SetField {
        /// Length in bytes, without the padding to four.
        NFTA_SET_FIELD_LEN => length: u32,
    }
}

/// The fields of a concatenation: a list of [`SetField`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct SetFields(pub Vec<SetField>);

impl SetFields {
    /// Fields of these lengths in bytes.
    #[must_use]
    pub fn of_lengths(lengths: impl IntoIterator<Item = u32>) -> Self {
        let field = |length| SetField {
            length: Some(length),
            ..SetField::default()
        };
        Self(lengths.into_iter().map(field).collect())
    }

    /// The fields' lengths in bytes; 0 for one that has none.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = u32> {
        self.0.iter().map(|field| field.length.unwrap_or_default())
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let mut fields = Vec::new();
        for attribute in Attributes::new(payload) {
            fields.push(SetField::decode(attribute.ok()?.payload)?);
        }
        Some(Self(fields))
    }
}

impl<'f> Field<'f> for SetFields {
    type Static = Self;
    nested_field!('f, Self::read);

    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.nested(kind, |writer| {
            for field in &self.0 {
                field.encode(writer, NFTA_LIST_ELEM);
            }
        });
    }

    fn into_static(self) -> Self {
        self
    }
}

attributes! {
    /// What the kernel should know of a set: `enum nft_set_desc_attributes`.
    pub struct SetDesc {
        /// How many elements there may be.
        NFTA_SET_DESC_SIZE => size: u32,
        /// The fields of ranges of several values at once.
        NFTA_SET_DESC_CONCAT => fields: SetFields,
    }
}

object! {
    /// A set or map, to be written: `enum nft_set_attributes`.
    pub struct Set viewed as SetRef, "a set",
    written as [
        table, name, handle, flags, key_type, key_length, data_type, data_length, object_type, id, policy, description,
        timeout, gc_interval, userdata, expression, expressions, implementation, count
    ] {
        /// Name of the table that the set is in.
        NFTA_SET_TABLE => table: Name<'a> [required, table],
        /// Name of the set; of an anonymous one a pattern with `%d`, which the kernel numbers.
        NFTA_SET_NAME => name: Name<'a> [required, name],
        /// Handle, given by the kernel.
        NFTA_SET_HANDLE => handle: u64 [required, handle],
        /// Flags; the kernel leaves them out if there are none.
        NFTA_SET_FLAGS => flags: SetFlags,
        /// What the keys are.
        NFTA_SET_KEY_TYPE => key_type: DataType,
        /// Length of the keys in bytes, each field of a concatenation filled up to four.
        NFTA_SET_KEY_LEN => key_length: u32,
        /// What a map's data are.
        NFTA_SET_DATA_TYPE => data_type: DataType,
        /// Length of a map's data in bytes.
        NFTA_SET_DATA_LEN => data_length: u32,
        /// Type of the stateful objects that the keys lead to.
        NFTA_SET_OBJ_TYPE => object_type: ObjectType,
        /// After how long elements go that say nothing else.
        NFTA_SET_TIMEOUT => timeout: Milliseconds,
        /// How often elements that timed out are taken away.
        NFTA_SET_GC_INTERVAL => gc_interval: Milliseconds32,
        /// What the implementation is chosen by.
        NFTA_SET_POLICY => policy: SetPolicy,
        /// Data that user space keeps with the set, opaque to the kernel: see
        /// [`userdata`](crate::nft::userdata).
        NFTA_SET_USERDATA => userdata: Bytes<'a> [userdata],
        /// Number of elements that there may be, and fields of a concatenation.
        NFTA_SET_DESC => description: SetDesc,
        /// The kernel's name, or address, of the implementation (Linux 6.16), for information only.
        NFTA_SET_TYPE => implementation: Name<'a> [listed],
        /// Number of elements in the set (Linux 6.16), given by the kernel.
        NFTA_SET_COUNT => count: u32 [listed],
        /// The one expression that is made with each element.
        NFTA_SET_EXPR => expression: NestedExpression<'a>,
        /// The expressions, if there are more of them.
        NFTA_SET_EXPRESSIONS => expressions: Expressions<'a>,
        /// Number by which other operations of the same batch may refer to the set. The kernel wants
        /// one of every set that is added: 0 is written if there is none here.
        NFTA_SET_ID => id: u32 [written],
        _ => NFTA_SET_PAD,
    }
}

commented!(Set as SetRef, SET_COMMENT);

impl<'a> Set<'a> {
    /// A set whose keys are of this type and this many bytes.
    pub fn new(
        family: Family,
        table: impl Into<Name<'a>>,
        name: impl Into<Name<'a>>,
        key_type: DataType,
        key_length: u32,
    ) -> Self {
        let mut this = Self {
            family,
            table: Some(table.into()),
            name: Some(name.into()),
            key_type: Some(key_type),
            key_length: Some(key_length),
            ..Self::default()
        };
        this.put_byte_order(userdata::SET_KEY_BYTE_ORDER, key_type);
        this
    }

    /// A set of one rule, which comes behind it in the same transaction, names it by this number
    /// ([`Lookup::set_id`](super::expr::Lookup)) and takes it along when it goes. It is constant.
    ///
    /// The pattern is what the kernel makes a name of: nft uses `__set%d` and `__map%d`.
    pub fn anonymous(
        family: Family,
        table: impl Into<Name<'a>>,
        pattern: impl Into<Name<'a>>,
        id: u32,
        key_type: DataType,
        key_length: u32,
    ) -> Self {
        Self {
            id: Some(id),
            ..Self::new(family, table, pattern, key_type, key_length)
                .with_flags(SetFlags::ANONYMOUS | SetFlags::CONSTANT)
        }
    }

    /// The set of this name, to be deleted.
    pub fn named(family: Family, table: impl Into<Name<'a>>, name: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
            name: Some(name.into()),
            ..Self::default()
        }
    }

    fn put_byte_order(&mut self, kind: u8, data_type: DataType) {
        if let Some(order) = data_type.byte_order() {
            userdata::put(&mut self.userdata, kind, &order.to_ne_bytes());
        }
    }

    /// The same set with these flags added.
    #[must_use]
    pub fn with_flags(mut self, flags: SetFlags) -> Self {
        self.flags = Some(self.flags.unwrap_or_default() | flags);
        self
    }

    /// Makes the keys consist of these fields, given by type and length in bytes. In a key each field
    /// is filled up with zeros to four bytes: see [`concatenation`](super::concatenation).
    #[must_use]
    pub fn with_fields(mut self, fields: &[(DataType, u32)]) -> Self {
        let types = fields.iter().map(|(data_type, _)| *data_type);
        let lengths = fields.iter().map(|(_, length)| length.next_multiple_of(4));
        self.key_type = Some(DataType::concatenation(types));
        self.key_length = Some(lengths.sum());
        self
    }

    /// Makes the elements ranges of several values at once: each has a first and a last key of these
    /// fields, as [`Element::range`](super::Element::range) makes it.
    #[must_use]
    pub fn with_interval_fields(self, fields: &[(DataType, u32)]) -> Self {
        let lengths = fields.iter().map(|(_, length)| *length);
        let mut this = self
            .with_fields(fields)
            .with_flags(SetFlags::INTERVAL | SetFlags::CONCAT);
        this.description.get_or_insert_default().fields = Some(SetFields::of_lengths(lengths));
        this
    }

    /// Makes the elements ranges, as [`Element::interval`](super::Element::interval) makes them.
    #[must_use]
    pub fn with_interval(self) -> Self {
        self.with_flags(SetFlags::INTERVAL)
    }

    /// Makes it a map to values of this type and this many bytes.
    #[must_use]
    pub fn with_data(mut self, data_type: DataType, length: u32) -> Self {
        self.data_type = Some(data_type);
        self.data_length = Some(length);
        self.put_byte_order(userdata::SET_DATA_BYTE_ORDER, data_type);
        self.with_flags(SetFlags::MAP)
    }

    /// Makes it a map to verdicts.
    #[must_use]
    pub fn with_verdicts(mut self) -> Self {
        self.data_type = Some(DataType::VERDICT);
        self.data_length = Some(0); // the kernel knows
        self.with_flags(SetFlags::MAP)
    }

    /// Makes it a map to stateful objects of this type.
    #[must_use]
    pub fn with_objects(mut self, object_type: ObjectType) -> Self {
        self.object_type = Some(object_type);
        self.with_flags(SetFlags::OBJECT)
    }

    /// Lets elements time out: after this time, if they say nothing else; only those that say so for
    /// `None`. The kernel counts milliseconds.
    #[must_use]
    pub fn with_timeout(mut self, time: Option<Duration>) -> Self {
        self.timeout = time.map(Into::into);
        self.with_flags(SetFlags::TIMEOUT)
    }

    /// Lets rules add and change elements, up to this many.
    #[must_use]
    pub fn with_updates(self, size: u32) -> Self {
        self.with_size(size).with_flags(SetFlags::EVAL)
    }

    /// Makes its elements stay as they are once a rule uses it.
    #[must_use]
    pub fn constant(self) -> Self {
        self.with_flags(SetFlags::CONSTANT)
    }

    /// Limits the number of elements.
    #[must_use]
    pub fn with_size(mut self, size: u32) -> Self {
        self.description.get_or_insert_default().size = Some(size);
        self
    }

    /// Chooses the implementation by this.
    #[must_use]
    pub fn with_policy(mut self, policy: SetPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Makes one more expression with each element, a counter, say. Linux takes two at most.
    #[must_use]
    pub fn with_expression(mut self, expression: &impl Expression) -> Self {
        let nested = NestedExpression::new(expression);
        match (&mut self.expressions, self.expression.take()) {
            (None, None) => self.expression = Some(nested),
            (several, first) => {
                let several = several.get_or_insert_default();
                if let Some(first) = first.as_ref().and_then(|first| first.decode().ok()) {
                    several.push_decoded(&first);
                }
                several.push(expression);
                return self.with_flags(SetFlags::EXPR);
            }
        }
        self
    }

    /// What operations on its elements name it by.
    #[must_use]
    pub fn set_id(&self) -> SetId<'_> {
        SetId {
            family: self.family,
            table: self.table.as_ref().map(Name::from).unwrap_or_default(),
            set: self.name.as_ref().map(Name::from).unwrap_or_default(),
            id: self.id,
        }
    }
}

impl<'a> SetRef<'a> {
    /// What requests for its elements name it by.
    #[must_use]
    pub fn set_id(&self) -> SetId<'a> {
        SetId::new(self.family(), self.table(), self.name())
    }

    /// Whether it is a map, to values, verdicts or objects.
    #[must_use]
    pub fn is_map(&self) -> bool {
        self.flags
            .is_some_and(|flags| flags.intersects(SetFlags::MAP | SetFlags::OBJECT))
    }
}

written!(
    Set,
    "set",
    [NFT_MSG_NEWSET, NFT_MSG_GETSET, NFT_MSG_DELSET, NFT_MSG_DESTROYSET],
    more: |this, writer| {
        if this.id.is_none() {
            writer.be32(NFTA_SET_ID, 0);
        }
    }
);

listed!(
    Set as SetRef by Scope,
    "list sets",
    BY_KERNEL = true,
    REFUSES_ABSENT_TABLE = true
);

/// The line that `nft --debug=netlink list ruleset` prints above a set's elements (nft 1.0.6).
impl fmt::Display for SetRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, name) = (Escaped(self.table()), Escaped(self.name()));
        write!(f, "{} {table} @{name}", self.family())
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests;
