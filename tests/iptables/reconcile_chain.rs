//! Reconciles iptables chains with desired rules: the fewest changes, on both backends.

use std::collections::HashSet;

use crate::common::iptables::{open, state, tool};
use crate::common::random::Random;
use crate::common::read_only_thread::with_unwritable_tables;
use crate::common::rules::in_first_user_namespace;
use crate::common::tools::Tools;
use crate::common::{rules_of, sandbox};
use chainwright::iptables::nft::Profile;
use chainwright::iptables::text::RestoreOptions;
use chainwright::iptables::{Backend, Error, Family, Iptables, Rule, TableEdit};
use chainwright::nft::expr::{Counter, Immediate, Meta, MetaKey};
use chainwright::nft::{self, Transaction};
use chainwright_testing::Sandbox;

const BACKENDS: [Backend; 2] = [Backend::Nft, Backend::Legacy];
/// Rules that iptables prints in this form.
const RULES: [&str; 9] = [
    "-s 10.0.0.1/32 -j ACCEPT",
    "-s 10.0.0.0/8 -j DROP",
    "-i eth0 -p tcp -m tcp --dport 80 -j ACCEPT",
    "-p udp -m udp --sport 53 -m comment --comment \"a b\" -j RETURN",
    "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    "-m mark --mark 0x8000/0x8000 -j DROP",
    "-p tcp -m multiport --dports 80,443 -j MARK --set-xmark 0x1/0x1",
    "-m statistic --mode random --probability 0.50000000000 -j ACCEPT",
    "-d 224.0.0.0/4 -m limit --limit 5/min -j LOG --log-prefix \"x \"",
];

fn rule(text: &str) -> Rule {
    Rule::parse(Family::Ipv4, text).unwrap()
}

fn change<R>(
    iptables: &mut Iptables,
    edit: impl FnMut(&mut TableEdit<'_>) -> Result<R, Error>,
) -> R {
    let changed = iptables.update(Family::Ipv4, "filter", edit);
    changed.unwrap_or_else(|error| panic!("{}", crate::common::report(&error)))
}

/// The rules of a chain with their packet counters, as the backend's own tool prints them.
fn held(sandbox: &Sandbox, backend: Backend, chain: &str) -> Vec<(String, u64)> {
    let save = tool(backend, Family::Ipv4, "-save -c -t filter");
    let text = Tools::new(sandbox).save(&save);
    let start = format!("-A {chain} ");
    let of_chain = text.lines().filter_map(|line| {
        let (counters, rule) = line.strip_prefix('[')?.split_once("] ")?;
        let packets = counters.split_once(':')?.0.parse().unwrap();
        Some((rule.strip_prefix(&start)?.to_owned(), packets))
    });
    of_chain.collect()
}

/// Loads rules with the backend's own tool, each with a distinct packet counter.
fn load(sandbox: &Sandbox, backend: Backend, chain: &str, rules: &[&str]) {
    let restore = tool(backend, Family::Ipv4, "-restore --counters");
    drop(Tools::new(sandbox).run_with(&restore, &text(chain, rules)));
}

/// A text with these rules in a chain, each with a distinct packet counter.
fn text(chain: &str, rules: &[&str]) -> String {
    let policy = if chain == "INPUT" {
        "ACCEPT [0:0]"
    } else {
        "-"
    };
    let mut text = format!("*filter\n:{chain} {policy}\n");
    for (packets, rule) in (1..).zip(rules) {
        text += &format!("[{packets}:{}] -A {chain} {rule}\n", packets * 100);
    }
    text + "COMMIT\n"
}

/// Use `CHAIN_ROUNDS=1000` for the long run.
fn rounds() -> usize {
    crate::common::from_env("CHAIN_ROUNDS", 12)
}

/// Length of the longest common subsequence.
fn longest_in_common<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    let mut row = vec![0; other.len() + 1];
    for a in one {
        let mut diagonal = 0;
        for (at, b) in other.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = match a == b {
                true => diagonal + 1,
                false => above.max(row[at]),
            };
            diagonal = above;
        }
    }
    row[other.len()]
}

