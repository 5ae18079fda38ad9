//! `linux/netfilter/xt_string.h`: the match `string`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_string.h";

    constants {
        /// Sizes of strings, in bytes.
        "#define XT_STRING_MAX_*": usize {
            /// Room for the pattern.
            XT_STRING_MAX_PATTERN_SIZE = 128;
            /// Room for the algorithm's name, the closing NUL included.
            XT_STRING_MAX_ALGO_NAME_SIZE = 16;
        }

        /// Flags of the match ([`xt_string_info::flags`]).
        "enum XT_STRING_FLAG_*": u8 {
            /// Negates.
            XT_STRING_FLAG_INVERT = 0x01;
            /// Upper and lower case are the same.
            XT_STRING_FLAG_IGNORECASE = 0x02;
        }
    }

    structs {
        /// Data of the match `string`, revision 1; revision 0 only supports [`XT_STRING_FLAG_INVERT`].
        #[repr(align(8))]
        struct xt_string_info {
            /// Start of the search in the packet, in bytes, host byte order.
            field from_offset: u16,
            /// End of the search in the packet, in bytes, host byte order.
            field to_offset: u16,
            /// Name of the algorithm (`bm`, `kmp`), NUL-terminated.
            field algo: [u8; XT_STRING_MAX_ALGO_NAME_SIZE],
            /// The bytes to look for.
            field pattern: [u8; XT_STRING_MAX_PATTERN_SIZE],
            /// Number of bytes of `pattern` in use.
            field patlen: u8,
            /// `XT_STRING_FLAG_*`.
            field flags: u8 = "u.v1.flags",
            pad __pad: [u8; 2],
            /// The kernel's own address (in C: `struct ts_config *`); zero.
            field config: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad2: [u8; 4],
        }
    }
}
