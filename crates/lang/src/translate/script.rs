//! Translates iptables-save output.

use std::collections::HashMap;
use std::fmt::Write as _;

use bstr::{BStr, BString, ByteSlice};

use super::{Untranslatable, family_word, name};
use chainwright::internal::hook_declaration;
use chainwright::iptables::text::{Command, ParseError, Verb, Word, words};
use chainwright::iptables::{Counters, builtin};
use chainwright::nft::Family as NftFamily;
use chainwright::xt::Family;

/// Tables in iptables-save format, or other input of iptables-restore, translated to a text for
/// [`Script`](crate::Script) and `nft -f`.
///
/// ```
/// use chainwright::iptables::Family;
/// use chainwright_lang::translate::Translation;
///
/// let text = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\nCOMMIT\n";
/// let translation = Translation::of(Family::Ipv4, text)?;
/// assert!(translation.untranslated.is_empty());
/// assert_eq!(
///     translation.text,
///     "table ip filter {\n\tchain INPUT {\n\t\ttype filter hook input priority 0; policy drop;\n\
///      \t\ttcp dport 22 counter accept\n\t}\n}\n"
/// );
/// # Ok::<(), chainwright_lang::translate::ParseLineError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Translation {
    /// The translation. Rules that have none are comments.
    pub text: String,
    /// Number of translated rules.
    pub rules: usize,
    /// Lines without a translation. Without them, the result may accept packets that the original rejects, or vice
    /// versa.
    pub untranslated: Vec<UntranslatedRule>,
}

/// A line without an equivalent in nft's language.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UntranslatedRule {
    /// Line number, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
    /// Reason.
    pub reason: String,
}

/// A line that is not valid input for iptables-restore.
#[derive(Clone, thiserror::Error)]
#[error("line {line}: {error}")]
#[non_exhaustive]
pub struct ParseLineError {
    /// Line number, from 1.
    pub line: usize,
    /// Error message.
    pub error: String,
}

chainwright::debug_as_message!(ParseLineError);

struct Table {
    name: String,
    chains: Vec<Chain>,
    /// Indexes of the chains by name.
    numbers: HashMap<BString, usize>,
}

struct Chain {
    name: BString,
    /// `type … hook … priority …; policy …;`; `None` for regular chains.
    hook: Option<String>,
    lines: Vec<Line>,
}

/// Line of a chain.
enum Line {
    Rule(String),
    /// Comment in place of a rule.
    UntranslatedRule(String),
    /// Other comment.
    Note(String),
}

impl Translation {
    /// Translates a text.
    ///
    /// # Errors
    /// The first line that is not valid input for iptables-restore.
    pub fn of(family: Family, text: impl AsRef<[u8]>) -> Result<Self, ParseLineError> {
        let mut reader = Reader {
            family,
            tables: Vec::new(),
            translation: Self::default(),
        };
        for (index, line) in text.as_ref().lines().enumerate() {
            let content = line.trim_ascii();
            if content.is_empty() || content.starts_with(b"#") || content == b"COMMIT" {
                continue;
            }
            reader.line(index + 1, content)?;
        }
        reader.write();
        Ok(reader.translation)
    }

