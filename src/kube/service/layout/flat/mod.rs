//! The flat layout: services and endpoints are elements of maps and sets of data; chains and rules stay as they are.
//!
//! The way of a new connection, in the words of `nft`:
//!
//! ```text
//! ip daddr . meta l4proto . th dport  →  @service-ips  →  group  →  @groups  →  number of endpoints
//!     →  @picks  →  chain pick-3:
//!         group . numgen random mod 3  →  @endpoints  →  dnat to address . port
//! ```
//!
//! The number that is drawn must be below the number of endpoints, which a rule cannot look up: so there is a chain for
//! each number of endpoints that some service has, made when the first comes. All else is data: an endpoint more is
//! one element added and one replaced, a service more its own elements, whatever there is besides. The kernel looks
//! at all chains anew when a chain, a rule or an element of a verdict map changes; it does not for data.
//!
//! | map or set | key → value |
//! |---|---|
//! | `service-ips`, `service-nodeports` | (address, protocol,) port → group |
//! | `local-ips`, `local-nodeports` | the same → group, of what comes from outside and stays on this node |
//! | `groups` | group → number of endpoints and seconds of affinity |
//! | `endpoints` | group, place → endpoint |
//! | `affinity` | group, client → number of the endpoint; kept by the rules |
//! | `affinity-places` | group, place → number of the endpoint |
//! | `affinity-endpoints` | group, number of the endpoint → endpoint |
//! | `masquerade-…`, `reject-…`, `drop-…`, `firewall-ips` | (address, protocol,) port |
//! | `firewall-sources` | address, protocol, port, length of prefix, network |
//! | `hairpin-connections` | endpoints of this node, twice |
//! | `cluster-ips`, `nodeport-ips` | address |
//!
//! Each rule looks up itself what it needs: Linux 6.18 refuses one that reads what another left in the registers
//! (`ENODATA`).
//!
//! What differs from kube-proxy's nftables mode: affinity of a client to a service ends with that to all its ports'
//! groups, not to one endpoint's set; a service has at most 32,767 endpoints on a node, the others are left out.

mod kernel;
mod rules;
mod service;
mod sets;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bstr::BStr;
use kernel::Found;
use rules::{Rules, Shape};
use service::{Front, Placed, Target, fronts, hairpin, hairpins, id_of_group};
pub(in crate::kube::service) use sets::TABLE;
use sets::{Entry, SetKind, Words, element};

use super::claims::Claims;
use super::{Common, FamilyLayout, PortChange, Ports};
use crate::error::Error;
use crate::iptables::Family;
use crate::kube::service::config::{Config, NodePortAddresses, is_of};
use crate::kube::service::map::Map;
use crate::kube::service::model::Protocol;
use crate::kube::service::names::PortName;
use crate::kube::service::resolve::ServicePort;
use crate::nft::{
    self, CommitError, Connection, Element, Generation, Ownership, SetId, Table, Transaction,
};

/// How many clients the rules remember for services with affinity.
const CLIENTS: u32 = 1 << 18;
/// How many elements go into one transaction of a cold start: a megabyte, which stays in the caches. Each is of whole
/// services.
const AT_ONCE: usize = 20_000;

/// Whether this is a set or map of the layout whose keys are what services are reached by.
pub(in crate::kube) fn is_of_fronts(table: &BStr, set: &BStr) -> bool {
    let mut kinds = SetKind::ALL.iter().filter(|kind| kind.is_of_fronts());
    table == TABLE && kinds.any(|kind| set == kind.name())
}

/// Whether a table is the layout's, by its name.
pub(in crate::kube) fn is_table(name: &BStr) -> bool {
    name == TABLE
}

/// The flat layout of one family.
#[derive(Debug)]
pub(in crate::kube::service) struct Flat {
    nft: Connection,
    family: Family,
    common: Common,
    state: State,
    /// What keeps others from changing the table; `None` before it was looked at.
    ownership: Option<Ownership>,
    /// That which the last commit left, if others may change the table.
    generation: Option<Generation>,
    /// Kept for its buffer.
    transaction: Transaction,
}

