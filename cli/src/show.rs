//! `chainwright show`: a recorded transaction as rules.

use chainwright::nft::{Diff, DiffOptions};
use chainwright_record::{Archive, Entry, Moment};
use serde::Serialize;

use crate::diff;
use crate::output::{Error, Exit, Output, note};
use crate::recorded::{Directory, EntryRecord, Summary, failed, moment, print_line, print_process};

/// Show a recorded transaction: what it changed, and the process that made it
///
/// Prints the changes like `diff`: `-` marks what it deleted, `+` what it added. For a moment without a transaction it
/// shows the last one before. For a gap, it shows the changes between the last ruleset before it and the first one
/// after it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A generation, or a moment: @10:32, @10:32:05, @-10m, @now, @yesterday (24 hours ago), @2026-11-28T10:32, @gen:77
    #[arg(value_name = "GENERATION|@TIME", value_parser = number_or_moment, allow_hyphen_values = true)]
    moment: Moment,

    /// Show rules that iptables cannot express as bytecode, one pair of brackets per expression, instead of in nft's
    /// syntax
    #[arg(long)]
    bytecode: bool,

    #[command(flatten)]
    directory: Directory,
}

fn number_or_moment(text: &str) -> Result<Moment, String> {
    match text.parse() {
        Ok(number) => Ok(Moment::Generation(number)),
        Err(_) => moment(text),
    }
}

/// The JSON document.
#[derive(Serialize)]
struct Document<'d> {
    #[serde(flatten)]
    entry: EntryRecord,
    exact: bool,
    changes: &'d Diff,
}

/// Returns the entry with this number, or the last one before that is more than the start of a file.
pub(crate) fn entry_at(archive: &Archive, mut sequence: u64) -> Result<Option<Entry>, Error> {
    loop {
        if let Some(entry) = archive.entry(sequence).map_err(failed)? {
            return Ok(Some(entry));
        }
        let first = archive
            .segments()
            .first()
            .map_or(0, |segment| segment.sequence());
        if sequence <= first {
            return Ok(None);
        }
        sequence -= 1;
    }
}

/// Returns the summary of an entry.
pub(crate) fn summary(entry: &Entry) -> Summary {
    match entry {
        Entry::Transaction(transaction) => Summary::of(transaction.change.events()),
        _ => Summary::default(),
    }
}

/// Returns what an entry changed, and whether that is exact; `None` for the first ruleset.
fn changes(
    archive: &Archive,
    entry: &Entry,
    bytecode: bool,
) -> Result<Option<(Diff, bool)>, Error> {
    let Some(sequence) = entry.sequence() else {
        return Ok(None);
    };
    let (before, after) = archive.states_around(sequence).map_err(failed)?;
    let Some(before) = before else {
        return Ok(None);
    };
    let diff = diff::between(
        &before.snapshot,
        &after.snapshot,
        DiffOptions::default(),
        bytecode,
    )?;
    // A gap is what the states before and after it differ in.
    let is_exact = before.is_exact && after.is_exact;
    Ok(Some((diff, is_exact || matches!(entry, Entry::Start(_)))))
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let archive = args.directory.open()?;
    let sequence = archive.locate(args.moment).map_err(failed)?;
    let Some(entry) = entry_at(&archive, sequence)? else {
        note("the first ruleset of the record: nothing is known about what was before");
        return Ok(Exit::Absent);
    };
    let summary = summary(&entry);
    let changes = changes(&archive, &entry, args.bytecode || json)?;
    let (diff, is_exact) = changes.unwrap_or((Diff::default(), true));
    let mut out = Output::new();
    if json {
        let document = Document {
            entry: EntryRecord::of(&entry, &summary),
            exact: is_exact,
            changes: &diff,
        };
        out.json("show", &document)?;
    } else {
        print_line(&mut out, &entry, &summary)?;
        if let Entry::Transaction(transaction) = &entry {
            print_process(&mut out, &transaction.process)?;
        }
        diff::print_text(&mut out, &diff)?;
    }
    out.flush()?;
    if !is_exact && !json {
        note(
            "the order of some rules is uncertain: several transactions followed each other too fast",
        );
    }
    Ok(Exit::Done)
}
