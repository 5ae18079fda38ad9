//! Keeps a snapshot current: applies the events of a transaction.
//!
//! An event contains its object in the form of a listing, so its message is stored like the others. The event of a rule
//! has the handle of the preceding rule, counting all rules that the transaction adds and excluding those that earlier
//! events deleted. The preceding rule may be reported later; then the rule waits for it.
//!
//! Ambiguous objects must be read again. A table ([`Applied::unclear_tables`]): if a chain is renamed, because other
//! chains' rules contain its name; if a set's timeout changes, because elements with that timeout don't repeat it; if a
//! rule adds to a set without a size, because the kernel then sets its size without an event; if devices of chains and
//! flowtables change, because the events contain only the difference. A chain ([`Applied::unclear_chains`]): if the
//! position of a rule is unknown, on kernels before 5.15, or if the first or last rule was deleted in the same
//! transaction.
//!
//! There is one function for each kind of event, plus shared ones.

use std::collections::BTreeSet;

use bstr::{BStr, BString};
use chainwright_sys::netlink::{NLM_F_APPEND, NLM_F_CREATE};
use chainwright_sys::nf_tables::{
    NFT_MSG_DELCHAIN, NFT_MSG_DELFLOWTABLE, NFT_MSG_DELOBJ, NFT_MSG_DELRULE, NFT_MSG_DELSET,
    NFT_MSG_DELSETELEM, NFT_MSG_DELTABLE, NFT_MSG_DESTROYCHAIN, NFT_MSG_DESTROYFLOWTABLE,
    NFT_MSG_DESTROYOBJ, NFT_MSG_DESTROYRULE, NFT_MSG_DESTROYSET, NFT_MSG_DESTROYSETELEM,
    NFT_MSG_DESTROYTABLE, NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWRULE,
    NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM, NFT_MSG_NEWTABLE, NFTA_TABLE_NAME,
};

use super::Snapshot;
use super::element_index::Pieces;
use super::index::{RulePosition, TableIndex, chain_at, each_jump, set_at};
use crate::arena::Position;
use crate::netlink::{Malformed, Message};
use crate::nft::change_detector::MemberKey;
use crate::nft::declare::Field;
use crate::nft::expr::ExpressionView;
use crate::nft::name::Name;
use crate::nft::{
    ChainFlags, ChainRef, ElementsRef, Family, FlowtableRef, RuleRef, SetRef, StatefulObjectRef,
    TableRef,
};

/// A table's name.
pub(in crate::nft) type TableKey = (Family, BString);

/// The state while the events of a transaction are applied.
#[derive(Debug, Default)]
pub(in crate::nft) struct Applied {
    /// Tables with ambiguous events.
    unclear: BTreeSet<TableKey>,
    /// Chains with an ambiguous order of rules.
    unclear_chains: BTreeSet<MemberKey>,
    /// Rules that wait for the preceding one.
    pending_rules: Vec<PendingRule>,
    /// Position of the last deleted rule: the handle of its chain and its index, and the number of cuts before.
    deleted: Option<(u64, usize, usize)>,
    end_deletions: Vec<EndDeletion>,
}

/// A deletion of the first or last rule of a chain. A rule that the transaction added next to it is now the first or
/// last, but its event looks like that of a rule at the other end.
#[derive(Debug)]
struct EndDeletion {
    /// The chain's handle.
    chain: u64,
    end: RulePosition,
    /// A rule that remained: while it exists, events are unambiguous. `None` if none remained: then the first rule that
    /// is added may be the first or the last, until another one follows it.
    witness: Option<u64>,
}

#[derive(Debug)]
struct PendingRule {
    table: TableKey,
    chain: BString,
    before: u64,
    handle: u64,
    at: Position,
}

impl PendingRule {
    fn is_in_chain_of(&self, rule: &RuleRef<'_>) -> bool {
        let (family, table) = &self.table;
        *family == rule.family() && *table == rule.table() && self.chain == rule.chain()
    }
}

impl Applied {
    /// Returns the chains that have to be read again.
    pub(in crate::nft) fn unclear_chains(&mut self) -> BTreeSet<MemberKey> {
        let pending_rules = self.pending_rules.drain(..).map(|pending_rules| {
            let (family, table) = pending_rules.table;
            (family, table, pending_rules.chain)
        });
        self.unclear_chains.extend(pending_rules);
        std::mem::take(&mut self.unclear_chains)
    }

    /// Returns the tables that have to be read again.
    pub(in crate::nft) fn unclear_tables(self) -> BTreeSet<TableKey> {
        self.unclear
    }

