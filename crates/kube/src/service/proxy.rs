//! Writes services to the kernel.

use std::sync::Arc;

use super::config::Config;
use super::conflict::Conflict;
use super::family::{FamilyErrors, FamilyProxy, SkippedService};
use super::layout::flat::{self, Flat};
use super::layout::iptables::Iptables;
use super::layout::nftables::{self, Nftables};
use super::layout::{FamilyLayout, Layout, Observer, OwnCommits, Progress};
use super::model::ObjectName;
use super::stale::StaleFlows;
use super::store::Services;
use crate::Error;
use chainwright::iptables::{self, Backend, Family};
use chainwright::nft::Connection;

/// Keeps a node's tables in line with [`Services`]: the core of a kube-proxy replacement.
///
/// The first [`sync`](Self::sync) takes over the existing tables, of this process or an earlier one, with the smallest
/// change. Later ones write only what changed, without reading the tables, and cost as much as the change. In the
/// [flat](Layout::Flat) layout that is some element operations, however many services there are.
///
/// In nf_tables a packet that the kernel processes during a sync still reaches an endpoint of its service. Before a
/// sync deletes something that such a packet can look up, it waits some milliseconds for these packets.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright_testing::Sandbox::new()?;
/// # sandbox.run(|| -> Result<(), chainwright_kube::Error> {
/// use chainwright_kube::service::{
///     Config, Endpoint, EndpointPort, EndpointSlice, Layout, ObjectName, Port, Protocol, Service, ServiceProxy,
///     Services,
/// };
///
/// let mut services = Services::new();
/// let web = Service::new(ObjectName::new("default", "web"), [[10, 96, 0, 1].into()]);
/// services.set_service(web.with_port(Port::new("http", Protocol::Tcp, 80)));
///
/// let mut proxy = ServiceProxy::open(Layout::Flat, Config::new("node1"))?;
/// proxy.sync(&mut services)?; // no endpoints yet: connections are rejected
///
/// services.set_slice(EndpointSlice {
///     name: ObjectName::new("default", "web-x7k2p"),
///     service: "web".into(),
///     endpoints: vec![Endpoint::new([10, 244, 1, 5].into())],
///     ports: vec![EndpointPort { name: "http".into(), protocol: Protocol::Tcp, port: Some(8080) }],
/// });
/// let synced = proxy.sync(&mut services)?; // and now they arrive
/// assert_eq!(synced.services, 1);
/// # Ok(()) })??;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ServiceProxy {
    config: Arc<Config>,
    layout: Layout,
    families: Vec<FamilyProxy>,
    commits: OwnCommits,
    /// Whether all services must be resolved again although none changed.
    must_resolve_all: bool,
    observer: Observer,
}

/// The result of a [sync](ServiceProxy::sync).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Synced {
    /// Number of services that had changed.
    pub services: usize,
    /// Number of transactions. 0 if no change affects this node.
    pub transactions: usize,
    /// Whether the sync read and compared the kernel's tables completely, as the first one does.
    pub is_full: bool,
    /// Services in this sync that the kernel refused while it accepted the others. They are retried when they change,
    /// and at the next complete sync.
    pub skipped: Vec<SkippedService>,
    /// Addresses and ports that services request and other services have, as far as this sync found them; all of them
    /// if the sync was complete.
    pub conflicts: Vec<Conflict>,
}

impl ServiceProxy {
    /// Opens a proxy for this network namespace. The first [`sync`](Self::sync) makes the first change.
    ///
    /// # Errors
    /// Those of opening connections.
    pub fn open(layout: Layout, config: Config) -> Result<Self, Error> {
        let config = Arc::new(config);
        let commits = OwnCommits::default();
        let families = config
            .families
            .iter()
            .map(|&family| {
                let layout = open(layout, family, &config)?;
                let mut family = FamilyProxy::new(family, layout, &config);
                family.share(&commits);
                Ok(family)
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            config,
            layout,
            families,
            commits,
            must_resolve_all: false,
            observer: Observer::default(),
        })
    }

