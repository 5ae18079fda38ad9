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
//! The random number must be below the number of endpoints, which a rule cannot look up. So there is a chain for each
//! number of endpoints that some service has, created when the first such service appears. Everything else is data: one
//! more endpoint is one element added and one replaced, one more service its own elements, whatever else the table
//! contains. The kernel validates all chains again when a chain, a rule or an element of a verdict map changes; it does
//! not for data.
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
mod ids;
mod kernel;
mod rules;
mod service;
mod sets;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bstr::BStr;
use changes::{Base, Elements, Leftover};
use ids::IdAllocator;
use kernel::{Found, Written};
use rules::{PickKey, Rules, leads_to_endpoints};
use service::{PortSlots, ServiceFrontend, Target, frontends, hairpin, hairpins};
pub(in crate::service) use sets::TABLE;
use sets::{ElementData, Entry, STAND_IN, SetKind, element};

use super::shared_elements::SharedElements;
use super::{Common, FamilyLayout, PortChange, Ports, StagedCommits, wait_for_packets};
use crate::service::config::{Config, NodePortsOf};
use crate::service::map::Map;
use crate::service::model::Protocol;
use crate::service::names::PortName;
use crate::service::resolve::ServicePort;
use chainwright::Error;
use chainwright::iptables::Family;
use chainwright::nft::{
    self, CommitError, Connection, Element, Generation, Ownership, Ruleset, Scope, SetId, Table,
    Transaction,
};

