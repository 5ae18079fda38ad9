//! What there is to be looked at, by its names: for text and for JSON.

use super::error::Fault;
use crate::headers::{self, Extension, Field, Protocol};
use crate::keys;
use crate::syntax::{Expr, OptionField, Payload, Place};
use crate::types;
use chainwright::nft::expr::{CtKey, ExthdrOp, FibFlags, FibResult, MetaKey, PayloadBase};
use chainwright::nft::{DataType, Family};

/// How many keys each kind of them has at most.
const MOST_KEYS: u32 = 64;

/// All keys of the packet's own data, by their names without `meta`.
pub(crate) fn meta_names() -> impl Iterator<Item = (&'static str, MetaKey)> {
    (0..MOST_KEYS).map(MetaKey).filter_map(|key| {
        let name = keys::meta(key)?.name;
        Some((name.strip_prefix("meta ").unwrap_or(name), key))
    })
}

/// The key of the packet's own data that a word is, of which some are called otherwise too.
pub(crate) fn meta_key(word: &str) -> Option<MetaKey> {
    let word = match word {
        "ibriport" => "ibrname",
        "obriport" => "obrname",
        "secpath" => "ipsec",
        word => word,
    };
    let found = meta_names().find(|(name, _)| *name == word);
    found.map(|(_, key)| key)
}

/// All keys of a packet's connection.
pub(crate) fn ct_names() -> impl Iterator<Item = (&'static str, CtKey)> {
    let keys = (0..MOST_KEYS).map(CtKey);
    keys.filter_map(|key| Some((keys::ct(key, None)?.name, key)))
}

/// The key of a packet's connection that a word is, of which some are called otherwise too.
pub(crate) fn ct_key(word: &str) -> Option<CtKey> {
    let word = match word {
        "labels" => "label",
        "l4proto" => "protocol",
        word => word,
    };
    let found = ct_names().find(|(name, _)| *name == word);
    found.map(|(_, key)| key)
}

/// Whether each direction of a connection has its own.
pub(crate) const fn needs_direction(key: CtKey) -> bool {
    matches!(
        key,
        CtKey::SRC | CtKey::DST | CtKey::PROTO_SRC | CtKey::PROTO_DST
    )
}

/// That it is not said of which direction something is meant.
pub(crate) fn without_direction(word: &str, place: Place) -> Fault {
    Fault::new(
        place,
        format!("`{word}` is of one direction of a connection"),
    )
}

/// The version of the addresses that a key is asked for in tables of a family.
pub(crate) const fn version_in(family: Family, key: CtKey) -> Option<Family> {
    match (key, family) {
        (CtKey::SRC | CtKey::DST, Family::IP | Family::IP6) => Some(family),
        _ => None,
    }
}

/// The names of a protocol's fields, as far as they are one word.
pub(crate) fn field_names(protocol: &'static Protocol) -> impl Iterator<Item = &'static str> {
    protocol.fields.iter().map(|field| field.name)
}

/// The protocol of a name.
pub(crate) fn protocol(name: &str) -> Option<&'static Protocol> {
    headers::PROTOCOLS
        .iter()
        .copied()
        .find(|protocol| protocol.name == name)
}

/// The port of any protocol that stands at this place.
pub(crate) fn port_at(offset: u32, bits: u32) -> Option<(&'static Protocol, usize)> {
    let mut fields = headers::TH.fields.iter();
    let index = fields.position(|field| field.offset == offset && field.bits == bits)?;
    Some((&headers::TH, index))
}

/// So many bits, if a field can have them.
pub(crate) fn bits_of_field(bits: u32, place: Place) -> Result<u32, Fault> {
    const MOST: u32 = 2048;
    match bits {
        1..=MOST => Ok(bits),
        _ => Err(Fault::new(
            place,
            format!("a field has from 1 to {MOST} bits"),
        )),
    }
}

/// Bits of the packet by their place; ports are ports, however they are written.
pub(crate) fn raw(base: PayloadBase, offset: u32, bits: u32) -> Payload {
    Payload {
        base,
        offset,
        bits,
        field: match base {
            PayloadBase::TRANSPORT => port_at(offset, bits),
            _ => None,
        },
        tunnel: None,
    }
}

/// What the routing tables are asked for.
pub(crate) const FIB_RESULTS: [&str; 4] = ["oif", "oifname", "type", "check"];

/// What is looked up in the routing tables, for one of these words.
pub(crate) fn fib_of(flags: FibFlags, result: &str) -> Expr {
    match result {
        "oif" => Expr::Fib(flags, FibResult::OIF),
        "oifname" => Expr::Fib(flags, FibResult::OIFNAME),
        "type" => Expr::Fib(flags, FibResult::ADDRTYPE),
        _ => Expr::Fib(flags | FibFlags::PRESENT, FibResult::OIF),
    }
}

/// The field of a protocol that has this number among them.
pub(crate) fn field_of(protocol: &'static Protocol, index: usize) -> Payload {
    let field = &protocol.fields[index];
    Payload {
        base: protocol.base,
        offset: field.offset,
        bits: field.bits,
        field: Some((protocol, index)),
        tunnel: None,
    }
}

/// An option of TCP by its number and a place in it.
pub(crate) fn raw_option(number: u8, offset: u32, bits: u32) -> OptionField {
    let named = headers::extension(ExthdrOp::TCPOPT, number, offset, bits);
    OptionField {
        extension: named.unwrap_or(&headers::NAMELESS_TCP),
        number,
        offset,
        bits,
        presence: false,
    }
}

/// The options, headers or chunks of a kind.
pub(crate) fn extensions(kind: ExthdrOp) -> impl Iterator<Item = &'static Extension> {
    headers::EXTENSIONS
        .iter()
        .filter(move |extension| extension.kind == kind)
}

/// The option, header or chunk of a name, which some are called otherwise too.
pub(crate) fn extension(kind: ExthdrOp, name: &str) -> Option<&'static Extension> {
    let name = match (kind, name) {
        (ExthdrOp::TCPOPT, "noop") => "nop",
        (ExthdrOp::TCPOPT, "mss") => "maxseg",
        (ExthdrOp::TCPOPT, "sack-permitted") => "sack-perm",
        (ExthdrOp::TCPOPT, "sack0") => "sack",
        (_, name) => name,
    };
    extensions(kind).find(|extension| extension.name == name)
}

/// A field of an option, a header or a chunk.
pub(crate) const fn option_of(extension: &'static Extension, field: &Field) -> Expr {
    Expr::Option(OptionField {
        extension,
        number: extension.number,
        offset: field.offset,
        bits: field.bits,
        presence: false,
    })
}

/// The types of values by their names.
pub(crate) fn type_names() -> impl Iterator<Item = (&'static str, DataType)> {
    const MOST: u32 = 64;
    (0..MOST).map(DataType).filter_map(|data_type| {
        let info = types::info(data_type)?;
        Some((info.name, data_type))
    })
}

/// Whether an option, a header or a chunk is there.
pub(crate) fn presence(extension: &'static Extension, number: u8) -> Expr {
    Expr::Option(OptionField {
        extension,
        number,
        offset: 0,
        bits: 8,
        presence: true,
    })
}
