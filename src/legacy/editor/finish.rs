//! Generates the entries of the new table.

use chainwright_sys::netfilter::NF_INET_NUMHOOKS;
use chainwright_sys::x_tables::{XT_ALIGN, XT_ERROR_TARGET};

use super::item::{BuiltTarget, CompactCounters, EntryCounters, Item};
use super::{Edit, EditError, TableEditor};
use crate::legacy::chain::Span;
use crate::legacy::entry::{
    ERROR_NAME, ERROR_TARGET, Entry, STANDARD_TARGET, TARGET_NAME, VERDICT, VERDICT_ACCEPT,
    VERDICT_DROP, VERDICT_RETURN,
};
use crate::legacy::replacement::{CounterSource, Replacement};
use crate::legacy::{Counters, Info, Malformed, Policy, Problem};
use crate::memory::Memory;

const HOOKS: usize = NF_INET_NUMHOOKS as usize;

/// Offset of a chain that is not in the new table.
const NO_OFFSET: u32 = u32::MAX;

/// Preserved entries are copied and then fixed up in pieces of about this many bytes, so that they
/// stay in the processor's cache.
const CHUNK_SIZE: usize = 1 << 16;

pub(super) fn finish(editor: &TableEditor<'_>) -> Result<Replacement, EditError> {
    let new_offsets = NewOffsets::of(editor)?;
    let mut writer = Writer::new(editor, &new_offsets);
    for id in editor.ids() {
        writer.chain(id)?;
    }
    writer.end()
}

/// Offsets in the new table.
struct NewOffsets {
    /// For each chain, the offset of its first rule, or `NO_OFFSET`.
    firsts: Vec<u32>,
    size: u32,
    num_entries: u32,
    /// The displacement of chains that were read: the old offset of the first rule of a run of
    /// adjacent chains, and their displacement. Sorted by the offset.
    shifts: Vec<(u32, Shift)>,
    /// Whether all chains that were read keep their offsets.
    unmoved: bool,
    /// A bit for each `XT_ALIGN` bytes of the old table: whether a chain's first rule is there. Empty
    /// if nothing was changed.
    starts: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shift {
    By(i64),
    Removed,
}

impl NewOffsets {
    fn of(editor: &TableEditor<'_>) -> Result<Self, EditError> {
        let mut firsts = vec![NO_OFFSET; editor.slots.len()];
        let (mut size, mut num_entries) = (0_u64, 0_u64);
        for id in editor.ids() {
            let chain_size = ChainSize::of(editor, id);
            let first = size + chain_size.head;
            size += chain_size.size;
            num_entries += chain_size.entries;
            if let Some(place) = firsts.get_mut(id as usize) {
                *place = u32::try_from(first).unwrap_or(NO_OFFSET);
            }
        }
        let entries = editor.table.entries();
        let end = end_of_chains(editor);
        if end >= entries.len() {
            return Err(EditError::NotRead);
        }
        size += (entries.len() - end) as u64;
        num_entries += 1;
        // The length of a socket option is an int.
        let whole = size.saturating_add(editor.layout.replace.size as u64);
        if i32::try_from(whole).is_err() {
            return Err(EditError::TableTooLarge { size });
        }
        let mut new_offsets = Self {
            firsts,
            // Fits: an entry has more than one byte.
            size: size as u32,
            num_entries: num_entries as u32,
            shifts: Vec::new(),
            unmoved: true,
            starts: Vec::new(),
        };
        if editor.is_changed() {
            new_offsets.find_shifts(editor.table.spans(), entries.len());
        }
        Ok(new_offsets)
    }

