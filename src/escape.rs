//! Names and texts of other programs in a line for people.

use std::fmt;

use bstr::{BStr, ByteSlice};

/// Displays a byte string with escapes if it has control characters, which could end the line, forge another or drive a
/// terminal; any other as it is.
pub(crate) struct Escaped<'a>(pub(crate) &'a BStr);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_str_lossy();
        match text.contains(char::is_control) {
            true => f.pad(&text.escape_debug().to_string()),
            false => f.pad(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_line() {
        for (name, shown) in [
            (&b"KUBE-SVC"[..], "KUBE-SVC"),
            (b"a b\"c\\", "a b\"c\\"),
            ("größe".as_bytes(), "größe"),
            (b"a\nb\x1b[2J\x07", r"a\nb\u{1b}[2J\u{7}"),
            (b"\x7f", r"\u{7f}"),
            ("\u{9b}2J".as_bytes(), r"\u{9b}2J"),
            (b"a\xff", "a\u{fffd}"),
        ] {
            assert_eq!(Escaped(name.into()).to_string(), shown);
        }
        assert_eq!(format!("[{:5}]", Escaped("nat".into())), "[nat  ]");
    }
}
