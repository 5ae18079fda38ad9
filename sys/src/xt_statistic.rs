//! `linux/netfilter/xt_statistic.h`: the match `statistic`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_statistic.h";

    constants {
        /// Selection of packets ([`xt_statistic_info::mode`]).
        "enum xt_statistic_mode": u16 {
            /// At random.
            XT_STATISTIC_MODE_RANDOM = 0;
            /// Every nth.
            XT_STATISTIC_MODE_NTH = 1;
        }

        /// Flags of the match ([`xt_statistic_info::flags`]).
        "enum xt_statistic_flags": u16 {
            /// Negates.
            XT_STATISTIC_INVERT = 0x1;
        }

        /// All flags.
        "#define XT_STATISTIC_MASK": u16 {
            XT_STATISTIC_MASK = 0x1;
        }
    }

    structs {
        /// Data of the match `statistic`, revision 0.
        #[repr(align(8))]
        struct xt_statistic_info {
            /// `XT_STATISTIC_MODE_*`.
            field mode: u16,
            /// `XT_STATISTIC_*`.
            field flags: u16,
            /// A union in C, host byte order. At random: element 0 is the probability times 2^31 (`random.probability`). Every nth: element 0 is n minus one (`nth.every`), element 1 where counting starts (`nth.packet`), element 2 is not used (`nth.count`).
            field u: [u32; 3],
            /// The kernel's own address (in C: `struct xt_statistic_priv *`); zero.
            field master: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad: [u8; 4],
        }
    }
}
