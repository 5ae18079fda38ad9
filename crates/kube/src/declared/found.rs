//! What is there of a chain that is to be there.

/// One of the wanted chains as it is in the kernel.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) exists: bool,
    /// Number of rules in the chain and of references to it.
    pub(crate) references: u32,
    /// Number of rules in the chain, those of others included.
    pub(crate) total: usize,
    /// The wanted rules that are there, in the order in which they stand: which one, and its handle, or its place among
    /// the chain's rules in a legacy table. Rules of others are not among them; of a wanted rule that stands twice, both are.
    pub(crate) rules: Vec<(usize, u64)>,
}
