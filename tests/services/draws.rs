//! That endpoints are drawn evenly, and that what does not concern a connection leaves it alone.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use chainwright::conntrack::{self, Filter};
use chainwright::iptables::Family;
use chainwright::kube::service::{
    Config, Endpoint, EndpointPort, EndpointSlice, Layout, ObjectName, Port, Protocol, Service,
    ServiceProxy, Services,
};
use chainwright::netns::Sandbox;

use crate::common::random::Random;
use crate::common::{OnDrop, report, sandbox};
use crate::net::{Answer, From, Net, Network, address, ask_udp, udp};

/// How many connections are drawn for at each number of endpoints.
const DRAWS: usize = 1_000;

fn slice(service: &str, endpoints: Vec<Endpoint>, protocol: Protocol) -> EndpointSlice {
    EndpointSlice {
        name: ObjectName::new("default", format!("{service}-1")),
        service: service.into(),
        endpoints,
        ports: vec![EndpointPort {
            name: "p".into(),
            protocol,
            port: Some(8080),
        }],
    }
}

/// The greatest chi-square of `freedom` degrees that chance gives once in `10^6`, by Wilson and Hilferty.
fn critical(freedom: f64) -> f64 {
    const QUANTILE: f64 = 4.753;
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + QUANTILE * part.sqrt()).powi(3)
}

