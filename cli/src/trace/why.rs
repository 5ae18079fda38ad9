//! `chainwright trace --why`: names the rules that stop a packet.

use std::collections::{BTreeMap, BTreeSet};

use bstr::BString;
use chainwright::iptables::Backend;
use chainwright_trace::{Direction, End, Outcome, Packet, RuleVerdict, Step, Trace, owner};
use serde::Serialize;

use super::{Session, TracedPacket};
use crate::output::{Error, Exit, Output};
use crate::packet::format_packet;
use crate::scope::{Scope, UnreadPart};
use crate::trace_output::{
    Ruleset, lines, options, percent, print_untraced, reason, rule_location,
};

/// The JSON document.
#[derive(Serialize)]
struct Document<'d> {
    /// The first packet.
    packet: &'d str,
    packets: Vec<&'d str>,
    stopped: Vec<&'d Stop>,
    unknown: BTreeSet<&'d str>,
    not_traced: &'d [String],
    not_read: &'d [UnreadPart],
}

/// A packet in one direction, and the rules that stop it.
struct Record {
    packet: String,
    service: Option<String>,
    stopped: Vec<Stop>,
    unknown: Vec<String>,
}

/// The way in which a packet is stopped.
#[derive(Serialize)]
struct Stop {
    packet: String,
    direction: Direction,
    probability: f64,
    outcome: String,
    assumptions: Vec<String>,
    by: Decision,
    accepted_by: Vec<Decision>,
    #[serde(skip)]
    reason: String,
}

/// The decision of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Decision {
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

impl Decision {
    fn of(step: &Step, base: &BString) -> Self {
        // A rule in a shared chain has no known owner; the chain that jumped there may have one.
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
            place: rule_location(step),
        }
    }

    fn owned(&self) -> String {
        match self.owner {
            Some(owner) => format!("{} ({owner})", self.place),
            None => self.place.clone(),
        }
    }
}

impl Session<'_> {
    /// Prints the rules that stop packets.
    pub(super) fn print_stops(&self, packets: &[TracedPacket], json: bool) -> Result<Exit, Error> {
        let rules = self.ruleset.rules();
        let of_one = |one: &TracedPacket| {
            let trace = rules.trace(&one.packet, &self.node, &options(self.args.as_is));
            Record {
                packet: format_packet(&one.packet),
                service: one.service.clone(),
                stopped: stops(&one.packet, &trace, &self.ruleset, &self.args.scope),
                unknown: unknown(&trace),
            }
        };
        let records: Vec<Record> = packets.iter().map(of_one).collect();
        let is_stopped = records.iter().any(|one| !one.stopped.is_empty());
        let is_unknown = records.iter().any(|one| !one.unknown.is_empty());
        let mut out = Output::new();
        if json {
            let document = Document {
                packet: records.first().map_or("", |one| &one.packet),
                packets: records.iter().map(|one| one.packet.as_str()).collect(),
                stopped: records.iter().flat_map(|one| &one.stopped).collect(),
                unknown: records
                    .iter()
                    .flat_map(|one| &one.unknown)
                    .map(String::as_str)
                    .collect(),
                not_traced: rules.not_traced(),
                not_read: &self.found.not_read,
            };
            out.json("why", &document)?;
        } else {
            for record in &records {
                record.print_text(&mut out)?;
            }
        }
        out.flush()?;
        print_untraced(&rules, None);
        Ok(match (self.found.is_partial(), is_stopped, is_unknown) {
            (true, ..) | (false, false, true) => Exit::Failed,
            (false, true, _) => Exit::Done,
            (false, false, false) => Exit::Absent,
        })
    }
}

/// Returns the reasons for unknown results, without duplicates.
fn unknown(trace: &Trace) -> Vec<String> {
    let reasons = trace.ends.iter().filter_map(|end| match &end.outcome {
        Outcome::Unknown(why) | Outcome::NotFollowed(why) => Some(why.as_str()),
        _ => None,
    });
    let mut met = BTreeSet::new();
    let distinct = reasons.filter(|why| met.insert(*why));
    distinct.map(str::to_owned).collect()
}

/// Returns the ends at which a selected table stops the packet, grouped by rule.
fn stops(packet: &Packet, trace: &Trace, ruleset: &Ruleset, scope: &Scope) -> Vec<Stop> {
    let mut stopped: Vec<Stop> = Vec::new();
    let mut stop_indexes: BTreeMap<(String, Vec<String>), usize> = BTreeMap::new();
    for end in &trace.ends {
        let stops = matches!(end.outcome, Outcome::Dropped | Outcome::Rejected(_));
        let Some(last) = end.steps.last().filter(|_| stops) else {
            continue;
        };
        if !scope.admits_table(&last.table) {
            continue;
        }
        let by = Decision::of(last, base(end, end.steps.len() - 1));
        let key = (by.place.clone(), end.assumptions.clone());
        if let Some(place) = stop_indexes.get(&key) {
            stopped[*place].probability += end.probability;
            continue;
        }
        stop_indexes.insert(key, stopped.len());
        stopped.push(Stop {
            packet: format_packet(packet),
            direction: packet.direction,
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

/// Returns the base chain of a step.
fn base(end: &End, at: usize) -> &BString {
    let step = &end.steps[at];
    let of_same = |other: &&Step| {
        (other.hook, other.priority, &other.table, other.backend)
            == (step.hook, step.priority, &step.table, step.backend)
    };
    // The first step of a base chain is in the base chain itself.
    let first = end.steps[..=at].iter().rev().take_while(of_same).last();
    first.map_or(&step.chain, |first| &first.chain)
}

/// Returns the earlier decisions of other tables to accept the packet, without duplicates.
fn accepted(end: &End, by: &Decision) -> Vec<Decision> {
    let mut accepted: Vec<Decision> = Vec::new();
    for (at, step) in end.steps.iter().enumerate() {
        let mut decision = Decision::of(step, base(end, at));
        let other = (decision.backend, decision.family, &decision.table)
            != (by.backend, by.family, &by.table);
        // An accept of NAT rules is no decision to let the packet pass.
        let decides = step.rule.is_some() && decision.table != "nat";
        if step.verdict == RuleVerdict::Accept && other && decides {
            decision.owner = decision.owner.or_else(|| owner(&step.table, &step.chain));
            if !accepted.contains(&decision) {
                accepted.push(decision);
            }
        }
    }
    accepted
}

impl Record {
    fn print_text(&self, out: &mut Output) -> Result<(), Error> {
        if let Some(service) = &self.service {
            lines(out, "", &format!("service {service}"))?;
        }
        writeln!(out, "{}", self.packet)?;
        for stop in &self.stopped {
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
            let owner = stop.by.owner.unwrap_or("unknown");
            writeln!(out, "             owner: {owner}")?;
            for decision in &stop.accepted_by {
                let words = format!(
                    "although {} accepts it in {}",
                    decision.owned(),
                    decision.hook
                );
                lines(out, "             ", &words)?;
            }
        }
        if self.stopped.is_empty() {
            writeln!(out, "  Nothing in scope stops it.")?;
        }
        for why in &self.unknown {
            lines(out, "  ", &format!("The result is incomplete: {why}."))?;
        }
        Ok(())
    }
}
