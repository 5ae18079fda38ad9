//! Elements of sets and maps.
//!
//! A message adds, deletes or lists many elements; besides them it contains only the names of the table and the set:
//!
//! ```text
//! NFTA_SET_ELEM_LIST_TABLE      string
//! NFTA_SET_ELEM_LIST_SET        string
//! NFTA_SET_ELEM_LIST_SET_ID     be32: id of a set of the same batch; only sent to the kernel
//! NFTA_SET_ELEM_LIST_ELEMENTS   nested
//!   NFTA_LIST_ELEM              nested: one element
//!     NFTA_SET_ELEM_KEY         nested: NFTA_DATA_VALUE
//!     …
//! ```
//!
//! An attribute holds at most 64 KiB, so many elements are split over several messages by
//! [`Transaction::add_elements`](super::Transaction::add_elements) and
//! [`Connection::elements`](super::Connection::elements). One message is an [`Elements`], read as an [`ElementsRef`].
//! Source: `linux/netfilter/nf_tables.h`.

use std::fmt;
use std::time::Duration;

use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nf_tables::{
    NFT_MSG_DELSETELEM, NFT_MSG_DESTROYSETELEM, NFT_MSG_GETSETELEM, NFT_MSG_NEWSETELEM,
    NFT_SET_ELEM_CATCHALL, NFT_SET_ELEM_INTERVAL_END, NFTA_LIST_ELEM, NFTA_SET_ELEM_DATA,
    NFTA_SET_ELEM_EXPIRATION, NFTA_SET_ELEM_EXPR, NFTA_SET_ELEM_EXPRESSIONS, NFTA_SET_ELEM_FLAGS,
    NFTA_SET_ELEM_KEY, NFTA_SET_ELEM_KEY_END, NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_ELEM_LIST_SET,
    NFTA_SET_ELEM_LIST_SET_ID, NFTA_SET_ELEM_LIST_TABLE, NFTA_SET_ELEM_OBJREF, NFTA_SET_ELEM_PAD,
    NFTA_SET_ELEM_TIMEOUT, NFTA_SET_ELEM_USERDATA,
};

use super::declare::{Field, Padded, attributes, flags, object};
use super::expr::{Data, Expression, Expressions, NestedExpression, Verdict};
use super::name::{Bytes, Name};
use super::object::{listed, written};
use super::rule::Userdata;
use super::userdata::{self, UserData, commented};
use super::{Family, Milliseconds};

mod key;

use crate::netlink::{Attributes, Malformed, MessageError, MessageWriter};
pub(super) use key::ElementKey;

flags! {
    /// Flags of an element (`enum nft_set_elem_flags`).
    pub struct ElementFlags: u32 {
        /// The key is the first one after the range that the preceding element begins.
        const INTERVAL_END = NFT_SET_ELEM_INTERVAL_END,
        /// Matches all keys that are not in the set; this element has no key.
        const CATCHALL = NFT_SET_ELEM_CATCHALL,
    }
}

attributes! {
    /// An element to be sent to the kernel: `enum nft_set_elem_attributes`.
    pub struct Element<'a>
    viewed as ElementRef, ("an element"), listed as [
        key, key_end, data, expression, expressions, object, flags, timeout, expiration, userdata
    ] => {
        /// Flags; the kernel omits them if there are none.
        NFTA_SET_ELEM_FLAGS => flags: ElementFlags [identity],
        /// Timeout, if it differs from the set's.
        NFTA_SET_ELEM_TIMEOUT => timeout: Milliseconds,
        /// Time left until the timeout.
        NFTA_SET_ELEM_EXPIRATION => expiration: Milliseconds [volatile],
        /// The key, or the first key of a range.
        NFTA_SET_ELEM_KEY => key: Data<'a> [identity],
        /// The last key of a range of concatenations.
        NFTA_SET_ELEM_KEY_END => key_end: Data<'a> [identity],
        /// The data of a map's element: a value or a verdict.
        NFTA_SET_ELEM_DATA => data: Data<'a>,
        /// Data stored by user space, opaque to the kernel: see [`userdata`](crate::nft::userdata).
        NFTA_SET_ELEM_USERDATA => userdata: Bytes<'a> [userdata],
        /// Name of the stateful object that a map has for the key.
        NFTA_SET_ELEM_OBJREF => object: Name<'a>,
        /// The only expression of the element, with its state.
        NFTA_SET_ELEM_EXPR => expression: NestedExpression<'a>,
        /// The expressions, if there are several.
        NFTA_SET_ELEM_EXPRESSIONS => expressions: Expressions<'a>,
        _ => NFTA_SET_ELEM_PAD,
    }
}

