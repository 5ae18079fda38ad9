//! Plans the fewest operations that turn one ruleset into another: unchanged objects keep their handles, counters and
//! state.
//!
//! In a table, deletions precede additions:
//!
//! 1. rules, which refer to all other objects;
//! 2. elements, which refer to chains and objects;
//! 3. sets, then chains, then flowtables and stateful objects;
//! 4. new stateful objects, flowtables, chains, sets, elements, rules.
//!
//! Properties that the kernel cannot change (the hook of a base chain, the type of a set, a stateful object, a comment
//! of any of them) require that the object is recreated, and so are the rules and map elements that refer to it. Since
//! this is one transaction, readers never see an intermediate state.
//!
//! | part | file |
//! |---|---|
//! | rules of a chain | `rules.rs` |
//! | elements of a set | `elements.rs` |
//! | intervals of a tree | `tree.rs` |
//! | comparison of only some objects | `touched.rs` |
//! | changes of only some objects | `own.rs` |
//! | options and result | `result.rs` |
//!
//! This file determines the order of a table's objects and their dependencies; each kind of object takes part in both.

use std::collections::{HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice, ByteVec};
use chainwright_sys::netlink::NLM_F_CREATE;
use chainwright_sys::nf_tables::{
    NFT_MSG_NEWCHAIN, NFT_MSG_NEWFLOWTABLE, NFT_MSG_NEWOBJ, NFT_MSG_NEWSET, NFT_MSG_NEWTABLE,
    NFTA_CHAIN_ID, NFTA_CHAIN_NAME, NFTA_CHAIN_POLICY, NFTA_CHAIN_TABLE, NFTA_TABLE_FLAGS,
    NFTA_TABLE_NAME,
};

use super::compare::Compare;
use super::elements::{Target, delete_all, write_all};
use super::match_objects::Pairs;
use super::order::{Order, Reason, base_chains};
use super::request::{copy_attributes, copy_object, copy_set, without_padding};
use super::restore::{LastIds, Restored};
use super::rule_members::{
    ObjectReference, RuleObjects, each_mention_of, is_anonymous, is_bound, is_numbered,
};
use super::write::{BatchIds, InsertPosition, write_rule};
use super::{Snapshot, SnapshotChain, SnapshotSet, SnapshotTable, WriteError};
use crate::netlink::MessageError;
use crate::nft::declare::{AttributeSet, Field};
use crate::nft::{
    Chain, Family, Flowtable, FlowtableRef, Rule, RuleRef, SetFlags, SetId, SetRef, Table,
    TableFlags, TableRef,
};

mod elements;
mod own;
mod result;
mod rules;
mod touched;
mod tree;

use elements::{ElementSelection, Elements};
pub use own::NotOwned;
use own::OwnObjects;
pub use result::{Plan, PlanOptions, Replaced, Stage};
pub(in crate::nft) use touched::DesiredPositions;
use touched::TouchedOnly;

impl Snapshot {
    /// Computes the fewest operations that make the tables match another snapshot, if the current ruleset is this one.
    ///
    /// The comparison is that of `Snapshot::diff` (feature `diff`): without handles, counters and the remaining time of
    /// timeouts. A rule that is the same on both sides is not touched; the shortest list of changes determines which of
    /// several rules remain, unless the kernel can write all rules of the chain in less time ([`Plan::replaced`]). The
    /// names of anonymous sets and chains, which the kernel assigns, are not compared.
    ///
    /// Afterwards base chains with the same priority at a hook run in the desired order, the newest first. This order
    /// is known only within a table, from its listing. If a chain is created, the chains in tables that are listed
    /// after its own are created after it.
    ///
    /// # Errors
    /// [`WriteError::NotOwned`] if an object that is desired with the [tag](PlanOptions::owner_tag) belongs to another
    /// program. [`WriteError::MissingElements`] if the other snapshot lacks elements of such a table, or this one lacks
    /// elements for the comparison: those of a set in both snapshots, unless elements from rules are kept
    /// ([`remove_dynamic_elements`](PlanOptions::remove_dynamic_elements)) and none are desired; and those of any
    /// anonymous set.
    pub fn plan(&self, desired: &Self, options: PlanOptions) -> Result<Plan, WriteError> {
        self.plan_without(desired, options, &HashSet::new(), &mut Restored::default())
    }

