//! A change in groups: those that the kernel refuses are skipped, the rest is committed in one transaction. Each
//! test runs with the kernel and with the fake kernel.

use std::collections::BTreeMap;

use crate::common::{bound_chain, connect, report, rule_of_bound_chain, sandbox};
use bstr::{BString, ByteSlice};
use chainwright::nft::expr::{Counter, Immediate, Lookup, Payload, PayloadBase, Register, Verdict};
use chainwright::nft::{
    Chain, CommitError, CommittedGroups, Connection, DataType, Element, Family, Outcome, Rule,
    Scope, Set, Table, Transaction, TransactionGroups,
};
use chainwright_testing::FakeKernel;

const IP: Family = Family::IP;

/// Runs a test with the kernel and with the fake kernel.
fn with_both(test: impl Fn(&mut Connection)) {
    let sandbox = sandbox();
    test(&mut connect(&sandbox));
    test(&mut FakeKernel::new().connect().unwrap());
}

fn written(fill: impl FnOnce(&mut Transaction)) -> Transaction {
    let mut tx = Transaction::new();
    fill(&mut tx);
    tx
}

fn chain(tx: &mut Transaction, name: &str) {
    tx.add(&Chain::new(IP, "t", name.to_owned())).unwrap();
}

fn jump(tx: &mut Transaction, from: &str, to: &str) {
    let rule = Rule::new(IP, "t", from.to_owned()).with(&Immediate::jump(to.to_owned()));
    tx.add(&rule).unwrap();
}

/// A set of addresses without a name and a number.
fn anonymous() -> Set<'static> {
    Set::anonymous(IP, "t", "__set%d", 0, DataType::IPV4_ADDR, 4)
}

/// The table for all objects.
fn base() -> Transaction {
    written(|tx| _ = tx.add(&Table::new(IP, "t")).unwrap())
}

#[track_caller]
fn committed<'g, K>(
    nft: &mut Connection,
    groups: &'g TransactionGroups<K>,
) -> CommittedGroups<'g, K> {
    let before = nft.generation().unwrap();
    let committed = match nft.commit_groups(groups) {
        Ok(committed) => committed,
        Err(error) => panic!("{}", report(&error)),
    };
    // Everything was committed in one step.
    let after = nft.generation().unwrap();
    match committed.generation {
        None => assert_eq!(after, before),
        Some(made) => {
            assert_eq!(made, after);
            assert_eq!(made.number(), before.number() + 1);
        }
    }
    assert_eq!(
        committed.committed.len() + committed.skipped.len(),
        groups.len()
    );
    committed
}

/// The skipped groups: the texts of their failures, and the groups that caused them.
fn skipped_keys<'g>(
    committed: &CommittedGroups<'g, &'g str>,
) -> Vec<(&'g str, Vec<String>, Vec<&'g str>)> {
    let skipped = committed.skipped.iter();
    skipped
        .map(|skipped| {
            let failures = skipped.failures.iter().map(|failure| {
                let operation = failure.operation.as_ref().unwrap();
                format!("{operation}: {}", failure.errno.name())
            });
            let caused_by = skipped.caused_by.iter().map(|key| **key);
            (*skipped.key, failures.collect(), caused_by.collect())
        })
        .collect()
}

fn chains(nft: &mut Connection) -> Vec<String> {
    let mut names = Vec::new();
    let chains = nft.chains(Scope::all()).unwrap();
    chains
        .for_each(|chain| names.push(chain.name().to_string()))
        .unwrap();
    names.sort();
    names
}

/// A service: a chain with a rule that looks an address up in an anonymous set. All use the same number for that
/// set.
fn service(number: u16, target: &str) -> Transaction {
    let name = format!("svc-{number}");
    written(|tx| {
        chain(tx, &name);
        let set = tx.add_anonymous(&anonymous()).unwrap();
        let [high, low] = number.to_be_bytes();
        tx.add_elements(&set, [Element::new(&[10, 0, high, low])])
            .unwrap();
        let lookup = Lookup {
            set_id: set.id,
            ..Lookup::set(Register::R1, "__set%d")
        };
        let address = Payload::load(PayloadBase::NETWORK, 16, 4, Register::R1);
        let rule = Rule::new(IP, "t", name.clone())
            .with(&address)
            .with(&lookup)
            .with(&Immediate::jump(target.to_owned()));
        tx.add(&rule).unwrap();
    })
}

