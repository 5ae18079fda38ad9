//! Snapshots: the ruleset of one generation, stored as sent by the kernel.
//!
//! A [`Snapshot`] is an arena of kernel messages with an index over it. Messages are decoded on access, attributes of
//! newer kernels are preserved, and a snapshot can be [restored](Snapshot::restore), [saved to a file](Snapshot::save)
//! and [compared](Snapshot::diff).
//!
//! | task | file |
//! |---|---|
//! | store messages | `arena.rs` |
//! | index messages | `index.rs` |
//! | read from the kernel | `read.rs`: [`Connection::snapshot`](super::Connection::snapshot); during changes by others: `reread.rs` |
//! | restore | `restore.rs`; objects that the kernel lists in another form than it accepts: `request.rs`, `elements.rs` |
//! | save and load files | `file.rs` |
//! | take the objects of a [`Ruleset`](super::Ruleset) | `of_ruleset.rs` |
//! | convert to and from JSON and other formats | `serial.rs`; validation of outside data: `validate.rs` |
//! | read a part | `part.rs` |
//! | reduce a snapshot | `filter.rs`; for nft's language: `definitions.rs`, `partial_read.rs` |
//! | count | `counts.rs` |
//! | leave out the elements of some sets | `omitted_elements.rs` |
//! | compare two snapshots | `diff.rs`; comparison keys: `compare.rs`; a rule's anonymous sets and bound chains: `rule_members.rs` |
//! | apply events | `apply.rs`; the elements of sets that change: `element_index.rs`; memory: `replace_parts.rs` |
//! | plan the changes from one to another | `plan/`; during changes by others: `reconcile.rs` |

use std::fmt;

use bstr::BStr;

use super::expr::ObjectType;
use super::generation::Generation;
use super::scope::Scope;
use super::{
    ChainRef, ElementRef, ElementsRef, Family, FlowtableRef, RuleRef, SetRef, StatefulObjectRef,
    TableRef,
};
use crate::arena::{Arena, Full, Position};
use crate::error::ErrorKind;
use crate::netlink::{Error, Malformed, Message};

mod apply;
mod compare;
mod counts;
mod definitions;
#[cfg(feature = "diff")]
mod diff;
mod element_index;
mod element_positions;
mod elements;
#[cfg(feature = "backup")]
mod file;
#[cfg(feature = "backup")]
mod filter;
mod index;
mod match_objects;
mod of_ruleset;
mod omitted_elements;
mod order;
mod part;
mod partial_read;
mod plan;
mod read;
mod reconcile;
mod replace_parts;
mod request;
mod reread;
mod restore;
mod rule_members;
#[cfg(feature = "serde")]
mod serial;
mod validate;
mod write;

use index::{ChainIndex, Index, SetIndex, TableIndex, chain_at, table_at};

pub(super) use apply::{Applied, TableKey};
pub(super) use plan::kept_flags;
pub(super) use reconcile::{is_outdated, retry_commit, scope_of};
pub(super) use rule_members::ObjectReference;
pub(super) use validate::check_outside_message;

#[doc(hidden)]
pub use compare::is_same_rule;
pub use counts::ObjectCounts;
#[doc(hidden)]
pub use definitions::{ElementQuery, SnapshotQuery};
#[cfg(feature = "diff")]
pub use diff::{Change, ChangeType, Diff, DiffOptions, ObjectFormatter};
#[cfg(feature = "backup")]
pub use file::{FileError, NotRegular, Provenance};
pub use omitted_elements::{ElementFilter, MissingElements, SnapshotOptions, WriteError};
pub use part::{Part, PartialSnapshot};
#[doc(hidden)]
pub use part::{is_map, is_meter};
#[doc(hidden)]
pub use partial_read::Needed;
pub(in crate::nft) use plan::DesiredPositions;
#[doc(hidden)]
pub use plan::Stage;
pub use plan::{NotOwned, Plan, PlanOptions, Replaced};
pub use read::MissingRules;

pub use restore::Restored;

impl From<Full> for Malformed {
    fn from(_: Full) -> Self {
        Self {
            what: "snapshot",
            offset: 0,
            reason: "it would be larger than 16 GiB, or a message larger than 4 MiB",
        }
    }
}

/// The reason why parsing indexed messages cannot fail.
const READ: &str = "invariant: it was read once when it was put into the index";

/// A ruleset of one generation, or one family or table of it, as sent by the kernel.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    arena: Arena,
    /// Number of bytes in the arena that are no longer used.
    dead: usize,
    index: Index,
    generation: Option<Generation>,
    /// The covered scope: everything, a family or a table.
    scope: Scope<'static>,
    /// The sets whose elements it contains.
    elements: ElementFilter,
    /// Whether the boot in which it was taken is unknown.
    #[cfg(feature = "serde")]
    of_any_boot: bool,
    /// The provenance of the file that it was loaded from.
    #[cfg(feature = "backup")]
    provenance: Option<Provenance>,
}

