//! A table under change.
//!
//! Long, because all ways of changing it keep the same promise: that every jump and every number stays right.

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
use super::name::start_of;
use super::{ChainRef, Counters, HeaderBuf, Hook, Policy, Replacement, RuleRef, Table};
use crate::arena::Arena;
use index::NameIndex;
use item::{Built, BuiltTarget, Count, Counting, Item};

pub use build::{NewRule, NewTarget, RuleBuilder};
pub use error::DraftError;
pub use view::{DraftChain, DraftRule, DraftRules, DraftTarget};

/// A chain of a [`Draft`]. It stays the same as long as the chain exists, whatever else is changed,
/// and when the chain is renamed. It means nothing to other drafts, except to clones that were made
/// later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId {
    number: u32,
    /// The draft that made the chain, or began with it.
    maker: Maker,
}

impl fmt::Debug for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChainId").field(&self.number).finish()
    }
}

/// What tells a draft from all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Maker(u32);

/// A draft's own [`Maker`]: a clone has another.
#[derive(Debug)]
struct Own(Maker);

impl Own {
    fn new() -> Self {
        static DRAFTS: AtomicU32 = AtomicU32::new(0);
        Self(Maker(DRAFTS.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Clone for Own {
    fn clone(&self) -> Self {
        Self::new()
    }
}

/// A change of a [`Table`]: which chains and rules the new table has.
///
/// It borrows the table that was read. What is not changed is not copied before [`finish`], and then
/// byte for byte, but for the offsets that jumps hold. Nothing happens to the kernel's table until
/// [`Connection::replace`] gets what [`finish`] returns; a draft is changed in memory alone, and can
/// be thrown away.
///
/// A user-defined chain that ends without the return that iptables puts there gets one when its
/// rules are changed.
///
/// [`finish`]: Self::finish
/// [`Connection::replace`]: super::Connection::replace
#[derive(Clone)]
pub struct Draft<'t> {
    table: &'t Table,
    layout: &'static Layout,
    own: Own,
    /// The draft that began with the table's chains.
    first: Maker,
    /// The makers of all other chains.
    makers: Vec<Maker>,
    /// For each chain, those of the table first: 0 if it is as it was read, else one more than the
    /// position of its edit.
    slots: Vec<u32>,
    edits: Vec<Edit>,
    /// How many chains were removed.
    removed: usize,
    /// New rules' entries.
    arena: Arena,
    /// The entry of the rule that is being built.
    scratch: Vec<u8>,
    built: Vec<Built>,
    /// Counters that were set.
    given: Vec<Counters>,
    names: OnceCell<NameIndex>,
    /// The chains in the order of the new table, removed ones included, if it is not that of the ids.
    order: OnceCell<Vec<u32>>,
    /// Whether a chain was added or renamed.
    reordered: bool,
    /// For each chain, how many rules lead to it.
    references: OnceCell<Vec<u32>>,
}

/// What is not as it was read, or is new, about a chain.
#[derive(Clone, Debug)]
struct Edit {
    /// Of one that was added or renamed.
    name: Option<Box<[u8]>>,
    removed: bool,
    rules: Option<Vec<Item>>,
    policy: Option<Policy>,
    /// The counters of the policy, or of the implicit return.
    foot: Count,
}

impl Edit {
    const NONE: Self = Self {
        name: None,
        removed: false,
        rules: None,
        policy: None,
        foot: Count::Own,
    };
}

impl<'t> Draft<'t> {
    /// The table as it was read.
    #[must_use]
    pub fn of(table: &'t Table) -> Self {
        let own = Own::new();
        Self {
            table,
            layout: table.family().layout(),
            first: own.0,
            makers: Vec::new(),
            own,
            slots: vec![0; table.spans().len()],
            edits: Vec::new(),
            removed: 0,
            arena: Arena::default(),
            scratch: Vec::new(),
            built: Vec::new(),
            given: Vec::new(),
            names: OnceCell::new(),
            order: OnceCell::new(),
            reordered: false,
            references: OnceCell::new(),
        }
    }

    /// The table that was read.
    #[must_use]
    pub const fn table(&self) -> &'t Table {
        self.table
    }

    /// Whether anything was changed, be it back to what it was.
    #[must_use]
    pub const fn is_changed(&self) -> bool {
        !self.edits.is_empty()
    }

    // Chains.

    /// The chain of that name.
    ///
    /// The first call builds an index of all names; from then on it takes the same time whatever the
    /// number of chains.
    #[must_use]
    pub fn chain(&self, name: impl AsRef<[u8]>) -> Option<ChainId> {
        let name = name.as_ref();
        let names = self.names.get_or_init(|| self.index());
        let found = names.find(name, |id| self.name_of(id));
        found.map(|id| self.id(id))
    }

    /// The built-in chain of that hook.
    #[must_use]
    pub fn builtin(&self, hook: Hook) -> Option<ChainId> {
        let spans = self.table.spans();
        let position = spans.iter().position(|span| span.hook == Some(hook))?;
        u32::try_from(position).ok().map(|id| self.id(id))
    }

    /// A look at the chain; `None` if it was removed.
    #[must_use]
    pub fn get(&self, chain: ChainId) -> Option<DraftChain<'_>> {
        self.live(chain).ok()?;
        Some(DraftChain::new(self, chain))
    }

    /// The chains, in the order of the new table: those that were read in the kernel's order, the
    /// others sorted by name among them, as iptables does it.
    pub fn chains(&self) -> impl Iterator<Item = DraftChain<'_>> {
        self.ids().map(|id| DraftChain::new(self, self.id(id)))
    }

