//! Services in the flat layout, from objects to committed, against the same prepared beforehand: a cold start; an
//! endpoint or a service more or fewer, with as many and as few services there; a rolling restart; a restart of the
//! agent; and memory.
//!
//! `cargo bench --features measure,kube --bench services [-- SERVICES …]`: of how many services there are when one
//! changes.
//!
//! The floor of a cold start is what the proxy left in the kernel, read back by
//! [`Cluster::as_datagrams`]: the same objects and elements, but for the order of a set's elements, for the
//! order of chains and sets, and for attributes that the kernel lists and the proxy need not say; the title says how
//! long both are. The floor of a change is the same element operations, in bytes, in a namespace of its own with the same
//! services. Both are told to a table that nobody owns in the floor's case: what owns it costs the kernel nothing.

mod common;

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::time::Duration;

use chainwright::kube::service::{Layout, ServiceProxy, Services};
use chainwright::measure::floor::{Floor, Request};
use chainwright::measure::{Cluster, Contender, Measured, There, alternate_prepared};
use chainwright::netns::{Sandbox, become_namespace_root};
use chainwright::nft::{Connection, Family, Transaction};
use common::{BoxError, Result, counts, in_sandbox, report, resident, verdict};

/// The goals: a cold start as a multiple of its floor, and in CPU time.
const COLD: f64 = 1.2;
/// One change: CPU time at the median, and how much more it may be with the most services than with the fewest.
const CHANGE: Duration = Duration::from_micros(100);
const GROWTH: f64 = 1.5;
/// Bytes of memory an endpoint.
const MEMORY: f64 = 1024.0;
const ROUNDS: usize = 1_000;

const ONE_EACH: Cluster = Cluster {
    services: 45_000,
    endpoints: 1,
};
const MANY_EACH: Cluster = Cluster {
    services: 5_000,
    endpoints: 50,
};

fn main() -> Result {
    become_namespace_root()?; // before any thread
    let present = counts(&[100, 10_000, 100_000]);
    // First, while nothing that was freed is taken again.
    for cluster in [MANY_EACH, ONE_EACH] {
        in_sandbox(|| memory(cluster))?;
    }
    in_sandbox(|| cold(ONE_EACH, Duration::from_millis(500)))?;
    in_sandbox(|| cold(MANY_EACH, Duration::from_secs(1)))?;
    let mut medians = Vec::new();
    for services in present {
        medians.push(changes(Cluster {
            services,
            endpoints: 1,
        })?);
    }
    if let (Some(few), Some(many)) = (medians.first(), medians.last()) {
        println!("\na change where most services are, as a multiple of one where fewest are");
        for ((name, few), (_, many)) in few.iter().zip(many) {
            let ratio = many.as_secs_f64() / few.as_secs_f64();
            println!("  {name:<44} {ratio:>34.3}{}", verdict(ratio, GROWTH));
        }
    }
    rolling(Cluster {
        services: 1_000,
        endpoints: 100,
    })?;
    in_sandbox(|| agent(ONE_EACH))
}

/// Says whether a time keeps its goal.
fn within(name: &str, time: Duration, goal: Duration) {
    let word = if time <= goal { "kept" } else { "MISSED" };
    println!("  {name}: {time:.1?} of CPU  goal {goal:?}: {word}");
}

/// Into an empty namespace.
fn cold(cluster: Cluster, goal: Duration) -> Result {
    let mut services = cluster.services();
    let proxy = Cluster::load(&mut services, Layout::Flat, false)?;
    drop(proxy);
    let prepared = Cluster::as_datagrams()?;
    let mut floor = Floor::open()?;
    let mut cleaner = Connection::open()?;
    let mut empty = Transaction::new();
    empty.flush_ruleset(Family::UNSPEC)?;
    // Kept until the next turn: nobody throws it away after a start.
    let kept = RefCell::new(None);
    let measured = alternate_prepared::<BoxError>(
        9,
        &mut || {
            kept.take();
            Ok(cleaner.commit(&empty)?)
        },
        &mut [
            ("floor: the prepared bytes", &mut || {
                Ok(prepared.iter().try_for_each(|part| floor.commit(part))?)
            }),
            ("ServiceProxy::open() and sync()", &mut || {
                kept.replace(Some(Cluster::load(&mut services, Layout::Flat, false)?));
                Ok(())
            }),
        ],
    )?;
    let bytes: usize = prepared.iter().map(Vec::len).sum();
    let title = format!(
        "cold start: {} services with {} endpoints ({:.1} MB in {} parts)",
        cluster.services,
        cluster.services * cluster.endpoints,
        bytes as f64 / 1e6,
        prepared.len(),
    );
    report(&title, &measured, COLD);
    within("from objects to committed", measured[1].cpu, goal);
    Ok(())
}

/// The floor's namespace and the proxy's, with the same services.
struct Both {
    floor: Floor,
    proxy: ServiceProxy,
    services: Services,
    _namespaces: [Sandbox; 2],
}

