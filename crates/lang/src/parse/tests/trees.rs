//! Syntax trees of statements.

use super::*;
use crate::statements::mangle::Mangle;
use crate::statements::reset::Reset;
use crate::syntax::{Expr, Operator, Relation, Statement, Symbol, Target, Verdict};
use chainwright::nft::Family;
use chainwright::nft::expr::{
    CtDirection, CtKey, FibFlags, FibResult, MetaKey, ObjectType, PayloadBase,
};

/// Returns the only statement of a rule.
fn statement_of(family: &str, text: &str) -> Statement {
    let commands = commands(&format!("add rule {family} t c {text}"));
    let rule = rules(&commands).next().expect("no rule");
    assert_eq!(rule.statements.len(), 1, "{text}");
    rule.statements[0].0.clone()
}

fn statement(text: &str) -> Statement {
    statement_of("ip", text)
}

fn is_symbol(expr: &Expr, text: &str) -> bool {
    matches!(expr, Expr::Symbol(Symbol { text: found, .. }) if **found == *text)
}

/// Alternative spellings have the same printed form.
#[test]
fn equivalent_texts_parse_equally() {
    let mut family = "";
    let mut cases = 0;
    for line in include_str!("spellings.txt").lines() {
        let Some(case) = line.strip_prefix('\t') else {
            family = line.strip_prefix("table ").unwrap_or_default();
            continue;
        };
        let (typed, expected) = case.split_once(" => ").unwrap_or((case, case));
        let typed = typed.replace("\\n", "\n");
        let printed = again(family, &typed).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(printed, expected);
        let twice = again(family, &printed).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(twice, printed);
        cases += 1;
    }
    assert_eq!(cases, 97);
}

#[test]
fn fields_are_the_ones_of_their_protocols() {
    let Statement::Match {
        left: Expr::Payload(payload),
        relation,
        right,
    } = statement("tcp dport != 22")
    else {
        panic!();
    };
    assert_eq!(
        (payload.base, payload.offset, payload.bits),
        (PayloadBase::TRANSPORT, 16, 16)
    );
    assert_eq!(
        payload
            .field
            .map(|(protocol, field)| (protocol.name, field)),
        Some(("tcp", 1))
    );
    assert_eq!(relation, Relation::NotEqual);
    assert!(is_symbol(&right, "22"));
    let Statement::Match {
        left: Expr::Payload(raw),
        ..
    } = statement("@th,100,4 5")
    else {
        panic!();
    };
    assert_eq!((raw.offset, raw.bits, raw.field), (100, 4, None));
}

#[test]
fn operator_precedence() {
    let Statement::Match { left, .. } = statement("meta mark & 0xff | 1 << 2 == 5") else {
        panic!();
    };
    let Expr::Binary(Operator::Or, and, shift) = left else {
        panic!("{left:?}");
    };
    assert!(matches!(*and, Expr::Binary(Operator::And, _, _)));
    assert!(matches!(*shift, Expr::Binary(Operator::LeftShift, _, _)));
}

#[test]
fn fib_compared_with_exists_tests_presence() {
    let present = FibFlags::SADDR | FibFlags::PRESENT;
    for (text, flags) in [
        ("fib saddr oif exists", present),
        ("fib saddr oif != missing", present),
        ("fib saddr oif { exists }", present),
        ("fib saddr check exists", present),
        ("fib saddr oif \"exists\"", FibFlags::SADDR),
        ("fib saddr oif eth0", FibFlags::SADDR),
    ] {
        let Statement::Match { left, .. } = statement(text) else {
            panic!("{text}");
        };
        assert_eq!(left, Expr::Fib(flags, FibResult::OIF), "{text}");
    }
    let Statement::Match {
        left: Expr::Option(option),
        ..
    } = statement("tcp option maxseg exists")
    else {
        panic!();
    };
    assert!(option.presence);
    let Statement::Reset(Reset(Expr::Option(option))) = statement("reset tcp option maxseg") else {
        panic!();
    };
    assert_eq!((option.presence, option.offset, option.bits), (false, 0, 0));
    let Statement::Match {
        left: Expr::Option(option),
        ..
    } = statement("tcp option maxseg size 5")
    else {
        panic!();
    };
    assert_eq!(
        (option.presence, option.offset, option.bits),
        (false, 16, 16)
    );
}

#[test]
fn ct_addresses_have_the_stated_or_the_tables_version() {
    for (family, text, key, version) in [
        (
            "ip",
            "ct original saddr 1.1.1.1",
            CtKey::SRC,
            Some(Family::IP),
        ),
        (
            "ip6",
            "ct original saddr ::1",
            CtKey::SRC,
            Some(Family::IP6),
        ),
        ("inet", "ct original saddr ::1", CtKey::SRC, None),
        ("inet", "ct original ip saddr 1.1.1.1", CtKey::SRC_IP, None),
    ] {
        let Statement::Match { left, .. } = statement_of(family, text) else {
            panic!("{text}");
        };
        assert_eq!(left, Expr::Ct(key, Some(CtDirection::ORIGINAL), version));
    }
}

#[test]
fn marks_and_objects_are_distinguished() {
    assert!(matches!(
        statement("meta secmark set ct secmark"),
        Statement::Mangle(Mangle {
            target: Expr::Meta(MetaKey::SECMARK),
            ..
        })
    ));
    assert!(matches!(
        statement("ct secmark set meta secmark"),
        Statement::Mangle(Mangle {
            target: Expr::Ct(..),
            ..
        })
    ));
    assert!(matches!(
        statement("meta secmark set \"x\""),
        Statement::Object(ObjectType::SECMARK, _)
    ));
    assert!(matches!(
        statement("ct helper \"x\""),
        Statement::Match { .. }
    ));
    assert!(matches!(
        statement("ct helper set \"x\""),
        Statement::Object(ObjectType::CT_HELPER, _)
    ));
}

#[test]
fn verdicts_lead_to_chains() {
    let Statement::Verdict(Expr::Verdict(Verdict::Goto(Target::Chain(name)))) =
        statement("goto KUBE-X/a.b")
    else {
        panic!();
    };
    assert_eq!(name, "KUBE-X/a.b");
    let Statement::Verdict(Expr::Verdict(Verdict::Jump(Target::Rules(lines)))) =
        statement("jump {\n\tcounter\n\n\taccept; drop\n}")
    else {
        panic!();
    };
    assert_eq!(lines.len(), 3);
}

#[test]
fn statements_have_source_spans() {
    let text = "add rule ip t c tcp dport 22 counter accept";
    let commands = commands(text);
    let rule = rules(&commands).next().expect("no rule");
    let places: Vec<&str> = rule
        .statements
        .iter()
        .map(|(_, span)| &text[span.start as usize..span.end as usize])
        .collect();
    assert_eq!(places, ["tcp dport 22", "counter", "accept"]);
}
