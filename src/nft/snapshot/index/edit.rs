//! Changes of an index: adds, replaces and removes single objects.

use super::{ChainIndex, Index, Kind, Last, Names, TableIndex, chain_at, set_at, table_at};
use crate::arena::{Arena, Position};
use crate::netlink::Malformed;
use crate::nft::{FlowtableRef, RuleRef, StatefulObjectRef};

/// Number of removals after which the name map is rebuilt.
const REBUILD_AFTER_REMOVALS: usize = 64;

/// The position of a rule in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::nft::snapshot) enum RulePosition {
    First,
    Last,
    /// At this index.
    At(usize),
    /// After the rule with this handle.
    After(u64),
}

impl Names {
    /// Removes a name; returns whether the map has to be rebuilt.
    fn remove(&mut self, kind: Kind, name: &bstr::BStr) -> bool {
        use std::hash::BuildHasher;
        self.numbers.remove(&self.hash.hash_one((kind, name)));
        self.removed += 1;
        // Of several names with the same hash only one is in the map.
        self.collided || self.removed > REBUILD_AFTER_REMOVALS
    }
}

impl Index {
    /// Invalidates the remembered positions.
    fn moved(&mut self) {
        self.last = Last::default();
    }

    fn forget_name(&mut self, kind: Kind, name: &bstr::BStr) {
        let stale = self
            .names
            .get_mut()
            .is_some_and(|names| names.remove(kind, name));
        if stale {
            self.names.take();
        }
        self.moved();
    }

    /// Removes a table with its members.
    pub(in crate::nft::snapshot) fn remove_table(&mut self, table: usize) -> TableIndex {
        // The names of chains and sets depend on the indices of tables.
        self.names.take();
        self.moved();
        self.tables.remove(table)
    }

    /// Inserts a table at this index.
    pub(in crate::nft::snapshot) fn insert_table(&mut self, number: usize, table: TableIndex) {
        self.names.take();
        self.moved();
        self.tables.insert(number.min(self.tables.len()), table);
    }

    /// Returns the index for a table with this handle: the kernel lists tables in the order of creation.
    pub(in crate::nft::snapshot) fn place_of_table(
        &self,
        arena: &Arena,
        handle: u64,
    ) -> Result<usize, Malformed> {
        for (number, index) in self.tables.iter().enumerate() {
            if table_at(arena, index.at)?.handle() > handle {
                return Ok(number);
            }
        }
        Ok(self.tables.len())
    }

    /// Returns whether a new chain or rule has a higher handle than all existing ones: then it need not be looked up.
    /// The kernel assigns ascending handles in a table.
    pub(in crate::nft::snapshot) fn is_new(
        &mut self,
        arena: &Arena,
        table: usize,
        handle: u64,
    ) -> Result<bool, Malformed> {
        let table = &mut self.tables[table];
        let highest = match table.highest {
            Some(highest) => highest,
            None => {
                let mut highest = 0;
                for chain in &table.chains {
                    highest = highest.max(chain_at(arena, chain.at)?.handle());
                    for &rule in &chain.rules {
                        highest = highest.max(RuleRef::parse(&arena.message(rule)?)?.handle());
                    }
                }
                highest
            }
        };
        table.highest = Some(highest.max(handle));
        Ok(handle > highest)
    }

    /// Removes a chain with its rules.
    pub(in crate::nft::snapshot) fn remove_chain(
        &mut self,
        arena: &Arena,
        table: usize,
        chain: usize,
    ) -> Result<ChainIndex, Malformed> {
        let removed = self.tables[table].chains.remove(chain);
        let name = chain_at(arena, removed.at)?.name().to_owned();
        self.forget_name(Kind::Chain(table as u32), name.as_ref());
        Ok(removed)
    }

