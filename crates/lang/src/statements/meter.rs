//! `meter name { … }`: adds an element to a set that the statement creates, in the syntax of older versions.

use super::prelude::*;
use crate::compile::constant::ExpectedType;
use crate::compile::sets::{SetUserData, noted_order, with_keys};
use crate::constant::Plain;
use crate::syntax::Element;
use chainwright::nft::expr::DynsetOp;
use chainwright::nft::{Set, SetFlags, SetId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meter {
    pub(crate) name: String,
    pub(crate) size: Option<u32>,
    pub(crate) element: Box<Element>,
}

impl Text for Meter {
    const WORDS: &'static [&'static str] = &["meter"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        Ok(Self {
            name: parser.name_text("a meter")?,
            size: match parser.eat("size") {
                true => Some(parser.number("a set size")?),
                false => None,
            },
            element: Box::new(parser.one_element()?),
        })
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        write!(printer.out, "meter {}", Plain(self.name.as_str().into()))?;
        if let Some(size) = self.size {
            write!(printer.out, " size {size}")?;
        }
        printer.out.write_str(" { ")?;
        printer.update(&self.element)?;
        printer.out.write_str(" }")
    }
}

impl Linearize for Meter {
    fn rule_end(&self) -> RuleEnd {
        self.element.rule_end()
    }

    fn operands(&self) -> Vec<&Expr> {
        self.element.key.iter().chain(&self.element.data).collect()
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        let Some(key) = &self.element.key else {
            return Err(rule.error("a meter needs a key"));
        };
        let expected_types: Vec<ExpectedType> = match key {
            Expr::Concat(parts) => parts.iter().map(|part| rule.expected_type(part)).collect(),
            key => vec![rule.expected_type(key)],
        };
        let mut flags = SetFlags::ANONYMOUS | SetFlags::EVAL;
        let op = match self.element.timeout {
            Some(_) => {
                flags |= SetFlags::TIMEOUT;
                DynsetOp::UPDATE
            }
            None => DynsetOp::ADD,
        };
        rule.compiler.anonymous += 1;
        let id = rule.compiler.anonymous;
        let set = Set {
            family: rule.family,
            table: Some(rule.table.clone()),
            name: Some(self.name.clone().into()),
            id: Some(id),
            flags: Some(flags),
            ..Set::empty()
        };
        let mut set = with_keys(set, &expected_types, false);
        let notes = SetUserData {
            key_order: noted_order(&expected_types),
            ..SetUserData::default()
        };
        let noted = notes.write(&mut set);
        noted.map_err(|error| rule.error(error.to_string()))?;
        if let Some(size) = self.size {
            set = set.with_size(size);
        }
        rule.compiler.add(&set)?;
        let set = SetId {
            id: Some(id),
            ..SetId::new(rule.family, rule.table.clone(), self.name.clone())
        };
        rule.dynset(op, &set, &self.element, None)
    }
}

#[cfg(feature = "json")]
impl Json for Meter {
    fn read(reader: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let fields = Fields::new(node, "a meter", &["name", "size", "key", "stmt"])?;
        let name = fields.need("name")?;
        let mut element = reader.key(fields.need("key")?)?;
        reader.keep(fields.need("stmt")?, &mut element)?;
        Ok(Self {
            name: reader.name_of(name.text("the name of a meter")?, "a meter", name.span)?,
            size: fields.number("size", "a set size")?,
            element: Box::new(element),
        })
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        let planned = writer.planned();
        let mut statements = planned.statements(&self.element.statements).into_iter();
        let record = Record::new()
            .field("key", planned.key(&self.element, Record::new()))
            .optional("stmt", statements.next())
            .optional("size", self.size)
            .field("name", self.name.clone());
        record.into()
    }
}
