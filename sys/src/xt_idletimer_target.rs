//! `linux/netfilter/xt_IDLETIMER.h`: the target `IDLETIMER`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_IDLETIMER.h";

    constants {
        /// Maximum size of a timer's label, in bytes, including the closing NUL.
        "#define MAX_IDLETIMER_LABEL_SIZE": usize {
            MAX_IDLETIMER_LABEL_SIZE = 28;
        }

        /// Value of `idletimer_tg_info_v1.timer_type` for a timer that runs during suspend, and wakes the host.
        "#define XT_IDLETIMER_ALARM": u8 {
            XT_IDLETIMER_ALARM = 0x01;
        }
    }

    structs {
        /// Data of the target `IDLETIMER`, revision 0.
        #[repr(align(8))]
        struct idletimer_tg_info {
            /// Seconds without a packet after which the timer notifies user space; not zero.
            field timeout: u32,
            /// Name of the timer, NUL-terminated; rules with the same one share it.
            field label: [u8; MAX_IDLETIMER_LABEL_SIZE],
            /// The kernel's own pointer; zero.
            field timer: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad: [u8; 4],
        }

        /// Data of the target `IDLETIMER`, revision 1: with a type of timer.
        #[repr(align(8))]
        struct idletimer_tg_info_v1 {
            /// Seconds without a packet after which the timer notifies user space; not zero.
            field timeout: u32,
            /// Name of the timer, NUL-terminated; rules with the same one share it.
            field label: [u8; MAX_IDLETIMER_LABEL_SIZE],
            /// Without effect, must be 0; Android kernels send netlink messages with it.
            field send_nl_msg: u8,
            /// 0 for an ordinary timer, or [`XT_IDLETIMER_ALARM`].
            field timer_type: u8,
            pad __pad: [u8; 6],
            /// The kernel's own pointer; zero.
            field timer: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad2: [u8; 4],
        }
    }
}
