//! Executes the operations of a transaction on a ruleset: names for ids, values that elements inherit from their set,
//! and the removal of what belongs to a rule.
//!
//! Each operation checks first and changes afterwards, so that a refused one changes nothing.

use std::collections::{BTreeMap, HashMap};

use bstr::{BStr, BString};
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use chainwright_sys::nf_tables::{
    NFT_MSG_DELCHAIN, NFT_MSG_DELFLOWTABLE, NFT_MSG_DELOBJ, NFT_MSG_DELRULE, NFT_MSG_DELSET,
    NFT_MSG_DELSETELEM, NFT_MSG_DELTABLE, NFT_MSG_DESTROYCHAIN, NFT_MSG_DESTROYFLOWTABLE,
    NFT_MSG_DESTROYOBJ, NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSET, NFT_MSG_DESTROYSETELEM,
    NFT_MSG_DESTROYTABLE, NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE,
    NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE,
};

use super::{PARSED, Ruleset, RulesetChain, RulesetSet, RulesetTable, name};
use crate::errno::Errno;
use crate::netlink::{Malformed, Message};
use crate::nft::chain::Hook;
use crate::nft::commit::CommitError;
use crate::nft::declare::Field;
use crate::nft::element::ElementKey;
use crate::nft::expr::{Data, Decoded, Expressions, Immediate, ObjectType, Verdict};
use crate::nft::normal::Normal as _;
use crate::nft::snapshot::{ObjectReference, kept_flags};
use crate::nft::{
    Chain, ChainFlags, Device, Devices, Element, ElementRef, ElementsRef, Family, Flowtable,
    Milliseconds, Name, ObjectData, Rule, Set, SetFlags, StatefulObject, Table, Transaction,
};

/// The size that the kernel gives a set without one when a rule adds to it.
const UPDATED_SIZE: u32 = 65535;
/// Every kernel represents multiples of this time exactly: its timer has 100, 250, 300 or 1,000 ticks a second.
const EXACT_MILLISECONDS: u64 = 20;

/// An error number of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Refusal(i32);

const ABSENT: Refusal = Refusal(libc::ENOENT);
const EXISTS: Refusal = Refusal(libc::EEXIST);
const INVALID: Refusal = Refusal(libc::EINVAL);
const UNSUPPORTED: Refusal = Refusal(libc::EOPNOTSUPP);

impl From<Malformed> for Refusal {
    fn from(_: Malformed) -> Self {
        INVALID
    }
}

type TableKey = (Family, BString);

/// Executes the operations of a transaction up to the first refused one.
pub(super) fn apply(ruleset: &mut Ruleset, tx: &Transaction) -> Result<(), CommitError> {
    let mut batch = Batch {
        ruleset,
        set_ids: HashMap::new(),
        chain_ids: HashMap::new(),
        rule_ids: HashMap::new(),
        updated_sets: Vec::new(),
        renamed_chains: Vec::new(),
    };
    for (index, message) in tx.messages().enumerate() {
        let executed = batch.execute(&message);
        executed
            .map_err(|refusal| CommitError::of_operation(index, &message, Errno::new(refusal.0)))?;
    }
    for (table, name, handle, new) in batch.updated_sets {
        let table = batch.ruleset.tables.get_mut(&table);
        let set = table.and_then(|table| table.sets.get_mut(&name));
        // Not a set of this name that the transaction created later.
        if let Some(set) = set.filter(|set| set.set.handle == handle) {
            set.update(&new);
        }
    }
    for (table, handle, name) in batch.renamed_chains {
        if let Some(table) = batch.ruleset.tables.get_mut(&table)
            && let Some(old) = table.chains.find(|one| one.chain.handle == handle)
        {
            let old = old.clone();
            table.rename_chain(&old, name);
        }
    }
    Ok(())
}

/// A transaction in progress: the ruleset, and what its ids mean.
struct Batch<'r> {
    ruleset: &'r mut Ruleset,
    set_ids: HashMap<u32, (TableKey, BString)>,
    chain_ids: HashMap<u32, (TableKey, BString)>,
    rule_ids: HashMap<u32, u64>,
    /// The names and handles of existing sets with their new properties, which take effect at the end.
    updated_sets: Vec<(TableKey, BString, Option<u64>, Set<'static>)>,
    /// The handles of chains with their new names, which take effect at the end.
    renamed_chains: Vec<(TableKey, Option<u64>, BString)>,
}

