//! Converts a service port to chains with their rules, sets of clients, and elements of the shared sets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::elements::{Key, Shared, Value};
use crate::service::config::Config;
use crate::service::model::Protocol;
use crate::service::resolve::{Backend, Refusal, ServicePort};

/// Everything in the table that belongs to one port.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Content {
    pub(super) sets: Vec<Clients>,
    pub(super) chains: Vec<PortChain>,
    pub(super) elements: Vec<(Key, Value)>,
}

/// The set of clients that are sent to one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clients {
    pub(super) name: Arc<str>,
    pub(super) timeout: Duration,
}

/// A chain of a single port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PortChain {
    pub(super) name: Arc<str>,
    pub(super) protocol: Protocol,
    pub(super) rules: Vec<PortRule>,
}

/// A rule of such a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PortRule {
    /// To one of these endpoints, chosen at random.
    Spread(Vec<SocketAddr>),
    /// To one of these chains, chosen at random.
    SpreadChains(Vec<Arc<str>>),
    /// A known client goes to this chain.
    Known(Clients, Arc<str>),
    /// Remembers the client.
    Remember(Clients),
    /// To this endpoint.
    To(SocketAddr),
    /// Marks the packet to be masqueraded.
    Masquerade,
    /// Marks the packet to be masqueraded if it comes from this node.
    MasqueradeLocal,
    /// Pods' traffic goes to this chain.
    PodsGoto(Arc<str>),
    /// The node's own traffic goes to this chain.
    LocalGoto(Arc<str>),
    /// All traffic goes to this chain.
    Goto(Arc<str>),
    /// Only clients in these networks may pass; there is at least one.
    From(Vec<IpNet>),
}

/// Returns the content for a port.
pub(super) fn content(port: &ServicePort, config: &Config) -> Content {
    let mut content = Content::default();
    if port.affinity.is_some() {
        content.endpoints(port);
    }
    let service = port
        .uses_cluster()
        .then(|| content.spread(port, "service-", &port.backends.cluster))
        .flatten();
    let local = port
        .uses_local()
        .then(|| content.spread(port, "local-", &port.backends.local))
        .flatten();
    let external = content.external(port, service.as_ref(), local.as_ref());
    let internal = if port.internal_local { local } else { service };
    let firewall = content.firewall(port, config);
    content.elements(port, internal, external, firewall);
    if port.affinity == Some(Duration::ZERO) {
        content.remove_affinity();
    }
    content
}

impl Content {
    /// Removes the sets of clients, and the rules that refer to them.
    fn remove_affinity(&mut self) {
        self.sets.clear();
        for chain in &mut self.chains {
            let knows =
                |rule: &PortRule| matches!(rule, PortRule::Known(..) | PortRule::Remember(_));
            chain.rules.retain(|rule| !knows(rule));
        }
    }

    fn chain(&mut self, port: &ServicePort, name: String, rules: Vec<PortRule>) -> Arc<str> {
        let name: Arc<str> = name.into();
        self.chains.push(PortChain {
            name: Arc::clone(&name),
            protocol: port.name.protocol,
            rules,
        });
        name
    }

    /// Adds a chain and a set of clients for each endpoint.
    fn endpoints(&mut self, port: &ServicePort) {
        for backend in port.reachable() {
            let Some(clients) = clients(port, &backend) else {
                return;
            };
            let rules = vec![
                PortRule::Remember(clients.clone()),
                PortRule::To(backend.address),
            ];
            self.sets.push(clients);
            self.chain(port, endpoint_chain(port, &backend), rules);
        }
    }

    /// Adds the chain that sends packets to some endpoints, if there are any.
    fn spread(
        &mut self,
        port: &ServicePort,
        prefix: &str,
        backends: &[Backend],
    ) -> Option<Arc<str>> {
        if backends.is_empty() {
            return None;
        }
        let mut rules = Vec::new();
        if port.affinity.is_none() {
            let addresses = backends.iter().map(|backend| backend.address);
            rules.push(PortRule::Spread(addresses.collect()));
        } else {
            let mut chains: Vec<Arc<str>> = Vec::with_capacity(backends.len());
            for backend in backends {
                let chain: Arc<str> = endpoint_chain(port, backend).into();
                let clients = clients(port, backend)?;
                rules.push(PortRule::Known(clients, Arc::clone(&chain)));
                chains.push(chain);
            }
            rules.push(PortRule::SpreadChains(chains));
        }
        Some(self.chain(port, port.name.nftables_name(prefix), rules))
    }

