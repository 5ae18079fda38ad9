//! Explains rules in English.
//!
//! A [`RuleExplanation`] consists of phrases: conditions and actions, in the order of the rule. A part of a rule without a
//! sentence is a phrase in the rule's own words, in nft's or iptables' language, and the explanation is then not
//! [complete](RuleExplanation::is_complete). An explanation has all conditions of the rule, and those that its statements
//! imply, such as the IP version. It does not mention that a packet can be too short for a field.
//!
//! ```
//! use chainwright::nft::Family;
//! use chainwright_trace::explain::RuleExplanation;
//!
//! let rule = RuleExplanation::of_text(Family::IP, "ip saddr 10.0.0.0/8 tcp dport { 22, 80 } counter accept")?;
//! assert_eq!(
//!     rule.to_string(),
//!     "If the IPv4 source address is in 10.0.0.0/8 and the TCP destination port is 22 or 80, the rule counts the packet, \
//!      then accepts it."
//! );
//! assert!(rule.is_complete());
//!
//! let rule = RuleExplanation::of_text(Family::IP, "jhash ip saddr mod 2 == 0 drop")?;
//! assert_eq!(
//!     rule.to_string(),
//!     "If `jhash ip saddr mod 2 == 0` matches (in nft's words), the rule drops the packet."
//! );
//! assert!(!rule.is_complete());
//! # Ok::<(), chainwright_lang::Error>(())
//! ```
//!
//! | topic | module |
//! |---|---|
//! | names of fields | `fields.rs` |
//! | conditions, statements | `condition.rs`, `statement.rs` |
//! | conditions that a statement implies | `implied.rs` |
//! | rules of iptables | `iptables.rs` |
//! | purposes of other programs' chains | `purpose.rs` |

mod condition;
mod fields;
mod implied;
#[cfg(test)]
mod inverse;
mod iptables;
mod purpose;
mod statement;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use chainwright::iptables::Rule;
use chainwright::nft::{Family, RuleRef, SnapshotTable};
use chainwright::xt;
use chainwright_lang::{MatchValue, Options, RuleEnd, RulePart, RuleParts};

use condition::{Comparison, item, listed, subject};
use fields::Column;
use implied::Protocols;
use statement::Sentence;

pub use purpose::purpose;

/// A rule in English. Its `Display` writes sentences, without the comment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RuleExplanation {
    /// Conditions and actions, in the order of the rule. An action applies if all conditions before it hold.
    pub phrases: Vec<Phrase>,
    /// The rule's comment.
    pub comment: Option<String>,
}

/// A condition or an action.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Phrase {
    /// Whether it is a condition.
    pub is_condition: bool,
    /// The text: a clause for a condition, a verb phrase for an action; or the rule's own words.
    pub text: String,
    /// The language of the rule's own words; `None` for English.
    pub language: Option<Language>,
    /// Where an action's text has `the packet` or `the packet's`.
    #[cfg_attr(feature = "serde", serde(skip))]
    packet: Option<Range<usize>>,
    #[cfg_attr(feature = "serde", serde(skip))]
    cell: Option<(Column, String)>,
    /// The condition under which the phrases after it apply.
    #[cfg_attr(feature = "serde", serde(skip))]
    then: Option<&'static str>,
    /// Whether it is a condition that the rule's language adds to the next phrase.
    #[cfg_attr(feature = "serde", serde(skip))]
    is_implied: bool,
}

/// The language of a rule's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Language {
    /// nft's language.
    Nft,
    /// iptables' options.
    Iptables,
    /// Bytecode of nf_tables.
    Bytecode,
}

/// A rule as a row of its chain's table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Row {
    /// Source addresses; empty for any. The same applies to the next fields.
    pub source: String,
    /// Destination addresses.
    pub destination: String,
    /// Protocols and ports.
    pub protocol: String,
    /// Interfaces.
    pub interface: String,
    /// Other conditions, as clauses.
    pub conditions: String,
    /// Actions.
    pub outcome: String,
}

impl Language {
    const fn words(self) -> &'static str {
        match self {
            Self::Nft => "in nft's words",
            Self::Iptables => "in iptables' words",
            Self::Bytecode => "in bytecode",
        }
    }
}

impl Phrase {
    fn new(is_condition: bool, text: impl Into<String>, language: Option<Language>) -> Self {
        Self {
            is_condition,
            text: text.into(),
            language,
            packet: None,
            cell: None,
            then: None,
            is_implied: false,
        }
    }

    /// Returns a phrase in the rule's own words.
    fn own(is_condition: bool, words: impl Into<String>, language: Language) -> Self {
        Self::new(is_condition, words, Some(language))
    }

