//! Snapshots that were read without the elements of some sets.

use bitflags::bitflags;

use super::{NotOwn, Snapshot, SnapshotSet, SnapshotTable};
use crate::netlink::MessageError;
use crate::nft::{SetFlags, SetRef};

bitflags! {
    /// Of which sets the elements are read. Each set is of one of these kinds.
    ///
    /// ```
    /// use chainwright::nft::ElementsOf;
    /// let declared = ElementsOf::all() - ElementsOf::DYNAMIC;
    /// assert!(declared.contains(ElementsOf::ANONYMOUS | ElementsOf::NAMED));
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ElementsOf: u8 {
        /// Of anonymous sets, which belong to a rule ([`SetFlags::ANONYMOUS`]).
        const ANONYMOUS = 1;
        /// Of named sets to which rules add elements ([`SetFlags::EVAL`], `flags dynamic` in `nft`).
        const DYNAMIC = 2;
        /// Of all other named sets.
        const NAMED = 4;
    }
}

impl Default for ElementsOf {
    /// All.
    fn default() -> Self {
        Self::all()
    }
}

impl ElementsOf {
    /// Those that a set's belong to.
    #[must_use]
    pub fn of(set: &SetRef<'_>) -> Self {
        let flags = set.flags().unwrap_or_default();
        if flags.contains(SetFlags::ANONYMOUS) {
            Self::ANONYMOUS
        } else if flags.contains(SetFlags::EVAL) {
            Self::DYNAMIC
        } else {
            Self::NAMED
        }
    }
}

/// How a snapshot is read ([`Connection::snapshot_with`](crate::nft::Connection::snapshot_with)), or a
/// [`Mirror`](crate::nft::live::Mirror).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotOptions {
    /// The elements of which sets are read. A set of which they are not is there, and says so
    /// ([`SnapshotSet::is_left_out`]).
    ///
    /// Where elements of verdict maps are left out, the jumps to a chain cannot be counted: it is then not
    /// noticed that the kernel ended a listing at a rule that is too large for a reply (32 KiB).
    pub elements: ElementsOf,
}

/// Something was asked of a snapshot that takes elements which it was read without
/// ([`SnapshotOptions`]): as it is it would lose them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the elements of set {set} were left out when the snapshot was read, so they cannot be {purpose}"
)]
pub struct LeftOut {
    /// Family, table and name of the first such set.
    pub set: String,
    purpose: &'static str,
}

/// Why what a snapshot shows could not be put into a transaction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// It lacks what is to be written, or compared.
    #[error(transparent)]
    LeftOut(#[from] LeftOut),
    /// What is desired as one's own is there, and somebody else's.
    #[error(transparent)]
    NotOwn(#[from] NotOwn),
    /// An attribute was too long to be put into a message; cannot happen with what a kernel sent.
    #[error(transparent)]
    MessageError(#[from] MessageError),
}

impl Snapshot {
    /// Of which sets it holds the elements, as was asked for when it was read.
    #[must_use]
    pub const fn elements(&self) -> ElementsOf {
        self.elements
    }

    /// Whether it lacks elements of some set, as they were left out when it was read. Then it can be looked at
    /// and planned from as far as they are not needed, and not be written: not back, not into a file.
    #[must_use]
    pub fn lacks_elements(&self) -> bool {
        self.insist_whole("told").is_err()
    }

    /// That nothing was left out of it.
    pub(super) fn insist_whole(&self, purpose: &'static str) -> Result<(), LeftOut> {
        let mut tables = self.tables();
        tables.try_for_each(|table| table.insist_whole(purpose))
    }

    /// Whether the elements of a set were left out.
    pub(super) fn leaves_out(&self, set: &SetRef<'_>) -> bool {
        !self.elements.is_all() && !self.elements.contains(ElementsOf::of(set))
    }
}

impl SnapshotTable<'_> {
    /// That nothing was left out of it.
    pub(super) fn insist_whole(&self, purpose: &'static str) -> Result<(), LeftOut> {
        match self.snapshot.elements.is_all() {
            true => Ok(()),
            false => self.sets().try_for_each(|set| set.insist_read(purpose)),
        }
    }
}

impl SnapshotSet<'_> {
    /// Whether its elements were left out when the snapshot was read: then nothing is known of them, and
    /// [`elements`](Self::elements) are none.
    #[must_use]
    pub fn is_left_out(&self) -> bool {
        self.snapshot.leaves_out(&self.set())
    }

    /// That its elements are there.
    pub(super) fn insist_read(&self, purpose: &'static str) -> Result<(), LeftOut> {
        let set = self.set();
        match self.snapshot.leaves_out(&set) {
            false => Ok(()),
            true => Err(LeftOut {
                set: format!("{} {} {}", set.family(), set.table(), set.name()),
                purpose,
            }),
        }
    }
}
