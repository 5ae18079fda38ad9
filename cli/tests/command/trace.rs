//! Runs `graph`, `trace`, `explain`, `why` and `diff --packets` as programs on kube-proxy's rulesets and on
//! small ones.
mod explain;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::common::sandbox;
use crate::common::tools::run_on;
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Family, Iptables};
use chainwright::nft::{Connection, Scope, Snapshot};
use chainwright::xt;
use chainwright_kube::explain::{ChainInfo, Role};
use chainwright_kube::frontend::{Frontend, frontends, node_port_addresses};
use chainwright_lang::Script;
use chainwright_testing::FakeKernel;
use chainwright_trace::graph::Graph;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");
const MANIFESTS: &str = include_str!("../../../tests/data/services.yaml");
const IPTABLES: &str = "tests/data/kube-proxy-1.36-iptables.save";
const NFTABLES: &str = "tests/data/kube-proxy-1.36-nftables.nft";
const OLD: &str = "tests/data/kube-proxy-1.20-300-services.save";

/// Returns exit code, output and errors of a run. Checks that the output is no wider than a
/// terminal.
#[track_caller]
fn run(arguments: &str, input: &str) -> (i32, String, String) {
    run_words(arguments, &[], input)
}

/// Runs the command with these words, and with arguments that can contain blanks.
fn run_words(arguments: &str, more: &[&str], input: &str) -> (i32, String, String) {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split_whitespace()).args(more);
    command.current_dir(crate::common::in_workspace(""));
    let output = run_on(&mut command, input.as_bytes()).unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    if !arguments.contains("--json") && !arguments.contains("--format") {
        for line in out.lines() {
            assert!(line.chars().count() <= 80, "{arguments}: {line}");
            assert_eq!(line.trim_end(), line, "{arguments}");
        }
    }
    (output.status.code().unwrap(), out, err)
}

#[track_caller]
fn done(arguments: &str, input: &str) -> String {
    let (code, out, err) = run(arguments, input);
    assert_eq!(code, 0, "{arguments}: {out}{err}");
    out
}

/// `namespace/name:port`, cluster IP, protocol, port.
type Port = (String, String, u8, u16);

/// `namespace/name:port`, protocol, port.
type NodePort = (String, u8, u16);

/// Returns the ports of services in the manifests, and node ports.
fn manifests() -> (BTreeSet<Port>, BTreeSet<NodePort>) {
    let (mut addresses, mut node_ports) = (BTreeSet::new(), BTreeSet::new());
    for document in MANIFESTS.split("\n---") {
        let object: Value = serde_saphyr::from_str(document).unwrap();
        if object["kind"] != "Service" {
            continue;
        }
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let metadata = &object["metadata"];
        let service = format!(
            "{}/{}",
            text(&metadata["namespace"]),
            text(&metadata["name"])
        );
        for port in object["spec"]["ports"].as_array().unwrap() {
            let name = match port["name"].as_str() {
                None | Some("") => service.clone(),
                Some(name) => format!("{service}:{name}"),
            };
            let protocol = match port["protocol"].as_str() {
                None | Some("TCP") => 6,
                Some("UDP") => 17,
                Some("SCTP") => 132,
                other => panic!("{other:?}"),
            };
            let number = |value: &Value| u16::try_from(value.as_u64().unwrap()).unwrap();
            let mut all = vec![text(&object["spec"]["clusterIP"])];
            let external = object["spec"]["externalIPs"].as_array();
            all.extend(external.into_iter().flatten().map(text));
            for address in all {
                addresses.insert((name.clone(), address, protocol, number(&port["port"])));
            }
            if port["nodePort"].is_number() {
                node_ports.insert((name.clone(), protocol, number(&port["nodePort"])));
            }
        }
    }
    (addresses, node_ports)
}

/// Returns the ruleset of a text, in memory.
fn snapshot(file: &str) -> Snapshot {
    let text = std::fs::read_to_string(crate::common::in_workspace(file)).unwrap();
    let fake = FakeKernel::new();
    let connect = || -> Connection { fake.connect().unwrap() };
    if file.ends_with(".save") {
        let mut iptables = Iptables::over(connect());
        iptables
            .restore(Family::Ipv4, &text, &RestoreOptions::default())
            .unwrap();
    } else {
        let script = Script::parse(file, &text).unwrap();
        let nothing = connect().snapshot(Scope::all()).unwrap();
        let change = script.transaction(Some(&nothing)).unwrap();
        connect().commit(change.transaction()).unwrap();
    }
    connect().snapshot(Scope::all()).unwrap()
}

