//! Restorations while others change the ruleset.

use chainwright::Error;
use chainwright::Retry;
use chainwright::nft::Generation;

use super::*;

/// Detects restorations: its table is in the scope and not in the snapshot, so each restoration
/// removes it. It replaces one table by the next, which fails if the former is gone.
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

/// Restorations while another process commits: each happens after one of the changes and before the
/// next, or not at all. The other process finds its table missing once for each.
#[track_caller]
fn restorations(
    count: u32,
    retry: Retry,
    mut pause: impl FnMut(Duration) -> Duration + Send,
) -> (u32, u32) {
    let sandbox = numbered();
    let mut nft = connect(&sandbox);
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    // The time of one without concurrent commits.
    let start = Instant::now();
    snapshot.restore(&mut nft).unwrap();
    let typical_time = start.elapsed();
    nft.set_retry(retry);

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
        let _stop = repeat_in_background(scope, &sandbox, &stop, move |other| {
            witness.step(other);
            steps.fetch_add(1, Ordering::Relaxed);
            thread::sleep(pause(typical_time));
        });
        for _ in 0..count {
            // The witness's table exists again.
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
                // The ruleset changed while it was read; nothing was sent.
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
    assert_eq!(number_of(&nft.snapshot(Scope::all()).unwrap()), 1);
    println!(
        "{restored} restored, {refused} refused, {} steps",
        witness.number
    );
    (restored, refused)
}

#[test]
fn a_restoration_succeeds_between_the_changes_of_others() {
    let mut random = Random::new();
    let (restored, _) = restorations(20, Retry::DEFAULT, move |typical_time| {
        random.within(typical_time * 6)
    });
    assert!(restored > 0);
}

#[test]
fn a_restore_that_always_loses_the_race_changes_nothing() {
    let (_, refused) = restorations(20, Retry::ONCE, |_| Duration::ZERO);
    assert!(refused > 0);
}

/// The commit requires the snapshot's generation: nothing happened in between.
#[test]
fn a_conditional_commit_after_a_snapshot() {
    let sandbox = numbered();
    let (mut nft, mut other) = (connect(&sandbox), connect(&sandbox));
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let generation: Generation = snapshot.generation().unwrap();
    committed(&mut other, |tx| renumber(tx, &["a"], 9));
    let mut tx = Transaction::new();
    renumber(&mut tx, &["b"], 10);
    tx.expect_generation(generation);
    let error = nft.commit(&tx).unwrap_err();
    assert!(error.generation_moved());
    snapshot.restore(&mut nft).unwrap();
    assert_eq!(number_of(&nft.snapshot(Scope::all()).unwrap()), 1);
}

/// A set that is deleted between the listing of sets and that of its elements is an ordinary change,
/// and so is a table that is removed while a restoration reads the ruleset.
#[test]
fn a_concurrent_deletion_is_a_change_and_no_error() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox).with_retry(Retry::times(16));
    committed(&mut nft, |tx| _ = tx.add(&Table::new(IP, "t")).unwrap());
    let set = |number: u32| Set::new(IP, "t", format!("s{number}"), DataType::IPV4_ADDR, 4);
    committed(&mut nft, |tx| {
        for number in 0..100 {
            tx.add(&set(number)).unwrap();
        }
    });
    let mine = nft.snapshot(Scope::table(IP, "mine")).unwrap();
    let stop = AtomicBool::new(false);
    let commits = &AtomicU32::new(0);
    thread::scope(|scope| {
        let mut there = true;
        let _stop = repeat_in_background(scope, &sandbox, &stop, move |other| {
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
            // It reads to the end, whatever is removed; the result is complete or interrupted.
            nft.snapshot_once(Scope::all()).unwrap();
            match nft.snapshot(Scope::all()) {
                Ok(_) | Err(SnapshotError::Interrupted { .. }) => {}
                Err(error) => panic!("{}", report(&error)),
            }
            match mine.restore(&mut nft) {
                Ok(_) => {}
                // Another program was faster sixteen times.
                Err(Error::Commit(error)) => assert!(error.generation_moved(), "{error}"),
                Err(error) => panic!("{}", report(&error)),
            }
            readings += 1;
        }
    });
}
