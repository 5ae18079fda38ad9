//! Operations on tables.

use std::sync::Arc;

use chainwright_sys::netlink::NLM_F_NONREC;
use chainwright_sys::nf_tables::{
    NFT_TABLE_F_OWNER, NFT_TABLE_F_PERSIST, NFTA_TABLE_FLAGS, NFTA_TABLE_HANDLE, NFTA_TABLE_NAME,
    NFTA_TABLE_USERDATA,
};

use super::events::Step;
use super::listed::TABLE_FLAGS;
use super::members::{Kind, Members};
use super::state::{Chain, Flowtable, StatefulObject, Table};
use super::tx_state::{Operation, TxState};
use super::wire::{NAME, ParsedAttributes, Policy, Refusal, U32, U64, refuse};
use chainwright::nft::Family;

const ATTRIBUTES: &[(u16, Policy)] = &[
    (NFTA_TABLE_NAME, NAME),
    (NFTA_TABLE_FLAGS, U32),
    (NFTA_TABLE_HANDLE, U64),
    (NFTA_TABLE_USERDATA, Policy::Binary(256)),
];

impl TxState {
    pub(super) fn new_table(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        if !Family::WITH_TABLES.contains(&Family(operation.family)) {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
        given.needs(NFTA_TABLE_NAME)?;
        let name = given.text(NFTA_TABLE_NAME).unwrap_or_default();
        let flags = given.u32(NFTA_TABLE_FLAGS);
        match self
            .state
            .table_named(operation.family, name, Some(self.port))
        {
            Ok(number) => {
                operation.check_existing(NFTA_TABLE_NAME)?;
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
            chains: Members::default(),
            sets: Members::default(),
            objects: Members::default(),
            flowtables: Members::default(),
        }));
        self.note(operation, self.state.tables.len() - 1, Step::Table);
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
        self.note(operation, number, Step::Table);
        Ok(())
    }

    pub(super) fn delete_table(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
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
        let (found_by, found) = match handle {
            Some(handle) => {
                let found = self.state.table_of(operation.family, handle, port);
                (NFTA_TABLE_HANDLE, found)
            }
            None => {
                let name = name.unwrap_or_default();
                let found = self.state.table_named(operation.family, name, port);
                (NFTA_TABLE_NAME, found)
            }
        };
        let Some(number) = operation.to_delete(found, found_by)? else {
            return Ok(());
        };
        if operation.has(NLM_F_NONREC) && self.state.tables[number].uses() > 0 {
            return Err(refuse(libc::EBUSY));
        }
        self.flush_and_delete_table(operation, number);
        Ok(())
    }

    fn flush_and_delete_table(&mut self, operation: &Operation<'_>, number: usize) {
        let table = Arc::clone(&self.state.tables[number]);
        for (at, chain) in table.chains.iter().enumerate() {
            if !chain.is_dead() && !chain.is_binding() {
                self.delete_all_rules(operation, number, at);
            }
        }
        self.remove_all::<Flowtable>(operation, number, |_| true);
        for (at, set) in table.sets.iter().enumerate() {
            if !set.is_anonymous() && !self.state.tables[number].sets[at].is_dead() {
                self.remove_set(operation, number, at);
            }
        }
        self.remove_all::<StatefulObject>(operation, number, |_| true);
        self.remove_all::<Chain>(operation, number, |chain| !chain.is_binding());
        self.table_mut(number).is_dead = true;
        self.note(operation, number, Step::TableGone);
    }

    /// Deletes all members of a kind that match.
    fn remove_all<K: Kind>(
        &mut self,
        operation: &Operation<'_>,
        number: usize,
        is_meant: impl Fn(&K) -> bool,
    ) {
        for at in 0..K::of(&self.state.tables[number]).len() {
            let member = &K::of(&self.state.tables[number])[at];
            if !member.is_dead() && is_meant(member) {
                self.remove::<K>(operation, number, at);
            }
        }
    }
}
