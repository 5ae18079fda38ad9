//! Error messages for invalid texts; `tests/lang/script.rs` has many more.

use super::*;

#[test]
fn errors_have_location_fields() {
    let error = read("table ip t {\n\tchain c {\n\t\ttcp dprot 22 accept\n\t}\n}\n").unwrap_err();
    assert_eq!((error.line, error.column), (3, 7));
    assert_eq!(error.source, "test.nft");
    assert_eq!(error.message, "unknown tcp field `dprot`");
    assert_eq!(error.hint.as_deref(), Some("did you mean `dport`?"));
    assert!(error.expected.iter().any(|word| word == "dport"));
}

#[test]
fn errors_escape_control_characters() {
    let error = read("table ip t {\n\u{1b}[2J\u{202e}x\n}").unwrap_err();
    let shown = error.to_string();
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    let error = parse(Source::new("a\u{1b}b", "?"), &NoIncludes).unwrap_err();
    assert!(!error.to_string().contains('\u{1b}'));
    // Same in a word quoted by the message, and in a long line.
    let long = format!("add table ip t; {} \u{7}", "add table ip t; ".repeat(1000));
    let shown = read(&long).unwrap_err().to_string();
    assert!(!shown.contains('\u{7}'));
    assert!(shown.len() < 1000, "{shown}");
}

/// A text has neither NUL bytes nor invalid UTF-8, also in strings and comments.
#[test]
fn bytes_that_are_not_text_are_refused_where_they_are() {
    for (text, message) in [
        (
            &b"table ip t { comment \"a\0\"; }\n"[..],
            "test.nft:1:24: NUL byte",
        ),
        (b"# \0\n", "test.nft:1:3: NUL byte"),
        (b"add table ip t\n\xff", "test.nft:2:1: invalid UTF-8"),
    ] {
        let error = parse(Source::new("test.nft", text), &NoIncludes).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with(message), "{error}");
    }
}
