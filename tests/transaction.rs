//! Transactions against the kernel: what they do, what they leave alone, what their errors say.

mod common;

use std::collections::HashSet;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use bstr::BStr;
use caps::{CapSet, Capability};
use chainwright::netlink::{Error, Message, MessageWriter, NfGenMsg, Socket};
use chainwright::netns::Sandbox;
use chainwright::nft::expr::{
    Cmp, CmpOp, Counter, Decoded, Immediate, Lookup, Payload, PayloadBase, Register,
};
use chainwright::nft::{
    Chain, ChainRef, CommitError, Compat, Connection, DataType, Element, Failure, Family, Filter,
    Generation, GenerationRef, List, Operation, Outcome, Policy, Refreshed, Rule, RuleRef, Set,
    SetFlags, SetId, Table, Transaction,
};
use common::save;
use common::tools::Tools;
use common::{OnDrop, connect, kernel, report, sandbox};
use nix::sys::socket::{setsockopt, sockopt};

const IP: Family = Family::IP;

/// `NF_INET_LOCAL_IN` of `linux/netfilter.h`.
const INPUT: u32 = 1;
/// `NFTA_RULE_EXPRESSIONS` of `linux/netfilter/nf_tables.h`.
const NFTA_RULE_EXPRESSIONS: u16 = 4;

#[track_caller]
fn commit(nft: &mut Connection, tx: &mut Transaction) {
    if let Err(error) = nft.commit(tx) {
        panic!("{}", report(&error));
    }
}

/// Commits what `fill` adds to a transaction.
#[track_caller]
fn committed(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) {
    let mut tx = Transaction::new();
    fill(&mut tx);
    commit(nft, &mut tx);
}

/// Commits what `fill` adds to a transaction; that must fail and change nothing.
#[track_caller]
fn refused(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) -> CommitError {
    let before = whole(nft);
    let mut tx = Transaction::new();
    fill(&mut tx);
    let error = nft.commit(&tx).unwrap_err();
    assert_eq!(error.outcome, Outcome::NothingApplied, "{error}");
    assert!(whole(nft) == before, "{error}");
    error
}

/// The one failure of a commit.
#[track_caller]
fn only(error: &CommitError) -> &Failure {
    assert!(!error.incomplete, "{error}");
    match &error.failures[..] {
        [failure] => failure,
        _ => panic!("one failure was expected: {error}"),
    }
}

/// Number of an operation that failed, what it was, and the error's name.
fn summary(failure: &Failure) -> (Option<usize>, String, String) {
    let index = failure.operation.as_ref().map(|operation| operation.index);
    let text = failure.operation.as_ref().map(ToString::to_string);
    (index, text.unwrap_or_default(), failure.errno.name())
}

/// Everything in the sandbox: the generation, and all tables, chains and rules, in order.
#[derive(Debug, PartialEq, Eq)]
struct Whole {
    generation: Generation,
    tables: Vec<Table<'static>>,
    chains: Vec<Chain<'static>>,
    rules: Vec<Rule<'static>>,
}

fn whole(nft: &mut Connection) -> Whole {
    macro_rules! all {
        ($list:ident) => {{
            let mut all = Vec::new();
            let listing = nft.$list(Filter::all()).unwrap();
            listing
                .for_each(|object| all.push(object.to_builder().into_owned()))
                .unwrap();
            all
        }};
    }
    Whole {
        generation: nft.generation().unwrap(),
        tables: all!(tables),
        chains: all!(chains),
        rules: all!(rules),
    }
}

/// The rules of a chain.
fn rules(nft: &mut Connection, table: &str, chain: &str) -> Vec<Rule<'static>> {
    let mut rules = Vec::new();
    let listing = nft.rules(Filter::chain(IP, table, chain)).unwrap();
    listing
        .for_each(|rule| rules.push(rule.to_builder().into_owned()))
        .unwrap();
    rules
}

/// Whether this process may force the size of socket buffers: root can, root of a user namespace
/// cannot.
fn forces_buffers() -> bool {
    let (socket, _other) = UnixDatagram::pair().unwrap();
    setsockopt(&socket, sockopt::SndBufForce, &1_000_000).is_ok()
}

fn accept(table: &'static str, chain: &'static str) -> Rule<'static> {
    Rule::new(IP, table, chain).with(&Immediate::accept())
}

fn jump(table: &'static str, chain: &'static str, to: &'static str) -> Rule<'static> {
    Rule::new(IP, table, chain).with(&Immediate::jump(to))
}

// ---------------------------------------------------------------------------------------------
// Whole or not at all, to whoever looks.

/// How often observers that ask for a chain in a tight loop miss it, while `change` is made, step
/// by step, until `enough` commits, looks and misses have come together.
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
        // More of them than there often are processors, so that some stand still in mid-look.
        let observers = [(); 3].map(|()| connect(&sandbox));
        let observers = observers.map(|observer| scope.spawn(|| look(observer)));
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        let before = nft.generation().unwrap().0;
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
        assert_eq!(nft.generation().unwrap().0, before.wrapping_add(commits));
    });
    misses.into_inner()
}

/// Whether the chain is there at every look, through at least 1,000 commits and 10,000 looks.
fn is_never_missed(change: &dyn Fn(&mut Transaction)) -> bool {
    missed(&[change], |commits, looks, _| {
        commits >= 1000 && looks >= 10_000
    }) == 0
}

