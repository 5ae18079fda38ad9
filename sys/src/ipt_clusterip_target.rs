//! `linux/netfilter_ipv4/ipt_CLUSTERIP.h`: the target `CLUSTERIP`, removed in Linux 6.3.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv4/ipt_CLUSTERIP.h";

    constants {
        /// Input of the hash that selects a connection's node ([`ipt_clusterip_tgt_info::hash_mode`]).
        "enum clusterip_hashmode": u32 {
            /// Source address.
            CLUSTERIP_HASHMODE_SIP = 0;
            /// Source address and port.
            CLUSTERIP_HASHMODE_SIP_SPT = 1;
            /// Source address and port, destination port.
            CLUSTERIP_HASHMODE_SIP_SPT_DPT = 2;
        }

        /// The highest value.
        "#define CLUSTERIP_HASHMODE_MAX": u32 {
            CLUSTERIP_HASHMODE_MAX = 2;
        }

        /// Maximum number of nodes.
        "#define CLUSTERIP_MAX_NODES": usize {
            CLUSTERIP_MAX_NODES = 16;
        }

        /// Flag of the rule that creates a cluster ([`ipt_clusterip_tgt_info::flags`]).
        "#define CLUSTERIP_FLAG_NEW": u32 {
            CLUSTERIP_FLAG_NEW = 0x1;
        }
    }

    structs {
        /// Data of the target `CLUSTERIP`, revision 0; only a rule with [`CLUSTERIP_FLAG_NEW`] uses more than the flags.
        struct ipt_clusterip_tgt_info {
            /// [`CLUSTERIP_FLAG_NEW`] or 0, host byte order.
            field flags: u32,
            /// Ethernet multicast address of the cluster.
            field clustermac: [u8; 6],
            /// Number of nodes, host byte order.
            field num_total_nodes: u16,
            /// Number of elements of `local_nodes` in use, host byte order.
            field num_local_nodes: u16,
            /// Numbers of this machine's nodes, host byte order.
            field local_nodes: [u16; CLUSTERIP_MAX_NODES],
            pad __pad: [u8; 2],
            /// `CLUSTERIP_HASHMODE_*`, host byte order.
            field hash_mode: u32,
            /// Seed of the hash, host byte order.
            field hash_initval: u32,
            /// The kernel's own address (in C: `struct clusterip_config *`); zero.
            field config: usize,
        }
    }
}
