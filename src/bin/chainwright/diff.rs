//! `chainwright diff`: what differs between a file and the ruleset, or between two files.

use std::path::PathBuf;

use anstyle::AnsiColor;
use chainwright::nft::{Connection, Diff, DiffOptions, ElementRef, RuleRef, SetRef, Words};
use chainwright::text;
use serde::Serialize;

use crate::output::{Error, Exit, Output, Printable};
use crate::rules;
use crate::scope::Scope;

/// Show what changed since a backup, or between two
///
/// One line an object: `-` and what it was, `+` and what it is; rules and elements as `rules` and
/// `sets` show them, of a range each end by itself. The second file stands for the new ruleset; if
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

    #[command(flatten)]
    scope: Scope,
}

/// As `rules` and `sets` show them.
struct AsListed(rules::Sets);

impl Words for AsListed {
    fn rule(&self, rule: &RuleRef<'_>) -> Option<String> {
        rules::options(rule, &self.0)
    }

    fn element(&self, set: &SetRef<'_>, element: &ElementRef<'_>) -> Option<String> {
        Some(text::element(set, element))
    }
}

/// All that `--json` writes.
#[derive(Serialize)]
struct Document<'d> {
    changes: &'d Diff,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
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
    let sets = rules::sets();
    let diff = old.diff_in_words(&new, options, &AsListed(sets))?;
    let mut out = Output::new();
    if json {
        out.json("diff", &Document { changes: &diff })?;
    } else {
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
    }
    out.flush()?;
    Ok(if diff.is_empty() {
        Exit::Done
    } else {
        Exit::Absent
    })
}
