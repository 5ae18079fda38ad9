//! A chain of a table: built-in or user-defined.

use std::fmt;
use std::slice;

use bstr::{BStr, ByteSlice};

use super::entry::Entry;
use super::rule::{Counters, RuleRef, Rules};
use super::{Hook, Table};

/// Position of a chain in the entries of its table. Offsets are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// The head of a user-defined chain, or the first rule of a built-in chain.
    pub(super) head: u32,
    /// The first rule.
    pub(super) first: u32,
    /// The policy or the implicit return; equal to `end` if there is neither.
    pub(super) final_entry: u32,
    /// The end of the last entry.
    pub(super) end: u32,
    /// Index of the entry at `head` among all entries of the table.
    pub(super) number: u32,
    /// Number of entries from `head` to `end`.
    pub(super) entries: u32,
    /// The hook of a built-in chain.
    pub(super) hook: Option<Hook>,
    /// The policy of a built-in chain.
    pub(super) policy: Policy,
}

impl Span {
    pub(super) const fn user(head: u32, first: u32, number: u32) -> Self {
        let (final_entry, end, hook) = (first, first, None);
        Self {
            head,
            first,
            final_entry,
            end,
            number,
            entries: 0,
            hook,
            policy: Policy::Accept,
        }
    }

    pub(super) const fn builtin(head: u32, number: u32, hook: Hook) -> Self {
        let (first, final_entry, end, hook) = (head, head, head, Some(hook));
        Self {
            head,
            first,
            final_entry,
            end,
            number,
            entries: 0,
            hook,
            policy: Policy::Accept,
        }
    }
}

/// Verdict for packets that no rule of a built-in chain accepted or dropped.
///
/// nf_tables has its own [`Policy`](crate::nft::Policy), which is open because newer kernels may send
/// other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The packet continues.
    Accept,
    /// The packet is dropped.
    Drop,
}

impl Policy {
    /// Returns the policy as iptables writes it: `ACCEPT` or `DROP`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accept => "ACCEPT",
            Self::Drop => "DROP",
        }
    }
}

impl fmt::Display for Policy {
    /// Formats as `ACCEPT` or `DROP`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Hook, policy and policy counters, which only a built-in chain has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The hook at which packets enter the chain.
    pub hook: Hook,
    /// Verdict for packets that reach the end of the chain.
    pub policy: Policy,
    /// Counters of the policy.
    pub counters: Counters,
}

/// A chain of a table. Two values are equal if they are the same chain of the same [`Table`].
#[derive(Clone, Copy)]
pub struct ChainRef<'t> {
    table: &'t Table,
    span: &'t Span,
}

impl<'t> ChainRef<'t> {
    pub(super) const fn new(table: &'t Table, span: &'t Span) -> Self {
        Self { table, span }
    }

    /// Returns the table of the chain.
    #[must_use]
    pub const fn table(&self) -> &'t Table {
        self.table
    }

    /// Returns the chain's name, up to 29 bytes: the hook's name ([`Hook::chain_name`]) or a user-defined name.
    #[must_use]
    pub fn name(&self) -> &'t BStr {
        match self.span.hook {
            Some(hook) => hook.chain_name().as_bytes().as_bstr(),
            None => self
                .entry(self.span.head)
                .and_then(|head| head.error_name())
                .unwrap_or_default()
                .as_bstr(),
        }
    }

    /// Returns the hook, policy and policy counters of a built-in chain; `None` for a user-defined one.
    #[must_use]
    pub fn builtin(&self) -> Option<Builtin> {
        let hook = self.span.hook?;
        let counters = self.final_entry()?.counters();
        Some(Builtin {
            hook,
            policy: self.span.policy,
            counters,
        })
    }

    /// Returns the hook of a built-in chain; `None` for a user-defined one.
    #[must_use]
    pub const fn hook(&self) -> Option<Hook> {
        self.span.hook
    }

    /// Returns the policy of a built-in chain; `None` for a user-defined one.
    #[must_use]
    pub const fn policy(&self) -> Option<Policy> {
        match self.span.hook {
            Some(_) => Some(self.span.policy),
            None => None,
        }
    }

    /// Returns the number of rules, without the policy and the implicit return.
    #[must_use]
    pub const fn rule_count(&self) -> usize {
        let head = self.span.hook.is_none() as u32;
        let final_entry = (self.span.final_entry != self.span.end) as u32;
        self.span.entries.saturating_sub(head + final_entry) as usize
    }

    /// Returns the rules, in order.
    #[must_use]
    pub fn rules(&self) -> Rules<'t> {
        Rules::new(
            self.table,
            self.span.first as usize,
            self.span.number + u32::from(self.span.hook.is_none()),
            self.rule_count(),
        )
    }

    /// Returns the entry after the last rule: the policy of a built-in chain, or the return that
    /// iptables puts at the end of every user-defined chain. `None` if a user-defined chain ends
    /// without one.
    ///
    /// Its counters show how many packets passed through the whole chain.
    #[must_use]
    pub fn final_entry(&self) -> Option<RuleRef<'t>> {
        if self.span.final_entry == self.span.end {
            return None;
        }
        let entry = self.entry(self.span.final_entry)?;
        let number = self.span.number + self.span.entries - 1;
        Some(RuleRef::new(
            self.table,
            entry,
            self.span.final_entry as usize,
            number,
        ))
    }

    /// Returns the offset in bytes of the chain's first rule (or of the entry after it) in the table's entries. This is
    /// the value that a jump to the chain holds.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.span.first as usize
    }

    /// Returns all entries of the chain as the kernel sent them: head, rules, policy or return.
    #[must_use]
    pub fn bytes(&self) -> &'t [u8] {
        self.table
            .entries()
            .get(self.span.head as usize..self.span.end as usize)
            .unwrap_or_default()
    }

    fn entry(&self, offset: u32) -> Option<Entry<'t>> {
        Entry::at(
            self.table.family().layout(),
            self.table.entries(),
            offset as usize,
        )
        .ok()
    }
}

impl PartialEq for ChainRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.table, other.table) && self.span.head == other.span.head
    }
}

impl Eq for ChainRef<'_> {}

impl fmt::Debug for ChainRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ChainRef");
        debug.field("name", &self.name());
        if let Some(builtin) = self.builtin() {
            debug
                .field("policy", &builtin.policy)
                .field("counters", &builtin.counters);
        }
        debug.field("rules", &self.rule_count()).finish()
    }
}

/// The chains of a table, in the kernel's order ([`Table::chains`]).
#[derive(Clone, Debug)]
pub struct Chains<'t> {
    table: &'t Table,
    spans: slice::Iter<'t, Span>,
}

impl<'t> Chains<'t> {
    pub(super) fn new(table: &'t Table, spans: &'t [Span]) -> Self {
        Self {
            table,
            spans: spans.iter(),
        }
    }
}

impl<'t> Iterator for Chains<'t> {
    type Item = ChainRef<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        self.spans
            .next()
            .map(|span| ChainRef::new(self.table, span))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl DoubleEndedIterator for Chains<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.spans
            .next_back()
            .map(|span| ChainRef::new(self.table, span))
    }
}

impl ExactSizeIterator for Chains<'_> {}
impl std::iter::FusedIterator for Chains<'_> {}
