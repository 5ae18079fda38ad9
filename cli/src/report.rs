//! `chainwright report`: a page about a ruleset.

mod html;
mod page;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chainwright_record::Archive;
use chainwright_trace::{Node, Packet, Trace};

use crate::check;
use crate::explain::chain::Explainer;
use crate::output::{Error, Exit, Output, causes, note};
use crate::packet::{PacketOptions, node, parse};
use crate::recorded::{describe, failed, last, local};
use crate::scope::{Found, Scope};
use crate::show::summary;
use crate::trace_output::{Ruleset, options};

/// Write a page about a ruleset
///
/// Writes one HTML file that needs no other: the graph of chains, the tables and chains with their rules in English and in
/// their own language, with counters and probable owners, the problems that `check` finds, recorded transactions, and
/// the paths of example packets. A browser shows it without a network; it has a light and a dark form, and can be
/// printed. Services of Kubernetes are folded.
///
/// The page of a large ruleset omits some parts, and lists them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to write; standard output if it is `-`
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Add the path of this packet, in one argument: 'tcp 10.0.0.5 10.96.0.1:443', in every direction that its addresses
    /// allow; may be given more than once
    #[arg(long, value_name = "PACKET")]
    trace: Vec<String>,

    /// Add the last transactions of the recorder in this directory
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    /// Read this file instead of the kernel's tables: a snapshot, output of iptables-save, or a ruleset in nft's
    /// language; standard input if it is `-`
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    scope: Scope,
}

/// Number of recorded transactions on the page.
const TRANSACTIONS: usize = 50;

/// The contents of the page.
struct Contents<'r> {
    /// The file, or the machine.
    source: String,
    made: String,
    explainer: Explainer<'r>,
    findings: Vec<check::Record>,
    /// Parts of the ruleset that could not be read.
    not_read: Vec<String>,
    traces: Vec<(Packet, Trace)>,
    not_traced: Vec<String>,
    /// Times, generations and descriptions; `None` without a record.
    transactions: Option<Vec<(String, String, String)>>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    if json {
        return Err(Error::Other(
            "report writes HTML: --json cannot be used".into(),
        ));
    }
    args.scope.check()?;
    let mut found = Found::default();
    let (ruleset, machine) = match &args.file {
        Some(file) => (Ruleset::of_file(file, &args.scope)?, Node::default()),
        None => (Ruleset::of_kernel(&args.scope, &mut found)?, node()),
    };
    let input = check::Input::of_ruleset(ruleset.snapshot.clone(), &ruleset.legacy);
    let rules = ruleset.rules();
    let mut traces = Vec::new();
    for words in &args.trace {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let more = PacketOptions::default();
        let packet = parse(&words, &more, &machine)?;
        for direction in more.directions(&packet, &machine) {
            let mut packet = packet.clone();
            packet.direction = *direction;
            let trace = rules.trace(&packet, &machine, &options(false));
            traces.push((packet, trace));
        }
    }
    let mut not_read = found.notes.clone();
    let transactions = match args.record.as_deref().map(transactions).transpose()? {
        Some((rows, is_whole)) => {
            if !is_whole {
                not_read.push("some entries of the record cannot be read".to_owned());
            }
            Some(rows)
        }
        None => None,
    };
    let is_partial = found.is_partial() || not_read.len() > found.notes.len();
    let contents = Contents {
        source: match &args.file {
            Some(file) => file.to_string_lossy().into_owned(),
            None => host(),
        },
        made: local(SystemTime::now()),
        explainer: Explainer::new(&ruleset),
        findings: input.findings(&args.scope, &[]),
        not_read,
        traces,
        not_traced: rules.not_traced().to_vec(),
        transactions,
    };
    let page = page::written(&contents);
    if args.output.as_os_str() == "-" {
        let mut out = Output::new();
        write!(out, "{page}")?;
        out.flush()?;
    } else {
        fs::write(&args.output, page).map_err(|error| {
            let file = args.output.to_string_lossy();
            Error::Other(format!("cannot write {file}: {}", causes(&error)))
        })?;
    }
    for text in &contents.not_read {
        note(text);
    }
    Ok(match is_partial {
        true => Exit::Failed,
        false => Exit::Done,
    })
}

/// Returns the name of the machine.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "this machine".to_owned(),
        name => name.to_owned(),
    }
}

/// Time, generation and description of a recorded entry.
type Transaction = (String, String, String);

/// Returns the last recorded entries, newest first, and whether all could be read.
fn transactions(directory: &Path) -> Result<(Vec<Transaction>, bool), Error> {
    let archive = Archive::open(directory).map_err(failed)?;
    let (last, is_whole) = last(&archive, TRANSACTIONS, &|entry| Some(summary(entry)));
    let rows = last.into_iter().rev().map(|(entry, summary)| {
        let generation = entry.generation().map(|generation| generation.to_string());
        (
            local(entry.time()),
            generation.unwrap_or_default(),
            describe(&entry, &summary),
        )
    });
    Ok((rows.collect(), is_whole))
}
