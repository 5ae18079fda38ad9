//! `add @set { … }`, `update @set { … }`, `delete @set { … }`: change the elements of a set from a rule. The kernel calls
//! it `dynset`.

use super::prelude::*;
use crate::compile::rule_builder::{REGISTER, register};
use crate::compile::sets::{Data, SetSpec};
use crate::constant::Plain;
use crate::parse::expr::Side;
use crate::syntax::{Element, Statement};
use chainwright::nft::expr::{Dynset, DynsetFlags, DynsetOp, Register};
use chainwright::nft::{Milliseconds, SetId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Update {
    pub(crate) op: DynsetOp,
    pub(crate) set: String,
    pub(crate) element: Box<Element>,
}

/// Operations by word.
const OPERATIONS: [(DynsetOp, &str); 3] = [
    (DynsetOp::ADD, "add"),
    (DynsetOp::UPDATE, "update"),
    (DynsetOp::DELETE, "delete"),
];
const WORDS: [&str; 3] = [OPERATIONS[0].1, OPERATIONS[1].1, OPERATIONS[2].1];

fn operation(word: &str) -> DynsetOp {
    let found = OPERATIONS.iter().find(|(_, known)| *known == word);
    found.map_or(DynsetOp::UPDATE, |(op, _)| *op)
}

/// Returns the word of an operation.
pub(crate) fn word(op: DynsetOp) -> Option<&'static str> {
    let found = OPERATIONS.iter().find(|(known, _)| *known == op);
    found.map(|(_, word)| *word)
}

impl Update {
    /// Parses `update ip saddr timeout 5s @name`, the syntax of older versions, after `set`.
    pub(crate) fn parse_old(parser: &mut Parser<'_>) -> Result<Self, Diagnostic> {
        let op = operation(parser.one_of(&WORDS)?);
        let mut element = Element::new(Some(parser.concat(Side::Any)?));
        loop {
            if parser.eat("timeout") {
                element.timeout = parser.lifetime()?;
            } else if let Some(statement) = Statement::parse_stateful(parser)? {
                element.statements.push(statement);
            } else {
                break;
            }
        }
        Ok(Self {
            op,
            set: parser.updated_set()?,
            element: Box::new(element),
        })
    }
}

impl Element {
    /// Returns how adding this element from a rule can end the rule: by its statements, or because the set is full.
    pub(crate) fn rule_end(&self) -> RuleEnd {
        let mut ends = self.statements.iter().map(Statement::rule_end);
        match ends.any(|end| end == RuleEnd::Condition) {
            true => RuleEnd::Condition,
            false => RuleEnd::Failure,
        }
    }
}

impl Parser<'_> {
    /// Parses the element of an update statement, in braces.
    pub(crate) fn one_element(&mut self) -> Result<Element, Diagnostic> {
        let start = self.current.span;
        match self.set(Side::Any, false)? {
            Expr::Set(elements) if elements.len() == 1 => elements
                .into_iter()
                .next()
                .ok_or_else(|| self.unclosed(start)),
            _ => Err(Diagnostic::new(
                self.since(start),
                "a rule can only update one set element at a time",
            )),
        }
    }
}

impl Text for Update {
    const WORDS: &'static [&'static str] = &WORDS;

    fn parse(parser: &mut Parser<'_>, word: &str) -> Result<Self, Diagnostic> {
        Ok(Self {
            op: operation(word),
            set: parser.updated_set()?,
            element: Box::new(parser.one_element()?),
        })
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        let (word, set) = (word(self.op).unwrap_or_default(), self.set.as_str());
        write!(printer.out, "{word} @{} {{ ", Plain(set.into()))?;
        printer.update(&self.element)?;
        printer.out.write_str(" }")
    }
}

impl Linearize for Update {
    fn rule_end(&self) -> RuleEnd {
        match self.op {
            DynsetOp::DELETE => end_by_operands(&self.operands()),
            _ => self.element.rule_end(),
        }
    }

