//! Continuous new flows while services change: none reaches another service's endpoint, and none to a service with
//! endpoints arrives untranslated.
//!
//! `FLOOD_COMMITS=2000` is the full length: that many changes in each direction.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use chainwright::iptables::Family;
use chainwright::nft::live::{EventObject, Item, Monitor};
use chainwright_kube::service::{
    Config, Endpoint, Layout, ObjectName, Port, Protocol, Service, ServiceProxy, Services,
    TrafficPolicy,
};
use chainwright_testing::Sandbox;

use crate::common::random::Random;
use crate::common::tools::Tools;
use crate::common::{OnDrop, sandbox};
use crate::services::net::raw_socket_of;
use crate::services::proxy::{self, slice, sync, to};

/// A packet's sender shows its service; an endpoint's port shows the service that it belongs to.
const SENDERS: [[u8; 4]; 2] = [[192, 168, 50, 2], [192, 168, 50, 3]];
const ENDPOINT_PORTS: [u16; 2] = [7001, 7002];
const PROTOCOLS: [(&str, Protocol); 2] = [("udp", Protocol::Udp), ("tcp", Protocol::Tcp)];

const COUNTERS: [&str; 3] = ["right", "wrong", "untranslated"];

/// A client, a node, and an interface with all pods behind it.
struct Field {
    client: Sandbox,
    node: Sandbox,
    pods: Sandbox,
}

impl Field {
    fn new() -> Self {
        let (client, node, pods) = (sandbox(), sandbox(), sandbox());
        node.enable_forwarding().unwrap();
        let cable = |other: &Sandbox, name: &str, network: &str| {
            let at = |host| format!("{network}.{host}/24");
            Sandbox::connect(&node, name, &at(1), other, "eth0", &at(2)).unwrap();
            other
                .add_route("0.0.0.0/0", &format!("{network}.1"))
                .unwrap();
        };
        cable(&client, "outside", "192.168.50");
        cable(&pods, "pods", "10.244.0");
        for host in 3..=9 {
            pods.add_address("eth0", &format!("10.244.0.{host}/24"))
                .unwrap();
        }
        node.add_route("0.0.0.0/0", "10.244.0.2").unwrap();
        // The kernel counts packets that are translated to the wrong service or not translated; nothing answers them.
        let [first, second] = SENDERS.map(Ipv4Addr::from);
        let [of_first, of_second] = ENDPOINT_PORTS;
        let of_pods = format!(
            "add table ip counted
            add counter ip counted right
            add counter ip counted wrong
            add chain ip counted in {{ type filter hook prerouting priority -300; }}
            add rule ip counted in ip saddr {first} th dport {of_second} counter name wrong drop
            add rule ip counted in ip saddr {second} th dport {of_first} counter name wrong drop
            add rule ip counted in th dport {{ {of_first}, {of_second} }} counter name right drop"
        );
        let of_node = "add table ip counted
            add counter ip counted untranslated
            add chain ip counted forward { type filter hook forward priority -10; }
            add rule ip counted forward ip daddr 10.96.0.0/16 counter name untranslated drop";
        for (of, script) in [(&pods, &of_pods[..]), (&node, of_node)] {
            let tools = Tools::new(of);
            for line in script.lines() {
                tools.run(&format!("nft {}", line.trim()));
            }
        }
        // Conntrack entries expire at once.
        let settings = [
            ("nf_conntrack_udp_timeout", "1"),
            ("nf_conntrack_tcp_timeout_syn_sent", "1"),
        ];
        node.run(|| {
            for (name, value) in settings {
                std::fs::write(format!("/proc/sys/net/netfilter/{name}"), value).unwrap();
            }
        })
        .unwrap();
        Self { client, node, pods }
    }

    fn counted(&self, counter: &str) -> u64 {
        let of = if counter == "untranslated" {
            &self.node
        } else {
            &self.pods
        };
        let text = Tools::new(of).run(&format!("nft list counter ip counted {counter}"));
        let words: Vec<_> = text.split_whitespace().collect();
        let place = words.iter().position(|word| *word == "packets").unwrap();
        words[place + 1].parse().unwrap()
    }

