//! What is to be there, read from a text of rules.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use bstr::{BStr, ByteSlice};

use super::{Declared, Place, Wanted};
use chainwright::iptables::text::{Command, LONGEST_LINE, ParseError, Verb, words};
use chainwright::iptables::{Family, Rule, builtin, builtins};

/// How many rules are declared at most: each is looked for at every change.
const MOST_RULES: usize = 10_000;

/// Why a text cannot be declared.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TextError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl Declared {
    /// What a text as `iptables-save` writes it names, of one family: its chains, and the rules that `-A` and `-I` put into
    /// them.
    ///
    /// A rule is to be there once in its chain, among those of others. One of `-I` is made at the head of the chain, one of
    /// `-A` at its end; those of `-A` are to stand in the text's order, and from the first one on that does not, they are made
    /// anew. Counters and policies are not looked at: policies stay as they are.
    ///
    /// # Errors
    /// A line that is none of `iptables-save`'s, or another command than `-A`, `-I` at the head, and `-N`; a rule that stands
    /// twice in its chain; a table without its `COMMIT`.
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
                // Chains first: a rule may jump to one that is named behind it.
                chains: [reader.chains, reader.rules].concat(),
                second_hint: false,
            }),
        }
    }

    /// The same and what another one declares.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.chains.extend(other.chains);
        self.second_hint |= other.second_hint;
        self
    }
}

#[derive(Default)]
struct Reader {
    /// The table that the lines are in.
    table: Option<String>,
    chains: Vec<Wanted>,
    /// The names of those chains by their tables.
    named: HashMap<String, HashSet<String>>,
    rules: Vec<Wanted>,
    /// Which of those are of a chain, of either place.
    of_chain: HashMap<(String, String), Vec<usize>>,
    /// How many rules these are.
    count: usize,
}

impl Reader {
    fn line(&mut self, family: Family, line: &[u8]) -> Result<(), String> {
        let line = line.trim_ascii();
        if line.len() > LONGEST_LINE {
            return Err(format!("it has more than {LONGEST_LINE} bytes"));
        }
        match (line.first(), &self.table) {
            (None | Some(b'#'), _) => Ok(()),
            (Some(b'*'), None) => {
                let name = said(line[1..].trim_ascii().as_bstr())?;
                if builtins(&name).is_none() {
                    return Err(format!("table `{name}` not found"));
                }
                self.table = Some(name);
                Ok(())
            }
            (_, None) => Err("it stands in no table: a line like *filter is to come first".into()),
            (Some(b'*'), Some(table)) => Err(format!("table {table} has no COMMIT")),
            (Some(b':'), Some(table)) => {
                let name = line[1..].split_str(" ").next().unwrap_or_default();
                let chain = said(name.as_bstr())?;
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
        // Counters stand before the command.
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
        if let Some(cut) = command.spec.shortened.first() {
            return Err(format!("iptables would cut a text: {cut:?}"));
        }
        let chain = command.chain.ok_or("a chain is to be named")?;
        let chain = said(chain.as_bstr())?;
        let place = match command.verb {
            Verb::Append => Place::End,
            Verb::Insert(1) => Place::Head,
            Verb::NewChain => {
                self.chain(family, table, chain);
                return Ok(());
            }
            _ => {
                return Err(
                    "only -A, -I at the head of a chain, and -N say what is to be there".into(),
                );
            }
        };
        if builtin(&table, &chain).is_none() && !is_chain(chain.as_bytes().as_bstr()) {
            return Err(format!("chain {chain} is named nowhere before it"));
        }
        self.count = self.count.saturating_add(command.spec.number());
        if self.count > MOST_RULES {
            return Err(format!("more than {MOST_RULES} rules cannot be looked for"));
        }
        for rule in command.spec.rules() {
            self.rule(family, &table, &chain, place, rule)?;
        }
        Ok(())
    }

    fn chain(&mut self, family: Family, table: String, chain: String) {
        let named = self.named.entry(table.clone()).or_default();
        if named.insert(chain.clone()) {
            self.chains.push(Wanted {
                family,
                table: table.into(),
                chain: chain.into(),
                place: Place::End,
                rules: Vec::new(),
            });
        }
    }

    fn rule(
        &mut self,
        family: Family,
        table: &str,
        chain: &str,
        place: Place,
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
                return Err("the rule stands twice in its chain".into());
            }
            if known.place == place {
                of_place = Some(index);
            }
        }
        match of_place.and_then(|index| self.rules.get_mut(index)) {
            Some(known) => known.rules.push(rule),
            None => {
                of_chain.push(self.rules.len());
                self.rules.push(Wanted {
                    family,
                    table: Cow::Owned(table.to_owned()),
                    chain: Cow::Owned(chain.to_owned()),
                    place,
                    rules: vec![rule],
                });
            }
        }
        Ok(())
    }
}

/// A name as text.
fn said(name: &BStr) -> Result<String, String> {
    let text = name.to_str().map_err(|_| format!("{name:?} is no text"))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let read = Declared::of_text(Family::Ipv4, text).map_err(|error| error.to_string())?;
        let all = read.chains.iter().flat_map(|wanted| {
            let rules = wanted.rules.iter();
            let rules = rules.map(|rule| format!("{:?} {}", wanted.place, wanted.item(Some(rule))));
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
    fn what_says_not_what_is_to_be_there_is_refused() {
        for (text, why) in [
            ("-A INPUT -j DROP", "line 1: it stands in no table"),
            ("*filter\n-F\nCOMMIT", "line 2: "),
            ("*filter\n-D INPUT -j DROP\nCOMMIT", "line 2: only -A, -I"),
            ("*filter\n-I INPUT 2 -j DROP\nCOMMIT", "line 2: only -A, -I"),
            (
                "*filter\n-A INPUT -j DROP",
                "line 2: the text ends without a COMMIT",
            ),
            ("*fliter\nCOMMIT", "line 1: table `fliter` not found"),
            ("*filter\n*nat\n", "line 2: table filter has no COMMIT"),
            ("*filter\n: -\nCOMMIT", "line 2: the chain has no name"),
            (
                "*filter\n-A INPUT -j DROP\n-I INPUT -j DROP\nCOMMIT",
                "line 3: the rule stands twice",
            ),
            (
                "*filter\n-A a -j DROP\nCOMMIT",
                "line 2: chain a is named nowhere",
            ),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.starts_with(why), "{text}: {said}");
        }
    }
}
