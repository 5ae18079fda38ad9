//! What can be asked of a packet, and how its values are told.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::packet::State;
use chainwright::nft::expr::{CtKey, FibFlags, FibResult, MetaKey, RtKey};
use chainwright::xt::Family;

/// Something that rules ask of a packet, of its connection, its socket or its route.
///
/// A value is a number of as many bits as it has: what stands in the packet in network order, what the kernel
/// keeps beside it as the number that it is. A name of an interface is its sixteen bytes, the first one on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// Source address: 32 or 128 bits.
    Source,
    /// Destination address.
    Destination,
    /// Protocol of the transport layer, behind all extension headers.
    Protocol,
    /// Protocol or header that an IPv6 header says comes next.
    NextHeader,
    /// Type of service, or traffic class.
    Tos,
    /// Time to live, or hop limit.
    Ttl,
    /// Flags and offset of a fragment, as in an IPv4 header; of IPv6 the offset in the same 13 bits.
    Fragment,
    /// Length of the packet from its network header on, in bytes: 32 bits.
    Length,
    /// Source port.
    SourcePort,
    /// Destination port.
    DestinationPort,
    /// ICMP's type, of either family.
    IcmpType,
    /// ICMP's code, of either family.
    IcmpCode,
    /// The flags of a TCP header: 8 bits.
    TcpFlags,
    /// Whether the packet has any IPv4 options or IPv6 extension headers: one bit.
    HasOptions,
    /// Whether the packet has an IPv4 option, TCP option, IPv6 extension header or chunk: one bit.
    Has(PacketOption),
    /// A byte of such an option or header, by its offset there.
    OptionByte(PacketOption, u16),
    /// A byte behind the start of the link layer's header.
    Link(u16),
    /// A byte behind the start of the network header that has no field of its own here.
    Network(u16),
    /// Likewise behind the start of the transport header.
    Transport(u16),
    /// Likewise of what follows the transport header.
    Payload(u16),
    /// The packet's mark.
    Mark,
    /// Name of the interface that it came in by; 0 if it did not.
    InName,
    /// Name of the interface that it leaves by; 0 where that is not known yet, or it does not.
    OutName,
    /// Index of the interface that it came in by.
    InIndex,
    /// Index of the interface that it leaves by.
    OutIndex,
    /// What else `meta` of nf_tables can tell.
    Meta(MetaKey),
    /// Whether there is a socket on this machine for it: one bit.
    HasSocket,
    /// A key of that socket: as `socket` of nf_tables has them, and the level of a control group.
    Socket(u32, u32),
    /// Group or user of the socket that sent it is under [`Field::Meta`]; whether there is such a socket: one bit.
    HasSender,
    /// State of its connection, as a bit (`NF_CT_STATE_*`): 32 bits.
    State,
    /// Direction in its connection: 0 original, 1 reply; 8 bits.
    CtDirection,
    /// Status of its connection (`IPS_*`).
    CtStatus,
    /// Mark of its connection.
    CtMark,
    /// What else `ct` of nf_tables can tell, of a direction where that counts.
    Ct(CtKey, Option<u8>),
    /// An address or port of its connection.
    Tuple(TupleField),
    /// What the routing tables say of one of its addresses.
    Fib(FibFlags, FibResult),
    /// What is known of its route.
    Route(RtKey),
}

/// An option, an extension header or a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketOption {
    /// Of what (`NFT_EXTHDR_OP_*`): 0 IPv6, 1 TCP, 2 IPv4, 3 SCTP, 4 DCCP.
    pub of: u8,
    /// Which: its type.
    pub kind: u8,
}

/// An address or port of a connection, of either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TupleField {
    /// Source address of the first packet.
    OriginalSource,
    /// Destination address of the first packet.
    OriginalDestination,
    /// Source port of the first packet.
    OriginalSourcePort,
    /// Destination port of the first packet.
    OriginalDestinationPort,
    /// Source address of the replies.
    ReplySource,
    /// Destination address of the replies.
    ReplyDestination,
    /// Source port of the replies.
    ReplySourcePort,
    /// Destination port of the replies.
    ReplyDestinationPort,
}

/// How the values of a field are told.
enum FieldFormat {
    Number,
    Hex,
    Address,
    Name,
    State,
    Bool,
    Protocol,
}

