//! The index of a snapshot: finds the message of each object, and the members of tables, chains and sets.
//!
//! [`Index::insert`] indexes one message of the kernel: from a listing, a file, or an event. It doesn't depend on the
//! source.
//!
//! The file contains one structure and its queries; each kind of object is indexed and counted in its own way.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::OnceLock;

use bstr::BStr;
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE, NFT_MSG_NEWSET,
    NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_EXPR_DATA, NFTA_EXPR_NAME, NFTA_RULE_EXPRESSIONS,
};
use chainwright_sys::nfnetlink::NFNL_SUBSYS_NFTABLES;

use super::element_index::Pieces;
use super::omitted_elements::ElementFilter;
use crate::arena::{Arena, Position};
use crate::netlink::{Attributes, Malformed, Message};
use crate::nft::expr::{Data, ImmediateRef, Verdict};
use crate::nft::name::Name;
use crate::nft::{
    ChainRef, DataType, ElementsRef, Family, FlowtableRef, RuleRef, SetFlags, SetRef,
    StatefulObjectRef, TableRef,
};

mod edit;

pub(super) use edit::RulePosition;

/// A table and its members.
#[derive(Debug, Clone)]
pub(super) struct TableIndex {
    pub(super) at: Position,
    pub(super) chains: Vec<ChainIndex>,
    pub(super) sets: Vec<SetIndex>,
    pub(super) objects: Vec<Position>,
    pub(super) flowtables: Vec<Position>,
    /// Total number of rules of its chains and of jumps to them from rules and elements; valid during a read.
    pub(super) uses: u64,
    /// An upper bound of the handles in it; `None` until it is needed.
    highest: Option<u64>,
}

impl TableIndex {
    /// Visits the table and its members, each after its parents.
    pub(super) fn each<E>(
        &self,
        visit: &mut impl FnMut(Position) -> Result<(), E>,
    ) -> Result<(), E> {
        visit(self.at)?;
        self.chains.iter().try_for_each(|chain| visit(chain.at))?;
        self.objects.iter().try_for_each(|&at| visit(at))?;
        self.flowtables.iter().try_for_each(|&at| visit(at))?;
        for set in &self.sets {
            visit(set.at)?;
            set.elements.iter().try_for_each(|&at| visit(at))?;
        }
        self.chains
            .iter()
            .flat_map(|chain| &chain.rules)
            .try_for_each(|&at| visit(at))
    }
}

/// A chain and its rules.
#[derive(Debug, Clone)]
pub(super) struct ChainIndex {
    pub(super) at: Position,
    pub(super) rules: Vec<Position>,
    /// Whether the position of a rule didn't match the preceding rule.
    pub(super) broken: bool,
}

/// A set, and the messages with its elements.
#[derive(Debug, Clone)]
pub(super) struct SetIndex {
    pub(super) at: Position,
    /// Whether it is a verdict map, whose elements may jump to chains.
    verdicts: bool,
    pub(super) elements: Vec<Position>,
    /// Maps elements to their messages, once an element has changed.
    pub(super) pieces: Option<Box<Pieces>>,
    /// Whether elements were added or removed since the kernel reported their number.
    pub(super) recounted: bool,
}

impl SetIndex {
    /// Returns the memory use in bytes.
    fn memory(&self) -> usize {
        let pieces = self.pieces.as_ref().map_or(0, |pieces| pieces.memory());
        self.elements.capacity() * size_of::<Position>() + pieces
    }
}

/// Objects that can be looked up by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Table(Family),
    Chain(u32),
    Set(u32),
}

/// Numbers by hashes; the map doesn't hash the key again.
pub(super) type ByHash = HashMap<u64, u32, BuildHasherDefault<Identity>>;

/// A hasher that returns its input.
#[derive(Debug, Clone, Default)]
pub(super) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Maps the hash of kind, parent and name to the index of the object in its parent. On collisions the objects are
/// compared.
#[derive(Debug, Clone, Default)]
struct Names {
    numbers: ByHash,
    /// Whether two names had the same hash.
    collided: bool,
    /// Number of objects removed since the map was built: each index may be too high by up to this number.
    removed: usize,
    hash: RandomState,
}

