//! Padding before 64-bit numbers.
//!
//! A kernel for a machine that reads unaligned numbers slowly (without `CONFIG_HAVE_EFFICIENT_UNALIGNED_ACCESS`)
//! puts an empty attribute `NFTA_*_PAD` before a 64-bit number that would otherwise be unaligned in its datagram
//! (`nla_put_be64`). The padding depends on the message's offset and has no meaning.

use bstr::BStr;
use chainwright_sys::nf_tables::{NFTA_EXPR_DATA, NFTA_EXPR_NAME, NFTA_OBJ_TYPE};

use super::{AttributeNote, AttributeNotes, Field, has};
use crate::netlink::{Attribute, AttributeCursor, Attributes, FastPathMiss};
use crate::nft::expr::{ExpressionRef, MAX_DEPTH, ObjectType};
use crate::nft::{Counters, Element, Name, ObjectData};

/// Like [`Field::next`], but skips padding of this type before a 64-bit number.
#[inline(always)]
pub(in crate::nft) fn next_padded<'a, T: Field<'a>, const PADDING: u16>(
    attributes: &mut AttributeCursor<'a>,
    kind: u16,
) -> Result<Option<T::Parsed>, FastPathMiss> {
    match T::next(attributes, kind)? {
        None if T::WIDE && attributes.skip_empty(PADDING) => T::next(attributes, kind),
        found => Ok(found),
    }
}

/// The kinds of attribute lists, which determine the attributes that can contain padding.
#[derive(Clone, Copy)]
pub(in crate::nft) enum Padded {
    /// The attributes of a declared group.
    Group(&'static [AttributeNotes]),
    /// Expressions.
    Expressions,
    /// The name and the data of an expression.
    Expression,
    /// Elements.
    Elements,
}

/// The classification of an attribute by [`Padded`].
enum Part {
    Padding,
    Value,
    Nested(Padded),
}

impl Padded {
    /// Returns the same attributes without padding at any depth, or `None` if there is no padding.
    pub(in crate::nft) fn without_padding(self, bytes: &[u8]) -> Option<Vec<u8>> {
        // Elements hold expressions, which hold data.
        const DEPTH: usize = 2 * MAX_DEPTH + 4;
        self.is_in(bytes, DEPTH).then(|| {
            let mut out = Vec::with_capacity(bytes.len());
            self.write(bytes, DEPTH, &mut out);
            out
        })
    }

    fn is_in(self, bytes: &[u8], depth: usize) -> bool {
        let mut attributes = Attributes::new(bytes).map_while(Result::ok);
        attributes.any(|attribute| match self.part(bytes, &attribute) {
            Part::Padding => true,
            Part::Value => false,
            Part::Nested(inner) => depth > 0 && inner.is_in(attribute.payload, depth - 1),
        })
    }

    fn write(self, bytes: &[u8], depth: usize, out: &mut Vec<u8>) {
        let mut rest = bytes;
        for attribute in Attributes::new(bytes).map_while(Result::ok) {
            rest = &rest[attribute.raw.len()..];
            let start = out.len();
            match self.part(bytes, &attribute) {
                Part::Padding => {}
                Part::Nested(inner) if depth > 0 => {
                    out.extend_from_slice(&attribute.raw[..4]);
                    inner.write(attribute.payload, depth - 1, out);
                    let length = (out.len() - start) as u16; // not longer than the original
                    out[start..start + 2].copy_from_slice(&length.to_ne_bytes());
                    out.resize(out.len().next_multiple_of(4), 0);
                }
                Part::Value | Part::Nested(_) => out.extend_from_slice(attribute.raw),
            }
        }
        out.extend_from_slice(rest); // keep malformed attributes
    }

    fn part(self, all: &[u8], attribute: &Attribute<'_>) -> Part {
        let inner = match self {
            Self::Expressions => Self::Expression,
            Self::Elements => Self::Group(Element::ATTRIBUTE_NOTES),
            Self::Expression if attribute.kind == NFTA_EXPR_DATA => {
                let name = Attributes::new(all)
                    .find(NFTA_EXPR_NAME)
                    .and_then(Name::parse_payload);
                Self::Group(ExpressionRef::new(name.unwrap_or(BStr::new("")), &[]).known())
            }
            Self::Expression => return Part::Value,
            Self::Group(known) => {
                let notes = known.iter().find(|(kind, _)| *kind == attribute.kind);
                let has = |note| notes.is_some_and(|(_, notes)| has(notes, note));
                if has(AttributeNote::padding) {
                    return Part::Padding;
                } else if has(AttributeNote::expressions) {
                    Self::Expressions
                } else if has(AttributeNote::expression) {
                    Self::Expression
                } else if has(AttributeNote::elements) {
                    Self::Elements
                } else if has(AttributeNote::counters) {
                    Self::Group(Counters::ATTRIBUTE_NOTES)
                } else if has(AttributeNote::object) {
                    let object_type = Attributes::new(all).find(NFTA_OBJ_TYPE);
                    let object_type = object_type.and_then(ObjectType::decode);
                    Self::Group(ObjectData::known(object_type.unwrap_or_default()))
                } else {
                    return Part::Value;
                }
            }
        };
        Part::Nested(inner)
    }
}
