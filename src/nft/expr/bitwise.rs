//! `bitwise`: bit operations on registers.
//!
//! ```text
//! NFTA_BITWISE_SREG    be32
//! NFTA_BITWISE_SREG2   be32
//! NFTA_BITWISE_DREG    be32
//! NFTA_BITWISE_OP      be32: always listed
//! NFTA_BITWISE_LEN     be32
//! NFTA_BITWISE_MASK    nested, a value: as long as NFTA_BITWISE_LEN says
//! NFTA_BITWISE_XOR     nested, a value: the same
//! NFTA_BITWISE_DATA    nested, a value: u32 in host byte order
//! ```

use chainwright_sys::nf_tables::{
    NFT_BITWISE_AND, NFT_BITWISE_LSHIFT, NFT_BITWISE_MASK_XOR, NFT_BITWISE_OR, NFT_BITWISE_RSHIFT,
    NFT_BITWISE_XOR, NFTA_BITWISE_DATA, NFTA_BITWISE_DREG, NFTA_BITWISE_LEN, NFTA_BITWISE_MASK,
    NFTA_BITWISE_OP, NFTA_BITWISE_SREG, NFTA_BITWISE_SREG2, NFTA_BITWISE_XOR,
};

use super::data::Spaced;
use super::{Data, Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// The operation (`enum nft_bitwise_ops`).
    pub struct BitwiseOp: u32 {
        /// And with a mask, then exclusive or with a value: the kernel's default.
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
    pub struct Bitwise<'a> viewed as BitwiseRef,
    listed as [sreg, dreg, len, op, mask, xor, sreg2, data] {
        /// Source register.
        NFTA_BITWISE_SREG => sreg: Register,
        /// Second source register of an operation on two registers (Linux 6.13).
        NFTA_BITWISE_SREG2 => sreg2: Register,
        /// Destination register.
        NFTA_BITWISE_DREG => dreg: Register,
        /// Operation.
        NFTA_BITWISE_OP => op: BitwiseOp,
        /// Length of the value in bytes.
        NFTA_BITWISE_LEN => len: u32,
        /// Mask.
        NFTA_BITWISE_MASK => mask: Data<'a>,
        /// Operand of the exclusive or.
        NFTA_BITWISE_XOR => xor: Data<'a>,
        /// Number of bits of a shift.
        NFTA_BITWISE_DATA => data: Data<'a>,
    }
}

impl<'a> Bitwise<'a> {
    /// Applies a mask, then an exclusive or with a value, both of the register value's length.
    #[must_use]
    pub const fn mask_xor(register: Register, mask: &'a [u8], xor: &'a [u8]) -> Self {
        Self {
            sreg: Some(register),
            sreg2: None,
            dreg: Some(register),
            op: Some(BitwiseOp::MASK_XOR),
            // A register holds at most 64 bytes.
            len: Some(mask.len() as u32),
            mask: Some(Data::value(mask)),
            xor: Some(Data::value(xor)),
            data: None,
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Bitwise<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sreg, dreg) = (
            self.sreg.unwrap_or_default().0,
            self.dreg.unwrap_or_default().0,
        );
        let sign = match self.op.unwrap_or_default() {
            BitwiseOp::MASK_XOR => {
                return write!(
                    f,
                    "[ bitwise reg {dreg} = ( reg {sreg} & {}) ^ {}]",
                    Spaced(&self.mask),
                    Spaced(&self.xor),
                );
            }
            BitwiseOp::LSHIFT => "<<",
            BitwiseOp::RSHIFT => ">>",
            // libnftnl 1.2.4 prints `[ bitwise ]` for these; later versions print this.
            BitwiseOp::AND => "&",
            BitwiseOp::OR => "|",
            BitwiseOp::XOR => "^",
            _ => "unknown",
        };
        write!(f, "[ bitwise reg {dreg} = ( reg {sreg} {sign} ")?;
        match self.sreg2 {
            Some(sreg2) => write!(f, "reg {} ", sreg2.0)?,
            None => Spaced(&self.data).fmt(f)?,
        }
        f.write_str(") ]")
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
            "of [ bitwise reg 1 = ( reg 1 & 0x0000f0ff ) ^ 0x00000000 ]",
            Bitwise::mask_xor(Register::R1, &[0xff, 0xf0, 0, 0], &[0; 4]),
        );
        assert_built(
            "of [ bitwise reg 1 = ( reg 1 & 0x000003ff ) ^ 0x00001400 ]",
            Bitwise::mask_xor(Register::R1, &[0xff, 3], &[0, 0x14]),
        );
    }
}
