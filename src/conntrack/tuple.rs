//! One direction of a connection: addresses, protocol, ports.
//!
//! ```text
//! CTA_TUPLE_IP            nested: CTA_IP_V4_SRC, CTA_IP_V4_DST   4 bytes each
//!                                 CTA_IP_V6_SRC, CTA_IP_V6_DST   16 bytes each
//! CTA_TUPLE_PROTO         nested: CTA_PROTO_NUM                  u8
//!                                 CTA_PROTO_SRC_PORT, …_DST_PORT be16: of TCP, UDP, UDPLITE, SCTP, DCCP; of GRE keys
//!                                 CTA_PROTO_ICMP_ID              be16: of ICMP, and CTA_PROTO_ICMPV6_ID of ICMPv6
//!                                 CTA_PROTO_ICMP_TYPE, …_CODE    u8 each
//! CTA_TUPLE_ZONE          be16: the zone of this direction alone
//! ```

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nfnetlink_conntrack::{
    CTA_IP_V4_DST, CTA_IP_V4_SRC, CTA_IP_V6_DST, CTA_IP_V6_SRC, CTA_PROTO_DST_PORT,
    CTA_PROTO_ICMP_CODE, CTA_PROTO_ICMP_ID, CTA_PROTO_ICMP_TYPE, CTA_PROTO_ICMPV6_CODE,
    CTA_PROTO_ICMPV6_ID, CTA_PROTO_ICMPV6_TYPE, CTA_PROTO_NUM, CTA_PROTO_SRC_PORT, CTA_TUPLE_IP,
    CTA_TUPLE_PROTO,
};

use crate::netlink::{Attributes, MessageWriter};

/// The fields of a protocol that identify a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer4 {
    /// Ports of TCP, UDP, UDPLITE, SCTP and DCCP; keys of GRE.
    Ports {
        /// The protocol's number (`IPPROTO_*`): 6 is TCP, 17 UDP, 132 SCTP.
        protocol: u8,
        /// The source port.
        source: u16,
        /// The destination port.
        destination: u16,
    },
    /// An ICMP exchange, or an ICMPv6 exchange between IPv6 addresses.
    Icmp {
        /// The type: 8 is an echo request, 128 for ICMPv6.
        kind: u8,
        /// The code.
        code: u8,
        /// The identifier.
        id: u16,
    },
    /// Any other protocol: only the addresses identify the connection.
    Other {
        /// The protocol's number.
        protocol: u8,
    },
}

/// One direction of a connection: the source and destination of its packets.
///
/// The `Display` output is that of `conntrack -L`: `udp src=10.0.0.1 dst=10.96.0.10 sport=4000 dport=53`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tuple {
    /// The source address.
    pub source: IpAddr,
    /// The destination address, of the same family.
    pub destination: IpAddr,
    /// The protocol, and the fields that identify its connections.
    pub layer4: Layer4,
}

/// Returns the header of an attribute, in host byte order.
const fn header(length: u16, kind: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (length.to_ne_bytes(), kind.to_ne_bytes());
    [a, b, c, d]
}

const ICMP: u8 = libc::IPPROTO_ICMP as u8;
const ICMPV6: u8 = libc::IPPROTO_ICMPV6 as u8;

impl Tuple {
    /// Creates a TCP tuple from one address and port to another.
    #[must_use]
    pub fn tcp(source: (impl Into<IpAddr>, u16), destination: (impl Into<IpAddr>, u16)) -> Self {
        Self::ports(libc::IPPROTO_TCP as u8, source, destination)
    }

    /// Creates a UDP tuple from one address and port to another.
    #[must_use]
    pub fn udp(source: (impl Into<IpAddr>, u16), destination: (impl Into<IpAddr>, u16)) -> Self {
        Self::ports(libc::IPPROTO_UDP as u8, source, destination)
    }

    /// Creates a tuple of any protocol with ports, by its number.
    #[must_use]
    pub fn ports(
        protocol: u8,
        source: (impl Into<IpAddr>, u16),
        destination: (impl Into<IpAddr>, u16),
    ) -> Self {
        Self {
            source: source.0.into(),
            destination: destination.0.into(),
            layer4: Layer4::Ports {
                protocol,
                source: source.1,
                destination: destination.1,
            },
        }
    }

