//! Changes give the same result as a start. `tests/kube/services/kube_proxy.rs` tests that this is what kube-proxy
//! writes, and that it takes over kube-proxy's tables.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

use super::*;
use crate::service::config::{LocalDetector, NodePortAddresses};
use crate::service::model::{ObjectName, Protocol};
use crate::service::resolve::{Backend, Backends, ServicePort};
use chainwright::netlink::MessageError;
use chainwright::nft::build::Build;
use chainwright::nft::{Chain, Element, SetId, TableRef};
use chainwright_lang::{Listing, Options, Part};
use chainwright_testing::Sandbox;

/// Returns the node of kube-proxy's ruleset in the test data.
fn config() -> Config {
    Config {
        node_addresses: vec![address("10.200.0.10")],
        node_port_addresses: NodePortAddresses::These(vec![address("10.200.0.10")]),
        local_detector: LocalDetector::Networks(vec!["10.244.0.0/16".parse().unwrap()]),
        service_networks: vec!["10.96.0.0/12".parse().unwrap()],
        own: false,
        ..Config::new("node1")
    }
}

fn layout(sandbox: &Sandbox, family: Family, config: &Config) -> Nftables {
    let nft = sandbox.run(Connection::open).unwrap().unwrap();
    Nftables::new(nft, family, Arc::new(config.clone()))
}

/// Returns the table, or a part of it, as nft prints it.
fn list(sandbox: &Sandbox, family: Family, part: Part<'_>) -> String {
    let mut nft = sandbox.run(Connection::open).unwrap().unwrap();
    let table = Scope::table(family.into(), TABLE);
    let snapshot = nft.snapshot(table).unwrap();
    Listing::new(&snapshot, &Options::default())
        .part(part)
        .to_string()
}

/// A listed table: sets and chains by their first lines, with a set's elements separate and sorted.
type Blocks = BTreeMap<String, Block>;
type Block = (Vec<String>, Vec<String>);

fn blocks(sandbox: &Sandbox, family: Family) -> Blocks {
    let listed = list(sandbox, family, Part::All);
    let mut blocks = Blocks::new();
    let mut current: Option<(String, Block)> = None;
    let mut elements: Option<String> = None;
    let lines = listed.lines().skip(1);
    for line in lines.take_while(|line| *line != "}") {
        let text = line.trim();
        if let Some(so_far) = &mut elements {
            so_far.push_str(text);
        } else if let Some(first) = text.strip_prefix("elements = {") {
            elements = Some(first.to_owned());
        }
        if let Some(all) = elements.take_if(|all| all.ends_with('}')) {
            let (_, (_, block)) = current.as_mut().unwrap();
            let all = all.trim_end_matches('}').split(',');
            block.extend(all.map(|element| element.trim().to_owned()));
            block.sort();
            continue;
        }
        match (&mut current, line) {
            (_, "\t}") => blocks.extend(current.take()),
            (Some((_, (block, _))), _) if elements.is_none() => block.push(text.to_owned()),
            (None, _) if text.ends_with('{') => {
                current = Some((text.to_owned(), (Vec::new(), Vec::new())));
            }
            (None, _) if text.starts_with("comment") => {
                blocks.insert(text.to_owned(), (Vec::new(), Vec::new()));
            }
            _ => {}
        }
    }
    assert!(blocks.len() > 20, "{listed}");
    blocks
}