/// What is in the kernel, but for what the rules put there.
#[derive(Debug, Default)]
struct State {
    placed: Map<Arc<PortName>, Placed>,
    ids: Ids,
    fronts: Claims<Arc<PortName>, Front, Target>,
    cluster_ips: Claims<Arc<PortName>, IpAddr, ()>,
    hairpins: Claims<Arc<PortName>, (Protocol, SocketAddr), ()>,
    shapes: HashSet<Shape>,
    /// Lengths of the firewalls' prefixes.
    lengths: HashSet<u8>,
}

/// Numbers of ports.
#[derive(Debug, Default)]
struct Ids {
    free: Vec<u32>,
    next: u32,
}

impl Ids {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

/// What a transaction is to do to elements.
#[derive(Debug, Default)]
struct Elements {
    /// By the place of the set among [all](SetKind::ALL).
    delete: [Vec<Entry>; SetKind::ALL.len()],
    add: [Vec<Entry>; SetKind::ALL.len()],
    shapes: Vec<Shape>,
    lengths: Vec<u8>,
    count: usize,
}

impl Elements {
    fn push(&mut self, kind: SetKind, entry: Entry, add: bool) {
        let of = if add { &mut self.add } else { &mut self.delete };
        of[kind as usize].push(entry);
        self.count += 1;
    }

    /// Takes all of it out and keeps the memory.
    fn clear(&mut self) {
        let lists = self.delete.iter_mut().chain(&mut self.add);
        lists.for_each(Vec::clear);
        self.shapes.clear();
        self.lengths.clear();
        self.count = 0;
    }

    const fn is_empty(&self) -> bool {
        self.count == 0 && self.shapes.is_empty() && self.lengths.is_empty()
    }
}

impl State {
    /// Makes a port what it is to be, and notes what that does to the elements that it has for itself.
    fn apply(
        &mut self,
        name: &PortName,
        [before, after]: [Option<&ServicePort>; 2],
        config: &Config,
        elements: &mut Elements,
    ) {
        let new;
        let placed = match self.placed.get(name) {
            Some(placed) => placed,
            None => {
                new = Placed::new(name.clone(), self.ids.take());
                &new
            }
        };
        let now = placed.place(after);
        now.changes(placed, |kind, entry, add| elements.push(kind, entry, add));
        for shape in now.shapes.into_iter().flatten() {
            if self.shapes.insert(shape) {
                elements.shapes.push(shape);
            }
        }
        let owner = &now.name;
        if let Some(port) = before {
            fronts(port, now.id, config, |front, _| {
                self.fronts.release(owner, &front);
            });
            self.cluster_ips.release(owner, &port.cluster_ip);
            for endpoint in hairpins(port) {
                self.hairpins.release(owner, &endpoint);
            }
        }
        match after {
            Some(port) => {
                self.claim(owner, now.id, port, config);
                self.placed.insert(Arc::clone(&now.name), now);
            }
            None => {
                self.ids.free.push(now.id);
                self.placed.swap_remove(name);
            }
        }
    }

    fn claim(&mut self, owner: &Arc<PortName>, id: u32, port: &ServicePort, config: &Config) {
        fronts(port, id, config, |front, target| {
            self.fronts.claim(Arc::clone(owner), front, target);
        });
        self.cluster_ips
            .claim(Arc::clone(owner), port.cluster_ip, ());
        for endpoint in hairpins(port) {
            self.hairpins.claim(Arc::clone(owner), endpoint, ());
        }
    }

