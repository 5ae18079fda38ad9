//! `last`: records when the last packet matched. Since Linux 5.14.
//!
//! ```text
//! NFTA_LAST_MSECS   be64
//! NFTA_LAST_SET     be32
//! ```

use chainwright_sys::nf_tables::{NFTA_LAST_MSECS, NFTA_LAST_PAD, NFTA_LAST_SET};

use super::expression;
use crate::nft::UnknownAttributes;

expression! {
    "last"
    /// Records when the last packet matched (`enum nft_last_attributes`); a request contains the
    /// start values.
    pub struct Last viewed as LastRef,
    listed as [set, msecs] {
        /// Milliseconds since the last packet; 0 if there was none.
        NFTA_LAST_MSECS => msecs: u64,
        /// Whether there was a packet: 0 or 1. Without it the kernel ignores the milliseconds.
        NFTA_LAST_SET => set: u32,
        _ => NFTA_LAST_PAD,
    }
}

impl Last {
    /// Creates an expression that has not matched a packet.
    #[must_use]
    pub const fn never() -> Self {
        Self {
            msecs: None,
            set: None,
            unknown: UnknownAttributes::NONE,
        }
    }

    /// Creates an expression that matched the last packet this many milliseconds ago.
    #[must_use]
    pub const fn ago(msecs: u64) -> Self {
        Self {
            msecs: Some(msecs),
            set: Some(1),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like libnftnl; nft 1.0.6 fails to print such a rule.
impl std::fmt::Display for Last {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.set.unwrap_or_default() {
            0 => f.write_str("[ last never ]"),
            _ => write!(f, "[ last {} ]", self.msecs.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built("no packet yet", Last::never());
        assert_built("some time ago", Last::ago(60_000));
        assert_built("of [ last 18446744073709551615 ]", Last::ago(u64::MAX));
    }
}
