//! One step of a packet through the rules, as reported by the kernel (nftrace).

use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use chainwright_sys::nf_tables::{
    NFT_TRACETYPE_POLICY, NFT_TRACETYPE_RETURN, NFT_TRACETYPE_RULE, NFTA_TRACE_CHAIN,
    NFTA_TRACE_CT_DIRECTION, NFTA_TRACE_CT_ID, NFTA_TRACE_CT_STATE, NFTA_TRACE_CT_STATUS,
    NFTA_TRACE_ID, NFTA_TRACE_IIF, NFTA_TRACE_IIFTYPE, NFTA_TRACE_LL_HEADER, NFTA_TRACE_MARK,
    NFTA_TRACE_NETWORK_HEADER, NFTA_TRACE_NFPROTO, NFTA_TRACE_OIF, NFTA_TRACE_OIFTYPE,
    NFTA_TRACE_PAD, NFTA_TRACE_POLICY, NFTA_TRACE_RULE_HANDLE, NFTA_TRACE_TABLE,
    NFTA_TRACE_TRANSPORT_HEADER, NFTA_TRACE_TYPE, NFTA_TRACE_VERDICT,
};

use crate::escape::Escaped;
use crate::nft::declare::{object, values};
use crate::nft::expr::Verdict;
use crate::nft::{Bytes, Family, Name, Policy};

values! {
    /// The kind of a trace step: `enum nft_trace_types`.
    pub struct TraceKind: u32 {
        /// A packet reached the end of a base chain, and the policy decided.
        POLICY = NFT_TRACETYPE_POLICY => "policy",
        /// A rule returned the packet to the calling chain, or to the policy.
        RETURN = NFT_TRACETYPE_RETURN => "return",
        /// A rule with a verdict, or one that ended without a verdict. Without a rule handle: the end of a chain.
        RULE = NFT_TRACETYPE_RULE => "rule",
    }
}

object! {
    /// One step of a packet's way through the rules of one hook: `enum nft_trace_attributes`, as
    /// `NFT_MSG_TRACE` carries it.
    ///
    /// Only the first step of a packet in a hook has the start of its headers and its devices.
    pub struct Trace viewed as TraceRef, "a trace step" {
        /// Family of the packet, `NFPROTO_*`: IPv4 or IPv6 in a table of the family inet.
        NFTA_TRACE_NFPROTO => nfproto: u32,
        /// Kind of the step.
        NFTA_TRACE_TYPE => kind: TraceKind [required],
        /// Identifies the packet: the same in all its steps. An opaque number without a byte order.
        NFTA_TRACE_ID => id: u32 [required],
        /// Name of the chain.
        NFTA_TRACE_CHAIN => chain: Name<'a>,
        /// Name of the table.
        NFTA_TRACE_TABLE => table: Name<'a>,
        /// Handle of the rule; absent at the end of a chain.
        NFTA_TRACE_RULE_HANDLE => rule: u64,
        /// Verdict of the rule, or the verdict that left the chain.
        NFTA_TRACE_VERDICT => verdict: Verdict<'a>,
        /// Policy that decided.
        NFTA_TRACE_POLICY => policy: Policy,
        /// Mark of the packet; absent if it is 0.
        NFTA_TRACE_MARK => mark: u32,
        /// Index of the input device.
        NFTA_TRACE_IIF => iif: u32,
        /// Type of the input device: `ARPHRD_*`.
        NFTA_TRACE_IIFTYPE => iif_type: u16,
        /// Index of the output device.
        NFTA_TRACE_OIF => oif: u32,
        /// Type of the output device: `ARPHRD_*`.
        NFTA_TRACE_OIFTYPE => oif_type: u16,
        /// Link-layer header, if there is one and the kernel sends it (20 bytes); with the VLAN tag if the packet had
        /// one.
        NFTA_TRACE_LL_HEADER => link_header: Bytes<'a>,
        /// Network header, at most the first 40 bytes.
        NFTA_TRACE_NETWORK_HEADER => network_header: Bytes<'a>,
        /// The first 20 bytes from the transport header on.
        NFTA_TRACE_TRANSPORT_HEADER => transport_header: Bytes<'a>,
        /// ID of the packet's conntrack entry, an opaque number without a byte order; since Linux 6.16.
        NFTA_TRACE_CT_ID => ct_id: u32,
        /// Direction of the packet in its connection, `IP_CT_DIR_*`; since Linux 6.16.
        NFTA_TRACE_CT_DIRECTION => ct_direction: u8,
        /// Status of the conntrack entry, `IPS_*`; since Linux 6.16.
        NFTA_TRACE_CT_STATUS => ct_status: u32,
        /// State of the connection, the bits of `ct state`; since Linux 6.16.
        NFTA_TRACE_CT_STATE => ct_state: u32,
        _ => NFTA_TRACE_PAD,
    }
}