impl Names {
    fn get(&self, kind: Kind, name: &BStr) -> Option<usize> {
        let hash = self.hash.hash_one((kind, name));
        self.numbers.get(&hash).map(|&number| number as usize)
    }

    fn insert(&mut self, kind: Kind, name: &BStr, number: usize) {
        let hash = self.hash.hash_one((kind, name));
        match self.numbers.entry(hash) {
            Entry::Occupied(_) => self.collided = true,
            Entry::Vacant(entry) => _ = entry.insert(number as u32),
        }
    }
}

/// Finds the message of each object.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    pub(super) tables: Vec<TableIndex>,
    /// Built at the first lookup: a listing arrives in an order that requires none.
    names: OnceLock<Names>,
    hash: RandomState,
    last: Last,
}

/// Up to this number of tables a linear search is used.
const MAX_LINEAR_SEARCH: usize = 16;

/// The position of the last rule: the next one usually belongs to the same chain.
#[derive(Debug, Clone, Default)]
struct Last {
    family: Family,
    table_name: Vec<u8>,
    chain_name: Vec<u8>,
    table: usize,
    chain: usize,
    valid: bool,
    /// The last rule's handle.
    handle: u64,
    /// The set of the last elements.
    set: usize,
}

/// The result of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inserted {
    /// The message is indexed.
    Added,
    /// The parent doesn't exist.
    ParentMissing,
    /// The message isn't an object of a ruleset.
    Unrelated,
}

impl Index {
    /// Returns the map of all names.
    fn names(&self, arena: &Arena) -> &Names {
        self.names.get_or_init(|| {
            let mut names = Names::default();
            let chains: usize = self.tables.iter().map(|table| table.chains.len()).sum();
            names.numbers.reserve(chains);
            for (number, index) in self.tables.iter().enumerate() {
                if let Ok(table) = table_at(arena, index.at) {
                    names.insert(Kind::Table(table.family()), table.name(), number);
                }
                let table = number as u32;
                for (number, chain) in index.chains.iter().enumerate() {
                    if let Ok(chain) = chain_at(arena, chain.at) {
                        names.insert(Kind::Chain(table), chain.name(), number);
                    }
                }
                for (number, set) in index.sets.iter().enumerate() {
                    if let Ok(set) = set_at(arena, set.at) {
                        names.insert(Kind::Set(table), set.name(), number);
                    }
                }
            }
            names
        })
    }

    /// Returns the index of the object of this kind and name.
    fn find(
        &self,
        arena: &Arena,
        kind: Kind,
        name: &BStr,
        count: usize,
        is: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let names = self.names(arena);
        let highest = names.get(kind, name)?;
        let mut numbers = highest.saturating_sub(names.removed)..=highest;
        if let Some(number) = numbers.rfind(|&number| number < count && is(number)) {
            return Some(number);
        }
        // The map contains only the first of several names with the same hash.
        (0..count).find(|&number| is(number))
    }

    /// Adds the name of a new object.
    fn name(&mut self, kind: Kind, name: &BStr, number: usize) {
        if let Some(names) = self.names.get_mut() {
            names.insert(kind, name, number);
        }
    }

    /// Returns the index of a table.
    pub(super) fn table(&self, arena: &Arena, family: Family, name: &BStr) -> Option<usize> {
        let count = self.tables.len();
        let is = |number: usize| {
            table_at(arena, self.tables[number].at)
                .is_ok_and(|table| table.family() == family && table.name() == name)
        };
        if count <= MAX_LINEAR_SEARCH {
            return (0..count).find(|&number| is(number));
        }
        self.find(arena, Kind::Table(family), name, count, is)
    }

    /// Returns the index of a chain in its table.
    pub(super) fn chain(&self, arena: &Arena, table: usize, name: &BStr) -> Option<usize> {
        let chains = &self.tables.get(table)?.chains;
        let kind = Kind::Chain(table as u32);
        self.find(arena, kind, name, chains.len(), |number| {
            chain_at(arena, chains[number].at).is_ok_and(|chain| chain.name() == name)
        })
    }