fn compare(one: &Blocks, other: &Blocks) {
    for (name, block) in one {
        assert_eq!(Some(block), other.get(name), "{name}");
    }
    let (one, other): (Vec<_>, Vec<_>) = (one.keys().collect(), other.keys().collect());
    assert_eq!(one, other);
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn port(namespace: &str, service: &str, port: &str, cluster_ip: &str, number: u16) -> ServicePort {
    let name = PortName {
        service: ObjectName::new(namespace, service),
        port: port.into(),
        protocol: Protocol::Tcp,
    };
    ServicePort::new(name, address(cluster_ip), number)
}

/// Adds these endpoints; those with a `!` are on this node.
fn to(mut port: ServicePort, endpoints: &[&str]) -> ServicePort {
    let backend = |text: &&str| {
        let address = text.trim_start_matches('!').parse().unwrap();
        let local = text.starts_with('!');
        Backend { address, local }
    };
    let cluster: Vec<_> = endpoints.iter().map(backend).collect();
    port.backends = Backends {
        any: !cluster.is_empty(),
        local: cluster.iter().copied().filter(|b| b.local).collect(),
        cluster,
        ..Backends::default()
    };
    port
}

/// Returns the services of `services.yaml` that differ in kind.
fn representative_ports() -> Vec<ServicePort> {
    let http = |service, cluster_ip, number| port("default", service, "", cluster_ip, number);
    let frontend = to(
        http("azure-vote-frontend", "10.96.10.10", 80),
        &["10.244.1.5:80", "10.244.1.6:80"],
    );
    let dns = |name| {
        let dns = port("kube-system", "kube-dns", name, "10.96.0.10", 53);
        let mut dns = to(dns, &["10.244.0.2:53", "10.244.0.3:53", "10.244.0.4:53"]);
        dns.affinity = Some(Duration::from_secs(10_800));
        dns
    };
    let mut udp = dns("dns");
    udp.name.protocol = Protocol::Udp;
    let lb = to(
        port("default", "lb-local", "https", "10.96.20.20", 443),
        &["!10.244.3.1:8443", "10.244.4.1:8443"],
    );
    let ext = |name, number, protocol, endpoint| {
        let mut ext = to(
            port("default", "ext", name, "10.96.20.21", number),
            &[endpoint],
        );
        ext.name.protocol = protocol;
        ext.external_ips = vec![address("192.0.2.77")];
        ext
    };
    vec![
        ServicePort {
            node_port: Some(30450),
            ..frontend
        },
        udp,
        dns("dns-tcp"),
        port("default", "empty", "http", "10.96.7.7", 8080),
        ServicePort {
            node_port: Some(31443),
            external_local: true,
            load_balancer_ips: vec![address("203.0.113.200")],
            source_ranges: vec![
                "198.51.100.0/25".parse().unwrap(),
                "203.0.113.0/24".parse().unwrap(),
            ],
            ..lb
        },
        ext("sip", 5060, Protocol::Udp, "!10.244.3.9:5060"),
        ext("sctp", 9999, Protocol::Sctp, "!10.244.3.9:9999"),
        to(
            port("default", "kubernetes", "https", "10.96.0.1", 443),
            &["10.200.0.10:6443"],
        ),
    ]
}

fn by_name(ports: impl IntoIterator<Item = ServicePort>) -> Ports {
    let ports = ports.into_iter();
    ports.map(|p| (p.name.clone(), Arc::new(p))).collect()
}

/// Pseudo-random numbers, the same each time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn some<T: Copy>(&mut self, of: &[T], one_in: usize) -> Vec<T> {
        let of = of.iter().copied();
        of.filter(|_| self.below(one_in) == 0).collect()
    }

    fn port(&mut self, number: usize, family: Family) -> ServicePort {
        let v6 = family == Family::Ipv6;
        let at = |net: usize, host: usize| match v6 {
            true => address(&format!("fd00:{net}::{host}")),
            false => address(&format!("10.{net}.0.{host}")),
        };
        let name = format!("s{}", number / 2);
        let mut port = port("ns", &name, "p", "0.0.0.0", 80 + (number % 3) as u16);
        if number % 2 == 1 {
            port.name.protocol = Protocol::Udp;
        }
        // Two ports of one service have one cluster IP.
        port.cluster_ip = at(96, 1 + number / 2);
        port.node_port = self.some(&[30_000, 30_001], 3).pop();
        port.external_ips = self.some(&[at(1, 1), at(1, 2)], 3);
        port.load_balancer_ips = self.some(&[at(2, 1), at(1, 1)], 3);
        let net = |net: usize, prefix| IpNet::new(at(net, 0), prefix).unwrap().trunc();
        port.source_ranges = self.some(&[net(1, 24), net(200, 16), net(1, 20), net(3, 32)], 3);
        port.internal_local = self.below(3) == 0;
        port.external_local = self.below(3) == 0;
        let times = [None, None, Some(60), Some(10_800)];
        port.affinity = times[self.below(4)].map(Duration::from_secs);
        let endpoints: Vec<_> = (1..5)
            .map(|host| Backend {
                address: SocketAddr::new(at(244, host), 8080),
                local: host % 2 == 0,
            })
            .collect();
        let cluster = self.some(&endpoints, 2);
        let cluster_is_used = port.uses_cluster();
        let local = cluster.iter().copied().filter(|b| b.local).collect();
        port.backends = Backends {
            any: !cluster.is_empty(),
            local: if port.uses_local() { local } else { Vec::new() },
            cluster: if cluster_is_used { cluster } else { Vec::new() },
            ..Backends::default()
        };
        port
    }
}

