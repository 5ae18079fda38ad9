//! Writes expressions.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::{Tagged, Writer};
use crate::constant;
use crate::dialect::Form;
use crate::keys::{self, Key};
use crate::list::Options;
use crate::statements;
use crate::syntax::{self, Element, Expr, Operator, Statement, Target, Value, Verdict};
use crate::types::{self, CT_LABEL, DATE, DAY, HOUR};
use chainwright::nft::expr::{
    CtDirection, CtKey, ExthdrOp, FibFlags, FibResult, NumgenType, OsfTtl, PayloadBase, SocketKey,
    XfrmDirection,
};
use chainwright::nft::{DataType, Family, Milliseconds};

/// Expression.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Expression<'e> {
    Payload(Payload),
    Exthdr(OptionField),
    #[serde(rename = "tcp option")]
    TcpOption(OptionField),
    #[serde(rename = "ip option")]
    IpOption(OptionField),
    #[serde(rename = "sctp chunk")]
    SctpChunk(OptionField),
    #[serde(rename = "dccp option")]
    DccpOption {
        #[serde(rename = "type")]
        number: u8,
    },
    Meta {
        key: &'static str,
    },
    Tunnel {
        key: &'static str,
    },
    Ct {
        key: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        dir: Option<&'static str>,
    },
    Rt {
        key: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        family: Option<&'static str>,
    },
    Socket {
        key: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        level: Option<u32>,
    },
    Fib {
        result: &'static str,
        flags: Vec<&'static str>,
    },
    Osf {
        key: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        ttl: Option<&'static str>,
    },
    Ipsec {
        key: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        family: Option<&'static str>,
        dir: &'static str,
        spnum: u32,
    },
    Numgen {
        mode: &'static str,
        #[serde(rename = "mod")]
        modulus: u32,
        offset: u32,
    },
    Jhash(Hash<'e>),
    Symhash(Hash<'e>),
    Prefix {
        addr: Box<Self>,
        len: u32,
    },
    Range(Box<[Self; 2]>),
    Concat(Vec<Self>),
    Set(Vec<Self>),
    Map {
        key: Box<Self>,
        data: Box<Self>,
    },
    Elem(Box<Elem<'e>>),
    Accept(()),
    Drop(()),
    Continue(()),
    Break(()),
    Return(()),
    Jump(Destination<'e>),
    Goto(Destination<'e>),
    /// Expression that readers must not mistake for anything else.
    Opaque(Cow<'e, str>),
    #[serde(untagged)]
    Binary(Tagged<Vec<Self>>),
    #[serde(untagged)]
    Number(i64),
    #[serde(untagged)]
    Bool(bool),
    #[serde(untagged)]
    Text(Cow<'e, str>),
    #[serde(untagged)]
    List(Vec<Self>),
    #[serde(untagged)]
    Null(()),
    /// Number that is never written as negative.
    #[serde(untagged)]
    Count(u64),
    #[serde(untagged)]
    Record(Record<'e>),
}

impl Expression<'_> {
    /// Creates an object with one key.
    pub(crate) fn tagged(key: &'static str, value: Self) -> Self {
        Self::Record(Record::new().field(key, value))
    }

    pub(crate) const fn word(word: &'static str) -> Self {
        Self::Text(Cow::Borrowed(word))
    }
}

impl From<i64> for Expression<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Expression<'_> {
    fn from(is_true: bool) -> Self {
        Self::Bool(is_true)
    }
}

impl From<String> for Expression<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'e> From<Record<'e>> for Expression<'e> {
    fn from(record: Record<'e>) -> Self {
        Self::Record(record)
    }
}

/// Object with these keys.
#[derive(Debug, Default)]
pub(crate) struct Record<'e>(Vec<(Cow<'static, str>, Expression<'e>)>);

impl<'e> Record<'e> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a key with its value.
    pub(crate) fn field(mut self, key: &'static str, value: impl Into<Expression<'e>>) -> Self {
        self.0.push((Cow::Borrowed(key), value.into()));
        self
    }

    /// Returns the object; `null` if it has no keys.
    pub(crate) fn or_null(self) -> Expression<'e> {
        match self.0.is_empty() {
            true => Expression::Null(()),
            false => Expression::Record(self),
        }
    }

    /// Adds a key if it has a value.
    pub(crate) fn optional(
        self,
        key: &'static str,
        value: Option<impl Into<Expression<'e>>>,
    ) -> Self {
        match value {
            Some(value) => self.field(key, value),
            None => self,
        }
    }
}

impl<'e> FromIterator<(Cow<'static, str>, Expression<'e>)> for Record<'e> {
    fn from_iter<I: IntoIterator<Item = (Cow<'static, str>, Expression<'e>)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// nft's number for a timeout that never expires: its maximum of milliseconds, in whole seconds.
pub(crate) const NEVER: u64 = u64::MAX / 1000;

/// Converts to whole seconds; at least 1, because 0 means no timeout.
pub(crate) fn seconds(milliseconds: u64) -> u64 {
    match milliseconds {
        1..=999 => 1,
        milliseconds => milliseconds / 1000,
    }
}

/// Payload expression.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Payload {
    Field {
        #[serde(skip_serializing_if = "Option::is_none")]
        tunnel: Option<&'static str>,
        protocol: &'static str,
        field: &'static str,
    },
    Raw {
        base: &'static str,
        offset: u32,
        len: u32,
    },
}

/// Field of an option, extension header or chunk.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum OptionField {
    Field {
        name: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        field: Option<&'static str>,
    },
    Raw {
        base: u8,
        offset: u32,
        len: u32,
    },
}

/// Hash of a key, or of the packet's connection.
#[derive(Debug, Serialize)]
pub(crate) struct Hash<'e> {
    #[serde(rename = "mod")]
    modulus: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u32>,
    #[serde(skip_serializing_if = "is_zero")]
    offset: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    expr: Option<Box<Expression<'e>>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Set element with options or statements.
#[derive(Debug, Serialize)]
pub(crate) struct Elem<'e> {
    val: Expression<'e>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'e str>,
    #[serde(flatten)]
    states: Record<'e>,
}

