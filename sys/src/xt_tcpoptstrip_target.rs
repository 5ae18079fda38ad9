//! `linux/netfilter/xt_TCPOPTSTRIP.h`: the target `TCPOPTSTRIP`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_TCPOPTSTRIP.h";

    structs {
        /// Data of the target `TCPOPTSTRIP`, revision 0.
        struct xt_tcpoptstrip_target_info {
            /// The options to overwrite, host byte order: option `n` is bit `n % 32` of word `n / 32`.
            field strip_bmap: [u32; 8],
        }
    }
}
