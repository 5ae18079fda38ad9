//! The fake kernel's ruleset: tables and their members.
//!
//! A transaction works on a copy that shares unchanged data. Deleted objects stay in place, marked as dead, until the
//! commit, as in the kernel: a new rule can be positioned relative to a deleted one.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bstr::{BStr, BString};
use chainwright_sys::nf_tables::{
    NFT_CHAIN_BINDING, NFT_MSG_DELCHAIN, NFT_MSG_DELFLOWTABLE, NFT_MSG_DELOBJ, NFT_MSG_DELSET,
    NFT_MSG_DELTABLE, NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWSET,
    NFT_SET_ANONYMOUS, NFT_SET_CONCAT, NFT_SET_INTERVAL, NFT_TABLE_F_OWNER, NFT_TABLE_F_PERSIST,
};
#[cfg(feature = "trace")]
use hashbrown::HashMap;

use super::events::QueuedEvent;
use super::listed::{self, Detail};
use super::members::{Kind, Member, Members, ObjectKind};
use super::wire::{AttributeBuffer, Refusal, refuse};

/// A ruleset.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) tables: Vec<Arc<Table>>,
    /// The last table's handle.
    pub(super) handles: u64,
    /// Number of unnamed chains created so far.
    pub(super) unnamed_chains: u64,
    pub(super) generation: u32,
    /// The time that passed since the kernel started.
    pub(super) time: Duration,
    /// The tokens of rates (`limit`) that a packet reached.
    #[cfg(feature = "trace")]
    pub(super) buckets: Arc<HashMap<BucketKey, Bucket>>,
}

/// Identifies a `limit`: by the handle of its table; the handle of its rule, object or set; the number of its element;
/// and its index.
#[cfg(feature = "trace")]
pub(super) type BucketKey = (u64, u64, Option<u64>, usize);

/// The tokens of a `limit`, in nanoseconds of its rate, and the time when they were counted.
#[cfg(feature = "trace")]
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    pub(super) tokens: u128,
    pub(super) at: Duration,
}

impl Default for State {
    fn default() -> Self {
        Self {
            tables: Vec::new(),
            handles: 0,
            unnamed_chains: 0,
            generation: 1,
            time: Duration::ZERO,
            #[cfg(feature = "trace")]
            buckets: Arc::default(),
        }
    }
}

/// The existing network devices.
#[derive(Debug, Clone, Default)]
pub(super) struct Devices {
    pub(super) named: Vec<BString>,
    /// Whether a device of every name exists.
    pub(super) any: bool,
}

impl Devices {
    pub(super) fn has(&self, name: &BString) -> bool {
        self.any || self.named.contains(name)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) family: u8,
    pub(super) name: BString,
    pub(super) handle: u64,
    pub(super) flags: u32,
    /// Port of the socket that owns it.
    pub(super) owner: Option<u32>,
    pub(super) userdata: Option<Vec<u8>>,
    /// The last handle of a member.
    pub(super) handles: u64,
    pub(super) is_dead: bool,
    /// Whether chains were renamed after rules or elements that jump to them were added.
    pub(super) has_renamed_chains: bool,
    pub(super) chains: Members<Chain>,
    pub(super) sets: Members<Set>,
    pub(super) objects: Members<StatefulObject>,
    pub(super) flowtables: Members<Flowtable>,
}

#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub(super) base: Option<Base>,
    pub(super) flags: u32,
    pub(super) userdata: Option<Vec<u8>>,
    /// Whether a rule jumped to it at some time: a binding chain (`NFT_CHAIN_BINDING`) then belongs to that rule.
    pub(super) is_bound: bool,
    pub(super) rules: Vec<RuleSlot>,
}

/// The properties of a base chain.
#[derive(Debug, Clone)]
pub(super) struct Base {
    pub(super) chain_type: BString,
    pub(super) hook: u32,
    pub(super) priority: i32,
    /// Whether its hook is one of a device.
    pub(super) has_devices: bool,
    pub(super) devices: Vec<BString>,
    pub(super) policy: u32,
    /// Packets and bytes.
    pub(super) counters: Option<(u64, u64)>,
}

/// A rule at its position in a chain.
#[derive(Debug, Clone)]
pub(super) struct RuleSlot {
    pub(super) rule: Arc<Rule>,
    pub(super) is_dead: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) handle: u64,
    /// As listed, without the enclosing attribute.
    pub(super) expressions: Vec<u8>,
    pub(super) userdata: Option<Vec<u8>>,
    pub(super) references: Vec<Reference>,
}

/// A reference to another object of the table, by its handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    Chain(u64),
    Set(u64),
    /// A set that rules add to or delete from.
    UpdatedSet(u64),
    Object(u64),
    Flowtable(u64),
}

