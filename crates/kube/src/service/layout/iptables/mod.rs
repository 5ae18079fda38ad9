//! The layout of kube-proxy's iptables mode (Kubernetes 1.36), in nf_tables or in the legacy tables.
//!
//! | chain | in | what |
//! |---|---|---|
//! | `KUBE-SERVICES`, `KUBE-NODEPORTS` | nat | addresses and ports → the chain of a service's port |
//! | `KUBE-SVC-…`, `KUBE-SVL-…` | nat | any endpoint, any on this node; first the one that the client is known to have |
//! | `KUBE-EXT-…`, `KUBE-FW-…` | nat | from outside, from who may use the load balancer |
//! | `KUBE-SEP-…` | nat | one endpoint |
//! | `KUBE-MARK-MASQ`, `KUBE-POSTROUTING` | nat | masquerading |
//! | `KUBE-SERVICES`, `KUBE-EXTERNAL-SERVICES`, `KUBE-PROXY-FIREWALL` | filter | what is refused |
//! | `KUBE-NODEPORTS`, `KUBE-FORWARD` | filter | what is let through |
//! | `KUBE-PROXY-CANARY` | mangle, filter, nat | nothing: who looks for it sees a flush |
//!
//! # Costs
//! A change reads and writes the chains of the ports that changed. Where addresses, ports or whether there are
//! endpoints changed, it reads the chains that all ports share, too, and makes what they are to hold: as much as there
//! are services. A legacy table is read and replaced whole, whatever changed. To adopt is to read all chains.
//!
//! In nf_tables a change is one transaction. The legacy tables are replaced one after the other, filter before nat as
//! kube-proxy does it.
//!
//! # What differs from kube-proxy on purpose
//! - Rules of several ports stand in the order of the ports' names, and source ranges in that of their addresses:
//!   kube-proxy's order of ports is another at each start. A rule that is there stays, with its counters.
//! - What is not there is made before what jumps to it, and what is stale goes last, in one transaction over filter
//!   and nat. kube-proxy makes two, and adds its jumps one by one.
//! - Jumps from built-in chains come to stand first each time that the layout adopts; kube-proxy leaves them where
//!   they are.
//! - The matches `nfacct` are written where [`Config::nfacct`] says so; kube-proxy asks the kernel whether it has them
//!   and makes the counters.
//! - That packets of no connection are dropped depends on [`Config::tcp_be_liberal`]; kube-proxy reads the setting.
//! - `route_localnet`, which node ports at loopback addresses need, is set when the layout adopts, in the network
//!   namespace of the calling thread. Where it cannot be written, that is logged; kube-proxy ends.
//! - Above 1000 endpoints, rules of endpoints have no comments, as there; but which way it is only changes when the
//!   layout adopts, and endpoints to which nothing goes do not count.
//! - `KUBE-FIREWALL` is a kubelet's: a rule of it that is missing is added, and others stay. kube-proxy flushes it.
//! - `--random-fully` is always written, as kube-proxy does where iptables is 1.6.2 or later.

mod cleanup;
mod frame;
mod rules;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use self::cleanup::{TABLES, is_of_a_port, led_to};
pub(in crate::service) use self::cleanup::{clean_up, is_there};
use self::rules::{Chain, Rules, Shared, sorted};
use super::{Common, FamilyLayout, PortChange, Ports};
use crate::service::config::Config;
use crate::service::resolve::ServicePort;
use chainwright::Error;
use chainwright::iptables::{self, Backend, ChainChanges, Family, Rule, TableEdit};

/// With more endpoints their rules have no comments, which are most of what they take.
const LARGE: usize = 1000;

/// One family of the layout.
#[derive(Debug)]
pub(in crate::service) struct Iptables {
    ipt: iptables::Iptables,
    family: Family,
    /// Nobody is told of progress: it takes one transaction.
    common: Common,
    /// Whether rules of endpoints say whose they are.
    comments: bool,
    only_checks: bool,
}

impl Iptables {
    /// In the tables that the handle is for.
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
            only_checks: false,
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
                plan.carry_out(&mut chains)?;
                changed += usize::from(chains.changed);
            }
            Ok(changed)
        })?;
        Ok(transactions(&self.ipt, changed))
    }
}

