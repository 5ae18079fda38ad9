//! `get tables`, the formats of lists, and the search for elements.

use super::*;
use crate::common::tools::Tools;

const RULESET: &str = "
table ip t {
    comment \"main\"
    flags dormant
    set plain { type ipv4_addr; elements = { 10.1.2.3 }; }
    set ranges { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 192.0.2.1-192.0.2.9 }; }
    set both { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/8 . 80-90 }; }
    set ports { type inet_service; elements = { 80, 443 }; }
    map verdicts { type ipv4_addr : verdict; elements = { 10.1.2.3 : drop }; }
    chain a { ip saddr { 10.1.2.3, 10.1.2.4 } accept; }
    chain b { accept; drop; }
}
table inet t { set plain { type ipv6_addr; elements = { fd00::1 }; }; }
";

fn loaded() -> Sandbox {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with("nft -f -", RULESET);
    sandbox
}

#[test]
fn tables_of_both_backends_are_listed() {
    let sandbox = loaded();
    let tools = Tools::new(&sandbox);
    assert!(
        crate::common::arp::drop_all(&sandbox),
        "this test needs legacy tables"
    );
    tools.run("iptables-legacy -N USER");
    let owner = owned_table(&sandbox);

    let lines = run(&sandbox, "get tables --rules").expect(0).out;
    for line in [
        "nft    ip     t                    2 chains, 3 rules, 5 sets, flags dormant, comment \"main\"",
        "nft    inet   t                    0 chains, 0 rules, 1 set",
        "legacy ip     filter               4 chains, 0 rules",
    ] {
        assert!(lines.lines().any(|one| one == line), "{line}: {lines}");
    }
    if let Some(owner) = &owner {
        let port = owner.port();
        let line = format!(
            "nft    ip     owned                0 chains, 0 rules, flags owner, owned by netlink port {port}"
        );
        assert!(lines.lines().any(|one| one == line), "{line}: {lines}");
    }
    let names = run(&sandbox, "get tables t --family inet -o name").expect(0);
    assert_eq!(names.out, "t\n");
    run(&sandbox, "get tables none*").expect(1);
    let both = run(&sandbox, "get tables -o json").expect(0);
    assert_eq!(both.out, run(&sandbox, "get tables --json").expect(0).out);
    let json = run(&sandbox, "get tables --json --rules").expect(0);
    if owner.is_some() {
        super::json::check("tables", &[&json]);
    }
}

#[test]
fn lists_of_names_contain_nothing_else() {
    let sandbox = loaded();
    let chains = run(&sandbox, "get chains -o name").expect(0);
    assert_eq!(chains.out, "a\nb\n");
    let chains = run(&sandbox, "get chains b -o name").expect(0);
    assert_eq!(chains.out, "b\n");
    let sets = run(&sandbox, "get sets -4 -o name").expect(0);
    assert_eq!(sets.out, "plain\nranges\nboth\nports\nverdicts\n");
    let elements = run(&sandbox, "get elements ports -o name").expect(0);
    let mut elements: Vec<_> = elements.out.lines().collect();
    elements.sort_unstable();
    assert_eq!(elements, ["443", "80"]);
}

#[test]
fn wide_lists_have_handles_references_counters_and_comments() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "table inet t {
            set s { type ipv4_addr; comment \"all\"; }
            chain c { comment \"mine\"; accept; }
            chain b { type filter hook input priority 0; jump c; jump c; }
        }",
    );
    tools.run("iptables-legacy -P FORWARD DROP");
    let wide = run(&sandbox, "get chains -o wide").expect(0).out;
    for line in [
        "nft    inet   t        c                            references 3 handle 1 comment \"mine\"",
        "nft    inet   t        b                            type filter hook input priority 0 policy accept \
         references 2 handle 2",
        "legacy ip     filter   FORWARD                      hook forward policy drop packets 0 bytes 0",
    ] {
        assert!(wide.lines().any(|one| one == line), "{line}: {wide}");
    }
    let found = run(&sandbox, "get chains c -o wide").expect(0).out;
    assert!(
        found.ends_with("references 3 handle 1 comment \"mine\"\n"),
        "{found}"
    );
    let rules = run(&sandbox, "get rules b -o wide").expect(0).out;
    let (chain, rules) = rules.split_once('\n').unwrap();
    assert!(
        chain.contains(" 2 rules") && chain.ends_with("references 2 handle 2"),
        "{chain}"
    );
    assert_eq!(
        rules,
        "  handle 5      number 1      jump c\n  handle 6      number 2      jump c\n"
    );
    let names = run(&sandbox, "get rules -o name --backend nft").expect(0);
    assert_eq!(names.out, "c\nb\n");
    run(&sandbox, "get rules -o wide --bytecode").expect(2);
    let json = run(&sandbox, "get rules -o json").expect(0).out;
    assert_eq!(json, run(&sandbox, "get rules --json").expect(0).out);
    let tables = run(&sandbox, "get tables -o wide").expect(0).out;
    assert!(
        tables.contains("2 chains, 3 rules, 1 set, handle "),
        "{tables}"
    );
    let sets = run(&sandbox, "get sets -o wide").expect(0).out;
    assert!(
        sets.ends_with("0 elements handle 3 comment \"all\"\n"),
        "{sets}"
    );
}

