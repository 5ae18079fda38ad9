//! nft's listings are read, and printed again as the same text.

use crate::common::rulesets::{Ruleset, rules_of_every_expression};
use crate::common::tools::Tools;
use chainwright_lang::nft_rules;
use chainwright_lang::{Error, Script};

/// The lines of chains in a listing, with the family of each table.
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

/// Text that nft lists and cannot read itself.
const UNREADABLE: [&str; 3] = [
    "tcp option sack unknown ",
    "tcp option mptcp unknown ",
    "[invalid type]",
];

/// Reads a line of a chain in a table of this family, and prints it again.
fn again(family: &str, line: &str) -> Result<String, Error> {
    let parsed =
        nft_rules(format!("table {family} t {{\nchain c {{\n{line}\n}}\n}}\n").as_bytes())?;
    let command = parsed.first().expect("no command");
    let words = command.strip_prefix(&format!("add rule {family} t c "));
    Ok(words.expect("no command before the rule").to_owned())
}

/// The lines of a listing that are printed differently, and the number of compared rules.
fn differing(listing: &str) -> (Vec<String>, usize) {
    /// Lines that are not rules, and rules on several lines.
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
            Ok(parsed) if parsed == line => {}
            Ok(parsed) => differ.push(format!("{line}\n{parsed}")),
            Err(_) if is_unreadable => {}
            Err(error) => differ.push(error.to_string()),
        }
    }
    (differ, compared)
}

/// nft's listings of rules are read, and printed as nft lists them.
#[test]
fn listed_rules_round_trip() {
    let (sandbox, _) = rules_of_every_expression();
    let listing = Tools::new(&sandbox).run("nft list ruleset");
    let (differ, compared) = differing(&listing);
    assert!(compared > 5000, "{compared}");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// The same for whole rulesets, with sets and objects.
#[test]
fn listed_rulesets_round_trip() {
    let mut wrong = Vec::new();
    let mut listed = 0;
    for ruleset in Ruleset::all() {
        // Some kernels lack features of some rulesets.
        let Some(sandbox) = ruleset.load() else {
            continue;
        };
        let listing = Tools::new(&sandbox).run("nft list ruleset");
        listed += 1;
        let name = &ruleset.name;
        if let Err(error) = Script::parse(name, &listing)
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
