//! Whole rulesets.

use std::path::{Path, PathBuf};

use super::*;

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// Reads all texts of a directory.
fn texts(name: &str) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(directory(name)).expect("cannot read the directory");
    let paths = entries.map(|entry| entry.expect("cannot read a directory entry").path());
    let mut paths: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "nft"))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("not UTF-8");
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
    let text = std::fs::read_to_string(directory("tests/data/nft/rules.nft"))
        .expect("cannot read the rules");
    // Collects all errors before the test fails.
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

/// Printed rules parse to the same rules.
#[test]
fn printed_rules_parse_to_the_same_rules() {
    let text = std::fs::read(directory("tests/data/nft/rules.nft")).expect("cannot read the rules");
    let once = crate::parsed_rules(&text).unwrap_or_else(|error| panic!("{error}"));
    assert!(once.len() > 5000);
    let script = once.join("\n");
    let twice = crate::parsed_rules(script.as_bytes());
    let twice = twice.unwrap_or_else(|error| panic!("{error}"));
    for (one, other) in once.iter().zip(&twice) {
        assert_eq!(one, other);
    }
    assert_eq!(once.len(), twice.len());
}

/// Parses a kube-proxy ruleset as listed by nft.
#[test]
fn kubernetes_rulesets_are_parsed() {
    let mut text = String::from(
        "table ip kube-proxy {\n\tcomment \"rules\"\n\tmap service-ips {\n\
        \t\ttype ipv4_addr . inet_proto . inet_service : verdict\n\t\telements = {\n",
    );
    for n in 0..300 {
        text += &format!(
            "\t\t\t10.96.{}.{} . tcp . 80 comment \"default/s{n}:http\" : goto service-{n:08X}-default/s{n}/tcp/http,\n",
            n / 256,
            n % 256
        );
    }
    text += "\t\t}\n\t}\n";
    for n in 0..300 {
        text += &format!(
            "\tchain service-{n:08X}-default/s{n}/tcp/http {{\n\
             \t\tip daddr 10.96.0.1 tcp dport 80 ip saddr != 10.0.0.0/8 jump mark-for-masquerade\n\
             \t\tnumgen random mod 2 vmap {{ 0 : goto endpoint-{n}-a/tcp/http__10.0.0.1/80, 1 : goto b }}\n\t}}\n"
        );
    }
    text += "}\n";
    let commands = commands(&text);
    // Table, chains, map, map elements, rules.
    assert_eq!(commands.len(), 1 + 300 + 1 + 1 + 600);
}
