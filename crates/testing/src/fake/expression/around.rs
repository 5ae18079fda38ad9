//! What expressions ask of the ruleset that they come into.

use bstr::{BStr, BString};

use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::SetFlags;
use chainwright::nft::expr::ObjectType;

/// The ruleset around a rule, an element or a set.
pub(crate) trait Around {
    /// The table's family.
    fn family(&self) -> Family;
    /// The table's set of this name or, where there is none, with this number of the same batch.
    ///
    /// # Errors
    /// `ENOENT` if there is neither.
    fn set(&mut self, name: &BStr, id: Option<u32>) -> Result<SetFacts, Errno>;
    /// The table's chain of this name or, where none is given, with this number of the same batch: what a
    /// verdict leads to.
    ///
    /// # Errors
    /// `ENOENT` if there is none; what the kernel answers if the chain must not be jumped to from here.
    fn chain(&mut self, name: Option<&BStr>, id: Option<u32>) -> Result<ChainFacts, Errno>;
    /// The table's object of this type and name.
    ///
    /// # Errors
    /// `ENOENT` if there is none.
    fn object(&mut self, object_type: ObjectType, name: &BStr) -> Result<(), Errno>;
    /// The table's flowtable of this name.
    ///
    /// # Errors
    /// `ENOENT` if there is none.
    fn flowtable(&mut self, name: &BStr) -> Result<(), Errno>;
}

/// What expressions want to know of a set.
#[derive(Debug, Clone, Default)]
pub(crate) struct SetFacts {
    /// The name that the kernel knows it by.
    pub(crate) name: BString,
    /// Its flags.
    pub(crate) flags: SetFlags,
    /// Length of a key, in bytes.
    pub(crate) key_length: u32,
    /// Whether what it maps to is a verdict.
    pub(crate) maps_to_verdicts: bool,
    /// Length of what it maps to, in bytes; of a verdict 16.
    pub(crate) data_length: u32,
    /// Whether it is a set of one rule and already has that rule.
    pub(crate) is_bound: bool,
    /// Whether rules can add to it: what holds the elements is a hash table that grows.
    pub(crate) can_be_updated: bool,
    /// The expressions that each of its elements has, as they are listed, without the attribute that
    /// they stand in.
    pub(crate) expressions: Vec<Vec<u8>>,
}

impl SetFacts {
    /// Whether the kernel keeps a set in a hash table that grows, the only kind that rules can add to,
    /// given how it was asked for. It takes a bitmap for short keys, a hash table of a fixed size where
    /// one was given, and trees for ranges.
    pub(crate) const fn in_growing_table(flags: SetFlags, key_length: u32, has_size: bool) -> bool {
        if flags.intersects(SetFlags::INTERVAL) {
            return false;
        }
        let grows = SetFlags::TIMEOUT.union(SetFlags::EVAL);
        let is_map = SetFlags::MAP.union(SetFlags::OBJECT);
        flags.intersects(grows) || !has_size && (key_length > 2 || flags.intersects(is_map))
    }
}

/// What a verdict wants to know of the chain that it leads to.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChainFacts {
    /// The name that the kernel knows it by.
    pub(crate) name: BString,
    /// Whether it has a hook.
    pub(crate) is_base: bool,
    /// Whether it is a chain of one rule (`NFT_CHAIN_BINDING`).
    pub(crate) is_anonymous: bool,
    /// Whether it is such a chain, and already has that rule.
    pub(crate) is_bound: bool,
}

/// What an expression refers to: it cannot be deleted as long as the expression is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    /// A set, which packets look up.
    Set(BString),
    /// A set that packets add to or take from: if it has no size, the kernel gives it one of 65535.
    UpdatedSet(BString),
    /// A chain.
    Chain(BString),
    /// An object.
    Object(ObjectType, BString),
    /// A flowtable.
    Flowtable(BString),
}
