//! Implements the editor's operations for a session.

use std::collections::{HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};

use super::{ChainState, Rules, Session, Slot, builtin_chain};
use crate::iptables::edit::{Editor, Splice};
use crate::iptables::{Backend, Counters, Entry, Error, NotExpressible, Policy, Rule};
use crate::nft::expr::{Counter, Data, Decoded, ExpressionRef, Verdict};
use crate::nft::{self, Chain, Compat, RuleFilter, Scope, is_cheaper_to_recreate};

impl Editor for Session<'_> {
    fn set_line(&mut self, line: usize) {
        self.note_lines();
        self.line = u32::try_from(line).unwrap_or(u32::MAX);
    }

    fn clear(&mut self, table: usize) -> Result<(), Error> {
        self.write_deferred()?;
        // Only an existing table can be deleted.
        self.add_table(table)?;
        let state = &mut self.tables[table];
        let object = nft::Table::new(state.family.into(), state.name.as_str());
        self.transaction.delete(&object)?;
        state.added = false;
        state.chains.clear();
        (state.flushed, state.cleared) = (true, true);
        Ok(())
    }

    fn chains(&mut self, table: usize) -> Result<Vec<BString>, Error> {
        self.guard()?;
        let state = &self.tables[table];
        let mut names = Vec::new();
        if !state.cleared
            && let Some(connection) = &mut self.connection
        {
            let filter = Scope::table(state.family.into(), &state.name);
            let chains = connection.chains(filter)?;
            chains.for_each(|chain| names.push(chain.name().to_owned()))?;
        }
        let known = state.chains.values();
        let renamed: HashSet<_> = known.filter_map(|chain| chain.old_name.as_ref()).collect();
        names.retain(|name| {
            let known = state.chains.get(name.as_bstr());
            known.and_then(|chain| chain.exists) != Some(false) && !renamed.contains(name)
        });
        for name in &names {
            // Saves later requests to the kernel.
            self.chain(table, name.as_bstr()).exists = Some(true);
        }
        let known = self.tables[table].chains.iter();
        let present = known.filter(|(_, chain)| chain.exists == Some(true));
        names.extend(present.map(|(name, _)| name.clone()));
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn has_chain(&mut self, table: usize, chain: &BStr) -> Result<bool, Error> {
        if let Some(exists) = self.chain(table, chain).exists {
            return Ok(exists);
        }
        self.guard()?;
        let state = &self.tables[table];
        let family = state.family.into();
        let exists = match &mut self.connection {
            Some(connection) => connection.chain_exists(family, state.name.as_str(), chain)?,
            None => false,
        };
        self.chain(table, chain).exists = Some(exists);
        Ok(exists)
    }

    fn new_chain(&mut self, table: usize, chain: &BStr) -> Result<(), Error> {
        self.write_deferred()?;
        if self.chain(table, chain).exists == Some(true) {
            return Err(Error::ChainExists {
                table: self.tables[table].name.clone(),
                chain: chain.to_owned(),
            });
        }
        self.check_not_renamed(table, chain)?;
        self.prepare(table, chain)?;
        let object = self.object(table, chain);
        self.transaction.create(&object)?;
        *self.chain(table, chain) = ChainState::without_rules(Some(true));
        Ok(())
    }

    fn declare(&mut self, table: usize, chain: &BStr) -> Result<(), Error> {
        self.write_deferred()?;
        self.check_not_renamed(table, chain)?;
        self.prepare(table, chain)?;
        let state = &self.tables[table];
        if builtin_chain(&state.name, chain).is_some() {
            return Ok(());
        }
        let cleared = state.cleared;
        let state = self.chain(table, chain);
        let is_new = cleared && state.exists == Some(false);
        *state = ChainState {
            old_name: state.old_name.take(),
            ..ChainState::without_rules(Some(true))
        };
        let object = self.object(table, chain);
        self.transaction.add(&object)?;
        if !is_new {
            let state = &self.tables[table];
            let kernel_name = object.name.unwrap_or_default();
            self.transaction
                .flush_chain(state.family.into(), state.name.as_str(), kernel_name)?;
        }
        Ok(())
    }

    fn backend(&self) -> Backend {
        Backend::Nft
    }

    fn remove_chain(&mut self, table: usize, chain: &BStr) -> Result<(), Error> {
        self.write_deferred()?;
        // The kernel would delete the rules with the chain.
        if !self.load(table, chain)?.is_empty() {
            return Err(Error::NotEmpty {
                table: self.tables[table].name.clone(),
                chain: chain.to_owned(),
            });
        }
        let is_builtin = builtin_chain(&self.tables[table].name, chain).is_some();
        if is_builtin && self.chain(table, chain).added {
            // The policy that it will have is unknown here.
            return Err(Error::Unsupported {
                what: "removing a built-in chain in the same change that modifies it",
                backend: crate::iptables::Backend::Nft,
            });
        }
        let object = self.object(table, chain);
        self.transaction.delete(&object)?;
        // A built-in chain comes back when something is added to it.
        let exists = (!is_builtin).then_some(false);
        *self.chain(table, chain) = ChainState::without_rules(exists);
        Ok(())
    }

    fn rename_chain(&mut self, table: usize, from: &BStr, to: &BStr) -> Result<(), Error> {
        self.write_deferred()?;
        if self.has_chain(table, to)? {
            return Err(Error::ChainExists {
                table: self.tables[table].name.clone(),
                chain: to.to_owned(),
            });
        }
        if !self.has_chain(table, from)? {
            return Err(self.no_such_chain(table, from));
        }
        self.check_not_renamed(table, to)?;
        let object = self.object(table, from);
        let old_name = object.name.clone().unwrap_or_default();
        let state = &self.tables[table];
        let family = state.family.into();
        let found = match &mut self.connection {
            Some(connection) => connection.chain(family, state.name.as_str(), &*old_name)?,
            None => None,
        };
        let Some(handle) = found.map(|chain| chain.handle()) else {
            // This transaction creates the chain, and the kernel renames only by handle.
            return Err(Error::Unsupported {
                what: "renaming a chain in the same change that creates it",
                backend: crate::iptables::Backend::Nft,
            });
        };
        let renamed = Chain {
            handle: Some(handle),
            ..Chain::new(family, state.name.as_str(), to)
        };
        self.transaction.add(&renamed)?;
        self.tables[table].renamed = true;
        let removed_object = ChainState::without_rules(Some(false));
        let state = std::mem::replace(self.chain(table, from), removed_object);
        // References to the chain use its new name.
        for other in self.tables[table].chains.values_mut() {
            let Rules::Known(slots) = &mut other.rules else {
                continue;
            };
            for slot in slots {
                if let Ok(entry) = slot.entry_mut()
                    && let Some(name) = entry.rule.jump_chain_mut()
                    && name == from
                {
                    *name = to.to_owned();
                }
            }
        }
        *self.chain(table, to) = ChainState {
            old_name: Some(BString::from(old_name.as_bytes())),
            passed: state.passed,
            rules: state.rules,
            ..ChainState::without_rules(Some(true))
        };
        Ok(())
    }

    fn flush(&mut self, table: usize, chain: Option<&BStr>) -> Result<(), Error> {
        match chain {
            Some(chain) => {
                self.existing(table, chain)?.rules = Rules::Known(Vec::new());
                self.prepare(table, chain)?;
                let object = self.object(table, chain);
                let state = &self.tables[table];
                let name = object.name.unwrap_or_default();
                self.transaction
                    .flush_chain(state.family.into(), state.name.as_str(), name)?;
            }
            None => {
                self.add_table(table)?;
                let state = &mut self.tables[table];
                self.transaction
                    .flush_table(state.family.into(), state.name.as_str())?;
                state.flushed = true;
                for chain in state.chains.values_mut() {
                    chain.rules = Rules::Known(Vec::new());
                }
            }
        }
        Ok(())
    }

    fn set_policy(
        &mut self,
        table: usize,
        chain: &BStr,
        policy: Option<Policy>,
        counters: Option<Counters>,
    ) -> Result<(), Error> {
        let name = &self.tables[table].name;
        let Some(builtin) = builtin_chain(name, chain) else {
            return Err(Error::NoPolicy {
                table: name.clone(),
                chain: chain.to_owned(),
            });
        };
        self.add_table(table)?;
        self.chain(table, chain).added = true;
        let mut object =
            self.object(table, chain)
                .with_hook(builtin.chain_type, builtin.hook, builtin.priority);
        object.policy = policy.map(nft::Policy::from);
        object.counters = counters.map(nft::Counters::from);
        self.transaction.add(&object)?;
        Ok(())
    }

    fn policy(&mut self, table: usize, chain: &BStr) -> Result<Option<Policy>, Error> {
        self.guard()?;
        let state = &self.tables[table];
        let family = state.family.into();
        let known = match &mut self.connection {
            Some(connection) => connection.chain(family, state.name.as_str(), chain)?,
            None => None,
        };
        let known = known.filter(|known| known.hook().is_some());
        Ok(known.map(|known| match known.policy() {
            Some(nft::Policy::DROP) => Policy::Drop,
            _ => Policy::Accept,
        }))
    }

    fn has_builtin(&mut self, table: usize, chain: &BStr) -> Result<bool, Error> {
        Ok(self.chain(table, chain).added || self.policy(table, chain)?.is_some())
    }

    fn rule_count(&mut self, table: usize, chain: &BStr) -> Result<usize, Error> {
        Ok(self.load(table, chain)?.len())
    }

    fn rules(
        &mut self,
        table: usize,
        chain: &BStr,
    ) -> Result<Vec<Result<Entry, NotExpressible>>, Error> {
        let slots = self.load(table, chain)?;
        Ok(slots.iter().map(|slot| slot.entry().clone()).collect())
    }

    fn append(
        &mut self,
        table: usize,
        chain: &BStr,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error> {
        self.before_change(table, chain)?;
        self.put(table, chain, None, rule, counters)
    }

    fn insert(
        &mut self,
        table: usize,
        chain: &BStr,
        position: usize,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error> {
        self.before_change(table, chain)?;
        if position > 0 && position == self.rule_count(table, chain)? {
            return self.put(table, chain, None, rule, counters);
        }
        self.put(table, chain, Some(position), rule, counters)
    }

    fn replace(
        &mut self,
        table: usize,
        chain: &BStr,
        position: usize,
        rule: &Rule,
        counters: Counters,
    ) -> Result<(), Error> {
        let handle = self.reference_at(table, chain, position)?.handle;
        let is_deferred = self.chain(table, chain).is_deferred();
        let Some(handle) = handle.filter(|_| !is_deferred) else {
            // The kernel replaces only by handle, and this change creates the rule.
            self.insert(table, chain, position, rule, counters)?;
            return self.remove(table, chain, position.saturating_add(1));
        };
        self.before_jump(table, chain, rule)?;
        let mut encoded = self.encode(table, chain, rule, counters)?;
        encoded.handle = Some(handle);
        self.transaction.replace(&encoded)?;
        if let Rules::Known(slots) = &mut self.chain(table, chain).rules {
            slots.remove(position);
        }
        self.record_rule(table, chain, Some(position), encoded, rule, counters);
        Ok(())
    }

    fn splice(&mut self, table: usize, chain: &BStr, splices: &[Splice<'_>]) -> Result<(), Error> {
        self.prepare(table, chain)?;
        self.load(table, chain)?;
        // How many rules the kernel steps over to find the referenced ones.
        let rules = self.rule_count(table, chain)?;
        let passed = splices.iter().map(|splice| {
            let out = splice.out.clone();
            let ahead = if out.end < rules { out.end } else { 0 };
            out.sum::<usize>() + splice.put.len().saturating_mul(ahead)
        });
        let put: usize = splices.iter().map(|splice| splice.put.len()).sum();
        if is_cheaper_to_recreate(passed.fold(0, usize::saturating_add), rules + put) {
            self.defer_rules(table, chain)?;
        }
        let is_deferred = self.chain(table, chain).is_deferred();
        // Positions refer only to kept rules, so new ones need no tracking.
        let known = std::mem::replace(&mut self.chain(table, chain).rules, Rules::Untracked);
        let Rules::Known(mut slots) = known else {
            return Err(Error::Contended { attempts: 0 }); // impossible: they were read
        };
        for splice in splices.iter().rev() {
            let following = slots.get(splice.out.end);
            let following = following.map(|slot| self.named(table, chain, slot));
            for slot in slots[splice.out.clone()].iter().filter(|_| !is_deferred) {
                let removed_object = self.named(table, chain, slot);
                self.transaction.delete(&removed_object)?;
            }
            let mut put = Vec::with_capacity(splice.put.len());
            for &rule in &splice.put {
                let counters = Counters::default();
                let mut encoded = self.encode(table, chain, rule, counters)?;
                let entry = Box::new(Ok(Entry {
                    rule: rule.clone(),
                    counters,
                }));
                if is_deferred {
                    put.push(Slot::Deferred {
                        rule: Box::new(encoded),
                        line: self.line,
                        entry,
                    });
                    continue;
                }
                match &following {
                    Some(following) => {
                        (encoded.position, encoded.position_id) = (following.handle, following.id);
                        self.transaction.insert(&encoded)?;
                    }
                    None => _ = self.transaction.add(&encoded)?,
                }
                let id = self.numbered;
                put.push(Slot::New { id, entry });
            }
            slots.splice(splice.out.clone(), put);
        }
        let comes = splices.iter().any(|splice| !splice.put.is_empty());
        if self.tracking || is_deferred || !comes {
            self.chain(table, chain).rules = Rules::Known(slots);
        }
        self.note_lines();
        Ok(())
    }

    fn remove(&mut self, table: usize, chain: &BStr, position: usize) -> Result<(), Error> {
        let named = self.reference_at(table, chain, position)?;
        if !self.chain(table, chain).is_deferred() {
            self.transaction.delete(&named)?;
        }
        if let Rules::Known(slots) = &mut self.chain(table, chain).rules {
            slots.remove(position);
        }
        Ok(())
    }

    fn zero(&mut self, table: usize, chain: &BStr, position: Option<usize>) -> Result<(), Error> {
        self.write_deferred()?;
        // The kernel's rules are replaced by handle, so the handles must stay valid.
        self.chain(table, chain).passed = None;
        let slots = self.load(table, chain)?;
        let concerned = |at: usize| position.is_none_or(|position| position == at);
        // New rules of this change are written again, without counters.
        let mut again = Vec::new();
        let mut kept = HashMap::new();
        for (at, slot) in slots.iter().enumerate().filter(|(at, _)| concerned(*at)) {
            match slot {
                Slot::Existing { handle, .. } => drop(kept.insert(*handle, at)),
                Slot::New { entry, .. } => match &**entry {
                    Ok(entry) if entry.counters != Counters::default() => {
                        again.push((at, entry.rule.clone()));
                    }
                    _ => {} // at 0
                },
                Slot::Deferred { .. } => {} // impossible: they were written
            }
        }
        for (at, rule) in again {
            self.replace(table, chain, at, &rule, Counters::default())?;
        }
        self.zero_existing(table, chain, &kept)?;
        if position.is_none() && builtin_chain(&self.tables[table].name, chain).is_some() {
            self.set_policy(table, chain, None, Some(Counters::default()))?;
        }
        Ok(())
    }
}

impl Session<'_> {
    /// Empties a chain in the transaction and holds its rules, including the kernel's as listed, with their counters;
    /// [`write_deferred`](Self::write_deferred) writes them. Does nothing if some rules have anonymous sets or chains, or if
    /// iptables cannot express some.
    pub(super) fn defer_rules(&mut self, table: usize, chain: &BStr) -> Result<(), Error> {
        let state = self.chain(table, chain);
        if state.is_deferred() || state.passed.take().is_none() {
            return Ok(());
        }
        let is_kept = |slot: &Slot| matches!(slot, Slot::Existing { .. });
        let mut listed = match self.load(table, chain)?.iter().any(is_kept) {
            true => self.listed_rules(table, chain)?,
            false => HashMap::new(),
        };
        let slots = self.load(table, chain)?;
        let can_be_written = |slot: &Slot| match slot {
            Slot::Existing { handle, entry, .. } => entry.is_ok() && listed.contains_key(handle),
            other => other.entry().is_ok(),
        };
        if !slots.iter().all(can_be_written) {
            return Ok(());
        }
        let mut held = Vec::with_capacity(slots.len());
        for slot in std::mem::take(slots) {
            let (rule, entry) = match slot {
                Slot::Existing { handle, entry, .. } => {
                    let mut rule = listed.remove(&handle).unwrap_or_else(nft::Rule::empty);
                    if self.tracking {
                        self.numbered += 1;
                        rule.id = Some(self.numbered);
                    }
                    (rule, entry)
                }
                Slot::New { entry, .. } | Slot::Deferred { entry, .. } => {
                    let Ok(known) = &*entry else {
                        continue; // impossible: all can be written
                    };
                    let rule = self.encode(table, chain, &known.rule, known.counters)?;
                    (rule, entry)
                }
            };
            held.push(Slot::Deferred {
                rule: Box::new(rule),
                line: self.line,
                entry,
            });
        }
        *self.load(table, chain)? = held;
        self.has_deferred = true;
        let object = self.object(table, chain);
        let state = &self.tables[table];
        let name = object.name.unwrap_or_default();
        self.transaction
            .flush_chain(state.family.into(), state.name.as_str(), name)?;
        self.note_lines();
        Ok(())
    }

    /// Writes the held rules, before an operation that may depend on them.
    pub(super) fn write_deferred(&mut self) -> Result<(), Error> {
        self.note_lines();
        if !std::mem::take(&mut self.has_deferred) {
            return Ok(());
        }
        for table in &mut self.tables {
            let mut held: Vec<_> = (table.chains.iter_mut())
                .filter(|(_, chain)| chain.is_deferred())
                .collect();
            held.sort_unstable_by_key(|(name, _)| *name);
            for (_, chain) in held {
                let rules = std::mem::replace(&mut chain.rules, Rules::Untracked);
                let Rules::Known(mut slots) = rules else {
                    continue;
                };
                for slot in &mut slots {
                    let Slot::Deferred { rule, line, entry } = slot else {
                        continue;
                    };
                    self.transaction.add(&**rule)?;
                    self.lines.resize(self.transaction.len(), *line);
                    *slot = Slot::New {
                        id: rule.id.unwrap_or_default(),
                        entry: entry.clone(),
                    };
                }
                if self.tracking {
                    chain.rules = Rules::Known(slots);
                }
            }
        }
        Ok(())
    }

    /// Returns the kernel's rules of a chain by handle, to be rewritten unchanged, except for rules with anonymous sets
    /// or chains.
    fn listed_rules(
        &mut self,
        table: usize,
        chain: &BStr,
    ) -> Result<HashMap<u64, nft::Rule<'static>>, Error> {
        self.guard()?;
        let kernel_name = self.object(table, chain).name.unwrap_or_default();
        let state = &self.tables[table];
        let filter = RuleFilter::chain(state.family.into(), &state.name, &*kernel_name);
        let mut rules = HashMap::new();
        let Some(connection) = &mut self.connection else {
            return Ok(rules);
        };
        let listed = connection.rules(filter)?.for_each(|rule| {
            let mut expressions = rule.expressions().into_iter().flatten();
            if expressions.all(|expression| expression.is_ok_and(|it| has_no_anonymous_refs(&it))) {
                let mut copy = rule.to_builder().into_owned();
                (copy.handle, copy.compat) = (None, Compat::of(&rule));
                if let Some(request) = copy.expressions.as_ref().and_then(|all| all.to_request()) {
                    copy.expressions = Some(request);
                }
                rules.insert(rule.handle(), copy);
            }
        });
        self.check_dump(listed)?;
        Ok(rules)
    }

    /// Sets the counters of the kernel's rules to 0, given their handles and positions. They get new
    /// handles, and count as new rules in this change.
    fn zero_existing(
        &mut self,
        table: usize,
        chain: &BStr,
        kept: &HashMap<u64, usize>,
    ) -> Result<(), Error> {
        if kept.is_empty() {
            return Ok(());
        }
        let kernel_name = self.object(table, chain).name.unwrap_or_default();
        let state = &self.tables[table];
        let filter = RuleFilter::chain(state.family.into(), &state.name, &*kernel_name);
        let (mut failed, mut zeroed) = (None, Vec::new());
        let (tracking, numbered) = (self.tracking, &mut self.numbered);
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        let listed = connection.rules(filter)?.for_each(|rule| {
            let Some(at) = kept.get(&rule.handle()).filter(|_| failed.is_none()) else {
                return;
            };
            if let Some(mut changed) = with_zero_counters(&rule) {
                if tracking {
                    *numbered += 1;
                    changed.id = Some(*numbered);
                }
                failed = self.transaction.replace(&changed).err();
                zeroed.push((*at, *numbered));
            }
        });
        self.check_dump(listed)?;
        if let Some(too_long) = failed {
            return Err(too_long.into());
        }
        let ChainState { rules, passed, .. } = self.chain(table, chain);
        if !zeroed.is_empty() {
            *passed = None; // the entry does not have all of these rules' content
        }
        match rules {
            _ if zeroed.is_empty() => {}
            Rules::Known(slots) if tracking => {
                for (at, id) in zeroed {
                    if let Some(slot) = slots.get_mut(at)
                        && let Slot::Existing { entry, .. } = slot
                    {
                        let mut entry = entry.clone();
                        if let Ok(entry) = &mut *entry {
                            entry.counters = Counters::default();
                        }
                        *slot = Slot::New { id, entry };
                    }
                }
            }
            _ => *rules = Rules::Untracked,
        }
        Ok(())
    }
}

/// Returns `true` if the expression refers to no anonymous set or chain.
fn has_no_anonymous_refs(expression: &ExpressionRef<'_>) -> bool {
    // The kernel names such sets `__set%d` or `__map%d`, and such chains `__chain%d`.
    let has_name = |name: Option<&BStr>| name.is_none_or(|name| !name.starts_with(b"__"));
    match expression.decode() {
        Ok(Decoded::Lookup(lookup)) => has_name(lookup.set.as_deref()),
        Ok(Decoded::Dynset(dynset)) => has_name(dynset.set_name.as_deref()),
        Ok(Decoded::Objref(objref)) => has_name(objref.set_name.as_deref()),
        Ok(Decoded::Immediate(immediate)) => match &immediate.data {
            Some(Data::Verdict(Verdict::Jump(chain) | Verdict::Goto(chain))) => {
                has_name(Some(BStr::new(&**chain)))
            }
            _ => true,
        },
        other => other.is_ok(),
    }
}

/// Returns the rule with its counters at 0, otherwise unchanged; `None` if they are 0 already.
fn with_zero_counters(rule: &nft::RuleRef<'_>) -> Option<nft::Rule<'static>> {
    let mut changed = nft::expr::Expressions::default();
    let mut counted = false;
    for expression in rule.expressions()? {
        let expression = expression.ok()?;
        match expression.decode().ok()? {
            Decoded::Counter(Counter { bytes, packets, .. })
                if bytes.unwrap_or(0) != 0 || packets.unwrap_or(0) != 0 =>
            {
                counted = true;
                let _ = changed.push(&Counter::new(0, 0));
            }
            other => {
                let _ = changed.push_decoded(&other);
            }
        }
    }
    counted.then(|| {
        let mut rule = nft::Rule {
            compat: Compat::of(rule),
            ..rule.to_builder().into_owned()
        };
        rule.expressions = Some(changed);
        rule
    })
}
