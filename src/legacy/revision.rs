//! Checks which matches and targets the kernel has.

use std::fmt;

use bstr::BString;
use chainwright_sys::x_tables::{XT_EXTENSION_MAXNAMELEN, xt_get_revision};
use zerocopy::IntoBytes;

use super::connection::failed;
use super::{Connection, Error, Operation};

/// A match or a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtensionKind {
    /// A match.
    Match,
    /// A target.
    Target,
}

impl fmt::Display for ExtensionKind {
    /// Formats as `match` or `target`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Match => "match",
            Self::Target => "target",
        })
    }
}

impl Connection {
    /// Returns whether the kernel has that revision of a match for this family. Like iptables, this
    /// **loads the match's module**, if one exists and the caller has permission. ARP tables have
    /// no matches.
    ///
    /// # Errors
    /// [`Error::ExtensionName`] for a name with less than 1 or more than 28 bytes or with a NUL;
    /// [`Error::NoPermission`]; [`Error::System`].
    pub fn match_revision(&self, name: impl AsRef<[u8]>, revision: u8) -> Result<bool, Error> {
        match self.family().layout().get_revision_match {
            Some(option) => self.knows(option, name.as_ref(), revision),
            None => Ok(false),
        }
    }

    /// Returns whether the kernel has that revision of a target for this family; works like
    /// [`match_revision`](Self::match_revision).
    ///
    /// # Errors
    /// As [`match_revision`](Self::match_revision).
    pub fn target_revision(&self, name: impl AsRef<[u8]>, revision: u8) -> Result<bool, Error> {
        let option = self.family().layout().get_revision_target;
        self.knows(option, name.as_ref(), revision)
    }

    fn knows(&self, option: i32, name: &[u8], revision: u8) -> Result<bool, Error> {
        if name.is_empty() || name.len() >= XT_EXTENSION_MAXNAMELEN || name.contains(&0) {
            let name = BString::from(name);
            return Err(Error::ExtensionName { name });
        }
        let mut request = xt_get_revision {
            name: [0; XT_EXTENSION_MAXNAMELEN],
            revision,
        };
        request.name[..name.len()].copy_from_slice(name);
        match self.socket().get(option, request.as_mut_bytes()) {
            Ok(()) => Ok(true),
            // No such revision, or no such extension.
            Err(errno) if matches!(errno.number(), libc::EPROTONOSUPPORT | libc::ENOENT) => {
                Ok(false)
            }
            Err(errno) => Err(failed(self.family(), Operation::GetRevision, errno)),
        }
    }
}
