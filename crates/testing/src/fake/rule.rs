//! Operations on rules.

use std::sync::Arc;

use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use chainwright_sys::nf_tables::{
    NFTA_RULE_CHAIN, NFTA_RULE_CHAIN_ID, NFTA_RULE_COMPAT, NFTA_RULE_EXPRESSIONS, NFTA_RULE_HANDLE,
    NFTA_RULE_ID, NFTA_RULE_POSITION, NFTA_RULE_POSITION_ID, NFTA_RULE_TABLE, NFTA_RULE_USERDATA,
};

use super::events::Step;
use super::state::{Chain, Reference, Rule, RuleSlot, Table};
use super::tx_state::{Operation, TxState};
use super::wire::{NAME, ParsedAttributes, Policy, Refusal, U32, U64, refuse};

const ATTRIBUTES: &[(u16, Policy)] = &[
    (NFTA_RULE_TABLE, NAME),
    (NFTA_RULE_CHAIN, NAME),
    (NFTA_RULE_HANDLE, U64),
    (NFTA_RULE_EXPRESSIONS, Policy::Any),
    (NFTA_RULE_COMPAT, Policy::Any),
    (NFTA_RULE_POSITION, U64),
    (NFTA_RULE_USERDATA, Policy::Binary(256)),
    (NFTA_RULE_ID, U32),
    (NFTA_RULE_POSITION_ID, U32),
    (NFTA_RULE_CHAIN_ID, U32),
];

/// Default size of a set that rules add to.
const SIZE: u32 = 65_535;

/// Returns the index of the rule with this handle, dead or alive.
fn rule_of(chain: &Chain, handle: u64) -> Result<usize, Refusal> {
    let mut rules = chain.rules.iter();
    let at = rules.position(|slot| slot.rule.handle == handle);
    at.ok_or(refuse(libc::ENOENT))
}