    fn find_shifts(&mut self, spans: &[Span], size: usize) {
        for (span, &first) in spans.iter().zip(&self.firsts) {
            let shift = match first {
                NO_OFFSET => Shift::Removed,
                first => Shift::By(i64::from(first) - i64::from(span.first)),
            };
            if self.shifts.last().is_none_or(|last| last.1 != shift) {
                self.shifts.push((span.first, shift));
            }
        }
        self.unmoved = self.shifts.iter().all(|shift| shift.1 == Shift::By(0));
        self.starts = vec![0; (size / XT_ALIGN).div_ceil(64)];
        for span in spans {
            let bit = span.first as usize / XT_ALIGN;
            if let Some(word) = self.starts.get_mut(bit / 64) {
                *word |= 1 << (bit % 64);
            }
        }
    }

    /// Returns the new target of a jump whose target was `to` in the old table.
    fn moved(&self, to: u32) -> Option<u32> {
        let (bit, aligned) = (
            to as usize / XT_ALIGN,
            (to as usize).is_multiple_of(XT_ALIGN),
        );
        let word = self.starts.get(bit / 64)?;
        if !aligned || word & (1 << (bit % 64)) == 0 {
            return None;
        }
        let after = self.shifts.partition_point(|shift| shift.0 <= to);
        match self.shifts.get(after.checked_sub(1)?)?.1 {
            Shift::By(distance) => u32::try_from(i64::from(to) + distance).ok(),
            Shift::Removed => None,
        }
    }
}

/// Returns the end of the last chain in the old table.
fn end_of_chains(editor: &TableEditor<'_>) -> usize {
    editor
        .table
        .spans()
        .last()
        .map_or(0, |span| span.end as usize)
}

/// Space requirements of a chain. Sizes in bytes.
struct ChainSize {
    head: u64,
    size: u64,
    entries: u64,
}

impl ChainSize {
    fn of(editor: &TableEditor<'_>, id: u32) -> Self {
        let span = editor.span(id);
        let edit = editor.edit(id);
        let layout = editor.layout;
        // A new head and a new policy or implicit return.
        let error = (layout.entry + ERROR_TARGET) as u64;
        let standard = (layout.entry + STANDARD_TARGET) as u64;
        let head = match (span, edit) {
            (Some(span), Some(Edit { name: None, .. }) | None) => u64::from(span.first - span.head),
            _ => error,
        };
        let heads = u64::from(span.is_none_or(|span| span.hook.is_none()));
        let final_entry = match span {
            // A preserved one has the same size: that size identifies it.
            Some(span) if span.final_entry != span.end => u64::from(span.end - span.final_entry),
            Some(_) if edit.is_none_or(|edit| edit.rules.is_none()) => 0,
            _ => standard,
        };
        let (rules, count) = match (edit.and_then(|edit| edit.rules.as_ref()), span) {
            (Some(items), _) => {
                let lengths = items.iter().map(|item| match *item {
                    Item::Preserved { length, .. } => u64::from(length),
                    Item::New { built, .. } => editor
                        .built
                        .get(built as usize)
                        .map_or(0, |built| u64::from(built.length)),
                });
                (lengths.sum(), items.len())
            }
            (None, Some(span)) => (
                u64::from(span.final_entry - span.first),
                editor.rule_count(id),
            ),
            (None, None) => (0, 0),
        };
        Self {
            head,
            size: head + rules + final_entry,
            entries: heads + count as u64 + u64::from(final_entry != 0),
        }
    }
}

/// Preserved entries that have not been copied yet. They are adjacent both in the old table and in
/// the new one.
#[derive(Clone, Copy)]
struct Pending {
    start: usize,
    end: usize,
    number: u32,
    count: u32,
}

struct Writer<'d> {
    editor: &'d TableEditor<'d>,
    new_offsets: &'d NewOffsets,
    old: &'d [u8],
    /// The argument of `SET_REPLACE`: space for its header, then the entries.
    argument: Memory,
    /// Number of bytes written.
    length: usize,
    head: usize,
    pending: Option<Pending>,
    counted: Vec<CounterSource>,
    hook_entry: [u32; HOOKS],
    underflow: [u32; HOOKS],
}

