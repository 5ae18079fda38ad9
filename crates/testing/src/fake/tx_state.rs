//! The state of a running transaction.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bstr::BStr;
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL, NLM_F_REPLACE};
use chainwright_sys::nf_tables::{
    NFT_MSG_DELCHAIN, NFT_MSG_DELFLOWTABLE, NFT_MSG_DELOBJ, NFT_MSG_DELRULE, NFT_MSG_DELSET,
    NFT_MSG_DELSETELEM, NFT_MSG_DELTABLE, NFT_MSG_DESTROYCHAIN, NFT_MSG_DESTROYFLOWTABLE,
    NFT_MSG_DESTROYOBJ, NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSET, NFT_MSG_DESTROYSETELEM,
    NFT_MSG_DESTROYTABLE, NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE,
    NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE,
};

use super::events::{QueuedEvent, Step};
use super::members::{Kind, ObjectKind};
use super::set::UsedNumbers;
use super::state::{Devices, Rule, State, Table};
use super::tree::TreeState;
use super::wire::{Refusal, refuse};

/// The operation that is running.
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

    /// Returns `true` if the operation also succeeds for an object that doesn't exist (`NFT_MSG_DESTROY*`).
    pub(super) const fn destroys(self) -> bool {
        matches!(
            self.message,
            NFT_MSG_DESTROYTABLE..=NFT_MSG_DESTROYFLOWTABLE
        )
    }

    /// Returns the object to delete, found by the attribute `found_by`; `None` if it may be and is missing.
    pub(super) fn to_delete(
        self,
        found: Result<usize, Refusal>,
        found_by: u16,
    ) -> Result<Option<usize>, Refusal> {
        match found {
            Ok(at) => Ok(Some(at)),
            Err(refusal) if self.destroys() && refusal.is(libc::ENOENT) => Ok(None),
            Err(refusal) => Err(refusal.at(found_by)),
        }
    }

    /// Checks the flags for an object that already exists, found by the attribute `found_by`.
    pub(super) fn check_existing(self, found_by: u16) -> Result<(), Refusal> {
        if self.has(NLM_F_EXCL) {
            return Err(refuse(libc::EEXIST).at(found_by));
        }
        match self.has(NLM_F_REPLACE) {
            true => Err(refuse(libc::EOPNOTSUPP)),
            false => Ok(()),
        }
    }
}

#[derive(Debug, Clone)]
struct PendingStep {
    /// The table's handle.
    table: u64,
    step: Step,
    flags: u16,
    sequence: u32,
}

/// A running transaction.
#[derive(Debug)]
pub(super) struct TxState {
    pub(super) state: State,
    /// The port of the sending socket.
    pub(super) port: u32,
    steps: Vec<PendingStep>,
    /// IDs that the transaction assigned, with the handles of the table and the object.
    pub(super) chain_ids: HashMap<u32, Vec<(u64, u64)>>,
    pub(super) set_ids: HashMap<u32, (u64, u64)>,
    pub(super) rule_ids: HashMap<u32, Vec<Arc<Rule>>>,
    /// Handles of tables that were updated: the kernel accepts only one update per transaction.
    pub(super) updated_tables: BTreeSet<u64>,
    /// State of interval trees, by the sets' handles.
    pub(super) trees: HashMap<u64, TreeState>,
    /// Used numbers in names of anonymous sets.
    pub(super) used_numbers: Vec<UsedNumbers>,
    /// Whether jumps have to be validated from all base chains.
    pub(super) needs_validation: bool,
    /// Whether to validate at each operation that may fail validation.
    pub(super) validates_at_once: bool,
    pub(super) devices: Arc<Devices>,
}

impl TxState {
    pub(super) fn of(state: &State, port: u32, devices: &Arc<Devices>) -> Self {
        Self {
            state: state.clone(),
            port,
            steps: Vec::new(),
            chain_ids: HashMap::new(),
            set_ids: HashMap::new(),
            rule_ids: HashMap::new(),
            updated_tables: BTreeSet::new(),
            trees: HashMap::new(),
            used_numbers: Vec::new(),
            needs_validation: false,
            validates_at_once: false,
            devices: Arc::clone(devices),
        }
    }

