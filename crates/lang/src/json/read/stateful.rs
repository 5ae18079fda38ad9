//! Reads stateful statements of rules, elements and objects.

use super::Reader;
use super::fields::Fields;
use super::node::{Kind, Node};
use super::object::{handle_instead, in_table, is_by_name, name};
use super::tunnel::{TUNNEL, tunnel};
use crate::parse::error::shown;
use crate::parse::object::Entries;
use crate::parse::script::FAMILIES;
use crate::parse::stateful::{
    BYTES, DEFAULT_BURST, burst_of, bytes_of, rate_of, scale_of_window, size_of_bytes,
};
use crate::parse::{self, Diagnostic, Verb};
use crate::syntax::{Span, Statement, Symbol};
use crate::types;
use crate::units;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::{DataType, Family, StatefulObject};

/// Keys of limits in statements and objects.
const LIMIT: [&str; 6] = ["rate", "rate_unit", "per", "burst", "burst_unit", "inv"];
pub(crate) const SYNPROXY: [&str; 3] = ["mss", "wscale", "flags"];
const COUNTER: [&str; 2] = ["packets", "bytes"];

impl Reader {
    /// Reads a stateful statement, if the key is one.
    pub(crate) fn stateful(
        self,
        key: &str,
        value: &Node<'_>,
    ) -> Result<Option<Statement>, Diagnostic> {
        let object = match key {
            "counter" => "counter name",
            "limit" => "limit name",
            "quota" => "quota name",
            "ct count" => "ct count name",
            "last" => "",
            _ => return Ok(None),
        };
        if !object.is_empty() && is_object(value) {
            return Ok(Some(Statement::Object(object, self.expr(value)?)));
        }
        Ok(Some(match key {
            "counter" if value.is_null() => Statement::Counter {
                packets: 0,
                bytes: 0,
            },
            "counter" => counter(&Fields::new(value, "a counter", &COUNTER)?)?,
            "limit" => limit(&Fields::new(value, "a limit", &LIMIT)?, true)?,
            "quota" => quota(value)?,
            "last" if value.is_null() => Statement::Last(None),
            "last" => {
                let fields = Fields::new(value, "a last statement", &["used"])?;
                Statement::Last(fields.number("used", "a number of milliseconds")?)
            }
            _ => {
                let fields = Fields::new(value, "a ct count statement", &["val", "inv"])?;
                Statement::Connections {
                    count: fields.need("val")?.small_count("a number of connections")?,
                    over: fields.flag("inv")?,
                }
            }
        }))
    }
}

/// Returns `true` if the value is an object name, or a map to objects.
pub(crate) fn is_object(node: &Node<'_>) -> bool {
    match &node.kind {
        Kind::Text(_) => true,
        Kind::Object(entries) => matches!(&entries[..], [(key, _)] if key.text == "map"),
        _ => false,
    }
}

fn counter(fields: &Fields<'_, '_>) -> Result<Statement, Diagnostic> {
    let count = |key, what| match fields.get(key) {
        Some(node) => node.count(what),
        None => Ok(0),
    };
    Ok(Statement::Counter {
        packets: count("packets", "a number of packets")?,
        bytes: count("bytes", "a number of bytes")?,
    })
}

/// Reads the optional size of a unit of bytes.
fn unit(fields: &Fields<'_, '_>, key: &str, what: &str) -> Result<Option<u64>, Diagnostic> {
    let word = fields.word(key, what, &BYTES.map(|(name, _)| name))?;
    Ok(word.and_then(size_of_bytes))
}

fn quota(node: &Node<'_>) -> Result<Statement, Diagnostic> {
    let known = ["val", "val_unit", "used", "used_unit", "inv"];
    let fields = Fields::new(node, "a quota", &known)?;
    let val = fields.need("val")?;
    let size = unit(&fields, "val_unit", "byte unit")?;
    let bytes = bytes_of(val.count("a number of bytes")?, size.unwrap_or(1), val.span)?;
    let size = unit(&fields, "used_unit", "byte unit")?;
    let used = match fields.get("used") {
        None => 0,
        Some(used) => bytes_of(
            used.count("a number of bytes")?,
            size.unwrap_or(1),
            used.span,
        )?,
    };
    Ok(Statement::Quota {
        bytes,
        used,
        over: fields.flag("inv")?,
    })
}

