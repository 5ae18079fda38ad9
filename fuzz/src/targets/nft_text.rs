//! Text in nft's language: printed rules are parsed to equivalent rules.

use chainwright_lang::Script;
use chainwright_lang::nft_rules;

use crate::Target;
use crate::mutate::InputFormat;

/// The target.
pub const TARGET: Target = Target {
    name: "nft_text",
    input_format: InputFormat::Text,
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
            // The error can be displayed for any text.
            let shown = error.to_string();
            assert!(
                !shown.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')),
                "{shown:?}"
            );
            return;
        }
    };
    // The value of a variable may look like another variable.
    if input.contains(&b'$') {
        return;
    }
    for rule in rules {
        // A comment with control characters, which the language can set but not list.
        if rule.contains(" # comment \"") {
            continue;
        }
        let again = match nft_rules(rule.as_bytes()) {
            Ok(again) => again,
            Err(error) => panic!("{rule:?} cannot be parsed again: {error}"),
        };
        assert_eq!(again, [rule]);
    }
}

/// The text becomes a transaction, or is refused with a reason.
fn compile(text: &[u8]) {
    let Ok(script) = Script::parse("input", text) else {
        return;
    };
    match script.transaction(None) {
        Ok(change) => assert!(change.transaction().len() < 1 << 20),
        Err(error) => assert!(error.line >= 1 && error.column >= 1, "{error:?}"),
    }
}
