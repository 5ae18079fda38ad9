//! The flat layout: services and endpoints are elements of maps and sets of data; chains and rules are constant.
//!
//! The path of a new connection, in the terms of `nft`:
//!
//! ```text
//! ip daddr . meta l4proto . th dport  →  @service-ips  →  group  →  @groups  →  number of endpoints
//!     →  @picks  →  chain pick-3:
//!         group . numgen random mod 3  →  @endpoints  →  dnat to address . port
//! ```
//!
//! The random number must be below the number of endpoints, but the modulus in a rule is a constant. So there is a
//! chain for each number of endpoints that some service has, created when the first such service appears. Everything
//! else is data. Adding an endpoint adds one element and replaces one; adding a service adds the service's own
//! elements. The cost does not depend on the rest of the table. The kernel validates all chains again when a chain, a
//! rule or an element of a verdict map changes, but not when an element of another map changes.
//!
//! | map or set | key → value |
//! |---|---|
//! | `service-ips`, `service-nodeports` | (address, protocol,) port → group |
//! | `local-ips`, `local-nodeports` | the same → group, for traffic from outside that stays on this node |
//! | `groups` | group → number of endpoints and seconds of affinity |
//! | `endpoints` | group, slot → endpoint |
//! | `affinity` | even group of the service port, client → number of the endpoint; maintained by the rules |
//! | `affinity-places` | group, slot → number of the endpoint |
//! | `affinity-endpoints` | group, number of the endpoint → endpoint |
//! | `masquerade-…`, `reject-…`, `drop-…`, `firewall-ips` | (address, protocol,) port |
//! | `firewall-sources` | address, protocol, port, prefix length, network |
//! | `hairpin-connections` | the address of an endpoint on this node, as source and as destination, with protocol and port |
//! | `cluster-ips`, `nodeport-ips` | address |
//!
//! Each rule performs its own lookups: Linux 6.18 refuses a rule that reads registers set by another rule (`ENODATA`).
//!
//! Differences from kube-proxy's nftables mode: the affinity of a client to a service ends for all of its ports' groups
//! together, not for the set of one endpoint; a service port has at most 32,767 endpoints, further ones are omitted.

mod changes;
mod kernel;
mod port_ids;
mod rules;
mod service;
mod sets;
mod sync;
mod write;

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bstr::BStr;
use chainwright::iptables::Family;
use chainwright::nft::{Connection, Generation, Ownership, Transaction};
use chainwright::{Error, nft};
use changes::{DeferredDeletions, Elements};
use kernel::Written;
use port_ids::IdAllocator;
use rules::{PickKey, Rules};
use service::{PortSlots, ServiceFrontend, Target, frontends, hairpin, hairpins};
pub(in crate::service) use sets::TABLE;
use sets::{ElementData, SetKind};
pub(in crate::service) use sync::clean_up;

use super::shared_elements::SharedElements;
use super::{Common, FamilyLayout, PortChange, Ports};
use crate::service::config::Config;
use crate::service::map::Map;
use crate::service::model::Protocol;
use crate::service::names::PortName;
use crate::service::resolve::ServicePort;

/// Largest number of clients that the rules remember for services with affinity.
const CLIENTS: u32 = 1 << 18;

/// Returns `true` if this is a set or map of the layout whose keys are frontends of services.
pub(crate) fn has_frontend_keys(table: &BStr, set: &BStr) -> bool {
    let mut kinds = SetKind::ALL.iter().filter(|kind| kind.has_frontend_keys());
    table == TABLE && kinds.any(|kind| set == kind.name())
}

/// Returns `true` if a table has the layout's name.
pub(crate) fn is_table(name: &BStr) -> bool {
    name == TABLE
}

/// The flat layout of one family.
#[derive(Debug)]
pub(in crate::service) struct Flat {
    nft: Connection,
    family: Family,
    /// The name of the table to write.
    name: &'static str,
    common: Common,
    state: State,
    /// The protection against changes by other programs; `None` before that was checked.
    ownership: Option<Ownership>,
    /// The generation that the last commit left, if others may change the table.
    generation: Option<Generation>,
    /// Kept for its buffer.
    transaction: Transaction,
    /// The chains' rules as the kernel listed them after the last transaction that wrote some.
    written: Written,
    /// Whether transactions are only checked.
    check_only: bool,
    deferred: DeferredDeletions,
}

