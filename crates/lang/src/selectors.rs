//! Selectors other than packet bytes: name, type and length.
//!
//! Sources: `linux/netfilter/nf_tables.h` for the keys and nft(8) for their names.

use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{
    CtKey, FibFlags, FibResult, MetaKey, RtKey, SocketKey, TunnelKey, XfrmKey,
};
use chainwright::nft::{DataType, Family};

use super::syntax::Expr;
use super::types::{self, CT_EVENT, CT_LABEL, DATE, DAY, HOUR};

/// Description of a selector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    /// Name. The names of `ct`, `rt`, `socket`, `tunnel` and `ipsec` keys omit that prefix.
    pub(super) name: &'static str,
    pub(super) data_type: DataType,
    /// Length of its values in bits; 0 if unknown.
    pub(super) bits: u32,
    /// Byte order in a register.
    pub(super) order: ByteOrder,
}

impl Key {
    /// Creates a key with the byte order of its data type.
    fn new((name, data_type, bits): (&'static str, DataType, u32)) -> Self {
        Self {
            name,
            data_type,
            bits,
            order: types::order(data_type),
        }
    }

    /// Sets network byte order, for integers without a type of their own.
    const fn in_network_order(self) -> Self {
        Self {
            order: ByteOrder::Network,
            ..self
        }
    }
}

/// Describes an expression; `None` for packet bytes and for expressions that nft has no name for.
pub(super) fn of(expr: &Expr) -> Option<Key> {
    match expr {
        Expr::Meta(key) | Expr::Inside(_, key) => meta(*key),
        Expr::Tunnel(key) => tunnel(*key),
        Expr::Ct(key, _, version) => ct(*key, *version),
        Expr::Rt(key) => rt(*key),
        Expr::Socket(key, _) => socket(*key),
        Expr::Fib(flags, result) => fib(*flags, *result),
        Expr::Xfrm { key, .. } => xfrm(*key),
        Expr::QueueNumber => Some(Key::new(("queue", DataType::INTEGER, 16))),
        Expr::Osf { .. } => Some(Key::new(("osf", DataType::STRING, 128))),
        Expr::Numgen { kind, .. } => Some(Key::new((kind.name()?, DataType::INTEGER, 32))),
        Expr::Hash { key, .. } => {
            let name = if key.is_some() { "jhash" } else { "symhash" };
            Some(Key::new((name, DataType::INTEGER, 32)))
        }
        _ => None,
    }
}

/// Describes a `meta` key.
pub(super) fn meta(key: MetaKey) -> Option<Key> {
    let known = Key::new(match key {
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
        _ => return None,
    });
    Some(match key {
        MetaKey::PRANDOM => known.in_network_order(),
        _ => known,
    })
}

/// Describes a `ct` key. `version` determines the type of addresses that do not imply an IP version.
pub(super) fn ct(key: CtKey, version: Option<Family>) -> Option<Key> {
    let known = Key::new(match key {
        CtKey::STATE => ("state", DataType::CT_STATE, 32),
        CtKey::DIRECTION => ("direction", DataType::CT_DIR, 8),
        CtKey::STATUS => ("status", DataType::CT_STATUS, 32),
        CtKey::MARK => ("mark", DataType::MARK, 32),
        CtKey::SECMARK => ("secmark", DataType::INTEGER, 32),
        CtKey::EXPIRATION => ("expiration", DataType::TIME, 32),
        CtKey::HELPER => ("helper", DataType::STRING, 128),
        CtKey::L3PROTOCOL => ("l3proto", DataType::NF_PROTO, 8),
        CtKey::SRC => match version {
            Some(Family::IP) => ("ip saddr", DataType::IPV4_ADDR, 32),
            Some(Family::IP6) => ("ip6 saddr", DataType::IPV6_ADDR, 128),
            _ => ("saddr", DataType::VALUE, 0),
        },
        CtKey::DST => match version {
            Some(Family::IP) => ("ip daddr", DataType::IPV4_ADDR, 32),
            Some(Family::IP6) => ("ip6 daddr", DataType::IPV6_ADDR, 128),
            _ => ("daddr", DataType::VALUE, 0),
        },
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
        _ => return None,
    });
    Some(match key {
        CtKey::ID => known.in_network_order(),
        _ => known,
    })
}

/// Describes an `rt` key.
pub(super) fn rt(key: RtKey) -> Option<Key> {
    Some(Key::new(match key {
        RtKey::CLASSID => ("classid", DataType::REALM, 32),
        RtKey::NEXTHOP4 => ("ip nexthop", DataType::IPV4_ADDR, 32),
        RtKey::NEXTHOP6 => ("ip6 nexthop", DataType::IPV6_ADDR, 128),
        RtKey::TCPMSS => ("mtu", DataType::INTEGER, 16),
        RtKey::XFRM => ("ipsec", DataType::BOOLEAN, 8),
        _ => return None,
    }))
}

/// Describes a `tunnel` key.
pub(super) fn tunnel(key: TunnelKey) -> Option<Key> {
    Some(Key::new(match key {
        TunnelKey::PATH => ("path", DataType::BOOLEAN, 8),
        TunnelKey::ID => ("id", DataType::INTEGER, 32),
        _ => return None,
    }))
}

/// Describes a `socket` key.
pub(super) fn socket(key: SocketKey) -> Option<Key> {
    Some(Key::new(match key {
        SocketKey::TRANSPARENT => ("transparent", DataType::INTEGER, 8),
        SocketKey::MARK => ("mark", DataType::MARK, 32),
        SocketKey::WILDCARD => ("wildcard", DataType::INTEGER, 8),
        SocketKey::CGROUPV2 => ("cgroupv2", DataType::CGROUPSV2, 64),
        _ => return None,
    }))
}

/// Describes a `fib` expression.
pub(super) fn fib(flags: FibFlags, result: FibResult) -> Option<Key> {
    FibFlags::WITH_SYNTAX.contains(flags).then_some(())?;
    let (data_type, bits) = match result {
        FibResult::OIF if flags.contains(FibFlags::PRESENT) => (DataType::BOOLEAN, 32),
        _ if flags.contains(FibFlags::PRESENT) => return None,
        FibResult::OIF => (DataType::IFACE_INDEX, 32),
        FibResult::OIFNAME => (DataType::IFNAME, 128),
        FibResult::ADDRTYPE => (DataType::FIB_ADDRTYPE, 32),
        _ => return None,
    };
    Some(Key::new((result.name()?, data_type, bits)))
}

/// Describes an `ipsec` key.
pub(super) fn xfrm(key: XfrmKey) -> Option<Key> {
    let known = Key::new(match key {
        XfrmKey::DADDR_IP4 => ("ip daddr", DataType::IPV4_ADDR, 32),
        XfrmKey::DADDR_IP6 => ("ip6 daddr", DataType::IPV6_ADDR, 128),
        XfrmKey::SADDR_IP4 => ("ip saddr", DataType::IPV4_ADDR, 32),
        XfrmKey::SADDR_IP6 => ("ip6 saddr", DataType::IPV6_ADDR, 128),
        XfrmKey::REQID => ("reqid", DataType::INTEGER, 32),
        XfrmKey::SPI => ("spi", DataType::INTEGER, 32),
        _ => return None,
    });
    Some(match key {
        XfrmKey::SPI => known.in_network_order(),
        _ => known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel rejects these flags and results; a file may contain them.
    #[test]
    fn unsupported_fib_lookups() {
        let unknown = FibFlags::from_bits_retain(0x40);
        assert!(fib(FibFlags::SADDR | unknown, FibResult::OIF).is_none());
        let present = FibFlags::SADDR | FibFlags::PRESENT;
        assert!(fib(present, FibResult::OIFNAME).is_none());
        // The kernel writes a 32-bit number, and nft compares one.
        assert_eq!(fib(present, FibResult::OIF).map(|key| key.bits), Some(32));
    }
}
