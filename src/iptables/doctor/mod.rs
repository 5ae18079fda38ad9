//! Finds faults in iptables' tables, present or future: rules that a version of iptables-nft misreads, rules in both
//! backends, rules and chains that no packet reaches.
//!
//! [`examine`] inspects tables that were read, of either backend and both families, and changes nothing. A finding is a
//! [`Fault`] with its [`FindingLocation`]: a [risk](Severity::Risk) if packets are accepted or dropped differently than
//! a reader of the rules expects, or will be after the next save and restore; otherwise a [note](Severity::Note).
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let sandbox = chainwright_testing::Sandbox::new()?;
//! # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use chainwright::iptables::doctor::{Severity, ExamineOptions, examine};
//! use chainwright::iptables::{Family, Iptables};
//!
//! let mut iptables = Iptables::nft()?;
//! let text = "*filter\n:INPUT DROP\nCOMMIT\n";
//! iptables.restore(Family::Ipv4, text, &Default::default())?;
//!
//! let tables = [iptables.read(Family::Ipv4, &[])?];
//! let findings = examine(&tables, &ExamineOptions::default());
//! assert_eq!(findings.len(), 1);
//! assert_eq!(findings[0].severity(), Severity::Risk);
//! assert_eq!(
//!     findings[0].to_string(),
//!     "table filter (IPv4, nf_tables), chain INPUT: its policy drops every packet, because it has no rules"
//! );
//! # Ok(()) })?.map_err(|error| error as Box<dyn std::error::Error>)?;
//! # Ok(())
//! # }
//! ```

mod backends;
mod chain;
mod fault;
mod table;

use bstr::BStr;

use super::Tables;
use super::compat::Version;
pub use fault::{Fault, Finding, FindingLocation, Severity};

/// Options of an examination.
#[derive(Clone, Copy)]
pub struct ExamineOptions<'w> {
    /// The versions of iptables-nft that may read and restore the tables: on the node, and in the images of its
    /// agents.
    pub versions: &'w [Version],
    /// Selects chains that indicate the backend an agent writes to: such chains in both backends are a risk.
    pub agent_chains: &'w dyn Fn(&BStr) -> bool,
}

impl Default for ExamineOptions<'_> {
    /// Returns options for all versions, without agents.
    fn default() -> Self {
        Self {
            versions: &Version::ALL,
            agent_chains: &|_| false,
        }
    }
}

impl std::fmt::Debug for ExamineOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("What")
            .field("versions", &self.versions)
            .finish_non_exhaustive()
    }
}

/// Examines tables of one or both backends and families. Faults that concern both backends are found only if the
/// tables of both are given.
///
/// The most serious findings come first: risks before notes, then the ones that affect every packet at a rule.
///
/// Takes linear time, except for sorting the findings.
#[must_use]
pub fn examine(all: &[Tables], options: &ExamineOptions<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tables in all {
        for table in tables.iter() {
            table::examine(tables, &table, options, &mut findings);
        }
    }
    backends::examine(all, options, &mut findings);
    // A stable sort: equally serious findings stay in the order of tables, chains and rules.
    let rank = |one: &Finding| (one.severity(), one.fault.is_everything());
    findings.sort_by_key(|one| std::cmp::Reverse(rank(one)));
    findings
}
