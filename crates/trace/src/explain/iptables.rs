//! Rules of iptables: translated to nft's language as a whole, or else part by part.

use chainwright::iptables::{Rule, Target};
use chainwright::nft::Family;
use chainwright::xt::{self, Match};
use chainwright_lang::{RuleParts, translate};

use super::{COUNTS, Language, Phrase, RuleExplanation};

/// Translates a rule, and explains the translation; `None` if it has none, or none in English.
fn translated(family: xt::Family, rule: &Rule) -> Option<Vec<Phrase>> {
    let text = translate::rule(rule, family).ok()?;
    let family = Family::from(family);
    let parts = RuleParts::parse(family, &text).ok()?;
    let explained = RuleExplanation::of_parts(family, &parts);
    explained.is_complete().then_some(explained.phrases)
}

pub(super) fn explained(family: xt::Family, rule: &Rule) -> RuleExplanation {
    let comment = rule.matches.iter().rev().find_map(|one| match one {
        Match::Comment(comment) => Some(String::from_utf8_lossy(comment.as_bytes()).into_owned()),
        _ => None,
    });
    let mut phrases = translated(family, rule).unwrap_or_else(|| by_parts(family, rule));
    // Every rule of iptables counts its packets.
    if rule.target != Target::None {
        phrases.retain(|phrase| phrase.text != COUNTS);
    }
    RuleExplanation { phrases, comment }
}

/// Explains each part of a rule.
fn by_parts(family: xt::Family, rule: &Rule) -> Vec<Phrase> {
    let mut phrases = Vec::new();
    let add = |phrases: &mut Vec<Phrase>, part: Rule, is_condition| {
        let found = translated(family, &part).unwrap_or_else(|| {
            // The protocol of an extension has a phrase of its own.
            let is_header = part.matches.is_empty() && part.target == Target::None;
            let words = Rule {
                protocol: part.protocol.filter(|_| is_header),
                ..part
            };
            vec![Phrase::own(
                is_condition,
                words.to_string(),
                Language::Iptables,
            )]
        });
        for phrase in found {
            if phrase.text != COUNTS && !phrases.contains(&phrase) {
                phrases.push(phrase);
            }
        }
    };
    let header = Rule {
        matches: Vec::new(),
        target: Target::None,
        ..rule.clone()
    };
    if header != Rule::default() {
        add(&mut phrases, header, true);
    }
    // Extensions depend on the protocol.
    let bare = Rule {
        protocol: rule.protocol,
        ..Rule::default()
    };
    for one in &rule.matches {
        if !matches!(one, Match::Comment(_)) {
            add(&mut phrases, bare.clone().with(one.clone()), true);
        }
    }
    if rule.target != Target::None {
        let target = rule.target.clone();
        add(&mut phrases, Rule { target, ..bare }, false);
    }
    phrases
}
