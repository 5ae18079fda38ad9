//! The addresses and ports of services, read from the rules of any version of kube-proxy and of this crate.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bstr::ByteSlice;

use super::explain::{ChainInfo, port_in_comment};
use super::service::has_frontend_keys;
use chainwright::iptables::{self, Address, Rule};
use chainwright::legacy;
use chainwright::nft::expr::{Data, Verdict};
use chainwright::nft::{DataType, ElementRef, Family, Snapshot};
use chainwright::xt::{self, Match};

/// An address and port at which a service port is reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frontend {
    /// The service port: `namespace/name:port`. `None` if the rules do not name it: this crate's flat layout has no
    /// names.
    pub service: Option<String>,
    /// The address; `None` for a node port, which applies to all addresses of the node.
    pub address: Option<IpAddr>,
    /// `IPPROTO_*`.
    pub protocol: u8,
    /// The port.
    pub port: u16,
    /// Whether it is an IPv6 frontend.
    pub ipv6: bool,
}

/// Chains in iptables whose rules each match one frontend.
const CHAINS: [&str; 3] = ["KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS"];

/// Lists the frontends in the tables of either backend: from the rules for services and node ports in iptables, from
/// the maps in nftables and in this crate's [flat layout](crate::service::Layout::Flat). Each occurs once, sorted by
/// service.
pub fn frontends<'t>(
    snapshot: &Snapshot,
    tables: impl IntoIterator<Item = &'t legacy::Table>,
) -> Vec<Frontend> {
    let mut found = BTreeSet::new();
    for table in snapshot.tables() {
        let family = table.table().family();
        if let Ok(family) = xt::Family::try_from(family) {
            for chain in CHAINS.iter().filter_map(|name| table.chain(name)) {
                for rule in chain.rules() {
                    let entry = iptables::nft::decode(&rule);
                    found.extend(entry.ok().and_then(|entry| of_rule(family, &entry.rule)));
                }
            }
        }
        for set in table.sets() {
            let set_ref = set.set();
            let Some(address) = set_ref.key_type().and_then(length_of_address) else {
                continue;
            };
            let is_flat = has_frontend_keys(table.table().name(), set_ref.name());
            if is_flat || set_ref.data_type() == Some(DataType::VERDICT) {
                let elements = set.elements().filter_map(|element| {
                    let service = named(&element);
                    let is_one = is_flat || service.is_some();
                    of_element(family, address, &element, service).filter(|_| is_one)
                });
                found.extend(elements);
            }
        }
    }
    for table in tables {
        let Ok(family) = xt::Family::try_from(table.family()) else {
            continue;
        };
        for chain in CHAINS.iter().filter_map(|name| table.chain(name)) {
            for rule in chain.rules() {
                let entry = iptables::legacy::decode(&rule);
                found.extend(entry.ok().and_then(|entry| of_rule(family, &entry.rule)));
            }
        }
    }
    found.into_iter().collect()
}

/// Returns the node's addresses at which it serves node ports, where the rules name them, as in kube-proxy's nftables
/// mode.
#[must_use]
pub fn node_port_addresses(snapshot: &Snapshot) -> Vec<IpAddr> {
    let mut addresses = BTreeSet::new();
    for set in snapshot
        .tables()
        .filter_map(|table| table.set("nodeport-ips"))
    {
        let keys = set.elements().filter_map(|element| element.key_bytes());
        addresses.extend(keys.filter_map(of_bytes));
    }
    addresses.into_iter().collect()
}

/// Converts bytes to an address.
fn of_bytes(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let v6 = <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    v4.or(v6).ok()
}

/// Returns the frontend of a rule such as `-d 10.96.0.10/32 -p udp -m comment --comment "kube-system/kube-dns:dns
/// cluster IP" -m udp --dport 53 …`.
fn of_rule(family: xt::Family, rule: &Rule) -> Option<Frontend> {
    let comment = rule.matches.iter().find_map(|one| match one {
        Match::Comment(comment) => Some(comment.as_bytes()),
        _ => None,
    })?;
    // The node itself answers there, not the service.
    if comment.contains_str("health check") {
        return None;
    }
    let range = rule.matches.iter().find_map(|one| match one {
        Match::Tcp(tcp) => Some(tcp.destination),
        Match::Udp(udp) => Some(udp.destination),
        Match::Sctp(sctp) => sctp.destination,
        _ => None,
    })?;
    let is_whole = |address: &Address| {
        let bits = if address.address.is_ipv4() { 32 } else { 128 };
        !address.invert && address.prefix() == Some(bits)
    };
    (range.first == range.last && !range.invert).then_some(())?;
    Some(Frontend {
        service: Some(port_in_comment(comment)?),
        address: rule.destination.filter(is_whole).map(|whole| whole.address),
        protocol: rule.protocol.filter(|protocol| !protocol.invert)?.number,
        port: range.first,
        ipv6: family == xt::Family::Ipv6,
    })
}

/// Returns the length in bytes of the address before protocol and port in a map key of this type, if it is one of
/// kube-proxy's key types. Each field is padded to a multiple of four bytes.
fn length_of_address(key: DataType) -> Option<usize> {
    let behind = [DataType::INET_PROTO, DataType::INET_SERVICE];
    let addresses = [
        (Some(DataType::IPV4_ADDR), 4),
        (Some(DataType::IPV6_ADDR), 16),
        (None, 0),
    ];
    let is_it = |(address, _): &(Option<DataType>, usize)| {
        DataType::concatenation(address.iter().copied().chain(behind)) == key
    };
    addresses.into_iter().find(is_it).map(|(_, length)| length)
}

/// Returns the service port of an element of kube-proxy's maps, by the chain that it jumps to or by its comment.
fn named(element: &ElementRef<'_>) -> Option<String> {
    let chain = match element.data() {
        Some(Data::Verdict(Verdict::Goto(chain) | Verdict::Jump(chain))) => {
            ChainInfo::of(chain.as_bytes(), None).and_then(|part| part.port)
        }
        _ => None,
    };
    chain.or_else(|| port_in_comment(element.comment()?))
}

/// Returns the frontend of an element such as `10.96.10.10 . tcp . 80 : goto
/// service-LHMBTHWP-default/azure-vote-front/tcp/`.
fn of_element(
    family: Family,
    address: usize,
    element: &ElementRef<'_>,
    service: Option<String>,
) -> Option<Frontend> {
    let (address, rest) = element.key_bytes()?.split_at_checked(address)?;
    let (protocol, port) = (*rest.first()?, rest.get(4..6)?);
    Some(Frontend {
        service,
        address: of_bytes(address),
        protocol,
        port: u16::from_be_bytes(port.try_into().ok()?),
        ipv6: family == Family::IP6,
    })
}
