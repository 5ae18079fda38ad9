//! `linux/netfilter/xt_ecn.h`: the match `ecn`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_ecn.h";

    constants {
        /// Bits of the congestion field in the IPv4 TOS octet or the IPv6 traffic class.
        "#define XT_ECN_IP_MASK": u8 {
            XT_ECN_IP_MASK = 0x03, c "(__u8)XT_ECN_IP_MASK";
        }

        /// Fields that the match compares or negates (`operation`, `invert`).
        "#define XT_ECN_OP_*": u8 {
            /// The congestion field of the IP header.
            XT_ECN_OP_MATCH_IP = 0x01;
            /// TCP's ECE bit.
            XT_ECN_OP_MATCH_ECE = 0x10;
            /// TCP's CWR bit.
            XT_ECN_OP_MATCH_CWR = 0x20;
            /// Bits that the kernel refuses.
            XT_ECN_OP_MATCH_MASK = 0xce;
        }
    }

    structs {
        /// Data of the match `ecn`, revision 0.
        struct xt_ecn_info {
            /// `XT_ECN_OP_*`: fields to compare. A TCP bit matches when it is set.
            field operation: u8,
            /// `XT_ECN_OP_*`: fields to negate.
            field invert: u8,
            /// Value of the congestion field of the IP header, 0 to 3.
            field ip_ect: u8,
            /// Ignored by the kernel; zero.
            field ect: u8 = "proto.tcp.ect",
        }
    }
}