/// Target of a jump or goto.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Destination<'e> {
    Target(&'e str),
    /// Rules of an anonymous chain.
    Rules(Vec<Expression<'e>>),
}

/// Writes a number; as a string if it exceeds the integers that nft reads.
pub(crate) fn numeric(number: u128) -> Expression<'static> {
    match (i64::try_from(number), u64::try_from(number)) {
        (Ok(number), _) => Expression::Number(number),
        (_, Ok(number)) => Expression::Text(Cow::Owned(number.to_string())),
        _ => Expression::Text(Cow::Owned(format!("{number:#x}"))),
    }
}

/// Writes a string; as an opaque expression if nft would read it as something else.
fn text(text: Cow<'_, str>) -> Expression<'_> {
    match text.starts_with('@') || text == "*" {
        true => Expression::Opaque(text),
        false => Expression::Text(text),
    }
}

impl<'o> Writer<'o> {
    pub(crate) fn expr<'e>(self, expr: &'e Expr) -> Expression<'e> {
        match expr {
            Expr::Value(value) => self.value(value),
            // Parsed text only, which is not listed.
            Expr::Symbol(symbol) => text(Cow::Borrowed(&symbol.text)),
            Expr::Payload(payload) => Expression::Payload(self::payload(payload)),
            Expr::Option(field) => option(field),
            Expr::Meta(key) => {
                let whole = name(keys::meta(*key));
                let key = whole.strip_prefix("meta ").unwrap_or(whole);
                Expression::Meta { key }
            }
            Expr::QueueNumber => Expression::Text(Cow::Borrowed("queue")),
            // Never part of a listing.
            Expr::Inside(_, key) => Expression::Meta {
                key: name(keys::meta(*key)),
            },
            Expr::Tunnel(key) => Expression::Tunnel {
                key: name(keys::tunnel(*key)),
            },
            Expr::Ct(key, direction, version) => self.ct(*key, *direction, *version),
            Expr::Rt(key) => {
                let (family, key) = versioned(name(keys::rt(*key)));
                Expression::Rt { key, family }
            }
            Expr::Socket(key, level) => Expression::Socket {
                key: name(keys::socket(*key)),
                level: (*key == SocketKey::CGROUPV2).then_some(*level),
            },
            Expr::Fib(flags, result) => fib(*flags, *result, "check"),
            Expr::Osf { ttl, version } => Expression::Osf {
                key: if *version { "version" } else { "name" },
                ttl: match *ttl {
                    OsfTtl::LESS => Some("loose"),
                    OsfTtl::NOCHECK => Some("skip"),
                    _ => None,
                },
            },
            Expr::Xfrm {
                direction,
                key,
                number,
            } => {
                let (family, key) = versioned(name(keys::xfrm(*key)));
                Expression::Ipsec {
                    key,
                    family,
                    dir: match *direction {
                        XfrmDirection::OUT => "out",
                        _ => "in",
                    },
                    spnum: *number,
                }
            }
            Expr::Numgen {
                kind,
                modulus,
                offset,
            } => Expression::Numgen {
                mode: match *kind {
                    NumgenType::INCREMENTAL => "inc",
                    _ => "random",
                },
                modulus: *modulus,
                offset: *offset,
            },
            Expr::Hash {
                key,
                modulus,
                seed,
                offset,
            } => {
                let hash = Hash {
                    modulus: *modulus,
                    seed: *seed,
                    offset: *offset,
                    expr: key.as_deref().map(|key| Box::new(self.expr(key))),
                };
                match hash.expr {
                    Some(_) => Expression::Jhash(hash),
                    None => Expression::Symhash(hash),
                }
            }
            Expr::Binary(operator, left, right) => {
                self.binary(*operator, self.expr(left), self.expr(right))
            }
            Expr::Prefix(value, bits) => Expression::Prefix {
                addr: Box::new(self.expr(value)),
                len: *bits,
            },
            Expr::Range(from, to) => Expression::Range(Box::new([self.end(from), self.end(to)])),
            Expr::Beginning(value, bits) => {
                let mut name = String::new();
                // Writing to a string does not fail.
                let _ = constant::beginning(&mut name, value.number, value.bits, *bits);
                text(Cow::Owned(unquoted(&name).to_owned()))
            }
            Expr::Concat(parts) => Expression::Concat(self.exprs(parts)),
            Expr::Flags(flags) => match &flags[..] {
                [one] => self.expr(one),
                many => Expression::List(self.exprs(many)),
            },
            // Only on the right side of matches: see `Writer::matched`.
            Expr::Masked(flags, of) => self.binary(Operator::And, self.expr(flags), self.expr(of)),
            Expr::Set(elements) => {
                Expression::Set(elements.iter().map(|each| self.element(each)).collect())
            }
            Expr::Reference(name) => Expression::Text(Cow::Owned(format!("@{name}"))),
            Expr::Map(key, map) => Expression::Map {
                key: Box::new(self.expr(key)),
                data: Box::new(self.expr(map)),
            },
            Expr::Verdict(verdict) => self.verdict(verdict),
            Expr::Object(name) => text(Cow::Borrowed(name)),
        }
    }

    /// Writes a bound of a range; protocols and ports as numbers.
    fn end<'e>(self, end: &'e Expr) -> Expression<'e> {
        match end {
            Expr::Value(value)
                if matches!(
                    value.data_type,
                    DataType::INET_PROTO | DataType::INET_SERVICE
                ) =>
            {
                numeric(value.number)
            }
            end => self.expr(end),
        }
    }

    fn exprs<'e>(self, exprs: &'e [Expr]) -> Vec<Expression<'e>> {
        exprs.iter().map(|each| self.expr(each)).collect()
    }

    fn verdict<'e>(self, verdict: &'e Verdict) -> Expression<'e> {
        let destination = |target: &'e Target| match target {
            Target::Chain(name) => Destination::Target(name),
            Target::Rules(rules) => {
                Destination::Rules(rules.iter().map(|rule| self.line(rule)).collect())
            }
        };
        match verdict {
            Verdict::Accept => Expression::Accept(()),
            Verdict::Drop => Expression::Drop(()),
            Verdict::Continue => Expression::Continue(()),
            Verdict::Break => Expression::Break(()),
            Verdict::Return => Expression::Return(()),
            Verdict::Jump(target) => Expression::Jump(destination(target)),
            Verdict::Goto(target) => Expression::Goto(destination(target)),
        }
    }

    /// Writes a set element, or a map element with its data.
    pub(crate) fn element<'e>(self, element: &'e Element) -> Expression<'e> {
        let states = self.states(&element.statements);
        let key = self.key(element, states);
        match &element.data {
            Some(data) => Expression::List(vec![key, self.expr(data)]),
            None => key,
        }
    }

    /// Writes stateful statements as fields, one of each kind, in the order of the registry.
    fn states<'e>(self, statements: &'e [Statement]) -> Record<'e> {
        let mut record = Record::new();
        for key in statements::stateful_keys() {
            let mut states = statements.iter().rev().filter_map(|each| each.state(self));
            let found = states.find(|(known, _)| *known == key);
            record = record.optional(key, found.map(|(_, value)| value));
        }
        record
    }

    /// Writes the key of an element, with its options and these statements.
    pub(crate) fn key<'e>(self, element: &'e Element, states: Record<'e>) -> Expression<'e> {
        let val = match &element.key {
            Some(key) => self.expr(key),
            None => Expression::Text(Cow::Borrowed("*")),
        };
        let is_plain = element.timeout.is_none()
            && element.expires.is_none()
            && element.comment.is_none()
            && states.is_empty();
        if is_plain {
            return val;
        }
        Expression::Elem(Box::new(Elem {
            val,
            timeout: element.timeout.map(|time| match time {
                0 => NEVER,
                time => seconds(time),
            }),
            expires: element.expires.map(|time| time / 1000),
            comment: element.comment.as_deref(),
            states,
        }))
    }

    /// Writes a constant, by name if it has one.
    pub(crate) fn value(self, value: &Value) -> Expression<'static> {
        match value.data_type {
            DataType::STRING | DataType::IFNAME | DataType::IFACE_INDEX => {
                text(Cow::Owned(self.written(value)))
            }
            DAY if self.options.is_numeric(DAY) => numeric(value.number),
            DataType::IPV4_ADDR
            | DataType::IPV6_ADDR
            | DataType::ETHER_ADDR
            | DataType::CLASSID
            | DataType::REALM
            | DataType::CGROUPSV2
            | DATE
            | HOUR
            | DAY => Expression::Text(Cow::Owned(self.written(value))),
            DataType::BOOLEAN if value.number <= 1 => Expression::Bool(value.number == 1),
            DataType::TIME => match u64::try_from(value.number) {
                Ok(time) if time % 1000 == 0 => numeric(u128::from(time / 1000)),
                Ok(time) => Expression::Text(Cow::Owned(Milliseconds(time).to_string())),
                Err(_) => numeric(value.number),
            },
            // Number of a bit.
            CT_LABEL if value.number == 0 => Expression::Opaque(Cow::Borrowed("no label")),
            data_type if data_type == CT_LABEL || types::is_bitmask(data_type) => {
                flags(value, self.options)
                    .reduce(|left, right| self.binary(Operator::Or, left, right))
                    .unwrap_or(Expression::Number(0))
            }
            data_type => named(data_type, value.number, self.options),
        }
    }

    fn ct(
        self,
        key: CtKey,
        direction: Option<CtDirection>,
        version: Option<Family>,
    ) -> Expression<'static> {
        // Addresses include the IP version in tables of both families.
        let is_of_one = matches!(self.family, Family::IP | Family::IP6);
        Expression::Ct {
            key: name(keys::ct(key, version.filter(|_| !is_of_one))),
            dir: match direction {
                Some(CtDirection::ORIGINAL) => Some("original"),
                Some(CtDirection::REPLY) => Some("reply"),
                _ => None,
            },
        }
    }

    /// Writes a binary operation.
    pub(crate) fn binary<'e>(
        self,
        operator: Operator,
        left: Expression<'e>,
        right: Expression<'e>,
    ) -> Expression<'e> {
        let operands = match left {
            Expression::Binary(Tagged(sign, mut operands))
                if sign == operator.sign() && self.options.has(Form::JsonOperands) =>
            {
                operands.push(right);
                operands
            }
            left => vec![left, right],
        };
        Expression::Binary(Tagged(operator.sign(), operands))
    }

    /// Formats a value as in text, without quotation marks.
    fn written(self, value: &Value) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = constant::plain(&mut text, value, self.options);
        unquoted(&text).to_owned()
    }
}

