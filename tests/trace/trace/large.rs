//! Traces through rulesets of 50,000 chains: a packet meets the same few rules, wherever they are.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use chainwright::Retry;
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Family as Ip, Iptables};
use chainwright::legacy::{self, LockPolicy};
use chainwright::nft::expr::Immediate;
use chainwright::nft::{Family, Rule, Scope, Transaction};
use chainwright_bench::KubeProxy;
use chainwright_trace::{Direction, Node, Options, Outcome, Packet, Rules};

use crate::common::{connect, sandbox};

const RULESET: KubeProxy = KubeProxy { chains: 50_000 };

/// To the first service, one in the middle, the last, and to none.
fn measure_traces(title: &str, rules: &Rules<'_>) {
    let node = Node {
        addresses: Some(Vec::new()),
        ..Node::default()
    };
    let services = RULESET.chains / 2;
    for number in [0, services / 2, services - 1, (1 << 24) - 1] {
        let [_, a, b, c] = (number as u32).to_be_bytes();
        let to = SocketAddr::new(Ipv4Addr::new(10, a, b, c).into(), 80);
        let from = "10.244.200.200:40000".parse().unwrap();
        let mut packet = Packet::tcp(Direction::Forwarded, from, to);
        packet.in_interface = Some("eth0".into());
        packet.out_interface = Some("eth1".into());
        for turn in ["first", "second"] {
            let begun = Instant::now();
            let trace = rules.trace(&packet, &node, &Options::default());
            println!(
                "{title}, service {number}, {turn} trace: {:.1?}",
                begun.elapsed()
            );
            let [end] = &trace.ends[..] else {
                panic!("{trace}");
            };
            assert_eq!(end.outcome, Outcome::Forwarded);
            let there = number < services;
            let destination = match there {
                true => format!("10.244.{b}.{c}:8080"),
                false => to.to_string(),
            };
            let packet = &end.packet;
            assert_eq!(
                format!("{}:{}", packet.destination, packet.destination_port),
                destination
            );
            let chains: Vec<_> = end
                .steps
                .iter()
                .map(|step| step.chain.to_string())
                .collect();
            assert_eq!(chains.len(), if there { 5 } else { 3 }, "{trace}");
        }
    }
}

#[test]
fn traces_a_large_nf_tables_ruleset() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    RULESET.load(&mut nft).unwrap();
    let mut tx = Transaction::new();
    let jump = Immediate::jump("KUBE-SERVICES");
    tx.add(&Rule::new(Family::IP, "nat", "PREROUTING").with(&jump))
        .unwrap();
    nft.commit(&tx).unwrap();
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let begun = Instant::now();
    let rules = Rules::new().with_nft(&snapshot);
    println!("nf_tables, preparation: {:.1?}", begun.elapsed());
    measure_traces("nf_tables", &rules);
}

#[test]
fn traces_a_large_legacy_table() {
    let sandbox = sandbox();
    let table = sandbox
        .run(|| {
            let mut iptables = Iptables::legacy()
                .unwrap()
                .with_lock(LockPolicy::None, Retry::ONCE);
            let text = RULESET.to_iptables_save().replacen(
                "-A KUBE-SERVICES",
                "-A PREROUTING -j KUBE-SERVICES\n-A KUBE-SERVICES",
                1,
            );
            iptables
                .restore(Ip::Ipv4, &text, &RestoreOptions::default())
                .unwrap();
            let connection = legacy::Connection::open(legacy::Family::Ipv4).unwrap();
            connection.read("nat").unwrap().in_use().unwrap()
        })
        .unwrap();
    measure_traces("legacy", &Rules::new().with_legacy([&table]));
}
