//! `chainwright watch packets`: prints the rules that packets meet.

use bstr::BStr;
use chainwright::netlink;
use chainwright::nft::live::{TraceRef, TracedItem, TracerOptions};
use chainwright::nft::{Connection, Family};
use nix::net::if_::if_indextoname;
use serde::Serialize;

use crate::get::rules::{Sets, format_rule, sets};
use crate::output::{Error, Exit, Output, Printable, causes, eprint_line, name_text, note};
use crate::scope::Scope;

/// Print the rules that packets traverse
///
/// Only listens, and adds no rule. The kernel traces packets that a rule marks (`meta nftrace set 1`). For instance,
/// this rule marks all TCP packets to port 80, until its table is deleted:
///
/// nft 'add table inet trace; add chain inet trace all { type filter hook prerouting priority -400; }; add rule inet trace all tcp dport 80 meta nftrace set 1'
///
/// With iptables-nft, use the target TRACE in table raw.
///
/// Prints one line per step, with a number that identifies the packet: a rule and its verdict, the end of a chain, a
/// policy. A rule is looked up when its step is printed, and may have changed by then. Before the first step of a
/// packet at a hook there is another line with the packet and its devices.
///
/// Runs until it is stopped, or its reader exits. If packets arrive too fast, it reports missing steps.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Exit after this number of steps
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,

    /// Maximum size of the kernel's queue of unread events, in bytes, if the kernel permits it
    #[arg(long, value_name = "BYTES", default_value_t = TracerOptions::default().receive_buffer)]
    buffer: usize,

    #[command(flatten)]
    scope: Scope,
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

/// Formats the present rule of a step; `None` if it does not exist.
fn rule(
    nft: &mut Connection,
    step: &TraceRef<'_>,
    sets: &Sets,
) -> Result<Option<String>, netlink::Error> {
    let (Some(table), Some(chain), Some(handle)) = (step.table(), step.chain(), step.rule()) else {
        return Ok(None);
    };
    match nft.rule(step.family(), table, chain, handle) {
        Ok(rule) => Ok(rule.map(|rule| format_rule(&rule, sets))),
        // The table no longer exists, or the rule does not fit into a reply.
        Err(netlink::Error::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.place.only_nft(
        "packets can only be traced in nf_tables; legacy tables write to the kernel's log",
    )?;
    let options = TracerOptions {
        receive_buffer: args.buffer,
    };
    let mut tracer = options.open_if_loaded()?;
    let mut nft = Connection::open()?;
    let sets = sets();
    let mut out = Output::new();
    eprint_line("chainwright: listening for traced packets");
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
        if !args.admits(&step) {
            continue;
        }
        let rule = rule(&mut nft, &step, &sets)?;
        match json {
            true => out.json("trace-packets", &document(&step, rule))?,
            false => print_text(&mut out, &step, rule)?,
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

fn print_text(out: &mut Output, step: &TraceRef<'_>, rule: Option<String>) -> Result<(), Error> {
    let id = step.id();
    if let Some(packet) = step.packet() {
        let named = |word, index: Option<u32>| {
            let name = index.map(device);
            name.map(|name| format!(" {word} {name}"))
                .unwrap_or_default()
        };
        let (iif, oif) = (named("iif", step.iif()), named("oif", step.oif()));
        let devices = format!("{iif}{oif}");
        writeln!(out, "{id:08x} packet{} {packet}", Printable(&devices))?;
    }
    let words = step.to_string();
    write!(out, "{id:08x} {}", Printable(&words))?;
    match rule {
        Some(rule) => writeln!(out, ": {}", Printable(&rule)),
        None => writeln!(out),
    }
}