    /// Returns the protocol number.
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        match self.layer4 {
            Layer4::Ports { protocol, .. } | Layer4::Other { protocol } => protocol,
            Layer4::Icmp { .. } => match self.source {
                IpAddr::V4(_) => ICMP,
                IpAddr::V6(_) => ICMPV6,
            },
        }
    }

    /// Returns the source port, for a protocol with ports.
    #[must_use]
    pub const fn source_port(&self) -> Option<u16> {
        match self.layer4 {
            Layer4::Ports { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Returns the destination port, for a protocol with ports.
    #[must_use]
    pub const fn destination_port(&self) -> Option<u16> {
        match self.layer4 {
            Layer4::Ports { destination, .. } => Some(destination),
            _ => None,
        }
    }

    /// Returns the opposite direction without address translation. For ICMP, the type becomes that of the reply, if
    /// there is one.
    #[must_use]
    pub const fn reversed(&self) -> Self {
        let layer4 = match self.layer4 {
            Layer4::Ports {
                protocol,
                source,
                destination,
            } => Layer4::Ports {
                protocol,
                source: destination,
                destination: source,
            },
            Layer4::Icmp { kind, code, id } => Layer4::Icmp {
                // The types with a reply: `invmap` in the kernel's `nf_conntrack_proto_icmp*.c`.
                kind: match (self.source, kind) {
                    (IpAddr::V4(_), 8) => 0,
                    (IpAddr::V4(_), 0) => 8,
                    (IpAddr::V4(_), 13 | 15 | 17) => kind + 1,
                    (IpAddr::V4(_), 14 | 16 | 18) => kind - 1,
                    (IpAddr::V6(_), 128) => 129,
                    (IpAddr::V6(_), 129) => 128,
                    _ => kind,
                },
                code,
                id,
            },
            other @ Layer4::Other { .. } => other,
        };
        Self {
            source: self.destination,
            destination: self.source,
            layer4,
        }
    }

    /// Returns the address family, as nfnetlink encodes it.
    pub(super) const fn family(&self) -> u8 {
        match self.source {
            IpAddr::V4(_) => libc::AF_INET as u8,
            IpAddr::V6(_) => libc::AF_INET6 as u8,
        }
    }

    /// Decodes the attributes of a direction; `None` if they are invalid.
    #[inline]
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        Self::decode_fast(bytes).or_else(|| Self::decode_any(bytes))
    }

    /// Decodes IPv4 addresses with ports in the kernel's order, as in most entries, on a fast path.
    #[inline]
    fn decode_fast(bytes: &[u8]) -> Option<Self> {
        const NESTED: u16 = NLA_F_NESTED;
        /// Offset, length and type of each attribute.
        const HEADERS: [(usize, [u8; 4]); 7] = [
            (0, header(20, CTA_TUPLE_IP | NESTED)),
            (4, header(8, CTA_IP_V4_SRC)),
            (12, header(8, CTA_IP_V4_DST)),
            (20, header(28, CTA_TUPLE_PROTO | NESTED)),
            (24, header(5, CTA_PROTO_NUM)),
            (32, header(6, CTA_PROTO_SRC_PORT)),
            (40, header(6, CTA_PROTO_DST_PORT)),
        ];
        let bytes: &[u8; 48] = bytes.try_into().ok()?;
        let has_common_layout = HEADERS
            .iter()
            .all(|(at, header)| bytes[*at..*at + 4] == *header);
        let address = |at: usize| {
            let [a, b, c, d] = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        };
        let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        has_common_layout.then(|| Self {
            source: address(8),
            destination: address(16),
            layer4: Layer4::Ports {
                protocol: bytes[28],
                source: port(36),
                destination: port(44),
            },
        })
    }

    fn decode_any(bytes: &[u8]) -> Option<Self> {
        let attributes = Attributes::new(bytes);
        let (ip, proto) = (
            attributes.clone().find(CTA_TUPLE_IP)?,
            attributes.find(CTA_TUPLE_PROTO)?,
        );
        let (mut source, mut destination) = (None, None);
        for attribute in Attributes::new(ip).map_while(Result::ok) {
            let v4 = || Ipv4Addr::from(<[u8; 4]>::try_from(attribute.payload).unwrap_or_default());
            let v6 = || Ipv6Addr::from(<[u8; 16]>::try_from(attribute.payload).unwrap_or_default());
            let (address, length) = match attribute.kind {
                CTA_IP_V4_SRC | CTA_IP_V4_DST => (IpAddr::V4(v4()), 4),
                CTA_IP_V6_SRC | CTA_IP_V6_DST => (IpAddr::V6(v6()), 16),
                _ => continue,
            };
            if attribute.payload.len() != length {
                return None;
            }
            match attribute.kind {
                CTA_IP_V4_SRC | CTA_IP_V6_SRC => source = Some(address),
                _ => destination = Some(address),
            }
        }
        let (source, destination) = (source?, destination?);
        if source.is_ipv4() != destination.is_ipv4() {
            return None;
        }
        let (mut protocol, mut ports, mut icmp) = (None, (None, None), (None, None, None));
        for attribute in Attributes::new(proto).map_while(Result::ok) {
            let byte = attribute.payload.first().copied();
            let number = || {
                attribute
                    .payload
                    .first_chunk()
                    .copied()
                    .map(u16::from_be_bytes)
            };
            match attribute.kind {
                CTA_PROTO_NUM => protocol = Some(byte?),
                CTA_PROTO_SRC_PORT => ports.0 = Some(number()?),
                CTA_PROTO_DST_PORT => ports.1 = Some(number()?),
                CTA_PROTO_ICMP_ID | CTA_PROTO_ICMPV6_ID => icmp.2 = Some(number()?),
                CTA_PROTO_ICMP_TYPE | CTA_PROTO_ICMPV6_TYPE => icmp.0 = Some(byte?),
                CTA_PROTO_ICMP_CODE | CTA_PROTO_ICMPV6_CODE => icmp.1 = Some(byte?),
                _ => {}
            }
        }
        let protocol = protocol?;
        let layer4 = match (ports, icmp) {
            ((Some(source), Some(destination)), _) => Layer4::Ports {
                protocol,
                source,
                destination,
            },
            (_, (Some(kind), Some(code), Some(id)))
                if protocol == if source.is_ipv4() { ICMP } else { ICMPV6 } =>
            {
                Layer4::Icmp { kind, code, id }
            }
            _ => Layer4::Other { protocol },
        };
        Some(Self {
            source,
            destination,
            layer4,
        })
    }

    /// Writes it as an attribute of this type.
    pub(super) fn encode(&self, writer: &mut MessageWriter<'_>, kind: u16) {
        writer.nested(kind, |writer| {
            writer.nested(CTA_TUPLE_IP, |writer| {
                encode_source(writer, self.source);
                encode_destination(writer, self.destination);
            });
            writer.nested(CTA_TUPLE_PROTO, |writer| {
                writer.u8(CTA_PROTO_NUM, self.protocol());
                match self.layer4 {
                    Layer4::Ports {
                        source,
                        destination,
                        ..
                    } => {
                        writer
                            .be16(CTA_PROTO_SRC_PORT, source)
                            .be16(CTA_PROTO_DST_PORT, destination);
                    }
                    Layer4::Icmp { kind, code, id } => {
                        let [of_type, of_code, of_id] = match self.source {
                            IpAddr::V4(_) => {
                                [CTA_PROTO_ICMP_TYPE, CTA_PROTO_ICMP_CODE, CTA_PROTO_ICMP_ID]
                            }
                            IpAddr::V6(_) => [
                                CTA_PROTO_ICMPV6_TYPE,
                                CTA_PROTO_ICMPV6_CODE,
                                CTA_PROTO_ICMPV6_ID,
                            ],
                        };
                        writer.u8(of_type, kind).u8(of_code, code).be16(of_id, id);
                    }
                    Layer4::Other { .. } => {}
                }
            });
        });
    }
}

pub(super) fn encode_source(writer: &mut MessageWriter<'_>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => writer.bytes(CTA_IP_V4_SRC, &address.octets()),
        IpAddr::V6(address) => writer.bytes(CTA_IP_V6_SRC, &address.octets()),
    };
}

