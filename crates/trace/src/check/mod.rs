//! Finds rules, chains and sets of nf_tables without effect.
//!
//! [`examine`] inspects the tables of a [`Snapshot`], which may come from the kernel or from a file, and returns a
//! [`Finding`] for each [`Fault`].
//!
//! A rule without effect is only reported if that follows from the rules of its chain:
//!
//! - the conditions of a rule are compared by their meaning: prefixes, ranges, bits, the elements of anonymous and
//!   constant sets, concatenations. A condition without such a meaning, for example a rate limit, is never a reason for
//!   a finding: a rule with one hides no other rule;
//! - one earlier rule alone must match all packets of a later one. Several rules that do so together are not found;
//! - between the two rules, no rule may change the compared data, and no chain to which such a rule jumps;
//! - elements of named sets are not compared, because they change without the rules. Two lookups of the same data in
//!   the same named set are the same condition, unless rules or timeouts change the set.
//!
//! This supposes that neither the ruleset nor the packet's connection, socket and route change while the packet passes
//! the chain.
//!
//! ```
//! # #[cfg(feature = "text")] {
//! use chainwright::nft::Scope;
//! use chainwright_lang::Script;
//! use chainwright_trace::check;
//!
//! let text = "table ip filter { chain input { type filter hook input priority 0; \
//!     ip saddr 10.0.0.0/8 accept; ip saddr 10.1.0.0/16 drop; }; }";
//! let ruleset = Script::parse("rules.nft", text)?.ruleset()?;
//! let findings = check::examine(&ruleset.to_snapshot(&Scope::all()));
//! assert_eq!(
//!     findings[0].to_string(),
//!     "table ip filter, chain input, rule 2: no packet matches this rule: rule 1 matches all of its packets first"
//! );
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | topic | module |
//! |---|---|
//! | findings | `finding.rs` |
//! | comparison of the rules of a chain | `chain.rs` |
//! | meaning of a rule, read from its expressions; the data that it reads | `meaning.rs`, `reader.rs`; `variables.rs` |
//! | sets and chains as rules use them | `table.rs` |
//! | unused and missing objects | `references.rs` |

mod chain;
mod finding;
mod meaning;
mod reader;
mod references;
mod table;
#[cfg(test)]
mod tests;
mod variables;

use crate::graph::Graph;
use chainwright::nft::{Snapshot, SnapshotTable};

pub use finding::{Fault, Finding, Location, Part, Severity};

/// Examines the tables of a snapshot. The most serious findings come first; equally serious ones are in the order of
/// tables, chains and rules.
///
/// The time is proportional to the number of rules and elements, except for long chains with many conditions that
/// overlap: there the number of comparisons is limited, and [`Fault::PartlyCompared`] reports that.
#[must_use]
pub fn examine(snapshot: &Snapshot) -> Vec<Finding> {
    sorted(snapshot.tables().flat_map(of_table).collect())
}

/// Examines a table; otherwise like [`examine`].
#[must_use]
pub fn examine_table(table: SnapshotTable<'_>) -> Vec<Finding> {
    sorted(of_table(table))
}

/// Examines a graph, for a ruleset that the kernel would reject: finds jumps to missing chains, loops, and chains that
/// no packet reaches.
#[must_use]
pub fn examine_graph(graph: &Graph) -> Vec<Finding> {
    sorted(references::of_graph(graph, false))
}

fn of_table(table: SnapshotTable<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    references::examine(&table::TableContext::read(table), &mut findings);
    findings
}

fn sorted(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
    findings
}