impl<'d> Writer<'d> {
    fn new(editor: &'d TableEditor<'d>, new_offsets: &'d NewOffsets) -> Self {
        let head = editor.layout.replace.size;
        Self {
            editor,
            new_offsets,
            old: editor.table.entries(),
            argument: Memory::zeroed(head + new_offsets.size as usize),
            length: head,
            head,
            pending: None,
            counted: Vec::new(),
            hook_entry: [0; HOOKS],
            underflow: [0; HOOKS],
        }
    }

    /// Returns the offset of the next entry in the new table.
    fn offset(&self) -> u32 {
        let pending = self
            .pending
            .map_or(0, |pending| pending.end - pending.start);
        // `NewOffsets` has checked that the total fits.
        (self.length - self.head + pending) as u32
    }

    fn chain(&mut self, id: u32) -> Result<(), EditError> {
        let span = self.editor.span(id);
        let edit = self.editor.edit(id);
        if let Some(number) = self.hook_number(id) {
            self.hook_entry[number] = self.offset();
        }
        let (Some(span), None) = (span, edit) else {
            return self.changed_chain(id, span, edit.unwrap_or(&Edit::NONE));
        };
        if let Some(number) = self.hook_number(id) {
            self.underflow[number] = self.offset() + (span.final_entry - span.head);
        }
        self.preserve(span.head, span.end, span.number, span.entries)
    }

    fn hook_number(&self, id: u32) -> Option<usize> {
        let number = self
            .editor
            .hook_of(id)?
            .number(self.editor.table.family())?;
        Some(number as usize).filter(|number| *number < HOOKS)
    }

    fn changed_chain(
        &mut self,
        id: u32,
        span: Option<&Span>,
        edit: &Edit,
    ) -> Result<(), EditError> {
        // The head.
        match (span, &edit.name) {
            (Some(span), None) if span.first != span.head => {
                self.preserve(span.head, span.first, span.number, 1)?;
            }
            (Some(_), None) => {}
            _ => self.error_entry(self.editor.name_of(id))?,
        }
        // The rules.
        match (&edit.rules, span) {
            (Some(items), _) => {
                for item in items {
                    self.item(item)?;
                }
            }
            (None, Some(span)) => {
                let head = u32::from(span.hook.is_none());
                let final_entry = u32::from(span.final_entry != span.end);
                let count = span.entries.saturating_sub(head + final_entry);
                self.preserve(span.first, span.final_entry, span.number + head, count)?;
            }
            (None, None) => {}
        }
        // The policy or implicit return.
        if let Some(number) = self.hook_number(id) {
            self.underflow[number] = self.offset();
        }
        let preserved = span.filter(|span| span.final_entry != span.end);
        let Some(span) = preserved else {
            if span.is_none() || edit.rules.is_some() {
                self.standard_entry(VERDICT_RETURN, Counters::default())?;
                self.count(CounterSource::Explicit(Counters::default()));
            }
            return Ok(());
        };
        let number = span.number + span.entries.saturating_sub(1);
        if edit.policy.is_none() && edit.final_entry == EntryCounters::Own {
            return self.preserve(span.final_entry, span.end, number, 1);
        }
        let read = self.read_counters(span.final_entry);
        let (shown, counted) = match edit.final_entry {
            EntryCounters::Own => (read, CounterSource::Preserved { number, count: 1 }),
            EntryCounters::Zeroed => (Counters::default(), CounterSource::Zeroed { number, read }),
            EntryCounters::Explicit(counters) => (counters, CounterSource::Explicit(counters)),
        };
        let verdict = match (span.hook, edit.policy.unwrap_or(span.policy)) {
            (None, _) => VERDICT_RETURN,
            (Some(_), Policy::Accept) => VERDICT_ACCEPT,
            (Some(_), Policy::Drop) => VERDICT_DROP,
        };
        self.standard_entry(verdict, shown)?;
        self.count(counted);
        Ok(())
    }

