//! Which chain has a name.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A hash table of chains' numbers: open addressing, linear probing. The names stay where they are;
/// whoever asks compares them.
#[derive(Clone, Debug)]
pub(super) struct NameIndex {
    hasher: RandomState,
    /// Number of places: a power of two, more than half of them free.
    places: Vec<u32>,
    /// Places that are not free, removed ones included.
    used: usize,
}

const FREE: u32 = u32::MAX;
const REMOVED: u32 = u32::MAX - 1;

/// One more than the largest number that can be in an index.
pub(super) const END: u32 = REMOVED;

impl NameIndex {
    /// An index with these; of two with the same name the first is found.
    pub(super) fn new<'n>(names: impl ExactSizeIterator<Item = (u32, &'n [u8])>) -> Self {
        // At most a third is used at first, so that it takes a while until a new one is needed.
        let size = names.len().saturating_mul(3).saturating_add(16);
        let size = size.next_power_of_two();
        let mut index = Self {
            hasher: RandomState::new(),
            places: vec![FREE; size],
            used: 0,
        };
        for (number, name) in names {
            if number < END {
                index.put(number, name);
            }
        }
        index
    }

    fn start(&self, name: &[u8]) -> usize {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(name);
        // Truncated to the size of the table anyway.
        hasher.finish() as usize & (self.places.len() - 1)
    }

    fn put(&mut self, number: u32, name: &[u8]) {
        let mask = self.places.len() - 1;
        let mut place = self.start(name);
        while self.places[place] != FREE {
            place = (place + 1) & mask;
        }
        self.places[place] = number;
        self.used += 1;
    }

    /// The place of the one for which `is` says yes.
    fn place(&self, name: &[u8], is: impl Fn(u32) -> bool) -> Option<usize> {
        let mask = self.places.len() - 1;
        let mut place = self.start(name);
        loop {
            match self.places[place] {
                FREE => return None,
                REMOVED => {}
                number if is(number) => return Some(place),
                _ => {}
            }
            place = (place + 1) & mask;
        }
    }

    /// The number of the one with that name; `is` compares.
    pub(super) fn find(&self, name: &[u8], is: impl Fn(u32) -> bool) -> Option<u32> {
        self.place(name, is).map(|place| self.places[place])
    }

    /// Takes out the one with that name and number.
    pub(super) fn remove(&mut self, number: u32, name: &[u8]) {
        if let Some(place) = self.place(name, |other| other == number) {
            self.places[place] = REMOVED;
        }
    }

    /// Puts in one more. `false` if there is no room: then a new index is needed.
    pub(super) fn insert(&mut self, number: u32, name: &[u8]) -> bool {
        if (self.used + 1) * 2 > self.places.len() || number >= END {
            return false;
        }
        self.put(number, name);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_as_long_as_they_are_in() {
        let names: Vec<String> = (0..2000).map(|n| format!("chain{n}")).collect();
        let is = |name: &str| {
            let name = name.to_owned();
            let names = &names;
            move |n: u32| names[n as usize] == name
        };
        let (first, later) = names.split_at(500);
        let mut index = NameIndex::new(
            (0..)
                .zip(first)
                .map(|(n, name)| (n, name.as_bytes()))
                .collect::<Vec<_>>()
                .into_iter(),
        );
        assert_eq!(index.find(b"chain7", is("chain7")), Some(7));
        assert_eq!(index.find(b"chain500", is("chain500")), None);
        index.remove(7, b"chain7");
        assert_eq!(index.find(b"chain7", is("chain7")), None);
        let mut put = 0;
        for (n, name) in (500..).zip(later) {
            if !index.insert(n, name.as_bytes()) {
                break;
            }
            put += 1;
            assert_eq!(index.find(name.as_bytes(), is(name)), Some(n));
        }
        // It fills up to one half, and says so.
        assert_eq!(put, 1024 - 500);
        for (n, name) in (0..500).zip(first) {
            let found = index.find(name.as_bytes(), is(name));
            assert_eq!(found, (n != 7).then_some(n));
        }
    }
}