    /// Returns the index of a set in its table.
    pub(super) fn set(&self, arena: &Arena, table: usize, name: &BStr) -> Option<usize> {
        let sets = &self.tables.get(table)?.sets;
        let is = |number: usize| set_at(arena, sets[number].at).is_ok_and(|set| set.name() == name);
        self.find(arena, Kind::Set(table as u32), name, sets.len(), is)
    }

    /// Indexes the message at this position, after all others of its kind.
    pub(super) fn insert(&mut self, arena: &Arena, at: Position) -> Result<Inserted, Malformed> {
        let message = arena.message(at)?;
        if message.kind >> 8 != u16::from(NFNL_SUBSYS_NFTABLES) {
            return Ok(Inserted::Unrelated);
        }
        match message.kind as u8 {
            NFT_MSG_NEWRULE => self.insert_rule(arena, at, &message),
            NFT_MSG_NEWCHAIN => self.insert_chain(arena, at, &message),
            NFT_MSG_NEWTABLE => {
                let table = TableRef::parse(&message)?;
                self.name(Kind::Table(table.family()), table.name(), self.tables.len());
                self.tables.push(TableIndex {
                    at,
                    chains: Vec::new(),
                    sets: Vec::new(),
                    objects: Vec::new(),
                    flowtables: Vec::new(),
                    uses: 0,
                    highest: None,
                });
                Ok(Inserted::Added)
            }
            NFT_MSG_NEWSET => {
                let set = SetRef::parse(&message)?;
                let Some(table) = self.table(arena, set.family(), set.table()) else {
                    return Ok(Inserted::ParentMissing);
                };
                let number = self.tables[table].sets.len();
                self.name(Kind::Set(table as u32), set.name(), number);
                self.tables[table].sets.push(SetIndex {
                    at,
                    verdicts: set.data_type() == Some(DataType::VERDICT),
                    elements: Vec::new(),
                    pieces: None,
                    recounted: false,
                });
                Ok(Inserted::Added)
            }
            NFT_MSG_NEWSETELEM => self.insert_elements(arena, at, &message),
            NFT_MSG_NEWOBJ => {
                let object = StatefulObjectRef::parse(&message)?;
                let Some(table) = self.table(arena, object.family(), object.table()) else {
                    return Ok(Inserted::ParentMissing);
                };
                self.tables[table].objects.push(at);
                Ok(Inserted::Added)
            }
            NFT_MSG_NEWFLOWTABLE => {
                let flowtable = FlowtableRef::parse(&message)?;
                let Some(table) = self.table(arena, flowtable.family(), flowtable.table()) else {
                    return Ok(Inserted::ParentMissing);
                };
                self.tables[table].flowtables.push(at);
                Ok(Inserted::Added)
            }
            _ => Ok(Inserted::Unrelated),
        }
    }

    fn insert_chain(
        &mut self,
        arena: &Arena,
        at: Position,
        message: &Message<'_>,
    ) -> Result<Inserted, Malformed> {
        let chain = ChainRef::parse(message)?;
        // The chains of a table are listed consecutively.
        let table = match self.tables.get(self.last.table) {
            Some(_) if self.last.is_in(chain.family(), chain.table()) => self.last.table,
            _ => match self.table(arena, chain.family(), chain.table()) {
                Some(table) => table,
                None => return Ok(Inserted::ParentMissing),
            },
        };
        self.last.enter_table(chain.family(), chain.table(), table);
        let number = self.tables[table].chains.len();
        self.name(Kind::Chain(table as u32), chain.name(), number);
        self.tables[table].chains.push(ChainIndex {
            at,
            rules: Vec::new(),
            broken: false,
        });
        Ok(Inserted::Added)
    }

