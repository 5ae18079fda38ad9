//! `linux/netfilter_ipv4/ipt_ecn.h`: the match `ecn` under its old names; its data is
//! also [`xt_ecn_info`](crate::xt_ecn::xt_ecn_info).

use crate::abi::abi;

pub use crate::xt_ecn::xt_ecn_info as ipt_ecn_info;

abi! {
    header "linux/netfilter_ipv4/ipt_ecn.h";

    constants {
        /// Fields that the match compares; the same as `XT_ECN_*`.
        "enum IPT_ECN_*": u8 {
            /// Bits of the type of service byte that are the ECN field.
            IPT_ECN_IP_MASK = 0x03, c "(__u8)IPT_ECN_IP_MASK";
            /// The ECN field of the IP header.
            IPT_ECN_OP_MATCH_IP = 0x01;
            /// The ECE bit of the TCP header.
            IPT_ECN_OP_MATCH_ECE = 0x10;
            /// The CWR bit of the TCP header.
            IPT_ECN_OP_MATCH_CWR = 0x20;
            /// Bits that must be zero.
            IPT_ECN_OP_MATCH_MASK = 0xce;
        }
    }
}
