//! The parts of the table that do not depend on the services.

use std::net::IpAddr;

use bstr::BStr;
use ipnet::IpNet;

use super::elements::{REJECT_CHAIN, Shared, address_type};
use super::write::{Writer, destination, ip_family, is_in, is_not_in, not_from_pods};
use super::{COMMENT, TABLE};
use crate::service::config::{Config, NodePortsOf, is_of};
use chainwright::Error;
use chainwright::nft::build::{
    AddressType, Build, BuildError, CtState, CtStatus, Selector, ip, ip6, masked, meta, not, or,
    th, xor,
};
use chainwright::nft::expr::NatRangeFlags;
use chainwright::nft::userdata::{self, UserData};
use chainwright::nft::{
    Chain, Element, Family, Hook, Policy, Priority, Rule, Set, Table, TableFlags, TableRef,
    Transaction,
};

/// Marks a table that this library created, since name and comment are those of kube-proxy.
const CREATED_BY: &[u8] = b"chainwright";

/// Addresses of the node that serve node ports.
const NODE_PORT_IPS: &str = "nodeport-ips";
const FIREWALL_CHECK: &str = "firewall-check";
const NODE_PORT_CHECK: &str = "nodeport-endpoints-check";
const SERVICE_CHECK: &str = "service-endpoints-check";
const CLUSTER_IPS_CHECK: &str = "cluster-ips-check";
const SERVICES: &str = "services";
const MASQUERADING: &str = "masquerading";

/// A base chain.
struct BaseChain {
    name: &'static str,
    chain_type: &'static str,
    hook: u32,
    priority: Priority,
    /// The chains to which it sends new connections, or all packets if it sees no others.
    jumps: &'static [&'static str],
}

/// Before destination translation.
const PRE_DNAT: Priority = Priority(Priority::DSTNAT.0 - 10);

const BASE_CHAINS: [BaseChain; 8] = [
    BaseChain {
        name: "filter-prerouting-pre-dnat",
        chain_type: "filter",
        hook: Hook::PREROUTING,
        priority: PRE_DNAT,
        jumps: &[FIREWALL_CHECK],
    },
    BaseChain {
        name: "filter-output-pre-dnat",
        chain_type: "filter",
        hook: Hook::OUTPUT,
        priority: PRE_DNAT,
        jumps: &[FIREWALL_CHECK],
    },
    BaseChain {
        name: "filter-input",
        chain_type: "filter",
        hook: Hook::INPUT,
        priority: Priority::FILTER,
        jumps: &[NODE_PORT_CHECK, SERVICE_CHECK],
    },
    BaseChain {
        name: "filter-forward",
        chain_type: "filter",
        hook: Hook::FORWARD,
        priority: Priority::FILTER,
        jumps: &[SERVICE_CHECK, CLUSTER_IPS_CHECK],
    },
    BaseChain {
        name: "filter-output",
        chain_type: "filter",
        hook: Hook::OUTPUT,
        priority: Priority::FILTER,
        jumps: &[SERVICE_CHECK, CLUSTER_IPS_CHECK],
    },
    BaseChain {
        name: "nat-prerouting",
        chain_type: "nat",
        hook: Hook::PREROUTING,
        priority: Priority::DSTNAT,
        jumps: &[SERVICES],
    },
    BaseChain {
        name: "nat-output",
        chain_type: "nat",
        hook: Hook::OUTPUT,
        priority: Priority::DSTNAT,
        jumps: &[SERVICES],
    },
    BaseChain {
        name: "nat-postrouting",
        chain_type: "nat",
        hook: Hook::POSTROUTING,
        priority: Priority::SRCNAT,
        jumps: &[MASQUERADING],
    },
];

/// Chains that the base chains jump to.
const CHAINS: [&str; 6] = [
    NODE_PORT_CHECK,
    SERVICE_CHECK,
    FIREWALL_CHECK,
    SERVICES,
    MASQUERADING,
    CLUSTER_IPS_CHECK,
];

