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
    use crate::nft::expr::{Limit, LimitFlags};
    use crate::nft::stateful::tests::{assert_data, assert_listed};

    /// nft 1.0.6: `add limit inet t l { rate over 400/minute burst 7 packets; }`.
    #[test]
    fn sent_and_listed() {
        let limit = Limit {
            flags: Some(LimitFlags::INV),
            ..Limit::packets(400, 60, 7)
        };
        assert_data(
            limit.clone(),
            "
                34000480 0c000100 00000000 00000190 0c000200 00000000 0000003c 08000300
                00000007 08000400 00000000 08000500 00000001
            ",
            "[ limit rate 400 unit 60 burst 7 type 0 flags 1 ]",
        );
        assert_listed(
            limit,
            "
                01000002 06000100 74000000 06000200 6c000000 08000300 00000004 0c000600
                00000000 00000004 08000500 00000000 34000400 0c000100 00000000 00000190
                0c000200 00000000 0000003c 08000300 00000007 08000400 00000000 08000500
                00000001
            ",
            "table t name l use 0 [ limit rate 400 unit 60 burst 7 type 0 flags 1 ]",
        );
    }
}
