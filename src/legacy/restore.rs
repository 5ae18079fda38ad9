//! Restores a table that was read before.

use super::entry::Entry;
use super::replacement::CounterSource;
use super::{Connection, Counters, Error, Replacement, Table, TableName};
use crate::memory::Memory;

impl Table {
    /// Returns the entries with their counters.
    fn counted_entries(&self) -> impl Iterator<Item = (Entry<'_>, Counters)> {
        let layout = self.family().layout();
        let mut offset = 0;
        std::iter::from_fn(move || {
            let entry = Entry::at(layout, self.entries(), offset).ok()?;
            offset += entry.bytes.len();
            let counters = entry.counters(layout);
            Some((entry, counters))
        })
    }

    /// Returns `true` if `now`, the same table read later, has other entries, or counters that have decreased, as after
    /// a replacement. Packets alone do not change this.
    #[must_use]
    pub fn was_replaced(&self, now: &Self) -> bool {
        let counters_at = self.family().layout().counters;
        let counters_end = counters_at + size_of::<[u64; 2]>();
        let is_same =
            |((one, before), (other, after)): ((Entry<'_>, Counters), (Entry<'_>, Counters))| {
                one.bytes[..counters_at] == other.bytes[..counters_at]
                    && one.bytes[counters_end..] == other.bytes[counters_end..]
                    && before.packets <= after.packets
                    && before.bytes <= after.bytes
            };
        self.info() != now.info()
            || !self
                .counted_entries()
                .zip(now.counted_entries())
                .all(is_same)
    }
}

impl Connection {
    /// Restores a table to the state in which it was read, with its counters, atomically for all packets. **Creates**
    /// the table if it is not in use.
    ///
    /// Hold the [lock](super::Lock) of the legacy tools. Changes by other programs since the read are lost.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn restore(&self, table: &Table) -> Result<(), Error> {
        let entries = self.get_info(*table.name())?.num_entries();
        self.replace(&mut Replacement::exactly(table, entries))
    }

    /// Removes all rules and user-defined chains of a table, and sets policies to `ACCEPT` and counters to zero: the
    /// state of a table that was just created. **Creates** the table if it is not in use.
    ///
    /// Hold the [lock](super::Lock) of the legacy tools.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn reset(&self, table: impl AsRef<[u8]>) -> Result<(), Error> {
        let (blank, entries) = self.instantiate_blank(TableName::new(table)?)?;
        self.replace(&mut Replacement::exactly(&blank, entries))
    }
}

impl Replacement {
    /// Creates the replacement that makes a kernel's table with this number of entries equal to `table`.
    fn exactly(table: &Table, replaced: u32) -> Self {
        let head = table.family().layout().replace.size;
        let mut argument = Memory::zeroed(head + table.entries().len());
        argument[head..].copy_from_slice(table.entries());
        let mut counted = Vec::new();
        for (_, counters) in table.counted_entries() {
            CounterSource::push(&mut counted, CounterSource::Explicit(counters));
        }
        Self::new(*table.info(), replaced, argument, counted)
    }
}
