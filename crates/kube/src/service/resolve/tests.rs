use super::super::model::{EndpointPort, ObjectName, Protocol};
use super::super::store::Services;
use super::*;

const HERE: &str = "here";

fn config() -> Config {
    Config {
        zone: Some("a".into()),
        ..Config::new(HERE)
    }
}

fn name() -> ObjectName {
    ObjectName::new("ns", "svc")
}

/// Returns a service with one port and a node port.
fn service(internal: TrafficPolicy, external: TrafficPolicy) -> Service {
    let mut service = Service::new(name(), ["10.96.0.1".parse().unwrap()]);
    service.internal_traffic_policy = internal;
    service.external_traffic_policy = external;
    service.with_port(Port {
        node_port: Some(30080),
        ..Port::new("p", Protocol::Tcp, 80)
    })
}

/// Returns the endpoint `10.0.0.N`, on this node if `is_here`.
fn endpoint(n: u8, is_here: bool) -> Endpoint {
    Endpoint {
        node: Some(if is_here { HERE } else { "there" }.into()),
        ..Endpoint::new([10, 0, 0, n].into())
    }
}

fn ending(endpoint: Endpoint) -> Endpoint {
    Endpoint {
        ready: false,
        serving: true,
        terminating: true,
        ..endpoint
    }
}

fn hinted(n: u8, zones: &[&str], nodes: &[&str]) -> Endpoint {
    Endpoint {
        for_zones: zones.iter().map(|zone| (*zone).into()).collect(),
        for_nodes: nodes.iter().map(|node| (*node).into()).collect(),
        ..endpoint(n, false)
    }
}

fn slice(name: &str, endpoints: Vec<Endpoint>) -> EndpointSlice {
    EndpointSlice {
        name: ObjectName::new("ns", name),
        service: "svc".into(),
        endpoints,
        ports: vec![EndpointPort {
            name: "p".into(),
            protocol: Protocol::Tcp,
            port: Some(8080),
        }],
    }
}

fn one(service: &Service, slices: &[EndpointSlice], config: &Config) -> ServicePort {
    let mut ports = resolve(service, slices.iter(), Family::Ipv4, config);
    assert_eq!(ports.len(), 1);
    ports.remove(0)
}

fn of(service: &Service, endpoints: &[Endpoint]) -> ServicePort {
    one(service, &[slice("s", endpoints.to_vec())], &config())
}

/// Returns the last octets of addresses.
fn numbers(backends: &[Backend]) -> Vec<u8> {
    let last = |b: &Backend| match b.address {
        SocketAddr::V4(address) => address.ip().octets()[3],
        SocketAddr::V6(address) => address.ip().octets()[15],
    };
    backends.iter().map(last).collect()
}

use TrafficPolicy::{Cluster, Local};

/// The result of each pair of policies for one local endpoint and one elsewhere.
#[test]
fn policies_choose_endpoints() {
    let endpoints = [endpoint(1, true), endpoint(2, false)];
    for (internal, external, inside, outside) in [
        (Cluster, Cluster, &[1, 2][..], &[1, 2][..]),
        (Cluster, Local, &[1, 2], &[1]),
        (Local, Cluster, &[1], &[1, 2]),
        (Local, Local, &[1], &[1]),
    ] {
        let port = of(&service(internal, external), &endpoints);
        assert_eq!(numbers(port.internal()), inside);
        assert_eq!(numbers(port.external()), outside);
        // Traffic from pods to an external address may go anywhere.
        assert_eq!(numbers(&port.backends.cluster), [1, 2]);
        assert_eq!(numbers(&port.reachable()), [1, 2]);
        let refusals = (port.internal_refusal(), port.external_refusal());
        assert_eq!(refusals, (None, None));
    }
}

