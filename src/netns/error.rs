use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::NetnsId;
use crate::error::ErrorKind;

/// Errors of network namespaces.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A namespace's name cannot be a file name: it is empty, `.`, `..`, or has a `/` or NUL in it.
    #[error(
        "invalid network namespace name {:?} (a path must contain a /)",
        name.display()
    )]
    InvalidName {
        /// The name as given.
        name: OsString,
    },

    /// There is no network namespace of that name.
    #[error(
        "no network namespace {:?} in /run/netns or /var/run/netns (`ip netns add` creates one there)",
        name.display()
    )]
    NoSuchName {
        /// The name as given.
        name: OsString,
    },

    /// There is no such process, or it has ended.
    #[error("cannot find the network namespace of process {pid}: no such process")]
    NoSuchProcess {
        /// The process's number.
        pid: u32,
    },

    /// A network namespace's file could not be opened.
    #[error("cannot open the network namespace {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The cause.
        r#source: io::Error,
    },

    /// The file is not a network namespace: an ordinary file, or another kind of namespace.
    #[error("{}: not a network namespace", path.display())]
    NotANetworkNamespace {
        /// The file.
        path: PathBuf,
    },

    /// The thread for work inside the namespace could not be started.
    #[error("cannot start a thread to work inside a network namespace: {source}")]
    Thread {
        /// The cause.
        r#source: io::Error,
    },

    /// A thread could not enter the namespace. `EPERM` means that the caller lacks
    /// `CAP_SYS_ADMIN`, either over its own user namespace or over the one that the network
    /// namespace belongs to
    /// ([setns(2)](https://man7.org/linux/man-pages/man2/setns.2.html)).
    #[error(
        "cannot enter the network namespace {id}: {source} (this requires CAP_SYS_ADMIN, here and over \
         that namespace)"
    )]
    Enter {
        /// The namespace.
        id: NetnsId,
        /// The kernel's error.
        r#source: io::Error,
    },
}

crate::debug_as_message!(Error);

crate::classified!(Error, |error| match error {
    Self::InvalidName { .. } | Self::NotANetworkNamespace { .. } => ErrorKind::Invalid.into(),
    Self::NoSuchName { .. } | Self::NoSuchProcess { .. } => ErrorKind::NotFound.into(),
    Self::Open { source, .. } | Self::Thread { source } | Self::Enter { source, .. } => {
        source.into()
    }
});
