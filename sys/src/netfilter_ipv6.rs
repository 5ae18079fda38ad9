//! `linux/netfilter_ipv6.h`: hooks and hook priorities of IPv6.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6.h";

    constants {
        /// Hooks of IPv6; the same numbers as `NF_INET_*`.
        "#define NF_IP6_*": u32 {
            NF_IP6_PRE_ROUTING = 0;
            NF_IP6_LOCAL_IN = 1;
            NF_IP6_FORWARD = 2;
            NF_IP6_LOCAL_OUT = 3;
            NF_IP6_POST_ROUTING = 4;
            /// Number of hooks.
            NF_IP6_NUMHOOKS = 5;
        }

        /// Hook priorities of IPv6: hooks with lower numbers run first.
        "enum nf_ip6_hook_priorities": i32 {
            /// Before everything else.
            NF_IP6_PRI_FIRST = i32::MIN;
            /// The raw table before defragmentation.
            NF_IP6_PRI_RAW_BEFORE_DEFRAG = -450;
            /// Defragmentation by connection tracking.
            NF_IP6_PRI_CONNTRACK_DEFRAG = -400;
            /// The raw table.
            NF_IP6_PRI_RAW = -300;
            /// SELinux, on the way in.
            NF_IP6_PRI_SELINUX_FIRST = -225;
            /// Connection tracking.
            NF_IP6_PRI_CONNTRACK = -200;
            /// The mangle table.
            NF_IP6_PRI_MANGLE = -150;
            /// Destination translation.
            NF_IP6_PRI_NAT_DST = -100;
            /// The filter table.
            NF_IP6_PRI_FILTER = 0;
            /// The security table.
            NF_IP6_PRI_SECURITY = 50;
            /// Source translation.
            NF_IP6_PRI_NAT_SRC = 100;
            /// SELinux, on the way out.
            NF_IP6_PRI_SELINUX_LAST = 225;
            /// Connection tracking helpers.
            NF_IP6_PRI_CONNTRACK_HELPER = 300;
            /// After everything else.
            NF_IP6_PRI_LAST = i32::MAX;
        }
    }
}
