//! The elements of a set that changes: maps each element to its message.
//!
//! A listing has hundreds of elements in a message. When one of them is removed, its message is split once into pieces
//! of a few elements; later changes rewrite only a piece. Added elements stay in the message of their event.

use std::hash::{BuildHasher, RandomState};

use chainwright_sys::nf_tables::NFTA_SET_ELEM_LIST_ELEMENTS;

use super::index::ByHash;
use crate::arena::{Arena, Position};
use crate::netlink::{Attribute, Attributes, Malformed, Message, MessageWriter};
use crate::nft::element::ElementKey;

/// Maximum number of elements of a piece.
const PIECE: usize = 16;

type Key<'a> = ElementKey<&'a [u8]>;

/// Maps a set's elements to their messages.
#[derive(Debug, Clone)]
pub(super) struct Pieces {
    /// Hash of an element's key → index of a message.
    holders: ByHash,
    /// Whether two keys had the same hash: then only one of them is in the map.
    collided: bool,
    hash: RandomState,
}

impl Pieces {
    /// Indexes the elements of these messages.
    pub(super) fn of(messages: &[Position], arena: &Arena) -> Result<Self, Malformed> {
        let mut pieces = Self {
            holders: ByHash::default(),
            collided: false,
            hash: RandomState::new(),
        };
        for number in 0..messages.len() {
            pieces.collided |= pieces.note(messages, arena, number)?;
        }
        Ok(pieces)
    }

    /// Returns the memory use in bytes.
    pub(super) fn memory(&self) -> usize {
        self.holders.capacity() * (size_of::<(u64, u32)>() + 1)
    }

    /// Indexes the elements of a message; returns whether one of their hashes was already present.
    fn note(
        &mut self,
        messages: &[Position],
        arena: &Arena,
        number: usize,
    ) -> Result<bool, Malformed> {
        let mut had_holder = false;
        for element in elements(&arena.message(messages[number])?)? {
            let hash = self.hash.hash_one(key_of(&element)?);
            had_holder |= self.holders.insert(hash, number as u32).is_some();
        }
        Ok(had_holder)
    }

    /// Adds the elements of the message at this position, replacing those with the same keys. Returns the number of
    /// unused bytes.
    pub(super) fn add(
        &mut self,
        messages: &mut Vec<Position>,
        arena: &mut Arena,
        at: Position,
    ) -> Result<usize, Malformed> {
        let message = arena.message(at)?.raw.to_vec();
        let dead = self.remove_all(messages, arena, &message)?;
        messages.push(at);
        self.collided |= self.note(messages, arena, messages.len() - 1)?;
        Ok(dead)
    }

    /// Removes the elements that this message names. Returns the number of unused bytes.
    pub(super) fn remove_all(
        &mut self,
        messages: &mut Vec<Position>,
        arena: &mut Arena,
        message: &[u8],
    ) -> Result<usize, Malformed> {
        let mut dead = 0;
        for element in elements(&Message::first(message)?)? {
            dead += self.remove(messages, arena, key_of(&element)?)?;
        }
        Ok(dead)
    }

    fn remove(
        &mut self,
        messages: &mut Vec<Position>,
        arena: &mut Arena,
        key: Key<'_>,
    ) -> Result<usize, Malformed> {
        let hash = self.hash.hash_one(key);
        let Some(number) = self.holder(messages, arena, hash, key)? else {
            return Ok(0);
        };
        self.holders.remove(&hash);
        let message = arena.message(messages[number])?;
        let dead = message.padded_length();
        let mut rest = elements(&message)?;
        let mut removed = false;
        let mut broken = Ok(());
        rest.retain(|element| match key_of(element) {
            Ok(other) if !removed && other == key => {
                removed = true;
                false
            }
            Ok(_) => true,
            Err(malformed) => {
                broken = Err(malformed);
                true
            }
        });
        broken?;
        let pieces: Result<Vec<_>, _> =
            rest.chunks(PIECE).map(|few| piece(&message, few)).collect();
        let pieces = pieces?;
        let mut pieces = pieces.iter();
        match pieces.next() {
            Some(first) => messages[number] = arena.put(first)?,
            None => {
                messages.swap_remove(number);
                // The last message now has this index.
                if number < messages.len() {
                    self.note(messages, arena, number)?;
                }
            }
        }
        for bytes in pieces {
            messages.push(arena.put(bytes)?);
            self.note(messages, arena, messages.len() - 1)?;
        }
        Ok(dead)
    }

