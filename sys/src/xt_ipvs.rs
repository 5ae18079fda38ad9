//! `linux/netfilter/xt_ipvs.h`: the match `ipvs`.

use crate::abi::abi;
use crate::netfilter::nf_inet_addr;

abi! {
    header "linux/netfilter/xt_ipvs.h";

    constants {
        /// Fields that the match compares or negates ([`xt_ipvs_mtinfo::bitmask`], [`xt_ipvs_mtinfo::invert`]).
        "enum XT_IPVS_*": u8 {
            /// The packet belongs to IPVS; all other fields imply this one.
            XT_IPVS_IPVS_PROPERTY = 1 << 0;
            /// Layer 4 protocol.
            XT_IPVS_PROTO = 1 << 1;
            /// Virtual address.
            XT_IPVS_VADDR = 1 << 2;
            /// Virtual port.
            XT_IPVS_VPORT = 1 << 3;
            /// Direction of the packet in its connection; negated for replies.
            XT_IPVS_DIR = 1 << 4;
            /// Forwarding method.
            XT_IPVS_METHOD = 1 << 5;
            /// Virtual port of the controlling connection.
            XT_IPVS_VPORTCTL = 1 << 6;
            /// All bits.
            XT_IPVS_MASK = 0x7f;
            /// All flags that may be given only once.
            XT_IPVS_ONCE_MASK = 0x7e;
        }
    }

    structs {
        /// Data of the match `ipvs`, revision 0.
        struct xt_ipvs_mtinfo {
            /// Virtual address.
            field vaddr: nf_inet_addr,
            /// Its mask.
            field vmask: nf_inet_addr,
            /// Virtual port, big-endian.
            field vport: [u8; 2],
            /// Layer 4 protocol number.
            field l4proto: u8,
            /// Forwarding method: `IP_VS_CONN_F_*` of `linux/ip_vs.h`.
            field fwd_method: u8,
            /// Virtual port of the controlling connection, big-endian.
            field vportctl: [u8; 2],
            /// `XT_IPVS_*`: fields to negate.
            field invert: u8,
            /// `XT_IPVS_*`: fields to compare.
            field bitmask: u8,
        }
    }
}
