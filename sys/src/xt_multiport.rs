//! `linux/netfilter/xt_multiport.h`: the match `multiport`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_multiport.h";

    constants {
        /// The port to compare.
        "enum xt_multiport_flags": u8 {
            /// The source port.
            XT_MULTIPORT_SOURCE = 0;
            /// The destination port.
            XT_MULTIPORT_DESTINATION = 1;
            /// Either of them.
            XT_MULTIPORT_EITHER = 2;
        }

        /// Maximum number of ports; a range counts as two.
        "#define XT_MULTI_PORTS": usize {
            XT_MULTI_PORTS = 15;
        }
    }

    structs {
        /// Data of the match `multiport`, revision 0, which kernels no longer have.
        struct xt_multiport {
            /// `XT_MULTIPORT_*`.
            field flags: u8,
            /// Number of elements of `ports` in use.
            field count: u8,
            /// Ports, host byte order.
            field ports: [u16; XT_MULTI_PORTS],
        }

        /// Data of the match `multiport`, revision 1: with ranges and negation.
        struct xt_multiport_v1 {
            /// `XT_MULTIPORT_*`.
            field flags: u8,
            /// Number of elements of `ports` in use.
            field count: u8,
            /// Ports, host byte order.
            field ports: [u16; XT_MULTI_PORTS],
            /// For each port: 1 when it starts a range that the next element ends.
            field pflags: [u8; XT_MULTI_PORTS],
            /// 1 negates.
            field invert: u8,
        }
    }
}
