//! A text in nft's language: what its rules say is read as what says the same.

use chainwright_lang::Script;
use chainwright_lang::nft_rules;

use crate::Target;
use crate::mutate::Shape;

/// The target.
pub const TARGET: Target = Target {
    name: "nft_text",
    shape: Shape::Text,
    run,
};

fn run(input: &[u8]) {
    // As commands, and as the rules of a chain.
    compile(input);
    for family in ["inet", "bridge"] {
        let table =
            format!("table {family} t {{\nset s {{ type mark; flags interval; }}\nchain c {{\n");
        compile(&[table.as_bytes(), input, b"\n}\n}\n"].concat());
    }
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

/// Whatever it asks for, it becomes a transaction, or it is said why not.
fn compile(text: &[u8]) {
    let Ok(script) = Script::parse("input", text) else {
        return;
    };
    match script.transaction(None) {
        Ok(change) => assert!(change.transaction().len() < 1 << 20),
        Err(error) => assert!(error.line >= 1 && error.column >= 1, "{error:?}"),
    }
}