/// Returns `true` if this library created a table of this name, or owned it once. A table that it took over from a
/// kube-proxy and could not own still counts as kube-proxy's.
pub(super) fn is_own(table: &TableRef<'_>) -> bool {
    let maker = UserData::new(table.userdata().unwrap_or_default()).get(userdata::TABLE_CREATOR);
    let flags = table.flags().unwrap_or_default();
    maker == Some(CREATED_BY) || flags.intersects(TableFlags::OWNER | TableFlags::PERSIST)
}

/// Returns `true` if a chain or set blocks clients that may not use a load balancer, or refers to one that does.
pub(super) fn is_firewall(name: &BStr) -> bool {
    name.starts_with(b"firewall-") || name.ends_with(b"-pre-dnat")
}

/// Adds the table.
pub(super) fn add_table(
    tx: &mut Transaction,
    family: Family,
    flags: TableFlags,
) -> Result<(), Error> {
    let mut table = Table::new(family, TABLE).with_comment(COMMENT)?;
    userdata::put(&mut table.userdata, userdata::TABLE_CREATOR, CREATED_BY);
    table.flags = (!flags.is_empty()).then_some(flags);
    tx.add(&table)?;
    Ok(())
}

/// Adds everything that does not depend on the services.
pub(super) fn write(writer: &mut Writer<'_>, family: Family, config: &Config) -> Result<(), Error> {
    let node_ports = config.node_port_addresses.of(ip_family(family));
    let tx = &mut writer.tx;
    for shared in Shared::ALL {
        tx.add(&shared.set(family)?)?;
    }
    write_node_port_ips(tx, family, &node_ports)?;
    for chain in &BASE_CHAINS {
        tx.add(
            &Chain::new(family, TABLE, chain.name)
                .with_hook(chain.chain_type, chain.hook, chain.priority)
                .with_policy(Policy::ACCEPT),
        )?;
    }
    for name in CHAINS {
        tx.add(&Chain::new(family, TABLE, name))?;
    }
    let helper = "helper for @no-endpoint-services / @no-endpoint-nodeports";
    tx.add(&Chain::new(family, TABLE, REJECT_CHAIN).with_comment(helper)?)?;

    for chain in &BASE_CHAINS {
        for jump in chain.jumps {
            let rule = Build::new(family, TABLE, chain.name);
            let rule = match chain.chain_type {
                "filter" => rule.ct_state(CtState::NEW),
                _ => rule,
            };
            tx.add(&rule.jump(*jump)?)?;
        }
    }
    for rule in rules(family, config, &node_ports) {
        tx.add(&rule?)?;
    }
    let networks = config.service_networks.iter();
    let networks: Vec<IpNet> = networks
        .filter(|network| is_of(network.addr(), ip_family(family)))
        .map(IpNet::trunc)
        .collect();
    if !networks.is_empty() {
        let rule = Build::new(family, TABLE, CLUSTER_IPS_CHECK)
            .comment("Drop traffic to unallocated ClusterIPs");
        let networks = (&networks[..], true);
        writer.add_by_networks(rule, destination(family), networks, Build::drop)?;
    }
    Ok(())
}

