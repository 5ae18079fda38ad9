//! Options and result of a plan.

use std::fmt;

use bstr::BString;

#[cfg(doc)]
use super::WriteError;
#[cfg(doc)]
use crate::nft::Snapshot;
use crate::nft::snapshot::order::Reason;
use crate::nft::transaction::Transaction;
use crate::nft::{Family, OwnerTag};

/// Options of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PlanOptions {
    /// Whether to delete existing tables that are not desired. Otherwise they are ignored.
    pub remove_other_tables: bool,
    /// Whether to delete elements that are not desired from sets to which rules add elements (`flags dynamic`).
    /// Otherwise they are kept as state of the packet path.
    pub remove_dynamic_elements: bool,
    /// Whether different values of counters, quotas and similar state are a difference.
    pub counters: bool,
    /// The tag of the objects that the plan may change. Without a tag it may change the desired tables completely.
    ///
    /// - A table, chain or set with the tag belongs to the caller with its contents, as if there were no tag. Elements
    ///   belong to their set, whatever their comments are.
    /// - In another owner's table, chains, sets and stateful objects with the tag are deleted if they are not desired,
    ///   and changed if they differ; so are rules with the tag in another owner's chain. A new rule is inserted before
    ///   the next tagged rule that remains, or at the end.
    /// - Objects without the tag are never changed or deleted. A desired object without the tag is created if no object
    ///   has its name, for example a base chain for rules, and is not compared otherwise.
    /// - If an object is desired with the tag but exists without it, it belongs to another program:
    ///   [`WriteError::NotOwned`].
    ///
    /// The kernel refuses (`EBUSY`) to delete objects that others' rules and elements refer to; then nothing changes.
    pub owner_tag: Option<OwnerTag>,
    /// The last stage to plan, if no object has to be [recreated](Plan::replaced).
    #[doc(hidden)]
    pub stage: Stage,
}

/// The last stage of a plan; each stage includes the earlier ones. A caller that commits the stages in order, each
/// planned from the result of the previous one, deletes nothing before its replacement exists.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Stage {
    /// Adds missing sets and chains, with their contents.
    New,
    /// Also adds rules and elements to existing chains and sets; rules are inserted before those that will be deleted,
    /// and elements get new data.
    Comes,
    /// Also deletes elements; those of intervals are deleted earlier, as they may conflict with new ones.
    ElementsGo,
    /// Deletes everything that is not desired.
    #[default]
    All,
}

/// An object that exists before and after, but is recreated because the kernel cannot change it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replaced {
    /// The kind of the object: `table`, `chain`, `set`, `object`, `flowtable`; `elements` for a set that remains, but
    /// whose elements restart their timeouts; `rules` for a chain that remains, but whose rules get new handles because
    /// separate changes would take the kernel longer.
    pub kind: &'static str,
    /// Its family.
    pub family: Family,
    /// Its table.
    pub table: BString,
    /// Its name.
    pub name: BString,
}

/// Formats as `set ip nat services`.
impl fmt::Display for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.kind, self.family, self.table)?;
        match self.kind {
            "table" => Ok(()),
            _ => write!(f, " {}", self.name),
        }
    }
}

/// The transaction that turns one ruleset into another, with a description.
///
/// It can be inspected and tested without a kernel. Its `Display` lists its operations, one per line, after the reasons
/// for chains that are recreated only because of their position in the order of execution.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub(super) transaction: Transaction,
    /// Recreated tables, chains, sets, stateful objects and flowtables. Their state (elements that rules added,
    /// connections) is lost; counters of rules that are in the chain before and after continue.
    pub replaced: Vec<Replaced>,
    /// The reasons for some of these chains that are recreated without a difference: the kernel runs the newest of the
    /// base chains with the same priority at a hook first.
    pub(super) reordered: Vec<(Replaced, Reason)>,
    /// Number of unchanged rules in the chains that exist before and after.
    pub kept_rules: usize,
    /// Tables that another process owns and that are skipped: family and name. [`Snapshot::plan`] leaves it empty,
    /// [`Connection::plan`](crate::nft::Connection::plan) fills it.
    pub owned_by_others: Vec<(Family, BString)>,
}

impl Plan {
    /// Returns `true` if the plan has no operation.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.transaction.is_empty()
    }

    /// Returns the transaction, conditional on the generation of the snapshot that the plan starts from, if that has
    /// one.
    #[must_use]
    pub const fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    pub(in crate::nft::snapshot) const fn transaction_mut(&mut self) -> &mut Transaction {
        &mut self.transaction
    }

    /// Returns the transaction by value, to append to it.
    #[must_use]
    pub fn into_transaction(self) -> Transaction {
        self.transaction
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (chain, reason) in &self.reordered {
            writeln!(f, "recreate {chain}: it {reason}")?;
        }
        for operation in self.transaction.described() {
            writeln!(f, "{operation}")?;
        }
        Ok(())
    }
}
