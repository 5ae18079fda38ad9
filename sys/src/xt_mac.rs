//! `linux/netfilter/xt_mac.h`: the match `mac`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_mac.h";

    structs {
        /// Data of the match `mac`, revision 0.
        struct xt_mac_info {
            /// Source Ethernet address.
            field srcaddr: [u8; 6],
            pad __pad: [u8; 2],
            /// 1 negates, host byte order.
            field invert: i32,
        }
    }
}
