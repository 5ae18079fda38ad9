//! Converts a service port to elements: its frontends, and groups of endpoints.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;

use super::rules::PickKey;
use super::sets::{ElementData, Entry, SetKind};
use crate::service::config::Config;
use crate::service::model::Protocol;
use crate::service::names::PortName;
use crate::service::resolve::{Backend, Backends, Refusal, ServicePort};

/// An address, protocol and port at which a service port can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ServiceFrontend {
    /// `None` for the node's addresses.
    pub(super) address: Option<IpAddr>,
    pub(super) protocol: Protocol,
    pub(super) port: u16,
}

/// The handling of traffic to a frontend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The group that receives it.
    group: Option<u32>,
    /// The group that receives traffic from outside that must stay on this node; the group may be empty.
    local: Option<u32>,
    masquerade: bool,
    refusal: Option<Refusal>,
    /// The clients that may use it; all if `None`.
    pub(super) sources: Option<Arc<[IpNet]>>,
}

impl ServiceFrontend {
    /// Returns the key of the frontend's elements.
    pub(super) fn key(&self) -> ElementData {
        let address = match self.address {
            Some(address) => ElementData::new().address(address),
            None => ElementData::new(),
        };
        address.protocol(self.protocol).port(self.port)
    }

    /// Calls `take` for each of the frontend's elements.
    pub(super) fn elements(&self, target: &Target, mut take: impl FnMut(SetKind, Entry)) {
        let key = self.key();
        let of = |kinds: [SetKind; 2]| kinds[usize::from(self.address.is_none())];
        let number = |group| Some(ElementData::new().number(group));
        if let Some(group) = target.group {
            let kind = of([SetKind::ServiceIps, SetKind::ServiceNodeports]);
            take(kind, (key, number(group)));
            if target.masquerade {
                let kind = of([SetKind::MasqueradeIps, SetKind::MasqueradeNodeports]);
                take(kind, (key, None));
            }
        }
        if let Some(group) = target.local {
            let kind = of([SetKind::LocalIps, SetKind::LocalNodeports]);
            take(kind, (key, number(group)));
        }
        match target.refusal {
            Some(Refusal::Reject) => {
                let kind = of([SetKind::RejectIps, SetKind::RejectNodeports]);
                take(kind, (key, None));
            }
            Some(Refusal::Drop) => {
                let kind = of([SetKind::DropIps, SetKind::DropNodeports]);
                take(kind, (key, None));
            }
            None => {}
        }
        if let Some(sources) = &target.sources {
            take(SetKind::FirewallIps, (key, None));
            for network in sources.iter() {
                let source = key
                    .number(u32::from(network.prefix_len()))
                    .address(network.network());
                take(SetKind::FirewallSources, (source, None));
            }
        }
    }
}

/// Returns the group of all of a service's endpoints; the group of local endpoints follows it.
pub(super) const fn cluster_group(id: u32) -> u32 {
    id * 2
}

/// Returns the service that a group belongs to.
pub(super) const fn id_of_group(group: u32) -> u32 {
    group / 2
}

/// Calls `take` with each frontend of a port and how its traffic is handled.
pub(super) fn frontends(
    port: &ServicePort,
    id: u32,
    config: &Config,
    mut take: impl FnMut(ServiceFrontend, Target),
) {
    let (cluster, local) = (cluster_group(id), cluster_group(id) + 1);
    let any = |backends: &[Backend], group| (!backends.is_empty()).then_some(group);
    let internal_group = if port.internal_local { local } else { cluster };
    let internal = Target {
        group: any(port.internal(), internal_group),
        local: None,
        masquerade: false,
        refusal: port.internal_refusal(),
        sources: None,
    };
    let external = Target {
        group: any(&port.backends.cluster, cluster),
        local: (port.external_local && port.backends.any).then_some(local),
        masquerade: !port.external_local,
        refusal: port.external_refusal(),
        sources: None,
    };
    let protocol = port.name.protocol;
    let at = |address| ServiceFrontend {
        address: Some(address),
        protocol,
        port: port.port,
    };
    if port.has_cluster_ip {
        take(at(port.cluster_ip), internal);
    }
    for address in &port.external_ips {
        take(at(*address), external.clone());
    }
    if !port.load_balancer_ips.is_empty() {
        let balanced = Target {
            sources: sources(port, config),
            ..external.clone()
        };
        for address in &port.load_balancer_ips {
            take(at(*address), balanced.clone());
        }
    }
    if let Some(port) = port.node_port {
        let frontend = ServiceFrontend {
            address: None,
            protocol,
            port,
        };
        take(frontend, external);
    }
}

