//! Scripts in nft's language: the library's result for a text is that of nft, byte for byte.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::rulesets::{OF_CLIENTS, Ruleset, TypedRules, data, options_in};
use crate::common::scripts::{
    apply, compare, compare_errors, compare_listings, compare_objects, instructions, is_same_text,
    without_known_errors,
};
use crate::common::tools::Tools;
use crate::common::{OnDrop, connect, sandbox};
use chainwright::Retry;
use chainwright::nft::{Chain, Connection, Element, Family, Scope, SetId, Transaction};
use chainwright_lang::{Listing, Mode, NftVersion, Options, RunError, Script};
use chainwright_testing::Sandbox;

#[test]
fn rulesets_are_created_like_nft() {
    let mut failures = BTreeMap::new();
    let (mut made, mut left_out) = (0, 0);
    for ruleset in Ruleset::all() {
        let (Some(theirs), Some(ours)) = (ruleset.prepare(), ruleset.prepare()) else {
            continue;
        };
        let (text, lines) = without_known_errors(&ruleset.text);
        left_out += lines;
        Tools::new(&theirs).run_with("nft -f -", &text);
        let any_order = ruleset.has_any_order();
        let mut nft = connect(&ours);
        let applied = apply(&ours, &mut nft, &text);
        // nft 1.0.6 records five of six fields of a set.
        let result = match &ruleset.name[..] {
            "sets-concatenation-six-fields" => {
                applied.and_then(|()| compare_listings(&theirs, &ours, any_order))
            }
            // It cannot read the notes of newer versions about `ipsec`, nor can these read its own: its listing
            // contains types.
            "ipsec" => applied.and_then(|()| compare_objects(&theirs, &ours)),
            _ => applied.and_then(|()| compare(&theirs, &ours, any_order)),
        };
        match result {
            Ok(()) => made += 1,
            Err(failure) => _ = failures.insert(ruleset.name.clone(), failure),
        }
    }
    for (name, failure) in &failures {
        println!("===== {name}: {failure}");
    }
    let names: Vec<_> = failures.keys().collect();
    assert!(failures.is_empty(), "{names:#?}");
    assert!(made > 90, "{made}");
    assert_eq!(left_out, 4);
}

/// Rulesets that their listing does not recreate exactly, and the reasons.
const NOT_RECREATED: &[(&str, &str)] = &[
    (
        "base-chains-inet",
        "like nft, lists the devices of a chain by name, and sends them in reverse order",
    ),
    ("dormant-base-chains", "the same"),
    (
        "sets-concatenation-six-fields",
        "the kernel stores five of six types, so the set cannot be expressed",
    ),
    (
        "ipsec",
        "newer versions cannot read the user data of 1.0.6 about `ipsec`: it lists types for the library's user data",
    ),
    (
        "fib",
        "the interface names have the type that newer versions list",
    ),
    (
        "synproxy",
        "like nft, lists both options when one is missing, so both are set",
    ),
    (
        "unreadable-ct",
        "an address of a connection is listed with its IP version",
    ),
    (
        "unreadable-payload",
        "a set of one range cannot be expressed: in braces or not, it is a range",
    ),
];

/// The same for the form of nft 1.1.
const NOT_RECREATED_SINCE_1_1: &[(&str, &str)] = &[
    (
        "expression-bitwise",
        "like nft, lists adjacent bits at their own offset, where their bytes are read then",
    ),
    ("payload-raw", "the same"),
];

/// Rules that their listing does not recreate, and the reasons; the listing equals that of nft 1.0.6, which does not
/// recreate them either.
const RULES_NOT_RECREATED: &[(&str, &str)] = &[(
    "meta mark { 0x00000001-0x00000005 }",
    "a set of one range: in braces or not, it is a range",
)];

/// The library's listing of a ruleset creates the same one, in the form of each version.
#[test]
fn listings_of_rulesets_round_trip() {
    for version in NftVersion::ALL {
        let mut failures = BTreeMap::new();
        let mut made = 0;
        for ruleset in Ruleset::all() {
            let (Some(first), Some(again)) = (ruleset.load(), ruleset.prepare()) else {
                continue;
            };
            let any_order = ruleset.has_any_order();
            let snapshot = connect(&first)
                .snapshot(Scope::all())
                .expect("cannot read the ruleset");
            let options = options_in(&first, version);
            let listed = Listing::new(&snapshot, &options).to_string();
            let result = apply(&again, &mut connect(&again), &listed)
                .and_then(|()| compare(&first, &again, any_order));
            match result {
                Ok(()) => made += 1,
                Err(failure) => _ = failures.insert(ruleset.name.clone(), failure),
            }
        }
        for (name, failure) in &failures {
            println!("===== {version} {name}: {failure}");
        }
        let names: Vec<_> = failures.keys().map(String::as_str).collect();
        let since = match version {
            NftVersion::V1_0 => &[],
            _ => NOT_RECREATED_SINCE_1_1,
        };
        let expected = NOT_RECREATED.iter().chain(since);
        let expected: Vec<_> = expected.map(|(name, _)| *name).collect();
        // If the kernel lacks a ruleset's features, the ruleset was not tried.
        let is_expected = |name: &&str| expected.contains(name);
        assert!(names.iter().all(is_expected), "{version}: {names:#?}");
        assert!(made > 80, "{made}");
    }
}

#[test]
fn client_rulesets_are_created_like_nft() {
    let mut made = 0;
    for name in OF_CLIENTS.iter().filter(|name| name.ends_with(".nft")) {
        let (theirs, ours) = (sandbox(), sandbox());
        Tools::new(&theirs).load_nft(&data(name));
        apply(&ours, &mut connect(&ours), &data(name)).unwrap_or_else(|error| panic!("{error}"));
        compare(&theirs, &ours, false).unwrap();
        made += 1;
    }
    assert!(made > 0);
}

