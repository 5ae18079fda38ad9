//! Properties of random rules and texts: printed rules are parsed, encoded rules are decoded, and no
//! input makes a parser panic.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::common::iptables::{ALL, open};
use crate::common::sandbox;
use chainwright::iptables::nft::{Encoder, Profile, decode};
use chainwright::iptables::text::{Command, RestoreOptions, words};
use chainwright::iptables::{
    Address, Backend, Counters, Entry, Error, Family, Interface, Protocol, Rule, Target,
};
use chainwright::netlink::Message;
use chainwright::nft::{self, RuleRef, Transaction};
use chainwright::xt::{SetName, SetNames, Text};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// This number of cases, or the one in the environment (`PROPTEST_CASES`).
fn config(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    config
}

/// The rules in `rules/`: their families (`4`, `6`), and the text.
fn corpus() -> &'static [(String, String)] {
    static CORPUS: OnceLock<Vec<(String, String)>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
        let mut all = Vec::new();
        for directory in [root.clone(), root.join("match"), root.join("target")] {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path
                    .extension()
                    .is_none_or(|extension| extension != "rules")
                {
                    continue;
                }
                let mut families = String::new();
                for line in fs::read_to_string(path).unwrap().lines() {
                    if let Some(directive) = line.strip_prefix("@ ") {
                        let backend = directive.split(' ').nth(3);
                        families = match backend {
                            // Rules for only one of the backends.
                            Some(_) => String::new(),
                            None => directive.split(' ').next().unwrap_or_default().to_owned(),
                        };
                    } else if !line.is_empty() && !line.starts_with(['#', '$']) {
                        all.push((families.clone(), line.to_owned()));
                    }
                }
            }
        }
        all.sort();
        all
    })
}

/// The rules in `rules/` for both backends.
fn known(family: Family) -> Vec<Rule> {
    let digit = if family == Family::Ipv4 { '4' } else { '6' };
    let lines = corpus()
        .iter()
        .filter(|(families, _)| families.contains(digit));
    let rules: Vec<_> = lines
        .filter_map(|(_, line)| Rule::parse(family, line).ok())
        .collect();
    assert!(rules.len() > 30);
    rules
}

fn address(family: Family) -> BoxedStrategy<Option<Address>> {
    let network = match family {
        Family::Ipv4 => (any::<[u8; 4]>(), 1..=32_u32)
            .prop_map(|(bytes, prefix)| Address::network(bytes.into(), prefix))
            .boxed(),
        Family::Ipv6 => (any::<[u8; 16]>(), 1..=128_u32)
            .prop_map(|(bytes, prefix)| Address::network(bytes.into(), prefix))
            .boxed(),
    };
    let masked = match family {
        Family::Ipv4 => (any::<[u8; 4]>(), any::<[u8; 4]>())
            .prop_map(|(bytes, mask)| Address::masked(bytes.into(), mask.into(), false))
            .boxed(),
        Family::Ipv6 => (any::<[u8; 16]>(), any::<[u8; 16]>())
            .prop_map(|(bytes, mask)| Address::masked(bytes.into(), mask.into(), false))
            .boxed(),
    };
    // A prefix of length 0 is not printed.
    let one = prop_oneof![3 => network, 1 => masked]
        .prop_map(|a| Some(a).filter(|a| a.prefix() != Some(0)));
    (one, any::<bool>())
        .prop_map(|(one, invert)| one.map(|one| if invert { one.not() } else { one }))
        .boxed()
}

fn interface() -> impl Strategy<Value = Option<Interface>> {
    let one = (
        "[a-zA-Z0-9._@:][a-zA-Z0-9._@:-]{0,13}",
        any::<bool>(),
        any::<bool>(),
    );
    option::of(one.prop_map(|(name, prefix, invert)| Interface {
        name: name.into(),
        prefix,
        invert,
    }))
}

