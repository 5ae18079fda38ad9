//! Services and endpoint slices, reduced to the fields of the API's objects that decide where packets go.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ipnet::IpNet;

/// Namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name within it.
    pub name: Arc<str>,
}

impl ObjectName {
    /// Creates a name from its parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// Formats as `namespace/name`.
impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A transport protocol that a service can have (`v1.Protocol`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Protocol {
    /// TCP, the API's default.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// Returns the protocol's number (`IPPROTO_*`).
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }

    /// Returns the lower-case name, as it occurs in names of chains.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The endpoints that receive traffic (`externalTrafficPolicy`, `internalTrafficPolicy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TrafficPolicy {
    /// All of them; traffic from outside is masqueraded.
    #[default]
    Cluster,
    /// Only those on this node; the sender's address is preserved.
    Local,
}

/// A service with a cluster IP: one of type `ClusterIP`, `NodePort` or `LoadBalancer`. Headless services and those of
/// type `ExternalName` do not affect packets.
///
/// Its addresses may belong to both families. Fields that a proxy does not need are omitted: `type`, which follows
/// from node ports and load balancers; and `trafficDistribution`, which the slices express as
/// [hints](Endpoint::for_zones).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Namespace and name.
    pub name: ObjectName,
    /// `spec.clusterIPs`.
    pub cluster_ips: Vec<IpAddr>,
    /// `spec.externalIPs`.
    pub external_ips: Vec<IpAddr>,
    /// The addresses in `status.loadBalancer.ingress` with mode `VIP`: packets arrive with these destination
    /// addresses.
    pub load_balancer_ips: Vec<IpAddr>,
    /// `spec.loadBalancerSourceRanges`: the clients that may use the load balancer. Without ranges of an address's
    /// family all clients may use that address.
    pub source_ranges: Vec<IpNet>,
    /// `spec.ports`.
    pub ports: Vec<Port>,
    /// `spec.externalTrafficPolicy`.
    pub external_traffic_policy: TrafficPolicy,
    /// `spec.internalTrafficPolicy`.
    pub internal_traffic_policy: TrafficPolicy,
    /// `ClientIP` affinity, with the idle time after which a client's affinity ends.
    pub session_affinity: Option<Duration>,
    /// `spec.healthCheckNodePort`.
    pub health_check_node_port: Option<u16>,
    /// `metadata.creationTimestamp`: if several services request the same address and port, the oldest one gets it.
    pub created: Option<SystemTime>,
}

impl Service {
    /// Creates a service with these cluster IPs, and default values otherwise.
    #[must_use]
    pub fn new(name: ObjectName, cluster_ips: impl IntoIterator<Item = IpAddr>) -> Self {
        Self {
            name,
            cluster_ips: cluster_ips.into_iter().collect(),
            external_ips: Vec::new(),
            load_balancer_ips: Vec::new(),
            source_ranges: Vec::new(),
            ports: Vec::new(),
            external_traffic_policy: TrafficPolicy::Cluster,
            internal_traffic_policy: TrafficPolicy::Cluster,
            session_affinity: None,
            health_check_node_port: None,
            created: None,
        }
    }

    /// Adds a port.
    #[must_use]
    pub fn with_port(mut self, port: Port) -> Self {
        self.ports.reserve_exact(1);
        self.ports.push(port);
        self
    }
}

/// A port of a service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Port {
    /// The name; empty for the only port of a service, which needs none.
    pub name: Arc<str>,
    /// The protocol.
    pub protocol: Protocol,
    /// The port number.
    pub port: u16,
    /// The port number on the nodes.
    pub node_port: Option<u16>,
}

impl Port {
    /// Creates a port with this name, protocol and number.
    pub fn new(name: impl Into<Arc<str>>, protocol: Protocol, port: u16) -> Self {
        Self {
            name: name.into(),
            protocol,
            port,
            node_port: None,
        }
    }
}

/// Some of a service's endpoints (`discovery.k8s.io/v1`), of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSlice {
    /// Namespace and name.
    pub name: ObjectName,
    /// The service that it belongs to, in the same namespace (label `kubernetes.io/service-name`).
    pub service: Arc<str>,
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
    /// The ports of each endpoint.
    pub ports: Vec<EndpointPort>,
}

/// A port of all endpoints of a slice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EndpointPort {
    /// The name of the service's port.
    pub name: Arc<str>,
    /// The protocol.
    pub protocol: Protocol,
    /// The port number. `None` means every port in the API; a proxy ignores such a port.
    pub port: Option<u16>,
}

/// An endpoint of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The address: the first of `addresses`; the others have no meaning.
    pub address: IpAddr,
    /// `conditions.ready`: accepts new connections. True if the API leaves it out.
    pub ready: bool,
    /// `conditions.serving`: ready, regardless of termination.
    pub serving: bool,
    /// `conditions.terminating`.
    pub terminating: bool,
    /// The node that runs it.
    pub node: Option<Arc<str>>,
    /// `hints.forZones`: the zones whose traffic it should receive.
    pub for_zones: Vec<Arc<str>>,
    /// `hints.forNodes`: the nodes whose traffic it should receive.
    pub for_nodes: Vec<Arc<str>>,
}

impl Endpoint {
    /// Creates a ready endpoint.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self {
            address,
            ready: true,
            serving: true,
            terminating: false,
            node: None,
            for_zones: Vec::new(),
            for_nodes: Vec::new(),
        }
    }
}