    /// Number of chains.
    #[must_use]
    pub const fn chain_count(&self) -> usize {
        self.slots.len() - self.removed
    }

    /// Adds a user-defined chain without rules.
    ///
    /// # Errors
    /// - [`DraftError::ChainName`] for a name that iptables does not take: one with less than 1 or
    ///   more than 28 bytes or with a NUL, or `ACCEPT`, `DROP`, `QUEUE` or `RETURN`;
    /// - [`DraftError::ChainExists`].
    pub fn add_chain(&mut self, name: impl AsRef<[u8]>) -> Result<ChainId, DraftError> {
        let name = name.as_ref();
        self.check_name(name)?;
        self.add_new_chain(name)
    }

    /// The chain of that name, added if there is none.
    ///
    /// # Errors
    /// As [`add_chain`](Self::add_chain), but for one that is there.
    pub(crate) fn chain_or_added(&mut self, name: &[u8]) -> Result<ChainId, DraftError> {
        if let Some(there) = self.chain(name) {
            return Ok(there);
        }
        check_form_of_name(name)?;
        self.add_new_chain(name)
    }

    /// Adds a chain of a name that no other one has.
    fn add_new_chain(&mut self, name: &[u8]) -> Result<ChainId, DraftError> {
        let id = match u32::try_from(self.slots.len()) {
            Ok(id) if id < u32::MAX => id,
            _ => return Err(DraftError::TableTooLarge { size: u64::MAX }),
        };
        self.slots.push(0);
        self.makers.push(self.own.0);
        let edit = self.edit_mut(id);
        edit.name = Some(name.into());
        edit.rules = Some(Vec::new());
        if let Some(references) = self.references.get_mut() {
            references.push(0);
        }
        self.named(id);
        Ok(self.id(id))
    }

    /// Removes a user-defined chain.
    ///
    /// # Errors
    /// [`DraftError::Builtin`], [`DraftError::NotEmpty`], [`DraftError::Referenced`] or
    /// [`DraftError::NoSuchChain`]: whatever `iptables -X` refuses.
    pub fn remove_chain(&mut self, chain: ChainId) -> Result<(), DraftError> {
        self.user_chain(chain)?;
        let name = || BString::from(self.name_of(chain.number));
        let rules = self.rule_count(chain.number);
        if rules != 0 {
            return Err(DraftError::NotEmpty {
                name: name(),
                rules,
            });
        }
        let references = self.references(chain)?;
        if references != 0 {
            return Err(DraftError::Referenced {
                name: name(),
                references,
            });
        }
        self.drop_chain(chain.number);
        Ok(())
    }

    /// Gives a user-defined chain another name, and so another place. What jumps to it still does.
    ///
    /// # Errors
    /// [`DraftError::Builtin`], [`DraftError::ChainName`], [`DraftError::ChainExists`] (also if it is
    /// its own name) or [`DraftError::NoSuchChain`].
    pub fn rename_chain(
        &mut self,
        chain: ChainId,
        name: impl AsRef<[u8]>,
    ) -> Result<(), DraftError> {
        let name = name.as_ref();
        self.user_chain(chain)?;
        self.check_name(name)?;
        self.unname(chain.number);
        self.edit_mut(chain.number).name = Some(name.into());
        self.named(chain.number);
        Ok(())
    }

