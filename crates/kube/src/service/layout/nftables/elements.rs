//! The sets and maps that all services share, and their elements.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::TABLE;
use crate::service::model::Protocol;
use crate::service::resolve::Refusal;
use chainwright::nft::expr::Verdict;
use chainwright::nft::userdata::{
    COMMENT_MAXLEN, CommentError, SET_DATA_BYTE_ORDER, SET_DATA_INTERVAL, SET_DATA_TYPEOF,
    SET_KEY_BYTE_ORDER, SET_KEY_TYPEOF,
};
use chainwright::nft::{DataType, Element, Family, Set, SetFlags, concatenation};

/// The chain that rejects traffic.
pub(super) const REJECT_CHAIN: &str = "reject-chain";

/// A set or map of the table that contains elements of services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Shared {
    /// Connections of an endpoint of this node to itself.
    HairpinConnections,
    /// Cluster IPs.
    ClusterIps,
    /// Service addresses without endpoints.
    NoEndpointServices,
    /// Node ports without endpoints.
    NoEndpointNodePorts,
    /// Load balancers with source ranges.
    FirewallIps,
    /// Service addresses.
    ServiceIps,
    /// Node ports.
    ServiceNodePorts,
}

impl Shared {
    /// All of them.
    pub(super) const ALL: [Self; 7] = [
        Self::HairpinConnections,
        Self::ClusterIps,
        Self::NoEndpointServices,
        Self::NoEndpointNodePorts,
        Self::FirewallIps,
        Self::ServiceIps,
        Self::ServiceNodePorts,
    ];

    /// In the order in which they are filled: sets that block or masquerade traffic come before those that admit it.
    pub(super) const FILL_ORDER: [Self; 7] = [
        Self::HairpinConnections,
        Self::FirewallIps,
        Self::ClusterIps,
        Self::ServiceIps,
        Self::ServiceNodePorts,
        Self::NoEndpointServices,
        Self::NoEndpointNodePorts,
    ];

    /// Returns the name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::HairpinConnections => "hairpin-connections",
            Self::ClusterIps => "cluster-ips",
            Self::NoEndpointServices => "no-endpoint-services",
            Self::NoEndpointNodePorts => "no-endpoint-nodeports",
            Self::FirewallIps => "firewall-ips",
            Self::ServiceIps => "service-ips",
            Self::ServiceNodePorts => "service-nodeports",
        }
    }

    const fn comment(self) -> &'static str {
        match self {
            Self::HairpinConnections => "service hairpin connections",
            Self::ClusterIps => "Active ClusterIPs",
            Self::NoEndpointServices => {
                "vmap to drop or reject packets to services with no endpoints"
            }
            Self::NoEndpointNodePorts => {
                "vmap to drop or reject packets to service nodeports with no endpoints"
            }
            Self::FirewallIps => "destinations that are subject to LoadBalancerSourceRanges",
            Self::ServiceIps => "ClusterIP, ExternalIP and LoadBalancer IP traffic",
            Self::ServiceNodePorts => "NodePort traffic",
        }
    }

    /// Returns the set's definition.
    pub(super) fn set(self, family: Family) -> Result<Set<'static>, CommentError> {
        const PROTOCOL: (DataType, u32) = (DataType::INET_PROTO, 1);
        const PORT: (DataType, u32) = (DataType::INET_SERVICE, 2);
        let address = address_type(family);
        let set = Set::new(family, TABLE, self.name(), address.0, address.1);
        let set = match self {
            Self::ClusterIps => set,
            Self::HairpinConnections => set.with_fields(&[address, address, PROTOCOL, PORT]),
            Self::NoEndpointServices | Self::FirewallIps | Self::ServiceIps => {
                set.with_fields(&[address, PROTOCOL, PORT]).with_verdicts()
            }
            Self::NoEndpointNodePorts | Self::ServiceNodePorts => {
                set.with_fields(&[PROTOCOL, PORT]).with_verdicts()
            }
        };
        match self {
            Self::ClusterIps => set,
            _ => with_nft_userdata(set, 0, Some(Declared::Fields)),
        }
        .with_comment(self.comment())
    }
}

/// The kind of declaration recorded in a set's user data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    /// The types of the key's fields.
    Fields,
    /// The verdict map of a rule.
    Verdicts,
}

