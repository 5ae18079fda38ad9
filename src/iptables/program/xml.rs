//! `iptables-xml`: converts the text of `iptables-save` to XML.

use std::fs::File;
use std::io::{Read, Write};

use bstr::{BString, ByteSlice};

use super::Program;
use super::error::{ProgramError, Status};
use crate::iptables::text::{Word, counters_before, read, words};

/// The options of rules that belong to no extension, with the names of their elements.
const MAIN: [(&[u8], &str); 14] = [
    (b"-s", "s"),
    (b"--source", "s"),
    (b"-d", "d"),
    (b"--destination", "d"),
    (b"-p", "p"),
    (b"--protocol", "p"),
    (b"-i", "i"),
    (b"--in-interface", "i"),
    (b"-o", "o"),
    (b"--out-interface", "o"),
    (b"-f", "f"),
    (b"--fragment", "f"),
    (b"-c", "c"),
    (b"--set-counters", "c"),
];

/// Targets that end a rule: `-c` adds no actions to them.
const ENDS: [&[u8]; 4] = [b"ACCEPT", b"DROP", b"RETURN", b"QUEUE"];

/// A chain of the current table, and whether it has content.
struct Chain {
    name: BString,
    attributes: String,
    used: bool,
}

#[derive(Default)]
struct Xml {
    text: BString,
    combine: bool,
    table: Option<BString>,
    chains: Vec<Chain>,
    /// The currently open chain.
    open: Option<BString>,
    /// The conditions of the currently open rule, and whether other actions may be added to it.
    rule: Option<(BString, bool)>,
}

impl Program {
    pub(super) fn xml(
        &self,
        given: &[BString],
        input: &mut dyn Read,
        output: &mut dyn Write,
        notes: &mut BString,
    ) -> Result<(), ProgramError> {
        let mut xml = Xml::default();
        let mut path = None;
        for word in given {
            match word.as_bytes() {
                b"-c" | b"--combine" => xml.combine = true,
                b"-v" | b"--verbose" => notes.extend_from_slice(b"xptables-xml\n"),
                b"-h" | b"--help" => {
                    let usage = "Usage: iptables-xml [-c] [-v] [-h] [file]\n\t   [ --combine ]\n\t   [ \
                                 --verbose ]\n\t   [ --help ]\n";
                    return Err(ProgramError::bare(Status::Other, usage));
                }
                [b'-', b'-', ..] => notes.extend_from_slice(
                    format!("{}: unrecognized option '{word}'\n", self.name).as_bytes(),
                ),
                [b'-', letters @ ..] if !letters.is_empty() => notes.extend_from_slice(
                    format!("{}: invalid option -- '{}'\n", self.name, letters.as_bstr())
                        .as_bytes(),
                ),
                _ if path.is_some() => {
                    let message = "Unknown arguments found on commandline";
                    return Err(ProgramError::bare(Status::Other, message));
                }
                _ => path = Some(word),
            }
        }
        let text = match path {
            None => read(input),
            Some(path) => {
                let opened = path.to_path().map_err(std::io::Error::other);
                let opened = opened.and_then(File::open).map_err(|error| {
                    let why = error.to_string();
                    let why = why.split(" (os error").next().unwrap_or_default();
                    ProgramError::bare(Status::Other, format!("Can't open {path}: {why}"))
                })?;
                read(opened)
            }
        };
        let text = text.map_err(|error| ProgramError::other(error.to_string()))?;
        xml.push("<iptables-rules version=\"1.0\">\n");
        let result = xml.lines(&text);
        output
            .write_all(&xml.text)
            .map_err(ProgramError::of_output)
            .and(result)
    }
}

impl Xml {
    fn push(&mut self, text: impl AsRef<[u8]>) {
        self.text.extend_from_slice(text.as_ref());
    }

    fn lines(&mut self, text: &[u8]) -> Result<(), ProgramError> {
        let mut number = 0;
        for line in text.lines() {
            number += 1;
            let failed = || ProgramError::plain(&format!("line {number} failed"));
            match line.first() {
                None => {}
                Some(b'#') => {
                    // Two dashes would end a comment.
                    let comment = escaped(line).replace("-", "*-");
                    self.push("<!-- ");
                    self.push(comment);
                    self.push(" -->\n");
                }
                Some(b'*') if self.table.is_none() => {
                    let name = line[1..].trim_ascii();
                    self.push("  <table name=\"");
                    self.push(escaped(name));
                    self.push("\" >\n");
                    self.table = Some(name.into());
                }
                _ if self.table.is_none() => return Err(failed()),
                _ if line.trim_ascii_end() == b"COMMIT" => self.commit(),
                Some(b':') => self.declare(&line[1..], number)?,
                _ => self.rule(line, number)?,
            }
        }
        if self.table.is_some() {
            let end = number + 1;
            return Err(ProgramError::plain(&format!(
                "COMMIT expected at line {end}"
            )));
        }
        self.push("</iptables-rules>\n");
        Ok(())
    }

