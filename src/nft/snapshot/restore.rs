//! Restores a snapshot: one transaction that replaces the current ruleset.
//!
//! Every message of the snapshot becomes an operation with the same attributes, byte for byte, except for those that
//! only the kernel assigns (handles, use counts, a rule's position, a table's owner) and these:
//!
//! - `NFTA_SET_ID`, which the kernel requires for every new set;
//! - `NFTA_RULE_COMPAT`, which it does not list ([`Compat::of`]);
//! - attributes that the kernel lists in another form than it accepts (`request.rs`);
//! - intervals, which the kernel accepts only in a certain order (`elements.rs`).
//!
//! Objects precede those that refer to them: tables, stateful objects, flowtables, chains, sets, elements, rules.

use std::collections::{BTreeSet, HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::netlink::NLM_F_CREATE;
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWSET, NFT_MSG_NEWTABLE,
    NFTA_CHAIN_ID, NFTA_CHAIN_NAME, NFTA_TABLE_FLAGS,
};

use super::index::{TableIndex, chain_at, table_at};
use super::plan::{PlanOptions, wanted_flags};
use super::reconcile::{has_other_owner, is_outdated, retry_commit};
use super::request::{copy_attributes, copy_object, copy_set, without_padding};
use super::write::{BatchIds, InsertPosition, write_rule};
use super::{READ, Snapshot, SnapshotError, WriteError};
use crate::Error;
use crate::arena::Position;
use crate::netlink::{MessageError, MessageWriter};
use crate::nft::commit::CommitError;
use crate::nft::connection::Connection;
use crate::nft::declare::{AttributeNotes, AttributeSet, Field};
use crate::nft::transaction::Transaction;
use crate::nft::{Chain, ChainFlags, Family, Flowtable, RuleRef, Table, TableId};

/// The result of a restoration: family and name of the tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// Tables that existed, and now match the snapshot.
    pub replaced: Vec<(Family, BString)>,
    /// Tables of the snapshot that did not exist.
    pub added: Vec<(Family, BString)>,
    /// Deleted tables, which are not in the snapshot.
    pub removed: Vec<(Family, BString)>,
    /// Tables that another process owns: only that process can change them.
    pub owned_by_others: Vec<(Family, BString)>,
    /// Tables that had an owner without `persist`: they exist again without an owner. (With the owner flag the kernel
    /// would delete them as soon as this process closes its socket.)
    pub no_longer_owned: Vec<(Family, BString)>,
}

/// The last IDs of sets and chains used in a transaction.
#[derive(Debug, Default)]
pub(super) struct LastIds {
    pub(super) set_id: u32,
    pub(super) chain_id: u32,
}

/// Returns `true` if a restoration of only these tables, or of all, covers this one.
fn is_selected(only: Option<&HashSet<(Family, BString)>>, key: &(Family, BString)) -> bool {
    only.is_none_or(|only| only.contains(key))
}

impl Snapshot {
    /// Makes the ruleset, or the family or table that the snapshot covers, match the snapshot in one atomic
    /// transaction. Tables in the snapshot's scope that the snapshot doesn't contain are deleted.
    ///
    /// Unchanged objects are not touched ([`plan`](Self::plan)), so that a table that exists before and after is never
    /// missing. Only if the kernel refuses these changes, or the current ruleset cannot be read consistently, tables
    /// are deleted and recreated.
    ///
    /// Afterwards everything is byte for byte the same except for handles, the numbers in names of anonymous objects,
    /// and the order of sets, objects and regular chains, which has no effect. Base chains of one priority run in the
    /// same order, as far as [the listing shows it](Snapshot::plan). Counters and quotas continue from the snapshot's
    /// values, and recreated elements with a timeout from their remaining time. State that the kernel doesn't list is
    /// lost: the fill level of a `limit`, the connections that a `connlimit` counted, the state of a `numgen inc`.
    ///
    /// The transaction is conditional on the generation: if another process changes the ruleset meanwhile, the
    /// transaction is prepared again ([`Connection::with_retry`]).
    /// # Errors
    /// [`Error::MissingElements`] for a snapshot that [lacks elements](Self::lacks_elements); [`Error::Commit`],
    /// [`Error::MessageError`] and the errors of a listing. After an error nothing has changed, unless a
    /// [`CommitError`](crate::nft::CommitError) reports an unknown outcome.
    #[tracing::instrument(level = "debug", skip_all, fields(bytes = self.byte_length()))]
    pub fn restore(&self, connection: &mut Connection) -> Result<Restored, Error> {
        self.prepare(connection, None, Connection::commit)
    }

