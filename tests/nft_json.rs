//! Rulesets as libnftables' JSON: what we write is what nft writes, value for value, but where nft leaves something out
//! or writes something else than there is: those places stand here, each with how often it is met. And what we write
//! nft reads back as the same, or refuses.

mod common;

use std::collections::BTreeMap;

use chainwright::netns::Sandbox;
use chainwright::nft::expr::{Cmp, Immediate, Meta, MetaKey, ObjectType, Register, Verdict};
use chainwright::nft::{Chain, ChainFlags, Family, Rule, Scope, Table, Transaction};
use chainwright::text::{Listing, Options, Part, rule};
use common::rulesets::Ruleset;
use common::tools::Tools;
use common::{connect, sandbox};
use serde_json::{Value, json};

/// One thing that nft 1.0.6 has otherwise, at one place of both documents: true if it is there, and now the same.
type Amend = fn(nft: &mut Value, ours: &mut Value) -> bool;

/// What nft 1.0.6 has otherwise: why, and in how many places of the rulesets, listed in three ways, and of the rules.
const OTHERWISE: &[(&str, Amend, usize, usize)] = &[
    (
        "the devices of a chain, without which it cannot be made",
        |nft, ours| only_ours(nft, ours, &["policy"], "dev"),
        87,
        0,
    ),
    (
        "the comment of a table or a chain",
        |nft, ours| nft.get("expr").is_none() && only_ours(nft, ours, &["handle"], "comment"),
        54,
        0,
    ),
    (
        "what happens to be in memory for a flag of a table",
        flags_of_table,
        24,
        0,
    ),
    ("that a set is changed by rules", dynamic, 102, 2),
    (
        "that ranges of a set are joined",
        |nft, ours| only_ours(nft, ours, &["type"], "auto-merge"),
        15,
        0,
    ),
    (
        "all statements of an element but the first",
        |nft, ours| {
            let kinds = ["counter", "limit", "quota", "ct count"];
            nft.get("val").is_some()
                && kinds
                    .iter()
                    .any(|kind| only_ours(nft, ours, &["val"], kind))
        },
        8,
        0,
    ),
    (
        "the level of a control group",
        |nft, ours| nft["key"] == "cgroupv2" && only_ours(nft, ours, &["key"], "level"),
        15,
        0,
    ),
    (
        "numbers of synproxy that are 0",
        |nft, ours| {
            let mut zero = |key| ours[key] == 0 && only_ours(nft, ours, &[], key);
            zero("wscale") || zero("mss")
        },
        6,
        0,
    ),
    (
        "an element for a map as text, which it does not read",
        for_map,
        15,
        1,
    ),
    (
        "a chain without a name as text, which it does not read",
        rules_of_jump,
        15,
        0,
    ),
    (
        "large numbers as negative ones, which it reads as others",
        large,
        5,
        0,
    ),
    ("numbers of 32 bits as negative ones", of_32_bits, 9, 0),
    (
        "a shift that was only made for the field to be compared",
        shift,
        18,
        0,
    ),
    ("ports that have lost their type", invalid_type, 12, 0),
    (
        "the first bytes of an address as if they were its last",
        first_bytes,
        3,
        0,
    ),
    (
        "bytes of an option that are no field's",
        unknown_field,
        3,
        5,
    ),
    (
        "bytes that are changed, by the two that are written",
        two_bytes,
        3,
        24,
    ),
    (
        "bytes as if they were fields that they only begin",
        begun,
        0,
        2,
    ),
];

/// Takes a key away that we have and nft has not, of an object in which nft has these.
fn only_ours(nft: &Value, ours: &mut Value, has: &[&str], key: &str) -> bool {
    let is_it =
        nft.is_object() && has.iter().all(|key| nft.get(key).is_some()) && nft.get(key).is_none();
    is_it
        && ours
            .as_object_mut()
            .is_some_and(|ours| ours.remove(key).is_some())
}

