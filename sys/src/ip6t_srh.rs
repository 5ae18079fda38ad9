//! `linux/netfilter_ipv6/ip6t_srh.h`: the match `srh`.

use crate::abi::abi;

abi! {
    header "linux/netfilter_ipv6/ip6t_srh.h";

    constants {
        /// Fields that the match compares (`mt_flags`).
        "#define IP6T_SRH_*": u16 {
            /// The next header.
            IP6T_SRH_NEXTHDR = 0x0001;
            /// The length is equal.
            IP6T_SRH_LEN_EQ = 0x0002;
            /// The length is greater.
            IP6T_SRH_LEN_GT = 0x0004;
            /// The length is less.
            IP6T_SRH_LEN_LT = 0x0008;
            /// The segments left are equal.
            IP6T_SRH_SEGS_EQ = 0x0010;
            /// The segments left are more.
            IP6T_SRH_SEGS_GT = 0x0020;
            /// The segments left are fewer.
            IP6T_SRH_SEGS_LT = 0x0040;
            /// The last entry is equal.
            IP6T_SRH_LAST_EQ = 0x0080;
            /// The last entry is greater.
            IP6T_SRH_LAST_GT = 0x0100;
            /// The last entry is less.
            IP6T_SRH_LAST_LT = 0x0200;
            /// The tag.
            IP6T_SRH_TAG = 0x0400;
            /// The segment before the active one; revision 1.
            IP6T_SRH_PSID = 0x0800;
            /// The segment after the active one; revision 1.
            IP6T_SRH_NSID = 0x1000;
            /// The last segment; revision 1.
            IP6T_SRH_LSID = 0x2000;
            /// All bits.
            IP6T_SRH_MASK = 0x3fff;
        }

        /// Fields that the match negates (`mt_invflags`).
        "#define IP6T_SRH_INV_*": u16 {
            /// The next header.
            IP6T_SRH_INV_NEXTHDR = 0x0001;
            /// The length is equal.
            IP6T_SRH_INV_LEN_EQ = 0x0002;
            /// The length is greater.
            IP6T_SRH_INV_LEN_GT = 0x0004;
            /// The length is less.
            IP6T_SRH_INV_LEN_LT = 0x0008;
            /// The segments left are equal.
            IP6T_SRH_INV_SEGS_EQ = 0x0010;
            /// The segments left are more.
            IP6T_SRH_INV_SEGS_GT = 0x0020;
            /// The segments left are fewer.
            IP6T_SRH_INV_SEGS_LT = 0x0040;
            /// The last entry is equal.
            IP6T_SRH_INV_LAST_EQ = 0x0080;
            /// The last entry is greater.
            IP6T_SRH_INV_LAST_GT = 0x0100;
            /// The last entry is less.
            IP6T_SRH_INV_LAST_LT = 0x0200;
            /// The tag.
            IP6T_SRH_INV_TAG = 0x0400;
            /// The segment before the active one; revision 1.
            IP6T_SRH_INV_PSID = 0x0800;
            /// The segment after the active one; revision 1.
            IP6T_SRH_INV_NSID = 0x1000;
            /// The last segment; revision 1.
            IP6T_SRH_INV_LSID = 0x2000;
            /// All bits.
            IP6T_SRH_INV_MASK = 0x3fff;
        }
    }

    structs {
        /// Data of the match `srh`, revision 0.
        struct ip6t_srh {
            /// Next header.
            field next_hdr: u8,
            /// Length field of the header: in units of 8 bytes, without the first unit.
            field hdr_len: u8,
            /// Segments left.
            field segs_left: u8,
            /// Index of the last entry.
            field last_entry: u8,
            /// Tag. The kernel compares these two bytes with the header's as they are, so they are big-endian in effect.
            field tag: u16,
            /// `IP6T_SRH_*`, host byte order.
            field mt_flags: u16,
            /// `IP6T_SRH_INV_*`, host byte order.
            field mt_invflags: u16,
        }

        /// Data of the match `srh`, revision 1: with segments.
        #[repr(align(4))]
        struct ip6t_srh1 {
            /// Next header.
            field next_hdr: u8,
            /// Length field of the header: in units of 8 bytes, without the first unit.
            field hdr_len: u8,
            /// Segments left.
            field segs_left: u8,
            /// Index of the last entry.
            field last_entry: u8,
            /// Tag. The kernel compares these two bytes with the header's as they are, so they are big-endian in effect.
            field tag: u16,
            pad __pad: [u8; 2],
            /// Segment before the active one, network byte order.
            field psid_addr: [u8; 16],
            /// Segment after the active one, network byte order.
            field nsid_addr: [u8; 16],
            /// Last segment, network byte order.
            field lsid_addr: [u8; 16],
            /// Mask of `psid_addr`, network byte order.
            field psid_msk: [u8; 16],
            /// Mask of `nsid_addr`, network byte order.
            field nsid_msk: [u8; 16],
            /// Mask of `lsid_addr`, network byte order.
            field lsid_msk: [u8; 16],
            /// `IP6T_SRH_*`, host byte order.
            field mt_flags: u16,
            /// `IP6T_SRH_INV_*`, host byte order.
            field mt_invflags: u16,
        }
    }
}