#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) flags: u32,
    pub(super) key_type: u32,
    pub(super) key_length: u32,
    pub(super) data_type: u32,
    pub(super) data_length: u32,
    pub(super) object_type: u32,
    /// In milliseconds.
    pub(super) timeout: u64,
    pub(super) gc_interval: u32,
    pub(super) policy: u32,
    pub(super) size: u32,
    /// Whether it was created with a size.
    pub(super) had_size: bool,
    /// The lengths of the fields of a concatenation.
    pub(super) fields: Vec<u32>,
    pub(super) userdata: Option<Vec<u8>>,
    /// The expressions of each new element, as listed, without the attribute headers.
    pub(super) expressions: Vec<Vec<u8>>,
    /// Whether a rule uses it, or used it before this transaction.
    pub(super) is_bound: bool,
    pub(super) elements: BTreeMap<Key, Arc<Element>>,
    /// Number of elements ever added.
    pub(super) added: u64,
}

impl Set {
    pub(super) const fn is_anonymous(&self) -> bool {
        self.flags & NFT_SET_ANONYMOUS != 0
    }

    /// Returns the number of elements except the catch-all element.
    pub(super) fn count(&self) -> u32 {
        const ALL_OTHERS: Key = Key {
            key: None,
            is_end: false,
        };
        let others = self.elements.contains_key(&ALL_OTHERS);
        (self.elements.len() - usize::from(others)) as u32
    }

    /// Returns `true` if the set is an interval tree, in which a range consists of two elements.
    pub(super) const fn is_tree(&self) -> bool {
        self.flags & NFT_SET_INTERVAL != 0 && self.flags & NFT_SET_CONCAT == 0
    }
}

/// Identifies an element in its set. At the same key an end sorts before a start, as the next range may start there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    /// `None` for the catch-all element.
    pub(super) key: Option<Vec<u8>>,
    pub(super) is_end: bool,
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_key = self.key.cmp(&other.key);
        by_key.then_with(|| other.is_end.cmp(&self.is_end))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) key: Key,
    /// The last key of a range, in a set of concatenated ranges.
    pub(super) last: Option<Vec<u8>>,
    /// As listed, without the enclosing attribute.
    pub(super) data: Option<Vec<u8>>,
    /// As listed, without the attribute headers.
    pub(super) expressions: Vec<Vec<u8>>,
    /// Handle and name.
    pub(super) object: Option<(u64, BString)>,
    pub(super) flags: u32,
    /// In milliseconds; 0 if it does not time out.
    pub(super) timeout: u64,
    pub(super) expiration: u64,
    pub(super) userdata: Option<Vec<u8>>,
    pub(super) references: Vec<Reference>,
    /// Number of elements added to the set before it.
    pub(super) number: u64,
}

#[derive(Debug, Clone)]
pub(super) struct StatefulObject {
    pub(super) object_type: u32,
    pub(super) data: Data,
    pub(super) userdata: Option<Vec<u8>>,
}

