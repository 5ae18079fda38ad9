//! The layout of kube-proxy's iptables mode (Kubernetes 1.36), in nf_tables or in the legacy tables.
//!
//! | chain | table | purpose |
//! |---|---|---|
//! | `KUBE-SERVICES`, `KUBE-NODEPORTS` | nat | addresses and ports → the chain of a service port |
//! | `KUBE-SVC-…`, `KUBE-SVL-…` | nat | any endpoint, any on this node; first the one with affinity to the client |
//! | `KUBE-EXT-…`, `KUBE-FW-…` | nat | traffic from outside, from clients that may use the load balancer |
//! | `KUBE-SEP-…` | nat | one endpoint |
//! | `KUBE-MARK-MASQ`, `KUBE-POSTROUTING` | nat | masquerading |
//! | `KUBE-SERVICES`, `KUBE-EXTERNAL-SERVICES`, `KUBE-PROXY-FIREWALL` | filter | refused traffic |
//! | `KUBE-NODEPORTS`, `KUBE-FORWARD` | filter | accepted traffic |
//! | `KUBE-PROXY-CANARY` | mangle, filter, nat | empty; its disappearance shows a flush |
//!
//! # Costs
//! A change reads and writes the chains of the changed ports. If addresses, ports or the existence of endpoints
//! changed, it also reads the chains that all ports share and generates their rules, which takes time proportional to
//! the number of services. A legacy table is read and replaced completely by any change. A full sync reads all chains.
//!
//! In nf_tables a change is one transaction. Legacy tables are replaced one after the other, filter before nat as in
//! kube-proxy.
//!
//! # Intended differences from kube-proxy
//! - Rules of several ports are sorted by the ports' names, and source ranges by their addresses; kube-proxy's order of
//!   ports differs at each start. An existing rule stays, with its counters.
//! - Missing chains are created before the rules that jump to them, and stale chains are removed last, in one
//!   transaction over filter and nat. kube-proxy makes two, and adds its jumps one by one.
//! - At each full sync, jumps from built-in chains are moved to the front; kube-proxy leaves them where they
//!   are.
//! - The matches `nfacct` are written if [`Config::nfacct`] is set; kube-proxy checks whether the kernel supports them,
//!   and creates the counters.
//! - [`Config::tcp_be_liberal`] decides whether invalid packets are dropped; kube-proxy reads the kernel setting.
//! - `route_localnet`, which node ports at loopback addresses need, is set at each full sync, in the calling
//!   thread's network namespace. If it cannot be written, the failure is logged; kube-proxy exits.
//! - Above 1000 endpoints, rules of endpoints have no comments, as in kube-proxy; but this is decided only at a
//!   full sync, and endpoints without traffic do not count.
//! - `KUBE-FIREWALL` belongs to a kubelet: a missing rule is added, and others stay. kube-proxy flushes the chain.
//! - `--random-fully` is always written, as kube-proxy does with iptables 1.6.2 or later.

mod base;
mod cleanup;
mod rules;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use self::cleanup::{TABLES, is_port_chain, targets_of_foreign_rules};
pub(in crate::service) use self::cleanup::{clean_up, is_installed};
use self::rules::{Chain, Rules, Shared, sorted};
use super::{Common, FamilyLayout, PortChange, Ports};
use crate::service::config::Config;
use crate::service::resolve::ServicePort;
use chainwright::Error;
use chainwright::iptables::{self, Backend, ChainChanges, Family, Rule, TableEdit};

/// Above this number of endpoints their rules have no comments, which take most of their space.
const MAX_COMMENTED_ENDPOINTS: usize = 1000;

/// One family of the layout.
#[derive(Debug)]
pub(in crate::service) struct Iptables {
    ipt: iptables::Iptables,
    family: Family,
    /// The observer is not used: a change takes one transaction.
    common: Common,
    /// Whether rules of endpoints have comments that name the service.
    comments: bool,
    check_only: bool,
}

impl Iptables {
    /// Creates the layout in the tables of this handle.
    pub(in crate::service) fn new(
        ipt: iptables::Iptables,
        family: Family,
        config: Arc<Config>,
    ) -> Self {
        Self {
            ipt,
            family,
            common: Common::new(config),
            comments: true,
            check_only: false,
        }
    }

