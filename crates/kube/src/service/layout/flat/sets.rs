//! The sets and maps, and their elements as bytes.

use std::net::{IpAddr, SocketAddr};

use crate::service::model::Protocol;
use chainwright::iptables::Family;
use chainwright::nft::{self, DataType, Element, Set, SetFlags};

/// Name of the table.
pub(in crate::service) const TABLE: &str = "kube-services";

/// Name of the stand-in table, which has the same services while the other is replaced.
pub(super) const STAND_IN: &str = "kube-services-stand-in";

/// A type of a field and its length in bytes.
type Field = (DataType, u32);

const PROTOCOL: Field = (DataType::INET_PROTO, 1);
const PORT: Field = (DataType::INET_SERVICE, 2);
/// One of this layout's own numbers, in host byte order: nft has no other type for it.
const NUMBER: Field = (DataType::MARK, 4);

/// A set or map of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum SetKind {
    ClusterIps,
    NodeportIps,
    MasqueradeIps,
    MasqueradeNodeports,
    ServiceIps,
    ServiceNodeports,
    LocalIps,
    LocalNodeports,
    Groups,
    Picks,
    LocalPicks,
    Endpoints,
    Affinity,
    AffinityPlaces,
    AffinityEndpoints,
    Hairpins,
    FirewallIps,
    FirewallSources,
    RejectIps,
    RejectNodeports,
    DropIps,
    DropNodeports,
}

/// The kind of value to which a set's elements map.
enum Maps {
    Nothing,
    Number,
    /// Address and port.
    Endpoint,
    Verdict,
}

impl SetKind {
    /// All sets, in the order in which they are created and filled: a set precedes those that refer to it.
    pub(super) const ALL: [Self; 22] = [
        Self::ClusterIps,
        Self::NodeportIps,
        Self::MasqueradeIps,
        Self::MasqueradeNodeports,
        Self::ServiceIps,
        Self::ServiceNodeports,
        Self::LocalIps,
        Self::LocalNodeports,
        Self::Groups,
        Self::Picks,
        Self::LocalPicks,
        Self::Endpoints,
        Self::Affinity,
        Self::AffinityPlaces,
        Self::AffinityEndpoints,
        Self::Hairpins,
        Self::FirewallIps,
        Self::FirewallSources,
        Self::RejectIps,
        Self::RejectNodeports,
        Self::DropIps,
        Self::DropNodeports,
    ];

    /// Returns the name and a description.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::ClusterIps => ("cluster-ips", "active cluster IPs"),
            Self::NodeportIps => ("nodeport-ips", "node port addresses"),
            Self::MasqueradeIps => ("masquerade-ips", "external, policy Cluster: masqueraded"),
            Self::MasqueradeNodeports => ("masquerade-nodeports", "policy Cluster: masqueraded"),
            Self::ServiceIps => ("service-ips", "service -> group of endpoints"),
            Self::ServiceNodeports => ("service-nodeports", "node port -> group of endpoints"),
            Self::LocalIps => (
                "local-ips",
                "external, policy Local -> group of endpoints of this node",
            ),
            Self::LocalNodeports => (
                "local-nodeports",
                "policy Local -> group of endpoints of this node",
            ),
            Self::Groups => (
                "groups",
                "group -> number of endpoints, with affinity timeout",
            ),
            Self::Picks => (
                "picks",
                "number of endpoints -> chain that selects one at random",
            ),
            Self::LocalPicks => (
                "local-picks",
                "the same for traffic that stays on this node",
            ),
            Self::Endpoints => ("endpoints", "group and index -> endpoint"),
            Self::Affinity => ("affinity", "group and client -> number of the endpoint"),
            Self::AffinityPlaces => (
                "affinity-places",
                "group and index -> number of the endpoint",
            ),
            Self::AffinityEndpoints => (
                "affinity-endpoints",
                "group and number of the endpoint -> endpoint",
            ),
            Self::Hairpins => (
                "hairpin-connections",
                "connections of this node's endpoints to themselves",
            ),
            Self::FirewallIps => ("firewall-ips", "load balancers with source ranges"),
            Self::FirewallSources => ("firewall-sources", "their source ranges, by prefix length"),
            Self::RejectIps => ("reject-ips", "services without endpoints"),
            Self::RejectNodeports => ("reject-nodeports", "services without endpoints"),
            Self::DropIps => ("drop-ips", "policy Local without endpoints on this node"),
            Self::DropNodeports => (
                "drop-nodeports",
                "policy Local without endpoints on this node",
            ),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns `true` if the elements depend only on the services and the configuration.
    pub(super) const fn depends_only_on_services(self) -> bool {
        !matches!(self, Self::Picks | Self::LocalPicks | Self::Affinity)
    }

