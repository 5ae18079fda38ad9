//! Splits text into tokens.

use std::net::Ipv6Addr;
use std::sync::Arc;

use super::error::{Diagnostic, shown};
use crate::syntax::Span;

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name, number, address or time.
    Word,
    /// A quoted string; its location includes the quotation marks.
    Quoted,
    /// `@`, `{`, `!=`, …
    Sign(&'static str),
    Newline,
    /// End of all texts.
    End,
    /// Invalid token; see [`Lexer::diagnostic`].
    Bad,
}

/// Token with its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// Signs; longer ones precede their prefixes.
const SIGNS: [&str; 29] = [
    "<<", ">>", "==", "!=", "<=", ">=", "{", "}", "(", ")", "[", "]", ";", ",", ".", ":", "=", "!",
    "<", ">", "&", "|", "^", "@", "$", "*", "+", "-", "/",
];

/// Lexer for one text.
#[derive(Debug)]
pub(crate) struct Lexer {
    pub(crate) source: u32,
    text: Arc<str>,
    at: usize,
    /// Whether the next token cannot be an address with colons, because it follows `/`, `@` or `$`.
    is_after_sign: bool,
}

const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

/// Returns `true` if a word may contain this byte.
const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'/')
}

/// Returns `true` if a number or an IPv4 address may contain this byte.
const fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')
}

/// Returns `true` if an address with colons may contain this byte.
const fn is_of_address(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.')
}

impl Lexer {
    pub(crate) const fn new(source: u32, text: Arc<str>) -> Self {
        Self {
            source,
            text,
            at: 0,
            is_after_sign: false,
        }
    }

