//! Edits a legacy table in memory.
//!
//! This is one large file because all changes preserve the same invariants: every jump and every index stays
//! correct.

mod build;
mod error;
mod finish;
mod index;
mod item;
#[cfg(all(test, target_endian = "little", target_pointer_width = "64"))]
mod tests;
mod view;

use std::cell::OnceCell;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use bstr::{BStr, BString, ByteSlice};
use chainwright_sys::x_tables::XT_EXTENSION_MAXNAMELEN;

use super::chain::Span;
use super::entry::Entry;
use super::family::Layout;
use super::name::sort_key;
use super::{ChainRef, Counters, HeaderBuf, Hook, Policy, Replacement, RuleRef, Table};
use crate::arena::Arena;
use index::NameIndex;
use item::{Built, BuiltTarget, CompactCounters, EntryCounters, Item};

pub use build::{NewRule, NewTarget, RuleBuilder};
pub use error::EditError;
pub use view::{EditedChain, EditedRule, EditedRules, EditedTarget};

/// Identifies a chain of a [`TableEditor`]. The id stays valid as long as the chain exists, even if the chain is
/// renamed or other parts change. It is invalid in other editors, except clones made later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId {
    number: u32,
    /// The editor that created the chain, or started with it.
    editor_id: EditorId,
}

impl fmt::Debug for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChainId").field(&self.number).finish()
    }
}

/// Identity of an editor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct EditorId(u32);

/// An editor's own [`EditorId`]: a clone gets a new one.
#[derive(Debug)]
struct Own(EditorId);

impl Own {
    fn new() -> Self {
        static EDITORS: AtomicU32 = AtomicU32::new(0);
        Self(EditorId(EDITORS.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Clone for Own {
    fn clone(&self) -> Self {
        Self::new()
    }
}

/// An editor for a [`Table`]: the chains and rules of the new table.
///
/// It borrows the table that was read. [`finish`] copies the unchanged parts byte for byte, except for the
/// offsets in jumps. An editor only changes memory and can be discarded: the kernel's table changes only when
/// the caller passes the result of [`finish`] to [`Connection::replace`].
///
/// If a user-defined chain ends without the return that iptables puts there, the editor adds one when the
/// chain's rules are changed.
///
/// [`finish`]: Self::finish
/// [`Connection::replace`]: super::Connection::replace
#[derive(Clone)]
pub struct TableEditor<'t> {
    table: &'t Table,
    layout: &'static Layout,
    own: Own,
    /// The editor that started with the table's chains.
    first: EditorId,
    /// The editors that created all other chains.
    editor_ids: Vec<EditorId>,
    /// For each chain, the table's chains first: 0 if it is unchanged, otherwise the index of its edit plus
    /// 1.
    slots: Vec<u32>,
    edits: Vec<Edit>,
    /// Number of removed chains.
    removed: usize,
    /// Entries of new rules.
    arena: Arena,
    /// The entry of the rule under construction.
    scratch: Vec<u8>,
    built: Vec<Built>,
    /// Counters that the caller set.
    explicit: Vec<Counters>,
    names: OnceCell<NameIndex>,
    /// The chains in the order of the new table, including removed ones, if it differs from the order of the
    /// ids.
    order: OnceCell<Vec<u32>>,
    /// Whether a chain was added or renamed.
    reordered: bool,
    /// For each chain, the number of rules that jump to it.
    references: OnceCell<Vec<u32>>,
}

/// The changes of a chain, or a new chain.
#[derive(Clone, Debug)]
struct Edit {
    /// The name of an added or renamed chain.
    name: Option<Box<[u8]>>,
    removed: bool,
    rules: Option<Vec<Item>>,
    policy: Option<Policy>,
    /// The counters of the policy, or of the implicit return.
    final_entry: EntryCounters,
}

impl Edit {
    const NONE: Self = Self {
        name: None,
        removed: false,
        rules: None,
        policy: None,
        final_entry: EntryCounters::Own,
    };
}

impl<'t> TableEditor<'t> {
    /// Creates an editor for a table that was read.
    #[must_use]
    pub fn of(table: &'t Table) -> Self {
        let own = Own::new();
        Self {
            table,
            layout: table.family().layout(),
            first: own.0,
            editor_ids: Vec::new(),
            own,
            slots: vec![0; table.spans().len()],
            edits: Vec::new(),
            removed: 0,
            arena: Arena::default(),
            scratch: Vec::new(),
            built: Vec::new(),
            explicit: Vec::new(),
            names: OnceCell::new(),
            order: OnceCell::new(),
            reordered: false,
            references: OnceCell::new(),
        }
    }

    /// Returns the table that was read.
    #[must_use]
    pub const fn table(&self) -> &'t Table {
        self.table
    }

    /// Returns `true` if anything was changed, even if the change was undone.
    #[must_use]
    pub const fn is_changed(&self) -> bool {
        !self.edits.is_empty()
    }

    // Chains.

    /// Finds a chain by name.
    ///
    /// The first call builds an index of all names; later calls take constant time.
    #[must_use]
    pub fn chain(&self, name: impl AsRef<[u8]>) -> Option<ChainId> {
        let name = name.as_ref();
        let names = self.names.get_or_init(|| self.index());
        let found = names.find(name, |id| self.name_of(id));
        found.map(|id| self.id(id))
    }

    /// Returns the built-in chain of that hook.
    #[must_use]
    pub fn builtin(&self, hook: Hook) -> Option<ChainId> {
        let spans = self.table.spans();
        let position = spans.iter().position(|span| span.hook == Some(hook))?;
        u32::try_from(position).ok().map(|id| self.id(id))
    }

    /// Returns a view of the chain; `None` if it was removed.
    #[must_use]
    pub fn get(&self, chain: ChainId) -> Option<EditedChain<'_>> {
        self.check_exists(chain).ok()?;
        Some(EditedChain::new(self, chain))
    }

    /// Returns the chains, in the order of the new table: the chains that were read in the kernel's order, with the
    /// others sorted in by name, as iptables does.
    pub fn chains(&self) -> impl Iterator<Item = EditedChain<'_>> {
        self.ids().map(|id| EditedChain::new(self, self.id(id)))
    }

