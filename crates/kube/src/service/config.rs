//! A proxy's configuration of its node and cluster.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use chainwright::iptables::Family;

/// The criterion that distinguishes traffic of the node's own pods from traffic from outside (kube-proxy's
/// `detectLocalMode`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LocalDetector {
    /// No detection: no traffic counts as pods' traffic.
    #[default]
    None,
    /// By the sender's address: the pods' networks (`ClusterCIDR`, `NodeCIDR`). The first one of each family counts.
    Networks(Vec<IpNet>),
    /// By the incoming interface (`BridgeInterface`).
    Interface(String),
    /// By the prefix of the incoming interface's name (`InterfaceNamePrefix`).
    InterfacePrefix(String),
}

impl LocalDetector {
    /// Returns the pods' network of this family, if pods are detected by network.
    #[must_use]
    pub fn network(&self, family: Family) -> Option<IpNet> {
        let Self::Networks(networks) = self else {
            return None;
        };
        let mut networks = networks.iter().copied();
        networks.find(|network| is_of(network.addr(), family))
    }
}

/// The node's addresses that serve node ports (kube-proxy's `nodePortAddresses`). All layouts serve them at the same
/// addresses. Loopback addresses are excluded, except in the iptables layout with
/// [`localhost_node_ports`](Config::localhost_node_ports).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum NodePortAddresses {
    /// Every address of the node.
    #[default]
    All,
    /// These addresses. A family without any of them serves no node ports; neither does an empty list.
    These(Vec<IpAddr>),
    /// Every address of the node in one of these networks, evaluated when a packet arrives, so that addresses added
    /// later count as well. A family without any of the networks serves no node ports.
    Networks(Vec<IpNet>),
}

/// The addresses at which one family serves node ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodePortsOf {
    /// Every address of the node.
    Every,
    /// These addresses, sorted and without duplicates; possibly none.
    These(Vec<IpAddr>),
    /// Every address of the node in these networks: at least one network, and none contains another.
    Networks(Vec<IpNet>),
}

impl NodePortAddresses {
    /// Selects the node port addresses of a family.
    pub(crate) fn of(&self, family: Family) -> NodePortsOf {
        match self {
            Self::All => NodePortsOf::Every,
            Self::These(addresses) => {
                let these = addresses.iter().copied();
                let mut these: Vec<_> = these.filter(|address| is_of(*address, family)).collect();
                these.sort_unstable();
                these.dedup();
                NodePortsOf::These(these)
            }
            Self::Networks(networks) => {
                let networks = networks
                    .iter()
                    .filter(|network| is_of(network.addr(), family));
                match IpNet::aggregate(&networks.map(IpNet::trunc).collect()) {
                    none if none.is_empty() => NodePortsOf::These(Vec::new()),
                    networks if networks.iter().any(|network| network.prefix_len() == 0) => {
                        NodePortsOf::Every
                    }
                    networks => NodePortsOf::Networks(networks),
                }
            }
        }
    }
}

/// The [proxy](super)'s configuration of its node and cluster, shared by all services. The names in parentheses are
/// those in kube-proxy's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The families in which services are served.
    pub families: Vec<Family>,
    /// The node's name (`hostnameOverride`): endpoints on this node are local.
    pub node: Arc<str>,
    /// The node's zone (label `topology.kubernetes.io/zone`).
    pub zone: Option<Arc<str>>,
    /// The node's own addresses: load balancer source ranges that contain one of them also admit the load balancer's
    /// own address.
    pub node_addresses: Vec<IpAddr>,
    /// The addresses that serve node ports.
    pub node_port_addresses: NodePortAddresses,
    /// The criterion that detects traffic from local pods (`detectLocal`).
    pub local_detector: LocalDetector,
    /// The networks from which cluster IPs are allocated. Packets to unused addresses in them are dropped (nftables and
    /// flat).
    pub service_networks: Vec<IpNet>,
    /// The mark of packets to masquerade (`masqueradeBit` 14: `0x4000`).
    pub masquerade_mark: u32,
    /// Whether all traffic to cluster IPs is masqueraded (`masqueradeAll`).
    pub masquerade_all: bool,
    /// Whether `127.0.0.1` serves node ports, too (`localhostNodePorts`; iptables only). This requires the kernel
    /// setting `net.ipv4.conf.all.route_localnet`, which [`sync`](super::ServiceProxy::sync) then sets in the calling
    /// thread's network namespace.
    pub localhost_node_ports: bool,
    /// Whether the kernel accepts TCP packets outside their connection's window (`nf_conntrack_tcp_be_liberal`). If so,
    /// no packets are dropped as invalid (iptables only).
    pub tcp_be_liberal: bool,
    /// Whether to update kube-proxy's `nfacct` counters: `localhost_nps_accepted_pkts` counts connections to node ports
    /// at loopback addresses, `ct_state_invalid_dropped_pkts` counts dropped invalid packets (iptables only). The
    /// objects must exist already: the kernel refuses rules that refer to missing ones.
    pub nfacct: bool,
    /// Whether the proxy [owns](chainwright::nft::Connection::own) its table, if the kernel supports that.
    pub own: bool,
}

impl Config {
    /// Creates a configuration for the node of this name: both families, node ports at all addresses, no pod networks.
    pub fn new(node: impl Into<Arc<str>>) -> Self {
        Self {
            families: vec![Family::Ipv4, Family::Ipv6],
            node: node.into(),
            zone: None,
            node_addresses: Vec::new(),
            node_port_addresses: NodePortAddresses::All,
            local_detector: LocalDetector::None,
            service_networks: Vec::new(),
            masquerade_mark: 1 << 14,
            masquerade_all: false,
            localhost_node_ports: false,
            tcp_be_liberal: false,
            nfacct: false,
            own: true,
        }
    }
}

/// Returns `true` if an address belongs to a family.
pub(crate) const fn is_of(address: IpAddr, family: Family) -> bool {
    match family {
        Family::Ipv4 => address.is_ipv4(),
        Family::Ipv6 => address.is_ipv6(),
    }
}
