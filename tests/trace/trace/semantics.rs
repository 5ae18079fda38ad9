//! Small rulesets, made in memory, and their effect on a packet.

use std::net::SocketAddr;

use chainwright::nft::Snapshot;
use chainwright::nft::expr::ObjectType;
use chainwright_trace::{
    Direction, ElementBytes, End, Hook, Interface, Node, Options, Outcome, Packet, Rules, State,
    StateOwner, Trace, Tuple,
};

use crate::trace::in_memory;

fn ruleset(text: &str) -> Snapshot {
    in_memory(text)
}

fn socket(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// From 10.0.0.5 to port 80 of 10.0.0.1, an address of this machine.
fn incoming() -> Packet {
    let mut packet = Packet::tcp(
        Direction::In,
        socket("10.0.0.5:1234"),
        socket("10.0.0.1:80"),
    );
    packet.in_interface = Some("eth0".into());
    packet
}

fn traced(text: &str, packet: &Packet) -> Trace {
    traced_at(text, packet, &Node::default())
}

fn traced_at(text: &str, packet: &Packet, node: &Node) -> Trace {
    let snapshot = ruleset(text);
    let rules = Rules::new().with_nft(&snapshot);
    rules.trace(packet, node, &Options::default())
}

/// The only end of a trace.
fn only(text: &str, packet: &Packet) -> End {
    let trace = traced(text, packet);
    assert_eq!(trace.ends.len(), 1, "{trace}");
    let end = trace.ends.into_iter().next().unwrap();
    assert_eq!(end.probability, 1.0);
    end
}

/// The chain `input` of a table, with these rules.
fn input(rules: &str) -> String {
    format!(
        "table ip filter {{ chain a {{ counter accept; }}; chain input {{ type filter hook input priority 0; {rules}; }}; }}"
    )
}

/// Whether the packet matches this condition.
fn meets(condition: &str, packet: &Packet) -> bool {
    let end = only(&input(&format!("{condition} drop;")), packet);
    end.outcome == Outcome::Dropped
}

#[test]
fn known_fields_are_compared() {
    let packet = incoming();
    for (condition, is) in [
        ("ip saddr 10.0.0.5", true),
        ("ip saddr != 10.0.0.5", false),
        ("ip saddr 10.0.0.0/24", true),
        ("ip saddr 10.0.1.0/24", false),
        ("ip daddr 10.0.0.1-10.0.0.9", true),
        ("ip daddr != 10.0.0.1-10.0.0.9", false),
        ("tcp dport 80", true),
        ("tcp dport < 80", false),
        ("tcp dport <= 80", true),
        ("tcp dport > 79", true),
        ("tcp dport { 22, 80 }", true),
        ("tcp dport { 22, 79-81 }", true),
        ("tcp dport != { 22, 80 }", false),
        ("udp dport 80", false),
        ("tcp flags syn", true),
        ("tcp flags & (syn | ack) == syn", true),
        ("tcp flags & (syn | ack) == syn | ack", false),
        ("ct state new", true),
        ("ct state established,related", false),
        ("ct state { new, established }", true),
        ("iifname eth0", true),
        ("iifname \"eth*\"", true),
        ("iifname \"veth*\"", false),
        ("meta mark 0", true),
        ("meta l4proto tcp", true),
        ("ip protocol tcp", true),
        (
            "ip saddr . tcp dport { 10.0.0.5 . 80, 10.0.0.6 . 81 }",
            true,
        ),
        (
            "ip saddr . tcp dport { 10.0.0.5 . 81, 10.0.0.6 . 80 }",
            false,
        ),
        ("ip saddr . tcp dport { 10.0.0.0/24 . 70-90 }", true),
        ("ip saddr . tcp dport { 10.0.0.0/24 . 81-90 }", false),
        ("meta mark set 7 meta mark 7", true),
        (
            "meta mark set mark | 0x4000 meta mark & 0x4000 == 0x4000",
            true,
        ),
        ("fib daddr type local", true),
        ("fib saddr type local", false),
        ("ip frag-off & 0x1fff != 0", false),
        ("ct direction original", true),
        ("ct original ip saddr 10.0.0.5", true),
        ("ct mark 0", true),
        ("ct mark set 5 ct mark 5", true),
        ("ip option ra exists", false),
        ("ip version 4", true),
        ("ip dscp set af11 ip dscp af11", true),
        ("tcp dport set 81 tcp dport 81", true),
    ] {
        let mut known = packet.clone();
        known.tos = Some(0);
        let node = Node {
            addresses: Some(vec!["10.0.0.1".parse().unwrap()]),
            ..Node::default()
        };
        let trace = traced_at(&input(&format!("{condition} drop;")), &known, &node);
        let dropped = |end: &End| end.outcome == Outcome::Dropped;
        match condition.starts_with("fib saddr") {
            // Anything except local stays undetermined.
            true => assert!(!trace.ends.iter().any(dropped)),
            false => {
                assert_eq!(trace.ends.len(), 1, "{condition}: {trace}");
                assert_eq!(dropped(&trace.ends[0]), is, "{condition}");
            }
        }
    }
    assert!(meets(
        "ip ttl < 64",
        &Packet {
            ttl: Some(63),
            ..packet
        }
    ));
}

#[test]
fn unknown_fields_split_the_evaluation() {
    let mut packet = incoming();
    packet.connection.state = None;
    let trace = traced(
        &input("ct state established,related accept; ct state invalid drop; tcp dport 22 drop;"),
        &packet,
    );
    let mut ends: Vec<_> = trace
        .ends
        .iter()
        .map(|end| (end.assumptions.join("; "), end.outcome.clone()))
        .collect();
    ends.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(
        ends,
        [
            (
                "ct state is established, related".to_owned(),
                Outcome::Delivered
            ),
            ("ct state is invalid".to_owned(), Outcome::Dropped),
            ("ct state is new".to_owned(), Outcome::Delivered),
        ],
        "{trace}"
    );
}

#[test]
fn chance_has_its_probabilities() {
    let text = input("numgen random mod 4 vmap { 0 : drop, 1-2 : accept, 3 : jump a };");
    let trace = traced(&text, &incoming());
    let mut ends: Vec<_> = trace
        .ends
        .iter()
        .map(|end| (end.probability, end.outcome.clone()))
        .collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let sum: f64 = ends.iter().map(|(probability, _)| probability).sum();
    assert_eq!(sum, 1.0);
    assert_eq!(ends.len(), 3, "{trace}");
    assert_eq!(ends[2], (0.5, Outcome::Delivered));
    assert!(trace.ends.iter().all(|end| end.assumptions.is_empty()));
    let text = input("numgen random mod 100 < 30 drop;");
    let trace = traced(&text, &incoming());
    assert_eq!(trace.ends.len(), 2);
    assert_eq!(trace.ends[0].probability, 0.3, "{trace}");
    assert_eq!(trace.ends[0].outcome, Outcome::Dropped);
}

#[test]
fn jumps_return_and_gotos_do_not() {
    let packet = incoming();
    let text = |rules: &str| {
        format!(
            "table ip t {{
                chain third {{ counter; return; drop; }}
                chain second {{ goto third; drop; }}
                chain first {{ jump second; meta mark set 1; }}
                chain input {{ type filter hook input priority 0; policy drop; {rules}; }}
            }}"
        )
    };
    let end = only(&text("jump first; meta mark 1 accept;"), &packet);
    assert_eq!(end.outcome, Outcome::Delivered);
    let chains: Vec<_> = end
        .steps
        .iter()
        .map(|step| step.chain.to_string())
        .collect();
    assert_eq!(
        chains,
        [
            "input", "first", "second", "third", "third", "first", "input"
        ]
    );
    let end = only(&text("goto first; accept;"), &packet);
    assert_eq!(end.outcome, Outcome::Dropped);
    let last = end.steps.last().unwrap();
    assert_eq!(
        (last.chain.to_string(), last.rule),
        ("input".to_owned(), None)
    );
    assert_eq!(
        only(&text("return; accept;"), &packet).outcome,
        Outcome::Dropped
    );
}

