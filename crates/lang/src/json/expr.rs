//! Writes expressions.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::{Tagged, Writer};
use crate::constant;
use crate::dialect::Form;
use crate::list::Options;
use crate::selectors::{self, Key};
use crate::syntax::{self, Element, Expr, Operator, Statement, Target, Value, Verdict};
use crate::types::{self, CT_LABEL, DATE, DAY, HOUR};
use chainwright::nft::expr::{
    CtDirection, CtKey, ExthdrOp, FibFlags, FibResult, NumgenType, OsfTtl, PayloadBase, SocketKey,
    XfrmDirection,
};
use chainwright::nft::{DataType, Family, Milliseconds};

/// JSON value of an expression.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Expression<'e> {
    Null(()),
    Bool(bool),
    Number(i64),
    /// Number that is never written as negative.
    Count(u64),
    Text(Cow<'e, str>),
    List(Vec<Self>),
    Record(Record<'e>),
    /// Operation on these operands.
    Binary(Tagged<Vec<Self>>),
}

impl Expression<'_> {
    /// Creates a list that is written without brackets if it has one entry; `None` if it is empty.
    pub(crate) fn one_or_many(mut all: Vec<Self>) -> Option<Self> {
        match all.len() {
            0 | 1 => all.pop(),
            _ => Some(Self::List(all)),
        }
    }

    /// Creates an object with one key.
    pub(crate) fn tagged(key: &'static str, value: Self) -> Self {
        Self::Record(Record::new().field(key, value))
    }

    /// Creates an object that readers must not mistake for anything else.
    pub(crate) fn opaque(text: Cow<'_, str>) -> Expression<'_> {
        Expression::tagged("opaque", text.into())
    }

    pub(crate) const fn word(word: &'static str) -> Self {
        Self::Text(Cow::Borrowed(word))
    }
}

/// Implements `From` for a variant.
macro_rules! from {
    ($($Value:ty => $Variant:ident;)*) => {$(
        impl<'e> From<$Value> for Expression<'e> {
            fn from(value: $Value) -> Self {
                Self::$Variant(value.into())
            }
        }
    )*};
}

from! {
    bool => Bool;
    u8 => Number;
    u16 => Number;
    u32 => Number;
    i32 => Number;
    i64 => Number;
    u64 => Count;
    String => Text;
    Cow<'e, str> => Text;
    Record<'e> => Record;
    Vec<Expression<'e>> => List;
}

/// Object with these keys.
#[derive(Debug, Default)]
pub(crate) struct Record<'e>(Vec<(Cow<'static, str>, Expression<'e>)>);

impl<'e> Record<'e> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Creates an object whose first field is `key`.
    fn keyed(key: &'static str) -> Self {
        Self::new().field("key", Expression::word(key))
    }

    /// Creates an object with this object under one key.
    pub(crate) fn tagged(self, key: &'static str) -> Expression<'e> {
        Expression::tagged(key, self.into())
    }

    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a key with its value.
    pub(crate) fn field(mut self, key: &'static str, value: impl Into<Expression<'e>>) -> Self {
        self.0.push((Cow::Borrowed(key), value.into()));
        self
    }

    /// Adds a key with its value, in place of an earlier value.
    fn replace(mut self, key: &'static str, value: Expression<'e>) -> Self {
        self.0.retain(|(known, _)| known != key);
        self.field(key, value)
    }

    /// Adds the fields of another object.
    pub(crate) fn append(mut self, other: Self) -> Self {
        self.0.extend(other.0);
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
        true => Expression::opaque(text),
        false => Expression::Text(text),
    }
}

impl<'o> Writer<'o> {
    pub(crate) fn expr<'e>(self, expr: &'e Expr) -> Expression<'e> {
        match expr {
            Expr::Value(value) => self.value(value),
            // Parsed text only, which is not listed.
            Expr::Symbol(symbol) => text(Cow::Borrowed(&symbol.text)),
            Expr::Payload(payload) => self::payload(payload),
            Expr::Option(field) => option(field),
            Expr::Meta(key) => {
                let whole = name(selectors::meta(*key));
                let key = whole.strip_prefix("meta ").unwrap_or(whole);
                Record::keyed(key).tagged("meta")
            }
            Expr::QueueNumber => Expression::word("queue"),
            // Never part of a listing.
            Expr::Inside(_, key) => Record::keyed(name(selectors::meta(*key))).tagged("meta"),
            Expr::Tunnel(key) => Record::keyed(name(selectors::tunnel(*key))).tagged("tunnel"),
            Expr::Ct(key, direction, version) => self.ct(*key, *direction, *version),
            Expr::Rt(key) => {
                let (family, key) = versioned(name(selectors::rt(*key)));
                Record::keyed(key)
                    .optional("family", family.map(Expression::word))
                    .tagged("rt")
            }
            Expr::Socket(key, level) => Record::keyed(name(selectors::socket(*key)))
                .optional("level", (*key == SocketKey::CGROUPV2).then_some(*level))
                .tagged("socket"),
            Expr::Fib(flags, result) => fib(*flags, *result, "check"),
            Expr::Osf { ttl, version } => {
                let ttl = match *ttl {
                    OsfTtl::LESS => Some("loose"),
                    OsfTtl::NOCHECK => Some("skip"),
                    _ => None,
                };
                Record::keyed(if *version { "version" } else { "name" })
                    .optional("ttl", ttl.map(Expression::word))
                    .tagged("osf")
            }
            Expr::Xfrm {
                direction,
                key,
                number,
            } => {
                let (family, key) = versioned(name(selectors::xfrm(*key)));
                let direction = match *direction {
                    XfrmDirection::OUT => "out",
                    _ => "in",
                };
                Record::keyed(key)
                    .optional("family", family.map(Expression::word))
                    .field("dir", Expression::word(direction))
                    .field("spnum", *number)
                    .tagged("ipsec")
            }
            Expr::Numgen {
                kind,
                modulus,
                offset,
            } => {
                let mode = match *kind {
                    NumgenType::INCREMENTAL => "inc",
                    _ => "random",
                };
                Record::new()
                    .field("mode", Expression::word(mode))
                    .field("mod", *modulus)
                    .field("offset", *offset)
                    .tagged("numgen")
            }
            Expr::Hash {
                key,
                modulus,
                seed,
                offset,
            } => Record::new()
                .field("mod", *modulus)
                .optional("seed", *seed)
                .optional("offset", Some(*offset).filter(|offset| *offset > 0))
                .optional("expr", key.as_deref().map(|key| self.expr(key)))
                .tagged(if key.is_some() { "jhash" } else { "symhash" }),
            Expr::Binary(operator, left, right) => {
                self.binary(*operator, self.expr(left), self.expr(right))
            }
            Expr::Prefix(value, bits) => Record::new()
                .field("addr", self.expr(value))
                .field("len", *bits)
                .tagged("prefix"),
            Expr::Range(from, to) => {
                Expression::tagged("range", vec![self.end(from), self.end(to)].into())
            }
            Expr::Beginning(value, bits) => {
                let mut name = String::new();
                // Writing to a string does not fail.
                let _ = constant::beginning(&mut name, value.number, value.bits, *bits);
                text(Cow::Owned(unquoted(&name).to_owned()))
            }
            Expr::Concat(parts) => Expression::tagged("concat", self.exprs(parts).into()),
            Expr::Flags(flags) => match &flags[..] {
                [one] => self.expr(one),
                many => Expression::List(self.exprs(many)),
            },
            // Only on the right side of matches: see `Writer::matched`.
            Expr::Masked(flags, of) => self.binary(Operator::And, self.expr(flags), self.expr(of)),
            Expr::Set(elements) => {
                let elements: Vec<_> = elements.iter().map(|each| self.element(each)).collect();
                Expression::tagged("set", elements.into())
            }
            Expr::Reference(name) => Expression::Text(Cow::Owned(format!("@{name}"))),
            Expr::Map(key, map) => Record::new()
                .field("key", self.expr(key))
                .field("data", self.expr(map))
                .tagged("map"),
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
        let jump = |word, target: &'e Target| {
            let record = match target {
                Target::Chain(name) => Record::new().field("target", Cow::Borrowed(&**name)),
                Target::Rules(rules) => {
                    let rules: Vec<_> = rules.iter().map(|rule| self.line(rule)).collect();
                    Record::new().field("rules", rules)
                }
            };
            record.tagged(word)
        };
        let plain = |word| Expression::tagged(word, Expression::Null(()));
        match verdict {
            Verdict::Accept => plain("accept"),
            Verdict::Drop => plain("drop"),
            Verdict::Continue => plain("continue"),
            Verdict::Break => plain("break"),
            Verdict::Return => plain("return"),
            Verdict::Jump(target) => jump("jump", target),
            Verdict::Goto(target) => jump("goto", target),
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

    /// Writes stateful statements as fields.
    fn states<'e>(self, statements: &'e [Statement]) -> Record<'e> {
        let states = statements.iter().filter_map(|each| each.state(self));
        states.fold(Record::new(), |record, (key, value)| {
            record.replace(key, value)
        })
    }

    /// Writes the key of an element, with its options and these statements.
    pub(crate) fn key<'e>(self, element: &'e Element, states: Record<'e>) -> Expression<'e> {
        let val = match &element.key {
            Some(key) => self.expr(key),
            None => Expression::word("*"),
        };
        let timeout = element.timeout.map(|time| match time {
            0 => NEVER,
            time => seconds(time),
        });
        let comment = element.comment.as_deref().map(Cow::Borrowed);
        let options = Record::new()
            .optional("timeout", timeout)
            .optional("expires", element.expires.map(|time| time / 1000))
            .optional("comment", comment)
            .append(states);
        match options.is_empty() {
            true => val,
            false => Record::new()
                .field("val", val)
                .append(options)
                .tagged("elem"),
        }
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
            CT_LABEL if value.number == 0 => Expression::opaque("no label".into()),
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
        let direction = match direction {
            Some(CtDirection::ORIGINAL) => Some("original"),
            Some(CtDirection::REPLY) => Some("reply"),
            _ => None,
        };
        Record::keyed(name(selectors::ct(key, version.filter(|_| !is_of_one))))
            .optional("dir", direction.map(Expression::word))
            .tagged("ct")
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

fn payload(payload: &syntax::Payload) -> Expression<'static> {
    let record = match payload.field {
        Some((protocol, field)) => Record::new()
            .optional(
                "tunnel",
                payload.tunnel.map(|tunnel| Expression::word(tunnel.name())),
            )
            .field("protocol", Expression::word(protocol.name))
            .field("field", Expression::word(protocol.fields[field].name)),
        None => {
            let base = match payload.base {
                PayloadBase::LINK => "ll",
                PayloadBase::NETWORK => "nh",
                PayloadBase::TRANSPORT => "th",
                _ => "ih",
            };
            Record::new()
                .field("base", Expression::word(base))
                .field("offset", payload.offset)
                .field("len", payload.bits)
        }
    };
    record.tagged("payload")
}

