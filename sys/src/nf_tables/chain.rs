//! Chains, and the hooks and devices of base chains.

use crate::abi::abi;

abi! {
    header "linux/netfilter/nf_tables.h";

    constants {
        /// Attributes of a base chain's hook.
        "enum nft_hook_attributes": u16 {
            /// Not used.
            NFTA_HOOK_UNSPEC = 0;
            /// Payload: u32, big-endian: `NF_*` hook of the family.
            NFTA_HOOK_HOOKNUM = 1;
            /// Payload: i32, big-endian.
            NFTA_HOOK_PRIORITY = 2;
            /// Payload: string.
            NFTA_HOOK_DEV = 3;
            /// Payload: nested: `NFTA_DEVICE_*`.
            NFTA_HOOK_DEVS = 4;
        }

        /// Flags of a chain.
        "enum nft_chain_flags": u32 {
            /// It is registered at a hook.
            NFT_CHAIN_BASE = 0x1;
            /// Its rules are given to the hardware.
            NFT_CHAIN_HW_OFFLOAD = 0x2;
            /// It lives as long as the rule that jumps to it.
            NFT_CHAIN_BINDING = 0x4;
            /// All flags.
            NFT_CHAIN_FLAGS = 0x7;
        }

        /// Attributes of a chain.
        "enum nft_chain_attributes": u16 {
            /// Not used.
            NFTA_CHAIN_UNSPEC = 0;
            /// Payload: string.
            NFTA_CHAIN_TABLE = 1;
            /// Payload: u64, big-endian.
            NFTA_CHAIN_HANDLE = 2;
            /// Payload: string.
            NFTA_CHAIN_NAME = 3;
            /// Payload: nested: `NFTA_HOOK_*`.
            NFTA_CHAIN_HOOK = 4;
            /// Payload: u32, big-endian: `NF_ACCEPT` or `NF_DROP`.
            NFTA_CHAIN_POLICY = 5;
            /// Payload: u32, big-endian.
            NFTA_CHAIN_USE = 6;
            /// Payload: string.
            NFTA_CHAIN_TYPE = 7;
            /// Payload: nested: `NFTA_COUNTER_*`.
            NFTA_CHAIN_COUNTERS = 8;
            /// Padding before a 64-bit payload.
            NFTA_CHAIN_PAD = 9;
            /// Payload: u32, big-endian: `NFT_CHAIN_*`.
            NFTA_CHAIN_FLAGS = 10;
            /// Payload: u32, big-endian.
            NFTA_CHAIN_ID = 11;
            /// Payload: bytes.
            NFTA_CHAIN_USERDATA = 12;
        }

        /// Attributes of a list of devices.
        "enum nft_devices_attributes": u16 {
            /// Not used.
            NFTA_DEVICE_UNSPEC = 0;
            /// Payload: string.
            NFTA_DEVICE_NAME = 1;
            /// Payload: string: start of the names of the devices.
            NFTA_DEVICE_PREFIX = 2, since (6, 17);
        }
    }
}
