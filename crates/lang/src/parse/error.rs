//! Errors in a text, with location and suggestions.

use std::fmt;

use super::source::Sources;
use crate::syntax::Span;
use chainwright::internal::{Class, is_misleading, nearest};
use chainwright::{Errno, ErrorKind};

/// Maximum length of an excerpt, in characters.
const MAX_EXCERPT_WIDTH: usize = 160;
/// Maximum number of expected words in a message.
const MAX_EXPECTED_WORDS: usize = 24;

/// Error in a text in nft's language.
///
/// `Display` prints the location, the line with the location underlined, the expected words and the likely spelling:
///
/// ```text
/// rules.nft:3:9: unknown tcp field `dprot`
///     tcp dprot 22 accept
///         ^^^^^
/// expected: sport, dport, sequence, ackseq, doff, reserved, flags, window, checksum, urgptr, option
/// did you mean `dport`?
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// Name of the text: a file's path, or the name that the caller passed.
    pub source: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Error message.
    pub message: String,
    /// Words that would be valid at the location.
    pub expected: Vec<String>,
    /// Suggested spelling or action.
    pub hint: Option<String>,
    excerpt: Box<Excerpt>,
}

chainwright::debug_as_message!(Error);

chainwright::classified!(Error, |error| match error.excerpt.cause {
    Cause::Text => ErrorKind::Invalid.into(),
    Cause::Missing => ErrorKind::NotFound.into(),
    Cause::Refused(errno) => Class::of_operation(errno),
});

/// Kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The text is invalid.
    Text,
    /// The text refers to a missing object.
    Missing,
    /// The kernel rejected the operation with this error number.
    Refused(Errno),
}

/// An [`Error`] in the format of [`as_nft`](Error::as_nft).
struct NftFormat<'e>(&'e Error);

impl Error {
    /// Returns the further errors of the same text, in order: after an error, the parser continues with the next line or
    /// block, up to ten errors. `Display` prints them after the first one.
    #[must_use]
    pub fn further(&self) -> &[Self] {
        &self.excerpt.further
    }

    /// Formats the error like the program `nft`, followed by the additional information of [`Error`]. Programs that
    /// parse nft's output look for the first line:
    ///
    /// | error | first line |
    /// |---|---|
    /// | the text refers to a missing object | `Error: No such file or directory` |
    /// | the kernel rejected the operation | `Error: Could not process rule: ` and glibc's text for the number |
    /// | the text is invalid | `Error: ` and the [message](Self::message) |
    ///
    /// The location (`rules.nft:3:9-13: `) precedes it, unless the [source](Self::source)'s name begins with `<`, as
    /// in `<command line>`. The line and the underlined location follow.
    ///
    /// ```
    /// use chainwright_lang::Script;
    ///
    /// let error = Script::parse("<command line>", "add rule ip t c tcp dprot 22").unwrap_err();
    /// let text = error.as_nft().to_string();
    /// assert!(text.starts_with("Error: unknown tcp field `dprot`\nadd rule ip t c tcp dprot 22\n"));
    /// ```
    #[must_use]
    pub fn as_nft(&self) -> impl fmt::Display {
        NftFormat(self)
    }

    pub(crate) fn refused(mut self, errno: Errno) -> Self {
        self.excerpt.cause = Cause::Refused(errno);
        self
    }

    /// Writes the line with the location underlined.
    fn excerpt(&self, f: &mut fmt::Formatter<'_>, indent: &str) -> fmt::Result {
        let Excerpt {
            text, from, length, ..
        } = &*self.excerpt;
        write!(f, "\n{indent}{text}\n{indent}")?;
        // Keeps tabs, so that the underline is aligned.
        for c in text.chars().take(*from) {
            f.write_str(if c == '\t' { "\t" } else { " " })?;
        }
        for _ in 0..(*length).max(1) {
            f.write_str("^")?;
        }
        Ok(())
    }

    /// Writes the expected words and the hint.
    fn advice(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.expected.is_empty() {
            let expected = self.expected.iter().map(|word| match is_sign(word) {
                true => format!("`{word}`"),
                false => word.clone(),
            });
            write!(f, "\nexpected: {}", expected.collect::<Vec<_>>().join(", "))?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n{hint}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for NftFormat<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.0;
        if !error.source.starts_with('<') {
            let source = harmless_text(&error.source);
            let (line, column) = (error.line, error.column);
            let end = column + error.excerpt.length.max(1) - 1;
            write!(f, "{source}:{line}:{column}-{end}: ")?;
        }
        match error.excerpt.cause {
            Cause::Text => write!(f, "Error: {}", error.message)?,
            Cause::Missing => f.write_str("Error: No such file or directory")?,
            Cause::Refused(errno) => {
                write!(f, "Error: Could not process rule: {}", errno.strerror())?;
            }
        }
        error.excerpt(f, "")?;
        if error.excerpt.cause != Cause::Text {
            write!(f, "\n{}", error.message)?;
        }
        error.advice(f)?;
        error
            .excerpt
            .further
            .iter()
            .try_for_each(|further| write!(f, "\n{}", further.as_nft()))
    }
}

/// Excerpt of the line, and the position and length of the underlined part in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    text: String,
    from: usize,
    length: usize,
    /// Kind of the error; stored here to keep `Error` small, like the next one.
    cause: Cause,
    further: Vec<Error>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = harmless_text(&self.source);
        write!(
            f,
            "{source}:{}:{}: {}",
            self.line, self.column, self.message
        )?;
        self.excerpt(f, "    ")?;
        self.advice(f)?;
        self.excerpt
            .further
            .iter()
            .try_for_each(|further| write!(f, "\n{further}"))
    }
}

