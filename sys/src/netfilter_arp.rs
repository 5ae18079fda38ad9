//! `linux/netfilter_arp.h`: hooks of the ARP family.

use crate::abi::abi;

abi! {
    header "linux/netfilter_arp.h";

    constants {
        /// Number of the ARP family among its own hooks; not a protocol family.
        "#define NF_ARP": u32 {
            NF_ARP = 0;
        }

        /// Hooks of the ARP family.
        "#define NF_ARP_*": u32 {
            NF_ARP_IN = 0;
            NF_ARP_OUT = 1;
            NF_ARP_FORWARD = 2;
            /// Number of hooks: the length of arp_tables' hook arrays.
            NF_ARP_NUMHOOKS = 3;
        }
    }
}