impl TxState {
    pub(super) fn new_rule(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
        let number = self.table_by(operation, &given, NFTA_RULE_TABLE)?;
        let table = &self.state.tables[number];
        let at = match (given.text(NFTA_RULE_CHAIN), given.u32(NFTA_RULE_CHAIN_ID)) {
            (Some(name), _) => {
                (table.chains.named(name)).map_err(|error| error.at(NFTA_RULE_CHAIN))?
            }
            (None, Some(id)) => self
                .chain_by_id(number, id)
                .map_err(|error| error.at(NFTA_RULE_CHAIN_ID))?,
            (None, None) => return Err(refuse(libc::EINVAL)),
        };
        let chain = &table.chains[at];
        if chain.is_binding() && chain.is_bound {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let mut neighbor = None;
        let handle = match given.u64(NFTA_RULE_HANDLE) {
            Some(handle) => {
                let rule = rule_of(chain, handle).map_err(|error| error.at(NFTA_RULE_HANDLE))?;
                if operation.has(NLM_F_EXCL) {
                    return Err(refuse(libc::EEXIST).at(NFTA_RULE_HANDLE));
                }
                if !operation.has(NLM_F_REPLACE) {
                    return Err(refuse(libc::EOPNOTSUPP));
                }
                neighbor = Some(rule);
                handle
            }
            None => {
                if !operation.has(NLM_F_CREATE) || operation.has(NLM_F_REPLACE) {
                    return Err(refuse(libc::EINVAL));
                }
                let handle = self.table_mut(number).allocate_handle();
                let chain = &self.state.tables[number].chains[at];
                if let Some(position) = given.u64(NFTA_RULE_POSITION) {
                    let rule = rule_of(chain, position);
                    neighbor = Some(rule.map_err(|error| error.at(NFTA_RULE_POSITION))?);
                } else if let Some(id) = given.u32(NFTA_RULE_POSITION_ID) {
                    let rule = self.rule_by_id(chain, id);
                    neighbor = Some(rule.map_err(|error| error.at(NFTA_RULE_POSITION_ID))?);
                }
                handle
            }
        };
        let (expressions, references) = match given.get(NFTA_RULE_EXPRESSIONS) {
            Some(list) => self.expressions_of_rule(number, at, list)?,
            None => (Vec::new(), Vec::new()),
        };
        let userdata = given.get(NFTA_RULE_USERDATA);
        let userdata = userdata.filter(|data| !data.is_empty()).map(<[u8]>::to_vec);
        let rule = Arc::new(Rule {
            handle,
            expressions,
            userdata,
            references,
        });
        if operation.has(NLM_F_REPLACE)
            && let Some(old) = neighbor
            && !self.delete_rule(operation, number, at, old)
        {
            return Err(refuse(libc::ENOENT));
        }
        let table = self.table_mut(number);
        table.acquire(&rule.references);
        bind(table, &rule.references);
        let rules = &mut table.chains.edit(at).rules;
        let is_appended = operation.has(NLM_F_APPEND);
        let index = match neighbor {
            Some(old) if operation.has(NLM_F_REPLACE) => old,
            Some(old) if is_appended => old + 1,
            Some(old) => old,
            None if is_appended => rules.len(),
            None => 0,
        };
        rules.insert(
            index,
            RuleSlot {
                rule: Arc::clone(&rule),
                is_dead: false,
            },
        );
        let chain = table.chains[at].handle;
        if let Some(id) = given.u32(NFTA_RULE_ID) {
            self.rule_ids.entry(id).or_default().push(Arc::clone(&rule));
        }
        self.note(operation, number, Step::Rule { chain, rule });
        self.needs_validation = true;
        self.validate_now(number)
    }

    pub(super) fn chain_by_id(&self, number: usize, id: u32) -> Result<usize, Refusal> {
        let table = &self.state.tables[number];
        let chains = self.chain_ids.get(&id).into_iter().flatten();
        let mut chains = chains.filter(|(of, _)| *of == table.handle);
        let found = chains.find_map(|&(_, chain)| table.chains.of(chain).ok());
        found.ok_or(refuse(libc::ENOENT))
    }

    fn rule_by_id(&self, chain: &Chain, id: u32) -> Result<usize, Refusal> {
        let ids = self.rule_ids.get(&id).into_iter().flatten();
        let index = |rule: &Arc<Rule>| {
            let mut rules = chain.rules.iter();
            rules.position(|slot| Arc::ptr_eq(&slot.rule, rule))
        };
        let mut indices = ids.filter_map(index);
        indices.next().ok_or(refuse(libc::ENOENT))
    }

    pub(super) fn delete_rules(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = ParsedAttributes::read(operation.attributes, ATTRIBUTES)?;
        let number = self.table_by(operation, &given, NFTA_RULE_TABLE)?;
        let Some(name) = given.text(NFTA_RULE_CHAIN) else {
            for at in 0..self.state.tables[number].chains.len() {
                let chain = &self.state.tables[number].chains[at];
                if !chain.is_dead() && !chain.is_binding() {
                    self.delete_all_rules(operation, number, at);
                }
            }
            return Ok(());
        };
        let named = self.state.tables[number].chains.named(name);
        let Some(at) = operation.to_delete(named, NFTA_RULE_CHAIN)? else {
            return Ok(());
        };
        let chain = &self.state.tables[number].chains[at];
        if chain.is_binding() {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let found = match (given.u64(NFTA_RULE_HANDLE), given.u32(NFTA_RULE_ID)) {
            (Some(handle), _) => operation.to_delete(rule_of(chain, handle), NFTA_RULE_HANDLE)?,
            (None, Some(id)) => {
                let rule = self.rule_by_id(chain, id);
                Some(rule.map_err(|error| error.at(NFTA_RULE_ID))?)
            }
            (None, None) => {
                self.delete_all_rules(operation, number, at);
                return Ok(());
            }
        };
        let Some(rule) = found else { return Ok(()) };
        match self.delete_rule(operation, number, at, rule) {
            true => Ok(()),
            false => Err(refuse(libc::ENOENT)),
        }
    }

    /// Deletes all rules of a chain.
    pub(super) fn delete_all_rules(&mut self, operation: &Operation<'_>, number: usize, at: usize) {
        for rule in 0..self.state.tables[number].chains[at].rules.len() {
            self.delete_rule(operation, number, at, rule);
        }
    }

    /// Deletes a rule with its anonymous sets and chains; `false` if it was already deleted.
    fn delete_rule(
        &mut self,
        operation: &Operation<'_>,
        number: usize,
        at: usize,
        rule: usize,
    ) -> bool {
        let table = self.table_mut(number);
        let chain = table.chains[at].handle;
        let slot = &mut table.chains.edit(at).rules[rule];
        if std::mem::replace(&mut slot.is_dead, true) {
            return false;
        }
        let rule = Arc::clone(&slot.rule);
        table.release(&rule.references);
        let gone = Arc::clone(&rule);
        self.note(operation, number, Step::RuleGone { chain, rule });
        for &reference in &gone.references {
            let table = &self.state.tables[number];
            match reference {
                Reference::Set(handle) | Reference::UpdatedSet(handle) => {
                    if let Ok(at) = table.sets.of(handle)
                        && table.sets[at].is_anonymous()
                        && table.sets[at].uses == 0
                    {
                        self.remove_set(operation, number, at);
                    }
                }
                Reference::Chain(handle) => {
                    if let Ok(at) = table.chains.of(handle)
                        && table.chains[at].is_binding()
                    {
                        // Rules of a binding chain don't bind further chains.
                        self.delete_all_rules(operation, number, at);
                        self.remove::<Chain>(operation, number, at);
                    }
                }
                Reference::Object(_) | Reference::Flowtable(_) => {}
            }
        }
        true
    }
}

/// Marks the sets and chains that a rule uses as bound.
fn bind(table: &mut Table, references: &[Reference]) {
    for &reference in references {
        match reference {
            Reference::Set(handle) | Reference::UpdatedSet(handle) => {
                if let Some(set) = table.sets.edit_any(handle) {
                    set.is_bound = true;
                    if set.size == 0 && matches!(reference, Reference::UpdatedSet(_)) {
                        set.size = SIZE;
                    }
                }
            }
            Reference::Chain(handle) => {
                if let Some(chain) = table.chains.edit_any(handle) {
                    chain.is_bound = true;
                }
            }
            Reference::Object(_) | Reference::Flowtable(_) => {}
        }
    }
}
