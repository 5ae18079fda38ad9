//! `linux/netfilter/xt_length.h`: the match `length`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_length.h";

    structs {
        /// Data of the match `length`, revision 0.
        struct xt_length_info {
            /// Shortest packet, in bytes with its IP header, host byte order.
            field min: u16,
            /// Longest packet, in bytes with its IP header, host byte order.
            field max: u16,
            /// 1 negates.
            field invert: u8,
            pad __pad: [u8; 1],
        }
    }
}