    fn change_only(
        &mut self,
        ports: &Ports,
        changes: &[PortChange],
    ) -> Result<usize, iptables::Error> {
        let rules = Rules {
            family: self.family,
            config: &self.common.config,
            comments: self.comments,
        };
        let plan = Plan::of(&rules, ports, changes);
        let family = self.family;
        let tables: Vec<_> = ["filter", "nat"]
            .into_iter()
            .filter(|table| plan.concerns(table))
            .map(|table| (family, table))
            .collect();
        if tables.is_empty() {
            return Ok(0);
        }
        let changed = self.ipt.update_tables(&tables, |edit| {
            let mut changed = 0;
            for (_, table) in &tables {
                let mut chains = Chains::new(edit.table(family, table)?);
                plan.execute(&mut chains)?;
                changed += usize::from(chains.changed);
            }
            Ok(changed)
        })?;
        Ok(transactions(&self.ipt, changed))
    }
}

impl FamilyLayout for Iptables {
    #[tracing::instrument(level = "debug", skip_all, fields(ports = ports.len()))]
    fn full_sync(&mut self, ports: &Ports) -> Result<usize, Error> {
        let endpoints = ports.values().map(|port| port.reachable().len());
        self.comments = endpoints.sum::<usize>() <= MAX_COMMENTED_ENDPOINTS;
        let rules = Rules {
            family: self.family,
            config: &self.common.config,
            comments: self.comments,
        };
        let family = self.family;
        let tables = TABLES.map(|table| (family, table));
        let changed = self.ipt.update_tables(&tables, |edit| {
            let mut changed = 0;
            for (_, table) in tables {
                let mut chains = Chains::new(edit.table(family, table)?);
                sync_table(&rules, ports, &mut chains)?;
                changed += usize::from(chains.changed);
            }
            Ok(changed)
        })?;
        if rules.serves_at_loopback() && !self.check_only {
            // After the rules that protect the loopback addresses.
            route_localnet();
        }
        Ok(transactions(&self.ipt, changed))
    }

    #[tracing::instrument(level = "debug", skip_all, fields(changes = changes.len()))]
    fn change(&mut self, ports: &Ports, changes: &[PortChange]) -> Result<usize, Error> {
        match self.change_only(ports, changes) {
            Err(error) if is_unexpected_state(&error) => {
                tracing::debug!(%error, "another process changed the tables");
                self.full_sync(ports)
            }
            result => Ok(result?),
        }
    }

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn set_check_only(&mut self, yes: bool) -> bool {
        self.check_only = yes;
        self.ipt.set_check_only(yes)
    }

    fn remove(&mut self) -> Result<(), Error> {
        clean_up(&mut self.ipt, self.family).map(drop)
    }
}

/// Makes the kernel route packets of this node from and to loopback addresses over other interfaces, which node ports
/// at loopback addresses need: in the calling thread's network namespace, as long as that exists.
fn route_localnet() {
    const SETTING: &str = "/proc/sys/net/ipv4/conf/all/route_localnet";
    let written = match fs::read_to_string(SETTING) {
        Ok(value) if value.trim() == "1" => return,
        Ok(_) => fs::write(SETTING, "1"),
        Err(error) => Err(error),
    };
    match written {
        Ok(()) => tracing::info!("set {SETTING} to 1 for node ports on loopback addresses"),
        Err(error) => tracing::warn!(
            %error,
            "cannot set {SETTING} to 1: node ports on loopback addresses do not work"
        ),
    }
}

/// Returns the number of transactions for changes of so many tables.
const fn transactions(ipt: &iptables::Iptables, tables: usize) -> usize {
    match (ipt.backend(), tables) {
        (_, 0) => 0,
        (Backend::Nft, _) => 1,
        (Backend::Legacy, tables) => tables,
    }
}

