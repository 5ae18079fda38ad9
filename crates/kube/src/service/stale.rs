//! UDP conntrack entries that a sync made stale.
//!
//! Packets of a tracked connection go where its conntrack entry sends them, whatever the rules are by then. TCP and
//! SCTP connections end on their own when their endpoint is gone; a UDP connection lasts as long as the client sends,
//! without an answer. So a sync deletes entries by kube-proxy's rules:
//!
//! - It deletes only entries of UDP, and of ports with a serving endpoint: without one there is no better destination.
//! - The first packet of the connection was sent to an address and port of a service, or to its node port.
//! - The replies do not come from a serving endpoint of that port: the endpoint is gone, or the replies come from the
//!   address itself, where there was no service before. Policies, hints and termination do not matter: a connection
//!   that works is left alone.
//! - Connections of a removed service are left alone, as those of TCP are.
//!
//! kube-proxy lists the whole conntrack table after a sync. Here each change records the addresses and endpoints that
//! it concerns, and requests only their entries. Node ports count only at the node's own addresses;
//! kube-proxy counts them at any address, and so cuts pods off from servers elsewhere that use the same port.
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

/// Largest number of filters. The kernel scans all entries for each; about three such scans take as long as listing
/// all.
const MAX_FILTERS: usize = 4;
/// Largest number of removed endpoints to list individually; beyond it, all entries without a serving endpoint are
/// sought.
const MAX_REMOVED_ENDPOINTS: usize = 64;

/// UDP conntrack entries of one family that syncs made stale: packets of these connections would go to endpoints that
/// are gone. [`ServiceProxy::take_stale`](super::ServiceProxy::take_stale) returns them, to be deleted where that
/// delays no sync, for instance on another thread.
///
/// TCP and SCTP connections are left alone: they end on their own.
#[derive(Debug, Clone)]
#[must_use = "nothing is deleted until `delete` is called"]
pub struct StaleFlows {
    family: Family,
    config: Arc<Config>,
    ports: HashMap<PortName, Stale>,
}

/// The stale entries of one port.
#[derive(Debug, Clone)]
struct Stale {
    port: Arc<ServicePort>,
    what: StaleKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum StaleKind {
    /// Entries to these endpoints, which are gone.
    To(Vec<SocketAddr>),
    /// Entries to anything but a serving endpoint.
    NotServing,
}

/// The result of [`StaleFlows::delete`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DeletedFlows {
    /// Number of entries that were deleted individually, and of those that no longer existed.
    pub listed: Deleted,
    /// Number of requests in which the kernel deleted all entries that match a filter; it does not report how many
    /// those were.
    pub flushes: usize,
}

impl AddAssign for DeletedFlows {
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

    /// Records all entries without a serving endpoint, if the previous state is unknown.
    pub(super) fn record_all(&mut self, ports: &Ports) {
        let stale = ports.iter().filter(|(_, port)| is_served_udp(port));
        let stale = stale.map(|(name, port)| {
            let stale = Stale {
                port: Arc::clone(port),
                what: StaleKind::NotServing,
            };
            (name.clone(), stale)
        });
        self.ports = stale.collect();
    }

    /// Records the entries that a change makes stale.
    pub(super) fn take(&mut self, change: &PortChange) {
        if change.name.protocol != Protocol::Udp {
            return;
        }
        let Some(port) = change.after.as_ref().filter(|port| is_served_udp(port)) else {
            self.ports.remove(&change.name);
            return;
        };
        let what = StaleKind::of(change.before.as_deref(), port);
        let stale = Stale {
            port: Arc::clone(port),
            what,
        };
        self.put(change.name.clone(), stale);
    }

    /// Adds a newer record for a port.
    fn put(&mut self, name: PortName, mut newer: Stale) {
        if let Some(older) = self.ports.remove(&name) {
            newer.what = older.what.and(newer.what, &newer.port);
        }
        if newer.what != StaleKind::To(Vec::new()) {
            self.ports.insert(name, newer);
        }
    }

    pub(super) fn drain(&mut self) -> Self {
        let fresh = Self::none(self.family, Arc::clone(&self.config));
        std::mem::replace(self, fresh)
    }

    /// Returns the family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Returns `true` if there is nothing to delete.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Adds the entries that a later sync made stale, so that both are deleted at once. Returns `later` if it belongs
    /// to another family.
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

    /// Deletes the entries, through a connection to the calling thread's network namespace. Connections that later
    /// syncs made stale, after these values were taken, are not considered.
    ///
    /// With few ports and endpoints, requests only their entries. Over IPv4, a kernel that supports it deletes them
    /// itself in one request; otherwise it filters by the fields that it can compare, which over
    /// IPv6 are protocol and ports. With many, as after a proxy's start, UDP entries are listed once. Memory use does
    /// not grow with the table.
    ///
    /// # Errors
    /// Those of listing and deleting, and of looking up the node's addresses if there are node ports. Deleted entries
    /// stay deleted; the call can be repeated for the rest.
    #[tracing::instrument(level = "debug", skip_all, fields(family = %self.family, ports = self.ports.len()))]
    pub fn delete(&self, conntrack: &mut Connection) -> Result<DeletedFlows, Error> {
        let mut deleted = DeletedFlows::default();
        if self.is_empty() {
            return Ok(deleted);
        }
        let wrong = StaleFilter::of(self)?;
        for query in self.filters() {
            if query.is_whole && conntrack.flush_matching(&query.filter)? {
                deleted.flushes += 1;
                continue;
            }
            deleted.listed += conntrack.delete_if(&query.filter, |entry| wrong.has(entry))?;
        }
        Ok(deleted)
    }

