//! `linux/netfilter/xt_connmark.h`: the match `connmark` and the target `CONNMARK` (whose own header,
//! `linux/netfilter/xt_CONNMARK.h`, only includes this one).

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_connmark.h";

    constants {
        /// Operation of the target.
        "enum XT_CONNMARK_*": u8 {
            /// The connection's mark becomes `(old & !ctmask) ^ ctmark`.
            XT_CONNMARK_SET = 0;
            /// The connection's mark becomes `(old & !ctmask) ^ (packet & nfmask)`.
            XT_CONNMARK_SAVE = 1;
            /// The packet's mark becomes `(old & !nfmask) ^ (connection & ctmask)`.
            XT_CONNMARK_RESTORE = 2;
        }

        /// Directions of the shift in revision 2 of the target.
        "enum D_SHIFT_*": u8 {
            /// To higher bits.
            D_SHIFT_LEFT = 0;
            /// To lower bits.
            D_SHIFT_RIGHT = 1;
        }
    }

    structs {
        /// Data of the target `CONNMARK`, revision 1.
        struct xt_connmark_tginfo1 {
            /// Bits to flip with [`XT_CONNMARK_SET`], host byte order.
            field ctmark: u32,
            /// Bits of the connection's mark to clear or, with [`XT_CONNMARK_RESTORE`], to copy; host byte order.
            field ctmask: u32,
            /// Bits of the packet's mark to copy or, with [`XT_CONNMARK_RESTORE`], to clear; host byte order.
            field nfmask: u32,
            /// One of `XT_CONNMARK_*`.
            field mode: u8,
            pad __pad: [u8; 3],
        }

        /// Data of the target `CONNMARK`, revision 2: the new or the copied mark is shifted.
        struct xt_connmark_tginfo2 {
            /// Bits to flip with [`XT_CONNMARK_SET`], host byte order.
            field ctmark: u32,
            /// Bits of the connection's mark to clear or, with [`XT_CONNMARK_RESTORE`], to copy; host byte order.
            field ctmask: u32,
            /// Bits of the packet's mark to copy or, with [`XT_CONNMARK_RESTORE`], to clear; host byte order.
            field nfmask: u32,
            /// One of `D_SHIFT_*`.
            field shift_dir: u8,
            /// Number of bits to shift.
            field shift_bits: u8,
            /// One of `XT_CONNMARK_*`.
            field mode: u8,
            pad __pad: [u8; 1],
        }

        /// Data of the match `connmark`, revision 1: it matches when `(connection & mask) == mark`.
        struct xt_connmark_mtinfo1 {
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
