//! `linux/netfilter/xt_osf.h`: the match `osf`; its structs are those of
//! [`nfnetlink_osf`](crate::nfnetlink_osf) under other names.

use crate::abi::abi;

pub use crate::nfnetlink_osf::{
    nf_osf_info as xt_osf_info, nf_osf_nlmsg as xt_osf_nlmsg, nf_osf_opt as xt_osf_opt,
    nf_osf_user_finger as xt_osf_user_finger, nf_osf_wc as xt_osf_wc,
};

abi! {
    header "linux/netfilter/xt_osf.h";

    constants {
        /// Flags of the match ([`xt_osf_info::flags`]).
        "#define XT_OSF_*": u32 {
            /// The genre is compared.
            XT_OSF_GENRE = 1 << 0;
            /// Negates.
            XT_OSF_INVERT = 1 << 3;
            /// [`xt_osf_info::ttl`] counts.
            XT_OSF_TTL = 1 << 1;
            /// [`xt_osf_info::loglevel`] counts.
            XT_OSF_LOG = 1 << 2;
        }

        /// Packets and fingerprints to log.
        "#define XT_OSF_LOGLEVEL_*": u32 {
            /// Every fingerprint that fits, and packets that none fits.
            XT_OSF_LOGLEVEL_ALL = 0;
            /// Only the first fingerprint that fits.
            XT_OSF_LOGLEVEL_FIRST = 1;
            /// Every fingerprint that fits, but no unknown packets.
            XT_OSF_LOGLEVEL_ALL_KNOWN = 2;
        }

        /// Comparison of the packet's time to live with the fingerprint's.
        "#define XT_OSF_TTL_*": u32 {
            /// Both must be equal.
            XT_OSF_TTL_TRUE = 0;
            /// It is not compared.
            XT_OSF_TTL_NOCHECK = 2;
            /// The packet's may be less.
            XT_OSF_TTL_LESS = 1;
        }
    }
}