fn flags_of_table(nft: &mut Value, ours: &mut Value) -> bool {
    let (Some(nft), Some(ours)) = (nft.get_mut("table"), ours.get_mut("table")) else {
        return false;
    };
    let flags = &nft["flags"];
    let is_it = flags.is_string() && flags != "dormant" && ours["flags"] == "dormant";
    if is_it {
        nft["flags"] = json!("dormant");
    }
    is_it
}

fn dynamic(nft: &mut Value, ours: &mut Value) -> bool {
    if nft.get("type").is_none() {
        return false;
    }
    let Some(Value::Array(flags)) = ours.get_mut("flags") else {
        return false;
    };
    let found = flags.pop_if(|flag| flag == "dynamic").is_some();
    if flags.is_empty() {
        ours.as_object_mut().map(|ours| ours.remove("flags"));
    }
    found
}

fn for_map(nft: &mut Value, ours: &mut Value) -> bool {
    let (Value::String(text), Some(map)) = (&*nft, ours.get("map")) else {
        return false;
    };
    let part = |key: &str| map[key].as_str().unwrap_or_default();
    let is_it = text.starts_with(&format!("{} {} {{ ", part("op"), part("map")));
    if is_it {
        *nft = ours.clone();
    }
    is_it
}

fn rules_of_jump(nft: &mut Value, ours: &mut Value) -> bool {
    let is_it = ["jump", "goto"].iter().any(|word| {
        let text = nft.as_str().and_then(|text| text.strip_prefix(word));
        // One line for each rule, and those of its braces.
        let rules = ours[word]["rules"].as_array().map(Vec::len);
        text.is_some_and(|text| Some(text.lines().count() - 2) == rules)
    });
    if is_it {
        *nft = ours.clone();
    }
    is_it
}

fn large(nft: &mut Value, ours: &mut Value) -> bool {
    let digits = ours.as_str().and_then(|digits| digits.parse::<u64>().ok());
    let is_it = nft.as_i64().is_some_and(|number| number < 0)
        && digits.map(u64::cast_signed) == nft.as_i64();
    if is_it {
        *nft = ours.clone();
    }
    is_it
}

fn of_32_bits(nft: &mut Value, ours: &mut Value) -> bool {
    let number = ours.as_u64().and_then(|number| u32::try_from(number).ok());
    let number = number.map(|number| i64::from(number.cast_signed()));
    let is_it = number.is_some_and(|number| number < 0) && nft.as_i64() == number;
    if is_it {
        *nft = ours.clone();
    }
    is_it
}

fn shift(nft: &mut Value, ours: &mut Value) -> bool {
    let is_it = nft.get(">>").is_some_and(|shift| shift[0] == *ours);
    if is_it {
        *nft = ours.clone();
    }
    is_it
}

fn invalid_type(nft: &mut Value, ours: &mut Value) -> bool {
    let is_it = nft.as_str() == Some(&format!("{:#x} [invalid type]", ours.as_u64().unwrap_or(0)));
    if is_it {
        *nft = ours.clone();
    }
    is_it
}

fn first_bytes(nft: &mut Value, ours: &mut Value) -> bool {
    let prefix = json!({"prefix": {"addr": "198.51.100.0", "len": 24}});
    let is_it = nft == "0.198.51.100" && *ours == prefix;
    if is_it {
        *nft = ours.clone();
    }
    is_it
}

fn unknown_field(nft: &mut Value, ours: &mut Value) -> bool {
    let number = match nft["name"].as_str() {
        Some("sack") => 5,
        Some("mptcp") => 30,
        _ => return false,
    };
    let is_it = nft["field"] == "unknown" && ours["base"] == number;
    if is_it {
        *nft = ours.clone();
    }
    is_it
}

