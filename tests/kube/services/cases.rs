//! The table of cases.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::Duration;

use chainwright::conntrack::{self, Filter, TupleFilter};
use chainwright::iptables::Family;
use chainwright_kube::service::{
    Config, Endpoint, EndpointSlice, Layout, LocalDetector, NodePortAddresses, ObjectName, Port,
    Protocol, Service, ServiceProxy, Services, TrafficPolicy,
};

use crate::common::report;
use crate::services::net::{Answer, From, Net, Network, PORT, address, request_udp, udp};
use crate::services::proxy::{self, slice, to};

/// The test cases in one layout and family.
struct Table {
    net: Net,
    services: Services,
    proxy: ServiceProxy,
    layout: Layout,
    family: Family,
    /// Number of services so far: each has a number, which determines its address and node port.
    last: u8,
    cases: usize,
}

/// A service under construction.
struct Made {
    service: Service,
    endpoints: Vec<Endpoint>,
    protocol: Protocol,
}

pub(crate) fn run(layout: Layout, family: Family) {
    let net = Net::new(family);
    let mut table = Table {
        proxy: proxy::open(&net.node, layout, config(family)),
        net,
        services: Services::new(),
        layout,
        family,
        last: 0,
        cases: 0,
    };
    table.cluster_ips();
    table.hairpins();
    table.node_ports();
    table.external_addresses();
    table.load_balancers();
    table.nowhere_to_go();
    table.internal_policy();
    table.protocols();
    table.stale_connections();
    table.terminating();
    table.affinity();
    table.topology();
    table.restart();
    table.configurations();
    println!("{layout:?} {family}: {} cases", table.cases);
    assert!(table.cases >= 70, "{}", table.cases);
}

fn config(family: Family) -> Config {
    let mut config = Config::new("node1");
    config.families = vec![family];
    config.zone = Some("zone-a".into());
    config.node_addresses = vec![address(family, Network::Outside, 1)];
    config.local_detector = LocalDetector::Networks(vec![match family {
        Family::Ipv4 => "10.244.0.0/16".parse().unwrap(),
        Family::Ipv6 => "fd00:10:244::/48".parse().unwrap(),
    }]);
    config.service_networks = vec![match family {
        Family::Ipv4 => "10.96.0.0/16".parse().unwrap(),
        Family::Ipv6 => "fd00:10:96::/48".parse().unwrap(),
    }];
    config
}

const CLIENT: From = From::Client;
const TCP: Protocol = Protocol::Tcp;

impl Table {
    /// A service with these pods, as in the API.
    fn made(&mut self, pods: &[usize]) -> Made {
        self.last += 1;
        let name = ObjectName::new("default", format!("service-{}", self.last));
        let ip = address(self.family, Network::Services, self.last);
        let endpoint = |pod: &usize| Endpoint {
            node: Some(if *pod < 2 { "node1" } else { "node2" }.into()),
            ..Endpoint::new(self.net.pod(*pod))
        };
        Made {
            service: Service::new(name, [ip]),
            endpoints: pods.iter().map(endpoint).collect(),
            protocol: TCP,
        }
    }

    /// Writes it to the kernel. Returns its cluster IP.
    fn put(&mut self, made: &Made) -> SocketAddr {
        let mut service = made.service.clone();
        let mut port = Port::new("p", made.protocol, 80);
        port.node_port = service.ports.first().and_then(|port| port.node_port);
        service.ports = vec![port];
        let ip = service.cluster_ips[0];
        let ports = [to("p", made.protocol, PORT)];
        let name = &service.name.name;
        self.services
            .set_slice(slice(name, made.endpoints.clone(), &ports));
        self.services.set_service(service);
        self.sync();
        SocketAddr::new(ip, 80)
    }

    fn sync(&mut self) {
        proxy::sync(&self.net.node, &mut self.proxy, &mut self.services);
    }

    /// Sends so many requests that one endpoint of three is missed in one of 10^7 runs.
    fn answers(&self, from: From, protocol: Protocol, to: SocketAddr) -> BTreeSet<Answer> {
        self.net.request_repeatedly(from, protocol, to, 40)
    }

