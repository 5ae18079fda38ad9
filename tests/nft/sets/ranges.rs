//! Sets of ranges as text: overlapping ranges are refused even if the kernel does not detect them, and lookups find
//! the existing elements.

use chainwright::nft::{Ranges, RangesError};
use chainwright_lang::{Options, RunMode, Script};

use super::*;
use crate::common::scripts::compare_listings;

/// Runs a text as the command does.
fn run(nft: &mut Connection, script: Script, mode: RunMode) -> Result<(), String> {
    let done = script.run(nft, mode, &Options::default());
    done.map(|_| ()).map_err(|error| error.to_string())
}

fn run_text(nft: &mut Connection, text: &str) -> Result<(), String> {
    run(nft, Script::parse("-", text).unwrap(), RunMode::Commit)
}

/// The output of a text with `get element`.
fn answer(nft: &mut Connection, text: &str) -> Result<String, String> {
    let script = Script::parse("-", text).unwrap();
    let query = script.queries().next().unwrap();
    let answer = query.answer(nft).map_err(|error| error.to_string())?;
    let listed = answer.listing(&Options::default()).to_string();
    let elements = listed
        .split_once("elements = ")
        .expect("the set has no elements")
        .1;
    let elements = elements.split_once('}').expect("no closing brace").0;
    Ok(elements.split_whitespace().collect::<Vec<_>>().join(" ") + " }")
}

/// A type, a range in the middle of its values, the same up to the last value, a range before it up to the last value,
/// one within it up to the last value, one after it up to the last value, a closed one within the latter.
const TYPES: &[(&str, [&str; 6])] = &[
    (
        "ipv4_addr",
        [
            "192.0.2.0/24",
            "192.0.2.0-255.255.255.255",
            "0.0.0.0/0",
            "192.0.2.9-255.255.255.255",
            "192.0.3.0-255.255.255.255",
            "198.51.100.7",
        ],
    ),
    (
        "ipv6_addr",
        [
            "2001:db8::/32",
            "2001:db8::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "::/0",
            "2001:db8:1::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db9::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "ff02::/16",
        ],
    ),
    (
        "inet_service",
        [
            "100-200",
            "100-65535",
            "0-65535",
            "150-65535",
            "201-65535",
            "65535",
        ],
    ),
    (
        "mark",
        [
            "0x100-0x1ff",
            "0x100-0xffffffff",
            "0-0xffffffff",
            "0x180-0xffffffff",
            "0x200-0xffffffff",
            "0x12345",
        ],
    ),
    (
        "ether_addr",
        [
            "00:11:00:00:00:00-00:11:00:00:00:ff",
            "00:11:00:00:00:00-ff:ff:ff:ff:ff:ff",
            "00:00:00:00:00:00-ff:ff:ff:ff:ff:ff",
            "00:11:00:00:00:80-ff:ff:ff:ff:ff:ff",
            "00:11:00:00:01:00-ff:ff:ff:ff:ff:ff",
            "02:00:00:00:00:01",
        ],
    ),
    (
        "inet_proto",
        ["10-20", "10-255", "0-255", "15-255", "21-255", "200-210"],
    ),
];

/// The text after a set's type and after each of its ranges.
const KINDS: &[(&str, &str, &str)] = &[
    ("set", "", ""),
    ("map", " : mark", " : 5"),
    ("map", " : verdict", " : accept"),
];