    /// Runs an operation.
    pub(super) fn execute(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
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

    /// Records a change in the table with this index.
    pub(super) fn note(&mut self, operation: &Operation<'_>, number: usize, step: Step) {
        let table = self.state.tables[number].handle;
        let mut flags = operation.flags;
        // The kernel reports consecutive elements with the flags of the first operation.
        if let (Step::Element { set, .. }, Some(last)) = (&step, self.steps.last())
            && let Step::Element { set: last_set, .. } = &last.step
            && (table, set) == (last.table, last_set)
        {
            flags = last.flags;
        }
        self.steps.push(PendingStep {
            table,
            step,
            flags,
            sequence: operation.sequence,
        });
    }

    /// Iterates over the changes in the table with this index.
    fn steps_in(&self, number: usize) -> impl Iterator<Item = &Step> {
        let table = self.state.tables[number].handle;
        let steps = self
            .steps
            .iter()
            .filter(move |pending| pending.table == table);
        steps.map(|pending| &pending.step)
    }

    /// Removes an unused member of a table.
    pub(super) fn remove<K: Kind>(&mut self, operation: &Operation<'_>, number: usize, at: usize) {
        let handle = K::of_mut(self.table_mut(number)).mark_dead(at);
        self.note(operation, number, Step::MemberGone(K::OBJECT_KIND, handle));
    }

    /// Returns a table for modification.
    pub(super) fn table_mut(&mut self, number: usize) -> &mut Table {
        Arc::make_mut(&mut self.state.tables[number])
    }

    /// Returns `true` if chains of this table were updated, or base chains deleted: then the table can't be updated.
    pub(super) fn has_pending_chains(&self, number: usize) -> bool {
        let chains = &self.state.tables[number].chains;
        self.steps_in(number).any(|step| match *step {
            Step::ChainUpdate(..) => true,
            Step::MemberGone(ObjectKind::Chain, chain) => {
                let gone = chains.find_any(chain);
                gone.is_some_and(|gone| gone.base.is_some())
            }
            _ => false,
        })
    }

    /// Returns `true` if the transaction changed nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns `true` if an anonymous set or binding chain of this transaction was not bound to a rule, as required.
    pub(super) fn is_unbound(&self) -> bool {
        self.steps.iter().any(|pending| {
            let Step::Member(sort, handle) = pending.step else {
                return false;
            };
            let Some(table) = self.state.index_of(pending.table) else {
                return false;
            };
            let table = &self.state.tables[table];
            match sort {
                ObjectKind::Set => {
                    let set = table.sets.find_any(handle);
                    set.is_some_and(|set| set.is_anonymous() && !set.is_bound)
                }
                ObjectKind::Chain => {
                    let chain = table.chains.find_any(handle);
                    chain.is_some_and(|chain| chain.is_binding() && !chain.is_bound)
                }
                ObjectKind::Object | ObjectKind::Flowtable => false,
            }
        })
    }

    /// Returns `true` if the transaction renames a chain of this table to this name.
    pub(super) fn is_renamed_to(&self, number: usize, name: &BStr) -> bool {
        let mut steps = self.steps_in(number);
        steps.any(|step| match step {
            Step::ChainUpdate(_, update) => update.name.as_ref().is_some_and(|to_be| to_be == name),
            _ => false,
        })
    }

    /// Commits the changes; returns the new state and its events in order.
    pub(super) fn commit(mut self) -> (State, Vec<QueuedEvent>) {
        let mut events = Vec::new();
        for pending in std::mem::take(&mut self.steps) {
            let Some(number) = self.state.index_of(pending.table) else {
                continue;
            };
            let table = self.table_mut(number);
            let Some((message, attributes)) = pending.step.take_effect(table) else {
                continue;
            };
            let is_appended =
                message == NFT_MSG_NEWRULE && pending.flags & (NLM_F_APPEND | NLM_F_REPLACE) != 0;
            let appended = if is_appended { NLM_F_APPEND } else { 0 };
            events.push(QueuedEvent {
                message,
                flags: pending.flags & (NLM_F_CREATE | NLM_F_EXCL) | appended,
                sequence: pending.sequence,
                is_echoed: pending.flags & NLM_F_ECHO != 0,
                family: table.family,
                attributes,
            });
        }
        self.state.remove_dead();
        self.state.generation = self.state.generation.wrapping_add(1).max(1);
        (self.state, events)
    }
}