/// A rule from `rules/` with random header fields where it has none.
fn rule(family: Family) -> impl Strategy<Value = Rule> {
    let target = prop_oneof![
        Just(Target::None),
        Just(Target::Accept),
        Just(Target::Drop),
        Just(Target::Return),
        "[A-Z]{3}-[a-zA-Z0-9_.]{1,20}".prop_map(|name| Target::Jump(name.into())),
        "[A-Z]{3}-[a-zA-Z0-9_.]{1,20}".prop_map(|name| Target::Goto(name.into())),
    ];
    let fragment = match family {
        Family::Ipv4 => option::of(any::<bool>()).boxed(),
        Family::Ipv6 => Just(None).boxed(),
    };
    let protocol = option::of((1..=255_u8, any::<bool>()))
        .prop_map(|p| p.map(|(number, invert)| Protocol { number, invert }));
    let header = (
        option::of((address(family), address(family))),
        (interface(), interface()),
        protocol,
        fragment,
    );
    (select(known(family)), header, target).prop_map(|(known, header, target)| {
        let (addresses, (input, output), protocol, fragment) = header;
        let (source, destination) = addresses.unwrap_or_default();
        let plain = known.matches.is_empty() && !matches!(known.target, Target::Extension(_));
        Rule {
            source: known.source.filter(|a| !a.is_everything()).or(source),
            destination: known
                .destination
                .filter(|a| !a.is_everything())
                .or(destination),
            in_interface: known.in_interface.or(input),
            out_interface: known.out_interface.or(output),
            // Extensions may require a protocol.
            protocol: known.protocol.or(protocol.filter(|_| plain)),
            fragment: known.fragment.or(fragment.filter(|_| plain)),
            target: match known.target {
                Target::None => target,
                other => other,
            },
            matches: known.matches,
        }
    })
}

fn any_rule() -> impl Strategy<Value = (Family, Rule)> {
    prop_oneof![
        rule(Family::Ipv4).prop_map(|rule| (Family::Ipv4, rule)),
        rule(Family::Ipv6).prop_map(|rule| (Family::Ipv6, rule)),
    ]
}

fn counters() -> impl Strategy<Value = Counters> {
    any::<(u64, u64)>().prop_map(|(packets, bytes)| Counters { packets, bytes })
}

/// Decodes a rule as if the kernel had listed it.
fn listed(mut rule: nft::Rule<'_>) -> Entry {
    rule.handle = Some(1);
    let mut tx = Transaction::new();
    tx.add(&rule).unwrap();
    tx.datagram(|datagram| {
        let (_begin, rest) = Message::split(datagram).unwrap();
        let (message, _) = Message::split(rest).unwrap();
        decode(&RuleRef::parse(&message).unwrap()).unwrap()
    })
}

