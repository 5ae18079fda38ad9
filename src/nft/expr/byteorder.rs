//! `byteorder`: converts numbers between host and network byte order.
//!
//! ```text
//! NFTA_BYTEORDER_SREG   be32
//! NFTA_BYTEORDER_DREG   be32
//! NFTA_BYTEORDER_OP     be32
//! NFTA_BYTEORDER_LEN    be32
//! NFTA_BYTEORDER_SIZE   be32
//! ```
//!
//! The kernel requires all of them.

use chainwright_sys::nf_tables::{
    NFT_BYTEORDER_HTON, NFT_BYTEORDER_NTOH, NFTA_BYTEORDER_DREG, NFTA_BYTEORDER_LEN,
    NFTA_BYTEORDER_OP, NFTA_BYTEORDER_SIZE, NFTA_BYTEORDER_SREG,
};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;

values! {
    /// The direction of the conversion (`enum nft_byteorder_ops`).
    pub struct ByteorderOp: u32 {
        /// From network to host byte order.
        NTOH = NFT_BYTEORDER_NTOH => "ntoh",
        /// From host to network byte order.
        HTON = NFT_BYTEORDER_HTON => "hton",
    }
}

expression! {
    "byteorder"
    /// Converts numbers between host and network byte order (`enum nft_byteorder_attributes`).
    pub struct Byteorder viewed as ByteorderRef {
        /// Source register.
        NFTA_BYTEORDER_SREG => sreg: Register,
        /// Destination register; may be the source register.
        NFTA_BYTEORDER_DREG => dreg: Register,
        /// Direction of the conversion.
        NFTA_BYTEORDER_OP => op: ByteorderOp,
        /// Number of bytes to convert, at most 255: one number or several.
        NFTA_BYTEORDER_LEN => len: u32,
        /// Size of a number in bytes: 2, 4 or 8.
        NFTA_BYTEORDER_SIZE => size: u32,
    }
}

impl Byteorder {
    /// Converts `len` bytes in numbers of `size` bytes from network to host byte order.
    #[must_use]
    pub const fn ntoh(sreg: Register, dreg: Register, len: u32, size: u32) -> Self {
        Self::new(ByteorderOp::NTOH, sreg, dreg, len, size)
    }

    /// Converts `len` bytes in numbers of `size` bytes from host to network byte order.
    #[must_use]
    pub const fn hton(sreg: Register, dreg: Register, len: u32, size: u32) -> Self {
        Self::new(ByteorderOp::HTON, sreg, dreg, len, size)
    }

    const fn new(op: ByteorderOp, sreg: Register, dreg: Register, len: u32, size: u32) -> Self {
        Self {
            sreg: Some(sreg),
            dreg: Some(dreg),
            op: Some(op),
            len: Some(len),
            size: Some(size),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`; missing values as 0.
impl std::fmt::Display for Byteorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "[ byteorder reg {} = {}(reg {}, {}, {}) ]",
            self.dreg.unwrap_or_default().0,
            self.op.unwrap_or_default().name().unwrap_or("unknown"),
            self.sreg.unwrap_or_default().0,
            self.size.unwrap_or_default(),
            self.len.unwrap_or_default(),
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
            "ct bytes 100-200",
            Byteorder::hton(Register::R1, Register::R1, 8, 8),
        );
        assert_built(
            "tcp option maxseg size set rt mtu",
            Byteorder::hton(Register::R1, Register::R1, 2, 2),
        );
        assert_built(
            "listed: to host order",
            Byteorder::ntoh(Register::R1, Register::word(1), 4, 4),
        );
        assert_built(
            "of [ byteorder reg 1 = ntoh(reg 1, 2, 4) ]",
            Byteorder::ntoh(Register::R1, Register::R1, 4, 2),
        );
    }
}
