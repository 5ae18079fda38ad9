//! Evaluates all registered extensions and compares results with the kernel's behavior.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::super::field::Field;
use super::super::packet::{Direction, Hook, Node};
use super::super::path_state::{Effect, PathState, TraceContext, Undetermined};
use super::{matches, read_match, target};
use chainwright::iptables::{Rule, Target as RuleTarget};
use chainwright::nft::expr::MetaKey;
use chainwright::xt::{Family, Match, Target};

/// Extensions that cannot be evaluated.
const UNKNOWN: [&str; 2] = ["bpf", "CLUSTERIP"];
/// Maximum number of branches for one match.
const BRANCHES: usize = 300;

fn path_state(family: Family, hook: Hook) -> PathState {
    let place = TraceContext {
        node: Node::default(),
        direction: match hook {
            Hook::Output | Hook::Postrouting => Direction::Out,
            _ => Direction::In,
        },
        sets_may_differ: true,
    };
    PathState::new(family, hook, Arc::new(place))
}

/// Creates a packet that connection tracking has seen.
fn tracked(family: Family, hook: Hook) -> PathState {
    let mut path_state = path_state(family, hook);
    path_state.track();
    path_state
}

/// Evaluates all branches; returns their results, or the reasons why they are unknown.
fn outcomes<T>(
    path_state: PathState,
    evaluate: impl Fn(&mut PathState) -> Result<T, Undetermined>,
) -> Vec<Result<T, String>> {
    let (mut waiting, mut all) = (vec![path_state], Vec::new());
    while let Some(mut branch) = waiting.pop() {
        if all.len() >= BRANCHES {
            break;
        }
        branch.begin();
        match evaluate(&mut branch) {
            Ok(outcome) => all.push(Ok(outcome)),
            Err(Undetermined::Unknown(why)) => all.push(Err(why)),
            Err(Undetermined::Split(alternatives)) => {
                assert!(
                    alternatives.len() > 1,
                    "a condition has more than one value"
                );
                for alternative in alternatives {
                    let mut part = branch.clone();
                    if part.take(&alternative) {
                        waiting.push(part);
                    }
                }
            }
        }
    }
    all
}

/// Rules with extensions that the test lines lack, because few kernels have them.
const RARE: [&str; 6] = [
    "-m ipvs --ipvs",
    "-m ipvs ! --ipvs",
    "-m ipvs --vport 80",
    "-j LED --led-trigger-id a",
    "-j SECMARK --selctx a",
    "-j CLUSTERIP --new --hashmode sourceip --clustermac 01:02:03:04:05:06 --total-nodes 2 --local-node 1",
];

/// Returns the rules of the test lines for a family.
fn rules(family: Family) -> Vec<Rule> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/rules");
    let rare = RARE.iter();
    let mut rules: Vec<Rule> = rare
        .filter_map(|line| Rule::parse(family, line).ok())
        .collect();
    for part in ["match", "target"] {
        for entry in fs::read_dir(directory.join(part)).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            let lines = text.lines().filter(|line| line.starts_with(['-', '!']));
            rules.extend(lines.filter_map(|line| Rule::parse(family, line).ok()));
        }
    }
    rules
}

#[test]
fn each_match_can_match_and_fail() {
    let mut results: Vec<(String, bool, bool)> = Vec::new();
    for family in Family::ALL {
        for rule in rules(family) {
            for hook in [Hook::Prerouting, Hook::Output] {
                for extension in &rule.matches {
                    let own = extension.name();
                    let all = outcomes(tracked(family, hook), |path_state| {
                        matches(extension, path_state)
                    });
                    let unknown = all.iter().any(|one| one.is_err());
                    let is_opaque = matches!(extension, Match::Opaque(_));
                    // Data after a header of unknown length or on a bridge cannot be evaluated.
                    let may =
                        is_opaque || UNKNOWN.contains(&own) || matches!(own, "u32" | "physdev");
                    assert!(may || !unknown, "{family} {own}: {all:?}");
                    let (yes, no) = (all.contains(&Ok(true)), all.contains(&Ok(false)));
                    match results.iter_mut().find(|(name, ..)| name == own) {
                        Some((_, any, none)) => (*any, *none) = (*any || yes, *none || no),
                        None => results.push((own.to_owned(), yes, no)),
                    }
                }
            }
        }
    }
    for spec in Match::ALL {
        let own = spec.names()[0];
        let Some((_, yes, no)) = results.iter().find(|(name, ..)| name == own) else {
            panic!("no rule has the match {own}");
        };
        match own {
            "bpf" => assert!(!yes && !no),
            "comment" => assert!(*yes && !no),
            _ => assert!(*yes && *no, "{own}: {yes} {no}"),
        }
    }
}