/// An operation: the flags and the family of its message, and whether it may find nothing to delete.
#[derive(Clone, Copy)]
struct Operation<'m> {
    flags: u16,
    family: Family,
    destroys: bool,
    attributes: &'m [u8],
}

impl Operation<'_> {
    const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Refuses the creation of an existing object.
    const fn may_exist(&self) -> Result<(), Refusal> {
        match self.has(NLM_F_EXCL) {
            true => Err(EXISTS),
            false => Ok(()),
        }
    }

    /// Returns the object to delete, if it exists.
    fn to_delete<T>(self, found: Option<T>) -> Result<Option<T>, Refusal> {
        match found {
            None if !self.destroys => Err(ABSENT),
            found => Ok(found),
        }
    }

    /// Returns the table of an object.
    fn table(&self, table: &Option<Name<'_>>) -> Result<TableKey, Refusal> {
        Ok((self.family, table.as_ref().ok_or(INVALID)?.to_vec().into()))
    }
}

impl Batch<'_> {
    fn execute(&mut self, message: &Message<'_>) -> Result<(), Refusal> {
        let (header, attributes) = message.nfgenmsg()?;
        let kind = message.kind as u8;
        let destroys = (NFT_MSG_DESTROYTABLE..=NFT_MSG_DESTROYFLOWTABLE).contains(&kind);
        let operation = Operation {
            flags: message.flags,
            family: Family(header.family),
            destroys,
            attributes,
        };
        match kind {
            NFT_MSG_NEWTABLE => self.new_table(operation),
            NFT_MSG_DELTABLE | NFT_MSG_DESTROYTABLE => self.delete_tables(operation),
            NFT_MSG_NEWCHAIN => self.new_chain(operation),
            NFT_MSG_DELCHAIN | NFT_MSG_DESTROYCHAIN => self.delete_chain(operation),
            NFT_MSG_NEWRULE => self.new_rule(operation),
            NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => self.delete_rules(operation),
            NFT_MSG_NEWSET => self.new_set(operation),
            NFT_MSG_DELSET | NFT_MSG_DESTROYSET => self.delete_set(operation),
            NFT_MSG_NEWSETELEM => self.new_elements(operation, ElementsRef::parse(message)?),
            NFT_MSG_DELSETELEM | NFT_MSG_DESTROYSETELEM => {
                self.delete_elements(operation, ElementsRef::parse(message)?)
            }
            NFT_MSG_NEWOBJ => self.new_object(operation),
            NFT_MSG_DELOBJ | NFT_MSG_DESTROYOBJ => self.delete_object(operation),
            NFT_MSG_NEWFLOWTABLE => self.new_flowtable(operation),
            NFT_MSG_DELFLOWTABLE | NFT_MSG_DESTROYFLOWTABLE => self.delete_flowtable(operation),
            _ => Err(INVALID),
        }
    }

    fn table(&self, key: &TableKey) -> Result<&RulesetTable, Refusal> {
        self.ruleset.tables.get(key).ok_or(ABSENT)
    }

    fn table_mut(&mut self, key: &TableKey) -> Result<&mut RulesetTable, Refusal> {
        self.ruleset.tables.get_mut(key).ok_or(ABSENT)
    }

    fn new_table(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let table = Table::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&table.name)?;
        if !Family::WITH_TABLES.contains(&operation.family) {
            return Err(UNSUPPORTED);
        }
        if let Ok(existing) = self.table_mut(&key) {
            operation.may_exist()?;
            if table.flags.is_some() {
                existing.table.flags = table.flags.map(kept_flags);
            }
            return Ok(());
        }
        let mut table = RulesetTable::new(table.into_owned());
        table.table.handle = self.ruleset.handle();
        self.ruleset.tables.insert(key, table);
        Ok(())
    }

    fn delete_tables(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let table = Table::from_attributes(operation.family, operation.attributes)?;
        let family = operation.family;
        if family == Family::UNSPEC || table.name.is_none() && table.handle.is_none() {
            let is_meant = |one: &RulesetTable| {
                (family == Family::UNSPEC || one.table.family == family)
                    && (table.name.is_none() || one.table.name == table.name)
            };
            self.ruleset.tables.retain(|table| !is_meant(table));
            return Ok(());
        }
        let tables = &self.ruleset.tables;
        let found = match table.handle {
            Some(_) => tables
                .find(|one| one.table.family == family && one.table.handle == table.handle)
                .cloned(),
            None => Some(operation.table(&table.name)?).filter(|key| tables.get(key).is_some()),
        };
        if let Some(key) = operation.to_delete(found)? {
            self.ruleset.tables.remove(&key);
        }
        Ok(())
    }

    fn new_chain(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let chain = Chain::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&chain.table)?;
        let mut bound_chains = self.ruleset.bound_chains + 1;
        let table = self.table_mut(&key)?;
        let existing = match chain.handle {
            Some(_) => {
                let found = table.chains.find(|one| one.chain.handle == chain.handle);
                Some(found.ok_or(ABSENT)?.clone())
            }
            None => {
                let named = chain.name.as_ref().map(|name| BString::from(name.to_vec()));
                named.filter(|name| table.chains.get(name).is_some())
            }
        };
        if let Some(existing) = existing {
            operation.may_exist()?;
            let renamed = match (&chain.handle, &chain.name) {
                (Some(_), Some(name)) => Some(BString::from(name.to_vec())),
                _ => None,
            };
            let taken = |name| {
                self.table(&key)?
                    .chains
                    .get(name)
                    .map_or(Ok(()), |_| Err(EXISTS))
            };
            if let Some(name) = &renamed {
                taken(name).and(self.not_pending(&key, name))?;
            }
            update_chain(self.table_mut(&key)?, &existing, &chain)?;
            let renamed = renamed.map(|name| (key, chain.handle, name));
            self.renamed_chains.extend(renamed);
            return Ok(());
        }
        if chain.policy.is_some() && chain.hook.is_none() {
            return Err(UNSUPPORTED);
        }
        if let Some(name) = &chain.name {
            self.not_pending(&key, name)?;
        }
        let table = self.table(&key)?;
        let is_bound = is_binding(&chain);
        let id = chain.id;
        let mut chain = chain.into_owned();
        chain.normalize();
        let named = match &chain.name {
            Some(name) => name.to_vec().into(),
            None if is_bound => loop {
                let named = BString::from(format!("__chain{bound_chains}"));
                if table.chains.get(&named).is_none() {
                    break named;
                }
                bound_chains += 1;
            },
            None => return Err(INVALID),
        };
        if chain.name.is_none() {
            self.ruleset.bound_chains = bound_chains;
        }
        chain.name = Some(named.clone().into());
        chain.handle = self.ruleset.handle();
        if let Some(id) = id {
            self.chain_ids.insert(id, (key.clone(), named.clone()));
        }
        let rules = Vec::new();
        let table = self.table_mut(&key)?;
        table.chains.insert(named, RulesetChain { chain, rules });
        Ok(())
    }

    /// Refuses the name that another chain gets at the end. (The kernel accepts a new chain of that name; then two chains
    /// have one name.)
    fn not_pending(&self, table: &TableKey, name: &[u8]) -> Result<(), Refusal> {
        let mut pending = self.renamed_chains.iter();
        match pending.any(|(of, _, other)| of == table && *other == name) {
            true => Err(EXISTS),
            false => Ok(()),
        }
    }

    fn delete_chain(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let chain = Chain::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&chain.table)?;
        let table = self.table_mut(&key)?;
        let found = match chain.handle {
            Some(_) => table.chains.find(|one| one.chain.handle == chain.handle),
            None => table.chains.find_key(chain.name.as_deref().ok_or(INVALID)?),
        };
        let Some(named) = operation.to_delete(found.cloned())? else {
            return Ok(());
        };
        let Some(existing) = table.chains.get_mut(&named) else {
            return Ok(());
        };
        let has_devices = |hook: &Hook<'_>| hook.device.is_some() || hook.devices.is_some();
        if chain.hook.as_ref().is_some_and(has_devices)
            && let Some(hook) = existing
                .chain
                .hook
                .as_mut()
                .filter(|hook| has_devices(hook))
        {
            let gone = devices_of(chain.hook.as_ref());
            hook.devices = Some(without_devices(hook.devices.as_ref(), &gone)?);
            hook.device = None;
            existing.chain.normalize();
            return Ok(());
        }
        if let Some(chain) = table.chains.remove(&named) {
            chain.rules.iter().for_each(|rule| table.forget(rule));
        }
        Ok(())
    }

    fn new_rule(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
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
    fn chain_of_id(&self, table: &TableKey, id: u32) -> Result<&BString, Refusal> {
        match self.chain_ids.get(&id) {
            Some((of, name)) if of == table => Ok(name),
            _ => Err(ABSENT),
        }
    }

    /// Returns the set with a name, or else the one with an id.
    fn set<'t>(
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
    fn resolve_verdict(
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
    fn resolved(
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

    fn delete_rules(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
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

    fn new_set(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let set = Set::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&set.table)?;
        let id = set.id;
        let mut set = set.into_owned();
        set.normalize();
        set.timeout = set.timeout.map(exact);
        let mut named = BString::from(set.name.as_ref().ok_or(INVALID)?.to_vec());
        let table = self.table_mut(&key)?;
        if let Some(existing) = table.sets.get_mut(&named) {
            operation.may_exist()?;
            let definition = |set: &Set<'static>| Set {
                handle: None,
                timeout: None,
                gc_interval: None,
                policy: None,
                userdata: None,
                description: set.description.clone().map(|mut description| {
                    description.size = None;
                    description
                }),
                ..set.clone()
            };
            if definition(&set) != definition(&existing.set) {
                return Err(EXISTS);
            }
            let handle = existing.set.handle;
            self.updated_sets.push((key, named, handle, set));
            return Ok(());
        }
        if !operation.has(NLM_F_CREATE) {
            return Err(ABSENT);
        }
        let is_anonymous = set.flags.unwrap_or_default().contains(SetFlags::ANONYMOUS);
        if is_anonymous && let Some(before) = named.strip_suffix(b"%d") {
            let before = before.to_vec();
            loop {
                named = [&before[..], table.anonymous_sets.to_string().as_bytes()]
                    .concat()
                    .into();
                table.anonymous_sets += 1;
                if table.sets.get(&named).is_none() {
                    break;
                }
            }
        }
        set.name = Some(named.clone().into());
        set.handle = self.ruleset.handle();
        if let Some(id) = id {
            self.set_ids.insert(id, (key.clone(), named.clone()));
        }
        let elements = Default::default();
        self.table_mut(&key)?
            .sets
            .insert(named, RulesetSet { set, elements });
        Ok(())
    }

    fn delete_set(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let set = Set::from_attributes(operation.family, operation.attributes)?;
        let table = self.table_mut(&operation.table(&set.table)?)?;
        let found = match set.handle {
            Some(_) => table.sets.find(|one| one.set.handle == set.handle),
            None => table.sets.find_key(set.name.as_deref().ok_or(INVALID)?),
        };
        if let Some(named) = operation.to_delete(found.cloned())? {
            table.sets.remove(&named);
        }
        Ok(())
    }

    /// Returns the table and the name of the set of a list of elements.
    fn set_of_elements(
        &self,
        operation: Operation<'_>,
        list: &ElementsRef<'_>,
    ) -> Result<(TableKey, BString), Refusal> {
        let key = (operation.family, list.table().to_owned());
        let set = self.set(&key, self.table(&key)?, Some(list.set()), list.set_id())?;
        let named = name(&set.set.name).to_owned();
        Ok((key, named))
    }

    fn new_elements(
        &mut self,
        operation: Operation<'_>,
        list: ElementsRef<'_>,
    ) -> Result<(), Refusal> {
        let (key, named) = self.set_of_elements(operation, &list)?;
        let table = self.table(&key)?;
        let set = table.sets.get(&named).ok_or(ABSENT)?;
        let mut new = BTreeMap::new();
        for element in list.elements().into_iter().flatten() {
            let element = self
                .element(&key, table, &set.set, &element?)?
                .into_normal();
            let identity = ElementKey::of(&element)?.into_owned();
            let existing = new.get(&identity);
            if let Some(existing) = existing.or_else(|| set.elements.get(&identity)) {
                operation.may_exist()?;
                let [one, other] = [&element, &existing[..]]
                    .map(|element| ElementRef::parse(element).expect(PARSED));
                if one.data() != other.data() || one.object() != other.object() {
                    return Err(EXISTS);
                }
                if one.timeout() == other.timeout() && one.expiration().is_none() {
                    continue;
                }
            }
            new.insert(identity, element.into_boxed_slice());
        }
        let table = self.table_mut(&key)?;
        let set = table.sets.get_mut(&named).ok_or(ABSENT)?;
        set.elements.extend(new);
        Ok(())
    }

    /// Returns an element with names for ids, and with what it inherits from its set.
    fn element<'e>(
        &self,
        key: &TableKey,
        table: &RulesetTable,
        set: &Set<'_>,
        element: &ElementRef<'e>,
    ) -> Result<Element<'e>, Refusal> {
        let is_end = element.is_interval_end();
        let mut element = element.to_builder();
        if let Some(Data::Verdict(verdict)) = &mut element.data {
            self.resolve_verdict(key, table, verdict)?;
        }
        if let Some(object) = &element.object {
            let of_type = set.object_type.unwrap_or_default();
            let object = (of_type, BString::from(object.to_vec()));
            table.objects.get(&object).ok_or(ABSENT)?;
        }
        let flags = set.flags.unwrap_or_default();
        let needs = |flag| flags.contains(flag) && !is_end;
        if element.data.is_some() != needs(SetFlags::MAP)
            || element.object.is_some() != needs(SetFlags::OBJECT)
        {
            return Err(INVALID);
        }
        let length =
            |data: &Option<Data<'_>>| data.as_ref().and_then(Data::as_value).map(<[u8]>::len);
        let set_length = set.key_length.map(|length| length as usize);
        if length(&element.key).is_some_and(|length| Some(length) != set_length) {
            return Err(INVALID);
        }
        // The kernel lists a timeout only if it is not the set's.
        let default = set.timeout.unwrap_or_default();
        element.timeout = element.timeout.map(exact);
        element.timeout.take_if(|timeout| *timeout == default);
        if element.expression.is_none() && element.expressions.is_none() {
            element.expression = set.expression.clone().map(Field::into_static);
            element.expressions = set.expressions.clone().map(Field::into_static);
        }
        Ok(element)
    }

    fn delete_elements(
        &mut self,
        operation: Operation<'_>,
        list: ElementsRef<'_>,
    ) -> Result<(), Refusal> {
        let (key, named) = self.set_of_elements(operation, &list)?;
        let set = self.table_mut(&key)?.sets.get_mut(&named).ok_or(ABSENT)?;
        let Some(elements) = list.elements() else {
            set.elements.clear();
            return Ok(());
        };
        let mut gone = Vec::new();
        for element in elements {
            let element = element?.to_builder().into_normal();
            let identity = ElementKey::of(&element)?.into_owned();
            let found = set.elements.contains_key(&identity).then_some(identity);
            gone.extend(operation.to_delete(found)?);
        }
        for identity in gone {
            set.elements.remove(&identity);
        }
        Ok(())
    }

    fn new_object(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let object = StatefulObject::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&object.table)?;
        let mut object = object.into_owned();
        object.normalize();
        let identity = identity(&object)?;
        let table = self.table_mut(&key)?;
        if let Some(existing) = table.objects.get_mut(&identity) {
            operation.may_exist()?;
            // Only quotas can be changed; the used amount remains.
            if let (Some(ObjectData::Quota(old)), Some(ObjectData::Quota(new))) =
                (&mut existing.data, object.data)
            {
                (old.bytes, old.flags) = (new.bytes, new.flags);
                existing.normalize();
            }
            return Ok(());
        }
        object.handle = self.ruleset.handle();
        self.table_mut(&key)?.objects.insert(identity, object);
        Ok(())
    }

    fn delete_object(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let object = StatefulObject::from_attributes(operation.family, operation.attributes)?;
        let table = self.table_mut(&operation.table(&object.table)?)?;
        let found = match object.handle {
            Some(_) => table
                .objects
                .find(|one| one.handle == object.handle && one.object_type == object.object_type),
            None => table.objects.find_key(&identity(&object)?),
        };
        if let Some(identity) = operation.to_delete(found.cloned())? {
            table.objects.remove(&identity);
        }
        Ok(())
    }

    fn new_flowtable(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let flowtable = Flowtable::from_attributes(operation.family, operation.attributes)?;
        let key = operation.table(&flowtable.table)?;
        let mut flowtable = flowtable.into_owned();
        let named = BString::from(flowtable.name.as_ref().ok_or(INVALID)?.to_vec());
        let table = self.table_mut(&key)?;
        if let Some(existing) = table.flowtables.get_mut(&named) {
            operation.may_exist()?;
            existing.flags = flowtable.flags.or(existing.flags);
            if let Some(new) = flowtable.hook.and_then(|hook| hook.devices) {
                let hook = existing.hook.get_or_insert_default();
                hook.devices = Some(with_devices(hook.devices.take(), &new));
            }
            return Ok(());
        }
        flowtable.normalize();
        flowtable.handle = self.ruleset.handle();
        self.table_mut(&key)?.flowtables.insert(named, flowtable);
        Ok(())
    }

    fn delete_flowtable(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
        let flowtable = Flowtable::from_attributes(operation.family, operation.attributes)?;
        let table = self.table_mut(&operation.table(&flowtable.table)?)?;
        let found = match flowtable.handle {
            Some(_) => table.flowtables.find(|one| one.handle == flowtable.handle),
            None => {
                let named = flowtable.name.as_deref().ok_or(INVALID)?;
                table.flowtables.find_key(named)
            }
        };
        let Some(named) = operation.to_delete(found.cloned())? else {
            return Ok(());
        };
        match flowtable.hook {
            None => _ = table.flowtables.remove(&named),
            Some(gone) => {
                let gone = gone.devices.unwrap_or_default();
                if let Some(existing) = table.flowtables.get_mut(&named) {
                    let hook = existing.hook.get_or_insert_default();
                    hook.devices = Some(without_devices(hook.devices.as_ref(), &gone)?);
                }
            }
        }
        Ok(())
    }
}

