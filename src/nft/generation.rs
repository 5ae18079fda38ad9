//! The generation: a number that every committed transaction of a namespace moves on.

use chainwright_sys::nf_tables::{NFTA_GEN_ID, NFTA_GEN_PROC_NAME, NFTA_GEN_PROC_PID};

use super::declare::object;
use super::name::Name;

/// Number of a ruleset's generation: it moves with each commit, and wraps around after 2³².
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Generation(pub u32);

impl std::fmt::Display for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

object! {
    /// A generation: `enum nft_gen_attributes`, as `NFT_MSG_NEWGEN` carries it.
    pub struct GenerationInfo viewed as GenerationRef, "a generation" {
        /// The generation's number.
        NFTA_GEN_ID => id: required u32,
        /// Process that committed it; in a reply to a question, the process that asked.
        NFTA_GEN_PROC_PID => process_id: optional u32,
        /// Name of that process (`comm`).
        NFTA_GEN_PROC_NAME => process_name: optional Name<'a>,
    }
}
