//! Deliberate differences from iptables in whole commands and texts. Differences in
//! an extension's options are documented with the extension ([`xt::Difference`]).
//!
//! [`xt::Difference`]: crate::xt::Difference

use super::{edit, nft, program, text};

/// A deliberate difference from iptables 1.8.9.
#[derive(Debug, Clone, Copy)]
pub struct Deviation {
    /// The subject.
    pub about: &'static str,
    /// The behaviour of iptables.
    pub iptables: &'static str,
    /// The behaviour of this crate.
    pub ours: &'static str,
    /// The reason.
    pub why: &'static str,
}

/// Returns all deviations, grouped by subject.
#[must_use]
pub fn deviations() -> Vec<(&'static str, &'static [Deviation])> {
    vec![
        ("Lines of a text", text::LINE_DEVIATIONS),
        ("Restoring", text::RESTORE_DEVIATIONS),
        ("Saving", text::SAVE_DEVIATIONS),
        ("Tables and chains", edit::DEVIATIONS),
        ("Rules in nf_tables", nft::DEVIATIONS),
        ("Programs with iptables' names", program::DEVIATIONS),
    ]
}
