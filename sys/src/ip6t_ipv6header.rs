//! `linux/netfilter_ipv6/ip6t_ipv6header.h`: the match `ipv6header`.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6/ip6t_ipv6header.h";

    constants {
        /// Headers of an IPv6 packet.
        "#define MASK_*": u8 {
            /// Hop-by-hop options.
            MASK_HOPOPTS = 128;
            /// Destination options.
            MASK_DSTOPTS = 64;
            /// Routing.
            MASK_ROUTING = 32;
            /// Fragment.
            MASK_FRAGMENT = 16;
            /// Authentication.
            MASK_AH = 8;
            /// Encrypted payload.
            MASK_ESP = 4;
            /// No next header.
            MASK_NONE = 2;
            /// A layer 4 protocol.
            MASK_PROTO = 1;
        }
    }

    structs {
        /// Data of the match `ipv6header`, revision 0.
        struct ip6t_ipv6header_info {
            /// `MASK_*`: headers that must be present.
            field matchflags: u8,
            /// `MASK_*`: negated headers.
            field invflags: u8,
            /// 1: other headers may be present, too.
            field modeflag: u8,
        }
    }
}