    fn read_counters(&self, offset: u32) -> Counters {
        let at = offset as usize + self.editor.layout.counters;
        let word = |at: usize| {
            let bytes = self.old.get(at..).and_then(|rest| rest.first_chunk());
            bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
        };
        Counters {
            packets: word(at),
            bytes: word(at + size_of::<u64>()),
        }
    }

    fn item(&mut self, item: &Item) -> Result<(), EditError> {
        match *item {
            Item::Preserved {
                offset,
                length,
                number,
                counter_ref,
            } => {
                let end = offset + u32::from(length);
                if counter_ref == CompactCounters::OWN {
                    return self.preserve(offset, end, number, 1);
                }
                let counted = match counter_ref.resolve(&self.editor.explicit) {
                    EntryCounters::Explicit(counters) => CounterSource::Explicit(counters),
                    EntryCounters::Own => CounterSource::Preserved { number, count: 1 },
                    EntryCounters::Zeroed => CounterSource::Zeroed {
                        number,
                        read: self.read_counters(offset),
                    },
                };
                self.flush()?;
                self.pending = Some(Pending {
                    start: offset as usize,
                    end: end as usize,
                    number,
                    count: 0,
                });
                self.flush()?;
                self.count(counted);
                Ok(())
            }
            Item::New { built, counter_ref } => {
                self.flush()?;
                let Some(built) = self.editor.built.get(built as usize) else {
                    return Err(EditError::ForeignRule);
                };
                let (head, tail) = built.parts(&self.editor.arena);
                self.write(head);
                // Unwritten bytes are zero.
                self.length += usize::from(built.gap.length);
                self.write(tail);
                let to = match built.target {
                    BuiltTarget::Bytes => None,
                    BuiltTarget::FallThrough => Some(self.offset()),
                    BuiltTarget::Jump(chain) => match self.new_offsets.firsts.get(chain as usize) {
                        None | Some(&NO_OFFSET) => return Err(EditError::NoSuchChain),
                        Some(&first) => Some(first),
                    },
                };
                if let Some(to) = to {
                    // An entry with a verdict ends with a standard target.
                    let at = self.length.saturating_sub(STANDARD_TARGET - VERDICT);
                    put(&mut self.argument, at, &to.to_ne_bytes());
                }
                let counters = match counter_ref.resolve(&self.editor.explicit) {
                    EntryCounters::Own => built.counters,
                    EntryCounters::Zeroed => Counters::default(),
                    EntryCounters::Explicit(counters) => counters,
                };
                self.count(CounterSource::Explicit(counters));
                Ok(())
            }
        }
    }

    /// Preserves the entries between two offsets of the old table.
    fn preserve(&mut self, start: u32, end: u32, number: u32, count: u32) -> Result<(), EditError> {
        let (start, end) = (start as usize, end as usize);
        match &mut self.pending {
            Some(pending) if pending.end == start && pending.end - pending.start < CHUNK_SIZE => {
                pending.end = end;
                pending.count += count;
            }
            _ => {
                self.flush()?;
                self.pending = Some(Pending {
                    start,
                    end,
                    number,
                    count,
                });
            }
        }
        Ok(())
    }

