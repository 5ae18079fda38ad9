//! `match`: an xtables match, in nf_tables' compatibility layer.
//!
//! ```text
//! NFTA_MATCH_NAME   string
//! NFTA_MATCH_REV    be32
//! NFTA_MATCH_INFO   bytes
//! ```
//!
//! A rule with a match needs [`Compat`](crate::nft::Compat).

use chainwright_sys::nf_tables_compat::{NFTA_MATCH_INFO, NFTA_MATCH_NAME, NFTA_MATCH_REV};

use super::expression;
use crate::nft::UnknownAttributes;
use crate::nft::name::{Bytes, Name};

expression! {
    "match"
    /// An xtables match: matches if the extension does (`enum nft_match_attributes`).
    pub struct Match<'a> viewed as MatchRef {
        /// The extension's name.
        NFTA_MATCH_NAME => name: Name<'a>,
        /// The extension's revision.
        NFTA_MATCH_REV => revision: u32,
        /// The extension's own struct, in host byte order, padded to 8 bytes.
        NFTA_MATCH_INFO => info: Bytes<'a>,
    }
}

impl<'a> Match<'a> {
    /// Creates a match with this extension.
    pub fn new(name: impl Into<Name<'a>>, revision: u32, info: impl Into<Bytes<'a>>) -> Self {
        Self {
            name: Some(name.into()),
            revision: Some(revision),
            info: Some(info.into()),
            unknown: UnknownAttributes::NONE,
        }
    }
}

/// Formats like `nft --debug=netlink`.
impl std::fmt::Display for Match<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ match name ")?;
        if let Some(name) = &self.name {
            name.fmt(f)?;
        }
        write!(f, " rev {} ]", self.revision.unwrap_or_default())
    }
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;
    use crate::nft::expr::tests::cases::assert_built;

    #[test]
    fn constructors() {
        assert_built(
            "-t nat -A PREROUTING -m addrtype --dst-type LOCAL",
            Match::new("addrtype", 1, &[0, 0, 1 << 2, 0, 0, 0, 0, 0][..]),
        );
        assert_built(
            "of [ match name addrtype rev 1 ]",
            Match::new("addrtype", 1, &[0; 8]),
        );
    }
}