    /// Returns the number of chains.
    #[must_use]
    pub const fn chain_count(&self) -> usize {
        self.slots.len() - self.removed
    }

    /// Adds a user-defined chain without rules.
    ///
    /// # Errors
    /// - [`EditError::ChainName`] for a name that iptables does not accept: less than 1 or more than 28
    ///   bytes, a NUL, or `ACCEPT`, `DROP`, `QUEUE` or `RETURN`;
    /// - [`EditError::ChainExists`].
    pub fn add_chain(&mut self, name: impl AsRef<[u8]>) -> Result<ChainId, EditError> {
        let name = name.as_ref();
        self.check_name(name)?;
        self.add_new_chain(name)
    }

    /// Returns the chain of that name, and adds it if it does not exist.
    ///
    /// # Errors
    /// As [`add_chain`](Self::add_chain), except for an existing chain.
    pub(crate) fn get_or_add_chain(&mut self, name: &[u8]) -> Result<ChainId, EditError> {
        if let Some(existing) = self.chain(name) {
            return Ok(existing);
        }
        check_chain_name(name)?;
        self.add_new_chain(name)
    }

    /// Adds a chain with an unused name.
    fn add_new_chain(&mut self, name: &[u8]) -> Result<ChainId, EditError> {
        let id = match u32::try_from(self.slots.len()) {
            Ok(id) if id < u32::MAX => id,
            _ => return Err(EditError::TableTooLarge { size: u64::MAX }),
        };
        self.slots.push(0);
        self.editor_ids.push(self.own.0);
        let edit = self.edit_mut(id);
        edit.name = Some(name.into());
        edit.rules = Some(Vec::new());
        if let Some(references) = self.references.get_mut() {
            references.push(0);
        }
        self.index_name(id);
        Ok(self.id(id))
    }

