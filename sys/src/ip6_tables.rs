//! `linux/netfilter_ipv6/ip6_tables.h`: the legacy IPv6 tables, read and replaced through `getsockopt` and `setsockopt`
//! on an IPv6 socket at level `IPPROTO_IPV6`.

use crate::abi::abi;
use crate::netfilter::NF_INET_NUMHOOKS;
use crate::x_tables::{XT_TABLE_MAXNAMELEN, xt_counters, xt_error_target, xt_standard_target};

abi! {
    header "linux/netfilter_ipv6/ip6_tables.h";

    constants {
        /// Flags of an IPv6 entry ([`ip6t_ip6::flags`]).
        "#define IP6T_F_*": u8 {
            /// The protocol is compared; without it the protocol field is ignored.
            IP6T_F_PROTO = 0x01;
            /// The type of service is compared.
            IP6T_F_TOS = 0x02;
            /// The jump is a goto: a return continues in the caller of the chain with this rule.
            IP6T_F_GOTO = 0x04;
            /// All flags.
            IP6T_F_MASK = 0x07;
        }

        /// Inversions of an IPv6 entry ([`ip6t_ip6::invflags`]): negated parts of the header.
        "#define IP6T_INV_*": u8 {
            /// The incoming interface.
            IP6T_INV_VIA_IN = 0x01;
            /// The outgoing interface.
            IP6T_INV_VIA_OUT = 0x02;
            /// The type of service.
            IP6T_INV_TOS = 0x04;
            /// The source address.
            IP6T_INV_SRCIP = 0x08;
            /// The destination address.
            IP6T_INV_DSTIP = 0x10;
            /// The fragment flag.
            IP6T_INV_FRAG = 0x20;
            /// The protocol.
            IP6T_INV_PROTO = 0x40;
            /// All inversions.
            IP6T_INV_MASK = 0x7f;
        }

        /// Lowest number of the IPv6 tables' socket options.
        "#define IP6T_BASE_CTL": i32 {
            IP6T_BASE_CTL = 64;
        }

        /// Socket options that write the IPv6 tables (`setsockopt`).
        "#define IP6T_SO_SET_*": i32 {
            /// Replaces a table with the entries after an [`ip6t_replace`].
            IP6T_SO_SET_REPLACE = 64;
            /// Adds to a table's counters; takes an `xt_counters_info`.
            IP6T_SO_SET_ADD_COUNTERS = 65;
            /// The highest value.
            IP6T_SO_SET_MAX = 65;
        }

        /// Socket options that read the IPv6 tables (`getsockopt`).
        "#define IP6T_SO_GET_*": i32 {
            /// A table's sizes and offsets; takes and fills an [`ip6t_getinfo`].
            IP6T_SO_GET_INFO = 64;
            /// A table's entries; takes an [`ip6t_get_entries`].
            IP6T_SO_GET_ENTRIES = 65;
            /// Whether a match's revision is known; takes an `xt_get_revision`.
            IP6T_SO_GET_REVISION_MATCH = 68;
            /// Whether a target's revision is known; takes an `xt_get_revision`.
            IP6T_SO_GET_REVISION_TARGET = 69;
            /// The highest value.
            IP6T_SO_GET_MAX = 69;
        }

        /// Socket option that returns a connection's original destination, before NAT (`getsockopt`).
        "#define IP6T_SO_ORIGINAL_DST": i32 {
            IP6T_SO_ORIGINAL_DST = 80;
        }

        /// Inversion of the built-in `icmp6` match ([`ip6t_icmp::invflags`]): negate type and code.
        "#define IP6T_ICMP_INV": u8 {
            IP6T_ICMP_INV = 0x01;
        }
    }

    structs {
        /// Header match of an IPv6 entry, without match extensions. All zero matches every packet.
        #[repr(align(4))]
        struct ip6t_ip6 {
            /// Source address, network byte order.
            field src: [u8; 16],
            /// Destination address, network byte order.
            field dst: [u8; 16],
            /// Mask of the source address, network byte order.
            field smsk: [u8; 16],
            /// Mask of the destination address, network byte order.
            field dmsk: [u8; 16],
            /// Name of the incoming interface, NUL-padded.
            field iniface: [u8; 16],
            /// Name of the outgoing interface, NUL-padded.
            field outiface: [u8; 16],
            /// Mask of `iniface`: 0xff for each byte to compare.
            field iniface_mask: [u8; 16],
            /// Mask of `outiface`: 0xff for each byte to compare.
            field outiface_mask: [u8; 16],
            /// Protocol number, host byte order; compared when [`IP6T_F_PROTO`] is set.
            field proto: u16,
            /// Type of service; compared when [`IP6T_F_TOS`] is set.
            field tos: u8,
            /// `IP6T_F_*`.
            field flags: u8,
            /// `IP6T_INV_*`.
            field invflags: u8,
            pad __pad: [u8; 3],
        }

        /// Header of an IPv6 rule; its matches (`xt_entry_match`) and its target (`xt_entry_target`) follow.
        struct ip6t_entry {
            /// Header match of the entry.
            field ipv6: ip6t_ip6,
            /// Not used by the kernel; iptables writes the fields that it uses.
            field nfcache: u32,
            /// Bytes from this entry to its target.
            field target_offset: u16,
            /// Bytes from this entry to the next one.
            field next_offset: u16,
            /// The kernel's own note of the chains that reach this entry; not for users.
            field comefrom: u32,
            #[cfg(not(target_arch = "x86"))]
            pad __pad: [u8; 4],
            /// Packets and bytes counted.
            field counters: xt_counters,
        }

        /// A whole rule without matches that ends in a verdict or a jump.
        struct ip6t_standard {
            /// Header of the rule.
            field entry: ip6t_entry,
            /// Its target.
            field target: xt_standard_target,
            #[cfg(all(target_pointer_width = "32", not(target_arch = "x86")))]
            pad __pad: [u8; 4],
        }

        /// A whole rule that marks the head of a user-defined chain or the end of the table.
        struct ip6t_error {
            /// Header of the rule.
            field entry: ip6t_entry,
            /// Its target.
            field target: xt_error_target,
        }

        /// Data of the built-in `icmp6` match.
        struct ip6t_icmp {
            /// ICMPv6 type.
            field r#type: u8 = "type",
            /// Lowest and highest code.
            field code: [u8; 2],
            /// [`IP6T_ICMP_INV`] or 0.
            field invflags: u8,
        }

        /// A table's sizes and offsets. The caller fills in the name, the kernel the rest ([`IP6T_SO_GET_INFO`]).
        struct ip6t_getinfo {
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

        /// Header of the argument of [`IP6T_SO_SET_REPLACE`]; the new entries follow, `size` bytes.
        struct ip6t_replace {
            /// Name of the table, NUL-terminated.
            field name: [u8; XT_TABLE_MAXNAMELEN],
            /// Hooks for which the table has a base chain; must equal the value in [`ip6t_getinfo`].
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

        /// Header of the argument of [`IP6T_SO_GET_ENTRIES`]; the kernel writes the entries after it, `size` bytes.
        #[cfg_attr(not(target_arch = "x86"), repr(align(8)))]
        struct ip6t_get_entries {
            /// Name of the table, NUL-terminated.
            field name: [u8; XT_TABLE_MAXNAMELEN],
            /// Size of all entries, in bytes, as in [`ip6t_getinfo`].
            field size: u32,
            #[cfg(not(target_arch = "x86"))]
            pad __pad: [u8; 4],
        }
    }
}
