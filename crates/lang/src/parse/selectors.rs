//! Selectors by name, for text and JSON.

use super::error::Diagnostic;
use crate::protocols::{self, Extension, Field, Protocol};
use crate::selectors;
use crate::syntax::{Expr, OptionField, Payload, Span};
use crate::types;
use chainwright::nft::expr::{CtKey, ExthdrOp, FibFlags, FibResult, MetaKey, PayloadBase};
use chainwright::nft::{DataType, Family};

/// Upper bound for key numbers.
const MAX_KEYS: u32 = 64;

/// Returns all `meta` keys, by their names without `meta`.
pub(crate) fn meta_names() -> impl Iterator<Item = (&'static str, MetaKey)> {
    (0..MAX_KEYS).map(MetaKey).filter_map(|key| {
        let name = selectors::meta(key)?.name;
        Some((name.strip_prefix("meta ").unwrap_or(name), key))
    })
}

/// Returns a `meta` key by its name or alias.
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

/// Returns all `ct` keys, by name.
pub(crate) fn ct_names() -> impl Iterator<Item = (&'static str, CtKey)> {
    let keys = (0..MAX_KEYS).map(CtKey);
    keys.filter_map(|key| Some((selectors::ct(key, None)?.name, key)))
}

/// Returns a `ct` key by its name or alias.
pub(crate) fn ct_key(word: &str) -> Option<CtKey> {
    let word = match word {
        "labels" => "label",
        "l4proto" => "protocol",
        word => word,
    };
    let found = ct_names().find(|(name, _)| *name == word);
    found.map(|(_, key)| key)
}

/// Returns `true` if the key exists for each direction of a connection.
pub(crate) const fn needs_direction(key: CtKey) -> bool {
    matches!(
        key,
        CtKey::SRC | CtKey::DST | CtKey::PROTO_SRC | CtKey::PROTO_DST
    )
}

/// Creates the error that a direction is missing.
pub(crate) fn without_direction(word: &str, span: Span) -> Diagnostic {
    Diagnostic::new(span, format!("`{word}` needs a direction"))
}

/// Returns the IP version of an address key in tables of a family.
pub(crate) const fn version_in(family: Family, key: CtKey) -> Option<Family> {
    match (key, family) {
        (CtKey::SRC | CtKey::DST, Family::IP | Family::IP6) => Some(family),
        _ => None,
    }
}

/// Returns the names of a protocol's fields.
pub(crate) fn field_names(protocol: &'static Protocol) -> impl Iterator<Item = &'static str> {
    protocol.fields.iter().map(|field| field.name)
}

/// Returns the protocol of this name.
pub(crate) fn protocol(name: &str) -> Option<&'static Protocol> {
    protocols::PROTOCOLS
        .iter()
        .copied()
        .find(|protocol| protocol.name == name)
}

/// Returns the transport protocol port at this position.
pub(crate) fn port_at(offset: u32, bits: u32) -> Option<(&'static Protocol, usize)> {
    let mut fields = protocols::TH.fields.iter();
    let index = fields.position(|field| field.offset == offset && field.bits == bits)?;
    Some((&protocols::TH, index))
}

/// Checks the number of bits of a field.
pub(crate) fn bits_of_field(bits: u32, span: Span) -> Result<u32, Diagnostic> {
    const MAX_VALUE: u32 = 2048;
    match bits {
        1..=MAX_VALUE => Ok(bits),
        _ => Err(Diagnostic::new(
            span,
            format!("a field has 1 to {MAX_VALUE} bits"),
        )),
    }
}

/// Creates a raw payload expression. Positions of ports become port fields.
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

/// Results of `fib` expressions.
pub(crate) const FIB_RESULTS: [&str; 4] = ["oif", "oifname", "type", "check"];

/// Creates the `fib` expression for one of these results.
pub(crate) fn fib_of(flags: FibFlags, result: &str) -> Expr {
    match result {
        "oif" => Expr::Fib(flags, FibResult::OIF),
        "oifname" => Expr::Fib(flags, FibResult::OIFNAME),
        "type" => Expr::Fib(flags, FibResult::ADDRTYPE),
        _ => Expr::Fib(flags | FibFlags::PRESENT, FibResult::OIF),
    }
}

/// Returns a field of a protocol by index.
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

/// Creates a raw TCP option expression.
pub(crate) fn raw_option(number: u8, offset: u32, bits: u32) -> OptionField {
    let named = protocols::extension(ExthdrOp::TCPOPT, number, offset, bits);
    OptionField {
        extension: named.unwrap_or(&protocols::NAMELESS_TCP),
        number,
        offset,
        bits,
        presence: false,
    }
}

/// Returns all options, extension headers or chunks of a kind.
pub(crate) fn extensions(kind: ExthdrOp) -> impl Iterator<Item = &'static Extension> {
    protocols::EXTENSIONS
        .iter()
        .filter(move |extension| extension.kind == kind)
}

/// Returns an option, extension header or chunk by its name or alias.
pub(crate) fn extension(kind: ExthdrOp, name: &str) -> Option<&'static Extension> {
    let name = match (kind, name) {
        (ExthdrOp::TCPOPT, "noop") => "nop",
        (ExthdrOp::TCPOPT, "mss") => "maxseg",
        (ExthdrOp::TCPOPT, "echo") => "timestamp",
        (ExthdrOp::TCPOPT, "sack-permitted") => "sack-perm",
        (ExthdrOp::TCPOPT, "sack0") => "sack",
        (_, name) => name,
    };
    extensions(kind).find(|extension| extension.name == name)
}

/// Creates an expression for a field of an option, extension header or chunk.
pub(crate) const fn option_of(extension: &'static Extension, field: &Field) -> Expr {
    Expr::Option(OptionField {
        extension,
        number: extension.number,
        offset: field.offset,
        bits: field.bits,
        presence: false,
    })
}

/// Returns all data types, by name.
pub(crate) fn type_names() -> impl Iterator<Item = (&'static str, DataType)> {
    const MAX_VALUE: u32 = 64;
    (0..MAX_VALUE).map(DataType).filter_map(|data_type| {
        let info = types::info(data_type)?;
        Some((info.name, data_type))
    })
}

/// Creates a test whether an option, extension header or chunk exists.
pub(crate) fn presence(extension: &'static Extension, number: u8) -> Expr {
    Expr::Option(OptionField {
        extension,
        number,
        offset: 0,
        bits: 8,
        presence: true,
    })
}
