//! Writing a snapshot back: one transaction that replaces what is there.
//!
//! Every message of the snapshot becomes an operation with the same attributes, byte for byte, but for
//! those that only the kernel gives (handles, numbers of references, a rule's position, a table's
//! owner) and these:
//!
//! - `NFTA_SET_ID`, which the kernel wants of every new set;
//! - `NFTA_RULE_COMPAT`, which it does not list ([`Compat::of`]);
//! - what the kernel lists in another way than it takes it (`request.rs`);
//! - intervals, which have an order in which it takes them (`elements.rs`).
//!
//! Objects come before what refers to them: tables, stateful objects, flowtables, chains, sets,
//! elements, rules.

use std::collections::{BTreeSet, HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::netlink::NLM_F_CREATE;
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWSET, NFT_MSG_NEWTABLE,
    NFTA_CHAIN_ID, NFTA_CHAIN_NAME, NFTA_TABLE_FLAGS,
};

use super::index::{TableIndex, chain_at, table_at};
use super::plan::{PlanOptions, wanted_flags};
use super::reconcile::{insist, is_closed, is_late};
use super::request::{copy_attributes, copy_object, copy_set, without_padding};
use super::write::{Numbers, Place, write_rule};
use super::{READ, Snapshot, SnapshotError, WriteError};
use crate::Error;
use crate::arena::Position;
use crate::netlink::{MessageError, MessageWriter};
use crate::nft::commit::CommitError;
use crate::nft::connection::Connection;
use crate::nft::declare::{Field, Kinds, Known};
use crate::nft::transaction::Transaction;
use crate::nft::{Chain, ChainFlags, Family, Flowtable, RuleRef, Table};

/// What became of the tables: family and name of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// Tables that were there, and now are as the snapshot shows them.
    pub replaced: Vec<(Family, BString)>,
    /// Tables of the snapshot that were not there.
    pub added: Vec<(Family, BString)>,
    /// Tables that are not in the snapshot.
    pub removed: Vec<(Family, BString)>,
    /// Tables that another process owns: nobody else can change them.
    pub owned_by_others: Vec<(Family, BString)>,
    /// Tables that were owned without `persist`: they are there again, and owned by nobody. (With the
    /// flag they would go as soon as this process's socket is closed.)
    pub no_longer_owned: Vec<(Family, BString)>,
}

/// The last numbers of sets and chains that were given out in a transaction.
#[derive(Debug, Default)]
pub(super) struct Ids {
    pub(super) set_id: u32,
    pub(super) chain_id: u32,
}

impl Snapshot {
    /// Makes the ruleset, or the family or table that the snapshot was taken of, what the snapshot
    /// shows: one transaction, applied whole or not at all; tables that the snapshot's scope covers and
    /// that are not in it go.
    ///
    /// What is there already is not touched ([`plan`](Self::plan)), so that a table that is there before
    /// and after is never missing; where the kernel does not take the changes, or what is there cannot be
    /// read as one whole, tables are deleted and made anew.
    ///
    /// Afterwards all is byte for byte the same but for handles, the numbers in names of what has none, and
    /// the order among sets, objects and chains without a hook, which means nothing. Base chains of one priority are called
    /// in the same order, as far as [the listing tells it](Snapshot::plan). Counters and quotas go on from the
    /// snapshot's numbers, elements with a timeout that were gone from the rest that they had. What the
    /// kernel does not list it cannot be given again: the fill of a `limit`, the connections that a
    /// `connlimit` counted, the state of a `numgen inc`.
    ///
    /// The transaction is conditional on the generation: if somebody else changes the ruleset while it
    /// is being prepared it is prepared anew ([`Connection::with_retry`]).
    ///
    /// # Errors
    /// [`Error::LeftOut`] for a snapshot that [lacks elements](Self::lacks_elements);
    /// [`Error::Commit`], [`Error::MessageError`] and those of a listing; nothing was changed then, except
    /// where a [`CommitError`](crate::nft::CommitError) says that it cannot be known.
    #[tracing::instrument(level = "debug", skip_all, fields(bytes = self.byte_length()))]
    pub fn restore(&self, connection: &mut Connection) -> Result<Restored, Error> {
        self.prepare(connection, Connection::commit)
    }

