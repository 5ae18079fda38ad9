//! Transactions, tested with the kernel: their effects, what they leave alone, and their errors.

mod failures;
mod generation;
mod listings;
mod whole;
mod written_back;

use std::collections::HashSet;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::common::tools::Tools;
use crate::common::{OnDrop, commit, committed, connect, kernel, report, rules_of, sandbox};
use chainwright::netlink::{Error, Message};
use chainwright::nft::expr::{Cmp, Counter, Immediate, Lookup, Payload, PayloadBase, Register};
use chainwright::nft::{
    Chain, ChainRef, CommitError, Connection, Failure, Family, Generation, Outcome, Policy, Rule,
    RuleFilter, Scope, Table, Transaction,
};
use chainwright_testing::Sandbox;
use nix::sys::socket::{setsockopt, sockopt};

const IP: Family = Family::IP;

/// `NF_INET_LOCAL_IN` of `linux/netfilter.h`.
const INPUT: u32 = 1;

/// `NFTA_RULE_EXPRESSIONS` of `linux/netfilter/nf_tables.h`.
const NFTA_RULE_EXPRESSIONS: u16 = 4;

/// Commits what `fill` adds to a transaction, which must fail and change nothing.
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

/// Index of a failed operation, its text, and the error's name.
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
            let listing = nft.$list(Scope::all()).unwrap();
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

/// Whether this process may force the size of socket buffers: root can, root of a user namespace
/// cannot.
fn forces_buffers() -> bool {
    let (socket, _other) = UnixDatagram::pair().unwrap();
    setsockopt(&socket, sockopt::SndBufForce, &1_000_000).is_ok()
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

fn accept(table: &'static str, chain: &'static str) -> Rule<'static> {
    Rule::new(IP, table, chain).with(&Immediate::accept())
}

fn jump(table: &'static str, chain: &'static str, to: &'static str) -> Rule<'static> {
    Rule::new(IP, table, chain).with(&Immediate::jump(to))
}

#[test]
fn an_empty_transaction_commits_nothing() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let before = nft.generation().unwrap();
    let mut tx = Transaction::new();
    assert!(tx.is_empty());
    commit(&mut nft, &tx);
    // Emptied again.
    tx.add(&Table::new(IP, "t")).unwrap();
    tx.clear();
    assert_eq!((tx.len(), tx.byte_length()), (0, 0));
    commit(&mut nft, &tx);
    assert_eq!(nft.generation().unwrap(), before);
    assert!(nft.table(IP, "t").unwrap().is_none());
}

