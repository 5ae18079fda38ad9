//! What brings services to the kernel.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::config::Config;
use super::layout::flat::{self, Flat};
use super::layout::iptables::Iptables;
use super::layout::nftables::{self, Nftables};
use super::layout::{FamilyLayout, Layout, PortChange, Ports};
use super::model::ObjectName;
use super::names::PortName;
use super::resolve::ServicePort;
use super::store::Services;
use crate::error::Error;
use crate::iptables::{self, Backend, Family};
use crate::nft::Connection;

/// Keeps a node's tables as [`Services`] say: the heart of a kube-proxy replacement.
///
/// The first [`sync`](Self::sync) takes over what is there, of this process or of one before it, by the smallest
/// change; those after it bring what changed, without looking at what is there, and cost as much. In the
/// [flat](Layout::Flat) layout that is some element operations, however many services there are.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let sandbox = chainwright::netns::Sandbox::new()?;
/// # sandbox.run(|| -> Result<(), chainwright::Error> {
/// use chainwright::kube::service::{
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
/// assert_eq!((synced.services, synced.transactions), (1, 1));
/// # Ok(()) })??;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ServiceProxy {
    config: Arc<Config>,
    layout: Layout,
    families: Vec<OfFamily>,
}

/// What is known of one family.
struct OfFamily {
    family: Family,
    layout: Box<dyn FamilyLayout>,
    /// What is desired.
    ports: Ports,
    /// The ports of each service.
    names: HashMap<ObjectName, Vec<PortName>>,
    /// Whether the kernel is as it was left.
    is_known: bool,
}

impl fmt::Debug for OfFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("OfFamily");
        f.field("family", &self.family)
            .field("ports", &self.ports.len())
            .field("is_known", &self.is_known)
            .finish_non_exhaustive()
    }
}

/// What a [sync](ServiceProxy::sync) did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Synced {
    /// How many services had changed.
    pub services: usize,
    /// How many transactions it took. None if nothing of what changed is of interest to this node.
    pub transactions: usize,
    /// Whether what is in the kernel was read and compared whole, as the first time.
    pub whole: bool,
}