    fn mark_ambiguous(&mut self, family: Family, table: &BStr) {
        self.unclear.insert((family, table.to_owned()));
    }
}

impl Snapshot {
    /// Applies one event.
    pub(in crate::nft) fn apply(
        &mut self,
        message: &Message<'_>,
        applied: &mut Applied,
    ) -> Result<(), Malformed> {
        let kind = message.kind as u8;
        if let NFT_MSG_NEWTABLE | NFT_MSG_DELTABLE | NFT_MSG_DESTROYTABLE = kind {
            let table = TableRef::parse(message)?;
            return match self.scope.admits(table.family(), table.name()) {
                true => self.apply_table(message, &table, kind == NFT_MSG_NEWTABLE),
                false => Ok(()),
            };
        }
        // The table name has the same attribute number in all objects.
        let family = Family(message.nfgenmsg()?.0.family);
        let name = message.attributes()?.find(NFTA_TABLE_NAME);
        let Some(name) = name.and_then(Name::parse_payload) else {
            return Err(Malformed {
                what: "an event",
                offset: 0,
                reason: "missing table name",
            });
        };
        let Some(table) = self.table_of(family, name, applied) else {
            return Ok(());
        };
        match kind {
            NFT_MSG_NEWCHAIN => self.add_chain(message, table, applied),
            NFT_MSG_DELCHAIN | NFT_MSG_DESTROYCHAIN => self.delete_chain(message, table, applied),
            NFT_MSG_NEWRULE => self.add_rule(message, table, applied),
            NFT_MSG_DELRULE | NFT_MSG_DESTROYRULE => self.delete_rule(message, table, applied),
            NFT_MSG_NEWSET | NFT_MSG_DELSET | NFT_MSG_DESTROYSET => {
                self.apply_set(message, table, kind == NFT_MSG_NEWSET, applied)
            }
            NFT_MSG_NEWSETELEM | NFT_MSG_DELSETELEM | NFT_MSG_DESTROYSETELEM => {
                self.apply_elements(message, table, kind == NFT_MSG_NEWSETELEM, applied)
            }
            NFT_MSG_NEWOBJ | NFT_MSG_DELOBJ | NFT_MSG_DESTROYOBJ => {
                let object = StatefulObjectRef::parse(message)?;
                let known = self.index.object_of(&self.arena, table, &object)?;
                let is_new = kind == NFT_MSG_NEWOBJ;
                self.apply_plain(message, table, known, is_new, |table| &mut table.objects)
            }
            NFT_MSG_NEWFLOWTABLE | NFT_MSG_DELFLOWTABLE | NFT_MSG_DESTROYFLOWTABLE => {
                let flowtable = FlowtableRef::parse(message)?;
                let known = self.index.flowtable_of(&self.arena, table, &flowtable)?;
                let is_new = kind == NFT_MSG_NEWFLOWTABLE;
                // The event contains only the changed devices; on kernels before 6.4 it may also contain all.
                let has_devices = flowtable.hook().is_some_and(|hook| hook.devices.is_some());
                if known.is_some() && (is_new || has_devices) {
                    applied.mark_ambiguous(family, name);
                    return Ok(());
                }
                self.apply_plain(message, table, known, is_new, |table| &mut table.flowtables)
            }
            // An unknown kind of event.
            _ => {
                applied.mark_ambiguous(family, name);
                Ok(())
            }
        }
    }

    /// Returns the index of an event's table, if it is in the scope.
    fn table_of(&self, family: Family, name: &BStr, applied: &mut Applied) -> Option<usize> {
        if !self.scope.admits(family, name) {
            return None;
        }
        let number = self.index.table(&self.arena, family, name);
        if number.is_none() {
            applied.mark_ambiguous(family, name);
        }
        number
    }

    fn apply_table(
        &mut self,
        message: &Message<'_>,
        table: &TableRef<'_>,
        is_new: bool,
    ) -> Result<(), Malformed> {
        let known = self.index.table(&self.arena, table.family(), table.name());
        match (known, is_new) {
            (Some(number), false) => {
                let table = self.index.remove_table(number);
                self.drop_table(&table);
            }
            (Some(number), true) => {
                let at = self.keep(message)?;
                let old = std::mem::replace(&mut self.index.tables[number].at, at);
                self.drop_message(old);
            }
            (None, true) => {
                let at = self.keep(message)?;
                self.index.insert(&self.arena, at)?;
            }
            (None, false) => {}
        }
        Ok(())
    }

