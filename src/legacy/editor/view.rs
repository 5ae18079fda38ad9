//! Views of an editor's current chains and rules.

use std::fmt;

use bstr::BStr;

use super::item::{BuiltTarget, CompactCounters, EntryCounters, Item};
use super::{ChainId, TableEditor};
use crate::legacy::entry::Entry;
use crate::legacy::{
    Builtin, Counters, ExtensionRef, Header, Hook, Malformed, Matches, Problem, RuleRef, Rules,
    Target,
};

/// A chain of an editor.
#[derive(Clone, Copy)]
pub struct EditedChain<'d> {
    editor: &'d TableEditor<'d>,
    id: ChainId,
}

impl<'d> EditedChain<'d> {
    pub(super) const fn new(editor: &'d TableEditor<'d>, id: ChainId) -> Self {
        Self { editor, id }
    }

    /// Returns the chain's id in its editor.
    #[must_use]
    pub const fn id(&self) -> ChainId {
        self.id
    }

    /// Returns the chain's name.
    #[must_use]
    pub fn name(&self) -> &'d BStr {
        self.editor.name_of(self.id.number)
    }

    /// Returns the hook, policy and policy counters of a built-in chain; `None` for a user-defined one.
    #[must_use]
    pub fn builtin(&self) -> Option<Builtin> {
        let preserved = self.editor.preserved(self.id.number)?.builtin()?;
        let Some(edit) = self.editor.edit(self.id.number) else {
            return Some(preserved);
        };
        Some(Builtin {
            hook: preserved.hook,
            policy: edit.policy.unwrap_or(preserved.policy),
            counters: match edit.final_entry {
                EntryCounters::Own => preserved.counters,
                EntryCounters::Zeroed => Counters::default(),
                EntryCounters::Explicit(counters) => counters,
            },
        })
    }

    /// Returns the hook of a built-in chain; `None` for a user-defined one.
    #[must_use]
    pub fn hook(&self) -> Option<Hook> {
        self.editor.hook_of(self.id.number)
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.editor.rule_count(self.id.number)
    }

    /// Returns the rules, in order.
    #[must_use]
    pub fn rules(&self) -> EditedRules<'d> {
        let source = match self
            .editor
            .edit(self.id.number)
            .and_then(|e| e.rules.as_ref())
        {
            Some(items) => Source::Items(items.iter()),
            None => match self.editor.preserved(self.id.number) {
                Some(chain) => Source::Preserved(chain.rules()),
                None => Source::Items([].iter()),
            },
        };
        EditedRules {
            editor: self.editor,
            source,
        }
    }

    /// Returns the rule at that position, counted from 0. In an unchanged chain this scans the rules
    /// before it.
    #[must_use]
    pub fn rule(&self, position: usize) -> Option<EditedRule<'d>> {
        self.rules().nth(position)
    }
}

impl fmt::Debug for EditedChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EditedChain")
            .field("name", &self.name())
            .field("builtin", &self.builtin())
            .field("rules", &self.rule_count())
            .finish()
    }
}

/// The rules of an editor's chain, in order ([`EditedChain::rules`]).
#[derive(Clone, Debug)]
pub struct EditedRules<'d> {
    editor: &'d TableEditor<'d>,
    source: Source<'d>,
}

