//! `notrack`: exempts the packet from connection tracking.

use super::prelude::*;
use chainwright::nft::expr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notrack;

impl Text for Notrack {
    const WORDS: &'static [&'static str] = &["notrack"];

    fn parse(_: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        Ok(Self)
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("notrack")
    }
}

impl Linearize for Notrack {
    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        rule.push(&expr::Notrack::new());
        Ok(())
    }
}

impl Delinearize<expr::Notrack> for Notrack {
    fn delinearize(_: &expr::Notrack, _: &mut Reader<'_, '_>) -> Option<Self> {
        Some(Self)
    }
}

#[cfg(feature = "json")]
impl Json for Notrack {
    fn read(_: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        match node.is_bare() {
            true => Ok(Self),
            false => Err(node.wrong(["null"])),
        }
    }

    fn of_word() -> Option<Self> {
        Some(Self)
    }

    fn json(&self, _: Writer<'_>) -> Expression<'_> {
        Expression::Null(())
    }
}
