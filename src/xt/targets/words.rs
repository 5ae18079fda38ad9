//! Strings that iptables-save prints otherwise than most extensions do.

use crate::xt::Text;

/// Adds a string as it is. It is put in quotes if it is empty or has a blank or quotes in it:
/// iptables-save leaves it bare then, too, but what it prints cannot be read back.
pub(super) fn bare(text: &mut Text, string: &[u8]) {
    let splits = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'"';
    if string.is_empty() || string.iter().any(splits) {
        quoted(text, string);
    } else {
        text.word(string);
    }
}

/// Adds a string in quotes, with `"` and `\` escaped.
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
