//! What is wrong with a text, where, and what was meant.

use std::fmt;

use super::source::Sources;
use crate::syntax::Place;
use chainwright::Errno;
use chainwright::internal::nearest;

/// How many characters of a line are shown.
const WIDEST: usize = 160;
/// How many of the words that might have stood there are given.
const MANY: usize = 24;

/// What is wrong with a text in nft's language.
///
/// It displays where that is, the line itself with the place underlined, what was expected there and the likely
/// spelling:
///
/// ```text
/// rules.nft:3:9: `dprot` is no field of tcp
///     tcp dprot 22 accept
///         ^^^^^
/// expected: sport, dport, sequence, ackseq, doff, reserved, flags, window, checksum, urgptr, option
/// did you mean `dport`?
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// What the text is called: a file's path, or what the caller named it.
    pub source: String,
    /// The line, from 1.
    pub line: usize,
    /// The place in the line, in characters from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What might have stood there.
    pub expected: Vec<String>,
    /// What might have been meant, or what to do.
    pub hint: Option<String>,
    excerpt: Box<Excerpt>,
}

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The text itself is wrong.
    Text,
    /// What it names does not exist.
    Missing,
    /// The kernel refused it with this number.
    Refused(Errno),
}

/// An [`Error`] as [`as_nft`](Error::as_nft) shows it.
struct AsNft<'e>(&'e Error);

impl Error {
    /// The error as the program `nft` prints it, and then what [`Error`] says beside that. The first line is nft's own, which
    /// programs look for:
    ///
    /// | error | first line |
    /// |---|---|
    /// | what the text names does not exist | `Error: No such file or directory` |
    /// | the kernel refused it | `Error: Could not process rule: ` and glibc's text for the number |
    /// | the text is wrong | `Error: ` and the [message](Self::message) |
    ///
    /// The place stands before it (`rules.nft:3:9-13: `), but not for a [source](Self::source) whose name begins with `<`,
    /// such as `<command line>`. The line and the underlined place follow.
    ///
    /// ```
    /// use chainwright_lang::Script;
    ///
    /// let error = Script::parse("<command line>", "add rule ip t c tcp dprot 22").unwrap_err();
    /// let text = error.as_nft().to_string();
    /// assert!(text.starts_with("Error: `dprot` is no field of tcp\nadd rule ip t c tcp dprot 22\n"));
    /// ```
    #[must_use]
    pub fn as_nft(&self) -> impl fmt::Display {
        AsNft(self)
    }

    pub(crate) fn refused(mut self, errno: Errno) -> Self {
        self.excerpt.cause = Cause::Refused(errno);
        self
    }

    /// The line, and the place in it underlined.
    fn excerpt(&self, f: &mut fmt::Formatter<'_>, indent: &str) -> fmt::Result {
        let Excerpt {
            text, from, length, ..
        } = &*self.excerpt;
        write!(f, "\n{indent}{text}\n{indent}")?;
        // Tabs stay tabs, so that what is under a character stays under it.
        for c in text.chars().take(*from) {
            f.write_str(if c == '\t' { "\t" } else { " " })?;
        }
        for _ in 0..(*length).max(1) {
            f.write_str("^")?;
        }
        Ok(())
    }

    /// What might have stood there, and what to do.
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

impl fmt::Display for AsNft<'_> {
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
        error.advice(f)
    }
}

/// The line as it is shown, and what of it is underlined: how many characters from which on, counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    text: String,
    from: usize,
    length: usize,
    /// What kind of error it is; it stands here to keep the error small.
    cause: Cause,
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
        self.advice(f)
    }
}

impl std::error::Error for Error {}

/// Whether it has no letter and no digit.
fn is_sign(word: &str) -> bool {
    !word.contains(|c: char| c.is_alphanumeric())
}

/// A character as one that does nothing to a terminal, or its escape.
fn harmless(c: char) -> impl Iterator<Item = char> {
    let is_harmful = c != '\t' && (c.is_control() || is_invisible(c));
    let escape = is_harmful.then(|| c.escape_unicode());
    let plain = (!is_harmful).then_some(c);
    plain.into_iter().chain(escape.into_iter().flatten())
}

fn harmless_text(text: &str) -> String {
    text.chars().flat_map(harmless).collect()
}

/// Whether a character changes the direction of those beside it, or is nothing to be seen.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// What of a text is repeated in a message.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = text.chars().take(LONGEST).flat_map(harmless).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

/// What is wrong at a place: an [`Error`] once the texts are at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    place: Place,
    message: String,
    expected: Vec<String>,
    hint: Option<String>,
    cause: Cause,
}

impl Fault {
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            place,
            message: message.into(),
            expected: Vec::new(),
            hint: None,
            cause: Cause::Text,
        }))
    }

    /// What the text names does not exist.
    pub(crate) fn missing(place: Place, message: impl Into<String>) -> Self {
        let mut fault = Self::new(place, message);
        fault.0.cause = Cause::Missing;
        fault
    }

    /// Says what might have stood there.
    pub(crate) fn expecting<W: AsRef<str>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        let words = words.into_iter().map(|word| word.as_ref().to_owned());
        self.0.expected.extend(words);
        self
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Says what is near to this word among those that might have stood there.
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

    /// With the line that it is in.
    pub(crate) fn explain(self, sources: &Sources) -> Error {
        let Inner {
            place,
            message,
            mut expected,
            hint,
            cause,
        } = *self.0;
        let (name, line, before, marked, after) = sources.line(place);
        let column = before.chars().count() + 1;
        let before = harmless_text(before);
        let before_it = before.chars().count();
        let length = marked.chars().flat_map(harmless).count();
        // Of a long line what is near.
        let (skipped, first) = match before_it >= WIDEST / 2 {
            true => ("…", before_it + 1 - WIDEST / 2),
            false => ("", 0),
        };
        let text = marked.chars().chain(after.chars()).flat_map(harmless);
        let mut excerpt: String = skipped.to_owned();
        let mut text = before.chars().chain(text).skip(first);
        excerpt.extend(text.by_ref().take(WIDEST));
        if text.next().is_some() {
            excerpt.push('…');
        }
        let from = before_it - first + skipped.chars().count();
        let room = excerpt.chars().count().saturating_sub(from);
        let more = expected.len().saturating_sub(MANY);
        expected.truncate(MANY);
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
            }),
        }
    }
}
