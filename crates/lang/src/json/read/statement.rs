//! Reads statements and rules.

use super::Reader;
use super::expr::opaque;
use super::fields::Fields;
use super::is_object;
use super::node::{Kind, Node};
use crate::parse::Diagnostic;
use crate::parse::error::shown;
use crate::parse::expr::to_presence_test;
use crate::parse::statement::assigned;
use crate::statements::{self, OBJECTS};
use crate::syntax::{Element, Expr, ListedRule, OptionField, Relation, Span, Statement};
use chainwright::nft::expr::ObjectType;

/// Keys of statements.
const KNOWN: [&str; 9] = [
    "accept", "drop", "continue", "break", "return", "jump", "goto", "match", "vmap",
];

impl Reader {
    /// Reads the statements of a rule, with their locations.
    pub(crate) fn statements(self, node: &Node<'_>) -> Result<Vec<(Statement, Span)>, Diagnostic> {
        let each = node.list("statements")?.iter();
        each.map(|entry| Ok((self.statement(entry)?, entry.span)))
            .collect()
    }

    /// Reads the rules of an anonymous chain.
    pub(crate) fn lines(self, node: &Node<'_>) -> Result<Vec<ListedRule>, Diagnostic> {
        let rules = node.list("rules")?;
        if rules.is_empty() {
            return Err(Diagnostic::new(
                node.span,
                "an anonymous chain needs at least one rule",
            ));
        }
        let line = |rule: &Node<'_>| {
            let fields = Fields::new(rule, "a rule of an anonymous chain", &["expr", "comment"])?;
            let statements = self.statements(fields.need("expr")?)?;
            let comment = fields
                .get("comment")
                .map(|node| node.lossless_text("a comment"));
            Ok(ListedRule {
                statements: statements.into_iter().map(|(each, _)| each).collect(),
                comment: comment.transpose()?.map(Into::into),
                handle: 0,
            })
        };
        rules.iter().map(line).collect()
    }

    pub(crate) fn statement(self, node: &Node<'_>) -> Result<Statement, Diagnostic> {
        if let Kind::Text(text) = &node.kind
            && let Some(statement) = Statement::of_word(text)
        {
            return Ok(statement);
        }
        let (key, value) = node.tagged("statement")?;
        if let Some(verdict) = self.verdict(&key.text, value)? {
            return Ok(Statement::Verdict(Expr::Verdict(verdict)));
        }
        for read in [Statement::read_stateful, Statement::read] {
            match read(self, key, value)? {
                Some(Statement::Mangle(mangle)) => {
                    return Ok(assigned(mangle.target, mangle.value));
                }
                Some(statement) => return Ok(statement),
                None => {}
            }
        }
        if let Some(kind) = OBJECTS.iter().find(|kind| kind.name == key.text) {
            return self.object(kind.object_type, value);
        }
        match &*key.text {
            "match" => self.matched(value),
            "vmap" => {
                let (map_key, map) = self.key_and_map(value, "a verdict map")?;
                Ok(Statement::VerdictMap(map_key, map))
            }
            "opaque" => Err(opaque(key.span)),
            other => {
                let message = format!("unknown statement `{}`", shown(other));
                let known = KNOWN.into_iter().chain(statements::keys());
                Err(Diagnostic::new(key.span, message)
                    .expecting(known)
                    .nearest_to(other))
            }
        }
    }

    pub(crate) fn optional(
        self,
        fields: &Fields<'_, '_>,
        key: &str,
    ) -> Result<Option<Expr>, Diagnostic> {
        fields.get(key).map(|node| self.expr(node)).transpose()
    }

    /// Reads a reference to a set: `@name`.
    pub(crate) fn reference(self, node: &Node<'_>, of: &str) -> Result<String, Diagnostic> {
        let text = node.text(&format!("the name of {of}"))?;
        match text.strip_prefix('@') {
            Some(name) => self.name_of(name, of, node.span),
            None => {
                let message = format!("`{}` does not begin with `@`", shown(text));
                Err(Diagnostic::new(node.span, message))
            }
        }
    }

    fn object(self, object_type: ObjectType, node: &Node<'_>) -> Result<Statement, Diagnostic> {
        match is_object(node) {
            true => Ok(Statement::Object(object_type, self.expr(node)?)),
            false => Err(node.wrong(["the name of an object in quotation marks", "a map"])),
        }
    }

    fn matched(self, node: &Node<'_>) -> Result<Statement, Diagnostic> {
        const RELATIONS: [Relation; 7] = [
            Relation::Equal,
            Relation::NotEqual,
            Relation::Less,
            Relation::LessOrEqual,
            Relation::Greater,
            Relation::GreaterOrEqual,
            Relation::None,
        ];
        let fields = Fields::new(node, "a match", &["op", "left", "right"])?;
        let signs: Vec<&str> = ["in"]
            .into_iter()
            .chain(RELATIONS.iter().map(|relation| relation.sign()))
            .collect();
        let sign = fields.need("op")?.word("comparison operator", &signs)?;
        let relation = RELATIONS.iter().find(|relation| relation.sign() == sign);
        let relation = relation.copied().unwrap_or(Relation::Implicit);
        let left = self.left(fields.need("left")?)?;
        let node = fields.need("right")?;
        let right = self.expr(node)?;
        let left = match (left, &node.kind) {
            // Form of a test for an unnamed option.
            (Expr::Option(option), Kind::Bool(_)) if option.offset == 0 && option.bits == 8 => {
                Expr::Option(OptionField {
                    presence: true,
                    ..option
                })
            }
            (left, _) => to_presence_test(left, &right),
        };
        Ok(Statement::Match {
            left,
            relation,
            right,
        })
    }

    /// Reads the statements of set elements.
    pub(crate) fn kept(self, node: &Node<'_>) -> Result<Vec<(Statement, Span)>, Diagnostic> {
        let mut statements = Vec::new();
        for entry in node.one_or_many() {
            let (key, value) = entry.tagged("statement")?;
            match Statement::read_stateful(self, key, value)? {
                Some(statement) => statements.push((statement, entry.span)),
                None => {
                    let message = format!("`{}` is not allowed in an element", shown(&key.text));
                    let known = statements::stateful_words();
                    return Err(Diagnostic::new(key.span, message)
                        .expecting(known)
                        .nearest_to(&key.text));
                }
            }
        }
        Ok(statements)
    }

    /// Reads the statements of set elements, and appends them to an element of a rule.
    pub(crate) fn keep(self, node: &Node<'_>, element: &mut Element) -> Result<(), Diagnostic> {
        let statements = self.kept(node)?.into_iter();
        element.statements.extend(statements.map(|(each, _)| each));
        Ok(())
    }
}
