//! Prints statements.

use std::fmt::{self, Write};

use super::Printer;
use crate::constant::{self as value, Plain, Quoted};
use crate::dialect::Form;
use crate::statements;
use crate::syntax::{Expr, Relation, Statement, Translation};
use chainwright::nft::DataType;
use chainwright::nft::expr::CtKey;

impl<W: Write> Printer<'_, W> {
    pub(crate) fn other_statement(&mut self, statement: &Statement) -> fmt::Result {
        match statement {
            Statement::Match {
                left,
                relation,
                right,
            } => {
                match (left, right) {
                    (Expr::Fib(flags, _), Expr::Value(_) | Expr::Symbol(_))
                        if !self.options.has(Form::FibCheck) =>
                    {
                        self.fib(left, *flags, "oif")?;
                    }
                    (left, _) => self.expr(left)?,
                }
                if *relation != Relation::Implicit {
                    write!(self.out, " {}", relation.sign())?;
                }
                self.out.write_char(' ')?;
                match right {
                    // Several flags in one value.
                    Expr::Value(value)
                        if left.is_bitmask()
                            && value.number.count_ones() > 1
                            && !self.has_names(left) =>
                    {
                        value::numeric(&mut self.out, value, self.options)
                    }
                    right => self.expr(right),
                }
            }
            Statement::Verdict(verdict) => self.expr(verdict),
            Statement::VerdictMap(key, map) => {
                self.expr(key)?;
                self.out.write_str(" vmap ")?;
                self.expr(map)
            }
            Statement::Reject(None) => self.out.write_str("reject"),
            Statement::Reject(Some((words, code))) => {
                write!(self.out, "reject with {words}")?;
                if let Some(code) = code {
                    self.out.write_char(' ')?;
                    value::reason(&mut self.out, code, self.options)?;
                }
                Ok(())
            }
            Statement::Translate {
                kind,
                family,
                prefix,
                address,
                port,
                flags,
            } => {
                self.out.write_str(match kind {
                    Translation::Source => "snat",
                    Translation::Destination => "dnat",
                    Translation::Masquerade => "masquerade",
                    Translation::Redirect => "redirect",
                })?;
                if address.is_some() || port.is_some() {
                    self.word(*family)?;
                    self.word(prefix.then_some("prefix"))?;
                    self.destination(address.as_ref(), port.as_ref(), port.is_some())?;
                }
                if !flags.is_empty() {
                    write!(self.out, " {}", flags.join(","))?;
                }
                Ok(())
            }
            Statement::Tproxy {
                family,
                address,
                port,
            } => {
                self.out.write_str("tproxy")?;
                self.word(*family)?;
                self.destination(address.as_ref(), port.as_ref(), true)
            }
            Statement::Queue { numbers, flags } => {
                self.out.write_str("queue")?;
                if !flags.is_empty() {
                    write!(self.out, " flags {}", flags.join(","))?;
                }
                if let Some(numbers) = numbers {
                    self.out.write_str(" to ")?;
                    self.expr(numbers)?;
                }
                Ok(())
            }
            Statement::Set(target, to) => {
                self.expr(target)?;
                self.out.write_str(" set ")?;
                match (target, to) {
                    // Several events are printed as a list.
                    (Expr::Ct(CtKey::EVENTMASK, ..), Expr::Value(events)) => {
                        self.flags(events, ",")
                    }
                    _ => self.expr(to),
                }
            }
            Statement::Reset(option) => {
                self.out.write_str("reset ")?;
                self.expr(option)
            }
            Statement::Notrack => self.out.write_str("notrack"),
            Statement::FlowAdd(table) => {
                write!(self.out, "flow add @{}", Plain(table.as_str().into()))
            }
            Statement::Duplicate { address, device } => {
                self.out.write_str("dup to ")?;
                if let Some(address) = address {
                    self.expr(address)?;
                }
                match (address, device) {
                    (Some(_), Some(device)) => {
                        self.out.write_str(" device ")?;
                        self.expr(device)
                    }
                    (None, Some(device)) => self.expr(device),
                    (_, None) => Ok(()),
                }
            }
            Statement::Forward {
                family,
                address,
                device,
            } => {
                self.out.write_str("fwd")?;
                self.word(*family)?;
                self.out.write_str(" to ")?;
                if let Some(address) = address {
                    self.expr(address)?;
                    self.out.write_str(" device ")?;
                }
                self.expr(device)
            }
            Statement::Update { word, set, element } => {
                write!(self.out, "{word} @{} {{ ", Plain(set.as_str().into()))?;
                self.update(element)?;
                self.out.write_str(" }")
            }
            Statement::Meter {
                name,
                size,
                element,
            } => {
                write!(self.out, "meter {}", Plain(name.as_str().into()))?;
                if let Some(size) = size {
                    write!(self.out, " size {size}")?;
                }
                self.out.write_str(" { ")?;
                self.update(element)?;
                self.out.write_str(" }")
            }
            Statement::Object(object_type, object) => {
                let words = statements::reference(*object_type).unwrap_or_default();
                write!(self.out, "{words} ")?;
                self.expr(object)
            }
            Statement::Extension(kind, name) => {
                write!(self.out, "xt {kind} {}", Quoted(name.as_str().into()))
            }
            Statement::Opaque(instruction) => {
                // Control characters in names could end the comment.
                write!(self.out, "{}", Plain(instruction.as_str().into()))
            }
            other => other.print(self),
        }
    }

    /// Returns `true` if several flags that are compared with this expression are printed by name.
    fn has_names(&self, left: &Expr) -> bool {
        matches!(left, Expr::Binary(..)) && self.options.has(Form::FlagMasks)
    }

    /// Prints ` to 192.0.2.1:80`.
    fn destination(
        &mut self,
        address: Option<&Expr>,
        port: Option<&Expr>,
        in_brackets: bool,
    ) -> fmt::Result {
        self.out.write_str(" to ")?;
        if let Some(address) = address {
            self.address(address, in_brackets)?;
        }
        if let Some(port) = port {
            self.out.write_char(':')?;
            self.expr(port)?;
        }
        Ok(())
    }

    /// Prints a NAT or tproxy address; an IPv6 address in brackets if a port may follow.
    fn address(&mut self, address: &Expr, in_brackets: bool) -> fmt::Result {
        let is_v6 = |expr: &Expr| match expr {
            Expr::Value(value) => value.data_type == DataType::IPV6_ADDR,
            Expr::Symbol(symbol) => symbol.text.contains(':') && !symbol.is_quoted,
            _ => false,
        };
        match address {
            Expr::Range(from, to) if in_brackets && is_v6(from) => {
                self.out.write_char('[')?;
                self.expr(from)?;
                self.out.write_str("]-[")?;
                self.expr(to)?;
                self.out.write_char(']')
            }
            address if in_brackets && is_v6(address) => {
                self.out.write_char('[')?;
                self.expr(address)?;
                self.out.write_char(']')
            }
            address => self.expr(address),
        }
    }
}
