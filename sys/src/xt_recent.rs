//! `linux/netfilter/xt_recent.h`: the match `recent`.

use crate::abi::abi;
use crate::netfilter::nf_inet_addr;

abi! {
    header "linux/netfilter/xt_recent.h";

    constants {
        /// Operation of the match ([`xt_recent_mtinfo::check_set`]).
        "enum XT_RECENT_* (actions)": u8 {
            /// Looks for the address in the list.
            XT_RECENT_CHECK = 1 << 0;
            /// Adds the address to the list.
            XT_RECENT_SET = 1 << 1;
            /// Looks for the address and notes the time.
            XT_RECENT_UPDATE = 1 << 2;
            /// Removes the address.
            XT_RECENT_REMOVE = 1 << 3;
            /// The time to live must equal the stored one.
            XT_RECENT_TTL = 1 << 4;
            /// Drops old entries.
            XT_RECENT_REAP = 1 << 5;
        }

        /// Groups of these flags.
        "#define XT_RECENT_*": u8 {
            /// Those that need a check or an update.
            XT_RECENT_MODIFIERS = 0x30;
            /// All bits.
            XT_RECENT_VALID_FLAGS = 0x3f;
        }

        /// The address to use ([`xt_recent_mtinfo::side`]).
        "enum XT_RECENT_* (sides)": u8 {
            /// The source.
            XT_RECENT_SOURCE = 0;
            /// The destination.
            XT_RECENT_DEST = 1;
        }

        /// Maximum size of a list's name, in bytes, including the closing NUL.
        "enum XT_RECENT_NAME_LEN": usize {
            XT_RECENT_NAME_LEN = 200;
        }
    }

    structs {
        /// Data of the match `recent`, revision 0.
        struct xt_recent_mtinfo {
            /// Maximum age of an entry, in seconds, host byte order; 0 for any age.
            field seconds: u32,
            /// Minimum number of packets seen, host byte order; 0 for any number.
            field hit_count: u32,
            /// `XT_RECENT_*`: the operation.
            field check_set: u8,
            /// 1 negates.
            field invert: u8,
            /// Name of the list, NUL-terminated.
            field name: [u8; XT_RECENT_NAME_LEN],
            /// [`XT_RECENT_SOURCE`] or [`XT_RECENT_DEST`].
            field side: u8,
            pad __pad: [u8; 1],
        }

        /// Data of the match `recent`, revision 1: with a mask.
        struct xt_recent_mtinfo_v1 {
            /// Maximum age of an entry, in seconds, host byte order; 0 for any age.
            field seconds: u32,
            /// Minimum number of packets seen, host byte order; 0 for any number.
            field hit_count: u32,
            /// `XT_RECENT_*`: the operation.
            field check_set: u8,
            /// 1 negates.
            field invert: u8,
            /// Name of the list, NUL-terminated.
            field name: [u8; XT_RECENT_NAME_LEN],
            /// [`XT_RECENT_SOURCE`] or [`XT_RECENT_DEST`].
            field side: u8,
            pad __pad: [u8; 1],
            /// Mask that addresses are stored under.
            field mask: nf_inet_addr,
        }
    }
}
