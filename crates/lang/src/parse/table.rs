//! Parses tables and their blocks.

use super::error::Diagnostic;
use super::lexer::Kind;
use super::parser::{Ending, Parser};
use super::script::{InTable, stateful_words};
use super::tree::{Command, Object, Verb};
use crate::syntax::Span;
use chainwright::nft::{Table, TableFlags};

pub(crate) const FLAGS: [(&str, TableFlags); 3] = [
    ("dormant", TableFlags::DORMANT),
    ("owner", TableFlags::OWNER),
    ("persist", TableFlags::PERSIST),
];

/// Commands of a table's block, in execution order.
#[derive(Default)]
struct Block {
    chains: Vec<Command>,
    objects: Vec<Command>,
    sets: Vec<Command>,
    flowtables: Vec<Command>,
    rules: Vec<Command>,
}

impl Parser<'_> {
    /// Parses a table, after the keyword, and its block.
    pub(crate) fn table(
        &mut self,
        verb: Verb,
        start: Span,
        commands: &mut Vec<Command>,
    ) -> Result<(), Diagnostic> {
        let at = self.in_table()?;
        let span = self.since(start);
        let mut table = Table::new(at.family, at.table.clone());
        let mut block = Block::default();
        if self.at_sign("{") {
            self.block(|this| this.table_entry(&at, &mut table, &mut block))?;
        }
        commands.push(Command {
            verb,
            object: Object::Table(table),
            span,
        });
        let Block {
            chains,
            objects,
            sets,
            flowtables,
            rules,
        } = block;
        for mut part in [chains, objects, sets, flowtables, rules] {
            commands.append(&mut part);
        }
        Ok(())
    }

    /// Parses an entry of a table's block.
    fn table_entry(
        &mut self,
        at: &InTable,
        table: &mut Table<'static>,
        block: &mut Block,
    ) -> Result<Ending, Diagnostic> {
        let start = self.current.span;
        // Objects in the block belong to this table.
        self.family = at.family;
        match self.eat_any(&["flags", "comment", "chain", "set", "map", "flowtable"]) {
            Some("flags") => {
                let mut flags = table.flags.unwrap_or_default();
                loop {
                    let word = self.one_of(&FLAGS.map(|(word, _)| word))?;
                    let found = FLAGS.iter().find(|(known, _)| *known == word);
                    flags |= found.map_or(TableFlags::default(), |(_, flag)| *flag);
                    if !self.eat_sign(",") {
                        break;
                    }
                }
                table.flags = Some(flags);
            }
            Some("comment") => {
                let (comment, span) = self.comment()?;
                if table.userdata.is_some() {
                    return Err(self.repeated(start, "comment"));
                }
                let commented = table.clone().with_comment(&comment);
                *table = commented.map_err(|error| Diagnostic::new(span, error.to_string()))?;
            }
            Some("chain") => {
                self.chain(Verb::Add, at, start, &mut block.chains, &mut block.rules)?;
            }
            Some(word @ ("set" | "map")) => {
                let is_map = word == "map";
                let (sets, mut elements) = (&mut block.sets, Vec::new());
                self.set_command(Verb::Add, at, is_map, start, sets, &mut elements)?;
                sets.append(&mut elements);
            }
            Some(_) => {
                let flowtable = self.flowtable(Verb::Add, at, start)?;
                block.flowtables.push(flowtable);
            }
            None => match self.stateful_word()? {
                Some(kind) => {
                    let object = self.stateful_object(Verb::Add, at, kind, start)?;
                    block.objects.push(object);
                }
                None => {
                    let others = [
                        "flowtable",
                        "flags",
                        "comment",
                        "include",
                        "define",
                        "redefine",
                    ];
                    let known = ["chain", "set", "map"].into_iter().chain(stateful_words());
                    let known: Vec<_> = known.chain(others).collect();
                    let diagnostic = self.no_entry("a table", &known);
                    return Err(match self.at_statement() {
                        true => diagnostic.with_hint("rules belong in a chain: chain name { … }"),
                        false => diagnostic,
                    });
                }
            },
        }
        Ok(Ending::Line)
    }

    /// Parses a comment, after the keyword; returns it with its location.
    pub(crate) fn comment(&mut self) -> Result<(String, Span), Diagnostic> {
        let span = self.current.span;
        Ok((self.string("a comment")?, span))
    }

    /// Parses a block, which is a scope for variables, entry by entry.
    pub(crate) fn block(
        &mut self,
        mut entry: impl FnMut(&mut Self) -> Result<Ending, Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let start = self.current.span;
        self.expect_sign("{")?;
        self.variables.enter();
        self.deeper(|this| {
            loop {
                this.skip_separators();
                if this.eat_sign("}") {
                    return Ok(());
                }
                if this.current.kind == Kind::End {
                    return Err(this.unclosed(start));
                }
                if !this.fatal(Self::common)? {
                    this.recovering(|this| match entry(this)? {
                        Ending::Line => this.end_of_line(),
                        Ending::Any => Ok(()),
                    })?;
                }
            }
        })?;
        self.variables.leave();
        Ok(())
    }
}
