use std::net::Ipv6Addr;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn read<T: DeserializeOwned>(manifest: Value) -> T {
    serde_json::from_value(manifest).unwrap()
}

fn service(manifest: Value) -> Result<Option<Service>, InvalidObject> {
    Service::from_api(&read(manifest))
}

fn slice(manifest: Value) -> Result<Option<EndpointSlice>, InvalidObject> {
    EndpointSlice::from_api(&read(manifest))
}

/// Returns a service with one field changed: `path` as a JSON pointer whose last part may be new.
fn changed(mut manifest: Value, path: &str, to: Value) -> Value {
    let (parent, name) = path.rsplit_once('/').unwrap();
    let parent = manifest.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(list) => list[name.parse::<usize>().unwrap()] = to,
        other => other[name] = to,
    }
    manifest
}

fn full() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "namespace": "shop", "name": "web", "labels": { "app": "web" } },
        "spec": {
            "type": "LoadBalancer",
            "clusterIP": "10.96.0.1",
            "clusterIPs": ["10.96.0.1", "fd00:10:96::1"],
            "ipFamilies": ["IPv4", "IPv6"],
            "externalIPs": ["192.0.2.7", "::ffff:192.0.2.8"],
            "loadBalancerSourceRanges": [" 198.51.100.0/24 ", "2001:db8::/32", "010.1.2.3/8"],
            "externalTrafficPolicy": "Local",
            "internalTrafficPolicy": "Local",
            "healthCheckNodePort": 31000,
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": { "clientIP": { "timeoutSeconds": 60 } },
            "ports": [
                { "name": "http", "port": 80, "nodePort": 30080, "targetPort": "web" },
                { "name": "dns", "protocol": "UDP", "port": 53, "nodePort": 0 },
                { "name": "sig", "protocol": "SCTP", "port": 65535 },
            ],
        },
        "status": { "loadBalancer": { "ingress": [
            { "ip": "203.0.113.1" },
            { "ip": "203.0.113.2", "ipMode": "VIP" },
            { "ip": "203.0.113.3", "ipMode": "Proxy" },
            { "hostname": "lb.example" },
            { "ip": "2001:db8::9" },
        ] } },
    })
}

#[test]
fn every_field_of_a_service_is_read() {
    let port = |name: &str, protocol, port, node_port| Port {
        name: name.into(),
        protocol,
        port,
        node_port,
    };
    let addresses = |list: &[&str]| list.iter().map(|a| a.parse().unwrap()).collect::<Vec<_>>();
    let expected = Service {
        name: ObjectName::new("shop", "web"),
        cluster_ips: addresses(&["10.96.0.1", "fd00:10:96::1"]),
        external_ips: addresses(&["192.0.2.7", "192.0.2.8"]),
        load_balancer_ips: addresses(&["203.0.113.1", "203.0.113.2", "2001:db8::9"]),
        source_ranges: ["198.51.100.0/24", "2001:db8::/32", "10.1.2.3/8"]
            .map(|range| range.parse().unwrap())
            .to_vec(),
        ports: vec![
            port("http", Protocol::Tcp, 80, Some(30080)),
            port("dns", Protocol::Udp, 53, None),
            port("sig", Protocol::Sctp, 65535, None),
        ],
        external_traffic_policy: TrafficPolicy::Local,
        internal_traffic_policy: TrafficPolicy::Local,
        session_affinity: Some(Duration::from_secs(60)),
        health_check_node_port: Some(31000),
        created: None,
    };
    let created = changed(
        full(),
        "/metadata/creationTimestamp",
        json!("2026-01-02T03:04:05Z"),
    );
    let created = service(created).unwrap().unwrap().created;
    let since = std::time::Duration::from_secs(1_767_323_045);
    assert_eq!(created, Some(std::time::UNIX_EPOCH + since));
    assert_eq!(service(full()), Ok(Some(expected)));
}

