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
    /// How the packet's time to live is compared with the fingerprint's (`NF_OSF_TTL_*`,
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
        /// How the time to live is compared.
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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_OSF_DREG", Wire::Be32),
            (2, "NFTA_OSF_TTL", Wire::U8),
            (3, "NFTA_OSF_FLAGS", Wire::Be32),
        ];
        assert_layout::<Osf>(Osf::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c osf ttl skip version "Linux:4.4"`.
    #[test]
    fn a_version() {
        assert_element(
            Decoded::Osf,
            Osf {
                dreg: Some(Register::R1),
                ttl: Some(OsfTtl::NOCHECK),
                flags: Some(OsfFlags::VERSION),
                ..Default::default()
            },
            "
                28000180           ; NFTA_LIST_ELEM
                08000100 6f736600  ;   NFTA_EXPR_NAME: osf
                1c000280           ;   NFTA_EXPR_DATA
                08000100 00000001  ;     NFTA_OSF_DREG
                05000200 02000000  ;     NFTA_OSF_TTL
                08000300 00000001  ;     NFTA_OSF_FLAGS
            ",
        );
    }

    /// nft 1.0.6: `osf name "Linux"`, `osf ttl loose name "Linux"`, `osf ttl skip name "Linux"`,
    /// `osf version "Linux:4.4"`.
    #[test]
    fn names_and_versions() {
        for (osf, sent) in [
            (
                Osf::name(OsfTtl::TRUE, Register::R1),
                "08000100 00000001 05000200 00000000",
            ),
            (
                Osf::name(OsfTtl::LESS, Register::R1),
                "08000100 00000001 05000200 01000000",
            ),
            (
                Osf::name(OsfTtl::NOCHECK, Register::R1),
                "08000100 00000001 05000200 02000000",
            ),
            (
                Osf::version(OsfTtl::TRUE, Register::R1),
                "08000100 00000001 05000200 00000000 08000300 00000001",
            ),
        ] {
            assert_attributes(Decoded::Osf, osf, sent);
        }
    }

    /// Listed after nft 1.0.6: `add rule ip t c osf ttl loose name "Linux"` and
    /// `add rule ip t c osf version "Linux:4.4"`. The first cannot be written unchanged: Linux 6.18
    /// refuses flags of 0.
    #[test]
    fn listed() {
        let named = Osf {
            flags: Some(OsfFlags::empty()),
            ..Osf::name(OsfTtl::LESS, Register::R1)
        };
        assert_listed(
            Decoded::Osf,
            named.clone(),
            "
                28000100 08000100 6f736600 1c000200 05000200 01000000 08000300 00000000
                08000100 00000001
            ",
        );
        assert_eq!(named.into_request(), Osf::name(OsfTtl::LESS, Register::R1));

        let version = Osf::version(OsfTtl::TRUE, Register::R1);
        assert_listed(
            Decoded::Osf,
            version.clone(),
            "
                28000100 08000100 6f736600 1c000200 05000200 00000000 08000300 00000001
                08000100 00000001
            ",
        );
        assert_eq!(version.clone().into_request(), version);
    }

    /// The rules above as nft 1.0.6 prints them; the last as libnftnl 1.2.4 prints a missing register.
    #[test]
    fn bytecode() {
        let name = Osf::name(OsfTtl::LESS, Register::R1);
        assert_eq!(name.to_string(), "[ osf dreg 1 ]");
        let version = Osf::version(OsfTtl::TRUE, Register::R1);
        assert_eq!(version.to_string(), "[ osf dreg 1 ]");
        assert_eq!(Osf::default().to_string(), "[ osf ]");
    }
}
