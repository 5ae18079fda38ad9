//! The layouts of kube-proxy, as the real tools print them, compared with kube-proxy 1.36.2's rulesets for the same
//! manifests: from the API's objects to the tools' text.

use chainwright::iptables::{Backend, Family};
use chainwright::nft::{PlanOptions, Scope};
use chainwright_kube::service::{
    Config, Endpoint, EndpointSlice, Layout, LocalDetector, NodePortAddresses, Protocol, Service,
    Services,
};
use k8s_openapi::api::{core::v1 as core, discovery::v1 as discovery};
use serde_json::{Value, json};

use crate::common::accounting::prepared;
use crate::common::tools::Tools;
use crate::common::{connect, report, sandbox};
use crate::services::listed::{assert_same, of_nft};
use crate::services::proxy::{self, slice, sync, to};
use crate::services::tables::of_iptables;

/// See `tests/data/README.md`.
const MANIFESTS: &str = include_str!("../../data/services.yaml");
const NFTABLES: &str = include_str!("../../data/kube-proxy-1.36-nftables.nft");
const IPTABLES: &str = include_str!("../../data/kube-proxy-1.36-iptables.save");

/// The service that every cluster has, in addition to those of the file.
const KUBERNETES: &str = "
apiVersion: v1
kind: Service
metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 10.96.0.1, ports: [{name: https, port: 443, targetPort: 6443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
addressType: IPv4
endpoints: [{addresses: [10.200.0.10], conditions: {ready: true}}]
ports: [{name: https, port: 6443}]
";

/// Not part of a manifest: the load balancer's address, which the cluster's cloud wrote to the status.
const LOAD_BALANCER: (&str, &str) = ("lb-local", "203.0.113.200");

/// The services of the manifests, converted.
fn services() -> Services {
    let mut services = Services::new();
    let (mut all, mut slices) = (0, 0);
    let documents = [MANIFESTS, KUBERNETES];
    for document in documents.iter().flat_map(|text| text.split("\n---\n")) {
        let mut object: Value = serde_saphyr::from_str(document).unwrap();
        match object["kind"].as_str().unwrap() {
            "Service" => {
                if object["metadata"]["name"] == LOAD_BALANCER.0 {
                    let ingress = json!([{ "ip": LOAD_BALANCER.1 }]);
                    object["status"] = json!({ "loadBalancer": { "ingress": ingress } });
                }
                let object: core::Service = serde_json::from_value(object).unwrap();
                services.set_service(Service::from_api(&object).unwrap().unwrap());
                all += 1;
            }
            "EndpointSlice" => {
                let object: discovery::EndpointSlice = serde_json::from_value(object).unwrap();
                services.set_slice(EndpointSlice::from_api(&object).unwrap().unwrap());
                slices += 1;
            }
            // kube-proxy has ignored these since 1.22.
            "Endpoints" => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!((all, slices, services.len()), (306, 305, 306));
    services
}

/// The node of those rulesets.
fn config() -> Config {
    let mut config = Config::new("node1");
    config.node_addresses = vec![[10, 200, 0, 10].into()];
    config.local_detector = LocalDetector::Networks(vec!["10.244.0.0/16".parse().unwrap()]);
    config
}

/// A tool's output for a layout, after a sync and after a restart that changes nothing.
#[track_caller]
fn printed(layout: Layout, config: &Config, command: &str) -> String {
    let sandbox = prepared();
    for transactions in [None, Some(0)] {
        let mut services = services();
        let mut proxy = proxy::open(&sandbox, layout, config.clone());
        let synced = sync(&sandbox, &mut proxy, &mut services);
        assert_eq!(synced.services, 306);
        let expected = transactions.unwrap_or(synced.transactions);
        assert_eq!(synced.transactions, expected, "{layout:?}");
    }
    Tools::new(&sandbox).run(command)
}

/// The node, its addresses for node ports and the networks of services; its table has no owner, like kube-proxy's.
fn config_of_nftables() -> Config {
    let mut config = config();
    config.node_port_addresses = NodePortAddresses::These(config.node_addresses.clone());
    config.service_networks = vec!["10.96.0.0/12".parse().unwrap()];
    // kube-proxy cannot own its table.
    config.own = false;
    config
}

/// Line for line, in both families. Of the intended differences (listed in the layout's documentation), only the
/// table's owner applies to these services.
pub(crate) fn nftables() {
    let mut config = config_of_nftables();
    config.families = vec![Family::Ipv4];
    let mut chainwright = of_nft(&printed(Layout::Nftables, &config, "nft list ruleset"));
    // If the node has no address of a family, kube-proxy serves node ports at all of them; here this must be
    // configured.
    config.families = vec![Family::Ipv6];
    config.node_port_addresses = NodePortAddresses::All;
    chainwright.extend(of_nft(&printed(
        Layout::Nftables,
        &config,
        "nft list ruleset",
    )));
    let kube_proxys = of_nft(NFTABLES);
    assert!(kube_proxys.len() > 1_600, "{}", kube_proxys.len());
    assert_same(&"nftables", &chainwright, &kube_proxys);
}

/// A table that kube-proxy left is taken over unchanged.
pub(crate) fn takes_over() {
    let (node, fresh) = (sandbox(), sandbox());
    Tools::new(&node).load_nft(NFTABLES);
    let mut services = services();
    let ports = |name| services.service(name).unwrap().ports.len();
    assert_eq!(services.names().map(ports).sum::<usize>(), 308);
    let open = |node| proxy::open(node, Layout::Nftables, config_of_nftables());
    let mut elsewhere = open(&fresh);
    sync(&fresh, &mut elsewhere, &mut services);
    let desired = connect(&fresh).snapshot(Scope::all()).unwrap();
    let plan = connect(&node).plan(&desired, PlanOptions::default());
    let plan = plan.unwrap_or_else(|error| panic!("{}", report(&error)));
    assert_eq!(plan.replaced, []);
    // For several source ranges `nft` makes a set of different but equivalent elements.
    let plan = plan.to_string();
    let is_range = |line: &str| line.contains("firewall-5A6HMGKF") || line.contains("__set%d");
    // The node has no IPv6 address, so it serves no node ports there.
    let is_node_port = |line: &str| {
        let chains = ["nodeport-ips", "nodeport-endpoints-check", "services"];
        chains
            .iter()
            .any(|of| line.contains(&format!("ip6 kube-proxy {of}")))
    };
    let mut lines = plan.lines();
    assert!(
        lines.all(|line| is_range(line) || is_node_port(line)),
        "{plan}"
    );
    let mut proxy = open(&node);
    // Additions and removals; with a set of IPv6 addresses.
    assert_eq!(sync(&node, &mut proxy, &mut services).transactions, 5);
    proxy.require_full_sync();
    assert_eq!(sync(&node, &mut proxy, &mut services).transactions, 0);
    // Later changes are ordinary ones.
    let endpoint = Endpoint::new([10, 244, 9, 9].into());
    services.set_slice(slice(
        "empty",
        vec![endpoint],
        &[to("http", Protocol::Tcp, 80)],
    ));
    let synced = sync(&node, &mut proxy, &mut services);
    assert_eq!((synced.is_full, synced.transactions), (false, 2));
    proxy.require_full_sync();
    assert_eq!(sync(&node, &mut proxy, &mut services).transactions, 0);
}

/// Tables that kube-proxy left are removed by a proxy of another layout.
pub(crate) fn removed() {
    let node = sandbox();
    Tools::new(&node).load_nft(NFTABLES);
    let tables = || {
        connect(&node)
            .snapshot(Scope::all())
            .unwrap()
            .tables()
            .count()
    };
    assert_eq!(tables(), 2);
    let mut proxy = proxy::open(&node, Layout::Flat, config());
    for removed in [2, 0] {
        let others = node.run(|| proxy.remove_other_layouts()).unwrap();
        let others = others.unwrap_or_else(|error| panic!("{}", report(&error)));
        assert_eq!((others, tables()), (removed, 0));
    }
}

/// Chains with rules of many services, which kube-proxy writes in another order at each start.
const SHARED: [&str; 4] = [
    "KUBE-SERVICES",
    "KUBE-NODEPORTS",
    "KUBE-EXTERNAL-SERVICES",
    "KUBE-PROXY-FIREWALL",
];

/// Rule for rule, chain for chain. Intended differences (listed in the layout's documentation):
/// - In shared chains the rules of a port are consecutive and in order, and the ports are sorted by name; kube-proxy's
///   order of ports is random.
/// - Source ranges (`KUBE-FW-…`) are sorted by address.
pub(crate) fn iptables(backend: Backend) {
    let mut config = config();
    config.families = vec![Family::Ipv4];
    config.localhost_node_ports = true;
    config.nfacct = true;
    let command = match backend {
        Backend::Nft => "iptables-nft-save",
        Backend::Legacy => "iptables-legacy-save",
    };
    let text = printed(Layout::Iptables(backend), &config, command);
    let (chainwright, kube_proxys) = (of_iptables(&text), of_iptables(IPTABLES));
    assert!(kube_proxys.len() > 1_200, "{}", kube_proxys.len());
    let names = |chains: &std::collections::BTreeMap<(String, String), Vec<String>>| {
        chains.keys().cloned().collect()
    };
    assert_same(&backend, &names(&chainwright), &names(&kube_proxys));
    let mut rules = 0;
    for (of, mut real) in kube_proxys {
        let chainwright = &chainwright[&of];
        rules += chainwright.len() - 1;
        let (_, chain) = &of;
        if SHARED.contains(&&chain[..]) {
            // The comment names the service; the last rule is that for node ports.
            let last = real
                .iter()
                .position(|rule| rule.contains("must be the last"));
            assert!(last.is_none_or(|last| last + 1 == real.len()));
            let until = last.unwrap_or(real.len());
            let whose = |rule: &String| {
                let comment = rule.split('"').nth(1).unwrap();
                let name = comment.split(' ').next().unwrap();
                let parts = name.split(['/', ':']).map(str::to_owned);
                parts.collect::<Vec<_>>()
            };
            real[1..until].sort_by_key(whose);
        }
        if chain.starts_with("KUBE-FW-") {
            let ranges = real.iter().filter(|rule| rule.starts_with("-s ")).count();
            real[1..=ranges].sort();
        }
        assert_eq!(chainwright, &real, "{of:?}");
    }
    assert_eq!(rules, IPTABLES.matches("\n-A ").count());
}