#[test]
fn each_target_does_something() {
    let mut done = Vec::new();
    for family in Family::ALL {
        for rule in rules(family) {
            let RuleTarget::Extension(extension) = &rule.target else {
                continue;
            };
            for hook in [Hook::Prerouting, Hook::Postrouting] {
                let evaluate = |path_state: &mut PathState| {
                    let effect = target(extension, path_state)?;
                    Ok((effect, path_state.current_actions.clone()))
                };
                // Some targets act before connection tracking, others after it.
                let mut all = outcomes(path_state(family, hook), evaluate);
                all.extend(outcomes(tracked(family, hook), evaluate));
                let own = extension.name();
                done.push(own.to_owned());
                if UNKNOWN.contains(&own) || matches!(extension, Target::Opaque(_)) {
                    assert!(all.iter().all(Result::is_err), "{own}");
                    continue;
                }
                let does = |one: &Result<(Effect, Vec<_>), String>| match one {
                    Ok((effect, actions)) => *effect != Effect::Continue || !actions.is_empty(),
                    Err(why) => panic!("{family} {own}: {why}"),
                };
                assert!(all.iter().any(does), "{family} {own}: {all:?}");
            }
        }
    }
    for spec in Target::ALL {
        let own = spec.names()[0];
        assert!(
            done.iter().any(|name| name == own),
            "no rule has the target {own}"
        );
    }
}

/// Creates a packet from 10.1.0.2 to 10.3.0.1 with much known data.
fn known() -> PathState {
    let mut path_state = path_state(Family::Ipv4, Hook::Output);
    for (field, value) in [
        (Field::Source, 0x0a01_0002),
        (Field::Destination, 0x0a03_0001),
        (Field::Protocol, 6),
        (Field::SourcePort, 20_000),
        (Field::DestinationPort, 80),
        (Field::TcpFlags, 2),
        (Field::Tos, 0xb8),
        (Field::Ttl, 64),
        (Field::Length, 60),
        (Field::Fragment, 0),
        (Field::HasOptions, 0),
        (Field::Mark, 0x15),
        (Field::State, 8),
        (Field::HasSender, 1),
        (Field::Meta(MetaKey::SKUID), 1000),
        (Field::Meta(MetaKey::SKGID), 100),
        (Field::Meta(MetaKey::PKTTYPE), 0),
    ] {
        path_state.set_number(field, value);
    }
    path_state.track();
    path_state
}

#[test]
fn known_fields_decide_matches() {
    for (words, wanted) in [
        ("-m mark --mark 0x5/0xf", true),
        ("-m mark --mark 0x15/0xf", false),
        ("-m mark ! --mark 0x15", false),
        ("-m connmark --mark 0", true),
        ("-p tcp -m tcp --dport 80:90 --sport 1024:", true),
        ("-p tcp -m tcp ! --dport 80", false),
        ("-p tcp -m tcp --tcp-flags SYN,ACK SYN", true),
        ("-p tcp -m tcp --tcp-flags SYN,ACK ACK", false),
        ("-p tcp -m multiport --ports 443,20000", true),
        ("-p tcp -m multiport ! --dports 443,50:100", false),
        ("-m ttl --ttl-gt 63", true),
        ("-m ttl --ttl-lt 64", false),
        ("-m dscp --dscp 46", true),
        ("-m tos --tos 0xb8/0xfc", true),
        ("-m ecn --ecn-ip-ect 0", true),
        ("-m length --length 61:", false),
        (
            "-m iprange --src-range 10.1.0.1-10.1.0.2 ! --dst-range 10.3.0.2-10.3.0.9",
            true,
        ),
        ("-m conntrack --ctstate NEW,RELATED", true),
        ("-m conntrack --ctstate DNAT", false),
        (
            "-m conntrack --ctstate NEW --ctorigdst 10.3.0.0/24 --ctdir ORIGINAL",
            true,
        ),
        ("-m conntrack ! --ctorigdstport 80", false),
        ("-m state --state ESTABLISHED", false),
        ("-m owner --uid-owner 1000 --gid-owner 100-200", true),
        ("-m owner ! --socket-exists", false),
        ("-m pkttype ! --pkt-type multicast", true),
        ("-m u32 --u32 \"6&0xFF=6&&0>>22&0x3C@0=0x4E200050\"", true),
        ("-m u32 --u32 \"57=0\"", false),
        // `@` moves the base by the value read; the next offset is relative to it.
        ("-m u32 --u32 \"8>>28@8>>24=10\"", true),
        ("-m statistic --mode random --probability 1", true),
        ("-m statistic --mode random ! --probability 1", false),
        ("-m recent --set --name a", true),
        ("-m comment --comment words", true),
        ("-m policy --dir in --pol none", true),
    ] {
        let rule = Rule::parse(Family::Ipv4, words).unwrap();
        let mut path_state = known();
        path_state.set_number(Field::Meta(MetaKey::SECPATH), 0);
        path_state.begin();
        let is = rule.matches.iter().try_fold(true, |all, extension| {
            Ok(all & matches(extension, &mut path_state)?)
        });
        match is {
            Ok(is) => assert_eq!(is, wanted, "{words}"),
            Err::<bool, Undetermined>(open) => panic!("{words}: {open:?}"),
        }
    }
}