    /// Returns the layout.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sets a callback for progress. It runs on the thread that calls [`sync`](Self::sync), after each transaction of a
    /// sync that creates a table: with many services that takes several.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), chainwright_kube::Error> {
    /// # use chainwright_kube::service::{Config, Layout, ServiceProxy};
    /// let mut proxy = ServiceProxy::open(Layout::Flat, Config::new("node1"))?;
    /// proxy.set_progress_callback(|part| println!("{}: {} of {}", part.family, part.completed, part.total));
    /// # Ok(()) })??;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_progress_callback(&mut self, observe: impl Fn(Progress) + Send + Sync + 'static) {
        self.observer = Observer::new(observe);
        for family in &mut self.families {
            family.observe(self.observer.clone());
        }
    }

    /// Makes the next [`sync`](Self::sync) apply this configuration. If only the node's name and zone differ, it writes
    /// the changes that result, like any other change; otherwise it compares everything in the kernel. A family that is
    /// no longer served is removed from the kernel at once.
    ///
    /// # Errors
    /// Those of opening connections for a new family, and of removing one. On error the configuration stays unchanged.
    pub fn set_config(&mut self, config: Config) -> Result<(), Error> {
        if config == *self.config {
            return Ok(());
        }
        let is_elsewhere = Config {
            node: Arc::clone(&config.node),
            zone: config.zone.clone(),
            ..(*self.config).clone()
        };
        let is_only_elsewhere = is_elsewhere == config;
        let config = Arc::new(config);
        let mut families = Vec::new();
        for &family in &config.families {
            if !self.families.iter().any(|known| known.family == family) {
                let layout = open(self.layout, family, &config)?;
                let mut family = FamilyProxy::new(family, layout, &config);
                family.observe(self.observer.clone());
                family.share(&self.commits);
                families.push(family);
            }
        }
        let is_gone = |family: &FamilyProxy| !config.families.contains(&family.family);
        for family in self.families.iter_mut().filter(|family| is_gone(family)) {
            family.is_known = false;
            family.layout.remove()?;
        }
        self.families.retain(|family| !is_gone(family));
        for family in &mut self.families {
            family.set_config(&config);
            family.is_known &= is_only_elsewhere;
        }
        self.families.append(&mut families);
        self.must_resolve_all = true;
        self.config = config;
        Ok(())
    }

    /// Writes everything that changed since the last call to the kernel; the first time, and after an error,
    /// everything.
    ///
    /// A service that the kernel refuses is skipped individually, and [listed](Synced::skipped). It is found by
    /// bisecting the changes; during a full sync, the search only lets the kernel check transactions, so that serving
    /// is not disturbed.
    ///
    /// # Errors
    /// Those of reading and committing. Also if the kernel refuses the changes but no single service; if it refuses
    /// more services than the search finds (one among thousands, or some dozens of a few); and, when everything is
    /// written to the legacy tables, on any refusal, because the kernel cannot check those without a change. An error
    /// of one family does not stop the sync of the other; if two are served, [`Error::Families`] names the failed ones.
    /// The changes stay recorded: the next call retries them, and compares everything in the families that failed.
    #[tracing::instrument(level = "debug", skip_all, fields(changed = services.changed().len()))]
    pub fn sync(&mut self, services: &mut Services) -> Result<Synced, Error> {
        let mut synced = Synced::default();
        let changed: Vec<ObjectName> = if self.must_resolve_all {
            let changed = services.take_changed();
            let gone = changed.filter(|name| services.service(name).is_none());
            let gone: Vec<_> = gone.collect();
            services.names().cloned().chain(gone).collect()
        } else {
            services.take_changed().collect()
        };
        // Only families whose tables are in an unknown state are written completely.
        synced.is_full = self.families.iter().any(|family| !family.is_known);
        let all: Vec<ObjectName> = match synced.is_full {
            true => services.names().cloned().collect(),
            false => Vec::new(),
        };
        synced.services = match synced.is_full {
            true => all.len(),
            false => changed.len(),
        };
        let mut failed = FamilyErrors::default();
        for family in &mut self.families {
            let (names, whole) = match family.is_known {
                true => (&changed, false),
                false => (&all, true),
            };
            match family.sync(services, names, &self.config, whole) {
                Ok(done) => {
                    synced.transactions += done.transactions;
                    synced.skipped.extend(done.skipped);
                    synced.conflicts.extend(done.conflicts);
                }
                Err(error) => {
                    family.is_known = false;
                    failed.push(family.family, error);
                }
            }
        }
        // A family that failed is written completely the next time.
        self.must_resolve_all = false;
        if let Err(error) = failed.into_result(self.families.len()) {
            services.mark_changed(changed);
            return Err(error);
        }
        Ok(synced)
    }

    /// Returns the conntrack entries that syncs made stale since the last call, separately for each family; empty if
    /// there are none. This call is fast; deleting the entries takes as long as the kernel needs to scan the conntrack
    /// table, and can be done on another thread. Without calls UDP connections to removed endpoints remain; memory does
    /// not grow.
    ///
    /// ```no_run
    /// # use chainwright_kube::service::{ServiceProxy, Services};
    /// # fn f(proxy: &mut ServiceProxy, services: &mut Services) -> Result<(), chainwright_kube::Error> {
    /// proxy.sync(services)?;
    /// let stale = proxy.take_stale();
    /// std::thread::spawn(move || -> Result<(), chainwright::Error> {
    ///     let mut conntrack = chainwright::conntrack::Connection::open()?;
    ///     for flows in stale {
    ///         let deleted = flows.delete(&mut conntrack)?;
    ///         println!("{}: {deleted:?}", flows.family());
    ///     }
    ///     Ok(())
    /// });
    /// # Ok(()) }
    /// ```
    #[must_use = "the flows are returned only once"]
    pub fn take_stale(&mut self) -> Vec<StaleFlows> {
        let there = self.families.iter_mut().filter(|f| !f.stale.is_empty());
        there.map(|family| family.stale.drain()).collect()
    }

    /// Lists all skipped services, separately for each family.
    pub fn skipped(&self) -> impl Iterator<Item = SkippedService> {
        self.families.iter().flat_map(FamilyProxy::skipped_services)
    }

    /// Lists all addresses and ports that services request and other services have, separately for each family. Such a
    /// service is served only at its other addresses.
    pub fn conflicts(&self) -> impl Iterator<Item = Conflict> {
        self.families.iter().flat_map(FamilyProxy::conflicts)
    }

    /// Makes the next [`sync`](Self::sync) read the kernel's tables and repair them: proxies call this periodically
    /// where other programs can change the tables.
    pub fn require_full_sync(&mut self) {
        for family in &mut self.families {
            family.is_known = false;
        }
    }

    /// Returns `true` if the last [`sync`](Self::sync) of this family succeeded. If not, the state of the family's
    /// tables is unknown, and the next sync writes it completely.
    #[must_use]
    pub fn is_synced(&self, family: Family) -> bool {
        let mut families = self.families.iter();
        families.any(|one| one.family == family && one.is_known)
    }

    /// Removes the other layouts from the kernel, in both backends of iptables: those that this proxy used before, and
    /// the rules that kube-proxy left in either of its modes. Call it after a [`sync`](Self::sync): while two layouts
    /// exist, either of them sends new connections to an endpoint, and at every moment at least one does. Clients with
    /// session affinity get a newly chosen endpoint. No table is created, and a kubelet's chains stay.
    ///
    /// Returns the number of layouts removed, counting each family separately.
    ///
    /// # Errors
    /// Those of reading and committing. An error of one layout does not stop the removal of the others.
    pub fn remove_other_layouts(&mut self) -> Result<usize, Error> {
        self.remove_other_layouts_in(&self.config.families)
    }

    /// Like [`remove_other_layouts`](Self::remove_other_layouts), for these families only: for those that a [`sync`](Self::sync)
    /// wrote when it failed in another one.
    ///
    /// # Errors
    /// As [`remove_other_layouts`](Self::remove_other_layouts).
    pub fn remove_other_layouts_in(&self, families: &[Family]) -> Result<usize, Error> {
        let mut removed = 0;
        let mut failed = FamilyErrors::default();
        for &family in families {
            for layout in Layout::ALL {
                if layout != self.layout {
                    match self.clean_up(layout, family) {
                        Ok(was_there) => removed += usize::from(was_there),
                        Err(error) => failed.push(family, error),
                    }
                }
            }
        }
        failed.into_result(families.len())?;
        Ok(removed)
    }

    /// Removes another layout. Its commit counts as one of this proxy's own.
    fn clean_up(&self, layout: Layout, family: Family) -> Result<bool, chainwright::Error> {
        // The iptables layouts read again what they change.
        if matches!(self.layout, Layout::Iptables(_)) {
            return layout.clean_up(family);
        }
        let mut nft = Connection::open()?;
        let before = nft.generation()?;
        let was_there = layout.clean_up(family)?;
        let made = nft.generation()?;
        // With a commit of another program in between, the generation would have moved by two.
        let is_of_nft = layout != Layout::Iptables(Backend::Legacy);
        if was_there && is_of_nft && made == before.next() {
            self.commits.note(before, made);
        }
        Ok(was_there)
    }

    /// Removes everything that this layout created in the kernel. Open connections stay.
    ///
    /// # Errors
    /// Those of reading and committing. An error of one family does not stop the removal of the other.
    pub fn remove(&mut self) -> Result<(), Error> {
        let mut failed = FamilyErrors::default();
        for family in &mut self.families {
            family.is_known = false;
            if let Err(error) = family.layout.remove() {
                failed.push(family.family, error);
            }
        }
        failed.into_result(self.families.len())
    }
}

