//! Read access without side effects: it creates no table and loads no module.

use super::{Backend, Error, Family, Iptables, builtins};
use crate::legacy::{self, Access, Status};
use crate::netlink;
use crate::nft::{self, Connection, List, Scope};

impl Iptables {
    /// Like [`open`](Self::open), for callers that only read: if nf_tables is not loaded, there is nothing to
    /// read, and it stays unloaded. (A request would load it. Reading never loads legacy tables.)
    ///
    /// # Errors
    /// [`NotLoaded`](netlink::Error::NotLoaded) in [`Error::Nft`]; the errors of [`open`](Self::open).
    pub fn open_if_loaded(backend: Backend) -> Result<Self, Error> {
        if backend == Backend::Nft && !nft::is_loaded() {
            return Err(netlink::Error::NotLoaded.into());
        }
        Self::open(backend)
    }
}

/// Returns the names of iptables' tables in a backend, in the calling thread's network namespace.
/// Packets traverse the tables of both backends. The list is empty if the kernel lacks the backend.
///
/// # Errors
/// Errors of listing tables; [`legacy::Error::NoPermission`].
pub fn tables_in_use(backend: Backend, family: Family) -> Result<Vec<String>, Error> {
    match backend {
        Backend::Nft => {
            let mut nft = match Connection::open_if_loaded() {
                Err(netlink::Error::NotLoaded) => return Ok(Vec::new()),
                opened => opened?,
            };
            in_nft(&mut nft, family)
        }
        Backend::Legacy => {
            let family = family.into();
            match legacy::status(family)? {
                Status::InUse(tables) => Ok(tables.iter().map(ToString::to_string).collect()),
                Status::NoPermission(access) => Err(no_permission(family, access)),
                Status::NotInUse | Status::NotBuilt => Ok(Vec::new()),
            }
        }
    }
}

/// Returns the names of the tables that iptables-nft knows.
pub(super) fn in_nft(nft: &mut Connection, family: Family) -> Result<Vec<String>, Error> {
    let mut tables = List::<nft::Table<'_>>::new(Scope::family(family.into()));
    tables.refresh(nft)?;
    let names = tables.iter().map(|table| table.name().to_string());
    Ok(names.filter(|name| builtins(name).is_some()).collect())
}

fn no_permission(family: legacy::Family, access: Access) -> Error {
    legacy::Error::NoPermission { family, access }.into()
}