    /// Notes what came to be another of elements that several ports may ask for.
    fn take_changed(&mut self, elements: &mut Elements) {
        for changed in self.fronts.take_changed() {
            for (target, add) in [(&changed.before, false), (&changed.after, true)] {
                if let Some(target) = target {
                    let take = |kind, entry| elements.push(kind, entry, add);
                    changed.key.elements(target, take);
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
            let entry = (Words::new().address(changed.key), None);
            elements.push(SetKind::ClusterIps, entry, changed.after.is_some());
        }
        for changed in self.hairpins.take_changed() {
            let entry = hairpin(&changed.key);
            elements.push(SetKind::Hairpins, entry, changed.after.is_some());
        }
    }
}

impl Flat {
    /// Over a connection of its own.
    pub(in crate::kube::service) fn new(
        nft: Connection,
        family: Family,
        config: Arc<Config>,
    ) -> Self {
        Self {
            nft,
            family,
            common: Common::new(config),
            state: State::default(),
            ownership: None,
            generation: None,
            transaction: Transaction::new(),
        }
    }

    fn table(&self) -> nft::Family {
        self.family.into()
    }

    fn rules(&self) -> Rules<'_> {
        Rules {
            family: self.family,
            config: &self.common.config,
        }
    }

    fn set_id(&self, kind: SetKind) -> SetId<'static> {
        SetId::new(self.table(), TABLE, kind.name())
    }

    /// Writes what is to be done to elements: first what they refer to, then what goes, then what comes.
    fn write(&self, tx: &mut Transaction, elements: &Elements) -> Result<(), Error> {
        for length in &elements.lengths {
            self.rules().write_length(tx, *length)?;
        }
        for shape in &elements.shapes {
            self.rules().write_shape(tx, *shape)?;
            self.write_picks(tx, *shape)?;
        }
        for (kind, entries) in SetKind::ALL.into_iter().zip(&elements.delete) {
            tx.delete_elements(&self.set_id(kind), entries.iter().map(element))?;
        }
        for (kind, entries) in SetKind::ALL.into_iter().zip(&elements.add) {
            let pairs = entries.iter().map(|(key, value)| {
                let value = value.as_ref().map(Words::as_bytes);
                (key.as_bytes(), value)
            });
            tx.add_pairs(&self.set_id(kind), pairs)?;
        }
        Ok(())
    }

    /// Leads to the chains of a shape.
    fn write_picks(&self, tx: &mut Transaction, shape: Shape) -> Result<(), Error> {
        let key = shape.number().to_ne_bytes();
        for (kind, local) in [(SetKind::Picks, false), (SetKind::LocalPicks, true)] {
            let chain = shape.chain(local);
            let verdict = nft::expr::Verdict::Goto((&chain[..]).into());
            let element = Element::new(&key).with_verdict(verdict);
            tx.add_elements(&self.set_id(kind), [element])?;
        }
        Ok(())
    }

    /// Writes the table with all that does not come from services.
    fn write_base(&self, tx: &mut Transaction) -> Result<(), Error> {
        let rules = self.rules();
        if self.ownership != Some(Ownership::Owned) {
            tx.add(&rules.table_object(false)?)?;
        }
        for kind in SetKind::ALL {
            tx.add(&kind.set(self.family, CLIENTS)?)?;
        }
        if let NodePortAddresses::These(addresses) = &self.common.config.node_port_addresses {
            let nodeport_ips = self.set_id(SetKind::NodeportIps);
            tx.flush_set(&nodeport_ips)?;
            let mut keys: Vec<_> = addresses
                .iter()
                .filter(|address| is_of(**address, self.family))
                .map(|address| (Words::new().address(*address), None))
                .collect();
            keys.sort_unstable_by_key(|(key, _): &Entry| key.as_bytes().to_vec());
            keys.dedup();
            tx.add_elements(&nodeport_ips, keys.iter().map(element))?;
        }
        rules.write(tx, self.state.lengths.iter().copied())
    }

    /// Commits; on the generation that the last commit left, unless the kernel keeps others from the table.
    fn commit(&mut self, tx: &mut Transaction) -> Result<(), CommitError> {
        if self.ownership == Some(Ownership::Owned) {
            return self.nft.commit(tx);
        }
        if let Some(generation) = self.generation {
            tx.expect_generation(generation);
        }
        self.generation = self.nft.commit_numbered(tx)?;
        Ok(())
    }