fn open(
    layout: Layout,
    family: Family,
    config: &Arc<Config>,
) -> Result<Box<dyn FamilyLayout>, Error> {
    let config = Arc::clone(config);
    Ok(match layout {
        Layout::Flat => Box::new(Flat::new(Connection::open()?, family, config)),
        Layout::Nftables => Box::new(Nftables::new(Connection::open()?, family, config)),
        Layout::Iptables(backend) => Box::new(Iptables::new(
            iptables::Iptables::open(backend)?,
            family,
            config,
        )),
    })
}

impl Layout {
    /// Returns whether a family's tables contain anything of this layout, in the calling thread's network namespace.
    /// For kube-proxy's layouts this does not show which program created it
    /// ([`Detector::service_tables`](crate::detect::Detector::service_tables) does, for nftables). Creates no table and
    /// loads no module.
    ///
    /// # Errors
    /// Those of listing tables, and of reading iptables' tables.
    pub fn is_installed(self, family: Family) -> Result<bool, chainwright::Error> {
        let has_table = |name: &str| match Connection::open_if_loaded() {
            Ok(mut nft) => Ok(nft.table(family.into(), name)?.is_some()),
            Err(chainwright::netlink::Error::NotLoaded) => Ok(false),
            Err(error) => Err(error.into()),
        };
        match self {
            Self::Flat => has_table(flat::TABLE),
            Self::Nftables => has_table(nftables::TABLE),
            Self::Iptables(backend) => super::layout::iptables::is_installed(backend, family),
        }
    }