fn option(field: &syntax::OptionField) -> Expression<'static> {
    let extension = field.extension;
    let name = Expression::word(extension.name);
    let is_whole = field.presence || (field.bits == 0 && field.offset == 0);
    let record = match (is_whole, field.field()) {
        (true, _) if !extension.name.is_empty() => Record::new().field("name", name),
        (false, Some(found)) if !extension.name.is_empty() => {
            let record = Record::new().field("name", name);
            record.field("field", Expression::word(found.name))
        }
        _ => Record::new()
            .field("base", field.number)
            .field("offset", field.offset)
            .field("len", field.bits),
    };
    match extension.kind {
        ExthdrOp::TCPOPT => record.tagged("tcp option"),
        ExthdrOp::IPV4 => record.tagged("ip option"),
        ExthdrOp::SCTP => record.tagged("sctp chunk"),
        ExthdrOp::DCCP => Record::new()
            .field("type", field.number)
            .tagged("dccp option"),
        _ => record.tagged("exthdr"),
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
    let result = match result {
        _ if flags.contains(FibFlags::PRESENT) => present,
        FibResult::OIF => "oif",
        FibResult::OIFNAME => "oifname",
        _ => "type",
    };
    let words: Vec<_> = words.map(|(_, word)| Expression::word(word)).collect();
    Record::new()
        .field("result", Expression::word(result))
        .field("flags", words)
        .tagged("fib")
}
