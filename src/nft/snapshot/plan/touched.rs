//! A plan where only some chains, sets and elements can differ from what is desired.

use std::collections::HashMap;

use bstr::BString;

use super::elements::Compared;
use super::{Plan, PlanOptions, Planner};
use crate::nft::SetRef;
use crate::nft::snapshot::elements::is_tree;
use crate::nft::snapshot::places::Places;
use crate::nft::snapshot::{Restored, Snapshot, SnapshotTable, WriteError};
use crate::nft::watch::{MemberKey, SetTouch, Touches};

/// Where the elements of desired sets are; nothing where keys do not tell them apart.
pub(in crate::nft) type DesiredPlaces = HashMap<MemberKey, Option<Places>>;

/// What alone is not known to be as desired.
#[derive(Clone, Copy)]
pub(super) struct Only<'p> {
    pub(super) touched: &'p Touches,
    places: &'p DesiredPlaces,
}

impl Snapshot {
    /// As [`plan`](Self::plan) where all but what was touched is known to be as desired, in tables that both have;
    /// `None` where that depends on more.
    pub(in crate::nft) fn plan_touched(
        &self,
        desired: &Self,
        options: PlanOptions,
        touched: &Touches,
        places: &mut DesiredPlaces,
    ) -> Result<Option<Plan>, WriteError> {
        desired.find_places(touched, places);
        let mut restored = Restored::default();
        let mut planner = Planner::new(options, &mut restored);
        planner.only = Some(Only { touched, places });
        for table in desired.tables() {
            let view = table.table();
            let Some(current) = self.table(view.family(), view.name()) else {
                return Ok(None);
            };
            table.insist_whole("desired")?;
            planner.insist_comparable(&current, &table)?;
            planner.table(&current, &table)?;
        }
        Ok((!planner.depends).then(|| planner.finish(self)))
    }

    /// Finds out where the elements are of the sets of which some were touched, if that is not known.
    fn find_places(&self, touched: &Touches, places: &mut DesiredPlaces) {
        for (key, touch) in &touched.sets {
            if matches!(touch, SetTouch::Whole) || places.contains_key(key) {
                continue;
            }
            let (family, table, name) = key;
            let set = self.table(*family, table).and_then(|table| table.set(name));
            // Of an interval in a tree both elements are needed, wherever its other one is.
            let found = set.filter(|set| !is_tree(set.set().flags().unwrap_or_default().bits()));
            if let Some(set) = found {
                places.insert(key.clone(), Places::of(&set));
            }
        }
    }
}

impl<'p> Only<'p> {
    /// The names of those of these members of tables that are in this one.
    pub(super) fn names_in<'s, I: Iterator<Item = &'p MemberKey>>(
        members: I,
        table: &SnapshotTable<'s>,
    ) -> impl Iterator<Item = &'p BString> + use<'p, 's, I> {
        let view = table.table();
        let own = members
            .filter(move |(family, table, _)| *family == view.family() && *table == view.name());
        own.map(|(_, _, name)| name)
    }

    /// Which elements of a set alone need not be as desired, if that is known.
    pub(super) fn elements(&self, set: &SetRef<'_>) -> Option<Compared<'p>> {
        let key = (set.family(), set.table().to_owned(), set.name().to_owned());
        match (self.touched.sets.get(&key)?, self.places.get(&key)?) {
            (SetTouch::Elements { keys, .. }, Some(places)) => Some(Compared::Keys(keys, places)),
            _ => None,
        }
    }
}