    /// Has the kernel look at what [`restore`](Self::restore) would do, the whole of it, and do nothing:
    /// whether this kernel takes the snapshot, and what would be left as it was.
    ///
    /// It takes the kernel as long as a restoration. The ruleset and its generation stay as they are.
    ///
    /// # Errors
    /// As [`restore`](Self::restore) would fail; nothing is ever changed.
    #[tracing::instrument(level = "debug", skip_all, fields(bytes = self.byte_length()))]
    pub fn check(&self, connection: &mut Connection) -> Result<Restored, Error> {
        self.prepare(connection, Connection::check)
    }

    /// Prepares the transaction, and has it sent.
    fn prepare(
        &self,
        connection: &mut Connection,
        send: impl Fn(&mut Connection, &Transaction) -> Result<(), CommitError>,
    ) -> Result<Restored, Error> {
        self.insist_whole("restored")?;
        let mut tx = Transaction::with_capacity(self.byte_length());
        let mut readable = true;
        insist(connection, |connection, _| {
            self.attempt(connection, &mut tx, &mut readable, &send)
        })
    }

    /// One attempt; `readable` is whether what is there can be read as one whole, as far as is known.
    fn attempt(
        &self,
        connection: &mut Connection,
        tx: &mut Transaction,
        readable: &mut bool,
        send: impl Fn(&mut Connection, &Transaction) -> Result<(), CommitError>,
    ) -> Result<Restored, Error> {
        if *readable {
            match connection.snapshot(self.scope().clone()) {
                Ok(now) => match self.change(&now, connection, &send) {
                    // A kernel that lacks the corrections of 6.4 does not delete a chain together with the map that
                    // leads to it, and each has its own like that.
                    Err(Error::Commit(error)) if error.is_refusal() && !is_late(&error) => {}
                    done => return done,
                },
                Err(SnapshotError::Netlink(error)) => return Err(error.into()),
                // What is there cannot be read as one whole; it need not be.
                Err(SnapshotError::Interrupted { .. } | SnapshotError::Incomplete { .. }) => {
                    *readable = false;
                }
            }
        }
        self.replace(connection, tx, send)
    }

    /// Changes what differs.
    fn change(
        &self,
        now: &Self,
        connection: &mut Connection,
        send: impl Fn(&mut Connection, &Transaction) -> Result<(), CommitError>,
    ) -> Result<Restored, Error> {
        let closed = now.owned_by_others(connection.port());
        let options = PlanOptions {
            remove_other_tables: true,
            remove_dynamic_elements: true,
            counters: true,
            owner_tag: None,
            ..PlanOptions::default()
        };
        let mut restored = Restored::default();
        let plan = now.plan_without(self, options, &closed, &mut restored)?;
        let present = now.tables().map(|table| table.table());
        let present = present.map(|table| (table.family(), table.name().to_owned()));
        self.tell(present.collect(), closed, &mut restored);
        send(connection, plan.transaction())?;
        Ok(restored)
    }

    /// Deletes the tables that are there, and makes them anew.
    fn replace(
        &self,
        connection: &mut Connection,
        tx: &mut Transaction,
        send: impl Fn(&mut Connection, &Transaction) -> Result<(), CommitError>,
    ) -> Result<Restored, Error> {
        tx.clear();
        let generation = connection.generation()?;
        let port = connection.port();
        let (mut present, mut closed) = (Vec::new(), HashSet::new());
        let listing = connection.list::<Table<'_>>(self.scope().clone())?;
        listing.for_each(|table| {
            let key = (table.family(), table.name().to_owned());
            if is_closed(&table, port) {
                closed.insert(key.clone());
            }
            present.push(key);
        })?;
        for (family, name) in present.iter().filter(|key| !closed.contains(key)) {
            tx.delete(&Table::new(*family, name.as_bytes()))?;
        }
        let mut restored = Restored::default();
        self.append(tx, &closed, &mut restored)?;
        self.tell(present, closed, &mut restored);
        tx.expect_generation(generation);
        send(connection, tx)?;
        Ok(restored)
    }

