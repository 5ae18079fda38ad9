//! Rulesets as libnftables' JSON: the library writes what nft writes, value for value, except where nft omits something
//! or writes something else than the ruleset contains. Those places are listed here with their counts. And nft reads
//! the library's JSON back as the same ruleset, or refuses it.

mod differences;
mod read_back;

use std::collections::BTreeMap;
use std::mem::take;

use crate::common::rulesets::{Ruleset, options_in, rules_of_every_expression};
use crate::common::tools::Tools;
use crate::common::{connect, sandbox};
use chainwright::nft::expr::{
    Bitwise, Cmp, FlowOffload, Immediate, Last, Match, Meta, MetaKey, ObjectType, Objref, Queue,
    QueueFlags, Register, Verdict,
};
use chainwright::nft::stateful::Secmark;
use chainwright::nft::{
    Chain, Devices, Family, Flowtable, FlowtableFlags, Rule, Scope, StatefulObject, Table,
    Transaction,
};
use chainwright_lang::{Listing, NftVersion, Options, Part};
use chainwright_testing::FakeKernel;
use chainwright_testing::Sandbox;
use differences::{NEW_KEYS, SWAPPED, all_met, remove_differences};
use serde::Deserialize;
use serde_json::{Value, json};

/// The library's JSON for a ruleset.
fn chainwright(sandbox: &Sandbox, part: Part<'_>, change: impl Fn(&mut Options)) -> String {
    let snapshot = connect(sandbox)
        .snapshot(Scope::all())
        .expect("cannot read the ruleset");
    let mut options = options_in(sandbox, NftVersion::V1_0);
    change(&mut options);
    Listing::new(&snapshot, &options)
        .part(part)
        .json()
        .to_string()
}

fn all_of(sandbox: &Sandbox) -> String {
    chainwright(sandbox, Part::All, |_| {})
}

/// The objects of a document as text, without the first one, which depends on the program.
#[track_caller]
pub(crate) fn written(text: &str) -> Vec<&str> {
    let list = text
        .strip_prefix(r#"{"nftables": ["#)
        .and_then(|rest| rest.trim_end_matches('\n').strip_suffix("]}"));
    let list = list.unwrap_or_else(|| panic!("{text}"));
    let (mut found, mut start) = (Vec::new(), 0);
    let (mut depth, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    found.push(&list[start..=at]);
                    start = at + 3; // after the comma and the blank
                }
            }
            _ => {}
        }
    }
    assert_eq!(found.join(", "), list);
    let head = found.remove(0);
    assert!(head.starts_with(r#"{"metainfo": {"version": ""#), "{head}");
    assert!(head.ends_with(r#"", "json_schema_version": 1}}"#), "{head}");
    found
}

/// The keys of an object and of everything inside it, in order.
fn keys(object: &str) -> Vec<&str> {
    let parts: Vec<&str> = object.split('"').collect();
    let pairs = parts.windows(2).filter(|pair| pair[1].starts_with(": "));
    pairs.map(|pair| pair[0]).collect()
}

/// Removes the numbers that change over time.
pub(crate) fn without_time(object: &str) -> String {
    let mut parts = object.split(r#""expires": "#);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += r#""expires": 0"#;
        text += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    text
}

/// Whether two texts have the same bytes, in any order.
fn has_same_bytes(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|text| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.sort_unstable();
        bytes
    });
    one == other
}

/// The objects of a document without the first one, which depends on the program.
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

/// A document with these objects.
fn document(objects: &[Value]) -> String {
    json!({"nftables": objects}).to_string()
}

/// Removes what changes over time, and sorts elements if nft has no order for them.
fn normalize(value: &mut Value, any_order: bool) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                normalize(value, any_order);
                match value {
                    Value::Array(elements) if any_order && matches!(&**key, "elem" | "set") => {
                        elements.sort_by_key(ToString::to_string);
                    }
                    Value::Number(_) if key == "expires" => *value = Value::Null,
                    _ => {}
                }
            }
        }
        Value::Array(array) => array.iter_mut().for_each(|each| normalize(each, any_order)),
        _ => {}
    }
}

/// Compares object by object and byte by byte; where nft differs, by values and by the order of keys.
#[track_caller]
fn same(
    name: &str,
    nfts: &str,
    chainwright: &str,
    any_order: bool,
    met: &mut BTreeMap<&'static str, usize>,
) -> usize {
    let (nfts, chainwright) = (written(nfts), written(chainwright));
    let compared = nfts.len();
    assert_eq!(compared, chainwright.len(), "{name}: objects");
    let mut differ = Vec::new();
    for (nft, our) in nfts.into_iter().zip(chainwright) {
        let (nft, our) = (without_time(nft), without_time(our));
        if nft == our {
            continue;
        }
        let [mut nfts, mut chainwright] = [&nft, &our].map(|text| {
            let mut value = serde_json::from_str(text).unwrap();
            normalize(&mut value, any_order);
            value
        });
        let mut otherwise = BTreeMap::new();
        remove_differences(&mut nfts, &mut chainwright, &mut otherwise);
        let is_laid_out = match otherwise.is_empty() {
            true => any_order && has_same_bytes(&nft, &our),
            false if otherwise.keys().any(|why| NEW_KEYS.contains(why)) => true,
            false => {
                let mut chainwright = keys(&our).into_iter();
                keys(&nft)
                    .into_iter()
                    .all(|key| chainwright.any(|our| our == key))
            }
        };
        if nfts != chainwright || !is_laid_out {
            differ.push(format!("nft  {nft}\nours {our}"));
        }
        for (why, count) in otherwise {
            *met.entry(why).or_default() += count;
        }
    }
    assert!(differ.is_empty(), "{name}:\n{}", differ.join("\n"));
    compared
}

