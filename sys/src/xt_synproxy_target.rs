//! `linux/netfilter/xt_SYNPROXY.h`: the target `SYNPROXY`. The header only defines these names for
//! the declarations in `linux/netfilter/nf_synproxy.h`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_SYNPROXY.h";

    constants {
        /// TCP options that the proxy offers to clients.
        "#define XT_SYNPROXY_OPT_*": u8 {
            /// The maximum segment size.
            XT_SYNPROXY_OPT_MSS = 0x01;
            /// Window scaling.
            XT_SYNPROXY_OPT_WSCALE = 0x02;
            /// Selective acknowledgements.
            XT_SYNPROXY_OPT_SACK_PERM = 0x04;
            /// Timestamps.
            XT_SYNPROXY_OPT_TIMESTAMP = 0x08;
            /// Explicit congestion notification.
            XT_SYNPROXY_OPT_ECN = 0x10;
        }
    }

    structs {
        /// Data of the target `SYNPROXY`, revision 0; `struct nf_synproxy_info` in C.
        struct xt_synproxy_info {
            /// `XT_SYNPROXY_OPT_*`.
            field options: u8,
            /// Window scale of the server: a shift, 0 to 14.
            field wscale: u8,
            /// Maximum segment size of the server, in bytes, host byte order.
            field mss: u16,
        }
    }
}
