//! `connlimit`: counts connections and compares their number.
//!
//! ```text
//! NFTA_CONNLIMIT_COUNT   be32
//! NFTA_CONNLIMIT_FLAGS   be32
//! ```
//!
//! The kernel requires the count, and lists no flags if none is set.

use chainwright_sys::nf_tables::{NFT_CONNLIMIT_F_INV, NFTA_CONNLIMIT_COUNT, NFTA_CONNLIMIT_FLAGS};

use super::expression;
use crate::nft::UnknownAttributes;
use crate::nft::declare::flags;

flags! {
    /// Flags of a connection limit (`enum nft_connlimit_flags`).
    pub struct ConnlimitFlags: u32 {
        /// Matches if there are *more* connections.
        const INV = NFT_CONNLIMIT_F_INV,
    }
}

expression! {
    "connlimit"
    /// Matches while the number of connections does not exceed a limit
    /// (`enum nft_connlimit_attributes`).
    ///
    /// It counts existing connections: closed ones are removed. In the elements of a set
    /// ([`Dynset`](super::Dynset)) each element counts separately.
    pub struct Connlimit viewed as ConnlimitRef {
        /// Number of connections.
        NFTA_CONNLIMIT_COUNT => count: u32,
        /// Flags.
        NFTA_CONNLIMIT_FLAGS => flags: ConnlimitFlags,
    }
}

impl Connlimit {
    /// Matches while there are at most this many connections.
    #[must_use]
    pub const fn at_most(count: u32) -> Self {
        Self {
            count: Some(count),
            flags: Some(ConnlimitFlags::empty()),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Matches if there are more connections than this.
    #[must_use]
    pub const fn over(count: u32) -> Self {
        Self {
            count: Some(count),
            flags: Some(ConnlimitFlags::INV),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`; missing values as 0.
impl std::fmt::Display for Connlimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "[ connlimit count {} flags {:x} ]",
            self.count.unwrap_or_default(),
            self.flags.unwrap_or_default().bits(),
        )
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
            (1, "NFTA_CONNLIMIT_COUNT", Wire::Be32),
            (2, "NFTA_CONNLIMIT_FLAGS", Wire::Be32),
        ];
        assert_layout::<Connlimit>(Connlimit::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c ct count over 20 drop`.
    #[test]
    fn over_a_number() {
        assert_element(
            Decoded::Connlimit,
            Connlimit {
                count: Some(20),
                flags: Some(ConnlimitFlags::INV),
                ..Default::default()
            },
            "
                28000180                             ; NFTA_LIST_ELEM
                0e000100 636f6e6e 6c696d69 74000000  ;   NFTA_EXPR_NAME: connlimit
                14000280                             ;   NFTA_EXPR_DATA
                08000100 00000014                    ;     NFTA_CONNLIMIT_COUNT
                08000200 00000001                    ;     NFTA_CONNLIMIT_FLAGS
            ",
        );
        assert_attributes(
            Decoded::Connlimit,
            Connlimit::over(20),
            "08000100 00000014 08000200 00000001",
        );
    }

    /// nft 1.0.6: `ct count 10 accept`.
    #[test]
    fn up_to_a_number() {
        assert_attributes(
            Decoded::Connlimit,
            Connlimit::at_most(10),
            "08000100 0000000a 08000200 00000000",
        );
    }

    /// Listed after nft 1.0.6: `add rule ip t c ct count over 20 drop` and `… ct count 10 accept`.
    #[test]
    fn listed() {
        assert_listed(
            Decoded::Connlimit,
            Connlimit::over(20),
            "
                28000100 0e000100 636f6e6e 6c696d69 74000000 14000200 08000100 00000014
                08000200 00000001
            ",
        );
        assert_listed(
            Decoded::Connlimit,
            Connlimit {
                flags: None,
                ..Connlimit::at_most(10)
            },
            "20000100 0e000100 636f6e6e 6c696d69 74000000 0c000200 08000100 0000000a",
        );
    }

    /// The rules above as nft 1.0.6 prints them; then attributes that the kernel does not list, as
    /// libnftnl 1.2.4 prints them.
    #[test]
    fn bytecode() {
        for (expression, line) in [
            (Connlimit::at_most(10), "[ connlimit count 10 flags 0 ]"),
            (Connlimit::over(20), "[ connlimit count 20 flags 1 ]"),
            (
                Connlimit {
                    flags: Some(ConnlimitFlags::from_bits_retain(0xab)),
                    ..Connlimit::over(7)
                },
                "[ connlimit count 7 flags ab ]",
            ),
            (Connlimit::default(), "[ connlimit count 0 flags 0 ]"),
        ] {
            assert_eq!(expression.to_string(), line);
        }
    }
}
