//! The result of a commit: the generation that it created, and the kernel's messages about what it added.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::kernel::is_same_generation;
use crate::common::{OnDrop, connect, report, rules_of, sandbox};
use bstr::BString;
use chainwright::iptables::{self, Iptables};
use chainwright::nft::expr::{
    Counter, Expressions, Immediate, Lookup, Match, Payload, PayloadBase, Register,
};
use chainwright::nft::live::{Change, EventObject, Item, Mirror, Monitor, MonitorOptions};
use chainwright::nft::{
    Chain, Committed, Connection, DataType, Element, Family, Outcome, Pool, Rule, Scope, Set,
    StatefulObject, Table, Transaction,
};

const IP: Family = Family::IP;

#[track_caller]
fn echoed(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) -> Committed {
    let mut tx = Transaction::new();
    fill(&mut tx);
    let committed = match nft.commit_echo(&tx) {
        Ok(committed) => committed,
        Err(error) => panic!("{}", report(&error)),
    };
    assert_eq!(committed.operations(), tx.len());
    committed
}

/// The text of each operation's echo.
fn texts(committed: &Committed) -> Vec<Option<String>> {
    let operations = 0..committed.operations();
    operations
        .map(|operation| Some(committed.added(operation)?.to_string()))
        .collect()
}

/// The expressions of the rule that an operation added.
fn expressions_of(committed: &Committed, operation: usize) -> Option<Expressions<'static>> {
    let Ok(EventObject::Rule(rule)) = committed.added(operation).unwrap().object() else {
        panic!("{committed:?}");
    };
    rule.to_builder().into_owned().expressions
}

/// Opens a monitor in the namespace of the connection whose commits it must recognize.
fn watch(nft: &Connection) -> Monitor {
    MonitorOptions::default().open_in_namespace_of(nft).unwrap()
}

/// Checks that the change is recognized as the connection's own; if namespaces have no number, only by the
/// generation's.
#[track_caller]
fn is_own(committed: &Committed, change: &Change) {
    if !committed.matches(change) {
        is_same_generation(committed.generation().unwrap(), change.generation());
    }
}

fn numbered(number: u64) -> Rule<'static> {
    Rule::new(IP, "t", "c").with(&Counter::new(number, 2 * number))
}

#[test]
fn every_kind_of_object_is_echoed_with_its_handle() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let set = Set::new(IP, "t", "blocked", DataType::IPV4_ADDR, 4);
    let committed = echoed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        tx.add(&numbered(1)).unwrap();
        tx.add(&set).unwrap();
        tx.add_elements(&set.set_id(), [Element::new(&[192, 0, 2, 1])])
            .unwrap();
        tx.add(&StatefulObject::new(IP, "t", "seen", Counter::new(0, 0)))
            .unwrap();
        tx.insert(&numbered(2)).unwrap();
    });
    assert!(committed.is_complete() && committed.missing().is_empty());
    assert_eq!(committed.generation(), Some(nft.generation().unwrap()));
    let handles: Vec<_> = (0..7)
        .map(|operation| committed.handle(operation))
        .collect();

    let rules = rules_of(&mut nft, IP, "t", "c");
    assert_eq!(handles[6], rules[0].handle, "{committed:?}");
    assert_eq!(handles[2], rules[1].handle, "{committed:?}");
    assert_eq!(expressions_of(&committed, 6), rules[0].expressions);
    let table = nft.table(IP, "t").unwrap().unwrap().handle();
    assert_eq!(handles[0], Some(table));
    let chain = nft.chain(IP, "t", "c").unwrap().unwrap().handle();
    assert_eq!(handles[1], Some(chain));
    let set = nft.set(IP, "t", "blocked").unwrap().unwrap().handle();
    assert_eq!(handles[3], Some(set));
    // Elements have none.
    assert_eq!(handles[4], None);
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let table = snapshot.table(IP, "t").unwrap();
    let object = table.objects().next().unwrap().handle();
    assert_eq!(handles[5], Some(object));
    assert_eq!(committed.additions().count(), 6);
    assert_eq!(committed.added(7), None);
}