    fn commit(&mut self) {
        self.close_chain();
        for chain in std::mem::take(&mut self.chains) {
            if !chain.used {
                self.push(format!(
                    "    <chain name=\"{}\"{} />\n",
                    attribute(&chain.name),
                    chain.attributes
                ));
            }
        }
        self.push("  </table>\n");
        self.table = None;
    }

    fn declare(&mut self, line: &[u8], number: usize) -> Result<(), ProgramError> {
        let mut fields = line.fields_with(char::is_whitespace);
        let fault = |what: &str| {
            let message = format!("iptables-xml: line {number} {what} invalid");
            ProgramError::parameter(message)
                .followed_by(&format!("Error occurred at line: {number}"))
        };
        let name = fields.next().ok_or_else(|| fault("chain name"))?;
        let policy = fields.next().ok_or_else(|| fault("policy"))?;
        let counters = fields.next().and_then(|word| {
            let inner = word.strip_prefix(b"[")?.strip_suffix(b"]")?;
            let (packets, bytes) = inner.split_once_str(":")?;
            let digits = |text: &[u8]| text.to_str().ok()?.parse::<u64>().ok();
            Some((digits(packets)?, digits(bytes)?))
        });
        let (packets, bytes) = counters.unwrap_or_default();
        let policy = match policy {
            b"-" => String::new(),
            policy => format!(" policy=\"{}\"", attribute(policy)),
        };
        self.chains.push(Chain {
            name: name.into(),
            attributes: format!("{policy} packet-count=\"{packets}\" byte-count=\"{bytes}\""),
            used: false,
        });
        Ok(())
    }

    fn close_rule(&mut self) {
        if self.rule.take().is_some() {
            self.push("       </actions>\n\n      </rule>\n\n");
        }
    }

    fn close_chain(&mut self) {
        self.close_rule();
        if self.open.take().is_some() {
            self.push("    </chain>\n");
        }
    }

