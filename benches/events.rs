//! From a flush to the event that tells of it: the monitor, against a bare socket that looks for the end of the
//! transaction and throws all away.
//!
//! `cargo bench --features measure --bench events [-- CHAINS]`

mod common;

use std::time::{Duration, Instant};

use chainwright::measure::KubeProxy;
use chainwright::nft::live::{Item, Monitor};
use chainwright::nft::{Connection, Transaction};
use common::{Listeners, Result, in_sandbox, load_and_flush};

/// How often each is measured.
const ROUNDS: usize = 400;

fn main() -> Result {
    let given = std::env::args().find_map(|arg| arg.parse().ok());
    for chains in given.map_or(vec![0, 20, 1000], |chains| vec![chains]) {
        in_sandbox(|| flush(chains))?;
    }
    in_sandbox(|| large(14_000))
}

/// A ruleset of so many chains is flushed, and both are told.
fn flush(chains: usize) -> Result {
    let mut nft = Connection::open()?;
    let [load, flush] = load_and_flush(chains)?;
    let mut listeners = Listeners::open()?;
    let mut times = [Vec::new(), Vec::new()];
    let mut events = 0;
    for round in 0..2 * ROUNDS {
        nft.commit(&load)?;
        listeners.bare()?;
        listeners.told()?;
        let start = Instant::now();
        nft.commit(&flush)?;
        events = match round % 2 {
            0 => listeners.bare()?,
            _ => listeners.told()?.1,
        };
        times[round % 2].push(start.elapsed());
        let other = match round % 2 {
            0 => listeners.told()?.1,
            _ => listeners.bare()?,
        };
        assert_eq!(events, other, "both see the same");
    }
    println!("\nflush of {events} objects, {ROUNDS} rounds each: from the commit to the event");
    let [floor, monitor] = times.map(|mut times| {
        times.sort_unstable();
        [times[ROUNDS / 2], times[ROUNDS * 99 / 100]]
    });
    for (name, floor, monitor) in [
        ("median", floor[0], monitor[0]),
        ("p99", floor[1], monitor[1]),
    ] {
        let ratio = monitor.as_secs_f64() / floor.as_secs_f64();
        let more = monitor.as_secs_f64() - floor.as_secs_f64();
        println!(
            "  {name:8} floor: bare socket {floor:>10.1?}   monitor {monitor:>10.1?}   {ratio:.3}x, {:+.1} us",
            more * 1e6
        );
    }
    Ok(())
}

/// What a large commit queues while nobody receives, and how long it takes to take it in.
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
        "\n{} events, {:.1} MB, queued while nobody receives: taken in within {took:.1?}; receive buffer {} MiB",
        change.events().len(),
        change.as_bytes().len() as f64 / 1e6,
        monitor.receive_buffer() >> 20,
    );
    Ok(())
}
