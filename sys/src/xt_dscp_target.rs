//! `linux/netfilter/xt_DSCP.h`: the targets `DSCP` and `TOS`. The constants of the field are in
//! [`xt_dscp`](crate::xt_dscp).

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_DSCP.h";

    structs {
        /// Data of the target `DSCP`, revision 0.
        struct xt_DSCP_info {
            /// The new code point, 0 to [`XT_DSCP_MAX`](crate::xt_dscp::XT_DSCP_MAX), not shifted.
            field dscp: u8,
        }

        /// Data of the target `TOS`, revision 1: the octet becomes `(old & !tos_mask) ^ tos_value`.
        struct xt_tos_target_info {
            /// Bits to flip after clearing.
            field tos_value: u8,
            /// Bits to clear.
            field tos_mask: u8,
        }
    }
}
