//! The layout of kube-proxy's nftables mode: the table `kube-proxy` of each family, with a chain for each service port,
//! and verdict maps that refer to them.
//!
//! | content | file |
//! |---|---|
//! | the table, and its permanent chains, sets and rules | `base.rs` |
//! | the sets and maps that services share, and their elements | `elements.rs` |
//! | the content for one port | `port.rs` |
//! | all of it as operations | `write.rs` |
//! | the operations for changed ports | `difference.rs` |
//!
//! The rules are those of kube-proxy 1.36, with these differences:
//! - The proxy may [own](chainwright::nft::Connection::own) the table, which its flags show. kube-proxy cannot, because
//!   another process makes each of its changes.
//! - An element's comment, a port's name, is cut to the longest possible length (128 bytes). kube-proxy fails at a
//!   longer name, with all its services.
//! - Unused chains and replaced rules are removed when the kernel has finished the packets in flight, not after a
//!   second or at once: so the lookups of a packet that arrived before the change still succeed.
//! - The set of an endpoint's clients is replaced if its timeout changes: for some milliseconds the service's clients
//!   have no affinity to an endpoint.
//! - If two services request the same external address and port, or node port, a fixed order decides between them; in
//!   kube-proxy the one that came last gets it.
//! - If node ports are limited to some addresses, a family without such an address serves no node ports. If the
//!   limit consists of networks, the rules check each packet.
//! - With `masqueradeAll` the rule's comment differs.
//! - The table's user data contains, in addition to the comment, a mark of this library, which `nft` does not show.
//!
//! The user data for `nft` has the form of nft 1.0.6, so a table that kube-proxy left is taken
//! over unchanged, except for rules with several source ranges.
//!
//! Source: `pkg/proxy/nftables/proxier.go` of Kubernetes, and the ruleset that kube-proxy 1.36.2 left for the services
//! of the tests.

mod base;
mod difference;
mod elements;
mod port;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::flat::Flat;
use super::shared_elements::{Changed, SharedElements};
use super::{Common, FamilyLayout, PortChange, Ports, StagedCommits, wait_for_packets};
use crate::service::config::Config;
use crate::service::names::PortName;
use crate::service::resolve::ServicePort;
use chainwright::Error;
use chainwright::iptables::Family;
use chainwright::nft::{
    self, CommitError, Connection, Generation, Outcome, Ownership, Plan, PlanOptions, Replaced,
    RuleFilter, Ruleset, Scope, SetFlags, Snapshot, Stage, Table, TableFlags, TableRef,
    Transaction,
};
use difference::Difference;
use elements::{Key, Shared, Value};
use port::content;
use write::Writer;

/// The table's name.
pub(in crate::service) const TABLE: &str = "kube-proxy";
const COMMENT: &str = "rules for kube-proxy";

/// Largest size of a transaction that only adds, in bytes. Until the commit, the kernel keeps the additions in a list,
/// which it searches for each anonymous set: 8,000 services took 9.8 s in pieces of this size, and 13.9 s in one (Linux
/// 6.18, a debug build on a busy machine).
const MAX_TRANSACTION_BYTES: usize = 1 << 20;
/// Maximum number of times that a repair starts again when others change the table between reading and committing,
/// before it falls back to [`Connection::reconcile`], which retries as configured in [`Retry`](chainwright::Retry).
const ATTEMPTS: usize = 16;

/// Returns whether this library created the table; `None` if it is neither kube-proxy's nor of this layout.
pub(crate) fn is_own_table(table: &TableRef<'_>) -> Option<bool> {
    (table.name() == TABLE).then(|| base::is_own(table))
}

/// The elements of the shared sets that ports request.
type Elements = SharedElements<PortName, Key, Value>;