    /// Returns the index of the message with an element.
    fn holder(
        &self,
        messages: &[Position],
        arena: &Arena,
        hash: u64,
        key: Key<'_>,
    ) -> Result<Option<usize>, Malformed> {
        let holds = |number| held(messages, arena, number, key).map(|held| held.is_some());
        if let Some(&number) = self.holders.get(&hash)
            && holds(number as usize)?
        {
            return Ok(Some(number as usize));
        }
        if self.collided {
            for number in 0..messages.len() {
                if holds(number)? {
                    return Ok(Some(number));
                }
            }
        }
        Ok(None)
    }

    /// Returns the element with this key.
    pub(super) fn find<'a>(
        &self,
        messages: &[Position],
        arena: &'a Arena,
        key: Key<'_>,
    ) -> Result<Option<Attribute<'a>>, Malformed> {
        let hash = self.hash.hash_one(key);
        match self.holder(messages, arena, hash, key)? {
            Some(number) => held(messages, arena, number, key),
            None => Ok(None),
        }
    }

    /// Returns the number of elements; `None` if it is unknown.
    pub(super) fn count(&self) -> Option<usize> {
        (!self.collided).then_some(self.holders.len())
    }
}

/// Returns the element with this key, if the message at this index contains it.
fn held<'a>(
    messages: &[Position],
    arena: &'a Arena,
    number: usize,
    key: Key<'_>,
) -> Result<Option<Attribute<'a>>, Malformed> {
    let Some(&at) = messages.get(number) else {
        return Ok(None);
    };
    for element in elements(&arena.message(at)?)? {
        if key_of(&element)? == key {
            return Ok(Some(element));
        }
    }
    Ok(None)
}

/// Returns the elements of a message.
fn elements<'a>(message: &Message<'a>) -> Result<Vec<Attribute<'a>>, Malformed> {
    let list = message.attributes()?.find(NFTA_SET_ELEM_LIST_ELEMENTS);
    Attributes::new(list.unwrap_or_default()).collect()
}

fn key_of<'a>(element: &Attribute<'a>) -> Result<Key<'a>, Malformed> {
    ElementKey::of(element.payload)
}

/// Builds a message like the given one, with these elements.
fn piece(message: &Message<'_>, elements: &[Attribute<'_>]) -> Result<Vec<u8>, Malformed> {
    let mut bytes = Vec::with_capacity(message.raw.len());
    let (header, attributes) = message.nfgenmsg()?;
    let mut writer = MessageWriter::nfnetlink(&mut bytes, message.kind, message.flags, 0, header);
    for attribute in Attributes::new(attributes).map_while(Result::ok) {
        match attribute.kind {
            NFTA_SET_ELEM_LIST_ELEMENTS => {
                _ = writer.nested(attribute.kind, |writer| {
                    for element in elements {
                        writer.encoded(element.raw);
                    }
                })
            }
            _ => _ = writer.encoded(attribute.raw),
        }
    }
    writer.finish().map_err(|_| Malformed {
        what: "elements",
        offset: 0,
        reason: "a part is longer than the whole",
    })?;
    Ok(bytes)
}

/// Joins the elements of all these messages into messages of at most about this many bytes.
pub(super) fn joined(
    messages: &[Position],
    from: &Arena,
    to: &mut Arena,
    length: usize,
) -> Result<Vec<Position>, Malformed> {
    let mut joined = Vec::new();
    let Some(&first) = messages.first() else {
        return Ok(joined);
    };
    let first = from.message(first)?;
    let (mut list, mut bytes) = (Vec::new(), 0);
    for &at in messages {
        for element in elements(&from.message(at)?)? {
            if bytes + element.raw.len() > length && !list.is_empty() {
                joined.push(to.put(&piece(&first, &list)?)?);
                list.clear();
                bytes = 0;
            }
            bytes += element.raw.len();
            list.push(element);
        }
    }
    if !list.is_empty() {
        joined.push(to.put(&piece(&first, &list)?)?);
    }
    Ok(joined)
}
