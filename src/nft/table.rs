//! Tables: the containers of chains, sets and objects.

use chainwright_sys::nf_tables::{
    NFT_MSG_DELTABLE, NFT_MSG_DESTROYTABLE, NFT_MSG_GETTABLE, NFT_MSG_NEWTABLE,
    NFT_TABLE_F_DORMANT, NFT_TABLE_F_OWNER, NFT_TABLE_F_PERSIST, NFTA_TABLE_FLAGS,
    NFTA_TABLE_HANDLE, NFTA_TABLE_NAME, NFTA_TABLE_OWNER, NFTA_TABLE_USE, NFTA_TABLE_USERDATA,
};

use super::Family;
use super::declare::{flags, object};
use super::name::{Bytes, Name};
use super::object::{Messages, Object, listed};
use crate::netlink::MessageWriter;

flags! {
    /// Flags of a table.
    pub struct TableFlags: u32 {
        /// The table's chains see no packets.
        const DORMANT = NFT_TABLE_F_DORMANT,
        /// The table belongs to the socket that made it and goes with it.
        const OWNER = NFT_TABLE_F_OWNER,
        /// An owned table stays when its owner goes (Linux 6.9).
        const PERSIST = NFT_TABLE_F_PERSIST,
    }
}

object! {
    /// A table, to be written: `enum nft_table_attributes`.
    pub struct Table viewed as TableRef, "a table" {
        /// Name of the table.
        NFTA_TABLE_NAME => name: required Name<'a>,
        /// Handle, given by the kernel.
        NFTA_TABLE_HANDLE => handle: required u64,
        /// Flags.
        NFTA_TABLE_FLAGS => flags: optional TableFlags,
        /// Number of chains in the table, given by the kernel.
        NFTA_TABLE_USE => references: optional u32,
        /// Data that user space keeps with the table, opaque to the kernel.
        NFTA_TABLE_USERDATA => userdata: optional Bytes<'a>,
        /// Netlink port of the owner, given by the kernel.
        NFTA_TABLE_OWNER => owner: optional u32,
    }
}

impl<'a> Table<'a> {
    /// A table of this name.
    pub fn new(family: Family, name: impl Into<Name<'a>>) -> Self {
        Self {
            family,
            name: Some(name.into()),
            ..Self::default()
        }
    }
}

impl Object for Table<'_> {
    const MESSAGES: Messages = Messages {
        kind: "table",
        new: NFT_MSG_NEWTABLE,
        get: NFT_MSG_GETTABLE,
        delete: NFT_MSG_DELTABLE,
        destroy: NFT_MSG_DESTROYTABLE,
        ordered: false,
    };

    fn family(&self) -> Family {
        self.family
    }

    fn write(&self, writer: &mut MessageWriter<'_>) {
        self.write_attributes(writer);
    }

    fn write_identity(&self, writer: &mut MessageWriter<'_>) {
        let identity = Table {
            // Without either it would stand for all tables: an empty name stands for none.
            name: match (&self.name, self.handle) {
                (None, None) => Some(Name::default()),
                (name, _) => name.as_ref().map(Name::from),
            },
            handle: self.handle,
            ..Table::default()
        };
        identity.write_attributes(writer);
    }
}

listed!(Table as TableRef, "list tables");
