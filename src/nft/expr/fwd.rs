//! `fwd`: sends the packet out of another device instead of processing it further (family `netdev`).
//!
//! ```text
//! NFTA_FWD_SREG_DEV    be32
//! NFTA_FWD_SREG_ADDR   be32
//! NFTA_FWD_NFPROTO     be32: NFPROTO_IPV4 or NFPROTO_IPV6
//! ```
//!
//! The kernel requires the device, and either both address and family or neither.

use chainwright_sys::nf_tables::{NFTA_FWD_NFPROTO, NFTA_FWD_SREG_ADDR, NFTA_FWD_SREG_DEV};

use super::{Register, expression};
use crate::nft::{Family, UnknownAttributes};

expression! {
    "fwd"
    /// Sends the packet out of another device, unchanged or to a neighbor there
    /// (`enum nft_fwd_attributes`).
    pub struct Fwd viewed as FwdRef {
        /// Register with the index of the device, u32 in host byte order.
        NFTA_FWD_SREG_DEV => sreg_dev: Register,
        /// Register with the neighbor's address, 4 or 16 bytes in network order; without it the
        /// packet keeps its link layer header.
        NFTA_FWD_SREG_ADDR => sreg_addr: Register,
        /// Family of that address, `NFPROTO_IPV4` or `NFPROTO_IPV6`.
        NFTA_FWD_NFPROTO => nfproto: u32,
    }
}

impl Fwd {
    /// Sends the packet unchanged out of the device in this register.
    #[must_use]
    pub const fn to_device(sreg_dev: Register) -> Self {
        Self {
            sreg_dev: Some(sreg_dev),
            sreg_addr: None,
            nfproto: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Sends the packet out of the device in the first register to the neighbor whose address is
    /// in the second one; `family` is the address family, [`Family::IP`] or [`Family::IP6`].
    #[must_use]
    pub const fn to_neighbor(sreg_dev: Register, sreg_addr: Register, family: Family) -> Self {
        Self {
            sreg_dev: Some(sreg_dev),
            sreg_addr: Some(sreg_addr),
            nfproto: Some(family.0 as u32),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Fwd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ fwd ")?;
        if let Some(Register(register)) = self.sreg_dev {
            write!(f, "sreg_dev {register} ")?;
        }
        if let Some(Register(register)) = self.sreg_addr {
            write!(f, "sreg_addr {register} ")?;
        }
        if let Some(nfproto) = self.nfproto {
            write!(f, "nfproto {nfproto} ")?;
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
            "fwd ip to 10.0.0.1 device \"lo\"",
            Fwd::to_neighbor(Register::R1, Register::R2, Family::IP),
        );
        assert_built("fwd to \"lo\"", Fwd::to_device(Register::R1));
        assert_built(
            "listed: fwd ip6 to fe80::1 device \"lo\"",
            Fwd::to_neighbor(Register::R1, Register::R2, Family::IP6),
        );
    }
}
