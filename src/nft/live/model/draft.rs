//! A transaction at work: what it changes, and what is told of it when it is committed.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bstr::{BStr, BString};
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use chainwright_sys::nf_tables::{
    NFT_CHAIN_BINDING, NFT_MSG_DELCHAIN, NFT_MSG_DELFLOWTABLE, NFT_MSG_DELOBJ, NFT_MSG_DELRULE,
    NFT_MSG_DELSET, NFT_MSG_DELSETELEM, NFT_MSG_DELTABLE, NFT_MSG_DESTROYCHAIN,
    NFT_MSG_DESTROYFLOWTABLE, NFT_MSG_DESTROYOBJ, NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSET,
    NFT_MSG_DESTROYSETELEM, NFT_MSG_DESTROYTABLE, NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE,
    NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE, NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE,
};

use super::listed::{self, Telling};
use super::state::{Chain, Element, Key, Reference, Rule, State};
use super::wire::{Out, Refusal, refuse};

/// What is known of the operation that is being carried out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation<'a> {
    /// `NFT_MSG_*`.
    pub(super) message: u8,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    pub(super) family: u8,
    pub(super) attributes: &'a [u8],
}

impl Operation<'_> {
    pub(super) const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// An event, as it is told when all is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) message: u8,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    pub(super) family: u8,
    pub(super) attributes: Out,
}

/// Something that the transaction did, by handles: what is told of it is known when it is committed.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Table {
        table: u64,
    },
    TableGone {
        table: u64,
    },
    Chain {
        table: u64,
        chain: u64,
    },
    /// What a chain is to be from now on: nothing of that is seen before all is committed.
    ChainUpdate {
        table: u64,
        chain: u64,
        update: ChainUpdate,
    },
    ChainGone {
        table: u64,
        chain: u64,
    },
    Rule {
        table: u64,
        chain: u64,
        rule: Arc<Rule>,
    },
    RuleGone {
        table: u64,
        chain: u64,
        rule: Arc<Rule>,
    },
    Set {
        table: u64,
        set: u64,
    },
    /// What a set is to be from now on.
    SetUpdate {
        table: u64,
        set: u64,
        update: SetUpdate,
    },
    SetGone {
        table: u64,
        set: u64,
    },
    Element {
        table: u64,
        set: u64,
        element: Arc<Element>,
    },
    /// How long an element stays from now on, in milliseconds.
    ElementUpdate {
        table: u64,
        set: u64,
        key: Key,
        timeout: u64,
        expiration: u64,
    },
    ElementGone {
        table: u64,
        set: u64,
        element: Arc<Element>,
    },
    Object {
        table: u64,
        object: u64,
    },
    ObjectGone {
        table: u64,
        object: u64,
    },
    Flowtable {
        table: u64,
        flowtable: u64,
    },
    FlowtableGone {
        table: u64,
        flowtable: u64,
    },
}

/// What is to change in a chain.
#[derive(Debug, Clone, Default)]
pub(super) struct ChainUpdate {
    pub(super) name: Option<BString>,
    pub(super) policy: Option<u32>,
    pub(super) counters: Option<(u64, u64)>,
    pub(super) added_devices: Vec<BString>,
    pub(super) deleted_devices: Vec<BString>,
}

impl ChainUpdate {
    fn make(self, chain: &mut Chain) {
        if let Some(name) = self.name {
            chain.name = name;
        }
        if let Some(base) = &mut chain.base {
            base.policy = self.policy.unwrap_or(base.policy);
            base.counters = self.counters.or(base.counters);
            let deleted = self.deleted_devices;
            base.devices.retain(|device| !deleted.contains(device));
            base.devices.extend(self.added_devices);
        }
    }
}

/// What is to change in a set.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetUpdate {
    /// 0 leaves it as it is.
    pub(super) size: u32,
    /// Both in milliseconds.
    pub(super) timeout: u64,
    pub(super) gc_interval: u32,
}

#[derive(Debug, Clone)]
struct Noted {
    step: Step,
    flags: u16,
    sequence: u32,
}

/// A transaction at work.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) state: State,
    /// The port of the socket that it came over.
    pub(super) port: u32,
    steps: Vec<Noted>,
    /// What the transaction itself gave numbers: a table's handle, and that of what is in it.
    pub(super) chain_ids: HashMap<u32, Vec<(u64, u64)>>,
    pub(super) set_ids: HashMap<u32, (u64, u64)>,
    pub(super) rule_ids: HashMap<u32, Vec<Arc<Rule>>>,
    /// Tables that were changed: once is all that the kernel takes.
    pub(super) updated_tables: BTreeSet<u64>,
    /// The beginning of a range that was there already, when its end is still to come: the handle of its set, and
    /// its key.
    pub(super) begun: Option<(u64, Key)>,
    /// Whether jumps have to be followed from all base chains.
    pub(super) needs_validation: bool,
    /// Whether that is done at each operation that may break them.
    pub(super) validates_at_once: bool,
    pub(super) devices: Arc<Vec<BString>>,
}