/// Returns the rules of the other chains, in order.
fn rules(
    family: Family,
    config: &Config,
    node_ports: &NodePortsOf,
) -> Vec<Result<Rule<'static>, BuildError>> {
    let to = destination(family);
    let from = match family {
        Family::IP6 => ip6::SADDR,
        _ => ip::SADDR,
    };
    let service: [Selector; 3] = [to, meta::L4PROTO, th::DPORT];
    let node_port: [Selector; 2] = [meta::L4PROTO, th::DPORT];
    let hairpin: [Selector; 4] = [from, to, meta::L4PROTO, th::DPORT];
    let mark = config.masquerade_mark;
    let in_chain = |chain: &'static str| Build::new(family, TABLE, chain);
    let masquerade = |build: Build<'static>| build.masquerade(NatRangeFlags::PROTO_RANDOM_FULLY);

    // Only packets of the node itself reach it.
    let check = || in_chain(NODE_PORT_CHECK);
    let mut rules = reached(check, family, node_ports, true, |rule| {
        (rule.vmap(&node_port, Shared::NoEndpointNodePorts.name())).finish()
    });
    rules.extend([
        in_chain(SERVICE_CHECK)
            .vmap(&service, Shared::NoEndpointServices.name())
            .finish(),
        in_chain(FIREWALL_CHECK)
            .vmap(&service, Shared::FirewallIps.name())
            .finish(),
    ]);
    let to_cluster_ip = || in_chain(SERVICES).lookup(to, Shared::ClusterIps.name());
    let from_outside = match config.masquerade_all {
        true => Some(to_cluster_ip().comment("masquerade clusterIP traffic")),
        false => not_from_pods(to_cluster_ip(), family, &config.local_detector)
            .map(|rule| rule.comment("masquerade clusterIP traffic from outside cluster")),
    };
    rules.extend(from_outside.map(|rule| rule.meta_mark_set(or(mark)).finish()));
    rules.push(
        in_chain(SERVICES)
            .vmap(&service, Shared::ServiceIps.name())
            .finish(),
    );
    let services = || in_chain(SERVICES);
    rules.extend(reached(services, family, node_ports, false, |rule| {
        (rule.vmap(&node_port, Shared::ServiceNodePorts.name())).finish()
    }));
    rules.extend([
        masquerade(
            in_chain(MASQUERADING)
                .meta_mark(not(masked(0, mark)))
                .meta_mark_set(xor(mark)),
        ),
        masquerade(
            in_chain(MASQUERADING)
                .ct_status(CtStatus::DNAT)
                .lookup(&hairpin, Shared::HairpinConnections.name()),
        ),
        in_chain(CLUSTER_IPS_CHECK)
            .lookup(to, Shared::ClusterIps.name())
            .comment("Reject traffic to invalid ports of ClusterIPs")
            .reject(),
        in_chain(REJECT_CHAIN).reject(),
    ]);
    rules
}

/// Adds the set of addresses that serve node ports, if only some do.
fn write_node_port_ips(
    tx: &mut Transaction,
    family: Family,
    node_ports: &NodePortsOf,
) -> Result<(), Error> {
    let NodePortsOf::These(addresses) = node_ports else {
        return Ok(());
    };
    let (data_type, length) = address_type(family);
    let set = Set::new(family, TABLE, NODE_PORT_IPS, data_type, length)
        .with_comment("IPs that accept NodePort traffic")?;
    tx.add(&set)?;
    let addresses = addresses.iter().filter(|address| !address.is_loopback());
    let elements = addresses.map(|address| match address {
        IpAddr::V4(address) => Element::new(address.octets().to_vec()),
        IpAddr::V6(address) => Element::new(address.octets().to_vec()),
    });
    tx.add_elements(&set.set_id(), elements)?;
    Ok(())
}

/// Returns rules for packets to addresses that serve node ports; at most one of them matches. `is_own`: the
/// destination is known to be an address of the node.
fn reached<'b>(
    begin: impl Fn() -> Build<'b>,
    family: Family,
    node_ports: &NodePortsOf,
    is_own: bool,
    end: impl Fn(Build<'b>) -> Result<Rule<'b>, BuildError>,
) -> Vec<Result<Rule<'b>, BuildError>> {
    let to = destination(family);
    let of_node = || {
        let build = match is_own {
            true => begin(),
            false => begin().fib_daddr_type(AddressType::LOCAL),
        };
        let loopback = match family {
            Family::IP6 => IpNet::new_assert(std::net::Ipv6Addr::LOCALHOST.into(), 128),
            _ => IpNet::new_assert(std::net::Ipv4Addr::LOCALHOST.into(), 8),
        };
        is_not_in(build, to, loopback)
    };
    match node_ports {
        NodePortsOf::Every => vec![end(of_node())],
        NodePortsOf::These(_) => vec![end(begin().lookup(to, NODE_PORT_IPS))],
        NodePortsOf::Networks(networks) => networks
            .iter()
            .map(|network| end(is_in(of_node(), to, *network)))
            .collect(),
    }
}
