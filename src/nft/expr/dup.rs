//! `dup`: sends a copy of the packet elsewhere; the packet itself continues.
//!
//! ```text
//! NFTA_DUP_SREG_ADDR   be32
//! NFTA_DUP_SREG_DEV    be32
//! ```
//!
//! The families `ip` and `ip6` require the address, `netdev` only the device.

use chainwright_sys::nf_tables::{NFTA_DUP_SREG_ADDR, NFTA_DUP_SREG_DEV};

use super::{Register, expression};
use crate::nft::UnknownAttributes;

expression! {
    "dup"
    /// Sends a copy of the packet to another host or out of another device
    /// (`enum nft_dup_attributes`).
    pub struct Dup viewed as DupRef {
        /// Register with the address of the gateway for the copy, 4 or 16 bytes in network order.
        NFTA_DUP_SREG_ADDR => sreg_addr: Register,
        /// Register with the index of the output device of the copy, u32 in host byte order.
        NFTA_DUP_SREG_DEV => sreg_dev: Register,
    }
}

impl Dup {
    /// Sends the copy to the address in this register (families `ip` and `ip6`).
    #[must_use]
    pub const fn to_address(sreg_addr: Register) -> Self {
        Self {
            sreg_addr: Some(sreg_addr),
            sreg_dev: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Sends the copy to the address in the first register through the device in the second one
    /// (families `ip` and `ip6`).
    #[must_use]
    pub const fn to_address_by_device(sreg_addr: Register, sreg_dev: Register) -> Self {
        Self {
            sreg_addr: Some(sreg_addr),
            sreg_dev: Some(sreg_dev),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Sends the copy out of the device in this register (family `netdev`).
    #[must_use]
    pub const fn to_device(sreg_dev: Register) -> Self {
        Self {
            sreg_addr: None,
            sreg_dev: Some(sreg_dev),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Dup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ dup ")?;
        if let Some(Register(register)) = self.sreg_addr {
            write!(f, "sreg_addr {register} ")?;
        }
        if let Some(Register(register)) = self.sreg_dev {
            write!(f, "sreg_dev {register} ")?;
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
            "dup to 10.0.0.1 device \"lo\"",
            Dup::to_address_by_device(Register::R1, Register::R2),
        );
        assert_built("dup to 10.0.0.1", Dup::to_address(Register::R1));
        assert_built("dup to \"lo\"", Dup::to_device(Register::R1));
    }
}
