//! The crate's error.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chainwright::ErrorKind;
use chainwright::netlink::Malformed;
use chainwright::nft::{FileError, SnapshotError};

use crate::format::VERSION;

/// The reason why something could not be recorded or read.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The ruleset could not be read from the kernel.
    #[error(transparent)]
    Kernel(#[from] SnapshotError),
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The failed action.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        r#source: io::Error,
    },
    /// Another process records in this directory.
    #[error("{} is in use by another recorder", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// The directory has no records.
    #[error("{} has no records: `chainwright record` makes them", path.display())]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// The file is not a recorder's.
    #[error("{} is not a file of a recorder: it lacks the signature", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer version of this crate.
    #[error("{} has format version {version}; this program reads version {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The file was written on a machine of the other byte order.
    #[error("{} was written on a machine with a different byte order", path.display())]
    ByteOrder {
        /// The file.
        path: PathBuf,
    },
    /// The file was modified or damaged.
    #[error("{} is damaged at offset {offset}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset of the record.
        offset: u64,
        /// The problem.
        reason: &'static str,
    },
    /// A record has no valid content, though its checksum fits.
    #[error("{} has an invalid record at offset {offset}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Offset of the record.
        offset: u64,
        /// The error in the record.
        source: Malformed,
    },
    /// A recorded ruleset is not valid, though its checksum fits.
    #[error("{} has an invalid ruleset at offset {offset}: {source}", path.display())]
    Ruleset {
        /// The file.
        path: PathBuf,
        /// Offset of the record.
        offset: u64,
        /// The error in the ruleset.
        source: Box<FileError>,
    },
    /// The records start later.
    #[error("{} has nothing of that time: it starts later", path.display())]
    TooEarly {
        /// The directory.
        path: PathBuf,
        /// The time of the first record.
        first: SystemTime,
    },
    /// The generation was not recorded.
    #[error("{} has no generation {generation}", path.display())]
    UnknownGeneration {
        /// The directory.
        path: PathBuf,
        /// The generation.
        generation: u32,
    },
}

chainwright::debug_as_message!(Error);

chainwright::classified!(Error, |error| match error {
    Self::Kernel(error) => error.class(),
    Self::Io { source, .. } => source.into(),
    Self::Locked { .. } => ErrorKind::InUse.into(),
    Self::Empty { .. } | Self::TooEarly { .. } | Self::UnknownGeneration { .. } => {
        ErrorKind::NotFound.into()
    }
    _ => ErrorKind::Invalid.into(),
});

/// Returns a function that adds the path to an I/O error.
pub(crate) fn io_error<'p>(
    action: &'static str,
    path: &'p Path,
) -> impl FnOnce(io::Error) -> Error + use<'p> {
    move |source| Error::Io {
        action,
        path: path.to_owned(),
        source,
    }
}