pub(super) fn encode_destination(writer: &mut MessageWriter<'_>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => writer.bytes(CTA_IP_V4_DST, &address.octets()),
        IpAddr::V6(address) => writer.bytes(CTA_IP_V6_DST, &address.octets()),
    };
}

/// The protocol names that `conntrack` prints.
const NAMES: [(u8, &str); 8] = [
    (1, "icmp"),
    (6, "tcp"),
    (17, "udp"),
    (33, "dccp"),
    (47, "gre"),
    (58, "icmpv6"),
    (132, "sctp"),
    (136, "udplite"),
];

impl Tuple {
    /// Writes the name of its protocol.
    pub(super) fn fmt_protocol(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = self.protocol();
        match NAMES.iter().find(|(number, _)| *number == protocol) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "protocol {protocol}"),
        }
    }

    /// Writes the addresses and ports.
    pub(super) fn fmt_endpoints(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "src={} dst={}", self.source, self.destination)?;
        match self.layer4 {
            Layer4::Ports {
                source,
                destination,
                ..
            } => write!(f, " sport={source} dport={destination}"),
            Layer4::Icmp { kind, code, id } => write!(f, " type={kind} code={code} id={id}"),
            Layer4::Other { .. } => Ok(()),
        }
    }
}

impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_protocol(f)?;
        f.write_str(" ")?;
        self.fmt_endpoints(f)
    }
}

