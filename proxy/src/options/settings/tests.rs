//! Settings that result from options and files.

use clap::Parser as _;

use super::*;

fn settings(arguments: &[&str]) -> Result<Settings, String> {
    let arguments = ["agent", "--hostname-override", "Node1"]
        .iter()
        .chain(arguments);
    Settings::new(&Options::try_parse_from(arguments).map_err(|e| e.to_string())?)
}

fn with_file(text: &str, arguments: &[&str]) -> Result<Settings, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.yaml");
    let text = format!(
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n{text}"
    );
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    settings(&[&["--config", path], arguments].concat())
}

#[test]
fn defaults_match_kube_proxy_except_the_mode() {
    let settings = settings(&[]).unwrap();
    assert_eq!((settings.mode, &*settings.node), (Mode::Flat, "node1"));
    assert_eq!(settings.health, Some(([0, 0, 0, 0], 10256).into()));
    assert_eq!(settings.metrics, Some(([127, 0, 0, 1], 10249).into()));
    // At the node's primary addresses, none of which is known yet.
    let mut expected = Config::new("node1");
    expected.node_port_addresses = NodePortAddresses::These(Vec::new());
    assert_eq!(settings.config(None).unwrap(), expected);
    assert_eq!(settings.conntrack, Conntrack::default());
}

#[test]
fn options_override_the_config_file() {
    let text = "mode: nftables\nclusterCIDR: 10.244.0.0/16,fd00:1::/56\n\
        nodePortAddresses: [127.0.0.0/8]\nhealthzBindAddress: ''\nmetricsBindAddress: '::1'\n\
        bindAddress: 0.0.0.0\n\
        nftables: { masqueradeBit: 3, masqueradeAll: true, syncPeriod: 1m30s }\n\
        iptables: { masqueradeBit: 5 }\nclientConnection: { kubeconfig: /k }\n\
        conntrack: { min: 1, maxPerCore: 0, tcpEstablishedTimeout: 2h0m0s, tcpCloseWaitTimeout: 0s, \
        tcpBeLiberal: true, udpTimeout: 45s, udpStreamTimeout: null }\n";
    let file = with_file(text, &[]).unwrap();
    let options = settings(&[
        "--proxy-mode=nftables",
        "--cluster-cidr=10.244.0.0/16,fd00:1::/56",
        "--nodeport-addresses=127.0.0.0/8",
        "--healthz-bind-address=0.0.0.0",
        "--metrics-bind-address=[::1]:10249",
        "--iptables-masquerade-bit=3",
        "--masquerade-all",
        "--sync-period=90s",
        "--kubeconfig=/k",
        "--conntrack-min=1",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=2h",
        "--conntrack-tcp-timeout-close-wait=0",
        "--conntrack-tcp-be-liberal",
        "--conntrack-udp-timeout=45s",
    ]);
    let options = options.unwrap();
    assert_eq!(format!("{file:?}"), format!("{options:?}"));
    let config = file.config(None).unwrap();
    assert_eq!(
        (config.masquerade_mark, config.masquerade_all),
        (1 << 3, true)
    );
    // The other family has kube-proxy's default.
    let networks = ["127.0.0.0/8", "::/0"].map(|network| network.parse().unwrap());
    assert_eq!(
        config.node_port_addresses,
        NodePortAddresses::Networks(networks.to_vec())
    );
    let other = with_file(
        text,
        &["--proxy-mode=iptables", "--iptables-masquerade-bit=7"],
    );
    let other = other.unwrap();
    assert_eq!(
        (other.mode, other.masquerade_mark),
        (Mode::Iptables, 1 << 7)
    );
    assert!(other.localhost_node_ports);
}

