//! `linux/netfilter/xt_realm.h`: the match `realm`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_realm.h";

    structs {
        /// Data of the match `realm`, revision 0: it matches when `(realm & mask) == id`.
        struct xt_realm_info {
            /// Realm of the route, host byte order.
            field id: u32,
            /// Bits to compare, host byte order.
            field mask: u32,
            /// 1 negates.
            field invert: u8,
            pad __pad: [u8; 3],
        }
    }
}
