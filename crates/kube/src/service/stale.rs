//! Entries of UDP in the table of connections that a sync made wrong.
//!
//! Packets of a connection that is known go where its entry says, whatever the rules say by then. Connections of TCP and
//! SCTP end by themselves when their endpoint is gone; one of UDP lasts as long as the client sends, and is never
//! answered. So entries are deleted by kube-proxy's rules:
//!
//! - of UDP alone, and of ports that have an endpoint that serves: without one there is nowhere better to go;
//! - whose first packet went to an address and port of a service, or to its node port,
//! - and whose answers come from no endpoint of that port that serves: one that is gone; or the address itself, where
//!   there was no service yet. Policies, hints and whether an endpoint is about to end do not matter: a connection
//!   that works is left alone;
//! - a service that is gone leaves its connections to themselves, as those of TCP.
//!
//! kube-proxy lists the whole table after a sync. Here a change says which addresses and endpoints it concerns, and the
//! kernel is asked for entries of these. Node ports count at the node's own addresses; at any other, too, in kube-proxy,
//! which cuts pods off from servers elsewhere that have the same port.
//!
//! Source: `pkg/proxy/conntrack/cleanup.go` of Kubernetes 1.36.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::ops::AddAssign;
use std::sync::Arc;

use super::config::{Config, NodePortsOf, is_of};
use super::layout::{PortChange, Ports};
use super::model::Protocol;
use super::names::PortName;
use super::resolve::ServicePort;
use chainwright::Error;
use chainwright::conntrack::{Connection, Deleted, EntryRef, Filter, TupleFilter};
use chainwright::iptables::Family;

/// For each filter the kernel looks at all entries, which it does about three times in the time in which it lists all.
const MOST_FILTERS: usize = 4;
/// Of how many endpoints that are gone each is known; with more it is looked for what goes to no endpoint that is there.
const MOST_GONE: usize = 64;

/// Entries of UDP in the table of connections that syncs made wrong, of one family: packets of these connections would go
/// to endpoints that are gone. [`ServiceProxy::take_stale`](super::ServiceProxy::take_stale) gives them, to be deleted
/// where it delays no sync: another thread, for instance.
///
/// Connections of TCP and SCTP are left alone: they end by themselves.
#[derive(Debug, Clone)]
#[must_use = "nothing is deleted yet"]
pub struct StaleFlows {
    family: Family,
    config: Arc<Config>,
    ports: HashMap<PortName, Stale>,
}

/// Of one port.
#[derive(Debug, Clone)]
struct Stale {
    port: Arc<ServicePort>,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// What goes to these endpoints, which are gone.
    To(Vec<SocketAddr>),
    /// What goes to none that serves.
    Astray,
}

/// What [`StaleFlows::delete`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Forgotten {
    /// How many entries were deleted one by one, and how many were gone by then.
    pub listed: Deleted,
    /// How many times the kernel deleted by itself what a filter admits; it does not say how many entries that were.
    pub flushes: usize,
}

impl AddAssign for Forgotten {
    fn add_assign(&mut self, more: Self) {
        self.listed += more.listed;
        self.flushes += more.flushes;
    }
}

impl StaleFlows {
    pub(super) fn none(family: Family, config: Arc<Config>) -> Self {
        Self {
            family,
            config,
            ports: HashMap::new(),
        }
    }

    pub(super) fn set_config(&mut self, config: Arc<Config>) {
        self.config = config;
    }

    /// Nothing is known of what was: all that goes to no endpoint that is there.
    pub(super) fn take_all(&mut self, ports: &Ports) {
        let stale = ports.iter().filter(|(_, port)| is_concerned(port));
        let stale = stale.map(|(name, port)| {
            let stale = Stale {
                port: Arc::clone(port),
                what: What::Astray,
            };
            (name.clone(), stale)
        });
        self.ports = stale.collect();
    }

    /// What a change makes wrong.
    pub(super) fn take(&mut self, change: &PortChange) {
        if change.name.protocol != Protocol::Udp {
            return;
        }
        let Some(port) = change.after.as_ref().filter(|port| is_concerned(port)) else {
            self.ports.remove(&change.name);
            return;
        };
        let what = What::of(change.before.as_deref(), port);
        let stale = Stale {
            port: Arc::clone(port),
            what,
        };
        self.put(change.name.clone(), stale);
    }