/// Each step is accepted or refused as by nft, alone and as a check, and the set is the same after it.
#[test]
fn ranges_up_to_the_last_value_are_refused_as_by_nft() {
    let (real, chainwright) = (sandbox(), sandbox());
    let tools = Tools::new(&real);
    let mut nft = connect(&chainwright);
    let mut refused = 0;
    for (data_type, [range, same_start, all, within, behind, inside]) in TYPES {
        for (kind, of_data, data) in KINDS {
            let set = format!("add {kind} ip t s {{ type {data_type}{of_data}; flags interval; }}");
            let add = |range: &str| format!("add element ip t s {{ {range}{data} }}");
            let delete = |range: &str| format!("delete element ip t s {{ {range} }}");
            let steps = [
                format!("add table ip t\n{set}\n{}", add(range)),
                add(all),
                add(same_start),
                add(within),
                delete(same_start),
                format!("create element ip t s {{ {all}{data} }}"),
                format!("delete element ip t s {{ {range} }}\n{}", add(all)),
                add(range),
                add(inside),
                add(behind),
                delete(range),
                delete(behind),
                delete(all),
                format!("{}\n{}", add(range), add(all)),
                format!("{}\n{}", add(all), add(range)),
                format!("{}\n{}", add(range), add(behind)),
                add(inside),
                add(same_start),
                add(range),
                add(behind),
                format!("create element ip t s {{ {behind}{data} }}"),
                delete(inside),
                format!("flush {kind} ip t s\n{}", add(all)),
                format!("delete {kind} ip t s\n{set}\n{}", add(within)),
                format!("delete table ip t\nadd table ip t\n{set}\n{}", add(range)),
                add(all),
                format!("flush ruleset\nadd table ip t\n{set}\n{}", add(all)),
                "delete table ip t".to_owned(),
            ];
            for step in steps {
                let of_nft = tools.takes("nft -f -", format!("{step}\n"));
                let checked = run(&mut nft, Script::parse("-", &step).unwrap(), RunMode::Check);
                let of_us = run_text(&mut nft, &step);
                let context = format!("{data_type}{of_data}: {step}: {of_nft:?} {of_us:?}");
                assert_eq!(of_nft.is_ok(), of_us.is_ok(), "{context}");
                assert_eq!(checked, of_us, "{context}");
                refused += usize::from(of_us.is_err());
                compare_listings(&real, &chainwright, false)
                    .unwrap_or_else(|d| panic!("{context}: {d}"));
            }
        }
    }
    assert!(refused > 15 * TYPES.len() * KINDS.len() / 2, "{refused}");
}

/// Cases for which nft 1.0.6 has no command, or that it does not detect, or only in separate commands.
#[test]
fn ranges_are_not_split() {
    const START: &str = "add table ip t\nadd set ip t s { type inet_service; flags interval; }";
    // Existing ranges, a command, and the ranges afterwards; `None` if it is refused.
    const CASES: &[(&str, &str, Option<&str>)] = &[
        ("10-20", "destroy element ip t s { 10-65535 }", None),
        ("10-20", "destroy element ip t s { 10 }", None),
        ("10-20", "destroy element ip t s { 10-15 }", None),
        ("10-20, 30-40", "destroy element ip t s { 10-40 }", None),
        ("10-65535", "destroy element ip t s { 10-20 }", None),
        (
            "10-20",
            "destroy element ip t s { 30-65535 }",
            Some("10-20"),
        ),
        (
            "10-20, 30-65535",
            "destroy element ip t s { 30-65535, 25 }",
            Some("10-20"),
        ),
        ("10-20, 30-40", "delete element ip t s { 10-40 }", None),
        ("10-20, 30-40", "add element ip t s { 10-40 }", None),
        // The set that the text declares exists already.
        (
            "10-20",
            "add set ip t s { type inet_service; flags interval; elements = { 0-65535 } }",
            None,
        ),
        (
            "10-65535",
            "add set ip t s { type inet_service; flags interval; elements = { 20-30 } }",
            None,
        ),
        (
            "10-65535",
            "add set ip t s { type inet_service; flags interval; elements = { 5-8, 10-65535 } }",
            Some("5-8, 10-65535"),
        ),
        (
            "10-65535",
            "add set ip t s { type inet_service; flags interval; }\nflush set ip t s\n\
             add element ip t s { 20-30 }",
            Some("20-30"),
        ),
        (
            "10-65535",
            "add table ip t\ndelete table ip t\nadd table ip t\n\
             add set ip t s { type inet_service; flags interval; elements = { 20-30 } }",
            Some("20-30"),
        ),
    ];
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let can_destroy = run_text(&mut nft, "destroy table ip none").is_ok(); // Linux 6.3
    for (there, command, left) in CASES {
        if !can_destroy && command.starts_with("destroy") {
            continue;
        }
        let fill = format!("flush ruleset\n{START}\nadd element ip t s {{ {there} }}");
        run_text(&mut nft, &fill).unwrap();
        let done = run_text(&mut nft, command);
        assert_eq!(done.is_ok(), left.is_some(), "{there}: {command}: {done:?}");
        let expected = format!("elements = {{ {} }}", left.unwrap_or(there));
        let text = Tools::new(&sandbox).run("nft list set ip t s");
        assert!(text.contains(&expected), "{there}: {command}: {text}");
    }
    // Including those of a set with `auto-merge`.
    let joins = "flush ruleset\nadd table ip t\n\
        add set ip t s { type inet_service; flags interval; auto-merge; elements = { 10-20 } }";
    run_text(&mut nft, joins).unwrap();
    for verb in ["delete", "destroy"] {
        let text = format!("{verb} element ip t s {{ 10-65535 }}");
        run_text(&mut nft, &text).unwrap_err();
    }
    let text = Tools::new(&sandbox).run("nft list set ip t s");
    assert!(text.contains("elements = { 10-20 }"), "{text}");
}

