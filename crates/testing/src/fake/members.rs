//! The members of a table of one kind: chains, sets, stateful objects, flowtables, each with a name and a handle.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut, Index};
use std::sync::Arc;

use bstr::{BStr, BString};

use super::listed::Detail;
use super::state::Table;
use super::wire::{AttributeBuffer, Refusal, refuse};

/// A kind of table member.
pub(super) trait Kind: Clone + 'static {
    /// `NFT_MSG_*` of creation and deletion.
    const NEW: u8;
    const GONE: u8;
    const OBJECT_KIND: ObjectKind;

    fn of(table: &Table) -> &Members<Self>;
    fn of_mut(table: &mut Table) -> &mut Members<Self>;
    /// Returns the attributes as listed.
    fn listed(table: &Table, member: &Member<Self>, detail: Detail) -> AttributeBuffer;
}

/// The kinds of members as values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Chain,
    Set,
    Object,
    Flowtable,
}

/// A member with its name and handle.
#[derive(Debug, Clone)]
pub(super) struct Member<K> {
    name: BString,
    pub(super) handle: u64,
    /// Number of rules and elements that refer to it.
    pub(super) uses: u32,
    is_dead: bool,
    body: K,
}

impl<K> Member<K> {
    pub(super) fn name(&self) -> &BStr {
        self.name.as_ref()
    }

    /// Returns `true` if the transaction deleted it: it remains in place, but lookups by name don't find it.
    pub(super) const fn is_dead(&self) -> bool {
        self.is_dead
    }
}

impl<K> Deref for Member<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.body
    }
}

impl<K> DerefMut for Member<K> {
    fn deref_mut(&mut self) -> &mut K {
        &mut self.body
    }
}

/// All members of a kind, in the order of their handles, which is that of creation. A copy shares unchanged data.
///
/// The indices of members don't change during a transaction.
#[derive(Debug, Clone)]
pub(super) struct Members<K> {
    all: Vec<Arc<Member<K>>>,
    /// The handles of living members by name, in the order in which they got the name: stateful objects of different
    /// types may share one.
    names: Arc<HashMap<BString, Vec<u64>>>,
    dead: usize,
}

impl<K> Default for Members<K> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            names: Arc::default(),
            dead: 0,
        }
    }
}

impl<K> Index<usize> for Members<K> {
    type Output = Arc<Member<K>>;

    fn index(&self, at: usize) -> &Self::Output {
        &self.all[at]
    }
}