#[test]
fn rules_of_every_expression_are_created_like_nft() {
    let mut rules = TypedRules::new();
    let all = rules.rules.len();
    rules.rules.retain(|rule| without_known_errors(rule).1 == 0);
    assert_eq!(all - rules.rules.len(), 1);
    let (theirs, ours) = (sandbox(), sandbox());
    rules.load_into(&theirs);
    let mut nft = connect(&ours);
    for piece in rules.pieces() {
        apply(&ours, &mut nft, &piece).unwrap_or_else(|error| panic!("{error}"));
    }
    compare(&theirs, &ours, false).unwrap();
    assert!(all > 5_000, "{all}");
}

/// The library's listing of each of them creates the same one, in the form of each version.
#[test]
fn rules_of_every_expression_round_trip() {
    for (version, printed_alike) in PRINTED_ALIKE {
        rules_round_trip(version, printed_alike);
    }
}

fn rules_round_trip(version: NftVersion, printed_alike: usize) {
    let rules = TypedRules::new();
    let (first, again) = (sandbox(), sandbox());
    rules.load_into(&first);
    let mut nft = connect(&first);
    let snapshot = nft.snapshot(Scope::all()).expect("cannot read the ruleset");
    let mut options = options_in(&first, version);
    options.handles = true;
    let listed = Listing::new(&snapshot, &options).to_string();
    let mut lines: Vec<&str> = listed.lines().collect();
    let (mut failures, mut left_out) = (Vec::new(), 0);
    // The kernel's rule is omitted, too.
    let mut leave_out = |lines: &mut Vec<&str>, index: usize, why: &str| {
        let (rule, handle) = lines[index]
            .rsplit_once(" # handle ")
            .unwrap_or_else(|| panic!("{why}"));
        let rule = rule.trim();
        let word = |start: &str| {
            let above = lines[..index].iter().rev();
            let mut found = above.filter_map(|line| line.trim().strip_prefix(start));
            found.next().expect("the rule is in no chain of a table")
        };
        let chain = word("chain ").split(' ').next().expect("no name");
        let mut table = word("table ").split(' ');
        let (family, table) = (
            table.next().expect("no family"),
            table.next().expect("no name"),
        );
        Tools::new(&first).run(&format!(
            "nft delete rule {family} {table} {chain} handle {handle}"
        ));
        match RULES_NOT_RECREATED.iter().any(|(other, _)| *other == rule) {
            true => left_out += 1,
            false => failures.push(format!("{family} {chain} {rule}: {why}")),
        }
        lines.remove(index);
    };
    let is_one = |line: &&str| {
        let rule = line.trim().split(" # handle ").next();
        RULES_NOT_RECREATED
            .iter()
            .any(|(other, _)| rule == Some(*other))
    };
    while let Some(index) = lines.iter().position(is_one) {
        leave_out(&mut lines, index, "");
    }
    let of_again = &mut connect(&again);
    while let Err(error) = apply(&again, of_again, &lines.join("\n")) {
        // The rule that the error refers to.
        let place = error.lines().find_map(|line| line.split_once("rules.nft:"));
        let number = place.and_then(|(_, rest)| rest.split(':').next()?.parse::<usize>().ok());
        let index = number.unwrap_or_else(|| panic!("{error}")) - 1;
        leave_out(&mut lines, index, &error);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(left_out, 5); // in each family
    // The numbers of anonymous sets continue, so they differ from those in the first bytecode.
    assert!(is_same_text(&first, &again), "the listings differ");
    // The kernel's instructions are the same, except where nft prints different instructions as the same text.
    let (first, again) = (instructions(&first), instructions(&again));
    assert_eq!(first.len(), again.len());
    let differ = first.iter().zip(&again).filter(|(one, other)| one != other);
    let differ: Vec<_> = differ.collect();
    for (one, other) in &differ {
        println!("{one}becomes\n{other}");
    }
    assert_eq!(differ.len(), printed_alike, "{version}");
}

/// Number of rules of every expression whose text gives other but equivalent instructions: a part of a field is matched
/// by a mask or by its bytes, a protocol in the packet's header or by `meta l4proto`, several fields whose first ones
/// are 0 at once; and a write without an update of the checksum is printed like one with it.
const PRINTED_ALIKE: [(NftVersion, usize); 2] = [(NftVersion::V1_0, 22), (NftVersion::V1_1, 22)];

/// Texts that cannot be read.
#[test]
fn syntax_errors_have_a_position() {
    let cases = compare_errors("nft/wrong.txt", |text| {
        Script::parse("test.nft", text).err()
    });
    assert!(cases >= 120, "{cases}");
}

/// Texts that can be parsed and cannot be applied.
#[test]
fn semantic_errors_have_a_position() {
    let cases = compare_errors("nft/meaningless.txt", |text| {
        let script = match Script::parse("test.nft", text) {
            Ok(script) => script,
            Err(error) => return Some(error),
        };
        script.transaction(None).err()
    });
    assert!(cases >= 60, "{cases}");
}

/// One after the other, as an operator types them.
const COMMANDS: &[&str] = &[
    "add table ip t",
    "add table inet other { comment \"x\"; chain c { accept; }; }",
    "add chain ip t c { type filter hook input priority 0; policy accept; }",
    "add chain ip t d",
    "add rule ip t c ip saddr 192.0.2.1 accept comment \"first\"",
    "add rule ip t c ip saddr 192.0.2.2 counter packets 3 bytes 4 drop",
    "insert rule ip t c ip saddr 192.0.2.3 jump d",
    "add rule ip t c index 1 ip saddr 192.0.2.4 accept",
    "insert rule ip t c index 1 ip saddr 192.0.2.5 accept",
    "add set ip t s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 } }",
    "add map ip t m { type inet_service : verdict; }",
    "add element ip t s { 192.168.0.0/16, 172.16.0.1-172.16.0.9 }",
    "create element ip t m { 22 : accept, 80 : jump d }",
    "add rule ip t c ip saddr @s tcp dport vmap @m",
    "delete element ip t s { 192.168.0.0/16 }",
    "create element ip t s { 192.168.0.0/16 }",
    "create element ip t s { 192.168.0.0/16 }",
    "add set ip t r { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.0.0/8, 20.0.0.0/8 } }",
    "add element ip t r { 10.5.0.0/16 }",
    "add element ip t r { 11.0.0.0/8, 30.0.0.0/8 }",
    "create element ip t r { 12.0.0.0-21.4.4.4 comment \"joined\" }",
    "add element ip t r { 40.0.0.0/8 }\nadd element ip t r { 41.0.0.0/8 }\nadd element ip t r { 39.0.0.0-41.0.0.5 }",
    "delete element ip t r { 30.0.0.0/8 }\nadd element ip t r { 31.0.0.0/8 }",
    "flush set ip t r\nadd element ip t r { 31.0.0.0/8 }",
    "add element ip t r { 255.0.0.0/8, 0.0.0.0/8 }",
    "add element ip t r { 1.0.0.0-254.255.255.255 }",
    "flush set ip t r",
    "add element ip t r { 10.0.0.15-10.0.0.30, 10.0.0.50-10.0.0.60 }",
    "add element ip t r { 10.0.0.10-10.0.0.20, 10.0.0.12-10.0.0.100 }",
    "add table ip again { set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 }\n}\n}",
    "add table ip again { set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, 12.0.0.0/8 }\n}\n}",
    "delete table ip again",
    "add table ip joins { set s { type inet_service; flags interval; auto-merge; elements = { 10-20, 40-50 }\n}\n}",
    "add table ip joins { set s { type inet_service; flags interval; auto-merge; elements = { 15-30, 51 }\n}\n}",
    "add set ip joins s { type inet_service; flags interval; auto-merge; elements = { 12-45 } }\nadd element ip joins s { 60 }",
    "delete set ip joins s\nadd set ip joins s { type inet_service; flags interval; auto-merge; elements = { 40-70 } }",
    "delete table ip joins\nadd table ip joins { set s { type inet_service; flags interval; auto-merge; elements = { 5-60 }\n}\n}",
    "flush set ip joins s\nadd set ip joins s { type inet_service; flags interval; auto-merge; elements = { 61-70 } }",
    "delete table ip joins",
    "add counter ip t k { packets 5 bytes 6 }",
    "add quota ip t q { over 10 mbytes; }",
    "add rule ip t d counter name \"k\" quota name \"q\"",
    "add limit ip t l { rate 5/second burst 7 packets; }",
    "rename chain ip t d e",
    "flush set ip t s",
    "flush map ip t m",
    "add chain ip t c { policy drop; }",
    "delete counter ip t k",
    "flush chain ip t e",
    "delete counter ip t k",
    "replace rule ip t c handle 5 ip saddr 192.0.2.9 accept",
    "delete rule ip t c handle 5",
    "flush table ip t",
    "delete map ip t m",
    "delete chain ip t e",
    "add table ip t { flags dormant; }",
    "flush table inet other",
    "delete table inet other",
    "delete table inet other",
    "add table ip dyn { set s { type ipv4_addr; }\nchain c { add @s { ip saddr }\n}\n}",
    "add set ip dyn plain { type ipv4_addr; }",
    "add set ip dyn plain { type ipv4_addr; }\nadd rule ip dyn c update @plain { ip saddr }",
    "add set ip dyn d { type ipv4_addr; }\nadd chain ip dyn e\ninsert rule ip dyn e delete @d { ip saddr }",
    "delete table ip dyn\nadd table ip dyn { set plain { type ipv4_addr; }\nchain c { add @plain { ip saddr }\n}\n}",
    "add set ip dyn timed { type ipv4_addr; timeout 30d; elements = { 192.0.2.1 timeout 0s } }",
    "add element ip dyn timed { 192.0.2.2 timeout 0s }\nadd rule ip dyn c update @timed { ip daddr timeout 0s }",
    "add table ip dyn { set inner { type ipv4_addr; }\nchain d { jump { update @inner { ip daddr }\n}\n}\n}",
    "delete table ip dyn",
    "add table ip6 u\nadd chain ip6 u c\ndelete table ip t",
    "flush ruleset",
];

/// Each command has the same effect as with nft, and is refused if nft refuses it.
#[test]
fn commands_match_nft() {
    let (theirs, ours) = (sandbox(), sandbox());
    let tools = Tools::new(&theirs);
    let mut nft = connect(&ours);
    let mut refused = 0;
    for command in COMMANDS {
        let of_nft = tools.takes("nft -f -", format!("{command}\n"));
        let of_us = apply(&ours, &mut nft, command);
        assert_eq!(
            of_nft.is_ok(),
            of_us.is_ok(),
            "{command}: {of_nft:?} {of_us:?}"
        );
        refused += usize::from(of_nft.is_err());
        if let Err(differs) = compare(&theirs, &ours, false) {
            panic!("{command}: {differs}");
        }
    }
    assert!((2..7).contains(&refused), "{refused}");
}

/// Constant changes by another program delay a script that depends on the current ruleset, but do not make it fail.
#[test]
fn a_script_uses_the_retry_policy_of_its_connection() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox).with_retry(Retry::FOREVER);
    let base = "add table ip t\nadd chain ip t c\nadd rule ip t c accept\nadd table ip rival";
    apply(&sandbox, &mut nft, base).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut rival = connect(&sandbox);
            let mut tx = Transaction::new();
            let chain = Chain::new(Family::IP, "rival", "c");
            tx.add(&chain).unwrap().delete(&chain).unwrap();
            while !done.load(Ordering::Relaxed) {
                rival.commit(&tx).unwrap();
            }
        });
        let _end = OnDrop(|| done.store(true, Ordering::Relaxed));
        for _ in 0..10 {
            let script = Script::parse("-", "insert rule ip t c index 0 drop").unwrap();
            script
                .run(&mut nft, Mode::Commit, &Options::here())
                .unwrap();
        }
    });
    let text = Tools::new(&sandbox).run("nft list chain ip t c");
    assert_eq!(text.matches("drop").count(), 10, "{text}");
}

