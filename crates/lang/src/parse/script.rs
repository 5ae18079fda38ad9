//! Parses commands.

use super::error::{Diagnostic, Error, shown};
use super::lexer::Kind as Token;
use super::parser::Parser;
use super::source::{Includes, Source, Sources};
use super::tree::{Command, Elements, Object, Position, Rule, SetDeclaration, Verb};
use super::variables::{Defined, SavedVariables};
use crate::statements::{OBJECTS as OBJECT_KINDS, ObjectKind};
use crate::syntax::Span;
use chainwright::nft::expr::ObjectType;
use chainwright::nft::{Chain, Family, Flowtable, Name, Set, StatefulObject, Table};

pub(crate) const VERBS: [(&str, Verb); 11] = [
    ("add", Verb::Add),
    ("create", Verb::Create),
    ("insert", Verb::Insert),
    ("replace", Verb::Replace),
    ("delete", Verb::Delete),
    ("destroy", Verb::Destroy),
    ("flush", Verb::Flush),
    ("rename", Verb::Rename),
    ("reset", Verb::Reset),
    ("list", Verb::List),
    ("get", Verb::Get),
];

/// Commands without an object.
const MONITOR: &str = "monitor";
const DESCRIBE: &str = "describe";
/// Commands of former nft versions.
const GONE_VERBS: [&str; 2] = ["import", "export"];

pub(crate) const FAMILIES: [&str; 6] = ["ip", "ip6", "inet", "arp", "bridge", "netdev"];

/// Object keywords, except stateful objects.
pub(crate) const OBJECTS: [&str; 7] = [
    "table",
    "chain",
    "rule",
    "set",
    "map",
    "element",
    "flowtable",
];

/// Returns the first words of stateful objects.
pub(crate) fn stateful_words() -> impl Iterator<Item = &'static str> {
    let words = OBJECT_KINDS
        .iter()
        .map(|kind| match kind.name.split_once(' ') {
            Some((first, _)) => first,
            None => kind.name,
        });
    let mut last = "";
    words.filter(move |word| std::mem::replace(&mut last, word) != *word)
}

/// Returns the first words of all objects.
fn object_words() -> impl Iterator<Item = &'static str> {
    OBJECTS.into_iter().chain(stateful_words())
}

/// Returns the words after `ct` that name a kind of objects.
pub(crate) fn ct_words() -> impl Iterator<Item = &'static str> {
    let names = OBJECT_KINDS.iter().map(|kind| kind.name);
    names.filter_map(|name| name.strip_prefix("ct "))
}

/// Result of parsing a text.
pub(crate) struct Parsed {
    pub(crate) commands: Vec<Command>,
    /// Texts that were read, including included ones.
    pub(crate) sources: Sources,
    /// Variables that it defines or undefines, if any.
    pub(crate) defined: Option<Defined>,
}

/// Parses a text. Returns the commands and all texts that were read.
///
/// # Errors
/// The first error in the text.
pub(crate) fn parse(
    source: Source,
    includes: &dyn Includes,
) -> Result<(Vec<Command>, Sources), Error> {
    let parsed = parse_with_definitions(&SavedVariables::default(), source, includes)?;
    Ok((parsed.commands, parsed.sources))
}

/// Parses a text with the variables of previous texts.
///
/// # Errors
/// The errors in the text.
pub(crate) fn parse_with_definitions(
    kept: &SavedVariables,
    source: Source,
    includes: &dyn Includes,
) -> Result<Parsed, Error> {
    let mut parser = Parser::with_definitions(kept, includes);
    let mut commands = Vec::new();
    let read = parser
        .begin(source)
        .and_then(|()| parser.script(&mut commands));
    if let Err(diagnostic) = read {
        parser.record(diagnostic);
    }
    match Diagnostic::joined(std::mem::take(&mut parser.errors)) {
        None => Ok(Parsed {
            commands,
            defined: parser.defines.then(|| parser.variables.defined()),
            sources: parser.sources,
        }),
        Some(diagnostic) => Err(parser.sources.explain(diagnostic)),
    }
}

