//! Changes to an index: objects that come one by one, are replaced, or go.

use super::{ChainIndex, Index, Kind, Last, Names, TableIndex, chain_at, set_at, table_at};
use crate::arena::{Arena, Position};
use crate::netlink::Malformed;
use crate::nft::{FlowtableRef, RuleRef, StatefulObjectRef};

/// After so many removals the numbers that names have are counted anew.
const REMOVALS: usize = 64;

/// Where a rule goes in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::nft::snapshot) enum Place {
    First,
    Last,
    /// As the one of this number.
    At(usize),
    /// Behind the rule with this handle.
    Behind(u64),
}

impl Names {
    /// Takes out a name; whether all is to be counted anew.
    fn remove(&mut self, kind: Kind, name: &bstr::BStr) -> bool {
        use std::hash::BuildHasher;
        self.numbers.remove(&self.hash.hash_one((kind, name)));
        self.removed += 1;
        // Of two names of one hash only one had a number.
        self.collided || self.removed > REMOVALS
    }
}

impl Index {
    /// All that is known of places may be wrong.
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

    /// Takes out a table and all that is in it.
    pub(in crate::nft::snapshot) fn remove_table(&mut self, table: usize) -> TableIndex {
        // Names of chains and sets go by the numbers of tables.
        self.names.take();
        self.moved();
        self.tables.remove(table)
    }

    /// Puts a table where it was.
    pub(in crate::nft::snapshot) fn insert_table(&mut self, number: usize, table: TableIndex) {
        self.names.take();
        self.moved();
        self.tables.insert(number.min(self.tables.len()), table);
    }

    /// Where a table with this handle goes: the kernel lists them in the order in which they were made.
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

    /// Whether a chain or rule that comes now has a higher handle than all that are there: then it is none of
    /// them, which spares looking for it. The kernel counts the handles of a table up.
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

    /// Takes out a chain and its rules.
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

    /// The number of the chain with this handle, which perhaps has this name.
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
        // They stand in the order in which they were made.
        by_handle(chains, handle, |chain| {
            Ok(chain_at(arena, chain.at)?.handle())
        })
    }

    /// Takes out a set and its elements.
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

    /// Puts a rule into a chain; `false` if the one that it goes behind is not there.
    pub(in crate::nft::snapshot) fn place_rule(
        &mut self,
        arena: &Arena,
        table: usize,
        chain: usize,
        place: Place,
        at: Position,
    ) -> Result<bool, Malformed> {
        let number = match place {
            Place::First => 0,
            Place::Last => usize::MAX,
            Place::At(number) => number,
            Place::Behind(handle) => match self.rule_of_handle(arena, table, chain, handle)? {
                Some(number) => number + 1,
                None => return Ok(false),
            },
        };
        self.moved();
        let rules = &mut self.tables[table].chains[chain].rules;
        rules.insert(number.min(rules.len()), at);
        Ok(true)
    }

    /// The number of the rule with this handle.
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

    /// Takes out a rule.
    pub(in crate::nft::snapshot) fn remove_rule(
        &mut self,
        table: usize,
        chain: usize,
        rule: usize,
    ) -> Position {
        self.moved();
        self.tables[table].chains[chain].rules.remove(rule)
    }

    /// Where a stateful object of a table stands.
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

    /// Where a flowtable of a table stands.
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

/// The number of what has this handle. Mostly handles rise; where they do not, all are looked at.
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
