//! `payload`: reads or writes bytes of the packet.

use chainwright_sys::nf_tables as sys;
use chainwright_sys::nf_tables::{
    NFTA_PAYLOAD_BASE, NFTA_PAYLOAD_CSUM_FLAGS, NFTA_PAYLOAD_CSUM_OFFSET, NFTA_PAYLOAD_CSUM_TYPE,
    NFTA_PAYLOAD_DREG, NFTA_PAYLOAD_LEN, NFTA_PAYLOAD_OFFSET, NFTA_PAYLOAD_SREG,
};

use super::{Register, expression};
use crate::nft::declare::{flags, values};

values! {
    /// Where the offset counts from (`enum nft_payload_bases`).
    pub struct PayloadBase: u32 {
        /// Link layer header.
        LINK = sys::NFT_PAYLOAD_LL_HEADER => "link",
        /// Network header.
        NETWORK = sys::NFT_PAYLOAD_NETWORK_HEADER => "network",
        /// Transport header.
        TRANSPORT = sys::NFT_PAYLOAD_TRANSPORT_HEADER => "transport",
        /// What follows the transport header.
        INNER = sys::NFT_PAYLOAD_INNER_HEADER => "inner",
        /// Tunnel header.
        TUNNEL = sys::NFT_PAYLOAD_TUN_HEADER => "tunnel",
    }
}

values! {
    /// Which checksum to mend after a write (`enum nft_payload_csum_types`).
    pub struct ChecksumType: u32 {
        /// None.
        NONE = sys::NFT_PAYLOAD_CSUM_NONE => "none",
        /// The internet checksum.
        INET = sys::NFT_PAYLOAD_CSUM_INET => "inet",
        /// CRC-32c of SCTP.
        SCTP = sys::NFT_PAYLOAD_CSUM_SCTP => "sctp",
    }
}

flags! {
    /// Flags of a write (`enum nft_payload_csum_flags`).
    pub struct ChecksumFlags: u32 {
        /// The bytes are part of the pseudo header of the layer-4 checksum.
        const L4_PSEUDOHDR = sys::NFT_PAYLOAD_L4CSUM_PSEUDOHDR,
    }
}

expression! {
    "payload"
    /// Reads bytes of the packet into a register (`dreg`), or writes them from one (`sreg`)
    /// (`enum nft_payload_attributes`).
    pub struct Payload {
        /// Where what was read goes.
        NFTA_PAYLOAD_DREG => dreg: Register,
        /// Where what is written comes from.
        NFTA_PAYLOAD_SREG => sreg: Register,
        /// Where the offset counts from.
        NFTA_PAYLOAD_BASE => base: PayloadBase,
        /// Offset in bytes.
        NFTA_PAYLOAD_OFFSET => offset: u32,
        /// Length in bytes.
        NFTA_PAYLOAD_LEN => len: u32,
        /// Which checksum to mend after a write.
        NFTA_PAYLOAD_CSUM_TYPE => checksum_type: ChecksumType,
        /// Where that checksum stands, from the same base.
        NFTA_PAYLOAD_CSUM_OFFSET => checksum_offset: u32,
        /// Flags of the checksum.
        NFTA_PAYLOAD_CSUM_FLAGS => checksum_flags: ChecksumFlags,
    }
}

impl Payload {
    /// Reads `len` bytes at `offset` into a register.
    #[must_use]
    pub fn load(base: PayloadBase, offset: u32, len: u32, dreg: Register) -> Self {
        Self {
            dreg: Some(dreg),
            base: Some(base),
            offset: Some(offset),
            len: Some(len),
            ..Self::default()
        }
    }
}
