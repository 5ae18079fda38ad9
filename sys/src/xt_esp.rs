//! `linux/netfilter/xt_esp.h`: the match `esp`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_esp.h";

    constants {
        /// Fields that the match negates.
        "#define XT_ESP_INV_*": u8 {
            /// The range.
            XT_ESP_INV_SPI = 0x01;
            /// All flags.
            XT_ESP_INV_MASK = 0x01;
        }
    }

    structs {
        /// Data of the match `esp`, revision 0.
        struct xt_esp {
            /// The lowest and the highest security parameter index, host byte order.
            field spis: [u32; 2],
            /// `XT_ESP_INV_*`.
            field invflags: u8,
            pad __pad: [u8; 3],
        }
    }
}