    fn english(is_condition: bool, text: impl Into<String>) -> Self {
        Self::new(is_condition, text, None)
    }

    /// Returns a condition that the next phrase implies.
    fn implied(text: String) -> Self {
        Self {
            is_implied: true,
            ..Self::english(true, text)
        }
    }

    fn of_part(part: &RulePart) -> Self {
        let words = part.words();
        match part {
            RulePart::Match {
                fields,
                relation,
                value,
                is_flags,
                ..
            } => {
                let comparison = Comparison {
                    fields,
                    relation,
                    value,
                    is_flags: *is_flags,
                };
                match comparison.clause() {
                    Some(clause) => Self {
                        cell: comparison.cell(),
                        ..Self::english(true, clause)
                    },
                    None => Self::own(true, words, Language::Nft),
                }
            }
            RulePart::VerdictMap { fields, map, .. } => Self {
                then: Some("the verdict is continue"),
                ..match verdicts(fields, map) {
                    Some(text) => Self::english(false, text),
                    None => Self::own(false, words, Language::Nft),
                }
            },
            RulePart::Statement { end, .. } => Self {
                then: match end {
                    RuleEnd::NoEntry => Some("the map has an entry"),
                    RuleEnd::Failure => Some("that succeeded"),
                    _ => None,
                },
                ..match statement::sentence(words) {
                    Some(Sentence::Condition(text)) => Self::english(true, text),
                    Some(Sentence::Action { text, packet }) => Self {
                        packet,
                        ..Self::english(false, text)
                    },
                    None => Self::own(*end == RuleEnd::Condition, words, Language::Nft),
                }
            },
            _ => Self::own(true, words, Language::Bytecode),
        }
    }

    /// Returns the phrase with `packet` for the packet.
    fn with(&self, packet: &str) -> String {
        let Some(language) = self.language.map(Language::words) else {
            let Some(range) = self.packet.clone() else {
                return self.text.clone();
            };
            let packet = match (packet, self.text[range.clone()].ends_with("'s")) {
                ("it", true) => "its".to_owned(),
                (packet, true) => format!("{packet}'s"),
                (packet, false) => packet.to_owned(),
            };
            let (before, after) = (&self.text[..range.start], &self.text[range.end..]);
            return format!("{before}{packet}{after}");
        };
        match self.is_condition {
            true => format!("`{}` matches ({language})", self.text),
            false => format!("does `{}` ({language})", self.text),
        }
    }
}

/// Returns the sentence of a verdict map.
fn verdicts(fields: &[chainwright_lang::MatchField], map: &MatchValue) -> Option<String> {
    let subject = subject(fields)?;
    match map {
        MatchValue::Named(name) => Some(format!(
            "looks up {subject} in the map @{name} and applies the verdict there, if there is one"
        )),
        MatchValue::Set(elements) if elements.len() <= condition::MAX_VALUES => {
            let cases = elements.iter().map(|(key, verdict)| {
                let verdict = verdict.as_ref().filter(|verdict| !verdict.contains('{'))?;
                Some(match item(key)?.as_str() {
                    "*" => format!("for any other value, {verdict}"),
                    key => format!("for {key}, {verdict}"),
                })
            });
            let cases = cases.collect::<Option<Vec<_>>>()?;
            Some(format!(
                "applies a verdict by {subject}: {}",
                cases.join("; ")
            ))
        }
        _ => None,
    }
}

impl RuleExplanation {
    /// Explains a rule of nf_tables by its expressions.
    #[must_use]
    pub fn of_nft(table: &SnapshotTable<'_>, rule: &RuleRef<'_>, options: &Options) -> Self {
        let mut options = options.clone();
        options.stateless = true;
        let parts = RuleParts::read(table, rule, &options);
        Self::of_parts(table.table().family(), &parts)
    }

    /// Explains a rule in nft's language. Its constants and names may be unknown.
    ///
    /// # Errors
    /// The text is not a rule.
    pub fn of_text(family: Family, text: &str) -> Result<Self, chainwright_lang::Error> {
        RuleParts::parse(family, text).map(|parts| Self::of_parts(family, &parts))
    }

    /// Explains a rule of iptables.
    #[must_use]
    pub fn of_iptables(family: xt::Family, rule: &Rule) -> Self {
        iptables::explained(family, rule)
    }