    /// Removes a user-defined chain.
    ///
    /// # Errors
    /// [`EditError::Builtin`], [`EditError::NotEmpty`], [`EditError::Referenced`] or
    /// [`EditError::NoSuchChain`]: the cases that `iptables -X` refuses.
    pub fn remove_chain(&mut self, chain: ChainId) -> Result<(), EditError> {
        self.user_chain(chain)?;
        let name = || BString::from(self.name_of(chain.number));
        let rules = self.rule_count(chain.number);
        if rules != 0 {
            return Err(EditError::NotEmpty {
                name: name(),
                rules,
            });
        }
        let references = self.references(chain)?;
        if references != 0 {
            return Err(EditError::Referenced {
                name: name(),
                references,
            });
        }
        self.drop_chain(chain.number);
        Ok(())
    }

    /// Renames a user-defined chain, which also changes its place in the order. Jumps to it stay intact.
    ///
    /// # Errors
    /// [`EditError::Builtin`], [`EditError::ChainName`], [`EditError::ChainExists`] (also for its current
    /// name) or [`EditError::NoSuchChain`].
    pub fn rename_chain(
        &mut self,
        chain: ChainId,
        name: impl AsRef<[u8]>,
    ) -> Result<(), EditError> {
        let name = name.as_ref();
        self.user_chain(chain)?;
        self.check_name(name)?;
        self.unindex_name(chain.number);
        self.edit_mut(chain.number).name = Some(name.into());
        self.index_name(chain.number);
        Ok(())
    }

    /// Removes all user-defined chains and all rules, as `iptables-restore` does before it reads a table's
    /// new content. Policies and their counters stay.
    pub fn clear(&mut self) {
        let ids: Vec<u32> = self.ids().collect();
        for &id in &ids {
            if self.hook_of(id).is_none() {
                self.drop_chain(id);
            } else if self.rule_count(id) != 0 {
                self.edit_mut(id).rules = Some(Vec::new());
            }
        }
        // No jumps are left.
        if let Some(references) = self.references.get_mut() {
            references.fill(0);
        }
    }

    /// Counts the rules that jump or go to the chain. The first call scans all rules.
    ///
    /// # Errors
    /// [`EditError::NoSuchChain`].
    pub fn references(&self, chain: ChainId) -> Result<u32, EditError> {
        self.check_exists(chain)?;
        let counted = self.references.get_or_init(|| self.count_references());
        Ok(counted.get(chain.number as usize).copied().unwrap_or(0))
    }

    // Policies.

    /// Sets the policy of a built-in chain. Unlike in iptables-legacy, where any change resets the counters
    /// of all policies, its counters are preserved.
    ///
    /// # Errors
    /// [`EditError::NotBuiltin`] or [`EditError::NoSuchChain`].
    pub fn set_policy(&mut self, chain: ChainId, policy: Policy) -> Result<(), EditError> {
        self.builtin_chain(chain)?;
        self.edit_mut(chain.number).policy = Some(policy);
        Ok(())
    }

    /// Sets the counters of a built-in chain's policy.
    ///
    /// # Errors
    /// [`EditError::NotBuiltin`] or [`EditError::NoSuchChain`].
    pub fn set_policy_counters(
        &mut self,
        chain: ChainId,
        counters: Counters,
    ) -> Result<(), EditError> {
        self.builtin_chain(chain)?;
        self.edit_mut(chain.number).final_entry = EntryCounters::Explicit(counters);
        Ok(())
    }

    // Rules.

    /// Starts a new rule. See [`RuleBuilder`]; the rule is in no chain until it is inserted.
    ///
    /// # Errors
    /// [`EditError::Family`] if the header belongs to another family.
    pub fn build(
        &mut self,
        header: impl Into<HeaderBuf>,
    ) -> Result<RuleBuilder<'_, 't>, EditError> {
        RuleBuilder::new(self, &header.into())
    }

    /// Appends a new rule to a chain.
    ///
    /// # Errors
    /// [`EditError::NoSuchChain`] (even if the rule jumps to a removed chain), or
    /// [`EditError::ForeignRule`].
    pub fn append(&mut self, chain: ChainId, rule: NewRule) -> Result<(), EditError> {
        self.check_exists(chain)?;
        let item = self.new_item(rule)?;
        self.items(chain.number).push(item);
        self.count_reference(&item, 1);
        Ok(())
    }