/// Options that select tables have the same meaning before the verb.
#[test]
fn options_may_precede_the_verb() {
    let sandbox = loaded();
    Tools::new(&sandbox).run("iptables-legacy -N USER");
    for (before, behind) in [
        ("-4 get chains", "get chains -4"),
        ("get --backend legacy chains", "get chains --backend legacy"),
        (
            "--family inet -t t get rules --json",
            "get rules --json --family inet -t t",
        ),
        ("-t t chains", "get chains -t t"),
        ("--backend=nft check", "check --backend=nft"),
    ] {
        let [before, behind] = [before, behind].map(|line| run(&sandbox, line));
        assert_eq!((before.code, before.out), (behind.code, behind.out));
    }
    let ran = run(&sandbox, "-6 record").expect(2);
    assert!(ran.err.contains("unexpected argument '-6'"), "{}", ran.err);
}

/// The kernel looks the element up in each set whose keys have its type.
#[test]
fn elements_are_found_by_their_keys() {
    let sandbox = loaded();
    let find = |key: &str, more: &[&str]| {
        let mut words = vec!["get", "elements", "--contains", key];
        words.extend(more);
        sandbox.run(|| run_here(&words)).unwrap()
    };
    /// Returns the names of the sets and the elements.
    fn found(ran: &Ran) -> Vec<(String, String)> {
        let lines: Vec<_> = ran.out.lines().collect();
        let pairs = lines.chunks(2);
        let mut pairs: Vec<_> = pairs
            .map(|pair| {
                let name = pair[0].split_whitespace().nth(2).unwrap().to_owned();
                (name, pair[1].trim().to_owned())
            })
            .collect();
        pairs.sort_unstable();
        pairs
    }
    let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter()
            .map(|(set, element)| ((*set).to_owned(), (*element).to_owned()))
            .collect()
    };
    let everywhere = [
        ("plain", "10.1.2.3"),
        ("ranges", "10.0.0.0/8"),
        ("verdicts", "10.1.2.3 : drop"),
    ];
    assert_eq!(found(&find("10.1.2.3", &[]).expect(0)), pairs(&everywhere));
    assert_eq!(
        found(&find("10.1.2.3", &["pl*"]).expect(0)),
        pairs(&everywhere[..1])
    );
    assert_eq!(
        found(&find("192.0.2.5", &[]).expect(0)),
        pairs(&[("ranges", "192.0.2.1-192.0.2.9")])
    );
    assert_eq!(
        found(&find("10.9.9.9 . 85", &[]).expect(0)),
        pairs(&[("both", "10.0.0.0/8 . 80-90")])
    );
    assert_eq!(
        found(&find("fd00::1", &[]).expect(0)),
        pairs(&[("plain", "fd00::1")])
    );
    let anonymous = find("10.1.2.4", &["--anonymous", "__*"]).expect(0);
    assert_eq!(found(&anonymous).len(), 1, "{}", anonymous.out);
    assert_eq!(find("https", &[]).expect(0).out.matches("443").count(), 1);

    let ran = find("172.16.0.1", &[]).expect(1);
    assert!(ran.err.contains("nf_tables has no elements"), "{}", ran.err);
    for (key, part) in [
        ("10.1.2.300", "no set has keys like"),
        ("", "no set has keys like"),
        (
            "1 } ; flush ruleset ; add element ip t ports { 1",
            "no set has keys like",
        ),
        ("02:00:00:00:00:01", "no set has keys like"),
    ] {
        let ran = find(key, &[]).expect(2);
        assert!(ran.err.contains(part), "{key}: {}", ran.err);
    }
    assert_eq!(run(&sandbox, "get tables -o name").expect(0).out, "t\nt\n");

    let json = find("10.1.2.3", &["--json"]).expect(0).value();
    let tables = json["tables"].as_array().unwrap();
    let count = |table: &Value| table["sets"][0]["count"].as_u64().unwrap();
    assert_eq!(tables.iter().map(count).collect::<Vec<_>>(), [1, 1, 1]);
}
