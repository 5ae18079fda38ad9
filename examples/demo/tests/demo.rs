//! Tests the output of the demo.

use std::process::Command;

use serde_json::Value;

#[test]
fn demo_output_is_consistent() {
    let ran = Command::new(env!("CARGO_BIN_EXE_chainwright-demo"))
        .arg("--json")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{errors}");
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let phases = report["phases"].as_array().unwrap();
    let names: Vec<_> = phases.iter().map(|phase| &phase["name"]).collect();
    assert_eq!(names, ["commands", "repaired", "transactions"]);
    let number = |phase: &Value, key: &str| phase[key].as_f64().unwrap();
    for phase in phases {
        assert!(number(phase, "checks") > 100.0, "{phase}");
        assert!(
            number(phase, "misses") <= number(phase, "checks"),
            "{phase}"
        );
        assert!(
            number(phase, "longest_gap_ms") <= number(phase, "missing_ms"),
            "{phase}"
        );
        assert!(
            number(phase, "missing_ms") <= number(phase, "duration_ms"),
            "{phase}"
        );
    }
    let [commands, repaired, transactions] = &phases[..] else {
        panic!("{report}");
    };
    assert!(number(commands, "misses") > 0.0, "{commands}");
    assert!(number(commands, "longest_gap_ms") > 100.0, "{commands}");
    assert!(
        number(repaired, "missing_ms") < number(commands, "missing_ms"),
        "{repaired} {commands}"
    );
    assert_eq!(transactions["misses"], 0, "{transactions}");
    assert_eq!(transactions["restarts"], 100);

    let listed = report["chains"].as_array().unwrap();
    let of = |backend: &str| listed.iter().filter(|l| l["backend"] == backend).count();
    assert_eq!(of("nft"), 9);
    match report["legacy_unavailable"].as_str() {
        None => assert_eq!(of("legacy"), 3),
        Some(why) => assert!(!why.is_empty()),
    }
}