    /// Inserts a new rule before the one at `position`, counted from 0; at the end, if `position` is the
    /// number of rules.
    ///
    /// # Errors
    /// As [`append`](Self::append), and [`EditError::NoSuchRule`].
    pub fn insert(
        &mut self,
        chain: ChainId,
        position: usize,
        rule: NewRule,
    ) -> Result<(), EditError> {
        self.check_exists(chain)?;
        if position != self.rule_count(chain.number) {
            self.has_rule(chain, position)?;
        }
        let item = self.new_item(rule)?;
        self.items(chain.number).insert(position, item);
        self.count_reference(&item, 1);
        Ok(())
    }

    /// Replaces the rule at `position`, counted from 0, with a new rule and its counters.
    ///
    /// # Errors
    /// As [`append`](Self::append), and [`EditError::NoSuchRule`].
    pub fn replace(
        &mut self,
        chain: ChainId,
        position: usize,
        rule: NewRule,
    ) -> Result<(), EditError> {
        self.has_rule(chain, position)?;
        let item = self.new_item(rule)?;
        let old = std::mem::replace(&mut self.items(chain.number)[position], item);
        self.count_reference(&old, -1);
        self.count_reference(&item, 1);
        Ok(())
    }

    /// Removes the rule at `position`, counted from 0.
    ///
    /// # Errors
    /// [`EditError::NoSuchChain`] or [`EditError::NoSuchRule`].
    pub fn remove(&mut self, chain: ChainId, position: usize) -> Result<(), EditError> {
        self.has_rule(chain, position)?;
        let old = self.items(chain.number).remove(position);
        self.count_reference(&old, -1);
        Ok(())
    }

    /// Keeps the rules of a chain for which `keep` returns `true`, calling it once for each rule in order.
    /// Takes one pass for any number of removed rules.
    ///
    /// # Errors
    /// [`EditError::NoSuchChain`].
    pub fn retain(
        &mut self,
        chain: ChainId,
        mut keep: impl FnMut(EditedRule<'_>) -> bool,
    ) -> Result<(), EditError> {
        let Some(view) = self.get(chain) else {
            return Err(EditError::NoSuchChain);
        };
        let preserved: Vec<bool> = view.rules().map(&mut keep).collect();
        if preserved.iter().all(|preserved| *preserved) {
            return Ok(());
        }
        let mut removed_items = Vec::new();
        let mut position = 0;
        self.items(chain.number).retain(|item| {
            let keep = preserved.get(position).copied().unwrap_or(true);
            position += 1;
            if !keep {
                removed_items.push(*item);
            }
            keep
        });
        for item in &removed_items {
            self.count_reference(item, -1);
        }
        Ok(())
    }

    /// Removes all rules of a chain.
    ///
    /// # Errors
    /// [`EditError::NoSuchChain`].
    pub fn flush(&mut self, chain: ChainId) -> Result<(), EditError> {
        self.check_exists(chain)?;
        if self.rule_count(chain.number) == 0 {
            return Ok(());
        }
        let removed_items = if self.references.get().is_some() {
            std::mem::take(self.items(chain.number))
        } else {
            self.edit_mut(chain.number).rules = Some(Vec::new());
            Vec::new()
        };
        for item in &removed_items {
            self.count_reference(item, -1);
        }
        Ok(())
    }

    // Counters.

    /// Sets the counters of the rule at `position`, counted from 0.
    ///
    /// # Errors
    /// [`EditError::NoSuchChain`] or [`EditError::NoSuchRule`].
    pub fn set_counters(
        &mut self,
        chain: ChainId,
        position: usize,
        counters: Counters,
    ) -> Result<(), EditError> {
        self.has_rule(chain, position)?;
        let counter_ref = CompactCounters::explicit(&mut self.explicit, counters);
        count(&mut self.items(chain.number)[position], counter_ref);
        Ok(())
    }

    /// Sets the counters of the rule at `position` to zero. Packets that the kernel counts between the read
    /// and the replacement are not lost: the counters then start with them.
    ///
    /// # Errors
    /// [`EditError::NoSuchChain`] or [`EditError::NoSuchRule`].
    pub fn zero_rule(&mut self, chain: ChainId, position: usize) -> Result<(), EditError> {
        self.has_rule(chain, position)?;
        count(
            &mut self.items(chain.number)[position],
            CompactCounters::ZEROED,
        );
        Ok(())
    }

    /// Sets the counters of all rules of a chain, and of its policy, to zero, as
    /// [`zero_rule`](Self::zero_rule) does.
    ///
    /// # Errors
    /// [`EditError::NoSuchChain`].
    pub fn zero(&mut self, chain: ChainId) -> Result<(), EditError> {
        self.check_exists(chain)?;
        for item in self.items(chain.number) {
            count(item, CompactCounters::ZEROED);
        }
        self.edit_mut(chain.number).final_entry = EntryCounters::Zeroed;
        Ok(())
    }

    /// Returns the new table, for [`Connection::replace`](super::Connection::replace). The editor can be used
    /// further afterwards.
    ///
    /// # Errors
    /// - [`EditError::TableTooLarge`];
    /// - [`EditError::NotRead`] if the table has no entries;
    /// - [`EditError::Preserved`] if something was changed and the table that was read has a jump into the middle
    ///   of a chain.
    pub fn finish(&self) -> Result<Replacement, EditError> {
        finish::finish(self)
    }

    // Internal helpers. They identify chains by number.

    fn span(&self, id: u32) -> Option<&'t Span> {
        self.table.spans().get(id as usize)
    }

