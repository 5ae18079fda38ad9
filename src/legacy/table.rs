//! A table that was read, and the index of its chains.

use std::convert::Infallible;
use std::fmt;

use chainwright_sys::netfilter::NF_INET_NUMHOOKS;
use chainwright_sys::x_tables::XT_ERROR_TARGET;

use super::chain::{ChainRef, Chains, Span};
use super::entry::{
    ERROR_NAME, ERROR_TARGET, Entry, STANDARD_TARGET, TARGET_NAME, VERDICT, VERDICT_ACCEPT,
};
use super::family::{GET_ENTRIES_HEAD, GET_ENTRIES_SIZE, Layout};
use super::{Family, Hook, Info, Malformed, Problem, TableName};
use crate::memory::Memory;

/// A legacy table: its entries as the kernel sent them, and the index of its chains.
///
/// [`Connection::read_into`] can reuse a table and its memory for repeated reads.
///
/// [`Connection::read_into`]: super::Connection::read_into
#[derive(Clone)]
pub struct Table {
    info: Info,
    /// The argument of `GET_ENTRIES`: [`GET_ENTRIES_HEAD`] bytes, then the entries, then spare
    /// capacity. The entries have the alignment of their structs.
    buffer: Memory,
    /// In the order of the entries.
    spans: Vec<Span>,
}

impl Table {
    /// Creates a table without entries, as a buffer for reads.
    #[must_use]
    pub const fn empty(family: Family) -> Self {
        Self {
            info: Info::empty(family, TableName::NONE),
            buffer: Memory::EMPTY,
            spans: Vec::new(),
        }
    }

    /// Creates a table from the kernel's replies to `GET_INFO` and `GET_ENTRIES` (the latter without
    /// its 40-byte header), for instance from a file.
    ///
    /// # Errors
    /// The entries do not match the description.
    pub fn from_bytes(info: Info, entries: &[u8]) -> Result<Self, Malformed> {
        if info.size() as usize != entries.len() {
            return Err(Malformed::new(
                0,
                Problem::Size {
                    expected: info.size(),
                    found: entries.len(),
                },
            ));
        }
        let mut table = Self::empty(info.family());
        let Ok(()) = table.receive(&info, |buffer| {
            buffer[GET_ENTRIES_HEAD..].copy_from_slice(entries);
            Ok::<(), Infallible>(())
        })?;
        table.index(info)?;
        Ok(table)
    }

    /// Returns a table with the same built-in chains, without rules and with the policy `ACCEPT`.
    pub(super) fn blank(info: &Info) -> Result<Self, Malformed> {
        let layout = info.family().layout();
        // The offsets of the entry and of its target.
        let entry = |entries: &mut Vec<u8>, target: usize| {
            let start = entries.len();
            let size = layout.entry + target;
            entries.resize(start + size, 0);
            // All values are below a few hundred bytes.
            for (at, value) in [
                (layout.target_offset, layout.entry as u16),
                (layout.next_offset, size as u16),
                (layout.entry, target as u16),
            ] {
                entries[start + at..][..2].copy_from_slice(&value.to_ne_bytes());
            }
            (start as u32, start + layout.entry)
        };
        let mut entries = Vec::new();
        let mut places = [0; NF_INET_NUMHOOKS as usize];
        let mut count = 1;
        for hook in info.hooks() {
            let (start, target) = entry(&mut entries, STANDARD_TARGET);
            entries[target + VERDICT..][..size_of::<i32>()]
                .copy_from_slice(&VERDICT_ACCEPT.to_ne_bytes());
            let number = hook.number(info.family()).unwrap_or_default();
            if let Some(place) = places.get_mut(number as usize) {
                *place = start;
            }
            count += 1;
        }
        let (_, target) = entry(&mut entries, ERROR_TARGET);
        for at in [TARGET_NAME, ERROR_NAME] {
            entries[target + at..][..XT_ERROR_TARGET.len()]
                .copy_from_slice(XT_ERROR_TARGET.as_bytes());
        }
        let blank = Info::new(
            info.family(),
            info.name().padded(),
            info.valid_hooks(),
            &places,
            &places,
            count,
            entries.len() as u32,
        )?;
        Self::from_bytes(blank, &entries)
    }