    fn of_parts(family: Family, rule: &RuleParts) -> Self {
        let mut known = Protocols::of(family);
        let mut phrases = Vec::new();
        for part in &rule.parts {
            let has_actions = phrases.iter().any(|one: &Phrase| !one.is_condition);
            let implied = known.implied_by(part, has_actions);
            let at = if implied.is_first { 0 } else { phrases.len() };
            phrases.splice(at..at, implied.clauses.into_iter().map(Phrase::implied));
            phrases.push(Phrase::of_part(part));
        }
        Self {
            phrases,
            comment: rule.comment.clone(),
        }
    }

    /// Returns `true` if all parts of the rule are in English.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.phrases.iter().all(|phrase| phrase.language.is_none())
    }

    /// Splits the phrases before each condition that follows an action, and behind each action that can end the rule.
    fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let runs = self
            .phrases
            .chunk_by(|a, b| (a.is_condition || !b.is_condition) && a.then.is_none());
        runs.scan(None, |then, run| {
            let actions = run.partition_point(|phrase| phrase.is_condition);
            let (conditions, actions) = run.split_at(actions);
            let run = Run {
                after: *then,
                conditions,
                actions,
            };
            *then = run.actions.last().and_then(|action| action.then);
            Some(run)
        })
    }

    /// Returns the rule as a row of a table.
    #[must_use]
    pub fn row(&self) -> Row {
        let mut row = Row::default();
        let mut others = Vec::new();
        let add = |cell: &mut String, text: &str| {
            // `tcp 22` implies `tcp`.
            if text.split(' ').next() == Some(cell) {
                cell.clear();
            }
            if !cell.is_empty() {
                cell.push_str(" and ");
            }
            cell.push_str(text);
        };
        for (number, run) in self.runs().enumerate() {
            if number == 0 {
                for condition in run.conditions {
                    match &condition.cell {
                        Some((Column::Source, text)) => add(&mut row.source, text),
                        Some((Column::Destination, text)) => add(&mut row.destination, text),
                        Some((Column::Protocol, text)) => add(&mut row.protocol, text),
                        Some((Column::Interface, text)) => add(&mut row.interface, text),
                        _ => others.push(condition.with("the packet")),
                    }
                }
                // Every rule of iptables counts.
                let counts = |action: &&Phrase| action.text != COUNTS;
                let actions: Vec<_> = run.actions.iter().filter(counts).collect();
                let texts: Vec<_> = actions.iter().map(|action| action.with("it")).collect();
                row.outcome = texts.join(", then ");
            } else {
                let mut packet = "it";
                let then = if row.outcome.is_empty() {
                    ""
                } else {
                    "; then, "
                };
                row.outcome += &format!("{then}{}", run.sentence(&mut packet));
            }
        }
        if row.outcome.is_empty() {
            row.outcome = "next rule".to_owned();
        }
        row.conditions = others.join("; ");
        row
    }
}

/// The phrase of a counter.
const COUNTS: &str = "counts the packet";

/// Conditions, and the actions for which they must hold.
struct Run<'p> {
    /// The condition of the action before.
    after: Option<&'static str>,
    conditions: &'p [Phrase],
    actions: &'p [Phrase],
}

impl Run<'_> {
    /// Joins the conditions and actions. `packet` is the word for the packet, at first `the packet`.
    fn sentence(&self, packet: &mut &'static str) -> String {
        let clauses = self.conditions.iter().map(|one| one.with("the packet"));
        let clauses: Vec<_> = self
            .after
            .map(str::to_owned)
            .into_iter()
            .chain(clauses)
            .collect();
        let head = match (clauses.is_empty(), self.actions.first()) {
            (false, _) => format!("if {}, ", listed(&clauses, "and")),
            (true, Some(Phrase { packet: None, .. })) => "for every packet, ".to_owned(),
            (true, _) => {
                *packet = "every packet";
                String::new()
            }
        };
        let verbs: Vec<_> = self
            .actions
            .iter()
            .map(|action| {
                let text = action.with(packet);
                if action.packet.is_some() {
                    *packet = "it";
                }
                text
            })
            .collect();
        let tail = match verbs.is_empty() {
            true => "has no effect".to_owned(),
            false => verbs.join(", then "),
        };
        format!("{head}the rule {tail}")
    }
}

impl fmt::Display for RuleExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut packet = "the packet";
        if self.phrases.is_empty() {
            return f.write_str("The rule has no effect.");
        }
        for (number, run) in self.runs().enumerate() {
            let text = run.sentence(&mut packet);
            match number {
                0 => write!(f, "{}{}.", text[..1].to_uppercase(), &text[1..])?,
                _ => write!(f, " Then, {text}.")?,
            }
        }
        Ok(())
    }
}
