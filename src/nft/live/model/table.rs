//! Operations on tables.

use std::sync::Arc;

use chainwright_sys::netlink::{NLM_F_EXCL, NLM_F_NONREC, NLM_F_REPLACE};
use chainwright_sys::nf_tables::{
    NFT_CHAIN_BINDING, NFT_MSG_DESTROYTABLE, NFT_TABLE_F_OWNER, NFT_TABLE_F_PERSIST,
    NFTA_TABLE_FLAGS, NFTA_TABLE_HANDLE, NFTA_TABLE_NAME, NFTA_TABLE_USERDATA,
};

use super::draft::{Draft, Operation, Step};
use super::listed::TABLE_FLAGS;
use super::state::Table;
use super::wire::{Given, NAME, Policy, Refusal, U32, U64, refuse};
use crate::nft::Family;

const ATTRIBUTES: &[(u16, Policy)] = &[
    (NFTA_TABLE_NAME, NAME),
    (NFTA_TABLE_FLAGS, U32),
    (NFTA_TABLE_HANDLE, U64),
    (NFTA_TABLE_USERDATA, Policy::Binary(256)),
];

/// The families that have tables.
const FAMILIES: [Family; 6] = [
    Family::IP,
    Family::IP6,
    Family::INET,
    Family::ARP,
    Family::BRIDGE,
    Family::NETDEV,
];

impl Draft {
    pub(super) fn new_table(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        if !FAMILIES.contains(&Family(operation.family)) {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let given = Given::read(operation.attributes, ATTRIBUTES)?;
        given.needs(NFTA_TABLE_NAME)?;
        let name = given.text(NFTA_TABLE_NAME).unwrap_or_default();
        let flags = given.u32(NFTA_TABLE_FLAGS);
        match self
            .state
            .table_named(operation.family, name, Some(self.port))
        {
            Ok(number) => {
                if operation.has(NLM_F_EXCL) {
                    return Err(refuse(libc::EEXIST).at(NFTA_TABLE_NAME));
                }
                if operation.has(NLM_F_REPLACE) {
                    return Err(refuse(libc::EOPNOTSUPP));
                }
                return self.update_table(operation, number, flags);
            }
            Err(refusal) if refusal.is(libc::ENOENT) => {}
            Err(refusal) => return Err(refusal.at(NFTA_TABLE_NAME)),
        }
        let flags = flags.unwrap_or(0);
        if flags & !TABLE_FLAGS != 0 {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        self.state.handles += 1;
        let handle = self.state.handles;
        let is_owned = flags & NFT_TABLE_F_OWNER != 0;
        self.state.tables.push(Arc::new(Table {
            family: operation.family,
            name: name.to_owned(),
            handle,
            flags,
            owner: is_owned.then_some(self.port),
            userdata: given.get(NFTA_TABLE_USERDATA).map(<[u8]>::to_vec),
            handles: 0,
            is_dead: false,
            has_renamed_chains: false,
            chains: Vec::new(),
            sets: Vec::new(),
            objects: Vec::new(),
            flowtables: Vec::new(),
        }));
        self.note(Step::Table { table: handle }, operation);
        Ok(())
    }

    fn update_table(
        &mut self,
        operation: &Operation<'_>,
        number: usize,
        flags: Option<u32>,
    ) -> Result<(), Refusal> {
        let Some(flags) = flags else { return Ok(()) };
        if flags & !TABLE_FLAGS != 0 {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let port = self.port;
        let has_pending_chains = self.has_pending_chains(number);
        let table = Arc::make_mut(&mut self.state.tables[number]);
        if flags == table.flags & TABLE_FLAGS {
            return Ok(());
        }
        let claims = flags & NFT_TABLE_F_OWNER != 0;
        let is_orphan = table.owner.is_none() && table.flags & NFT_TABLE_F_PERSIST != 0;
        if (table.owner.is_some() && !claims)
            || (claims && table.owner.is_none() && !is_orphan)
            || (flags ^ table.flags) & NFT_TABLE_F_PERSIST != 0
        {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        if has_pending_chains || !self.updated_tables.insert(table.handle) {
            return Err(refuse(libc::EINVAL));
        }
        if claims {
            table.owner = Some(port);
        }
        table.flags = flags;
        let step = Step::Table {
            table: table.handle,
        };
        self.note(step, operation);
        Ok(())
    }

    pub(super) fn delete_table(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = Given::read(operation.attributes, ATTRIBUTES)?;
        let (name, handle) = (given.text(NFTA_TABLE_NAME), given.u64(NFTA_TABLE_HANDLE));
        if operation.family == 0 || (name.is_none() && handle.is_none()) {
            for number in 0..self.state.tables.len() {
                let table = &self.state.tables[number];
                let is_meant = !table.is_dead
                    && (operation.family == 0 || table.family == operation.family)
                    && table.owner.is_none_or(|owner| owner == self.port)
                    && name.is_none_or(|name| table.name == name);
                if is_meant {
                    self.flush_and_delete_table(operation, number);
                }
            }
            return Ok(());
        }
        let port = Some(self.port);
        let found = match handle {
            Some(handle) => (self.state.table_of(operation.family, handle, port))
                .map_err(|refusal| refusal.at(NFTA_TABLE_HANDLE)),
            None => self
                .state
                .table_named(operation.family, name.unwrap_or_default(), port)
                .map_err(|refusal| refusal.at(NFTA_TABLE_NAME)),
        };
        let number = match found {
            Err(refusal)
                if refusal.is(libc::ENOENT) && operation.message == NFT_MSG_DESTROYTABLE =>
            {
                return Ok(());
            }
            found => found?,
        };
        if operation.has(NLM_F_NONREC) && self.state.tables[number].uses() > 0 {
            return Err(refuse(libc::EBUSY));
        }
        self.flush_and_delete_table(operation, number);
        Ok(())
    }

    fn flush_and_delete_table(&mut self, operation: &Operation<'_>, number: usize) {
        let table = Arc::clone(&self.state.tables[number]);
        let is_bound = |flags: u32| flags & NFT_CHAIN_BINDING != 0;
        for (at, chain) in table.chains.iter().enumerate() {
            if !chain.is_dead && !is_bound(chain.flags) {
                self.delete_all_rules(operation, number, at);
            }
        }
        for (at, _) in table.flowtables.iter().enumerate() {
            if !self.state.tables[number].flowtables[at].is_dead {
                self.remove_flowtable(operation, number, at);
            }
        }
        for (at, set) in table.sets.iter().enumerate() {
            if !set.is_anonymous() && !self.state.tables[number].sets[at].is_dead {
                self.remove_set(operation, number, at);
            }
        }
        for (at, _) in table.objects.iter().enumerate() {
            if !self.state.tables[number].objects[at].is_dead {
                self.remove_object(operation, number, at);
            }
        }
        for (at, chain) in table.chains.iter().enumerate() {
            if !is_bound(chain.flags) && !self.state.tables[number].chains[at].is_dead {
                self.remove_chain(operation, number, at);
            }
        }
        let table = Arc::make_mut(&mut self.state.tables[number]);
        table.is_dead = true;
        let step = Step::TableGone {
            table: table.handle,
        };
        self.note(step, operation);
    }
}
