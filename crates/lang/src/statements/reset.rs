//! `reset tcp option`: overwrites a TCP option with padding.

use super::prelude::*;
#[cfg(feature = "json")]
use crate::json::option;
use crate::syntax::OptionField;
use chainwright::nft::expr::Exthdr;
#[cfg(feature = "json")]
use chainwright::nft::expr::ExthdrOp;

/// The option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reset(pub(crate) Expr);

impl Reset {
    pub(crate) const fn new(option: OptionField) -> Self {
        Self(Expr::Option(option))
    }
}

impl Text for Reset {
    const WORDS: &'static [&'static str] = &["reset"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        match parser.eat_keyword(&["tcp option"]) {
            Some(_) => parser.whole_tcp_option().map(Self),
            None => Err(parser.unexpected(["tcp option"])),
        }
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.out.write_str("reset ")?;
        printer.expr(&self.0)
    }
}

impl Linearize for Reset {
    fn operands(&self) -> Vec<&Expr> {
        vec![&self.0]
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        match &self.0 {
            Expr::Option(option) => {
                rule.push(&Exthdr::reset_tcp_option(option.number));
                Ok(())
            }
            _ => Err(rule.error("this statement is not allowed here")),
        }
    }
}

#[cfg(feature = "json")]
impl Json for Reset {
    fn read(_: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let (key, value) = node.tagged("expression")?;
        if key.text != "tcp option" {
            let message = format!("`{}` cannot be reset", shown(&key.text));
            return Err(Diagnostic::new(key.span, message).expecting(["tcp option"]));
        }
        match option(value, ExthdrOp::TCPOPT)? {
            Expr::Option(mut option) if option.presence || option.bits == 0 => {
                (option.presence, option.bits) = (false, 0);
                Ok(Self::new(option))
            }
            _ => Err(Diagnostic::new(
                value.span,
                "only a whole option can be reset, not one of its fields",
            )),
        }
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        writer.expr(&self.0)
    }
}
