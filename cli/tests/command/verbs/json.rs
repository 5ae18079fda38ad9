//! Checks that `--json` writes what `docs/json.md` documents.

use std::collections::BTreeMap;

use super::*;
use crate::common::tools::Tools;

const PAGE: &str = include_str!("../../../../docs/json.md");

/// Returns the keys that a section of the page lists for a verb, with their types.
fn documented(verb: &str) -> BTreeMap<String, String> {
    let section = PAGE.split(&format!("\n## {verb}\n")).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        (cells[1].trim_matches('`').to_owned(), cells[2].to_owned())
    })
    .collect()
}

/// Collects the keys of a document, and checks their types.
fn walk(at: &str, value: &Value, keys: &BTreeMap<String, String>, seen: &mut BTreeSet<String>) {
    if let Some(kind) = keys.get(at) {
        let fits = match kind.trim_end_matches('?') {
            "library object" | "object" => value.is_object(),
            "string" => value.is_string(),
            "string or null" => value.is_string() || value.is_null(),
            "number" => value.is_number(),
            "number or null" => value.is_number() || value.is_null(),
            "boolean" => value.is_boolean(),
            other => panic!("{at}: unknown type {other:?} on the page"),
        };
        assert!(fits, "{at} is documented as {kind}, but is {value}");
        seen.insert(at.to_owned());
        return;
    }
    let under = |what: &str| keys.keys().any(|key| key.starts_with(what));
    match value {
        Value::Object(object) => {
            let dot = if at.is_empty() { "" } else { "." };
            for (key, value) in object {
                walk(&format!("{at}{dot}{key}"), value, keys, seen);
            }
        }
        // An empty list also counts as printed.
        Value::Array(parts) if parts.is_empty() => {
            seen.insert(format!("{at}[]"));
        }
        Value::Array(parts) if under(&format!("{at}[]")) => {
            for part in parts {
                walk(&format!("{at}[]"), part, keys, seen);
            }
        }
        other => panic!("{at:?} is not documented; its value is {other}"),
    }
}

/// Checks that the output of these runs has every key that the page documents for the verb, unless
/// it is optional, and no others.
#[track_caller]
pub(super) fn check(verb: &str, runs: &[&Ran]) {
    let keys = documented(verb);
    let mut seen = BTreeSet::new();
    for output in runs {
        let document: Value = serde_json::from_str(&output.out).unwrap();
        assert_eq!(
            (&document["version"], &document["verb"]),
            (&1.into(), &verb.into())
        );
        walk("", &output.value(), &keys, &mut seen);
    }
    let missing: Vec<_> = keys.keys().filter(|key| !seen.contains(*key)).collect();
    assert!(
        missing.is_empty(),
        "{verb}: documented, but not printed: {missing:?}"
    );
}

/// A match whose result for a packet cannot be evaluated.
const CLUSTER: &str = "*filter\n-A INPUT -d 192.0.2.2/32 -j CLUSTERIP --new --hashmode sourceip --clustermac \
                       01:00:5E:00:00:14 --total-nodes 2 --local-node 1 --hash-init 0\nCOMMIT\n";

