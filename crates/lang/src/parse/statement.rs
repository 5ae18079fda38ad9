//! Parses statements.

use super::error::Diagnostic;
use super::expr::Side;
use super::lexer::Kind;
use super::parser::Parser;
use crate::statements::mangle::Mangle;
use crate::statements::update::Update;
use crate::statements::{self, parse_reference};
use crate::syntax::{Expr, ListedRule, Span, Statement};
use chainwright::nft::expr::{CtKey, ObjectType};

/// First words of statements that do not begin with an expression.
const WORDS: &[&str] = &[
    "accept", "drop", "continue", "break", "return", "jump", "goto", "comment",
];

/// Returns the first words of statements that do not begin with an expression.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().copied().chain(statements::words())
}

/// Statements of a rule with their locations, and the rule's comment.
pub(crate) type RuleBody = (Vec<(Statement, Span)>, Option<String>);

impl Parser<'_> {
    /// Parses the statements and the comment of a rule.
    pub(crate) fn rule(&mut self) -> Result<RuleBody, Diagnostic> {
        let mut statements = Vec::new();
        let mut comment = None;
        while !self.at_end() {
            let start = self.current.span;
            if comment.is_some() {
                return Err(self
                    .unexpected(["the end of the line", ";"])
                    .with_hint("the comment must be the last part of a rule"));
            }
            if self.eat("comment") {
                comment = Some(self.string("a comment")?);
                continue;
            }
            let statement = self.statement()?;
            statements.push((statement, self.since(start)));
        }
        if statements.is_empty() {
            return Err(self.unexpected(["a statement"]));
        }
        Ok((statements, comment))
    }

    /// Parses `{ rules }` after `jump` or `goto`.
    pub(crate) fn bound_rules(&mut self) -> Result<Vec<ListedRule>, Diagnostic> {
        let start = self.current.span;
        self.expect_sign("{")?;
        self.deeper(|this| {
            let mut lines = Vec::new();
            loop {
                this.skip_separators();
                if this.current.kind == Kind::End {
                    return Err(this.unclosed(start));
                }
                if this.eat_sign("}") {
                    break;
                }
                let (statements, comment) = this.rule()?;
                this.end_of_line()?;
                let statements = statements.into_iter().map(|(statement, _)| statement);
                lines.push(ListedRule {
                    statements: statements.collect(),
                    comment: comment.map(Into::into),
                    handle: 0,
                });
            }
            match lines.is_empty() {
                true => Err(Diagnostic::new(
                    this.since(start),
                    "an anonymous chain needs at least one rule",
                )),
                false => Ok(lines),
            }
        })
    }

    /// Creates the error that a block is not closed.
    pub(crate) fn unclosed(&self, start: Span) -> Diagnostic {
        Diagnostic::new(start, "unclosed brace").expecting(["}"])
    }

    /// Returns `true` if a statement can begin with the current token.
    pub(crate) fn at_statement(&self) -> bool {
        let mut words = words().chain(super::selector::words());
        self.at_sign("@") || self.at_sign("(") || words.any(|word| self.at(word))
    }

    /// Parses a statement.
    pub(crate) fn statement(&mut self) -> Result<Statement, Diagnostic> {
        if let Some(verdict) = self.verdict()? {
            return Ok(Statement::Verdict(Expr::Verdict(verdict)));
        }
        if !self.is_word() {
            return self.comparison();
        }
        for parse in [Statement::parse_stateful, Statement::parse, parse_reference] {
            if let Some(statement) = parse(self)? {
                return Ok(statement);
            }
        }
        match self.eat("set") {
            true => Update::parse_old(self).map(Statement::Update),
            false => self.comparison(),
        }
    }

    /// Parses the name of a stateful object, or a map to objects.
    pub(crate) fn object_for(&mut self, object_type: ObjectType) -> Result<Statement, Diagnostic> {
        self.any()
            .map(|object| Statement::Object(object_type, object))
    }

    /// Parses `left set …`, after `set`.
    pub(crate) fn assignment(&mut self, left: Expr) -> Result<Statement, Diagnostic> {
        // Some names of events, such as `mark`, are also selectors.
        if let Expr::Ct(CtKey::EVENTMASK, ..) = left {
            let events = self.concat(Side::Right)?;
            let events = self.flags(events)?;
            return Ok(assigned(left, events));
        }
        let value = self.any()?;
        let value = self.flags(value)?;
        Ok(assigned(left, value))
    }
}

/// Creates the statement for an assignment. Some assignments refer to an object.
pub(crate) fn assigned(left: Expr, value: Expr) -> Statement {
    match statements::assigned(&left, &value) {
        Some(object_type) => Statement::Object(object_type, value),
        None => Statement::Mangle(Mangle::new(left, value)),
    }
}