fn two_bytes(nft: &mut Value, ours: &mut Value) -> bool {
    let sport = json!({"payload": {"protocol": "th", "field": "sport"}});
    if nft.get("key") != Some(&sport) {
        return false;
    }
    let field = |protocol, field, value: Value| json!({"key": {"payload": {"protocol": protocol, "field": field}}, "value": value});
    let or = |mask, bits| json!({"|": [{"&": [sport, mask]}, bits]});
    let all = [
        (or(2303, 2048), field("icmp", "type", json!("echo-request"))),
        (
            or(33023, 32768),
            field("icmpv6", "type", json!("echo-request")),
        ),
        (
            or(4607, 4352),
            field("igmp", "type", json!("membership-query")),
        ),
        (
            json!({"&": [sport, 255]}),
            field("icmp", "type", json!("echo-reply")),
        ),
        (
            json!({"&": [sport, 65280]}),
            field("icmp", "code", json!("net-unreachable")),
        ),
        (
            json!({"&": [sport, 65280]}),
            field("icmpv6", "code", json!("no-route")),
        ),
        (json!({"&": [sport, 65280]}), field("igmp", "mrt", json!(0))),
    ];
    let is_it = all
        .iter()
        .any(|(wrong, right)| nft["value"] == *wrong && ours == right);
    if is_it {
        *nft = ours.clone();
    }
    is_it
}

fn begun(nft: &mut Value, ours: &mut Value) -> bool {
    let matched =
        |left: Value, right: Value| json!({"match": {"op": "==", "left": left, "right": right}});
    let field = |field| json!({"payload": {"protocol": "ip6", "field": field}});
    let raw = |len| json!({"payload": {"base": "nh", "offset": 0, "len": len}});
    let prefix = json!({"prefix": {"addr": "af22", "len": 4}});
    let all = [
        (
            json!([
                matched(field("version"), json!(0)),
                matched(field("dscp"), json!("lephb")),
                matched(field("ecn"), json!("ect1"))
            ]),
            json!([matched(json!({"&": [raw(16), 0xfff0]}), json!(0x50))]),
        ),
        (
            json!([
                matched(field("version"), json!(0)),
                matched(field("dscp"), prefix)
            ]),
            json!([matched(raw(8), json!(5))]),
        ),
    ];
    let is_it = all
        .iter()
        .any(|(wrong, right)| nft == wrong && ours == right);
    if is_it {
        *nft = ours.clone();
    }
    is_it
}

/// Makes places of both documents the same where nft has them otherwise, and counts those.
fn amend(nft: &mut Value, ours: &mut Value, met: &mut BTreeMap<&str, usize>) {
    if nft == ours {
        return;
    }
    for (why, is_it, ..) in OTHERWISE {
        while is_it(nft, ours) {
            *met.entry(why).or_default() += 1;
            if nft == ours {
                return;
            }
        }
    }
    match (nft, ours) {
        (Value::Object(nft), Value::Object(ours)) => {
            for (key, nft) in nft {
                if let Some(ours) = ours.get_mut(key) {
                    amend(nft, ours, met);
                }
            }
        }
        (Value::Array(nft), Value::Array(ours)) if nft.len() == ours.len() => {
            for (nft, ours) in nft.iter_mut().zip(ours) {
                amend(nft, ours, met);
            }
        }
        _ => {}
    }
}

/// What we write of a ruleset.
fn ours(sandbox: &Sandbox, part: Part<'_>, change: impl Fn(&mut Options)) -> String {
    let snapshot = connect(sandbox).snapshot(Scope::all()).expect("a ruleset");
    let options = sandbox.run(Options::here).expect("it can be entered");
    let mut options = options.with_time_zone("UTC").expect("it is known");
    change(&mut options);
    Listing::new(&snapshot, &options)
        .part(part)
        .json()
        .to_string()
}

fn all_of(sandbox: &Sandbox) -> String {
    ours(sandbox, Part::All, |_| {})
}

/// The objects of a document but the first, which is each program's own.
#[track_caller]
fn objects(text: &str) -> Vec<Value> {
    let mut document: Value =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let Value::Array(mut objects) = document["nftables"].take() else {
        panic!("{document}");
    };
    let head = objects.remove(0);
    assert_eq!(head["metainfo"]["json_schema_version"], 1);
    for key in ["version", "release_name"] {
        assert!(head["metainfo"][key].is_string(), "{head}");
    }
    objects
}