/// The same in JSON.
#[test]
fn ranges_in_json_are_refused() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let fill = "add table ip t\nadd set ip t s { type inet_service; flags interval; elements = { 10-20 } }";
    run_text(&mut nft, fill).unwrap();
    let mut json = |verb: &str, range: &str| {
        let text = format!(
            r#"{{"nftables": [{{"{verb}": {{"element": {{"family": "ip", "table": "t", "name": "s",
            "elem": [{{"range": {range}}}]}}}}}}]}}"#
        );
        run(
            &mut nft,
            Script::parse_json("-", text).unwrap(),
            RunMode::Commit,
        )
    };
    for (verb, range) in [
        ("add", "[0, 65535]"),
        ("create", "[10, 65535]"),
        ("delete", "[10, 65535]"),
    ] {
        let error = json(verb, range).unwrap_err();
        let expected = match verb {
            "delete" => "does not exist",
            _ => "overlaps",
        };
        assert!(error.contains(expected), "{verb} {range}: {error}");
    }
    json("add", "[21, 65535]").unwrap();
    json("delete", "[21, 65535]").unwrap();
    let text = Tools::new(&sandbox).run("nft list set ip t s");
    assert!(text.contains("elements = { 10-20 }"), "{text}");
}

/// Deletions from a set with `auto-merge` split its ranges, in JSON as in text.
#[test]
fn ranges_are_split_in_json() {
    const CASES: &[(&str, &str, Option<&str>)] = &[
        ("delete", "14", Some("10-13, 15-20, 30-40, 50-65535")),
        (
            "delete",
            r#"{"range": [33, 36]}"#,
            Some("10-13, 15-20, 30-32, 37-40, 50-65535"),
        ),
        (
            "delete",
            r#"{"range": [10, 13]}, 60"#,
            Some("15-20, 30-32, 37-40, 50-59, 61-65535"),
        ),
        (
            "add",
            r#"{"range": [14, 29]}"#,
            Some("14-32, 37-40, 50-59, 61-65535"),
        ),
        ("delete", r#"{"range": [5, 14]}"#, None),
        ("delete", r#"{"range": [32, 37]}"#, None),
        ("delete", "60", None),
        (
            "delete",
            r#"{"range": [61, 65535]}"#,
            Some("14-32, 37-40, 50-59"),
        ),
    ];
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let fill = "add table ip t\nadd set ip t s { type inet_service; flags interval; auto-merge; \
        elements = { 10-20, 30-40, 50-65535 } }";
    run_text(&mut nft, fill).unwrap();
    let mut there = "10-20, 30-40, 50-65535";
    for (verb, elements, left) in CASES {
        let text = format!(
            r#"{{"nftables": [{{"{verb}": {{"element": {{"family": "ip", "table": "t", "name": "s",
            "elem": [{elements}]}}}}}}]}}"#
        );
        let done = run(
            &mut nft,
            Script::parse_json("-", text).unwrap(),
            RunMode::Commit,
        );
        assert_eq!(done.is_ok(), left.is_some(), "{verb} {elements}: {done:?}");
        there = left.unwrap_or(there);
        let text = Tools::new(&sandbox).run("nft list set ip t s");
        let expected = format!("elements = {{ {there} }}");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&expected), "{verb} {elements}: {text}");
    }
}

