//! `osf`: guesses the operating system that sent a SYN packet.
//!
//! ```text
//! NFTA_OSF_DREG    be32
//! NFTA_OSF_TTL     u8
//! NFTA_OSF_FLAGS   be32
//! ```
//!
//! The kernel lists flags of 0 if none were given, and refuses flags of 0 (`EINVAL`): see
//! [`Osf::into_request`].

use chainwright_sys::nf_tables::{NFT_OSF_F_VERSION, NFTA_OSF_DREG, NFTA_OSF_FLAGS, NFTA_OSF_TTL};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::{flags, values};

values! {
    /// The comparison of the packet's time to live with the fingerprint's (`NF_OSF_TTL_*`,
    /// `linux/netfilter/nfnetlink_osf.h`).
    pub struct OsfTtl: u8 {
        /// Equal.
        TRUE = 0 => "true",
        /// The packet's is at most the fingerprint's, after any number of hops.
        LESS = 1 => "loose",
        /// No comparison.
        NOCHECK = 2 => "skip",
    }
}

flags! {
    /// Flags of the expression (`enum nft_osf_flags`).
    pub struct OsfFlags: u32 {
        /// Appends the version to the name, as in `Linux:4.4`.
        const VERSION = NFT_OSF_F_VERSION,
    }
}

expression! {
    "osf"
    /// Stores the name of the operating system that sent a SYN packet in a register: 16 bytes with
    /// NULs after the name, `unknown` if no fingerprint matches (`enum nft_osf_attributes`).
    ///
    /// The fingerprints must be loaded through nfnetlink (`nfnl_osf`).
    pub struct Osf viewed as OsfRef,
    listed as [ttl, flags, dreg] {
        /// Destination register.
        NFTA_OSF_DREG => dreg: Register,
        /// The comparison of the time to live.
        NFTA_OSF_TTL => ttl: OsfTtl,
        /// Flags: absent or not empty; only listings contain an empty set.
        NFTA_OSF_FLAGS => flags: OsfFlags,
    }
}

impl Osf {
    /// Stores only the name.
    #[must_use]
    pub const fn name(ttl: OsfTtl, dreg: Register) -> Self {
        Self {
            dreg: Some(dreg),
            ttl: Some(ttl),
            flags: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Stores the name and the version, separated by a colon.
    #[must_use]
    pub const fn version(ttl: OsfTtl, dreg: Register) -> Self {
        Self {
            dreg: Some(dreg),
            ttl: Some(ttl),
            flags: Some(OsfFlags::VERSION),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Converts a listed expression to the form that the kernel accepts: without empty flags.
    #[must_use]
    pub const fn into_request(mut self) -> Self {
        if let Some(flags) = self.flags
            && flags.is_empty()
        {
            self.flags = None;
        }
        self
    }
}

/// Formats like `nft --debug=netlink`: only the register.
impl std::fmt::Display for Osf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.dreg {
            Some(dreg) => write!(f, "[ osf dreg {} ]", dreg.0),
            None => f.write_str("[ osf ]"),
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built("osf name \"Linux\"", Osf::name(OsfTtl::TRUE, Register::R1));
        assert_built(
            "osf ttl loose name \"Linux\"",
            Osf::name(OsfTtl::LESS, Register::R1),
        );
        assert_built(
            "osf version \"Linux:4.4\"",
            Osf::version(OsfTtl::TRUE, Register::R1),
        );
    }
}
