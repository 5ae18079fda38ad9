//! Many elements at once.

use super::*;

/// More than fit into 24 messages of the transaction, and into as many of the listing; with a listing
/// that is abandoned half-way, and one that `next` begins and `for_each` completes.
#[test]
fn a_hundred_thousand_elements_in_one_transaction() {
    const COUNT: u32 = 100_000;
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    with_sets(&mut nft, &[addresses("s")]);
    let mut tx = Transaction::new();
    let keys: Vec<_> = (0..COUNT).map(u32::to_be_bytes).collect();
    tx.add_elements(&id("s"), keys.iter().map(Element::new))
        .unwrap();
    assert_eq!(tx.len(), 25);
    let fits = kernel::commit_if_it_fits(&mut nft, &mut tx);
    if !fits {
        for piece in keys.chunks(10_000) {
            committed(&mut nft, |tx| {
                tx.add_elements(&id("s"), piece.iter().map(Element::new))
                    .unwrap();
            });
        }
    }
    counted(&mut nft, "s", COUNT);
    // The kernel rebuilds the grown hash table in the background, and a dump meanwhile repeats elements:
    // a snapshot waits for a listing without repetitions.
    nft.snapshot(Scope::all()).unwrap();
    let mut seen = vec![false; COUNT as usize];
    let mark = |seen: &mut Vec<bool>, key: &[u8]| {
        let key = u32::from_be_bytes(key.try_into().unwrap());
        assert!(!std::mem::replace(&mut seen[key as usize], true), "{key}");
    };
    let mut listing = nft.elements(IP, "t", "s").unwrap();
    for _ in 0..5_000 {
        let element = listing.try_next().unwrap().unwrap();
        mark(&mut seen, element.key_bytes().unwrap());
    }
    listing
        .for_each(|element| mark(&mut seen, element.key_bytes().unwrap()))
        .unwrap();
    assert!(seen.iter().all(|seen| *seen));

    let mut listing = nft.elements(IP, "t", "s").unwrap();
    for _ in 0..3_000 {
        listing.try_next().unwrap().unwrap();
    }
    drop(listing);
    for piece in keys[1..].chunks(if fits { keys.len() } else { 10_000 }) {
        committed(&mut nft, |tx| {
            tx.delete_elements(&id("s"), piece.iter().map(Element::new))
                .unwrap();
        });
    }
    let snapshot = nft.snapshot(Scope::all()).unwrap(); // while the hash table shrinks again
    let set = snapshot.table(IP, "t").unwrap().set("s").unwrap();
    let remaining: Vec<_> = set.elements().map(|element| element.to_builder()).collect();
    assert_eq!(remaining, [Element::new(&keys[0])]);
}

/// An error of one element among many is the only one, and it names the message and the element.
#[test]
fn one_bad_element_among_many_is_named() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    with_sets(&mut nft, &[addresses("s")]);
    committed(&mut nft, |tx| {
        tx.add_elements(&id("s"), [Element::new(&9_000u32.to_be_bytes())])
            .unwrap();
    });
    let keys: Vec<_> = (0..10_000u32).map(u32::to_be_bytes).collect();
    let failures = refused(&mut nft, |tx| {
        tx.create_elements(&id("s"), keys.iter().map(Element::new))
            .unwrap();
    });
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(
        is_at(
            &failures[0],
            "create element ip t s #2: EEXIST (File exists)",
            "element 810 (00002328)",
            "the set s already contains the element"
        ),
        "{failures:?}"
    );
}

/// A listing that a change interrupts ends in an error, and repeats it.
#[test]
fn a_concurrent_change_interrupts_a_listing() {
    let sandbox = sandbox();
    let (mut nft, mut rival) = (connect(&sandbox), connect(&sandbox));
    with_sets(&mut nft, &[addresses("s")]);
    let keys: Vec<_> = (0..20_000u32).map(u32::to_be_bytes).collect();
    committed(&mut nft, |tx| {
        tx.add_elements(&id("s"), keys.iter().map(Element::new))
            .unwrap();
    });
    let mut listing = nft.elements(IP, "t", "s").unwrap();
    listing.try_next().unwrap().unwrap();
    committed(&mut rival, |tx| {
        tx.add_elements(&id("s"), [Element::new(&[255; 4])])
            .unwrap();
    });
    let error = loop {
        match listing.try_next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the interrupted listing ended without an error"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Interrupted), "{error}");
    assert!(matches!(listing.try_next(), Err(Error::Interrupted)));
    drop(listing);
    let mut count = 0;
    nft.elements(IP, "t", "s")
        .unwrap()
        .for_each(|_| count += 1)
        .unwrap();
    assert_eq!(count, 20_001);
}
