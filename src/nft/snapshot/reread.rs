//! Repairs a read that concurrent changes interrupted: the touched objects are read again.
//!
//! Each object is read completely, unless it is touched at that moment: a chain or set is looked up by name, and a dump
//! of one chain's rules or one set's elements contains nothing else. Therefore only objects touched meanwhile can be
//! wrong, and objects that a shifted dump skipped can be missing. Notifications identify the former, which are read
//! again until none is touched during a read; the kernel's use counts reveal the latter. The result has the generation
//! after which nothing was touched.

use std::collections::BTreeSet;

use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETSET, NFT_MSG_GETTABLE, NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE,
    NFTA_SET_NAME, NFTA_SET_TABLE, NFTA_TABLE_NAME,
};

use super::index::{chain_at, set_at, table_at};
use super::read::{Reader, ReplySocket};
use crate::arena::Position;
use crate::netlink::{Error, Malformed, Message, MessageWriter};
use crate::nft::Family;
use crate::nft::change_detector::{MemberKey, TouchedObjects, Watch};
use crate::nft::generation::Generation;
use crate::nft::scope::Scope;

/// Maximum number of times that touched objects are read again. If writers change these tables without a pause, it
/// takes some hundred rounds until they leave a gap. All rounds are one attempt of [`Retry`](crate::Retry): after them
/// everything is read again.
const MAX_ROUNDS: usize = 512;
/// Number of times that an unchanged mismatch of counts is checked before it counts as an error.
const MAX_MISMATCH_CHECKS: usize = 16;

