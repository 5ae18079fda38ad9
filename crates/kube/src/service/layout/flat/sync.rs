//! Complete synchronizations: fills a new table, or compares the existing one.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chainwright::iptables::Family;
use chainwright::nft::{Connection, Ownership, Ruleset, Scope, Table, Transaction};
use chainwright::{Error, nft};

use super::changes::{Base, DeferredDeletions, Elements};
use super::kernel::{self, Found};
use super::port_ids::IdAllocator;
use super::rules::PickKey;
use super::service::{PortSlots, frontends, hairpin};
use super::sets::{ElementData, Entry, STAND_IN, SetKind, TABLE};
use super::{Flat, State};
use crate::service::layout::{Ports, wait_for_packets};

/// Largest number of elements in one transaction of a cold start: a megabyte, which fits into the caches. Each
/// transaction contains complete services.
pub(super) const MAX_ELEMENTS_PER_TRANSACTION: usize = 20_000;

impl Flat {
    /// Creates the stand-in table with these services. Returns the number of transactions.
    pub(in crate::service::layout) fn make_stand_in(
        &mut self,
        ports: &Ports,
    ) -> Result<usize, Error> {
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
    pub(in crate::service::layout) fn remove_stand_in(&mut self) -> Result<usize, Error> {
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
    /// firewalls come first, so the committed part works even if a later transaction fails. If `is_new_table`, the
    /// table is replaced in a single transaction.
    pub(super) fn fill(&mut self, ports: &Ports, is_new_table: bool) -> Result<usize, Error> {
        let mut tx = Transaction::new();
        if is_new_table {
            tx.delete(&Table::new(self.table(), TABLE))?;
            let owned = self.ownership == Some(Ownership::Owned);
            tx.add(&self.rules().table_object(owned)?)?;
        }
        self.state = State::default();
        self.deferred = DeferredDeletions::default();
        self.state.port_slots.reserve(ports.len());
        self.write_base(&mut tx, &Base::ALL)?;
        self.write_chains(&mut tx, &Base::ALL, true)?;
        // A transaction that is only checked leaves nothing for the next one.
        let at_once = is_new_table || self.check_only;
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
    pub(super) fn full_sync_once(&mut self, ports: &Ports) -> Result<usize, Error> {
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
        self.generation = Some(self.nft.stable_generation()?);
        let family = self.table();
        let existing = match kernel::read(&mut self.nft, family, &mut self.deferred)? {
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
    pub(super) fn compare_base(
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
    pub(super) fn take_over(&mut self, ports: &Ports, existing: &kernel::KernelTable) {
        let mut state = State::default();
        let mut names: Vec<_> = ports.iter().collect();
        names.sort_unstable_by_key(|(name, _)| *name);
        let frontend_keys = existing.frontend_keys();
        let mut taken = BTreeSet::new();
        let known: Vec<Option<u32>> = names
            .iter()
            .map(|(_, port)| {
                let mut all = Vec::new();
                frontends(port, 0, &self.common.config, |frontend, _| {
                    all.push(frontend)
                });
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
        let left: BTreeSet<u32> = self.deferred.ids.iter().copied().collect();
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
    pub(super) fn compare(
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
        for (frontend, target) in self.state.frontends.iter() {
            frontend.elements(target, &mut want);
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
