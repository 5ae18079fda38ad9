//! `linux/netfilter_bridge.h`: hooks and hook priorities of the bridge family.

use crate::abi::abi;

abi! {
    header "linux/netfilter_bridge.h";

    constants {
        /// Hooks of the bridge family.
        "#define NF_BR_*": u32 {
            NF_BR_PRE_ROUTING = 0;
            NF_BR_LOCAL_IN = 1;
            NF_BR_FORWARD = 2;
            NF_BR_LOCAL_OUT = 3;
            NF_BR_POST_ROUTING = 4;
            NF_BR_BROUTING = 5;
            /// Number of hooks.
            NF_BR_NUMHOOKS = 6;
        }

        /// Hook priorities of the bridge family: hooks with lower numbers run first.
        "enum nf_br_hook_priorities": i32 {
            /// Before everything else.
            NF_BR_PRI_FIRST = i32::MIN;
            /// Destination translation of bridged frames.
            NF_BR_PRI_NAT_DST_BRIDGED = -300;
            /// Filtering of bridged frames.
            NF_BR_PRI_FILTER_BRIDGED = -200;
            /// Hook at which bridged IP packets enter the IP hooks.
            NF_BR_PRI_BRNF = 0;
            /// Destination translation of the host's own frames.
            NF_BR_PRI_NAT_DST_OTHER = 100;
            /// Filtering of frames from or to the host.
            NF_BR_PRI_FILTER_OTHER = 200;
            /// Source translation.
            NF_BR_PRI_NAT_SRC = 300;
            /// After everything else.
            NF_BR_PRI_LAST = i32::MAX;
        }
    }
}
