//! `linux/netfilter/xt_HMARK.h`: the target `HMARK`.

use crate::abi::abi;
use crate::netfilter::nf_inet_addr;

abi! {
    header "linux/netfilter/xt_HMARK.h";

    constants {
        /// Bit numbers of `xt_hmark_info.flags` (`1 << XT_HMARK_*`): the given options and hashed fields.
        "enum XT_HMARK_*": u32 {
            /// A mask for the source address is given.
            XT_HMARK_SADDR_MASK = 0;
            /// A mask for the destination address is given.
            XT_HMARK_DADDR_MASK = 1;
            /// A value for the security parameter index is given.
            XT_HMARK_SPI = 2;
            /// A mask for the security parameter index is given.
            XT_HMARK_SPI_MASK = 3;
            /// A value for the source port is given.
            XT_HMARK_SPORT = 4;
            /// A value for the destination port is given.
            XT_HMARK_DPORT = 5;
            /// A mask for the source port is given.
            XT_HMARK_SPORT_MASK = 6;
            /// A mask for the destination port is given.
            XT_HMARK_DPORT_MASK = 7;
            /// A mask for the protocol is given.
            XT_HMARK_PROTO_MASK = 8;
            /// A seed is given.
            XT_HMARK_RND = 9;
            /// A modulus is given.
            XT_HMARK_MODULUS = 10;
            /// An offset is given.
            XT_HMARK_OFFSET = 11;
            /// Hash the addresses and ports of the connection instead of the packet's.
            XT_HMARK_CT = 12;
            /// Hash the addresses only.
            XT_HMARK_METHOD_L3 = 13;
            /// Hash the addresses and the ports.
            XT_HMARK_METHOD_L3_4 = 14;
        }
    }

    structs {
        /// Two ports, or all four bytes a security parameter index, network byte order; a union in C.
        #[repr(align(4))]
        struct hmark_ports = "union hmark_ports" {
            /// The source port, big-endian; the first half of a security parameter index.
            field src: [u8; 2] = "b16.src",
            /// The destination port, big-endian; the second half of a security parameter index.
            field dst: [u8; 2] = "b16.dst",
        }

        /// Data of the target `HMARK`, revision 0: the packet's mark becomes its hash, scaled to the modulus, plus the offset.
        struct xt_hmark_info {
            /// Bits of the source address to hash, network byte order.
            field src_mask: nf_inet_addr,
            /// Bits of the destination address to hash, network byte order.
            field dst_mask: nf_inet_addr,
            /// Bits of the ports to hash.
            field port_mask: hmark_ports,
            /// Bits of the ports to set before hashing.
            field port_set: hmark_ports,
            /// Bits `1 << XT_HMARK_*`, host byte order.
            field flags: u32,
            /// Bits of the layer 4 protocol number to hash, host byte order.
            field proto_mask: u16,
            pad __pad: [u8; 2],
            /// Seed of the hash, host byte order.
            field hashrnd: u32,
            /// Number of different marks; not zero.
            field hmodulus: u32,
            /// The lowest mark, host byte order.
            field hoffset: u32,
        }
    }
}
