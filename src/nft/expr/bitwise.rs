//! `bitwise`: works on the bits of a register.

use chainwright_sys::nf_tables::{
    NFT_BITWISE_AND, NFT_BITWISE_LSHIFT, NFT_BITWISE_MASK_XOR, NFT_BITWISE_OR, NFT_BITWISE_RSHIFT,
    NFT_BITWISE_XOR, NFTA_BITWISE_DATA, NFTA_BITWISE_DREG, NFTA_BITWISE_LEN, NFTA_BITWISE_MASK,
    NFTA_BITWISE_OP, NFTA_BITWISE_SREG, NFTA_BITWISE_SREG2, NFTA_BITWISE_XOR,
};

use super::{Data, Register, expression};
use crate::nft::declare::values;

values! {
    /// What to do with the bits (`enum nft_bitwise_ops`).
    pub struct BitwiseOp: u32 {
        /// And with a mask, then exclusive or with a value: what the kernel does when the
        /// attribute is missing.
        MASK_XOR = NFT_BITWISE_MASK_XOR => "mask-xor",
        /// Shift left.
        LSHIFT = NFT_BITWISE_LSHIFT => "lshift",
        /// Shift right.
        RSHIFT = NFT_BITWISE_RSHIFT => "rshift",
        /// And of two registers (Linux 6.13).
        AND = NFT_BITWISE_AND => "and",
        /// Or of two registers (Linux 6.13).
        OR = NFT_BITWISE_OR => "or",
        /// Exclusive or of two registers (Linux 6.13).
        XOR = NFT_BITWISE_XOR => "xor",
    }
}

expression! {
    "bitwise"
    /// `dreg = (sreg & mask) ^ xor`, or a shift (`enum nft_bitwise_attributes`).
    pub struct Bitwise<'a> {
        /// Where the value comes from.
        NFTA_BITWISE_SREG => sreg: Register,
        /// Where the result goes.
        NFTA_BITWISE_DREG => dreg: Register,
        /// Length of the value in bytes.
        NFTA_BITWISE_LEN => len: u32,
        /// Mask.
        NFTA_BITWISE_MASK => mask: Data<'a>,
        /// Value of the exclusive or.
        NFTA_BITWISE_XOR => xor: Data<'a>,
        /// What to do.
        NFTA_BITWISE_OP => op: BitwiseOp,
        /// Number of bits of a shift.
        NFTA_BITWISE_DATA => data: Data<'a>,
        /// The second register of an operation on two (Linux 6.13).
        NFTA_BITWISE_SREG2 => sreg2: Register,
    }
}

impl<'a> Bitwise<'a> {
    /// And with a mask, then exclusive or with a value, both as long as the register's content.
    #[must_use]
    pub const fn mask_xor(register: Register, mask: &'a [u8], xor: &'a [u8]) -> Self {
        Self {
            sreg: Some(register),
            dreg: Some(register),
            // A register holds at most 64 bytes.
            len: Some(mask.len() as u32),
            mask: Some(Data::value(mask)),
            xor: Some(Data::value(xor)),
            op: Some(BitwiseOp::MASK_XOR),
            data: None,
            sreg2: None,
        }
    }
}
