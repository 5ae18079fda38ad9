//! Texts that would need too many resources.

use super::*;

fn fails(text: &str, message: &str) {
    let error = read(text).expect_err("the text should be rejected");
    assert!(error.message.contains(message), "{error}");
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize, open: &str, inner: &str, close: &str| {
        let (open, close) = (open.repeat(depth), close.repeat(depth));
        format!("add rule ip t c {open}{inner}{close}")
    };
    let too_many = "too many nested braces";
    for depth in [100, 10_000, 1_000_000] {
        fails(&nested(depth, "jump { ", "accept", "; }"), too_many);
        fails(
            &format!("add rule ip t c meta mark {} 1", "(".repeat(depth)),
            too_many,
        );
        fails(
            &format!("add rule ip t c meta mark {} 1", "{ ".repeat(depth)),
            too_many,
        );
        fails(&format!("define x = {}", "{".repeat(depth)), too_many);
    }
    assert_eq!(commands(&nested(20, "jump { ", "accept", "; }")).len(), 1);
    assert_eq!(
        commands(&format!(
            "add rule ip t c meta mark {}1{}",
            "(".repeat(20),
            ")".repeat(20)
        ))
        .len(),
        1
    );
}

#[test]
fn long_operations_end() {
    fails(
        &format!("add rule ip t c meta mark 1{}", " | 1".repeat(100_000)),
        "too many",
    );
    fails(
        &format!("add rule ip t c ip saddr{}", " map @m".repeat(100_000)),
        "too many",
    );
    fails(
        &format!("add rule ip t c {} mod 2 0", "jhash ".repeat(100_000)),
        "too many",
    );
    assert_eq!(
        commands(&format!(
            "add rule ip t c meta mark 1{}",
            " | 1".repeat(100)
        ))
        .len(),
        1
    );
}

#[test]
fn variable_expansion_is_limited() {
    // Each value is ten times as large as the previous one.
    let mut text = String::from("define a0 = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }\n");
    for n in 1..12 {
        let before = format!("$a{}", n - 1);
        text += &format!("define a{n} = {{ {} }}\n", vec![before; 10].join(", "));
    }
    fails(&text, "variables expand to too much text");
    // Each value is nested deeper than the previous one.
    let mut text = String::from("define a0 = 1\n");
    for n in 1..10_000 {
        text += &format!("define a{n} = $a{} | 1\n", n - 1);
    }
    fails(&text, "too many nested operations");
    // A long chain of references is allowed.
    let mut text = String::from("define a0 = 22\n");
    for n in 1..10_000 {
        text += &format!("define a{n} = $a{}\n", n - 1);
    }
    text += "add rule ip t c tcp dport $a9999";
    assert_eq!(commands(&text).len(), 1);
    // A large value that is used a few times is allowed.
    let many: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    let text = format!(
        "define a = {{ {} }}\nadd element ip t s $a\nadd element ip t u {{ $a }}",
        many.join(", ")
    );
    for command in commands(&text) {
        let Object::Elements(elements) = command.object else {
            panic!("{command:?}");
        };
        assert_eq!(elements.elements.len(), 20_000);
    }
}

#[test]
fn a_large_set_is_read_in_little_time() {
    let elements: Vec<String> = (0..200_000_u32)
        .map(|n| std::net::Ipv4Addr::from(n).to_string())
        .collect();
    let text = format!("add element ip t s {{ {} }}", elements.join(", "));
    let begun = std::time::Instant::now();
    let commands = commands(&text);
    let Object::Elements(found) = &commands[0].object else {
        panic!("{:?}", commands[0]);
    };
    assert_eq!(found.elements.len(), 200_000);
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn any_beginning_of_a_text_is_read_or_refused() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/rulesets/scenario-container-host.nft"
    ));
    let text = text.expect("cannot read the text");
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        if let Err(error) = read(&text[..end]) {
            assert!(!error.to_string().is_empty());
        }
    }
    // Every byte alone, and within a rule.
    for byte in 0..=255_u8 {
        for text in [
            vec![byte],
            [b"add rule ip t c ip ", &[byte][..], b" 1"].concat(),
        ] {
            if let Err(error) = parse(Source::new("x", text), &NoIncludes) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
}
