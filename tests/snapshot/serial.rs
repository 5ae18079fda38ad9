//! Snapshots to JSON and back: the same, and the same after a restoration; and any other JSON is
//! refused, or is a valid snapshot.

use crate::common::tools::Tools;
use crate::common::{connect, report, sandbox, thorough};
use chainwright::Error;
use chainwright::nft::{DiffOptions, Family, Generation, Outcome, Scope, Snapshot};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// The rulesets in `rulesets/`: their names and texts.
fn rulesets() -> Vec<(String, String)> {
    let directory = crate::common::in_workspace("tests/rulesets");
    let entries = std::fs::read_dir(directory).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "nft"));
    paths.sort();
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    paths.into_iter().map(read).collect()
}

/// The differences, including counters.
fn differences(one: &Snapshot, other: &Snapshot) -> String {
    let mut options = DiffOptions::default();
    options.counters = true;
    one.diff(other, options).unwrap().to_string()
}

#[test]
fn serialized_rulesets_round_trip() {
    for (name, text) in rulesets() {
        let sandbox = sandbox();
        let tools = Tools::new(&sandbox);
        for line in text.lines().take_while(|line| line.starts_with('#')) {
            if let Some(command) = line.strip_prefix("# needs: ") {
                tools.run(command);
            }
        }
        tools.run_with("env TZ=UTC nft -f -", &text);
        let mut nft = connect(&sandbox);
        let before = nft.snapshot(Scope::all()).unwrap();
        let json = serde_json::to_string(&before).unwrap();
        let read: Snapshot =
            serde_json::from_str(&json).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(serde_json::to_string(&read).unwrap(), json, "{name}");
        let number = |snapshot: &Snapshot| snapshot.generation().map(Generation::number);
        assert_eq!(number(&read), number(&before));
        assert_eq!(read.scope(), before.scope());
        // Including bytecode and the order of hash tables.
        let (old, new) = (before.to_string(), read.to_string());
        for (old, new) in old.lines().zip(new.lines()) {
            assert_eq!(old, new, "{name}");
        }
        assert_eq!(old.lines().count(), new.lines().count(), "{name}");

        read.restore(&mut nft)
            .unwrap_or_else(|error| panic!("{name}: {}", report(&error)));
        let after = nft.snapshot(Scope::all()).unwrap();
        let without_names = |snapshot: &Snapshot| {
            let value = serde_json::to_value(snapshot).unwrap();
            !value.to_string().contains("__chain")
        };
        // From an unknown boot: anonymous chains have new names.
        if without_names(&before) {
            assert_eq!(differences(&before, &after), "", "{name}");
        } else {
            let count = |snapshot: &Snapshot| snapshot.to_string().lines().count();
            assert_eq!(count(&before), count(&after), "{name}");
        }
    }
}

/// A varied snapshot as JSON.
fn sample() -> Value {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with(
        "nft -f -",
        r#"table ip t {
            counter hits { packets 3 bytes 40 }
            set s { type ipv4_addr; flags interval; counter; elements = { 10.0.0.0/8, 11.0.0.1 comment "x" }; }
            set d { type ipv4_addr; flags dynamic,timeout; size 9; timeout 1h; }
            map m { type inet_service : verdict; elements = { 1 : jump c, 2 : drop }; }
            chain c { counter; tcp dport 22 accept comment "a"; }
            chain input { type filter hook input priority 0; update @d { ip saddr limit rate 1/second }; }
        }
        table netdev n { chain c { type filter hook ingress device lo priority 0; }; }"#,
    );
    let snapshot = connect(&sandbox).snapshot(Scope::all()).unwrap();
    serde_json::to_value(&snapshot).unwrap()
}

#[track_caller]
fn refused(value: &Value) -> String {
    let error = serde_json::from_value::<Snapshot>(value.clone());
    error.unwrap_err().to_string()
}