#[test]
fn echoed_rule_positions_match_the_listing() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let first = echoed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        for number in 1..=3 {
            tx.add(&numbered(number)).unwrap();
        }
    });
    let handle = |operation| first.handle(operation).unwrap();
    let second = echoed(&mut nft, |tx| {
        let behind = Rule {
            position: Some(handle(2)),
            ..numbered(11)
        };
        tx.add(&behind).unwrap();
        let before = Rule {
            position: Some(handle(4)),
            ..numbered(12)
        };
        tx.insert(&before).unwrap();
        let replacing = Rule {
            handle: Some(handle(3)),
            ..numbered(13)
        };
        tx.replace(&replacing).unwrap();
        let last = Rule {
            handle: Some(handle(4)),
            ..Rule::new(IP, "t", "c")
        };
        tx.delete(&last).unwrap();
        tx.insert(&numbered(14)).unwrap();
    });
    assert!(second.is_complete());
    let listed = rules_of(&mut nft, IP, "t", "c");
    let expected = [
        second.handle(4),
        Some(handle(2)),
        second.handle(0),
        second.handle(2),
        second.handle(1),
    ];
    let handles: Vec<_> = listed.iter().map(|rule| rule.handle).collect();
    assert_eq!(handles, expected);
    for operation in [0, 1, 2, 4] {
        let rule = listed
            .iter()
            .find(|rule| rule.handle == second.handle(operation))
            .unwrap();
        let expressions = expressions_of(&second, operation);
        assert_eq!(expressions, rule.expressions, "{operation}");
    }
    assert_eq!(second.added(3), None, "a deletion adds nothing");
}

#[test]
fn echo_returns_names_of_anonymous_sets() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let anonymous = Set::anonymous(IP, "t", "__set%d", 0, DataType::IPV4_ADDR, 4);
    let committed = echoed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        for host in 1..=2 {
            let set = tx.add_anonymous(&anonymous).unwrap();
            tx.add_elements(&set, [Element::new(&[192, 0, 2, host])])
                .unwrap();
            let lookup = Lookup {
                set_id: set.id,
                ..Lookup::set(Register::R1, "__set%d")
            };
            let source = Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1);
            tx.add(&Rule::new(IP, "t", "c").with(&source).with(&lookup))
                .unwrap();
        }
    });
    let names: Vec<BString> = [2, 5]
        .map(
            |operation| match committed.added(operation).unwrap().object() {
                Ok(EventObject::Set(set)) => set.name().to_owned(),
                other => panic!("{other:?}"),
            },
        )
        .to_vec();
    assert_eq!(names, ["__set0", "__set1"]);
    let mut listed = Vec::new();
    let sets = nft.sets(Scope::all()).unwrap();
    sets.for_each(|set| listed.push((set.name().to_owned(), set.handle())))
        .unwrap();
    let handles = [2, 5].map(|operation| committed.handle(operation).unwrap());
    let reported: Vec<_> = names.into_iter().zip(handles).collect();
    assert_eq!(reported, listed);
}

#[test]
fn an_empty_change_creates_no_generation() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    assert_eq!(echoed(&mut nft, |_| {}).generation(), None);
    let add = |tx: &mut Transaction| {
        tx.add(&Table::new(IP, "t")).unwrap();
    };
    let made = echoed(&mut nft, add);
    let before = nft.generation().unwrap();
    assert_eq!(made.generation(), Some(before));
    let again = echoed(&mut nft, add);
    assert_eq!(nft.generation().unwrap(), before);
    assert_eq!((again.generation(), again.is_complete()), (None, true));
    assert_eq!((texts(&again), again.missing()), (vec![None], &[][..]));
}

/// Transactions whose first operation adds nothing: how the generation is determined.
#[test]
fn the_generation_is_returned_for_any_operations() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut monitor = watch(&nft);
    let set = Set::new(IP, "t", "s", DataType::IPV4_ADDR, 4);
    let elements = [Element::new(&[192, 0, 2, 1]), Element::new(&[192, 0, 2, 2])];
    let fillings: [&dyn Fn(&mut Transaction); 7] = [
        &|tx| {
            tx.add(&Table::new(IP, "t")).unwrap();
            tx.add(&Chain::new(IP, "t", "c")).unwrap();
            tx.add(&set).unwrap();
        },
        &|tx| {
            tx.add_elements(&set.set_id(), &elements).unwrap();
        },
        &|tx| {
            tx.delete_elements(&set.set_id(), &elements[..1]).unwrap();
        },
        &|tx| {
            tx.flush_chain(IP, "t", "c").unwrap();
            tx.add(&numbered(1)).unwrap();
        },
        &|tx| {
            // The first operation causes no message.
            tx.add(&Table::new(IP, "t")).unwrap();
            tx.flush_set(&set.set_id()).unwrap();
        },
        &|tx| {
            tx.flush_chain(IP, "t", "c").unwrap();
        },
        &|tx| {
            tx.delete(&Table::new(IP, "t")).unwrap();
        },
    ];
    for (number, fill) in fillings.iter().enumerate() {
        let committed = echoed(&mut nft, fill);
        let Some(Item::Change(change)) = monitor.try_receive().unwrap() else {
            panic!("{number}");
        };
        assert_eq!(
            committed.generation(),
            Some(change.generation()),
            "{number}"
        );
        assert!(
            committed.matches(&change) && committed.is_complete(),
            "{number}"
        );
        assert_eq!(change.port(), nft.port());
    }
}