/// Elements added to a set with `auto-merge` are merged with those that others add meanwhile.
#[test]
fn ranges_are_joined_with_those_of_others() {
    let sandbox = &sandbox();
    let base = "table ip t { set s { type ipv4_addr; flags interval; auto-merge; }; }";
    apply(sandbox, &mut connect(sandbox), base).unwrap();
    thread::scope(|scope| {
        for first in 0..2 {
            scope.spawn(move || {
                let mut nft = connect(sandbox).with_retry(Retry::FOREVER);
                for number in (first..64).step_by(2) {
                    let text = format!("add element ip t s {{ 10.0.{number}.0/24 }}");
                    let script = Script::parse("-", text).unwrap();
                    script
                        .run(&mut nft, Mode::Commit, &Options::here())
                        .unwrap();
                }
            });
        }
    });
    let text = Tools::new(sandbox).run("nft list set ip t s");
    assert!(text.contains("elements = { 10.0.0.0/18 }"), "{text}");
}

/// Tunnel objects, which nft 1.0.6 does not support: listed like newer versions, accepted by the kernel, and recreated
/// from the listing.
#[test]
fn tunnels_are_created_and_listed() {
    const TUNNELS: &[&str] = &[
        "id 10\nip saddr 192.168.2.10\nip daddr 192.168.2.11\nttl 255",
        "id 4294967295\nip saddr 0.0.0.0\nip daddr 192.168.2.11\nsport 10\ndport 4789\ntos 4\nttl 64",
        "id 1\nip6 saddr fd00::1\nip6 daddr fd00::2\nsport 10\ndport 20\nttl 0",
        "id 2\nip saddr 10.0.0.1\nip daddr 10.0.0.2\nttl 7\nvxlan {\n\tgbp 200\n}",
        "id 3\nip saddr 10.0.0.1\nip daddr 10.0.0.2\nttl 7\nerspan {\n\tversion 1\n\tindex 2\n}",
        "id 4\nip saddr 10.0.0.1\nip daddr 10.0.0.2\nttl 7\n\
         erspan {\n\tversion 2\n\tdirection egress\n\tid 7\n}",
        "id 5\nip saddr 10.0.0.1\nip daddr 10.0.0.2\nttl 7\n\
         geneve {\n\tclass 0x1010 opt-type 0x1 data \"0x01020304\"\n\
         \tclass 0x2 opt-type 0x22 data \"0x0000000000000000\"\n}",
    ];
    for entries in TUNNELS {
        let entries: String = entries
            .lines()
            .map(|line| format!("\t\t{line}\n"))
            .collect();
        let text = format!(
            "table netdev t {{\n\ttunnel x {{\n\t\tcomment \"some\"\n{entries}\t}}\n\n\
             \tchain c {{\n\t\ttunnel name \"x\"\n\t}}\n}}\n"
        );
        let (first, again) = (sandbox(), sandbox());
        let listed = |sandbox: &Sandbox| {
            let snapshot = connect(sandbox).snapshot(Scope::all()).unwrap();
            Listing::new(&snapshot, &Options::default()).to_string()
        };
        apply(&first, &mut connect(&first), &text).unwrap_or_else(|error| panic!("{text}{error}"));
        assert_eq!(listed(&first), text);
        apply(&again, &mut connect(&again), &listed(&first)).unwrap();
        crate::common::scripts::compare_objects(&first, &again).unwrap();
        let asked = Script::parse("asked", "list tunnels; list tunnel netdev t x").unwrap();
        for query in asked.queries() {
            let answer = query.answer(&mut connect(&first)).unwrap();
            let (before, behind) = text.split_once("\n\tchain c").unwrap();
            assert!(behind.ends_with("\t}\n}\n"));
            assert_eq!(
                answer.listing(&Options::default()).to_string(),
                format!("{before}}}\n")
            );
        }
        // In one line, as a command; and deleted again.
        let words = text
            .lines()
            .skip(2)
            .take_while(|line| *line != "\t}")
            .collect::<Vec<_>>();
        let words = words.join(";").replace("{;", "{ ").replace(";\t\t}", "; }");
        let command = format!("add tunnel netdev t y {{ {words}; }}\n");
        apply(&first, &mut connect(&first), &command)
            .unwrap_or_else(|error| panic!("{command}{error}"));
        let both = listed(&first);
        let body = |name: &str| {
            both.split_once(&format!("tunnel {name} {{\n"))
                .unwrap()
                .1
                .split_once("\t}\n")
                .unwrap()
                .0
                .to_owned()
        };
        assert_eq!(body("y"), body("x"));
        apply(&first, &mut connect(&first), "delete tunnel netdev t y").unwrap();
        assert_eq!(listed(&first), text);
    }
}

