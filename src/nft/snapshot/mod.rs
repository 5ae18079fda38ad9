//! Snapshots: a ruleset of one generation, kept as the kernel sent it.
//!
//! A [`Snapshot`] is an arena of kernel messages with an index over it. Nothing is decoded until it is
//! asked for, nothing that a newer kernel sends is lost, and the whole can be
//! [written back](Snapshot::restore), [kept in a file](Snapshot::save) and
//! [compared](Snapshot::diff).
//!
//! | step | where |
//! |---|---|
//! | messages into memory | `arena.rs` |
//! | messages into their places | `index.rs` |
//! | from the kernel | `read.rs`: [`Connection::snapshot`](super::Connection::snapshot); while others change it: `repair.rs` |
//! | back into the kernel | `restore.rs`; what it takes in another way than it lists it: `request.rs`, `elements.rs` |
//! | to and from a file | `file.rs` |
//! | to and from JSON and the like | `serial.rs`; what comes from outside: `outside.rs` |
//! | a part, read by itself | `part.rs` |
//! | a part of one | `narrow.rs`; what a text needs to know: `definitions.rs`, `needed.rs` |
//! | how much there is | `contents.rs` |
//! | without the elements of some sets | `left_out.rs` |
//! | two snapshots | `diff.rs`; what is compared: `compare.rs`, and `within.rs`, of a rule what belongs to it |
//! | kept current by events | `apply.rs`; the elements of sets that change: `pieces.rs`; memory: `renew.rs` |
//! | from one to another | `plan/`; beside others who change the ruleset: `reconcile.rs` |

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
use crate::netlink::{Error, Malformed, Message};

mod apply;
mod compare;
mod contents;
mod definitions;
#[cfg(feature = "diff")]
mod diff;
mod elements;
#[cfg(feature = "backup")]
mod file;
mod index;
mod left_out;
#[cfg(feature = "backup")]
mod narrow;
mod needed;
mod order;
#[cfg(any(feature = "backup", feature = "serde"))]
mod outside;
mod pairs;
mod part;
mod pieces;
mod places;
mod plan;
mod read;
mod reconcile;
mod renew;
mod repair;
mod request;
mod restore;
#[cfg(feature = "serde")]
mod serial;
mod within;
mod write;

use index::{ChainIndex, Index, SetIndex, TableIndex, chain_at, table_at};

pub(super) use apply::{Applied, TableKey};
pub(super) use reconcile::scope_of;

#[doc(hidden)]
pub use compare::is_same_rule;
pub use contents::Contents;
#[doc(hidden)]
pub use definitions::{Answered, Sought};
#[cfg(feature = "diff")]
pub use diff::{Change, Diff, DiffOptions, Fate, Words};
#[cfg(feature = "backup")]
pub use file::{FileError, NotRegular, Provenance};
pub use left_out::{ElementsOf, LeftOut, SnapshotOptions, WriteError};
#[doc(hidden)]
pub use needed::Needed;
pub use part::{Part, PartialSnapshot};
#[doc(hidden)]
pub use part::{is_map, is_meter};
pub(in crate::nft) use plan::DesiredPlaces;
#[doc(hidden)]
pub use plan::Stage;
pub use plan::{NotOwn, Plan, PlanOptions, Replaced};
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

/// Why nothing in the index can be malformed.
const READ: &str = "invariant: it was read once when it was put into the index";

/// A ruleset, or a family's or table's part of one, of one generation, as the kernel sent it.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    arena: Arena,
    /// How many bytes in it are no longer needed.
    dead: usize,
    index: Index,
    generation: Option<Generation>,
    /// What it covers: all, a family or a table.
    scope: Scope<'static>,
    /// Of which sets the elements are in it.
    elements: ElementsOf,
    /// Whether nothing says in which boot it was taken.
    #[cfg(feature = "serde")]
    of_any_boot: bool,
    /// Of the file that it was loaded from.
    #[cfg(feature = "backup")]
    provenance: Option<Provenance>,
}

/// Why a snapshot could not be read, or not as one whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Changes ran across every attempt. What the last one read is of more than one generation.
    #[error("the ruleset kept changing while it was read ({attempts} attempts)")]
    Interrupted {
        /// How often it was tried.
        attempts: u32,
        /// What the last attempt read.
        snapshot: Box<Snapshot>,
    },
    /// A chain's rules do not add up: the kernel ends a listing without a word at a rule that is too
    /// large for a reply (32 KiB), and counts what others have prepared and not committed.
    #[error(
        "not all rules could be read: chain {} has {} rules and jumps to it together, but {} came; the \
         kernel cuts a listing short at a rule of more than 32 KiB, and counts what others have \
         prepared and not committed yet",
        chain.chain, chain.expected, chain.found
    )]
    Incomplete {
        /// The first such chain.
        chain: MissingRules,
        /// What was read.
        snapshot: Box<Snapshot>,
    },
    /// A request failed.
    #[error(transparent)]
    Netlink(#[from] Error),
}

