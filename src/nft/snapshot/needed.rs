//! What a text needs to know of what is there: some sets, of some of them the ranges, and of some chains the handle or the
//! rules, with their tables. What else there is, however much, is not read.

use std::collections::{BTreeMap, BTreeSet};

use bstr::BString;

use super::index::set_at;
use super::read::{Lane, Reader};
use super::{ElementsOf, Snapshot, SnapshotError};
use crate::netlink::Error;
use crate::nft::connection::Connection;
use crate::nft::watch::MemberKey;
use crate::nft::{Scope, SetFlags};

/// What is needed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Needed {
    /// Sets that must be known; of those with `true` also the elements, where these are ranges.
    pub(crate) sets: BTreeMap<MemberKey, bool>,
    /// Chains that must be known; of those with `true` also the rules.
    pub(crate) chains: BTreeMap<MemberKey, bool>,
}

impl Needed {
    pub(crate) fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.chains.is_empty()
    }
}

impl Connection {
    /// Reads what is needed, of one generation. It says nothing of what is not needed, and is to be planned with, not to be
    /// written back.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub(crate) fn needed(&mut self, needed: &Needed) -> Result<Snapshot, SnapshotError> {
        self.consistent(&Scope::all(), ElementsOf::all(), false, |reader, _| {
            reader.needed(needed)
        })
    }
}

impl Reader<'_> {
    fn needed(&mut self, needed: &Needed) -> Result<(), Error> {
        let mut sets: BTreeMap<usize, BTreeSet<BString>> = BTreeMap::new();
        for (family, table, name) in needed.sets.keys() {
            if let Some(table) = self.one_table(*family, table.as_ref())? {
                sets.entry(table).or_default().insert(name.clone());
            }
        }
        for (table, names) in sets {
            let (family, of) = self.table_name(table)?;
            for set in self.sets_named(table, &names)? {
                let at = self.snapshot.index.tables[table].sets[set].at;
                let view = set_at(&self.snapshot.arena, at)?;
                let flags = view.flags().unwrap_or_default();
                // Those of several fields stand for themselves.
                let are_ranges =
                    flags.contains(SetFlags::INTERVAL) && !flags.contains(SetFlags::CONCAT);
                let key = (family, of.clone(), view.name().to_owned());
                if are_ranges && needed.sets.get(&key) == Some(&true) {
                    self.whole_elements_of(table, set)?;
                }
            }
        }
        for ((family, table, name), with_rules) in &needed.chains {
            let Some(number) = self.one_table(*family, table.as_ref())? else {
                continue;
            };
            let chain = self.one_chain(number, name.as_ref())?;
            if let Some(chain) = chain.filter(|_| *with_rules) {
                self.rules_of(number, chain, Some(Lane::Long))?;
                // Each rule names the one before it.
                let index = &self.snapshot.index.tables[number].chains[chain];
                self.consistent &= !index.broken;
            }
        }
        Ok(())
    }
}
