//! `linux/netfilter_ipv4/ipt_TTL.h`: the target `TTL`.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv4/ipt_TTL.h";

    constants {
        /// Operation of the target ([`ipt_TTL_info::mode`]).
        "enum IPT_TTL_*": u8 {
            /// Sets the time to live.
            IPT_TTL_SET = 0;
            /// Adds to it.
            IPT_TTL_INC = 1;
            /// Takes from it.
            IPT_TTL_DEC = 2;
        }

        /// The highest value.
        "#define IPT_TTL_MAXMODE": u8 {
            IPT_TTL_MAXMODE = 2;
        }
    }

    structs {
        /// Data of the target `TTL`, revision 0.
        struct ipt_TTL_info {
            /// `IPT_TTL_*`.
            field mode: u8,
            /// Time to live or difference, in hops.
            field ttl: u8,
        }
    }
}
