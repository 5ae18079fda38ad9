//! `chainwright bisect`: finds the recorded transaction that changed the outcome of a packet.

use chainwright::nft::Snapshot;
use chainwright_record::{Archive, Entry, Moment, Player};
use chainwright_trace::{Node, Packet, Rules};
use serde::Serialize;

use crate::expected::{Expected, Verdict};
use crate::output::{Error, Exit, Output, Printable, note};
use crate::packet::{PacketOptions, format_packet, node, parse};
use crate::progress::Progress;
use crate::recorded::{Directory, EntryRecord, failed, moment, print_line};
use crate::show::summary;
use crate::trace_output::{options, outcome};

/// Find the recorded transaction that changed the outcome of a packet
///
/// Traces a packet in the recorded rulesets, like `trace`, and prints each transaction that changes the
/// outcome:
///
/// chainwright bisect "tcp 192.0.2.1 10.0.0.5:80 is accepted"
///
/// The outcomes: `accepted` (delivered, forwarded or sent), `dropped` (also rejected), `dnat to ADDRESS[:PORT]`.
///
/// It tries every ruleset. If there are more than 500, it tries some at equal distances, and then bisects between two
/// with different outcomes, and reports that; --all tries every one. It uses the machine's current addresses.
/// The exit code is 1 if the outcome never changes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A packet, `is`, and an outcome
    #[arg(value_name = "PACKET is OUTCOME", required = true, num_args = 1..)]
    query: Vec<String>,

    /// Only rulesets from this moment on: @10:32, @yesterday, @-10m, @2026-11-28T10:32, @gen:77
    #[arg(long, value_name = "@TIME", value_parser = moment, allow_hyphen_values = true)]
    since: Option<Moment>,

    /// Only rulesets until this moment
    #[arg(long, value_name = "@TIME", value_parser = moment, default_value = "@now", allow_hyphen_values = true)]
    until: Moment,

    /// Try every ruleset
    #[arg(long)]
    all: bool,

    /// Use the elements of sets that rules fill as they were recorded; by default, any packet may or may not be in such
    /// a set
    #[arg(long)]
    as_is: bool,

    #[command(flatten)]
    directory: Directory,

    #[command(flatten)]
    more: PacketOptions,
}

/// Number of rulesets up to which every one is tried.
const MAX_TRIED: usize = 500;
/// Number of rulesets in the first pass if there are more.
const SAMPLES: usize = 64;

/// A packet and an expected outcome.
struct Query {
    packet: Packet,
    expected: Expected,
    node: Node,
    as_is: bool,
}

impl Query {
    fn parse(args: &Args) -> Result<Self, Error> {
        let text = args.query.join(" ");
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some((packet, ["is", outcome @ ..])) = words.split_at_checked(3) else {
            return Err(Error::Other(format!(
                "{text:?} is not a query: expected for instance \"tcp 192.0.2.1 10.0.0.5:80 is accepted\""
            )));
        };
        let packet: Vec<String> = packet.iter().map(ToString::to_string).collect();
        let node = node();
        let packet = parse(&packet, &args.more, &node)?;
        args.more.note_assumed_direction(&packet, &node);
        Ok(Self {
            packet,
            expected: Expected::parse(outcome).map_err(Error::Other)?,
            node,
            as_is: args.as_is,
        })
    }

    /// Traces the packet in a ruleset. Returns the result and its description.
    fn trace(&self, snapshot: &Snapshot) -> TraceResult {
        let rules = Rules::new().with_nft(snapshot);
        let trace = rules.trace(&self.packet, &self.node, &options(self.as_is));
        let mut outcomes: Vec<String> = Vec::new();
        for end in trace.ends.iter().filter(|end| end.probability > 0.0) {
            let words = outcome(&self.packet, end);
            if !outcomes.contains(&words) {
                outcomes.push(words);
            }
        }
        TraceResult {
            verdict: self.expected.verdict(&trace),
            words: outcomes.join(", or "),
        }
    }
}

#[derive(Debug, Clone)]
struct TraceResult {
    verdict: Verdict,
    words: String,
}

/// Index of a ruleset whose result differs from that of the previous one.
struct Step {
    index: usize,
    before: TraceResult,
    after: TraceResult,
}

/// A transaction that changes the result.
struct OutcomeChange {
    before: TraceResult,
    after: TraceResult,
    entry: Entry,
}

/// The JSON document.
#[derive(Serialize)]
struct Document {
    packet: String,
    rulesets: usize,
    tried: usize,
    last: Verdict,
    outcome: String,
    changes: Vec<OutcomeChangeRecord>,
}

#[derive(Serialize)]
struct OutcomeChangeRecord {
    before: Verdict,
    outcome_before: String,
    after: Verdict,
    outcome_after: String,
    entry: EntryRecord,
}

