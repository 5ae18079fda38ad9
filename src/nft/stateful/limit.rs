//! Limits: the attributes of the expression [`Limit`](crate::nft::expr::Limit).
//!
//! ```text
//! NFTA_LIMIT_RATE    be64
//! NFTA_LIMIT_UNIT    be64
//! NFTA_LIMIT_BURST   be32
//! NFTA_LIMIT_TYPE    be32
//! NFTA_LIMIT_FLAGS   be32
//! ```

use std::fmt;

use crate::nft::expr::Limit;

/// Formats the limit as `nft --debug=netlink` prints an object, which differs from the
/// expression.
pub(super) fn write_line(limit: &Limit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "[ limit rate {} unit {} burst {} type {} flags {} ]",
        limit.rate.unwrap_or_default(),
        limit.unit.unwrap_or_default(),
        limit.burst.unwrap_or_default(),
        limit.limit_type.unwrap_or_default().0,
        limit.flags.unwrap_or_default().bits(),
    )
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use crate::nft::ObjectData;
    use crate::nft::captured::objects::assert_built;
    use crate::nft::expr::{Limit, LimitFlags};

    #[test]
    fn built() {
        let data = Limit {
            flags: Some(LimitFlags::INV),
            ..Limit::packets(400, 60, 7)
        };
        assert_built("limit", "a limit", &ObjectData::from(data));
    }
}