#[cfg(test)]
mod tests {
    use chainwright_sys::nfnetlink_conntrack::CTA_TUPLE_ORIG;
    use proptest::prelude::*;

    use super::*;

    fn tuples() -> impl Strategy<Value = Tuple> {
        let addresses = prop_oneof![
            any::<[[u8; 4]; 2]>().prop_map(|pair| pair.map(IpAddr::from)),
            any::<[[u8; 16]; 2]>().prop_map(|pair| pair.map(IpAddr::from)),
        ];
        let layer4 = prop_oneof![
            any::<(u8, u16, u16)>().prop_map(|(protocol, source, destination)| Layer4::Ports {
                protocol,
                source,
                destination,
            }),
            any::<(u8, u8, u16)>().prop_map(|(kind, code, id)| Layer4::Icmp { kind, code, id }),
            any::<u8>().prop_map(|protocol| Layer4::Other { protocol }),
        ];
        (addresses, layer4).prop_map(|([source, destination], layer4)| Tuple {
            source,
            destination,
            layer4,
        })
    }

    proptest! {
        #[test]
        fn written_entries_are_decoded(tuple in tuples()) {
            let mut bytes = Vec::new();
            let mut writer = MessageWriter::bare(&mut bytes);
            tuple.encode(&mut writer, CTA_TUPLE_ORIG);
            writer.finish_bare().unwrap();
            let payload = Attributes::new(&bytes).find(CTA_TUPLE_ORIG).unwrap();
            prop_assert_eq!(Tuple::decode(payload), Some(tuple));
            prop_assert_eq!(Tuple::decode_any(payload), Some(tuple));
            prop_assert_eq!(tuple.reversed().reversed(), tuple);
        }

        #[test]
        fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Tuple::decode(&bytes);
        }
    }

    /// The bytes of a UDP entry, from `conntrack -L` on Linux 6.18.
    #[test]
    fn matches_the_kernels_listing() {
        let bytes = [
            0x14, 0, 0x01, 0x80, // CTA_TUPLE_IP
            0x08, 0, 0x01, 0, 10, 0, 0, 1, // CTA_IP_V4_SRC
            0x08, 0, 0x02, 0, 10, 96, 0, 10, // CTA_IP_V4_DST
            0x1c, 0, 0x02, 0x80, // CTA_TUPLE_PROTO
            0x05, 0, 0x01, 0, 17, 0, 0, 0, // CTA_PROTO_NUM
            0x06, 0, 0x02, 0, 0x0f, 0xa0, 0, 0, // CTA_PROTO_SRC_PORT
            0x06, 0, 0x03, 0, 0, 53, 0, 0, // CTA_PROTO_DST_PORT
        ];
        let tuple = Tuple::udp(([10, 0, 0, 1], 4000), ([10, 96, 0, 10], 53));
        assert_eq!(Tuple::decode(&bytes), Some(tuple));
        assert_eq!(Tuple::decode_fast(&bytes), Some(tuple));
        assert_eq!(
            tuple.to_string(),
            "udp src=10.0.0.1 dst=10.96.0.10 sport=4000 dport=53"
        );
        // The direction is invalid without any byte of a required field.
        for cut in [4, 8, 12, 20, 24] {
            assert_eq!(Tuple::decode(&bytes[..cut]), None, "{cut}");
        }
    }
}
