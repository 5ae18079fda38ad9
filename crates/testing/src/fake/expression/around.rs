//! The queries of expressions about the ruleset that they are added to.

use bstr::{BStr, BString};

use chainwright::Errno;
use chainwright::nft::Family;
use chainwright::nft::SetFlags;
use chainwright::nft::expr::ObjectType;

/// The ruleset around a rule, an element or a set.
pub(crate) trait RulesetView {
    /// Returns the table's family.
    fn family(&self) -> Family;
    /// Returns the table's set with this name, or else the one with this ID in the same batch.
    /// # Errors
    /// `ENOENT` if neither exists.
    fn set(&mut self, name: &BStr, id: Option<u32>) -> Result<SetInfo, Errno>;
    /// Returns the target chain of a verdict: the table's chain with this name or, without a name, the one with this ID
    /// in the same batch.
    ///
    /// # Errors
    /// `ENOENT` if it doesn't exist; the kernel's error if rules may not jump to the chain from here.
    fn chain(&mut self, name: Option<&BStr>, id: Option<u32>) -> Result<ChainInfo, Errno>;
    /// Looks up the table's object of this type and name.
    ///
    /// # Errors
    /// `ENOENT` if it doesn't exist.
    fn object(&mut self, object_type: ObjectType, name: &BStr) -> Result<(), Errno>;
    /// Looks up the table's flowtable of this name.
    ///
    /// # Errors
    /// `ENOENT` if it doesn't exist.
    fn flowtable(&mut self, name: &BStr) -> Result<(), Errno>;
}

/// The properties of a set that expressions need.
#[derive(Debug, Clone, Default)]
pub(crate) struct SetInfo {
    /// Its name in the kernel.
    pub(crate) name: BString,
    /// Its flags.
    pub(crate) flags: SetFlags,
    /// Length of a key, in bytes.
    pub(crate) key_length: u32,
    /// Whether it maps to verdicts.
    pub(crate) maps_to_verdicts: bool,
    /// Length of the values of a map, in bytes; 16 for verdicts.
    pub(crate) data_length: u32,
    /// Whether it is an anonymous set that already belongs to a rule.
    pub(crate) is_bound: bool,
    /// Whether rules can add to it: the kernel stores it in a resizable hash table.
    pub(crate) can_be_updated: bool,
    /// The expressions of each of its elements, as listed, without the enclosing attributes.
    pub(crate) expressions: Vec<Vec<u8>>,
}

impl SetInfo {
    /// Returns `true` if the kernel stores a set with this definition in a resizable hash table, the only type that
    /// rules can add to. It uses bitmaps for short keys, hash tables of a fixed size for sets with a size, and trees
    /// for ranges.
    pub(crate) const fn in_growing_table(flags: SetFlags, key_length: u32, has_size: bool) -> bool {
        if flags.intersects(SetFlags::INTERVAL) {
            return false;
        }
        let grows = SetFlags::TIMEOUT.union(SetFlags::EVAL);
        let is_map = SetFlags::MAP.union(SetFlags::OBJECT);
        flags.intersects(grows) || !has_size && (key_length > 2 || flags.intersects(is_map))
    }
}

/// The properties of a target chain that verdicts need.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChainInfo {
    /// Its name in the kernel.
    pub(crate) name: BString,
    /// Whether it has a hook.
    pub(crate) is_base: bool,
    /// Whether it is a binding chain (`NFT_CHAIN_BINDING`).
    pub(crate) is_anonymous: bool,
    /// Whether it is a binding chain that already belongs to a rule.
    pub(crate) is_bound: bool,
}

/// A reference of an expression: the referenced object cannot be deleted while the expression exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    /// A set that packets look up.
    Set(BString),
    /// A set that rules add to or delete from: if it has no size, the kernel sets its size to 65535.
    UpdatedSet(BString),
    /// A chain.
    Chain(BString),
    /// An object.
    Object(ObjectType, BString),
    /// A flowtable.
    Flowtable(BString),
}
