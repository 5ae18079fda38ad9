//! `limit`: goes on as long as a rate is kept.

use chainwright_sys::nf_tables::{
    NFT_LIMIT_F_INV, NFT_LIMIT_PKT_BYTES, NFT_LIMIT_PKTS, NFTA_LIMIT_BURST, NFTA_LIMIT_FLAGS,
    NFTA_LIMIT_RATE, NFTA_LIMIT_TYPE, NFTA_LIMIT_UNIT,
};

use super::expression;
use crate::nft::declare::{flags, values};

values! {
    /// What is counted (`enum nft_limit_type`).
    pub struct LimitType: u32 {
        /// Packets.
        PACKETS = NFT_LIMIT_PKTS => "packets",
        /// Bytes.
        BYTES = NFT_LIMIT_PKT_BYTES => "bytes",
    }
}

flags! {
    /// Flags of a limit (`enum nft_limit_flags`).
    pub struct LimitFlags: u32 {
        /// The rule goes on if the rate is *exceeded*.
        const INV = NFT_LIMIT_F_INV,
    }
}

expression! {
    "limit"
    /// Goes on as long as a rate is kept (`enum nft_limit_attributes`).
    pub struct Limit {
        /// Packets or bytes a unit of time.
        NFTA_LIMIT_RATE => rate: u64,
        /// The unit of time in seconds.
        NFTA_LIMIT_UNIT => unit: u64,
        /// How much may come at once.
        NFTA_LIMIT_BURST => burst: u32,
        /// What is counted.
        NFTA_LIMIT_TYPE => limit_type: LimitType,
        /// Flags.
        NFTA_LIMIT_FLAGS => flags: LimitFlags,
    }
}

impl Limit {
    /// At most `rate` packets in `unit` seconds, and `burst` of them at once.
    #[must_use]
    pub const fn packets(rate: u64, unit: u64, burst: u32) -> Self {
        Self {
            rate: Some(rate),
            unit: Some(unit),
            burst: Some(burst),
            limit_type: Some(LimitType::PACKETS),
            flags: Some(LimitFlags::empty()),
        }
    }
}
