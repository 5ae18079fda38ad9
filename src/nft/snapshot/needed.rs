//! What a text needs to know of what is there: some sets, of some of them the ranges, and of some chains the handle or the
//! rules, with their tables. What else there is, however much, is not read.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use bstr::BString;
use chainwright_sys::nf_tables::{NFT_MSG_GETSETELEM, NFTA_LIST_ELEM, NFTA_SET_ELEM_LIST_ELEMENTS};

use super::index::set_at;
use super::read::{Lane, Reader};
use super::{ElementsOf, Snapshot, SnapshotError};
use crate::netlink::Error;
use crate::nft::connection::Connection;
use crate::nft::watch::MemberKey;
use crate::nft::{Element, Scope, SetFlags, SetId};

/// What is needed.
#[doc(hidden)]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needed {
    /// Sets that must be known; of those with `true` also the elements, where these are ranges.
    pub sets: BTreeMap<MemberKey, bool>,
    /// Sets that are declared: where one is there and has a range that reaches the last key of this length in bytes, its
    /// elements must be known. The kernel does not see what overlaps such a range.
    pub open_ranges: Vec<(MemberKey, usize)>,
    /// Chains that must be known; of those with `true` also the rules.
    pub chains: BTreeMap<MemberKey, bool>,
}

impl Needed {
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.chains.is_empty()
    }
}

impl Connection {
    /// Looks for ranges that reach the last key, and needs the elements of sets that have one.
    #[doc(hidden)]
    pub fn look_for_open_ranges(&mut self, needed: &mut Needed) -> Result<(), Error> {
        for ((family, table, name), length) in mem::take(&mut needed.open_ranges) {
            let set = SetId::new(family, table.as_slice(), name.as_slice());
            let last = Element::new(vec![0xff; length]);
            let request = "look an element up";
            let found = self.look_once(request, NFT_MSG_GETSETELEM, family, |writer| {
                set.write(writer);
                writer.nested(NFTA_SET_ELEM_LIST_ELEMENTS, |writer| {
                    writer.nested(NFTA_LIST_ELEM, |writer| last.write_named(writer));
                });
            });
            match found {
                Ok(None) => {}
                Ok(Some(_)) | Err(Error::Lost(_)) => {
                    needed.sets.insert((family, table, name), true);
                }
                // A set of another kind is there: the kernel refuses what the text makes of it.
                Err(Error::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what is needed, of one generation. It says nothing of what is not needed, and is to be planned with, not to be
    /// written back.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    #[doc(hidden)]
    pub fn needed(&mut self, needed: &Needed) -> Result<Snapshot, SnapshotError> {
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