#[test]
fn a_rejected_transaction_fails_as_without_echo() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "t")).unwrap();
    tx.add(&Chain::new(IP, "t", "c")).unwrap();
    tx.add(&Rule::new(IP, "t", "c").with(&Immediate::jump("none")))
        .unwrap();
    tx.add(&Rule::new(IP, "t", "missing")).unwrap();
    let plain = nft.commit(&tx).unwrap_err();
    let error = nft.commit_echo(&tx).unwrap_err();
    assert_eq!(error.failures, plain.failures);
    assert_eq!(
        (error.outcome, error.failures.len()),
        (Outcome::NothingApplied, 2)
    );
    // Nothing of it is left on the socket either.
    assert!(nft.table(IP, "t").unwrap().is_none());
    let table = |tx: &mut Transaction| {
        tx.add(&Table::new(IP, "t")).unwrap();
    };
    assert_eq!(texts(&echoed(&mut nft, table)).len(), 1);
}

#[test]
fn ten_thousand_rules_are_echoed_with_their_listed_handles() {
    const RULES: u64 = 10_000;
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let committed = echoed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        for number in 0..RULES {
            tx.add(&numbered(number)).unwrap();
        }
    });
    let listed = rules_of(&mut nft, IP, "t", "c");
    assert_eq!(listed.len() as u64, RULES);
    assert!(
        committed.is_complete(),
        "{} missing",
        committed.missing().len()
    );
    for (operation, rule) in (2..).zip(&listed) {
        assert_eq!(committed.handle(operation), rule.handle);
        assert_eq!(expressions_of(&committed, operation), rule.expressions);
    }
}

/// The kernel has no message for a rule of more than some kilobytes.
#[test]
fn a_too_large_rule_is_reported_as_missing() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut large = Rule::new(IP, "t", "c");
    for _ in 0..60 {
        large.push(&Match::new("comment", 0, &[0; 256]));
    }
    let committed = echoed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        tx.add(&large).unwrap();
        tx.add(&numbered(1)).unwrap();
    });
    assert_eq!(committed.missing(), [2]);
    assert!(!committed.is_complete());
    assert_eq!((committed.added(2), committed.handle(2)), (None, None));
    let listed = rules_of(&mut nft, IP, "t", "c");
    assert_eq!(committed.handle(3), listed[1].handle);
    assert_eq!(committed.generation(), Some(nft.generation().unwrap()));
    let alone = echoed(&mut nft, |tx| {
        tx.flush_chain(IP, "t", "c").unwrap();
        tx.add(&large).unwrap();
    });
    assert_eq!((alone.generation(), alone.missing()), (None, &[1][..]));
}

/// Another program commits all the time: the returned generation and echo belong to this connection.
#[test]
fn with_a_concurrent_writer_the_generation_is_our_own() {
    const COMMITS: usize = 300;
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut monitor = watch(&nft);
    let mut other = connect(&sandbox);
    let stop = AtomicBool::new(false);
    let mut ours = Vec::new();
    let mut reported = BTreeMap::new();
    thread::scope(|scope| {
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        scope.spawn(|| {
            let mut tx = Transaction::new();
            tx.add(&Table::new(Family::IP6, "other")).unwrap();
            tx.add(&Chain::new(Family::IP6, "other", "c")).unwrap();
            tx.flush_table(Family::IP6, "other").unwrap();
            tx.add(&Rule::new(Family::IP6, "other", "c")).unwrap();
            while !stop.load(Ordering::Relaxed) {
                other.commit(&tx).unwrap();
            }
        });
        for number in 0..COMMITS {
            ours.push(echoed(&mut nft, |tx| {
                tx.add(&Table::new(IP, "t")).unwrap();
                tx.add(&Chain::new(IP, "t", "c")).unwrap();
                tx.add(&numbered(number as u64)).unwrap();
            }));
            while let Some(item) = monitor.try_receive().unwrap() {
                let Item::Change(change) = item else {
                    panic!("{item:?}");
                };
                reported.insert(change.generation().number(), change);
            }
        }
    });
    let mut between = 0;
    let mut before = None;
    for committed in &ours {
        let generation = committed.generation().unwrap();
        let change = &reported[&generation.number()];
        assert!(committed.matches(change));
        assert_eq!(change.port(), nft.port());
        let rule = change.events().last().unwrap();
        assert_eq!(rule.handle(), committed.handle(2));
        let gap = before.map_or(0, |before| generation.number() - before - 1);
        between += gap;
        before = Some(generation.number());
    }
    let own = reported
        .values()
        .filter(|change| change.port() == nft.port());
    assert_eq!(own.count(), COMMITS);
    assert!(between > 0, "no other program committed meanwhile");
}

