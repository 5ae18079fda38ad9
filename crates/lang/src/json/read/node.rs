//! JSON parser that keeps the location of each value.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::parse::Diagnostic;
use crate::parse::error::shown;
use crate::syntax::Span;

/// Maximum nesting of lists and objects: slightly more than for 128 operations, the maximum for a set of labels.
const MAX_DEPTH: usize = 320;
/// Maximum number of keys of an object that are compared pairwise.
const MAX_PAIRWISE_KEYS: usize = 16;

/// Value with its location.
#[derive(Debug)]
pub(crate) struct Node<'t> {
    pub(crate) kind: Kind<'t>,
    pub(crate) span: Span,
}

/// Kind of a value.
#[derive(Debug)]
pub(crate) enum Kind<'t> {
    Null,
    Bool(bool),
    Number(u64),
    /// Absolute value of a negative integer.
    Negative(u64),
    /// Number that is not an integer, or too large.
    OtherNumber,
    Text(Cow<'t, str>),
    List(Vec<Node<'t>>),
    /// Keys are unique.
    Object(Vec<(Key<'t>, Node<'t>)>),
}

/// Key with its location.
#[derive(Debug)]
pub(crate) struct Key<'t> {
    pub(crate) text: Cow<'t, str>,
    pub(crate) span: Span,
}

/// Parses a text; `source` is its index.
///
/// # Errors
/// The first JSON syntax error.
pub(crate) fn document(source: u32, text: &str) -> Result<Node<'_>, Diagnostic> {
    let mut reader = Reader {
        source,
        text,
        at: 0,
        depth: 0,
    };
    let node = reader.value()?;
    reader.blanks();
    match reader.at == text.len() {
        true => Ok(node),
        false => Err(reader.unexpected(["the end of the text"])),
    }
}

