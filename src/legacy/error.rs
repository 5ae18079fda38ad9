//! Errors of the legacy tables.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bstr::BString;

use super::{ExtensionKind, Family, Hook, LockHolder, TableName};
use crate::errno::Errno;
use crate::error::{Class, ErrorKind};

/// Error from reading or replacing a legacy table.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This kernel has no legacy tables of that family: they are not built in, and their module, if
    /// any, is not loaded.
    #[error(
        "this kernel has no legacy {family} tables (not built in, or module {} is not loaded)",
        .family.module()
    )]
    NotBuilt {
        /// The requested family.
        family: Family,
    },

    /// This is a 32-bit build. A 64-bit kernel uses its own layout or the 32-bit one for such a
    /// program, depending on its configuration, and does not report which. The crate therefore does
    /// not touch the tables.
    #[error(
        "legacy {family} tables are not supported by a 32-bit program (their layout depends on the kernel): use a 64-bit build, or nf_tables"
    )]
    Unsupported32Bit {
        /// The requested family.
        family: Family,
    },

    /// The caller lacks permission for the legacy tables of this network namespace.
    #[error("no access to the legacy {family} tables: {access}")]
    NoPermission {
        /// The requested family.
        family: Family,
        /// The missing permission.
        access: Access,
    },

    /// `/proc/thread-self/net` does not exist, so the tables in use are unknown.
    #[error("/proc/thread-self/net does not exist (is /proc mounted?)")]
    NoProc,

    /// Not a valid table name: a name has 1 to 31 bytes without NUL.
    #[error("invalid legacy table name {name:?} (1 to 31 bytes, no NUL)")]
    TableName {
        /// The rejected name.
        name: BString,
    },

    /// The kernel has no table of that name in that family (or its module is not loaded), so it cannot
    /// be instantiated.
    #[error("this kernel has no legacy {family} table {table}")]
    NoSuchTable {
        /// The family.
        family: Family,
        /// The requested table.
        table: TableName,
    },

    /// Another process replaced the table during each attempt to read it.
    #[error(
        "the legacy {family} table {table} changed during each of {attempts} attempts to read it"
    )]
    Changing {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
        /// Number of attempts.
        attempts: u32,
    },

    /// The kernel's bytes are not a table. This is an error in the kernel or here.
    #[error("cannot parse the legacy {family} table {table}: {problem}")]
    Malformed {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
        /// Offset and problem.
        problem: Malformed,
    },

    /// The table was replaced since it was read: it has another number of entries. Nothing was
    /// changed.
    #[error(
        "the legacy {family} table {table} was changed since it was read (read it again while holding the lock)"
    )]
    Changed {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
    },

    /// The kernel has no such match or target, or not in that revision. Nothing was changed.
    #[error(
        "this kernel has no legacy {family} {kind} {name:?} of revision {revision} (not built in, or its module cannot be loaded)"
    )]
    UnknownExtension {
        /// The family.
        family: Family,
        /// Whether it is a match or a target.
        kind: ExtensionKind,
        /// Its name.
        name: BString,
        /// The requested revision.
        revision: u8,
    },

    /// This replacement has already replaced the table that was read, and does not fit the current
    /// one. Nothing was changed.
    #[error(
        "this replacement of the legacy {family} table {table} was already sent: read the table again and rebuild the replacement"
    )]
    AlreadySent {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
    },

    /// The kernel did not take the new table. Nothing was done.
    #[error("the kernel rejected the new legacy {family} table {table}: {errno}; {}", refusal(*.errno))]
    Refused {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
        /// The kernel's error.
        errno: Errno,
    },

    /// The table **was replaced**, but its counters could not be restored: all of them restarted at
    /// zero. `EINVAL` means that another process replaced the table again in the meantime.
    #[error(
        "the legacy {family} table {table} was replaced, but its counters were lost (they restart at zero): {errno}"
    )]
    CountersLost {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
        /// The kernel's error.
        errno: Errno,
    },

    /// The new table belongs to another family than the connection.
    #[error(
        "a legacy {replacement} table cannot be written through a connection for {family} tables"
    )]
    WrongFamily {
        /// The connection's family.
        family: Family,
        /// The new table's family.
        replacement: Family,
    },

    /// These bytes cannot be the name of a match or target: it has 1 to 28 bytes, none of them NUL.
    #[error("invalid match or target name {name:?} (1 to 28 bytes, no NUL)")]
    ExtensionName {
        /// The rejected name.
        name: BString,
    },

    /// Another process holds the lock of the legacy tools.
    #[error(
        "the lock {} is held by {} (waited {waited:?})",
        .path.display(),
        .holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string)
    )]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The process that holds the lock, if known.
        holder: Option<LockHolder>,
        /// The time for which the caller waited.
        waited: Duration,
    },

    /// The file of the lock cannot be opened or locked.
    #[error("cannot use the lock file {}: {errno}", .path.display())]
    LockFile {
        /// The lock file.
        path: PathBuf,
        /// The kernel's error.
        errno: Errno,
    },

    /// A system call failed with an error that has no variant of its own here.
    #[error("{operation} (legacy {family} tables): {errno}")]
    System {
        /// The family.
        family: Family,
        /// The operation that failed.
        operation: Operation,
        /// The kernel's error.
        errno: Errno,
    },
}

