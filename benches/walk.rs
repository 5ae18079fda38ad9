//! A packet's walk through a kube-proxy's ruleset that is there as a snapshot, or as legacy tables: to a service whose rule
//! stands first, in the middle or last in `KUBE-SERVICES`, and to none.
//!
//! What walks share is made by the first of them, and is measured by itself.
//!
//! `cargo bench --features measure --bench walk [-- CHAINS …]`

mod common;

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use chainwright::Retry;
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Family as Ip, Iptables};
use chainwright::legacy::{self, LockPolicy};
use chainwright::measure::{Contender, KubeProxy, alternate};
use chainwright::nft::expr::Immediate;
use chainwright::nft::{Family, Rule, Scope, Transaction};
use chainwright::walk::{Direction, Node, Options, Outcome, Packet, Rules};
use common::{BoxError, Result, counts, in_sandbox, loaded, report};

const ROUNDS: usize = 51;
/// From how many chains on there is a goal, and that: what a walk takes.
const LARGE: usize = 50_000;
const GOAL: Duration = Duration::from_millis(1);

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

/// Walks to each kind of place, and a first one through rules made anew.
fn walks<'r>(
    title: &str,
    chains: usize,
    rules: &Rules<'r>,
    mut anew: impl FnMut() -> Rules<'r>,
) -> Result {
    let node = Node {
        addresses: Some(Vec::new()),
        ..Node::default()
    };
    let options = Options::default();
    let services = chains / 2;
    let walk = |rules: &Rules<'_>, number: usize| {
        let walk = rules.walk(&packet(number), &node, &options);
        let [end] = &walk.ends[..] else {
            return Err(BoxError::from(format!("not one end: {walk}")));
        };
        let translated = end.packet.destination.known() != Some("10.255.255.255");
        if end.outcome != Outcome::Forwarded || translated != (number < services) {
            return Err(BoxError::from(format!("another end: {walk}")));
        }
        black_box(walk);
        Ok(())
    };
    let none = (1 << 24) - 1;
    let mut first = || walk(rules, 0);
    let mut middle = || walk(rules, services / 2);
    let mut last = || walk(rules, services - 1);
    let mut nobody = || walk(rules, none);
    let mut made = || {
        black_box(anew());
        Ok(())
    };
    let mut contenders: [Contender<'_, BoxError>; 5] = [
        ("the first service", &mut first),
        ("one in the middle", &mut middle),
        ("the last one", &mut last),
        ("none", &mut nobody),
        ("Rules made ready", &mut made),
    ];
    let measured = alternate(ROUNDS, &mut contenders)?;
    report(title, &measured, None);
    if chains >= LARGE {
        for one in &measured[..4] {
            let word = if one.wall <= GOAL { "kept" } else { "MISSED" };
            println!("  {}: {:.1?}, goal {GOAL:?}: {word}", one.name, one.wall);
        }
    }
    let fresh = anew();
    let begun = std::time::Instant::now();
    walk(&fresh, services - 1)?;
    println!("  the very first walk: {:.1?}", begun.elapsed());
    Ok(())
}

fn nft(chains: usize) -> Result {
    let mut nft = loaded(chains)?;
    let mut tx = Transaction::new();
    let jump = Rule::new(Family::IP, "nat", "PREROUTING").with(&Immediate::jump("KUBE-SERVICES"));
    tx.add(&jump)?;
    nft.commit(&tx)?;
    let snapshot = nft.snapshot(Scope::all())?;
    let anew = || Rules::new().with_nft(&snapshot);
    let title = format!("walk through {chains} chains of nf_tables");
    walks(&title, chains, &anew(), anew)
}

fn legacy(chains: usize) -> Result {
    // In a namespace of one's own.
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
    let anew = || Rules::new().with_legacy([&table]);
    let title = format!("walk through {chains} chains of the legacy table");
    walks(&title, chains, &anew(), anew)
}
