//! `chainwright diff`: what differs between a file and the ruleset, or between two files.

use std::path::PathBuf;

use anstyle::AnsiColor;
use chainwright::nft::{
    ChainRef, Connection, Diff, DiffOptions, ElementRef, FlowtableRef, RuleRef, SetRef, Snapshot,
    SnapshotSet, SnapshotTable, StatefulObjectRef, TableRef, Words,
};
use serde::Serialize;

use crate::behavior_diff;
use crate::output::{Error, Exit, Output, Printable};
use crate::rules;
use crate::scope::Scope;

/// Show what changed since a backup, or between two
///
/// One line an object: `-` and what it was, `+` and what it is; rules and elements as `rules` and
/// `sets` show them, of a range each end by itself; anything else as nft writes it between braces. JSON has rules that
/// iptables has no words for as bytecode. The second file stands for the new ruleset; if
/// there is none, it is what the kernel has now, as far as the first file covers it. The exit code is 1 if
/// anything differs.
///
/// Not compared is what the kernel assigns: handles, numbers of references, positions of rules, owners of
/// tables, the time that is left of timeouts.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file that `backup` wrote
    #[arg(value_name = "FILE")]
    old: PathBuf,

    /// A later one, instead of what the kernel has now
    #[arg(value_name = "FILE")]
    new: Option<PathBuf>,

    /// Compare counters, quotas and times of last use, too
    #[arg(long)]
    counters: bool,

    /// Show what iptables has no words for as bytecode, one pair of brackets an expression, instead of in nft's words
    #[arg(long)]
    bytecode: bool,

    /// Instead of what differs, show packets that are treated differently: their values are those that the rules name.
    /// The files may be texts of iptables-save or in nft's language, too
    #[arg(long, conflicts_with_all = ["counters", "bytecode"])]
    packets: bool,

    /// Try so many packets at most
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 5000,
        value_parser = clap::value_parser!(u32).range(1..),
        requires = "packets"
    )]
    tries: u32,

    #[command(flatten)]
    scope: Scope,
}

/// As `rules` and `sets` show them.
struct AsListed<'o> {
    sets: rules::Sets,
    /// nft's, unless it is to be bytecode.
    words: Option<chainwright_lang::Words<'o>>,
}

impl AsListed<'_> {
    fn say<'s>(
        &'s self,
        say: impl FnOnce(&'s chainwright_lang::Words<'_>) -> Option<String>,
    ) -> Option<String> {
        self.words.as_ref().and_then(say)
    }
}

impl Words for AsListed<'_> {
    fn whole_rule(&self, table: &SnapshotTable<'_>, rule: &RuleRef<'_>) -> Option<String> {
        rules::options(rule, &self.sets).or_else(|| self.say(|words| words.whole_rule(table, rule)))
    }

    fn table(&self, table: &TableRef<'_>) -> Option<String> {
        self.say(|words| words.table(table))
    }

    fn chain(&self, chain: &ChainRef<'_>) -> Option<String> {
        self.say(|words| words.chain(chain))
    }

    fn set(&self, set: &SnapshotSet<'_>) -> Option<String> {
        self.say(|words| words.set(set))
    }

    fn object(&self, object: &StatefulObjectRef<'_>) -> Option<String> {
        self.say(|words| words.object(object))
    }

    fn flowtable(&self, flowtable: &FlowtableRef<'_>) -> Option<String> {
        self.say(|words| words.flowtable(flowtable))
    }

    fn element(&self, set: &SetRef<'_>, element: &ElementRef<'_>) -> Option<String> {
        Some(chainwright_lang::element(set, element))
    }
}

/// What differs, in the words of `rules` and `sets`, or as bytecode where these are nft's.
pub(crate) fn between(
    old: &Snapshot,
    new: &Snapshot,
    options: DiffOptions,
    bytecode: bool,
) -> Result<Diff, Error> {
    let words = chainwright_lang::Options::here();
    let words = AsListed {
        sets: rules::sets(),
        words: (!bytecode).then(|| chainwright_lang::Words::new(&words)),
    };
    Ok(old.diff_in_words(new, options, &words)?)
}

/// All that `--json` writes.
#[derive(Serialize)]
struct Document<'d> {
    changes: &'d Diff,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    if args.packets {
        return behavior_diff::run(
            &args.old,
            args.new.as_deref(),
            usize::try_from(args.tries).unwrap_or(usize::MAX),
            &args.scope,
            json,
        );
    }
    let Some(old) = args.scope.load(&args.old)? else {
        return Ok(Exit::Absent);
    };
    let new = match &args.new {
        Some(path) => match args.scope.load(path)? {
            Some(new) => new,
            None => return Ok(Exit::Absent),
        },
        None => Connection::open_to_look()?.snapshot(old.scope().clone())?,
    };
    let mut options = DiffOptions::default();
    options.counters = args.counters;
    // What programs are given stays what it is.
    let diff = between(&old, &new, options, args.bytecode || json)?;
    let mut out = Output::new();
    if json {
        out.json("diff", &Document { changes: &diff })?;
    } else {
        people(&mut out, &diff)?;
    }
    out.flush()?;
    Ok(if diff.is_empty() {
        Exit::Done
    } else {
        Exit::Absent
    })
}

/// Each change in one line, or two.
pub(crate) fn people(out: &mut Output, diff: &Diff) -> Result<(), Error> {
    for change in &diff.changes {
        let path = Printable(&change.path);
        for (sign, color, text) in [
            ('-', AnsiColor::Red, &change.old),
            ('+', AnsiColor::Green, &change.new),
        ] {
            let Some(text) = text else {
                continue;
            };
            let (color, kind) = (out.color(color), change.kind);
            match text.is_empty() {
                true => writeln!(out, "{color}{sign} {kind} {path}{color:#}")?,
                false => {
                    let text = Printable(text);
                    writeln!(out, "{color}{sign} {kind} {path}: {text}{color:#}")?;
                }
            }
        }
    }
    Ok(())
}