    fn insert_rule(
        &mut self,
        arena: &Arena,
        at: Position,
        message: &Message<'_>,
    ) -> Result<Inserted, Malformed> {
        let rule = RuleRef::parse(message)?;
        let (family, table_name, chain_name) = (rule.family(), rule.table(), rule.chain());
        let same_table = self.last.is_in(family, table_name);
        if !(same_table && self.last.valid && self.last.chain_name == *chain_name) {
            let table = match same_table {
                true => Some(self.last.table),
                false => self.table(arena, family, table_name),
            };
            let Some(table) = table else {
                return Ok(Inserted::ParentMissing);
            };
            let Some(chain) = self.chain_of_rule(arena, table, chain_name) else {
                return Ok(Inserted::ParentMissing);
            };
            self.last.enter_table(family, table_name, table);
            self.last.enter(chain_name, chain);
            let rules = &self.tables[table].chains[chain].rules;
            self.last.handle = match rules.last() {
                Some(&last) => RuleRef::parse(&arena.message(last)?)?.handle(),
                None => 0,
            };
        }
        let table = self.last.table;
        let index = &mut self.tables[table].chains[self.last.chain];
        index.rules.push(at);
        // The rule's position detects lost and repeated rules.
        index.broken |= rule.position().unwrap_or(0) != self.last.handle;
        self.last.handle = rule.handle();
        self.tables[table].uses += 1 + u64::from(jumps(&rule)?);
        Ok(Inserted::Added)
    }

    /// Sets the chain of the next rules, to avoid a lookup.
    pub(super) fn expect_rules(&mut self, view: &ChainRef<'_>, table: usize, chain: usize) {
        if self.tables[table].chains[chain].rules.is_empty() {
            self.last.enter_table(view.family(), view.table(), table);
            self.last.enter(view.name(), chain);
            self.last.handle = 0;
        }
    }

    /// Returns the index of a rule's chain. In a listing it is usually the next one with rules.
    fn chain_of_rule(&self, arena: &Arena, table: usize, name: &BStr) -> Option<usize> {
        let chains = &self.tables[table].chains;
        let next = match self.last.valid && self.last.table == table {
            true => self.last.chain + 1,
            false => 0,
        };
        for (number, chain) in chains.iter().enumerate().skip(next).take(MAX_LINEAR_SEARCH) {
            if chain_at(arena, chain.at).is_ok_and(|chain| chain.name() == name) {
                return Some(number);
            }
        }
        self.chain(arena, table, name)
    }

    /// Removes the rules of a chain from the index, to insert them again.
    pub(super) fn forget_rules(
        &mut self,
        arena: &Arena,
        table: usize,
        chain: usize,
    ) -> Result<(), Malformed> {
        let rules = std::mem::take(&mut self.tables[table].chains[chain].rules);
        for at in rules {
            let rule = RuleRef::parse(&arena.message(at)?)?;
            let uses = &mut self.tables[table].uses;
            *uses = uses.saturating_sub(1 + u64::from(jumps(&rule)?));
        }
        self.last = Last::default();
        Ok(())
    }

    /// Returns the number of rules of each chain plus the jumps to it.
    pub(super) fn uses(&self, arena: &Arena, table: usize) -> Result<Vec<u64>, Malformed> {
        let index = &self.tables[table];
        let mut uses = vec![0; index.chains.len()];
        let mut count = |target: &BStr| {
            if let Some(chain) = self.chain(arena, table, target) {
                uses[chain] += 1;
            }
        };
        for chain in &index.chains {
            for &at in &chain.rules {
                let rule = RuleRef::parse(&arena.message(at)?)?;
                count(rule.chain());
                each_jump(&rule, &mut count)?;
            }
        }
        for set in index.sets.iter().filter(|set| set.verdicts) {
            for &at in &set.elements {
                let elements = ElementsRef::parse(&arena.message(at)?)?.elements();
                for element in elements.into_iter().flatten() {
                    if let Some(target) = element?.data().and_then(jump) {
                        count(&target);
                    }
                }
            }
        }
        Ok(uses)
    }

