//! `doctor` reports the faults in the tables of a node, and reports nothing for a node without
//! faults.

use std::process::Command;

use crate::common::iptables::open;
use crate::common::sandbox;
use crate::common::tools::{Tools, run_on};
use chainwright::iptables::nft::Profile;
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Backend, Family};
use chainwright_testing::Sandbox;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_chainwright");

/// Rulesets that several versions of kube-proxy wrote.
const CLEAN: [&str; 3] = [
    "kube-proxy-1.20-4-services.save",
    "kube-proxy-1.20-300-services.save",
    "kube-proxy-1.36-iptables.save",
];

fn data(name: &str) -> String {
    let path = crate::common::in_workspace(format!("tests/data/{name}"));
    std::fs::read_to_string(path).unwrap()
}

/// Returns a node on which kube-proxy runs. Its tables have the sets and the accounting that
/// `doctor` expects.
fn node(backend: Backend, text: &str) -> Sandbox {
    let sandbox = sandbox();
    for name in [
        "ct_state_invalid_dropped_pkts",
        "localhost_nps_accepted_pkts",
    ] {
        crate::common::accounting::add(&sandbox, name);
    }
    let options = RestoreOptions::default();
    // The default profile: the form that every version reads.
    let mut iptables = open(&sandbox, backend).with_profile(Profile::default());
    let restored = iptables.restore(Family::Ipv4, text, &options);
    restored.unwrap();
    sandbox
}

/// Returns standard output and the exit code.
fn doctor(sandbox: &Sandbox, arguments: &[&str]) -> (String, Option<i32>) {
    let run = || {
        let mut command = Command::new(PROGRAM);
        command.arg("check").args(arguments);
        run_on(&mut command, b"").unwrap()
    };
    let output = sandbox.run(run).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!error.contains("panicked"), "{error}");
    (
        String::from_utf8(output.stdout).unwrap(),
        output.status.code(),
    )
}

fn findings(sandbox: &Sandbox, arguments: &[&str]) -> Vec<Value> {
    let (text, code) = doctor(sandbox, &[&["--json"], arguments].concat());
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["risk"], Value::from(code == Some(1)), "{text}");
    document["findings"].as_array().unwrap().clone()
}

/// Checks that every line has at most 80 columns, except for longer words.
fn check_width(text: &str) {
    for line in text.lines() {
        let is_one_word = line.trim().split(' ').count() == 1;
        assert!(line.chars().count() <= 80 || is_one_word, "{line}");
    }
}

/// Tables that clients wrote have no faults, in either backend.
#[test]
fn reports_no_false_alarms() {
    for file in CLEAN {
        for backend in [Backend::Nft, Backend::Legacy] {
            let sandbox = node(backend, &data(file));
            assert_eq!(
                findings(&sandbox, &[]),
                Vec::<Value>::new(),
                "{file} {backend}"
            );
            let (text, code) = doctor(&sandbox, &[]);
            assert_eq!(code, Some(0), "{text}");
            assert!(text.starts_with("examined: table ip "), "{text}");
            check_width(&text);
        }
    }
    // The other form of kube-proxy has a chain for later.
    let sandbox = sandbox();
    let nft = data("kube-proxy-1.36-nftables.nft");
    Tools::new(&sandbox).run_with("nft -f -", &nft);
    let found = findings(&sandbox, &[]);
    let [one] = &found[..] else {
        panic!("{found:?}")
    };
    let keys = ["severity", "kind", "family", "chain"].map(|key| one[key].as_str().unwrap());
    assert_eq!(keys, ["note", "unreferenced", "ip6", "reject-chain"]);
    // An empty namespace has none either.
    let nothing = crate::common::sandbox();
    assert_eq!(doctor(&nothing, &[]), (String::new(), Some(0)));
}

/// A fault: the commands that cause it, and the expected finding: its kind, family, table, chain
/// and rule number.
struct Case {
    run: &'static [&'static str],
    kind: &'static str,
    place: (&'static str, Option<&'static str>),
    chain: Option<&'static str>,
    number: Option<u64>,
    /// A part of the message.
    message: &'static str,
}

const fn fault(
    run: &'static [&'static str],
    kind: &'static str,
    place: (&'static str, Option<&'static str>),
    chain: Option<&'static str>,
    number: Option<u64>,
    message: &'static str,
) -> Case {
    Case {
        run,
        kind,
        place,
        chain,
        number,
        message,
    }
}

const FILTER: (&str, Option<&str>) = ("ip", Some("filter"));
const INPUT: Option<&str> = Some("INPUT");

