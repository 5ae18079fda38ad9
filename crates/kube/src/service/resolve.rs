//! Resolves a service's ports on this node: which endpoints each kind of traffic reaches.
//!
//! Source: `CategorizeEndpoints` of `pkg/proxy/topology.go`, and `pkg/proxy/serviceport.go` of Kubernetes 1.36.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ipnet::IpNet;

use super::config::{Config, is_of};
use super::model::{Endpoint, EndpointSlice, Port, Protocol, Service, TrafficPolicy};
use super::names::PortName;
use chainwright::iptables::Family;

/// An endpoint that receives traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Backend {
    /// Address and port.
    pub address: SocketAddr,
    /// Whether it runs on this node.
    pub local: bool,
}

/// The endpoints of a port's traffic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backends {
    /// Endpoints for traffic that may leave the node, sorted by their addresses as text, as in kube-proxy.
    pub cluster: Vec<Backend>,
    /// Endpoints for traffic that must stay on this node.
    pub local: Vec<Backend>,
    /// Whether there are any endpoints at all, also on other nodes. If not, traffic is rejected; otherwise traffic
    /// without an endpoint is dropped, because it arrived at the wrong node.
    pub any: bool,
    /// For UDP: all serving endpoints, regardless of policies, hints and termination, sorted by their addresses as
    /// numbers. Existing connections may continue to use these.
    pub serving: Vec<SocketAddr>,
}

impl Backends {
    /// Returns `true` if UDP connections to this endpoint may continue.
    pub(super) fn serves(&self, endpoint: SocketAddr) -> bool {
        self.serving.binary_search(&endpoint).is_ok()
    }
}

/// A service port in one family, resolved for this node: everything that a layout needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    /// The name of the service port.
    pub name: PortName,
    /// The cluster IP.
    pub cluster_ip: IpAddr,
    /// Whether the port is served at its cluster IP. It is not if an older service has that address and port.
    pub has_cluster_ip: bool,
    /// The port number at all addresses except the node's.
    pub port: u16,
    /// The port number at the node's addresses.
    pub node_port: Option<u16>,
    /// External addresses.
    pub external_ips: Vec<IpAddr>,
    /// Addresses of load balancers.
    pub load_balancer_ips: Vec<IpAddr>,
    /// The clients that may use the load balancers; all if empty.
    pub source_ranges: Vec<IpNet>,
    /// Whether traffic to the cluster IP stays on this node.
    pub internal_local: bool,
    /// Whether traffic from outside stays on this node.
    pub external_local: bool,
    /// The idle time after which a client's session affinity ends; `None` without affinity.
    pub affinity: Option<Duration>,
    /// Port at which the node reports whether it has endpoints.
    pub health_check_node_port: Option<u16>,
    /// The time at which the service was created.
    pub created: Option<SystemTime>,
    /// The endpoints.
    pub backends: Backends,
}

/// The refusal of traffic without an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// Rejected: there are no endpoints.
    Reject,
    /// Dropped: there are endpoints on other nodes.
    Drop,
}

#[cfg(test)]
impl ServicePort {
    /// Creates a port that is reachable only at its cluster IP and has no endpoints.
    pub(super) fn new(name: PortName, cluster_ip: IpAddr, port: u16) -> Self {
        Self {
            name,
            cluster_ip,
            has_cluster_ip: true,
            port,
            node_port: None,
            external_ips: Vec::new(),
            load_balancer_ips: Vec::new(),
            source_ranges: Vec::new(),
            internal_local: false,
            external_local: false,
            affinity: None,
            health_check_node_port: None,
            created: None,
            backends: Backends::default(),
        }
    }
}

impl ServicePort {
    /// Returns `true` if the port is reachable from outside.
    #[must_use]
    pub fn is_external(&self) -> bool {
        self.node_port.is_some()
            || !self.external_ips.is_empty()
            || !self.load_balancer_ips.is_empty()
    }

    /// Returns `true` if some traffic may go to any endpoint: that to the cluster IP, or that to external addresses,
    /// for which the pods' own traffic may leave the node.
    #[must_use]
    pub fn uses_cluster(&self) -> bool {
        !self.internal_local || self.is_external()
    }

    /// Returns `true` if some traffic stays on this node.
    #[must_use]
    pub fn uses_local(&self) -> bool {
        self.internal_local || (self.external_local && self.is_external())
    }

    /// Returns the endpoints of traffic to the cluster IP.
    #[must_use]
    pub fn internal(&self) -> &[Backend] {
        match self.internal_local {
            true => &self.backends.local,
            false => &self.backends.cluster,
        }
    }

