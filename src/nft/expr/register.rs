//! Registers, in which expressions pass values to each other.

use chainwright_sys::nf_tables::{
    NFT_REG_1, NFT_REG_2, NFT_REG_3, NFT_REG_4, NFT_REG_VERDICT, NFT_REG32_00, NFT_REG32_15,
};

use crate::nft::declare::values;

values! {
    /// A register: the verdict register, four of 16 bytes, or the same memory as sixteen of 4 bytes
    /// (`enum nft_registers`).
    pub struct Register: u32, normalized by as_listed {
        /// The verdict register.
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
    /// Returns the register of 4 bytes with this number, 0 to 15. The numbers 0 to 3 are the four
    /// words of [`R1`](Self::R1), and so on.
    #[must_use]
    pub const fn word(number: u32) -> Self {
        Self(NFT_REG32_00 + number)
    }

    /// Returns the number by which the kernel lists the register: that of 16 bytes, if one begins there.
    fn as_listed(self) -> Self {
        match self.0 {
            word @ NFT_REG32_00..=NFT_REG32_15 if word % 4 == 0 => {
                Self((word - NFT_REG32_00) / 4 + NFT_REG_1)
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_words_make_a_register() {
        // Register 1 starts with word 0 (number 8), register 2 with word 4, …: different numbers
        // for the same memory.
        assert_eq!(Register::R1, Register(1));
        assert_eq!(Register::R4, Register(4));
        assert_eq!(Register::word(0), Register(8));
        assert_eq!(Register::word(15), Register(23));
    }

    #[test]
    fn names() {
        assert_eq!(Register::VERDICT.to_string(), "verdict");
        assert_eq!(Register::R2.to_string(), "2");
        assert_eq!(Register::word(1).to_string(), "9");
        assert_eq!("verdict".parse(), Ok(Register(0)));
    }
}