/// For every version and mode: each port of each service in the manifests has its name, addresses
/// and node ports, and there are no others.
#[test]
fn every_service_is_found_by_its_name() {
    let (addresses, node_ports) = manifests();
    assert!(addresses.len() > 300 && node_ports.len() >= 2);
    for file in [IPTABLES, NFTABLES, OLD] {
        let snapshot = snapshot(file);
        let found = frontends(&snapshot, []);
        let of = |frontend: &Frontend| frontend.service.clone().unwrap();
        let with_address: BTreeSet<_> = found
            .iter()
            .filter_map(|one| Some((of(one), one.address?.to_string(), one.protocol, one.port)))
            // Excludes the cluster's own service and the address in the load balancer's status.
            .filter(|(service, address, ..)| {
                service != "default/kubernetes:https" && address != "203.0.113.200"
            })
            .collect();
        let expected: BTreeSet<_> = addresses.iter().cloned().collect();
        assert_eq!(with_address, expected, "{file}");
        let without: BTreeSet<_> = found
            .iter()
            .filter(|one| one.address.is_none())
            .map(|one| (of(one), one.protocol, one.port))
            .collect();
        assert_eq!(without, node_ports, "{file}");
        let node = node_port_addresses(&snapshot);
        assert_eq!(
            node.iter().any(|one| one.to_string() == "10.200.0.10"),
            file == NFTABLES
        );
    }
}

/// Every chain of a service names its service.
#[test]
fn every_chain_of_a_service_is_named() {
    let (addresses, _) = manifests();
    let mut services: BTreeSet<String> = addresses.into_iter().map(|(name, ..)| name).collect();
    services.insert("default/kubernetes:https".to_owned());
    for file in [IPTABLES, NFTABLES, OLD] {
        let mut graph = Graph::new();
        graph.add_snapshot(&snapshot(file));
        let mut named: BTreeMap<String, usize> = BTreeMap::new();
        for node in graph.nodes() {
            let comment = node
                .comment
                .as_ref()
                .map(|comment| comment.as_slice().into());
            let Some(part) = ChainInfo::of(&node.name, comment) else {
                continue;
            };
            let of_service = [Role::Service, Role::Endpoint, Role::External, Role::Local];
            if of_service.contains(&part.role) {
                let port = part.port.unwrap_or_else(|| panic!("{file}: {}", node.name));
                assert!(
                    services.contains(&port),
                    "{file}: {} belongs to {port:?}",
                    node.name
                );
                *named.entry(port).or_default() += 1;
            }
        }
        // All services with endpoints have chains.
        assert!(named.len() >= services.len() - 1, "{file}: {}", named.len());
    }
}

/// Every endpoint is chosen with the same probability, and the output lists them.
#[test]
fn endpoints_have_their_probabilities() {
    for file in [IPTABLES, NFTABLES, OLD] {
        let out = done(&format!("trace azure-vote-front --file {file}"), "");
        for endpoint in ["10.244.1.5:80", "10.244.1.6:80"] {
            let line = format!("50.0 %  forwarded to {endpoint}, masquerade");
            assert!(out.contains(&line), "{file}: {out}");
        }
        assert!(
            out.contains("service default/azure-vote-front"),
            "{file}: {out}"
        );
        // The cluster IP with its port and the node port lead to the same service.
        let by_address = done(&format!("trace 10.96.10.10:80 --file {file}"), "");
        assert!(
            by_address.contains("50.0 %  forwarded to 10.244.1.6:80"),
            "{file}: {by_address}"
        );
        let by_port = done(&format!("trace 30450 --file {file}"), "");
        assert!(
            by_port.contains("50.0 %  forwarded to 10.244.1.6:80"),
            "{file}: {by_port}"
        );
        // A pod's packets are not masqueraded, unless they come back to it.
        let inside = format!("trace 10.96.10.10 --from 10.244.9.9 --file {file}");
        let inside = done(&inside, "");
        assert!(
            inside.contains("50.0 %  forwarded to 10.244.1.5:80\n"),
            "{file}: {inside}"
        );
    }
}

