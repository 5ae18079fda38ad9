//! `numgen`: loads an incremental or random number into a register, to distribute packets.
//!
//! ```text
//! NFTA_NG_DREG       be32
//! NFTA_NG_MODULUS    be32, not 0
//! NFTA_NG_TYPE       be32
//! NFTA_NG_OFFSET     be32
//! NFTA_NG_SET_NAME   string: deprecated
//! NFTA_NG_SET_ID     be32: deprecated
//! ```

use chainwright_sys::nf_tables::{
    NFT_NG_INCREMENTAL, NFT_NG_RANDOM, NFTA_NG_DREG, NFTA_NG_MODULUS, NFTA_NG_OFFSET,
    NFTA_NG_SET_ID, NFTA_NG_SET_NAME, NFTA_NG_TYPE,
};

use super::{Register, expression};
use crate::nft::UnknownAttributes;
use crate::nft::declare::values;
use crate::nft::name::Name;

values! {
    /// The source of the number (`enum nft_ng_types`).
    pub struct NumgenType: u32 {
        /// Increments with each packet, and wraps around.
        INCREMENTAL = NFT_NG_INCREMENTAL => "inc",
        /// Random for each packet.
        RANDOM = NFT_NG_RANDOM => "random",
    }
}

expression! {
    "numgen"
    /// Loads a number from `offset` to `offset + modulus - 1` into a register, as u32 in host byte
    /// order (`enum nft_ng_attributes`).
    pub struct Numgen<'a> viewed as NumgenRef {
        /// Destination register.
        NFTA_NG_DREG => dreg: Register,
        /// Number of different numbers; the kernel refuses 0.
        NFTA_NG_MODULUS => modulus: u32,
        /// Source of the number.
        NFTA_NG_TYPE => numgen_type: NumgenType,
        /// The smallest number; the kernel always lists it, 0 by default.
        NFTA_NG_OFFSET => offset: u32,
        /// Name of a map for a lookup of the number: deprecated, ignored by kernels.
        NFTA_NG_SET_NAME => set_name: Name<'a>,
        /// The map's ID in the same batch: deprecated, ignored by kernels.
        NFTA_NG_SET_ID => set_id: u32,
    }
}

impl Numgen<'_> {
    const fn new(numgen_type: NumgenType, modulus: u32, dreg: Register) -> Self {
        Self {
            dreg: Some(dreg),
            modulus: Some(modulus),
            numgen_type: Some(numgen_type),
            offset: Some(0),
            set_name: None,
            set_id: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Loads incrementing numbers from 0 to `modulus - 1`.
    #[must_use]
    pub const fn incremental(modulus: u32, dreg: Register) -> Self {
        Self::new(NumgenType::INCREMENTAL, modulus, dreg)
    }

    /// Loads random numbers from 0 to `modulus - 1`.
    #[must_use]
    pub const fn random(modulus: u32, dreg: Register) -> Self {
        Self::new(NumgenType::RANDOM, modulus, dreg)
    }

    /// Adds `offset` to each number.
    #[must_use]
    pub const fn with_offset(mut self, offset: u32) -> Self {
        self.offset = Some(offset);
        self
    }
}

/// Formats like `nft --debug=netlink`: only the name if the type is unknown.
impl std::fmt::Display for Numgen<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(numgen_type) = self.numgen_type.unwrap_or_default().name() else {
            return f.write_str("[ numgen ]");
        };
        let dreg = self.dreg.unwrap_or_default().0;
        let modulus = self.modulus.unwrap_or_default();
        write!(f, "[ numgen reg {dreg} = {numgen_type} mod {modulus} ")?;
        if let Some(offset) = self.offset.filter(|&offset| offset != 0) {
            write!(f, "offset {offset} ")?;
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
        assert_built("numgen inc mod 3 0", Numgen::incremental(3, Register::R1));
        assert_built(
            "meta mark set numgen inc mod 4 offset 7",
            Numgen::incremental(4, Register::R1).with_offset(7),
        );
        assert_built(
            "meta mark set numgen random mod 4",
            Numgen::random(4, Register::R1),
        );
        assert_built(
            "numgen random mod 10 offset 100 vmap { 100 : drop }",
            Numgen::random(10, Register::R1).with_offset(100),
        );
    }
}
