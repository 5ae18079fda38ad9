//! `linux/netfilter/xt_cpu.h`: the match `cpu`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_cpu.h";

    structs {
        /// Data of the match `cpu`, revision 0.
        struct xt_cpu_info {
            /// Number of the CPU that handles the packet, host byte order.
            field cpu: u32,
            /// 1 negates.
            field invert: u32,
        }
    }
}
