//! Constants, addresses, elements and names that the language can confuse.

use super::*;

/// A quoted constant means the same as an unquoted one, as in nft: rules with and without quotes, and nft 1.1.7's
/// result for both.
#[test]
fn quoted_constants_are_still_constants() {
    for words in [
        "tcp dport '22'",
        "tcp dport 'ssh'",
        "tcp dport { '22', '80' }",
        "tcp dport '22'-'25'",
        "tcp dport != '0x16'",
        "meta priority set '5'",
        "meta priority set '1:2'",
        "meta priority 'none'",
        "meta mark set '5'",
        "meta mark and '0xff' == '0x5'",
        "ct mark set meta mark and '0xff'",
        "ct state 'new'",
        "ct state '8'",
        "ip protocol '6'",
        "meta l4proto 'tcp'",
        "tcp flags 'syn'",
        "tcp flags '2'",
        "ip saddr '1.2.3.4'",
        "ip saddr '10.0.0.0'/8",
        "ip6 saddr 'fe80::1'",
        "ether saddr '00:11:22:33:44:55'",
        "meta skuid '0'",
        "meta skuid 'root'",
        "iif 'lo'",
        "iif '1'",
        "ip dscp '10'",
        "icmp type '8'",
        "vlan id '5'",
        "ip ttl set '5'",
        "meta length '5'",
        "meta cgroup '5'",
        "rt classid '5'",
        "meta iifgroup '5'",
        "meta pkttype '0'",
        "meta day '6'",
        "ct expiration '5'",
        "ct label '5'",
        "fib daddr type '2'",
        "tcp option maxseg size set '1400'",
        "tcp dport vmap { '22' : accept }",
        "meta mark set tcp dport map { '22' : '5' }",
        "th dport '22'",
        "@th,16,16 '22'",
        "ip saddr . tcp dport { '1.2.3.4' . '22' }",
        "meta nfproto ipv4 tcp dport 1 tproxy ip to '1.2.3.4':'80'",
    ] {
        let bytes = |words: &str| {
            let text = format!("add rule inet t c {words}");
            let script = Script::parse("text", &text).unwrap_or_else(|error| panic!("{error}"));
            let change = script
                .transaction(None)
                .unwrap_or_else(|error| panic!("{error}"));
            change.transaction().as_bytes().to_vec()
        };
        assert_eq!(
            bytes(&words.replace('\'', "\"")),
            bytes(&words.replace('\'', "")),
            "{words}"
        );
    }
    for words in [
        "ip saddr \"10.0.0.0/8\"",
        "tcp dport \"22-25\"",
        "tcp dport \"x\"",
    ] {
        let script = Script::parse("text", format!("add rule inet t c {words}")).unwrap();
        assert!(script.transaction(None).is_err(), "{words}");
    }
}

/// Addresses without `to`, some of which begin with the keyword for the IP version.
#[test]
fn addresses_are_translated_without_to() {
    for (without, with) in [
        (
            "snat ip saddr map { 192.168.1.1 : 1.1.1.1 }",
            "snat to ip saddr map { 192.168.1.1 : 1.1.1.1 }",
        ),
        (
            "snat ip saddr map { 192.168.1.1 : 1.1.1.1 }",
            "snat ip to ip saddr map { 192.168.1.1 : 1.1.1.1 }",
        ),
        ("snat 1.2.3.4-1.2.3.9", "snat to 1.2.3.4-1.2.3.9"),
        (
            "tcp dport 1 snat 1.2.3.4:10-20",
            "tcp dport 1 snat to 1.2.3.4:10-20",
        ),
        (
            "dnat ip daddr map { 192.168.1.1 : 1.1.1.1 }",
            "dnat to ip daddr map { 192.168.1.1 : 1.1.1.1 }",
        ),
        (
            "dnat tcp dport map { 80 : 1.1.1.1 } : tcp dport map { 80 : 90 }",
            "dnat to tcp dport map { 80 : 1.1.1.1 } : tcp dport map { 80 : 90 }",
        ),
        (
            "dnat ip saddr map { 1.1.1.2 : 1.1.1.1 } : tcp dport map { 80 : 90 }",
            "dnat to ip saddr map { 1.1.1.2 : 1.1.1.1 } : tcp dport map { 80 : 90 }",
        ),
    ] {
        let bytes = |words: &str| {
            let text = format!("add rule ip t c {words}");
            let script = Script::parse("text", &text).unwrap_or_else(|error| panic!("{error}"));
            let change = script
                .transaction(None)
                .unwrap_or_else(|error| panic!("{error}"));
            change.transaction().as_bytes().to_vec()
        };
        assert_eq!(bytes(without), bytes(with), "{without}");
    }
    for wrong in [
        "snat ip 1.2.3.4",
        "redirect 80",
        "redirect tcp dport map { 1 : 2 }",
        "masquerade 80",
        "snat",
    ] {
        let text = format!("add rule ip t c {wrong}");
        assert!(Script::parse("text", text).is_err(), "{wrong}");
    }
}

