//! `linux/netfilter/xt_NFQUEUE.h`: the target `NFQUEUE`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_NFQUEUE.h";

    constants {
        /// Flags of the target `NFQUEUE`, revision 3.
        "#define NFQ_FLAG_*": u16 {
            /// Accept the packet when no program listens.
            NFQ_FLAG_BYPASS = 0x01;
            /// Choose the queue by the CPU instead of by a hash of the packet.
            NFQ_FLAG_CPU_FANOUT = 0x02;
            /// All flags.
            NFQ_FLAG_MASK = 0x03;
        }
    }

    structs {
        /// Data of the target `NFQUEUE`, revision 0.
        struct xt_NFQ_info {
            /// The queue, host byte order.
            field queuenum: u16,
        }

        /// Data of the target `NFQUEUE`, revision 1: a range of queues.
        struct xt_NFQ_info_v1 {
            /// The first queue, host byte order.
            field queuenum: u16,
            /// Number of queues, host byte order; at least 1.
            field queues_total: u16,
        }

        /// Data of the target `NFQUEUE`, revision 2: with bypass.
        struct xt_NFQ_info_v2 {
            /// The first queue, host byte order.
            field queuenum: u16,
            /// Number of queues, host byte order; at least 1.
            field queues_total: u16,
            /// 1: accept the packet when no program listens; otherwise 0.
            field bypass: u16,
        }

        /// Data of the target `NFQUEUE`, revision 3: with flags.
        struct xt_NFQ_info_v3 {
            /// The first queue, host byte order.
            field queuenum: u16,
            /// Number of queues, host byte order; at least 1.
            field queues_total: u16,
            /// `NFQ_FLAG_*`.
            field flags: u16,
        }
    }
}