    /// Like [`plan`](Self::plan), but skips some tables.
    pub(super) fn plan_without(
        &self,
        desired: &Self,
        options: PlanOptions,
        without: &HashSet<(Family, BString)>,
        restored: &mut Restored,
    ) -> Result<Plan, WriteError> {
        if options.stage != Stage::All {
            // Recreated objects are deleted with everything that refers to them, so stages are impossible.
            let all = PlanOptions {
                stage: Stage::All,
                ..options
            };
            let complete_plan =
                self.plan_without(desired, all, without, &mut Restored::default())?;
            let is_recreated = |one: &Replaced| !matches!(one.kind, "rules" | "elements");
            if complete_plan.replaced.iter().any(is_recreated) {
                return Ok(complete_plan);
            }
        }
        let mut planner = Planner::new(options, restored);
        let left_out = |table: &TableRef<'_>| {
            !without.is_empty() && without.contains(&(table.family(), table.name().to_owned()))
        };
        if options.remove_other_tables {
            for table in self.tables() {
                let table = table.table();
                let is_desired = desired.table(table.family(), table.name()).is_some();
                let is_own = options
                    .owner_tag
                    .is_none_or(|tag| tag.is_in(table.comment()));
                if !is_desired && is_own && !left_out(&table) {
                    let name = Table::new(table.family(), table.name());
                    planner.plan.transaction.delete(&name)?;
                }
            }
        }
        for table in desired.tables() {
            let view = table.table();
            if left_out(&view) {
                continue;
            }
            table.ensure_complete("desired")?;
            match self.table(view.family(), view.name()) {
                Some(current) => {
                    planner.ensure_comparable(&current, &table)?;
                    planner.table(&current, &table)?;
                }
                None => planner.whole_table(&table)?,
            }
        }
        Ok(planner.finish(self))
    }

    /// Returns `true` if no rule has objects of its own: anonymous sets, bound chains.
    pub(in crate::nft) fn is_plain(&self) -> bool {
        self.tables()
            .all(|table| RuleObjects::of(&table).is_empty())
    }
}

struct Planner<'p> {
    options: PlanOptions,
    compare: Compare,
    plan: Plan,
    ids: LastIds,
    restored: &'p mut Restored,
    /// The objects that may differ; `None` if any may.
    only: Option<TouchedOnly<'p>>,
    /// Whether the plan depends on objects outside of `only`.
    depends: bool,
    /// The order of base chains.
    order: Order,
}

/// The objects that are deleted for replacement: rules and elements that refer to them cannot remain.
#[derive(Default)]
struct RecreatedObjects<'c>(HashSet<ObjectReference<'c>>);

impl RecreatedObjects<'_> {
    fn has(&self, mention: ObjectReference<'_>) -> bool {
        self.0.contains(&mention)
    }

    fn named_by_rule(&self, within: &RuleObjects<'_>, rule: &RuleRef<'_>) -> bool {
        let mut named = false;
        if !self.0.is_empty() {
            within.each_mention(rule, &mut |mention| named |= self.has(mention));
        }
        named
    }
}

impl<'p> Planner<'p> {
    fn new(options: PlanOptions, restored: &'p mut Restored) -> Self {
        Self {
            options,
            compare: Compare {
                counters: options.counters,
            },
            plan: Plan::default(),
            ids: LastIds::default(),
            restored,
            only: None,
            depends: false,
            order: Order::default(),
        }
    }

    /// Returns the plan, which starts from this snapshot.
    fn finish(self, now: &Snapshot) -> Plan {
        let mut plan = self.plan;
        if let Some(generation) = now.generation() {
            plan.transaction.expect_generation(generation);
        }
        plan
    }

    const fn stage(&self) -> Stage {
        self.options.stage
    }

