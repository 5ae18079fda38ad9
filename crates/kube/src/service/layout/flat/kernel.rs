//! Reads the kernel's table, when a proxy starts or another program changed it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;

use bstr::BStr;

use super::changes::DeferredDeletions;
use super::port_ids::IdAllocator;
use super::rules::{FIREWALL, PickKey};
use super::service::{ServiceFrontend, cluster_group, id_of_group};
use super::sets::{ElementData, SetKind, TABLE};
use chainwright::Error;
use chainwright::nft::{
    Connection, ElementFilter, Family, Scope, Snapshot, SnapshotChain, SnapshotOptions,
    is_same_rule,
};

/// The table as the kernel has it.
#[derive(Debug)]
pub(super) struct KernelTable {
    /// Elements of all sets that describe services.
    pub(super) entries: HashMap<SetKind, HashMap<ElementData, Option<ElementData>>>,
    /// The pick keys that have chains, by the chains' names.
    pub(super) pick_keys: HashMap<String, PickKey>,
    /// Elements that refer to such chains.
    pub(super) picks: HashSet<(SetKind, u32)>,
    /// Service numbers that occur in elements.
    pub(super) ids: HashSet<u32>,
    /// Endpoints of each group by slot.
    slots: HashMap<u32, BTreeMap<u32, SocketAddr>>,
    /// Numbers of each service's endpoints.
    numbers: HashMap<u32, HashMap<SocketAddr, u32>>,
    /// Sets, chains and rules, without elements.
    now: Snapshot,
}

/// The rules of each chain, with their handles, as the kernel lists them.
pub(super) type Written = HashMap<String, Vec<u8>>;

impl KernelTable {
    /// Returns the addresses and ports that refer to each port's groups, by the port's number.
    pub(super) fn frontend_keys(&self) -> HashMap<u32, HashSet<ElementData>> {
        let kinds = [
            SetKind::ServiceIps,
            SetKind::LocalIps,
            SetKind::ServiceNodeports,
            SetKind::LocalNodeports,
        ];
        let mut frontend_keys: HashMap<u32, HashSet<ElementData>> = HashMap::new();
        for (key, group) in kinds
            .iter()
            .filter_map(|kind| self.entries.get(kind))
            .flatten()
        {
            if let Some(group) = group.as_ref().and_then(|group| group.number_at(0)) {
                frontend_keys
                    .entry(id_of_group(group))
                    .or_default()
                    .insert(*key);
            }
        }
        frontend_keys
    }

    /// Returns the number of a port: the number to which its cluster IP refers (the first of its frontends, if it has
    /// one), or one to which only other frontends of this port refer. A node port or another address may have belonged
    /// to another port, whose number packets in flight may have looked up.
    pub(super) fn number(
        &self,
        frontends: &[ServiceFrontend],
        has_cluster_ip: bool,
        frontend_keys: &HashMap<u32, HashSet<ElementData>>,
    ) -> Option<u32> {
        let number = |frontend: &ServiceFrontend| {
            let kinds = match frontend.address {
                Some(_) => [SetKind::ServiceIps, SetKind::LocalIps],
                None => [SetKind::ServiceNodeports, SetKind::LocalNodeports],
            };
            let key = frontend.key();
            let group = kinds
                .into_iter()
                .find_map(|kind| self.entries.get(&kind)?.get(&key)?.as_ref()?.number_at(0));
            group.map(id_of_group)
        };
        let is_own = |id: &u32| {
            let is_frontend =
                |key: &ElementData| frontends.iter().any(|frontend| frontend.key() == *key);
            frontend_keys
                .get(id)
                .is_some_and(|keys| keys.iter().all(is_frontend))
        };
        let cluster_ip = frontends.first().filter(|_| has_cluster_ip);
        let first = cluster_ip.and_then(number);
        first.or_else(|| frontends.iter().filter_map(number).find(is_own))
    }

    /// Returns a port's endpoints, in their slots.
    pub(super) fn slots(&self, id: u32) -> [Vec<SocketAddr>; 2] {
        [0, 1].map(|local| {
            let slots = self.slots.get(&(cluster_group(id) + local));
            let endpoints = slots.into_iter().flat_map(|slots| slots.values());
            endpoints.copied().collect()
        })
    }