    /// Removes the entries, but keeps the memory.
    pub(super) fn clear(&mut self, family: Family, name: TableName) {
        self.info = Info::empty(family, name);
        self.spans.clear();
    }

    /// Prepares the argument of `GET_ENTRIES` and calls `fill` with it. Until [`Self::index`] the
    /// table has no entries.
    pub(super) fn receive<E>(
        &mut self,
        info: &Info,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Result<(), E>, Malformed> {
        self.clear(info.family(), *info.name());
        let size = info.size();
        // The kernel's own limit is 512 MiB; a socket option's length is an int.
        let length = i32::try_from(size)
            .ok()
            .and_then(|size| usize::try_from(size).ok()?.checked_add(GET_ENTRIES_HEAD))
            .ok_or(Malformed::new(0, Problem::TooLarge { size }))?;
        if self.buffer.len() < length {
            // Part of the capacity is spare, which costs nothing until it is touched. Free the old
            // memory first, so that both never exist at the same time.
            self.buffer = Memory::EMPTY;
            self.buffer = Memory::zeroed(length.saturating_add(length / 8));
        }
        let argument = &mut self.buffer[..length];
        let name = info.name().padded();
        argument[..name.len()].copy_from_slice(name);
        argument[GET_ENTRIES_SIZE..][..size_of::<u32>()].copy_from_slice(&size.to_ne_bytes());
        Ok(fill(argument))
    }

    /// Indexes the received entries: one pass checks the bounds of each entry and finds the chains.
    /// After an error the table has no entries.
    pub(super) fn index(&mut self, info: Info) -> Result<(), Malformed> {
        self.spans.clear();
        self.info = info;
        let entries = entries(&self.buffer, &info);
        match index(&info, entries, &mut self.spans) {
            Ok(()) => Ok(()),
            Err(malformed) => {
                self.clear(info.family(), *info.name());
                Err(malformed)
            }
        }
    }

    /// Returns the kernel's description of the table.
    #[must_use]
    pub const fn info(&self) -> &Info {
        &self.info
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

    /// Returns the entries as the kernel sent them.
    #[must_use]
    pub fn entries(&self) -> &[u8] {
        entries(&self.buffer, &self.info)
    }

    /// Returns the chains, in the kernel's order: usually the built-in ones first.
    #[must_use]
    pub fn chains(&self) -> Chains<'_> {
        Chains::new(self, &self.spans)
    }

    /// Finds a chain by name, by a linear search.
    #[must_use]
    pub fn chain(&self, name: impl AsRef<[u8]>) -> Option<ChainRef<'_>> {
        let name = name.as_ref();
        self.chains().find(|chain| chain.name() == name)
    }

    /// Returns the built-in chain of that hook.
    #[must_use]
    pub fn builtin(&self, hook: Hook) -> Option<ChainRef<'_>> {
        self.chains().find(|chain| chain.hook() == Some(hook))
    }

    /// Returns the chain whose first rule is at that offset, as the target of a jump.
    pub(super) fn chain_at(&self, first: usize) -> Option<ChainRef<'_>> {
        let span = self.spans.get(self.position_at(first)?)?;
        Some(ChainRef::new(self, span))
    }

    /// Returns the index of that chain among the chains.
    pub(super) fn position_at(&self, first: usize) -> Option<usize> {
        let position = self
            .spans
            .partition_point(|span| (span.first as usize) < first);
        let span = self.spans.get(position)?;
        (span.first as usize == first).then_some(position)
    }

    /// Returns the positions of the chains, in the order of the entries and without gaps; the end of the table follows
    /// the last one.
    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("family", &self.family())
            .field("name", self.name())
            .field("entries", &self.info.num_entries())
            .field("bytes", &self.info.size())
            .field("chains", &self.spans.len())
            .finish()
    }
}

/// Returns the entries in the argument of `GET_ENTRIES`.
fn entries<'t>(buffer: &'t [u8], info: &Info) -> &'t [u8] {
    // An empty table may have no buffer yet.
    buffer
        .get(GET_ENTRIES_HEAD..)
        .map_or(&[], |entries| &entries[..info.size() as usize])
}

/// A chain whose end has not been reached.
struct Open<'t> {
    span: Span,
    last: Entry<'t>,
    last_offset: u32,
}