#[test]
fn add_accepts_existing_objects_and_create_does_not() {
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
    // Without a policy the existing one stays.
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
fn destroy_accepts_existing_and_missing_objects() {
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
    if !kernel::commit_if_supported(&mut nft, &mut tx, &["`destroy`"]) {
        return;
    }
    committed(&mut nft, |tx| {
        tx.add(&table).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        tx.add(&rule).unwrap();
    });
    rule.handle = rules_of(&mut nft, IP, "t", "c")[0].handle;
    destroy(&mut nft, &rule);
    assert!(nft.table(IP, "t").unwrap().is_some());
    assert!(!nft.chain_exists(IP, "t", "c").unwrap());
    // A missing rule in an existing chain.
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

/// The comments of a chain's rules in the library's listing, which must equal nft's.
#[track_caller]
fn comments(sandbox: &Sandbox, nft: &mut Connection) -> String {
    let chainwright: Vec<_> = rules_of(nft, IP, "t", "c")
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
    assert_eq!(chainwright, printed);
    chainwright.join(" ")
}

#[test]
fn rules_are_inserted_at_the_given_position() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let rule = |name: &str| {
        let mut rule = accept("t", "c");
        rule.userdata = Some(comment(name).into());
        rule
    };
    let handle = |nft: &mut Connection, name: &str| {
        let rules = rules_of(nft, IP, "t", "c");
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

    // After and before another.
    let (mut behind, mut before) = (rule("a2"), rule("b0"));
    behind.position = handle(&mut nft, "a");
    before.position = handle(&mut nft, "b");
    committed(&mut nft, |tx| {
        tx.add(&behind).unwrap();
        tx.insert(&before).unwrap();
    });
    assert_eq!(comments(&sandbox, &mut nft), "z a a2 b0 b");

    // In place of another.
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

    // By the number of a rule or chain in the same batch.
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
fn flush_removes_rules_tables_and_whole_families() {
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
    // The kernel accepts at most 256 bytes.
    let user_data: Vec<Vec<u8>> = vec![
        vec![0],
        comment("a comment"),
        (0..=255).collect(),
        vec![0xff; 256],
    ];
    committed(&mut nft, |tx| {
        for (index, blob) in user_data.iter().enumerate() {
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
    for (index, blob) in user_data.iter().enumerate() {
        let name = format!("t{index}");
        let table = nft.table(IP, &name).unwrap().unwrap();
        assert_eq!(table.userdata(), Some(&blob[..]));
        let chain = nft.chain(IP, &name, "c").unwrap().unwrap();
        assert_eq!(chain.userdata(), Some(&blob[..]));
        assert_eq!(
            rules_of(&mut nft, IP, &name, "c")[0].userdata.as_deref(),
            Some(&blob[..])
        );
    }
}

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
    // Pairs of chains as in kube-proxy: a service's with three rules, and the endpoint's that it
    // jumps to, with two.
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

    let before = nft.generation().unwrap().number();
    let result = nft.commit(&tx);
    if let Err(error) = &result {
        // net.core.wmem_max limits the send buffer of a user without privileges.
        let too_large = matches!(error.source, Some(Error::TooLarge { .. }));
        assert!(too_large && !forces_buffers(), "{}", report(error));
        assert_eq!(error.outcome, Outcome::NothingApplied);
        assert_eq!(nft.generation().unwrap().number(), before);
        return;
    }
    assert_eq!(nft.generation().unwrap().number(), before.wrapping_add(1));

    let (mut chains, mut references) = (0, 0);
    let listing = nft.chains(Scope::table(IP, "nat")).unwrap();
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
        let rules = rules_of(&mut nft, IP, "nat", &name(index));
        assert_eq!(rules.len(), if index % 2 == 0 { 3 } else { 2 }, "{index}");
    }
    // And delete it, also in one transaction.
    committed(&mut nft, |tx| {
        tx.delete(&Table::new(IP, "nat")).unwrap();
    });
    assert_eq!(whole(&mut nft).chains.len(), 0);
}

/// The bytes of a commit can be read any number of times.
#[test]
fn a_transaction_can_be_sent_repeatedly() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "t")).unwrap();
    tx.add(&Chain::new(IP, "t", "c")).unwrap();
    let first = tx.datagram(<[u8]>::to_vec);
    assert_eq!(tx.datagram(<[u8]>::to_vec), first);
    commit(&mut nft, &tx);
    assert_eq!(tx.datagram(<[u8]>::to_vec), first);
    commit(&mut nft, &tx);
    // Another operation does not change those before it, except for the acknowledgement that the
    // last one requests.
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
    commit(&mut nft, &tx);
    commit(&mut nft, &tx);
    assert_eq!(rules_of(&mut nft, IP, "t", "c").len(), 2);
}

/// The kernel checks a transaction without executing it.
#[test]
fn a_dry_run_changes_nothing() {
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
    // A missing target; and a cycle that only the whole transaction shows.
    let mut absent = Transaction::new();
    absent.add(&Chain::new(Family::IP, "t", "e")).unwrap();
    absent.add(&jump("nowhere")).unwrap();
    let error = nft.check(&absent).unwrap_err();
    assert_eq!(error.outcome, Outcome::NothingApplied);
    assert_eq!(error.failures[0].operation.as_ref().unwrap().index, 1);
    assert_eq!(error.failures[0].errno.number(), libc::ENOENT);
    let mut loop_of_jumps = Transaction::new();
    let base = Chain::new(Family::IP, "t", "base").with_hook("filter", 1, 0);
    loop_of_jumps.add(&base).unwrap();
    let to = Rule::new(Family::IP, "t", "base").with(&Immediate::jump("c"));
    loop_of_jumps.add(&to).unwrap().add(&jump("c")).unwrap();
    assert_eq!(
        nft.check(&loop_of_jumps).unwrap_err().outcome,
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
