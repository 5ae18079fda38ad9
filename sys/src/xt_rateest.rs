//! `linux/netfilter/xt_rateest.h`: the match `rateest`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_rateest.h";

    constants {
        /// Flags of the match ([`xt_rateest_match_info::flags`]).
        "enum xt_rateest_match_flags": u16 {
            /// Negates.
            XT_RATEEST_MATCH_INVERT = 1 << 0;
            /// Compare an estimator's rate with a number.
            XT_RATEEST_MATCH_ABS = 1 << 1;
            /// Compare two estimators' rates.
            XT_RATEEST_MATCH_REL = 1 << 2;
            /// Compare how far the rates are below the given numbers.
            XT_RATEEST_MATCH_DELTA = 1 << 3;
            /// Compare bytes per second.
            XT_RATEEST_MATCH_BPS = 1 << 4;
            /// Compare packets per second.
            XT_RATEEST_MATCH_PPS = 1 << 5;
        }

        /// Comparison of rates ([`xt_rateest_match_info::mode`]).
        "enum xt_rateest_match_mode": u16 {
            /// Not at all.
            XT_RATEEST_MATCH_NONE = 0;
            /// Equal.
            XT_RATEEST_MATCH_EQ = 1;
            /// Less.
            XT_RATEEST_MATCH_LT = 2;
            /// Greater.
            XT_RATEEST_MATCH_GT = 3;
        }
    }

    structs {
        /// Data of the match `rateest`, revision 0.
        #[repr(align(8))]
        struct xt_rateest_match_info {
            /// Name of the first estimator, NUL-terminated.
            field name1: [u8; 16],
            /// Name of the second estimator, NUL-terminated.
            field name2: [u8; 16],
            /// `XT_RATEEST_MATCH_*` flags.
            field flags: u16,
            /// `XT_RATEEST_MATCH_*` mode.
            field mode: u16,
            /// Bytes per second for the first estimator, host byte order.
            field bps1: u32,
            /// Packets per second for the first estimator, host byte order.
            field pps1: u32,
            /// Bytes per second for the second estimator or to compare with, host byte order.
            field bps2: u32,
            /// Packets per second for the second estimator or to compare with, host byte order.
            field pps2: u32,
            pad __pad: [u8; 4],
            /// The kernel's own address (in C: `struct xt_rateest *`); zero.
            field est1: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad2: [u8; 4],
            /// The kernel's own address (in C: `struct xt_rateest *`); zero.
            field est2: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad3: [u8; 4],
        }
    }
}
