//! The current state of a declared chain.

/// One of the declared chains in its current state.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) exists: bool,
    /// Number of rules in the chain plus the number of references to it.
    pub(crate) references: u32,
    /// Number of rules in the chain, including those of other programs.
    pub(crate) total: usize,
    /// The declared rules that are in the chain, in the chain's order: the index of the declared rule, and its handle,
    /// or its position in the chain of a legacy table. Rules of other programs are left out; a desired rule that occurs
    /// twice is listed twice.
    pub(crate) rules: Vec<(usize, u64)>,
}
