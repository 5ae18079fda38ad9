//! Writes translations with the words of `iptables-translate`, which are older than those of nft's listings.

use std::fmt::{self, Write as _};

use super::build::{Nat, Statement};
use crate::list::Options;
use crate::print::Printer;
use crate::syntax::{Expr, Operator, Relation};
use chainwright::nft::expr::MetaKey;

/// Words of `log flags tcp` and of other flags, by their bits.
const LOG_FLAGS: [(u32, Option<&str>, &str); 5] = [
    (1, Some("tcp"), "sequence"),
    (2, Some("tcp"), "options"),
    (4, None, "ip options"),
    (8, None, "skuid"),
    (0x20, None, "ether"),
];

/// Words of log levels.
const LOG_LEVELS: [&str; 9] = [
    "emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit",
];

const fn word_over(over: bool) -> &'static str {
    match over {
        true => "over ",
        false => "",
    }
}

/// Writes statements, separated by blanks.
pub(super) fn text(statements: &[Statement]) -> String {
    let mut out = String::new();
    for (index, statement) in statements.iter().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        // Writing to a string does not fail.
        let _ = self::statement(&mut out, statement);
    }
    out
}

const fn word(key: MetaKey) -> Option<&'static str> {
    Some(match key {
        MetaKey::MARK => "mark",
        MetaKey::SKUID => "skuid",
        MetaKey::SKGID => "skgid",
        MetaKey::CPU => "cpu",
        MetaKey::PKTTYPE => "pkttype",
        MetaKey::RTCLASSID => "rtclassid",
        MetaKey::NFTRACE => "nftrace",
        MetaKey::SECPATH => "meta secpath",
        _ => return None,
    })
}

/// Returns `true` for the selectors of newer translations, whose operators are signs.
fn has_signs(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(_, left, _) => has_signs(left),
        Expr::Payload(_) | Expr::Option(_) | Expr::Meta(MetaKey::PRANDOM) => true,
        _ => false,
    }
}

fn statement(out: &mut String, statement: &Statement) -> fmt::Result {
    match statement {
        Statement::Match {
            left,
            relation,
            right,
        } => {
            match left {
                Expr::Binary(operator, value, mask) if has_signs(left) => {
                    expr(out, value)?;
                    write!(out, " {} ", operator.sign())?;
                    expr(out, mask)?;
                }
                left => expr(out, left)?,
            }
            let is_port = matches!(left, Expr::Payload(_) | Expr::Option(_))
                && *relation == Relation::GreaterOrEqual;
            let sign = match relation {
                Relation::Less if !matches!(left, Expr::Binary(..)) => "lt",
                Relation::LessOrEqual => "le",
                Relation::Greater => "gt",
                Relation::GreaterOrEqual if !is_port && !matches!(left, Expr::Binary(..)) => "ge",
                other => other.sign(),
            };
            if !sign.is_empty() {
                write!(out, " {sign}")?;
            }
            out.push(' ');
            expr(out, right)
        }
        Statement::Counter {
            packets: 0,
            bytes: 0,
        } => out.write_str("counter"),
        Statement::Counter { packets, bytes } => {
            write!(out, "counter packets {packets} bytes {bytes}")
        }
        Statement::Limit {
            rate,
            unit,
            burst,
            over,
        } => {
            let over = word_over(*over);
            write!(out, "limit rate {over}{rate}/{unit} burst {burst} packets")
        }
        Statement::Quota { bytes, over } => {
            write!(out, "quota {}{bytes} bytes", word_over(*over))
        }
        Statement::Connections { count, over } => {
            write!(out, "ct count {}{count}", word_over(*over))
        }
        Statement::Log {
            prefix,
            group,
            snaplen,
            queue_threshold,
            level,
            flags,
        } => {
            out.push_str("log");
            if let Some(prefix) = prefix {
                write!(out, " prefix \"{prefix}\"")?;
            }
            if let Some(length) = snaplen {
                write!(out, " snaplen {length}")?;
            }
            if let Some(threshold) = queue_threshold {
                write!(out, " queue-threshold {threshold}")?;
            }
            if let Some(group) = group {
                write!(out, " group {group}")?;
            }
            let level = level.and_then(|level| LOG_LEVELS.get(level as usize));
            if let Some(level) = level {
                write!(out, " level {level}")?;
            }
            if LOG_FLAGS.iter().all(|(flag, ..)| flags & flag != 0) {
                return out.write_str(" flags all");
            }
            let set = LOG_FLAGS.iter().filter(|(flag, ..)| flags & flag != 0);
            let tcp: Vec<&str> = set
                .clone()
                .filter(|(_, of, _)| of.is_some())
                .map(|(.., name)| *name)
                .collect();
            if !tcp.is_empty() {
                write!(out, " flags tcp {}", tcp.join(","))?;
            }
            for (_, _, name) in set.filter(|(_, of, _)| of.is_none()) {
                write!(out, " flags {name}")?;
            }
            Ok(())
        }
        Statement::Reject(None) => out.write_str("reject"),
        Statement::Reject(Some(words)) => write!(out, "reject with {words}"),
        Statement::Nat {
            kind,
            address,
            port,
            flags,
        } => {
            out.push_str(match kind {
                Nat::Source => "snat",
                Nat::Destination => "dnat",
                Nat::Masquerade => "masquerade",
                Nat::Redirect => "redirect",
            });
            to(out, address.as_ref(), port.as_ref())?;
            match flags.is_empty() {
                true => Ok(()),
                false => write!(out, " {}", flags.join(",")),
            }
        }
        Statement::Tproxy { address, port } => {
            out.push_str("tproxy");
            to(out, address.as_ref(), Some(port))
        }
        Statement::Queue { numbers, flags } => {
            out.push_str("queue num ");
            expr(out, numbers)?;
            match flags.is_empty() {
                true => Ok(()),
                false => write!(out, " {}", flags.join(",")),
            }
        }
        Statement::Set(target, value) => {
            match target {
                Expr::Meta(MetaKey::MARK) => out.push_str("meta mark"),
                target => expr(out, target)?,
            }
            out.push_str(" set ");
            expr(out, value)
        }
        Statement::Synproxy {
            mss,
            window_scale,
            timestamp,
            sack_permitted,
        } => {
            out.push_str("synproxy");
            if *sack_permitted {
                out.push_str(" sack-perm");
            }
            if *timestamp {
                out.push_str(" timestamp");
            }
            if let Some(scale) = window_scale {
                write!(out, " wscale {scale}")?;
            }
            match mss {
                Some(mss) => write!(out, " mss {mss}"),
                None => Ok(()),
            }
        }
        Statement::Notrack => out.write_str("notrack"),
        Statement::Duplicate { address, device } => {
            out.push_str("dup to ");
            expr(out, address)?;
            match device {
                Some(device) => {
                    out.push_str(" device ");
                    expr(out, device)
                }
                None => Ok(()),
            }
        }
        Statement::Meter {
            name,
            key,
            timeout,
            state,
        } => {
            write!(out, "meter {name} {{ ")?;
            expr(out, key)?;
            if let Some(seconds) = timeout {
                write!(out, " timeout {seconds}s")?;
            }
            let state = text(std::slice::from_ref(state));
            // nft's default.
            write!(out, " {} }}", state.trim_end_matches(" burst 5 packets"))
        }
        Statement::Verdict(verdict) => expr(out, &Expr::Verdict(verdict.clone())),
        Statement::Block(rules) => {
            out.push_str("jump { ");
            for rule in rules {
                write!(out, "{}; ", text(rule))?;
            }
            out.write_char('}')
        }
    }
}

