//! Conditions in English.

use chainwright_lang::{MatchField, MatchValue};

use super::fields::{self, Column};

/// Maximum number of values that a sentence lists.
pub(super) const MAX_VALUES: usize = 32;

/// A comparison of fields with a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comparison<'p> {
    pub(super) fields: &'p [MatchField],
    pub(super) relation: &'p str,
    pub(super) value: &'p MatchValue,
    pub(super) is_flags: bool,
}

/// Joins words: `a, b or c`.
pub(super) fn listed<T: AsRef<str>>(words: &[T], last: &str) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match &words[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., tail] => format!("{} {last} {tail}", head.join(", ")),
    }
}

/// Returns the subject of a condition: `the source address`; `None` if a field has no name.
pub(super) fn subject(fields: &[MatchField]) -> Option<String> {
    let one = |field: &MatchField| {
        let name = fields::name(&field.name)?;
        Some(match &field.mask {
            Some(mask) if mask.contains(' ') => format!("{name} & ({mask})"),
            Some(mask) => format!("{name} & {mask}"),
            None => name.to_owned(),
        })
    };
    let all = fields.iter().map(one).collect::<Option<Vec<_>>>()?;
    Some(match &all[..] {
        [one] => one.clone(),
        _ => format!("the combination of {}", listed(&all, "and")),
    })
}

/// Returns a value in a list; `None` if it has no form there.
pub(super) fn item(value: &MatchValue) -> Option<String> {
    Some(match value {
        MatchValue::One(one) | MatchValue::Prefix(one) => one.clone(),
        MatchValue::Range(from, to) => format!("{from}-{to}"),
        MatchValue::Beginning(text) => format!("\"{text}*\""),
        MatchValue::Fields(parts) => {
            let parts = parts.iter().map(item).collect::<Option<Vec<_>>>()?;
            format!("({})", parts.join(", "))
        }
        _ => return None,
    })
}

/// Returns the items of an anonymous set, if there are few.
fn items(elements: &[(MatchValue, Option<String>)]) -> Option<Vec<String>> {
    let is_few = !elements.is_empty() && elements.len() <= MAX_VALUES;
    let items = elements.iter().map(|(value, data)| match data {
        None if *value != MatchValue::One("*".into()) => item(value),
        _ => None,
    });
    items.collect::<Option<Vec<_>>>().filter(|_| is_few)
}

