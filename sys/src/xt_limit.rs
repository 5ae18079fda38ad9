//! `linux/netfilter/xt_limit.h`: the match `limit`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_limit.h";

    constants {
        /// Units of [`xt_rateinfo::avg`] in a second.
        "#define XT_LIMIT_SCALE": u32 {
            XT_LIMIT_SCALE = 10000;
        }
    }

    structs {
        /// Data of the match `limit`, revision 0.
        struct xt_rateinfo {
            /// Time between two packets at the average rate, in ten-thousandths of a second.
            field avg: u32,
            /// Number of packets allowed at once.
            field burst: u32,
            /// The kernel's own; zero. In C: `unsigned long`.
            field prev: usize,
            /// The kernel's own; zero.
            field credit: u32,
            /// The kernel's own; zero.
            field credit_cap: u32,
            /// The kernel's own; zero.
            field cost: u32,
            #[cfg(target_pointer_width = "64")]
            pad __pad: [u8; 4],
            /// The kernel's own address (in C: `struct xt_limit_priv *`); zero.
            field master: usize,
        }
    }
}
