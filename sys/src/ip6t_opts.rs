//! `linux/netfilter_ipv6/ip6t_opts.h`: the matches `dst` and `hbh`.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6/ip6t_opts.h";

    constants {
        /// Maximum number of options.
        "#define IP6T_OPTS_OPTSNR": usize {
            IP6T_OPTS_OPTSNR = 16;
        }

        /// Fields that the match compares ([`ip6t_opts::flags`]).
        "#define IP6T_OPTS_*": u8 {
            /// The length.
            IP6T_OPTS_LEN = 0x01;
            /// The options.
            IP6T_OPTS_OPTS = 0x02;
            /// Allows other options in between; refused by the kernel.
            IP6T_OPTS_NSTRICT = 0x04;
        }

        /// Fields that the match negates ([`ip6t_opts::invflags`]).
        "#define IP6T_OPTS_INV_*": u8 {
            /// The length.
            IP6T_OPTS_INV_LEN = 0x01;
            /// All bits.
            IP6T_OPTS_INV_MASK = 0x01;
        }
    }

    structs {
        /// Data of the matches `dst` and `hbh`, revision 0.
        struct ip6t_opts {
            /// Length of the header, in bytes, host byte order.
            field hdrlen: u32,
            /// `IP6T_OPTS_*`.
            field flags: u8,
            /// `IP6T_OPTS_INV_*`.
            field invflags: u8,
            /// Options in order, host byte order: the type above, the length in bytes below (0xff for any).
            field opts: [u16; IP6T_OPTS_OPTSNR],
            /// Number of elements of `opts` in use.
            field optsnr: u8,
            pad __pad: [u8; 1],
        }
    }
}
