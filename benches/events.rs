//! Time from a flush to its event: the monitor, compared with a bare socket that looks for the end of the
//! transaction and discards everything.
//!
//! `cargo bench --bench events [-- CHAINS]`

mod common;

use std::time::{Duration, Instant};

use chainwright::nft::live::{Item, Monitor};
use chainwright::nft::{Connection, Transaction};
use chainwright_bench::{KubeProxy, events};
use common::{Result, in_sandbox, report};

/// Number of rounds for each.
const ROUNDS: usize = 400;

fn main() -> Result {
    let given = std::env::args().find_map(|arg| arg.parse().ok());
    for chains in given.map_or(vec![0, 20, 1000], |chains| vec![chains]) {
        in_sandbox(|| flush(chains))?;
    }
    in_sandbox(|| large(14_000))
}

/// Flushes a ruleset with this many chains, and measures both listeners.
fn flush(chains: usize) -> Result {
    let measured = events::flush(KubeProxy { chains }, ROUNDS)?;
    let title = format!("flush of {chains} chains, {ROUNDS} rounds: from the commit to the event");
    report(&title, &measured, None);
    for one in measured {
        println!(
            "  p99 of {:<37} {:>12} {:>12.1?}",
            one.name, "", one.wall_p99
        );
    }
    Ok(())
}

/// The amount that a large commit queues while nothing is received, and the time to read it.
fn large(chains: usize) -> Result {
    let mut nft = Connection::open()?;
    let mut monitor = Monitor::open()?;
    let mut load = Transaction::new();
    KubeProxy { chains }.write(&mut load)?;
    nft.commit(&load)?;
    let start = Instant::now();
    let Item::Change(change) = monitor.receive()? else {
        return Err("events were lost".into());
    };
    let took: Duration = start.elapsed();
    println!(
        "\n{} events, {:.1} MB, queued while nothing is received: read in {took:.1?}; receive buffer {} MiB",
        change.events().len(),
        change.as_bytes().len() as f64 / 1e6,
        monitor.receive_buffer() >> 20,
    );
    Ok(())
}
