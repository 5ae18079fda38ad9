//! Elements that several services may request: one external address and port of two services, one endpoint of ten.

use std::hash::Hash;

use indexmap::map::Entry;

use crate::service::map::Map;

/// Tracks which owners request which elements, and with what value. If several request one element, the first in their
/// order gets it; when that owner releases it, the next one gets it.
#[derive(Debug, Clone)]
pub(crate) struct SharedElements<O, K, V> {
    requests: Map<K, Slot<O, V>>,
    /// The previous values of elements that may have changed since the last `take_changed`, each once, by index: no
    /// element is removed before that call.
    before: Vec<(usize, Option<V>)>,
}

#[derive(Debug, Clone)]
struct Slot<O, V> {
    requesters: Requesters<O, V>,
    /// Whether the previous value is recorded.
    is_recorded: bool,
}

/// Nearly always one owner.
#[derive(Debug, Clone)]
enum Requesters<O, V> {
    /// Until the next `take_changed`.
    None,
    One(O, V),
    /// In the order of owners. More than one.
    More(Vec<(O, V)>),
}

impl<O, V: Clone> Slot<O, V> {
    /// Records the current value, the first time.
    fn record_previous(&mut self, index: usize, before: &mut Vec<(usize, Option<V>)>) {
        if !self.is_recorded {
            before.push((index, self.requesters.value().cloned()));
            self.is_recorded = true;
        }
    }
}

impl<O, V> Requesters<O, V> {
    fn value(&self) -> Option<&V> {
        match self {
            Self::None => None,
            Self::One(_, value) => Some(value),
            Self::More(requests) => requests.first().map(|(_, value)| value),
        }
    }
}

impl<O, K, V> Default for SharedElements<O, K, V> {
    fn default() -> Self {
        Self {
            requests: Map::default(),
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
        let requesters = match self.requests.entry(key) {
            Entry::Vacant(vacant) => {
                self.before.push((vacant.index(), None));
                vacant.insert(Slot {
                    requesters: Requesters::One(owner, value),
                    is_recorded: true,
                });
                return;
            }
            Entry::Occupied(existing) => {
                let index = existing.index();
                let slot = existing.into_mut();
                slot.record_previous(index, &mut self.before);
                &mut slot.requesters
            }
        };
        match requesters {
            Requesters::None => *requesters = Requesters::One(owner, value),
            Requesters::One(of, old) if *of == owner => *old = value,
            Requesters::One(of, old) => {
                let mut both = vec![(of.clone(), old.clone()), (owner, value)];
                both.sort_by(|a, b| a.0.cmp(&b.0));
                *requesters = Requesters::More(both);
            }
            Requesters::More(requests) => match requests.binary_search_by(|c| c.0.cmp(&owner)) {
                Ok(index) => requests[index].1 = value,
                Err(index) => requests.insert(index, (owner, value)),
            },
        }
    }

    /// Withdraws a request for an element.
    pub(crate) fn release(&mut self, owner: &O, key: &K) {
        let Some((index, _, slot)) = self.requests.get_full_mut(key) else {
            return;
        };
        slot.record_previous(index, &mut self.before);
        let existing = &mut slot.requesters;
        match existing {
            Requesters::One(of, _) if of == owner => *existing = Requesters::None,
            Requesters::None | Requesters::One(..) => {}
            Requesters::More(requests) => {
                requests.retain(|(of, _)| of != owner);
                if let [(of, value)] = &requests[..] {
                    *existing = Requesters::One(of.clone(), value.clone());
                }
            }
        }
    }

    /// Returns all elements.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let requests = self.requests.iter();
        requests.filter_map(|(key, slot)| Some((key, slot.requesters.value()?)))
    }

    /// Returns the elements that changed since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<Changed<K, V>> {
        let mut changed = Vec::with_capacity(self.before.len());
        let mut gone = Vec::new();
        for (index, before) in self.before.drain(..) {
            let Some((key, slot)) = self.requests.get_index_mut(index) else {
                continue; // never: it exists until this call
            };
            slot.is_recorded = false;
            let (key, after) = (key.clone(), slot.requesters.value().cloned());
            if after.is_none() {
                gone.push(key.clone());
            }
            if before != after {
                changed.push(Changed { key, before, after });
            }
        }
        for key in &gone {
            self.requests.swap_remove(key);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_owner_wins_then_the_next() {
        let mut requests = SharedElements::default();
        let changed = |key, before, after| [Changed { key, before, after }];
        requests.acquire("b", 80, 'b');
        assert_eq!(requests.take_changed(), changed(80, None, Some('b')));
        requests.acquire("a", 80, 'a');
        requests.acquire("c", 80, 'c');
        assert_eq!(requests.take_changed(), changed(80, Some('b'), Some('a')));
        requests.release(&"b", &80);
        assert_eq!(requests.take_changed(), []);
        requests.release(&"a", &80);
        assert_eq!(requests.take_changed(), changed(80, Some('a'), Some('c')));
        // A release followed by the same request is no change.
        requests.release(&"c", &80);
        requests.acquire("c", 80, 'c');
        assert_eq!(requests.take_changed(), []);
        requests.release(&"d", &80);
        requests.release(&"c", &80);
        assert_eq!(requests.take_changed(), changed(80, Some('c'), None));
        assert_eq!(requests.iter().count(), 0);
    }
}