/// Table by family and name.
#[derive(Debug, Clone)]
pub(crate) struct InTable {
    pub(crate) family: Family,
    pub(crate) table: Name<'static>,
}

impl Parser<'_> {
    fn script(&mut self, commands: &mut Vec<Command>) -> Result<(), Diagnostic> {
        loop {
            self.skip_separators();
            if self.current.kind == Token::End {
                return Ok(());
            }
            if self.at_sign("}") {
                return Err(Diagnostic::new(self.current.span, "unmatched `}`"));
            }
            if !self.common()? {
                self.recovering(|this| this.command(commands))?;
            }
        }
    }

    /// Parses an entry allowed in any block: an include or a variable definition.
    pub(crate) fn common(&mut self) -> Result<bool, Diagnostic> {
        match self.eat_any(&["include", "define", "redefine", "undefine"]) {
            Some("include") => self.inclusion()?,
            Some("undefine") => {
                let (name, span) = self.variable_name()?;
                self.variables.undefine(&name, span)?;
                self.defines = true;
            }
            Some(word) => {
                let (name, span) = self.variable_name()?;
                self.expect_sign("=")?;
                let value = self.initial()?;
                self.end_of_line()?;
                self.variables
                    .define(&name, value, word == "redefine", span)?;
                self.defines = true;
            }
            None => return Ok(false),
        }
        self.end_of_line()?;
        Ok(true)
    }

    fn variable_name(&mut self) -> Result<(String, Span), Diagnostic> {
        if self.at_sign("$") {
            return Err(self
                .unexpected(["the name of a variable"])
                .with_hint("write it without `$` in its definition"));
        }
        let span = self.current.span;
        Ok((self.name_text("a variable")?, span))
    }

    fn inclusion(&mut self) -> Result<(), Diagnostic> {
        let span = self.current.span;
        if !self.is_quoted() {
            return Err(self.unexpected(["a path in quotation marks"]));
        }
        let path = self.word().to_owned();
        self.advance();
        if self.current.kind != Token::Newline && self.current.kind != Token::End {
            // A block or line that ends here continues after the included text.
            if !self.at_sign(";") {
                return Err(self.unexpected(["the end of the line"]));
            }
        }
        debug_assert!(self.is_alone());
        let found = self.includes.read(&path);
        let hint = self.includes.hint();
        let sources = found.map_err(|why| Diagnostic::new(span, why).with_hint(hint))?;
        if self.current.kind == Token::End {
            self.at_line_end();
        }
        self.open(sources, span)
    }

    fn command(&mut self, commands: &mut Vec<Command>) -> Result<(), Diagnostic> {
        let start = self.current.span;
        let verb = VERBS.iter().find(|(word, _)| self.at(word));
        let known = || {
            let verbs = VERBS.iter().map(|(word, _)| *word);
            verbs
                .chain(object_words())
                .chain([MONITOR, DESCRIBE])
                .chain(["include", "define", "redefine", "undefine"])
        };
        if verb.is_none() {
            if let Some(word) = self.at_any(&GONE_VERBS) {
                let diagnostic =
                    Diagnostic::new(start, format!("`nft` no longer has the command `{word}`"));
                return Err(diagnostic.with_hint("use `list ruleset` with JSON output instead"));
            }
            if self.eat(MONITOR) {
                commands.push(self.monitor(start)?);
                return self.end_of_command();
            }
            if self.eat(DESCRIBE) {
                commands.push(self.describe(start)?);
                return self.end_of_command();
            }
            if !object_words().any(|word| self.at(word)) {
                let otherwise = self.unknown("command", known());
                commands.push(self.bare_rule(start, otherwise)?);
                return self.end_of_command();
            }
        } else {
            self.advance();
        }
        let verb = verb.map_or(Verb::Add, |(_, verb)| *verb);
        match verb {
            Verb::Add | Verb::Create => self.add(verb, start, commands)?,
            Verb::Insert | Verb::Replace => {
                self.eat("rule");
                let command = self.rule_command(verb, start)?;
                commands.push(command);
            }
            Verb::Delete | Verb::Destroy => commands.push(self.delete(verb, start)?),
            Verb::Flush => commands.push(self.flush(start)?),
            Verb::Rename => {
                self.expect("chain")?;
                let at = self.in_table()?;
                let name = self.name("a chain")?;
                let new = self.name("a chain")?;
                commands.push(Command {
                    verb,
                    object: Object::Renamed(Chain::new(at.family, at.table, name), new),
                    span: self.since(start),
                });
            }
            Verb::Reset | Verb::List => commands.push(self.show(verb, start)?),
            Verb::Get => {
                self.expect("element")?;
                let at = self.in_table()?;
                commands.push(self.elements_command(verb, &at, start)?);
            }
        }
        self.end_of_command()
    }

    fn end_of_command(&mut self) -> Result<(), Diagnostic> {
        match self.at_sign("}") {
            true => Err(Diagnostic::new(self.current.span, "unmatched `}`")),
            false => self.end_of_line(),
        }
    }

    /// Parses the family of a table; `ip` if there is none.
    pub(crate) fn family(&mut self) -> Family {
        let found = self.at_any(&FAMILIES);
        let is_family = found.is_some() && matches!(self.next().kind, Token::Word | Token::Quoted);
        if !is_family {
            return Family::IP;
        }
        self.advance();
        found
            .and_then(|word| word.parse().ok())
            .unwrap_or(Family::IP)
    }

    /// Parses the table of an object.
    pub(crate) fn in_table(&mut self) -> Result<InTable, Diagnostic> {
        let family = self.family();
        let table = self.name("a table")?;
        self.family = family;
        Ok(InTable { family, table })
    }

    fn add(
        &mut self,
        verb: Verb,
        start: Span,
        commands: &mut Vec<Command>,
    ) -> Result<(), Diagnostic> {
        match self.eat_any(&OBJECTS) {
            Some("table") => self.table(verb, start, commands),
            Some("chain") => {
                let at = self.in_table()?;
                let mut rules = Vec::new();
                self.chain(verb, &at, start, commands, &mut rules)?;
                commands.append(&mut rules);
                Ok(())
            }
            Some("rule") => {
                commands.push(self.rule_command(verb, start)?);
                Ok(())
            }
            Some(word @ ("set" | "map")) => {
                let at = self.in_table()?;
                let mut elements = Vec::new();
                self.set_command(verb, &at, word == "map", start, commands, &mut elements)?;
                commands.append(&mut elements);
                Ok(())
            }
            Some("element") => {
                let at = self.in_table()?;
                commands.push(self.elements_command(verb, &at, start)?);
                Ok(())
            }
            Some(_) => {
                let at = self.in_table()?;
                commands.push(self.flowtable(verb, &at, start)?);
                Ok(())
            }
            None => {
                if let Some(kind) = self.stateful_word()? {
                    let at = self.in_table()?;
                    commands.push(self.stateful_object(verb, &at, kind, start)?);
                    return Ok(());
                }
                let otherwise = self.unknown("object type", object_words());
                if verb == Verb::Create {
                    return Err(otherwise);
                }
                commands.push(self.bare_rule(start, otherwise)?);
                Ok(())
            }
        }
    }

    /// Parses a rule without the keyword: `add ip t c accept`, `t c accept`. Fails with `otherwise` if the text does
    /// not begin with a table, a chain, and a statement or position.
    fn bare_rule(&mut self, start: Span, otherwise: Diagnostic) -> Result<Command, Diagnostic> {
        const POSITIONS: [&str; 3] = ["handle", "position", "index"];
        let is_keyword = |this: &Self| {
            let verbs = VERBS.iter().map(|(word, _)| *word);
            let mut words = verbs.chain(object_words()).chain(FAMILIES);
            words.any(|word| this.at(word))
        };
        let Ok(at) = self.in_table() else {
            return Err(otherwise);
        };
        let chain = match is_keyword(self) {
            true => return Err(otherwise),
            false => self.name("a chain"),
        };
        let (Ok(chain), true) = (
            chain,
            self.at_statement() || self.at_any(&POSITIONS).is_some(),
        ) else {
            return Err(otherwise);
        };
        self.rule_in(at, chain, Verb::Add, start)
    }

    /// Returns the kind of stateful objects whose name comes next, if there is one, and skips the name.
    pub(crate) fn object_kind(&mut self) -> Option<&'static ObjectKind> {
        let mut kinds = OBJECT_KINDS.iter();
        let kind = kinds.find(|kind| self.at_keyword(kind.name))?;
        self.skip_keyword(kind.name);
        Some(kind)
    }

    /// Parses the kind of a stateful object, if it is one.
    pub(crate) fn stateful_word(&mut self) -> Result<Option<&'static ObjectKind>, Diagnostic> {
        match self.object_kind() {
            None if self.eat("ct") => Err(self.unexpected(ct_words())),
            kind => Ok(kind),
        }
    }

    pub(crate) fn rule_command(&mut self, verb: Verb, start: Span) -> Result<Command, Diagnostic> {
        let at = self.in_table()?;
        let chain = self.name("a chain")?;
        self.rule_in(at, chain, verb, start)
    }

    /// Parses the rest of a command about a rule, after the chain.
    fn rule_in(
        &mut self,
        InTable { family, table }: InTable,
        chain: Name<'static>,
        verb: Verb,
        start: Span,
    ) -> Result<Command, Diagnostic> {
        let span = self.current.span;
        let position = match self.eat_any(&["handle", "position", "index"]) {
            Some("index") => Position::Index(self.number("a rule index")?),
            Some(_) => Position::Handle(self.number("a handle")?),
            None => Position::Any,
        };
        let has_no_statements = matches!(verb, Verb::Delete | Verb::Destroy | Verb::Reset);
        if position == Position::Any && (has_no_statements || verb == Verb::Replace) {
            return Err(self
                .unexpected(["handle"])
                .with_hint("to see the handles of rules, list them with `-a`"));
        }
        if verb == Verb::Replace && matches!(position, Position::Index(_)) {
            return Err(
                Diagnostic::new(span, "`replace rule` requires a handle").expecting(["handle"])
            );
        }
        let named = self.since(start);
        let (statements, comment) = match has_no_statements {
            true => (Vec::new(), None),
            false => self.rule()?,
        };
        let rule = Rule {
            family,
            table,
            chain,
            position,
            statements,
            comment,
        };
        Ok(Command {
            verb,
            object: Object::Rule(Box::new(rule)),
            span: named,
        })
    }

    /// Parses `handle 5` in place of a name.
    fn handle(&mut self) -> Result<Option<u64>, Diagnostic> {
        let is_handle = self.at("handle")
            && self
                .next_if_word()
                .is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        if !is_handle {
            return Ok(None);
        }
        self.advance();
        self.number("a handle").map(Some)
    }

    fn delete(&mut self, verb: Verb, start: Span) -> Result<Command, Diagnostic> {
        let object = match self.eat_any(&OBJECTS) {
            Some("table") => {
                // A family may precede the handle.
                let family = self.family();
                let handle = self.handle()?;
                let name = match handle {
                    Some(_) => None,
                    None => Some(self.name("a table")?),
                };
                Object::Table(Table {
                    family,
                    name,
                    handle,
                    ..Table::empty()
                })
            }
            Some("chain") => {
                let at = self.in_table()?;
                match self.handle()? {
                    Some(handle) => Object::Chain(Chain {
                        family: at.family,
                        table: Some(at.table),
                        handle: Some(handle),
                        ..Chain::empty()
                    }),
                    None => return self.deleted_chain(verb, &at, start),
                }
            }
            Some("rule") => return self.rule_command(verb, start),
            Some(word @ ("set" | "map")) => {
                let at = self.in_table()?;
                let handle = self.handle()?;
                let mut set = match handle {
                    Some(_) => Set {
                        family: at.family,
                        table: Some(at.table),
                        ..Set::empty()
                    },
                    None => Set::named(at.family, at.table, self.name("a set")?),
                };
                set.handle = handle;
                Object::Set(Box::new(only_named(set, word == "map")))
            }
            Some("element") => {
                let at = self.in_table()?;
                return self.elements_command(verb, &at, start);
            }
            Some(_) => {
                let at = self.in_table()?;
                match self.handle()? {
                    Some(handle) => Object::Flowtable(Flowtable {
                        family: at.family,
                        table: Some(at.table),
                        handle: Some(handle),
                        ..Flowtable::empty()
                    }),
                    None => return self.flowtable(verb, &at, start),
                }
            }
            None => {
                let Some(kind) = self.stateful_word()? else {
                    return Err(self.unknown("object type", object_words()));
                };
                let at = self.in_table()?;
                match self.handle()? {
                    Some(handle) => Object::Stateful(StatefulObject {
                        family: at.family,
                        table: Some(at.table),
                        object_type: Some(kind.object_type),
                        handle: Some(handle),
                        ..StatefulObject::empty()
                    }),
                    None => self.named_object_in(at, kind.object_type)?,
                }
            }
        };
        Ok(Command {
            verb,
            object,
            span: self.since(start),
        })
    }

    fn flush(&mut self, start: Span) -> Result<Command, Diagnostic> {
        const KNOWN: [&str; 6] = ["ruleset", "table", "chain", "set", "map", "meter"];
        let Some(word) = self.eat_any(&KNOWN) else {
            return Err(self.unknown("object to flush", KNOWN));
        };
        let object = match word {
            "ruleset" => Object::Ruleset(self.any_family()),
            "table" => {
                let at = self.in_table()?;
                Object::Table(Table::new(at.family, at.table))
            }
            "chain" => {
                let at = self.in_table()?;
                let name = self.name("a chain")?;
                Object::Chain(Chain::new(at.family, at.table, name))
            }
            word => self.named_set(word == "map")?,
        };
        Ok(Command {
            verb: Verb::Flush,
            object,
            span: self.since(start),
        })
    }

    /// Parses a set or map by name.
    pub(crate) fn named_set(&mut self, is_map: bool) -> Result<Object, Diagnostic> {
        let at = self.in_table()?;
        let name = self.name("a set")?;
        let set = Set::named(at.family, at.table, name);
        Ok(Object::Set(Box::new(only_named(set, is_map))))
    }

    /// Parses an optional family; `UNSPEC` stands for all.
    pub(crate) fn any_family(&mut self) -> Family {
        let found = self.eat_any(&FAMILIES);
        found
            .and_then(|word| word.parse().ok())
            .unwrap_or(Family::UNSPEC)
    }

    pub(crate) fn named_object_of(
        &mut self,
        object_type: ObjectType,
    ) -> Result<Object, Diagnostic> {
        let at = self.in_table()?;
        self.named_object_in(at, object_type)
    }

    fn named_object_in(
        &mut self,
        at: InTable,
        object_type: ObjectType,
    ) -> Result<Object, Diagnostic> {
        let name = self.name("an object")?;
        Ok(Object::Stateful(StatefulObject::named(
            at.family,
            at.table,
            object_type,
            name,
        )))
    }

    /// Parses the elements of a set: `ip t s { … }`.
    pub(crate) fn elements_command(
        &mut self,
        verb: Verb,
        at: &InTable,
        start: Span,
    ) -> Result<Command, Diagnostic> {
        let set = self.name("a set")?;
        let span = self.since(start);
        let elements = self.all_elements()?;
        Ok(Command {
            verb,
            object: Object::Elements(Elements {
                family: at.family,
                table: at.table.clone(),
                set,
                elements,
            }),
            span,
        })
    }

    /// Creates the error that a word is not a valid block entry.
    pub(crate) fn no_entry(&self, of: &str, known: &[&str]) -> Diagnostic {
        match self.is_word() {
            true => {
                let word = self.word();
                Diagnostic::new(
                    self.current.span,
                    format!("`{}` is not allowed in {of}", shown(word)),
                )
                .expecting(known)
                .nearest_to(word)
            }
            false => self.unexpected(known),
        }
    }
}

/// Creates a declaration that only has the set's name.
pub(crate) fn only_named(set: Set<'static>, is_map: bool) -> SetDeclaration {
    SetDeclaration {
        set,
        is_map,
        keys: None,
        data: None,
        data_is_interval: false,
        auto_merge: false,
        comment: None,
        statements: Vec::new(),
    }
}
