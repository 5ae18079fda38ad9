//! Chains and rules of a draft, as they are now.

use std::fmt;

use bstr::BStr;

use super::item::{BuiltTarget, Count, Counting, Item};
use super::{ChainId, Draft};
use crate::legacy::entry::Entry;
use crate::legacy::{
    Builtin, Counters, ExtensionRef, Header, Hook, Malformed, Matches, Problem, RuleRef, Rules,
    Target,
};

/// A chain of a draft.
#[derive(Clone, Copy)]
pub struct DraftChain<'d> {
    draft: &'d Draft<'d>,
    id: ChainId,
}

impl<'d> DraftChain<'d> {
    pub(super) const fn new(draft: &'d Draft<'d>, id: ChainId) -> Self {
        Self { draft, id }
    }

    /// The chain's id in its draft.
    #[must_use]
    pub const fn id(&self) -> ChainId {
        self.id
    }

    /// The chain's name.
    #[must_use]
    pub fn name(&self) -> &'d BStr {
        self.draft.name_of(self.id.number)
    }

    /// Hook, policy and the policy's counters of a built-in chain; `None` for a user-defined one.
    #[must_use]
    pub fn builtin(&self) -> Option<Builtin> {
        let kept = self.draft.kept(self.id.number)?.builtin()?;
        let Some(edit) = self.draft.edit(self.id.number) else {
            return Some(kept);
        };
        Some(Builtin {
            hook: kept.hook,
            policy: edit.policy.unwrap_or(kept.policy),
            counters: match edit.foot {
                Count::Own => kept.counters,
                Count::Zeroed => Counters::default(),
                Count::Given(counters) => counters,
            },
        })
    }

    /// The hook of a built-in chain; `None` for a user-defined one.
    #[must_use]
    pub fn hook(&self) -> Option<Hook> {
        self.draft.hook_of(self.id.number)
    }

    /// Number of rules.
    #[must_use]
    pub fn rule_count(&self) -> usize {
        self.draft.rule_count(self.id.number)
    }

    /// The rules, in order.
    #[must_use]
    pub fn rules(&self) -> DraftRules<'d> {
        let source = match self
            .draft
            .edit(self.id.number)
            .and_then(|e| e.rules.as_ref())
        {
            Some(items) => Source::Items(items.iter()),
            None => match self.draft.kept(self.id.number) {
                Some(chain) => Source::Kept(chain.rules()),
                None => Source::Items([].iter()),
            },
        };
        DraftRules {
            draft: self.draft,
            source,
        }
    }

    /// The rule at that position, counted from 0. In a chain that has not been changed this walks over
    /// the rules before it.
    #[must_use]
    pub fn rule(&self, position: usize) -> Option<DraftRule<'d>> {
        self.rules().nth(position)
    }
}

impl fmt::Debug for DraftChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DraftChain")
            .field("name", &self.name())
            .field("builtin", &self.builtin())
            .field("rules", &self.rule_count())
            .finish()
    }
}

/// The rules of a chain of a draft, in order ([`DraftChain::rules`]).
#[derive(Clone, Debug)]
pub struct DraftRules<'d> {
    draft: &'d Draft<'d>,
    source: Source<'d>,
}

