//! Snapshots and restorations while others change the ruleset, or try to.

mod failing;
mod large_rules;
mod restorations;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::random::Random;
use crate::common::{OnDrop, commit, committed, connect, report, sandbox};
use chainwright::Retry;
use chainwright::nft::expr::{Counter, Immediate};
use chainwright::nft::{
    Chain, Connection, DataType, Element, Family, Outcome, Rule, Scope, Set, SetId, Snapshot,
    SnapshotError, Table, Transaction,
};
use chainwright_testing::Sandbox;

const IP: Family = Family::IP;

/// Commits in parts that fit into the send buffer of a user without privileges.
#[track_caller]
fn committed_in_parts(
    nft: &mut Connection,
    count: usize,
    mut fill: impl FnMut(&mut Transaction, usize),
) {
    let mut tx = Transaction::new();
    for number in 0..count {
        fill(&mut tx, number);
        if tx.byte_length() > 100_000 || number + 1 == count {
            commit(nft, &tx);
            tx.clear();
        }
    }
}

/// Runs a function repeatedly on a thread in the sandbox, until the returned value is dropped. Snapshots
/// must be taken in the sandbox too: the reader's second socket is opened in its thread's namespace.
fn repeat_in_background<'scope, 'env>(
    scope: &'scope thread::Scope<'scope, 'env>,
    sandbox: &Sandbox,
    stop: &'env AtomicBool,
    mut again: impl FnMut(&mut Connection) + Send + 'scope,
) -> OnDrop<Box<dyn FnMut() + 'env>> {
    let mut nft = connect(sandbox);
    scope.spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            again(&mut nft);
        }
    });
    OnDrop(Box::new(|| stop.store(true, Ordering::Relaxed)))
}

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

const CHAINS: u32 = 300;

/// Writes this number to every rule, element and counter.
fn renumber(tx: &mut Transaction, tables: &[&'static str], number: u32) {
    for &table in tables {
        let set = SetId::new(IP, table, "s");
        tx.flush_set(&set).unwrap();
        let keys: Vec<_> = (0..200u32)
            .map(|key| (number << 8 | key).to_be_bytes())
            .collect();
        tx.add_elements(&set, keys.iter().map(Element::new))
            .unwrap();
        let data = number.to_be_bytes();
        // The flush removes the rules.
        tx.flush_table(IP, table).unwrap();
        for chain in 0..CHAINS {
            let name = format!("c{chain}");
            for _ in 0..chain % 4 {
                let mut rule = Rule::new(IP, table, &name).with(&Counter::new(number.into(), 0));
                rule.userdata = Some(data[..].into());
                tx.add(&rule).unwrap();
            }
        }
    }
}

/// The number in the snapshot. Checks that it is the same everywhere.
#[track_caller]
fn number_of(snapshot: &Snapshot) -> u32 {
    assert_eq!(snapshot.tables().len(), 2);
    number_of_tables(snapshot)
}

#[track_caller]
fn number_of_tables(snapshot: &Snapshot) -> u32 {
    let mut numbers = BTreeSet::new();
    for table in snapshot.tables() {
        assert_eq!(table.chains().len(), CHAINS as usize);
        for (index, chain) in table.chains().enumerate() {
            assert_eq!(chain.chain().name(), format!("c{index}"));
            assert_eq!(chain.rules().len(), index % 4, "c{index}");
            for rule in chain.rules() {
                let data = rule.userdata().unwrap().try_into().unwrap();
                numbers.insert(u32::from_be_bytes(data));
            }
        }
        let set = table.set("s").unwrap();
        let mut keys = BTreeSet::new();
        for element in set.elements() {
            let key = u32::from_be_bytes(element.key_bytes().unwrap().try_into().unwrap());
            numbers.insert(key >> 8);
            assert!(keys.insert(key), "an element is listed twice");
        }
        assert_eq!(keys.len(), 200);
    }
    assert_eq!(numbers.len(), 1, "{numbers:?}");
    numbers.into_iter().next().unwrap()
}

/// The sandbox of the tests below, with the number 1 everywhere.
fn numbered() -> Sandbox {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        for table in ["a", "b"] {
            tx.add(&Table::new(IP, table)).unwrap();
            let set = Set::new(IP, table, "s", DataType::IPV4_ADDR, 4);
            tx.add(&set).unwrap();
            for chain in 0..CHAINS {
                let name = format!("c{chain}");
                tx.add(&Chain::new(IP, table, &name)).unwrap();
            }
        }
    });
    committed(&mut nft, |tx| renumber(tx, &["a", "b"], 1));
    sandbox
}