    fn operands(&self) -> Vec<&Expr> {
        self.element.key.iter().chain(&self.element.data).collect()
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        let is_map = self.element.data.is_some();
        let known = rule
            .compiler
            .set(rule.family, &rule.table, &self.set, is_map)?;
        rule.dynset(self.op, &rule.named(&self.set), &self.element, Some(&known))
    }
}

impl RuleBuilder<'_, '_> {
    pub(crate) fn dynset(
        &mut self,
        op: DynsetOp,
        set: &SetId<'static>,
        element: &Element,
        set_spec: Option<&SetSpec>,
    ) -> Result<(), Diagnostic> {
        let Some(key) = &element.key else {
            return Err(self.error("an element needs a key"));
        };
        if element.comment.is_some() {
            return Err(self.error("an element that a rule adds cannot have a comment"));
        }
        if element.timeout == Some(0) {
            let message = "a rule cannot add an element that never times out: the kernel applies the set's timeout";
            return Err(self.error(message));
        }
        let words = match set_spec {
            // A key that is the same for all packets.
            Some(set_spec) if key.is_constant() => self.put(key, &set_spec.keys, 0)?,
            _ => {
                let of_set = set_spec.map_or(&[][..], |set_spec| &set_spec.keys);
                if let Some(set_spec) = set_spec {
                    let types = self.expected_types_in(key, of_set);
                    self.check(set_spec, &types, true, None, key)?;
                }
                let mut fields = self.load_key(key, 0, false, of_set)?;
                if let ([field], Some(DataType::MARK)) =
                    (&mut fields[..], set_spec.map(|set_spec| set_spec.key_type))
                {
                    self.turn_to_mark(field, 0);
                }
                fields.iter().map(crate::compile::load::Loaded::words).sum()
            }
        };
        let mut dynset = Dynset {
            sreg_key: Some(Register::R1),
            op: Some(op),
            set_name: Some(set.set.clone()),
            set_id: set.id,
            timeout: element.timeout.map(Milliseconds),
            ..Dynset::default()
        };
        let data = set_spec.and_then(|set_spec| set_spec.data.as_ref());
        if let (Some(value), Some(Data::Values { fields, .. })) = (&element.data, data) {
            let word = words.next_multiple_of(REGISTER);
            self.put(value, fields, word)?;
            dynset.sreg_data = Some(register(word));
        }
        match &element.statements[..] {
            [] => {}
            [one] => dynset.expr = Some(self.compiler.nested(one)?),
            several => {
                dynset.expressions = Some(self.compiler.all_nested(several)?);
                dynset.flags = Some(DynsetFlags::EXPR);
            }
        }
        self.push(&dynset);
        Ok(())
    }
}

#[cfg(feature = "json")]
impl Json for Update {
    const KEYS: &'static [&'static str] = &["set", "map"];

    fn key(&self) -> &'static str {
        match self.element.data {
            None => "set",
            Some(_) => "map",
        }
    }

    fn read(reader: JsonReader, key: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let key = &*key.text;
        let known: &[&str] = match key {
            "map" => &["op", "elem", "data", "map", "stmt"],
            _ => &["op", "elem", "set", "stmt"],
        };
        let fields = Fields::new(node, &format!("a {key} statement"), known)?;
        let word = fields.need("op")?.word("set operation", &WORDS)?;
        let mut element = reader.key(fields.need("elem")?)?;
        if let Some(statements) = fields.get("stmt") {
            reader.keep(statements, &mut element)?;
        }
        if key == "map" {
            element.data = Some(reader.data(fields.need("data")?)?);
        }
        Ok(Self {
            op: operation(word),
            set: reader.reference(fields.need(key)?, &format!("a {key}"))?,
            element: Box::new(element),
        })
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        let planned = writer.planned();
        let data = self.element.data.as_ref();
        let statements = planned.statements(&self.element.statements);
        let record = Record::new()
            .optional("op", word(self.op).map(Expression::word))
            .field("elem", planned.key(&self.element, Record::new()))
            .optional("data", data.map(|data| writer.expr(data)))
            .field(self.key(), format!("@{}", self.set))
            .optional(
                "stmt",
                (!statements.is_empty()).then_some(Expression::List(statements)),
            );
        record.into()
    }
}