/// A table's content: chains that jump to one another, and rules.
fn content(tx: &mut Transaction) {
    let base = Chain::new(IP, "t", "base")
        .with_hook("filter", INPUT, 0)
        .with_policy(Policy::ACCEPT);
    tx.add(&base).unwrap();
    for name in ["kept", "one", "two"] {
        tx.add(&Chain::new(IP, "t", name)).unwrap();
    }
    for chain in ["one", "two"] {
        tx.add(&jump("t", "base", chain)).unwrap();
        tx.add(&jump("t", chain, "kept")).unwrap();
        tx.add(&accept("t", "kept")).unwrap();
    }
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

/// The kernel answers a look without a lock: in some of a million looks, a commit falls between its
/// look at the generation and its look into the table. That must not be taken for an absence.
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

/// The observer of the tests above does see a gap where there is one.
#[test]
fn a_chain_is_missed_while_its_table_is_replaced_in_two_steps() {
    let misses = missed(&[&delete_table, &add_table], |_, _, misses| misses > 0);
    assert!(misses > 0);
}

// ---------------------------------------------------------------------------------------------
// Failures.

/// Ten thousand operations that fit into a send buffer of the usual size.
fn ten_thousand(mut operation: impl FnMut(&mut Transaction, usize)) -> Transaction {
    let mut tx = Transaction::new();
    for index in 0..10_000 {
        operation(&mut tx, index);
    }
    assert_eq!(tx.len(), 10_000);
    assert!(tx.byte_length() < 420_000, "{}", tx.byte_length());
    tx
}

#[test]
fn three_failures_among_ten_thousand_are_named_and_nothing_is_changed() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "old")).unwrap();
        tx.add(&accept("t", "old")).unwrap();
    });
    let before = whole(&mut nft);

    let mut missing = accept("t", "old");
    missing.handle = Some(12_345);
    let tx = ten_thousand(|tx, index| match index {
        1234 => {
            tx.add(&accept("t", "nix")).unwrap();
        }
        5678 => {
            tx.create(&Chain::new(IP, "t", "old")).unwrap();
        }
        9999 => {
            tx.delete(&missing).unwrap();
        }
        _ => {
            tx.add(&Chain::new(IP, "t", format!("c{index}"))).unwrap();
        }
    });
    let error = nft.commit(&tx).unwrap_err();

    assert_eq!(error.outcome, Outcome::NothingApplied);
    assert!(!error.incomplete && error.source.is_none(), "{error}");
    let operation = |index, verb, kind, path: &[&str], handle| Operation {
        index,
        verb,
        kind,
        family: IP,
        path: path.iter().map(|&name| name.into()).collect(),
        handle,
    };
    let expected = [
        (
            operation(1234, "add", "rule", &["t", "nix"], None),
            libc::ENOENT,
            "NFTA_RULE_CHAIN",
        ),
        (
            operation(5678, "create", "chain", &["t", "old"], None),
            libc::EEXIST,
            "NFTA_CHAIN_NAME",
        ),
        (
            operation(9999, "delete", "rule", &["t", "old"], Some(12_345)),
            libc::ENOENT,
            "NFTA_RULE_HANDLE",
        ),
    ];
    assert_eq!(error.failures.len(), 3, "{error}");
    for (failure, (operation, errno, attribute)) in error.failures.iter().zip(expected) {
        assert_eq!(failure.operation.as_ref(), Some(&operation));
        assert_eq!(failure.errno.number(), errno);
        assert_eq!(failure.attribute.as_deref(), Some(attribute));
        assert!(failure.hint.is_some());
    }
    let text = error.to_string();
    for line in [
        "the transaction was not applied; 3 failures",
        "add rule ip t nix #1234: ENOENT",
        "create chain ip t old #5678: EEXIST",
        "delete rule ip t old handle 12345 #9999: ENOENT",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(whole(&mut nft) == before);

    // The same transaction, with the three put right, goes through.
    let mut tx = ten_thousand(|tx, index| match index {
        1234 => {
            tx.add(&accept("t", "old")).unwrap();
        }
        5678 => {
            tx.add(&Chain::new(IP, "t", "old")).unwrap();
        }
        9999 => {
            tx.flush_chain(IP, "t", "old").unwrap();
        }
        _ => {
            tx.add(&Chain::new(IP, "t", format!("c{index}"))).unwrap();
        }
    });
    commit(&mut nft, &mut tx);
    let after = whole(&mut nft);
    assert_eq!((after.chains.len(), after.rules.len()), (9_998, 0));
}

#[test]
fn when_all_of_ten_thousand_fail_none_is_kept_quiet() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
    });
    let before = whole(&mut nft);
    let name = |index: usize| format!("c{index}");
    let tx = ten_thousand(|tx, index| {
        tx.delete(&Chain::new(IP, "t", name(index))).unwrap();
    });
    let error = nft.commit(&tx).unwrap_err();
    assert_eq!(error.outcome, Outcome::NothingApplied);
    // Root's receive buffer holds all reports; of an ordinary user's the kernel may drop some.
    assert!(error.incomplete || error.failures.len() == 10_000);
    assert!(!(error.incomplete && forces_buffers()), "{error}");
    assert!(error.failures.len() > 50, "{error}");
    if error.incomplete {
        let text = error.to_string();
        assert!(text.contains("the kernel dropped reports"), "{text}");
    }
    let mut last = None;
    for failure in &error.failures {
        let operation = failure.operation.as_ref().unwrap();
        assert!(last < Some(operation.index));
        last = Some(operation.index);
        assert_eq!((operation.verb, operation.kind), ("delete", "chain"));
        assert_eq!(operation.path, ["t".into(), name(operation.index)]);
        assert_eq!(failure.errno.number(), libc::ENOENT);
    }
    assert!(whole(&mut nft) == before);
    // No report is left over to be taken for an answer to something else.
    assert!(nft.chain(IP, "t", "c0").unwrap().is_none());
    committed(&mut nft, |tx| {
        tx.add(&Chain::new(IP, "t", "c0")).unwrap();
    });
    assert!(nft.chain_exists(IP, "t", "c0").unwrap());
}

#[test]
fn the_first_operation_can_fail_by_itself() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
    });
    // Alone, as the first of two, as the first and last that fail of three.
    for more in 0..3 {
        let error = refused(&mut nft, |tx| {
            tx.create(&Table::new(IP, "t")).unwrap();
            for _ in 0..more {
                tx.add(&Chain::new(IP, "t", "c")).unwrap();
            }
        });
        let failed = summary(only(&error));
        assert_eq!(failed.0, Some(0));
        assert_eq!(failed.1, "create table ip t #0");
        assert_eq!(failed.2, "EEXIST");
    }
    let error = refused(&mut nft, |tx| {
        tx.create(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        tx.delete(&Chain::new(IP, "t", "nix")).unwrap();
    });
    let failed: Vec<_> = error.failures.iter().map(summary).collect();
    assert_eq!(failed.len(), 2, "{error}");
    assert_eq!((failed[0].0, failed[1].0), (Some(0), Some(2)));
}

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

    // Somebody else is quicker.
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

    // Read again, it goes through, and once only.
    tx.expect_generation(nft.generation().unwrap());
    commit(&mut nft, &mut tx);
    assert!(nft.chain_exists(IP, "t", "a").unwrap());
    assert!(nft.commit(&tx).unwrap_err().generation_moved());
    tx.expect_generation(nft.generation().unwrap());
    let error = nft.commit(&tx).unwrap_err();
    assert!(!error.generation_moved());
    assert_eq!(error.failures.len(), 2, "{error}");
}

