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

/// Returns the predicate of a value that is one of these, or none of them: `is 22 or 80`, `is neither 22 nor 80`.
fn any_of<T: AsRef<str>>(values: &[T], verb: &str, is: bool) -> String {
    let (one, rest) = verb.split_once(' ').unwrap_or((verb, ""));
    let between = if rest.is_empty() { "" } else { " " };
    match (is, values) {
        (true, _) => format!("{verb} {}", listed(values, "or")),
        (false, [value]) => format!("{one} not{between}{rest} {}", value.as_ref()),
        (false, _) => format!("{one}{between}{rest} neither {}", listed(values, "nor")),
    }
}

/// Returns `true` for a number with exactly one bit.
fn is_one_bit(number: &str) -> bool {
    let parsed = match number.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => number.parse(),
    };
    parsed.is_ok_and(|number| number.is_power_of_two())
}

/// Returns a time of day that is a number of seconds as hours and minutes; any other value unchanged.
fn time(value: &str) -> String {
    match value.parse::<u32>() {
        Ok(seconds) if seconds <= 24 * 60 * 60 => {
            let (minutes, seconds) = (seconds / 60, seconds % 60);
            let time = format!("{:02}:{:02}", minutes / 60, minutes % 60);
            match seconds {
                0 => format!("{time} UTC"),
                seconds => format!("{time}:{seconds:02} UTC"),
            }
        }
        _ => value.to_owned(),
    }
}

impl Comparison<'_> {
    /// Returns the sentence of a comparison with yes or no: `the socket is transparent`.
    fn yes_or_no(&self, field: &str) -> Option<String> {
        let MatchValue::One(value) = self.value else {
            return None;
        };
        let is = match (value.as_str(), self.relation) {
            ("1" | "exists", "" | "==") => true,
            ("0" | "missing", "" | "==") => false,
            _ => return None,
        };
        let not = if is { "" } else { "not " };
        Some(match field {
            "socket transparent" => format!("the socket is {not}transparent"),
            "socket wildcard" => format!("the socket is {not}bound to all addresses"),
            field if field.starts_with("fib ") => {
                let route = fields::name(field)?.strip_prefix("the ")?;
                format!("there is {} {route}", if is { "a" } else { "no" })
            }
            _ => return None,
        })
    }

    /// Returns the condition as a clause: `the source address is in 10.0.0.0/8`; `None` if it has no sentence.
    pub(super) fn clause(&self) -> Option<String> {
        if let Some(chance) = self.chance() {
            return Some(chance);
        }
        let field = match self.fields {
            [MatchField { name, mask, .. }] => (name.as_str(), mask.is_some()),
            _ => ("", false),
        };
        if let Some(clause) = self.yes_or_no(field.0) {
            return Some(clause);
        }
        let mut subject = subject(self.fields)?;
        // `-p tcp -m tcp` in nft's language.
        if self.relation == ">="
            && *self.value == MatchValue::One("0".into())
            && let Some((protocol, _)) = subject
                .strip_prefix("the ")
                .and_then(|name| name.split_once(' '))
                .filter(|_| subject.ends_with(" port"))
        {
            return Some(format!("the protocol is {protocol}"));
        }
        let is_plural = matches!(field.0, "tcp flags" | "ct label");
        let is_time = matches!(field.0, "meta time" | "meta hour");
        // Exactly one state holds, so it is a value rather than a list of flags.
        let is_state = field == ("ct state", false);
        let is_flags = self.is_flags && !is_state;
        // One of several bits is enough. The number of a label is that of its bit.
        if self.is_flags
            && field.0 != "ct label"
            && let MatchValue::One(value) = self.value
            && value.starts_with(|c: char| c.is_ascii_digit())
            && !is_one_bit(value)
        {
            return None;
        }
        let is = match self.relation {
            "" | "==" => Some(true),
            "!=" => Some(false),
            "!" if is_state => Some(false),
            _ => None,
        };
        let either = |yes: &'static str, no: &'static str| Some(if is? { yes } else { no });
        let shown = |value: &String| match is_time {
            true => time(value),
            false => value.clone(),
        };
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
            // With another operator, several states are compared as one value, which no packet has.
            MatchValue::Flags(states)
                if is_state && (states.len() == 1 || matches!(self.relation, "" | "!")) =>
            {
                any_of(states, "is", is?)
            }
            MatchValue::One(value) => {
                let words = match (self.relation, is_time) {
                    ("<", false) => "is less than",
                    ("<=", false) => "is at most",
                    (">", false) => "is greater than",
                    (">=", false) => "is at least",
                    ("<", true) => "is before",
                    ("<=", true) => "is not after",
                    (">", true) => "is after",
                    (">=", true) => "is not before",
                    _ => either("is", "is not")?,
                };
                format!("{words} {}", shown(value))
            }
            MatchValue::Prefix(prefix) => format!("{} {prefix}", either("is in", "is not in")?),
            MatchValue::Range(from, to) => {
                let (from, to) = (shown(from), shown(to));
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
                let has_prefix = elements
                    .iter()
                    .any(|(key, _)| matches!(key, MatchValue::Prefix(_)));
                any_of(&items, if has_prefix { "is in" } else { "is" }, is?)
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
        let (of, mask) = match (name.as_str(), mask.as_deref()) {
            ("meta random", Some(mask @ "2147483647")) => (2_147_483_648.0, format!(" & {mask}")),
            ("meta random", None) => (4_294_967_296.0, String::new()),
            _ => return None,
        };
        let relation = self.relation;
        let bound = limit.parse::<f64>().ok()?;
        let count = match relation {
            "<" => bound,
            "<=" => bound + 1.0,
            ">" => of - bound - 1.0,
            ">=" => of - bound,
            _ => return None,
        };
        let percent = 100.0 * count / of;
        // Two digits, however small it is.
        let digits = match percent {
            0.0..0.1 if percent > 0.0 => 1 - percent.log10().floor() as i32,
            _ => 2,
        };
        let digits = usize::try_from(digits).unwrap_or(2);
        Some(format!(
            "a random choice succeeds, with a probability of {percent:.digits$} % (`{name}{mask} {relation} {limit}`)"
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
