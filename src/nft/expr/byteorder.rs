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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_BYTEORDER_SREG", Wire::Be32),
            (2, "NFTA_BYTEORDER_DREG", Wire::Be32),
            (3, "NFTA_BYTEORDER_OP", Wire::Be32),
            (4, "NFTA_BYTEORDER_LEN", Wire::Be32),
            (5, "NFTA_BYTEORDER_SIZE", Wire::Be32),
        ];
        assert_layout::<Byteorder>(Byteorder::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c ct mark 1-100`.
    #[test]
    fn to_network_order() {
        assert_element(
            Decoded::Byteorder,
            Byteorder {
                sreg: Some(Register::R1),
                dreg: Some(Register::R1),
                op: Some(ByteorderOp::HTON),
                len: Some(4),
                size: Some(4),
                ..Default::default()
            },
            "
                40000180                             ; NFTA_LIST_ELEM
                0e000100 62797465 6f726465 72000000  ;   NFTA_EXPR_NAME: byteorder
                2c000280                             ;   NFTA_EXPR_DATA
                08000100 00000001                    ;     NFTA_BYTEORDER_SREG
                08000200 00000001                    ;     NFTA_BYTEORDER_DREG
                08000300 00000001                    ;     NFTA_BYTEORDER_OP
                08000400 00000004                    ;     NFTA_BYTEORDER_LEN
                08000500 00000004                    ;     NFTA_BYTEORDER_SIZE
            ",
        );
    }

    /// nft 1.0.6: `ct bytes 100-200` and `tcp option maxseg size set rt mtu`.
    #[test]
    fn sizes() {
        assert_attributes(
            Decoded::Byteorder,
            Byteorder::hton(Register::R1, Register::R1, 8, 8),
            "
                08000100 00000001 08000200 00000001 08000300 00000001 08000400 00000008
                08000500 00000008
            ",
        );
        assert_attributes(
            Decoded::Byteorder,
            Byteorder::hton(Register::R1, Register::R1, 2, 2),
            "
                08000100 00000001 08000200 00000001 08000300 00000001 08000400 00000002
                08000500 00000002
            ",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c ct bytes 100-200`; and after handmade attributes
    /// with the registers 8 and 9, the first of which the kernel lists by its other number: nft
    /// 1.0.6 has no rule that converts to host order.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Byteorder,
            Byteorder::hton(Register::R1, Register::R1, 8, 8),
            "
                40000100 0e000100 62797465 6f726465 72000000 2c000200 08000100 00000001
                08000200 00000001 08000300 00000001 08000400 00000008 08000500 00000008
            ",
        );
        assert_listed(
            Decoded::Byteorder,
            Byteorder::ntoh(Register::R1, Register::word(1), 4, 4),
            "
                40000100 0e000100 62797465 6f726465 72000000 2c000200 08000100 00000001
                08000200 00000009 08000300 00000000 08000400 00000004 08000500 00000004
            ",
        );
    }

    /// The rules above as nft 1.0.6 prints them; then attributes that the kernel does not list, as
    /// libnftnl 1.2.4 prints them.
    #[test]
    fn bytecode() {
        for (expression, line) in [
            (
                Byteorder::hton(Register::R1, Register::R1, 8, 8),
                "[ byteorder reg 1 = hton(reg 1, 8, 8) ]",
            ),
            (
                Byteorder::ntoh(Register::R1, Register::R1, 4, 2),
                "[ byteorder reg 1 = ntoh(reg 1, 2, 4) ]",
            ),
            (
                Byteorder::ntoh(Register::R1, Register::word(1), 4, 4),
                "[ byteorder reg 9 = ntoh(reg 1, 4, 4) ]",
            ),
            (
                Byteorder {
                    op: Some(ByteorderOp(2)),
                    ..Byteorder::ntoh(Register::R1, Register::R2, 4, 2)
                },
                "[ byteorder reg 2 = unknown(reg 1, 2, 4) ]",
            ),
            (
                Byteorder::default(),
                "[ byteorder reg 0 = ntoh(reg 0, 0, 0) ]",
            ),
        ] {
            assert_eq!(expression.to_string(), line);
        }
    }
}
