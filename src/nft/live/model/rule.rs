//! Operations on rules.

use std::sync::Arc;

use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use chainwright_sys::nf_tables::{
    NFT_CHAIN_BINDING, NFT_MSG_DESTROYRULE, NFTA_RULE_CHAIN, NFTA_RULE_CHAIN_ID, NFTA_RULE_COMPAT,
    NFTA_RULE_EXPRESSIONS, NFTA_RULE_HANDLE, NFTA_RULE_ID, NFTA_RULE_POSITION,
    NFTA_RULE_POSITION_ID, NFTA_RULE_TABLE, NFTA_RULE_USERDATA,
};

use super::draft::{Draft, Operation, Step};
use super::state::{Chain, Placed, Reference, Rule, Table};
use super::wire::{Given, NAME, Policy, Refusal, U32, U64, refuse};

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

/// How many elements a set may have that rules add to, where it does not say.
const SIZE: u32 = 65_535;

/// The number of the rule with this handle. Those that go are found as well.
fn rule_of(chain: &Chain, handle: u64) -> Result<usize, Refusal> {
    let mut rules = chain.rules.iter();
    let at = rules.position(|placed| placed.rule.handle == handle);
    at.ok_or(refuse(libc::ENOENT))
}

impl Draft {
    pub(super) fn new_rule(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = Given::read(operation.attributes, ATTRIBUTES)?;
        let number = self.table_by(operation, &given, NFTA_RULE_TABLE)?;
        let table = &self.state.tables[number];
        let at = match (given.text(NFTA_RULE_CHAIN), given.u32(NFTA_RULE_CHAIN_ID)) {
            (Some(name), _) => {
                (table.chain_named(name)).map_err(|error| error.at(NFTA_RULE_CHAIN))?
            }
            (None, Some(id)) => self
                .chain_by_id(number, id)
                .map_err(|error| error.at(NFTA_RULE_CHAIN_ID))?,
            (None, None) => return Err(refuse(libc::EINVAL)),
        };
        let chain = &table.chains[at];
        if chain.flags & NFT_CHAIN_BINDING != 0 && chain.is_bound {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let mut beside = None;
        let handle = match given.u64(NFTA_RULE_HANDLE) {
            Some(handle) => {
                let rule = rule_of(chain, handle).map_err(|error| error.at(NFTA_RULE_HANDLE))?;
                if operation.has(NLM_F_EXCL) {
                    return Err(refuse(libc::EEXIST).at(NFTA_RULE_HANDLE));
                }
                if !operation.has(NLM_F_REPLACE) {
                    return Err(refuse(libc::EOPNOTSUPP));
                }
                beside = Some(rule);
                handle
            }
            None => {
                if !operation.has(NLM_F_CREATE) || operation.has(NLM_F_REPLACE) {
                    return Err(refuse(libc::EINVAL));
                }
                let handle = Arc::make_mut(&mut self.state.tables[number]).hand_out();
                let chain = &self.state.tables[number].chains[at];
                if let Some(position) = given.u64(NFTA_RULE_POSITION) {
                    let rule = rule_of(chain, position);
                    beside = Some(rule.map_err(|error| error.at(NFTA_RULE_POSITION))?);
                } else if let Some(id) = given.u32(NFTA_RULE_POSITION_ID) {
                    let rule = self.rule_by_id(chain, id);
                    beside = Some(rule.map_err(|error| error.at(NFTA_RULE_POSITION_ID))?);
                }
                handle
            }
        };
        let (expressions, references) = match given.get(NFTA_RULE_EXPRESSIONS) {
            Some(list) => self.expressions_of_rule(number, list)?,
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
            && let Some(old) = beside
            && !self.delete_rule(operation, number, at, old)
        {
            return Err(refuse(libc::ENOENT));
        }
        let table = Arc::make_mut(&mut self.state.tables[number]);
        table.hold(&rule.references);
        bind(table, &rule.references);
        let rules = &mut Arc::make_mut(&mut table.chains[at]).rules;
        let is_appended = operation.has(NLM_F_APPEND);
        let place = match beside {
            Some(old) if operation.has(NLM_F_REPLACE) => old,
            Some(old) if is_appended => old + 1,
            Some(old) => old,
            None if is_appended => rules.len(),
            None => 0,
        };
        rules.insert(
            place,
            Placed {
                rule: Arc::clone(&rule),
                is_dead: false,
            },
        );
        let (table, chain) = (table.handle, table.chains[at].handle);
        if let Some(id) = given.u32(NFTA_RULE_ID) {
            self.rule_ids.entry(id).or_default().push(Arc::clone(&rule));
        }
        let step = Step::Rule { table, chain, rule };
        self.note(step, operation);
        self.needs_validation = true;
        self.validate_now(number)
    }

    pub(super) fn chain_by_id(&self, number: usize, id: u32) -> Result<usize, Refusal> {
        let table = &self.state.tables[number];
        let chains = self.chain_ids.get(&id).into_iter().flatten();
        let mut chains = chains.filter(|(of, _)| *of == table.handle);
        let found = chains.find_map(|&(_, chain)| table.chain_of(chain).ok());
        found.ok_or(refuse(libc::ENOENT))
    }

    fn rule_by_id(&self, chain: &Chain, id: u32) -> Result<usize, Refusal> {
        let ids = self.rule_ids.get(&id).into_iter().flatten();
        let place = |rule: &Arc<Rule>| {
            let mut rules = chain.rules.iter();
            rules.position(|placed| Arc::ptr_eq(&placed.rule, rule))
        };
        let mut places = ids.filter_map(place);
        places.next().ok_or(refuse(libc::ENOENT))
    }

    pub(super) fn delete_rules(&mut self, operation: &Operation<'_>) -> Result<(), Refusal> {
        let given = Given::read(operation.attributes, ATTRIBUTES)?;
        let destroys = operation.message == NFT_MSG_DESTROYRULE;
        let number = self.table_by(operation, &given, NFTA_RULE_TABLE)?;
        let Some(name) = given.text(NFTA_RULE_CHAIN) else {
            for at in 0..self.state.tables[number].chains.len() {
                let chain = &self.state.tables[number].chains[at];
                if !chain.is_dead && chain.flags & NFT_CHAIN_BINDING == 0 {
                    self.delete_all_rules(operation, number, at);
                }
            }
            return Ok(());
        };
        let at = match self.state.tables[number].chain_named(name) {
            Err(refusal) if refusal.is(libc::ENOENT) && destroys => return Ok(()),
            at => at.map_err(|error| error.at(NFTA_RULE_CHAIN))?,
        };
        let chain = &self.state.tables[number].chains[at];
        if chain.flags & NFT_CHAIN_BINDING != 0 {
            return Err(refuse(libc::EOPNOTSUPP));
        }
        let (kind, found) = match (given.u64(NFTA_RULE_HANDLE), given.u32(NFTA_RULE_ID)) {
            (Some(handle), _) => (NFTA_RULE_HANDLE, rule_of(chain, handle)),
            (None, Some(id)) => (NFTA_RULE_ID, self.rule_by_id(chain, id)),
            (None, None) => {
                self.delete_all_rules(operation, number, at);
                return Ok(());
            }
        };
        let rule = match found {
            Err(refusal) if refusal.is(libc::ENOENT) && destroys && kind == NFTA_RULE_HANDLE => {
                return Ok(());
            }
            rule => rule.map_err(|error| error.at(kind))?,
        };
        match self.delete_rule(operation, number, at, rule) {
            true => Ok(()),
            false => Err(refuse(libc::ENOENT)),
        }
    }

    /// Takes out all rules of a chain.
    pub(super) fn delete_all_rules(&mut self, operation: &Operation<'_>, number: usize, at: usize) {
        for rule in 0..self.state.tables[number].chains[at].rules.len() {
            self.delete_rule(operation, number, at, rule);
        }
    }

    /// Takes out a rule; `false` if it goes already.
    fn delete_rule(
        &mut self,
        operation: &Operation<'_>,
        number: usize,
        at: usize,
        rule: usize,
    ) -> bool {
        let table = Arc::make_mut(&mut self.state.tables[number]);
        let handle = table.handle;
        let chain = Arc::make_mut(&mut table.chains[at]);
        let placed = &mut chain.rules[rule];
        if placed.is_dead {
            return false;
        }
        placed.is_dead = true;
        let rule = Arc::clone(&placed.rule);
        let chain = chain.handle;
        table.release(&rule.references);
        let references = rule.references.clone();
        let step = Step::RuleGone {
            table: handle,
            chain,
            rule,
        };
        self.note(step, operation);
        self.delete_bound(operation, number, &references);
        true
    }

    /// Takes out what was bound to a rule that goes.
    fn delete_bound(&mut self, operation: &Operation<'_>, number: usize, references: &[Reference]) {
        for &reference in references {
            let table = &self.state.tables[number];
            match reference {
                Reference::Set(handle) | Reference::UpdatedSet(handle) => {
                    if let Ok(at) = table.set_of(handle)
                        && table.sets[at].is_anonymous()
                        && table.sets[at].uses == 0
                    {
                        self.remove_set(operation, number, at);
                    }
                }
                Reference::Chain(handle) => {
                    if let Ok(at) = table.chain_of(handle)
                        && table.chains[at].flags & NFT_CHAIN_BINDING != 0
                    {
                        self.delete_all_rules(operation, number, at);
                        self.remove_chain(operation, number, at);
                    }
                }
                Reference::Object(_) | Reference::Flowtable(_) => {}
            }
        }
    }
}

/// Notes that a rule uses these sets and chains.
fn bind(table: &mut Table, references: &[Reference]) {
    for &reference in references {
        match reference {
            Reference::Set(handle) | Reference::UpdatedSet(handle) => {
                if let Some(set) = table.sets.iter_mut().find(|set| set.handle == handle) {
                    let set = Arc::make_mut(set);
                    set.is_bound = true;
                    if set.size == 0 && matches!(reference, Reference::UpdatedSet(_)) {
                        set.size = SIZE;
                    }
                }
            }
            Reference::Chain(handle) => {
                let mut chains = table.chains.iter_mut();
                if let Some(chain) = chains.find(|chain| chain.handle == handle) {
                    Arc::make_mut(chain).is_bound = true;
                }
            }
            Reference::Object(_) | Reference::Flowtable(_) => {}
        }
    }
}
