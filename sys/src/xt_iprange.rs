//! `linux/netfilter/xt_iprange.h`: the match `iprange`.

use crate::abi::abi;
use crate::netfilter::nf_inet_addr;

abi! {
    header "linux/netfilter/xt_iprange.h";

    constants {
        /// Fields that the match compares and negates ([`xt_iprange_mtinfo::flags`]).
        "enum IPRANGE_*": u8 {
            /// Compare the source address.
            IPRANGE_SRC = 1 << 0;
            /// Compare the destination address.
            IPRANGE_DST = 1 << 1;
            /// Negate the source's range.
            IPRANGE_SRC_INV = 1 << 4;
            /// Negate the destination's range.
            IPRANGE_DST_INV = 1 << 5;
        }
    }

    structs {
        /// Data of the match `iprange`, revision 1.
        struct xt_iprange_mtinfo {
            /// First source address.
            field src_min: nf_inet_addr,
            /// Last source address.
            field src_max: nf_inet_addr,
            /// First destination address.
            field dst_min: nf_inet_addr,
            /// Last destination address.
            field dst_max: nf_inet_addr,
            /// `IPRANGE_*`.
            field flags: u8,
            pad __pad: [u8; 3],
        }
    }
}
