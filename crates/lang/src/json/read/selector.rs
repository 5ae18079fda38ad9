//! Reads selectors that are the same for all families.

use super::expr::VERSIONS;
use super::fields::Fields;
use super::node::{Kind, Node};
use crate::parse::Diagnostic;
use crate::parse::selectors::{
    FIB_RESULTS, bits_of_field, extension, extensions, fib_of, field_names, field_of, meta_key,
    meta_names, option_of, presence, protocol, raw, raw_option,
};
use crate::protocols;
use crate::syntax::Expr;
use crate::tunnels;
use chainwright::nft::expr::{
    ExthdrOp, FibFlags, NumgenType, OsfTtl, PayloadBase, SocketKey, TunnelKey, XfrmDirection,
    XfrmKey,
};

fn bits(node: &Node<'_>) -> Result<u32, Diagnostic> {
    bits_of_field(node.number("a length in bits")?, node.span)
}

pub(crate) fn payload(node: &Node<'_>) -> Result<Expr, Diagnostic> {
    let known = ["protocol", "field", "base", "offset", "len", "tunnel"];
    let fields = Fields::new(node, "a payload expression", &known)?;
    if let Some(base) = fields.get("base") {
        if let Some(other) = fields.get("protocol").or_else(|| fields.get("field")) {
            let message =
                "expected either a protocol and a field, or a base, an offset and a length";
            return Err(Diagnostic::new(other.span, message));
        }
        if let Some(other) = fields.get("tunnel") {
            let message = "inside a tunnel, a protocol and a field are required";
            return Err(Diagnostic::new(other.span, message));
        }
        let base = match base.word("payload base", &["ll", "nh", "th", "ih"])? {
            "ll" => PayloadBase::LINK,
            "nh" => PayloadBase::NETWORK,
            "th" => PayloadBase::TRANSPORT,
            _ => PayloadBase::INNER,
        };
        let offset = fields.need("offset")?.number("a bit offset")?;
        let bits = bits(fields.need("len")?)?;
        return Ok(Expr::Payload(raw(base, offset, bits)));
    }
    let (name_node, field) = (fields.need("protocol")?, fields.need("field")?);
    if let Some(other) = fields.get("offset").or_else(|| fields.get("len")) {
        return Err(Diagnostic::new(
            other.span,
            "a named field has no offset or length",
        ));
    }
    let name = name_node.text("the name of a protocol")?;
    let tunnel = match fields.get("tunnel") {
        None => None,
        Some(node) => match tunnels::named(node.text("the name of a tunnel")?) {
            Some(tunnel) => Some(tunnel),
            None => return Err(node.unknown("tunnel", tunnels::names())),
        },
    };
    let found = match tunnel {
        Some(tunnel) => tunnel.protocol(name),
        None => protocol(name),
    };
    let Some(protocol) = found else {
        let known: Vec<&str> = match tunnel {
            Some(tunnel) => tunnel.protocols().map(|known| known.name).collect(),
            None => protocols::PROTOCOLS
                .iter()
                .map(|known| known.name)
                .collect(),
        };
        return Err(name_node.unknown("protocol", known));
    };
    let name = match (protocol.name, field.text("the name of a field")?) {
        ("icmpv6", "param-problem") => "parameter-problem",
        (_, name) => name,
    };
    match field_names(protocol).position(|known| known == name) {
        Some(index) => Ok(Expr::Payload(match tunnel {
            Some(tunnel) => tunnel.field(protocol, index),
            None => field_of(protocol, index),
        })),
        None => {
            let what = format!("{} field", protocol.name);
            Err(field.unknown(&what, field_names(protocol)))
        }
    }
}

/// Reads a `tunnel` selector.
pub(crate) fn tunnel(node: &Node<'_>) -> Result<Expr, Diagnostic> {
    let fields = Fields::new(node, "a tunnel expression", &["key"])?;
    let key = fields.need("key")?.word("tunnel key", &["path", "id"])?;
    Ok(Expr::Tunnel(match key {
        "path" => TunnelKey::PATH,
        _ => TunnelKey::ID,
    }))
}