    /// Like [`restore`](Self::restore), but for these tables only: deletes those that the snapshot does not contain, and
    /// leaves all other tables as they are.
    ///
    /// # Errors
    /// As [`restore`](Self::restore).
    pub fn restore_tables(
        &self,
        connection: &mut Connection,
        tables: &[TableId<'_>],
    ) -> Result<Restored, Error> {
        let keys = tables
            .iter()
            .map(|table| (table.family, BString::from(&*table.name)));
        self.prepare(connection, Some(&keys.collect()), Connection::commit)
    }

    /// Makes the kernel validate the complete transaction of [`restore`](Self::restore) without committing it: whether
    /// this kernel accepts the snapshot, and which tables would stay unchanged.
    ///
    /// It takes the kernel as long as a restoration. The ruleset and its generation don't change.
    ///
    /// # Errors
    /// As [`restore`](Self::restore) would fail; nothing is ever changed.
    #[tracing::instrument(level = "debug", skip_all, fields(bytes = self.byte_length()))]
    pub fn check(&self, connection: &mut Connection) -> Result<Restored, Error> {
        self.prepare(connection, None, Connection::check)
    }

    /// Prepares the transaction, and passes it to `send`. Without `only`, it is about all tables in the scope.
    fn prepare(
        &self,
        connection: &mut Connection,
        only: Option<&HashSet<(Family, BString)>>,
        send: impl Fn(&mut Connection, &Transaction) -> Result<(), CommitError>,
    ) -> Result<Restored, Error> {
        self.ensure_complete("restored")?;
        let mut tx = Transaction::with_capacity(self.byte_length());
        let mut readable = true;
        retry_commit(connection, connection.retry(), |connection, _| {
            self.attempt(connection, only, &mut tx, &mut readable, &send)
        })
    }

    /// Makes one attempt; `readable` is whether the current ruleset can be read consistently, as far as known.
    fn attempt(
        &self,
        connection: &mut Connection,
        only: Option<&HashSet<(Family, BString)>>,
        tx: &mut Transaction,
        readable: &mut bool,
        send: impl Fn(&mut Connection, &Transaction) -> Result<(), CommitError>,
    ) -> Result<Restored, Error> {
        if *readable {
            match connection.snapshot(self.scope().clone()) {
                Ok(now) => match self.change(&now, connection, only, &send) {
                    // Kernels without the corrections of 6.4 refuse to delete a chain together with the map that refers
                    // to it; each of these kernels refuses other such combinations.
                    Err(Error::Commit(error)) if error.is_refusal() && !is_outdated(&error) => {}
                    done => return done,
                },
                Err(SnapshotError::Netlink(error)) => return Err(error.into()),
                // Deleting tables doesn't require a consistent read.
                Err(SnapshotError::Interrupted { .. } | SnapshotError::Incomplete { .. }) => {
                    *readable = false;
                }
            }
        }
        self.replace(connection, only, tx, send)
    }

    /// Commits only the differences.
    fn change(
        &self,
        now: &Self,
        connection: &mut Connection,
        only: Option<&HashSet<(Family, BString)>>,
        send: impl Fn(&mut Connection, &Transaction) -> Result<(), CommitError>,
    ) -> Result<Restored, Error> {
        let foreign = now.owned_by_others(connection.port());
        let options = PlanOptions {
            remove_other_tables: true,
            remove_dynamic_elements: true,
            counters: true,
            owner_tag: None,
            ..PlanOptions::default()
        };
        let mut restored = Restored::default();
        let all = now.keys().chain(self.keys());
        let left_out = all.filter(|key| foreign.contains(key) || !is_selected(only, key));
        let plan = now.plan_without(self, options, &left_out.collect(), &mut restored)?;
        self.record_results(now.keys().collect(), only, foreign, &mut restored);
        send(connection, plan.transaction())?;
        Ok(restored)
    }

    /// Deletes the existing tables and recreates them.
    fn replace(
        &self,
        connection: &mut Connection,
        only: Option<&HashSet<(Family, BString)>>,
        tx: &mut Transaction,
        send: impl Fn(&mut Connection, &Transaction) -> Result<(), CommitError>,
    ) -> Result<Restored, Error> {
        tx.clear();
        let generation = connection.stable_generation()?;
        let port = connection.port();
        let (mut present, mut foreign) = (Vec::new(), HashSet::new());
        let listing = connection.list::<Table<'_>>(self.scope().clone())?;
        listing.for_each(|table| {
            let key = (table.family(), table.name().to_owned());
            if has_other_owner(&table, port) {
                foreign.insert(key.clone());
            }
            present.push(key);
        })?;
        let is_left_out = |key: &_| foreign.contains(key) || !is_selected(only, key);
        for (family, name) in present.iter().filter(|key| !is_left_out(key)) {
            tx.delete(&Table::new(*family, name.as_bytes()))?;
        }
        let mut restored = Restored::default();
        let left_out = self.keys().filter(is_left_out).collect();
        self.append(tx, &left_out, &mut restored)?;
        self.record_results(present, only, foreign, &mut restored);
        tx.expect_generation(generation);
        send(connection, tx)?;
        Ok(restored)
    }

    /// Records the results for the existing tables and those of the snapshot.
    fn record_results(
        &self,
        mut present: Vec<(Family, BString)>,
        only: Option<&HashSet<(Family, BString)>>,
        mut foreign: HashSet<(Family, BString)>,
        restored: &mut Restored,
    ) {
        foreign.retain(|key| is_selected(only, key));
        let is_own = |key: &_| is_selected(only, key) && !foreign.contains(key);
        let mut added: BTreeSet<_> = self.keys().filter(is_own).collect();
        present.retain(is_own);
        present.sort();
        for key in present {
            match added.remove(&key) {
                true => restored.replaced.push(key),
                false => restored.removed.push(key),
            }
        }
        restored.added = added.into_iter().collect();
        restored.owned_by_others = foreign.into_iter().collect();
        restored.owned_by_others.sort();
    }

    /// Returns the families and names of the tables.
    fn keys(&self) -> impl Iterator<Item = (Family, BString)> {
        let tables = self.tables().map(|table| table.table());
        tables.map(|table| (table.family(), table.name().to_owned()))
    }

    /// Appends the operations that create the snapshot's tables, none of which may exist, to a transaction: the part of
    /// [`restore`](Self::restore) that a caller can combine with other operations.
    ///
    /// # Errors
    /// [`WriteError::MissingElements`] for a snapshot that [lacks elements](Self::lacks_elements).
    pub fn write_to(&self, tx: &mut Transaction) -> Result<(), WriteError> {
        self.ensure_complete("written")?;
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
        let mut ids = LastIds::default();
        for table in tables() {
            self.write_contents(tx, table, &mut ids)?;
        }
        Ok(())
    }

    /// Appends the operations that create a table and its contents.
    pub(super) fn write_whole(
        &self,
        tx: &mut Transaction,
        table: &TableIndex,
        ids: &mut LastIds,
        restored: &mut Restored,
    ) -> Result<(), MessageError> {
        self.write_table(tx, table.at, restored)?;
        self.write_contents(tx, table, ids)
    }

    fn write_contents(
        &self,
        tx: &mut Transaction,
        table: &TableIndex,
        LastIds { set_id, chain_id }: &mut LastIds,
    ) -> Result<(), MessageError> {
        for &object in &table.objects {
            let (family, attributes) = self.parts(object);
            tx.operation(NFT_MSG_NEWOBJ, NLM_F_CREATE, family, |writer| {
                copy_object(writer, attributes);
            })?;
        }
        for &flowtable in &table.flowtables {
            const KERNEL_SET: AttributeSet = AttributeSet::kernel_set(Flowtable::ATTRIBUTE_NOTES);
            self.copy(
                tx,
                NFT_MSG_NEWFLOWTABLE,
                flowtable,
                Flowtable::ATTRIBUTE_NOTES,
                KERNEL_SET,
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
        let numbers = BatchIds {
            chains: bound,
            ..BatchIds::default()
        };
        // A bound chain accepts no more rules after the rule that jumps to it.
        for first in [true, false] {
            let chains = table.chains.iter();
            for chain in chains.filter(|chain| self.is_bound(chain.at) == first) {
                for &rule in &chain.rules {
                    let rule = RuleRef::parse(&self.message(rule)).expect(READ);
                    write_rule(tx, &rule, &numbers, InsertPosition::End)?;
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

    /// Returns the chains of a table that are bound to a rule and cannot keep their names, and their IDs in the
    /// transaction.
    ///
    /// The kernel names them `__chain%d`, numbered since boot. In the same boot the name is free once the chain is
    /// deleted; after another boot a later chain may get it, so the kernel has to assign a new one.
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
        let mut without = const { AttributeSet::kernel_set(Chain::ATTRIBUTE_NOTES) };
        let chain = chain_at(&self.arena, at).ok();
        let id = chain.and_then(|chain| bound.get(chain.name()).copied());
        if id.is_some() {
            without = without.and(NFTA_CHAIN_NAME);
        }
        self.copy(
            tx,
            NFT_MSG_NEWCHAIN,
            at,
            Chain::ATTRIBUTE_NOTES,
            without,
            |writer| {
                if let Some(id) = id {
                    writer.be32(NFTA_CHAIN_ID, id);
                }
            },
        )
    }

    /// Appends an operation with the attributes of the message at a position.
    pub(super) fn copy(
        &self,
        tx: &mut Transaction,
        message: u8,
        at: Position,
        known: &'static [AttributeNotes],
        without: AttributeSet,
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

    /// Returns the family and the attributes of the message at a position.
    pub(super) fn parts(&self, at: Position) -> (Family, &[u8]) {
        match self.message(at).nfgenmsg() {
            Ok((header, attributes)) => (Family(header.family), attributes),
            Err(_) => (Family::UNSPEC, &[]), // such a message is not indexed
        }
    }

    fn write_table(
        &self,
        tx: &mut Transaction,
        at: Position,
        restored: &mut Restored,
    ) -> Result<(), MessageError> {
        let (family, attributes) = self.parts(at);
        let mut without = const { AttributeSet::kernel_set(Table::ATTRIBUTE_NOTES) };
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
