//! Snapshots without the elements of some sets.

use bitflags::bitflags;

use super::{NotOwned, Snapshot, SnapshotSet, SnapshotTable};
use crate::netlink::MessageError;
use crate::nft::{SetFlags, SetRef};

bitflags! {
    /// The sets whose elements are read. Each set has one of these kinds.
    ///
    /// ```
    /// use chainwright::nft::ElementFilter;
    /// let declared = ElementFilter::all() - ElementFilter::DYNAMIC;
    /// assert!(declared.contains(ElementFilter::ANONYMOUS | ElementFilter::NAMED));
    /// ```
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ElementFilter: u8 {
        /// Anonymous sets, which belong to a rule ([`SetFlags::ANONYMOUS`]).
        const ANONYMOUS = 1;
        /// Named sets to which rules add elements ([`SetFlags::EVAL`], `flags dynamic` in `nft`).
        const DYNAMIC = 2;
        /// All other named sets.
        const NAMED = 4;
    }
}

impl Default for ElementFilter {
    /// Returns all kinds.
    fn default() -> Self {
        Self::all()
    }
}

impl ElementFilter {
    /// Returns the kind of a set.
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

/// Options for reading a snapshot ([`Connection::snapshot_with`](crate::nft::Connection::snapshot_with)) or a
/// [`Mirror`](crate::nft::live::Mirror).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotOptions {
    /// The sets whose elements are read. The snapshot contains the other sets without elements
    /// ([`SnapshotSet::is_left_out`]).
    ///
    /// Without the elements of verdict maps the jumps to a chain cannot be counted: then the snapshot cannot detect
    /// that the kernel ended a dump at a rule that is too large for a reply (32 KiB).
    pub elements: ElementFilter,
}

/// An operation needs elements that were left out when the snapshot was read ([`SnapshotOptions`]): it would lose them.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the elements of set {set} were left out when the snapshot was read, so they cannot be {purpose}"
)]
pub struct MissingElements {
    /// Family, table and name of the first such set.
    pub set: String,
    purpose: &'static str,
}

crate::debug_as_message!(MissingElements);

/// The reason why a snapshot could not be converted into a transaction.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The snapshot lacks elements that are required.
    #[error(transparent)]
    MissingElements(#[from] MissingElements),
    /// A table that is desired as the caller's own exists and belongs to another program.
    #[error(transparent)]
    NotOwned(#[from] NotOwned),
    /// An attribute was too long for a message; impossible for data from a kernel.
    #[error(transparent)]
    MessageError(#[from] MessageError),
}

crate::debug_as_message!(WriteError);

impl Snapshot {
    /// Returns the sets whose elements it contains, as requested when it was read.
    #[must_use]
    pub const fn elements(&self) -> ElementFilter {
        self.elements
    }

    /// Returns `true` if elements of some set were left out when it was read. Such a snapshot can be inspected and
    /// planned from if these elements aren't needed, but neither restored nor saved.
    #[must_use]
    pub fn lacks_elements(&self) -> bool {
        self.ensure_complete("lacks_elements").is_err()
    }

    /// Returns an error if elements were left out.
    pub(in crate::nft) fn ensure_complete(
        &self,
        purpose: &'static str,
    ) -> Result<(), MissingElements> {
        let mut tables = self.tables();
        tables.try_for_each(|table| table.ensure_complete(purpose))
    }

    /// Returns `true` if the elements of a set were left out.
    pub(super) fn leaves_out(&self, set: &SetRef<'_>) -> bool {
        !self.elements.is_all() && !self.elements.contains(ElementFilter::of(set))
    }
}

impl SnapshotTable<'_> {
    /// Returns an error if elements of the table were left out.
    pub(super) fn ensure_complete(&self, purpose: &'static str) -> Result<(), MissingElements> {
        match self.snapshot.elements.is_all() {
            true => Ok(()),
            false => self
                .sets()
                .try_for_each(|set| set.ensure_elements_read(purpose)),
        }
    }
}

impl SnapshotSet<'_> {
    /// Returns `true` if its elements were left out when the snapshot was read: then they are unknown, and
    /// [`elements`](Self::elements) is empty.
    #[must_use]
    pub fn is_left_out(&self) -> bool {
        self.snapshot.leaves_out(&self.set())
    }

    /// Returns an error if the elements were left out.
    pub(super) fn ensure_elements_read(
        &self,
        purpose: &'static str,
    ) -> Result<(), MissingElements> {
        let set = self.set();
        match self.snapshot.leaves_out(&set) {
            false => Ok(()),
            true => Err(MissingElements {
                set: format!("{} {} {}", set.family(), set.table(), set.name()),
                purpose,
            }),
        }
    }
}
