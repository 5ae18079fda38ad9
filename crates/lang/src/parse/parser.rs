//! Token stream over all source texts, and helpers for single tokens.

use std::collections::VecDeque;
use std::sync::Arc;

use super::error::{Diagnostic, shown};
use super::lexer::{Kind, Lexer, Token};
use super::script::OBJECTS;
use super::source::{Includes, Source, Sources};
use super::variables::{SavedVariables, Variables};
use crate::syntax::{Span, Symbol};
use chainwright::nft::{Family, Name};

/// Maximum nesting of braces and parentheses.
const MAX_DEPTH: usize = 32;
/// Maximum nesting of included texts.
const MAX_INCLUDE_DEPTH: usize = 16;
/// Maximum length of the name of a table, chain, set, …
pub(crate) const MAX_NAME_LENGTH: usize = 255;

/// The end of an entry of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The end of the line, or `;`.
    Line,
    /// Any further entry, or the end of the block.
    Any,
}

/// A text being parsed, and the texts to parse after it.
struct Open {
    lexer: Lexer,
    /// Whether the end of its last line was returned. The text stays open until that line is parsed.
    is_at_end: bool,
    waiting: VecDeque<u32>,
}

/// Parser.
pub(crate) struct Parser<'i> {
    pub(crate) includes: &'i dyn Includes,
    pub(crate) sources: Sources,
    /// Open texts; the innermost is last.
    open: Vec<Open>,
    /// Current token, and the next one if it was read already.
    pub(crate) current: Token,
    ahead: Option<Token>,
    /// Text that contains the current token, and its index.
    text: Arc<str>,
    text_source: u32,
    /// Previous token.
    pub(crate) before: Span,
    pub(crate) variables: Variables,
    depth: usize,
    /// Family of the current table.
    pub(crate) family: Family,
    /// Whether any variable was defined or undefined.
    pub(crate) defines: bool,
    /// Errors after which parsing continued.
    pub(crate) errors: Vec<Diagnostic>,
    /// Whether parsing cannot continue after the error that is being returned.
    is_fatal: bool,
}

impl<'i> Parser<'i> {
    /// Creates a parser with predefined variables.
    pub(crate) fn with_definitions(kept: &SavedVariables, includes: &'i dyn Includes) -> Self {
        let nowhere = Span::default();
        Self {
            includes,
            sources: Sources::default(),
            open: Vec::new(),
            current: Token {
                kind: Kind::Newline,
                span: nowhere,
            },
            ahead: None,
            text: Arc::from(""),
            text_source: u32::MAX,
            before: nowhere,
            variables: Variables::extending(kept),
            depth: 0,
            family: Family::IP,
            defines: false,
            errors: Vec::new(),
            is_fatal: false,
        }
    }

    /// Starts to parse the first text.
    pub(crate) fn begin(&mut self, source: Source) -> Result<(), Diagnostic> {
        let nowhere = Span::default();
        self.open.clear();
        self.open(vec![source], nowhere)?;
        self.current = Token {
            kind: Kind::Newline,
            span: nowhere,
        };
        self.ahead = None;
        self.family = Family::IP;
        self.advance();
        Ok(())
    }

    /// Parses these texts next, after the current token, which must end a line.
    pub(crate) fn open(&mut self, sources: Vec<Source>, from: Span) -> Result<(), Diagnostic> {
        debug_assert!(self.ahead.is_none());
        if self.open.len() > MAX_INCLUDE_DEPTH {
            let message = format!("includes are nested more than {MAX_INCLUDE_DEPTH} levels deep");
            return Err(Diagnostic::new(from, message));
        }
        let mut waiting = VecDeque::new();
        for source in sources {
            let is_same = |open: &Open| self.sources.name(open.lexer.source) == source.name;
            if self.open.iter().any(is_same) {
                let message = format!("{} includes itself", shown(&source.name));
                return Err(Diagnostic::new(from, message));
            }
            self.variables.allow(source.content.len());
            waiting.push_back(self.sources.add(source, from)?);
        }
        if let Some(first) = waiting.pop_front() {
            let lexer = Lexer::new(first, self.sources.text(first));
            self.open.push(Open {
                lexer,
                is_at_end: false,
                waiting,
            });
        }
        Ok(())
    }

