//! `hash`: makes a number of a register's content or of the packet's connection.
//!
//! ```text
//! NFTA_HASH_SREG       be32
//! NFTA_HASH_DREG       be32
//! NFTA_HASH_LEN        be32
//! NFTA_HASH_MODULUS    be32
//! NFTA_HASH_SEED       be32
//! NFTA_HASH_OFFSET     be32
//! NFTA_HASH_TYPE       be32
//! NFTA_HASH_SET_NAME   string
//! NFTA_HASH_SET_ID     be32
//! ```
//!
//! The number is from `offset` to `offset + modulus - 1`. The kernel wants destination and modulus,
//! and of a Jenkins hash source and length; it lists an offset only if it is not 0.

use chainwright_sys::nf_tables::{
    NFT_HASH_JENKINS, NFT_HASH_SYM, NFTA_HASH_DREG, NFTA_HASH_LEN, NFTA_HASH_MODULUS,
    NFTA_HASH_OFFSET, NFTA_HASH_SEED, NFTA_HASH_SET_ID, NFTA_HASH_SET_NAME, NFTA_HASH_SREG,
    NFTA_HASH_TYPE,
};

use super::{Register, expression};
use crate::nft::declare::values;
use crate::nft::name::Name;

values! {
    /// What is hashed (`enum nft_hash_types`).
    pub struct HashType: u32 {
        /// A register, with the hash function of Bob Jenkins.
        JENKINS = NFT_HASH_JENKINS => "jhash",
        /// The packet's addresses and ports, alike for both directions of a connection.
        SYM = NFT_HASH_SYM => "symhash",
    }
}

expression! {
    "hash"
    /// Makes a number of a register's content or of the packet's connection
    /// (`enum nft_hash_attributes`).
    pub struct Hash<'a> viewed as HashRef {
        /// Where the value comes from that is hashed ([`HashType::JENKINS`]).
        NFTA_HASH_SREG => sreg: Register,
        /// Where the number goes, u32 in host byte order.
        NFTA_HASH_DREG => dreg: Register,
        /// How many bytes are hashed, 1 to 255 ([`HashType::JENKINS`]).
        NFTA_HASH_LEN => len: u32,
        /// How many different numbers there are.
        NFTA_HASH_MODULUS => modulus: u32,
        /// Start value ([`HashType::JENKINS`]). Without it the kernel takes a random one, which it
        /// does not list.
        NFTA_HASH_SEED => seed: u32,
        /// Smallest number.
        NFTA_HASH_OFFSET => offset: u32,
        /// What is hashed; a register if this is missing.
        NFTA_HASH_TYPE => hash_type: HashType,
        /// Name of a map to look the number up in; deprecated, and Linux 6.18 passes it over.
        NFTA_HASH_SET_NAME => set_name: Name<'a>,
        /// The same as the number that the map was given in the same batch; deprecated as well.
        NFTA_HASH_SET_ID => set_id: u32,
    }
}

impl Hash<'_> {
    /// Hashes `len` bytes of a register to a number below `modulus`, with a seed of the kernel's
    /// choice.
    #[must_use]
    pub fn jenkins(sreg: Register, len: u32, modulus: u32, dreg: Register) -> Self {
        Self {
            sreg: Some(sreg),
            len: Some(len),
            hash_type: Some(HashType::JENKINS),
            ..Self::below(modulus, dreg)
        }
    }

    /// Hashes the packet's connection to a number below `modulus`.
    #[must_use]
    pub fn symmetric(modulus: u32, dreg: Register) -> Self {
        Self {
            hash_type: Some(HashType::SYM),
            ..Self::below(modulus, dreg)
        }
    }

    fn below(modulus: u32, dreg: Register) -> Self {
        Self {
            dreg: Some(dreg),
            modulus: Some(modulus),
            offset: Some(0),
            ..Self::default()
        }
    }
}

