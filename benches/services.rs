//! Services in the flat layout, from objects to the commit, compared with the same messages, encoded beforehand: a cold
//! start; one endpoint or service added or removed, with few and with many existing services; a rolling restart; a
//! restart of the agent; memory; and the first packet of a connection, compared with the other layouts.
//!
//! `cargo bench --bench services [-- SERVICES… [memory|cold|changes|rolling|restart|packets]…]`: the numbers of
//! existing services for changes and for packets, and the measurements to run. `chainwright-bench services` measures
//! all layouts.
//!
//! The baseline of a cold start is the resulting ruleset, read back from the kernel by [`Cluster::as_datagrams`]: the
//! same objects and elements, except for the order of a set's elements, of chains and of sets, and for attributes that
//! the kernel lists and the proxy need not send; the title contains both lengths. The baseline of a change is the same
//! element operations, in bytes, in its own namespace with the same services. The baseline's table has no owner; an
//! owner costs the kernel nothing.

mod common;

use std::time::Duration;

use chainwright_bench::proxy::{
    Memory, Path, changes, cold, first_packets, memory, restart, rolling,
};
use chainwright_bench::{Cluster, Measured};
use chainwright_kube::service::Layout;
use chainwright_testing::become_namespace_root;
use common::{Result, counts, in_sandbox, report, verdict};

/// The goals: a cold start as a multiple of its baseline, and in CPU time.
const COLD: f64 = 1.2;
/// One change: median CPU time, and its largest growth from the fewest services to the most.
const CHANGE: Duration = Duration::from_micros(100);
const GROWTH: f64 = 1.5;
/// Bytes of memory per endpoint.
const MEMORY: f64 = 1024.0;
/// The first packet with the most services, as a multiple of that with the fewest.
const PACKET: f64 = 1.2;
const ROUNDS: usize = 1_000;
/// Number of endpoints of a deployment that is restarted.
const DEPLOYMENT: usize = 100;
/// The numbers of services with which packets are compared with the other layouts, whose times grow with the services.
const OTHERS: [usize; 2] = [10, 1_000];

const ONE_EACH: Cluster = Cluster::new(45_000, 1);
const MANY_EACH: Cluster = Cluster::new(5_000, 50);
const FLAT: [Layout; 1] = [Layout::Flat];

fn main() -> Result {
    become_namespace_root()?; // before any thread starts
    // First, before any freed memory can be reused.
    if wanted("memory") {
        memory_per_cluster(&[MANY_EACH, ONE_EACH])?;
    }
    if wanted("cold") {
        in_sandbox(|| start(ONE_EACH, Duration::from_millis(500)))?;
        in_sandbox(|| start(MANY_EACH, Duration::from_secs(1)))?;
    }
    if wanted("changes") {
        growth(&counts(&[100, 10_000, 100_000]))?;
    }
    if wanted("rolling") {
        deployment(Cluster::new(1_000, 1))?;
    }
    if wanted("restart") {
        in_sandbox(|| {
            let title = format!("restart of the agent, of {} services", ONE_EACH.services);
            report(&title, &restart(ONE_EACH, Layout::Flat, 9)?, None);
            Ok(())
        })?;
    }
    if wanted("packets") {
        packets(&counts(&[10, 1_000, 10_000, 100_000]))?;
    }
    Ok(())
}

/// Whether to run this measurement: it was requested, or none was.
fn wanted(what: &str) -> bool {
    let words: Vec<_> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-') && word.parse::<usize>().is_err())
        .collect();
    words.is_empty() || words.iter().any(|word| word == what)
}

/// Prints whether a time meets its goal.
fn check_goal(name: &str, time: Duration, goal: Duration) {
    let word = if time <= goal { "kept" } else { "MISSED" };
    println!("  {name}: {time:.1?} of CPU  goal {goal:?}: {word}");
}

/// A start in an empty namespace.
fn start(cluster: Cluster, goal: Duration) -> Result {
    let cold = cold(cluster, Layout::Flat, 9)?;
    let title = format!(
        "cold start: {} services with {} endpoints ({:.1} MB in {} parts)",
        cluster.services,
        cluster.services * cluster.endpoints,
        cold.bytes as f64 / 1e6,
        cold.parts,
    );
    report(&title, &cold.contenders, COLD);
    check_goal("from objects to committed", cold.contenders[1].cpu, goal);
    Ok(())
}

/// One change with this many other services.
fn growth(present: &[usize]) -> Result {
    let mut medians: Vec<Vec<(&str, Duration)>> = Vec::new();
    for &services in present {
        let mut of_size = Vec::new();
        for (name, measured) in changes(Cluster::new(services, 1), &FLAT, ROUNDS)? {
            percentiles(&format!("{name}, of {services} services"), &measured);
            check_goal(name, measured[1].cpu, CHANGE);
            of_size.push((name, measured[1].cpu));
        }
        medians.push(of_size);
    }
    if let (Some(few), Some(many)) = (medians.first(), medians.last()) {
        println!("\na change where most services are, as a multiple of one where fewest are");
        for ((name, few), (_, many)) in few.iter().zip(many) {
            let ratio = many.as_secs_f64() / few.as_secs_f64();
            println!("  {name:<44} {ratio:>34.3}{}", verdict(ratio, GROWTH));
        }
    }
    Ok(())
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

fn deployment(cluster: Cluster) -> Result {
    let measured = rolling(cluster, DEPLOYMENT, &FLAT, 31)?;
    percentiles(
        &format!(
            "rolling restart of {DEPLOYMENT} endpoints of one of {} services",
            cluster.services
        ),
        &measured,
    );
    let each = measured[1].cpu / DEPLOYMENT as u32;
    check_goal("each of them", each, CHANGE);
    Ok(())
}

/// All sizes in the flat layout, and those that the other layouts can handle, round by round.
fn packets(sizes: &[usize]) -> Result {
    let flat = sizes.iter().map(|&services| Path {
        layout: Layout::Flat,
        services,
    });
    let others = Layout::ALL.into_iter().filter(|l| *l != Layout::Flat);
    let others = others.flat_map(|layout| OTHERS.map(|services| Path { layout, services }));
    let paths: Vec<Path> = flat.chain(others).collect();
    let measured = first_packets(&paths, ROUNDS)?;
    percentiles(
        "the first packet of a connection (ratio: time on the clock)",
        &measured,
    );
    if let Some(most) = sizes.len().checked_sub(1) {
        let ratio = measured[most].wall.as_secs_f64() / measured[0].wall.as_secs_f64();
        println!(
            "  {:<44} {ratio:>34.3}{}",
            "most services / fewest",
            verdict(ratio, PACKET)
        );
    }
    Ok(())
}

/// Memory of the services and the proxy, including what the first sync left allocated.
fn memory_per_cluster(clusters: &[Cluster]) -> Result {
    let all = clusters
        .iter()
        .map(|cluster| memory(*cluster, Layout::Flat));
    let all: Vec<Memory> = all.collect::<std::result::Result<_, _>>()?;
    for (cluster, memory) in clusters.iter().zip(&all) {
        let endpoints = cluster.services * cluster.endpoints;
        println!(
            "\nmemory of {} services with {endpoints} endpoints",
            cluster.services
        );
        for (what, bytes) in [
            ("Services", memory.services),
            ("growth of the process, proxy included", memory.all),
        ] {
            let each = bytes as f64 / endpoints as f64;
            println!(
                "  {what:<44} {:>12} {:>12} an endpoint{}",
                format!("{:.1} MB", bytes as f64 / 1e6),
                format!("{each:.0} bytes"),
                verdict(each, MEMORY),
            );
        }
    }
    Ok(())
}
