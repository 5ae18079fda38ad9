//! Memory for many pieces of bytes, such as the messages of a snapshot or the new entries of a table, in
//! segments that never move.
//!
//! The first segments are small, so that a small ruleset uses little memory; later ones are large, in
//! huge pages.

use crate::memory::Memory;
use crate::netlink::{Malformed, Message};

/// Distance between the positions of segments, and the largest segment, in bytes. A piece never
/// crosses a segment boundary.
const STRIDE: usize = 4 << 20;
/// Length of the first segments.
const FIRST_SEGMENT_LENGTHS: [usize; 2] = [64 << 10, 256 << 10];
/// The unit of positions, in bytes.
const UNIT: usize = 4;
/// The most segments that positions can address: 16 GiB.
const MAX_SEGMENTS: usize = u32::MAX as usize / (STRIDE / UNIT) + 1;

/// Start of a piece, in units of four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position(u32);

/// Consecutive pieces of bytes, in insertion order.
#[derive(Debug, Default, Clone)]
pub(crate) struct Arena {
    segments: Vec<Memory>,
    /// Index of the segment being filled; later ones are left over from before the arena was cleared.
    current: usize,
    /// Bytes in use in all segments before the current one.
    before: usize,
    /// Bytes in use in the current segment.
    used: usize,
}

/// The arena is full: it holds 16 GiB, in pieces of at most 4 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Arena {
    /// Returns `length` bytes for the caller to fill and then [take](Self::take).
    pub(crate) fn space(&mut self, length: usize) -> Result<&mut [u8], Full> {
        let current = self.segments.get(self.current).map_or(0, |it| it.len());
        if length > current - self.used {
            if length > STRIDE {
                return Err(Full);
            }
            // The first segment has no predecessor.
            let mut next = self.current + usize::from(!self.segments.is_empty());
            while self.segments.get(next).is_some_and(|it| it.len() < length) {
                next += 1;
            }
            if next >= MAX_SEGMENTS {
                return Err(Full);
            }
            if next == self.segments.len() {
                let regular_length = FIRST_SEGMENT_LENGTHS.get(next).copied().unwrap_or(STRIDE);
                let length = if regular_length < length {
                    STRIDE
                } else {
                    regular_length
                };
                self.segments.push(Memory::zeroed(length));
            }
            self.before += self.used;
            (self.current, self.used) = (next, 0);
        }
        let segment = self.segments.get_mut(self.current).ok_or(Full)?;
        Ok(&mut segment[self.used..self.used + length])
    }

    /// Appends a copy of a piece.
    pub(crate) fn put(&mut self, piece: &[u8]) -> Result<Position, Full> {
        let padded = piece.len().next_multiple_of(UNIT);
        let space = self.space(padded)?;
        space[..piece.len()].copy_from_slice(piece);
        space[piece.len()..].fill(0);
        Ok(self.take(padded))
    }

    /// Removes all pieces and keeps the memory.
    pub(crate) fn clear(&mut self) {
        (self.current, self.before, self.used) = (0, 0, 0);
    }

    /// Takes the first `length` bytes of the last [space](Self::space), and returns their start.
    pub(crate) fn take(&mut self, length: usize) -> Position {
        let start = self.current * STRIDE + self.used;
        self.used += length.next_multiple_of(UNIT);
        Position((start / UNIT) as u32)
    }

    /// Gives the end of the space that was taken last, from this position on, back to the arena.
    pub(crate) fn return_space(&mut self, Position(start): Position) {
        let at = start as usize * UNIT;
        if at / STRIDE == self.current {
            self.used = self.used.min(at % STRIDE);
        }
    }

    /// Returns the number of bytes in use.
    pub(crate) fn len(&self) -> usize {
        self.before + self.used
    }

    /// Returns the number of bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        // Untouched parts of the last segment use no memory, except for the rest of a huge page.
        let lengths = self.segments.iter().map(|segment| segment.len());
        let untouched = match self.segments.last() {
            Some(last) if self.current + 1 == self.segments.len() => {
                last.len() - self.used.next_multiple_of(2 << 20).min(last.len())
            }
            _ => 0,
        };
        lengths.sum::<usize>() - untouched
    }

    /// Returns the bytes from a position to the end of its segment.
    #[inline]
    pub(crate) fn bytes(&self, Position(at): Position) -> &[u8] {
        let at = at as usize * UNIT;
        self.segments
            .get(at / STRIDE)
            .and_then(|segment| segment.get(at % STRIDE..))
            .unwrap_or_default()
    }

    /// Returns the message at a position.
    #[inline]
    pub(crate) fn message(&self, at: Position) -> Result<Message<'_>, Malformed> {
        Message::first(self.bytes(at))
    }
}