/// Elements printed individually equal those in the listing.
#[test]
fn single_elements_match_the_listing() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let text = "table inet t {
        set a { type ct_state; elements = { new, established }; }
        set b { type ct_status; elements = { snat }; }
        set c { type mark; elements = { 0x10 comment \"x\" }; }
        set d { type pkt_type; elements = { broadcast }; }
        set e { type fib_addrtype; elements = { local }; }
        set f { type icmp_type; elements = { echo-request }; }
        set g { type tcp_flag; elements = { syn, ack }; }
        set h { type ether_type; elements = { arp }; }
        set i { type dscp; elements = { cs1 }; }
        set j { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/8 . 80-90 }; }
        set k { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 11.0.0.1-11.0.0.9 }; }
        set l { typeof ip saddr . vlan id; elements = { 10.0.0.1 . 5 }; }
        set m { typeof vlan id; elements = { 5 }; }
        set n { type inet_proto . ifname; elements = { tcp . \"eth0\" }; }
        map o { type ct_state : mark; elements = { new : 0x5 }; }
        map p { type inet_service : verdict; elements = { 22 : jump c }; }
        map q { type mark : classid; elements = { 0x1 : 1:5 }; }
        set r { type realm; elements = { 5 }; }
        set s { type devgroup; elements = { 5 }; }
        chain c { }
    }";
    apply(&sandbox, &mut nft, text).unwrap();
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let listing = Listing::new(&snapshot, &Options::default()).to_string();
    let mut compared = 0;
    for set in snapshot.tables().flat_map(|table| table.sets()) {
        let elements: Vec<String> = chainwright_lang::elements(set, &Options::default()).collect();
        let (_, block) = listing
            .split_once(&format!(" {} {{\n", set.set().name()))
            .unwrap();
        let (_, listed) = block.split_once("elements = { ").unwrap();
        let (listed, _) = listed.split_once(" }").unwrap();
        let listed: Vec<&str> = listed.split(',').map(str::trim).collect();
        assert_eq!(elements, listed);
        if !set
            .set()
            .flags()
            .unwrap_or_default()
            .contains(chainwright::nft::SetFlags::INTERVAL)
        {
            let view = set.set();
            let mut each: Vec<_> = set
                .elements()
                .map(|each| chainwright_lang::element(&view, &each, &Options::default()))
                .collect();
            let mut listed: Vec<String> = listed.iter().map(|each| (*each).to_owned()).collect();
            each.sort();
            listed.sort();
            assert_eq!(each, listed);
        }
        compared += 1;
    }
    assert_eq!(compared, 19);
}

