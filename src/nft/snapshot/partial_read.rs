//! Reads only the objects to which a text refers: some sets, the ranges of some of them, and the handles or rules of
//! some chains, with their tables.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use bstr::BString;
use chainwright_sys::nf_tables::{NFT_MSG_GETSETELEM, NFTA_LIST_ELEM, NFTA_SET_ELEM_LIST_ELEMENTS};

use super::index::set_at;
use super::read::{Reader, ReplySocket};
use super::{ElementFilter, Snapshot, SnapshotError};
use crate::netlink::Error;
use crate::nft::change_detector::MemberKey;
use crate::nft::connection::Connection;
use crate::nft::{Element, Scope, SetFlags, SetId};

/// The objects to read.
#[doc(hidden)]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needed {
    /// Sets to read; those with `true` including the elements, if these are ranges.
    pub sets: BTreeMap<MemberKey, bool>,
    /// Declared sets and the lengths of their keys in bytes: if such a set exists and has a range up to the last key,
    /// its elements have to be read. The kernel doesn't detect overlaps with such a range.
    pub open_ranges: Vec<(MemberKey, usize)>,
    /// Chains to read; those with `true` including the rules.
    pub chains: BTreeMap<MemberKey, bool>,
}

impl Needed {
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.chains.is_empty()
    }
}

impl Connection {
    /// Looks for ranges up to the last key, and requests the elements of sets that have one.
    #[doc(hidden)]
    pub fn find_open_ranges(&mut self, needed: &mut Needed) -> Result<(), Error> {
        for ((family, table, name), length) in mem::take(&mut needed.open_ranges) {
            let set = SetId::new(family, table.as_slice(), name.as_slice());
            let last = Element::new(vec![0xff; length]);
            let request = "look up an element";
            let found = self.request_once(request, NFT_MSG_GETSETELEM, family, |writer| {
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
                // A set of another kind: the kernel will refuse the text's operations.
                Err(Error::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads these objects, of one generation. All others are unknown, so the snapshot is suitable for planning, but
    /// not for restoring.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    #[doc(hidden)]
    pub fn needed(&mut self, needed: &Needed) -> Result<Snapshot, SnapshotError> {
        self.consistent(&Scope::all(), ElementFilter::all(), false, |reader, _| {
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
                // Concatenated ranges need no other elements.
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
                self.rules_of(number, chain, Some(ReplySocket::Long))?;
                // Each rule has the handle of the preceding one.
                let index = &self.snapshot.index.tables[number].chains[chain];
                self.consistent &= !index.broken;
            }
        }
        Ok(())
    }
}
