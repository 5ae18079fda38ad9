//! Where whole commands and texts are on purpose treated otherwise than iptables treats them. What
//! concerns the options of an extension stands beside the extension ([`xt::Difference`]).
//!
//! [`xt::Difference`]: crate::xt::Difference

use super::{edit, nft, program, text};

/// Something that is done otherwise than iptables 1.8.9 does it, on purpose.
#[derive(Debug, Clone, Copy)]
pub struct Deviation {
    /// What it is about.
    pub about: &'static str,
    /// What iptables does.
    pub iptables: &'static str,
    /// What is done here.
    pub ours: &'static str,
    /// Why.
    pub why: &'static str,
}

/// All of them, under the names of what they are about.
#[must_use]
pub fn deviations() -> Vec<(&'static str, &'static [Deviation])> {
    vec![
        ("Lines of a text", text::LINE_DEVIATIONS),
        ("Restoring", text::RESTORE_DEVIATIONS),
        ("Saving", text::SAVE_DEVIATIONS),
        ("Tables and chains", edit::DEVIATIONS),
        ("Rules in nf_tables", nft::DEVIATIONS),
        (
            "The programs by the names of iptables'",
            program::DEVIATIONS,
        ),
    ]
}
