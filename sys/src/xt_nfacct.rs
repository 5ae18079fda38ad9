//! `linux/netfilter/xt_nfacct.h`: the match `nfacct`.

use crate::abi::abi;
use crate::nfnetlink_acct::NFACCT_NAME_MAX;

abi! {
    header "linux/netfilter/xt_nfacct.h";

    structs {
        /// Data of the match `nfacct`, revision 0.
        struct xt_nfacct_match_info {
            /// Name of the counter, NUL-terminated.
            field name: [u8; NFACCT_NAME_MAX],
            /// The kernel's own address (in C: `struct nf_acct *`); zero.
            field nfacct: usize,
        }

        /// Data of the match `nfacct`, revision 1: the same with the same size on 32 and 64 bits.
        #[repr(align(8))]
        struct xt_nfacct_match_info_v1 {
            /// Name of the counter, NUL-terminated.
            field name: [u8; NFACCT_NAME_MAX],
            /// The kernel's own address (in C: `struct nf_acct *`); zero.
            field nfacct: usize,
            #[cfg(target_pointer_width = "32")]
            pad __pad: [u8; 4],
        }
    }
}
