//! Escapes names and texts of other programs for output on one line.

use std::fmt;

use bstr::{BStr, ByteSlice};

/// Returns `true` for a character that could end the line, drive a terminal, be invisible, or change the direction of
/// the text.
#[must_use]
pub fn is_misleading(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
        )
}

/// Displays a byte string. [Misleading](is_misleading) characters, backslashes and bytes that are not UTF-8 cause it to
/// be escaped; other strings are unchanged. Different byte strings have different output.
pub struct Escaped<'a>(pub &'a BStr);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(text) = self.0.to_str()
            && !text.contains(|c| is_misleading(c) || c == '\\')
        {
            return f.pad(text);
        }
        let mut escaped = String::new();
        for chunk in self.0.utf8_chunks() {
            escaped.extend(chunk.valid().escape_debug());
            for byte in chunk.invalid() {
                escaped += &format!("\\x{byte:02x}");
            }
        }
        f.pad(&escaped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_lines() {
        for (name, shown) in [
            (&b"KUBE-SVC"[..], "KUBE-SVC"),
            (b"a b\"c", "a b\"c"),
            (b"a\\xff", r"a\\xff"),
            ("größe/äöü".as_bytes(), "größe/äöü"),
            (b"a\nb\x1b[2J\x07", r"a\nb\u{1b}[2J\u{7}"),
            (b"\x7f", r"\u{7f}"),
            ("a\u{202e}b\u{200b}".as_bytes(), r"a\u{202e}b\u{200b}"),
            ("\u{9b}2J".as_bytes(), r"\u{9b}2J"),
            (b"a\xff", r"a\xff"),
            (b"\xfe\xe2\x82b", r"\xfe\xe2\x82b"),
        ] {
            assert_eq!(Escaped(name.into()).to_string(), shown);
        }
        assert_eq!(format!("[{:5}]", Escaped("nat".into())), "[nat  ]");
    }
}
