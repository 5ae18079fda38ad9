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
    /// How to compare (`enum nft_cmp_ops`), in the order of the bytes.
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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_CMP_SREG", Wire::Be32),
            (2, "NFTA_CMP_OP", Wire::Be32),
            (3, "NFTA_CMP_DATA", Wire::Data),
        ];
        assert_layout::<Cmp<'_>>(Cmp::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c tcp dport 443`.
    #[test]
    fn a_port_is_compared_in_network_order() {
        assert_element(
            Decoded::Cmp,
            Cmp {
                sreg: Some(Register::R1),
                op: Some(CmpOp::EQ),
                data: Some(Data::value(&[0x01, 0xbb])),
                ..Default::default()
            },
            "
                2c000180           ; NFTA_LIST_ELEM
                08000100 636d7000  ;   NFTA_EXPR_NAME: cmp
                20000280           ;   NFTA_EXPR_DATA
                08000100 00000001  ;     NFTA_CMP_SREG
                08000200 00000000  ;     NFTA_CMP_OP
                0c000380           ;     NFTA_CMP_DATA
                06000100 01bb0000  ;       NFTA_DATA_VALUE
            ",
        );
    }

    /// nft 1.0.6: `add rule ip t c tcp dport OP PORT`.
    #[test]
    fn every_comparison() {
        let port = 1024u16.to_be_bytes();
        assert_attributes(
            Decoded::Cmp,
            Cmp::neq(Register::R1, &80u16.to_be_bytes()),
            "08000100 00000001 08000200 00000001 0c000380 06000100 00500000",
        );
        for (op, sent) in [
            (
                CmpOp::LT,
                "08000100 00000001 08000200 00000002 0c000380 06000100 04000000",
            ),
            (
                CmpOp::LTE,
                "08000100 00000001 08000200 00000003 0c000380 06000100 04000000",
            ),
            (
                CmpOp::GT,
                "08000100 00000001 08000200 00000004 0c000380 06000100 04000000",
            ),
            (
                CmpOp::GTE,
                "08000100 00000001 08000200 00000005 0c000380 06000100 04000000",
            ),
        ] {
            assert_attributes(Decoded::Cmp, Cmp::new(Register::R1, op, &port), sent);
        }
    }

    /// The name of an interface is compared completely (nft 1.0.6: `iifname "lo"`), up to its NUL
    /// (iptables-nft 1.8.9: `-i eth0`) or, for a prefix, without a NUL (nft 1.0.6:
    /// `oifname "veth*"`).
    #[test]
    fn names_of_interfaces() {
        assert_attributes(
            Decoded::Cmp,
            Cmp::eq(Register::R1, b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
            "
                08000100 00000001 08000200 00000000 18000380 14000100 6c6f0000 00000000
                00000000 00000000
            ",
        );
        assert_attributes(
            Decoded::Cmp,
            Cmp::eq(Register::R1, b"eth0\0"),
            "08000100 00000001 08000200 00000000 10000380 09000100 65746830 00000000",
        );
        assert_attributes(
            Decoded::Cmp,
            Cmp::eq(Register::R1, b"veth"),
            "08000100 00000001 08000200 00000000 0c000380 08000100 76657468",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c ct original saddr 10.1.2.3 …`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Cmp,
            Cmp::eq(Register::R1, &[10, 1, 2, 3]),
            "
                2c000100 08000100 636d7000 20000200 08000100 00000001 08000200 00000000
                0c000300 08000100 0a010203
            ",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) of ports, of
    /// interface names, of a hardware address; without attributes, and with an unknown operation,
    /// as its libnftnl printed handmade attributes.
    #[test]
    fn bytecode() {
        let lo = b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let port = 1024u16.to_be_bytes();
        for (op, bytes, line) in [
            (CmpOp::EQ, &[10, 0, 0, 0][..], "[ cmp eq reg 1 0x0000000a ]"),
            (CmpOp::EQ, &[6], "[ cmp eq reg 1 0x00000006 ]"),
            (CmpOp::NEQ, &[0, 80], "[ cmp neq reg 1 0x00005000 ]"),
            (CmpOp::LT, &port, "[ cmp lt reg 1 0x00000004 ]"),
            (CmpOp::LTE, &port, "[ cmp lte reg 1 0x00000004 ]"),
            (CmpOp::GT, &port, "[ cmp gt reg 1 0x00000004 ]"),
            (CmpOp::GTE, &port, "[ cmp gte reg 1 0x00000004 ]"),
            (
                CmpOp::EQ,
                lo,
                "[ cmp eq reg 1 0x00006f6c 0x00000000 0x00000000 0x00000000 ]",
            ),
            (
                CmpOp::EQ,
                b"eth0\0",
                "[ cmp eq reg 1 0x30687465 0x00000000 ]",
            ),
            (CmpOp::EQ, b"veth", "[ cmp eq reg 1 0x68746576 ]"),
            (
                CmpOp::EQ,
                &[0, 0x11, 0x22, 0x33, 0x44, 0x55],
                "[ cmp eq reg 1 0x33221100 0x00005544 ]",
            ),
            (CmpOp(6), &[1, 2, 3], "[ cmp unknown reg 1 0x00030201 ]"),
        ] {
            assert_eq!(Cmp::new(Register::R1, op, bytes).to_string(), line);
        }
        assert_eq!(Cmp::default().to_string(), "[ cmp eq reg 0 ]");
    }
}
