//! Plans if only some chains, sets and elements can differ.

use std::collections::HashMap;

use bstr::BString;

use super::elements::ElementSelection;
use super::{Plan, PlanOptions, Planner};
use crate::nft::SetRef;
use crate::nft::change_detector::{MemberKey, SetTouch, TouchedObjects};
use crate::nft::snapshot::element_positions::ElementPositions;
use crate::nft::snapshot::elements::is_tree;
use crate::nft::snapshot::{Restored, Snapshot, SnapshotTable, WriteError};

/// The positions of the elements of desired sets; `None` for a set with duplicate keys.
pub(in crate::nft) type DesiredPositions = HashMap<MemberKey, Option<ElementPositions>>;

/// The objects that may differ from the desired ones.
#[derive(Clone, Copy)]
pub(super) struct TouchedOnly<'p> {
    pub(super) touched: &'p TouchedObjects,
    element_positions: &'p DesiredPositions,
}

impl Snapshot {
    /// Plans like [`plan`](Self::plan), if everything but the touched objects is as desired, in tables that exist on
    /// both sides; `None` if the plan depends on other objects.
    pub(in crate::nft) fn plan_touched(
        &self,
        desired: &Self,
        options: PlanOptions,
        touched: &TouchedObjects,
        element_positions: &mut DesiredPositions,
    ) -> Result<Option<Plan>, WriteError> {
        desired.index_positions(touched, element_positions);
        let mut restored = Restored::default();
        let mut planner = Planner::new(options, &mut restored);
        planner.only = Some(TouchedOnly {
            touched,
            element_positions,
        });
        for table in desired.tables() {
            let view = table.table();
            let Some(current) = self.table(view.family(), view.name()) else {
                return Ok(None);
            };
            table.ensure_complete("desired")?;
            planner.ensure_comparable(&current, &table)?;
            planner.table(&current, &table)?;
        }
        Ok((!planner.depends).then(|| planner.finish(self)))
    }

    /// Indexes the elements of sets in which some were touched, if not done yet.
    fn index_positions(&self, touched: &TouchedObjects, element_positions: &mut DesiredPositions) {
        for (key, touch) in &touched.sets {
            if matches!(touch, SetTouch::Whole) || element_positions.contains_key(key) {
                continue;
            }
            let (family, table, name) = key;
            let set = self.table(*family, table).and_then(|table| table.set(name));
            // In a tree both elements of an interval are needed, wherever the other one is.
            let found = set.filter(|set| !is_tree(set.set().flags().unwrap_or_default().bits()));
            if let Some(set) = found {
                element_positions.insert(key.clone(), ElementPositions::of(&set));
            }
        }
    }
}

impl<'p> TouchedOnly<'p> {
    /// Returns the names of those of these members that are in this table.
    pub(super) fn names_in<'s, I: Iterator<Item = &'p MemberKey>>(
        members: I,
        table: &SnapshotTable<'s>,
    ) -> impl Iterator<Item = &'p BString> + use<'p, 's, I> {
        let view = table.table();
        let own = members
            .filter(move |(family, table, _)| *family == view.family() && *table == view.name());
        own.map(|(_, _, name)| name)
    }

    /// Returns the elements of a set that may differ, if they are known.
    pub(super) fn elements(&self, set: &SetRef<'_>) -> Option<ElementSelection<'p>> {
        let key = (set.family(), set.table().to_owned(), set.name().to_owned());
        match (
            self.touched.sets.get(&key)?,
            self.element_positions.get(&key)?,
        ) {
            (SetTouch::Elements { keys, .. }, Some(element_positions)) => {
                Some(ElementSelection::Keys(keys, element_positions))
            }
            _ => None,
        }
    }
}
