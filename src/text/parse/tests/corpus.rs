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

/// The lines of chains in a listing, with the family of each one's table.
fn listed_rules(listing: &str) -> Vec<(String, String)> {
    let mut family = String::new();
    let mut in_chain = false;
    let mut found = Vec::new();
    for line in listing.lines() {
        if let Some(rest) = line.strip_prefix("table ") {
            family = rest.split(' ').next().unwrap_or_default().to_owned();
        } else if line.starts_with("\tchain ") {
            in_chain = true;
        } else if line == "\t}" {
            in_chain = false;
        } else if in_chain && line.starts_with("\t\t") {
            found.push((family.clone(), line[2..].to_owned()));
        }
    }
    found
}

/// What nft lists and cannot read itself.
const UNREADABLE: [&str; 3] = [
    "tcp option sack unknown ",
    "tcp option mptcp unknown ",
    "[invalid type]",
];

#[cfg(feature = "sandbox")]
fn nft(arguments: &[&str]) -> Result<String, String> {
    let done = std::process::Command::new("nft").args(arguments).output();
    let done = done.expect("nft is installed");
    match done.status.success() {
        true => Ok(String::from_utf8(done.stdout).expect("text")),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}

/// What of a listing is not said as it is listed, and how many rules were compared.
fn differing(listing: &str) -> (Vec<String>, usize) {
    /// What is no rule, and what is said in several lines.
    const OTHERS: [&str; 8] = [
        "type ", "policy ", "comment ", "flags ", "\t", "}", "#", "xt ",
    ];
    let mut compared = 0;
    let mut differ = Vec::new();
    for (family, line) in listed_rules(listing) {
        let is_other = OTHERS.iter().any(|other| line.starts_with(other));
        let is_unreadable = UNREADABLE.iter().any(|words| line.contains(words));
        if is_other || line.ends_with('{') {
            continue;
        }
        compared += 1;
        match again(&family, &line) {
            Ok(said) if said == line => {}
            Ok(said) => differ.push(format!("{line}\n{said}")),
            Err(_) if is_unreadable => {}
            Err(error) => differ.push(error.to_string()),
        }
    }
    (differ, compared)
}

/// What nft lists is read, and said as it lists it.
#[test]
#[cfg(feature = "sandbox")]
fn what_nft_lists_is_read_and_said_again() {
    let sandbox = crate::netns::Sandbox::new().expect("a namespace");
    let file = directory("tests/data/nft/rules.nft");
    let listing = sandbox.run(|| {
        nft(&["-f", file.to_str().expect("a path")])?;
        nft(&["list", "ruleset"])
    });
    let listing = listing
        .expect("it runs")
        .unwrap_or_else(|error| panic!("{error}"));
    let (differ, compared) = differing(&listing);
    assert!(compared > 5000, "{compared}");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// The same of whole rulesets, with their sets and objects.
#[test]
#[cfg(feature = "sandbox")]
fn rulesets_that_nft_lists_are_read() {
    let sandbox = crate::netns::Sandbox::new().expect("a namespace");
    let mut wrong = Vec::new();
    let mut listed = 0;
    for (path, _) in texts("tests/rulesets") {
        let listing = sandbox.run(|| {
            nft(&["flush", "ruleset"])?;
            nft(&["-f", path.to_str().expect("a path")])?;
            nft(&["list", "ruleset"])
        });
        // Some kernels lack what some rulesets need.
        let Ok(listing) = listing.expect("it runs") else {
            continue;
        };
        listed += 1;
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if let Err(error) = read(&listing)
            && !listing
                .lines()
                .nth(error.line - 1)
                .is_some_and(|line| UNREADABLE.iter().any(|words| line.contains(words)))
        {
            wrong.push(format!("{name}: {error}"));
        }
        let (differ, _) = differing(&listing);
        wrong.extend(differ.into_iter().map(|line| format!("{name}: {line}")));
    }
    assert!(listed > 40, "{listed}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What was typed is said in words that say the same again.
#[test]
fn what_is_said_is_read_as_the_same() {
    let text = std::fs::read(directory("tests/data/nft/rules.nft")).expect("it is there");
    let once = crate::text::parsed_rules(&text).unwrap_or_else(|error| panic!("{error}"));
    assert!(once.len() > 5000);
    let script = once.join("\n");
    let twice = crate::text::parsed_rules(script.as_bytes());
    let twice = twice.unwrap_or_else(|error| panic!("{error}"));
    for (one, other) in once.iter().zip(&twice) {
        assert_eq!(one, other);
    }
    assert_eq!(once.len(), twice.len());
}

/// A ruleset that kube-proxy made, as nft listed it.
#[test]
fn rulesets_as_kubernetes_has_them_are_read() {
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
    // The table, its chains, its map, that one's elements, and the rules.
    assert_eq!(commands.len(), 1 + 300 + 1 + 1 + 600);
}