#[test]
fn rejects_invalid_snapshots() {
    let sample = sample();
    let with = |pointer: &str, new: Value| {
        let mut value = sample.clone();
        *value.pointer_mut(pointer).unwrap() = new;
        value
    };
    // Objects with a wrong location.
    for (pointer, new) in [
        ("/tables/0/chains/0/chain/table", json!("n")),
        ("/tables/0/chains/0/chain/family", json!("ip6")),
        ("/tables/0/chains/0/rules/0/chain", json!("input")),
        ("/tables/0/chains/0/rules/0/table", json!("u")),
        ("/tables/0/sets/0/set/table", json!("u")),
        ("/tables/0/objects/0/table", json!("u")),
        ("/tables/0/table/name", json!("u")),
    ] {
        let message = refused(&with(pointer, new));
        assert!(
            message.contains("not in the table, chain or set"),
            "{message}"
        );
    }
    // A scope that would have other tables deleted, or an incomplete one.
    let all = &sample["scope"]["family"];
    let scope = |family: &Value, table: Value| json!({"family": family, "table": table});
    let ip = json!("ip");
    for (family, table) in [(&ip, json!(null)), (all, json!("t")), (&ip, json!("t"))] {
        let message = refused(&with("/scope", scope(family, table)));
        assert!(message.contains("outside its scope"), "{message}");
    }
    let mut without = sample.clone();
    without.as_object_mut().unwrap().remove("scope");
    assert!(refused(&without).contains("missing field `scope`"));
    let message = refused(&with("/tables/0/chains/0/chain/name", json!(null)));
    assert!(message.contains("malformed"), "{message}");
    let long = "x".repeat(70_000);
    let message = refused(&with("/tables/0/chains/0/chain/name", json!(long)));
    assert!(!message.is_empty());
    // Expressions nested without end.
    let limit = with("/generation", json!(null));
    let at = "/tables/0/chains/1/rules/0/expressions";
    let update = limit.pointer(at).unwrap()[1].clone();
    assert!(update["dynset"].is_object(), "{update}");
    let mut nested = update.clone();
    for _ in 0..12 {
        let mut outer = update.clone();
        outer["dynset"]["expr"] = nested;
        nested = outer;
    }
    let message = refused(&with(at, json!([nested])));
    assert!(message.contains("nested too deeply"), "{message}");
}

/// A format without its own limit: a thousand nested expressions also end in an error.
#[test]
fn deep_nesting_ends_in_an_error() {
    let deep = |count: usize| {
        let open = r#"[{"dynset":{"expressions":"#.repeat(count);
        let close = "}}]".repeat(count);
        format!("{open}[]{close}")
    };
    let read = |text: &str| {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        deserializer.disable_recursion_limit();
        let list: Result<chainwright::nft::expr::Expressions<'_>, _> =
            serde::Deserialize::deserialize(&mut deserializer);
        list.map(|list| format!("{list:?}"))
    };
    assert!(read(&deep(7)).is_ok());
    for count in [12, 1_000, 100_000] {
        let message = read(&deep(count)).unwrap_err().to_string();
        assert!(message.contains("nested too deeply"), "{message}");
    }
    // Afterwards reading works as before.
    assert!(read(&deep(7)).is_ok());
    let json = format!(r#"{{"generation":1,"tables":{}"#, "[".repeat(1_000_000));
    assert!(serde_json::from_str::<Snapshot>(&json).is_err());
}

/// A change to a snapshot's JSON.
#[derive(Debug, Clone)]
enum Mutation {
    /// Another value in place of any.
    Replace(Index, Leaf),
    /// A value from elsewhere.
    Copy(Index, Index),
    Remove(Index),
}

#[derive(Debug, Clone)]
enum Leaf {
    Null,
    Number(u64),
    Negative,
    Text(String),
    Digits(usize),
    Empty,
    Object,
}

impl Leaf {
    fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Number(number) => json!(number),
            Self::Negative => json!(-1),
            Self::Text(text) => json!(text),
            Self::Digits(count) => json!("0a".repeat(*count)),
            Self::Empty => json!([]),
            Self::Object => json!({}),
        }
    }
}

/// Visits every value, in order, each before its content.
fn each(value: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    visit(value);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| each(value, visit)),
        Value::Object(map) => map.values_mut().for_each(|value| each(value, visit)),
        _ => {}
    }
}

