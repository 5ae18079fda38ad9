//! The kinds of rules that do not occur in kube-proxy's rulesets in `tests/data`.

use std::sync::Arc;

use ipnet::IpNet;

use super::super::tests::{add, address, config, ports, service};
use super::*;
use crate::kubelet::FIREWALL;
use crate::service::config::NodePortAddresses;
use crate::service::{Port, Service, Services, TrafficPolicy};

/// Returns a service with port 80, reachable only at its cluster IP.
fn plain() -> Service {
    service(
        "ns1",
        "svc1",
        "172.30.0.41",
        &[Port::new("p80", Protocol::Tcp, 80)],
    )
}

/// Returns the rules of a service, those of shared chains last.
fn printed(
    family: Family,
    config: &Config,
    service: Service,
    endpoints: &[(&str, &str)],
) -> Vec<String> {
    let mut services = Services::new();
    add(&mut services, service, endpoints, &[80, 80]);
    let ports = ports(&services, family, config);
    let rules = Rules {
        family,
        config,
        comments: true,
    };
    let mut lines = Vec::new();
    for port in sorted(&ports) {
        for (chain, rules) in rules.own(port) {
            lines.extend(rules.iter().map(|rule| format!("-A {chain} {rule}")));
        }
        for (of, rule) in rules.shared(port) {
            lines.push(format!("{}: -A {} {rule}", of.table(), of.chain()));
        }
    }
    lines
}

/// Returns a service with an external IP, a load balancer and a node port.
fn from_outside() -> Service {
    let mut service = plain();
    service.external_ips = vec![address("192.168.99.22")];
    service.load_balancer_ips = vec![address("1.2.3.4")];
    service.ports[0].node_port = Some(3001);
    service
}

fn with_marks(mark: fn(&mut Config)) -> Config {
    let mut config = config();
    config.nfacct = false;
    mark(&mut config);
    config
}

#[test]
fn without_endpoints_everything_is_rejected() {
    let config = with_marks(|_| ());
    assert_eq!(
        printed(Family::Ipv4, &config, from_outside(), &[]),
        [
            "filter: -A KUBE-SERVICES -d 172.30.0.41/32 -p tcp -m comment --comment \"ns1/svc1:p80 has no endpoints\" \
             -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable",
            "filter: -A KUBE-EXTERNAL-SERVICES -d 192.168.99.22/32 -p tcp -m comment --comment \"ns1/svc1:p80 has no \
             endpoints\" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable",
            "filter: -A KUBE-EXTERNAL-SERVICES -d 1.2.3.4/32 -p tcp -m comment --comment \"ns1/svc1:p80 has no \
             endpoints\" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable",
            "filter: -A KUBE-EXTERNAL-SERVICES -p tcp -m comment --comment \"ns1/svc1:p80 has no endpoints\" -m \
             addrtype --dst-type LOCAL -m tcp --dport 3001 -j REJECT --reject-with icmp-port-unreachable",
        ]
    );
}