#[derive(Clone, Debug)]
enum Source<'d> {
    /// As they were read.
    Kept(Rules<'d>),
    Items(std::slice::Iter<'d, Item>),
}

impl<'d> Iterator for DraftRules<'d> {
    type Item = DraftRule<'d>;

    fn next(&mut self) -> Option<Self::Item> {
        self.nth(0)
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        match &mut self.source {
            Source::Kept(rules) => {
                let rule = rules.nth(n)?;
                Some(DraftRule {
                    draft: self.draft,
                    item: Draft::item(&rule),
                    entry: *rule.entry(),
                })
            }
            Source::Items(items) => {
                let item = *items.nth(n)?;
                let entry = self.draft.entry(&item)?;
                Some(DraftRule {
                    draft: self.draft,
                    item,
                    entry,
                })
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.source {
            Source::Kept(rules) => rules.size_hint(),
            Source::Items(items) => items.size_hint(),
        }
    }
}

impl ExactSizeIterator for DraftRules<'_> {}

/// A rule of a chain of a draft: one that was read, or a new one.
#[derive(Clone, Copy)]
pub struct DraftRule<'d> {
    draft: &'d Draft<'d>,
    item: Item,
    entry: Entry<'d>,
}

/// What a rule of a draft does with a packet: [`Target`], with chains of the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DraftTarget<'d> {
    /// Lets the packet go on.
    Accept,
    /// Throws the packet away.
    Drop,
    /// Hands the packet to a program.
    Queue,
    /// Goes back to the calling chain, or to the policy in a built-in chain.
    Return,
    /// Goes on with the next rule.
    FallThrough,
    /// Goes to the start of another chain; its return leads to the next rule.
    Jump(ChainId),
    /// Goes to the start of another chain for good.
    Goto(ChainId),
    /// Does what the extension says.
    Extension(ExtensionRef<'d>),
    /// A verdict that is none of the above, as the kernel keeps it.
    Verdict(i32),
}

impl<'d> DraftRule<'d> {
    /// The rule as it was read, if it is not a new one. Its counters may have been set since.
    #[must_use]
    pub fn kept(&self) -> Option<RuleRef<'d>> {
        match self.item {
            Item::Kept { offset, number, .. } => Some(RuleRef::new(
                self.draft.table,
                self.entry,
                offset as usize,
                number,
            )),
            Item::New { .. } => None,
        }
    }

    /// Which packets the rule is for, before its matches are asked.
    #[must_use]
    pub fn header(&self) -> Header<'d> {
        Header::of(self.draft.table.family(), self.entry.bytes)
    }

    /// The matches, in order. Errors of a new rule, which it cannot have, would be at 0.
    #[must_use]
    pub fn matches(&self) -> Matches<'d> {
        match self.kept() {
            Some(rule) => rule.matches(),
            None => Matches::new(
                self.entry.bytes,
                self.draft.layout.entry,
                self.entry.target_offset,
                0,
            ),
        }
    }

    /// What happens to a packet that the rule is for.
    ///
    /// # Errors
    /// A rule that was read has a target that cannot be.
    pub fn target(&self) -> Result<DraftTarget<'d>, Malformed> {
        let Item::New { built, .. } = self.item else {
            return self.kept_target();
        };
        let goto = self.header().is_goto();
        match self.draft.built.get(built as usize).map(|b| b.target) {
            Some(BuiltTarget::Jump(chain)) if goto => {
                return Ok(DraftTarget::Goto(self.draft.id(chain)));
            }
            Some(BuiltTarget::Jump(chain)) => return Ok(DraftTarget::Jump(self.draft.id(chain))),
            Some(BuiltTarget::FallThrough) => return Ok(DraftTarget::FallThrough),
            _ => {}
        }
        let raw = ExtensionRef::of(self.entry.target(), 0)?;
        Ok(match self.entry.verdict() {
            Some(verdict) => verdict_target(verdict),
            None => DraftTarget::Extension(raw),
        })
    }

    fn kept_target(&self) -> Result<DraftTarget<'d>, Malformed> {
        let Some(rule) = self.kept() else {
            return Ok(DraftTarget::FallThrough);
        };
        let chain = |to: crate::legacy::ChainRef<'_>| {
            let position = self.draft.table.position_at(to.offset());
            position
                .and_then(|p| u32::try_from(p).ok())
                .map(|id| self.draft.id(id))
                .ok_or_else(|| {
                    // As far as a u32: it was one in the entry.
                    let to = to.offset() as u32;
                    Malformed::new(rule.offset(), Problem::Jump { to })
                })
        };
        Ok(match rule.target()? {
            Target::Accept => DraftTarget::Accept,
            Target::Drop => DraftTarget::Drop,
            Target::Queue => DraftTarget::Queue,
            Target::Return => DraftTarget::Return,
            Target::FallThrough => DraftTarget::FallThrough,
            Target::Jump(to) => DraftTarget::Jump(chain(to)?),
            Target::Goto(to) => DraftTarget::Goto(chain(to)?),
            Target::Extension(extension) => DraftTarget::Extension(extension),
            Target::Verdict(verdict) => DraftTarget::Verdict(verdict),
        })
    }

    /// The rule's counters: those read, given, or zero. What the kernel counted since the table was read
    /// is added when it is replaced.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let (counting, own) = match self.item {
            Item::Kept { counting, .. } => {
                let own = self.kept().map(|rule| rule.counters());
                (counting, own.unwrap_or_default())
            }
            Item::New { built, counting } => {
                let built = self.draft.built.get(built as usize);
                (counting, built.map(|b| b.counters).unwrap_or_default())
            }
        };
        match Counting::resolve(counting, &self.draft.given) {
            Count::Own => own,
            Count::Zeroed => Counters::default(),
            Count::Given(counters) => counters,
        }
    }
}

fn verdict_target<'d>(verdict: i32) -> DraftTarget<'d> {
    use crate::legacy::entry::{VERDICT_ACCEPT, VERDICT_DROP, VERDICT_RETURN};
    use crate::legacy::target::VERDICT_QUEUE;
    match verdict {
        VERDICT_ACCEPT => DraftTarget::Accept,
        VERDICT_DROP => DraftTarget::Drop,
        VERDICT_QUEUE => DraftTarget::Queue,
        VERDICT_RETURN => DraftTarget::Return,
        other => DraftTarget::Verdict(other),
    }
}

impl fmt::Debug for DraftRule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DraftRule")
            .field("kept", &self.kept().map(|rule| rule.number()))
            .field("header", &self.header())
            .field("matches", &self.matches().collect::<Vec<_>>())
            .field("target", &self.target())
            .field("counters", &self.counters())
            .finish()
    }
}
