//! Adds, changes, renames and deletes chains.

use bstr::BString;

use super::{ABSENT, Batch, EXISTS, INVALID, Operation, Refusal, TableKey, UNSUPPORTED};
use crate::nft::chain::Hook;
use crate::nft::expr::{Data, Decoded, Immediate, Verdict};
use crate::nft::normalize::Normal as _;
use crate::nft::ruleset::{PARSED, RulesetChain, RulesetTable};
use crate::nft::{Chain, ChainFlags, Device, Devices, ElementRef};

impl Batch<'_> {
    pub(super) fn new_chain(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
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
    pub(super) fn not_pending(&self, table: &TableKey, name: &[u8]) -> Result<(), Refusal> {
        let mut pending = self.renamed_chains.iter();
        match pending.any(|(of, _, other)| of == table && *other == name) {
            true => Err(EXISTS),
            false => Ok(()),
        }
    }

    pub(super) fn delete_chain(&mut self, operation: Operation<'_>) -> Result<(), Refusal> {
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
}

/// Returns `true` if a chain belongs to a rule.
pub(super) fn is_binding(chain: &Chain<'_>) -> bool {
    chain
        .flags
        .unwrap_or_default()
        .contains(ChainFlags::BINDING)
}

/// Changes an existing chain: its policy, counters, and additional devices.
pub(super) fn update_chain(
    table: &mut RulesetTable,
    named: &BString,
    new: &Chain<'_>,
) -> Result<(), Refusal> {
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
pub(super) fn devices_of(hook: Option<&Hook<'_>>) -> Devices<'static> {
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

pub(super) fn with_devices(old: Option<Devices<'static>>, added: &Devices<'_>) -> Devices<'static> {
    let old = old.unwrap_or_default();
    let mut all = old.clone();
    for device in added {
        if !old.iter().any(|one| one == device) {
            all.push(device);
        }
    }
    all
}

pub(super) fn without_devices(
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

impl RulesetTable {
    /// Changes the name of a chain, also in the verdicts that refer to it.
    pub(super) fn rename_chain(&mut self, old: &BString, new: BString) {
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