impl Draft {
    pub(super) fn of(state: &State, port: u32, devices: &Arc<Vec<BString>>) -> Self {
        Self {
            state: state.clone(),
            port,
            steps: Vec::new(),
            chain_ids: HashMap::new(),
            set_ids: HashMap::new(),
            rule_ids: HashMap::new(),
            updated_tables: BTreeSet::new(),
            begun: None,
            needs_validation: false,
            validates_at_once: false,
            devices: Arc::clone(devices),
        }
    }

    /// Carries an operation out.
    pub(super) fn carry_out(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        match operation.message {
            NFT_MSG_NEWTABLE => self.new_table(operation),
            NFT_MSG_DELTABLE | NFT_MSG_DESTROYTABLE => self.delete_table(operation),
            NFT_MSG_NEWCHAIN => self.new_chain(operation),
            NFT_MSG_DELCHAIN | NFT_MSG_DESTROYCHAIN => self.delete_chain(operation),
            NFT_MSG_NEWRULE => self.new_rule(operation),
            NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => self.delete_rules(operation),
            NFT_MSG_NEWSET => self.new_set(operation),
            NFT_MSG_DELSET | NFT_MSG_DESTROYSET => self.delete_set(operation),
            NFT_MSG_NEWSETELEM => self.new_elements(operation),
            NFT_MSG_DELSETELEM | NFT_MSG_DESTROYSETELEM => self.delete_elements(operation),
            NFT_MSG_NEWOBJ => self.new_object(operation),
            NFT_MSG_DELOBJ | NFT_MSG_DESTROYOBJ => self.delete_object(operation),
            NFT_MSG_NEWFLOWTABLE => self.new_flowtable(operation),
            NFT_MSG_DELFLOWTABLE | NFT_MSG_DESTROYFLOWTABLE => self.delete_flowtable(operation),
            _ => Err(refuse(libc::EINVAL)),
        }
    }

    pub(super) fn note(&mut self, step: Step, operation: &Operation<'_>) {
        let mut flags = operation.flags;
        // Elements that come one behind the other are told as of the first operation.
        if let (
            Step::Element { table, set, .. },
            Some(Noted {
                step:
                    Step::Element {
                        table: last_table,
                        set: last_set,
                        ..
                    },
                flags: last_flags,
                ..
            }),
        ) = (&step, self.steps.last())
            && (table, set) == (last_table, last_set)
        {
            flags = *last_flags;
        }
        self.steps.push(Noted {
            step,
            flags,
            sequence: operation.sequence,
        });
    }

    /// Whether chains of this table were changed, or base chains deleted: the table cannot be then.
    pub(super) fn has_pending_chains(&self, number: usize) -> bool {
        let table = &self.state.tables[number];
        self.steps.iter().any(|noted| match noted.step {
            Step::ChainUpdate { table: of, .. } => of == table.handle,
            Step::ChainGone { table: of, chain } => {
                let mut chains = table.chains.iter();
                let gone = chains.find(|one| one.handle == chain);
                of == table.handle && gone.is_some_and(|gone| gone.base.is_some())
            }
            _ => false,
        })
    }

    /// Whether nothing was done.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether something that was made in this transaction was not bound to a rule, as it must be.
    pub(super) fn is_unbound(&self) -> bool {
        self.steps.iter().any(|noted| match noted.step {
            Step::Set { table, set } => self
                .table(table)
                .and_then(|table| table.sets.iter().find(|one| one.handle == set))
                .is_some_and(|set| set.is_anonymous() && !set.is_bound),
            Step::Chain { table, chain } => self
                .table(table)
                .and_then(|table| table.chains.iter().find(|one| one.handle == chain))
                .is_some_and(|chain| chain.flags & NFT_CHAIN_BINDING != 0 && !chain.is_bound),
            _ => false,
        })
    }

    /// Whether a chain of this table is to have this name.
    pub(super) fn is_to_be_named(&self, table: u64, name: &BStr) -> bool {
        self.steps.iter().any(|noted| match &noted.step {
            Step::ChainUpdate {
                table: of, update, ..
            } => *of == table && update.name.as_ref().is_some_and(|to_be| to_be == name),
            _ => false,
        })
    }