/// Reading one table requires only that this table does not change: others, before and after it in the
/// kernel's lists, change constantly, and their chains are added and removed.
#[test]
fn one_table_can_be_read_while_others_change_constantly() {
    let sandbox = numbered();
    let (stop, commits) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let (commits, mut there) = (&commits, false);
        let _stop = repeat_in_background(scope, &sandbox, &stop, move |other| {
            let number = commits.fetch_add(1, Ordering::Relaxed);
            committed(other, |tx| {
                renumber(tx, &["a"], number % 1000);
                tx.add(&Table::new(IP, "other")).unwrap();
                for chain in 0..50 {
                    let chain = Chain::new(IP, "other", format!("n{chain}"));
                    match there {
                        true => tx.delete(&chain).unwrap(),
                        false => tx.add(&chain).unwrap(),
                    };
                }
            });
            there = !there;
        });
        sandbox
            .run(|| {
                let mut nft = Connection::open().unwrap();
                let (mut taken, mut last) = (0, None);
                let start = commits.load(Ordering::Relaxed);
                while taken < 40 || commits.load(Ordering::Relaxed) < start + 40 {
                    let snapshot = match nft.snapshot(Scope::table(IP, "b")) {
                        Ok(snapshot) => snapshot,
                        Err(error) => panic!("{}", report(&error)),
                    };
                    assert_eq!(snapshot.tables().len(), 1);
                    assert_eq!(number_of_tables(&snapshot), 1);
                    let generation = snapshot.generation();
                    assert!(generation.is_some());
                    taken += usize::from(generation != last);
                    last = generation;
                }
                println!("{taken} snapshots of different generations");
            })
            .unwrap();
    });
}

/// Changes in the table itself are noticed, even if another table changes constantly.
#[test]
fn one_table_that_changes_is_of_one_generation_too() {
    let sandbox = numbered();
    let (stop, stop_own) = (AtomicBool::new(false), AtomicBool::new(false));
    let (number, attempts) = (AtomicU32::new(1), AtomicU32::new(0));
    thread::scope(|scope| {
        let mut there = false;
        let _stop = repeat_in_background(scope, &sandbox, &stop, move |other| {
            committed(other, |tx| {
                tx.add(&Table::new(IP, "a")).unwrap();
                let chain = Chain::new(IP, "a", "more");
                match there {
                    true => tx.delete(&chain).unwrap(),
                    false => tx.add(&chain).unwrap(),
                };
            });
            there = !there;
        });
        let (number, attempts) = (&number, &attempts);
        // Once for each attempt, at a random moment of it: on a busy machine, too, an attempt can succeed.
        let mut last = 0;
        let _stop_own = repeat_in_background(scope, &sandbox, &stop_own, move |other| {
            let attempt = attempts.load(Ordering::Relaxed);
            if attempt == last {
                thread::sleep(Duration::from_millis(1));
                return;
            }
            last = attempt;
            let next = number.load(Ordering::Relaxed) + 1;
            thread::sleep(Duration::from_millis(u64::from(next % 20)));
            committed(other, |tx| renumber(tx, &["b"], next));
            number.store(next, Ordering::Relaxed);
        });
        sandbox
            .run(|| {
                let mut nft = Connection::open().unwrap();
                let mut seen = BTreeSet::new();
                while seen.len() < 20 {
                    attempts.fetch_add(1, Ordering::Relaxed);
                    let before = number.load(Ordering::Relaxed);
                    match nft.snapshot(Scope::table(IP, "b")) {
                        Ok(snapshot) => {
                            let observed = number_of_tables(&snapshot);
                            assert!(
                                observed >= before
                                    && observed <= number.load(Ordering::Relaxed) + 1
                            );
                            seen.insert(observed);
                        }
                        Err(
                            SnapshotError::Interrupted { .. } | SnapshotError::Incomplete { .. },
                        ) => {}
                        Err(error) => panic!("{}", report(&error)),
                    }
                }
                println!("{attempts:?} snapshots of 20 states");
            })
            .unwrap();
    });
}

