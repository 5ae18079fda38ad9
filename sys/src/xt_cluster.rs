//! `linux/netfilter/xt_cluster.h`: the match `cluster`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_cluster.h";

    constants {
        /// Flags of the match.
        "enum xt_cluster_flags": u32 {
            /// Negate.
            XT_CLUSTER_F_INV = 1 << 0;
        }

        /// Maximum number of nodes of a cluster.
        "#define XT_CLUSTER_NODES_MAX": u32 {
            XT_CLUSTER_NODES_MAX = 32;
        }
    }

    structs {
        /// Data of the match `cluster`, revision 0: it matches the connections that belong to these nodes.
        struct xt_cluster_match_info {
            /// Number of nodes of the cluster, 1 to [`XT_CLUSTER_NODES_MAX`].
            field total_nodes: u32,
            /// The nodes, one bit each, the first node lowest, host byte order.
            field node_mask: u32,
            /// Seed of the hash of the connection's source address; the same on every node.
            field hash_seed: u32,
            /// `XT_CLUSTER_F_*`.
            field flags: u32,
        }
    }
}
