//! The rules that kube-proxy writes for a service port, and those for all of them.
//!
//! Source: `pkg/proxy/iptables/proxier.go` of Kubernetes 1.36, and a ruleset that it left in a kernel
//! (`tests/data/kube-proxy-1.36-iptables.save`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use super::super::Ports;
use crate::service::config::{Config, LocalDetector, NodePortsOf};
use crate::service::model::Protocol;
use crate::service::names::ChainKind;
use crate::service::resolve::{Backend, Refusal, ServicePort};
use chainwright::iptables::{Address, Family, Interface, Protocol as Layer4, Rule, Target};
use chainwright::xt::matches::PortRange;
use chainwright::xt::matches::addrtype::{AddressTypes, Addrtype};
use chainwright::xt::matches::comment::Comment;
use chainwright::xt::matches::nfacct::Nfacct;
use chainwright::xt::matches::recent::{Recent, RecentAction, RecentName};
use chainwright::xt::matches::sctp::Sctp;
use chainwright::xt::matches::statistic::{Statistic, StatisticMode};
use chainwright::xt::matches::tcp::Tcp;
use chainwright::xt::matches::udp::Udp;
use chainwright::xt::targets::dnat::Dnat;
use chainwright::xt::targets::reject::Reject;
use chainwright::xt::{Match, Negatable, Target as Extension};

/// Service addresses (nat), and those without endpoints (filter).
pub(super) const SERVICES: &str = "KUBE-SERVICES";
/// Node ports (nat), and health check node ports (filter).
pub(super) const NODE_PORTS: &str = "KUBE-NODEPORTS";
/// External addresses without endpoints.
pub(super) const EXTERNAL: &str = "KUBE-EXTERNAL-SERVICES";
/// Load balancers with source ranges.
pub(super) const PROXY_FIREWALL: &str = "KUBE-PROXY-FIREWALL";
/// Forwarded packets.
pub(super) const FORWARD: &str = "KUBE-FORWARD";
/// Marks packets to be masqueraded.
pub(super) const MARK_MASQ: &str = "KUBE-MARK-MASQ";
/// Masquerades marked packets.
pub(super) const POSTROUTING: &str = "KUBE-POSTROUTING";
/// Its absence shows a kube-proxy that another program flushed the tables.
pub(super) const CANARY: &str = crate::detect::PROXY_CANARY;

/// Counts connections to node ports at the loopback addresses.
const ACCEPTED_AT_LOOPBACK: &str = "localhost_nps_accepted_pkts";
/// A chain and its rules.
pub(super) type Chain = (String, Vec<Rule>);

/// A chain with rules of many ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shared {
    /// `KUBE-SERVICES` in filter: cluster IPs without endpoints.
    Refused,
    /// `KUBE-EXTERNAL-SERVICES`: external addresses without endpoints.
    RefusedOutside,
    /// `KUBE-NODEPORTS` in filter: health check node ports.
    HealthChecks,
    /// `KUBE-PROXY-FIREWALL`: traffic from outside a load balancer's source ranges.
    Unaccepted,
    /// `KUBE-SERVICES` in nat.
    Services,
    /// `KUBE-NODEPORTS` in nat.
    NodePorts,
}

impl Shared {
    pub(super) const ALL: [Self; 6] = [
        Self::Refused,
        Self::RefusedOutside,
        Self::HealthChecks,
        Self::Unaccepted,
        Self::Services,
        Self::NodePorts,
    ];

    pub(super) const fn table(self) -> &'static str {
        match self {
            Self::Services | Self::NodePorts => "nat",
            _ => "filter",
        }
    }

    pub(super) const fn chain(self) -> &'static str {
        match self {
            Self::Refused | Self::Services => SERVICES,
            Self::RefusedOutside => EXTERNAL,
            Self::HealthChecks | Self::NodePorts => NODE_PORTS,
            Self::Unaccepted => PROXY_FIREWALL,
        }
    }
}

/// Parameters of one family's rules, besides the ports.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'c> {
    pub(super) family: Family,
    pub(super) config: &'c Config,
    /// Whether rules of endpoints have comments that name the service.
    pub(super) comments: bool,
}

