//! Elements of named sets. A text may have millions of them.
//!
//! Numeric constants (`10.0.0.1`, `2001:db8::/32 . 80 : 192.0.2.1`) are not stored as syntax trees. The text is
//! scanned once to check them, and again on each iteration.

use std::borrow::Cow;
use std::net::Ipv6Addr;
use std::sync::Arc;

use super::error::Diagnostic;
use super::lexer::{Kind, is_link_address};
use super::parser::{Parser, parse_number};
use super::variables::measure;
use crate::syntax::{Element, Expr, Span, Symbol};

/// Elements of a set, in source order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ElementList(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    One(Box<Element>),
    Run(Run),
}

impl ElementList {
    pub(crate) fn push(&mut self, element: Element) {
        self.0.push(Piece::One(Box::new(element)));
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> usize {
        let count = |piece: &Piece| match piece {
            Piece::One(_) => 1,
            Piece::Run(run) => run.count,
        };
        self.0.iter().map(count).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Cow<'_, Element>> {
        self.0.iter().flat_map(|piece| {
            let (one, run) = match piece {
                Piece::One(element) => (Some(Cow::Borrowed(&**element)), None),
                Piece::Run(run) => (None, Some(run.iter().map(Cow::Owned))),
            };
            one.into_iter().chain(run.into_iter().flatten())
        })
    }
}

impl FromIterator<Element> for ElementList {
    fn from_iter<I: IntoIterator<Item = Element>>(elements: I) -> Self {
        let one = |element| Piece::One(Box::new(element));
        Self(elements.into_iter().map(one).collect())
    }
}

/// Maximum size of data that several elements share.
const MAX_SHARED: usize = 64;

/// Adds data to each element of a list. nft ignores the other properties of such elements.
pub(crate) fn with_data(
    elements: Vec<Element>,
    data: Option<Expr>,
    span: Span,
) -> Result<impl Iterator<Item = Element>, Diagnostic> {
    let is_plain = |element: &Element| *element == Element::new(element.key.clone());
    let message = match &data {
        Some(_) if !elements.iter().all(is_plain) => {
            Some("a list of elements with other properties cannot have data")
        }
        Some(data) if measure(data).0 > MAX_SHARED => {
            Some("data of a list of elements are too long")
        }
        _ => None,
    };
    match message {
        Some(message) => Err(Diagnostic::new(span, message)),
        None => Ok(elements.into_iter().map(move |element| Element {
            data: data.clone().or(element.data),
            ..element
        })),
    }
}

/// Consumer of parsed elements.
pub(crate) trait ElementSink {
    fn take(&mut self, element: Element);

    /// Consumes elements at the current token that need no parsing, and moves the parser after them.
    fn take_run(&mut self, _: &mut Parser<'_>) -> bool {
        false
    }
}

impl ElementSink for Vec<Element> {
    fn take(&mut self, element: Element) {
        self.push(element);
    }
}

impl ElementSink for ElementList {
    fn take(&mut self, element: Element) {
        self.push(element);
    }

    fn take_run(&mut self, parser: &mut Parser<'_>) -> bool {
        match parser.run() {
            Some(run) => {
                self.0.push(Piece::Run(run));
                true
            }
            None => false,
        }
    }
}

/// Consecutive elements that stay in the source text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    text: Arc<str>,
    /// From the start of the first to the end of the last element.
    span: Span,
    count: usize,
}

impl Run {
    /// Returns the elements that start here, if there are any.
    pub(crate) fn at(text: &Arc<str>, source: u32, start: u32) -> Option<Self> {
        let mut scanner = Scanner::new(text, start);
        let (mut count, mut end) = (0, start);
        while scanner.element(|_, _| {}).is_some() && scanner.is_between() {
            (count, end) = (count + 1, scanner.at as u32); // texts are shorter than 4 GiB
            if !scanner.skip_comma() {
                break;
            }
        }
        let span = Span { source, start, end };
        (count > 0).then(|| Self {
            text: Arc::clone(text),
            span,
            count,
        })
    }

    fn iter(&self) -> impl Iterator<Item = Element> {
        let mut scanner = Scanner::new(&self.text, self.span.start);
        (0..self.count).map_while(move |_| {
            let (mut key, mut data) = (Vec::new(), Vec::new());
            scanner.element(|is_data, constant| {
                let span = |start, end| Span {
                    source: self.span.source,
                    start,
                    end,
                };
                let value = constant.expr(&self.text, span);
                match is_data {
                    true => data.push(value),
                    false => key.push(value),
                }
            })?;
            scanner.skip_comma();
            let mut element = Element::new(whole(key));
            element.data = whole(data);
            Some(element)
        })
    }
}

