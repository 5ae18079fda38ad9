//! Queries for the kernel's x_tables extensions (`linux/netfilter/nf_tables_compat.h`).

use chainwright_sys::nf_tables_compat::{
    NFNL_MSG_COMPAT_GET, NFTA_COMPAT_NAME, NFTA_COMPAT_REV, NFTA_COMPAT_TYPE,
};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_NFT_COMPAT;

use super::{Connection, Family};
use crate::netlink::{Error, Request};

/// The kinds of extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExtensionKind {
    /// A match.
    Match,
    /// A target.
    Target,
}

impl std::fmt::Display for ExtensionKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Match => "match",
            Self::Target => "target",
        })
    }
}

impl Connection {
    /// Returns whether the kernel has this revision of an extension, for `match` and `target` expressions. To answer,
    /// the kernel loads the extension's module, as it does for a rule.
    ///
    /// # Errors
    /// The errors of a request.
    pub fn has_extension(
        &mut self,
        family: Family,
        kind: ExtensionKind,
        name: &str,
        revision: u8,
    ) -> Result<bool, Error> {
        let message = ((NFNL_SUBSYS_NFT_COMPAT as u16) << 8) | u16::from(NFNL_MSG_COMPAT_GET);
        // No extension with that name, or not in that revision.
        let request = Request {
            absent: &[libc::ENOENT, libc::EPROTONOSUPPORT, libc::EPROTOTYPE],
            ..Request::new("look up an extension", message)
        };
        let found = self.session.object(&request, family.0, |writer| {
            writer
                .string(NFTA_COMPAT_NAME, name.as_bytes())
                .be32(NFTA_COMPAT_REV, revision.into())
                .be32(NFTA_COMPAT_TYPE, u32::from(kind == ExtensionKind::Target));
        })?;
        Ok(found.is_some())
    }
}