/// Rounds a timeout up to a time that every kernel lists as it was sent. The kernel would round it down to its ticks.
fn exact(timeout: Milliseconds) -> Milliseconds {
    let steps = timeout.0.div_ceil(EXACT_MILLISECONDS);
    Milliseconds(steps.saturating_mul(EXACT_MILLISECONDS))
}

/// Returns the type and the name of an object.
fn identity(object: &StatefulObject<'_>) -> Result<(ObjectType, BString), Refusal> {
    match (object.object_type, &object.name) {
        (Some(object_type), Some(name)) => Ok((object_type, name.to_vec().into())),
        _ => Err(INVALID),
    }
}

/// Returns `true` if a chain belongs to a rule.
fn is_binding(chain: &Chain<'_>) -> bool {
    chain
        .flags
        .unwrap_or_default()
        .contains(ChainFlags::BINDING)
}

/// Changes an existing chain: its policy, counters, and additional devices.
fn update_chain(table: &mut RulesetTable, named: &BString, new: &Chain<'_>) -> Result<(), Refusal> {
    let Some(existing) = table.chains.get_mut(named) else {
        return Err(ABSENT);
    };
    if is_binding(&existing.chain) {
        return Err(INVALID);
    }
    match (&mut existing.chain.hook, &new.hook) {
        (Some(hook), Some(given)) => {
            let differs = |old: Option<i64>, new: Option<i64>| new.is_some() && new != old;
            let old_type = &existing.chain.chain_type;
            if differs(hook.number.map(Into::into), given.number.map(Into::into))
                || differs(
                    hook.priority.map(Into::into),
                    given.priority.map(Into::into),
                )
                || new.chain_type.is_some() && new.chain_type != *old_type
            {
                return Err(EXISTS);
            }
            let added = devices_of(Some(given));
            if added.iter().next().is_some() {
                hook.devices = Some(with_devices(hook.devices.take(), &added));
            }
        }
        (None, Some(_)) => return Err(EXISTS),
        (None, None) if new.policy.is_some() || new.counters.is_some() => return Err(UNSUPPORTED),
        _ => {}
    }
    existing.chain.policy = new.policy.or(existing.chain.policy);
    if let Some(counters) = &new.counters {
        existing.chain.counters = Some(counters.clone());
    }
    existing.chain.normalize();
    Ok(())
}