    fn read(&mut self) -> Token {
        loop {
            let is_outermost = self.open.len() == 1;
            let Some(open) = self.open.last_mut() else {
                return Token {
                    kind: Kind::End,
                    span: self.before,
                };
            };
            if open.is_at_end {
                open.is_at_end = false;
                match open.waiting.pop_front() {
                    Some(next) => open.lexer = Lexer::new(next, self.sources.text(next)),
                    None => {
                        self.open.pop();
                    }
                }
                continue;
            }
            let token = open.lexer.next();
            if token.kind != Kind::End || is_outermost {
                return token;
            }
            // An included text ends with a newline.
            open.is_at_end = true;
            return Token {
                kind: Kind::Newline,
                ..token
            };
        }
    }

    /// Advances to the next token; returns the previous one.
    pub(crate) fn advance(&mut self) -> Token {
        let token = self.current;
        self.before = token.span;
        self.current = match self.ahead.take() {
            Some(ahead) => ahead,
            None => self.read(),
        };
        if self.current.span.source != self.text_source {
            self.text_source = self.current.span.source;
            self.text = self.sources.text(self.text_source);
        }
        token
    }

    /// Advances after a range of text that starts with the current token. The next token must not have been read.
    pub(crate) fn skip_past(&mut self, span: Span) {
        if let Some(open) = self.open.last_mut() {
            open.lexer.go_to(span.end);
        }
        self.advance();
        self.before = span;
    }

    /// Returns the token after the current one.
    pub(crate) fn next(&mut self) -> Token {
        match self.ahead {
            Some(token) => token,
            None => {
                let token = self.read();
                self.ahead = Some(token);
                token
            }
        }
    }

    /// Returns `true` if the token after the current one has not been read.
    pub(crate) const fn is_alone(&self) -> bool {
        self.ahead.is_none()
    }

    /// Returns the text of the current token, without quotation marks.
    pub(crate) fn word(&self) -> &str {
        let Span { start, end, .. } = self.current.span;
        let (start, end) = (start as usize, end as usize);
        let range = match self.current.kind {
            Kind::Quoted => start + 1..end - 1,
            _ => start..end,
        };
        self.text.get(range).unwrap_or_default()
    }

