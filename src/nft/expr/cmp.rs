//! `cmp`: compares a register with a value; the rule ends if the comparison does not hold.

use chainwright_sys::nf_tables::{
    NFT_CMP_EQ, NFT_CMP_GT, NFT_CMP_GTE, NFT_CMP_LT, NFT_CMP_LTE, NFT_CMP_NEQ, NFTA_CMP_DATA,
    NFTA_CMP_OP, NFTA_CMP_SREG,
};

use super::{Data, Register, expression};
use crate::nft::declare::values;

values! {
    /// How to compare (`enum nft_cmp_ops`); the order is that of the bytes.
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
    pub struct Cmp<'a> {
        /// The register.
        NFTA_CMP_SREG => sreg: Register,
        /// How to compare.
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
        }
    }

    /// Goes on if the register holds these bytes.
    #[must_use]
    pub const fn eq(sreg: Register, bytes: &'a [u8]) -> Self {
        Self::new(sreg, CmpOp::EQ, bytes)
    }

    /// Goes on if the register does not hold these bytes.
    #[must_use]
    pub const fn neq(sreg: Register, bytes: &'a [u8]) -> Self {
        Self::new(sreg, CmpOp::NEQ, bytes)
    }
}
