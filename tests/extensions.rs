//! Extensions, all that are registered: whatever bytes are read as a value, the value is written and
//! read again as itself, and what it prints says the same.

mod common;

use std::collections::BTreeMap;

use bstr::ByteSlice;
use chainwright::iptables::{Family, Rule, Target};
use chainwright::xt::{self, SetName, SetNames, Text};
use common::rules::files;
use proptest::prelude::*;

/// Bytes as extensions' data has them: mostly zeros, and small numbers, and letters.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop::sample::select(b"a!-\"\\'\n \x0b".as_slice());
    let byte = prop_oneof![4 => 0..=8_u8, 1 => letter, 1 => any::<u8>(), 1 => Just(0xff)];
    let length = prop_oneof![3 => Just(600_usize), 1 => 0..600_usize];
    let changes = prop::collection::vec((0..120_usize, byte), 0..10);
    (length, changes).prop_map(|(length, changes)| {
        let mut data = vec![0; length];
        for (at, byte) in changes {
            if let Some(place) = data.get_mut(at) {
                *place = byte;
            }
        }
        data
    })
}

/// Names for the indexes of sets.
struct Names;

impl SetNames for Names {
    type Error = ();

    fn index(&mut self, _: Family, name: &SetName) -> Result<u16, ()> {
        let digits = name.as_bytes().strip_prefix(b"set").ok_or(())?;
        digits.to_str().map_err(drop)?.parse().map_err(drop)
    }

    fn name(&mut self, index: u16) -> Result<SetName, ()> {
        SetName::new(format!("set{index}")).ok_or(())
    }
}

/// A rule with this as its only match, and the protocol that it may want.
fn with_match(family: Family, extension: xt::Match) -> Rule {
    let protocol = match extension.name() {
        "tcp" | "tcpmss" | "multiport" | "ecn" => "-p tcp",
        "udp" => "-p udp",
        "sctp" => "-p sctp",
        "dccp" => "-p dccp",
        "icmp" => "-p icmp",
        "icmp6" => "-p ipv6-icmp",
        "ah" => "-p ah",
        "esp" => "-p esp",
        "ipcomp" => "-p 108",
        "mh" => "-p 135",
        _ => "",
    };
    Rule::parse(family, protocol).unwrap().with(extension)
}

/// Checks one value. `Some` with what is wrong; counts those whose text can be parsed.
fn check(family: Family, rule: &Rule, parsed: &mut usize) -> Option<String> {
    let mut text = Text::new();
    let mut named = rule.clone();
    if named.name_sets(&mut Names).is_err() {
        return None;
    }
    named.print(&mut text);
    // What the parser refuses, the real tool refuses as well, or the kernel does.
    let mut again = Rule::parse(family, text.as_bytes()).ok()?;
    *parsed += 1;
    again.resolve_sets(family, &mut Names).unwrap();
    (again != *rule).then(|| {
        let text = text.as_bytes().as_bstr();
        format!("{rule:?}\n  prints as {text}\n  which says {again:?}")
    })
}

/// What becomes of these bytes as data of an extension of that kind.
macro_rules! check_bytes {
    ($Kind:ident, $rule:expr, $family:expr, $name:expr, $revision:expr, $info:expr, $parsed:expr) => {{
        let (family, name, info) = ($family, $name, $info);
        let read = xt::$Kind::read(family, name, $revision, info);
        if matches!(read, xt::$Kind::Opaque(_)) {
            None
        } else {
            let written = read.encode(family).unwrap();
            let again = xt::$Kind::read(family, name, written.revision, &written.info);
            if written.info.len() % 8 != 0 || again != read {
                Some(format!("{read:?}\n  is written and read as {again:?}"))
            } else {
                drop(written);
                check(family, &$rule(read), $parsed)
            }
        }
    }};
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_is_read_is_written_and_printed_as_itself(data in data(), revision in 0..=4_u8) {
        let mut parsed = 0;
        for family in [Family::Ipv4, Family::Ipv6] {
            for spec in xt::Match::ALL {
                let rule = |read| with_match(family, read);
                let name = spec.names()[0];
                let wrong = check_bytes!(Match, rule, family, name, revision, &data, &mut parsed);
                prop_assert!(wrong.is_none(), "{}", wrong.unwrap());
            }
            for spec in xt::Target::ALL {
                let tcp = Rule::parse(family, "-p tcp").unwrap();
                let rule = |read| Rule { target: Target::Extension(read), ..tcp.clone() };
                let name = spec.names()[0];
                let wrong = check_bytes!(Target, rule, family, name, revision, &data, &mut parsed);
                prop_assert!(wrong.is_none(), "{}", wrong.unwrap());
            }
        }
    }
}

/// What becomes of an extension of a rule when one byte of its data is another: faults by the
/// extension's name. Counts the changes.
macro_rules! check_changes {
    ($Kind:ident, $rule:expr, $family:expr, $encoded:expr, $wrong:expr, $typed:expr, $parsed:expr) => {{
        let encoded: xt::Encoded<'_> = $encoded;
        let (name, revision) = (encoded.name.to_owned(), encoded.revision);
        let mut info = encoded.info.to_vec();
        for byte in (0..info.len()).step_by(if info.len() > 96 { 3 } else { 1 }) {
            let before = info[byte];
            for value in VALUES {
                info[byte] = value;
                *$typed += 1;
                let fault = check_bytes!($Kind, $rule, $family, &name, revision, &info, $parsed);
                if let Some(fault) = fault {
                    $wrong.entry(name.clone()).or_insert(fault);
                }
            }
            info[byte] = before;
        }
    }};
}

/// What a byte is changed into.
const VALUES: [u8; 5] = [0, 4, b'\n', b'"', 0xff];

/// An index for every set: as long as its name is.
struct Lengths;

impl SetNames for Lengths {
    type Error = ();

    fn index(&mut self, _: Family, name: &SetName) -> Result<u16, ()> {
        u16::try_from(name.as_bytes().len()).map_err(drop)
    }

    fn name(&mut self, _: u16) -> Result<SetName, ()> {
        Err(())
    }
}

/// Every byte of every extension of our rules, changed.
#[test]
fn changed_bytes_are_read_as_what_they_say() {
    let mut wrong = BTreeMap::new();
    let (mut typed, mut parsed) = (0, 0);
    for file in files() {
        for family in [Family::Ipv4, Family::Ipv6] {
            let sections = file.sections(family, "legacy");
            for (_, line) in sections.iter().flat_map(|section| &section.rules) {
                let mut rule = Rule::parse(family, line).unwrap();
                rule.resolve_sets(family, &mut Lengths).unwrap();
                for (at, one) in rule.matches.iter().enumerate() {
                    let changed = |read| {
                        let mut rule = rule.clone();
                        rule.matches[at] = read;
                        rule
                    };
                    let encoded = one.encode(family).unwrap();
                    check_changes!(
                        Match,
                        changed,
                        family,
                        encoded,
                        wrong,
                        &mut typed,
                        &mut parsed
                    );
                }
                if let Target::Extension(target) = &rule.target {
                    let changed = |read| Rule {
                        target: Target::Extension(read),
                        ..rule.clone()
                    };
                    let encoded = target.encode(family).unwrap();
                    check_changes!(
                        Target,
                        changed,
                        family,
                        encoded,
                        wrong,
                        &mut typed,
                        &mut parsed
                    );
                }
            }
        }
    }
    let faults: Vec<_> = wrong
        .into_iter()
        .map(|(name, fault)| format!("{name}: {fault}"))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(
        parsed > typed / 4,
        "hardly anything can be parsed: {parsed} of {typed}"
    );
}
