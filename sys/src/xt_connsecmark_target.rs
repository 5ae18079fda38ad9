//! `linux/netfilter/xt_CONNSECMARK.h`: the target `CONNSECMARK`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_CONNSECMARK.h";

    constants {
        /// Direction of the copy of the security mark.
        "enum CONNSECMARK_*": u8 {
            /// From the packet to its connection.
            CONNSECMARK_SAVE = 1;
            /// From the connection to the packet.
            CONNSECMARK_RESTORE = 2;
        }
    }

    structs {
        /// Data of the target `CONNSECMARK`, revision 0.
        struct xt_connsecmark_target_info {
            /// One of `CONNSECMARK_*`.
            field mode: u8,
        }
    }
}