/// Returns the devices of a hook, in either form.
fn devices_of(hook: Option<&Hook<'_>>) -> Devices<'static> {
    let mut devices = Devices::default();
    if let Some(hook) = hook {
        match &hook.device {
            Some(device) => _ = devices.push(Device::Name(device)),
            None => {
                for device in hook.devices.iter().flatten() {
                    devices.push(device);
                }
            }
        }
    }
    devices
}

fn with_devices(old: Option<Devices<'static>>, added: &Devices<'_>) -> Devices<'static> {
    let old = old.unwrap_or_default();
    let mut all = old.clone();
    for device in added {
        if !old.iter().any(|one| one == device) {
            all.push(device);
        }
    }
    all
}

fn without_devices(
    old: Option<&Devices<'_>>,
    gone: &Devices<'_>,
) -> Result<Devices<'static>, Refusal> {
    let mut rest = Devices::default();
    let mut found = 0;
    for device in old.into_iter().flatten() {
        match gone.iter().any(|one| one == device) {
            true => found += 1,
            false => _ = rest.push(device),
        }
    }
    match found == gone.iter().count() {
        true => Ok(rest),
        false => Err(ABSENT),
    }
}

impl RulesetSet {
    /// Changes the properties that an existing set can get.
    fn update(&mut self, new: &Set<'static>) {
        let size = |set: &Set<'_>| {
            set.description
                .as_ref()
                .and_then(|description| description.size)
        };
        if let Some(size) = size(new) {
            self.set.description.get_or_insert_default().size = Some(size);
        }
        self.set.gc_interval = new.gc_interval;
        let old = std::mem::replace(&mut self.set.timeout, new.timeout);
        if old == new.timeout {
            return;
        }
        // Existing elements keep their timeouts.
        for element in self.elements.values_mut() {
            let parsed = ElementRef::parse(element).expect(PARSED);
            if !parsed.is_interval_end() {
                let mut element_with = parsed.to_builder();
                let timeout = element_with.timeout.unwrap_or(old.unwrap_or_default());
                element_with.timeout =
                    Some(timeout).filter(|timeout| *timeout != new.timeout.unwrap_or_default());
                *element = element_with.into_normal().into();
            }
        }
    }
}

