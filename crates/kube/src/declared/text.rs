//! Reads declared chains and rules from text.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use bstr::{BStr, ByteSlice};

use super::{Declared, InsertPosition, RequiredChain};
use chainwright::iptables::text::{Command, MAX_LINE_LENGTH, ParseError, Verb, words};
use chainwright::iptables::{Family, Rule, builtin, builtins};

/// Largest number of rules in a declaration: each is looked up at every change.
const MAX_RULES: usize = 10_000;

/// The reason why a text cannot be read as a declaration.
#[derive(thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TextError {
    /// The line number, from 1.
    pub line: usize,
    /// The error in the text.
    pub reason: String,
}

chainwright::debug_as_message!(TextError);

impl Declared {
    /// Reads a text in the format of `iptables-save`, for one family: its chains, and the rules that `-A` and `-I` add
    /// to them.
    ///
    /// Each rule must occur once in its chain, among those of other programs. A rule of `-I` is inserted at the head of
    /// the chain, a rule of `-A` appended at its end. The rules of `-A` must be in the text's order: from the first one
    /// that is out of order, they are deleted and added again. Counters and policies are ignored; policies stay
    /// unchanged.
    ///
    /// # Errors
    /// A line that is not in the format of `iptables-save`; a command other than `-A`, `-I` at the head, and `-N`; a
    /// rule that occurs twice in its chain; a table without its `COMMIT`.
    pub fn of_text(family: Family, text: impl AsRef<[u8]>) -> Result<Self, TextError> {
        let mut reader = Reader::default();
        let mut last = 0;
        for (line, text) in (1..).zip(text.as_ref().lines()) {
            let read = reader.line(family, text);
            read.map_err(|reason| TextError { line, reason })?;
            last = line;
        }
        match reader.table {
            Some(table) => Err(TextError {
                line: last,
                reason: format!("the text ends without a COMMIT for table {table}"),
            }),
            None => Ok(Self {
                // Chains first: a rule may jump to a chain that the text declares later.
                chains: [reader.chains, reader.rules].concat(),
                second_hint: false,
            }),
        }
    }

    /// Adds everything that another declaration contains.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.chains.extend(other.chains);
        self.second_hint |= other.second_hint;
        self
    }
}

#[derive(Default)]
struct Reader {
    /// The current table.
    table: Option<String>,
    chains: Vec<RequiredChain>,
    /// The names in `chains` by table.
    named: HashMap<String, HashSet<String>>,
    rules: Vec<RequiredChain>,
    /// Indexes of the entries of `rules` that belong to a chain, for either place.
    of_chain: HashMap<(String, String), Vec<usize>>,
    /// Total number of rules.
    count: usize,
}

impl Reader {
    fn line(&mut self, family: Family, line: &[u8]) -> Result<(), String> {
        let line = line.trim_ascii();
        if line.len() > MAX_LINE_LENGTH {
            return Err(format!("line has more than {MAX_LINE_LENGTH} bytes"));
        }
        match (line.first(), &self.table) {
            (None | Some(b'#'), _) => Ok(()),
            (Some(b'*'), None) => {
                let name = utf8_name(line[1..].trim_ascii().as_bstr())?;
                if builtins(&name).is_none() {
                    return Err(format!("table `{name}` not found"));
                }
                self.table = Some(name);
                Ok(())
            }
            (_, None) => Err("missing table: a line like *filter must come first".into()),
            (Some(b'*'), Some(table)) => Err(format!("table {table} has no COMMIT")),
            (Some(b':'), Some(table)) => {
                let name = line[1..].split_str(" ").next().unwrap_or_default();
                let chain = utf8_name(name.as_bstr())?;
                if chain.is_empty() {
                    return Err("the chain has no name".into());
                }
                let table = table.clone();
                if builtin(&table, &chain).is_none() {
                    self.chain(family, table, chain);
                }
                Ok(())
            }
            _ if line == b"COMMIT" => {
                self.table = None;
                Ok(())
            }
            (_, Some(table)) => {
                let table = table.clone();
                self.command(family, table, line)
            }
        }
    }

