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
    use crate::nft::ObjectData;
    use crate::nft::captured::objects::assert_built;
    use crate::nft::expr::{Quota, QuotaFlags};

    #[test]
    fn built() {
        let data = Quota {
            bytes: Some(25 << 20),
            flags: Some(QuotaFlags::INV),
            consumed: Some(10),
            ..Quota::default()
        };
        assert_built("quota", "a quota", &ObjectData::from(data));
    }
}
