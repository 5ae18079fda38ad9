//! Elements that several services may ask for: one external address and port of two services, one endpoint of ten.

use std::hash::Hash;

use indexmap::map::Entry;

use crate::service::map::Map;

/// Who asks for which elements, and with what value. Of several that ask for one the first in their order gets it;
/// when that one goes, the next does.
#[derive(Debug, Clone)]
pub(crate) struct SharedElements<O, K, V> {
    claims: Map<K, Slot<O, V>>,
    /// What the elements were that may have changed since the last look, each once, by where they are: none goes before
    /// that.
    before: Vec<(usize, Option<V>)>,
}

#[derive(Debug, Clone)]
struct Slot<O, V> {
    claimed: Claimed<O, V>,
    /// Whether what it was is noted.
    is_noted: bool,
}

/// Nearly always there is one.
#[derive(Debug, Clone)]
enum Claimed<O, V> {
    /// Until the next look.
    None,
    One(O, V),
    /// In the order of who asks. More than one.
    More(Vec<(O, V)>),
}

impl<O, V: Clone> Slot<O, V> {
    /// Notes what it is, the first time.
    fn note(&mut self, place: usize, before: &mut Vec<(usize, Option<V>)>) {
        if !self.is_noted {
            before.push((place, self.claimed.value().cloned()));
            self.is_noted = true;
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

/// What an element was and what it is: `None` where it is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed<K, V> {
    pub(crate) key: K,
    pub(crate) before: Option<V>,
    pub(crate) after: Option<V>,
}

impl<O: Ord + Clone, K: Hash + Eq + Clone, V: PartialEq + Clone> SharedElements<O, K, V> {
    /// Asks for an element. Who asks again changes the value.
    pub(crate) fn claim(&mut self, owner: O, key: K, value: V) {
        let claimed = match self.claims.entry(key) {
            Entry::Vacant(room) => {
                self.before.push((room.index(), None));
                room.insert(Slot {
                    claimed: Claimed::One(owner, value),
                    is_noted: true,
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

    /// Asks for an element no longer.
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

    /// What came to be another since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<Changed<K, V>> {
        let mut changed = Vec::with_capacity(self.before.len());
        let mut gone = Vec::new();
        for (place, before) in self.before.drain(..) {
            let Some((key, slot)) = self.claims.get_index_mut(place) else {
                continue; // never: it is there until this look
            };
            slot.is_noted = false;
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
        claims.claim("b", 80, 'b');
        assert_eq!(claims.take_changed(), changed(80, None, Some('b')));
        claims.claim("a", 80, 'a');
        claims.claim("c", 80, 'c');
        assert_eq!(claims.take_changed(), changed(80, Some('b'), Some('a')));
        claims.release(&"b", &80);
        assert_eq!(claims.take_changed(), []);
        claims.release(&"a", &80);
        assert_eq!(claims.take_changed(), changed(80, Some('a'), Some('c')));
        // Released and asked for again is no change.
        claims.release(&"c", &80);
        claims.claim("c", 80, 'c');
        assert_eq!(claims.take_changed(), []);
        claims.release(&"d", &80);
        claims.release(&"c", &80);
        assert_eq!(claims.take_changed(), changed(80, Some('c'), None));
        assert_eq!(claims.iter().count(), 0);
    }
}
