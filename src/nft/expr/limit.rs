//! `limit`: matches while a rate is not exceeded.
//!
//! ```text
//! NFTA_LIMIT_RATE    be64
//! NFTA_LIMIT_UNIT    be64
//! NFTA_LIMIT_BURST   be32
//! NFTA_LIMIT_TYPE    be32
//! NFTA_LIMIT_FLAGS   be32
//! ```

use chainwright_sys::nf_tables::{
    NFT_LIMIT_F_INV, NFT_LIMIT_PKT_BYTES, NFT_LIMIT_PKTS, NFTA_LIMIT_BURST, NFTA_LIMIT_FLAGS,
    NFTA_LIMIT_PAD, NFTA_LIMIT_RATE, NFTA_LIMIT_TYPE, NFTA_LIMIT_UNIT,
};

use super::expression;
use crate::nft::UnknownAttributes;
use crate::nft::declare::{flags, values};

values! {
    /// The unit of a rate (`enum nft_limit_type`).
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
        /// Matches if the rate is *exceeded*.
        const INV = NFT_LIMIT_F_INV,
    }
}

expression! {
    "limit"
    /// Matches while a rate is not exceeded (`enum nft_limit_attributes`).
    pub struct Limit viewed as LimitRef {
        /// Packets or bytes per unit of time.
        NFTA_LIMIT_RATE => rate: u64,
        /// The unit of time in seconds.
        NFTA_LIMIT_UNIT => unit: u64,
        /// Packets or bytes allowed at once.
        NFTA_LIMIT_BURST => burst: u32,
        /// Unit of the rate.
        NFTA_LIMIT_TYPE => limit_type: LimitType,
        /// Flags.
        NFTA_LIMIT_FLAGS => flags: LimitFlags,
        _ => NFTA_LIMIT_PAD,
    }
}

impl Limit {
    /// Allows at most `rate` packets in `unit` seconds, and `burst` of them at once.
    #[must_use]
    pub const fn packets(rate: u64, unit: u64, burst: u32) -> Self {
        Self {
            rate: Some(rate),
            unit: Some(unit),
            burst: Some(burst),
            limit_type: Some(LimitType::PACKETS),
            flags: Some(LimitFlags::empty()),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let unit = match self.unit.unwrap_or_default() {
            1 => "second",
            60 => "minute",
            3_600 => "hour",
            86_400 => "day",
            604_800 => "week",
            _ => "error",
        };
        let limit_type = match self.limit_type {
            Some(LimitType::BYTES) => "bytes",
            _ => "packets",
        };
        write!(
            f,
            "[ limit rate {}/{unit} burst {} type {limit_type} flags {:#x} ]",
            self.rate.unwrap_or_default(),
            self.burst.unwrap_or_default(),
            self.flags.unwrap_or_default().bits(),
        )
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built(
            "limit rate 10/second burst 20 packets",
            Limit::packets(10, 1, 20),
        );
        assert_built("-m limit --limit 5/min", Limit::packets(5, 60, 5));
    }
}