#[test]
fn without_local_endpoints_only_node_traffic_passes() {
    let config = with_marks(|_| ());
    let mut service = from_outside();
    service.external_traffic_policy = TrafficPolicy::Local;
    service.health_check_node_port = Some(30000);
    assert_eq!(
        printed(Family::Ipv4, &config, service, &[("10.180.0.1", "node2")]),
        [
            "-A KUBE-SVC-XPGD46QRK7WJZT7O ! -s 10.244.0.0/16 -d 172.30.0.41/32 -p tcp -m comment --comment \
             \"ns1/svc1:p80 cluster IP\" -m tcp --dport 80 -j KUBE-MARK-MASQ",
            "-A KUBE-SVC-XPGD46QRK7WJZT7O -m comment --comment \"ns1/svc1:p80 -> 10.180.0.1:80\" -j \
             KUBE-SEP-SXIVWICOYRO3J4NJ",
            "-A KUBE-EXT-XPGD46QRK7WJZT7O -s 10.244.0.0/16 -m comment --comment \"pod traffic for ns1/svc1:p80 \
             external destinations\" -j KUBE-SVC-XPGD46QRK7WJZT7O",
            "-A KUBE-EXT-XPGD46QRK7WJZT7O -m comment --comment \"masquerade LOCAL traffic for ns1/svc1:p80 external \
             destinations\" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ",
            "-A KUBE-EXT-XPGD46QRK7WJZT7O -m comment --comment \"route LOCAL traffic for ns1/svc1:p80 external \
             destinations\" -m addrtype --src-type LOCAL -j KUBE-SVC-XPGD46QRK7WJZT7O",
            "-A KUBE-SEP-SXIVWICOYRO3J4NJ -s 10.180.0.1/32 -m comment --comment \"ns1/svc1:p80\" -j KUBE-MARK-MASQ",
            "-A KUBE-SEP-SXIVWICOYRO3J4NJ -p tcp -m comment --comment \"ns1/svc1:p80\" -m tcp -j DNAT \
             --to-destination 10.180.0.1:80",
            "nat: -A KUBE-SERVICES -d 172.30.0.41/32 -p tcp -m comment --comment \"ns1/svc1:p80 cluster IP\" -m tcp \
             --dport 80 -j KUBE-SVC-XPGD46QRK7WJZT7O",
            "nat: -A KUBE-SERVICES -d 192.168.99.22/32 -p tcp -m comment --comment \"ns1/svc1:p80 external IP\" -m \
             tcp --dport 80 -j KUBE-EXT-XPGD46QRK7WJZT7O",
            "filter: -A KUBE-EXTERNAL-SERVICES -d 192.168.99.22/32 -p tcp -m comment --comment \"ns1/svc1:p80 has no \
             local endpoints\" -m tcp --dport 80 -j DROP",
            "nat: -A KUBE-SERVICES -d 1.2.3.4/32 -p tcp -m comment --comment \"ns1/svc1:p80 loadbalancer IP\" -m tcp \
             --dport 80 -j KUBE-EXT-XPGD46QRK7WJZT7O",
            "filter: -A KUBE-EXTERNAL-SERVICES -d 1.2.3.4/32 -p tcp -m comment --comment \"ns1/svc1:p80 has no local \
             endpoints\" -m tcp --dport 80 -j DROP",
            "nat: -A KUBE-NODEPORTS -p tcp -m comment --comment \"ns1/svc1:p80\" -m tcp --dport 3001 -j \
             KUBE-EXT-XPGD46QRK7WJZT7O",
            "filter: -A KUBE-EXTERNAL-SERVICES -p tcp -m comment --comment \"ns1/svc1:p80 has no local endpoints\" -m \
             addrtype --dst-type LOCAL -m tcp --dport 3001 -j DROP",
            "filter: -A KUBE-NODEPORTS -p tcp -m comment --comment \"ns1/svc1:p80 health check node port\" -m tcp \
             --dport 30000 -j ACCEPT",
        ]
    );
}

#[test]
fn internal_local_policy_uses_only_local_endpoints() {
    let config = with_marks(|config| config.masquerade_all = true);
    let mut service = plain();
    service.internal_traffic_policy = TrafficPolicy::Local;
    let both = [("10.180.0.1", "node1"), ("10.180.0.2", "node2")];
    assert_eq!(
        printed(Family::Ipv4, &config, service.clone(), &both),
        [
            "-A KUBE-SVL-XPGD46QRK7WJZT7O -d 172.30.0.41/32 -p tcp -m comment --comment \"ns1/svc1:p80 cluster IP\" \
             -m tcp --dport 80 -j KUBE-MARK-MASQ",
            "-A KUBE-SVL-XPGD46QRK7WJZT7O -m comment --comment \"ns1/svc1:p80 -> 10.180.0.1:80\" -j \
             KUBE-SEP-SXIVWICOYRO3J4NJ",
            "-A KUBE-SEP-SXIVWICOYRO3J4NJ -s 10.180.0.1/32 -m comment --comment \"ns1/svc1:p80\" -j KUBE-MARK-MASQ",
            "-A KUBE-SEP-SXIVWICOYRO3J4NJ -p tcp -m comment --comment \"ns1/svc1:p80\" -m tcp -j DNAT \
             --to-destination 10.180.0.1:80",
            "nat: -A KUBE-SERVICES -d 172.30.0.41/32 -p tcp -m comment --comment \"ns1/svc1:p80 cluster IP\" -m tcp \
             --dport 80 -j KUBE-SVL-XPGD46QRK7WJZT7O",
        ]
    );
    assert_eq!(
        printed(Family::Ipv4, &config, service, &both[1..]),
        [
            "filter: -A KUBE-SERVICES -d 172.30.0.41/32 -p tcp -m comment --comment \"ns1/svc1:p80 has no local \
             endpoints\" -m tcp --dport 80 -j DROP",
        ]
    );
}

