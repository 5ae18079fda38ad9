//! `linux/netfilter/xt_CHECKSUM.h`: the target `CHECKSUM`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_CHECKSUM.h";

    constants {
        /// Operation of the target.
        "#define XT_CHECKSUM_OP_FILL": u8 {
            /// Computes a checksum that was left to the network card.
            XT_CHECKSUM_OP_FILL = 0x01;
        }
    }

    structs {
        /// Data of the target `CHECKSUM`, revision 0.
        struct xt_CHECKSUM_info {
            /// Must be [`XT_CHECKSUM_OP_FILL`].
            field operation: u8,
        }
    }
}