    /// Returns the index of the chain with this handle, which usually has this name.
    pub(in crate::nft::snapshot) fn chain_of_handle(
        &self,
        arena: &Arena,
        table: usize,
        name: &bstr::BStr,
        handle: u64,
    ) -> Result<Option<usize>, Malformed> {
        let chains = &self.tables[table].chains;
        if let Some(number) = self.chain(arena, table, name)
            && chain_at(arena, chains[number].at)?.handle() == handle
        {
            return Ok(Some(number));
        }
        // Chains are in the order of creation.
        by_handle(chains, handle, |chain| {
            Ok(chain_at(arena, chain.at)?.handle())
        })
    }

    /// Removes a set with its elements.
    pub(in crate::nft::snapshot) fn remove_set(
        &mut self,
        arena: &Arena,
        table: usize,
        set: usize,
    ) -> Result<super::SetIndex, Malformed> {
        let removed = self.tables[table].sets.remove(set);
        let name = set_at(arena, removed.at)?.name().to_owned();
        self.forget_name(Kind::Set(table as u32), name.as_ref());
        Ok(removed)
    }

    /// Inserts a rule into a chain; `false` if the preceding rule doesn't exist.
    pub(in crate::nft::snapshot) fn place_rule(
        &mut self,
        arena: &Arena,
        table: usize,
        chain: usize,
        rule_position: RulePosition,
        at: Position,
    ) -> Result<bool, Malformed> {
        let number = match rule_position {
            RulePosition::First => 0,
            RulePosition::Last => usize::MAX,
            RulePosition::At(number) => number,
            RulePosition::After(handle) => {
                match self.rule_of_handle(arena, table, chain, handle)? {
                    Some(number) => number + 1,
                    None => return Ok(false),
                }
            }
        };
        self.moved();
        let rules = &mut self.tables[table].chains[chain].rules;
        rules.insert(number.min(rules.len()), at);
        Ok(true)
    }

    /// Returns the index of the rule with this handle.
    pub(in crate::nft::snapshot) fn rule_of_handle(
        &self,
        arena: &Arena,
        table: usize,
        chain: usize,
        handle: u64,
    ) -> Result<Option<usize>, Malformed> {
        let rules = &self.tables[table].chains[chain].rules;
        by_handle(rules, handle, |&at| {
            Ok(RuleRef::parse(&arena.message(at)?)?.handle())
        })
    }

    /// Removes a rule.
    pub(in crate::nft::snapshot) fn remove_rule(
        &mut self,
        table: usize,
        chain: usize,
        rule: usize,
    ) -> Position {
        self.moved();
        self.tables[table].chains[chain].rules.remove(rule)
    }

    /// Returns the index of a stateful object in a table.
    pub(in crate::nft::snapshot) fn object_of(
        &self,
        arena: &Arena,
        table: usize,
        wanted: &StatefulObjectRef<'_>,
    ) -> Result<Option<usize>, Malformed> {
        for (number, &at) in self.tables[table].objects.iter().enumerate() {
            let object = StatefulObjectRef::parse(&arena.message(at)?)?;
            if object.object_type() == wanted.object_type() && object.name() == wanted.name() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Returns the index of a flowtable in a table.
    pub(in crate::nft::snapshot) fn flowtable_of(
        &self,
        arena: &Arena,
        table: usize,
        wanted: &FlowtableRef<'_>,
    ) -> Result<Option<usize>, Malformed> {
        for (number, &at) in self.tables[table].flowtables.iter().enumerate() {
            if FlowtableRef::parse(&arena.message(at)?)?.name() == wanted.name() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }
}

/// Returns the index of the item with this handle. Uses a binary search, and a linear one if handles don't ascend.
fn by_handle<T>(
    list: &[T],
    handle: u64,
    handle_of: impl Fn(&T) -> Result<u64, Malformed>,
) -> Result<Option<usize>, Malformed> {
    let (mut low, mut high) = (0, list.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let found = handle_of(&list[middle])?;
        if found == handle {
            return Ok(Some(middle));
        }
        match found < handle {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    for (number, one) in list.iter().enumerate() {
        if handle_of(one)? == handle {
            return Ok(Some(number));
        }
    }
    Ok(None)
}