impl Rules<'_> {
    /// Returns the chains of a single port, all in nat. Their rules jump to one another and to `KUBE-MARK-MASQ`.
    pub(super) fn own(&self, port: &ServicePort) -> Vec<Chain> {
        let name = &port.name;
        let backends = &port.backends;
        let mut chains = Vec::new();
        let mut masquerade = self.masquerade_from_outside(port);
        if port.uses_cluster() && !backends.cluster.is_empty() {
            let mut rules = Vec::new();
            rules.extend(masquerade.take_if(|_| !port.internal_local));
            self.balance(port, &backends.cluster, &mut rules);
            chains.push((name.iptables_chain(ChainKind::Service), rules));
        }
        if port.uses_local() && !backends.local.is_empty() {
            let mut rules = Vec::new();
            rules.extend(masquerade);
            self.balance(port, &backends.local, &mut rules);
            chains.push((name.iptables_chain(ChainKind::Local), rules));
        }
        if backends.any && port.is_external() {
            let rules = self.outside(port);
            chains.push((name.iptables_chain(ChainKind::External), rules));
        }
        if has_firewall(port) {
            let rules = self.firewall(port);
            chains.push((name.iptables_chain(ChainKind::Firewall), rules));
        }
        for backend in port.reachable() {
            chains.push(self.endpoint(port, backend));
        }
        chains
    }

    /// Returns the rules of a port in chains that it shares with others, in order.
    pub(super) fn shared(&self, port: &ServicePort) -> Vec<(Shared, Rule)> {
        let name = &port.name;
        let any = port.backends.any;
        let mut rules = Vec::new();
        let mut add = |chain, rule| rules.push((chain, rule));
        let jump = |kind| Target::Jump(name.iptables_chain(kind).into());
        let address = |address, comment_text: String, target| {
            let rule = to(name.protocol, port.port, [comment(comment_text)], target);
            at(rule, address)
        };

        match port.internal_refusal() {
            _ if !port.has_cluster_ip => {}
            None => {
                let chain = match port.internal_local {
                    true => ChainKind::Local,
                    false => ChainKind::Service,
                };
                let comment_text = format!("{name} cluster IP");
                add(
                    Shared::Services,
                    address(port.cluster_ip, comment_text, jump(chain)),
                );
            }
            Some(refusal) => {
                let target = self.refuse(refusal);
                let rule = address(port.cluster_ip, refusal_comment(port, refusal), target);
                add(Shared::Refused, rule);
            }
        }

        let refusal = port.external_refusal();
        let refused = |ip| {
            let refusal = refusal?;
            let rule = address(ip, refusal_comment(port, refusal), self.refuse(refusal));
            Some((Shared::RefusedOutside, rule))
        };
        for &ip in &port.external_ips {
            if any {
                let comment_text = format!("{name} external IP");
                add(
                    Shared::Services,
                    address(ip, comment_text, jump(ChainKind::External)),
                );
            }
            if let Some((chain, rule)) = refused(ip) {
                add(chain, rule);
            }
        }
        for &ip in &port.load_balancer_ips {
            let firewall = has_firewall(port);
            if any {
                let chain = match firewall {
                    true => ChainKind::Firewall,
                    false => ChainKind::External,
                };
                let comment_text = format!("{name} loadbalancer IP");
                add(Shared::Services, address(ip, comment_text, jump(chain)));
            }
            if firewall {
                let chain = name.iptables_chain(ChainKind::Firewall);
                let comment_text = format!("{name} traffic not accepted by {chain}");
                add(Shared::Unaccepted, address(ip, comment_text, Target::Drop));
            }
            if let Some((chain, rule)) = refused(ip) {
                add(chain, rule);
            }
        }

        if let Some(number) = port.node_port {
            let comment_text = || comment(name.to_string());
            if any {
                let target = jump(ChainKind::External);
                if self.has_node_ports_at_loopback() && self.config.nfacct {
                    let mut rule = to(name.protocol, number, [comment_text()], target.clone());
                    rule.destination = Some(loopback(self.family));
                    add(Shared::NodePorts, rule.with(count(ACCEPTED_AT_LOOPBACK)));
                }
                let rule = to(name.protocol, number, [comment_text()], target);
                add(Shared::NodePorts, rule);
            }
            if let Some(refusal) = refusal {
                let matches = [comment(refusal_comment(port, refusal)), for_this_node()];
                let rule = to(name.protocol, number, matches, self.refuse(refusal));
                add(Shared::RefusedOutside, rule);
            }
        }
        if let Some(number) = port.health_check_node_port {
            let comment_text = comment(format!("{name} health check node port"));
            let rule = to(Protocol::Tcp, number, [comment_text], Target::Accept);
            add(Shared::HealthChecks, rule);
        }
        rules
    }

    /// Returns all rules of a shared chain, sorted by the ports' names.
    pub(super) fn whole(&self, chain: Shared, ports: &Ports) -> Vec<Rule> {
        let mut all = Vec::new();
        for port in sorted(ports) {
            let rules = self.shared(port).into_iter();
            all.extend(rules.filter(|(of, _)| *of == chain).map(|(_, rule)| rule));
        }
        all.extend(self.last(chain));
        all
    }

    /// Returns the rules at the end of a chain that belong to no port.
    pub(super) fn last(&self, chain: Shared) -> Vec<Rule> {
        if chain != Shared::Services {
            return Vec::new();
        }
        let comment_text = || {
            comment("kubernetes service nodeports; NOTE: this must be the last rule in this chain")
        };
        let at_loopback = self.has_node_ports_at_loopback();
        let to_this_node = || {
            Rule::jump(NODE_PORTS)
                .with(comment_text())
                .with(for_this_node())
        };
        match self.config.node_port_addresses.of(self.family) {
            NodePortsOf::Every => {
                let destination = (!at_loopback).then(|| loopback(self.family).not());
                vec![Rule {
                    destination,
                    ..to_this_node()
                }]
            }
            NodePortsOf::These(addresses) => addresses
                .into_iter()
                .filter(|address| at_loopback || !address.is_loopback())
                .map(|address| at(Rule::jump(NODE_PORTS).with(comment_text()), address))
                .collect(),
            NodePortsOf::Networks(networks) => {
                let mut rules = Vec::new();
                let lo = loopback_network(self.family);
                let holds_loopback =
                    |network: &IpNet| network.contains(&lo) || lo.contains(network);
                if !at_loopback && networks.iter().any(holds_loopback) {
                    let rule = Rule::new(Target::Return).with(comment_text());
                    rules.push(to_network(rule, lo));
                }
                let networks = networks.into_iter();
                rules.extend(networks.map(|network| to_network(to_this_node(), network)));
                rules
            }
        }
    }

    /// Returns `true` if a loopback address of this family serves node ports: never IPv6's, for which the kernel has no
    /// `route_localnet`.
    pub(super) fn has_node_ports_at_loopback(&self) -> bool {
        self.config.localhost_node_ports && self.family == Family::Ipv4
    }

    /// Returns `true` if a loopback address serves node ports, given the configuration and the node port addresses.
    pub(super) fn serves_at_loopback(&self) -> bool {
        let lo = loopback_network(self.family);
        self.has_node_ports_at_loopback()
            && match self.config.node_port_addresses.of(self.family) {
                NodePortsOf::Every => true,
                NodePortsOf::These(addresses) => addresses.iter().any(IpAddr::is_loopback),
                NodePortsOf::Networks(networks) => networks
                    .iter()
                    .any(|of| of.contains(&lo) || lo.contains(of)),
            }
    }

    /// Returns the target for packets without an endpoint.
    const fn refuse(&self, refusal: Refusal) -> Target {
        match refusal {
            Refusal::Reject => {
                let reject = Reject::default_of(self.family);
                Target::Extension(Extension::Reject(reject))
            }
            Refusal::Drop => Target::Drop,
        }
    }

    /// Masquerades traffic to a cluster IP that does not come from pods, so that the replies return through this
    /// node.
    fn masquerade_from_outside(&self, port: &ServicePort) -> Option<Rule> {
        if port.internal_refusal().is_some() {
            return None;
        }
        let name = &port.name;
        let comment_text = comment(format!("{name} cluster IP"));
        let target = Target::Jump(MARK_MASQ.into());
        let rule = at(
            to(name.protocol, port.port, [comment_text], target),
            port.cluster_ip,
        );
        match self.config.masquerade_all {
            true => Some(rule),
            false => self.of_pods(rule, true),
        }
    }

    /// Restricts a rule to pods' traffic, or to all other traffic; `None` if pods' traffic cannot be detected.
    fn of_pods(&self, mut rule: Rule, invert: bool) -> Option<Rule> {
        let interface = |name: &str, prefix| Interface {
            name: name.into(),
            prefix,
            invert,
        };
        match &self.config.local_detector {
            LocalDetector::None => return None,
            detector @ LocalDetector::Networks(_) => {
                let network = detector.network(self.family)?;
                let mut source = Address::network(network.addr(), network.prefix_len().into());
                source.invert = invert;
                rule.source = Some(source);
            }
            LocalDetector::Interface(name) => rule.in_interface = Some(interface(name, false)),
            LocalDetector::InterfacePrefix(name) => rule.in_interface = Some(interface(name, true)),
        }
        Some(rule)
    }

    /// Chooses an endpoint: the one with affinity to the client, or any.
    fn balance(&self, port: &ServicePort, backends: &[Backend], rules: &mut Vec<Rule>) {
        let name = &port.name;
        let jump = |backend: &Backend| {
            let chain = name.iptables_endpoint_chain(backend.address);
            let mut rule = Rule::jump(chain.as_str());
            if self.comments {
                let comment_text = format!("{name} -> {}", backend.address);
                rule = rule.with(comment(comment_text));
            }
            (rule, chain)
        };
        if let Some(time) = port.affinity {
            for backend in backends {
                let (rule, chain) = jump(backend);
                let check = Recent {
                    // Without a time limit no client can be removed from the list.
                    seconds: u32::try_from(time.as_secs()).unwrap_or(u32::MAX).max(1),
                    reap: true,
                    ..self.clients_of(&chain, RecentAction::Check)
                };
                rules.push(rule.with(Match::Recent(check)));
            }
        }
        for (index, backend) in backends.iter().enumerate() {
            let (rule, _) = jump(backend);
            rules.push(match backends.len() - index {
                1 => rule,
                left => rule.with(Match::Statistic(Statistic {
                    mode: StatisticMode::Random {
                        probability: probability_of_one_in(left),
                    },
                    invert: false,
                })),
            });
        }
    }

    /// Returns the list of an endpoint's clients.
    fn clients_of(&self, chain: &str, action: RecentAction) -> Recent {
        let name = RecentName::new(chain).expect("invariant: a chain's name has 25 bytes");
        Recent::new(self.family, action, name)
    }

    /// Returns the rules for traffic from outside: masqueraded and sent to any endpoint, or sent to one on this node
    /// with the sender's address.
    fn outside(&self, port: &ServicePort) -> Vec<Rule> {
        let name = &port.name;
        let cluster = name.iptables_chain(ChainKind::Service);
        let mark = |comment_text: String| Rule::jump(MARK_MASQ).with(comment(comment_text));
        let mut rules = Vec::new();
        if port.external_local {
            let from_here = Match::Addrtype(Addrtype {
                source: Some(Negatable::is(AddressTypes::LOCAL)),
                destination: None,
                interface: None,
            });
            // Local traffic uses the cluster's endpoints, as if it had left the node and returned.
            let has_cluster = !port.backends.cluster.is_empty();
            if has_cluster {
                let comment_text = format!("pod traffic for {name} external destinations");
                let rule = Rule::jump(cluster.as_str()).with(comment(comment_text));
                rules.extend(self.of_pods(rule, false));
            }
            let comment_text = format!("masquerade LOCAL traffic for {name} external destinations");
            rules.push(mark(comment_text).with(from_here.clone()));
            if has_cluster {
                let comment_text = format!("route LOCAL traffic for {name} external destinations");
                let rule = Rule::jump(cluster.as_str()).with(comment(comment_text));
                rules.push(rule.with(from_here));
            }
        } else {
            let comment_text = format!("masquerade traffic for {name} external destinations");
            rules.push(mark(comment_text));
        }
        if port.external_refusal().is_none() {
            rules.push(Rule::jump(match port.external_local {
                true => name.iptables_chain(ChainKind::Local),
                false => cluster,
            }));
        }
        rules
    }

    /// Returns the rules for a load balancer's source ranges: clients in the ranges continue; a packet that reaches the
    /// end keeps its destination, by which it is dropped.
    fn firewall(&self, port: &ServicePort) -> Vec<Rule> {
        let name = &port.name;
        let accept = |source| Rule {
            source: Some(source),
            ..Rule::jump(name.iptables_chain(ChainKind::External))
                .with(comment(format!("{name} loadbalancer IP")))
        };
        let ranges = &port.source_ranges;
        let mut rules: Vec<_> = ranges
            .iter()
            .map(|range| accept(Address::network(range.addr(), range.prefix_len().into())))
            .collect();
        // If this node has the load balancer's address, local traffic comes from that address.
        let nodes = &self.config.node_addresses;
        if nodes
            .iter()
            .any(|node| ranges.iter().any(|range| range.contains(node)))
        {
            let balancers = port.load_balancer_ips.iter();
            rules.extend(balancers.map(|ip| accept(whole(*ip))));
        }
        let comment_text = format!("other traffic to {name} will be dropped by {PROXY_FIREWALL}");
        rules.push(Rule::new(Target::None).with(comment(comment_text)));
        rules
    }

    /// Returns the chain of one endpoint. Traffic from the endpoint itself is masqueraded, because it would otherwise
    /// answer itself.
    fn endpoint(&self, port: &ServicePort, backend: Backend) -> Chain {
        let name = &port.name;
        let chain = name.iptables_endpoint_chain(backend.address);
        let comment_text = |rule: Rule| match self.comments {
            true => rule.with(comment(name.to_string())),
            false => rule,
        };
        let hairpin = Rule {
            source: Some(whole(backend.address.ip())),
            ..comment_text(Rule::jump(MARK_MASQ))
        };
        let mut forward = comment_text(Rule::new(Target::Extension(Extension::Dnat(Dnat {
            addresses: Some(backend.address.ip().into()),
            ports: Some(backend.address.port().into()),
            ..Dnat::default()
        }))));
        if port.affinity.is_some() {
            let note = self.clients_of(&chain, RecentAction::Set);
            forward = forward.with(Match::Recent(note));
        }
        forward.protocol = Some(protocol(name.protocol));
        let rules = vec![hairpin, forward.with(ports(name.protocol, PortRange::ANY))];
        (chain, rules)
    }
}