/// Brings a table from any state to the one that the layout requires.
fn sync_table(
    rules: &Rules<'_>,
    ports: &Ports,
    chains: &mut Chains<'_>,
) -> Result<(), iptables::Error> {
    let table = chains.table.name().to_owned();
    chains.list()?;
    let shared = || Shared::ALL.into_iter().filter(|s| s.table() == table);
    let fixed = rules.fixed(&table);
    for (chain, _) in &fixed {
        chains.make(chain)?;
    }
    for chain in shared() {
        chains.make(chain.chain())?;
    }
    for (chain, rules) in &fixed {
        chains.set_rules(chain, rules)?;
    }

    // A port's chains jump to one another, and to chains that exist by now.
    let mut known = HashSet::new();
    for port in sorted(ports).into_iter().filter(|_| table == "nat") {
        let own = rules.own(port);
        for (chain, _) in &own {
            chains.make(chain)?;
        }
        for (chain, rules) in own {
            chains.set_rules(&chain, &rules)?;
            known.insert(BString::from(chain));
        }
    }
    let existing = chains.existing.clone().unwrap_or_default();
    let (of_ports, others): (Vec<_>, Vec<_>) = existing.into_iter().partition(is_port_chain);
    let stale = of_ports.into_iter().filter(|chain| !known.contains(chain));
    let stale: BTreeSet<_> = stale.collect();
    // Find these before any change of built-in chains.
    let referenced = match stale.is_empty() {
        true => BTreeSet::new(),
        false => targets_of_foreign_rules(&mut chains.table, &others, &stale)?,
    };

    for chain in shared() {
        chains.set_rules(chain.chain(), &rules.whole(chain, ports))?;
    }
    for (chain, rule) in rules.rules_in_shared_chains(&table) {
        chains.make(chain)?;
        if !chains.table.contains(chain, &rule)? {
            chains.table.append(chain, &rule)?;
            chains.changed = true;
        }
    }
    for (chain, rules) in rules.jumps(&table) {
        let changes = chains.table.ensure_first(chain, &rules)?;
        chains.changed |= !changes.is_empty();
    }
    for chain in &referenced {
        // A rule of another program jumps to it.
        if !chains.table.rules(chain)?.is_empty() {
            chains.table.flush(chain)?;
            chains.changed = true;
        }
    }
    chains.remove(stale.difference(&referenced))
}

/// The operations for changed ports.
#[derive(Debug, Default)]
struct Plan {
    /// Chains of ports: their new rules, and how many rules they had if they existed.
    own: Vec<(Chain, Option<usize>)>,
    /// Chains that no port has any more.
    gone: Vec<String>,
    /// Shared chains: their new rules, and how many rules they had.
    shared: Vec<(Shared, Vec<Rule>, usize)>,
}

impl Plan {
    fn of(rules: &Rules<'_>, ports: &Ports, changes: &[PortChange]) -> Self {
        let mut plan = Self::default();
        // Whether they change, and how many more rules there were before.
        let mut shared_chains: BTreeMap<Shared, (bool, isize)> = BTreeMap::new();
        for change in changes {
            let own = |port: &Option<Arc<ServicePort>>| match port {
                Some(port) => rules.own(port),
                None => Vec::new(),
            };
            let shared = |port: &Option<Arc<ServicePort>>| match port {
                Some(port) => rules.shared(port),
                None => Vec::new(),
            };
            let mut before: HashMap<_, _> = own(&change.before).into_iter().collect();
            for (chain, rules) in own(&change.after) {
                match before.remove(&chain) {
                    Some(existing) if existing == rules => {}
                    existing => plan.own.push(((chain, rules), existing.map(|r| r.len()))),
                }
            }
            plan.gone.extend(before.into_keys());
            let (before, after) = (shared(&change.before), shared(&change.after));
            for chain in Shared::ALL {
                let of = |rules: &[(Shared, Rule)]| -> Vec<Rule> {
                    let rules = rules.iter().filter(|(of, _)| *of == chain);
                    rules.map(|(_, rule)| rule.clone()).collect()
                };
                let (before, after) = (of(&before), of(&after));
                let (changes, more) = shared_chains.entry(chain).or_default();
                *changes |= before != after;
                *more += before.len() as isize - after.len() as isize;
            }
        }
        plan.gone.sort_unstable();
        for (chain, (_, more)) in shared_chains.into_iter().filter(|(_, (yes, _))| *yes) {
            let rules = rules.whole(chain, ports);
            let before = rules.len().saturating_add_signed(more);
            plan.shared.push((chain, rules, before));
        }
        plan
    }

    fn concerns(&self, table: &str) -> bool {
        let own = table == "nat" && !(self.own.is_empty() && self.gone.is_empty());
        own || self.shared.iter().any(|(of, ..)| of.table() == table)
    }

