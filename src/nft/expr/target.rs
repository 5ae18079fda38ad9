//! `target`: an xtables target, in nf_tables' compatibility layer.
//!
//! ```text
//! NFTA_TARGET_NAME   string
//! NFTA_TARGET_REV    be32
//! NFTA_TARGET_INFO   bytes
//! ```
//!
//! A rule with a target needs [`Compat`](crate::nft::Compat).

use chainwright_sys::nf_tables_compat::{NFTA_TARGET_INFO, NFTA_TARGET_NAME, NFTA_TARGET_REV};

use super::expression;
use crate::nft::UnknownAttributes;
use crate::nft::name::{Bytes, Name};

expression! {
    "target"
    /// An xtables target: the extension processes the packet and returns the verdict
    /// (`enum nft_target_attributes`).
    pub struct Target<'a> viewed as TargetRef {
        /// The extension's name.
        NFTA_TARGET_NAME => name: Name<'a>,
        /// The extension's revision.
        NFTA_TARGET_REV => revision: u32,
        /// The extension's own struct, in host byte order, padded to 8 bytes.
        NFTA_TARGET_INFO => info: Bytes<'a>,
    }
}

impl<'a> Target<'a> {
    /// Creates a target with this extension.
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
impl std::fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[ target name ")?;
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
            "of [ target name REJECT rev 0 ]",
            Target::new("REJECT", 0, &[0; 8]),
        );
    }
}