/// Reads a limit. The unit of time defaults to a second; nft requires it in rules.
fn limit(fields: &Fields<'_, '_>, needs_time: bool) -> Result<Statement, Diagnostic> {
    let units = ["packets", "bytes", "kbytes", "mbytes"];
    let bytes = fields.word("rate_unit", "rate unit", &units)?;
    let bytes = bytes.and_then(size_of_bytes);
    let times: Vec<&str> = units::times().collect();
    let time = fields.word("per", "time unit", &times)?;
    let unit = match time.and_then(|word| units::times().find(|known| *known == word)) {
        Some(unit) => unit,
        None if needs_time => return Err(fields.missing("per")),
        None => "second",
    };
    let rate = fields.need("rate")?;
    let rate = rate_of(rate.count("a rate")?, bytes, rate.span)?;
    let burst_unit = fields.word("burst_unit", "burst unit", &units)?;
    let burst = match fields.get("burst") {
        None if bytes.is_some() => 0,
        None => DEFAULT_BURST,
        Some(burst) => {
            let number = burst.number("a burst")?;
            let size = match bytes {
                // The unit has no effect for packets.
                None => 1,
                Some(_) => burst_unit.and_then(size_of_bytes).unwrap_or(1),
            };
            burst_of(number, size, bytes.is_some(), burst.span)?
        }
    };
    if let (Some(_), Some("packets"), Some(node)) = (bytes, burst_unit, fields.get("burst_unit")) {
        let message = "the burst of a byte rate must be in bytes";
        return Err(Diagnostic::new(node.span, message).expecting(BYTES.map(|(name, _)| name)));
    }
    if let (None, Some(unit), Some(node)) = (bytes, burst_unit, fields.get("burst_unit"))
        && unit != "packets"
    {
        let message = "the burst of a packet rate must be in packets";
        return Err(Diagnostic::new(node.span, message).expecting(["packets"]));
    }
    Ok(Statement::Limit {
        rate,
        unit,
        burst,
        bytes: bytes.is_some(),
        over: fields.flag("inv")?,
    })
}

pub(crate) fn synproxy(fields: &Fields<'_, '_>) -> Result<Statement, Diagnostic> {
    let flags = fields.words("flags", "synproxy flag", &["timestamp", "sack-perm"])?;
    let window_scale = match fields.get("wscale") {
        None => None,
        Some(node) => Some(scale_of_window(node.number("a scale")?, node.span)?),
    };
    Ok(Statement::Synproxy {
        mss: fields.number("mss", "a size")?,
        window_scale,
        timestamp: flags.contains(&"timestamp"),
        sack_permitted: flags.contains(&"sack-perm"),
    })
}

/// Reads a stateful object.
pub(crate) fn object(
    verb: Verb,
    object_type: ObjectType,
    kind: &str,
    node: &Node<'_>,
    span: Span,
) -> Result<StatefulObject<'static>, Diagnostic> {
    let own: &[&str] = match object_type {
        ObjectType::COUNTER => &COUNTER,
        ObjectType::QUOTA => &["bytes", "used", "inv"],
        ObjectType::LIMIT => &LIMIT,
        ObjectType::SECMARK => &["context"],
        ObjectType::SYNPROXY => &SYNPROXY,
        ObjectType::TUNNEL => &TUNNEL,
        ObjectType::CT_HELPER => &["type", "protocol", "l3proto"],
        ObjectType::CT_TIMEOUT => &["protocol", "l3proto", "policy"],
        _ => &["protocol", "l3proto", "dport", "timeout", "size"],
    };
    let common = ["family", "table", "name", "handle", "comment"];
    let known: Vec<&str> = common.into_iter().chain(own.iter().copied()).collect();
    let fields = Fields::new(node, &format!("a {kind}"), &known)?;
    let (at, _) = in_table(&fields)?;
    if is_by_name(verb) {
        return Ok(match handle_instead(verb, &fields)? {
            Some(handle) => StatefulObject {
                family: at.family,
                table: Some(at.table),
                object_type: Some(object_type),
                handle: Some(handle),
                ..StatefulObject::empty()
            },
            None => {
                let name = name(&fields, "name", "an object")?;
                StatefulObject::named(at.family, at.table, object_type, name)
            }
        });
    }
    let name = name(&fields, "name", "an object")?;
    let entries = entries(object_type, &fields)?;
    entries.object(&at, name, object_type, span)
}

