//! nft reads back the library's JSON.

use chainwright::nft::ChainFlags;
use chainwright_lang::rule;

use super::*;
use crate::common::rulesets::PIECE;

/// The instructions of each rule, and the elements of all sets, as nft lists them; anonymous sets are numbered in
/// order of creation, and elements of hash tables have no order.
fn bytecode(tools: &Tools<'_>) -> (Vec<Vec<String>>, Vec<String>) {
    let listed = tools.run("nft --debug=netlink list ruleset");
    let (mut rules, mut elements) = (Vec::new(), Vec::new());
    let mut rule = Vec::new();
    for line in listed.lines() {
        if line.starts_with("\telement ") {
            elements.push(line.to_owned());
        } else if line.trim_start().starts_with("[ ") {
            let words = line.split(' ').map(|word| match word {
                word if word.starts_with("__set") => "__set",
                word if word.starts_with("__map") => "__map",
                word => word,
            });
            rule.push(words.collect::<Vec<_>>().join(" "));
        } else if !rule.is_empty() {
            rules.push(std::mem::take(&mut rule));
        }
    }
    elements.sort_unstable();
    (rules, elements)
}

/// nft 1.0.6's errors for JSON of the library that it cannot read, the reason, and the numbers of whole rulesets and
/// of individual rules.
const REFUSED: &[(&str, &str, usize, usize)] = &[
    (
        "Missing `device'",
        "a chain on several devices: it reads only one",
        3,
        0,
    ),
    ("Invalid set flag", "it does not support `dynamic`", 13, 0),
    ("Invalid set datatype", "it does not support `typeof`", 9, 0),
    (
        "Invalid map type",
        "it does not support concatenations as data of maps",
        4,
        0,
    ),
    (
        "Unknown object passed to add",
        "it does not support synproxy objects",
        2,
        0,
    ),
    ("missing options", "it does not support expectations", 1, 0),
    (
        "Could not process rule: No such file",
        "maps refer to chains that follow them",
        5,
        0,
    ),
    (
        "not allowed in context (STMT)",
        "it does not support options and sockets as values",
        2,
        4,
    ),
    (
        "Invalid socket key value",
        "it does not support control groups",
        1,
        4,
    ),
    (
        "Unknown statement object 'map'",
        "elements that rules add to maps",
        0,
        7,
    ),
    (
        "Object item not found: target",
        "chains without a name",
        1,
        5,
    ),
    (
        "Unknown expression type 'opaque'",
        "a rule that it cannot express",
        1,
        0,
    ),
];

/// Which of them occurred.
#[track_caller]
fn refusal(error: &str, what: &str) -> &'static str {
    let mut known = REFUSED.iter().map(|(message, ..)| *message);
    let known = known.find(|message| error.contains(message));
    known.unwrap_or_else(|| panic!("{what}: {error}"))
}

/// Checks that all refusals occurred as often as expected.
#[track_caller]
fn all_refused(met: &BTreeMap<&str, usize>, expected: fn(&(&str, &str, usize, usize)) -> usize) {
    let expected = REFUSED.iter().map(|each| (each.0, expected(each)));
    let expected: BTreeMap<&str, usize> = expected.filter(|(_, count)| *count > 0).collect();
    assert_eq!(*met, expected);
}

#[test]
fn json_rulesets_round_trip_or_are_rejected() {
    let (mut refused, mut same, mut missing) = (BTreeMap::<&str, usize>::new(), 0, 0);
    for ruleset in Ruleset::all() {
        let Some(sandbox) = ruleset.load() else {
            missing += 1;
            continue;
        };
        let tools = Tools::new(&sandbox);
        let before = bytecode(&tools);
        let chainwright = all_of(&sandbox);
        tools.run("nft flush ruleset");
        match tools.takes("nft -j -f -", &chainwright) {
            Ok(()) => {
                // nor is the text
                if ruleset.header("not-readable-back").next().is_none() {
                    assert!(bytecode(&tools) == before, "{}", ruleset.name);
                    same += 1;
                }
            }
            Err(error) => *refused.entry(refusal(&error, &ruleset.name)).or_default() += 1,
        }
    }
    println!("{same} rulesets are equal, {refused:#?}");
    if missing == 0 {
        assert!(same > 45, "{same}");
        all_refused(&refused, |each| each.2);
    }
}

/// Loads those of these rules that nft accepts.
fn load_rules(tools: &Tools<'_>, rules: &[Value], refused: &mut Vec<(Value, String)>) {
    let Err(error) = tools.takes("nft -j -f -", document(rules)) else {
        return;
    };
    match rules {
        [] => panic!("{error}"),
        [rule] => refused.push((rule.clone(), error)),
        rules => {
            let (first, second) = rules.split_at(rules.len() / 2);
            load_rules(tools, first, refused);
            load_rules(tools, second, refused);
        }
    }
}

