//! Zeroed memory for buffers of several megabytes.
//!
//! Large buffers request huge pages: faulting them in page by page takes longer than filling them.

use std::ops::{Deref, DerefMut};

use memmap2::{Advice, MmapMut};
use zerocopy::IntoBytes;

/// Buffers of at least this many bytes request huge pages (2 MiB each).
const HUGE_PAGE_THRESHOLD: usize = 4 << 20;

/// A fixed number of bytes, initially zero, aligned to at least 8.
pub(crate) struct Memory {
    length: usize,
    kind: Kind,
}

enum Kind {
    Heap(Vec<u64>),
    Mapped(MmapMut),
}

impl Memory {
    /// No bytes.
    #[cfg(feature = "iptables")]
    pub(crate) const EMPTY: Self = Self {
        length: 0,
        kind: Kind::Heap(Vec::new()),
    };

    /// Allocates `length` zero bytes. Untouched ones use no memory, except for the rest of a page.
    pub(crate) fn zeroed(length: usize) -> Self {
        if length >= HUGE_PAGE_THRESHOLD
            && let Ok(map) = MmapMut::map_anon(length)
        {
            // Without huge pages access is only slower.
            let _ = map.advise(Advice::HugePage);
            return Self {
                length,
                kind: Kind::Mapped(map),
            };
        }
        Self {
            length,
            kind: Kind::Heap(vec![0; length.div_ceil(size_of::<u64>())]),
        }
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.kind {
            Kind::Heap(words) => words.as_bytes().get(..self.length).unwrap_or_default(),
            Kind::Mapped(bytes) => bytes,
        }
    }
}

impl DerefMut for Memory {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.kind {
            Kind::Heap(words) => words
                .as_mut_bytes()
                .get_mut(..self.length)
                .unwrap_or_default(),
            Kind::Mapped(bytes) => bytes,
        }
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        let mut copy = Self::zeroed(self.length);
        copy.copy_from_slice(self);
        copy
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_any_length_zero_and_aligned() {
        for length in [
            0,
            1,
            8,
            4097,
            HUGE_PAGE_THRESHOLD - 1,
            HUGE_PAGE_THRESHOLD,
            HUGE_PAGE_THRESHOLD + 5,
        ] {
            let mut memory = Memory::zeroed(length);
            assert_eq!(memory.len(), length);
            assert!(memory.iter().all(|byte| *byte == 0));
            assert!(length == 0 || memory.as_ptr().addr().is_multiple_of(8));
            if let Some(last) = memory.last_mut() {
                *last = 1;
            }
            assert_eq!(memory.clone()[..], memory[..]);
        }
        assert!(Memory::EMPTY.is_empty());
    }
}
