//! `chainwright translate`: iptables' text in nft's language.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use chainwright::iptables::Family;
use chainwright::iptables::text::{self, Command, Verb};
use chainwright::iptables::translate::{NotSaid, Translation, name};
use serde::Serialize;

use crate::output::{Error, Exit, Output, Printable, note};

/// Say iptables' rules in nft's language
///
/// Takes the text of `save` or iptables-save, or one rule, and prints what it is in nft's language: what `apply` and
/// `nft -f` take. Nothing is asked of the kernel, and nothing changed there.
///
/// A rule is said whole or not at all, by nf_tables' own expressions. One that only an extension of x_tables can say is a
/// comment in its place; standard error says how many these are, and the exit code is 1: without them the rules may let
/// through what they did not, or keep out what they let through.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// This rule, as it is typed behind `iptables`: '-t nat -A POSTROUTING -j MASQUERADE'; or only its options
    #[arg(
        long,
        value_name = "RULE",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    rule: Option<String>,

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
    let translation = match &args.rule {
        Some(rule) => one(family, rule)?,
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

/// A text.
fn whole(args: &Args, family: Family) -> Result<Translation, Error> {
    let file = args.file.as_deref().filter(|file| *file != Path::new("-"));
    let name = file.map_or(Cow::Borrowed("<stdin>"), |file| file.to_string_lossy());
    let text = match file {
        Some(file) => File::open(file).and_then(text::read),
        None => text::read(io::stdin().lock()),
    }
    .map_err(|error| Error::Other(format!("cannot read {}: {error}", Printable(&name))))?;
    Translation::of(family, text).map_err(|wrong| {
        let (name, error) = (Printable(&name), Printable(&wrong.error));
        Error::Other(format!("{name}:{}: {error}", wrong.line))
    })
}

/// A rule as it is typed.
fn one(family: Family, typed: &str) -> Result<Translation, Error> {
    let wrong = |error: text::ParseError| Error::Other(error.to_string());
    let mut found = Vec::new();
    text::words(typed.as_bytes(), &mut found).map_err(wrong)?;
    let mut table = "filter".to_owned();
    let is_table = |word: &text::Word<'_>| matches!(&*word.bytes, b"-t" | b"--table");
    if let Some(at) = found.iter().position(is_table)
        && at + 1 < found.len()
    {
        table = found[at + 1].bytes.to_str_lossy().into_owned();
        found.drain(at..at + 2);
    }
    let is_verb =
        |word: &text::Word<'_>| matches!(&*word.bytes, b"-A" | b"--append" | b"-I" | b"--insert");
    let has_verb = found.iter().any(is_verb);
    if !has_verb {
        let mut all = Vec::new();
        text::words(b"-A c", &mut all).map_err(wrong)?;
        all.append(&mut found);
        found = all;
    }
    let command = Command::parse(family, &found, |_| false).map_err(wrong)?;
    let word = match family {
        Family::Ipv4 => "ip",
        Family::Ipv6 => "ip6",
    };
    let chain = command.chain.clone().unwrap_or_default();
    let nfts = |of: &[u8]| name(of.as_bstr()).map_err(|why| Error::Other(why.to_string()));
    let (table, chain) = (nfts(table.as_bytes())?, nfts(&chain)?);
    let head = match (&command.verb, has_verb) {
        (_, false) => String::new(),
        (Verb::Append, _) => format!("add rule {word} {table} {chain} "),
        (Verb::Insert(1), _) => format!("insert rule {word} {table} {chain} "),
        _ => {
            let why = "only -A, and -I without a number, say one rule by itself";
            return Err(Error::Other(why.into()));
        }
    };
    let mut translation = Translation::default();
    for rule in command.spec.rules() {
        match rule.to_nft(family) {
            Ok(said) => {
                translation.text += &format!("{head}{said}\n");
                translation.rules += 1;
            }
            Err(why) => {
                translation.text += &format!("# {rule}: {why}\n");
                let (text, why) = (rule.to_string(), why.to_string());
                translation.not_said.push(NotSaid::new(1, text, why));
            }
        }
    }
    Ok(translation)
}