/// The start of a command, before the rule or its handle.
fn place(rule: &Value) -> String {
    let rule = &rule["rule"];
    let text = |key: &str| rule[key].as_str().unwrap_or_default();
    format!("{} {} {}", text("family"), text("table"), text("chain"))
}

/// Deletes these rules.
#[track_caller]
fn delete<'r>(tools: &Tools<'_>, rules: impl Iterator<Item = &'r Value>) {
    let line = |rule: &Value| {
        format!(
            "delete rule {} handle {}\n",
            place(rule),
            rule["rule"]["handle"]
        )
    };
    let lines: Vec<String> = rules.map(line).collect();
    for piece in lines.chunks(PIECE) {
        tools.run_with("nft -f -", &piece.concat());
    }
}

/// A sandbox with everything except the rules.
fn without_rules(load: &impl Fn() -> Sandbox) -> Sandbox {
    let sandbox = load();
    let tools = Tools::new(&sandbox);
    for table in tools.run("nft list tables").lines() {
        tools.run(&format!("nft flush {table}"));
    }
    sandbox
}

/// The same rules as text.
fn texts(sandbox: &Sandbox) -> Vec<String> {
    let snapshot = connect(sandbox)
        .snapshot(Scope::all())
        .expect("cannot read the ruleset");
    let options = options_in(sandbox, NftVersion::V1_0);
    let mut texts = Vec::new();
    for table in snapshot.tables() {
        for chain in table.chains() {
            let flags = chain.chain().flags().unwrap_or_default();
            if !flags.contains(ChainFlags::BINDING) {
                let rules = chain.rules();
                texts.extend(rules.map(|each| rule(&table, &each, &options).unwrap_or_default()));
            }
        }
    }
    texts
}

/// The number of rules that nft reads back from JSON, and the number that become other instructions, but the same as
/// from text; counts refused ones.
#[track_caller]
fn rules_read_back(
    what: &str,
    load: impl Fn() -> Sandbox,
    counts: &mut BTreeMap<&str, usize>,
) -> (usize, usize) {
    let (first, second) = (load(), without_rules(&load));
    let [before, after] = [Tools::new(&first), Tools::new(&second)];
    let (rules, texts) = (rules_of(&first), texts(&first));
    assert_eq!(rules.len(), texts.len());
    let mut refused = Vec::new();
    for piece in rules.chunks(PIECE) {
        load_rules(&after, piece, &mut refused);
    }
    for (rule, error) in &refused {
        *counts.entry(refusal(error, &rule.to_string())).or_default() += 1;
    }
    delete(&before, refused.iter().map(|(rule, _)| rule));
    let taken = rules.iter().zip(&texts);
    let taken = taken.filter(|(rule, _)| refused.iter().all(|(other, _)| other != *rule));
    let read = rules_of(&second);
    let (was, is) = (bytecode(&before).0, bytecode(&after).0);
    assert_eq!(was.len(), is.len(), "{what}");
    let each = taken.zip(&read).zip(was.iter().zip(&is));
    let others: Vec<_> = each.filter(|(_, (was, is))| was != is).collect();
    // The differences are the same for text.
    let third = without_rules(&load);
    let from_text = Tools::new(&third);
    for (((rule, text), _), _) in &others {
        from_text.run_with("nft -f -", &format!("add rule {} {text}", place(rule)));
    }
    let expected = bytecode(&from_text).0;
    assert_eq!(expected.len(), others.len(), "{what}");
    for ((((rule, text), _), (_, is)), expected) in others.iter().zip(&expected) {
        assert!(
            *is == expected,
            "{what}: {text}\n{rule}\n{is:#?}\n{expected:#?}"
        );
    }
    delete(&before, others.iter().map(|(((rule, _), _), _)| *rule));
    delete(&after, others.iter().map(|((_, read), _)| *read));
    let (before, after) = (bytecode(&before), bytecode(&after));
    assert!(before == after, "{what}: {before:#?}\n{after:#?}");
    (was.len(), others.len())
}

#[test]
fn json_rules_round_trip_or_are_rejected() {
    let (mut refused, mut missing) = (BTreeMap::new(), 0);
    let (mut read, mut others) =
        rules_read_back("rules", || rules_of_every_expression().0, &mut refused);
    for ruleset in Ruleset::all() {
        if ruleset.prepare().is_none() {
            missing += 1;
            continue;
        }
        let load = || ruleset.load().expect("the kernel lacks a feature");
        let more = rules_read_back(&ruleset.name, load, &mut refused);
        read += more.0;
        others += more.1;
    }
    println!("{read} rules read, {others} as other instructions, {refused:#?}");
    assert!(read > 6_000 && others < 50, "{read} {others}");
    if missing == 0 {
        all_refused(&refused, |each| each.3);
    }
}