impl Both {
    fn new(cluster: Cluster) -> Result<Self> {
        let namespaces = [Sandbox::new()?, Sandbox::new()?];
        let floor = namespaces[0].run(|| -> Result<Floor> {
            Cluster::load(&mut cluster.services(), Layout::Flat, false)?;
            Ok(Floor::open()?)
        })??;
        let mut services = cluster.services();
        let proxy = namespaces[1]
            .run(|| Cluster::load(&mut services, Layout::Flat, true).map_err(BoxError::from))??;
        Ok(Self {
            floor,
            proxy,
            services,
            _namespaces: namespaces,
        })
    }
}

/// What is done to the services, and undone, in round after round.
struct Change<'c> {
    names: [&'static str; 2],
    prepared: Vec<There>,
    done: &'c dyn Fn(&mut Services, usize),
    undone: &'c dyn Fn(&mut Services, usize),
}

/// An endpoint and a service more and fewer; the medians of the CPU time.
fn changes(cluster: Cluster) -> Result<Vec<(&'static str, Duration)>> {
    let mut both = Both::new(cluster)?;
    // Another service in each round: those before it are no longer in the caches.
    let number = |round: usize| round * 7919 % cluster.services;
    let new = |round: usize| cluster.services + round;
    let rounds = 0..=ROUNDS;
    let endpoint = Change {
        names: ["one endpoint more", "one endpoint fewer"],
        prepared: rounds
            .clone()
            .map(|round| cluster.endpoint_more(number(round)))
            .collect::<std::result::Result<_, _>>()?,
        done: &|services, round| {
            cluster.set_endpoints(services, number(round), 0..=cluster.endpoints);
        },
        undone: &|services, round| {
            cluster.set_endpoints(services, number(round), 0..cluster.endpoints);
        },
    };
    let service = Change {
        names: ["one service more", "one service fewer"],
        prepared: rounds
            .map(|round| cluster.service_more(new(round)))
            .collect::<std::result::Result<_, _>>()?,
        done: &|services, round| cluster.set(services, new(round)),
        undone: &|services, round| cluster.remove(services, new(round)),
    };
    let mut medians = Vec::new();
    for change in [endpoint, service] {
        for undo in [false, true] {
            let measured = one(&mut both, &change, undo)?;
            let name = change.names[usize::from(undo)];
            let title = format!("{name}, of {} services", cluster.services);
            percentiles(&title, &measured);
            within(name, measured[1].cpu, CHANGE);
            medians.push((name, measured[1].cpu));
        }
    }
    Ok(medians)
}

/// A change done, or undone, in rounds: what was before is made between them.
fn one(both: &mut Both, change: &Change<'_>, undo: bool) -> Result<Vec<Measured>> {
    let Both {
        floor,
        proxy,
        services,
        ..
    } = both;
    let (floor, syncing) = (RefCell::new(floor), RefCell::new((proxy, services)));
    // Each has its own count of rounds, and whether it did what is to be undone, or is to be done.
    let rounds = [Cell::new(0), Cell::new(0)];
    let commit = |round: usize, undo: bool| -> Result {
        let there = &change.prepared[round];
        let bytes = if undo { &there.undone } else { &there.done };
        Ok(floor.borrow_mut().commit(bytes)?)
    };
    let sync = |round: usize, undo: bool| -> Result {
        let (proxy, services) = &mut *syncing.borrow_mut();
        match undo {
            false => (change.done)(services, round),
            true => (change.undone)(services, round),
        }
        let synced = proxy.sync(services)?;
        if (synced.services, synced.transactions) != (1, 1) {
            return Err(format!("one change took {synced:?}").into());
        }
        Ok(())
    };
    let turn = Cell::new([0_usize; 2]);
    let measured = alternate_prepared::<BoxError>(
        ROUNDS,
        &mut || {
            // What the last turn did is undone, and for what is to be undone it is done first.
            let [committed, synced] = turn.get();
            if !undo {
                if rounds[0].get() > committed {
                    commit(committed, true)?;
                }
                if rounds[1].get() > synced {
                    sync(synced, true)?;
                }
                turn.set([rounds[0].get(), rounds[1].get()]);
            } else {
                if (committed..=ROUNDS).contains(&rounds[0].get()) {
                    commit(rounds[0].get(), false)?;
                }
                if (synced..=ROUNDS).contains(&rounds[1].get()) {
                    sync(rounds[1].get(), false)?;
                }
                turn.set([rounds[0].get() + 1, rounds[1].get() + 1]);
            }
            Ok(())
        },
        &mut [
            ("floor: the prepared bytes", &mut || {
                let round = rounds[0].replace(rounds[0].get() + 1);
                commit(round, undo)
            }),
            ("services.set_…() and sync()", &mut || {
                let round = rounds[1].replace(rounds[1].get() + 1);
                sync(round, undo)
            }),
        ],
    )?;
    // As it was.
    if !undo {
        for (index, done) in turn.get().into_iter().enumerate() {
            if rounds[index].get() > done {
                match index {
                    0 => commit(done, true)?,
                    _ => sync(done, true)?,
                }
            }
        }
    }
    Ok(measured)
}

