//! Tracing a packet through a kube-proxy's ruleset in a snapshot, or in legacy tables: to a service whose rule is
//! first, in the middle or last in `KUBE-SERVICES`, and to none.
//!
//! The first trace prepares data that later ones share: that, and the jump graph of the same ruleset, are measured
//! together with reading the ruleset.
//!
//! `cargo bench --bench trace [-- CHAINS …]`

mod common;

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use chainwright::Retry;
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Family as Ip, Iptables};
use chainwright::legacy::{self, LockPolicy};
use chainwright::nft::expr::Immediate;
use chainwright::nft::{Family, Rule, Scope, Transaction};
use chainwright_bench::{Contender, KubeProxy, Measured, alternate};
use chainwright_trace::graph::{Graph, ViewOptions};
use chainwright_trace::{Direction, Node, Options, Outcome, Packet, Rules};
use common::{BoxError, Result, counts, in_sandbox, loaded, report};

const ROUNDS: usize = 51;
/// Smallest number of chains with a goal, and the goal for the time of a trace.
const LARGE: usize = 50_000;
const GOAL: Duration = Duration::from_millis(1);
/// The goal for creating and printing a graph.
const GRAPH_GOAL: Duration = Duration::from_secs(2);
/// Number of repetitions of slow operations.
const FEW: usize = 5;

fn main() -> Result {
    for chains in counts(&[1_000, 10_000, 50_000]) {
        in_sandbox(|| nft(chains))?;
        in_sandbox(|| legacy(chains))?;
    }
    Ok(())
}

/// A packet to the service with this number.
fn packet(number: usize) -> Packet {
    let [_, a, b, c] = (number as u32).to_be_bytes();
    let to = SocketAddr::new(Ipv4Addr::new(10, a, b, c).into(), 80);
    let from = SocketAddr::new(Ipv4Addr::new(10, 244, 200, 200).into(), 40_000);
    let mut packet = Packet::tcp(Direction::Forwarded, from, to);
    packet.in_interface = Some("eth0".into());
    packet.out_interface = Some("eth1".into());
    packet
}

/// Traces to each kind of position, and what is prepared from a ruleset that `read` reads: `prepare` for traces, `add` for
/// a graph.
fn all<'r>(
    title: &str,
    chains: usize,
    read: &mut dyn FnMut() -> Result,
    prepare: impl Fn() -> Rules<'r>,
    add: impl Fn(&mut Graph),
) -> Result {
    let rules = &prepare();
    let node = Node {
        addresses: Some(Vec::new()),
        ..Node::default()
    };
    let options = Options::default();
    let services = chains / 2;
    let trace = |rules: &Rules<'_>, number: usize| {
        let trace = rules.trace(&packet(number), &node, &options);
        let [end] = &trace.ends[..] else {
            return Err(BoxError::from(format!("not one end: {trace}")));
        };
        let translated = end.packet.destination.known() != Some("10.255.255.255");
        if end.outcome != Outcome::Forwarded || translated != (number < services) {
            return Err(BoxError::from(format!("another end: {trace}")));
        }
        black_box(trace);
        Ok(())
    };
    let none = (1 << 24) - 1;
    let mut first = || trace(rules, 0);
    let mut middle = || trace(rules, services / 2);
    let mut last = || trace(rules, services - 1);
    let mut no_match = || trace(rules, none);
    let mut contenders: [Contender<'_, BoxError>; 4] = [
        ("the first service", &mut first),
        ("one in the middle", &mut middle),
        ("the last one", &mut last),
        ("none", &mut no_match),
    ];
    let measured = alternate(ROUNDS, &mut contenders)?;
    report(title, &measured, None);
    goals(chains, &measured, GOAL);

    let mut made = || {
        black_box(prepare());
        Ok(())
    };
    let mut prepared_and_traced = || trace(&prepare(), services - 1);
    let graph = || {
        let mut graph = Graph::new();
        add(&mut graph);
        graph
    };
    let found = graph();
    if found.chain_count() < chains {
        return Err(format!("a graph of {} chains", found.chain_count()).into());
    }
    let mut as_tree = || {
        let graph = graph();
        black_box(graph.findings());
        black_box(graph.view(&ViewOptions::default()).tree(80).to_string());
        Ok(())
    };
    let mut as_picture = || {
        let graph = graph();
        black_box(graph.view(&ViewOptions::default()).svg().to_string());
        Ok(())
    };
    let mut each_chain = || {
        let graph = graph();
        let all = ViewOptions {
            full: true,
            ..ViewOptions::default()
        };
        black_box(graph.view(&all).dot().to_string());
        Ok(())
    };
    let mut contenders: [Contender<'_, BoxError>; 6] = [
        ("the ruleset read", read),
        ("trace::Rules made ready", &mut made),
        ("the same, and the first trace", &mut prepared_and_traced),
        ("graph: findings, and a tree", &mut as_tree),
        ("graph as a picture (SVG)", &mut as_picture),
        ("graph of each chain for Graphviz", &mut each_chain),
    ];
    let measured = alternate(FEW, &mut contenders)?;
    report(
        &format!("{title}: data shared by traces, and graphs"),
        &measured,
        None,
    );
    goals(chains, &measured[3..], GRAPH_GOAL);
    Ok(())
}

/// Prints whether each meets its goal, if there is one.
fn goals(chains: usize, measured: &[Measured], goal: Duration) {
    if chains < LARGE {
        return;
    }
    for one in measured {
        let word = if one.wall <= goal { "kept" } else { "MISSED" };
        println!("  {}: {:.1?}, goal {goal:?}: {word}", one.name, one.wall);
    }
}

fn nft(chains: usize) -> Result {
    let mut nft = loaded(chains)?;
    let mut tx = Transaction::new();
    let jump = Rule::new(Family::IP, "nat", "PREROUTING").with(&Immediate::jump("KUBE-SERVICES"));
    tx.add(&jump)?;
    nft.commit(&tx)?;
    let snapshot = nft.snapshot(Scope::all())?;
    let title = format!("trace through {chains} chains of nf_tables");
    let mut read = || {
        black_box(nft.snapshot(Scope::all())?);
        Ok(())
    };
    all(
        &title,
        chains,
        &mut read,
        || Rules::new().with_nft(&snapshot),
        |graph| graph.add_snapshot(&snapshot),
    )
}

fn legacy(chains: usize) -> Result {
    // No lock is needed in a private namespace.
    let mut iptables = Iptables::legacy()?.with_lock(LockPolicy::None, Retry::ONCE);
    let text = KubeProxy { chains }.to_iptables_save();
    let text = text.replacen(
        "-A KUBE-SERVICES",
        "-A PREROUTING -j KUBE-SERVICES\n-A KUBE-SERVICES",
        1,
    );
    iptables.restore(Ip::Ipv4, &text, &RestoreOptions::default())?;
    let connection = legacy::Connection::open(legacy::Family::Ipv4)?;
    let table = connection.read("nat")?.in_use().ok_or("no table nat")?;
    let title = format!("trace through {chains} chains of the legacy table");
    let mut read = || {
        black_box(connection.read("nat")?.in_use());
        Ok(())
    };
    all(
        &title,
        chains,
        &mut read,
        || Rules::new().with_legacy([&table]),
        |graph| graph.add_legacy(&table),
    )
}
