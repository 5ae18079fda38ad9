//! `last`: records when a packet last reached it.

use super::prelude::*;
use chainwright::nft::expr;

/// Time since the last packet, in milliseconds; `None` if there was none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Last(Option<u64>);

impl Text for Last {
    const WORDS: &'static [&'static str] = &["last"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        Ok(Self(match parser.eat("used") && !parser.eat("never") {
            true => Some(parser.time()?),
            false => None,
        }))
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("last")?;
        match self.0 {
            _ if printer.is_stateless() => Ok(()),
            Some(ago) => write!(printer.out, " used {}", printer.options.time(ago)),
            None => printer.out.write_str(" used never"),
        }
    }
}

impl Stateful for Last {
    type Expression = expr::Last;

    fn expression(&self) -> expr::Last {
        self.0.map_or_else(expr::Last::never, expr::Last::ago)
    }

    fn of_expression(last: &expr::Last) -> Option<Self> {
        let is_set = last.set.unwrap_or_default() != 0;
        Some(Self(last.msecs.filter(|_| is_set)))
    }
}

#[cfg(feature = "json")]
impl Json for Last {
    fn read(_: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        if node.is_null() {
            return Ok(Self(None));
        }
        let fields = Fields::new(node, "a last statement", &["used"])?;
        fields.number("used", "a number of milliseconds").map(Self)
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        match self.0.filter(|_| !writer.stateless) {
            Some(used) => Record::new().field("used", Expression::Count(used)).into(),
            None => Expression::Null(()),
        }
    }
}