#[test]
fn accepting_ends_only_one_chain() {
    let text = "
        table ip first { chain c { type filter hook input priority -1; accept; }; }
        table inet second { chain c { type filter hook input priority 1; drop; }; }
        table ip dormant { flags dormant; chain c { type filter hook input priority -2; drop; }; }
    ";
    let end = only(text, &incoming());
    let tables: Vec<_> = end
        .steps
        .iter()
        .map(|step| step.table.to_string())
        .collect();
    assert_eq!(tables, ["first", "second"]);
    assert_eq!(end.outcome, Outcome::Dropped);
}

const NAT: &str = "
    table ip nat {
        chain prerouting { type nat hook prerouting priority dstnat; tcp dport 80 dnat to 10.1.0.9:8080; }
        chain late { type nat hook prerouting priority dstnat + 5; dnat to 10.1.0.10; }
        chain postrouting { type nat hook postrouting priority srcnat; oifname eth1 masquerade; }
    }
    table ip filter {
        chain forward {
            type filter hook forward priority filter; policy drop;
            ip daddr 10.1.0.9 tcp dport 8080 ct original ip daddr 10.0.0.1 ct status dnat accept
        }
        chain input { type filter hook input priority filter; policy drop; }
    }
";

#[test]
fn translations() {
    let mut packet = incoming();
    packet.out_interface = Some("eth1".into());
    let mut eth1 = Interface::named("eth1");
    eth1.addresses = vec!["10.1.0.1".parse().unwrap()];
    let node = Node {
        interfaces: vec![eth1],
        addresses: Some(vec![
            "10.0.0.1".parse().unwrap(),
            "10.1.0.1".parse().unwrap(),
        ]),
    };
    let trace = traced_at(NAT, &packet, &node);
    assert_eq!(trace.ends.len(), 1, "{trace}");
    let end = &trace.ends[0];
    assert_eq!(end.outcome, Outcome::Forwarded, "{trace}");
    assert_eq!(end.packet.destination.known(), Some("10.1.0.9"));
    assert_eq!(end.packet.destination_port.known(), Some("8080"));
    assert_eq!(end.packet.source.known(), Some("10.1.0.1"));
    let chains: Vec<_> = end
        .steps
        .iter()
        .map(|step| step.chain.to_string())
        .collect();
    assert_eq!(chains, ["prerouting", "forward", "postrouting"]);

    // If it is unknown whose address that is, both are followed.
    let trace = traced(NAT, &packet);
    assert_eq!(trace.ends.len(), 2, "{trace}");
    assert_eq!(
        trace.ends[0].assumptions,
        ["10.1.0.9 is an address of this machine"]
    );

    // An existing connection is not translated again.
    packet.connection.state = Some(State::Established);
    packet.connection.is_reply = Some(false);
    packet.connection.status = Some(0x3f);
    let trace = traced_at(NAT, &packet, &node);
    assert_eq!(trace.ends.len(), 1, "{trace}");
    assert_eq!(trace.ends[0].packet.destination.known(), Some("10.0.0.1"));
    assert!(!trace.ends[0].notes.is_empty());
    // Unless its translation is known.
    packet.connection.reply = Tuple {
        source: Some("10.1.0.9".parse().unwrap()),
        source_port: Some(8080),
        destination: Some("10.1.0.1".parse().unwrap()),
        destination_port: Some(1234),
    };
    let trace = traced_at(NAT, &packet, &node);
    assert_eq!(trace.ends[0].packet.destination.known(), Some("10.1.0.9"));
    assert_eq!(trace.ends[0].packet.source.known(), Some("10.1.0.1"));
}

