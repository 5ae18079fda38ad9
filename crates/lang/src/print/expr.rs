//! Prints expressions.

use std::fmt::{self, Write};

use super::Printer;
use crate::constant::{self as value, Plain, Quoted};
use crate::dialect::Form;
use crate::selectors;
use crate::syntax::{Expr, Operator, OptionField, Payload, Target, Value, Verdict};
use crate::types::{self, DAY};
use chainwright::nft::expr::{
    CtDirection, ExthdrOp, FibFlags, OsfTtl, PayloadBase, SocketKey, XfrmDirection,
};

impl<W: Write> Printer<'_, W> {
    pub(crate) fn expr(&mut self, expr: &Expr) -> fmt::Result {
        match expr {
            Expr::Value(value) => self.value(value),
            Expr::Symbol(symbol) => match symbol.is_quoted {
                true => write!(self.out, "{}", Quoted((&*symbol.text).into())),
                false => write!(self.out, "{}", Plain((&*symbol.text).into())),
            },
            Expr::Payload(payload) => self.payload(payload),
            Expr::Option(option) => self.option(option),
            Expr::Meta(_) | Expr::QueueNumber => self.key(expr),
            Expr::Inside(tunnel, _) => {
                write!(self.out, "{} ", tunnel.name())?;
                self.key(expr)
            }
            Expr::Tunnel(_) => {
                self.out.write_str("tunnel ")?;
                self.key(expr)
            }
            Expr::Ct(_, direction, _) => {
                self.out.write_str(match direction {
                    Some(CtDirection::ORIGINAL) => "ct original ",
                    Some(CtDirection::REPLY) => "ct reply ",
                    _ => "ct ",
                })?;
                self.key(expr)
            }
            Expr::Rt(_) => {
                self.out.write_str("rt ")?;
                self.key(expr)
            }
            Expr::Socket(key, level) => {
                self.out.write_str("socket ")?;
                self.key(expr)?;
                match *key == SocketKey::CGROUPV2 {
                    true => write!(self.out, " level {level}"),
                    false => Ok(()),
                }
            }
            Expr::Fib(flags, _) => self.fib(expr, *flags, "check"),
            Expr::Osf { ttl, version } => {
                let ttl = match *ttl {
                    OsfTtl::LESS => "ttl loose ",
                    OsfTtl::NOCHECK => "ttl skip ",
                    _ => "",
                };
                let what = if *version { "version" } else { "name" };
                write!(self.out, "osf {ttl}{what}")
            }
            Expr::Xfrm {
                direction, number, ..
            } => {
                let direction = match *direction {
                    XfrmDirection::OUT => "out",
                    _ => "in",
                };
                write!(self.out, "ipsec {direction} ")?;
                if *number > 0 {
                    write!(self.out, "spnum {number} ")?;
                }
                self.key(expr)
            }
            Expr::Numgen {
                modulus, offset, ..
            } => {
                self.out.write_str("numgen ")?;
                self.key(expr)?;
                write!(self.out, " mod {modulus}")?;
                self.offset(*offset)
            }
            Expr::Hash {
                key,
                modulus,
                seed,
                offset,
            } => {
                self.key(expr)?;
                if let Some(key) = key {
                    self.out.write_char(' ')?;
                    self.expr(key)?;
                }
                write!(self.out, " mod {modulus}")?;
                if let Some(seed) = seed {
                    write!(self.out, " seed {seed:#x}")?;
                }
                self.offset(*offset)
            }
            Expr::Binary(operator, left, right) => {
                self.operand(left, operator.precedence())?;
                write!(self.out, " {} ", operator.sign())?;
                // All operators are left-associative.
                self.operand(right, operator.precedence() + 1)
            }
            Expr::Prefix(value, bits) => {
                self.expr(value)?;
                self.space_after_word(value)?;
                write!(self.out, "/{bits}")
            }
            Expr::Range(from, to) => {
                self.limit(from)?;
                self.space_after_word(from)?;
                self.out.write_char('-')?;
                self.limit(to)
            }
            Expr::Beginning(value, bits) => {
                value::beginning(&mut self.out, value.number, value.bits, *bits)
            }
            Expr::Concat(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        self.out.write_str(" . ")?;
                    }
                    self.expr(part)?;
                }
                Ok(())
            }
            Expr::Flags(flags) => {
                for (index, flag) in flags.iter().enumerate() {
                    if index > 0 {
                        self.out.write_char(',')?;
                    }
                    self.expr(flag)?;
                }
                Ok(())
            }
            Expr::Masked(flags, of) => {
                self.expr(flags)?;
                self.out.write_str(" / ")?;
                self.expr(of)
            }
            Expr::Set(elements) => {
                self.out.write_str("{ ")?;
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        self.out.write_str(", ")?;
                    }
                    self.element(element)?;
                }
                self.out.write_str(" }")
            }
            Expr::Reference(name) => write!(self.out, "@{}", Plain(name.as_str().into())),
            Expr::Map(key, map) => {
                self.expr(key)?;
                self.out.write_str(" map ")?;
                self.expr(map)
            }
            Expr::Verdict(verdict) => self.verdict(verdict),
            Expr::Object(name) => write!(self.out, "{}", Quoted(name.as_str().into())),
        }
    }

    /// Prints the name of a selector.
    fn key(&mut self, selector: &Expr) -> fmt::Result {
        let name = selectors::of(selector).map_or("unknown", |key| key.name);
        self.out.write_str(name)
    }

    fn offset(&mut self, offset: u32) -> fmt::Result {
        match offset {
            0 => Ok(()),
            offset => write!(self.out, " offset {offset}"),
        }
    }

    /// Prints an operand, in parentheses if its precedence is lower than `tightest`.
    fn operand(&mut self, operand: &Expr, tightest: u8) -> fmt::Result {
        match operand {
            Expr::Binary(inner, ..) if inner.precedence() < tightest => {
                self.out.write_char('(')?;
                self.expr(operand)?;
                self.out.write_char(')')
            }
            // Several flags in one value.
            Expr::Value(value)
                if types::is_bitmask(value.data_type)
                    && value.number.count_ones() > 1
                    && tightest > Operator::Or.precedence() =>
            {
                self.out.write_char('(')?;
                self.expr(operand)?;
                self.out.write_char(')')
            }
            operand => self.expr(operand),
        }
    }

    /// Prints a blank after a word, to separate it from a dash or slash.
    fn space_after_word(&mut self, expr: &Expr) -> fmt::Result {
        match expr {
            Expr::Symbol(symbol) => {
                let is_number = symbol.text.starts_with(|c: char| c.is_ascii_digit());
                let is_word = !is_number && !symbol.is_quoted && !symbol.text.contains(':');
                match is_word {
                    true => self.out.write_char(' '),
                    false => Ok(()),
                }
            }
            Expr::Binary(_, _, last) => self.space_after_word(last),
            _ => Ok(()),
        }
    }

    /// Prints a bound of a range, always as a number.
    fn limit(&mut self, limit: &Expr) -> fmt::Result {
        match limit {
            Expr::Value(value) if value.data_type == DAY && self.options.has(Form::DayRanges) => {
                write!(self.out, "{}", value.number)
            }
            Expr::Value(value) => value::numeric(&mut self.out, value, self.options),
            limit => self.expr(limit),
        }
    }

    pub(crate) fn value(&mut self, value: &Value) -> fmt::Result {
        value::plain(&mut self.out, value, self.options)
    }

    pub(crate) fn flags(&mut self, value: &Value, between: &str) -> fmt::Result {
        value::flags(&mut self.out, value, between, self.options)
    }

    fn verdict(&mut self, verdict: &Verdict) -> fmt::Result {
        let (word, target) = match verdict {
            Verdict::Accept => return self.out.write_str("accept"),
            Verdict::Drop => return self.out.write_str("drop"),
            Verdict::Continue => return self.out.write_str("continue"),
            Verdict::Break => return self.out.write_str("break"),
            Verdict::Return => return self.out.write_str("return"),
            Verdict::Jump(target) => ("jump", target),
            Verdict::Goto(target) => ("goto", target),
        };
        match target {
            Target::Chain(name) => write!(self.out, "{word} {}", Plain(name.as_str().into())),
            Target::Rules(rules) if self.in_line => {
                write!(self.out, "{word} {{ ")?;
                for rule in rules {
                    self.rule(rule)?;
                    self.out.write_str("; ")?;
                }
                self.out.write_char('}')
            }
            Target::Rules(rules) => {
                writeln!(self.out, "{word} {{")?;
                self.depth += 1;
                self.rules(rules.iter().cloned())?;
                self.depth -= 1;
                self.indent()?;
                self.out.write_char('}')
            }
        }
    }

    fn payload(&mut self, payload: &Payload) -> fmt::Result {
        if let Some(tunnel) = payload.tunnel
            && payload
                .field
                .is_none_or(|(protocol, _)| protocol != tunnel.own)
        {
            write!(self.out, "{} ", tunnel.name())?;
        }
        if let Some((protocol, field)) = payload.field {
            return write!(
                self.out,
                "{} {}",
                protocol.name, protocol.fields[field].name
            );
        }
        let base = match payload.base {
            PayloadBase::LINK => "ll",
            PayloadBase::NETWORK => "nh",
            PayloadBase::TRANSPORT => "th",
            _ => "ih",
        };
        write!(self.out, "@{base},{},{}", payload.offset, payload.bits)
    }

    fn option(&mut self, option: &OptionField) -> fmt::Result {
        let extension = option.extension;
        let kind = match extension.kind {
            ExthdrOp::TCPOPT => "tcp option ",
            ExthdrOp::IPV4 => "ip option ",
            ExthdrOp::SCTP => "sctp chunk ",
            ExthdrOp::DCCP => "dccp option ",
            _ if option.presence => "exthdr ",
            _ => "",
        };
        self.out.write_str(kind)?;
        let is_whole = option.presence || (option.bits == 0 && option.offset == 0);
        match (is_whole, option.field()) {
            (true, _) if extension.name.is_empty() => write!(self.out, "{}", option.number),
            (true, _) => self.out.write_str(extension.name),
            (false, Some(field)) if !extension.name.is_empty() => {
                write!(self.out, "{} {}", extension.name, field.name)
            }
            _ => write!(
                self.out,
                "@{},{},{}",
                option.number, option.offset, option.bits
            ),
        }
    }

    /// Prints a `fib` expression. `present` is the name of the result that tests whether a route exists: its name in
    /// nft 1.1 differs from earlier versions, which only accept it in a comparison with `exists` or `missing`.
    pub(crate) fn fib(&mut self, fib: &Expr, flags: FibFlags, present: &str) -> fmt::Result {
        self.out.write_str("fib ")?;
        let mut first = true;
        for (flag, word) in FibFlags::NAMED {
            if flags.contains(flag) {
                if !first {
                    self.out.write_str(" . ")?;
                }
                self.out.write_str(word)?;
                first = false;
            }
        }
        self.out.write_char(' ')?;
        match flags.contains(FibFlags::PRESENT) {
            true => self.out.write_str(present),
            false => self.key(fib),
        }
    }
}