    /// Checks that exactly these pods answer, and whether they see the sender's address or the node's.
    #[track_caller]
    fn case(&mut self, words: &str, from: From, to: SocketAddr, pods: &[usize], seen: Seen) {
        self.case_of(words, from, TCP, to, pods, seen);
    }

    #[track_caller]
    fn case_of(
        &mut self,
        words: &str,
        from: From,
        protocol: Protocol,
        to: SocketAddr,
        pods: &[usize],
        seen: Seen,
    ) {
        let answers = self.answers(from, protocol, to);
        let is_expected = |(pod, sender): (usize, IpAddr)| match seen {
            Seen::Sender => sender == self.address_of(from),
            // The node's address on the pod's cable.
            Seen::Node => sender == address(self.family, Network::Pods(pod), 1),
            Seen::Any => true,
        };
        let reached: Vec<usize> = answers
            .iter()
            .map(|answer| match answer {
                Answer::Pod(pod, sender) => {
                    assert!(
                        is_expected((*pod, *sender)),
                        "{words}: {answers:?}, not {seen:?}"
                    );
                    *pod
                }
                _ => self.fail(words, &answers),
            })
            .collect();
        let reached: BTreeSet<usize> = reached.into_iter().collect();
        let pods: BTreeSet<usize> = pods.iter().copied().collect();
        if reached != pods {
            self.fail(words, &answers);
        }
        self.cases += 1;
    }

    /// Checks that no pod answers: a refusal, or silence.
    #[track_caller]
    fn none(&mut self, words: &str, from: From, to: SocketAddr, answer: Answer) {
        let answers = self.net.request_repeatedly(from, TCP, to, 1);
        if answers != BTreeSet::from([answer]) {
            self.fail(words, &answers);
        }
        self.cases += 1;
    }

    #[track_caller]
    fn fail(&self, words: &str, answers: &BTreeSet<Answer>) -> ! {
        let ruleset = self.net.tools().run("nft list ruleset");
        panic!("{:?} {words}: {answers:?}\n{ruleset}", self.layout);
    }

    fn address_of(&self, from: From) -> IpAddr {
        match from {
            From::Client => address(self.family, Network::Outside, 2),
            From::Node => address(self.family, Network::Outside, 1),
            From::Pod(number) => self.net.pod(number),
        }
    }

    fn node(&self, port: u16) -> SocketAddr {
        SocketAddr::new(address(self.family, Network::Outside, 1), port)
    }

    fn external(&self, host: u8) -> IpAddr {
        address(self.family, Network::External, host)
    }

    fn cluster_ips(&mut self) {
        let made = self.made(&[0, 1, 2]);
        let ip = self.put(&made);
        self.case(
            "cluster IP from outside",
            CLIENT,
            ip,
            &[0, 1, 2],
            Seen::Node,
        );
        self.case(
            "cluster IP from the node",
            From::Node,
            ip,
            &[0, 1, 2],
            Seen::Any,
        );
        self.case(
            "cluster IP from a pod",
            From::Pod(0),
            ip,
            &[0, 1, 2],
            Seen::Any,
        );
        let made = self.made(&[0]);
        let ip = self.put(&made);
        self.case("one endpoint", From::Pod(1), ip, &[0], Seen::Sender);
        let wrong = SocketAddr::new(ip.ip(), 81);
        // kube-proxy's iptables mode handles only the ports of cluster IPs: other packets follow the routes.
        let refused = match self.layout {
            Layout::Iptables(_) => Answer::Silence,
            _ => Answer::Refused,
        };
        self.none(
            "a port that the service does not have",
            CLIENT,
            wrong,
            refused.clone(),
        );
        self.none("the same from the node", From::Node, wrong, refused);
        let nobody = SocketAddr::new(address(self.family, Network::Services, 250), 80);
        self.none(
            "a cluster IP that no service has",
            CLIENT,
            nobody,
            Answer::Silence,
        );
    }

