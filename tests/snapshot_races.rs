//! Snapshots and restorations while somebody else changes the ruleset, or tries to.

mod common;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use chainwright::Error;
use chainwright::netns::Sandbox;
use chainwright::nft::expr::{Counter, Immediate, Log, Match};
use chainwright::nft::{
    Chain, CommitError, Compat, Connection, DataType, Element, Family, Filter, Generation, Outcome,
    Rule, Set, SetId, Snapshot, SnapshotError, StatefulObject, Table, Transaction,
};
use common::{OnDrop, connect, report, sandbox};

const IP: Family = Family::IP;

#[track_caller]
fn commit(nft: &mut Connection, tx: &mut Transaction) {
    if let Err(error) = nft.commit(tx) {
        panic!("{}", report(&error));
    }
}

#[track_caller]
fn committed(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) {
    let mut tx = Transaction::new();
    fill(&mut tx);
    commit(nft, &mut tx);
}

/// As many transactions as an ordinary user's send buffer takes.
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
            commit(nft, &mut tx);
            tx.clear();
        }
    }
}

/// Runs this on a thread in the sandbox, over and over, until what is returned is dropped. Snapshots
/// are to be taken in the sandbox too: the reader's second socket is opened where its thread is.
fn meanwhile<'scope, 'env>(
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

/// xorshift64*.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let seed = match std::env::var("SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => {
                let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
                now.as_nanos() as u64
            }
        };
        println!("SEED={seed}");
        Self(seed | 1)
    }

    fn below(&mut self, end: Duration) -> Duration {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let part = (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32;
        end.mul_f64(f64::from(part) / f64::from(u32::MAX))
    }
}

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

// ---------------------------------------------------------------------------------------------
// One generation.

const CHAINS: u32 = 300;

/// Every rule, element and counter bears this number.
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
        // What is flushed are the rules.
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

/// The one number that all in the snapshot bears.
#[track_caller]
fn number_of(snapshot: &Snapshot) -> u32 {
    let mut numbers = BTreeSet::new();
    assert_eq!(snapshot.tables().len(), 2);
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
            assert!(keys.insert(key), "twice");
        }
        assert_eq!(keys.len(), 200);
    }
    assert_eq!(numbers.len(), 1, "{numbers:?}");
    numbers.into_iter().next().unwrap()
}

/// The sandbox of the tests below, with everything of number 1.
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

/// Changes at random moments while a snapshot is taken, one or none for each, so that it is always
/// whole in the end.
#[test]
fn every_snapshot_is_of_one_generation() {
    let sandbox = numbered();
    let (mut nft, mut other) = (connect(&sandbox), connect(&sandbox));
    let start = Instant::now();
    assert_eq!(number_of(&nft.snapshot(Filter::all()).unwrap()), 1);
    let usual = start.elapsed();
    let mut random = Random::new();
    let (mut tx, mut across) = (Transaction::new(), 0);
    for number in 2..2_000 {
        // On a busy machine fewer changes fall into a snapshot.
        if number > 120 && across >= 10 {
            break;
        }
        tx.clear();
        renumber(&mut tx, &["a", "b"], number);
        let delay = random.below(usual * 2);
        let (before, snapshot) = thread::scope(|scope| {
            let change = scope.spawn(|| {
                spin(delay);
                commit(&mut other, &mut tx);
            });
            let before = nft.generation().unwrap();
            let snapshot = nft.snapshot(Filter::all()).unwrap();
            change.join().unwrap();
            (before, snapshot)
        });
        let found = number_of(&snapshot);
        assert!(found == number || found == number - 1, "{found} {number}");
        // The snapshot says which generation it is of: each is one number.
        let now = nft.generation().unwrap();
        let generation = snapshot.generation().unwrap();
        assert_eq!(number - found, now.0.wrapping_sub(generation.0));
        across += u32::from(found == number && before != generation);
    }
    // The change fell into the snapshot, which was begun again.
    assert!(across >= 10, "{across}");
    println!("{across} were begun again");
}

/// The reading that does not insist shows what the test above would see without.
#[test]
fn control_a_single_reading_is_of_several_generations() {
    let sandbox = numbered();
    let mut nft = connect(&sandbox);
    let (stop, commits) = (AtomicBool::new(false), AtomicU32::new(1));
    thread::scope(|scope| {
        let (mut tx, commits) = (Transaction::new(), &commits);
        let _stop = meanwhile(scope, &sandbox, &stop, move |other| {
            tx.clear();
            renumber(
                &mut tx,
                &["a", "b"],
                commits.fetch_add(1, Ordering::Relaxed) + 1,
            );
            commit(other, &mut tx);
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
            let snapshot = nft.snapshot_once(Filter::all()).unwrap();
            // Then it does not say that it is of one.
            mixed(&snapshot) && snapshot.generation().is_none()
        });
        assert!(found);
    });
}

