//! A new table, ready to be sent.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chainwright_sys::x_tables::xt_counters;

use super::{Counters, Family, Info, Malformed, Table, TableName};
use crate::memory::Memory;

/// A new table that replaces one that was read ([`TableEditor::finish`](super::TableEditor::finish)): its entries in
/// the kernel's format, and the source of each entry's counters.
///
/// [`Connection::replace`](super::Connection::replace) accepts it once, because its counters refer to
/// the entries of the table that was read.
#[derive(Clone)]
pub struct Replacement {
    info: Info,
    /// Number of entries of the table that was read.
    replaced: u32,
    /// The argument of `SET_REPLACE`, without the pointer to the counters.
    argument: Memory,
    /// The source of the counters, for all entries in order.
    counted: Vec<CounterSource>,
    /// Whether this, or a clone of it, has replaced the table.
    sent: Arc<AtomicBool>,
}

/// Source of the counters of one or more entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CounterSource {
    /// `count` entries take the counters of the old entries starting at `number`.
    Preserved { number: u32, count: u32 },
    /// One entry takes the difference between the old entry's counters and those that were read.
    Zeroed { number: u32, read: Counters },
    /// One entry takes these counters.
    Explicit(Counters),
    /// `count` entries start at zero.
    Zero { count: u32 },
}

impl CounterSource {
    /// Appends `next`, or merges it with the last element.
    pub(super) fn push(all: &mut Vec<Self>, next: Self) {
        let next = match next {
            Self::Explicit(Counters {
                packets: 0,
                bytes: 0,
            }) => Self::Zero { count: 1 },
            Self::Preserved { count: 0, .. } => return,
            next => next,
        };
        match (all.last_mut(), next) {
            (
                Some(Self::Preserved { number, count }),
                Self::Preserved {
                    number: next,
                    count: more,
                },
            ) if number.checked_add(*count) == Some(next) => *count = count.saturating_add(more),
            (Some(Self::Zero { count }), Self::Zero { count: more }) => {
                *count = count.saturating_add(more);
            }
            _ => all.push(next),
        }
    }
}

impl Replacement {
    pub(super) fn new(
        info: Info,
        replaced: u32,
        mut argument: Memory,
        counted: Vec<CounterSource>,
    ) -> Self {
        let family = info.family();
        let layout = family.layout().replace;
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(place) = argument
                .get_mut(at..)
                .and_then(|a| a.get_mut(..bytes.len()))
            {
                place.copy_from_slice(bytes);
            }
        };
        put(0, info.name().padded());
        put(layout.valid_hooks, &info.valid_hooks().to_ne_bytes());
        put(layout.num_entries, &info.num_entries().to_ne_bytes());
        put(layout.entries_size, &info.size().to_ne_bytes());
        for hook in info.hooks() {
            let (Some(number), Some(entry), Some(underflow)) = (
                hook.number(family),
                info.hook_entry(hook),
                info.underflow(hook),
            ) else {
                continue;
            };
            let at = number as usize * size_of::<u32>();
            put(layout.hook_entry + at, &entry.to_ne_bytes());
            put(layout.underflow + at, &underflow.to_ne_bytes());
        }
        Self {
            info,
            replaced,
            argument,
            counted,
            sent: Arc::default(),
        }
    }

    /// Marks it as sent. Returns `true` to one caller only, across all clones and threads.
    pub(super) fn mark_sent(&self) -> bool {
        let claimed = self
            .sent
            .compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire);
        claimed.is_ok()
    }

    /// Allows another attempt, after the kernel refused this one.
    pub(super) fn release(&self) {
        self.sent.store(false, Ordering::Release);
    }

    /// Returns the family of the table.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.info.family()
    }

    /// Returns the name of the table.
    #[must_use]
    pub const fn name(&self) -> &TableName {
        self.info.name()
    }

    /// Returns the sizes and offsets of the new table.
    #[must_use]
    pub const fn info(&self) -> &Info {
        &self.info
    }

    /// Returns the new table's entries. Their counters have no effect: the kernel starts at zero.
    #[must_use]
    pub fn entries(&self) -> &[u8] {
        self.argument
            .get(self.family().layout().replace.size..)
            .unwrap_or_default()
    }

    /// Returns the number of entries of the table to replace, as it was read.
    #[must_use]
    pub const fn replaced_entries(&self) -> u32 {
        self.replaced
    }

    /// Returns the new table as if it had been read, for inspection.
    ///
    /// # Errors
    /// None known: the entries are written in a form that can be read.
    pub fn to_table(&self) -> Result<Table, Malformed> {
        Table::from_bytes(self.info, self.entries())
    }

    /// Adapts it to a kernel table with this number of entries, and drops all counters of the old table.
    pub(crate) fn in_place_of(mut self, entries: u32) -> Self {
        self.replaced = entries;
        for counted in &mut self.counted {
            match *counted {
                CounterSource::Preserved { count, .. } => *counted = CounterSource::Zero { count },
                CounterSource::Zeroed { .. } => *counted = CounterSource::Zero { count: 1 },
                CounterSource::Explicit(_) | CounterSource::Zero { .. } => {}
            }
        }
        self
    }

    pub(super) fn argument(&mut self) -> &mut [u8] {
        &mut self.argument
    }

    /// Allows another replacement after this one has replaced the table.
    #[doc(hidden)]
    pub(super) const fn allow_resend(&mut self) {
        self.replaced = self.info.num_entries();
    }

    /// Returns `true` if the counters of all entries start at zero.
    pub(super) fn starts_at_zero(&self) -> bool {
        let zero = |counted: &CounterSource| matches!(counted, CounterSource::Zero { .. });
        self.counted.iter().all(zero)
    }

    /// Computes the new entries' counters, in order, from the current counters of the old ones. Returns
    /// whether any is not zero.
    pub(super) fn counters(&self, old: &[xt_counters], mut each: impl FnMut(Counters)) -> bool {
        let mut any = false;
        let mut each = |counters: Counters| {
            any |= counters != Counters::default();
            each(counters);
        };
        let at = |number: u32| match old.get(number as usize) {
            Some(counters) => Counters {
                packets: counters.pcnt,
                bytes: counters.bcnt,
            },
            None => Counters::default(),
        };
        for counted in &self.counted {
            match *counted {
                CounterSource::Preserved { number, count } => {
                    for number in number..number.saturating_add(count) {
                        each(at(number));
                    }
                }
                CounterSource::Zeroed { number, read } => {
                    let now = at(number);
                    each(Counters {
                        packets: now.packets.saturating_sub(read.packets),
                        bytes: now.bytes.saturating_sub(read.bytes),
                    });
                }
                CounterSource::Explicit(counters) => each(counters),
                CounterSource::Zero { count } => {
                    for _ in 0..count {
                        each(Counters::default());
                    }
                }
            }
        }
        any
    }
}

impl fmt::Debug for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replacement")
            .field("family", &self.family())
            .field("name", self.name())
            .field("entries", &self.info.num_entries())
            .field("bytes", &self.info.size())
            .field("replaced_entries", &self.replaced)
            .finish()
    }
}
