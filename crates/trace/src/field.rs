//! Fields that rules can read, and the format of their values.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::packet::State;
use chainwright::nft::expr::{CtKey, FibFlags, FibResult, MetaKey, RtKey};
use chainwright::xt::Family;

/// Data of a packet, its connection, its socket or its route that rules can read.
///
/// Values are numbers. Packet data are in network byte order; kernel metadata are plain numbers. An interface name is
/// 16 bytes, with the first byte in the highest bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// Source address: 32 or 128 bits.
    Source,
    /// Destination address.
    Destination,
    /// Transport protocol, after all extension headers.
    Protocol,
    /// Next header field of the IPv6 header.
    NextHeader,
    /// Type of service or traffic class.
    Tos,
    /// TTL or hop limit.
    Ttl,
    /// Fragment flags and offset as in an IPv4 header; for IPv6, the offset is in the same 13 bits.
    Fragment,
    /// Packet length from the network header on, in bytes: 32 bits.
    Length,
    /// Source port.
    SourcePort,
    /// Destination port.
    DestinationPort,
    /// ICMP or ICMPv6 type.
    IcmpType,
    /// ICMP or ICMPv6 code.
    IcmpCode,
    /// TCP flags: 8 bits.
    TcpFlags,
    /// Whether the packet has IPv4 options or IPv6 extension headers: 1 bit.
    HasOptions,
    /// Whether the packet has this option, extension header or chunk: 1 bit.
    Has(PacketOption),
    /// Byte of such an option or header, by offset.
    OptionByte(PacketOption, u16),
    /// Byte from the start of the link layer header.
    Link(u16),
    /// Byte from the start of the network header, if no other field covers it.
    Network(u16),
    /// Byte from the start of the transport header, if no other field covers it.
    Transport(u16),
    /// Byte after the transport header.
    Payload(u16),
    /// Packet mark.
    Mark,
    /// Name of the input interface; 0 if there is none.
    InName,
    /// Name of the output interface; 0 if there is none, or before routing.
    OutName,
    /// Index of the input interface.
    InIndex,
    /// Index of the output interface.
    OutIndex,
    /// Other `meta` key of nf_tables.
    Meta(MetaKey),
    /// Whether a local socket exists for the packet: 1 bit.
    HasSocket,
    /// Key of that socket, as in nf_tables' `socket` expression, and the level of a control group.
    Socket(u32, u32),
    /// Whether a local socket sent the packet: 1 bit. Its user and group are under [`Field::Meta`].
    HasSender,
    /// Connection state bit (`NF_CT_STATE_*`): 32 bits.
    State,
    /// Direction in the connection: 0 original, 1 reply; 8 bits.
    CtDirection,
    /// Connection status (`IPS_*`).
    CtStatus,
    /// Connection mark.
    CtMark,
    /// Other `ct` key of nf_tables, with a direction if the key has one.
    Ct(CtKey, Option<u8>),
    /// Address or port of the connection.
    Tuple(TupleField),
    /// Result of a `fib` lookup for one of the addresses.
    Fib(FibFlags, FibResult),
    /// Key of the route (`rt`).
    Route(RtKey),
}

/// Option, extension header or chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketOption {
    /// Kind (`NFT_EXTHDR_OP_*`): 0 IPv6, 1 TCP, 2 IPv4, 3 SCTP, 4 DCCP.
    pub of: u8,
    /// Type number.
    pub kind: u8,
}

/// Address or port of a connection, in either direction.
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

/// Format of a field's values.
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
    /// Returns the length of its values in bits.
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

    fn value_format(self) -> FieldFormat {
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

    /// Formats a value of the field.
    pub(super) fn value(self, value: u128, bits: u32) -> String {
        match self.value_format() {
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

/// Returns the name of a common protocol.
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

/// Formats an interface name from its 16 bytes.
pub(super) fn name_of(value: u128) -> String {
    let bytes = value.to_be_bytes();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(16);
    format!("\"{}\"", String::from_utf8_lossy(&bytes[..end]))
}

/// Converts an interface name to a value.
pub(super) fn name_value(name: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name[..length]);
    u128::from_be_bytes(bytes)
}

/// Formats a connection state bit.
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

/// Prints the name from nft's language, if there is one.
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
