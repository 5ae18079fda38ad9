//! `linux/netfilter/xt_mark.h`: the match `mark` and the target `MARK` (whose own header,
//! `linux/netfilter/xt_MARK.h`, only includes this one).

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_mark.h";

    structs {
        /// Data of the target `MARK`, revision 2: the packet's mark becomes `(old & !mask) ^ mark`.
        struct xt_mark_tginfo2 {
            /// Bits to flip after clearing, host byte order.
            field mark: u32,
            /// Bits to clear, host byte order.
            field mask: u32,
        }

        /// Data of the match `mark`, revision 1: it matches when `(packet & mask) == mark`.
        struct xt_mark_mtinfo1 {
            /// Value to compare with, host byte order.
            field mark: u32,
            /// Bits to compare, host byte order.
            field mask: u32,
            /// 1 negates.
            field invert: u8,
            pad __pad: [u8; 3],
        }
    }
}