/// 100,000 connections over 1 to 100 endpoints, as endpoints come one by one, and then go.
pub(crate) fn evenly(layout: Layout) {
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
    let mut config = Config::new("node1");
    config.families = vec![Family::Ipv4];
    let mut proxy = node
        .run(|| ServiceProxy::open(layout, config))
        .unwrap()
        .unwrap();
    let mut conntrack = node.run(conntrack::Connection::open).unwrap().unwrap();
    let mut services = Services::new();
    let ip: IpAddr = [10, 96, 0, 1].into();
    let service = Service::new(ObjectName::new("default", "drawn"), [ip]);
    services.set_service(service.with_port(Port::new("p", Protocol::Udp, 53)));
    let numbers: Vec<u8> = (1..=100).chain((1..100).rev().step_by(7)).collect();
    for number in numbers {
        let endpoints = (1..=number).map(|i| Endpoint::new([10, 244, 0, i].into()));
        services.set_slice(slice("drawn", endpoints.collect(), Protocol::Udp));
        let synced = node.run(|| proxy.sync(&mut services)).unwrap();
        synced.unwrap_or_else(|error| panic!("{}", report(&error)));
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
        // A port that is taken again within the round is the same connection.
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
            "{number}: to none of the endpoints: {drawn:?}"
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

/// A connection that is open, and new ones, while services that they are not of come, change and go.
pub(crate) fn undisturbed(layout: Layout, syncs: usize) {
    let net = Net::new(Family::Ipv4);
    let mut config = Config::new("node1");
    config.families = vec![Family::Ipv4];
    let open = || ServiceProxy::open(layout, config.clone());
    let mut proxy = net.node.run(open).unwrap().unwrap();
    let mut services = Services::new();
    let at = |host| address(Family::Ipv4, Network::Services, host);
    for (host, name, protocol) in [(1, "udp", Protocol::Udp), (2, "tcp", Protocol::Tcp)] {
        let service = Service::new(ObjectName::new("default", name), [at(host)]);
        services.set_service(service.with_port(Port::new("p", protocol, 80)));
        let endpoints = (0..3).map(|pod| Endpoint::new(net.pod(pod))).collect();
        services.set_slice(slice(name, endpoints, protocol));
    }
    let sync = |proxy: &mut ServiceProxy, services: &mut Services| {
        let synced = net.node.run(|| proxy.sync(services)).unwrap();
        synced.unwrap_or_else(|error| panic!("{}", report(&error)))
    };
    sync(&mut proxy, &mut services);
    let to = SocketAddr::new(at(2), 80);
    let open_one = net.client.run(|| udp(SocketAddr::new(at(1), 80))).unwrap();
    let whose = ask_udp(&open_one);
    assert!(matches!(whose, Answer::Pod(..)), "{whose:?}");
    let mut random = Random::new();
    for round in 0..syncs {
        let host = 10 + random.below(200) as u8;
        let name = format!("other-{host}");
        if random.below(4) == 0 {
            services.remove_service(&ObjectName::new("default", &name[..]));
        } else {
            let mut service = Service::new(ObjectName::new("default", &name[..]), [at(host)]);
            if random.below(3) == 0 {
                service.session_affinity = Some(Duration::from_secs(30 + random.below(3) as u64));
            }
            services.set_service(service.with_port(Port::new("p", Protocol::Tcp, 80)));
            let endpoints =
                (0..random.below(5)).map(|i| Endpoint::new([10, 244, 9, i as u8].into()));
            services.set_slice(slice(&name, endpoints.collect(), Protocol::Tcp));
        }
        if round % 50 == 49 {
            // A restart.
            proxy = net.node.run(open).unwrap().unwrap();
        }
        sync(&mut proxy, &mut services);
        assert_eq!(ask_udp(&open_one), whose, "round {round}");
        let answer = net.ask(From::Client, Protocol::Tcp, to);
        assert!(
            matches!(answer, Answer::Pod(..)),
            "round {round}: {answer:?}"
        );
    }
    // Nothing is left to mend.
    proxy.distrust();
    let connected = net.client.run(|| TcpStream::connect(to)).unwrap();
    assert!(connected.is_ok());
}

/// From each layout to each other, while connections are made without a pause: none fails, and an open one stays.
pub(crate) fn layouts_change() {
    let net = Net::new(Family::Ipv4);
    let mut config = Config::new("node1");
    config.families = vec![Family::Ipv4];
    let mut services = Services::new();
    let at = |host| address(Family::Ipv4, Network::Services, host);
    for (host, name, protocol) in [(1, "udp", Protocol::Udp), (2, "tcp", Protocol::Tcp)] {
        let service = Service::new(ObjectName::new("default", name), [at(host)]);
        services.set_service(service.with_port(Port::new("p", protocol, 80)));
        let endpoints = (0..3).map(|pod| Endpoint::new(net.pod(pod))).collect();
        services.set_slice(slice(name, endpoints, protocol));
    }
    let open = |layout| {
        let mut services = services.clone();
        let opened = net.node.run(|| {
            let mut proxy = ServiceProxy::open(layout, config.clone())?;
            proxy.sync(&mut services)?;
            Ok::<_, chainwright::Error>(proxy)
        });
        let opened = opened.unwrap();
        opened.unwrap_or_else(|error| panic!("{layout:?}: {}", report(&error)))
    };
    drop(open(Layout::Flat));
    let to = SocketAddr::new(at(2), 80);
    let open_one = net.client.run(|| udp(SocketAddr::new(at(1), 80))).unwrap();
    let whose = ask_udp(&open_one);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        let asking = scope.spawn(|| {
            let mut asked = 0;
            while !stop.load(Ordering::Relaxed) {
                let answer = net.ask(From::Client, Protocol::Tcp, to);
                assert!(
                    matches!(answer, Answer::Pod(..)),
                    "{answer:?} after {asked}"
                );
                asked += 1;
            }
            asked
        });
        let mut now = Layout::Flat;
        for first in Layout::ALL {
            for second in Layout::ALL {
                for next in [first, second] {
                    if next == now || asking.is_finished() {
                        continue;
                    }
                    let mut proxy = open(next);
                    let removed = net.node.run(|| proxy.remove_others()).unwrap();
                    let removed = removed.unwrap_or_else(|error| panic!("{}", report(&error)));
                    assert_eq!(removed, 1, "{now:?} to {next:?}");
                    assert_eq!(ask_udp(&open_one), whose, "{now:?} to {next:?}");
                    now = next;
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        let asked = asking.join().unwrap();
        assert!(asked > 20, "{asked}");
    });
}
