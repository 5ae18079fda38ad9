//! What brings services to the kernel.

use std::sync::Arc;

use super::config::Config;
use super::conflict::Conflict;
use super::family::{FamilyErrors, OfFamily, SetAside};
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

/// Keeps a node's tables as [`Services`] say: the heart of a kube-proxy replacement.
///
/// The first [`sync`](Self::sync) takes over what is there, of this process or of one before it, by the smallest
/// change; those after it bring what changed, without looking at what is there, and cost as much. In the
/// [flat](Layout::Flat) layout that is some element operations, however many services there are.
///
/// In nf_tables a packet that the kernel deals with during a sync is sent to an endpoint of its service all the same. Where
/// something goes that such a packet can look up, a sync waits some milliseconds for these packets before it is deleted.
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
    families: Vec<OfFamily>,
    commits: OwnCommits,
    /// Whether all services may come to something else, though none changed.
    is_resolved_anew: bool,
    observer: Observer,
}

/// What a [sync](ServiceProxy::sync) did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Synced {
    /// How many services had changed.
    pub services: usize,
    /// How many transactions it took. None if nothing of what changed is of interest to this node.
    pub transactions: usize,
    /// Whether what is in the kernel was read and compared whole, as the first time.
    pub whole: bool,
    /// Services that this sync brought and the kernel refused, while it took the others. They are tried again when they
    /// change, and when all is looked at.
    pub set_aside: Vec<SetAside>,
    /// Addresses and ports that services ask for and other services have, as far as this sync found them; if it was whole,
    /// all of them.
    pub conflicts: Vec<Conflict>,
}

