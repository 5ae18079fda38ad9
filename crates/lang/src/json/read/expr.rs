//! Reads expressions.

use super::Reader;
use super::fields::Fields;
use super::node::{Kind, Node};
use super::selector::{
    dccp_option, fib, ipsec, meta, modulus, numgen, option, osf, payload, small, socket, tunnel,
};
use crate::json::expr::NEVER;
use crate::parse::error::shown;
use crate::parse::selectors::{ct_key, ct_names, needs_direction, version_in, without_direction};
use crate::parse::{Diagnostic, with_data};
use crate::statements::stateful_words;
use crate::syntax::{Element, Expr, Operator, Span, Statement, Target, Verdict};
use chainwright::nft::Family;
use chainwright::nft::expr::{CtDirection, CtKey, ExthdrOp, RtKey};

/// Keys of expressions.
const KNOWN: [&str; 35] = [
    "payload",
    "exthdr",
    "tcp option",
    "ip option",
    "sctp chunk",
    "dccp option",
    "meta",
    "tunnel",
    "ct",
    "rt",
    "socket",
    "fib",
    "osf",
    "ipsec",
    "numgen",
    "jhash",
    "symhash",
    "prefix",
    "range",
    "concat",
    "set",
    "map",
    "elem",
    "accept",
    "drop",
    "continue",
    "break",
    "return",
    "jump",
    "goto",
    "&",
    "|",
    "^",
    "<<",
    ">>",
];

pub(crate) const VERSIONS: [&str; 2] = ["ip", "ip6"];

pub(crate) fn operator(sign: &str) -> Option<Operator> {
    use Operator::{And, LeftShift, Or, RightShift, Xor};
    let mut all = [And, Or, Xor, LeftShift, RightShift].into_iter();
    all.find(|operator| operator.sign() == sign)
}

impl Reader {
    /// Reads an expression.
    pub(crate) fn expr(self, node: &Node<'_>) -> Result<Expr, Diagnostic> {
        match &node.kind {
            Kind::Text(text) => match text.strip_prefix('@') {
                Some(name) => self.name_of(name, "a set", node.span).map(Expr::Reference),
                None if text == "*" => Err(Diagnostic::new(
                    node.span,
                    "`*` is the catch-all element of a set, not a value",
                )),
                None => node.symbol("a value").map(Expr::Symbol),
            },
            Kind::Number(_) | Kind::Negative(_) | Kind::Bool(_) => {
                node.symbol("a value").map(Expr::Symbol)
            }
            Kind::List(entries) => self.flags(node, entries),
            Kind::Object(_) => self.tagged(node),
            Kind::Null | Kind::OtherNumber => Err(node.wrong(["an expression"])),
        }
    }

