//! `linux/netfilter/x_tables.h`: matches, targets, counters and names shared by the legacy IPv4, IPv6 and ARP tables.
//!
//! A rule consists of an entry (`ipt_entry`, `ip6t_entry`, `arpt_entry`), its matches, and one target. Each match and
//! target starts at a multiple of [`XT_ALIGN`]. Its size field includes the header, the extension's own data and the
//! padding up to the next multiple.

use crate::abi::abi;

abi! {
    header "linux/netfilter/x_tables.h";

    constants {
        /// Sizes of the name fields of x_tables, in bytes, the closing NUL included.
        "#define XT_*_MAXNAMELEN": usize {
            /// A function's name, as an error target carries it (a user-defined chain's name).
            XT_FUNCTION_MAXNAMELEN = 30;
            /// A match's or a target's name.
            XT_EXTENSION_MAXNAMELEN = 29;
            /// A table's name.
            XT_TABLE_MAXNAMELEN = 32;
        }

        /// Verdict of a target extension to continue with the next rule.
        "#define XT_CONTINUE": u32 {
            XT_CONTINUE = 0xffff_ffff;
        }

        /// Verdict of a standard target that returns to the calling chain, or to the policy in a base chain.
        "#define XT_RETURN": i32 {
            XT_RETURN = -5;
        }

        /// Bit of the inversion flags that all three kinds of entry share: negate the protocol.
        "#define XT_INV_PROTO": u8 {
            XT_INV_PROTO = 0x40;
        }

        /// Alignment of matches, targets and entries, in bytes; the kernel's `XT_ALIGN()` rounds up to it.
        "#define XT_ALIGN": usize {
            XT_ALIGN = core::mem::align_of::<_xt_align>(), c "__alignof__(struct _xt_align)";
        }
    }

    strings {
        /// Name of the target that holds a verdict or a jump ([`xt_standard_target`]).
        XT_STANDARD_TARGET = "";
        /// Name of the target that marks the head of a user-defined chain and the end of the table ([`xt_error_target`]).
        XT_ERROR_TARGET = "ERROR";
    }

    structs {
        /// Header of a match. The extension's data follows directly, `match_size` minus 32 bytes with its padding.
        #[cfg_attr(target_pointer_width = "64", repr(align(8)))]
        #[cfg_attr(target_pointer_width = "32", repr(align(4)))]
        struct xt_entry_match {
            /// Bytes from this head to the next match or to the target; a multiple of [`XT_ALIGN`].
            field match_size: u16 = "u.user.match_size",
            /// Name of the match, NUL-terminated.
            field name: [u8; XT_EXTENSION_MAXNAMELEN] = "u.user.name",
            /// Revision of the match's data layout.
            field revision: u8 = "u.user.revision",
        }

        /// Header of a target. The extension's data follows directly, `target_size` minus 32 bytes with its padding.
        #[cfg_attr(target_pointer_width = "64", repr(align(8)))]
        #[cfg_attr(target_pointer_width = "32", repr(align(4)))]
        struct xt_entry_target {
            /// Bytes from this head to the next entry; a multiple of [`XT_ALIGN`].
            field target_size: u16 = "u.user.target_size",
            /// Name of the target, NUL-terminated; empty for a verdict or a jump.
            field name: [u8; XT_EXTENSION_MAXNAMELEN] = "u.user.name",
            /// Revision of the target's data layout.
            field revision: u8 = "u.user.revision",
        }

        /// The target of a rule that accepts, drops, returns, queues or jumps.
        struct xt_standard_target {
            /// Head, with an empty name ([`XT_STANDARD_TARGET`]).
            field target: xt_entry_target,
            /// Negative: minus one minus an `NF_*` verdict, or [`XT_RETURN`]. Otherwise: the offset in bytes, from the start of the table's entries, of the first rule of the chain to jump to.
            field verdict: i32,
            #[cfg(target_pointer_width = "64")]
            pad __pad: [u8; 4],
        }

        /// The target of the entry that starts a user-defined chain, and of the last entry of a table.
        struct xt_error_target {
            /// Head, with the name [`XT_ERROR_TARGET`].
            field target: xt_entry_target,
            /// The chain's name, or `ERROR` at the end of the table; NUL-terminated.
            field errorname: [u8; XT_FUNCTION_MAXNAMELEN],
            pad __pad: [u8; 2],
        }

        /// Argument of the `…_SO_GET_REVISION_MATCH` and `…_SO_GET_REVISION_TARGET` socket options, which check whether the kernel supports this revision.
        struct xt_get_revision {
            /// Name of the match or target, NUL-terminated.
            field name: [u8; XT_EXTENSION_MAXNAMELEN],
            /// Requested revision.
            field revision: u8,
        }

        /// Has the alignment that x_tables requires; it has no other use.
        struct _xt_align {
            /// Any byte.
            field u8: u8,
            pad __pad: [u8; 1],
            /// Any 16-bit number.
            field u16: u16,
            /// Any 32-bit number.
            field u32: u32,
            /// Any 64-bit number.
            field u64: u64,
        }

        /// A rule's counters.
        struct xt_counters {
            /// Packets.
            field pcnt: u64,
            /// Bytes.
            field bcnt: u64,
        }

        /// Header of the argument of the `…_SO_SET_ADD_COUNTERS` socket options; `num_counters` times [`xt_counters`] follow, one for each entry of the table in order.
        #[cfg_attr(not(target_arch = "x86"), repr(align(8)))]
        struct xt_counters_info {
            /// Name of the table, NUL-terminated.
            field name: [u8; XT_TABLE_MAXNAMELEN],
            /// Number of counters that follow; must be the table's number of entries.
            field num_counters: u32,
            #[cfg(not(target_arch = "x86"))]
            pad __pad: [u8; 4],
        }
    }
}
