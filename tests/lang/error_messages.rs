//! Mistakes in scripts: each error shows the place, and names the reason and the way out.

use crate::common::{connect, sandbox};
use chainwright::ErrorKind;
use chainwright_lang::{Options, RunMode, Script};

/// The ruleset before each script with a mistake.
const BEFORE: &str = "
table ip t {
    set s { type ipv4_addr; }
    set r { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 } }
    map m { type ipv4_addr : verdict; }
    chain in { type filter hook input priority 0; jump one; }
    chain pre { type nat hook prerouting priority -100; }
    chain one { jump two; }
    chain two { ip saddr @s accept; }
}
";

/// Scripts, and parts of their errors.
const MISTAKES: &[(&str, &[&str])] = &[
    (
        "add rule ip t in dnat to 10.0.0.1",
        &[
            "`dnat` is allowed only in nat chains at prerouting or output, and the chain in is a filter chain at input",
        ],
    ),
    (
        "add rule ip t one masquerade",
        &[
            "`masquerade` is allowed only in nat chains at postrouting, and the chain one is reached from in, a filter chain at input",
        ],
    ),
    (
        "add rule ip t in redirect",
        &["`redirect` is allowed only in nat chains at prerouting or output"],
    ),
    (
        "add rule ip t one jump in",
        &[
            "the chain in is a filter chain at input: a rule can jump only to a chain without a hook",
        ],
    ),
    (
        "add rule ip t one jump tow",
        &["the table ip t has no chain tow; did you mean two?; add it first"],
    ),
    (
        "add rule ip t tow accept",
        &["the table ip t has no chain tow; did you mean two?; add it first"],
    ),
    (
        "add rule ip tt one accept",
        &["the table ip tt does not exist; did you mean t?; add it first"],
    ),
    (
        "add rule ip t two jump one",
        &["the jumps form a loop: two → one → two"],
    ),
    (
        "add rule ip t one ip saddr @ss accept",
        &["no set `ss` in table ip t"],
    ),
    (
        "add rule ip t one ip saddr vmap @s",
        &["expected a map: `s` is a set", "declare it with `map`"],
    ),
    (
        "add element ip t s { 1::1 }",
        &["`1::1` is not an IPv4 address"],
    ),
    (
        "add element ip t s { 300.0.0.1 }",
        &["`300.0.0.1` is not an IPv4 address"],
    ),
    (
        "add element ip t r { 10.1.0.0/16 }",
        &[
            "interval overlaps with an existing one",
            "delete that one first, or declare the set with `auto-merge`",
        ],
    ),
    (
        "add chain ip t c { type nat hook forward priority 0; }",
        &[
            "nat chains in the family ip have the hooks prerouting, input, output or postrouting, not forward",
        ],
    ),
    (
        "add chain ip t c { type filter hook inptu priority 0; }",
        &["did you mean `input`?"],
    ),
    (
        "add chain ip t in { type filter hook forward priority 0; }",
        &[
            "the chain in exists as a filter chain at input with priority 0, and cannot become a filter chain at forward",
        ],
    ),
    (
        "add chain ip t one { type filter hook input priority 0; }",
        &["the chain one exists without a hook, and cannot get one later"],
    ),
    (
        "add chain ip t c { policy drop; }",
        &["only base chains have a policy"],
    ),
    (
        "add rule ip t one tcp dprot 22 accept",
        &["did you mean `dport`?"],
    ),
    (
        "add rule ip t one limit rate 0/second accept",
        &["rate is 0 or too large"],
    ),
    (
        "delete chain ip t two",
        &[
            "the chain two is still in use by the rule with handle",
            "in the chain one; delete that first",
        ],
    ),
    (
        "delete set ip t s",
        &[
            "the set s is still in use by the rule with handle",
            "in the chain two; delete that first",
        ],
    ),
    (
        "delete element ip t s { 1.2.3.4 }",
        &["the set s does not have the element"],
    ),
    ("create table ip t", &["already exists"]),
    (
        "add set ip t s { type ipv6_addr; }",
        &["the set s exists with keys of 4 bytes, not 16"],
    ),
];

#[test]
fn script_errors_name_the_reason_and_a_remedy() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let options = Options::here();
    let mut run = |text: &str| -> Result<(), chainwright::Error> {
        let script = Script::parse("rules.nft", text)
            .map_err(|error| chainwright_lang::RunError::Script(Box::new(error)))?;
        script.run(&mut nft, RunMode::Commit, &options)?;
        Ok(())
    };
    run(BEFORE).unwrap();
    let mut failures = Vec::new();
    for (text, reasons) in MISTAKES {
        let error = run(text).expect_err(text);
        let display = error.to_string();
        println!("{display}\n");
        let place = display.starts_with("rules.nft:1:") && display.contains(text);
        if !place || reasons.iter().any(|reason| !display.contains(reason)) {
            failures.push(format!("{reasons:?} is not in\n{display}"));
        }
        assert_eq!(format!("{error:?}"), display);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    // The kind of a script's error survives the conversion.
    let error = run("delete chain ip t missing").unwrap_err();
    assert!(error.is_not_found() && error.errno().is_some(), "{error}");
    assert_eq!(run("add nonsense").unwrap_err().kind(), ErrorKind::Invalid);
}
