//! A part of a snapshot.

use std::convert::Infallible;

use super::index::table_at;
use super::{READ, Snapshot};
use crate::nft::Family;
use crate::nft::scope::Scope;

/// Why a part fits where the whole did.
const SMALLER: &str = "invariant: a part takes no more room than the whole";

impl Snapshot {
    /// The part of it that is of one family or table, as if only that had been taken: to bring one table
    /// back from a file that holds all of them, or to compare one. `None` if it is of nothing that the filter
    /// admits.
    ///
    /// Needs time and memory in proportion to the part.
    #[must_use]
    pub fn narrowed(&self, filter: &Scope<'_>) -> Option<Self> {
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

/// What two filters admit both.
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
