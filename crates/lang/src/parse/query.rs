//! Parses queries: `list`, `reset`, `describe`, `monitor`.

use super::error::Diagnostic;
use super::parser::Parser;
use super::script::{FAMILIES, ct_words, stateful_words};
use super::selector;
use super::selectors::type_names;
use super::tree::{Command, Described, EventFilter, EventKind, Kind, Object, Verb};
use crate::statements::OBJECTS;
use crate::syntax::Span;
use chainwright::nft::{Chain, DataType, Family, Flowtable, Set, Table};

/// Selections of `monitor`, by keyword.
const WATCHED: [(&str, EventKind); 8] = [
    ("ruleset", EventKind::Ruleset),
    ("tables", EventKind::Tables),
    ("chains", EventKind::Chains),
    ("rules", EventKind::Rules),
    ("sets", EventKind::Sets),
    ("elements", EventKind::Elements),
    ("objects", EventKind::Objects),
    ("trace", EventKind::Trace),
];

/// Kinds of objects that can be listed or reset together, except stateful objects, by keyword.
const KINDS: [(&str, Kind); 8] = [
    ("tables", Kind::Tables),
    ("chains", Kind::Chains),
    ("rules", Kind::Rules),
    ("sets", Kind::Sets),
    ("maps", Kind::Maps),
    ("meters", Kind::Meters),
    ("flowtables", Kind::Flowtables),
    ("hooks", Kind::Hooks),
];

/// Returns the kinds of objects that can be listed or reset together, by keyword.
pub(crate) fn kinds() -> impl Iterator<Item = (&'static str, Kind)> {
    let stateful = OBJECTS.iter().flat_map(|kind| {
        let stateful = Kind::Stateful(kind.object_type);
        kind.plurals.iter().map(move |word| (*word, stateful))
    });
    KINDS.into_iter().chain(stateful)
}

/// Returns the operands of `reset`.
pub(crate) fn reset_words() -> Vec<&'static str> {
    let stateful = OBJECTS.iter().filter(|kind| kind.has_reset);
    let stateful =
        stateful.flat_map(|kind| [kind.name].into_iter().chain(kind.plurals.iter().copied()));
    ["rule", "rules", "set", "map", "element"]
        .into_iter()
        .chain(stateful)
        .collect()
}