    /// Fills a table that holds no services, in as many transactions as it takes. Each is of whole services: what was
    /// committed serves, whatever becomes of the rest. One that is made `anew` may serve already: that is one
    /// transaction.
    fn fill(&mut self, ports: &Ports, anew: bool) -> Result<usize, Error> {
        let mut tx = Transaction::new();
        if anew {
            tx.delete(&Table::new(self.table(), TABLE))?;
            let owned = self.ownership == Some(Ownership::Owned);
            tx.add(&self.rules().table_object(owned)?)?;
        }
        self.state = State::default();
        self.state.placed.reserve(ports.len());
        self.write_base(&mut tx)?;
        let at_once = if anew { usize::MAX } else { AT_ONCE };
        let mut transactions = 0;
        let mut elements = Elements::default();
        // In their order, so that the same services come to the same numbers on every node.
        let mut names: Vec<_> = ports.iter().collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        let mut names = names.into_iter().peekable();
        loop {
            let next = names.next();
            if let Some((name, port)) = next {
                let states = [None, Some(&**port)];
                self.state
                    .apply(name, states, &self.common.config, &mut elements);
            }
            if elements.count >= at_once || names.peek().is_none() {
                self.state.take_changed(&mut elements);
                self.write(&mut tx, &elements)?;
                self.commit(&mut tx)?;
                transactions += 1;
                let done = ports.len() - names.len();
                self.common.observer.tell(self.family, done, ports.len());
                tracing::debug!(
                    elements = elements.count,
                    left = names.len(),
                    "services committed"
                );
                tx.clear();
                elements.clear();
                if names.peek().is_none() {
                    return Ok(transactions);
                }
            }
        }
    }