    /// Removes all user-defined chains and all rules, as `iptables-restore` does before it reads what a
    /// table shall have. Policies and their counters stay.
    pub fn clear(&mut self) {
        let ids: Vec<u32> = self.ids().collect();
        for &id in &ids {
            if self.hook_of(id).is_none() {
                self.drop_chain(id);
            } else if self.rule_count(id) != 0 {
                self.edit_mut(id).rules = Some(Vec::new());
            }
        }
        // Nothing leads anywhere now.
        if let Some(references) = self.references.get_mut() {
            references.fill(0);
        }
    }

    /// How many rules jump or go to the chain. The first call looks at all rules.
    ///
    /// # Errors
    /// [`DraftError::NoSuchChain`].
    pub fn references(&self, chain: ChainId) -> Result<u32, DraftError> {
        self.live(chain)?;
        let counted = self.references.get_or_init(|| self.count_references());
        Ok(counted.get(chain.number as usize).copied().unwrap_or(0))
    }

    // Policies.

    /// Sets the policy of a built-in chain. Its counters stay, here and after any other change
    /// (iptables-legacy sets those of all policies to zero whatever it changes).
    ///
    /// # Errors
    /// [`DraftError::NotBuiltin`] or [`DraftError::NoSuchChain`].
    pub fn set_policy(&mut self, chain: ChainId, policy: Policy) -> Result<(), DraftError> {
        self.builtin_chain(chain)?;
        self.edit_mut(chain.number).policy = Some(policy);
        Ok(())
    }

    /// Sets the counters of a built-in chain's policy.
    ///
    /// # Errors
    /// [`DraftError::NotBuiltin`] or [`DraftError::NoSuchChain`].
    pub fn set_policy_counters(
        &mut self,
        chain: ChainId,
        counters: Counters,
    ) -> Result<(), DraftError> {
        self.builtin_chain(chain)?;
        self.edit_mut(chain.number).foot = Count::Given(counters);
        Ok(())
    }

    // Rules.

    /// Starts a new rule. See [`RuleBuilder`]; the rule is in no chain before it is put there.
    ///
    /// # Errors
    /// [`DraftError::Family`] if the header is another family's.
    pub fn build(
        &mut self,
        header: impl Into<HeaderBuf>,
    ) -> Result<RuleBuilder<'_, 't>, DraftError> {
        RuleBuilder::new(self, &header.into())
    }

    /// Puts a new rule at the end of a chain.
    ///
    /// # Errors
    /// [`DraftError::NoSuchChain`] (also if the rule leads to a chain that was removed), or
    /// [`DraftError::ForeignRule`].
    pub fn append(&mut self, chain: ChainId, rule: NewRule) -> Result<(), DraftError> {
        self.live(chain)?;
        let item = self.new_item(rule)?;
        self.items(chain.number).push(item);
        self.refer(&item, 1);
        Ok(())
    }

    /// Puts a new rule in front of the one at `position`, counted from 0; at the end, if `position` is
    /// the number of rules.
    ///
    /// # Errors
    /// As [`append`](Self::append), and [`DraftError::NoSuchRule`].
    pub fn insert(
        &mut self,
        chain: ChainId,
        position: usize,
        rule: NewRule,
    ) -> Result<(), DraftError> {
        self.live(chain)?;
        if position != self.rule_count(chain.number) {
            self.has_rule(chain, position)?;
        }
        let item = self.new_item(rule)?;
        self.items(chain.number).insert(position, item);
        self.refer(&item, 1);
        Ok(())
    }

    /// Puts a new rule in the place of the one at `position`, counted from 0. The counters are the new
    /// rule's.
    ///
    /// # Errors
    /// As [`append`](Self::append), and [`DraftError::NoSuchRule`].
    pub fn replace(
        &mut self,
        chain: ChainId,
        position: usize,
        rule: NewRule,
    ) -> Result<(), DraftError> {
        self.has_rule(chain, position)?;
        let item = self.new_item(rule)?;
        let old = std::mem::replace(&mut self.items(chain.number)[position], item);
        self.refer(&old, -1);
        self.refer(&item, 1);
        Ok(())
    }

    /// Removes the rule at `position`, counted from 0.
    ///
    /// # Errors
    /// [`DraftError::NoSuchChain`] or [`DraftError::NoSuchRule`].
    pub fn remove(&mut self, chain: ChainId, position: usize) -> Result<(), DraftError> {
        self.has_rule(chain, position)?;
        let old = self.items(chain.number).remove(position);
        self.refer(&old, -1);
        Ok(())
    }

