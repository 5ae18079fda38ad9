//! What a proxy knows of its node and cluster.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use chainwright::iptables::Family;

/// How traffic of the node's own pods is told from traffic from outside (kube-proxy's `detectLocalMode`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LocalDetector {
    /// Not at all: nothing counts as pods' traffic.
    #[default]
    None,
    /// By its sender: the pods' networks (`ClusterCIDR`, `NodeCIDR`). Of each family the first one counts.
    Networks(Vec<IpNet>),
    /// By the interface that it comes in by (`BridgeInterface`).
    Interface(String),
    /// By how the name of that interface begins (`InterfaceNamePrefix`).
    InterfacePrefix(String),
}

impl LocalDetector {
    /// The pods' network of this family, if they are told by it.
    #[must_use]
    pub fn network(&self, family: Family) -> Option<IpNet> {
        let Self::Networks(networks) = self else {
            return None;
        };
        let mut networks = networks.iter().copied();
        networks.find(|network| is_of(network.addr(), family))
    }
}

/// Where node ports are (kube-proxy's `nodePortAddresses`). All layouts serve them at the same addresses; loopback
/// addresses have none but in the iptables layout with [`localhost_node_ports`](Config::localhost_node_ports).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum NodePortAddresses {
    /// At every address that the node has.
    #[default]
    All,
    /// At these addresses. A family that has none of them serves no node ports: so does an empty list.
    These(Vec<IpAddr>),
    /// At every address of the node that is in one of these networks, which is decided when a packet arrives: an
    /// address that the node gets later counts as well. A family that has none of them serves no node ports.
    Networks(Vec<IpNet>),
}

/// Where node ports of one family are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodePortsOf {
    /// At every address of the node.
    Every,
    /// At these, in order, each once; there may be none.
    These(Vec<IpAddr>),
    /// At every address of the node in these networks, of which none holds another; there is one at least.
    Networks(Vec<IpNet>),
}

impl NodePortAddresses {
    /// Those of a family.
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

/// What a [proxy](super) knows of its node and cluster, the same for all its services. The names in
/// parentheses are those of kube-proxy's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The families that services are served in.
    pub families: Vec<Family>,
    /// The node's name (`hostnameOverride`): endpoints that run on it are local.
    pub node: Arc<str>,
    /// The zone that the node is in (label `topology.kubernetes.io/zone`).
    pub zone: Option<Arc<str>>,
    /// The node's own addresses: a load balancer's source ranges that hold one of them admit the balancer itself.
    pub node_addresses: Vec<IpAddr>,
    /// Where node ports are.
    pub node_port_addresses: NodePortAddresses,
    /// How pods' traffic is told (`detectLocal`).
    pub local_detector: LocalDetector,
    /// The networks that cluster IPs are given from: those that no service has are dropped there (nftables and flat).
    pub service_networks: Vec<IpNet>,
    /// The mark of packets that are to be masqueraded (`masqueradeBit` 14: `0x4000`).
    pub masquerade_mark: u32,
    /// Whether all traffic to cluster IPs is masqueraded (`masqueradeAll`).
    pub masquerade_all: bool,
    /// Whether node ports are at `127.0.0.1`, too (`localhostNodePorts`; iptables alone). The kernel's setting
    /// `net.ipv4.conf.all.route_localnet`, which that needs, is then set in the network namespace of the thread that calls
    /// [`sync`](super::ServiceProxy::sync).
    pub localhost_node_ports: bool,
    /// Whether the kernel takes TCP packets outside their connection's window (`nf_conntrack_tcp_be_liberal`): then
    /// none are dropped for belonging to no connection (iptables alone).
    pub tcp_be_liberal: bool,
    /// Whether what kube-proxy counts in `nfacct` objects is counted, too: connections to node ports at loopback
    /// addresses in `localhost_nps_accepted_pkts`, dropped packets of no connection in
    /// `ct_state_invalid_dropped_pkts` (iptables alone). Who says so has made them: the kernel refuses rules that name
    /// others.
    pub nfacct: bool,
    /// Whether the table is made one's own ([`Connection::own`](chainwright::nft::Connection::own)), where the kernel can.
    pub own: bool,
}

impl Config {
    /// For a node of this name: both families, node ports everywhere, no pods' network.
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

/// Whether an address is of a family.
pub(crate) const fn is_of(address: IpAddr, family: Family) -> bool {
    match family {
        Family::Ipv4 => address.is_ipv4(),
        Family::Ipv6 => address.is_ipv6(),
    }
}
