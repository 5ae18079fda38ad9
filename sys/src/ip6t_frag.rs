//! `linux/netfilter_ipv6/ip6t_frag.h`: the match `frag`.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6/ip6t_frag.h";

    constants {
        /// Fields that the match compares ([`ip6t_frag::flags`]).
        "#define IP6T_FRAG_*": u8 {
            /// The id; the kernel compares it in any case.
            IP6T_FRAG_IDS = 0x01;
            /// The length; not read by the kernel.
            IP6T_FRAG_LEN = 0x02;
            /// The reserved fields are zero.
            IP6T_FRAG_RES = 0x04;
            /// It is the first fragment.
            IP6T_FRAG_FST = 0x08;
            /// More fragments follow.
            IP6T_FRAG_MF = 0x10;
            /// No more fragments follow.
            IP6T_FRAG_NMF = 0x20;
        }

        /// Fields that the match negates ([`ip6t_frag::invflags`]).
        "#define IP6T_FRAG_INV_*": u8 {
            /// The range of ids.
            IP6T_FRAG_INV_IDS = 0x01;
            /// The length; not read by the kernel.
            IP6T_FRAG_INV_LEN = 0x02;
            /// All bits.
            IP6T_FRAG_INV_MASK = 0x03;
        }
    }

    structs {
        /// Data of the match `frag`, revision 0.
        struct ip6t_frag {
            /// First and last id, host byte order.
            field ids: [u32; 2],
            /// Length of the header, in bytes, host byte order; not read by the kernel.
            field hdrlen: u32,
            /// `IP6T_FRAG_*`.
            field flags: u8,
            /// `IP6T_FRAG_INV_*`.
            field invflags: u8,
            pad __pad: [u8; 2],
        }
    }
}