/// The reason why a snapshot could not be read, or not consistently.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The ruleset changed during every attempt. The snapshot of the last attempt mixes several generations.
    #[error("the ruleset kept changing while it was read ({attempts} attempts)")]
    Interrupted {
        /// Number of attempts.
        attempts: u32,
        /// The result of the last attempt.
        snapshot: Box<Snapshot>,
    },
    /// The number of a chain's rules doesn't match its use count: the kernel silently ends a dump at a rule that is too
    /// large for a reply (32 KiB), and it counts uncommitted changes of other processes.
    #[error(
        "not all rules could be read: chain {} has {} rules and jumps to it in total, but {} were listed; the \
         kernel truncates a dump at a rule of more than 32 KiB, and counts what other processes have \
         prepared but not committed yet",
        chain.chain, chain.expected, chain.found
    )]
    Incomplete {
        /// The first such chain.
        chain: MissingRules,
        /// The result.
        snapshot: Box<Snapshot>,
    },
    /// A request failed.
    #[error(transparent)]
    Netlink(#[from] Error),
}

crate::debug_as_message!(SnapshotError);

crate::classified!(SnapshotError, |error| match error {
    Self::Interrupted { .. } => ErrorKind::Retryable.into(),
    Self::Incomplete { .. } => ErrorKind::Other.into(),
    Self::Netlink(error) => error.class(),
});

impl From<Malformed> for SnapshotError {
    fn from(malformed: Malformed) -> Self {
        Self::Netlink(malformed.into())
    }
}

impl SnapshotError {
    /// Returns the result, if there is one; it may be incomplete or mix several generations.
    #[must_use]
    pub fn into_snapshot(self) -> Option<Snapshot> {
        match self {
            Self::Interrupted { snapshot, .. } | Self::Incomplete { snapshot, .. } => {
                Some(*snapshot)
            }
            Self::Netlink(_) => None,
        }
    }
}

impl Snapshot {
    /// Returns its generation; `None` if the ruleset changed during the read. The generation of a snapshot from a file
    /// refers to the origin of the file, and no transaction can expect it.
    #[must_use]
    pub const fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// Returns the scope that the snapshot covers.
    #[must_use]
    pub const fn scope(&self) -> &Scope<'static> {
        &self.scope
    }

    /// Returns the total size of the kernel's messages in bytes.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        self.arena.len() - self.dead
    }

    /// Returns the memory use in bytes: the messages and the index over them.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.arena.memory() + self.index.memory()
    }

    /// Iterates over the tables in the kernel's order.
    pub fn tables(&self) -> impl ExactSizeIterator<Item = SnapshotTable<'_>> {
        (0..self.index.tables.len()).map(|number| SnapshotTable {
            snapshot: self,
            number,
        })
    }

    /// Returns the table of this name.
    pub fn table<'n>(
        &self,
        family: Family,
        name: impl AsRef<[u8]> + 'n,
    ) -> Option<SnapshotTable<'_>> {
        let number = self.index.table(&self.arena, family, BStr::new(&name))?;
        Some(SnapshotTable {
            snapshot: self,
            number,
        })
    }

    /// Returns the chain of this name.
    pub fn chain(
        &self,
        family: Family,
        table: impl AsRef<[u8]>,
        name: impl AsRef<[u8]>,
    ) -> Option<SnapshotChain<'_>> {
        self.table(family, table)?.chain(name)
    }

    /// Returns a digest of the snapshot if it is inconsistent.
    fn inconsistency_digest(&self) -> Result<Option<u64>, Error> {
        Ok(match self.index.adds_up(&self.arena, self.elements)? {
            true => None,
            false => Some(self.index.digest(&self.arena)?),
        })
    }

    fn message(&self, at: Position) -> Message<'_> {
        self.arena
            .message(at)
            .expect("invariant: only messages that could be read are put into the index")
    }

    /// Visits every message, each after its parents.
    #[cfg(feature = "backup")]
    fn each<E>(&self, mut visit: impl FnMut(Position) -> Result<(), E>) -> Result<(), E> {
        let mut tables = self.index.tables.iter();
        tables.try_for_each(|table| table.each(&mut visit))
    }

    fn close(&mut self) {
        self.index.close();
    }
}

/// A table of a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotTable<'s> {
    snapshot: &'s Snapshot,
    number: usize,
}

