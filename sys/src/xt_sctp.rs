//! `linux/netfilter/xt_sctp.h`: the match `sctp`.
//!
//! The macros `SCTP_CHUNKMAP_*` of the header work on [`xt_sctp_info::chunkmap`]: chunk type `t` is
//! bit `t % 32` of element `t / 32`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_sctp.h";

    constants {
        /// Fields that the match compares or negates.
        "#define XT_SCTP_*": u32 {
            /// Source ports.
            XT_SCTP_SRC_PORTS = 0x01;
            /// Destination ports.
            XT_SCTP_DEST_PORTS = 0x02;
            /// Chunks.
            XT_SCTP_CHUNK_TYPES = 0x04;
            /// All bits.
            XT_SCTP_VALID_FLAGS = 0x07;
        }

        /// Maximum number of chunk flags.
        "#define XT_NUM_SCTP_FLAGS": usize {
            XT_NUM_SCTP_FLAGS = 4;
        }

        /// Comparison of the packet's chunks ([`xt_sctp_info::chunk_match_type`]).
        "#define SCTP_CHUNK_MATCH_*": u32 {
            /// Any of the types is there.
            SCTP_CHUNK_MATCH_ANY = 0x01;
            /// All of the types are there.
            SCTP_CHUNK_MATCH_ALL = 0x02;
            /// Only these types are there.
            SCTP_CHUNK_MATCH_ONLY = 0x04;
        }
    }

    structs {
        /// Flags that chunks of one type must have.
        struct xt_sctp_flag_info {
            /// Type of the chunk.
            field chunktype: u8,
            /// Required value of the flags.
            field flag: u8,
            /// Flags to compare.
            field flag_mask: u8,
        }

        /// Data of the match `sctp`, revision 0.
        struct xt_sctp_info {
            /// First and last destination port, host byte order.
            field dpts: [u16; 2],
            /// First and last source port, host byte order.
            field spts: [u16; 2],
            /// A bit for each chunk type, in words of host byte order.
            field chunkmap: [u32; 64],
            /// `SCTP_CHUNK_MATCH_*`.
            field chunk_match_type: u32,
            /// Flags of chunks.
            field flag_info: [xt_sctp_flag_info; XT_NUM_SCTP_FLAGS],
            /// Number of elements of `flag_info` in use, host byte order.
            field flag_count: i32,
            /// `XT_SCTP_*`: fields to compare.
            field flags: u32,
            /// `XT_SCTP_*`: fields to negate.
            field invflags: u32,
        }
    }
}