    fn execute(&self, chains: &mut Chains<'_>) -> Result<(), iptables::Error> {
        let table = chains.table.name().to_owned();
        let nat = table == "nat";
        for ((chain, _), existing) in self.own.iter().filter(|_| nat) {
            match (existing, chains.table.has_chain(chain)?) {
                (None, false) => chains.make(chain)?,
                (Some(_), true) => {}
                _ => return Err(unexpected_state()),
            }
        }
        for ((chain, rules), existing) in self.own.iter().filter(|_| nat) {
            chains.set_rules_of_length(chain, rules, existing.unwrap_or_default())?;
        }
        let shared = self.shared.iter().filter(|(of, ..)| of.table() == table);
        for (chain, rules, existing) in shared {
            let chain = chain.chain();
            if !chains.table.has_chain(chain)? {
                return Err(unexpected_state());
            }
            chains.set_rules_of_length(chain, rules, *existing)?;
        }
        if nat {
            for chain in &self.gone {
                if !chains.table.has_chain(chain)? {
                    return Err(unexpected_state());
                }
            }
            chains.remove(self.gone.iter())?;
        }
        Ok(())
    }
}

/// The chains of a table that is being changed.
struct Chains<'e> {
    table: TableEdit<'e>,
    /// The existing chains, if they were listed.
    existing: Option<HashSet<BString>>,
    /// Whether anything was changed.
    changed: bool,
}

impl<'e> Chains<'e> {
    const fn new(table: TableEdit<'e>) -> Self {
        Self {
            table,
            existing: None,
            changed: false,
        }
    }

    fn list(&mut self) -> Result<(), iptables::Error> {
        self.existing = Some(self.table.chains()?.into_iter().collect());
        Ok(())
    }

    /// Creates a chain if it does not exist.
    fn make(&mut self, chain: &str) -> Result<(), iptables::Error> {
        let existing = match &self.existing {
            Some(existing) => existing.contains(chain.as_bytes().as_bstr()),
            None => self.table.has_chain(chain)?,
        };
        if !existing {
            self.table.new_chain(chain)?;
            if let Some(existing) = &mut self.existing {
                existing.insert(chain.into());
            }
            self.changed = true;
        }
        Ok(())
    }

    /// Sets the rules of a chain.
    fn set_rules(&mut self, chain: &str, rules: &[Rule]) -> Result<ChainChanges, iptables::Error> {
        let changes = self.table.reconcile_chain(chain, rules)?;
        self.changed |= !changes.is_empty();
        Ok(changes)
    }

    /// Sets the rules of a chain that must have had this many; if it did not, the tables are not as they were left.
    fn set_rules_of_length(
        &mut self,
        chain: &str,
        rules: &[Rule],
        number: usize,
    ) -> Result<(), iptables::Error> {
        let changes = self.set_rules(chain, rules)?;
        match changes.kept + changes.deleted == number {
            true => Ok(()),
            false => Err(unexpected_state()),
        }
    }

    /// Removes chains. Only they may jump to one another.
    fn remove<C: AsRef<[u8]>>(
        &mut self,
        chains: impl Iterator<Item = C> + Clone,
    ) -> Result<(), iptables::Error> {
        for chain in chains.clone() {
            self.table.flush(&chain)?;
            self.changed = true;
        }
        for chain in chains {
            self.table.remove_chain(&chain)?;
        }
        Ok(())
    }
}

/// The error that the tables differ from the state in which the layout left them.
#[derive(thiserror::Error)]
#[error("another process changed a service chain")]
struct UnexpectedState;

chainwright::debug_as_message!(UnexpectedState);

fn unexpected_state() -> iptables::Error {
    iptables::Error::Other(Box::new(UnexpectedState))
}

/// Returns `true` if a change may have failed because the tables are not as they were left.
fn is_unexpected_state(error: &iptables::Error) -> bool {
    use iptables::Error as E;
    match error {
        E::Other(error) => error.is::<UnexpectedState>(),
        E::Commit(_)
        | E::Edit(_)
        | E::NoSuchChain { .. }
        | E::ChainExists { .. }
        | E::NotEmpty { .. }
        | E::PartlyApplied { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
