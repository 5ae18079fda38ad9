//! Conflicts between services that request the same address and port.
//!
//! One of the services that request the same address, protocol and port gets it: a cluster IP takes precedence over a
//! load balancer's address, and that over an external IP, so that no service can take another's cluster IP by
//! requesting it. Within one kind the service that was created first gets it, then the first by name. All layouts serve
//! the others without the address and port until it is free.

use std::cmp::Ordering;
use std::fmt;
use std::net::IpAddr;
use std::time::SystemTime;

use super::map::Map;
use super::model::Protocol;
use super::names::PortName;
use super::resolve::ServicePort;
use chainwright::iptables::Family;

/// The field that an address comes from. If several services request an address, the first kind in this order gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AddressKind {
    /// `spec.clusterIPs`.
    ClusterIp,
    /// `status.loadBalancer.ingress`.
    LoadBalancer,
    /// `spec.externalIPs`.
    ExternalIp,
    /// `spec.ports[].nodePort`.
    NodePort,
}

/// An address and port that one service requests and another one has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conflict {
    /// The service port that does not get it.
    pub port: PortName,
    /// The family.
    pub family: Family,
    /// The kind of the address in that service.
    pub kind: AddressKind,
    /// The address; `None` for a node port.
    pub address: Option<IpAddr>,
    /// The port number.
    pub number: u16,
    /// The service port that has it.
    pub current_owner: PortName,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            AddressKind::ClusterIp => "cluster IP",
            AddressKind::LoadBalancer => "load balancer IP",
            AddressKind::ExternalIp => "external IP",
            AddressKind::NodePort => "node port",
        };
        write!(f, "{}: {kind} ", self.port)?;
        if let Some(address) = self.address {
            write!(f, "{address} port ")?;
        }
        let protocol = self.port.protocol;
        write!(
            f,
            "{}/{protocol} belongs to {}",
            self.number, self.current_owner
        )
    }
}

/// An address, protocol and port at which a service port can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ServiceFrontend {
    /// `None` for the node's addresses.
    address: Option<IpAddr>,
    protocol: Protocol,
    port: u16,
}

/// A service port that requests a frontend.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    kind: AddressKind,
    created: Option<SystemTime>,
    name: PortName,
}

impl Owner {
    /// Compares two owners: the first one in this order gets the frontend. A service of unknown age comes last.
    fn order(&self, other: &Self) -> Ordering {
        let age = |owner: &Self| (owner.created.is_none(), owner.created);
        (self.kind.cmp(&other.kind))
            .then_with(|| age(self).cmp(&age(other)))
            .then_with(|| self.name.cmp(&other.name))
    }
}

/// The owners of a frontend, nearly always one.
#[derive(Debug)]
enum Owners {
    One(Owner),
    /// More than one, in order of precedence.
    Several(Vec<Owner>),
}

/// The frontends that service ports request.
#[derive(Debug, Default)]
pub(super) struct FrontendOwners {
    owners: Map<ServiceFrontend, Owners>,
    /// The frontends that a port requests and does not get.
    lost: Map<PortName, Vec<(ServiceFrontend, AddressKind)>>,
    /// The part of `lost` that `remove_conflicting` has already reported.
    noted: Map<PortName, Vec<(ServiceFrontend, AddressKind)>>,
    /// Frontends that gained or lost one of several owners since the last call of `take_contested_ports`.
    contested: Vec<ServiceFrontend>,
}

impl FrontendOwners {
    pub(super) fn reserve(&mut self, more: usize) {
        self.owners.reserve(more);
    }

    /// Registers a port's frontends.
    pub(super) fn acquire(&mut self, port: &ServicePort) {
        of(port, |frontend, kind| {
            let owner = Owner {
                kind,
                created: port.created,
                name: port.name.clone(),
            };
            let Some(there) = self.owners.get_mut(&frontend) else {
                self.owners.insert(frontend, Owners::One(owner));
                return;
            };
            self.contested.push(frontend);
            let one = Owners::Several(Vec::new());
            let mut all = match std::mem::replace(there, one) {
                Owners::One(one) => vec![one],
                Owners::Several(several) => several,
            };
            all.push(owner);
            all.sort_by(Owner::order);
            *there = Owners::Several(all);
        });
    }

