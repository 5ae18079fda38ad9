//! `notrack`: exempts the packet from connection tracking.
//!
//! It has no attributes, and neither tools nor the kernel write an `NFTA_EXPR_DATA`.

use super::expression;
use crate::nft::UnknownAttributes;

expression! {
    "notrack"
    /// Exempts the packet from connection tracking. It must precede the tracking, in a chain of the
    /// hook `prerouting` or `output` with a priority below -200.
    pub struct Notrack viewed as NotrackRef {}
}

impl Notrack {
    /// Exempts the packet from connection tracking.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Notrack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ notrack ]")
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::captured::hex;
    use crate::nft::declare::Field;
    use crate::nft::expr::tests::cases::assert_built;
    use crate::nft::expr::{Decoded, Expressions, NestedExpression};

    #[test]
    fn constructors() {
        assert_built("notrack", Notrack::new());
    }

    #[test]
    fn nested_without_data() {
        let nested = NestedExpression::new(&Notrack::new());
        assert_eq!(nested, NestedExpression::of_decoded(&Notrack::new().into()));
        assert_eq!(nested.decode(), Ok(Decoded::Notrack(Notrack::new())));
    }

    /// Attributes of a newer kernel are preserved, and written as data. No kernel sends any yet.
    #[test]
    fn unknown_attributes_are_preserved() {
        let sent = hex("
            1c000180 0c000100 6e6f7472 61636b00 0c000280 08000100 00000001
        ");
        let list = Expressions::decode(&sent).unwrap();
        let notrack = list.iter().next().unwrap().unwrap().decode().unwrap();
        assert!(!notrack.unknown().is_empty());
        assert_eq!(Expressions::new().push_decoded(&notrack).as_bytes(), sent);
    }
}