    fn named_sets<'s>(&mut self, table: &SnapshotTable<'s>) -> Vec<(&'s BStr, SnapshotSet<'s>)> {
        let sets: Vec<_> = match self.only {
            None => return named_sets(table).collect(),
            Some(only) => TouchedOnly::names_in(only.touched.sets.keys(), table)
                .filter_map(|name| table.set(name))
                .collect(),
        };
        self.depends |= sets.iter().any(|set| is_anonymous(&set.set()));
        let named = sets.into_iter().map(|set| (set.set().name(), set));
        named.collect()
    }

    fn named_chains<'s>(
        &mut self,
        table: &SnapshotTable<'s>,
    ) -> Vec<(&'s BStr, SnapshotChain<'s>)> {
        let chains: Vec<_> = match self.only {
            None => return named_chains(table).collect(),
            Some(only) => TouchedOnly::names_in(only.touched.chains.iter(), table)
                .filter_map(|name| table.chain(name))
                .collect(),
        };
        self.depends |= chains.iter().any(is_bound);
        let named = chains
            .into_iter()
            .map(|chain| (chain.chain().name(), chain));
        named.collect()
    }

    /// Returns the objects that belong to a table's rules.
    fn within<'s>(&self, table: &SnapshotTable<'s>) -> RuleObjects<'s> {
        match self.only {
            None => RuleObjects::of(table),
            Some(_) => RuleObjects::default(),
        }
    }

    /// Checks that no elements are missing for the comparison.
    fn ensure_comparable(
        &self,
        current: &SnapshotTable<'_>,
        desired: &SnapshotTable<'_>,
    ) -> Result<(), WriteError> {
        if current.snapshot.elements().is_all() {
            return Ok(());
        }
        let own = OwnObjects::of(self.options, &current.table(), &desired.table())?;
        for set in current.sets() {
            let view = set.set();
            if !is_anonymous(&view) && !own.has(view.comment()) {
                continue;
            }
            let is_needed = is_anonymous(&view)
                || desired.set(view.name()).is_some_and(|wanted| {
                    !self.keeps_elements(&view) || wanted.elements().next().is_some()
                });
            if is_needed {
                set.ensure_elements_read("compared")?;
            }
        }
        Ok(())
    }

    /// Returns `true` if elements of a set are kept even if they are not desired.
    fn keeps_elements(&self, set: &SetRef<'_>) -> bool {
        let flags = set.flags().unwrap_or_default();
        flags.contains(SetFlags::EVAL) && !self.options.remove_dynamic_elements
    }

    fn whole_table(&mut self, table: &SnapshotTable<'_>) -> Result<(), MessageError> {
        self.order.of_table(base_chains(table.chains()), |_| None);
        let (tx, ids) = (&mut self.plan.transaction, &mut self.ids);
        table
            .snapshot
            .write_whole(tx, table.index(), ids, self.restored)
    }

    fn table(
        &mut self,
        current: &SnapshotTable<'_>,
        desired: &SnapshotTable<'_>,
    ) -> Result<(), WriteError> {
        let compare = self.compare;
        let (now, wanted) = (current.table(), desired.table());
        let own = OwnObjects::of(self.options, &now, &wanted)?;
        let flags_now = now.flags().unwrap_or_default();
        let flags = match own.is_all() {
            true => wanted_flags(&wanted),
            false => flags_now,
        };
        let can_stay =
            compare.is_same_table_but_flags(&now, &wanted) && can_become(flags_now, flags);
        if own.is_all() && !can_stay {
            self.depends = true;
            self.plan.replaced.push(Replaced::of(&now, &now));
            let name = Table::new(now.family(), now.name());
            self.plan.transaction.delete(&name)?;
            return Ok(self.whole_table(desired)?);
        }

        let mut objects = Pairs::of(
            current
                .objects()
                .map(|object| ((object.object_type(), object.name()), object)),
            desired
                .objects()
                .map(|object| ((object.object_type(), object.name()), object)),
        );
        let mut flowtables = Pairs::of(
            current
                .flowtables()
                .map(|flowtable| (flowtable.name(), flowtable)),
            desired
                .flowtables()
                .map(|flowtable| (flowtable.name(), flowtable)),
        );
        let mut sets = Pairs::of(self.named_sets(current), self.named_sets(desired));
        let mut chains = Pairs::of(self.named_chains(current), self.named_chains(desired));
        own.narrow(&now, &mut objects)?;
        own.narrow(&now, &mut flowtables)?;
        own.narrow(&now, &mut sets)?;
        let others_chains = own.narrow(&now, &mut chains)?;

        let mut recreated_objects = RecreatedObjects::default();
        for object in objects.replace(|now, wanted| !compare.is_same_object(now, wanted)) {
            self.plan.replaced.push(Replaced::of(&now, &object));
            recreated_objects
                .0
                .insert(ObjectReference::Object(object.object_type(), object.name()));
        }
        let differ = |now: &FlowtableRef<'_>, wanted: &FlowtableRef<'_>| {
            !compare.is_same_flowtable(now, wanted)
        };
        for flowtable in flowtables.replace(differ) {
            self.plan.replaced.push(Replaced::of(&now, &flowtable));
            recreated_objects
                .0
                .insert(ObjectReference::Flowtable(flowtable.name()));
        }
        let differ = |now: &SnapshotChain<'_>, wanted: &SnapshotChain<'_>| {
            !compare.is_same_chain_but_policy(&now.chain(), &wanted.chain())
        };
        for chain in chains.replace(differ) {
            self.plan.replaced.push(Replaced::of(&now, &chain));
            recreated_objects
                .0
                .insert(ObjectReference::Chain(chain.chain().name()));
        }
        self.reorder(current, desired, &mut chains);
        // Elements refer to chains and objects; at this point it is known which of these are recreated.
        let mut changed = Vec::new();
        let replaced =
            sets.replace(
                |now, wanted| match self.elements(&recreated_objects, now, wanted) {
                    Some(changes) => {
                        changed.push((*now, changes));
                        false
                    }
                    None => true,
                },
            );
        for set in replaced {
            self.plan.replaced.push(Replaced::of(&now, &set));
            recreated_objects
                .0
                .insert(ObjectReference::Set(set.set().name()));
        }

        // References to recreated objects may be anywhere.
        self.depends |= !recreated_objects.0.is_empty();
        if self.only.is_some() && self.depends {
            return Ok(());
        }

        let stage = self.stage();
        if stage == Stage::New {
            changed.clear();
        }
        // Deletions.
        let (within, wanted_within) = (self.within(current), self.within(desired));
        for chain in chains
            .removed
            .iter()
            .filter(|chain| chain.rules().len() > 0 && stage == Stage::All)
        {
            let tx = &mut self.plan.transaction;
            tx.flush_chain(now.family(), now.name(), chain.chain().name())?;
        }
        let mut new_rules = Vec::new();
        let others = others_chains.iter().map(|both| (both, false));
        let both = chains.both.iter().map(|both| (both, true)).chain(others);
        for ((chain, desired), all_own) in both.filter(|_| stage > Stage::New) {
            let is_own = |rule: &RuleRef<'_>| all_own || own.has(rule.comment());
            let rules: Vec<_> = chain.rules().filter(is_own).collect();
            let desired: Vec<_> = desired.rules().filter(is_own).collect();
            let changes = rules::changes(
                compare,
                rules::Side {
                    rules: &rules,
                    within: &within,
                },
                rules::Side {
                    rules: &desired,
                    within: &wanted_within,
                },
                |rule| recreated_objects.named_by_rule(&within, rule),
                match (stage, all_own) {
                    (Stage::All, true) => rules::Deletion::AtOnce,
                    (Stage::All, false) => rules::Deletion::OneByOne,
                    _ => rules::Deletion::Nothing,
                },
            );
            self.plan.kept_rules += changes.kept;
            if changes.flushes {
                self.plan.replaced.push(Replaced {
                    kind: "rules",
                    ..Replaced::of(&now, chain)
                });
            }
            let chain = chain.chain();
            let tx = &mut self.plan.transaction;
            if changes.flushes {
                tx.flush_chain(now.family(), now.name(), chain.name())?;
            }
            for handle in changes.deleted {
                let mut rule = Rule::new(now.family(), now.name(), chain.name());
                rule.handle = Some(handle);
                tx.delete(&rule)?;
            }
            new_rules.extend(changes.added);
        }
        for (set, changes) in &changed {
            if changes.flushes {
                let id = SetId::new(now.family(), now.name(), set.set().name());
                self.plan.transaction.flush_set(&id)?;
                self.plan.replaced.push(Replaced {
                    kind: "elements",
                    ..Replaced::of(&now, set)
                });
            }
            let deleted = changes.deleted.iter().copied();
            delete_all(
                &mut self.plan.transaction,
                Target::named(&set.set()),
                deleted,
            )?;
        }
        let tx = &mut self.plan.transaction;
        if stage < Stage::All {
            sets.removed.clear();
            chains.removed.clear();
            flowtables.removed.clear();
            objects.removed.clear();
        }
        for set in &sets.removed {
            tx.delete(&set.set().set_id())?;
        }
        for chain in &chains.removed {
            tx.delete(&chain.chain().chain_id())?;
        }
        for flowtable in &flowtables.removed {
            tx.delete(&flowtable.flowtable_id())?;
        }
        for object in &objects.removed {
            tx.delete(&object.object_id())?;
        }

        // Additions.
        if flags != flags_now && stage > Stage::New {
            tx.operation(NFT_MSG_NEWTABLE, 0, now.family(), |writer| {
                writer.string(NFTA_TABLE_NAME, now.name());
                flags.encode(writer, NFTA_TABLE_FLAGS);
            })?;
        }
        for object in &objects.added {
            tx.operation(NFT_MSG_NEWOBJ, NLM_F_CREATE, object.family(), |writer| {
                copy_object(writer, object.attributes().rest());
            })?;
        }
        for flowtable in &flowtables.added {
            const KERNEL_SET: AttributeSet = AttributeSet::kernel_set(Flowtable::ATTRIBUTE_NOTES);
            tx.operation(
                NFT_MSG_NEWFLOWTABLE,
                NLM_F_CREATE,
                flowtable.family(),
                |writer| {
                    copy_attributes(writer, flowtable.attributes().rest(), KERNEL_SET);
                },
            )?;
        }
        for chain in &chains.added {
            const KERNEL_SET: AttributeSet = AttributeSet::kernel_set(Chain::ATTRIBUTE_NOTES);
            // A recreated chain that is the same keeps its counters.
            let chain = chain.chain();
            let same = current.chain(chain.name()).map(|now| now.chain());
            let same = same.filter(|now| compare.chain(now) == compare.chain(&chain));
            let chain = same.unwrap_or(chain);
            tx.operation(NFT_MSG_NEWCHAIN, NLM_F_CREATE, chain.family(), |writer| {
                let attributes = without_padding(chain.attributes().rest(), Chain::ATTRIBUTE_NOTES);
                copy_attributes(writer, &attributes, KERNEL_SET);
            })?;
        }
        for (chain, desired) in chains.both.iter().filter(|_| stage > Stage::New) {
            let (chain, desired) = (chain.chain(), desired.chain());
            if let Some(policy) = desired
                .policy()
                .filter(|_| chain.policy() != desired.policy())
            {
                tx.operation(NFT_MSG_NEWCHAIN, 0, now.family(), |writer| {
                    writer
                        .string(NFTA_CHAIN_TABLE, now.name())
                        .string(NFTA_CHAIN_NAME, chain.name());
                    policy.encode(writer, NFTA_CHAIN_POLICY);
                })?;
            }
        }
        for set in &sets.added {
            self.ids.set_id += 1;
            let (view, id) = (set.set(), self.ids.set_id);
            tx.operation(NFT_MSG_NEWSET, NLM_F_CREATE, view.family(), |writer| {
                copy_set(writer, view.attributes().rest(), id, None);
            })?;
        }
        for set in &sets.added {
            set.snapshot.write_elements(tx, set.index)?;
        }
        for (set, changes) in changed {
            write_all(tx, Target::named(&set.set()), changes.added.into_iter())?;
        }
        let mut added = Vec::new();
        for chain in &chains.added {
            let there = current.chain(chain.chain().name());
            let rules: Vec<_> = there.into_iter().flat_map(|now| now.rules()).collect();
            let desired: Vec<_> = chain.rules().collect();
            added.extend(rules::recreated(
                compare,
                rules::Side {
                    rules: &rules,
                    within: &within,
                },
                rules::Side {
                    rules: &desired,
                    within: &wanted_within,
                },
            ));
        }
        for added in added.into_iter().chain(new_rules) {
            match added.source {
                rules::Source::Now(rule) => self.rule(&within, &rule, added.position)?,
                rules::Source::Desired(rule) => self.rule(&wanted_within, &rule, added.position)?,
            }
        }
        Ok(())
    }

    /// Recreates base chains that would run in the wrong order, and sorts the chains to create.
    fn reorder<'c, 'd>(
        &mut self,
        current: &SnapshotTable<'c>,
        desired: &SnapshotTable<'d>,
        chains: &mut Pairs<SnapshotChain<'c>, SnapshotChain<'d>>,
    ) {
        let is_base = |chain: &SnapshotChain<'_>| chain.chain().is_base();
        let are_made = chains.added.iter().any(is_base);
        if !are_made && !chains.both.iter().any(|(chain, _)| is_base(chain)) {
            return;
        }
        let there: HashMap<&BStr, usize> = base_chains(current.chains())
            .enumerate()
            .map(|(number, chain)| (chain.chain().name(), number))
            .collect();
        if self.only.is_some() {
            // The chains that are not in `chains` are as desired, but their order may differ.
            let there = |name: &BStr| there.get(name).copied();
            let recreated = self.order.of_table(base_chains(desired.chains()), there);
            self.depends |= are_made || !recreated.is_empty();
            return;
        }
        let stay: HashMap<&BStr, usize> = chains
            .both
            .iter()
            .filter_map(|(_, chain)| {
                let name = chain.chain().name();
                Some((name, *there.get(name)?))
            })
            .collect();
        let made: HashSet<&BStr> = chains
            .added
            .iter()
            .map(|chain| chain.chain().name())
            .collect();
        let is_known = |chain: &SnapshotChain<'_>| {
            let name = chain.chain().name();
            stay.contains_key(name) || made.contains(name)
        };
        let order = base_chains(desired.chains()).filter(is_known);
        let recreated = self.order.of_table(order, |name| stay.get(name).copied());
        let mut recreated: HashMap<&BStr, Reason> = recreated.into_iter().collect();
        for chain in chains.replace(|_, wanted| recreated.contains_key(wanted.chain().name())) {
            let replaced = Replaced::of(&current.table(), &chain);
            if let Some(reason) = recreated.remove(chain.chain().name()) {
                self.plan.reordered.push((replaced.clone(), reason));
            }
            self.plan.replaced.push(replaced);
        }
        let numbers: HashMap<&BStr, usize> = desired
            .chains()
            .enumerate()
            .map(|(number, chain)| (chain.chain().name(), number))
            .collect();
        chains
            .added
            .sort_by_key(|chain| numbers.get(chain.chain().name()).copied());
    }

    /// Returns the changes of the elements of a set; `None` if the set has to be recreated.
    fn elements<'c, 'd>(
        &self,
        recreated_objects: &RecreatedObjects<'_>,
        now: &SnapshotSet<'c>,
        wanted: &SnapshotSet<'d>,
    ) -> Option<Elements<'c, 'd>> {
        let compare = self.compare;
        let view = now.set();
        if !compare.is_same_set(&view, &wanted.set()) {
            return None;
        }
        let flags = view.flags().unwrap_or_default();
        let keep = self.keeps_elements(&view);
        let compared = match recreated_objects.0.is_empty() {
            true => {
                let touched = self.only.and_then(|only| only.elements(&view));
                touched.unwrap_or(ElementSelection::Others)
            }
            false => ElementSelection::All,
        };
        let keep = keep || self.stage() < Stage::ElementsGo;
        let changes = elements::changes(compare, now, wanted, keep, compared, |element| {
            let mut named = false;
            if !recreated_objects.0.is_empty() {
                let mut visit =
                    |mention: ObjectReference<'_>| named |= recreated_objects.has(mention);
                each_mention_of(&view, element, &mut visit);
            }
            named
        });
        // The kernel refuses changes of a constant set in use, and it counts elements that a transaction deletes until
        // its end.
        let is_changed = !(changes.deleted.is_empty() && changes.added.is_empty());
        let is_fixed = flags.contains(SetFlags::CONSTANT) && is_changed;
        let size = view.description().and_then(|description| description.size);
        let is_full = size.filter(|_| !changes.added.is_empty());
        let is_full = is_full.is_some_and(|size| {
            let (there, new) = match now.counted() {
                // Kernels that report a count count intervals, not their ends; a missing half may have been rounded
                // off.
                Some(count) => (
                    count + usize::from(changes.has_halves),
                    changes.added_keys(),
                ),
                None => (now.elements().count(), changes.added.len()),
            };
            new > 0 && there + new > size as usize
        });
        (!is_fixed && !is_full).then_some(changes)
    }

    /// Creates a rule, after the objects that belong to it.
    fn rule(
        &mut self,
        within: &RuleObjects<'_>,
        rule: &RuleRef<'_>,
        position: InsertPosition,
    ) -> Result<(), MessageError> {
        let tx = &mut self.plan.transaction;
        let parts = within.parts(rule);
        let mut numbers = BatchIds::default();
        for chain in &parts.chains {
            const KERNEL_SET: AttributeSet =
                AttributeSet::kernel_set(Chain::ATTRIBUTE_NOTES).and(NFTA_CHAIN_NAME);
            self.ids.chain_id += 1;
            let (view, id) = (chain.chain(), self.ids.chain_id);
            tx.operation(NFT_MSG_NEWCHAIN, NLM_F_CREATE, view.family(), |writer| {
                let attributes = without_padding(view.attributes().rest(), Chain::ATTRIBUTE_NOTES);
                copy_attributes(writer, &attributes, KERNEL_SET);
                writer.be32(NFTA_CHAIN_ID, id);
            })?;
            numbers.chains.insert(view.name(), id);
        }
        for set in &parts.sets {
            self.ids.set_id += 1;
            let (view, id) = (set.set(), self.ids.set_id);
            let pattern = pattern_of(view.name());
            tx.operation(NFT_MSG_NEWSET, NLM_F_CREATE, view.family(), |writer| {
                copy_set(
                    writer,
                    view.attributes().rest(),
                    id,
                    Some(pattern.as_bstr()),
                );
            })?;
            let target = Target {
                set: pattern.as_bstr(),
                id: Some(id),
                ..Target::named(&view)
            };
            set.snapshot.write_elements_into(tx, set.index, target)?;
            numbers.sets.insert(view.name(), (pattern, id));
        }
        // A bound chain accepts no more rules after the rule that jumps to it.
        for chain in parts.chains.iter().rev() {
            for rule in chain.rules() {
                write_rule(tx, &rule, &numbers, InsertPosition::End)?;
            }
        }
        write_rule(tx, rule, &numbers, position)
    }
}