impl Field {
    /// How many bits its values have.
    #[must_use]
    pub const fn bits(self, family: Family) -> u32 {
        let address = match family {
            Family::Ipv4 => 32,
            Family::Ipv6 => 128,
        };
        match self {
            Self::Source | Self::Destination => address,
            Self::Protocol
            | Self::NextHeader
            | Self::Tos
            | Self::Ttl
            | Self::IcmpType
            | Self::IcmpCode
            | Self::TcpFlags
            | Self::OptionByte(..)
            | Self::Link(_)
            | Self::Network(_)
            | Self::Transport(_)
            | Self::Payload(_)
            | Self::CtDirection => 8,
            Self::Fragment | Self::SourcePort | Self::DestinationPort => 16,
            Self::Length
            | Self::Mark
            | Self::InIndex
            | Self::OutIndex
            | Self::State
            | Self::CtStatus
            | Self::CtMark => 32,
            Self::InName | Self::OutName => 128,
            Self::HasOptions | Self::Has(_) | Self::HasSocket | Self::HasSender => 1,
            Self::Meta(key) => meta_bits(key),
            Self::Socket(key, _) => match key {
                1 => 32,
                3 => 64,
                _ => 8,
            },
            Self::Ct(key, _) => ct_bits(key, address),
            Self::Tuple(field) => match field {
                TupleField::OriginalSource
                | TupleField::OriginalDestination
                | TupleField::ReplySource
                | TupleField::ReplyDestination => address,
                _ => 16,
            },
            Self::Fib(flags, result) => {
                if flags.contains(FibFlags::PRESENT) {
                    8
                } else {
                    match result {
                        FibResult::OIFNAME => 128,
                        _ => 32,
                    }
                }
            }
            Self::Route(key) => match key {
                RtKey::NEXTHOP6 => 128,
                RtKey::TCPMSS => 16,
                RtKey::XFRM => 8,
                _ => 32,
            },
        }
    }

    fn told(self) -> FieldFormat {
        match self {
            Self::Source | Self::Destination => FieldFormat::Address,
            Self::Tuple(
                TupleField::OriginalSource
                | TupleField::OriginalDestination
                | TupleField::ReplySource
                | TupleField::ReplyDestination,
            )
            | Self::Route(RtKey::NEXTHOP4 | RtKey::NEXTHOP6) => FieldFormat::Address,
            Self::InName | Self::OutName | Self::Fib(_, FibResult::OIFNAME) => FieldFormat::Name,
            Self::Meta(
                MetaKey::IIFKIND
                | MetaKey::OIFKIND
                | MetaKey::SDIFNAME
                | MetaKey::BRI_IIFNAME
                | MetaKey::BRI_OIFNAME,
            )
            | Self::Ct(CtKey::HELPER, _) => FieldFormat::Name,
            Self::State => FieldFormat::State,
            Self::Protocol | Self::NextHeader => FieldFormat::Protocol,
            Self::Mark
            | Self::CtMark
            | Self::CtStatus
            | Self::Tos
            | Self::TcpFlags
            | Self::Fragment
            | Self::Link(_)
            | Self::Network(_)
            | Self::Transport(_)
            | Self::Payload(_)
            | Self::OptionByte(..)
            | Self::Meta(MetaKey::PROTOCOL | MetaKey::PRIORITY | MetaKey::CGROUP)
            | Self::Ct(CtKey::LABELS, _)
            | Self::Socket(1, _) => FieldFormat::Hex,
            Self::HasOptions | Self::Has(_) | Self::HasSocket | Self::HasSender => {
                FieldFormat::Bool
            }
            _ => FieldFormat::Number,
        }
    }

    /// A value of it, in words.
    pub(super) fn value(self, value: u128, bits: u32) -> String {
        match self.told() {
            FieldFormat::Number => value.to_string(),
            FieldFormat::Hex => format!("{value:#x}"),
            FieldFormat::Bool => match value {
                0 => "no".to_owned(),
                _ => "yes".to_owned(),
            },
            FieldFormat::Address if bits == 32 => Ipv4Addr::from(value as u32).to_string(),
            FieldFormat::Address => Ipv6Addr::from(value).to_string(),
            FieldFormat::Name => name_of(value),
            FieldFormat::State => states(value),
            FieldFormat::Protocol => match protocol_name(value) {
                Some(name) => name.to_owned(),
                None => value.to_string(),
            },
        }
    }
}

/// A protocol's name, of those that are met often.
pub(super) const fn protocol_name(number: u128) -> Option<&'static str> {
    Some(match number {
        1 => "icmp",
        2 => "igmp",
        6 => "tcp",
        17 => "udp",
        33 => "dccp",
        41 => "ipv6",
        47 => "gre",
        50 => "esp",
        51 => "ah",
        58 => "ipv6-icmp",
        132 => "sctp",
        136 => "udplite",
        _ => return None,
    })
}

/// The name of an interface that these sixteen bytes are.
pub(super) fn name_of(value: u128) -> String {
    let bytes = value.to_be_bytes();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(16);
    format!("\"{}\"", String::from_utf8_lossy(&bytes[..end]))
}

/// An interface's name as a value.
pub(super) fn name_value(name: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name[..length]);
    u128::from_be_bytes(bytes)
}

/// The state that a bit is.
fn states(bits: u128) -> String {
    match State::ALL.into_iter().find(|state| state.bit() == bits) {
        Some(state) => state.name().to_owned(),
        None => format!("{bits:#x}"),
    }
}