/// The connections of a mirror, a pool and iptables are recognized by their ports.
#[test]
fn own_changes_are_recognized() {
    let sandbox = sandbox();
    sandbox
        .run(|| {
            let mut mirror = Mirror::open(Connection::open().unwrap(), &Scope::all()).unwrap();
            let pool = Pool::open().unwrap();
            let mut iptables = Iptables::nft().unwrap();
            let mut other = Connection::open().unwrap();
            let mut tx = Transaction::new();
            tx.add(&Table::new(IP, "t")).unwrap();
            tx.add(&Chain::new(IP, "t", "c")).unwrap();

            let by_mirror = mirror.connection().commit_echo(&tx).unwrap();
            let by_pool = pool.commit_echo(&tx).unwrap();
            other.commit(&tx).unwrap();
            iptables
                .update(iptables::Family::Ipv4, "nat", |table| {
                    table.ensure_chain("MINE")
                })
                .unwrap();
            let by_iptables = iptables.last_generation().unwrap();
            iptables
                .update(iptables::Family::Ipv4, "nat", |table| {
                    table.ensure_chain("MINE")
                })
                .unwrap();
            assert_eq!(iptables.last_generation(), None, "nothing should change");

            let changes: Vec<_> = mirror.update().unwrap();
            let changes: Vec<_> = changes
                .iter()
                .map(|update| match update {
                    chainwright::nft::live::Update::Change(change) => change,
                    other => panic!("{other:?}"),
                })
                .collect();
            let [one, two, three, four] = changes[..] else {
                panic!("{changes:?}");
            };
            assert!(by_mirror.matches(one) && !by_mirror.matches(two));
            assert_eq!(one.port(), mirror.connection().port());
            is_own(&by_pool, two);
            assert!(!by_pool.matches(one));
            assert_eq!(pool.ports(), [two.port()]);
            assert_eq!(three.port(), other.port());
            assert_eq!(Some(four.port()), iptables.port());
            is_same_generation(four.generation(), by_iptables);
            let mut ports: Vec<u32> = changes.iter().map(|change| change.port()).collect();
            ports.sort_unstable();
            ports.dedup();
            assert_eq!(ports.len(), 4);
        })
        .unwrap();
}

/// iptables' view returns the generation, even if nothing was read before and others commit.
#[test]
fn iptables_returns_the_generation_of_every_kind_of_change() {
    let sandbox = sandbox();
    let mut monitor = watch(&connect(&sandbox));
    sandbox
        .run(|| {
            let mut iptables = Iptables::nft().unwrap();
            let family = iptables::Family::Ipv4;
            let rule = iptables::Rule::parse(family, "-j ACCEPT").unwrap();
            let mut check = |iptables: &Iptables, what: &str| {
                let Some(Item::Change(change)) = monitor.try_receive().unwrap() else {
                    panic!("{what}");
                };
                let made = iptables.last_generation().expect(what);
                is_same_generation(made, change.generation());
            };
            iptables
                .update(family, "filter", |table| table.append("INPUT", &rule))
                .unwrap();
            check(&iptables, "a table that did not exist");
            iptables
                .update(family, "filter", |table| table.append("INPUT", &rule))
                .unwrap();
            check(&iptables, "a rule");
            iptables
                .update(family, "filter", |table| table.flush("INPUT"))
                .unwrap();
            check(&iptables, "a flush");
            let failed = iptables.update(family, "filter", |table| table.append("NONE", &rule));
            assert!(failed.is_err() && iptables.last_generation().is_none());
        })
        .unwrap();
}