    /// Returns the text of the next token.
    fn next_word(&mut self) -> String {
        let token = self.next();
        let Span { source, start, end } = token.span;
        let text = self.sources.text(source);
        text.get(start as usize..end as usize)
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns the text of the next token if it is a word.
    pub(crate) fn next_if_word(&mut self) -> Option<String> {
        (self.next().kind == Kind::Word).then(|| self.next_word())
    }

    pub(crate) fn is_word(&self) -> bool {
        self.current.kind == Kind::Word
    }

    pub(crate) fn is_quoted(&self) -> bool {
        self.current.kind == Kind::Quoted
    }

    /// Returns `true` if the current token is this word.
    pub(crate) fn at(&self, word: &str) -> bool {
        self.is_word() && self.word() == word
    }

    /// Returns which of these words the current token is.
    pub(crate) fn at_any<'w>(&self, words: &[&'w str]) -> Option<&'w str> {
        words.iter().copied().find(|word| self.at(word))
    }

    pub(crate) fn at_sign(&self, sign: &str) -> bool {
        matches!(self.current.kind, Kind::Sign(found) if found == sign)
    }

    pub(crate) fn next_is_sign(&mut self, sign: &str) -> bool {
        matches!(self.next().kind, Kind::Sign(found) if found == sign)
    }

    /// Returns `true` if the current token is `first` and the next one is one of `seconds`.
    pub(crate) fn at_two(&mut self, first: &str, seconds: &[&str]) -> bool {
        self.at(first)
            && self
                .next_if_word()
                .is_some_and(|word| seconds.contains(&&*word))
    }

    /// Skips this word if it is the current token.
    pub(crate) fn eat(&mut self, word: &str) -> bool {
        let is = self.at(word);
        if is {
            self.advance();
        }
        is
    }

    /// Skips one of these words if it is the current token.
    pub(crate) fn eat_any<'w>(&mut self, words: &[&'w str]) -> Option<&'w str> {
        let found = self.at_any(words)?;
        self.advance();
        Some(found)
    }

    /// Returns `true` if the next tokens are this keyword of one or two words.
    pub(crate) fn at_keyword(&mut self, keyword: &str) -> bool {
        match keyword.split_once(' ') {
            Some((first, second)) => self.at_two(first, &[second]),
            None => self.at(keyword),
        }
    }

    pub(crate) fn skip_keyword(&mut self, keyword: &str) {
        for _ in keyword.split(' ') {
            self.advance();
        }
    }

    /// Skips the one of these keywords that comes next.
    pub(crate) fn eat_keyword<'w>(&mut self, keywords: &[&'w str]) -> Option<&'w str> {
        let found = keywords.iter().find(|keyword| self.at_keyword(keyword))?;
        self.skip_keyword(found);
        Some(found)
    }

    pub(crate) fn eat_sign(&mut self, sign: &str) -> bool {
        let is = self.at_sign(sign);
        if is {
            self.advance();
        }
        is
    }

    pub(crate) fn expect(&mut self, word: &'static str) -> Result<(), Diagnostic> {
        match self.eat(word) {
            true => Ok(()),
            false => Err(self.unexpected([word])),
        }
    }

    pub(crate) fn expect_sign(&mut self, sign: &'static str) -> Result<(), Diagnostic> {
        match self.eat_sign(sign) {
            true => Ok(()),
            false => Err(self.unexpected([sign])),
        }
    }

    /// Expects one of these words.
    pub(crate) fn one_of<'w>(&mut self, words: &[&'w str]) -> Result<&'w str, Diagnostic> {
        match self.eat_any(words) {
            Some(word) => Ok(word),
            None => Err(self.unexpected(words)),
        }
    }

    pub(crate) fn skip_lines(&mut self) {
        while self.current.kind == Kind::Newline {
            self.advance();
        }
    }

    pub(crate) fn at_separator(&self) -> bool {
        self.current.kind == Kind::Newline || self.at_sign(";")
    }

    pub(crate) fn skip_separators(&mut self) {
        while self.at_separator() {
            self.advance();
        }
    }

    /// Returns `true` if a statement or a block entry ends here.
    pub(crate) fn at_end(&self) -> bool {
        self.at_separator() || self.at_sign("}") || self.current.kind == Kind::End
    }

    /// Treats the end of the text as the end of a line.
    pub(crate) const fn at_line_end(&mut self) {
        self.current.kind = Kind::Newline;
    }

    /// Expects the end of a line, or `;`.
    pub(crate) fn end_of_line(&mut self) -> Result<(), Diagnostic> {
        match self.at_separator() || self.current.kind == Kind::End {
            true => Ok(()),
            false => Err(self.unexpected(["the end of the line", ";"])),
        }
    }

    /// Creates the error that the current token is not one of these.
    pub(crate) fn unexpected<W: AsRef<str>>(
        &self,
        expected: impl IntoIterator<Item = W>,
    ) -> Diagnostic {
        let span = self.current.span;
        let (message, word) = match self.current.kind {
            Kind::Bad => return Lexer::diagnostic(self.current, &self.text),
            Kind::End => ("unexpected end of input".to_owned(), None),
            Kind::Newline => ("unexpected end of line".to_owned(), None),
            Kind::Sign(sign) => (format!("unexpected `{sign}`"), None),
            Kind::Quoted => {
                let word = shown(self.word());
                (format!("unexpected \"{word}\""), None)
            }
            Kind::Word => {
                let word = self.word();
                let message = format!("unexpected `{}`", shown(word));
                (message, Some(word))
            }
        };
        let diagnostic = Diagnostic::new(span, message).expecting(expected);
        match word {
            Some(word) => diagnostic.nearest_to(word),
            None => diagnostic,
        }
    }

    /// Creates the error that a property was already specified.
    pub(crate) fn repeated(&self, start: Span, what: &str) -> Diagnostic {
        Diagnostic::new(self.since(start), format!("duplicate {what}"))
    }

    /// Creates the error that the current token is not a known name.
    pub(crate) fn unknown<W: AsRef<str>>(
        &self,
        what: &str,
        known: impl IntoIterator<Item = W>,
    ) -> Diagnostic {
        if !matches!(self.current.kind, Kind::Word | Kind::Quoted) {
            return self.unexpected(known);
        }
        let word = self.word();
        Diagnostic::new(
            self.current.span,
            format!("unknown {what} `{}`", shown(word)),
        )
        .expecting(known)
        .nearest_to(word)
    }

    /// Returns the range from this location to the end of the previous token.
    pub(crate) fn since(&self, start: Span) -> Span {
        match self.before.source == start.source && self.before.end > start.start {
            true => Span {
                end: self.before.end,
                ..start
            },
            false => start,
        }
    }

    /// Runs `what`. Parsing cannot continue after its errors.
    pub(crate) fn fatal<T>(
        &mut self,
        what: impl FnOnce(&mut Self) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        let done = what(self);
        self.is_fatal |= done.is_err();
        done
    }

    /// Parses a command or an entry of a block. Records an error, and continues after the end of its line and its
    /// blocks; returns `None` then.
    ///
    /// # Errors
    /// An error after which parsing cannot continue.
    pub(crate) fn recovering<T>(
        &mut self,
        what: impl FnOnce(&mut Self) -> Result<T, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        let start = self.current.span;
        let diagnostic = match what(self) {
            Ok(parsed) => return Ok(Some(parsed)),
            Err(diagnostic) => diagnostic,
        };
        let is_elsewhere = self.current.span.source != start.source;
        if self.is_fatal || is_elsewhere || self.errors.len() + 1 >= Diagnostic::MAX {
            self.is_fatal = true;
            return Err(diagnostic);
        }
        // Braces that the command or entry has opened.
        let mut depth = 0;
        let mut read = Lexer::new(start.source, self.sources.text(start.source));
        read.go_to(start.start);
        loop {
            let token = read.next();
            if token.kind == Kind::End || token.span.start >= self.current.span.start {
                break;
            }
            match token.kind {
                Kind::Sign("{") => depth += 1,
                Kind::Sign("}") => depth -= 1,
                _ => {}
            }
        }
        // A line that begins with a statement or an object is hardly a part of a list: the list's brace is missing.
        let line = self.text.get(..self.current.span.start as usize);
        let line = line.and_then(|text| text.rsplit('\n').next());
        let begins_line = line.is_some_and(|line| line.trim().is_empty());
        let begins_entry = self.at_statement() || OBJECTS.iter().any(|word| self.at(word));
        let lacks_brace = depth > 0 && begins_line && begins_entry;
        if !lacks_brace && !self.skip_entry(depth) {
            self.is_fatal = true;
            return Err(diagnostic);
        }
        self.record(diagnostic);
        Ok(None)
    }

    /// Skips the rest of a command or entry that has opened this many braces; returns `false` if it does not end.
    fn skip_entry(&mut self, mut depth: i32) -> bool {
        loop {
            match self.current.kind {
                Kind::End | Kind::Bad => return false,
                Kind::Sign("}") if depth <= 0 => return true,
                Kind::Sign("}") => depth -= 1,
                Kind::Sign("{") => depth += 1,
                _ if depth <= 0 && self.at_separator() => return true,
                _ => {}
            }
            self.advance();
        }
    }

    /// Records an error, unless it may follow from the one before: it is in the same line, or further up.
    pub(crate) fn record(&mut self, diagnostic: Diagnostic) {
        let is_new = self.errors.last().is_none_or(|last| {
            let (last, span) = (last.span(), diagnostic.span());
            let text = self.sources.text(span.source);
            let between = text.get(last.start as usize..span.start as usize);
            last.source != span.source || between.is_some_and(|between| between.contains('\n'))
        });
        if is_new {
            self.errors.push(diagnostic);
        }
    }

    /// Runs `what` one level deeper; fails at the maximum depth.
    pub(crate) fn deeper<T>(
        &mut self,
        what: impl FnOnce(&mut Self) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        if self.depth >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        self.depth += 1;
        let done = what(self);
        self.depth -= 1;
        done
    }

    pub(crate) fn too_deep(&self) -> Diagnostic {
        let message = "too many nested braces, parentheses and operations";
        Diagnostic::new(self.current.span, message)
    }

    /// Parses a constant.
    pub(crate) fn symbol(&mut self) -> Symbol {
        let symbol = Symbol {
            text: self.word().into(),
            is_quoted: self.is_quoted(),
            span: self.current.span,
        };
        self.advance();
        symbol
    }

    /// Parses the name of a table, chain, set, …
    pub(crate) fn name(&mut self, of: &str) -> Result<Name<'static>, Diagnostic> {
        if self.is_quoted() {
            let diagnostic = self.unexpected([format!("the name of {of}")]);
            return Err(diagnostic.with_hint("names are written without quotation marks"));
        }
        if !self.is_word() {
            return Err(self.unexpected([format!("the name of {of}")]));
        }
        if self.word().ends_with('*') {
            let message = format!("`{}` is not a valid name for {of}", shown(self.word()));
            return Err(Diagnostic::new(self.current.span, message));
        }
        if self.word().len() > MAX_NAME_LENGTH {
            let message = format!("name is longer than {MAX_NAME_LENGTH} bytes");
            return Err(Diagnostic::new(self.current.span, message));
        }
        let name = self.word().to_owned().into();
        self.advance();
        Ok(name)
    }

    /// Parses a name as a string.
    pub(crate) fn name_text(&mut self, of: &str) -> Result<String, Diagnostic> {
        let name = self.name(of)?;
        Ok(name.to_string())
    }

    /// Parses a quoted string or a single word, for comments, log prefixes, …
    pub(crate) fn string(&mut self, what: &str) -> Result<String, Diagnostic> {
        if !(self.is_word() || self.is_quoted()) {
            return Err(self.unexpected([format!("{what} in quotation marks")]));
        }
        let text = self.word().to_owned();
        self.advance();
        Ok(text)
    }

    /// Parses a number of this type.
    pub(crate) fn number<N: TryFrom<u64>>(&mut self, what: &str) -> Result<N, Diagnostic> {
        let number = match self.is_word() {
            true => parse_number(self.word()),
            false => None,
        };
        let Some(number) = number else {
            return Err(match self.is_word() && starts_as_number(self.word()) {
                true => Diagnostic::new(
                    self.current.span,
                    format!("invalid number `{}`", shown(self.word())),
                )
                .expecting([what]),
                false => self.unexpected([what]),
            });
        };
        match N::try_from(number) {
            Ok(number) => {
                self.advance();
                Ok(number)
            }
            Err(_) => {
                let largest = (u128::MAX >> (128 - 8 * size_of::<N>())).to_string();
                let message = format!("{number} is too large for {what}: the maximum is {largest}");
                Err(Diagnostic::new(self.current.span, message))
            }
        }
    }

    /// Parses the timeout of an element, in milliseconds. 0 means the set's default.
    pub(crate) fn lifetime(&mut self) -> Result<Option<u64>, Diagnostic> {
        self.time().map(|time| Some(time).filter(|time| *time > 0))
    }

    /// Parses a time in milliseconds: `1d2h`, `500ms`.
    pub(crate) fn time(&mut self) -> Result<u64, Diagnostic> {
        if !self.is_word() {
            return Err(self.unexpected(["a time like 1h30m"]));
        }
        match parse_time(self.word()).filter(|_| has_ordered_units(self.word())) {
            Some(time) => {
                self.advance();
                Ok(time)
            }
            None => {
                let message = format!("invalid time `{}`", shown(self.word()));
                let diagnostic = Diagnostic::new(self.current.span, message);
                Err(diagnostic.with_hint("use a time like 30s, 1h30m or 2d: days d, hours h, minutes m, seconds s, milliseconds ms, in this order"))
            }
        }
    }
}

