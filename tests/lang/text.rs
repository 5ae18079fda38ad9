//! Rulesets in nft's language: the library lists what nft lists, character for character, except where nft writes
//! something else than the rule. Those lines are listed here with their corrections.

use crate::common::rulesets::{Ruleset, options_in, rules_of_every_expression, without_remainders};
use crate::common::scripts::apply;
use crate::common::tools::Tools;
use crate::common::{connect, sandbox};
use chainwright::nft::expr::{
    Cmp, Exthdr, ExthdrFlags, Immediate, Limit, Meta, MetaKey, Payload, PayloadBase, Register,
    Verdict,
};
use chainwright::nft::stateful::CtTimeout;
use chainwright::nft::{
    Chain, DataType, Family, ObjectData, Rule, Scope, Set, Snapshot, StatefulObject, Table,
    Transaction,
};
use chainwright_lang::{Listing, NftVersion, Options};
use chainwright_testing::Sandbox;

/// Lines of nft 1.0.6 that are read back as something else, and the library's lines.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "writes a shift that exists only to compare the field: parsed again, the shift occurs twice",
        "ip version >> 4 . ip hdrlength @versions",
        "ip version . ip hdrlength @versions",
    ),
    ("the same", "ip dscp >> 2 . ip saddr", "ip dscp . ip saddr"),
    (
        "the same",
        "tcp doff >> 4 . tcp dport",
        "tcp doff . tcp dport",
    ),
    (
        "the same",
        "iifname . ip dscp >> 2 map",
        "iifname . ip dscp map",
    ),
    (
        "the same",
        "ip6 dscp >> 6 . ip6 daddr",
        "ip6 dscp . ip6 daddr",
    ),
    ("the same", "vlan id . vlan pcp >> 5", "vlan id . vlan pcp"),
    (
        "ports without their type",
        "{ 0x50 [invalid type], 0x1bb [invalid type] }",
        "{ 80, 443 }",
    ),
    (
        "the same",
        "{ 0x35 [invalid type], 0x7b [invalid type] }",
        "{ 53, 123 }",
    ),
    (
        "the first bytes of an address as its last ones",
        "ct reply ip daddr 0.198.51.100",
        "ct reply ip daddr 198.51.100.0/24",
    ),
    (
        "bytes of an option that belong to no field",
        "tcp option mptcp unknown 7684",
        "tcp option @30,0,16 7684",
    ),
    (
        "the same",
        "tcp option sack unknown 3",
        "tcp option @5,16,8 3",
    ),
    (
        "a changed byte as the two bytes that are written",
        "th sport set th sport & 255 comment",
        "icmp type set echo-reply comment",
    ),
    (
        "omits a port from a map",
        "tcp dport 82 tproxy to 127.0.0.1 comment",
        "tcp dport 82 tproxy to 127.0.0.1:tcp dport map { 82 : 3182, 83 : 3183 } comment",
    ),
    (
        "bytes as fields that are longer than these bytes",
        "ip6 version 0 ip6 dscp lephb ip6 ecn ect1",
        "@nh,0,16 & 0xfff0 == 0x50",
    ),
    ("the same", "ip6 version 0 ip6 dscp af22/4", "@nh,0,8 0x5"),
    (
        "changed bytes as the two bytes that are written",
        "th sport set th sport & 33023 | 32768",
        "icmpv6 type set echo-request",
    ),
    (
        "the same",
        "th sport set th sport & 2303 | 2048",
        "icmp type set echo-request",
    ),
    (
        "the same",
        "th sport set th sport & 4607 | 4352",
        "igmp type set membership-query",
    ),
    (
        "the packet in a frame as any packet",
        "\tip saddr 1.1.1.1",
        "\tether type ip ip saddr 1.1.1.1",
    ),
    (
        "the same",
        "\ticmpv6 type echo-request",
        "\tether type ip6 icmpv6 type echo-request",
    ),
    (
        "text that cannot be parsed again",
        "\tarp operation reply",
        "\tether type arp arp operation reply",
    ),
];

/// The text for a byte that is set to 0 depends on the rule: nft prints all of these alike.
const ONE_OF: (&str, &[&str]) = (
    "th sport set th sport & 65280",
    &[
        "icmp code set net-unreachable",
        "icmpv6 code set no-route",
        "igmp mrt set 0",
    ],
);

