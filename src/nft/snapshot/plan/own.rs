//! Restricts a plan to the objects with a tag.

use bstr::BStr;

use super::{PlanOptions, Replaced};
use crate::nft::snapshot::match_objects::Pairs;
use crate::nft::snapshot::{SnapshotChain, SnapshotSet};
use crate::nft::{FlowtableRef, OwnerTag, StatefulObjectRef, TableRef};

/// An object that is desired with an [`OwnerTag`] exists without it: it belongs to another program.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object} exists without the tag {tag}: it belongs to another program")]
pub struct NotOwned {
    /// The object: `chain ip nat PREROUTING`.
    pub object: String,
    /// The tag.
    pub tag: OwnerTag,
}

crate::debug_as_message!(NotOwned);

/// A named member of a table.
pub(super) trait Named {
    const KIND: &'static str;

    fn name(&self) -> &BStr;
    fn comment(&self) -> Option<&BStr>;
}

/// Determines the caller's own objects in a table.
#[derive(Clone, Copy)]
pub(super) struct OwnObjects {
    /// The tag of these objects; `None` if all are the caller's.
    tag: Option<OwnerTag>,
}

impl OwnObjects {
    /// Determines the own objects of a table, given its current and desired state.
    pub(super) fn of(
        options: PlanOptions,
        now: &TableRef<'_>,
        wanted: &TableRef<'_>,
    ) -> Result<Self, NotOwned> {
        let own = Self {
            tag: options.owner_tag,
        };
        if own.has(now.comment()) {
            return Ok(Self { tag: None });
        }
        own.ensure_not_foreign(wanted.comment(), || Replaced::of(now, now))?;
        Ok(own)
    }

    /// Returns `true` if the complete table is the caller's.
    pub(super) const fn is_all(self) -> bool {
        self.tag.is_none()
    }

    /// Returns `true` if an object with this comment is the caller's.
    pub(super) fn has(self, comment: Option<&BStr>) -> bool {
        self.tag.is_none_or(|tag| tag.is_in(comment))
    }

    /// Returns an error if another program's object is desired as the caller's own.
    fn ensure_not_foreign(
        self,
        wanted: Option<&BStr>,
        object: impl FnOnce() -> Replaced,
    ) -> Result<(), NotOwned> {
        match self.tag {
            Some(tag) if tag.is_in(wanted) => Err(NotOwned {
                object: object().to_string(),
                tag,
            }),
            _ => Ok(()),
        }
    }

    /// Removes existing objects of others from `pairs`. Returns those of them that are desired.
    pub(super) fn narrow<C: Named, D: Named>(
        self,
        table: &TableRef<'_>,
        pairs: &mut Pairs<C, D>,
    ) -> Result<Vec<(C, D)>, NotOwned> {
        if self.is_all() {
            return Ok(Vec::new());
        }
        pairs.removed.retain(|now| self.has(now.comment()));
        let both = std::mem::take(&mut pairs.both).into_iter();
        let (own, others) = both.partition(|(now, _)| self.has(now.comment()));
        pairs.both = own;
        for (now, wanted) in &others {
            self.ensure_not_foreign(wanted.comment(), || Replaced::of(table, now))?;
        }
        Ok(others)
    }
}

impl Replaced {
    /// Creates the entry for a member of a table.
    pub(super) fn of<N: Named>(table: &TableRef<'_>, object: &N) -> Self {
        Self {
            kind: N::KIND,
            family: table.family(),
            table: table.name().to_owned(),
            name: object.name().to_owned(),
        }
    }
}

impl Named for TableRef<'_> {
    const KIND: &'static str = "table";

    fn name(&self) -> &BStr {
        TableRef::name(self)
    }

    fn comment(&self) -> Option<&BStr> {
        TableRef::comment(self)
    }
}

impl Named for SnapshotChain<'_> {
    const KIND: &'static str = "chain";

    fn name(&self) -> &BStr {
        self.chain().name()
    }

    fn comment(&self) -> Option<&BStr> {
        self.chain().comment()
    }
}

impl Named for SnapshotSet<'_> {
    const KIND: &'static str = "set";

    fn name(&self) -> &BStr {
        self.set().name()
    }

    fn comment(&self) -> Option<&BStr> {
        self.set().comment()
    }
}

impl Named for StatefulObjectRef<'_> {
    const KIND: &'static str = "object";

    fn name(&self) -> &BStr {
        StatefulObjectRef::name(self)
    }

    fn comment(&self) -> Option<&BStr> {
        StatefulObjectRef::comment(self)
    }
}

impl Named for FlowtableRef<'_> {
    const KIND: &'static str = "flowtable";

    fn name(&self) -> &BStr {
        FlowtableRef::name(self)
    }

    /// Returns `None`: flowtables have no comment.
    fn comment(&self) -> Option<&BStr> {
        None
    }
}
