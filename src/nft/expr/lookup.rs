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
    /// Flags of a look-up (`enum nft_lookup_flags`).
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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (2, "NFTA_LOOKUP_SREG", Wire::Be32),
            (3, "NFTA_LOOKUP_DREG", Wire::Be32),
            (1, "NFTA_LOOKUP_SET", Wire::Text),
            (4, "NFTA_LOOKUP_SET_ID", Wire::Be32),
            (5, "NFTA_LOOKUP_FLAGS", Wire::Be32),
        ];
        assert_layout::<Lookup<'_>>(Lookup::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c ip saddr != @s`. nft assigns IDs to the sets that it knows, even
    /// if they are not in this batch.
    #[test]
    fn not_in_a_set() {
        assert_element(
            Decoded::Lookup,
            Lookup {
                sreg: Some(Register::R1),
                dreg: None,
                set: Some("s".into()),
                set_id: Some(1),
                flags: Some(LookupFlags::INV),
                ..Default::default()
            },
            "
                34000180                    ; NFTA_LIST_ELEM
                0b000100 6c6f6f6b 75700000  ;   NFTA_EXPR_NAME: lookup
                24000280                    ;   NFTA_EXPR_DATA
                08000200 00000001           ;     NFTA_LOOKUP_SREG
                06000100 73000000           ;     NFTA_LOOKUP_SET
                08000400 00000001           ;     NFTA_LOOKUP_SET_ID
                08000500 00000001           ;     NFTA_LOOKUP_FLAGS
            ",
        );
    }

    /// nft 1.0.6: `ip saddr @s`, `ip saddr vmap @m`, `meta mark set ip saddr map @w`.
    #[test]
    fn sets_and_maps() {
        assert_attributes(
            Decoded::Lookup,
            Lookup {
                set_id: Some(1),
                ..Lookup::set(Register::R1, "s")
            },
            "08000200 00000001 06000100 73000000 08000400 00000001",
        );
        assert_attributes(
            Decoded::Lookup,
            Lookup {
                set_id: Some(2),
                ..Lookup::map(Register::R1, "m", Register::VERDICT)
            },
            "08000200 00000001 08000300 00000000 06000100 6d000000 08000400 00000002",
        );
        assert_attributes(
            Decoded::Lookup,
            Lookup {
                set_id: Some(3),
                ..Lookup::map(Register::R1, "w", Register::R1)
            },
            "08000200 00000001 08000300 00000001 06000100 77000000 08000400 00000003",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c ip saddr @s drop` and
    /// `add rule ip t c meta mark set ip saddr map @w`: never an ID, and always flags.
    #[test]
    fn listed() {
        let flags = Some(LookupFlags::empty());
        assert_listed(
            Decoded::Lookup,
            Lookup {
                flags,
                ..Lookup::set(Register::R1, "s")
            },
            "
                2c000100 0b000100 6c6f6f6b 75700000 1c000200 06000100 73000000 08000200
                00000001 08000500 00000000
            ",
        );
        assert_listed(
            Decoded::Lookup,
            Lookup {
                flags,
                ..Lookup::map(Register::R1, "w", Register::R1)
            },
            "
                34000100 0b000100 6c6f6f6b 75700000 24000200 06000100 77000000 08000200
                00000001 08000300 00000001 08000500 00000000
            ",
        );
    }

    /// Lines of `nft --debug=netlink list ruleset` (nft 1.0.6, libnftnl 1.2.4) after `ip saddr @s`,
    /// `ip saddr != @s`, `ip saddr vmap @v`, `meta mark set ip saddr map @w`; the rest as its
    /// libnftnl printed handmade attributes.
    #[test]
    fn bytecode() {
        let listed = |lookup, flags| Lookup {
            flags: Some(LookupFlags::from_bits_retain(flags)),
            ..lookup
        };
        for (lookup, line) in [
            (
                listed(Lookup::set(Register::R1, "s"), 0),
                "[ lookup reg 1 set s 0x0 ]",
            ),
            (
                listed(Lookup::set(Register::R1, "s"), 1),
                "[ lookup reg 1 set s 0x1 ]",
            ),
            (
                listed(Lookup::map(Register::R1, "v", Register::VERDICT), 0),
                "[ lookup reg 1 set v dreg 0 0x0 ]",
            ),
            (
                listed(Lookup::map(Register::R1, "w", Register::R1), 0),
                "[ lookup reg 1 set w dreg 1 0x0 ]",
            ),
            (Lookup::set(Register::R1, "s"), "[ lookup reg 1 set s ]"),
            (
                listed(
                    Lookup {
                        set_id: Some(77),
                        ..Lookup::set(Register::R1, "s")
                    },
                    0x11,
                ),
                "[ lookup reg 1 set s 0x11 ]",
            ),
            (Lookup::default(), "[ lookup reg 0 set (null) ]"),
        ] {
            assert_eq!(lookup.to_string(), line);
        }
    }
}
