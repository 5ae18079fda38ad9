//! `linux/netfilter/xt_SECMARK.h`: the target `SECMARK`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_SECMARK.h";

    constants {
        /// The security module of the mark.
        "#define SECMARK_MODE_SEL": u8 {
            /// SELinux.
            SECMARK_MODE_SEL = 0x01;
        }

        /// Maximum size of a security context, in bytes, including the closing NUL.
        "#define SECMARK_SECCTX_MAX": usize {
            SECMARK_SECCTX_MAX = 256;
        }
    }

    structs {
        /// Data of the target `SECMARK`, revision 0.
        struct xt_secmark_target_info {
            /// [`SECMARK_MODE_SEL`].
            field mode: u8,
            pad __pad: [u8; 3],
            /// Number of the context, filled in by the kernel, host byte order; zero.
            field secid: u32,
            /// The security context, NUL-terminated.
            field secctx: [u8; SECMARK_SECCTX_MAX],
        }

        /// Data of the target `SECMARK`, revision 1: the kernel's own field is last.
        struct xt_secmark_target_info_v1 {
            /// [`SECMARK_MODE_SEL`].
            field mode: u8,
            /// The security context, NUL-terminated.
            field secctx: [u8; SECMARK_SECCTX_MAX],
            pad __pad: [u8; 3],
            /// Number of the context, filled in by the kernel, host byte order; zero.
            field secid: u32,
        }
    }
}
