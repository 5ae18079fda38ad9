//! Elements that several services may ask for: one external address and port of two services, one endpoint of ten.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

/// Who asks for which elements, and with what value. Of several that ask for one the first in their order gets it;
/// when that one goes, the next does.
#[derive(Debug, Clone)]
pub(crate) struct Claims<O, K, V> {
    claims: HashMap<K, Claimed<O, V>>,
    /// What the elements were that may have changed since the last look.
    before: HashMap<K, Option<V>>,
}

/// Nearly always there is one.
#[derive(Debug, Clone)]
enum Claimed<O, V> {
    One(O, V),
    /// In the order of who asks. More than one.
    More(Vec<(O, V)>),
}

impl<O, V> Claimed<O, V> {
    fn value(&self) -> &V {
        match self {
            Self::One(_, value) => value,
            Self::More(claims) => &claims[0].1,
        }
    }
}

impl<O, K, V> Default for Claims<O, K, V> {
    fn default() -> Self {
        Self {
            claims: HashMap::new(),
            before: HashMap::new(),
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

impl<O: Ord + Clone, K: Hash + Eq + Clone, V: PartialEq + Clone> Claims<O, K, V> {
    /// Asks for an element. Who asks again changes the value.
    pub(crate) fn claim(&mut self, owner: O, key: K, value: V) {
        self.remember(&key);
        match self.claims.entry(key) {
            Entry::Vacant(room) => {
                room.insert(Claimed::One(owner, value));
            }
            Entry::Occupied(mut there) => match there.get_mut() {
                Claimed::One(of, old) if *of == owner => *old = value,
                Claimed::One(of, old) => {
                    let mut both = vec![(of.clone(), old.clone()), (owner, value)];
                    both.sort_by(|a, b| a.0.cmp(&b.0));
                    *there.get_mut() = Claimed::More(both);
                }
                Claimed::More(claims) => match claims.binary_search_by(|c| c.0.cmp(&owner)) {
                    Ok(place) => claims[place].1 = value,
                    Err(place) => claims.insert(place, (owner, value)),
                },
            },
        }
    }

    /// Asks for an element no longer.
    pub(crate) fn release(&mut self, owner: &O, key: &K) {
        self.remember(key);
        let Some(there) = self.claims.get_mut(key) else {
            return;
        };
        match there {
            Claimed::One(of, _) if of == owner => {
                self.claims.remove(key);
            }
            Claimed::One(..) => {}
            Claimed::More(claims) => {
                claims.retain(|(of, _)| of != owner);
                if let [(of, value)] = &claims[..] {
                    *there = Claimed::One(of.clone(), value.clone());
                }
            }
        }
    }

    fn remember(&mut self, key: &K) {
        if !self.before.contains_key(key) {
            let value = self.claims.get(key).map(|claimed| claimed.value().clone());
            self.before.insert(key.clone(), value);
        }
    }

    /// All elements.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let claims = self.claims.iter();
        claims.map(|(key, claimed)| (key, claimed.value()))
    }

    /// What came to be another since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<Changed<K, V>> {
        let mut changed = Vec::new();
        for (key, before) in self.before.drain() {
            let after = self.claims.get(&key).map(|claimed| claimed.value().clone());
            if before != after {
                changed.push(Changed { key, before, after });
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gets_it_and_then_the_next() {
        let mut claims = Claims::default();
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