    /// Returns the chain as it was read.
    fn preserved(&self, id: u32) -> Option<ChainRef<'t>> {
        Some(ChainRef::new(self.table, self.span(id)?))
    }

    fn edit(&self, id: u32) -> Option<&Edit> {
        let slot = *self.slots.get(id as usize)?;
        self.edits.get((slot as usize).checked_sub(1)?)
    }

    /// Returns the edit of a chain, which must exist.
    fn edit_mut(&mut self, id: u32) -> &mut Edit {
        let slot = &mut self.slots[id as usize];
        if *slot == 0 {
            self.edits.push(Edit::NONE);
            // At most one edit per chain, and there are fewer than `u32::MAX` chains.
            *slot = self.edits.len() as u32;
        }
        &mut self.edits[*slot as usize - 1]
    }

    /// Returns a chain's id.
    fn id(&self, number: u32) -> ChainId {
        let added = (number as usize).checked_sub(self.table.spans().len());
        let editor_id = added.and_then(|added| self.editor_ids.get(added));
        ChainId {
            number,
            editor_id: *editor_id.unwrap_or(&self.first),
        }
    }

    /// Checks that the chain exists.
    fn check_exists(&self, chain: ChainId) -> Result<(), EditError> {
        if chain != self.id(chain.number) {
            return Err(EditError::ForeignChain);
        }
        let existing = (chain.number as usize) < self.slots.len() && !self.is_removed(chain.number);
        if existing {
            Ok(())
        } else {
            Err(EditError::NoSuchChain)
        }
    }

    fn is_removed(&self, id: u32) -> bool {
        self.edit(id).is_some_and(|edit| edit.removed)
    }

    fn user_chain(&self, chain: ChainId) -> Result<(), EditError> {
        self.check_exists(chain)?;
        match self.hook_of(chain.number) {
            None => Ok(()),
            Some(hook) => Err(EditError::Builtin { hook }),
        }
    }

    fn builtin_chain(&self, chain: ChainId) -> Result<(), EditError> {
        self.check_exists(chain)?;
        match self.hook_of(chain.number) {
            Some(_) => Ok(()),
            None => Err(EditError::NotBuiltin {
                name: BString::from(self.name_of(chain.number)),
            }),
        }
    }

    fn has_rule(&self, chain: ChainId, position: usize) -> Result<(), EditError> {
        self.check_exists(chain)?;
        let rules = self.rule_count(chain.number);
        if position < rules {
            return Ok(());
        }
        Err(EditError::NoSuchRule {
            name: BString::from(self.name_of(chain.number)),
            position,
            rules,
        })
    }

    fn hook_of(&self, id: u32) -> Option<Hook> {
        self.span(id)?.hook
    }

    fn name_of(&self, id: u32) -> &BStr {
        if let Some(name) = self.edit(id).and_then(|edit| edit.name.as_deref()) {
            return name.as_bstr();
        }
        self.preserved(id)
            .map(|chain| chain.name())
            .unwrap_or_default()
    }

    fn rule_count(&self, id: u32) -> usize {
        match self.edit(id).and_then(|edit| edit.rules.as_ref()) {
            Some(items) => items.len(),
            None => self.preserved(id).map_or(0, |chain| chain.rule_count()),
        }
    }

    fn index(&self) -> NameIndex {
        let mut index = NameIndex::with_capacity(self.slots.len());
        for id in (0..self.slots.len() as u32).filter(|id| !self.is_removed(*id)) {
            index.insert(id, |id| self.name_of(id));
        }
        index
    }

    fn check_name(&self, name: &[u8]) -> Result<(), EditError> {
        check_chain_name(name)?;
        match self.chain(name) {
            None => Ok(()),
            Some(_) => Err(EditError::ChainExists { name: name.into() }),
        }
    }

    /// Updates the order and the index after a chain got a new name.
    fn index_name(&mut self, id: u32) {
        self.reordered = true;
        self.order = OnceCell::new();
        if let Some(mut names) = self.names.take() {
            names.insert(id, |id| self.name_of(id));
            let _ = self.names.set(names);
        }
    }

    /// Removes a chain's current name from the index.
    fn unindex_name(&mut self, id: u32) {
        if let Some(mut names) = self.names.take() {
            names.remove(id, self.name_of(id));
            let _ = self.names.set(names);
        }
    }

    fn drop_chain(&mut self, id: u32) {
        self.unindex_name(id);
        let edit = self.edit_mut(id);
        edit.removed = true;
        edit.rules = Some(Vec::new());
        self.removed += 1;
    }

    /// Returns the chains' numbers in the order of the new table.
    fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        let order = self
            .reordered
            .then(|| self.order.get_or_init(|| self.ordered()));
        // There are fewer than `u32::MAX` chains.
        (0..self.slots.len() as u32)
            .map(move |at| order.map_or(at, |order| order[at as usize]))
            .filter(|id| !self.is_removed(*id))
    }

    /// Sorts chains as libiptc does: a chain goes before the first user-defined one whose name is not
    /// smaller, or to the end.
    fn ordered(&self) -> Vec<u32> {
        let all = 0..self.slots.len() as u32;
        let is_placed = |id: &u32| {
            let name = self.edit(*id).and_then(|edit| edit.name.as_ref());
            name.is_some()
        };
        let (placed, preserved): (Vec<u32>, Vec<u32>) = all.partition(is_placed);
        let mut placed: Vec<(u128, u32)> = placed
            .into_iter()
            .map(|id| (sort_key(self.name_of(id)), id))
            .collect();
        placed.sort_by(|a, b| {
            let names = || self.name_of(a.1).cmp(self.name_of(b.1));
            a.0.cmp(&b.0).then_with(names)
        });
        let mut placed = placed.into_iter().peekable();
        let mut order = Vec::with_capacity(self.slots.len());
        for id in preserved {
            if self.hook_of(id).is_none() && !self.is_removed(id) {
                let before = self.name_of(id);
                while let Some((_, new)) = placed.next_if(|(_, id)| self.name_of(*id) <= before) {
                    order.push(new);
                }
            }
            order.push(id);
        }
        order.extend(placed.map(|(_, id)| id));
        order
    }

    fn item(rule: &RuleRef<'_>) -> Item {
        Item::Preserved {
            // Fit: the kernel's structs store them as u32 and u16.
            offset: rule.offset() as u32,
            length: rule.bytes().len() as u16,
            number: rule.number() as u32,
            counter_ref: CompactCounters::OWN,
        }
    }

    fn new_item(&self, rule: NewRule) -> Result<Item, EditError> {
        let built = self.built.get(rule.number as usize);
        let built = built.filter(|built| built.editor_id == rule.editor_id);
        if let BuiltTarget::Jump(chain) = built.ok_or(EditError::ForeignRule)?.target {
            self.check_exists(self.id(chain))?;
        }
        Ok(Item::New {
            built: rule.number,
            counter_ref: CompactCounters::OWN,
        })
    }

    /// Returns the rules of an existing chain, to be changed.
    fn items(&mut self, id: u32) -> &mut Vec<Item> {
        let preserved = self.preserved(id);
        let edit = self.edit_mut(id);
        edit.rules.get_or_insert_with(|| {
            let rules = preserved.map(|chain| chain.rules());
            rules
                .into_iter()
                .flatten()
                .map(|rule| Self::item(&rule))
                .collect()
        })
    }

    /// Returns the bytes of a rule.
    fn entry(&self, item: &Item) -> Option<Entry<'_>> {
        match *item {
            Item::Preserved { offset, .. } => {
                Entry::at(self.layout, self.table.entries(), offset as usize).ok()
            }
            Item::New { built, .. } => {
                let built = self.built.get(built as usize)?;
                Entry::at(self.layout, built.bytes(&self.arena), 0).ok()
            }
        }
    }

    /// Returns the chain to which a rule jumps.
    fn jump_chain(&self, item: &Item) -> Option<usize> {
        match *item {
            Item::Preserved { offset, .. } => {
                let entry = self.entry(item)?;
                self.preserved_jump_chain(&entry, offset as usize)
            }
            Item::New { built, .. } => match self.built.get(built as usize)?.target {
                BuiltTarget::Jump(chain) => Some(chain as usize),
                _ => None,
            },
        }
    }

    /// Returns the chain to which a rule that was read jumps.
    fn preserved_jump_chain(&self, entry: &Entry<'_>, offset: usize) -> Option<usize> {
        let to = usize::try_from(entry.verdict()?).ok()?;
        if to == offset + entry.bytes.len() {
            return None;
        }
        self.table.position_at(to)
    }

    fn count_references(&self) -> Vec<u32> {
        let mut references = vec![0; self.slots.len()];
        let mut count_reference = |to: Option<usize>| {
            if let Some(count) = to.and_then(|to| references.get_mut(to)) {
                *count += 1;
            }
        };
        for id in self.ids() {
            if let Some(items) = self.edit(id).and_then(|edit| edit.rules.as_ref()) {
                for item in items {
                    count_reference(self.jump_chain(item));
                }
            } else if let Some(chain) = self.preserved(id) {
                for rule in chain.rules() {
                    count_reference(self.preserved_jump_chain(rule.entry(), rule.offset()));
                }
            }
        }
        references
    }

    /// Updates the reference counts after a rule was added to a chain or removed from one.
    fn count_reference(&mut self, item: &Item, change: i32) {
        if self.references.get().is_none() {
            return;
        }
        let to = self.jump_chain(item);
        if let Some(references) = self.references.get_mut()
            && let Some(count) = to.and_then(|to| references.get_mut(to))
        {
            *count = count.saturating_add_signed(change);
        }
    }
}

/// Checks that a chain can have that name.
fn check_chain_name(name: &[u8]) -> Result<(), EditError> {
    let refused = name.is_empty()
        || name.len() >= XT_EXTENSION_MAXNAMELEN
        || name.contains(&0)
        || matches!(name, b"ACCEPT" | b"DROP" | b"QUEUE" | b"RETURN");
    if refused {
        return Err(EditError::ChainName { name: name.into() });
    }
    Ok(())
}

fn count(item: &mut Item, from: CompactCounters) {
    match item {
        Item::Preserved { counter_ref, .. } | Item::New { counter_ref, .. } => *counter_ref = from,
    }
}

impl fmt::Debug for TableEditor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableEditor")
            .field("table", self.table)
            .field("chains", &self.chain_count())
            .field("changed_chains", &self.edits.len())
            .field("built_rules", &self.built.len())
            .finish()
    }
}
