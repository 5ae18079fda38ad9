//! New rules.

use std::cell::OnceCell;

use bstr::BString;
use chainwright_sys::x_tables::{
    XT_ALIGN, XT_ERROR_TARGET, XT_EXTENSION_MAXNAMELEN, xt_entry_match,
};

use super::item::{Built, BuiltTarget, Gap};
use super::{ChainId, EditError, EditorId, Own, TableEditor};
use crate::legacy::entry::{
    EXTENSION_HEAD, STANDARD_TARGET, VERDICT, VERDICT_ACCEPT, VERDICT_DROP, VERDICT_RETURN,
};
use crate::legacy::extension::{NAME, REVISION};
use crate::legacy::target::VERDICT_QUEUE;
use crate::legacy::{Counters, HeaderBuf};

/// A new rule. It can be inserted, any number of times, into chains of the editor that built it or of
/// clones made later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a built rule is not in a chain yet"]
pub struct NewRule {
    pub(super) number: u32,
    pub(super) editor_id: EditorId,
}

/// The target of a new rule: the action for a matching packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewTarget<'a> {
    /// Accepts the packet.
    Accept,
    /// Drops the packet.
    Drop,
    /// Queues the packet to user space.
    Queue,
    /// Returns to the calling chain, or to the policy in a built-in chain.
    Return,
    /// Continues with the next rule: a rule without a target, which only counts.
    FallThrough,
    /// Jumps to a user-defined chain; a return from it continues with the next rule.
    Jump(ChainId),
    /// Goes to a user-defined chain, without coming back. Not in ARP tables.
    Goto(ChainId),
    /// Applies the extension.
    Extension {
        /// The extension's name: 1 to 28 bytes.
        name: &'a [u8],
        /// The revision, which determines the layout of the data.
        revision: u8,
        /// The kernel's struct in host byte order; padded with zeros to a multiple of 8.
        data: &'a [u8],
    },
}

/// Builder of a rule ([`TableEditor::build`]). Dropping it unfinished has no effect.
#[derive(Debug)]
pub struct RuleBuilder<'d, 't> {
    editor: &'d mut TableEditor<'t>,
    counters: Counters,
    /// The longest run of zeros at the end of an extension's data.
    gap: Gap,
}

const _: () = assert!(size_of::<xt_entry_match>() == EXTENSION_HEAD);

impl<'d, 't> RuleBuilder<'d, 't> {
    pub(super) fn new(
        editor: &'d mut TableEditor<'t>,
        header: &HeaderBuf,
    ) -> Result<Self, EditError> {
        let (header_family, table) = (header.family(), editor.table.family());
        if header_family != table {
            return Err(EditError::Family {
                header: header_family,
                table,
            });
        }
        editor.scratch.clear();
        let layout = editor.layout;
        let mut builder = Self {
            editor,
            counters: Counters::default(),
            gap: Gap::default(),
        };
        header.write(builder.extend(layout.entry)?);
        if let Some((flags, goto)) = layout.goto {
            // Only a goto has this flag.
            builder.entry()[flags] &= !goto;
        }
        Ok(builder)
    }

    /// Returns the bytes of the entry so far.
    fn entry(&mut self) -> &mut [u8] {
        &mut self.editor.scratch
    }

    /// Extends the entry by `length` zeros (rounded up to a multiple of `XT_ALIGN`) and returns them.
    fn extend(&mut self, length: usize) -> Result<&mut [u8], EditError> {
        let before = self.editor.scratch.len();
        let units = length.div_ceil(XT_ALIGN);
        let size = before.saturating_add(units.saturating_mul(XT_ALIGN));
        if size > usize::from(u16::MAX) {
            return Err(EditError::RuleTooLong { size });
        }
        self.editor.scratch.resize(size, 0);
        Ok(&mut self.editor.scratch[before..])
    }

    /// Appends a match, or an extension as target, which has the same header layout.
    fn extension(&mut self, name: &[u8], revision: u8, data: &[u8]) -> Result<(), EditError> {
        if name.is_empty()
            || name.len() >= XT_EXTENSION_MAXNAMELEN
            || name.contains(&0)
            || name == XT_ERROR_TARGET.as_bytes()
        {
            let name = BString::from(name);
            return Err(EditError::ExtensionName { name });
        }
        let place = self.extend(EXTENSION_HEAD.saturating_add(data.len()))?;
        // `extend` has checked the size.
        let size = place.len() as u16;
        place[..2].copy_from_slice(&size.to_ne_bytes());
        place[NAME..][..name.len()].copy_from_slice(name);
        place[REVISION] = revision;
        place[EXTENSION_HEAD..][..data.len()].copy_from_slice(data);
        // Look for a run of zeros that is worth omitting.
        let pieces = data.as_chunks::<16>().0;
        if pieces.len() >= 8 {
            let last = pieces.iter().rposition(|piece| *piece != [0; 16]);
            let preserved = last.map_or(0, |last| last + 1);
            let start = self.entry().len() - usize::from(size) + EXTENSION_HEAD;
            // Fits: it is at most the length of an entry.
            let length = ((pieces.len() - preserved) * 16) as u16;
            if length > self.gap.length {
                self.gap = Gap {
                    start: (start + preserved * 16) as u16,
                    length,
                };
            }
        }
        Ok(())
    }