    fn hairpins(&mut self) {
        let made = self.made(&[0]);
        let ip = self.put(&made);
        self.case("a pod to itself", From::Pod(0), ip, &[0], Seen::Node);
        let made = self.made(&[0, 1]);
        let ip = self.put(&made);
        self.case(
            "a pod to itself or to another pod",
            From::Pod(0),
            ip,
            &[0, 1],
            Seen::Any,
        );
    }

    fn with_node_port(mut made: Made, port: u16, policy: TrafficPolicy) -> Made {
        let port = Port {
            node_port: Some(port),
            ..Port::default()
        };
        made.service.ports = vec![port];
        made.service.external_traffic_policy = policy;
        made
    }

    fn node_ports(&mut self) {
        let made = Self::with_node_port(self.made(&[0, 1, 2]), 30001, TrafficPolicy::Cluster);
        let ip = self.put(&made);
        let port = self.node(30001);
        self.case("node port", CLIENT, port, &[0, 1, 2], Seen::Node);
        self.case(
            "node port from a pod",
            From::Pod(1),
            port,
            &[0, 1, 2],
            Seen::Any,
        );
        self.case(
            "node port from the node",
            From::Node,
            port,
            &[0, 1, 2],
            Seen::Any,
        );
        self.case(
            "and its cluster IP",
            From::Pod(0),
            ip,
            &[0, 1, 2],
            Seen::Any,
        );
        let listener = self.net.listen_on_node(30001);
        self.case(
            "while a program on the node listens there",
            CLIENT,
            port,
            &[0, 1, 2],
            Seen::Node,
        );
        drop(listener);
        let other = SocketAddr::new(address(self.family, Network::Pods(1), 1), 30001);
        self.case(
            "at another address of the node",
            From::Pod(1),
            other,
            &[0, 1, 2],
            Seen::Any,
        );

        let made = Self::with_node_port(self.made(&[0, 1, 2]), 30002, TrafficPolicy::Local);
        self.put(&made);
        let port = self.node(30002);
        self.case("node port, Local", CLIENT, port, &[0, 1], Seen::Sender);
        self.case(
            "from a pod to any endpoint",
            From::Pod(0),
            port,
            &[0, 1, 2],
            Seen::Any,
        );
        self.case(
            "also from the node",
            From::Node,
            port,
            &[0, 1, 2],
            Seen::Any,
        );
        let made = Self::with_node_port(self.made(&[2]), 30003, TrafficPolicy::Local);
        self.put(&made);
        let port = self.node(30003);
        self.none(
            "Local without endpoints here",
            CLIENT,
            port,
            Answer::Silence,
        );
        self.case(
            "a pod reaches it nevertheless",
            From::Pod(0),
            port,
            &[2],
            Seen::Any,
        );
    }

    fn external_addresses(&mut self) {
        let at = |table: &Self, host| SocketAddr::new(table.external(host), 80);
        let mut made = self.made(&[0, 1, 2]);
        made.service.external_ips = vec![self.external(1)];
        self.put(&made);
        let ip = at(self, 1);
        self.case("external IP", CLIENT, ip, &[0, 1, 2], Seen::Node);
        let mut made = self.made(&[0, 2]);
        made.service.external_ips = vec![self.external(2)];
        made.service.external_traffic_policy = TrafficPolicy::Local;
        self.put(&made);
        let ip = at(self, 2);
        self.case("external IP, Local", CLIENT, ip, &[0], Seen::Sender);
        self.case("also from a pod", From::Pod(1), ip, &[0, 2], Seen::Any);
        // Two services have this one: the first by name gets it, then the other.
        let mut second = self.made(&[1]);
        second.service.external_ips = vec![self.external(1)];
        second.service.name = ObjectName::new("zzz", "second");
        self.services.set_slice(EndpointSlice {
            name: ObjectName::new("zzz", "second"),
            ..slice("second", second.endpoints.clone(), &[to("p", TCP, PORT)])
        });
        self.put(&second);
        let ip = at(self, 1);
        self.case(
            "an address of two services",
            CLIENT,
            ip,
            &[0, 1, 2],
            Seen::Node,
        );
        let first = self.services.names();
        let first = first.filter(|name| {
            let service = self.services.service(name);
            &*name.namespace == "default"
                && service.is_some_and(|s| s.external_ips.contains(&ip.ip()))
        });
        let first = first.cloned().collect::<Vec<_>>();
        self.services.remove_service(&first[0]);
        self.sync();
        self.case("after one of them is removed", CLIENT, ip, &[1], Seen::Node);
    }