const fn meta_bits(key: MetaKey) -> u32 {
    match key {
        MetaKey::NFTRACE
        | MetaKey::NFPROTO
        | MetaKey::L4PROTO
        | MetaKey::PKTTYPE
        | MetaKey::SECPATH
        | MetaKey::TIME_DAY
        | MetaKey::BRI_BROUTE => 8,
        MetaKey::PROTOCOL
        | MetaKey::IIFTYPE
        | MetaKey::OIFTYPE
        | MetaKey::BRI_IIFPVID
        | MetaKey::BRI_IIFVPROTO => 16,
        MetaKey::BRI_IIFHWADDR => 48,
        MetaKey::TIME_NS => 64,
        MetaKey::IIFNAME
        | MetaKey::OIFNAME
        | MetaKey::BRI_IIFNAME
        | MetaKey::BRI_OIFNAME
        | MetaKey::IIFKIND
        | MetaKey::OIFKIND
        | MetaKey::SDIFNAME => 128,
        _ => 32,
    }
}

const fn ct_bits(key: CtKey, address: u32) -> u32 {
    match key {
        CtKey::DIRECTION | CtKey::L3PROTOCOL | CtKey::PROTOCOL => 8,
        CtKey::ZONE | CtKey::PROTO_SRC | CtKey::PROTO_DST => 16,
        CtKey::PKTS | CtKey::BYTES | CtKey::AVGPKT => 64,
        CtKey::HELPER | CtKey::LABELS | CtKey::SRC_IP6 | CtKey::DST_IP6 => 128,
        CtKey::SRC | CtKey::DST => address,
        _ => 32,
    }
}

/// As rules in nft's language name it, where they do.
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Source => "source address",
            Self::Destination => "destination address",
            Self::Protocol => "protocol",
            Self::NextHeader => "ip6 nexthdr",
            Self::Tos => "type of service",
            Self::Ttl => "ttl",
            Self::Fragment => "fragment offset and flags",
            Self::Length => "length",
            Self::SourcePort => "source port",
            Self::DestinationPort => "destination port",
            Self::IcmpType => "icmp type",
            Self::IcmpCode => "icmp code",
            Self::TcpFlags => "tcp flags",
            Self::HasOptions => "options or extension headers",
            Self::Has(option) => return write!(f, "{option} present"),
            Self::OptionByte(option, at) => return write!(f, "{option} byte {at}"),
            Self::Link(at) => return write!(f, "byte {at} of the link layer's header"),
            Self::Network(at) => return write!(f, "byte {at} of the network header"),
            Self::Transport(at) => return write!(f, "byte {at} of the transport header"),
            Self::Payload(at) => return write!(f, "byte {at} of the payload"),
            Self::Mark => "mark",
            Self::InName => "iifname",
            Self::OutName => "oifname",
            Self::InIndex => "iif",
            Self::OutIndex => "oif",
            Self::Meta(key) => {
                return write!(f, "meta {}", key.name().unwrap_or("of an unknown key"));
            }
            Self::HasSocket => "a socket for it on this machine",
            Self::Socket(key, _) => {
                let names = ["transparent", "mark", "wildcard", "cgroupv2"];
                let name = names.get(*key as usize).copied().unwrap_or("key");
                return write!(f, "socket {name}");
            }
            Self::HasSender => "a socket that sent it",
            Self::State => "ct state",
            Self::CtDirection => "ct direction",
            Self::CtStatus => "ct status",
            Self::CtMark => "ct mark",
            Self::Ct(key, direction) => {
                let key = key.name().unwrap_or("of an unknown key");
                return match direction {
                    Some(0) => write!(f, "ct original {key}"),
                    Some(_) => write!(f, "ct reply {key}"),
                    None => write!(f, "ct {key}"),
                };
            }
            Self::Tuple(field) => match field {
                TupleField::OriginalSource => "ct original source address",
                TupleField::OriginalDestination => "ct original destination address",
                TupleField::OriginalSourcePort => "ct original source port",
                TupleField::OriginalDestinationPort => "ct original destination port",
                TupleField::ReplySource => "ct reply source address",
                TupleField::ReplyDestination => "ct reply destination address",
                TupleField::ReplySourcePort => "ct reply source port",
                TupleField::ReplyDestinationPort => "ct reply destination port",
            },
            Self::Fib(flags, result) => {
                f.write_str("fib")?;
                for (flag, name) in FibFlags::NAMED {
                    if flags.contains(flag) {
                        write!(f, " {name}")?;
                    }
                }
                return write!(f, " {}", result.name().unwrap_or("result"));
            }
            Self::Route(key) => {
                return write!(f, "rt {}", key.name().unwrap_or("of an unknown key"));
            }
        };
        f.write_str(name)
    }
}

impl fmt::Display for PacketOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match self.of {
            0 => "IPv6 extension header",
            1 => "TCP option",
            2 => "IPv4 option",
            3 => "SCTP chunk",
            _ => "DCCP option",
        };
        write!(f, "{of} {}", self.kind)
    }
}