impl FamilyLayout for Iptables {
    #[tracing::instrument(level = "debug", skip_all, fields(ports = ports.len()))]
    fn adopt(&mut self, ports: &Ports) -> Result<usize, Error> {
        let endpoints = ports.values().map(|port| port.reachable().len());
        self.comments = endpoints.sum::<usize>() <= LARGE;
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
                adopt_table(&rules, ports, &mut chains)?;
                changed += usize::from(chains.changed);
            }
            Ok(changed)
        })?;
        if rules.serves_at_loopback() && !self.only_checks {
            // Behind the rules that keep others from the loopback addresses.
            route_localnet();
        }
        Ok(transactions(&self.ipt, changed))
    }

    #[tracing::instrument(level = "debug", skip_all, fields(changes = changes.len()))]
    fn change(&mut self, ports: &Ports, changes: &[PortChange]) -> Result<usize, Error> {
        match self.change_only(ports, changes) {
            Err(error) if is_astray(&error) => {
                tracing::debug!(%error, "the tables are not as they were left");
                self.adopt(ports)
            }
            result => Ok(result?),
        }
    }

    fn common(&mut self) -> &mut Common {
        &mut self.common
    }

    fn only_check(&mut self, yes: bool) -> bool {
        self.only_checks = yes;
        self.ipt.only_check(yes)
    }

    fn remove(&mut self) -> Result<(), Error> {
        clean_up(&mut self.ipt, self.family).map(drop)
    }
}

/// Has the kernel take packets of this node from and to loopback addresses over other interfaces, which node ports at
/// loopback addresses need: in the calling thread's network namespace, as long as that is there.
fn route_localnet() {
    const SETTING: &str = "/proc/sys/net/ipv4/conf/all/route_localnet";
    let written = match fs::read_to_string(SETTING) {
        Ok(value) if value.trim() == "1" => return,
        Ok(_) => fs::write(SETTING, "1"),
        Err(error) => Err(error),
    };
    match written {
        Ok(()) => tracing::info!("{SETTING} is 1, for node ports at loopback addresses"),
        Err(error) => tracing::warn!(
            %error,
            "{SETTING} cannot be set to 1: node ports at loopback addresses do not work"
        ),
    }
}

/// How many transactions it took to change so many tables.
const fn transactions(ipt: &iptables::Iptables, tables: usize) -> usize {
    match (ipt.backend(), tables) {
        (_, 0) => 0,
        (Backend::Nft, _) => 1,
        (Backend::Legacy, tables) => tables,
    }
}

/// Makes a table hold what it is to hold of the layout, whatever is there.
fn adopt_table(
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
        chains.hold(chain, rules)?;
    }

    // A port's chains jump to one another, and to those that are there by now.
    let mut known = HashSet::new();
    for port in sorted(ports).into_iter().filter(|_| table == "nat") {
        let own = rules.own(port);
        for (chain, _) in &own {
            chains.make(chain)?;
        }
        for (chain, rules) in own {
            chains.hold(&chain, &rules)?;
            known.insert(BString::from(chain));
        }
    }
    let there = chains.there.clone().unwrap_or_default();
    let (of_ports, others): (Vec<_>, Vec<_>) = there.into_iter().partition(is_of_a_port);
    let stale = of_ports.into_iter().filter(|chain| !known.contains(chain));
    let stale: BTreeSet<_> = stale.collect();
    // Looked for before anything is done to built-in chains.
    let held = match stale.is_empty() {
        true => BTreeSet::new(),
        false => led_to(&mut chains.table, &others, &stale)?,
    };

    for chain in shared() {
        chains.hold(chain.chain(), &rules.whole(chain, ports))?;
    }
    for (chain, rule) in rules.beside(&table) {
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
    for chain in &held {
        // Somebody else's rule leads to it.
        if !chains.table.rules(chain)?.is_empty() {
            chains.table.flush(chain)?;
            chains.changed = true;
        }
    }
    chains.remove(stale.difference(&held))
}