/// A document of these objects.
fn document(objects: &[Value]) -> String {
    json!({"nftables": objects}).to_string()
}

/// Without what passes, and with elements in an order of their own where nft has none for them.
fn settle(value: &mut Value, any_order: bool) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                settle(value, any_order);
                match value {
                    Value::Array(elements) if key == "elem" || (any_order && key == "set") => {
                        elements.sort_by_key(ToString::to_string);
                    }
                    Value::Number(_) if key == "expires" => *value = Value::Null,
                    _ => {}
                }
            }
        }
        Value::Array(array) => array.iter_mut().for_each(|each| settle(each, any_order)),
        _ => {}
    }
}

/// Compares object by object.
#[track_caller]
fn same(
    name: &str,
    nfts: &str,
    ours: &str,
    any_order: bool,
    met: &mut BTreeMap<&str, usize>,
) -> usize {
    let (nfts, ours) = (objects(nfts), objects(ours));
    let compared = nfts.len();
    assert_eq!(compared, ours.len(), "{name}: objects");
    let mut differ = Vec::new();
    for (nft, our) in nfts.into_iter().zip(ours) {
        let [mut nft, mut our] = [nft, our].map(|mut each| {
            settle(&mut each, any_order);
            each
        });
        let before = nft.clone();
        amend(&mut nft, &mut our, met);
        if nft != our {
            differ.push(format!("nft  {before}\nours {our}"));
        }
    }
    assert!(differ.is_empty(), "{name}:\n{}", differ.join("\n"));
    compared
}

/// Whether all that nft has otherwise was met, as often as it is there.
#[track_caller]
fn all_met(met: &BTreeMap<&str, usize>, expected: impl Fn(&(&str, Amend, usize, usize)) -> usize) {
    let expected = OTHERWISE.iter().map(|each| (each.0, expected(each)));
    let expected: BTreeMap<&str, usize> = expected.filter(|(_, count)| *count > 0).collect();
    assert_eq!(*met, expected);
}

#[test]
fn rulesets_are_written_as_nft_writes_them() {
    let (mut compared, mut met, mut missing) = (0, BTreeMap::new(), 0);
    for ruleset in Ruleset::all() {
        // nft 1.0.6 forgets the first of six fields, and so lists other elements than there are.
        if ruleset.name == "sets-concatenation-six-fields" {
            continue;
        }
        let Some(sandbox) = ruleset.load() else {
            missing += 1;
            continue;
        };
        let any_order = ruleset
            .header("volatile")
            .any(|what| what.starts_with("element-order"));
        let tools = Tools::new(&sandbox);
        type Change = fn(&mut Options);
        let ways: [(&str, Change); 3] = [
            ("", |_| {}),
            ("-s ", |options| options.stateless = true),
            ("-t ", |options| options.terse = true),
        ];
        for (option, change) in ways {
            let nfts = tools.run(&format!("nft -j {option}list ruleset"));
            let ours = ours(&sandbox, Part::All, change);
            let name = format!("{} {option}", ruleset.name);
            compared += same(&name, &nfts, &ours, any_order, &mut met);
        }
    }
    println!("{compared} objects: {met:#?}");
    assert!(compared > 5_000, "{compared}");
    // What a kernel does not take is not met.
    if missing == 0 {
        all_met(&met, |each| each.2);
    }
}

/// How many rules are loaded at once: what nft sends must fit into a socket's usual buffer.
const PIECE: usize = 150;

/// The rules of every expression, in a sandbox.
fn rules() -> Sandbox {
    let text = include_str!("data/nft/rules.nft");
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let mut table = "";
    let mut frame = String::new();
    let mut rules = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix("\t\t") {
            Some(rule) => rules.push(format!("add rule {table} c {rule}\n")),
            None => {
                if let Some(begun) = line.strip_prefix("table ") {
                    table = begun.trim_end_matches(" {");
                }
                frame.push_str(line);
                frame.push('\n');
            }
        }
    }
    assert!(rules.len() > 5_000, "{}", rules.len());
    tools.run_with("nft -f -", &frame);
    for piece in rules.chunks(PIECE) {
        tools.run_with("nft -f -", &piece.concat());
    }
    sandbox
}