#[test]
fn node_address_in_source_ranges_admits_the_load_balancer() {
    let config = with_marks(|_| ());
    let mut service = plain();
    service.load_balancer_ips = vec![address("1.2.3.4")];
    service.source_ranges = vec!["10.200.0.0/16".parse::<IpNet>().unwrap()];
    let lines = printed(Family::Ipv4, &config, service, &[("10.180.0.1", "")]);
    let firewall = lines
        .iter()
        .filter(|line| line.contains("KUBE-FW-") || line.contains("FIREWALL"));
    let firewall: Vec<_> = firewall.collect();
    assert_eq!(
        firewall,
        [
            "-A KUBE-FW-XPGD46QRK7WJZT7O -s 10.200.0.0/16 -m comment --comment \"ns1/svc1:p80 loadbalancer IP\" -j \
             KUBE-EXT-XPGD46QRK7WJZT7O",
            "-A KUBE-FW-XPGD46QRK7WJZT7O -s 1.2.3.4/32 -m comment --comment \"ns1/svc1:p80 loadbalancer IP\" -j \
             KUBE-EXT-XPGD46QRK7WJZT7O",
            "-A KUBE-FW-XPGD46QRK7WJZT7O -m comment --comment \"other traffic to ns1/svc1:p80 will be dropped by \
             KUBE-PROXY-FIREWALL\"",
            "nat: -A KUBE-SERVICES -d 1.2.3.4/32 -p tcp -m comment --comment \"ns1/svc1:p80 loadbalancer IP\" -m tcp \
             --dport 80 -j KUBE-FW-XPGD46QRK7WJZT7O",
            "filter: -A KUBE-PROXY-FIREWALL -d 1.2.3.4/32 -p tcp -m comment --comment \"ns1/svc1:p80 traffic not \
             accepted by KUBE-FW-XPGD46QRK7WJZT7O\" -m tcp --dport 80 -j DROP",
        ]
    );
}

#[test]
fn ipv6_rules_use_ipv6_syntax() {
    let config = config();
    let mut service = service(
        "ns1",
        "svc1",
        "fd00:96::41",
        &[Port::new("p80", Protocol::Tcp, 80)],
    );
    service.ports[0].node_port = Some(3001);
    let lines = printed(
        Family::Ipv6,
        &config,
        service.clone(),
        &[("fd00:244::1", "")],
    );
    assert_eq!(
        lines,
        [
            "-A KUBE-SVC-XPGD46QRK7WJZT7O ! -s fd00:244::/64 -d fd00:96::41/128 -p tcp -m comment --comment \
             \"ns1/svc1:p80 cluster IP\" -m tcp --dport 80 -j KUBE-MARK-MASQ",
            "-A KUBE-SVC-XPGD46QRK7WJZT7O -m comment --comment \"ns1/svc1:p80 -> [fd00:244::1]:80\" -j \
             KUBE-SEP-MDMHKPHV3LTIZCGW",
            "-A KUBE-EXT-XPGD46QRK7WJZT7O -m comment --comment \"masquerade traffic for ns1/svc1:p80 external \
             destinations\" -j KUBE-MARK-MASQ",
            "-A KUBE-EXT-XPGD46QRK7WJZT7O -j KUBE-SVC-XPGD46QRK7WJZT7O",
            "-A KUBE-SEP-MDMHKPHV3LTIZCGW -s fd00:244::1/128 -m comment --comment \"ns1/svc1:p80\" -j KUBE-MARK-MASQ",
            "-A KUBE-SEP-MDMHKPHV3LTIZCGW -p tcp -m comment --comment \"ns1/svc1:p80\" -m tcp -j DNAT \
             --to-destination [fd00:244::1]:80",
            "nat: -A KUBE-SERVICES -d fd00:96::41/128 -p tcp -m comment --comment \"ns1/svc1:p80 cluster IP\" -m tcp \
             --dport 80 -j KUBE-SVC-XPGD46QRK7WJZT7O",
            // Not at the loopback address, and so not counted there.
            "nat: -A KUBE-NODEPORTS -p tcp -m comment --comment \"ns1/svc1:p80\" -m tcp --dport 3001 -j \
             KUBE-EXT-XPGD46QRK7WJZT7O",
        ]
    );
    let rejected = printed(Family::Ipv6, &config, service, &[]);
    assert!(rejected[0].ends_with("-j REJECT --reject-with icmp6-port-unreachable"));
    let rules = Rules {
        family: Family::Ipv6,
        config: &config,
        comments: true,
    };
    let last = rules.last(Shared::Services);
    assert!(last[0].to_string().starts_with("! -d ::1/128 -m comment"));
    assert!(rules.rules_in_shared_chains("filter").is_empty());
    let jumps = rules.jumps("filter");
    assert!(jumps.iter().all(|(_, rules)| {
        rules
            .iter()
            .all(|r| r.target != Target::Jump(FIREWALL.into()))
    }));
}