    /// Continues at this position, which must be the end of a word.
    pub(crate) const fn go_to(&mut self, at: u32) {
        self.at = at as usize;
        self.is_after_sign = false;
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn token(&self, kind: Kind, start: usize) -> Token {
        Token {
            kind,
            span: Span {
                source: self.source,
                start: start as u32, // texts are shorter than 4 GiB
                end: self.at as u32,
            },
        }
    }

    /// Creates the error for an invalid token.
    pub(crate) fn diagnostic(token: Token, text: &str) -> Diagnostic {
        let start = token.span.start as usize;
        let found = text.get(start..).unwrap_or_default();
        if found.starts_with('"') {
            return Diagnostic::new(token.span, "unterminated string");
        }
        match found.chars().next() {
            Some('\'') => Diagnostic::new(token.span, "unexpected character `'`")
                .with_hint("quote strings with `\"`"),
            Some('\r') => Diagnostic::new(token.span, "unexpected carriage return")
                .with_hint("end lines with LF alone, not with CRLF"),
            Some(c) if c.is_control() => Diagnostic::new(
                token.span,
                format!("unexpected character U+{:04X}", c as u32),
            ),
            _ => {
                let end = token.span.end as usize;
                let what = shown(text.get(start..end).unwrap_or_default());
                Diagnostic::new(token.span, format!("unexpected character `{what}`"))
            }
        }
    }

    /// Skips blanks, comments and line continuations.
    fn skip(&mut self) {
        loop {
            match self.byte(self.at) {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.byte(self.at + 1) == Some(b'\n') => self.at += 2,
                Some(b'#') => {
                    let rest = &self.text.as_bytes()[self.at..];
                    self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// Returns the next token; at the end of the text always [`Kind::End`].
    pub(crate) fn next(&mut self) -> Token {
        let token = self.read();
        self.is_after_sign = matches!(token.kind, Kind::Sign("/" | "@" | "$"));
        token
    }

    fn read(&mut self) -> Token {
        self.skip();
        let start = self.at;
        let Some(first) = self.byte(start) else {
            return self.token(Kind::End, start);
        };
        match first {
            b'\n' => {
                self.at += 1;
                return self.token(Kind::Newline, start);
            }
            b'"' => return self.quoted(start),
            _ => {}
        }
        if !self.is_after_sign
            && let Some(length) = self.address(start)
        {
            self.at = start + length;
            return self.token(Kind::Word, start);
        }
        if first.is_ascii_digit() {
            self.at = self.run(start, is_of_number);
            return self.token(Kind::Word, start);
        }
        let next = self.byte(start + 1);
        let is_word = match first {
            b'.' => next.is_some_and(|b| is_letter(b) || b == b'_'),
            b'\\' => next == Some(b'*'),
            first => is_letter(first) || first == b'_',
        };
        if is_word {
            self.word(start);
            return self.token(Kind::Word, start);
        }
        let rest = &self.text.as_bytes()[start..];
        if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) {
            self.at += sign.len();
            return self.token(Kind::Sign(sign), start);
        }
        let length = self.text[start..].chars().next().map_or(1, char::len_utf8);
        self.at += length;
        self.token(Kind::Bad, start)
    }

    fn run(&self, start: usize, is_in: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[start..];
        start + rest.iter().position(|b| !is_in(*b)).unwrap_or(rest.len())
    }

    /// Scans a word, including a trailing asterisk.
    fn word(&mut self, start: usize) {
        self.at = start;
        loop {
            self.at = self.run(self.at, is_of_word);
            match self.byte(self.at) {
                // An escaped asterisk; nft accepts no other escape.
                Some(b'\\') if self.byte(self.at + 1) == Some(b'*') => self.at += 2,
                Some(b'*') => {
                    self.at += 1;
                    return;
                }
                _ => return,
            }
        }
    }

    fn quoted(&mut self, start: usize) -> Token {
        let rest = &self.text.as_bytes()[start + 1..];
        match rest.iter().position(|b| *b == b'"') {
            Some(length) => {
                self.at = start + length + 2;
                self.token(Kind::Quoted, start)
            }
            None => {
                // The error is at the start; the rest of the line is skipped.
                let line = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                self.at = start + 1 + line;
                self.token(Kind::Bad, start)
            }
        }
    }

    /// Returns the length of the address with colons that starts here, if there is one.
    fn address(&self, start: usize) -> Option<usize> {
        // Maximum length. Longer runs are invalid; the limit avoids repeated scans of them.
        const MAX_LENGTH: usize = 64;
        let bytes = &self.text.as_bytes()[start..];
        let bytes = &bytes[..bytes.len().min(MAX_LENGTH)];
        let run = bytes
            .iter()
            .position(|b| !is_of_address(*b))
            .unwrap_or(bytes.len());
        let mut end = run;
        if !bytes[..end].contains(&b':') {
            return None;
        }
        let is_whole = |end: usize| match bytes.get(end) {
            Some(b) => !b.is_ascii_alphanumeric() && *b != b'_',
            None => true,
        };
        // The part after the last colon may be another word: `::1:drop`.
        loop {
            let text = std::str::from_utf8(&bytes[..end]).ok()?;
            if !text.contains(':') {
                return None;
            }
            let is_one =
                is_link_address(text) || is_class(text) || text.parse::<Ipv6Addr>().is_ok();
            if is_one && is_whole(end) {
                return Some(end);
            }
            end = text.rfind(':')?;
        }
    }
}

/// Returns `true` if the text is a link-layer address such as `02:00:00:00:00:01`.
pub(crate) fn is_link_address(text: &str) -> bool {
    let is_byte =
        |part: &str| matches!(part.len(), 1 | 2) && part.bytes().all(|b| b.is_ascii_hexdigit());
    text.split(':').count() == 6 && text.split(':').all(is_byte)
}

/// Returns `true` if the text is a traffic class such as `1:2`.
fn is_class(text: &str) -> bool {
    let is_number =
        |part: &str| matches!(part.len(), 1..=4) && part.bytes().all(|b| b.is_ascii_hexdigit());
    match text.split_once(':') {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut lexer = Lexer::new(0, Arc::from(text));
        let mut found = Vec::new();
        loop {
            let token = lexer.next();
            let span = token.span;
            match token.kind {
                Kind::End => return found,
                Kind::Newline => found.push("\\n".to_owned()),
                _ => found.push(text[span.start as usize..span.end as usize].to_owned()),
            }
        }
    }

    #[test]
    fn lexer_splits_words_and_signs() {
        for (text, expected) in [
            ("ip saddr 10.0.0.0/8", "ip|saddr|10.0.0.0|/|8"),
            ("10.0.0.1-10.0.0.5:80-90", "10.0.0.1|-|10.0.0.5|:|80|-|90"),
            ("[::1]:80", "[|::1|]|:|80"),
            ("@ae:80 $be:80", "@|ae|:|80|$|be|:|80"),
            ("fd00::4/127:53-99", "fd00::4|/|127|:|53|-|99"),
            ("2001:db8::/32", "2001:db8::|/|32"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
            (
                "02:00:00:00:00:01-ff:ff:ff:ff:ff:ff",
                "02:00:00:00:00:01|-|ff:ff:ff:ff:ff:ff",
            ),
            ("{ ::1:drop }", "{|::1|:|drop|}"),
            ("{ 1:accept, 22 : drop }", "{|1|:|accept|,|22|:|drop|}"),
            ("meta priority 1:abcd", "meta|priority|1:abcd"),
            ("ae:jump x", "ae|:|jump|x"),
            ("@nh,0,8 & 0xf==1", "@|nh|,|0|,|8|&|0xf|==|1"),
            (
                "KUBE-SVC-X/a.b_c eth* \"eth*\"",
                "KUBE-SVC-X/a.b_c|eth*|\"eth*\"",
            ),
            ("eth\\*", "eth\\*"),
            ("1d2h3m 5/second", "1d2h3m|5|/|second"),
            ("a \\\n b # c ; d\ne;f", "a|b|\\n|e|;|f"),
            ("a . b .c", "a|.|b|.c"),
            ("a<<1>>2<=3", "a|<<|1|>>|2|<=|3"),
            ("policy = {", "policy|=|{"),
            ("x\r\ny", "x|\r|\\n|y"),
            ("x # y\r\nz", "x|\\n|z"),
            ("x\\\r\ny", "x|\\|\r|\\n|y"),
            ("é", "é"),
            ("\"open\nx", "\"open|\\n|x"),
        ] {
            assert_eq!(words(text).join("|"), expected, "{text}");
        }
    }
}
