//! Services and endpoint slices as a node's proxy sees them: what of the API's objects decides where a packet goes.

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
    /// From its parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// `namespace/name`.
impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A transport protocol that a service can have (`v1.Protocol`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Protocol {
    /// TCP, which the API means where it says nothing.
    #[default]
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// `IPPROTO_*`.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }

    /// In small letters, as names of chains are made of it.
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

/// Which endpoints traffic goes to (`externalTrafficPolicy`, `internalTrafficPolicy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TrafficPolicy {
    /// All of them; traffic from outside is masqueraded.
    #[default]
    Cluster,
    /// Those on this node alone; the sender's address stays.
    Local,
}

/// A service that has a cluster IP: one of type `ClusterIP`, `NodePort` or `LoadBalancer`. Headless ones and those of
/// type `ExternalName` have nothing to do with packets.
///
/// Its addresses may be of both families. What is of neither use nor harm to a proxy stands not here: `type`, because
/// node ports and load balancers say it; `trafficDistribution`, because it comes as the slices'
/// [hints](Endpoint::for_zones).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Namespace and name.
    pub name: ObjectName,
    /// `spec.clusterIPs`.
    pub cluster_ips: Vec<IpAddr>,
    /// `spec.externalIPs`.
    pub external_ips: Vec<IpAddr>,
    /// Those of `status.loadBalancer.ingress` whose mode is `VIP`: packets arrive with such an address.
    pub load_balancer_ips: Vec<IpAddr>,
    /// `spec.loadBalancerSourceRanges`: who may use the load balancer. All may if there are none of an address's
    /// family.
    pub source_ranges: Vec<IpNet>,
    /// `spec.ports`.
    pub ports: Vec<Port>,
    /// `spec.externalTrafficPolicy`.
    pub external_traffic_policy: TrafficPolicy,
    /// `spec.internalTrafficPolicy`.
    pub internal_traffic_policy: TrafficPolicy,
    /// `ClientIP` affinity with the time after which a client that is not heard of is forgotten.
    pub session_affinity: Option<Duration>,
    /// `spec.healthCheckNodePort`.
    pub health_check_node_port: Option<u16>,
    /// `metadata.creationTimestamp`: of several services that ask for one address and port the oldest gets it.
    pub created: Option<SystemTime>,
}

impl Service {
    /// With these cluster IPs, and nothing else.
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

    /// And a port.
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
    /// Its name; empty for the only port of a service, which needs none.
    pub name: Arc<str>,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its number.
    pub port: u16,
    /// Its number on the nodes.
    pub node_port: Option<u16>,
}

impl Port {
    /// With this name, protocol and number.
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
    /// The service that it is of, in the same namespace (label `kubernetes.io/service-name`).
    pub service: Arc<str>,
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
    /// The ports of each.
    pub ports: Vec<EndpointPort>,
}

/// A port of all endpoints of a slice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EndpointPort {
    /// The name of the service's port.
    pub name: Arc<str>,
    /// The protocol.
    pub protocol: Protocol,
    /// The number. `None` in the API means every port; a proxy has no use for that.
    pub port: Option<u16>,
}

/// One that serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address: the first of `addresses`, the others are without meaning.
    pub address: IpAddr,
    /// `conditions.ready`: takes new connections. Where the API says nothing, it does.
    pub ready: bool,
    /// `conditions.serving`: ready, whether it terminates or not.
    pub serving: bool,
    /// `conditions.terminating`.
    pub terminating: bool,
    /// The node that it runs on.
    pub node: Option<Arc<str>>,
    /// `hints.forZones`: the zones whose traffic it is to get.
    pub for_zones: Vec<Arc<str>>,
    /// `hints.forNodes`: the nodes whose traffic it is to get.
    pub for_nodes: Vec<Arc<str>>,
}

impl Endpoint {
    /// One that is ready.
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