#[test]
fn rules_of_every_expression_are_written_as_nft_writes_them() {
    let sandbox = rules();
    let nfts = Tools::new(&sandbox).run("nft -j list ruleset");
    let mut met = BTreeMap::new();
    same("rules", &nfts, &all_of(&sandbox), false, &mut met);
    println!("{met:#?}");
    all_met(&met, |each| each.3);
}

/// The instructions of each rule, and the elements of all sets, as nft lists them; sets without a name are numbered as
/// they are made, and elements of hash tables have no order.
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

/// What nft 1.0.6 says where it does not read what we write, why, and of how many rulesets as a whole, and of how many
/// rules by themselves.
const REFUSED: &[(&str, &str, usize, usize)] = &[
    (
        "Missing `device'",
        "a chain on many devices: it reads one",
        3,
        0,
    ),
    ("Invalid set flag", "it does not know `dynamic`", 11, 0),
    (
        "unqualified type",
        "types of expressions, which have no length",
        8,
        0,
    ),
    (
        "variable sized data types",
        "the same in concatenations",
        1,
        0,
    ),
    (
        "Invalid map type",
        "it reads no concatenations as data of maps",
        4,
        0,
    ),
    (
        "Unknown object passed to add",
        "it reads no synproxy objects",
        2,
        0,
    ),
    ("missing options", "it reads no expectations", 1, 0),
    (
        "Could not process rule: No such file",
        "maps that lead to chains, which come after them",
        5,
        0,
    ),
    (
        "not allowed in context (STMT)",
        "it takes no options and sockets as values",
        2,
        4,
    ),
    (
        "Invalid socket key value",
        "it does not know control groups",
        1,
        4,
    ),
    (
        "conflicting protocols",
        "it asks of what family a table is for ARP",
        0,
        1,
    ),
    (
        "Unknown statement object 'map'",
        "elements that rules add to maps",
        0,
        6,
    ),
    (
        "Object item not found: target",
        "chains without a name",
        1,
        5,
    ),
    (
        "Unknown expression type 'opaque'",
        "what it has no words for",
        1,
        0,
    ),
];

/// Which of them is said.
#[track_caller]
fn refusal(error: &str, what: &str) -> &'static str {
    let mut known = REFUSED.iter().map(|(said, ..)| *said);
    let known = known.find(|said| error.contains(said));
    known.unwrap_or_else(|| panic!("{what}: {error}"))
}

/// Whether all refusals were met, as often as they are there.
#[track_caller]
fn all_refused(met: &BTreeMap<&str, usize>, expected: fn(&(&str, &str, usize, usize)) -> usize) {
    let expected = REFUSED.iter().map(|each| (each.0, expected(each)));
    let expected: BTreeMap<&str, usize> = expected.filter(|(_, count)| *count > 0).collect();
    assert_eq!(*met, expected);
}

