//! Reads the tables of one family in a network namespace. `replace.rs` writes them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bstr::ByteSlice;
use chainwright_sys::netfilter::NF_INET_NUMHOOKS;
use chainwright_sys::x_tables::{XT_EXTENSION_MAXNAMELEN, XT_STANDARD_TARGET, xt_get_revision};
use zerocopy::IntoBytes;

use super::socket::Socket;
use super::{Access, ChainRef, Error, Family, Info, Operation, Policy, Table, TableName};
use crate::Retry;
use crate::errno::Errno;
use crate::retry::impl_retry;

/// Maximum number of bytes of table names to read.
const MAX_NAMES_LENGTH: usize = 1 << 16;

/// Access to the legacy tables of one family in one network namespace.
///
/// A connection belongs to the network namespace of the thread that opened it, even if that thread enters
/// another one later, and keeps the namespace alive. Threads can share it.
#[derive(Debug)]
pub struct Connection {
    family: Family,
    socket: Socket,
    /// Opened together with the socket, so that both belong to the same namespace; `None` if the file is
    /// not readable.
    names: Option<File>,
    retry: Retry,
}

impl_retry! {
    /// The policy applies when another process replaces the table during a read.
    Connection, retry
}

/// Result of a table lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a table that is not in use is not an error"]
pub enum Lookup<T> {
    /// The table is in use.
    InUse(T),
    /// The table is not in use: it was not created in this network namespace.
    NotInUse,
}

impl<T> Lookup<T> {
    /// Returns the table, if it is in use.
    #[must_use]
    pub fn in_use(self) -> Option<T> {
        match self {
            Self::InUse(found) => Some(found),
            Self::NotInUse => None,
        }
    }

    /// Returns `true` if the table is in use.
    #[must_use]
    pub const fn is_in_use(&self) -> bool {
        matches!(self, Self::InUse(_))
    }
}

/// State of a family's legacy tables in a network namespace ([`status`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Status {
    /// This kernel has no such tables: not built in, or the module is not loaded.
    NotBuilt,
    /// The caller lacks permission.
    NoPermission(Access),
    /// The kernel supports the tables, but none is in use.
    NotInUse,
    /// These tables are in use.
    InUse(Vec<TableName>),
}

/// Returns the state of a family's legacy tables in the calling thread's network namespace. Creates no
/// table and loads no module.
///
/// # Errors
/// [`Error::NoProc`], or [`Error::System`] if a system call fails with an unexpected error.
pub fn status(family: Family) -> Result<Status, Error> {
    match Connection::open(family).and_then(|connection| connection.tables()) {
        Ok(tables) if tables.is_empty() => Ok(Status::NotInUse),
        Ok(tables) => Ok(Status::InUse(tables)),
        Err(Error::NotBuilt { .. }) => Ok(Status::NotBuilt),
        Err(Error::NoPermission { access, .. }) => Ok(Status::NoPermission(access)),
        Err(error) => Err(error),
    }
}

