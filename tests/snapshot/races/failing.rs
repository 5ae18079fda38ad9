//! Snapshots while transactions fail, which the kernel rolls back.

use chainwright::nft::{CommitError, StatefulObject};

use super::*;

/// Consecutive tables with many objects of every kind.
fn many(tables: &[&'static str]) -> Sandbox {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    for &table in tables {
        committed(&mut nft, |tx| _ = tx.add(&Table::new(IP, table)).unwrap());
        // Nothing refers to these, and they are empty.
        committed_in_parts(&mut nft, 600, |tx, number| {
            let name = format!("{table}-empty{number:04}");
            tx.add(&Chain::new(IP, table, &name)).unwrap();
        });
        committed_in_parts(&mut nft, 600, |tx, number| {
            let name = format!("{table}{number:04}");
            tx.add(&Chain::new(IP, table, &name)).unwrap();
            for _ in 0..2 {
                let rule = Rule::new(IP, table, &name);
                tx.add(&rule.with(&Counter::new(0, 0)).with(&Immediate::accept()))
                    .unwrap();
            }
            let set = Set::new(IP, table, &name, DataType::IPV4_ADDR, 4);
            tx.add(&set).unwrap();
            tx.add(&StatefulObject::new(IP, table, &name, Counter::new(0, 0)))
                .unwrap();
        });
        let keys: Vec<_> = (0..5000u32).map(u32::to_be_bytes).collect();
        committed(&mut nft, |tx| {
            let set = Set::new(IP, table, "elements", DataType::IPV4_ADDR, 4);
            tx.add(&set).unwrap();
            let set = SetId::new(IP, table, "elements");
            tx.add_elements(&set, keys.iter().map(Element::new))
                .unwrap();
        });
    }
    // After the others, because new tables are appended.
    committed_in_parts(&mut nft, 600, |tx, number| {
        let name = format!("t{number:04}");
        tx.add(&Table::new(Family::IP6, &name)).unwrap();
    });
    sandbox
}

/// Everything in the snapshot, by name; duplicates are listed twice.
fn everything(snapshot: &Snapshot) -> Vec<String> {
    let mut all = Vec::new();
    for table in snapshot.tables() {
        let name = table.table().name().to_string();
        all.push(format!("table {name} {}", table.table().handle()));
        for chain in table.chains() {
            let chain_name = chain.chain().name().to_string();
            all.push(format!("chain {name} {chain_name}"));
            for rule in chain.rules() {
                all.push(format!("rule {name} {chain_name} {}", rule.handle()));
            }
        }
        for set in table.sets() {
            let set_name = set.set().name().to_string();
            all.push(format!("set {name} {set_name}"));
            for element in set.elements() {
                all.push(format!(
                    "element {name} {set_name} {:?}",
                    element.key_bytes()
                ));
            }
        }
        for object in table.objects() {
            all.push(format!("object {name} {}", object.name()));
        }
    }
    all.sort();
    all
}

/// A transaction that makes these preparations and then fails.
fn failing(fill: impl FnOnce(&mut Transaction)) -> Transaction {
    let mut tx = Transaction::new();
    fill(&mut tx);
    tx.delete(&Chain::new(IP, "a", "no such chain")).unwrap();
    tx
}

/// Takes snapshots while this transaction fails repeatedly: those reported as complete contain every
/// object once.
#[track_caller]
fn complete_while_failing(sandbox: &Sandbox, tx: Transaction) {
    let (stop, failures) = (AtomicBool::new(false), AtomicU32::new(0));
    let expected = everything(&connect(sandbox).snapshot(Scope::all()).unwrap());
    let (mut whole, mut refused) = (0, 0);
    thread::scope(|scope| {
        let _stop = repeat_in_background(scope, sandbox, &stop, |other| {
            let error: CommitError = other.commit(&tx).unwrap_err();
            assert_eq!(error.outcome, Outcome::NothingApplied);
            failures.fetch_add(1, Ordering::Relaxed);
        });
        while failures.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        sandbox
            .run(|| {
                let mut nft = Connection::open().unwrap();
                for _ in 0..READINGS {
                    match nft.snapshot(Scope::all()) {
                        Ok(snapshot) => {
                            let found = everything(&snapshot);
                            if found != expected {
                                let all: BTreeSet<_> = expected.iter().collect();
                                let seen: BTreeSet<_> = found.iter().collect();
                                let lacks: Vec<_> = all.difference(&seen).take(5).collect();
                                let twice: Vec<_> = found
                                    .windows(2)
                                    .filter(|two| two[0] == two[1])
                                    .map(|two| &two[0])
                                    .take(5)
                                    .collect();
                                let more: Vec<_> = seen.difference(&all).take(5).collect();
                                panic!(
                                    "after {whole} complete snapshots: {} objects instead of {}; missing \
                                     {lacks:?}, duplicate {twice:?}, unexpected {more:?}",
                                    found.len(),
                                    expected.len()
                                );
                            }
                            whole += 1;
                        }
                        Err(
                            SnapshotError::Interrupted { .. } | SnapshotError::Incomplete { .. },
                        ) => {
                            refused += 1;
                        }
                        Err(error) => panic!("{}", report(&error)),
                    }
                }
            })
            .unwrap();
    });
    println!(
        "{whole} complete snapshots, {refused} interrupted, {} failures",
        failures.into_inner()
    );
    assert!(whole > 0, "no complete snapshot, {refused} interrupted");
}

