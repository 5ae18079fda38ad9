//! `linux/netfilter/xt_devgroup.h`: the match `devgroup`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_devgroup.h";

    constants {
        /// Fields that the match compares and negates.
        "enum xt_devgroup_flags": u32 {
            /// Compare the group of the input interface.
            XT_DEVGROUP_MATCH_SRC = 0x1;
            /// Negate it.
            XT_DEVGROUP_INVERT_SRC = 0x2;
            /// Compare the group of the output interface.
            XT_DEVGROUP_MATCH_DST = 0x4;
            /// Negate it.
            XT_DEVGROUP_INVERT_DST = 0x8;
        }
    }

    structs {
        /// Data of the match `devgroup`, revision 0: an interface matches when `(its group & mask) == group`.
        struct xt_devgroup_info {
            /// `XT_DEVGROUP_*`.
            field flags: u32,
            /// Group of the input interface, host byte order.
            field src_group: u32,
            /// Bits of it to compare, host byte order.
            field src_mask: u32,
            /// Group of the output interface, host byte order.
            field dst_group: u32,
            /// Bits of it to compare, host byte order.
            field dst_mask: u32,
        }
    }
}
