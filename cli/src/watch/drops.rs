//! `chainwright watch drops`: prints the rules and policies that drop packets.

use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::counts::{Change, Counted, Sampling};
use crate::get::rules::RuleFormatter;
use crate::glob::Names;
use crate::output::{Error, Exit, Output};
use crate::scope::Scope;
use crate::top::{Record, interval};

/// Print the rules and policies that drop packets, as they count them
///
/// Compares the counters at each interval, and prints a line for each rule with the verdict or target drop or reject,
/// and for each policy drop, that counted packets in it: the time, packets, bytes, and the rule. Prints nothing if
/// nothing was dropped.
///
/// It adds no rule, and sees only what the kernel counts. It does not see drops by rules without a counter (in iptables'
/// tables every rule has one), by policies of nf_tables' chains that were not created with counters, by the elements of
/// verdict maps, by rules that were added or replaced in the interval, by queues, or anything that is dropped outside
/// of these tables: by routing, other packet filters, full buffers or closed ports. A rule with several counters counts
/// by the last one; if that is before its last condition, it also counts packets that the rule does not drop. To see
/// the packets themselves, use `watch packets`.
///
/// Runs until it is stopped, or its reader exits.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    names: Names,

    /// Time between two samples, for instance 500ms or 2s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,

    /// Exit after this number of intervals
    #[arg(long, value_name = "NUMBER")]
    iterations: Option<u64>,

    #[command(flatten)]
    scope: Scope,
}

/// The JSON document of an interval.
#[derive(Serialize)]
struct Document<'d> {
    time: String,
    seconds: f64,
    complete: bool,
    drops: Vec<Record<'d>>,
}

pub(crate) fn run(args: &Args, json: bool) -> Result<Exit, Error> {
    args.scope.check()?;
    let words = RuleFormatter::new();
    let mut out = Output::new();
    let sampling = Sampling {
        scope: &args.scope,
        names: &args.names,
        counted: Counted::Chains,
        interval: args.interval,
        iterations: args.iterations,
        start: Some("chainwright: watching counters of drops"),
    };
    sampling.each_interval(|before, now| {
        let items = now.groups();
        let items = items.flat_map(|(group, items)| items.keys().map(move |item| (group, item)));
        let mut counted: Vec<_> = items
            .filter_map(|(group, item)| match now.change(before, group, item) {
                Change::Increase(increase) if increase.packets > 0 && now.drops(group, item) => {
                    Some((group, item, increase))
                }
                _ => None,
            })
            .collect();
        counted.sort_unstable();
        let drops = counted
            .into_iter()
            .map(|(group, item, increase)| Record::counted(group, item, increase, now, &words));
        let drops: Vec<_> = drops.collect();
        let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        if json && !drops.is_empty() {
            let document = Document {
                time,
                seconds: now.time.duration_since(before.time).as_secs_f64(),
                complete: !now.found.is_partial(),
                drops,
            };
            out.json("drops", &document)?;
        } else {
            for drop in &drops {
                writeln!(out, "{time} {}", drop.counted_place())?;
            }
        }
        out.flush()?;
        Ok(out.has_reader())
    })?;
    Ok(Exit::Done)
}
