//! `chainwright why`: whose rules stop a packet.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use bstr::BString;
use chainwright::iptables::Backend;
use chainwright_trace::{End, Node, Outcome, Step, Verdict, Walk, owner};
use serde::Serialize;

use crate::output::{Error, Exit, Output, note};
use crate::packet::{More, node, parse, said};
use crate::scope::{Found, NotLookedAt, Scope};
use crate::trace_output::{Ruleset, lines, options, percent, place, reason, say_not_walked};

/// Show whose rules stop a packet, although others let it through
///
/// Walks a packet through all rules, as `trace` does, and says which rule or policy of which table stops it, who owns
/// that (guessed by the names of tables and chains: kube-proxy, Calico, Cilium, Docker, firewalld, ufw, …), and who let it
/// through before. To accept a packet ends a chain's look at it and no other's: whoever drops it in another table has the
/// last word.
///
/// With --table only what tables of this name say counts; all the others are walked through nevertheless.
///
/// Exit codes: 0 something stops it, 1 nothing does, 2 nothing does as far as can be said, but there are ways of which it
/// cannot be said.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The packet: its protocol, where from and where to, as `trace` takes it
    #[arg(value_name = "PACKET", required = true, num_args = 3)]
    packet: Vec<String>,

    /// In the rules of this file instead of the kernel's: a backup, a text of iptables-save, or one in nft's language
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    more: More,

    #[command(flatten)]
    scope: Scope,
}

/// All that `--json` writes.
#[derive(Serialize)]
struct Document<'d> {
    packet: String,
    stopped: Vec<Stop>,
    unknown: &'d [&'d str],
    not_walked: &'d [String],
    not_looked_at: &'d [NotLookedAt],
}

/// How a packet is stopped.
#[derive(Serialize)]
struct Stop {
    probability: f64,
    outcome: String,
    assumptions: Vec<String>,
    by: Said,
    accepted_by: Vec<Said>,
    #[serde(skip)]
    reason: String,
}

/// What a table said.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Said {
    backend: &'static str,
    family: &'static str,
    table: String,
    chain: String,
    hook: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'static str>,
    #[serde(skip)]
    place: String,
}

impl Said {
    fn of(step: &Step, base: &BString) -> Self {
        // A rule in everybody's chain says nothing of its owner; that of a chain that it came from may.
        let owner = owner(&step.table, &step.chain).or_else(|| owner(&step.table, base));
        Self {
            backend: match step.backend {
                Backend::Nft => "nft",
                Backend::Legacy => "legacy",
            },
            family: step.family,
            table: step.table.to_string(),
            chain: step.chain.to_string(),
            hook: step.hook.to_string(),
            rule: step.rule.map(|rule| rule.number),
            owner,
            place: place(step),
        }
    }

