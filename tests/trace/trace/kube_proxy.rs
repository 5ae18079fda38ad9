//! kube-proxy's own rulesets for 306 services: each port of each, from a pod, from outside, and by its node port,
//! compared with the destinations in the manifests.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use chainwright::legacy;
use chainwright::nft::{Scope, Snapshot};
use chainwright_trace::{
    Direction, End, FinalValue, Interface, Node, Options, Outcome, Packet, Rules, Trace,
};
use serde_json::Value;

use crate::common::accounting::prepared;
use crate::common::rulesets::data;
use crate::common::tools::Tools;
use crate::common::{connect, sandbox};
use crate::trace::in_memory;

/// A port of a service, as in the manifests.
#[derive(Debug)]
struct Port {
    service: String,
    protocol: u8,
    cluster: SocketAddr,
    node_port: Option<u16>,
    /// Its endpoints, and whether each is on this node.
    endpoints: Vec<(SocketAddr, bool)>,
    /// Whether traffic from outside stays on this node.
    local: bool,
    affinity: bool,
}

const NODE: &str = "node1";

fn text(value: &Value) -> Option<&str> {
    value.as_str()
}

/// The ports of the services in `tests/data/services.yaml`.
fn ports() -> Vec<Port> {
    let documents = data("services.yaml");
    let objects: Vec<Value> = documents
        .split("\n---\n")
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect();
    let kind = |object: &Value, kind: &str| object["kind"] == kind;
    let mut ports = Vec::new();
    for object in objects.iter().filter(|object| kind(object, "Service")) {
        let (meta, spec) = (&object["metadata"], &object["spec"]);
        let slices = objects.iter().filter(|slice| {
            kind(slice, "EndpointSlice")
                && slice["metadata"]["namespace"] == meta["namespace"]
                && slice["metadata"]["labels"]["kubernetes.io/service-name"] == meta["name"]
        });
        let slices: Vec<_> = slices.collect();
        for port in spec["ports"].as_array().unwrap() {
            let name = text(&port["name"]).unwrap_or_default();
            let mut endpoints = Vec::new();
            for slice in &slices {
                let of_slice = slice["ports"].as_array().unwrap().iter();
                let same = of_slice
                    .filter(|other| text(&other["name"]).unwrap_or_default() == name)
                    .map(|other| other["port"].as_u64().unwrap());
                for number in same {
                    for endpoint in slice["endpoints"].as_array().unwrap() {
                        if endpoint["conditions"]["ready"] == false {
                            continue;
                        }
                        let address = text(&endpoint["addresses"][0]).unwrap();
                        let address = format!("{address}:{number}").parse().unwrap();
                        endpoints.push((address, endpoint["nodeName"] == NODE));
                    }
                }
            }
            let cluster = format!("{}:{}", text(&spec["clusterIP"]).unwrap(), port["port"]);
            ports.push(Port {
                service: format!("{}/{}:{name}", meta["namespace"], meta["name"]),
                protocol: match text(&port["protocol"]).unwrap_or("TCP") {
                    "TCP" => 6,
                    "UDP" => 17,
                    "SCTP" => 132,
                    other => panic!("{other}"),
                },
                cluster: cluster.parse().unwrap(),
                node_port: port["nodePort"].as_u64().map(|port| port as u16),
                endpoints,
                local: spec["externalTrafficPolicy"] == "Local",
                affinity: spec["sessionAffinity"] == "ClientIP",
            });
        }
    }
    assert_eq!(ports.len(), 307);
    ports
}

/// The rulesets, loaded.
enum Loaded {
    Nft(Box<Snapshot>),
    Legacy(Vec<legacy::Table>),
}

impl Loaded {
    fn rules(&self) -> Rules<'_> {
        match self {
            Self::Nft(snapshot) => Rules::new().with_nft(snapshot),
            Self::Legacy(tables) => Rules::new().with_legacy(tables),
        }
    }
}

