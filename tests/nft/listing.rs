//! Allocations of listing, looking up and appending: none per object, however many there are.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;

use crate::common::tools::Tools;
use crate::common::{connect, report, sandbox};
use allocation_counter::measure;
use chainwright::nft::expr::{
    Bitwise, Cmp, Counter, Ct, CtKey, Immediate, Match, Meta, MetaKey, Payload, PayloadBase,
    Register,
};
use chainwright::nft::{
    Chain, ChainRef, Connection, Family, List, Policy, Refreshed, Rule, RuleFilter, RuleRef, Scope,
    Table, Transaction,
};
use chainwright::{legacy, nft};
use chainwright_testing::Sandbox;
use nix::time::{ClockId, clock_gettime};

const IP: Family = Family::IP;

/// Number of allocations of `work`.
fn allocations(work: impl FnOnce()) -> u64 {
    measure(work).count_total
}

/// A sandbox with a table of this many chains, each with a rule, and a base chain.
fn chains(count: usize) -> (Sandbox, Connection) {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let base = Chain::new(IP, "nat", "PREROUTING")
        .with_hook("nat", 0, -100)
        .with_policy(Policy::ACCEPT);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "nat")).unwrap().add(&base).unwrap();
    for index in 0..count {
        let name = format!("KUBE-SVC-{index:016}");
        tx.add(&Chain::new(IP, "nat", &name)).unwrap();
        tx.add(&sample(&mut Rule::new(IP, "nat", &name))).unwrap();
        // In pieces that fit into the send buffer of a user without privileges.
        if tx.byte_length() > 150_000 {
            nft.commit(&tx).unwrap();
            tx.clear();
        }
    }
    nft.commit(&tx).unwrap();
    (sandbox, nft)
}

/// Fills a rule with expressions of many kinds.
fn sample<'r>(rule: &mut Rule<'r>) -> Rule<'r> {
    fill(rule);
    rule.clone()
}

fn fill(rule: &mut Rule<'_>) {
    let comment = [7; 256];
    rule.clear()
        .push(&Payload::load(PayloadBase::NETWORK, 16, 4, Register::R1))
        .push(&Bitwise::mask_xor(Register::R1, &[255, 255, 0, 0], &[0; 4]))
        .push(&Cmp::eq(Register::R1, &[10, 96, 0, 0]))
        .push(&Meta::load(MetaKey::MARK, Register::R1))
        .push(&Cmp::neq(Register::R1, &0x4000_u32.to_ne_bytes()))
        .push(&Ct::load(CtKey::STATE, Register::R1))
        .push(&Match::new("comment", 0, &comment[..]))
        .push(&Counter::new(0, 0))
        .push(&Immediate::return_());
}

/// Reads every attribute of a chain in a listing.
fn read_chain(chain: &ChainRef<'_>) {
    black_box((
        chain.family(),
        chain.table(),
        chain.name(),
        chain.handle(),
        chain.hook(),
        chain.policy(),
        chain.chain_type(),
        chain.references(),
        chain.counters(),
        chain.flags(),
        chain.is_base(),
        chain.userdata(),
    ));
}

/// Reads every attribute and every expression of a rule.
fn read_rule(rule: &RuleRef<'_>) {
    black_box((rule.table(), rule.chain(), rule.handle(), rule.position()));
    black_box(rule.userdata());
    for expression in rule.expressions().into_iter().flatten() {
        black_box(expression.unwrap().decode().unwrap());
    }
}

#[test]
fn listing_allocates_the_same_for_any_number_of_chains_and_rules() {
    let counted = [2_000, 10_000].map(|count| {
        let (_sandbox, mut nft) = chains(count);
        let (mut listed_chains, mut listed_rules, mut filtered) = (0, 0, 0);
        let by_chains = allocations(|| {
            let mut listing = nft.chains(Scope::all()).unwrap();
            while let Some(chain) = listing.try_next().unwrap() {
                read_chain(&chain);
                listed_chains += 1;
            }
        });
        let by_filter = allocations(|| {
            let listing = nft.chains(Scope::table(IP, "nat")).unwrap();
            listing
                .for_each(|chain| {
                    read_chain(&chain);
                    filtered += 1;
                })
                .unwrap();
        });
        let by_rules = allocations(|| {
            let listing = nft.rules(Scope::all()).unwrap();
            listing
                .for_each(|rule| {
                    read_rule(&rule);
                    listed_rules += 1;
                })
                .unwrap();
        });
        assert_eq!((listed_chains, filtered), (count + 1, count + 1));
        assert_eq!(listed_rules, count);
        [by_chains, by_filter, by_rules]
    });
    assert_eq!(counted[0], counted[1]);
    assert_eq!(counted[0], [0; 3]);
}

