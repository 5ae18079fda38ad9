//! `linux/netfilter_ipv6/ip6t_hl.h`: the match `hl`.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6/ip6t_hl.h";

    constants {
        /// Comparison of the hop limit ([`ip6t_hl_info::mode`]).
        "enum IP6T_HL_*": u8 {
            /// Equal.
            IP6T_HL_EQ = 0;
            /// Not equal.
            IP6T_HL_NE = 1;
            /// Less.
            IP6T_HL_LT = 2;
            /// Greater.
            IP6T_HL_GT = 3;
        }
    }

    structs {
        /// Data of the match `hl`, revision 0.
        struct ip6t_hl_info {
            /// `IP6T_HL_*`.
            field mode: u8,
            /// Hop limit, in hops.
            field hop_limit: u8,
        }
    }
}
