//! `linux/netfilter_arp/arp_tables.h`: the legacy ARP tables, read and replaced through `getsockopt` and `setsockopt`
//! on an IPv4 socket at level `IPPROTO_IP`.

use crate::abi::abi;
use crate::netfilter_arp::NF_ARP_NUMHOOKS;
use crate::x_tables::{XT_TABLE_MAXNAMELEN, xt_counters};

abi! {
    header "linux/netfilter_arp/arp_tables.h";

    constants {
        /// Maximum size of a hardware address, in bytes.
        "#define ARPT_DEV_ADDR_LEN_MAX": usize {
            ARPT_DEV_ADDR_LEN_MAX = 16;
        }

        /// Flags of an ARP entry ([`arpt_arp::flags`]); none are defined.
        "#define ARPT_F_MASK": u8 {
            ARPT_F_MASK = 0x00;
        }

        /// Inversions of an ARP entry ([`arpt_arp::invflags`]): negated parts of the header.
        "#define ARPT_INV_*": u16 {
            /// The incoming interface.
            ARPT_INV_VIA_IN = 0x0001;
            /// The outgoing interface.
            ARPT_INV_VIA_OUT = 0x0002;
            /// The sender's IP address.
            ARPT_INV_SRCIP = 0x0004;
            /// The target's IP address.
            ARPT_INV_TGTIP = 0x0008;
            /// The sender's hardware address.
            ARPT_INV_SRCDEVADDR = 0x0010;
            /// The target's hardware address.
            ARPT_INV_TGTDEVADDR = 0x0020;
            /// The ARP operation.
            ARPT_INV_ARPOP = 0x0040;
            /// The hardware type.
            ARPT_INV_ARPHRD = 0x0080;
            /// The protocol type.
            ARPT_INV_ARPPRO = 0x0100;
            /// The length of a hardware address.
            ARPT_INV_ARPHLN = 0x0200;
            /// All inversions.
            ARPT_INV_MASK = 0x03ff;
        }

        /// Lowest number of the ARP tables' socket options.
        "#define ARPT_BASE_CTL": i32 {
            ARPT_BASE_CTL = 96;
        }

        /// Socket options that write the ARP tables (`setsockopt`).
        "#define ARPT_SO_SET_*": i32 {
            /// Replaces a table with the entries after an [`arpt_replace`].
            ARPT_SO_SET_REPLACE = 96;
            /// Adds to a table's counters; takes an `xt_counters_info`.
            ARPT_SO_SET_ADD_COUNTERS = 97;
            /// The highest value.
            ARPT_SO_SET_MAX = 97;
        }

        /// Socket options that read the ARP tables (`getsockopt`).
        "#define ARPT_SO_GET_*": i32 {
            /// A table's sizes and offsets; takes and fills an [`arpt_getinfo`].
            ARPT_SO_GET_INFO = 96;
            /// A table's entries; takes an [`arpt_get_entries`].
            ARPT_SO_GET_ENTRIES = 97;
            /// Whether a target's revision is known; takes an `xt_get_revision`.
            ARPT_SO_GET_REVISION_TARGET = 99;
            /// The highest value.
            ARPT_SO_GET_MAX = 99;
        }
    }

    structs {
        /// A hardware address and its mask.
        struct arpt_devaddr_info {
            /// The address; as many bytes as the hardware type has.
            field addr: [u8; ARPT_DEV_ADDR_LEN_MAX],
            /// Bits of `addr` to compare.
            field mask: [u8; ARPT_DEV_ADDR_LEN_MAX],
        }

        /// Header match of an ARP entry. All zero matches every packet.
        #[repr(align(4))]
        struct arpt_arp {
            /// The sender's IP address, network byte order.
            field src: [u8; 4],
            /// The target's IP address, network byte order.
            field tgt: [u8; 4],
            /// Mask of the sender's IP address, network byte order.
            field smsk: [u8; 4],
            /// Mask of the target's IP address, network byte order.
            field tmsk: [u8; 4],
            /// Length of a hardware address, in bytes.
            field arhln: u8,
            /// Mask of `arhln`.
            field arhln_mask: u8,
            /// The sender's hardware address.
            field src_devaddr: arpt_devaddr_info,
            /// The target's hardware address.
            field tgt_devaddr: arpt_devaddr_info,
            /// ARP operation, big-endian.
            field arpop: [u8; 2],
            /// Mask of `arpop`, big-endian.
            field arpop_mask: [u8; 2],
            /// Hardware type, big-endian.
            field arhrd: [u8; 2],
            /// Mask of `arhrd`, big-endian.
            field arhrd_mask: [u8; 2],
            /// Protocol type, big-endian.
            field arpro: [u8; 2],
            /// Mask of `arpro`, big-endian.
            field arpro_mask: [u8; 2],
            /// Name of the incoming interface, NUL-padded.
            field iniface: [u8; 16],
            /// Name of the outgoing interface, NUL-padded.
            field outiface: [u8; 16],
            /// Mask of `iniface`: 0xff for each byte to compare.
            field iniface_mask: [u8; 16],
            /// Mask of `outiface`: 0xff for each byte to compare.
            field outiface_mask: [u8; 16],
            /// No flag is defined; 0.
            field flags: u8,
            pad __pad: [u8; 1],
            /// `ARPT_INV_*`, host byte order.
            field invflags: u16,
            pad __pad2: [u8; 2],
        }

        /// Header of an ARP rule; its target (`xt_entry_target`) follows.
        struct arpt_entry {
            /// Header match of the entry.
            field arp: arpt_arp,
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

        /// A table's sizes and offsets. The caller fills in the name, the kernel the rest ([`ARPT_SO_GET_INFO`]).
        struct arpt_getinfo {
            /// Name of the table, NUL-terminated.
            field name: [u8; XT_TABLE_MAXNAMELEN],
            /// Hooks that the table has a base chain for: bit `1 << NF_ARP_*`.
            field valid_hooks: u32,
            /// For each hook, the offset of its base chain's first entry, in bytes.
            field hook_entry: [u32; NF_ARP_NUMHOOKS as usize],
            /// For each hook, the offset of its base chain's last entry (the policy), in bytes.
            field underflow: [u32; NF_ARP_NUMHOOKS as usize],
            /// Number of entries.
            field num_entries: u32,
            /// Size of all entries, in bytes.
            field size: u32,
        }

        /// Header of the argument of [`ARPT_SO_SET_REPLACE`]; the new entries follow, `size` bytes.
        struct arpt_replace {
            /// Name of the table, NUL-terminated.
            field name: [u8; XT_TABLE_MAXNAMELEN],
            /// Hooks for which the table has a base chain; must equal the value in [`arpt_getinfo`].
            field valid_hooks: u32,
            /// Number of new entries.
            field num_entries: u32,
            /// Size of the new entries, in bytes.
            field size: u32,
            /// For each hook, the offset of its base chain's first entry, in bytes.
            field hook_entry: [u32; NF_ARP_NUMHOOKS as usize],
            /// For each hook, the offset of its base chain's last entry (the policy), in bytes.
            field underflow: [u32; NF_ARP_NUMHOOKS as usize],
            /// Capacity of `counters`; must be the number of entries of the replaced table.
            field num_counters: u32,
            /// Address (in C: `struct xt_counters *`) where the kernel stores the old entries' counters.
            field counters: usize,
            #[cfg(all(target_pointer_width = "32", not(target_arch = "x86")))]
            pad __pad: [u8; 4],
        }

        /// Header of the argument of [`ARPT_SO_GET_ENTRIES`]; the kernel writes the entries after it, `size` bytes.
        #[cfg_attr(not(target_arch = "x86"), repr(align(8)))]
        struct arpt_get_entries {
            /// Name of the table, NUL-terminated.
            field name: [u8; XT_TABLE_MAXNAMELEN],
            /// Size of all entries, in bytes, as in [`arpt_getinfo`].
            field size: u32,
            #[cfg(not(target_arch = "x86"))]
            pad __pad: [u8; 4],
        }
    }
}