/// As `nft --debug=netlink` prints it; what is missing as 0.
impl std::fmt::Display for Hash<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[ hash reg {} = ", self.dreg.unwrap_or_default().0)?;
        match self.hash_type.unwrap_or_default() {
            HashType::SYM => f.write_str("symhash()")?,
            _ => write!(
                f,
                "jhash(reg {}, {}, {:#x})",
                self.sreg.unwrap_or_default().0,
                self.len.unwrap_or_default(),
                self.seed.unwrap_or_default(),
            )?,
        }
        write!(f, " % mod {} ", self.modulus.unwrap_or_default())?;
        match self.offset.unwrap_or_default() {
            0 => f.write_str("]"),
            offset => write!(f, "offset {offset} ]"),
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
            (1, "NFTA_HASH_SREG", Wire::Be32),
            (2, "NFTA_HASH_DREG", Wire::Be32),
            (3, "NFTA_HASH_LEN", Wire::Be32),
            (4, "NFTA_HASH_MODULUS", Wire::Be32),
            (5, "NFTA_HASH_SEED", Wire::Be32),
            (6, "NFTA_HASH_OFFSET", Wire::Be32),
            (7, "NFTA_HASH_TYPE", Wire::Be32),
            (8, "NFTA_HASH_SET_NAME", Wire::Text),
            (9, "NFTA_HASH_SET_ID", Wire::Be32),
        ];
        assert_layout::<Hash<'_>>(Hash::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c meta mark set jhash ip saddr mod 2 seed 0xbeef`.
    #[test]
    fn with_a_seed() {
        assert_element(
            Decoded::Hash,
            Hash {
                sreg: Some(Register::R2),
                dreg: Some(Register::R1),
                len: Some(4),
                modulus: Some(2),
                seed: Some(0xbeef),
                offset: Some(0),
                hash_type: Some(HashType::JENKINS),
                ..Default::default()
            },
            "
                4c000180                    ; NFTA_LIST_ELEM
                09000100 68617368 00000000  ;   NFTA_EXPR_NAME: hash
                3c000280                    ;   NFTA_EXPR_DATA
                08000100 00000002           ;     NFTA_HASH_SREG
                08000200 00000001           ;     NFTA_HASH_DREG
                08000300 00000004           ;     NFTA_HASH_LEN
                08000400 00000002           ;     NFTA_HASH_MODULUS
                08000500 0000beef           ;     NFTA_HASH_SEED
                08000600 00000000           ;     NFTA_HASH_OFFSET
                08000700 00000000           ;     NFTA_HASH_TYPE
            ",
        );
    }

    /// nft 1.0.6: `meta mark set jhash ip saddr . tcp dport mod 16 offset 5`,
    /// `meta mark set symhash mod 2` and `meta mark set symhash mod 10 offset 100`.
    #[test]
    fn without_a_seed() {
        assert_attributes(
            Decoded::Hash,
            Hash {
                offset: Some(5),
                ..Hash::jenkins(Register::R2, 8, 16, Register::R1)
            },
            "
                08000100 00000002 08000200 00000001 08000300 00000008 08000400 00000010
                08000600 00000005 08000700 00000000
            ",
        );
        assert_attributes(
            Decoded::Hash,
            Hash::symmetric(2, Register::R1),
            "08000200 00000001 08000400 00000002 08000600 00000000 08000700 00000001",
        );
        assert_attributes(
            Decoded::Hash,
            Hash {
                offset: Some(100),
                ..Hash::symmetric(10, Register::R1)
            },
            "08000200 00000001 08000400 0000000a 08000600 00000064 08000700 00000001",
        );
    }

    /// Made from the header: no tool at hand names a map.
    #[test]
    fn with_a_map() {
        assert_attributes(
            Decoded::Hash,
            Hash {
                set_name: Some("m".into()),
                set_id: Some(3),
                ..Hash::symmetric(2, Register::R1)
            },
            "
                08000200 00000001 08000400 00000002 08000600 00000000 08000700 00000001
                06000800 6d000000 08000900 00000003
            ",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c meta mark set jhash ip saddr mod 2 seed 0xbeef`,
    /// `… jhash ip saddr . tcp dport mod 16 offset 5` and `… symhash mod 2`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Hash,
            Hash {
                seed: Some(0xbeef),
                offset: None,
                ..Hash::jenkins(Register::R2, 4, 2, Register::R1)
            },
            "
                44000100 09000100 68617368 00000000 34000200 08000100 00000002 08000200
                00000001 08000300 00000004 08000400 00000002 08000500 0000beef 08000700
                00000000
            ",
        );
        assert_listed(
            Decoded::Hash,
            Hash {
                offset: Some(5),
                ..Hash::jenkins(Register::R2, 8, 16, Register::R1)
            },
            "
                44000100 09000100 68617368 00000000 34000200 08000100 00000002 08000200
                00000001 08000300 00000008 08000400 00000010 08000600 00000005 08000700
                00000000
            ",
        );
        assert_listed(
            Decoded::Hash,
            Hash {
                offset: None,
                ..Hash::symmetric(2, Register::R1)
            },
            "
                2c000100 09000100 68617368 00000000 1c000200 08000200 00000001 08000400
                00000002 08000700 00000001
            ",
        );
    }

    /// The rules above as nft 1.0.6 prints them; then what libnftnl 1.2.4 prints of attributes that
    /// the kernel does not list.
    #[test]
    fn bytecode() {
        let jenkins = Hash::jenkins(Register::R2, 4, 2, Register::R1);
        for (expression, line) in [
            (
                Hash {
                    seed: Some(0xbeef),
                    ..jenkins.clone()
                },
                "[ hash reg 1 = jhash(reg 2, 4, 0xbeef) % mod 2 ]",
            ),
            (
                Hash {
                    offset: Some(5),
                    ..Hash::jenkins(Register::R2, 8, 16, Register::R1)
                },
                "[ hash reg 1 = jhash(reg 2, 8, 0x0) % mod 16 offset 5 ]",
            ),
            (
                Hash::symmetric(2, Register::R1),
                "[ hash reg 1 = symhash() % mod 2 ]",
            ),
            (
                Hash {
                    offset: Some(100),
                    ..Hash::symmetric(10, Register::R1)
                },
                "[ hash reg 1 = symhash() % mod 10 offset 100 ]",
            ),
            (
                Hash {
                    hash_type: Some(HashType(2)),
                    ..jenkins
                },
                "[ hash reg 1 = jhash(reg 2, 4, 0x0) % mod 2 ]",
            ),
            (
                Hash::default(),
                "[ hash reg 0 = jhash(reg 0, 0, 0x0) % mod 0 ]",
            ),
        ] {
            assert_eq!(expression.to_string(), line);
        }
    }
}