/// Returns the desired flags of a table.
pub(super) fn wanted_flags(table: &TableRef<'_>) -> TableFlags {
    kept_flags(table.flags().unwrap_or_default())
}

/// Returns the flags of a table that exists independently of a process. The kernel deletes a table with an owner but
/// without `persist` when the owner closes its socket: then the owner flag is removed.
pub(in crate::nft) const fn kept_flags(flags: TableFlags) -> TableFlags {
    match flags.contains(TableFlags::PERSIST) {
        true => flags,
        false => flags.difference(TableFlags::OWNER),
    }
}

/// Returns `true` if the kernel can make this change of a table's flags: it can set and clear the dormant flag, and add
/// an owner to a persistent table that has none.
fn can_become(now: TableFlags, wanted: TableFlags) -> bool {
    let change = now ^ wanted;
    change - TableFlags::DORMANT == TableFlags::empty()
        || change == TableFlags::OWNER && wanted.contains(TableFlags::OWNER | TableFlags::PERSIST)
}

fn named_sets<'s>(
    table: &SnapshotTable<'s>,
) -> impl Iterator<Item = (&'s BStr, SnapshotSet<'s>)> + use<'s> {
    let sets = table.sets().map(|set| (set.set(), set));
    let named = sets.filter(|(view, _)| !is_anonymous(view));
    named.map(|(view, set)| (view.name(), set))
}

fn named_chains<'s>(
    table: &SnapshotTable<'s>,
) -> impl Iterator<Item = (&'s BStr, SnapshotChain<'s>)> + use<'s> {
    let named = table.chains().filter(|chain| !is_bound(chain));
    named.map(|chain| (chain.chain().name(), chain))
}

/// Returns the pattern for the kernel to name an anonymous set: `__set%d` for `__set17`.
fn pattern_of(name: &BStr) -> BString {
    if !is_numbered(name) {
        return name.to_owned();
    }
    let end = name.iter().rposition(|byte| !byte.is_ascii_digit());
    let mut pattern = BString::from(&name[..end.map_or(0, |end| end + 1)]);
    pattern.push_str("%d");
    pattern
}