#[test]
fn explains_why_no_answer_is_possible() {
    for (file, why) in [
        (IPTABLES, "default/empty:http has no"),
        (NFTABLES, "no endpoints"),
        (OLD, "default/empty:http has no"),
    ] {
        let out = done(&format!("trace default/empty:http --file {file}"), "");
        assert!(out.contains("100.0 %  rejected with"), "{file}: {out}");
        assert!(out.contains(why), "{file}: {out}");
    }
    // A source that the load balancer does not serve.
    let firewall = "trace 203.0.113.200:443 --from 192.0.2.9 --file";
    for file in [IPTABLES, NFTABLES] {
        let out = done(&format!("{firewall} {file}"), "");
        assert!(out.contains("100.0 %  dropped"), "{file}: {out}");
        assert!(out.contains("default/lb-local:https"), "{file}: {out}");
    }
}

#[test]
fn json_contains_the_evaluation() {
    let out = done(
        &format!("trace azure-vote-front --json --file {NFTABLES}"),
        "",
    );
    let document: Value = serde_json::from_str(&out).unwrap();
    let traces = document["traces"].as_array().unwrap();
    assert_eq!(traces.len(), 2);
    for trace in traces {
        assert_eq!(trace["service"], "default/azure-vote-front");
        let ends = trace["trace"]["ends"].as_array().unwrap();
        let sum: f64 = ends
            .iter()
            .map(|end| end["probability"].as_f64().unwrap())
            .sum();
        assert!((sum - 1.0).abs() < 1e-9, "{trace}");
    }
}

#[test]
fn reports_invalid_arguments() {
    for (arguments, code, part) in [
        (
            "trace nothing --file",
            1,
            "the rules have no service \"nothing\"",
        ),
        ("trace 1.2.3.4 --file", 1, "the rules have no service"),
        (
            "trace tpc any any --file",
            2,
            "\"tpc\" is not a protocol: expected tcp, udp",
        ),
        ("trace tcp any --file", 2, "three arguments"),
        (
            "trace tcp host:80 any --file",
            2,
            "host names are not looked up",
        ),
        ("trace tcp 10.0.0.1 fd00::1 --file", 2, "different families"),
        (
            "trace tcp any any --mark x --file",
            2,
            "not a 32-bit number",
        ),
        ("trace --why icmp any:1 any --file", 2, "icmp has no ports"),
        (
            "trace tcp any any --from 192.0.2.1 --file",
            2,
            "--from can only be used with a service",
        ),
        (
            "graph --service nothing",
            1,
            "no such chain of a service \"nothing\"",
        ),
        ("graph --chain nothing", 1, "no such chain \"nothing\""),
    ] {
        let (was, out, err) = run(&format!("{arguments} {NFTABLES}"), "");
        assert_eq!(was, code, "{arguments}: {out}{err}");
        assert!(err.contains(part), "{arguments}: {err}");
    }
    let (code, _, err) = run("trace tcp any any --file /nonexistent", "");
    assert!(code == 2 && err.contains("/nonexistent"), "{err}");
    let (code, _, err) = run(
        "trace tcp any any --file -",
        "table ip t { chain c { jump gone; }; }",
    );
    assert!(code == 2 && err.contains("is not a ruleset: -:1:"), "{err}");
}

#[test]
fn names_the_table_that_drops_an_accepted_packet() {
    let ruleset = "
        table inet firewalld {
            chain filter_FORWARD { type filter hook forward priority 10; policy drop; ct state established accept; }
        }
        table ip filter {
            chain FORWARD { type filter hook forward priority 0; policy accept; jump KUBE-FORWARD; }
            chain KUBE-FORWARD { tcp dport 80 accept; }
        }";
    let packet = "tcp 10.0.0.1:1000 10.0.0.2:80 --file -";
    let out = done(&format!("trace --why {packet}"), ruleset);
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "100.0 % dropped",
        "by inet firewalld filter_FORWARD, its policy in forward",
        "owner: firewalld",
        "although ip filter KUBE-FORWARD rule 1 (kube-proxy) accepts it in forward",
    ] {
        assert!(flat.contains(part), "{part}: {out}");
    }
    // In this table nothing drops the packet.
    let (code, out, _) = run(&format!("trace --why {packet} --table filter"), ruleset);
    assert!(
        code == 1 && out.contains("Nothing in scope stops it."),
        "{out}"
    );
    let (code, _, _) = run(
        &format!("trace --why {packet} --state established"),
        ruleset,
    );
    assert_eq!(code, 1);
    let json = done(&format!("trace --why {packet} --json"), ruleset);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["stopped"][0]["by"]["owner"], "firewalld");
    assert_eq!(json["stopped"][0]["accepted_by"][0]["owner"], "kube-proxy");
}