#[test]
fn manifest_defaults_match_the_api_server() {
    let least = json!({
        "metadata": { "name": "web" },
        "spec": { "clusterIP": "10.96.0.1", "ports": [{ "port": 80 }] },
    });
    let expected = Service::new(
        ObjectName::new("default", "web"),
        ["10.96.0.1".parse().unwrap()],
    );
    let expected = expected.with_port(Port::new("", Protocol::Tcp, 80));
    assert_eq!(service(least.clone()), Ok(Some(expected)));
    let sticky = changed(least, "/spec/sessionAffinity", json!("ClientIP"));
    let sticky = service(sticky).unwrap().unwrap();
    assert_eq!(
        sticky.session_affinity,
        Some(Duration::from_secs(3 * 60 * 60))
    );
}

/// The policy applies to traffic from outside, and the health check to load balancers: a service that is not
/// reachable from there has neither.
#[test]
fn local_policy_and_health_check_need_an_outside() {
    let of = |kind: &str, externals: Value| {
        let manifest = changed(full(), "/spec/type", json!(kind));
        let manifest = changed(manifest, "/spec/externalIPs", externals);
        let service = service(manifest).unwrap().unwrap();
        (
            service.external_traffic_policy,
            service.health_check_node_port,
        )
    };
    assert_eq!(of("ClusterIP", json!([])), (TrafficPolicy::Cluster, None));
    let external = json!(["192.0.2.7"]);
    assert_eq!(of("ClusterIP", external), (TrafficPolicy::Local, None));
    assert_eq!(of("NodePort", json!([])), (TrafficPolicy::Local, None));
    let balanced = of("LoadBalancer", json!([]));
    assert_eq!(balanced, (TrafficPolicy::Local, Some(31000)));
    let cluster = changed(full(), "/spec/externalTrafficPolicy", json!("Cluster"));
    let cluster = service(cluster).unwrap().unwrap();
    assert_eq!(cluster.health_check_node_port, None);
}

#[test]
fn ignores_services_not_handled_by_kube_proxy() {
    let label = |name: &str| changed(full(), "/metadata/labels", json!({ name: "x" }));
    let no_ip = changed(full(), "/spec/clusterIPs", json!([]));
    for manifest in [
        changed(full(), "/spec/type", json!("ExternalName")),
        changed(full(), "/spec/clusterIPs", json!(["None"])),
        changed(no_ip.clone(), "/spec/clusterIP", json!("None")),
        changed(no_ip.clone(), "/spec/clusterIP", json!("")),
        changed(no_ip, "/spec/clusterIP", Value::Null),
        label("service.kubernetes.io/service-proxy-name"),
        label("service.kubernetes.io/headless"),
        json!({ "metadata": { "name": "web" } }),
    ] {
        assert_eq!(service(manifest.clone()), Ok(None), "{manifest}");
    }
}

