//! `chainwright-demo`: counts how often kubelet's chains are missing while a rival keeps restarting its firewall.

mod keeper;
mod observer;
mod rival;
mod ruleset;

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::panic::resume_unwind;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chainwright::legacy;
use chainwright::nft::{Connection, Scope};
use chainwright_kube::kubelet::{CANARY, FIREWALL, HINT, Item, Kubelet};
use chainwright_testing::{Sandbox, become_namespace_root};
use comfy_table::{CellAlignment, Table, TableComponent, presets};
use serde::Serialize;

use observer::Observation;

/// Watch kubelet's chains while a rival restarts its firewall, in a private namespace
///
/// Takes about 15 seconds, needs no privileges, changes nothing outside of its namespace, and runs no other program. An
/// observer checks continuously whether all of kubelet's chains exist: first while rival and kubelet work as they do
/// today, with one command after another; then while chainwright repairs the chains that the rival flushes; then while
/// each restart is one transaction. The exit code is 1 if a chain was ever missing in the last part.
type Error = Box<dyn std::error::Error + Send + Sync>;

/// Number of restarts with commands.
const RESTARTS: u32 = 3;
/// Number of restarts with one transaction each.
const TRANSACTIONS: u32 = 100;
/// Time between restarts with commands.
const BETWEEN: Duration = Duration::from_millis(1200);
/// Time between transactions.
const BETWEEN_TRANSACTIONS: Duration = Duration::from_millis(3);
/// Overhead of a command, mostly for starting a program: a restart has 50 commands and takes half a second.
const COMMAND: Duration = Duration::from_millis(10);
/// kubelet's polling interval; in production it is one minute.
const POLL: Duration = Duration::from_secs(1);
/// How often chainwright reads the generation.
const GUARD: Duration = Duration::from_micros(200);

/// Signals threads to stop.
struct Stop(AtomicBool);

impl Stop {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Sleeps, and returns whether to continue.
    fn pause(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.is_set() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(Duration::from_millis(20)));
        }
        false
    }
}

/// The results of one part of the demo.
#[derive(Serialize)]
struct Phase {
    name: &'static str,
    #[serde(skip)]
    title: &'static str,
    /// Restarts of the rival.
    restarts: u32,
    /// Duration of the part, in milliseconds.
    duration_ms: f64,
    #[serde(flatten)]
    seen: Observation,
    /// How often kubelet or chainwright restored something.
    repairs: u32,
    /// Commands of the rival that the kernel rejected.
    refused: u32,
}

/// The JSON document.
#[derive(Serialize)]
struct Report<'a> {
    namespace: &'a str,
    ruleset: ruleset::Size,
    kubelet_chains: usize,
    kubelet_poll_ms: f64,
    phases: &'a [Phase],
    chains: Vec<Listed>,
    /// Why no legacy table is listed, if there is none.
    legacy_unavailable: Option<String>,
}