/// Adds the user data that `nft` 1.0.6, which kube-proxy uses, writes for a set, so that kube-proxy's sets are taken
/// over unchanged instead of being replaced for data that only `nft` reads: byte orders (0 for several values at once,
/// and verdicts), how the set was declared, that a map's data are no intervals.
pub(super) fn with_nft_userdata(
    set: Set<'_>,
    key_order: u32,
    declared: Option<Declared>,
) -> Set<'_> {
    /// Returns an expression of this kind (`nft`'s number) without content.
    const fn expression(kind: u8) -> [u8; 8] {
        [0, 4, kind, 0, 0, 0, 1, 0]
    }
    let mut bytes = Vec::new();
    let mut put = |kind: u8, value: &[u8]| {
        bytes.extend_from_slice(&[kind, value.len() as u8]); // 4 or 8
        bytes.extend_from_slice(value);
    };
    let is_map = set.flags.is_some_and(|f| f.contains(SetFlags::MAP));
    put(SET_KEY_BYTE_ORDER, &key_order.to_ne_bytes());
    if is_map {
        put(SET_DATA_BYTE_ORDER, &[0; 4]);
    }
    match declared {
        Some(Declared::Fields) => put(SET_KEY_TYPEOF, &expression(13)),
        Some(Declared::Verdicts) => put(SET_DATA_TYPEOF, &expression(1)),
        None => {}
    }
    if is_map {
        put(SET_DATA_INTERVAL, &[0; 4]);
    }
    Set {
        userdata: Some(bytes.into()),
        ..set
    }
}

/// Returns the type of a set of addresses of a family.
pub(super) fn address_type(family: Family) -> (DataType, u32) {
    match family {
        Family::IP6 => (DataType::IPV6_ADDR, 16),
        _ => (DataType::IPV4_ADDR, 4),
    }
}

/// Identifies an element of a set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) set: Shared,
    bytes: Vec<u8>,
}

impl Key {
    /// Returns the key of a cluster IP.
    pub(super) fn address(set: Shared, address: IpAddr) -> Self {
        let bytes = with_octets(address, <[u8]>::to_vec);
        Self { set, bytes }
    }

    /// Returns the element, for deletion.
    pub(super) fn element(&self) -> Element<'_> {
        Element::new(&self.bytes)
    }

    /// Returns the key `address . protocol . port`.
    pub(super) fn service(set: Shared, address: IpAddr, protocol: Protocol, port: u16) -> Self {
        let bytes = with_octets(address, |address| {
            concatenation([address, &[protocol.number()], &port.to_be_bytes()])
        });
        Self { set, bytes }
    }

    /// Returns the key `protocol . port`.
    pub(super) fn node_port(set: Shared, protocol: Protocol, port: u16) -> Self {
        let bytes = concatenation([&[protocol.number()][..], &port.to_be_bytes()]);
        Self { set, bytes }
    }

    /// Returns the key `address . address . protocol . port`.
    pub(super) fn hairpin(endpoint: SocketAddr, protocol: Protocol) -> Self {
        let bytes = with_octets(endpoint.ip(), |ip| {
            let port = endpoint.port().to_be_bytes();
            concatenation([ip, ip, &[protocol.number()], &port])
        });
        let set = Shared::HairpinConnections;
        Self { set, bytes }
    }
}

fn with_octets<R>(address: IpAddr, with: impl FnOnce(&[u8]) -> R) -> R {
    match address {
        IpAddr::V4(address) => with(&address.octets()),
        IpAddr::V6(address) => with(&address.octets()),
    }
}

/// The value of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// None: an element of a set.
    Member,
    /// Traffic goes to this chain.
    Goto(Arc<str>),
    /// Traffic is refused; with the name of the service port.
    Refused(Refusal, Arc<str>),
}

impl Value {
    /// Returns the element with this key.
    pub(super) fn element<'e>(&'e self, key: &'e Key) -> Result<Element<'e>, CommentError> {
        let element = key.element();
        match self {
            Self::Member => Ok(element),
            Self::Goto(chain) => Ok(element.with_verdict(Verdict::Goto(chain[..].into()))),
            Self::Refused(refusal, name) => {
                let verdict = match refusal {
                    Refusal::Reject => Verdict::Goto(REJECT_CHAIN.into()),
                    Refusal::Drop => Verdict::Drop,
                };
                element.with_verdict(verdict).with_comment(cut(name))
            }
        }
    }
}

/// Cuts a comment to the longest possible length.
fn cut(comment: &str) -> &str {
    let longest = comment.len().min(COMMENT_MAXLEN);
    let whole = |end: &usize| comment.is_char_boundary(*end);
    let end = (0..=longest).rev().find(whole);
    &comment[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// kube-proxy fails for such a service, and so for all others.
    #[test]
    fn comments_fit_the_maximum_length() {
        let name: Arc<str> = "n".repeat(150).into();
        let value = Value::Refused(Refusal::Drop, name);
        let key = Key::node_port(Shared::NoEndpointNodePorts, Protocol::Tcp, 80);
        assert!(value.element(&key).is_ok());
        assert_eq!(cut(&"ü".repeat(100)).len(), COMMENT_MAXLEN);
    }
}
