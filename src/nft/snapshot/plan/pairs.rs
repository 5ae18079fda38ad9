//! Which objects of two rulesets are the same by name.

use std::collections::HashMap;
use std::hash::Hash;

/// Objects of one kind in both rulesets, by what they are called.
pub(super) struct Pairs<C, D> {
    pub(super) both: Vec<(C, D)>,
    pub(super) removed: Vec<C>,
    pub(super) added: Vec<D>,
}

pub(super) fn pairs<N: Eq + Hash, C, D>(
    current: impl Iterator<Item = (N, C)>,
    desired: impl Iterator<Item = (N, D)>,
) -> Pairs<C, D> {
    let desired: Vec<_> = desired.collect();
    let mut current: Vec<_> = current.map(|(name, object)| (name, Some(object))).collect();
    let mut places = HashMap::with_capacity(current.len());
    let mut pairs = Pairs {
        both: Vec::new(),
        removed: Vec::new(),
        added: Vec::new(),
    };
    for (place, (name, _)) in current.iter().enumerate() {
        places.insert(name, place);
    }
    let found: Vec<_> = desired
        .iter()
        .map(|(name, _)| places.get(name).copied())
        .collect();
    for ((_, object), place) in desired.into_iter().zip(found) {
        match place.and_then(|place| current[place].1.take()) {
            Some(now) => pairs.both.push((now, object)),
            None => pairs.added.push(object),
        }
    }
    pairs.removed = current
        .into_iter()
        .filter_map(|(_, object)| object)
        .collect();
    pairs
}

impl<C: Clone, D: Clone> Pairs<C, D> {
    /// Takes out of `both`, into `removed` and `added`, what cannot be changed; gives it out, too.
    pub(super) fn replace(&mut self, differ: impl Fn(&C, &D) -> bool) -> Vec<C> {
        let mut replaced = Vec::new();
        for (current, desired) in std::mem::take(&mut self.both) {
            if differ(&current, &desired) {
                replaced.push(current.clone());
                self.removed.push(current);
                self.added.push(desired);
            } else {
                self.both.push((current, desired));
            }
        }
        replaced
    }
}
