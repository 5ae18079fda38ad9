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
    /// The comparison (`enum nft_range_ops`).
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
        /// The comparison.
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
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built(
            "ip saddr != 10.0.0.1-10.0.0.9",
            Range::outside(Register::R1, &[10, 0, 0, 1], &[10, 0, 0, 9]),
        );
        assert_built(
            "meta mark != 1-5",
            Range::outside(Register::R1, &1u32.to_be_bytes(), &5u32.to_be_bytes()),
        );
        assert_built(
            "ether saddr != 00:01:02:03:04:05-00:01:02:03:04:ff",
            Range::outside(Register::R1, &[0, 1, 2, 3, 4, 5], &[0, 1, 2, 3, 4, 0xff]),
        );
        assert_built("within", Range::within(Register::R1, &[0, 1], &[4, 0]));
    }
}
