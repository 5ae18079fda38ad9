//! Tables that the flat layout finds when it starts, its own and others.

use std::time::Duration;

use chainwright::iptables::Family;
use chainwright::nft::live::{Item, Monitor};
use chainwright_kube::service::{
    Config, Endpoint, Layout, ObjectName, Port, Protocol, Service, ServiceProxy, Services,
    TrafficPolicy,
};
use chainwright_testing::Sandbox;

use crate::common::random::Random;
use crate::common::tools::Tools;
use crate::common::{connect, sandbox};
use crate::services::listed::{Listed, assert_same, of_flat};
use crate::services::proxy::{self, slice, sync, to};
use crate::services::tables::LIST_FLAT;

/// Services of every kind, with up to four endpoints each.
fn services(count: u8) -> Services {
    let mut services = Services::new();
    for i in 0..count {
        let name = format!("service-{i}");
        let object = ObjectName::new("default", &name[..]);
        let mut service = Service::new(object, [[10, 96, 1, i].into()]);
        service.external_ips = vec![[192, 0, 2, i].into()];
        service.load_balancer_ips = vec![[198, 51, 100, i].into()];
        service.source_ranges = vec![format!("203.0.113.0/{}", 24 + i % 8).parse().unwrap()];
        if i % 3 == 0 {
            service.external_traffic_policy = TrafficPolicy::Local;
        }
        if i % 4 == 0 {
            service.session_affinity = Some(Duration::from_secs(60 + u64::from(i % 8)));
        }
        let mut port = Port::new("p", Protocol::Tcp, 80);
        port.node_port = Some(30_000 + u16::from(i));
        services.set_service(service.with_port(port));
        let endpoint = |e| Endpoint {
            node: (e == 0).then(|| "node1".into()),
            ..Endpoint::new([10, 244, e, i].into())
        };
        let endpoints = (0..i % 5).map(endpoint).collect();
        services.set_slice(slice(&name, endpoints, &[to("p", Protocol::Tcp, 8080)]));
    }
    services
}

fn open(node: &Sandbox, own: bool) -> ServiceProxy {
    let mut config = Config::new("node1");
    config.families = vec![Family::Ipv4];
    config.own = own;
    proxy::open(node, Layout::Flat, config)
}

/// Lists the node's content.
fn listed(node: &Sandbox) -> Listed {
    of_flat(&Tools::new(node).run(LIST_FLAT))
}

/// Sets and chains that others emptied are restored by the next complete sync, and the same services keep their
/// numbers.
pub(crate) fn repairs() {
    let node = sandbox();
    let tools = Tools::new(&node);
    let mut proxy = open(&node, false);
    let mut services = services(60);
    sync(&node, &mut proxy, &mut services);
    let before = listed(&node);
    let mut random = Random::new();
    let damaged = [
        "flush map ip kube-services endpoints",
        "flush map ip kube-services groups",
        "flush set ip kube-services cluster-ips",
        "flush map ip kube-services affinity-places",
        "flush map ip kube-services affinity-endpoints",
        "flush set ip kube-services firewall-sources",
        "flush map ip kube-services local-ips",
        "flush set ip kube-services reject-ips",
        "flush map ip kube-services picks",
        "flush chain ip kube-services services",
        "flush chain ip kube-services pick-3",
        "flush chain ip kube-services firewall",
        "add element ip kube-services drop-ips { 10.96.1.3 . tcp . 80 }",
        "add element ip kube-services endpoints { 0x7777 . 0x0 : 10.0.0.1 . 80 }",
        "add chain ip kube-services pick-99",
    ];
    // Each alone, then some together.
    for round in 0..damaged.len() + 30 {
        let what = match damaged.get(round) {
            Some(one) => vec![*one],
            None => (0..3).map(|_| random.pick(&damaged)).collect(),
        };
        for what in &what {
            tools.run(&format!("nft {what}"));
        }
        assert_ne!(listed(&node), before, "{what:?}");
        if round % 2 == 0 {
            proxy.require_full_sync();
        } else {
            proxy = open(&node, false);
        }
        sync(&node, &mut proxy, &mut services);
        assert_same(&what, &listed(&node), &before);
    }
}

/// A different table with the same name is replaced.
pub(crate) fn replaces() {
    for own in [false, true] {
        let node = sandbox();
        let tools = Tools::new(&node);
        tools.run("nft add table ip kube-services");
        tools.run("nft add chain ip kube-services x");
        tools.run("nft add set ip kube-services service-ips { type ipv4_addr; }");
        let mut proxy = open(&node, own);
        let mut services = services(20);
        sync(&node, &mut proxy, &mut services);
        let there = listed(&node);
        assert!(
            !there.iter().any(|(of, _)| of.ends_with("chain x {")),
            "{there:?}"
        );

        let fresh = sandbox();
        let mut proxy = open(&fresh, false);
        services.mark_changed(services.names().cloned().collect::<Vec<_>>());
        sync(&fresh, &mut proxy, &mut services);
        // Except for the table's owner, and its comment if it existed before.
        let inside = |listed: Listed| -> Listed {
            let lines = listed.into_iter();
            lines
                .filter(|(of, _)| !of.ends_with("kube-services { "))
                .collect()
        };
        assert_same(&own, &inside(there), &inside(listed(&fresh)));
    }
}