fn main() -> ExitCode {
    let json = match &std::env::args().skip(1).collect::<Vec<_>>()[..] {
        [] => false,
        [option] if option == "--json" => true,
        _ => {
            eprintln!("usage: chainwright-demo [--json]");
            return ExitCode::from(2);
        }
    };
    match run(json) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("chainwright-demo: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether no chain was ever missing in the last part.
fn run(json: bool) -> Result<bool, Error> {
    // This must come before any other thread is started.
    become_namespace_root()?;
    let sandbox = Sandbox::new()?;
    let namespace = sandbox.netns().id().to_string();
    sandbox.run(|| inside(&namespace, json))?
}

/// Runs the demo inside its namespace.
fn inside(namespace: &str, json: bool) -> Result<bool, Error> {
    let mut nft = Connection::open()?;
    // In an empty ruleset, everything that a kubelet creates is missing.
    let kubelets = Kubelet::new().check(&mut nft)?;
    let size = ruleset::load(&mut nft)?;
    let watched: Vec<Item> = kubelets
        .iter()
        .filter(|item| item.rule.is_none())
        .cloned()
        .collect();

    let mut out = io::stdout().lock();
    if !json {
        introduce(&mut out, namespace, size, watched.len())?;
    }
    let phases = phases(&kubelets, &watched)?;
    let legacy_unavailable = make_legacy_table().err().map(|error| error.to_string());
    let chains = chains(&mut nft, legacy_unavailable.is_none())?;
    if json {
        let report = Report {
            namespace,
            ruleset: size,
            kubelet_chains: watched.len(),
            kubelet_poll_ms: milliseconds(POLL),
            phases: &phases,
            chains,
            legacy_unavailable,
        };
        serde_json::to_writer(&mut out, &report)?;
        writeln!(out)?;
    } else {
        writeln!(out, "{}\n\n{}\n", table(&phases), conclusion(&phases))?;
        writeln!(out, "Kubelet's chains now, on both backends:")?;
        for chain in chains {
            writeln!(out, "  {chain}")?;
        }
        if let Some(why) = legacy_unavailable {
            writeln!(out, "  (no legacy table to list: {why})")?;
        }
    }
    Ok(phases.last().is_some_and(|phase| phase.seen.misses == 0))
}

/// Runs all parts, one after the other.
fn phases(kubelets: &[Item], watched: &[Item]) -> Result<Vec<Phase>, Error> {
    let kubelet = Kubelet::new();
    let mut nft = Connection::open()?;
    let mut by_commands = || {
        let refused = rival::restart_by_commands()?;
        thread::sleep(BETWEEN);
        Ok(refused)
    };
    let mut by_transaction = || {
        rival::restart_by_transaction(&mut nft, kubelets)?;
        thread::sleep(BETWEEN_TRANSACTIONS);
        Ok(0)
    };
    let guard = |stop: &Stop| keeper::guard(stop, &kubelet);
    Ok(vec![
        Part {
            name: "commands",
            title: "as today: commands, kubelet polls",
            restarts: RESTARTS,
            restart: &mut by_commands,
            keep: &keeper::poll,
        }
        .play(watched)?,
        Part {
            name: "repaired",
            title: "commands, chainwright repairs",
            restarts: RESTARTS,
            restart: &mut by_commands,
            keep: &guard,
        }
        .play(watched)?,
        Part {
            name: "transactions",
            title: "one transaction per restart",
            restarts: TRANSACTIONS,
            restart: &mut by_transaction,
            keep: &guard,
        }
        .play(watched)?,
    ])
}

/// One part of the demo: the rival restarts, while a keeper restores kubelet's chains.
struct Part<'a> {
    name: &'static str,
    title: &'static str,
    restarts: u32,
    /// Restarts, and returns the number of commands that the kernel rejected.
    restart: &'a mut dyn FnMut() -> Result<u32, Error>,
    /// Restores the chains until it is stopped, and returns the number of repairs.
    keep: &'a (dyn Fn(&Stop) -> Result<u32, Error> + Sync),
}

impl Part<'_> {
    /// Runs the part while an observer watches.
    fn play(self, watched: &[Item]) -> Result<Phase, Error> {
        if io::stderr().is_terminal() {
            eprintln!("{} restarts: {} …", self.restarts, self.title);
        }
        Kubelet::new().ensure(&mut Connection::open()?)?;
        let stop = Stop(AtomicBool::new(false));
        let start = Instant::now();
        thread::scope(|scope| {
            let observer = scope.spawn(|| observer::watch(&stop, watched));
            let keeper = scope.spawn(|| (self.keep)(&stop));
            let refused =
                (0..self.restarts).try_fold(0, |sum, _| Ok::<_, Error>(sum + (self.restart)()?));
            // Before anything else: otherwise the threads would never stop.
            stop.0.store(true, Ordering::Relaxed);
            let duration = start.elapsed();
            let repairs = keeper.join().unwrap_or_else(|panic| resume_unwind(panic));
            let seen = observer.join().unwrap_or_else(|panic| resume_unwind(panic));
            Ok(Phase {
                name: self.name,
                title: self.title,
                restarts: self.restarts,
                duration_ms: milliseconds(duration),
                refused: refused?,
                seen: seen?,
                repairs: repairs?,
            })
        })
    }
}

/// Creates a legacy table for the listing.
fn make_legacy_table() -> Result<(), legacy::Error> {
    legacy::Connection::open(legacy::Family::Ipv4)?
        .instantiate("filter")
        .map(drop)
}