#[test]
fn one_bad_service_of_a_thousand() {
    with_both(|nft| {
        let mut groups = TransactionGroups::new();
        groups.add(
            u16::MAX,
            written(|tx| {
                tx.add(&Table::new(IP, "t")).unwrap();
                chain(tx, "pods");
            }),
        );
        for number in 0..1000 {
            let target = if number == 617 { "none" } else { "pods" };
            groups.add(number, service(number, target));
        }
        let done = committed(nft, &groups);
        assert_eq!(done.attempts, 2);
        assert_eq!(done.committed.len(), 1000);
        let [bad] = &done.skipped[..] else {
            panic!("{:?}", done.skipped);
        };
        assert_eq!((*bad.key, bad.caused_by.len()), (617, 0));
        let [failure] = &bad.failures[..] else {
            panic!("{bad:?}");
        };
        let operation = failure.operation.as_ref().unwrap();
        assert_eq!(operation.to_string(), "add rule ip t svc-617 #3");
        assert_eq!(failure.errno.name(), "ENOENT");

        // Each has its own set, with its own address.
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let table = snapshot.table(IP, "t").unwrap();
        let addresses: BTreeMap<BString, Vec<u8>> = (table.sets())
            .map(|set| {
                let mut keys = set.elements().map(|e| e.key_bytes().unwrap().to_vec());
                let only = keys.next().unwrap();
                assert_eq!(keys.next(), None);
                (set.set().name().to_owned(), only)
            })
            .collect();
        assert_eq!(addresses.len(), 999);
        for number in (0..1000_u16).filter(|number| *number != 617) {
            let name = format!("svc-{number}");
            let chain = snapshot.chain(IP, "t", name.as_str()).unwrap();
            let rule = chain.rules().next().unwrap();
            let mut expressions = rule.expressions().unwrap().map(Result::unwrap);
            let lookup = expressions.find(|e| e.name == "lookup").unwrap();
            let named =
                |name: &BString| lookup.attributes.contains_str([name, &b"\0"[..]].concat());
            let (_, address) = addresses.iter().find(|(name, _)| named(name)).unwrap();
            let [high, low] = number.to_be_bytes();
            assert_eq!(address, &[10, 0, high, low], "{name}");
        }
    });
}

#[test]
fn dependents_of_a_failed_group_are_skipped() {
    with_both(|nft| {
        let mut groups = TransactionGroups::new();
        groups.add("base", base());
        groups.add(
            "pods",
            written(|tx| {
                chain(tx, "pods");
                jump(tx, "pods", "none");
            }),
        );
        groups.add(
            "web",
            written(|tx| {
                chain(tx, "web");
                jump(tx, "web", "pods");
            }),
        );
        groups.add("dns", written(|tx| chain(tx, "dns")));
        groups.add(
            "entry",
            written(|tx| {
                chain(tx, "entry");
                jump(tx, "entry", "dns");
                jump(tx, "entry", "web");
            }),
        );
        let done = committed(nft, &groups);
        assert_eq!(done.committed, [&"base", &"dns"]);
        let refused = |words: &str| vec![format!("{words}: ENOENT")];
        assert_eq!(
            skipped_keys(&done),
            [
                ("pods", refused("add rule ip t pods #1"), vec![]),
                ("web", refused("add rule ip t web #1"), vec!["pods"]),
                ("entry", refused("add rule ip t entry #2"), vec!["web"]),
            ]
        );
        assert_eq!(done.attempts, 4);
        assert_eq!(chains(nft), ["dns"]);
    });
}

#[test]
fn a_rejected_table_skips_everything_in_it() {
    with_both(|nft| {
        let mut groups = TransactionGroups::new();
        groups.add(
            "other",
            written(|tx| _ = tx.add(&Table::new(IP, "other")).unwrap()),
        );
        groups.add(
            "base",
            written(|tx| {
                tx.add(&Table::new(IP, "t")).unwrap();
                tx.create(&Table::new(IP, "t")).unwrap();
            }),
        );
        groups.add("web", written(|tx| chain(tx, "web")));
        groups.add("dns", written(|tx| chain(tx, "dns")));
        let done = committed(nft, &groups);
        assert_eq!(done.committed, [&"other"]);
        let skipped_groups = skipped_keys(&done);
        assert_eq!(skipped_groups[0].1, ["create table ip t #1: EEXIST"]);
        assert_eq!(
            (skipped_groups[1].0, &skipped_groups[1].2[..]),
            ("web", &["base"][..])
        );
        assert_eq!(
            (skipped_groups[2].0, &skipped_groups[2].2[..]),
            ("dns", &["base"][..])
        );
    });
}

