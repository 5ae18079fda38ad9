//! `flow add`: moves the packet's connection to a flowtable.

use super::prelude::*;
use crate::constant::Plain;
use crate::read::rule::valid_name;
use chainwright::nft::expr::FlowOffload;

/// Name of the flowtable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flow(String);

impl Text for Flow {
    const WORDS: &'static [&'static str] = &["flow"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        parser.one_of(&["add", "offload"])?;
        parser.expect_sign("@")?;
        parser.name_text("a flowtable").map(Self)
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        write!(printer.out, "flow add @{}", Plain(self.0.as_str().into()))
    }
}

impl Linearize for Flow {
    /// Not every connection can be offloaded.
    fn rule_end(&self) -> RuleEnd {
        RuleEnd::Failure
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        rule.push(&FlowOffload::new(self.0.clone()));
        Ok(())
    }
}

impl Delinearize<FlowOffload<'_>> for Flow {
    fn delinearize(flow: &FlowOffload<'_>, _: &mut Reader<'_, '_>) -> Option<Self> {
        valid_name(flow.table_name.as_deref()?).map(Self)
    }
}

#[cfg(feature = "json")]
impl Json for Flow {
    fn read(reader: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let fields = Fields::new(node, "a flow", &["op", "flowtable"])?;
        fields.need("op")?.word("flow operation", &["add"])?;
        let flowtable = fields.need("flowtable")?;
        reader.reference(flowtable, "a flowtable").map(Self)
    }

    fn json(&self, _: Writer<'_>) -> Expression<'_> {
        let record = Record::new().field("op", Expression::word("add"));
        record.field("flowtable", format!("@{}", self.0)).into()
    }
}