    fn add_chain(
        &mut self,
        message: &Message<'_>,
        table: usize,
        applied: &mut Applied,
    ) -> Result<(), Malformed> {
        let chain = ChainRef::parse(message)?;
        let (name, handle) = (chain.name(), chain.handle());
        let is_new = self.index.is_new(&self.arena, table, handle)?;
        let known = match is_new {
            true => None,
            false => self
                .index
                .chain_of_handle(&self.arena, table, name, handle)?,
        };
        let Some(number) = known else {
            // An older chain was removed when it was read again with a later name.
            if !is_new {
                applied.mark_ambiguous(chain.family(), chain.table());
                return Ok(());
            }
            // A chain with this name was bound to a rule and deleted without an event: names are unique.
            if let Some(other) = self.index.chain(&self.arena, table, name) {
                let other = self.index.remove_chain(&self.arena, table, other)?;
                self.drop_chain(&other);
            }
            let at = self.keep(message)?;
            self.index.insert(&self.arena, at)?;
            return Ok(());
        };
        let old = self.index.tables[table].chains[number].at;
        let is_renamed = chain_at(&self.arena, old)?.name() != name;
        if is_renamed || has_devices(&chain) {
            applied.mark_ambiguous(chain.family(), chain.table());
            return Ok(());
        }
        let at = self.keep(message)?;
        self.index.tables[table].chains[number].at = at;
        self.drop_message(old);
        Ok(())
    }

    fn delete_chain(
        &mut self,
        message: &Message<'_>,
        table: usize,
        applied: &mut Applied,
    ) -> Result<(), Malformed> {
        let chain = ChainRef::parse(message)?;
        // The event may delete only devices.
        if has_devices(&chain) {
            applied.mark_ambiguous(chain.family(), chain.table());
            return Ok(());
        }
        let (name, handle) = (chain.name(), chain.handle());
        if let Some(number) = self
            .index
            .chain_of_handle(&self.arena, table, name, handle)?
        {
            let gone = self.index.remove_chain(&self.arena, table, number)?;
            self.drop_chain(&gone);
        }
        Ok(())
    }

    fn add_rule(
        &mut self,
        message: &Message<'_>,
        table: usize,
        applied: &mut Applied,
    ) -> Result<(), Malformed> {
        let rule = RuleRef::parse(message)?;
        let (family, table_name, name) = (rule.family(), rule.table(), rule.chain());
        let Some(chain) = self.index.chain(&self.arena, table, name) else {
            applied.mark_ambiguous(family, table_name);
            return Ok(());
        };
        let index = &self.index.tables[table].chains[chain];
        let chain_handle = chain_at(&self.arena, index.at)?.handle();
        let is_appended = message.flags & NLM_F_APPEND != 0;
        let is_created = message.flags & NLM_F_CREATE != 0;
        let deleted = applied.deleted.take();
        let rule_position = match (rule.position(), deleted) {
            (Some(before), _) => Some(RulePosition::After(before)),
            _ if index.rules.is_empty() => Some(RulePosition::Last),
            // The replacement of the rule that was just deleted.
            (None, Some((chain, number, end_deletions)))
                if is_appended && !is_created && chain == chain_handle =>
            {
                applied.end_deletions.truncate(end_deletions);
                Some(RulePosition::At(number))
            }
            _ if is_created && is_appended => Some(RulePosition::Last),
            _ if is_created => Some(RulePosition::First),
            // Before Linux 5.15 events don't contain the position.
            _ => None,
        };
        let opposite = match rule_position {
            Some(RulePosition::First) => Some(RulePosition::Last),
            Some(RulePosition::Last) if !index.rules.is_empty() => Some(RulePosition::First),
            _ => None,
        };
        let is_cut = |end_deletion: &EndDeletion| {
            end_deletion.chain == chain_handle && Some(end_deletion.end) == opposite
        };
        if rule_position.is_none() || applied.end_deletions.iter().any(is_cut) {
            let key = (family, table_name.to_owned(), name.to_owned());
            applied.unclear_chains.insert(key);
        }
        self.mark_ambiguous_sizes(&rule, table, applied)?;
        let rule_position = rule_position.unwrap_or(RulePosition::Last);
        if let (RulePosition::After(before), Some(&first)) = (rule_position, index.rules.first())
            && RuleRef::parse(&self.arena.message(first)?)?.handle() == before
        {
            // The preceding rule isn't the last one: it is the first.
            applied.end_deletions.retain(|end_deletion| {
                end_deletion.chain != chain_handle || end_deletion.witness.is_some()
            });
        }
        // The rule already exists if the chain was read after this event.
        let known = match self.index.is_new(&self.arena, table, rule.handle())? {
            true => None,
            false => self
                .index
                .rule_of_handle(&self.arena, table, chain, rule.handle())?,
        };
        if let Some(number) = known {
            let old = self.index.remove_rule(table, chain, number);
            self.drop_message(old);
        }
        let at = self.keep(message)?;
        let is_placed = self
            .index
            .place_rule(&self.arena, table, chain, rule_position, at)?;
        if is_placed {
            return self.place_pending(table, chain, &rule, applied);
        }
        if let RulePosition::After(before) = rule_position {
            applied.pending_rules.push(PendingRule {
                table: (family, table_name.to_owned()),
                chain: name.to_owned(),
                before,
                handle: rule.handle(),
                at,
            });
        }
        Ok(())
    }

