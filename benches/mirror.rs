//! The benefit of a mirror: a plan from it and the commit, compared with the commit alone; a plan for one large
//! map, compared with reading the memory that a comparison needs; the delay until a waiting listener receives the end
//! of a transaction, with a bare socket and with the monitor; lookups, and memory.
//!
//! `cargo bench --bench mirror [-- CHAINS ELEMENTS LOOK-UPS]`
//!
//! The number of system calls shows that lookups make no requests to the kernel: it is the same for ten of them
//! and for ten million (`strace -fc BENCH 1000 0 10`, `strace -fc BENCH 1000 0 10000000`).

mod common;

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use chainwright::nft::live::{Item, Mirror, Monitor};
use chainwright::nft::{Connection, Element, PlanOptions, Scope, Transaction};
use chainwright_bench::events::{Listeners, load_and_flush};
use chainwright_bench::mirror::{lookups, one_rule, update};
use chainwright_bench::{Addresses, KubeProxy, alternate_prepared, resident};
use common::{BoxError, Result, counts, in_sandbox, loaded, report, verdict};

/// The goals: plan and commit as a multiple of the commit, a plan as a multiple of reading both sides, memory as a
/// multiple of the messages.
const COMMIT: f64 = 1.10;
const PLAN: f64 = 3.0;
const MEMORY: f64 = 1.50;
/// Additional delay of a transaction at the monitor, compared with a bare socket: median and 99th percentile.
const MAX_DELAY: [Duration; 2] = [Duration::from_micros(10), Duration::from_micros(50)];
/// Number of changed elements of the map.
const CHANGED: usize = 100;
/// Number of measured flushes.
const FLUSHES: usize = 2_000;

fn main() -> Result {
    let given = counts(&[50_000, 1_000_000, 10_000_000]);
    let [chains, elements, count] = given[..] else {
        return Err("expected three numbers: chains, elements and lookups".into());
    };
    in_sandbox(|| lookup(chains, count))?;
    if elements > 0 {
        in_sandbox(|| rule(chains))?;
        in_sandbox(|| map(elements))?;
        for chains in [0, 20, 1_000] {
            in_sandbox(|| listener_latency(chains))?;
        }
    }
    Ok(())
}

/// Memory, and lookups of chains by name, compared with those in a map that contains only the names.
fn lookup(chains: usize, count: usize) -> Result {
    let ruleset = KubeProxy { chains };
    let (family, table) = ruleset.table();
    let nft = loaded(chains)?;
    let before = resident()?;
    let mirror = Mirror::open(nft, &Scope::table(family, table))?;
    let grown = resident()?.saturating_sub(before);
    let length = mirror.snapshot().byte_length();
    // The first lookup builds the index.
    let first = mirror.snapshot().chain(family, table, "PREROUTING");
    assert!(first.is_some());
    println!("\nmirror of {chains} chains with {} rules", ruleset.rules());
    for (what, bytes) in [
        ("Snapshot::memory()", mirror.snapshot().memory()),
        ("growth of the process when it was opened", grown),
    ] {
        let ratio = bytes as f64 / length as f64;
        println!(
            "  {what:<44} {:>12} {:>12} {ratio:>8.3}{}",
            format!("{:.1} MB", bytes as f64 / 1e6),
            format!("of {:.1} MB", length as f64 / 1e6),
            verdict(ratio, MEMORY),
        );
    }
    if count == 0 {
        return Ok(());
    }
    let measured = lookups(mirror.snapshot(), ruleset, count / 10, 9)?;
    // Ten rounds each, including the one that warms up.
    report(
        &format!("{} lookups of chains, ten times", count / 10),
        &measured,
        None,
    );
    Ok(())
}

/// Another program changes one rule, and it is restored: update, plan and commit.
fn rule(chains: usize) -> Result {
    let ruleset = KubeProxy { chains };
    let one = one_rule(ruleset, 31)?;
    report(
        &format!(
            "one of {} rules in {chains} chains made what is desired",
            ruleset.rules()
        ),
        &one.contenders,
        COMMIT,
    );
    println!(
        "  plan() alone: {:.1?}; the first plan(), which reads everything: {:.1?}",
        one.plan, one.first_plan
    );
    Ok(())
}

