//! `immediate`: puts a value or a verdict into a register.

use chainwright_sys::nf_tables::{NFTA_IMMEDIATE_DATA, NFTA_IMMEDIATE_DREG};

use super::{Data, Register, Verdict, expression};
use crate::nft::name::Name;

expression! {
    "immediate"
    /// Puts a value or a verdict into a register (`enum nft_immediate_attributes`).
    pub struct Immediate<'a> {
        /// The register.
        NFTA_IMMEDIATE_DREG => dreg: Register,
        /// What goes into it.
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
        }
    }

    /// Gives a verdict.
    #[must_use]
    pub const fn verdict(verdict: Verdict<'a>) -> Self {
        Self {
            dreg: Some(Register::VERDICT),
            data: Some(Data::Verdict(verdict)),
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

    /// Goes to a chain, without a way back.
    pub fn goto(chain: impl Into<Name<'a>>) -> Self {
        Self::verdict(Verdict::Goto(chain.into()))
    }
}