/// Changes at random moments while a snapshot is taken, at most one for each, so that it always
/// completes.
#[test]
fn every_snapshot_is_of_one_generation() {
    let sandbox = numbered();
    let (mut nft, mut other) = (connect(&sandbox), connect(&sandbox));
    let start = Instant::now();
    assert_eq!(number_of(&nft.snapshot(Scope::all()).unwrap()), 1);
    let typical_time = start.elapsed();
    let mut random = Random::new();
    let (mut tx, mut across) = (Transaction::new(), 0);
    for number in 2..2_000 {
        // On a busy machine fewer changes happen during a snapshot.
        if number > 120 && across >= 10 {
            break;
        }
        tx.clear();
        renumber(&mut tx, &["a", "b"], number);
        let delay = random.within(typical_time * 2);
        let (before, snapshot) = thread::scope(|scope| {
            let change = scope.spawn(|| {
                spin(delay);
                commit(&mut other, &tx);
            });
            let before = nft.generation().unwrap();
            let snapshot = nft.snapshot(Scope::all()).unwrap();
            change.join().unwrap();
            (before, snapshot)
        });
        let found = number_of(&snapshot);
        assert!(found == number || found == number - 1, "{found} {number}");
        // The snapshot names its generation: each has one number.
        let now = nft.generation().unwrap();
        let generation = snapshot.generation().unwrap();
        assert_eq!(
            number - found,
            now.number().wrapping_sub(generation.number())
        );
        across += u32::from(found == number && before != generation);
    }
    // The change happened during the snapshot, which was restarted.
    assert!(across >= 10, "{across}");
    println!("{across} snapshots were restarted");
}

/// A single reading without retries shows what the test above would see without them.
#[test]
fn control_a_single_reading_is_of_several_generations() {
    let sandbox = numbered();
    let mut nft = connect(&sandbox);
    let (stop, commits) = (AtomicBool::new(false), AtomicU32::new(1));
    thread::scope(|scope| {
        let (mut tx, commits) = (Transaction::new(), &commits);
        let _stop = repeat_in_background(scope, &sandbox, &stop, move |other| {
            tx.clear();
            renumber(
                &mut tx,
                &["a", "b"],
                commits.fetch_add(1, Ordering::Relaxed) + 1,
            );
            commit(other, &tx);
        });
        let mixed = |snapshot: &Snapshot| {
            let numbers: BTreeSet<_> = snapshot
                .tables()
                .flat_map(|table| table.chains())
                .flat_map(|chain| chain.rules())
                .map(|rule| rule.userdata().unwrap().to_vec())
                .collect();
            numbers.len() > 1
        };
        let found = (0..500).any(|_| {
            let snapshot = nft.snapshot_once(Scope::all()).unwrap();
            // Then it names no generation.
            mixed(&snapshot) && snapshot.generation().is_none()
        });
        assert!(found);
    });
}

/// Chains, rules and elements that others change constantly are read again until there is a gap, here of
/// a millisecond.
#[test]
fn constantly_changing_objects_are_read_between_changes() {
    let sandbox = numbered();
    let mut nft = connect(&sandbox);
    let stop = AtomicBool::new(false);
    let number = AtomicU32::new(1);
    thread::scope(|scope| {
        let number = &number;
        let _stop = repeat_in_background(scope, &sandbox, &stop, move |other| {
            let next = number.load(Ordering::Relaxed) + 1;
            committed(other, |tx| {
                for table in ["a", "b"] {
                    let chain = Chain::new(IP, table, "busy");
                    tx.add(&chain).unwrap();
                    tx.flush_chain(IP, table, "busy").unwrap();
                    let mut rule = Rule::new(IP, table, "busy");
                    rule.userdata = Some(next.to_be_bytes().to_vec().into());
                    tx.add(&rule).unwrap();
                    let more = Chain::new(IP, table, format!("busy{}", next % 3));
                    tx.add(&more).unwrap();
                    tx.delete(&more).unwrap();
                }
            });
            number.store(next, Ordering::Relaxed);
            if next % 16 == 15 {
                thread::sleep(Duration::from_millis(1));
            }
        });
        while number.load(Ordering::Relaxed) < 3 {
            thread::yield_now();
        }
        let mut seen = BTreeSet::new();
        for _ in 0..10 {
            let before = number.load(Ordering::Relaxed);
            let snapshot = match nft.snapshot(Scope::all()) {
                Ok(snapshot) => snapshot,
                Err(error) => panic!("{}", report(&error)),
            };
            let observed = ["a", "b"].map(|table| {
                let rules = snapshot.chain(IP, table, "busy").unwrap();
                let userdata_of: Vec<_> = rules
                    .rules()
                    .map(|r| r.userdata().unwrap().to_vec())
                    .collect();
                let [userdata_of] = &userdata_of[..] else {
                    panic!("{userdata_of:?}")
                };
                u32::from_be_bytes(userdata_of[..].try_into().unwrap())
            });
            assert_eq!(observed[0], observed[1]);
            assert!(observed[0] >= before && observed[0] <= number.load(Ordering::Relaxed) + 1);
            assert_eq!(
                snapshot.tables().map(|t| t.chains().len()).sum::<usize>() % 2,
                0
            );
            seen.insert(observed[0]);
        }
        println!(
            "{} states of {}",
            seen.len(),
            number.load(Ordering::Relaxed)
        );
    });
}