/// The data of a stateful object.
#[derive(Debug, Clone)]
pub(super) enum Data {
    /// As listed, without the enclosing attribute.
    Listed(Vec<u8>),
    /// Limit and used amount of a quota in bytes, and its flags.
    Quota {
        bytes: u64,
        consumed: u64,
        flags: u32,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Flowtable {
    pub(super) hook: u32,
    pub(super) priority: i32,
    pub(super) devices: Vec<BString>,
    pub(super) flags: u32,
}

/// Implements [`Kind`]: the field of the table, the listing, and the messages of each kind.
macro_rules! kinds {
    ($($kind:ident: $members:ident, $listed:ident, $new:ident, $gone:ident, $sort:ident;)*) => {$(
        impl Kind for $kind {
            const NEW: u8 = $new;
            const GONE: u8 = $gone;
            const OBJECT_KIND: ObjectKind = ObjectKind::$sort;

            fn of(table: &Table) -> &Members<Self> {
                &table.$members
            }

            fn of_mut(table: &mut Table) -> &mut Members<Self> {
                &mut table.$members
            }

            fn listed(table: &Table, member: &Member<Self>, detail: Detail) -> AttributeBuffer {
                listed::$listed(table, member, detail)
            }
        }
    )*};
}

kinds! {
    Chain: chains, chain, NFT_MSG_NEWCHAIN, NFT_MSG_DELCHAIN, Chain;
    Set: sets, set, NFT_MSG_NEWSET, NFT_MSG_DELSET, Set;
    StatefulObject: objects, object, NFT_MSG_NEWOBJ, NFT_MSG_DELOBJ, Object;
    Flowtable: flowtables, flowtable, NFT_MSG_NEWFLOWTABLE, NFT_MSG_DELFLOWTABLE, Flowtable;
}

impl Members<StatefulObject> {
    /// Returns the index of the object of this type and name.
    pub(super) fn of_type(&self, object_type: u32, name: &BStr) -> Result<usize, Refusal> {
        self.named_matching(name, |object| object.object_type == object_type)
    }
}

impl Table {
    /// Returns the number of members of the table.
    pub(super) fn uses(&self) -> u32 {
        let alive = [
            self.chains.count_alive(),
            self.sets.count_alive(),
            self.objects.count_alive(),
            self.flowtables.count_alive(),
        ];
        alive.iter().sum::<usize>() as u32
    }

    fn has_dead(&self) -> bool {
        self.chains.has_dead()
            || self.sets.has_dead()
            || self.objects.has_dead()
            || self.flowtables.has_dead()
    }

    fn remove_dead(&mut self) {
        self.chains.remove_dead();
        self.sets.remove_dead();
        self.objects.remove_dead();
        self.flowtables.remove_dead();
    }

    /// Allocates the next handle.
    pub(super) fn allocate_handle(&mut self) -> u64 {
        self.handles += 1;
        self.handles
    }

    /// Increments the use counts of the referenced objects.
    pub(super) fn acquire(&mut self, references: &[Reference]) {
        self.count(references, |uses| uses + 1);
    }

    /// Decrements the use counts of the referenced objects.
    pub(super) fn release(&mut self, references: &[Reference]) {
        self.count(references, |uses| uses.saturating_sub(1));
    }

    fn count(&mut self, references: &[Reference], counted: impl Fn(u32) -> u32) {
        fn uses<K: Kind>(table: &mut Table, handle: u64) -> Option<&mut u32> {
            let member = K::of_mut(table).edit_any(handle);
            member.map(|member| &mut member.uses)
        }
        for &reference in references {
            let uses = match reference {
                Reference::Chain(handle) => uses::<Chain>(self, handle),
                Reference::Set(handle) | Reference::UpdatedSet(handle) => uses::<Set>(self, handle),
                Reference::Object(handle) => uses::<StatefulObject>(self, handle),
                Reference::Flowtable(handle) => uses::<Flowtable>(self, handle),
            };
            if let Some(uses) = uses {
                *uses = counted(*uses);
            }
        }
    }
}

impl Chain {
    /// Returns `true` if the chain belongs to one rule.
    pub(super) const fn is_binding(&self) -> bool {
        self.flags & NFT_CHAIN_BINDING != 0
    }
}

impl Member<Chain> {
    /// Returns the number of its rules and of jumps to it.
    pub(super) fn holds_and_uses(&self) -> u32 {
        let rules = self.rules.iter().filter(|slot| !slot.is_dead).count();
        // The binding to a rule counts once more.
        rules as u32 + self.uses + u32::from(self.is_binding())
    }
}

impl State {
    /// Returns the index of the table with this name; `EPERM` if another port owns it.
    pub(super) fn table_named(
        &self,
        family: u8,
        name: &BStr,
        port: Option<u32>,
    ) -> Result<usize, Refusal> {
        let is =
            |table: &Arc<Table>| !table.is_dead && table.family == family && table.name == name;
        let number = self.tables.iter().position(is);
        self.owned_by(number, port)
    }

    /// Returns the index of the table with this handle, dead or alive: tables are sorted by handle.
    pub(super) fn index_of(&self, handle: u64) -> Option<usize> {
        let index_of = self
            .tables
            .binary_search_by_key(&handle, |table| table.handle);
        index_of.ok()
    }

    /// Returns the index of the table of this family with this handle.
    pub(super) fn table_of(
        &self,
        family: u8,
        handle: u64,
        port: Option<u32>,
    ) -> Result<usize, Refusal> {
        let is = |&number: &usize| {
            let table = &self.tables[number];
            !table.is_dead && table.family == family
        };
        self.owned_by(self.index_of(handle).filter(is), port)
    }

    fn owned_by(&self, number: Option<usize>, port: Option<u32>) -> Result<usize, Refusal> {
        let number = number.ok_or(refuse(libc::ENOENT))?;
        let owner = self.tables[number].owner;
        match (owner, port) {
            (Some(owner), Some(port)) if owner != port => Err(refuse(libc::EPERM)),
            _ => Ok(number),
        }
    }
}

impl State {
    /// Removes dead objects.
    pub(super) fn remove_dead(&mut self) {
        self.tables.retain(|table| !table.is_dead);
        for table in &mut self.tables {
            if table.has_dead() {
                Arc::make_mut(table).remove_dead();
            }
        }
    }

    /// Handles a closed socket: its tables are deleted, or lose their owner if they persist. Returns the events, which
    /// don't move the generation.
    pub(super) fn close_owner(&mut self, port: u32) -> Vec<QueuedEvent> {
        let mut events = Vec::new();
        let persists = |table: &Table| table.flags & NFT_TABLE_F_PERSIST != 0;
        self.tables.retain_mut(|table| {
            if table.owner != Some(port) {
                return true;
            }
            if persists(table) {
                let table = Arc::make_mut(table);
                table.owner = None;
                table.flags &= !NFT_TABLE_F_OWNER;
                return true;
            }
            events.push(QueuedEvent {
                message: NFT_MSG_DELTABLE,
                flags: 0,
                sequence: 0,
                is_echoed: false,
                family: table.family,
                attributes: listed::table(table, Detail::Gone),
            });
            false
        });
        events
    }
}
