//! `linux/netfilter/xt_pkttype.h`: the match `pkttype`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_pkttype.h";

    structs {
        /// Data of the match `pkttype`, revision 0.
        struct xt_pkttype_info {
            /// Type of the packet, host byte order: `PACKET_*` of `linux/if_packet.h` (0 for this host, 1 broadcast, 2 multicast).
            field pkttype: i32,
            /// 1 negates, host byte order.
            field invert: i32,
        }
    }
}
