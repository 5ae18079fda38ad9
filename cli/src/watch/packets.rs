//! `chainwright watch packets`: prints the rules that packets meet.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use bstr::{BStr, BString};
use chainwright::netlink;
use chainwright::nft::live::{TraceRef, TracedItem, TracerOptions};
use chainwright::nft::{
    Connection, Family, Generation, Part, Scope as NftScope, Snapshot, SnapshotError,
    SnapshotOptions,
};
use nix::net::if_::if_indextoname;
use serde::Serialize;

use super::trace_rule::{self, TraceRule};
use crate::get::rules::RuleFormatter;
use crate::output::{Error, Exit, Output, Printable, causes, eprint_line, name_text, note};
use crate::scope::Scope;

/// Print the rules that packets traverse
///
/// PACKET describes packets as for `trace`: protocol, source and destination, `tcp 10.0.0.5 10.96.0.1:443`; use `any`
/// for any address, and omit the port for any port. To trace these packets, it adds a rule in a table of its own, at the
/// hooks prerouting and output, before the table raw. The kernel deletes the table when the process ends, even if it is
/// killed; this needs Linux 5.12 or later. Addresses are those that the packets have at these hooks, before they are
/// translated. Answers are other packets: trace them by another description. If connection tracking is inactive, later
/// fragments of a packet have no ports, and do not match a description with ports.
///
/// Without PACKET it only listens, and adds no rule: the kernel traces packets that another rule marks, with
/// `meta nftrace set 1`, or with the target TRACE of iptables-nft. Such packets are always shown.
///
/// Prints one line per step, with a number that identifies the packet: a rule and its verdict, the end of a chain, a
/// policy. Rules are shown as in `get rules`, without counters. A rule is looked up when its step is printed, and may
/// have changed by then. Before the first step of a packet at a hook there is another line with the packet and its
/// devices.
///
/// Runs until it is stopped, or its reader exits. If packets arrive too fast, it reports missing steps.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The packets to trace: protocol, source and destination
    #[arg(value_name = "PACKET", num_args = 3)]
    packet: Vec<String>,

    /// Trace only packets that arrive at this interface
    #[arg(long = "in", value_name = "INTERFACE", requires = "packet", value_parser = interface)]
    input: Option<String>,

    /// Exit after this number of steps
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,

    /// Maximum size of the kernel's queue of unread events, in bytes, if the kernel permits it
    #[arg(long, value_name = "BYTES", default_value_t = TracerOptions::default().receive_buffer)]
    buffer: usize,

    #[command(flatten)]
    scope: Scope,
}

/// Parses the name of an interface.
fn interface(text: &str) -> Result<String, String> {
    let is_valid = |c: char| !c.is_control() && !c.is_whitespace() && !"\"*/:".contains(c);
    match (1..16).contains(&text.len()) && text.chars().all(is_valid) {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is not the name of an interface")),
    }
}

/// The JSON document of a step.
#[derive(Serialize, Default)]
struct Step {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iif: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oif: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packet: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<String>,
}

/// Returns a device's name, or its index if it no longer exists.
pub(crate) fn device(index: u32) -> String {
    match if_indextoname(index) {
        Ok(name) => name_text(name.as_bytes()).into_owned(),
        Err(_) => index.to_string(),
    }
}

impl Args {
    fn admits(&self, step: &TraceRef<'_>) -> bool {
        let family = self.scope.filter().family;
        let table = step.table().unwrap_or_default();
        (family == Family::UNSPEC || family == step.family()) && self.scope.admits_table(table)
    }
}

/// The present rules, read when a step needs them.
struct Rules {
    nft: Connection,
    words: RuleFormatter,
    /// The generation of the chains.
    generation: Option<Generation>,
    chains: HashMap<(Family, BString, BString), Snapshot>,
}

