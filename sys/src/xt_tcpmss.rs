//! `linux/netfilter/xt_tcpmss.h`: the match `tcpmss`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_tcpmss.h";

    structs {
        /// Data of the match `tcpmss`, revision 0.
        struct xt_tcpmss_match_info {
            /// Smallest maximum segment size, in bytes, host byte order.
            field mss_min: u16,
            /// Largest maximum segment size, in bytes, host byte order.
            field mss_max: u16,
            /// 1 negates.
            field invert: u8,
            pad __pad: [u8; 1],
        }
    }
}