/// Returns the value of a field after a target.
fn made(words: &str, field: Field) -> Option<u128> {
    let rule = Rule::parse(Family::Ipv4, words).unwrap();
    let RuleTarget::Extension(extension) = &rule.target else {
        panic!("{words}: the target is no extension");
    };
    let mut path_state = known();
    path_state.set_number(Field::CtMark, 0xf0);
    path_state.begin();
    target(extension, &mut path_state).unwrap();
    path_state.number(field)
}

#[test]
fn targets_change_packets_like_the_kernel() {
    for (words, field, wanted) in [
        ("-j MARK --set-xmark 0x3/0xf", Field::Mark, 0x13),
        ("-j MARK --or-mark 0x20", Field::Mark, 0x35),
        ("-j MARK --xor-mark 0x1", Field::Mark, 0x14),
        ("-j CONNMARK --set-xmark 0x1/0x10", Field::CtMark, 0xe1),
        (
            "-j CONNMARK --save-mark --nfmask 0xf --ctmask 0xff",
            Field::CtMark,
            0x5,
        ),
        (
            "-j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xf0",
            Field::Mark,
            0xf0,
        ),
        (
            "-j CONNMARK --left-shift-mark 4 --restore-mark --nfmask 0xff --ctmask 0x10",
            Field::Mark,
            0x100,
        ),
        ("-j TOS --set-tos 0x20/0xe0", Field::Tos, 0x38),
        ("-j DSCP --set-dscp 10", Field::Tos, 0x28),
        ("-j TTL --ttl-inc 200", Field::Ttl, 255),
        ("-j TTL --ttl-dec 1", Field::Ttl, 63),
        ("-p tcp -j ECN --ecn-tcp-remove", Field::TcpFlags, 2),
        (
            "-j CLASSIFY --set-class 1:2",
            Field::Meta(MetaKey::PRIORITY),
            0x10002,
        ),
        (
            "-p tcp -j DNAT --to-destination 10.9.0.1:8080",
            Field::Destination,
            0x0a09_0001,
        ),
        (
            "-p tcp -j DNAT --to-destination :8080",
            Field::DestinationPort,
            8080,
        ),
        (
            "-j NETMAP --to 10.9.0.0/16",
            Field::Destination,
            0x0a09_0001,
        ),
        (
            "-p tcp -j REDIRECT --to-ports 8080",
            Field::Destination,
            0x7f00_0001,
        ),
        ("-j SNAT --to-source 10.9.0.1", Field::Source, 0x0a09_0001),
    ] {
        assert_eq!(made(words, field), Some(wanted), "{words}");
    }
}

#[test]
fn list_entries_added_by_rules_match() {
    let parse = |words| Rule::parse(Family::Ipv4, words).unwrap();
    let check = parse("-m recent --rcheck --name seen");
    let both = outcomes(known(), |path_state| matches(&check.matches[0], path_state));
    assert_eq!(both.len(), 2);
    let mut path_state = known();
    let (set, remove) = (
        parse("-m recent --set --name seen"),
        parse("-m recent --remove --name seen"),
    );
    let mut one = |rule: &Rule| matches(&rule.matches[0], &mut path_state).unwrap();
    assert!(one(&set) && one(&check));
    assert!(one(&remove) && !one(&check));
    // A different list is a different condition.
    let other = parse("-m recent --rcheck --name other");
    assert!(matches(&other.matches[0], &mut path_state).is_err());
}

/// Two different BPF programs, which cannot be evaluated, are two different conditions.
#[test]
fn different_bpf_programs_are_distinguished() {
    let condition = |words: &str| {
        let rule = Rule::parse(Family::Ipv4, words).unwrap();
        let encoded = rule.matches[0].encode(Family::Ipv4).unwrap();
        let name = encoded.name.as_bytes();
        match read_match(&mut known(), name, encoded.revision, &encoded.info) {
            Err(Undetermined::Split(alternatives)) => format!("{:?}", alternatives[0].assumption),
            other => panic!("{other:?}"),
        }
    };
    let one = condition("-m bpf --bytecode \"4,48 0 0 9,21 0 1 6,6 0 0 1,6 0 0 0\"");
    let other = condition("-m bpf --bytecode \"4,48 0 0 9,21 0 1 17,6 0 0 1,6 0 0 0\"");
    assert_ne!(one, other);
}

#[test]
fn chance_has_its_probability() {
    for (words, wanted) in [
        ("-m statistic --mode random --probability 0.25", 0.25),
        ("-m statistic --mode random ! --probability 0.25", 0.75),
        ("-m statistic --mode nth --every 4 --packet 1", 0.25),
        ("-m statistic --mode nth ! --every 4 --packet 1", 0.75),
    ] {
        let rule = Rule::parse(Family::Ipv4, words).unwrap();
        let Err(Undetermined::Split(alternatives)) = matches(&rule.matches[0], &mut known()) else {
            panic!("{words}: the result should be random");
        };
        let mut yes = 0.0;
        for alternative in alternatives {
            let mut part = known();
            assert!(part.take(&alternative));
            part.begin();
            if matches(&rule.matches[0], &mut part).unwrap() {
                yes += part.probability;
            }
        }
        assert!((yes - wanted).abs() < 1e-6, "{words}: {yes}");
    }
}