impl<'a> Element<'a> {
    /// Creates an element with this key, in the byte order of the set's keys.
    #[inline]
    #[must_use]
    pub fn new(key: impl Into<Bytes<'a>>) -> Self {
        Self {
            key: Some(Data::Value(key.into())),
            ..Self::default()
        }
    }

    /// Creates the element that matches all keys that are not in the set.
    #[must_use]
    pub fn catch_all() -> Self {
        Self {
            flags: Some(ElementFlags::CATCHALL),
            ..Self::default()
        }
    }

    /// Creates the end of a range: the first key after it.
    #[must_use]
    pub fn end(key: impl Into<Bytes<'a>>) -> Self {
        Self {
            flags: Some(ElementFlags::INTERVAL_END),
            ..Self::new(key)
        }
    }

    /// Creates the range from `start` up to but excluding `end`, for an interval set: two elements, to be added and
    /// deleted together. A map's data belongs in the first one.
    ///
    /// For a range up to the last value, which has no end, use [`open_interval`](Self::open_interval).
    #[must_use]
    pub fn interval(start: impl Into<Bytes<'a>>, end: impl Into<Bytes<'a>>) -> [Self; 2] {
        [Self::new(start), Self::end(end)]
    }

    /// Creates the range from `start` to the last value, for an interval set. It has no end element, so the kernel does
    /// not detect overlaps with it; [`Ranges`](super::Ranges) does.
    #[must_use]
    pub fn open_interval(start: impl Into<Bytes<'a>>) -> Self {
        Self::new(start).without_end()
    }

    /// Marks the range that this element begins as reaching to the last value.
    #[doc(hidden)]
    pub fn without_end(mut self) -> Self {
        let open = userdata::ELEMENT_OPEN_INTERVAL.to_ne_bytes();
        userdata::put(&mut self.userdata, userdata::ELEMENT_FLAGS, &open);
        self
    }

    /// Creates the range from `from` to `to`, both included, of concatenations; each field ranges separately.
    #[must_use]
    pub fn range(from: impl Into<Bytes<'a>>, to: impl Into<Bytes<'a>>) -> Self {
        Self {
            key_end: Some(Data::Value(to.into())),
            ..Self::new(from)
        }
    }

    /// Sets the map's data to this value.
    #[inline]
    #[must_use]
    pub fn with_data(mut self, value: impl Into<Bytes<'a>>) -> Self {
        self.data = Some(Data::Value(value.into()));
        self
    }

    /// Sets the map's data to this verdict.
    #[must_use]
    pub fn with_verdict(mut self, verdict: Verdict<'a>) -> Self {
        self.data = Some(Data::Verdict(verdict));
        self
    }

    /// Sets the map's data to the stateful object with this name.
    #[must_use]
    pub fn with_object(mut self, name: impl Into<Name<'a>>) -> Self {
        self.object = Some(name.into());
        self
    }

    /// Sets the timeout, with millisecond resolution.
    #[must_use]
    pub fn with_timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time.into());
        self
    }

    /// Adds an expression with its state. The set must have the same expressions, or none.
    #[must_use]
    pub fn with_expression(mut self, expression: &impl Expression) -> Self {
        match (&mut self.expressions, self.expression.take()) {
            (None, None) => self.expression = Some(NestedExpression::new(expression)),
            (several, first) => {
                let several = several.get_or_insert_default();
                if let Some(first) = first.as_ref().and_then(|first| first.decode().ok()) {
                    several.push_decoded(&first);
                }
                several.push(expression);
            }
        }
        self
    }
}

