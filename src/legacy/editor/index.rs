//! Index of chains by name.

use std::hash::{BuildHasher, Hasher, RandomState};

use hashbrown::HashTable;

/// A hash table of chain numbers. It does not store the names: the caller maps each number to its name.
#[derive(Clone, Debug, Default)]
pub(super) struct NameIndex {
    hasher: RandomState,
    numbers: HashTable<u32>,
}

fn hash(hasher: &RandomState, name: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(name);
    hasher.finish()
}

impl NameIndex {
    /// Creates an empty index with this capacity.
    pub(super) fn with_capacity(chains: usize) -> Self {
        Self {
            hasher: RandomState::new(),
            numbers: HashTable::with_capacity(chains),
        }
    }

    /// Finds the chain with that name; if there are several, the one with the lowest number.
    pub(super) fn find<'n>(&self, name: &[u8], name_of: impl Fn(u32) -> &'n [u8]) -> Option<u32> {
        let numbers = self.numbers.iter_hash(hash(&self.hasher, name)).copied();
        numbers.filter(|&number| name_of(number) == name).min()
    }

    /// Removes the chain with that name and number.
    pub(super) fn remove(&mut self, number: u32, name: &[u8]) {
        let hash = hash(&self.hasher, name);
        if let Ok(entry) = self.numbers.find_entry(hash, |&other| other == number) {
            entry.remove();
        }
    }

    /// Inserts a chain.
    pub(super) fn insert<'n>(&mut self, number: u32, name_of: impl Fn(u32) -> &'n [u8]) {
        let hash_of = |number: &u32| hash(&self.hasher, name_of(*number));
        self.numbers
            .insert_unique(hash_of(&number), number, hash_of);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_inserted_names_until_removed() {
        let names: Vec<String> = (0..2000).map(|n| format!("chain{n}")).collect();
        let name_of = |number: u32| names[number as usize].as_bytes();
        let mut index = NameIndex::with_capacity(500);
        for number in 0..2000 {
            assert_eq!(index.find(name_of(number), name_of), None);
            index.insert(number, name_of);
            assert_eq!(index.find(name_of(number), name_of), Some(number));
        }
        for number in (0..2000).step_by(3) {
            index.remove(number, name_of(number));
        }
        for number in 0..2000 {
            let found = index.find(name_of(number), name_of);
            assert_eq!(found, (number % 3 != 0).then_some(number));
        }
    }

    /// A table that was read may have several chains of one name.
    #[test]
    fn finds_the_first_of_duplicate_names() {
        let mut index = NameIndex::default();
        for number in (0..100).rev() {
            index.insert(number, |_| b"same");
        }
        for number in 0..100 {
            assert_eq!(index.find(b"same", |_| b"same"), Some(number));
            index.remove(number, b"same");
        }
        assert_eq!(index.find(b"same", |_| b"same"), None);
    }
}
