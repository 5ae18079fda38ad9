//! Matches the objects of two rulesets by name.

use std::collections::HashMap;
use std::hash::Hash;

/// Returns the objects of each name: those of the old ruleset in its order, then those that only the new one has.
pub(super) fn by_name<N: Eq + Hash + Clone, C, D>(
    old: impl IntoIterator<Item = (N, C)>,
    new: impl IntoIterator<Item = (N, D)>,
) -> Vec<(N, Option<C>, Option<D>)> {
    let mut new: Vec<(N, Option<D>)> = new
        .into_iter()
        .map(|(name, object)| (name, Some(object)))
        .collect();
    // Maps each name to its first object; chains the objects with the same name, which only files can contain.
    let mut numbers: HashMap<N, usize> = HashMap::with_capacity(new.len());
    let mut next = vec![None; new.len()];
    for (number, (name, _)) in new.iter().enumerate().rev() {
        next[number] = numbers.insert(name.clone(), number);
    }
    let mut pairs: Vec<_> = old
        .into_iter()
        .map(|(name, object)| {
            let number = numbers.get(&name).copied();
            match number.and_then(|number| next[number]) {
                Some(next) => drop(numbers.insert(name.clone(), next)),
                None => drop(numbers.remove(&name)),
            }
            let other = number.and_then(|number| new[number].1.take());
            (name, Some(object), other)
        })
        .collect();
    let added = new.into_iter().filter(|(_, object)| object.is_some());
    pairs.extend(added.map(|(name, object)| (name, None, object)));
    pairs
}

/// The objects of one kind in two rulesets.
pub(super) struct Pairs<C, D> {
    pub(super) both: Vec<(C, D)>,
    pub(super) removed: Vec<C>,
    pub(super) added: Vec<D>,
}

impl<C, D> Pairs<C, D> {
    pub(super) fn of<N: Eq + Hash + Clone>(
        old: impl IntoIterator<Item = (N, C)>,
        new: impl IntoIterator<Item = (N, D)>,
    ) -> Self {
        let mut pairs = Self {
            both: Vec::new(),
            removed: Vec::new(),
            added: Vec::new(),
        };
        for (_, old, new) in by_name(old, new) {
            match (old, new) {
                (Some(old), Some(new)) => pairs.both.push((old, new)),
                (old, new) => {
                    pairs.removed.extend(old);
                    pairs.added.extend(new);
                }
            }
        }
        pairs
    }
}

impl<C: Clone, D> Pairs<C, D> {
    /// Moves objects that cannot be changed from `both` to `removed` and `added`; returns the old ones.
    pub(super) fn replace(&mut self, mut differ: impl FnMut(&C, &D) -> bool) -> Vec<C> {
        let mut replaced = Vec::new();
        for (old, new) in std::mem::take(&mut self.both) {
            if differ(&old, &new) {
                replaced.push(old.clone());
                self.removed.push(old);
                self.added.push(new);
            } else {
                self.both.push((old, new));
            }
        }
        replaced
    }
}