#[derive(Clone, Debug)]
enum Source<'d> {
    /// The rules as they were read.
    Preserved(Rules<'d>),
    Items(std::slice::Iter<'d, Item>),
}

impl<'d> Iterator for EditedRules<'d> {
    type Item = EditedRule<'d>;

    fn next(&mut self) -> Option<Self::Item> {
        self.nth(0)
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        match &mut self.source {
            Source::Preserved(rules) => {
                let rule = rules.nth(n)?;
                Some(EditedRule {
                    editor: self.editor,
                    item: TableEditor::item(&rule),
                    entry: *rule.entry(),
                })
            }
            Source::Items(items) => {
                let item = *items.nth(n)?;
                let entry = self.editor.entry(&item)?;
                Some(EditedRule {
                    editor: self.editor,
                    item,
                    entry,
                })
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.source {
            Source::Preserved(rules) => rules.size_hint(),
            Source::Items(items) => items.size_hint(),
        }
    }
}

impl ExactSizeIterator for EditedRules<'_> {}

/// A rule of an editor's chain: one that was read, or a new one.
#[derive(Clone, Copy)]
pub struct EditedRule<'d> {
    editor: &'d TableEditor<'d>,
    item: Item,
    entry: Entry<'d>,
}

/// The target of an editor's rule: like [`Target`], with chains of the editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditedTarget<'d> {
    /// Accepts the packet.
    Accept,
    /// Drops the packet.
    Drop,
    /// Queues the packet to user space.
    Queue,
    /// Returns to the calling chain, or to the policy in a built-in chain.
    Return,
    /// Continues with the next rule.
    FallThrough,
    /// Jumps to another chain; a return from it continues with the next rule.
    Jump(ChainId),
    /// Goes to another chain, without coming back.
    Goto(ChainId),
    /// Applies the extension.
    Extension(ExtensionRef<'d>),
    /// Another verdict, as the kernel stores it.
    Verdict(i32),
}

impl<'d> EditedRule<'d> {
    /// Returns the rule as it was read; `None` for a new rule. Its counters may have been set since.
    #[must_use]
    pub fn preserved(&self) -> Option<RuleRef<'d>> {
        match self.item {
            Item::Preserved { offset, number, .. } => Some(RuleRef::new(
                self.editor.table,
                self.entry,
                offset as usize,
                number,
            )),
            Item::New { .. } => None,
        }
    }

    /// Returns the packets to which the rule applies, before its matches are evaluated.
    #[must_use]
    pub fn header(&self) -> Header<'d> {
        Header::of(self.editor.table.family(), self.entry.bytes)
    }

    /// Returns the matches, in order. An error in a new rule, which cannot occur, would have offset 0.
    #[must_use]
    pub fn matches(&self) -> Matches<'d> {
        match self.preserved() {
            Some(rule) => rule.matches(),
            None => Matches::new(
                self.entry.bytes,
                self.editor.layout.entry,
                self.entry.target_offset,
                0,
            ),
        }
    }

    /// Returns the rule's verdict, jump or extension target.
    ///
    /// # Errors
    /// The target of a rule that was read is invalid.
    pub fn target(&self) -> Result<EditedTarget<'d>, Malformed> {
        let Item::New { built, .. } = self.item else {
            return self.preserved_target();
        };
        let goto = self.header().is_goto();
        match self.editor.built.get(built as usize).map(|b| b.target) {
            Some(BuiltTarget::Jump(chain)) if goto => {
                return Ok(EditedTarget::Goto(self.editor.id(chain)));
            }
            Some(BuiltTarget::Jump(chain)) => return Ok(EditedTarget::Jump(self.editor.id(chain))),
            Some(BuiltTarget::FallThrough) => return Ok(EditedTarget::FallThrough),
            _ => {}
        }
        let raw = ExtensionRef::of(self.entry.target(), 0)?;
        Ok(match self.entry.verdict() {
            Some(verdict) => verdict_target(verdict),
            None => EditedTarget::Extension(raw),
        })
    }

    fn preserved_target(&self) -> Result<EditedTarget<'d>, Malformed> {
        let Some(rule) = self.preserved() else {
            return Ok(EditedTarget::FallThrough);
        };
        let chain = |to: crate::legacy::ChainRef<'_>| {
            let position = self.editor.table.position_at(to.offset());
            position
                .and_then(|p| u32::try_from(p).ok())
                .map(|id| self.editor.id(id))
                .ok_or_else(|| {
                    // Fits: it was a u32 in the entry.
                    let to = to.offset() as u32;
                    Malformed::new(rule.offset(), Problem::Jump { to })
                })
        };
        Ok(match rule.target()? {
            Target::Accept => EditedTarget::Accept,
            Target::Drop => EditedTarget::Drop,
            Target::Queue => EditedTarget::Queue,
            Target::Return => EditedTarget::Return,
            Target::FallThrough => EditedTarget::FallThrough,
            Target::Jump(to) => EditedTarget::Jump(chain(to)?),
            Target::Goto(to) => EditedTarget::Goto(chain(to)?),
            Target::Extension(extension) => EditedTarget::Extension(extension),
            Target::Verdict(verdict) => EditedTarget::Verdict(verdict),
        })
    }

    /// Returns the rule's counters: read, given, or zero. The replacement adds what the kernel has counted since the
    /// table was read.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let (counter_ref, own) = match self.item {
            Item::Preserved { counter_ref, .. } => {
                let own = self.preserved().map(|rule| rule.counters());
                (counter_ref, own.unwrap_or_default())
            }
            Item::New { built, counter_ref } => {
                let built = self.editor.built.get(built as usize);
                (counter_ref, built.map(|b| b.counters).unwrap_or_default())
            }
        };
        match CompactCounters::resolve(counter_ref, &self.editor.explicit) {
            EntryCounters::Own => own,
            EntryCounters::Zeroed => Counters::default(),
            EntryCounters::Explicit(counters) => counters,
        }
    }
}

fn verdict_target<'d>(verdict: i32) -> EditedTarget<'d> {
    use crate::legacy::entry::{VERDICT_ACCEPT, VERDICT_DROP, VERDICT_RETURN};
    use crate::legacy::target::VERDICT_QUEUE;
    match verdict {
        VERDICT_ACCEPT => EditedTarget::Accept,
        VERDICT_DROP => EditedTarget::Drop,
        VERDICT_QUEUE => EditedTarget::Queue,
        VERDICT_RETURN => EditedTarget::Return,
        other => EditedTarget::Verdict(other),
    }
}

impl fmt::Debug for EditedRule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EditedRule")
            .field("kept", &self.preserved().map(|rule| rule.number()))
            .field("header", &self.header())
            .field("matches", &self.matches().collect::<Vec<_>>())
            .field("target", &self.target())
            .field("counters", &self.counters())
            .finish()
    }
}