/// Encodes a concatenation: the fields in order, each padded with zeros to four bytes.
#[must_use]
pub fn concatenation<'f>(fields: impl IntoIterator<Item = &'f [u8]>) -> Vec<u8> {
    let mut key = Vec::new();
    for field in fields {
        key.extend_from_slice(field);
        key.resize(key.len().next_multiple_of(4), 0);
    }
    key
}

/// Identifies a set: its family, table and name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct SetId<'a> {
    /// Family of the table.
    pub family: Family,
    /// Name of the table.
    pub table: Name<'a>,
    /// Name of the set.
    pub set: Name<'a>,
    /// Id of the set in the same batch, which identifies an anonymous set.
    pub id: Option<u32>,
}

impl<'a> SetId<'a> {
    /// Identifies the set with this name.
    pub fn new(family: Family, table: impl Into<Name<'a>>, set: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            table: table.into(),
            set: set.into(),
            id: None,
        }
    }

    /// Writes the names for a request about all elements of the set, in nft's order.
    pub(super) fn write_for_all(&self, writer: &mut MessageWriter<'_>) {
        writer
            .string(NFTA_SET_ELEM_LIST_SET, &self.set)
            .string(NFTA_SET_ELEM_LIST_TABLE, &self.table);
        self.write_id(writer);
    }

    /// Writes the names.
    #[inline]
    pub(super) fn write(&self, writer: &mut MessageWriter<'_>) {
        writer
            .string(NFTA_SET_ELEM_LIST_TABLE, &self.table)
            .string(NFTA_SET_ELEM_LIST_SET, &self.set);
        self.write_id(writer);
    }

    #[inline]
    fn write_id(&self, writer: &mut MessageWriter<'_>) {
        if let Some(id) = self.id {
            writer.be32(NFTA_SET_ELEM_LIST_SET_ID, id);
        }
    }
}

commented!(Element as ElementRef, ELEMENT_COMMENT);

impl<'a> ElementRef<'a> {
    /// Returns the key's bytes; `None` for the catch-all element.
    #[inline]
    #[must_use]
    pub fn key_bytes(&self) -> Option<&'a [u8]> {
        self.key?.value()
    }

    /// Returns the bytes of the last key of a range.
    #[inline]
    #[must_use]
    pub fn key_end_bytes(&self) -> Option<&'a [u8]> {
        self.key_end?.value()
    }

    /// Returns the bytes of the map's data; `None` for a verdict.
    #[inline]
    #[must_use]
    pub fn data_bytes(&self) -> Option<&'a [u8]> {
        self.data?.value()
    }

    /// Returns `true` if the element matches all keys that are not in the set.
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.has(ElementFlags::CATCHALL)
    }

    /// Returns `true` if its key is the first one after a range.
    #[must_use]
    pub fn is_interval_end(&self) -> bool {
        self.has(ElementFlags::INTERVAL_END)
    }

    fn has(&self, flag: ElementFlags) -> bool {
        self.flags.is_some_and(|flags| flags.contains(flag))
    }

    /// Returns `true` if the range that it begins is marked, as by `nft`, as reaching to the last value.
    #[must_use]
    pub fn is_open_interval(&self) -> bool {
        let flags = self
            .userdata
            .and_then(|data| UserData::new(data).number(userdata::ELEMENT_FLAGS));
        flags.is_some_and(|flags| flags & userdata::ELEMENT_OPEN_INTERVAL != 0)
    }
}

/// The encoded elements of one message: borrowed from a message, or under construction.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ElementList<'a> {
    bytes: Bytes<'a>,
    error: Option<Box<MessageError>>,
}