crate::debug_as_message!(Error);

crate::classified!(Error, |error| match error {
    Self::NotBuilt { .. } | Self::Unsupported32Bit { .. } | Self::UnknownExtension { .. } => {
        ErrorKind::Unsupported.into()
    }
    Self::NoPermission { .. } => ErrorKind::PermissionDenied.into(),
    Self::NoSuchTable { .. } => ErrorKind::NotFound.into(),
    Self::Changing { .. } | Self::Changed { .. } | Self::Locked { .. } => {
        ErrorKind::Retryable.into()
    }
    Self::TableName { .. }
    | Self::AlreadySent { .. }
    | Self::WrongFamily { .. }
    | Self::ExtensionName { .. } => ErrorKind::Invalid.into(),
    Self::NoProc | Self::Malformed { .. } => ErrorKind::Other.into(),
    Self::Refused { errno, .. } | Self::LockFile { errno, .. } | Self::System { errno, .. } => {
        (*errno).into()
    }
    Self::CountersLost { errno, .. } => Class {
        kind: ErrorKind::Other,
        errno: Some(*errno),
    },
});

/// Explains likely reasons for which the kernel refused a table.
fn refusal(errno: Errno) -> &'static str {
    match errno.number() {
        libc::ELOOP => "its jumps form a loop",
        libc::ENOMEM => "out of memory, or over the memory limit of the control group",
        libc::ENOENT | libc::EPROTOTYPE => {
            "no such table, match or target, or not in this revision for this family"
        }
        libc::EINVAL => {
            "a match or target does not support this table, hook or protocol, its data is invalid, or jumps \
             form a loop (see the kernel log)"
        }
        _ => "a match or target may have rejected its data (see the kernel log)",
    }
}

/// A permission that the caller lacks ([`Error::NoPermission`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// The tables: they require `CAP_NET_ADMIN` in the user namespace that owns the network namespace.
    Tables,
    /// The file with the names of the tables in use ([`Family::names_file`]). Without it, reading a
    /// table could create it.
    ///
    /// The file belongs to the user who was root of the owning user namespace *when the network
    /// namespace was created*. A single `unshare(CLONE_NEWUSER | CLONE_NEWNET)` creates the network
    /// namespace before that root is mapped to any user, so even its root cannot read the file. Create
    /// the user namespace, write its maps, then create the network namespace.
    TableNames,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tables => "this requires CAP_NET_ADMIN in this network namespace",
            Self::TableNames => {
                "the file with the names of the tables in use is readable only by the user who was root of \
                 the user namespace when the network namespace was created (map the users before that)"
            }
        })
    }
}

/// The operation during which a system call failed ([`Error::System`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Opening the socket.
    OpenSocket,
    /// Opening the file with the names of the tables in use.
    OpenNames,
    /// Reading that file.
    ReadNames,
    /// Checking whether the kernel has the family's tables (`GET_REVISION_TARGET`).
    Probe,
    /// Reading a table's sizes and offsets (`GET_INFO`).
    GetInfo,
    /// Reading a table's entries (`GET_ENTRIES`).
    GetEntries,
    /// Replacing a table (`SET_REPLACE`).
    Replace,
    /// Checking a revision of a match or target (`GET_REVISION_MATCH`, `GET_REVISION_TARGET`).
    GetRevision,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenSocket => "opening a socket",
            Self::OpenNames => "opening the file with the names of the tables in use",
            Self::ReadNames => "reading the names of the tables in use",
            Self::Probe => "querying the standard target",
            Self::GetInfo => "reading a table's information",
            Self::GetEntries => "reading a table's entries",
            Self::Replace => "replacing a table",
            Self::GetRevision => "querying a revision of a match or target",
        })
    }
}