/// The measurement does detect an allocation per chain.
#[test]
fn an_allocation_for_each_chain_would_be_counted() {
    let (_sandbox, mut nft) = chains(500);
    let counted = allocations(|| {
        let listing = nft.chains(Scope::all()).unwrap();
        listing
            .for_each(|chain| {
                black_box(chain.name().to_string());
            })
            .unwrap();
    });
    assert!(counted >= 501, "{counted}");
}

#[test]
fn lookups_allocate_nothing() {
    let (_sandbox, mut nft) = chains(1);
    let handle = {
        let mut rules = nft.rules(Scope::all()).unwrap();
        rules.try_next().unwrap().unwrap().handle()
    };
    let name = "KUBE-SVC-0000000000000000";
    let counted = allocations(|| {
        for _ in 0..100 {
            nft.generation().unwrap();
            assert!(nft.table(IP, "nat").unwrap().is_some());
            read_chain(&nft.chain(IP, "nat", name).unwrap().unwrap());
            assert!(!nft.chain_exists(IP, "nat", "nix").unwrap());
            read_rule(&nft.rule(IP, "nat", name, handle).unwrap().unwrap());
        }
    });
    assert_eq!(counted, 0);
}

#[test]
fn appending_allocates_nothing() {
    let mut tx = Transaction::with_capacity(30_000_000);
    let mut rule = Rule::new(IP, "nat", "KUBE-SERVICES");
    // Once, so that the rule has its memory.
    fill(&mut rule);
    let mut name = String::with_capacity(40);
    let counted = allocations(|| {
        tx.add(&Table::new(IP, "nat")).unwrap();
        let base = Chain::new(IP, "nat", "PREROUTING").with_hook("nat", 0, -100);
        tx.add(&base.with_policy(Policy::ACCEPT)).unwrap();
        for index in 0..10_000 {
            name.clear();
            write!(name, "KUBE-SVC-{index:016}").unwrap();
            tx.create(&Chain::new(IP, "nat", &name)).unwrap();
            fill(&mut rule);
            tx.add(&rule).unwrap();
            tx.insert(&rule).unwrap();
            rule.handle = Some(index);
            tx.replace(&rule).unwrap();
            tx.delete(&rule).unwrap();
            rule.handle = None;
            tx.flush_chain(IP, "nat", &name).unwrap();
            tx.destroy(&Chain::new(IP, "nat", &name)).unwrap();
        }
    });
    assert_eq!(tx.len(), 70_002);
    assert_eq!(counted, 0, "of {} bytes", tx.byte_length());
    // After a clear it is filled again without an allocation, whatever its first capacity.
    let mut tx = Transaction::new();
    let fill = |tx: &mut Transaction| {
        for _ in 0..1000 {
            tx.add(&rule).unwrap();
        }
    };
    fill(&mut tx);
    let counted = allocations(|| {
        tx.clear();
        fill(&mut tx);
    });
    assert_eq!(counted, 0);
}

#[test]
fn committing_allocates_the_same_for_any_number_of_operations() {
    let counted = [100, 2_000].map(|count| {
        let sandbox = sandbox();
        let mut nft = connect(&sandbox);
        let mut tx = Transaction::new();
        tx.add(&Table::new(IP, "t")).unwrap();
        for index in 0..count {
            tx.add(&Chain::new(IP, "t", format!("c{index}"))).unwrap();
        }
        // Once, so that the socket's buffers have their sizes.
        nft.commit(&tx).unwrap();
        allocations(|| nft.commit(&tx).unwrap())
    });
    assert_eq!(counted[0], counted[1]);
    assert!(counted[0] <= 4, "{counted:?}");
}