#[test]
fn without_an_outside_only_the_inner_policy_counts() {
    let endpoints = [endpoint(1, true), endpoint(2, false)];
    let inner = |policy| {
        let mut service = service(policy, Local);
        service.ports[0].node_port = None;
        of(&service, &endpoints)
    };
    let port = inner(Cluster);
    assert!(port.uses_cluster() && !port.uses_local());
    assert_eq!(numbers(&port.backends.cluster), [1, 2]);
    assert_eq!(port.backends.local, []);
    let port = inner(Local);
    assert!(!port.uses_cluster() && port.uses_local());
    assert_eq!(port.backends.cluster, []);
    assert_eq!(numbers(&port.reachable()), [1]);
    // Any external address makes the port use both.
    let mut service = service(Local, Cluster);
    service.ports[0].node_port = Some(0);
    assert!(!of(&service, &endpoints).is_external());
    service.external_ips = vec!["fd00::1".parse().unwrap()];
    assert!(!of(&service, &endpoints).is_external());
    service.load_balancer_ips = vec!["192.0.2.1".parse().unwrap()];
    assert!(of(&service, &endpoints).uses_cluster());
}

#[test]
fn no_endpoints_rejects_and_wrong_node_drops() {
    let refused = |internal, external, endpoints: &[Endpoint]| {
        let port = of(&service(internal, external), endpoints);
        (port.internal_refusal(), port.external_refusal())
    };
    let (reject, drop) = (Some(Refusal::Reject), Some(Refusal::Drop));
    for policies in [(Cluster, Cluster), (Local, Local), (Cluster, Local)] {
        assert_eq!(refused(policies.0, policies.1, &[]), (reject, reject));
        let idle = Endpoint {
            ready: false,
            ..endpoint(1, true)
        };
        assert_eq!(refused(policies.0, policies.1, &[idle]), (reject, reject));
        // One that terminates, and no longer serves.
        let gone = Endpoint {
            serving: false,
            ..ending(endpoint(1, true))
        };
        assert_eq!(refused(policies.0, policies.1, &[gone]), (reject, reject));
    }
    let elsewhere = [endpoint(2, false)];
    assert_eq!(refused(Cluster, Local, &elsewhere), (None, drop));
    assert_eq!(refused(Local, Cluster, &elsewhere), (drop, None));
    assert_eq!(refused(Local, Local, &elsewhere), (drop, drop));
    let ends = [ending(endpoint(2, false))];
    assert_eq!(refused(Local, Local, &ends), (drop, drop));
    assert_eq!(refused(Cluster, Local, &ends), (None, drop));
    // No traffic may leave the node; endpoints elsewhere still count.
    let mut service = service(Local, Local);
    service.ports[0].node_port = None;
    assert_eq!(of(&service, &ends).internal_refusal(), drop);
}

/// Terminating endpoints are used if none is ready, separately for local and for all endpoints.
#[test]
fn terminating_endpoints_are_the_fallback() {
    let port = |endpoints: &[Endpoint]| of(&service(Cluster, Local), endpoints);
    let both = port(&[ending(endpoint(1, true)), endpoint(2, false)]);
    assert_eq!(numbers(&both.backends.cluster), [2]);
    assert_eq!(numbers(&both.backends.local), [1]);
    assert_eq!(numbers(&both.reachable()), [2, 1]);
    let all = port(&[ending(endpoint(1, true)), ending(endpoint(2, false))]);
    assert_eq!(numbers(&all.backends.cluster), [1, 2]);
    assert_eq!(numbers(&all.backends.local), [1]);
    let none = port(&[ending(endpoint(1, true)), endpoint(2, true)]);
    assert_eq!(numbers(&none.backends.cluster), [2]);
    assert_eq!(numbers(&none.backends.local), [2]);
    // Published although it is not ready: the API reports it as ready.
    let published = Endpoint {
        ready: true,
        ..ending(endpoint(3, true))
    };
    assert_eq!(numbers(&port(&[published]).backends.cluster), [3]);
}

