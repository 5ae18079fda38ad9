//! `linux/netfilter/xt_dscp.h`: the matches `dscp` and `tos`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_dscp.h";

    constants {
        /// Position of the code point in the IPv4 TOS octet or the IPv6 traffic class.
        "#define XT_DSCP_*": u8 {
            /// Its bits.
            XT_DSCP_MASK = 0xfc;
            /// Number of bits by which the code point is shifted.
            XT_DSCP_SHIFT = 2;
            /// The highest one, not shifted.
            XT_DSCP_MAX = 0x3f;
        }
    }

    structs {
        /// Data of the match `dscp`, revision 0.
        struct xt_dscp_info {
            /// The code point, 0 to [`XT_DSCP_MAX`], not shifted.
            field dscp: u8,
            /// 1 negates.
            field invert: u8,
        }

        /// Data of the match `tos`, revision 1: it matches when `(octet & tos_mask) == tos_value`.
        struct xt_tos_match_info {
            /// Bits of the octet to compare.
            field tos_mask: u8,
            /// Value to compare with.
            field tos_value: u8,
            /// 1 negates.
            field invert: u8,
        }
    }
}
