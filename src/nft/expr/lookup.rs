//! `lookup`: looks a register up in a set or map.

use chainwright_sys::nf_tables::{
    NFT_LOOKUP_F_INV, NFTA_LOOKUP_DREG, NFTA_LOOKUP_FLAGS, NFTA_LOOKUP_SET, NFTA_LOOKUP_SET_ID,
    NFTA_LOOKUP_SREG,
};

use super::{Register, expression};
use crate::nft::declare::flags;
use crate::nft::name::Name;

flags! {
    /// Flags of a look-up (`enum nft_lookup_flags`).
    pub struct LookupFlags: u32 {
        /// The rule goes on if the key is *not* in the set.
        const INV = NFT_LOOKUP_F_INV,
    }
}

expression! {
    "lookup"
    /// Looks a register up in a set; of a map, the value found goes into a register or becomes
    /// the verdict (`enum nft_lookup_attributes`).
    pub struct Lookup<'a> {
        /// Name of the set.
        NFTA_LOOKUP_SET => set: Name<'a>,
        /// The key.
        NFTA_LOOKUP_SREG => sreg: Register,
        /// Where a map's value goes.
        NFTA_LOOKUP_DREG => dreg: Register,
        /// The set as the number that it was given in the same batch.
        NFTA_LOOKUP_SET_ID => set_id: u32,
        /// Flags.
        NFTA_LOOKUP_FLAGS => flags: LookupFlags,
    }
}

impl<'a> Lookup<'a> {
    /// Goes on if the key is in the set.
    pub fn set(sreg: Register, set: impl Into<Name<'a>>) -> Self {
        Self {
            set: Some(set.into()),
            sreg: Some(sreg),
            ..Self::default()
        }
    }

    /// Puts what a map has for the key into a register; into the verdict for a verdict map.
    pub fn map(sreg: Register, map: impl Into<Name<'a>>, dreg: Register) -> Self {
        Self {
            set: Some(map.into()),
            sreg: Some(sreg),
            dreg: Some(dreg),
            ..Self::default()
        }
    }
}
