//! `linux/netfilter/nf_conntrack_tuple_common.h`: directions of a connection and the
//! protocol-specific part of a tuple.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_conntrack_tuple_common.h";

    constants {
        /// Directions of a connection.
        "enum ip_conntrack_dir": u8 {
            /// From the side that opened it.
            IP_CT_DIR_ORIGINAL = 0;
            /// Towards the side that opened it.
            IP_CT_DIR_REPLY = 1;
        }
    }

    structs {
        /// A port, an ICMP id or a GRE key; a union in C.
        #[repr(align(2))]
        struct nf_conntrack_man_proto = "union nf_conntrack_man_proto" {
            /// The number, big-endian.
            field all: [u8; 2],
        }
    }
}
