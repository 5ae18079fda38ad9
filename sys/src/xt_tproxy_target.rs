//! `linux/netfilter/xt_TPROXY.h`: the target `TPROXY`.

use crate::abi::abi;
use crate::netfilter::nf_inet_addr;

abi! {
    header "linux/netfilter/xt_TPROXY.h";

    structs {
        /// Data of the target `TPROXY`, revision 0: IPv4. The packet's mark becomes `(old & !mark_mask) ^ mark_value`.
        struct xt_tproxy_target_info {
            /// Bits of the mark to clear, host byte order.
            field mark_mask: u32,
            /// Bits of the mark to flip after clearing, host byte order.
            field mark_value: u32,
            /// Address of the local socket, network byte order; zero for that of the incoming interface.
            field laddr: [u8; 4],
            /// Port of the local socket, big-endian; zero for the packet's destination port.
            field lport: [u8; 2],
            pad __pad: [u8; 2],
        }

        /// Data of the target `TPROXY`, revision 1: IPv4 and IPv6. The packet's mark becomes `(old & !mark_mask) ^ mark_value`.
        struct xt_tproxy_target_info_v1 {
            /// Bits of the mark to clear, host byte order.
            field mark_mask: u32,
            /// Bits of the mark to flip after clearing, host byte order.
            field mark_value: u32,
            /// Address of the local socket, network byte order; zero for that of the incoming interface.
            field laddr: nf_inet_addr,
            /// Port of the local socket, big-endian; zero for the packet's destination port.
            field lport: [u8; 2],
            pad __pad: [u8; 2],
        }
    }
}
