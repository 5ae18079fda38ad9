//! Elements that several services may request: one external address and port of two services, one endpoint of ten.

use std::hash::Hash;

use indexmap::map::Entry;

use crate::service::map::Map;

/// Tracks which owners request which elements, and with what value. If several request one element, the first in their
/// order gets it; when that owner releases it, the next one gets it.
#[derive(Debug, Clone)]
pub(crate) struct SharedElements<O, K, V> {
    claims: Map<K, Slot<O, V>>,
    /// The previous values of elements that may have changed since the last `take_changed`, each once, by index: no
    /// element is removed before that call.
    before: Vec<(usize, Option<V>)>,
}

#[derive(Debug, Clone)]
struct Slot<O, V> {
    claimed: Claimed<O, V>,
    /// Whether the previous value is recorded.
    is_recorded: bool,
}

/// Nearly always one owner.
#[derive(Debug, Clone)]
enum Claimed<O, V> {
    /// Until the next `take_changed`.
    None,
    One(O, V),
    /// In the order of owners. More than one.
    More(Vec<(O, V)>),
}

impl<O, V: Clone> Slot<O, V> {
    /// Records the current value, the first time.
    fn note(&mut self, place: usize, before: &mut Vec<(usize, Option<V>)>) {
        if !self.is_recorded {
            before.push((place, self.claimed.value().cloned()));
            self.is_recorded = true;
        }
    }
}

impl<O, V> Claimed<O, V> {
    fn value(&self) -> Option<&V> {
        match self {
            Self::None => None,
            Self::One(_, value) => Some(value),
            Self::More(claims) => claims.first().map(|(_, value)| value),
        }
    }
}

impl<O, K, V> Default for SharedElements<O, K, V> {
    fn default() -> Self {
        Self {
            claims: Map::default(),
            before: Vec::new(),
        }
    }
}

/// An element's previous and new value: `None` if it does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed<K, V> {
    pub(crate) key: K,
    pub(crate) before: Option<V>,
    pub(crate) after: Option<V>,
}

impl<O: Ord + Clone, K: Hash + Eq + Clone, V: PartialEq + Clone> SharedElements<O, K, V> {
    /// Requests an element. A repeated request changes the value.
    pub(crate) fn acquire(&mut self, owner: O, key: K, value: V) {
        let claimed = match self.claims.entry(key) {
            Entry::Vacant(room) => {
                self.before.push((room.index(), None));
                room.insert(Slot {
                    claimed: Claimed::One(owner, value),
                    is_recorded: true,
                });
                return;
            }
            Entry::Occupied(there) => {
                let place = there.index();
                let slot = there.into_mut();
                slot.note(place, &mut self.before);
                &mut slot.claimed
            }
        };
        match claimed {
            Claimed::None => *claimed = Claimed::One(owner, value),
            Claimed::One(of, old) if *of == owner => *old = value,
            Claimed::One(of, old) => {
                let mut both = vec![(of.clone(), old.clone()), (owner, value)];
                both.sort_by(|a, b| a.0.cmp(&b.0));
                *claimed = Claimed::More(both);
            }
            Claimed::More(claims) => match claims.binary_search_by(|c| c.0.cmp(&owner)) {
                Ok(place) => claims[place].1 = value,
                Err(place) => claims.insert(place, (owner, value)),
            },
        }
    }

    /// Withdraws a request for an element.
    pub(crate) fn release(&mut self, owner: &O, key: &K) {
        let Some((place, _, slot)) = self.claims.get_full_mut(key) else {
            return;
        };
        slot.note(place, &mut self.before);
        let there = &mut slot.claimed;
        match there {
            Claimed::One(of, _) if of == owner => *there = Claimed::None,
            Claimed::None | Claimed::One(..) => {}
            Claimed::More(claims) => {
                claims.retain(|(of, _)| of != owner);
                if let [(of, value)] = &claims[..] {
                    *there = Claimed::One(of.clone(), value.clone());
                }
            }
        }
    }

    /// All elements.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let claims = self.claims.iter();
        claims.filter_map(|(key, slot)| Some((key, slot.claimed.value()?)))
    }

    /// Returns the elements that changed since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<Changed<K, V>> {
        let mut changed = Vec::with_capacity(self.before.len());
        let mut gone = Vec::new();
        for (place, before) in self.before.drain(..) {
            let Some((key, slot)) = self.claims.get_index_mut(place) else {
                continue; // never: it exists until this call
            };
            slot.is_recorded = false;
            let (key, after) = (key.clone(), slot.claimed.value().cloned());
            if after.is_none() {
                gone.push(key.clone());
            }
            if before != after {
                changed.push(Changed { key, before, after });
            }
        }
        for key in &gone {
            self.claims.swap_remove(key);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gets_it_and_then_the_next() {
        let mut claims = SharedElements::default();
        let changed = |key, before, after| [Changed { key, before, after }];
        claims.acquire("b", 80, 'b');
        assert_eq!(claims.take_changed(), changed(80, None, Some('b')));
        claims.acquire("a", 80, 'a');
        claims.acquire("c", 80, 'c');
        assert_eq!(claims.take_changed(), changed(80, Some('b'), Some('a')));
        claims.release(&"b", &80);
        assert_eq!(claims.take_changed(), []);
        claims.release(&"a", &80);
        assert_eq!(claims.take_changed(), changed(80, Some('a'), Some('c')));
        // A release followed by the same request is no change.
        claims.release(&"c", &80);
        claims.acquire("c", 80, 'c');
        assert_eq!(claims.take_changed(), []);
        claims.release(&"d", &80);
        claims.release(&"c", &80);
        assert_eq!(claims.take_changed(), changed(80, Some('c'), None));
        assert_eq!(claims.iter().count(), 0);
    }
}
