//! Sentences of rules, and their inverse.

use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::{Direction, Node, Packet, Rules, State};
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

/// Returns a condition or statement with one of its equivalent forms.
fn meaning(words: &str) -> String {
    let words = words
        .replace(" == ", " ")
        .replace(" and ", " & ")
        .replace(" sport >= 0", " dport >= 0")
        .replace(['(', ')'], "")
        .replace(" | ", "+")
        .replace("nat ip6 to ", "nat to ")
        .replace("nat ip to ", "nat to ");
    let words = match words.split_once(" / ") {
        Some((head, mask)) => {
            let at = head.rfind(" != ").or_else(|| head.rfind(' ')).unwrap();
            format!("{} & {mask}{}", &head[..at], &head[at..]).replace(',', "+")
        }
        None => words,
    };
    // A packet has exactly one state.
    let words = match words.strip_prefix("ct state ") {
        Some(states) => {
            let states = states.replace("!= ", "! ").replace(['{', '}'], "");
            format!("ct state {}", states.replace(' ', "").replace('!', "! "))
        }
        None => words,
    };
    // A set of one value, and a choice of one.
    if let Some((head, one)) = words.split_once(" { ")
        && let Some(one) = one.strip_suffix(" }")
        && !one.contains(',')
        && !one.contains(" : ")
    {
        return format!("{head} {one}");
    }
    match words.split_once(" numgen random mod 1 map { 0 : ") {
        Some((head, one)) => {
            let one = one.replace(" }", "").replace(" . ", ":");
            format!("{head} {one}").replace(['[', ']'], "")
        }
        None if words == "queue" => "queue to 0".to_owned(),
        None => words.replace(['[', ']'], ""),
    }
}

/// Checks that the phrases of a rule, read back by other code, are the rule again: all of its conditions and actions, in
/// order.
fn read_back(family: Family, words: &str) -> Result<RuleExplanation, String> {
    let rule = RuleParts::parse(family, words).map_err(|why| why.to_string())?;
    let explanation = RuleExplanation::of_parts(family, &rule);
    let sentence = explanation.to_string();
    let phrases = explanation.phrases.iter().filter(|one| !one.is_implied);
    assert_eq!(rule.parts.len(), phrases.clone().count(), "{words}");
    let mut at = 0;
    for (part, phrase) in rule.parts.iter().zip(phrases) {
        let readings = inverse::readings(phrase)
            .unwrap_or_else(|| panic!("{words}\n{sentence}\ncannot be read: {phrase:?}"));
        let read: Vec<_> = readings
            .iter()
            .filter_map(|reading| match RuleParts::parse(family, reading) {
                Ok(read) if read.parts.len() == 1 => read.parts.into_iter().next(),
                _ => None,
            })
            .collect();
        // A reading without the operator of flags is another condition.
        let is_same_kind = |one: &RulePart| match (part, one) {
            (RulePart::Match { is_flags: a, .. }, RulePart::Match { is_flags: b, .. }) => a == b,
            _ => true,
        };
        let same = read
            .iter()
            .any(|one| one.words() == part.words() && is_same_kind(one));
        assert!(
            same,
            "{words}\n{sentence}\n{phrase:?} is read as {readings:?} instead of {:?}",
            part.words()
        );
        // No other reading has another meaning.
        for one in &read {
            let meanings = [one, part].map(|part| meaning(part.words()));
            assert_eq!(meanings[0], meanings[1], "{words}\n{sentence}");
        }
        let found = ["the packet", "it", "every packet"]
            .iter()
            .filter_map(|packet| sentence[at..].find(&phrase.with(packet)))
            .min();
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
        !sentence.contains("words)") && !sentence.contains("(in bytecode)")
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
        let explanation = RuleExplanation::of_parts(*family, &before).to_string();
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
    let (mut own, mut english, mut matches) = (0, 0, 0);
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
                if let Some(language) = phrase.language {
                    assert_eq!(language, Language::Iptables, "{text}: {phrase:?}");
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
            let is_count = |phrase: &&Phrase| phrase.text != COUNTS;
            let without = |one: &RuleExplanation| -> Vec<Phrase> {
                one.phrases.iter().filter(is_count).cloned().collect()
            };
            // Each match has a phrase of its own, unless it is in the translation of another.
            let translated = chainwright_lang::translate::rule(&rule, xt::Family::Ipv4);
            if let Ok(words) = translated
                && explanation.is_complete()
            {
                let translation = read_back(Family::IP, &words).unwrap();
                assert_eq!(without(&translation), without(&explanation), "{text}");
                continue;
            }
            // Otherwise each match has its own words, or the phrases that it has alone.
            for one in &rule.matches {
                let alone = Rule {
                    protocol: rule.protocol,
                    ..Rule::default()
                };
                let alone = alone.with(one.clone());
                let alone = RuleExplanation::of_iptables(xt::Family::Ipv4, &alone);
                for phrase in without(&alone) {
                    assert!(
                        explanation.phrases.contains(&phrase),
                        "{text}\n{explanation}\n{phrase:?}"
                    );
                    matches += 1;
                }
            }
        }
    }
    assert!(
        own > 50 && english > 100 && matches > 50,
        "{own} {english} {matches}"
    );
}

