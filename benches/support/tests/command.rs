//! The command `chainwright-bench`, run as a program.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;

const PAGE: &str = include_str!("../README.md");

fn measure(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_chainwright-bench"))
        .args(arguments)
        .output()
        .unwrap()
}

/// Returns the measurements of a successful run.
#[track_caller]
fn run(arguments: &[&str]) -> Vec<Value> {
    let ran = measure(arguments);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{arguments:?}: {errors}");
    let lines = ran.stdout.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Adds the keys of a value, in the README's notation.
fn keys(at: &str, value: &Value, seen: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            let dot = if at.is_empty() { "" } else { "." };
            for (key, value) in object {
                keys(&format!("{at}{dot}{key}"), value, seen);
            }
        }
        Value::Array(parts) if parts.iter().any(Value::is_object) => {
            for part in parts {
                keys(&format!("{at}[]"), part, seen);
            }
        }
        Value::Array(_) if at == "contenders" => {}
        Value::Array(_) => {
            seen.insert(format!("{at}[]"));
        }
        _ => {
            seen.insert(at.to_owned());
        }
    }
}

#[test]
fn the_page_lists_the_printed_keys() {
    let mut seen = BTreeSet::new();
    for arguments in [
        &["chains", "10"][..],
        &["elements", "10"],
        &["mirror", "10"],
        &["save", "5", "--backend", "nft"],
        &["services", "1000", "--layout", "flat"],
    ] {
        for record in run(&[arguments, &["--rounds", "1", "--json"]].concat()) {
            keys("", &record, &mut seen);
        }
    }
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed = rows.map(|row| row.split('`').next().unwrap().to_owned());
    assert_eq!(listed.collect::<BTreeSet<_>>(), seen);
}

#[test]
fn small_measurements() {
    let record = run(&["rules", "10", "--rounds", "1", "--json"]).remove(0);
    assert_eq!(
        (&record["chains"], &record["rules"]),
        (&10.into(), &25.into())
    );
    let names = |record: &Value| {
        let contenders = record["contenders"].as_array().unwrap().clone();
        for contender in &contenders {
            assert!(
                contender["ratio_to_baseline"].as_f64().unwrap() > 0.0,
                "{record}"
            );
        }
        contenders
            .into_iter()
            .map(|c| c["name"].to_string())
            .collect::<Vec<_>>()
    };
    assert!(names(&record).contains(&"\"chainwright, snapshot\"".to_owned()));
    let records = run(&["elements", "--count", "50,60", "--rounds", "1", "--json"]);
    let sizes: Vec<_> = records.iter().map(|record| &record["elements"]).collect();
    assert_eq!(sizes, [50, 50, 60, 60]);
    assert!(names(&records[0])[0].contains("prepared bytes"));
    assert!(names(&records[1])[0].contains("discarded"));
    let records = run(&["commit", "--count", "10,20", "--rounds", "1", "--json"]);
    let sizes: Vec<_> = records.iter().map(|record| &record["rules"]).collect();
    assert_eq!(sizes, [25, 50]);
    let both = [
        "\"baseline: the prepared bytes\"",
        "\"chainwright, from objects\"",
    ];
    assert_eq!(names(&records[1]), both);
    let record = run(&["events", "--count", "10", "--rounds", "3", "--json"]).remove(0);
    assert_eq!(names(&record)[1], "\"Monitor::receive()\"");
    let slowest = &record["contenders"][1];
    let time = |of: &str| slowest[of].as_u64().unwrap();
    assert!(time("wall_p99_ns") >= time("wall_ns"));
    let records = run(&["mirror", "--count", "10", "--rounds", "1", "--json"]);
    assert_eq!(records.len(), 2);
    assert_eq!(names(&records[0])[1], "\"update(), plan(), commit()\"");
    assert_eq!(names(&records[1])[1], "\"Snapshot::chain()\"");
    let memory = &records[1]["memory"]["ratio_to_ruleset"];
    assert!(memory.as_f64().unwrap() > 0.5, "{memory}");
    let records = run(&[
        "services",
        "7",
        "12",
        "--endpoints",
        "2",
        "--others-at-most",
        "7",
        "--rounds",
        "1",
        "--json",
    ]);
    services_in_all_layouts(&records);
    for wrong in [
        &["rules", "1"][..],
        &["elements", "0"],
        &["commit", "1"],
        &["mirror", "1"],
        &["events", "1"],
        &["services", "0"],
        &["services", "5", "--endpoints", "0"],
    ] {
        assert_eq!(measure(wrong).status.code(), Some(2), "{wrong:?}");
    }
}

/// Checks the measurements of `services` with 7 services in all layouts and 12 in the flat one.
fn services_in_all_layouts(records: &[Value]) {
    const LAYOUTS: [&str; 4] = ["flat", "nftables", "iptables-nft", "iptables-legacy"];
    let of = |measured: &str, services: usize| -> Vec<&Value> {
        let all = records.iter().filter(|r| r["measured"] == measured);
        let all = all.filter(|r| r["services"] == services);
        all.collect()
    };
    let names = |record: &Value| -> Vec<String> {
        let contenders = record["contenders"].as_array().unwrap();
        let name = |c: &Value| c["name"].as_str().unwrap().to_owned();
        contenders.iter().map(name).collect()
    };
    for one in ["cold start", "restart of the agent"] {
        let layouts = of(one, 7).into_iter().map(|r| r["layout"].clone());
        assert_eq!(layouts.collect::<Vec<_>>(), LAYOUTS);
        assert_eq!(of(one, 12).len(), 1);
    }
    // The real tools load each layout's ruleset.
    for (record, tool) in of("cold start", 7).into_iter().zip([
        "nft -f",
        "nft -f",
        "iptables-nft-restore",
        "iptables-legacy-restore",
    ]) {
        let contenders = names(record);
        assert_eq!(contenders.len(), 3, "{record}");
        assert!(contenders[2].starts_with(tool), "{record}");
    }
    for one in [
        "one endpoint more",
        "one endpoint fewer",
        "one service more",
        "one service fewer",
        "rolling restart of a deployment",
    ] {
        let record = of(one, 7)[0];
        assert_eq!(names(record)[1..], LAYOUTS, "{record}");
        assert!(names(record)[0].starts_with("baseline: "), "{record}");
        assert_eq!(names(of(one, 12)[0]).len(), 2, "{record}");
    }
    let packets = of("the first packet of a connection", 7)[0];
    assert_eq!(names(packets), LAYOUTS);
    for contender in packets["contenders"].as_array().unwrap() {
        assert!(contender["wall_ns"].as_u64().unwrap() > 0, "{packets}");
    }
}