/// Reads a test for a DCCP option.
pub(crate) fn dccp_option(node: &Node<'_>) -> Result<Expr, Diagnostic> {
    let fields = Fields::new(node, "an option", &["type"])?;
    let number = fields.need("type")?.number("an option number")?;
    Ok(presence(&protocols::NAMELESS_DCCP, number))
}

/// Reads an option, extension header or chunk: one of its fields, or a test whether it exists.
pub(crate) fn option(node: &Node<'_>, kind: ExthdrOp) -> Result<Expr, Diagnostic> {
    let (of, known): (_, &[&str]) = match kind {
        ExthdrOp::TCPOPT => ("an option", &["name", "field", "base", "offset", "len"]),
        ExthdrOp::IPV4 => ("an option", &["name", "field"]),
        ExthdrOp::SCTP => ("a chunk", &["name", "field"]),
        _ => ("an extension header", &["name", "field", "offset"]),
    };
    let fields = Fields::new(node, of, known)?;
    if let Some(base) = fields.get("base") {
        if let Some(other) = fields.get("name").or_else(|| fields.get("field")) {
            let message = "expected either a name and a field, or a base, an offset and a length";
            return Err(Diagnostic::new(other.span, message));
        }
        let number = base.number("an option number")?;
        let offset = fields.need("offset")?.number("a bit offset")?;
        let length = fields.need("len")?;
        // A whole option without a name.
        let bits = match (offset, &length.kind) {
            (0, Kind::Number(0)) => 0,
            _ => bits(length)?,
        };
        return Ok(Expr::Option(raw_option(number, offset, bits)));
    }
    if let Some(other) = fields.get("offset").or_else(|| fields.get("len")) {
        return Err(Diagnostic::new(
            other.span,
            "a named field has no offset or length",
        ));
    }
    let name = fields.need("name")?;
    let Some(found) = extension(kind, name.text("a name")?) else {
        let what = match kind {
            ExthdrOp::TCPOPT => "tcp option",
            ExthdrOp::IPV4 => "ip option",
            ExthdrOp::SCTP => "sctp chunk",
            _ => "extension header",
        };
        return Err(name.unknown(what, extensions(kind).map(|each| each.name)));
    };
    let Some(name_node) = fields.get("field") else {
        return Ok(presence(found, found.number));
    };
    match found.named(name_node.text("the name of a field")?) {
        Some(field) => Ok(option_of(found, field)),
        None => {
            let what = format!("{} field", found.name);
            Err(name_node.unknown(&what, found.fields_named()))
        }
    }
}

pub(crate) fn meta(node: &Node<'_>) -> Result<Expr, Diagnostic> {
    let fields = Fields::new(node, "a meta expression", &["key"])?;
    let node = fields.need("key")?;
    match meta_key(node.text("a key")?) {
        Some(key) => Ok(Expr::Meta(key)),
        None => {
            let known = meta_names().map(|(name, _)| name);
            Err(node.unknown("meta key", known))
        }
    }
}

pub(crate) fn socket(node: &Node<'_>) -> Result<Expr, Diagnostic> {
    let fields = Fields::new(node, "a socket expression", &["key", "level"])?;
    let keys = ["transparent", "mark", "wildcard", "cgroupv2"];
    let key = fields.need("key")?.word("socket key", &keys)?;
    let key = match key {
        "transparent" => SocketKey::TRANSPARENT,
        "mark" => SocketKey::MARK,
        "wildcard" => SocketKey::WILDCARD,
        _ => {
            let level = fields.need("level")?.number("a level")?;
            return Ok(Expr::Socket(SocketKey::CGROUPV2, level));
        }
    };
    match fields.get("level") {
        None => Ok(Expr::Socket(key, 0)),
        Some(level) => Err(Diagnostic::new(
            level.span,
            "only control groups have levels",
        )),
    }
}

