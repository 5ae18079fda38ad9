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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_BITWISE_SREG", Wire::Be32),
            (8, "NFTA_BITWISE_SREG2", Wire::Be32),
            (2, "NFTA_BITWISE_DREG", Wire::Be32),
            (6, "NFTA_BITWISE_OP", Wire::Be32),
            (3, "NFTA_BITWISE_LEN", Wire::Be32),
            (4, "NFTA_BITWISE_MASK", Wire::Data),
            (5, "NFTA_BITWISE_XOR", Wire::Data),
            (7, "NFTA_BITWISE_DATA", Wire::Data),
        ];
        assert_layout::<Bitwise<'_>>(Bitwise::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c ip saddr 10.0.0.0/12`. The operation is absent, and defaults to a mask.
    #[test]
    fn the_mask_of_a_prefix() {
        assert_element(
            Decoded::Bitwise,
            Bitwise {
                sreg: Some(Register::R1),
                sreg2: None,
                dreg: Some(Register::R1),
                op: None,
                len: Some(4),
                mask: Some(Data::value(&[0xff, 0xf0, 0, 0])),
                xor: Some(Data::value(&[0; 4])),
                data: None,
                ..Default::default()
            },
            "
                44000180                    ; NFTA_LIST_ELEM
                0c000100 62697477 69736500  ;   NFTA_EXPR_NAME: bitwise
                34000280                    ;   NFTA_EXPR_DATA
                08000100 00000001           ;     NFTA_BITWISE_SREG
                08000200 00000001           ;     NFTA_BITWISE_DREG
                08000300 00000004           ;     NFTA_BITWISE_LEN
                0c000480                    ;     NFTA_BITWISE_MASK
                08000100 fff00000           ;       NFTA_DATA_VALUE
                0c000580                    ;     NFTA_BITWISE_XOR
                08000100 00000000           ;       NFTA_DATA_VALUE
            ",
        );
    }

    /// nft 1.0.6: `add rule ip t c meta mark set mark and 0xffff`; iptables-nft 1.8.9:
    /// `-m mark --mark 0x4000/0x4000`, without the operation.
    #[test]
    fn the_mask_of_a_mark() {
        let mask = 0xffff_u32.to_ne_bytes();
        assert_attributes(
            Decoded::Bitwise,
            Bitwise::mask_xor(Register::R1, &mask, &[0; 4]),
            "
                08000100 00000001 08000200 00000001 08000600 00000000 08000300 00000004
                0c000480 08000100 ffff0000 0c000580 08000100 00000000
            ",
        );
        let mask = 0x4000_u32.to_ne_bytes();
        assert_attributes(
            Decoded::Bitwise,
            Bitwise {
                op: None,
                ..Bitwise::mask_xor(Register::R1, &mask, &[0; 4])
            },
            "
                08000100 00000001 08000200 00000001 08000300 00000004 0c000480 08000100
                00400000 0c000580 08000100 00000000
            ",
        );
    }

    /// nft 1.0.6: `ct mark set meta mark << 8` and `meta mark set ct mark >> 4`; and the first as
    /// the kernel lists it. The number of bits is in host byte order.
    #[test]
    fn shifts() {
        let shift = |op, bits| Bitwise {
            sreg: Some(Register::R1),
            dreg: Some(Register::R1),
            op: Some(op),
            len: Some(4),
            data: Some(Data::value(bits)),
            ..Bitwise::default()
        };
        let (four, eight) = (4u32.to_ne_bytes(), 8u32.to_ne_bytes());
        assert_attributes(
            Decoded::Bitwise,
            shift(BitwiseOp::LSHIFT, &eight),
            "
                08000100 00000001 08000200 00000001 08000600 00000001 08000300 00000004
                0c000780 08000100 08000000
            ",
        );
        assert_attributes(
            Decoded::Bitwise,
            shift(BitwiseOp::RSHIFT, &four),
            "
                08000100 00000001 08000200 00000001 08000600 00000002 08000300 00000004
                0c000780 08000100 04000000
            ",
        );
        assert_listed(
            Decoded::Bitwise,
            shift(BitwiseOp::LSHIFT, &eight),
            "
                40000100 0c000100 62697477 69736500 30000200 08000100 00000001 08000200
                00000001 08000300 00000004 08000600 00000001 0c000700 08000100 08000000
            ",
        );
    }

    /// Listed by Linux 6.18 after this crate wrote it: `meta mark` in the first register, `ct mark` in the second, then
    /// this. (nft 1.0.6 has no syntax for it.)
    #[test]
    fn an_or_of_two_registers() {
        assert_listed(
            Decoded::Bitwise,
            Bitwise {
                sreg: Some(Register::R1),
                sreg2: Some(Register::R2),
                dreg: Some(Register::R1),
                op: Some(BitwiseOp::OR),
                len: Some(4),
                ..Bitwise::default()
            },
            "
                3c000100 0c000100 62697477 69736500 2c000200 08000100 00000001 08000200
                00000001 08000300 00000004 08000600 00000004 08000800 00000002
            ",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after `ip saddr 10.0.0.0/12`,
    /// `tcp flags syn / syn,ack`, `ip dscp set 5`, `ct label 5` and shifts. Cases without syntax in nft 1.0.6 (a mask
    /// of six bytes, no attributes) were printed by its libnftnl from handmade attributes. The operations of Linux 6.13
    /// follow the source of later versions of libnftnl.
    #[test]
    fn bytecode() {
        let (r1, r9) = (Some(Register::R1), Some(Register::word(1)));
        let on = |op| Bitwise {
            sreg: r1,
            dreg: r9,
            op: Some(op),
            ..Bitwise::default()
        };
        for (expression, line) in [
            (
                Bitwise::mask_xor(Register::R1, &[0xff, 0xf0, 0, 0], &[0; 4]),
                "[ bitwise reg 1 = ( reg 1 & 0x0000f0ff ) ^ 0x00000000 ]",
            ),
            (
                Bitwise {
                    op: None,
                    ..Bitwise::mask_xor(Register::R1, &[0x12], &[0])
                },
                "[ bitwise reg 1 = ( reg 1 & 0x00000012 ) ^ 0x00000000 ]",
            ),
            (
                Bitwise::mask_xor(Register::R1, &[0xff, 3], &[0, 0x14]),
                "[ bitwise reg 1 = ( reg 1 & 0x000003ff ) ^ 0x00001400 ]",
            ),
            (
                Bitwise {
                    dreg: r9,
                    ..Bitwise::mask_xor(Register::R1, &[255, 255, 0, 0, 1, 2], &[1, 2, 3, 4, 5, 6])
                },
                "[ bitwise reg 9 = ( reg 1 & 0x0000ffff 0x00000201 ) ^ 0x04030201 0x00000605 ]",
            ),
            (
                Bitwise::mask_xor(
                    Register::R1,
                    &[0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                    &[0; 16],
                ),
                "[ bitwise reg 1 = ( reg 1 & 0x00000020 0x00000000 0x00000000 0x00000000 ) ^ \
                 0x00000000 0x00000000 0x00000000 0x00000000 ]",
            ),
            (
                Bitwise {
                    dreg: r1,
                    data: Some(Data::value(&[8, 0, 0, 0])),
                    ..on(BitwiseOp::LSHIFT)
                },
                "[ bitwise reg 1 = ( reg 1 << 0x00000008 ) ]",
            ),
            (
                Bitwise {
                    dreg: r1,
                    data: Some(Data::value(&[4, 0, 0, 0])),
                    ..on(BitwiseOp::RSHIFT)
                },
                "[ bitwise reg 1 = ( reg 1 >> 0x00000004 ) ]",
            ),
            (on(BitwiseOp::LSHIFT), "[ bitwise reg 9 = ( reg 1 << ) ]"),
            (Bitwise::default(), "[ bitwise reg 0 = ( reg 0 & ) ^ ]"),
            (
                Bitwise {
                    sreg2: Some(Register::R2),
                    ..on(BitwiseOp::AND)
                },
                "[ bitwise reg 9 = ( reg 1 & reg 2 ) ]",
            ),
            (
                Bitwise {
                    sreg2: Some(Register::R2),
                    ..on(BitwiseOp::OR)
                },
                "[ bitwise reg 9 = ( reg 1 | reg 2 ) ]",
            ),
            (
                Bitwise {
                    data: Some(Data::value(&[1, 0, 0, 0])),
                    ..on(BitwiseOp::XOR)
                },
                "[ bitwise reg 9 = ( reg 1 ^ 0x00000001 ) ]",
            ),
        ] {
            assert_eq!(expression.to_string(), line);
        }
    }
}