/// Scans the entries once.
fn index(info: &Info, entries: &[u8], spans: &mut Vec<Span>) -> Result<(), Malformed> {
    let layout = *info.family().layout();
    let mut starts = ChainStarts::new(info);
    let mut open: Option<Open<'_>> = None;
    let mut number = 0;
    let mut offset = 0;
    let mut ended = false;
    while !ended && offset < entries.len() {
        let entry = Entry::at(&layout, entries, offset)?;
        let next = offset + entry.bytes.len();
        // Offsets fit: the table's size is a u32.
        let (here, after) = (offset as u32, next as u32);

        let is_head = entry.error_name().is_some();
        let start = starts.take(here);
        if is_head || start.is_some() {
            if let Some(open) = open.take() {
                spans.push(open.close(&layout, info, here)?);
            }
            ended = is_head && next == entries.len();
            let span = match start {
                None => Span::user(here, after, number),
                Some(hook) if is_head => {
                    return Err(Malformed::new(offset, Problem::HookEntry { hook }));
                }
                Some(hook) => Span::builtin(here, number, hook),
            };
            open = Some(Open {
                span,
                last: entry,
                last_offset: here,
            });
        }
        let Some(open) = &mut open else {
            return Err(Malformed::new(offset, Problem::OutsideChains));
        };
        open.span.entries += 1;
        open.last = entry;
        open.last_offset = here;
        offset = next;
        number += 1;
    }

    if !ended {
        return Err(Malformed::new(offset, Problem::NoEnd));
    }
    if let Some((start, hook)) = starts.left() {
        return Err(Malformed::new(start as usize, Problem::HookEntry { hook }));
    }
    if number != info.num_entries() {
        let expected = info.num_entries();
        return Err(Malformed::new(
            offset,
            Problem::EntryCount {
                expected,
                found: number,
            },
        ));
    }
    Ok(())
}

impl Open<'_> {
    /// Ends the chain and classifies its last entry.
    fn close(self, layout: &Layout, info: &Info, end: u32) -> Result<Span, Malformed> {
        let Self {
            mut span,
            last,
            last_offset,
        } = self;
        let malformed = |problem| Err(Malformed::new(last_offset as usize, problem));
        span.end = end;
        span.final_entry = match span.hook {
            None if last.is_implicit_return(layout) => last_offset,
            None => end,
            Some(hook) => {
                let underflow = info.underflow(hook).unwrap_or(u32::MAX);
                if underflow != last_offset {
                    return malformed(Problem::Underflow { hook, underflow });
                }
                match last.policy(layout) {
                    Some(policy) => span.policy = policy,
                    None => return malformed(Problem::Policy { hook }),
                }
                last_offset
            }
        };
        Ok(span)
    }
}

/// The start offsets of built-in chains, in the order of the entries.
struct ChainStarts {
    sorted: [(u32, Hook); ChainStarts::MAX_HOOKS],
    position: usize,
    /// Number of built-in chains.
    count: usize,
}

impl ChainStarts {
    /// A table has at most five built-in chains; the remaining elements are sentinels.
    const MAX_HOOKS: usize = 6;
    const STOP: (u32, Hook) = (u32::MAX, Hook::Prerouting);

    fn new(info: &Info) -> Self {
        let mut sorted = [Self::STOP; Self::MAX_HOOKS];
        let starts = info
            .hooks()
            .filter_map(|hook| Some((info.hook_entry(hook)?, hook)));
        for (place, start) in sorted.iter_mut().zip(starts) {
            *place = start;
        }
        sorted.sort_unstable_by_key(|&(offset, _)| offset);
        Self {
            sorted,
            position: 0,
            count: info.hooks().count().min(Self::MAX_HOOKS),
        }
    }

    /// Returns the hook whose chain starts at this offset, if it is the next one.
    #[inline]
    fn take(&mut self, offset: u32) -> Option<Hook> {
        let &(start, hook) = self.sorted.get(self.position)?;
        (start == offset).then(|| {
            self.position += 1;
            hook
        })
    }

    /// Returns the first start that was not taken.
    fn left(&self) -> Option<(u32, Hook)> {
        let of_hooks = self.sorted.get(..self.count)?;
        of_hooks.get(self.position).copied()
    }
}
