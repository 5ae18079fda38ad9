//! Services as kube-proxy's nftables mode has them: the table `kube-proxy` of each family, with a chain for each
//! service's port, and maps of verdicts that lead to them.
//!
//! | what | where |
//! |---|---|
//! | the table, and the chains, sets and rules that always stand | `base.rs` |
//! | the sets and maps that services share, and their elements | `elements.rs` |
//! | what a port comes to | `port.rs` |
//! | all of it as operations | `write.rs` |
//! | what a change of some ports comes to | `difference.rs` |
//!
//! It is what kube-proxy 1.36 writes, rule for rule, but for this:
//! - The table may be [one's own](chainwright::nft::Connection::own), which shows in its flags. kube-proxy, which has each
//!   change made by another process, cannot have it so.
//! - Of an element's comment, a port's name, as much is written as there is room for (128 bytes). kube-proxy fails at
//!   a name that is longer, with all its services.
//! - Chains that nothing leads to any more, and rules that were replaced, go when the kernel has dealt with the packets
//!   that were on their way, and not a second later or at once: a packet that came before the change finds what it
//!   looks up.
//! - The set of an endpoint's clients is made anew if the time is another after which they are forgotten: for some
//!   milliseconds the service's clients are not kept at one endpoint.
//! - What two services ask for (an external address and port, a node port) goes to one of them by a fixed order, not to
//!   the one that came last.
//! - Where node ports are at given addresses, and none of them is of a family, that family serves none. Where they are in
//!   networks, that is decided when a packet comes.
//! - With `masqueradeAll` the rule's comment is ours.
//! - Beside the table's comment its user data says that this library made it, which `nft` does not show.
//!
//! Also the user data that only `nft` reads is that of its version 1.0.6, so that a table that kube-proxy left is taken
//! over as it is, but for rules with several source ranges.
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
use super::{Common, FamilyLayout, InOrder, PortChange, Ports, wait_for_packets};
use crate::service::config::Config;
use crate::service::names::PortName;
use crate::service::resolve::ServicePort;
use chainwright::Error;
use chainwright::iptables::Family;
use chainwright::nft::{
    self, CommitError, Connection, Generation, Outcome, Ownership, Plan, PlanOptions, Replaced,
    RuleFilter, Scope, SetFlags, Snapshot, Stage, Table, TableFlags, TableRef, Transaction,
};
use chainwright_testing::FakeKernel;
use difference::Difference;
use elements::{Key, Shared, Value};
use port::content;
use write::Writer;

/// The table's name.
pub(in crate::service) const TABLE: &str = "kube-proxy";
const COMMENT: &str = "rules for kube-proxy";

/// How large a transaction is at most that only adds, in bytes. What one adds the kernel keeps in a list until it is
/// committed, and looks through for each anonymous set: 8,000 services took 9.8 s in pieces of this size, and 13.9 s in
/// one (Linux 6.18, a debug build on a busy machine).
const LARGEST: usize = 1 << 20;
/// How often it is begun anew when others change the table between reading and committing, before that is left to
/// [`Connection::reconcile`], which is as patient as [`Retry`](chainwright::Retry) says.
const ATTEMPTS: usize = 16;

/// Whether a table is kube-proxy's or of this layout; and if it is, whether this library made it.
pub(crate) fn whose(table: &TableRef<'_>) -> Option<bool> {
    (table.name() == TABLE).then(|| base::is_own(table))
}

/// Which elements of the shared sets ports ask for.
type Elements = SharedElements<PortName, Key, Value>;

/// kube-proxy's layout in nftables, of one family.
#[derive(Debug)]
pub(in crate::service) struct Nftables {
    nft: Connection,
    of: Family,
    family: nft::Family,
    common: Common,
    elements: Elements,
    known: Known,
    /// Chains without rules that the kernel would not let go yet.
    stale: BTreeSet<String>,
    /// Whether the kernel lets a chain go only after what leads to it.
    chains_apart: bool,
    /// Whether nothing is carried out.
    only_checks: bool,
}

/// Why what is in the kernel is known to be what was put there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It is not.
    No,
    /// Nobody else can change the table.
    Owned,
    /// Nobody changed anything since this generation.
    Since(Generation),
}

