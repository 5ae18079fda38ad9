//! Services that the kernel refuses are skipped individually.

use crate::services::proxy;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::tools::Tools;
use crate::common::{connect, report, sandbox};
use crate::services::proxy::{slice, to};
use chainwright::iptables::{Backend, Family};
use chainwright::nft::{Table, TableFlags, Transaction};
use chainwright_kube::service::{
    ChainKind, Config, Endpoint, Layout, ObjectName, Port, PortName, Protocol, Service,
    ServiceProxy, Services, Synced, TrafficPolicy,
};
use chainwright_testing::Sandbox;

struct Node {
    sandbox: Sandbox,
    services: Services,
    proxy: ServiceProxy,
}

fn open(node: &Sandbox, layout: Layout) -> ServiceProxy {
    let mut config = Config::new("node1");
    config.families = vec![Family::Ipv4];
    proxy::open(node, layout, config)
}

fn name(number: u8) -> ObjectName {
    ObjectName::new("default", format!("service-{number}"))
}

impl Node {
    fn new(layout: Layout) -> Self {
        let sandbox = sandbox();
        let proxy = open(&sandbox, layout);
        let mut node = Self {
            sandbox,
            services: Services::new(),
            proxy,
        };
        (0..20).for_each(|number| node.set(number, 1, None));
        node
    }

    /// Sets a service with this number of endpoints.
    fn set(&mut self, number: u8, endpoints: u8, affinity: Option<Duration>) {
        let mut service = Service::new(name(number), [[10, 96, 0, number].into()]);
        service.session_affinity = affinity;
        self.services
            .set_service(service.with_port(Port::new("p", Protocol::Tcp, 80)));
        let endpoints = (0..endpoints).map(|last| Endpoint::new([10, 244, number, last].into()));
        self.services.set_slice(slice(
            &name(number).name,
            endpoints.collect(),
            &[to("p", Protocol::Tcp, 8080)],
        ));
    }

    fn sync(&mut self) -> Synced {
        proxy::sync(&self.sandbox, &mut self.proxy, &mut self.services)
    }

    fn skipped_names(&self) -> Vec<ObjectName> {
        self.proxy
            .skipped()
            .map(|skipped| skipped.service)
            .collect()
    }

    fn ruleset(&self) -> String {
        Tools::new(&self.sandbox).run("nft list ruleset")
    }
}

/// Longer than the kernel can wait, and than its API accepts: 634 years.
const TOO_LONG: Duration = Duration::from_secs(20_000_000_000);

fn names(synced: &Synced) -> Vec<ObjectName> {
    let skipped = synced.skipped.iter();
    skipped.map(|skipped| skipped.service.clone()).collect()
}

#[test]
fn skips_a_service_with_an_overlong_timeout() {
    let mut node = Node::new(Layout::Nftables);
    assert_eq!(names(&node.sync()), []);
    (5..15).for_each(|number| node.set(number, 2, None));
    node.set(9, 2, Some(TOO_LONG));
    let synced = node.sync();
    assert_eq!(names(&synced), [name(9)]);
    let message = report(&*synced.skipped[0].error);
    assert!(message.contains("ERANGE"), "{message}");
    let endpoints = |node: &Node, number: u8| {
        let ruleset = node.ruleset();
        (0..2)
            .filter(|last| ruleset.contains(&format!(" 10.244.{number}.{last}")))
            .count()
    };
    assert_eq!((endpoints(&node, 8), endpoints(&node, 9)), (2, 1));

    // Another process finds it, without disturbing the existing tables.
    let before = node.ruleset();
    node.proxy = open(&node.sandbox, Layout::Nftables);
    // The kernel takes a while to notice that the previous process ended.
    let is_owned = |node: &Node| {
        let mut nft = connect(&node.sandbox);
        let table = nft.table(Family::Ipv4.into(), "kube-proxy").unwrap();
        table.is_some_and(|table| table.owner().is_some())
    };
    while is_owned(&node) {
        std::thread::yield_now();
    }
    node.set(3, 2, None);
    let synced = node.sync();
    assert_eq!((names(&synced), synced.is_full), (vec![name(9)], true));
    assert_eq!((endpoints(&node, 3), endpoints(&node, 9)), (2, 0));
    assert!(before.contains(" 10.244.4.0") && node.ruleset().contains(" 10.244.4.0"));

    // It is retried at a complete sync, and when it changes.
    node.proxy.require_full_sync();
    assert_eq!(names(&node.sync()), [name(9)]);
    assert_eq!(node.skipped_names(), [name(9)]);
    node.set(9, 2, Some(Duration::from_secs(60)));
    assert_eq!(names(&node.sync()), []);
    assert_eq!((node.skipped_names(), endpoints(&node, 9)), (vec![], 2));
    // A complete sync that finds no difference commits nothing.
    let generation = |node: &Node| connect(&node.sandbox).generation().unwrap();
    let before = generation(&node);
    node.proxy.require_full_sync();
    let transactions = node.sync().transactions;
    assert_eq!((transactions, generation(&node)), (0, before));
}