#[test]
fn every_key_is_documented_and_every_documented_key_is_printed() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "table inet t {
            set s { type ipv4_addr; elements = { 10.0.0.1 }; }
            chain c { comment \"c\"; ip saddr @s counter drop; }
            chain b { type filter hook input priority -7; policy drop; jump c; }
         }
         table netdev d { flags dormant; chain i { type filter hook ingress device lo priority 1; }; }",
    );
    assert!(
        crate::common::arp::drop_all(&sandbox),
        "this test needs legacy tables"
    );
    tools.run("iptables-legacy -N USER");
    tools.run("iptables-legacy -A USER -p tcp -j DROP");
    let json = |arguments: &str| run(&sandbox, &format!("{arguments} --json"));
    check("chains", &[&json("get chains --rules").expect(0)]);
    let exists = json("exists --table filter --backend legacy USER NONE");
    check("exists", &[&exists.expect(1)]);
    check("rules", &[&json("get rules").expect(0)]);
    check("sets", &[&json("get sets --elements").expect(0)]);
    let service = crate::common::in_workspace("tests/data/kube-proxy-1.36-iptables.save");
    let service = format!(
        "explain svc/default/azure-vote-front --file {}",
        service.display()
    );
    let text = sandbox.run(|| run_here(&["explain", "accept comment \"why\"", "--json"]));
    check(
        "explain",
        &[
            &json("explain b").expect(0),
            &json("explain i").expect(0),
            &json(&service.replace("svc/default/azure-vote-front", "KUBE-FORWARD")).expect(0),
            &json(&service).expect(0),
            &text.unwrap().expect(0),
        ],
    );

    // Files.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kept").to_str().unwrap().to_owned();
    let owner = owned_table(&sandbox);
    check("backup", &[&json(&format!("snapshot {path}")).expect(0)]);
    tools.run("nft add rule inet t c accept");
    tools.run("nft flush chain inet t b");
    tools.run("nft add chain inet t b { policy accept ; }");
    tools.run("nft delete table netdev d");
    tools.run_with(
        "nft -f -",
        "table netdev d { chain i { type filter hook ingress device lo priority 2; }; }",
    );
    let planned = json(&format!("apply --prune {path} --dry-run")).expect(1);
    if owner.is_some() {
        check("reconcile", &[&planned]);
    }
    let owned = owner.is_some();
    if let Some(owner) = owner {
        close_owner(&sandbox, owner);
    }
    // A ruleset that no kernel accepts, and one where one table accepts what another drops.
    let odd = directory
        .path()
        .join("odd.nft")
        .to_str()
        .unwrap()
        .to_owned();
    let ruleset = "
        table ip kube-proxy {
            map m { type ipv4_addr : verdict; elements = { 192.0.2.9 : goto service-ULMVA6XW-ns1/svc1/tcp/p80 } }
            chain service-ULMVA6XW-ns1/svc1/tcp/p80 { accept; }
            chain a { jump b; }
            chain b { jump a; jump gone; }
            chain far { jump farther; }
            chain farther { }
            chain i { type filter hook input priority 0; ip daddr vmap @m; }
        }
        table netdev d { chain c { }; }";
    std::fs::write(&odd, ruleset).unwrap();
    check(
        "graph",
        &[
            &json(&format!("graph {odd}")).expect(0),
            &json("graph").expect(0),
        ],
    );
    let two = directory
        .path()
        .join("two.nft")
        .to_str()
        .unwrap()
        .to_owned();
    let ruleset = "
        table ip a { chain KUBE-A { type filter hook input priority 0; tcp dport 22-23 accept; }; }
        table ip calico { chain i { type filter hook input priority 1; ct mark 1 drop; tcp dport 22 drop; }; }
        table ip proxy {
            map service-ips {
                type ipv4_addr . inet_proto . inet_service : verdict
                elements = { 192.0.2.9 . tcp . 80 : goto service-ULMVA6XW-ns1/svc1/tcp/p80 }
            }
            chain service-ULMVA6XW-ns1/svc1/tcp/p80 { accept; }
        }
        table netdev d { chain c { }; }";
    std::fs::write(&two, ruleset).unwrap();
    let packet = format!("tcp 192.0.2.1:9 192.0.2.2:22 --direction in --file {two}");
    check(
        "trace",
        &[
            &json(&format!("trace {packet}")).expect(0),
            &json(&format!("trace svc1 --file {two} --expect accepted")).expect(0),
        ],
    );
    let opaque = directory.path().join("opaque").to_str().unwrap().to_owned();
    std::fs::write(&opaque, CLUSTER).unwrap();
    let unknown =
        format!("trace --why tcp 192.0.2.1:9 192.0.2.2:22 --direction in --file {opaque}");
    check(
        "why",
        &[
            &json(&format!("trace --why {packet}")).expect(0),
            &json(&unknown).expect(2),
        ],
    );
    let packets = json(&format!("diff --packets {odd} {two}"));
    let other = directory
        .path()
        .join("other.nft")
        .to_str()
        .unwrap()
        .to_owned();
    std::fs::write(
        &other,
        ruleset.replace("tcp dport 22 drop", "tcp dport 24 drop"),
    )
    .unwrap();
    assert_eq!(packets.code, 2, "{}", packets.err);
    let packets = json(&format!("diff --packets {two} {other} --tries 300")).expect(1);
    check(
        "diff",
        &[&json(&format!("diff {path}")).expect(1), &packets],
    );
    let rollback = json(&format!("apply --replace {path}")).expect(0);
    if owned {
        check("rollback", &[&rollback]);
    }

    // iptables' language.
    let text = format!(
        "*filter\n:INPUT DROP [1:2]\n:USER - [0:0]\n-A INPUT -m comment --comment {} -j USER\nCOMMIT\n",
        "c".repeat(300)
    );
    let file = directory.path().join("text");
    fs::write(&file, text).unwrap();
    let restore = json(&format!("apply {}", file.display())).expect(0);
    let keep = format!("apply --keep KUBE-* {}", file.display());
    let planned = format!("apply --dry-run {}", file.display());
    let kept = json(&keep).expect(0);
    check("restore", &[&restore, &kept, &json(&planned).expect(0)]);
    tools.run("nft add rule ip filter USER meta length 5 drop");
    let would = json("delete chains --backend nft --dry-run USER").expect(1);
    check("cleanup", &[&would]);
    tools.run("nft add chain ip filter early { type filter hook prerouting priority -5 ; }");
    check("save", &[&json("get ruleset -o iptables").expect(2)]);
    tools.run("ip6tables-legacy -A INPUT -j ACCEPT");
    let moves = json("convert --in-place --from legacy --to nft -6 --dry-run").expect(0);
    let stays = json("convert --in-place --from nft --to legacy -4 --dry-run --force").expect(2);
    check("migrate", &[&moves, &stays]);
    tools.run("iptables-nft -A OUTPUT -p tcp --dport 22 -j ACCEPT");
    tools.run(
        "nft add table inet own { set spare { type ipv4_addr ; } ; chain c { accept ; drop ; } ; }",
    );
    check("doctor", &[&json("check").expect(1)]);

    // The kubelet chains.
    let none = json("kube status").expect(1);
    let missing = json("kube check").expect(1);
    let made = json("kube ensure --even-on-legacy").expect(0);
    let mut tx = Transaction::new();
    tx.add(&Rule::new(Family::IP, "mangle", "KUBE-IPTABLES-HINT"))
        .unwrap();
    commit(&sandbox, &mut tx);
    let removed = json("kube remove").expect(0);
    check("kubelet", &[&missing, &made, &removed]);
    check("detect", &[&none, &json("kube status --rules").expect(0)]);
}

#[test]
fn guard_events_are_documented() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run("nft add table ip filter { flags dormant ; }");
    let mut guard = super::kube::Guard::start(&sandbox, "kubelet --json");
    let mut documents = vec![guard.line()];
    tools.run("nft delete table ip filter");
    documents.push(guard.line());
    // By a process that still exists when the guard looks up its name.
    let mut tx = Transaction::new();
    tx.flush_table(Family::IP, "filter").unwrap();
    commit(&sandbox, &mut tx);
    documents.push(guard.line());
    guard.stop(nix::sys::signal::Signal::SIGTERM);
    let events: Vec<_> = documents
        .iter()
        .map(|document| serde_json::from_str::<Value>(document).unwrap()["event"].clone())
        .collect();
    assert_eq!(events, ["failed", "ready", "repaired"]);
    let output = |out: &String| Ran {
        code: 0,
        out: out.clone(),
        err: String::new(),
    };
    let all: Vec<_> = documents.iter().map(output).collect();
    check("guard", &all.iter().collect::<Vec<_>>());
}
