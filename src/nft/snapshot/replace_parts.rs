//! Replaces and removes parts of a current snapshot, and reclaims the memory of removed parts.

use bstr::BStr;

use super::apply::TableKey;
use super::elements::CHUNK;
use super::index::{ChainIndex, SetIndex, TableIndex, table_at};
use super::read::Reader;
use super::rule_members::is_bound;
use super::{ElementFilter, Snapshot, element_index};
use crate::arena::{Arena, Position};
use crate::netlink::{Error, Malformed, Message};
use crate::nft::change_detector::MemberKey;
use crate::nft::connection::Connection;
use crate::nft::{Generation, Scope};

/// Fewer unused bytes than this are not reclaimed.
const MIN_RECLAIMED_BYTES: usize = 1 << 20;

/// Maximum number of times that a chain is read separately: if it keeps changing, its table is read, as often as
/// [`Retry`](crate::Retry) allows.
const ATTEMPTS: usize = 64;

impl Snapshot {
    /// Creates an empty snapshot of this scope.
    pub(in crate::nft) fn of(scope: Scope<'static>, elements: ElementFilter) -> Self {
        Self {
            scope,
            elements,
            ..Self::default()
        }
    }

    /// Sets the generation; `None` if there isn't a single one.
    pub(in crate::nft) const fn set_generation(&mut self, generation: Option<Generation>) {
        self.generation = generation;
    }

    /// Stores an event's message.
    pub(super) fn keep(&mut self, message: &Message<'_>) -> Result<Position, Malformed> {
        Ok(self.arena.put(message.raw)?)
    }

    /// Counts a message as unused.
    pub(super) fn drop_message(&mut self, at: Position) {
        self.dead += length(&self.arena, at);
    }

    /// Counts the rules of a chain as unused.
    pub(super) fn drop_rules(&mut self, table: usize, chain: usize) {
        let rules = &self.index.tables[table].chains[chain].rules;
        let lengths = rules.iter().map(|&at| length(&self.arena, at));
        self.dead += lengths.sum::<usize>();
    }

    /// Counts the elements of a set as unused.
    pub(super) fn drop_elements(&mut self, table: usize, set: usize) {
        let elements = &self.index.tables[table].sets[set].elements;
        let lengths = elements.iter().map(|&at| length(&self.arena, at));
        self.dead += lengths.sum::<usize>();
    }

    pub(super) fn drop_chain(&mut self, chain: &ChainIndex) {
        self.drop_message(chain.at);
        chain.rules.iter().for_each(|&at| self.drop_message(at));
    }

    pub(super) fn drop_set(&mut self, set: &SetIndex) {
        self.drop_message(set.at);
        set.elements.iter().for_each(|&at| self.drop_message(at));
    }

    pub(super) fn drop_table(&mut self, table: &TableIndex) {
        self.drop_message(table.at);
        table.chains.iter().for_each(|chain| self.drop_chain(chain));
        table.sets.iter().for_each(|set| self.drop_set(set));
        let others = table.objects.iter().chain(&table.flowtables);
        others.for_each(|&at| self.drop_message(at));
    }

    /// Reads a chain again; returns its generation, `None` if it cannot be read separately.
    pub(in crate::nft) fn read_chain(
        &mut self,
        connection: &mut Connection,
        key: &MemberKey,
    ) -> Result<Option<Generation>, Error> {
        let snapshot = std::mem::take(self);
        let mut reader = Reader::of(connection, snapshot);
        let mut read = || {
            for _ in 0..ATTEMPTS {
                let before = reader.connection.stable_generation()?;
                if !reader.reread_chain(key)? {
                    return Ok(None);
                }
                if reader.connection.generation()? == before {
                    return Ok(Some(before));
                }
            }
            Ok(None)
        };
        let generation = read();
        *self = reader.snapshot;
        generation
    }

    /// Returns `true` if a chain of a table is bound to a rule: it is deleted with the rule, without an event.
    pub(in crate::nft) fn has_bound_chains(&self, (family, name): &TableKey) -> bool {
        let table = self.table(*family, name);
        table.is_some_and(|table| table.chains().any(|chain| is_bound(&chain)))
    }

