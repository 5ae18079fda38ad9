//! The list of expressions of a rule.

use bstr::BStr;
use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nf_tables::{NFTA_EXPR_NAME, NFTA_LIST_ELEM};

use super::{Decoded, Expression, ExpressionRef, write_data};
use crate::netlink::{AttributeCursor, Attributes, Malformed, MessageError, MessageWriter};
use crate::nft::declare::{Field, Padded};
use crate::nft::name::Bytes;

/// A rule's list of expressions, encoded: borrowed from a message, or under construction.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Expressions<'a> {
    bytes: Bytes<'a>,
    pub(super) error: Option<Box<MessageError>>,
}

impl<'a> Expressions<'a> {
    /// Creates an empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: Bytes::borrowed(&[]),
            error: None,
        }
    }

    /// Creates a list from its encoding, as in [`as_bytes`](Self::as_bytes) and in a listed rule. [`iter`](Self::iter)
    /// reports malformed bytes.
    #[must_use]
    pub const fn of_bytes(bytes: &'a [u8]) -> Self {
        Self {
            bytes: Bytes::borrowed(bytes),
            error: None,
        }
    }

    /// Appends an expression. If it is too long for its attribute, adding the rule to a transaction fails.
    pub fn push<E: Expression>(&mut self, expression: &E) -> &mut Self {
        self.append(E::NAME.into(), |writer| write_data(expression, writer))
    }

    /// Returns the list for appending: bytes that were read may lack the padding of the last element.
    #[inline]
    fn aligned(&mut self) -> &mut Vec<u8> {
        let bytes = self.bytes.to_mut();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn append(&mut self, name: &BStr, data: impl FnOnce(&mut MessageWriter<'_>)) -> &mut Self {
        let mut writer = MessageWriter::bare(self.aligned());
        writer.nested(NFTA_LIST_ELEM, |writer| {
            writer.string(NFTA_EXPR_NAME, name);
            data(writer);
        });
        if let Err(error) = writer.finish_bare() {
            self.error.get_or_insert_with(|| Box::new(error));
        }
        self
    }

    /// Appends a typed expression of any kind.
    pub fn push_decoded(&mut self, expression: &Decoded<'_>) -> &mut Self {
        self.append(expression.name(), |writer| expression.write_data(writer))
    }

    /// Appends an expression as received from the kernel, byte for byte.
    pub fn push_raw(&mut self, expression: &ExpressionRef<'_>) -> &mut Self {
        self.aligned().extend_from_slice(expression.raw);
        self.aligned();
        self
    }

    /// Returns the list with each expression in its normal form, after a change. Expressions that cannot be decoded
    /// remain unchanged.
    pub(in crate::nft) fn normal_with(
        &self,
        mut change: impl FnMut(&mut Decoded<'_>),
    ) -> Expressions<'static> {
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut writer = MessageWriter::bare(&mut bytes).without_nested_flag();
        let mut error = self.error.clone();
        for attribute in Attributes::new(&self.bytes).map_while(Result::ok) {
            let expression = (attribute.kind == NFTA_LIST_ELEM)
                .then(|| ExpressionRef::read(attribute.payload, attribute.raw).ok());
            match expression.flatten().map(|expression| expression.decode()) {
                Some(Ok(mut decoded)) => {
                    change(&mut decoded);
                    decoded.normalize();
                    writer.nested(NFTA_LIST_ELEM, |writer| decoded.write_listed(writer));
                }
                _ => _ = writer.encoded(attribute.raw),
            }
        }
        if let Err(too_long) = writer.finish_bare() {
            error.get_or_insert_with(|| Box::new(too_long));
        }
        Expressions {
            bytes: bytes.into(),
            error,
        }
    }

    /// Removes all expressions and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.to_mut().clear();
        self.error = None;
    }

    /// Returns the encoded list.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Iterates over the expressions in order.
    #[must_use]
    pub fn iter(&self) -> ExpressionIter<'_> {
        ExpressionIter::new(&self.bytes)
    }
}

impl std::fmt::Debug for Expressions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|e| e.and_then(|e| e.decode())))
            .finish()
    }
}

/// An iterator over the expressions of a rule, in order; it ends after a [`Malformed`].
#[derive(Debug, Clone)]
pub struct ExpressionIter<'a>(AttributeCursor<'a>);

impl<'a> ExpressionIter<'a> {
    #[doc(hidden)]
    #[inline(always)]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(AttributeCursor::new(bytes))
    }

    /// Parses an element that doesn't have the kernel's usual form.
    #[cold]
    fn next_uncommon(&mut self) -> Option<Result<ExpressionRef<'a>, Malformed>> {
        let mut attributes = Attributes::new(self.0.rest());
        let found = loop {
            match attributes.next()? {
                Ok(attribute) if attribute.kind == NFTA_LIST_ELEM => {
                    break ExpressionRef::read(attribute.payload, attribute.raw);
                }
                Ok(_) => {}
                Err(malformed) => break Err(malformed),
            }
        };
        let rest = if found.is_ok() {
            attributes.rest()
        } else {
            &[]
        };
        self.0 = AttributeCursor::new(rest);
        Some(found)
    }
}

impl<'a> Iterator for ExpressionIter<'a> {
    type Item = Result<ExpressionRef<'a>, Malformed>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.at_end() {
            return None;
        }
        let before = self.0;
        if let Some((raw, element)) = self.0.unpadded(NFTA_LIST_ELEM)
            && let Some(expression) = ExpressionRef::as_listed(element, raw)
        {
            return Some(Ok(expression));
        }
        self.0 = before;
        // Copied field by field, so that the values of the common case above can stay in registers.
        Some(match self.next_uncommon()? {
            Ok(ExpressionRef {
                name,
                attributes,
                raw,
                kind,
            }) => Ok(ExpressionRef {
                name,
                attributes,
                raw,
                kind,
            }),
            Err(malformed) => Err(malformed),
        })
    }
}

impl<'a> Field<'a> for Expressions<'a> {
    type Parsed = &'a [u8];
    type View = ExpressionIter<'a>;
    type Static = Expressions<'static>;

    #[inline]
    fn parse_payload(payload: &'a [u8]) -> Option<&'a [u8]> {
        Some(payload) // an iterator reports malformed elements
    }
    #[inline]
    fn view(parsed: &'a [u8]) -> ExpressionIter<'a> {
        ExpressionIter::new(parsed)
    }
    #[inline]
    fn value(parsed: &'a [u8]) -> Self {
        match Padded::Expressions.without_padding(parsed) {
            None => Self::of_bytes(parsed),
            Some(bytes) => Self {
                bytes: bytes.into(),
                error: None,
            },
        }
    }
    #[inline]
    fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        if let Some(error) = &self.error {
            writer.fail(error);
        }
        writer.bytes(kind | NLA_F_NESTED, &self.bytes);
    }
    fn into_static(self) -> Expressions<'static> {
        Expressions {
            bytes: self.bytes.into_owned(),
            error: self.error,
        }
    }
    fn normalize(&mut self) {
        *self = self.normal_with(|_| {});
    }
}
