//! Whole rulesets.

use std::path::{Path, PathBuf};

use super::*;

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Every text of a directory.
fn texts(name: &str) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(directory(name)).expect("it is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "nft"))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("text");
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

#[test]
fn every_ruleset_is_read() {
    let texts = texts("tests/rulesets");
    assert!(texts.len() > 70);
    let mut wrong = Vec::new();
    for (path, text) in texts {
        match read(&text) {
            Ok((commands, _)) => assert!(!commands.is_empty(), "{path:?}"),
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_is_read() {
    let text = std::fs::read_to_string(directory("tests/data/nft/rules.nft")).expect("it is there");
    // One by one, so that all that is wrong is told at once.
    let mut wrong = Vec::new();
    let mut table = String::new();
    let mut rules = 0;
    let mut in_chain = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("table ") {
            table = line.trim_end_matches(" {").to_owned();
        } else if line == "chain c {" {
            in_chain = true;
        } else if line == "}" {
            in_chain = false;
        } else if in_chain {
            rules += 1;
            let alone = format!("{table} {{\nchain c {{\n{line}\n}}\n}}\n");
            if let Err(error) = read(&alone) {
                wrong.push(format!("{table}: {line}\n{error}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {rules}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
    assert!(rules > 5000, "{rules}");
    let (commands, _) = read(&text).unwrap_or_else(|error| panic!("{error}"));
    assert!(commands.len() > 5000);
}