/// The addresses that kubeadm and others write for health and metrics.
#[test]
fn empty_addresses_of_a_file_are_the_defaults() {
    let kubeadms = "healthzBindAddress: ''\nmetricsBindAddress: ''\n";
    for (file, arguments, health, metrics) in [
        ("", &[][..], "0.0.0.0:10256", "127.0.0.1:10249"),
        (kubeadms, &[], "0.0.0.0:10256", "127.0.0.1:10249"),
        (
            "healthzBindAddress: null\n",
            &[],
            "0.0.0.0:10256",
            "127.0.0.1:10249",
        ),
        ("bindAddress: ''\n", &[], "0.0.0.0:10256", "127.0.0.1:10249"),
        ("bindAddress: '::'\n", &[], "[::]:10256", "[::1]:10249"),
        (
            "bindAddress: 192.0.2.1\n",
            &[],
            "0.0.0.0:10256",
            "127.0.0.1:10249",
        ),
        (
            "bindAddress: 'fd00::1'\nhealthzBindAddress: ''\n",
            &[],
            "[::]:10256",
            "[::1]:10249",
        ),
        (
            "bindAddress: '::'\n",
            &["--bind-address=0.0.0.0"],
            "0.0.0.0:10256",
            "127.0.0.1:10249",
        ),
        (
            kubeadms,
            &["--bind-address=::"],
            "[::]:10256",
            "[::1]:10249",
        ),
        (
            "healthzBindAddress: 10.0.0.1\nmetricsBindAddress: '[::1]'\n",
            &[],
            "10.0.0.1:10256",
            "[::1]:10249",
        ),
        (
            "healthzBindAddress: ':1'\nmetricsBindAddress: '::'\n",
            &[],
            "0.0.0.0:1",
            "[::]:10249",
        ),
        (
            "bindAddress: '::'\nhealthzBindAddress: ':1'\nmetricsBindAddress: '127.0.0.1:2'\n",
            &[],
            "[::]:1",
            "127.0.0.1:2",
        ),
        // Options take precedence; an empty one disables the address.
        (
            kubeadms,
            &["--healthz-bind-address=", "--metrics-bind-address="],
            "",
            "",
        ),
        (
            kubeadms,
            &["--healthz-bind-address=127.0.0.1"],
            "127.0.0.1:10256",
            "127.0.0.1:10249",
        ),
        (
            "healthzBindAddress: 10.0.0.1:1\n",
            &["--healthz-bind-address="],
            "",
            "127.0.0.1:10249",
        ),
    ] {
        let settings = with_file(file, arguments).unwrap();
        let address = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
        assert_eq!(settings.health, address(health), "{file:?} {arguments:?}");
        assert_eq!(settings.metrics, address(metrics), "{file:?} {arguments:?}");
    }
}

/// Every boolean flag accepts Go's forms; the file's value applies if the flag is absent.
#[test]
fn booleans_parse_as_in_go() {
    type Of = fn(&Options) -> Option<bool>;
    let flags: [(&str, Of); 6] = [
        ("demo", |o| o.demo),
        ("cleanup", |o| o.cleanup),
        ("cleanup-kube-proxy", |o| o.cleanup_kube_proxy),
        ("masquerade-all", |o| o.masquerade_all),
        ("conntrack-tcp-be-liberal", |o| o.conntrack_tcp_be_liberal),
        ("iptables-localhost-nodeports", |o| {
            o.iptables_localhost_nodeports
        }),
    ];
    for (name, of) in flags {
        let read = |argument: &str| Options::try_parse_from(["agent", argument]);
        assert_eq!(of(&read("-v2").unwrap()), None);
        assert_eq!(of(&read(&format!("--{name}")).unwrap()), Some(true));
        for (word, value) in [
            ("true", true),
            ("True", true),
            ("TRUE", true),
            ("t", true),
            ("T", true),
            ("1", true),
            ("false", false),
            ("False", false),
            ("FALSE", false),
            ("f", false),
            ("F", false),
            ("0", false),
        ] {
            let options = read(&format!("--{name}={word}")).unwrap();
            assert_eq!(of(&options), Some(value), "--{name}={word}");
        }
        for word in ["", "yes", "no", "2", "tRUE"] {
            assert!(
                read(&format!("--{name}={word}")).is_err(),
                "--{name}={word}"
            );
        }
        // The following argument is not a value.
        assert!(Options::try_parse_from(["agent", &format!("--{name}"), "false"]).is_err());
    }
    // The list above contains all flags of this kind.
    let command = <Options as clap::CommandFactory>::command();
    let all = command.get_arguments().filter(|argument| {
        argument
            .get_value_names()
            .is_some_and(|names| names == ["BOOL"])
            || !argument.get_action().takes_values()
                && !["help", "version"].contains(&argument.get_id().as_str())
    });
    assert_eq!(all.count(), flags.len());
    let text = "nftables: { masqueradeAll: true }\nconntrack: { tcpBeLiberal: true }\n\
        iptables: { masqueradeAll: true, localhostNodePorts: true }\n";
    let of = |arguments: &[&str]| {
        let settings = with_file(text, arguments).unwrap();
        (
            settings.masquerade_all,
            settings.conntrack.tcp_be_liberal,
            settings.localhost_node_ports,
        )
    };
    assert_eq!(of(&[]), (true, true, true));
    let off = [
        "--masquerade-all=false",
        "--conntrack-tcp-be-liberal=0",
        "--iptables-localhost-nodeports=F",
    ];
    assert_eq!(of(&off), (false, false, false));
    assert!(settings(&["--demo=false", "--cleanup"]).is_ok());
    assert!(settings(&["--demo", "--cleanup=false"]).is_ok());
    assert!(settings(&["--demo", "--cleanup"]).is_err());
    assert!(settings(&["--demo", "--kubeconfig=k"]).is_err());
    assert!(settings(&["--cleanup-kube-proxy"]).is_err());
}