    fn command(&mut self, family: Family, table: String, line: &[u8]) -> Result<(), String> {
        // Counters precede the command.
        let line = match line.strip_prefix(b"[") {
            Some(rest) => rest.split_once_str("]").map_or(line, |(_, rest)| rest),
            None => line,
        };
        let column = |error: ParseError| error.to_string();
        let mut found = Vec::new();
        words(line, &mut found).map_err(column)?;
        let named = self.named.get(&table);
        let is_chain = |name: &BStr| {
            let name = name.to_str().ok();
            name.is_some_and(|name| named.is_some_and(|named| named.contains(name)))
        };
        let command = Command::parse(family, &found, is_chain).map_err(column)?;
        if command.for_other_family {
            return Ok(());
        }
        if let Some(cut) = command.spec.truncated.first() {
            return Err(format!("iptables would truncate a text: {cut:?}"));
        }
        let chain = command.chain.ok_or("missing chain name")?;
        let chain = utf8_name(chain.as_bstr())?;
        let position = match command.verb {
            Verb::Append => InsertPosition::End,
            Verb::Insert(1) => InsertPosition::Head,
            Verb::NewChain => {
                self.chain(family, table, chain);
                return Ok(());
            }
            _ => {
                return Err("only -A, -N, and -I at the head of a chain are supported".into());
            }
        };
        if builtin(&table, &chain).is_none() && !is_chain(chain.as_bytes().as_bstr()) {
            return Err(format!("chain {chain} is not declared before this line"));
        }
        self.count = self.count.saturating_add(command.spec.number());
        if self.count > MAX_RULES {
            return Err(format!("more than {MAX_RULES} rules"));
        }
        for rule in command.spec.rules() {
            self.rule(family, &table, &chain, position, rule)?;
        }
        Ok(())
    }

    fn chain(&mut self, family: Family, table: String, chain: String) {
        let named = self.named.entry(table.clone()).or_default();
        if named.insert(chain.clone()) {
            self.chains.push(RequiredChain {
                family,
                table: table.into(),
                chain: chain.into(),
                position: InsertPosition::End,
                rules: Vec::new(),
            });
        }
    }

    fn rule(
        &mut self,
        family: Family,
        table: &str,
        chain: &str,
        position: InsertPosition,
        rule: Rule,
    ) -> Result<(), String> {
        let of_chain = (table.to_owned(), chain.to_owned());
        let of_chain = self.of_chain.entry(of_chain).or_default();
        let mut of_place = None;
        for &index in &*of_chain {
            let Some(known) = self.rules.get(index) else {
                continue;
            };
            if known.rules.iter().any(|known| known.means_the_same(&rule)) {
                return Err("duplicate rule in its chain".into());
            }
            if known.position == position {
                of_place = Some(index);
            }
        }
        match of_place.and_then(|index| self.rules.get_mut(index)) {
            Some(known) => known.rules.push(rule),
            None => {
                of_chain.push(self.rules.len());
                self.rules.push(RequiredChain {
                    family,
                    table: Cow::Owned(table.to_owned()),
                    chain: Cow::Owned(chain.to_owned()),
                    position,
                    rules: vec![rule],
                });
            }
        }
        Ok(())
    }
}

/// Converts a name to text.
fn utf8_name(name: &BStr) -> Result<String, String> {
    let text = name
        .to_str()
        .map_err(|_| format!("{name:?} is not valid UTF-8"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let read = Declared::of_text(Family::Ipv4, text).map_err(|error| error.to_string())?;
        let all = read.chains.iter().flat_map(|wanted| {
            let rules = wanted.rules.iter();
            let rules =
                rules.map(|rule| format!("{:?} {}", wanted.position, wanted.item(Some(rule))));
            let none = wanted
                .rules
                .is_empty()
                .then(|| wanted.item(None).to_string());
            none.into_iter().chain(rules).collect::<Vec<_>>()
        });
        Ok(all.collect())
    }

    #[test]
    fn chains_come_before_rules() {
        let text = "# by hand\n*filter\n:INPUT DROP [0:0]\n:a - [0:0]\n-N b\n-A INPUT -j a\n[1:2] -A a -s \
                    192.0.2.1,192.0.2.2 -j b\n-I INPUT -j b\nCOMMIT\n";
        assert_eq!(
            read(text).unwrap(),
            [
                "ip filter: chain a",
                "ip filter: chain b",
                "End ip filter: -A INPUT -j a",
                "End ip filter: -A a -s 192.0.2.1/32 -j b",
                "End ip filter: -A a -s 192.0.2.2/32 -j b",
                "Head ip filter: -A INPUT -j b",
            ]
        );
    }

    #[test]
    fn invalid_declarations_are_rejected() {
        for (text, why) in [
            ("-A INPUT -j DROP", "line 1: missing table"),
            ("*filter\n-F\nCOMMIT", "line 2: "),
            (
                "*filter\n-D INPUT -j DROP\nCOMMIT",
                "line 2: only -A, -N, and -I",
            ),
            (
                "*filter\n-I INPUT 2 -j DROP\nCOMMIT",
                "line 2: only -A, -N, and -I",
            ),
            (
                "*filter\n-A INPUT -j DROP",
                "line 2: the text ends without a COMMIT",
            ),
            ("*fliter\nCOMMIT", "line 1: table `fliter` not found"),
            ("*filter\n*nat\n", "line 2: table filter has no COMMIT"),
            ("*filter\n: -\nCOMMIT", "line 2: the chain has no name"),
            (
                "*filter\n-A INPUT -j DROP\n-I INPUT -j DROP\nCOMMIT",
                "line 3: duplicate rule",
            ),
            (
                "*filter\n-A a -j DROP\nCOMMIT",
                "line 2: chain a is not declared",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }
}
