//! Reduces a snapshot to a part.

use std::convert::Infallible;

use super::index::table_at;
use super::{READ, Snapshot};
use crate::nft::Family;
use crate::nft::scope::Scope;

/// The reason why a part fits if the whole did.
const SMALLER: &str = "invariant: a part takes no more room than the whole";

impl Snapshot {
    /// Returns the part with one family or table, as if only this had been read: to restore one table from a file with
    /// all of them, or to compare one. `None` if the snapshot covers nothing that the filter admits.
    ///
    /// Takes time and memory in proportion to the part.
    #[must_use]
    pub fn filtered(&self, filter: &Scope<'_>) -> Option<Self> {
        let scope = both(&self.scope, filter)?;
        let mut part = Self {
            generation: self.generation,
            scope,
            elements: self.elements,
            #[cfg(feature = "serde")]
            of_any_boot: self.of_any_boot,
            provenance: self.provenance.clone(),
            ..Self::default()
        };
        for table in &self.index.tables {
            let view = table_at(&self.arena, table.at).expect(READ);
            if !part.scope.admits(view.family(), view.name()) {
                continue;
            }
            let Ok(()) = table.each(&mut |at| {
                let at = part.arena.put(self.message(at).raw).expect(SMALLER);
                part.index.insert(&part.arena, at).expect(READ);
                Ok::<_, Infallible>(())
            });
        }
        part.close();
        Some(part)
    }
}

/// Returns the intersection of two filters.
fn both(one: &Scope<'_>, other: &Scope<'_>) -> Option<Scope<'static>> {
    let family = match (one.family, other.family) {
        (Family::UNSPEC, family) | (family, Family::UNSPEC) => family,
        (one, other) if one == other => one,
        _ => return None,
    };
    let table = match (&one.table, &other.table) {
        (None, table) | (table, None) => table.clone(),
        (Some(one), Some(other)) if **one == **other => Some(one.clone()),
        _ => return None,
    };
    Some(Scope { family, table }.into_owned())
}