/// The loop exists only when all jumps do.
#[test]
fn the_group_that_closes_a_loop_is_skipped() {
    with_both(|nft| {
        let mut groups = TransactionGroups::new();
        groups.add(
            "base",
            written(|tx| {
                tx.add(&Table::new(IP, "t")).unwrap();
                for name in ["a", "b", "c"] {
                    chain(tx, name);
                }
                let base = Chain::new(IP, "t", "input").with_hook(
                    "filter",
                    chainwright::nft::Hook::INPUT,
                    chainwright::nft::Priority::FILTER,
                );
                tx.add(&base).unwrap();
                jump(tx, "input", "a");
            }),
        );
        groups.add("a to b", written(|tx| jump(tx, "a", "b")));
        groups.add("b to c", written(|tx| jump(tx, "b", "c")));
        groups.add("c to a", written(|tx| jump(tx, "c", "a")));
        groups.add("more", written(|tx| chain(tx, "d")));
        let done = committed(nft, &groups);
        assert_eq!(done.committed, [&"base", &"a to b", &"b to c", &"more"]);
        let skipped_groups = skipped_keys(&done);
        assert_eq!(skipped_groups.len(), 1);
        assert_eq!(skipped_groups[0].0, "c to a");
        assert!(
            ["ELOOP", "EMLINK"]
                .iter()
                .any(|errno| skipped_groups[0].1[0].ends_with(errno)),
            "{skipped_groups:?}"
        );
    });
}

/// The kernel detects it at the commit, and names no operation.
#[test]
fn the_group_with_an_unused_set_is_found() {
    with_both(|nft| {
        let mut groups = TransactionGroups::new();
        groups.add("base", base());
        groups.add(
            "set",
            written(|tx| {
                chain(tx, "c");
                tx.add_anonymous(&anonymous()).unwrap();
            }),
        );
        groups.add(
            "chain",
            written(|tx| _ = tx.add(&bound_chain(IP, "t", 1)).unwrap()),
        );
        groups.add("more", written(|tx| chain(tx, "d")));
        let done = committed(nft, &groups);
        assert_eq!(done.committed, [&"base", &"more"]);
        let skipped_groups = skipped_keys(&done);
        assert_eq!(skipped_groups[0].1, ["add set ip t __set%d #1: EINVAL"]);
        assert_eq!((skipped_groups[1].0, skipped_groups.len()), ("chain", 2));
        assert_eq!(chains(nft), ["d"]);
    });
}

#[test]
fn bound_chains_of_several_groups_are_kept_apart() {
    with_both(|nft| {
        let mut groups = TransactionGroups::new();
        groups.add("base", base());
        for (name, number) in [("one", 1), ("two", 2)] {
            let tx = written(|tx| {
                chain(tx, name);
                tx.add(&bound_chain(IP, "t", 7)).unwrap();
                let inner = rule_of_bound_chain(IP, "t", 7).with(&Counter::new(number, 0));
                tx.add(&inner).unwrap();
                let rule = Rule::new(IP, "t", name).with(&Immediate::verdict(Verdict::JumpId(7)));
                tx.add(&rule).unwrap();
            });
            groups.add(name, tx);
        }
        let done = committed(nft, &groups);
        assert!(done.skipped.is_empty(), "{:?}", skipped_keys(&done));
        assert_eq!(done.attempts, 1);
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let mut rules = Vec::new();
        for chain in snapshot.table(IP, "t").unwrap().chains() {
            rules.push(chain.rules().count());
        }
        assert_eq!(rules, [1, 1, 1, 1]);
    });
}

/// A failing group first did something that makes another group fail: the latter is retried without it.
#[test]
fn groups_that_failed_because_of_others_are_retried() {
    with_both(|nft| {
        let there = written(|tx| {
            tx.add(&Table::new(IP, "t")).unwrap();
            chain(tx, "shared");
        });
        nft.commit(&there).unwrap();
        let mut groups = TransactionGroups::new();
        groups.add(
            "bad",
            written(|tx| {
                tx.delete(&Chain::new(IP, "t", "shared")).unwrap();
                tx.create(&Table::new(IP, "t")).unwrap();
            }),
        );
        groups.add(
            "innocent",
            written(|tx| _ = tx.add(&Rule::new(IP, "t", "shared")).unwrap()),
        );
        groups.add("worse", written(|tx| jump(tx, "shared", "none")));
        groups.add("good", written(|tx| chain(tx, "more")));
        let done = committed(nft, &groups);
        assert_eq!(done.committed, [&"innocent", &"good"]);
        let skipped_groups = skipped_keys(&done);
        let keys: Vec<&str> = skipped_groups.iter().map(|(key, ..)| *key).collect();
        assert_eq!(keys, ["bad", "worse"]);
        assert_eq!(skipped_groups[0].1, ["create table ip t #1: EEXIST"]);
    });
}

