//! `linux/netfilter/xt_LED.h`: the target `LED`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_LED.h";

    structs {
        /// Data of the target `LED`, revision 0.
        #[repr(align(8))]
        struct xt_led_info {
            /// Name of the LED trigger, NUL-terminated, with the prefix `netfilter-`.
            field id: [u8; 27],
            /// 1: switch the light off for a moment when a packet arrives while it is on.
            field always_blink: u8,
            /// Milliseconds from a packet until the LED is switched off; 0 for immediately, `u32::MAX` for never.
            field delay: u32,
            /// The kernel's own pointer; zero.
            field internal_data: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad: [u8; 4],
        }
    }
}
