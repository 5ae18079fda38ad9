//! `redir`: changes a connection's destination to this machine.
//!
//! All attributes are be32 and optional.

use chainwright_sys::nf_tables::{
    NFTA_REDIR_FLAGS, NFTA_REDIR_REG_PROTO_MAX, NFTA_REDIR_REG_PROTO_MIN,
};

use super::nat::print_ports;
use super::{NatRangeFlags, Register, expression};

expression! {
    "redir"
    /// Redirects to this machine (`enum nft_redir_attributes`).
    pub struct Redir viewed as RedirRef {
        /// First port.
        NFTA_REDIR_REG_PROTO_MIN => proto_min: Register,
        /// Last port.
        NFTA_REDIR_REG_PROTO_MAX => proto_max: Register,
        /// Flags.
        NFTA_REDIR_FLAGS => flags: NatRangeFlags,
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Redir {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ redir ")?;
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
            (1, "NFTA_REDIR_REG_PROTO_MIN", Wire::Be32),
            (2, "NFTA_REDIR_REG_PROTO_MAX", Wire::Be32),
            (3, "NFTA_REDIR_FLAGS", Wire::Be32),
        ];
        assert_layout::<Redir>(Redir::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t n tcp dport 80 redirect to :8080-8090 random`.
    #[test]
    fn to_a_range_of_ports() {
        assert_element(
            Decoded::Redir,
            Redir {
                proto_min: Some(Register::R1),
                proto_max: Some(Register::R2),
                flags: Some(NatRangeFlags::PROTO_SPECIFIED | NatRangeFlags::PROTO_RANDOM),
                ..Default::default()
            },
            "
                2c000180                    ; NFTA_LIST_ELEM
                0a000100 72656469 72000000  ;   NFTA_EXPR_NAME: redir
                1c000280                    ;   NFTA_EXPR_DATA
                08000100 00000001           ;     NFTA_REDIR_REG_PROTO_MIN
                08000200 00000002           ;     NFTA_REDIR_REG_PROTO_MAX
                08000300 00000006           ;     NFTA_REDIR_FLAGS
            ",
        );
    }

    /// nft 1.0.6: `redirect`, `tcp dport 80 redirect to :8080`.
    #[test]
    fn others() {
        assert_attributes(Decoded::Redir, Redir::default(), "");
        assert_attributes(
            Decoded::Redir,
            Redir {
                proto_min: Some(Register::R1),
                proto_max: None,
                flags: Some(NatRangeFlags::PROTO_SPECIFIED),
                ..Default::default()
            },
            "08000100 00000001 08000300 00000002",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t n tcp dport 80 redirect to :8080`: the kernel adds
    /// the last port.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Redir,
            Redir {
                proto_min: Some(Register::R1),
                proto_max: Some(Register::R1),
                flags: Some(NatRangeFlags::PROTO_SPECIFIED),
                ..Default::default()
            },
            "
                2c000100 0a000100 72656469 72000000 1c000200 08000100 00000001 08000200
                00000001 08000300 00000002
            ",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after `redirect`,
    /// `redirect to :8080`, `redirect to :8080-8090 random`; the last two as its libnftnl printed
    /// handmade attributes.
    #[test]
    fn bytecode() {
        let (r1, r2) = (Some(Register::R1), Some(Register::R2));
        for (flags, proto_min, proto_max, line) in [
            (None, None, None, "[ redir ]"),
            (
                Some(2),
                r1,
                r1,
                "[ redir proto_min reg 1 proto_max reg 1 flags 0x2 ]",
            ),
            (
                Some(6),
                r1,
                r2,
                "[ redir proto_min reg 1 proto_max reg 2 flags 0x6 ]",
            ),
            (Some(0), None, None, "[ redir flags 0x0 ]"),
            (None, None, r2, "[ redir proto_max reg 2 ]"),
        ] {
            let redir = Redir {
                flags: flags.map(NatRangeFlags::from_bits_retain),
                proto_min,
                proto_max,
                ..Redir::default()
            };
            assert_eq!(redir.to_string(), line);
        }
    }
}
