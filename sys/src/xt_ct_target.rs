//! `linux/netfilter/xt_CT.h`: the target `CT`. (The kernel's target `NOTRACK`, revision 0, has no data.)

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_CT.h";

    constants {
        /// Flags of the target `CT`; revisions 0 and 1 only support the first.
        "enum XT_CT_*": u16 {
            /// Do not track the packet.
            XT_CT_NOTRACK = 1 << 0;
            /// Show the rule as the target `NOTRACK`.
            XT_CT_NOTRACK_ALIAS = 1 << 1;
            /// The zone counts only in the original direction.
            XT_CT_ZONE_DIR_ORIG = 1 << 2;
            /// The zone counts only in the reply direction.
            XT_CT_ZONE_DIR_REPL = 1 << 3;
            /// The zone is the packet's mark.
            XT_CT_ZONE_MARK = 1 << 4;
            /// All flags.
            XT_CT_MASK = XT_CT_NOTRACK | XT_CT_NOTRACK_ALIAS | XT_CT_ZONE_DIR_ORIG | XT_CT_ZONE_DIR_REPL | XT_CT_ZONE_MARK;
        }
    }

    structs {
        /// Data of the target `CT`, revision 0.
        #[repr(align(8))]
        struct xt_ct_target_info {
            /// `XT_CT_*`.
            field flags: u16,
            /// Conntrack zone, host byte order; 0 is the default one.
            field zone: u16,
            /// Conntrack events to report, one bit each (`1 << IPCT_*`), host byte order; 0 leaves the choice to the kernel.
            field ct_events: u32,
            /// Expectation events to report, one bit each (`1 << IPEXP_*`), host byte order.
            field exp_events: u32,
            /// Name of the conntrack helper, NUL-terminated; empty for none.
            field helper: [u8; 16],
            pad __pad: [u8; 4],
            /// The kernel's own pointer; zero.
            field ct: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad2: [u8; 4],
        }

        /// Data of the target `CT`, revisions 1 and 2: with a timeout policy.
        #[repr(align(8))]
        struct xt_ct_target_info_v1 {
            /// `XT_CT_*`.
            field flags: u16,
            /// Conntrack zone, host byte order; 0 is the default one.
            field zone: u16,
            /// Conntrack events to report, one bit each (`1 << IPCT_*`), host byte order; 0 leaves the choice to the kernel.
            field ct_events: u32,
            /// Expectation events to report, one bit each (`1 << IPEXP_*`), host byte order.
            field exp_events: u32,
            /// Name of the conntrack helper, NUL-terminated; empty for none.
            field helper: [u8; 16],
            /// Name of the timeout policy, NUL-terminated; empty for none.
            field timeout: [u8; 32],
            pad __pad: [u8; 4],
            /// The kernel's own pointer; zero.
            field ct: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad2: [u8; 4],
        }
    }
}