/// Bytes that are not a valid legacy table: the offset and the problem.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset}: {problem}")]
pub struct Malformed {
    /// Offset in bytes from the start of the table's entries to the malformed entry, match or target
    /// (for a problem with the whole table: 0, or the end).
    pub offset: usize,
    /// The problem.
    pub problem: Problem,
}

crate::debug_as_message!(Malformed);

impl Malformed {
    pub(super) const fn new(offset: usize, problem: Problem) -> Self {
        Self { offset, problem }
    }
}

/// Problem with the bytes of a table ([`Malformed`]).
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The answer to `GET_INFO` has another size than the kernel's struct.
    #[error("invalid size of the table's information: expected {expected} bytes, found {found}")]
    InfoSize {
        /// Size of the struct.
        expected: usize,
        /// Number of bytes received.
        found: usize,
    },
    /// The answer to `GET_INFO` has no valid table name.
    #[error("the table's information has no valid name")]
    InfoName,
    /// The table has hooks that its family does not have.
    #[error("the table has unknown hooks (mask {valid_hooks:#x})")]
    UnknownHooks {
        /// Bit mask of the table's hooks.
        valid_hooks: u32,
    },
    /// The table's size is more than one system call can read.
    #[error("the table is too large ({size} bytes)")]
    TooLarge {
        /// Size of the entries in bytes.
        size: u32,
    },
    /// The entries have another size than `GET_INFO` reported.
    #[error("expected {expected} bytes of entries, found {found}")]
    Size {
        /// Expected number of bytes.
        expected: u32,
        /// Actual number of bytes.
        found: usize,
    },
    /// There are more or fewer entries than `GET_INFO` reported.
    #[error("expected {expected} entries, found {found}")]
    EntryCount {
        /// Expected number of entries.
        expected: u32,
        /// Actual number of entries.
        found: u32,
    },
    /// Too few bytes are left for an entry.
    #[error("an entry needs at least {needed} bytes, but only {left} are left")]
    Truncated {
        /// Size of the smallest entry.
        needed: usize,
        /// Bytes left in the table.
        left: usize,
    },
    /// The entry's target lies before the end of the entry's head, or too late for a target.
    #[error("invalid target offset {target_offset} in an entry of {next_offset} bytes")]
    TargetOffset {
        /// Bytes from the entry to its target.
        target_offset: u16,
        /// Bytes from the entry to the next one.
        next_offset: u16,
    },
    /// The entry is longer than the rest of the table.
    #[error("the entry has {next_offset} bytes, but only {left} are left")]
    NextOffset {
        /// Bytes from the entry to the next one.
        next_offset: u16,
        /// Bytes left in the table.
        left: usize,
    },
    /// A target, match or entry does not start or end at a multiple of 8 (`XT_ALIGN`).
    #[error(
        "the size or offset {value} is not a multiple of {}",
        chainwright_sys::x_tables::XT_ALIGN
    )]
    Misaligned {
        /// The size or offset.
        value: u16,
    },
    /// A match or target is smaller than its head or larger than its place.
    #[error("a match or target of {size} bytes does not fit into {available} bytes")]
    ExtensionSize {
        /// The size in its header.
        size: u16,
        /// Bytes from its start to the end of the entry (for a match: to the target).
        available: usize,
    },
    /// An entry precedes the first chain.
    #[error("an entry outside of all chains")]
    OutsideChains,
    /// At the offset where a built-in chain should start, there is no entry, or the head of a
    /// user-defined chain.
    #[error("the built-in chain {hook} does not start at its own entry")]
    HookEntry {
        /// The hook of the chain.
        hook: Hook,
    },
    /// A built-in chain's last entry is not the one that `GET_INFO` gives as its policy.
    #[error("the built-in chain {hook} ends here instead of with its policy at {underflow}")]
    Underflow {
        /// The hook of the chain.
        hook: Hook,
        /// The expected offset of the policy.
        underflow: u32,
    },
    /// The last entry of a built-in chain does not accept or drop every packet.
    #[error("the last entry of the built-in chain {hook} is not a policy")]
    Policy {
        /// The hook of the chain.
        hook: Hook,
    },
    /// The last entry is not the `ERROR` target that ends every table.
    #[error("the table does not end with an ERROR entry")]
    NoEnd,
    /// A rule jumps to an offset at which no chain's first rule is.
    #[error("a jump to {to}, which is not the start of a chain")]
    Jump {
        /// The offset that the rule jumps to.
        to: u32,
    },
}

crate::debug_as_message!(Problem);
