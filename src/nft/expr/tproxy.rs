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
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built(
            "tproxy ip to 10.0.0.1:50080",
            Tproxy::to_addr(Family::IP, Register::R1, Some(Register::R2)),
        );
        assert_built(
            "tproxy ip to 10.0.0.1",
            Tproxy::to_addr(Family::IP, Register::R1, None),
        );
        assert_built(
            "tproxy ip to :50080",
            Tproxy::to_port(Family::IP, Register::R1),
        );
        assert_built(
            "tproxy to :50080",
            Tproxy::to_port(Family::UNSPEC, Register::R1),
        );
    }
}
