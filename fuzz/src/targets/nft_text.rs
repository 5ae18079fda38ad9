//! A text in nft's language: what its rules say is read as what says the same.

use chainwright::fuzzing::nft_rules;

use crate::Target;
use crate::mutate::Shape;

/// The target.
pub const TARGET: Target = Target {
    name: "nft_text",
    shape: Shape::Text,
    run,
};

fn run(input: &[u8]) {
    let rules = match nft_rules(input) {
        Ok(rules) => rules,
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1, "{error:?}");
            // It is shown whatever the text is.
            let shown = error.to_string();
            assert!(
                !shown.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')),
                "{shown:?}"
            );
            return;
        }
    };
    // The value of a variable may look like another one.
    if input.contains(&b'$') {
        return;
    }
    for rule in rules {
        let again = match nft_rules(rule.as_bytes()) {
            Ok(again) => again,
            Err(error) => panic!("{rule:?} is not read again: {error}"),
        };
        assert_eq!(again, [rule]);
    }
}