/// The library's listing.
fn listed(snapshot: &Snapshot, options: &Options) -> String {
    Listing::new(snapshot, options).to_string()
}

/// The library's listing with the sandbox's interface names, and with hours and days in the tools' time zone.
fn chainwright(sandbox: &Sandbox, change: impl Fn(&mut Options)) -> String {
    let snapshot = connect(sandbox)
        .snapshot(Scope::all())
        .expect("cannot read the ruleset");
    let mut options = options_in(sandbox, NftVersion::V1_0);
    change(&mut options);
    listed(&snapshot, &options)
}

/// Whether a line corrects nft's.
fn corrects(nfts: &str, chainwright: &str) -> bool {
    let (wrong, right) = ONE_OF;
    let is_fixed = |(_, wrong, right): &(&str, &str, &str)| {
        nfts.contains(wrong) && nfts.replace(wrong, right) == chainwright
    };
    WRONG.iter().any(is_fixed)
        || right
            .iter()
            .any(|right| nfts.replace(wrong, right) == chainwright)
}

/// Compares line by line. Returns the number of lines that nft has wrong.
#[track_caller]
fn compare_lines(name: &str, nfts: &str, chainwright: &str) -> usize {
    let (nfts, chainwright): (Vec<&str>, Vec<&str>) =
        (nfts.lines().collect(), chainwright.lines().collect());
    let mut wrong = 0;
    let mut differ = Vec::new();
    for (index, (nft, our)) in nfts.iter().zip(&chainwright).enumerate() {
        match (nft == our, corrects(nft, our)) {
            (true, _) => {}
            (false, true) => wrong += 1,
            (false, false) => differ.push(format!("{}: nft  {nft}\n      ours {our}", index + 1)),
        }
    }
    assert!(differ.is_empty(), "{name}:\n{}", differ.join("\n"));
    assert_eq!(nfts.len(), chainwright.len(), "{name}: lines");
    wrong
}

#[test]
fn rulesets_are_listed_like_nft() {
    let (mut compared, mut wrong) = (0, 0);
    for ruleset in Ruleset::all() {
        // nft 1.0.6 drops the first of six fields, and so lists wrong elements.
        if ruleset.name == "sets-concatenation-six-fields" {
            continue;
        }
        let Some(sandbox) = ruleset.load() else {
            continue;
        };
        let any_order = ruleset.has_any_order();
        let tools = Tools::new(&sandbox);
        type Change = fn(&mut Options);
        let ways: [(&str, Change); 4] = [
            ("", |_| {}),
            ("-a ", |options| options.handles = true),
            ("-s ", |options| options.stateless = true),
            ("-t ", |options| options.terse = true),
        ];
        for (option, change) in ways {
            let nfts = tools.run(&format!("nft {option}list ruleset"));
            let chainwright = chainwright(&sandbox, change);
            let plain = |text: &str| without_remainders(text, any_order);
            let (nfts, chainwright) = (plain(&nfts), plain(&chainwright));
            wrong += compare_lines(&format!("{} {option}", ruleset.name), &nfts, &chainwright);
            compared += nfts.lines().count();
        }
    }
    println!("compared {compared} lines; nft lists {wrong} of them wrongly");
    assert!(compared > 15_000, "{compared}");
}

#[test]
fn six_fields_are_not_listed_as_five() {
    let rulesets = Ruleset::all();
    let six = rulesets
        .iter()
        .find(|r| r.name == "sets-concatenation-six-fields");
    let sandbox = six
        .and_then(Ruleset::load)
        .expect("cannot load the ruleset");
    let chainwright = chainwright(&sandbox, |_| {});
    assert!(
        chainwright.contains("# elements that nft cannot express"),
        "{chainwright}"
    );
    assert!(!chainwright.contains("elements = {"), "{chainwright}");
}

#[test]
fn rules_of_every_expression_are_listed_like_nft() {
    let (sandbox, rules) = rules_of_every_expression();
    let tools = Tools::new(&sandbox);
    let nfts = tools.run("nft list ruleset");
    let wrong = compare_lines("rules", &nfts, &chainwright(&sandbox, |_| {}));
    println!("compared {rules} rules; nft lists {wrong} of them wrongly");
    assert!(rules > 5_000, "{rules}");
}

