//! `linux/netfilter/xt_conntrack.h`: the match `conntrack`.

use crate::abi::abi;
use crate::netfilter::nf_inet_addr;

abi! {
    header "linux/netfilter/xt_conntrack.h";

    constants {
        /// Bits of the state that the match compares; the others are `1 << (ctinfo % IP_CT_IS_REPLY + 1)`.
        "#define XT_CONNTRACK_STATE_*": u16 {
            /// The packet belongs to no connection.
            XT_CONNTRACK_STATE_INVALID = 1 << 0;
            /// The source is translated.
            XT_CONNTRACK_STATE_SNAT = 1 << 6;
            /// The destination is translated.
            XT_CONNTRACK_STATE_DNAT = 1 << 7;
            /// The packet is not tracked.
            XT_CONNTRACK_STATE_UNTRACKED = 1 << 8;
        }

        /// Fields that the match compares or negates (`match_flags`, `invert_flags`).
        "enum XT_CONNTRACK_*": u16 {
            /// The state.
            XT_CONNTRACK_STATE = 1 << 0;
            /// The layer 4 protocol.
            XT_CONNTRACK_PROTO = 1 << 1;
            /// The original source address.
            XT_CONNTRACK_ORIGSRC = 1 << 2;
            /// The original destination address.
            XT_CONNTRACK_ORIGDST = 1 << 3;
            /// The source address of replies.
            XT_CONNTRACK_REPLSRC = 1 << 4;
            /// The destination address of replies.
            XT_CONNTRACK_REPLDST = 1 << 5;
            /// The status.
            XT_CONNTRACK_STATUS = 1 << 6;
            /// The time until it expires.
            XT_CONNTRACK_EXPIRES = 1 << 7;
            /// The original source port.
            XT_CONNTRACK_ORIGSRC_PORT = 1 << 8;
            /// The original destination port.
            XT_CONNTRACK_ORIGDST_PORT = 1 << 9;
            /// The source port of replies.
            XT_CONNTRACK_REPLSRC_PORT = 1 << 10;
            /// The destination port of replies.
            XT_CONNTRACK_REPLDST_PORT = 1 << 11;
            /// The direction.
            XT_CONNTRACK_DIRECTION = 1 << 12;
            /// Set by the alias `state`, for listing.
            XT_CONNTRACK_STATE_ALIAS = 1 << 13;
        }
    }

    structs {
        /// Data of the match `conntrack`. Revision 1.
        struct xt_conntrack_mtinfo1 {
            /// The original source address.
            field origsrc_addr: nf_inet_addr,
            /// Mask of the original source address.
            field origsrc_mask: nf_inet_addr,
            /// The original destination address.
            field origdst_addr: nf_inet_addr,
            /// Mask of the original destination address.
            field origdst_mask: nf_inet_addr,
            /// The source of replies address.
            field replsrc_addr: nf_inet_addr,
            /// Mask of the source of replies address.
            field replsrc_mask: nf_inet_addr,
            /// The destination of replies address.
            field repldst_addr: nf_inet_addr,
            /// Mask of the destination of replies address.
            field repldst_mask: nf_inet_addr,
            /// Shortest time until the connection expires, in seconds.
            field expires_min: u32,
            /// Longest time until the connection expires, in seconds.
            field expires_max: u32,
            /// Layer 4 protocol number, host byte order.
            field l4proto: u16,
            /// Port of the original source, big-endian.
            field origsrc_port: [u8; 2],
            /// Port of the original destination, big-endian.
            field origdst_port: [u8; 2],
            /// Port of the source of replies, big-endian.
            field replsrc_port: [u8; 2],
            /// Port of the destination of replies, big-endian.
            field repldst_port: [u8; 2],
            /// `XT_CONNTRACK_*`: fields to compare.
            field match_flags: u16,
            /// `XT_CONNTRACK_*`: fields to negate.
            field invert_flags: u16,
            /// `XT_CONNTRACK_STATE_*` and the state bits, any of which matches.
            field state_mask: u8,
            /// `IPS_*`, any of which matches.
            field status_mask: u8,
        }

        /// Data of the match `conntrack`. Revision 2: wider state and status.
        struct xt_conntrack_mtinfo2 {
            /// The original source address.
            field origsrc_addr: nf_inet_addr,
            /// Mask of the original source address.
            field origsrc_mask: nf_inet_addr,
            /// The original destination address.
            field origdst_addr: nf_inet_addr,
            /// Mask of the original destination address.
            field origdst_mask: nf_inet_addr,
            /// The source of replies address.
            field replsrc_addr: nf_inet_addr,
            /// Mask of the source of replies address.
            field replsrc_mask: nf_inet_addr,
            /// The destination of replies address.
            field repldst_addr: nf_inet_addr,
            /// Mask of the destination of replies address.
            field repldst_mask: nf_inet_addr,
            /// Shortest time until the connection expires, in seconds.
            field expires_min: u32,
            /// Longest time until the connection expires, in seconds.
            field expires_max: u32,
            /// Layer 4 protocol number, host byte order.
            field l4proto: u16,
            /// Port of the original source, big-endian.
            field origsrc_port: [u8; 2],
            /// Port of the original destination, big-endian.
            field origdst_port: [u8; 2],
            /// Port of the source of replies, big-endian.
            field replsrc_port: [u8; 2],
            /// Port of the destination of replies, big-endian.
            field repldst_port: [u8; 2],
            /// `XT_CONNTRACK_*`: fields to compare.
            field match_flags: u16,
            /// `XT_CONNTRACK_*`: fields to negate.
            field invert_flags: u16,
            /// `XT_CONNTRACK_STATE_*` and the state bits, any of which matches.
            field state_mask: u16,
            /// `IPS_*`, any of which matches.
            field status_mask: u16,
            pad __pad: [u8; 2],
        }

        /// Data of the match `conntrack`. Revision 3: ranges of ports.
        struct xt_conntrack_mtinfo3 {
            /// The original source address.
            field origsrc_addr: nf_inet_addr,
            /// Mask of the original source address.
            field origsrc_mask: nf_inet_addr,
            /// The original destination address.
            field origdst_addr: nf_inet_addr,
            /// Mask of the original destination address.
            field origdst_mask: nf_inet_addr,
            /// The source of replies address.
            field replsrc_addr: nf_inet_addr,
            /// Mask of the source of replies address.
            field replsrc_mask: nf_inet_addr,
            /// The destination of replies address.
            field repldst_addr: nf_inet_addr,
            /// Mask of the destination of replies address.
            field repldst_mask: nf_inet_addr,
            /// Shortest time until the connection expires, in seconds.
            field expires_min: u32,
            /// Longest time until the connection expires, in seconds.
            field expires_max: u32,
            /// Layer 4 protocol number, host byte order.
            field l4proto: u16,
            /// Lowest port of the original source, host byte order.
            field origsrc_port: u16,
            /// Lowest port of the original destination, host byte order.
            field origdst_port: u16,
            /// Lowest port of the source of replies, host byte order.
            field replsrc_port: u16,
            /// Lowest port of the destination of replies, host byte order.
            field repldst_port: u16,
            /// `XT_CONNTRACK_*`: fields to compare.
            field match_flags: u16,
            /// `XT_CONNTRACK_*`: fields to negate.
            field invert_flags: u16,
            /// `XT_CONNTRACK_STATE_*` and the state bits, any of which matches.
            field state_mask: u16,
            /// `IPS_*`, any of which matches.
            field status_mask: u16,
            /// Highest port of the original source, host byte order.
            field origsrc_port_high: u16,
            /// Highest port of the original destination, host byte order.
            field origdst_port_high: u16,
            /// Highest port of the source of replies, host byte order.
            field replsrc_port_high: u16,
            /// Highest port of the destination of replies, host byte order.
            field repldst_port_high: u16,
            pad __pad: [u8; 2],
        }
    }
}