#[test]
fn refreshing_a_list_of_the_same_generation_allocates_nothing() {
    for count in [10, 3_000] {
        let (sandbox, mut nft) = chains(count);
        let mut list = List::<Chain<'_>>::new(Scope::table(IP, "nat"));
        let mut refreshed = None;
        let taking = allocations(|| refreshed = list.refresh(&mut nft).ok());
        assert_eq!((refreshed, taking > 0), (Some(Refreshed::Reread), true));
        let counted = allocations(|| {
            for _ in 0..100 {
                let refreshed = list.refresh(&mut nft).unwrap();
                assert_eq!(refreshed, Refreshed::SameGeneration);
            }
        });
        assert_eq!(counted, 0);
        assert_eq!(list.len(), count + 1);
        let reading = allocations(|| list.iter().for_each(|chain| read_chain(&chain)));
        assert_eq!(reading, 0);

        // A change by another program is noticed, and listed into the existing memory.
        let mut tx = Transaction::new();
        tx.delete(&Table::new(IP, "nat")).unwrap();
        tx.add(&Table::new(IP, "nat")).unwrap();
        tx.add(&Chain::new(IP, "nat", "only")).unwrap();
        connect(&sandbox).commit(&tx).unwrap();
        let counted = allocations(|| refreshed = list.refresh(&mut nft).ok());
        assert_eq!(refreshed, Some(Refreshed::Reread));
        assert_eq!(list.len(), 1);
        assert_eq!(list.iter().next().unwrap().name(), "only");
        assert!(counted <= 4, "{counted}");
    }
}

#[test]
fn a_refresh_follows_every_change() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut tables = List::<Table<'_>>::new(Scope::all());
    let mut rules = List::<Rule<'_>>::new(RuleFilter::chain(IP, "t", "c"));
    assert!(tables.generation().is_none());
    assert_eq!(tables.refresh(&mut nft).unwrap(), Refreshed::Reread);
    assert!(tables.is_empty());
    assert_eq!(tables.refresh(&mut nft).unwrap(), Refreshed::SameGeneration);
    for step in 1..=3 {
        let mut tx = Transaction::new();
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        tx.add(&Rule::new(IP, "t", "c").with(&Immediate::accept()))
            .unwrap();
        nft.commit(&tx).unwrap();
        assert_eq!(tables.refresh(&mut nft).unwrap(), Refreshed::Reread);
        assert_eq!(rules.refresh(&mut nft).unwrap(), Refreshed::Reread);
        assert_eq!((tables.len(), rules.len()), (1, step));
        assert_eq!(tables.generation(), Some(nft.generation().unwrap()));
        assert_eq!(rules.generation(), tables.generation());
        assert_eq!(rules.refresh(&mut nft).unwrap(), Refreshed::SameGeneration);
    }
}

#[test]
fn reading_a_legacy_table_allocates_the_same_for_any_number_of_chains() {
    let counted = [20, 2_000].map(|count| {
        let sandbox = sandbox();
        let mut save = String::from("*filter\n");
        for index in 0..count {
            writeln!(save, ":KUBE-SVC-{index:016} - [0:0]").unwrap();
        }
        for index in 0..count {
            let chain = format!("-A KUBE-SVC-{index:016}");
            writeln!(save, "{chain} -m comment --comment x -j ACCEPT").unwrap();
        }
        save += "COMMIT\n";
        Tools::new(&sandbox).run_with("iptables-legacy-restore", &save);
        let connection = sandbox
            .run(|| legacy::Connection::open(legacy::Family::Ipv4))
            .unwrap()
            .unwrap_or_else(|error| panic!("{}", report(&error)));
        let mut table = legacy::Table::empty(legacy::Family::Ipv4);
        // Once, so that the table has its memory.
        let _ = connection.read_into("filter", &mut table).unwrap();
        let (mut chains, mut rules) = (0, 0);
        let counted = allocations(|| {
            let table = connection.read_into("filter", &mut table).unwrap();
            for chain in table.in_use().unwrap().chains() {
                black_box((chain.name(), chain.builtin(), chain.rule_count()));
                chains += 1;
                for rule in chain.rules() {
                    black_box((rule.header(), rule.counters(), rule.target().unwrap()));
                    rule.matches().for_each(|found| {
                        black_box(found.unwrap().data());
                    });
                    rules += 1;
                }
            }
        });
        assert_eq!((chains, rules), (count + 3, count));
        counted
    });
    assert_eq!(counted[0], counted[1]);
    assert!(counted[0] <= 4, "{counted:?}");
}

/// Names of objects are borrowed.
#[test]
fn names_borrow() {
    let (table, chain) = (String::from("nat"), String::from("KUBE-SERVICES"));
    let counted = allocations(|| {
        black_box(Chain::new(IP, &table, &chain));
        black_box(Rule::new(IP, &table, chain.as_bytes()));
        black_box(RuleFilter::chain(IP, &table, &*chain));
        black_box(nft::Name::from(&chain));
    });
    assert_eq!(counted, 0);
}

