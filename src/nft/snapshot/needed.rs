//! What a text needs to know of what is there: tables and sets, and of some sets the ranges, of some chains the handle or the
//! rules. What else there is, however much, is not read.

use std::collections::BTreeMap;
use std::mem;

use bstr::BStr;
use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETSET, NFT_MSG_GETSETELEM, NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE,
    NFTA_LIST_ELEM, NFTA_SET_ELEM_LIST_ELEMENTS, NFTA_SET_NAME, NFTA_SET_TABLE,
};

use super::index::set_at;
use super::read::{Lane, Reader};
use super::{ElementsOf, Snapshot, SnapshotError};
use crate::netlink::{Error, MessageWriter};
use crate::nft::connection::Connection;
use crate::nft::watch::MemberKey;
use crate::nft::{Element, Family, Scope, SetFlags, SetId};

/// What is needed beside the tables and sets that there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needed {
    /// Sets that must be known; of those with `true` also the elements, where these are ranges.
    pub(crate) sets: BTreeMap<MemberKey, bool>,
    /// Sets that are declared: where one is there and has a range that reaches the last key of this length in bytes, its
    /// elements must be known. The kernel does not see what overlaps such a range.
    pub(crate) open_ranges: Vec<(MemberKey, usize)>,
    /// Chains that must be known; of those with `true` also the rules.
    pub(crate) chains: BTreeMap<MemberKey, bool>,
}

impl Needed {
    pub(crate) fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.chains.is_empty()
    }
}

impl Connection {
    /// Looks for ranges that reach the last key, and needs the elements of sets that have one.
    pub(crate) fn look_for_open_ranges(&mut self, needed: &mut Needed) -> Result<(), Error> {
        for ((family, table, name), length) in mem::take(&mut needed.open_ranges) {
            let set = SetId::new(family, table.as_slice(), name.as_slice());
            let last = Element::new(vec![0xff; length]);
            let request = "look an element up";
            let found = self.look_once(request, NFT_MSG_GETSETELEM, family, |writer| {
                set.write(writer);
                writer.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |writer| {
                    writer.nested(NFTA_LIST_ELEM, |writer| last.write_named(writer));
                });
            });
            match found {
                Ok(None) => {}
                Ok(Some(_)) | Err(Error::Lost(_)) => {
                    needed.sets.insert((family, table, name), true);
                }
                // A set of another kind is there: the kernel refuses what the text makes of it.
                Err(Error::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what is needed, of one generation. It says nothing of what is not needed, and is to be planned with, not to be
    /// written back.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub(crate) fn needed(&mut self, needed: &Needed) -> Result<Snapshot, SnapshotError> {
        let mut attempts = self.retry.begin();
        loop {
            let generation = self.generation()?;
            let empty = Snapshot::of(Scope::all(), ElementsOf::all());
            let mut reader = Reader::of(self, empty);
            let read = reader.needed(needed);
            let (mut snapshot, consistent) = (reader.snapshot, reader.consistent);
            match read {
                Ok(()) => {}
                Err(Error::Interrupted) if attempts.again() => continue,
                Err(error) if error.ask_again() && attempts.again_after_loss() => continue,
                Err(error) => return Err(error.into()),
            }
            if consistent && self.generation()? == generation {
                snapshot.close();
                snapshot.generation = Some(generation);
                return Ok(snapshot);
            }
            if !attempts.again() {
                return Err(SnapshotError::Interrupted {
                    attempts: attempts.made(),
                    snapshot: Box::new(snapshot),
                });
            }
        }
    }
}

impl Reader<'_> {
    fn needed(&mut self, needed: &Needed) -> Result<(), Error> {
        self.definitions()?;
        for ((family, table, name), with_ranges) in &needed.sets {
            let Some((number, set)) = self.set(*family, table.as_ref(), name.as_ref())? else {
                continue;
            };
            let at = self.snapshot.index.tables[number].sets[set].at;
            let flags = set_at(&self.snapshot.arena, at)?.flags();
            let flags = flags.unwrap_or_default();
            // Those of several fields stand for themselves.
            let are_ranges =
                flags.contains(SetFlags::INTERVAL) && !flags.contains(SetFlags::CONCAT);
            if *with_ranges && are_ranges {
                self.whole_elements_of(number, set)?;
            }
        }
        for ((family, table, name), with_rules) in &needed.chains {
            let Some(number) = self.table(*family, table.as_ref()) else {
                continue;
            };
            let is_there = self.look("look a chain up", NFT_MSG_GETCHAIN, *family, |writer| {
                writer
                    .string(NFTA_CHAIN_TABLE, table)
                    .string(NFTA_CHAIN_NAME, name);
            })?;
            let (index, arena) = (&self.snapshot.index, &self.snapshot.arena);
            let chain = index.chain(arena, number, name.as_ref());
            if let Some(chain) = chain.filter(|_| is_there && *with_rules) {
                self.rules_of(number, chain, Some(Lane::Long))?;
                // Each rule names the one before it.
                let index = &self.snapshot.index.tables[number].chains[chain];
                self.consistent &= !index.broken;
            }
        }
        Ok(())
    }

    fn table(&self, family: Family, table: &BStr) -> Option<usize> {
        self.snapshot
            .index
            .table(&self.snapshot.arena, family, table)
    }

    /// A set by the numbers of its table and its own. That others' failing transactions shift a listing of all is no reason
    /// to lack it: one that was not listed is looked up.
    fn set(
        &mut self,
        family: Family,
        table: &BStr,
        name: &BStr,
    ) -> Result<Option<(usize, usize)>, Error> {
        let Some(number) = self.table(family, table) else {
            return Ok(None);
        };
        let find = |this: &Self| {
            let set = this
                .snapshot
                .index
                .set(&this.snapshot.arena, number, name)?;
            Some((number, set))
        };
        if let Some(found) = find(self) {
            return Ok(Some(found));
        }
        self.look("look a set up", NFT_MSG_GETSET, family, |writer| {
            writer
                .string(NFTA_SET_TABLE, table)
                .string(NFTA_SET_NAME, name);
        })?;
        Ok(find(self))
    }

    /// Looks an object up: whether it is there.
    fn look(
        &mut self,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<bool, Error> {
        match self.connection.reply(request, message, family, content)? {
            Some(message) => {
                self.snapshot.take_in(&message)?;
                Ok(true)
            }
            None => Ok(false),
        }
    }
}