    /// Returns the endpoints of traffic from outside, except that of the pods and the node.
    #[must_use]
    pub fn external(&self) -> &[Backend] {
        match self.external_local {
            true => &self.backends.local,
            false => &self.backends.cluster,
        }
    }

    /// Returns the refusal of traffic to the cluster IP, if it has no endpoint.
    #[must_use]
    pub fn internal_refusal(&self) -> Option<Refusal> {
        self.refusal(self.internal())
    }

    /// Returns the refusal of traffic from outside, if it has no endpoint.
    #[must_use]
    pub fn external_refusal(&self) -> Option<Refusal> {
        self.refusal(self.external())
    }

    const fn refusal(&self, backends: &[Backend]) -> Option<Refusal> {
        match (self.backends.any, backends.is_empty()) {
            (false, _) => Some(Refusal::Reject),
            (true, true) => Some(Refusal::Drop),
            (true, false) => None,
        }
    }

    /// Returns the endpoints that some traffic on this node can reach: those of the cluster and those of the node, each
    /// once.
    #[must_use]
    pub fn reachable(&self) -> Vec<Backend> {
        let Backends { cluster, local, .. } = &self.backends;
        let mut all = Vec::with_capacity(cluster.len().max(local.len()));
        if self.uses_cluster() {
            all.extend_from_slice(cluster);
        }
        if self.uses_local() {
            all.extend(local.iter().filter(|local| {
                !self.uses_cluster() || !cluster.iter().any(|b| b.address == local.address)
            }));
        }
        all
    }
}

/// Resolves the ports of a service in one family.
#[must_use]
pub(super) fn resolve<'s>(
    service: &Service,
    slices: impl Iterator<Item = &'s EndpointSlice> + Clone,
    family: Family,
    config: &Config,
) -> Vec<ServicePort> {
    let of_family = |addresses: &[IpAddr]| -> Vec<IpAddr> {
        let addresses = addresses.iter().copied();
        addresses
            .filter(|address| is_of(*address, family) && !address.is_unspecified())
            .collect()
    };
    let mut cluster_ips = service.cluster_ips.iter().copied();
    let cluster_ip = cluster_ips.find(|ip| is_of(*ip, family) && !ip.is_unspecified());
    let Some(cluster_ip) = cluster_ip else {
        return Vec::new();
    };
    let external_ips = of_family(&service.external_ips);
    let load_balancer_ips = of_family(&service.load_balancer_ips);
    let ranges = service.source_ranges.iter().map(IpNet::trunc);
    let mut source_ranges: Vec<_> = ranges.filter(|r| is_of(r.addr(), family)).collect();
    source_ranges.sort_unstable();
    source_ranges.dedup();
    let port = |port: &Port| {
        let mut resolved = ServicePort {
            name: PortName {
                service: service.name.clone(),
                port: Arc::clone(&port.name),
                protocol: port.protocol,
            },
            cluster_ip,
            has_cluster_ip: true,
            port: port.port,
            node_port: port.node_port.filter(|port| *port != 0),
            external_ips: external_ips.clone(),
            load_balancer_ips: load_balancer_ips.clone(),
            source_ranges: source_ranges.clone(),
            internal_local: service.internal_traffic_policy == TrafficPolicy::Local,
            external_local: service.external_traffic_policy == TrafficPolicy::Local,
            affinity: service.session_affinity,
            health_check_node_port: service.health_check_node_port.filter(|port| *port != 0),
            created: service.created,
            backends: Backends::default(),
        };
        let found = endpoints(port, slices.clone(), family, config);
        resolved.backends = categorize(&resolved, found, config);
        resolved
    };
    service.ports.iter().map(port).collect()
}

/// An endpoint of a port.
struct Found<'s> {
    backend: Backend,
    endpoint: &'s Endpoint,
}

/// Returns the endpoints of one port, sorted by their addresses as text. If several have the same address, as when a
/// new endpoint reuses the address of a terminating one, the choice prefers one that does not terminate, then a ready
/// one, a serving one, a local one.
fn endpoints<'s>(
    port: &Port,
    slices: impl Iterator<Item = &'s EndpointSlice>,
    family: Family,
    config: &Config,
) -> Vec<Found<'s>> {
    let mut found: Vec<Found<'s>> = Vec::new();
    for slice in slices {
        let is_it = |p: &&super::model::EndpointPort| {
            p.name == port.name && p.protocol == port.protocol && p.port.is_some_and(|n| n != 0)
        };
        let Some(number) = slice.ports.iter().find(is_it).and_then(|p| p.port) else {
            continue;
        };
        for endpoint in &slice.endpoints {
            if !is_of(endpoint.address, family) {
                continue;
            }
            let backend = Backend {
                address: SocketAddr::new(endpoint.address, number),
                local: endpoint.node.as_ref() == Some(&config.node),
            };
            found.push(Found { backend, endpoint });
        }
    }
    if found.len() > 1 {
        found.sort_by_cached_key(|f| {
            let Endpoint {
                terminating,
                ready,
                serving,
                ..
            } = *f.endpoint;
            let address_text = TextOrder::of(f.backend.address);
            (
                address_text,
                terminating,
                !ready,
                !serving,
                !f.backend.local,
            )
        });
        found.dedup_by_key(|f| f.backend.address);
    }
    found
}

