//! Splits a line into words like `iptables-restore`.
//!
//! Blanks and tabs separate words. A `"` starts a quoted part, also within a word; in it, `\` escapes
//! the next byte; the closing `"` ends the word as well. Outside quotes `\` and `'` are
//! ordinary bytes.

use std::borrow::Cow;

use bstr::{BStr, ByteSlice};

use super::ParseError;

/// A word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'a> {
    /// Its bytes, without quotes.
    pub bytes: Cow<'a, [u8]>,
    /// Its start in the line, in bytes from 1.
    pub column: usize,
}

impl Word<'_> {
    /// Returns its bytes.
    pub(super) fn text(&self) -> &BStr {
        self.bytes.as_bstr()
    }
}

/// Appends the line's words.
///
/// # Errors
/// A quoted part is not closed, or there is a NUL or a newline.
pub fn words<'a>(line: &'a [u8], words: &mut Vec<Word<'a>>) -> Result<(), ParseError> {
    if let Some(at) = line.find_byteset(b"\0\n") {
        return Err(ParseError::new(at + 1, "it contains a NUL or a newline"));
    }
    // The start of the current word, or of the next.
    let mut start = 0;
    let mut at = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        // Words are short: examine eight bytes together, and pad the last ones with blanks.
        let eight = rest.first_chunk().map_or_else(
            || {
                let mut eight = [b' '; 8];
                eight[..rest.len()].copy_from_slice(rest);
                u64::from_le_bytes(eight)
            },
            |eight| u64::from_le_bytes(*eight),
        );
        let mut low = not_above_quotes(eight);
        let mut next = at + size_of::<u64>();
        while low != 0 {
            let bit = low.trailing_zeros() & !7;
            low &= low - 1;
            let end = at + bit as usize / 8;
            match (eight >> bit) as u8 {
                b' ' | b'\t' => {
                    if end > start {
                        words.push(Word {
                            bytes: Cow::Borrowed(&line[start..end]),
                            column: start + 1,
                        });
                    }
                    start = end + 1;
                }
                b'"' => {
                    let (bytes, length) = quoted(&line[start..], end - start)
                        .ok_or_else(|| ParseError::new(end + 1, "unterminated quotes"))?;
                    words.push(Word {
                        bytes,
                        column: start + 1,
                    });
                    start += length;
                    next = start;
                    break;
                }
                _ => {}
            }
        }
        at = next;
    }
    if start < line.len() {
        words.push(Word {
            bytes: Cow::Borrowed(&line[start..]),
            column: start + 1,
        });
    }
    Ok(())
}

/// Sets the top bit of each of eight bytes that is at most a quote, like blanks and tabs; the first byte
/// is the lowest.
const fn not_above_quotes(eight: u64) -> u64 {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    const TOP: u64 = EACH << 7;
    // Without its top bit, each byte's sum stays within the byte.
    let above = (eight & !TOP) + EACH * (0x7f - b'"' as u64);
    !(above | eight) & TOP
}

/// Parses the word with its opening quote at `open`; returns its length in the line, too.
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
    use proptest::prelude::*;

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

    /// Splits byte by byte, as the module's documentation describes.
    fn plainly(line: &[u8]) -> Option<Vec<(Vec<u8>, usize)>> {
        let mut found = Vec::new();
        let mut word: Option<(Vec<u8>, usize)> = None;
        let mut bytes = line.iter().enumerate();
        while let Some((at, byte)) = bytes.next() {
            match byte {
                b' ' | b'\t' => found.extend(word.take()),
                b'"' => {
                    let (mut own, column) = word.take().unwrap_or((Vec::new(), at + 1));
                    loop {
                        match bytes.next()?.1 {
                            b'"' => break,
                            b'\\' => own.push(*bytes.next()?.1),
                            byte => own.push(*byte),
                        }
                    }
                    found.push((own, column));
                }
                byte => word.get_or_insert((Vec::new(), at + 1)).0.push(*byte),
            }
        }
        found.extend(word);
        Some(found)
    }

    proptest! {
        #[test]
        fn eight_bytes_together_are_split_as_one_by_one(
            line in prop::collection::vec(
                prop::sample::select(b"aaaaaa--!#\\'\"\"  \t\x01\x7f\x80\xa2\xff".to_vec()),
                0..40,
            ),
        ) {
            let mut found = Vec::new();
            let split = words(&line, &mut found).ok().map(|()| {
                found.iter().map(|word| (word.bytes.to_vec(), word.column)).collect()
            });
            prop_assert_eq!(split, plainly(&line));
        }
    }
}