fn unquoted(text: &str) -> &str {
    let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    inner.unwrap_or(text)
}

/// Returns the names of the bits of a value.
pub(crate) fn flags<'o>(
    value: &Value,
    options: &'o Options,
) -> impl Iterator<Item = Expression<'static>> + use<'o> {
    let (data_type, number) = (value.data_type, value.number);
    let bits = (0..u128::BITS).filter(move |bit| number >> bit & 1 == 1);
    bits.map(move |bit| match data_type {
        CT_LABEL => Expression::Number(bit.into()),
        data_type => named(data_type, 1 << bit, options),
    })
}

/// Writes a value by name or as a number.
fn named(data_type: DataType, number: u128, options: &Options) -> Expression<'static> {
    if let Some(name) = options.account_or_service(data_type, number) {
        return Expression::Text(Cow::Owned(name.to_owned()));
    }
    match constant::symbol(data_type, number, options) {
        Some(name) => Expression::Text(Cow::Borrowed(name)),
        None => numeric(number),
    }
}

/// Returns the name of a key.
fn name(key: Option<Key>) -> &'static str {
    key.map_or("unknown", |key| key.name)
}

/// Splits an address key into its IP version and name.
fn versioned(name: &'static str) -> (Option<&'static str>, &'static str) {
    match name.split_once(' ') {
        Some((family @ ("ip" | "ip6"), key)) => (Some(family), key),
        _ => (None, name),
    }
}

