//! Reads one part of a ruleset without the rest.
//!
//! This file alone determines the requests for each part: they are at most those of `nft list` (1.1.7), and don't
//! depend on the rest of the ruleset.
//!
//! | part | requests besides the two for the generation |
//! |---|---|
//! | any | the table by name, or a dump of the tables of the family |
//! | `Tables` | |
//! | `Chains` | a dump of chains |
//! | `Chain` | the chain, a dump of its rules; the same for each chain bound to one of them; the sets that they name, and the elements of the anonymous ones |
//! | `Sets`, `Maps`, `Meters` | a dump of sets, and the elements of those of this kind |
//! | `Set`, `Map`, `Meter` | the set, and its elements |
//! | `Flowtables` | a dump of flowtables |
//! | `Flowtable` | the flowtable |
//! | `Objects` | a dump of the objects of this type |
//! | `Object` | the object |
//! | `All` | [`Connection::snapshot_with`] |
//!
//! Several chains or sets by name share one dump.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bstr::{BStr, BString};
use chainwright_sys::nf_tables::{
    NFT_MSG_GETCHAIN, NFT_MSG_GETFLOWTABLE, NFT_MSG_GETOBJ, NFT_MSG_GETSET, NFT_MSG_GETTABLE,
    NFTA_CHAIN_NAME, NFTA_CHAIN_TABLE, NFTA_FLOWTABLE_NAME, NFTA_FLOWTABLE_TABLE, NFTA_SET_NAME,
    NFTA_SET_TABLE, NFTA_TABLE_NAME,
};

use super::index::{Inserted, chain_at, set_at, table_at};
use super::read::{MissingRules, Reader, ReplySocket, uses};
use super::rule_members::{DEPTH, ObjectReference, each_name};
use super::{ElementFilter, Snapshot, SnapshotError, SnapshotOptions, SnapshotTable};
use crate::netlink::{Error, MessageWriter};
use crate::nft::change_detector::Watch;
use crate::nft::connection::Connection;
use crate::nft::expr::ObjectType;
use crate::nft::generation::Generation;
use crate::nft::object::Identified as _;
use crate::nft::scope::Scope;
use crate::nft::{ChainRef, FlowtableRef, StatefulObjectRef};
use crate::nft::{Family, ObjectId, RuleRef, SetFlags, SetRef};

/// Above this number of sets, a dump of all sets of the table is cheaper than a request for each.
const MANY_SETS: usize = 32;

/// Maximum number of times that a part is read separately, during changes by others, before everything is read.
const ATTEMPTS: u32 = 32;

