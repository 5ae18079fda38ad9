//! `cmp`: compares a register with a value; the rule doesn't match if the comparison fails.
//!
//! ```text
//! NFTA_CMP_SREG   be32
//! NFTA_CMP_OP     be32
//! NFTA_CMP_DATA   nested, a value: as many bytes of the register are compared
//! ```

use chainwright_sys::nf_tables::{
    NFT_CMP_EQ, NFT_CMP_GT, NFT_CMP_GTE, NFT_CMP_LT, NFT_CMP_LTE, NFT_CMP_NEQ, NFTA_CMP_DATA,
    NFTA_CMP_OP, NFTA_CMP_SREG,
};

use super::data::Spaced;
use super::{Data, Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// The comparison (`enum nft_cmp_ops`), byte by byte in their order.
    pub struct CmpOp: u32 {
        /// Equal.
        EQ = NFT_CMP_EQ => "eq",
        /// Not equal.
        NEQ = NFT_CMP_NEQ => "neq",
        /// Less.
        LT = NFT_CMP_LT => "lt",
        /// Less or equal.
        LTE = NFT_CMP_LTE => "lte",
        /// Greater.
        GT = NFT_CMP_GT => "gt",
        /// Greater or equal.
        GTE = NFT_CMP_GTE => "gte",
    }
}

expression! {
    "cmp"
    /// Compares a register with a value (`enum nft_cmp_attributes`).
    pub struct Cmp<'a> viewed as CmpRef {
        /// The register.
        NFTA_CMP_SREG => sreg: Register,
        /// The comparison.
        NFTA_CMP_OP => op: CmpOp,
        /// The value.
        NFTA_CMP_DATA => data: Data<'a>,
    }
}

impl<'a> Cmp<'a> {
    /// Compares the register with these bytes.
    #[must_use]
    pub const fn new(sreg: Register, op: CmpOp, bytes: &'a [u8]) -> Self {
        Self {
            sreg: Some(sreg),
            op: Some(op),
            data: Some(Data::value(bytes)),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Matches if the register holds these bytes.
    #[must_use]
    pub const fn eq(sreg: Register, bytes: &'a [u8]) -> Self {
        Self::new(sreg, CmpOp::EQ, bytes)
    }

    /// Matches if the register does not hold these bytes.
    #[must_use]
    pub const fn neq(sreg: Register, bytes: &'a [u8]) -> Self {
        Self::new(sreg, CmpOp::NEQ, bytes)
    }
}

impl<'a> CmpRef<'a> {
    /// Returns the bytes that the register is compared with.
    #[doc(hidden)]
    pub fn value_bytes(&self) -> Option<&'a [u8]> {
        self.data?.value()
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Cmp<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let op = self.op.unwrap_or_default().name().unwrap_or("unknown");
        let sreg = self.sreg.unwrap_or_default().0;
        write!(f, "[ cmp {op} reg {sreg} {}]", Spaced(&self.data))
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
            "tcp dport != 80",
            Cmp::neq(Register::R1, &80u16.to_be_bytes()),
        );
        assert_built(
            "listed: ct original saddr 10.1.2.3 …",
            Cmp::eq(Register::R1, &[10, 1, 2, 3]),
        );
        assert_built(
            "iifname \"lo\"",
            Cmp::eq(Register::R1, b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
        );
        assert_built("-i eth0", Cmp::eq(Register::R1, b"eth0\0"));
        assert_built(
            "tcp dport >= 1024",
            Cmp::new(Register::R1, CmpOp::GTE, &1024u16.to_be_bytes()),
        );
        assert_built(
            "tcp dport < 1024",
            Cmp::new(Register::R1, CmpOp::LT, &1024u16.to_be_bytes()),
        );
    }
}