/// If the addresses leave the direction open, `--why` tries every direction, and `trace` names the one that it assumes.
#[test]
fn an_unknown_direction_is_tried_or_reported() {
    let ruleset = "
        table inet filter {
            chain input { type filter hook input priority 0; tcp dport 22 drop; }
            chain output { type filter hook output priority 0; ip daddr 10.0.0.9 drop; }
        }";
    let why = |packet: &str| run(&format!("trace --why {packet} --file -"), ruleset);
    let (code, out, _) = why("tcp 10.0.0.1 10.0.0.2:22");
    assert_eq!(code, 0, "{out}");
    let blocks = [
        "tcp 10.0.0.1 → 10.0.0.2:22, through this machine, new\n  Nothing in scope stops it.\n",
        "tcp 10.0.0.1 → 10.0.0.2:22, to this machine, new\n  100.0 %  dropped\n",
        "tcp 10.0.0.1 → 10.0.0.2:22, from this machine, new\n  Nothing in scope stops it.\n",
    ];
    for block in blocks {
        assert!(out.contains(block), "{block}{out}");
    }
    let (_, out, _) = why("tcp 10.0.0.1 10.0.0.9:80");
    assert!(
        out.contains("by inet filter output rule 1 in output"),
        "{out}"
    );
    // Known addresses and a given direction leave one.
    for (packet, code, directions) in [
        ("tcp 10.0.0.1 10.0.0.2:22 --own 10.0.0.2", 0, 1),
        ("tcp 10.0.0.1 10.0.0.2:22 --own 10.0.0.3", 1, 1),
        ("tcp any 10.0.0.2:22 --own 10.0.0.3", 1, 2),
        ("tcp 10.0.0.1 any:22 --own 10.0.0.3", 0, 2),
        ("tcp 10.0.0.1 127.0.0.1:22", 0, 1),
        ("tcp 10.0.0.1 10.0.0.2:22 --direction forward", 1, 1),
        ("udp 10.0.0.1 224.0.0.251:22 --own 10.0.0.3", 1, 1),
    ] {
        let (real, out, err) = why(packet);
        let blocks = out.matches(" → ").count();
        assert_eq!((real, blocks), (code, directions), "{packet}: {out}{err}");
    }
    let (_, out, _) = why("udp any 255.255.255.255:67 --own 10.0.0.3");
    assert!(out.contains("to this machine"), "{out}");
    let json = why("tcp 10.0.0.1 10.0.0.2:22 --json").1;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["packets"].as_array().unwrap().len(), 3);
    assert_eq!(json["stopped"][0]["direction"], "in");

    let (_, _, err) = run("trace tcp 10.0.0.1 10.0.0.2:22 --file -", ruleset);
    assert_eq!(
        err,
        "chainwright: assumed --direction forward; in or out is also possible\n"
    );
    let given = "trace tcp 10.0.0.1 10.0.0.2:22 --direction in --file -";
    assert_eq!(run(given, ruleset).2, "");
}

/// `--expect` sets the exit code by the outcome of all paths, in all directions.
#[test]
fn expected_outcomes_set_the_exit_code() {
    let ruleset = "
        table ip t {
            chain pre { type nat hook prerouting priority -100; tcp dport 80 dnat to 10.1.1.1:8080; }
            chain input { type filter hook input priority 0; tcp dport 22 drop; }
            chain forward {
                type filter hook forward priority 0; tcp dport 23 reject; tcp dport 24 queue; ip ttl 1 drop
                tcp dport 26 numgen random mod 2 vmap { 0 : drop, 1 : accept }
            }
        }";
    for (packet, outcome, code) in [
        ("22 --direction in", "dropped", 0),
        ("22 --direction in", "accepted", 1),
        ("22 --direction forward", "accepted", 1),
        ("22", "dropped", 1),
        ("23 --direction forward", "dropped", 0),
        ("24 --direction forward", "accepted", 2),
        ("24 --direction forward", "dropped", 2),
        ("25 --direction in", "accepted", 0),
        ("25 --direction forward", "accepted", 1),
        ("26 --direction forward", "accepted", 1),
        ("80 --direction forward", "dnat to 10.1.1.2:8080", 1),
        ("80 --direction in", "dnat to 10.1.1.1:8080", 1),
        ("81 --direction in", "dnat to 10.1.1.1", 1),
        ("80", "refused", 2),
    ] {
        let (port, options) = packet.split_once(' ').unwrap_or((packet, ""));
        let words = format!("trace tcp 10.0.0.1 10.0.0.2:{port} {options} --file - --expect");
        let (real, out, err) = run_words(&words, &[outcome], ruleset);
        assert_eq!(real, code, "{packet} {outcome}: {out}{err}");
    }
}