/// Prints medians and 99th percentiles.
fn percentiles(title: &str, measured: &[Measured]) {
    println!("\n{title}");
    println!(
        "  {:<44} {:>12} {:>12} {:>12} {:>12} {:>8}",
        "", "CPU", "CPU p99", "clock", "clock p99", "ratio"
    );
    for one in measured {
        let [cpu, cpu_p99, wall, wall_p99] =
            [one.cpu, one.cpu_p99, one.wall, one.wall_p99].map(|time| format!("{time:.1?}"));
        println!(
            "  {:<44} {cpu:>12} {cpu_p99:>12} {wall:>12} {wall_p99:>12} {:>8.3}",
            one.name, one.ratio
        );
    }
}

/// Each endpoint of a deployment is replaced by another one, one after the other.
fn rolling(cluster: Cluster) -> Result {
    let mut both = Both::new(cluster)?;
    let Both {
        floor,
        proxy,
        services,
        ..
    } = &mut both;
    let number = cluster.services / 2;
    let prepared = cluster.replaced(number)?;
    let (floor, syncing) = (RefCell::new(floor), RefCell::new((proxy, services)));
    let restarted = [Cell::new(false), Cell::new(false)];
    let set = |replaced| -> Result {
        let (proxy, services) = &mut *syncing.borrow_mut();
        cluster.set_endpoints(services, number, cluster.after_replacing(replaced));
        proxy.sync(services)?;
        Ok(())
    };
    let measured = alternate_prepared::<BoxError>(
        31,
        &mut || {
            if restarted[0].replace(false) {
                let mut floor = floor.borrow_mut();
                prepared
                    .iter()
                    .try_for_each(|there| floor.commit(&there.undone))?;
            }
            if restarted[1].replace(false) {
                // Back again one by one, so that each has its place.
                (0..cluster.endpoints).rev().try_for_each(set)?;
            }
            Ok(())
        },
        &mut [
            ("floor: the prepared bytes", &mut || {
                restarted[0].set(true);
                let mut floor = floor.borrow_mut();
                Ok(prepared
                    .iter()
                    .try_for_each(|there| floor.commit(&there.done))?)
            }),
            ("services.set_slice() and sync(), one by one", &mut || {
                restarted[1].set(true);
                (1..=cluster.endpoints).try_for_each(set)
            }),
        ],
    )?;
    percentiles(
        &format!(
            "rolling restart of {} endpoints, of {} services with as many",
            cluster.endpoints, cluster.services
        ),
        &measured,
    );
    let each = measured[1].cpu / cluster.endpoints as u32;
    within("each of them", each, CHANGE);
    Ok(())
}

/// A proxy that starts where one was: what is there is read, and all of it is right.
fn agent(cluster: Cluster) -> Result {
    let mut services = cluster.services();
    drop(Cluster::load(&mut services, Layout::Flat, true)?);
    let mut floor = Floor::open()?;
    let (family, table) = Cluster::table();
    let sets = Cluster::SETS.map(|set| Request::elements(family, table, set));
    let kept = RefCell::new(None);
    let floor: Contender<'_, BoxError> = ("floor: the elements, thrown away", &mut || {
        black_box(floor.dump_each(&sets)?);
        Ok(())
    });
    let measured = alternate_prepared(
        9,
        &mut || {
            kept.take();
            Ok(())
        },
        &mut [
            floor,
            ("ServiceProxy::open() and sync()", &mut || {
                kept.replace(Some(Cluster::load(&mut services, Layout::Flat, true)?));
                Ok(())
            }),
        ],
    )?;
    let title = format!("restart of the agent, of {} services", cluster.services);
    report(&title, &measured, None);
    Ok(())
}

/// What the services and the proxy take of memory, with what the first sync left of its own.
fn memory(cluster: Cluster) -> Result {
    let before = resident()?;
    let mut services = cluster.services();
    let of_services = resident()?.saturating_sub(before);
    let proxy = Cluster::load(&mut services, Layout::Flat, true)?;
    let grown = resident()?.saturating_sub(before);
    black_box((&services, &proxy));
    let endpoints = cluster.services * cluster.endpoints;
    println!(
        "\nmemory of {} services with {endpoints} endpoints",
        cluster.services
    );
    for (what, bytes) in [
        ("Services", of_services),
        ("growth of the process, proxy included", grown),
    ] {
        let each = bytes as f64 / endpoints as f64;
        println!(
            "  {what:<44} {:>12} {:>12} an endpoint{}",
            format!("{:.1} MB", bytes as f64 / 1e6),
            format!("{each:.0} bytes"),
            verdict(each, MEMORY),
        );
    }
    Ok(())
}