#[test]
fn loopback_packets_pass_output_and_input() {
    let text = "
        table ip t {
            chain out { type filter hook output priority 0; oifname lo counter; }
            chain post { type filter hook postrouting priority 0; meta mark set 3; }
            chain pre { type filter hook prerouting priority 0; iifname lo meta mark 3 counter; }
            chain in { type filter hook input priority 0; meta skuid 0 drop; }
            chain nat { type nat hook prerouting priority dstnat; drop; }
            chain natout { type nat hook output priority -100; tcp dport 80 redirect to :81; }
        }
    ";
    let packet = Packet::tcp(
        Direction::Local,
        socket("127.0.0.1:5000"),
        socket("127.0.0.1:80"),
    );
    let end = only(text, &packet);
    assert_eq!(end.outcome, Outcome::Delivered, "{end}");
    assert_eq!(end.packet.destination_port.known(), Some("81"));
    let hooks: Vec<_> = end.hooks.iter().map(|hook| hook.hook).collect();
    assert_eq!(
        hooks,
        [
            Hook::Output,
            Hook::Postrouting,
            Hook::Prerouting,
            Hook::Input
        ]
    );
    let chains: Vec<_> = end
        .steps
        .iter()
        .map(|step| step.chain.to_string())
        .collect();
    // Rules, and the policies after them.
    assert_eq!(
        chains,
        ["natout", "out", "out", "post", "post", "pre", "pre", "in"],
        "{end}"
    );
}