/// What the kernel finds wrong with the ruleset as a whole it reports for the operation that makes
/// it so.
#[test]
fn a_loop_is_refused_and_said_to_be_one() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let is_loop = |error: &CommitError, index, operation: &str| {
        let failure = only(error);
        let (at, text, _) = summary(failure);
        assert_eq!((at, &*text), (Some(index), operation), "{error}");
        let loops = [libc::ELOOP, libc::EMLINK];
        assert!(loops.contains(&failure.errno.number()), "{error}");
        let hint = failure.hint.unwrap();
        assert!(hint.contains("lead back to itself"), "{error}");
    };
    // Made together with the chains.
    let error = refused(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        content(tx);
        tx.add(&jump("t", "kept", "one")).unwrap();
        tx.add(&Chain::new(IP, "t", "more")).unwrap();
    });
    is_loop(&error, 11, "add rule ip t kept #11");
    // As the only operation: the error is this operation's, not the commit's.
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        content(tx);
        tx.add(&Chain::new(IP, "t", "a")).unwrap();
        tx.add(&Chain::new(IP, "t", "b")).unwrap();
        tx.add(&jump("t", "a", "b")).unwrap();
    });
    let mut loops = vec![("kept", "one"), ("one", "one")];
    // No packet comes here yet: the kernel looks only at what packets reach, or at every chain.
    let mut tx = Transaction::new();
    tx.add(&jump("t", "b", "a")).unwrap();
    match nft.commit(&tx) {
        Ok(()) => loops.push(("two", "a")),
        Err(error) => {
            is_loop(&error, 0, "add rule ip t b #0");
            println!(
                "this kernel lacks loops among chains that no packet reaches: it refuses them when they are made"
            );
        }
    }
    for (from, to) in loops {
        let error = refused(&mut nft, |tx| {
            tx.add(&jump("t", from, to)).unwrap();
        });
        is_loop(&error, 0, &format!("add rule ip t {from} #0"));
    }
}

#[test]
fn the_usual_mistakes_come_with_a_hint() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        content(tx);
    });
    let long: &'static str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\
        0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789\
        0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789\
        0123456789abcdef";
    type Mistake = (
        fn(&mut Transaction),
        &'static str,
        &'static str,
        Option<&'static str>,
    );
    let mistakes: &[Mistake] = &[
        (
            |tx| {
                tx.delete(&Chain::new(IP, "t", "kept")).unwrap();
            },
            "delete chain ip t kept #0",
            "EBUSY",
            None,
        ),
        (
            |tx| {
                tx.delete(&Chain::new(IP, "t", "nix")).unwrap();
            },
            "delete chain ip t nix #0",
            "ENOENT",
            Some("NFTA_CHAIN_NAME"),
        ),
        (
            |tx| {
                tx.add(&Chain::new(IP, "nix", "c")).unwrap();
            },
            "add chain ip nix c #0",
            "ENOENT",
            Some("NFTA_CHAIN_TABLE"),
        ),
        (
            |tx| {
                tx.add(&jump("t", "one", "nix")).unwrap();
            },
            "add rule ip t one #0",
            "ENOENT",
            Some("NFTA_RULE_EXPRESSIONS, expression 0 (immediate)"),
        ),
        (
            |tx| {
                let chain = Chain::new(IP, "t", "c").with_hook("nix", INPUT, 0);
                tx.add(&chain).unwrap();
            },
            "add chain ip t c #0",
            "ENOENT",
            Some("NFTA_CHAIN_TYPE"),
        ),
        (
            |tx| {
                // There is no such hook for NAT.
                let chain = Chain::new(IP, "t", "c").with_hook("nat", 2, 0);
                tx.add(&chain).unwrap();
            },
            "add chain ip t c #0",
            "EOPNOTSUPP",
            None,
        ),
        (
            |tx| {
                let rule = Rule::new(IP, "t", "one").with(&Cmp::eq(Register(77), &[1]));
                tx.add(&rule).unwrap();
            },
            "add rule ip t one #0",
            "ERANGE",
            None,
        ),
        (
            |tx| {
                // Two verdicts cannot both be the last word; a value of no bytes is none.
                let rule = Rule::new(IP, "t", "one").with(&Cmp::new(Register::R1, CmpOp::EQ, &[]));
                tx.add(&rule).unwrap();
            },
            "add rule ip t one #0",
            "EINVAL",
            None,
        ),
    ];
    for (mistake, operation, errno, attribute) in mistakes {
        let error = refused(&mut nft, mistake);
        let failure = only(&error);
        let summary = summary(failure);
        assert_eq!((&*summary.1, &*summary.2), (*operation, *errno), "{error}");
        if *attribute == Some("NFTA_CHAIN_TYPE") && failure.attribute.is_none() {
            println!("this kernel lacks the place of the mistake when it refuses a chain's type");
        } else if let Some(attribute) = attribute {
            assert_eq!(failure.attribute.as_deref(), Some(*attribute), "{error}");
        }
        assert!(failure.hint.is_some(), "{error}");
        assert!(error.to_string().contains(failure.hint.unwrap()), "{error}");
    }
    let error = refused(&mut nft, |tx| {
        // The longest that is sent at all.
        tx.add(&Chain::new(IP, "t", &long[..256])).unwrap();
    });
    assert!(only(&error).hint.is_some(), "{error}");
}

#[test]
fn without_the_capability_nothing_is_applied_and_the_error_says_what_is_missing() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let before = whole(&mut nft);
    for expect in [false, true] {
        // `run` works on a thread of its own, whose capabilities go with it.
        let error = sandbox.run(|| {
            let mut tx = Transaction::new();
            tx.add(&Table::new(IP, "t")).unwrap();
            tx.add(&Chain::new(IP, "t", "c")).unwrap();
            if expect {
                tx.expect_generation(before.generation);
            }
            caps::drop(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
            nft.commit(&tx).unwrap_err()
        });
        let error = error.unwrap();
        assert_eq!(error.outcome, Outcome::NothingApplied);
        assert!(!error.generation_moved());
        let text = report(&error);
        assert!(text.contains("EPERM"), "{text}");
        assert!(text.contains("CAP_NET_ADMIN"), "{text}");
        assert!(whole(&mut nft) == before);
    }
}

#[test]
fn what_does_not_fit_into_the_send_buffer_is_refused_before_it_is_sent() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let limit = fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap();
    // The kernel doubles what it is asked for, to account for its own use.
    let limit = 2 * limit.trim().parse::<usize>().unwrap();
    let before = whole(&mut nft);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "t")).unwrap();
    let mut rule = accept("t", "c");
    rule.userdata = Some(vec![7; 60].into());
    tx.add(&Chain::new(IP, "t", "c")).unwrap();
    while tx.byte_length() <= limit {
        tx.add(&rule).unwrap();
    }
    tx.expect_generation(before.generation);
    let error = sandbox.run(|| {
        caps::drop(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        nft.commit(&tx).unwrap_err()
    });
    let error = error.unwrap();
    assert_eq!(error.outcome, Outcome::NothingApplied);
    let Some(Error::TooLarge { length, limit: had }) = error.source else {
        panic!("{}", report(&error));
    };
    assert!(length > had && had <= limit, "{length} {had} {limit}");
    let text = report(&error);
    assert!(text.contains("net.core.wmem_max"), "{text}");
    assert!(whole(&mut nft) == before);
    // The connection goes on.
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
    });
}

