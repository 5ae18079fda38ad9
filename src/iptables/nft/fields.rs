//! Packet fields that iptables compares only by extensions, and `nft` by its own expressions:
//!
//! | text | expressions |
//! |---|---|
//! | `-m ttl --ttl-eq 5`, `-m hl --hl-lt 9` | `payload` 1 byte of the network header, `cmp` |
//! | `-m icmp --icmp-type 8` | `payload` 1 byte at 0 of the transport header, `cmp` |
//! | `-m icmp --icmp-type 3/1` | `payload` 2 bytes at 0, `cmp` |
//! | `-m pkttype --pkt-type broadcast` | `meta pkttype`, `cmp` |
//!
//! iptables 1.8.8 and newer read them, too. `iif` differs from `-i`: when a device is recreated
//! under its name, `iif` no longer matches it and `-i` does.

use crate::nft::expr::CmpOp;
use crate::xt::matches::hl::Hl as HlMatch;
use crate::xt::matches::icmp::Icmp;
use crate::xt::matches::icmp6::Icmp6;
use crate::xt::matches::pkttype::{PacketType, Pkttype};
use crate::xt::matches::ttl::{Hops, Ttl as TtlMatch};
use crate::xt::{Family, Match};

/// Returns the equivalent comparison of hops, if any.
pub(super) fn hops(family: Family, op: CmpOp, value: &[u8]) -> Option<Match> {
    let &[hops] = value else { return None };
    let hops = match op {
        CmpOp::EQ => Hops::Equal(hops),
        CmpOp::NEQ => Hops::NotEqual(hops),
        CmpOp::LT => Hops::Less(hops),
        CmpOp::LTE => Hops::Less(hops.checked_add(1)?),
        CmpOp::GT => Hops::Greater(hops),
        CmpOp::GTE => Hops::Greater(hops.checked_sub(1)?),
        _ => return None,
    };
    Some(match family {
        Family::Ipv4 => Match::Ttl(TtlMatch(hops)),
        Family::Ipv6 => Match::Hl(HlMatch(hops)),
    })
}

/// Returns the comparison of an ICMP message's type, or type and code, with these bytes.
pub(super) fn icmp(family: Family, value: &[u8], invert: bool) -> Option<Match> {
    let (kind, code) = match *value {
        [kind] => (kind, None),
        [kind, code] => (kind, Some(code.into())),
        _ => return None,
    };
    if kind == u8::MAX {
        return None; // means every type
    }
    Some(match family {
        Family::Ipv4 => Match::Icmp(Icmp {
            kind: Some(kind),
            code,
            invert,
        }),
        Family::Ipv6 => Match::Icmp6(Icmp6 { kind, code, invert }),
    })
}

/// Returns the comparison of the packet type.
pub(super) fn packet_type(value: &[u8], invert: bool) -> Option<Match> {
    let kind = match value {
        [0] => PacketType::Host,
        [1] => PacketType::Broadcast,
        [2] => PacketType::Multicast,
        [3] => PacketType::OtherHost,
        _ => return None,
    };
    Some(Match::Pkttype(Pkttype { kind, invert }))
}
