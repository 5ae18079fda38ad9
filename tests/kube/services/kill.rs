//! A proxy that is killed at any moment of a sync: connections continue, and the next proxy repairs the tables.
//!
//! `SERVICE_KILLS=200` is the full length.

use std::collections::BTreeMap;

use chainwright::iptables::{Backend, Family};
use chainwright::nft::{Connection, Scope};
use chainwright_kube::service::{Layout, ServiceProxy, Services};
use chainwright_testing::Sandbox;

use crate::common::child_process::{Victim, notify};
use crate::common::random::Random;
use crate::common::tools::Tools;
use crate::common::{connect, orphaned, report};
use crate::services::listed::assert_same;
use crate::services::net::Net;
use crate::services::open_connections::{
    Watch, change_other, config, listed_after_full_sync, open, watched,
};
use crate::services::proxy::sync;
use crate::services::tables::listed;

const LEGACY: Layout = Layout::Iptables(Backend::Legacy);

/// Number of services in addition to the watched one.
const OTHERS: u8 = 40;
/// Number of services that change in one sync.
const AT_ONCE: u8 = 8;

/// All services of a numbered state.
fn services(state: u64) -> Services {
    let mut services = watched();
    for host in 0..OTHERS {
        change(&mut services, host, state);
    }
    services
}

/// Sets one service to its state; half of them are the same in all states.
fn change(services: &mut Services, host: u8, state: u64) {
    let state = if host.is_multiple_of(2) { 0 } else { state };
    let mut random = Random(state << 8 | u64::from(host));
    change_other(services, 10 + host, &mut random);
}

/// The situations in which a proxy is killed.
const WAYS: [&str; 2] = ["restart", "change"];

/// The victim: brings the kernel from one state to another.
pub(crate) fn victim(task: &str) {
    let words: Vec<_> = task.split(' ').collect();
    let [way, layout, from, to] = words[..] else {
        panic!("{task}");
    };
    let layout = Layout::ALL[layout.parse::<usize>().unwrap()];
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    let sync = |proxy: &mut ServiceProxy, services: &mut Services| {
        let synced = proxy.sync(services);
        synced.unwrap_or_else(|error| panic!("{}", report(&error)));
    };
    match way {
        // It starts, and finds another state than the desired one.
        "restart" => {
            let mut services = services(to);
            notify(b"b");
            let mut proxy = ServiceProxy::open(layout, config()).unwrap();
            sync(&mut proxy, &mut services);
        }
        // It runs, and services change, some at a time.
        "change" => {
            let mut services = services(from);
            let mut proxy = ServiceProxy::open(layout, config()).unwrap();
            sync(&mut proxy, &mut services);
            notify(b"b");
            for first in (0..OTHERS).step_by(AT_ONCE.into()) {
                for host in first..first + AT_ONCE {
                    change(&mut services, host, to);
                }
                sync(&mut proxy, &mut services);
            }
        }
        _ => panic!("{task}"),
    }
}

/// Shows that chains were not recreated: in nf_tables the handles of tables, sets and chains, in the legacy tables the
/// packet counters of rules for the watched service.
fn marks(layout: Layout, nft: &mut Connection, node: &Sandbox) -> BTreeMap<String, u64> {
    if layout == LEGACY {
        let text = Tools::new(node).run("iptables-legacy-save -c -t nat");
        let counted = text
            .lines()
            .filter(|line| line.contains("\"default/watched"));
        let counted = counted.filter_map(|line| {
            let (packets, rest) = line.strip_prefix('[')?.split_once(':')?;
            let (_, rule) = rest.split_once("] ")?;
            Some((rule.to_owned(), packets.parse().unwrap()))
        });
        return counted.collect();
    }
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let mut marks = BTreeMap::new();
    for table in snapshot.tables() {
        let name = table.table().name().to_string();
        marks.insert(name.clone(), table.table().handle());
        for chain in table.chains() {
            let chain = chain.chain();
            let of = format!("chain {name} {}", chain.name());
            marks.insert(of, chain.handle());
        }
        for set in table.sets() {
            // Anonymous sets belong to rules; a set of clients is replaced if its timeout changes.
            let set = set.set();
            if !set.name().starts_with(b"__") && !set.name().starts_with(b"affinity-") {
                let of = format!("set {name} {}", set.name());
                marks.insert(of, set.handle());
            }
        }
    }
    marks
}

/// This many kills during syncs.
pub(crate) fn killed(layout: Layout, kills: usize) {
    let net = Net::new(Family::Ipv4);
    let mut nft = connect(&net.node);
    let number = Layout::ALL.iter().position(|one| *one == layout).unwrap();
    let mut random = Random::new();
    let mut now = 1;
    sync(&net.node, &mut open(&net, layout), &mut services(now));
    let watch = Watch::new(&net);
    let mut longest = [std::time::Duration::ZERO; 2];
    let (mut inside, mut after, mut repaired) = (0, 0, 0);
    let checked = watch.during(|goes_on| {
        let mut within = longest;
        while inside < kills && goes_on() {
            orphaned(&mut nft);
            let to = now + 1;
            let way = random.below(2);
            let task = format!("{} {number} {now} {to}", WAYS[way]);
            let victim = Victim::start(&net.node, "services::victim", &task);
            if longest[way].is_zero() {
                // The first one is left alone, to measure how long it takes.
                let begun = victim.begun;
                assert!(victim.end(), "the victim should complete its task");
                longest[way] = begun.elapsed();
                within[way] = longest[way];
            } else if victim.kill(random.within(within[way])) {
                after += 1;
                within[way] = within[way].mul_f64(0.9);
                assert!(
                    after < 100 + kills * 10,
                    "too few kills happen during the task"
                );
            } else {
                inside += 1;
                within[way] = longest[way].min(within[way].mul_f64(1.05));
            }
            orphaned(&mut nft);
            let before = marks(layout, &mut nft, &net.node);
            let mut proxy = open(&net, layout);
            let transactions = sync(&net.node, &mut proxy, &mut services(to)).transactions;
            // The table of this layout takes a separate transaction to own.
            let repairs = transactions - usize::from(layout == Layout::Nftables);
            let most = match layout {
                LEGACY => 2,
                // Additions, rules and elements that send packets to endpoints, and removals.
                Layout::Flat => 3,
                // The same with firewalls first and separate removals of elements; twice, if the affinity timeout
                // changes.
                Layout::Nftables => 10,
                _ => 1,
            };
            assert!(repairs <= most, "{task}: {repairs} transactions");
            repaired += usize::from(repairs > 0);
            // Objects that exist before and after are the same, with the same handle or counter.
            let after = marks(layout, &mut nft, &net.node);
            let mut same = 0;
            for (what, mark) in &before {
                let Some(now) = after.get(what) else { continue };
                match layout {
                    LEGACY => assert!(now >= mark, "{task}: {what}"),
                    _ => assert_eq!(now, mark, "{task}: {what} was recreated"),
                }
                same += usize::from(*now > 0);
            }
            assert!(same > 3, "{task}: {before:?} {after:?}");
            // The result is the same as without interruption.
            let expected = listed_after_full_sync(layout, &mut services(to));
            assert_same(&task, &listed(layout, &net.node), &expected);
            now = to;
        }
    });
    println!(
        "{layout:?}: {longest:?}; {inside} kills during the task, {after} after its end; {repaired} starts repaired something; \
         {checked} checks during them"
    );
    assert!(repaired > kills / 4, "{repaired}");
    assert!(checked > kills, "{checked}");
}