/// Names that nft's language cannot express are never printed as another text, no two of them as the same text, and the
/// listing creates nothing else when it is loaded again.
#[test]
fn names_invalid_in_the_language_are_escaped() {
    use chainwright::nft::Table;
    let names: &[&[u8]] = &[
        b"a;b",
        b"a b",
        b"x {",
        b"a\nb",
        b"a\tb",
        b"a\"b",
        b"a'b",
        b"\xff",
        b"\xfe",
        b"a\x1b[31m",
        b"#a",
        b"a#",
        b"a\\b",
        b"a\\x3bb",
        b"$a",
        b"@a",
        b"a*",
        b"*",
        b"-a",
        b"a}",
        b"a,b",
        b"a(b",
        b"a=b",
        b"a:b",
        b"\xc3\xa4",
        b"a?b",
        b"1/a",
        b"..",
        b"a; add table ip evil",
    ];
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    let of = |name: &'static [u8]| bstr::BStr::new(name);
    tx.add(&Table::new(Family::INET, "t")).unwrap();
    tx.add(&Chain::new(Family::INET, "t", "good")).unwrap();
    for name in names {
        tx.add(&Table::new(Family::IP, of(name))).unwrap();
        tx.add(&Chain::new(Family::IP, of(name), "inside")).unwrap();
        tx.add(&Chain::new(Family::INET, "t", of(name))).unwrap();
    }
    nft.commit(&tx).unwrap();
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let listing = Listing::new(&snapshot, &Options::default()).to_string();
    let marked: Vec<&str> = listing
        .lines()
        .filter(|line| line.contains("# table ip ") || line.contains("# \tchain "))
        .collect();
    assert_eq!(marked.len(), 2 * names.len() + names.len(), "{listing}");
    let mut tables: Vec<&str> = listing
        .lines()
        .filter(|line| line.starts_with("# table ip "))
        .collect();
    tables.sort();
    tables.dedup();
    assert_eq!(tables.len(), names.len(), "{listing}");
    assert!(
        !listing.contains(['\x1b', '?']) || listing.contains("a?b"),
        "{listing}"
    );
    let other = crate::common::sandbox();
    let mut again = connect(&other);
    apply(&other, &mut again, &listing).unwrap();
    let loaded = Tools::new(&other).run("nft list ruleset");
    assert_eq!(loaded, "table inet t {\n\tchain good {\n\t}\n}\n");
    let tables = Listing::new(&snapshot, &Options::default())
        .part(chainwright_lang::Part::Tables)
        .to_string();
    assert!(
        tables
            .lines()
            .all(|line| line == "table inet t" || line.starts_with("# table ip \"")),
        "{tables}"
    );
    // In JSON, bytes that are not text remain distinct, too, and are refused.
    let options = Options::default();
    let json = Listing::new(&snapshot, &options).json().to_string();
    assert!(
        json.contains("\u{fffd}xff") && json.contains("\u{fffd}xfe"),
        "{json}"
    );
    let json = r#"{"nftables":[{"add":{"table":{"family":"ip","name":"@xff"}}}]}"#
        .replace('@', "\u{fffd}");
    assert!(Script::parse_json("text", json).is_err());
}

