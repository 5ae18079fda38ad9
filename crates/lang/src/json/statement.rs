//! Writes statements and rules.

use std::borrow::Cow;

use bstr::ByteSlice;
use serde::Serialize;

use super::expr::{Expression, Record, fib, flags, numeric};
use super::object::name;
use super::{Tagged, Writer};
use crate::statements::object_name;
use crate::syntax::{self, Expr, Operator, Relation};
use crate::types::HOUR;
use chainwright::nft::expr::CtKey;

/// Statement of a rule.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Statement<'s> {
    Match {
        op: &'static str,
        left: Expression<'s>,
        right: Expression<'s>,
    },
    Mangle {
        key: Expression<'s>,
        value: Expression<'s>,
    },
    Vmap {
        key: Expression<'s>,
        data: Expression<'s>,
    },
    Set(Update<'s>),
    Map(Update<'s>),
    Meter(Meter<'s>),
    Reset(Expression<'s>),
    Xt {
        #[serde(rename = "type")]
        kind: &'static str,
        name: &'s str,
    },
    /// Bytecode that readers must not mistake for anything else.
    Opaque(&'s str),
    #[serde(untagged)]
    Verdict(Expression<'s>),
    #[serde(untagged)]
    Object(Tagged<Expression<'s>>),
}

/// Rule of an anonymous chain.
#[derive(Debug, Serialize)]
pub(crate) struct Line<'s> {
    expr: Vec<Statement<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<Cow<'s, str>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Update<'s> {
    op: &'static str,
    elem: Expression<'s>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Expression<'s>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stmt: Vec<Statement<'s>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Meter<'s> {
    key: Expression<'s>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stmt: Option<Box<Statement<'s>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u32>,
    name: &'s str,
}

impl Writer<'_> {
    /// Writes a rule without its location.
    pub(crate) fn line<'s>(self, line: &'s syntax::Line) -> Line<'s> {
        Line {
            expr: self.statements(&line.statements),
            comment: line
                .comment
                .as_ref()
                .map(|comment| name(comment.as_slice().as_bstr())),
        }
    }

    pub(crate) fn statements<'s>(self, statements: &'s [syntax::Statement]) -> Vec<Statement<'s>> {
        let statements = statements.iter();
        statements.map(|each| self.statement(each)).collect()
    }

    /// Returns a writer that omits state, for elements to create.
    pub(crate) const fn planned(self) -> Self {
        Self {
            stateless: true,
            ..self
        }
    }

    pub(crate) fn statement<'s>(self, statement: &'s syntax::Statement) -> Statement<'s> {
        use syntax::Statement as S;
        if let Some(written) = statement.json(self) {
            return Statement::Object(written);
        }
        let expr = |expr: &'s Expr| self.expr(expr);
        let maybe = |expr: &'s Option<Expr>| expr.as_ref().map(|expr| self.expr(expr));
        match statement {
            S::Match {
                left,
                relation,
                right,
            } => self.matched(left, *relation, right),
            S::Verdict(verdict) => Statement::Verdict(expr(verdict)),
            S::VerdictMap(key, map) => Statement::Vmap {
                key: expr(key),
                data: expr(map),
            },
            S::Set(target, to) => Statement::Mangle {
                key: expr(target),
                value: match (target, to) {
                    // Several events are a list.
                    (Expr::Ct(CtKey::EVENTMASK, ..), Expr::Value(events))
                        if events.number.count_ones() > 1 =>
                    {
                        Expression::List(flags(events, self.options).collect())
                    }
                    _ => expr(to),
                },
            },
            S::Reset(option) => Statement::Reset(expr(option)),
            S::Update { word, set, element } => {
                let planned = self.planned();
                let name = format!("@{set}");
                let (set, map) = match element.data {
                    Some(_) => (None, Some(name)),
                    None => (Some(name), None),
                };
                let update = Update {
                    op: word,
                    elem: planned.key(element, Record::new()),
                    data: maybe(&element.data),
                    set,
                    map,
                    stmt: planned.statements(&element.statements),
                };
                match element.data {
                    Some(_) => Statement::Map(update),
                    None => Statement::Set(update),
                }
            }
            S::Meter {
                name,
                size,
                element,
            } => {
                let planned = self.planned();
                let mut statements = planned.statements(&element.statements).into_iter();
                Statement::Meter(Meter {
                    key: planned.key(element, Record::new()),
                    stmt: statements.next().map(Box::new),
                    size: *size,
                    name,
                })
            }
            S::Object(object_type, object) => {
                Statement::Object(Tagged(object_name(*object_type), expr(object)))
            }
            S::Extension(kind, name) => Statement::Xt { kind, name },
            S::Opaque(instruction) => Statement::Opaque(instruction),
            _ => unreachable!(),
        }
    }

    fn matched<'s>(self, left: &'s Expr, relation: Relation, right: &'s Expr) -> Statement<'s> {
        let selector = match (left, right) {
            (Expr::Fib(flags, result), Expr::Value(_)) => fib(*flags, *result, "oif"),
            (left, _) => self.expr(left),
        };
        let op = match relation {
            Relation::Implicit => match right {
                Expr::Value(_) | Expr::Flags(_) if left.is_bitmask() => "in",
                right if is_over_midnight(right) => "in",
                _ => "==",
            },
            relation => relation.sign(),
        };
        let (left, right) = match right {
            Expr::Masked(flags, of) => (
                self.binary(Operator::And, selector, self.expr(of)),
                self.expr(flags),
            ),
            // Several flags in one value.
            Expr::Value(value)
                if left.is_bitmask()
                    && value.number.count_ones() > 1
                    && matches!(left, Expr::Payload(_)) =>
            {
                (selector, numeric(value.number))
            }
            right => (selector, self.expr(right)),
        };
        Statement::Match { op, left, right }
    }
}

/// Returns `true` for a range of hours that includes midnight.
fn is_over_midnight(range: &Expr) -> bool {
    let Expr::Range(from, to) = range else {
        return false;
    };
    match (&**from, &**to) {
        (Expr::Value(from), Expr::Value(to)) => from.data_type == HOUR && from.number > to.number,
        _ => false,
    }
}
