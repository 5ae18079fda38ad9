//! Kernels without some features: tests detect these by trying, never by version number. If a kernel refuses
//! something, a test checks that the refusal names the missing feature and that nothing was changed, and prints that
//! in a line that `integration-vm` puts in its table.

use std::error::Error;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use chainwright::netlink;
use chainwright::nft::expr::{
    Byteorder, Counter, Fib, FibFlags, FibResult, Limit, Lookup, Meta, MetaKey, Payload,
    PayloadBase, Register, Reject, Socket, SocketKey,
};
use chainwright::nft::{
    Chain, CommitError, Connection, DataType, Devices, Element, Family, Generation, Outcome, Rule,
    Set, SetFlags, SetPolicy, Table, Transaction,
};

use super::{connect, report, sandbox};

/// The prefix in errors.
pub(crate) const LACKS: &str = "this kernel lacks ";

/// Commits a transaction that may need one of these features (named as in the library), which an old kernel lacks.
/// `false` if the kernel refused it with an error that names the feature, and nothing was changed; any other failure
/// fails the test.
#[track_caller]
#[must_use = "the test must handle a kernel without the feature"]
pub(crate) fn commit_if_supported(
    nft: &mut Connection,
    tx: &mut Transaction,
    features: &[&str],
) -> bool {
    let before = nft.generation().expect("cannot read the generation");
    match nft.commit(tx) {
        Ok(()) => true,
        Err(error) => {
            is_lacking(&error, features);
            assert_eq!(nft.generation().unwrap(), before, "{error}");
            false
        }
    }
}

/// Checks that an error names one of these features as missing, and prints it.
#[track_caller]
fn is_lacking(error: &CommitError, features: &[&str]) {
    assert_eq!(error.outcome, Outcome::NothingApplied, "{error}");
    let lacks = error.failures.iter().find_map(|failure| failure.lacks);
    let Some(feature) = lacks else {
        panic!("{error}");
    };
    assert!(features.contains(&feature.name()), "{error}");
    assert!(
        error.to_string().contains(&format!("{LACKS}{feature}")),
        "{error}"
    );
    println!("{LACKS}{feature}");
}

/// Commits a transaction for which a kernel of any version may have been built without support. `false` if it was
/// refused with these words and nothing was changed; any other failure fails the test.
#[track_caller]
#[must_use = "the test must handle a kernel without the feature"]
pub(crate) fn commit_if_built(
    nft: &mut Connection,
    tx: &mut Transaction,
    what: &str,
    words: &str,
) -> bool {
    commit_if_accepted(nft, tx, &format!("{what}: not built in"), words)
}

/// Commits a transaction that some kernels refuse for reasons that the error does not show. `false` if it was refused
/// with these words and nothing was changed; any other failure fails the test.
#[track_caller]
#[must_use = "the test must handle a kernel without the feature"]
pub(crate) fn commit_if_accepted(
    nft: &mut Connection,
    tx: &mut Transaction,
    what: &str,
    words: &str,
) -> bool {
    let before = nft.generation().expect("cannot read the generation");
    let Err(error) = nft.commit(tx) else {
        return true;
    };
    let text = error.to_string();
    assert!(text.contains(words), "{text}");
    assert_eq!(error.outcome, Outcome::NothingApplied, "{text}");
    assert_eq!(nft.generation().unwrap(), before, "{text}");
    println!("{LACKS}{what}");
    false
}

/// Commits a transaction for which the send buffer of a user without privileges may be too small (`net.core.wmem_max`:
/// 208 KiB, and 4 MiB since Linux 6.17). `false` if it was refused with that error; nothing was sent then.
#[track_caller]
#[must_use = "the test must handle a buffer that is too small"]
pub(crate) fn commit_if_it_fits(nft: &mut Connection, tx: &mut Transaction) -> bool {
    match nft.commit(tx) {
        Ok(()) => true,
        Err(CommitError {
            source: Some(netlink::Error::TooLarge { length, limit }),
            outcome: Outcome::NothingApplied,
            ..
        }) if length > limit => {
            println!(
                "{LACKS}space for a transaction of this size from an ordinary user (`net.core.wmem_max`)"
            );
            false
        }
        Err(error) => panic!("{}", report(&error)),
    }
}

/// Whether sets support a catch-all element; determined once.
pub(crate) fn catches_all() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| has(&mut connect(&sandbox()), "catch-all elements"))
}