/// The kernel's state, except for elements that the rules add.
#[derive(Debug, Default)]
struct State {
    port_slots: Map<Arc<PortName>, PortSlots>,
    ids: IdAllocator,
    frontends: SharedElements<Arc<PortName>, ServiceFrontend, Target>,
    cluster_ips: SharedElements<Arc<PortName>, IpAddr, ()>,
    hairpins: SharedElements<Arc<PortName>, (Protocol, SocketAddr), ()>,
    pick_keys: HashSet<PickKey>,
    /// Prefix lengths of the firewalls' networks.
    lengths: HashSet<u8>,
}

impl State {
    /// Updates a port, and records the operations on the elements that belong to it alone.
    fn apply(
        &mut self,
        name: &PortName,
        [before, after]: [Option<&ServicePort>; 2],
        config: &Config,
        elements: &mut Elements,
    ) {
        let new;
        let port_slots = match self.port_slots.get(name) {
            Some(port_slots) => port_slots,
            None => {
                new = PortSlots::new(name.clone(), self.ids.take());
                &new
            }
        };
        let now = port_slots.assign_slots(after);
        now.changes(port_slots, |kind, entry, add| {
            elements.push(kind, entry, add)
        });
        for pick_key in now.pick_keys.into_iter().flatten() {
            if self.pick_keys.insert(pick_key) {
                elements.pick_keys.push(pick_key);
            }
        }
        let owner = &now.name;
        if let Some(port) = before {
            frontends(port, now.id, config, |frontend, _| {
                self.frontends.release(owner, &frontend);
            });
            self.cluster_ips.release(owner, &port.cluster_ip);
            for endpoint in hairpins(port) {
                self.hairpins.release(owner, &endpoint);
            }
        }
        match after {
            Some(port) => {
                self.acquire(owner, now.id, port, config);
                self.port_slots.insert(Arc::clone(&now.name), now);
            }
            None => {
                self.ids.released.push(now.id);
                self.port_slots.swap_remove(name);
            }
        }
    }

    fn acquire(&mut self, owner: &Arc<PortName>, id: u32, port: &ServicePort, config: &Config) {
        frontends(port, id, config, |frontend, target| {
            self.frontends.acquire(Arc::clone(owner), frontend, target);
        });
        self.cluster_ips
            .acquire(Arc::clone(owner), port.cluster_ip, ());
        for endpoint in hairpins(port) {
            self.hairpins.acquire(Arc::clone(owner), endpoint, ());
        }
    }

    /// Records the operations on elements that several ports may share.
    fn take_changed(&mut self, elements: &mut Elements) {
        for changed in self.frontends.take_changed() {
            let of = |target: &Option<Target>| {
                let mut entries = Vec::new();
                if let Some(target) = target {
                    (changed.key).elements(target, |kind, entry| entries.push((kind, entry)));
                }
                entries
            };
            let (before, after) = (of(&changed.before), of(&changed.after));
            for (entries, others, add) in [(&before, &after, false), (&after, &before, true)] {
                for entry in entries.iter().filter(|entry| !others.contains(entry)) {
                    elements.push(entry.0, entry.1, add);
                }
            }
            let sources = changed.after.iter().filter_map(|t| t.sources.as_ref());
            for network in sources.flat_map(|sources| sources.iter()) {
                if self.lengths.insert(network.prefix_len()) {
                    elements.lengths.push(network.prefix_len());
                }
            }
        }
        for changed in self.cluster_ips.take_changed() {
            let entry = (ElementData::new().address(changed.key), None);
            elements.push(SetKind::ClusterIps, entry, changed.after.is_some());
        }
        for changed in self.hairpins.take_changed() {
            let entry = hairpin(&changed.key);
            elements.push(SetKind::Hairpins, entry, changed.after.is_some());
        }
    }
}

impl Flat {
    /// Creates the layout with its own connection.
    pub(in crate::service) fn new(
        mut nft: Connection,
        family: Family,
        config: Arc<Config>,
    ) -> Self {
        // After an unknown outcome, `change` leaves the table to a full sync.
        nft.set_compares_generations(false);
        Self {
            nft,
            family,
            name: TABLE,
            common: Common::new(config),
            state: State::default(),
            ownership: None,
            generation: None,
            transaction: Transaction::new(),
            written: Written::default(),
            check_only: false,
            deferred: DeferredDeletions::default(),
        }
    }

    /// Returns the connection.
    pub(super) fn into_connection(self) -> Connection {
        self.nft
    }