/// Lines that correct nft's are read back as the same instructions.
#[test]
fn lines_that_correct_nft_round_trip() {
    let cases = [
        ("inet", "ip version . ip hdrlength { 4 . 5 }"),
        ("inet", "ip dscp . ip saddr { ef . 192.0.2.1 } accept"),
        ("ip", "icmp type set echo-reply"),
        ("ip6", "icmpv6 code set no-route"),
        ("ip", "ct reply ip daddr 198.51.100.0/24"),
        ("inet", "tcp option @5,16,8 3"),
        // 1.0.6 omits fractions of a second.
        ("ip", "ct expiration 1s500ms-2s500ms"),
        ("ip", "ct expiration { 0s-999ms, 1m-1m1s }"),
    ];
    for (family, rule) in cases {
        read_back(family, rule);
    }
}

/// The library's text for a rule, from which nft makes the same instructions.
#[track_caller]
fn read_back(family: &str, rule: &str) -> String {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let script = format!("table {family} t {{\n chain c {{\n{rule}\n}}\n}}\n");
    tools.run_with("nft -f -", &script);
    let before = bytecode(&tools);
    let chainwright = chainwright(&sandbox, |_| {});
    tools.run("nft flush ruleset");
    tools.run_with("nft -f -", &chainwright);
    assert_eq!(bytecode(&tools), before, "{rule}\n{chainwright}");
    chainwright
}

/// Names that the kernel accepts and nft's language does not, and registers that nft never uses: no line is another
/// rule.
#[test]
fn inexpressible_rules_are_listed_as_comments() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    let odd = "web\n\t\taccept";
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    for chain in ["c", odd, "two words"] {
        tx.add(&Chain::new(Family::IP, "t", chain)).unwrap();
    }
    let rule = || Rule::new(Family::IP, "t", "c");
    let mut rules = Vec::new();
    for chain in [odd, "two words"] {
        let jump = Verdict::Jump(chain.into());
        rules.push(rule().with(&Immediate::verdict(jump)));
    }
    // An interface name that would end its quotation marks.
    let name = Meta::load(MetaKey::IIFNAME, Register::R1);
    rules.push(
        rule()
            .with(&name)
            .with(&Cmp::eq(Register::R1, b"x\" accept \"\0\0\0\0\0")),
    );
    // With a register of one word, which nft can express; and a comment that it cannot express.
    let first = Meta::load(MetaKey::MARK, Register::word(0));
    let second = Cmp::eq(Register::word(0), &[1, 0, 0, 0]);
    rules.push(
        rule()
            .with(&first)
            .with(&second)
            .with_comment("say \"x\" # accept")
            .unwrap(),
    );
    // A time between two seconds.
    let time = Meta::load(MetaKey::TIME_NS, Register::R1);
    let second = 1_700_000_000_u64 * 1_000_000_000;
    for nanoseconds in [0, 1] {
        let value = (second + nanoseconds).to_ne_bytes();
        rules.push(rule().with(&time).with(&Cmp::eq(Register::R1, &value)));
    }
    for rule in &rules {
        tx.add(rule).unwrap();
    }
    nft.commit(&tx).unwrap_or_else(|error| panic!("{error}"));

    let chainwright = chainwright(&sandbox, |_| {});
    let lines: Vec<&str> = chainwright.lines().map(str::trim).collect();
    let rules = &lines[2..8];
    assert!(
        rules[..3].iter().all(|line| line.starts_with("# [ ")),
        "{chainwright}"
    );
    let order = if cfg!(target_endian = "little") {
        "0x00000001"
    } else {
        "0x01000000"
    };
    assert_eq!(
        rules[3],
        format!(r#"meta mark {order} # comment "say \x22x\x22 # accept""#)
    );
    assert_eq!(rules[4], "meta time \"2023-11-14 22:13:20\"");
    assert!(rules[5].starts_with("# [ "), "{chainwright}");
    assert!(!lines.contains(&"accept"), "{chainwright}");
}