    /// Translates the arguments of `iptables` for one rule. Returns an nft command for each resulting rule, because
    /// host names may have several addresses; without a verb, only the rules.
    ///
    /// ```
    /// use chainwright::iptables::Family;
    /// use chainwright_lang::translate::Translation;
    ///
    /// let typed = "-t nat -I POSTROUTING -o eth0 -j MASQUERADE";
    /// let translation = Translation::of_rule(Family::Ipv4, typed)?;
    /// assert_eq!(
    ///     translation.text,
    ///     "insert rule ip nat POSTROUTING oifname \"eth0\" counter masquerade\n"
    /// );
    /// let translation = Translation::of_rule(Family::Ipv4, "-i lo -j ACCEPT")?;
    /// assert_eq!(translation.text, "iifname \"lo\" counter accept\n");
    /// # Ok::<(), chainwright_lang::translate::ParseLineError>(())
    /// ```
    ///
    /// # Errors
    /// The arguments are not a rule, or insert it at a position other than the first or last.
    pub fn of_rule(family: Family, typed: &str) -> Result<Self, ParseLineError> {
        let wrong = |error: &dyn std::fmt::Display| ParseLineError {
            line: 1,
            error: error.to_string(),
        };
        let of_text = |error: ParseError| wrong(&error);
        let mut found = Vec::new();
        words(typed.as_bytes(), &mut found).map_err(of_text)?;
        let mut table = "filter".to_owned();
        let is_table = |word: &Word<'_>| matches!(&*word.bytes, b"-t" | b"--table");
        if let Some(at) = found.iter().position(is_table)
            && at + 1 < found.len()
        {
            table = found[at + 1].bytes.to_str_lossy().into_owned();
            found.drain(at..at + 2);
        }
        let is_verb =
            |word: &Word<'_>| matches!(&*word.bytes, b"-A" | b"--append" | b"-I" | b"--insert");
        let has_verb = found.iter().any(is_verb);
        if !has_verb {
            let mut all = Vec::new();
            words(b"-A c", &mut all).map_err(of_text)?;
            all.append(&mut found);
            found = all;
        }
        let command = Command::parse(family, &found, |_| false).map_err(of_text)?;
        let chain = command.chain.clone().unwrap_or_default();
        let nfts = |of: &[u8]| name(of.as_bstr()).map_err(|why| wrong(&why));
        let (table, chain) = (nfts(table.as_bytes())?, nfts(&chain)?);
        let family_word = NftFamily::from(family).name().unwrap_or_default();
        let head = match (&command.verb, has_verb) {
            (_, false) => String::new(),
            (Verb::Append, _) => format!("add rule {family_word} {table} {chain} "),
            (Verb::Insert(1), _) => format!("insert rule {family_word} {table} {chain} "),
            _ => {
                return Err(wrong(
                    &"only -A, and -I without a number, can be translated on their own",
                ));
            }
        };
        let mut translation = Self::default();
        for rule in command.spec.rules() {
            match super::rule(&rule, family) {
                Ok(translated) => {
                    translation.text += &format!("{head}{translated}\n");
                    translation.rules += 1;
                }
                Err(why) => {
                    translation.text += &format!("# {rule}: {why}\n");
                    translation.untranslated.push(UntranslatedRule {
                        line: 1,
                        text: rule.to_string(),
                        reason: why.to_string(),
                    });
                }
            }
        }
        Ok(translation)
    }
}

struct Reader {
    family: Family,
    tables: Vec<Table>,
    translation: Translation,
}

impl Reader {
    fn line(&mut self, line: usize, content: &[u8]) -> Result<(), ParseLineError> {
        let wrong = |error: &str| ParseLineError {
            line,
            error: error.to_owned(),
        };
        let not_read = |error: ParseError| ParseLineError {
            line,
            error: error.to_string(),
        };
        if let Some(table) = content.strip_prefix(b"*") {
            let table =
                name(table.trim_ascii().as_bstr()).map_err(|why| wrong(&why.to_string()))?;
            if self.tables.iter().any(|other| other.name == table) {
                return Err(wrong("duplicate table"));
            }
            self.tables.push(Table {
                name: table,
                chains: Vec::new(),
                numbers: HashMap::new(),
            });
            return Ok(());
        }
        let family = self.family;
        let Some(table) = self.tables.last_mut() else {
            return Err(wrong(
                "missing table: a line like `*filter` must come first",
            ));
        };
        if let Some(declared) = content.strip_prefix(b":") {
            let mut fields = declared.fields_with(char::is_whitespace);
            let (Some(chain), Some(policy)) = (fields.next(), fields.next()) else {
                return Err(wrong("expected a chain and its policy"));
            };
            let number = table.chain(family, chain.as_bstr());
            return table
                .set_policy(family, number, policy)
                .map_err(|why| wrong(&why));
        }
        let (counters, content) = counters(content);
        let mut found = Vec::new();
        words(content, &mut found).map_err(not_read)?;
        let is_chain = |name: &BStr| table.numbers.contains_key(name);
        let command = Command::parse(family, &found, is_chain).map_err(not_read)?;
        if command.for_other_family {
            return Ok(());
        }
        let mut untranslated = |why: String| {
            let text = content.to_str_lossy().into_owned();
            let comment = format!("# {}: {why}", text.replace(char::is_control, "?"));
            self.translation.untranslated.push(UntranslatedRule {
                line,
                text,
                reason: why,
            });
            comment
        };
        let chain = command.chain.as_ref();
        let chain = chain.map(|chain| table.chain(family, chain.as_bstr()));
        match (&command.verb, chain) {
            (Verb::Append | Verb::Insert(_), Some(chain)) => {
                let counters = counters.or(command.spec.counters);
                let mut place = match command.verb {
                    Verb::Insert(place) => Some(place.saturating_sub(1)),
                    _ => None,
                };
                for rule in command.spec.rules() {
                    let number = u32::try_from(self.translation.rules + 1).unwrap_or(u32::MAX);
                    let translated = name(table.chains[chain].name.as_bstr())
                        .and_then(|_| super::rule_with(&rule, family, counters, number));
                    let translated = match translated {
                        Ok(translated) => {
                            self.translation.rules += 1;
                            Line::Rule(translated)
                        }
                        Err(why) => Line::UntranslatedRule(untranslated(why.to_string())),
                    };
                    let lines = &mut table.chains[chain].lines;
                    let at = place.map_or(lines.len(), |at| place_of_rule(lines, at));
                    lines.insert(at, translated);
                    place = place.map(|place| place.saturating_add(1));
                }
            }
            (Verb::NewChain, Some(_)) => {}
            (Verb::Flush, Some(chain)) => table.chains[chain].lines.clear(),
            (Verb::Flush, None) => {
                table
                    .chains
                    .iter_mut()
                    .for_each(|chain| chain.lines.clear());
            }
            (Verb::Policy(policy), Some(chain)) => {
                let policy = policy.clone();
                table
                    .set_policy(family, chain, &policy)
                    .map_err(|why| wrong(&why))?;
            }
            (_, chain) => {
                let note = untranslated("the line refers to existing rules".to_owned());
                if let Some(chain) = chain {
                    table.chains[chain].lines.push(Line::Note(note));
                }
            }
        }
        Ok(())
    }

