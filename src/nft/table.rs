//! Tables: the containers of chains, sets and objects.

use chainwright_sys::nf_tables::{
    NFT_MSG_DELTABLE, NFT_MSG_DESTROYTABLE, NFT_MSG_GETTABLE, NFT_MSG_NEWTABLE,
    NFT_TABLE_F_DORMANT, NFT_TABLE_F_OWNER, NFT_TABLE_F_PERSIST, NFTA_TABLE_FLAGS,
    NFTA_TABLE_HANDLE, NFTA_TABLE_NAME, NFTA_TABLE_OWNER, NFTA_TABLE_PAD, NFTA_TABLE_USE,
    NFTA_TABLE_USERDATA,
};

use super::Family;
use super::declare::{flags, object};
use super::name::{Bytes, Name};
use super::object::{listed, written};
use super::userdata::commented;

flags! {
    /// Flags of a table.
    pub struct TableFlags: u32 {
        /// The table's chains process no packets.
        const DORMANT = NFT_TABLE_F_DORMANT,
        /// The table belongs to the socket that created it, and is deleted when that is closed.
        ///
        /// Others cannot change or delete the table or its contents (`EPERM`), and
        /// `nft flush ruleset` skips it: this protects it against flushes by others. The kernel sets
        /// the owner to the [`Connection`](crate::nft::Connection) that adds the table; keep that
        /// open.
        ///
        /// ```
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// # let sandbox = chainwright_testing::Sandbox::new()?;
        /// # sandbox.run(|| -> Result<(), chainwright::Error> {
        /// use chainwright::nft::{Connection, Family, Table, TableFlags, Transaction};
        ///
        /// let mut nft = Connection::open()?;
        /// let mut tx = Transaction::new();
        /// tx.add(&Table {
        ///     flags: Some(TableFlags::OWNER | TableFlags::PERSIST),
        ///     ..Table::new(Family::IP, "immune")
        /// })?;
        /// nft.commit(&tx)?;
        ///
        /// // Another program tries to delete it.
        /// let mut other = Connection::open()?;
        /// let mut delete = Transaction::new();
        /// delete.delete(&Table::new(Family::IP, "immune"))?;
        /// assert!(other.commit(&delete).is_err());
        /// // The owner can.
        /// nft.commit(&delete)?;
        /// # Ok(()) })??;
        /// # Ok(())
        /// # }
        /// ```
        const OWNER = NFT_TABLE_F_OWNER,
        /// An owned table remains after its owner is closed (Linux 6.9); set together with
        /// [`OWNER`](Self::OWNER) when the table is created.
        ///
        /// When the owner is closed, the kernel clears `OWNER`: any program can change or flush the
        /// table, until a connection takes it over with its contents, by adding it again with both
        /// flags. So a restarted service loses nothing, but its table is unprotected while it is
        /// down.
        ///
        /// ```
        /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// # let sandbox = chainwright_testing::Sandbox::new()?;
        /// # sandbox.run(|| -> Result<(), chainwright::Error> {
        /// use chainwright::nft::{Connection, Family, Table, TableFlags, Transaction};
        ///
        /// let mut add = Transaction::new();
        /// add.add(&Table {
        ///     flags: Some(TableFlags::OWNER | TableFlags::PERSIST),
        ///     ..Table::new(Family::IP, "immune")
        /// })?;
        /// let mut first = Connection::open()?;
        /// first.commit(&add)?;
        /// drop(first);
        ///
        /// let mut second = Connection::open()?;
        /// # while second.table(Family::IP, "immune")?.unwrap().owner().is_some() {}
        /// second.commit(&add)?; // the table is there still; now it is this connection's
        /// let table = second.table(Family::IP, "immune")?;
        /// assert!(table.is_some_and(|table| table.owner().is_some()));
        /// # Ok(()) })??;
        /// # Ok(())
        /// # }
        /// ```
        const PERSIST = NFT_TABLE_F_PERSIST,
    }
}

object! {
    /// A table to be sent to the kernel: `enum nft_table_attributes`.
    pub struct Table viewed as TableRef, "a table" {
        /// Name of the table.
        NFTA_TABLE_NAME => name: Name<'a> [required, table],
        /// Handle, assigned by the kernel.
        NFTA_TABLE_HANDLE => handle: u64 [required, handle],
        /// Flags.
        NFTA_TABLE_FLAGS => flags: TableFlags,
        /// Number of chains in the table, set by the kernel.
        NFTA_TABLE_USE => references: u32 [kernel_set],
        /// Data stored by user space, opaque to the kernel.
        NFTA_TABLE_USERDATA => userdata: Bytes<'a> [userdata],
        /// Netlink port of the owner, set by the kernel.
        NFTA_TABLE_OWNER => owner: u32 [kernel_set],
        _ => NFTA_TABLE_PAD,
    }
}

commented!(Table as TableRef, TABLE_COMMENT);

impl<'a> Table<'a> {
    /// Creates a table with this name.
    pub fn new(family: Family, name: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            name: Some(name.into()),
            ..Self::empty()
        }
    }
}

written!(
    Table,
    "table",
    [NFT_MSG_NEWTABLE, NFT_MSG_GETTABLE, NFT_MSG_DELTABLE, NFT_MSG_DESTROYTABLE],
    identity: |this, writer| {
        if this.name.is_none() && this.handle.is_none() {
            // Without either, the message would mean all tables; an empty name matches none.
            writer.string(NFTA_TABLE_NAME, b"");
        }
    }
);

listed!(Table as TableRef by Scope, "list tables");