/// Another program's chain of jumps to a service's chain is so long that the kernel allows no more: it counts from
/// there to the service's own targets.
#[test]
fn a_jump_chain_of_maximum_length_skips_the_service() {
    let mut node = Node::new(Layout::Iptables(Backend::Nft));
    assert_eq!(names(&node.sync()), []);
    let port = PortName {
        service: name(30),
        port: "p".into(),
        protocol: Protocol::Tcp,
    };
    let chain = port.iptables_chain(ChainKind::Service);
    let others = |node: &Node, what: &str| {
        let tools = Tools::new(&node.sandbox);
        let chains = (0..14).map(|place| format!("others-{place}"));
        let chains: Vec<_> = chains.chain([chain.clone()]).collect();
        for chain in chains.iter().rev().filter(|_| what == "add") {
            tools.run(&format!("nft add chain ip nat {chain}"));
        }
        for pair in chains.windows(2) {
            match what {
                "add" => tools.run(&format!("nft add rule ip nat {} jump {}", pair[0], pair[1])),
                _ => tools.run(&format!("nft flush chain ip nat {}", pair[0])),
            };
        }
    };
    others(&node, "add");
    let tools = Tools::new(&node.sandbox);
    tools.run("nft add rule ip nat PREROUTING jump others-0");
    (25..35).for_each(|number| node.set(number, 1, None));
    let synced = node.sync();
    assert_eq!(names(&synced), [name(30)], "{}", node.ruleset());
    let message = report(&*synced.skipped[0].error);
    assert!(message.contains("EMLINK"), "{message}");
    let leads_to = |node: &Node, number: u8| {
        let ruleset = node.ruleset();
        ruleset.contains(&format!("ip daddr 10.96.0.{number} "))
    };
    assert!((25..35).all(|number| leads_to(&node, number) == (number != 30)));

    // Another process finds it, too.
    node.proxy = open(&node.sandbox, Layout::Iptables(Backend::Nft));
    node.set(3, 2, None);
    assert_eq!(names(&node.sync()), [name(30)]);
    assert!((25..35).all(|number| leads_to(&node, number) == (number != 30)));

    others(&node, "flush");
    node.proxy.require_full_sync();
    assert_eq!(names(&node.sync()), []);
    assert!(leads_to(&node, 30));
}

/// A first sync of many services reports its progress.
#[test]
fn progress_is_reported() {
    for (layout, count) in [(Layout::Flat, 12_000_u16), (Layout::Nftables, 2_000)] {
        let sandbox = sandbox();
        let reported = Arc::new(Mutex::new(Vec::new()));
        let mut proxy = open(&sandbox, layout);
        let shared = Arc::clone(&reported);
        proxy.set_progress_callback(move |progress| shared.lock().unwrap().push(progress));
        let mut services = Services::new();
        for number in 0..count {
            let [high, low] = number.to_be_bytes();
            let name = ObjectName::new("default", format!("service-{number}"));
            let mut service = Service::new(name.clone(), [[10, 96, high, low].into()]);
            service.external_ips = vec![[203, 0, high, low].into()];
            services.set_service(service.with_port(Port::new("p", Protocol::Tcp, 80)));
            let endpoint = Endpoint::new([10, 244, high, low].into());
            let ports = [to("p", Protocol::Tcp, 8080)];
            services.set_slice(slice(&name.name, vec![endpoint], &ports));
        }
        let synced = proxy::sync(&sandbox, &mut proxy, &mut services);
        let reported = std::mem::take(&mut *reported.lock().unwrap());
        assert!(
            reported.len() >= 2 && reported.len() <= synced.transactions,
            "{reported:?}"
        );
        assert!(
            reported
                .windows(2)
                .all(|pair| pair[0].completed < pair[1].completed),
            "{reported:?}"
        );
        let last = reported.last().unwrap();
        assert_eq!((last.family, last.completed), (Family::Ipv4, last.total));
        assert!(
            last.total >= usize::from(count)
                && reported.iter().all(|part| part.total == last.total)
        );
    }
}

