//! `linux/netfilter/xt_helper.h`: the match `helper`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_helper.h";

    structs {
        /// Data of the match `helper`, revision 0.
        struct xt_helper_info {
            /// 1 negates.
            field invert: i32,
            /// Name of the conntrack helper of the connection's master, NUL-terminated; empty for any.
            field name: [u8; 30],
            pad __pad: [u8; 2],
        }
    }
}