impl<'s> SnapshotTable<'s> {
    fn index(&self) -> &'s TableIndex {
        &self.snapshot.index.tables[self.number]
    }

    /// Returns the table itself.
    #[must_use]
    pub fn table(&self) -> TableRef<'s> {
        table_at(&self.snapshot.arena, self.index().at).expect(READ)
    }

    /// Iterates over its chains in the kernel's order.
    pub fn chains(&self) -> impl ExactSizeIterator<Item = SnapshotChain<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index()
            .chains
            .iter()
            .map(move |index| SnapshotChain { snapshot, index })
    }

    /// Returns the chain of this name.
    pub fn chain(&self, name: impl AsRef<[u8]>) -> Option<SnapshotChain<'s>> {
        let snapshot = self.snapshot;
        let number = snapshot
            .index
            .chain(&snapshot.arena, self.number, BStr::new(&name))?;
        Some(SnapshotChain {
            snapshot,
            index: &self.index().chains[number],
        })
    }
}

impl<'s> SnapshotTable<'s> {
    /// Iterates over its sets and maps in the kernel's order.
    pub fn sets(&self) -> impl ExactSizeIterator<Item = SnapshotSet<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index()
            .sets
            .iter()
            .map(move |index| SnapshotSet { snapshot, index })
    }

    /// Returns the set or map of this name.
    pub fn set(&self, name: impl AsRef<[u8]>) -> Option<SnapshotSet<'s>> {
        let snapshot = self.snapshot;
        let number = snapshot
            .index
            .set(&snapshot.arena, self.number, BStr::new(&name))?;
        Some(SnapshotSet {
            snapshot,
            index: &self.index().sets[number],
        })
    }

    /// Iterates over its stateful objects in the kernel's order.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = StatefulObjectRef<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index()
            .objects
            .iter()
            .map(move |&at| StatefulObjectRef::parse(&snapshot.message(at)).expect(READ))
    }

    /// Returns the stateful object of this type and name.
    pub fn object(
        &self,
        object_type: ObjectType,
        name: impl AsRef<[u8]>,
    ) -> Option<StatefulObjectRef<'s>> {
        let name = BStr::new(&name);
        self.objects()
            .find(|object| object.object_type() == object_type && object.name() == name)
    }

    /// Iterates over its flowtables in the kernel's order.
    pub fn flowtables(&self) -> impl ExactSizeIterator<Item = FlowtableRef<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index()
            .flowtables
            .iter()
            .map(move |&at| FlowtableRef::parse(&snapshot.message(at)).expect(READ))
    }

    /// Returns the flowtable of this name.
    pub fn flowtable(&self, name: impl AsRef<[u8]>) -> Option<FlowtableRef<'s>> {
        let name = BStr::new(&name);
        self.flowtables().find(|flowtable| flowtable.name() == name)
    }
}

/// A set or map of a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotSet<'s> {
    snapshot: &'s Snapshot,
    index: &'s SetIndex,
}

impl<'s> SnapshotSet<'s> {
    /// Returns the set itself.
    #[must_use]
    pub fn set(&self) -> SetRef<'s> {
        SetRef::parse(&self.snapshot.message(self.index.at)).expect(READ)
    }

    /// Iterates over its elements in the order in which the kernel sent them; there are none if they were [left
    /// out](Self::is_left_out).
    pub fn elements(&self) -> impl Iterator<Item = ElementRef<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index.elements.iter().flat_map(move |&at| {
            let elements = ElementsRef::parse(&snapshot.message(at)).expect(READ);
            let elements = elements.elements().into_iter().flatten();
            elements.map(|element| element.expect(READ))
        })
    }

    /// Returns the element with this key, in the kernel's encoding; in a set of intervals, the one that starts an
    /// interval. This is a linear search.
    #[must_use]
    pub fn element(&self, key: &[u8]) -> Option<ElementRef<'s>> {
        self.elements()
            .find(|element| element.key_bytes() == Some(key) && !element.is_interval_end())
    }
}

/// Formats the snapshot as `nft --debug=netlink list ruleset` does before its own listing (nft 1.0.6): for each table
/// the sets with their elements, then the rules.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in self.tables() {
            for set in table.sets() {
                writeln!(f, "{}", set.set())?;
                for element in set.elements() {
                    writeln!(f, "\t{element}")?;
                }
            }
            for chain in table.chains() {
                for rule in chain.rules() {
                    rule.fmt(f)?;
                }
            }
        }
        Ok(())
    }
}

/// A chain of a snapshot.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotChain<'s> {
    snapshot: &'s Snapshot,
    index: &'s ChainIndex,
}

impl<'s> SnapshotChain<'s> {
    /// Returns the chain itself.
    #[must_use]
    pub fn chain(&self) -> ChainRef<'s> {
        chain_at(&self.snapshot.arena, self.index.at).expect(READ)
    }

    /// Returns the rule at this index, from 0.
    #[must_use]
    pub fn rule(&self, place: usize) -> Option<RuleRef<'s>> {
        let at = *self.index.rules.get(place)?;
        Some(RuleRef::parse(&self.snapshot.message(at)).expect(READ))
    }

    /// Iterates over its rules in order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RuleRef<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index
            .rules
            .iter()
            .map(move |&at| RuleRef::parse(&snapshot.message(at)).expect(READ))
    }
}
