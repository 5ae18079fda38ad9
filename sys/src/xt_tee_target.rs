//! `linux/netfilter/xt_TEE.h`: the target `TEE`.

use crate::abi::abi;
use crate::netfilter::nf_inet_addr;

abi! {
    header "linux/netfilter/xt_TEE.h";

    structs {
        /// Data of the target `TEE`, revision 1.
        #[repr(align(8))]
        struct xt_tee_tginfo {
            /// Host on the local network that receives the copy, network byte order; not zero.
            field gw: nf_inet_addr,
            /// Outgoing interface of the copy, NUL-terminated; empty leaves it to routing.
            field oif: [u8; 16],
            /// The kernel's own pointer; zero.
            field r#priv: usize = "priv",
            #[cfg(target_pointer_width = "32")]
            pad __pad: [u8; 4],
        }
    }
}
