//! Syntax trees of statements.

use super::*;
use crate::syntax::{Expr, Operator, Relation, Statement, Symbol, Target, Verdict};
use chainwright::nft::Family;
use chainwright::nft::expr::{
    CtDirection, CtKey, FibFlags, FibResult, MetaKey, ObjectType, PayloadBase,
};

/// Returns the only statement of a rule.
fn statement_of(family: &str, text: &str) -> Statement {
    let commands = commands(&format!("add rule {family} t c {text}"));
    let rule = rules(&commands).next().expect("no rule");
    assert_eq!(rule.statements.len(), 1, "{text}");
    rule.statements[0].0.clone()
}

fn statement(text: &str) -> Statement {
    statement_of("ip", text)
}

fn is_symbol(expr: &Expr, text: &str) -> bool {
    matches!(expr, Expr::Symbol(Symbol { text: found, .. }) if **found == *text)
}

/// Alternative spellings have the same printed form.
#[test]
fn equivalent_texts_parse_equally() {
    for (family, typed, expected) in [
        ("ip", "mark 5", "meta mark 5"),
        ("ip", "meta mark and 0xff eq 1", "meta mark & 0xff == 1"),
        ("ip", "meta mark & (1 | 2) ne 0", "meta mark & (1 | 2) != 0"),
        (
            "ip",
            "meta mark & 1 | 2 ^ 3 << 4 == 5",
            "meta mark & 1 | 2 ^ 3 << 4 == 5",
        ),
        (
            "ip",
            "meta mark lt 5 meta mark gt 6",
            "meta mark < 5 meta mark > 6",
        ),
        ("ip", "tcp flags syn,ack", "tcp flags syn,ack"),
        ("ip", "tcp flags syn / syn,ack", "tcp flags syn / syn,ack"),
        (
            "ip",
            "tcp flags fin,psh / fin , syn",
            "tcp flags fin,psh / fin,syn",
        ),
        ("ip", "tcp flags not syn", "tcp flags ! syn"),
        (
            "ip",
            "ct state ! new,established",
            "ct state ! new,established",
        ),
        (
            "ip",
            "tcp dport{22,80}accept",
            "tcp dport { 22, 80 } accept",
        ),
        ("ip", "tcp dport { 22,\n80,\n}", "tcp dport { 22, 80 }"),
        (
            "ip",
            "tcp dport vmap{22:accept,80:drop}",
            "tcp dport vmap { 22 : accept, 80 : drop }",
        ),
        (
            "ip",
            "tcp dport vmap { * : jump x }",
            "tcp dport vmap { * : jump x }",
        ),
        ("ip", "ip saddr 10.0.0.0/8", "ip saddr 10.0.0.0/8"),
        (
            "ip",
            "ip saddr 10.0.0.1-10.0.0.9",
            "ip saddr 10.0.0.1-10.0.0.9",
        ),
        ("ip6", "ip6 saddr ::1-::5", "ip6 saddr ::1-::5"),
        ("ip6", "ip6 saddr fe80::/10", "ip6 saddr fe80::/10"),
        (
            "ip",
            "ip saddr . tcp dport { 10.0.0.0/8 . 80-90 }",
            "ip saddr . tcp dport { 10.0.0.0/8 . 80-90 }",
        ),
        (
            "ip",
            "counter packets 1 bytes 2",
            "counter packets 1 bytes 2",
        ),
        ("ip", "counter", "counter packets 0 bytes 0"),
        (
            "ip",
            "limit rate 5/second burst 5 packets",
            "limit rate 5/second",
        ),
        ("ip", "limit rate until 5/second", "limit rate 5/second"),
        (
            "ip",
            "limit rate 10mbytes/second",
            "limit rate 10 mbytes/second",
        ),
        (
            "ip",
            "limit rate 1024 bytes / hour burst 2 kbytes",
            "limit rate 1 kbytes/hour burst 2 kbytes",
        ),
        (
            "ip",
            "quota until 1024 kbytes used 1 mbytes",
            "quota 1 mbytes used 1 mbytes",
        ),
        (
            "ip",
            "ct count until 5 ct count over 6",
            "ct count 5 ct count over 6",
        ),
        (
            "ip",
            "last used 5s last used never last",
            "last used 5s last used never last used never",
        ),
        (
            "ip",
            "log flags tcp options,sequence flags ip options",
            "log flags tcp sequence,options flags ip options",
        ),
        (
            "ip",
            "log level warn prefix \"x\" group 0 snaplen 5 queue-threshold 6",
            "log prefix \"x\" group 0 snaplen 5 queue-threshold 6",
        ),
        (
            "ip",
            "reject with icmp type host-unreachable",
            "reject with icmp host-unreachable",
        ),
        (
            "ip",
            "reject with icmp 1",
            "reject with icmp host-unreachable",
        ),
        (
            "inet",
            "reject with icmpx port-unreachable",
            "reject with icmpx port-unreachable",
        ),
        ("ip6", "reject with tcp reset", "reject with tcp reset"),
        (
            "ip",
            "snat to 1.1.1.1:1-5 persistent,random",
            "snat to 1.1.1.1:1-5 random,persistent",
        ),
        ("ip", "dnat to :80", "dnat to :80"),
        ("ip6", "dnat to [::1]:80", "dnat to [::1]:80"),
        (
            "ip6",
            "dnat to [::1]-[::5]:80-90",
            "dnat to [::1]-[::5]:80-90",
        ),
        ("ip6", "dnat to ::1", "dnat to ::1"),
        (
            "ip",
            "dnat ip prefix to ip saddr map { 10.0.0.0/24 : 10.1.0.0/24 }",
            "dnat ip prefix to ip saddr map { 10.0.0.0/24 : 10.1.0.0/24 }",
        ),
        (
            "ip",
            "dnat ip addr . port to ip saddr map { 1.1.1.1 : 2.2.2.2 . 80 }",
            "dnat ip to ip saddr map { 1.1.1.1 : 2.2.2.2 . 80 }",
        ),
        (
            "ip",
            "dnat to numgen inc mod 2 map { 0 : 1.1.1.1, 1 : 2.2.2.2 }:80",
            "dnat to numgen inc mod 2 map { 0 : 1.1.1.1, 1 : 2.2.2.2 }:80",
        ),
        ("ip", "redirect to 80", "redirect to :80"),
        (
            "ip",
            "redirect to :tcp dport map { 22 : 2222 }",
            "redirect to :tcp dport map { 22 : 2222 }",
        ),
        (
            "ip",
            "masquerade to :1-5 fully-random",
            "masquerade to :1-5 fully-random",
        ),
        ("ip", "masquerade random", "masquerade random"),
        ("inet", "tproxy ip6 to [::1]:80", "tproxy ip6 to [::1]:80"),
        ("ip", "tproxy to :50080", "tproxy to :50080"),
        ("ip", "queue", "queue"),
        (
            "ip",
            "queue num 1-3 bypass,fanout",
            "queue flags bypass,fanout to 1-3",
        ),
        (
            "ip",
            "queue flags bypass to jhash ip saddr mod 4",
            "queue flags bypass to jhash ip saddr mod 4",
        ),
        (
            "ip",
            "dup to 1.1.1.1 device \"eth0\"",
            "dup to 1.1.1.1 device \"eth0\"",
        ),
        ("netdev", "dup to \"eth0\"", "dup to \"eth0\""),
        ("netdev", "fwd to \"eth0\"", "fwd to \"eth0\""),
        (
            "netdev",
            "fwd ip to 1.1.1.1 device \"eth0\"",
            "fwd ip to 1.1.1.1 device \"eth0\"",
        ),
        (
            "ip",
            "meta mark set ct mark & 0xff",
            "meta mark set ct mark & 0xff",
        ),
        (
            "ip",
            "meta mark set meta mark | 0x1",
            "meta mark set meta mark | 0x1",
        ),
        (
            "ip",
            "meta mark set tcp dport map @m",
            "meta mark set tcp dport map @m",
        ),
        ("ip", "ct mark set mark", "ct mark set meta mark"),
        ("ip", "ct event set new,mark", "ct event set new,mark"),
        (
            "ip",
            "ip protocol tcp tcp dport 22",
            "ip protocol tcp tcp dport 22",
        ),
        (
            "ip",
            "ether type ip ip saddr 1.1.1.1",
            "ether type ip ip saddr 1.1.1.1",
        ),
        (
            "ip",
            "ct helper set \"ftp\" ct helper \"ftp\"",
            "ct helper set \"ftp\" ct helper \"ftp\"",
        ),
        (
            "ip",
            "ct timeout set \"x\" ct expectation set \"y\"",
            "ct timeout set \"x\" ct expectation set \"y\"",
        ),
        (
            "ip",
            "meta secmark set tcp dport map @m meta secmark set ct secmark",
            "meta secmark set tcp dport map @m meta secmark set ct secmark",
        ),
        (
            "ip",
            "counter name tcp dport map { 22 : \"a\" } quota name \"q\" limit name l",
            "counter name tcp dport map { 22 : \"a\" } quota name \"q\" limit name l",
        ),
        (
            "ip",
            "synproxy mss 1460 wscale 7 timestamp sack-perm synproxy name \"s\"",
            "synproxy mss 1460 wscale 7 timestamp sack-perm synproxy name \"s\"",
        ),
        ("ip", "flow offload @f", "flow add @f"),
        (
            "ip",
            "set update ip saddr timeout 5s @s",
            "update @s { ip saddr timeout 5s }",
        ),
        (
            "ip",
            "add @s { ip saddr . 22 timeout 1m limit rate 5/second : meta mark }",
            "add @s { ip saddr . 22 timeout 1m limit rate 5/second : meta mark }",
        ),
        ("ip", "delete @s { ip saddr }", "delete @s { ip saddr }"),
        (
            "ip",
            "meter m size 5 { ip saddr limit rate 5/second }",
            "meter m size 5 { ip saddr limit rate 5/second }",
        ),
        (
            "ip",
            "reset tcp option sack-permitted",
            "reset tcp option sack-perm",
        ),
        (
            "ip",
            "tcp option maxseg size set rt mtu",
            "tcp option maxseg size set rt mtu",
        ),
        (
            "ip",
            "tcp option 253 exists tcp option @5,16,8 3",
            "tcp option 253 exists tcp option @5,16,8 3",
        ),
        (
            "ip",
            "ip option lsrr exists sctp chunk data exists",
            "ip option lsrr exists sctp chunk data exists",
        ),
        (
            "ip",
            "dccp option 42 exists dccp option 0 missing",
            "dccp option 42 exists dccp option 0 missing",
        ),
        (
            "ip6",
            "exthdr frag exists rt type 0 srh sid[1] ::1 rt0 addr[1] ::1",
            "exthdr frag exists rt type 0 srh sid[1] ::1 rt0 addr[1] ::1",
        ),
        (
            "ip",
            "fib saddr . iif check exists",
            "fib saddr . iif oif exists",
        ),
        (
            "ip",
            "fib daddr . iif type vmap { local : accept }",
            "fib daddr . iif type vmap { local : accept }",
        ),
        ("ip", "rt nexthop 1.1.1.1", "rt ip nexthop 1.1.1.1"),
        (
            "ip",
            "ct original saddr 1.1.1.1",
            "ct original ip saddr 1.1.1.1",
        ),
        (
            "ip",
            "socket cgroupv2 level 2 \"a/b\" socket transparent 1",
            "socket cgroupv2 level 2 \"a/b\" socket transparent 1",
        ),
        (
            "ip",
            "osf ttl skip version \"Linux:4.20\"",
            "osf ttl skip version \"Linux:4.20\"",
        ),
        (
            "ip",
            "ipsec in spnum 2 ip6 daddr ::1 ipsec out reqid 5",
            "ipsec in spnum 2 ip6 daddr ::1 ipsec out reqid 5",
        ),
        (
            "ip",
            "jhash ip saddr . tcp dport mod 4 seed 0xff offset 2 5 symhash mod 2 offset 1 1",
            "jhash ip saddr . tcp dport mod 4 seed 0xff offset 2 5 symhash mod 2 offset 1 1",
        ),
        (
            "arp",
            "arp saddr ip 1.1.1.1 arp daddr ether 02:00:00:00:00:01",
            "arp saddr ip 1.1.1.1 arp daddr ether 02:00:00:00:00:01",
        ),
        (
            "bridge",
            "ibriport \"x\" vlan id 5 meta ibrhwaddr 02:00:00:00:00:01",
            "meta ibrname \"x\" vlan id 5 meta ibrhwaddr 02:00:00:00:00:01",
        ),
        (
            "ip",
            "@nh,0,8 & 0xf == 1 @ih,0,8 set 5",
            "@nh,0,8 & 0xf == 1 @ih,0,8 set 5",
        ),
        (
            "ip",
            "iifname eth* oifname \"eth\\*\"",
            "iifname eth* oifname \"eth\\*\"",
        ),
        (
            "ip",
            "meta hour \"10:00\"-\"12:30\" meta day Monday",
            "meta hour \"10:00\"-\"12:30\" meta day Monday",
        ),
        (
            "ip",
            "meta priority set 1:2 meta priority none",
            "meta priority set 1:2 meta priority none",
        ),
        (
            "ip",
            "jump { tcp dport 22 accept comment \"x\"\n drop\n }",
            "jump { tcp dport 22 accept comment \"x\"; drop; }",
        ),
        ("ip", "tcp dport ssh - http", "tcp dport ssh -http"),
        ("ip", "ip saddr host /24", "ip saddr host /24"),
        ("ip", "notrack continue", "notrack continue"),
        ("ip", "icmpv6 param-problem 5", "icmpv6 parameter-problem 5"),
    ] {
        let printed = again(family, typed).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(printed, expected);
        let twice = again(family, &printed).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(twice, printed);
    }
}

