//! Changes that do not concern a service leave it alone: open connections, and new ones.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use chainwright::iptables::Family;
use chainwright_kube::service::{
    Config, Endpoint, Layout, ObjectName, Port, Protocol, Service, ServiceProxy, Services,
    TrafficPolicy,
};

use crate::common::random::Random;
use crate::common::{OnDrop, sandbox};
use crate::services::listed::{Listed, assert_same};
use crate::services::net::{
    Answer, ECHO, From, Net, Network, PATIENCE, PORT, address, request_udp, udp,
};
use crate::services::proxy::{self, slice, sync, to};
use crate::services::tables::listed;

/// A cluster IP by number; the watched services have the first ones.
fn at(host: u8) -> IpAddr {
    address(Family::Ipv4, Network::Services, host)
}

pub(crate) fn config() -> Config {
    let mut config = Config::new("node1");
    config.families = vec![Family::Ipv4];
    config
}

/// The watched service of all pods: UDP, and TCP with ports where a connection is answered and where it stays open.
pub(crate) fn watched() -> Services {
    let mut services = Services::new();
    let service = Service::new(ObjectName::new("default", "watched"), [at(1)]);
    let (udp, tcp) = (Protocol::Udp, Protocol::Tcp);
    let ports = [("udp", udp, 80), ("tcp", tcp, 80), ("echo", tcp, 81)];
    let ports = ports.map(|(name, protocol, port)| Port::new(name, protocol, port));
    services.set_service(ports.into_iter().fold(service, Service::with_port));
    let pod = |pod| Endpoint::new(address(Family::Ipv4, Network::Pods(pod), 2));
    let ports = [
        to("udp", udp, PORT),
        to("tcp", tcp, PORT),
        to("echo", tcp, ECHO),
    ];
    services.set_slice(slice("watched", (0..3).map(pod).collect(), &ports));
    services
}

/// Adds, changes or removes another service with this number (from 10 on).
pub(crate) fn change_other(services: &mut Services, host: u8, random: &mut Random) {
    let name = format!("other-{host}");
    let object = ObjectName::new("default", &name[..]);
    if random.once_in(4) {
        services.remove_service(&object);
        return;
    }
    let mut service = Service::new(object, [at(host)]);
    if random.once_in(3) {
        service.session_affinity = Some(Duration::from_secs(30 + random.below(3) as u64));
    }
    if random.once_in(3) {
        service.external_ips = vec![address(Family::Ipv4, Network::External, host)];
        if random.once_in(2) {
            service.external_traffic_policy = TrafficPolicy::Local;
        }
    }
    if random.once_in(3) {
        let balancer = address(Family::Ipv4, Network::External, host);
        service.load_balancer_ips = vec![balancer];
        let range = format!("198.51.100.0/{}", 24 + random.below(3));
        service.source_ranges = vec![range.parse().unwrap()];
    }
    let mut port = Port::new("p", Protocol::Tcp, 80);
    if random.once_in(3) {
        port.node_port = Some(30_000 + u16::from(host));
    }
    services.set_service(service.with_port(port));
    let endpoint = |i: usize| Endpoint {
        node: (i == 0).then(|| "node1".into()),
        ..Endpoint::new([10, 244, 9, i as u8].into())
    };
    let endpoints = (0..random.below(5)).map(endpoint).collect();
    services.set_slice(slice(&name, endpoints, &[to("p", Protocol::Tcp, 8080)]));
}

/// A client of the [`watched`] service, with open connections to it.
pub(crate) struct Watch<'n> {
    net: &'n Net,
    open: UdpSocket,
    open_tcp: Mutex<TcpStream>,
    whose: [Answer; 2],
}

