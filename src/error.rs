//! The crate's one [`Error`], and the errno that the layers' own errors carry.

use std::fmt;
use std::io;

/// A Linux error number, as the kernel puts it into a netlink acknowledgement or a system call
/// returns it; always positive.
///
/// See [errno(3)](https://man7.org/linux/man-pages/man3/errno.3.html).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

impl Errno {
    /// The errno with this number. A negative number, as netlink writes it, is turned positive.
    #[must_use]
    pub const fn new(number: i32) -> Self {
        // `i32::MIN` has no positive counterpart; no kernel sends it.
        Self(number.saturating_abs())
    }

    /// The errno of an I/O error, if it has one (0 otherwise, which no error has).
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        Self::new(error.raw_os_error().unwrap_or(0))
    }

    /// The number, positive.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }

    /// The symbol, for instance `ENOENT`; `errno 524` for a number that the C library has no name
    /// for.
    #[must_use]
    pub fn name(self) -> String {
        match nix::errno::Errno::from_raw(self.0) {
            nix::errno::Errno::UnknownErrno => format!("errno {}", self.0),
            known => format!("{known:?}"),
        }
    }
}

impl fmt::Display for Errno {
    /// Symbol and text: `ENOENT (No such file or directory)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match nix::errno::Errno::from_raw(self.0) {
            nix::errno::Errno::UnknownErrno => write!(f, "errno {}", self.0),
            known => write!(f, "{known:?} ({})", known.desc()),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Any error of this crate. Each room has its own, and says what was being done; this one lets
/// `?` take them all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Of a netlink socket or request.
    #[error(transparent)]
    Netlink(#[from] crate::netlink::Error),
    /// A transaction was not applied, or it cannot be known whether it was.
    #[error(transparent)]
    Commit(Box<crate::nft::CommitError>),
    /// An attribute was too long to be put into a message.
    #[error(transparent)]
    Unfit(#[from] crate::netlink::Unfit),
    /// A comment could not be given to an object.
    #[error(transparent)]
    Comment(#[from] crate::nft::userdata::CommentError),
    /// A snapshot could not be read as one whole.
    #[error(transparent)]
    Snapshot(#[from] crate::nft::SnapshotError),
    /// A snapshot could not be written into a file, or read from one.
    #[cfg(feature = "backup")]
    #[error(transparent)]
    File(#[from] crate::nft::FileError),
    /// A rule could not be built.
    #[error(transparent)]
    Build(#[from] crate::nft::build::BuildError),
    /// A rule in iptables' terms could not be put into nf_tables'.
    #[error(transparent)]
    Unwritable(#[from] crate::iptables::nft::Unwritable),
    /// Of tables in iptables' terms.
    #[error(transparent)]
    Iptables(Box<crate::iptables::Error>),
    /// A set that a rule names could not be looked up.
    #[error(transparent)]
    Set(#[from] crate::iptables::SetError),
    /// Of the connection that looks up sets.
    #[error(transparent)]
    Ipset(#[from] crate::ipset::Error),
    /// Of the legacy tables.
    #[error(transparent)]
    Legacy(#[from] crate::legacy::Error),
    /// Of a network namespace.
    #[error(transparent)]
    Netns(#[from] crate::netns::Error),
    /// Of kubelet's chains.
    #[cfg(feature = "kube")]
    #[error(transparent)]
    Kubelet(#[from] crate::kube::kubelet::Error),
}

impl From<crate::nft::CommitError> for Error {
    fn from(error: crate::nft::CommitError) -> Self {
        Self::Commit(Box::new(error))
    }
}

impl From<crate::iptables::Error> for Error {
    fn from(error: crate::iptables::Error) -> Self {
        Self::Iptables(Box::new(error))
    }
}

impl From<crate::netlink::Malformed> for Error {
    fn from(error: crate::netlink::Malformed) -> Self {
        Self::Netlink(error.into())
    }
}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> Self {
        io::Error::from_raw_os_error(errno.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(Errno::new(-2), Errno::new(2));
        assert_eq!(Errno::new(2).name(), "ENOENT");
        assert_eq!(
            Errno::new(2).to_string(),
            "ENOENT (No such file or directory)"
        );
        assert_eq!(Errno::new(85).name(), "ERESTART");
        assert_eq!(Errno::new(524).to_string(), "errno 524");
        assert_eq!(Errno::new(i32::MIN).number(), i32::MAX);
    }
}