// ---------------------------------------------------------------------------------------------
// What the operations do.

#[test]
fn an_empty_transaction_commits_nothing() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let before = nft.generation().unwrap();
    let mut tx = Transaction::new();
    assert!(tx.is_empty());
    commit(&mut nft, &mut tx);
    // Emptied again.
    tx.add(&Table::new(IP, "t")).unwrap();
    tx.clear();
    assert_eq!((tx.len(), tx.byte_length()), (0, 0));
    commit(&mut nft, &mut tx);
    assert_eq!(nft.generation().unwrap(), before);
    assert!(nft.table(IP, "t").unwrap().is_none());
}

#[test]
fn each_commit_is_one_generation() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let before = nft.generation().unwrap().0;
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        content(tx);
    });
    assert_eq!(nft.generation().unwrap().0, before.wrapping_add(1));
    // One in which there is nothing to do is none.
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
    });
    assert_eq!(nft.generation().unwrap().0, before.wrapping_add(1));
}

#[test]
fn adding_takes_what_is_there_and_creating_does_not() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let base = Chain::new(IP, "t", "base").with_hook("filter", INPUT, -7);
    committed(&mut nft, |tx| {
        tx.create(&Table::new(IP, "t")).unwrap();
        tx.create(&base.clone().with_policy(Policy::ACCEPT))
            .unwrap();
        tx.create(&accept("t", "base")).unwrap();
    });
    let handle = nft.chain(IP, "t", "base").unwrap().unwrap().handle();
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&base.clone().with_policy(Policy::DROP)).unwrap();
    });
    let chain = nft.chain(IP, "t", "base").unwrap().unwrap();
    assert_eq!(chain.policy(), Some(Policy::DROP));
    assert_eq!((chain.handle(), chain.references()), (handle, Some(1)));
    assert_eq!(chain.hook().unwrap().priority, Some(-7));
    // Without a policy, what is there stays.
    committed(&mut nft, |tx| {
        tx.add(&base).unwrap();
    });
    let chain = nft.chain(IP, "t", "base").unwrap().unwrap();
    assert_eq!(chain.policy(), Some(Policy::DROP));
    for error in [
        refused(&mut nft, |tx| {
            tx.create(&Table::new(IP, "t")).unwrap();
        }),
        refused(&mut nft, |tx| {
            tx.create(&base).unwrap();
        }),
    ] {
        assert_eq!(only(&error).errno.number(), libc::EEXIST);
    }
}

#[test]
fn destroying_takes_what_is_there_and_what_is_not() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let table = Table::new(IP, "t");
    let mut rule = accept("t", "c");
    let destroy = |nft: &mut Connection, rule: &Rule<'_>| {
        committed(nft, |tx| {
            tx.destroy(rule).unwrap();
            tx.destroy(&Chain::new(IP, "t", "c")).unwrap();
            tx.destroy(&Chain::new(IP, "t", "nix")).unwrap();
        });
    };
    let mut tx = Transaction::new();
    tx.destroy(&table).unwrap();
    if !kernel::commit_if_known(&mut nft, &mut tx, &["`destroy`"]) {
        return;
    }
    committed(&mut nft, |tx| {
        tx.add(&table).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        tx.add(&rule).unwrap();
    });
    rule.handle = rules(&mut nft, "t", "c")[0].handle;
    destroy(&mut nft, &rule);
    assert!(nft.table(IP, "t").unwrap().is_some());
    assert!(!nft.chain_exists(IP, "t", "c").unwrap());
    // A rule that is gone, in a chain that is there.
    committed(&mut nft, |tx| {
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
    });
    destroy(&mut nft, &rule);
    assert!(!nft.chain_exists(IP, "t", "c").unwrap());
    committed(&mut nft, |tx| {
        tx.destroy(&table).unwrap();
    });
    assert!(nft.table(IP, "t").unwrap().is_none());
}

/// A comment in a rule's user data, as nft writes it.
fn comment(text: &str) -> Vec<u8> {
    let mut userdata = vec![0, u8::try_from(text.len() + 1).unwrap()];
    userdata.extend(text.as_bytes());
    userdata.push(0);
    userdata
}

/// The comments of a chain's rules, by our listing, which must be nft's as well.
#[track_caller]
fn comments(sandbox: &Sandbox, nft: &mut Connection) -> String {
    let ours: Vec<_> = rules(nft, "t", "c")
        .iter()
        .map(|rule| {
            let userdata = rule.userdata.as_ref().unwrap();
            String::from_utf8(userdata[2..userdata.len() - 1].to_vec()).unwrap()
        })
        .collect();
    let printed = Tools::new(sandbox).nft_json("list chain ip t c");
    let printed: Vec<_> = printed
        .iter()
        .filter_map(|object| object.get("rule"))
        .map(|rule| rule["comment"].as_str().unwrap())
        .collect();
    assert_eq!(ours, printed);
    ours.join(" ")
}