pub(crate) fn fib(node: &Node<'_>) -> Result<Expr, Diagnostic> {
    let fields = Fields::new(node, "a fib expression", &["result", "flags"])?;
    let names = FibFlags::NAMED.map(|(_, name)| name);
    fields.need("flags")?;
    let mut flags = FibFlags::default();
    for word in fields.words("flags", "fib flag", &names)? {
        let found = FibFlags::NAMED.iter().find(|(_, name)| *name == word);
        flags |= found.map_or(FibFlags::default(), |(flag, _)| *flag);
    }
    let result = fields.need("result")?;
    let result = result.word("fib result", &FIB_RESULTS)?;
    Ok(fib_of(flags, result))
}

pub(crate) fn osf(node: &Node<'_>) -> Result<Expr, Diagnostic> {
    let fields = Fields::new(node, "an osf expression", &["key", "ttl"])?;
    let ttl = match fields.word("ttl", "ttl mode", &["loose", "skip"])? {
        None => OsfTtl::TRUE,
        Some("loose") => OsfTtl::LESS,
        Some(_) => OsfTtl::NOCHECK,
    };
    let key = fields.need("key")?;
    let version = key.word("osf key", &["name", "version"])?;
    Ok(Expr::Osf {
        ttl,
        version: version == "version",
    })
}

pub(crate) fn ipsec(node: &Node<'_>) -> Result<Expr, Diagnostic> {
    let known = ["key", "family", "dir", "spnum"];
    let fields = Fields::new(node, "an ipsec expression", &known)?;
    let direction = fields.need("dir")?.word("direction", &["in", "out"])?;
    let version = fields.word("family", "IP version", &VERSIONS)?;
    let keys = ["reqid", "spi", "saddr", "daddr"];
    let key = fields.need("key")?.word("ipsec key", &keys)?;
    let key = match (key, version) {
        ("saddr", Some("ip")) => XfrmKey::SADDR_IP4,
        ("daddr", Some("ip")) => XfrmKey::DADDR_IP4,
        ("saddr", Some(_)) => XfrmKey::SADDR_IP6,
        ("daddr", Some(_)) => XfrmKey::DADDR_IP6,
        ("saddr" | "daddr", None) => return Err(fields.missing("family")),
        (_, Some(_)) => {
            let span = fields.need("family")?.span;
            return Err(Diagnostic::new(span, "this key has no IP version"));
        }
        ("reqid", None) => XfrmKey::REQID,
        (_, None) => XfrmKey::SPI,
    };
    Ok(Expr::Xfrm {
        direction: match direction {
            "in" => XfrmDirection::IN,
            _ => XfrmDirection::OUT,
        },
        key,
        number: fields.number("spnum", "a state number")?.unwrap_or(0),
    })
}

/// Reads the number of values.
pub(crate) fn modulus(fields: &Fields<'_, '_>) -> Result<u32, Diagnostic> {
    let node = fields.need("mod")?;
    match node.small_count("a modulus")? {
        0 => Err(Diagnostic::new(node.span, "the modulus must not be 0")),
        modulus => Ok(modulus),
    }
}

pub(crate) fn small(
    fields: &Fields<'_, '_>,
    key: &str,
    what: &str,
) -> Result<Option<u32>, Diagnostic> {
    let node = fields.get(key);
    node.map(|node| node.small_count(what)).transpose()
}

pub(crate) fn numgen(node: &Node<'_>) -> Result<Expr, Diagnostic> {
    let fields = Fields::new(node, "a numgen expression", &["mode", "mod", "offset"])?;
    let mode = fields
        .need("mode")?
        .word("numgen mode", &["inc", "random"])?;
    Ok(Expr::Numgen {
        kind: match mode {
            "inc" => NumgenType::INCREMENTAL,
            _ => NumgenType::RANDOM,
        },
        modulus: modulus(&fields)?,
        offset: small(&fields, "offset", "an offset")?.unwrap_or(0),
    })
}