    fn table(&self, handle: u64) -> Option<&super::state::Table> {
        let mut tables = self.state.tables.iter();
        tables
            .find(|table| table.handle == handle)
            .map(|table| &**table)
    }

    /// Makes all of it so: what is told of it, in its order, and what is there now.
    pub(super) fn commit(mut self) -> (State, Vec<Told>) {
        let mut told = Vec::new();
        for noted in std::mem::take(&mut self.steps) {
            self.tell(&noted, &mut told);
        }
        self.state.tables.retain(|table| !table.is_dead);
        self.state.generation = self.state.generation.wrapping_add(1).max(1);
        (self.state, told)
    }

    /// Tells one step, and takes out what went by it.
    fn tell(&mut self, noted: &Noted, told: &mut Vec<Told>) {
        let flags = noted.flags & (NLM_F_CREATE | NLM_F_EXCL);
        let mut say = |message, family, attributes| {
            told.push(Told {
                message,
                flags,
                sequence: noted.sequence,
                family,
                attributes,
            });
        };
        let (Step::Table { table: handle }
        | Step::TableGone { table: handle }
        | Step::Chain { table: handle, .. }
        | Step::ChainUpdate { table: handle, .. }
        | Step::ChainGone { table: handle, .. }
        | Step::Rule { table: handle, .. }
        | Step::RuleGone { table: handle, .. }
        | Step::Set { table: handle, .. }
        | Step::SetUpdate { table: handle, .. }
        | Step::SetGone { table: handle, .. }
        | Step::Element { table: handle, .. }
        | Step::ElementUpdate { table: handle, .. }
        | Step::ElementGone { table: handle, .. }
        | Step::Object { table: handle, .. }
        | Step::ObjectGone { table: handle, .. }
        | Step::Flowtable { table: handle, .. }
        | Step::FlowtableGone { table: handle, .. }) = noted.step;
        let mut tables = self.state.tables.iter_mut();
        let Some(at) = tables.position(|table| table.handle == handle) else {
            return;
        };
        if let Step::TableGone { .. } = noted.step {
            let table = self.state.tables.remove(at);
            return say(
                NFT_MSG_DELTABLE,
                table.family,
                listed::table(&table, Telling::Gone),
            );
        }
        let table = Arc::make_mut(&mut self.state.tables[at]);
        let family = table.family;
        match &noted.step {
            Step::Table { .. } => {
                let whole = listed::table(table, Telling::Whole);
                say(NFT_MSG_NEWTABLE, family, whole);
            }
            Step::TableGone { .. } => {}
            Step::Chain { chain, .. } => {
                if let Some(chain) = table.chains.iter().find(|one| one.handle == *chain) {
                    say(
                        NFT_MSG_NEWCHAIN,
                        family,
                        listed::chain(table, chain, Telling::Whole),
                    );
                }
            }
            Step::ChainUpdate { chain, update, .. } => {
                let mut chains = table.chains.iter_mut();
                if let Some(chain) = chains.find(|one| one.handle == *chain) {
                    let chain = Arc::make_mut(chain);
                    table.has_renamed_chains |= update.name.is_some();
                    update.clone().make(chain);
                    let chain = chain.clone();
                    say(
                        NFT_MSG_NEWCHAIN,
                        family,
                        listed::chain(table, &chain, Telling::Whole),
                    );
                }
            }
            Step::ChainGone { chain, .. } => {
                let mut chains = table.chains.iter();
                if let Some(at) = chains.position(|one| one.handle == *chain) {
                    let chain = table.chains.remove(at);
                    // Of those that are bound to a rule nothing is told.
                    if chain.flags & NFT_CHAIN_BINDING == 0 {
                        say(
                            NFT_MSG_DELCHAIN,
                            family,
                            listed::chain(table, &chain, Telling::Gone),
                        );
                    }
                }
            }
            Step::Rule { chain, rule, .. } => {
                let mut chains = table.chains.iter();
                let Some(chain) = chains.find(|one| one.handle == *chain) else {
                    return;
                };
                let mut rules = chain.rules.iter();
                let at = rules.position(|placed| Arc::ptr_eq(&placed.rule, rule));
                let before = at
                    .and_then(|at| at.checked_sub(1))
                    .map(|at| chain.rules[at].rule.handle);
                let is_appended = noted.flags & (NLM_F_APPEND | NLM_F_REPLACE) != 0;
                told.push(Told {
                    message: NFT_MSG_NEWRULE,
                    flags: flags | if is_appended { NLM_F_APPEND } else { 0 },
                    sequence: noted.sequence,
                    family,
                    attributes: listed::rule(table, chain, rule, before),
                });
            }
            Step::RuleGone { chain, rule, .. } => {
                let mut chains = table.chains.iter();
                let Some(at) = chains.position(|one| one.handle == *chain) else {
                    return;
                };
                let chain = Arc::make_mut(&mut table.chains[at]);
                chain
                    .rules
                    .retain(|placed| !Arc::ptr_eq(&placed.rule, rule));
                let is_bound = chain.flags & NFT_CHAIN_BINDING != 0;
                for &reference in &rule.references {
                    if let Reference::Set(handle) | Reference::UpdatedSet(handle) = reference
                        && let Some(set) = table.sets.iter_mut().find(|set| set.handle == handle)
                        && set.uses == 0
                    {
                        Arc::make_mut(set).is_bound = false;
                    }
                }
                let chain = Arc::clone(&table.chains[at]);
                if !is_bound {
                    let gone = listed::rule(table, &chain, rule, None);
                    say(NFT_MSG_DELRULE, family, gone);
                }
            }
            Step::Set { set, .. } => {
                if let Some(set) = table.sets.iter().find(|one| one.handle == *set) {
                    say(
                        NFT_MSG_NEWSET,
                        family,
                        listed::set(table, set, Telling::Whole),
                    );
                }
            }
            Step::SetUpdate { set, update, .. } => {
                let mut sets = table.sets.iter_mut();
                if let Some(set) = sets.find(|one| one.handle == *set) {
                    let set = Arc::make_mut(set);
                    if update.size != 0 {
                        set.size = update.size;
                    }
                    (set.timeout, set.gc_interval) = (update.timeout, update.gc_interval);
                    let set = set.clone();
                    say(
                        NFT_MSG_NEWSET,
                        family,
                        listed::set(table, &set, Telling::Whole),
                    );
                }
            }
            Step::SetGone { set, .. } => {
                if let Some(at) = table.sets.iter().position(|one| one.handle == *set) {
                    let set = table.sets.remove(at);
                    say(
                        NFT_MSG_DELSET,
                        family,
                        listed::set(table, &set, Telling::Gone),
                    );
                }
            }
            Step::Element { set, element, .. } => {
                if let Some(set) = table.sets.iter().find(|one| one.handle == *set) {
                    let whole = listed::elements(table, set, [&**element]);
                    say(NFT_MSG_NEWSETELEM, family, whole);
                }
            }
            Step::ElementUpdate {
                set,
                key,
                timeout,
                expiration,
                ..
            } => {
                let mut sets = table.sets.iter_mut();
                let set = sets.find(|one| one.handle == *set).map(Arc::make_mut);
                let element = set.and_then(|set| {
                    let element = Arc::make_mut(set.elements.get_mut(key)?);
                    (element.timeout, element.expiration) = (*timeout, *expiration);
                    Some((element.clone(), set.handle))
                });
                if let Some((element, handle)) = element
                    && let Some(set) = table.sets.iter().find(|one| one.handle == handle)
                {
                    let whole = listed::elements(table, set, [&element]);
                    say(NFT_MSG_NEWSETELEM, family, whole);
                }
            }
            Step::ElementGone { set, element, .. } => {
                if let Some(set) = table.sets.iter().find(|one| one.handle == *set) {
                    let gone = listed::elements(table, set, [&**element]);
                    say(NFT_MSG_DELSETELEM, family, gone);
                }
            }
            Step::Object { object, .. } => {
                if let Some(object) = table.objects.iter().find(|one| one.handle == *object) {
                    say(
                        NFT_MSG_NEWOBJ,
                        family,
                        listed::object(table, object, Telling::Whole),
                    );
                }
            }
            Step::ObjectGone { object, .. } => {
                let mut objects = table.objects.iter();
                if let Some(at) = objects.position(|one| one.handle == *object) {
                    let object = table.objects.remove(at);
                    say(
                        NFT_MSG_DELOBJ,
                        family,
                        listed::object(table, &object, Telling::Gone),
                    );
                }
            }
            Step::Flowtable { flowtable, .. } => {
                let mut flowtables = table.flowtables.iter();
                if let Some(flowtable) = flowtables.find(|one| one.handle == *flowtable) {
                    say(
                        NFT_MSG_NEWFLOWTABLE,
                        family,
                        listed::flowtable(table, flowtable, Telling::Whole),
                    );
                }
            }
            Step::FlowtableGone { flowtable, .. } => {
                let mut flowtables = table.flowtables.iter();
                if let Some(at) = flowtables.position(|one| one.handle == *flowtable) {
                    let flowtable = table.flowtables.remove(at);
                    say(
                        NFT_MSG_DELFLOWTABLE,
                        family,
                        listed::flowtable(table, &flowtable, Telling::Gone),
                    );
                }
            }
        }
    }
}
