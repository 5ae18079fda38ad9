//! Addresses that several services request, and addresses that serve node ports: the same in every layout.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

use chainwright::iptables::Family;
use chainwright_kube::service::{
    AddressKind, Config, Endpoint, Layout, NodePortAddresses, ObjectName, Port, Protocol, Service,
    Services,
};

use crate::services::net::{Answer, From, Net, Network, PORT, address};
use crate::services::proxy::{self, slice, sync, to};

const NODE_PORT: u16 = 30_080;

fn config() -> Config {
    let mut config = Config::new("node1");
    config.families = vec![Family::Ipv4];
    // The proxies follow each other at once: a table of an ended proxy keeps its owner while another test forks.
    config.own = false;
    config
}

/// Adds a service with one pod or none.
fn put(services: &mut Services, net: &Net, mut service: Service, pod: Option<usize>) {
    let name = service.name.name.to_string();
    if service.ports.is_empty() {
        service = service.with_port(Port::new("p", Protocol::Tcp, 80));
    }
    services.set_service(service);
    let endpoints = pod.map(|pod| Endpoint::new(net.pod(pod)));
    let ports = [to("p", Protocol::Tcp, PORT)];
    services.set_slice(slice(&name, endpoints.into_iter().collect(), &ports));
}

fn has(mut service: Service, kind: AddressKind, ip: IpAddr) -> Service {
    match kind {
        AddressKind::ClusterIp => service.cluster_ips = vec![ip],
        AddressKind::LoadBalancer => service.load_balancer_ips = vec![ip],
        AddressKind::ExternalIp => service.external_ips = vec![ip],
        _ => {
            service.ports = vec![Port {
                node_port: Some(NODE_PORT),
                ..Port::new("p", Protocol::Tcp, 80)
            }];
        }
    }
    service
}

/// Of two services that request one address and port, the entitled one gets it, whichever came first and whichever has
/// endpoints, and the other one when that is removed. The first by name is the one that does not get it.
pub(crate) fn services_share_one_address(layout: Layout) {
    use AddressKind::{ClusterIp, ExternalIp, LoadBalancer, NodePort};
    let net = Net::new(Family::Ipv4);
    let mut proxy = proxy::open(&net.node, layout, config());
    let at = |host| address(Family::Ipv4, Network::Services, host);
    let contested = at(9);
    let front = |kind| match kind {
        NodePort => SocketAddr::new(address(Family::Ipv4, Network::Outside, 1), NODE_PORT),
        _ => SocketAddr::new(contested, 80),
    };
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    let new = old + Duration::from_secs(1);
    // The kind and age of the one that gets it, and of the other.
    let pairs = [
        ((ClusterIp, new), (ExternalIp, old)),
        ((ClusterIp, new), (LoadBalancer, old)),
        ((ClusterIp, old), (ClusterIp, new)),
        ((LoadBalancer, new), (ExternalIp, old)),
        ((LoadBalancer, old), (LoadBalancer, new)),
        ((ExternalIp, old), (ExternalIp, new)),
        ((NodePort, old), (NodePort, new)),
    ];
    for (winner, loser) in pairs {
        for is_first in [true, false] {
            for has_endpoints in [true, false] {
                let what = format!("{layout:?} {winner:?} {loser:?} {is_first} {has_endpoints}");
                let mut services = Services::new();
                let service = |name: &str, host, (kind, created)| {
                    let service = Service::new(ObjectName::new("default", name), [at(host)]);
                    let mut service = has(service, kind, contested);
                    service.created = Some(created);
                    service
                };
                let put_winner = |services: &mut Services| {
                    let pod = has_endpoints.then_some(0);
                    put(services, &net, service("b", 1, winner), pod);
                };
                if is_first {
                    put_winner(&mut services);
                    sync(&net.node, &mut proxy, &mut services);
                }
                put(&mut services, &net, service("a", 2, loser), Some(1));
                if !is_first {
                    sync(&net.node, &mut proxy, &mut services);
                    put_winner(&mut services);
                }
                let synced = sync(&net.node, &mut proxy, &mut services);
                let [conflict] = &synced.conflicts[..] else {
                    panic!("{what}: {synced:?}");
                };
                let names =
                    [&conflict.port, &conflict.current_owner].map(|name| &*name.service.name);
                assert_eq!((names, conflict.kind), (["a", "b"], loser.0), "{what}");
                assert_eq!(proxy.conflicts().count(), 1, "{what}");

                let to = front(winner.0);
                let answer = net.request(From::Client, Protocol::Tcp, to);
                let is_right = match has_endpoints {
                    true => matches!(answer, Answer::Pod(0, _)),
                    false => answer == Answer::Refused,
                };
                assert!(is_right, "{what}: {answer:?}");
                // Everything else of the other service works.
                if loser.0 != ClusterIp {
                    let own = net.request(From::Client, Protocol::Tcp, SocketAddr::new(at(2), 80));
                    assert!(matches!(own, Answer::Pod(1, _)), "{what}: {own:?}");
                }
                // A change of its endpoints is no new conflict. A restart finds the same conflict.
                put(&mut services, &net, service("a", 2, loser), Some(2));
                let synced = sync(&net.node, &mut proxy, &mut services);
                assert_eq!(synced.conflicts, [], "{what}");
                for is_first in [true, false] {
                    proxy.require_full_sync();
                    let synced = sync(&net.node, &mut proxy, &mut services);
                    assert_eq!(synced.conflicts.len(), 1, "{what}");
                    // The first complete sync may delete chains for numbers of endpoints that no service has any more.
                    assert!(is_first || synced.transactions == 0, "{what}: {synced:?}");
                }

                services.remove_service(&ObjectName::new("default", "b"));
                let synced = sync(&net.node, &mut proxy, &mut services);
                assert_eq!(synced.conflicts, [], "{what}");
                assert_eq!(proxy.conflicts().count(), 0, "{what}");
                let answer = net.request(From::Client, Protocol::Tcp, to);
                assert!(matches!(answer, Answer::Pod(2, _)), "{what}: {answer:?}");
                services.remove_service(&ObjectName::new("default", "a"));
                sync(&net.node, &mut proxy, &mut services);
            }
        }
    }
}

