//! `linux/netfilter/xt_NFLOG.h`: the target `NFLOG`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_NFLOG.h";

    constants {
        /// Defaults of the tools.
        "#define XT_NFLOG_DEFAULT_*": u16 {
            /// The group.
            XT_NFLOG_DEFAULT_GROUP = 0x1;
            /// The threshold.
            XT_NFLOG_DEFAULT_THRESHOLD = 0;
        }

        /// Flags of the target `NFLOG`.
        "#define XT_NFLOG_*": u16 {
            /// All flags.
            XT_NFLOG_MASK = 0x1;
            /// `xt_nflog_info.len` counts.
            XT_NFLOG_F_COPY_LEN = 0x1;
        }
    }

    structs {
        /// Data of the target `NFLOG`, revision 0.
        struct xt_nflog_info {
            /// Bytes of each packet to send, host byte order; only with [`XT_NFLOG_F_COPY_LEN`].
            field len: u32,
            /// Netlink group that gets the packets, host byte order.
            field group: u16,
            /// Packets to collect before they are sent; 0 leaves it to the listener.
            field threshold: u16,
            /// `XT_NFLOG_F_*`.
            field flags: u16,
            /// Unused; zero.
            field pad: u16,
            /// Text to send with each packet, NUL-terminated.
            field prefix: [u8; 64],
        }
    }
}
