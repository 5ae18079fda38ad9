//! Deliberate differences from iptables in whole commands and texts. Differences in
//! an extension's options are documented with the extension ([`xt::Difference`]).
//!
//! [`xt::Difference`]: crate::xt::Difference

use super::{edit, nft, program, text};

/// A deliberate difference from iptables 1.8.9.
#[derive(Debug, Clone, Copy)]
pub struct KnownDifference {
    /// The subject.
    pub subject: &'static str,
    /// The behavior of iptables.
    pub iptables: &'static str,
    /// The behavior of this crate.
    pub chainwright: &'static str,
    /// The reason.
    pub reason: &'static str,
}

/// Returns all known differences, grouped by subject.
#[must_use]
pub fn known_differences() -> Vec<(&'static str, &'static [KnownDifference])> {
    vec![
        ("Lines of a text", text::LINE_DIFFERENCES),
        ("Restoring", text::RESTORE_DIFFERENCES),
        ("Saving", text::SAVE_DIFFERENCES),
        ("Tables and chains", edit::DIFFERENCES),
        ("Rules in nf_tables", nft::DIFFERENCES),
        ("Programs with iptables' names", program::DIFFERENCES),
    ]
}
