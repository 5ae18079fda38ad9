//! Random rulesets, listed in nft's language, and recreated from the listing.

use crate::common::random::Random;
use crate::common::transactions::Writer;
use crate::common::{connect, report, sandbox};
use chainwright::nft::{Scope, Snapshot, Transaction};
use chainwright_lang::{Listing, Options, Script};

/// Lists a ruleset.
fn listed(snapshot: &Snapshot) -> String {
    Listing::new(snapshot, &Options::default()).to_string()
}

/// The instructions of all rules in named chains, without the numbers of anonymous objects.
fn bytecode(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for table in snapshot.tables() {
        for chain in table.chains() {
            if chain.chain().name().starts_with(b"__") {
                continue;
            }
            for rule in chain.rules() {
                let rule = rule.to_string();
                let (_, instructions) = rule.split_once('\n').unwrap_or_default();
                let instructions = instructions.trim_end_matches(|c: char| " ]\n".contains(c));
                let is_nameless = instructions.contains("__chain");
                let is_number = |c: char| is_nameless && c.is_ascii_digit();
                let instructions = instructions.trim_end_matches(is_number);
                if !instructions.is_empty() {
                    text += &format!("{} {instructions}\n", chain.chain().name());
                }
            }
        }
    }
    text
}

/// Removes the braces around single values.
fn alone(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, inner, behind)) = rest.split_once("{ ").and_then(|(before, inner)| {
        let (inner, behind) = inner.split_once(" }")?;
        Some((before, inner, behind))
    }) {
        let is_one = !inner.contains([',', ':', '\n', ' ']) && !before.ends_with("elements = ");
        match is_one {
            true => out += &format!("{before}{inner}"),
            false => out += &format!("{before}{{ {inner} }}"),
        }
        rest = behind;
    }
    out + rest
}

/// Removes from a listing what cannot be expressed, what has no effect (a rule without instructions is an empty line),
/// and the remaining times of elements.
fn compared(text: &str) -> String {
    let text = alone(text);
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines = lines.map(|line| match line.split_once(" expires ") {
        Some((before, rest)) => {
            let (_, behind) = rest.split_once([' ', ',']).unwrap_or_default();
            format!("{before} {behind}\n")
        }
        None => format!("{line}\n"),
    });
    lines.collect()
}

/// Whether the listing of a ruleset creates one with the same listing and rules; `None` if a part of it cannot be
/// expressed and is a comment. nft's notes next to sets are not compared, because nft did not create these sets.
fn again(now: &Snapshot) -> Result<Option<()>, String> {
    let text = listed(now);
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let script = Script::parse("listed", &text).map_err(|error| error.to_string())?;
    let change = script
        .transaction(None)
        .map_err(|error| error.to_string())?;
    if let Err(error) = nft.commit(change.transaction()) {
        let at: Vec<_> = change
            .explain(&error)
            .iter()
            .map(ToString::to_string)
            .collect();
        return Err(format!("{}\n{}", report(&error), at.join("\n")));
    }
    let made = nft.snapshot(Scope::all()).map_err(|error| report(&error))?;
    // A set in braces with one element is read as that element, as in nft.
    let is_whole = !text.contains('#') && alone(&text) == text;
    let (first, second) = (compared(&text), compared(&listed(&made)));
    if first != second {
        return Err(format!("listed\n{first}and then\n{second}"));
    }
    if !is_whole {
        return Ok(None);
    }
    let (first_code, second_code) = (bytecode(now), bytecode(&made));
    match first_code == second_code {
        true => Ok(Some(())),
        false => Err(format!("{first}\n{first_code}\nis made\n{second_code}")),
    }
}

#[test]
fn random_rulesets_round_trip_as_listings() {
    let mut random = Random::new();
    let (mut whole, mut failures) = (0, Vec::new());
    let rounds = crate::common::from_env("RULESETS", 20);
    for _ in 0..rounds {
        let sandbox = sandbox();
        let mut nft = connect(&sandbox);
        let mut now = nft.snapshot(Scope::all()).expect("cannot read the ruleset");
        for _ in 0..20 {
            let mut tx = Transaction::new();
            Writer::new(&mut random, &now).write(&mut tx);
            // Refused transactions have no effect.
            _ = nft.commit(&tx);
            now = nft.snapshot(Scope::all()).expect("cannot read the ruleset");
        }
        match again(&now) {
            Ok(found) => whole += usize::from(found.is_some()),
            Err(failure) => failures.push(failure),
        }
    }
    println!("{whole} of {rounds} rulesets can be expressed completely");
    assert!(
        failures.is_empty(),
        "{} of {rounds} differ:\n{}",
        failures.len(),
        failures.join("\n====\n")
    );
    assert!(
        whole > rounds / 2,
        "only {whole} of {rounds} rulesets can be expressed completely"
    );
}