/// Lists kubelet's chains and those of the legacy tables.
#[derive(Serialize)]
struct Listed {
    backend: &'static str,
    family: String,
    table: String,
    chain: String,
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            backend,
            family,
            table,
            chain,
        } = self;
        write!(f, "{backend:6} {family:6} {table:8} {chain}")
    }
}

/// Lists kubelet's chains and those of the legacy tables.
fn chains(nft: &mut Connection, legacy: bool) -> Result<Vec<Listed>, Error> {
    let mut listed = Vec::new();
    nft.chains(Scope::all())?.for_each(|chain| {
        if [HINT, CANARY, FIREWALL]
            .iter()
            .any(|name| chain.name() == *name)
        {
            listed.push(Listed {
                backend: "nft",
                family: chain.family().to_string(),
                table: chain.table().to_string(),
                chain: chain.name().to_string(),
            });
        }
    })?;
    if legacy {
        let read = legacy::Connection::open(legacy::Family::Ipv4)?.read("filter")?;
        for chain in read.in_use().iter().flat_map(legacy::Table::chains) {
            listed.push(Listed {
                backend: "legacy",
                family: "ip".to_owned(),
                table: "filter".to_owned(),
                chain: chain.name().to_string(),
            });
        }
    }
    Ok(listed)
}

fn introduce(
    out: &mut impl Write,
    namespace: &str,
    size: ruleset::Size,
    watched: usize,
) -> io::Result<()> {
    writeln!(
        out,
        "In a private network namespace, {namespace}: {} chains and {} rules, mostly of a real kube-proxy,\n\
         and the {watched} chains of a kubelet. A rival restarts its firewall repeatedly, with the 50\n\
         commands of `systemctl restart iptables`. An observer checks in a tight loop whether all of\n\
         kubelet's chains exist. (About 15 seconds.)\n",
        grouped(size.chains as u64),
        grouped(size.rules as u64),
    )?;
    out.flush()
}

fn table(phases: &[Phase]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_style(TableComponent::HeaderLines, '─')
        .set_style(TableComponent::MiddleHeaderIntersections, '─')
        .set_header([
            "how",
            "restarts",
            "checks",
            "misses",
            "missing for",
            "longest gap",
            "repairs",
        ]);
    for phase in phases {
        let seen = &phase.seen;
        table.add_row([
            phase.title.to_owned(),
            grouped(phase.restarts.into()),
            grouped(seen.checks),
            grouped(seen.misses),
            time(seen.missing_ms),
            time(seen.longest_gap_ms),
            grouped(phase.repairs.into()),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Summarizes the results.
fn conclusion(phases: &[Phase]) -> String {
    let [commands, repaired, transactions] = phases else {
        return String::new();
    };
    let last = match transactions.seen.misses {
        0 => format!(
            "In transactions: never missing, in {} restarts.",
            transactions.restarts
        ),
        misses => format!("In transactions: MISSED {misses} TIMES, WHICH SHOULD NOT HAPPEN."),
    };
    format!(
        "As today: missing until kubelet polls, up to {} here, where it polls every {} s (normally \
         every 60 s).\n\
         Repaired by chainwright, which checks the generation every {}: missing for at most {}.\n\
         {last}",
        time(commands.seen.longest_gap_ms),
        POLL.as_secs(),
        time(milliseconds(GUARD)),
        time(repaired.seen.longest_gap_ms),
    )
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Formats a time.
fn time(milliseconds: f64) -> String {
    match milliseconds {
        0.0 => "0".to_owned(),
        short if short < 10.0 => format!("{short:.2} ms"),
        middle if middle < 1000.0 => format!("{middle:.0} ms"),
        long => format!("{:.2} s", long / 1000.0),
    }
}

/// Formats a number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_for_people() {
        let numbers = [0, 12, 123, 1234, 123_456, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "12", "123", "1,234", "123,456", "1,234,567"]);
        let times = [0.0, 0.123, 12.3, 123.4, 1234.0].map(time);
        assert_eq!(times, ["0", "0.12 ms", "12 ms", "123 ms", "1.23 s"]);
    }
}