/// Joins the fields of a key or of data.
fn whole(mut parts: Vec<Expr>) -> Option<Expr> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(Expr::Concat(parts)),
    }
}

/// Byte offsets of start and end.
type ByteRange = (u32, u32);

/// Numeric constant.
#[derive(Debug, Clone, Copy)]
enum Constant {
    Value(ByteRange),
    /// Value and prefix length.
    Prefix(ByteRange, u32),
    Range(ByteRange, ByteRange),
}

impl Constant {
    fn expr(self, text: &str, span: impl Fn(u32, u32) -> Span) -> Expr {
        let symbol = |(start, end): ByteRange| {
            Expr::Symbol(Symbol {
                text: text
                    .get(start as usize..end as usize)
                    .unwrap_or_default()
                    .into(),
                is_quoted: false,
                span: span(start, end),
            })
        };
        match self {
            Self::Value(value) => symbol(value),
            Self::Prefix(value, bits) => Expr::Prefix(Box::new(symbol(value)), bits),
            Self::Range(from, to) => Expr::Range(Box::new(symbol(from)), Box::new(symbol(to))),
        }
    }
}

/// Scanner for numeric constants and the separators between them.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    const fn new(text: &'t str, start: u32) -> Self {
        Self {
            text,
            at: start as usize,
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) {
        while self.byte().is_some_and(&is_skipped) {
            self.at += 1;
        }
    }

    fn skip_blanks(&mut self) {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
    }

    /// Skips a sign surrounded by blanks.
    fn sign(&mut self, sign: u8) -> bool {
        let start = self.at;
        self.skip_blanks();
        let is_here = self.byte() == Some(sign) && self.at > start;
        let rest = self.text.as_bytes().get(self.at + 1);
        if is_here && matches!(rest, Some(b' ' | b'\t')) {
            self.at += 1;
            self.skip_blanks();
            return true;
        }
        self.at = start;
        false
    }

    /// Scans a key and optional data. Passes each constant to `take`, with `true` if it belongs to the data.
    fn element(&mut self, mut take: impl FnMut(bool, Constant)) -> Option<()> {
        self.value(|constant| take(false, constant))?;
        if self.sign(b':') {
            self.value(|constant| take(true, constant))?;
        }
        Some(())
    }

    /// Scans constants separated by dots.
    fn value(&mut self, mut take: impl FnMut(Constant)) -> Option<()> {
        take(self.constant()?);
        while self.sign(b'.') {
            take(self.constant()?);
        }
        Some(())
    }

    fn constant(&mut self) -> Option<Constant> {
        let first = self.digits()?;
        let constant = match self.byte() {
            Some(b'-') => {
                self.at += 1;
                Constant::Range(first, self.digits()?)
            }
            Some(b'/') => {
                let start = self.at + 1;
                self.at = start;
                self.skip(|byte| byte.is_ascii_digit());
                let length = self.text.get(start..self.at).unwrap_or_default();
                let bits = parse_number(length).filter(|_| !length.is_empty())?;
                Constant::Prefix(first, u32::try_from(bits).ok()?)
            }
            _ => Constant::Value(first),
        };
        // Anything else is not a numeric constant.
        matches!(self.byte(), None | Some(b' ' | b'\t' | b'\n' | b',' | b'}')).then_some(constant)
    }

    /// Scans a number or an address.
    fn digits(&mut self) -> Option<ByteRange> {
        let start = self.at;
        let is_number = self.byte().is_some_and(|byte| byte.is_ascii_digit());
        self.skip(|byte| byte.is_ascii_digit() || byte == b'.');
        let goes_on = matches!(self.byte(), Some(b':' | b'a'..=b'f' | b'A'..=b'F'));
        if goes_on {
            self.skip(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
            let address = self.text.get(start..self.at)?;
            if address.parse::<Ipv6Addr>().is_err() && !is_link_address(address) {
                return None;
            }
        } else if !is_number {
            return None;
        }
        Some((start as u32, self.at as u32)) // texts are shorter than 4 GiB
    }

    /// Returns `true` if a comma or closing brace follows.
    fn is_between(&self) -> bool {
        let mut ahead = Self { ..*self };
        ahead.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
        matches!(ahead.byte(), Some(b',' | b'}'))
    }

    fn skip_comma(&mut self) -> bool {
        let is_blank = |byte| matches!(byte, b' ' | b'\t' | b'\n');
        self.skip(is_blank);
        let is_comma = self.byte() == Some(b',');
        if is_comma {
            self.at += 1;
            self.skip(is_blank);
        }
        is_comma
    }
}

