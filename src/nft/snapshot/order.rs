//! The order of base chains with the same priority at a hook. The kernel runs the chain first that was registered last
//! (`nf_hook_entries_grow`), so a recreated chain runs before the others.
//!
//! Messages about chains don't contain this order, and the hooks themselves are not requested. The kernel lists the
//! chains of one table in the order of creation, so their order is known. The creation order of chains in different
//! tables is unknown; when a chain has to be created, the order of the tables in the listing is used instead, and it is
//! not compared.

use std::collections::HashMap;
#[cfg(feature = "diff")]
use std::collections::HashSet;
use std::fmt;

use bstr::{BStr, BString};

use super::SnapshotChain;
use super::rule_members::is_bound;
use crate::nft::{ChainRef, Device, Family, Hook, hook_name};

/// A list of hook functions that the kernel runs in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct HookPoint {
    family: Family,
    hook: u32,
    device: BString,
    priority: i32,
    /// NAT chains have lists of their own, which one hook function of the kernel runs.
    is_nat: bool,
}

/// The device of chains whose device names are unknown.
const ANY_DEVICE: &str = "*";

/// Returns the lists of a chain; none for a regular chain.
fn hook_points(chain: &ChainRef<'_>) -> Vec<HookPoint> {
    let Some(hook) = chain.hook() else {
        return Vec::new();
    };
    let (Some(number), Some(priority)) = (hook.number, hook.priority) else {
        return Vec::new();
    };
    let is_nat = chain.chain_type().is_some_and(|kind| kind == "nat");
    let hook_point = |family, hook, device: &BStr| HookPoint {
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
                .map(|family| hook_point(family, number, none))
                .to_vec();
        }
        (Family::NETDEV, number) => number,
        (family, number) => return vec![hook_point(family, number, none)],
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
    let hook_points = devices
        .iter()
        .map(|device| hook_point(Family::NETDEV, ingress, device.as_ref()));
    hook_points.collect()
}

/// Iterates over a table's base chains, as listed.
pub(super) fn base_chains<'s>(
    chains: impl Iterator<Item = SnapshotChain<'s>>,
) -> impl Iterator<Item = SnapshotChain<'s>> {
    chains.filter(|chain| chain.chain().is_base() && !is_bound(chain))
}

/// Determines which chains to recreate so that all run in the desired order.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The last chain created in each list.
    made: HashMap<HookPoint, String>,
}

/// The reason why a chain is recreated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    /// The chain that it has to precede.
    before: String,
    hook_point: String,
}

/// Formats as `must be called before chain ip t a (hook output, priority -100)`.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "must be called before {} ({})",
            self.before, self.hook_point
        )
    }
}

/// Formats as `hook output, priority -100`.
fn describe_hook(chain: &ChainRef<'_>) -> String {
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
    /// Processes a table's desired base chains, as listed. `there` returns the position in the current listing of a
    /// chain that could remain, `None` for others. Returns the chains that cannot remain: the chains that run after
    /// them are created later.
    ///
    /// Tables must be processed in the order in which their chains are created.
    pub(super) fn of_table<'s>(
        &mut self,
        desired: impl Iterator<Item = SnapshotChain<'s>>,
        there: impl Fn(&BStr) -> Option<usize>,
    ) -> Vec<(&'s BStr, Reason)> {
        // The remaining chain with the highest position in the current listing.
        let mut last: HashMap<HookPoint, (usize, String)> = HashMap::new();
        let mut recreated = Vec::new();
        for chain in desired {
            let chain = chain.chain();
            let hook_points = hook_points(&chain);
            let now = there(chain.name());
            let reason = now.and_then(|now| {
                let before = hook_points.iter().find_map(|hook_point| {
                    let overtaken = last.get(hook_point).filter(|(last, _)| *last > now);
                    let overtaken = overtaken.map(|(_, name)| name);
                    self.made.get(hook_point).or(overtaken)
                })?;
                Some(Reason {
                    before: before.clone(),
                    hook_point: describe_hook(&chain),
                })
            });
            match (now, &reason) {
                (Some(now), None) => {
                    for hook_point in hook_points {
                        let last = last
                            .entry(hook_point)
                            .or_insert_with(|| (now, named(&chain)));
                        if now >= last.0 {
                            *last = (now, named(&chain));
                        }
                    }
                }
                _ => self.made.extend(
                    hook_points
                        .into_iter()
                        .map(|hook_point| (hook_point, named(&chain))),
                ),
            }
            recreated.extend(reason.map(|reason| (chain.name(), reason)));
        }
        recreated
    }
}

/// The names of the chains of one list, in the order in which they run.
#[cfg(feature = "diff")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Moved {
    /// `hook output, priority -100`
    pub(super) hook_point: String,
    pub(super) old: String,
    pub(super) new: String,
}

/// Returns the lists whose chains, as far as a table has them in both listings, run in another order.
#[cfg(feature = "diff")]
pub(super) fn moved<'s>(
    old: impl Iterator<Item = SnapshotChain<'s>>,
    new: impl Iterator<Item = SnapshotChain<'s>>,
) -> Vec<Moved> {
    type Lists<'s> = (Vec<HookPoint>, HashMap<HookPoint, Vec<ChainRef<'s>>>);
    fn lists<'s>(chains: impl Iterator<Item = SnapshotChain<'s>>) -> Lists<'s> {
        let (mut order, mut lists) = (Vec::new(), HashMap::<HookPoint, Vec<_>>::new());
        for chain in base_chains(chains) {
            let chain = chain.chain();
            for hook_point in hook_points(&chain) {
                let list = lists.entry(hook_point.clone()).or_default();
                if list.is_empty() {
                    order.push(hook_point);
                }
                list.insert(0, chain);
            }
        }
        (order, lists)
    }
    let ((order, old), (_, new)) = (lists(old), lists(new));
    let mut moved: Vec<Moved> = Vec::new();
    for hook_point in order {
        let (Some(before), Some(after)) = (old.get(&hook_point), new.get(&hook_point)) else {
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
                hook_point: describe_hook(&before[0]),
                old: was.join(", "),
                new: is.join(", "),
            };
            // Reports a chain in several lists only once.
            if !moved.contains(&change) {
                moved.push(change);
            }
        }
    }
    moved
}