impl Connection {
    /// Opens the family's tables in the calling thread's network namespace. Creates no table and
    /// loads no module.
    ///
    /// # Errors
    /// - [`Error::Unsupported32Bit`] in a 32-bit program;
    /// - [`Error::NotBuilt`] if the kernel does not support them;
    /// - [`Error::NoPermission`] with [`Access::Tables`] without `CAP_NET_ADMIN` over the network
    ///   namespace;
    /// - [`Error::NoProc`] if `/proc` is not mounted;
    /// - [`Error::System`] if a system call fails in another way.
    ///
    /// An unreadable file of table names is not an error here, because [`instantiate`](Self::instantiate)
    /// works without it. Reads then fail with [`Access::TableNames`].
    pub fn open(family: Family) -> Result<Self, Error> {
        if cfg!(target_pointer_width = "32") {
            return Err(Error::Unsupported32Bit { family });
        }
        let names = match File::open(family.names_file()) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(if Path::new("/proc/thread-self/net").exists() {
                    Error::NotBuilt { family }
                } else {
                    Error::NoProc
                });
            }
            Err(error) => {
                let errno = Errno::of(&error);
                return Err(Error::System {
                    family,
                    operation: Operation::OpenNames,
                    errno,
                });
            }
        };
        let socket =
            Socket::open(family).map_err(|errno| failed(family, Operation::OpenSocket, errno))?;
        let connection = Self {
            family,
            socket,
            names,
            retry: Retry::DEFAULT,
        };
        connection.probe()?;
        Ok(connection)
    }

    /// Returns the family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    pub(super) const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Lists the names of the tables in use in the network namespace.
    ///
    /// # Errors
    /// [`Error::NoPermission`] if the file with the table names is not readable; [`Error::System`].
    pub fn tables(&self) -> Result<Vec<TableName>, Error> {
        let mut names = Vec::new();
        self.for_each_name(|name| names.extend(TableName::try_new(name)))?;
        Ok(names)
    }

    /// Returns whether the table is in use in the network namespace.
    ///
    /// # Errors
    /// As [`tables`](Self::tables), and [`Error::TableName`].
    pub fn is_in_use(&self, table: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.is_listed(TableName::new(table)?)
    }

    /// Returns the table's sizes and offsets without its entries. Takes a few microseconds for a table of
    /// any size.
    ///
    /// # Errors
    /// As [`read`](Self::read), except [`Error::Changing`].
    pub fn info(&self, table: impl AsRef<[u8]>) -> Result<Lookup<Info>, Error> {
        let name = TableName::new(table)?;
        if !self.is_listed(name)? {
            return Ok(Lookup::NotInUse);
        }
        in_use(self.get_info(name))
    }

    /// Reads the table, if it is in use. Use [`read_into`](Self::read_into) for repeated reads.
    ///
    /// # Errors
    /// As [`read_into`](Self::read_into).
    pub fn read(&self, table: impl AsRef<[u8]>) -> Result<Lookup<Table>, Error> {
        let mut buffer = Table::empty(self.family);
        Ok(match self.read_into(table, &mut buffer)? {
            Lookup::InUse(_) => Lookup::InUse(buffer),
            Lookup::NotInUse => Lookup::NotInUse,
        })
    }

    /// Reads the table, if it is in use, into the memory of `buffer`. The first read of a large table
    /// spends much of its time on fresh memory; reusing a buffer avoids that.
    ///
    /// The previous content of `buffer` is lost. If the read fails or the table is not in use, `buffer` is
    /// empty afterwards.
    ///
    /// # Errors
    /// - [`Error::NoPermission`];
    /// - [`Error::TableName`] if the name is not a valid table name;
    /// - [`Error::Changing`] if another process replaced the table during each attempt
    ///   ([`with_retry`](Self::with_retry));
    /// - [`Error::Malformed`] if the kernel's bytes cannot be decoded;
    /// - [`Error::System`] if a system call fails with an unexpected error.
    pub fn read_into<'t>(
        &self,
        table: impl AsRef<[u8]>,
        buffer: &'t mut Table,
    ) -> Result<Lookup<&'t Table>, Error> {
        let name = TableName::new(table)?;
        buffer.clear(self.family, name);
        if !self.is_listed(name)? {
            return Ok(Lookup::NotInUse);
        }
        in_use(self.fetch(name, buffer))
    }

    /// **Creates** the table in the network namespace, if it is not in use yet: the kernel registers its
    /// hooks, and every tool then finds it in use. Only unloading the kernel module or the end of the
    /// namespace removes the table again.
    ///
    /// # Errors
    /// [`Error::TableName`], [`Error::NoSuchTable`], [`Error::NoPermission`] or [`Error::System`].
    pub fn instantiate(&self, table: impl AsRef<[u8]>) -> Result<Info, Error> {
        self.get_info(TableName::new(table)?)
    }

    /// Reads the table, and **creates** it if it is not in use yet (see
    /// [`instantiate`](Self::instantiate)).
    ///
    /// This does not need the file with the table names, so it works even if that file is not readable
    /// ([`Access::TableNames`]).
    ///
    /// # Errors
    /// As [`read_into`](Self::read_into) and [`instantiate`](Self::instantiate).
    pub fn instantiate_and_read_into<'t>(
        &self,
        table: impl AsRef<[u8]>,
        buffer: &'t mut Table,
    ) -> Result<&'t Table, Error> {
        let name = TableName::new(table)?;
        buffer.clear(self.family, name);
        self.fetch(name, buffer)
    }

    /// Returns an empty version of the table, to replace it as a whole: no rules, no user-defined chains,
    /// the policy `ACCEPT` everywhere. Also returns the number of entries of the kernel's table
    /// ([`Replacement::in_place_of`](super::Replacement::in_place_of)). **Creates** the table as
    /// [`instantiate`](Self::instantiate) does. Takes one `GET_INFO`, whatever the table contains.
    pub(crate) fn instantiate_blank(&self, table: impl AsRef<[u8]>) -> Result<(Table, u32), Error> {
        let family = self.family;
        let table = TableName::new(table)?;
        let info = self.get_info(table)?;
        let blank = Table::blank(&info).map_err(|problem| Error::Malformed {
            family,
            table,
            problem,
        })?;
        Ok((blank, info.num_entries()))
    }

    /// Returns the table as the kernel would create it, with built-in chains at these hooks
    /// (bit `1 << number` for each); `None` if the table is in use or if the names are not readable.
    /// Creates nothing.
    pub(crate) fn initial_table(
        &self,
        table: impl AsRef<[u8]>,
        valid_hooks: u32,
    ) -> Result<Option<Table>, Error> {
        let family = self.family;
        let table = TableName::new(table)?;
        match self.is_listed(table) {
            Ok(false) => {}
            Ok(true) | Err(Error::NoPermission { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        let none = [0; NF_INET_NUMHOOKS as usize];
        let blank = Info::new(family, table.padded(), valid_hooks, &none, &none, 0, 0)
            .and_then(|info| Table::blank(&info));
        blank.map(Some).map_err(|problem| Error::Malformed {
            family,
            table,
            problem,
        })
    }

    /// **Creates** the table as [`instantiate`](Self::instantiate) does. Returns whether it equals the
    /// table from [`initial_table`](Self::initial_table).
    pub(crate) fn instantiate_if_equal(&self, blank: &Table) -> Result<bool, Error> {
        let mut table = Table::empty(self.family);
        self.fetch(*blank.name(), &mut table)?;
        let accepts = |chain: ChainRef<'_>| chain.policy() == Some(Policy::Accept);
        Ok(table.info() == blank.info() && table.chains().all(accepts))
    }

    /// Requests the standard target, which every kernel with these tables has and which belongs to no
    /// table.
    fn probe(&self) -> Result<(), Error> {
        let mut request = xt_get_revision {
            name: [0; XT_EXTENSION_MAXNAMELEN],
            revision: 0,
        };
        request.name[..XT_STANDARD_TARGET.len()].copy_from_slice(XT_STANDARD_TARGET.as_bytes());
        self.socket
            .get(
                self.family.layout().get_revision_target,
                request.as_mut_bytes(),
            )
            .map_err(|errno| failed(self.family, Operation::Probe, errno))
    }

    /// Returns whether the file with the table names contains this table.
    fn is_listed(&self, table: TableName) -> Result<bool, Error> {
        let mut found = false;
        self.for_each_name(|name| found |= name == table.as_bstr())?;
        Ok(found)
    }

    /// Reads the file with the table names from its start.
    fn for_each_name(&self, each: impl FnMut(&[u8])) -> Result<(), Error> {
        let family = self.family;
        let Some(file) = &self.names else {
            return Err(Error::NoPermission {
                family,
                access: Access::TableNames,
            });
        };
        // Always from the start and in one read, which the kernel answers under its lock: after an entry
        // was added at the front, the rest of the list would be inconsistent. The names of all tables in
        // the kernel take less than this.
        let mut text = vec![0; 512];
        let length = loop {
            match file.read_at(&mut text, 0) {
                Ok(length) if length < text.len() || length >= MAX_NAMES_LENGTH => break length,
                Ok(_) => text.resize(text.len() * 2, 0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let errno = Errno::of(&error);
                    return Err(Error::System {
                        family,
                        operation: Operation::ReadNames,
                        errno,
                    });
                }
            }
        };
        text.truncate(length);
        text.lines().for_each(each);
        Ok(())
    }

    /// Sends `GET_INFO`, which creates the table if it does not exist.
    pub(super) fn get_info(&self, table: TableName) -> Result<Info, Error> {
        let family = self.family;
        let layout = family.layout();
        let mut buffer = [0; 128];
        let buffer = &mut buffer[..layout.getinfo];
        buffer[..table.padded().len()].copy_from_slice(table.padded());
        self.socket.get(layout.get_info, buffer).map_err(|errno| {
            if errno.number() == libc::ENOENT {
                Error::NoSuchTable { family, table }
            } else {
                failed(family, Operation::GetInfo, errno)
            }
        })?;
        Info::from_bytes(family, buffer).map_err(|problem| Error::Malformed {
            family,
            table,
            problem,
        })
    }

    /// Sends `GET_INFO` and `GET_ENTRIES` without checking anything: the baseline of the read benchmark.
    /// Returns the length of the entries in bytes. Do not read `buffer` afterwards. Like any `GET_INFO`,
    /// this creates the table if it does not exist.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[doc(hidden)]
    pub fn baseline(&self, table: impl AsRef<[u8]>, buffer: &mut Table) -> Result<usize, Error> {
        let family = self.family;
        let table = TableName::new(table)?;
        let info = self.get_info(table)?;
        buffer
            .receive(&info, |bytes| {
                self.socket.get(family.layout().get_entries, bytes)
            })
            .map_err(|problem| Error::Malformed {
                family,
                table,
                problem,
            })?
            .map_err(|errno| failed(family, Operation::GetEntries, errno))?;
        Ok(info.size() as usize)
    }

    /// Repeats `GET_INFO` and `GET_ENTRIES` until both describe the same table.
    fn fetch<'t>(&self, table: TableName, buffer: &'t mut Table) -> Result<&'t Table, Error> {
        let family = self.family;
        let span = tracing::debug_span!("legacy read", %family, %table);
        let _entered = span.enter();
        let mut info = self.get_info(table)?;
        let mut attempts = self.retry.begin();
        loop {
            let received = buffer
                .receive(&info, |bytes| {
                    self.socket.get(family.layout().get_entries, bytes)
                })
                .map_err(|problem| Error::Malformed {
                    family,
                    table,
                    problem,
                })?;
            if let Err(errno) = received
                && errno.number() != libc::EAGAIN
            {
                return Err(failed(family, Operation::GetEntries, errno));
            }
            // EAGAIN means that the size has changed. The kernel does not detect another table of the same
            // size, whose built-in chains may start elsewhere.
            if received.is_ok() && self.get_info(table)? == info {
                buffer.index(info).map_err(|problem| Error::Malformed {
                    family,
                    table,
                    problem,
                })?;
                tracing::debug!(
                    entries = info.num_entries(),
                    bytes = info.size(),
                    attempts = attempts.made(),
                    "read a legacy table"
                );
                return Ok(buffer);
            }
            if !attempts.again() {
                return Err(Error::Changing {
                    family,
                    table,
                    attempts: attempts.made(),
                });
            }
            // Do not reuse the information from before the pause.
            info = self.get_info(table)?;
        }
    }
}

/// Maps a table that vanished after its name was read (its module was unloaded) to "not in use".
fn in_use<T>(result: Result<T, Error>) -> Result<Lookup<T>, Error> {
    match result {
        Ok(found) => Ok(Lookup::InUse(found)),
        Err(Error::NoSuchTable { .. }) => Ok(Lookup::NotInUse),
        Err(error) => Err(error),
    }
}

/// Converts the error of a failed system call.
pub(super) fn failed(family: Family, operation: Operation, errno: Errno) -> Error {
    match errno.number() {
        libc::EPERM | libc::EACCES => Error::NoPermission {
            family,
            access: Access::Tables,
        },
        // A kernel without the socket options of the tables, or without IPv6.
        libc::ENOPROTOOPT | libc::EAFNOSUPPORT => Error::NotBuilt { family },
        _ => Error::System {
            family,
            operation,
            errno,
        },
    }
}
