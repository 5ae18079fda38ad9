//! Services and endpoints of a cluster of any size.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;

use crate::BoxError;
use chainwright::iptables;
use chainwright::netlink::MessageError;
use chainwright::nft::{Connection, Element, Family, Scope, SetId, Transaction};
use chainwright_kube::service::{
    Config, Endpoint, EndpointPort, EndpointSlice, Layout, ObjectName, Port, Protocol, Service,
    ServiceProxy, Services,
};

/// Services of a cluster, each with one port and this many endpoints on other nodes.
///
/// The data for a baseline has the [flat](Layout::Flat) layout in IPv4, and is encoded separately: it shares no code
/// with what is measured.
#[derive(Debug, Clone, Copy)]
pub struct Cluster {
    /// Number of services, at most 1,000,000.
    pub services: usize,
    /// Number of endpoints of each service; at most 4,000,000 in total.
    pub endpoints: usize,
    /// Protocol of each service.
    pub protocol: Protocol,
}

const TABLE: &str = "kube-services";
const NAMESPACE: &str = "ns";
const PORT_NAME: &str = "http";
const PORT: u16 = 80;
const TARGET_PORT: u16 = 8080;
/// Number of bytes of operations in one datagram of a large baseline: about as many as the layout sends at once.
const PART: usize = 600_000;

