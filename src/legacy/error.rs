//! What can go wrong with the legacy tables.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bstr::BString;

use super::{ExtensionKind, Family, Hook, LockHolder, TableName};
use crate::errno::Errno;

/// Why a legacy table could not be read or replaced.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This kernel has no legacy tables of that family: they are not built in, and if they are a
    /// module, it is not loaded.
    #[error(
        "this kernel has no legacy {family} tables (not built in, or module {} is not loaded)",
        .family.module()
    )]
    NotBuilt {
        /// The family that was asked for.
        family: Family,
    },

    /// The program is built for a processor of 32 bits. A kernel of 64 bits hands it tables in its own
    /// layout or in the other one, as it was built, and does not say which: they are not touched.
    #[error(
        "legacy {family} tables are not supported by a program of 32 bits (their layout is the kernel's, which cannot be told): use a build for 64 bits, or nf_tables"
    )]
    NarrowBuild {
        /// The family that was asked for.
        family: Family,
    },

    /// The caller may not look at the legacy tables of this network namespace.
    #[error("no access to the legacy {family} tables: {access}")]
    NoPermission {
        /// The family that was asked for.
        family: Family,
        /// What is missing.
        access: Access,
    },

    /// `/proc/thread-self/net` is not there, so that nobody can tell which tables are in use.
    #[error("/proc/thread-self/net is not there (is /proc mounted?)")]
    NoProc,

    /// These bytes cannot be a table's name: it has 1 to 31 bytes, none of them NUL.
    #[error("{name:?} cannot be the name of a legacy table (1 to 31 bytes, no NUL)")]
    TableName {
        /// What was given.
        name: BString,
    },

    /// The kernel has no table of that name in that family (or its module is not loaded), so that
    /// it could not be instantiated.
    #[error("this kernel has no legacy {family} table {table}")]
    NoSuchTable {
        /// The family.
        family: Family,
        /// The table that was asked for.
        table: TableName,
    },

    /// Each time it was read, somebody replaced the table meanwhile.
    #[error(
        "the legacy {family} table {table} changed during each of {attempts} attempts to read it"
    )]
    Changing {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
        /// How often it was tried.
        attempts: u32,
    },

    /// The kernel's bytes are not a table. This is an error in the kernel or here.
    #[error("the legacy {family} table {table} cannot be understood: {problem}")]
    Malformed {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
        /// Where and what.
        problem: Malformed,
    },

    /// The table was replaced since it was read: it has another number of entries. Nothing was done.
    #[error(
        "the legacy {family} table {table} was changed by somebody since it was read (read it again, and hold the lock meanwhile)"
    )]
    Changed {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
    },

    /// The kernel has no such match or target, or not that revision of it. Nothing was done.
    #[error(
        "this kernel has no legacy {family} {kind} {name:?} of revision {revision} (not built in, or its module cannot be loaded)"
    )]
    UnknownExtension {
        /// The family.
        family: Family,
        /// Which of both.
        kind: ExtensionKind,
        /// Its name.
        name: BString,
        /// The revision that was asked for.
        revision: u8,
    },

    /// This new table has replaced the one that was read already, and is not for the one that is there
    /// now. Nothing was done.
    #[error(
        "this replacement of the legacy {family} table {table} was sent before: read the table again and draft it anew"
    )]
    AlreadySent {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
    },

    /// The kernel did not take the new table. Nothing was done.
    #[error("the kernel refused the new legacy {family} table {table}: {errno}; {}", refusal(*.errno))]
    Refused {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
        /// What the kernel said.
        errno: Errno,
    },

    /// The table **was replaced**, but the counters could not be given back: all of them started again
    /// with zero. `EINVAL` tells that somebody replaced the table again meanwhile.
    #[error(
        "the legacy {family} table {table} was replaced, but its counters are lost (they start with zero): {errno}"
    )]
    CountersLost {
        /// The family.
        family: Family,
        /// The table.
        table: TableName,
        /// What the kernel said.
        errno: Errno,
    },

    /// The new table is one of another family than the connection.
    #[error(
        "a legacy {replacement} table cannot be written through a connection to {family} tables"
    )]
    WrongFamily {
        /// The connection's family.
        family: Family,
        /// The new table's family.
        replacement: Family,
    },

    /// These bytes cannot be the name of a match or target: it has 1 to 28 bytes, none of them NUL.
    #[error("{name:?} cannot be the name of a match or target (1 to 28 bytes, no NUL)")]
    ExtensionName {
        /// What was given.
        name: BString,
    },

    /// Somebody else has the lock of the legacy tools.
    #[error(
        "the lock {} is held by {} (waited {waited:?})",
        .path.display(),
        .holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string)
    )]
    Locked {
        /// The file.
        path: PathBuf,
        /// Who has it, if that can be found out.
        holder: Option<LockHolder>,
        /// How long it was tried.
        waited: Duration,
    },

    /// The file of the lock cannot be opened or locked.
    #[error("the lock file {} cannot be used: {errno}", .path.display())]
    LockFile {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        errno: Errno,
    },

    /// A system call failed in a way that has no meaning of its own here.
    #[error("{operation} (legacy {family} tables): {errno}")]
    System {
        /// The family.
        family: Family,
        /// What was being done.
        operation: Operation,
        /// What the kernel said.
        errno: Errno,
    },
}

