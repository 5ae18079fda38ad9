//! Scripts in nft's language: the library's result for a text is that of nft, byte for byte.

mod commands;
mod names;
mod ranges;

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
use chainwright_lang::{Listing, NftVersion, Options, RunError, RunMode, Script};
use chainwright_testing::Sandbox;

#[test]
fn rulesets_are_created_like_nft() {
    let mut failures = BTreeMap::new();
    let (mut made, mut left_out) = (0, 0);
    for ruleset in Ruleset::all() {
        let (Some(real), Some(chainwright)) = (ruleset.prepare(), ruleset.prepare()) else {
            continue;
        };
        let (text, lines) = without_known_errors(&ruleset.text);
        left_out += lines;
        Tools::new(&real).run_with("nft -f -", &text);
        let any_order = ruleset.has_any_order();
        let mut nft = connect(&chainwright);
        let applied = apply(&chainwright, &mut nft, &text);
        // nft 1.0.6 records five of six fields of a set.
        let result = match &ruleset.name[..] {
            "sets-concatenation-six-fields" => {
                applied.and_then(|()| compare_listings(&real, &chainwright, any_order))
            }
            // It cannot read the notes of newer versions about `ipsec`, nor can these read its own: its listing
            // contains types.
            "ipsec" => applied.and_then(|()| compare_objects(&real, &chainwright)),
            _ => applied.and_then(|()| compare(&real, &chainwright, any_order)),
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
        let (real, chainwright) = (sandbox(), sandbox());
        Tools::new(&real).load_nft(&data(name));
        apply(&chainwright, &mut connect(&chainwright), &data(name))
            .unwrap_or_else(|error| panic!("{error}"));
        compare(&real, &chainwright, false).unwrap();
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
    let (real, chainwright) = (sandbox(), sandbox());
    rules.load_into(&real);
    let mut nft = connect(&chainwright);
    for piece in rules.pieces() {
        apply(&chainwright, &mut nft, &piece).unwrap_or_else(|error| panic!("{error}"));
    }
    compare(&real, &chainwright, false).unwrap();
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