#[test]
fn hints_prefer_the_node_then_the_zone() {
    let chosen = |endpoints: &[Endpoint]| {
        let port = of(&service(Cluster, Cluster), endpoints);
        numbers(&port.backends.cluster)
    };
    let zones = [
        hinted(1, &["a"], &[]),
        hinted(2, &["b"], &[]),
        hinted(3, &["b", "a"], &[]),
    ];
    assert_eq!(chosen(&zones), [1, 3]);
    let nodes = [hinted(1, &["a"], &["there"]), hinted(2, &["b"], &[HERE])];
    assert_eq!(chosen(&nodes), [2]);
    // No node hint is for this node: the zone hints count.
    let other = [
        hinted(1, &["a"], &["there"]),
        hinted(2, &["b"], &["yonder"]),
    ];
    assert_eq!(chosen(&other), [1]);
    // One of them has no node hint, so node hints do not count.
    let partial = [hinted(1, &["a"], &[HERE]), hinted(2, &["b"], &[])];
    assert_eq!(chosen(&partial), [1]);
    let partial = [hinted(1, &["b"], &[HERE]), hinted(2, &["a"], &[])];
    assert_eq!(chosen(&partial), [2]);
    // Nor do zone hints, if one endpoint has none, or none is for this zone.
    assert_eq!(
        chosen(&[hinted(1, &["a"], &[]), hinted(2, &[], &[])]),
        [1, 2]
    );
    assert_eq!(
        chosen(&[hinted(1, &["b"], &[]), hinted(2, &["c"], &[])]),
        [1, 2]
    );
}

#[test]
fn only_hints_of_ready_endpoints_count() {
    let idle = Endpoint {
        ready: false,
        ..hinted(9, &[], &[])
    };
    let chosen = |endpoints: &[Endpoint], config: &Config| {
        let slices = [slice("s", endpoints.to_vec())];
        let port = one(&service(Cluster, Cluster), &slices, config);
        numbers(&port.backends.cluster)
    };
    let ready = [hinted(1, &["a"], &[]), hinted(2, &["b"], &[]), idle];
    assert_eq!(chosen(&ready, &config()), [1]);
    // The only endpoint of this zone is terminating: the others get the traffic.
    let ends = [ending(hinted(1, &["a"], &[])), hinted(2, &["b"], &[])];
    assert_eq!(chosen(&ends, &config()), [2]);
    // All terminate: hints are ignored.
    let ends = [
        ending(hinted(1, &["a"], &[])),
        ending(hinted(2, &["b"], &[])),
    ];
    assert_eq!(chosen(&ends, &config()), [1, 2]);
    // A node whose zone is unknown.
    assert_eq!(chosen(&ready[..2], &Config::new(HERE)), [1, 2]);
}

/// Traffic that must stay on this node ignores hints.
#[test]
fn hints_do_not_affect_local_traffic() {
    let hidden = Endpoint {
        for_zones: vec!["b".into()],
        ..endpoint(1, true)
    };
    let port = of(&service(Cluster, Local), &[hidden, hinted(2, &["a"], &[])]);
    assert_eq!(numbers(&port.backends.cluster), [2]);
    assert_eq!(numbers(&port.backends.local), [1]);
    assert_eq!(numbers(&port.reachable()), [2, 1]);
}

#[test]
fn slices_are_merged_and_deduplicated() {
    let mut services = Services::new();
    services.set_service(service(Cluster, Cluster));
    services.set_slice(slice("s2", vec![endpoint(10, false), endpoint(1, false)]));
    // It moves from one slice to the next and is in both for a while.
    services.set_slice(slice("s1", vec![endpoint(2, false), endpoint(1, true)]));
    // In another slice the same port has another number.
    let mut renumbered = slice("s3", vec![endpoint(1, false)]);
    renumbered.ports[0].port = Some(8081);
    services.set_slice(renumbered);
    let port = services.resolve(&name(), Family::Ipv4, &config()).remove(0);
    let found = |b: &Backend| (b.address.to_string(), b.local);
    let found: Vec<_> = port.backends.cluster.iter().map(found).collect();
    let expected = [
        ("10.0.0.10:8080", false),
        ("10.0.0.1:8080", true),
        ("10.0.0.1:8081", false),
        ("10.0.0.2:8080", false),
    ];
    assert_eq!(
        found,
        expected.map(|(text, local)| (text.to_owned(), local))
    );
}