impl<'n> Watch<'n> {
    /// Requires that the service exists.
    pub(crate) fn new(net: &'n Net) -> Self {
        let connect = || {
            let stream = TcpStream::connect_timeout(&SocketAddr::new(at(1), 81), PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok::<_, std::io::Error>((udp(SocketAddr::new(at(1), 80)), stream))
        };
        let (open, open_tcp) = net.client.run(connect).unwrap().unwrap();
        let open_tcp = Mutex::new(open_tcp);
        let whose = [request_udp(&open), request_echo(&open_tcp)];
        let are_pods = whose.iter().all(|w| matches!(w, Answer::Pod(..)));
        assert!(are_pods, "{whose:?}");
        Self {
            net,
            open,
            open_tcp,
            whose,
        }
    }

    /// Checks that open connections work, and that a new one is answered.
    #[track_caller]
    pub(crate) fn check(&self, words: &dyn std::fmt::Debug) {
        let now = [request_udp(&self.open), request_echo(&self.open_tcp)];
        assert_eq!(now, self.whose, "{words:?}");
        let to = SocketAddr::new(at(1), 80);
        let answer = self.net.request(From::Client, Protocol::Tcp, to);
        assert!(matches!(answer, Answer::Pod(..)), "{words:?}: {answer:?}");
    }

    /// Checks continuously while `work` runs; `work` can query whether to continue. Returns the number of checks.
    pub(crate) fn during(&self, work: impl FnOnce(&dyn Fn() -> bool)) -> usize {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
            let checking = scope.spawn(|| {
                let mut checked = 0;
                while !stop.load(Ordering::Relaxed) {
                    self.check(&checked);
                    checked += 1;
                }
                checked
            });
            work(&|| !checking.is_finished());
            stop.store(true, Ordering::Relaxed);
            checking.join().unwrap()
        })
    }
}

/// Exchanges data over a connection that stays open.
fn request_echo(stream: &Mutex<TcpStream>) -> Answer {
    let mut stream = stream.lock().unwrap();
    let mut words = [0; 64];
    let response = stream
        .write_all(b"?")
        .and_then(|()| stream.read(&mut words));
    match response {
        Ok(length) => crate::services::net::parse_answer(&words[..length]),
        Err(error) => panic!("an open connection was lost: {error}"),
    }
}

pub(crate) fn open(net: &Net, layout: Layout) -> ServiceProxy {
    proxy::open(&net.node, layout, config())
}

/// Services that are not watched are added, changed and removed, in this many syncs; the proxy is sometimes
/// restarted.
pub(crate) fn undisturbed(layout: Layout, syncs: usize) {
    let net = Net::new(Family::Ipv4);
    let mut proxy = open(&net, layout);
    let mut services = watched();
    sync(&net.node, &mut proxy, &mut services);
    let watch = Watch::new(&net);
    let mut random = Random::new();
    let mut brought = 0;
    let checked = watch.during(|goes_on| {
        for round in 0..syncs {
            if !goes_on() {
                break;
            }
            let host = 10 + random.below(200) as u8;
            change_other(&mut services, host, &mut random);
            if round % 50 == 49 {
                // A restart.
                proxy = open(&net, layout);
            }
            let synced = sync(&net.node, &mut proxy, &mut services);
            brought += usize::from(synced.transactions > 0);
            watch.check(&round);
        }
    });
    println!(
        "{layout:?}: {brought} of {syncs} syncs changed something, {checked} checks meanwhile"
    );
    assert!(brought > syncs / 2, "{brought}");
    assert!(checked > syncs / 4, "{checked}");
    // The result is the same as in a new table; the flat layout removes unused chains in a complete sync.
    proxy.require_full_sync();
    sync(&net.node, &mut proxy, &mut services);
    assert_same(
        &layout,
        &listed(layout, &net.node),
        &listed_after_full_sync(layout, &mut services),
    );
}

/// The listing in an empty namespace.
pub(crate) fn listed_after_full_sync(layout: Layout, services: &mut Services) -> Listed {
    let sandbox = sandbox();
    let mut proxy = proxy::open(&sandbox, layout, config());
    sync(&sandbox, &mut proxy, services);
    listed(layout, &sandbox)
}

/// From each layout to each other, with continuous new connections: none fails, and open ones stay.
pub(crate) fn layouts_change() {
    let net = Net::new(Family::Ipv4);
    let services = watched();
    let open = |layout| {
        let mut proxy = open(&net, layout);
        sync(&net.node, &mut proxy, &mut services.clone());
        proxy
    };
    drop(open(Layout::Flat));
    let watch = Watch::new(&net);
    let checked = watch.during(|goes_on| {
        let mut now = Layout::Flat;
        let pairs = Layout::ALL.map(|first| Layout::ALL.map(|second| [first, second]));
        for next in pairs.into_iter().flatten().flatten() {
            if next == now || !goes_on() {
                continue;
            }
            let mut proxy = open(next);
            let removed =
                proxy::when_released(|| net.node.run(|| proxy.remove_other_layouts()).unwrap());
            assert_eq!(removed, 1, "{now:?} to {next:?}");
            watch.check(&format_args!("{now:?} to {next:?}"));
            now = next;
        }
    });
    assert!(checked > 20, "{checked}");
}