#[test]
fn nothing_changes_if_all_groups_are_rejected() {
    with_both(|nft| {
        let mut groups = TransactionGroups::new();
        groups.add("one", written(|tx| chain(tx, "a")));
        groups.add("two", written(|tx| chain(tx, "b")));
        let done = committed(nft, &groups);
        assert!(done.committed.is_empty() && done.generation.is_none());
        assert_eq!(done.skipped.len(), 2);
        let nothing = TransactionGroups::<&str>::new();
        assert_eq!(committed(nft, &nothing).attempts, 0);
    });
}

#[test]
fn a_changed_generation_is_not_blamed_on_a_group() {
    with_both(|nft| {
        let before = nft.generation().unwrap();
        nft.commit(&base()).unwrap();
        let mut groups = TransactionGroups::new();
        groups.add("one", written(|tx| chain(tx, "a")));
        groups.add("two", written(|tx| jump(tx, "a", "none")));
        groups.expect_generation(before);
        let error: CommitError = nft.commit_groups(&groups).unwrap_err();
        assert!(error.generation_moved());
        assert_eq!(error.outcome, Outcome::NothingApplied);
        assert!(chains(nft).is_empty());
        groups.expect_generation(nft.generation().unwrap());
        let done = committed(nft, &groups);
        assert_eq!(
            (done.committed, chains(nft)),
            (vec![&"one"], vec!["a".to_owned()])
        );
    });
}

/// Others constantly commit in their own tables.
#[test]
fn groups_commit_under_a_guard() {
    let sandbox = sandbox();
    let (mut nft, mut other) = (connect(&sandbox), connect(&sandbox));
    nft.commit(&base()).unwrap();
    let mut guard = sandbox
        .run(|| nft.guard(&[Scope::table(IP, "t")]))
        .unwrap()
        .unwrap();
    let mut elsewhere = Transaction::new();
    elsewhere.add(&Table::new(IP, "other")).unwrap();
    other.commit(&elsewhere).unwrap();
    let mut groups = TransactionGroups::new();
    groups.add("bad", written(|tx| jump(tx, "none", "a")));
    groups.add("good", written(|tx| chain(tx, "a")));
    let done = guard.commit_groups(&mut nft, &groups).unwrap();
    assert_eq!(done.committed, [&"good"]);
    assert_eq!(done.generation, Some(nft.generation().unwrap()));
    let error = guard.commit_groups(&mut nft, &groups).unwrap_err();
    assert!(error.generation_moved());
}

/// A set and a chain with the same name: the group that creates the set is not the cause of the chain's failure.
#[test]
fn an_object_of_another_kind_with_the_same_name_is_not_blamed() {
    with_both(|nft| {
        nft.commit(&base()).unwrap();
        let set = |tx: &mut Transaction, name: &'static str| {
            let set = Set::new(IP, "t", name, DataType::IPV4_ADDR, 4);
            _ = tx.add(&set).unwrap();
        };
        let mut groups = TransactionGroups::new();
        groups.add("set", written(|tx| set(tx, "x")));
        groups.add(
            "broken set",
            written(|tx| {
                set(tx, "y");
                jump(tx, "none", "x");
            }),
        );
        groups.add(
            "broken chain",
            written(|tx| {
                chain(tx, "x");
                chain(tx, "y");
                jump(tx, "none", "x");
            }),
        );
        groups.add(
            "user",
            written(|tx| {
                chain(tx, "user");
                jump(tx, "user", "y");
            }),
        );
        let done = committed(nft, &groups);
        assert_eq!(done.committed, [&"set"]);
        let user = &done.skipped[2];
        assert_eq!(
            (*user.key, &user.caused_by[..]),
            ("user", &[&"broken chain"][..])
        );
    });
}

/// With nothing to try, no request is sent to the kernel.
#[test]
fn attempts_count_kernel_requests() {
    with_both(|nft| {
        let mut groups = TransactionGroups::new();
        groups.add("one", written(|tx| chain(tx, "a")));
        groups.add("two", written(|tx| chain(tx, "b")));
        groups.add("three", written(|tx| chain(tx, "c")));
        let done = committed(nft, &groups);
        assert_eq!((done.skipped.len(), done.attempts), (3, 2));
    });
}