    fn insert_elements(
        &mut self,
        arena: &Arena,
        at: Position,
        message: &Message<'_>,
    ) -> Result<Inserted, Malformed> {
        let message = ElementsRef::parse(message)?;
        let Some(table) = self.table(arena, message.family(), message.table()) else {
            return Ok(Inserted::ParentMissing);
        };
        let name = message.set();
        let sets = &self.tables[table].sets;
        let is_hinted = sets
            .get(self.last.set)
            .is_some_and(|set| set_at(arena, set.at).is_ok_and(|set| set.name() == name));
        let set = match is_hinted {
            true => Some(self.last.set),
            false => self.set(arena, table, name),
        };
        let Some(set) = set else {
            return Ok(Inserted::ParentMissing);
        };
        self.last.set = set;
        let index = &mut self.tables[table].sets[set];
        let mut jumps = 0;
        for element in message.elements().into_iter().flatten() {
            let element = element?;
            jumps += u64::from(index.verdicts && element.data().and_then(jump).is_some());
        }
        index.elements.push(at);
        self.tables[table].uses += jumps;
        Ok(Inserted::Added)
    }

    /// Returns whether the numbers of a table's objects (`NFTA_TABLE_USE`) and of a set's elements (`NFTA_SET_COUNT`,
    /// Linux 6.16) match the kernel's counts, as far as these are exact, without duplicates.
    ///
    /// The kernel also counts uncommitted changes of other processes: a difference doesn't prove that something is
    /// missing. Elements that were left out are not counted.
    pub(super) fn adds_up(&self, arena: &Arena, read: ElementFilter) -> Result<bool, Malformed> {
        for table in &self.tables {
            let mut members = table.chains.len() + table.objects.len() + table.flowtables.len();
            // The kernel lists them in the order of creation.
            let (mut sets, mut objects, mut flowtables) = (
                AscendingHandles(0),
                AscendingHandles(0),
                AscendingHandles(0),
            );
            let mut in_order = true;
            for &object in &table.objects {
                let object = StatefulObjectRef::parse(&arena.message(object)?)?;
                in_order &= objects.is_ascending(object.handle());
            }
            for &flowtable in &table.flowtables {
                let flowtable = FlowtableRef::parse(&arena.message(flowtable)?)?;
                in_order &= flowtables.is_ascending(flowtable.handle());
            }
            for index in &table.sets {
                let set = set_at(arena, index.at)?;
                in_order &= sets.is_ascending(set.handle());
                let flags = set.flags().unwrap_or_default();
                // The kernel doesn't count anonymous sets.
                members += usize::from(!flags.contains(SetFlags::ANONYMOUS));
                // The kernel counts the bounds of ranges, timed-out elements, and elements added by rules.
                let inexact = SetFlags::INTERVAL | SetFlags::TIMEOUT | SetFlags::EVAL;
                if flags.intersects(inexact) || !read.contains(ElementFilter::of(&set)) {
                    continue;
                }
                let mut elements = 0;
                for &at in &index.elements {
                    let message = ElementsRef::parse(&arena.message(at)?)?;
                    let elements_here = message.elements().into_iter().flatten().flatten();
                    elements += elements_here
                        .filter(|element| !element.is_catch_all())
                        .count();
                }
                if set.count().is_some_and(|count| count as usize != elements) {
                    return Ok(false);
                }
            }
            let uses = table_at(arena, table.at)?.references();
            if !in_order || uses.is_some_and(|uses| uses as usize != members) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns a digest that is equal for two reads with the same tables, chains, sets, elements, objects and
    /// flowtables.
    pub(super) fn digest(&self, arena: &Arena) -> Result<u64, Malformed> {
        let mut digest = DefaultHasher::new();
        for table in &self.tables {
            table_at(arena, table.at)?.name().hash(&mut digest);
            for chain in &table.chains {
                (chain_at(arena, chain.at)?.name(), chain.rules.len()).hash(&mut digest);
            }
            for index in &table.sets {
                set_at(arena, index.at)?.name().hash(&mut digest);
                // Independent of the order, which changes in a hash table.
                let mut elements = 0u64;
                for &at in &index.elements {
                    let message = ElementsRef::parse(&arena.message(at)?)?;
                    for element in message.elements().into_iter().flatten() {
                        let mut one = DefaultHasher::new();
                        element?.key_bytes().hash(&mut one);
                        elements = elements.wrapping_add(one.finish());
                    }
                }
                elements.hash(&mut digest);
            }
            for &object in &table.objects {
                let object = StatefulObjectRef::parse(&arena.message(object)?)?;
                (object.object_type().0, object.name()).hash(&mut digest);
            }
            for &flowtable in &table.flowtables {
                let message = arena.message(flowtable)?;
                FlowtableRef::parse(&message)?.name().hash(&mut digest);
            }
        }
        Ok(digest.finish())
    }

    /// Returns whether an element appears twice in a set. Impossible in sets of intervals.
    pub(super) fn repeats(
        &self,
        arena: &Arena,
        table: usize,
        set: usize,
    ) -> Result<bool, Malformed> {
        let index = &self.tables[table].sets[set];
        let flags = SetRef::parse(&arena.message(index.at)?)?.flags();
        if flags.is_some_and(|flags| flags.contains(SetFlags::INTERVAL)) {
            return Ok(false); // a tree, or an array
        }
        let mut hashes = Vec::new();
        for &at in &index.elements {
            let elements = ElementsRef::parse(&arena.message(at)?)?.elements();
            for element in elements.into_iter().flatten() {
                hashes.push(self.hash.hash_one(element?.key_bytes()));
            }
        }
        hashes.sort_unstable();
        Ok(hashes.windows(2).any(|two| two[0] == two[1]))
    }

    /// Removes the elements of a set from the index, to insert them again.
    pub(super) fn forget_elements(
        &mut self,
        arena: &Arena,
        table: usize,
        set: usize,
    ) -> Result<(), Malformed> {
        let index = &mut self.tables[table].sets[set];
        let mut jumps = 0;
        for at in std::mem::take(&mut index.elements) {
            let elements = ElementsRef::parse(&arena.message(at)?)?.elements();
            for element in elements.into_iter().flatten() {
                jumps += u64::from(index.verdicts && element?.data().and_then(jump).is_some());
            }
        }
        let uses = &mut self.tables[table].uses;
        *uses = uses.saturating_sub(jumps);
        Ok(())
    }

    /// Returns how many elements of a table's verdict maps may have timed out: the kernel does not list them, but the
    /// use counts of their chains include them until the kernel collects them, in a set of intervals at its next
    /// change.
    pub(super) fn timed_out(&self, arena: &Arena, table: usize) -> Result<u64, Malformed> {
        let mut timed_out = 0u64;
        for index in self.tables[table].sets.iter().filter(|set| set.verdicts) {
            let set = SetRef::parse(&arena.message(index.at)?)?;
            let flags = set.flags().unwrap_or_default();
            if !flags.contains(SetFlags::TIMEOUT) {
                continue;
            }
            let Some(count) = set.count() else {
                return Ok(u64::MAX);
            };
            let mut listed = 0;
            for &at in &index.elements {
                let elements = ElementsRef::parse(&arena.message(at)?)?.elements();
                for element in elements.into_iter().flatten() {
                    listed += u64::from(!element?.is_interval_end());
                }
            }
            // For an interval tree the count is half of its nodes, rounded down.
            let count = u64::from(count) + u64::from(flags.contains(SetFlags::INTERVAL));
            timed_out = timed_out.saturating_add(count.saturating_sub(listed));
        }
        Ok(timed_out)
    }

    /// Returns whether verdict maps of a table lack their elements, so that some jumps are unknown.
    pub(super) fn lacks_jumps(
        &self,
        arena: &Arena,
        table: usize,
        read: ElementFilter,
    ) -> Result<bool, Malformed> {
        if read.is_all() {
            return Ok(false);
        }
        for index in self.tables[table].sets.iter().filter(|set| set.verdicts) {
            if !read.contains(ElementFilter::of(&set_at(arena, index.at)?)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sets the set of the next elements.
    pub(super) fn expect_elements(&mut self, set: usize) {
        self.last.set = set;
    }

    /// Returns the memory use in bytes.
    pub(super) fn memory(&self) -> usize {
        let positions = |list: &Vec<Position>| list.capacity() * size_of::<Position>();
        let of_tables: usize = self
            .tables
            .iter()
            .map(|table| {
                table.chains.capacity() * size_of::<ChainIndex>()
                    + table.sets.capacity() * size_of::<SetIndex>()
                    + positions(&table.objects)
                    + positions(&table.flowtables)
                    + table
                        .chains
                        .iter()
                        .map(|chain| positions(&chain.rules))
                        .sum::<usize>()
                    + table.sets.iter().map(SetIndex::memory).sum::<usize>()
            })
            .sum();
        let names = self
            .names
            .get()
            .map_or(0, |names| names.numbers.capacity() * 17);
        of_tables + self.tables.capacity() * size_of::<TableIndex>() + names
    }

    /// Frees unneeded memory.
    pub(super) fn close(&mut self) {
        self.tables.shrink_to_fit();
        for table in &mut self.tables {
            table.chains.shrink_to_fit();
        }
        self.last = Last::default();
    }
}

/// Checks that handles are ascending.
struct AscendingHandles(u64);

impl AscendingHandles {
    /// Returns `true` if the next handle is higher than the previous one.
    fn is_ascending(&mut self, handle: u64) -> bool {
        let rises = handle > self.0;
        self.0 = handle;
        rises
    }
}

impl Last {
    /// Moves to another chain of the table.
    fn enter(&mut self, name: &BStr, chain: usize) {
        self.chain_name.clear();
        self.chain_name.extend_from_slice(name);
        (self.chain, self.valid) = (chain, true);
    }

    fn is_in(&self, family: Family, table: &BStr) -> bool {
        self.family == family && self.table_name == *table && !table.is_empty()
    }

    /// Moves to another table, without a chain yet.
    fn enter_table(&mut self, family: Family, table_name: &BStr, table: usize) {
        if !self.is_in(family, table_name) || self.table != table {
            self.family = family;
            self.table_name.clear();
            self.table_name.extend_from_slice(table_name);
            self.table = table;
            self.valid = false;
        }
    }
}

/// Returns the target chain of a verdict.
fn jump(data: Data<'_>) -> Option<Name<'_>> {
    match data {
        Data::Verdict(Verdict::Jump(target) | Verdict::Goto(target)) => Some(target),
        _ => None,
    }
}

/// The start of an `immediate` in a list of expressions: the attribute `NFTA_EXPR_NAME` with that name.
const IMMEDIATE: [u8; 14] = {
    let [l0, l1] = 14u16.to_ne_bytes();
    let [k0, k1] = NFTA_EXPR_NAME.to_ne_bytes();
    [
        l0, l1, k0, k1, b'i', b'm', b'm', b'e', b'd', b'i', b'a', b't', b'e', 0,
    ]
};

/// Visits the target chains of a rule's verdicts.
pub(super) fn each_jump(
    rule: &RuleRef<'_>,
    visit: &mut impl FnMut(&BStr),
) -> Result<(), Malformed> {
    let Some(mut list) = rule
        .attributes()
        .find(NFTA_RULE_EXPRESSIONS)
        .map(Attributes::new)
    else {
        return Ok(());
    };
    while !list.at_end() {
        // Skips other expressions, nearly all, without parsing them.
        let (_, element) = list.advance()?;
        if element.starts_with(&IMMEDIATE)
            && let Some(attributes) = Attributes::new(element).find(NFTA_EXPR_DATA)
            && let Ok(immediate) = ImmediateRef::parse(attributes)
            && let Some(target) = immediate.data().and_then(jump)
        {
            visit(&target);
        }
    }
    Ok(())
}

/// Returns the number of a rule's verdicts with a target chain.
fn jumps(rule: &RuleRef<'_>) -> Result<u32, Malformed> {
    let mut count = 0;
    each_jump(rule, &mut |_| count += 1)?;
    Ok(count)
}

pub(super) fn table_at(arena: &Arena, at: Position) -> Result<TableRef<'_>, Malformed> {
    TableRef::parse(&arena.message(at)?)
}

pub(super) fn chain_at(arena: &Arena, at: Position) -> Result<ChainRef<'_>, Malformed> {
    ChainRef::parse(&arena.message(at)?)
}

pub(super) fn set_at(arena: &Arena, at: Position) -> Result<SetRef<'_>, Malformed> {
    SetRef::parse(&arena.message(at)?)
}
