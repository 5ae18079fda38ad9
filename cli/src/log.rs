//! `chainwright log`: recorded transactions, one per line.

use std::time::SystemTime;

use chainwright::nft::Family;
use chainwright::nft::live::Event;
use chainwright_record::{Archive, Entry};
use clap_complete::engine::ArgValueCompleter;

use crate::completions;
use crate::glob::Glob;
use crate::output::{Error, Exit, Output, Rows, note};
use crate::recorded::{Directory, EntryRecord, Summary, failed, last, print_line, time};
use crate::scope::{Scope, admits};

/// Show recorded transactions, one per line
///
/// Each line has the time, the generation, what was added and deleted, and the process that did it; the newest comes
/// last. "Added" also means a change of an existing object, such as a chain's policy. Gaps in the record have lines of
/// its own. Reads what `record` has written. The exit code is 1 if nothing matches.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only transactions that changed this chain or set, or its rules or elements; * and ? are wildcards
    #[arg(value_name = "CHAIN", add = ArgValueCompleter::new(completions::chains))]
    chain: Option<Glob>,

    /// Only from this time on: 10:32, yesterday, -2h, 2026-11-28T10:32
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    since: Option<SystemTime>,

    /// Only until this time
    #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
    until: Option<SystemTime>,

    /// Only the last NUMBER
    #[arg(short, long, value_name = "NUMBER")]
    number: Option<usize>,

    #[command(flatten)]
    directory: Directory,

    #[command(flatten)]
    scope: Scope,
}

/// Rejects legacy tables, which are not recorded.
pub(crate) fn only_nft(scope: &Scope) -> Result<(), Error> {
    scope.place.only_nft(
        "only nf_tables is recorded: the kernel does not report changes of the legacy tables",
    )
}

/// Returns `true` if an event is about a selected table, chain or set.
pub(crate) fn is_selected(event: &Event<'_>, scope: &Scope, chain: Option<&Glob>) -> bool {
    let family = scope.filter().family;
    let is_in_table = !scope.is_filtered()
        || ((family == Family::UNSPEC || family == event.family())
            && event.table().is_some_and(|name| scope.admits_table(name)));
    is_in_table
        && (chain.is_none()
            || event
                .chain()
                .or(event.set())
                .is_some_and(|name| admits(chain, name)))
}

impl Args {
    /// Returns the summary of an entry, if it is selected.
    fn select(&self, entry: &Entry) -> Option<Summary> {
        if self.since.is_some_and(|since| entry.time() < since)
            || self.until.is_some_and(|until| entry.time() > until)
        {
            return None;
        }
        let Entry::Transaction(transaction) = entry else {
            return Some(Summary::default());
        };
        let events = transaction.change.events();
        let selected = events.filter(|event| is_selected(event, &self.scope, self.chain.as_ref()));
        let summary = Summary::of(selected);
        (!summary.is_empty() || !self.is_filtered()).then_some(summary)
    }

    fn is_filtered(&self) -> bool {
        self.scope.is_filtered() || self.chain.is_some()
    }

    /// Calls `found` with the selected entries in order, until it returns `false`.
    fn each(
        &self,
        archive: &Archive,
        found: &mut dyn FnMut(Entry, Summary) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let mut is_whole = true;
        let entries = match self.since {
            Some(since) => archive.entries_since(since).map_err(failed)?,
            None => archive.entries(),
        };
        for entry in entries {
            match entry {
                Ok(entry) => {
                    if self.until.is_some_and(|until| entry.time() > until) {
                        break;
                    }
                    if let Some(summary) = self.select(&entry)
                        && !found(entry, summary)?
                    {
                        break;
                    }
                }
                Err(error) => {
                    failed(error).report();
                    is_whole = false;
                }
            }
        }
        Ok(is_whole)
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    only_nft(&args.scope)?;
    let archive = args.directory.open()?;
    let mut out = Output::new();
    let mut rows = Rows::new("log", "entries");
    let mut any = false;
    let mut print = |entry: Entry, summary: Summary| -> Result<bool, Error> {
        // Gaps concern every selection, but match none.
        any |= !args.is_filtered() || matches!(entry, Entry::Transaction(_));
        match json {
            true => rows.add(&mut out, &EntryRecord::of(&entry, &summary))?,
            false => print_line(&mut out, &entry, &summary)?,
        }
        Ok(out.has_reader())
    };
    let is_whole = match args.number {
        None => args.each(&archive, &mut print)?,
        Some(number) => {
            let (last, is_whole) = last(&archive, number, &|entry| args.select(entry));
            for (entry, summary) in last {
                print(entry, summary)?;
            }
            is_whole
        }
    };
    if json {
        rows.end(&mut out, true, None::<(&str, ())>)?;
    }
    out.flush()?;
    Ok(match (is_whole, any) {
        (false, _) => Exit::Failed,
        (true, true) => Exit::Done,
        (true, false) => {
            if !json {
                note("no matching transaction was recorded");
            }
            Exit::Absent
        }
    })
}