fn nth(value: &mut Value, number: usize, with: impl FnOnce(&mut Value)) {
    let (mut left, mut with) = (number, Some(with));
    each(value, &mut |value| match left.checked_sub(1) {
        Some(less) => left = less,
        None => {
            if let Some(with) = with.take() {
                with(value);
            }
        }
    });
}

fn mutate(value: &mut Value, mutation: &Mutation) {
    let mut count = 0;
    each(value, &mut |_| count += 1);
    match mutation {
        Mutation::Replace(at, leaf) => nth(value, at.index(count), |it| *it = leaf.value()),
        Mutation::Copy(from, to) => {
            let mut copy = Value::Null;
            nth(value, from.index(count), |it| copy = it.clone());
            nth(value, to.index(count), |it| *it = copy);
        }
        Mutation::Remove(at) => nth(value, at.index(count), |it| match it {
            Value::Array(list) => _ = list.pop(),
            Value::Object(map) => {
                if let Some(key) = map.keys().next().cloned() {
                    map.remove(&key);
                }
            }
            it => *it = Value::Null,
        }),
    }
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let number = prop_oneof![Just(u64::MAX), Just(1 << 60), any::<u64>(), 0..300u64];
    let leaf = prop_oneof![
        Just(Leaf::Null),
        number.prop_map(Leaf::Number),
        Just(Leaf::Negative),
        ".{0,20}".prop_map(Leaf::Text),
        (0..40_000usize).prop_map(Leaf::Digits),
        Just(Leaf::Empty),
        Just(Leaf::Object),
    ];
    let mutation = prop_oneof![
        4 => (any::<Index>(), leaf).prop_map(|(at, leaf)| Mutation::Replace(at, leaf)),
        2 => any::<(Index, Index)>().prop_map(|(from, to)| Mutation::Copy(from, to)),
        1 => any::<Index>().prop_map(Mutation::Remove),
    ];
    prop::collection::vec(mutation, 1..4)
}

#[test]
fn anything_deserialized_is_consistent() {
    let sample = sample();
    let sandbox = sandbox();
    let nft = std::cell::RefCell::new(connect(&sandbox));
    let (read, refused, taken) = Default::default();
    let count = |of: &std::cell::Cell<u32>| of.set(of.get() + 1);
    let mut runner = TestRunner::new(Config {
        cases: 400 * thorough() as u32,
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&mutations(), |mutations| {
            let mut value = sample.clone();
            for mutation in &mutations {
                mutate(&mut value, mutation);
            }
            let Ok(snapshot) = serde_json::from_value::<Snapshot>(value) else {
                count(&refused);
                return Ok(());
            };
            count(&read);
            let _ = format!("{snapshot} {snapshot:?}");
            if let Ok(json) = serde_json::to_string(&snapshot) {
                let again: Snapshot = serde_json::from_str(&json).unwrap();
                assert_eq!(serde_json::to_string(&again).unwrap(), json);
            }
            let nft = &mut *nft.borrow_mut();
            let before = nft.generation().unwrap();
            match snapshot.restore(nft) {
                Ok(_) => count(&taken),
                Err(Error::Commit(error)) => {
                    assert_eq!(error.outcome, Outcome::NothingApplied, "{error}");
                    assert_eq!(nft.generation().unwrap(), before);
                }
                Err(Error::MessageError(_)) => {}
                Err(error) => panic!("{}", report(&error)),
            }
            Ok(())
        })
        .unwrap();
    let [read, refused, taken] = [read, refused, taken].map(std::cell::Cell::into_inner);
    println!("{read} read, of which {taken} were restored; {refused} refused");
    assert!(read > 20 && refused > 60 && taken > 4);
}

/// A snapshot of one table, and back: the others stay.
#[test]
fn the_scope_is_read_back() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    tools.run_with(
        "nft -f -",
        "table ip a { chain c { accept; }; }; table ip b { }",
    );
    let mut nft = connect(&sandbox);
    let one = nft.snapshot(Scope::table(Family::IP, "a")).unwrap();
    let read: Snapshot = serde_json::from_str(&serde_json::to_string(&one).unwrap()).unwrap();
    tools.run("nft flush chain ip a c");
    read.restore(&mut nft).unwrap();
    let listing = tools.run("nft list ruleset");
    assert!(listing.contains("accept") && listing.contains("table ip b"));
}
