//! `range`: compares a register with the bounds of a range.
//!
//! ```text
//! NFTA_RANGE_SREG        be32
//! NFTA_RANGE_OP          be32
//! NFTA_RANGE_FROM_DATA   nested: a value
//! NFTA_RANGE_TO_DATA     nested: a value of the same length
//! ```

use chainwright_sys::nf_tables::{
    NFT_RANGE_EQ, NFT_RANGE_NEQ, NFTA_RANGE_FROM_DATA, NFTA_RANGE_OP, NFTA_RANGE_SREG,
    NFTA_RANGE_TO_DATA,
};

use super::data::Spaced;
use super::{Data, Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// How to compare (`enum nft_range_ops`).
    pub struct RangeOp: u32 {
        /// In the range, including its bounds.
        EQ = NFT_RANGE_EQ => "eq",
        /// Not in the range.
        NEQ = NFT_RANGE_NEQ => "neq",
    }
}

expression! {
    "range"
    /// Matches if a register is inside of a range, or outside (`enum nft_range_attributes`). The
    /// bytes are compared in order, as by memcmp(3): numbers must be in network order.
    pub struct Range<'a> viewed as RangeRef {
        /// The register.
        NFTA_RANGE_SREG => sreg: Register,
        /// How to compare.
        NFTA_RANGE_OP => op: RangeOp,
        /// The first value of the range.
        NFTA_RANGE_FROM_DATA => from_data: Data<'a>,
        /// The last value of the range.
        NFTA_RANGE_TO_DATA => to_data: Data<'a>,
    }
}