#[test]
fn sets_that_rules_fill() {
    let text = input(
        "ip saddr @seen drop; update @seen { ip saddr timeout 1m }; ip saddr @seen accept; drop;",
    )
    .replace(
        "chain a",
        "set seen { type ipv4_addr; flags dynamic,timeout; }; chain a",
    );
    let trace = traced(&text, &incoming());
    let ends: Vec<_> = trace
        .ends
        .iter()
        .map(|end| (end.assumptions.join("; "), end.outcome.clone()))
        .collect();
    assert_eq!(
        ends,
        [
            (
                "10.0.0.5 is in seen, which rules fill".to_owned(),
                Outcome::Dropped
            ),
            (
                "10.0.0.5 is not in seen, which rules fill".to_owned(),
                Outcome::Delivered
            ),
        ]
    );
    let snapshot = ruleset(&text);
    let mut as_they_are = Options::default();
    as_they_are.assume_static_sets = true;
    let trace = Rules::new()
        .with_nft(&snapshot)
        .trace(&incoming(), &Node::default(), &as_they_are);
    assert_eq!(trace.ends.len(), 1);
    assert_eq!(trace.ends[0].outcome, Outcome::Delivered);
}

/// Expressions with state are listed with the owner of the state, also those before a part that does not match.
#[test]
fn expressions_with_state() {
    let text = input(
        "counter tcp dport 7; quota 1 kbytes counter name n; add @s { ip saddr . ip daddr counter } drop;",
    )
    .replace(
        "chain a",
        "counter n { }; set s { type ipv4_addr . ipv4_addr; flags dynamic; }; chain a",
    );
    let mut packet = incoming();
    packet.destination = None;
    let trace = traced(&text, &packet);
    assert_eq!(trace.ends.len(), 2, "{trace}");
    let open = ElementBytes::Open("10.0.0.5 . destination address".to_owned());
    let rule = |expression, exceeded| (expression, StateOwner::Rule, exceeded);
    for (end, exceeded) in trace.ends.iter().zip([true, false]) {
        let changes = end.changes.iter();
        let changes: Vec<_> = changes
            .map(|one| (one.expression, one.owner.clone(), one.exceeded))
            .collect();
        let mut expected = vec![rule(0, None), rule(0, Some(exceeded))];
        if !exceeded {
            let name = "n".into();
            let object_type = ObjectType::COUNTER.0;
            expected.push((1, StateOwner::Object { object_type, name }, None));
        }
        let (set, key, data) = ("s".into(), open.clone(), None);
        expected.push((2, StateOwner::Set { set, key, data }, None));
        let (set, key) = ("s".into(), Some(open.clone()));
        let expression = 0;
        let element = StateOwner::Element {
            set,
            key,
            expression,
        };
        expected.push((2, element, None));
        assert_eq!(changes, expected, "{end}");
    }
}

/// Two unknown keys are two separate assumptions.
#[test]
fn unknown_keys_split_the_evaluation() {
    let text = input("ip saddr @seen counter; ip daddr @seen drop;").replace(
        "chain a",
        "set seen { type ipv4_addr; flags dynamic,timeout; }; chain a",
    );
    let mut packet = incoming();
    (packet.source, packet.destination) = (None, None);
    let trace = traced(&text, &packet);
    let ends: Vec<_> = trace
        .ends
        .iter()
        .map(|end| (end.assumptions.join("; "), end.outcome.clone()))
        .collect();
    let of = |from: &str, to: &str| {
        format!(
            "source address is{from} in seen, which rules fill; destination address is{to} in seen, which rules fill"
        )
    };
    assert_eq!(
        ends,
        [
            (of("", ""), Outcome::Dropped),
            (of("", " not"), Outcome::Delivered),
            (of(" not", ""), Outcome::Dropped),
            (of(" not", " not"), Outcome::Delivered),
        ],
        "{trace}"
    );
}