impl Nftables {
    /// Over a connection, of which it may make the table's owner.
    pub(in crate::service) fn new(nft: Connection, family: Family, config: Arc<Config>) -> Self {
        Self {
            nft,
            of: family,
            family: family.into(),
            common: Common::new(config),
            elements: Elements::default(),
            known: Known::No,
            stale: BTreeSet::new(),
            chains_apart: false,
            only_checks: false,
        }
    }

    fn scope(&self) -> Scope<'static> {
        Scope::table(self.family, TABLE)
    }

    /// Commits on what is known, and knows then what is there.
    fn commit(&mut self, tx: &mut Transaction) -> Result<(), CommitError> {
        match std::mem::replace(&mut self.known, Known::No) {
            Known::Owned => {
                self.nft.commit(tx)?;
                self.known = Known::Owned;
            }
            Known::Since(generation) => {
                let generation = self.common.commits.latest(generation);
                tx.expect_generation(generation);
                let made = self.nft.commit_numbered(tx)?;
                if let Some(made) = made.filter(|_| !self.only_checks) {
                    self.common.commits.note(generation, made);
                }
                self.known = made.map_or(Known::No, Known::Since);
            }
            Known::No => {
                let made = self.nft.commit_numbered(tx)?;
                self.known = made.map_or(Known::No, Known::Since);
            }
        }
        Ok(())
    }

    /// What ports ask for.
    fn claim(&mut self, ports: &Ports) {
        self.elements = Elements::default();
        for (name, port) in ports {
            for (key, value) in content(port, &self.common.config).elements {
                self.elements.claim(name.clone(), key, value);
            }
        }
        self.elements.take_changed();
    }

    /// Makes the table where there is none: how many transactions it took.
    fn make(&mut self, ports: &Ports) -> Result<usize, Error> {
        let owned = TableFlags::OWNER | TableFlags::PERSIST;
        let mut made = 0;
        let mut is_owned = false;
        if self.common.config.own {
            let mut tx = Transaction::new();
            base::add_table(&mut tx, self.family, owned)?;
            match self.nft.commit(&tx) {
                Ok(()) => (made, is_owned) = (1, true),
                // This kernel has no tables that stay without their owner.
                Err(error) if is_refused(&error, &[libc::EOPNOTSUPP, libc::EINVAL]) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.known = Known::No;
        let (family, config) = (self.family, Arc::clone(&self.common.config));
        let mut writer = Writer::new(family, &config);
        if !is_owned {
            base::add_table(&mut writer.tx, family, TableFlags::empty())?;
        }
        let elements = std::mem::take(&mut self.elements);
        // Nobody need wait for others to be still: what somebody does to the table meanwhile is looked for afterwards.
        let mut was_alone = true;
        let mut last: Option<Generation> = None;
        let before = self.nft.generation()?;
        let all = ports.len() + elements.iter().count();
        let in_pieces = !self.only_checks;
        let filled = fill(&mut writer, ports, &elements, in_pieces, |tx, done| {
            made += 1;
            if is_owned {
                self.nft.commit(tx)?;
                self.common.observer.tell(self.of, done, all);
                return Ok(());
            }
            let generation = self.nft.commit_numbered(tx)?;
            let is_next = generation == Some(last.unwrap_or(before).next());
            if let Some(made) = generation.filter(|_| is_next && !self.only_checks) {
                self.common.commits.note(last.unwrap_or(before), made);
            }
            was_alone &= is_next || last.is_none();
            last = generation;
            self.common.observer.tell(self.of, done, all);
            Ok(())
        });
        self.elements = elements;
        filled?;
        self.known = match last {
            _ if is_owned => Known::Owned,
            Some(last) if was_alone => Known::Since(last),
            _ => return Ok(made + self.repair(ports, TableFlags::empty())?),
        };
        Ok(made)
    }

    /// The table as it is to be.
    fn desired(&self, ports: &Ports, flags: TableFlags) -> Result<Snapshot, Error> {
        let mut model = model()?;
        let mut writer = Writer::new(self.family, &self.common.config);
        base::add_table(&mut writer.tx, self.family, flags)?;
        fill(&mut writer, ports, &self.elements, false, |tx, _| {
            Ok(model.commit(tx)?)
        })?;
        Ok(model.snapshot(self.scope())?)
    }

    /// What keeps traffic out of a table that is as desired, and nothing else of it; `None` if nothing does.
    fn firewalls(&self, desired: &Snapshot) -> Result<Option<Snapshot>, Error> {
        let mut elements = self.elements.iter();
        if !elements.any(|(key, _)| key.set == Shared::FirewallIps) {
            return Ok(None);
        }
        let mut model = model()?;
        desired.restore(&mut model)?;
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
                tx.delete(&nft::Set::named(self.family, TABLE, set.name()))?;
            }
        }
        for chain in others {
            tx.delete(&nft::Chain::new(self.family, TABLE, chain))?;
        }
        model.commit(&tx)?;
        Ok(Some(model.snapshot(self.scope())?))
    }

    /// Brings a table that is there to what it is to be, by transactions [in order](InOrder), each of what the one before
    /// left; what the kernel cannot change is made [anew](Self::make_anew), but for sets of clients. How many it took.
    fn repair(&mut self, ports: &Ports, flags: TableFlags) -> Result<usize, Error> {
        let desired = self.desired(ports, flags)?;
        let mut firewalls = None;
        let options = PlanOptions::default();
        let is_owned = flags.contains(TableFlags::OWNER);
        let mut in_order = InOrder::new(!self.only_checks);
        for _ in 0..ATTEMPTS {
            let now = self.nft.snapshot(self.scope())?;
            let whole = now.plan(&desired, options)?;
            self.known = match now.generation() {
                Some(_) if is_owned => Known::Owned,
                Some(generation) => Known::Since(generation),
                None => Known::No,
            };
            if whole.is_empty() {
                return Ok(in_order.made());
            }
            if !self.only_checks && whole.replaced.iter().any(is_made_anew) {
                self.make_anew(ports, &desired, &mut in_order)?;
                continue;
            }
            let mut tx = match self.only_checks {
                true => whole.into_transaction(),
                false => {
                    let firewalls = match &firewalls {
                        Some(known) => known,
                        None => firewalls.insert(self.firewalls(&desired)?),
                    };
                    self.next_repair(&now, ports, &desired, &whole, firewalls.as_ref())?
                }
            };
            match in_order.commit(&mut tx, |tx| self.commit(tx)) {
                // A transaction that changes nothing leads to no next one.
                Ok(()) if self.only_checks => return Ok(in_order.made()),
                Ok(()) => {}
                Err(error) if error.generation_moved() => {}
                Err(error) if is_refused(&error, &[libc::ENOENT, libc::EEXIST]) => {}
                Err(error) if is_refused(&error, &[libc::EBUSY]) => {
                    // Kernels before 6.4 do not let a chain go with what leads to it.
                    self.make_anew(ports, &desired, &mut in_order)?;
                    if self.only_checks {
                        return Ok(in_order.made());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        // Others are always quicker, or listen to what they do.
        let plan = self.nft.reconcile(&desired, options)?;
        self.known = match is_owned {
            true => Known::Owned,
            false => Known::No,
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
        // A set of clients that is there can go as soon as no rule knows of it; of another set nothing is known.
        let target = match sets.is_empty() {
            true => desired,
            false => {
                let without = ports.iter().map(|(name, port)| {
                    let sets_of = content(port, &self.common.config).sets;
                    let goes = |set: &port::Clients| sets.contains(set.name.as_bytes());
                    let port = match sets_of.iter().any(goes) {
                        true => Arc::new(forgetting(port)),
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
        // The kernel looks a packet up in the firewall first, and each look-up sees the elements of its moment: a firewall is
        // added before the addresses that it protects, and may be removed together with them.
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

    /// Makes the table what it is to be in one transaction, while one of the flat layout has the same services: a packet whose
    /// look-ups find nothing in the one is translated by the other.
    fn make_anew(
        &mut self,
        ports: &Ports,
        desired: &Snapshot,
        in_order: &mut InOrder,
    ) -> Result<(), Error> {
        if !self.only_checks
            && let Err(error) = in_order.step(|| self.with_flat(|flat| flat.make_stand_in(ports)))
        {
            tracing::warn!(%error, "nothing stands in for the table that is made anew");
        }
        let made = in_order.step(|| desired.restore(&mut self.nft).map(|_| 1));
        in_order.step(|| self.with_flat(Flat::remove_stand_in))?;
        made
    }

    /// Does something with the flat layout, over this one's connection.
    fn with_flat<R>(
        &mut self,
        with: impl FnOnce(&mut Flat) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let nft = std::mem::replace(&mut self.nft, model()?);
        let mut flat = Flat::new(nft, self.of, Arc::clone(&self.common.config));
        flat.only_check(self.only_checks);
        let done = with(&mut flat);
        self.nft = flat.into_connection();
        done
    }

    /// The flags that the table is to have; `None` if there is none. And whether it took a transaction to own it.
    fn flags(&mut self) -> Result<(Option<TableFlags>, usize), Error> {
        let port = self.nft.port();
        let Some(table) = self.nft.table(self.family, TABLE)? else {
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
        // Of somebody else's the kernel says so.
        Ok(match self.nft.own(self.family, TABLE)? {
            Ownership::Owned => (Some(owned), 1),
            _ => (Some(stays), 0),
        })
    }

    fn try_change(&mut self, changes: &[PortChange]) -> Result<usize, Error> {
        // A set of clients who are forgotten after another time has the name of the one that is there, and is made when
        // that is gone: until then the service has none.
        let mut first = changes.to_vec();
        let mut second = Vec::new();
        for change in &mut first {
            if let (Some(before), Some(after)) = (&change.before, &change.after)
                && before.affinity.is_some()
                && after.affinity.is_some()
                && before.affinity != after.affinity
            {
                let without = Some(Arc::new(forgetting(after)));
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
        let mut in_order = InOrder::new(true);
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
        let known = self.known;
        if !self.chains_apart {
            difference.delete_chains(&mut writer)?;
        }
        match in_order.commit(&mut writer.tx, |tx| self.commit(tx)) {
            Ok(()) if !self.chains_apart => return Ok(in_order.made()),
            Ok(()) => {}
            Err(error) if !self.chains_apart && is_chains_in_use(&error) => {
                self.known = known;
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

    /// The rules that a chain has, by their handles.
    fn rules(&mut self, chain: &str) -> Result<Vec<(String, u64)>, Error> {
        let mut handles = Vec::new();
        let mut rules = self
            .nft
            .rules(RuleFilter::chain(self.family, TABLE, chain))?;
        while let Some(rule) = rules.next()? {
            handles.push((chain.to_owned(), rule.handle()));
        }
        Ok(handles)
    }

    /// Deletes chains that nothing leads to any more, if the kernel knows that by now.
    fn delete_stale(&mut self) -> Result<usize, Error> {
        if self.stale.is_empty() {
            return Ok(0);
        }
        let mut tx = Transaction::new();
        for chain in &self.stale {
            tx.delete(&nft::Chain::new(self.family, TABLE, chain))?;
        }
        let known = self.known;
        match self.commit(&mut tx) {
            Ok(()) => {
                self.stale.clear();
                Ok(1)
            }
            Err(error) if is_chains_in_use(&error) => {
                self.known = known;
                Ok(0)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What ports' changes come to; what they ask for is so from here on.
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
                self.elements.claim(change.name.clone(), key, value);
            }
            difference.take(before, after);
        }
        let mut elements: Vec<Changed<Key, Value>> = self.elements.take_changed();
        elements.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        difference.elements = elements;
        difference
    }
}

/// A kernel that is none.
fn model() -> Result<Connection, Error> {
    let open = |source| chainwright::netlink::Error::Open {
        protocol: libc::NETLINK_NETFILTER,
        source,
    };
    Ok(FakeKernel::new().connect().map_err(open)?)
}

/// Whether something that a plan has made anew takes the place of what packets look up: all but a set of clients.
fn is_made_anew(one: &Replaced) -> bool {
    match one.kind {
        "set" => !one.name.starts_with(b"affinity-"),
        kind => !matches!(kind, "rules" | "elements"),
    }
}

/// A port whose clients are forgotten at once: it has the same chains, and no sets.
fn forgetting(port: &ServicePort) -> ServicePort {
    ServicePort {
        affinity: Some(Duration::ZERO),
        ..port.clone()
    }
}

impl FamilyLayout for Nftables {
    fn adopt(&mut self, ports: &Ports) -> Result<usize, Error> {
        self.known = Known::No;
        self.stale.clear();
        self.claim(ports);
        // One that ended in the middle may have left it.
        let removed = self.with_flat(Flat::remove_stand_in)?;
        match self.flags()? {
            (None, _) => Ok(removed + self.make(ports)?),
            (Some(flags), made) => Ok(removed + made + self.repair(ports, flags)?),
        }
    }

    fn change(&mut self, ports: &Ports, changes: &[PortChange]) -> Result<usize, Error> {
        if self.known == Known::No {
            return self.adopt(ports);
        }
        match self.try_change(changes) {
            Err(Error::Commit(error)) if is_mistaken(&error) => self.adopt(ports),
            changed => {
                if changed.is_err() {
                    self.known = Known::No;
                }
                changed
            }
        }
    }

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn only_check(&mut self, yes: bool) -> bool {
        self.nft.only_check(yes);
        self.only_checks = yes;
        true
    }

    fn remove(&mut self) -> Result<(), Error> {
        self.known = Known::No;
        self.stale.clear();
        self.elements = Elements::default();
        remove_table(&mut self.nft, self.family)?;
        Ok(())
    }
}

/// Removes the table of a family, whoever made it, kube-proxy for instance: whether there was one.
///
/// # Errors
/// [`Error::Commit`] with `EPERM` if the table belongs to a connection that is still there.
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
        // Somebody else was quicker.
        Err(error) if is_refused(&error, &[libc::ENOENT]) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes all that is to be in a table that has nothing, in one transaction or in pieces. These are in an order in which
/// whatever of it is committed is good for traffic: chains before the elements that lead to them, and what keeps traffic out
/// before what lets it in. With each transaction it says how many ports and elements are written.
fn fill(
    writer: &mut Writer<'_>,
    ports: &Ports,
    elements: &Elements,
    in_pieces: bool,
    mut commit: impl FnMut(&mut Transaction, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    /// So many elements are at most some hundred kilobytes.
    const AT_ONCE: usize = 1024;
    let largest = if in_pieces { LARGEST } else { usize::MAX };
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
    for shared in Shared::FILLED {
        let first = sorted.partition_point(|(key, _)| key.set < shared);
        let last = sorted.partition_point(|(key, _)| key.set <= shared);
        for some in sorted[first..last].chunks(AT_ONCE) {
            writer.add_elements(shared, some.iter().copied())?;
            commit_if(writer, some.len(), largest)?;
        }
        // No load balancer can be reached before its firewall stands.
        if in_pieces && shared == Shared::FirewallIps && first < last {
            commit_if(writer, 0, 0)?;
            wait_for_packets();
        }
    }
    commit_if(writer, 0, 0)
}

/// Whether the kernel refused operations, or the whole, for one of these reasons alone.
fn is_refused(error: &CommitError, reasons: &[i32]) -> bool {
    let mut failures = error.failures.iter();
    error.outcome == Outcome::NothingApplied
        && !error.failures.is_empty()
        && !error.generation_moved()
        && failures.all(|failure| reasons.contains(&failure.errno.number()))
}

/// Whether it is only that chains are referred to that are to go.
fn is_chains_in_use(error: &CommitError) -> bool {
    let mut operations = error.failures.iter().map(|failure| &failure.operation);
    is_refused(error, &[libc::EBUSY])
        && operations.all(|operation| {
            let operation = operation.as_ref();
            operation.is_some_and(|done| done.verb == "delete" && done.kind == "chain")
        })
}

/// Whether what was thought to be there is not, or may not be.
fn is_mistaken(error: &CommitError) -> bool {
    error.generation_moved()
        || error.outcome == Outcome::Unknown
        || is_refused(error, &[libc::ENOENT, libc::EEXIST, libc::EBUSY])
}
