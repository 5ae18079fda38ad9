//! Commits that depend only on some tables.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use crate::common::{OnDrop, committed, connect, report, sandbox};
use chainwright::Retry;
use chainwright::iptables::{self, Iptables};
use chainwright::nft::expr::{Counter, Immediate};
use chainwright::nft::{
    Chain, Connection, DataType, Element, Family, Guard, PlanOptions, Rule, Scope, Set, SetId,
    Table, TableFlags, Transaction,
};
use chainwright::xt::Family as IptablesFamily;
use chainwright_testing::Sandbox;

const IP: Family = Family::IP;

fn with_tables(names: &[&'static str]) -> Sandbox {
    let sandbox = sandbox();
    committed(&mut connect(&sandbox), |tx| {
        for &name in names {
            tx.add(&Table::new(IP, name)).unwrap();
            tx.add(&Chain::new(IP, name, "c")).unwrap();
            let set = Set::new(IP, name, "s", DataType::IPV4_ADDR, 4);
            tx.add(&set).unwrap();
        }
    });
    sandbox
}

fn another_chain(name: &'static str) -> Transaction {
    let mut tx = Transaction::new();
    tx.add(&Chain::new(IP, "mine", name)).unwrap();
    tx
}

/// Whether a guard over the table that was begun before this change still holds. Checks that this
/// decides about the commit.
#[track_caller]
fn is_unchanged(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) -> bool {
    let mut read_guard = nft.guard(&[Scope::table(IP, "mine")]).unwrap();
    let mut commit_guard = nft.guard(&[Scope::table(IP, "mine")]).unwrap();
    committed(nft, fill);
    let is_unchanged = read_guard.is_unchanged(nft).unwrap();
    let result = commit_guard.commit(nft, &mut another_chain("made"));
    let is_there = nft.chain_exists(IP, "mine", "made").unwrap();
    match result {
        Ok(()) => assert!(is_unchanged && is_there),
        Err(error) => {
            assert!(error.generation_moved(), "{}", report(&error));
            assert!(!is_unchanged && !is_there);
        }
    }
    if is_there {
        committed(nft, |tx| {
            tx.delete(&Chain::new(IP, "mine", "made")).unwrap();
        });
    }
    is_unchanged
}

/// Changes of every kind in the table count, those of other tables do not.
#[test]
fn only_changes_of_the_table_count() {
    let sandbox = with_tables(&["mine", "other", "mine2"]);
    let mut nft = connect(&sandbox);
    let rule = |table: &'static str| Rule::new(IP, table, "c").with(&Counter::new(0, 0));
    let dormant = |table: &'static str| Table {
        flags: Some(TableFlags::DORMANT),
        ..Table::new(IP, table)
    };
    for (table, expected) in [("other", true), ("mine2", true), ("mine", false)] {
        assert_eq!(
            is_unchanged(&mut nft, |tx| _ = tx.add(&rule(table)).unwrap()),
            expected
        );
        let flush = |tx: &mut Transaction| _ = tx.flush_chain(IP, table, "c").unwrap();
        assert_eq!(is_unchanged(&mut nft, flush), expected);
        let add = |tx: &mut Transaction| {
            let element = Element::new(&[192, 0, 2, 1]);
            tx.add_elements(&SetId::new(IP, table, "s"), [element])
                .unwrap();
        };
        assert_eq!(is_unchanged(&mut nft, add), expected);
        let new = |tx: &mut Transaction| _ = tx.add(&Chain::new(IP, table, "new")).unwrap();
        assert_eq!(is_unchanged(&mut nft, new), expected);
        assert_eq!(
            is_unchanged(&mut nft, |tx| _ = tx.add(&dormant(table)).unwrap()),
            expected
        );
    }
    // The same name in another family is another table.
    let v6 = Table::new(Family::IP6, "mine");
    assert!(is_unchanged(&mut nft, |tx| _ = tx.add(&v6).unwrap()));
    assert!(is_unchanged(&mut nft, |tx| _ = tx.delete(&v6).unwrap()));
    // Deletion and creation in one transaction count, too.
    let mut guard = nft.guard(&[Scope::table(IP, "mine")]).unwrap();
    committed(&mut nft, |tx| {
        _ = tx.delete(&Table::new(IP, "mine")).unwrap()
    });
    assert!(!guard.is_unchanged(&mut nft).unwrap());
    let mut absent = nft.guard(&[Scope::table(IP, "mine")]).unwrap();
    committed(&mut nft, |tx| _ = tx.add(&Table::new(IP, "mine")).unwrap());
    assert!(!absent.is_unchanged(&mut nft).unwrap());
}

