//! `linux/netfilter_ipv4/ipt_ttl.h`: the match `ttl`.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv4/ipt_ttl.h";

    constants {
        /// Comparison of the time to live ([`ipt_ttl_info::mode`]).
        "enum IPT_TTL_*": u8 {
            /// Equal.
            IPT_TTL_EQ = 0;
            /// Not equal.
            IPT_TTL_NE = 1;
            /// Less.
            IPT_TTL_LT = 2;
            /// Greater.
            IPT_TTL_GT = 3;
        }
    }

    structs {
        /// Data of the match `ttl`, revision 0.
        struct ipt_ttl_info {
            /// `IPT_TTL_*`.
            field mode: u8,
            /// Time to live, in hops.
            field ttl: u8,
        }
    }
}
