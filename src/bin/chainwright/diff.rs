//! `chainwright diff`: what differs between a file and the ruleset, or between two files.

use std::path::PathBuf;

use chainwright::nft::{Connection, Diff, DiffOptions};
use serde::Serialize;

use crate::output::{Error, Exit, Output, Printable};
use crate::scope::Scope;

/// Say what differs between a file of `backup` and the ruleset, object by object
///
/// One line an object: `-` and what it was, `+` and what it is. The old one is the file, the new one
/// is what is there now of that which the file is a backup of, or a second file. The exit code is 1
/// if something differs.
///
/// Not compared is what the kernel gives by itself: handles, numbers of references, a rule's place in
/// numbers, a table's owner, how much of a timeout is left.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file
    #[arg(value_name = "FILE")]
    old: PathBuf,

    /// Another file, to be compared with it in the ruleset's place
    #[arg(value_name = "FILE")]
    new: Option<PathBuf>,

    /// Compare counters, quotas and the time of last use as well
    #[arg(long)]
    counters: bool,

    #[command(flatten)]
    scope: Scope,
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
    let diff = old.diff(&new, options);
    let mut out = Output::new();
    if json {
        out.json("diff", &Document { changes: &diff })?;
    } else {
        for change in &diff.changes {
            let path = Printable(&change.path);
            for (sign, text) in [('-', &change.old), ('+', &change.new)] {
                match text {
                    Some(text) if text.is_empty() => {
                        writeln!(out, "{sign} {} {path}", change.kind)?;
                    }
                    Some(text) => {
                        writeln!(out, "{sign} {} {path}: {}", change.kind, Printable(text))?;
                    }
                    None => {}
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