    /// Replaces a table with that of another snapshot, or removes it if that has none.
    pub(in crate::nft) fn replace_table(
        &mut self,
        (family, name): &TableKey,
        from: &Self,
    ) -> Result<(), Malformed> {
        let name = BStr::new(name);
        if let Some(number) = self.index.table(&self.arena, *family, name) {
            let table = self.index.remove_table(number);
            self.drop_table(&table);
        }
        let Some(number) = from.index.table(&from.arena, *family, name) else {
            return Ok(());
        };
        let mut table = from.index.tables[number].clone();
        move_table(&mut table, &from.arena, &mut self.arena)?;
        let handle = table_at(&self.arena, table.at)?.handle();
        let number = self.index.place_of_table(&self.arena, handle)?;
        self.index.insert_table(number, table);
        Ok(())
    }

    /// Copies one table, or one chain of it with its rules. Empty if there is no such table.
    pub(in crate::nft) fn one_table(
        &self,
        (family, name): &TableKey,
        chain: Option<&BStr>,
    ) -> Result<Self, Malformed> {
        let scope = Scope::table(*family, name.as_slice()).into_owned();
        let mut part = Self::of(scope, self.elements);
        part.generation = self.generation;
        let Some(table) = self.index.table(&self.arena, *family, BStr::new(name)) else {
            return Ok(part);
        };
        let number = chain.and_then(|chain| self.index.chain(&self.arena, table, chain));
        let table = &self.index.tables[table];
        let mut copy = |at: Position| -> Result<(), Malformed> {
            let at = part.arena.put(self.arena.message(at)?.raw)?;
            part.index.insert(&part.arena, at).map(drop)
        };
        match (chain, number) {
            (None, _) => table.each(&mut copy)?,
            (Some(_), None) => copy(table.at)?,
            (Some(_), Some(number)) => {
                let chain = &table.chains[number];
                copy(table.at)?;
                copy(chain.at)?;
                chain.rules.iter().try_for_each(|&at| copy(at))?;
            }
        }
        part.close();
        Ok(part)
    }

    /// Replaces the rules of a chain with those of another snapshot, if both have it.
    pub(in crate::nft) fn replace_rules(
        &mut self,
        (family, table, chain): &MemberKey,
        from: &Self,
    ) -> Result<(), Malformed> {
        let Some(new) = from.chain(*family, table, chain) else {
            return Ok(());
        };
        let Some(table) = self.index.table(&self.arena, *family, table.as_ref()) else {
            return Ok(());
        };
        let Some(chain) = self.index.chain(&self.arena, table, chain.as_ref()) else {
            return Ok(());
        };
        self.drop_rules(table, chain);
        self.index.forget_rules(&self.arena, table, chain)?;
        for &at in &new.index.rules {
            let at = self.arena.put(from.arena.message(at)?.raw)?;
            self.index.insert(&self.arena, at)?;
        }
        self.index.tables[table].chains[chain].broken = false;
        Ok(())
    }

    /// Reclaims the memory of unused messages, if it is a third of the total.
    #[doc(hidden)]
    pub fn compact(&mut self) -> Result<(), Malformed> {
        if self.dead < MIN_RECLAIMED_BYTES || self.dead < self.arena.len() / 3 {
            return Ok(());
        }
        let mut arena = Arena::default();
        for table in &mut self.index.tables {
            move_table(table, &self.arena, &mut arena)?;
        }
        self.arena = arena;
        self.dead = 0;
        Ok(())
    }
}

/// Returns the size of a message in the arena.
fn length(arena: &Arena, at: Position) -> usize {
    let message = arena.message(at);
    message.map_or(0, |message| message.padded_length())
}

/// Copies the messages of a table from one arena to another.
fn move_table(table: &mut TableIndex, from: &Arena, to: &mut Arena) -> Result<(), Malformed> {
    let mut copy = |at: &mut Position| -> Result<(), Malformed> {
        *at = to.put(from.message(*at)?.raw)?;
        Ok(())
    };
    copy(&mut table.at)?;
    for chain in &mut table.chains {
        copy(&mut chain.at)?;
        chain.rules.iter_mut().try_for_each(&mut copy)?;
    }
    table.objects.iter_mut().try_for_each(&mut copy)?;
    table.flowtables.iter_mut().try_for_each(&mut copy)?;
    for set in &mut table.sets {
        copy(&mut set.at)?;
        if set.pieces.is_none() {
            set.elements.iter_mut().try_for_each(&mut copy)?;
        }
    }
    for set in table.sets.iter_mut().filter(|set| set.pieces.is_some()) {
        // Pieces become messages in the form of a listing.
        set.pieces = None;
        set.elements = element_index::joined(&set.elements, from, to, CHUNK)?;
    }
    Ok(())
}