    /// Reads several flags.
    fn flags(self, node: &Node<'_>, entries: &[Node<'_>]) -> Result<Expr, Diagnostic> {
        let mut flags = Vec::with_capacity(entries.len());
        for entry in entries {
            if let Kind::List(_) = entry.kind {
                return Err(entry.wrong(["a flag"]));
            }
            flags.push(self.expr(entry)?);
        }
        match (flags.pop(), flags.is_empty()) {
            (None, _) => Err(Diagnostic::new(node.span, "empty list")),
            (Some(one), true) => Ok(one),
            (Some(last), false) => {
                flags.push(last);
                Ok(Expr::Flags(flags))
            }
        }
    }

    /// Reads a selector.
    pub(crate) fn left(self, node: &Node<'_>) -> Result<Expr, Diagnostic> {
        let left = self.expr(node)?;
        match has_selector(&left) {
            true => Ok(left),
            false => Err(
                Diagnostic::new(node.span, "expected an expression, found a constant").expecting([
                    "an expression like {\"payload\": …}, {\"meta\": …} or {\"ct\": …}",
                ]),
            ),
        }
    }

    /// Reads an object whose only key is the kind of expression.
    fn tagged(self, node: &Node<'_>) -> Result<Expr, Diagnostic> {
        let (key, value) = node.tagged("expression")?;
        if let Some(verdict) = self.verdict(&key.text, value)? {
            return Ok(Expr::Verdict(verdict));
        }
        match &*key.text {
            "payload" => payload(value),
            "exthdr" => option(value, ExthdrOp::IPV6),
            "tcp option" => option(value, ExthdrOp::TCPOPT),
            "ip option" => option(value, ExthdrOp::IPV4),
            "sctp chunk" => option(value, ExthdrOp::SCTP),
            "dccp option" => dccp_option(value),
            "meta" => meta(value),
            "tunnel" => tunnel(value),
            "ct" => self.ct(value),
            "rt" => self.rt(value),
            "socket" => socket(value),
            "fib" => fib(value),
            "osf" => osf(value),
            "ipsec" => ipsec(value),
            "numgen" => numgen(value),
            "jhash" | "symhash" => self.hash(value, &key.text),
            "prefix" => self.prefix(value),
            "range" => match value.list("two values")? {
                [from, to] => Ok(Expr::Range(self.boxed(from)?, self.boxed(to)?)),
                _ => Err(Diagnostic::new(value.span, "a range has two ends")),
            },
            "concat" => {
                let parts = value.list("expressions")?;
                if parts.len() < 2 {
                    return Err(Diagnostic::new(
                        value.span,
                        "a concatenation needs at least two parts",
                    ));
                }
                let parts = parts.iter().map(|part| self.expr(part));
                Ok(Expr::Concat(parts.collect::<Result<_, _>>()?))
            }
            "set" => self.set(value),
            "map" => {
                let (map_key, map) = self.key_and_map(value, "a map")?;
                Ok(Expr::Map(Box::new(map_key), Box::new(map)))
            }
            "elem" => Err(Diagnostic::new(
                key.span,
                "an element is only allowed in a set",
            )),
            "opaque" => Err(opaque(key.span)),
            sign => match operator(sign) {
                Some(operator) => self.operation(operator, value),
                None => {
                    let message = format!("unknown expression `{}`", shown(sign));
                    Err(Diagnostic::new(key.span, message)
                        .expecting(KNOWN)
                        .nearest_to(sign))
                }
            },
        }
    }

    fn boxed(self, node: &Node<'_>) -> Result<Box<Expr>, Diagnostic> {
        self.expr(node).map(Box::new)
    }

    /// Reads an operation with two or more operands, left-associative.
    fn operation(self, operator: Operator, node: &Node<'_>) -> Result<Expr, Diagnostic> {
        let operands = node.list("two operands")?;
        let [first, others @ ..] = operands else {
            return Err(Diagnostic::new(node.span, "an operation has two operands"));
        };
        if others.is_empty() {
            return Err(Diagnostic::new(node.span, "an operation has two operands"));
        }
        let mut left = self.expr(first)?;
        for other in others {
            left = Expr::binary(operator, left, self.expr(other)?);
        }
        Ok(left)
    }

    fn prefix(self, node: &Node<'_>) -> Result<Expr, Diagnostic> {
        let fields = Fields::new(node, "a prefix", &["addr", "len"])?;
        let bits = fields.need("len")?;
        let bits = bits.number("a prefix length")?;
        Ok(Expr::Prefix(self.boxed(fields.need("addr")?)?, bits))
    }

    /// Reads the key and the map of a lookup.
    pub(crate) fn key_and_map(self, node: &Node<'_>, of: &str) -> Result<(Expr, Expr), Diagnostic> {
        let fields = Fields::new(node, of, &["key", "data"])?;
        let key = self.left(fields.need("key")?)?;
        let data = fields.need("data")?;
        let map = match self.expr(data)? {
            map @ (Expr::Set(_) | Expr::Reference(_)) => map,
            _ => {
                return Err(data.wrong([
                    "{\"set\": [[key, value], …]}",
                    "a map's name like \"@name\"",
                ]));
            }
        };
        Ok((key, map))
    }

    /// Reads an anonymous set.
    fn set(self, node: &Node<'_>) -> Result<Expr, Diagnostic> {
        let mut elements = Vec::new();
        for entry in node.one_or_many() {
            self.element(entry, &mut |element| elements.push(element))?;
        }
        match elements.is_empty() {
            true => Err(Diagnostic::new(
                node.span,
                "an anonymous set needs at least one element",
            )),
            false => Ok(Expr::Set(elements)),
        }
    }

    /// Reads an element. A map element is a list of key and data; the elements of a nested set are added to the outer
    /// one.
    pub(crate) fn element(
        self,
        node: &Node<'_>,
        take: &mut dyn FnMut(Element),
    ) -> Result<(), Diagnostic> {
        match &node.kind {
            Kind::List(pair) => {
                let [key, data] = &pair[..] else {
                    return Err(Diagnostic::new(
                        node.span,
                        "expected a value, or a list of a key and its data",
                    ));
                };
                let mut element = self.key(key)?;
                let data = Some(self.data(data)?);
                match element {
                    Element {
                        key: Some(Expr::Set(inner)),
                        ..
                    } => with_data(inner, data, node.span)?.for_each(take),
                    _ => {
                        element.data = data;
                        take(element);
                    }
                }
                Ok(())
            }
            Kind::Object(entries) => match &entries[..] {
                [(key, inner)] if key.text == "set" => {
                    let mut inner = inner.one_or_many().iter();
                    inner.try_for_each(|entry| self.element(entry, take))
                }
                _ => {
                    take(self.key(node)?);
                    Ok(())
                }
            },
            _ => {
                take(self.key(node)?);
                Ok(())
            }
        }
    }

    /// Reads the key of an element, with its options and statements.
    pub(crate) fn key(self, node: &Node<'_>) -> Result<Element, Diagnostic> {
        let value = |node: &Node<'_>| match &node.kind {
            Kind::Text(text) if text == "*" => Ok(None),
            Kind::List(_) => Err(node.wrong(["a value"])),
            _ => self.expr(node).map(Some),
        };
        let Kind::Object(entries) = &node.kind else {
            return Ok(Element::new(value(node)?));
        };
        let [(tag, inner)] = &entries[..] else {
            return Ok(Element::new(value(node)?));
        };
        if tag.text != "elem" {
            return Ok(Element::new(value(node)?));
        }
        let own = ["val", "timeout", "expires", "comment"];
        let known: Vec<_> = own.into_iter().chain(stateful_words()).collect();
        let fields = Fields::new(inner, "an element", &known)?;
        let mut element = Element::new(value(fields.need("val")?)?);
        let seconds = |key| match fields.get(key) {
            None => Ok(None),
            Some(node) if node.number::<u64>("a time").is_ok_and(|time| time == NEVER) => {
                Ok(Some(0))
            }
            // 0 means "not set".
            Some(node) => milliseconds(node).map(|time| Some(time).filter(|time| *time > 0)),
        };
        element.timeout = seconds("timeout")?;
        element.expires = seconds("expires")?;
        if let Some(comment) = fields.get("comment") {
            element.comment = Some(comment.lossless_text("a comment")?.to_owned());
        }
        if let Kind::Object(entries) = &inner.kind {
            for (key, value) in entries {
                element
                    .statements
                    .extend(Statement::read_stateful(self, key, value)?);
            }
        }
        Ok(element)
    }

    /// Reads the data of a map element.
    pub(crate) fn data(self, node: &Node<'_>) -> Result<Expr, Diagnostic> {
        match self.expr(node)? {
            Expr::Verdict(Verdict::Jump(Target::Rules(_)) | Verdict::Goto(Target::Rules(_))) => {
                Err(Diagnostic::new(
                    node.span,
                    "a verdict map can only jump to named chains",
                ))
            }
            Expr::Reference(_) | Expr::Set(_) => Err(node.wrong(["a value", "a verdict"])),
            data => Ok(data),
        }
    }

    /// Reads a verdict, if the key is one.
    pub(crate) fn verdict(
        self,
        key: &str,
        value: &Node<'_>,
    ) -> Result<Option<Verdict>, Diagnostic> {
        let plain = match key {
            "accept" => Verdict::Accept,
            "drop" => Verdict::Drop,
            "continue" => Verdict::Continue,
            "break" => Verdict::Break,
            "return" => Verdict::Return,
            "jump" => return self.target(value).map(|to| Some(Verdict::Jump(to))),
            "goto" => return self.target(value).map(|to| Some(Verdict::Goto(to))),
            _ => return Ok(None),
        };
        match value.is_bare() {
            true => Ok(Some(plain)),
            false => Err(value.wrong(["null"])),
        }
    }

    /// Reads the target of a jump or goto.
    fn target(self, node: &Node<'_>) -> Result<Target, Diagnostic> {
        let fields = Fields::new(node, "a jump", &["target", "rules"])?;
        match (fields.get("target"), fields.get("rules")) {
            (Some(target), None) => {
                let name = target.text("the name of a chain")?;
                self.name_of(name, "a chain", target.span)
                    .map(Target::Chain)
            }
            (None, Some(rules)) => self.lines(rules).map(Target::Rules),
            (Some(_), Some(rules)) => Err(Diagnostic::new(
                rules.span,
                "a jump has a chain or rules as target, not both",
            )),
            (None, None) => Err(fields.missing("target")),
        }
    }

    fn ct(self, node: &Node<'_>) -> Result<Expr, Diagnostic> {
        let fields = Fields::new(node, "a ct expression", &["key", "dir", "family"])?;
        let direction = fields.word("dir", "direction", &["original", "reply"])?;
        let direction = direction.map(|word| match word {
            "original" => CtDirection::ORIGINAL,
            _ => CtDirection::REPLY,
        });
        let node = fields.need("key")?;
        let word = node.text("a key")?;
        let version = fields.word("family", "IP version", &VERSIONS)?;
        let of_version = match (version, word.split_once(' ')) {
            (Some(version), _) => Some((version, word)),
            (None, Some((version, key))) => Some((version, key)),
            (None, None) => None,
        };
        // Addresses with their IP version.
        let found = match of_version {
            Some(("ip", "saddr")) => Some(CtKey::SRC_IP),
            Some(("ip", "daddr")) => Some(CtKey::DST_IP),
            Some(("ip6", "saddr")) => Some(CtKey::SRC_IP6),
            Some(("ip6", "daddr")) => Some(CtKey::DST_IP6),
            _ => None,
        };
        if let Some(key) = found {
            return Ok(Expr::Ct(key, direction, None));
        }
        if let Some(family) = fields.get("family") {
            let message = "this key has no IP version: only saddr and daddr have one";
            return Err(Diagnostic::new(family.span, message));
        }
        let Some(key) = ct_key(word) else {
            let known = ct_names().map(|(name, _)| name);
            return Err(node.unknown("ct key", known));
        };
        if needs_direction(key) && direction.is_none() {
            let hint = "use \"dir\": \"original\" or \"dir\": \"reply\"";
            return Err(without_direction(&shown(word), node.span).with_hint(hint));
        }
        Ok(Expr::Ct(key, direction, version_in(self.family, key)))
    }

    fn rt(self, node: &Node<'_>) -> Result<Expr, Diagnostic> {
        let fields = Fields::new(node, "an rt expression", &["key", "family"])?;
        let version = fields.word("family", "IP version", &VERSIONS)?;
        let keys = ["classid", "nexthop", "mtu", "ipsec"];
        let key = fields.need("key")?.word("rt key", &keys)?;
        let key = match (key, version) {
            ("nexthop", Some("ip6")) => RtKey::NEXTHOP6,
            ("nexthop", None) if self.family == Family::IP6 => RtKey::NEXTHOP6,
            ("nexthop", _) => RtKey::NEXTHOP4,
            (_, Some(_)) => {
                let span = fields.need("family")?.span;
                return Err(Diagnostic::new(span, "this key has no IP version"));
            }
            ("classid", None) => RtKey::CLASSID,
            ("mtu", None) => RtKey::TCPMSS,
            (_, None) => RtKey::XFRM,
        };
        Ok(Expr::Rt(key))
    }

    fn hash(self, node: &Node<'_>, word: &str) -> Result<Expr, Diagnostic> {
        let of_key = word == "jhash";
        let known: &[&str] = match of_key {
            true => &["mod", "seed", "offset", "expr"],
            false => &["mod", "offset"],
        };
        let fields = Fields::new(node, "a hash", known)?;
        let key = match of_key {
            true => Some(Box::new(self.left(fields.need("expr")?)?)),
            false => None,
        };
        Ok(Expr::Hash {
            key,
            modulus: modulus(&fields)?,
            seed: small(&fields, "seed", "a seed")?,
            offset: small(&fields, "offset", "an offset")?.unwrap_or(0),
        })
    }
}

