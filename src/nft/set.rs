//! Sets and maps: keys that rules look up, in maps with a value, verdict or object for each.
//!
//! | set | builder |
//! |---|---|
//! | of addresses, ports, … | [`Set::new`] |
//! | of concatenations | [`Set::with_fields`] |
//! | of ranges | [`Set::with_interval`]; of concatenations [`Set::with_interval_fields`] |
//! | map to a value, verdict, object | [`Set::with_data`], [`Set::with_verdicts`], [`Set::with_objects`] |
//! | with timeouts | [`Set::with_timeout`] |
//! | updated by rules | [`Set::with_updates`] |
//! | for one rule, without a name | [`Set::anonymous`] |
//!
//! The elements are separate messages, built from [`Element`](super::Element)s.

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
        /// Has no name chosen by the user, and is deleted with the rule that uses it.
        const ANONYMOUS = NFT_SET_ANONYMOUS,
        /// Its elements do not change after a rule uses it.
        const CONSTANT = NFT_SET_CONSTANT,
        /// Its elements are ranges.
        const INTERVAL = NFT_SET_INTERVAL,
        /// A map to values or verdicts.
        const MAP = NFT_SET_MAP,
        /// Its elements time out.
        const TIMEOUT = NFT_SET_TIMEOUT,
        /// Rules add, update and delete its elements (`dynamic` in `nft`).
        const EVAL = NFT_SET_EVAL,
        /// A map to stateful objects.
        const OBJECT = NFT_SET_OBJECT,
        /// Its keys are ranges of concatenations.
        const CONCAT = NFT_SET_CONCAT,
        /// Each element has several expressions.
        const EXPR = NFT_SET_EXPR,
    }
}

values! {
    /// Criterion by which the kernel chooses a set's implementation (`enum nft_set_policies`).
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
    /// Creates fields with these lengths in bytes.
    #[must_use]
    pub fn of_lengths(lengths: impl IntoIterator<Item = u32>) -> Self {
        let field = |length| SetField {
            length: Some(length),
            ..SetField::default()
        };
        Self(lengths.into_iter().map(field).collect())
    }

    /// Returns the fields' lengths in bytes; 0 for a field without one.
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
    /// The description of a set for the kernel: `enum nft_set_desc_attributes`.
    pub struct SetDesc {
        /// Maximum number of elements.
        NFTA_SET_DESC_SIZE => size: u32,
        /// The fields of ranges of concatenations.
        NFTA_SET_DESC_CONCAT => fields: SetFields,
    }
}

object! {
    /// A set or map to be sent to the kernel: `enum nft_set_attributes`.
    pub struct Set viewed as SetRef, "a set",
    written as [
        table, name, handle, flags, key_type, key_length, data_type, data_length, object_type, id, policy, description,
        timeout, gc_interval, userdata, expression, expressions, implementation, count
    ] {
        /// Name of the set's table.
        NFTA_SET_TABLE => table: Name<'a> [required, table],
        /// Name of the set; for an anonymous one a pattern with `%d`, which the kernel replaces by a
        /// number.
        NFTA_SET_NAME => name: Name<'a> [required, name],
        /// Handle, assigned by the kernel.
        NFTA_SET_HANDLE => handle: u64 [required, handle],
        /// Flags; the kernel omits them if there are none.
        NFTA_SET_FLAGS => flags: SetFlags,
        /// Data type of the keys.
        NFTA_SET_KEY_TYPE => key_type: DataType,
        /// Length of the keys in bytes, with each field of a concatenation padded to four.
        NFTA_SET_KEY_LEN => key_length: u32,
        /// Data type of a map's data.
        NFTA_SET_DATA_TYPE => data_type: DataType,
        /// Length of a map's data in bytes.
        NFTA_SET_DATA_LEN => data_length: u32,
        /// Type of the stateful objects that the keys map to.
        NFTA_SET_OBJ_TYPE => object_type: ObjectType,
        /// Default timeout of the elements.
        NFTA_SET_TIMEOUT => timeout: Milliseconds,
        /// Interval at which expired elements are removed.
        NFTA_SET_GC_INTERVAL => gc_interval: Milliseconds32,
        /// Criterion for the implementation.
        NFTA_SET_POLICY => policy: SetPolicy,
        /// Data stored by user space, opaque to the kernel: see [`userdata`](crate::nft::userdata).
        NFTA_SET_USERDATA => userdata: Bytes<'a> [userdata],
        /// Maximum number of elements, and the fields of a concatenation.
        NFTA_SET_DESC => description: SetDesc,
        /// The kernel's name or address of the implementation (Linux 6.16), for information only.
        NFTA_SET_TYPE => implementation: Name<'a> [dump_form],
        /// Number of elements in the set (Linux 6.16), set by the kernel.
        NFTA_SET_COUNT => count: u32 [dump_form],
        /// The only expression of each element.
        NFTA_SET_EXPR => expression: NestedExpression<'a>,
        /// The expressions, if there are several.
        NFTA_SET_EXPRESSIONS => expressions: Expressions<'a>,
        /// Number by which other operations of the same batch can refer to the set. The kernel requires
        /// one for every added set: 0 is written if this is `None`.
        NFTA_SET_ID => id: u32 [request_only],
        _ => NFTA_SET_PAD,
    }
}

