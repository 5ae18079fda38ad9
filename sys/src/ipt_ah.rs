//! `linux/netfilter_ipv4/ipt_ah.h`: the match `ah` of IPv4.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv4/ipt_ah.h";

    constants {
        /// Fields that the match negates ([`ipt_ah::invflags`]).
        "#define IPT_AH_INV_*": u8 {
            /// The range.
            IPT_AH_INV_SPI = 0x01;
            /// All bits.
            IPT_AH_INV_MASK = 0x01;
        }
    }

    structs {
        /// Data of the match `ah` of IPv4, revision 0.
        struct ipt_ah {
            /// First and last security parameter index, host byte order.
            field spis: [u32; 2],
            /// `IPT_AH_INV_*`.
            field invflags: u8,
            pad __pad: [u8; 3],
        }
    }
}
