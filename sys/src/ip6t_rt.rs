//! `linux/netfilter_ipv6/ip6t_rt.h`: the match `rt`.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6/ip6t_rt.h";

    constants {
        /// Maximum number of addresses.
        "#define IP6T_RT_HOPS": usize {
            IP6T_RT_HOPS = 16;
        }

        /// Fields that the match compares ([`ip6t_rt::flags`]).
        "#define IP6T_RT_*": u8 {
            /// The type.
            IP6T_RT_TYP = 0x01;
            /// The segments left; the kernel compares them in any case.
            IP6T_RT_SGS = 0x02;
            /// The length.
            IP6T_RT_LEN = 0x04;
            /// The reserved field of type 0 is zero.
            IP6T_RT_RES = 0x08;
            /// Either of the next two.
            IP6T_RT_FST_MASK = 0x30;
            /// The addresses of type 0.
            IP6T_RT_FST = 0x10;
            /// With [`IP6T_RT_FST`]: allows other addresses in between.
            IP6T_RT_FST_NSTRICT = 0x20;
        }

        /// Fields that the match negates ([`ip6t_rt::invflags`]).
        "#define IP6T_RT_INV_*": u8 {
            /// The type.
            IP6T_RT_INV_TYP = 0x01;
            /// The segments left.
            IP6T_RT_INV_SGS = 0x02;
            /// The length.
            IP6T_RT_INV_LEN = 0x04;
            /// All bits.
            IP6T_RT_INV_MASK = 0x07;
        }
    }

    structs {
        /// Data of the match `rt`, revision 0.
        struct ip6t_rt {
            /// Type of the routing header, host byte order.
            field rt_type: u32,
            /// Fewest and most segments left, host byte order.
            field segsleft: [u32; 2],
            /// Length of the header, in bytes, host byte order.
            field hdrlen: u32,
            /// `IP6T_RT_*`.
            field flags: u8,
            /// `IP6T_RT_INV_*`.
            field invflags: u8,
            pad __pad: [u8; 2],
            /// Addresses, network byte order.
            field addrs: [[u8; 16]; IP6T_RT_HOPS],
            /// Number of elements of `addrs` in use.
            field addrnr: u8,
            pad __pad2: [u8; 3],
        }
    }
}