#[test]
fn a_guard_covers_several_tables_and_one_commit() {
    let sandbox = with_tables(&["mine", "yours", "other"]);
    let mut nft = connect(&sandbox);
    let both = [Scope::table(IP, "mine"), Scope::table(IP, "yours")];
    let guards: [Guard; 3] = std::array::from_fn(|_| nft.guard(&both).unwrap());
    let [mut first, mut second, mut third] = guards;
    let more = |tx: &mut Transaction| _ = tx.add(&Chain::new(IP, "other", "x")).unwrap();
    committed(&mut nft, more);
    for guard in [&mut first, &mut second, &mut third] {
        assert!(guard.is_unchanged(&mut nft).unwrap());
        assert!(guard.is_unchanged(&mut nft).unwrap());
    }
    let mut tx = another_chain("a");
    first.check(&mut nft, &mut tx).unwrap();
    assert!(first.is_unchanged(&mut nft).unwrap());
    first.commit(&mut nft, &mut tx).unwrap();
    assert!(!first.is_unchanged(&mut nft).unwrap());
    let error = first.commit(&mut nft, &mut another_chain("b")).unwrap_err();
    assert!(error.generation_moved());
    // An empty transaction succeeds without a condition.
    first.commit(&mut nft, &mut Transaction::new()).unwrap();

    let error = second.check(&mut nft, &mut another_chain("b")).unwrap_err();
    assert!(error.generation_moved());
    let yours = Chain::new(IP, "yours", "x");
    let mut tx = Transaction::new();
    tx.add(&yours).unwrap();
    assert!(
        third
            .commit(&mut nft, &mut tx)
            .unwrap_err()
            .generation_moved()
    );
    assert!(!nft.chain_exists(IP, "yours", "x").unwrap());
}

/// An error of the kernel is returned as without a guard.
#[test]
fn other_errors_are_returned_unchanged() {
    let sandbox = with_tables(&["mine"]);
    let mut nft = connect(&sandbox);
    let mut guard = nft.guard(&[Scope::table(IP, "mine")]).unwrap();
    let mut tx = Transaction::new();
    tx.delete(&Chain::new(IP, "mine", "absent")).unwrap();
    let error = guard.commit(&mut nft, &mut tx).unwrap_err();
    assert!(!error.generation_moved());
    assert_eq!(error.failures.len(), 1);
    // Nothing was changed: the guard still holds.
    guard.commit(&mut nft, &mut another_chain("a")).unwrap();
}

/// More notifications than the guard's socket can hold: the lost ones may have been about the table.
#[test]
fn lost_notifications_count_as_changes() {
    let sandbox = with_tables(&["mine", "other"]);
    let mut nft = connect(&sandbox);
    let mut guard = nft.guard(&[Scope::table(IP, "mine")]).unwrap();
    let elements: Vec<_> = (0..20_000_u32).map(u32::to_be_bytes).collect();
    let set = SetId::new(IP, "other", "s");
    for _ in 0..8 {
        committed(&mut nft, |tx| {
            let elements = elements.iter().map(Element::new);
            tx.add_elements(&set, elements).unwrap();
        });
        committed(&mut nft, |tx| _ = tx.flush_set(&set).unwrap());
    }
    assert!(!guard.is_unchanged(&mut nft).unwrap());
    let error = guard.commit(&mut nft, &mut another_chain("a")).unwrap_err();
    assert!(error.generation_moved());
}