/// What is to be done about ports that changed.
#[derive(Debug, Default)]
struct Plan {
    /// Chains of ports: what they are to hold, and how many rules they had if they were there.
    own: Vec<(Chain, Option<usize>)>,
    /// Chains that no port has any more.
    gone: Vec<String>,
    /// Chains that ports share: what they are to hold, and how many rules they had.
    shared: Vec<(Shared, Vec<Rule>, usize)>,
}

impl Plan {
    fn of(rules: &Rules<'_>, ports: &Ports, changes: &[PortChange]) -> Self {
        let mut plan = Self::default();
        // Whether they change, and how many rules more there were than there are to be.
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
                    Some(there) if there == rules => {}
                    there => plan.own.push(((chain, rules), there.map(|r| r.len()))),
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

    fn carry_out(&self, chains: &mut Chains<'_>) -> Result<(), iptables::Error> {
        let table = chains.table.name().to_owned();
        let nat = table == "nat";
        for ((chain, _), there) in self.own.iter().filter(|_| nat) {
            match (there, chains.table.has_chain(chain)?) {
                (None, false) => chains.make(chain)?,
                (Some(_), true) => {}
                _ => return Err(astray()),
            }
        }
        for ((chain, rules), there) in self.own.iter().filter(|_| nat) {
            chains.hold_what_had(chain, rules, there.unwrap_or_default())?;
        }
        let shared = self.shared.iter().filter(|(of, ..)| of.table() == table);
        for (chain, rules, there) in shared {
            let chain = chain.chain();
            if !chains.table.has_chain(chain)? {
                return Err(astray());
            }
            chains.hold_what_had(chain, rules, *there)?;
        }
        if nat {
            for chain in &self.gone {
                if !chains.table.has_chain(chain)? {
                    return Err(astray());
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
    /// Those that are there, if they were listed.
    there: Option<HashSet<BString>>,
    /// Whether anything was changed.
    changed: bool,
}

impl<'e> Chains<'e> {
    const fn new(table: TableEdit<'e>) -> Self {
        Self {
            table,
            there: None,
            changed: false,
        }
    }

    fn list(&mut self) -> Result<(), iptables::Error> {
        self.there = Some(self.table.chains()?.into_iter().collect());
        Ok(())
    }

    /// Makes a chain if it is not there.
    fn make(&mut self, chain: &str) -> Result<(), iptables::Error> {
        let there = match &self.there {
            Some(there) => there.contains(chain.as_bytes().as_bstr()),
            None => self.table.has_chain(chain)?,
        };
        if !there {
            self.table.new_chain(chain)?;
            if let Some(there) = &mut self.there {
                there.insert(chain.into());
            }
            self.changed = true;
        }
        Ok(())
    }

    /// Has a chain hold these rules.
    fn hold(&mut self, chain: &str, rules: &[Rule]) -> Result<ChainChanges, iptables::Error> {
        let changes = self.table.reconcile_chain(chain, rules)?;
        self.changed |= !changes.is_empty();
        Ok(changes)
    }

    /// The same of a chain that had so many rules; if it did not, nothing is as it was left.
    fn hold_what_had(
        &mut self,
        chain: &str,
        rules: &[Rule],
        number: usize,
    ) -> Result<(), iptables::Error> {
        let changes = self.hold(chain, rules)?;
        match changes.kept + changes.deleted == number {
            true => Ok(()),
            false => Err(astray()),
        }
    }

    /// Removes chains. They may lead to one another; nothing else does.
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

/// The tables are not as they were left.
#[derive(Debug, thiserror::Error)]
#[error("a chain of services is not as it was left")]
struct Astray;

fn astray() -> iptables::Error {
    iptables::Error::Other(Box::new(Astray))
}

/// Whether a change may have failed because the tables are not as they were left.
fn is_astray(error: &iptables::Error) -> bool {
    use iptables::Error as E;
    match error {
        E::Other(error) => error.is::<Astray>(),
        E::Commit(_)
        | E::Draft(_)
        | E::NoSuchChain { .. }
        | E::ChainExists { .. }
        | E::NotEmpty { .. }
        | E::Partly { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