    /// Returns the numbers of a port's endpoints, used for affinity.
    pub(super) fn numbers(&self, id: u32) -> HashMap<SocketAddr, u32> {
        self.numbers.get(&id).cloned().unwrap_or_default()
    }

    /// Lists chains of `desired` that are missing or have other rules. Rules that the kernel lists differently than
    /// expected are correct if they equal the ones `written` last.
    pub(super) fn differing(&self, desired: &Snapshot, written: &Written) -> HashSet<String> {
        let mut differing = HashSet::new();
        let now: HashMap<_, _> = chains(&self.now).collect();
        for (name, wanted) in chains(desired) {
            let is_right = now.get(&name).is_some_and(|there| {
                is_same_base(there, &wanted)
                    && (is_same(&name, there, &wanted)
                        || written.get(&name) == Some(&listed(there)))
            });
            if !is_right {
                differing.insert(name);
            }
        }
        differing
    }

    /// Returns whether sets of `desired` are missing; `None` if an existing one differs.
    pub(super) fn lacks_sets(&self, desired: &Snapshot) -> Option<bool> {
        let there: HashMap<_, _> = sets(&self.now).collect();
        let mut lacks = false;
        for (name, set) in sets(desired) {
            match there.get(name) {
                Some(there) if *there != set => return None,
                Some(_) => {}
                None => lacks = true,
            }
        }
        Some(lacks)
    }
}

/// Returns the types of keys and data of the table's sets, by name.
fn sets(snapshot: &Snapshot) -> impl Iterator<Item = (&BStr, impl PartialEq)> {
    let sets = snapshot.tables().flat_map(|table| table.sets());
    sets.map(|set| {
        let set = set.set();
        let keys = (set.key_type(), set.key_length());
        (set.name(), (keys, set.data_type()))
    })
}

/// Returns the table's chains by name.
fn chains(snapshot: &Snapshot) -> impl Iterator<Item = (String, SnapshotChain<'_>)> {
    let chains = snapshot.tables().flat_map(|table| table.chains());
    chains.map(|chain| (chain.chain().name().to_string(), chain))
}

/// Returns `true` if both are at the same hook, or at none.
fn is_same_base(one: &SnapshotChain<'_>, other: &SnapshotChain<'_>) -> bool {
    let (one, other) = (one.chain(), other.chain());
    one.hook() == other.hook() && one.chain_type() == other.chain_type()
}

/// Returns `true` if both have the same rules. A firewall's rules for prefix lengths may be in any order.
fn is_same(name: &str, one: &SnapshotChain<'_>, other: &SnapshotChain<'_>) -> bool {
    if one.rules().len() != other.rules().len() {
        return false;
    }
    let mut others: Vec<_> = other.rules().collect();
    if name != FIREWALL {
        return one
            .rules()
            .zip(&others)
            .all(|(one, other)| is_same_rule(&one, other));
    }
    let last = one.rules().last().zip(others.last());
    last.is_none_or(|(one, other)| is_same_rule(&one, other))
        && one.rules().all(|rule| {
            let place = others.iter().position(|other| is_same_rule(&rule, other));
            place.map(|place| others.swap_remove(place)).is_some()
        })
}

fn listed(chain: &SnapshotChain<'_>) -> Vec<u8> {
    let rules: Vec<_> = chain.rules().collect();
    let attributes = rules.iter().flat_map(|rule| rule.attributes());
    let raw = attributes
        .map_while(Result::ok)
        .map(|attribute| attribute.raw);
    raw.collect::<Vec<_>>().concat()
}

/// Reads the table's rules as the kernel lists them.
pub(super) fn rules(nft: &mut Connection, family: Family) -> Result<Written, Error> {
    let now = without_elements(nft, family)?;
    Ok(chains(&now)
        .map(|(name, chain)| (name, listed(&chain)))
        .collect())
}

fn without_elements(nft: &mut Connection, family: Family) -> Result<Snapshot, Error> {
    let options = SnapshotOptions {
        elements: ElementFilter::empty(),
    };
    Ok(nft.snapshot_with(Scope::table(family, TABLE), options)?)
}

