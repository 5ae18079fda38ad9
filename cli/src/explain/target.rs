//! What to explain.

use chainwright_trace::graph::Table;

/// What to explain.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The text of a rule.
    Rule(String),
    /// A service: `NAMESPACE/NAME` or `NAMESPACE/NAME:PORT`.
    Service(String),
    Chain(ChainTarget),
}

/// A chain, or a rule of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChainTarget {
    pub(super) family: Option<String>,
    pub(super) table: Option<String>,
    pub(super) chain: String,
    pub(super) rule: Option<RuleName>,
}

/// A rule in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleName {
    /// From 1.
    Number(usize),
    Handle(u64),
}

impl Target {
    pub(super) fn parse(words: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let is_text = |word: &str| word.contains(char::is_whitespace) || word.starts_with('-');
        if let [word] = words[..]
            && let Some(service) = word.strip_prefix("svc/")
        {
            return match service.split('/').count() {
                2 => Ok(Self::Service(service.to_owned())),
                _ => Err(format!(
                    "{word:?}: expected svc/NAMESPACE/NAME or svc/NAMESPACE/NAME:PORT"
                )),
            };
        }
        if words.iter().any(|word| is_text(word)) {
            return Ok(Self::Rule(words.join(" ")));
        }
        let handle = |text: &str| {
            let wrong = || format!("{text:?} is not a handle");
            text.parse().map(RuleName::Handle).map_err(|_| wrong())
        };
        let (names, rule) = match words[..] {
            [ref names @ .., "handle", number] if !names.is_empty() => {
                (names, Some(handle(number)?))
            }
            [ref names @ .., "rule", number] if !names.is_empty() => {
                let wrong = |_| format!("{number:?} is not the number of a rule");
                (
                    names,
                    Some(RuleName::Number(number.parse().map_err(wrong)?)),
                )
            }
            [ref names @ .., last] if !names.is_empty() => {
                match (last.strip_prefix('#'), last.parse()) {
                    (Some(number), _) => (names, Some(handle(number)?)),
                    (None, Ok(number)) => (names, Some(RuleName::Number(number))),
                    (None, Err(_)) => (&words[..], None),
                }
            }
            _ => (&words[..], None),
        };
        let (family, table, chain) = match *names {
            [chain] => (None, None, chain),
            [table, chain] => (None, Some(table), chain),
            [family, table, chain] => (Some(family), Some(table), chain),
            _ => {
                return Err(
                    "expected [FAMILY] [TABLE] CHAIN [NUMBER], a service, or the text of a rule as one \
                     argument, in quotation marks"
                        .to_owned(),
                );
            }
        };
        Ok(Self::Chain(ChainTarget {
            family: family.map(str::to_owned),
            table: table.map(str::to_owned),
            chain: chain.to_owned(),
            rule,
        }))
    }
}

impl ChainTarget {
    /// Returns `true` if the chain may be in this table.
    pub(super) fn admits(&self, table: &Table) -> bool {
        let is_family = |family: &String| table.family.to_string() == *family;
        let is_name = |name: &String| table.name == name.as_bytes();
        self.family.as_ref().is_none_or(is_family) && self.table.as_ref().is_none_or(is_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        let parse = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            Target::parse(&words)
        };
        let chain = |family: &str, table: &str, chain: &str, rule| {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            Ok(Target::Chain(ChainTarget {
                family: some(family),
                table: some(table),
                chain: chain.to_owned(),
                rule,
            }))
        };
        let (number, handle) = (RuleName::Number(3), RuleName::Handle(7));
        assert_eq!(parse("INPUT"), chain("", "", "INPUT", None));
        assert_eq!(parse("nat INPUT"), chain("", "nat", "INPUT", None));
        assert_eq!(parse("INPUT 3"), chain("", "", "INPUT", Some(number)));
        assert_eq!(parse("INPUT rule 3"), chain("", "", "INPUT", Some(number)));
        assert_eq!(
            parse("ip nat INPUT handle 7"),
            chain("ip", "nat", "INPUT", Some(handle))
        );
        assert_eq!(
            parse("nat INPUT #7"),
            chain("", "nat", "INPUT", Some(handle))
        );
        assert_eq!(parse("3"), chain("", "", "3", None));
        assert_eq!(parse("svc/a/b:c"), Ok(Target::Service("a/b:c".into())));
        assert_eq!(
            parse("-s 10.0.0.1 -j DROP"),
            Ok(Target::Rule("-s 10.0.0.1 -j DROP".into()))
        );
        let one = Target::parse(&["tcp dport 22 accept".to_owned()]);
        assert_eq!(one, Ok(Target::Rule("tcp dport 22 accept".into())));
        for wrong in ["svc/web", "a b c d", "INPUT handle x", "INPUT #x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