impl<'a> ElementList<'a> {
    /// Wraps an encoded list, as contained in a listed message. [`iter`](Self::iter) reports malformed elements.
    #[must_use]
    pub const fn of_bytes(bytes: &'a [u8]) -> Self {
        Self {
            bytes: Bytes::borrowed(bytes),
            error: None,
        }
    }

    /// Appends an element. A list that is too long for a message causes an error when it is added to a transaction;
    /// [`Transaction::add_elements`](super::Transaction::add_elements) accepts any number of elements.
    pub fn push(&mut self, element: &Element<'_>) -> &mut Self {
        let bytes = self.bytes.to_mut();
        bytes.resize(bytes.len().next_multiple_of(4), 0); // the last element may lack its padding
        let mut writer = MessageWriter::bare(bytes);
        element.encode(&mut writer, NFTA_LIST_ELEM);
        if let Err(error) = writer.finish_bare() {
            self.error.get_or_insert_with(|| Box::new(error));
        }
        self
    }

    /// Iterates over the elements, in order.
    #[must_use]
    pub fn iter(&self) -> ElementIter<'_> {
        ElementIter(Attributes::new(&self.bytes))
    }
}

impl<'a> Extend<Element<'a>> for ElementList<'_> {
    fn extend<I: IntoIterator<Item = Element<'a>>>(&mut self, elements: I) {
        for element in elements {
            self.push(&element);
        }
    }
}

impl<'a> FromIterator<Element<'a>> for ElementList<'static> {
    fn from_iter<I: IntoIterator<Item = Element<'a>>>(elements: I) -> Self {
        let mut list = Self::default();
        list.extend(elements);
        list
    }
}

impl<'l> IntoIterator for &'l ElementList<'_> {
    type Item = Result<ElementRef<'l>, Malformed>;
    type IntoIter = ElementIter<'l>;
    fn into_iter(self) -> ElementIter<'l> {
        self.iter()
    }
}

impl fmt::Debug for ElementList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An iterator over the elements of one message; ends after a [`Malformed`].
#[derive(Debug, Clone)]
pub struct ElementIter<'a>(Attributes<'a>);

impl<'a> Iterator for ElementIter<'a> {
    type Item = Result<ElementRef<'a>, Malformed>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.at_end() {
            return None;
        }
        // Where the kernel writes NFTA_LIST_ELEM, `nft` writes consecutive numbers, so the type is ignored.
        let element = self
            .0
            .advance()
            .and_then(|(_, element)| ElementRef::parse(element));
        if element.is_err() {
            self.0 = Attributes::new(&[]);
        }
        Some(element)
    }
}

impl<'a> Field<'a> for ElementList<'a> {
    type Parsed = &'a [u8];
    type View = ElementIter<'a>;
    type Static = ElementList<'static>;

    #[inline(always)]
    fn parse_payload(payload: &'a [u8]) -> Option<&'a [u8]> {
        Some(payload) // the iterator reports malformed elements
    }
    #[inline(always)]
    fn view(parsed: &'a [u8]) -> ElementIter<'a> {
        ElementIter(Attributes::new(parsed))
    }
    fn value(parsed: &'a [u8]) -> Self {
        match Padded::Elements.without_padding(parsed) {
            None => Self::of_bytes(parsed),
            Some(bytes) => Self {
                bytes: bytes.into(),
                error: None,
            },
        }
    }
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        if let Some(error) = &self.error {
            writer.fail(error);
        }
        writer.bytes(kind | NLA_F_NESTED, &self.bytes);
    }
    fn into_static(self) -> ElementList<'static> {
        ElementList {
            bytes: self.bytes.into_owned(),
            error: self.error,
        }
    }
}

object! {
    /// Elements of a set, as many as fit into one message: `enum nft_set_elem_list_attributes`.
    pub struct Elements viewed as ElementsRef, "elements" {
        /// Name of the set's table.
        NFTA_SET_ELEM_LIST_TABLE => table: Name<'a> [required, table],
        /// Name of the set.
        NFTA_SET_ELEM_LIST_SET => set: Name<'a> [required, set],
        /// The elements.
        NFTA_SET_ELEM_LIST_ELEMENTS => elements: ElementList<'a>,
        /// Id of the set in the same batch.
        NFTA_SET_ELEM_LIST_SET_ID => set_id: u32 [request_only, identity],
    }
}