    fn load_balancers(&mut self) {
        let client = self.address_of(CLIENT);
        let network = |text4: &str, text6: &str| match self.family {
            Family::Ipv4 => text4.parse().unwrap(),
            Family::Ipv6 => text6.parse().unwrap(),
        };
        let (theirs, others) = (
            network("192.168.48.0/20", "fd00:192:168:50::/64"),
            network("198.51.100.0/25", "fd00:198::/32"),
        );
        let exactly = client.into();
        for (words, ranges, host, open) in [
            ("load balancer", vec![], 11, true),
            (
                "source ranges that contain the client",
                vec![others, theirs],
                12,
                true,
            ),
            (
                "a source range of the client's address",
                vec![exactly],
                13,
                true,
            ),
            (
                "source ranges that do not contain the client",
                vec![others],
                14,
                false,
            ),
        ] {
            let mut made = self.made(&[0, 1, 2]);
            made.service.load_balancer_ips = vec![self.external(host)];
            made.service.source_ranges = ranges;
            let cluster_ip = self.put(&made);
            let ip = SocketAddr::new(self.external(host), 80);
            match open {
                true => self.case(words, CLIENT, ip, &[0, 1, 2], Seen::Node),
                false => {
                    self.none(words, CLIENT, ip, Answer::Silence);
                    self.case(
                        "the cluster IP is unrestricted",
                        CLIENT,
                        cluster_ip,
                        &[0, 1, 2],
                        Seen::Node,
                    );
                }
            }
        }
        let mut made = self.made(&[1, 2]);
        made.service.load_balancer_ips = vec![self.external(15)];
        made.service.source_ranges = vec![theirs];
        made.service.external_traffic_policy = TrafficPolicy::Local;
        self.put(&made);
        let ip = SocketAddr::new(self.external(15), 80);
        self.case(
            "with source ranges, policy Local",
            CLIENT,
            ip,
            &[1],
            Seen::Sender,
        );
    }

    fn nowhere_to_go(&mut self) {
        let mut made = Self::with_node_port(self.made(&[]), 30004, TrafficPolicy::Cluster);
        made.service.external_ips = vec![self.external(21)];
        let ip = self.put(&made);
        let (external, port) = (SocketAddr::new(self.external(21), 80), self.node(30004));
        self.none("no endpoints", CLIENT, ip, Answer::Refused);
        self.none("from the node", From::Node, ip, Answer::Refused);
        self.none("its external IP", CLIENT, external, Answer::Refused);
        self.none("its node port", CLIENT, port, Answer::Refused);
        made.endpoints = vec![Endpoint::new(self.net.pod(2))];
        self.put(&made);
        self.case("the first endpoint", CLIENT, ip, &[2], Seen::Node);
        self.case("also at the node port", CLIENT, port, &[2], Seen::Node);
        made.endpoints.clear();
        self.put(&made);
        self.none("the last endpoint removed", CLIENT, ip, Answer::Refused);
    }

    fn internal_policy(&mut self) {
        let mut made = self.made(&[0, 2]);
        made.service.internal_traffic_policy = TrafficPolicy::Local;
        let ip = self.put(&made);
        self.case(
            "internal policy Local",
            From::Pod(1),
            ip,
            &[0],
            Seen::Sender,
        );
        made.endpoints.remove(0);
        self.put(&made);
        self.none("without endpoints here", From::Pod(1), ip, Answer::Silence);
    }