/// The same for everything else with a name or a text. No byte of it controls a terminal or ends a line, and the
/// listing creates nothing else when it is loaded again; an event with such a name has no text.
#[test]
fn names_of_all_kinds_are_printed_unambiguously() {
    use bstr::BStr;
    use chainwright::nft::build::{Build, in_set};
    use chainwright::nft::expr::{Counter, Log, ObjectType, Quota};
    use chainwright::nft::live::{Item, Monitor};
    use chainwright::nft::{
        Bytes, DataType, Element, Name, ObjectData, Rule, Set, SetId, StatefulObject, Table,
    };
    use chainwright_lang::{EventFormatter, Formatted};
    const NAMES: [&[u8]; 11] = [
        b"a;b",
        b"x {",
        b"a\nb",
        b"a\"b",
        b"\xff",
        b"\xfe",
        b"a\x1b[31m",
        b"a\x07",
        b"\xc2\x9b2J",
        b"a\x7f",
        b"; add table ip evil",
    ];
    let chainwright = sandbox();
    let mut nft = connect(&chainwright);
    let mut monitor = chainwright.run(Monitor::open).unwrap().unwrap();
    let mut formatter = EventFormatter::empty(Options::default());
    let mut tx = Transaction::new();
    let family = Family::INET;
    for table in ["sets", "maps", "rules"] {
        tx.add(&Table::new(family, table)).unwrap();
    }
    for chain in ["good", "said"] {
        tx.add(&Chain::new(family, "rules", chain)).unwrap();
    }
    let build = || Build::new(family, "rules", "good");
    let userdata = |name: &[u8]| {
        let data = [&[0, name.len() as u8 + 1], name, &[0]].concat();
        Some(Bytes::from(data))
    };
    for name in NAMES {
        let name = BStr::new(name);
        let set = |table| Set::new(family, table, name, DataType::IPV4_ADDR, 4);
        tx.add(&set("sets")).unwrap();
        tx.add(&set("rules")).unwrap();
        tx.add(&Chain::new(family, "rules", name)).unwrap();
        tx.add(&set("maps").with_verdicts()).unwrap();
        let (counter, quota) = (Counter::default(), Quota::until(1));
        let objects: [ObjectData<'_>; 2] = [counter.into(), quota.into()];
        for data in objects {
            tx.add(&StatefulObject::new(family, "rules", name, data))
                .unwrap();
        }
        let log = Log {
            prefix: Some(name.into()),
            ..Log::default()
        };
        let commented = Rule {
            userdata: userdata(name),
            ..Rule::new(family, "rules", "said")
        };
        let rules = [
            build().ip_saddr(in_set(Name::from(name))).accept().unwrap(),
            build().jump(name).unwrap(),
            build().object(ObjectType::COUNTER, name).accept().unwrap(),
            Rule::new(family, "rules", "good").with(&log),
            commented.with(&Counter::default()),
        ];
        for rule in &rules {
            tx.add(rule).unwrap();
        }
    }
    let elements = Set::new(family, "maps", "of", DataType::IPV4_ADDR, 4);
    tx.add(&elements).unwrap();
    let each = (0..).zip(NAMES).map(|(number, name)| Element {
        userdata: userdata(name),
        ..Element::new(vec![10, 0, 0, number])
    });
    tx.add_elements(&SetId::new(family, "maps", "of"), each)
        .unwrap();
    nft.commit(&tx).unwrap();

    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let options = Options::default();
    let listing = Listing::new(&snapshot, &options).to_string();
    let is_harmful = |c: char| (c.is_control() && !"\n\t".contains(c)) || "?\u{fffd}".contains(c);
    assert!(!listing.contains(is_harmful), "{listing:?}");
    let blocks = |kind: &str| listing.matches(&format!("\n# \t{kind} \"")).count();
    for (kind, count) in [
        ("set", 2 * NAMES.len()),
        ("map", NAMES.len()),
        ("counter", NAMES.len()),
        ("quota", NAMES.len()),
        ("chain", NAMES.len()),
    ] {
        assert_eq!(blocks(kind), count, "{kind}: {listing}");
    }
    let mut lines: Vec<_> = listing
        .lines()
        .filter(|line| line.contains("[ log"))
        .collect();
    lines.sort();
    lines.dedup();
    assert_eq!(lines.len(), NAMES.len() - 3, "{listing}");
    let other = crate::common::sandbox();
    let mut again = connect(&other);
    apply(&other, &mut again, &listing).unwrap();
    let loaded = Tools::new(&other).run("nft list ruleset");
    // Text that can be quoted is printed as a prefix.
    let quoted: String = [NAMES[0], NAMES[1], NAMES[10]]
        .iter()
        .map(|name| format!("\t\tlog prefix \"{}\"\n", BStr::new(name)))
        .collect();
    let commented: Vec<String> = NAMES
        .iter()
        .map(
            |name| match [NAMES[0], NAMES[1], NAMES[10]].contains(name) {
                true => format!(
                    "\t\tcounter packets 0 bytes 0 comment \"{}\"\n",
                    BStr::new(name)
                ),
                false => "\t\tcounter packets 0 bytes 0\n".to_owned(),
            },
        )
        .collect();
    assert_eq!(
        loaded,
        format!(
            "table inet sets {{\n}}\ntable inet maps {{\n\tset of {{\n\t\ttype ipv4_addr\n\t}}\n}}\n\
             table inet rules {{\n\tchain good {{\n{quoted}\t}}\n\n\tchain said {{\n{}\t}}\n}}\n",
            commented.concat()
        )
    );

    let Item::Change(change) = monitor.receive().unwrap() else {
        panic!()
    };
    let formatted = formatter.format(&change);
    let (mut printed, mut wordless) = (0, 0);
    for (event, formatted) in change.events().zip(&formatted) {
        assert!(!event.to_string().contains(is_harmful), "{event}");
        match formatted {
            Formatted::Line(line) => {
                printed += 1;
                assert!(!line.to_string().contains(is_harmful), "{line}");
            }
            _ => wordless += 1,
        }
    }
    // Tables, chains, the set with a good name, rules with quoted prefixes and rules with comments.
    assert_eq!(printed, 3 + 2 + 1 + 3 + NAMES.len() + 3, "{formatted:?}");
    assert_eq!(printed + wordless, change.events().count());
    let mut names: Vec<_> = change.events().map(|event| event.to_string()).collect();
    names.retain(|name| name.starts_with("add set inet sets"));
    names.dedup();
    assert_eq!(names.len(), NAMES.len(), "{names:?}");
}
