//! Matches and targets as extensions: a name, a revision, and opaque data.

use std::fmt;
use std::mem::offset_of;

use bstr::{BStr, ByteSlice};
use chainwright_sys::x_tables::{XT_ALIGN, xt_entry_match, xt_entry_target};

use super::entry::EXTENSION_HEAD;
use super::name::until_nul;
use super::{Malformed, Problem};

// Matches and targets have the same header layout.
pub(super) const NAME: usize = offset_of!(xt_entry_match, name);
pub(super) const REVISION: usize = offset_of!(xt_entry_match, revision);
const _: () = {
    assert!(size_of::<xt_entry_match>() == EXTENSION_HEAD);
    assert!(offset_of!(xt_entry_match, match_size) == 0);
    assert!(offset_of!(xt_entry_target, target_size) == 0);
    assert!(offset_of!(xt_entry_target, name) == NAME);
    assert!(offset_of!(xt_entry_target, revision) == REVISION);
};

/// A match, or a target that is an extension. Two are equal if name, revision and data are equal.
///
/// Sources: `struct xt_entry_match`, `struct xt_entry_target`.
#[derive(Clone, Copy)]
pub struct ExtensionRef<'t> {
    bytes: &'t [u8],
}

impl PartialEq for ExtensionRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        // Don't compare the raw bytes: the kernel writes a name only up to its NUL, so bytes after it
        // may be left from an earlier read into the same memory.
        (self.name(), self.revision(), self.data())
            == (other.name(), other.revision(), other.data())
    }
}

impl Eq for ExtensionRef<'_> {}

impl<'t> ExtensionRef<'t> {
    /// Returns the extension at the start of `available`, the space it may occupy. `offset` is the
    /// position of `available` in the table.
    pub(super) fn of(available: &'t [u8], offset: usize) -> Result<Self, Malformed> {
        let size = match available {
            [first, second, ..] => u16::from_ne_bytes([*first, *second]),
            _ => 0,
        };
        if !usize::from(size).is_multiple_of(XT_ALIGN) {
            return Err(Malformed::new(offset, Problem::Misaligned { value: size }));
        }
        match available.get(..usize::from(size)) {
            Some(bytes) if bytes.len() >= EXTENSION_HEAD => Ok(Self { bytes }),
            _ => Err(Malformed::new(
                offset,
                Problem::ExtensionSize {
                    size,
                    available: available.len(),
                },
            )),
        }
    }

    /// Returns the extension's name, for instance `comment` or `DNAT`.
    #[must_use]
    pub fn name(&self) -> &'t BStr {
        until_nul(&self.bytes[NAME..REVISION]).as_bstr()
    }

    /// Returns the revision, which determines the layout of the data.
    #[must_use]
    pub fn revision(&self) -> u8 {
        self.bytes[REVISION]
    }

    /// Returns the extension's own data: the kernel's struct in host byte order, padded to a
    /// multiple of 8 bytes, and aligned to 8 within the table. Its tail may hold kernel-internal
    /// fields.
    #[must_use]
    pub fn data(&self) -> &'t [u8] {
        &self.bytes[EXTENSION_HEAD..]
    }

    /// Returns the header and data as the kernel sent them.
    #[must_use]
    pub const fn bytes(&self) -> &'t [u8] {
        self.bytes
    }
}

impl fmt::Debug for ExtensionRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionRef")
            .field("name", &self.name())
            .field("revision", &self.revision())
            .field("data", &self.data().as_bstr())
            .finish()
    }
}

/// The matches of a rule, in order ([`RuleRef::matches`](super::RuleRef::matches)).
///
/// If a match has an invalid size, the iterator yields an error as its last item.
#[derive(Clone, Debug)]
pub struct Matches<'t> {
    /// The remaining matches.
    rest: &'t [u8],
    /// Offset of `rest` in the table.
    offset: usize,
}

impl<'t> Matches<'t> {
    /// Returns the matches between `start` and `end` of an entry at `offset` of the table.
    pub(super) fn new(entry: &'t [u8], start: usize, end: usize, offset: usize) -> Self {
        Self {
            rest: entry.get(start..end).unwrap_or_default(),
            offset: offset + start,
        }
    }
}

impl<'t> Iterator for Matches<'t> {
    type Item = Result<ExtensionRef<'t>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let result = ExtensionRef::of(self.rest, self.offset);
        match &result {
            Ok(extension) => {
                self.rest = &self.rest[extension.bytes.len()..];
                self.offset += extension.bytes.len();
            }
            Err(_) => self.rest = &[],
        }
        Some(result)
    }
}

impl std::iter::FusedIterator for Matches<'_> {}