/// Changes of ranges through the library are refused where the kernel would not detect an overlap.
#[test]
fn ranges_are_changed_by_one_call() {
    /// The start of a range and the value after its end; `None` for an open one.
    type Bounds = ([u8; 1], Option<[u8; 1]>);
    type Change = &'static [Bounds];
    const fn of(from: u8, behind: u8) -> Bounds {
        ([from], Some([behind]))
    }
    const fn open(from: u8) -> Bounds {
        ([from], None)
    }
    const FIRST: Change = &[of(10, 21)];
    const BOTH: Change = &[of(10, 21), of(30, 41), open(50)];
    const CLOSED: Change = &[of(10, 21), of(30, 41), of(60, 71)];
    /// The deleted and added ranges, and the result; `None` if the change is refused.
    const CASES: &[(Change, Change, Option<Change>)] = &[
        (&[], FIRST, Some(FIRST)),
        (&[], &[open(0)], None),
        (&[], &[open(20)], None),
        (&[open(10)], &[], None),
        (&[of(10, 15)], &[], None),
        (&[], &[of(30, 41), open(50)], Some(BOTH)),
        (&[], &[of(60, 71)], None),
        (&[of(10, 41)], &[], None),
        (&[open(30)], &[], None),
        (&[of(50, 200)], &[], None),
        (&[open(50)], &[of(60, 71)], Some(CLOSED)),
        (&[], &[open(80), of(90, 100)], None),
        (&[of(30, 41), of(60, 71)], &[], Some(FIRST)),
        (FIRST, &[open(0)], Some(&[open(0)])),
    ];
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let fill = "add table ip t\nadd set ip t s { type inet_proto; flags interval; }";
    run_text(&mut nft, fill).unwrap();
    let set = SetId::new(IP, "t", "s");
    let elements = |ranges: Change| -> Vec<Element<'static>> {
        let each = ranges.iter().map(|(from, behind)| match behind {
            Some(behind) => Element::interval(from, behind).to_vec(),
            None => vec![Element::open_interval(from)],
        });
        each.flatten().collect()
    };
    for (delete, add, left) in CASES {
        let before = nft.ranges(&set).unwrap();
        let done = nft.change_ranges(&set, &elements(delete), &elements(add));
        assert_eq!(done.is_ok(), left.is_some(), "{delete:?} {add:?}: {done:?}");
        let expected = match left {
            Some(left) => Ranges::of(&elements(left)),
            None => before,
        };
        assert_eq!(nft.ranges(&set).unwrap(), expected, "{delete:?} {add:?}");
        let is_reported = match (left, delete.is_empty()) {
            (Some(_), _) => true,
            (None, true) => matches!(done, Err(RangesError::Overlapping(_))),
            (None, false) => matches!(done, Err(RangesError::Missing(_))),
        };
        assert!(is_reported, "{delete:?} {add:?}: {done:?}");
    }
}

/// A program that writes elements itself can read the ranges first.
#[test]
fn ranges_of_a_set_are_read() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let fill = "add table ip t\nadd set ip t s { type ipv4_addr; flags interval; \
        elements = { 10.0.0.0/8, 192.0.2.0-255.255.255.255 } }";
    run_text(&mut nft, fill).unwrap();
    let ranges = nft.ranges(&SetId::new(IP, "t", "s")).unwrap();
    let closed = Element::interval(&[10, 0, 0, 0], &[11, 0, 0, 0]);
    let open = Element::open_interval(&[192, 0, 2, 0]);
    let both = [closed[0].clone(), closed[1].clone(), open];
    assert_eq!(ranges, Ranges::of(&both));
    assert_eq!(
        (ranges.overlapping(&both), ranges.missing(&both)),
        (None, None)
    );
    for (element, overlaps) in [
        (Element::open_interval(&[0, 0, 0, 0]), true),
        (Element::open_interval(&[10, 0, 0, 0]), true),
        (Element::open_interval(&[11, 0, 0, 0]), true),
        (Element::open_interval(&[192, 0, 2, 1]), true),
    ] {
        let found = ranges.overlapping(std::slice::from_ref(&element));
        assert_eq!(found.is_some(), overlaps, "{element:?}");
        assert_eq!(ranges.missing(&[element]), Some(0));
    }
    let inside = Element::interval(&[200, 0, 0, 0], &[201, 0, 0, 0]);
    assert_eq!(ranges.overlapping(&inside), Some(0));
    let before = Element::interval(&[9, 0, 0, 0], &[10, 0, 0, 0]);
    assert_eq!(
        (ranges.overlapping(&before), ranges.missing(&before)),
        (None, Some(0))
    );
}