/// The part of a ruleset that is read or listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Part<'p> {
    /// Everything: `list ruleset`, `list table`.
    #[default]
    All,
    /// The names of tables: `list tables`.
    Tables,
    /// Chains without their rules: `list chains`.
    Chains,
    /// One chain: `list chain`.
    Chain(&'p [u8]),
    /// Sets: `list sets`.
    Sets,
    /// One set: `list set`.
    Set(&'p [u8]),
    /// Maps: `list maps`.
    Maps,
    /// One map: `list map`.
    Map(&'p [u8]),
    /// Sets and maps that rules can update, and those created by `meter` in a rule: `list meters`.
    Meters,
    /// One of them: `list meter`.
    Meter(&'p [u8]),
    /// Flowtables: `list flowtables`.
    Flowtables,
    /// One flowtable: `list flowtable`.
    Flowtable(&'p [u8]),
    /// Stateful objects of a type: `list counters`, `list quotas`, ….
    Objects(ObjectType),
    /// One stateful object: `list counter`, ….
    Object(ObjectType, &'p [u8]),
}

impl Part<'_> {
    /// Returns `true` if the part is a single named object.
    const fn is_one(&self) -> bool {
        match self {
            Self::Chain(_)
            | Self::Set(_)
            | Self::Map(_)
            | Self::Meter(_)
            | Self::Flowtable(_)
            | Self::Object(..) => true,
            Self::All
            | Self::Tables
            | Self::Chains
            | Self::Sets
            | Self::Maps
            | Self::Meters
            | Self::Flowtables
            | Self::Objects(_) => false,
        }
    }

    /// Returns `true` if a table contains the part.
    #[doc(hidden)]
    pub fn is_in(&self, table: &SnapshotTable<'_>) -> bool {
        let set = |name: &[u8], map| {
            let found = table.set(name);
            found.is_some_and(|set| is_map(set.set().flags().unwrap_or_default()) == map)
        };
        match *self {
            Self::Chain(name) => table.chain(name).is_some(),
            Self::Set(name) => set(name, false),
            Self::Map(name) => set(name, true),
            Self::Meter(name) => table.set(name).is_some_and(|set| self.has_set(&set.set())),
            Self::Flowtable(name) => table.flowtable(name).is_some(),
            Self::Object(object, name) => table.object(object, name).is_some(),
            Self::Objects(kind) => {
                let mut objects = table.objects();
                objects.any(|object| object.object_type() == kind)
            }
            _ => true,
        }
    }

    #[doc(hidden)]
    pub fn has_object(&self, object: &StatefulObjectRef<'_>) -> bool {
        match *self {
            Self::All => true,
            Self::Objects(kind) => object.object_type() == kind,
            Self::Object(kind, name) => object.object_type() == kind && object.name() == name,
            _ => false,
        }
    }

    #[doc(hidden)]
    pub fn has_set(&self, set: &SetRef<'_>) -> bool {
        let flags = set.flags().unwrap_or_default();
        let is_dynamic = flags.contains(SetFlags::EVAL);
        let map = is_map(flags);
        match *self {
            Self::Meters => is_dynamic,
            Self::Meter(name) => is_dynamic && set.name() == name,
            _ if flags.contains(SetFlags::ANONYMOUS) => false,
            Self::All => true,
            Self::Sets => !map,
            Self::Maps => map,
            Self::Set(name) => !map && set.name() == name,
            Self::Map(name) => map && set.name() == name,
            _ => false,
        }
    }

    #[doc(hidden)]
    pub fn has_flowtable(&self, flowtable: &FlowtableRef<'_>) -> bool {
        match *self {
            Self::All | Self::Flowtables => true,
            Self::Flowtable(name) => flowtable.name() == name,
            _ => false,
        }
    }

    #[doc(hidden)]
    pub fn has_chain(&self, chain: &ChainRef<'_>) -> bool {
        match *self {
            Self::All | Self::Chains => true,
            Self::Chain(name) => chain.name() == name,
            _ => false,
        }
    }
}

/// Returns `true` if a set is a map of values or objects.
#[doc(hidden)]
pub const fn is_map(flags: SetFlags) -> bool {
    flags.intersects(SetFlags::MAP.union(SetFlags::OBJECT))
}

/// Returns `true` if `meter` created a set.
#[doc(hidden)]
pub fn is_meter(set: &SetRef<'_>) -> bool {
    let flags = set.flags().unwrap_or_default();
    flags.contains(SetFlags::ANONYMOUS | SetFlags::EVAL)
}

/// A part of a ruleset of one generation. It contains only what the method of [`Connection`] documents; the existence
/// of any other object is unknown. Therefore it cannot be restored, saved, or compared.
#[derive(Debug, Clone, Default)]
pub struct PartialSnapshot(Snapshot);

impl PartialSnapshot {
    /// Iterates over the tables in the kernel's order.
    pub fn tables(&self) -> impl ExactSizeIterator<Item = SnapshotTable<'_>> {
        self.0.tables()
    }

    /// Returns its generation; `None` if the ruleset changed during the read.
    #[must_use]
    pub const fn generation(&self) -> Option<Generation> {
        self.0.generation()
    }
}

/// Formats like a [`Snapshot`].
impl fmt::Display for PartialSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialSnapshot {
    #[doc(hidden)]
    pub fn into_inner(self) -> Snapshot {
        self.0
    }
}

impl From<Snapshot> for PartialSnapshot {
    fn from(whole: Snapshot) -> Self {
        Self(whole)
    }
}

impl Connection {
    /// Reads the tables, the chains whose names `admits` accepts, their rules, and what printing these requires: the
    /// sets that they name, the elements of the anonymous ones, and the chains that are bound to them.
    ///
    /// ```
    /// # fn main() -> Result<(), chainwright::Error> {
    /// # chainwright_testing::Sandbox::new()?.run(|| {
    /// use chainwright::nft::{Connection, Scope};
    /// let mut nft = Connection::open()?;
    /// let part = nft.snapshot_chains(Scope::all(), |name| name.starts_with(b"KUBE-"))?;
    /// for chain in part.tables().flat_map(|table| table.chains()) {
    ///     println!("{} has {} rules", chain.chain(), chain.rules().len());
    /// }
    /// # Ok::<(), chainwright::Error>(()) })?
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub fn snapshot_chains(
        &mut self,
        scope: Scope<'_>,
        admits: impl Fn(&BStr) -> bool,
    ) -> Result<PartialSnapshot, SnapshotError> {
        let elements = ElementFilter::ANONYMOUS;
        self.partial(&scope, elements, false, |reader, scope| {
            reader.tables(scope)?;
            reader.chains(scope, &|chain| admits(chain.name()))?;
            for table in 0..reader.snapshot.index.tables.len() {
                let chains = 0..reader.snapshot.index.tables[table].chains.len();
                reader.rules_with_parts(table, chains.collect())?;
            }
            Ok(())
        })
    }

    /// Reads the tables, the sets and maps that `admits` accepts, and their elements.
    ///
    /// ```
    /// # fn main() -> Result<(), chainwright::Error> {
    /// # chainwright_testing::Sandbox::new()?.run(|| {
    /// use chainwright::nft::{Connection, Scope};
    /// let mut nft = Connection::open()?;
    /// let part = nft.snapshot_sets(Scope::all(), |set| set.name() == "blocked")?;
    /// for set in part.tables().flat_map(|table| table.sets()) {
    ///     println!("{} has {} elements", set.set(), set.element_count());
    /// }
    /// # Ok::<(), chainwright::Error>(()) })?
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub fn snapshot_sets(
        &mut self,
        scope: Scope<'_>,
        admits: impl Fn(&SetRef<'_>) -> bool,
    ) -> Result<PartialSnapshot, SnapshotError> {
        self.partial(&scope, ElementFilter::all(), false, |reader, scope| {
            reader.tables(scope)?;
            reader.sets(scope, &admits)?;
            reader.elements(|_| true)
        })
    }

    /// Reads only these parts of the tables, with at most the requests of `nft list`. For a chain ([`Part::Chain`]) it
    /// reads the same as [`snapshot_chains`](Self::snapshot_chains). The options select the sets whose elements are
    /// read.
    ///
    /// ```
    /// # fn main() -> Result<(), chainwright::Error> {
    /// # chainwright_testing::Sandbox::new()?.run(|| {
    /// use chainwright::nft::{Connection, Family, Part, Scope, SnapshotOptions};
    /// let mut nft = Connection::open()?;
    /// let (scope, options) = (Scope::table(Family::IP, "nat"), SnapshotOptions::default());
    /// let part = nft.snapshot_parts(scope, &[Part::Map(b"services")], options)?;
    /// for map in part.tables().filter_map(|table| table.set("services")) {
    ///     println!("{} has {} elements", map.set(), map.element_count());
    /// }
    /// # Ok::<(), chainwright::Error>(()) })?
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub fn snapshot_parts(
        &mut self,
        scope: Scope<'_>,
        parts: &[Part<'_>],
        options: SnapshotOptions,
    ) -> Result<PartialSnapshot, SnapshotError> {
        if parts.contains(&Part::All) {
            return self.snapshot_with(scope, options).map(PartialSnapshot);
        }
        let mut elements = options.elements;
        if parts.iter().all(|part| matches!(part, Part::Chain(_))) {
            elements &= ElementFilter::ANONYMOUS;
        }
        let alone = matches!(parts, [part] if part.is_one());
        self.partial(&scope, elements, alone, |reader, scope| {
            reader.parts(scope, parts)
        })
    }

    /// Reads a part like [`consistent`](Self::consistent). If some attempts were interrupted by changes, it reads
    /// everything, because that read can be repaired.
    fn partial(
        &mut self,
        scope: &Scope<'_>,
        elements: ElementFilter,
        alone: bool,
        read: impl Fn(&mut Reader<'_>, &Scope<'_>) -> Result<(), Error>,
    ) -> Result<PartialSnapshot, SnapshotError> {
        let retry = self.session.retry;
        self.session.retry.attempts = retry.attempts.min(ATTEMPTS);
        let part = self.consistent(scope, elements, alone, read);
        self.session.retry = retry;
        let read = match part {
            Err(SnapshotError::Interrupted { .. }) if retry.attempts > ATTEMPTS => {
                self.snapshot_with(scope.clone(), SnapshotOptions { elements })
            }
            part => part,
        };
        read.map(PartialSnapshot)
    }

    /// Reads until the result is of one generation. `alone` means that changes of other tables than that of the scope
    /// cannot affect the read: then only this table must remain unchanged.
    pub(super) fn consistent(
        &mut self,
        scope: &Scope<'_>,
        elements: ElementFilter,
        alone: bool,
        read: impl Fn(&mut Reader<'_>, &Scope<'_>) -> Result<(), Error>,
    ) -> Result<Snapshot, SnapshotError> {
        let mut attempts = self.session.retry.begin();
        let mut watch = None;
        loop {
            if alone && watch.is_none() && attempts.made() > 1 && scope.table.is_some() {
                watch = Watch::open(self);
            }
            if let Some(watch) = &mut watch {
                watch.begin();
            }
            let generation = self.stable_generation()?;
            let empty = Snapshot::of(scope.clone().into_owned(), elements);
            let mut reader = Reader::of(self, empty);
            let done = read(&mut reader, scope);
            let (mut snapshot, missing) = (reader.snapshot, reader.missing);
            let consistent = reader.consistent && missing.is_none();
            match done {
                Ok(()) => {}
                Err(error) if error.allows(&mut attempts) => continue,
                Err(error) => return Err(error.into()),
            }
            snapshot.close();
            if consistent {
                let now = self.generation()?;
                let unchanged_until = now == generation
                    || watch.is_some_and(|mut watch| {
                        watch.unchanged_until(std::slice::from_ref(scope), now)
                    });
                if unchanged_until {
                    snapshot.generation = Some(now);
                    return Ok(snapshot);
                }
                watch = None;
            }
            if !attempts.again() {
                return Err(SnapshotError::not_consistent(snapshot, missing, &attempts));
            }
        }
    }
}

impl Reader<'_> {
    pub(super) fn parts(&mut self, scope: &Scope<'_>, parts: &[Part<'_>]) -> Result<(), Error> {
        self.tables(scope)?;
        if self.snapshot.index.tables.is_empty() {
            return Ok(());
        }
        self.parts_of_objects(scope, parts)?;
        self.parts_of_sets(scope, parts)?;
        self.parts_of_chains(scope, parts)
    }

    /// Reads the stateful objects and the flowtables of parts.
    fn parts_of_objects(&mut self, scope: &Scope<'_>, parts: &[Part<'_>]) -> Result<(), Error> {
        if parts.contains(&Part::Flowtables) {
            self.flowtables(scope)?;
        }
        for part in parts {
            match *part {
                Part::Objects(object_type) => self.objects(scope, Some(object_type))?,
                Part::Object(object_type, name) if !parts.contains(&Part::Objects(object_type)) => {
                    for table in 0..self.snapshot.index.tables.len() {
                        let (family, of) = self.table_name(table)?;
                        let object = ObjectId::new(family, of, object_type, name);
                        self.insert_if_exists(
                            "look up an object",
                            NFT_MSG_GETOBJ,
                            family,
                            |writer| {
                                object.write_identity(writer);
                            },
                        )?;
                    }
                }
                Part::Flowtable(name) if !parts.contains(&Part::Flowtables) => {
                    for table in 0..self.snapshot.index.tables.len() {
                        let (family, of) = self.table_name(table)?;
                        let request = "look up a flowtable";
                        self.insert_if_exists(request, NFT_MSG_GETFLOWTABLE, family, |writer| {
                            writer
                                .string(NFTA_FLOWTABLE_TABLE, &of)
                                .string(NFTA_FLOWTABLE_NAME, name);
                        })?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the sets of parts with their elements.
    fn parts_of_sets(&mut self, scope: &Scope<'_>, parts: &[Part<'_>]) -> Result<(), Error> {
        let mut names: BTreeMap<BString, Vec<Part<'_>>> = BTreeMap::new();
        let mut kinds = Vec::new();
        for part in parts {
            match *part {
                Part::Set(name) | Part::Map(name) | Part::Meter(name) => {
                    names.entry(name.into()).or_default().push(*part);
                }
                Part::Sets | Part::Maps | Part::Meters => kinds.push(*part),
                _ => {}
            }
        }
        let is_of_kind = |set: &SetRef<'_>| kinds.iter().any(|part| part.has_set(set));
        let named = |set: &SetRef<'_>| names.get(set.name());
        if !kinds.is_empty() || names.len() > 1 {
            self.sets(scope, &|set| is_of_kind(set) || named(set).is_some())?;
        }
        for table in 0..self.snapshot.index.tables.len() {
            for name in names.keys() {
                self.one_set(table, name.as_ref())?;
            }
        }
        self.elements(|set| {
            let named = named(set).into_iter().flatten();
            is_of_kind(set) || named.into_iter().any(|part| part.has_set(set))
        })
    }

    /// Reads the chains of parts, and the rules of the named ones.
    fn parts_of_chains(&mut self, scope: &Scope<'_>, parts: &[Part<'_>]) -> Result<(), Error> {
        let names: BTreeSet<&BStr> = parts
            .iter()
            .filter_map(|part| match *part {
                Part::Chain(name) => Some(name.into()),
                _ => None,
            })
            .collect();
        let all = parts.contains(&Part::Chains);
        if all || names.len() > 1 {
            self.chains(scope, &|chain| all || names.contains(chain.name()))?;
        }
        for table in 0..self.snapshot.index.tables.len() {
            let mut chains = Vec::with_capacity(names.len());
            for name in &names {
                chains.extend(self.one_chain(table, name)?);
            }
            self.rules_with_parts(table, chains)?;
        }
        Ok(())
    }

    /// Returns the index of a table, after a lookup if necessary.
    pub(super) fn one_table(
        &mut self,
        family: Family,
        name: &BStr,
    ) -> Result<Option<usize>, Error> {
        let find = |this: &Self| {
            let Snapshot { index, arena, .. } = &this.snapshot;
            index.table(arena, family, name)
        };
        if let Some(known) = find(self) {
            return Ok(Some(known));
        }
        self.insert_if_exists("look up a table", NFT_MSG_GETTABLE, family, |writer| {
            writer.string(NFTA_TABLE_NAME, name);
        })?;
        Ok(find(self))
    }

    /// Returns the family and the name of a table.
    pub(super) fn table_name(&self, table: usize) -> Result<(Family, BString), Error> {
        let at = self.snapshot.index.tables[table].at;
        let table = table_at(&self.snapshot.arena, at)?;
        Ok((table.family(), table.name().to_owned()))
    }

    /// Returns the index of a chain, after a lookup if necessary.
    pub(super) fn one_chain(&mut self, table: usize, name: &BStr) -> Result<Option<usize>, Error> {
        let find = |this: &Self| this.snapshot.index.chain(&this.snapshot.arena, table, name);
        if let Some(known) = find(self) {
            return Ok(Some(known));
        }
        let (family, of) = self.table_name(table)?;
        self.insert_if_exists("look up a chain", NFT_MSG_GETCHAIN, family, |writer| {
            writer
                .string(NFTA_CHAIN_TABLE, &of)
                .string(NFTA_CHAIN_NAME, name);
        })?;
        Ok(find(self))
    }

    /// Returns the index of a set, after a lookup if necessary. Failing transactions of others can shift a dump, so a
    /// set that was not listed is looked up.
    fn one_set(&mut self, table: usize, name: &BStr) -> Result<Option<usize>, Error> {
        let find = |this: &Self| this.snapshot.index.set(&this.snapshot.arena, table, name);
        if let Some(known) = find(self) {
            return Ok(Some(known));
        }
        let (family, of) = self.table_name(table)?;
        self.insert_if_exists("look up a set", NFT_MSG_GETSET, family, |writer| {
            writer
                .string(NFTA_SET_TABLE, &of)
                .string(NFTA_SET_NAME, name);
        })?;
        Ok(find(self))
    }

    /// Reads sets without their elements; returns the indices of those that exist.
    pub(super) fn sets_named(
        &mut self,
        table: usize,
        names: &BTreeSet<BString>,
    ) -> Result<Vec<usize>, Error> {
        let Snapshot { index, arena, .. } = &self.snapshot;
        let mut missing = names.clone();
        missing.retain(|name| index.set(arena, table, name.as_ref()).is_none());
        if missing.len() > MANY_SETS {
            let (family, of) = self.table_name(table)?;
            let scope = Scope::table(family, of);
            self.sets(&scope, &|set| missing.contains(set.name()))?;
        }
        let mut sets = Vec::with_capacity(names.len());
        for name in names {
            sets.extend(self.one_set(table, name.as_ref())?);
        }
        Ok(sets)
    }

    /// Looks up an object; returns whether it exists. Its absence is valid if the generation is the same at the end.
    pub(super) fn insert_if_exists(
        &mut self,
        request: &'static str,
        message: u8,
        family: Family,
        content: impl Fn(&mut MessageWriter<'_>),
    ) -> Result<bool, Error> {
        let Some(at) = self.look_up(request, message, family, content)? else {
            return Ok(false);
        };
        let Snapshot { index, arena, .. } = &mut self.snapshot;
        Ok(index.insert(arena, at)? == Inserted::Added)
    }

    /// Reads the rules of chains, and the objects that belong to them or that they name: the chains that are bound to
    /// them, the sets, and the elements of anonymous sets.
    fn rules_with_parts(&mut self, table: usize, mut chains: Vec<usize>) -> Result<(), Error> {
        let mut sets = BTreeSet::new();
        for _ in 0..=DEPTH {
            let mut bound = BTreeSet::new();
            for chain in chains {
                // Even if the use count is 0: an uncommitted transaction of another process changes the count.
                self.rules_of(table, chain, Some(ReplySocket::Long))?;
                // Each rule has the handle of the preceding one.
                let index = &self.snapshot.index.tables[table].chains[chain];
                self.consistent &= !index.broken;
                // Nothing jumps to a base chain, so its use count is the number of rules.
                let view = chain_at(&self.snapshot.arena, index.at)?;
                let (found, expected) = (index.rules.len() as u64, uses(&view));
                if view.hook().is_some() && found != u64::from(expected) {
                    self.missing.get_or_insert_with(|| MissingRules {
                        chain: view.to_string(),
                        found,
                        expected,
                    });
                }
                for &rule in &index.rules {
                    let rule = RuleRef::parse(&self.snapshot.arena.message(rule)?)?;
                    each_name(&rule, &mut |name| match name {
                        ObjectReference::Set(name) => _ = sets.insert(name.to_owned()),
                        // The kernel's names of bound chains.
                        ObjectReference::Chain(name) if name.starts_with(b"__chain") => {
                            bound.insert(name.to_owned());
                        }
                        _ => {}
                    });
                }
            }
            chains = Vec::new();
            for name in bound {
                let is_known = (self.snapshot.index)
                    .chain(&self.snapshot.arena, table, name.as_ref())
                    .is_some();
                if !is_known {
                    chains.extend(self.one_chain(table, name.as_ref())?);
                }
            }
            if chains.is_empty() {
                break;
            }
        }
        self.sets_of_rules(table, &sets)
    }

    /// Reads sets that rules of a table name, and the elements of anonymous ones except meters.
    fn sets_of_rules(&mut self, table: usize, names: &BTreeSet<BString>) -> Result<(), Error> {
        let sets = self.sets_named(table, names)?;
        self.consistent &= sets.len() == names.len(); // rules keep their sets alive
        for set in sets {
            let at = self.snapshot.index.tables[table].sets[set].at;
            let view = set_at(&self.snapshot.arena, at)?;
            let flags = view.flags().unwrap_or_default();
            if flags.contains(SetFlags::ANONYMOUS) && !is_meter(&view) {
                self.whole_elements_of(table, set)?;
            }
        }
        Ok(())
    }
}