    /// Keeps those rules of a chain for which `keep` says yes; it is called for each in order. One pass,
    /// however many go.
    ///
    /// # Errors
    /// [`DraftError::NoSuchChain`].
    pub fn retain(
        &mut self,
        chain: ChainId,
        mut keep: impl FnMut(DraftRule<'_>) -> bool,
    ) -> Result<(), DraftError> {
        let Some(view) = self.get(chain) else {
            return Err(DraftError::NoSuchChain);
        };
        let kept: Vec<bool> = view.rules().map(&mut keep).collect();
        if kept.iter().all(|kept| *kept) {
            return Ok(());
        }
        let mut gone = Vec::new();
        let mut position = 0;
        self.items(chain.number).retain(|item| {
            let keep = kept.get(position).copied().unwrap_or(true);
            position += 1;
            if !keep {
                gone.push(*item);
            }
            keep
        });
        for item in &gone {
            self.refer(item, -1);
        }
        Ok(())
    }

    /// Removes all rules of a chain.
    ///
    /// # Errors
    /// [`DraftError::NoSuchChain`].
    pub fn flush(&mut self, chain: ChainId) -> Result<(), DraftError> {
        self.live(chain)?;
        if self.rule_count(chain.number) == 0 {
            return Ok(());
        }
        let gone = if self.references.get().is_some() {
            std::mem::take(self.items(chain.number))
        } else {
            self.edit_mut(chain.number).rules = Some(Vec::new());
            Vec::new()
        };
        for item in &gone {
            self.refer(item, -1);
        }
        Ok(())
    }

    // Counters.

    /// Sets the counters of the rule at `position`, counted from 0.
    ///
    /// # Errors
    /// [`DraftError::NoSuchChain`] or [`DraftError::NoSuchRule`].
    pub fn set_counters(
        &mut self,
        chain: ChainId,
        position: usize,
        counters: Counters,
    ) -> Result<(), DraftError> {
        self.has_rule(chain, position)?;
        let counting = Counting::given(&mut self.given, counters);
        count(&mut self.items(chain.number)[position], counting);
        Ok(())
    }

    /// Sets the counters of the rule at `position` to zero. What the kernel counts between the read and
    /// the replacement is not lost: that much they are then.
    ///
    /// # Errors
    /// [`DraftError::NoSuchChain`] or [`DraftError::NoSuchRule`].
    pub fn zero_rule(&mut self, chain: ChainId, position: usize) -> Result<(), DraftError> {
        self.has_rule(chain, position)?;
        count(&mut self.items(chain.number)[position], Counting::ZEROED);
        Ok(())
    }

    /// Sets the counters of all rules of a chain, and of its policy, to zero, as
    /// [`zero_rule`](Self::zero_rule) does.
    ///
    /// # Errors
    /// [`DraftError::NoSuchChain`].
    pub fn zero(&mut self, chain: ChainId) -> Result<(), DraftError> {
        self.live(chain)?;
        for item in self.items(chain.number) {
            count(item, Counting::ZEROED);
        }
        self.edit_mut(chain.number).foot = Count::Zeroed;
        Ok(())
    }

    /// The new table, for [`Connection::replace`](super::Connection::replace). The draft can be changed
    /// further afterwards.
    ///
    /// # Errors
    /// - [`DraftError::TableTooLarge`];
    /// - [`DraftError::NotRead`] if the table has no entries;
    /// - [`DraftError::Kept`] if something was changed and the table that was read has a jump that
    ///   leads into the middle of a chain.
    pub fn finish(&self) -> Result<Replacement, DraftError> {
        finish::finish(self)
    }

    // What the above is made of. Chains are meant by number here.

    fn span(&self, id: u32) -> Option<&'t Span> {
        self.table.spans().get(id as usize)
    }