#[test]
fn node_port_addresses_match_kube_proxy() {
    let none = || NodePortAddresses::These(Vec::new());
    for (mode, expected) in [
        ("iptables", NodePortAddresses::All),
        ("nftables", none()),
        ("flat", none()),
    ] {
        let settings = settings(&[&format!("--proxy-mode={mode}")]).unwrap();
        // The node is unknown.
        let config = settings.config(None).unwrap();
        assert_eq!(config.node_port_addresses, expected, "{mode}");
        let primary = with_file(
            "nodePortAddresses: [primary]\n",
            &[&format!("--proxy-mode={mode}")],
        );
        let config = primary.unwrap().config(None).unwrap();
        assert_eq!(config.node_port_addresses, none(), "{mode}");
    }
}

/// Networks of only one family leave the other at all its addresses, in every mode: `NewNodePortAddresses` in
/// Kubernetes' `pkg/proxy/util/nodeport_addresses.go` adds the family's whole network.
#[test]
fn node_ports_of_a_family_without_networks_are_everywhere() {
    for (given, expected) in [
        ("10.0.0.0/8", &["10.0.0.0/8", "::/0"][..]),
        ("fd00::/8", &["fd00::/8", "0.0.0.0/0"]),
        ("10.0.0.0/8, fd00::/8", &["10.0.0.0/8", "fd00::/8"]),
        ("0.0.0.0/0", &["0.0.0.0/0", "::/0"]),
    ] {
        let networks = expected.iter().map(|network| network.parse().unwrap());
        let expected = NodePortAddresses::Networks(networks.collect());
        for mode in ["iptables", "nftables", "flat"] {
            let file = format!("nodePortAddresses: [{}]\n", quoted(given));
            let settings = with_file(&file, &[&format!("--proxy-mode={mode}")]).unwrap();
            let config = settings.config(None).unwrap();
            assert_eq!(config.node_port_addresses, expected, "{mode}, {given}");
        }
    }
}

fn quoted(list: &str) -> String {
    let quoted: Vec<_> = list.split(", ").map(|one| format!("{one:?}")).collect();
    quoted.join(", ")
}

#[test]
fn node_object_settings_are_applied() {
    let text = "detectLocalMode: NodeCIDR\nnodePortAddresses: [primary]\n";
    let settings = with_file(text, &[]).unwrap();
    let node = Node {
        name: "node1".into(),
        zone: Some("a".into()),
        addresses: ["10.0.0.7", "192.0.2.7", "fd00::7"]
            .map(|a| a.parse().unwrap())
            .to_vec(),
        pod_networks: vec!["10.244.1.0/24".parse().unwrap()],
    };
    let config = settings.config(Some(&node)).unwrap();
    assert_eq!(
        config.local_detector,
        LocalDetector::Networks(node.pod_networks)
    );
    let primary = ["10.0.0.7", "fd00::7"].map(|a| a.parse().unwrap()).to_vec();
    assert_eq!(
        config.node_port_addresses,
        NodePortAddresses::These(primary)
    );
    assert_eq!(
        (config.zone, config.node_addresses),
        (node.zone, node.addresses)
    );
    assert_eq!(
        settings.config(None).unwrap().local_detector,
        LocalDetector::None
    );
    let bridge = "detectLocalMode: BridgeInterface\ndetectLocal: { bridgeInterface: br0 }\n";
    let bridge = with_file(bridge, &[]).unwrap().config(None).unwrap();
    assert_eq!(
        bridge.local_detector,
        LocalDetector::Interface("br0".to_owned())
    );
}

#[test]
fn invalid_options_are_named() {
    for (text, word) in [
        ("mode: ipvs\n", "mode"),
        ("mode: [\n", "config.yaml"),
        ("clusterCIDR: 10.0.0.0\n", "clusterCIDR"),
        ("nodePortAddresses: [x]\n", "nodePortAddresses"),
        ("detectLocalMode: Magic\n", "detectLocalMode"),
        ("detectLocalMode: BridgeInterface\n", "bridgeInterface"),
        ("nftables: { masqueradeBit: 32 }\n", "masqueradeBit"),
        ("nftables: { syncPeriod: 3x }\n", "syncPeriod"),
        ("nftables: { masqueradeBit: x }\n", "nftables"),
        ("conntrack: { udpTimeout: soon }\n", "conntrack.udpTimeout"),
        ("conntrack: { min: -1 }\n", "conntrack"),
        ("healthzBindAddress: here\n", "here"),
        ("healthzBindAddress: '10256'\n", "10256"),
        ("metricsBindAddress: '127.0.0.1:'\n", "127.0.0.1:"),
        ("bindAddress: here\n", "bindAddress"),
    ] {
        let error = with_file(text, &[]).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
    assert!(settings(&["--iptables-masquerade-bit=32"]).is_err());
    for text in ["", "s", "10", "1x", "99999999999s"] {
        assert!(duration(text).is_err(), "{text}");
    }
}
