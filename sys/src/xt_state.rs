//! `linux/netfilter/xt_state.h`: the match `state`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_state.h";

    constants {
        /// Bits of the state; the others are `1 << (ctinfo % IP_CT_IS_REPLY + 1)`, in C `XT_STATE_BIT(ctinfo)`.
        "#define XT_STATE_*": u32 {
            /// The packet belongs to no connection.
            XT_STATE_INVALID = 1 << 0;
            /// The packet is not tracked.
            XT_STATE_UNTRACKED = 1 << 6;
        }
    }

    structs {
        /// Data of the match `state`, revision 0.
        struct xt_state_info {
            /// `XT_STATE_*` and the state bits, any of which matches, host byte order.
            field statemask: u32,
        }
    }
}
