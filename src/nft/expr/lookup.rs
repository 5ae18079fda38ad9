//! `lookup`: looks up a register in a set or map.
//!
//! ```text
//! NFTA_LOOKUP_SREG     be32
//! NFTA_LOOKUP_DREG     be32
//! NFTA_LOOKUP_SET      string
//! NFTA_LOOKUP_SET_ID   be32: written only
//! NFTA_LOOKUP_FLAGS    be32: always listed
//! ```

use chainwright_sys::nf_tables::{
    NFT_LOOKUP_F_INV, NFTA_LOOKUP_DREG, NFTA_LOOKUP_FLAGS, NFTA_LOOKUP_SET, NFTA_LOOKUP_SET_ID,
    NFTA_LOOKUP_SREG,
};

use super::{Register, expression};
use crate::nft::declare::flags;
use crate::nft::name::Name;

flags! {
    /// Flags of a lookup (`enum nft_lookup_flags`).
    pub struct LookupFlags: u32 {
        /// Matches if the key is *not* in the set.
        const INV = NFT_LOOKUP_F_INV,
    }
}

expression! {
    "lookup"
    /// Looks up a register in a set; the value found in a map is stored in a register or becomes
    /// the verdict (`enum nft_lookup_attributes`).
    pub struct Lookup<'a> viewed as LookupRef,
    listed as [set, sreg, dreg, flags, set_id] {
        /// Register with the key.
        NFTA_LOOKUP_SREG => sreg: Register,
        /// Destination register for a map's value.
        NFTA_LOOKUP_DREG => dreg: Register,
        /// Name of the set.
        NFTA_LOOKUP_SET => set: Name<'a>,
        /// ID of the set in the same batch.
        NFTA_LOOKUP_SET_ID => set_id: u32,
        /// Flags.
        NFTA_LOOKUP_FLAGS => flags: LookupFlags,
    }
}

impl<'a> Lookup<'a> {
    /// Matches if the key is in the set.
    pub fn set(sreg: Register, set: impl Into<Name<'a>>) -> Self {
        Self {
            set: Some(set.into()),
            sreg: Some(sreg),
            ..Self::default()
        }
    }

    /// Loads a map's value for the key into a register; the verdict register for a verdict map.
    pub fn map(sreg: Register, map: impl Into<Name<'a>>, dreg: Register) -> Self {
        Self {
            set: Some(map.into()),
            sreg: Some(sreg),
            dreg: Some(dreg),
            ..Self::default()
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Lookup<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[ lookup reg {} ", self.sreg.unwrap_or_default().0)?;
        match &self.set {
            Some(set) => write!(f, "set {set} ")?,
            None => f.write_str("set (null) ")?,
        }
        if let Some(dreg) = self.dreg {
            write!(f, "dreg {} ", dreg.0)?;
        }
        if let Some(flags) = self.flags {
            write!(f, "{:#x} ", flags.bits())?;
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
        assert_built("of [ lookup reg 1 set s ]", Lookup::set(Register::R1, "s"));
        assert_built(
            "ip saddr vmap @m",
            Lookup {
                set_id: Some(2),
                ..Lookup::map(Register::R1, "m", Register::VERDICT)
            },
        );
        assert_built(
            "meta mark set ip saddr map @w",
            Lookup {
                set_id: Some(3),
                ..Lookup::map(Register::R1, "w", Register::R1)
            },
        );
    }
}