fn payload(payload: &syntax::Payload) -> Payload {
    match payload.field {
        Some((protocol, field)) => Payload::Field {
            tunnel: payload.tunnel.map(|tunnel| tunnel.name()),
            protocol: protocol.name,
            field: protocol.fields[field].name,
        },
        None => Payload::Raw {
            base: match payload.base {
                PayloadBase::LINK => "ll",
                PayloadBase::NETWORK => "nh",
                PayloadBase::TRANSPORT => "th",
                _ => "ih",
            },
            offset: payload.offset,
            len: payload.bits,
        },
    }
}

fn option(field: &syntax::OptionField) -> Expression<'static> {
    let extension = field.extension;
    let name = extension.name;
    let is_whole = field.presence || (field.bits == 0 && field.offset == 0);
    let found = field.field();
    let place = match (is_whole, found) {
        (true, _) if !name.is_empty() => OptionField::Field { name, field: None },
        (false, Some(found)) if !name.is_empty() => OptionField::Field {
            name,
            field: Some(found.name),
        },
        _ => OptionField::Raw {
            base: field.number,
            offset: field.offset,
            len: field.bits,
        },
    };
    match extension.kind {
        ExthdrOp::TCPOPT => Expression::TcpOption(place),
        ExthdrOp::IPV4 => Expression::IpOption(place),
        ExthdrOp::SCTP => Expression::SctpChunk(place),
        ExthdrOp::DCCP => Expression::DccpOption {
            number: field.number,
        },
        _ => Expression::Exthdr(place),
    }
}

/// Writes a `fib` expression. `present` is the name of the result that tests whether a route exists, as in text.
pub(crate) fn fib(
    flags: FibFlags,
    result: FibResult,
    present: &'static str,
) -> Expression<'static> {
    let words = FibFlags::NAMED.iter();
    let words = words.filter(|(flag, _)| flags.contains(*flag));
    Expression::Fib {
        result: match result {
            _ if flags.contains(FibFlags::PRESENT) => present,
            FibResult::OIF => "oif",
            FibResult::OIFNAME => "oifname",
            _ => "type",
        },
        flags: words.map(|(_, word)| *word).collect(),
    }
}