    /// The chain as it was read.
    fn kept(&self, id: u32) -> Option<ChainRef<'t>> {
        Some(ChainRef::new(self.table, self.span(id)?))
    }

    fn edit(&self, id: u32) -> Option<&Edit> {
        let slot = *self.slots.get(id as usize)?;
        self.edits.get((slot as usize).checked_sub(1)?)
    }

    /// The chain must exist.
    fn edit_mut(&mut self, id: u32) -> &mut Edit {
        let slot = &mut self.slots[id as usize];
        if *slot == 0 {
            self.edits.push(Edit::NONE);
            // One for each chain at most, and their numbers are less than `u32::MAX`.
            *slot = self.edits.len() as u32;
        }
        &mut self.edits[*slot as usize - 1]
    }

    /// A chain's id.
    fn id(&self, number: u32) -> ChainId {
        let added = (number as usize).checked_sub(self.table.spans().len());
        let maker = added.and_then(|added| self.makers.get(added));
        ChainId {
            number,
            maker: *maker.unwrap_or(&self.first),
        }
    }

    /// A chain that is there.
    fn live(&self, chain: ChainId) -> Result<(), DraftError> {
        if chain != self.id(chain.number) {
            return Err(DraftError::ForeignChain);
        }
        let there = (chain.number as usize) < self.slots.len() && !self.is_removed(chain.number);
        if there {
            Ok(())
        } else {
            Err(DraftError::NoSuchChain)
        }
    }

    fn is_removed(&self, id: u32) -> bool {
        self.edit(id).is_some_and(|edit| edit.removed)
    }

    fn user_chain(&self, chain: ChainId) -> Result<(), DraftError> {
        self.live(chain)?;
        match self.hook_of(chain.number) {
            None => Ok(()),
            Some(hook) => Err(DraftError::Builtin { hook }),
        }
    }

    fn builtin_chain(&self, chain: ChainId) -> Result<(), DraftError> {
        self.live(chain)?;
        match self.hook_of(chain.number) {
            Some(_) => Ok(()),
            None => Err(DraftError::NotBuiltin {
                name: BString::from(self.name_of(chain.number)),
            }),
        }
    }

    fn has_rule(&self, chain: ChainId, position: usize) -> Result<(), DraftError> {
        self.live(chain)?;
        let rules = self.rule_count(chain.number);
        if position < rules {
            return Ok(());
        }
        Err(DraftError::NoSuchRule {
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
        self.kept(id).map(|chain| chain.name()).unwrap_or_default()
    }

    fn rule_count(&self, id: u32) -> usize {
        match self.edit(id).and_then(|edit| edit.rules.as_ref()) {
            Some(items) => items.len(),
            None => self.kept(id).map_or(0, |chain| chain.rule_count()),
        }
    }

    fn index(&self) -> NameIndex {
        let mut index = NameIndex::with_capacity(self.slots.len());
        for id in (0..self.slots.len() as u32).filter(|id| !self.is_removed(*id)) {
            index.insert(id, |id| self.name_of(id));
        }
        index
    }

    fn check_name(&self, name: &[u8]) -> Result<(), DraftError> {
        check_form_of_name(name)?;
        match self.chain(name) {
            None => Ok(()),
            Some(_) => Err(DraftError::ChainExists { name: name.into() }),
        }
    }

    /// The chain has another name now.
    fn named(&mut self, id: u32) {
        self.reordered = true;
        self.order = OnceCell::new();
        if let Some(mut names) = self.names.take() {
            names.insert(id, |id| self.name_of(id));
            let _ = self.names.set(names);
        }
    }

    /// The chain will not have its name any more.
    fn unname(&mut self, id: u32) {
        if let Some(mut names) = self.names.take() {
            names.remove(id, self.name_of(id));
            let _ = self.names.set(names);
        }
    }

    fn drop_chain(&mut self, id: u32) {
        self.unname(id);
        let edit = self.edit_mut(id);
        edit.removed = true;
        edit.rules = Some(Vec::new());
        self.removed += 1;
    }

    /// The chains' numbers in the order of the new table.
    fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        let order = self
            .reordered
            .then(|| self.order.get_or_init(|| self.ordered()));
        // Their number is less than `u32::MAX`.
        (0..self.slots.len() as u32)
            .map(move |at| order.map_or(at, |order| order[at as usize]))
            .filter(|id| !self.is_removed(*id))
    }

    /// Where libiptc puts a chain: in front of the first user-defined one whose name is not smaller,
    /// or at the end.
    fn ordered(&self) -> Vec<u32> {
        let all = 0..self.slots.len() as u32;
        let is_placed = |id: &u32| {
            let name = self.edit(*id).and_then(|edit| edit.name.as_ref());
            name.is_some()
        };
        let (placed, kept): (Vec<u32>, Vec<u32>) = all.partition(is_placed);
        let mut placed: Vec<(u128, u32)> = placed
            .into_iter()
            .map(|id| (start_of(self.name_of(id)), id))
            .collect();
        placed.sort_by(|a, b| {
            let names = || self.name_of(a.1).cmp(self.name_of(b.1));
            a.0.cmp(&b.0).then_with(names)
        });
        let mut placed = placed.into_iter().peekable();
        let mut order = Vec::with_capacity(self.slots.len());
        for id in kept {
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
        Item::Kept {
            // As far as u32 and u16 in the kernel's own structs.
            offset: rule.offset() as u32,
            length: rule.bytes().len() as u16,
            number: rule.number() as u32,
            counting: Counting::OWN,
        }
    }

    fn new_item(&self, rule: NewRule) -> Result<Item, DraftError> {
        let built = self.built.get(rule.number as usize);
        let built = built.filter(|built| built.maker == rule.maker);
        if let BuiltTarget::Jump(chain) = built.ok_or(DraftError::ForeignRule)?.target {
            self.live(self.id(chain))?;
        }
        Ok(Item::New {
            built: rule.number,
            counting: Counting::OWN,
        })
    }

    /// The rules of a chain that exists, to be changed.
    fn items(&mut self, id: u32) -> &mut Vec<Item> {
        let kept = self.kept(id);
        let edit = self.edit_mut(id);
        edit.rules.get_or_insert_with(|| {
            let rules = kept.map(|chain| chain.rules());
            rules
                .into_iter()
                .flatten()
                .map(|rule| Self::item(&rule))
                .collect()
        })
    }

    /// The bytes of a rule.
    fn entry(&self, item: &Item) -> Option<Entry<'_>> {
        match *item {
            Item::Kept { offset, .. } => {
                Entry::at(self.layout, self.table.entries(), offset as usize).ok()
            }
            Item::New { built, .. } => {
                let built = self.built.get(built as usize)?;
                Entry::at(self.layout, built.bytes(&self.arena), 0).ok()
            }
        }
    }

    /// The chain that a rule leads to.
    fn leads_to(&self, item: &Item) -> Option<usize> {
        match *item {
            Item::Kept { offset, .. } => {
                let entry = self.entry(item)?;
                self.kept_leads_to(&entry, offset as usize)
            }
            Item::New { built, .. } => match self.built.get(built as usize)?.target {
                BuiltTarget::Jump(chain) => Some(chain as usize),
                _ => None,
            },
        }
    }

    /// The chain that a rule leads to that was read.
    fn kept_leads_to(&self, entry: &Entry<'_>, offset: usize) -> Option<usize> {
        let to = usize::try_from(entry.verdict()?).ok()?;
        if to == offset + entry.bytes.len() {
            return None;
        }
        self.table.position_at(to)
    }

    fn count_references(&self) -> Vec<u32> {
        let mut references = vec![0; self.slots.len()];
        let mut refer = |to: Option<usize>| {
            if let Some(count) = to.and_then(|to| references.get_mut(to)) {
                *count += 1;
            }
        };
        for id in self.ids() {
            if let Some(items) = self.edit(id).and_then(|edit| edit.rules.as_ref()) {
                for item in items {
                    refer(self.leads_to(item));
                }
            } else if let Some(chain) = self.kept(id) {
                for rule in chain.rules() {
                    refer(self.kept_leads_to(rule.entry(), rule.offset()));
                }
            }
        }
        references
    }

    /// A rule was put into a chain, or taken out of one.
    fn refer(&mut self, item: &Item, change: i32) {
        if self.references.get().is_none() {
            return;
        }
        let to = self.leads_to(item);
        if let Some(references) = self.references.get_mut()
            && let Some(count) = to.and_then(|to| references.get_mut(to))
        {
            *count = count.saturating_add_signed(change);
        }
    }
}

/// Whether a chain can have that name.
fn check_form_of_name(name: &[u8]) -> Result<(), DraftError> {
    let refused = name.is_empty()
        || name.len() >= XT_EXTENSION_MAXNAMELEN
        || name.contains(&0)
        || matches!(name, b"ACCEPT" | b"DROP" | b"QUEUE" | b"RETURN");
    if refused {
        return Err(DraftError::ChainName { name: name.into() });
    }
    Ok(())
}

fn count(item: &mut Item, from: Counting) {
    match item {
        Item::Kept { counting, .. } | Item::New { counting, .. } => *counting = from,
    }
}

impl fmt::Debug for Draft<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft")
            .field("table", self.table)
            .field("chains", &self.chain_count())
            .field("changed_chains", &self.edits.len())
            .field("built_rules", &self.built.len())
            .finish()
    }
}
