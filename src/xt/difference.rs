//! What is on purpose otherwise than in iptables, said beside what decides it.

use super::Family;

/// What a tool does with a rule that is given to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Does {
    /// It takes the rule, and prints it like this.
    Prints(&'static str),
    /// It takes the rule, and prints it as it was given.
    Keeps,
    /// It refuses the rule.
    Refuses,
}

/// A rule with which something else is done here than by iptables 1.8.9, on purpose.
///
/// Tests give each to the real tool as well, so that none is listed that is none.
#[derive(Debug, Clone, Copy)]
pub struct Difference {
    /// The rule's family.
    pub family: Family,
    /// Table and chain that the rule is for.
    pub place: (&'static str, &'static str),
    /// The rule's options, as they stand behind `-A CHAIN`.
    pub given: &'static str,
    /// What iptables does.
    pub iptables: Does,
    /// What is done here.
    pub ours: Does,
    /// Why.
    pub why: &'static str,
}

impl Difference {
    const fn new(given: &'static str, iptables: Does, ours: Does, why: &'static str) -> Self {
        Self {
            family: Family::Ipv4,
            place: ("filter", "INPUT"),
            given,
            iptables,
            ours,
            why,
        }
    }

    /// A rule that is kept as it is given, while iptables prints another one.
    pub(crate) const fn kept(
        given: &'static str,
        iptables: &'static str,
        why: &'static str,
    ) -> Self {
        Self::new(given, Does::Prints(iptables), Does::Keeps, why)
    }

    /// A rule that is refused, while iptables takes it for another one.
    pub(crate) const fn refused(
        given: &'static str,
        iptables: &'static str,
        why: &'static str,
    ) -> Self {
        Self::new(given, Does::Prints(iptables), Does::Refuses, why)
    }

    /// The same, printed like this.
    pub(crate) const fn printed(mut self, ours: &'static str) -> Self {
        self.ours = Does::Prints(ours);
        self
    }

    /// The same for IPv6.
    pub(crate) const fn ipv6(mut self) -> Self {
        self.family = Family::Ipv6;
        self
    }

    /// The same in another place.
    pub(crate) const fn within(mut self, table: &'static str, chain: &'static str) -> Self {
        self.place = (table, chain);
        self
    }
}