#[test]
fn fields_are_the_ones_of_their_protocols() {
    let Statement::Match {
        left: Expr::Payload(payload),
        relation,
        right,
    } = statement("tcp dport != 22")
    else {
        panic!();
    };
    assert_eq!(
        (payload.base, payload.offset, payload.bits),
        (PayloadBase::TRANSPORT, 16, 16)
    );
    assert_eq!(
        payload
            .field
            .map(|(protocol, field)| (protocol.name, field)),
        Some(("tcp", 1))
    );
    assert_eq!(relation, Relation::NotEqual);
    assert!(is_symbol(&right, "22"));
    let Statement::Match {
        left: Expr::Payload(raw),
        ..
    } = statement("@th,100,4 5")
    else {
        panic!();
    };
    assert_eq!((raw.offset, raw.bits, raw.field), (100, 4, None));
}

#[test]
fn operator_precedence() {
    let Statement::Match { left, .. } = statement("meta mark & 0xff | 1 << 2 == 5") else {
        panic!();
    };
    let Expr::Binary(Operator::Or, and, shift) = left else {
        panic!("{left:?}");
    };
    assert!(matches!(*and, Expr::Binary(Operator::And, _, _)));
    assert!(matches!(*shift, Expr::Binary(Operator::LeftShift, _, _)));
}