/// Reads the entries of an object.
fn entries(object_type: ObjectType, fields: &Fields<'_, '_>) -> Result<Entries, Diagnostic> {
    let mut entries = Entries::default();
    if let Some(node) = fields.get("comment") {
        entries.comment = Some((node.kept("a comment")?.to_owned(), node.span));
    }
    match object_type {
        ObjectType::COUNTER => entries.statement = Some(counter(fields)?),
        ObjectType::LIMIT => entries.statement = Some(limit(fields, false)?),
        ObjectType::SYNPROXY => entries.statement = Some(synproxy(fields)?),
        ObjectType::QUOTA => {
            entries.statement = Some(Statement::Quota {
                bytes: fields.need("bytes")?.count("a number of bytes")?,
                used: match fields.get("used") {
                    None => 0,
                    Some(used) => used.count("a number of bytes")?,
                },
                over: fields.flag("inv")?,
            });
        }
        ObjectType::SECMARK => {
            let context = fields.need("context")?.text("a security context")?;
            entries.context = Some(context.to_owned());
        }
        ObjectType::TUNNEL => entries.tunnel = tunnel(fields)?,
        kind => tracking(kind, fields, &mut entries)?,
    }
    Ok(entries)
}

/// Reads the entries of a conntrack helper, timeout or expectation.
fn tracking(
    object_type: ObjectType,
    fields: &Fields<'_, '_>,
    entries: &mut Entries,
) -> Result<(), Diagnostic> {
    let l4proto = fields.need("protocol")?.symbol("a protocol")?;
    entries.l4proto = Some(protocol(&l4proto)?);
    if let Some(word) = fields.word("l3proto", "family", &FAMILIES)? {
        entries.l3proto = Some(word.parse::<Family>().unwrap_or_default().0.into());
    }
    match object_type {
        ObjectType::CT_HELPER => {
            let helper = fields.need("type")?.text("the name of a helper")?;
            entries.helper = Some(helper.to_owned());
        }
        ObjectType::CT_TIMEOUT => {
            let Some(node) = fields.get("policy") else {
                return Ok(());
            };
            let Kind::Object(policy) = &node.kind else {
                return Err(node.wrong(["an object with the seconds for each state"]));
            };
            for (state, seconds) in policy {
                let seconds = seconds.number("a number of seconds")?;
                entries
                    .policy
                    .push((state.text.to_string(), seconds, state.span));
            }
        }
        _ => {
            entries.dport = fields.number("dport", "a port")?;
            entries.timeout = fields.number("timeout", "a number of milliseconds")?;
            entries.size = fields.number("size", "a size")?;
        }
    }
    Ok(())
}

/// Parses an IP protocol name or number.
fn protocol(word: &Symbol) -> Result<u8, Diagnostic> {
    let symbols = types::symbols(DataType::INET_PROTO);
    let found = symbols.iter().find(|(name, _)| **name == *word.text);
    let number = found.map(|(_, number)| *number);
    let number = number.map_or_else(|| parse::number(&word.text), |number| Some(number.into()));
    let number = number.and_then(|number| u8::try_from(number).ok());
    number.ok_or_else(|| {
        let message = format!("unknown transport protocol `{}`", shown(&word.text));
        Diagnostic::new(word.span, message)
            .expecting(["tcp", "udp", "sctp", "dccp", "icmp", "ipv6-icmp", "gre"])
            .nearest_to(&word.text)
    })
}
