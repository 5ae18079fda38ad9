//! `immediate`: loads a value or a verdict into a register.
//!
//! ```text
//! NFTA_IMMEDIATE_DREG   be32
//! NFTA_IMMEDIATE_DATA   nested: a verdict for register 0, a value for all others
//! ```

use chainwright_sys::nf_tables::{NFTA_IMMEDIATE_DATA, NFTA_IMMEDIATE_DREG};

use super::data::Spaced;
use super::{Data, Register, Verdict, expression};
use crate::nft::UnknownAttributes;
use crate::nft::name::Name;

expression! {
    "immediate"
    /// Loads a value or a verdict into a register (`enum nft_immediate_attributes`).
    pub struct Immediate<'a> viewed as ImmediateRef {
        /// The register.
        NFTA_IMMEDIATE_DREG => dreg: Register,
        /// The value or verdict.
        NFTA_IMMEDIATE_DATA => data: Data<'a>,
    }
}

impl<'a> Immediate<'a> {
    /// Loads a value into a register.
    #[must_use]
    pub const fn value(dreg: Register, bytes: &'a [u8]) -> Self {
        Self {
            dreg: Some(dreg),
            data: Some(Data::value(bytes)),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Returns a verdict.
    #[must_use]
    pub const fn verdict(verdict: Verdict<'a>) -> Self {
        Self {
            dreg: Some(Register::VERDICT),
            data: Some(Data::Verdict(verdict)),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Accepts the packet.
    #[must_use]
    pub const fn accept() -> Self {
        Self::verdict(Verdict::Accept)
    }

    /// Drops the packet.
    #[must_use]
    pub const fn drop() -> Self {
        Self::verdict(Verdict::Drop)
    }

    /// Returns to the calling chain.
    #[must_use]
    pub const fn return_() -> Self {
        Self::verdict(Verdict::Return)
    }

    /// Jumps to a chain.
    pub fn jump(chain: impl Into<Name<'a>>) -> Self {
        Self::verdict(Verdict::Jump(chain.into()))
    }

    /// Goes to a chain, without returning.
    pub fn goto(chain: impl Into<Name<'a>>) -> Self {
        Self::verdict(Verdict::Goto(chain.into()))
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Immediate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dreg = self.dreg.unwrap_or_default().0;
        write!(f, "[ immediate reg {dreg} {}]", Spaced(&self.data))
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built("accept", Immediate::accept());
        assert_built("drop", Immediate::drop());
        assert_built("return", Immediate::return_());
        assert_built("continue", Immediate::verdict(Verdict::Continue));
        assert_built("jump d", Immediate::jump("d"));
        assert_built("goto d", Immediate::goto("d"));
        assert_built(
            "ct mark set 0x4000",
            Immediate::value(Register::R1, &0x4000_u32.to_ne_bytes()),
        );
        assert_built("meta nftrace set 1", Immediate::value(Register::R1, &[1]));
        assert_built(
            "dnat to 10.0.0.1:8080: the address",
            Immediate::value(Register::R1, &[10, 0, 0, 1]),
        );
        assert_built(
            "dnat to 10.0.0.1:8080: the port",
            Immediate::value(Register::R2, &8080u16.to_be_bytes()),
        );
        assert_built("listed: break", Immediate::verdict(Verdict::Break));
    }
}