#[test]
fn fib_compared_with_exists_tests_presence() {
    let present = FibFlags::SADDR | FibFlags::PRESENT;
    for (text, flags) in [
        ("fib saddr oif exists", present),
        ("fib saddr oif != missing", present),
        ("fib saddr oif { exists }", present),
        ("fib saddr check exists", present),
        ("fib saddr oif \"exists\"", FibFlags::SADDR),
        ("fib saddr oif eth0", FibFlags::SADDR),
    ] {
        let Statement::Match { left, .. } = statement(text) else {
            panic!("{text}");
        };
        assert_eq!(left, Expr::Fib(flags, FibResult::OIF), "{text}");
    }
    let Statement::Match {
        left: Expr::Option(option),
        ..
    } = statement("tcp option maxseg exists")
    else {
        panic!();
    };
    assert!(option.presence);
    let Statement::Reset(Expr::Option(option)) = statement("reset tcp option maxseg") else {
        panic!();
    };
    assert_eq!((option.presence, option.offset, option.bits), (false, 0, 0));
    let Statement::Match {
        left: Expr::Option(option),
        ..
    } = statement("tcp option maxseg size 5")
    else {
        panic!();
    };
    assert_eq!(
        (option.presence, option.offset, option.bits),
        (false, 16, 16)
    );
}