#[test]
fn json_of_rulesets_matches_nft() {
    let (mut compared, mut met, mut missing) = (0, BTreeMap::new(), 0);
    // Other modes have the same differences.
    let mut again = BTreeMap::new();
    let mut broken = 0;
    for ruleset in Ruleset::all() {
        // nft 1.0.6 drops the first of six fields, and so lists wrong elements.
        if ruleset.name == "sets-concatenation-six-fields" {
            continue;
        }
        let Some(sandbox) = ruleset.load() else {
            missing += 1;
            continue;
        };
        let any_order = ruleset.has_any_order();
        let tools = Tools::new(&sandbox);
        type Change = fn(&mut Options);
        let ways: [(&str, Change); 10] = [
            ("", |_| {}),
            ("-s ", |options| options.stateless = true),
            ("-t ", |options| options.terse = true),
            ("-a ", |options| options.handles = true),
            ("-n ", |options| *options = take(options).numeric()),
            ("-y ", |options| options.numeric_priority = true),
            ("-p ", |options| options.numeric_protocol = true),
            ("-T ", |options| options.numeric_time = true),
            ("-u ", |options| *options = take(options).with_accounts()),
            ("-S ", |options| *options = take(options).with_services()),
        ];
        for (number, (option, change)) in ways.into_iter().enumerate() {
            let nfts = tools.run(&format!("nft -j {option}list ruleset"));
            // Its document ends at arbitrary memory for a flag of a table, if that is not text.
            if !nfts.ends_with("]}\n") {
                assert!(ruleset.text.contains("flags dormant"), "{}", ruleset.name);
                broken += 1;
                continue;
            }
            let chainwright = chainwright(&sandbox, Part::All, change);
            let name = format!("{} {option}", ruleset.name);
            let met = if number < 3 { &mut met } else { &mut again };
            compared += same(&name, &nfts, &chainwright, any_order, met);
        }
    }
    println!("{compared} objects, {broken} truncated documents: {met:#?}");
    assert!(broken < 20, "{broken}");
    assert!(compared > 15_000, "{compared}");
    assert!(again.remove(SWAPPED).is_some(), "{again:?}");
    assert!(again.keys().eq(met.keys()), "{again:?}");
    // Differences in rulesets that the kernel refuses do not occur.
    if missing == 0 {
        all_met(&met, |each| each.2);
    }
}

#[test]
fn json_of_every_expression_matches_nft() {
    let (sandbox, rules) = rules_of_every_expression();
    assert!(rules > 5_000, "{rules}");
    let nfts = Tools::new(&sandbox).run("nft -j list ruleset");
    let mut met = BTreeMap::new();
    same("rules", &nfts, &all_of(&sandbox), false, &mut met);
    println!("{met:#?}");
    all_met(&met, |each| each.3);
}

fn rules_of(sandbox: &Sandbox) -> Vec<Value> {
    let mut objects = objects(&all_of(sandbox));
    objects.retain(|each| each.get("rule").is_some());
    objects
}

/// Loads a ruleset as text.
fn loaded(text: &str) -> Sandbox {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with("nft -f -", text);
    sandbox
}

#[test]
fn json_of_parts_matches_nft() {
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
        let chainwright = chainwright(&sandbox, part, |_| {});
        same(words, &nfts, &chainwright, false, &mut met);
        assert!(met.is_empty(), "{words}: {met:?}");
    }
}

/// An object without the fields for its location.
fn bare(mut object: Value) -> Value {
    for inner in object.as_object_mut().unwrap().values_mut() {
        let inner = inner.as_object_mut().unwrap();
        inner.retain(|key, _| !["handle", "family", "table", "chain"].contains(&key.as_str()));
    }
    object
}