#[test]
fn rules_go_where_they_are_told_to() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let rule = |name: &str| {
        let mut rule = accept("t", "c");
        rule.userdata = Some(comment(name).into());
        rule
    };
    let handle = |nft: &mut Connection, name: &str| {
        let rules = rules(nft, "t", "c");
        let userdata = comment(name);
        let found = rules
            .iter()
            .find(|r| r.userdata.as_deref() == Some(&userdata[..]));
        found.unwrap().handle
    };
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        tx.add(&rule("a")).unwrap().add(&rule("b")).unwrap();
        tx.insert(&rule("z")).unwrap();
    });
    assert_eq!(comments(&sandbox, &mut nft), "z a b");

    // Behind and before another.
    let (mut behind, mut before) = (rule("a2"), rule("b0"));
    behind.position = handle(&mut nft, "a");
    before.position = handle(&mut nft, "b");
    committed(&mut nft, |tx| {
        tx.add(&behind).unwrap();
        tx.insert(&before).unwrap();
    });
    assert_eq!(comments(&sandbox, &mut nft), "z a a2 b0 b");

    // In the place of another.
    let mut replacement = rule("A");
    replacement.handle = handle(&mut nft, "a");
    committed(&mut nft, |tx| {
        tx.replace(&replacement).unwrap();
    });
    assert_eq!(comments(&sandbox, &mut nft), "z A a2 b0 b");
    // Linux 6.18 keeps the handle.
    assert!(handle(&mut nft, "A").is_some());
    replacement.handle = Some(12_345);
    let error = refused(&mut nft, |tx| {
        tx.replace(&replacement).unwrap();
    });
    assert_eq!(summary(only(&error)).2, "ENOENT");
    assert!(
        summary(only(&error))
            .1
            .starts_with("replace rule ip t c handle ")
    );

    // By the number that a rule or chain has in the same batch.
    let (mut first, mut second) = (rule("x"), rule("y"));
    first.id = Some(9);
    second.position_id = Some(9);
    committed(&mut nft, |tx| {
        tx.add(&first).unwrap();
        tx.add(&rule("end")).unwrap();
        tx.add(&second).unwrap();
    });
    assert_eq!(comments(&sandbox, &mut nft), "z A a2 b0 b x y end");

    let mut gone = Rule::new(IP, "t", "c");
    gone.handle = handle(&mut nft, "a2");
    committed(&mut nft, |tx| {
        tx.delete(&gone).unwrap();
    });
    assert_eq!(comments(&sandbox, &mut nft), "z A b0 b x y end");

    committed(&mut nft, |tx| {
        tx.flush_chain(IP, "t", "c").unwrap();
        tx.add(&rule("new")).unwrap();
    });
    assert_eq!(comments(&sandbox, &mut nft), "new");
}

#[test]
fn flushing_takes_rules_tables_and_whole_families() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        for family in [IP, Family::IP6, Family::INET] {
            for name in ["t", "u"] {
                tx.add(&Table::new(family, name)).unwrap();
                tx.add(&Chain::new(family, name, "c")).unwrap();
                tx.add(&Chain::new(family, name, "d")).unwrap();
                for chain in ["c", "d"] {
                    let rule = Rule::new(family, name, chain).with(&Immediate::accept());
                    tx.add(&rule).unwrap().add(&rule).unwrap();
                }
            }
        }
    });
    let mut after = |flush: fn(&mut Transaction)| {
        committed(&mut nft, flush);
        let whole = whole(&mut nft);
        (whole.tables.len(), whole.chains.len(), whole.rules.len())
    };
    assert_eq!(
        after(|tx| {
            tx.flush_chain(IP, "t", "c").unwrap();
        }),
        (6, 12, 22)
    );
    assert_eq!(
        after(|tx| {
            tx.flush_table(Family::IP6, "u").unwrap();
        }),
        (6, 12, 18)
    );
    assert_eq!(
        after(|tx| {
            tx.delete(&Table::new(IP, "u")).unwrap();
        }),
        (5, 10, 14)
    );
    assert_eq!(
        after(|tx| {
            tx.flush_ruleset(Family::INET).unwrap();
        }),
        (3, 6, 6)
    );
    assert_eq!(
        after(|tx| {
            tx.flush_ruleset(Family::UNSPEC).unwrap();
        }),
        (0, 0, 0)
    );
}

#[test]
fn user_data_is_kept_verbatim() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    // 256 bytes are the most that the kernel takes.
    let blobs: Vec<Vec<u8>> = vec![
        vec![0],
        comment("a comment"),
        (0..=255).collect(),
        vec![0xff; 256],
    ];
    committed(&mut nft, |tx| {
        for (index, blob) in blobs.iter().enumerate() {
            let name = format!("t{index}");
            let table = Table {
                userdata: Some(blob.into()),
                ..Table::new(IP, &name)
            };
            let chain = Chain {
                userdata: Some(blob.into()),
                ..Chain::new(IP, &name, "c")
            };
            let rule = Rule {
                userdata: Some(blob.into()),
                ..Rule::new(IP, &name, "c").with(&Counter::new(1, 2))
            };
            tx.add(&table)
                .unwrap()
                .add(&chain)
                .unwrap()
                .add(&rule)
                .unwrap();
        }
    });
    for (index, blob) in blobs.iter().enumerate() {
        let name = format!("t{index}");
        let table = nft.table(IP, &name).unwrap().unwrap();
        assert_eq!(table.userdata(), Some(&blob[..]));
        let chain = nft.chain(IP, &name, "c").unwrap().unwrap();
        assert_eq!(chain.userdata(), Some(&blob[..]));
        assert_eq!(
            rules(&mut nft, &name, "c")[0].userdata.as_deref(),
            Some(&blob[..])
        );
    }
}

// ---------------------------------------------------------------------------------------------
// Writing back what was listed.

/// Whether a rule uses a set that only it can use.
fn has_a_set_of_its_own(rule: &RuleRef<'_>) -> bool {
    rule.expressions().into_iter().flatten().any(|expression| {
        matches!(expression.unwrap().decode().unwrap(),
            Decoded::Lookup(lookup) if lookup.set.as_ref().unwrap().starts_with(b"__"))
    })
}

/// Writes every rule of a ruleset back into a new chain of its table, and lists it there; the
/// number of rules, and the names of their expressions.
#[track_caller]
fn written_back(sandbox: &Sandbox) -> (usize, HashSet<String>) {
    let mut nft = connect(sandbox);
    let expressions = |rule: &RuleRef<'_>| {
        let bytes = rule.attributes().find(NFTA_RULE_EXPRESSIONS);
        bytes.unwrap_or_default().to_vec()
    };
    let mut names = HashSet::new();
    // Of each table: the rules as they are to be written, and their expressions' bytes.
    type Expected = (Rule<'static>, Vec<u8>);
    let mut listed: Vec<((Family, String), Vec<Expected>)> = Vec::new();
    let listing = nft.rules(Filter::all()).unwrap();
    listing
        .for_each(|rule| {
            if has_a_set_of_its_own(&rule) {
                return;
            }
            for expression in rule.expressions().unwrap() {
                names.insert(expression.unwrap().name.to_string());
            }
            let copy = Rule {
                chain: Some("written-back".into()),
                handle: None,
                position: None,
                compat: Compat::of(&rule),
                ..rule.to_builder()
            };
            let table = (rule.family(), rule.table().to_string());
            if listed.last().is_none_or(|(last, _)| *last != table) {
                listed.push((table, Vec::new()));
            }
            let (_, rules) = listed.last_mut().unwrap();
            rules.push((copy.into_owned(), expressions(&rule)));
        })
        .unwrap();

    let mut written = 0;
    for ((family, table), rules) in &listed {
        let mut tx = Transaction::new();
        tx.create(&Chain::new(*family, table, "written-back"))
            .unwrap();
        for (rule, _) in rules {
            tx.add(rule).unwrap();
            // In pieces that fit into an ordinary user's send buffer.
            if tx.byte_length() > 150_000 {
                commit(&mut nft, &mut tx);
                tx.clear();
            }
        }
        commit(&mut nft, &mut tx);
        let mut originals = rules.iter();
        let filter = Filter::chain(*family, table, "written-back");
        let listing = nft.rules(filter).unwrap();
        listing
            .for_each(|rule| {
                let (original, bytes) = originals.next().unwrap();
                assert!(expressions(&rule) == *bytes, "{original:?}\n{rule:?}");
                assert_eq!(rule.userdata(), original.userdata.as_deref());
                written += 1;
            })
            .unwrap();
        assert_eq!(originals.len(), 0);
    }
    (written, names)
}