/// The addresses that serve node ports.
pub(crate) fn node_ports(layout: Layout) {
    let net = Net::new(Family::Ipv4);
    let first = address(Family::Ipv4, Network::Outside, 1);
    let second = address(Family::Ipv4, Network::Outside, 77);
    let mut services = Services::new();
    let service = Service::new(
        ObjectName::new("default", "web"),
        [address(Family::Ipv4, Network::Services, 1)],
    );
    put(
        &mut services,
        &net,
        has(service, AddressKind::NodePort, first),
        Some(0),
    );
    let networks = |list: &[&str]| {
        NodePortAddresses::Networks(list.iter().map(|n| n.parse().unwrap()).collect())
    };
    let loopback: IpAddr = [127, 0, 0, 1].into();
    // At the node's address, and at one that is added later.
    let cases = [
        (NodePortAddresses::All, [true, true]),
        (NodePortAddresses::These(vec![]), [false, false]),
        (
            NodePortAddresses::These(vec!["fd00::1".parse().unwrap()]),
            [false, false],
        ),
        (NodePortAddresses::These(vec![second]), [false, true]),
        (
            NodePortAddresses::These(vec![first, loopback]),
            [true, false],
        ),
        (networks(&[]), [false, false]),
        (networks(&["fd00::/16"]), [false, false]),
        (networks(&["172.16.0.0/12"]), [false, false]),
        (networks(&["192.168.50.64/26"]), [false, true]),
        (
            networks(&["192.168.50.1/32", "192.168.50.77/32"]),
            [true, true],
        ),
        (
            networks(&["192.168.50.0/24", "192.168.0.0/16", "fd00::/16"]),
            [true, true],
        ),
        (networks(&["0.0.0.0/0"]), [true, true]),
        // The agent's configuration, like kube-proxy's, if only networks of the other family are given.
        (networks(&["fd00::/16", "0.0.0.0/0"]), [true, true]),
        (networks(&["0.0.0.0/1", "128.0.0.0/1"]), [true, true]),
        (networks(&["127.0.0.0/8"]), [false, false]),
    ];
    for is_there in [false, true] {
        if is_there {
            net.give_node(second);
        }
        for (addresses, expected) in &cases {
            let mut config = config();
            config.node_port_addresses = addresses.clone();
            let mut proxy = proxy::open(&net.node, layout, config);
            if !is_there {
                sync(&net.node, &mut proxy, &mut services);
            } else {
                // The sync happened before the node had the address; the address causes no change.
                services.mark_changed(services.names().cloned().collect::<Vec<_>>());
                sync(&net.node, &mut proxy, &mut services);
            }
            let what = format!("{layout:?}, {addresses:?}");
            for (ip, is_served) in [first, second].into_iter().zip(expected) {
                if ip == second && !is_there {
                    continue;
                }
                let answer =
                    net.request(From::Client, Protocol::Tcp, SocketAddr::new(ip, NODE_PORT));
                let is_pod = matches!(answer, Answer::Pod(0, _));
                assert_eq!(is_pod, *is_served, "{what}, {ip}: {answer:?}");
            }
            let at_loopback = SocketAddr::new(loopback, NODE_PORT);
            let answer = net.request(From::Node, Protocol::Tcp, at_loopback);
            assert_eq!(answer, Answer::Refused, "{what}");
        }
    }
    net.node
        .run(|| proxy::open(&net.node, layout, config()).remove())
        .unwrap()
        .unwrap();
}