#[test]
fn errors_of_services_name_object_and_field() {
    for (path, value, field) in [
        ("/spec/type", json!("Magic"), "spec.type"),
        ("/spec/clusterIPs/1", json!("10.96.0"), "spec.clusterIPs[1]"),
        (
            "/spec/clusterIPs/0",
            json!("10.96.0.256"),
            "spec.clusterIPs[0]",
        ),
        (
            "/spec/clusterIPs/0",
            json!("10.96..1"),
            "spec.clusterIPs[0]",
        ),
        (
            "/spec/clusterIPs/0",
            json!("10.+6.0.1"),
            "spec.clusterIPs[0]",
        ),
        (
            "/spec/clusterIPs/0",
            json!("1.2.3.4.5"),
            "spec.clusterIPs[0]",
        ),
        ("/spec/externalIPs/0", json!("x"), "spec.externalIPs[0]"),
        (
            "/spec/loadBalancerSourceRanges/2",
            json!("10.0.0.0"),
            "spec.loadBalancerSourceRanges[2]",
        ),
        (
            "/spec/loadBalancerSourceRanges/0",
            json!("::/129"),
            "spec.loadBalancerSourceRanges[0]",
        ),
        (
            "/spec/loadBalancerSourceRanges/0",
            json!("::ffff:1.2.3.4/95"),
            "spec.loadBalancerSourceRanges[0]",
        ),
        (
            "/spec/externalTrafficPolicy",
            json!("local"),
            "spec.externalTrafficPolicy",
        ),
        (
            "/spec/internalTrafficPolicy",
            json!("Node"),
            "spec.internalTrafficPolicy",
        ),
        (
            "/spec/healthCheckNodePort",
            json!(-1),
            "spec.healthCheckNodePort",
        ),
        (
            "/spec/sessionAffinity",
            json!("Cookie"),
            "spec.sessionAffinity",
        ),
        (
            "/spec/sessionAffinityConfig/clientIP/timeoutSeconds",
            json!(0),
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
        ),
        ("/spec/ports/0/port", json!(0), "spec.ports[0].port"),
        ("/spec/ports/1/port", json!(65536), "spec.ports[1].port"),
        (
            "/spec/ports/0/nodePort",
            json!(70000),
            "spec.ports[0].nodePort",
        ),
        (
            "/spec/ports/2/protocol",
            json!("tcp"),
            "spec.ports[2].protocol",
        ),
        (
            "/status/loadBalancer/ingress/1/ip",
            json!("lb"),
            "status.loadBalancer.ingress[1].ip",
        ),
    ] {
        let error = service(changed(full(), path, value)).unwrap_err();
        assert_eq!(error.field(), field);
        assert_eq!((error.kind(), error.object()), ("Service", "shop/web"));
    }
    let nameless = service(changed(full(), "/metadata/name", Value::Null)).unwrap_err();
    assert_eq!(nameless.field(), "metadata.name");
    let error = service(changed(full(), "/spec/ports/0/port", json!(0))).unwrap_err();
    let expected = "Service shop/web: spec.ports[0].port: invalid port 0";
    assert_eq!(error.to_string(), expected);
}

fn full_slice() -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "namespace": "shop", "name": "web-x7k2p",
            "labels": { "kubernetes.io/service-name": "web" },
        },
        "addressType": "IPv4",
        "ports": [
            { "name": "http", "protocol": "TCP", "port": 8080 },
            { "port": 53, "protocol": "UDP" },
            { "name": "any" },
        ],
        "endpoints": [
            {
                "addresses": ["10.244.1.5", "10.244.1.6"],
                "conditions": { "ready": false, "serving": false, "terminating": true },
                "nodeName": "node1", "zone": "a",
                "hints": {
                    "forZones": [{ "name": "a" }, { "name": "b" }],
                    "forNodes": [{ "name": "node1" }],
                },
            },
            { "addresses": ["10.244.2.5"] },
            { "addresses": ["10.244.2.6"], "conditions": { "ready": false } },
        ],
    })
}

#[test]
fn every_field_of_a_slice_is_read() {
    let slice = slice(full_slice()).unwrap().unwrap();
    assert_eq!(slice.name, ObjectName::new("shop", "web-x7k2p"));
    assert_eq!(&*slice.service, "web");
    let port = |name: &str, protocol, port| EndpointPort {
        name: name.into(),
        protocol,
        port,
    };
    let ports = [
        port("http", Protocol::Tcp, Some(8080)),
        port("", Protocol::Udp, Some(53)),
        port("any", Protocol::Tcp, None),
    ];
    assert_eq!(slice.ports, ports);
    let endpoint = |address: &str| Endpoint::new(address.parse().unwrap());
    let endpoints = [
        Endpoint {
            ready: false,
            serving: false,
            terminating: true,
            node: Some("node1".into()),
            for_zones: vec!["a".into(), "b".into()],
            for_nodes: vec!["node1".into()],
            ..endpoint("10.244.1.5")
        },
        endpoint("10.244.2.5"),
        Endpoint {
            ready: false,
            ..endpoint("10.244.2.6")
        },
    ];
    assert_eq!(slice.endpoints, endpoints);
    let ipv6 = json!({
        "metadata": { "name": "v6", "labels": { "kubernetes.io/service-name": "web" } },
        "addressType": "IPv6", "endpoints": [{ "addresses": ["::1"] }],
    });
    let ipv6 = self::slice(ipv6).unwrap().unwrap();
    assert_eq!(ipv6.endpoints, [Endpoint::new(Ipv6Addr::LOCALHOST.into())]);
    assert_eq!(&*ipv6.name.namespace, "default");
}