/// Largest number of clients that the rules remember for services with affinity.
const CLIENTS: u32 = 1 << 18;
/// Largest number of elements in one transaction of a cold start: a megabyte, which fits into the caches. Each
/// transaction contains complete services.
const MAX_ELEMENTS_PER_TRANSACTION: usize = 20_000;

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
    leftover: Leftover,
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
            frontends(port, now.id, config, |front, _| {
                self.frontends.release(owner, &front);
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
        frontends(port, id, config, |front, target| {
            self.frontends.acquire(Arc::clone(owner), front, target);
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
            leftover: Leftover::default(),
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

    fn set_id(&self, kind: SetKind) -> SetId<'static> {
        SetId::new(self.table(), self.name, kind.name())
    }

    /// Carries out a change in up to three transactions, so that a packet still reaches an endpoint of its service if a
    /// commit happens between two of its lookups: each lookup sees the elements of its moment.
    ///
    /// 1. Targets, and what is looked up before: chains, masquerading, firewalls.
    /// 2. What leads to endpoints: chains, addresses and ports, the number of endpoints of a group.
    /// 3. What only packets can look up that matched something before the second one: endpoints in their slots, groups.
    ///
    /// The kernel has finished those packets [when](StagedCommits) the next transaction is committed. If `leave`, the
    /// third one [may be left](Elements::may_leave_last) to a later change, which makes these deletions in its first
    /// transaction: the first change that comes late enough, or for which they are too many or in the way.
    fn execute(&mut self, elements: &mut Elements, leave: bool) -> Result<usize, Error> {
        elements.join_replaced();
        let mut leftover = std::mem::take(&mut self.leftover);
        let is_in_the_way = leftover.keep(elements);
        let mut left = Leftover::default();
        if leave && !self.check_only && elements.may_leave_last() {
            left.entries = std::mem::take(&mut elements.last);
        }
        let is_due = leftover.len() > 0
            && (is_in_the_way
                || !leftover.may_be_in_use()
                || leftover.len() + left.len() > Leftover::MAX);
        let due = Some(&leftover).filter(|_| is_due);
        let mut tx = std::mem::take(&mut self.transaction);
        let made = self.commit_parts(&mut tx, elements, due);
        self.transaction = tx;
        let made = made?;
        let ids = &mut self.state.ids;
        if is_due && made > 0 && !self.check_only {
            ids.free(std::mem::take(&mut leftover).ids);
        }
        let released = std::mem::take(&mut ids.released);
        match left.len() {
            0 => ids.free(released),
            _ => {
                for (all, left) in leftover.entries.iter_mut().zip(left.entries) {
                    all.extend(left);
                }
                leftover.ids.extend(released);
                leftover.since = Some(Instant::now());
            }
        }
        self.leftover = leftover;
        Ok(made)
    }

    /// Commits a change, and deletes what is `due` in its first transaction.
    fn commit_parts(
        &mut self,
        tx: &mut Transaction,
        elements: &Elements,
        mut due: Option<&Leftover>,
    ) -> Result<usize, Error> {
        let mut in_order = StagedCommits::new(!self.check_only);
        for stage in [Self::write_first, Self::write_main, Self::write_last] {
            tx.clear();
            // Before the rest, which may add elements with the same keys.
            if let Some(due) = due {
                self.delete(tx, &due.entries)?;
            }
            let deletions = tx.byte_length();
            stage(self, tx, elements)?;
            if tx.byte_length() == deletions {
                continue;
            }
            if due.is_some_and(Leftover::may_be_in_use) && !self.check_only {
                wait_for_packets();
            }
            in_order.commit(tx, |tx| self.commit(tx))?;
            due = None;
        }
        Ok(in_order.made())
    }

    fn write_first(&self, tx: &mut Transaction, elements: &Elements) -> Result<(), Error> {
        if let Some(base) = &elements.base {
            self.write_base(tx, base)?;
        }
        for length in &elements.lengths {
            self.rules().write_length(tx, *length)?;
        }
        for pick_key in &elements.pick_keys {
            self.rules().write_pick_chains(tx, *pick_key)?;
            self.write_picks(tx, *pick_key)?;
        }
        self.add(tx, &elements.first)
    }

    fn write_main(&self, tx: &mut Transaction, elements: &Elements) -> Result<(), Error> {
        if let Some(base) = &elements.base {
            self.write_chains(tx, base, true)?;
        }
        self.delete(tx, &elements.delete)?;
        self.add(tx, &elements.add)
    }

    fn write_last(&self, tx: &mut Transaction, elements: &Elements) -> Result<(), Error> {
        self.delete(tx, &elements.last)?;
        for (kind, number) in &elements.picks {
            let key = number.to_ne_bytes();
            tx.delete_elements(&self.set_id(*kind), [Element::new(&key)])?;
        }
        for chain in &elements.chains {
            tx.flush_chain(self.table(), TABLE, &chain[..])?;
            tx.delete(&nft::Chain::new(self.table(), TABLE, &chain[..]))?;
        }
        Ok(())
    }

    fn delete(&self, tx: &mut Transaction, entries: &[Vec<Entry>]) -> Result<(), Error> {
        for (kind, entries) in SetKind::ALL.into_iter().zip(entries) {
            tx.delete_elements(&self.set_id(kind), entries.iter().map(element))?;
        }
        Ok(())
    }

    fn add(&self, tx: &mut Transaction, entries: &[Vec<Entry>]) -> Result<(), Error> {
        for (kind, entries) in SetKind::ALL.into_iter().zip(entries) {
            let pairs = entries.iter().map(|(key, value)| {
                let value = value.as_ref().map(ElementData::as_bytes);
                (key.as_bytes(), value)
            });
            tx.add_pairs(&self.set_id(kind), pairs)?;
        }
        Ok(())
    }

    /// Adds the elements that lead to the chains of a shape.
    fn write_picks(&self, tx: &mut Transaction, pick_key: PickKey) -> Result<(), Error> {
        let key = pick_key.number().to_ne_bytes();
        for (kind, local) in [(SetKind::Picks, false), (SetKind::LocalPicks, true)] {
            let chain = pick_key.chain(local);
            let verdict = nft::expr::Verdict::Goto((&chain[..]).into());
            let element = Element::new(&key).with_verdict(verdict);
            tx.add_elements(&self.set_id(kind), [element])?;
        }
        Ok(())
    }

    /// Writes the wanted parts of the table that do not depend on services, except chains that lead to endpoints.
    fn write_base(&self, tx: &mut Transaction, wanted: &Base) -> Result<(), Error> {
        let rules = self.rules();
        if wanted.table && self.ownership != Some(Ownership::Owned) {
            tx.add(&rules.table_object(false)?)?;
        }
        for kind in SetKind::ALL.into_iter().filter(|_| wanted.sets) {
            tx.add(&kind.set(self.family, self.name, CLIENTS)?)?;
        }
        self.write_chains(tx, wanted, false)
    }

    /// Writes the wanted chains that lead to endpoints (`lead`), or the others.
    fn write_chains(&self, tx: &mut Transaction, wanted: &Base, lead: bool) -> Result<(), Error> {
        let mut lengths: Vec<u8> = self.state.lengths.iter().copied().collect();
        lengths.sort_unstable();
        self.rules().write(tx, lengths, |chain| {
            let chains = wanted.chains.as_ref();
            leads_to_endpoints(chain) == lead && chains.is_none_or(|chains| chains.contains(chain))
        })
    }

    /// Returns the elements for the node port addresses, where a set contains them.
    fn nodeport_ips(&self) -> Vec<Entry> {
        match self.common.config.node_port_addresses.of(self.family) {
            NodePortsOf::These(addresses) => {
                let addresses = addresses.into_iter().filter(|ip| !ip.is_loopback());
                addresses
                    .map(|ip| (ElementData::new().address(ip), None))
                    .collect()
            }
            NodePortsOf::Every | NodePortsOf::Networks(_) => Vec::new(),
        }
    }

    /// Commits; requires the generation that the last commit left, unless the kernel keeps others from the table.
    fn commit(&mut self, tx: &mut Transaction) -> Result<(), CommitError> {
        if self.ownership == Some(Ownership::Owned) {
            return self.nft.commit(tx);
        }
        let commits = &self.common.commits;
        let known = self.generation.map(|known| commits.latest(known));
        if let Some(known) = known.filter(|_| self.name == TABLE) {
            tx.expect_generation(known);
        }
        let made = self.nft.commit_returning_generation(tx)?;
        if self.check_only {
            return Ok(());
        }
        self.generation = made;
        if let (Some(known), Some(made)) = (known, self.generation)
            && made == known.next()
        {
            commits.note(known, made);
        }
        Ok(())
    }

    /// Replaces a table in use in one transaction, while a stand-in has the same services: packets whose lookups fail
    /// in one table are translated by the other. The stand-in is removed after [`full_sync`](Self::full_sync).
    fn replace_table(&mut self, ports: &Ports) -> Result<usize, Error> {
        let mut in_order = StagedCommits::new(!self.check_only);
        if !self.check_only {
            in_order.step(|| self.make_stand_in(ports))?;
        }
        in_order.step(|| self.fill(ports, true))?;
        Ok(in_order.made())
    }

    /// Creates the stand-in table with these services. Returns the number of transactions.
    pub(super) fn make_stand_in(&mut self, ports: &Ports) -> Result<usize, Error> {
        let removed = self.remove_stand_in()?;
        let ownership = self.ownership.take();
        self.name = STAND_IN;
        let filled = self.fill(ports, false);
        self.name = TABLE;
        self.ownership = ownership;
        Ok(removed + filled?)
    }

    /// Removes the stand-in table, if it exists, after the kernel has finished the packets that it may translate.
    /// Returns the number of transactions.
    pub(super) fn remove_stand_in(&mut self) -> Result<usize, Error> {
        if self.check_only || self.nft.table(self.table(), STAND_IN)?.is_none() {
            return Ok(0);
        }
        wait_for_packets();
        let mut tx = Transaction::new();
        tx.delete(&Table::new(self.table(), STAND_IN))?;
        self.commit(&mut tx)?;
        Ok(1)
    }

    /// Fills a table without services, in as many transactions as needed. Each contains complete services, except that
    /// firewalls come first, so the committed part works even if a later transaction fails. If `anew`, the table is
    /// replaced in a single transaction.
    fn fill(&mut self, ports: &Ports, anew: bool) -> Result<usize, Error> {
        let mut tx = Transaction::new();
        if anew {
            tx.delete(&Table::new(self.table(), TABLE))?;
            let owned = self.ownership == Some(Ownership::Owned);
            tx.add(&self.rules().table_object(owned)?)?;
        }
        self.state = State::default();
        self.leftover = Leftover::default();
        self.state.port_slots.reserve(ports.len());
        self.write_base(&mut tx, &Base::ALL)?;
        self.write_chains(&mut tx, &Base::ALL, true)?;
        // A transaction that is only checked leaves nothing for the next one.
        let at_once = anew || self.check_only;
        let largest = if at_once {
            usize::MAX
        } else {
            MAX_ELEMENTS_PER_TRANSACTION
        };
        let mut transactions = 0;
        let mut elements = Elements::default();
        for entry in self.nodeport_ips() {
            elements.push(SetKind::NodeportIps, entry, true);
        }
        // In a fixed order, so that the same services get the same numbers on every node.
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
            if elements.count >= largest || names.peek().is_none() {
                self.state.take_changed(&mut elements);
                self.write_first(&mut tx, &elements)?;
                // No load balancer may be reachable before its firewall exists; when a table is replaced, the stand-in
                // has the firewall.
                if !at_once && !elements.first[SetKind::FirewallIps as usize].is_empty() {
                    self.commit(&mut tx)?;
                    transactions += 1;
                    tx.clear();
                    wait_for_packets();
                }
                self.write_main(&mut tx, &elements)?;
                self.commit(&mut tx)?;
                transactions += 1;
                let done = ports.len() - names.len();
                self.common.observer.report(self.family, done, ports.len());
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

    /// Brings the kernel's table to the desired state: see [`FamilyLayout::full_sync`].
    fn full_sync_once(&mut self, ports: &Ports) -> Result<usize, Error> {
        if self.common.config.own {
            let before = self.nft.generation()?;
            let was_there = self.nft.table(self.table(), TABLE)?.is_some();
            self.ownership = Some(self.nft.own(self.table(), TABLE)?);
            // If no table existed, this created it, in one commit.
            let made = self.nft.generation()?;
            if !was_there && made == before.next() && !self.check_only {
                self.common.commits.note(before, made);
            }
        }
        self.generation = Some(self.nft.generation()?);
        let family = self.table();
        let existing = match kernel::read(&mut self.nft, family, &mut self.leftover)? {
            Found::Known(existing) => existing,
            Found::Nothing => return self.fill(ports, false),
            Found::Other => return self.replace_table(ports),
        };
        self.take_over(ports, &existing);
        let mut elements = Elements::default();
        if !self.compare_base(&existing, &mut elements)? {
            return self.replace_table(ports);
        }
        let wrote = elements.base.is_some() || !elements.pick_keys.is_empty();
        self.compare(existing.entries, &mut elements);
        match self.execute(&mut elements, false) {
            Ok(made) => {
                if wrote && !self.check_only {
                    self.written = kernel::rules(&mut self.nft, family)?;
                }
                Ok(made)
            }
            // The existing table differs from what this version writes: replace it.
            Err(Error::Commit(error)) if error.is_refusal() && !error.generation_moved() => {
                tracing::warn!(%error, "recreating the table");
                self.replace_table(ports)
            }
            Err(error) => Err(error),
        }
    }

    /// Records the differences in the parts that do not depend on services, and in the chains that choose endpoints.
    /// Returns whether the existing table can be changed accordingly.
    fn compare_base(
        &self,
        existing: &kernel::KernelTable,
        elements: &mut Elements,
    ) -> Result<bool, Error> {
        let mut pick_keys: Vec<PickKey> = self.state.pick_keys.iter().copied().collect();
        pick_keys.sort_unstable_by_key(|pick_key| pick_key.number());
        let mut tx = Transaction::new();
        tx.add(&self.rules().table_object(false)?)?;
        let all = Base {
            table: false,
            ..Base::ALL
        };
        self.write_base(&mut tx, &all)?;
        self.write_chains(&mut tx, &all, true)?;
        for pick_key in &pick_keys {
            self.rules().write_pick_chains(&mut tx, *pick_key)?;
        }
        let desired = Ruleset::of(&tx)?.to_snapshot(&Scope::table(self.table(), TABLE));
        let differing = existing.differing(&desired, &self.written);
        let is_pick_chain = |chain: &str| PickKey::of_chain(chain).is_some();
        let base: HashSet<_> = differing
            .iter()
            .filter(|chain| !is_pick_chain(chain))
            .cloned()
            .collect();
        let Some(sets) = existing.lacks_sets(&desired) else {
            return Ok(false);
        };
        if sets || !base.is_empty() {
            elements.base = Some(Base {
                table: false,
                sets,
                chains: Some(base),
            });
        }
        let is_right = |pick_key: &PickKey| {
            let has_pick = |kind| existing.picks.contains(&(kind, pick_key.number()));
            let chains = [false, true].map(|local| pick_key.chain(local));
            has_pick(SetKind::Picks)
                && has_pick(SetKind::LocalPicks)
                && !chains.iter().any(|chain| differing.contains(chain))
        };
        elements.pick_keys = pick_keys
            .into_iter()
            .filter(|pick_key| !is_right(pick_key))
            .collect();
        // Elements and chains for numbers of endpoints that no service has any more.
        let numbers: HashSet<u32> = self.state.pick_keys.iter().map(|s| s.number()).collect();
        let picks = existing
            .picks
            .iter()
            .filter(|(_, number)| !numbers.contains(number));
        elements.picks = picks.copied().collect();
        let gone = |(_, pick_key): &(&String, &PickKey)| !self.state.pick_keys.contains(*pick_key);
        let chains = existing.pick_keys.iter().filter(gone);
        elements.chains = chains.map(|(chain, _)| chain.clone()).collect();
        Ok(true)
    }

    /// Takes over numbers and slots from the existing table, and registers all desired elements.
    fn take_over(&mut self, ports: &Ports, existing: &kernel::KernelTable) {
        let mut state = State::default();
        let mut names: Vec<_> = ports.iter().collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        let frontend_keys = existing.frontend_keys();
        let mut taken = BTreeSet::new();
        let known: Vec<Option<u32>> = names
            .iter()
            .map(|(_, port)| {
                let mut all = Vec::new();
                frontends(port, 0, &self.common.config, |front, _| all.push(front));
                let id = existing.number(&all, port.has_cluster_ip, &frontend_keys);
                let known = id.filter(|id| *id < IdAllocator::END && !taken.contains(id));
                taken.extend(known);
                known
            })
            .collect();
        // The number of a service that is being removed, or was recently, is not reused at once.
        let recent = self.state.ids.recent();
        let gone: BTreeSet<u32> = existing.ids.iter().copied().chain(recent).collect();
        let gone: BTreeSet<u32> = &gone - &taken;
        let left: BTreeSet<u32> = self.leftover.ids.iter().copied().collect();
        let last = gone.iter().chain(&taken).chain(&left).max();
        let last = last.map_or(0, |last| last + 1); // all are below Ids::END
        state.ids.next = last;
        // Other programs may have left a number far above the rest: from the gap below it, keep as many as there are
        // ports.
        state.ids.free = (0..last)
            .filter(|id| [&taken, &gone, &left].iter().all(|used| !used.contains(id)))
            .take(ports.len())
            .map(|id| (None, id))
            .collect();
        state.ids.released.extend(gone);
        for ((name, port), id) in names.into_iter().zip(known) {
            let mut port_slots = match id {
                Some(id) => PortSlots::new(name.clone(), id),
                None => PortSlots::new(name.clone(), state.ids.take()),
            };
            if id.is_some() {
                port_slots.groups = existing.slots(port_slots.id);
                port_slots.numbers = existing.numbers(port_slots.id);
            }
            let port_slots = port_slots.assign_slots(Some(port));
            state
                .pick_keys
                .extend(port_slots.pick_keys.into_iter().flatten());
            state.acquire(&port_slots.name, port_slots.id, port, &self.common.config);
            state
                .port_slots
                .insert(Arc::clone(&port_slots.name), port_slots);
        }
        // Everything is compared with the existing table, so none of it counts as a change yet.
        let mut all = Elements::default();
        state.take_changed(&mut all);
        self.state = state;
    }

    /// Records the differences between the existing and the desired elements.
    fn compare(
        &self,
        mut existing: HashMap<SetKind, HashMap<ElementData, Option<ElementData>>>,
        elements: &mut Elements,
    ) {
        let mut want = |kind: SetKind, entry: Entry| match existing
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
        for port_slots in self.state.port_slots.values() {
            port_slots.elements(&mut want);
        }
        for (front, target) in self.state.frontends.iter() {
            front.elements(target, &mut want);
        }
        for (address, ()) in self.state.cluster_ips.iter() {
            want(
                SetKind::ClusterIps,
                (ElementData::new().address(*address), None),
            );
        }
        for (endpoint, ()) in self.state.hairpins.iter() {
            want(SetKind::Hairpins, hairpin(endpoint));
        }
        for entry in self.nodeport_ips() {
            want(SetKind::NodeportIps, entry);
        }
        for (kind, entries) in existing {
            for entry in entries {
                elements.push(kind, entry, false);
            }
        }
    }
}

impl FamilyLayout for Flat {
    fn full_sync(&mut self, ports: &Ports) -> Result<usize, Error> {
        let mut attempts = self.nft.retry().begin();
        loop {
            let adopted = self.full_sync_once(ports);
            // From this call, or from a process that ended in the middle.
            let removed = self.remove_stand_in();
            let adopted = adopted.and_then(|made| Ok(made + removed?));
            match adopted {
                Err(Error::Commit(error)) if error.generation_moved() && attempts.again() => {}
                Err(Error::Netlink(chainwright::netlink::Error::Interrupted))
                    if attempts.again() => {}
                adopted => return adopted,
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
        self.leftover = Leftover::default();
        Ok(())
    }
}

/// Removes the table, whichever program created it. Returns whether it existed.
pub(in crate::service) fn clean_up(nft: &mut Connection, family: Family) -> Result<bool, Error> {
    let table = nft::Family::from(family);
    let mut tx = Transaction::new();
    for name in [TABLE, STAND_IN] {
        if nft.table(table, name)?.is_some() {
            tx.delete(&Table::new(table, name))?;
        }
    }
    if !tx.is_empty() {
        nft.commit(&tx)?;
    }
    Ok(!tx.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::WAITS;
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