/// The numbers of the entries after which there is a ruleset to try.
fn rulesets(archive: &Archive, args: &Args) -> Result<Vec<u64>, Error> {
    let first = match args.since {
        Some(since) => archive.locate(since).map_err(failed)?,
        None => archive.segments()[0].sequence(),
    };
    let last = archive.locate(args.until).map_err(failed)?;
    let mut numbers = vec![first];
    let following = archive
        .segments()
        .iter()
        .position(|segment| segment.sequence() > first);
    let from = following
        .unwrap_or(archive.segments().len())
        .saturating_sub(1);
    for segment in &archive.segments()[from..] {
        for entry in segment.entries() {
            let entry = entry.map_err(failed)?;
            // After a gap there is a ruleset only at the next start.
            if let (Some(number), false) = (entry.sequence(), matches!(entry, Entry::Gap(_)))
                && number > first
                && number <= last
            {
                numbers.push(number);
            }
        }
    }
    Ok(numbers)
}

struct Search<'a> {
    archive: &'a Archive,
    query: &'a Query,
    numbers: &'a [u64],
    tried: usize,
}

impl Search<'_> {
    fn player(&self, index: usize) -> Result<Player<'_>, Error> {
        let moment = Moment::Sequence(self.numbers[index]);
        self.archive.play(moment).map_err(failed)
    }

    /// Finds the rulesets, at this distance, whose result differs from that of the previous one.
    fn changes(&mut self, step: usize) -> Result<(TraceResult, Vec<Step>), Error> {
        let archive = self.archive;
        let moment = Moment::Sequence(self.numbers[0]);
        let mut player = archive.play(moment).map_err(failed)?;
        let mut last = (0, self.query.trace(player.snapshot()));
        self.tried = 1;
        let mut changes = Vec::new();
        for index in (1..self.numbers.len())
            .filter(|index| index.is_multiple_of(step) || *index == self.numbers.len() - 1)
        {
            while player.sequence() < self.numbers[index] {
                if player.advance().map_err(failed)?.is_none() {
                    break;
                }
            }
            let result = self.query.trace(player.snapshot());
            self.tried += 1;
            if result.verdict != last.1.verdict {
                changes.push(self.narrow(last.clone(), (index, result.clone()))?);
            }
            last = (index, result);
        }
        Ok((last.1, changes))
    }

    /// Halves the distance between two rulesets with different answers, until they are neighbors.
    fn narrow(
        &mut self,
        mut low: (usize, TraceResult),
        mut high: (usize, TraceResult),
    ) -> Result<Step, Error> {
        while high.0 - low.0 > 1 {
            let middle = low.0 + (high.0 - low.0) / 2;
            let result = self.query.trace(self.player(middle)?.snapshot());
            self.tried += 1;
            match result.verdict == high.1.verdict {
                true => high = (middle, result),
                false => low = (middle, result),
            }
        }
        Ok(Step {
            index: high.0,
            before: low.1,
            after: high.1,
        })
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    let query = Query::parse(args)?;
    let archive = args.directory.open()?;
    let progress = Progress::new("trying recorded rulesets");
    let numbers = rulesets(&archive, args)?;
    let step = match args.all || numbers.len() <= MAX_TRIED {
        true => 1,
        false => numbers.len() / SAMPLES,
    };
    let mut search = Search {
        archive: &archive,
        query: &query,
        numbers: &numbers,
        tried: 0,
    };
    let (last, found) = search.changes(step)?;
    let tried = search.tried;
    let mut changes = Vec::new();
    for step in found {
        let entry = archive.entry(numbers[step.index]).map_err(failed)?;
        changes.extend(entry.map(|entry| OutcomeChange {
            before: step.before,
            after: step.after,
            entry,
        }));
    }
    drop(progress);
    let mut out = Output::new();
    if json {
        let document = Document {
            packet: format_packet(&query.packet),
            rulesets: numbers.len(),
            tried,
            last: last.verdict,
            outcome: last.words,
            changes: changes.iter().map(OutcomeChangeRecord::of).collect(),
        };
        out.json("bisect", &document)?;
    } else {
        print(&mut out, &query, &changes, &last)?;
    }
    out.flush()?;
    if !json {
        if changes.len() > 1 {
            note(&format!("the outcome changed {} times", changes.len()));
        }
        if tried < numbers.len() {
            note(&format!(
                "tried {tried} of {} rulesets: there may be more changes in between; --all tries every one",
                numbers.len()
            ));
        }
    }
    Ok(match changes.is_empty() {
        true => Exit::Absent,
        false => Exit::Done,
    })
}

impl OutcomeChangeRecord {
    fn of(change: &OutcomeChange) -> Self {
        Self {
            before: change.before.verdict,
            outcome_before: change.before.words.clone(),
            after: change.after.verdict,
            outcome_after: change.after.words.clone(),
            entry: EntryRecord::of(&change.entry, &summary(&change.entry)),
        }
    }
}

fn print(
    out: &mut Output,
    query: &Query,
    changes: &[OutcomeChange],
    last: &TraceResult,
) -> Result<(), Error> {
    writeln!(out, "{}", Printable(&format_packet(&query.packet)))?;
    for change in changes {
        print_line(out, &change.entry, &summary(&change.entry))?;
        let (before, after) = (
            Printable(&change.before.words),
            Printable(&change.after.words),
        );
        writeln!(out, "  before: {before}")?;
        writeln!(out, "  after:  {after}")?;
    }
    if changes.is_empty() {
        writeln!(out, "always: {}", Printable(&last.words))?;
    }
    Ok(())
}