    /// Adds what is newer.
    fn put(&mut self, name: PortName, mut newer: Stale) {
        if let Some(older) = self.ports.remove(&name) {
            newer.what = older.what.and(newer.what, &newer.port);
        }
        if newer.what != What::To(Vec::new()) {
            self.ports.insert(name, newer);
        }
    }

    pub(super) fn take_out(&mut self) -> Self {
        let fresh = Self::none(self.family, Arc::clone(&self.config));
        std::mem::replace(self, fresh)
    }

    /// The family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Whether there is nothing to delete.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Adds what a later sync made wrong, so that both are deleted at once. What is of another family is given back.
    #[must_use]
    pub fn merge(&mut self, later: Self) -> Option<Self> {
        if later.family != self.family {
            return Some(later);
        }
        self.config = later.config;
        for (name, stale) in later.ports {
            self.put(name, stale);
        }
        None
    }

    /// Deletes the entries, through a connection to the network namespace that the calling thread is in. Connections that
    /// are wrong because of syncs after these values were taken are not looked at.
    ///
    /// For few ports and endpoints the kernel is asked for their entries alone: over IPv4, where it can, it deletes them by
    /// itself in one request; else it leaves out what it can compare, which over IPv6 are protocol and ports. For many,
    /// as after a proxy's start, it lists those of UDP once. Memory does not grow with the table.
    ///
    /// # Errors
    /// Those of listing and deleting, and of looking up the node's addresses where there are node ports. What was
    /// deleted stays so; the rest can be tried again.
    #[tracing::instrument(level = "debug", skip_all, fields(family = %self.family, ports = self.ports.len()))]
    pub fn delete(&self, conntrack: &mut Connection) -> Result<Forgotten, Error> {
        let mut forgotten = Forgotten::default();
        if self.is_empty() {
            return Ok(forgotten);
        }
        let wrong = Wrong::of(self)?;
        for asked in self.filters() {
            if asked.is_whole && conntrack.flush_matching(&asked.filter)? {
                forgotten.flushes += 1;
                continue;
            }
            forgotten.listed += conntrack.delete_if(&asked.filter, |entry| wrong.has(entry))?;
        }
        Ok(forgotten)
    }

    /// Which entries the kernel is asked for.
    fn filters(&self) -> Vec<Asked> {
        let udp = Filter::all().protocol(Protocol::Udp.number());
        let udp = match self.family {
            Family::Ipv4 => udp.ipv4(),
            Family::Ipv6 => udp.ipv6(),
        };
        let mut all = Vec::new();
        for stale in self.ports.values() {
            stale.filters(udp, |asked| {
                if !all.contains(&asked) {
                    all.push(asked);
                }
            });
            if all.len() > MOST_FILTERS {
                let (filter, is_whole) = (udp, false);
                return vec![Asked { filter, is_whole }];
            }
        }
        all
    }
}

/// A port of UDP that has somewhere to go.
fn is_concerned(port: &ServicePort) -> bool {
    port.name.protocol == Protocol::Udp && !port.backends.serving.is_empty()
}

/// What packets go to, but for node ports.
fn fronts(port: &ServicePort) -> impl Iterator<Item = SocketAddr> {
    let others = port.external_ips.iter().chain(&port.load_balancer_ips);
    let cluster_ip = port.has_cluster_ip.then_some(&port.cluster_ip);
    let ips = cluster_ip.into_iter().chain(others);
    ips.map(|ip| SocketAddr::new(*ip, port.port))
}

impl What {
    fn of(before: Option<&ServicePort>, after: &ServicePort) -> Self {
        let has_same_fronts = |before: &&ServicePort| {
            before.node_port == after.node_port && fronts(before).eq(fronts(after))
        };
        match before.filter(|b| is_concerned(b)).filter(has_same_fronts) {
            None => Self::Astray,
            Some(before) => {
                let gone = before.backends.serving.iter().copied();
                Self::To(gone.filter(|to| !after.backends.serves(*to)).collect())
            }
        }
    }

    /// This, and what came after it: the port is this one now.
    fn and(self, later: Self, port: &ServicePort) -> Self {
        let (Self::To(mut gone), Self::To(later)) = (self, later) else {
            return Self::Astray;
        };
        gone.extend(later);
        gone.retain(|to| !port.backends.serves(*to));
        gone.sort_unstable();
        gone.dedup();
        match gone.len() > MOST_GONE {
            true => Self::Astray,
            false => Self::To(gone),
        }
    }
}