/// "Nothing drops it, as far as can be evaluated" is a different answer from "nothing drops it"; it
/// is printed once, however many paths the packet has.
#[test]
fn unknown_outcomes_are_distinct_from_accept() {
    let ruleset = "*filter\n-A INPUT -m mark --mark 1\n-A INPUT -m connmark --mark 1\n-A INPUT -p tcp -j CLUSTERIP --new \
                   --hashmode sourceip --clustermac 01:00:5E:00:00:14 --total-nodes 2 --local-node 1 --hash-init 0\n\
                   COMMIT\n";
    let packet = "trace --why tcp 192.0.2.1:9 192.0.2.2:22 --direction in --file -";
    let (code, out, _) = run(packet, ruleset);
    assert_eq!(code, 2, "{out}");
    assert_eq!(out.matches("The result is incomplete").count(), 1, "{out}");
    let (code, _, err) = run(packet, "table netdev d { chain c { }; }");
    assert_eq!(code, 1);
    assert!(err.contains("not evaluated: table netdev d"), "{err}");
}

/// A pipe can be read only once.
#[test]
fn a_ruleset_may_come_through_a_pipe() {
    let ruleset = "*filter\n-A INPUT -p tcp -j DROP\nCOMMIT\n";
    let packet = "trace --why tcp 192.0.2.1:9 192.0.2.2:22 --direction in --file /dev/stdin";
    let out = done(packet, ruleset);
    assert!(out.contains("by ip filter INPUT rule 1"), "{out}");
}

/// A text and its translation treat all packets alike; a text with one port less does not.
#[test]
fn compares_rulesets_by_packets() {
    let text = "*filter\n:INPUT DROP [0:0]\n:A - [0:0]\n-A INPUT -s 10.0.0.0/24 -j A\n\
                -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
                -A A -p tcp -m tcp --dport 22:23 -j ACCEPT\n-A A -m mark --mark 0x10/0x10 -j ACCEPT\nCOMMIT\n";
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let old = file("old.save", text);
    let translated = file("new.nft", &done(&format!("convert {old}"), ""));
    let out = done(&format!("diff --packets {old} {translated}"), "");
    assert!(
        out.contains("packets were tested, no difference found."),
        "{out}"
    );
    assert!(
        out.contains("The packets use the values in the rules"),
        "{out}"
    );
    let fewer = file("fewer.save", &text.replace("22:23", "22"));
    let (code, out, _) = run(&format!("diff --packets {old} {fewer}"), "");
    assert_eq!(code, 1, "{out}");
    for part in [
        ":23, to this machine",
        "  - delivered to this machine",
        "  + dropped",
        "its policy",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (code, json, _) = run(
        &format!("diff --packets {old} {fewer} --json --tries 500"),
        "",
    );
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, json["tried"].as_u64().unwrap() <= 500), (1, true));
    assert!(json["differences"][0]["old"]["ends"].is_array());
}