/// Packets of both IP versions and several protocols.
fn packets() -> Vec<Packet> {
    let mut packets = Vec::new();
    for (from, to) in [
        ("10.0.0.1", "10.0.0.2"),
        ("fd00::1", "fd00::2"),
        ("192.0.2.1", "10.0.0.1"),
    ] {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        for (protocol, port) in [(6, 22), (6, 80), (17, 53), (132, 80)] {
            for state in [State::New, State::Established] {
                let mut packet = Packet::between(Direction::In, protocol, from, to);
                packet.source_port = Some(1024);
                packet.destination_port = Some(port);
                packet.tcp_flags = (protocol == 6).then_some(0x12);
                packet.connection.state = Some(state);
                packet.in_interface = Some("eth0".into());
                packets.push(packet);
            }
        }
    }
    packets
}

/// Returns for each packet whether the only rule of a chain matches; `None` if that is not certain, or if the rule is
/// invalid.
fn matches(family: Family, rule: &str, packets: &[Packet]) -> Option<Vec<Option<bool>>> {
    let text = format!(
        "table {family} t {{ \
            set blocked {{ type ipv4_addr; elements = {{ 10.0.0.1 }}; }}; \
            set seen {{ type ipv4_addr; flags dynamic, timeout; }}; \
            chain web {{ }}; \
            chain c {{ type filter hook input priority 0; {rule}; }}; \
        }}"
    );
    let script = Script::parse("rules.nft", &text).ok()?;
    let snapshot = script.ruleset().ok()?.to_snapshot(&Scope::all());
    let rules = Rules::new().with_nft(&snapshot);
    let matches = packets.iter().map(|packet| {
        let trace = rules.trace(packet, &Node::default(), &crate::Options::default());
        let [end] = &trace.ends[..] else {
            return None;
        };
        let mut steps = end.steps.iter();
        Some(steps.any(|step| step.rule.is_some() && step.chain == "c" && step.is_full_match))
    });
    Some(matches.collect())
}

/// Returns the rules of the file, in families whose packets can be traced.
fn traced_rules() -> Vec<(Family, String)> {
    let text = std::fs::read_to_string(workspace("tests/data/explain/rules.txt")).unwrap();
    let rules = text.lines().filter_map(|line| {
        let (family @ ("ip" | "ip6" | "inet"), rule) = line.split_once(": ")? else {
            return None;
        };
        Some((family.parse().unwrap(), rule.to_owned()))
    });
    rules.collect()
}

/// Returns a condition in nft's language, read from its sentence.
fn condition_of(family: Family, condition: &Phrase) -> String {
    if condition.is_implied {
        let name = condition.text.rsplit(' ').next().unwrap().to_lowercase();
        return match condition.text.starts_with("the packet is ") {
            true => format!("meta nfproto {name}"),
            false => format!("meta l4proto {name}"),
        };
    }
    let readings = inverse::readings(condition).unwrap();
    let mut readings = readings.into_iter();
    let valid = readings.find(|one| RuleParts::parse(family, one).is_ok());
    valid.unwrap()
}