/// An address that sorts like its text.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum TextOrder {
    /// Its characters, of four bits each, first character first: a dot, the digits, a colon.
    V4(u128),
    V6(String),
}

impl TextOrder {
    fn of(address: SocketAddr) -> Self {
        const DOT: u128 = 1;
        const ZERO: u128 = 2;
        const COLON: u128 = 12;
        let SocketAddr::V4(v4) = address else {
            return Self::V6(address.to_string());
        };
        let (mut text, mut shift) = (0, u128::BITS);
        let mut put = |character: u128| {
            shift -= 4;
            text |= character << shift;
        };
        for (index, octet) in v4.ip().octets().into_iter().enumerate() {
            if index > 0 {
                put(DOT);
            }
            digits(octet.into(), |digit| put(ZERO + digit));
        }
        put(COLON);
        digits(v4.port(), |digit| put(ZERO + digit));
        Self::V4(text)
    }
}

/// Decimal digits, most significant first.
fn digits(number: u16, mut put: impl FnMut(u128)) {
    let mut unit = 1;
    while number / unit >= 10 {
        unit *= 10;
    }
    while unit > 0 {
        put(u128::from(number / unit % 10));
        unit /= 10;
    }
}

fn categorize(port: &ServicePort, found: Vec<Found<'_>>, config: &Config) -> Backends {
    let ending = |f: &Found<'_>| f.endpoint.serving && f.endpoint.terminating;
    let collect = |is: &dyn Fn(&Found<'_>) -> bool| -> Vec<Backend> {
        // For most services all are chosen, so reserve exactly that capacity.
        let chosen = || found.iter().filter(|f| is(f));
        let mut backends = Vec::with_capacity(chosen().count());
        backends.extend(chosen().map(|f| f.backend));
        backends
    };
    let mut backends = Backends::default();
    if port.name.protocol == Protocol::Udp {
        let serves = |f: &&Found<'_>| f.endpoint.ready || f.endpoint.serving;
        let serving = found.iter().filter(serves).map(|f| f.backend.address);
        backends.serving = serving.collect();
        backends.serving.sort_unstable();
    }
    if port.uses_cluster() {
        let topology = Topology::of(&found, config);
        backends.cluster = collect(&|f| f.endpoint.ready && topology.admits(f.endpoint, config));
        if backends.cluster.is_empty() {
            backends.cluster = collect(&ending);
        }
        backends.any = !backends.cluster.is_empty();
    }
    if port.uses_local() {
        backends.any |= found.iter().any(|f| f.endpoint.ready || ending(f));
        backends.local = collect(&|f| f.backend.local && f.endpoint.ready);
        if backends.local.is_empty() {
            backends.local = collect(&|f| f.backend.local && ending(f));
        }
    }
    backends
}

/// The endpoints that remain for this node after the slices' hints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Topology {
    All,
    SameNode,
    SameZone,
}

impl Topology {
    /// Determines the hints that apply: they count if all ready endpoints have them, and at least one is for this node
    /// or zone.
    fn of(found: &[Found<'_>], config: &Config) -> Self {
        let ready = || found.iter().map(|f| f.endpoint).filter(|e| e.ready);
        let counts = |hints: fn(&Endpoint) -> &[Arc<str>], here: Option<&Arc<str>>| {
            here.is_some_and(|here| ready().any(|e| hints(e).contains(here)))
                && ready().all(|e| !hints(e).is_empty())
        };
        if counts(|e| &e.for_nodes, Some(&config.node)) {
            Self::SameNode
        } else if counts(|e| &e.for_zones, config.zone.as_ref()) {
            Self::SameZone
        } else {
            Self::All
        }
    }

    fn admits(self, endpoint: &Endpoint, config: &Config) -> bool {
        match self {
            Self::All => true,
            Self::SameNode => endpoint.for_nodes.contains(&config.node),
            Self::SameZone => {
                let mut zones = endpoint.for_zones.iter();
                zones.any(|zone| Some(zone) == config.zone.as_ref())
            }
        }
    }
}

#[cfg(test)]
mod tests;
