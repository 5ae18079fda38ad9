//! Prints parsed rules.

use super::{Command, Error, NoIncludes, Object, Rule, Source, parse};
use crate::dialect::NftVersion;
use crate::list::Options;
use crate::print::Printer;
use crate::syntax::ListedRule;

/// Formats a rule in one line.
pub(crate) fn printed(rule: &Rule) -> Option<String> {
    let statements = rule.statements.iter().map(|(statement, _)| statement);
    let line = ListedRule {
        statements: statements.cloned().collect(),
        comment: rule.comment.clone().map(Into::into),
        handle: 0,
    };
    // Version 1.0 adds nothing to the text.
    let mut options = Options::default();
    options.nft_version = NftVersion::V1_0;
    let mut text = String::new();
    let mut printer = Printer::new(&mut text, &options);
    printer.in_line = true;
    printer.rule(&line).ok()?;
    Some(text)
}

/// Returns the rules of a text, each as a command that adds it.
pub(crate) fn parsed_rules(text: &[u8]) -> Result<Vec<String>, Error> {
    let (commands, _) = parse(Source::new("text", text), &NoIncludes)?;
    let command = |Command { object, .. }: &Command| match object {
        Object::Rule(rule) if !rule.statements.is_empty() => {
            let Rule {
                family,
                table,
                chain,
                ..
            } = &**rule;
            Some(format!(
                "add rule {family} {table} {chain} {}",
                printed(rule)?
            ))
        }
        _ => None,
    };
    Ok(commands.iter().filter_map(command).collect())
}
