//! `linux/netfilter_ipv6/ip6t_mh.h`: the match `mh`.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6/ip6t_mh.h";

    constants {
        /// Fields that the match negates ([`ip6t_mh::invflags`]).
        "#define IP6T_MH_INV_*": u8 {
            /// The range.
            IP6T_MH_INV_TYPE = 0x01;
            /// All bits.
            IP6T_MH_INV_MASK = 0x01;
        }
    }

    structs {
        /// Data of the match `mh`, revision 0.
        struct ip6t_mh {
            /// First and last type of the mobility header.
            field types: [u8; 2],
            /// `IP6T_MH_INV_*`.
            field invflags: u8,
        }
    }
}