/// Returns the ports sorted by name.
pub(super) fn sorted(ports: &Ports) -> Vec<&ServicePort> {
    let mut sorted: Vec<&ServicePort> = ports.values().map(|port| &**port).collect();
    sorted.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    sorted
}

/// Returns `true` if a port's load balancers have source ranges.
fn has_firewall(port: &ServicePort) -> bool {
    port.backends.any && !port.load_balancer_ips.is_empty() && !port.source_ranges.is_empty()
}

fn refusal_comment(port: &ServicePort, refusal: Refusal) -> String {
    let name = &port.name;
    match refusal {
        Refusal::Reject => format!("{name} has no endpoints"),
        Refusal::Drop => format!("{name} has no local endpoints"),
    }
}

/// Returns a rule that matches this port, with these matches before it.
fn to<const N: usize>(
    protocol_of: Protocol,
    port: u16,
    matches: [Match; N],
    target: Target,
) -> Rule {
    let mut rule = Rule::new(target);
    rule.protocol = Some(protocol(protocol_of));
    rule.matches.extend(matches);
    rule.with(ports(protocol_of, port.into()))
}

/// Restricts a rule to this destination address.
fn at(rule: Rule, address: IpAddr) -> Rule {
    Rule {
        destination: Some(whole(address)),
        ..rule
    }
}