#[test]
fn rules_that_iptables_wrote_are_written_back_byte_for_byte() {
    let sandbox = sandbox();
    let save = save::with_counters(save::KUBE_PROXY);
    Tools::new(&sandbox).load_iptables_nft(&save);
    let rules = save.lines().filter(|line| line.starts_with('[')).count();
    assert_eq!(written_back(&sandbox).0, rules);
    // The tool reads the copies as it reads the originals.
    let saved = Tools::new(&sandbox).save("iptables-nft-save -c");
    let saved: HashSet<_> = saved.lines().collect();
    for line in save.lines().filter(|line| line.starts_with('[')) {
        let (counters, rest) = line.split_once(" -A ").unwrap();
        let (_chain, options) = rest.split_once(' ').unwrap();
        let copy = format!("{counters} -A written-back {options}");
        assert!(saved.contains(&*copy), "{copy}");
    }
}

#[test]
fn rules_with_many_kinds_of_expressions_are_written_back_byte_for_byte() {
    let sandbox = sandbox();
    Tools::new(&sandbox).run_with(
        "nft -f -",
        r#"
table inet t {
	set seen {
		type ipv4_addr
		size 65535
		flags dynamic,timeout
	}
	set named {
		type inet_service
		flags interval
		elements = { 1-100 }
	}
	chain other {
	}
	chain c {
		fib daddr type local counter packets 4 bytes 400 jump other
		fib saddr . iif oif missing drop
		meta mark set numgen random mod 16 offset 3
		update @seen { ip saddr timeout 5m counter packets 1 bytes 2 }
		add @seen { ip saddr limit rate 3/minute }
		meta mark set jhash ip saddr . ip daddr mod 16 seed 0xdeadbeef
		tcp option maxseg size 100-200 counter
		tcp dport != 2000-3000 accept
		tcp dport @named log prefix "named " limit rate over 1 mbytes/second drop comment "why"
		ip6 nexthdr udp ct state new quota over 25 mbytes reject with icmpv6 no-route
		ct mark set meta mark or 0x10
		meta nftrace set 1
		notrack
		rt classid 3
		socket transparent 1 accept
		meta time > "2020-01-01" meta day "Monday" continue
	}
}
"#,
    );
    let (rules, names) = written_back(&sandbox);
    assert_eq!(rules, 16);
    for name in [
        "fib", "numgen", "dynset", "hash", "exthdr", "range", "quota",
    ] {
        assert!(names.contains(name), "no {name} in {names:?}");
    }
}

// ---------------------------------------------------------------------------------------------
// Large ones.

#[test]
fn a_hundred_thousand_chains_and_250_000_rules_are_one_commit() {
    const CHAINS: usize = 100_000;
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "nat")).unwrap();
    let name = |index: usize| format!("KUBE-SVC-{index:016}");
    let base = Chain::new(IP, "nat", "PREROUTING").with_hook("nat", 0, -100);
    tx.add(&base).unwrap();
    for index in 0..CHAINS {
        tx.add(&Chain::new(IP, "nat", name(index))).unwrap();
    }
    let mut rule = |chain: &str, to: Option<&str>| {
        let mut rule = Rule::new(IP, "nat", chain);
        rule.push(&Payload::load(PayloadBase::NETWORK, 16, 4, Register::R1))
            .push(&Cmp::eq(Register::R1, &[10, 96, 0, 1]))
            .push(&Counter::new(0, 0));
        match to {
            Some(chain) => rule.push(&Immediate::jump(chain)),
            None => rule.push(&Immediate::return_()),
        };
        tx.add(&rule).unwrap();
    };
    // Pairs of chains as kube-proxy has them: a service's with three rules, and an endpoint's, to
    // which it leads, with two.
    for pair in 0..CHAINS / 2 {
        let (service, endpoint) = (name(2 * pair), name(2 * pair + 1));
        rule(&service, Some(&endpoint));
        rule(&service, None);
        rule(&service, None);
        rule(&endpoint, None);
        rule(&endpoint, None);
    }
    rule("PREROUTING", Some(&name(0)));
    assert_eq!(tx.len(), 2 + CHAINS + 250_000 + 1);

    let before = nft.generation().unwrap().0;
    let result = nft.commit(&tx);
    if let Err(error) = &result {
        // An ordinary user's send buffer ends at net.core.wmem_max.
        let too_large = matches!(error.source, Some(Error::TooLarge { .. }));
        assert!(too_large && !forces_buffers(), "{}", report(error));
        assert_eq!(error.outcome, Outcome::NothingApplied);
        assert_eq!(nft.generation().unwrap().0, before);
        return;
    }
    assert_eq!(nft.generation().unwrap().0, before.wrapping_add(1));

    let (mut chains, mut references) = (0, 0);
    let listing = nft.chains(Filter::table(IP, "nat")).unwrap();
    listing
        .for_each(|chain: ChainRef<'_>| {
            chains += 1;
            references += chain.references().unwrap() as usize;
        })
        .unwrap();
    assert_eq!(chains, CHAINS + 1);
    // A chain's references are its rules and the jumps to it: every pair has five rules and a jump.
    assert_eq!(references, 250_000 + CHAINS / 2 + 2);
    for index in (0..CHAINS).step_by(997) {
        let rules = rules(&mut nft, "nat", &name(index));
        assert_eq!(rules.len(), if index % 2 == 0 { 3 } else { 2 }, "{index}");
    }
    // And away with it, in one as well.
    committed(&mut nft, |tx| {
        tx.delete(&Table::new(IP, "nat")).unwrap();
    });
    assert_eq!(whole(&mut nft).chains.len(), 0);
}

