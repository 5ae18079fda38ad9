//! `linux/netfilter/xt_ipcomp.h`: the match `ipcomp`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_ipcomp.h";

    constants {
        /// Fields that the match negates ([`xt_ipcomp::invflags`]).
        "#define XT_IPCOMP_INV_*": u8 {
            /// The range.
            XT_IPCOMP_INV_SPI = 0x01;
            /// All bits.
            XT_IPCOMP_INV_MASK = 0x01;
        }
    }

    structs {
        /// Data of the match `ipcomp`, revision 0.
        struct xt_ipcomp {
            /// First and last compression parameter index, host byte order.
            field spis: [u32; 2],
            /// `XT_IPCOMP_INV_*`.
            field invflags: u8,
            /// Not read by the kernel.
            field hdrres: u8,
            pad __pad: [u8; 2],
        }
    }
}
