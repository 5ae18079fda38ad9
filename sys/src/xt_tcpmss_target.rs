//! `linux/netfilter/xt_TCPMSS.h`: the target `TCPMSS`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_TCPMSS.h";

    constants {
        /// Value of `xt_tcpmss_info.mss` that stands for the path's MTU minus the headers.
        "#define XT_TCPMSS_CLAMP_PMTU": u16 {
            XT_TCPMSS_CLAMP_PMTU = 0xffff;
        }
    }

    structs {
        /// Data of the target `TCPMSS`, revision 0.
        struct xt_tcpmss_info {
            /// The new maximum segment size in bytes, host byte order, or [`XT_TCPMSS_CLAMP_PMTU`].
            field mss: u16,
        }
    }
}