/// Writes ` to 192.0.2.1:80`.
fn to(out: &mut String, address: Option<&Expr>, port: Option<&Expr>) -> fmt::Result {
    if address.is_none() && port.is_none() {
        return Ok(());
    }
    out.push_str(" to ");
    if let Some(address) = address {
        expr(out, address)?;
    }
    match port {
        Some(port) => {
            out.push(':');
            expr(out, port)
        }
        None => Ok(()),
    }
}

fn expr(out: &mut String, expr: &Expr) -> fmt::Result {
    let list = |out: &mut String, parts: &[Expr], between: &str| {
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                out.push_str(between);
            }
            self::expr(out, part)?;
        }
        Ok(())
    };
    match expr {
        Expr::Symbol(symbol) if symbol.is_quoted => write!(out, "\"{}\"", symbol.text),
        Expr::Symbol(symbol) => out.write_str(&symbol.text),
        Expr::Meta(key) if word(*key).is_some() => out.write_str(word(*key).unwrap_or_default()),
        Expr::Binary(operator, left, right) => {
            let sign = match operator {
                Operator::And => "and",
                Operator::Or => "or",
                Operator::Xor => "xor",
                shift => {
                    out.push_str("( ");
                    self::expr(out, left)?;
                    write!(out, " ) {} ", shift.sign())?;
                    return self::expr(out, right);
                }
            };
            self::expr(out, left)?;
            write!(out, " {sign} ")?;
            self::expr(out, right)
        }
        Expr::Prefix(value, bits) => {
            self::expr(out, value)?;
            write!(out, "/{bits}")
        }
        Expr::Range(first, last) => list(out, &[(**first).clone(), (**last).clone()], "-"),
        Expr::Concat(parts) => list(out, parts, " . "),
        Expr::Flags(parts) => list(out, parts, ","),
        Expr::Masked(flags, of) => list(out, &[(**flags).clone(), (**of).clone()], " / "),
        Expr::Set(elements) => {
            out.push_str("{ ");
            let keys: Vec<_> = elements
                .iter()
                .filter_map(|element| element.key.clone())
                .collect();
            list(out, &keys, ", ")?;
            out.write_str(" }")
        }
        other => Printer::new(out, &Options::default()).expr(other),
    }
}
