//! By which addresses and ports services are reached, as the rules of a kube-proxy of any version say it, and this crate's.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bstr::ByteSlice;

use super::explain::{Part, port_in_comment};
use super::service::is_of_fronts;
use chainwright::iptables::{self, Address, Rule};
use chainwright::legacy;
use chainwright::nft::expr::{Data, Verdict};
use chainwright::nft::{DataType, ElementRef, Family, Snapshot};
use chainwright::xt::{self, Match};

/// By which address and port a port of a service is reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frontend {
    /// Which service's port: `namespace/name:port`. `None` if the rules do not say it: the layout that this crate calls
    /// flat has no names.
    pub service: Option<String>,
    /// The address; of a node port there is none, as all of the node's are meant.
    pub address: Option<IpAddr>,
    /// `IPPROTO_*`.
    pub protocol: u8,
    /// The port.
    pub port: u16,
    /// Whether it is of IPv6.
    pub ipv6: bool,
}

/// Chains in iptables whose rules are of frontends each.
const CHAINS: [&str; 3] = ["KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS"];

/// The frontends in tables of either backend: in iptables' of its rules for services and node ports, in nftables and in
/// this crate's [flat layout](crate::service::Layout::Flat) of its maps. Each once, sorted by services.
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
            let is_flat = is_of_fronts(table.table().name(), set_ref.name());
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

/// The addresses of the node at which it answers on node ports, where the rules name them: kube-proxy's nftables mode does.
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

/// The address that these bytes are.
fn of_bytes(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let v6 = <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    v4.or(v6).ok()
}

/// `-d 10.96.0.10/32 -p udp -m comment --comment "kube-system/kube-dns:dns cluster IP" -m udp --dport 53 …`
fn of_rule(family: xt::Family, rule: &Rule) -> Option<Frontend> {
    let comment = rule.matches.iter().find_map(|one| match one {
        Match::Comment(comment) => Some(comment.as_bytes()),
        _ => None,
    })?;
    // A node answers by itself there, and not by the service.
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

/// How many bytes of an address stand before the protocol and the port in a key of this type, if it is one of kube-proxy's:
/// each field is filled up to four bytes.
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

/// Which service's port an element of kube-proxy's is about, by the chain that it leads to or by its comment.
fn named(element: &ElementRef<'_>) -> Option<String> {
    let chain = match element.data() {
        Some(Data::Verdict(Verdict::Goto(chain) | Verdict::Jump(chain))) => {
            Part::of(chain.as_bytes(), None).and_then(|part| part.port)
        }
        _ => None,
    };
    chain.or_else(|| port_in_comment(element.comment()?))
}

/// `10.96.10.10 . tcp . 80 : goto service-LHMBTHWP-default/azure-vote-front/tcp/`
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
