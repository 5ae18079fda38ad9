//! `linux/netfilter/xt_set.h`: the match `set` and the target `SET`.

use crate::abi::abi;
use crate::ip_set::{IPSET_DIM_MAX, ip_set_counter_match, ip_set_counter_match0};

abi! {
    header "linux/netfilter/xt_set.h";

    constants {
        /// Flags of one part of an element in revision 0 ([`xt_set_info_v0::flags`]).
        "#define IPSET_*": u32 {
            /// The part is the packet's source.
            IPSET_SRC = 0x01;
            /// The part is the packet's destination.
            IPSET_DST = 0x02;
            /// Negates; in the first part only.
            IPSET_MATCH_INV = 0x04;
        }
    }

    structs {
        /// A set in a rule, revision 0.
        struct xt_set_info_v0 {
            /// Index of the set, host byte order; `IPSET_INVALID_ID` for none.
            field index: u16,
            pad __pad: [u8; 2],
            /// For each part [`IPSET_SRC`] or [`IPSET_DST`], then zeros. The kernel keeps its own form (in C: `u.compat`) in the last element.
            field flags: [u32; IPSET_DIM_MAX as usize + 1] = "u.flags",
        }

        /// Data of the match `set`, revision 0.
        struct xt_set_info_match_v0 {
            /// The set.
            field match_set: xt_set_info_v0,
        }

        /// Data of the target `SET`, revision 0.
        struct xt_set_info_target_v0 {
            /// The set to add to.
            field add_set: xt_set_info_v0,
            /// The set to delete from.
            field del_set: xt_set_info_v0,
        }

        /// A set in a rule, from revision 1 on.
        struct xt_set_info {
            /// Index of the set, host byte order; `IPSET_INVALID_ID` for none.
            field index: u16,
            /// Number of parts of an element: `IPSET_DIM_*`.
            field dim: u8,
            /// `IPSET_INV_MATCH` and `IPSET_DIM_*_SRC`.
            field flags: u8,
        }

        /// Data of the match `set`, revisions 1 and 2 (which supports `IPSET_RETURN_NOMATCH`).
        struct xt_set_info_match_v1 {
            /// The set.
            field match_set: xt_set_info,
        }

        /// Data of the target `SET`, revision 1.
        struct xt_set_info_target_v1 {
            /// The set to add to.
            field add_set: xt_set_info,
            /// The set to delete from.
            field del_set: xt_set_info,
        }

        /// Data of the target `SET`, revision 2: with a timeout.
        struct xt_set_info_target_v2 {
            /// The set to add to.
            field add_set: xt_set_info,
            /// The set to delete from.
            field del_set: xt_set_info,
            /// `IPSET_FLAG_*` of messages, host byte order.
            field flags: u32,
            /// Timeout of the element, in seconds, host byte order; `u32::MAX` for the set's default.
            field timeout: u32,
        }

        /// Data of the match `set`, revision 3: with counters; its padding differs on 32-bit x86.
        struct xt_set_info_match_v3 {
            /// The set.
            field match_set: xt_set_info,
            #[cfg(not(target_arch = "x86"))]
            pad __pad: [u8; 4],
            /// Condition for the element's packet counter.
            field packets: ip_set_counter_match0,
            /// Condition for the element's byte counter.
            field bytes: ip_set_counter_match0,
            /// `IPSET_FLAG_*` of messages, host byte order.
            field flags: u32,
            #[cfg(not(target_arch = "x86"))]
            pad __pad2: [u8; 4],
        }

        /// Data of the target `SET`, revision 3: reads mark, class and queue from a set.
        struct xt_set_info_target_v3 {
            /// The set to add to.
            field add_set: xt_set_info,
            /// The set to delete from.
            field del_set: xt_set_info,
            /// The set to take the packet's mark, class and queue from.
            field map_set: xt_set_info,
            /// `IPSET_FLAG_*` of messages, host byte order.
            field flags: u32,
            /// Timeout of the element, in seconds, host byte order; `u32::MAX` for the set's default.
            field timeout: u32,
        }

        /// Data of the match `set`, revision 4: the same padding everywhere.
        struct xt_set_info_match_v4 {
            /// The set.
            field match_set: xt_set_info,
            pad __pad: [u8; 4],
            /// Condition for the element's packet counter.
            field packets: ip_set_counter_match,
            /// Condition for the element's byte counter.
            field bytes: ip_set_counter_match,
            /// `IPSET_FLAG_*` of messages, host byte order.
            field flags: u32,
            pad __pad2: [u8; 4],
        }
    }
}