/// What can have been the reason that a kernel refused a table.
fn refusal(errno: Errno) -> &'static str {
    match errno.number() {
        libc::ELOOP => "its jumps go round in a circle",
        libc::ENOMEM => "there is no memory for it, or the control group may not have so much",
        libc::ENOENT | libc::EPROTOTYPE => {
            "it has no such table, match or target, or not that revision for this family"
        }
        libc::EINVAL => {
            "a match or target is not for this table, hook or protocol or its data is wrong, or jumps \
             go round in a circle (the kernel's log may tell more)"
        }
        _ => "a match or target may have refused its data (the kernel's log may tell more)",
    }
}

/// What a caller lacks permission for ([`Error::NoPermission`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Access {
    /// The tables themselves: they take `CAP_NET_ADMIN` in the user namespace that owns the
    /// network namespace.
    Tables,
    /// The file with the names of the tables in use ([`Family::names_file`]), without which a look
    /// could create a table.
    ///
    /// It belongs to the user who was root of the owning user namespace *when the network
    /// namespace was made*. `unshare(CLONE_NEWUSER | CLONE_NEWNET)` in one call makes the network
    /// namespace before that root is mapped to anybody, so that even its root cannot read the
    /// file: make the user namespace, write its maps, then make the network namespace.
    TableNames,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tables => "CAP_NET_ADMIN over this network namespace is needed",
            Self::TableNames => {
                "the file with the names of the tables in use is readable only by who was root of \
                 the user namespace when the network namespace was made (so map the users first)"
            }
        })
    }
}

/// What was being done when a system call failed ([`Error::System`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Opening the socket.
    OpenSocket,
    /// Opening the file with the names of the tables in use.
    OpenNames,
    /// Reading that file.
    ReadNames,
    /// Asking whether the kernel has the family's tables (`GET_REVISION_TARGET`).
    Probe,
    /// Reading a table's sizes and offsets (`GET_INFO`).
    GetInfo,
    /// Reading a table's entries (`GET_ENTRIES`).
    GetEntries,
    /// Replacing a table (`SET_REPLACE`).
    Replace,
    /// Asking for a revision of a match or target (`GET_REVISION_MATCH`, `GET_REVISION_TARGET`).
    AskRevision,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenSocket => "opening a socket",
            Self::OpenNames => "opening the file with the names of the tables in use",
            Self::ReadNames => "reading the names of the tables in use",
            Self::Probe => "asking for the standard target",
            Self::GetInfo => "asking for a table's information",
            Self::GetEntries => "asking for a table's entries",
            Self::Replace => "replacing a table",
            Self::AskRevision => "asking for a revision of a match or target",
        })
    }
}

