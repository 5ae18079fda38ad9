//! Sentences of nft's language as text.

mod expr;
pub(super) mod statement;

use std::fmt::{self, Write};

use super::constant::{Quoted, escaped, quotable};
use super::list::Options;
use super::syntax::{Element, Line};

/// Writes sentences.
pub(super) struct Printer<'o, W> {
    pub(super) out: W,
    pub(super) options: &'o Options,
    /// How deep what is written stands.
    pub(super) depth: usize,
    /// Whether it is what is to be made, which has no state yet.
    pub(super) plans: bool,
    /// Whether all is to stand in one line, without handles.
    pub(super) in_line: bool,
}

/// How deep the rules of a chain stand that has a name.
const IN_CHAIN: usize = 2;
impl<'o, W: Write> Printer<'o, W> {
    pub(super) const fn new(out: W, options: &'o Options) -> Self {
        Self {
            out,
            options,
            depth: 0,
            plans: false,
            in_line: false,
        }
    }
}

impl<W: Write> Printer<'_, W> {
    pub(super) fn indent(&mut self) -> fmt::Result {
        for _ in 0..self.depth {
            self.out.write_char('\t')?;
        }
        Ok(())
    }

    /// The rules of a chain.
    pub(super) fn rules(&mut self, rules: impl Iterator<Item = Line>) -> fmt::Result {
        for rule in rules {
            self.indent()?;
            self.rule(&rule)?;
            self.out.write_char('\n')?;
        }
        Ok(())
    }

    /// A rule, without what is before and behind it in its line.
    pub(super) fn rule(&mut self, rule: &Line) -> fmt::Result {
        let is_opaque = rule.is_opaque();
        if is_opaque {
            self.out.write_char('#')?;
        }
        for (index, statement) in rule.statements.iter().enumerate() {
            if index > 0 || is_opaque {
                self.out.write_char(' ')?;
            }
            self.statement(statement)?;
        }
        match &rule.comment {
            Some(comment) if quotable(comment).is_some() => {
                write!(self.out, " comment {}", Quoted(comment.as_ref()))?;
            }
            Some(comment) => write!(self.out, " # comment {}", escaped(comment.as_ref()))?,
            None => {}
        }
        // nft gives rules of chains without a name none.
        match self.depth > IN_CHAIN {
            true => Ok(()),
            false => self.handle(rule.handle),
        }
    }

    pub(super) fn handle(&mut self, handle: u64) -> fmt::Result {
        match self.options.handles && !self.in_line {
            true => write!(self.out, " # handle {handle}"),
            false => Ok(()),
        }
    }

    /// A word, if there is one, with a blank in front.
    fn word(&mut self, word: Option<&str>) -> fmt::Result {
        match word {
            Some(word) => write!(self.out, " {word}"),
            None => Ok(()),
        }
    }

    /// An element as a rule writes it: what it is to be made of.
    fn update(&mut self, element: &Element) -> fmt::Result {
        self.plans = true;
        let written = self.element_with(element, true);
        self.plans = false;
        written
    }

    const fn is_stateless(&self) -> bool {
        self.options.stateless || self.plans
    }

    /// An element of a set.
    pub(super) fn element(&mut self, element: &Element) -> fmt::Result {
        self.element_with(element, false)
    }

    fn element_with(&mut self, element: &Element, timeout_first: bool) -> fmt::Result {
        match &element.key {
            Some(key) => self.expr(key)?,
            None => self.out.write_char('*')?,
        }
        let timeout = |this: &mut Self| match element.timeout {
            Some(0) => this.out.write_str(" timeout never"),
            Some(time) => write!(this.out, " timeout {}", this.options.time(time)),
            None => Ok(()),
        };
        if timeout_first {
            timeout(self)?;
        }
        for statement in &element.statements {
            self.out.write_char(' ')?;
            self.statement(statement)?;
        }
        if !timeout_first {
            timeout(self)?;
        }
        if let Some(left) = element.expires.filter(|_| !self.options.stateless) {
            write!(self.out, " expires {}", self.options.time(left))?;
        }
        if let Some(comment) = &element.comment {
            write!(self.out, " comment {}", Quoted(comment.as_str().into()))?;
        }
        if let Some(data) = &element.data {
            self.out.write_str(" : ")?;
            self.expr(data)?;
        }
        Ok(())
    }
}