    fn table(&self) -> nft::Family {
        self.family.into()
    }

    fn rules(&self) -> Rules<'_> {
        Rules {
            family: self.family,
            name: self.name,
            config: &self.common.config,
        }
    }
}

impl FamilyLayout for Flat {
    fn full_sync(&mut self, ports: &Ports) -> Result<usize, Error> {
        let mut attempts = self.nft.retry().begin();
        loop {
            let synced = self.full_sync_once(ports);
            // From this call, or from a process that ended in the middle.
            let removed = self.remove_stand_in();
            let synced = synced.and_then(|made| Ok(made + removed?));
            match synced {
                Err(Error::Commit(error)) if error.generation_moved() && attempts.again() => {}
                Err(Error::Netlink(chainwright::netlink::Error::Interrupted))
                    if attempts.again() => {}
                synced => return synced,
            }
        }
    }

    fn change(&mut self, ports: &Ports, changes: &[PortChange]) -> Result<usize, Error> {
        if self.ownership.is_none() && self.generation.is_none() {
            return self.full_sync(ports);
        }
        let mut elements = Elements::default();
        for change in changes {
            let states = [change.before.as_deref(), change.after.as_deref()];
            self.state
                .apply(&change.name, states, &self.common.config, &mut elements);
        }
        self.state.take_changed(&mut elements);
        if elements.is_empty() {
            return Ok(0);
        }
        match self.execute(&mut elements, true) {
            Ok(made) => Ok(made),
            // Another program made a change, or the table is not as the last change left it.
            Err(Error::Commit(error)) if error.is_refusal() || error.generation_moved() => {
                tracing::info!(%error, "reading the table again");
                self.full_sync(ports)
            }
            Err(error) => {
                self.ownership = None;
                self.generation = None;
                Err(error)
            }
        }
    }

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn set_check_only(&mut self, yes: bool) -> bool {
        self.nft.set_check_only(yes);
        self.check_only = yes;
        true
    }

    fn remove(&mut self) -> Result<(), Error> {
        clean_up(&mut self.nft, self.family)?;
        self.ownership = None;
        self.generation = None;
        self.state = State::default();
        self.deferred = DeferredDeletions::default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::WAITS;
    use chainwright::nft::Table;

    use super::sets::STAND_IN;
    use super::*;
    use crate::service::model::ObjectName;
    use chainwright_testing::Sandbox;

    /// A transaction that is only checked leaves nothing for a second one.
    #[test]
    fn print_cold_start_with_firewall() {
        let sandbox = Sandbox::new().unwrap();
        let nft = sandbox.run(Connection::open).unwrap().unwrap();
        let config = Config {
            own: false,
            ..Config::new("node1")
        };
        let name = PortName {
            service: ObjectName::new("default", "web"),
            port: "".into(),
            protocol: Protocol::Tcp,
        };
        let mut port = ServicePort::new(name, [10, 96, 0, 1].into(), 80);
        port.load_balancer_ips = vec![[192, 0, 2, 1].into()];
        port.source_ranges = vec!["198.51.100.0/24".parse().unwrap()];
        let ports = Ports::from_iter([(port.name.clone(), Arc::new(port))]);
        let mut flat = Flat::new(nft, Family::Ipv4, Arc::new(config));
        flat.set_check_only(true);
        assert_eq!(flat.full_sync(&ports).unwrap(), 1);
        flat.set_check_only(false);
        assert_eq!(flat.full_sync(&ports).unwrap(), 2);
    }

    /// It may still be needed by packets that found nothing in the table before the repair.
    #[test]
    fn leftover_stand_in_is_removed_when_unused() {
        let sandbox = Sandbox::new().unwrap();
        let nft = sandbox.run(Connection::open).unwrap().unwrap();
        let mut flat = Flat::new(nft, Family::Ipv4, Arc::new(Config::new("node1")));
        flat.full_sync(&Ports::default()).unwrap();
        let mut tx = Transaction::new();
        tx.add(&Table::new(nft::Family::IP, STAND_IN)).unwrap();
        flat.nft.commit(&tx).unwrap();
        let before = WAITS.get();
        assert_eq!(flat.full_sync(&Ports::default()).unwrap(), 1);
        assert_eq!(WAITS.get(), before + 1);
        assert!(flat.nft.table(nft::Family::IP, STAND_IN).unwrap().is_none());
    }
}