/// The result of reading the table.
#[derive(Debug)]
pub(super) enum Found {
    /// No table, or an empty one.
    Nothing,
    /// A table in a form that this version does not write.
    Other,
    /// A table in this version's form.
    Known(Box<KernelTable>),
}

/// Reads the table, without the elements in `deferred`. Removes those from `deferred` that the table does not have.
pub(super) fn read(
    nft: &mut Connection,
    family: Family,
    deferred: &mut DeferredDeletions,
) -> Result<Found, Error> {
    let now = without_elements(nft, family)?;
    let of_chain =
        |(name, _): (String, _)| PickKey::of_chain(&name).map(|pick_key| (name, pick_key));
    let pick_keys = chains(&now).filter_map(of_chain).collect();
    let known = chains(&now).next().is_some();
    let sets = now.tables().flat_map(|table| table.sets());
    let names: HashSet<_> = sets.map(|set| set.set().name().to_owned()).collect();
    if !known || names.is_empty() {
        let empty = !known && names.is_empty();
        return Ok(if empty { Found::Nothing } else { Found::Other });
    }
    let mut picks = HashSet::new();
    for kind in [SetKind::Picks, SetKind::LocalPicks] {
        if names.contains(kind.name().as_bytes()) {
            let mut listing = nft.elements(family, TABLE, kind.name())?;
            while let Some(element) = listing.try_next()? {
                let key = element.key_bytes().and_then(ElementData::of);
                picks.extend(key.and_then(|key| key.number_at(0)).map(|key| (kind, key)));
            }
        }
    }
    let mut entries: HashMap<_, HashMap<_, _>> = HashMap::new();
    for kind in SetKind::ALL {
        if !kind.depends_only_on_services() || !names.contains(kind.name().as_bytes()) {
            continue;
        }
        let mut set = HashMap::new();
        let mut listing = nft.elements(family, TABLE, kind.name())?;
        while let Some(element) = listing.try_next()? {
            let Some(key) = element.key_bytes().and_then(ElementData::of) else {
                return Ok(Found::Other);
            };
            let value = element.data_bytes().map(ElementData::of);
            set.insert(key, value.flatten());
        }
        deferred.entries[kind as usize].retain(|(key, value)| {
            let is_there = set.get(key) == Some(value);
            is_there && set.remove(key).is_some()
        });
        entries.insert(kind, set);
    }
    let mut slots: HashMap<u32, BTreeMap<u32, SocketAddr>> = HashMap::new();
    for (key, value) in entries.get(&SetKind::Endpoints).into_iter().flatten() {
        if let (Some(group), Some(slot)) = (key.number_at(0), key.number_at(1))
            && let Some(endpoint) = value.as_ref().and_then(ElementData::as_endpoint)
        {
            slots.entry(group).or_default().insert(slot, endpoint);
        }
    }
    let mut numbers: HashMap<u32, HashMap<SocketAddr, u32>> = HashMap::new();
    let mut taken = HashSet::new();
    for (key, value) in entries
        .get(&SetKind::AffinityEndpoints)
        .into_iter()
        .flatten()
    {
        if let (Some(group), Some(number)) = (key.number_at(0), key.number_at(1))
            && let Some(endpoint) = value.as_ref().and_then(ElementData::as_endpoint)
        {
            let id = id_of_group(group);
            let of_id = numbers.entry(id).or_default();
            // Both groups have the same numbers, unless another program changed them.
            if !of_id.contains_key(&endpoint) && taken.insert((id, number)) {
                of_id.insert(endpoint, number);
            }
        }
    }
    let mut ids = HashSet::new();
    for (kind, entries) in &entries {
        for (key, value) in entries {
            let group = match kind {
                SetKind::Groups
                | SetKind::Endpoints
                | SetKind::AffinityPlaces
                | SetKind::AffinityEndpoints => key.number_at(0),
                SetKind::ServiceIps
                | SetKind::ServiceNodeports
                | SetKind::LocalIps
                | SetKind::LocalNodeports => value.as_ref().and_then(|group| group.number_at(0)),
                _ => None,
            };
            ids.extend(group.map(id_of_group).filter(|id| *id < IdAllocator::END));
        }
    }
    Ok(Found::Known(Box::new(KernelTable {
        entries,
        pick_keys,
        picks,
        ids,
        slots,
        numbers,
        now,
    })))
}