#[test]
fn reconcile_uses_the_fewest_changes() {
    let mut random = Random::new();
    for backend in BACKENDS {
        let sandbox = sandbox();
        let mut iptables = open(&sandbox, backend);
        let (mut kept, mut empty) = (0, 0);
        for _ in 0..rounds() {
            let mut some = |most| {
                let number = random.below(most);
                let rules = (0..number).map(|_| *random.of(&RULES));
                rules.collect::<Vec<_>>()
            };
            let (before, wanted) = (some(12), some(12));
            load(&sandbox, backend, "C", &before);
            let rules: Vec<_> = wanted.iter().map(|text| rule(text)).collect();
            let changes = change(&mut iptables, |table| table.reconcile_chain("C", &rules));

            let now = held(&sandbox, backend, "C");
            let texts: Vec<_> = now.iter().map(|(rule, _)| rule.as_str()).collect();
            assert_eq!(texts, wanted, "{backend:?}: {before:?}");
            let most = longest_in_common(&before, &wanted);
            assert_eq!(changes.kept, most, "{backend:?}: {before:?} {wanted:?}");
            assert_eq!(changes.deleted, before.len() - most);
            assert_eq!(changes.inserted, wanted.len() - most);
            // Rules that stay keep their counters and their order.
            let counted: Vec<_> = now.iter().filter(|(_, packets)| *packets > 0).collect();
            assert_eq!(counted.len(), most);
            assert!(counted.is_sorted_by_key(|(_, packets)| packets));
            for (rule, packets) in counted {
                assert_eq!(rule, before[*packets as usize - 1]);
            }
            kept += most;

            let again = change(&mut iptables, |table| table.reconcile_chain("C", &rules));
            assert!(again.is_empty() && again.kept == wanted.len(), "{again:?}");
            empty += usize::from(wanted.is_empty());
        }
        assert!(kept >= rounds() / 3, "{kept}");
        println!("{backend:?}: {kept} rules stayed, {empty} times none was desired");
    }
}

#[test]
fn no_changes_without_differences() {
    let rules: Vec<_> = RULES.iter().map(|text| rule(text)).collect();
    for backend in BACKENDS {
        let sandbox = sandbox();
        let mut iptables = open(&sandbox, backend);
        load(&sandbox, backend, "C", &RULES);
        let mut make = |table: &mut TableEdit<'_>| {
            let held = table.reconcile_chain("C", &rules)?;
            assert_eq!((held.kept, held.is_empty()), (RULES.len(), true));
            table.ensure_first("INPUT", &[Rule::jump("C")])
        };
        assert_eq!(change(&mut iptables, &mut make).inserted, 1);
        // Including counters, handles and nf_tables' generation.
        let before = state(&sandbox, backend);
        assert_eq!(held(&sandbox, backend, "C")[8].1, 9);
        assert!(change(&mut iptables, &mut make).is_empty());
        assert_eq!(state(&sandbox, backend), before);
        if backend == Backend::Nft {
            continue;
        }
        // Replacing a table by the same content would leave no trace: here it fails, as other changes do.
        let more = with_unwritable_tables(|| {
            assert!(change(&mut iptables, &mut make).is_empty());
            iptables.update(Family::Ipv4, "filter", |table| table.append("C", &rules[0]))
        });
        assert!(matches!(more, Err(Error::Legacy(_))), "{more:?}");
        assert_eq!(state(&sandbox, backend), before);
    }
}

