//! `linux/netfilter/nf_nat.h`: ranges of addresses and ports for NAT, as used by the targets `SNAT`,
//! `DNAT`, `MASQUERADE`, `REDIRECT` and `NETMAP` and the nf_tables expressions `nat`, `masq` and `redir`.

use crate::abi::abi;
use crate::netfilter::nf_inet_addr;
use crate::nf_conntrack_tuple_common::nf_conntrack_man_proto;

abi! {
    header "linux/netfilter/nf_nat.h";

    constants {
        /// Flags of a translation range.
        "#define NF_NAT_RANGE_*": u32 {
            /// The addresses count.
            NF_NAT_RANGE_MAP_IPS = 1 << 0;
            /// The ports count.
            NF_NAT_RANGE_PROTO_SPECIFIED = 1 << 1;
            /// Choose the port at random (`random`).
            NF_NAT_RANGE_PROTO_RANDOM = 1 << 2;
            /// Choose the same address for the same client (`persistent`).
            NF_NAT_RANGE_PERSISTENT = 1 << 3;
            /// Choose the port at random without a hash of the connection (`fully-random`).
            NF_NAT_RANGE_PROTO_RANDOM_FULLY = 1 << 4;
            /// Shift ports by the distance to a base port.
            NF_NAT_RANGE_PROTO_OFFSET = 1 << 5;
            /// Map a network onto another one, keeping the host part.
            NF_NAT_RANGE_NETMAP = 1 << 6;
            /// Any of the random choices.
            NF_NAT_RANGE_PROTO_RANDOM_ALL = NF_NAT_RANGE_PROTO_RANDOM | NF_NAT_RANGE_PROTO_RANDOM_FULLY;
            /// All flags.
            NF_NAT_RANGE_MASK = 0x7f;
        }
    }

    structs {
        /// An IPv4 range.
        #[repr(align(4))]
        struct nf_nat_ipv4_range {
            /// `NF_NAT_RANGE_*`.
            field flags: u32,
            /// First address, network byte order.
            field min_ip: [u8; 4],
            /// Last address, network byte order.
            field max_ip: [u8; 4],
            /// First port.
            field min: nf_conntrack_man_proto,
            /// Last port.
            field max: nf_conntrack_man_proto,
        }

        /// Data of the IPv4 targets `SNAT` and `DNAT` (revision 0), `MASQUERADE`, `REDIRECT` and `NETMAP`.
        struct nf_nat_ipv4_multi_range_compat {
            /// Number of ranges: 1.
            field rangesize: u32,
            /// The range.
            field range: [nf_nat_ipv4_range; 1],
        }

        /// An IPv4 or IPv6 range: data of the targets `SNAT` and `DNAT`, revision 1.
        struct nf_nat_range {
            /// `NF_NAT_RANGE_*`.
            field flags: u32,
            /// First address.
            field min_addr: nf_inet_addr,
            /// Last address.
            field max_addr: nf_inet_addr,
            /// First port.
            field min_proto: nf_conntrack_man_proto,
            /// Last port.
            field max_proto: nf_conntrack_man_proto,
        }

        /// An IPv4 or IPv6 range with a base port: data of the target `DNAT`, revision 2.
        struct nf_nat_range2 {
            /// `NF_NAT_RANGE_*`.
            field flags: u32,
            /// First address.
            field min_addr: nf_inet_addr,
            /// Last address.
            field max_addr: nf_inet_addr,
            /// First port.
            field min_proto: nf_conntrack_man_proto,
            /// Last port.
            field max_proto: nf_conntrack_man_proto,
            /// Port that is translated to the first one, with [`NF_NAT_RANGE_PROTO_OFFSET`].
            field base_proto: nf_conntrack_man_proto,
            pad __pad: [u8; 2],
        }
    }
}