impl Comparison<'_> {
    /// Returns the condition as a clause: `the source address is in 10.0.0.0/8`; `None` if it has no sentence.
    pub(super) fn clause(&self) -> Option<String> {
        if let Some(chance) = self.chance() {
            return Some(chance);
        }
        let mut subject = subject(self.fields)?;
        // `-p tcp -m tcp` in nft's language.
        if self.relation == ">="
            && *self.value == MatchValue::One("0".into())
            && let Some(port) = subject
                .strip_prefix("the ")
                .filter(|name| name.ends_with(" port"))
        {
            return Some(format!("the packet has a {port}"));
        }
        let is_plural =
            matches!(self.fields, [field] if ["tcp flags", "ct label"].contains(&&*field.name));
        // Exactly one state holds, so it is a value rather than a list of flags.
        let is_state =
            matches!(self.fields, [field] if field.name == "ct state" && field.mask.is_none());
        let is_flags = self.is_flags && !is_state;
        let is = match self.relation {
            "" | "==" => Some(true),
            "!=" => Some(false),
            "!" if is_state => Some(false),
            _ => None,
        };
        let either = |yes: &'static str, no: &'static str| Some(if is? { yes } else { no });
        let predicate = match self.value {
            MatchValue::One(flag) if is_flags => match self.relation {
                "!" => format!("does not include {flag}"),
                _ => format!("includes {flag}"),
            },
            MatchValue::Flags(flags) if is_flags => match (self.relation, &flags[..]) {
                ("!", [flag]) => format!("does not include {flag}"),
                (_, [flag]) => format!("includes {flag}"),
                ("!", _) => format!("includes none of {}", listed(flags, "and")),
                _ => format!("includes any of {}", listed(flags, "and")),
            },
            MatchValue::Flags(states) if is_state => match is? {
                false if states.len() == 1 => format!("is not {}", states[0]),
                true => format!("is {}", listed(states, "or")),
                false => format!("is neither {}", listed(states, "nor")),
            },
            MatchValue::One(value) => {
                let words = match self.relation {
                    "<" => "is less than",
                    "<=" => "is at most",
                    ">" => "is greater than",
                    ">=" => "is at least",
                    _ => either("is", "is not")?,
                };
                format!("{words} {value}")
            }
            MatchValue::Prefix(prefix) => format!("{} {prefix}", either("is in", "is not in")?),
            MatchValue::Range(from, to) => {
                format!("{} {from} to {to}", either("is from", "is not from")?)
            }
            MatchValue::Beginning(text) => {
                let words = either("begins with", "does not begin with")?;
                format!("{words} \"{text}\"")
            }
            MatchValue::Named(set) => {
                format!("{} @{set}", either("is in the set", "is not in the set")?)
            }
            MatchValue::Masked(flags, of) => {
                subject = format!("{subject} & {of}");
                format!("{} {flags}", either("is", "is not")?)
            }
            MatchValue::Set(elements) => {
                let items = items(elements)?;
                let words = either("is one of", "is none of")?;
                format!("{words} {}", listed(&items, either("or", "and")?))
            }
            MatchValue::Fields(_) => {
                format!("{} {}", either("is", "is not")?, item(self.value)?)
            }
            _ => return None,
        };
        let predicate = match (is_plural, predicate.split_once(' ')?) {
            (true, ("is", rest)) => format!("are {rest}"),
            (true, ("does", rest)) => format!("do {rest}"),
            (true, ("includes", rest)) => format!("include {rest}"),
            _ => predicate,
        };
        Some(format!("{subject} {predicate}"))
    }

    /// Returns the sentence of a random choice.
    fn chance(&self) -> Option<String> {
        let [MatchField { name, mask, .. }] = self.fields else {
            return None;
        };
        let MatchValue::One(limit) = self.value else {
            return None;
        };
        let count = match self.relation {
            "<" => limit.parse::<f64>().ok()?,
            "<=" => limit.parse::<f64>().ok()? + 1.0,
            _ => return None,
        };
        let (of, mask) = match (name.as_str(), mask.as_deref()) {
            ("meta random", Some(mask @ "2147483647")) => (2_147_483_648.0, format!(" & {mask}")),
            ("meta random", None) => (4_294_967_296.0, String::new()),
            _ => return None,
        };
        let (percent, relation) = (100.0 * count / of, self.relation);
        Some(format!(
            "a random choice succeeds, with a probability of {percent:.2} % (`{name}{mask} {relation} {limit}`)"
        ))
    }

    /// Returns the column of a chain's table, and the text of the cell; `None` if the condition has no cell.
    pub(super) fn cell(&self) -> Option<(Column, String)> {
        let [
            MatchField {
                name, mask: None, ..
            },
        ] = self.fields
        else {
            return None;
        };
        let (column, prefix) = Column::of(name);
        if column == Column::Other || self.is_flags {
            return None;
        }
        let ports = name.strip_suffix(" sport");
        if let (">=", MatchValue::One(zero), Some(protocol)) = (self.relation, self.value, ports)
            && zero == "0"
        {
            return Some((column, protocol.to_owned()));
        }
        let text = match self.value {
            MatchValue::Set(elements) => items(elements)?.join(", "),
            MatchValue::Named(set) => format!("@{set}"),
            value => item(value)?,
        };
        let many = matches!(self.value, MatchValue::Set(elements) if elements.len() > 1);
        let relation = match (self.relation, many) {
            ("" | "==", _) => "",
            ("!=", false) => "not ",
            ("!=", true) => "none of ",
            ("<", _) => "< ",
            ("<=", _) => "<= ",
            (">", _) => "> ",
            (">=", _) => ">= ",
            _ => return None,
        };
        // Packets of the other IP version do not match, either.
        let is_clear = relation.is_empty() && !matches!(self.value, MatchValue::Named(_));
        let version = match name.split(' ').next() {
            _ if is_clear => "",
            Some("ip") => "IPv4 ",
            Some("ip6") => "IPv6 ",
            _ => "",
        };
        Some((column, format!("{version}{prefix}{relation}{text}")))
    }
}
