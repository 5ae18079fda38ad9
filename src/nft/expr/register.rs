//! Registers: where expressions leave values for one another.

use chainwright_sys::nf_tables::{
    NFT_REG_1, NFT_REG_2, NFT_REG_3, NFT_REG_4, NFT_REG_VERDICT, NFT_REG32_00,
};

use crate::nft::declare::values;

values! {
    /// A register: the verdict, four of 16 bytes, or the same memory as sixteen of 4 bytes
    /// (`enum nft_registers`).
    pub struct Register: u32 {
        /// The verdict.
        VERDICT = NFT_REG_VERDICT => "verdict",
        /// First register of 16 bytes.
        R1 = NFT_REG_1 => "1",
        /// Second register of 16 bytes.
        R2 = NFT_REG_2 => "2",
        /// Third register of 16 bytes.
        R3 = NFT_REG_3 => "3",
        /// Fourth register of 16 bytes.
        R4 = NFT_REG_4 => "4",
    }
}

impl Register {
    /// The register of 4 bytes with this number, 0 to 15. Numbers 0 to 3 are the four words of
    /// [`R1`](Self::R1), and so on.
    #[must_use]
    pub const fn word(number: u32) -> Self {
        Self(NFT_REG32_00 + number)
    }
}
