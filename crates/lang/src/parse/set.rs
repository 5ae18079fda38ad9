//! Parses sets and maps.

use super::elements::ElementList;
use super::error::Diagnostic;
use super::expr::Side;
use super::parser::{Ending, Parser};
use super::script::{InTable, only_named};
use super::tree::{Command, Declared, Elements, Object, SetDeclaration, Verb};
use crate::statements;
use crate::syntax::{Element, Expr, Span, Statement};
use chainwright::nft::{DataType, Milliseconds, Milliseconds32, Set, SetFlags, SetPolicy};

pub(crate) const FLAGS: [(&str, SetFlags); 4] = [
    ("constant", SetFlags::CONSTANT),
    ("interval", SetFlags::INTERVAL),
    ("timeout", SetFlags::TIMEOUT),
    ("dynamic", SetFlags::EVAL),
];

const ENTRIES: [&str; 10] = [
    "type",
    "typeof",
    "flags",
    "elements",
    "timeout",
    "gc-interval",
    "size",
    "policy",
    "auto-merge",
    "comment",
];

impl Parser<'_> {
    /// Parses a set or map, after the keyword, and the elements in its block.
    pub(crate) fn set_command(
        &mut self,
        verb: Verb,
        at: &InTable,
        is_map: bool,
        start: Span,
        sets: &mut Vec<Command>,
        elements: &mut Vec<Command>,
    ) -> Result<(), Diagnostic> {
        let name = self.name(if is_map { "a map" } else { "a set" })?;
        let span = self.since(start);
        let set = Set::named(at.family, at.table.clone(), name.clone());
        let mut declared = only_named(set, is_map);
        let mut found: Option<(ElementList, Span)> = None;
        if !self.at_sign("{") {
            return Err(self.unexpected(["{"]).with_hint(match is_map {
                true => "declare its type: map name { type ipv4_addr : verdict; }",
                false => "declare its type: set name { type ipv4_addr; }",
            }));
        }
        self.block(|this| this.set_entry(&mut declared, &mut found))?;
        if declared.keys.is_none() {
            return Err(Diagnostic::new(span, "missing key type").expecting(["type", "typeof"]));
        }
        if is_map && declared.data.is_none() {
            return Err(Diagnostic::new(span, "missing data type")
                .with_hint("for example: type ipv4_addr : verdict"));
        }
        sets.push(Command {
            verb,
            object: Object::Set(Box::new(declared)),
            span,
        });
        if let Some((found, span)) = found {
            elements.push(Command {
                verb: Verb::Add,
                object: Object::Elements(Elements {
                    family: at.family,
                    table: at.table.clone(),
                    set: name,
                    elements: found,
                }),
                span,
            });
        }
        Ok(())
    }

    fn set_entry(
        &mut self,
        declared: &mut SetDeclaration,
        found: &mut Option<(ElementList, Span)>,
    ) -> Result<Ending, Diagnostic> {
        let start = self.current.span;
        let words = [
            "type",
            "typeof",
            "flags",
            "timeout",
            "gc-interval",
            "elements",
            "size",
            "policy",
            "auto-merge",
            "comment",
        ];
        match self.eat_any(&words) {
            Some(word @ ("type" | "typeof")) => {
                if declared.keys.is_some() {
                    return Err(self.repeated(start, "type"));
                }
                self.declared_types(declared, word == "typeof", start)?;
            }
            Some("flags") => loop {
                let word = self.one_of(&FLAGS.map(|(word, _)| word))?;
                let flag = FLAGS.iter().find(|(known, _)| *known == word);
                let flag = flag.map_or(SetFlags::default(), |(_, flag)| *flag);
                declared.set.flags = Some(declared.set.flags.unwrap_or_default() | flag);
                if !self.eat_sign(",") {
                    break;
                }
            },
            Some("timeout") => declared.set.timeout = Some(Milliseconds(self.time()?)),
            Some("gc-interval") => {
                let span = self.current.span;
                let time = u32::try_from(self.time()?);
                let time =
                    time.map_err(|_| Diagnostic::new(span, "interval is longer than 49 days"))?;
                declared.set.gc_interval = Some(Milliseconds32(time));
            }
            Some("elements") => {
                self.expect_sign("=")?;
                let more = self.all_elements()?;
                let span = self.since(start);
                if found.replace((more, span)).is_some() {
                    return Err(self.repeated(start, "elements"));
                }
                return Ok(Ending::Any);
            }
            Some("size") => {
                let size = self.number("a set size")?;
                declared.set.description.get_or_insert_default().size = Some(size);
            }
            Some("policy") => {
                declared.set.policy = Some(match self.one_of(&["performance", "memory"])? {
                    "memory" => SetPolicy::MEMORY,
                    _ => SetPolicy::PERFORMANCE,
                });
            }
            Some("auto-merge") => declared.auto_merge = true,
            Some(_) => {
                if declared
                    .comment
                    .replace(self.string("a comment")?)
                    .is_some()
                {
                    return Err(self.repeated(start, "comment"));
                }
            }
            None => {
                let Some(statement) = Statement::parse_stateful(self)? else {
                    let of = if declared.is_map { "a map" } else { "a set" };
                    let known = ENTRIES.into_iter().chain(statements::stateful_words());
                    let known: Vec<_> = known.chain(["define"]).collect();
                    return Err(self.no_entry(of, &known));
                };
                declared.statements.push((statement, self.since(start)));
                // A line may contain several statements.
                while let start = self.current.span
                    && let Some(statement) = Statement::parse_stateful(self)?
                {
                    declared.statements.push((statement, self.since(start)));
                }
            }
        }
        Ok(Ending::Line)
    }

    /// Parses `type ipv4_addr . inet_service : verdict`, after the first word.
    fn declared_types(
        &mut self,
        declared: &mut SetDeclaration,
        is_typeof: bool,
        start: Span,
    ) -> Result<(), Diagnostic> {
        let keys = self.declared(is_typeof)?;
        declared.keys = Some((keys, self.since(start)));
        let colon = self.current.span;
        if !self.eat_sign(":") {
            return Ok(());
        }
        if !declared.is_map {
            return Err(Diagnostic::new(colon, "a set has no data type")
                .with_hint("declare a map: map name { … }"));
        }
        let start = self.current.span;
        declared.data_is_interval = self.eat("interval");
        let data = match self.object_kind() {
            Some(kind) => Declared::Objects(kind.object_type),
            None if is_typeof && !declared.data_is_interval && self.eat("queue") => {
                Declared::Typeof(Expr::QueueNumber)
            }
            None if self.eat("verdict") => Declared::Types(vec![DataType::VERDICT]),
            None => self.declared(is_typeof)?,
        };
        declared.data = Some((data, self.since(start)));
        Ok(())
    }

    fn declared(&mut self, is_typeof: bool) -> Result<Declared, Diagnostic> {
        if is_typeof {
            return self.left().map(Declared::Typeof);
        }
        let mut types = vec![self.data_type()?];
        while self.eat_sign(".") {
            types.push(self.data_type()?);
        }
        Ok(Declared::Types(types))
    }

    /// Parses elements in braces, or a variable with elements.
    pub(crate) fn all_elements(&mut self) -> Result<ElementList, Diagnostic> {
        if self.at_sign("$") {
            return Ok(match self.variable()? {
                Expr::Set(elements) => elements.into_iter().collect(),
                value => [Element::new(Some(value))].into_iter().collect(),
            });
        }
        let start = self.current.span;
        self.expect_sign("{")?;
        let mut elements = ElementList::default();
        self.deeper(|this| this.elements(Side::Right, &mut elements))?;
        match elements.len() {
            0 => Err(Diagnostic::new(self.since(start), "missing elements")),
            _ => Ok(elements),
        }
    }
}
