//! The order of base chains that have the same priority at a hook. The kernel calls the chain first that was registered
//! last (`nf_hook_entries_grow`), so a chain that is made anew is called before the others.
//!
//! No message about chains tells the order; that of what is registered at hooks is not asked for. Chains of one table
//! are listed in the order in which they were made, so theirs is known. Of chains in different tables it is not known
//! which was made first; the order in which the tables are listed is taken for it when a chain is to be made, and is
//! not compared.

use std::collections::HashMap;
#[cfg(feature = "diff")]
use std::collections::HashSet;
use std::fmt;

use bstr::{BStr, BString};

use super::SnapshotChain;
use super::within::is_bound;
use crate::nft::{ChainRef, Device, Family, Hook, hook_name};

/// A list of functions that the kernel calls one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    family: Family,
    hook: u32,
    device: BString,
    priority: i32,
    /// Chains that translate addresses have lists of their own, which one function of the kernel calls.
    is_nat: bool,
}

/// The device of chains whose devices are not known by name.
const ANY_DEVICE: &str = "*";

/// Returns the lists that a chain is in; none for one that is no base chain.
fn places(chain: &ChainRef<'_>) -> Vec<Place> {
    let Some(hook) = chain.hook() else {
        return Vec::new();
    };
    let (Some(number), Some(priority)) = (hook.number, hook.priority) else {
        return Vec::new();
    };
    let is_nat = chain.chain_type().is_some_and(|kind| kind == "nat");
    let place = |family, hook, device: &BStr| Place {
        family,
        hook,
        device: device.to_owned(),
        priority,
        is_nat,
    };
    let none = BStr::new("");
    let ingress = match (chain.family(), number) {
        (Family::INET, Hook::INET_INGRESS) => Hook::INGRESS,
        (Family::INET, _) => {
            return [Family::IP, Family::IP6]
                .map(|family| place(family, number, none))
                .to_vec();
        }
        (Family::NETDEV, number) => number,
        (family, number) => return vec![place(family, number, none)],
    };
    let mut devices: Vec<BString> = hook
        .device
        .iter()
        .map(|name| BString::from(&**name))
        .collect();
    for device in hook.devices.iter().flat_map(|devices| devices.iter()) {
        devices.push(match device {
            Device::Name(name) => name.into(),
            _ => ANY_DEVICE.into(),
        });
    }
    devices.sort();
    devices.dedup();
    let places = devices
        .iter()
        .map(|device| place(Family::NETDEV, ingress, device.as_ref()));
    places.collect()
}

/// A table's base chains, as they are listed.
pub(super) fn base_chains<'s>(
    chains: impl Iterator<Item = SnapshotChain<'s>>,
) -> impl Iterator<Item = SnapshotChain<'s>> {
    chains.filter(|chain| chain.chain().is_base() && !is_bound(chain))
}

/// Which chains are to be made anew so that all are called in the desired order.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Where a chain is made, and which is the last.
    made: HashMap<Place, String>,
}

/// Why a chain is made anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    /// The chain before which it is to be called.
    before: String,
    place: String,
}

/// `is to be called before chain ip t a (hook output, priority -100)`
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "is to be called before {} ({})", self.before, self.place)
    }
}

/// `hook output, priority -100`
fn in_words(chain: &ChainRef<'_>) -> String {
    let hook = chain.hook().unwrap_or_default();
    let number = hook.number.unwrap_or_default();
    let priority = hook.priority.unwrap_or_default();
    match hook_name(chain.family(), number) {
        Some(name) => format!("hook {name}, priority {priority}"),
        None => format!("hook {number}, priority {priority}"),
    }
}

fn named(chain: &ChainRef<'_>) -> String {
    format!(
        "chain {} {} {}",
        chain.family(),
        chain.table(),
        chain.name()
    )
}

impl Order {
    /// Takes in a table's desired base chains, as they are listed. `there` says of those that could stay where they are in
    /// the listing now, `None` for others. Returns those that cannot stay: the chains that are called after them are
    /// made later.
    ///
    /// Tables are to be given in the order in which their chains are made.
    pub(super) fn of_table<'s>(
        &mut self,
        desired: impl Iterator<Item = SnapshotChain<'s>>,
        there: impl Fn(&BStr) -> Option<usize>,
    ) -> Vec<(&'s BStr, Reason)> {
        // The last in the listing now of those that stay.
        let mut last: HashMap<Place, (usize, String)> = HashMap::new();
        let mut anew = Vec::new();
        for chain in desired {
            let chain = chain.chain();
            let places = places(&chain);
            let now = there(chain.name());
            let reason = now.and_then(|now| {
                let before = places.iter().find_map(|place| {
                    let overtaken = last.get(place).filter(|(last, _)| *last > now);
                    let overtaken = overtaken.map(|(_, name)| name);
                    self.made.get(place).or(overtaken)
                })?;
                Some(Reason {
                    before: before.clone(),
                    place: in_words(&chain),
                })
            });
            match (now, &reason) {
                (Some(now), None) => {
                    for place in places {
                        let last = last.entry(place).or_insert_with(|| (now, named(&chain)));
                        if now >= last.0 {
                            *last = (now, named(&chain));
                        }
                    }
                }
                _ => self
                    .made
                    .extend(places.into_iter().map(|place| (place, named(&chain)))),
            }
            anew.extend(reason.map(|reason| (chain.name(), reason)));
        }
        anew
    }
}

/// Chains of one list, by names, as they are called.
#[cfg(feature = "diff")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moved {
    /// `hook output, priority -100`
    pub(super) place: String,
    pub(super) old: String,
    pub(super) new: String,
}

/// Returns where base chains that a table has in both listings are called in another order.
#[cfg(feature = "diff")]
pub(super) fn moved<'s>(
    old: impl Iterator<Item = SnapshotChain<'s>>,
    new: impl Iterator<Item = SnapshotChain<'s>>,
) -> Vec<Moved> {
    type Lists<'s> = (Vec<Place>, HashMap<Place, Vec<ChainRef<'s>>>);
    fn lists<'s>(chains: impl Iterator<Item = SnapshotChain<'s>>) -> Lists<'s> {
        let (mut order, mut lists) = (Vec::new(), HashMap::<Place, Vec<_>>::new());
        for chain in base_chains(chains) {
            let chain = chain.chain();
            for place in places(&chain) {
                let list = lists.entry(place.clone()).or_default();
                if list.is_empty() {
                    order.push(place);
                }
                list.insert(0, chain);
            }
        }
        (order, lists)
    }
    let ((order, old), (_, new)) = (lists(old), lists(new));
    let mut moved: Vec<Moved> = Vec::new();
    for place in order {
        let (Some(before), Some(after)) = (old.get(&place), new.get(&place)) else {
            continue;
        };
        let names = |list: &[ChainRef<'s>], other: &[ChainRef<'s>]| -> Vec<String> {
            let other: HashSet<&BStr> = other.iter().map(ChainRef::name).collect();
            let both = list.iter().filter(|chain| other.contains(chain.name()));
            both.map(|chain| chain.name().to_string()).collect()
        };
        let (was, is) = (names(before, after), names(after, before));
        if was != is {
            let change = Moved {
                place: in_words(&before[0]),
                old: was.join(", "),
                new: is.join(", "),
            };
            // Once, of a chain that is in several lists.
            if !moved.contains(&change) {
                moved.push(change);
            }
        }
    }
    moved
}