/// The last action applies to exactly the packets for which the conditions of the explanation hold, also the implied ones,
/// and for which each action that can end the rule does not end it.
#[test]
fn conditions_are_those_of_the_rule() {
    let packets = packets();
    let (mut compared, mut implied, mut ends) = (0, 0, 0);
    for (family, rule) in traced_rules() {
        let parts = RuleParts::parse(family, &rule).unwrap();
        let explanation = RuleExplanation::of_parts(family, &parts);
        // NAT to an IPv4 address does nothing to other packets, which match the rule nevertheless.
        if rule.contains("nat ip") {
            continue;
        }
        let mut parts = parts.parts.iter();
        let mut required = Vec::new();
        for phrase in &explanation.phrases {
            let part = if phrase.is_implied {
                None
            } else {
                parts.next()
            };
            if phrase.is_condition {
                required.push(condition_of(family, phrase));
            } else if phrase.then.is_some() {
                required.push(part.unwrap().words().to_owned());
                ends += 1;
            }
        }
        let Some(of_rule) = matches(family, &rule, &packets) else {
            continue;
        };
        required.push("counter".to_owned());
        let each = required
            .iter()
            .map(|one| matches(family, one, &packets).unwrap_or_else(|| panic!("{rule}: {one}")));
        let each: Vec<_> = each.collect();
        let has_implied = explanation.phrases.iter().any(|one| one.is_implied);
        for (place, packet) in packets.iter().enumerate() {
            let all: Option<Vec<bool>> = each.iter().map(|one| one[place]).collect();
            if let (Some(one), Some(all)) = (of_rule[place], all) {
                let other = all.into_iter().all(|holds| holds);
                assert_eq!(
                    one, other,
                    "{rule}\n{explanation}\n{required:?}\n{packet:?}"
                );
                compared += 1;
                implied += usize::from(has_implied);
            }
        }
    }
    assert!(
        compared > 1000 && implied > 200 && ends > 5,
        "{compared} {implied} {ends}"
    );
}

/// Returns the expressions of a rule in the kernel's form; `None` if the rule is invalid.
fn compiled(family: Family, rule: &str) -> Option<Vec<String>> {
    let text = format!(
        "table {family} t {{ \
            set blocked {{ type ipv4_addr; }}; \
            set seen {{ type ipv4_addr; flags dynamic, timeout; }}; \
            chain web {{ }}; \
            chain c {{ {rule}; }}; \
        }}"
    );
    let script = Script::parse("rules.nft", &text).ok()?;
    let snapshot = script.ruleset().ok()?.to_snapshot(&Scope::all());
    let table = snapshot.tables().next()?;
    let rule = table.chain("c")?.rules().next()?;
    Some(rule.expressions()?.map(|one| format!("{one:?}")).collect())
}

/// A rule with its implied conditions in its text is the same rule for the kernel: the conditions are at their places,
/// and none is superfluous.
#[test]
fn implied_conditions_are_in_the_compiled_rule() {
    let mut compared = 0;
    for (family, rule) in traced_rules() {
        let parts = RuleParts::parse(family, &rule).unwrap();
        let explanation = RuleExplanation::of_parts(family, &parts);
        let mut parts = parts.parts.iter();
        let words = explanation.phrases.iter().map(|phrase| {
            if phrase.is_implied {
                condition_of(family, phrase)
            } else {
                parts.next().unwrap().words().to_owned()
            }
        });
        let words = words.collect::<Vec<_>>().join(" ");
        // These statements match in the kernel, without an expression of their own.
        let is_match = ["nat ip", "tcp option", "synproxy"]
            .iter()
            .any(|one| rule.contains(one));
        if is_match || !explanation.phrases.iter().any(|phrase| phrase.is_implied) {
            continue;
        }
        let Some(of_rule) = compiled(family, &rule) else {
            continue;
        };
        assert_eq!(Some(of_rule), compiled(family, &words), "{rule}\n{words}");
        compared += 1;
    }
    assert!(compared > 10, "{compared}");
}
