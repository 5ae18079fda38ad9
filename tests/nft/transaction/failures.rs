//! Refusals: all failures are named, and nothing is applied.

use std::fs;

use bstr::BStr;
use caps::{CapSet, Capability};
use chainwright::nft::expr::CmpOp;
use chainwright::nft::{DataType, Element, Operation, Set, SetId};

use super::*;

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

    // The same transaction with the three errors corrected succeeds.
    let tx = ten_thousand(|tx, index| match index {
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
    commit(&mut nft, &tx);
    let after = whole(&mut nft);
    assert_eq!((after.chains.len(), after.rules.len()), (9_998, 0));
}

#[test]
fn all_of_ten_thousand_failures_are_reported() {
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
    // Root's receive buffer holds all reports; the kernel may drop some for a user without
    // privileges.
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
    // No report remains that could be mistaken for a later answer.
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
    // Alone, as the first of two, as the first and last failures of three.
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

/// The kernel reports an error in the ruleset as a whole for the operation that causes it.
#[test]
fn a_loop_is_rejected_and_named() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let is_loop = |error: &CommitError, index, operation: &str| {
        let failure = only(error);
        let (at, text, _) = summary(failure);
        assert_eq!((at, &*text), (Some(index), operation), "{error}");
        let loops = [libc::ELOOP, libc::EMLINK];
        assert!(loops.contains(&failure.errno.number()), "{error}");
        let hint = failure.hint.as_deref().unwrap();
        assert!(hint.contains("the jumps form a loop"), "{error}");
    };
    // Created together with the chains.
    let error = refused(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        content(tx);
        tx.add(&jump("t", "kept", "one")).unwrap();
        tx.add(&Chain::new(IP, "t", "more")).unwrap();
    });
    is_loop(&error, 11, "add rule ip t kept #11");
    // As the only operation: the error belongs to this operation, not to the commit.
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        content(tx);
        tx.add(&Chain::new(IP, "t", "a")).unwrap();
        tx.add(&Chain::new(IP, "t", "b")).unwrap();
        tx.add(&jump("t", "a", "b")).unwrap();
    });
    let mut loops = vec![("kept", "one"), ("one", "one")];
    // No packet reaches this chain yet: the kernel checks only chains that packets reach, or every
    // chain.
    let mut tx = Transaction::new();
    tx.add(&jump("t", "b", "a")).unwrap();
    match nft.commit(&tx) {
        Ok(()) => loops.push(("two", "a")),
        Err(error) => {
            is_loop(&error, 0, "add rule ip t b #0");
            println!(
                "this kernel lacks loops of chains that no packet reaches: it rejects their creation"
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
fn common_mistakes_are_reported_with_a_hint() {
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
                // NAT has no such hook.
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
                // A rule cannot have two final verdicts; a value of no bytes is invalid.
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
            println!("this kernel lacks the position of the error when it rejects a chain's type");
        } else if let Some(attribute) = attribute {
            assert_eq!(failure.attribute.as_deref(), Some(*attribute), "{error}");
        }
        assert!(failure.hint.is_some(), "{error}");
        assert!(
            error.to_string().contains(failure.hint.as_deref().unwrap()),
            "{error}"
        );
    }
    // A name that is too long for the kernel is not sent.
    let mut tx = Transaction::new();
    let error = tx.add(&Chain::new(IP, "t", &long[..256])).unwrap_err();
    assert!(error.to_string().contains("255"), "{error}");
}

#[test]
fn without_the_capability_nothing_is_applied_and_the_error_names_it() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let before = whole(&mut nft);
    for expect in [false, true] {
        // `run` works on a separate thread, whose capabilities end with it.
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
fn rejects_transactions_larger_than_the_send_buffer() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let limit = fs::read_to_string("/proc/sys/net/core/wmem_max").unwrap();
    // The kernel doubles the requested size to account for its own use.
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
    // The connection can still be used.
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
    });
}

/// A deletion without a name deletes nothing, instead of everything.
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
        ..Table::empty()
    };
    let chain = Chain {
        family: IP,
        table: Some("t".into()),
        ..Chain::empty()
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

/// The kernel ends a name at the first NUL: `delete chain foo\0bar` would delete `foo`.
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
            let message = format!("cannot {operation}: the name {start:?}");
            assert!(error.starts_with(&message), "{error}");
        }
        assert!(tx.is_empty());
        for (error, operation) in [
            (nft.table(IP, name).err(), "look up a table"),
            (nft.chain(IP, "t", name).err(), "look up a chain"),
            (nft.chain(IP, name, "foo").err(), "look up a chain"),
            (nft.set(IP, "t", name).err(), "look up a set"),
            (
                nft.rules(RuleFilter::chain(IP, "t", name)).err(),
                "list rules",
            ),
            // Including filters of the library.
            (nft.chains(Scope::table(IP, name)).err(), "list chains"),
            (nft.tables(Scope::table(IP, name)).err(), "list tables"),
            (nft.elements(IP, "t", name).err(), "list elements"),
        ] {
            let error = error.expect(operation).to_string();
            let start = BStr::new(&name.as_bytes()[..name.len().min(32)]);
            let message = format!("cannot {operation}: the name {start:?}");
            assert!(error.starts_with(&message), "{error}");
        }
        assert!(nft.snapshot(Scope::table(IP, name)).is_err());
    }
    assert!(whole(&mut nft) == before);
}

/// An anonymous set belongs to one rule.
#[test]
fn an_anonymous_set_that_is_used_twice_is_explained() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
    });
    let error = refused(&mut nft, |tx| {
        let set = Set::anonymous(IP, "t", "__set%d", 7, DataType::IPV4_ADDR, 4);
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
    assert!(
        failure
            .hint
            .as_deref()
            .unwrap()
            .contains("once, by one rule"),
        "{error}"
    );
}