const fn protocol(protocol: Protocol) -> Layer4 {
    Layer4 {
        number: protocol.number(),
        invert: false,
    }
}

fn ports(protocol: Protocol, destination: PortRange) -> Match {
    match protocol {
        Protocol::Tcp => Match::Tcp(Tcp {
            destination,
            ..Tcp::default()
        }),
        Protocol::Udp => Match::Udp(Udp {
            destination,
            ..Udp::default()
        }),
        Protocol::Sctp => Match::Sctp(Sctp {
            destination: (destination != PortRange::ANY).then_some(destination),
            ..Sctp::default()
        }),
    }
}

/// Returns a single address.
fn whole(address: IpAddr) -> Address {
    Address::network(address, u8::MAX.into())
}

/// Returns the loopback addresses.
fn loopback(family: Family) -> Address {
    let network = loopback_network(family);
    Address::network(network.addr(), network.prefix_len().into())
}

fn loopback_network(family: Family) -> IpNet {
    match family {
        Family::Ipv4 => IpNet::new_assert(Ipv4Addr::LOCALHOST.into(), 8),
        Family::Ipv6 => IpNet::new_assert(Ipv6Addr::LOCALHOST.into(), 128),
    }
}

/// Restricts a rule to this destination network.
fn to_network(rule: Rule, network: IpNet) -> Rule {
    let address = Address::network(network.network(), network.prefix_len().into());
    Rule {
        destination: Some(address),
        ..rule
    }
}

const fn for_this_node() -> Match {
    Match::Addrtype(Addrtype::LOCAL_DESTINATION)
}

pub(super) fn count(name: &str) -> Match {
    Match::Nfacct(Nfacct { name: name.into() })
}

/// Returns a comment, cut to the longest possible length. Kubernetes' names all fit.
pub(super) fn comment(text: impl Into<String>) -> Match {
    const MAX_LENGTH: usize = 255;
    let mut text = text.into();
    let nul = text.find('\0').unwrap_or(text.len());
    let end = nul.min(MAX_LENGTH);
    let end = (0..=end).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    Match::Comment(Comment::new(text).expect("invariant: it was cut to what fits"))
}

/// Returns the probability 1/`many` in units of 2⁻³¹, as iptables computes it from kube-proxy's ten decimals.
fn probability_of_one_in(many: usize) -> u32 {
    const DECIMALS: u64 = 10_000_000_000;
    const ONE: u64 = 1 << 31;
    let many = (many as u64).max(1);
    let decimal = (DECIMALS + many / 2) / many;
    // At most 2³¹.
    ((decimal * ONE + DECIMALS / 2) / DECIMALS) as u32
}

#[cfg(test)]
#[path = "tests/rules.rs"]
mod tests;