/// A table with this many chains beside its base chain.
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
fn a_listing_that_is_dropped_leaves_the_connection_usable() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    many_chains(&mut nft, "t", 3000);
    for taken in [0, 1, 700, 2999, 3000] {
        let mut listing = nft.chains(Filter::all()).unwrap();
        for _ in 0..taken {
            assert!(listing.next().unwrap().is_some());
        }
        drop(listing);
        assert!(nft.chain_exists(IP, "t", "c7").unwrap());
        assert!(!nft.chain_exists(IP, "t", "nix").unwrap());
        let mut count = 0;
        let listing = nft.chains(Filter::all()).unwrap();
        listing.for_each(|_| count += 1).unwrap();
        assert_eq!(count, 3000);
        committed(&mut nft, |tx| {
            tx.add(&Table::new(IP, "t")).unwrap();
        });
    }
    // At its end it stays there.
    let mut listing = nft.chains(Filter::all()).unwrap();
    while listing.next().unwrap().is_some() {}
    assert!(listing.next().unwrap().is_none());
}

#[test]
fn a_listing_that_a_change_runs_across_is_an_error_and_never_a_short_list() {
    const CHAINS: usize = 5000;
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut rival = connect(&sandbox);
    many_chains(&mut nft, "t", CHAINS);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // One chain of the listed table comes and another goes, and the other way round.
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
                commit(&mut rival, &mut add);
                commit(&mut rival, &mut delete);
            }
        });
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        let (mut whole, mut interrupted) = (0, 0);
        while interrupted == 0 || whole + interrupted < 50 {
            let mut names = HashSet::new();
            let listing = nft.chains(Filter::table(IP, "t")).unwrap();
            match listing.for_each(|chain| {
                names.insert(chain.name().to_string());
            }) {
                Ok(()) => {
                    whole += 1;
                    // Of one generation: one of the two is there. (The kernel may list a chain
                    // twice without saying so, if it is asked while a transaction is under way.)
                    assert_eq!(names.len(), CHAINS);
                    assert!(names.contains("rival") != names.contains("c0"));
                }
                Err(Error::Interrupted) => interrupted += 1,
                Err(error) => panic!("{}", report(&error)),
            }
            assert!(whole < 10_000, "nothing interrupted a listing");
        }
    });
    // In peace it is whole.
    let mut list = List::<Chain<'_>>::new(Filter::table(IP, "t"));
    assert_eq!(list.refresh(&mut nft).unwrap(), Refreshed::ReadAnew);
    assert_eq!(list.len(), CHAINS);
}

/// A list that is kept is of the generation that it says, though somebody commits at that moment.
#[test]
fn a_kept_list_is_of_the_generation_that_it_says() {
    const ROUNDS: usize = 1_500;
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut rival = connect(&sandbox);
    many_chains(&mut nft, "t", 1);
    let base = nft.generation().unwrap().0;
    let round = AtomicUsize::new(0);
    thread::scope(|scope| {
        let rival = scope.spawn(|| {
            // One more chain each time that the list is about to be refreshed, a bit sooner or
            // later. (A chain that is deleted would make the kernel list others twice.)
            for number in 1..=ROUNDS {
                let mut tx = Transaction::new();
                tx.add(&Chain::new(IP, "t", format!("r{number}"))).unwrap();
                while round.load(Ordering::Acquire) < number {
                    std::hint::spin_loop();
                }
                for _ in 0..number * 37 % 6_000 {
                    std::hint::spin_loop();
                }
                commit(&mut rival, &mut tx);
            }
        });
        let _end = OnDrop(|| round.store(ROUNDS, Ordering::Release));
        let mut list = List::<Chain<'_>>::new(Filter::all());
        for number in 1..=ROUNDS {
            round.store(number, Ordering::Release);
            match list.refresh(&mut nft) {
                // The kernel's order is that in which the chains were made.
                Ok(_) => {
                    let commits = list.generation().unwrap().0.wrapping_sub(base) as usize;
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

/// The bytes that a commit sends can be taken and looked at, as often as one likes.
#[test]
fn a_transaction_is_the_same_each_time_it_is_sent() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "t")).unwrap();
    tx.add(&Chain::new(IP, "t", "c")).unwrap();
    let first = tx.datagram(<[u8]>::to_vec);
    assert_eq!(tx.datagram(<[u8]>::to_vec), first);
    commit(&mut nft, &mut tx);
    assert_eq!(tx.datagram(<[u8]>::to_vec), first);
    commit(&mut nft, &mut tx);
    // One more operation does not change those before it, but for the acknowledgement that the
    // last one asks for.
    tx.add(&accept("t", "c")).unwrap();
    let longer = tx.datagram(<[u8]>::to_vec);
    let messages = |bytes: &[u8]| {
        let (mut messages, mut rest) = (Vec::new(), bytes);
        while let Ok((message, after)) = Message::split(rest) {
            messages.push((message.kind, message.payload.to_vec(), message.flags));
            rest = after;
        }
        assert!(rest.is_empty());
        messages
    };
    let (first, longer) = (messages(&first), messages(&longer));
    assert_eq!((first.len(), longer.len()), (4, 5));
    assert_eq!(longer[..2], first[..2]);
    assert_eq!((&longer[2].0, &longer[2].1), (&first[2].0, &first[2].1));
    // `NLM_F_ACK` of `linux/netlink.h`: on the first and last operation and on the end.
    let acks =
        |messages: &[(u16, Vec<u8>, u16)]| messages.iter().map(|m| m.2 & 4).collect::<Vec<_>>();
    assert_eq!(acks(&first), [0, 4, 4, 4]);
    assert_eq!(acks(&longer), [0, 4, 0, 4, 4]);
    commit(&mut nft, &mut tx);
    commit(&mut nft, &mut tx);
    assert_eq!(rules(&mut nft, "t", "c").len(), 2);
}

/// What lacks a name stands for nothing, not for everything.
#[test]
fn a_deletion_without_a_name_deletes_nothing() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "t")).unwrap();
    tx.add(&Chain::new(IP, "t", "c")).unwrap();
    tx.add(&Rule::new(IP, "t", "c").with(&Counter::new(0, 0)))
        .unwrap();
    nft.commit(&tx).unwrap();
    let before = nft.generation().unwrap();

    let table = Table {
        family: IP,
        ..Table::default()
    };
    let chain = Chain {
        family: IP,
        table: Some("t".into()),
        ..Chain::default()
    };
    let rule = Rule::new(IP, "t", "c");
    let mut deletions = [Transaction::new(), Transaction::new(), Transaction::new()];
    deletions[0].delete(&table).unwrap();
    deletions[1].delete(&chain).unwrap();
    deletions[2].delete(&rule).unwrap();
    for tx in &mut deletions {
        let error = nft.commit(tx).unwrap_err();
        assert_eq!(error.outcome, Outcome::NothingApplied);
        assert_eq!(error.failures.len(), 1, "{error}");
    }
    assert_eq!(nft.generation().unwrap(), before);
}

