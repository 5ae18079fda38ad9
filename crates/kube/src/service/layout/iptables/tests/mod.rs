//! Compares the layout with a ruleset that kube-proxy left in a kernel (`tests/data`), and tests it in
//! kernels.

mod proxy;

mod kernel;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::service::layout::Ports;
use crate::service::{
    Config, Endpoint, EndpointPort, EndpointSlice, LocalDetector, ObjectName, Port, Protocol,
    Service, Services, TrafficPolicy,
};
use chainwright::iptables::Family;

/// The ruleset of kube-proxy 1.36, with nfacct objects.
const KUBE_PROXY_1_36: &str =
    include_str!("../../../../../../../tests/data/kube-proxy-1.36-iptables.save");
const KUBE_PROXY_1_20: &str =
    include_str!("../../../../../../../tests/data/kube-proxy-1.20-300-services.save");

/// Returns the configuration of the kube-proxies in `tests/data`.
pub(super) fn config() -> Config {
    let mut config = Config::new("node1");
    config.node_addresses = vec![address("10.200.0.10")];
    config.local_detector = LocalDetector::Networks(vec![
        "10.244.0.0/16".parse().unwrap(),
        "fd00:244::/64".parse().unwrap(),
    ]);
    config.localhost_node_ports = true;
    config.nfacct = true;
    config
}

pub(super) fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Adds a service with endpoints: their addresses and nodes.
pub(super) fn add(
    services: &mut Services,
    service: Service,
    endpoints: &[(&str, &str)],
    to: &[u16],
) {
    let name = service.name.clone();
    let ports = service.ports.iter().zip(to).map(|(port, to)| EndpointPort {
        name: port.name.clone(),
        protocol: port.protocol,
        port: Some(*to),
    });
    let endpoints = endpoints.iter().map(|(ip, node)| Endpoint {
        node: Some((*node).into()),
        ..Endpoint::new(address(ip))
    });
    services.set_slice(EndpointSlice {
        name: ObjectName::new(name.namespace, format!("{}-s0", name.name)),
        service: name.name,
        endpoints: endpoints.collect(),
        ports: ports.collect(),
    });
    services.set_service(service);
}

pub(super) fn service(namespace: &str, name: &str, cluster_ip: &str, ports: &[Port]) -> Service {
    let service = Service::new(ObjectName::new(namespace, name), [address(cluster_ip)]);
    ports.iter().cloned().fold(service, Service::with_port)
}

/// Returns the distinct services in `tests/data/services.yaml`, and `kubernetes`, which exists in each cluster.
fn services() -> Services {
    let mut all = Services::new();
    let port = Port::new;
    let tcp = Protocol::Tcp;
    let frontend = Port {
        node_port: Some(30450),
        ..port("", tcp, 80)
    };
    add(
        &mut all,
        service("default", "azure-vote-front", "10.96.10.10", &[frontend]),
        &[("10.244.1.5", ""), ("10.244.1.6", "")],
        &[80],
    );
    let ports = [port("dns", Protocol::Udp, 53), port("dns-tcp", tcp, 53)];
    let mut dns = service("kube-system", "kube-dns", "10.96.0.10", &ports);
    dns.session_affinity = Some(Duration::from_secs(10800));
    let endpoints = [("10.244.0.2", ""), ("10.244.0.3", ""), ("10.244.0.4", "")];
    add(&mut all, dns, &endpoints, &[53, 53]);
    all.set_service(service(
        "default",
        "empty",
        "10.96.7.7",
        &[port("http", tcp, 8080)],
    ));
    let https = Port {
        node_port: Some(31443),
        ..port("https", tcp, 443)
    };
    let mut local = service("default", "lb-local", "10.96.20.20", &[https]);
    local.external_traffic_policy = TrafficPolicy::Local;
    local.load_balancer_ips = vec![address("203.0.113.200")];
    local.source_ranges = ["203.0.113.0/24", "198.51.100.0/25"]
        .map(|r| r.parse().unwrap())
        .to_vec();
    local.health_check_node_port = Some(32222);
    add(
        &mut all,
        local,
        &[("10.244.3.1", "node1"), ("10.244.4.1", "node2")],
        &[8443],
    );
    let ports = [
        port("sip", Protocol::Udp, 5060),
        port("sctp", Protocol::Sctp, 9999),
    ];
    let mut ext = service("default", "ext", "10.96.20.21", &ports);
    ext.external_ips = vec![address("192.0.2.77")];
    add(&mut all, ext, &[("10.244.3.9", "node1")], &[5060, 9999]);
    add(
        &mut all,
        service("ns0", "svc-0", "10.97.0.5", &[port("http", tcp, 8000)]),
        &[("10.244.0.1", "node1")],
        &[8080],
    );
    let endpoints = ["10.244.9.4", "10.244.10.4", "10.244.11.4", "10.244.12.4"];
    add(
        &mut all,
        service("ns3", "svc-3", "10.97.3.8", &[port("http", tcp, 8003)]),
        &endpoints.map(|ip| (ip, "node2")),
        &[8080],
    );
    add(
        &mut all,
        service(
            "default",
            "kubernetes",
            "10.96.0.1",
            &[port("https", tcp, 443)],
        ),
        &[("10.200.0.10", "")],
        &[6443],
    );
    all
}

/// Returns the ports of all services.
pub(super) fn ports(services: &Services, family: Family, config: &Config) -> Ports {
    let names = services.names();
    let resolved = names.flat_map(|name| services.resolve(name, family, config));
    resolved
        .map(|port| (port.name.clone(), Arc::new(port)))
        .collect()
}