/// Returns the networks that may use the load balancer. If they contain the node, they include the balancer's address,
/// too: a node that has this address as its own sends from it.
fn sources(port: &ServicePort, config: &Config) -> Option<Arc<[IpNet]>> {
    if port.source_ranges.is_empty() {
        return None;
    }
    let mut sources = port.source_ranges.clone();
    let mut node = config.node_addresses.iter();
    if node.any(|node| port.source_ranges.iter().any(|range| range.contains(node))) {
        sources.extend(port.load_balancer_ips.iter().copied().map(IpNet::from));
    }
    sources.sort_unstable();
    sources.dedup();
    Some(sources.into())
}

/// Returns the endpoints that some traffic on this node reaches: those of the cluster, and those of the node. Empty for
/// a port that has lost all of its addresses to others.
fn used(port: &ServicePort) -> [&[Backend]; 2] {
    let Backends { cluster, local, .. } = &port.backends;
    if !port.has_cluster_ip && !port.is_external() {
        return [&[]; 2];
    }
    [
        if port.uses_cluster() { cluster } else { &[] },
        if port.uses_local() { local } else { &[] },
    ]
}

/// Returns the endpoints of this node, whose connections to themselves are masqueraded; some of them twice.
pub(super) fn hairpins(port: &ServicePort) -> impl Iterator<Item = (Protocol, SocketAddr)> {
    let protocol = port.name.protocol;
    let backends = used(port).into_iter().flatten();
    backends
        .filter(|backend| backend.local)
        .map(move |backend| (protocol, backend.address))
}

pub(super) fn hairpin((protocol, endpoint): &(Protocol, SocketAddr)) -> Entry {
    let key = ElementData::new()
        .address(endpoint.ip())
        .address(endpoint.ip());
    (key.protocol(*protocol).port(endpoint.port()), None)
}

/// A port as written to the kernel.
#[derive(Debug, Clone)]
pub(super) struct PortSlots {
    pub(super) name: Arc<PortName>,
    /// Its number, from which its groups' numbers follow.
    pub(super) id: u32,
    /// Endpoints by slot: all, and those of this node.
    pub(super) groups: [Vec<SocketAddr>; 2],
    /// The pick keys of the groups.
    pub(super) pick_keys: [Option<PickKey>; 2],
    has_affinity: bool,
    /// Numbers of the endpoints of both groups, for ports with affinity. An endpoint keeps its number as long as it
    /// exists.
    pub(super) numbers: HashMap<SocketAddr, u32>,
}

impl PortSlots {
    /// Creates a port without endpoints.
    pub(super) fn new(name: PortName, id: u32) -> Self {
        Self {
            name: Arc::new(name),
            id,
            groups: [Vec::new(), Vec::new()],
            pick_keys: [None, None],
            has_affinity: false,
            numbers: HashMap::new(),
        }
    }

    /// Assigns slots to a port's endpoints: existing ones keep theirs, others fill the gaps.
    pub(super) fn assign_slots(&self, port: Option<&ServicePort>) -> Self {
        let desired: [&[Backend]; 2] = port.map_or([&[]; 2], used);
        let affinity = port.and_then(|port| port.affinity);
        let groups = [0, 1].map(|g| assign_slots(&self.groups[g], desired[g]));
        let pick_key = |slots: &Vec<SocketAddr>| {
            (!slots.is_empty()).then(|| PickKey::new(slots.len(), affinity))
        };
        Self {
            name: Arc::clone(&self.name),
            id: self.id,
            pick_keys: [pick_key(&groups[0]), pick_key(&groups[1])],
            numbers: match affinity {
                Some(_) => numbered(&self.numbers, groups.iter().flatten().copied()),
                None => HashMap::new(),
            },
            groups,
            has_affinity: affinity.is_some(),
        }
    }

