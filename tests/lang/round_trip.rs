//! nft's listings are read, and printed again as the same text.

use crate::common::rulesets::{Ruleset, rules_of_every_expression};
use crate::common::scripts::{apply, execute};
use crate::common::tools::Tools;
use crate::common::{connect, sandbox};
use chainwright::nft::Scope;
use chainwright_lang::nft_rules;
use chainwright_lang::{Error, Listing, Options, Script};
use chainwright_testing::Sandbox;

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

/// Listings of rulesets that the kernel holds and that nft, whose JSON creates them too, does not read. The last one is
/// read by nft 1.0.6, and not by 1.1.7.
const BEYOND_NFT: &[&str] = &[
    "table ip table {\n}\n",
    "table inet t {\n\tchain drop {\n\t}\n\n\tchain c {\n\t\tjump drop\n\t}\n}\n",
    "table ip 1a {\n\tset 2 {\n\t\ttype ipv4_addr\n\t}\n}\n",
    "table ip t {\n\tset ip {\n\t\ttype ipv4_addr\n\t}\n\n\tchain mark {\n\t\tip saddr @ip accept\n\t}\n}\n",
    "table ip t {\n\tmap m {\n\t\ttype ipv4_addr : ct helper\n\t}\n}\n",
    "table ip t {\n\tmap m {\n\t\ttype ipv4_addr : ct timeout\n\t}\n}\n",
    "table ip t {\n\tmap m {\n\t\ttype ipv4_addr : ct expectation\n\t}\n}\n",
    "table ip t {\n\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 192.0.2.1 counter packets 0 bytes 0 }\n\t}\n}\n",
    "table ip t {\n\tchain c {\n\t\tmeta l4proto { tcp, udp } tcp dport 22 accept\n\t}\n}\n",
    "table inet t {\n\tchain c {\n\t\tmeta nfproto { ipv4, ipv6 } ip saddr 192.0.2.1 accept\n\t}\n}\n",
    "table ip t {\n\tchain c {\n\t\tmeta mark set ct mark << 1 >> 1 << 1 >> 1 << 1 >> 1 << 1 >> 1 << 1 >> 1 << 1 >> 1 \
     << 1 >> 1 << 1 >> 1\n\t}\n}\n",
];

#[test]
fn listings_beyond_nft_round_trip() {
    let listing = |sandbox: &Sandbox, write: fn(&Listing<'_>) -> String| {
        let snapshot = connect(sandbox).snapshot(Scope::all()).unwrap();
        write(&Listing::new(&snapshot, &Options::default()))
    };
    for (index, text) in BEYOND_NFT.iter().enumerate() {
        let (first, second) = (sandbox(), sandbox());
        let is_last = index + 1 == BEYOND_NFT.len();
        assert_eq!(
            Tools::new(&second).takes("nft -c -f -", text).is_ok(),
            is_last,
            "{text}"
        );
        apply(&first, &mut connect(&first), text).unwrap_or_else(|error| panic!("{text}{error}"));
        assert_eq!(listing(&first, |listing| listing.to_string()), *text);
        let json = listing(&first, |listing| listing.json().to_string());
        let script = Script::parse_json("rules.json", &json).unwrap();
        execute(&second, &mut connect(&second), script).unwrap();
        assert_eq!(listing(&second, |listing| listing.to_string()), *text);
    }
}
