//! `linux/netfilter/xt_tcpudp.h`: the matches `tcp`, `udp` and `udplite`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_tcpudp.h";

    constants {
        /// Fields that the match `tcp` negates ([`xt_tcp::invflags`]).
        "#define XT_TCP_INV_*": u8 {
            /// The source ports.
            XT_TCP_INV_SRCPT = 0x01;
            /// The destination ports.
            XT_TCP_INV_DSTPT = 0x02;
            /// The flags.
            XT_TCP_INV_FLAGS = 0x04;
            /// The option.
            XT_TCP_INV_OPTION = 0x08;
            /// All bits.
            XT_TCP_INV_MASK = 0x0f;
        }

        /// Fields that the matches `udp` and `udplite` negate ([`xt_udp::invflags`]).
        "#define XT_UDP_INV_*": u8 {
            /// The source ports.
            XT_UDP_INV_SRCPT = 0x01;
            /// The destination ports.
            XT_UDP_INV_DSTPT = 0x02;
            /// All bits.
            XT_UDP_INV_MASK = 0x03;
        }
    }

    structs {
        /// Data of the match `tcp`, revision 0.
        struct xt_tcp {
            /// First and last source port, host byte order.
            field spts: [u16; 2],
            /// First and last destination port, host byte order.
            field dpts: [u16; 2],
            /// Kind of the TCP option that must be present; 0 for none.
            field option: u8,
            /// TCP flags to compare, as in byte 13 of the TCP header.
            field flg_mask: u8,
            /// Required value of these flags.
            field flg_cmp: u8,
            /// `XT_TCP_INV_*`.
            field invflags: u8,
        }

        /// Data of the matches `udp` and `udplite`, revision 0.
        struct xt_udp {
            /// First and last source port, host byte order.
            field spts: [u16; 2],
            /// First and last destination port, host byte order.
            field dpts: [u16; 2],
            /// `XT_UDP_INV_*`.
            field invflags: u8,
            pad __pad: [u8; 1],
        }
    }
}
