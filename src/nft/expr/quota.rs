//! `quota`: matches until a number of bytes has passed, or only after that.
//!
//! ```text
//! NFTA_QUOTA_BYTES      be64, at most 2^63 - 1
//! NFTA_QUOTA_CONSUMED   be64, at most `NFTA_QUOTA_BYTES`
//! NFTA_QUOTA_FLAGS      be32
//! ```
//!
//! The kernel lists all three, with a flag for a used-up quota that it refuses in requests
//! (`EINVAL`): see [`Quota::into_request`].

use chainwright_sys::nf_tables::{
    NFT_QUOTA_F_DEPLETED, NFT_QUOTA_F_INV, NFTA_QUOTA_BYTES, NFTA_QUOTA_CONSUMED, NFTA_QUOTA_FLAGS,
    NFTA_QUOTA_PAD,
};

use super::expression;
use crate::nft::UnknownAttributes;
use crate::nft::declare::flags;

flags! {
    /// Flags of a quota (`enum nft_quota_flags`).
    pub struct QuotaFlags: u32 {
        /// Matches after the quota is used up, instead of before.
        const INV = NFT_QUOTA_F_INV,
        /// The quota is used up: only in listings.
        const DEPLETED = NFT_QUOTA_F_DEPLETED,
    }
}

expression! {
    "quota"
    /// Matches until a number of bytes has passed (`enum nft_quota_attributes`).
    pub struct Quota viewed as QuotaRef {
        /// The number of bytes.
        NFTA_QUOTA_BYTES => bytes: u64,
        /// Number of bytes that have passed; in a request the start value.
        NFTA_QUOTA_CONSUMED => consumed: u64,
        /// Flags.
        NFTA_QUOTA_FLAGS => flags: QuotaFlags,
        _ => NFTA_QUOTA_PAD,
    }
}

impl Quota {
    const fn new(bytes: u64, flags: QuotaFlags) -> Self {
        Self {
            bytes: Some(bytes),
            consumed: Some(0),
            flags: Some(flags),
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Matches until this many bytes have passed.
    #[must_use]
    pub const fn until(bytes: u64) -> Self {
        Self::new(bytes, QuotaFlags::empty())
    }

    /// Matches after this many bytes have passed.
    #[must_use]
    pub const fn over(bytes: u64) -> Self {
        Self::new(bytes, QuotaFlags::INV)
    }

    /// Starts with this many bytes passed.
    #[must_use]
    pub const fn with_consumed(mut self, consumed: u64) -> Self {
        self.consumed = Some(consumed);
        self
    }

    /// Converts a listed quota to the form that the kernel accepts: without the flag for a used-up
    /// quota. The number of passed bytes remains, so the quota is still used up.
    #[must_use]
    pub const fn into_request(mut self) -> Self {
        if let Some(flags) = self.flags {
            self.flags = Some(flags.difference(QuotaFlags::DEPLETED));
        }
        self
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Quota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "[ quota bytes {} consumed {} flags {} ]",
            self.bytes.unwrap_or_default(),
            self.consumed.unwrap_or_default(),
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
        assert_built("quota 100 bytes", Quota::until(100));
        assert_built("quota over 1 mbytes", Quota::over(1 << 20));
        assert_built(
            "quota until 25 mbytes used 10 mbytes",
            Quota::until(25 << 20).with_consumed(10 << 20),
        );
        assert_built(
            "quota over 25 mbytes used 10 kbytes",
            Quota::over(25 << 20).with_consumed(10 << 10),
        );
    }
}
