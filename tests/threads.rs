//! What may be given to another thread, and what threads may share: said in the documentation, and held
//! to here by the compiler.

use chainwright::netns::Sandbox;
use chainwright::nft::live::{Change, Monitor};
use chainwright::nft::{
    Chain, CommitError, Connection, ElementListing, Generation, List, Listing, Rule, Snapshot,
    SnapshotError, Transaction,
};

chainwright::sandbox_tests!();

const fn is_send<T: Send>() {}
const fn is_sync<T: Sync>() {}

const _: () = {
    // Handles: one thread at a time, by `&mut`.
    is_send::<Connection>();
    is_sync::<Connection>();
    is_send::<Listing<'_, Chain<'_>>>();
    is_send::<ElementListing<'_>>();
    is_send::<Monitor>();
    is_sync::<Monitor>();
    is_send::<Sandbox>();
    is_sync::<Sandbox>();
    // What is kept: any number of threads read it.
    is_send::<Snapshot>();
    is_sync::<Snapshot>();
    is_send::<List<Rule<'_>>>();
    is_sync::<List<Rule<'_>>>();
    is_send::<Transaction>();
    is_sync::<Transaction>();
    is_sync::<Generation>();
    is_send::<Change>();
    is_sync::<Change>();
    // Errors, so that they can go through any kind of error box.
    is_send::<CommitError>();
    is_sync::<CommitError>();
    is_send::<SnapshotError>();
    is_sync::<SnapshotError>();
    is_send::<chainwright::Error>();
    is_sync::<chainwright::Error>();
    is_send::<chainwright::iptables::Error>();
    is_sync::<chainwright::iptables::Error>();
    is_send::<chainwright::legacy::Error>();
    is_sync::<chainwright::legacy::Error>();
};

/// A connection keeps its namespace on whichever thread it is used.
#[test]
fn a_connection_goes_to_another_thread_with_its_namespace() {
    let sandbox = Sandbox::new().unwrap();
    let mut nft = sandbox.run(Connection::open).unwrap().unwrap();
    let mut tx = Transaction::new();
    tx.add(&chainwright::nft::Table::new(
        chainwright::nft::Family::IP,
        "here",
    ))
    .unwrap();
    let tx = &tx; // shared
    std::thread::scope(|scope| {
        let there = scope.spawn(move || {
            nft.commit(tx).unwrap();
            nft.commit(tx).unwrap(); // the same, again: nothing changed in it
            let table = nft.table(chainwright::nft::Family::IP, "here").unwrap();
            table.is_some()
        });
        assert!(there.join().unwrap());
    });
}
