//! `linux/netfilter_ipv6/ip6t_HL.h`: the target `HL`.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6/ip6t_HL.h";

    constants {
        /// Operation of the target ([`ip6t_HL_info::mode`]).
        "enum IP6T_HL_*": u8 {
            /// Sets the hop limit.
            IP6T_HL_SET = 0;
            /// Adds to it.
            IP6T_HL_INC = 1;
            /// Takes from it.
            IP6T_HL_DEC = 2;
        }

        /// The highest value.
        "#define IP6T_HL_MAXMODE": u8 {
            IP6T_HL_MAXMODE = 2;
        }
    }

    structs {
        /// Data of the target `HL`, revision 0.
        struct ip6t_HL_info {
            /// `IP6T_HL_*`.
            field mode: u8,
            /// Hop limit or difference, in hops.
            field hop_limit: u8,
        }
    }
}