/// Looks elements up: the output, or nothing if an element is missing.
#[test]
fn lookups_return_existing_elements() {
    /// The requested key, and the result.
    type Found = (&'static str, Option<&'static str>);
    const SETS: &[(&str, &str, &[Found])] = &[
        (
            "set ip t s { type ipv4_addr; flags interval; elements = { 0.0.0.0/0 } }",
            "ip t",
            &[
                ("192.0.2.1", Some("{ 0.0.0.0/0 }")),
                ("0.0.0.0", Some("{ 0.0.0.0/0 }")),
                ("255.255.255.255", Some("{ 0.0.0.0/0 }")),
                ("0.0.0.0/0", Some("{ 0.0.0.0/0 }")),
                ("10.0.0.0/8", Some("{ 0.0.0.0/0 }")),
                ("10.0.0.0-255.255.255.255", Some("{ 0.0.0.0/0 }")),
            ],
        ),
        (
            "set ip t s { type inet_service; flags interval; elements = { 10, 20-30, 40, 50-60 } }",
            "ip t",
            &[
                ("10-40", None),
                ("10", Some("{ 10 }")),
                ("15", None),
                ("20-31", None),
                ("20-60", None),
                ("0-65535", None),
                ("50-65535", None),
                ("25", Some("{ 20-30 }")),
                ("21-29", Some("{ 20-30 }")),
                ("20-30", Some("{ 20-30 }")),
                ("30", Some("{ 20-30 }")),
                ("31", None),
                ("25, 55", Some("{ 20-30, 50-60 }")),
                ("25, 26", Some("{ 20-30, 20-30 }")),
                ("10, 25, 40, 50-60", Some("{ 10, 20-30, 40, 50-60 }")),
                ("10, 11", None),
                ("0", None),
                ("65535", None),
            ],
        ),
        (
            "set ip t s { type inet_service; flags interval; elements = { 0, 10-20, 21-30, 65000-65535 } }",
            "ip t",
            &[
                ("0", Some("{ 0 }")),
                ("0-10", None),
                ("10-30", None),
                ("15-25", None),
                ("20", Some("{ 10-20 }")),
                ("21", Some("{ 21-30 }")),
                ("15, 25", Some("{ 10-20, 21-30 }")),
                ("64999", None),
                ("65000", Some("{ 65000-65535 }")),
                ("65535", Some("{ 65000-65535 }")),
                ("65001-65002", Some("{ 65000-65535 }")),
                ("10-20, 65001-65535", Some("{ 10-20, 65000-65535 }")),
            ],
        ),
        (
            "set ip6 t s { type ipv6_addr; flags interval; elements = { 2001:db8::/32, ff00::/8 } }",
            "ip6 t",
            &[
                ("2001:db8::5", Some("{ 2001:db8::/32 }")),
                ("ff02::1", Some("{ ff00::/8 }")),
                (
                    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                    Some("{ ff00::/8 }"),
                ),
                ("2001:db8::-ff02::1", None),
            ],
        ),
        (
            "set ip t s { type mark; flags interval; elements = { 0x10-0x20, 0x30-0xffffffff } }",
            "ip t",
            &[
                ("0x15", Some("{ 0x00000010-0x00000020 }")),
                ("0x40", Some("{ 0x00000030-0xffffffff }")),
                ("0x15-0x40", None),
            ],
        ),
        (
            "set ip t s { type ifname; flags interval; elements = { \"eth*\", \"lo\" } }",
            "ip t",
            &[
                ("\"eth0\"", Some("{ \"eth*\" }")),
                ("\"lo\"", Some("{ \"lo\" }")),
                ("\"wlan0\"", None),
            ],
        ),
        (
            "map ip t s { type ipv4_addr : mark; flags interval; \
             elements = { 10.0.0.0/8 : 1, 11.0.0.0-255.255.255.255 : 2, 1.1.1.1 : 3 } }",
            "ip t",
            &[
                ("10.1.1.1", Some("{ 10.0.0.0/8 : 0x00000001 }")),
                (
                    "12.0.0.0",
                    Some("{ 11.0.0.0-255.255.255.255 : 0x00000002 }"),
                ),
                ("9.0.0.0-10.0.0.0", None),
                (
                    "10.0.0.0/8, 12.0.0.0",
                    Some("{ 10.0.0.0/8 : 0x00000001, 11.0.0.0-255.255.255.255 : 0x00000002 }"),
                ),
            ],
        ),
        (
            "set ip t s { type ipv4_addr . inet_service; elements = { 10.0.0.1 . 80, 1.1.1.1 . 5 } }",
            "ip t",
            &[
                ("10.0.0.1 . 80", Some("{ 10.0.0.1 . 80 }")),
                (
                    "10.0.0.1 . 80, 1.1.1.1 . 5",
                    Some("{ 1.1.1.1 . 5, 10.0.0.1 . 80 }"),
                ),
                ("10.0.0.1 . 81", None),
            ],
        ),
        (
            "set ip t s { type ipv4_addr . inet_service; flags interval; \
             elements = { 10.0.0.0/8 . 80, 20.0.0.0/8 . 1-5 } }",
            "ip t",
            &[
                ("10.1.1.1 . 80", Some("{ 10.0.0.0/8 . 80 }")),
                ("20.0.0.9 . 3", Some("{ 20.0.0.0/8 . 1-5 }")),
                ("20.0.0.0/8 . 1-5", Some("{ 20.0.0.0/8 . 1-5 }")),
                ("20.0.0.0/8 . 6", None),
            ],
        ),
    ];
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    for (set, table, looks) in SETS {
        run_text(
            &mut nft,
            &format!("flush ruleset\nadd table {table}\nadd {set}"),
        )
        .unwrap();
        for (look, expected) in *looks {
            let found = answer(&mut nft, &format!("get element {table} s {{ {look} }}"));
            assert_eq!(found.as_deref().ok(), *expected, "{set}: {look}: {found:?}");
            if let Err(error) = found {
                assert!(error.contains("no such element"), "{set}: {look}: {error}");
            }
        }
    }
}

