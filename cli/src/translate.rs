//! `chainwright translate`: iptables' text in nft's language, and nft's in iptables'.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use chainwright::iptables::Family;
use chainwright::iptables::text::{self, SaveOptions};
use chainwright_lang::translate::{Back, NotSaid, Translation};
use chainwright_lang::{self as nfts, Options, Script};
use clap::ValueEnum;
use serde::Serialize;

use crate::output::{Error, Exit, Output, Printable, note};
use crate::save::said;

/// Say iptables' rules in nft's language, or nft's in iptables'
///
/// Takes the text of `save` or iptables-save, or one rule, and prints what it is in nft's language: what `apply` and
/// `nft -f` take. Nothing is asked of the kernel, and nothing changed there.
///
/// A rule is said whole or not at all, by nf_tables' own expressions. One that only an extension of x_tables can say is a
/// comment in its place; standard error says how many these are, and the exit code is 1: without them the rules may let
/// through what they did not, or keep out what they let through.
///
/// With `--to iptables` it is the other way round: it takes what `list` prints and `nft -f` takes, and prints the tables of
/// IPv4 or IPv6 as iptables-nft would see and save them, once they are loaded where nothing is. Rules that iptables does
/// not know are comments in nft's words; tables that it does not know are named.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// This rule, as it is typed behind `iptables`: '-t nat -A POSTROUTING -j MASQUERADE'; or only its options
    #[arg(
        long,
        value_name = "RULE",
        conflicts_with_all = ["file", "to"],
        allow_hyphen_values = true
    )]
    rule: Option<String>,

    /// Into which language
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value_t = Language::Nft)]
    to: Language,

    /// It is of IPv4, which is what is taken if nothing is said
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,

    /// It is of IPv6
    #[arg(short = '6', long)]
    ipv6: bool,

    /// The text; standard input if there is none, or `-`
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

/// All that `--json` writes.
#[derive(Serialize)]
struct Document<'d> {
    text: &'d str,
    rules: usize,
    not_said: Vec<Record<'d>>,
}

/// A line that is not said.
#[derive(Serialize)]
struct Record<'d> {
    line: usize,
    text: &'d str,
    why: &'d str,
}

impl<'d> Record<'d> {
    fn of(not_said: &'d NotSaid) -> Self {
        Self {
            line: not_said.line,
            text: &not_said.text,
            why: &not_said.why,
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
                not_said: translation.not_said.iter().map(Record::of).collect(),
            },
        )?;
    } else {
        write!(out, "{}", translation.text)?;
    }
    out.flush()?;
    let count = translation.not_said.len();
    if count == 0 {
        return Ok(Exit::Done);
    }
    note(&match (count, &translation.not_said[0]) {
        (1, first) => format!("not said: line {}: {}", first.line, Printable(&first.why)),
        (count, first) => format!(
            "{count} lines are not said, the first of them line {}: {}",
            first.line,
            Printable(&first.why)
        ),
    });
    Ok(Exit::Absent)
}

/// A text, and what it is called.
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

/// A text of iptables'.
fn whole(args: &Args, family: Family) -> Result<Translation, Error> {
    let (name, text) = read(args)?;
    Translation::of(family, text).map_err(|wrong| {
        let error = Printable(&wrong.error);
        Error::Other(format!("{name}:{}: {error}", wrong.line))
    })
}

/// All that `--to iptables --json` writes.
#[derive(Serialize)]
struct BackDocument<'d> {
    text: &'d str,
    omitted: Omitted<'d>,
}

/// What stands in the text as comments.
#[derive(Serialize)]
struct Omitted<'d> {
    rules: usize,
    chains: usize,
    private: usize,
    tables: &'d [String],
}

/// A text of nft's as iptables'.
fn back(args: &Args, family: Family, json: bool) -> Result<Exit, Error> {
    let (name, text) = read(args)?;
    let script = Script::parse(&name, text).map_err(|error| Error::Other(error.to_string()))?;
    let back = Back::of(family, &script).map_err(|error| Error::Other(error.to_string()))?;
    let (options, words) = (SaveOptions { counters: true }, Options::here());
    let mut text = Vec::new();
    let omissions = back
        .tables
        .save_in_words(
            options,
            &|table, rule| nfts::rule(table, rule, &words),
            &mut text,
        )
        .map_err(Error::Output)?;
    let mut out = Output::new();
    if json {
        out.json(
            "translate",
            &BackDocument {
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
                "# the table {}, which iptables does not know",
                Printable(table)
            )?;
        }
        out.text().write_all(&text).map_err(Error::Output)?;
    }
    out.flush()?;
    if !omissions.is_none() {
        note(&format!("iptables cannot express {}", said(omissions)));
    }
    if let [first, ..] = &*back.others {
        note(&match back.others.len() {
            1 => format!("iptables does not know the table {}", Printable(first)),
            many => format!(
                "iptables does not know {many} tables, the first of them {}",
                Printable(first)
            ),
        });
    }
    Ok(match omissions.is_none() && back.others.is_empty() {
        true => Exit::Done,
        false => Exit::Absent,
    })
}