/// Number of snapshots of each kind.
const READINGS: usize = 25;

/// Number of objects that the failing transaction prepares, in the first table and before others.
const PREPARED: usize = 150;

#[test]
fn a_snapshot_is_complete_while_chains_and_rules_fail() {
    let sandbox = many(&["a", "b"]);
    complete_while_failing(
        &sandbox,
        failing(|tx| {
            for number in 0..PREPARED {
                let name = format!("new{number}");
                tx.add(&Chain::new(IP, "a", &name)).unwrap();
                let accept = Immediate::accept();
                tx.add(&Rule::new(IP, "a", &name).with(&accept)).unwrap();
                tx.insert(&Rule::new(IP, "a", "a0000").with(&accept))
                    .unwrap();
            }
        }),
    );
}

#[test]
fn a_snapshot_is_complete_while_deletions_fail() {
    let sandbox = many(&["a", "b"]);
    complete_while_failing(
        &sandbox,
        failing(|tx| {
            tx.flush_table(IP, "a").unwrap();
            for number in 0..PREPARED {
                let name = format!("a{number:04}");
                tx.delete(&Chain::new(IP, "a", &name)).unwrap();
            }
        }),
    );
}

#[test]
fn a_snapshot_is_complete_while_sets_fail() {
    let sandbox = many(&["a", "b"]);
    complete_while_failing(
        &sandbox,
        failing(|tx| {
            for number in 0..PREPARED {
                let name = format!("new{number}");
                let set = Set::new(IP, "a", &name, DataType::IPV4_ADDR, 4);
                tx.add(&set).unwrap();
            }
        }),
    );
}

/// The kernel counts prepared objects of one table among those of the next that it has sent already,
/// even if only that table is requested (Linux 6.18).
#[test]
fn a_snapshot_is_complete_while_objects_fail() {
    let sandbox = many(&["a", "b"]);
    complete_while_failing(
        &sandbox,
        failing(|tx| {
            for number in 0..PREPARED {
                let name = format!("new{number}");
                let counter = StatefulObject::new(IP, "a", &name, Counter::new(0, 0));
                tx.add(&counter).unwrap();
            }
        }),
    );
}

/// The set's hash table grows and shrinks during the dump.
#[test]
fn a_snapshot_is_complete_while_elements_fail() {
    let sandbox = many(&["a", "b"]);
    let keys: Vec<_> = (0..3000u32)
        .map(|key| (key | 1 << 16).to_be_bytes())
        .collect();
    let old: Vec<_> = (0..1000u32).map(u32::to_be_bytes).collect();
    complete_while_failing(
        &sandbox,
        failing(|tx| {
            let set = SetId::new(IP, "a", "elements");
            tx.add_elements(&set, keys.iter().map(Element::new))
                .unwrap();
            tx.delete_elements(&set, old.iter().map(Element::new))
                .unwrap();
        }),
    );
}

#[test]
fn a_snapshot_is_complete_while_tables_fail() {
    let sandbox = many(&["a", "b"]);
    complete_while_failing(
        &sandbox,
        failing(|tx| {
            for number in 0..PREPARED {
                let name = format!("new{number}");
                tx.add(&Table::new(IP, &name)).unwrap();
            }
            tx.delete(&Table::new(IP, "b")).unwrap();
        }),
    );
}
