//! A transaction at work: what it did so far, and what it knows.

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

use super::members::{Kind, Sort};
use super::set::Taken;
use super::state::{Devices, Rule, State, Table};
use super::told::{Step, Told};
use super::tree::Memory;
use super::wire::{Refusal, refuse};

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

    /// Whether it deletes what need not be there.
    pub(super) const fn destroys(self) -> bool {
        matches!(
            self.message,
            NFT_MSG_DESTROYTABLE..=NFT_MSG_DESTROYFLOWTABLE
        )
    }

    /// What is to be deleted, told by this attribute; `None` if it need not be there and is not.
    pub(super) fn to_delete(
        self,
        found: Result<usize, Refusal>,
        told_by: u16,
    ) -> Result<Option<usize>, Refusal> {
        match found {
            Ok(at) => Ok(Some(at)),
            Err(refusal) if self.destroys() && refusal.is(libc::ENOENT) => Ok(None),
            Err(refusal) => Err(refusal.at(told_by)),
        }
    }

    /// Whether something new may be there already, told by this attribute.
    pub(super) fn may_be_there(self, told_by: u16) -> Result<(), Refusal> {
        if self.has(NLM_F_EXCL) {
            return Err(refuse(libc::EEXIST).at(told_by));
        }
        match self.has(NLM_F_REPLACE) {
            true => Err(refuse(libc::EOPNOTSUPP)),
            false => Ok(()),
        }
    }
}

#[derive(Debug, Clone)]
struct Noted {
    /// Its handle.
    table: u64,
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
    /// What is known of trees of intervals, by the sets' handles.
    pub(super) trees: HashMap<u64, Memory>,
    /// What is known of the names of anonymous sets.
    pub(super) taken: Vec<Taken>,
    /// Whether jumps have to be followed from all base chains.
    pub(super) needs_validation: bool,
    /// Whether that is done at each operation that may break them.
    pub(super) validates_at_once: bool,
    pub(super) devices: Arc<Devices>,
}

impl Draft {
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
            taken: Vec::new(),
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

    /// Notes what was done in a table, of this number.
    pub(super) fn note(&mut self, operation: &Operation<'_>, number: usize, step: Step) {
        let table = self.state.tables[number].handle;
        let mut flags = operation.flags;
        // Elements that come one behind the other are told as of the first operation.
        if let (Step::Element { set, .. }, Some(last)) = (&step, self.steps.last())
            && let Step::Element { set: last_set, .. } = &last.step
            && (table, set) == (last.table, last_set)
        {
            flags = last.flags;
        }
        self.steps.push(Noted {
            table,
            step,
            flags,
            sequence: operation.sequence,
        });
    }

    /// What was done in a table, of this number.
    fn steps_in(&self, number: usize) -> impl Iterator<Item = &Step> {
        let table = self.state.tables[number].handle;
        let steps = self.steps.iter().filter(move |noted| noted.table == table);
        steps.map(|noted| &noted.step)
    }

    /// Takes away what nothing needs.
    pub(super) fn remove<K: Kind>(&mut self, operation: &Operation<'_>, number: usize, at: usize) {
        let handle = K::of_mut(self.table_mut(number)).die(at);
        self.note(operation, number, Step::MemberGone(K::SORT, handle));
    }

    /// A table, to be changed.
    pub(super) fn table_mut(&mut self, number: usize) -> &mut Table {
        Arc::make_mut(&mut self.state.tables[number])
    }

    /// Whether chains of this table were changed, or base chains deleted: the table cannot be then.
    pub(super) fn has_pending_chains(&self, number: usize) -> bool {
        let chains = &self.state.tables[number].chains;
        self.steps_in(number).any(|step| match *step {
            Step::ChainUpdate(..) => true,
            Step::MemberGone(Sort::Chain, chain) => {
                let gone = chains.whatever(chain);
                gone.is_some_and(|gone| gone.base.is_some())
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
        self.steps.iter().any(|noted| {
            let Step::Member(sort, handle) = noted.step else {
                return false;
            };
            let Some(table) = self.state.place(noted.table) else {
                return false;
            };
            let table = &self.state.tables[table];
            match sort {
                Sort::Set => {
                    let set = table.sets.whatever(handle);
                    set.is_some_and(|set| set.is_anonymous() && !set.is_bound)
                }
                Sort::Chain => {
                    let chain = table.chains.whatever(handle);
                    chain.is_some_and(|chain| chain.is_binding() && !chain.is_bound)
                }
                Sort::Object | Sort::Flowtable => false,
            }
        })
    }

    /// Whether a chain of this table is to have this name.
    pub(super) fn is_to_be_named(&self, number: usize, name: &BStr) -> bool {
        let mut steps = self.steps_in(number);
        steps.any(|step| match step {
            Step::ChainUpdate(_, update) => update.name.as_ref().is_some_and(|to_be| to_be == name),
            _ => false,
        })
    }

    /// Makes all of it so: what is there now, and what is told of it, in its order.
    pub(super) fn commit(mut self) -> (State, Vec<Told>) {
        let mut told = Vec::new();
        for noted in std::mem::take(&mut self.steps) {
            let Some(number) = self.state.place(noted.table) else {
                continue;
            };
            let table = self.table_mut(number);
            let Some((message, attributes)) = noted.step.take_effect(table) else {
                continue;
            };
            let is_appended =
                message == NFT_MSG_NEWRULE && noted.flags & (NLM_F_APPEND | NLM_F_REPLACE) != 0;
            let appended = if is_appended { NLM_F_APPEND } else { 0 };
            told.push(Told {
                message,
                flags: noted.flags & (NLM_F_CREATE | NLM_F_EXCL) | appended,
                sequence: noted.sequence,
                is_echoed: noted.flags & NLM_F_ECHO != 0,
                family: table.family,
                attributes,
            });
        }
        self.state.bury();
        self.state.generation = self.state.generation.wrapping_add(1).max(1);
        (self.state, told)
    }
}