/// One element of one set: its key, and its value if the set is a map.
type Entry = (&'static str, Vec<u8>, Option<Vec<u8>>);

/// Datagrams that apply a change and revert it.
#[derive(Debug, Clone)]
pub struct ChangeBytes {
    /// Applies it.
    pub done: Vec<u8>,
    /// Reverts it.
    pub undone: Vec<u8>,
}

impl Cluster {
    /// Creates a cluster with this many services and endpoints of each, with a TCP port.
    #[must_use]
    pub const fn new(services: usize, endpoints: usize) -> Self {
        Self {
            services,
            endpoints,
            protocol: Protocol::Tcp,
        }
    }

    /// Returns the configuration of a proxy for the cluster: IPv4 only.
    #[must_use]
    pub fn config(own: bool) -> Config {
        let mut config = Config::new("node");
        config.families = vec![iptables::Family::Ipv4];
        config.own = own;
        config
    }

    /// Returns all services, as read from the API.
    #[must_use]
    pub fn services(self) -> Services {
        let mut services = Services::new();
        for number in 0..self.services {
            self.set(&mut services, number);
        }
        services
    }

    /// Adds a service with its endpoints, possibly one after the last.
    pub fn set(self, services: &mut Services, number: usize) {
        let service = Service::new(object(number, ""), [cluster_ip(number).into()]);
        services.set_service(service.with_port(Port::new(PORT_NAME, self.protocol, PORT)));
        self.set_endpoints(services, number, 0..self.endpoints);
    }

    /// Sets a service's endpoints. Numbers from [`endpoints`](Self::endpoints) on are endpoints that it does not
    /// have at first.
    pub fn set_endpoints(
        self,
        services: &mut Services,
        number: usize,
        endpoints: impl IntoIterator<Item = usize>,
    ) {
        let endpoint = |endpoint| {
            let mut endpoint = Endpoint::new(self.endpoint(number, endpoint).into());
            endpoint.node = Some("another".into());
            endpoint
        };
        services.set_slice(EndpointSlice {
            name: object(number, "-x7k2p"),
            service: object(number, "").name,
            endpoints: endpoints.into_iter().map(endpoint).collect(),
            ports: vec![EndpointPort {
                name: PORT_NAME.into(),
                protocol: self.protocol,
                port: Some(TARGET_PORT),
            }],
        });
    }

    /// Removes a service with its endpoints.
    pub fn remove(self, services: &mut Services, number: usize) {
        services.remove_service(&object(number, ""));
        services.remove_slice(&object(number, "-x7k2p"));
    }

    /// Returns an endpoint's address: `10.128.x.y` and up, all different. An endpoint after the last has an address in
    /// the second half.
    fn endpoint(self, number: usize, endpoint: usize) -> Ipv4Addr {
        const FIRST: u32 = 0x0a80_0000;
        let address_of = |start: usize, each: usize, place: usize| {
            Ipv4Addr::from(FIRST + (start + number * each + place) as u32)
        };
        match endpoint.checked_sub(self.endpoints) {
            None => address_of(0, self.endpoints, endpoint),
            Some(place) => address_of(1 << 22, 1, place),
        }
    }

    /// Creates a proxy that has written all services to the calling thread's network namespace.
    ///
    /// # Errors
    /// Those of [`ServiceProxy::open`] and [`ServiceProxy::sync`].
    pub fn load(
        services: &mut Services,
        layout: Layout,
        own: bool,
    ) -> Result<ServiceProxy, BoxError> {
        let mut proxy = ServiceProxy::open(layout, Self::config(own))?;
        proxy.sync(services)?;
        Ok(proxy)
    }

    /// Converts the content of the calling thread's network namespace to datagrams that create it in an empty one:
    /// the existing objects and elements, in the order in which the kernel lists them. Returns one datagram, or in
    /// the flat layout one for about as much as that commits at once.
    ///
    /// # Errors
    /// Those of reading. Never [`MessageError`] in practice: the kernel has accepted all of it once.
    pub fn as_datagrams(layout: Layout) -> Result<Vec<Vec<u8>>, BoxError> {
        let most = match layout {
            Layout::Flat => PART,
            _ => usize::MAX,
        };
        let snapshot = Connection::open()?.snapshot(Scope::all())?;
        let mut whole = Transaction::new();
        snapshot.write_to(&mut whole)?;
        let mut datagrams = Vec::new();
        let (mut rest, mut part) = (whole.as_bytes(), 0);
        while !rest.is_empty() {
            let length = message_length(&rest[part..]);
            part += length;
            if part >= most || part >= rest.len() || length == 0 {
                let (messages, others) = rest.split_at(part);
                let mut tx = Transaction::with_capacity(part);
                tx.append(messages)?;
                datagrams.push(tx.datagram(<[u8]>::to_vec));
                (rest, part) = (others, 0);
            }
        }
        Ok(datagrams)
    }

    /// Returns the datagrams for one more endpoint of a service with its initial ones: the number of its endpoints and
    /// one slot change.
    ///
    /// # Errors
    /// Never [`MessageError`] in practice.
    pub fn add_endpoint(self, number: usize) -> Result<ChangeBytes, MessageError> {
        let last = self.endpoints;
        change_between(
            &[count(number, self.endpoints)],
            &[
                count(number, self.endpoints + 1),
                place(number, last, self.endpoint(number, last)),
            ],
        )
    }

    /// Returns the datagrams for one more service with its endpoints, which is the next one in the kernel.
    ///
    /// # Errors
    /// Never [`MessageError`] in practice.
    pub fn add_service(self, number: usize) -> Result<ChangeBytes, MessageError> {
        let group = self.services;
        let mut entries = vec![
            ("cluster-ips", cluster_ip(number).octets().to_vec(), None),
            ("service-ips", self.front(number), Some(self::group(group))),
            count(group, self.endpoints),
        ];
        let places = 0..self.endpoints;
        entries.extend(places.map(|at| place(group, at, self.endpoint(number, at))));
        change_between(&[], &entries)
    }

    /// Replaces each of a service's first endpoints, one after the other.
    ///
    /// # Errors
    /// Never [`MessageError`] in practice.
    pub fn replaced(
        self,
        number: usize,
        endpoints: usize,
    ) -> Result<Vec<ChangeBytes>, MessageError> {
        let one = |at| {
            let other = endpoints + at;
            change_between(
                &[place(number, at, self.endpoint(number, at))],
                &[place(number, at, self.endpoint(number, other))],
            )
        };
        (0..endpoints).map(one).collect()
    }

    /// Returns the endpoints of a service that had this many, after some were replaced.
    pub const fn after_replacing(endpoints: usize, replaced: usize) -> Range<usize> {
        replaced..endpoints + replaced
    }

    /// Returns the address of a service.
    #[must_use]
    pub fn address(self, number: usize) -> SocketAddrV4 {
        SocketAddrV4::new(cluster_ip(number), PORT)
    }

    /// The network of all endpoints, and the port at which they serve.
    pub const ENDPOINTS: (&str, u16) = ("10.128.0.1/9", TARGET_PORT);

    /// Returns the address, protocol and port, each padded to a word.
    fn front(self, number: usize) -> Vec<u8> {
        let [a, b, c, d] = cluster_ip(number).octets();
        let [high, low] = PORT.to_be_bytes();
        vec![a, b, c, d, self.protocol.number(), 0, 0, 0, high, low, 0, 0]
    }

    /// The maps and sets that contain an element for each service or endpoint.
    pub const SETS: [&str; 4] = ["cluster-ips", "service-ips", "groups", "endpoints"];

    /// Returns the family and name of the table.
    #[must_use]
    pub const fn table() -> (Family, &'static str) {
        (Family::IP, TABLE)
    }
}

/// Returns the name of an object. Names sort like the numbers, so that the kernel's numbers do, too.
fn object(number: usize, suffix: &str) -> ObjectName {
    ObjectName::new(NAMESPACE, format!("svc-{number:07}{suffix}"))
}

/// Returns a service's address: `10.96.x.y` and up.
fn cluster_ip(number: usize) -> Ipv4Addr {
    Ipv4Addr::from(0x0a60_0001 + number as u32)
}

/// Returns the group of a service's endpoints.
fn group(number: usize) -> Vec<u8> {
    (number as u32 * 2).to_ne_bytes().to_vec()
}

/// Returns the element with the number of a group's endpoints.
fn count(number: usize, endpoints: usize) -> Entry {
    let pick_key = (endpoints as u32) << 17;
    (
        "groups",
        group(number),
        Some(pick_key.to_ne_bytes().to_vec()),
    )
}

/// Returns the element with an endpoint in a slot of a group.
fn place(number: usize, at: usize, endpoint: Ipv4Addr) -> Entry {
    let key = [group(number), (at as u32).to_ne_bytes().to_vec()].concat();
    let [high, low] = TARGET_PORT.to_be_bytes();
    let value = [endpoint.octets(), [high, low, 0, 0]].concat();
    ("endpoints", key, Some(value))
}

/// Deletes some elements and adds others, and the reverse.
fn change_between(before: &[Entry], after: &[Entry]) -> Result<ChangeBytes, MessageError> {
    let datagram = |deleted: &[Entry], added: &[Entry]| -> Result<Vec<u8>, MessageError> {
        let mut tx = Transaction::new();
        for (set, key, _) in deleted {
            tx.delete_elements(&set_id(set), [Element::new(key)])?;
        }
        for (set, key, value) in added {
            let element = Element::new(key);
            let element = match value {
                Some(value) => element.with_data(value),
                None => element,
            };
            tx.add_elements(&set_id(set), [element])?;
        }
        Ok(tx.datagram(<[u8]>::to_vec))
    };
    Ok(ChangeBytes {
        done: datagram(before, after)?,
        undone: datagram(after, before)?,
    })
}

fn set_id(set: &'static str) -> SetId<'static> {
    SetId::new(Family::IP, TABLE, set)
}

/// Returns the length of the first message including its padding, 0 if there is none.
fn message_length(messages: &[u8]) -> usize {
    match messages.first_chunk() {
        Some(length) => (u32::from_ne_bytes(*length) as usize).next_multiple_of(4),
        None => 0,
    }
}