    fn protocols(&mut self) {
        for protocol in [Protocol::Udp, Protocol::Sctp] {
            let mut made = Self::with_node_port(
                self.made(&[0, 1, 2]),
                30010 + u16::from(protocol.number()),
                TrafficPolicy::Cluster,
            );
            made.protocol = protocol;
            made.service.external_ips = vec![self.external(31)];
            let ip = self.put(&made);
            let words = |what: &str| format!("{protocol}: {what}");
            match protocol {
                // There the sender's port is always the same: one connection for the kernel.
                Protocol::Sctp => {
                    let answer = self.net.request(CLIENT, protocol, ip);
                    assert!(matches!(answer, Answer::Pod(..)), "{protocol}: {answer:?}");
                    let port = self.node(30010 + u16::from(protocol.number()));
                    let answer = self.net.request(CLIENT, protocol, port);
                    assert!(matches!(answer, Answer::Pod(..)), "{protocol}: {answer:?}");
                    self.cases += 2;
                }
                _ => {
                    let all = [0, 1, 2];
                    self.case_of(&words("cluster IP"), CLIENT, protocol, ip, &all, Seen::Node);
                    let external = SocketAddr::new(self.external(31), 80);
                    let seen = Seen::Node;
                    self.case_of(&words("external"), CLIENT, protocol, external, &all, seen);
                }
            }
        }
    }

    /// Deletes stale conntrack entries.
    fn delete_stale_flows(&mut self) {
        let stale = self.proxy.take_stale();
        let done = self.net.node.run(|| {
            let mut conntrack = conntrack::Connection::open()?;
            stale
                .iter()
                .try_for_each(|flows| flows.delete(&mut conntrack).map(drop))
        });
        let done: Result<(), chainwright::Error> = done.unwrap();
        done.unwrap_or_else(|error| panic!("{}", report(&error)));
    }

    /// Number of entries to an address and port.
    fn entries_to(&self, protocol: Protocol, to: SocketAddr) -> usize {
        let filter = TupleFilter::to(to.ip()).to_port(to.port());
        let filter = Filter::all().protocol(protocol.number()).original(filter);
        let mut count = 0;
        let mut conntrack = self
            .net
            .node
            .run(conntrack::Connection::open)
            .unwrap()
            .unwrap();
        let listing = conntrack.entries(&filter).unwrap();
        listing.for_each(|_| count += 1).unwrap();
        count
    }

    /// Sends another request from an existing socket.
    #[track_caller]
    fn assert_answer(&mut self, words: &str, socket: &UdpSocket, pod: Option<usize>) {
        let answer = request_udp(socket);
        let is_it = match (&answer, pod) {
            (Answer::Pod(number, _), Some(pod)) => *number == pod,
            (Answer::Silence, None) => true,
            _ => false,
        };
        if !is_it {
            self.fail(words, &BTreeSet::from([answer]));
        }
        self.cases += 1;
    }