#[test]
fn changes_without_a_pause_interrupt_and_what_was_read_is_given_out() {
    let sandbox = numbered();
    let mut nft = connect(&sandbox);
    let (stop, commits) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let _stop = meanwhile(scope, &sandbox, &stop, |other| {
            let number = commits.fetch_add(1, Ordering::Relaxed);
            committed(other, |tx| {
                let name = format!("n{number}");
                tx.add(&Table::new(Family::IP6, "other")).unwrap();
                tx.add(&Chain::new(Family::IP6, "other", &name)).unwrap();
                tx.delete(&Chain::new(Family::IP6, "other", &name)).unwrap();
            });
        });
        while commits.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let mut interrupted = 0;
        for _ in 0..2_000 {
            match nft.snapshot(Filter::all()) {
                Err(error @ SnapshotError::Interrupted { .. }) => {
                    let text = error.to_string();
                    assert!(text.contains("16 attempts"), "{text}");
                    let snapshot = error.into_snapshot().unwrap();
                    assert_eq!(snapshot.generation(), None);
                    // The parts that did not change are there.
                    for table in ["a", "b"] {
                        let table = snapshot.table(IP, table).unwrap();
                        assert!(table.chains().len() >= CHAINS as usize);
                    }
                    interrupted += 1;
                    if interrupted == 3 {
                        break;
                    }
                }
                // The other thread stood still for as long.
                Ok(snapshot) => assert!(snapshot.generation().is_some()),
                Err(error) => panic!("{}", report(&error)),
            }
        }
        assert_eq!(interrupted, 3);
    });
    // The connection is of use after that.
    committed(&mut nft, |tx| {
        _ = tx.delete(&Table::new(Family::IP6, "other")).unwrap()
    });
    assert_eq!(number_of(&nft.snapshot(Filter::all()).unwrap()), 1);
}

// ---------------------------------------------------------------------------------------------
// Transactions that fail.