    /// Says what became of the tables that were there, and of its own.
    fn tell(
        &self,
        mut present: Vec<(Family, BString)>,
        closed: HashSet<(Family, BString)>,
        restored: &mut Restored,
    ) {
        let own = self.tables().map(|table| table.table());
        let mut added: BTreeSet<_> = own
            .map(|table| (table.family(), table.name().to_owned()))
            .filter(|key| !closed.contains(key))
            .collect();
        present.retain(|key| !closed.contains(key));
        present.sort();
        for key in present {
            match added.remove(&key) {
                true => restored.replaced.push(key),
                false => restored.removed.push(key),
            }
        }
        restored.added = added.into_iter().collect();
        restored.owned_by_others = closed.into_iter().collect();
        restored.owned_by_others.sort();
    }

    /// Appends the operations that make the snapshot's tables, none of which may be there, to a
    /// transaction: the part of [`restore`](Self::restore) that a caller may want to combine with
    /// others.
    ///
    /// # Errors
    /// [`WriteError::LeftOut`] for a snapshot that [lacks elements](Self::lacks_elements).
    pub fn write_to(&self, tx: &mut Transaction) -> Result<(), WriteError> {
        self.insist_whole("written")?;
        Ok(self.append(tx, &HashSet::new(), &mut Restored::default())?)
    }

    fn append(
        &self,
        tx: &mut Transaction,
        left_out: &HashSet<(Family, BString)>,
        restored: &mut Restored,
    ) -> Result<(), MessageError> {
        let arena = &self.arena;
        let tables = || {
            self.index.tables.iter().filter(|index| {
                table_at(arena, index.at).is_ok_and(|table| {
                    let key = (table.family(), table.name().to_owned());
                    !left_out.contains(&key)
                })
            })
        };
        for table in tables() {
            self.write_table(tx, table.at, restored)?;
        }
        let mut ids = Ids::default();
        for table in tables() {
            self.write_contents(tx, table, &mut ids)?;
        }
        Ok(())
    }

    /// Appends the operations that make a table and all that is in it.
    pub(super) fn write_whole(
        &self,
        tx: &mut Transaction,
        table: &TableIndex,
        ids: &mut Ids,
        restored: &mut Restored,
    ) -> Result<(), MessageError> {
        self.write_table(tx, table.at, restored)?;
        self.write_contents(tx, table, ids)
    }

    fn write_contents(
        &self,
        tx: &mut Transaction,
        table: &TableIndex,
        Ids { set_id, chain_id }: &mut Ids,
    ) -> Result<(), MessageError> {
        for &object in &table.objects {
            let (family, attributes) = self.parts(object);
            tx.operation(NFT_MSG_NEWOBJ, NLM_F_CREATE, family, |writer| {
                copy_object(writer, attributes);
            })?;
        }
        for &flowtable in &table.flowtables {
            const GIVEN: Kinds = Kinds::given(Flowtable::KNOWN);
            self.copy(
                tx,
                NFT_MSG_NEWFLOWTABLE,
                flowtable,
                Flowtable::KNOWN,
                GIVEN,
                |_| {},
            )?;
        }
        let bound = self.bound_chains(table, chain_id);
        for chain in &table.chains {
            self.write_chain(tx, chain.at, &bound)?;
        }
        for set in &table.sets {
            *set_id += 1;
            let (family, attributes) = self.parts(set.at);
            tx.operation(NFT_MSG_NEWSET, NLM_F_CREATE, family, |writer| {
                copy_set(writer, attributes, *set_id, None);
            })?;
        }
        for set in &table.sets {
            self.write_elements(tx, set)?;
        }
        let numbers = Numbers {
            chains: bound,
            ..Numbers::default()
        };
        // A bound chain takes no more rules when the one that jumps to it is there.
        for first in [true, false] {
            let chains = table.chains.iter();
            for chain in chains.filter(|chain| self.is_bound(chain.at) == first) {
                for &rule in &chain.rules {
                    let rule = RuleRef::parse(&self.message(rule)).expect(READ);
                    write_rule(tx, &rule, &numbers, Place::End)?;
                }
            }
        }
        Ok(())
    }

