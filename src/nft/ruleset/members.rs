//! Objects in the order of their creation, found by name.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Objects in the order of their creation, each with a distinct name.
#[derive(Debug, Clone)]
pub(super) struct Members<K, V> {
    numbers: HashMap<K, u64>,
    in_order: BTreeMap<u64, (K, V)>,
    last: u64,
}

impl<K, V> Default for Members<K, V> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            in_order: BTreeMap::new(),
            last: 0,
        }
    }
}

impl<K: Hash + Eq + Clone, V> Members<K, V> {
    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, name: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let number = self.numbers.get(name)?;
        self.in_order.get(number).map(|(_, value)| value)
    }

    pub(super) fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, name: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let number = self.numbers.get(name)?;
        self.in_order.get_mut(number).map(|(_, value)| value)
    }

    /// Appends an object whose name is unused.
    pub(super) fn insert(&mut self, name: K, value: V) {
        self.last += 1;
        self.numbers.insert(name.clone(), self.last);
        self.in_order.insert(self.last, (name, value));
    }

    pub(super) fn remove<Q: Hash + Eq + ?Sized>(&mut self, name: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let number = self.numbers.remove(name)?;
        self.in_order.remove(&number).map(|(_, value)| value)
    }

    /// Changes the name of an object to an unused one.
    pub(super) fn rename<Q: Hash + Eq + ?Sized>(&mut self, old: &Q, new: K)
    where
        K: Borrow<Q>,
    {
        if let Some(number) = self.numbers.remove(old)
            && let Some((name, _)) = self.in_order.get_mut(&number)
        {
            *name = new.clone();
            self.numbers.insert(new, number);
        }
    }

    /// Returns the name of the object with a name, if it exists.
    pub(super) fn find_key<Q: Hash + Eq + ?Sized>(&self, name: &Q) -> Option<&K>
    where
        K: Borrow<Q>,
    {
        self.numbers.get_key_value(name).map(|(name, _)| name)
    }

    /// Returns the name of the first object that matches.
    pub(super) fn find(&self, mut is: impl FnMut(&V) -> bool) -> Option<&K> {
        let mut all = self.in_order.values();
        all.find(|(_, value)| is(value)).map(|(name, _)| name)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &V> {
        self.in_order.values().map(|(_, value)| value)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.in_order.values_mut().map(|(_, value)| value)
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&V) -> bool) {
        self.in_order.retain(|_, (name, value)| {
            let keeps = keep(value);
            if !keeps {
                self.numbers.remove(&*name);
            }
            keeps
        });
    }
}
