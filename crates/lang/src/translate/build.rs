//! Builds syntax trees.

use std::net::IpAddr;

use crate::protocols::{EXTENSIONS, Extension, Field, NAMELESS_TCP, Protocol};
use crate::syntax::{
    Element, Expr, Operator, OptionField, Payload, Relation, Span, Symbol, Verdict,
};
use chainwright::nft::expr::{CtDirection, CtKey, ExthdrOp, MetaKey};

/// Kind of a NAT statement.
#[derive(Debug, Clone, Copy)]
pub(super) enum Nat {
    Source,
    Destination,
    Masquerade,
    Redirect,
}

/// Statement of a translated rule.
#[derive(Debug, Clone)]
pub(super) enum Statement {
    Match {
        left: Expr,
        relation: Relation,
        right: Expr,
    },
    Verdict(Verdict),
    /// Jump to an anonymous chain with these rules.
    Block(Vec<Vec<Statement>>),
    Counter {
        packets: u64,
        bytes: u64,
    },
    /// A number of packets per unit of time.
    Limit {
        rate: u64,
        unit: &'static str,
        burst: u32,
        over: bool,
    },
    Quota {
        bytes: u64,
        over: bool,
    },
    Connections {
        count: u32,
        over: bool,
    },
    /// Keeps the state of a statement for each key, in a set with this name; the timeout is in seconds.
    Meter {
        name: String,
        key: Expr,
        timeout: Option<u64>,
        state: Box<Statement>,
    },
    Log {
        prefix: Option<String>,
        group: Option<u16>,
        snaplen: Option<u32>,
        queue_threshold: Option<u16>,
        level: Option<u32>,
        flags: u32,
    },
    /// The words after `with`; `None` for the family's default.
    Reject(Option<&'static str>),
    Nat {
        kind: Nat,
        address: Option<Expr>,
        port: Option<Expr>,
        flags: Vec<&'static str>,
    },
    Tproxy {
        address: Option<Expr>,
        port: Expr,
    },
    Queue {
        numbers: Expr,
        flags: Vec<&'static str>,
    },
    /// `left set right`
    Set(Expr, Expr),
    Notrack,
    Synproxy {
        mss: Option<u16>,
        window_scale: Option<u8>,
        timestamp: bool,
        sack_permitted: bool,
    },
    Duplicate {
        address: Expr,
        device: Option<Expr>,
    },
}

/// Returns an address as the C library writes it.
pub(super) fn address(address: IpAddr) -> Expr {
    match address {
        // With an IPv4 address at the end.
        IpAddr::V6(six) if six.segments()[..6] == [0; 6] && six.segments()[6] != 0 => {
            let [.., a, b, c, d] = six.octets();
            word(format_args!("::{a}.{b}.{c}.{d}"))
        }
        other => word(other),
    }
}

fn symbol(text: String, is_quoted: bool) -> Expr {
    Expr::Symbol(Symbol {
        text: text.into(),
        is_quoted,
        span: Span::default(),
    })
}

/// Returns a constant as iptables-translate writes it.
pub(super) fn word(text: impl ToString) -> Expr {
    symbol(text.to_string(), false)
}

/// Returns a constant in quotation marks.
pub(super) fn quoted(text: impl ToString) -> Expr {
    symbol(text.to_string(), true)
}

pub(super) fn hex(number: u32) -> Expr {
    word(format_args!("{number:#x}"))
}

/// Returns a header field; the caller names one that exists.
pub(super) fn field(protocol: &'static Protocol, name: &str) -> Expr {
    let at = protocol.fields.iter().position(|field| field.name == name);
    let field = at.unwrap_or_default();
    let Field { offset, bits, .. } = protocol.fields[field];
    Expr::Payload(Payload {
        base: protocol.base,
        offset,
        bits,
        field: Some((protocol, field)),
        tunnel: None,
    })
}

fn extension(name: &str, kind: ExthdrOp) -> &'static Extension {
    let mut named = EXTENSIONS.iter().filter(|extension| extension.kind == kind);
    named
        .find(|extension| extension.name == name)
        .unwrap_or(&NAMELESS_TCP)
}

/// Returns a field of an extension header or TCP option.
pub(super) fn option(kind: ExthdrOp, name: &str, field: &str) -> Expr {
    let extension = extension(name, kind);
    let named = extension.named(field);
    Expr::Option(OptionField {
        extension,
        number: extension.number,
        offset: named.map_or(0, |field| field.offset),
        bits: named.map_or(0, |field| field.bits),
        presence: false,
    })
}

fn present(extension: &'static Extension, number: u8, is: bool) -> Statement {
    let option = Expr::Option(OptionField {
        extension,
        number,
        offset: 0,
        bits: 8,
        presence: true,
    });
    test(option, word(if is { "exists" } else { "missing" }))
}

