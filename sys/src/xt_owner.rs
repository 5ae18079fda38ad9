//! `linux/netfilter/xt_owner.h`: the match `owner`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_owner.h";

    constants {
        /// Fields that the match compares or negates.
        "enum XT_OWNER_*": u8 {
            /// The user.
            XT_OWNER_UID = 1 << 0;
            /// The group.
            XT_OWNER_GID = 1 << 1;
            /// Whether there is a socket.
            XT_OWNER_SOCKET = 1 << 2;
            /// The supplementary groups, too.
            XT_OWNER_SUPPL_GROUPS = 1 << 3;
        }

        /// All bits.
        "#define XT_OWNER_MASK": u8 {
            XT_OWNER_MASK = 0xf;
        }
    }

    structs {
        /// Data of the match `owner`, revision 1.
        struct xt_owner_match_info {
            /// First user id, host byte order.
            field uid_min: u32,
            /// Last user id, host byte order.
            field uid_max: u32,
            /// First group id, host byte order.
            field gid_min: u32,
            /// Last group id, host byte order.
            field gid_max: u32,
            /// `XT_OWNER_*`: fields to compare.
            field r#match: u8 = "match",
            /// `XT_OWNER_*`: fields to negate.
            field invert: u8,
            pad __pad: [u8; 2],
        }
    }
}
