//! What a plan may change: everything, or what carries a tag.

use bstr::BStr;

use super::{PlanOptions, Replaced};
use crate::nft::snapshot::pairs::Pairs;
use crate::nft::snapshot::{SnapshotChain, SnapshotSet};
use crate::nft::{FlowtableRef, OwnerTag, StatefulObjectRef, TableRef};

/// An object that is desired with an [`OwnerTag`] is there without it: it is somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{object} is there and does not carry the tag {tag}: it is somebody else's")]
pub struct NotOwn {
    /// The object: `chain ip nat PREROUTING`.
    pub object: String,
    /// The tag.
    pub tag: OwnerTag,
}

/// What goes by a name in a table.
pub(super) trait Named {
    const KIND: &'static str;

    fn name(&self) -> &BStr;
    fn comment(&self) -> Option<&BStr>;
}

/// What of a table is one's own.
#[derive(Clone, Copy)]
pub(super) struct Own {
    /// What has this tag; all if there is none.
    tag: Option<OwnerTag>,
}

impl Own {
    /// What is one's own in a table, as it is and as it is to be.
    pub(super) fn of(
        options: PlanOptions,
        now: &TableRef<'_>,
        wanted: &TableRef<'_>,
    ) -> Result<Self, NotOwn> {
        let own = Self {
            tag: options.owner_tag,
        };
        if own.has(now.comment()) {
            return Ok(Self { tag: None });
        }
        own.insist(wanted.comment(), || Replaced::of(now, now))?;
        Ok(own)
    }

    /// Whether the whole table is.
    pub(super) const fn is_all(self) -> bool {
        self.tag.is_none()
    }

    /// Whether what has this comment is.
    pub(super) fn has(self, comment: Option<&BStr>) -> bool {
        self.tag.is_none_or(|tag| tag.is_in(comment))
    }

    /// That what is there and somebody else's is not desired as one's own.
    fn insist(
        self,
        wanted: Option<&BStr>,
        object: impl FnOnce() -> Replaced,
    ) -> Result<(), NotOwn> {
        match self.tag {
            Some(tag) if tag.is_in(wanted) => Err(NotOwn {
                object: object().to_string(),
                tag,
            }),
            _ => Ok(()),
        }
    }

    /// Leaves in `pairs` what may be changed, and what is to be made. Gives out what is there, somebody else's and
    /// desired, too.
    pub(super) fn narrow<C: Named, D: Named>(
        self,
        table: &TableRef<'_>,
        pairs: &mut Pairs<C, D>,
    ) -> Result<Vec<(C, D)>, NotOwn> {
        if self.is_all() {
            return Ok(Vec::new());
        }
        pairs.removed.retain(|now| self.has(now.comment()));
        let both = std::mem::take(&mut pairs.both).into_iter();
        let (own, others) = both.partition(|(now, _)| self.has(now.comment()));
        pairs.both = own;
        for (now, wanted) in &others {
            self.insist(wanted.comment(), || Replaced::of(table, now))?;
        }
        Ok(others)
    }
}

impl Replaced {
    /// An object of a table.
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

    /// It has none.
    fn comment(&self) -> Option<&BStr> {
        None
    }
}