/// An address that the node gets later is served.
pub(crate) fn node_gets_an_address(layout: Layout) {
    let net = Net::new(Family::Ipv4);
    let mut services = Services::new();
    let cluster_ip = address(Family::Ipv4, Network::Services, 1);
    let service = Service::new(ObjectName::new("default", "web"), [cluster_ip]);
    let service = has(service, AddressKind::NodePort, cluster_ip);
    put(&mut services, &net, service, Some(0));
    let mut config = config();
    let network = "192.168.50.64/26".parse().unwrap();
    config.node_port_addresses = NodePortAddresses::Networks(vec![network]);
    let mut proxy = proxy::open(&net.node, layout, config);
    sync(&net.node, &mut proxy, &mut services);
    let later = address(Family::Ipv4, Network::Outside, 77);
    net.give_node(later);
    let answer = net.request(
        From::Client,
        Protocol::Tcp,
        SocketAddr::new(later, NODE_PORT),
    );
    assert!(
        matches!(answer, Answer::Pod(0, _)),
        "{layout:?}: {answer:?}"
    );
}

/// In the iptables layout 127.0.0.1 also serves node ports, if configured.
pub(crate) fn node_ports_at_loopback(layout: Layout) {
    let setting = "/proc/sys/net/ipv4/conf/all/route_localnet";
    let loopback: IpAddr = [127, 0, 0, 1].into();
    let networks = |network: &str| NodePortAddresses::Networks(vec![network.parse().unwrap()]);
    for (is_enabled, addresses, is_served) in [
        (true, NodePortAddresses::All, true),
        (true, networks("127.0.0.0/8"), true),
        (true, NodePortAddresses::These(vec![loopback]), true),
        (true, networks("192.168.0.0/16"), false),
        (true, NodePortAddresses::These(vec![]), false),
        (false, NodePortAddresses::All, false),
        (false, networks("0.0.0.0/1"), false),
    ] {
        let net = Net::new(Family::Ipv4);
        let mut services = Services::new();
        let cluster_ip = address(Family::Ipv4, Network::Services, 1);
        let service = Service::new(ObjectName::new("default", "web"), [cluster_ip]);
        let service = has(service, AddressKind::NodePort, cluster_ip);
        put(&mut services, &net, service, Some(0));
        let mut config = config();
        config.localhost_node_ports = is_enabled;
        config.node_port_addresses = addresses.clone();
        let mut proxy = proxy::open(&net.node, layout, config);
        sync(&net.node, &mut proxy, &mut services);
        let what = format!("{layout:?}, {is_enabled}, {addresses:?}");
        let read = net.node.run(|| std::fs::read_to_string(setting)).unwrap();
        assert_eq!(read.unwrap().trim() == "1", is_served, "{what}");
        let answer = net.request(
            From::Node,
            Protocol::Tcp,
            SocketAddr::new(loopback, NODE_PORT),
        );
        let is_pod = matches!(answer, Answer::Pod(0, _));
        assert_eq!(is_pod, is_served, "{what}: {answer:?}");
    }
}
