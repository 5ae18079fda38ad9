//! `linux/netfilter_ipv6/ip6t_ah.h`: the match `ah` of IPv6.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6/ip6t_ah.h";

    constants {
        /// Fields with an `ip6tables` option; not in the data.
        "#define IP6T_AH_*": u8 {
            /// Security parameter index.
            IP6T_AH_SPI = 0x01;
            /// Length.
            IP6T_AH_LEN = 0x02;
            /// Reserved field.
            IP6T_AH_RES = 0x04;
        }

        /// Fields that the match negates ([`ip6t_ah::invflags`]).
        "#define IP6T_AH_INV_*": u8 {
            /// The range.
            IP6T_AH_INV_SPI = 0x01;
            /// The length.
            IP6T_AH_INV_LEN = 0x02;
            /// All bits.
            IP6T_AH_INV_MASK = 0x03;
        }
    }

    structs {
        /// Data of the match `ah` of IPv6, revision 0.
        struct ip6t_ah {
            /// First and last security parameter index, host byte order.
            field spis: [u32; 2],
            /// Length of the header, in bytes, host byte order; 0 for any.
            field hdrlen: u32,
            /// 1: the reserved field must be zero.
            field hdrres: u8,
            /// `IP6T_AH_INV_*`.
            field invflags: u8,
            pad __pad: [u8; 2],
        }
    }
}