#[test]
fn ct_addresses_have_the_stated_or_the_tables_version() {
    for (family, text, key, version) in [
        (
            "ip",
            "ct original saddr 1.1.1.1",
            CtKey::SRC,
            Some(Family::IP),
        ),
        (
            "ip6",
            "ct original saddr ::1",
            CtKey::SRC,
            Some(Family::IP6),
        ),
        ("inet", "ct original saddr ::1", CtKey::SRC, None),
        ("inet", "ct original ip saddr 1.1.1.1", CtKey::SRC_IP, None),
    ] {
        let Statement::Match { left, .. } = statement_of(family, text) else {
            panic!("{text}");
        };
        assert_eq!(left, Expr::Ct(key, Some(CtDirection::ORIGINAL), version));
    }
}

#[test]
fn marks_and_objects_are_distinguished() {
    assert!(matches!(
        statement("meta secmark set ct secmark"),
        Statement::Set(Expr::Meta(MetaKey::SECMARK), _)
    ));
    assert!(matches!(
        statement("ct secmark set meta secmark"),
        Statement::Set(Expr::Ct(..), _)
    ));
    assert!(matches!(
        statement("meta secmark set \"x\""),
        Statement::Object(ObjectType::SECMARK, _)
    ));
    assert!(matches!(
        statement("ct helper \"x\""),
        Statement::Match { .. }
    ));
    assert!(matches!(
        statement("ct helper set \"x\""),
        Statement::Object(ObjectType::CT_HELPER, _)
    ));
}

#[test]
fn verdicts_lead_to_chains() {
    let Statement::Verdict(Expr::Verdict(Verdict::Goto(Target::Chain(name)))) =
        statement("goto KUBE-X/a.b")
    else {
        panic!();
    };
    assert_eq!(name, "KUBE-X/a.b");
    let Statement::Verdict(Expr::Verdict(Verdict::Jump(Target::Rules(lines)))) =
        statement("jump {\n\tcounter\n\n\taccept; drop\n}")
    else {
        panic!();
    };
    assert_eq!(lines.len(), 3);
}

#[test]
fn statements_have_source_spans() {
    let text = "add rule ip t c tcp dport 22 counter accept";
    let commands = commands(text);
    let rule = rules(&commands).next().expect("no rule");
    let places: Vec<&str> = rule
        .statements
        .iter()
        .map(|(_, span)| &text[span.start as usize..span.end as usize])
        .collect();
    assert_eq!(places, ["tcp dport 22", "counter", "accept"]);
}