/// Creates the error that nft's language cannot represent a value.
pub(crate) fn opaque(span: Span) -> Diagnostic {
    Diagnostic::new(
        span,
        "this marks something that nft's language cannot express: it cannot be recreated",
    )
    .with_hint("use `backup` to copy rulesets with such rules")
}

/// Returns `true` if an expression contains a selector.
fn has_selector(expr: &Expr) -> bool {
    match expr {
        Expr::Payload(_)
        | Expr::Option(_)
        | Expr::Meta(_)
        | Expr::Tunnel(_)
        | Expr::Ct(..)
        | Expr::Rt(_)
        | Expr::Socket(..)
        | Expr::Fib(..)
        | Expr::Osf { .. }
        | Expr::Xfrm { .. }
        | Expr::Numgen { .. }
        | Expr::Hash { .. } => true,
        Expr::Binary(_, left, _) | Expr::Map(left, _) => has_selector(left),
        // A constant is part of a set's keys.
        Expr::Concat(parts) => {
            let may_be_part = |part: &Expr| matches!(part, Expr::Symbol(_)) || has_selector(part);
            parts.iter().any(has_selector) && parts.iter().all(may_be_part)
        }
        _ => false,
    }
}

/// Reads seconds as milliseconds.
pub(crate) fn milliseconds(node: &Node<'_>) -> Result<u64, Diagnostic> {
    let seconds: u64 = node.number("a number of seconds")?;
    seconds
        .checked_mul(1000)
        .ok_or_else(|| Diagnostic::new(node.span, "time is too long"))
}
