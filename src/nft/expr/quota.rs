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
    use crate::nft::expr::Decoded;
    use crate::nft::expr::tests::captured::{
        Wire, assert_attributes, assert_element, assert_layout, assert_listed,
    };

    #[test]
    fn layout() {
        let layout = [
            (1, "NFTA_QUOTA_BYTES", Wire::Be64),
            (4, "NFTA_QUOTA_CONSUMED", Wire::Be64),
            (2, "NFTA_QUOTA_FLAGS", Wire::Be32),
        ];
        assert_layout::<Quota>(Quota::ATTRIBUTES, &layout);
    }

    /// nft 1.0.6: `add rule ip t c quota over 25 mbytes used 10 kbytes`.
    #[test]
    fn over_a_number() {
        assert_element(
            Decoded::Quota,
            Quota {
                bytes: Some(25 << 20),
                consumed: Some(10 << 10),
                flags: Some(QuotaFlags::INV),
                ..Default::default()
            },
            "
                34000180                    ; NFTA_LIST_ELEM
                0a000100 71756f74 61000000  ;   NFTA_EXPR_NAME: quota
                24000280                    ;   NFTA_EXPR_DATA
                0c000100 00000000 01900000  ;     NFTA_QUOTA_BYTES
                0c000400 00000000 00002800  ;     NFTA_QUOTA_CONSUMED
                08000200 00000001           ;     NFTA_QUOTA_FLAGS
            ",
        );
    }

    /// nft 1.0.6: `quota 100 bytes`, `quota over 1 mbytes`,
    /// `quota until 25 mbytes used 10 mbytes`.
    #[test]
    fn until_and_over() {
        for (quota, sent) in [
            (
                Quota::until(100),
                "0c000100 00000000 00000064 0c000400 00000000 00000000 08000200 00000000",
            ),
            (
                Quota::over(1 << 20),
                "0c000100 00000000 00100000 0c000400 00000000 00000000 08000200 00000001",
            ),
            (
                Quota::until(25 << 20).with_consumed(10 << 20),
                "0c000100 00000000 01900000 0c000400 00000000 00a00000 08000200 00000000",
            ),
        ] {
            assert_attributes(Decoded::Quota, quota, sent);
        }
    }

    /// Listed after nft 1.0.6: `add rule ip t c quota until 25 mbytes used 10 mbytes` and
    /// `add rule ip t c quota over 100 bytes used 100 bytes`. The second cannot be written
    /// unchanged: Linux 6.18 refuses the flag.
    #[test]
    fn listed() {
        let used = Quota::until(25 << 20).with_consumed(10 << 20);
        assert_listed(
            Decoded::Quota,
            used.clone(),
            "
                34000100 0a000100 71756f74 61000000 24000200 0c000100 00000000 01900000
                0c000400 00000000 00a00000 08000200 00000000
            ",
        );
        assert_eq!(used.clone().into_request(), used);

        let used_up = Quota {
            flags: Some(QuotaFlags::INV | QuotaFlags::DEPLETED),
            ..Quota::over(100).with_consumed(100)
        };
        assert_listed(
            Decoded::Quota,
            used_up.clone(),
            "
                34000100 0a000100 71756f74 61000000 24000200 0c000100 00000000 00000064
                0c000400 00000000 00000064 08000200 00000003
            ",
        );
        assert_eq!(used_up.into_request(), Quota::over(100).with_consumed(100));
    }

    /// The rules above as nft 1.0.6 prints them; the last as libnftnl 1.2.4 prints no attributes.
    #[test]
    fn bytecode() {
        for (quota, line) in [
            (Quota::until(100), "[ quota bytes 100 consumed 0 flags 0 ]"),
            (
                Quota::over(25 << 20).with_consumed(10 << 10),
                "[ quota bytes 26214400 consumed 10240 flags 1 ]",
            ),
            (
                Quota {
                    flags: Some(QuotaFlags::INV | QuotaFlags::DEPLETED),
                    ..Quota::over(100).with_consumed(100)
                },
                "[ quota bytes 100 consumed 100 flags 3 ]",
            ),
            (Quota::default(), "[ quota bytes 0 consumed 0 flags 0 ]"),
        ] {
            assert_eq!(quota.to_string(), line);
        }
    }
}
