//! JSON layout of nft and its library, jansson, byte for byte.

use std::fmt;
use std::io;

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

/// Writes one line, with a blank after commas and colons. Only characters that require it are escaped; numeric
/// escapes have uppercase digits.
struct Layout;

impl Formatter for Layout {
    fn begin_array_value<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        separate(out, is_first)
    }

    fn begin_object_key<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        separate(out, is_first)
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_char_escape<W: io::Write + ?Sized>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        let short = match escape {
            CharEscape::Quote => b"\\\"",
            CharEscape::ReverseSolidus => b"\\\\",
            CharEscape::Solidus => b"\\/",
            CharEscape::Backspace => b"\\b",
            CharEscape::FormFeed => b"\\f",
            CharEscape::LineFeed => b"\\n",
            CharEscape::CarriageReturn => b"\\r",
            CharEscape::Tab => b"\\t",
            CharEscape::AsciiControl(byte) => return write!(out, "\\u{byte:04X}"),
        };
        out.write_all(short)
    }
}

fn separate<W: io::Write + ?Sized>(out: &mut W, is_first: bool) -> io::Result<()> {
    match is_first {
        true => Ok(()),
        false => out.write_all(b", "),
    }
}

/// Writes a value in this layout.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, value: &impl Serialize) -> fmt::Result {
    let mut serializer = Serializer::with_formatter(Utf8(f), Layout);
    value.serialize(&mut serializer).map_err(|_| fmt::Error)
}

/// Adapter that expects UTF-8.
struct Utf8<'f, 'a>(&'f mut fmt::Formatter<'a>);

impl io::Write for Utf8<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(io::Error::other)?;
        self.0.write_str(text).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Displays a value in this layout.
pub(crate) struct JanssonLayout<T>(pub(crate) T);

impl<T: Serialize> fmt::Display for JanssonLayout<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_layout_equals_jansson() {
        for (value, laid) in [
            (json!({}), "{}"),
            (json!([]), "[]"),
            (json!({"a": [1, -2, "x"]}), r#"{"a": [1, -2, "x"]}"#),
            (
                json!([{"a": null}, {"b": true}]),
                r#"[{"a": null}, {"b": true}]"#,
            ),
            (json!("é/\"\\\u{8}\u{c}\n\r\t"), r#""é/\"\\\b\f\n\r\t""#),
            (
                json!("\u{1}\u{1f}\u{7f}\u{1f600}"),
                "\"\\u0001\\u001F\u{7f}\u{1f600}\"",
            ),
        ] {
            assert_eq!(JanssonLayout(value).to_string(), laid);
        }
    }
}
