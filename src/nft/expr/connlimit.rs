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
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built("ct count over 20 drop", Connlimit::over(20));
        assert_built("ct count 10 accept", Connlimit::at_most(10));
    }
}