#[test]
fn ignores_slices_not_handled_by_kube_proxy() {
    let label = |name: &str| {
        let labels = json!({ "kubernetes.io/service-name": "web", name: "" });
        changed(full_slice(), "/metadata/labels", labels)
    };
    for manifest in [
        changed(full_slice(), "/addressType", json!("FQDN")),
        changed(full_slice(), "/metadata/labels", json!({})),
        label("kubernetes.io/service-name"),
        label("service.kubernetes.io/service-proxy-name"),
        label("service.kubernetes.io/headless"),
    ] {
        assert_eq!(slice(manifest.clone()), Ok(None), "{manifest}");
    }
}

#[test]
fn errors_of_slices_name_object_and_field() {
    for (path, value, field) in [
        ("/addressType", json!("IPv5"), "addressType"),
        ("/ports/0/port", json!(-1), "ports[0].port"),
        ("/ports/0/port", json!(0), "ports[0].port"),
        ("/ports/1/protocol", json!("ICMP"), "ports[1].protocol"),
        (
            "/endpoints/1/addresses",
            json!([]),
            "endpoints[1].addresses",
        ),
        (
            "/endpoints/1/addresses",
            json!(["x"]),
            "endpoints[1].addresses[0]",
        ),
        (
            "/endpoints/2/addresses",
            json!(["::1"]),
            "endpoints[2].addresses[0]",
        ),
    ] {
        let error = slice(changed(full_slice(), path, value)).unwrap_err();
        assert_eq!(error.field(), field);
        let of = (error.kind(), error.object());
        assert_eq!(of, ("EndpointSlice", "shop/web-x7k2p"));
    }
}

#[test]
fn a_nodes_zone_addresses_and_networks_are_read() {
    let manifest = json!({
        "metadata": { "name": "node1", "labels": { "topology.kubernetes.io/zone": "a" } },
        "spec": { "podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24", "fd00:1::/64"] },
        "status": { "addresses": [
            { "type": "ExternalIP", "address": "192.0.2.7" },
            { "type": "Hostname", "address": "node1" },
            { "type": "InternalIP", "address": "10.0.0.7" },
            { "type": "InternalIP", "address": "fd00::7" },
        ] },
    });
    let node = Node::from_api(&read(manifest.clone())).unwrap();
    let addresses = ["10.0.0.7", "fd00::7", "192.0.2.7"];
    assert_eq!(
        node.addresses,
        addresses.map(|a| a.parse::<IpAddr>().unwrap())
    );
    let networks = ["10.244.1.0/24", "fd00:1::/64"];
    assert_eq!(
        node.pod_networks,
        networks.map(|n| n.parse::<IpNet>().unwrap())
    );
    assert_eq!((&*node.name, node.zone.as_deref()), ("node1", Some("a")));
    let one = changed(manifest.clone(), "/spec/podCIDRs", Value::Null);
    let one = Node::from_api(&read(one)).unwrap();
    assert_eq!(one.pod_networks, [networks[0].parse::<IpNet>().unwrap()]);
    let bare = Node::from_api(&read(json!({ "metadata": { "name": "n" } }))).unwrap();
    assert_eq!(
        (bare.zone, bare.addresses, bare.pod_networks),
        (None, vec![], vec![])
    );
    let broken = changed(manifest, "/status/addresses/2/address", json!("10.0.0"));
    let error = Node::from_api(&read(broken)).unwrap_err();
    let expected = "Node node1: status.addresses[2].address: invalid IP address \"10.0.0\"";
    assert_eq!(error.to_string(), expected);
}
