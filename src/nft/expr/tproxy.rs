//! `tproxy`: assigns the packet to a local socket with the option `IP_TRANSPARENT`, without
//! changing it.
//!
//! ```text
//! NFTA_TPROXY_FAMILY     be32
//! NFTA_TPROXY_REG_ADDR   be32
//! NFTA_TPROXY_REG_PORT   be32
//! ```
//!
//! The family and at least one register are required.

use chainwright_sys::nf_tables::{NFTA_TPROXY_FAMILY, NFTA_TPROXY_REG_ADDR, NFTA_TPROXY_REG_PORT};

use super::{Register, expression};
use crate::nft::{Family, UnknownAttributes};

expression! {
    "tproxy"
    /// Assigns the packet to a local socket that listens on an address and a port, both in
    /// registers in network order (`enum nft_tproxy_attributes`); the rule doesn't match without
    /// such a socket.
    pub struct Tproxy viewed as TproxyRef {
        /// Family of the packets, `NFPROTO_IPV4` or `NFPROTO_IPV6`; `NFPROTO_UNSPEC` for both, in a
        /// table of the family inet, without an address.
        NFTA_TPROXY_FAMILY => family: u32,
        /// Register with the address; by default the address of the input device.
        NFTA_TPROXY_REG_ADDR => reg_addr: Register,
        /// Register with the port; if absent or 0, the packet's port.
        NFTA_TPROXY_REG_PORT => reg_port: Register,
    }
}

impl Tproxy {
    /// Assigns packets to the socket that listens on a port.
    #[must_use]
    pub const fn to_port(family: Family, reg_port: Register) -> Self {
        Self::to(family, None, Some(reg_port))
    }

    /// Assigns packets to the socket that listens on an address and, if given, a port.
    #[must_use]
    pub const fn to_addr(family: Family, reg_addr: Register, reg_port: Option<Register>) -> Self {
        Self::to(family, Some(reg_addr), reg_port)
    }

    const fn to(family: Family, reg_addr: Option<Register>, reg_port: Option<Register>) -> Self {
        Self {
            family: Some(family.0 as u32),
            reg_addr,
            reg_port,
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Tproxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ tproxy ")?;
        if let Some(family @ 1..) = self.family {
            let family = u8::try_from(family).ok().map(Family);
            let name = family.and_then(Family::name).unwrap_or("unknown");
            write!(f, "{name} ")?;
        }
        if let Some(reg) = self.reg_addr {
            write!(f, "addr reg {} ", reg.0)?;
        }
        if let Some(reg) = self.reg_port {
            write!(f, "port reg {} ", reg.0)?;
        }
        f.write_str("]")
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
            (1, "NFTA_TPROXY_FAMILY", Wire::Be32),
            (2, "NFTA_TPROXY_REG_ADDR", Wire::Be32),
            (3, "NFTA_TPROXY_REG_PORT", Wire::Be32),
        ];
        assert_layout::<Tproxy>(Tproxy::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6:
    /// `add rule inet t c meta l4proto tcp tproxy ip6 to [2001:db8::1]:50080`.
    #[test]
    fn to_an_address_and_a_port() {
        assert_element(
            Decoded::Tproxy,
            Tproxy {
                family: Some(10),
                reg_addr: Some(Register::R1),
                reg_port: Some(Register::R2),
                ..Default::default()
            },
            "
                2c000180                    ; NFTA_LIST_ELEM
                0b000100 7470726f 78790000  ;   NFTA_EXPR_NAME: tproxy
                1c000280                    ;   NFTA_EXPR_DATA
                08000100 0000000a           ;     NFTA_TPROXY_FAMILY
                08000200 00000001           ;     NFTA_TPROXY_REG_ADDR
                08000300 00000002           ;     NFTA_TPROXY_REG_PORT
            ",
        );
    }

    /// nft 1.0.6, in family inet: `tproxy ip to 10.0.0.1:50080`, `tproxy ip to 10.0.0.1`,
    /// `tproxy ip to :50080`, `tproxy to :50080`.
    #[test]
    fn to_an_address_or_a_port() {
        for (tproxy, sent) in [
            (
                Tproxy::to_addr(Family::IP, Register::R1, Some(Register::R2)),
                "08000100 00000002 08000200 00000001 08000300 00000002",
            ),
            (
                Tproxy::to_addr(Family::IP, Register::R1, None),
                "08000100 00000002 08000200 00000001",
            ),
            (
                Tproxy::to_port(Family::IP, Register::R1),
                "08000100 00000002 08000300 00000001",
            ),
            (
                Tproxy::to_port(Family::UNSPEC, Register::R1),
                "08000100 00000000 08000300 00000001",
            ),
        ] {
            assert_attributes(Decoded::Tproxy, tproxy, sent);
        }
    }

    /// Listed after nft 1.0.6: `add rule inet t c meta l4proto tcp tproxy to :50080` and
    /// `add rule inet t c meta l4proto tcp tproxy ip6 to [2001:db8::1]:50080`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Tproxy,
            Tproxy::to_port(Family::UNSPEC, Register::R1),
            "
                24000100 0b000100 7470726f 78790000 14000200 08000100 00000000 08000300
                00000001
            ",
        );
        assert_listed(
            Decoded::Tproxy,
            Tproxy::to_addr(Family::IP6, Register::R1, Some(Register::R2)),
            "
                2c000100 0b000100 7470726f 78790000 1c000200 08000100 0000000a 08000200
                00000001 08000300 00000002
            ",
        );
    }

    /// The rules above as nft 1.0.6 prints them; from `inet` on as libnftnl 1.2.4 prints attributes
    /// that no kernel lists.
    #[test]
    fn bytecode() {
        for (tproxy, line) in [
            (
                Tproxy::to_port(Family::UNSPEC, Register::R1),
                "[ tproxy port reg 1 ]",
            ),
            (
                Tproxy::to_addr(Family::IP, Register::R1, Some(Register::R2)),
                "[ tproxy ip addr reg 1 port reg 2 ]",
            ),
            (
                Tproxy::to_port(Family::IP, Register::R1),
                "[ tproxy ip port reg 1 ]",
            ),
            (
                Tproxy::to_addr(Family::IP6, Register::R1, None),
                "[ tproxy ip6 addr reg 1 ]",
            ),
            (
                Tproxy::to_port(Family::INET, Register::R2),
                "[ tproxy inet port reg 2 ]",
            ),
            (
                Tproxy::to_port(Family(99), Register::R1),
                "[ tproxy unknown port reg 1 ]",
            ),
            (
                Tproxy {
                    family: Some(258),
                    ..Tproxy::to_port(Family::UNSPEC, Register::R1)
                },
                "[ tproxy unknown port reg 1 ]",
            ),
            (Tproxy::default(), "[ tproxy ]"),
        ] {
            assert_eq!(tproxy.to_string(), line);
        }
    }
}