/// What the kernel is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    filter: Filter,
    /// Whether every entry of it is wrong.
    is_whole: bool,
}

impl Stale {
    /// As few as lead to all of its entries.
    fn filters(&self, udp: Filter, mut take: impl FnMut(Asked)) {
        let from = |to: SocketAddr| TupleFilter::from(to.ip()).from_port(to.port());
        let to = |front: SocketAddr| TupleFilter::to(front.ip()).to_port(front.port());
        let mut take = |filter, is_whole| take(Asked { filter, is_whole });
        let places = fronts(&self.port).count() + usize::from(self.port.node_port.is_some());
        match (&self.what, fronts(&self.port).next()) {
            (What::To(gone), Some(front)) if places == 1 && gone.len() <= MOST_FILTERS => {
                let udp = udp.original(to(front));
                gone.iter()
                    .for_each(|gone| take(udp.reply(from(*gone)), true));
            }
            (What::To(gone), _) if gone.len() <= places => {
                gone.iter()
                    .for_each(|gone| take(udp.reply(from(*gone)), false));
            }
            _ => {
                fronts(&self.port).for_each(|front| take(udp.original(to(front)), false));
                if let Some(port) = self.port.node_port {
                    let to_port = TupleFilter::default().to_port(port);
                    take(udp.original(to_port), false);
                }
            }
        }
    }

    /// Whether a connection whose answers come from here is wrong.
    fn is_wrong(&self, answers: SocketAddr) -> bool {
        match &self.what {
            What::To(gone) => gone.contains(&answers),
            What::Astray => !self.port.backends.serves(answers),
        }
    }
}

/// Which entries are wrong.
struct Wrong<'s> {
    fronts: HashMap<SocketAddr, &'s Stale>,
    node_ports: HashMap<u16, &'s Stale>,
    node_addresses: HashSet<IpAddr>,
}

impl<'s> Wrong<'s> {
    fn of(flows: &'s StaleFlows) -> Result<Self, Error> {
        let mut wrong = Self {
            fronts: HashMap::new(),
            node_ports: HashMap::new(),
            node_addresses: HashSet::new(),
        };
        // Of several services at one address the first has it.
        let mut ports: Vec<_> = flows.ports.iter().collect();
        ports.sort_unstable_by_key(|(name, _)| *name);
        for (_, stale) in ports {
            for front in fronts(&stale.port) {
                wrong.fronts.entry(front).or_insert(stale);
            }
            if let Some(port) = stale.port.node_port {
                wrong.node_ports.entry(port).or_insert(stale);
            }
        }
        if !wrong.node_ports.is_empty() {
            wrong.node_addresses = node_addresses(&flows.config, flows.family)?;
        }
        Ok(wrong)
    }

    fn has(&self, entry: &EntryRef<'_>) -> bool {
        let original = entry.original();
        let Some(port) = original.destination_port() else {
            return false;
        };
        let front = SocketAddr::new(original.destination, port);
        let of_node = || {
            let is_own = self.node_addresses.contains(&original.destination);
            self.node_ports.get(&port).filter(|_| is_own)
        };
        let Some(stale) = self.fronts.get(&front).or_else(of_node) else {
            return false;
        };
        let reply = entry.reply();
        let answers = reply.and_then(|r| Some(SocketAddr::new(r.source, r.source_port()?)));
        answers.is_some_and(|answers| stale.is_wrong(answers))
    }
}

/// Where node ports are.
fn node_addresses(config: &Config, family: Family) -> Result<HashSet<IpAddr>, Error> {
    let node_ports = config.node_port_addresses.of(family);
    if let NodePortsOf::These(addresses) = node_ports {
        return Ok(addresses.into_iter().collect());
    }
    let interfaces =
        nix::ifaddrs::getifaddrs().map_err(|errno| chainwright::netlink::Error::Open {
            protocol: libc::NETLINK_ROUTE,
            source: errno.into(),
        })?;
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|a| IpAddr::from(a.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|a| a.ip().into()))
    });
    let is_one = |address: &IpAddr| {
        let is_there = match &node_ports {
            NodePortsOf::Networks(networks) => networks.iter().any(|of| of.contains(address)),
            _ => is_of(*address, family),
        };
        is_there && (config.localhost_node_ports || !address.is_loopback())
    };
    Ok(addresses.filter(is_one).collect())
}

#[cfg(test)]
mod tests;
