//! Sentences of rules, and their inverse.

use std::fmt::Write as _;
use std::path::Path;

use super::*;
use chainwright::nft::Scope;
use chainwright_lang::Script;

/// Directory of the workspace.
fn workspace(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

fn explained(language: &str, rule: &str) -> RuleExplanation {
    match language {
        "iptables" | "ip6tables" => {
            let family = match language {
                "iptables" => xt::Family::Ipv4,
                _ => xt::Family::Ipv6,
            };
            let parsed = Rule::parse(family, rule).unwrap_or_else(|why| panic!("{rule}: {why}"));
            RuleExplanation::of_iptables(family, &parsed)
        }
        family => RuleExplanation::of_text(family.parse().unwrap(), rule)
            .unwrap_or_else(|why| panic!("{rule}: {why}")),
    }
}

/// Each rule of the file has the sentences below it. With `CHAINWRIGHT_WRITE_EXPLANATIONS` in the environment, writes
/// them.
#[test]
fn sentences_of_rules() {
    let path = workspace("tests/data/explain/rules.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let (mut made, mut rules) = (String::new(), 0);
    for line in text.lines() {
        match line.split_once(": ") {
            Some((language, rule)) if !line.starts_with([' ', '#']) => {
                let explanation = explained(language, rule);
                writeln!(made, "{line}\n    {explanation}").unwrap();
                let row = explanation.row();
                let cells = [
                    ("from", row.source),
                    ("to", row.destination),
                    ("protocol", row.protocol),
                    ("interface", row.interface),
                    ("if", row.conditions),
                    ("outcome", row.outcome),
                ];
                let cells = cells.iter().filter(|(_, text)| !text.is_empty());
                let cells: Vec<_> = cells
                    .map(|(name, text)| format!("{name}: {text}"))
                    .collect();
                writeln!(made, "    | {}", cells.join(" | ")).unwrap();
                rules += 1;
            }
            _ if line.starts_with(' ') => {}
            _ => writeln!(made, "{line}").unwrap(),
        }
    }
    if std::env::var_os("CHAINWRIGHT_WRITE_EXPLANATIONS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    assert!(rules > 60, "{rules}");
    similar_asserted(&text, &made);
}

#[track_caller]
fn similar_asserted(expected: &str, made: &str) {
    for (number, (expected, made)) in (1..).zip(expected.lines().zip(made.lines())) {
        assert_eq!(expected, made, "line {number}");
    }
    assert_eq!(expected.len(), made.len());
}

/// Checks that the phrases of a rule, read back by other code, are the rule again: all of its conditions and actions, in
/// order.
fn read_back(family: Family, words: &str) -> Result<RuleExplanation, String> {
    let rule = RuleParts::parse(family, words).map_err(|why| why.to_string())?;
    let explanation = RuleExplanation::of_parts(&rule);
    let sentence = explanation.to_string();
    assert_eq!(rule.parts.len(), explanation.phrases.len(), "{words}");
    let mut at = 0;
    for (part, phrase) in rule.parts.iter().zip(&explanation.phrases) {
        let readings = inverse::readings(phrase)
            .unwrap_or_else(|| panic!("{words}\n{sentence}\ncannot be read: {phrase:?}"));
        let same = readings.iter().any(|reading| {
            let read = RuleParts::parse(family, reading);
            read.is_ok_and(|read| {
                // A reading without the operator of flags is another condition.
                let is_same_kind = |one: &RulePart| match (part, one) {
                    (RulePart::Match { is_flags: a, .. }, RulePart::Match { is_flags: b, .. }) => {
                        a == b
                    }
                    _ => true,
                };
                read.parts.len() == 1
                    && read.parts[0].words() == part.words()
                    && is_same_kind(&read.parts[0])
            })
        });
        assert!(
            same,
            "{words}\n{sentence}\n{phrase:?} is read as {readings:?} instead of {:?}",
            part.words()
        );
        let shown = match phrase.language {
            None => phrase.text.split("{}").next().unwrap().to_owned(),
            Some(_) => format!("`{}`", phrase.text),
        };
        let found = sentence[at..].find(&shown);
        at += found.unwrap_or_else(|| panic!("{sentence} omits {phrase:?}"));
    }
    let row = explanation.row();
    let conditions = explanation
        .phrases
        .iter()
        .take_while(|one| one.is_condition);
    for condition in conditions {
        let (cell, text) = match &condition.cell {
            Some((Column::Source, text)) => (&row.source, text.clone()),
            Some((Column::Destination, text)) => (&row.destination, text.clone()),
            Some((Column::Protocol, text)) => (&row.protocol, text.clone()),
            Some((Column::Interface, text)) => (&row.interface, text.clone()),
            _ => (&row.conditions, condition.with("the packet")),
        };
        assert!(cell.contains(&text), "{words}: {row:?} omits {text}");
    }
    assert_eq!(
        explanation.is_complete(),
        !sentence.contains("words)") && !sentence.contains("(bytecode)")
    );
    Ok(explanation)
}

/// Returns the rules of all rulesets of the tests, in nft's language.
fn rules() -> Vec<(Family, String)> {
    let mut files: Vec<_> = std::fs::read_dir(workspace("tests/rulesets"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "nft"))
        .collect();
    files.sort();
    files.push(workspace("tests/data/kube-proxy-1.36-nftables.nft"));
    let mut options = Options::default();
    options.stateless = true;
    let mut rules = Vec::new();
    for file in files {
        let text = std::fs::read(&file).unwrap();
        let script = Script::parse(&file.to_string_lossy(), &text).unwrap();
        let Ok(ruleset) = script.ruleset() else {
            continue;
        };
        let snapshot = ruleset.to_snapshot(&Scope::all());
        for table in snapshot.tables() {
            for rule in table.chains().flat_map(|chain| chain.rules()) {
                let words = chainwright_lang::rule(&table, &rule, &options);
                let family = table.table().family();
                let explanation = RuleExplanation::of_nft(&table, &rule, &options);
                let Some(words) = words else {
                    assert!(!explanation.is_complete());
                    continue;
                };
                // The rule has the same explanation as its text.
                let parsed = RuleExplanation::of_text(family, &words)
                    .unwrap_or_else(|why| panic!("{words}: {why}"));
                let texts = |one: &RuleExplanation| one.to_string().replace("\"", "");
                if explanation.is_complete() {
                    assert_eq!(texts(&explanation), texts(&parsed), "{words}");
                }
                rules.push((family, words));
            }
        }
    }
    rules
}

#[test]
fn explanations_of_rulesets_read_back_as_the_rules() {
    let rules = rules();
    let mut complete = 0;
    for (family, words) in &rules {
        let explanation = read_back(*family, words).unwrap_or_else(|why| panic!("{words}: {why}"));
        complete += usize::from(explanation.is_complete());
    }
    assert!(rules.len() > 1000, "{}", rules.len());
    let share = complete * 100 / rules.len();
    assert!(share >= 60, "{complete} of {} are complete", rules.len());
}

/// Changes one character of each rule: the explanation is that of the changed rule, and another one than before.
#[test]
fn explanations_of_changed_rules_differ() {
    let mut changed = 0;
    let rules = rules();
    for (place, (family, words)) in rules.iter().enumerate().filter(|(place, _)| place % 3 == 0) {
        let Ok(before) = RuleParts::parse(*family, words) else {
            continue;
        };
        let explanation = RuleExplanation::of_parts(&before).to_string();
        let mut mutants = Vec::new();
        let digits = words.char_indices().filter(|(_, c)| c.is_ascii_digit());
        if let Some((at, digit)) = digits.clone().nth(place % digits.count().max(1)) {
            let other = char::from(b'0' + (digit as u8 - b'0' + 1) % 10);
            mutants.push(format!("{}{other}{}", &words[..at], &words[at + 1..]));
        }
        for (from, to) in [
            (" != ", " "),
            ("saddr ", "daddr "),
            ("daddr ", "saddr "),
            ("dport ", "sport "),
            ("iifname ", "oifname "),
            (" accept", " drop"),
            ("jump ", "goto "),
            ("tcp ", "udp "),
            (" over ", " "),
            (" == ", " != "),
            (",", ""),
        ] {
            if words.contains(from) {
                mutants.push(words.replacen(from, to, 1));
            }
        }
        for mutant in mutants {
            let Ok(after) = RuleParts::parse(*family, &mutant) else {
                continue;
            };
            if after.parts == before.parts {
                continue;
            }
            let other = read_back(*family, &mutant).unwrap();
            assert_ne!(explanation, other.to_string(), "{words}\n{mutant}");
            changed += 1;
        }
    }
    assert!(changed > 1000, "{changed}");
}

/// Parts of iptables' rules without a sentence are in iptables' words; the others are those of the rule without them.
#[test]
fn rules_of_iptables_are_complete_or_have_their_own_words() {
    let (mut own, mut english) = (0, 0);
    let mut directories: Vec<_> = ["match", "target"]
        .iter()
        .flat_map(|name| std::fs::read_dir(workspace("tests/rules").join(name)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    directories.sort();
    for path in directories {
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let Ok(mut rule) = Rule::parse(xt::Family::Ipv4, line.trim()) else {
                continue;
            };
            rule.matches
                .retain(|one| !matches!(one, xt::Match::Comment(_)));
            let explanation = RuleExplanation::of_iptables(xt::Family::Ipv4, &rule);
            let text = rule.to_string();
            for phrase in &explanation.phrases {
                if phrase.language == Some(Language::Iptables) {
                    let words = phrase.text.trim();
                    assert!(text.contains(words), "{text}: {words}");
                    own += 1;
                }
            }
            let is_translated = chainwright_lang::translate::rule(&rule, xt::Family::Ipv4).is_ok();
            if explanation.is_complete() {
                english += 1;
                assert!(is_translated, "{text}: {explanation}");
            }
            // Each match has a phrase of its own, unless it is in the translation of another.
            let translated = chainwright_lang::translate::rule(&rule, xt::Family::Ipv4);
            if let Ok(words) = translated
                && explanation.is_complete()
            {
                let translation = read_back(Family::IP, &words).unwrap();
                let is_count = |phrase: &&Phrase| phrase.text != "counts {}";
                let without = |one: &RuleExplanation| -> Vec<Phrase> {
                    one.phrases.iter().filter(is_count).cloned().collect()
                };
                assert_eq!(without(&translation), without(&explanation), "{text}");
            }
        }
    }
    assert!(own > 50 && english > 100, "{own} {english}");
}