/// Tables with many objects of every kind behind one another.
fn many(tables: &[&'static str]) -> Sandbox {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    for &table in tables {
        committed(&mut nft, |tx| _ = tx.add(&Table::new(IP, table)).unwrap());
        // Nothing leads to these, and nothing is in them.
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
    // Behind the others, because new tables go to the end.
    committed_in_parts(&mut nft, 600, |tx, number| {
        let name = format!("t{number:04}");
        tx.add(&Table::new(Family::IP6, &name)).unwrap();
    });
    sandbox
}

/// Everything in the snapshot, by name; what is there twice stands there twice.
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

/// A transaction that prepares this and then fails.
fn failing(fill: impl FnOnce(&mut Transaction)) -> Transaction {
    let mut tx = Transaction::new();
    fill(&mut tx);
    tx.delete(&Chain::new(IP, "a", "no such chain")).unwrap();
    tx
}

/// Takes snapshots while this transaction fails over and over: those that are said to be whole hold
/// every object once.
#[track_caller]
fn whole_while_failing(sandbox: &Sandbox, tx: Transaction) {
    let (stop, failures) = (AtomicBool::new(false), AtomicU32::new(0));
    let expected = everything(&connect(sandbox).snapshot(Filter::all()).unwrap());
    let (mut whole, mut refused) = (0, 0);
    thread::scope(|scope| {
        let _stop = meanwhile(scope, sandbox, &stop, |other| {
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
                    match nft.snapshot(Filter::all()) {
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
                                    "after {whole} whole ones: {} objects instead of {}; it lacks \
                                     {lacks:?}, has twice {twice:?}, and has {more:?} too",
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
        "{whole} whole, {refused} refused, {} failures",
        failures.into_inner()
    );
    assert!(whole > 0, "{refused} refused");
}

/// How many snapshots are taken of each.
const READINGS: usize = 25;
/// What the failing transaction prepares, in the first table and in front of others.
const PREPARED: usize = 150;

#[test]
fn a_snapshot_is_whole_while_chains_and_rules_fail() {
    let sandbox = many(&["a", "b"]);
    whole_while_failing(
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
fn a_snapshot_is_whole_while_deletions_fail() {
    let sandbox = many(&["a", "b"]);
    whole_while_failing(
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
fn a_snapshot_is_whole_while_sets_fail() {
    let sandbox = many(&["a", "b"]);
    whole_while_failing(
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
/// also if only that table is asked for (Linux 6.18).
#[test]
fn a_snapshot_is_whole_while_objects_fail() {
    let sandbox = many(&["a", "b"]);
    whole_while_failing(
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

/// The set's table grows and shrinks under the dump.
#[test]
fn a_snapshot_is_whole_while_elements_fail() {
    let sandbox = many(&["a", "b"]);
    let keys: Vec<_> = (0..3000u32)
        .map(|key| (key | 1 << 16).to_be_bytes())
        .collect();
    let old: Vec<_> = (0..1000u32).map(u32::to_be_bytes).collect();
    whole_while_failing(
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
fn a_snapshot_is_whole_while_tables_fail() {
    let sandbox = many(&["a", "b"]);
    whole_while_failing(
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

// ---------------------------------------------------------------------------------------------
// Large rules.

/// A rule that a listing shows in this many expressions: comments of iptables take 300 bytes each,
/// and little room in the kernel; a rule has 128 expressions at most.
fn commented(table: &'static str, chain: &'static str, count: usize) -> Rule<'static> {
    let mut rule = Rule::new(IP, table, chain);
    rule.compat = Some(Compat {
        protocol: Some(0),
        flags: Some(0),
        ..Compat::default()
    });
    let comment = [b'x'; 256];
    for _ in 0..count {
        rule.push(&Match::new("comment", 0, &comment[..]));
    }
    rule
}

#[test]
fn a_rule_too_large_for_a_reply_is_noticed() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        for chain in ["before", "large", "behind"] {
            tx.add(&Chain::new(IP, "t", chain)).unwrap();
            let accept = Immediate::accept();
            tx.add(&Rule::new(IP, "t", chain).with(&accept)).unwrap();
        }
    });
    assert!(nft.snapshot(Filter::all()).is_ok());
    committed(&mut nft, |tx| {
        tx.add(&commented("t", "large", 128)).unwrap();
        tx.add(&Rule::new(IP, "t", "large").with(&Immediate::drop()))
            .unwrap();
    });
    for scope in [Filter::all(), Filter::family(IP), Filter::table(IP, "t")] {
        let error = nft.snapshot(scope).unwrap_err();
        let text = report(&error);
        let SnapshotError::Incomplete { chain, snapshot } = &error else {
            panic!("{text}");
        };
        assert_eq!((&chain.chain[..], chain.expected), ("ip t large", 3));
        assert!(chain.found < 3, "{}", chain.found);
        assert!(
            text.contains("ip t large") && text.contains("32 KiB"),
            "{text}"
        );
        assert!(snapshot.chain(IP, "t", "before").is_some());
        assert_eq!(error.into_snapshot().unwrap().tables().len(), 1);
    }
    // Without it all is well again.
    committed(&mut nft, |tx| _ = tx.flush_chain(IP, "t", "large").unwrap());
    assert!(nft.snapshot(Filter::all()).is_ok());
}

/// A rule with log prefixes: longer than a page, in listings only.
fn logging(table: &'static str, chain: &'static str, count: usize) -> Rule<'static> {
    let mut rule = Rule::new(IP, table, chain);
    let prefix = "p".repeat(120);
    for _ in 0..count {
        rule.push(&Log {
            prefix: Some(prefix.as_str().into()),
            ..Log::default()
        });
    }
    rule
}

/// So many chains of eight rules that it is cheaper to ask for each chain's (see `cost` in `read.rs`),
/// over the socket whose replies are a page long.
#[test]
fn rules_longer_than_a_page_are_found_in_short_chains() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| _ = tx.add(&Table::new(IP, "t")).unwrap());
    const MANY: usize = 2600;
    committed_in_parts(&mut nft, MANY, |tx, number| {
        let name = format!("c{number}");
        tx.add(&Chain::new(IP, "t", &name)).unwrap();
        for _ in 0..8 {
            tx.add(&Rule::new(IP, "t", &name).with(&Counter::new(0, 0)))
                .unwrap();
        }
    });
    // Alone, first, last, in the middle, and two of them; from just over a page to nearly 32 KiB.
    let large = [
        ("alone", vec![100]),
        ("page", vec![28]),
        ("first", vec![60, 0, 0]),
        ("last", vec![0, 0, 100]),
        ("middle", vec![0, 120, 0]),
        ("two", vec![100, 0, 100]),
    ];
    committed_in_parts(&mut nft, large.len(), |tx, number| {
        let (chain, rules) = &large[number];
        tx.add(&Chain::new(IP, "t", *chain)).unwrap();
        for &count in rules {
            match count {
                0 => tx
                    .add(&Rule::new(IP, "t", *chain).with(&Counter::new(0, 0)))
                    .unwrap(),
                count => tx.add(&logging("t", chain, count)).unwrap(),
            };
        }
    });
    committed(&mut nft, |tx| {
        tx.add(&Chain::new(IP, "t", "longest")).unwrap();
        tx.add(&commented("t", "longest", 100)).unwrap();
    });
    // In the sandbox, where the second socket is of the same namespace; and here, where there is none.
    let inside = sandbox
        .run(|| Connection::open().unwrap().snapshot(Filter::all()))
        .unwrap();
    for snapshot in [inside, nft.snapshot(Filter::all())] {
        let snapshot = snapshot.unwrap_or_else(|error| panic!("{}", report(&error)));
        let table = snapshot.table(IP, "t").unwrap();
        assert_eq!(table.chains().len(), MANY + large.len() + 1);
        let rules: usize = table.chains().map(|chain| chain.rules().len()).sum();
        let expected: usize = large.iter().map(|(_, rules)| rules.len()).sum();
        assert_eq!(rules, MANY * 8 + expected + 1);
        for (name, rules) in &large {
            let chain = snapshot.chain(IP, "t", name).unwrap();
            let found: Vec<_> = chain
                .rules()
                .map(|rule| {
                    let expressions = rule.expressions().unwrap();
                    let logs = expressions.filter(|e| e.as_ref().unwrap().is::<Log<'_>>());
                    logs.count()
                })
                .collect();
            assert_eq!(found, *rules, "{name}");
        }
        let chain = snapshot.chain(IP, "t", "longest").unwrap();
        let longest = chain.rules().next().unwrap();
        assert_eq!(longest.expressions().unwrap().count(), 100);
    }
}

// ---------------------------------------------------------------------------------------------
// Restorations.

/// A witness of restorations: its table is in the scope and not in the snapshot, so that each takes it
/// away. It replaces one table by the next, which fails if the one is gone.
struct Witness {
    number: u32,
    vanished: u32,
}

impl Witness {
    fn name(number: u32) -> String {
        format!("w{number}")
    }

    fn step(&mut self, nft: &mut Connection) {
        let mut tx = Transaction::new();
        let (old, new) = (Self::name(self.number), Self::name(self.number + 1));
        tx.delete(&Table::new(IP, &old)).unwrap();
        tx.add(&Table::new(IP, &new)).unwrap();
        if let Err(error) = nft.commit(&tx) {
            assert_eq!(error.failures[0].errno.number(), libc::ENOENT, "{error}");
            self.vanished += 1;
            committed(nft, |tx| _ = tx.add(&Table::new(IP, &new)).unwrap());
        }
        self.number += 1;
    }
}

/// A restoration while another process commits: it happens after one of the changes and before the
/// next, or not at all. The other finds its table gone once for each that happened.
#[track_caller]
fn restorations(count: u32, mut pause: impl FnMut(Duration) -> Duration + Send) -> (u32, u32) {
    let sandbox = numbered();
    let mut nft = connect(&sandbox);
    let snapshot = nft.snapshot(Filter::all()).unwrap();
    // How long one takes that nobody is in the way of.
    let start = Instant::now();
    snapshot.restore(&mut nft).unwrap();
    let usual = start.elapsed();

    let mut witness = Witness {
        number: 0,
        vanished: 0,
    };
    committed(&mut nft, |tx| _ = tx.add(&Table::new(IP, "w0")).unwrap());
    let (stop, steps) = (AtomicBool::new(false), AtomicU32::new(0));
    let (mut restored, mut refused) = (0, 0);
    thread::scope(|scope| {
        let witness = &mut witness;
        let steps = &steps;
        let _stop = meanwhile(scope, &sandbox, &stop, move |other| {
            witness.step(other);
            steps.fetch_add(1, Ordering::Relaxed);
            thread::sleep(pause(usual));
        });
        for _ in 0..count {
            // The witness's table is there again.
            let seen = steps.load(Ordering::Relaxed);
            while steps.load(Ordering::Relaxed) < seen + 2 {
                thread::yield_now();
            }
            match snapshot.restore(&mut nft) {
                Ok(_) => restored += 1,
                Err(Error::Commit(error)) => {
                    assert_eq!(error.outcome, Outcome::NothingApplied, "{error}");
                    assert!(error.generation_moved(), "{error}");
                    refused += 1;
                }
                // It was looked at while it changed; nothing was sent.
                Err(Error::Netlink(chainwright::netlink::Error::Interrupted)) => refused += 1,
                Err(error) => panic!("{}", report(&error)),
            }
        }
        let seen = steps.load(Ordering::Relaxed);
        while steps.load(Ordering::Relaxed) < seen + 2 {
            thread::yield_now();
        }
    });
    assert_eq!(witness.vanished, restored, "{refused} refused");
    committed(&mut nft, |tx| {
        tx.delete(&Table::new(IP, Witness::name(witness.number)))
            .unwrap();
    });
    assert_eq!(number_of(&nft.snapshot(Filter::all()).unwrap()), 1);
    println!(
        "{restored} restored, {refused} refused, {} steps",
        witness.number
    );
    (restored, refused)
}

#[test]
fn a_restoration_succeeds_between_the_changes_of_others() {
    let mut random = Random::new();
    let (restored, _) = restorations(20, move |usual| random.below(usual * 6));
    assert!(restored > 0);
}

#[test]
fn a_restoration_that_is_always_too_late_changes_nothing() {
    let (_, refused) = restorations(5, |_| Duration::ZERO);
    assert!(refused > 0);
}

/// What was restored is of the generation that the snapshot says: nothing came in between.
#[test]
fn a_conditional_commit_after_a_snapshot() {
    let sandbox = numbered();
    let (mut nft, mut other) = (connect(&sandbox), connect(&sandbox));
    let snapshot = nft.snapshot(Filter::all()).unwrap();
    let generation: Generation = snapshot.generation().unwrap();
    committed(&mut other, |tx| renumber(tx, &["a"], 9));
    let mut tx = Transaction::new();
    renumber(&mut tx, &["b"], 10);
    tx.expect_generation(generation);
    let error = nft.commit(&tx).unwrap_err();
    assert!(error.generation_moved());
    snapshot.restore(&mut nft).unwrap();
    assert_eq!(number_of(&nft.snapshot(Filter::all()).unwrap()), 1);
}

/// A set that is deleted between the listing of sets and that of its elements is a change like any
/// other, and so is a table that goes while a restoration looks at what is there.
#[test]
fn what_goes_meanwhile_is_a_change_and_no_error() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| _ = tx.add(&Table::new(IP, "t")).unwrap());
    let set = |number: u32| Set::new(IP, "t", format!("s{number}"), DataType::IPV4_ADDR, 4);
    committed(&mut nft, |tx| {
        for number in 0..100 {
            tx.add(&set(number)).unwrap();
        }
    });
    let mine = nft.snapshot(Filter::table(IP, "mine")).unwrap();
    let stop = AtomicBool::new(false);
    let commits = &AtomicU32::new(0);
    thread::scope(|scope| {
        let mut there = true;
        let _stop = meanwhile(scope, &sandbox, &stop, move |other| {
            committed(other, |tx| {
                for number in 50..100 {
                    match there {
                        true => tx.delete(&set(number)).unwrap(),
                        false => tx.add(&set(number)).unwrap(),
                    };
                }
                let table = Table::new(IP, "passing");
                match there {
                    true => tx.add(&table).unwrap(),
                    false => tx.delete(&table).unwrap(),
                };
            });
            there = !there;
            commits.fetch_add(1, Ordering::Relaxed);
        });
        let start = commits.load(Ordering::Relaxed);
        let mut readings = 0;
        while readings < 30 || commits.load(Ordering::Relaxed) < start + 200 {
            // To the end, whatever goes; and whole, or interrupted.
            nft.snapshot_once(Filter::all()).unwrap();
            match nft.snapshot(Filter::all()) {
                Ok(_) | Err(SnapshotError::Interrupted { .. }) => {}
                Err(error) => panic!("{}", report(&error)),
            }
            match mine.restore(&mut nft) {
                Ok(_) => {}
                // Sixteen times somebody else was faster.
                Err(Error::Commit(error)) => assert!(error.generation_moved(), "{error}"),
                Err(error) => panic!("{}", report(&error)),
            }
            readings += 1;
        }
    });
}