    /// Marks the tables of sets without a size as ambiguous: if a rule adds to such a set, the kernel sets its size
    /// without an event.
    fn mark_ambiguous_sizes(
        &self,
        rule: &RuleRef<'_>,
        table: usize,
        applied: &mut Applied,
    ) -> Result<(), Malformed> {
        for expression in rule.expressions().into_iter().flatten() {
            let ExpressionView::Dynset(dynset) = expression?.view()? else {
                continue;
            };
            let name = dynset.set_name().unwrap_or_default();
            let Some(set) = self.index.set(&self.arena, table, name) else {
                continue;
            };
            let at = self.index.tables[table].sets[set].at;
            let message = self.arena.message(at)?;
            let description = SetRef::parse(&message)?.description();
            if description
                .and_then(|description| description.size)
                .is_none()
            {
                applied.mark_ambiguous(rule.family(), rule.table());
            }
        }
        Ok(())
    }

    /// Inserts the rules that waited for this one, and those that waited for them.
    fn place_pending(
        &mut self,
        table: usize,
        chain: usize,
        rule: &RuleRef<'_>,
        applied: &mut Applied,
    ) -> Result<(), Malformed> {
        let mut handle = rule.handle();
        while let Some(number) = applied.pending_rules.iter().position(|pending_rules| {
            pending_rules.before == handle && pending_rules.is_in_chain_of(rule)
        }) {
            let next = applied.pending_rules.swap_remove(number);
            let rule_position = RulePosition::After(handle);
            self.index
                .place_rule(&self.arena, table, chain, rule_position, next.at)?;
            handle = next.handle;
        }
        Ok(())
    }

    fn delete_rule(
        &mut self,
        message: &Message<'_>,
        table: usize,
        applied: &mut Applied,
    ) -> Result<(), Malformed> {
        let rule = RuleRef::parse(message)?;
        let Some(chain) = self.index.chain(&self.arena, table, rule.chain()) else {
            return Ok(()); // gone with its chain
        };
        let handle = rule.handle();
        // A rule that was added and deleted while it waited for its position.
        applied.pending_rules.retain(|pending_rules| {
            pending_rules.handle != handle || !pending_rules.is_in_chain_of(&rule)
        });
        let known = self
            .index
            .rule_of_handle(&self.arena, table, chain, handle)?;
        let Some(number) = known else {
            return Ok(());
        };
        let at = self.index.remove_rule(table, chain, number);
        let index = &self.index.tables[table].chains[chain];
        let chain_handle = chain_at(&self.arena, index.at)?.handle();
        applied.deleted = Some((chain_handle, number, applied.end_deletions.len()));
        // The adjacent rules.
        let handle_at = |number: usize| match index.rules.get(number) {
            Some(&at) => {
                Ok::<_, Malformed>(Some(RuleRef::parse(&self.arena.message(at)?)?.handle()))
            }
            None => Ok(None),
        };
        let (next, last) = (handle_at(number)?, index.rules.len().checked_sub(1));
        let before = number.checked_sub(1).map_or(Ok(None), handle_at)?;
        let adjacent_rule = |end| {
            if end == RulePosition::First {
                next
            } else {
                before
            }
        };
        applied.end_deletions.retain_mut(|end_deletion| {
            if end_deletion.chain == chain_handle && end_deletion.witness == Some(handle) {
                end_deletion.witness = adjacent_rule(end_deletion.end);
                return end_deletion.witness.is_some();
            }
            true
        });
        for (end, is_at_end) in [
            (RulePosition::First, number == 0),
            (RulePosition::Last, last.is_none_or(|last| number > last)),
        ] {
            if is_at_end {
                applied.end_deletions.push(EndDeletion {
                    chain: chain_handle,
                    end,
                    witness: adjacent_rule(end),
                });
            }
        }
        self.delete_bound(table, at)?;
        self.drop_message(at);
        Ok(())
    }