written!(
    Elements,
    "element",
    [NFT_MSG_NEWSETELEM, NFT_MSG_GETSETELEM, NFT_MSG_DELSETELEM, NFT_MSG_DESTROYSETELEM],
    identity: |this, writer| {
        // Without a list the message would mean all elements of the set; an empty list means none.
        writer.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |writer| {
            for element in this.elements.iter().flatten().map_while(Result::ok) {
                let element = element.to_builder();
                writer.nested(NFTA_LIST_ELEM, |writer| element.write_named(writer));
            }
        });
    }
);

listed!(
    Elements as ElementsRef by Scope,
    "list elements",
    BY_KERNEL = true,
    CHANGES_ARE_MARKED = false
);

/// Returns the byte range of the elements within the payload of a listed message.
#[inline(always)]
pub(super) fn span_of_list(payload: &[u8]) -> Result<std::ops::Range<usize>, Malformed> {
    let list = ElementsRef::of_payload(payload)?.elements;
    Ok(match list {
        Some(list) => {
            let start = list.as_ptr() as usize - payload.as_ptr() as usize;
            start..start + list.len()
        }
        None => 0..0,
    })
}

/// The bytecode line of an element.
struct Line<'l> {
    key: Option<&'l [u8]>,
    key_end: Option<&'l [u8]>,
    data: Option<Data<'l>>,
    flags: Option<ElementFlags>,
    userdata: Option<&'l [u8]>,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| {
            bytes.chunks(4).try_for_each(|chunk| {
                let mut word = [0; 4];
                word[..chunk.len()].copy_from_slice(chunk);
                write!(f, "{:08x} ", u32::from_ne_bytes(word))
            })
        };
        f.write_str("element ")?;
        words(f, self.key.unwrap_or_default())?;
        if let Some(key_end) = self.key_end {
            f.write_str(" - ")?;
            words(f, key_end)?;
        }
        f.write_str(" : ")?;
        match &self.data {
            None => {}
            Some(Data::Value(value)) => words(f, value)?,
            Some(Data::Verdict(verdict)) => write!(f, "{verdict} ")?,
            Some(Data::Opaque(bytes)) => write!(f, "{bytes} ")?,
        }
        let flags = self.flags.unwrap_or_default().bits();
        write!(f, "{flags} [end]")?;
        if let Some(userdata) = self.userdata {
            write!(f, "  userdata = {{ {} }}", Userdata(userdata))?;
        }
        Ok(())
    }
}

/// Formats the element like `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4), without the leading tab.
impl fmt::Display for ElementRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Line {
            key: self.key_bytes(),
            key_end: self.key_end_bytes(),
            data: self.data(),
            flags: self.flags,
            userdata: self.userdata,
        }
        .fmt(f)
    }
}

/// Formats the element like [`ElementRef`].
impl fmt::Display for Element<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Line {
            key: self.key.as_ref().and_then(Data::as_value),
            key_end: self.key_end.as_ref().and_then(Data::as_value),
            data: self.data.clone(),
            flags: self.flags,
            userdata: self.userdata.as_deref(),
        }
        .fmt(f)
    }
}

#[cfg(feature = "serde")]
mod serial {
    use serde::ser::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Element, ElementList};

    /// Serializes as a list of typed elements.
    impl Serialize for ElementList<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if let Some(error) = &self.error {
                return Err(S::Error::custom(error));
            }
            let elements: Result<Vec<_>, _> =
                self.iter().map(|e| e.map(|e| e.to_builder())).collect();
            serializer.collect_seq(elements.map_err(S::Error::custom)?)
        }
    }

    impl<'de> Deserialize<'de> for ElementList<'_> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Ok(Vec::<Element<'_>>::deserialize(deserializer)?
                .into_iter()
                .collect())
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests;
