//! `linux/netfilter/xt_connlimit.h`: the match `connlimit`.

use crate::abi::abi;
use crate::netfilter::nf_inet_addr;

abi! {
    header "linux/netfilter/xt_connlimit.h";

    constants {
        /// Flags of the match.
        "enum XT_CONNLIMIT_*": u32 {
            /// Match up to the limit instead of above it.
            XT_CONNLIMIT_INVERT = 1 << 0;
            /// Count by destination address instead of by source address.
            XT_CONNLIMIT_DADDR = 1 << 1;
        }
    }

    structs {
        /// Data of the match `connlimit`, revision 1.
        #[repr(align(8))]
        struct xt_connlimit_info {
            /// Mask of the network whose addresses are counted together, network byte order. Also `v4_mask` and
            /// `v6_mask` in C.
            field mask: nf_inet_addr,
            /// The most connections of a network that do not match.
            field limit: u32,
            /// `XT_CONNLIMIT_*`.
            field flags: u32,
            /// The kernel's own pointer; zero.
            field data: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad: [u8; 4],
        }
    }
}