fn starts_as_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// Parses a number like nft: hexadecimal with prefix `0x`, octal with prefix `0`.
pub(crate) fn number(text: &str) -> Option<u128> {
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(digits, base).ok()
}

/// Parses a number like [`number`], of at most 64 bits.
pub(crate) fn parse_number(word: &str) -> Option<u64> {
    u64::try_from(number(word)?).ok()
}

/// Returns `true` if a time has units, from days to milliseconds, each at most once.
pub(crate) fn has_ordered_units(time: &str) -> bool {
    const ORDER: [&str; 5] = ["d", "h", "m", "s", "ms"];
    let units = time.split(|c: char| c.is_ascii_digit());
    let units = units.filter(|unit| !unit.is_empty());
    let ranks: Vec<_> = units
        .map(|unit| ORDER.iter().position(|known| *known == unit))
        .collect();
    !ranks.is_empty() && !ranks.contains(&None) && ranks.is_sorted_by(|one, other| one < other)
}

/// Parses a time in milliseconds: `1d2h3m4s5ms`, or a plain number of seconds.
pub(crate) fn parse_time(word: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 6] = [
        ("ms", 1),
        ("w", 604_800_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
    ];
    if let Some(seconds) = parse_number(word) {
        return seconds.checked_mul(1000);
    }
    let (mut left, mut time) = (word, 0_u64);
    while !left.is_empty() {
        let digits = left.bytes().position(|b| !b.is_ascii_digit())?;
        let number: u64 = left[..digits].parse().ok()?;
        left = &left[digits..];
        let (unit, length) = UNITS.iter().find(|(unit, _)| left.starts_with(unit))?;
        left = &left[unit.len()..];
        time = time.checked_add(number.checked_mul(*length)?)?;
    }
    (!word.is_empty()).then_some(time)
}
