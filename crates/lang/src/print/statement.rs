//! Prints statements.

use std::fmt::{self, Write};

use super::Printer;
use crate::constant::{self as value, Plain, Quoted};
use crate::dialect::Form;
use crate::statements;
use crate::syntax::{Expr, Relation, Statement};
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
}