    /// Appends a match. `data` is the kernel's struct in host byte order; it is padded with zeros to a
    /// multiple of 8 bytes.
    ///
    /// # Errors
    /// [`EditError::ExtensionName`], or [`EditError::RuleTooLong`]. The rule is then unchanged.
    pub fn push_match(
        &mut self,
        name: impl AsRef<[u8]>,
        revision: u8,
        data: &[u8],
    ) -> Result<&mut Self, EditError> {
        self.extension(name.as_ref(), revision, data)?;
        Ok(self)
    }

    /// Sets the initial counters of the rule; the default is zero.
    pub const fn counters(&mut self, counters: Counters) -> &mut Self {
        self.counters = counters;
        self
    }

    /// Ends the rule with its target.
    ///
    /// # Errors
    /// [`EditError::NoSuchChain`] or [`EditError::Builtin`] for a jump, [`EditError::NoGoto`],
    /// [`EditError::ExtensionName`], or [`EditError::RuleTooLong`].
    pub fn finish(mut self, target: NewTarget<'_>) -> Result<NewRule, EditError> {
        let layout = self.editor.layout;
        let target_offset = self.entry().len();
        let mut kind = BuiltTarget::Bytes;
        let mut goto = false;
        let mut verdict = 0;
        match target {
            NewTarget::Accept => verdict = VERDICT_ACCEPT,
            NewTarget::Drop => verdict = VERDICT_DROP,
            NewTarget::Queue => verdict = VERDICT_QUEUE,
            NewTarget::Return => verdict = VERDICT_RETURN,
            NewTarget::FallThrough => kind = BuiltTarget::FallThrough,
            NewTarget::Jump(chain) | NewTarget::Goto(chain) => {
                self.editor.user_chain(chain)?;
                kind = BuiltTarget::Jump(chain.number);
                goto = matches!(target, NewTarget::Goto(_));
            }
            NewTarget::Extension { .. } => {}
        }
        if let NewTarget::Extension {
            name,
            revision,
            data,
        } = target
        {
            self.extension(name, revision, data)?;
        } else {
            let place = self.extend(STANDARD_TARGET)?;
            // The assertion above checks the size.
            place[..2].copy_from_slice(&(STANDARD_TARGET as u16).to_ne_bytes());
            place[VERDICT..][..size_of::<i32>()].copy_from_slice(&verdict.to_ne_bytes());
        }
        if goto {
            let (flags, bit) = layout.goto.ok_or(EditError::NoGoto)?;
            self.entry()[flags] |= bit;
        }
        let (counters, gap) = (self.counters, self.gap);
        let entry = self.entry();
        let length = entry.len() as u16;
        let mut put = |at: usize, bytes: &[u8]| entry[at..][..bytes.len()].copy_from_slice(bytes);
        // `extend` has checked that both fit.
        put(layout.target_offset, &(target_offset as u16).to_ne_bytes());
        put(layout.next_offset, &length.to_ne_bytes());
        put(layout.counters, &counters.packets.to_ne_bytes());
        put(
            layout.counters + size_of::<u64>(),
            &counters.bytes.to_ne_bytes(),
        );

        let TableEditor {
            arena,
            built,
            scratch,
            own: Own(editor_id),
            ..
        } = &mut *self.editor;
        let editor_id = *editor_id;
        let too_large = EditError::TableTooLarge {
            size: arena.len() as u64,
        };
        let (head, tail) = (&scratch[..gap.range().start], &scratch[gap.range().end..]);
        let stored = head.len() + tail.len();
        let (Ok(rule), Ok(space)) = (u32::try_from(built.len()), arena.space(stored)) else {
            return Err(too_large);
        };
        space[..head.len()].copy_from_slice(head);
        space[head.len()..].copy_from_slice(tail);
        built.push(Built {
            at: arena.take(stored),
            length,
            gap,
            whole: OnceCell::new(),
            target: kind,
            counters,
            editor_id,
        });
        Ok(NewRule {
            number: rule,
            editor_id,
        })
    }
}