struct Reader<'t> {
    source: u32,
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Returns the range from `start` to the current position. Texts are shorter than 4 GiB.
    fn since(&self, start: usize) -> Span {
        Span {
            source: self.source,
            start: start as u32,
            end: self.at as u32,
        }
    }

    /// Creates the error that the current token is unexpected.
    fn unexpected<const N: usize>(&self, expected: [&str; N]) -> Diagnostic {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '+' | '.');
        let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let length = match length {
            0 => rest.chars().next().map_or(0, char::len_utf8),
            length => length,
        };
        let span = Span {
            end: (self.at + length) as u32,
            ..self.since(self.at)
        };
        let message = match rest.get(..length) {
            None | Some("") => "unexpected end of input".to_owned(),
            Some(word) => format!("unexpected `{}`", shown(word)),
        };
        Diagnostic::new(span, message).expecting(expected)
    }

    fn value(&mut self) -> Result<Node<'t>, Diagnostic> {
        self.blanks();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.deeper(Self::object)?,
            Some(b'[') => self.deeper(Self::list)?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let word = rest.split(|c: char| !c.is_alphanumeric()).next();
                let kind = match word {
                    Some("null") => Kind::Null,
                    Some("true") => Kind::Bool(true),
                    Some("false") => Kind::Bool(false),
                    _ => return Err(self.unexpected(["a value"])),
                };
                self.at += word.map_or(0, str::len);
                kind
            }
        };
        Ok(Node {
            kind,
            span: self.since(start),
        })
    }

    fn deeper(
        &mut self,
        what: fn(&mut Self) -> Result<Kind<'t>, Diagnostic>,
    ) -> Result<Kind<'t>, Diagnostic> {
        if self.depth >= MAX_DEPTH {
            let message = format!("lists and objects are nested more than {MAX_DEPTH} levels deep");
            let span = self.since(self.at);
            let end = span.end + 1; // the bracket
            return Err(Diagnostic::new(Span { end, ..span }, message));
        }
        self.depth += 1;
        self.at += 1;
        let read = what(self);
        self.depth -= 1;
        read
    }

    /// Returns whether a list or object ends here; otherwise moves to the next entry.
    fn is_over(&mut self, is_first: bool, end: u8, end_name: &str) -> Result<bool, Diagnostic> {
        self.blanks();
        match self.peek() {
            Some(found) if found == end => {
                self.at += 1;
                Ok(true)
            }
            _ if is_first => Ok(false),
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.unexpected([",", end_name])),
        }
    }

    fn list(&mut self) -> Result<Kind<'t>, Diagnostic> {
        let mut entries = Vec::new();
        while !self.is_over(entries.is_empty(), b']', "]")? {
            entries.push(self.value()?);
        }
        Ok(Kind::List(entries))
    }

    fn object(&mut self) -> Result<Kind<'t>, Diagnostic> {
        let mut entries: Vec<(Key<'t>, Node<'t>)> = Vec::new();
        let mut seen = HashSet::new();
        while !self.is_over(entries.is_empty(), b'}', "}")? {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected(["a key in quotation marks"]));
            }
            let start = self.at;
            let text = self.string()?;
            let span = self.since(start);
            if entries.len() == MAX_PAIRWISE_KEYS {
                seen.extend(entries.iter().map(|(key, _)| key.text.clone()));
            }
            let is_twice = match entries.len() < MAX_PAIRWISE_KEYS {
                true => entries.iter().any(|(key, _)| key.text == text),
                false => !seen.insert(text.clone()),
            };
            if is_twice {
                let message = format!("duplicate `{}`", shown(&text));
                return Err(Diagnostic::new(span, message));
            }
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.unexpected([":"]));
            }
            self.at += 1;
            let value = self.value()?;
            entries.push((Key { text, span }, value));
        }
        Ok(Kind::Object(entries))
    }

    fn number(&mut self) -> Result<Kind<'t>, Diagnostic> {
        let start = self.at;
        let is_of_number =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        while self.peek().is_some_and(is_of_number) {
            self.at += 1;
        }
        let word = self.text.get(start..self.at).unwrap_or_default();
        let (is_negative, digits) = match word.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, word),
        };
        let wrong = || {
            let message = format!("invalid JSON number `{}`", shown(word));
            Diagnostic::new(self.since(start), message)
        };
        let whole = digits.bytes().take_while(u8::is_ascii_digit).count();
        if whole == 0 || (whole > 1 && digits.starts_with('0')) {
            return Err(wrong());
        }
        if whole == digits.len() {
            return Ok(match (digits.parse(), is_negative) {
                (Ok(number), false) => Kind::Number(number),
                (Ok(number), true) => Kind::Negative(number),
                (Err(_), _) => Kind::OtherNumber,
            });
        }
        // Rust's number syntax, except words.
        let rest = &digits[whole..];
        let is_number = rest.starts_with(['.', 'e', 'E'])
            && !rest.starts_with(".e")
            && !rest.starts_with(".E")
            && !rest.ends_with('.')
            && digits.parse::<f64>().is_ok();
        match is_number {
            true => Ok(Kind::OtherNumber),
            false => Err(wrong()),
        }
    }

    /// Parses a string.
    fn string(&mut self) -> Result<Cow<'t, str>, Diagnostic> {
        let begin = self.at;
        self.at += 1;
        let mut start = self.at;
        let mut unescaped = String::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    let rest = self.text.get(start..self.at).unwrap_or_default();
                    self.at += 1;
                    return Ok(match unescaped.is_empty() {
                        true => Cow::Borrowed(rest),
                        false => Cow::Owned(unescaped + rest),
                    });
                }
                Some(b'\\') => {
                    unescaped += self.text.get(start..self.at).unwrap_or_default();
                    unescaped.push(self.escaped()?);
                    start = self.at;
                }
                Some(0..=0x1f) => {
                    let span = self.since(self.at);
                    let end = span.end + 1;
                    let message = "unescaped control character in string";
                    return Err(Diagnostic::new(Span { end, ..span }, message));
                }
                Some(_) => self.at += 1,
                None => {
                    let message = "unterminated string";
                    let span = Span {
                        end: begin as u32 + 1,
                        ..self.since(begin)
                    };
                    return Err(Diagnostic::new(span, message));
                }
            }
        }
    }

    /// Parses an escape sequence.
    fn escaped(&mut self) -> Result<char, Diagnostic> {
        let start = self.at;
        self.at += 1;
        let byte = self.peek();
        if byte.is_some_and(|byte| byte.is_ascii()) {
            self.at += 1;
        }
        let character = match byte {
            Some(sign @ (b'"' | b'\\' | b'/')) => Some(char::from(sign)),
            Some(b'b') => Some('\u{8}'),
            Some(b'f') => Some('\u{c}'),
            Some(b'n') => Some('\n'),
            Some(b'r') => Some('\r'),
            Some(b't') => Some('\t'),
            Some(b'u') => self.of_number(),
            _ => None,
        };
        match character {
            Some('\0') => Err(Diagnostic::new(
                self.since(start),
                "string contains a NUL character",
            )),
            Some(character) => Ok(character),
            None => Err(Diagnostic::new(
                self.since(start),
                "invalid escape sequence",
            )),
        }
    }

    /// Parses the digits of a `\u` escape, including surrogate pairs.
    fn of_number(&mut self) -> Option<char> {
        let first = self.four_digits()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        let rest = self.text.get(self.at..)?;
        rest.starts_with("\\u").then_some(())?;
        self.at += 2;
        let second = self.four_digits()?;
        (0xdc00..0xe000).contains(&second).then_some(())?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        let is_all = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_all.then_some(())?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}