/// The ruleset that `iptables-restore` of nf_tables makes of the file.
fn restored_nft(name: &str) -> Loaded {
    let sandbox = prepared();
    Tools::new(&sandbox).load_iptables_nft(&data(name));
    Loaded::Nft(Box::new(connect(&sandbox).snapshot(Scope::all()).unwrap()))
}

/// The ruleset that `iptables-legacy-restore` makes of the file.
fn restored_legacy(name: &str) -> Loaded {
    let sandbox = prepared();
    let tools = Tools::new(&sandbox);
    tools.run_with("iptables-legacy-restore", &data(name));
    let tables = sandbox.run(|| {
        let legacy = legacy::Connection::open(legacy::Family::Ipv4).unwrap();
        let names = legacy.tables().unwrap();
        let read = |name| legacy.read(name).unwrap().in_use().unwrap();
        names.into_iter().map(read).collect()
    });
    Loaded::Legacy(tables.unwrap())
}

const FROM_POD: &str = "10.244.1.99:40000";
const FROM_OUTSIDE: &str = "192.0.2.9:40000";
const NODE_ADDRESS: &str = "10.200.0.10";

fn node() -> Node {
    let mut eth0 = Interface::named("eth0");
    eth0.addresses = vec![NODE_ADDRESS.parse().unwrap()];
    Node {
        interfaces: vec![eth0],
        addresses: Some(vec![NODE_ADDRESS.parse().unwrap()]),
    }
}

fn packet(direction: Direction, protocol: u8, from: SocketAddr, to: SocketAddr) -> Packet {
    let mut packet = Packet::udp(direction, from, to);
    if protocol == 6 {
        packet = Packet::tcp(direction, from, to);
    }
    packet.protocol = Some(protocol);
    packet.in_interface = Some("eth0".into());
    packet.out_interface = Some("eth0".into());
    packet
}

/// Where a packet arrives according to a trace: the probability of each place, for the ends whose only assumption is
/// that no rule remembers the sender.
fn places(trace: &Trace) -> BTreeMap<(String, bool), f64> {
    let mut places = BTreeMap::new();
    for end in trace.ends.iter().filter(|end| !remembered(end)) {
        let place = match &end.outcome {
            Outcome::Forwarded | Outcome::Delivered => {
                format!("{}:{}", end.packet.destination, end.packet.destination_port)
            }
            other => other.to_string(),
        };
        let masqueraded = end
            .steps
            .iter()
            .flat_map(|step| &step.actions)
            .any(|action| action.to_string().starts_with("masquerade"));
        *places.entry((place, masqueraded)).or_insert(0.0) += end.probability;
    }
    places
}

/// Whether an end assumes that the sender was seen before.
fn remembered(end: &End) -> bool {
    end.assumptions
        .iter()
        .any(|words| !words.starts_with("not: ") && !words.contains(" is not "))
}

/// Each of these with the same probability.
fn alike<'p>(
    endpoints: impl Iterator<Item = &'p SocketAddr>,
    masqueraded: bool,
) -> BTreeMap<(String, bool), f64> {
    let all: Vec<_> = endpoints.map(|endpoint| endpoint.to_string()).collect();
    let one = 1.0 / all.len() as f64;
    all.into_iter()
        .map(|place| ((place, masqueraded), one))
        .collect()
}

#[track_caller]
fn assert_same(name: &str, port: &Port, trace: &Trace, expected: &BTreeMap<(String, bool), f64>) {
    let found = places(trace);
    let near = |one: &f64, other: &f64| (one - other).abs() < 1e-6;
    let same = found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(one, other)| one.0 == other.0 && near(one.1, other.1));
    assert!(
        same,
        "{name}, {}: found {found:?} instead of {expected:?}\n{trace}",
        port.service
    );
    if port.affinity && !port.endpoints.is_empty() {
        // A client that was seen before goes where it went then.
        let again = trace.ends.iter().filter(|end| remembered(end));
        let reached: Vec<_> = again
            .map(|end| format!("{}:{}", end.packet.destination, end.packet.destination_port))
            .collect();
        for (endpoint, _) in &port.endpoints {
            assert!(reached.contains(&endpoint.to_string()), "{name}: {trace}");
        }
    } else {
        assert!(
            trace.ends.iter().all(|end| end.assumptions.is_empty()),
            "{name}: {trace}"
        );
    }
    assert!(!trace.is_truncated);
}