/// These rules are at the beginning, once, whatever the chain contained before.
#[test]
fn desired_rules_are_first_exactly_once() {
    let mut random = Random::new();
    let chainwright = &RULES[..3];
    let rules: Vec<_> = chainwright.iter().map(|text| rule(text)).collect();
    for backend in BACKENDS {
        let sandbox = sandbox();
        let mut iptables = open(&sandbox, backend);
        for round in 0..rounds() {
            let before: Vec<_> = match round {
                0 => Vec::new(),
                _ => (0..10).map(|_| *random.of(&RULES)).collect(),
            };
            load(&sandbox, backend, "INPUT", &before);
            let changes = change(&mut iptables, |table| table.ensure_first("INPUT", &rules));
            let now = held(&sandbox, backend, "INPUT");
            let texts: Vec<_> = now.iter().map(|(rule, _)| rule.as_str()).collect();
            let is_other = |rule: &&str| !chainwright.contains(rule);
            let others = before.iter().copied().filter(is_other);
            let expected: Vec<_> = chainwright.iter().copied().chain(others).collect();
            assert_eq!(texts, expected, "{backend:?}: {before:?}");
            // No other rule was touched: each keeps its counter.
            for (rule, packets) in now.iter().filter(|(rule, _)| is_other(&rule.as_str())) {
                assert_eq!(before[*packets as usize - 1], rule);
            }
            let end = before.iter().position(is_other);
            let most = longest_in_common(&before[..end.unwrap_or(before.len())], chainwright);
            assert_eq!(changes.inserted, chainwright.len() - most, "{before:?}");
            assert_eq!(changes.kept, expected.len() - changes.inserted);
            let again = change(&mut iptables, |table| table.ensure_first("INPUT", &rules));
            assert!(again.is_empty(), "{again:?}");
        }
    }
}

/// A rule that iptables cannot express is a foreign rule: it stays after the desired ones, and is removed where no
/// others may be.
#[test]
fn inexpressible_rules() {
    let sandbox = sandbox();
    let mut iptables = open(&sandbox, Backend::Nft);
    load(&sandbox, Backend::Nft, "C", &RULES[..2]);
    let mut nft = crate::common::connect(&sandbox);
    let mut native = nft::Rule::new(nft::Family::IP, "filter", "C");
    let load_cpu = Meta {
        key: Some(MetaKey::CPU),
        dreg: Some(nft::expr::Register::R1),
        ..Meta::default()
    };
    native.push(&load_cpu).push(&Counter::new(0, 0));
    native.push(&Immediate::accept());
    let mut tx = Transaction::new();
    tx.insert(&native).unwrap();
    nft.commit(&tx).unwrap();
    let handles = || {
        let mut nft = crate::common::connect(&sandbox);
        let snapshot = nft.snapshot(nft::Scope::all()).unwrap();
        let chain = snapshot.chain(nft::Family::IP, "filter", "C").unwrap();
        chain.rules().map(|rule| rule.handle()).collect::<Vec<_>>()
    };
    let before = handles();
    let first = [rule(RULES[1])];
    let changes = change(&mut iptables, |table| table.ensure_first("C", &first));
    assert_eq!((changes.kept, changes.inserted, changes.deleted), (2, 1, 1));
    let after = handles();
    assert_eq!(after[1..], before[..2]);

    let changes = change(&mut iptables, |table| table.reconcile_chain("C", &first));
    assert_eq!((changes.kept, changes.inserted, changes.deleted), (1, 0, 2));
    assert_eq!(handles(), after[..1]);
}

/// An equivalent rule of another version stays, with its handle and counters.
#[test]
fn equal_rules_of_any_encoding_are_kept() {
    let profiles = [Profile::V1_8_7, Profile::V1_8_8, Profile::V1_8_10];
    let rules: Vec<_> = RULES.iter().map(|text| rule(text)).collect();
    let options = RestoreOptions {
        counters: true,
        ..RestoreOptions::default()
    };
    let mut encodings = HashSet::new();
    for written in profiles {
        let sandbox = sandbox();
        let open = |profile| open(&sandbox, Backend::Nft).with_profile(profile);
        let restored = open(written).restore(Family::Ipv4, text("C", &RULES), &options);
        assert_eq!(restored.unwrap().rules, RULES.len());
        let before = state(&sandbox, Backend::Nft);
        for profile in profiles {
            let changes = change(&mut open(profile), |table| {
                table.reconcile_chain("C", &rules)
            });
            let what = format!("{written:?} {profile:?}: {changes:?}");
            assert_eq!(
                (changes.kept, changes.is_empty()),
                (RULES.len(), true),
                "{what}"
            );
            assert_eq!(state(&sandbox, Backend::Nft), before, "{what}");
        }
        let packets = held(&sandbox, Backend::Nft, "C")
            .into_iter()
            .map(|(_, packets)| packets);
        assert!(packets.eq(1..=RULES.len() as u64), "{written:?}");
        let kernels = rules_of(
            &mut crate::common::connect(&sandbox),
            nft::Family::IP,
            "filter",
            "C",
        );
        let kernels = kernels.into_iter().map(|rule| rule.expressions);
        encodings.insert(format!("{:?}", kernels.collect::<Vec<_>>()));
    }
    assert_eq!(
        encodings.len(),
        profiles.len(),
        "profiles should have different encodings"
    );
}