impl Rules {
    /// Formats the present rule of a step, without counters; `None` if it does not exist.
    fn words(&mut self, step: &TraceRef<'_>) -> Result<Option<String>, netlink::Error> {
        let (Some(table), Some(chain), Some(handle)) = (step.table(), step.chain(), step.rule())
        else {
            return Ok(None);
        };
        let generation = Some(self.nft.generation()?);
        if generation != self.generation {
            self.chains.clear();
            self.generation = generation;
        }
        let family = step.family();
        let snapshot = match self
            .chains
            .entry((family, table.to_owned(), chain.to_owned()))
        {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let scope = NftScope::table(family, table);
                let parts = [Part::Chain(chain)];
                let options = SnapshotOptions::default();
                let read = self.nft.snapshot_parts(scope, &parts, options);
                new.insert(match read {
                    Ok(read) => read.into_inner(),
                    // The table no longer exists, or a rule does not fit into a reply.
                    Err(SnapshotError::Netlink(netlink::Error::Refused { .. })) => return Ok(None),
                    Err(SnapshotError::Netlink(error)) => return Err(error),
                    Err(error) => error.into_snapshot().unwrap_or_default(),
                })
            }
        };
        let rule = snapshot.table(family, table).and_then(|table| {
            let mut rules = table.chain(chain)?.rules();
            let rule = rules.find(|rule| rule.handle() == handle)?;
            Some(self.words.nft(&table, &rule))
        });
        Ok(rule)
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.place.only_nft(
        "packets can only be traced in nf_tables; legacy tables write to the kernel's log",
    )?;
    let options = TracerOptions {
        receive_buffer: args.buffer,
    };
    // Adding a rule loads nf_tables, listening does not.
    let own = match &args.packet[..] {
        [] => None,
        words => Some(TraceRule::add(
            words,
            args.scope.filter().family,
            args.input.as_deref(),
        )?),
    };
    let mut tracer = options.open_if_loaded()?;
    let mut rules = Rules {
        nft: Connection::open()?,
        words: RuleFormatter::new(),
        generation: None,
        chains: HashMap::new(),
    };
    let mut out = Output::new();
    eprint_line("chainwright: listening for traced packets");
    let mut last = None;
    let mut left = args.count;
    while left != Some(0) && out.has_reader() {
        let item = tracer.receive()?;
        let traced = match &item {
            TracedItem::Step(traced) => traced,
            TracedItem::Lost(loss) => {
                if json {
                    let lost = Some(loss.to_string());
                    let step = Step {
                        lost,
                        ..Step::default()
                    };
                    out.json("trace-packets", &step)?;
                } else {
                    writeln!(out, "steps were lost: {loss}")?;
                }
                out.flush()?;
                continue;
            }
            TracedItem::Malformed(malformed) => {
                note(&causes(malformed));
                continue;
            }
            other => {
                note(&format!("{other:?}"));
                continue;
            }
        };
        let step = traced.view();
        // For a step in its own trace rule, it only shows the packet; with --table, at the first step in that table.
        let is_own = own.as_ref().is_some_and(|rule| rule.marked(&step));
        let is_shown = match &own {
            Some(_) if is_own => {
                step.rule().is_some() && step.packet().is_some() && args.scope.table.is_none()
            }
            Some(_) if trace_rule::is_step(&step) => false,
            _ => args.admits(&step),
        };
        if !is_shown {
            continue;
        }
        if is_own {
            match json {
                true => out.json("trace-packets", &document(&step, None))?,
                false => print_packet(&mut out, &step, &mut last)?,
            }
            out.flush()?;
            continue;
        }
        let rule = rules.words(&step)?;
        match json {
            true => out.json("trace-packets", &document(&step, rule))?,
            false => {
                print_packet(&mut out, &step, &mut last)?;
                print_text(&mut out, &step, rule)?;
            }
        }
        out.flush()?;
        if let Some(left) = &mut left {
            *left -= 1;
        }
    }
    Ok(Exit::Done)
}

fn document(step: &TraceRef<'_>, rule: Option<String>) -> Step {
    let named = |name: Option<&BStr>| name.map(|name| name_text(name).into_owned());
    Step {
        id: Some(format!("{:08x}", step.id())),
        step: Some(step.word()),
        family: Some(step.family().to_string()),
        table: named(step.table()),
        chain: named(step.chain()),
        handle: step.rule(),
        rule,
        verdict: step.verdict().map(|verdict| verdict.to_string()),
        policy: step.policy().map(|policy| policy.to_string()),
        mark: step.mark(),
        iif: step.iif().map(device),
        oif: step.oif().map(device),
        packet: step.packet().map(|packet| packet.to_string()),
        lost: None,
    }
}

/// Prints the packet of a step that has it, unless `last` is the same line.
fn print_packet(
    out: &mut Output,
    step: &TraceRef<'_>,
    last: &mut Option<String>,
) -> Result<(), Error> {
    let Some(packet) = step.packet() else {
        return Ok(());
    };
    let named = |word, index: Option<u32>| {
        let name = index.map(device);
        name.map(|name| format!(" {word} {name}"))
            .unwrap_or_default()
    };
    let (iif, oif) = (named("iif", step.iif()), named("oif", step.oif()));
    let devices = format!("{iif}{oif}");
    let line = format!("{:08x} packet{} {packet}", step.id(), Printable(&devices));
    if last.as_ref() != Some(&line) {
        writeln!(out, "{line}")?;
        *last = Some(line);
    }
    Ok(())
}

fn print_text(out: &mut Output, step: &TraceRef<'_>, rule: Option<String>) -> Result<(), Error> {
    let words = step.to_string();
    write!(out, "{:08x} {}", step.id(), Printable(&words))?;
    match rule {
        Some(rule) => writeln!(out, ": {}", Printable(&rule)),
        None => writeln!(out),
    }
}