/// Faults that the real tools add to kube-proxy's rules in nf_tables; its own rules in `INPUT`
/// are the first three.
const FAULTS: &[Case] = &[
    fault(
        &[
            "iptables-nft -A INPUT -m comment --comment \"kubernetes health check service ports\" -j KUBE-NODEPORTS",
        ],
        "duplicate",
        FILTER,
        INPUT,
        Some(5),
        "of rule ",
    ),
    fault(
        &[
            "iptables-nft -A INPUT -s 192.0.2.1/32 -j DROP",
            "iptables-nft -A INPUT -i lo -j ACCEPT",
            "iptables-nft -A INPUT -s 192.0.2.1/32 -j DROP",
        ],
        "duplicate",
        FILTER,
        INPUT,
        Some(7),
        "of rule 5",
    ),
    // The fault that k0s had.
    fault(
        &[
            "iptables-nft -F KUBE-FIREWALL",
            "iptables-nft -A KUBE-FIREWALL -m comment --comment \"kubernetes firewall for dropping marked packets\" -m mark --mark 0x8000/0x8000 -j DROP",
        ],
        "misread",
        FILTER,
        Some("KUBE-FIREWALL"),
        Some(1),
        "drops everything",
    ),
    fault(
        &["iptables-nft -A INPUT -p tcp --dport 22 -j ACCEPT"],
        "misread",
        FILTER,
        INPUT,
        Some(5),
        "accepts more",
    ),
    fault(
        &["iptables-nft -A INPUT -p tcp --tcp-flags SYN,ACK SYN -j DROP"],
        "misread",
        FILTER,
        INPUT,
        Some(5),
        "drops more",
    ),
    fault(
        &["iptables-nft -A INPUT -p tcp --dport 4:65535 -j ACCEPT"],
        "hidden",
        FILTER,
        None,
        None,
        "not shown by iptables 1.8.7 (",
    ),
    fault(
        &["iptables-nft -A INPUT -j NFLOG --nflog-group 3"],
        "hidden",
        FILTER,
        None,
        None,
        "1.8.7",
    ),
    fault(
        &["iptables-nft -t nat -A OUTPUT -p tcp -j REDIRECT --random"],
        "misread",
        ("ip", Some("nat")),
        Some("OUTPUT"),
        Some(2),
        "1.8.7 and 1.8.8",
    ),
    // The interface after the address, as 1.8.10 and later write it.
    fault(
        &[
            "nft add rule ip filter FORWARD ip saddr 172.17.0.0/16 oifname != docker0 counter accept",
        ],
        "misread",
        FILTER,
        Some("FORWARD"),
        None,
        "1.8.8",
    ),
    fault(
        &["nft add rule ip filter INPUT ct state new counter drop"],
        "hidden",
        FILTER,
        None,
        None,
        "rule 5 of chain INPUT",
    ),
    // A name that is resolved on the machine that reads the rule.
    fault(
        &["nft add rule ip filter INPUT iif lo accept"],
        "misread",
        FILTER,
        INPUT,
        Some(5),
        "matches other packets",
    ),
    fault(
        &["nft add rule ip filter INPUT ip dscp 5 drop"],
        "unread",
        FILTER,
        INPUT,
        Some(5),
        "iptables-save stops there",
    ),
    fault(
        &["nft add rule ip filter INPUT ip saddr { 192.0.2.1, 192.0.2.7 } drop"],
        "misread",
        FILTER,
        INPUT,
        Some(5),
        "drops everything",
    ),
    fault(
        &["nft add chain ip filter early { type filter hook input priority -50 ; }"],
        "chain_not_expressible",
        FILTER,
        Some("early"),
        None,
        "its hook or priority is not that of a built-in chain",
    ),
    fault(
        &["nft add chain ip filter early { type filter hook input priority -50 ; }"],
        "hidden",
        FILTER,
        None,
        None,
        "",
    ),
    fault(
        &["nft add chain ip filter of-a-name-longer-than-iptables-can-have"],
        "chain_not_expressible",
        FILTER,
        Some("of-a-name-longer-than-iptables-can-have"),
        None,
        "28 bytes",
    ),
    fault(
        &["iptables-legacy -A INPUT -s 192.0.2.1/32 -j DROP"],
        "both_backends",
        ("ip", None),
        None,
        None,
        "1 in the legacy tables",
    ),
    fault(
        &[
            "ip6tables-legacy -A INPUT -s 2001:db8::1 -j DROP",
            "ip6tables-nft -A INPUT -s 2001:db8::1 -j DROP",
        ],
        "both_backends",
        ("ip6", None),
        None,
        None,
        "1 in nf_tables and 1 in the legacy tables",
    ),
    fault(
        &["iptables-legacy -t mangle -L"],
        "empty_legacy",
        ("ip", Some("mangle")),
        None,
        None,
        "no rules",
    ),
    fault(
        &["nft add table ip nat { flags dormant ; }"],
        "dormant",
        ("ip", Some("nat")),
        None,
        None,
        "no packet",
    ),
    fault(
        &[
            "iptables-nft -A FORWARD -j DROP",
            "iptables-nft -A FORWARD -i eth0 -j ACCEPT",
            "iptables-nft -A FORWARD -i eth1 -j ACCEPT",
        ],
        "unreachable",
        FILTER,
        Some("FORWARD"),
        None,
        "matches them all",
    ),
    fault(
        &["ip6tables-nft -P INPUT DROP"],
        "drops_all",
        ("ip6", Some("filter")),
        INPUT,
        None,
        "drops every packet",
    ),
    fault(
        &["iptables-legacy -t mangle -N KUBE-IPTABLES-HINT"],
        "agents_in_both",
        ("ip", None),
        None,
        None,
        "KUBE-IPTABLES-HINT",
    ),
    fault(
        &["nft add set ip nat mine { type ipv4_addr ; }"],
        "objects",
        ("ip", Some("nat")),
        None,
        None,
        "a set, map",
    ),
    fault(
        &[
            "iptables-nft -t nat -F PREROUTING",
            "iptables-nft -t nat -F OUTPUT",
        ],
        "unreached",
        ("ip", Some("nat")),
        Some("KUBE-SERVICES"),
        None,
        "no rule jumps to it",
    ),
    fault(
        &["nft add rule ip filter INPUT meta mark set ct mark"],
        "not_expressible",
        FILTER,
        INPUT,
        Some(5),
        "",
    ),
    fault(
        &[
            "iptables-legacy -A OUTPUT -d 192.0.2.1/32 -j REJECT",
            "iptables-legacy -A OUTPUT -d 192.0.2.1/32 -j REJECT",
        ],
        "duplicate",
        FILTER,
        Some("OUTPUT"),
        Some(2),
        "of rule 1",
    ),
];

