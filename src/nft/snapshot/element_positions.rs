//! Finds the elements of a set in a snapshot by their keys.

use std::hash::{BuildHasher, RandomState};

use super::SnapshotSet;
use crate::arena::{Arena, Position};
use crate::netlink::{Attribute, Attributes, Message};
use crate::nft::element::ElementKey;

/// The positions of the elements of an unchanging set. It takes 8 bytes per element.
#[derive(Debug)]
pub(in crate::nft) struct ElementPositions {
    /// The hash of each key and the position of the element, sorted by hash.
    positions: Vec<(u32, Position)>,
    hash: RandomState,
}

impl ElementPositions {
    /// Indexes a set; `None` if a key appears twice, which only files can contain.
    pub(super) fn of(set: &SnapshotSet<'_>) -> Option<Self> {
        let arena = &set.snapshot.arena;
        let hash = RandomState::new();
        let mut positions = Vec::new();
        for (&at, list) in set.index.elements.iter().zip(set.lists()) {
            let message = set.snapshot.message(at);
            for element in list.map_while(Result::ok) {
                let key = ElementKey::of(element.payload).ok()?;
                positions.push((
                    hash.hash_one(key) as u32,
                    element_position(at, &message, &element),
                ));
            }
        }
        positions.shrink_to_fit();
        positions.sort_unstable_by_key(|&(hash, _)| hash);
        let positions = Self { positions, hash };
        positions.are_distinct(arena)?.then_some(positions)
    }

    /// Returns whether all keys are distinct.
    fn are_distinct(&self, arena: &Arena) -> Option<bool> {
        for same in self.positions.chunk_by(|one, other| one.0 == other.0) {
            if same.len() == 1 {
                continue; // the usual case
            }
            for (number, &(_, one)) in same.iter().enumerate() {
                let key = ElementKey::of(element_at(arena, one)?.payload).ok()?;
                for &(_, other) in &same[..number] {
                    if ElementKey::of(element_at(arena, other)?.payload).ok()? == key {
                        return Some(false);
                    }
                }
            }
        }
        Some(true)
    }

    /// Returns the element of that set with this key.
    pub(super) fn find<'s>(
        &self,
        set: &SnapshotSet<'s>,
        key: ElementKey<&[u8]>,
    ) -> Option<Attribute<'s>> {
        let hash = self.hash.hash_one(key) as u32;
        let first = self.positions.partition_point(|&(other, _)| other < hash);
        let same = self.positions[first..].iter();
        let mut same = same
            .take_while(|&&(other, _)| other == hash)
            .filter_map(|&(_, at)| element_at(&set.snapshot.arena, at));
        same.find(|element| ElementKey::of(element.payload) == Ok(key))
    }
}

/// Returns the position of an element of the message at this position.
fn element_position(at: Position, message: &Message<'_>, element: &Attribute<'_>) -> Position {
    at.plus(element.raw.as_ptr().addr() - message.raw.as_ptr().addr())
}

fn element_at(arena: &Arena, at: Position) -> Option<Attribute<'_>> {
    Attributes::new(arena.bytes(at)).next()?.ok()
}