/// Tests whether a header or chunk is present.
pub(super) fn exists(kind: ExthdrOp, name: &str, is: bool) -> Statement {
    let extension = extension(name, kind);
    present(extension, extension.number, is)
}

/// Tests whether a TCP option is present.
pub(super) fn tcp_option(number: u8, is: bool) -> Statement {
    present(&NAMELESS_TCP, number, is)
}

pub(super) const fn meta(key: MetaKey) -> Expr {
    Expr::Meta(key)
}

pub(super) const fn ct(key: CtKey) -> Expr {
    Expr::Ct(key, None, None)
}

pub(super) const fn ct_of(key: CtKey, direction: CtDirection) -> Expr {
    Expr::Ct(key, Some(direction), None)
}

pub(super) fn compared(left: Expr, relation: Relation, right: Expr) -> Statement {
    Statement::Match {
        left,
        relation,
        right,
    }
}

pub(super) fn test(left: Expr, right: Expr) -> Statement {
    compared(left, Relation::Implicit, right)
}

/// Tests for a value, or with `invert` for all others.
pub(super) fn is(left: Expr, invert: bool, right: Expr) -> Statement {
    let relation = match invert {
        true => Relation::NotEqual,
        false => Relation::Implicit,
    };
    compared(left, relation, right)
}

/// Tests the bits under a mask.
pub(super) fn under(left: Expr, mask: Expr, invert: bool, right: Expr) -> Statement {
    let relation = match invert {
        true => Relation::NotEqual,
        false => Relation::Equal,
    };
    compared(binary(Operator::And, left, mask), relation, right)
}

pub(super) fn binary(operator: Operator, left: Expr, right: Expr) -> Expr {
    Expr::Binary(operator, Box::new(left), Box::new(right))
}

/// Returns a range, or a value if both ends are the same.
pub(super) fn span<T: PartialEq + ToString>(first: T, last: T) -> Expr {
    match first == last {
        true => word(first),
        false => Expr::Range(Box::new(word(first)), Box::new(word(last))),
    }
}

pub(super) fn flags(names: &[&str]) -> Expr {
    match names {
        [one] => word(one),
        many => Expr::Flags(many.iter().map(word).collect()),
    }
}

pub(super) fn set(elements: impl IntoIterator<Item = Expr>) -> Expr {
    let element = |key| Element::new(Some(key));
    Expr::Set(elements.into_iter().map(element).collect())
}

/// Returns a set, or the only element.
pub(super) fn any(mut elements: Vec<Expr>) -> Expr {
    match elements.len() {
        1 => elements.remove(0),
        _ => set(elements),
    }
}

pub(super) fn sets(left: Expr, right: Expr) -> Statement {
    Statement::Set(left, right)
}

/// Matches all packets that do not meet all conditions of any of these lists, including packets without the values that
/// the conditions read. The result is an anonymous chain that all other packets leave immediately. [`joined`] appends
/// the rest of the rule.
pub(super) fn unless_any(conditions: Vec<Vec<Statement>>) -> Statement {
    let left = |mut tests: Vec<Statement>| {
        tests.push(Statement::Verdict(Verdict::Return));
        tests
    };
    Statement::Block(conditions.into_iter().map(left).collect())
}

/// Matches all packets that do not meet all conditions.
pub(super) fn unless(conditions: Vec<Statement>) -> Statement {
    unless_any(vec![conditions])
}

/// Joins the parts of a rule: the parts after [`unless`] become one anonymous chain, because the kernel does not
/// support nested ones. Returns `None` if that would change the meaning of the verdict or of a limit.
pub(super) fn joined(tests: Vec<Statement>, rest: Vec<Statement>) -> Option<Vec<Statement>> {
    let (mut front, mut lines, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    for statement in tests {
        match statement {
            Statement::Block(rules) => {
                let is_pure = behind.iter().all(|test| {
                    matches!(test, Statement::Match { left, .. } if !matches!(left, Expr::Numgen { .. }))
                });
                is_pure.then_some(())?;
                lines.extend(rules);
            }
            statement if lines.is_empty() => front.push(statement),
            statement => behind.push(statement),
        }
    }
    behind.extend(rest);
    if lines.is_empty() {
        front.extend(behind);
        return Some(front);
    }
    // The kernel does not nest these chains, such as that of TPROXY.
    let leaves = |statement: &Statement| {
        matches!(
            statement,
            Statement::Verdict(Verdict::Return | Verdict::Goto(_)) | Statement::Block(_)
        )
    };
    if behind.iter().any(leaves) {
        return None;
    }
    lines.push(behind);
    front.push(Statement::Block(lines));
    Some(front)
}