    /// Adds the chain for traffic from outside, if some can reach an endpoint.
    fn external(
        &mut self,
        port: &ServicePort,
        service: Option<&Arc<str>>,
        local: Option<&Arc<str>>,
    ) -> Option<Arc<str>> {
        if !port.is_external() || !port.backends.any {
            return None;
        }
        let mut rules = Vec::new();
        let goes_to = if port.external_local {
            rules.extend(service.map(|chain| PortRule::PodsGoto(Arc::clone(chain))));
            rules.push(PortRule::MasqueradeLocal);
            rules.extend(service.map(|chain| PortRule::LocalGoto(Arc::clone(chain))));
            local
        } else {
            rules.push(PortRule::Masquerade);
            service
        };
        rules.extend(goes_to.map(|chain| PortRule::Goto(Arc::clone(chain))));
        Some(self.chain(port, port.name.nftables_name("external-"), rules))
    }

    /// Adds the chain that blocks clients that may not use the load balancers.
    fn firewall(&mut self, port: &ServicePort, config: &Config) -> Option<Arc<str>> {
        if port.load_balancer_ips.is_empty() || port.source_ranges.is_empty() {
            return None;
        }
        let mut sources = port.source_ranges.clone();
        let mut nodes = config.node_addresses.iter();
        if nodes.any(|node| port.source_ranges.iter().any(|range| range.contains(node))) {
            // A node that has the load balancer's address itself talks to the balancer from that address.
            let balancers = port.load_balancer_ips.iter().copied();
            sources.extend(balancers.map(IpNet::from));
        }
        let name = port.name.nftables_name("firewall-");
        Some(self.chain(port, name, vec![PortRule::From(sources)]))
    }

    fn elements(
        &mut self,
        port: &ServicePort,
        internal: Option<Arc<str>>,
        external: Option<Arc<str>>,
        firewall: Option<Arc<str>>,
    ) {
        let protocol = port.name.protocol;
        let name: Arc<str> = port.name.to_string().into();
        let refused = |refusal: Refusal| Value::Refused(refusal, Arc::clone(&name));
        let mut add = |key: Key, value: Value| self.elements.push((key, value));

        for backend in port.reachable() {
            if backend.local {
                add(Key::hairpin(backend.address, protocol), Value::Member);
            }
        }

        let at = |set, address| Key::service(set, address, protocol, port.port);
        add(
            Key::address(Shared::ClusterIps, port.cluster_ip),
            Value::Member,
        );
        match (internal, port.internal_refusal()) {
            _ if !port.has_cluster_ip => {}
            (_, Some(refusal)) => add(
                at(Shared::NoEndpointServices, port.cluster_ip),
                refused(refusal),
            ),
            (Some(chain), None) => {
                add(at(Shared::ServiceIps, port.cluster_ip), Value::Goto(chain));
            }
            (None, None) => {}
        }

        let balancers = port.load_balancer_ips.iter();
        if let Some(firewall) = firewall {
            for &address in balancers.clone() {
                add(
                    at(Shared::FirewallIps, address),
                    Value::Goto(Arc::clone(&firewall)),
                );
            }
        }
        let refusal = port.external_refusal();
        for &address in port.external_ips.iter().chain(balancers) {
            if let Some(chain) = &external {
                add(
                    at(Shared::ServiceIps, address),
                    Value::Goto(Arc::clone(chain)),
                );
            }
            if let Some(refusal) = refusal {
                add(at(Shared::NoEndpointServices, address), refused(refusal));
            }
        }
        if let Some(node_port) = port.node_port {
            let at = |set| Key::node_port(set, protocol, node_port);
            if let Some(chain) = external {
                add(at(Shared::ServiceNodePorts), Value::Goto(chain));
            }
            if let Some(refusal) = refusal {
                add(at(Shared::NoEndpointNodePorts), refused(refusal));
            }
        }
    }
}

fn endpoint_chain(port: &ServicePort, backend: &Backend) -> String {
    (port.name).nftables_endpoint_name("endpoint-", backend.address)
}

/// Returns the clients of an endpoint, if the port has session affinity.
fn clients(port: &ServicePort, backend: &Backend) -> Option<Clients> {
    let name = (port.name).nftables_endpoint_name("affinity-", backend.address);
    Some(Clients {
        name: name.into(),
        timeout: port.affinity?,
    })
}
