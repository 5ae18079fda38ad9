//! The events of a committed transaction, one step at a time, and the changes that take effect at the commit.

use std::sync::Arc;

use bstr::BString;
use chainwright_sys::nf_tables::{
    NFT_MSG_DELRULE, NFT_MSG_DELSETELEM, NFT_MSG_DELTABLE, NFT_MSG_NEWRULE, NFT_MSG_NEWSETELEM,
    NFT_MSG_NEWTABLE,
};

use super::listed::{self, Detail};
use super::members::{Kind, ObjectKind};
use super::state::{Chain, Element, Flowtable, Key, Reference, Rule, Set, StatefulObject, Table};
use super::wire::AttributeBuffer;

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueuedEvent {
    /// `NFT_MSG_*`.
    pub(super) message: u8,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    /// Whether the event is also sent to the committing socket.
    pub(super) is_echoed: bool,
    pub(super) family: u8,
    pub(super) attributes: AttributeBuffer,
}

/// A change that a transaction made in a table, by handles; its event is built at the commit.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// The table is new, or its flags changed.
    Table,
    TableGone,
    /// A chain, set, object or flowtable is new, or was changed immediately.
    Member(ObjectKind, u64),
    MemberGone(ObjectKind, u64),
    /// The update of a chain, which takes effect at the commit.
    ChainUpdate(u64, ChainUpdate),
    /// The update of a set, which takes effect at the commit.
    SetUpdate(u64, SetUpdate),
    Rule {
        chain: u64,
        rule: Arc<Rule>,
    },
    RuleGone {
        chain: u64,
        rule: Arc<Rule>,
    },
    Element {
        set: u64,
        element: Arc<Element>,
    },
    /// A new timeout of an element, in milliseconds.
    ElementUpdate {
        set: u64,
        key: Key,
        timeout: u64,
        expiration: u64,
    },
    ElementGone {
        set: u64,
        element: Arc<Element>,
    },
}

/// The changed properties of a chain.
#[derive(Debug, Clone, Default)]
pub(super) struct ChainUpdate {
    pub(super) name: Option<BString>,
    pub(super) policy: Option<u32>,
    pub(super) counters: Option<(u64, u64)>,
    pub(super) added_devices: Vec<BString>,
    pub(super) deleted_devices: Vec<BString>,
}

impl ChainUpdate {
    /// Applies the update except for the name.
    fn make(self, chain: &mut Chain) {
        if let Some(base) = &mut chain.base {
            base.policy = self.policy.unwrap_or(base.policy);
            base.counters = self.counters.or(base.counters);
            let deleted = self.deleted_devices;
            base.devices.retain(|device| !deleted.contains(device));
            base.devices.extend(self.added_devices);
        }
    }
}

/// The changed properties of a set.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetUpdate {
    /// 0 leaves the size unchanged.
    pub(super) size: u32,
    /// Both in milliseconds.
    pub(super) timeout: u64,
    pub(super) gc_interval: u32,
}

impl SetUpdate {
    const fn make(self, set: &mut Set) {
        if self.size != 0 {
            set.size = self.size;
        }
        (set.timeout, set.gc_interval) = (self.timeout, self.gc_interval);
    }
}

/// The type and the attributes of an event.
type Event = Option<(u8, AttributeBuffer)>;

impl Step {
    /// Applies the step and returns its event; `None` if the kernel sends none.
    pub(super) fn take_effect(self, table: &mut Table) -> Event {
        match self {
            Self::Table => Some((NFT_MSG_NEWTABLE, listed::table(table, Detail::Whole))),
            Self::TableGone => Some((NFT_MSG_DELTABLE, listed::table(table, Detail::Gone))),
            Self::Member(sort, handle) => match sort {
                ObjectKind::Chain => new_event::<Chain>(table, handle),
                ObjectKind::Set => new_event::<Set>(table, handle),
                ObjectKind::Object => new_event::<StatefulObject>(table, handle),
                ObjectKind::Flowtable => new_event::<Flowtable>(table, handle),
            },
            Self::MemberGone(sort, handle) => match sort {
                ObjectKind::Chain if table.chains.find_any(handle)?.is_binding() => None,
                ObjectKind::Chain => deleted_event::<Chain>(table, handle),
                ObjectKind::Set => deleted_event::<Set>(table, handle),
                ObjectKind::Object => deleted_event::<StatefulObject>(table, handle),
                ObjectKind::Flowtable => deleted_event::<Flowtable>(table, handle),
            },
            Self::ChainUpdate(handle, mut update) => {
                if let Some(name) = update.name.take() {
                    table.has_renamed_chains = true;
                    table.chains.rename(handle, name);
                }
                update.make(table.chains.edit_any(handle)?);
                new_event::<Chain>(table, handle)
            }
            Self::SetUpdate(handle, update) => {
                update.make(table.sets.edit_any(handle)?);
                new_event::<Set>(table, handle)
            }
            Self::Rule { chain, rule } => {
                let chain = table.chains.find_any(chain)?;
                let mut rules = chain.rules.iter();
                let at = rules.position(|slot| Arc::ptr_eq(&slot.rule, &rule));
                let before = at.and_then(|at| chain.rules.get(at.checked_sub(1)?));
                let before = before.map(|slot| slot.rule.handle);
                Some((NFT_MSG_NEWRULE, listed::rule(table, chain, &rule, before)))
            }
            Self::RuleGone { chain, rule } => {
                let of = table.chains.edit_any(chain)?;
                (of.rules).retain(|slot| !Arc::ptr_eq(&slot.rule, &rule));
                unbind(table, &rule.references);
                let of = table.chains.find_any(chain)?;
                // The kernel sends no events for rules of a binding chain.
                let events = !of.is_binding();
                events.then(|| (NFT_MSG_DELRULE, listed::rule(table, of, &rule, None)))
            }
            Self::Element { set, element } => {
                element_event(table, NFT_MSG_NEWSETELEM, set, &element)
            }
            Self::ElementUpdate {
                set,
                key,
                timeout,
                expiration,
            } => {
                let element = table.sets.edit_any(set)?.elements.get_mut(&key)?;
                let changed = Arc::make_mut(element);
                (changed.timeout, changed.expiration) = (timeout, expiration);
                let element = Arc::clone(element);
                element_event(table, NFT_MSG_NEWSETELEM, set, &element)
            }
            Self::ElementGone { set, element } => {
                element_event(table, NFT_MSG_DELSETELEM, set, &element)
            }
        }
    }
}

fn new_event<K: Kind>(table: &Table, handle: u64) -> Event {
    let member = K::of(table).find_any(handle)?;
    Some((K::NEW, K::listed(table, member, Detail::Whole)))
}

fn deleted_event<K: Kind>(table: &Table, handle: u64) -> Event {
    let member = K::of(table).find_any(handle)?;
    Some((K::GONE, K::listed(table, member, Detail::Gone)))
}

fn element_event(table: &Table, message: u8, set: u64, element: &Element) -> Event {
    let set = table.sets.find_any(set)?;
    Some((message, listed::elements(table, set, [element])))
}

/// Marks sets that no rule uses any more as unbound.
fn unbind(table: &mut Table, references: &[Reference]) {
    for &reference in references {
        if let Reference::Set(handle) | Reference::UpdatedSet(handle) = reference
            && table.sets.find_any(handle).is_some_and(|set| set.uses == 0)
            && let Some(set) = table.sets.edit_any(handle)
        {
            set.is_bound = false;
        }
    }
}
