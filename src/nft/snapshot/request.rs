//! Converts listed attributes into the form that the kernel accepts.
//!
//! - Expressions have attributes that the kernel only lists
//!   ([`ExpressionRef::to_request`](crate::nft::expr::ExpressionRef::to_request)).
//! - The used amount of a quota is removed. A tunnel's Geneve options get the flag for nested attributes
//!   (`NLA_F_NESTED`), which the kernel doesn't list, but requires. They are the only attributes of nf_tables that
//!   require this flag (`strict_start_type` in `nft_tunnel.c`).

use std::borrow::Cow;

use chainwright_sys::nf_tables::{
    NFT_OBJECT_QUOTA, NFT_OBJECT_TUNNEL, NFTA_OBJ_DATA, NFTA_OBJ_TYPE, NFTA_SET_ID, NFTA_SET_NAME,
    NFTA_TUNNEL_KEY_OPTS, NFTA_TUNNEL_KEY_OPTS_GENEVE,
};

use crate::netlink::{Attribute, Attributes, MessageWriter};
use crate::nft::declare::{AttributeNote, AttributeNotes, AttributeSet, Field, Padded};
use crate::nft::expr::{Expressions, NestedExpression, Quota};
use crate::nft::{Set, StatefulObject};
use bstr::BStr;

/// Returns the attributes of a group without padding.
pub(super) fn without_padding<'b>(
    attributes: &'b [u8],
    known: &'static [AttributeNotes],
) -> Cow<'b, [u8]> {
    match Padded::Group(known).without_padding(attributes) {
        Some(stripped) => Cow::Owned(stripped),
        None => Cow::Borrowed(attributes),
    }
}

/// Appends all attributes but some, unchanged.
pub(super) fn copy_attributes(
    writer: &mut MessageWriter<'_>,
    attributes: &[u8],
    without: AttributeSet,
) {
    for attribute in Attributes::new(attributes).map_while(Result::ok) {
        if !without.contains(attribute.kind) {
            writer.encoded(attribute.raw);
        }
    }
}

/// Appends the attributes of a stateful object.
pub(super) fn copy_object(writer: &mut MessageWriter<'_>, attributes: &[u8]) {
    let attributes = &without_padding(attributes, StatefulObject::ATTRIBUTE_NOTES);
    let object_type = Attributes::new(attributes).find(NFTA_OBJ_TYPE);
    let object_type: Option<u32> = object_type.and_then(Field::decode);
    for attribute in Attributes::new(attributes).map_while(Result::ok) {
        const KERNEL_SET: AttributeSet = AttributeSet::kernel_set(StatefulObject::ATTRIBUTE_NOTES);
        match (attribute.kind, object_type) {
            (kind, _) if KERNEL_SET.contains(kind) => {}
            (NFTA_OBJ_DATA, Some(NFT_OBJECT_QUOTA)) => match Quota::decode(attribute.payload) {
                Some(listed) => listed.into_request().encode(writer, NFTA_OBJ_DATA),
                None => _ = writer.encoded(attribute.raw),
            },
            (NFTA_OBJ_DATA, Some(NFT_OBJECT_TUNNEL)) => copy_tunnel(writer, &attribute),
            _ => _ = writer.encoded(attribute.raw),
        }
    }
}

/// Appends a tunnel, with the nested flag for its Geneve options.
fn copy_tunnel(writer: &mut MessageWriter<'_>, tunnel: &Attribute<'_>) {
    writer.nested(tunnel.kind, |writer| {
        for part in Attributes::new(tunnel.payload).map_while(Result::ok) {
            if part.kind != NFTA_TUNNEL_KEY_OPTS {
                writer.encoded(part.raw);
                continue;
            }
            writer.nested(part.kind, |writer| {
                for option in Attributes::new(part.payload).map_while(Result::ok) {
                    match option.kind {
                        NFTA_TUNNEL_KEY_OPTS_GENEVE => {
                            writer.nested(option.kind, |writer| _ = writer.encoded(option.payload));
                        }
                        _ => _ = writer.encoded(option.raw),
                    }
                }
            });
        }
    });
}

/// Appends the attributes of a set, with an ID in this transaction, and optionally another name.
pub(super) fn copy_set(
    writer: &mut MessageWriter<'_>,
    attributes: &[u8],
    id: u32,
    name: Option<&BStr>,
) {
    let attributes = &without_padding(attributes, Set::ATTRIBUTE_NOTES);
    for attribute in Attributes::new(attributes).map_while(Result::ok) {
        const KERNEL_SET: AttributeSet = AttributeSet::kernel_set(Set::ATTRIBUTE_NOTES);
        const EXPRESSIONS: HoldingExpressions = HoldingExpressions::of(Set::ATTRIBUTE_NOTES);
        match (attribute.kind, name) {
            (kind, _) if KERNEL_SET.contains(kind) => {}
            (NFTA_SET_NAME, Some(name)) => _ = writer.string(NFTA_SET_NAME, name),
            _ => copy_with_expressions(writer, &attribute, EXPRESSIONS),
        }
    }
    writer.be32(NFTA_SET_ID, id);
}

/// Returns the listed expressions of an attribute in the form that the kernel accepts, if it differs from the listed
/// form.
pub(super) fn request_of_list(payload: &[u8]) -> Option<Expressions<'static>> {
    let listed = Expressions::decode(payload)?;
    let request = listed.to_request();
    request.or_else(|| (listed.as_bytes() != payload).then(|| listed.into_static()))
}

/// The attributes that contain expressions.
#[derive(Clone, Copy)]
pub(super) struct HoldingExpressions {
    one: AttributeSet,
    list: AttributeSet,
}

impl HoldingExpressions {
    pub(super) const fn of(known: &[AttributeNotes]) -> Self {
        Self {
            one: AttributeSet::noted(known, &[AttributeNote::expression]),
            list: AttributeSet::noted(known, &[AttributeNote::expressions]),
        }
    }
}

/// Appends an attribute of an element or set; converts expressions to the form that the kernel accepts.
pub(super) fn copy_with_expressions(
    writer: &mut MessageWriter<'_>,
    attribute: &Attribute<'_>,
    holding: HoldingExpressions,
) {
    let kind = attribute.kind;
    if holding.list.contains(kind)
        && let Some(request) = request_of_list(attribute.payload)
    {
        request.encode(writer, kind);
    } else if holding.one.contains(kind)
        && let Some(nested) = <NestedExpression<'_> as Field>::decode(attribute.payload)
        && let Some(request) = nested.get().ok().and_then(|listed| listed.to_request())
    {
        NestedExpression::of_decoded(&request).encode(writer, kind);
    } else {
        writer.encoded(attribute.raw);
    }
}
