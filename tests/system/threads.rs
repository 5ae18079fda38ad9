//! What can be moved to another thread, and what threads can share: documented, and checked here by the
//! compiler.

use chainwright::Retry;
use chainwright::nft::live::{Change, Monitor};
use chainwright::nft::{
    Chain, CommitError, Connection, ElementListing, Family, Generation, List, Listing, Pool, Rule,
    Scope, Snapshot, SnapshotError, Table, Transaction,
};
use chainwright_testing::Sandbox;

chainwright_testing::sandbox_tests!();

const fn is_send<T: Send>() {}
const fn is_sync<T: Sync>() {}

const _: () = {
    // Handles: one thread at a time, through `&mut`.
    is_send::<Connection>();
    is_sync::<Connection>();
    is_send::<Listing<'_, Chain<'_>>>();
    is_send::<ElementListing<'_>>();
    is_send::<Pool>();
    is_sync::<Pool>();
    is_send::<Monitor>();
    is_sync::<Monitor>();
    is_send::<Sandbox>();
    is_sync::<Sandbox>();
    // Kept data: any number of threads may read it.
    is_send::<Snapshot>();
    is_sync::<Snapshot>();
    is_send::<List<Rule<'_>>>();
    is_sync::<List<Rule<'_>>>();
    is_send::<Transaction>();
    is_sync::<Transaction>();
    is_sync::<Generation>();
    is_send::<Change>();
    is_sync::<Change>();
    // Errors, so that any kind of error box can hold them.
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

/// A connection keeps its namespace on every thread.
#[test]
fn a_connection_keeps_its_namespace_on_another_thread() {
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
            nft.commit(tx).unwrap(); // the same again: the commit did not change it
            let table = nft.table(chainwright::nft::Family::IP, "here").unwrap();
            table.is_some()
        });
        assert!(there.join().unwrap());
    });
}

/// Any number of threads, a few connections, and each commit belongs to one thread.
#[test]
fn threads_share_a_pool() {
    let sandbox = Sandbox::new().unwrap();
    let pool = sandbox
        .run(|| Pool::of(Connection::open().unwrap(), 3))
        .unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (pool, sandbox) = (pool.clone(), &sandbox);
            let work = move || {
                for number in 0..10 {
                    let mut tx = Transaction::new();
                    let table = Table::new(Family::IP, format!("t{thread}-{number}"));
                    tx.add(&table).unwrap();
                    pool.commit(&tx).unwrap();
                }
            };
            // Half of them in another namespace than the pool: they wait for an existing connection.
            scope.spawn(move || match thread % 2 {
                0 => sandbox.run(work).unwrap(),
                _ => work(),
            });
        }
    });
    assert_eq!(pool.snapshot(Scope::all()).unwrap().tables().len(), 80);
    assert!(pool.connections() <= 3);
}

#[test]
fn a_connection_is_returned_after_a_panic_or_an_early_exit() {
    let sandbox = Sandbox::new().unwrap();
    let pool = sandbox
        .run(|| Pool::of(Connection::open().unwrap(), 1))
        .unwrap();
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    for chain in 0..2000 {
        tx.add(&Chain::new(Family::IP, "t", format!("c{chain}")))
            .unwrap();
    }
    pool.commit(&tx).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pool.with(|nft| {
            let mut chains = nft.chains(Scope::all()).unwrap();
            assert!(chains.try_next().unwrap().is_some());
            panic!("intended panic during a listing");
        })
    }));
    assert!(panicked.is_err());
    let mut chains = 0;
    pool.with(|nft| nft.chains(Scope::all()).unwrap().for_each(|_| chains += 1))
        .unwrap();
    assert_eq!((chains, pool.connections()), (2000, 1));
}

/// Each clone of a pool has its own retry policy, over shared connections.
#[test]
fn clones_of_a_pool_have_policies_of_their_own() {
    let sandbox = Sandbox::new().unwrap();
    let of = |pool: &Pool| pool.with(|nft| nft.retry());
    sandbox
        .run(|| {
            let first = Connection::open().unwrap().with_retry(Retry::times(3));
            let pool = Pool::of(first, 1);
            let hasty = pool.clone().with_retry(Retry::ONCE);
            assert_eq!(
                (pool.retry(), hasty.retry()),
                (Retry::times(3), Retry::ONCE)
            );
            assert_eq!((of(&pool), of(&hasty)), (Retry::times(3), Retry::ONCE));
            // A setting on a connection applies during that work.
            pool.with(|nft| nft.set_retry(Retry::FOREVER));
            assert_eq!((of(&pool), of(&hasty)), (Retry::times(3), Retry::ONCE));
            assert_eq!(pool.connections(), 1);
        })
        .unwrap();
}

/// A commit whose future is dropped is completed, and the pool still works.
#[cfg(feature = "tokio")]
#[test]
fn tasks_share_a_pool_and_may_be_cancelled() {
    let sandbox = Sandbox::new().unwrap();
    let pool = sandbox
        .run(|| Pool::of(Connection::open().unwrap(), 1))
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let commit = |name: String| {
            pool.run(move |nft| {
                let mut tx = Transaction::new();
                tx.add(&Table::new(Family::IP, name)).unwrap();
                nft.commit(&tx)
            })
        };
        commit("kept".into()).await.unwrap();
        let (begun, was_begun) = std::sync::mpsc::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
        let mut cancelled = Box::pin(pool.run(move |nft| {
            begun.send(()).unwrap();
            let _ = may_go_on.recv();
            let mut tx = Transaction::new();
            tx.add(&Table::new(Family::IP, "cancelled")).unwrap();
            nft.commit(&tx)
        }));
        // The first poll starts it, and it is cancelled while it runs.
        let waker = std::task::Waker::noop();
        let mut context = std::task::Context::from_waker(waker);
        assert!(cancelled.as_mut().poll(&mut context).is_pending());
        was_begun.recv().unwrap();
        drop(cancelled);
        go_on.send(()).unwrap();
        // The one connection is free only after that.
        let tables = pool.run(|nft| nft.snapshot(Scope::all())).await.unwrap();
        let names: Vec<_> = tables
            .tables()
            .map(|t| t.table().name().to_string())
            .collect();
        assert_eq!(names, ["kept", "cancelled"]);
    });
}