    /// Returns `true` if its elements are added in a transaction before the others: packets look these up before they
    /// are sent to an endpoint, and must not miss them when they are.
    pub(super) const fn is_added_first(self) -> bool {
        matches!(
            self,
            Self::NodeportIps
                | Self::MasqueradeIps
                | Self::MasqueradeNodeports
                | Self::FirewallIps
                | Self::FirewallSources
        )
    }

    /// Returns `true` if a packet looks up its elements only after it has found an element of another set.
    pub(super) const fn is_unreachable_alone(self) -> bool {
        matches!(
            self,
            Self::Groups | Self::Endpoints | Self::AffinityPlaces | Self::Hairpins
        )
    }

    /// Returns `true` if its elements are deleted in a transaction after the others: a packet looks these up with the
    /// result of an earlier lookup, or after a lookup without a result.
    pub(super) const fn is_deleted_last(self) -> bool {
        matches!(
            self,
            Self::NodeportIps
                | Self::Groups
                | Self::Endpoints
                | Self::AffinityPlaces
                | Self::Hairpins
                | Self::FirewallSources
                | Self::RejectIps
                | Self::RejectNodeports
                | Self::DropIps
                | Self::DropNodeports
        )
    }

    /// Returns `true` if its keys are frontends of services: an optional address, a protocol and a port.
    pub(super) const fn has_frontend_keys(self) -> bool {
        matches!(
            self,
            Self::ServiceIps
                | Self::ServiceNodeports
                | Self::LocalIps
                | Self::LocalNodeports
                | Self::RejectIps
                | Self::RejectNodeports
                | Self::DropIps
                | Self::DropNodeports
        )
    }

    fn fields(self, address: Field) -> Vec<Field> {
        match self {
            Self::ClusterIps | Self::NodeportIps => vec![address],
            Self::MasqueradeIps
            | Self::ServiceIps
            | Self::LocalIps
            | Self::FirewallIps
            | Self::RejectIps
            | Self::DropIps => vec![address, PROTOCOL, PORT],
            Self::MasqueradeNodeports
            | Self::ServiceNodeports
            | Self::LocalNodeports
            | Self::RejectNodeports
            | Self::DropNodeports => vec![PROTOCOL, PORT],
            Self::Groups | Self::Picks | Self::LocalPicks => vec![NUMBER],
            Self::Endpoints | Self::AffinityPlaces | Self::AffinityEndpoints => {
                vec![NUMBER, NUMBER]
            }
            Self::Affinity => vec![NUMBER, address],
            Self::Hairpins => vec![address, address, PROTOCOL, PORT],
            Self::FirewallSources => vec![address, PROTOCOL, PORT, NUMBER, address],
        }
    }

    const fn maps(self) -> Maps {
        match self {
            Self::ServiceIps
            | Self::ServiceNodeports
            | Self::LocalIps
            | Self::LocalNodeports
            | Self::Groups
            | Self::Affinity
            | Self::AffinityPlaces => Maps::Number,
            Self::Picks | Self::LocalPicks => Maps::Verdict,
            Self::Endpoints | Self::AffinityEndpoints => Maps::Endpoint,
            _ => Maps::Nothing,
        }
    }

    /// Returns the set for a table of this name; `affinity` is the number of clients to remember.
    pub(super) fn set(
        self,
        family: Family,
        table_name: &'static str,
        affinity: u32,
    ) -> Result<Set<'static>, chainwright::Error> {
        let address = match family {
            Family::Ipv4 => (DataType::IPV4_ADDR, 4),
            Family::Ipv6 => (DataType::IPV6_ADDR, 16),
        };
        let fields = self.fields(address);
        let (name, comment) = self.words();
        let table = nft::Family::from(family);
        let mut set = match &fields[..] {
            [(key, length)] => Set::new(table, table_name, name, *key, *length),
            several => {
                Set::new(table, table_name, name, DataType::default(), 0).with_fields(several)
            }
        };
        set = match self.maps() {
            Maps::Nothing => set,
            Maps::Number => set.with_data(NUMBER.0, NUMBER.1),
            Maps::Endpoint => {
                let types = [address.0, PORT.0];
                set.with_data(DataType::concatenation(types), address.1 + 4)
            }
            Maps::Verdict => set.with_verdicts(),
        };
        if self == Self::Affinity {
            let flags = SetFlags::TIMEOUT | SetFlags::EVAL;
            set = set.with_flags(flags).with_size(affinity);
        }
        Ok(set.with_comment(comment)?)
    }
}

