//! `chainwright translate`: translates iptables' rules into nft's language, and back.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use chainwright::iptables::Family;
use chainwright::iptables::text::{self, SaveOptions};
use chainwright_lang::translate::{ReverseTranslation, Translation, UntranslatedRule};
use chainwright_lang::{self as nfts, Script};
use clap::ValueEnum;
use serde::Serialize;

use crate::output::{Error, Exit, Output, Printable, note};
use crate::save::describe_omissions;

/// Translate iptables' rules into nft's language, or nft's rules into iptables'
///
/// Reads the output of `save` or iptables-save, or one rule, and prints it in nft's language, as input for `apply` and
/// `nft -f`. It neither reads nor changes the kernel's tables.
///
/// A rule is translated completely or not at all, into nf_tables' native expressions. A rule that needs an extension of
/// x_tables is replaced by a comment; standard error reports the number of these, and the exit code is 1: without them
/// the rules may accept packets that they did not accept, or drop packets that they did not drop.
///
/// With `--to iptables` it translates in the other direction: it reads the output of `list` and the input of `nft -f`,
/// and prints the tables of IPv4 or IPv6 as iptables-nft would save them after they are loaded into an empty ruleset.
/// Rules that iptables does not know are comments in nft's syntax; standard error lists tables that it does not know.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Translate this rule, in the syntax of `iptables` arguments: '-t nat -A POSTROUTING -j MASQUERADE'; or only its
    /// options
    #[arg(
        long,
        value_name = "RULE",
        conflicts_with_all = ["file", "to"],
        allow_hyphen_values = true
    )]
    rule: Option<String>,

    /// Target language
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value_t = Language::Nft)]
    to: Language,

    /// The input is for IPv4, which is the default
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,

    /// The input is for IPv6
    #[arg(short = '6', long)]
    ipv6: bool,

    /// Input file; standard input if omitted, or `-`
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// nft's
    Nft,
    /// iptables-save's
    Iptables,
}

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
            why: &untranslated.why,
        }
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let family = match args.ipv6 {
        true => Family::Ipv6,
        false => Family::Ipv4,
    };
    if args.to == Language::Iptables {
        return back(args, family, json);
    }
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
            Printable(&first.why)
        ),
        (count, first) => format!(
            "{count} lines are not translated, the first of them line {}: {}",
            first.line,
            Printable(&first.why)
        ),
    });
    Ok(Exit::Absent)
}

/// Reads a file, and returns its name and text.
fn read(args: &Args) -> Result<(String, Vec<u8>), Error> {
    let file = args.file.as_deref().filter(|file| *file != Path::new("-"));
    let name = file.map_or(Cow::Borrowed("<stdin>"), |file| file.to_string_lossy());
    let text = match file {
        Some(file) => File::open(file).and_then(text::read),
        None => text::read(io::stdin().lock()),
    }
    .map_err(|error| Error::Other(format!("cannot read {}: {error}", Printable(&name))))?;
    Ok((Printable(&name).to_string(), text))
}

/// Translates iptables' text.
fn whole(args: &Args, family: Family) -> Result<Translation, Error> {
    let (name, text) = read(args)?;
    Translation::of(family, text).map_err(|wrong| {
        let error = Printable(&wrong.error);
        Error::Other(format!("{name}:{}: {error}", wrong.line))
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
fn back(args: &Args, family: Family, json: bool) -> Result<Exit, Error> {
    let (name, text) = read(args)?;
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