/// Texts that count rules, and the marks that the rules of the chains `c` and `d` match afterwards, in order. nft 1.1.7
/// gives the same results except for the last, where it counts a rule that the same text flushed.
const COUNTED: &[(&str, &[u32], &[u32])] = &[
    (
        "insert rule ip t c index 0 mark 100\ninsert rule ip t c index 1 mark 101",
        &[100, 101, 1, 2],
        &[11, 12],
    ),
    (
        "add rule ip t c index 0 mark 100\nadd rule ip t c index 1 mark 101\nadd rule ip t c index 1 mark 102",
        &[1, 100, 102, 101, 2],
        &[11, 12],
    ),
    (
        "add rule ip t c mark 3\ninsert rule ip t c index 2 mark 100",
        &[1, 2, 100, 3],
        &[11, 12],
    ),
    (
        "insert rule ip t c mark 3\nadd rule ip t c index 0 mark 100",
        &[3, 100, 1, 2],
        &[11, 12],
    ),
    (
        "delete rule ip t c handle 2\ninsert rule ip t c index 0 mark 100",
        &[100, 2],
        &[11, 12],
    ),
    (
        "destroy rule ip t c handle 2\ninsert rule ip t c index 0 mark 100",
        &[100, 2],
        &[11, 12],
    ),
    (
        "destroy rule ip t c handle 99\ninsert rule ip t c index 1 mark 100",
        &[1, 100, 2],
        &[11, 12],
    ),
    (
        "replace rule ip t c handle 2 mark 200\nadd rule ip t c index 0 mark 100",
        &[200, 100, 2],
        &[11, 12],
    ),
    (
        "replace rule ip t c handle 2 mark 200\ninsert rule ip t c index 0 mark 100",
        &[100, 200, 2],
        &[11, 12],
    ),
    (
        "flush chain ip t c\nadd rule ip t c mark 55\ninsert rule ip t c index 0 mark 100",
        &[100, 55],
        &[11, 12],
    ),
    (
        "flush chain ip t c\ninsert rule ip t c index 0 mark 100",
        &[100],
        &[11, 12],
    ),
    (
        "flush chain ip t c\nadd rule ip t c index 1 mark 100",
        &[100],
        &[11, 12],
    ),
    (
        "delete chain ip t c\nadd chain ip t c\nadd rule ip t c mark 5\nadd rule ip t c index 0 mark 6",
        &[5, 6],
        &[11, 12],
    ),
    (
        "flush ruleset\nadd table ip t\nadd chain ip t c\nadd chain ip t d\nadd rule ip t c mark 5\nadd rule ip t c index 0 mark 6",
        &[5, 6],
        &[],
    ),
    (
        "delete table ip t\nadd table ip t\nadd chain ip t c\nadd chain ip t d\nadd rule ip t c mark 5\ninsert rule ip t c index 0 mark 6",
        &[6, 5],
        &[],
    ),
    (
        "table ip t { chain c { mark 7; }; }\nadd rule ip t c index 2 mark 6\ninsert rule ip t c position 2 mark 8\n\
         add rule ip t c index 0 mark 9\ninsert rule ip t c mark 1000\ninsert rule ip t c index 1 mark 1001",
        &[1000, 1001, 8, 9, 1, 2, 7, 6],
        &[11, 12],
    ),
    (
        "add rule ip t c position 3 mark 5\nadd rule ip t c handle 3 mark 6\ninsert rule ip t c index 3 mark 7",
        &[1, 2, 6, 7, 5],
        &[11, 12],
    ),
    (
        "insert rule ip t c index 0 mark 6; insert rule ip t d index 1 mark 7; insert rule ip t c index 1 mark 8; \
         insert rule ip t d index 2 mark 9",
        &[6, 8, 1, 2],
        &[11, 7, 9, 12],
    ),
    (
        "delete table inet u\nadd table inet u\nadd chain inet u c\nadd rule inet u c mark 1\n\
         insert rule inet u c index 0 mark 2\ninsert rule ip t c index 1 mark 3",
        &[1, 3, 2],
        &[11, 12],
    ),
    (
        "rename chain ip t d e\nrename chain ip t e2 d\ninsert rule ip t d index 1 mark 3",
        &[1, 2],
        &[],
    ),
    (
        "flush table ip t\nadd rule ip t c mark 5\nadd rule ip t c index 0 mark 6",
        &[5, 6],
        &[],
    ),
];

