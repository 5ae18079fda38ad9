//! `chainwright convert`: translates iptables' rules into nft's language, and back.

use std::io::Write as _;

use bstr::ByteSlice;
use chainwright::iptables::Family;
use chainwright::iptables::text::SaveOptions;
use chainwright_lang::translate::{ReverseTranslation, Translation, UntranslatedRule};
use chainwright_lang::{self as nfts, Script};
use serde::Serialize;

use crate::convert::Args;
use crate::get::iptables_text::describe_omissions;
use crate::output::{Error, Exit, Output, Printable, note};
use crate::ruleset_source::Format;

/// The JSON document.
#[derive(Serialize)]
struct Document<'d> {
    text: &'d str,
    rules: usize,
    untranslated: Vec<Record<'d>>,
}

/// A line that was not translated.
#[derive(Serialize)]
struct Record<'d> {
    line: usize,
    text: &'d str,
    why: &'d str,
}

impl<'d> Record<'d> {
    fn of(untranslated: &'d UntranslatedRule) -> Self {
        Self {
            line: untranslated.line,
            text: &untranslated.text,
            why: &untranslated.reason,
        }
    }
}

/// Returns the family of a text.
fn family(args: &Args) -> Family {
    match args.ipv6 {
        true => Family::Ipv6,
        false => Family::Ipv4,
    }
}

/// Translates iptables' rules into nft's language.
pub(crate) fn to_nft(args: &Args, json: bool) -> Result<Exit, Error> {
    let family = family(args);
    let translation = match &args.rule {
        Some(rule) => Translation::of_rule(family, rule)
            .map_err(|wrong| Error::Other(Printable(&wrong.error).to_string()))?,
        None => whole(args, family)?,
    };
    let mut out = Output::new();
    if json {
        out.json(
            "translate",
            &Document {
                text: &translation.text,
                rules: translation.rules,
                untranslated: translation.untranslated.iter().map(Record::of).collect(),
            },
        )?;
    } else {
        write!(out, "{}", translation.text)?;
    }
    out.flush()?;
    let count = translation.untranslated.len();
    if count == 0 {
        return Ok(Exit::Done);
    }
    note(&match (count, &translation.untranslated[0]) {
        (1, first) => format!(
            "not translated: line {}: {}",
            first.line,
            Printable(&first.reason)
        ),
        (count, first) => format!(
            "{count} lines are not translated, the first of them line {}: {}",
            first.line,
            Printable(&first.reason)
        ),
    });
    Ok(Exit::Absent)
}

/// Reads a file, and returns its name and text.
/// Translates iptables' text.
fn whole(args: &Args, family: Family) -> Result<Translation, Error> {
    let (name, text) = (args.input.name(), args.input.text(Format::Iptables)?);
    Translation::of(family, text).map_err(|wrong| {
        let error = Printable(&wrong.error);
        Error::Other(format!("{}:{}: {error}", Printable(&name), wrong.line))
    })
}

/// The JSON document of `--to iptables`.
#[derive(Serialize)]
struct ToIptablesDocument<'d> {
    text: &'d str,
    omitted: Omitted<'d>,
}

/// The parts that are comments in the text.
#[derive(Serialize)]
struct Omitted<'d> {
    rules: usize,
    chains: usize,
    private: usize,
    tables: &'d [String],
}

/// Translates nft's text into iptables'.
pub(crate) fn to_iptables(args: &Args, json: bool) -> Result<Exit, Error> {
    let family = family(args);
    let (name, text) = (args.input.name(), args.input.text(Format::Nft)?);
    let script = Script::parse(&name, text).map_err(|error| Error::Other(error.to_string()))?;
    let back =
        ReverseTranslation::of(family, &script).map_err(|error| Error::Other(error.to_string()))?;
    let (options, words) = (SaveOptions { counters: true }, crate::dialect::options());
    let mut text = Vec::new();
    let omissions = back
        .tables
        .save_with_formatter(
            options,
            &|table, rule| nfts::rule(table, rule, &words),
            &mut text,
        )
        .map_err(Error::Output)?;
    let mut out = Output::new();
    if json {
        out.json(
            "translate",
            &ToIptablesDocument {
                text: &text.to_str_lossy(),
                omitted: Omitted {
                    rules: omissions.rules,
                    chains: omissions.chains,
                    private: omissions.private,
                    tables: &back.others,
                },
            },
        )?;
    } else {
        for table in &back.others {
            writeln!(
                out,
                "# table {}, which iptables does not have",
                Printable(table)
            )?;
        }
        out.text().write_all(&text).map_err(Error::Output)?;
    }
    out.flush()?;
    if !omissions.is_none() {
        note(&format!(
            "iptables cannot express {}",
            describe_omissions(omissions)
        ));
    }
    if let [first, ..] = &*back.others {
        note(&match back.others.len() {
            1 => format!("iptables does not have a table {}", Printable(first)),
            many => format!(
                "iptables does not have {many} of the tables, the first of them {}",
                Printable(first)
            ),
        });
    }
    Ok(match omissions.is_none() && back.others.is_empty() {
        true => Exit::Done,
        false => Exit::Absent,
    })
}