    fn write(&mut self) {
        let out = &mut self.translation.text;
        let family = family_word(self.family);
        for table in &self.tables {
            // Writing to a string does not fail.
            let _ = writeln!(out, "table {family} {} {{", table.name);
            for (index, chain) in table.chains.iter().enumerate() {
                if index > 0 {
                    out.push('\n');
                }
                let translated = name(chain.name.as_bstr());
                // A chain whose name has no translation becomes a comment.
                let comment = if translated.is_err() { "# " } else { "" };
                let shown = translated
                    .unwrap_or_else(|_| chain.name.to_str_lossy().replace(char::is_control, "?"));
                let _ = writeln!(out, "\t{comment}chain {shown} {{");
                let lines = chain.lines.iter().map(|line| match line {
                    Line::Rule(line) | Line::UntranslatedRule(line) | Line::Note(line) => line,
                });
                for line in chain.hook.iter().chain(lines) {
                    let _ = writeln!(out, "\t{comment}\t{line}");
                }
                let _ = writeln!(out, "\t{comment}}}");
            }
            out.push_str("}\n");
        }
    }
}

/// Returns the position of the rule with this index, or of the end, among the lines of a chain.
fn place_of_rule(lines: &[Line], number: usize) -> usize {
    let rules = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !matches!(line, Line::Note(_)));
    rules.map(|(at, _)| at).nth(number).unwrap_or(lines.len())
}

/// Splits off the counters in front of a rule: `[packets:bytes]`.
fn counters(line: &[u8]) -> (Option<Counters>, &[u8]) {
    let read = || {
        let (counters, rest) = line.strip_prefix(b"[")?.split_once_str("]")?;
        let (packets, bytes) = counters.split_once_str(":")?;
        let number = |text: &[u8]| text.to_str().ok()?.parse().ok();
        let counters = Counters {
            packets: number(packets)?,
            bytes: number(bytes)?,
        };
        Some((counters, rest.trim_ascii_start()))
    };
    match read() {
        Some((counters, rest)) => (Some(counters), rest),
        None => (None, line),
    }
}

impl Table {
    /// Returns the index of a chain, which is created if necessary.
    fn chain(&mut self, family: Family, name: &BStr) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.chains.push(Chain {
            name: name.to_owned(),
            hook: None,
            lines: Vec::new(),
        });
        let number = self.chains.len() - 1;
        self.numbers.insert(name.to_owned(), number);
        if builtin(&self.name, &name.to_str_lossy()).is_some() {
            // iptables' default policy.
            let _ = self.set_policy(family, number, b"ACCEPT");
        }
        number
    }

    fn set_policy(&mut self, family: Family, number: usize, policy: &[u8]) -> Result<(), String> {
        let chain = &mut self.chains[number];
        let policy = match policy {
            b"-" => return Ok(()),
            b"ACCEPT" => "accept",
            b"DROP" => "drop",
            other => return Err(format!("unknown policy {:?}", other.as_bstr())),
        };
        let Some(builtin) = builtin(&self.name, &chain.name.to_str_lossy()) else {
            return Err(Untranslatable::Text(chain.name.to_string()).to_string());
        };
        chain.hook = Some(hook_declaration(family, &builtin, policy));
        Ok(())
    }
}
