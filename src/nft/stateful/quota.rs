//! Quotas: the attributes of the expression [`Quota`](crate::nft::expr::Quota).
//!
//! ```text
//! NFTA_QUOTA_BYTES      be64
//! NFTA_QUOTA_CONSUMED   be64
//! NFTA_QUOTA_FLAGS      be32
//! ```

use std::fmt;

use crate::nft::expr::Quota;

/// Formats the quota as `nft --debug=netlink` prints an object: without the consumed
/// bytes.
pub(super) fn write_line(quota: &Quota, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "[ quota bytes {} flags {} ]",
        quota.bytes.unwrap_or_default(),
        quota.flags.unwrap_or_default().bits(),
    )
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use crate::nft::expr::Quota;
    use crate::nft::expr::QuotaFlags;
    use crate::nft::stateful::tests::{assert_data, assert_listed};

    /// nft 1.0.6: `add quota inet t q { over 25 mbytes used 10 bytes; }`.
    #[test]
    fn sent_and_listed() {
        let quota = Quota {
            bytes: Some(25 << 20),
            flags: Some(QuotaFlags::INV),
            consumed: Some(10),
            ..Quota::default()
        };
        assert_data(
            quota.clone(),
            "24000480 0c000100 00000000 01900000 0c000400 00000000 0000000a 08000200 00000001",
            "[ quota bytes 26214400 flags 1 ]",
        );
        assert_listed(
            quota,
            "
                01000002 06000100 74000000 06000200 71000000 08000300 00000002 0c000600
                00000000 00000003 08000500 00000000 24000400 0c000100 00000000 01900000
                0c000400 00000000 0000000a 08000200 00000001
            ",
            "table t name q use 0 [ quota bytes 26214400 flags 1 ]",
        );
    }
}