    /// Clients that keep sending from one socket.
    fn stale_connections(&mut self) {
        let endpoints = |table: &Self, pods: &[usize]| -> Vec<Endpoint> {
            let endpoint = |pod: &usize| Endpoint::new(table.net.pod(*pod));
            pods.iter().map(endpoint).collect()
        };
        let mut made = self.made(&[0]);
        let tcp = self.put(&made);
        self.case("of TCP", CLIENT, tcp, &[0], Seen::Node);
        let of_tcp = self.entries_to(TCP, tcp);
        assert!(of_tcp > 0);
        let mut udp_made = Self::with_node_port(self.made(&[0]), 30040, TrafficPolicy::Cluster);
        udp_made.protocol = Protocol::Udp;
        let ip = self.put(&udp_made);
        let port = self.node(30040);
        let other = SocketAddr::new(self.net.pod(2), 30040);
        let [to_ip, to_port, to_other] =
            [ip, port, other].map(|to| self.net.client.run(|| udp(to)).unwrap());
        self.assert_answer("UDP", &to_ip, Some(0));
        self.assert_answer("UDP at the node port", &to_port, Some(0));
        assert_eq!(request_udp(&to_other), Answer::Refused);
        self.delete_stale_flows();
        assert_eq!(self.entries_to(Protocol::Udp, port), 1);

        // Another one is added, and the first is terminating, but serves.
        udp_made.endpoints = endpoints(self, &[0, 1]);
        udp_made.endpoints[0].ready = false;
        udp_made.endpoints[0].terminating = true;
        self.put(&udp_made);
        self.delete_stale_flows();
        self.assert_answer("a terminating endpoint", &to_ip, Some(0));
        self.assert_answer("the same at the node port", &to_port, Some(0));

        made.endpoints = endpoints(self, &[1]);
        self.put(&made);
        udp_made.endpoints = endpoints(self, &[1]);
        self.put(&udp_made);
        self.assert_answer("a stale entry", &to_ip, Some(0));
        self.assert_answer("a stale entry of the node port", &to_port, Some(0));
        self.delete_stale_flows();
        self.assert_answer("the stale entry is deleted", &to_ip, Some(1));
        self.assert_answer(
            "the stale entry of the node port is deleted",
            &to_port,
            Some(1),
        );
        assert_eq!(self.entries_to(TCP, tcp), of_tcp);
        assert_eq!(self.entries_to(Protocol::Udp, other), 1);

        // Without endpoints there is no better destination.
        udp_made.endpoints.clear();
        self.put(&udp_made);
        self.delete_stale_flows();
        assert_eq!(self.entries_to(Protocol::Udp, ip), 1);
        udp_made.endpoints = endpoints(self, &[2]);
        self.put(&udp_made);
        self.delete_stale_flows();
        self.assert_answer("the first endpoint after none", &to_ip, Some(2));
        self.assert_answer("also at the node port", &to_port, Some(2));

        // Before the service existed, packets followed the routes.
        let external = SocketAddr::new(self.external(41), 80);
        let socket = self.net.client.run(|| udp(external)).unwrap();
        self.assert_answer("an address without a service", &socket, None);
        let mut made = self.made(&[1]);
        made.protocol = Protocol::Udp;
        made.service.external_ips = vec![external.ip()];
        self.put(&made);
        self.assert_answer("its entry is unchanged", &socket, None);
        // As after a start, when the previous state is unknown.
        self.proxy.require_full_sync();
        self.sync();
        self.delete_stale_flows();
        self.assert_answer("after the service exists", &socket, Some(1));
    }

    fn terminating(&mut self) {
        let mut made = self.made(&[0, 1]);
        let ends = |endpoint: &mut Endpoint| {
            endpoint.ready = false;
            endpoint.terminating = true;
        };
        ends(&mut made.endpoints[0]);
        let ip = self.put(&made);
        self.case(
            "one of two endpoints is terminating",
            CLIENT,
            ip,
            &[1],
            Seen::Node,
        );
        ends(&mut made.endpoints[1]);
        self.put(&made);
        self.case(
            "all endpoints are terminating",
            CLIENT,
            ip,
            &[0, 1],
            Seen::Node,
        );
        made.endpoints[0].serving = false;
        self.put(&made);
        self.case(
            "one terminating endpoint no longer serves",
            CLIENT,
            ip,
            &[1],
            Seen::Node,
        );
    }

    fn affinity(&mut self) {
        let mut made = self.made(&[0, 1, 2]);
        made.service.session_affinity = Some(Duration::from_secs(10_800));
        let ip = self.put(&made);
        let answers = self.answers(CLIENT, TCP, ip);
        let [Answer::Pod(pod, _)] = answers.iter().collect::<Vec<_>>()[..] else {
            self.fail("affinity", &answers);
        };
        self.cases += 1;
        let others: Vec<usize> = (0..3).filter(|other| other != pod).collect();
        // Other endpoints change: the client's endpoint stays.
        made.endpoints = [&others[..1], &[*pod][..]]
            .concat()
            .iter()
            .map(|pod| Endpoint::new(self.net.pod(*pod)))
            .collect();
        self.put(&made);
        self.case(
            "affinity while others change",
            CLIENT,
            ip,
            &[*pod],
            Seen::Node,
        );
        made.endpoints = others
            .iter()
            .map(|pod| Endpoint::new(self.net.pod(*pod)))
            .collect();
        self.put(&made);
        let answers = self.answers(CLIENT, TCP, ip);
        let [Answer::Pod(next, _)] = answers.iter().collect::<Vec<_>>()[..] else {
            self.fail("affinity, endpoint gone", &answers);
        };
        assert!(others.contains(next), "{answers:?}");
        self.cases += 1;
        // Another client gets its own random endpoint, and after the time every client gets a new one.
        made.endpoints = (0..3).map(|pod| Endpoint::new(self.net.pod(pod))).collect();
        made.service.session_affinity = Some(Duration::from_secs(1));
        let mut fresh = self.made(&[0, 1, 2]);
        fresh.service.session_affinity = Some(Duration::from_secs(1));
        let ip = self.put(&fresh);
        let mut answers = BTreeSet::new();
        for _ in 0..20 {
            answers.insert(self.net.request(CLIENT, TCP, ip));
            if answers.len() > 1 {
                break;
            }
            sleep(Duration::from_millis(1_200));
        }
        if answers.len() < 2 {
            self.fail("affinity, timed out", &answers);
        }
        self.cases += 1;
        let mut kept = self.made(&[0, 1, 2]);
        kept.protocol = Protocol::Udp;
        kept.service.session_affinity = Some(Duration::from_secs(60));
        let ip = self.put(&kept);
        let answers = self.answers(From::Node, Protocol::Udp, ip);
        if answers.len() != 1 {
            self.fail("affinity of UDP from the node", &answers);
        }
        self.cases += 1;
    }

