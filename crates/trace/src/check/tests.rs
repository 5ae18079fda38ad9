use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;
use crate::{Direction, Node, Options, Packet, Rules, State};
use chainwright::nft::Scope;
use chainwright_lang::Script;

fn snapshot(text: &str) -> Snapshot {
    let script = Script::parse("rules.nft", text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let ruleset = script.ruleset();
    let ruleset = ruleset.unwrap_or_else(|error| panic!("{error}: {text}"));
    ruleset.to_snapshot(&Scope::all())
}

/// Returns the findings of a chain with these rules, as kind and number, in the order of the rules.
fn of_rules(family: &str, rules: &[&str]) -> Vec<(&'static str, usize)> {
    let rules = rules.join("; ");
    let text = format!(
        "table {family} t {{ \
            set s {{ type ipv4_addr; elements = {{ 10.0.0.1 }}; }}; \
            set d {{ type ipv4_addr; flags dynamic, timeout; timeout 1m; }}; \
            map v {{ type ipv4_addr : verdict; elements = {{ 10.0.0.9 : jump marks }}; }}; \
            chain marks {{ meta mark set 7; }}; \
            chain plain {{ counter; }}; \
            chain c {{ {rules}; }}; \
        }}"
    );
    let findings = examine(&snapshot(&text)).into_iter();
    let mut of_rules: Vec<_> = findings
        .filter(|finding| finding.location.chain().is_some_and(|chain| chain == "c"))
        .filter_map(|finding| Some((finding.fault.kind(), finding.location.rule()?)))
        .collect();
    of_rules.sort_by_key(|(_, number)| *number);
    of_rules
}

/// Rules without effect are found.
#[test]
fn finds_rules_without_effect() {
    for (family, rules, kind) in [
        (
            "ip",
            &["ip saddr 10.0.0.0/8 accept", "ip saddr 10.1.0.0/16 drop"][..],
            "shadowed",
        ),
        (
            "ip",
            &["ip saddr 10.0.0.0/12 accept", "ip saddr 10.1.2.3 drop"],
            "shadowed",
        ),
        (
            "inet",
            &[
                "ip saddr 10.0.0.0/8 accept",
                "ip saddr 10.1.0.0/16 tcp dport 80 drop",
            ],
            "shadowed",
        ),
        (
            "inet",
            &[
                "ip6 saddr 2001:db8::/32 accept",
                "ip6 saddr 2001:db8:1::/48 drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &["tcp dport 1-1024 accept", "tcp dport 80 drop"],
            "shadowed",
        ),
        (
            "ip",
            &["tcp dport 1-1024 accept", "tcp dport 22-80 drop"],
            "shadowed",
        ),
        (
            "ip",
            &["tcp dport 1-1024 accept", "tcp sport 5 tcp dport 22 drop"],
            "shadowed",
        ),
        (
            "ip",
            &[
                "tcp dport { 22, 80, 100-200 } accept",
                "tcp dport { 80, 150-160 } drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &["tcp dport != 22 accept", "tcp dport 23 drop"],
            "shadowed",
        ),
        (
            "ip",
            &["tcp dport != { 22, 23 } accept", "tcp dport 24-30 drop"],
            "shadowed",
        ),
        (
            "ip",
            &[
                "ip saddr . tcp dport { 10.0.0.1 . 80, 10.0.0.2 . 443 } accept",
                "ip saddr 10.0.0.2 tcp dport 443 drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &[
                "ip saddr . tcp dport { 10.0.0.0/8 . 1-100, 10.0.0.2 . 443 } accept",
                "ip saddr . tcp dport { 10.1.0.0/16 . 5-7, 10.0.0.2 . 443 } drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &[
                "ip saddr 10.0.0.0/8 accept",
                "ip saddr . tcp dport { 10.0.0.1 . 80, 10.0.0.2 . 443 } drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &[
                "iifname \"eth0\" accept",
                "iifname \"eth0\" ip saddr 10.0.0.1 drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &["iifname \"eth*\" accept", "iifname \"eth0\" drop"],
            "shadowed",
        ),
        (
            "ip",
            &[
                "ct state established,related accept",
                "ct state established drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &[
                "ct state { established, related } accept",
                "ct state related ip saddr 10.0.0.1 drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &["ct state != new accept", "ct state established drop"],
            "shadowed",
        ),
        (
            "ip",
            &["meta mark & 0xff == 1 accept", "meta mark 0x101 drop"],
            "shadowed",
        ),
        (
            "ip",
            &["meta mark 1-10 accept", "meta mark 5 drop"],
            "shadowed",
        ),
        (
            "ip",
            &[
                "meta l4proto tcp accept",
                "ip protocol tcp tcp dport 22 drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &["ip saddr @s accept", "ip saddr @s tcp dport 22 drop"],
            "shadowed",
        ),
        (
            "ip",
            &["ip saddr != @s accept", "ip saddr != @s tcp dport 22 drop"],
            "shadowed",
        ),
        (
            "ip",
            &["ip saddr 10.0.0.0/8 return", "ip saddr 10.1.0.0/16 drop"],
            "shadowed",
        ),
        (
            "ip",
            &[
                "ip saddr 10.0.0.0/8 goto plain",
                "ip saddr 10.1.0.0/16 limit rate 5/second drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &[
                "ip saddr 10.0.0.0/8 meta mark set 5 accept",
                "ip saddr 10.1.0.0/16 drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &[
                "ip saddr 10.0.0.0/8 counter reject",
                "ip saddr 10.1.0.0/16 log prefix \"x\" drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &[
                "fib daddr type local accept",
                "fib daddr type local tcp dport 22 drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &[
                "tcp flags syn / syn,ack accept",
                "tcp flags syn / syn,ack,fin,rst drop",
            ],
            "shadowed",
        ),
        (
            "bridge",
            &[
                "ether saddr 02:00:00:00:00:01 accept",
                "ether saddr 02:00:00:00:00:01 ip saddr 10.0.0.1 drop",
            ],
            "shadowed",
        ),
        (
            "arp",
            &[
                "arp operation request accept",
                "arp operation request arp saddr ip 10.0.0.1 drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &[
                "icmp type echo-request accept",
                "icmp type echo-request ip saddr 10.0.0.1 drop",
            ],
            "shadowed",
        ),
        (
            "ip",
            &[
                "ip saddr 10.0.0.1 counter accept",
                "ip saddr 10.0.0.1 counter accept comment \"again\"",
            ],
            "duplicate",
        ),
        (
            "ip",
            &["tcp dport { 22, 80 } accept", "tcp dport { 80, 22 } accept"],
            "duplicate",
        ),
        (
            "ip",
            &[
                "ip saddr 10.0.0.1 jump plain",
                "ip saddr 10.0.0.1 jump plain",
            ],
            "duplicate",
        ),
        ("ip", &["accept", "ip saddr 10.0.0.1 drop"], "unreachable"),
        (
            "ip",
            &[
                "counter",
                "meta l4proto udp @th,16,16 22 meta l4proto tcp accept",
            ],
            "contradiction",
        ),
        (
            "ip",
            &["counter", "tcp dport 22 tcp dport 23 accept"],
            "contradiction",
        ),
        (
            "ip",
            &["counter", "ip saddr 10.0.0.0/8 ip saddr 11.0.0.0/8 accept"],
            "contradiction",
        ),
        (
            "ip",
            &["counter", "ip saddr @s ip saddr != @s accept"],
            "contradiction",
        ),
        (
            "ip",
            &["counter", "tcp dport { 22, 23 } tcp dport > 100 accept"],
            "contradiction",
        ),
    ] {
        assert_eq!(of_rules(family, rules), [(kind, 2)], "{rules:?}");
    }
}

/// Rules that may have an effect are not reported.
#[test]
fn reports_no_rule_with_an_effect() {
    for (family, rules) in [
        (
            "ip",
            &["ip saddr 10.0.0.0/8 counter", "ip saddr 10.1.0.0/16 drop"][..],
        ),
        (
            "ip",
            &["ip saddr 10.1.0.0/16 accept", "ip saddr 10.0.0.0/8 drop"],
        ),
        (
            "ip",
            &["ip saddr 10.0.0.0/8 accept", "ip daddr 10.1.0.0/16 drop"],
        ),
        (
            "ip",
            &[
                "ip saddr 10.0.0.0/8 limit rate 5/second accept",
                "ip saddr 10.1.0.0/16 drop",
            ],
        ),
        (
            "ip",
            &["limit rate 5/second accept", "limit rate 5/second accept"],
        ),
        (
            "ip",
            &[
                "ip saddr 10.0.0.0/8 numgen random mod 2 0 accept",
                "ip saddr 10.1.0.0/16 drop",
            ],
        ),
        (
            "ip",
            &[
                "numgen random mod 2 0 accept",
                "numgen random mod 2 0 accept",
            ],
        ),
        (
            "ip",
            &[
                "tcp dport 22 accept",
                "add @d { ip saddr } tcp dport 22 drop",
                "log prefix \"x\" tcp dport 22 drop",
                "log prefix \"x\" tcp dport 23 tcp dport 24 drop",
                "dup to 10.0.0.1 tcp dport 22 drop",
            ],
        ),
        ("ip", &["tcp dport 1-1024 accept", "udp dport 80 drop"]),
        (
            "ip",
            &["tcp dport 1-1024 accept", "tcp dport 1000-1025 drop"],
        ),
        ("ip", &["tcp dport != 22 accept", "tcp dport 22 drop"]),
        ("ip", &["ip saddr @s accept", "ip saddr 10.0.0.1 drop"]),
        ("ip", &["ip saddr 10.0.0.0/8 accept", "ip saddr @s drop"]),
        ("ip", &["ip saddr @s accept", "ip daddr @s drop"]),
        ("ip", &["ip saddr @s accept", "ip saddr != @s drop"]),
        ("ip", &["ip saddr @d accept", "ip saddr @d drop"]),
        (
            "ip",
            &["add @d { ip saddr } accept", "ip saddr 10.0.0.1 drop"],
        ),
        (
            "ip",
            &[
                "meta mark 5 accept",
                "ip saddr 10.0.0.1 meta mark set 5",
                "meta mark 5 drop",
            ],
        ),
        (
            "ip",
            &[
                "meta mark 5 accept",
                "ip saddr 10.0.0.1 jump marks",
                "meta mark 5 drop",
            ],
        ),
        (
            "ip",
            &["meta mark 5 accept", "ip saddr vmap @v", "meta mark 5 drop"],
        ),
        (
            "ip",
            &[
                "meta mark 5 accept",
                "ip saddr vmap { 10.0.0.1 : jump marks }",
                "meta mark 5 drop",
            ],
        ),
        (
            "ip",
            &[
                "meta mark 1 meta mark set 5 ip saddr 10.0.0.1 accept",
                "meta mark 5 accept",
                "meta mark 1 drop",
            ],
        ),
        (
            "ip",
            &[
                "ip dscp 1 accept",
                "ip saddr 10.0.0.1 ip dscp set 1",
                "ip dscp 1 drop",
            ],
        ),
        (
            "ip",
            &[
                "ct mark 1 accept",
                "ip saddr 10.0.0.1 ct mark set 1",
                "ct mark 1 drop",
            ],
        ),
        (
            "ip",
            &[
                "ct state established accept",
                "ct state established,related drop",
            ],
        ),
        (
            "ip",
            &[
                "ip saddr 10.0.0.0/8 jump plain",
                "ip saddr 10.1.0.0/16 drop",
            ],
        ),
        (
            "ip",
            &[
                "ip saddr . tcp dport { 10.0.0.1 . 80, 10.0.0.2 . 443 } accept",
                "ip saddr 10.0.0.1 tcp dport 443 drop",
            ],
        ),
        (
            "ip",
            &[
                "ip saddr . tcp dport != { 10.0.0.1 . 80, 10.0.0.2 . 443 } accept",
                "ip saddr 10.0.0.1 drop",
            ],
        ),
        (
            "ip",
            &[
                "ip saddr vmap { 10.0.0.1 : accept }",
                "ip saddr 10.0.0.1 drop",
            ],
        ),
        ("inet", &["meta nfproto ipv4 accept", "tcp dport 22 drop"]),
        (
            "ip",
            &["tcp option maxseg size 0-65535 accept", "tcp dport 22 drop"],
        ),
        ("ip", &["@th,0,16 0-65535 accept", "ip saddr 10.0.0.1 drop"]),
        (
            "ip",
            &[
                "meta hour \"10:00\"-\"12:00\" accept",
                "meta hour \"11:00\"-\"11:30\" drop",
            ],
        ),
        ("ip", &["meta random < 5 accept", "meta random < 3 drop"]),
        (
            "ip",
            &[
                "tcp flags syn / syn,ack,fin,rst accept",
                "tcp flags syn / syn,ack drop",
            ],
        ),
        (
            "ip",
            &["counter", "meta mark 5 meta mark set 6 meta mark 6 accept"],
        ),
        ("ip", &["dup to 10.0.0.1", "dup to 10.0.0.1"]),
        ("ip", &["log prefix \"a\"", "log prefix \"a\""]),
    ] {
        assert_eq!(of_rules(family, rules), [], "{rules:?}");
    }
}

/// Returns the findings of a ruleset as texts.
fn texts(text: &str) -> Vec<String> {
    let findings = examine(&snapshot(text)).into_iter();
    findings
        .map(|finding| format!("{}: {finding}", finding.severity().name()))
        .collect()
}

#[test]
fn finds_objects_without_effect() {
    let text = "table ip t { \
        set used { type ipv4_addr; elements = { 10.0.0.1 }; }; \
        set unused { type ipv4_addr; }; \
        set owned { type ipv4_addr; comment \"later\"; }; \
        set empty { type ipv4_addr; }; \
        set filled { type ipv4_addr; flags dynamic; }; \
        counter k { }; counter inmap { }; counter spare { }; \
        map objects { type ipv4_addr : counter; elements = { 10.0.0.1 : \"inmap\" }; }; \
        map verdicts { type ipv4_addr : verdict; elements = { 10.0.0.1 : jump ofmap }; }; \
        chain in { type filter hook input priority 0; \
            ip saddr @used counter name k; ip saddr @empty drop; add @filled { ip saddr }; \
            counter name ip saddr map @objects; ip saddr vmap @verdicts; }; \
        chain out { type filter hook output priority 0; policy drop; }; \
        chain ofmap { drop; }; \
        chain alone { jump behind; }; \
        chain behind { drop; }; \
        chain blank { }; \
    }";
    assert_eq!(
        texts(text),
        [
            "risk: table ip t, chain out: its policy drops every packet, because it has no rules",
            "warning: table ip t, chain alone: it has rules, but no rule or map leads to it",
            "warning: table ip t, chain behind: only chains that no packet reaches lead to it",
            "warning: table ip t, set unused: no rule uses it",
            "warning: table ip t, counter spare: no rule uses it",
            "note: table ip t, chain blank: no rule or map leads to it",
            "note: table ip t, set owned: no rule uses it; it has a comment, so that its owner may use it later",
            "note: table ip t, set empty: rules look it up, but it has no elements, and no rule adds any",
        ]
    );
}

/// In a file, jumps may lead to missing chains, and chains to one another.
#[test]
fn finds_missing_chains_and_loops() {
    let text = "table ip t { chain a { type filter hook input priority 0; jump nowhere; jump b; }; \
        chain b { jump c; }; chain c { goto b; }; }";
    let mut graph = Graph::new();
    graph
        .add_script(&Script::parse("rules.nft", text).unwrap())
        .unwrap();
    let findings: Vec<_> = examine_graph(&graph)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        findings,
        [
            "table ip t, chain a: it leads to the chain nowhere, which does not exist",
            "table ip t, chain b: its rules lead back to it: b → c → b",
        ]
    );
}

/// A long chain is compared in time proportional to its length, if the conditions have few forms.
#[test]
fn long_chains_are_compared() {
    let rules: Vec<String> = (0..20_000)
        .map(|at| {
            format!(
                "ip saddr 10.{}.{}.0/24 tcp dport {} accept;",
                at / 250,
                at % 250,
                at % 7
            )
        })
        .collect();
    let last = "ip saddr 10.7.7.7 tcp dport 0 ct state new drop;";
    let text = format!("table ip t {{ chain c {{ {} {last} }}; }}", rules.join(" "));
    let findings = examine(&snapshot(&text));
    let rules: Vec<_> = findings
        .iter()
        .filter_map(|finding| Some((&finding.fault, finding.location.rule()?)))
        .collect();
    let fault = Fault::Shadowed {
        by: 7 * 250 + 7 + 1,
        has_same_verdict: false,
    };
    assert_eq!(rules, [(&fault, 20_001)]);
}

/// A chain with too many overlapping conditions is only compared in part, which is reported.
#[test]
fn partial_comparisons_are_reported() {
    let rules: Vec<String> = (0..6000)
        .map(|at| format!("udp dport {}-{} accept;", at * 3 + 1, at * 3 + 3))
        .chain(["udp dport 1 drop;".to_owned()])
        .collect();
    let text = format!("table ip t {{ chain c {{ {} }}; }}", rules.join(" "));
    let findings = examine(&snapshot(&text));
    let count = |kind: &str| {
        findings
            .iter()
            .filter(|one| one.fault.kind() == kind)
            .count()
    };
    assert_eq!((count("partly_compared"), count("shadowed")), (1, 0));
}

fn address() -> impl Strategy<Value = Ipv4Addr> + Clone {
    let byte = || prop::sample::select(vec![0_u8, 1, 2, 3, 127, 128, 255]);
    (byte(), byte()).prop_map(|(high, low)| Ipv4Addr::new(10, high, 0, low))
}

const PORTS: [u16; 10] = [0, 1, 2, 22, 23, 80, 1023, 1024, 1025, 65535];

fn port() -> impl Strategy<Value = u16> + Clone {
    prop::sample::select(PORTS.to_vec())
}

fn ports() -> impl Strategy<Value = String> {
    let range = || {
        (port(), port()).prop_filter_map("an empty range", |(from, to)| {
            (from < to).then(|| format!("{from}-{to}"))
        })
    };
    prop_oneof![
        port().prop_map(|port| port.to_string()),
        range(),
        port().prop_map(|port| format!("!= {port}")),
        range().prop_map(|range| format!("!= {range}")),
        prop::collection::btree_set(port(), 1..4).prop_map(|ports| {
            let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
            format!("{{ {} }}", ports.join(", "))
        }),
        prop::collection::btree_set(port(), 1..4).prop_map(|ports| {
            let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
            format!("!= {{ {} }}", ports.join(", "))
        }),
    ]
}

fn addresses() -> impl Strategy<Value = String> {
    let prefix = || {
        (
            address(),
            prop::sample::select(vec![8_u32, 12, 15, 16, 17, 24, 31, 32]),
        )
            .prop_map(|(address, length)| {
                let mask = u32::MAX << (32 - length);
                format!("{}/{length}", Ipv4Addr::from(u32::from(address) & mask))
            })
    };
    prop_oneof![
        prefix(),
        prefix().prop_map(|prefix| format!("!= {prefix}")),
        Just("@s".to_owned()),
        Just("!= @s".to_owned()),
        prop::collection::btree_set(address(), 1..4).prop_map(|all| {
            let all: Vec<_> = all.iter().map(ToString::to_string).collect();
            format!("{{ {} }}", all.join(", "))
        }),
    ]
}

fn condition() -> impl Strategy<Value = String> {
    let pairs = || {
        prop::collection::btree_set((address(), port()), 1..4).prop_map(|all| {
            let all: Vec<_> = all
                .iter()
                .map(|(address, port)| format!("{address} . {port}"))
                .collect();
            format!("{{ {} }}", all.join(", "))
        })
    };
    let masked = (0_u32..4, 1_u32..8)
        .prop_map(|(value, mask)| format!("meta mark & {mask} == {}", value & mask));
    prop_oneof![
        4 => addresses().prop_map(|text| format!("ip saddr {text}")),
        2 => addresses().prop_map(|text| format!("ip daddr {text}")),
        4 => ports().prop_map(|text| format!("tcp dport {text}")),
        2 => ports().prop_map(|text| format!("udp dport {text}")),
        1 => ports().prop_map(|text| format!("tcp sport {text}")),
        2 => pairs().prop_map(|text| format!("ip saddr . tcp dport {text}")),
        1 => pairs().prop_map(|text| format!("ip saddr . tcp dport != {text}")),
        1 => prop::sample::select(vec!["tcp", "udp", "{ tcp, udp }", "!= tcp"]).prop_map(|text| format!("meta l4proto {text}")),
        1 => prop::sample::select(vec!["eth0", "eth*", "lo"]).prop_map(|name| format!("iifname \"{name}\"")),
        2 => prop::sample::select(vec!["new", "established", "established,related", "!= new", "{ new, related }", "invalid"])
            .prop_map(|text| format!("ct state {text}")),
        6 => (0_u32..2).prop_map(|mark| format!("meta mark {mark}")),
        1 => masked,
        1 => (0_u32..3).prop_map(|mark| format!("meta mark > {mark}")),
        1 => Just("limit rate 5/second".to_owned()),
        1 => Just("numgen random mod 2 0".to_owned()),
        4 => (0_u32..2).prop_map(|mark| format!("meta mark set {mark}")),
    ]
}

/// Rules of a chain, in nft's language.
fn rules() -> impl Strategy<Value = Vec<String>> {
    let ending = prop_oneof![
        6 => prop::sample::select(vec!["accept", "drop", "return", "reject", "goto plain"]).prop_map(str::to_owned),
        1 => Just("jump plain".to_owned()),
        1 => Just("jump marks".to_owned()),
        1 => (0_u32..4).prop_map(|mark| format!("meta mark set {mark}")),
        1 => Just("ip saddr vmap { 10.0.0.1 : jump marks, 10.1.0.0 : accept }".to_owned()),
    ];
    // Few conditions, so that rules have some in common.
    let conditions = prop::collection::vec(condition(), 2..5);
    let choices = (
        prop::collection::vec(any::<prop::sample::Index>(), 1..3),
        ending,
    );
    (conditions, prop::collection::vec(choices, 2..8)).prop_map(|(conditions, choices)| {
        let rules = choices.into_iter().map(|(chosen, ending)| {
            let chosen: Vec<_> = chosen.iter().map(|at| &**at.get(&conditions)).collect();
            format!("{} {ending}", chosen.join(" "))
        });
        // nft rejects some contradictions itself.
        let is_accepted = |rule: &String| {
            let text = format!(
                "table ip t {{ set s {{ type ipv4_addr; }}; chain marks {{ }}; chain plain {{ }}; chain c {{ {rule}; }}; }}"
            );
            Script::parse("rules.nft", text).is_ok_and(|script| script.ruleset().is_ok())
        };
        rules.filter(is_accepted).collect()
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    let state = prop::sample::select(vec![
        State::New,
        State::Established,
        State::Related,
        State::Invalid,
    ]);
    let name = prop::sample::select(vec!["eth0", "eth1", "wlan0"]);
    (
        (address(), address()),
        (port(), port()),
        any::<bool>(),
        state,
        0_u32..4,
        name,
    )
        .prop_map(|((from, to), (sport, dport), is_tcp, state, mark, name)| {
            let protocol = if is_tcp { 6 } else { 17 };
            let (from, to) = (IpAddr::V4(from), IpAddr::V4(to));
            let mut packet = Packet::between(Direction::In, protocol, from, to);
            packet.source_port = Some(sport);
            packet.destination_port = Some(dport);
            packet.mark = Some(mark);
            packet.tcp_flags = Some(2);
            packet.connection.state = Some(state);
            packet.in_interface = Some(name.into());
            packet
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// No packet matches a rule that is reported to have no effect: the evaluator never completes it.
    #[test]
    fn no_packet_matches_reported_rules(
        rules in rules(),
        packets in prop::collection::vec(packet(), 40),
    ) {
        let text = format!(
            "table ip t {{ \
                set s {{ type ipv4_addr; elements = {{ 10.0.0.1, 10.1.0.0, 10.255.0.255 }}; }}; \
                chain marks {{ ip daddr != 10.0.0.1 meta mark set 1; }}; \
                chain plain {{ counter; }}; \
                chain base {{ type filter hook input priority 0; jump c; }}; \
                chain c {{ {}; }}; \
            }}",
            rules.join("; ")
        );
        let snapshot = snapshot(&text);
        prop_assume!(!rules.is_empty());
        let mut dead = vec![false; rules.len() + 1];
        for finding in examine(&snapshot) {
            let Some(number) = finding.location.rule() else {
                continue;
            };
            let of_earlier = |at: usize| !rules[at - 1].contains("jump") && !rules[at - 1].ends_with(char::is_numeric);
            match finding.fault {
                Fault::Unreachable { .. } => dead[number..].fill(true),
                Fault::Shadowed { .. } | Fault::Contradiction => dead[number] = true,
                Fault::Duplicate { of } => dead[number] = of_earlier(of),
                _ => {}
            }
        }
        if dead.contains(&true) {
            let evaluated = Rules::new().with_nft(&snapshot);
            for packet in &packets {
                let trace = evaluated.trace(packet, &Node::default(), &Options::default());
                for step in trace.ends.iter().flat_map(|end| &end.steps) {
                    if let (Some(rule), true, true) = (&step.rule, step.chain == "c", step.is_full_match) {
                        prop_assert!(!dead[rule.number], "rule {} of {:#?} matches {:?}", rule.number, rules, packet);
                    }
                }
            }
        }
    }
}
/// Rulesets of programs and of common purposes have no rule without effect.
#[test]
fn reports_no_rule_of_real_rulesets() {
    let files = [
        "data/kube-proxy-1.36-nftables.nft",
        "rulesets/scenario-arp-guard.nft",
        "rulesets/scenario-bridge-firewall.nft",
        "rulesets/scenario-container-host.nft",
        "rulesets/scenario-flood-scrubber.nft",
        "rulesets/scenario-home-router.nft",
        "rulesets/scenario-ipv6-only-host.nft",
        "rulesets/scenario-policy-groups.nft",
        "rulesets/scenario-port-knocking.nft",
        "rulesets/scenario-service-balancer.nft",
        "rulesets/scenario-traffic-classes.nft",
    ];
    let findings = files.map(|file| {
        let path = format!("{}/../../tests/{file}", env!("CARGO_MANIFEST_DIR"));
        texts(&std::fs::read_to_string(path).unwrap())
    });
    // The services of this one have endpoints, so that no rule rejects packets.
    let unused = "note: table ip6 kube-proxy, chain reject-chain: it has rules, but no rule or map leads to it";
    assert_eq!(findings.concat(), [unused]);
}