/// A complete sync that finds no difference commits nothing: in the same process, in another one, and whatever happened
/// before.
pub(crate) fn writes_nothing() {
    for own in [false, true] {
        let node = sandbox();
        let mut services = services(40);
        let mut proxy = open(&node, own);
        sync(&node, &mut proxy, &mut services);
        let mut monitor = node.run(Monitor::open).unwrap().unwrap();
        let mut count = |what: &str| {
            let mut events = 0;
            while let Some(item) = monitor.receive_within(Duration::from_millis(100)).unwrap() {
                let Item::Change(change) = item else {
                    panic!("{what}: {item:?}");
                };
                events += change.events().count();
            }
            events
        };
        for _ in 0..2 {
            proxy.require_full_sync();
            let synced = sync(&node, &mut proxy, &mut services);
            assert_eq!((synced.is_full, synced.transactions), (true, 0));
            assert_eq!(count("a sync without changes"), 0);
        }
        drop(proxy);
        let mut proxy = open(&node, own);
        assert_eq!(sync(&node, &mut proxy, &mut services).transactions, 0);
        // A change of the owner is an event.
        assert!(count("a restart") <= 1);
        // A flushed chain is written, and no other.
        if !own {
            Tools::new(&node).run("nft flush chain ip kube-services masquerading");
            count("a flush");
            proxy.require_full_sync();
            assert_eq!(sync(&node, &mut proxy, &mut services).transactions, 1);
            // The chain itself, and its rules.
            assert_eq!(count("a repair"), 3);
        }
    }
}

/// If no table has an owner, as before Linux 6.9, a change of both families is one change of each: neither mistakes the
/// other's commit for one of another program, which would make it read everything.
pub(crate) fn own_commits(layout: Layout) {
    let node = sandbox();
    let mut config = Config::new("node1");
    config.own = false;
    let mut proxy = proxy::open(&node, layout, config);
    let mut services = Services::new();
    let set = |services: &mut Services, endpoints: u8| {
        let name = ObjectName::new("default", "web");
        let ips: [std::net::IpAddr; 2] = [[10, 96, 0, 1].into(), "fd00:96::1".parse().unwrap()];
        let service = Service::new(name, ips);
        services.set_service(service.with_port(Port::new("p", Protocol::Tcp, 80)));
        for version in [4, 6] {
            let endpoint = |i: u8| match version {
                4 => Endpoint::new([10, 244, 0, i].into()),
                _ => Endpoint::new(format!("fd00:244::{i:x}").parse().unwrap()),
            };
            let endpoints = (1..=endpoints).map(endpoint).collect();
            let mut slice = slice("web", endpoints, &[to("p", Protocol::Tcp, 8080)]);
            slice.name = ObjectName::new("default", format!("web-{version}"));
            services.set_slice(slice);
        }
    };
    set(&mut services, 1);
    sync(&node, &mut proxy, &mut services);
    // A complete sync repairs damage by others; an ordinary change does not look for it.
    let damaged = match layout {
        Layout::Flat => "chain ip kube-services masquerading",
        _ => "chain ip kube-proxy masquerading",
    };
    let tools = Tools::new(&node);
    let is_damaged = || {
        !tools
            .run(&format!("nft list {damaged}"))
            .contains("masquerade")
    };
    tools.run(&format!("nft flush {damaged}"));
    set(&mut services, 2);
    sync(&node, &mut proxy, &mut services);
    assert!(!is_damaged(), "{layout:?}: the damage should be repaired");
    // From here on no other program commits: an unnecessary check would read the whole table.
    let mut monitor = node.run(Monitor::open).unwrap().unwrap();
    for endpoints in [3, 2, 4, 1, 5, 0, 2] {
        set(&mut services, endpoints);
        let generation = connect(&node).generation().unwrap().number();
        let synced = sync(&node, &mut proxy, &mut services);
        assert!(!synced.is_full, "{layout:?}");
        let made = connect(&node).generation().unwrap().number() - generation;
        assert_eq!(
            made as usize, synced.transactions,
            "{layout:?}, {endpoints}"
        );
        let mut generations = 0;
        while let Some(item) = monitor.receive_within(Duration::from_millis(50)).unwrap() {
            let Item::Change(change) = item else {
                panic!("{layout:?}: {item:?}");
            };
            generations += 1;
            let rules = change.events().filter(|event| {
                event.chain().is_some_and(|chain| {
                    let base: [&[u8]; 3] = [b"masquerading", b"services", b"nat-prerouting"];
                    base.contains(&chain.as_ref())
                })
            });
            assert_eq!(
                rules.count(),
                0,
                "{layout:?}, {endpoints}: rules should not change"
            );
        }
        assert_eq!(generations, synced.transactions, "{layout:?}, {endpoints}");
    }
}