/// Graphs of the kernel's rulesets, of both backends, and of a file.
#[test]
fn graphs_of_kernel_and_file() {
    let sandbox = sandbox();
    let ruleset = "*filter\n:INPUT ACCEPT\n:A -\n-A INPUT -j A\nCOMMIT\n";
    sandbox
        .run(|| {
            for backend in [
                chainwright::iptables::Backend::Nft,
                chainwright::iptables::Backend::Legacy,
            ] {
                let mut iptables = Iptables::open(backend).unwrap();
                iptables
                    .restore(xt::Family::Ipv4, ruleset, &RestoreOptions::default())
                    .unwrap();
            }
            let out = done("graph", "");
            assert!(out.contains("table ip filter: 2 chains, 1 rule\n"), "{out}");
            assert!(
                out.contains("table ip filter (legacy): 4 chains, 1 rule\n"),
                "{out}"
            );
            assert_eq!(out.matches("  └─ A ").count(), 2, "{out}");
            let out = done("graph --backend legacy", "");
            assert_eq!(out.matches("table").count(), 1, "{out}");
            let traced = done("trace tcp 10.0.0.1:1 10.0.0.2:2 --direction in", "");
            assert!(
                traced.contains("legacy ip filter INPUT rule 1: jump A"),
                "{traced}"
            );
            assert!(
                traced.contains("100.0 %  delivered to this machine"),
                "{traced}"
            );
        })
        .unwrap();
    for format in ["text", "dot", "mermaid", "svg"] {
        let out = done(&format!("graph --format {format} {IPTABLES}"), "");
        for name in ["KUBE-SERVICES", "KUBE-NODEPORTS", "×307"] {
            assert!(out.contains(name), "{format}: {name}");
        }
    }
    let out = done(&format!("graph --service lb-local {NFTABLES}"), "");
    assert!(
        out.contains("firewall-5A6HMGKF-default/lb-local/tcp/https"),
        "{out}"
    );
    assert!(!out.contains("kube-dns"), "{out}");
    let (code, out, err) = run(
        "graph -",
        "table ip t { chain a { jump b; }; chain b { goto a; jump gone; }; }",
    );
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("the kernel would reject this:\n-:1:"), "{err}");
    for part in ["  ip t: a → b → a\n", "  ip t: b → gone\n"] {
        assert!(out.contains(part), "{out}");
    }
}

/// Graphs the requested part of a file that the kernel would reject.
#[test]
fn graphs_part_of_an_invalid_ruleset() {
    let ruleset = "table ip t { chain a { jump gone; }; }; table inet t { chain b { jump gone; }; }; \
                   table ip u { chain c { jump gone; }; }";
    for (arguments, printed) in [
        ("", vec!["a", "b", "c"]),
        ("--table t", vec!["a", "b"]),
        ("--family ip", vec!["a", "c"]),
        ("-4 --table u", vec!["c"]),
    ] {
        let out = done(&format!("graph {arguments} -"), ruleset);
        let chains: Vec<_> = out
            .lines()
            .filter(|line| line.starts_with("  ") && line.ends_with("1 rule"))
            .map(|line| line.trim_start().split(' ').next().unwrap())
            .collect();
        assert_eq!(chains, printed, "{arguments}: {out}");
    }
}

/// The devices in a file can be those of another machine.
#[test]
fn devices_named_in_files_need_not_exist() {
    let ruleset = "
        table netdev d {
            chain i { type filter hook ingress device eth7 priority 1; jump c; }
            chain c { }
        }
        table inet t {
            flowtable f { hook ingress priority 0; devices = { eth7, eth8 }; }
            chain g { type filter hook ingress device \"eth9\" priority 0; }
            chain in { type filter hook input priority 0; tcp dport 80 drop; }
        }";
    let packet = "tcp 10.0.0.1:1 10.0.0.2:80 --direction in --file -";
    let (code, out, err) = run(&format!("trace {packet}"), ruleset);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("100.0 %  dropped"), "{out}");
    for part in ["table netdev d", "chain inet t g of a device"] {
        assert!(err.contains(&format!("not evaluated: {part}\n")), "{err}");
    }
    let why = done(&format!("trace --why {packet}"), ruleset);
    assert!(why.contains("by inet t in rule 1"), "{why}");
    let graph = done("graph -", ruleset);
    assert!(
        graph.contains("  i  ingress 1  ") && graph.contains("  └─ c  "),
        "{graph}"
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("devices.nft");
    std::fs::write(&path, ruleset).unwrap();
    let path = path.to_str().unwrap();
    let (code, out, err) = run(&format!("diff --packets {path} {path}"), "");
    assert_eq!(code, 0, "{out}{err}");
    for whose in ["old", "new"] {
        let part = format!("not evaluated: table netdev d (of the {whose} ruleset)\n");
        assert!(err.contains(&part), "{err}");
    }
    let json = done(&format!("diff --packets {path} {path} --json"), "");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["not_traced"]["new"][0], "table netdev d");
}