#[test]
fn faults_are_found() {
    // Faults are added to the rules that exist once, not to those that each service has.
    let of_a_service = |line: &str| {
        let prefixes = ["KUBE-SVC-", "KUBE-SEP-", "KUBE-EXT-", "KUBE-FW-"];
        prefixes.iter().any(|prefix| line.contains(prefix))
    };
    let whole = data("kube-proxy-1.36-iptables.save");
    let rules: Vec<_> = whole.lines().filter(|line| !of_a_service(line)).collect();
    let rules = rules.join("\n") + "\n";
    let mut missed = Vec::new();
    for case in FAULTS {
        let sandbox = node(Backend::Nft, &rules);
        let tools = Tools::new(&sandbox);
        for line in case.run {
            tools.run(line);
        }
        let all = findings(&sandbox, &[]);
        let is_it = |one: &&Value| {
            one["kind"] == case.kind
                && one["family"] == case.place.0
                && one["table"].as_str() == case.place.1
                && one["chain"].as_str() == case.chain
                && (case.number.is_none() || one["number"].as_u64() == case.number)
                && one["message"].as_str().unwrap().contains(case.message)
        };
        let found = all.iter().filter(is_it).count();
        if found != 1 {
            missed.push(format!(
                "{:?}: {found} of {}: {all:#?}",
                case.run, case.kind
            ));
        }
        let (text, _) = doctor(&sandbox, &[]);
        check_width(&text);
        println!("{:?}\n{text}", case.run);
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// A ruleset with findings in nft's own tables.
const NATIVE: &str = "
table inet t {
	set spare {
		type ipv4_addr
	}
	chain in {
		type filter hook input priority 0; policy accept;
		ip saddr 10.0.0.0/8 accept
		ip saddr 10.1.0.0/16 drop
		tcp dport 22 tcp dport 23 drop
	}
}
table ip filter {
	chain INPUT {
		type filter hook input priority 0; policy accept;
		ip saddr 10.0.0.0/8 accept
		ip saddr 10.1.0.0/16 drop
	}
}
";

/// A file and the kernel's tables with the same rules have the same findings, in the tables of nft and of iptables.
#[test]
fn examines_native_tables_and_files() {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with("nft -f -", NATIVE);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules.nft");
    std::fs::write(&file, NATIVE).unwrap();
    let file = file.to_str().unwrap();
    for arguments in [&["--family", "inet"][..], &["--family", "inet", file], &[]] {
        let found = findings(&sandbox, arguments);
        let mut places: Vec<_> = found
            .iter()
            .filter(|one| {
                matches!(
                    one["kind"].as_str(),
                    Some("shadowed" | "contradiction" | "unused")
                )
            })
            .map(|one| {
                let place = one["object"].as_str().or(one["rule"].as_str());
                (
                    one["family"].as_str().unwrap(),
                    one["kind"].as_str().unwrap(),
                    place.unwrap(),
                )
            })
            .collect();
        places.sort_unstable();
        let mut expected = vec![
            ("inet", "contradiction", "tcp dport 22 tcp dport 23 drop"),
            ("inet", "shadowed", "ip saddr 10.1.0.0/16 drop"),
            ("inet", "unused", "spare"),
        ];
        if arguments.is_empty() {
            expected.push(("ip", "shadowed", "ip saddr 10.1.0.0/16 drop"));
        }
        assert_eq!(places, expected, "{arguments:?}");
    }
    let (text, _) = doctor(&sandbox, &["--family", "inet", file]);
    check_width(&text);
    assert!(
        text.contains("warning: table inet t, set spare: no rule uses it\n"),
        "{text}"
    );
}

/// A file that the kernel would reject has jumps to missing chains and loops.
#[test]
fn examines_rejected_files() {
    let sandbox = sandbox();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rules.nft");
    let text = "table ip t {\n chain a {\n jump nowhere\n }\n chain b {\n goto b\n }\n}\n";
    std::fs::write(&file, text).unwrap();
    let found = findings(&sandbox, &[file.to_str().unwrap()]);
    let kinds: Vec<_> = found
        .iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds[..2], ["missing_chain", "loop"], "{found:?}");
}

/// `--sarif` writes the required properties of SARIF 2.1.0, and its references lead to what they name.
#[test]
fn writes_sarif() {
    let sandbox = sandbox();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a b.nft");
    std::fs::write(&file, NATIVE).unwrap();
    let (text, code) = doctor(&sandbox, &["--sarif", file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{text}");
    let log: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(log["version"], "2.1.0");
    assert!(
        log["$schema"]
            .as_str()
            .unwrap()
            .ends_with("sarif-schema-2.1.0.json")
    );
    let [run] = &log["runs"].as_array().unwrap()[..] else {
        panic!("{text}")
    };
    assert_eq!(run["tool"]["driver"]["name"], "chainwright");
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let mut ids: Vec<_> = rules
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    assert!(
        rules
            .iter()
            .all(|rule| rule["shortDescription"]["text"].is_string())
    );
    let places = run["logicalLocations"].as_array().unwrap();
    for (index, place) in places.iter().enumerate() {
        assert!(
            ["name", "fullyQualifiedName", "kind"]
                .iter()
                .all(|key| place[key].is_string())
        );
        let parent = place["parentIndex"].as_u64();
        assert!(
            parent.is_none_or(|parent| (parent as usize) < index),
            "{place}"
        );
    }
    let uri = run["artifacts"][0]["location"]["uri"].as_str().unwrap();
    assert!(
        uri.starts_with("file:///") && uri.ends_with("/a%20b.nft"),
        "{uri}"
    );
    let results = run["results"].as_array().unwrap();
    for result in results {
        let rule = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(result["ruleId"], ids[rule]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let location = &result["locations"][0];
        assert_eq!(location["physicalLocation"]["artifactLocation"]["uri"], uri);
        let place = &location["logicalLocations"][0];
        let named = &places[place["index"].as_u64().unwrap() as usize];
        assert_eq!(place["fullyQualifiedName"], named["fullyQualifiedName"]);
    }
    let shadowed = results
        .iter()
        .find(|one| one["ruleId"] == "shadowed")
        .unwrap();
    assert_eq!(shadowed["level"], "warning");
    let place = &shadowed["locations"][0]["logicalLocations"][0];
    assert_eq!(place["fullyQualifiedName"], "table inet t/chain in/rule 2");
    // The page lists the ids.
    let page = std::fs::read_to_string(crate::common::in_workspace("docs/check.md")).unwrap();
    let (_, table) = page.split_once("\n| id |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let mut listed: Vec<_> = table
        .lines()
        .skip(2)
        .map(|line| line.split('`').nth(1).unwrap())
        .collect();
    ids.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, ids);
}