impl Position {
    /// Returns the position `bytes` further on.
    #[inline]
    pub(crate) const fn plus(self, bytes: usize) -> Self {
        Self(self.0 + (bytes / UNIT) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::MessageWriter;

    fn message(sequence: u32, length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = MessageWriter::new(&mut bytes, 0xa03, 0, sequence);
        writer.encoded(&vec![sequence as u8; length]);
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn message_addresses_are_stable() {
        let mut arena = Arena::default();
        let messages: Vec<_> = (0..400)
            .map(|n| message(n, (n as usize * 331) % 60_000 / 4 * 4))
            .collect();
        let positions: Vec<_> = messages.iter().map(|m| arena.put(m).unwrap()).collect();
        assert!(arena.segments.len() > 4);
        for arena in [arena.clone(), arena] {
            for (message, &at) in messages.iter().zip(&positions) {
                assert_eq!(arena.message(at).unwrap().raw, message);
            }
            let length: usize = messages.iter().map(Vec::len).sum();
            assert_eq!(arena.len(), length);
            assert!((length..length + (6 << 20)).contains(&arena.memory()));
        }
    }

    #[test]
    fn cleared_memory_is_reused() {
        let mut arena = Arena::default();
        let messages: Vec<_> = (0..300).map(|n| message(n, 40_000)).collect();
        for round in 0..3 {
            arena.clear();
            let count = 300 - 100 * round;
            let positions: Vec<_> = messages[..count]
                .iter()
                .map(|m| arena.put(m).unwrap())
                .collect();
            for (message, at) in messages.iter().zip(positions) {
                assert_eq!(arena.message(at).unwrap().raw, message);
            }
            assert_eq!(arena.len(), count * messages[0].len());
            assert_eq!(arena.segments.len(), 5);
        }
        // A message that is too long for the first segments comes after them.
        arena.clear();
        let large = arena.put(&message(7, 1 << 20)).unwrap();
        assert_eq!(arena.message(large).unwrap().sequence, 7);
    }

    #[test]
    fn rejects_a_message_larger_than_a_segment() {
        let mut arena = Arena::default();
        assert!(arena.space(STRIDE + 4).is_err());
        arena.put(&message(1, 8)).unwrap();
        arena.put(&message(2, STRIDE - 16)).unwrap();
        let last = arena.put(&message(3, 8)).unwrap();
        assert_eq!(arena.message(last).unwrap().sequence, 3);
        assert_eq!(arena.segments.len(), 3);
    }

    #[test]
    fn a_datagram_is_received_in_place() {
        let mut arena = Arena::default();
        let (one, two) = (message(1, 8), message(2, 4));
        let datagram = [&one[..], &two].concat();
        arena.space(32 * 1024).unwrap()[..datagram.len()].copy_from_slice(&datagram);
        let at = arena.take(datagram.len());
        assert_eq!(arena.message(at).unwrap().raw, one);
        assert_eq!(arena.message(at.plus(one.len())).unwrap().raw, two);
        assert!(arena.message(at.plus(64 << 20)).is_err());
        assert_eq!(arena.len(), datagram.len());
        arena.return_space(at);
        assert_eq!(arena.len(), 0);
    }
}
