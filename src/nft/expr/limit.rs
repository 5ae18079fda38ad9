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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_LIMIT_RATE", Wire::Be64),
            (2, "NFTA_LIMIT_UNIT", Wire::Be64),
            (3, "NFTA_LIMIT_BURST", Wire::Be32),
            (4, "NFTA_LIMIT_TYPE", Wire::Be32),
            (5, "NFTA_LIMIT_FLAGS", Wire::Be32),
        ];
        assert_layout::<Limit>(Limit::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c limit rate over 512 kbytes/minute burst 1024 bytes`.
    #[test]
    fn bytes_beyond_a_rate() {
        assert_element(
            Decoded::Limit,
            Limit {
                rate: Some(512 * 1024),
                unit: Some(60),
                burst: Some(1024),
                limit_type: Some(LimitType::BYTES),
                flags: Some(LimitFlags::INV),
                ..Default::default()
            },
            "
                44000180                    ; NFTA_LIST_ELEM
                0a000100 6c696d69 74000000  ;   NFTA_EXPR_NAME: limit
                34000280                    ;   NFTA_EXPR_DATA
                0c000100 00000000 00080000  ;     NFTA_LIMIT_RATE
                0c000200 00000000 0000003c  ;     NFTA_LIMIT_UNIT
                08000300 00000400           ;     NFTA_LIMIT_BURST
                08000400 00000001           ;     NFTA_LIMIT_TYPE
                08000500 00000001           ;     NFTA_LIMIT_FLAGS
            ",
        );
    }

    /// nft 1.0.6: `limit rate 10/second burst 20 packets`; iptables-nft 1.8.9:
    /// `-m limit --limit 5/min`, with a burst of 5.
    #[test]
    fn packets() {
        assert_attributes(
            Decoded::Limit,
            Limit::packets(10, 1, 20),
            "
                0c000100 00000000 0000000a 0c000200 00000000 00000001 08000300 00000014
                08000400 00000000 08000500 00000000
            ",
        );
        assert_attributes(
            Decoded::Limit,
            Limit::packets(5, 60, 5),
            "
                0c000100 00000000 00000005 0c000200 00000000 0000003c 08000300 00000005
                08000400 00000000 08000500 00000000
            ",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c limit rate 5/minute …`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Limit,
            Limit::packets(5, 60, 5),
            "
                44000100 0a000100 6c696d69 74000000 34000200 0c000100 00000000 00000005
                0c000200 00000000 0000003c 08000300 00000005 08000400 00000000 08000500
                00000000
            ",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after
    /// `limit rate 10/second`, `limit rate over 512 kbytes/minute burst 1024 bytes`,
    /// `limit rate 5/hour burst 1 packets`, `limit rate 5/day`, `limit rate 5/week`; units without
    /// syntax, as its libnftnl printed handmade attributes.
    #[test]
    fn bytecode() {
        let bytes = Limit {
            limit_type: Some(LimitType::BYTES),
            flags: Some(LimitFlags::INV),
            ..Limit::packets(512 * 1024, 60, 1024)
        };
        for (limit, line) in [
            (
                Limit::packets(10, 1, 5),
                "[ limit rate 10/second burst 5 type packets flags 0x0 ]",
            ),
            (
                bytes,
                "[ limit rate 524288/minute burst 1024 type bytes flags 0x1 ]",
            ),
            (
                Limit::packets(5, 3_600, 1),
                "[ limit rate 5/hour burst 1 type packets flags 0x0 ]",
            ),
            (
                Limit::packets(5, 86_400, 5),
                "[ limit rate 5/day burst 5 type packets flags 0x0 ]",
            ),
            (
                Limit::packets(5, 604_800, 5),
                "[ limit rate 5/week burst 5 type packets flags 0x0 ]",
            ),
            (
                Limit::packets(10, 7_200, 5),
                "[ limit rate 10/error burst 5 type packets flags 0x0 ]",
            ),
            (
                Limit::default(),
                "[ limit rate 0/error burst 0 type packets flags 0x0 ]",
            ),
        ] {
            assert_eq!(limit.to_string(), line);
        }
    }
}