impl ServiceProxy {
    /// For this network namespace. Nothing is changed before the first [`sync`](Self::sync).
    ///
    /// # Errors
    /// Those of opening connections.
    pub fn open(layout: Layout, config: Config) -> Result<Self, Error> {
        let config = Arc::new(config);
        let families = config
            .families
            .iter()
            .map(|&family| {
                Ok(OfFamily {
                    family,
                    layout: open(layout, family, &config)?,
                    ports: Ports::new(),
                    names: HashMap::new(),
                    is_known: false,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            config,
            layout,
            families,
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

    /// Brings what changed since the last call to the kernel; the first time, and after an error, everything.
    ///
    /// # Errors
    /// Those of reading and committing. What changed counts as changed still: the next call tries it again, and looks
    /// at everything.
    #[tracing::instrument(level = "debug", skip_all, fields(changed = services.changed().len()))]
    pub fn sync(&mut self, services: &mut Services) -> Result<Synced, Error> {
        let mut synced = Synced::default();
        let changed: Vec<ObjectName> = match self.families.iter().all(|family| family.is_known) {
            true => services.take_changed().collect(),
            false => {
                synced.whole = true;
                let _ = services.take_changed();
                services.names().cloned().collect()
            }
        };
        synced.services = changed.len();
        for family in &mut self.families {
            match family.sync(services, &changed, &self.config, synced.whole) {
                Ok(transactions) => synced.transactions += transactions,
                Err(error) => {
                    family.is_known = false;
                    services.mark_changed(changed);
                    return Err(error);
                }
            }
        }
        Ok(synced)
    }

    /// Has the next [`sync`](Self::sync) read what is in the kernel and mend it: what a proxy does from time to time
    /// where others can change the table.
    pub fn distrust(&mut self) {
        for family in &mut self.families {
            family.is_known = false;
        }
    }

    /// Removes the other layouts from the kernel, in both backends of iptables: what a proxy was before it was this
    /// one, and what kube-proxy left in either of its modes. To be called after a [`sync`](Self::sync): while both
    /// layouts are there either sends a new connection to an endpoint, and at no time none does. Clients that were
    /// kept at an endpoint are drawn for anew. No table is made, and a kubelet's chains stay.
    ///
    /// How many layouts there were, each family counted by itself.
    ///
    /// # Errors
    /// Those of reading and committing; what was removed before stays removed.
    pub fn remove_others(&mut self) -> Result<usize, Error> {
        let mut removed = 0;
        for family in self.config.families.clone() {
            for layout in Layout::ALL {
                if layout != self.layout {
                    removed += usize::from(clean_up(layout, family)?);
                }
            }
        }
        Ok(removed)
    }

    /// Removes everything from the kernel that this layout puts there. Connections that are open stay.
    ///
    /// # Errors
    /// Those of reading and committing.
    pub fn remove(&mut self) -> Result<(), Error> {
        for family in &mut self.families {
            family.is_known = false;
            family.layout.remove()?;
        }
        Ok(())
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

/// Removes a layout, whoever made it; whether there was anything.
fn clean_up(layout: Layout, family: Family) -> Result<bool, Error> {
    match layout {
        Layout::Flat => flat::clean_up(&mut Connection::open()?, family),
        Layout::Nftables => nftables::clean_up(&mut Connection::open()?, family),
        Layout::Iptables(backend) => {
            let there = iptables::tables_in_use(backend, family);
            if backend == Backend::Legacy && there.is_ok_and(|tables| tables.is_empty()) {
                return Ok(false);
            }
            let mut ipt = iptables::Iptables::open(backend)?;
            Ok(super::layout::iptables::clean_up(&mut ipt, family)? > 0)
        }
    }
}

impl OfFamily {
    fn sync(
        &mut self,
        services: &Services,
        changed: &[ObjectName],
        config: &Config,
        whole: bool,
    ) -> Result<usize, Error> {
        if whole {
            self.ports.clear();
            self.names.clear();
            self.ports.reserve(changed.len());
            self.names.reserve(changed.len());
            for service in changed {
                self.resolve(services, service, config, |_| {});
            }
            let transactions = self.layout.adopt(&self.ports)?;
            self.is_known = true;
            return Ok(transactions);
        }
        let mut changes = Vec::new();
        for service in changed {
            self.resolve(services, service, config, |change| changes.push(change));
        }
        match changes.is_empty() {
            true => Ok(0),
            false => self.layout.change(&self.ports, &changes),
        }
    }

    /// Takes in what a service is now, and tells what of it is new.
    fn resolve(
        &mut self,
        services: &Services,
        service: &ObjectName,
        config: &Config,
        mut tell: impl FnMut(PortChange),
    ) {
        let resolved = services.resolve(service, self.family, config);
        let mut before = self.names.remove(service).unwrap_or_default();
        let mut names = Vec::with_capacity(resolved.len());
        for port in resolved {
            // The API takes no service with two ports of one name.
            before.retain(|name| *name != port.name);
            names.push(port.name.clone());
            let port = Arc::new(port);
            let known = self.ports.insert(port.name.clone(), Arc::clone(&port));
            if known.as_ref() != Some(&port) {
                tell(changed(port.name.clone(), known, Some(port)));
            }
        }
        for name in before {
            let known = self.ports.remove(&name);
            tell(changed(name, known, None));
        }
        if !names.is_empty() {
            self.names.insert(service.clone(), names);
        }
    }
}

const fn changed(
    name: PortName,
    before: Option<Arc<ServicePort>>,
    after: Option<Arc<ServicePort>>,
) -> PortChange {
    PortChange {
        name,
        before,
        after,
    }
}