    /// Removes this layout from a family's tables, in the calling thread's network namespace, whichever program created
    /// it, including kube-proxy. Returns whether there was anything. Creates no table and keeps a kubelet's chains.
    ///
    /// # Errors
    /// Those of reading and committing; with `EPERM` if the table belongs to a connection that still exists.
    pub fn clean_up(self, family: Family) -> Result<bool, chainwright::Error> {
        match self {
            Self::Flat => flat::clean_up(&mut Connection::open()?, family),
            Self::Nftables => nftables::clean_up(&mut Connection::open()?, family),
            Self::Iptables(backend) => {
                let there = iptables::tables_in_use(backend, family);
                if backend == Backend::Legacy && there.is_ok_and(|tables| tables.is_empty()) {
                    return Ok(false);
                }
                let mut ipt = iptables::Iptables::open(backend)?;
                Ok(super::layout::iptables::clean_up(&mut ipt, family)? > 0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainwright_testing::Sandbox;

    #[test]
    fn other_layouts_are_removed_in_a_separate_commit() {
        let serve = |layout| {
            let mut config = Config::new("node1");
            config.own = false;
            let mut proxy = ServiceProxy::open(layout, config).unwrap();
            proxy.sync(&mut Services::new()).unwrap();
            proxy
        };
        let pairs = [
            (Layout::Nftables, Layout::Flat),
            (Layout::Flat, Layout::Nftables),
            (Layout::Iptables(Backend::Nft), Layout::Flat),
        ];
        for (other, layout) in pairs {
            let node = Sandbox::new().unwrap();
            let generations = node.run(|| {
                serve(other);
                let mut proxy = serve(layout);
                let mut nft = Connection::open().unwrap();
                let before = nft.generation().unwrap();
                assert_eq!(proxy.remove_other_layouts().unwrap(), 2);
                let made = nft.generation().unwrap();
                [before.next().next(), made, proxy.commits.latest(before)]
            });
            let [two_later, made, latest] = generations.unwrap();
            assert_eq!((made, latest), (two_later, two_later), "{other:?}");
        }
    }
}
