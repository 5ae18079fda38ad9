//! A rule of a chain.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use chainwright_sys::x_tables::xt_counters;

use super::entry::Entry;
use super::{ExtensionRef, Header, Malformed, Matches, Table, Target};

/// Packet and byte counters of a rule or policy. Both wrap around at 2⁶⁴.
///
/// nf_tables has its own [`Counters`](crate::nft::Counters), which distinguish a missing value
/// from 0.
///
/// Source: `struct xt_counters`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl fmt::Display for Counters {
    /// Writes iptables-save's format: `[packets:bytes]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}:{}]", self.packets, self.bytes)
    }
}

/// A rule: header, matches, target and counters of one entry.
#[derive(Clone, Copy)]
pub struct RuleRef<'t> {
    table: &'t Table,
    entry: Entry<'t>,
    offset: usize,
    number: u32,
}

impl<'t> RuleRef<'t> {
    pub(super) const fn new(
        table: &'t Table,
        entry: Entry<'t>,
        offset: usize,
        number: u32,
    ) -> Self {
        Self {
            table,
            entry,
            offset,
            number,
        }
    }

    /// Returns the table of the rule.
    #[must_use]
    pub const fn table(&self) -> &'t Table {
        self.table
    }

    /// Returns the packets to which the rule applies, before its matches are evaluated.
    #[must_use]
    pub fn header(&self) -> Header<'t> {
        Header::of(self.table.family(), self.entry.bytes)
    }

    /// Returns the matches, in order.
    #[must_use]
    pub fn matches(&self) -> Matches<'t> {
        Matches::new(
            self.entry.bytes,
            self.table.family().layout().entry,
            self.entry.target_offset,
            self.offset,
        )
    }

    /// Returns the rule's verdict, jump or extension target.
    ///
    /// # Errors
    /// The target has an invalid size, or jumps to an offset where no chain starts.
    pub fn target(&self) -> Result<Target<'t>, Malformed> {
        Target::of(self)
    }

    /// Returns the target in its raw form, which is common to all kinds of targets: a verdict or
    /// jump has an empty name.
    ///
    /// # Errors
    /// The target has an invalid size.
    pub fn raw_target(&self) -> Result<ExtensionRef<'t>, Malformed> {
        let at = self.entry.target_offset;
        ExtensionRef::of(self.entry.target(), self.offset + at)
    }

    /// Counts the packets that matched the rule's header and its matches.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.entry.counters(self.table.family().layout())
    }

    /// Returns the index of the rule's entry among all entries of the table. The kernel orders
    /// counters by it.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number as usize
    }

    /// Returns the offset of the rule's entry in the table's entries, in bytes.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// Hashes the rule without its counters, so that the hash is the same as long as the rule is: a jump by the name of
    /// its chain, which may move in the table. Hashes of another process may differ.
    #[doc(hidden)]
    #[must_use]
    pub fn content_hash(&self) -> u64 {
        let Entry {
            bytes,
            target_offset,
        } = self.entry;
        let counters = self.table.family().layout().counters;
        let mut hasher = DefaultHasher::new();
        bytes[..counters].hash(&mut hasher);
        bytes[counters + size_of::<xt_counters>()..target_offset].hash(&mut hasher);
        match self.target() {
            Ok(Target::Jump(chain) | Target::Goto(chain)) => chain.name().hash(&mut hasher),
            Ok(Target::FallThrough) => {}
            _ => self.entry.target().hash(&mut hasher),
        }
        hasher.finish()
    }

    /// Returns the whole entry as the kernel sent it, counters included.
    #[must_use]
    pub const fn bytes(&self) -> &'t [u8] {
        self.entry.bytes
    }

    pub(super) const fn entry(&self) -> &Entry<'t> {
        &self.entry
    }
}

impl fmt::Debug for RuleRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleRef")
            .field("offset", &self.offset)
            .field("header", &self.header())
            .field("matches", &self.matches().collect::<Vec<_>>())
            .field("target", &self.target())
            .field("counters", &self.counters())
            .finish()
    }
}

/// The rules of a chain, in order ([`ChainRef::rules`](super::ChainRef::rules)).
#[derive(Clone, Debug)]
pub struct Rules<'t> {
    table: &'t Table,
    offset: usize,
    number: u32,
    left: usize,
}

impl<'t> Rules<'t> {
    pub(super) const fn new(table: &'t Table, offset: usize, number: u32, left: usize) -> Self {
        Self {
            table,
            offset,
            number,
            left,
        }
    }
}

impl<'t> Iterator for Rules<'t> {
    type Item = RuleRef<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        // Cannot fail: the index was built from these entries.
        let entry = Entry::at(
            self.table.family().layout(),
            self.table.entries(),
            self.offset,
        )
        .ok()?;
        let rule = RuleRef::new(self.table, entry, self.offset, self.number);
        self.left -= 1;
        self.number += 1;
        self.offset += entry.bytes.len();
        Some(rule)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Rules<'_> {}
impl std::iter::FusedIterator for Rules<'_> {}

const _: () = assert!(size_of::<xt_counters>() == size_of::<Counters>());
