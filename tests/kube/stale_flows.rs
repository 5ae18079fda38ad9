//! Stale UDP conntrack entries: many of them, among others.

use crate::services::proxy;
use std::net::IpAddr;
use std::time::Duration;

use crate::common::{report, sandbox};
use crate::services::proxy::{slice, to};
use chainwright::conntrack::{self, Entry, Filter, Tuple, TupleFilter};
use chainwright::iptables::Family;
use chainwright_kube::service::{
    Config, DeletedFlows, Endpoint, Layout, ObjectName, Port, Protocol, Service, ServiceProxy,
    Services,
};
use chainwright_testing::Sandbox;

const MANY: u16 = 10_000;
const OTHERS: u16 = 2_000;
const HOUR: Duration = Duration::from_secs(3600);

/// Services `dns` and `log` with one port each, and the same endpoints.
struct Node {
    sandbox: Sandbox,
    family: Family,
    services: Services,
    proxy: ServiceProxy,
    conntrack: conntrack::Connection,
}

impl Node {
    fn new(family: Family) -> Self {
        let sandbox = sandbox();
        let proxy = open(&sandbox, family);
        let conntrack = sandbox.run(conntrack::Connection::open).unwrap().unwrap();
        let mut services = Services::new();
        for (name, last) in [("dns", 10), ("log", 11)] {
            let name = ObjectName::new("default", name);
            let service = Service::new(name, [address(family, 96, last)]);
            services.set_service(service.with_port(Port::new("p", Protocol::Udp, 53)));
        }
        let mut node = Self {
            sandbox,
            family,
            services,
            proxy,
            conntrack,
        };
        node.set("dns", &[1, 2]);
        node.set("log", &[1, 2]);
        node.sync();
        // Everything, as after a start.
        assert_eq!(node.delete_stale_flows(), DeletedFlows::default());
        node
    }

    fn set(&mut self, service: &str, endpoints: &[u8]) {
        let endpoint = |last: &u8| Endpoint::new(address(self.family, 244, *last));
        let endpoints = endpoints.iter().map(endpoint).collect();
        let ports = [to("p", Protocol::Udp, 5353)];
        self.services.set_slice(slice(service, endpoints, &ports));
    }

    fn sync(&mut self) {
        proxy::sync(&self.sandbox, &mut self.proxy, &mut self.services);
    }

    fn delete_stale_flows(&mut self) -> DeletedFlows {
        let stale = self.proxy.take_stale();
        let conntrack = &mut self.conntrack;
        let done = self.sandbox.run(|| {
            let mut all = DeletedFlows::default();
            for flows in &stale {
                all += flows.delete(conntrack)?;
            }
            Ok::<_, chainwright::Error>(all)
        });
        done.unwrap()
            .unwrap_or_else(|error| panic!("{}", report(&error)))
    }

    /// Adds entries from this many clients, as if through a service to an endpoint.
    fn enter(&mut self, clients: u16, service: u8, endpoint: u8) {
        for client in 0..clients {
            let ip = address(self.family, (client >> 8) as u8, client as u8);
            let client = (ip, 4000 + u16::from(endpoint));
            let (service, endpoint) = (
                address(self.family, 96, service),
                address(self.family, 244, endpoint),
            );
            let mut entry = Entry::new(Tuple::udp(client, (service, 53)), HOUR);
            entry.reply = Tuple::udp((endpoint, 5353), client);
            let made = self.conntrack.create(&entry);
            made.unwrap_or_else(|error| panic!("{entry:?}: {}", report(&error)));
        }
    }

    fn entries(&mut self, service: u8, endpoint: u8) -> usize {
        let to = TupleFilter::to(address(self.family, 96, service));
        let from = TupleFilter::from(address(self.family, 244, endpoint));
        let mut count = 0;
        let filter = Filter::all().original(to).reply(from);
        let listing = self.conntrack.entries(&filter).unwrap();
        listing.for_each(|_| count += 1).unwrap();
        count
    }
}

fn open(node: &Sandbox, family: Family) -> ServiceProxy {
    let mut config = Config::new("node1");
    config.families = vec![family];
    proxy::open(node, Layout::Flat, config)
}

fn address(family: Family, network: u8, last: u8) -> IpAddr {
    match family {
        Family::Ipv4 => [10, network, 0, last].into(),
        Family::Ipv6 => [0xfd00, network.into(), 0, 0, 0, 0, 0, last.into()].into(),
    }
}

fn many(family: Family) {
    let mut node = Node::new(family);
    node.enter(MANY, 10, 1);
    node.enter(OTHERS, 10, 3);
    node.enter(OTHERS, 11, 4);
    // An endpoint of both services: clients distinguish the services only by port.
    let client = (address(family, 97, 1), 4000);
    let mut shared = Entry::new(Tuple::udp(client, (address(family, 96, 11), 53)), HOUR);
    shared.reply = Tuple::udp((address(family, 244, 1), 5353), client);
    node.conntrack.create(&shared).unwrap();

    node.set("dns", &[2, 3]);
    node.sync();
    let deleted_flows = node.delete_stale_flows();
    match family {
        // The kernel deleted them, without sending entries here.
        Family::Ipv4 => assert_eq!(
            (deleted_flows.flushes, deleted_flows.listed.deleted),
            (1, 0)
        ),
        Family::Ipv6 => {
            let deleted = usize::from(MANY);
            assert_eq!(
                (deleted_flows.flushes, deleted_flows.listed.deleted),
                (0, deleted)
            );
        }
    }
    assert_eq!(deleted_flows.listed.absent, 0);
    assert_eq!(node.entries(10, 1), 0);
    let others = usize::from(OTHERS);
    assert_eq!((node.entries(10, 3), node.entries(11, 4)), (others, others));
    assert_eq!(node.entries(11, 1), 1);
    // It is reported once.
    assert!(node.proxy.take_stale().is_empty());

    // After a start the previous state is unknown: everything without a serving endpoint, in one
    // listing.
    node.enter(MANY, 10, 1);
    node.proxy = open(&node.sandbox, family);
    node.sync();
    let stale = node.proxy.take_stale();
    assert_eq!(stale.len(), 1);
    let (conntrack, deleted) = (&mut node.conntrack, usize::from(MANY + OTHERS));
    let deleted_flows = node
        .sandbox
        .run(|| stale[0].delete(conntrack))
        .unwrap()
        .unwrap();
    // Including entries of `log` to an endpoint that it never had.
    assert_eq!(
        (deleted_flows.flushes, deleted_flows.listed.deleted),
        (0, deleted)
    );
    let again = node
        .sandbox
        .run(|| stale[0].delete(conntrack))
        .unwrap()
        .unwrap();
    assert_eq!(again, DeletedFlows::default());
    assert_eq!((node.entries(10, 3), node.entries(11, 4)), (others, 0));
    assert_eq!(node.entries(11, 1), 1);
}

#[test]
fn deletes_exactly_ten_thousand_stale_flows() {
    many(Family::Ipv4);
}

#[test]
fn deletes_exactly_ten_thousand_stale_flows_in_ipv6() {
    many(Family::Ipv6);
}
