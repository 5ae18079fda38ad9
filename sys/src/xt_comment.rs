//! `linux/netfilter/xt_comment.h`: the match `comment`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_comment.h";

    constants {
        /// Maximum size of a comment, in bytes, including the closing NUL.
        "#define XT_MAX_COMMENT_LEN": usize {
            XT_MAX_COMMENT_LEN = 256;
        }
    }

    structs {
        /// Data of the match `comment`, revision 0.
        struct xt_comment_info {
            /// The comment, NUL-terminated.
            field comment: [u8; XT_MAX_COMMENT_LEN],
        }
    }
}