/// The flat layout contains no service names: queries use addresses and node ports.
#[test]
fn services_of_the_flat_layout() {
    use chainwright_kube::service::{
        Config, Endpoint, EndpointPort, EndpointSlice, Layout, NodePortAddresses, ObjectName, Port,
        Protocol, Service, ServiceProxy, Services,
    };
    let mut services = Services::new();
    let service = |name: &str, address: [u8; 4]| {
        Service::new(ObjectName::new("default", name), [address.into()])
    };
    let mut port = Port::new("http", Protocol::Tcp, 80);
    port.node_port = Some(30_080);
    services.set_service(service("web", [10, 96, 0, 1]).with_port(port));
    services.set_service(service("empty", [10, 96, 0, 2]).with_port(Port::new(
        "http",
        Protocol::Tcp,
        80,
    )));
    services.set_slice(EndpointSlice {
        name: ObjectName::new("default", "web-1"),
        service: "web".into(),
        endpoints: [5, 6]
            .map(|last| Endpoint::new([10, 244, 1, last].into()))
            .to_vec(),
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: Some(8080),
        }],
    });
    let sandbox = sandbox();
    sandbox
        .run(|| {
            let mut config = Config::new("node1");
            config.node_port_addresses = NodePortAddresses::These(vec![[192, 0, 2, 7].into()]);
            let mut proxy = ServiceProxy::open(Layout::Flat, config).unwrap();
            proxy.sync(&mut services).unwrap();
            let directory = tempfile::tempdir().unwrap();
            let file = directory.path().join("kept").to_str().unwrap().to_owned();
            done(&format!("snapshot {file}"), "");
            let node_port = format!("30080 --file {file}");
            for query in ["10.96.0.1:80", "10.96.0.1", &node_port] {
                let out = done(&format!("trace {query}"), "");
                assert!(out.starts_with("a service whose name is not in the rules\n"), "{out}");
                for endpoint in ["10.244.1.5:8080", "10.244.1.6:8080"] {
                    let line = format!("50.0 %  forwarded to {endpoint}");
                    assert!(out.contains(&line), "{query}: {out}");
                }
            }
            let out = done("trace 10.96.0.2", "");
            assert!(out.contains("100.0 %  rejected with"), "{out}");
            let (code, out, err) = run("trace web", "");
            assert_eq!(code, 1, "{out}");
            for part in [
                "the rules have no service \"web\"",
                "they do not contain the names of services that have 3 addresses and node ports in the flat layout",
                "trace 10.96.0.1:80",
            ] {
                assert!(err.contains(part), "{err}");
            }
            let json = done("trace 10.96.0.1 --json", "");
            let json: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["traces"].as_array().unwrap().len(), 1);
            assert!(json["traces"][0].get("service").is_none());
        })
        .unwrap();
}

/// With an empty nf_tables ruleset.
#[test]
fn json_of_legacy_tables_alone() {
    let sandbox = sandbox();
    let ruleset = "*filter\n:INPUT DROP\n:A -\n:B -\n-A INPUT -p tcp -g A\n-A A -j B\n\
                   -A B -m comment --comment \"the port\" -p tcp --dport 80 -j ACCEPT\nCOMMIT\n";
    sandbox
        .run(|| {
            let mut iptables = Iptables::open(chainwright::iptables::Backend::Legacy).unwrap();
            iptables
                .restore(xt::Family::Ipv4, ruleset, &RestoreOptions::default())
                .unwrap();
            for narrowed in ["", "--backend legacy"] {
                let out = done(&format!("graph --json {narrowed}"), "");
                let graph: Value = serde_json::from_str(&out).unwrap();
                let table = serde_json::json!([
                    {"backend": "legacy", "family": "ip", "name": "filter", "dormant": false}
                ]);
                assert_eq!(graph["tables"], table, "{out}");
                let nodes = graph["nodes"].as_array().unwrap();
                let place =
                    |name: &str| nodes.iter().position(|node| node["name"] == name).unwrap();
                let input = &nodes[place("INPUT")];
                assert_eq!(
                    (
                        &input["kind"],
                        &input["hook"],
                        &input["priority"],
                        &input["policy"]
                    ),
                    (&"base".into(), &"input".into(), &0.into(), &"drop".into())
                );
                assert_eq!(graph["edges"].as_array().unwrap().len(), 2);
                for (edge, (from, to, how)) in [("INPUT", "A", "goto"), ("A", "B", "jump")]
                    .iter()
                    .enumerate()
                {
                    let expected = serde_json::json!(
                        {"from": place(from), "to": place(to), "how": how, "count": 1}
                    );
                    assert_eq!(graph["edges"][edge], expected, "{out}");
                }
                for what in ["loops", "dangling", "unreferenced", "unreachable"] {
                    assert_eq!(graph[what], serde_json::json!([]), "{what}");
                }
                let packet = "tcp 192.0.2.1:9 192.0.2.2:80 --direction in";
                let out = done(&format!("trace {packet} --json {narrowed}"), "");
                let traced: Value = serde_json::from_str(&out).unwrap();
                assert_eq!(traced["not_traced"], serde_json::json!([]));
                let ends = traced["traces"][0]["trace"]["ends"].as_array().unwrap();
                assert_eq!(ends.len(), 1, "{out}");
                let steps = ends[0]["steps"].as_array().unwrap();
                let chains: Vec<_> = steps.iter().map(|step| &step["chain"]).collect();
                assert_eq!(chains, ["INPUT", "A", "B"], "{out}");
                for step in steps {
                    assert_eq!(
                        (&step["backend"], &step["family"]),
                        (&"legacy".into(), &"ip".into()),
                        "{out}"
                    );
                }
                assert_eq!(ends[0]["outcome"], "delivered", "{out}");
            }
        })
        .unwrap();
}