#[test]
fn rulesets_are_read_back_as_the_same_or_refused() {
    let (mut refused, mut same, mut missing) = (BTreeMap::<&str, usize>::new(), 0, 0);
    for ruleset in Ruleset::all() {
        let Some(sandbox) = ruleset.load() else {
            missing += 1;
            continue;
        };
        let tools = Tools::new(&sandbox);
        let before = bytecode(&tools);
        let ours = all_of(&sandbox);
        tools.run("nft flush ruleset");
        match tools.takes("nft -j -f -", &ours) {
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
    println!("{same} the same, {refused:#?}");
    if missing == 0 {
        assert!(same > 45, "{same}");
        all_refused(&refused, |each| each.2);
    }
}

/// Loads what it can of these rules.
fn load_rules(tools: &Tools<'_>, rules: &[Value], refused: &mut Vec<(Value, String)>) {
    let Err(error) = tools.takes("nft -j -f -", &document(rules)) else {
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

/// The words of a command before a rule, or before its handle.
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

/// A sandbox with all but the rules.
fn without_rules(load: &impl Fn() -> Sandbox) -> Sandbox {
    let sandbox = load();
    let tools = Tools::new(&sandbox);
    for table in tools.run("nft list tables").lines() {
        tools.run(&format!("nft flush {table}"));
    }
    sandbox
}

fn rules_of(sandbox: &Sandbox) -> Vec<Value> {
    let mut objects = objects(&all_of(sandbox));
    objects.retain(|each| each.get("rule").is_some());
    objects
}

/// The same rules as text.
fn texts(sandbox: &Sandbox) -> Vec<String> {
    let snapshot = connect(sandbox).snapshot(Scope::all()).expect("a ruleset");
    let options = sandbox.run(Options::here).expect("it can be entered");
    let options = options.with_time_zone("UTC").expect("it is known");
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

/// How many of the rules nft reads back from JSON, and how many of those as other instructions than there were, but as
/// those that it makes of the text; what it refuses is counted.
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
    // What differs is the same for text.
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
fn rules_are_read_back_as_the_same_or_refused() {
    let (mut refused, mut missing) = (BTreeMap::new(), 0);
    let (mut read, mut others) = rules_read_back("rules", rules, &mut refused);
    for ruleset in Ruleset::all() {
        if ruleset.prepare().is_none() {
            missing += 1;
            continue;
        }
        let load = || ruleset.load().expect("the kernel has all of it");
        let more = rules_read_back(&ruleset.name, load, &mut refused);
        read += more.0;
        others += more.1;
    }
    println!("{read} read, {others} as other instructions, {refused:#?}");
    assert!(read > 6_000 && others < 50, "{read} {others}");
    if missing == 0 {
        all_refused(&refused, |each| each.3);
    }
}

/// Loads a ruleset as text.
fn loaded(text: &str) -> Sandbox {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with("nft -f -", text);
    sandbox
}

#[test]
fn parts_are_written_as_nft_writes_them() {
    let sandbox = loaded(
        "table ip t {
            counter c { packets 1 bytes 2; }
            quota q { over 5 mbytes; }
            limit l { rate 5/second; }
            set s { type ipv4_addr; elements = { 192.0.2.1 }; }
            map m { type ipv4_addr : verdict; elements = { 192.0.2.2 : drop }; }
            chain a { ip saddr @s counter name c; }
            chain b { jump a; }
        }
        table ip6 empty { }",
    );
    let tools = Tools::new(&sandbox);
    let parts = [
        ("ruleset", Part::All),
        ("tables", Part::Tables),
        ("chains", Part::Chains),
        ("chain ip t a", Part::Chain(b"a")),
        ("sets", Part::Sets),
        ("set ip t s", Part::Set(b"s")),
        ("maps", Part::Maps),
        ("map ip t m", Part::Map(b"m")),
        ("flowtables", Part::Flowtables),
        ("counters", Part::Objects(ObjectType::COUNTER)),
        ("counter ip t c", Part::Object(ObjectType::COUNTER, b"c")),
        ("quotas", Part::Objects(ObjectType::QUOTA)),
        ("limits", Part::Objects(ObjectType::LIMIT)),
    ];
    for (words, part) in parts {
        let nfts = tools.run(&format!("nft -j list {words}"));
        let mut met = BTreeMap::new();
        let ours = ours(&sandbox, part, |_| {});
        same(words, &nfts, &ours, false, &mut met);
        assert!(met.is_empty(), "{words}: {met:?}");
    }
}

#[test]
fn what_nft_leaves_out_is_written() {
    let sandbox = loaded(
        "table inet t { comment \"of a table\"; flags dormant;
            map d { type ipv4_addr : mark; size 9; flags dynamic, timeout; timeout 500ms; }
            set i { type ipv4_addr; flags interval; auto-merge; }
            chain one { comment \"of a chain\"; type filter hook ingress device lo priority 5; }
            chain two { type filter hook ingress devices = { lo, later0 } priority 5; policy drop; }
            chain c {
                update @d { ip saddr timeout 1m : 7 }
                jump { ip ttl 5 drop comment \"five\"; accept; }
                ct bytes > 18446744073709551610
                ct expiration > 1500ms
                counter packets 18446744073709551615 bytes 9223372036854775807
            }
        }",
    );
    let mut written = objects(&all_of(&sandbox));
    for object in &mut written {
        let object = object.as_object_mut().unwrap().values_mut().next().unwrap();
        let object = object.as_object_mut().unwrap();
        for key in ["handle", "family", "table", "chain"] {
            object.remove(key);
        }
    }
    let saddr = json!({"payload": {"protocol": "ip", "field": "saddr"}});
    let greater = |key, right: Value| {
        json!({"rule": {"expr": [
            {"match": {"op": ">", "left": {"ct": {"key": key}}, "right": right}}
        ]}})
    };
    let expected = [
        json!({"table": {"name": "t", "comment": "of a table", "flags": "dormant"}}),
        json!({"map": {"name": "d", "type": "ipv4_addr", "map": "mark", "size": 9,
            "flags": ["timeout", "dynamic"], "timeout": 1}}),
        json!({"set": {"name": "i", "type": "ipv4_addr", "flags": ["interval"],
            "auto-merge": true}}),
        json!({"chain": {"name": "one", "comment": "of a chain", "type": "filter",
            "hook": "ingress", "prio": 5, "dev": "lo", "policy": "accept"}}),
        json!({"chain": {"name": "two", "type": "filter", "hook": "ingress", "prio": 5,
            "dev": ["later0", "lo"], "policy": "drop"}}),
        json!({"chain": {"name": "c"}}),
        json!({"rule": {"expr": [{"map": {"op": "update", "map": "@d", "data": 7,
            "elem": {"elem": {"val": saddr, "timeout": 60}}}}]}}),
        json!({"rule": {"expr": [{"jump": {"rules": [
            {"comment": "five", "expr": [
                {"match": {"op": "==", "right": 5,
                    "left": {"payload": {"protocol": "ip", "field": "ttl"}}}},
                {"drop": null},
            ]},
            {"expr": [{"accept": null}]},
        ]}}]}}),
        greater("bytes", json!("18446744073709551610")),
        greater("expiration", json!("1s500ms")),
        json!({"rule": {"expr": [{"counter": {"packets": -1, "bytes": i64::MAX}}]}}),
    ];
    assert_eq!(written, expected);
}

/// Names that would be read as something else, registers used as nft never does: nothing loads it as another rule.
#[test]
fn what_nft_has_no_words_for_is_refused() {
    let name = |name: &[u8]| {
        let mut bytes = [0; 16];
        bytes[..name.len()].copy_from_slice(name);
        bytes
    };
    let on = |bytes: &[u8]| {
        Rule::new(Family::IP, "t", "c")
            .with(&Meta::load(MetaKey::IIFNAME, Register::R1))
            .with(&Cmp::eq(Register::R1, bytes))
    };
    let jump = Verdict::Jump("two words".into());
    let rules = [
        (on(&name(b"@x")), "Unknown expression type 'opaque'"),
        (on(&name(b"quoted\"")), "Unknown statement object 'opaque'"),
        (
            Rule::new(Family::IP, "t", "c").with(&Immediate::verdict(jump)),
            "Unknown statement object 'opaque'",
        ),
    ];
    for (rule, said) in &rules {
        let sandbox = sandbox();
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        for chain in ["c", "two words"] {
            tx.add(&Chain::new(Family::IP, "t", chain)).unwrap();
        }
        tx.add(rule).unwrap();
        let mut nft = connect(&sandbox);
        nft.commit(&tx).unwrap_or_else(|error| panic!("{error}"));
        let ours = all_of(&sandbox);
        assert!(ours.contains("{\"opaque\":"), "{ours}");
        let tools = Tools::new(&sandbox);
        let rules: Vec<Value> = rules_of(&sandbox);
        assert_eq!(rules.len(), 1, "{ours}");
        let refusal = tools.takes("nft -j -f -", &document(&rules)).unwrap_err();
        assert!(refusal.contains(said), "{refusal}");
    }
}
