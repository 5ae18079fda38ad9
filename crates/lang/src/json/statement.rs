//! Writes rules.

use bstr::ByteSlice;

use super::Writer;
use super::expr::{Expression, Record, fib, numeric};
use super::object::name;
use crate::syntax::{Expr, ListedRule, Operator, Relation, Statement};
use crate::types::HOUR;

impl Writer<'_> {
    /// Writes a rule of an anonymous chain.
    pub(crate) fn line<'s>(self, line: &'s ListedRule) -> Expression<'s> {
        let comment = line.comment.as_ref();
        let comment = comment.map(|comment| name(comment.as_slice().as_bstr()).into_owned());
        let record =
            Record::new().field("expr", Expression::List(self.statements(&line.statements)));
        record.optional("comment", comment).into()
    }

    pub(crate) fn statements<'s>(self, statements: &'s [Statement]) -> Vec<Expression<'s>> {
        statements.iter().map(|each| each.json(self)).collect()
    }

    /// Returns a writer that omits state, for elements to create.
    pub(crate) const fn planned(self) -> Self {
        Self {
            stateless: true,
            ..self
        }
    }

    pub(crate) fn matched<'s>(
        self,
        left: &'s Expr,
        relation: Relation,
        right: &'s Expr,
    ) -> Expression<'s> {
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
        let record = Record::new()
            .field("op", Expression::word(op))
            .field("left", left)
            .field("right", right);
        Expression::tagged("match", record.into())
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