    /// Removes the chains that were bound to a rule, recursively: the kernel sends no events for them.
    fn delete_bound(&mut self, table: usize, rule: Position) -> Result<(), Malformed> {
        let mut rules = vec![rule];
        while let Some(at) = rules.pop() {
            let mut targets = Vec::new();
            let rule = RuleRef::parse(&self.arena.message(at)?)?;
            each_jump(&rule, &mut |target| targets.push(target.to_owned()))?;
            for target in targets {
                let Some(number) = self.index.chain(&self.arena, table, target.as_ref()) else {
                    continue;
                };
                let at = self.index.tables[table].chains[number].at;
                let flags = chain_at(&self.arena, at)?.flags().unwrap_or_default();
                if flags.contains(ChainFlags::BINDING) {
                    let bound = self.index.remove_chain(&self.arena, table, number)?;
                    self.drop_chain(&bound);
                    rules.extend(bound.rules);
                }
            }
        }
        Ok(())
    }

    fn apply_set(
        &mut self,
        message: &Message<'_>,
        table: usize,
        is_new: bool,
        applied: &mut Applied,
    ) -> Result<(), Malformed> {
        let set = SetRef::parse(message)?;
        let known = self.index.set(&self.arena, table, set.name());
        let mut same = None;
        if let Some(number) = known {
            let at = self.index.tables[table].sets[number].at;
            let message = self.arena.message(at)?;
            let known = SetRef::parse(&message)?;
            let is_same = known.handle() == set.handle();
            // Elements contain their timeout only if it differs from the set's.
            if is_same && is_new && known.timeout() != set.timeout() {
                applied.mark_ambiguous(set.family(), set.table());
            }
            match is_same && is_new {
                true => same = Some(number),
                false if is_same || is_new => {
                    let gone = self.index.remove_set(&self.arena, table, number)?;
                    self.drop_set(&gone);
                }
                false => {}
            }
        }
        match same {
            Some(number) => {
                let at = self.keep(message)?;
                let old = std::mem::replace(&mut self.index.tables[table].sets[number].at, at);
                self.drop_message(old);
            }
            None if is_new => {
                let at = self.keep(message)?;
                self.index.insert(&self.arena, at)?;
            }
            None => {}
        }
        Ok(())
    }

    fn apply_elements(
        &mut self,
        message: &Message<'_>,
        table: usize,
        is_new: bool,
        applied: &mut Applied,
    ) -> Result<(), Malformed> {
        let elements = ElementsRef::parse(message)?;
        let Some(set) = self.index.set(&self.arena, table, elements.set()) else {
            // The elements of a deleted set are reported after it.
            if is_new {
                applied.mark_ambiguous(elements.family(), elements.table());
            }
            return Ok(());
        };
        let of = set_at(&self.arena, self.index.tables[table].sets[set].at)?;
        if self.leaves_out(&of) {
            return Ok(());
        }
        let at = match is_new {
            true => Some(self.keep(message)?),
            false => None,
        };
        let set = &mut self.index.tables[table].sets[set];
        let mut pieces = match set.pieces.take() {
            Some(pieces) => pieces,
            None => Box::new(Pieces::of(&set.elements, &self.arena)?),
        };
        self.dead += match at {
            Some(at) => pieces.add(&mut set.elements, &mut self.arena, at)?,
            None => pieces.remove_all(&mut set.elements, &mut self.arena, message.raw)?,
        };
        set.pieces = Some(pieces);
        set.recounted = true;
        Ok(())
    }

    /// Applies an event of an object without members.
    fn apply_plain(
        &mut self,
        message: &Message<'_>,
        table: usize,
        known: Option<usize>,
        is_new: bool,
        list: impl Fn(&mut TableIndex) -> &mut Vec<Position>,
    ) -> Result<(), Malformed> {
        let at = match is_new {
            true => Some(self.keep(message)?),
            false => None,
        };
        let list = list(&mut self.index.tables[table]);
        let old = match (known, at) {
            (Some(number), Some(at)) => Some(std::mem::replace(&mut list[number], at)),
            (Some(number), None) => Some(list.remove(number)),
            (None, Some(at)) => {
                list.push(at);
                None
            }
            (None, None) => None,
        };
        if let Some(old) = old {
            self.drop_message(old);
        }
        Ok(())
    }
}

/// Returns `true` if an event of a chain contains devices: those that are added or removed.
fn has_devices(chain: &ChainRef<'_>) -> bool {
    let hook = chain.hook();
    hook.is_some_and(|hook| hook.device.is_some() || hook.devices.is_some())
}
