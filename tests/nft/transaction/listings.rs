//! Listings that are abandoned early, or that a change interrupts.

use chainwright::nft::{List, Refreshed};

use super::*;

/// Creates a table with this many chains in addition to its base chain.
fn many_chains(nft: &mut Connection, table: &'static str, count: usize) {
    for start in (0..count).step_by(5000) {
        committed(nft, |tx| {
            tx.add(&Table::new(IP, table)).unwrap();
            for index in start..count.min(start + 5000) {
                tx.add(&Chain::new(IP, table, format!("c{index}"))).unwrap();
            }
        });
    }
}

#[test]
fn dropping_a_listing_leaves_the_connection_usable() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    many_chains(&mut nft, "t", 3000);
    for taken in [0, 1, 700, 2999, 3000] {
        let mut listing = nft.chains(Scope::all()).unwrap();
        for _ in 0..taken {
            assert!(listing.try_next().unwrap().is_some());
        }
        drop(listing);
        assert!(nft.chain_exists(IP, "t", "c7").unwrap());
        assert!(!nft.chain_exists(IP, "t", "nix").unwrap());
        let mut count = 0;
        let listing = nft.chains(Scope::all()).unwrap();
        listing.for_each(|_| count += 1).unwrap();
        assert_eq!(count, 3000);
        committed(&mut nft, |tx| {
            tx.add(&Table::new(IP, "t")).unwrap();
        });
    }
    // After its end it returns nothing more.
    let mut listing = nft.chains(Scope::all()).unwrap();
    while listing.try_next().unwrap().is_some() {}
    assert!(listing.try_next().unwrap().is_none());
}

#[test]
fn an_interrupted_listing_is_an_error_and_never_a_short_list() {
    const CHAINS: usize = 5000;
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut rival = connect(&sandbox);
    many_chains(&mut nft, "t", CHAINS);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // One chain of the listed table is added and another deleted, and the reverse.
            let kept = Chain::new(IP, "t", "rival");
            let (mut add, mut delete) = (Transaction::new(), Transaction::new());
            add.add(&kept)
                .unwrap()
                .delete(&Chain::new(IP, "t", "c0"))
                .unwrap();
            delete
                .delete(&kept)
                .unwrap()
                .add(&Chain::new(IP, "t", "c0"))
                .unwrap();
            while !stop.load(Ordering::Relaxed) {
                commit(&mut rival, &add);
                commit(&mut rival, &delete);
            }
        });
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        let (mut whole, mut interrupted) = (0, 0);
        while interrupted == 0 || whole + interrupted < 50 {
            let mut names = HashSet::new();
            let listing = nft.chains(Scope::table(IP, "t")).unwrap();
            match listing.for_each(|chain| {
                names.insert(chain.name().to_string());
            }) {
                Ok(()) => {
                    whole += 1;
                    // From one generation: one of the two exists. (During a transaction the kernel
                    // may list a chain twice without reporting it.)
                    assert_eq!(names.len(), CHAINS);
                    assert!(names.contains("rival") != names.contains("c0"));
                }
                Err(Error::Interrupted) => interrupted += 1,
                Err(error) => panic!("{}", report(&error)),
            }
            assert!(whole < 10_000, "no listing was interrupted");
        }
    });
    // Without changes it is complete.
    let mut list = List::<Chain<'_>>::new(Scope::table(IP, "t"));
    assert_eq!(list.refresh(&mut nft).unwrap(), Refreshed::Reread);
    assert_eq!(list.len(), CHAINS);
}

/// A kept list belongs to the generation that it names, even if another program commits at that
/// moment.
#[test]
fn a_kept_list_has_the_stated_generation() {
    const ROUNDS: usize = 1_500;
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut rival = connect(&sandbox);
    many_chains(&mut nft, "t", 1);
    let base = nft.generation().unwrap().number();
    let round = AtomicUsize::new(0);
    thread::scope(|scope| {
        let rival = scope.spawn(|| {
            // One more chain each time that the list is about to be refreshed, a bit sooner or
            // later. (Deleting a chain would make the kernel list others twice.)
            for number in 1..=ROUNDS {
                let mut tx = Transaction::new();
                tx.add(&Chain::new(IP, "t", format!("r{number}"))).unwrap();
                while round.load(Ordering::Acquire) < number {
                    std::hint::spin_loop();
                }
                for _ in 0..number * 37 % 6_000 {
                    std::hint::spin_loop();
                }
                commit(&mut rival, &tx);
            }
        });
        let _end = OnDrop(|| round.store(ROUNDS, Ordering::Release));
        let mut list = List::<Chain<'_>>::new(Scope::all());
        for number in 1..=ROUNDS {
            round.store(number, Ordering::Release);
            match list.refresh(&mut nft) {
                // The kernel lists chains in order of creation.
                Ok(_) => {
                    let commits = list.generation().unwrap().number().wrapping_sub(base) as usize;
                    assert_eq!(list.len(), 1 + commits);
                    let last = list.iter().last().unwrap().name().to_string();
                    assert!(
                        commits == 0 || last == format!("r{commits}"),
                        "{last} {commits}"
                    );
                }
                Err(Error::Interrupted) => {
                    assert!(list.is_empty() && list.generation().is_none());
                }
                Err(error) => panic!("{}", report(&error)),
            }
            assert!(number == ROUNDS || !rival.is_finished());
        }
    });
}