/// The kernel takes generation 0 for no condition at all.
#[test]
fn a_commit_for_generation_zero_fails() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "t")).unwrap();
    tx.expect_generation(Generation(0));
    let error = nft.commit(&tx).unwrap_err();
    assert!(error.generation_moved(), "{error}");
    assert!(nft.table(IP, "t").unwrap().is_none());
}

/// The kernel looks at a transaction and does not carry it out.
#[test]
fn a_check_changes_nothing() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::IP, "t")).unwrap();
    tx.add(&Chain::new(Family::IP, "t", "c")).unwrap();
    nft.commit(&tx).unwrap();
    let generation = nft.generation().unwrap();

    let jump = |to: &'static str| Rule::new(Family::IP, "t", "c").with(&Immediate::jump(to));
    let mut good = Transaction::new();
    good.add(&Chain::new(Family::IP, "t", "d")).unwrap();
    good.add(&jump("d")).unwrap();
    for _ in 0..3 {
        nft.check(&good).unwrap();
    }
    // Absent; and only the whole shows that it would go round in a circle.
    let mut absent = Transaction::new();
    absent.add(&Chain::new(Family::IP, "t", "e")).unwrap();
    absent.add(&jump("nowhere")).unwrap();
    let error = nft.check(&absent).unwrap_err();
    assert_eq!(error.outcome, Outcome::NothingApplied);
    assert_eq!(error.failures[0].operation.as_ref().unwrap().index, 1);
    assert_eq!(error.failures[0].errno.number(), libc::ENOENT);
    let mut circle = Transaction::new();
    let base = Chain::new(Family::IP, "t", "base").with_hook("filter", 1, 0);
    circle.add(&base).unwrap();
    let to = Rule::new(Family::IP, "t", "base").with(&Immediate::jump("c"));
    circle.add(&to).unwrap().add(&jump("c")).unwrap();
    assert_eq!(
        nft.check(&circle).unwrap_err().outcome,
        Outcome::NothingApplied
    );
    let mut stale = Transaction::new();
    stale.add(&Chain::new(Family::IP, "t", "e")).unwrap();
    stale.expect_generation(generation);
    nft.check(&stale).unwrap();

    assert_eq!(nft.generation().unwrap(), generation);
    assert!(!nft.chain_exists(Family::IP, "t", "d").unwrap());
    nft.commit(&good).unwrap();
    assert!(nft.check(&stale).unwrap_err().generation_moved());
}

/// The kernel takes what stands before a NUL for the whole name: `delete chain foo\0bar` would delete
/// `foo`.
#[test]
fn no_name_is_shortened() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "foo")).unwrap();
        let set = Set::new(IP, "t", "foo", DataType::IPV4_ADDR, 4);
        tx.add(&set).unwrap();
    });
    let before = whole(&mut nft);
    let long = "x".repeat(300);
    for name in ["foo\0bar", "foo\0", long.as_str()] {
        let mut tx = Transaction::new();
        let set = SetId::new(IP, "t", name);
        let jump = Rule::new(IP, "t", "foo").with(&Immediate::jump(name));
        for (error, operation) in [
            (tx.add(&Table::new(IP, name)).err(), "add table"),
            (tx.delete(&Table::new(IP, name)).err(), "delete table"),
            (tx.delete(&Chain::new(IP, "t", name)).err(), "delete chain"),
            (
                tx.destroy(&Chain::new(IP, name, "foo")).err(),
                "destroy chain",
            ),
            (tx.add(&jump).err(), "add rule"),
            (tx.flush_chain(IP, "t", name).err(), "delete rule"),
            (tx.flush_set(&set).err(), "delete element"),
            (
                tx.add_elements(&set, [Element::new(&[1; 4])]).err(),
                "add element",
            ),
        ] {
            let error = error.expect(operation).to_string();
            let start = BStr::new(&name.as_bytes()[..name.len().min(32)]);
            let said = format!("cannot {operation}: the name {start:?}");
            assert!(error.starts_with(&said), "{error}");
        }
        assert!(tx.is_empty());
        for (error, operation) in [
            (nft.table(IP, name).err(), "look a table up"),
            (nft.chain(IP, "t", name).err(), "look a chain up"),
            (nft.chain(IP, name, "foo").err(), "look a chain up"),
            (nft.set(IP, "t", name).err(), "look a set up"),
            (nft.rules(Filter::chain(IP, "t", name)).err(), "list rules"),
            // What is filtered here, as well.
            (
                nft.chains(Filter::chain(IP, "t", name)).err(),
                "list chains",
            ),
            (nft.tables(Filter::table(IP, name)).err(), "list tables"),
            (nft.elements(IP, "t", name).err(), "list elements"),
        ] {
            let error = error.expect(operation).to_string();
            let start = BStr::new(&name.as_bytes()[..name.len().min(32)]);
            let said = format!("cannot {operation}: the name {start:?}");
            assert!(error.starts_with(&said), "{error}");
        }
        assert!(nft.snapshot(Filter::table(IP, name)).is_err());
    }
    assert!(whole(&mut nft) == before);
}

/// An anonymous set is one rule's.
#[test]
fn an_anonymous_set_that_is_used_twice_is_explained() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
    });
    let error = refused(&mut nft, |tx| {
        let mut set = Set::new(IP, "t", "__set%d", DataType::IPV4_ADDR, 4);
        set.flags = Some(SetFlags::ANONYMOUS | SetFlags::CONSTANT);
        set.id = Some(7);
        tx.add(&set).unwrap();
        for _ in 0..2 {
            let mut lookup = Lookup::set(Register::R1, "__set%d");
            lookup.set_id = Some(7);
            let rule = Rule::new(IP, "t", "c")
                .with(&Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1))
                .with(&lookup);
            tx.add(&rule).unwrap();
        }
    });
    let failure = &error.failures[0];
    assert_eq!(failure.errno.name(), "EBUSY");
    assert!(failure.hint.unwrap().contains("one rule, once"), "{error}");
}

/// The kernel tells a thread, not a process.
#[test]
fn a_generation_names_the_thread_and_so_the_process() {
    let sandbox = sandbox();
    let asked = thread::scope(|scope| {
        let asking = move || {
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
            move || sandbox.run(asking).unwrap()
        });
        thread.join().unwrap()
    });
    let (thread, told, process) = asked;
    assert_ne!(thread, std::process::id());
    match told {
        Some(told) if told == thread => assert_eq!(process, Some(std::process::id())),
        // In a pid namespace of its own the numbers are others.
        told => assert!(
            told.is_some() && process != Some(thread),
            "{told:?} {process:?}"
        ),
    }
}
