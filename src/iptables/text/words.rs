//! A line's words, as `iptables-restore` splits it.
//!
//! Blanks and tabs separate words. A `"` starts a quoted part, also within a word; in it, `\` takes
//! the next byte as it is; the `"` that ends it ends the word as well. Outside quotes `\` and `'` are
//! bytes as any other.

use std::borrow::Cow;

use bstr::{BStr, ByteSlice};

use super::ParseError;

/// A word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'a> {
    /// Its bytes, without quotes.
    pub bytes: Cow<'a, [u8]>,
    /// Where it starts in the line, in bytes from 1.
    pub column: usize,
}

impl Word<'_> {
    /// Its bytes.
    pub(super) fn text(&self) -> &BStr {
        self.bytes.as_bstr()
    }
}

/// Adds the line's words.
///
/// # Errors
/// A quoted part does not end, or there is a NUL or an end of line.
pub fn words<'a>(line: &'a [u8], words: &mut Vec<Word<'a>>) -> Result<(), ParseError> {
    if let Some(at) = line.find_byteset(b"\0\n") {
        return Err(ParseError::new(
            at + 1,
            "there is a NUL or the end of a line within it",
        ));
    }
    let mut at = 0;
    while at < line.len() {
        if matches!(line[at], b' ' | b'\t') {
            at += 1;
            continue;
        }
        let rest = &line[at..];
        let end = end_of_word(rest);
        let column = at + 1;
        if rest.get(end) != Some(&b'"') {
            words.push(Word {
                bytes: Cow::Borrowed(&rest[..end]),
                column,
            });
            at += end;
            continue;
        }
        let (bytes, length) = quoted(rest, end).ok_or_else(|| {
            ParseError::new(at + end + 1, "the quotes that open here do not close")
        })?;
        words.push(Word { bytes, column });
        at += length;
    }
    Ok(())
}

/// Where the first blank, tab or quotes are; at the end, if there are none.
#[inline]
fn end_of_word(rest: &[u8]) -> usize {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    // Words are short: a search made for long texts would take longer to begin. Nearly all bytes are
    // above all three that end one; eight are looked at together until one is not.
    let mut start = 0;
    for eight in rest.as_chunks::<8>().0 {
        let eight = u64::from_le_bytes(*eight);
        // The top bit of each byte that is not above quotes, and maybe of some behind the first such.
        let low = eight.wrapping_sub(EACH * (b'"' as u64 + 1)) & !eight & (EACH << 7);
        if low != 0 {
            start += low.trailing_zeros() as usize / 8;
            break;
        }
        start += 8;
    }
    let ends = |byte: &u8| *byte <= b'"' && matches!(byte, b' ' | b'\t' | b'"');
    let rest = rest.get(start..).unwrap_or_default();
    start + rest.iter().position(ends).unwrap_or(rest.len())
}

/// The word that has its opening quotes at `open`, and its length in the line.
fn quoted(rest: &[u8], open: usize) -> Option<(Cow<'_, [u8]>, usize)> {
    let inner = &rest[open + 1..];
    let plain = inner.find_byteset(b"\"\\")?;
    if open == 0 && inner[plain] == b'"' {
        return Some((Cow::Borrowed(&inner[..plain]), plain + 2));
    }
    let mut bytes = rest[..open].to_vec();
    let mut at = 0;
    loop {
        match *inner.get(at)? {
            b'"' => return Some((Cow::Owned(bytes), open + at + 2)),
            b'\\' => {
                bytes.push(*inner.get(at + 1)?);
                at += 2;
            }
            byte => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Result<Vec<(String, usize)>, ParseError> {
        let mut found = Vec::new();
        words(line.as_bytes(), &mut found)?;
        let word = |word: &Word<'_>| (word.text().to_string(), word.column);
        Ok(found.iter().map(word).collect())
    }

    #[test]
    fn blanks_quotes_and_escapes() {
        let word = |text: &str, column| (text.to_owned(), column);
        assert_eq!(
            split("-A\tINPUT  x "),
            Ok(vec![word("-A", 1), word("INPUT", 4), word("x", 11)])
        );
        assert_eq!(
            split(r#"a "b \"c\" \\" d"#),
            Ok(vec![word("a", 1), word(r#"b "c" \"#, 3), word("d", 16)])
        );
        assert_eq!(split(r#""" x"#), Ok(vec![word("", 1), word("x", 4)]));
        assert_eq!(split(r#"a"b c"d"#), Ok(vec![word("ab c", 1), word("d", 7)]));
        assert_eq!(
            split(r"it's a\b"),
            Ok(vec![word("it's", 1), word(r"a\b", 6)])
        );
        assert_eq!(split("  "), Ok(vec![]));
        assert_eq!(split(r#"a "bc"#).unwrap_err().column, 3);
        assert_eq!(split(r#"a "bc\"#).unwrap_err().column, 3);
        assert_eq!(split(r#"a "bc\""#).unwrap_err().column, 3);
        assert_eq!(split("a\0").unwrap_err().column, 2);
        assert_eq!(split("a\n").unwrap_err().column, 2);
    }
}
