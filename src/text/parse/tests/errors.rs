//! Texts that are wrong, and what is said of them.
//!
//! `tests/data/nft/wrong.txt` has each between a line `=== what it is` and a line `---`, and what is said of it behind
//! that. With `CHAINWRIGHT_WRITE_WRONG=1` what is said is written there.

use std::fmt::Write as _;
use std::path::Path;

use super::*;

#[test]
fn what_is_wrong_is_said_where_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nft/wrong.txt");
    let text = std::fs::read_to_string(&path).expect("it is there");
    let mut written = String::new();
    let mut cases = 0;
    let mut differ = Vec::new();
    for case in text.split("=== ").skip(1) {
        let (title, rest) = case.split_once('\n').expect("a title");
        let (input, expected) = rest.split_once("---\n").expect("what is said");
        let expected = expected.trim_end();
        let said = match read(input.trim_end_matches('\n')) {
            Ok(_) => "it is read".to_owned(),
            Err(error) => error.to_string(),
        };
        if said != expected {
            differ.push(format!("{title}\n{said}\n\nexpected:\n{expected}"));
        }
        writeln!(written, "=== {title}\n{input}---\n{said}\n").expect("a string");
        cases += 1;
    }
    if std::env::var_os("CHAINWRIGHT_WRITE_WRONG").is_some() {
        std::fs::write(&path, written).expect("it is written");
        return;
    }
    assert!(cases >= 120, "{cases}");
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
    assert!(!text.contains("it is read"), "something is not wrong");
}

#[test]
fn an_error_says_where_it_is_also_to_programs() {
    let error = read("table ip t {\n\tchain c {\n\t\ttcp dprot 22 accept\n\t}\n}\n").unwrap_err();
    assert_eq!((error.line, error.column), (3, 7));
    assert_eq!(error.source, "test.nft");
    assert_eq!(error.message, "`dprot` is no field of tcp");
    assert_eq!(error.hint.as_deref(), Some("did you mean `dport`?"));
    assert!(error.expected.iter().any(|word| word == "dport"));
}

#[test]
fn no_character_of_a_text_gets_to_the_terminal_that_does_something_there() {
    let error = read("table ip t {\n\u{1b}[2J\u{202e}x\n}").unwrap_err();
    let shown = error.to_string();
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    let error = parse(Source::new("a\u{1b}b", "?"), &NoIncludes).unwrap_err();
    assert!(!error.to_string().contains('\u{1b}'));
    // The same in a word that is repeated, and in a long line.
    let long = format!("add table ip t; {} \u{7}", "add table ip t; ".repeat(1000));
    let shown = read(&long).unwrap_err().to_string();
    assert!(!shown.contains('\u{7}'));
    assert!(shown.len() < 1000, "{shown}");
}