impl std::error::Error for Error {}

/// Returns `true` if the text contains no letters or digits.
fn is_sign(word: &str) -> bool {
    !word.contains(|c: char| c.is_alphanumeric())
}

/// Returns a character, or its escape if it could affect a terminal.
fn harmless(c: char) -> impl Iterator<Item = char> {
    let is_harmful = c != '\t' && is_misleading(c);
    let escape = is_harmful.then(|| c.escape_unicode());
    let plain = (!is_harmful).then_some(c);
    plain.into_iter().chain(escape.into_iter().flatten())
}

fn harmless_text(text: &str) -> String {
    text.chars().flat_map(harmless).collect()
}

/// Shortens a text for a message.
pub(crate) fn shown(text: &str) -> String {
    const MAX_LENGTH: usize = 40;
    let mut shown: String = text.chars().take(MAX_LENGTH).flat_map(harmless).collect();
    if text.chars().nth(MAX_LENGTH).is_some() {
        shown.push('…');
    }
    shown
}

/// Error at a location; becomes an [`Error`] with the source texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagnostic(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    span: Span,
    message: String,
    expected: Vec<String>,
    hint: Option<String>,
    cause: Cause,
    further: Vec<Diagnostic>,
}

impl Diagnostic {
    /// Number of errors of a text that are reported at once, as in nft.
    pub(crate) const MAX: usize = 10;

    /// Returns the location.
    pub(crate) fn span(&self) -> Span {
        self.0.span
    }

    /// Joins the errors of a text; `None` if there are none.
    pub(crate) fn joined(errors: Vec<Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut first = errors.next()?;
        first.0.further.extend(errors);
        Some(first)
    }

    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            span,
            message: message.into(),
            expected: Vec::new(),
            hint: None,
            cause: Cause::Text,
            further: Vec::new(),
        }))
    }

    /// Creates an error about a missing object.
    pub(crate) fn missing(span: Span, message: impl Into<String>) -> Self {
        let mut diagnostic = Self::new(span, message);
        diagnostic.0.cause = Cause::Missing;
        diagnostic
    }

    /// Adds expected words.
    pub(crate) fn expecting<W: AsRef<str>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        let words = words.into_iter().map(|word| word.as_ref().to_owned());
        self.0.expected.extend(words);
        self
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds a hint with the expected word that is most similar to this one.
    pub(crate) fn nearest_to(mut self, word: &str) -> Self {
        let expected = self.0.expected.iter().map(String::as_str);
        let expected = expected.filter(|word| !is_sign(word));
        if self.0.hint.is_none()
            && let Some(near) = nearest(word.as_bytes(), expected)
        {
            self.0.hint = Some(format!("did you mean `{near}`?"));
        }
        self
    }

    /// Adds the source line.
    pub(crate) fn explain(self, sources: &Sources) -> Error {
        let Inner {
            span,
            message,
            mut expected,
            hint,
            cause,
            further,
        } = *self.0;
        let (name, line, before, marked, after) = sources.line(span);
        let column = before.chars().count() + 1;
        let before = harmless_text(before);
        let before_it = before.chars().count();
        let length = marked.chars().flat_map(harmless).count();
        // Only the part of a long line near the location.
        let (skipped, first) = match before_it >= MAX_EXCERPT_WIDTH / 2 {
            true => ("…", before_it + 1 - MAX_EXCERPT_WIDTH / 2),
            false => ("", 0),
        };
        let text = marked.chars().chain(after.chars()).flat_map(harmless);
        let mut excerpt: String = skipped.to_owned();
        let mut text = before.chars().chain(text).skip(first);
        excerpt.extend(text.by_ref().take(MAX_EXCERPT_WIDTH));
        if text.next().is_some() {
            excerpt.push('…');
        }
        let from = before_it - first + skipped.chars().count();
        let room = excerpt.chars().count().saturating_sub(from);
        let more = expected.len().saturating_sub(MAX_EXPECTED_WORDS);
        expected.truncate(MAX_EXPECTED_WORDS);
        if more > 0 {
            expected.push(format!("… and {more} more"));
        }
        Error {
            source: name.to_owned(),
            line,
            column,
            message: harmless_text(&message),
            expected: expected.iter().map(|word| harmless_text(word)).collect(),
            hint: hint.as_deref().map(harmless_text),
            excerpt: Box::new(Excerpt {
                cause,
                text: excerpt,
                from,
                length: length.min(room),
                further: further
                    .into_iter()
                    .map(|each| each.explain(sources))
                    .collect(),
            }),
        }
    }
}
