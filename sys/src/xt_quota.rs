//! `linux/netfilter/xt_quota.h`: the match `quota`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_quota.h";

    constants {
        /// Flags of the match ([`xt_quota_info::flags`]).
        "enum xt_quota_flags": u32 {
            /// Negates.
            XT_QUOTA_INVERT = 0x1;
        }

        /// All flags.
        "#define XT_QUOTA_MASK": u32 {
            XT_QUOTA_MASK = 0x1;
        }
    }

    structs {
        /// Data of the match `quota`, revision 0.
        #[repr(align(8))]
        struct xt_quota_info {
            /// `XT_QUOTA_*`.
            field flags: u32,
            /// Padding; zero.
            field pad: u32,
            /// Bytes that match before no more do, host byte order.
            field quota: u64,
            /// The kernel's own address (in C: `struct xt_quota_priv *`); zero.
            field master: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad: [u8; 4],
        }
    }
}