impl Reader<'_> {
    /// Reads the touched objects again until nothing changes; returns the consistent generation, if there is one.
    pub(super) fn repair(
        &mut self,
        watch: &mut Watch,
        scope: &Scope<'_>,
        mut touched: TouchedObjects,
        mut reached: Generation,
    ) -> Result<Option<Generation>, Error> {
        touched.chains.append(&mut self.inconsistent_chains()?);
        let mut mismatches = 0;
        for _ in 0..MAX_ROUNDS {
            if touched.others {
                return Ok(None);
            }
            self.consistent = true;
            for key in &touched.chains {
                if !self.reread_chain(key)? {
                    return Ok(None);
                }
            }
            for key in touched.sets.keys() {
                if !self.reread_set(key)? {
                    return Ok(None);
                }
            }
            self.reread_tables()?;
            let now = self.connection.stable_generation()?;
            let more = match now == reached {
                true => TouchedObjects::default(),
                false => match watch.touches(std::slice::from_ref(scope), now) {
                    Ok(more) => more,
                    Err(_) => return Ok(None),
                },
            };
            reached = now;
            let is_still = more.is_empty();
            let before = std::mem::replace(&mut touched, more);
            if !is_still {
                continue;
            }
            // The counts include uncommitted transactions of other processes.
            if !self.consistent || !self.is_whole()? {
                mismatches += 1;
                match mismatches < MAX_MISMATCH_CHECKS {
                    true => continue,
                    false => return Ok(None),
                }
            }
            let inconsistent_chains = self.inconsistent_chains()?;
            // A mismatch is accepted when a second read confirms it.
            if inconsistent_chains.is_subset(&before.chains) {
                return Ok(Some(now));
            }
            touched.chains = inconsistent_chains;
        }
        Ok(None)
    }

    /// Returns the chains with missing or surplus rules.
    fn inconsistent_chains(&self) -> Result<BTreeSet<MemberKey>, Error> {
        let mut inconsistent_chains = BTreeSet::new();
        for table in 0..self.snapshot.index.tables.len() {
            let at = self.snapshot.index.tables[table].at;
            let of = table_at(&self.snapshot.arena, at)?;
            let (family, name) = (of.family(), of.name().to_owned());
            for (number, _) in self.incomplete(table)? {
                let chain = self.snapshot.index.tables[table].chains[number].at;
                let chain = chain_at(&self.snapshot.arena, chain)?.name().to_owned();
                inconsistent_chains.insert((family, name.clone(), chain));
            }
            for chain in &self.snapshot.index.tables[table].chains {
                if chain.broken {
                    let chain = chain_at(&self.snapshot.arena, chain.at)?.name().to_owned();
                    inconsistent_chains.insert((family, name.clone(), chain));
                }
            }
        }
        Ok(inconsistent_chains)
    }

    /// Returns whether every table has as many objects as its use count, without duplicates.
    fn is_whole(&self) -> Result<bool, Malformed> {
        let snapshot = &self.snapshot;
        for table in &snapshot.index.tables {
            let mut handle = 0;
            for chain in &table.chains {
                let chain = chain_at(&snapshot.arena, chain.at)?;
                if chain.handle() <= handle {
                    return Ok(false);
                }
                handle = chain.handle();
            }
        }
        snapshot.index.adds_up(&snapshot.arena, snapshot.elements)
    }

    /// Looks up an object and stores it in the snapshot. Its absence needs no confirmation: a concurrent commit is
    /// reported by an event.
    pub(super) fn look_up(
        &mut self,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<Option<Position>, Error> {
        let found = self
            .connection
            .request_once(request, message, family, content)?;
        let Some((start, end)) = found else {
            return Ok(None);
        };
        let message = Message::first(&self.connection.session.buffer[start..end])?;
        Ok(Some(self.snapshot.keep(&message)?))
    }

    /// Looks up a chain and lists its rules; `false` if it has been renamed, which affects rules of other chains.
    pub(super) fn reread_chain(
        &mut self,
        (family, table, name): &MemberKey,
    ) -> Result<bool, Error> {
        let (index, arena) = (&self.snapshot.index, &self.snapshot.arena);
        let Some(number) = index.table(arena, *family, table.as_ref()) else {
            return Ok(false);
        };
        let looked_up = self.look_up("look up a chain", NFT_MSG_GETCHAIN, *family, |writer| {
            writer
                .string(NFTA_CHAIN_TABLE, table)
                .string(NFTA_CHAIN_NAME, name);
        })?;
        let snapshot = &mut self.snapshot;
        let handle = match looked_up {
            Some(at) => Some(chain_at(&snapshot.arena, at)?.handle()),
            None => None,
        };
        // A chain that was deleted and created again during the dump may appear twice.
        let mut known = None;
        while let Some(chain) = snapshot.index.chain(&snapshot.arena, number, name.as_ref()) {
            snapshot.drop_rules(number, chain);
            snapshot
                .index
                .forget_rules(&snapshot.arena, number, chain)?;
            let at = snapshot.index.tables[number].chains[chain].at;
            if Some(chain_at(&snapshot.arena, at)?.handle()) == handle {
                known = Some(chain);
                break;
            }
            // It may have been renamed: the name index then recognizes the handle.
            let handle = chain_at(&snapshot.arena, at)?.handle();
            snapshot.index.is_new(&snapshot.arena, number, handle)?;
            let gone = snapshot
                .index
                .remove_chain(&snapshot.arena, number, chain)?;
            snapshot.drop_chain(&gone);
        }
        let (Some(at), Some(handle)) = (looked_up, handle) else {
            return Ok(true);
        };
        match known {
            Some(known) => {
                let index = &mut snapshot.index.tables[number].chains[known];
                let old = std::mem::replace(&mut index.at, at);
                index.broken = false;
                snapshot.drop_message(old);
            }
            None => {
                let (index, arena) = (&mut snapshot.index, &snapshot.arena);
                let has_other_name = !index.is_new(arena, number, handle)?
                    && index
                        .chain_of_handle(arena, number, name.as_ref(), handle)?
                        .is_some();
                if has_other_name {
                    return Ok(false);
                }
                snapshot.index.insert(&snapshot.arena, at)?;
            }
        }
        match snapshot.index.chain(&snapshot.arena, number, name.as_ref()) {
            Some(chain) => self.rules_of(number, chain, Some(ReplySocket::Long))?,
            None => return Ok(false),
        }
        Ok(true)
    }

    /// Looks up a set and lists its elements; `false` if that is impossible.
    fn reread_set(&mut self, (family, table, name): &MemberKey) -> Result<bool, Error> {
        let (index, arena) = (&self.snapshot.index, &self.snapshot.arena);
        let Some(number) = index.table(arena, *family, table.as_ref()) else {
            return Ok(false);
        };
        let looked_up = self.look_up("look up a set", NFT_MSG_GETSET, *family, |writer| {
            writer
                .string(NFTA_SET_TABLE, table)
                .string(NFTA_SET_NAME, name);
        })?;
        let snapshot = &mut self.snapshot;
        let handle = match looked_up {
            Some(at) => Some(set_at(&snapshot.arena, at)?.handle()),
            None => None,
        };
        let mut known = None;
        while let Some(set) = snapshot.index.set(&snapshot.arena, number, name.as_ref()) {
            snapshot.drop_elements(number, set);
            snapshot
                .index
                .forget_elements(&snapshot.arena, number, set)?;
            let at = snapshot.index.tables[number].sets[set].at;
            if Some(set_at(&snapshot.arena, at)?.handle()) == handle {
                known = Some(set);
                break;
            }
            let gone = snapshot.index.remove_set(&snapshot.arena, number, set)?;
            snapshot.drop_set(&gone);
        }
        let Some(at) = looked_up else {
            return Ok(true);
        };
        match known {
            Some(set) => {
                let old = std::mem::replace(&mut snapshot.index.tables[number].sets[set].at, at);
                snapshot.drop_message(old);
            }
            None => _ = snapshot.index.insert(&snapshot.arena, at)?,
        }
        match snapshot.index.set(&snapshot.arena, number, name.as_ref()) {
            Some(set) => {
                self.whole_elements_of(number, set)?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Looks up every table to update its use count.
    fn reread_tables(&mut self) -> Result<(), Error> {
        for number in 0..self.snapshot.index.tables.len() {
            let at = self.snapshot.index.tables[number].at;
            let of = table_at(&self.snapshot.arena, at)?;
            let (family, name) = (of.family(), of.name().to_owned());
            let looked_up =
                self.look_up("look up a table", NFT_MSG_GETTABLE, family, |writer| {
                    writer.string(NFTA_TABLE_NAME, &name);
                })?;
            // An event reports that it was deleted.
            if let Some(new) = looked_up {
                self.snapshot.index.tables[number].at = new;
                self.snapshot.drop_message(at);
            }
        }
        Ok(())
    }
}
