//! Selectors: fields of a packet, its connection or its metadata.
//!
//! The constants are for concatenations, maps and hashes, and for
//! [`Build::matches`](super::Build::matches); [`Build`](super::Build) has methods for the common
//! fields.

use super::value::ByteOrder;
use crate::nft::expr::{CtDirection, CtKey, FibFlags, FibResult, MetaKey, PayloadBase};

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A field: its source, its length, and the packets that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selector {
    pub(super) name: &'static str,
    pub(super) source: Source,
    /// Length in bytes.
    pub(super) length: u8,
    pub(super) order: ByteOrder,
    pub(super) dependency: Dependency,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Payload(PayloadBase, u32),
    Meta(MetaKey),
    Ct(CtKey, Option<CtDirection>),
    Fib(FibFlags, FibResult),
}

/// The condition under which packets have a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dependency {
    Nothing,
    /// A table that sees IP packets.
    Ip,
    /// A table whose packets belong to connections.
    Tracked,
    /// A table whose packets are routed.
    Routed,
    /// A version of IP, which nft matches explicitly in tables of several versions.
    Network(Version),
    /// A version of IP, which the kernel checks itself.
    Implicit(Version),
    Transport(u8),
    /// Any transport protocol that has ports.
    Ports,
    Icmp(Version, u8),
    Ethernet,
    /// A table that sees both versions.
    Inet,
}

impl Selector {
    const fn payload(
        name: &'static str,
        base: PayloadBase,
        offset: u32,
        length: u8,
        dependency: Dependency,
    ) -> Self {
        Self {
            name,
            source: Source::Payload(base, offset),
            length,
            order: ByteOrder::Network,
            dependency,
        }
    }

    const fn meta(name: &'static str, key: MetaKey, length: u8) -> Self {
        Self {
            name,
            source: Source::Meta(key),
            length,
            order: ByteOrder::Host,
            dependency: Dependency::Nothing,
        }
    }

    const fn ct(name: &'static str, key: CtKey, length: u8) -> Self {
        Self {
            name,
            source: Source::Ct(key, None),
            length,
            order: ByteOrder::Host,
            dependency: Dependency::Tracked,
        }
    }

    const fn ct_address(
        name: &'static str,
        key: CtKey,
        direction: CtDirection,
        version: Version,
    ) -> Self {
        Self {
            name,
            source: Source::Ct(key, Some(direction)),
            length: match version {
                Version::V4 => 4,
                Version::V6 => 16,
            },
            order: ByteOrder::Network,
            dependency: Dependency::Implicit(version),
        }
    }

    const fn ct_port(name: &'static str, key: CtKey, direction: CtDirection) -> Self {
        Self {
            name,
            source: Source::Ct(key, Some(direction)),
            length: 2,
            order: ByteOrder::Network,
            dependency: Dependency::Tracked,
        }
    }

    /// Selects a result of a route lookup for an address: see [`FibFlags`].
    #[must_use]
    pub const fn fib(flags: FibFlags, result: FibResult) -> Self {
        let length = match result {
            _ if flags.contains(FibFlags::PRESENT) => 1,
            FibResult::OIFNAME => 16,
            _ => 4,
        };
        Self {
            name: "fib",
            source: Source::Fib(flags, result),
            length,
            order: ByteOrder::Host,
            dependency: Dependency::Routed,
        }
    }

    /// Selects 1 to 16 bytes of the packet from an offset in bytes, for fields without a constant here
    /// (`@nh,96,32` in nft, in bits). Numbers are big-endian. The rule must match only packets that
    /// have these bytes.
    #[must_use]
    pub const fn raw(base: PayloadBase, offset: u32, length: u8) -> Self {
        Self::payload("raw payload", base, offset, length, Dependency::Nothing)
    }

    /// Returns the name in nft's syntax, as used in errors.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the length in bytes.
    #[must_use]
    pub const fn length(&self) -> u32 {
        self.length as u32
    }

    /// Returns `true` if this field contains the transport protocol.
    pub(super) fn is_protocol(&self) -> bool {
        matches!(
            self.source,
            Source::Meta(MetaKey::L4PROTO) | Source::Payload(PayloadBase::NETWORK, 6 | 9)
        )
    }
}