/// The initial rules for [`COUNTED`].
const COUNTED_BASE: &str = "add table ip t; add chain ip t c; add rule ip t c mark 1; add rule ip t c mark 2; \
    add chain ip t d; add rule ip t d mark 11; add rule ip t d mark 12; add chain ip t e2; \
    add table inet u; add chain inet u c; add rule inet u c mark 71";

/// The marks that the rules of a chain match.
fn marks(listing: &str, chain: &str) -> Vec<u32> {
    let lines = listing
        .lines()
        .skip_while(|line| *line != format!("\tchain {chain} {{"));
    lines
        .skip(1)
        .map_while(|line| line.trim().strip_prefix("meta mark 0x"))
        .map(|mark| u32::from_str_radix(mark, 16).unwrap())
        .collect()
}

/// `index N` counts the rules of a chain after the preceding commands.
#[test]
fn rule_indexes_follow_earlier_commands() {
    let failures: Vec<String> = COUNTED
        .iter()
        .filter_map(|(text, c, d)| {
            let sandbox = sandbox();
            let mut nft = connect(&sandbox);
            let options = Options::here();
            let run = |nft: &mut Connection, text: &str, mode| {
                let script = Script::parse("text", text).unwrap();
                script.run(nft, mode, &options)
            };
            run(&mut nft, COUNTED_BASE, Mode::Commit).unwrap();
            let list = || Tools::new(&sandbox).run("nft list table ip t");
            let before = list();
            if text.contains("rename") {
                // The kernel uses a chain's old name until the transaction ends.
                let error = run(&mut nft, text, Mode::Commit).unwrap_err();
                assert!(matches!(error, RunError::Refused { .. }), "{text}: {error}");
                return None;
            }
            let checked = run(&mut nft, text, Mode::Check).map_err(|error| error.to_string());
            let unchanged = list() == before;
            let done = run(&mut nft, text, Mode::Echo).map_err(|error| error.to_string());
            let after = list();
            let made = (marks(&after, "c"), marks(&after, "d"));
            let is_right = checked.is_ok() && unchanged && made == (c.to_vec(), d.to_vec());
            (!is_right).then(|| format!("{text}\n{made:?} {checked:?} {:?}", done.err()))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// If the rule with that index does not exist, nothing is changed.
#[test]
fn rule_indexes_must_exist() {
    for text in [
        "insert rule ip t c index 2 mark 3",
        "add rule ip t c index 2 mark 3",
        "delete rule ip t c handle 2\nadd rule ip t c index 1 mark 3",
        "add rule ip t c mark 3\ninsert rule ip t c index 3 mark 4",
        "flush chain ip t c\nadd rule ip t c mark 3\nadd rule ip t c index 1 mark 4",
        "flush chain ip t c\nadd rule ip t c index 2 mark 4",
        "add chain ip t n\nadd rule ip t n index 0 mark 3",
        "delete chain ip t c\nadd chain ip t c\nadd rule ip t c index 0 mark 3",
        "flush ruleset\nadd table ip t\nadd chain ip t c\nadd rule ip t c index 0 mark 3",
    ] {
        let sandbox = sandbox();
        let mut nft = connect(&sandbox);
        apply(&sandbox, &mut nft, COUNTED_BASE).unwrap();
        let before = Tools::new(&sandbox).run("nft list ruleset");
        let error = apply(&sandbox, &mut nft, text).unwrap_err();
        assert!(
            error.contains("the chain has no rule at index"),
            "{text}: {error}"
        );
        assert_eq!(Tools::new(&sandbox).run("nft list ruleset"), before);
    }
}

/// Deletions that name devices, the remaining devices of existing chains, and the messages for flowtables, which this
/// kernel may lack. The bytes are those of nft 1.1.7, except for `destroy flowtable`, with which that version destroys
/// the whole flowtable.
#[test]
fn deleting_devices_keeps_the_chain() {
    const BASE: &str = "add table inet t; add chain inet t c { type filter hook ingress devices = { d0, d1 } priority 0; }; \
        add rule inet t c mark 1; add table netdev t; \
        add chain netdev t c { type filter hook ingress devices = { d0, d1 } priority 0; }; add rule netdev t c mark 1; \
        add chain netdev t e { type filter hook egress devices = { d0, d1 } priority 0; }";
    let both = ["d0 d1"; 3];
    // The text, and the devices of the three chains; `None` if it is refused.
    let cases: &[(&str, Option<&[&str; 3]>)] = &[
        (
            "delete chain inet t c { type filter hook ingress devices = { d0 } priority 0; }",
            Some(&["d1", both[1], both[2]]),
        ),
        (
            "delete chain inet t c { type filter hook ingress device d1 priority 0; }",
            Some(&["d0", both[1], both[2]]),
        ),
        (
            "delete chain inet t c { type filter hook ingress device \"d1\" priority filter; policy drop; }",
            Some(&["d0", both[1], both[2]]),
        ),
        (
            "delete chain inet t c { type filter hook ingress devices = { d0, d1 } priority 5; }",
            Some(&["", both[1], both[2]]),
        ),
        (
            "delete chain netdev t c { type filter hook ingress devices = { d1 } priority 0; }",
            Some(&[both[0], "d0", both[2]]),
        ),
        (
            "delete chain netdev t c { devices = { d1 }; }",
            Some(&[both[0], "d0", both[2]]),
        ),
        (
            "delete chain netdev t e { type filter hook egress device d0 priority 0; }",
            Some(&[both[0], both[1], "d1"]),
        ),
        (
            "delete chain netdev t e { type filter hook egress device d0 priority 0; }\ndelete chain inet t c { type filter hook ingress device d0 priority 0; }",
            Some(&["d1", both[1], "d1"]),
        ),
        (
            "delete chain inet t c { type filter hook ingress devices = { d2 } priority 0; }",
            None,
        ),
        (
            "delete chain inet t c { type filter hook ingress devices = { d0, d2 } priority 0; }",
            None,
        ),
        (
            "delete chain inet t c { type filter hook ingress devices = { } priority 0; }",
            None,
        ),
        ("delete chain inet t c { devices = { d0 }; }", None),
        (
            "destroy chain netdev t c { type filter hook ingress devices = { d0 } priority 0; }",
            None,
        ),
        (
            "destroy chain inet t c { type filter hook ingress device d0 priority 0; }",
            None,
        ),
    ];
    for (text, expected) in cases {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        for device in ["d0", "d1", "d2"] {
            tools.run(&format!(
                "ip link add {device} type veth peer name {device}p"
            ));
        }
        let mut nft = connect(&sandbox);
        apply(&sandbox, &mut nft, BASE).unwrap();
        let before = tools.run("nft list ruleset");
        let script = Script::parse("text", text);
        if let (Ok(script), Some(_)) = (&script, expected) {
            script.run(&mut nft, Mode::Check, &Options::here()).unwrap();
            assert_eq!(tools.run("nft list ruleset"), before, "{text}");
        }
        let result = script
            .map_err(|error| error.to_string())
            .and_then(|script| {
                let done = script.run(&mut nft, Mode::Echo, &Options::here());
                done.map(|_| ()).map_err(|error| error.to_string())
            });
        assert_eq!(result.is_ok(), expected.is_some(), "{text}: {result:?}");
        let Some(expected) = expected else {
            assert_eq!(tools.run("nft list ruleset"), before, "{text}");
            continue;
        };
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let listing = Listing::new(&snapshot, &Options::default()).to_string();
        let chains = listing
            .lines()
            .filter(|line| line.contains("type filter hook"));
        let devices: Vec<String> = chains
            .map(|line| {
                let (_, rest) = line.split_once(" device").unwrap_or_default();
                let names = rest.split(|c: char| !c.is_alphanumeric());
                let is_name = |name: &&str| name.len() == 2 && name.starts_with('d');
                let mut names: Vec<_> = names.filter(is_name).collect();
                names.sort();
                names.join(" ")
            })
            .collect();
        assert_eq!(devices, **expected, "{text}: {listing}");
        let listing = tools.run("nft list ruleset");
        assert_eq!(listing.matches("meta mark").count(), 2, "{text}: {listing}");
    }
    const NAMED: &str = "06000100740000000600020066000000";
    const OF_D0: &str = "100003800c0003800700010064300000";
    for (text, message, hook) in [
        (
            "delete flowtable inet t f { hook ingress priority 0; devices = { d0 }; }",
            0xa18_u16,
            OF_D0,
        ),
        (
            "delete flowtable inet t f { hook ingress priority 5; devices = { d0 }; counter; }",
            0xa18,
            OF_D0,
        ),
        (
            "delete flowtable inet t f { devices = { d0 }; }",
            0xa18,
            OF_D0,
        ),
        (
            "destroy flowtable inet t f { hook ingress priority 0; devices = { d0 }; }",
            0xa20,
            OF_D0,
        ),
        (
            "delete flowtable inet t f { hook ingress priority 0; }",
            0xa18,
            "",
        ),
        ("destroy flowtable inet t f { }", 0xa20, ""),
        ("delete flowtable inet t f", 0xa18, ""),
    ] {
        let script = Script::parse("text", text).unwrap();
        let change = script.transaction(None).unwrap();
        let sent = change.transaction().as_bytes();
        let message = message.to_ne_bytes();
        assert!(
            sent.windows(2).any(|each| each == message),
            "{text}: {sent:02x?}"
        );
        let hex: String = sent.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(hex.ends_with(&format!("{NAMED}{hook}")), "{text}: {hex}");
    }
    assert!(Script::parse("text", "delete flowtable inet t f { devices = { }; }").is_err());
}

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
    let ours = sandbox();
    let mut nft = connect(&ours);
    let mut monitor = ours.run(Monitor::open).unwrap().unwrap();
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

/// Parts of ranges are deleted from sets with `auto-merge`, as by nft 1.1.7.
#[test]
fn parts_of_joined_ranges_are_deleted() {
    for (kind, elements, deleted, left) in [
        (
            "inet_service",
            "10-100, 200-300",
            "50-60",
            Some("10-49, 61-100, 200-300"),
        ),
        ("inet_service", "10-100", "10", Some("11-100")),
        ("inet_service", "10-100", "100", Some("10-99")),
        ("inet_service", "10-100", "10-100", Some("")),
        (
            "inet_service",
            "11-49, 61-100",
            "11-49, 61-70",
            Some("71-100"),
        ),
        (
            "inet_service",
            "200-299",
            "250-260, 270",
            Some("200-249, 261-269, 271-299"),
        ),
        (
            "inet_service",
            "1000-65535",
            "2000",
            Some("1000-1999, 2001-65535"),
        ),
        ("inet_service", "0-65535", "0", Some("1-65535")),
        ("inet_service", "0-65535", "65535", Some("0-65534")),
        ("inet_service", "0-65535", "0-65535", Some("")),
        ("inet_service", "10-100, 200-300", "90-210", None),
        ("inet_service", "10-100", "95-105", None),
        ("inet_service", "10-100", "5", None),
        ("inet_service", "10-100", "50, 5", None),
        (
            "ipv4_addr",
            "10.0.0.0/8, 12.0.0.0/8",
            "10.1.0.0/16",
            Some("10.0.0.0/16, 10.2.0.0-10.255.255.255, 12.0.0.0/8"),
        ),
        (
            "ipv6_addr",
            "2001:db8::/32",
            "2001:db8:8000::/33",
            Some("2001:db8::/33"),
        ),
        ("ipv4_addr", "0.0.0.0/0", "128.0.0.0/1", Some("0.0.0.0/1")),
        (
            "mark",
            "0x10-0x20",
            "0x18",
            Some("0x00000010-0x00000017, 0x00000019-0x00000020"),
        ),
    ] {
        let text = format!(
            "table ip t {{ set s {{ type {kind}; flags interval; auto-merge; elements = {{ {elements} }}; }}; }}"
        );
        let several = deleted
            .split(", ")
            .map(|one| format!("delete element ip t s {{ {one} }}\n"));
        for deletion in [
            format!("delete element ip t s {{ {deleted} }}"),
            several.collect::<String>(),
        ] {
            let ours = sandbox();
            let mut nft = connect(&ours);
            apply(&ours, &mut nft, &text).unwrap();
            let before = Tools::new(&ours).run("nft list set ip t s");
            let script = Script::parse("text", &deletion).unwrap();
            let checked = ours
                .run(|| script.run(&mut nft, Mode::Check, &Options::default()))
                .unwrap();
            assert_eq!(Tools::new(&ours).run("nft list set ip t s"), before);
            let done = ours
                .run(|| script.run(&mut nft, Mode::Commit, &Options::default()))
                .unwrap();
            assert_eq!(
                done.is_ok(),
                left.is_some(),
                "{elements} without {deleted}: {done:?}"
            );
            assert_eq!(
                checked.is_ok(),
                left.is_some(),
                "{elements} without {deleted}: {checked:?}"
            );
            let snapshot = nft.snapshot(Scope::all()).unwrap();
            let table = snapshot.table(Family::IP, "t").unwrap();
            let listed: Vec<String> =
                chainwright_lang::elements(table.set("s").unwrap(), &Options::default()).collect();
            let left = left.unwrap_or(elements);
            assert_eq!(listed.join(", "), left, "{elements} without {deleted}");
        }
    }
    // The properties of a range are kept by its remaining parts.
    let ours = sandbox();
    let mut nft = connect(&ours);
    let text = "table ip t { set s { type inet_service; flags interval, timeout; auto-merge; \
                elements = { 10-65535 timeout 1h counter packets 3 bytes 4 comment \"x\" }; }; }\n\
                delete element ip t s { 50 }";
    let (made, deletion) = text.split_once('\n').unwrap();
    apply(&ours, &mut nft, made).unwrap();
    apply(&ours, &mut nft, deletion).unwrap();
    let listed = Tools::new(&ours).run("nft list set ip t s");
    let rest = |range: &str| {
        let (_, rest) = listed.split_once(&format!("{range} ")).unwrap();
        let kept = "counter packets 3 bytes 4 timeout 1h expires ";
        rest.strip_prefix(kept)
            .is_some_and(|left| left.starts_with("59m5") || left.starts_with("1h "))
            && rest.lines().next().unwrap().contains("comment \"x\"")
    };
    assert!(rest("10-49") && rest("51-65535"), "{listed}");
}

/// Text that adds to a set with `auto-merge` and deletes parts again: the rest keeps its properties, as with nft 1.1.7
/// if that accepts the text.
#[test]
fn properties_of_a_split_range_are_kept() {
    // The kernel does not find ranges that begin or end where one did that the same text deletes.
    const A: &str = "timeout 1h comment \"a\"";
    const B: &str = "timeout 2h comment \"b\"";
    for (there, text, left) in [
        ("", "add 10-20 A; delete 15", "10-14 A, 16-20 A"),
        (
            "",
            "add 10-20 A, 30-40 B; delete 15, 35",
            "10-14 A, 16-20 A, 30-34 B, 36-40 B",
        ),
        (
            "",
            "add 10-20 A; add 15-30 B; delete 25",
            "10-24 A, 26-30 A",
        ),
        (
            "",
            "add 10-20 A; delete 12; delete 18",
            "10-11 A, 13-17 A, 19-20 A",
        ),
        ("", "add 10-65535 A; destroy 12, 5", "10-11 A, 13-65535 A"),
        (
            "10-20 A",
            "add 25-30 B; delete 27",
            "10-20 A, 25-26 B, 28-30 B",
        ),
        ("10-20 A", "destroy 15, 30", "10-14 A, 16-20 A"),
    ] {
        let long = |text: &str| text.replace('A', A).replace('B', B);
        let sandbox = sandbox();
        let mut nft = connect(&sandbox);
        let set =
            "table ip t { set s { type inet_service; flags interval, timeout; auto-merge; }; }";
        apply(&sandbox, &mut nft, set).unwrap();
        if !there.is_empty() {
            let add = format!("add element ip t s {{ {} }}", long(there));
            apply(&sandbox, &mut nft, &add).unwrap();
        }
        let commands = text.split("; ").map(|command| {
            let (verb, elements) = command.split_once(' ').unwrap();
            format!("{verb} element ip t s {{ {} }}\n", long(elements))
        });
        apply(&sandbox, &mut nft, &commands.collect::<String>())
            .unwrap_or_else(|error| panic!("{there}; {text}: {error}"));
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let set = snapshot.table(Family::IP, "t").unwrap().set("s").unwrap();
        let options = Options::default();
        let listed = chainwright_lang::elements(set, &options).map(|one| {
            let (before, behind) = one.split_once(" expires ").unwrap_or((&one, ""));
            match behind.split_once(' ') {
                Some((_, behind)) => format!("{before} {behind}"),
                None => before.to_owned(),
            }
        });
        let listed: Vec<_> = listed.collect();
        assert_eq!(listed.join(", "), long(left), "{there}; {text}");
    }
}

/// Adjacent ranges are deleted individually: a set with `auto-merge` may contain them unmerged, from older versions of
/// nft.
#[test]
fn adjacent_ranges_are_deleted_individually() {
    for (deletion, left) in [
        ("delete 1-5, 6-10", Some("20")),
        ("delete 6-10, 1-5", Some("20")),
        ("destroy 1-5, 6-10", Some("20")),
        ("delete 1-4, 6-10, 20", Some("5")),
        ("delete 3-5, 6-7", Some("1-2, 8-10, 20")),
        ("delete 1-5, 3-4", Some("6-10, 20")),
        ("delete 1-10", None),
        ("delete 1-5, 5-10", None),
        ("destroy 5-6", None),
    ] {
        for merges in ["", "auto-merge; "] {
            let sandbox = sandbox();
            let mut nft = connect(&sandbox);
            let set =
                format!("table ip t {{ set s {{ type inet_service; flags interval; {merges}}}; }}");
            apply(&sandbox, &mut nft, &set).unwrap();
            let bounds = [1_u16, 6, 6, 11, 20, 21].map(u16::to_be_bytes);
            let (ranges, _) = bounds.as_chunks::<2>();
            let elements = ranges
                .iter()
                .flat_map(|[from, behind]| Element::interval(from, behind));
            let mut tx = Transaction::new();
            tx.add_elements(&SetId::new(Family::IP, "t", "s"), elements)
                .unwrap();
            nft.commit(&tx).unwrap();
            let (verb, ranges) = deletion.split_once(' ').unwrap();
            let done = apply(
                &sandbox,
                &mut nft,
                &format!("{verb} element ip t s {{ {ranges} }}"),
            );
            // Without the flag, only exact ranges can be deleted.
            let left = left.filter(|_| {
                !merges.is_empty() || ranges.contains("6-10") && !ranges.contains("-4")
            });
            assert_eq!(done.is_ok(), left.is_some(), "{merges}{deletion}: {done:?}");
            let snapshot = nft.snapshot(Scope::all()).unwrap();
            let set = snapshot.table(Family::IP, "t").unwrap().set("s").unwrap();
            let listed: Vec<_> = chainwright_lang::elements(set, &Options::default()).collect();
            assert_eq!(
                listed.join(", "),
                left.unwrap_or("1-5, 6-10, 20"),
                "{merges}{deletion}"
            );
        }
    }
}
