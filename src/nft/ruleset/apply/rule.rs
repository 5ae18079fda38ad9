//! Adds and deletes rules, with the sets and chains that belong to them.

use bstr::{BStr, BString};
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_REPLACE};

use super::chain::is_binding;
use super::set::UPDATED_SIZE;
use super::{ABSENT, Batch, INVALID, Operation, Refusal, TableKey, UNSUPPORTED, exact};
use crate::nft::expr::{Data, Decoded, Expressions, Immediate, Verdict};
use crate::nft::normalize::Normal as _;
use crate::nft::ruleset::{RulesetSet, RulesetTable, name};
use crate::nft::snapshot::ObjectReference;
use crate::nft::{Family, Rule, SetFlags};

impl Batch<'_> {
    pub(super) fn new_rule(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let mut rule = Rule::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&rule.table)?;
        let table = self.table(&key)?;
        let in_chain: BString = match (&rule.chain, rule.chain_id) {
            (Some(name), _) => name.to_vec().into(),
            (None, Some(id)) => self.chain_of_id(&key, id)?.to_owned(),
            (None, None) => return Err(INVALID),
        };
        let rules = &table.chains.get(&in_chain).ok_or(ABSENT)?.rules;
        let place_of = |handle: u64| {
            let place = rules.iter().position(|rule| rule.handle == Some(handle));
            place.ok_or(ABSENT)
        };
        let (place, replaces) = if let Some(handle) = rule.handle {
            let place = place_of(handle)?;
            operation.may_exist()?;
            if !operation.has(NLM_F_REPLACE) {
                return Err(UNSUPPORTED);
            }
            (place, true)
        } else {
            if !operation.has(NLM_F_CREATE) || operation.has(NLM_F_REPLACE) {
                return Err(INVALID);
            }
            let neighbor = match (rule.position, rule.position_id) {
                (Some(handle), _) => Some(place_of(handle)?),
                (None, Some(id)) => Some(place_of(*self.rule_ids.get(&id).ok_or(ABSENT)?)?),
                (None, None) => None,
            };
            let place = match (neighbor, operation.has(NLM_F_APPEND)) {
                (None, true) => rules.len(),
                (None, false) => 0,
                (Some(neighbor), after) => neighbor + usize::from(after),
            };
            (place, false)
        };
        let mut updated = Vec::new();
        let expressions = rule.expressions.take().unwrap_or_default();
        let expressions = self.resolved(&key, table, &expressions, &mut updated)?;
        let id = rule.id;
        let mut rule = rule.into_owned();
        rule.normalize();
        rule.position = None;
        rule.expressions = Some(expressions);
        rule.chain = Some(in_chain.clone().into());
        if !replaces {
            rule.handle = self.ruleset.handle();
        }
        if let (Some(id), Some(handle)) = (id, rule.handle) {
            self.rule_ids.insert(id, handle);
        }
        let table = self.table_mut(&key)?;
        let rules = &mut table.chains.get_mut(&in_chain).ok_or(ABSENT)?.rules;
        if replaces {
            let old = std::mem::replace(&mut rules[place], rule);
            table.forget(&old);
        } else {
            rules.insert(place, rule);
        }
        for set in updated {
            if let Some(set) = table.sets.get_mut(&set) {
                let description = set.set.description.get_or_insert_default();
                description.size.get_or_insert(UPDATED_SIZE);
            }
        }
        Ok(())
    }

    /// Returns the name of the chain with an id.
    pub(super) fn chain_of_id(&self, table: &TableKey, id: u32) -> Result<&BString, Refusal> {
        match self.chain_ids.get(&id) {
            Some((of, name)) if of == table => Ok(name),
            _ => Err(ABSENT),
        }
    }

    /// Returns the set with a name, or else the one with an id.
    pub(super) fn set<'t>(
        &self,
        key: &TableKey,
        table: &'t RulesetTable,
        name: Option<&BStr>,
        id: Option<u32>,
    ) -> Result<&'t RulesetSet, Refusal> {
        let named = name.and_then(|name| table.sets.get(name));
        let of_id = || match self.set_ids.get(&id?) {
            Some((of, name)) if of == key => table.sets.get(name),
            _ => None,
        };
        named.or_else(of_id).ok_or(ABSENT)
    }

    /// Returns a verdict with the name of its chain.
    pub(super) fn resolve_verdict(
        &self,
        key: &TableKey,
        table: &RulesetTable,
        verdict: &mut Verdict<'_>,
    ) -> Result<(), Refusal> {
        match verdict {
            Verdict::JumpId(id) => {
                *verdict = Verdict::Jump(self.chain_of_id(key, *id)?.clone().into());
            }
            Verdict::GotoId(id) => {
                *verdict = Verdict::Goto(self.chain_of_id(key, *id)?.clone().into());
            }
            Verdict::Jump(name) | Verdict::Goto(name) => {
                table.chains.get(&***name).ok_or(ABSENT)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the expressions of a rule in normal form, with names for ids; notes the sets that they add to.
    pub(super) fn resolved(
        &self,
        key: &TableKey,
        table: &RulesetTable,
        expressions: &Expressions<'_>,
        updated: &mut Vec<BString>,
    ) -> Result<Expressions<'static>, Refusal> {
        let mut result = Ok(());
        let mut resolve = |decoded: &mut Decoded<'_>| {
            match decoded {
                Decoded::Immediate(Immediate {
                    data: Some(Data::Verdict(verdict)),
                    ..
                }) => self.resolve_verdict(key, table, verdict)?,
                Decoded::Lookup(lookup) => {
                    let set = self.set(key, table, lookup.set.as_deref(), lookup.set_id)?;
                    lookup.set = Some(name(&set.set.name).to_owned().into());
                }
                Decoded::Dynset(dynset) => {
                    let set = self.set(key, table, dynset.set_name.as_deref(), dynset.set_id)?;
                    let named = name(&set.set.name).to_owned();
                    if set.set.expression.is_some() || set.set.expressions.is_some() {
                        // The kernel does not list expressions that the set defines for its elements.
                        (dynset.expr, dynset.expressions) = (None, None);
                    }
                    dynset.set_name = Some(named.clone().into());
                    dynset.timeout = dynset.timeout.map(exact);
                    updated.push(named);
                }
                Decoded::Objref(objref) if objref.set_sreg.is_some() => {
                    let set = self.set(key, table, objref.set_name.as_deref(), objref.set_id)?;
                    objref.set_name = Some(name(&set.set.name).to_owned().into());
                }
                Decoded::Objref(objref) => {
                    let of_type = objref.imm_type.unwrap_or_default();
                    let named = name(&objref.imm_name).to_owned();
                    table.objects.get(&(of_type, named)).ok_or(ABSENT)?;
                }
                // Packets of devices go to another device, not to an address.
                Decoded::Dup(dup) if key.0 == Family::NETDEV => dup.sreg_addr = None,
                Decoded::FlowOffload(offload) => {
                    let flowtables = &table.flowtables;
                    flowtables.get(name(&offload.table_name)).ok_or(ABSENT)?;
                }
                _ => {}
            }
            Ok(())
        };
        let resolved = expressions.normal_with(|decoded| {
            if result.is_ok() {
                result = resolve(decoded);
            }
        });
        result.map(|()| resolved)
    }

    pub(super) fn delete_rules(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let rule = Rule::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&rule.table)?;
        let of_id = rule
            .id
            .map(|id| self.rule_ids.get(&id).copied().ok_or(ABSENT));
        let table = self.table_mut(&key)?;
        let mut gone = Vec::new();
        match &rule.chain {
            None => {
                let chains = table.chains.iter_mut();
                for chain in chains.filter(|chain| !is_binding(&chain.chain)) {
                    gone.append(&mut chain.rules);
                }
            }
            Some(chain) => {
                let found = table.chains.get_mut(&***chain);
                let Some(chain) = operation.to_delete(found)? else {
                    return Ok(());
                };
                let handle = match rule.handle {
                    Some(handle) => Some(handle),
                    None => of_id.transpose()?,
                };
                match handle {
                    None => gone.append(&mut chain.rules),
                    Some(handle) => {
                        let is = |rule: &Rule<'_>| rule.handle == Some(handle);
                        let place = operation.to_delete(chain.rules.iter().position(is))?;
                        gone.extend(place.map(|place| chain.rules.remove(place)));
                    }
                }
            }
        }
        gone.iter().for_each(|rule| table.forget(rule));
        Ok(())
    }
}

impl RulesetTable {
    /// Removes the anonymous sets and bound chains of a removed rule.
    pub(super) fn forget(&mut self, rule: &Rule<'_>) {
        let expressions = rule.expressions.iter().flat_map(Expressions::iter);
        for expression in expressions.map_while(Result::ok) {
            let Some(decoded) = ObjectReference::decode(&expression) else {
                continue;
            };
            match ObjectReference::of(&decoded) {
                Some(ObjectReference::Set(name)) => {
                    let set = self
                        .sets
                        .get(name)
                        .map(|set| set.set.flags.unwrap_or_default());
                    if set.is_some_and(|flags| flags.contains(SetFlags::ANONYMOUS)) {
                        self.sets.remove(name);
                    }
                }
                Some(ObjectReference::Chain(name)) => {
                    let chain = self.chains.get(name);
                    if chain.is_some_and(|chain| is_binding(&chain.chain))
                        && let Some(chain) = self.chains.remove(name)
                    {
                        chain.rules.iter().for_each(|rule| self.forget(rule));
                    }
                }
                _ => {}
            }
        }
    }
}
