//! `masq`: changes a connection's source to the address of the output interface.
//!
//! All attributes are be32 and optional.

use chainwright_sys::nf_tables::{
    NFTA_MASQ_FLAGS, NFTA_MASQ_REG_PROTO_MAX, NFTA_MASQ_REG_PROTO_MIN,
};

use super::nat::print_ports;
use super::{NatRangeFlags, Register, expression};

expression! {
    "masq"
    /// Masquerades (`enum nft_masq_attributes`).
    pub struct Masq viewed as MasqRef {
        /// Flags.
        NFTA_MASQ_FLAGS => flags: NatRangeFlags,
        /// First port.
        NFTA_MASQ_REG_PROTO_MIN => proto_min: Register,
        /// Last port.
        NFTA_MASQ_REG_PROTO_MAX => proto_max: Register,
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Masq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ masq ")?;
        print_ports(f, [self.proto_min, self.proto_max], self.flags)
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
            (1, "NFTA_MASQ_FLAGS", Wire::Be32),
            (2, "NFTA_MASQ_REG_PROTO_MIN", Wire::Be32),
            (3, "NFTA_MASQ_REG_PROTO_MAX", Wire::Be32),
        ];
        assert_layout::<Masq>(Masq::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t p meta l4proto tcp masquerade to :1024-65535 fully-random`.
    #[test]
    fn with_ports() {
        assert_element(
            Decoded::Masq,
            Masq {
                flags: Some(NatRangeFlags::PROTO_SPECIFIED | NatRangeFlags::PROTO_RANDOM_FULLY),
                proto_min: Some(Register::R1),
                proto_max: Some(Register::R2),
                ..Default::default()
            },
            "
                2c000180                    ; NFTA_LIST_ELEM
                09000100 6d617371 00000000  ;   NFTA_EXPR_NAME: masq
                1c000280                    ;   NFTA_EXPR_DATA
                08000100 00000012           ;     NFTA_MASQ_FLAGS
                08000200 00000001           ;     NFTA_MASQ_REG_PROTO_MIN
                08000300 00000002           ;     NFTA_MASQ_REG_PROTO_MAX
            ",
        );
    }

    /// nft 1.0.6: `masquerade` and `masquerade random,persistent`.
    #[test]
    fn without_ports() {
        assert_attributes(Decoded::Masq, Masq::default(), "");
        assert_attributes(
            Decoded::Masq,
            Masq {
                flags: Some(NatRangeFlags::PROTO_RANDOM | NatRangeFlags::PERSISTENT),
                ..Masq::default()
            },
            "08000100 0000000c",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t p masquerade random` and
    /// `add rule ip t p meta l4proto tcp masquerade to :1024-65535`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Masq,
            Masq {
                flags: Some(NatRangeFlags::PROTO_RANDOM),
                ..Masq::default()
            },
            "1c000100 09000100 6d617371 00000000 0c000200 08000100 00000004",
        );
        assert_listed(
            Decoded::Masq,
            Masq {
                flags: Some(NatRangeFlags::PROTO_SPECIFIED),
                proto_min: Some(Register::R1),
                proto_max: Some(Register::R2),
                ..Default::default()
            },
            "
                2c000100 09000100 6d617371 00000000 1c000200 08000100 00000002 08000200
                00000001 08000300 00000002
            ",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after `masquerade`,
    /// `masquerade random,persistent`, `masquerade to :1024`,
    /// `masquerade to :1024-65535 fully-random`; the last as its libnftnl printed handmade
    /// attributes.
    #[test]
    fn bytecode() {
        let (r1, r2) = (Some(Register::R1), Some(Register::R2));
        for (flags, proto_min, proto_max, line) in [
            (None, None, None, "[ masq ]"),
            (Some(0xc), None, None, "[ masq flags 0xc ]"),
            (
                Some(2),
                r1,
                r1,
                "[ masq proto_min reg 1 proto_max reg 1 flags 0x2 ]",
            ),
            (
                Some(0x12),
                r1,
                r2,
                "[ masq proto_min reg 1 proto_max reg 2 flags 0x12 ]",
            ),
            (Some(0), None, r2, "[ masq proto_max reg 2 flags 0x0 ]"),
        ] {
            let masq = Masq {
                flags: flags.map(NatRangeFlags::from_bits_retain),
                proto_min,
                proto_max,
                ..Masq::default()
            };
            assert_eq!(masq.to_string(), line);
        }
    }
}