    fn owned(&self) -> String {
        match self.owner {
            Some(owner) => format!("{} ({owner})", self.place),
            None => self.place.clone(),
        }
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.check()?;
    let mut found = Found::default();
    // All tables have a say, whichever was asked for.
    let all = args.scope.of_all_tables();
    let (ruleset, node) = match &args.file {
        Some(file) => (Ruleset::of_file(file, &all)?, Node::default()),
        None => (Ruleset::of_kernel(&all, &mut found)?, node()),
    };
    for said in &found.notes {
        note(said);
    }
    let packet = parse(&args.packet, &args.more, &node)?;
    let rules = ruleset.rules();
    let walk = rules.walk(&packet, &node, &options(false));
    let stopped = stops(&walk, &ruleset, &args.scope);
    let unknown = unknown(&walk);
    let mut out = Output::new();
    let exit = match (found.is_partial(), stopped.is_empty(), unknown.is_empty()) {
        (true, ..) | (false, true, false) => Exit::Failed,
        (false, false, _) => Exit::Done,
        (false, true, true) => Exit::Absent,
    };
    if json {
        let document = Document {
            packet: said(&packet),
            stopped,
            unknown: &unknown,
            not_walked: rules.not_walked(),
            not_looked_at: &found.not_looked_at,
        };
        out.json("why", &document)?;
    } else {
        writeln!(out, "{}", said(&packet))?;
        people(&mut out, &unknown, &stopped)?;
    }
    out.flush()?;
    say_not_walked(&rules, None);
    Ok(exit)
}

/// Why it cannot be said of some ends whether the packet is stopped, each reason once.
fn unknown(walk: &Walk) -> Vec<&str> {
    let reasons = walk.ends.iter().filter_map(|end| match &end.outcome {
        Outcome::Unknown(why) | Outcome::NotFollowed(why) => Some(why.as_str()),
        _ => None,
    });
    let mut met = BTreeSet::new();
    reasons.filter(|why| met.insert(*why)).collect()
}

/// The ends at which a table that was asked for stops the packet: those for which the same rule does together.
fn stops(walk: &Walk, ruleset: &Ruleset, scope: &Scope) -> Vec<Stop> {
    let mut stopped: Vec<Stop> = Vec::new();
    let mut known: BTreeMap<(String, Vec<String>), usize> = BTreeMap::new();
    for end in &walk.ends {
        let stops = matches!(end.outcome, Outcome::Dropped | Outcome::Rejected(_));
        let Some(last) = end.steps.last().filter(|_| stops) else {
            continue;
        };
        if !scope.admits_table(&last.table) {
            continue;
        }
        let by = Said::of(last, base(end, end.steps.len() - 1));
        let key = (by.place.clone(), end.assumptions.clone());
        if let Some(place) = known.get(&key) {
            stopped[*place].probability += end.probability;
            continue;
        }
        known.insert(key, stopped.len());
        stopped.push(Stop {
            probability: end.probability,
            outcome: end.outcome.to_string(),
            assumptions: end.assumptions.clone(),
            reason: reason(ruleset, end).unwrap_or_default(),
            accepted_by: accepted(end, &by),
            by,
        });
    }
    stopped
}

/// The base chain that a step was reached from.
fn base(end: &End, at: usize) -> &BString {
    let step = &end.steps[at];
    let of_same = |other: &&Step| {
        (other.hook, other.priority, &other.table, other.backend)
            == (step.hook, step.priority, &step.table, step.backend)
    };
    // The first step of a base chain is in itself.
    let first = end.steps[..=at].iter().rev().take_while(of_same).last();
    first.map_or(&step.chain, |first| &first.chain)
}

/// Who else accepted the packet before: other tables, each once.
fn accepted(end: &End, by: &Said) -> Vec<Said> {
    let mut accepted: Vec<Said> = Vec::new();
    for (at, step) in end.steps.iter().enumerate() {
        let mut said = Said::of(step, base(end, at));
        let other = (said.backend, said.family, &said.table) != (by.backend, by.family, &by.table);
        // That translations and the like accept is no consent.
        let decides = step.rule.is_some() && said.table != "nat";
        if step.verdict == Verdict::Accept && other && decides {
            said.owner = said.owner.or_else(|| owner(&step.table, &step.chain));
            if !accepted.contains(&said) {
                accepted.push(said);
            }
        }
    }
    accepted
}

fn people(out: &mut Output, unknown: &[&str], stopped: &[Stop]) -> Result<(), Error> {
    for stop in stopped {
        let percent = percent(stop.probability);
        match stop.assumptions.is_empty() {
            true => writeln!(out, "{percent:>9}  {}", stop.outcome)?,
            false => {
                lines(out, "  ", &format!("if {}:", stop.assumptions.join(", ")))?;
                writeln!(out, "{percent:>9}  {}", stop.outcome)?;
            }
        }
        lines(
            out,
            "             ",
            &format!("by {} in {}", stop.reason, stop.by.hook),
        )?;
        let owner = stop.by.owner.unwrap_or("not known by its names");
        writeln!(out, "             owner: {owner}")?;
        for said in &stop.accepted_by {
            let words = format!("although {} accepts it in {}", said.owned(), said.hook);
            lines(out, "             ", &words)?;
        }
    }
    if stopped.is_empty() {
        writeln!(out, "  Nothing that was asked about stops it.")?;
    }
    for why in unknown {
        lines(out, "  ", &format!("It cannot be said everywhere: {why}."))?;
    }
    Ok(())
}
