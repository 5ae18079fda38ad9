//! Tables.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Flags of a table.
        "enum nft_table_flags": u32 {
            /// Its base chains are not registered: no packet meets them.
            NFT_TABLE_F_DORMANT = 0x1;
            /// The table belongs to the socket that created it; no other socket can change it.
            NFT_TABLE_F_OWNER = 0x2;
            /// It stays when its owner closes the socket.
            NFT_TABLE_F_PERSIST = 0x4, since (6, 9);
        }

        /// Attributes of a table.
        "enum nft_table_attributes": u16 {
            /// Not used.
            NFTA_TABLE_UNSPEC = 0;
            /// Payload: string.
            NFTA_TABLE_NAME = 1;
            /// Payload: u32, big-endian: `NFT_TABLE_F_*`.
            NFTA_TABLE_FLAGS = 2;
            /// Payload: u32, big-endian.
            NFTA_TABLE_USE = 3;
            /// Payload: u64, big-endian.
            NFTA_TABLE_HANDLE = 4;
            /// Padding before a 64-bit payload.
            NFTA_TABLE_PAD = 5;
            /// Payload: bytes.
            NFTA_TABLE_USERDATA = 6;
            /// Payload: u32, big-endian.
            NFTA_TABLE_OWNER = 7;
        }
    }
}