impl<'a> TraceRef<'a> {
    /// Returns the kind in one word: `rule`, `return`, `end` (of a chain), `policy`; a number for an unknown kind.
    #[must_use]
    pub fn word(&self) -> String {
        match (self.kind(), self.rule()) {
            (TraceKind::RULE, None) => "end".to_owned(),
            (kind, _) => kind.to_string(),
        }
    }

    /// Returns a description of the packet's headers; `None` if the step has none, as in all but the first step.
    #[must_use]
    pub fn packet(&self) -> Option<PacketSummary<'a>> {
        let network = self.network_header()?;
        let family = self.nfproto().and_then(|number| u8::try_from(number).ok());
        Some(PacketSummary {
            // In the families bridge and netdev the header itself contains the IP version.
            family: match (family.map(Family), network.first().map(|first| first >> 4)) {
                (Some(Family::BRIDGE | Family::NETDEV | Family::INET) | None, Some(4)) => {
                    Family::IP
                }
                (Some(Family::BRIDGE | Family::NETDEV | Family::INET) | None, Some(6)) => {
                    Family::IP6
                }
                (family, _) => family.unwrap_or_default(),
            },
            network,
            transport: self.transport_header().unwrap_or_default(),
        })
    }
}

/// Formats the step without the packet: `rule ip filter INPUT handle 7 verdict jump -> web`.
impl fmt::Display for TraceRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.word(), self.family())?;
        for name in [self.table(), self.chain()].into_iter().flatten() {
            write!(f, " {}", Escaped(name))?;
        }
        if let Some(handle) = self.rule() {
            write!(f, " handle {handle}")?;
        }
        if let Some(verdict) = self.verdict() {
            write!(f, " verdict {verdict}")?;
        }
        if let Some(policy) = self.policy() {
            write!(f, " policy {policy}")?;
        }
        if let Some(mark) = self.mark() {
            write!(f, " mark {mark:#x}")?;
        }
        Ok(())
    }
}

/// A description of a packet: `ip saddr 10.0.0.1 daddr 10.0.0.2 ttl 64 length 40 tcp sport 1024 dport 80`. For a packet
/// that is neither IPv4 nor IPv6, the bytes of its network header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketSummary<'a> {
    family: Family,
    network: &'a [u8],
    transport: &'a [u8],
}

/// Protocols whose header begins with two ports.
const PORTS: [(u8, &str); 5] = [
    (6, "tcp"),
    (17, "udp"),
    (33, "dccp"),
    (132, "sctp"),
    (136, "udplite"),
];
/// Protocols whose header begins with a type and a code.
const TYPES: [(u8, &str); 2] = [(1, "icmp"), (58, "icmpv6")];