/// A map in which another program repeatedly changes the values of some elements.
fn map(elements: usize) -> Result {
    let map = Addresses { elements };
    let mut nft = Connection::open()?;
    map.load(&mut nft)?;
    let (family, table, name) = map.map();
    let scope = Scope::table(family, table);
    let mut mirror = Mirror::open(Connection::open()?, &scope)?;
    let desired = Arc::new(mirror.snapshot().clone());
    let set = desired
        .table(family, table)
        .and_then(|table| table.set(name));
    let set = set.ok_or("no map")?;
    let keys = set.elements().step_by(elements / CHANGED).take(CHANGED);
    let keys: Vec<Vec<u8>> = keys
        .filter_map(|element| Some(element.key_bytes()?.to_vec()))
        .collect();
    assert_eq!(keys.len(), CHANGED);
    let mut other_values = Transaction::new();
    other_values.delete_elements(&map.set_id(), keys.iter().map(Element::new))?;
    other_values.add_elements(
        &map.set_id(),
        keys.iter()
            .map(|key| Element::new(key).with_data(&[192, 0, 2, 1])),
    )?;
    let start = Instant::now();
    assert!(mirror.plan(&desired, PlanOptions::default())?.is_empty());
    let first = start.elapsed();
    nft.commit(&other_values)?;
    let start = Instant::now();
    assert_eq!(update(&mut mirror)?, 1);
    let first_update = start.elapsed();
    let start = Instant::now();
    assert!(!mirror.plan(&desired, PlanOptions::default())?.is_empty());
    let first_touched = start.elapsed();

    // The data that a comparison reads: as many bytes, twice, and equal, so that the comparison reaches the end.
    let length = desired.byte_length();
    let (one, other) = (vec![1_u8; length], vec![1_u8; length]);
    let mirror = RefCell::new(mirror);
    let mut updating = Vec::new();
    let measured = alternate_prepared::<BoxError>(
        15,
        &mut || {
            // Restores the elements, and then changes their values again.
            let mirror = &mut *mirror.borrow_mut();
            let plan = mirror.plan(&desired, PlanOptions::default())?;
            mirror.connection().commit(plan.transaction())?;
            update(mirror)?;
            assert!(mirror.plan(&desired, PlanOptions::default())?.is_empty());
            nft.commit(&other_values)?;
            let start = Instant::now();
            update(mirror)?;
            updating.push(start.elapsed());
            Ok(())
        },
        &mut [
            ("baseline: as many bytes compared", &mut || {
                assert!(black_box(&one) == black_box(&other));
                Ok(())
            }),
            ("Mirror::plan(), called again", &mut || {
                let mirror = &mut *mirror.borrow_mut();
                let plan = mirror.plan(&desired, PlanOptions::default())?;
                assert!(!black_box(plan).is_empty());
                Ok(())
            }),
            ("Snapshot::plan(), of everything", &mut || {
                let mirror = mirror.borrow();
                let plan = mirror.snapshot().plan(&desired, PlanOptions::default())?;
                assert!(!black_box(plan).is_empty());
                Ok(())
            }),
        ],
    )?;
    report(
        &format!(
            "a plan about {CHANGED} of {elements} elements ({:.1} MB)",
            length as f64 / 1e6
        ),
        &measured,
        PLAN,
    );
    updating.sort_unstable();
    println!(
        "  the mirror's first plan, which reads everything, without changes: {first:.1?}; first update: {first_update:.1?}; \
         first plan from touched elements: {first_touched:.1?}; later updates: {:.1?}",
        updating[updating.len() / 2]
    );
    // The kernel sends one event per element.
    let mut mirror = mirror.into_inner();
    let mut monitor = Monitor::open()?;
    let plan = mirror.plan(&desired, PlanOptions::default())?;
    mirror.connection().commit(plan.transaction())?;
    let Item::Change(change) = monitor.receive()? else {
        return Err("events were lost".into());
    };
    let sent = change.events().len();
    println!("  {sent} elements deleted and added, for {CHANGED} with another value");
    assert_eq!(sent, 2 * CHANGED);
    Ok(())
}

/// When a listener has the end of a flush that another thread commits: a bare socket and the monitor, alternating.
fn listener_latency(chains: usize) -> Result {
    let [load, flush] = load_and_flush(KubeProxy { chains })?;
    let mut listeners = Listeners::open()?;
    let mut nft = Connection::open()?;
    let rounds = FLUSHES.min(4_000_000 / chains.max(1) / 4).max(1000);
    let (sender, receiver) = mpsc::channel::<()>();
    let (committed, returned) = mpsc::channel::<Instant>();
    let mut events = 0;
    let times = thread::scope(|scope| -> Result<[Vec<f64>; 2]> {
        let writer = scope.spawn(move || -> Result {
            let mut next = [&load, &flush].into_iter().cycle();
            while receiver.recv().is_ok() {
                nft.commit(next.next().ok_or("an endless cycle")?)?;
                committed.send(Instant::now())?;
            }
            Ok(())
        });
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..2 * rounds {
            // The load, and then the flush.
            sender.send(())?;
            listeners.bare()?;
            listeners.receive_change()?;
            returned.recv()?;
            // By then both threads are idle.
            thread::sleep(Duration::from_micros(200));
            sender.send(())?;
            let received_at = match round % 2 {
                0 => {
                    listeners.bare()?;
                    let received_at = Instant::now();
                    (_, events) = listeners.receive_change()?;
                    received_at
                }
                _ => {
                    let received_at;
                    (received_at, events) = listeners.receive_change()?;
                    listeners.bare()?;
                    received_at
                }
            };
            // It mostly arrives before the commit returns.
            let commit = returned.recv()?;
            let listener_latency = received_at.saturating_duration_since(commit).as_secs_f64();
            let ahead = commit.saturating_duration_since(received_at).as_secs_f64();
            times[round % 2].push((listener_latency - ahead) * 1e6);
        }
        drop(sender);
        writer.join().map_err(|_| "the writer panicked")??;
        Ok(times)
    });
    let mut times = times?;
    times
        .iter_mut()
        .for_each(|times| times.sort_unstable_by(f64::total_cmp));
    println!(
        "\nflush of {events} objects, {rounds} rounds each: time from the commit's return to a listener's receipt, in us"
    );
    for (name, at, goal) in [
        ("median", rounds / 2, MAX_DELAY[0]),
        ("p99", rounds * 99 / 100, MAX_DELAY[1]),
    ] {
        let (bare, monitor) = (times[0][at], times[1][at]);
        let added = monitor - bare;
        let word = match added <= goal.as_secs_f64() * 1e6 {
            true => "kept",
            false => "MISSED",
        };
        println!(
            "  {name:8} bare socket {bare:>9.1}   monitor {monitor:>9.1}   added {added:>8.1}  goal {goal:?}: {word}"
        );
    }
    Ok(())
}