#[test]
fn writes_fields_that_nft_omits() {
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
    let written = objects(&all_of(&sandbox)).into_iter().map(bare);
    let written: Vec<Value> = written.collect();
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

/// As in libnftables-json(5): the test kernel need not support these.
#[test]
fn writes_objects_of_rare_kernel_features() {
    let fake = FakeKernel::new().with_device("a").with_device("b");
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::INET, "t")).unwrap();
    tx.add(&Chain::new(Family::INET, "t", "c")).unwrap();
    let flows = |name, devices: &[&str], flags| Flowtable {
        flags,
        ..Flowtable::new(
            Family::INET,
            "t",
            name,
            5,
            Devices::new(devices.iter().copied()),
        )
    };
    tx.add(&flows("one", &["a"], None)).unwrap();
    let counted = Some(FlowtableFlags::COUNTER);
    tx.add(&flows("two", &["a", "b"], counted)).unwrap();
    let mark = Secmark::new("system_u:object_r:ssh:s0");
    let mark = StatefulObject::new(Family::INET, "t", "ssh", mark);
    tx.add(&mark).unwrap();
    let rule = || Rule::new(Family::INET, "t", "c");
    let rules = [
        rule().with(&FlowOffload::new("one")),
        rule().with(&Objref::named(ObjectType::SECMARK, "ssh")),
        rule().with(&Queue::to(3)),
        rule().with(&Queue::spread(3, 4).with_flags(QueueFlags::BYPASS)),
        rule().with(&Last::never()),
        rule().with(&Last::ago(1500)),
        rule().with(&Match::new("comment", 0, b"\0\0\0\0")),
    ];
    for rule in &rules {
        tx.add(rule).unwrap();
    }
    let mut nft = fake.connect().unwrap();
    nft.commit(&tx).unwrap_or_else(|error| panic!("{error}"));
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let options = Options::default();
    let written = objects(&Listing::new(&snapshot, &options).json().to_string());
    let written: Vec<Value> = written.into_iter().map(bare).collect();
    let rule = |statement: Value| json!({"rule": {"expr": [statement]}});
    let expected = [
        json!({"table": {"name": "t"}}),
        json!({"chain": {"name": "c"}}),
        json!({"secmark": {"name": "ssh", "context": "system_u:object_r:ssh:s0"}}),
        json!({"flowtable": {"name": "one", "hook": "ingress", "prio": 5, "dev": "a"}}),
        json!({"flowtable": {"name": "two", "hook": "ingress", "prio": 5, "dev": ["a", "b"],
            "flags": ["counter"]}}),
        rule(json!({"flow": {"op": "add", "flowtable": "@one"}})),
        rule(json!({"secmark": "ssh"})),
        rule(json!({"queue": {"num": 3}})),
        rule(json!({"queue": {"num": {"range": [3, 6]}, "flags": ["bypass"]}})),
        rule(json!({"last": null})),
        rule(json!({"last": {"used": 1500}})),
        rule(json!({"xt": {"type": "match", "name": "comment"}})),
    ];
    assert_eq!(written, expected);
}

/// As many instructions as the kernel accepts, each inside the next one.
#[test]
fn the_deepest_rule_is_valid_json() {
    let sandbox = sandbox();
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    tx.add(&Chain::new(Family::IP, "t", "c")).unwrap();
    let mut rule = Rule::new(Family::IP, "t", "c").with(&Meta::load(MetaKey::MARK, Register::R1));
    for byte in 0..126 {
        rule = rule.with(&Bitwise::mask_xor(
            Register::R1,
            &[255, 255, 255, byte],
            &[1, 2, 3, 4],
        ));
    }
    tx.add(&rule.with(&Cmp::eq(Register::R1, &[1, 2, 3, 4])))
        .unwrap();
    let mut nft = connect(&sandbox);
    nft.commit(&tx).unwrap_or_else(|error| panic!("{error}"));
    let chainwright = all_of(&sandbox);
    let mut reader = serde_json::Deserializer::from_str(&chainwright);
    reader.disable_recursion_limit();
    let read = Value::deserialize(&mut reader).unwrap();
    let mut operand = &read["nftables"][3]["rule"]["expr"][0]["match"]["left"];
    let mut deep = 0;
    while let Some(inner) = ["&", "|", "^"].iter().find_map(|sign| operand.get(sign)) {
        operand = &inner[0];
        deep += 1;
    }
    assert!(deep > 126, "{deep}");
    assert_eq!(*operand, json!({"meta": {"key": "mark"}}));
}

/// Names that would be read as something else, and registers that nft never uses: nothing loads them as another rule.
#[test]
fn rejects_objects_inexpressible_in_nft() {
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
    for (rule, message) in &rules {
        let sandbox = sandbox();
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        for chain in ["c", "two words"] {
            tx.add(&Chain::new(Family::IP, "t", chain)).unwrap();
        }
        tx.add(rule).unwrap();
        let mut nft = connect(&sandbox);
        nft.commit(&tx).unwrap_or_else(|error| panic!("{error}"));
        let chainwright = all_of(&sandbox);
        assert!(chainwright.contains("{\"opaque\":"), "{chainwright}");
        let tools = Tools::new(&sandbox);
        let rules: Vec<Value> = rules_of(&sandbox);
        assert_eq!(rules.len(), 1, "{chainwright}");
        let refusal = tools.takes("nft -j -f -", document(&rules)).unwrap_err();
        assert!(refusal.contains(message), "{refusal}");
    }
}
