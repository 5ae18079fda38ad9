//! Where tables are read from: a network namespace's tables of one family.
//!
//! They are written in `replace.rs`.

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
use crate::retry::retrying;

/// No more than this many bytes of table names are read.
const LONGEST_NAMES: usize = 1 << 16;

/// A way to the legacy tables of one family in one network namespace.
///
/// It belongs to the network namespace that its thread was in when it was opened, whatever the
/// thread enters later, and keeps that namespace alive. It can be shared between threads.
#[derive(Debug)]
pub struct Connection {
    family: Family,
    socket: Socket,
    /// Opened together with the socket, so that both are of the same namespace; `None` if it is
    /// not readable.
    names: Option<File>,
    retry: Retry,
}

retrying! {
    /// It is for a table that somebody replaces while it is read.
    Connection, retry
}

/// A table that was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a table that is not in use is not an error"]
pub enum Lookup<T> {
    /// It is in use; here it is.
    InUse(T),
    /// Nobody uses that table in this network namespace: it has not been created there.
    NotInUse,
}

impl<T> Lookup<T> {
    /// What was found, if it is in use.
    #[must_use]
    pub fn in_use(self) -> Option<T> {
        match self {
            Self::InUse(found) => Some(found),
            Self::NotInUse => None,
        }
    }

    /// Whether the table is in use.
    #[must_use]
    pub const fn is_in_use(&self) -> bool {
        matches!(self, Self::InUse(_))
    }
}

/// What there is of a family's legacy tables in a network namespace ([`status`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Status {
    /// This kernel has none: not built in, or the module is not loaded.
    NotBuilt,
    /// The caller may not look.
    NoPermission(Access),
    /// The kernel has them, but no table is in use.
    NotInUse,
    /// These tables are in use.
    InUse(Vec<TableName>),
}