/// A list names each range once, as with nft 1.1.7; with `auto-merge`, its ranges are parts of the set's.
#[test]
fn a_range_is_deleted_once() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let can_destroy = run_text(&mut nft, "destroy table ip none").is_ok(); // Linux 6.3
    let verbs = &["delete", "destroy"][..if can_destroy { 2 } else { 1 }];
    for flags in ["interval", "interval; auto-merge"] {
        for verb in verbs {
            for list in ["1-5, 1-5", "10-20, 10-15", "10-20, 12", "1-5, 10-20, 3-4"] {
                let set = format!(
                    "table ip t {{ set s {{ type inet_service; flags {flags}; elements = {{ 1-5, 10-20 }}; }}; }}"
                );
                run_text(&mut nft, &set).unwrap();
                let before = nft.snapshot(Scope::all()).unwrap().to_string();
                let done = run_text(&mut nft, &format!("{verb} element ip t s {{ {list} }}"));
                match flags {
                    "interval" => {
                        let error = done.unwrap_err();
                        assert!(error.contains("element does not exist"), "{list}: {error}");
                        assert_eq!(nft.snapshot(Scope::all()).unwrap().to_string(), before);
                    }
                    _ => done.unwrap(),
                }
                run_text(&mut nft, "flush ruleset").unwrap();
            }
        }
    }
}
