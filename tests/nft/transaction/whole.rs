//! Every observer sees a transaction completely or not at all.

use super::*;

/// Counts how often observers that look a chain up in a tight loop miss it, while `change` is made
/// step by step, until `enough` returns true for the numbers of commits, lookups and misses.
#[track_caller]
fn missed(
    change: &[&dyn Fn(&mut Transaction)],
    enough: impl Fn(u32, usize, usize) -> bool,
) -> usize {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        content(tx);
    });
    let mut steps: Vec<_> = change
        .iter()
        .map(|step| {
            let mut tx = Transaction::new();
            step(&mut tx);
            tx
        })
        .collect();

    let stop = AtomicBool::new(false);
    let (looks, misses) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let look = |mut observer: Connection| {
        while !stop.load(Ordering::Relaxed) {
            if observer.chain(IP, "t", "kept").unwrap().is_none() {
                misses.fetch_add(1, Ordering::Relaxed);
            }
            looks.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        // More than the usual number of processors, so that some are suspended during a lookup.
        let observers = [(); 3].map(|()| connect(&sandbox));
        let observers = observers.map(|observer| scope.spawn(|| look(observer)));
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        let before = nft.generation().unwrap().number();
        let mut commits = 0;
        while !enough(
            commits,
            looks.load(Ordering::Relaxed),
            misses.load(Ordering::Relaxed),
        ) {
            for step in &mut steps {
                commit(&mut nft, step);
                commits += 1;
            }
            assert!(!observers.iter().any(|observer| observer.is_finished()));
        }
        assert_eq!(
            nft.generation().unwrap().number(),
            before.wrapping_add(commits)
        );
    });
    misses.into_inner()
}

/// Whether the chain exists in every lookup, during at least 1,000 commits and 10,000 lookups.
fn is_never_missed(change: &dyn Fn(&mut Transaction)) -> bool {
    missed(&[change], |commits, looks, _| {
        commits >= 1000 && looks >= 10_000
    }) == 0
}

fn delete_table(tx: &mut Transaction) {
    tx.delete(&Table::new(IP, "t")).unwrap();
}

fn add_table(tx: &mut Transaction) {
    tx.add(&Table::new(IP, "t")).unwrap();
    content(tx);
}

#[test]
fn a_chain_is_never_missed_while_its_table_is_replaced() {
    assert!(is_never_missed(&|tx| {
        delete_table(tx);
        add_table(tx);
    }));
}

#[test]
fn a_chain_is_never_missed_while_its_table_is_flushed_and_filled() {
    assert!(is_never_missed(&|tx| {
        tx.flush_table(IP, "t").unwrap();
        content(tx);
    }));
}

#[test]
fn a_chain_is_never_missed_while_it_is_replaced_by_one_of_its_name() {
    assert!(is_never_missed(&|tx| {
        tx.flush_table(IP, "t").unwrap();
        for name in ["kept", "one", "two", "base"] {
            tx.delete(&Chain::new(IP, "t", name)).unwrap();
        }
        content(tx);
    }));
}

/// The kernel answers a lookup without a lock: in some of a million, a commit happens between its
/// reads of the generation and of the table. That must not be mistaken for a missing chain.
#[test]
fn a_chain_is_not_missed_for_a_race_in_the_kernel() {
    let small = |tx: &mut Transaction| {
        delete_table(tx);
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "kept")).unwrap();
    };
    let misses = missed(&[&small], |commits, looks, _| {
        commits >= 50_000 && looks >= 500_000
    });
    assert_eq!(misses, 0);
}

/// The observer of the tests above does detect a gap.
#[test]
fn a_chain_is_missed_while_its_table_is_replaced_in_two_steps() {
    let misses = missed(&[&delete_table, &add_table], |_, _, misses| misses > 0);
    assert!(misses > 0);
}
