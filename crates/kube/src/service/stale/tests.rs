use super::super::model::ObjectName;
use super::*;
use chainwright::conntrack::{Entry, Tuple};

const ENDPOINTS: u16 = 5353;

fn at(network: u8, last: u8, port: u16) -> SocketAddr {
    SocketAddr::new([10, network, 0, last].into(), port)
}

/// Returns the DNS service at `10.96.0.10:53` with these serving endpoints.
fn dns(endpoints: &[u8]) -> ServicePort {
    let name = PortName {
        service: ObjectName::new("kube-system", "kube-dns"),
        port: "dns".into(),
        protocol: Protocol::Udp,
    };
    let serving = endpoints.iter().map(|last| at(244, *last, ENDPOINTS));
    let mut port = ServicePort::new(name, [10, 96, 0, 10].into(), 53);
    port.backends.serving = serving.collect();
    port
}

fn change(before: Option<ServicePort>, after: Option<ServicePort>) -> PortChange {
    let one = before.as_ref().or(after.as_ref()).unwrap();
    PortChange {
        name: one.name.clone(),
        before: before.map(Arc::new),
        after: after.map(Arc::new),
    }
}

fn none() -> StaleFlows {
    StaleFlows::none(Family::Ipv4, Arc::new(Config::new("node1")))
}

/// Returns what consecutive changes make stale; the first state has no stale entries.
fn after(states: &[Option<ServicePort>]) -> StaleFlows {
    let mut flows = none();
    for pair in states.windows(2) {
        flows.take(&change(pair[0].clone(), pair[1].clone()));
    }
    flows
}

fn what(flows: &StaleFlows) -> Option<&StaleKind> {
    assert!(flows.ports.len() <= 1);
    flows.ports.values().next().map(|stale| &stale.what)
}

fn gone(endpoints: &[u8]) -> StaleKind {
    StaleKind::To(
        endpoints
            .iter()
            .map(|last| at(244, *last, ENDPOINTS))
            .collect(),
    )
}

#[test]
fn removed_endpoints_make_flows_stale() {
    let of = |states: &[&[u8]]| {
        let states: Vec<_> = states.iter().map(|serving| Some(dns(serving))).collect();
        what(&after(&states)).cloned()
    };
    assert_eq!(of(&[&[1, 2], &[1]]), Some(gone(&[2])));
    assert_eq!(of(&[&[1], &[1, 2]]), None);
    assert_eq!(of(&[&[1, 2, 3], &[1, 3], &[1, 4]]), Some(gone(&[2, 3])));
    // An endpoint that came back is not gone.
    assert_eq!(of(&[&[1, 2], &[1], &[1, 2]]), None);
    assert_eq!(of(&[&[1, 2, 3], &[1], &[1, 2]]), Some(gone(&[3])));
    // Without endpoints there is no better destination; what preceded the first endpoint is unknown.
    assert_eq!(of(&[&[1], &[]]), None);
    assert_eq!(of(&[&[], &[1]]), Some(StaleKind::NotServing));
    assert_eq!(of(&[&[1], &[], &[2]]), Some(StaleKind::NotServing));
    assert_eq!(of(&[&[], &[1], &[2]]), Some(StaleKind::NotServing));
    // Memory stays bounded while endpoints come and go and no caller takes the result.
    let states: Vec<_> = (0..=255).map(|last| Some(dns(&[last]))).collect();
    assert_eq!(
        what(&after(&states[..20])),
        Some(&gone(&(0..19).collect::<Vec<_>>()))
    );
    assert_eq!(what(&after(&states)), Some(&StaleKind::NotServing));
}

#[test]
fn new_addresses_make_flows_stale_removed_services_do_not() {
    assert_eq!(
        what(&after(&[None, Some(dns(&[1]))])),
        Some(&StaleKind::NotServing)
    );
    assert_eq!(what(&after(&[None, Some(dns(&[]))])), None);
    let mut other = dns(&[1]);
    other.node_port = Some(30053);
    let states = [Some(dns(&[1])), Some(other.clone())];
    assert_eq!(what(&after(&states)), Some(&StaleKind::NotServing));
    other.node_port = None;
    other.external_ips = vec![[203, 0, 113, 1].into()];
    let states = [Some(dns(&[1])), Some(other)];
    assert_eq!(what(&after(&states)), Some(&StaleKind::NotServing));
    assert_eq!(
        what(&after(&[Some(dns(&[1, 2])), Some(dns(&[1])), None])),
        None
    );
    // Policies and affinity do not matter.
    let mut other = dns(&[1]);
    other.internal_local = true;
    other.affinity = Some(std::time::Duration::from_secs(60));
    assert_eq!(what(&after(&[Some(dns(&[1])), Some(other)])), None);
    // Nor do other protocols.
    for protocol in [Protocol::Tcp, Protocol::Sctp] {
        let of = |serving: &[u8]| {
            let mut port = dns(serving);
            port.name.protocol = protocol;
            Some(port)
        };
        assert_eq!(what(&after(&[of(&[1]), of(&[2])])), None);
    }
}