/// The proxy applies a changed configuration, with the same result as a new proxy.
#[test]
fn a_changed_configuration_is_applied() {
    for layout in [
        Layout::Flat,
        Layout::Nftables,
        Layout::Iptables(Backend::Nft),
    ] {
        let mut node = Node::new(layout);
        (0..20).for_each(|number| {
            let mut service = node.services.service(&name(number)).unwrap().clone();
            service.internal_traffic_policy = TrafficPolicy::Local;
            service.ports[0].node_port = Some(30_000 + u16::from(number));
            node.services.set_service(service);
            let mut slice = node.services.slices(&name(number)).next().unwrap().clone();
            slice.endpoints[0].node = Some("node1".into());
            node.services.set_slice(slice);
        });
        node.sync();
        let first = node.proxy.config().clone();
        let mut elsewhere = first.clone();
        elsewhere.node = "node2".into();
        let mut masqueraded = elsewhere.clone();
        masqueraded.masquerade_all = true;
        let mut both = masqueraded.clone();
        both.families = vec![Family::Ipv4, Family::Ipv6];
        let before = node.ruleset();
        for (config, whole) in [
            (elsewhere.clone(), false),
            (masqueraded, true),
            (both, true),
            (elsewhere, true),
            (first, false),
        ] {
            let set = |proxy: &mut ServiceProxy| proxy.set_config(config.clone());
            node.sandbox.run(|| set(&mut node.proxy)).unwrap().unwrap();
            let synced = node.sync();
            assert_eq!((synced.is_full, synced.services), (whole, 20), "{layout:?}");
            assert!(whole || synced.transactions > 0, "{layout:?} {synced:?}");
            // A complete sync finds nothing to do.
            node.proxy.require_full_sync();
            assert_eq!(node.sync().transactions, 0, "{layout:?}");
            assert_eq!(node.sync().services, 0);
        }
        // Nothing is left of the states in between.
        let lines = |ruleset: &str| -> std::collections::BTreeSet<String> {
            let lines = ruleset.lines().map(|line| line.trim().to_owned());
            lines.filter(|line| line.contains("10.")).collect()
        };
        assert!(lines(&before).len() > 20, "{layout:?}: {before}");
        assert_eq!(lines(&node.ruleset()), lines(&before), "{layout:?}");
        assert!(!node.ruleset().contains("table ip6 kube"));
    }
}

/// A table of one family has another owner: the other family is still synced, and is not written again while the first
/// one is retried.
#[test]
fn a_family_that_fails_does_not_stop_the_other() {
    let layouts = [
        (Layout::Flat, "kube-services"),
        (Layout::Nftables, "kube-proxy"),
        (Layout::Iptables(Backend::Nft), "nat"),
    ];
    let both = Family::ALL;
    for (layout, table) in layouts {
        for broken in [&both[..1], &both[1..], &both[..]] {
            let sandbox = sandbox();
            let mut owners = Vec::new();
            for &family in broken {
                let mut owner = connect(&sandbox);
                let mut tx = Transaction::new();
                let mut owned = Table::new(family.into(), table);
                owned.flags = Some(TableFlags::OWNER);
                tx.add(&owned).unwrap();
                owner.commit(&tx).unwrap();
                owners.push(owner);
            }
            let mut services = Services::new();
            let add = |services: &mut Services, number: u8| {
                let v6 = format!("fd00::{number}").parse().unwrap();
                let service = Service::new(name(number), [[10, 96, 0, number].into(), v6]);
                services.set_service(service.with_port(Port::new("p", Protocol::Tcp, 80)));
            };
            add(&mut services, 1);
            let mut proxy = proxy::open(&sandbox, layout, Config::new("node1"));
            let sync = |proxy: &mut ServiceProxy, services: &mut Services| {
                let error = sandbox.run(|| proxy.sync(services)).unwrap().unwrap_err();
                let chainwright_kube::Error::Families(errors) = &error else {
                    panic!("{layout:?}: {}", report(&error))
                };
                let failed: Vec<_> = errors.iter().map(|(family, _)| family).collect();
                assert_eq!(failed, broken, "{layout:?}");
                let text = error.to_string();
                for family in broken {
                    assert!(text.contains(&format!("{family}: ")), "{text}");
                }
                assert!(text.contains("EPERM"), "{text}");
            };
            sync(&mut proxy, &mut services);
            let served = |address: &str| {
                Tools::new(&sandbox)
                    .run("nft list ruleset")
                    .contains(address)
            };
            let serves = |n: u8| {
                [
                    served(&format!(" 10.96.0.{n}")),
                    served(&format!(" fd00::{n}")),
                ]
            };
            let expected = both.map(|family| !broken.contains(&family));
            assert_eq!(serves(1), expected, "{layout:?}");
            assert_eq!(both.map(|family| proxy.is_synced(family)), expected);
            // Without a change only the failed family is retried.
            let generation = connect(&sandbox).generation().unwrap();
            sync(&mut proxy, &mut services);
            assert_eq!(
                connect(&sandbox).generation().unwrap(),
                generation,
                "{layout:?}"
            );
            add(&mut services, 2);
            services.remove_service(&name(1));
            sync(&mut proxy, &mut services);
            assert_eq!((serves(2), serves(1)), (expected, [false; 2]), "{layout:?}");

            // Both families reach the desired state as soon as they can.
            drop(owners);
            while broken.iter().any(|&family| {
                connect(&sandbox)
                    .table(family.into(), table)
                    .unwrap()
                    .is_some()
            }) {
                std::thread::yield_now();
            }
            proxy::sync(&sandbox, &mut proxy, &mut services);
            assert_eq!(
                (serves(2), serves(1)),
                ([true; 2], [false; 2]),
                "{layout:?}"
            );
            proxy.require_full_sync();
            assert_eq!(
                proxy::sync(&sandbox, &mut proxy, &mut services).transactions,
                0
            );
        }
    }
}