impl Parser<'_> {
    /// Returns the elements from the current token on that need no parsing, and moves the parser after them.
    fn run(&mut self) -> Option<Run> {
        if self.current.kind != Kind::Word || !self.is_alone() {
            return None;
        }
        let Span { source, start, .. } = self.current.span;
        let run = Run::at(&self.sources.text(source), source, start)?;
        self.skip_past(run.span);
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{ProptestConfig, proptest};
    use proptest::sample::select;

    use super::super::expr::Side;
    use super::super::lexer::Token;
    use super::super::{NoIncludes, SavedVariables, Source};
    use super::*;

    /// Returns the elements in braces, and the token after them.
    fn read<T: ElementSink>(text: &str, mut taken: T) -> Result<(T, Token), Diagnostic> {
        let mut parser = Parser::with_definitions(&SavedVariables::default(), &NoIncludes);
        parser.open(vec![Source::new("test", text)], Span::default())?;
        parser.advance();
        parser.expect_sign("{")?;
        parser.elements(Side::Right, &mut taken)?;
        Ok((taken, parser.current))
    }

    /// Checks that scanned and parsed elements are equal; returns the number of scanned ones.
    fn compare(text: &str) -> usize {
        let left = read(text, ElementList::default());
        let each = read(text, Vec::new());
        match (left, each) {
            (Ok((left, behind)), Ok((each, also_behind))) => {
                assert_eq!(left.len(), each.len(), "{text}");
                let found: Vec<Element> = left.iter().map(Cow::into_owned).collect();
                assert_eq!(found, each, "{text}");
                assert_eq!(behind, also_behind, "{text}");
                let runs = left.0.iter().map(|piece| match piece {
                    Piece::One(_) => 0,
                    Piece::Run(run) => run.count,
                });
                runs.sum()
            }
            (left, each) => {
                let (left, each) = (left.map(|_| ()), each.map(|_| ()));
                assert_eq!(format!("{left:?}"), format!("{each:?}"), "{text}");
                0
            }
        }
    }

    #[test]
    fn numeric_elements_are_not_tokenized() {
        for (text, left) in [
            ("{ 10.0.0.1, 10.0.0.2 }", 2),
            ("{10.0.0.1,10.0.0.2,}", 2),
            ("{ 10.0.0.0/8,\n\t\t\t     192.168.0.0/16 }", 2),
            ("{ 10.0.0.1-10.0.0.9, 80-89 }", 2),
            ("{ 10.0.0.1 : 192.0.2.1, 10.0.0.2 : 192.0.2.2 }", 2),
            ("{ 10.0.0.1 . 80 : 192.0.2.1 . 8080 }", 1),
            (
                "{ ::, ::1, 2001:db8::/32, fe80::1-fe80::9, ::ffff:1.2.3.4 }",
                5,
            ),
            ("{ 02:00:00:00:00:01, FF:ff:ff:ff:ff:ff }", 2),
            // Stops at the first non-numeric element and continues after it.
            ("{ 1, 2, ssh, 3, 4 }", 4),
            ("{ 1, 2 timeout 5s, 3 }", 2),
            ("{ 1, 2 : accept, 3 }", 2),
            ("{ 1, { 2, 3 }, * : 4 }", 1),
            ("{ 1 # one\n, 2 }", 1),
            ("{ 1, 2 \\\n, 3 }", 2),
            ("{ 0x10, 1:2, 1 & 3, -1, 5s }", 0),
            ("{ 1:2, 1 :2, 1: 2 }", 0),
            ("{ }", 0),
            ("{ 1 2 }", 0),
            ("{ 1, 2", 0),
        ] {
            assert_eq!(compare(text), left, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

        #[test]
        fn skipped_elements_equal_parsed_elements(words in vec(select(vec![
            "10.0.0.1", "80", "1.", "08", "2001:db8::1", "::", "02:00:00:00:00:01", "1:2", "abcd", "f00", "0x10", "5s",
            "/", "-", "/24", "/0x8", " . ", ".", " : ", ":", ",", ",", ", ", ", ", "\n", "\r\n", "\t", " ", "}", "{",
            "# c\n", "tcp", "accept", "timeout 1s", "\"q\"", "*", "&", "\\\n", "é", "4294967296",
        ]), 0..12)) {
            compare(&format!("{{ {} }}", words.concat()));
        }
    }
}