/// Bytes that are not what a legacy table looks like: where, and in which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset}: {problem}")]
pub struct Malformed {
    /// Bytes from the start of the table's entries to the entry, match or target in question (for
    /// a problem with the whole table: 0, or the end).
    pub offset: usize,
    /// What is wrong.
    pub problem: Problem,
}

impl Malformed {
    pub(super) const fn new(offset: usize, problem: Problem) -> Self {
        Self { offset, problem }
    }
}

/// What is wrong with a table's bytes ([`Malformed`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The answer to `GET_INFO` has another size than the kernel's struct.
    #[error("a table's information has {expected} bytes, not {found}")]
    InfoSize {
        /// Size of the struct.
        expected: usize,
        /// Bytes there are.
        found: usize,
    },
    /// The answer to `GET_INFO` has no valid table name.
    #[error("a table's information without a valid name")]
    InfoName,
    /// The table has hooks that its family does not have.
    #[error("the table has unknown hooks (mask {valid_hooks:#x})")]
    UnknownHooks {
        /// Bit mask of the table's hooks.
        valid_hooks: u32,
    },
    /// The table's size is more than one system call can read.
    #[error("the table is too large to be read ({size} bytes)")]
    TooLarge {
        /// Size of the entries in bytes.
        size: u32,
    },
    /// The entries have another size than `GET_INFO` said.
    #[error("the table has {found} bytes of entries, not {expected}")]
    Size {
        /// Bytes that there should be.
        expected: u32,
        /// Bytes there are.
        found: usize,
    },
    /// There are more or fewer entries than `GET_INFO` said.
    #[error("the table has {found} entries, not {expected}")]
    EntryCount {
        /// Entries that there should be.
        expected: u32,
        /// Entries there are.
        found: u32,
    },
    /// Too few bytes are left for an entry.
    #[error("an entry needs at least {needed} bytes, {left} are left")]
    Truncated {
        /// Size of the smallest entry.
        needed: usize,
        /// Bytes left in the table.
        left: usize,
    },
    /// The entry's target lies before the end of the entry's head, or too late for a target.
    #[error("the entry's target is at {target_offset} of {next_offset} bytes")]
    TargetOffset {
        /// Bytes from the entry to its target.
        target_offset: u16,
        /// Bytes from the entry to the next one.
        next_offset: u16,
    },
    /// The entry is longer than the rest of the table.
    #[error("the entry has {next_offset} bytes, {left} are left")]
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
    #[error("a match or target of {size} bytes in {room}")]
    ExtensionSize {
        /// The size that it gives itself.
        size: u16,
        /// Bytes from its start to the end of the entry (a match: to the target).
        room: usize,
    },
    /// An entry before the first chain.
    #[error("an entry that is in no chain")]
    OutsideChains,
    /// No entry, or a user-defined chain's head, starts where a built-in chain should.
    #[error("the built-in chain {hook} does not start at an entry of its own")]
    HookEntry {
        /// The hook of the chain.
        hook: Hook,
    },
    /// A built-in chain's last entry is not the one that `GET_INFO` gives as its policy.
    #[error("the built-in chain {hook} ends here and not with its policy at {underflow}")]
    Underflow {
        /// The hook of the chain.
        hook: Hook,
        /// Where the policy should be.
        underflow: u32,
    },
    /// A built-in chain's last entry does not accept or drop every packet.
    #[error("the last entry of the built-in chain {hook} is not a policy")]
    Policy {
        /// The hook of the chain.
        hook: Hook,
    },
    /// The last entry is not the one with an `ERROR` target that ends every table.
    #[error("the table does not end with an ERROR entry")]
    NoEnd,
    /// A rule jumps to an offset at which no chain's first rule is.
    #[error("a jump to {to}, where no chain starts")]
    Jump {
        /// The offset that the rule jumps to.
        to: u32,
    },
}