/// Whether the kernel numbers network namespaces (Linux 5.14), so that all connections of one share its generations;
/// determined once.
pub(crate) fn numbers_namespaces() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let sandbox = sandbox();
        let generation_of = || connect(&sandbox).generation().unwrap();
        let known = has_cookie(&connect(&sandbox));
        assert_eq!(generation_of() == generation_of(), known);
        if !known {
            println!(
                "{LACKS}numbers of network namespaces, available since Linux 5.14: only the connection that reported a \
                 generation can recognize it"
            );
        }
        known
    })
}

/// Whether the kernel returns the number of a socket's namespace (`SO_NETNS_COOKIE`).
fn has_cookie(nft: &Connection) -> bool {
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as `nft`, and the pointers refer to a live u64 and to its length; the
    // kernel writes at most that many bytes.
    let result = unsafe {
        libc::getsockopt(
            nft.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    result == 0 && cookie != 0
}

/// Checks that a generation equals one from another connection, as far as this kernel allows comparing them.
#[track_caller]
pub(crate) fn is_same_generation(one: Generation, other: Generation) {
    assert_eq!(one.number(), other.number());
    assert!(one == other || !numbers_namespaces());
}

/// Whether the kernel supports the feature in a ruleset's header. Tries it in a table that a separate transaction
/// deletes again, because some kernels do not check what the same transaction deletes.
#[track_caller]
pub(crate) fn has(nft: &mut Connection, feature: &str) -> bool {
    let known = takes(nft, feature);
    for family in [Family::IP, Family::NETDEV] {
        if nft.table(family, "probe").unwrap().is_some() {
            let mut tx = Transaction::new();
            tx.delete(&Table::new(family, "probe")).unwrap();
            nft.commit(&tx).unwrap();
        }
    }
    known
}

#[track_caller]
fn takes(nft: &mut Connection, feature: &str) -> bool {
    const NETDEV: Family = Family::NETDEV;
    /// `NF_NETDEV_INGRESS`, `NF_NETDEV_EGRESS`.
    const INGRESS: u32 = 0;
    const EGRESS: u32 = 1;
    let on = |hook, device| {
        Chain::new(NETDEV, "probe", "c")
            .with_hook("filter", hook, 0)
            .with_devices(Devices::new([device]))
    };
    let rule = || Rule::new(Family::IP, "probe", "c");
    let set = Set::new(Family::IP, "probe", "s", DataType::IPV4_ADDR, 4);
    let probe = |family, fill: &dyn Fn(&mut Transaction)| {
        let table = Table::new(family, "probe");
        let mut tx = Transaction::new();
        tx.add(&table).unwrap();
        tx.add(&Chain::new(family, "probe", "c")).unwrap();
        fill(&mut tx);
        tx
    };
    let mut tx = match feature {
        "catch-all elements" => probe(Family::IP, &|tx| {
            tx.add(&set).unwrap();
            tx.add_elements(&set.set_id(), [Element::catch_all()])
                .unwrap();
        }),
        "several statements in an element" => probe(Family::IP, &|tx| {
            let two = set
                .clone()
                .with_updates(9)
                .with_expression(&Counter::default())
                .with_expression(&Limit::packets(5, 1, 5));
            tx.add(&two).unwrap();
        }),
        "the hook egress" => probe(NETDEV, &|tx| {
            tx.delete(&Chain::new(NETDEV, "probe", "c")).unwrap();
            tx.add(&on(EGRESS, "lo")).unwrap();
        }),
        "devices to come" => probe(NETDEV, &|tx| {
            tx.delete(&Chain::new(NETDEV, "probe", "c")).unwrap();
            tx.add(&on(INGRESS, "later0")).unwrap();
        }),
        "the payload behind the transport header" => probe(Family::IP, &|tx| {
            let load = Payload::load(PayloadBase::INNER, 0, 4, Register::R1);
            tx.add(&rule().with(&load)).unwrap();
        }),
        "cgroups of sockets" => probe(Family::IP, &|tx| {
            let socket = Socket {
                level: Some(1),
                ..Socket::load(SocketKey::CGROUPV2, Register::R1)
            };
            tx.add(&rule().with(&socket)).unwrap();
        }),
        "reject in netdev" => {
            let mut tx = probe(NETDEV, &|tx| {
                tx.delete(&Chain::new(NETDEV, "probe", "c")).unwrap();
                tx.add(&on(INGRESS, "lo")).unwrap();
                let reject = Reject::tcp_reset();
                tx.add(&Rule::new(NETDEV, "probe", "c").with(&reject))
                    .unwrap();
            });
            let words = "Or the kernel lacks the expression";
            return commit_if_built(nft, &mut tx, "`reject` in netdev tables", words);
        }
        "fib of devices before routing" => {
            let mut tx = probe(Family::IP, &|tx| {
                let hook = Chain::new(Family::IP, "probe", "in").with_hook("filter", 1, 0);
                tx.add(&hook).unwrap();
                let fib = Fib::new(
                    FibFlags::SADDR | FibFlags::IIF,
                    FibResult::OIF,
                    Register::R1,
                );
                tx.add(&Rule::new(Family::IP, "probe", "in").with(&fib))
                    .unwrap();
            });
            return commit_if_built(
                nft,
                &mut tx,
                "`fib … iif oif` in the hook input",
                "not supported by the kernel here",
            );
        }
        "intervals counted as one" => {
            let mut tx = probe(Family::IP, &|tx| {
                let set = set.clone().with_flags(SetFlags::INTERVAL).with_size(1);
                tx.add(&set).unwrap();
                let end = Element::end(&[10, 0, 0, 9]);
                tx.add_elements(&set.set_id(), [Element::new(&[10, 0, 0, 1]), end])
                    .unwrap();
            });
            let what =
                "the number of intervals, available since Linux 6.14: it counts both ends of each";
            return commit_if_accepted(nft, &mut tx, what, "the set s is full");
        }
        "two elements of a small set" => {
            let mut tx = probe(Family::IP, &|tx| {
                let small = set.clone().with_policy(SetPolicy::MEMORY).with_size(4);
                tx.add(&small).unwrap();
                let two = [Element::new(&[192, 0, 2, 1]), Element::new(&[192, 0, 2, 2])];
                tx.add_elements(&small.set_id(), two).unwrap();
            });
            let what = "sets of `policy memory` and `size 4` that take two addresses: it returns `EEXIST` for the \
                        second";
            return commit_if_accepted(
                nft,
                &mut tx,
                what,
                "the set s already contains the element",
            );
        }
        "lookups in maps without their values" => {
            let mut tx = probe(Family::IP, &|tx| {
                let map = set.clone().with_data(DataType::MARK, 4);
                tx.add(&map).unwrap();
                let load = Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1);
                let look = Lookup::set(Register::R1, "s");
                tx.add(&rule().with(&load).with(&look)).unwrap();
            });
            let what = "lookups in maps that do not use the value, available since Linux 6.5";
            let words = "before Linux 6.5 that is required";
            return commit_if_accepted(nft, &mut tx, what, words);
        }
        "byteorder of less than a unit" => {
            let mut tx = probe(Family::IP, &|tx| {
                let load = Meta::load(MetaKey::L4PROTO, Register::R1);
                let turn = Byteorder {
                    len: Some(1),
                    ..Byteorder::hton(Register::R1, Register::R1, 2, 2)
                };
                tx.add(&rule().with(&load).with(&turn)).unwrap();
            });
            let what = "`byteorder` of one byte in units of two, which does nothing and which nft 1.0.6 \
                        writes for `meta l4proto` in some concatenations: it rejects them, unlike older kernels";
            let words = "a `byteorder` of less than a unit of its size";
            return commit_if_accepted(nft, &mut tx, what, words);
        }
        "writing into packets" => {
            let mut tx = probe(Family::IP, &|tx| {
                let load = Payload::load(PayloadBase::NETWORK, 0, 2, Register::R1);
                let write = Payload {
                    dreg: None,
                    sreg: Some(Register::R1),
                    ..load.clone()
                };
                tx.add(&rule().with(&load).with(&write)).unwrap();
            });
            let what = "rules that write into packets, for an ordinary user in their own namespace: they \
                        require CAP_NET_ADMIN in the initial user namespace";
            let words = "initial one for a rule that writes into packets";
            return commit_if_accepted(nft, &mut tx, what, words);
        }
        other => panic!("no test uses the feature `{other}`"),
    };
    // The names are those of the library, except for one shorter one.
    let name = match feature {
        "devices to come" => "hooks on devices that do not exist yet",
        same => same,
    };
    commit_if_supported(nft, &mut tx, &[name])
}

/// The value, or `None` if the request was refused with an error that names a missing feature.
#[track_caller]
#[must_use = "the test must handle a kernel without the feature"]
pub(crate) fn if_supported<T, E: Error>(result: Result<T, E>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            let text = report(&error);
            let Some((_, lacking)) = text.split_once(LACKS) else {
                panic!("{text}");
            };
            let line = lacking.lines().next().unwrap_or_default();
            println!("{LACKS}{}", line.trim_end_matches(')'));
            None
        }
    }
}