#[track_caller]
fn delivers_both_ways(trace: &Trace) {
    assert_eq!(trace.ends.len(), 2, "{trace}");
    assert!(
        trace
            .ends
            .iter()
            .all(|end| end.outcome == Outcome::Delivered),
        "{trace}"
    );
}

/// A route exists or is missing.
#[test]
fn routes_that_exist_or_are_missing() {
    let rules = "fib saddr . iif oif exists accept; fib saddr . iif oif missing accept; drop;";
    let trace = traced(&input(rules), &incoming());
    delivers_both_ways(&trace);
}

/// An option that a rule removed no longer exists.
#[test]
fn options_removed_by_a_rule() {
    let rules = "reset tcp option sack-perm; tcp option sack-perm exists drop;";
    let trace = traced(&input(rules), &incoming());
    delivers_both_ways(&trace);
}

/// Without connection tracking nothing is translated: the chains that translate are not called.
#[test]
fn untracked_packets_are_not_translated() {
    let text = "
        table ip t {
            chain raw { type filter hook prerouting priority raw; tcp dport 80 notrack; }
            chain nat { type nat hook prerouting priority dstnat; dnat to 10.1.0.9; }
            chain input { type filter hook input priority 0; ct state untracked accept; drop; }
        }
    ";
    let end = only(text, &incoming());
    assert_eq!(end.outcome, Outcome::Delivered, "{end}");
    assert_eq!(end.packet.destination.known(), Some("10.0.0.1"));
    assert!(end.steps.iter().all(|step| step.chain != "nat"), "{end}");
    // The same applies to invalid packets.
    let mut packet = incoming();
    packet.destination_port = Some(81);
    packet.connection.state = Some(State::Invalid);
    let end = only(text, &packet);
    assert_eq!(end.outcome, Outcome::Dropped, "{end}");
    assert!(end.steps.iter().all(|step| step.chain != "nat"), "{end}");
}

#[test]
fn final_outcomes() {
    let packet = incoming();
    for (rule, outcome, ends) in [
        (
            "reject",
            Outcome::Rejected("icmp port-unreachable".into()),
            1,
        ),
        (
            "reject with icmp type admin-prohibited",
            Outcome::Rejected("icmp admin-prohibited".into()),
            1,
        ),
        (
            "meta l4proto tcp reject with tcp reset",
            Outcome::Rejected("tcp reset".into()),
            1,
        ),
        (
            "tcp flags syn synproxy mss 1460",
            Outcome::Stolen("answered by synproxy".into()),
            1,
        ),
        ("limit rate 3/minute drop", Outcome::Delivered, 2),
        ("queue num 3 bypass", Outcome::Queued("3".into()), 2),
        // One of several queues.
        (
            "queue flags bypass to numgen random mod 4 offset 10",
            Outcome::Queued("10-13".into()),
            2,
        ),
    ] {
        let trace = traced(&input(&format!("{rule};")), &packet);
        assert_eq!(trace.ends.len(), ends, "{rule}: {trace}");
        assert_eq!(trace.ends[0].outcome, outcome, "{rule}: {trace}");
    }
    // The outcome names the actual answer, not the form in the rule.
    let inet = input("reject with icmpx host-unreachable;").replace("table ip", "table inet");
    assert_eq!(
        only(&inet, &packet).outcome,
        Outcome::Rejected("icmp host-unreachable".into())
    );
    let trace = traced(&input("limit rate 3/minute drop;"), &packet);
    assert_eq!(
        trace.ends[0].assumptions,
        ["the rate of 3 packets per minute is exceeded"]
    );
}

#[test]
fn splitting_is_limited() {
    let rules: String = (0..40)
        .map(|at| format!("limit rate {}/minute counter;", at + 1))
        .collect();
    let snapshot = ruleset(&input(&rules));
    let rules = Rules::new().with_nft(&snapshot);
    let mut few = Options::default();
    few.branches = 16;
    let trace = rules.trace(&incoming(), &Node::default(), &few);
    assert!(trace.is_truncated);
    assert!(trace.ends.len() <= 32, "{}", trace.ends.len());
    assert!(
        trace
            .ends
            .iter()
            .any(|end| matches!(end.outcome, Outcome::NotFollowed(_)))
    );
    let mut short = Options::default();
    short.rules = 10;
    let trace = rules.trace(&incoming(), &Node::default(), &short);
    assert!(trace.is_truncated);
}