/// Within one change: other edits before and after it, chains created in it, and errors that leave everything
/// unchanged.
#[test]
fn reconcile_combines_with_other_edits() {
    for backend in BACKENDS {
        let sandbox = sandbox();
        let mut iptables = open(&sandbox, backend);
        load(&sandbox, backend, "C", &RULES[..4]);
        let (first, last) = (rule(RULES[0]), rule(RULES[8]));
        change(&mut iptables, |table| {
            table.append("C", &last)?;
            let held = table.reconcile_chain("C", &[last.clone(), first.clone()])?;
            assert_eq!((held.kept, held.inserted, held.deleted), (1, 1, 4));
            table.reconcile_chain("NEW", &[Rule::jump("C"), last.clone()])?;
            table.ensure_first("FORWARD", &[Rule::jump("NEW")])?;
            table.append("C", &last)?;
            assert!(table.contains("C", &first)?);
            table.ensure_first("C", std::slice::from_ref(&first))
        });
        let texts = |chain: &str| {
            let held = held(&sandbox, backend, chain);
            held.into_iter().map(|(rule, _)| rule).collect::<Vec<_>>()
        };
        assert_eq!(texts("C"), [RULES[0], RULES[8], RULES[8]], "{backend:?}");
        assert_eq!(texts("NEW"), ["-j C", RULES[8]]);
        assert_eq!(texts("FORWARD"), ["-j NEW"]);

        let before = texts("C");
        let refused = iptables.update(Family::Ipv4, "filter", |table| {
            table.reconcile_chain("C", &[])?;
            table.ensure_first("C", &[Rule::jump("ABSENT")])
        });
        assert!(refused.is_err());
        assert_eq!(texts("C"), before);
    }
}

/// In nf_tables many moves cost the kernel more than replacing the chain; rules that stay keep their packets in
/// either case.
#[test]
fn a_long_chain_in_another_order_keeps_its_packets() {
    // Transactions of a user without privileges are limited: there the rules are moved one by one.
    let number: usize = if in_first_user_namespace() {
        9_000
    } else {
        300
    };
    for backend in BACKENDS {
        let sandbox = sandbox();
        let mut iptables = open(&sandbox, backend);
        let text = |at: usize| format!("-s 10.0.{}.{}/32 -j ACCEPT", at / 256, at % 256);
        let sorted: Vec<String> = (0..number).map(text).collect();
        let before: Vec<&str> = sorted.iter().map(String::as_str).collect();
        load(&sandbox, backend, "C", &before);
        // Every other rule stays in place, the others are reversed.
        let mut wanted = sorted.clone();
        for at in (1..number / 2).step_by(2) {
            wanted.swap(at, number - at);
        }
        let rules: Vec<_> = wanted.iter().map(|text| rule(text)).collect();
        let changes = change(&mut iptables, |table| table.reconcile_chain("C", &rules));
        assert!(changes.kept >= number / 2, "{changes:?}");
        let now = held(&sandbox, backend, "C");
        let texts: Vec<_> = now.iter().map(|(rule, _)| rule.as_str()).collect();
        assert!(texts == wanted, "{backend:?}");
        let counted = now.iter().filter(|(_, packets)| *packets > 0);
        let right = counted
            .clone()
            .all(|(rule, packets)| *rule == sorted[*packets as usize - 1]);
        assert!(right, "{backend:?}");
        assert_eq!(counted.count(), changes.kept, "{backend:?}");
        let again = change(&mut iptables, |table| table.reconcile_chain("C", &rules));
        assert!(again.is_empty(), "{again:?}");
    }
}
