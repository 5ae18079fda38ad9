//! What else than bytes of the packet can be asked: how it is called, what it is, and how long.
//!
//! Sources: `linux/netfilter/nf_tables.h` for the keys and nft(8) for their names.

use crate::nft::DataType;
use crate::nft::expr::{CtKey, FibFlags, FibResult, MetaKey, RtKey, SocketKey, XfrmKey};

use super::types::{CT_EVENT, CT_LABEL, DATE, DAY, HOUR, info};

/// Of the packet's own data.
pub(super) fn meta(key: MetaKey) -> (&'static str, DataType, u32) {
    match key {
        MetaKey::LEN => ("meta length", DataType::INTEGER, 32),
        MetaKey::PROTOCOL => ("meta protocol", DataType::ETHER_TYPE, 16),
        MetaKey::PRIORITY => ("meta priority", DataType::CLASSID, 32),
        MetaKey::MARK => ("meta mark", DataType::MARK, 32),
        MetaKey::IIF => ("iif", DataType::IFACE_INDEX, 32),
        MetaKey::OIF => ("oif", DataType::IFACE_INDEX, 32),
        MetaKey::IIFNAME => ("iifname", DataType::IFNAME, 128),
        MetaKey::OIFNAME => ("oifname", DataType::IFNAME, 128),
        MetaKey::IIFTYPE => ("meta iiftype", DataType::IFACE_TYPE, 16),
        MetaKey::OIFTYPE => ("meta oiftype", DataType::IFACE_TYPE, 16),
        MetaKey::SKUID => ("meta skuid", DataType::UID, 32),
        MetaKey::SKGID => ("meta skgid", DataType::GID, 32),
        MetaKey::NFTRACE => ("meta nftrace", DataType::INTEGER, 8),
        MetaKey::RTCLASSID => ("meta rtclassid", DataType::REALM, 32),
        MetaKey::SECMARK => ("meta secmark", DataType::INTEGER, 32),
        MetaKey::NFPROTO => ("meta nfproto", DataType::NF_PROTO, 8),
        MetaKey::L4PROTO => ("meta l4proto", DataType::INET_PROTO, 8),
        MetaKey::BRI_IIFNAME => ("meta ibrname", DataType::IFNAME, 128),
        MetaKey::BRI_OIFNAME => ("meta obrname", DataType::IFNAME, 128),
        MetaKey::PKTTYPE => ("meta pkttype", DataType::PKT_TYPE, 8),
        MetaKey::CPU => ("meta cpu", DataType::INTEGER, 32),
        MetaKey::IIFGROUP => ("iifgroup", DataType::DEVGROUP, 32),
        MetaKey::OIFGROUP => ("oifgroup", DataType::DEVGROUP, 32),
        MetaKey::CGROUP => ("meta cgroup", DataType::INTEGER, 32),
        MetaKey::PRANDOM => ("meta random", DataType::INTEGER, 32),
        MetaKey::SECPATH => ("meta ipsec", DataType::BOOLEAN, 8),
        MetaKey::IIFKIND => ("meta iifkind", DataType::IFNAME, 128),
        MetaKey::OIFKIND => ("meta oifkind", DataType::IFNAME, 128),
        MetaKey::BRI_IIFPVID => ("meta ibrpvid", DataType::INTEGER, 16),
        MetaKey::BRI_IIFVPROTO => ("meta ibrvproto", DataType::ETHER_TYPE, 16),
        MetaKey::TIME_NS => ("meta time", DATE, 64),
        MetaKey::TIME_DAY => ("meta day", DAY, 8),
        MetaKey::TIME_HOUR => ("meta hour", HOUR, 32),
        MetaKey::SDIF => ("meta sdif", DataType::IFACE_INDEX, 32),
        MetaKey::SDIFNAME => ("meta sdifname", DataType::IFNAME, 128),
        MetaKey::BRI_BROUTE => ("meta broute", DataType::INTEGER, 8),
        MetaKey::BRI_IIFHWADDR => ("meta ibrhwaddr", DataType::ETHER_ADDR, 48),
        _ => ("", DataType::VALUE, 0),
    }
}

/// Whether the numbers of a key that are no type's own are in network byte order.
pub(super) const fn is_big_endian(key: MetaKey) -> bool {
    matches!(key, MetaKey::PRANDOM)
}

/// The same of a connection's.
pub(super) const fn is_big_endian_ct(key: CtKey) -> bool {
    matches!(key, CtKey::ID)
}