    /// Makes what is there what is desired: see [`FamilyLayout::adopt`].
    fn adopt_once(&mut self, ports: &Ports) -> Result<usize, Error> {
        if self.common.config.own {
            self.ownership = Some(self.nft.own(self.table(), TABLE)?);
        }
        self.generation = Some(self.nft.generation()?);
        let family = self.table();
        let there = match kernel::read(&mut self.nft, family)? {
            Found::Ours(there) => there,
            Found::Nothing => return self.fill(ports, false),
            Found::Other => return self.fill(ports, true),
        };
        self.take_over(ports, &there);
        let mut elements = Elements::default();
        self.compare(there.entries, &mut elements);
        elements.shapes = self.state.shapes.iter().copied().collect();
        let mut tx = Transaction::new();
        self.write_base(&mut tx)?;
        self.write(&mut tx, &elements)?;
        self.write_gone(&mut tx, &there.picks, &there.shapes)?;
        match self.commit(&mut tx) {
            Ok(()) => Ok(1),
            Err(error) if error.generation_moved() => Err(error.into()),
            // What is there is not what this version makes: all of it anew, at once.
            Err(error) if error.is_refusal() => {
                tracing::warn!(%error, "the table is made anew");
                self.fill(ports, true)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes what draws from as many endpoints as no service has any more.
    fn write_gone(
        &self,
        tx: &mut Transaction,
        picks: &HashSet<(SetKind, u32)>,
        chains: &HashMap<String, Shape>,
    ) -> Result<(), Error> {
        let numbers: HashSet<u32> = self.state.shapes.iter().map(|s| s.number()).collect();
        for (kind, number) in picks.iter().filter(|(_, number)| !numbers.contains(number)) {
            let key = number.to_ne_bytes();
            tx.delete_elements(&self.set_id(*kind), [Element::new(&key)])?;
        }
        let gone = |(_, shape): &(&String, &Shape)| !self.state.shapes.contains(*shape);
        for (chain, _) in chains.iter().filter(gone) {
            tx.flush_chain(self.table(), TABLE, &chain[..])?;
            tx.delete(&nft::Chain::new(self.table(), TABLE, &chain[..]))?;
        }
        Ok(())
    }

    /// Takes numbers and places from what is there, and asks for all that is desired.
    fn take_over(&mut self, ports: &Ports, there: &kernel::There) {
        let mut state = State::default();
        let mut names: Vec<_> = ports.iter().collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        let mut taken = HashSet::new();
        let known: Vec<Option<u32>> = names
            .iter()
            .map(|(_, port)| {
                let mut known = None;
                fronts(port, 0, &self.common.config, |front, _| {
                    let id = || there.group(&front).map(id_of_group);
                    known = known.or_else(|| id().filter(|id| !taken.contains(id)));
                });
                taken.extend(known);
                known
            })
            .collect();
        let last = taken.iter().max().map_or(0, |last| last + 1);
        state.ids.free = (0..last).rev().filter(|id| !taken.contains(id)).collect();
        state.ids.next = last;
        for ((name, port), id) in names.into_iter().zip(known) {
            let mut placed = match id {
                Some(id) => Placed::new(name.clone(), id),
                None => Placed::new(name.clone(), state.ids.take()),
            };
            if id.is_some() {
                placed.groups = there.places(placed.id);
            }
            let placed = placed.place(Some(port));
            state.shapes.extend(placed.shapes.into_iter().flatten());
            state.claim(&placed.name, placed.id, port, &self.common.config);
            state.placed.insert(Arc::clone(&placed.name), placed);
        }
        // All is compared with what is there: nothing of it is a change by itself.
        let mut all = Elements::default();
        state.take_changed(&mut all);
        self.state = state;
    }

    /// Notes what differs between what is there and what is desired.
    fn compare(
        &self,
        mut there: HashMap<SetKind, HashMap<Words, Option<Words>>>,
        elements: &mut Elements,
    ) {
        let mut want = |kind: SetKind, entry: Entry| match there
            .get_mut(&kind)
            .and_then(|set| set.remove(&entry.0))
        {
            Some(value) if value == entry.1 => {}
            Some(value) => {
                elements.push(kind, (entry.0, value), false);
                elements.push(kind, entry, true);
            }
            None => elements.push(kind, entry, true),
        };
        for placed in self.state.placed.values() {
            placed.elements(&mut want);
        }
        for (front, target) in self.state.fronts.iter() {
            front.elements(target, &mut want);
        }
        for (address, ()) in self.state.cluster_ips.iter() {
            want(SetKind::ClusterIps, (Words::new().address(*address), None));
        }
        for (endpoint, ()) in self.state.hairpins.iter() {
            want(SetKind::Hairpins, hairpin(endpoint));
        }
        for (kind, entries) in there {
            for entry in entries {
                elements.push(kind, entry, false);
            }
        }
    }
}

impl FamilyLayout for Flat {
    fn adopt(&mut self, ports: &Ports) -> Result<usize, Error> {
        let mut attempts = self.nft.retry().begin();
        loop {
            match self.adopt_once(ports) {
                Err(Error::Commit(error)) if error.generation_moved() && attempts.again() => {}
                Err(Error::Netlink(crate::netlink::Error::Interrupted)) if attempts.again() => {}
                adopted => return adopted,
            }
        }
    }

    fn change(&mut self, ports: &Ports, changes: &[PortChange]) -> Result<usize, Error> {
        if self.ownership.is_none() && self.generation.is_none() {
            return self.adopt(ports);
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
        let mut tx = std::mem::take(&mut self.transaction);
        tx.clear();
        self.write(&mut tx, &elements)?;
        let committed = self.commit(&mut tx);
        self.transaction = tx;
        match committed {
            Ok(()) => Ok(1),
            // Somebody else was there, or the table is not as it was left.
            Err(error) if error.is_refusal() || error.generation_moved() => {
                tracing::info!(%error, "the table is read anew");
                self.adopt(ports).map(|transactions| transactions + 1)
            }
            Err(error) => {
                self.ownership = None;
                self.generation = None;
                Err(error.into())
            }
        }
    }

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn only_check(&mut self, yes: bool) -> bool {
        self.nft.only_check(yes);
        true
    }

    fn remove(&mut self) -> Result<(), Error> {
        clean_up(&mut self.nft, self.family)?;
        self.ownership = None;
        self.generation = None;
        self.state = State::default();
        Ok(())
    }
}

/// Removes the table, whoever made it; whether it was there.
pub(in crate::kube::service) fn clean_up(
    nft: &mut Connection,
    family: Family,
) -> Result<bool, Error> {
    let table = nft::Family::from(family);
    if nft.table(table, TABLE)?.is_none() {
        return Ok(false);
    }
    // One that another connection owned and left.
    nft.own(table, TABLE)?;
    let mut tx = Transaction::new();
    tx.delete(&Table::new(table, TABLE))?;
    nft.commit(&tx)?;
    Ok(true)
}