impl<K: Clone> Members<K> {
    /// Iterates over all members, dead ones included.
    pub(super) fn iter(&self) -> std::slice::Iter<'_, Arc<Member<K>>> {
        self.all.iter()
    }

    /// Returns the number of members, dead ones included.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the number of living members.
    pub(super) fn count_alive(&self) -> usize {
        self.all.len() - self.dead
    }

    /// Returns the index of the member with this name.
    pub(super) fn named(&self, name: &BStr) -> Result<usize, Refusal> {
        self.named_matching(name, |_| true)
    }

    /// Returns the index of the member with this name that satisfies `is`. Two chains may have the same name, if one
    /// was to be renamed when the other was created: the kernel's hash table finds the last one to get the name.
    pub(super) fn named_matching(
        &self,
        name: &BStr,
        is: impl Fn(&K) -> bool,
    ) -> Result<usize, Refusal> {
        let handles = self.names.get(name).map_or(&[][..], Vec::as_slice).iter();
        let mut found = handles.rev().filter_map(|&handle| self.index_of(handle));
        found
            .find(|&at| is(&self.all[at]))
            .ok_or(refuse(libc::ENOENT))
    }

    /// Returns the index of the living member with this handle.
    pub(super) fn of(&self, handle: u64) -> Result<usize, Refusal> {
        let index_of = self.index_of(handle).filter(|&at| !self.all[at].is_dead);
        index_of.ok_or(refuse(libc::ENOENT))
    }

    /// Returns the index of the member with this handle, dead or alive.
    pub(super) fn index_of(&self, handle: u64) -> Option<usize> {
        self.all
            .binary_search_by_key(&handle, |one| one.handle)
            .ok()
    }

    /// Returns the member with this handle, dead or alive.
    pub(super) fn find_any(&self, handle: u64) -> Option<&Member<K>> {
        self.index_of(handle).map(|at| &*self.all[at])
    }

    /// Returns the member with this handle, dead or alive, for modification.
    pub(super) fn edit_any(&mut self, handle: u64) -> Option<&mut Member<K>> {
        self.index_of(handle).map(|at| self.edit(at))
    }

    /// Returns a member for modification.
    pub(super) fn edit(&mut self, at: usize) -> &mut Member<K> {
        Arc::make_mut(&mut self.all[at])
    }

    /// Adds a member, whose handle must be the highest.
    pub(super) fn add(&mut self, name: BString, handle: u64, body: K) {
        self.enter(name.as_ref(), handle);
        self.all.push(Arc::new(Member {
            name,
            handle,
            uses: 0,
            is_dead: false,
            body,
        }));
    }

    /// Renames the member with this handle, dead or alive.
    pub(super) fn rename(&mut self, handle: u64, name: BString) {
        let Some(at) = self.index_of(handle) else {
            return;
        };
        if !self.all[at].is_dead {
            self.leave(at);
            self.enter(name.as_ref(), handle);
        }
        self.edit(at).name = name;
    }

    /// Marks a member as dead; returns its handle.
    pub(super) fn mark_dead(&mut self, at: usize) -> u64 {
        self.leave(at);
        self.dead += 1;
        let one = self.edit(at);
        one.is_dead = true;
        one.handle
    }

    /// Returns the number of dead members.
    pub(super) const fn count_dead(&self) -> usize {
        self.dead
    }

    pub(super) const fn has_dead(&self) -> bool {
        self.dead > 0
    }

    /// Removes dead members, which changes indices.
    pub(super) fn remove_dead(&mut self) {
        if std::mem::take(&mut self.dead) > 0 {
            self.all.retain(|one| !one.is_dead);
        }
    }

    fn enter(&mut self, name: &BStr, handle: u64) {
        let names = Arc::make_mut(&mut self.names);
        match names.get_mut(name) {
            Some(handles) => handles.push(handle),
            None => _ = names.insert(name.to_owned(), vec![handle]),
        }
    }

    fn leave(&mut self, at: usize) {
        let one = &self.all[at];
        let names = Arc::make_mut(&mut self.names);
        if let Some(handles) = names.get_mut(one.name()) {
            handles.retain(|&handle| handle != one.handle);
            if handles.is_empty() {
                names.remove(one.name());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates members with these names and the handles 1, 2, ….
    fn members(names: &[&str]) -> Members<()> {
        let mut members = Members::default();
        for (handle, name) in (1..).zip(names) {
            members.add((*name).into(), handle, ());
        }
        members
    }

    #[test]
    fn found_by_name_and_handle_until_deleted() {
        let mut members = members(&["a", "b", "c"]);
        assert_eq!(members.named("b".into()), Ok(1));
        assert_eq!(members.of(3), Ok(2));
        assert_eq!(members.mark_dead(1), 2);
        assert_eq!(members.named("b".into()), Err(refuse(libc::ENOENT)));
        assert_eq!(members.of(2), Err(refuse(libc::ENOENT)));
        assert_eq!((members.len(), members.count_alive()), (3, 2));
        assert!(members.find_any(2).is_some_and(Member::is_dead));
        // Another member gets its name before it is removed.
        members.add("b".into(), 4, ());
        assert_eq!(members.named("b".into()), Ok(3));
        members.remove_dead();
        assert_eq!(members.named("b".into()), Ok(2));
        assert_eq!((members.len(), members.count_alive()), (3, 3));
        assert!(members.find_any(2).is_none());
    }

    #[test]
    fn renaming_replaces_the_old_name() {
        let mut members = members(&["a", "b"]);
        members.rename(1, "z".into());
        assert_eq!(members.named("z".into()), Ok(0));
        assert_eq!(members.named("a".into()), Err(refuse(libc::ENOENT)));
        let before = members.clone();
        members.rename(1, "y".into());
        assert_eq!(
            before.named("z".into()),
            Ok(0),
            "a copy should be unchanged"
        );
    }

    #[test]
    fn same_name_with_different_keys() {
        let mut members = Members::default();
        members.add("n".into(), 1, 10);
        members.add("n".into(), 2, 20);
        assert_eq!(
            members.named_matching("n".into(), |&body| body == 20),
            Ok(1)
        );
        members.mark_dead(0);
        assert_eq!(members.named("n".into()), Ok(1));
        assert!(
            members
                .named_matching("n".into(), |&body| body == 10)
                .is_err()
        );
    }
}