    /// Returns the filters with which the kernel is queried.
    fn filters(&self) -> Vec<FlowQuery> {
        let udp = Filter::all().protocol(Protocol::Udp.number());
        let udp = match self.family {
            Family::Ipv4 => udp.ipv4(),
            Family::Ipv6 => udp.ipv6(),
        };
        let mut all = Vec::new();
        for stale in self.ports.values() {
            stale.filters(udp, |query| {
                if !all.contains(&query) {
                    all.push(query);
                }
            });
            if all.len() > MAX_FILTERS {
                let (filter, is_whole) = (udp, false);
                return vec![FlowQuery { filter, is_whole }];
            }
        }
        all
    }
}

/// Returns `true` if the port is a UDP port with a serving endpoint.
fn is_served_udp(port: &ServicePort) -> bool {
    port.name.protocol == Protocol::Udp && !port.backends.serving.is_empty()
}

/// Returns the addresses and ports of a service port, except node ports.
fn frontends(port: &ServicePort) -> impl Iterator<Item = SocketAddr> {
    let others = port.external_ips.iter().chain(&port.load_balancer_ips);
    let cluster_ip = port.has_cluster_ip.then_some(&port.cluster_ip);
    let ips = cluster_ip.into_iter().chain(others);
    ips.map(|ip| SocketAddr::new(*ip, port.port))
}

impl StaleKind {
    fn of(before: Option<&ServicePort>, after: &ServicePort) -> Self {
        let has_same_fronts = |before: &&ServicePort| {
            before.node_port == after.node_port && frontends(before).eq(frontends(after))
        };
        match before.filter(|b| is_served_udp(b)).filter(has_same_fronts) {
            None => Self::NotServing,
            Some(before) => {
                let gone = before.backends.serving.iter().copied();
                Self::To(gone.filter(|to| !after.backends.serves(*to)).collect())
            }
        }
    }

    /// Combines this with a later record, given the port's current state.
    fn and(self, later: Self, port: &ServicePort) -> Self {
        let (Self::To(mut gone), Self::To(later)) = (self, later) else {
            return Self::NotServing;
        };
        gone.extend(later);
        gone.retain(|to| !port.backends.serves(*to));
        gone.sort_unstable();
        gone.dedup();
        match gone.len() > MAX_REMOVED_ENDPOINTS {
            true => Self::NotServing,
            false => Self::To(gone),
        }
    }
}

/// A query to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FlowQuery {
    filter: Filter,
    /// Whether every entry that matches the filter is stale.
    is_whole: bool,
}

impl Stale {
    /// Calls `take` with the fewest filters that find all of its entries.
    fn filters(&self, udp: Filter, mut take: impl FnMut(FlowQuery)) {
        let from = |to: SocketAddr| TupleFilter::from(to.ip()).from_port(to.port());
        let to = |frontend: SocketAddr| TupleFilter::to(frontend.ip()).to_port(frontend.port());
        let mut take = |filter, is_whole| take(FlowQuery { filter, is_whole });
        let places = frontends(&self.port).count() + usize::from(self.port.node_port.is_some());
        match (&self.what, frontends(&self.port).next()) {
            (StaleKind::To(gone), Some(frontend)) if places == 1 && gone.len() <= MAX_FILTERS => {
                let udp = udp.original(to(frontend));
                gone.iter()
                    .for_each(|gone| take(udp.reply(from(*gone)), true));
            }
            (StaleKind::To(gone), _) if gone.len() <= places => {
                gone.iter()
                    .for_each(|gone| take(udp.reply(from(*gone)), false));
            }
            _ => {
                frontends(&self.port).for_each(|frontend| take(udp.original(to(frontend)), false));
                if let Some(port) = self.port.node_port {
                    let to_port = TupleFilter::default().to_port(port);
                    take(udp.original(to_port), false);
                }
            }
        }
    }

    /// Returns `true` if a connection with replies from this address is stale.
    fn is_stale_reply(&self, answers: SocketAddr) -> bool {
        match &self.what {
            StaleKind::To(gone) => gone.contains(&answers),
            StaleKind::NotServing => !self.port.backends.serves(answers),
        }
    }
}

/// Decides which entries are stale.
struct StaleFilter<'s> {
    frontends: HashMap<SocketAddr, &'s Stale>,
    node_ports: HashMap<u16, &'s Stale>,
    node_addresses: HashSet<IpAddr>,
}

impl<'s> StaleFilter<'s> {
    fn of(flows: &'s StaleFlows) -> Result<Self, Error> {
        let mut wrong = Self {
            frontends: HashMap::new(),
            node_ports: HashMap::new(),
            node_addresses: HashSet::new(),
        };
        // If several services have one address, the first one counts.
        let mut ports: Vec<_> = flows.ports.iter().collect();
        ports.sort_unstable_by_key(|(name, _)| *name);
        for (_, stale) in ports {
            for frontend in frontends(&stale.port) {
                wrong.frontends.entry(frontend).or_insert(stale);
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
        let frontend = SocketAddr::new(original.destination, port);
        let of_node = || {
            let is_own = self.node_addresses.contains(&original.destination);
            self.node_ports.get(&port).filter(|_| is_own)
        };
        let Some(stale) = self.frontends.get(&frontend).or_else(of_node) else {
            return false;
        };
        let reply = entry.reply();
        let answers = reply.and_then(|r| Some(SocketAddr::new(r.source, r.source_port()?)));
        answers.is_some_and(|answers| stale.is_stale_reply(answers))
    }
}

/// Returns the node's addresses that serve node ports.
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
        let serves_node_ports = match &node_ports {
            NodePortsOf::Networks(networks) => networks.iter().any(|of| of.contains(address)),
            _ => is_of(*address, family),
        };
        serves_node_ports && (config.localhost_node_ports || !address.is_loopback())
    };
    Ok(addresses.filter(is_one).collect())
}

#[cfg(test)]
mod tests;
