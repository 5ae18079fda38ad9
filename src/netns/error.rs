use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::NetnsId;

/// What can go wrong with network namespaces.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A namespace's name cannot be a file name: it is empty, `.`, `..`, or has a `/` or NUL in it.
    #[error(
        "{:?} cannot be the name of a network namespace (for a path, write a / in it)",
        name.display()
    )]
    InvalidName {
        /// The name as given.
        name: OsString,
    },

    /// There is no network namespace of that name.
    #[error(
        "no network namespace is named {:?}: it is neither in /run/netns nor in /var/run/netns",
        name.display()
    )]
    NoSuchName {
        /// The name as given.
        name: OsString,
    },

    /// There is no such process, or it has ended.
    #[error("cannot find the network namespace of process {pid}: there is no such process")]
    NoSuchProcess {
        /// The process's number.
        pid: u32,
    },

    /// A network namespace's file could not be opened.
    #[error("cannot open the network namespace {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// The file is something else: an ordinary file, or another kind of namespace.
    #[error("{}: not a network namespace", path.display())]
    NotANetworkNamespace {
        /// The file.
        path: PathBuf,
    },

    /// The thread that was to work inside the namespace could not be started.
    #[error("cannot start a thread to work inside a network namespace")]
    Thread {
        /// Why.
        source: io::Error,
    },

    /// A thread could not enter the namespace. `EPERM` means that the caller lacks
    /// `CAP_SYS_ADMIN`, either over its own user namespace or over the one that the network
    /// namespace belongs to
    /// ([setns(2)](https://man7.org/linux/man-pages/man2/setns.2.html)).
    #[error(
        "cannot enter the network namespace {id} (this takes CAP_SYS_ADMIN, here and over that \
         namespace)"
    )]
    Enter {
        /// The namespace.
        id: NetnsId,
        /// What the kernel said.
        source: io::Error,
    },
}