#[test]
fn node_port_addresses_follow_the_configuration() {
    let of = |config: &Config| -> Vec<String> {
        let rules = Rules {
            family: Family::Ipv4,
            config,
            comments: true,
        };
        let last = rules.last(Shared::Services);
        let last = last.iter().map(ToString::to_string);
        last.map(|rule| {
            rule.replace(
                "kubernetes service nodeports; NOTE: this must be the last rule in this chain",
                "…",
            )
        })
        .collect()
    };
    let mut config = config();
    config.localhost_node_ports = false;
    assert_eq!(
        of(&config),
        [
            "! -d 127.0.0.0/8 -m comment --comment \"…\" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS"
        ]
    );
    let these = ["127.0.0.1", "10.200.0.10", "fd00::1"]
        .map(address)
        .to_vec();
    config.node_port_addresses = NodePortAddresses::These(these);
    assert_eq!(
        of(&config),
        ["-d 10.200.0.10/32 -m comment --comment \"…\" -j KUBE-NODEPORTS"]
    );
    config.localhost_node_ports = true;
    assert_eq!(of(&config).len(), 2);
    config.node_port_addresses = NodePortAddresses::These(vec![address("fd00::1")]);
    assert_eq!(of(&config), [""; 0]);
    let networks = ["0.0.0.0/1", "10.200.0.0/16", "fd00::/8"];
    let networks = networks.map(|network| network.parse().unwrap()).to_vec();
    config.node_port_addresses = NodePortAddresses::Networks(networks);
    let rule =
        "-d 0.0.0.0/1 -m comment --comment \"…\" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS";
    assert_eq!(of(&config), [rule]);
    config.localhost_node_ports = false;
    let not_at_loopback = "-d 127.0.0.0/8 -m comment --comment \"…\" -j RETURN";
    assert_eq!(of(&config), [not_at_loopback, rule]);
}

#[test]
fn pod_detection_follows_the_configuration() {
    let first = |detector| {
        let mut config = config();
        config.local_detector = detector;
        printed(Family::Ipv4, &config, plain(), &[("10.180.0.1", "")]).swap_remove(0)
    };
    assert_eq!(
        first(LocalDetector::Interface("cni0".into())),
        "-A KUBE-SVC-XPGD46QRK7WJZT7O -d 172.30.0.41/32 ! -i cni0 -p tcp -m comment --comment \"ns1/svc1:p80 cluster \
         IP\" -m tcp --dport 80 -j KUBE-MARK-MASQ"
    );
    assert!(first(LocalDetector::InterfacePrefix("veth".into())).contains(" ! -i veth+ -p tcp "));
    // Nothing is masqueraded if pods cannot be detected.
    assert!(first(LocalDetector::None).contains("-> 10.180.0.1:80"));
    let other_family = LocalDetector::Networks(vec!["fd00::/64".parse().unwrap()]);
    assert!(first(other_family).contains("-> 10.180.0.1:80"));
}

#[test]
fn large_clusters_omit_endpoint_comments() {
    let config = config();
    let mut services = Services::new();
    add(
        &mut services,
        from_outside(),
        &[("10.180.0.1", ""), ("10.180.0.2", "")],
        &[80],
    );
    let ports = ports(&services, Family::Ipv4, &config);
    let rules = Rules {
        family: Family::Ipv4,
        config: &config,
        comments: false,
    };
    let port = Arc::clone(ports.values().next().unwrap());
    let own = rules.own(&port);
    let (_, balance) = &own[0];
    assert_eq!(
        balance[1].to_string(),
        "-m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-SXIVWICOYRO3J4NJ"
    );
    let (_, endpoint) = &own[2];
    let endpoint: Vec<_> = endpoint.iter().map(ToString::to_string).collect();
    assert_eq!(
        endpoint,
        [
            "-s 10.180.0.1/32 -j KUBE-MARK-MASQ",
            "-p tcp -m tcp -j DNAT --to-destination 10.180.0.1:80"
        ]
    );
}

#[test]
fn node_settings_determine_drop_rules() {
    let forward = |config: &Config| {
        let rules = Rules {
            family: Family::Ipv4,
            config,
            comments: true,
        };
        let (_, rules) = rules.fixed("filter").swap_remove(1);
        rules.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut config = Config::new("node1");
    config.masquerade_mark = 1 << 20;
    let rules = forward(&config);
    assert_eq!(rules[0], "-m conntrack --ctstate INVALID -j DROP");
    assert!(rules[1].contains("-m mark --mark 0x100000/0x100000 -j ACCEPT"));
    config.tcp_be_liberal = true;
    assert_eq!(forward(&config), rules[1..]);
}

#[test]
fn probabilities_match_iptables() {
    for many in 2..=5000 {
        let text = format!(
            "-m statistic --mode random --probability {:.10}",
            1.0 / f64::from(many)
        );
        let read = Rule::parse(Family::Ipv4, &text).unwrap();
        let [Match::Statistic(read)] = &read.matches[..] else {
            panic!("{text}");
        };
        let probability = probability_of_one_in(usize::try_from(many).unwrap());
        assert_eq!(read.mode, StatisticMode::Random { probability }, "{text}");
    }
}

#[test]
fn long_comments_are_cut() {
    let Match::Comment(cut) = comment("ü".repeat(200)) else {
        unreachable!("the match is a comment");
    };
    assert_eq!(cut.as_bytes(), "ü".repeat(127).as_bytes());
    assert_eq!(comment("a\0b"), comment("a"));
}