/// Commits constantly to the table `other` until the returned value is dropped.
fn rival<'scope, 'env>(
    scope: &'scope thread::Scope<'scope, 'env>,
    sandbox: &Sandbox,
    stop: &'env AtomicBool,
    commits: &'env AtomicU32,
) -> OnDrop<impl FnMut() + use<'env>> {
    let mut nft = connect(sandbox);
    scope.spawn(move || {
        let chain = Chain::new(IP, "other", "chain");
        let (mut add, mut delete) = (Transaction::new(), Transaction::new());
        add.add(&Table::new(IP, "other"))
            .unwrap()
            .add(&chain)
            .unwrap();
        delete.delete(&chain).unwrap();
        while !stop.load(Ordering::Relaxed) {
            for tx in [&add, &delete] {
                nft.commit(tx).unwrap();
                commits.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    while commits.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
    OnDrop(|| stop.store(true, Ordering::Relaxed))
}

/// Counts in the numbers of rules: what two writers read and then change, while a third commits
/// constantly, is neither lost nor done twice.
#[test]
fn conditional_changes_succeed_despite_concurrent_commits() {
    const ROUNDS: usize = 100;
    let sandbox = with_tables(&["mine", "other"]);
    let (stop, commits) = (AtomicBool::new(false), AtomicU32::new(0));
    let rules = |nft: &mut Connection| {
        let mut rules = 0;
        let listing = nft.rules(Scope::table(IP, "mine")).unwrap();
        listing.for_each(|_| rules += 1).map(|()| rules)
    };
    let refused = AtomicU32::new(0);
    thread::scope(|scope| {
        let _stop = rival(scope, &sandbox, &stop, &commits);
        let work = || {
            let mut nft = connect(&sandbox);
            let mut done = 0;
            while done < ROUNDS {
                let mut guard = nft.guard(&[Scope::table(IP, "mine")]).unwrap();
                // The dump may be reported as interrupted: then this starts again.
                let Ok(count) = rules(&mut nft) else { continue };
                let name = format!("n{count}");
                let mut tx = Transaction::new();
                tx.add(&Rule::new(IP, "mine", "c").with(&Immediate::accept()))
                    .unwrap();
                // Only one can create it.
                tx.create(&Chain::new(IP, "mine", &name)).unwrap();
                match guard.commit(&mut nft, &mut tx) {
                    Ok(()) => done += 1,
                    Err(error) => {
                        assert!(error.generation_moved(), "{}", report(&error));
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        };
        let other = scope.spawn(work);
        work();
        other.join().unwrap();
    });
    assert_eq!(rules(&mut connect(&sandbox)).unwrap(), 2 * ROUNDS);
    println!("{refused:?} refused, {commits:?} commits elsewhere");
}

/// Sixteen attempts each suffice, however much happens elsewhere.
#[test]
fn updates_and_reconciliations_succeed_despite_concurrent_commits() {
    let sandbox = with_tables(&["mine", "other"]);
    let (stop, commits) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut nft = connect(&sandbox).with_retry(Retry::times(16));
    let desired = nft.snapshot(Scope::table(IP, "mine")).unwrap();
    let mut iptables = sandbox
        .run(|| Iptables::open(iptables::Backend::Nft))
        .unwrap()
        .unwrap()
        .with_retry(Retry::times(16));
    thread::scope(|scope| {
        let _stop = rival(scope, &sandbox, &stop, &commits);
        let mut elsewhere = 0;
        for round in 0..100 {
            let before = commits.load(Ordering::Relaxed);
            committed(&mut nft, |tx| {
                tx.add(&Chain::new(IP, "mine", format!("foreign{round}")))
                    .unwrap();
            });
            let plan = nft.reconcile(&desired, PlanOptions::default());
            let plan = plan.unwrap_or_else(|e| panic!("round {round}: {}", report(&e)));
            assert_eq!(plan.transaction().len(), 1);
            // Appended if it is missing, which requires reading.
            let address = std::net::Ipv4Addr::new(192, 0, 2, round);
            let rule = iptables::Rule {
                source: Some(iptables::Address::network(address.into(), 32)),
                ..iptables::Rule::new(iptables::Target::Accept)
            };
            for expected in [true, false] {
                let made = iptables.update(IptablesFamily::Ipv4, "filter", |table| {
                    let is_there = table.contains("FORWARD", &rule)?;
                    if !is_there {
                        table.append("FORWARD", &rule)?;
                    }
                    Ok(!is_there)
                });
                let made = made.unwrap_or_else(|e| panic!("round {round}: {}", report(&e)));
                assert_eq!(made, expected, "round {round}");
            }
            elsewhere += commits.load(Ordering::Relaxed) - before;
        }
        println!("{elsewhere} commits elsewhere");
    });
}