    /// The elements that belong to this port alone.
    pub(super) fn elements(&self, mut take: impl FnMut(SetKind, Entry)) {
        let nothing = Self {
            groups: [Vec::new(), Vec::new()],
            pick_keys: [None, None],
            has_affinity: false,
            numbers: HashMap::new(),
            ..self.clone()
        };
        self.changes(&nothing, |kind, entry, add| {
            debug_assert!(add);
            take(kind, entry);
        });
    }

    /// Calls `take` for each element to delete (`false`) and add (`true`) since `before`.
    pub(super) fn changes(&self, before: &Self, mut take: impl FnMut(SetKind, Entry, bool)) {
        for g in 0..2 {
            let group = cluster_group(self.id) + g as u32;
            let number = ElementData::new().number(group);
            if before.pick_keys[g] != self.pick_keys[g] {
                for (pick_key, add) in [(before.pick_keys[g], false), (self.pick_keys[g], true)] {
                    if let Some(pick_key) = pick_key {
                        let value = ElementData::new().number(pick_key.number());
                        take(SetKind::Groups, (number, Some(value)), add);
                    }
                }
            }
            let (old, new) = (&before.groups[g], &self.groups[g]);
            for slot in 0..old.len().max(new.len()) {
                let (old, new) = (old.get(slot), new.get(slot));
                if old != new {
                    for (endpoint, add) in [(old, false), (new, true)] {
                        if let Some(endpoint) = endpoint {
                            let key = number.number(slot as u32);
                            let value = ElementData::new().endpoint(*endpoint);
                            take(SetKind::Endpoints, (key, Some(value)), add);
                        }
                    }
                }
            }
            // Rare, so compare all entries of both.
            if before.has_affinity || self.has_affinity {
                let (old, new) = (before.kept(g), self.kept(g));
                for entry in old.difference(&new) {
                    take(entry.0, entry.1, false);
                }
                for entry in new.difference(&old) {
                    take(entry.0, entry.1, true);
                }
            }
        }
    }

    /// Returns the additional entries of a group with affinity: each endpoint's number by slot, and the endpoint by its
    /// number.
    fn kept(&self, g: usize) -> HashSet<(SetKind, Entry)> {
        if !self.has_affinity {
            return HashSet::new();
        }
        let group = ElementData::new().number(cluster_group(self.id) + g as u32);
        let mut entries = HashSet::new();
        for (slot, &endpoint) in (0_u32..).zip(&self.groups[g]) {
            let Some(&number) = self.numbers.get(&endpoint) else {
                continue; // never: all have one
            };
            let slot = group.number(slot);
            entries.insert((
                SetKind::AffinityPlaces,
                (slot, Some(ElementData::new().number(number))),
            ));
            let value = ElementData::new().endpoint(endpoint);
            entries.insert((
                SetKind::AffinityEndpoints,
                (group.number(number), Some(value)),
            ));
        }
        entries
    }
}

/// Assigns numbers to endpoints: known ones keep theirs; others get the first free one, starting from [`number_of`].
fn numbered(
    before: &HashMap<SocketAddr, u32>,
    endpoints: impl Iterator<Item = SocketAddr>,
) -> HashMap<SocketAddr, u32> {
    let endpoints: BTreeSet<SocketAddr> = endpoints.collect();
    let kept = endpoints
        .iter()
        .filter_map(|endpoint| Some((*endpoint, *before.get(endpoint)?)));
    let mut numbers: HashMap<_, _> = kept.collect();
    let mut taken: HashSet<u32> = numbers.values().copied().collect();
    for endpoint in endpoints {
        numbers.entry(endpoint).or_insert_with(|| {
            let mut number = number_of(endpoint);
            while !taken.insert(number) {
                number = number.wrapping_add(1);
            }
            number
        });
    }
    numbers
}