    /// Checks the flows since `before`: all went to their service, if it existed all the time.
    fn judge(&self, what: &str, sent: u64, before: [u64; 3], is_there: bool) {
        let after = COUNTERS.map(|counter| self.counted(counter));
        let [right, wrong, untranslated] = [0, 1, 2].map(|i| after[i] - before[i]);
        println!(
            "{what}: {sent} flows, {right} arrived, {wrong} wrong, {untranslated} untranslated"
        );
        assert!(right > 100, "{what}: only {right} of {sent} arrived");
        assert_eq!(wrong, 0, "{what}");
        assert!(!is_there || untranslated == 0, "{what}: {untranslated}");
    }

    /// Sends packets that each begin a new flow, to both cluster IPs, while `work` runs. Returns their number.
    fn flood(&self, work: impl FnOnce()) -> u64 {
        let stop = AtomicBool::new(false);
        let sent = AtomicU64::new(0);
        thread::scope(|scope| {
            let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
            let socket = raw_socket_of(&self.client, Family::Ipv4, libc::IPPROTO_RAW);
            let (stop, sent) = (&stop, &sent);
            scope.spawn(move || {
                // Different flows each time, because the last ones are still tracked.
                static FLOODS: AtomicU64 = AtomicU64::new(0);
                let mut random = Random(FLOODS.fetch_add(1, Ordering::Relaxed));
                while !stop.load(Ordering::Relaxed) {
                    for protocol in [17, 6] {
                        for service in [0, 1] {
                            send(&socket, service, protocol, &mut random);
                            sent.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
            while sent.load(Ordering::Relaxed) < 1_000 {
                thread::sleep(Duration::from_millis(1));
            }
            work();
            stop.store(true, Ordering::Relaxed);
        });
        sent.load(Ordering::Relaxed)
    }
}

/// Sends the first packet of a flow to a service.
fn send(socket: &UdpSocket, service: usize, protocol: u8, random: &mut Random) {
    let from = SENDERS[service];
    let to = cluster_ip(service as u8);
    let IpAddr::V4(to) = to else {
        unreachable!("the address is IPv4")
    };
    let sum = |words: &[&[u8]]| {
        let bytes: Vec<u8> = words.concat();
        let words = bytes.chunks(2);
        let sum: u32 = words
            .map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)))
            .sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        !(((sum & 0xffff) + (sum >> 16)) as u16)
    };
    let mut segment = Vec::with_capacity(20);
    segment.extend((1024 + random.below(60_000) as u16).to_be_bytes());
    segment.extend(80_u16.to_be_bytes());
    match protocol {
        17 => segment.extend([0, 8, 0, 0]),
        _ => {
            segment.extend(
                random
                    .below(1 << 30)
                    .to_be_bytes()
                    .last_chunk::<4>()
                    .unwrap(),
            );
            segment.extend([0, 0, 0, 0, 5 << 4, 2, 0xff, 0xff, 0, 0, 0, 0]); // SYN
            let length = (segment.len() as u16).to_be_bytes();
            let sum = sum(&[&from, &to.octets(), &[0, 6], &length, &segment]);
            segment[16..18].copy_from_slice(&sum.to_be_bytes());
        }
    }
    let mut packet = vec![0x45, 0];
    packet.extend((20 + segment.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend(from);
    packet.extend(to.octets());
    packet.extend(segment);
    // A full queue is not an error.
    let _ = socket.send_to(&packet, SocketAddr::new(to.into(), 0));
}

fn cluster_ip(service: u8) -> IpAddr {
    [10, 96, 0, 1 + service].into()
}

fn config() -> Config {
    let mut config = Config::new("node1");
    config.families = vec![Family::Ipv4];
    config
}

/// A service with a cluster IP and this number of endpoints, some of them on this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Made {
    /// Determines its name.
    name: char,
    /// Index of its cluster IP.
    at: usize,
    endpoints: u8,
    local: u8,
    internal: TrafficPolicy,
    /// The affinity time in seconds, if any.
    affinity: Option<u64>,
    node_port: Option<u16>,
    /// Whether the other cluster IP is also its load balancer address, closed to the flood's senders.
    is_closed: bool,
}

impl Made {
    const fn new(at: usize, endpoints: u8) -> Self {
        Self {
            name: if at == 0 { 'a' } else { 'b' },
            at,
            endpoints,
            local: 0,
            internal: TrafficPolicy::Cluster,
            affinity: None,
            node_port: None,
            is_closed: false,
        }
    }

    fn put(self, services: &mut Services) {
        let name = format!("service-{}", self.name);
        let cluster_ip = cluster_ip(self.at as u8);
        let mut service = Service::new(ObjectName::new("default", &name[..]), [cluster_ip]);
        service.internal_traffic_policy = self.internal;
        service.session_affinity = self.affinity.map(Duration::from_secs);
        if self.is_closed {
            service.load_balancer_ips = vec![self::cluster_ip(1 - self.at as u8)];
            let open_to = IpAddr::from(SENDERS[self.at]);
            service.source_ranges = vec![open_to.into()];
        }
        for (name, protocol) in PROTOCOLS {
            service = service.with_port(Port {
                node_port: self.node_port,
                ..Port::new(name, protocol, 80)
            });
        }
        services.set_service(service);
        let endpoint = |i| Endpoint {
            node: (i < self.local).then(|| "node1".into()),
            ..Endpoint::new([10, 244, 0, 3 + i].into())
        };
        let ports = PROTOCOLS.map(|(name, protocol)| to(name, protocol, ENDPOINT_PORTS[self.at]));
        services.set_slice(slice(
            &name,
            (0..self.endpoints).map(endpoint).collect(),
            &ports,
        ));
    }

    fn remove(self, services: &mut Services) {
        let name = format!("service-{}", self.name);
        services.remove_service(&ObjectName::new("default", &name[..]));
        services.remove_slice(&ObjectName::new("default", format!("{name}-1")));
    }
}

/// Changes back and forth. In both states all flooded services have endpoints, unless one replaces the other.
const CHANGES: [(&str, [&[Made]; 2]); 9] = {
    const A: Made = Made::new(0, 2);
    const B: Made = Made::new(1, 2);
    const LOCAL: Made = Made {
        local: 1,
        ..Made::new(0, 3)
    };
    [
        ("one service replaces another", [&[A], &[B]]),
        (
            "a service replaces another whose node port is its port",
            [
                &[Made {
                    node_port: Some(80),
                    ..A
                }],
                &[Made {
                    node_port: Some(80),
                    ..B
                }],
            ],
        ),
        (
            "3 endpoints and 2",
            [&[Made::new(0, 3), B], &[A, Made::new(1, 3)]],
        ),
        (
            "5 endpoints and 1",
            [&[Made::new(0, 5), B], &[Made::new(0, 1), B]],
        ),
        (
            "a service with another name gets the cluster IP",
            [
                &[Made::new(0, 3), B],
                &[
                    Made {
                        name: 'c',
                        ..Made::new(0, 1)
                    },
                    B,
                ],
            ],
        ),
        (
            "the traffic policy changes between Local and Cluster",
            [
                &[LOCAL, B],
                &[
                    Made {
                        internal: TrafficPolicy::Local,
                        ..LOCAL
                    },
                    B,
                ],
            ],
        ),
        (
            "a load balancer that is closed to the senders is added and removed",
            [
                &[A],
                &[Made {
                    is_closed: true,
                    ..A
                }],
            ],
        ),
        (
            "3 endpoints and 2, with affinity",
            [
                &[
                    Made {
                        affinity: Some(60),
                        ..Made::new(0, 3)
                    },
                    B,
                ],
                &[
                    Made {
                        affinity: Some(60),
                        ..A
                    },
                    B,
                ],
            ],
        ),
        (
            "the affinity timeout changes",
            [
                &[
                    Made {
                        affinity: Some(60),
                        ..A
                    },
                    B,
                ],
                &[
                    Made {
                        affinity: Some(90),
                        ..A
                    },
                    B,
                ],
            ],
        ),
    ]
};

/// How changes reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// As changes of the known state.
    Change,
    /// As repairs of the state that is read.
    Repair,
}

/// This many changes of each kind in each direction, while flows arrive.
pub(crate) fn flooded(layout: Layout, by: By, commits: usize) {
    let field = Field::new();
    for (what, states) in CHANGES {
        let mut services = Services::new();
        states[0].iter().for_each(|made| made.put(&mut services));
        let mut proxy = proxy::open(&field.node, layout, config());
        sync(&field.node, &mut proxy, &mut services);
        let before = COUNTERS.map(|counter| field.counted(counter));
        let sent = field.flood(|| {
            for round in 0..2 * commits {
                let [from, to] = [states[round % 2], states[(round + 1) % 2]];
                for made in from {
                    let stays = |other: &Made| other.name == made.name;
                    if !to.iter().any(stays) {
                        made.remove(&mut services);
                    }
                }
                to.iter().for_each(|made| made.put(&mut services));
                if by == By::Repair {
                    proxy.require_full_sync();
                }
                let synced = sync(&field.node, &mut proxy, &mut services);
                assert_eq!(synced.is_full, by == By::Repair, "{synced:?}");
                assert!(synced.transactions > 0, "{synced:?}");
            }
        });
        let what = format!("{layout:?}, {by:?}, {what}");
        // A missing service has no endpoints.
        field.judge(&what, sent, before, states[0].len() == 2);
        field.node.run(|| proxy.remove()).unwrap().unwrap();
    }
}

/// Packets to a load balancer's address reach endpoints only after its firewall exists, whatever the table lacked.
pub(crate) fn firewalls_first(layout: Layout) {
    let node = sandbox();
    let tools = Tools::new(&node);
    let table = match layout {
        Layout::Flat => "kube-services",
        _ => "kube-proxy",
    };
    let mut config = config();
    config.own = false;
    let mut proxy = proxy::open(&node, layout, config);
    let mut services = Services::new();
    let closed = Made {
        is_closed: true,
        ..Made::new(0, 2)
    };
    for lacks in ["all", "a service", "a new service at a restart", "rules"] {
        match lacks {
            "all" => {}
            "rules" => drop(tools.run(&format!("nft flush table ip {table}"))),
            _ => {
                closed.remove(&mut services);
                sync(&node, &mut proxy, &mut services);
            }
        }
        if lacks != "a service" {
            proxy.require_full_sync();
        }
        closed.put(&mut services);
        let all = transactions(&node, &mut proxy, &mut services);
        let [firewall, targets] = match lacks {
            "rules" => ["+rule of firewall-check", "+rule of services"],
            _ => ["+firewall-ips", "+service-ips"],
        };
        let place = |word: &str| {
            let place = all
                .iter()
                .position(|words| words.contains(&word.to_owned()));
            place.unwrap_or_else(|| panic!("{lacks}: {word}: {all:?}"))
        };
        assert!(place(firewall) < place(targets), "{lacks}: {all:?}");
    }
}

/// A table of the flat layout is replaced this often while flows arrive, like a table of another version, to which this
/// version's rules cannot be added.
pub(crate) fn recreated(times: usize) {
    let field = Field::new();
    let tools = Tools::new(&field.node);
    let mut services = Services::new();
    for at in 0..2 {
        Made::new(at, 2).put(&mut services);
    }
    let mut config = config();
    config.own = false;
    let mut proxy = proxy::open(&field.node, Layout::Flat, config);
    sync(&field.node, &mut proxy, &mut services);
    let before = COUNTERS.map(|counter| field.counted(counter));
    let sent = field.flood(|| {
        for _ in 0..times {
            for line in [
                "flush chain ip kube-services nodeport-refusals",
                "delete set ip kube-services drop-nodeports",
                "add set ip kube-services drop-nodeports { type ipv4_addr; }",
            ] {
                tools.run(&format!("nft {line}"));
            }
            proxy.require_full_sync();
            let synced = sync(&field.node, &mut proxy, &mut services);
            // The stand-in, the table, and the stand-in again.
            assert_eq!(synced.transactions, 3, "{synced:?}");
        }
    });
    field.judge("recreated", sent, before, true);
    assert_eq!(tools.run("nft list tables").matches("kube-").count(), 1);

    // A table left by an interrupted process is removed.
    tools.run("nft add table ip kube-services-stand-in");
    proxy.require_full_sync();
    sync(&field.node, &mut proxy, &mut services);
    assert_eq!(tools.run("nft list tables").matches("kube-").count(), 1);
    tools.run("nft add table ip kube-services-stand-in");
    field.node.run(|| proxy.remove()).unwrap().unwrap();
    assert_eq!(tools.run("nft list tables").matches("kube-").count(), 0);
}

/// The same for kube-proxy's layout after another program changed a map that cannot be repaired: the flat layout's
/// stand-in serves meanwhile.
pub(crate) fn recreated_in_chains(times: usize) {
    let field = Field::new();
    let tools = Tools::new(&field.node);
    let mut services = Services::new();
    for at in 0..2 {
        Made::new(at, 2).put(&mut services);
    }
    let mut config = config();
    config.own = false;
    let mut proxy = proxy::open(&field.node, Layout::Nftables, config);
    sync(&field.node, &mut proxy, &mut services);
    let before = COUNTERS.map(|counter| field.counted(counter));
    let mut sent = 0;
    for _ in 0..times {
        let listed = tools.run("nft list table ip kube-proxy");
        let comment = "ClusterIP, ExternalIP and LoadBalancer IP traffic";
        assert!(listed.contains(comment), "{listed}");
        tools.run_with(
            "nft -f -",
            &format!(
                "delete table ip kube-proxy\n{}",
                listed.replace(comment, "another")
            ),
        );
        sent += field.flood(|| {
            proxy.require_full_sync();
            let synced = sync(&field.node, &mut proxy, &mut services);
            // The stand-in, the table, and the stand-in again.
            assert_eq!(synced.transactions, 3, "{synced:?}");
        });
    }
    field.judge("recreated", sent, before, true);
    assert_eq!(tools.run("nft list tables").matches("kube-").count(), 1);

    // A table left by an interrupted process is removed.
    tools.run("nft add table ip kube-services-stand-in");
    proxy.require_full_sync();
    sync(&field.node, &mut proxy, &mut services);
    assert_eq!(tools.run("nft list tables").matches("kube-").count(), 1);
}

/// The effects of a sync by transaction: sets that gained elements, sets that lost some, chains that lost rules.
fn transactions(
    node: &Sandbox,
    proxy: &mut ServiceProxy,
    services: &mut Services,
) -> Vec<Vec<String>> {
    let mut monitor = node.run(Monitor::open).unwrap().unwrap();
    sync(node, proxy, services);
    let mut all = Vec::new();
    while let Some(item) = monitor.receive_within(Duration::from_millis(200)).unwrap() {
        let Item::Change(change) = item else {
            panic!("{item:?}")
        };
        let mut words: Vec<String> = Vec::new();
        for event in change.events() {
            let sign = if event.is_deletion() { '-' } else { '+' };
            let of = match event.object() {
                Ok(EventObject::Elements(_)) => event.set().unwrap().to_string(),
                Ok(EventObject::Rule(_)) => format!("rule of {}", event.chain().unwrap()),
                Ok(EventObject::Chain(_)) => format!("chain {}", event.chain().unwrap()),
                _ => continue,
            };
            words.push(format!("{sign}{of}"));
        }
        words.dedup();
        all.push(words);
    }
    all
}

/// What a packet in flight can look up is removed in a later transaction than what led to it: with the next change, if it
/// is little. The number of a removed service is not reused at once, even by a restarted proxy.
pub(crate) fn in_order() {
    let node = sandbox();
    let mut proxy = proxy::open(&node, Layout::Flat, config());
    let mut services = Services::new();
    let a = Made::new(0, 3);
    a.put(&mut services);
    // So that chains for three endpoints stay in use.
    let b = Made::new(1, 3);
    b.put(&mut services);
    sync(&node, &mut proxy, &mut services);
    let mut after = |services: &mut Services, is_full: bool| {
        if is_full {
            proxy.require_full_sync();
        }
        transactions(&node, &mut proxy, services)
    };

    Made::new(0, 2).put(&mut services);
    let [made, counted] = &after(&mut services, false)[..] else {
        panic!("expected two transactions")
    };
    assert!(made.contains(&"+chain pick-2".to_owned()), "{made:?}");
    assert_eq!(counted[..], ["-groups", "+groups"].map(str::to_owned));
    // A complete sync is no change.
    assert_eq!(after(&mut services, true), Vec::<Vec<String>>::new());
    a.put(&mut services);
    let grown = after(&mut services, false);
    // The slot was still there.
    assert_eq!(grown, [["-groups", "+groups"].map(str::to_owned)]);

    b.remove(&mut services);
    after(&mut services, false);
    // Late enough for packets in flight.
    let later = || std::thread::sleep(Duration::from_secs(1));
    later();
    let node_port = Some(30_080);
    Made { node_port, ..a }.put(&mut services);
    let published = after(&mut services, false).concat();
    assert_eq!(published[0], "-groups", "{published:?}");
    a.remove(&mut services);
    Made::new(1, 2).put(&mut services);
    let [replaced] = &after(&mut services, false)[..] else {
        panic!("expected one transaction")
    };
    assert!(
        replaced.contains(&"-service-ips".to_owned()),
        "{replaced:?}"
    );
    assert!(
        replaced.contains(&"+service-ips".to_owned()),
        "{replaced:?}"
    );
    assert!(!replaced.contains(&"-endpoints".to_owned()), "{replaced:?}");
    later();
    // What is looked up without a service is deleted at once.
    Made::new(0, 0).put(&mut services);
    let [refused] = &after(&mut services, false)[..] else {
        panic!("expected one transaction")
    };
    assert!(refused.contains(&"-endpoints".to_owned()), "{refused:?}");
    assert!(refused.contains(&"+reject-ips".to_owned()), "{refused:?}");
    Made::new(0, 0).remove(&mut services);
    let removed = after(&mut services, false).concat();
    assert!(removed.contains(&"-reject-ips".to_owned()), "{removed:?}");
    let groups = || -> Vec<String> {
        let text = Tools::new(&node).run("nft list map ip kube-services service-ips");
        let groups = text
            .split(" : ")
            .skip(1)
            .filter(|text| text.starts_with("0x"));
        groups
            .map(|text| text.split([',', ' ', '\n']).next().unwrap().to_owned())
            .collect()
    };
    let of_b = groups();
    // A new proxy finds b, which is not desired, and a.
    drop(proxy);
    let mut proxy = proxy::open(&node, Layout::Flat, config());
    Made::new(1, 2).remove(&mut services);
    a.put(&mut services);
    sync(&node, &mut proxy, &mut services);
    let of_a = groups();
    assert_eq!((of_a.len(), of_b.len()), (2, 2));
    assert!(
        of_a.iter().all(|group| !of_b.contains(group)),
        "{of_a:?} {of_b:?}"
    );
}

/// Elements whose deletion a change deferred are deleted before other elements with the same keys are added. The change
/// itself deletes most of them.
pub(crate) fn deferred_deletions_free_keys() {
    let node = sandbox();
    let mut proxy = proxy::open(&node, Layout::Flat, config());
    let mut services = Services::new();
    // So that chains for these numbers of endpoints stay in use.
    Made::new(1, 2).put(&mut services);
    Made::new(0, 3).put(&mut services);
    sync(&node, &mut proxy, &mut services);
    let mut after = |services: &mut Services| transactions(&node, &mut proxy, services);
    Made::new(0, 2).put(&mut services);
    assert_eq!(
        after(&mut services),
        [["-groups", "+groups"].map(str::to_owned)]
    );
    let ports = PROTOCOLS.map(|(name, protocol)| to(name, protocol, ENDPOINT_PORTS[0]));
    let endpoints = [3, 4, 9].map(|last| Endpoint::new([10, 244, 0, last].into()));
    services.set_slice(slice("service-a", endpoints.into(), &ports));
    assert_eq!(
        after(&mut services),
        [["-endpoints", "-groups", "+groups", "+endpoints"].map(str::to_owned)]
    );

    Made::new(0, 100).put(&mut services);
    after(&mut services);
    Made::new(0, 2).put(&mut services);
    let all = after(&mut services);
    assert_eq!(all.last(), Some(&vec!["-endpoints".to_owned()]), "{all:?}");
    assert_eq!(all.len(), 2, "{all:?}");
}

/// The same for kube-proxy's layout: replaced rules and removed chains are deleted after the references to them.
pub(crate) fn in_order_in_chains() {
    let node = sandbox();
    let mut proxy = proxy::open(&node, Layout::Nftables, config());
    let mut services = Services::new();
    let mut after = |services: &mut Services| transactions(&node, &mut proxy, services);
    Made::new(0, 3).put(&mut services);
    after(&mut services);
    for endpoints in [2, 3] {
        Made::new(0, endpoints).put(&mut services);
        let [made, gone] = &after(&mut services)[..] else {
            panic!("expected two transactions")
        };
        let is_rule =
            |sign| move |word: &&String| word.starts_with(sign) && word.contains("rule of");
        assert_eq!(made.iter().filter(is_rule('-')).count(), 0, "{made:?}");
        assert_eq!(made.iter().filter(is_rule('+')).count(), 2, "{made:?}");
        assert_eq!(gone.iter().filter(is_rule('-')).count(), 2, "{gone:?}");
    }
    Made::new(0, 0).put(&mut services);
    let [refused, gone] = &after(&mut services)[..] else {
        panic!("expected two transactions")
    };
    assert_eq!(
        refused[..],
        ["-service-ips", "+no-endpoint-services"].map(str::to_owned)
    );
    assert!(gone.iter().all(|word| word.starts_with('-')), "{gone:?}");
    Made::new(0, 2).put(&mut services);
    let [served, gone] = &after(&mut services)[..] else {
        panic!("expected two transactions")
    };
    assert!(served.contains(&"+service-ips".to_owned()), "{served:?}");
    assert_eq!(gone[..], ["-no-endpoint-services".to_owned()]);

    // Another affinity time, and repairs: removals and additions are in separate transactions.
    for (repairs, affinity) in [(false, 60), (false, 90), (true, 60), (true, 90), (true, 0)] {
        let affinity = Some(affinity).filter(|time| *time > 0);
        for endpoints in [3, 2, 0, 1] {
            Made {
                affinity,
                ..Made::new(0, endpoints)
            }
            .put(&mut services);
            if repairs {
                proxy.require_full_sync();
            }
            let all = transactions(&node, &mut proxy, &mut services);
            assert!(all.len() > 1, "{repairs} {affinity:?} {endpoints}: {all:?}");
            for words in &all {
                let goes = |word: &&String| {
                    word.starts_with('-') && (word.contains("rule of") || word.contains("chain"))
                };
                let gone = words.iter().filter(goes).count();
                let comes = words.iter().filter(|word| word.starts_with('+')).count();
                assert!(
                    gone == 0 || comes == 0,
                    "{repairs} {affinity:?} {endpoints}: {all:?}"
                );
            }
        }
    }
}