/// kube-proxy's layout in nftables, of one family.
#[derive(Debug)]
pub(in crate::service) struct Nftables {
    /// `None` while it is [lent](Self::with_flat).
    nft: Option<Connection>,
    of: Family,
    family: nft::Family,
    common: Common,
    elements: Elements,
    kernel_state: KernelState,
    /// Chains without rules that the kernel still refused to delete.
    stale: BTreeSet<String>,
    /// Whether the kernel deletes a chain only in a transaction after the references to it.
    chains_apart: bool,
    /// Whether transactions are only checked.
    check_only: bool,
}

/// The evidence that the kernel's state equals the written one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KernelState {
    /// It is not known.
    No,
    /// Other programs cannot change the table.
    Owned,
    /// No program changed anything since this generation.
    Since(Generation),
}

impl Nftables {
    /// Creates the layout with a connection that it may make the table's owner.
    pub(in crate::service) fn new(nft: Connection, family: Family, config: Arc<Config>) -> Self {
        Self {
            nft: Some(nft),
            of: family,
            family: family.into(),
            common: Common::new(config),
            elements: Elements::default(),
            kernel_state: KernelState::No,
            stale: BTreeSet::new(),
            chains_apart: false,
            check_only: false,
        }
    }

    fn scope(&self) -> Scope<'static> {
        Scope::table(self.family, TABLE)
    }

    /// Commits based on the known state, and updates that.
    fn commit(&mut self, tx: &mut Transaction) -> Result<(), CommitError> {
        match std::mem::replace(&mut self.kernel_state, KernelState::No) {
            KernelState::Owned => {
                self.nft().commit(tx)?;
                self.kernel_state = KernelState::Owned;
            }
            KernelState::Since(generation) => {
                let generation = self.common.commits.latest(generation);
                tx.expect_generation(generation);
                let made = self.nft().commit_returning_generation(tx)?;
                if let Some(made) = made.filter(|_| !self.check_only) {
                    self.common.commits.note(generation, made);
                }
                self.kernel_state = made.map_or(KernelState::No, KernelState::Since);
            }
            KernelState::No => {
                let made = self.nft().commit_returning_generation(tx)?;
                self.kernel_state = made.map_or(KernelState::No, KernelState::Since);
            }
        }
        Ok(())
    }

    /// Registers the elements of ports.
    fn acquire(&mut self, ports: &Ports) {
        self.elements = Elements::default();
        for (name, port) in ports {
            for (key, value) in content(port, &self.common.config).elements {
                self.elements.acquire(name.clone(), key, value);
            }
        }
        self.elements.take_changed();
    }

    /// Creates the table if there is none. Returns the number of transactions.
    fn make(&mut self, ports: &Ports) -> Result<usize, Error> {
        let owned = TableFlags::OWNER | TableFlags::PERSIST;
        let mut made = 0;
        let mut is_owned = false;
        if self.common.config.own {
            let mut tx = Transaction::new();
            base::add_table(&mut tx, self.family, owned)?;
            match self.nft().commit(&tx) {
                Ok(()) => (made, is_owned) = (1, true),
                // This kernel does not support tables that outlive their owner.
                Err(error) if is_refused(&error, &[libc::EOPNOTSUPP, libc::EINVAL]) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.kernel_state = KernelState::No;
        let (family, config) = (self.family, Arc::clone(&self.common.config));
        let mut writer = Writer::new(family, &config);
        if !is_owned {
            base::add_table(&mut writer.tx, family, TableFlags::empty())?;
        }
        let elements = std::mem::take(&mut self.elements);
        // No need to keep others from the table: their changes are looked for afterwards.
        let mut was_alone = true;
        let mut last: Option<Generation> = None;
        let before = self.nft().generation()?;
        let all = ports.len() + elements.iter().count();
        let in_pieces = !self.check_only;
        let filled = fill(&mut writer, ports, &elements, in_pieces, |tx, done| {
            made += 1;
            if is_owned {
                self.nft().commit(tx)?;
                self.common.observer.report(self.of, done, all);
                return Ok(());
            }
            let generation = self.nft().commit_returning_generation(tx)?;
            let is_next = generation == Some(last.unwrap_or(before).next());
            if let Some(made) = generation.filter(|_| is_next && !self.check_only) {
                self.common.commits.note(last.unwrap_or(before), made);
            }
            was_alone &= is_next || last.is_none();
            last = generation;
            self.common.observer.report(self.of, done, all);
            Ok(())
        });
        self.elements = elements;
        filled?;
        self.kernel_state = match last {
            _ if is_owned => KernelState::Owned,
            Some(last) if was_alone => KernelState::Since(last),
            _ => return Ok(made + self.repair(ports, TableFlags::empty())?),
        };
        Ok(made)
    }

    /// Returns the desired table.
    fn desired(&self, ports: &Ports, flags: TableFlags) -> Result<Snapshot, Error> {
        let mut desired = Ruleset::new();
        let mut writer = Writer::new(self.family, &self.common.config);
        base::add_table(&mut writer.tx, self.family, flags)?;
        fill(&mut writer, ports, &self.elements, false, |tx, _| {
            desired.apply(tx)?;
            Ok(())
        })?;
        Ok(desired.to_snapshot(&self.scope()))
    }

    /// Returns the part of the desired table that blocks traffic; `None` if nothing does.
    fn firewalls(&self, desired: &Snapshot) -> Result<Option<Snapshot>, Error> {
        let mut elements = self.elements.iter();
        if !elements.any(|(key, _)| key.set == Shared::FirewallIps) {
            return Ok(None);
        }
        let mut firewalls = Ruleset::try_from(desired)?;
        let mut tx = Transaction::new();
        let chains = desired.tables().flat_map(|table| table.chains());
        let chains = chains.map(|chain| chain.chain().name());
        let others: Vec<_> = chains.filter(|name| !base::is_firewall(name)).collect();
        for chain in &others {
            tx.flush_chain(self.family, TABLE, *chain)?;
        }
        let sets = desired.tables().flat_map(|table| table.sets());
        for set in sets.map(|set| set.set()) {
            let flags = set.flags().unwrap_or_default();
            if !flags.contains(SetFlags::ANONYMOUS) && !base::is_firewall(set.name()) {
                tx.delete(&nft::SetId::new(self.family, TABLE, set.name()))?;
            }
        }
        for chain in others {
            tx.delete(&nft::Chain::new(self.family, TABLE, chain))?;
        }
        firewalls.apply(&tx)?;
        Ok(Some(firewalls.to_snapshot(&self.scope())))
    }

    /// Brings an existing table to the desired state, by transactions [in order](InOrder), each based on the result of
    /// the previous one. If the kernel cannot change an object, the table is [replaced](Self::replace_table); sets of
    /// clients are recreated individually. Returns the number of transactions.
    fn repair(&mut self, ports: &Ports, flags: TableFlags) -> Result<usize, Error> {
        let desired = self.desired(ports, flags)?;
        let mut firewalls = None;
        let options = PlanOptions::default();
        let is_owned = flags.contains(TableFlags::OWNER);
        let mut in_order = StagedCommits::new(!self.check_only);
        for _ in 0..ATTEMPTS {
            let scope = self.scope();
            let now = self.nft().snapshot(scope)?;
            let whole = now.plan(&desired, options)?;
            self.kernel_state = match now.generation() {
                Some(_) if is_owned => KernelState::Owned,
                Some(generation) => KernelState::Since(generation),
                None => KernelState::No,
            };
            if whole.is_empty() {
                return Ok(in_order.made());
            }
            if !self.check_only && whole.replaced.iter().any(affects_lookups) {
                self.replace_table(ports, &desired, &mut in_order)?;
                continue;
            }
            let mut tx = match self.check_only {
                true => whole.into_transaction(),
                false => {
                    let firewalls = match &firewalls {
                        Some(kernel_state) => kernel_state,
                        None => firewalls.insert(self.firewalls(&desired)?),
                    };
                    self.next_repair(&now, ports, &desired, &whole, firewalls.as_ref())?
                }
            };
            match in_order.commit(&mut tx, |tx| self.commit(tx)) {
                // After a transaction that changes nothing, there is no further one.
                Ok(()) if self.check_only => return Ok(in_order.made()),
                Ok(()) => {}
                Err(error) if error.generation_moved() => {}
                Err(error) if is_refused(&error, &[libc::ENOENT, libc::EEXIST]) => {}
                Err(error) if is_refused(&error, &[libc::EBUSY]) => {
                    // Kernels before 6.4 do not delete a chain together with the references to it.
                    self.replace_table(ports, &desired, &mut in_order)?;
                    if self.check_only {
                        return Ok(in_order.made());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        // Others keep changing the table first, or react to each change.
        let plan = self.nft().reconcile(&desired, options)?;
        self.kernel_state = match is_owned {
            true => KernelState::Owned,
            false => KernelState::No,
        };
        Ok(in_order.made() + usize::from(!plan.is_empty()))
    }

    /// Returns the next transaction towards the desired table.
    fn next_repair(
        &self,
        now: &Snapshot,
        ports: &Ports,
        desired: &Snapshot,
        whole: &Plan,
        firewalls: Option<&Snapshot>,
    ) -> Result<Transaction, Error> {
        let replaced = whole.replaced.iter().filter(|one| one.kind == "set");
        let sets: HashSet<_> = replaced.map(|set| &set.name[..]).collect();
        let other;
        // An existing set of clients can be deleted as soon as no rule refers to it; of other sets that is not known.
        let target = match sets.is_empty() {
            true => desired,
            false => {
                let without = ports.iter().map(|(name, port)| {
                    let sets_of = content(port, &self.common.config).sets;
                    let goes = |set: &port::Clients| sets.contains(set.name.as_bytes());
                    let port = match sets_of.iter().any(goes) {
                        true => Arc::new(without_affinity(port)),
                        false => Arc::clone(port),
                    };
                    (name.clone(), port)
                });
                let flags = desired.table(self.family, TABLE);
                let flags = flags.and_then(|table| table.table().flags());
                other = self.desired(&without.collect(), flags.unwrap_or_default())?;
                &other
            }
        };
        // The kernel looks a packet up in the firewall first, and each lookup sees the elements of its moment: a
        // firewall is added before the addresses that it protects, and may be removed together with them.
        let firewalls = firewalls.into_iter();
        let stages = firewalls
            .flat_map(|firewalls| [(firewalls, Stage::New), (firewalls, Stage::Comes)])
            .chain([Stage::New, Stage::Comes, Stage::ElementsGo].map(|stage| (target, stage)));
        for (target, stage) in stages {
            let mut options = PlanOptions::default();
            options.stage = stage;
            let plan = now.plan(target, options)?;
            if !plan.is_empty() {
                return Ok(plan.into_transaction());
            }
        }
        Ok(now.plan(target, PlanOptions::default())?.into_transaction())
    }

    /// Replaces the table in one transaction, while a table of the flat layout has the same services: packets whose
    /// lookups fail in one table are translated by the other.
    fn replace_table(
        &mut self,
        ports: &Ports,
        desired: &Snapshot,
        in_order: &mut StagedCommits,
    ) -> Result<(), Error> {
        if !self.check_only
            && let Err(error) = in_order.step(|| self.with_flat(|flat| flat.make_stand_in(ports)))
        {
            tracing::warn!(%error, "cannot create the temporary table: services are interrupted while the table is recreated");
        }
        let made = in_order.step(|| desired.restore(self.nft()).map(|_| 1));
        in_order.step(|| self.with_flat(Flat::remove_stand_in))?;
        made
    }

    fn nft(&mut self) -> &mut Connection {
        (self.nft.as_mut()).expect("invariant: `with_flat` returns it")
    }

    /// Lends this layout's connection to the flat layout, and calls a function with that.
    fn with_flat<R>(
        &mut self,
        with: impl FnOnce(&mut Flat) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let nft = self.nft.take();
        let nft = nft.expect("invariant: the connection is not lent already");
        let mut flat = Flat::new(nft, self.of, Arc::clone(&self.common.config));
        flat.set_check_only(self.check_only);
        let done = with(&mut flat);
        self.nft = Some(flat.into_connection());
        done
    }

    /// Returns the flags that the table must have, `None` if there is no table; and whether owning it took a
    /// transaction.
    fn flags(&mut self) -> Result<(Option<TableFlags>, usize), Error> {
        let (family, port) = (self.family, self.nft().port());
        let Some(table) = self.nft().table(family, TABLE)? else {
            return Ok((None, 0));
        };
        let stays = table.flags().unwrap_or_default() & TableFlags::PERSIST;
        let is_own = table.owner() == Some(port);
        let owned = TableFlags::OWNER | TableFlags::PERSIST;
        if is_own {
            return Ok((Some(owned), 0));
        }
        if table.owner().is_none() && !self.common.config.own {
            return Ok((Some(stays), 0));
        }
        // The kernel reports a table of another owner.
        Ok(match self.nft().own(family, TABLE)? {
            Ownership::Owned => (Some(owned), 1),
            _ => (Some(stays), 0),
        })
    }

    fn try_change(&mut self, changes: &[PortChange]) -> Result<usize, Error> {
        // A set of clients with a new timeout has the name of the existing one, and is created when that is gone: until
        // then the service has none.
        let mut first = changes.to_vec();
        let mut second = Vec::new();
        for change in &mut first {
            if let (Some(before), Some(after)) = (&change.before, &change.after)
                && before.affinity.is_some()
                && after.affinity.is_some()
                && before.affinity != after.affinity
            {
                let without = Some(Arc::new(without_affinity(after)));
                let after = std::mem::replace(&mut change.after, without.clone());
                second.push(PortChange {
                    name: change.name.clone(),
                    before: without,
                    after,
                });
            }
        }
        Ok(self.change_in_order(&first)? + self.change_in_order(&second)?)
    }

    fn change_in_order(&mut self, changes: &[PortChange]) -> Result<usize, Error> {
        let difference = self.difference(changes);
        if difference.is_empty() && self.stale.is_empty() {
            return Ok(0);
        }
        let (family, config) = (self.family, Arc::clone(&self.common.config));
        let mut writer = Writer::new(family, &config);
        let mut in_order = StagedCommits::new(true);
        let mut old = Vec::new();
        for chain in difference.changed_chains() {
            old.extend(self.rules(chain)?);
        }
        let is_first = difference.needs_first();
        if is_first {
            difference.write_first(&mut writer)?;
            in_order.commit(&mut writer.tx, |tx| self.commit(tx))?;
            writer.clear();
        }
        difference.write_main(&mut writer, !is_first)?;
        in_order.commit(&mut writer.tx, |tx| self.commit(tx))?;
        writer.clear();
        self.stale.retain(|chain| !difference.adds_chain(chain));
        difference.write_last(&mut writer, &old)?;
        let kernel_state = self.kernel_state;
        if !self.chains_apart {
            difference.delete_chains(&mut writer)?;
        }
        match in_order.commit(&mut writer.tx, |tx| self.commit(tx)) {
            Ok(()) if !self.chains_apart => return Ok(in_order.made()),
            Ok(()) => {}
            Err(error) if !self.chains_apart && is_chain_busy(&error) => {
                self.kernel_state = kernel_state;
                self.chains_apart = true;
                writer.clear();
                difference.write_last(&mut writer, &old)?;
                in_order.commit(&mut writer.tx, |tx| self.commit(tx))?;
            }
            Err(error) => return Err(error.into()),
        }
        let gone = difference.gone_chains().map(str::to_owned);
        self.stale.extend(gone);
        Ok(in_order.made() + self.delete_stale()?)
    }

    /// Returns the rules of chains with their handles.
    fn rules(&mut self, chain: &str) -> Result<Vec<(String, u64)>, Error> {
        let (family, mut handles) = (self.family, Vec::new());
        let mut rules = self.nft().rules(RuleFilter::chain(family, TABLE, chain))?;
        while let Some(rule) = rules.try_next()? {
            handles.push((chain.to_owned(), rule.handle()));
        }
        Ok(handles)
    }

    /// Deletes unused chains, if the kernel accepts that by now.
    fn delete_stale(&mut self) -> Result<usize, Error> {
        if self.stale.is_empty() {
            return Ok(0);
        }
        let mut tx = Transaction::new();
        for chain in &self.stale {
            tx.delete(&nft::Chain::new(self.family, TABLE, chain))?;
        }
        let kernel_state = self.kernel_state;
        match self.commit(&mut tx) {
            Ok(()) => {
                self.stale.clear();
                Ok(1)
            }
            Err(error) if is_chain_busy(&error) => {
                self.kernel_state = kernel_state;
                Ok(0)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the operations for changed ports. Updates the registered elements.
    fn difference(&mut self, changes: &[PortChange]) -> Difference {
        let mut difference = Difference::new(self.family);
        for change in changes {
            let content_of = |port: Option<&Arc<_>>| match port {
                Some(port) => content(port, &self.common.config),
                None => port::Content::default(),
            };
            let before = content_of(change.before.as_ref());
            let after = content_of(change.after.as_ref());
            for (key, _) in &before.elements {
                self.elements.release(&change.name, key);
            }
            for (key, value) in &after.elements {
                let (key, value) = (key.clone(), value.clone());
                self.elements.acquire(change.name.clone(), key, value);
            }
            difference.take(before, after);
        }
        let mut elements: Vec<Changed<Key, Value>> = self.elements.take_changed();
        elements.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        difference.elements = elements;
        difference
    }
}

/// Returns `true` if a replacement in a plan affects the lookups of packets: any but a set of clients.
fn affects_lookups(one: &Replaced) -> bool {
    match one.kind {
        "set" => !one.name.starts_with(b"affinity-"),
        kind => !matches!(kind, "rules" | "elements"),
    }
}

/// Returns the same port without session affinity: it has the same chains, and no sets.
fn without_affinity(port: &ServicePort) -> ServicePort {
    ServicePort {
        affinity: Some(Duration::ZERO),
        ..port.clone()
    }
}

impl FamilyLayout for Nftables {
    fn full_sync(&mut self, ports: &Ports) -> Result<usize, Error> {
        self.kernel_state = KernelState::No;
        self.stale.clear();
        self.acquire(ports);
        // A process that ended in the middle may have left it.
        let removed = self.with_flat(Flat::remove_stand_in)?;
        match self.flags()? {
            (None, _) => Ok(removed + self.make(ports)?),
            (Some(flags), made) => Ok(removed + made + self.repair(ports, flags)?),
        }
    }

    fn change(&mut self, ports: &Ports, changes: &[PortChange]) -> Result<usize, Error> {
        if self.kernel_state == KernelState::No {
            return self.full_sync(ports);
        }
        match self.try_change(changes) {
            Err(Error::Commit(error)) if may_have_diverged(&error) => self.full_sync(ports),
            changed => {
                if changed.is_err() {
                    self.kernel_state = KernelState::No;
                }
                changed
            }
        }
    }

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn set_check_only(&mut self, yes: bool) -> bool {
        self.nft().set_check_only(yes);
        self.check_only = yes;
        true
    }

    fn remove(&mut self) -> Result<(), Error> {
        self.kernel_state = KernelState::No;
        self.stale.clear();
        self.elements = Elements::default();
        let family = self.family;
        remove_table(self.nft(), family)?;
        Ok(())
    }
}

/// Removes the table of a family, whichever program created it, for instance kube-proxy. Returns whether there was one.
///
/// # Errors
/// [`Error::Commit`] with `EPERM` if the table belongs to a connection that still exists.
pub(in crate::service) fn clean_up(nft: &mut Connection, family: Family) -> Result<bool, Error> {
    remove_table(nft, family.into())
}

fn remove_table(nft: &mut Connection, family: nft::Family) -> Result<bool, Error> {
    if nft.table(family, TABLE)?.is_none() {
        return Ok(false);
    }
    let mut tx = Transaction::new();
    tx.delete(&Table::new(family, TABLE))?;
    match nft.commit(&tx) {
        Ok(()) => Ok(true),
        // Another program removed it first.
        Err(error) if is_refused(&error, &[libc::ENOENT]) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes the content of an empty table, in one transaction or in pieces. They are ordered so that each committed part
/// handles traffic correctly: chains before the elements that refer to them, and rules that block traffic before those
/// that accept in. Reports after each transaction how many ports and elements are written.
fn fill(
    writer: &mut Writer<'_>,
    ports: &Ports,
    elements: &Elements,
    in_pieces: bool,
    mut commit: impl FnMut(&mut Transaction, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    /// This many elements take at most some hundred kilobytes.
    const MAX_ELEMENTS_PER_TRANSACTION: usize = 1024;
    let largest = if in_pieces {
        MAX_TRANSACTION_BYTES
    } else {
        usize::MAX
    };
    let mut done = 0;
    let mut commit_if = |writer: &mut Writer<'_>, more: usize, largest: usize| {
        done += more;
        if writer.tx.byte_length() > largest {
            commit(&mut writer.tx, done)?;
            writer.clear();
        }
        Ok::<(), Error>(())
    };
    let (family, config) = (writer.family, writer.config);
    base::write(writer, family, config)?;

    let mut sorted: Vec<_> = ports.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    for (_, port) in sorted {
        let content = content(port, config);
        for clients in &content.sets {
            writer.add_clients(clients)?;
        }
        for chain in &content.chains {
            writer.add_chain(&chain.name)?;
        }
        for chain in &content.chains {
            writer.add_rules(chain)?;
        }
        commit_if(writer, 1, largest)?;
    }

    let mut sorted: Vec<_> = elements.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    for shared in Shared::FILL_ORDER {
        let first = sorted.partition_point(|(key, _)| key.set < shared);
        let last = sorted.partition_point(|(key, _)| key.set <= shared);
        for some in sorted[first..last].chunks(MAX_ELEMENTS_PER_TRANSACTION) {
            writer.add_elements(shared, some.iter().copied())?;
            commit_if(writer, some.len(), largest)?;
        }
        // No load balancer may be reachable before its firewall exists.
        if in_pieces && shared == Shared::FirewallIps && first < last {
            commit_if(writer, 0, 0)?;
            wait_for_packets();
        }
    }
    commit_if(writer, 0, 0)
}

/// Returns `true` if the kernel refused operations, or the transaction, only for these reasons.
fn is_refused(error: &CommitError, reasons: &[i32]) -> bool {
    let mut failures = error.failures.iter();
    error.outcome == Outcome::NothingApplied
        && !error.failures.is_empty()
        && !error.generation_moved()
        && failures.all(|failure| reasons.contains(&failure.errno.number()))
}

/// Returns `true` if the only problem is that chains to be deleted are still referenced.
fn is_chain_busy(error: &CommitError) -> bool {
    let mut operations = error.failures.iter().map(|failure| &failure.operation);
    is_refused(error, &[libc::EBUSY])
        && operations.all(|operation| {
            let operation = operation.as_ref();
            operation.is_some_and(|done| done.verb == "delete" && done.kind == "chain")
        })
}

/// Returns `true` if the table differs, or may differ, from the known state.
fn may_have_diverged(error: &CommitError) -> bool {
    error.generation_moved()
        || error.outcome == Outcome::Unknown
        || is_refused(error, &[libc::ENOENT, libc::EEXIST, libc::EBUSY])
}