    fn rule(&mut self, line: &[u8], number: usize) -> Result<(), ProgramError> {
        let mut found = Vec::new();
        let of_parse_error = |error| ProgramError::of_parse_error(&error);
        words(line, &mut found).map_err(of_parse_error)?;
        let (counters, rest) = counters_before(&found).map_err(of_parse_error)?;
        let [verb, chain, rest @ ..] = rest else {
            return Err(ProgramError::plain(&format!("line {number} failed")));
        };
        if !matches!(&*verb.bytes, b"-A" | b"--append") {
            let message = format!("line {number} failed - no chain found");
            return Err(ProgramError::plain(&message));
        }
        let target = rest
            .iter()
            .position(|word| matches!(&*word.bytes, b"-j" | b"--jump" | b"-g" | b"--goto"));
        let (conditions, actions) = rest.split_at(target.unwrap_or(rest.len()));
        let conditions = self.options(conditions, "match", "        ");
        let ends = |word: &Word<'_>| {
            let name = word.bytes.as_bstr();
            ENDS.contains(&name.as_bytes()) || self.chains.iter().any(|chain| chain.name == name)
        };
        let goes_on = actions.get(1).is_some_and(|word| !ends(word));
        let same_chain = self
            .open
            .as_ref()
            .is_some_and(|open| open == chain.bytes.as_bstr());
        let is_call = actions.get(1).is_some_and(|word| {
            self.chains
                .iter()
                .any(|chain| chain.name == word.bytes.as_bstr())
        });
        let added = self.combine
            && same_chain
            && !is_call
            && !conditions.is_empty()
            && self.rule.as_ref() == Some(&(conditions.clone(), true));
        if added {
            self.push("<!-- Combine action from next rule -->\n");
        } else {
            self.close_rule();
            if !same_chain {
                self.close_chain();
                self.start_chain(chain.bytes.as_bstr().to_owned());
            }
            self.push("      <rule ");
            if let Some(counters) = counters {
                self.push(format!(
                    "packet-count=\"{}\" byte-count=\"{}\" ",
                    counters.packets, counters.bytes
                ));
            }
            self.push(">\n");
            if !conditions.is_empty() {
                self.push("       <conditions>\n");
                self.push(&conditions);
                self.push("       </conditions>\n");
            }
            self.push("       <actions>\n");
        }
        self.actions(actions);
        self.rule = Some((conditions, goes_on));
        Ok(())
    }

    fn start_chain(&mut self, name: BString) {
        let known = self.chains.iter_mut().find(|chain| chain.name == name);
        let attributes = known.map_or_else(String::new, |chain| {
            chain.used = true;
            chain.attributes.clone()
        });
        self.push(format!(
            "    <chain name=\"{}\"{attributes} >\n",
            attribute(&name)
        ));
        self.open = Some(name);
    }

    fn actions(&mut self, words: &[Word<'_>]) {
        let [option, target, rest @ ..] = words else {
            return;
        };
        let name = element(&target.bytes);
        let is_goto = matches!(&*option.bytes, b"-g" | b"--goto");
        let is_chain = self
            .chains
            .iter()
            .any(|chain| chain.name == target.bytes.as_bstr());
        if is_goto || is_chain {
            let how = if is_goto { "goto" } else { "call" };
            self.push(format!(
                "        <{how} >\n          <{name} />\n        </{how}>\n"
            ));
            let options = self.options(rest, "match", "        ");
            return self.push(options);
        }
        // Its own options extend to the next match.
        let own = rest
            .iter()
            .position(|word| matches!(&*word.bytes, b"-m" | b"--match"));
        let (own, others) = rest.split_at(own.unwrap_or(rest.len()));
        if own.is_empty() {
            self.push(format!("        <{name}  />\n"));
        } else {
            let options = self.options(own, "", "          ");
            self.push(format!("        <{name} >\n"));
            self.push(options);
            self.push(format!("        </{name}>\n"));
        }
        let options = self.options(others, "match", "        ");
        self.push(options);
    }

    /// Converts options to elements: general ones inside an element `main`, those of each match inside one of its name.
    /// With an empty name there is no enclosing element.
    fn options(&self, words: &[Word<'_>], main: &str, indent: &str) -> BString {
        let mut text = BString::default();
        let mut open: Option<String> = None;
        let mut at = 0;
        let inner = if main.is_empty() {
            indent.to_owned()
        } else {
            format!("{indent}  ")
        };
        let mut reopen = |text: &mut BString, name: Option<String>| {
            if let Some(open) = open.take() {
                text.extend_from_slice(format!("{indent}</{open}>\n").as_bytes());
            }
            if let Some(name) = &name {
                text.extend_from_slice(format!("{indent}<{name} >\n").as_bytes());
            }
            open = name;
        };
        let mut in_main = false;
        while let Some(word) = words.get(at) {
            at += 1;
            let (invert, word) = match (&*word.bytes, words.get(at)) {
                (b"!", Some(option)) => {
                    at += 1;
                    (true, option)
                }
                _ => (false, word),
            };
            let option = &*word.bytes;
            if let (b"-m" | b"--match", Some(name)) = (option, words.get(at))
                && !main.is_empty()
            {
                at += 1;
                in_main = false;
                reopen(&mut text, Some(element(&name.bytes)));
                continue;
            }
            let known = MAIN.iter().find(|(known, _)| *known == option);
            if known.is_some() && !main.is_empty() && !in_main {
                in_main = true;
                reopen(&mut text, Some(main.to_owned()));
            }
            let name = known.map_or_else(
                || element(option.trim_start_with(|char| char == '-').as_bytes()),
                |(_, name)| (*name).to_owned(),
            );
            let start = at;
            while words.get(at).is_some_and(|next| {
                !next.bytes.starts_with(b"-") && (*next.bytes != b"!"[..] || words.len() == at + 1)
            }) {
                at += 1;
            }
            let values: Vec<String> = words[start..at]
                .iter()
                .map(|value| quoted(&value.bytes))
                .collect();
            let invert = if invert { " invert=\"1\"" } else { "" };
            let line = match values.is_empty() {
                true => format!("{inner}<{name} {invert} />\n"),
                false => format!("{inner}<{name} {invert}>{}</{name}>\n", values.join(" ")),
            };
            text.extend_from_slice(line.as_bytes());
        }
        reopen(&mut text, None);
        text
    }
}

/// Escapes the text between elements.
fn escaped(text: &[u8]) -> String {
    let text = text.to_str_lossy();
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML 1.0 does not allow other control characters.
            char if char.is_control() && char != '\t' => safe.push('\u{fffd}'),
            char => safe.push(char),
        }
    }
    safe
}

/// Escapes the value of an attribute.
fn attribute(text: &[u8]) -> String {
    escaped(text)
}

/// Formats a value as in the text: in quotes if it has blanks.
fn quoted(value: &[u8]) -> String {
    match value.contains(&b' ') {
        true => format!("&quot;{}&quot;", escaped(value)),
        false => escaped(value),
    }
}

/// Converts a text to the name of an element: characters that XML does not allow become `_`.
fn element(name: &[u8]) -> String {
    let name = name.to_str_lossy();
    let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '-' | '_' | '.' | ':');
    let mut safe: String = name
        .chars()
        .map(|char| if is_plain(char) { char } else { '_' })
        .collect();
    if !safe.starts_with(|char: char| char.is_alphabetic() || char == '_') {
        safe.insert(0, '_');
    }
    safe
}
