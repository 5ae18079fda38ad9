//! Endpoints are chosen evenly, and clients with session affinity keep theirs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use chainwright::conntrack::{self, Filter};
use chainwright::iptables::Family;
use chainwright_kube::service::{Endpoint, Layout, ObjectName, Port, Protocol, Service, Services};
use chainwright_testing::Sandbox;

use crate::common::random::Random;
use crate::common::sandbox;
use crate::services::net::{Answer, From, Net, Network, PORT, address};
use crate::services::open_connections::{change_other, config, open};
use crate::services::proxy::{self, slice, sync, to};

/// Number of connections for each number of endpoints.
const DRAWS: usize = 1_000;

/// The chi-square value for `freedom` degrees that chance exceeds once in `10^6`, by Wilson and Hilferty.
fn critical(freedom: f64) -> f64 {
    const QUANTILE: f64 = 4.753;
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + QUANTILE * part.sqrt()).powi(3)
}

/// Counts this many connections each for 1 to 100 endpoints, while endpoints are added and then removed, with this
/// step.
pub(crate) fn evenly(layout: Layout, step: usize) {
    let (node, beyond) = (sandbox(), sandbox());
    Sandbox::connect(
        &node,
        "eth0",
        "192.168.1.1/24",
        &beyond,
        "eth0",
        "192.168.1.2/24",
    )
    .unwrap();
    node.add_route("0.0.0.0/0", "192.168.1.2").unwrap();
    let mut proxy = proxy::open(&node, layout, config());
    let mut conntrack = node.run(conntrack::Connection::open).unwrap().unwrap();
    let mut services = Services::new();
    let ip: IpAddr = [10, 96, 0, 1].into();
    let service = Service::new(ObjectName::new("default", "drawn"), [ip]);
    services.set_service(service.with_port(Port::new("p", Protocol::Udp, 53)));
    let up = (1..=100).filter(|number| *number <= 3 || number % step as u8 == 0);
    let numbers: Vec<u8> = up.chain((1..100).rev().step_by(7 * step)).collect();
    for number in numbers {
        let endpoints = (1..=number).map(|i| Endpoint::new([10, 244, 0, i].into()));
        services.set_slice(slice(
            "drawn",
            endpoints.collect(),
            &[to("p", Protocol::Udp, 8080)],
        ));
        sync(&node, &mut proxy, &mut services);
        let _ = conntrack.delete_matching(&Filter::all()).unwrap();
        node.run(|| {
            for _ in 0..DRAWS {
                let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
                socket.send_to(b"?", (ip, 53)).unwrap();
            }
        })
        .unwrap();
        let mut drawn: BTreeMap<IpAddr, usize> = BTreeMap::new();
        let listing = conntrack.entries(&Filter::all()).unwrap();
        listing
            .for_each(|entry| {
                let original = entry.original();
                if original.destination == ip
                    && let Some(reply) = entry.reply()
                {
                    *drawn.entry(reply.source).or_default() += 1;
                }
            })
            .unwrap();
        let all: usize = drawn.values().sum();
        // A port that is reused within the round belongs to the same connection.
        assert!(all > DRAWS * 9 / 10, "{number}: {drawn:?}");
        let expected = all as f64 / f64::from(number);
        let square: f64 = (1..=number)
            .map(|i| {
                let count = drawn.remove(&[10, 244, 0, i].into()).unwrap_or_default();
                (count as f64 - expected).powi(2) / expected
            })
            .sum();
        assert!(
            drawn.is_empty(),
            "{number}: connections to unknown endpoints: {drawn:?}"
        );
        let most = match number {
            1 => 0.001,
            _ => critical(f64::from(number - 1)),
        };
        assert!(
            square < most,
            "{number} endpoints: chi-square {square}, above {most}"
        );
    }
}

/// Clients of a service with affinity return repeatedly while its endpoints change, in some rounds other services as
/// well, and the proxy is sometimes restarted: each client keeps its endpoint as long as that exists.
pub(crate) fn affinity(layout: Layout, rounds: usize) {
    let net = Net::new(Family::Ipv4);
    let mut proxy = open(&net, layout);
    let mut services = Services::new();
    let ip = address(Family::Ipv4, Network::Services, 1);
    let mut kept = Service::new(ObjectName::new("default", "kept"), [ip]);
    kept.session_affinity = Some(Duration::from_secs(10_800));
    services.set_service(kept.with_port(Port::new("p", Protocol::Tcp, 80)));
    let pods = [From::Pod(0), From::Pod(1), From::Pod(2)];
    let mut clients = [From::Client, From::Node].into_iter().chain(pods);
    let mut clients: Vec<_> = clients.by_ref().map(|client| (client, None)).collect();
    let mut random = Random::new();
    let (mut stayed, mut moved) = (0, 0);
    for round in 0..3 * rounds {
        // By chance the endpoints of most clients may stay for long: continue until enough clients got new ones.
        if round >= rounds && moved >= rounds {
            break;
        }
        let mut there: BTreeSet<usize> = (0..3).filter(|_| random.once_in(2)).collect();
        there.insert(random.below(3));
        // Connections of endpoints on this node to themselves are masqueraded.
        let endpoints = there.iter().map(|pod| Endpoint {
            node: Some("node1".into()),
            ..Endpoint::new(net.pod(*pod))
        });
        let port = to("p", Protocol::Tcp, PORT);
        services.set_slice(slice("kept", endpoints.collect(), &[port]));
        if random.once_in(2) {
            change_other(&mut services, 10 + random.below(20) as u8, &mut random);
        }
        if random.once_in(20) {
            drop(proxy);
            proxy = open(&net, layout);
        }
        sync(&net.node, &mut proxy, &mut services);
        for (client, last) in &mut clients {
            for _ in 0..3 {
                let answer = net.request(*client, Protocol::Tcp, SocketAddr::new(ip, 80));
                let Answer::Pod(pod, _) = answer else {
                    panic!("{layout:?}, round {round}, {client:?}: {answer:?}");
                };
                assert!(
                    there.contains(&pod),
                    "{layout:?}, round {round}: {pod} is not in {there:?}"
                );
                match *last {
                    Some(last) if there.contains(&last) => {
                        assert_eq!(pod, last, "{layout:?}, round {round}, {client:?}");
                        stayed += 1;
                    }
                    _ => moved += 1,
                }
                *last = Some(pod);
            }
        }
    }
    println!("{layout:?}: {stayed} kept their endpoint, {moved} got a new one");
    assert!(moved >= rounds && stayed >= moved, "{stayed} {moved}");
}
