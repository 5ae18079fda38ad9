//! Strings that iptables-save formats differently than most extensions.

use crate::xt::Text;

/// Appends a string without quotes, unless it is empty or contains a space or a quote.
/// iptables-save never quotes it, so its output for such a string cannot be parsed.
pub(super) fn bare(text: &mut Text, string: &[u8]) {
    let splits = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'"';
    if string.is_empty() || string.iter().any(splits) {
        quoted(text, string);
    } else {
        text.word(string);
    }
}

/// Appends a string in quotes, with `"` and `\` escaped.
pub(in crate::xt) fn quoted(text: &mut Text, string: &[u8]) {
    text.push(" \"");
    for byte in string {
        if matches!(byte, b'"' | b'\\') {
            text.push("\\");
        }
        text.push([*byte]);
    }
    text.push("\"");
}
