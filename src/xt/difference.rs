//! Intentional differences from iptables, declared next to the code that causes
//! them.

use super::Family;

/// The behavior of a tool for a given rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolBehavior {
    /// It accepts the rule, and prints it like this.
    Prints(&'static str),
    /// It accepts the rule, and prints it unchanged.
    PrintsUnchanged,
    /// It refuses the rule.
    Refuses,
}

/// A rule that this crate intentionally handles differently from iptables 1.8.9.
///
/// Tests also run each rule through the real tool, to verify that the difference
/// exists.
#[derive(Debug, Clone, Copy)]
pub struct Difference {
    /// The rule's family.
    pub family: Family,
    /// Table and chain for the rule.
    pub chain: (&'static str, &'static str),
    /// The rule's options, as they follow `-A CHAIN`.
    pub rule: &'static str,
    /// The behavior of iptables.
    pub iptables: ToolBehavior,
    /// The behavior of this crate.
    pub chainwright: ToolBehavior,
    /// The reason.
    pub reason: &'static str,
}

impl Difference {
    const fn new(
        given: &'static str,
        iptables: ToolBehavior,
        ours: ToolBehavior,
        reason: &'static str,
    ) -> Self {
        Self {
            family: Family::Ipv4,
            chain: ("filter", "INPUT"),
            rule: given,
            iptables,
            chainwright: ours,
            reason,
        }
    }

    /// Creates a difference for a rule that this crate preserves, while iptables prints another
    /// one.
    pub(crate) const fn kept(
        given: &'static str,
        iptables: &'static str,
        reason: &'static str,
    ) -> Self {
        Self::new(
            given,
            ToolBehavior::Prints(iptables),
            ToolBehavior::PrintsUnchanged,
            reason,
        )
    }

    /// Creates a difference for a rule that this crate refuses, while iptables interprets it as
    /// another one.
    pub(crate) const fn refused(
        given: &'static str,
        iptables: &'static str,
        reason: &'static str,
    ) -> Self {
        Self::new(
            given,
            ToolBehavior::Prints(iptables),
            ToolBehavior::Refuses,
            reason,
        )
    }

    /// Sets the text that this crate prints.
    pub(crate) const fn printed(mut self, ours: &'static str) -> Self {
        self.chainwright = ToolBehavior::Prints(ours);
        self
    }

    /// Makes it an IPv6 rule.
    pub(crate) const fn ipv6(mut self) -> Self {
        self.family = Family::Ipv6;
        self
    }

    /// Moves it to another table and chain.
    pub(crate) const fn within(mut self, table: &'static str, chain: &'static str) -> Self {
        self.chain = (table, chain);
        self
    }
}
