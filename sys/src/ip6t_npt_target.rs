//! `linux/netfilter_ipv6/ip6t_NPT.h`: the targets `SNPT` and `DNPT`.

use crate::abi::abi;
use crate::netfilter::nf_inet_addr;

abi! {
    header "linux/netfilter_ipv6/ip6t_NPT.h";

    structs {
        /// Data of the targets `SNPT` and `DNPT`, revision 0.
        struct ip6t_npt_tginfo {
            /// Prefix before.
            field src_pfx: nf_inet_addr,
            /// Prefix after.
            field dst_pfx: nf_inet_addr,
            /// Length of the prefix before, in bits.
            field src_pfx_len: u8,
            /// Length of the prefix after, in bits.
            field dst_pfx_len: u8,
            /// The kernel's own checksum (in C: `__sum16`); zero.
            field adjustment: [u8; 2],
        }
    }
}
