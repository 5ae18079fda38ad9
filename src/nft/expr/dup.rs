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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_DUP_SREG_ADDR", Wire::Be32),
            (2, "NFTA_DUP_SREG_DEV", Wire::Be32),
        ];
        assert_layout::<Dup>(Dup::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c dup to 10.0.0.1 device "lo"`.
    #[test]
    fn to_an_address_by_a_device() {
        assert_element(
            Decoded::Dup,
            Dup {
                sreg_addr: Some(Register::R1),
                sreg_dev: Some(Register::R2),
                ..Default::default()
            },
            "
                20000180           ; NFTA_LIST_ELEM
                08000100 64757000  ;   NFTA_EXPR_NAME: dup
                14000280           ;   NFTA_EXPR_DATA
                08000100 00000001  ;     NFTA_DUP_SREG_ADDR
                08000200 00000002  ;     NFTA_DUP_SREG_DEV
            ",
        );
        assert_attributes(
            Decoded::Dup,
            Dup::to_address_by_device(Register::R1, Register::R2),
            "08000100 00000001 08000200 00000002",
        );
    }

    /// nft 1.0.6: `add rule ip t c dup to 10.0.0.1` and `add rule netdev t c dup to "lo"`.
    #[test]
    fn to_one_of_both() {
        assert_attributes(
            Decoded::Dup,
            Dup::to_address(Register::R1),
            "08000100 00000001",
        );
        assert_attributes(
            Decoded::Dup,
            Dup::to_device(Register::R1),
            "08000200 00000001",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip6 t c dup to fe80::1 device "lo"` and
    /// `add rule netdev t c dup to "lo"`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Dup,
            Dup::to_address_by_device(Register::R1, Register::R2),
            "20000100 08000100 64757000 14000200 08000100 00000001 08000200 00000002",
        );
        assert_listed(
            Decoded::Dup,
            Dup::to_device(Register::R1),
            "18000100 08000100 64757000 0c000200 08000200 00000001",
        );
    }

    /// The rules above as nft 1.0.6 prints them; then libnftnl 1.2.4 without attributes.
    #[test]
    fn bytecode() {
        for (expression, line) in [
            (Dup::to_address(Register::R1), "[ dup sreg_addr 1 ]"),
            (
                Dup::to_address_by_device(Register::R1, Register::R2),
                "[ dup sreg_addr 1 sreg_dev 2 ]",
            ),
            (Dup::to_device(Register::R1), "[ dup sreg_dev 1 ]"),
            (Dup::default(), "[ dup ]"),
        ] {
            assert_eq!(expression.to_string(), line);
        }
    }
}