/// Of the packet's connection.
pub(super) fn ct(key: CtKey) -> (&'static str, DataType, u32) {
    match key {
        CtKey::STATE => ("state", DataType::CT_STATE, 32),
        CtKey::DIRECTION => ("direction", DataType::CT_DIR, 8),
        CtKey::STATUS => ("status", DataType::CT_STATUS, 32),
        CtKey::MARK => ("mark", DataType::MARK, 32),
        CtKey::SECMARK => ("secmark", DataType::INTEGER, 32),
        CtKey::EXPIRATION => ("expiration", DataType::TIME, 32),
        CtKey::HELPER => ("helper", DataType::STRING, 128),
        CtKey::L3PROTOCOL => ("l3proto", DataType::NF_PROTO, 8),
        CtKey::SRC => ("saddr", DataType::VALUE, 0),
        CtKey::DST => ("daddr", DataType::VALUE, 0),
        CtKey::PROTOCOL => ("protocol", DataType::INET_PROTO, 8),
        CtKey::PROTO_SRC => ("proto-src", DataType::INET_SERVICE, 16),
        CtKey::PROTO_DST => ("proto-dst", DataType::INET_SERVICE, 16),
        CtKey::LABELS => ("label", CT_LABEL, 128),
        CtKey::PKTS => ("packets", DataType::INTEGER, 64),
        CtKey::BYTES => ("bytes", DataType::INTEGER, 64),
        CtKey::AVGPKT => ("avgpkt", DataType::INTEGER, 64),
        CtKey::ZONE => ("zone", DataType::INTEGER, 16),
        CtKey::EVENTMASK => ("event", CT_EVENT, 32),
        CtKey::SRC_IP => ("ip saddr", DataType::IPV4_ADDR, 32),
        CtKey::DST_IP => ("ip daddr", DataType::IPV4_ADDR, 32),
        CtKey::SRC_IP6 => ("ip6 saddr", DataType::IPV6_ADDR, 128),
        CtKey::DST_IP6 => ("ip6 daddr", DataType::IPV6_ADDR, 128),
        CtKey::ID => ("id", DataType::INTEGER, 32),
        _ => ("", DataType::VALUE, 0),
    }
}

/// The length of a connection's key, which of addresses without a version their type says.
pub(super) fn ct_bits(key: CtKey, data_type: DataType) -> u32 {
    match ct(key).2 {
        0 => info(data_type).map_or(0, |info| info.bits),
        bits => bits,
    }
}

/// Of the packet's route.
pub(super) fn rt(key: RtKey) -> (&'static str, DataType, u32) {
    match key {
        RtKey::CLASSID => ("classid", DataType::REALM, 32),
        RtKey::NEXTHOP4 => ("ip nexthop", DataType::IPV4_ADDR, 32),
        RtKey::NEXTHOP6 => ("ip6 nexthop", DataType::IPV6_ADDR, 128),
        RtKey::TCPMSS => ("mtu", DataType::INTEGER, 16),
        RtKey::XFRM => ("ipsec", DataType::BOOLEAN, 8),
        _ => ("", DataType::VALUE, 0),
    }
}

/// Of the socket that a packet belongs to.
pub(super) fn socket(key: SocketKey) -> (&'static str, DataType, u32) {
    match key {
        SocketKey::TRANSPARENT => ("transparent", DataType::INTEGER, 8),
        SocketKey::MARK => ("mark", DataType::MARK, 32),
        SocketKey::WILDCARD => ("wildcard", DataType::INTEGER, 8),
        SocketKey::CGROUPV2 => ("cgroupv2", DataType::CGROUPSV2, 64),
        _ => ("", DataType::VALUE, 0),
    }
}

/// What is asked for a route with.
pub(super) const FIB_FLAGS: [(FibFlags, &str); 5] = [
    (FibFlags::SADDR, "saddr"),
    (FibFlags::DADDR, "daddr"),
    (FibFlags::MARK, "mark"),
    (FibFlags::IIF, "iif"),
    (FibFlags::OIF, "oif"),
];

/// Of what a route would be.
pub(super) fn fib(flags: FibFlags, result: FibResult) -> (DataType, u32) {
    match result {
        FibResult::OIF if flags.contains(FibFlags::PRESENT) => (DataType::BOOLEAN, 8),
        FibResult::OIF => (DataType::IFACE_INDEX, 32),
        FibResult::OIFNAME => (DataType::IFNAME, 128),
        FibResult::ADDRTYPE => (DataType::FIB_ADDRTYPE, 32),
        _ => (DataType::VALUE, 0),
    }
}

/// Of a state of IPsec.
pub(super) fn xfrm(key: XfrmKey) -> (&'static str, DataType, u32) {
    match key {
        XfrmKey::DADDR_IP4 => ("ip daddr", DataType::IPV4_ADDR, 32),
        XfrmKey::DADDR_IP6 => ("ip6 daddr", DataType::IPV6_ADDR, 128),
        XfrmKey::SADDR_IP4 => ("ip saddr", DataType::IPV4_ADDR, 32),
        XfrmKey::SADDR_IP6 => ("ip6 saddr", DataType::IPV6_ADDR, 128),
        XfrmKey::REQID => ("reqid", DataType::INTEGER, 32),
        XfrmKey::SPI => ("spi", DataType::INTEGER, 32),
        _ => ("", DataType::VALUE, 0),
    }
}