impl Parser<'_> {
    /// Parses `monitor new rules json`.
    pub(crate) fn monitor(&mut self, start: Span) -> Result<Command, Diagnostic> {
        let only = self.eat_any(&["new", "destroy"]);
        let watched = WATCHED.iter().find(|(word, _)| self.at(word));
        if watched.is_some() {
            self.advance();
        }
        let is_json = match self.eat("vm") {
            true => {
                self.expect("json")?;
                true
            }
            false => self.eat("json"),
        };
        if self.at("xml") {
            let message = "XML output is not supported: `nft` accepts the word but prints nothing";
            return Err(Diagnostic::new(self.current.span, message));
        }
        if watched.is_none() && !is_json && !self.at_end() {
            let verbs = ["new", "destroy"].into_iter().filter(|_| only.is_none());
            let known = verbs.chain(WATCHED.map(|(word, _)| word)).chain(["json"]);
            return Err(self.unknown("monitor keyword", known));
        }
        Ok(Command {
            verb: Verb::List,
            object: Object::Monitor(EventFilter {
                is_named: only.is_some() || watched.is_some(),
                additions: only != Some("destroy"),
                deletions: only != Some("new"),
                kind: watched.map_or(EventKind::Ruleset, |(_, kind)| *kind),
                is_json,
            }),
            span: self.since(start),
        })
    }

    /// Parses `describe tcp dport`, `describe ipv4_addr`.
    pub(crate) fn describe(&mut self, start: Span) -> Result<Command, Diagnostic> {
        let is_selector = selector::words().any(|word| self.at(word));
        let verdict = [("verdict", DataType::VERDICT)];
        let found = type_names().chain(verdict).find(|(name, _)| self.at(name));
        let described = match found {
            Some((_, data_type)) if !is_selector => {
                self.advance();
                Described::Type(data_type)
            }
            _ => {
                // Without a table, no IP version is known.
                self.family = Family::INET;
                Described::Expr(self.left()?)
            }
        };
        Ok(Command {
            verb: Verb::List,
            object: Object::Described(described),
            span: self.since(start),
        })
    }

    /// Parses `list …` and `reset …`.
    pub(crate) fn show(&mut self, verb: Verb, start: Span) -> Result<Command, Diagnostic> {
        let object = self.shown_object(verb)?;
        Ok(Command {
            verb,
            object,
            span: self.since(start),
        })
    }

    fn shown_object(&mut self, verb: Verb) -> Result<Object, Diagnostic> {
        let singles = [
            "ruleset",
            "table",
            "chain",
            "set",
            "map",
            "meter",
            "flowtable",
        ];
        let known = || {
            let plain = kinds()
                .map(|(word, _)| word)
                .filter(|word| !word.contains(' '));
            plain.chain(singles).chain(stateful_words())
        };
        if verb == Verb::Reset && !reset_words().iter().any(|word| self.at(word)) {
            return Err(self.unknown("object to reset", reset_words()));
        }
        // The names of meters in nft 0.8.
        if self.at_keyword("flow tables") {
            self.skip_keyword("flow tables");
            return self.kind(Kind::Meters);
        }
        if self.at_keyword("flow table") {
            self.skip_keyword("flow table");
            return self.meter();
        }
        let found = kinds().find(|(word, _)| self.at_keyword(word));
        if let Some((word, kind)) = found {
            self.skip_keyword(word);
            return self.kind(kind);
        }
        if let Some(kind) = self.object_kind() {
            let is_all = kind.name.starts_with("ct ") && (self.at("table") || self.at_end());
            return match is_all {
                true => self.kind(Kind::Stateful(kind.object_type)),
                false => self.named_object_of(kind.object_type),
            };
        }
        if self.eat("ct") {
            let plurals = kinds().filter_map(|(word, _)| word.strip_prefix("ct "));
            return Err(self.unknown("object type", plurals.chain(ct_words())));
        }
        let of_reset: &[&str] = match verb {
            Verb::Reset => &["rule", "element"],
            _ => &[],
        };
        let found = self.eat_any(&singles).or_else(|| self.eat_any(of_reset));
        let Some(word) = found else {
            return Err(self.unknown("object to list", known()));
        };
        Ok(match word {
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
            "flowtable" => {
                let at = self.in_table()?;
                let name = self.name("a flowtable")?;
                Object::Flowtable(Flowtable::named(at.family, at.table, name))
            }
            "rule" => {
                let start = self.current.span;
                self.rule_command(Verb::Reset, start)?.object
            }
            "element" => {
                let start = self.current.span;
                let at = self.in_table()?;
                self.elements_command(verb, &at, start)?.object
            }
            "meter" => self.meter()?,
            word => self.named_set(word == "map")?,
        })
    }

    fn meter(&mut self) -> Result<Object, Diagnostic> {
        let at = self.in_table()?;
        let name = self.name("a set")?;
        Ok(Object::Meter(Set::named(at.family, at.table, name)))
    }

    /// Parses the operand of a command about all objects of a kind: a family or a table; for hooks, a family and a
    /// device.
    fn kind(&mut self, kind: Kind) -> Result<Object, Diagnostic> {
        if kind == Kind::Hooks {
            let family = self.any_family();
            let device = match self.eat("device") {
                true => Some(self.name("a device")?),
                false => None,
            };
            return Ok(Object::Kind(kind, family, device));
        }
        if kind == Kind::Rules && self.eat("chain") {
            let at = self.in_table()?;
            let name = self.name("a chain")?;
            return Ok(Object::Chain(Chain::new(at.family, at.table, name)));
        }
        if self.eat("table") {
            let at = self.in_table()?;
            return Ok(Object::Kind(kind, at.family, Some(at.table)));
        }
        let found = self.eat_any(&FAMILIES);
        let family = found.and_then(|word| word.parse().ok());
        if self.eat("table") || (kind != Kind::Tables && self.is_word()) {
            let table = self.name("a table")?;
            // Without a family, a table is one of the family ip, as in most commands.
            let family = family.unwrap_or(Family::IP);
            if kind == Kind::Rules && self.is_word() {
                let chain = self.name("a chain")?;
                return Ok(Object::Chain(Chain::new(family, table, chain)));
            }
            return Ok(Object::Kind(kind, family, Some(table)));
        }
        Ok(Object::Kind(kind, family.unwrap_or(Family::UNSPEC), None))
    }
}
