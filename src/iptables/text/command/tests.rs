//! Lines and their errors.

use super::*;
use crate::iptables::Target;

fn parse(line: &str) -> Result<Command, ParseError> {
    let mut found = Vec::new();
    super::super::words(line.as_bytes(), &mut found)?;
    Command::parse(Family::Ipv4, &found, |chain| chain == "MARK")
}

#[test]
fn verbs() {
    let verb = |line| parse(line).unwrap().verb;
    assert_eq!(verb("-A INPUT -j ACCEPT"), Verb::Append);
    assert_eq!(verb("--append INPUT --jump ACCEPT"), Verb::Append);
    assert_eq!(verb("-p tcp -A INPUT"), Verb::Append);
    assert_eq!(verb("-I INPUT -j DROP"), Verb::Insert(1));
    assert_eq!(verb("-I INPUT 3 -j DROP"), Verb::Insert(3));
    assert_eq!(verb("-D INPUT 2"), Verb::DeleteNumber(2));
    assert_eq!(verb("-D INPUT -j DROP"), Verb::Delete);
    assert_eq!(verb("-R INPUT 2 -j DROP"), Verb::Replace(2));
    assert_eq!(verb("-P INPUT DROP"), Verb::Policy("DROP".into()));
    assert_eq!(verb("-E a b"), Verb::RenameChain("b".into()));
    assert_eq!(verb("-Z a 1"), Verb::Zero(Some(1)));
    assert_eq!(parse("-F").unwrap().chain, None);
    assert_eq!(parse("-X a").unwrap().chain, Some("a".into()));
    assert!(parse("-6 -A INPUT").unwrap().for_other_family);
    // A chain takes precedence over an extension of its name.
    let command = parse("-A INPUT -j MARK").unwrap();
    assert_eq!(command.spec.rule.target, Target::Jump("MARK".into()));
}

#[test]
fn option_like_interface_names_are_rejected() {
    for (text, message) in [
        ("-o-j -j ACCEPT", "`-j` is an option"),
        ("--in-interface=--jump", "`--jump` is an option"),
        ("-i -m", "`-i` requires a value, but `-m` follows"),
    ] {
        let error = parse(&format!("-A FORWARD {text}")).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    let command = parse("-A FORWARD -i-x+ -j ACCEPT").unwrap();
    assert_eq!(command.spec.rule.to_string(), "-i -x+ -j ACCEPT");
}

#[test]
fn several_addresses_expand_to_several_rules() {
    let command = parse("-A INPUT -s 1.1.1.1,2.0.0.0/8 -d 3.3.3.3,4.4.4.4").unwrap();
    let rules: Vec<_> = command.spec.rules().map(|rule| rule.to_string()).collect();
    assert_eq!(
        rules,
        [
            "-s 1.1.1.1/32 -d 3.3.3.3/32",
            "-s 1.1.1.1/32 -d 4.4.4.4/32",
            "-s 2.0.0.0/8 -d 3.3.3.3/32",
            "-s 2.0.0.0/8 -d 4.4.4.4/32"
        ]
    );
    assert!(Rule::parse(Family::Ipv4, "-s 1.1.1.1,2.2.2.2").is_err());
}

#[test]
fn opaque_extensions_round_trip_as_text() {
    for text in [
        "-m comment --comment a -m strange --xt-revision 3 --xt-data 00ff10 -m mark --mark 0x1 -j ODD --xt-revision 0 --xt-data \"\"",
        "-m strange --xt-revision 3 --xt-data 00 -m comment --comment a -j ACCEPT",
        "-m strange --xt-revision 3 --xt-data 00",
    ] {
        assert_eq!(Rule::parse(Family::Ipv4, text).unwrap().to_string(), text);
    }
    let fault = Rule::parse(Family::Ipv4, "-m x --xt-revision 0 --xt-data 0g").unwrap_err();
    assert_eq!(fault.column, 32);
}

#[test]
fn errors_have_a_position_and_a_suggestion() {
    for (line, column, part) in [
        (
            "-A INPUT -m coment --comment x",
            13,
            "did you mean -m comment?",
        ),
        (
            "-A INPUT -m comment --coment x",
            21,
            "did you mean --comment?",
        ),
        (
            "-A INPUT --mark 1",
            10,
            "it is an option of -m connmark, -m mark",
        ),
        ("-A INPUT -m mark --mark 1x", 25, "`1x` is not a number"),
        ("-A INPUT -m mark", 13, "--mark is required"),
        ("-A INPUT -s ! 1.1.1.1", 13, "write `! -s`"),
        ("-A INPUT -s host", 13, "host names are not looked up"),
        ("-A INPUT -p tpc", 13, "did you mean tcp?"),
        ("-A INPUT -j ACCEPT -j DROP", 20, "only have one target"),
        ("-A INPUT -s 1.1.1.1 -s 2.2.2.2", 21, "duplicate option"),
        ("-A INPUT -A OUTPUT", 10, "only have one command"),
        ("-A", 1, "requires a value"),
        ("-s 1.1.1.1", 11, "no command"),
        ("-N x -j ACCEPT", 1, "takes no rule"),
        ("-A INPUT ! -j ACCEPT", 12, "cannot be negated"),
        ("-A INPUT stray", 10, "is not an option"),
        ("-A INPUT -y", 10, "unknown option `-y`"),
        ("-A INPUT -o lo", 10, "have no output interface"),
        ("-I POSTROUTING -o a -i lo", 21, "have no input interface"),
        (
            "-A INPUT --s 1.1.1.1",
            10,
            "is ambiguous: --source or --set-counters",
        ),
        ("-I INPUT 0", 10, "from 1"),
        (
            "-N abcdefghijklmnopqrstuvwxyz123",
            4,
            "too long (must be under 29 chars)",
        ),
    ] {
        let fault = parse(line).unwrap_err();
        assert_eq!(fault.column, column, "{line}: {fault}");
        assert!(fault.to_string().contains(part), "{line}: {fault}");
    }
}