/// Changes some bytes of a text.
fn mutated(text: &str, changes: &[(Index, u8, u8)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (at, kind, byte) in changes {
        if bytes.is_empty() {
            break;
        }
        let at = at.index(bytes.len());
        match kind % 6 {
            0 => bytes[at] = *byte,
            1 => bytes.insert(at, *byte),
            2 => drop(bytes.remove(at)),
            3 => bytes.truncate(at),
            4 => bytes.insert(at, b" \"\\!-\n\t*:[]#,/"[usize::from(*byte) % 13]),
            _ => {
                let again = bytes[at..].to_vec();
                bytes.extend(again.iter().take(40));
            }
        }
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(Index, u8, u8)>> {
    vec(any::<(Index, u8, u8)>(), 0..6)
}

/// Lines that are not rules.
const LINES: &[&str] = &[
    "*filter",
    ":INPUT ACCEPT [1:2]",
    ":own - [0:0]",
    "COMMIT",
    "# a comment",
    "-N own",
    "-F own",
    "-X own",
    "-P INPUT DROP",
    "-D INPUT 1",
    "-D own -p tcp -j RETURN",
    "-Z INPUT 1",
    "-E own other",
    "-R INPUT 1 -p udp",
    "-I INPUT 2 -s 1.2.3.4,5.6.7.8 -d fd00::1,fd00::2",
    "[5:6] -A INPUT -m comment --comment \"two \\\" words\" -j own",
    "-6 -A INPUT -s fd00::1 -c 1 2",
];

/// Reads a line in all ways. The test passes if this returns.
fn read_line(line: &[u8]) {
    for family in Family::ALL {
        let _ = Rule::parse(family, line);
        let mut found = Vec::new();
        if words(line, &mut found).is_ok() {
            for chains in [false, true] {
                let command = Command::parse(family, &found, |_| chains);
                if let Ok(command) = command {
                    // Each pair of addresses is a separate rule: a line does not contain more.
                    assert!(command.spec.rules().count() <= line.len().pow(2).max(1));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn printed_rules_parse((family, rule) in any_rule()) {
        let mut text = Text::new();
        rule.print(&mut text);
        let parsed = Rule::parse(family, text.as_bytes());
        prop_assert_eq!(parsed.as_ref(), Ok(&rule), "{}", rule);
        let mut again = Text::new();
        parsed.unwrap().print(&mut again);
        prop_assert_eq!(again.as_bytes(), text.as_bytes());
    }

    #[test]
    fn nf_tables_encodings_round_trip(
        (family, rule) in any_rule(),
        counters in counters(),
        profile in select(vec![Profile::V1_8_7, Profile::V1_8_8, Profile::V1_8_10]),
    ) {
        let rule = resolved(family, rule);
        let mut encoded = nft::Rule::new(family.into(), "filter", "A");
        Encoder { family, profile }.fill(&mut encoded, &rule, counters).unwrap();
        let entry = listed(encoded);
        prop_assert!(entry.rule.means_the_same(&rule), "{:?}: {}\n{}", profile, entry.rule, rule);
        prop_assert_eq!(entry.counters, counters);
    }

    #[test]
    fn no_line_makes_the_parser_panic(line in vec(any::<u8>(), 0..200)) {
        read_line(&line);
    }

    #[test]
    fn no_changed_line_makes_the_parser_panic(
        which in any::<Index>(),
        other in any::<bool>(),
        changes in changes(),
    ) {
        let line = match other {
            true => *which.get(LINES),
            false => &which.get(corpus()).1,
        };
        read_line(&mutated(line, &changes));
        read_line(&mutated(&format!("-A INPUT {line}"), &changes));
    }
}

/// An index for the name of a set that does not exist: the sum of its letters.
struct Sums;

impl SetNames for Sums {
    type Error = ();

    fn index(&mut self, _: Family, name: &SetName) -> Result<u16, ()> {
        Ok(name.as_bytes().iter().map(|byte| u16::from(*byte)).sum())
    }

    fn name(&mut self, _: u16) -> Result<SetName, ()> {
        Err(())
    }
}

/// The rule in a form that can be encoded.
fn resolved(family: Family, mut rule: Rule) -> Rule {
    rule.resolve_sets(family, &mut Sums).unwrap();
    rule
}

/// Values of a strategy, the same in each run.
fn some<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, number: usize) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    let mut one = || strategy.new_tree(&mut runner).unwrap().current();
    (0..number).map(|_| one()).collect()
}

#[test]
fn legacy_encodings_round_trip() {
    let sandbox = sandbox();
    for family in Family::ALL {
        let rules = some((rule(family), counters()), 400);
        let rules: Vec<_> = rules
            .into_iter()
            .map(|(r, c)| (resolved(family, r), c))
            .collect();
        let mut iptables = open(&sandbox, Backend::Legacy);
        let mut compared = 0;
        let result = iptables.update(family, "filter", |table| {
            table.ensure_chain("ours")?;
            for (rule, counters) in &rules {
                if let Target::Jump(chain) | Target::Goto(chain) = &rule.target {
                    table.ensure_chain(chain)?;
                }
                table.append_with("ours", rule, *counters)?;
            }
            for (entry, (rule, counters)) in table.rules("ours")?.into_iter().zip(&rules) {
                let entry = entry.unwrap();
                assert!(entry.rule.means_the_same(rule), "{}\n{rule}", entry.rule);
                assert_eq!(entry.counters, *counters);
                compared += 1;
            }
            // The kernel need not know all of them.
            Err::<(), _>(Error::Other("enough".into()))
        });
        assert_eq!(result.unwrap_err().to_string(), "enough");
        assert_eq!(compared, 400);
    }
}

#[test]
fn no_text_makes_restoring_panic() {
    let lines = some(
        (
            vec(any::<Index>(), 0..12),
            vec(any::<Index>(), 0..8),
            changes(),
        ),
        150,
    );
    for (backend, family) in ALL {
        let sandbox = sandbox();
        let mut iptables = open(&sandbox, backend);
        let test = RestoreOptions {
            test: true,
            noflush: true,
            ..RestoreOptions::default()
        };
        let mut taken = 0;
        for (lines, rules, changes) in &lines {
            let mut text = "*filter\n:own - [0:0]\n".to_owned();
            for line in lines {
                text += &format!("{}\n", line.get(LINES));
            }
            for rule in rules {
                text += &format!("-A own {}\n", rule.get(corpus()).1);
            }
            text += "COMMIT\n";
            let text = mutated(&text, changes);
            taken += usize::from(iptables.restore(family, &text, &test).is_ok());
        }
        assert!(taken > 0);
    }
}