macro_rules! fields {
    ($($(#[$module_meta:meta])* $module:ident { $($(#[$meta:meta])* $NAME:ident = $field:expr;)* })*) => {$(
        $(#[$module_meta])*
        pub mod $module {
            #[allow(unused_imports, reason = "each module uses its own part")]
            use super::*;
            $(
                $(#[$meta])*
                pub const $NAME: Selector = $field;
            )*
        }
    )*};
}

const NETWORK: PayloadBase = PayloadBase::NETWORK;
const TRANSPORT: PayloadBase = PayloadBase::TRANSPORT;
const LINK: PayloadBase = PayloadBase::LINK;
const V4: Dependency = Dependency::Network(Version::V4);
const V6: Dependency = Dependency::Network(Version::V6);
const TCP: Dependency = Dependency::Transport(super::Protocol::TCP.0);
const UDP: Dependency = Dependency::Transport(super::Protocol::UDP.0);
const SCTP: Dependency = Dependency::Transport(super::Protocol::SCTP.0);
const ICMP: Dependency = Dependency::Icmp(Version::V4, super::Protocol::ICMP.0);
const ICMPV6: Dependency = Dependency::Icmp(Version::V6, super::Protocol::ICMPV6.0);

fields! {
    /// The Ethernet header.
    ether {
        /// Destination, 6 bytes.
        DADDR = Selector::payload("ether daddr", LINK, 0, 6, Dependency::Ethernet);
        /// Source, 6 bytes.
        SADDR = Selector::payload("ether saddr", LINK, 6, 6, Dependency::Ethernet);
        /// The protocol carried by the frame ([`EtherType`](super::super::EtherType)), 2 bytes.
        TYPE = Selector::payload("ether type", LINK, 12, 2, Dependency::Ethernet);
    }
    /// The IPv4 header.
    ip {
        /// Length of the packet, 2 bytes.
        LENGTH = Selector::payload("ip length", NETWORK, 2, 2, V4);
        /// Time to live, 1 byte.
        TTL = Selector::payload("ip ttl", NETWORK, 8, 1, V4);
        /// Protocol of the payload, 1 byte.
        PROTOCOL = Selector::payload("ip protocol", NETWORK, 9, 1, V4);
        /// Source, 4 bytes.
        SADDR = Selector::payload("ip saddr", NETWORK, 12, 4, V4);
        /// Destination, 4 bytes.
        DADDR = Selector::payload("ip daddr", NETWORK, 16, 4, V4);
    }
    /// The IPv6 header.
    ip6 {
        /// Type of the next header, 1 byte.
        NEXTHDR = Selector::payload("ip6 nexthdr", NETWORK, 6, 1, V6);
        /// Remaining hops, 1 byte.
        HOPLIMIT = Selector::payload("ip6 hoplimit", NETWORK, 7, 1, V6);
        /// Source, 16 bytes.
        SADDR = Selector::payload("ip6 saddr", NETWORK, 8, 16, V6);
        /// Destination, 16 bytes.
        DADDR = Selector::payload("ip6 daddr", NETWORK, 24, 16, V6);
    }
    /// The ports at the start of the header of any transport protocol that has ports. The rule or the
    /// key must also match the protocol.
    th {
        /// Source port, 2 bytes.
        SPORT = Selector::payload("th sport", TRANSPORT, 0, 2, Dependency::Ports);
        /// Destination port, 2 bytes.
        DPORT = Selector::payload("th dport", TRANSPORT, 2, 2, Dependency::Ports);
    }
    /// The TCP header.
    tcp {
        /// Source port, 2 bytes.
        SPORT = Selector::payload("tcp sport", TRANSPORT, 0, 2, TCP);
        /// Destination port, 2 bytes.
        DPORT = Selector::payload("tcp dport", TRANSPORT, 2, 2, TCP);
        /// Flags, 1 byte.
        FLAGS = Selector::payload("tcp flags", TRANSPORT, 13, 1, TCP);
    }
    /// The UDP header.
    udp {
        /// Source port, 2 bytes.
        SPORT = Selector::payload("udp sport", TRANSPORT, 0, 2, UDP);
        /// Destination port, 2 bytes.
        DPORT = Selector::payload("udp dport", TRANSPORT, 2, 2, UDP);
        /// Length including this header, 2 bytes.
        LENGTH = Selector::payload("udp length", TRANSPORT, 4, 2, UDP);
    }
    /// The SCTP header.
    sctp {
        /// Source port, 2 bytes.
        SPORT = Selector::payload("sctp sport", TRANSPORT, 0, 2, SCTP);
        /// Destination port, 2 bytes.
        DPORT = Selector::payload("sctp dport", TRANSPORT, 2, 2, SCTP);
    }
    /// The ICMP header.
    icmp {
        /// Type, 1 byte.
        TYPE = Selector::payload("icmp type", TRANSPORT, 0, 1, ICMP);
        /// Code, 1 byte.
        CODE = Selector::payload("icmp code", TRANSPORT, 1, 1, ICMP);
    }
    /// The ICMPv6 header.
    icmpv6 {
        /// Type, 1 byte.
        TYPE = Selector::payload("icmpv6 type", TRANSPORT, 0, 1, ICMPV6);
        /// Code, 1 byte.
        CODE = Selector::payload("icmpv6 code", TRANSPORT, 1, 1, ICMPV6);
    }
    /// Packet metadata.
    meta {
        /// Length of the packet in bytes, u32.
        LENGTH = Selector::meta("meta length", MetaKey::LEN, 4);
        /// The protocol carried by the frame, be16.
        PROTOCOL = Selector { order: ByteOrder::Network, ..Selector::meta("meta protocol", MetaKey::PROTOCOL, 2) };
        /// Priority, u32.
        PRIORITY = Selector::meta("meta priority", MetaKey::PRIORITY, 4);
        /// Mark, u32.
        MARK = Selector::meta("meta mark", MetaKey::MARK, 4);
        /// Index of the incoming interface, u32.
        IIF = Selector::meta("iif", MetaKey::IIF, 4);
        /// Index of the outgoing interface, u32.
        OIF = Selector::meta("oif", MetaKey::OIF, 4);
        /// Name of the incoming interface, 16 bytes.
        IIFNAME = Selector { order: ByteOrder::Network, ..Selector::meta("iifname", MetaKey::IIFNAME, 16) };
        /// Name of the outgoing interface, 16 bytes.
        OIFNAME = Selector { order: ByteOrder::Network, ..Selector::meta("oifname", MetaKey::OIFNAME, 16) };
        /// User of the socket, u32.
        SKUID = Selector::meta("meta skuid", MetaKey::SKUID, 4);
        /// Group of the socket, u32.
        SKGID = Selector::meta("meta skgid", MetaKey::SKGID, 4);
        /// Version of IP ([`Family`](crate::nft::Family)), 1 byte; in a table of the family inet.
        NFPROTO = Selector { dependency: Dependency::Inet, ..Selector::meta("meta nfproto", MetaKey::NFPROTO, 1) };
        /// Protocol above IP, 1 byte.
        L4PROTO = Selector { dependency: Dependency::Ip, ..Selector::meta("meta l4proto", MetaKey::L4PROTO, 1) };
        /// Link-layer packet type, 1 byte.
        PKTTYPE = Selector::meta("meta pkttype", MetaKey::PKTTYPE, 1);
        /// Number of the processor, u32.
        CPU = Selector::meta("meta cpu", MetaKey::CPU, 4);
        /// Group of the incoming interface, u32.
        IIFGROUP = Selector::meta("meta iifgroup", MetaKey::IIFGROUP, 4);
        /// Group of the outgoing interface, u32.
        OIFGROUP = Selector::meta("meta oifgroup", MetaKey::OIFGROUP, 4);
        /// Control group of the socket (version 1), u32.
        CGROUP = Selector::meta("meta cgroup", MetaKey::CGROUP, 4);
    }
    /// State of the packet's connection (conntrack).
    ct {
        /// State as a bit, u32.
        STATE = Selector::ct("ct state", CtKey::STATE, 4);
        /// Direction of the packet, 1 byte.
        DIRECTION = Selector::ct("ct direction", CtKey::DIRECTION, 1);
        /// Status bits, u32.
        STATUS = Selector::ct("ct status", CtKey::STATUS, 4);
        /// Mark, u32.
        MARK = Selector::ct("ct mark", CtKey::MARK, 4);
        /// Milliseconds until the entry expires, u32.
        EXPIRATION = Selector::ct("ct expiration", CtKey::EXPIRATION, 4);
        /// Version of IP, 1 byte.
        L3PROTO = Selector::ct("ct l3proto", CtKey::L3PROTOCOL, 1);
        /// Protocol above IP, 1 byte.
        PROTOCOL = Selector::ct("ct protocol", CtKey::PROTOCOL, 1);
        /// Bytes so far in both directions, u64.
        BYTES = Selector::ct("ct bytes", CtKey::BYTES, 8);
        /// Packets so far in both directions, u64.
        PACKETS = Selector::ct("ct packets", CtKey::PKTS, 8);
        /// Zone, u16 in host byte order: a set of ports cannot hold it.
        ZONE = Selector::ct("ct zone", CtKey::ZONE, 2);
        /// Address of the initiator, IPv4.
        ORIGINAL_IP_SADDR = Selector::ct_address("ct original ip saddr", CtKey::SRC_IP, CtDirection::ORIGINAL, Version::V4);
        /// Original destination address, IPv4.
        ORIGINAL_IP_DADDR = Selector::ct_address("ct original ip daddr", CtKey::DST_IP, CtDirection::ORIGINAL, Version::V4);
        /// Source address of replies, IPv4.
        REPLY_IP_SADDR = Selector::ct_address("ct reply ip saddr", CtKey::SRC_IP, CtDirection::REPLY, Version::V4);
        /// Destination address of replies, IPv4.
        REPLY_IP_DADDR = Selector::ct_address("ct reply ip daddr", CtKey::DST_IP, CtDirection::REPLY, Version::V4);
        /// Address of the initiator, IPv6.
        ORIGINAL_IP6_SADDR = Selector::ct_address("ct original ip6 saddr", CtKey::SRC_IP6, CtDirection::ORIGINAL, Version::V6);
        /// Original destination address, IPv6.
        ORIGINAL_IP6_DADDR = Selector::ct_address("ct original ip6 daddr", CtKey::DST_IP6, CtDirection::ORIGINAL, Version::V6);
        /// Source address of replies, IPv6.
        REPLY_IP6_SADDR = Selector::ct_address("ct reply ip6 saddr", CtKey::SRC_IP6, CtDirection::REPLY, Version::V6);
        /// Destination address of replies, IPv6.
        REPLY_IP6_DADDR = Selector::ct_address("ct reply ip6 daddr", CtKey::DST_IP6, CtDirection::REPLY, Version::V6);
        /// Source port of the initiator, be16.
        ORIGINAL_PROTO_SRC = Selector::ct_port("ct original proto-src", CtKey::PROTO_SRC, CtDirection::ORIGINAL);
        /// Original destination port, be16.
        ORIGINAL_PROTO_DST = Selector::ct_port("ct original proto-dst", CtKey::PROTO_DST, CtDirection::ORIGINAL);
        /// Source port of replies, be16.
        REPLY_PROTO_SRC = Selector::ct_port("ct reply proto-src", CtKey::PROTO_SRC, CtDirection::REPLY);
        /// Destination port of replies, be16.
        REPLY_PROTO_DST = Selector::ct_port("ct reply proto-dst", CtKey::PROTO_DST, CtDirection::REPLY);
    }
}

/// The hardware type of the incoming interface (`meta iiftype`).
pub(super) const IIFTYPE: Selector = Selector::meta("meta iiftype", MetaKey::IIFTYPE, 2);

/// The `IIFTYPE` of interfaces whose packets have an Ethernet header.
pub(super) const ARPHRD_ETHER: u16 = libc::ARPHRD_ETHER;
