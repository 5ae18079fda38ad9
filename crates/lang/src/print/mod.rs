//! Prints syntax trees as nft's language.

pub(crate) mod expr;

use std::fmt::{self, Write};

use super::constant::{Quoted, escaped, quotable};
use super::list::Options;
use super::syntax::{Element, ListedRule};

/// Printer for syntax trees.
pub(crate) struct Printer<'o, W> {
    pub(crate) out: W,
    pub(crate) options: &'o Options,
    /// Indentation depth.
    pub(crate) depth: usize,
    /// Whether the output describes elements to create, which have no state yet.
    pub(crate) plans: bool,
    /// Whether the output is one line without handles.
    pub(crate) in_line: bool,
    /// Whether only elements that a command looked up are printed.
    pub(crate) is_lookup: bool,
}

/// Indentation depth of the rules of a named chain.
const IN_CHAIN: usize = 2;
impl<'o, W: Write> Printer<'o, W> {
    pub(crate) const fn new(out: W, options: &'o Options) -> Self {
        Self {
            out,
            options,
            depth: 0,
            plans: false,
            in_line: false,
            is_lookup: false,
        }
    }
}

impl<W: Write> Printer<'_, W> {
    pub(crate) fn indent(&mut self) -> fmt::Result {
        for _ in 0..self.depth {
            self.out.write_char('\t')?;
        }
        Ok(())
    }

    /// Prints the rules of a chain.
    pub(crate) fn rules(&mut self, rules: impl Iterator<Item = ListedRule>) -> fmt::Result {
        for rule in rules {
            self.indent()?;
            self.rule(&rule)?;
            self.out.write_char('\n')?;
        }
        Ok(())
    }

    /// Prints a rule without indentation and newline.
    pub(crate) fn rule(&mut self, rule: &ListedRule) -> fmt::Result {
        let is_opaque = rule.is_opaque();
        if is_opaque {
            self.out.write_char('#')?;
        }
        for (index, statement) in rule.statements.iter().enumerate() {
            if index > 0 || is_opaque {
                self.out.write_char(' ')?;
            }
            statement.print(self)?;
        }
        match &rule.comment {
            Some(comment) if quotable(comment).is_some() => {
                write!(self.out, " comment {}", Quoted(comment.as_ref()))?;
            }
            Some(comment) => write!(self.out, " # comment {}", escaped(comment.as_ref()))?,
            None => {}
        }
        // nft prints no handles for the rules of anonymous chains.
        match self.depth > IN_CHAIN {
            true => Ok(()),
            false => self.handle(rule.handle),
        }
    }

    pub(crate) fn handle(&mut self, handle: u64) -> fmt::Result {
        match self.options.handles && !self.in_line {
            true => write!(self.out, " # handle {handle}"),
            false => Ok(()),
        }
    }

    /// Prints an optional word, preceded by a blank.
    pub(crate) fn word(&mut self, word: Option<&str>) -> fmt::Result {
        match word {
            Some(word) => write!(self.out, " {word}"),
            None => Ok(()),
        }
    }

    /// Prints the element of an `add`, `update` or `delete` statement, without state.
    pub(crate) fn update(&mut self, element: &Element) -> fmt::Result {
        self.plans = true;
        let written = self.element_with(element, true);
        self.plans = false;
        written
    }

    pub(crate) const fn is_stateless(&self) -> bool {
        self.options.stateless || self.plans
    }

    /// Prints a set element.
    pub(crate) fn element(&mut self, element: &Element) -> fmt::Result {
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
            statement.print(self)?;
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
