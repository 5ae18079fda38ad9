//! Statements that are an expression, or begin with one: matches, verdicts, verdict maps, references to objects, and
//! expressions of the kernel that nft's language cannot represent.

#[cfg(feature = "json")]
use super::object_name;
use super::prelude::*;
use super::{Statement, reference};
use crate::compile::sets::Data;
use crate::constant::{self, Plain};
use crate::dialect::Form;
use crate::syntax::{Relation, Target, Verdict};
use chainwright::nft::expr::{CtKey, Immediate, MetaKey, Objref, Register};

impl Statement {
    pub(super) fn print_expression<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        match self {
            Self::Match {
                left,
                relation,
                right,
            } => {
                match (left, right) {
                    (Expr::Fib(flags, _), Expr::Value(_) | Expr::Symbol(_))
                        if !printer.options.has(Form::FibCheck) =>
                    {
                        printer.fib(left, *flags, "oif")?;
                    }
                    (left, _) => printer.expr(left)?,
                }
                if *relation != Relation::Implicit {
                    write!(printer.out, " {}", relation.sign())?;
                }
                printer.out.write_char(' ')?;
                let has_names =
                    matches!(left, Expr::Binary(..)) && printer.options.has(Form::FlagMasks);
                match right {
                    // Several flags in one value.
                    Expr::Value(value)
                        if left.is_bitmask() && value.number.count_ones() > 1 && !has_names =>
                    {
                        constant::numeric(&mut printer.out, value, printer.options)
                    }
                    right => printer.expr(right),
                }
            }
            Self::VerdictMap(key, map) => {
                printer.expr(key)?;
                printer.out.write_str(" vmap ")?;
                printer.expr(map)
            }
            Self::Object(object_type, object) => {
                let words = reference(*object_type).unwrap_or_default();
                write!(printer.out, "{words} ")?;
                printer.expr(object)
            }
            // Control characters in names could end the comment.
            Self::Opaque(bytecode) => {
                write!(printer.out, "{}", Plain(bytecode.as_str().into()))
            }
            Self::Verdict(verdict) => printer.expr(verdict),
            _ => Ok(()),
        }
    }

    pub(super) fn rule_end_of_expression(&self) -> RuleEnd {
        match self {
            Self::Match { .. }
            | Self::Opaque(_)
            | Self::Object(ObjectType::LIMIT | ObjectType::QUOTA | ObjectType::CONNLIMIT, _) => {
                RuleEnd::Condition
            }
            Self::Object(_, object) => end_by_operands(&[object]),
            _ => RuleEnd::Never,
        }
    }

    pub(super) fn operands_of_expression(&self) -> Vec<&Expr> {
        match self {
            Self::Match { left, right, .. } | Self::VerdictMap(left, right) => vec![left, right],
            Self::Verdict(expr) | Self::Object(_, expr) => vec![expr],
            _ => Vec::new(),
        }
    }

    pub(super) fn linearize_expression(
        &self,
        rule: &mut RuleBuilder<'_, '_>,
    ) -> Result<(), Diagnostic> {
        match self {
            Self::Verdict(Expr::Verdict(verdict)) => {
                let verdict = rule.jump(verdict)?;
                rule.push(&Immediate::verdict(verdict));
                Ok(())
            }
            Self::Object(object_type, object) => rule.object_reference(*object_type, object),
            _ => Err(rule.error("this statement is not allowed here")),
        }
    }

    #[cfg(feature = "json")]
    pub(super) fn expression_json<'s>(&'s self, writer: Writer<'_>) -> Expression<'s> {
        match self {
            Self::Match {
                left,
                relation,
                right,
            } => writer.matched(left, *relation, right),
            Self::VerdictMap(key, map) => {
                let record = Record::new().field("key", writer.expr(key));
                Expression::tagged("vmap", record.field("data", writer.expr(map)).into())
            }
            Self::Object(object_type, object) => {
                Expression::tagged(object_name(*object_type), writer.expr(object))
            }
            // Bytecode that readers must not mistake for anything else.
            Self::Opaque(bytecode) => Expression::opaque(bytecode.into()),
            Self::Verdict(verdict) => writer.expr(verdict),
            _ => Expression::Null(()),
        }
    }
}

impl RuleBuilder<'_, '_> {
    pub(crate) fn jump(&mut self, verdict: &Verdict) -> Result<expr::Verdict<'static>, Diagnostic> {
        match verdict {
            Verdict::Jump(Target::Rules(rules)) => {
                let id = self.compiler.bound_chain(self.family, &self.table, rules)?;
                Ok(expr::Verdict::JumpId(id))
            }
            Verdict::Goto(Target::Rules(rules)) => {
                let id = self.compiler.bound_chain(self.family, &self.table, rules)?;
                Ok(expr::Verdict::GotoId(id))
            }
            verdict => self.compiler.verdict(verdict),
        }
    }

    pub(crate) fn object_reference(
        &mut self,
        object_type: ObjectType,
        object: &Expr,
    ) -> Result<(), Diagnostic> {
        match object {
            Expr::Object(name) => self.push(&Objref::named(object_type, name.clone())),
            Expr::Symbol(symbol) => {
                self.push(&Objref::named(object_type, symbol.text.to_string()));
            }
            Expr::Map(key, map) => {
                let data = Data::Object(object_type);
                let set = self.sought(key, map, 0, Some(&data))?;
                self.push(&Objref {
                    set_id: set.id,
                    ..Objref::mapped(Register::R1, set.set)
                });
            }
            other => {
                return Err(self.compiler.diagnostic(other, "expected an object name"));
            }
        }
        Ok(())
    }
}

/// Returns how the expressions that a statement uses can end the rule.
pub(crate) fn end_by_operands(operands: &[&Expr]) -> RuleEnd {
    let ends = operands.iter().map(|expr| match expr {
        // A choice by number has an entry for each number.
        Expr::Map(key, map) => match (&**key, &**map) {
            (Expr::Numgen { modulus, .. } | Expr::Hash { modulus, .. }, Expr::Set(elements))
                if elements.len() == *modulus as usize =>
            {
                RuleEnd::Never
            }
            _ => RuleEnd::NoEntry,
        },
        // Not every packet has these.
        Expr::Ct(key, ..) if *key != CtKey::STATE => RuleEnd::Failure,
        Expr::Meta(MetaKey::SKUID | MetaKey::SKGID | MetaKey::CGROUP | MetaKey::RTCLASSID) => {
            RuleEnd::Failure
        }
        Expr::Option(_)
        | Expr::Socket(..)
        | Expr::Rt(_)
        | Expr::Tunnel(_)
        | Expr::Osf { .. }
        | Expr::Xfrm { .. } => RuleEnd::Failure,
        Expr::Hash { key: Some(key), .. } => end_by_operands(&[key]),
        Expr::Binary(_, left, right) => end_by_operands(&[left, right]),
        Expr::Concat(parts) => end_by_operands(&parts.iter().collect::<Vec<_>>()),
        _ => RuleEnd::Never,
    });
    ends.fold(RuleEnd::Never, |end, other| match end {
        RuleEnd::Never => other,
        end => end,
    })
}