    /// Unregisters all frontends of a port, including those that it did not get.
    pub(super) fn release(&mut self, port: &ServicePort) {
        let mut frontends = self.lost.swap_remove(&port.name).unwrap_or_default();
        of(port, |frontend, kind| frontends.push((frontend, kind)));
        for (frontend, kind) in frontends {
            let is_it = |owner: &Owner| owner.kind == kind && owner.name == port.name;
            match self.owners.get_mut(&frontend) {
                Some(Owners::One(one)) if is_it(one) => {
                    self.owners.swap_remove(&frontend);
                }
                Some(there @ Owners::Several(_)) => {
                    self.contested.push(frontend);
                    if let Owners::Several(several) = there {
                        several.retain(|owner| !is_it(owner));
                        if several.len() == 1 {
                            *there = Owners::One(several.remove(0));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Returns the ports that may have got or lost a frontend since the last call, each once.
    pub(super) fn take_contested_ports(&mut self) -> Vec<PortName> {
        let mut contested = std::mem::take(&mut self.contested);
        contested.sort_unstable();
        contested.dedup();
        let mut names = Vec::new();
        for frontend in contested {
            match self.owners.get(&frontend) {
                Some(Owners::One(one)) => names.push(one.name.clone()),
                Some(Owners::Several(several)) => {
                    names.extend(several.iter().map(|owner| owner.name.clone()));
                }
                None => {}
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Removes from a port the frontends that another port has, and records them. Returns whether some were not
    /// recorded before.
    pub(super) fn remove_conflicting(&mut self, port: &mut ServicePort) -> bool {
        let mut lost = Vec::new();
        of(port, |frontend, kind| {
            let first = match self.owners.get(&frontend) {
                Some(Owners::Several(several)) => several.first(),
                _ => None,
            };
            if first.is_some_and(|first| first.kind != kind || first.name != port.name) {
                lost.push((frontend, kind));
            }
        });
        for (frontend, kind) in &lost {
            let is_other = |address: &IpAddr| Some(*address) != frontend.address;
            match kind {
                AddressKind::ClusterIp => port.has_cluster_ip = false,
                AddressKind::LoadBalancer => port.load_balancer_ips.retain(is_other),
                AddressKind::ExternalIp => port.external_ips.retain(is_other),
                AddressKind::NodePort => port.node_port = None,
            }
        }
        if lost.is_empty() {
            self.lost.swap_remove(&port.name);
            self.noted.swap_remove(&port.name);
            return false;
        }
        let noted = self.noted.insert(port.name.clone(), lost.clone());
        let noted = noted.unwrap_or_default();
        let is_new = lost.iter().any(|lost| !noted.contains(lost));
        self.lost.insert(port.name.clone(), lost);
        is_new
    }

    /// Forgets a removed port.
    pub(super) fn forget(&mut self, port: &ServicePort) {
        self.release(port);
        self.noted.swap_remove(&port.name);
    }

    /// Lists the frontends of a port that another service has.
    pub(super) fn conflicts(&self, name: &PortName, family: Family) -> Vec<Conflict> {
        let lost = self.lost.get(name).into_iter().flatten();
        let conflict = |&(frontend, kind): &(ServiceFrontend, AddressKind)| {
            let current_owner = match self.owners.get(&frontend)? {
                Owners::One(one) => one,
                Owners::Several(several) => several.first()?,
            };
            let is_others = current_owner.name.service != name.service;
            is_others.then(|| Conflict {
                port: name.clone(),
                family,
                kind,
                address: frontend.address,
                number: frontend.port,
                current_owner: current_owner.name.clone(),
            })
        };
        lost.filter_map(conflict).collect()
    }

    /// Lists the ports that lack some of their frontends, sorted by name.
    pub(super) fn ports_missing_frontends(&self) -> Vec<&PortName> {
        let mut names: Vec<_> = self.lost.keys().collect();
        names.sort_unstable();
        names
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Calls `take` for each frontend of a port.
fn of(port: &ServicePort, mut take: impl FnMut(ServiceFrontend, AddressKind)) {
    let protocol = port.name.protocol;
    let mut at = |address, number, kind| {
        let frontend = ServiceFrontend {
            address,
            protocol,
            port: number,
        };
        take(frontend, kind);
    };
    if port.has_cluster_ip {
        at(Some(port.cluster_ip), port.port, AddressKind::ClusterIp);
    }
    for address in &port.load_balancer_ips {
        at(Some(*address), port.port, AddressKind::LoadBalancer);
    }
    for address in &port.external_ips {
        at(Some(*address), port.port, AddressKind::ExternalIp);
    }
    if let Some(number) = port.node_port {
        at(None, number, AddressKind::NodePort);
    }
}
