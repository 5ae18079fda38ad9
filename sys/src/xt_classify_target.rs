//! `linux/netfilter/xt_CLASSIFY.h`: the target `CLASSIFY`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_CLASSIFY.h";

    structs {
        /// Data of the target `CLASSIFY`, revision 0.
        struct xt_classify_target_info {
            /// The packet's new priority, host byte order: the traffic class `major:minor` as `major << 16 | minor`.
            field priority: u32,
        }
    }
}
