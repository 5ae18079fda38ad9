//! `linux/netfilter/xt_rpfilter.h`: the match `rpfilter`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_rpfilter.h";

    constants {
        /// Flags of the match ([`xt_rpfilter_info::flags`]).
        "enum XT_RPFILTER_*": u8 {
            /// The route back may use another interface.
            XT_RPFILTER_LOOSE = 1 << 0;
            /// Look up the route back with the packet's mark.
            XT_RPFILTER_VALID_MARK = 1 << 1;
            /// Let packets with a local source pass.
            XT_RPFILTER_ACCEPT_LOCAL = 1 << 2;
            /// Negates.
            XT_RPFILTER_INVERT = 1 << 3;
        }
    }

    structs {
        /// Data of the match `rpfilter`, revision 0.
        struct xt_rpfilter_info {
            /// `XT_RPFILTER_*`.
            field flags: u8,
        }
    }
}
