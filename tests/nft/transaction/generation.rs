//! Commits and generations.

use chainwright::netlink::{MessageWriter, NfGenMsg, Socket};
use chainwright::nft::GenerationRef;

use super::*;

#[test]
fn a_commit_for_another_generation_applies_nothing() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
    });
    let generation = nft.generation().unwrap();
    let mut tx = Transaction::new();
    for name in ["a", "b"] {
        tx.create(&Chain::new(IP, "t", name)).unwrap();
    }
    tx.expect_generation(generation);
    assert_eq!(tx.expected_generation(), Some(generation));

    // Another program is faster.
    committed(&mut connect(&sandbox), |tx| {
        tx.add(&Table::new(IP, "other")).unwrap();
    });
    let before = whole(&mut nft);
    assert_ne!(before.generation, generation);
    let error = nft.commit(&tx).unwrap_err();
    assert!(error.generation_moved(), "{error}");
    assert_eq!(error.outcome, Outcome::NothingApplied);
    assert_eq!(only(&error).operation, None);
    assert!(error.to_string().contains("read it again"), "{error}");
    assert!(whole(&mut nft) == before);

    // After another read it succeeds, and only once.
    tx.expect_generation(nft.generation().unwrap());
    commit(&mut nft, &tx);
    assert!(nft.chain_exists(IP, "t", "a").unwrap());
    assert!(nft.commit(&tx).unwrap_err().generation_moved());
    tx.expect_generation(nft.generation().unwrap());
    let error = nft.commit(&tx).unwrap_err();
    assert!(!error.generation_moved());
    assert_eq!(error.failures.len(), 2, "{error}");
}

#[test]
fn each_commit_is_one_generation() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let before = nft.generation().unwrap().number();
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        content(tx);
    });
    assert_eq!(nft.generation().unwrap().number(), before.wrapping_add(1));
    // A commit without effects creates none.
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
    });
    assert_eq!(nft.generation().unwrap().number(), before.wrapping_add(1));
}

/// A generation of another namespace has an ordinary number.
#[test]
fn a_commit_for_a_generation_of_another_namespace_is_refused() {
    let (sandbox, elsewhere) = (sandbox(), sandbox());
    let (mut nft, mut far) = (connect(&sandbox), connect(&elsewhere));
    let generation = far.generation().unwrap();
    assert_eq!(generation.number(), nft.generation().unwrap().number());
    assert_ne!(generation, nft.generation().unwrap());
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "t")).unwrap();
    tx.expect_generation(generation);
    for error in [nft.commit(&tx).unwrap_err(), nft.check(&tx).unwrap_err()] {
        assert!(error.generation_is_foreign() && !error.generation_moved());
        assert_eq!(error.outcome, Outcome::NothingApplied);
        let text = error.to_string();
        let words = match kernel::numbers_namespaces() {
            true => "another network namespace",
            false => "over another connection",
        };
        assert!(text.contains(words), "{text}");
    }
    assert!(nft.table(IP, "t").unwrap().is_none());
    // Another connection of the same namespace knows the same generations.
    let mut near = connect(&sandbox);
    kernel::is_same_generation(near.generation().unwrap(), nft.generation().unwrap());
    let known = match kernel::numbers_namespaces() {
        true => near.generation(),
        false => nft.generation(),
    };
    tx.expect_generation(known.unwrap());
    nft.commit(&tx).unwrap();
    assert!(nft.commit(&tx).unwrap_err().generation_moved());
}

/// The kernel reports a thread, not a process.
#[test]
fn a_generation_names_the_thread_and_so_the_process() {
    let sandbox = sandbox();
    let received = thread::scope(|scope| {
        let send_requests = move || {
            let socket = Socket::netfilter().unwrap();
            let mut request = Vec::new();
            let header = NfGenMsg {
                family: 0,
                resource: 0,
            };
            // NFT_MSG_GETGEN, NLM_F_REQUEST.
            MessageWriter::nfnetlink(&mut request, 0xa10, 1, 1, header)
                .finish()
                .unwrap();
            socket.send(&request).unwrap();
            let mut buffer = [0; 4096];
            let length = socket.receive(&mut buffer).unwrap();
            let (message, _) = Message::split(&buffer[..length]).unwrap();
            let generation = GenerationRef::parse(&message).unwrap();
            let thread = nix::unistd::gettid().as_raw() as u32;
            (thread, generation.thread_id(), generation.process_id())
        };
        let thread = scope.spawn({
            let sandbox = &sandbox;
            move || sandbox.run(send_requests).unwrap()
        });
        thread.join().unwrap()
    });
    let (thread, reported, process) = received;
    assert_ne!(thread, std::process::id());
    match reported {
        Some(reported) if reported == thread => assert_eq!(process, Some(std::process::id())),
        // In another pid namespace the numbers differ.
        reported => assert!(
            reported.is_some() && process != Some(thread),
            "{reported:?} {process:?}"
        ),
    }
}
