//! `xt match "…"`, `xt target "…"`: a match or target of iptables in a rule that iptables-nft wrote.

use super::prelude::*;
use crate::constant::{Quoted, quotable};
use chainwright::nft::expr::{Match, Target};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Xt {
    is_target: bool,
    name: String,
}

impl Xt {
    fn new(is_target: bool, name: &[u8]) -> Option<Self> {
        let name = quotable(name)?.to_owned();
        Some(Self { is_target, name })
    }

    const fn kind(&self) -> &'static str {
        match self.is_target {
            false => "match",
            true => "target",
        }
    }
}

/// Creates the error that it cannot be written.
fn not_written(span: Span) -> Diagnostic {
    let message = "x_tables matches and targets cannot be written in nft's language";
    Diagnostic::new(span, message).with_hint("iptables-nft wrote the rule: change it with iptables")
}

impl Text for Xt {
    const WORDS: &'static [&'static str] = &["xt"];

    fn parse(parser: &mut Parser<'_>, _: &str) -> Result<Self, Diagnostic> {
        Err(not_written(parser.before))
    }

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        let name = Quoted(self.name.as_str().into());
        write!(printer.out, "xt {} {name}", self.kind())
    }
}

impl Linearize for Xt {
    fn rule_end(&self) -> RuleEnd {
        match self.is_target {
            false => RuleEnd::Condition,
            true => RuleEnd::Failure,
        }
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        Err(rule.error(format!(
            "`xt {} \"{}\"` was written by iptables-nft: its options are not in this text, so it cannot be recreated",
            self.kind(),
            self.name
        )))
    }
}

impl Delinearize<Match<'_>> for Xt {
    fn delinearize(matched: &Match<'_>, _: &mut Reader<'_, '_>) -> Option<Self> {
        Self::new(false, matched.name.as_deref()?)
    }
}

impl Delinearize<Target<'_>> for Xt {
    fn delinearize(target: &Target<'_>, _: &mut Reader<'_, '_>) -> Option<Self> {
        Self::new(true, target.name.as_deref()?)
    }
}

#[cfg(feature = "json")]
impl Json for Xt {
    fn read(_: JsonReader, key: &Key<'_>, _: &Node<'_>) -> Result<Self, Diagnostic> {
        Err(not_written(key.span))
    }

    fn json(&self, _: Writer<'_>) -> Expression<'_> {
        let record = Record::new().field("type", Expression::word(self.kind()));
        record.field("name", self.name.clone()).into()
    }
}
