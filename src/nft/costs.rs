//! Operations of a transaction that take the kernel unusually much time or memory: see `docs/costs.md`.

use std::collections::HashMap;
use std::fmt;

use bstr::{BStr, BString, ByteSlice as _};
use chainwright_sys::nf_tables::{NFT_MSG_NEWSET, NFT_MSG_NEWSETELEM};

use super::name::Name;
use super::{Elements, Family, Set, SetFlags, Transaction};
use crate::error::Error;
use crate::escape::Escaped;

/// The number of comparisons of sets from which a transaction is reported: 5,000 sets that are added to an empty table.
/// They take 0.4 s if they are named, and 2 to 3.5 s if they are anonymous.
const COMPARISONS: u64 = 5_000 * 5_000 / 2;
/// The number of bitmaps from which they are reported: 33 MB.
const BITMAPS: usize = 1_000;
/// The number of elements of a concatenation with ranges from which they are reported: each commit copies the set.
const CONCATENATED: usize = 50_000;

/// Operations of a transaction that take the kernel unusually much time or memory, with their number.
///
/// The limits follow the measurements in the repository's `docs/costs.md`, which describes the alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cost {
    /// Many sets of one table. The kernel compares each new set with all other sets of its table.
    ManySets {
        /// Family and name of the table.
        table: (Family, BString),
        /// Number of sets that the transaction adds, including those of rules (`tcp dport { 22, 80 }`).
        added: usize,
        /// Number of sets that the table contained before.
        existing: usize,
    },
    /// Many sets of ports or other keys of two bytes in one table. The kernel stores each in a bitmap of 33 KB.
    ManyBitmaps {
        /// Family and name of the table.
        table: (Family, BString),
        /// Number of sets that the transaction adds.
        added: usize,
    },
    /// Many elements of a new set with several fields and ranges. Each later commit to the set copies them.
    LargeConcatenation {
        /// Family and name of the table.
        table: (Family, BString),
        /// Name of the set.
        set: BString,
        /// Number of fields.
        fields: usize,
        /// Number of elements that the transaction adds.
        added: usize,
    },
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManySets {
                table: (family, table),
                added,
                existing,
            } => write!(
                f,
                "{added} new sets in addition to {existing} in {family} {}: the kernel compares each new set with all others of \
                 its table; use maps with many elements, or several tables",
                Escaped(table.as_bstr())
            ),
            Self::ManyBitmaps {
                table: (family, table),
                added,
            } => write!(
                f,
                "{added} new sets with keys of two bytes in {family} {}: each takes 33 KB of the kernel's memory; use \
                 one set or map whose keys also contain the values in which the rules differ",
                Escaped(table.as_bstr())
            ),
            Self::LargeConcatenation {
                table: (family, table),
                set,
                fields,
                added,
            } => write!(
                f,
                "{added} new elements of {family} {} {}, a set of {fields} fields with ranges: each later commit to the \
                 set copies all its elements; change it in few large transactions",
                Escaped(table.as_bstr()),
                Escaped(set.as_bstr())
            ),
        }
    }
}

/// The sets that a transaction adds to a table.
#[derive(Debug, Default)]
struct Added {
    sets: usize,
    bitmaps: usize,
    /// Number of fields, and of added elements, of each concatenation with ranges.
    concatenations: HashMap<BString, (usize, usize)>,
}

impl Transaction {
    /// Returns the operations that take the kernel unusually much time or memory, given the number of sets that a table
    /// contains.
    pub(super) fn costs(
        &self,
        mut existing: impl FnMut(Family, &BStr) -> Result<usize, Error>,
    ) -> Result<Vec<Cost>, Error> {
        let owned = |name: &Name<'_>| BString::from(name.as_bytes());
        let mut order = Vec::new();
        let mut tables: HashMap<(Family, BString), Added> = HashMap::new();
        for message in self.messages() {
            let Ok((header, attributes)) = message.nfgenmsg() else {
                continue;
            };
            let family = Family(header.family);
            match message.kind as u8 {
                NFT_MSG_NEWSET => {
                    let Ok(set) = Set::from_attributes(family, attributes) else {
                        continue;
                    };
                    let (Some(table), Some(name)) = (&set.table, &set.name) else {
                        continue;
                    };
                    let key = (family, owned(table));
                    let added = tables.entry(key.clone()).or_insert_with(|| {
                        order.push(key);
                        Added::default()
                    });
                    added.sets += 1;
                    added.bitmaps += usize::from(is_bitmap(&set));
                    let fields = (set.description.and_then(|description| description.fields))
                        .map_or(0, |fields| fields.lengths().len());
                    let flags = set.flags.unwrap_or_default();
                    if fields > 1 && flags.contains(SetFlags::INTERVAL) {
                        added.concatenations.insert(owned(name), (fields, 0));
                    }
                }
                NFT_MSG_NEWSETELEM => {
                    if let Ok(elements) = Elements::from_attributes(family, attributes)
                        && let (Some(table), Some(set)) = (&elements.table, &elements.set)
                        && let Some(added) = tables.get_mut(&(family, owned(table)))
                        && let Some((_, count)) = added.concatenations.get_mut(&owned(set))
                    {
                        *count += elements.elements.iter().flatten().count();
                    }
                }
                _ => {}
            }
        }
        let mut costs = Vec::new();
        for table in order {
            let added = &tables[&table];
            // 100 sets reach the limit only in a table with 125,000 others.
            if added.sets > 100 {
                let before = existing(table.0, table.1.as_bstr())?;
                let comparisons = added.sets as u64 * (before as u64 + added.sets as u64 / 2);
                if comparisons >= COMPARISONS {
                    costs.push(Cost::ManySets {
                        table: table.clone(),
                        added: added.sets,
                        existing: before,
                    });
                }
            }
            if added.bitmaps >= BITMAPS {
                costs.push(Cost::ManyBitmaps {
                    table: table.clone(),
                    added: added.bitmaps,
                });
            }
            let mut concatenations: Vec<_> = added.concatenations.iter().collect();
            concatenations.sort_unstable();
            costs.extend(
                (concatenations.into_iter())
                    .filter(|(_, (_, elements))| *elements >= CONCATENATED)
                    .map(|(set, &(fields, added))| Cost::LargeConcatenation {
                        table: table.clone(),
                        set: set.clone(),
                        fields,
                        added,
                    }),
            );
        }
        Ok(costs)
    }
}

/// Returns whether the kernel stores the set in a bitmap.
fn is_bitmap(set: &Set<'_>) -> bool {
    let others =
        SetFlags::INTERVAL | SetFlags::MAP | SetFlags::TIMEOUT | SetFlags::OBJECT | SetFlags::EVAL;
    set.key_length == Some(2) && !set.flags.unwrap_or_default().intersects(others)
}
