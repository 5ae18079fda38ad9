//! `linux/netfilter/xt_connbytes.h`: the match `connbytes`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_connbytes.h";

    constants {
        /// The compared quantity of a connection.
        "enum xt_connbytes_what": u8 {
            /// Its packets.
            XT_CONNBYTES_PKTS = 0;
            /// Its bytes.
            XT_CONNBYTES_BYTES = 1;
            /// The bytes of its average packet.
            XT_CONNBYTES_AVGPKT = 2;
        }

        /// The counted direction of a connection.
        "enum xt_connbytes_direction": u8 {
            /// From the initiator.
            XT_CONNBYTES_DIR_ORIGINAL = 0;
            /// To the initiator.
            XT_CONNBYTES_DIR_REPLY = 1;
            /// Both together.
            XT_CONNBYTES_DIR_BOTH = 2;
        }
    }

    structs {
        /// Data of the match `connbytes`, revision 0.
        #[repr(align(8))]
        struct xt_connbytes_info {
            /// The lowest number of packets or bytes that matches, host byte order. If it is greater than `to`, values below `to` or above `from` match.
            field from: u64 = "count.from",
            /// The highest number of packets or bytes that matches, host byte order.
            field to: u64 = "count.to",
            /// One of `XT_CONNBYTES_PKTS`, `XT_CONNBYTES_BYTES` and `XT_CONNBYTES_AVGPKT`.
            field what: u8,
            /// One of `XT_CONNBYTES_DIR_*`.
            field direction: u8,
            pad __pad: [u8; 6],
        }
    }
}