commented!(Set as SetRef, SET_COMMENT);

impl<'a> Set<'a> {
    /// Creates a set with keys of this type and this length in bytes.
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
            ..Self::empty()
        };
        this.put_byte_order(userdata::SET_KEY_BYTE_ORDER, key_type);
        this
    }

    /// Creates a constant set for one rule. The rule must follow in the same transaction and refers to the
    /// set by this id ([`Lookup::set_id`](super::expr::Lookup)); the kernel deletes the set together with
    /// the rule.
    ///
    /// The kernel makes a name from the pattern: nft uses `__set%d` and `__map%d`.
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

    /// Refers to the set with this name, to delete it.
    #[doc(hidden)]
    pub fn named(family: Family, table: impl Into<Name<'a>>, name: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: Some(table.into()),
            name: Some(name.into()),
            ..Self::empty()
        }
    }

    fn put_byte_order(&mut self, kind: u8, data_type: DataType) {
        if let Some(order) = data_type.byte_order() {
            userdata::put(&mut self.userdata, kind, &order.to_ne_bytes());
        }
    }

    /// Adds these flags.
    #[must_use]
    pub fn with_flags(mut self, flags: SetFlags) -> Self {
        self.flags = Some(self.flags.unwrap_or_default() | flags);
        self
    }

    /// Makes the keys concatenations of these fields, given by type and length in bytes. In a key each
    /// field is padded with zeros to four bytes: see [`concatenation`](super::concatenation).
    #[must_use]
    pub fn with_fields(mut self, fields: &[(DataType, u32)]) -> Self {
        let types = fields.iter().map(|(data_type, _)| *data_type);
        let lengths = fields.iter().map(|(_, length)| length.next_multiple_of(4));
        self.key_type = Some(DataType::concatenation(types));
        self.key_length = Some(lengths.sum());
        self
    }

    /// Makes the elements ranges of concatenations: each has a first and a last key of these fields, as
    /// created by [`Element::range`](super::Element::range).
    #[must_use]
    pub fn with_interval_fields(self, fields: &[(DataType, u32)]) -> Self {
        let lengths = fields.iter().map(|(_, length)| *length);
        let mut this = self
            .with_fields(fields)
            .with_flags(SetFlags::INTERVAL | SetFlags::CONCAT);
        this.description.get_or_insert_default().fields = Some(SetFields::of_lengths(lengths));
        this
    }

    /// Makes the elements ranges, as created by [`Element::interval`](super::Element::interval).
    #[must_use]
    pub fn with_interval(self) -> Self {
        self.with_flags(SetFlags::INTERVAL)
    }

    /// Makes this a map to values of this type and this length in bytes.
    #[must_use]
    pub fn with_data(mut self, data_type: DataType, length: u32) -> Self {
        self.data_type = Some(data_type);
        self.data_length = Some(length);
        self.put_byte_order(userdata::SET_DATA_BYTE_ORDER, data_type);
        self.with_flags(SetFlags::MAP)
    }

    /// Makes this a map to verdicts.
    #[must_use]
    pub fn with_verdicts(mut self) -> Self {
        self.data_type = Some(DataType::VERDICT);
        self.data_length = Some(0); // the kernel knows the length
        self.with_flags(SetFlags::MAP)
    }

    /// Makes this a map to stateful objects of this type.
    #[must_use]
    pub fn with_objects(mut self, object_type: ObjectType) -> Self {
        self.object_type = Some(object_type);
        self.with_flags(SetFlags::OBJECT)
    }

    /// Enables timeouts, with this default for elements without their own; with `None` only elements with
    /// their own timeout expire. The resolution is milliseconds.
    #[must_use]
    pub fn with_timeout(mut self, time: Option<Duration>) -> Self {
        self.timeout = time.map(Into::into);
        self.with_flags(SetFlags::TIMEOUT)
    }

    /// Allows rules to add and update elements, up to this number.
    #[must_use]
    pub fn with_updates(self, size: u32) -> Self {
        self.with_size(size).with_flags(SetFlags::EVAL)
    }

    /// Makes the elements constant after a rule uses the set.
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

    /// Sets the criterion for the implementation.
    #[must_use]
    pub fn with_policy(mut self, policy: SetPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Adds an expression to each element, such as a counter. Linux supports two at most.
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

    /// Returns the identification of the set for operations on its elements.
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
    /// Returns the identification of the set for requests of its elements.
    #[must_use]
    pub fn set_id(&self) -> SetId<'a> {
        SetId::new(self.family(), self.table(), self.name())
    }

    /// Returns `true` if the set is a map, to values, verdicts or objects.
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

/// Formats the line that `nft --debug=netlink list ruleset` prints above a set's elements (nft 1.0.6).
impl fmt::Display for SetRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, name) = (Escaped(self.table()), Escaped(self.name()));
        write!(f, "{} {table} @{name}", self.family())
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests;