/// Fifty thousand chains, as for 10,000 services with four endpoints each. Prints the time for the
/// graph and its output formats (`--nocapture`).
#[test]
fn fifty_thousand_chains() {
    const SERVICES: usize = 10_000;
    use chainwright::nft::expr::Immediate;
    use chainwright::nft::{Chain, Hook, Rule, Table, Transaction};
    use chainwright_trace::graph::ViewOptions;
    let mut tx = Transaction::new();
    let chain = |name: String| Chain::new(chainwright::nft::Family::IP, "nat", name);
    let jump = |from: &str, to: &str| {
        let rule = Rule::new(chainwright::nft::Family::IP, "nat", from.to_owned());
        rule.with(&Immediate::jump(to.to_owned()))
    };
    tx.add(&Table::new(chainwright::nft::Family::IP, "nat"))
        .unwrap();
    tx.add(&chain("PREROUTING".into()).with_hook("nat", Hook::PREROUTING, -100))
        .unwrap();
    for name in ["KUBE-SERVICES", "KUBE-MARK-MASQ"] {
        tx.add(&chain(name.into())).unwrap();
    }
    let service = |number: usize| format!("KUBE-SVC-{number:016}");
    let endpoint = |number: usize, place: usize| format!("KUBE-SEP-{number:015}{place}");
    for number in 0..SERVICES {
        tx.add(&chain(service(number))).unwrap();
        for place in 0..4 {
            tx.add(&chain(endpoint(number, place))).unwrap();
        }
    }
    tx.add(&jump("PREROUTING", "KUBE-SERVICES")).unwrap();
    for number in 0..SERVICES {
        tx.add(&jump("KUBE-SERVICES", &service(number))).unwrap();
        for place in 0..4 {
            tx.add(&jump(&service(number), &endpoint(number, place)))
                .unwrap();
            tx.add(&jump(&endpoint(number, place), "KUBE-MARK-MASQ"))
                .unwrap();
        }
    }
    let snapshot = sandbox()
        .run(|| {
            let mut nft = Connection::open().unwrap();
            nft.commit(&tx).unwrap();
            nft.snapshot(Scope::all()).unwrap()
        })
        .unwrap();
    let start = std::time::Instant::now();
    let mut graph = Graph::new();
    graph.add_snapshot(&snapshot);
    let built = start.elapsed();
    let view = graph.view(&ViewOptions::default());
    let (tree, picture) = (view.tree(80).to_string(), view.svg().to_string());
    eprintln!(
        "graph of {} chains: {built:?}; tree and SVG: {:?}",
        graph.chain_count(),
        start.elapsed()
    );
    assert_eq!(graph.chain_count(), 5 * SERVICES + 3);
    assert_eq!(view.groups().len(), 5);
    assert!(
        tree.contains("KUBE-SEP-* ×40000") && picture.contains("×10000"),
        "{tree}"
    );
}
