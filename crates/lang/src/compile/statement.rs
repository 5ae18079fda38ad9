//! Compiles statements.

use super::rule_builder::RuleBuilder;
use crate::parse::Diagnostic;
use crate::syntax::{Expr, Statement, Target, Verdict};
use chainwright::nft::expr;

impl RuleBuilder<'_, '_> {
    /// Compiles a statement. `is_last` means that no other follows in the rule.
    pub(crate) fn statement(
        &mut self,
        statement: &Statement,
        is_last: bool,
    ) -> Result<(), Diagnostic> {
        if self.is_over {
            return Err(self.error("unreachable statement: the previous statement ends the rule"));
        }
        // Omitted, as nft does.
        if !is_last && self.is_redundant(statement) {
            return Ok(());
        }
        self.is_over = statement.ends_rule();
        if let Some(expression) = statement.expression() {
            self.push_decoded(&expression);
            return Ok(());
        }
        match statement {
            Statement::Match {
                left,
                relation,
                right,
            } => return self.matches(left, *relation, right),
            Statement::VerdictMap(key, map) => self.verdict_map(key, map)?,
            _ => {
                statement.add_dependencies(self)?;
                self.flush_pending();
                statement.linearize(self)?;
            }
        }
        self.flush_pending();
        Ok(())
    }

    /// Adds the matches that these operands depend on.
    pub(crate) fn add_dependencies(&mut self, operands: Vec<&Expr>) -> Result<(), Diagnostic> {
        let mut operands = operands.into_iter();
        operands.try_for_each(|operand| self.add_dependency(operand))
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.compiler.span, message)
    }
}

impl super::Compiler<'_> {
    /// Converts a verdict, except jumps to anonymous chains.
    pub(crate) fn verdict(&self, verdict: &Verdict) -> Result<expr::Verdict<'static>, Diagnostic> {
        Ok(match verdict {
            Verdict::Accept => expr::Verdict::Accept,
            Verdict::Drop => expr::Verdict::Drop,
            Verdict::Continue => expr::Verdict::Continue,
            Verdict::Break => expr::Verdict::Break,
            Verdict::Return => expr::Verdict::Return,
            Verdict::Jump(Target::Chain(name)) => expr::Verdict::Jump(name.clone().into()),
            Verdict::Goto(Target::Chain(name)) => expr::Verdict::Goto(name.clone().into()),
            Verdict::Jump(_) | Verdict::Goto(_) => {
                let message = "rules in braces are not allowed here: use a named chain";
                return Err(Diagnostic::new(self.span, message));
            }
        })
    }
}