impl PacketSummary<'_> {
    /// Writes addresses, time to live and length; returns the transport protocol. `None` if the header is not of this
    /// family.
    fn network(&self, out: &mut String) -> Result<Option<u8>, fmt::Error> {
        let header = self.network;
        match (self.family, header.first().map(|first| first >> 4)) {
            (Family::IP, Some(4)) => {
                let Some(header) = header.first_chunk::<20>() else {
                    return Ok(None);
                };
                let [
                    _,
                    _,
                    l0,
                    l1,
                    _,
                    _,
                    _,
                    _,
                    ttl,
                    protocol,
                    _,
                    _,
                    s0,
                    s1,
                    s2,
                    s3,
                    d0,
                    d1,
                    d2,
                    d3,
                ] = *header;
                let source = Ipv4Addr::new(s0, s1, s2, s3);
                let destination = Ipv4Addr::new(d0, d1, d2, d3);
                let length = u16::from_be_bytes([l0, l1]);
                write!(
                    out,
                    "ip saddr {source} daddr {destination} ttl {ttl} length {length}"
                )?;
                Ok(Some(protocol))
            }
            (Family::IP6, Some(6)) => {
                let Some((fixed, addresses)) = header.split_first_chunk::<8>() else {
                    return Ok(None);
                };
                let Some((source, rest)) = addresses.split_first_chunk::<16>() else {
                    return Ok(None);
                };
                let Some(destination) = rest.first_chunk::<16>() else {
                    return Ok(None);
                };
                let [_, _, _, _, l0, l1, protocol, hops] = *fixed;
                let (source, destination) = (Ipv6Addr::from(*source), Ipv6Addr::from(*destination));
                let length = u16::from_be_bytes([l0, l1]);
                write!(
                    out,
                    "ip6 saddr {source} daddr {destination} hoplimit {hops} length {length}"
                )?;
                Ok(Some(protocol))
            }
            _ => Ok(None),
        }
    }
}

impl fmt::Display for PacketSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = String::new();
        let Some(protocol) = self.network(&mut words)? else {
            return write!(f, "{} 0x{}", self.family, Bytes::borrowed(self.network));
        };
        f.write_str(&words)?;
        let named = |list: &[(u8, &'static str)]| {
            let found = list.iter().find(|(number, _)| *number == protocol);
            found.map(|(_, name)| *name)
        };
        match (named(&PORTS), named(&TYPES), self.transport) {
            (Some(name), _, &[s0, s1, d0, d1, ..]) => {
                let port = |bytes| u16::from_be_bytes(bytes);
                write!(
                    f,
                    " {name} sport {} dport {}",
                    port([s0, s1]),
                    port([d0, d1])
                )
            }
            (_, Some(name), &[kind, code, ..]) => write!(f, " {name} type {kind} code {code}"),
            _ => write!(f, " protocol {protocol}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_packets() {
        let summary = |family, network: &[u8], transport: &[u8]| {
            let words = PacketSummary {
                family,
                network,
                transport,
            };
            words.to_string()
        };
        let mut ip = vec![
            0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        assert_eq!(
            summary(Family::IP, &ip, &[0x04, 0, 0, 53, 0, 8, 0, 0]),
            "ip saddr 10.0.0.1 daddr 10.0.0.2 ttl 64 length 28 udp sport 1024 dport 53"
        );
        ip[9] = 1;
        assert!(summary(Family::IP, &ip, &[8, 0]).ends_with("length 28 icmp type 8 code 0"));
        ip[9] = 47;
        assert!(summary(Family::IP, &ip, &[]).ends_with("protocol 47"));
        let mut ip6 = vec![0x60, 0, 0, 0, 0, 8, 58, 255];
        ip6.extend(Ipv6Addr::LOCALHOST.octets());
        ip6.extend(Ipv6Addr::UNSPECIFIED.octets());
        assert_eq!(
            summary(Family::IP6, &ip6, &[128, 0, 0, 0]),
            "ip6 saddr ::1 daddr :: hoplimit 255 length 8 icmpv6 type 128 code 0"
        );
        assert_eq!(summary(Family::ARP, &[0, 1], &[]), "arp 0x0001");
        // Truncated anywhere, or with the wrong family.
        for end in 0..ip6.len() {
            assert!(summary(Family::IP6, &ip6[..end], &[]).starts_with("ip6 0x"));
        }
        for end in 0..ip.len() {
            assert!(summary(Family::IP, &ip[..end], &[]).starts_with("ip 0x"));
        }
        assert!(summary(Family::IP6, &ip, &[]).starts_with("ip6 0x"));
    }
}