/// Times of limits and protocols of timeouts that nft cannot express.
#[test]
fn inexpressible_objects_and_sets_are_listed_as_comments() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let every_two_hours = Limit::packets(10, 7200, 5);
    let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4)
        .with_updates(16)
        .with_expression(&every_two_hours);
    let icmp = CtTimeout::new(libc::IPPROTO_ICMP as u8, &[(1, 7)]);
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    tx.add(&Chain::new(Family::IP, "t", "c")).unwrap();
    tx.add(&set).unwrap();
    let objects: [(&str, ObjectData<'_>); 2] =
        [("l", every_two_hours.clone().into()), ("t", icmp.into())];
    for (name, data) in objects {
        tx.add(&StatefulObject::new(Family::IP, "t", name, data))
            .unwrap();
    }
    tx.add(&Rule::new(Family::IP, "t", "c").with(&every_two_hours))
        .unwrap();
    nft.commit(&tx).unwrap_or_else(|error| panic!("{error}"));

    let chainwright = chainwright(&sandbox, |_| {});
    let expected = "\
table ip t {
	limit l {
		# [ limit rate 10 unit 7200 burst 5 type 0 flags 0 ]
	}

	ct timeout t {
		# [ ct_timeout family 2 protocol 1 policy = {state 1 = 7,}]
	}

	set s {
		type ipv4_addr
		size 16
		flags dynamic
		# statements that nft cannot express
	}

	chain c {
		# [ limit rate 10/error burst 5 type packets flags 0x0 ]
	}
}
";
    assert_eq!(chainwright, expected);
}

/// A match of a protocol is omitted only before a field that implies it.
#[test]
fn matches_that_are_not_implied_are_listed() {
    let cases = [
        (
            "inet",
            "meta l4proto 200 @th,16,16 80",
            "meta l4proto 200 th dport 80",
        ),
        (
            "inet",
            "meta l4proto udp tcp option maxseg exists",
            "meta l4proto udp tcp option maxseg exists",
        ),
        (
            "bridge",
            "meta iiftype ether ether saddr 02:00:00:00:00:01",
            "meta iiftype ether ether saddr 02:00:00:00:00:01",
        ),
        // nft 1.0.6 lists these without their first match, and so as rules for all IP versions.
        (
            "inet",
            "meta nfproto ipv4 meta l4proto icmp accept",
            "meta nfproto ipv4 meta l4proto icmp accept",
        ),
        (
            "inet",
            "meta nfproto ipv6 meta l4proto ipv6-icmp counter packets 0 bytes 0 accept",
            "meta nfproto ipv6 meta l4proto ipv6-icmp counter packets 0 bytes 0 accept",
        ),
        (
            "netdev",
            "meta protocol ip meta l4proto icmp accept",
            "meta protocol ip meta l4proto icmp accept",
        ),
        (
            "bridge",
            "ether type ip meta l4proto icmp accept",
            "ether type ip meta l4proto icmp accept",
        ),
        // A field of ICMP implies both, in this order.
        (
            "inet",
            "meta nfproto ipv4 meta l4proto icmp icmp type echo-request",
            "icmp type echo-request",
        ),
        (
            "inet",
            "meta l4proto icmp meta nfproto ipv4 accept",
            "meta l4proto icmp meta nfproto ipv4 accept",
        ),
    ];
    for (family, rule, listed) in cases {
        let chainwright = read_back(family, rule);
        assert!(
            chainwright.contains(&format!("\t\t{listed}\n")),
            "{rule}\n{chainwright}"
        );
    }
}

/// A rule that nft refuses and the kernel accepts: a header of IPv6 in packets of IPv4, which never contain it.
#[test]
fn a_header_of_another_protocol_keeps_earlier_matches() {
    let sandbox = sandbox();
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::INET, "t")).unwrap();
    tx.add(&Chain::new(Family::INET, "t", "c")).unwrap();
    let fragment = Exthdr {
        dreg: Some(Register::R1),
        header_type: Some(44),
        offset: Some(0),
        len: Some(1),
        flags: Some(ExthdrFlags::PRESENT),
        ..Exthdr::default()
    };
    let rule = Rule::new(Family::INET, "t", "c")
        .with(&Meta::load(MetaKey::NFPROTO, Register::R1))
        .with(&Cmp::eq(Register::R1, &[2]))
        .with(&fragment)
        .with(&Cmp::eq(Register::R1, &[1]));
    tx.add(&rule).unwrap();
    connect(&sandbox)
        .commit(&tx)
        .unwrap_or_else(|error| panic!("{error}"));
    let chainwright = chainwright(&sandbox, |_| {});
    assert!(
        chainwright.contains("\t\tmeta nfproto ipv4 exthdr frag exists\n"),
        "{chainwright}"
    );
}