    fn is_bound(&self, at: Position) -> bool {
        let flags = chain_at(&self.arena, at)
            .ok()
            .and_then(|chain| chain.flags());
        flags.is_some_and(|flags| flags.contains(ChainFlags::BINDING))
    }

    /// The chains of a table that are bound to a rule and cannot have their names again, and the
    /// numbers that stand for them in the transaction.
    ///
    /// The kernel calls them `__chain%d`, numbered since its start. In the same boot that name is free
    /// once the chain is gone; in another one it may be that of a chain to come, so there the kernel is
    /// to give a new one.
    fn bound_chains(&self, table: &TableIndex, id: &mut u32) -> HashMap<&BStr, u32> {
        if self.is_of_this_boot() {
            return HashMap::new();
        }
        let bound = table.chains.iter().filter(|chain| self.is_bound(chain.at));
        bound
            .filter_map(|chain| {
                *id += 1;
                Some((chain_at(&self.arena, chain.at).ok()?.name(), *id))
            })
            .collect()
    }

    fn is_of_this_boot(&self) -> bool {
        #[cfg(feature = "serde")]
        if self.of_any_boot {
            return false;
        }
        #[cfg(feature = "backup")]
        if let Some(provenance) = &self.provenance {
            return provenance.boot != [0; 16] && provenance.boot == super::file::boot();
        }
        true
    }

    fn write_chain(
        &self,
        tx: &mut Transaction,
        at: Position,
        bound: &HashMap<&BStr, u32>,
    ) -> Result<(), MessageError> {
        let mut without = const { Kinds::given(Chain::KNOWN) };
        let chain = chain_at(&self.arena, at).ok();
        let id = chain.and_then(|chain| bound.get(chain.name()).copied());
        if id.is_some() {
            without = without.and(NFTA_CHAIN_NAME);
        }
        self.copy(tx, NFT_MSG_NEWCHAIN, at, Chain::KNOWN, without, |writer| {
            if let Some(id) = id {
                writer.be32(NFTA_CHAIN_ID, id);
            }
        })
    }

    /// Appends an operation with the attributes of the message at a position.
    pub(super) fn copy(
        &self,
        tx: &mut Transaction,
        message: u8,
        at: Position,
        known: &'static [Known],
        without: Kinds,
        more: impl FnOnce(&mut MessageWriter<'_>),
    ) -> Result<(), MessageError> {
        let (family, attributes) = self.parts(at);
        let attributes = without_padding(attributes, known);
        tx.operation(message, NLM_F_CREATE, family, |writer| {
            copy_attributes(writer, &attributes, without);
            more(writer);
        })?;
        Ok(())
    }

    /// The family and the attributes of the message at a position.
    pub(super) fn parts(&self, at: Position) -> (Family, &[u8]) {
        match self.message(at).nfgenmsg() {
            Ok((header, attributes)) => (Family(header.family), attributes),
            Err(_) => (Family::UNSPEC, &[]), // not in the index then
        }
    }

    fn write_table(
        &self,
        tx: &mut Transaction,
        at: Position,
        restored: &mut Restored,
    ) -> Result<(), MessageError> {
        let (family, attributes) = self.parts(at);
        let mut without = const { Kinds::given(Table::KNOWN) };
        let mut flags = None;
        if let Ok(table) = table_at(&self.arena, at)
            && table
                .flags()
                .is_some_and(|flags| flags != wanted_flags(&table))
        {
            let key = (family, table.name().to_owned());
            restored.no_longer_owned.push(key);
            without = without.and(NFTA_TABLE_FLAGS);
            flags = Some(wanted_flags(&table));
        }
        tx.operation(NFT_MSG_NEWTABLE, NLM_F_CREATE, family, |writer| {
            copy_attributes(writer, attributes, without);
            if let Some(flags) = flags {
                flags.encode(writer, NFTA_TABLE_FLAGS);
            }
        })?;
        Ok(())
    }
}
