//! `linux/netfilter/xt_RATEEST.h`: the target `RATEEST`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_RATEEST.h";

    structs {
        /// Data of the target `RATEEST`, revision 0.
        #[repr(align(8))]
        struct xt_rateest_target_info {
            /// Name of the estimator, NUL-terminated; the match `rateest` refers to it.
            field name: [u8; 16],
            /// Time between two measurements: 2 to this power seconds, -2 to 3.
            field interval: i8,
            /// Smoothing of the average: a measurement weighs 1 in 2 to this power, 1 to 30.
            field ewma_log: u8,
            pad __pad: [u8; 6],
            /// The kernel's own pointer; zero.
            field est: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad2: [u8; 4],
        }
    }
}