#[test]
fn ports_are_found_by_name_and_protocol() {
    let mut service = service(Cluster, Cluster);
    service.ports = vec![
        Port::new("dns", Protocol::Udp, 53),
        Port::new("dns", Protocol::Tcp, 53),
        Port::new("web", Protocol::Tcp, 80),
    ];
    let mut slice = slice("s", vec![endpoint(1, true)]);
    let port = |name: &str, protocol, port| EndpointPort {
        name: name.into(),
        protocol,
        port,
    };
    slice.ports = vec![
        port("dns", Protocol::Tcp, Some(1053)),
        port("dns", Protocol::Udp, Some(53)),
        port("web", Protocol::Tcp, None),
    ];
    let mut numbers = |web| {
        slice.ports[2].port = web;
        let ports = resolve(&service, [&slice].into_iter(), Family::Ipv4, &config());
        let number = |p: &ServicePort| p.backends.cluster.first().map(|b| b.address.port());
        ports.iter().map(number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(None), [Some(53), Some(1053), None]);
    assert_eq!(numbers(Some(0)), [Some(53), Some(1053), None]);
    assert_eq!(numbers(Some(8080)), [Some(53), Some(1053), Some(8080)]);
}

#[test]
fn families_are_separate() {
    let mut service = service(Cluster, Cluster);
    service.cluster_ips.push("fd00::1".parse().unwrap());
    service.external_ips = ["192.0.2.1", "fd01::1", "0.0.0.0"]
        .map(|a| a.parse().unwrap())
        .to_vec();
    service.load_balancer_ips = vec!["fd02::1".parse().unwrap()];
    let ranges = ["10.1.2.3/8", "fd03::/16", "10.0.0.0/8", "192.0.2.0/24"];
    service.source_ranges = ranges.map(|r| r.parse().unwrap()).to_vec();
    let slices = [
        slice("v4", vec![endpoint(1, true)]),
        slice("v6", vec![Endpoint::new("fd04::2".parse().unwrap())]),
    ];
    let of = |service: &Service, family| resolve(service, slices.iter(), family, &config());
    let v4 = of(&service, Family::Ipv4).remove(0);
    let v6 = of(&service, Family::Ipv6).remove(0);
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(
        (v4.cluster_ip, v6.cluster_ip),
        (address("10.96.0.1"), address("fd00::1"))
    );
    assert_eq!(
        (v4.external_ips, v6.external_ips),
        (vec![address("192.0.2.1")], vec![address("fd01::1")])
    );
    assert_eq!(
        (v4.load_balancer_ips, v6.load_balancer_ips),
        (vec![], vec![address("fd02::1")])
    );
    let networks = |list: &[&str]| {
        list.iter()
            .map(|n| n.parse().unwrap())
            .collect::<Vec<IpNet>>()
    };
    assert_eq!(v4.source_ranges, networks(&["10.0.0.0/8", "192.0.2.0/24"]));
    assert_eq!(v6.source_ranges, networks(&["fd03::/16"]));
    assert_eq!(
        (numbers(&v4.backends.cluster), numbers(&v6.backends.cluster)),
        (vec![1], vec![2])
    );
    // A service of one family has no ports in the other.
    service.cluster_ips.pop();
    assert_eq!(of(&service, Family::Ipv6), []);
    service.cluster_ips = vec![address("::")];
    assert_eq!(of(&service, Family::Ipv6), []);
}

#[test]
fn addresses_are_in_the_order_of_their_text() {
    let ends = [0, 1, 9, 10, 19, 99, 100, 101, 200, 255];
    let mut addresses = Vec::new();
    for a in ends {
        for d in ends {
            for port in [1, 9, 10, 80, 443, 8080, 65535] {
                addresses.push(SocketAddr::from(([a, 2, 33, d], port)));
            }
        }
    }
    addresses.extend(
        ["[fd00::1]:80", "[fd00::10]:80", "[fd00::2]:8080"]
            .map(|a| -> SocketAddr { a.parse().unwrap() }),
    );
    let mut by_text = addresses.clone();
    by_text.sort_by_key(|address| address.to_string());
    addresses.sort_by_key(|address| TextOrder::of(*address));
    assert_eq!(addresses, by_text);
}

#[test]
fn serving_udp_endpoints_ignore_policies() {
    let mut service = service(TrafficPolicy::Local, TrafficPolicy::Local);
    service.ports[0].protocol = Protocol::Udp;
    let mut slice = slice(
        "s",
        vec![
            endpoint(10, false),
            ending(endpoint(9, false)),
            hinted(2, &["b"], &[]),
            Endpoint {
                ready: false,
                serving: false,
                ..endpoint(3, true)
            },
        ],
    );
    slice.ports[0].protocol = Protocol::Udp;
    let port = one(&service, &[slice.clone()], &config());
    let last = |address: &SocketAddr| address.to_string();
    let serving: Vec<_> = port.backends.serving.iter().map(last).collect();
    assert_eq!(
        serving,
        ["10.0.0.2:8080", "10.0.0.9:8080", "10.0.0.10:8080"]
    );
    assert!(port.backends.serves("10.0.0.9:8080".parse().unwrap()));
    assert!(!port.backends.serves("10.0.0.3:8080".parse().unwrap()));
    // Not needed for other protocols.
    service.ports[0].protocol = Protocol::Tcp;
    slice.ports[0].protocol = Protocol::Tcp;
    let port = one(&service, &[slice], &config());
    assert!(port.backends.any && port.backends.serving.is_empty());
}

/// A reused pod address: for all pairs of endpoints with one address, in either order, in one slice and in two, the
/// result is that of the endpoint that kube-proxy keeps.
#[test]
fn terminating_duplicates_are_dropped() {
    let mut kinds = Vec::new();
    for bits in 0..16 {
        let is = |bit: u8| bits & 1 << bit != 0;
        kinds.push(Endpoint {
            terminating: is(0),
            ready: is(1),
            serving: is(2),
            for_zones: vec![if is(1) { "a" } else { "b" }.into()],
            ..endpoint(1, is(3))
        });
    }
    let policies = [TrafficPolicy::Cluster, TrafficPolicy::Local];
    let service = |policy| service(policy, policy);
    let mut compared = 0;
    for (one_of, other) in kinds.iter().flat_map(|k| kinds.iter().map(move |o| (k, o))) {
        let is_local = |e: &Endpoint| e.node.as_deref() == Some(HERE);
        // In this order: it does not terminate, it is ready, it serves, it is local.
        let rank = |e: &Endpoint| (e.terminating, !e.ready, !e.serving, !is_local(e));
        let kept = if rank(other) < rank(one_of) {
            other
        } else {
            one_of
        };
        let third = endpoint(2, true);
        for policy in policies {
            let service = service(policy);
            let expected = of(&service, &[kept.clone(), third.clone()]);
            let all = [one_of.clone(), other.clone(), third.clone()];
            assert_eq!(of(&service, &all), expected, "{all:?}");
            let [first, second, third] = all;
            let slices = [slice("s", vec![first, third]), slice("t", vec![second])];
            assert_eq!(one(&service, &slices, &config()), expected, "{slices:?}");
            compared += 1;
        }
    }
    assert_eq!(compared, 16 * 16 * 2);
    // The observed case: one terminates, and another endpoint already has its address.
    let both = [ending(endpoint(1, false)), endpoint(1, false)];
    let expected = [1];
    let resolved = of(&service(TrafficPolicy::Cluster), &both);
    assert_eq!(numbers(&resolved.backends.cluster), expected);
}