/// A match of the protocol that all packets of the table have is not listed before a field of the packet, as nft does.
#[test]
fn redundant_matches_of_the_family_are_not_listed() {
    const DESTINATION: (PayloadBase, u32, &[u8]) = (PayloadBase::NETWORK, 16, &[192, 0, 2, 1]);
    const PORT: (PayloadBase, u32, &[u8]) = (PayloadBase::TRANSPORT, 2, &[0, 67]);
    const OPERATION: (PayloadBase, u32, &[u8]) = (PayloadBase::NETWORK, 6, &[0, 1]);
    let sandbox = sandbox();
    let mut tx = Transaction::new();
    let cases = [
        (Family::IP, 0x0800_u16, None, DESTINATION),
        (Family::IP, 0x0800, Some(17), PORT),
        (Family::IP6, 0x86dd, Some(17), PORT),
        (Family::ARP, 0x0806, None, OPERATION),
    ];
    for (index, (family, number, transport, (base, offset, value))) in cases.into_iter().enumerate()
    {
        let table = format!("t{index}");
        tx.add(&Table::new(family, table.clone())).unwrap();
        tx.add(&Chain::new(family, table.clone(), "c")).unwrap();
        let mut rule = Rule::new(family, table, "c")
            .with(&Meta::load(MetaKey::PROTOCOL, Register::R1))
            .with(&Cmp::eq(Register::R1, &number.to_be_bytes()));
        if let Some(transport) = transport {
            rule = rule
                .with(&Meta::load(MetaKey::L4PROTO, Register::R1))
                .with(&Cmp::eq(Register::R1, &[transport]));
        }
        let load = Payload::load(base, offset, value.len() as u32, Register::R1);
        let rule = rule.with(&load).with(&Cmp::eq(Register::R1, value));
        tx.add(&rule).unwrap();
    }
    connect(&sandbox)
        .commit(&tx)
        .unwrap_or_else(|error| panic!("{error}"));
    let nfts = Tools::new(&sandbox).run("nft list ruleset");
    assert!(nfts.contains("\t\tudp dport 67\n"), "{nfts}");
    assert_eq!(
        compare_lines("redundant", &nfts, &chainwright(&sandbox, |_| {})),
        0
    );
}

/// A rule for two transport protocols, which no packet has: nft lists fields of both, and reads neither back.
#[test]
fn rules_for_two_protocols_are_read_back() {
    let sandbox = sandbox();
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    tx.add(&Chain::new(Family::IP, "t", "c")).unwrap();
    let mut rule = Rule::new(Family::IP, "t", "c");
    for protocol in [6, 17] {
        rule = rule
            .with(&Meta::load(MetaKey::L4PROTO, Register::R1))
            .with(&Cmp::eq(Register::R1, &[protocol]))
            .with(&Payload::load(PayloadBase::TRANSPORT, 2, 2, Register::R1))
            .with(&Cmp::eq(Register::R1, &[0, protocol]));
    }
    tx.add(&rule).unwrap();
    let mut nft = connect(&sandbox);
    nft.commit(&tx).unwrap_or_else(|error| panic!("{error}"));
    let tools = Tools::new(&sandbox);
    let before = bytecode(&tools);
    let listed = chainwright(&sandbox, |_| {});
    assert!(
        listed.contains("\t\ttcp dport 6 meta l4proto udp th dport 17\n"),
        "{listed}"
    );
    tools.run("nft flush ruleset");
    apply(&sandbox, &mut nft, &listed).unwrap();
    assert_eq!(bytecode(&tools), before);
}

/// The instructions and elements that nft lists.
fn bytecode(tools: &Tools<'_>) -> Vec<String> {
    let listed = tools.run("nft --debug=netlink list ruleset");
    let lines = listed
        .lines()
        .filter(|line| line.contains('[') || line.contains("element"));
    lines.map(str::to_owned).collect()
}

#[test]
fn client_rulesets_are_listed_like_nft() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.load_nft(include_str!("../data/kube-proxy-1.36-nftables.nft"));
    let nfts = tools.run("nft list ruleset");
    assert_eq!(
        compare_lines("kube-proxy", &nfts, &chainwright(&sandbox, |_| {})),
        0
    );
}
