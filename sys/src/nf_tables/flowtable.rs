//! Flowtables, and the expression `flow_offload`, which uses them.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Attributes of the expression `flow_offload`, which adds a connection to a flowtable.
        "enum nft_offload_attributes": u16 {
            /// Not used.
            NFTA_FLOW_UNSPEC = 0;
            /// Payload: string.
            NFTA_FLOW_TABLE_NAME = 1;
        }

        /// Flags of a flowtable.
        "enum nft_flowtable_flags": u32 {
            NFT_FLOWTABLE_HW_OFFLOAD = 0x1;
            NFT_FLOWTABLE_COUNTER = 0x2;
            /// All flags.
            NFT_FLOWTABLE_MASK = 0x3;
        }

        /// Attributes of a flowtable.
        "enum nft_flowtable_attributes": u16 {
            /// Not used.
            NFTA_FLOWTABLE_UNSPEC = 0;
            /// Payload: string.
            NFTA_FLOWTABLE_TABLE = 1;
            /// Payload: string.
            NFTA_FLOWTABLE_NAME = 2;
            /// Payload: nested: `NFTA_FLOWTABLE_HOOK_*`.
            NFTA_FLOWTABLE_HOOK = 3;
            /// Payload: u32, big-endian.
            NFTA_FLOWTABLE_USE = 4;
            /// Payload: u64, big-endian.
            NFTA_FLOWTABLE_HANDLE = 5;
            /// Padding before a 64-bit payload.
            NFTA_FLOWTABLE_PAD = 6;
            /// Payload: u32, big-endian: `NFT_FLOWTABLE_*`.
            NFTA_FLOWTABLE_FLAGS = 7;
        }

        /// Attributes of a flowtable's hook.
        "enum nft_flowtable_hook_attributes": u16 {
            /// Not used.
            NFTA_FLOWTABLE_HOOK_UNSPEC = 0;
            /// Payload: u32, big-endian.
            NFTA_FLOWTABLE_HOOK_NUM = 1;
            /// Payload: i32, big-endian.
            NFTA_FLOWTABLE_HOOK_PRIORITY = 2;
            /// Payload: nested: `NFTA_DEVICE_*`.
            NFTA_FLOWTABLE_HOOK_DEVS = 3;
        }
    }
}
