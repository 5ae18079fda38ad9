//! `linux/netfilter/xt_physdev.h`: the match `physdev`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_physdev.h";

    constants {
        /// Fields that the match compares or negates.
        "#define XT_PHYSDEV_OP_*": u8 {
            /// The incoming bridge port.
            XT_PHYSDEV_OP_IN = 0x01;
            /// The outgoing bridge port.
            XT_PHYSDEV_OP_OUT = 0x02;
            /// Whether the packet is bridged, not routed.
            XT_PHYSDEV_OP_BRIDGED = 0x04;
            /// Whether the packet was received through a bridge.
            XT_PHYSDEV_OP_ISIN = 0x08;
            /// Whether the packet leaves through a bridge.
            XT_PHYSDEV_OP_ISOUT = 0x10;
            /// All bits.
            XT_PHYSDEV_OP_MASK = 0x1f;
        }
    }

    structs {
        /// Data of the match `physdev`, revision 0.
        struct xt_physdev_info {
            /// Name of the incoming port, NUL-padded.
            field physindev: [u8; 16],
            /// Mask of `physindev`: 0xff for each byte to compare.
            field in_mask: [u8; 16],
            /// Name of the outgoing port, NUL-padded.
            field physoutdev: [u8; 16],
            /// Mask of `physoutdev`: 0xff for each byte to compare.
            field out_mask: [u8; 16],
            /// `XT_PHYSDEV_OP_*`: fields to negate.
            field invert: u8,
            /// `XT_PHYSDEV_OP_*`: fields to compare.
            field bitmask: u8,
        }
    }
}