impl RulesetTable {
    /// Removes the anonymous sets and bound chains of a removed rule.
    fn forget(&mut self, rule: &Rule<'_>) {
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

    /// Changes the name of a chain, also in the verdicts that lead to it.
    fn rename_chain(&mut self, old: &BString, new: BString) {
        let rename = |verdict: &mut Verdict<'_>| {
            if let Verdict::Jump(name) | Verdict::Goto(name) = verdict
                && **name == *old
            {
                *name = new.clone().into();
                return true;
            }
            false
        };
        for chain in self.chains.iter_mut() {
            for rule in &mut chain.rules {
                let mut renamed = false;
                let expressions = rule.expressions.as_ref().map(|list| {
                    list.normal_with(|decoded| {
                        if let Decoded::Immediate(Immediate {
                            data: Some(Data::Verdict(verdict)),
                            ..
                        }) = decoded
                        {
                            renamed |= rename(verdict);
                        }
                    })
                });
                if renamed {
                    rule.expressions = expressions;
                }
            }
        }
        for element in self
            .sets
            .iter_mut()
            .flat_map(|set| set.elements.values_mut())
        {
            let parsed = ElementRef::parse(element).expect(PARSED);
            if let Some(Data::Verdict(mut verdict)) = parsed.data()
                && rename(&mut verdict)
            {
                let mut renamed = parsed.to_builder();
                renamed.data = Some(Data::Verdict(verdict));
                *element = renamed.into_normal().into();
            }
        }
        self.chains.rename(old, new.clone());
        if let Some(chain) = self.chains.get_mut(&new) {
            for rule in &mut chain.rules {
                rule.chain = Some(new.clone().into());
            }
            chain.chain.name = Some(new.into());
        }
    }
}
