//! Writes changes to the kernel, in an order in which every packet in flight still matches the rules of its service.

use std::time::Instant;

use chainwright::nft::{CommitError, Element, Ownership, SetId, Transaction};
use chainwright::{Error, nft};

use super::changes::{Base, DeferredDeletions, Elements};
use super::rules::{PickKey, refers_to_endpoints};
use super::sets::{ElementData, Entry, SetKind, TABLE, element};
use super::{CLIENTS, Flat};
use crate::service::config::NodePortsOf;
use crate::service::layout::{Ports, StagedCommits, wait_for_packets};

impl Flat {
    pub(super) fn set_id(&self, kind: SetKind) -> SetId<'static> {
        SetId::new(self.table(), self.name, kind.name())
    }

    /// Carries out a change in up to three transactions, so that a packet still reaches an endpoint of its service if a
    /// commit happens between two of its lookups: each lookup sees the elements of its moment.
    ///
    /// 1. Additions that other elements refer to, or that packets look up first: chains, masquerading, firewalls.
    /// 2. Elements that refer to endpoints: chains, addresses and ports, the number of endpoints of a group.
    /// 3. Deletions of elements that only packets in flight can still look up: endpoints in their slots, groups.
    ///
    /// Before each transaction, the kernel [has processed](StagedCommits) the packets in flight. If `leave`, the
    /// third transaction [may be postponed](Elements::may_leave_last): a later change makes these deletions in its
    /// first transaction, as soon as enough time has passed, they are too many, or they conflict with its additions.
    pub(super) fn execute(&mut self, elements: &mut Elements, leave: bool) -> Result<usize, Error> {
        elements.join_replaced();
        let mut deferred = std::mem::take(&mut self.deferred);
        let is_in_the_way = deferred.keep(elements);
        let mut left = DeferredDeletions::default();
        if leave && !self.check_only && elements.may_leave_last() {
            left.entries = std::mem::take(&mut elements.last);
        }
        let is_due = deferred.len() > 0
            && (is_in_the_way
                || !deferred.may_be_in_use()
                || deferred.len() + left.len() > DeferredDeletions::MAX);
        let due = Some(&deferred).filter(|_| is_due);
        let mut tx = std::mem::take(&mut self.transaction);
        let made = self.commit_parts(&mut tx, elements, due);
        self.transaction = tx;
        let made = made?;
        let ids = &mut self.state.ids;
        if is_due && made > 0 && !self.check_only {
            ids.free(std::mem::take(&mut deferred).ids);
        }
        let released = std::mem::take(&mut ids.released);
        match left.len() {
            0 => ids.free(released),
            _ => {
                for (all, left) in deferred.entries.iter_mut().zip(left.entries) {
                    all.extend(left);
                }
                deferred.ids.extend(released);
                deferred.since = Some(Instant::now());
            }
        }
        self.deferred = deferred;
        Ok(made)
    }

    /// Commits a change, and deletes what is `due` in its first transaction.
    pub(super) fn commit_parts(
        &mut self,
        tx: &mut Transaction,
        elements: &Elements,
        mut due: Option<&DeferredDeletions>,
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
            if due.is_some_and(DeferredDeletions::may_be_in_use) && !self.check_only {
                wait_for_packets();
            }
            in_order.commit(tx, |tx| self.commit(tx))?;
            due = None;
        }
        Ok(in_order.made())
    }

    pub(super) fn write_first(
        &self,
        tx: &mut Transaction,
        elements: &Elements,
    ) -> Result<(), Error> {
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

    pub(super) fn write_main(
        &self,
        tx: &mut Transaction,
        elements: &Elements,
    ) -> Result<(), Error> {
        if let Some(base) = &elements.base {
            self.write_chains(tx, base, true)?;
        }
        self.delete(tx, &elements.delete)?;
        self.add(tx, &elements.add)
    }

    pub(super) fn write_last(
        &self,
        tx: &mut Transaction,
        elements: &Elements,
    ) -> Result<(), Error> {
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

    pub(super) fn delete(&self, tx: &mut Transaction, entries: &[Vec<Entry>]) -> Result<(), Error> {
        for (kind, entries) in SetKind::ALL.into_iter().zip(entries) {
            tx.delete_elements(&self.set_id(kind), entries.iter().map(element))?;
        }
        Ok(())
    }

    pub(super) fn add(&self, tx: &mut Transaction, entries: &[Vec<Entry>]) -> Result<(), Error> {
        for (kind, entries) in SetKind::ALL.into_iter().zip(entries) {
            let pairs = entries.iter().map(|(key, value)| {
                let value = value.as_ref().map(ElementData::as_bytes);
                (key.as_bytes(), value)
            });
            tx.add_pairs(&self.set_id(kind), pairs)?;
        }
        Ok(())
    }

    /// Adds the elements that refer to the chains of a pick key.
    pub(super) fn write_picks(&self, tx: &mut Transaction, pick_key: PickKey) -> Result<(), Error> {
        let key = pick_key.number().to_ne_bytes();
        for (kind, local) in [(SetKind::Picks, false), (SetKind::LocalPicks, true)] {
            let chain = pick_key.chain(local);
            let verdict = nft::expr::Verdict::Goto((&chain[..]).into());
            let element = Element::new(&key).with_verdict(verdict);
            tx.add_elements(&self.set_id(kind), [element])?;
        }
        Ok(())
    }

    /// Writes the desired parts of the table that do not depend on services, except chains that send packets to
    /// endpoints.
    pub(super) fn write_base(&self, tx: &mut Transaction, wanted: &Base) -> Result<(), Error> {
        let rules = self.rules();
        if wanted.table && self.ownership != Some(Ownership::Owned) {
            tx.add(&rules.table_object(false)?)?;
        }
        for kind in SetKind::ALL.into_iter().filter(|_| wanted.sets) {
            tx.add(&kind.set(self.family, self.name, CLIENTS)?)?;
        }
        self.write_chains(tx, wanted, false)
    }

    /// Writes the desired chains that send packets to endpoints (`to_endpoints`), or the others.
    pub(super) fn write_chains(
        &self,
        tx: &mut Transaction,
        wanted: &Base,
        to_endpoints: bool,
    ) -> Result<(), Error> {
        let mut lengths: Vec<u8> = self.state.lengths.iter().copied().collect();
        lengths.sort_unstable();
        self.rules().write(tx, lengths, |chain| {
            let chains = wanted.chains.as_ref();
            refers_to_endpoints(chain) == to_endpoints
                && chains.is_none_or(|chains| chains.contains(chain))
        })
    }

    /// Returns the elements for the node port addresses, where a set contains them.
    pub(super) fn nodeport_ips(&self) -> Vec<Entry> {
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
    pub(super) fn commit(&mut self, tx: &mut Transaction) -> Result<(), CommitError> {
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
    pub(super) fn replace_table(&mut self, ports: &Ports) -> Result<usize, Error> {
        let mut in_order = StagedCommits::new(!self.check_only);
        if !self.check_only {
            in_order.step(|| self.make_stand_in(ports))?;
        }
        in_order.step(|| self.fill(ports, true))?;
        Ok(in_order.made())
    }
}