fn after_random_changes(family: Family, own: bool, seed: u64) {
    let config = Config { own, ..config() };
    let sandbox = Sandbox::new().unwrap();
    let mut random = Random(seed);
    let mut changed = layout(&sandbox, family, &config);
    let mut ports = Ports::default();
    changed.full_sync(&ports).unwrap();
    let mut transactions = 0;
    for step in 1..=100 {
        let mut changes: HashMap<_, PortChange> = HashMap::new();
        for _ in 0..=random.below(3) {
            let number = random.below(16);
            let port = Arc::new(random.port(number, family));
            let name = port.name.clone();
            let after = (random.below(4) > 0).then_some(port);
            let before = ports.get(&name).cloned();
            match &after {
                Some(port) => ports.insert(name.clone(), Arc::clone(port)),
                None => ports.swap_remove(&name),
            };
            let change = changes.entry(name.clone()).or_insert(PortChange {
                name,
                before,
                after: None,
            });
            change.after = after;
        }
        let changes: Vec<_> = changes.into_values().collect();
        let made = changed.change(&ports, &changes).unwrap();
        // Twice as many if the affinity timeout changes.
        assert!(made <= 6, "{made} transactions at step {step}");
        transactions += made;
        assert_eq!(changed.kernel_state == KernelState::Owned, own);
        if step % 10 == 0 {
            let fresh = Sandbox::new().unwrap();
            layout(&fresh, family, &config).full_sync(&ports).unwrap();
            let wanted = blocks(&fresh, family);
            compare(&wanted, &blocks(&sandbox, family));
        }
    }
    assert!(transactions > 50, "{transactions}");
    assert_eq!(changed.full_sync(&ports).unwrap(), 0);
    // Another layout finds what this one left.
    drop(changed);
    let mut next = layout(&sandbox, family, &config);
    assert_eq!(next.full_sync(&ports).unwrap(), usize::from(own));
    next.full_sync(&Ports::default()).unwrap();
    let mut fresh = layout(&Sandbox::new().unwrap(), family, &config);
    fresh.full_sync(&Ports::default()).unwrap();
    let named = |layout: &mut Nftables| {
        let scope = layout.scope();
        let snapshot = layout.nft().snapshot(scope).unwrap();
        let table = snapshot.table(layout.family, TABLE).unwrap();
        let names = table.chains().map(|c| c.chain().name().to_string());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(named(&mut next), named(&mut fresh));
}

#[test]
fn incremental_and_full_sync_agree() {
    after_random_changes(Family::Ipv4, true, 0x9e37_79b9_7f4a_7c15);
    after_random_changes(Family::Ipv4, false, 0xd1b5_4a32_d192_ed03);
}

#[test]
fn incremental_and_full_sync_agree_in_ipv6() {
    after_random_changes(Family::Ipv6, true, 0x94d0_49bb_1331_11eb);
}

/// Changes by another program to the table, or elsewhere, are noticed at the next change.
#[test]
fn foreign_changes_are_repaired() {
    let sandbox = Sandbox::new().unwrap();
    let mut ports = by_name(representative_ports());
    let mut layout = layout(&sandbox, Family::Ipv4, &config());
    layout.full_sync(&ports).unwrap();
    let before = blocks(&sandbox, Family::Ipv4);
    type ForeignChange = fn(&mut Transaction) -> Result<&mut Transaction, MessageError>;
    const IP: nft::Family = nft::Family::IP;
    let foreign_changes: [ForeignChange; 6] = [
        |tx| tx.flush_chain(IP, TABLE, "services"),
        |tx| tx.add(&Table::new(IP, "elsewhere")),
        |tx| {
            let set = SetId::new(IP, TABLE, "cluster-ips");
            tx.delete_elements(&set, [Element::new(&[10, 96, 7, 7])])
        },
        |tx| tx.delete(&Table::new(IP, TABLE)),
        |tx| {
            let rule = Build::new(IP, TABLE, "reject-chain").counter();
            tx.add(&rule.finish().unwrap())
        },
        |tx| tx.flush_ruleset(nft::Family::UNSPEC),
    ];
    let mut other = sandbox.run(Connection::open).unwrap().unwrap();
    for (number, foreign_changes) in foreign_changes.into_iter().enumerate() {
        let mut tx = Transaction::new();
        foreign_changes(&mut tx).unwrap();
        other.commit(&tx).unwrap();
        let cluster_ip = format!("10.96.77.{number}");
        let added = Arc::new(port("default", "added", "", &cluster_ip, 80));
        let name = added.name.clone();
        ports.insert(name.clone(), Arc::clone(&added));
        let mut change = PortChange {
            name: name.clone(),
            before: None,
            after: Some(added),
        };
        layout.change(&ports, &[change.clone()]).unwrap();
        ports.swap_remove(&name);
        change.before = change.after.take();
        // First its cluster IP is removed, then its refusal.
        assert_eq!(layout.change(&ports, &[change]).unwrap(), 2);
        let after = blocks(&sandbox, Family::Ipv4);
        compare(&before, &after);
    }
}

/// Elements that rules add survive, even a restart.
#[test]
fn clients_are_remembered() {
    let sandbox = Sandbox::new().unwrap();
    let mut ports = by_name(representative_ports());
    layout(&sandbox, Family::Ipv4, &config())
        .full_sync(&ports)
        .unwrap();
    let name = "affinity-2GKX576Q-kube-system/kube-dns/udp/dns__10.244.0.2/53";
    let set = SetId::new(nft::Family::IP, TABLE, name);
    let mut tx = Transaction::new();
    tx.add_elements(&set, [Element::new(&[10, 9, 9, 9])])
        .unwrap();
    let mut other = sandbox.run(Connection::open).unwrap().unwrap();
    other.commit(&tx).unwrap();
    // The restart, with something to do.
    let removed = representative_ports().swap_remove(0).name;
    ports.swap_remove(&removed);
    let mut next = layout(&sandbox, Family::Ipv4, &config());
    // First its elements are removed, then its chain.
    assert_eq!(next.full_sync(&ports).unwrap(), 2);
    let listed = list(&sandbox, Family::Ipv4, Part::Set(name.as_bytes()));
    assert!(listed.contains("10.9.9.9"), "{listed}");
}

#[test]
fn owned_table_rejects_other_writers() {
    let sandbox = Sandbox::new().unwrap();
    let ports = by_name(representative_ports());
    let left = |family| layout(&sandbox, family, &config());
    let config = Config {
        own: true,
        ..config()
    };
    let mut layout = layout(&sandbox, Family::Ipv4, &config);
    layout.full_sync(&ports).unwrap();
    let owned = |table: TableRef<'_>| (table.owner(), table.flags());
    let port = layout.nft().port();
    let table = layout.nft().table(nft::Family::IP, TABLE).unwrap();
    let flags = TableFlags::OWNER | TableFlags::PERSIST;
    assert_eq!(table.map(owned), Some((Some(port), Some(flags))));
    let mut other = sandbox.run(Connection::open).unwrap().unwrap();
    assert!(clean_up(&mut other, Family::Ipv4).is_err());
    layout.remove().unwrap();
    layout.remove().unwrap();
    assert!(!clean_up(&mut other, Family::Ipv4).unwrap());
    for of in [Family::Ipv4, Family::Ipv6] {
        left(of).full_sync(&Ports::default()).unwrap();
    }
    assert!(clean_up(&mut other, Family::Ipv4).unwrap());
    assert!(clean_up(&mut other, Family::Ipv6).unwrap());
    assert!(!clean_up(&mut other, Family::Ipv6).unwrap());
}

/// Configurations that the ruleset above does not cover.
#[test]
fn other_configurations_are_written() {
    let all = Config {
        node_port_addresses: NodePortAddresses::All,
        local_detector: LocalDetector::InterfacePrefix("veth".into()),
        service_networks: ["10.96.0.0/16", "10.98.0.0/16", "fd00::/64"]
            .map(|network| network.parse().unwrap())
            .to_vec(),
        node_addresses: vec![address("203.0.113.7")],
        ..config()
    };
    let sandbox = Sandbox::new().unwrap();
    let ports = by_name(representative_ports());
    let of = |config: &Config| {
        let mut layout = layout(&sandbox, Family::Ipv4, config);
        layout.full_sync(&ports).unwrap();
        assert_eq!(layout.full_sync(&ports).unwrap(), 0);
        blocks(&sandbox, Family::Ipv4)
    };
    let listed = of(&all);
    let chain = |listed: &Blocks, name: &str| listed[&format!("chain {name} {{")].0.clone();
    assert_eq!(
        chain(&listed, "services"),
        [
            "ip daddr @cluster-ips iifname != \"veth*\" meta mark set meta mark | 0x00004000 comment \"masquerade clusterIP traffic from outside cluster\"",
            "ip daddr . meta l4proto . th dport vmap @service-ips",
            "fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @service-nodeports",
        ]
    );
    assert_eq!(
        chain(&listed, "nodeport-endpoints-check"),
        ["ip daddr != 127.0.0.0/8 meta l4proto . th dport vmap @no-endpoint-nodeports"]
    );
    assert_eq!(
        chain(&listed, "cluster-ips-check")[1],
        "ip daddr { 10.96.0.0/16, 10.98.0.0/16 } drop comment \"Drop traffic to unallocated ClusterIPs\""
    );
    // The source ranges contain the node, and so the load balancer's address is added.
    assert_eq!(
        chain(&listed, "firewall-5A6HMGKF-default/lb-local/tcp/https"),
        ["ip saddr != { 198.51.100.0/25, 203.0.113.0/24 } drop"]
    );
    assert_eq!(
        chain(&listed, "external-5A6HMGKF-default/lb-local/tcp/https")[0],
        "iifname \"veth*\" goto service-5A6HMGKF-default/lb-local/tcp/https comment \"short-circuit pod traffic\""
    );
    assert!(!listed.contains_key("set nodeport-ips {"));
    let networks = |list: &[&str]| Config {
        node_port_addresses: NodePortAddresses::Networks(
            list.iter()
                .map(|network| network.parse().unwrap())
                .collect(),
        ),
        ..config()
    };
    let listed = of(&networks(&[
        "10.0.0.0/8",
        "10.1.0.0/16",
        "192.0.2.0/24",
        "fd00::/8",
    ]));
    let to = |network| {
        format!(
            "fib daddr type local ip daddr != 127.0.0.0/8 ip daddr {network} meta l4proto . th dport vmap @service-nodeports"
        )
    };
    assert_eq!(
        chain(&listed, "services")[2..],
        [to("10.0.0.0/8"), to("192.0.2.0/24")]
    );
    let listed = of(&networks(&["fd00::/8"]));
    assert_eq!(listed["set nodeport-ips {"].1, [""; 0]);

    let none = Config {
        local_detector: LocalDetector::None,
        masquerade_all: true,
        masquerade_mark: 0x20,
        ..config()
    };
    let listed = of(&none);
    assert_eq!(
        chain(&listed, "services")[0],
        "ip daddr @cluster-ips meta mark set meta mark | 0x00000020 comment \"masquerade clusterIP traffic\""
    );
    let external = chain(&listed, "external-5A6HMGKF-default/lb-local/tcp/https");
    assert_eq!(external.len(), 3, "{external:?}");
}

/// A kernel that refuses to delete a chain together with its references gets the deletion later.
#[test]
fn chains_in_use_are_deleted_later() {
    let sandbox = Sandbox::new().unwrap();
    let mut ports = by_name(representative_ports());
    let mut layout = layout(&sandbox, Family::Ipv4, &config());
    layout.full_sync(&ports).unwrap();
    layout.chains_apart = true;
    let frontend = representative_ports().swap_remove(0);
    let name = frontend.name.clone();
    let chain = name.nftables_name("service-");
    let mut change = PortChange {
        before: ports.swap_remove(&name),
        name,
        after: None,
    };
    assert_eq!(layout.change(&ports, &[change.clone()]).unwrap(), 3);
    assert_eq!(layout.full_sync(&ports).unwrap(), 0);

    // It returns before it was deleted.
    let there = Chain::new(nft::Family::IP, TABLE, &chain);
    let mut tx = Transaction::new();
    tx.add(&there).unwrap();
    layout.commit(&mut tx).unwrap();
    layout.stale.insert(chain);
    change.after = change.before.take();
    let after = change.after.clone().unwrap();
    ports.insert(after.name.clone(), after);
    assert_eq!(layout.change(&ports, &[change]).unwrap(), 1);
    assert!(layout.stale.is_empty());
    assert_eq!(layout.full_sync(&ports).unwrap(), 0);
}

/// A transaction that is only checked leaves nothing for a second one.
#[test]
fn print_cold_start_with_firewall() {
    let sandbox = Sandbox::new().unwrap();
    let ports = by_name(representative_ports());
    let mut layout = layout(&sandbox, Family::Ipv4, &config());
    layout.set_check_only(true);
    layout.full_sync(&ports).unwrap();
    layout.set_check_only(false);
    assert_eq!(layout.full_sync(&ports).unwrap(), 2);
}

/// A start with thousands of services. Not run with the other tests because it takes seconds.
#[test]
#[ignore = "it measures"]
fn a_cold_start_is_measured() {
    let services_variable = std::env::var("SERVICES").ok();
    let services: u32 =
        services_variable.map_or(2000, |services_variable| services_variable.parse().unwrap());
    let ports = by_name((0..services).map(|i| {
        let ip = |net: u32| std::net::Ipv4Addr::from_bits((net << 24) + i + 1);
        let http = port("ns", &format!("svc-{i}"), "http", &ip(10).to_string(), 80);
        let endpoints = [ip(11), ip(12), ip(13)].map(|ip| format!("{ip}:8080"));
        to(http, &endpoints.each_ref().map(String::as_str))
    }));
    let sandbox = Sandbox::new().unwrap();
    let mut layout = layout(&sandbox, Family::Ipv4, &config());
    let start = std::time::Instant::now();
    let made = layout.full_sync(&ports).unwrap();
    let took = start.elapsed();
    println!("{services} services: {made} transactions, {took:?}");
    let start = std::time::Instant::now();
    assert_eq!(layout.full_sync(&ports).unwrap(), 0);
    println!("full sync: {:?}", start.elapsed());
    let before = ports.values().next().unwrap();
    let mut after = ServicePort::clone(before);
    after.backends.cluster.pop();
    let change = PortChange {
        name: before.name.clone(),
        before: Some(Arc::clone(before)),
        after: Some(Arc::new(after)),
    };
    let start = std::time::Instant::now();
    assert_eq!(layout.change(&ports, &[change]).unwrap(), 1);
    println!("one endpoint removed: {:?}", start.elapsed());
}