/// Generations of different namespaces may have the same number, but differ.
#[test]
fn a_list_of_another_namespace_is_not_reused() {
    let (here, there) = (sandbox(), sandbox());
    let (mut nft, mut other) = (connect(&here), connect(&there));
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "t")).unwrap();
    tx.add(&Chain::new(IP, "t", "c")).unwrap();
    nft.commit(&tx).unwrap();
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "t")).unwrap();
    other.commit(&tx).unwrap();
    let (here, there) = (nft.generation().unwrap(), other.generation().unwrap());
    assert_eq!(here.number(), there.number());
    assert_ne!(here, there);

    let mut list = List::<Chain<'_>>::new(Scope::all());
    assert_eq!(list.refresh(&mut nft).unwrap(), Refreshed::Reread);
    assert_eq!(list.len(), 1);
    assert_eq!(list.refresh(&mut other).unwrap(), Refreshed::Reread);
    assert!(list.is_empty());
}

/// CPU time of `work` in this thread, in nanoseconds.
fn time(work: impl FnOnce()) -> u128 {
    let now = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let start = now();
    work();
    (now() - start).as_nanos()
}

#[test]
fn a_listing_can_be_dropped_half_read() {
    const CHAINS: usize = 5_000;
    let (_sandbox, mut nft) = chains(CHAINS);
    let name = |number: usize| format!("KUBE-SVC-{number:016}");
    let whole =
        (0..3).map(|_| time(|| nft.chains(Scope::all()).unwrap().for_each(|_| {}).unwrap()));
    let whole = whole.min().unwrap();
    let mut dropped = u128::MAX;
    for read in [0, 1, 200, CHAINS] {
        for request_kind in 0..4 {
            let mut listing = nft.chains(Scope::all()).unwrap();
            for _ in 0..read {
                listing.try_next().unwrap().unwrap();
            }
            dropped = dropped.min(time(|| drop(listing)));
            // Any later request gets its own answer.
            match request_kind {
                0 => assert!(nft.chain_exists(IP, "nat", name(7)).unwrap()),
                1 => {
                    let mut count = 0;
                    let chains = nft.chains(Scope::all()).unwrap();
                    chains.for_each(|_| count += 1).unwrap();
                    assert_eq!(count, CHAINS + 1);
                }
                2 => {
                    let generation = nft.generation().unwrap();
                    let mut tx = Transaction::new();
                    tx.expect_generation(generation);
                    tx.add(&Chain::new(IP, "nat", name(7))).unwrap();
                    nft.commit(&tx).unwrap();
                    // Requires a known generation: the commit is the next request.
                    drop(nft.rules(Scope::all()).unwrap());
                    let generation = nft.generation().unwrap();
                    drop(nft.rules(Scope::all()).unwrap());
                    tx.expect_generation(generation);
                    tx.add(&Chain::new(IP, "nat", name(8))).unwrap();
                    nft.commit(&tx).unwrap();
                }
                _ => assert!(nft.snapshot(Scope::all()).unwrap().generation().is_some()),
            }
        }
    }
    assert!(dropped * 10 < whole, "{dropped} of {whole} ns");
}

/// A connection sends such a message to make the kernel continue a dump.
#[test]
fn the_kernel_acknowledges_a_message_that_does_nothing() {
    use chainwright::netlink::{Acknowledgement, Message, MessageWriter, Socket};
    use chainwright_sys::netlink::{NLM_F_ACK, NLM_F_REQUEST, NLMSG_NOOP};

    let reply = sandbox().run(|| {
        let socket = Socket::netfilter().unwrap();
        let mut request = Vec::new();
        let flags = NLM_F_REQUEST | NLM_F_ACK;
        let writer = MessageWriter::new(&mut request, NLMSG_NOOP, flags, 7);
        writer.finish().unwrap();
        socket.send(&request).unwrap();
        let mut buffer = vec![0; 4096];
        let length = socket.receive(&mut buffer).unwrap();
        buffer.truncate(length);
        buffer
    });
    let reply = reply.unwrap();
    let (message, _) = Message::split(&reply).unwrap();
    let acknowledgement = Acknowledgement::parse(&message).unwrap().unwrap();
    assert_eq!((acknowledgement.sequence, acknowledgement.errno), (7, None));
}