/// Returns an endpoint's number, if no other endpoint of the service has it: the same in both groups of the service,
/// after a restart, and when the endpoint returns.
fn number_of(endpoint: SocketAddr) -> u32 {
    // FNV-1a: short, well known, and the same everywhere.
    let words = ElementData::new().endpoint(endpoint);
    words.as_bytes().iter().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

/// Assigns slots to endpoints: known ones keep theirs if that is in range; the others fill the gaps.
fn assign_slots(before: &[SocketAddr], desired: &[Backend]) -> Vec<SocketAddr> {
    let desired = &desired[..desired.len().min(PickKey::MAX_ENDPOINTS)];
    if before.is_empty() {
        return desired.iter().map(|backend| backend.address).collect();
    }
    // Most often they are the same ones, or some of them with others at the end.
    let same = before.iter().zip(desired);
    if before.len() <= desired.len() && same.clone().all(|(old, new)| *old == new.address) {
        return desired.iter().map(|backend| backend.address).collect();
    }
    // Index and whether it has a slot, by address.
    let order: HashMap<SocketAddr, usize> = desired
        .iter()
        .enumerate()
        .map(|(i, backend)| (backend.address, i))
        .collect();
    let mut has_place = vec![false; desired.len()];
    let mut slots = vec![None; desired.len()];
    for (slot, address) in slots.iter_mut().zip(before) {
        if let Some(&i) = order.get(address)
            && !has_place[i]
        {
            has_place[i] = true;
            *slot = Some(*address);
        }
    }
    let mut others = desired
        .iter()
        .zip(&has_place)
        .filter_map(|(backend, has_place)| (!has_place).then_some(backend.address));
    slots
        .into_iter()
        .filter_map(|slot| slot.or_else(|| others.next()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backends(ports: &[u16]) -> Vec<Backend> {
        let backend = |port: &u16| Backend {
            address: ([10, 0, 0, 1], *port).into(),
            local: false,
        };
        ports.iter().map(backend).collect()
    }

    fn assigned(before: &[u16], desired: &[u16]) -> Vec<u16> {
        let before: Vec<_> = backends(before).iter().map(|b| b.address).collect();
        let slots = assign_slots(&before, &backends(desired));
        slots.iter().map(|address| address.port()).collect()
    }

    #[test]
    fn endpoint_numbers_are_stable() {
        let endpoint = |n: u32| {
            let address = std::net::Ipv4Addr::from(n.wrapping_mul(2_654_435_761));
            SocketAddr::from((address, 8080))
        };
        // The first pair of endpoints with the same number.
        let mut by_number = HashMap::new();
        let pair = (0..1 << 16).find_map(|n| {
            let other = by_number.insert(number_of(endpoint(n)), n)?;
            let mut pair = [endpoint(other), endpoint(n)];
            pair.sort();
            Some(pair)
        });
        let [low, high] = pair.expect("some endpoints should have the same number");
        let alone = numbered(&HashMap::new(), [high].into_iter());
        for before in [&alone, &numbered(&alone, [high, low].into_iter())] {
            let both = numbered(before, [low, high].into_iter());
            assert_eq!(both[&high], alone[&high]);
            assert_ne!(both[&low], both[&high]);
            assert_eq!(both.len(), 2);
            // When the other is removed, the remaining one keeps its number.
            let left = numbered(&both, [low].into_iter());
            assert_eq!(left[&low], both[&low]);
        }
    }

    #[test]
    fn remaining_endpoints_keep_their_slots() {
        assert_eq!(assigned(&[], &[3, 1, 2]), [3, 1, 2]);
        assert_eq!(assigned(&[3, 1, 2], &[1, 2, 3, 4]), [3, 1, 2, 4]);
        assert_eq!(assigned(&[3, 1, 2, 4], &[1, 2, 4]), [4, 1, 2]);
        assert!(assigned(&[1, 2, 3], &[]).is_empty());
        assert_eq!(assigned(&[1, 2, 3], &[7, 8, 9, 2]), [7, 2, 8, 9]);
        // The kernel has one twice, after a manual change: one of them keeps the slot.
        assert_eq!(assigned(&[1, 1, 2], &[1, 2]), [1, 2]);
    }
}