    fn topology(&mut self) {
        let mut made = self.made(&[0, 1, 2]);
        for (endpoint, zone) in made
            .endpoints
            .iter_mut()
            .zip(["zone-a", "zone-b", "zone-a"])
        {
            endpoint.for_zones = vec![zone.into()];
        }
        let ip = self.put(&made);
        self.case("hints for the zone", CLIENT, ip, &[0, 2], Seen::Node);
        made.endpoints[1].for_zones.clear();
        self.put(&made);
        self.case("not all have hints", CLIENT, ip, &[0, 1, 2], Seen::Node);
    }

    /// An open connection stays open, whichever sync or proxy runs.
    fn restart(&mut self) {
        let mut made = self.made(&[0, 1, 2]);
        made.protocol = Protocol::Udp;
        let ip = self.put(&made);
        let socket = self.net.client.run(|| udp(ip)).unwrap();
        let before = request_udp(&socket);
        assert!(matches!(before, Answer::Pod(..)), "{before:?}");
        let config = self.proxy.config().clone();
        self.proxy = proxy::open(&self.net.node, self.layout, config);
        self.sync();
        assert_eq!(request_udp(&socket), before);
        let all = [0, 1, 2];
        self.case_of(
            "after a restart",
            CLIENT,
            Protocol::Udp,
            ip,
            &all,
            Seen::Node,
        );
        let other = Self::with_node_port(self.made(&[0]), 30020, TrafficPolicy::Cluster);
        self.put(&other);
        assert_eq!(request_udp(&socket), before);
        self.case(
            "also for later connections",
            CLIENT,
            self.node(30020),
            &[0],
            Seen::Node,
        );
    }

    /// Other configurations: each is a restart.
    fn configurations(&mut self) {
        let made = Self::with_node_port(self.made(&[0, 1]), 30030, TrafficPolicy::Cluster);
        let ip = self.put(&made);
        let mut config = config(self.family);
        let second = address(self.family, Network::Outside, 77);
        self.net.give_node(second);
        config.node_port_addresses = NodePortAddresses::These(vec![second]);
        config.masquerade_all = true;
        self.proxy = proxy::open(&self.net.node, self.layout, config);
        self.sync();
        let at_second = SocketAddr::new(second, 30030);
        self.case(
            "node ports at one address",
            CLIENT,
            at_second,
            &[0, 1],
            Seen::Node,
        );
        let elsewhere = self.node(30030);
        self.none("not at other addresses", CLIENT, elsewhere, Answer::Refused);
        self.case(
            "everything is masqueraded",
            From::Pod(1),
            ip,
            &[0, 1],
            Seen::Node,
        );
        self.net.node.run(|| self.proxy.remove()).unwrap().unwrap();
        self.none("all removed", CLIENT, at_second, Answer::Refused);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// The sender of the request.
    Sender,
    /// The node, because of masquerading.
    Node,
    /// Any address.
    Any,
}