/// What there is of a family's legacy tables in the calling thread's network namespace. Creates no
/// table and loads no module.
///
/// # Errors
/// [`Error::NoProc`], or [`Error::System`] if a system call fails in a way that has no meaning here.
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
    /// - [`Error::NarrowBuild`] in a program of 32 bits;
    /// - [`Error::NotBuilt`] if the kernel does not have them;
    /// - [`Error::NoPermission`] with [`Access::Tables`] without `CAP_NET_ADMIN` over the network
    ///   namespace;
    /// - [`Error::NoProc`] if `/proc` is not mounted;
    /// - [`Error::System`] if a system call fails in another way.
    ///
    /// A file of names that is not readable is no error yet: [`instantiate`](Self::instantiate)
    /// works without it. Reading then fails with [`Access::TableNames`].
    pub fn open(family: Family) -> Result<Self, Error> {
        if cfg!(target_pointer_width = "32") {
            return Err(Error::NarrowBuild { family });
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

    /// The family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    pub(super) const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The names of the tables in use in the network namespace; empty if there is none.
    ///
    /// # Errors
    /// [`Error::NoPermission`] if the file with the names is not readable; [`Error::System`].
    pub fn tables(&self) -> Result<Vec<TableName>, Error> {
        let mut names = Vec::new();
        self.for_each_name(|name| names.extend(TableName::try_new(name)))?;
        Ok(names)
    }

    /// Whether the table is in use in the network namespace.
    ///
    /// # Errors
    /// As [`tables`](Self::tables), and [`Error::TableName`].
    pub fn is_in_use(&self, table: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.lists(TableName::new(table)?)
    }

    /// The table's sizes and offsets, without its entries. A few microseconds, whatever its size.
    ///
    /// # Errors
    /// As [`read`](Self::read), except [`Error::Changing`].
    pub fn info(&self, table: impl AsRef<[u8]>) -> Result<Lookup<Info>, Error> {
        let name = TableName::new(table)?;
        if !self.lists(name)? {
            return Ok(Lookup::NotInUse);
        }
        in_use(self.get_info(name))
    }

    /// The table, if it is in use. Use [`read_into`](Self::read_into) to read again and again.
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

    /// Reads the table, if it is in use, into another one's memory: with a large table much of the
    /// time of a first read goes into touching fresh memory.
    ///
    /// What `buffer` held is lost, also if this fails or the table is not in use: it is empty then.
    ///
    /// # Errors
    /// - [`Error::NoPermission`];
    /// - [`Error::TableName`] if the name cannot be one;
    /// - [`Error::Changing`] if somebody replaced the table during each attempt ([`with_retry`](Self::with_retry));
    /// - [`Error::Malformed`] if the kernel's bytes cannot be understood;
    /// - [`Error::System`] if a system call fails in a way that has no meaning here.
    pub fn read_into<'t>(
        &self,
        table: impl AsRef<[u8]>,
        buffer: &'t mut Table,
    ) -> Result<Lookup<&'t Table>, Error> {
        let name = TableName::new(table)?;
        buffer.clear(self.family, name);
        if !self.lists(name)? {
            return Ok(Lookup::NotInUse);
        }
        in_use(self.fetch(name, buffer))
    }

    /// **Creates** the table in the network namespace, if it is not in use yet: the kernel
    /// registers its hooks, and every tool will find it in use. There is no way back, other than
    /// unloading the kernel's module or the end of the namespace.
    ///
    /// # Errors
    /// [`Error::TableName`], [`Error::NoSuchTable`], [`Error::NoPermission`] or [`Error::System`].
    pub fn instantiate(&self, table: impl AsRef<[u8]>) -> Result<Info, Error> {
        self.get_info(TableName::new(table)?)
    }

    /// Reads the table and **creates** it, if it is not in use yet
    /// (see [`instantiate`](Self::instantiate)).
    ///
    /// This does not need the file with the names, so that it also works where that is not
    /// readable ([`Access::TableNames`]).
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

    /// What is to be replaced as a whole: the table as if everything had been removed from it, with the
    /// policy `ACCEPT` everywhere, and how many entries the kernel's has
    /// ([`Replacement::in_place_of`](super::Replacement::in_place_of)). **Creates** the table as
    /// [`instantiate`](Self::instantiate) does. It takes one `GET_INFO`, whatever is in the table.
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

    /// The table as it would be when it is created, with built-in chains at these hooks (bit `1 << number`
    /// for each); `None` if it is in use, or if that cannot be seen. Creates nothing.
    pub(crate) fn not_in_use(
        &self,
        table: impl AsRef<[u8]>,
        valid_hooks: u32,
    ) -> Result<Option<Table>, Error> {
        let family = self.family;
        let table = TableName::new(table)?;
        match self.lists(table) {
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

    /// **Creates** the table as [`instantiate`](Self::instantiate) does. Whether it is then what
    /// [`not_in_use`](Self::not_in_use) said.
    pub(crate) fn instantiate_as(&self, blank: &Table) -> Result<bool, Error> {
        let mut table = Table::empty(self.family);
        self.fetch(*blank.name(), &mut table)?;
        let accepts = |chain: ChainRef<'_>| chain.policy() == Some(Policy::Accept);
        Ok(table.info() == blank.info() && table.chains().all(accepts))
    }

    /// Asks for something that every kernel with these tables has and that belongs to no table.
    fn probe(&self) -> Result<(), Error> {
        let mut question = xt_get_revision {
            name: [0; XT_EXTENSION_MAXNAMELEN],
            revision: 0,
        };
        question.name[..XT_STANDARD_TARGET.len()].copy_from_slice(XT_STANDARD_TARGET.as_bytes());
        self.socket
            .get(
                self.family.layout().get_revision_target,
                question.as_mut_bytes(),
            )
            .map_err(|errno| failed(self.family, Operation::Probe, errno))
    }

    /// Whether the file with the names has this one.
    fn lists(&self, table: TableName) -> Result<bool, Error> {
        let mut found = false;
        self.for_each_name(|name| found |= name == table.as_bstr())?;
        Ok(found)
    }

    /// Reads the file with the names from its start.
    fn for_each_name(&self, each: impl FnMut(&[u8])) -> Result<(), Error> {
        let family = self.family;
        let Some(file) = &self.names else {
            return Err(Error::NoPermission {
                family,
                access: Access::TableNames,
            });
        };
        // Always from the start and in one read, which the kernel answers under its lock: the rest of
        // a list that has grown at its front meanwhile would be nonsense. All tables that the kernel
        // knows take less than this.
        let mut text = vec![0; 512];
        let length = loop {
            match file.read_at(&mut text, 0) {
                Ok(length) if length < text.len() || length >= LONGEST_NAMES => break length,
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

    /// `GET_INFO`, which creates the table if it is not there.
    fn get_info(&self, table: TableName) -> Result<Info, Error> {
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

    /// The bare `GET_INFO` and `GET_ENTRIES`, with nothing looked at: what reading a table is
    /// measured against. Returns the length of the entries in bytes. `buffer` is not to be read
    /// afterwards. Like any `GET_INFO`, it creates the table if it is not there.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[doc(hidden)]
    pub fn floor(&self, table: impl AsRef<[u8]>, buffer: &mut Table) -> Result<usize, Error> {
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

    /// `GET_INFO` and `GET_ENTRIES` until both are about the same table.
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
            // EAGAIN tells that the size has changed. But another table of the same size is not
            // noticed by the kernel, and its built-in chains may start elsewhere.
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
            // Not what was asked before the pause.
            info = self.get_info(table)?;
        }
    }
}

/// A table that vanished after its name was read (its module was unloaded) is not in use.
fn in_use<T>(result: Result<T, Error>) -> Result<Lookup<T>, Error> {
    match result {
        Ok(found) => Ok(Lookup::InUse(found)),
        Err(Error::NoSuchTable { .. }) => Ok(Lookup::NotInUse),
        Err(error) => Err(error),
    }
}

/// What a failed system call means.
pub(super) fn failed(family: Family, operation: Operation, errno: Errno) -> Error {
    match errno.number() {
        libc::EPERM | libc::EACCES => Error::NoPermission {
            family,
            access: Access::Tables,
        },
        // A kernel without the tables' socket options; one without IPv6.
        libc::ENOPROTOOPT | libc::EAFNOSUPPORT => Error::NotBuilt { family },
        _ => Error::System {
            family,
            operation,
            errno,
        },
    }
}