#[test]
fn later_records_are_merged() {
    let mut flows = after(&[Some(dns(&[1, 2, 3])), Some(dns(&[1, 3]))]);
    let later = after(&[Some(dns(&[1, 3])), Some(dns(&[1]))]);
    assert!(flows.merge(later).is_none());
    assert_eq!(what(&flows), Some(&gone(&[2, 3])));
    let back = after(&[None, Some(dns(&[1, 2]))]);
    assert!(flows.merge(back).is_none());
    assert_eq!(what(&flows), Some(&StaleKind::NotServing));
    let mut other = StaleFlows::none(Family::Ipv6, Arc::clone(&flows.config));
    other.take(&change(None, Some(dns(&[1]))));
    let back = flows.merge(other).unwrap();
    assert_eq!((back.family(), back.is_empty()), (Family::Ipv6, false));
    assert!(!flows.drain().is_empty());
    assert!(flows.is_empty() && flows.filters().is_empty());
}

/// Returns `true` if the flows contain an entry from `10.9.0.1:4000` to `to` with replies from
/// `from`.
fn has(flows: &StaleFlows, to: SocketAddr, from: SocketAddr) -> bool {
    let client = (IpAddr::from([10, 9, 0, 1]), 4000);
    let mut entry = Entry::new(
        Tuple::udp(client, (to.ip(), to.port())),
        std::time::Duration::from_secs(30),
    );
    entry.reply = Tuple::udp((from.ip(), from.port()), client);
    let mut wrong = StaleFilter::of(flows).unwrap();
    wrong.node_addresses = HashSet::from([[192, 0, 2, 1].into()]);
    entry.with_view(|entry| {
        let of_filter = flows.filters();
        let of_filter = of_filter.iter().any(|query| {
            assert!(!query.is_whole || !query.filter.admits(entry) || wrong.has(entry));
            query.filter.admits(entry)
        });
        assert!(
            of_filter || !wrong.has(entry),
            "no query to the kernel matches the entry"
        );
        wrong.has(entry)
    })
}

#[test]
fn entries_with_replies_from_another_endpoint_are_stale() {
    let frontend = at(96, 10, 53);
    let [one, two, three] = [1, 2, 3].map(|last| at(244, last, ENDPOINTS));
    let flows = after(&[Some(dns(&[1, 2])), Some(dns(&[1]))]);
    assert!(has(&flows, frontend, two));
    for (to, from) in [
        (frontend, one),
        (frontend, three),
        (at(96, 10, 54), two),
        (at(96, 11, 53), two),
        (two, two),
        (frontend, at(244, 2, 53)),
    ] {
        assert!(!has(&flows, to, from), "{to} {from}");
    }
    let mut port = dns(&[1]);
    port.node_port = Some(30053);
    port.external_ips = vec![[203, 0, 113, 1].into()];
    let external = SocketAddr::new([203, 0, 113, 1].into(), 53);
    let node = SocketAddr::new([192, 0, 2, 1].into(), 30053);
    let elsewhere = SocketAddr::new([198, 51, 100, 1].into(), 30053);
    let flows = after(&[None, Some(port.clone())]);
    for to in [frontend, external, node] {
        assert!(has(&flows, to, two), "{to}");
        assert!(has(&flows, to, to), "{to}");
        assert!(!has(&flows, to, one), "{to}");
    }
    // A server elsewhere with the same port number as the node port.
    assert!(!has(&flows, elsewhere, elsewhere));
    assert!(!has(&flows, at(96, 10, 30053), two));
    // With known removed endpoints, only those count.
    let mut before = port.clone();
    before.backends = dns(&[1, 2]).backends;
    let flows = after(&[Some(before), Some(port)]);
    assert!(has(&flows, node, two) && has(&flows, external, two));
    assert!(!has(&flows, node, three) && !has(&flows, node, node));
}

#[test]
fn conntrack_queries_are_narrow() {
    let filters = |flows: &StaleFlows| {
        let filters = flows.filters();
        (filters.len(), filters.iter().filter(|f| f.is_whole).count())
    };
    let of = |before: &[u8], after_it: &[u8]| after(&[Some(dns(before)), Some(dns(after_it))]);
    assert_eq!(filters(&of(&[1, 2], &[1])), (1, 1));
    assert_eq!(filters(&of(&[1, 2, 3, 4, 5], &[1])), (4, 4));
    // Five removed endpoints are sought by the service's address.
    assert_eq!(filters(&of(&[1, 2, 3, 4, 5, 6], &[1])), (1, 0));
    assert_eq!(filters(&of(&[], &[1])), (1, 0));
    let mut port = dns(&[1]);
    port.node_port = Some(30053);
    port.external_ips = vec![[203, 0, 113, 1].into()];
    assert_eq!(filters(&after(&[None, Some(port.clone())])), (3, 0));
    let mut before = port.clone();
    before.backends = dns(&[1, 2]).backends;
    // By the one removed endpoint, instead of by each address.
    assert_eq!(filters(&after(&[Some(before), Some(port.clone())])), (1, 0));
    port.external_ips = (1..9).map(|last| [203, 0, 113, last].into()).collect();
    assert_eq!(filters(&after(&[None, Some(port)])), (1, 0));
    // All services of a cluster: one listing.
    let ports = (0..=255).map(|last| {
        let mut port = dns(&[1]);
        port.cluster_ip = [10, 96, 0, last].into();
        port.name.port = last.to_string().into();
        (port.name.clone(), Arc::new(port))
    });
    let mut ports: Ports = ports.collect();
    let mut tcp = dns(&[1]);
    tcp.name.protocol = Protocol::Tcp;
    ports.insert(tcp.name.clone(), Arc::new(tcp));
    let mut flows = none();
    flows.record_all(&ports);
    assert_eq!(flows.ports.len(), 256);
    assert_eq!(filters(&flows), (1, 0));
}