impl ServiceProxy {
    /// For this network namespace. Nothing is changed before the first [`sync`](Self::sync).
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
                let mut family = OfFamily::new(family, layout, &config);
                family.share(&commits);
                Ok(family)
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            config,
            layout,
            families,
            commits,
            is_resolved_anew: false,
            observer: Observer::default(),
        })
    }

    /// The layout.
    #[must_use]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// What it knows of its node and cluster.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Has `observe` told of progress, on the thread that calls [`sync`](Self::sync), after each transaction of a sync that
    /// makes a table: of many services that takes several.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = chainwright_testing::Sandbox::new()?;
    /// # sandbox.run(|| -> Result<(), chainwright_kube::Error> {
    /// # use chainwright_kube::service::{Config, Layout, ServiceProxy};
    /// let mut proxy = ServiceProxy::open(Layout::Flat, Config::new("node1"))?;
    /// proxy.on_progress(|part| println!("{}: {} of {}", part.family, part.done, part.all));
    /// # Ok(()) })??;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_progress(&mut self, observe: impl Fn(Progress) + Send + Sync + 'static) {
        self.observer = Observer::new(observe);
        for family in &mut self.families {
            family.observe(self.observer.clone());
        }
    }

    /// Has the next [`sync`](Self::sync) bring services as they are to be with this configuration. Where the node's name
    /// and zone alone are others, it brings what that changes, as any other change; else it looks at all that is in the
    /// kernel. A family that is served no more is removed from the kernel at once.
    ///
    /// # Errors
    /// Those of opening connections for a family that is new, and of removing one. The configuration stays as it was.
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
                let mut family = OfFamily::new(family, layout, &config);
                family.observe(self.observer.clone());
                family.share(&self.commits);
                families.push(family);
            }
        }
        let is_gone = |family: &OfFamily| !config.families.contains(&family.family);
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
        self.is_resolved_anew = true;
        self.config = config;
        Ok(())
    }

    /// Brings what changed since the last call to the kernel; the first time, and after an error, everything.
    ///
    /// A service that the kernel refuses is set aside alone, and [named](Synced::set_aside). It is found by trying halves
    /// of what changed, then halves of these; when everything is brought the kernel is only asked, and nothing that
    /// serves is disturbed.
    ///
    /// # Errors
    /// Those of reading and committing; also where what is refused is no service by itself, or more of them than is
    /// looked for (one among thousands, or some dozens of a few), and in the legacy tables, of which the kernel cannot be
    /// asked, when everything is brought. An error of one family does not keep the other from being brought; where two are
    /// served, [`Error::Families`] says which of them failed. What changed counts as changed still: the next call tries it
    /// again, and looks at everything in the families that failed.
    #[tracing::instrument(level = "debug", skip_all, fields(changed = services.changed().len()))]
    pub fn sync(&mut self, services: &mut Services) -> Result<Synced, Error> {
        let mut synced = Synced::default();
        let changed: Vec<ObjectName> = if self.is_resolved_anew {
            let changed = services.take_changed();
            let gone = changed.filter(|name| services.service(name).is_none());
            let gone: Vec<_> = gone.collect();
            services.names().cloned().chain(gone).collect()
        } else {
            services.take_changed().collect()
        };
        // A family whose tables are not known is brought whole, and only that one.
        synced.whole = self.families.iter().any(|family| !family.is_known);
        let all: Vec<ObjectName> = match synced.whole {
            true => services.names().cloned().collect(),
            false => Vec::new(),
        };
        synced.services = match synced.whole {
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
                    synced.set_aside.extend(done.set_aside);
                    synced.conflicts.extend(done.conflicts);
                }
                Err(error) => {
                    family.is_known = false;
                    failed.push(family.family, error);
                }
            }
        }
        // A family that failed is brought whole the next time.
        self.is_resolved_anew = false;
        if let Err(error) = failed.into_result(self.families.len()) {
            services.mark_changed(changed);
            return Err(error);
        }
        Ok(synced)
    }

    /// What syncs made wrong of the table of connections since the last call, each family by itself: none if there is
    /// nothing. It takes no time; to delete it takes as long as the kernel needs to look at all entries, and can be done on
    /// another thread. Who never asks leaves connections of UDP to endpoints that are gone; nothing grows.
    ///
    /// ```no_run
    /// # use chainwright_kube::service::{ServiceProxy, Services};
    /// # fn f(proxy: &mut ServiceProxy, services: &mut Services) -> Result<(), chainwright_kube::Error> {
    /// proxy.sync(services)?;
    /// let stale = proxy.take_stale();
    /// std::thread::spawn(move || -> Result<(), chainwright::Error> {
    ///     let mut conntrack = chainwright::conntrack::Connection::open()?;
    ///     for flows in stale {
    ///         let forgotten = flows.delete(&mut conntrack)?;
    ///         println!("{}: {forgotten:?}", flows.family());
    ///     }
    ///     Ok(())
    /// });
    /// # Ok(()) }
    /// ```
    #[must_use = "it is not told again"]
    pub fn take_stale(&mut self) -> Vec<StaleFlows> {
        let there = self.families.iter_mut().filter(|f| !f.stale.is_empty());
        there.map(|family| family.stale.take_out()).collect()
    }

    /// All services that are set aside, each family by itself.
    pub fn set_aside(&self) -> impl Iterator<Item = SetAside> {
        self.families.iter().flat_map(OfFamily::aside)
    }

    /// All addresses and ports that services ask for and other services have, each family by itself. Such a service is
    /// served at its other addresses alone.
    pub fn conflicts(&self) -> impl Iterator<Item = Conflict> {
        self.families.iter().flat_map(OfFamily::conflicts)
    }

    /// Has the next [`sync`](Self::sync) read what is in the kernel and mend it: what a proxy does from time to time
    /// where others can change the table.
    pub fn distrust(&mut self) {
        for family in &mut self.families {
            family.is_known = false;
        }
    }

    /// Whether the last [`sync`](Self::sync) brought this family to the kernel. If not, what the kernel has of the family is
    /// not known, and the next sync brings it whole.
    #[must_use]
    pub fn is_known(&self, family: Family) -> bool {
        let mut families = self.families.iter();
        families.any(|one| one.family == family && one.is_known)
    }

    /// Removes the other layouts from the kernel, in both backends of iptables: what a proxy was before it was this
    /// one, and what kube-proxy left in either of its modes. To be called after a [`sync`](Self::sync): while both
    /// layouts are there either sends a new connection to an endpoint, and at no time none does. Clients that were
    /// kept at an endpoint are drawn for anew. No table is made, and a kubelet's chains stay.
    ///
    /// How many layouts there were, each family counted by itself.
    ///
    /// # Errors
    /// Those of reading and committing. An error of one layout does not keep the others from being removed.
    pub fn remove_others(&mut self) -> Result<usize, Error> {
        self.remove_others_of(&self.config.families)
    }

    /// The same of these families alone: of those that a [`sync`](Self::sync) brought, where it failed in another.
    ///
    /// # Errors
    /// As [`remove_others`](Self::remove_others).
    pub fn remove_others_of(&self, families: &[Family]) -> Result<usize, Error> {
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

    /// Removes another layout. Its commit is one of this proxy's own.
    fn clean_up(&self, layout: Layout, family: Family) -> Result<bool, chainwright::Error> {
        // The layouts of iptables read anew what they change.
        if matches!(self.layout, Layout::Iptables(_)) {
            return layout.clean_up(family);
        }
        let mut nft = Connection::open()?;
        let before = nft.generation()?;
        let was_there = layout.clean_up(family)?;
        let made = nft.generation()?;
        // One of somebody else would have made two of it.
        let is_of_nft = layout != Layout::Iptables(Backend::Legacy);
        if was_there && is_of_nft && made == before.next() {
            self.commits.note(before, made);
        }
        Ok(was_there)
    }

    /// Removes everything from the kernel that this layout puts there. Connections that are open stay.
    ///
    /// # Errors
    /// Those of reading and committing. An error of one family does not keep the other from being removed.
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
    /// Whether a family's tables have anything of this layout, in the calling thread's network namespace. Of kube-proxy's
    /// layouts it says nothing of who made it ([`Detector::service_tables`](crate::detect::Detector::service_tables)
    /// does, of nftables'). No table is made, and no module is loaded.
    ///
    /// # Errors
    /// Those of listing tables, and of reading iptables'.
    pub fn is_there(self, family: Family) -> Result<bool, chainwright::Error> {
        let has_table = |name: &str| match Connection::open_to_look() {
            Ok(mut nft) => Ok(nft.table(family.into(), name)?.is_some()),
            Err(chainwright::netlink::Error::NotLoaded) => Ok(false),
            Err(error) => Err(error.into()),
        };
        match self {
            Self::Flat => has_table(flat::TABLE),
            Self::Nftables => has_table(nftables::TABLE),
            Self::Iptables(backend) => super::layout::iptables::is_there(backend, family),
        }
    }

    /// Removes this layout from a family's tables, in the calling thread's network namespace, whoever made it: a kube-proxy,
    /// too. Says whether there was anything. No table is made, and a kubelet's chains stay.
    ///
    /// # Errors
    /// Those of reading and committing; with `EPERM` if the table belongs to a connection that is still there.
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
    fn to_remove_another_layout_is_an_own_commit() {
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
                assert_eq!(proxy.remove_others().unwrap(), 2);
                let made = nft.generation().unwrap();
                [before.next().next(), made, proxy.commits.latest(before)]
            });
            let [two_later, made, latest] = generations.unwrap();
            assert_eq!((made, latest), (two_later, two_later), "{other:?}");
        }
    }
}