impl<'a> Range<'a> {
    const fn new(sreg: Register, op: RangeOp, from: &'a [u8], to: &'a [u8]) -> Self {
        Self {
            sreg: Some(sreg),
            op: Some(op),
            from_data: Some(Data::value(from)),
            to_data: Some(Data::value(to)),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Matches if the register is in the range, including its bounds.
    #[must_use]
    pub const fn within(sreg: Register, from: &'a [u8], to: &'a [u8]) -> Self {
        Self::new(sreg, RangeOp::EQ, from, to)
    }

    /// Matches if the register is outside of the range.
    #[must_use]
    pub const fn outside(sreg: Register, from: &'a [u8], to: &'a [u8]) -> Self {
        Self::new(sreg, RangeOp::NEQ, from, to)
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Range<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let op = self.op.unwrap_or_default().name().unwrap_or("unknown");
        let sreg = self.sreg.unwrap_or_default().0;
        let (from, to) = (Spaced(&self.from_data), Spaced(&self.to_data));
        write!(f, "[ range {op} reg {sreg} {from}{to}]")
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
            (1, "NFTA_RANGE_SREG", Wire::Be32),
            (2, "NFTA_RANGE_OP", Wire::Be32),
            (3, "NFTA_RANGE_FROM_DATA", Wire::Data),
            (4, "NFTA_RANGE_TO_DATA", Wire::Data),
        ];
        assert_layout::<Range<'_>>(Range::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c tcp dport != 1-1024`.
    #[test]
    fn outside_ports() {
        assert_element(
            Decoded::Range,
            Range {
                sreg: Some(Register::R1),
                op: Some(RangeOp::NEQ),
                from_data: Some(Data::value(&1u16.to_be_bytes())),
                to_data: Some(Data::value(&1024u16.to_be_bytes())),
                ..Default::default()
            },
            "
                3c000180                    ; NFTA_LIST_ELEM
                0a000100 72616e67 65000000  ;   NFTA_EXPR_NAME: range
                2c000280                    ;   NFTA_EXPR_DATA
                08000100 00000001           ;     NFTA_RANGE_SREG
                08000200 00000001           ;     NFTA_RANGE_OP
                0c000380                    ;     NFTA_RANGE_FROM_DATA
                06000100 00010000           ;       NFTA_DATA_VALUE
                0c000480                    ;     NFTA_RANGE_TO_DATA
                06000100 04000000           ;       NFTA_DATA_VALUE
            ",
        );
    }

    /// nft 1.0.6: `ip saddr != 10.0.0.1-10.0.0.9`, `meta mark != 1-5` (after a `byteorder`),
    /// `ether saddr != 00:01:02:03:04:05-00:01:02:03:04:ff`.
    #[test]
    fn outside() {
        assert_attributes(
            Decoded::Range,
            Range::outside(Register::R1, &[10, 0, 0, 1], &[10, 0, 0, 9]),
            "
                08000100 00000001 08000200 00000001 0c000380 08000100 0a000001 0c000480
                08000100 0a000009
            ",
        );
        assert_attributes(
            Decoded::Range,
            Range::outside(Register::R1, &1u32.to_be_bytes(), &5u32.to_be_bytes()),
            "
                08000100 00000001 08000200 00000001 0c000380 08000100 00000001 0c000480
                08000100 00000005
            ",
        );
        assert_attributes(
            Decoded::Range,
            Range::outside(Register::R1, &[0, 1, 2, 3, 4, 5], &[0, 1, 2, 3, 4, 0xff]),
            "
                08000100 00000001 08000200 00000001 10000380 0a000100 00010203 04050000
                10000480 0a000100 00010203 04ff0000
            ",
        );
    }

    /// nft 1.0.6 has no syntax for it (it writes two `cmp`): built from the header.
    #[test]
    fn within() {
        assert_attributes(
            Decoded::Range,
            Range::within(Register::R1, &[0, 1], &[4, 0]),
            "
                08000100 00000001 08000200 00000000 0c000380 06000100 00010000 0c000480
                06000100 04000000
            ",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c ether saddr != …`; and after the rule of
    /// [`within`] was sent to Linux 6.18.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Range,
            Range::outside(Register::R1, &[0, 1, 2, 3, 4, 5], &[0, 1, 2, 3, 4, 0xff]),
            "
                44000100 0a000100 72616e67 65000000 34000200 08000100 00000001 08000200
                00000001 10000300 0a000100 00010203 04050000 10000400 0a000100 00010203
                04ff0000
            ",
        );
        assert_listed(
            Decoded::Range,
            Range::within(Register::R1, &[0, 1], &[4, 0]),
            "
                3c000100 0a000100 72616e67 65000000 2c000200 08000100 00000001 08000200
                00000000 0c000300 06000100 00010000 0c000400 06000100 04000000
            ",
        );
    }

    /// The rules above as nft 1.0.6 prints them; the last three as libnftnl 1.2.4 prints attributes
    /// that no kernel lists.
    #[test]
    fn bytecode() {
        for (range, line) in [
            (
                Range::outside(Register::R1, &[0, 1], &[4, 0]),
                "[ range neq reg 1 0x00000100 0x00000004 ]",
            ),
            (
                Range::outside(Register::R1, &[10, 0, 0, 1], &[10, 0, 0, 9]),
                "[ range neq reg 1 0x0100000a 0x0900000a ]",
            ),
            (
                Range::outside(Register::R1, &[3], &[5]),
                "[ range neq reg 1 0x00000003 0x00000005 ]",
            ),
            (
                Range::outside(Register::R1, &[0, 1, 2, 3, 4, 5], &[0, 1, 2, 3, 4, 0xff]),
                "[ range neq reg 1 0x03020100 0x00000504 0x03020100 0x0000ff04 ]",
            ),
            (
                Range::within(Register::R1, &[0, 1], &[4, 0]),
                "[ range eq reg 1 0x00000100 0x00000004 ]",
            ),
            (
                Range::new(Register::R1, RangeOp(2), &[0, 1], &[4, 0]),
                "[ range unknown reg 1 0x00000100 0x00000004 ]",
            ),
            (
                Range {
                    from_data: None,
                    ..Range::outside(Register::R1, &[], &[0, 1])
                },
                "[ range neq reg 1 0x00000100 ]",
            ),
            (Range::default(), "[ range eq reg 0 ]"),
        ] {
            assert_eq!(range.to_string(), line);
        }
    }
}