    /// Copies the pending entries, and updates their jumps to the new offsets of chains.
    fn flush(&mut self) -> Result<(), EditError> {
        let Some(Pending {
            start,
            end,
            number,
            count,
        }) = self.pending.take()
        else {
            return Ok(());
        };
        let new = self.offset();
        let copied = self.length;
        let bytes = self.old.get(start..end).unwrap_or_default();
        self.write(bytes);
        self.count(CounterSource::Preserved { number, count });
        if self.new_offsets.unmoved && new as usize == start {
            return Ok(());
        }
        let copy = self.argument.get_mut(copied..self.length);
        let copy = copy.unwrap_or_default();
        let mut at = 0;
        while at < copy.len() {
            let entry = Entry::at(self.editor.layout, copy, at)
                .map_err(|malformed| Malformed::new(start + malformed.offset, malformed.problem))?;
            let length = entry.bytes.len();
            let target_offset = entry.target_offset;
            if let Some(to) = entry
                .verdict()
                .and_then(|verdict| u32::try_from(verdict).ok())
            {
                let to = if to as usize == start + at + length {
                    // Offsets fit, as above.
                    new + (at + length) as u32
                } else {
                    match self.new_offsets.moved(to) {
                        Some(to) => to,
                        None => {
                            let problem = Problem::Jump { to };
                            return Err(Malformed::new(start + at, problem).into());
                        }
                    }
                };
                put(copy, at + target_offset + VERDICT, &to.to_ne_bytes());
            }
            at += length;
        }
        Ok(())
    }

    /// Writes the next bytes. `NewOffsets` has checked that there is space.
    fn write(&mut self, bytes: &[u8]) {
        put(&mut self.argument, self.length, bytes);
        self.length += bytes.len();
    }

    fn count(&mut self, counted: CounterSource) {
        CounterSource::push(&mut self.counted, counted);
    }

    /// Writes an entry that matches every packet; the caller fills in its target.
    fn plain_entry(&mut self, target_size: usize) -> Result<usize, EditError> {
        self.flush()?;
        let layout = self.editor.layout;
        let start = self.length;
        let size = layout.entry + target_size;
        self.length += size;
        // All values are below a few hundred bytes.
        for (at, value) in [
            (layout.target_offset, layout.entry as u16),
            (layout.next_offset, size as u16),
            (layout.entry, target_size as u16),
        ] {
            put(&mut self.argument, start + at, &value.to_ne_bytes());
        }
        Ok(start)
    }

    fn standard_entry(&mut self, verdict: i32, counters: Counters) -> Result<(), EditError> {
        let start = self.plain_entry(STANDARD_TARGET)?;
        let layout = self.editor.layout;
        let at = start + layout.entry + VERDICT;
        put(&mut self.argument, at, &verdict.to_ne_bytes());
        let at = start + layout.counters;
        put(&mut self.argument, at, &counters.packets.to_ne_bytes());
        let at = at + size_of::<u64>();
        put(&mut self.argument, at, &counters.bytes.to_ne_bytes());
        Ok(())
    }

    /// Writes the head of a user-defined chain.
    fn error_entry(&mut self, name: &[u8]) -> Result<(), EditError> {
        let target = self.plain_entry(ERROR_TARGET)? + self.editor.layout.entry;
        put(
            &mut self.argument,
            target + TARGET_NAME,
            XT_ERROR_TARGET.as_bytes(),
        );
        put(&mut self.argument, target + ERROR_NAME, name);
        self.count(CounterSource::Explicit(Counters::default()));
        Ok(())
    }

    /// Writes the end of the table.
    fn end(mut self) -> Result<Replacement, EditError> {
        let info = self.editor.table.info();
        let end = end_of_chains(self.editor);
        let number = info.num_entries().saturating_sub(1);
        // Both are offsets in the old table, whose size is a u32.
        self.preserve(end as u32, self.old.len() as u32, number, 1)?;
        self.flush()?;
        debug_assert_eq!(self.length, self.head + self.new_offsets.size as usize);
        let new = Info::new(
            info.family(),
            info.name().padded(),
            info.valid_hooks(),
            &self.hook_entry,
            &self.underflow,
            self.new_offsets.num_entries,
            self.new_offsets.size,
        )?;
        Ok(Replacement::new(
            new,
            info.num_entries(),
            self.argument,
            self.counted,
        ))
    }
}

/// Overwrites existing bytes.
fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes
        .get_mut(at..)
        .and_then(|rest| rest.get_mut(..value.len()))
    {
        place.copy_from_slice(value);
    }
}
