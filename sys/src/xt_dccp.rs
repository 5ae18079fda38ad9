//! `linux/netfilter/xt_dccp.h`: the match `dccp`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_dccp.h";

    constants {
        /// Fields that the match compares or negates (`flags`, `invflags`).
        "#define XT_DCCP_*": u16 {
            /// The source port.
            XT_DCCP_SRC_PORTS = 0x01;
            /// The destination port.
            XT_DCCP_DEST_PORTS = 0x02;
            /// The type of the packet.
            XT_DCCP_TYPE = 0x04;
            /// Whether there is an option.
            XT_DCCP_OPTION = 0x08;
            /// All of these.
            XT_DCCP_VALID_FLAGS = 0x0f;
        }
    }

    structs {
        /// Data of the match `dccp`, revision 0.
        struct xt_dccp_info {
            /// The lowest and the highest destination port, host byte order.
            field dpts: [u16; 2],
            /// The lowest and the highest source port, host byte order.
            field spts: [u16; 2],
            /// `XT_DCCP_*`: fields to compare.
            field flags: u16,
            /// `XT_DCCP_*`: fields to negate.
            field invflags: u16,
            /// Types of packet, one bit each (`1 << type`), any of which matches; host byte order.
            field typemask: u16,
            /// Number of the option.
            field option: u8,
            pad __pad: [u8; 1],
        }
    }
}
