//! `linux/netfilter_ipv4/ip_tables.h`: the legacy IPv4 tables, read and replaced through `getsockopt` and `setsockopt`
//! on an IPv4 socket at level `IPPROTO_IP`.

use crate::abi::abi;
use crate::netfilter::NF_INET_NUMHOOKS;
use crate::x_tables::{XT_TABLE_MAXNAMELEN, xt_counters};

abi! {
    header "linux/netfilter_ipv4/ip_tables.h";

    constants {
        /// Flags of an IPv4 entry ([`ipt_ip::flags`]).
        "#define IPT_F_*": u8 {
            /// Only fragments after the first one match.
            IPT_F_FRAG = 0x01;
            /// The jump is a goto: a return continues in the caller of the chain with this rule.
            IPT_F_GOTO = 0x02;
            /// All flags.
            IPT_F_MASK = 0x03;
        }

        /// Inversions of an IPv4 entry ([`ipt_ip::invflags`]): negated parts of the header.
        "#define IPT_INV_*": u8 {
            /// The incoming interface.
            IPT_INV_VIA_IN = 0x01;
            /// The outgoing interface.
            IPT_INV_VIA_OUT = 0x02;
            /// The type of service.
            IPT_INV_TOS = 0x04;
            /// The source address.
            IPT_INV_SRCIP = 0x08;
            /// The destination address.
            IPT_INV_DSTIP = 0x10;
            /// The fragment flag.
            IPT_INV_FRAG = 0x20;
            /// The protocol.
            IPT_INV_PROTO = 0x40;
            /// All inversions.
            IPT_INV_MASK = 0x7f;
        }

        /// Lowest number of the IPv4 tables' socket options.
        "#define IPT_BASE_CTL": i32 {
            IPT_BASE_CTL = 64;
        }

        /// Socket options that write the IPv4 tables (`setsockopt`).
        "#define IPT_SO_SET_*": i32 {
            /// Replaces a table with the entries after an [`ipt_replace`].
            IPT_SO_SET_REPLACE = 64;
            /// Adds to a table's counters; takes an `xt_counters_info`.
            IPT_SO_SET_ADD_COUNTERS = 65;
            /// The highest value.
            IPT_SO_SET_MAX = 65;
        }

        /// Socket options that read the IPv4 tables (`getsockopt`).
        "#define IPT_SO_GET_*": i32 {
            /// A table's sizes and offsets; takes and fills an [`ipt_getinfo`].
            IPT_SO_GET_INFO = 64;
            /// A table's entries; takes an [`ipt_get_entries`].
            IPT_SO_GET_ENTRIES = 65;
            /// Whether a match's revision is known; takes an `xt_get_revision`.
            IPT_SO_GET_REVISION_MATCH = 66;
            /// Whether a target's revision is known; takes an `xt_get_revision`.
            IPT_SO_GET_REVISION_TARGET = 67;
            /// The highest value.
            IPT_SO_GET_MAX = 67;
        }

        /// Inversion of the built-in `icmp` match ([`ipt_icmp::invflags`]): negate type and code.
        "#define IPT_ICMP_INV": u8 {
            IPT_ICMP_INV = 0x01;
        }
    }

    structs {
        /// Header match of an IPv4 entry, without match extensions. All zero matches every packet.
        #[repr(align(4))]
        struct ipt_ip {
            /// Source address, network byte order.
            field src: [u8; 4],
            /// Destination address, network byte order.
            field dst: [u8; 4],
            /// Mask of the source address, network byte order.
            field smsk: [u8; 4],
            /// Mask of the destination address, network byte order.
            field dmsk: [u8; 4],
            /// Name of the incoming interface, NUL-padded.
            field iniface: [u8; 16],
            /// Name of the outgoing interface, NUL-padded.
            field outiface: [u8; 16],
            /// Mask of `iniface`: 0xff for each byte to compare.
            field iniface_mask: [u8; 16],
            /// Mask of `outiface`: 0xff for each byte to compare.
            field outiface_mask: [u8; 16],
            /// IP protocol number, host byte order; 0 for any.
            field proto: u16,
            /// `IPT_F_*`.
            field flags: u8,
            /// `IPT_INV_*`.
            field invflags: u8,
        }

        /// Header of an IPv4 rule; its matches (`xt_entry_match`) and its target (`xt_entry_target`) follow.
        struct ipt_entry {
            /// Header match of the entry.
            field ip: ipt_ip,
            /// Not used by the kernel; iptables writes the fields that it uses.
            field nfcache: u32,
            /// Bytes from this entry to its target.
            field target_offset: u16,
            /// Bytes from this entry to the next one.
            field next_offset: u16,
            /// The kernel's own note of the chains that reach this entry; not for users.
            field comefrom: u32,
            /// Packets and bytes counted.
            field counters: xt_counters,
        }

        /// Data of the built-in `icmp` match.
        struct ipt_icmp {
            /// ICMP type; 0xff for any.
            field r#type: u8 = "type",
            /// Lowest and highest code.
            field code: [u8; 2],
            /// [`IPT_ICMP_INV`] or 0.
            field invflags: u8,
        }

        /// A table's sizes and offsets. The caller fills in the name, the kernel the rest ([`IPT_SO_GET_INFO`]).
        struct ipt_getinfo {
            /// Name of the table, NUL-terminated.
            field name: [u8; XT_TABLE_MAXNAMELEN],
            /// Hooks that the table has a base chain for: bit `1 << NF_INET_*`.
            field valid_hooks: u32,
            /// For each hook, the offset of its base chain's first entry, in bytes.
            field hook_entry: [u32; NF_INET_NUMHOOKS as usize],
            /// For each hook, the offset of its base chain's last entry (the policy), in bytes.
            field underflow: [u32; NF_INET_NUMHOOKS as usize],
            /// Number of entries.
            field num_entries: u32,
            /// Size of all entries, in bytes.
            field size: u32,
        }

        /// Header of the argument of [`IPT_SO_SET_REPLACE`]; the new entries follow, `size` bytes.
        struct ipt_replace {
            /// Name of the table, NUL-terminated.
            field name: [u8; XT_TABLE_MAXNAMELEN],
            /// Hooks for which the table has a base chain; must equal the value in [`ipt_getinfo`].
            field valid_hooks: u32,
            /// Number of new entries.
            field num_entries: u32,
            /// Size of the new entries, in bytes.
            field size: u32,
            /// For each hook, the offset of its base chain's first entry, in bytes.
            field hook_entry: [u32; NF_INET_NUMHOOKS as usize],
            /// For each hook, the offset of its base chain's last entry (the policy), in bytes.
            field underflow: [u32; NF_INET_NUMHOOKS as usize],
            /// Capacity of `counters`; must be the number of entries of the replaced table.
            field num_counters: u32,
            /// Address (in C: `struct xt_counters *`) where the kernel stores the old entries' counters.
            field counters: usize,
            #[cfg(all(target_pointer_width = "32", not(target_arch = "x86")))]
            pad __pad: [u8; 4],
        }

        /// Header of the argument of [`IPT_SO_GET_ENTRIES`]; the kernel writes the entries after it, `size` bytes.
        #[cfg_attr(not(target_arch = "x86"), repr(align(8)))]
        struct ipt_get_entries {
            /// Name of the table, NUL-terminated.
            field name: [u8; XT_TABLE_MAXNAMELEN],
            /// Size of all entries, in bytes, as in [`ipt_getinfo`].
            field size: u32,
            #[cfg(not(target_arch = "x86"))]
            pad __pad: [u8; 4],
        }
    }
}