/// A commit at both ends of a long table is visible completely or not at all; and nothing else is
/// missing.
#[test]
fn ten_thousand_chains_at_a_hundred_commits_a_second() {
    const MANY: u32 = 10_000;
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| _ = tx.add(&Table::new(IP, "t")).unwrap());
    committed_in_parts(&mut nft, MANY as usize, |tx, number| {
        let name = format!("c{number}");
        tx.add(&Chain::new(IP, "t", &name)).unwrap();
        let mut rule = Rule::new(IP, "t", &name);
        rule.userdata = Some(0_u32.to_be_bytes().to_vec().into());
        tx.add(&rule).unwrap();
    });
    let start = Instant::now();
    nft.snapshot(Scope::all()).unwrap();
    let quiet = start.elapsed();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut number = 0_u32;
        let _stop = repeat_in_background(scope, &sandbox, &stop, move |other| {
            number += 1;
            committed(other, |tx| {
                for chain in ["c0".to_owned(), format!("c{}", MANY - 1)] {
                    tx.flush_chain(IP, "t", &*chain).unwrap();
                    let mut rule = Rule::new(IP, "t", chain);
                    rule.userdata = Some(number.to_be_bytes().to_vec().into());
                    tx.add(&rule).unwrap();
                }
                // One chain is added, another removed.
                tx.add(&Chain::new(IP, "t", format!("more{}", number % 10)))
                    .unwrap();
                tx.add(&Chain::new(IP, "t", format!("more{}", (number + 5) % 10)))
                    .unwrap();
                tx.delete(&Chain::new(IP, "t", format!("more{}", (number + 5) % 10)))
                    .unwrap();
            });
            thread::sleep(Duration::from_millis(10));
        });
        let mut times = Vec::new();
        for _ in 0..10 {
            let start = Instant::now();
            let snapshot = match nft.snapshot(Scope::all()) {
                Ok(snapshot) => snapshot,
                Err(error) => panic!("{}", report(&error)),
            };
            times.push(start.elapsed());
            let table = snapshot.table(IP, "t").unwrap();
            let userdata_of = |chain: u32| {
                let rules: Vec<_> = table.chain(format!("c{chain}")).unwrap().rules().collect();
                assert_eq!(rules.len(), 1, "c{chain}");
                rules[0].userdata().unwrap().to_vec()
            };
            assert_eq!(userdata_of(0), userdata_of(MANY - 1));
            for chain in 1..MANY - 1 {
                assert_eq!(userdata_of(chain), 0_u32.to_be_bytes());
            }
        }
        println!("{quiet:?} without changes, {times:?} with changes");
    });
}

#[test]
fn an_interrupted_snapshot_returns_what_was_read() {
    let sandbox = numbered();
    let mut nft = connect(&sandbox).with_retry(Retry::times(16));
    let (stop, commits) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let _stop = repeat_in_background(scope, &sandbox, &stop, |other| {
            let number = commits.fetch_add(1, Ordering::Relaxed);
            committed(other, |tx| {
                // A table that is added and removed cannot be repaired: the snapshot is restarted.
                let other = Table::new(Family::IP6, "other");
                match number % 2 {
                    0 => tx.add(&other).unwrap(),
                    _ => tx.delete(&other).unwrap(),
                };
            });
        });
        while commits.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let mut interrupted = 0;
        for _ in 0..2_000 {
            match nft.snapshot(Scope::all()) {
                Err(error @ SnapshotError::Interrupted { .. }) => {
                    let text = error.to_string();
                    assert!(text.contains("16 attempts"), "{text}");
                    let snapshot = error.into_snapshot().unwrap();
                    assert_eq!(snapshot.generation(), None);
                    // The unchanged parts exist.
                    for table in ["a", "b"] {
                        let table = snapshot.table(IP, table).unwrap();
                        assert!(table.chains().len() >= CHAINS as usize);
                    }
                    interrupted += 1;
                    if interrupted == 3 {
                        break;
                    }
                }
                // The other thread was suspended for that long.
                Ok(snapshot) => assert!(snapshot.generation().is_some()),
                Err(error) => panic!("{}", report(&error)),
            }
        }
        assert_eq!(interrupted, 3);
    });
    // The connection can still be used afterwards.
    committed(&mut nft, |tx| {
        tx.add(&Table::new(Family::IP6, "other")).unwrap();
        tx.delete(&Table::new(Family::IP6, "other")).unwrap();
    });
    assert_eq!(number_of(&nft.snapshot(Scope::all()).unwrap()), 1);
}