impl From<Malformed> for SnapshotError {
    fn from(malformed: Malformed) -> Self {
        Self::Netlink(malformed.into())
    }
}

impl SnapshotError {
    /// What was read, if anything was: with no promise that it is whole or of one generation.
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
    /// The generation that it shows; `None` if a change ran across the reading. Of a snapshot from a file it
    /// says where that came from, and no transaction can expect it.
    #[must_use]
    pub const fn generation(&self) -> Option<Generation> {
        self.generation
    }

    /// What it covers.
    #[must_use]
    pub const fn scope(&self) -> &Scope<'static> {
        &self.scope
    }

    /// How many bytes the kernel's messages take.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        self.arena.len() - self.dead
    }

    /// How many bytes of memory it holds: the messages and the index over them.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.arena.memory() + self.index.memory()
    }

    /// The tables, in the kernel's order.
    pub fn tables(&self) -> impl ExactSizeIterator<Item = SnapshotTable<'_>> {
        (0..self.index.tables.len()).map(|number| SnapshotTable {
            snapshot: self,
            number,
        })
    }

    /// The table of this name.
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

    /// The chain of this name.
    pub fn chain(
        &self,
        family: Family,
        table: impl AsRef<[u8]>,
        name: impl AsRef<[u8]>,
    ) -> Option<SnapshotChain<'_>> {
        self.table(family, table)?.chain(name)
    }

    /// A digest of what was found, if that does not add up.
    fn doubt(&self) -> Result<Option<u64>, Error> {
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

    /// Visits every message, each after those that it belongs to.
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

    /// The table itself.
    #[must_use]
    pub fn table(&self) -> TableRef<'s> {
        table_at(&self.snapshot.arena, self.index().at).expect(READ)
    }

    /// Its chains, in the kernel's order.
    pub fn chains(&self) -> impl ExactSizeIterator<Item = SnapshotChain<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index()
            .chains
            .iter()
            .map(move |index| SnapshotChain { snapshot, index })
    }

    /// The chain of this name.
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
    /// Its sets and maps, in the kernel's order.
    pub fn sets(&self) -> impl ExactSizeIterator<Item = SnapshotSet<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index()
            .sets
            .iter()
            .map(move |index| SnapshotSet { snapshot, index })
    }

    /// The set or map of this name.
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

    /// Its stateful objects, in the kernel's order.
    pub fn objects(&self) -> impl ExactSizeIterator<Item = StatefulObjectRef<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index()
            .objects
            .iter()
            .map(move |&at| StatefulObjectRef::parse(&snapshot.message(at)).expect(READ))
    }

    /// The stateful object of this type and name.
    pub fn object(
        &self,
        object_type: ObjectType,
        name: impl AsRef<[u8]>,
    ) -> Option<StatefulObjectRef<'s>> {
        let name = BStr::new(&name);
        self.objects()
            .find(|object| object.object_type() == object_type && object.name() == name)
    }

    /// Its flowtables, in the kernel's order.
    pub fn flowtables(&self) -> impl ExactSizeIterator<Item = FlowtableRef<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index()
            .flowtables
            .iter()
            .map(move |&at| FlowtableRef::parse(&snapshot.message(at)).expect(READ))
    }

    /// The flowtable of this name.
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
    /// The set itself.
    #[must_use]
    pub fn set(&self) -> SetRef<'s> {
        SetRef::parse(&self.snapshot.message(self.index.at)).expect(READ)
    }

    /// Its elements, in the order in which the kernel sent them; none if they were
    /// [left out](Self::is_left_out).
    pub fn elements(&self) -> impl Iterator<Item = ElementRef<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index.elements.iter().flat_map(move |&at| {
            let elements = ElementsRef::parse(&snapshot.message(at)).expect(READ);
            let elements = elements.elements().into_iter().flatten();
            elements.map(|element| element.expect(READ))
        })
    }

    /// The element with this key, byte for byte as the kernel keeps it; of a set of intervals, the one
    /// that an interval starts with. Looks through all of them.
    #[must_use]
    pub fn element(&self, key: &[u8]) -> Option<ElementRef<'s>> {
        self.elements()
            .find(|element| element.key_bytes() == Some(key) && !element.is_interval_end())
    }
}

/// The whole as `nft --debug=netlink list ruleset` prints it before its own listing (nft 1.0.6): of
/// each table the sets with their elements, then the rules.
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
    /// The chain itself.
    #[must_use]
    pub fn chain(&self) -> ChainRef<'s> {
        chain_at(&self.snapshot.arena, self.index.at).expect(READ)
    }

    /// Its rule at this place, from 0.
    #[must_use]
    pub fn rule(&self, place: usize) -> Option<RuleRef<'s>> {
        let at = *self.index.rules.get(place)?;
        Some(RuleRef::parse(&self.snapshot.message(at)).expect(READ))
    }

    /// Its rules, in order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RuleRef<'s>> + use<'s> {
        let snapshot = self.snapshot;
        self.index
            .rules
            .iter()
            .map(move |&at| RuleRef::parse(&snapshot.message(at)).expect(READ))
    }
}
