//! What is wrong with tables of iptables', or will go wrong: what a version of iptables-nft reads otherwise than it
//! is, rules in both backends, rules and chains that no packet meets.
//!
//! [`examine`] looks at tables that were read, of either backend and both families, and changes nothing. What it finds is a
//! [`Fault`] with its [`Place`]: a [risk](Severity::Risk) if packets are let through or dropped otherwise than
//! somebody who reads the rules will think, or will be after the next save and restore; else a
//! [note](Severity::Note).
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let sandbox = chainwright_testing::Sandbox::new()?;
//! # sandbox.run(|| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use chainwright::iptables::doctor::{Severity, What, examine};
//! use chainwright::iptables::{Family, Iptables};
//!
//! let mut iptables = Iptables::nft()?;
//! let text = "*filter\n:INPUT DROP\nCOMMIT\n";
//! iptables.restore(Family::Ipv4, text, &Default::default())?;
//!
//! let tables = [iptables.read(Family::Ipv4, &[])?];
//! let findings = examine(&tables, &What::default());
//! assert_eq!(findings.len(), 1);
//! assert_eq!(findings[0].severity(), Severity::Risk);
//! assert_eq!(
//!     findings[0].to_string(),
//!     "table filter (IPv4, nf_tables), chain INPUT: its policy drops every packet, as it has no rules"
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
use super::forecast::Version;
pub use fault::{Fault, Finding, Place, Severity};

/// What to look for.
#[derive(Clone, Copy)]
pub struct What<'w> {
    /// The versions of iptables-nft that may read and restore the tables: on the node, and in the images of its
    /// agents.
    pub versions: &'w [Version],
    /// Chains of these names say which backend an agent writes to: two backends with them are a risk.
    pub of_agents: &'w dyn Fn(&BStr) -> bool,
}

impl Default for What<'_> {
    /// All versions, no agents.
    fn default() -> Self {
        Self {
            versions: &Version::ALL,
            of_agents: &|_| false,
        }
    }
}

impl std::fmt::Debug for What<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("What")
            .field("versions", &self.versions)
            .finish_non_exhaustive()
    }
}

/// Examines tables: those of one or both backends, one or both families. What concerns both backends is found where the
/// tables of both are given.
///
/// What is worst comes first: risks before notes, and of those what concerns every packet that comes to a rule.
///
/// Takes linear time, but for the order of what is found.
#[must_use]
pub fn examine(all: &[Tables], what: &What<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for tables in all {
        for table in tables.iter() {
            table::examine(tables, &table, what, &mut findings);
        }
    }
    backends::examine(all, what, &mut findings);
    // What is as bad as another stays in the order of tables, chains and rules.
    let badness = |one: &Finding| (one.severity(), one.fault.is_everything());
    findings.sort_by_key(|one| std::cmp::Reverse(badness(one)));
    findings
}