/// Traces each port of each service.
fn every_service(name: &str, loaded: &Loaded, is_1_20: bool) {
    let rules = loaded.rules();
    assert_eq!(rules.not_traced(), [""; 0]);
    let node = node();
    // Sets that rules fill are empty: their content when they were saved is gone.
    let trace = |packet: &Packet| rules.trace(packet, &node, &Options::default());
    let (pod, outside) = (FROM_POD.parse().unwrap(), FROM_OUTSIDE.parse().unwrap());
    let rejected: BTreeMap<_, _> = [(
        ("rejected with icmp port-unreachable".to_owned(), false),
        1.0,
    )]
    .into();
    let mut traced = 0;
    for port in ports() {
        let all = port.endpoints.iter().map(|(endpoint, _)| endpoint);
        let has_none = port.endpoints.is_empty();
        for (from, masqueraded) in [(pod, false), (outside, true)] {
            let packet = packet(Direction::Forwarded, port.protocol, from, port.cluster);
            let expected = match has_none {
                true => rejected.clone(),
                false => alike(all.clone(), masqueraded),
            };
            let trace = trace(&packet);
            assert_same(name, &port, &trace, &expected);
            if masqueraded && !has_none {
                let chainwright =
                    |end: &End| end.packet.source == FinalValue::Known(NODE_ADDRESS.to_owned());
                assert!(trace.ends.iter().all(chainwright), "{trace}");
            }
            traced += 1;
        }
        let Some(number) = port.node_port else {
            continue;
        };
        let to = SocketAddr::new(NODE_ADDRESS.parse().unwrap(), number);
        let packet = packet(Direction::In, port.protocol, outside, to);
        let local = port.endpoints.iter().filter(|(_, local)| *local);
        let expected = match (has_none, port.local) {
            (true, _) => rejected.clone(),
            (false, false) => alike(all.clone(), true),
            (false, true) => alike(local.map(|(endpoint, _)| endpoint), false),
        };
        if is_1_20 && has_none && port.local {
            continue; // it wrote no rule for that
        }
        assert_same(name, &port, &trace(&packet), &expected);
        traced += 1;
    }
    assert!(traced > 600, "{traced}");
    // An address without a service.
    let nobody = "10.244.7.7:9".parse().unwrap();
    let through = trace(&packet(Direction::Forwarded, 6, pod, nobody));
    let expected = alike([nobody].iter(), false);
    assert_eq!(places(&through), expected, "{through}");
}

#[test]
fn kube_proxy_1_36_in_nftables_mode() {
    let loaded = Loaded::Nft(Box::new(in_memory(&data("kube-proxy-1.36-nftables.nft"))));
    every_service("1.36, nftables", &loaded, false);
}

/// The same, as the kernel lists what the real tool loads.
#[test]
fn kube_proxy_1_36_as_nft_loads_it() {
    let sandbox = sandbox();
    Tools::new(&sandbox).load_nft(&data("kube-proxy-1.36-nftables.nft"));
    let loaded = Loaded::Nft(Box::new(connect(&sandbox).snapshot(Scope::all()).unwrap()));
    every_service("1.36, nftables, loaded", &loaded, false);
}

#[test]
fn kube_proxy_1_36_in_iptables_mode() {
    let name = "kube-proxy-1.36-iptables.save";
    every_service("1.36, nf_tables", &restored_nft(name), false);
    every_service("1.36, legacy", &restored_legacy(name), false);
}

#[test]
fn kube_proxy_1_20_in_iptables_mode() {
    let name = "kube-proxy-1.20-300-services.save";
    every_service("1.20, nf_tables", &restored_nft(name), true);
    every_service("1.20, legacy", &restored_legacy(name), true);
}