/// Bytes of a key or a value, in words of four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ElementData {
    length: u8,
    bytes: [u8; Self::MAX_LENGTH],
}

impl ElementData {
    /// A firewall's source in IPv6.
    const MAX_LENGTH: usize = 44;

    pub(super) const fn new() -> Self {
        Self {
            length: 0,
            bytes: [0; Self::MAX_LENGTH],
        }
    }

    /// Converts bytes that the kernel listed; `None` if they are longer than any of this layout's keys and values.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let mut this = Self::new();
        this.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        this.length = bytes.len() as u8;
        Some(this)
    }

    /// Appends a field, padded to words. Only fields of this module are appended, and these fit.
    fn with(mut self, field: &[u8]) -> Self {
        let start = usize::from(self.length);
        self.bytes[start..start + field.len()].copy_from_slice(field);
        self.length += field.len().next_multiple_of(4) as u8;
        self
    }

    pub(super) fn address(self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => self.with(&address.octets()),
            IpAddr::V6(address) => self.with(&address.octets()),
        }
    }

    pub(super) fn protocol(self, protocol: Protocol) -> Self {
        self.with(&[protocol.number()])
    }

    pub(super) fn port(self, port: u16) -> Self {
        self.with(&port.to_be_bytes())
    }

    pub(super) fn number(self, number: u32) -> Self {
        self.with(&number.to_ne_bytes())
    }

    pub(super) fn endpoint(self, endpoint: SocketAddr) -> Self {
        self.address(endpoint.ip()).port(endpoint.port())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns the word at this index, as a number.
    pub(super) fn number_at(&self, word: usize) -> Option<u32> {
        let bytes = self.as_bytes().get(word * 4..word * 4 + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Converts the result of [`endpoint`](Self::endpoint) back.
    pub(super) fn as_endpoint(&self) -> Option<SocketAddr> {
        let bytes = self.as_bytes();
        let (address, port) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        let address: IpAddr = match address.len() {
            4 => <[u8; 4]>::try_from(address).ok()?.into(),
            16 => <[u8; 16]>::try_from(address).ok()?.into(),
            _ => return None,
        };
        Some(SocketAddr::new(
            address,
            u16::from_be_bytes([port[0], port[1]]),
        ))
    }
}

impl std::fmt::Debug for ElementData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for word in self.as_bytes().chunks(4) {
            for byte in word {
                write!(f, "{byte:02x}")?;
            }
            f.write_str(" ")?;
        }
        Ok(())
    }
}

/// An element of one of this layout's sets, without a verdict.
pub(super) type Entry = (ElementData, Option<ElementData>);

pub(super) fn element<'e>((key, value): &'e Entry) -> Element<'e> {
    let element = Element::new(key.as_bytes());
    match value {
        Some(value) => element.with_data(value.as_bytes()),
        None => element,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_kinds_are_in_declaration_order() {
        for (place, kind) in SetKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{}", kind.name());
        }
    }

    #[test]
    fn fields_are_padded_to_words() {
        let endpoint: SocketAddr = "10.1.2.3:8080".parse().unwrap();
        let words = ElementData::new().endpoint(endpoint);
        assert_eq!(words.as_bytes(), [10, 1, 2, 3, 0x1f, 0x90, 0, 0]);
        assert_eq!(words.as_endpoint(), Some(endpoint));
        let endpoint: SocketAddr = "[fd00::1]:53".parse().unwrap();
        let words = ElementData::new().number(7).endpoint(endpoint);
        assert_eq!(words.as_bytes().len(), 24);
        assert_eq!(words.number_at(0), Some(7));
        assert_eq!(words.number_at(6), None);
        assert_eq!(ElementData::of(words.as_bytes()), Some(words));
        assert_eq!(ElementData::of(&[0; 45]), None);
        assert_eq!(ElementData::of(&[1, 2, 3]).unwrap().as_endpoint(), None);
        assert_eq!(ElementData::of(&[1, 2, 3, 4]).unwrap().as_endpoint(), None);
    }
}
