//! The monitor reports what was committed, and reports a loss for what it cannot show.
//!
//! All of it is in one file, because every test commits and then listens, with the same few helpers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::kernel::is_same_generation;
use crate::common::rulesets::Ruleset;
use crate::common::tools::Tools;
use crate::common::{OnDrop, committed, connect, kernel, sandbox, watch, watch_with};
use bstr::{BStr, BString};
use chainwright::netlink::Loss;
use chainwright::nft::expr::{Immediate, Match, ObjectType, Objref, Quota, QuotaFlags};
use chainwright::nft::live::{
    Cause, Change, Event, EventFlags, EventObject, Item, Lost, Monitor, MonitorOptions,
};
use chainwright::nft::{
    Chain, Connection, DataType, Element, ElementRef, Family, Policy, Rule, Scope, Set,
    StatefulObject, Table, Transaction,
};
use chainwright_sys::nf_tables::NFTA_RULE_POSITION;
use chainwright_sys::nfnetlink::NFNLGRP_NFTABLES;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, getsockname, sendto,
    socket,
};

const IP: Family = Family::IP;
/// `NF_INET_LOCAL_OUT` of `linux/netfilter.h`.
const OUTPUT: u32 = 3;

/// The next item, which is queued when a commit has returned.
#[track_caller]
fn next(monitor: &mut Monitor) -> Item {
    monitor.try_receive().unwrap().expect("no event is queued")
}

#[track_caller]
fn change(monitor: &mut Monitor) -> Change {
    match next(monitor) {
        Item::Change(change) => change,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn lost(monitor: &mut Monitor) -> Lost {
    match next(monitor) {
        Item::Lost(lost) => lost,
        other => panic!("{other:?}"),
    }
}

/// The handle of a table.
fn handle(nft: &mut Connection, table: &str) -> u64 {
    let found = nft.table(IP, table).unwrap().expect("no such table");
    found.handle()
}

fn lines(change: &Change) -> Vec<String> {
    change.events().map(|event| event.to_string()).collect()
}

/// Identifies an object regardless of its later name: its kind, family, table (and for an element the set), and
/// handle or key.
type Key = (&'static str, Family, BString, BString);
/// Objects and their properties.
type Objects = BTreeMap<Key, String>;

fn element_key(
    family: Family,
    table: &[u8],
    set: &[u8],
    element: &ElementRef<'_>,
) -> (Key, String) {
    let key = format!("{:?} {:?}", element.key_bytes(), element.flags());
    let mut what = element.to_builder();
    what.expiration = None;
    let place = format!("{}/{}", BStr::new(table), BStr::new(set));
    (
        ("element", family, place.into(), key.into()),
        format!("{what:?}"),
    )
}

/// The keys and properties of an event's object, in the same form as for listings.
fn objects(event: &EventObject<'_>) -> Vec<(Key, String)> {
    let key = |kind, family, table: &[u8], handle: u64| {
        (
            kind,
            family,
            BString::from(table),
            BString::from(format!("{handle:09}")),
        )
    };
    macro_rules! one {
        ($kind:literal, $view:ident, $table:ident) => {{
            #[allow(unused_mut)]
            let mut what = $view.to_builder();
            let key = key($kind, $view.family(), $view.$table(), $view.handle());
            (key, what)
        }};
        ($kind:literal, $view:ident, $table:ident, uses) => {{
            let (key, mut what) = one!($kind, $view, $table);
            what.references = None;
            vec![(key, format!("{what:?}"))]
        }};
    }
    match event {
        EventObject::Table(table) => one!("table", table, name, uses),
        EventObject::Chain(chain) => one!("chain", chain, table, uses),
        EventObject::Rule(rule) => {
            let (key, what) = one!("rule", rule, table);
            vec![(key, format!("{what:?}"))]
        }
        EventObject::Set(set) => {
            let (key, what) = one!("set", set, table);
            vec![(key, format!("{what:?}"))]
        }
        EventObject::Object(object) => one!("object", object, table, uses),
        EventObject::Flowtable(flowtable) => one!("flowtable", flowtable, table, uses),
        EventObject::Elements(elements) => {
            let (family, table, set) = (elements.family(), elements.table(), elements.set());
            let list = elements.elements().into_iter().flatten();
            list.map(|element| element_key(family, table, set, &element.unwrap()))
                .collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Applies an event. Removing a set removes its elements, without events for them.
#[track_caller]
fn apply(known: &mut Objects, event: &Event<'_>) {
    if let Ok(EventObject::Set(set)) = event.object()
        && event.is_deletion()
    {
        let place = format!("{}/{}", set.table(), set.name());
        known.retain(|(kind, family, of, _), _| {
            (*kind, *family, &of[..]) != ("element", set.family(), place.as_bytes())
        });
    }
    for (key, what) in objects(&event.object().unwrap()) {
        match event.is_deletion() {
            false => _ = known.insert(key, what),
            true => assert!(known.remove(&key).is_some(), "{event} {known:#?}"),
        }
    }
}

/// Removes anonymous chains that no rule jumps to any more, and their rules: the kernel removes them with the last
/// jump, without events.
fn without_unbound(known: &mut Objects) {
    loop {
        let names = known.iter().filter_map(|((kind, ..), what)| {
            let name = what.split("name: Some(").nth(1)?.split(')').next()?;
            (*kind == "chain" && what.contains("BINDING")).then_some(name)
        });
        let is_in = |what: &str, name: &str| what.contains(&format!("chain: Some({name})"));
        let unbound = names.into_iter().find(|name| {
            let mut rules = known.iter().filter(|((kind, ..), _)| *kind == "rule");
            !rules.any(|(_, what)| !is_in(what, name) && what.contains(name))
        });
        let Some(unbound) = unbound.map(str::to_owned) else {
            return;
        };
        known.retain(|(kind, ..), what| match *kind {
            "chain" => !what.contains(&format!("name: Some({unbound})")),
            "rule" => !is_in(what, &unbound),
            _ => true,
        });
    }
}

/// Lists all existing objects.
fn listed(nft: &mut Connection) -> Objects {
    let mut all = Vec::new();
    let filter = Scope::all;
    let mut sets = Vec::new();
    nft.tables(filter())
        .unwrap()
        .for_each(|it| all.extend(objects(&EventObject::Table(it))))
        .unwrap();
    nft.chains(filter())
        .unwrap()
        .for_each(|it| all.extend(objects(&EventObject::Chain(it))))
        .unwrap();
    nft.rules(filter())
        .unwrap()
        .for_each(|it| all.extend(objects(&EventObject::Rule(it))))
        .unwrap();
    nft.objects(filter())
        .unwrap()
        .for_each(|it| all.extend(objects(&EventObject::Object(it))))
        .unwrap();
    if let Some(flowtables) = kernel::if_supported(nft.flowtables(filter())) {
        flowtables
            .for_each(|it| all.extend(objects(&EventObject::Flowtable(it))))
            .unwrap();
    }
    nft.sets(filter())
        .unwrap()
        .for_each(|set| {
            sets.push((set.family(), set.table().to_vec(), set.name().to_vec()));
            all.extend(objects(&EventObject::Set(set)));
        })
        .unwrap();
    for (family, table, set) in sets {
        let mut elements = nft.elements(family, &table[..], &set[..]).unwrap();
        while let Some(element) = elements.try_next().unwrap() {
            all.push(element_key(family, &table, &set, &element));
        }
    }
    let count = all.len();
    let all: Objects = all.into_iter().collect();
    assert_eq!(all.len(), count, "the keys should be unique");
    all
}

/// Receives all committed changes and applies them. Returns their number.
#[track_caller]
fn follow(monitor: &mut Monitor, nft: &mut Connection, known: &mut Objects) -> usize {
    let now = nft.generation().unwrap().number();
    let mut changes = 0;
    while monitor.reported().number() != now {
        let change = change(monitor);
        changes += 1;
        for event in change.events() {
            apply(known, &event);
        }
        without_unbound(known);
    }
    changes
}

/// Covers every kind of object that this kernel supports, as nft creates and flushes it.
#[test]
fn events_of_every_ruleset_match_the_listing() {
    let mut kinds = BTreeSet::new();
    for ruleset in Ruleset::all() {
        let Some(sandbox) = ruleset.prepare() else {
            continue;
        };
        let mut nft = connect(&sandbox);
        let mut monitor = watch(&sandbox);
        let mut known = Objects::new();
        ruleset.load_into(&sandbox).unwrap();
        assert!(
            follow(&mut monitor, &mut nft, &mut known) > 0,
            "{}",
            ruleset.name
        );
        let listed = listed(&mut nft);
        for (key, what) in &known {
            assert_eq!(Some(what), listed.get(key), "{} {key:?}", ruleset.name);
        }
        assert_eq!(known.len(), listed.len(), "{}", ruleset.name);
        kinds.extend(known.keys().map(|key| key.0));
        Tools::new(&sandbox).run("nft flush ruleset");
        follow(&mut monitor, &mut nft, &mut known);
        assert!(known.is_empty(), "{}: {known:#?}", ruleset.name);
    }
    let all = ["chain", "element", "object", "rule", "set", "table"];
    assert!(all.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}

#[test]
fn events_name_the_process_and_its_changes() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut monitor = watch(&sandbox);
    let before = nft.generation().unwrap();
    is_same_generation(monitor.reported(), before);
    assert_eq!(monitor.try_receive().unwrap(), None);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        tx.add(&Rule::new(IP, "t", "c").with(&Immediate::drop()))
            .unwrap();
    });
    let made = change(&mut monitor);
    is_same_generation(made.generation(), nft.generation().unwrap());
    assert_eq!(made.generation(), monitor.reported());
    assert_eq!(made.process_id(), Some(std::process::id()));
    // Older kernels number the tables of all namespaces together.
    let table = handle(&mut nft, "t");
    assert_eq!(
        lines(&made),
        [
            &format!("add table ip t handle {table}")[..],
            "add chain ip t c handle 1",
            "add rule ip t c handle 2"
        ]
    );
    // A commit without an effect is no change.
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
    });
    assert_eq!(monitor.try_receive().unwrap(), None);

    Tools::new(&sandbox).run("nft flush ruleset");
    let flushed = change(&mut monitor);
    assert_eq!(flushed.thread_name().unwrap(), "nft");
    assert_ne!(flushed.port(), made.port());
    assert_ne!(flushed.thread_id(), made.thread_id());
    assert_eq!(
        lines(&flushed),
        [
            "delete rule ip t c handle 2",
            "delete chain ip t c handle 1",
            &format!("delete table ip t handle {table}")[..],
        ]
    );
    assert!(flushed.events().all(|event| event.is_deletion()));
    assert_eq!(monitor.try_receive().unwrap(), None);
}

#[test]
fn renamed_changed_replaced_and_moved() {
    let sandbox = sandbox();
    let tools = Tools::new(&sandbox);
    let mut monitor = watch(&sandbox);
    tools.run_with(
        "nft -f -",
        "table ip t { chain c { accept; drop; }; chain b { type filter hook input priority 0; }; }",
    );
    change(&mut monitor);

    tools.run("nft rename chain ip t c d");
    let renamed = change(&mut monitor);
    assert_eq!(lines(&renamed), ["add chain ip t d handle 1"]);

    tools.run("nft add chain ip t b { policy drop ; }");
    let changed = change(&mut monitor);
    let Ok(EventObject::Chain(chain)) = changed.events().next().unwrap().object() else {
        panic!("{changed:?}");
    };
    assert_eq!((chain.handle(), chain.policy()), (2, Some(Policy::DROP)));

    // Positions of rules: after the first, before the last, at the beginning, at the end.
    let rules_of = |change: &Change| -> Vec<_> {
        let rules = change.events().map(|event| match event.object() {
            Ok(EventObject::Rule(rule)) => {
                let append = event.flags().contains(EventFlags::APPEND);
                (event.is_deletion(), rule.handle(), rule.position(), append)
            }
            other => panic!("{other:?}"),
        });
        rules.collect()
    };
    let rules = |monitor: &mut Monitor| rules_of(&change(monitor));
    tools.run("nft add rule ip t d position 3 counter");
    let first = change(&mut monitor);
    // Whether the kernel sends it, not whether the library reads it.
    let message = first.events().next().unwrap().message();
    let position = message.attributes().unwrap().find(NFTA_RULE_POSITION);
    let knows_places = position.is_some();
    let place = |position: Option<u64>, append| match knows_places {
        true => (position, append),
        false => (None, false),
    };
    if !knows_places {
        println!(
            "{}the position of a rule in its event, available since Linux 5.15",
            kernel::LACKS
        );
    }
    let rule = |handle, (position, append)| [(false, handle, position, append)];
    assert_eq!(rules_of(&first), rule(5, place(Some(3), true)));
    tools.run("nft insert rule ip t d position 4 counter");
    assert_eq!(rules(&mut monitor), rule(6, place(Some(5), false)));
    tools.run("nft insert rule ip t d counter");
    assert_eq!(rules(&mut monitor), rule(7, place(None, false)));
    tools.run("nft add rule ip t d counter");
    assert_eq!(rules(&mut monitor), rule(8, place(None, true)));
    tools.run("nft replace rule ip t d handle 5 accept");
    let mut replaced = rules(&mut monitor);
    replaced.sort_unstable();
    let [(false, new, position, append), (true, 5, None, _)] = replaced[..] else {
        panic!("{replaced:?}");
    };
    // Newer kernels give it the handle of the old one.
    let before = if new == 5 { 3 } else { 5 };
    assert_eq!((position, append), place(Some(before), true));

    // Replaces a table with another of the same name, in one transaction.
    let mut nft = connect(&sandbox);
    let old = handle(&mut nft, "t");
    committed(&mut nft, |tx| {
        tx.delete(&Table::new(IP, "t")).unwrap();
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
    });
    let replaced = change(&mut monitor);
    let words = lines(&replaced);
    assert_eq!(words.len(), 6 + 2 + 1 + 2, "{words:?}");
    assert_eq!(words[8], format!("delete table ip t handle {old}"));
    let new = handle(&mut nft, "t");
    assert_ne!(new, old);
    assert_eq!(words[9], format!("add table ip t handle {new}"));
    assert_eq!(words[10], "add chain ip t c handle 1");
}

#[test]
fn element_events_contain_their_keys() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut monitor = watch(&sandbox);
    let set = Set::new(IP, "t", "s", DataType::IPV4_ADDR, 4);
    let elements = [[10, 0, 0, 1], [10, 0, 0, 2]].map(|key| Element::new(key.to_vec()));
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&set).unwrap();
        tx.add_elements(&set.set_id(), &elements).unwrap();
    });
    assert_eq!(
        lines(&change(&mut monitor))[2..],
        [
            "add element ip t s { 0x0a000001 }",
            "add element ip t s { 0x0a000002 }"
        ]
    );
    committed(&mut nft, |tx| {
        tx.flush_set(&set.set_id()).unwrap();
    });
    let words: BTreeSet<_> = lines(&change(&mut monitor)).into_iter().collect();
    let expected = [
        "delete element ip t s { 0x0a000001 }",
        "delete element ip t s { 0x0a000002 }",
    ];
    assert_eq!(words, expected.map(String::from).into());
}

/// Items after a loss are complete, and start where the loss ends.
#[test]
fn overflow_is_reported_as_lost() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let options = MonitorOptions {
        receive_buffer: 1,
        ..MonitorOptions::default()
    };
    let mut monitor = watch_with(&sandbox, options);
    assert!(
        monitor.receive_buffer() < 8192,
        "{}",
        monitor.receive_buffer()
    );
    let start = nft.generation().unwrap();
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        for number in 0..1000 {
            tx.add(&Chain::new(IP, "t", format!("c{number}"))).unwrap();
        }
    });
    for round in 0..3 {
        let now = nft.generation().unwrap();
        let reported = lost(&mut monitor);
        assert!(
            matches!(reported.cause, Cause::Dropped(Loss::Dropped(_))),
            "{reported}"
        );
        is_same_generation(reported.through, now);
        if round == 0 {
            is_same_generation(reported.after, start);
        }
        assert_eq!(monitor.try_receive().unwrap(), None);
        // A small transaction fits.
        committed(&mut nft, |tx| {
            tx.add(&Chain::new(IP, "t", format!("small{round}")))
                .unwrap();
        });
        let small = change(&mut monitor);
        assert_eq!(small.generation().number(), reported.through.number() + 1);
        assert_eq!(small.events().len(), 1);
        // Many small ones that are not received in between do not.
        for number in 0..100 {
            committed(&mut nft, |tx| {
                tx.add(&Chain::new(IP, "t", format!("many{round}-{number}")))
                    .unwrap();
            });
        }
    }
}

/// As many objects as in a large cluster's ruleset, in one transaction, while nothing is received.
#[test]
fn a_large_transaction_overruns_nothing() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut monitor = watch(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "t")).unwrap();
    for number in 0..35_000 {
        tx.add(&Chain::new(IP, "t", format!("KUBE-SVC-{number}")))
            .unwrap();
    }
    if !kernel::commit_if_it_fits(&mut nft, &mut tx) {
        return;
    }
    // net.core.rmem_max limits the receive buffer of a user without privileges.
    if monitor.receive_buffer() < MonitorOptions::default().receive_buffer {
        let reported = lost(&mut monitor);
        assert!(matches!(reported.cause, Cause::Dropped(_)), "{reported}");
        println!(
            "this kernel lacks space for many events for an ordinary user (`net.core.rmem_max`)"
        );
        return;
    }
    assert_eq!(change(&mut monitor).events().len(), 35_001);
    committed(&mut nft, |tx| {
        tx.delete(&Table::new(IP, "t")).unwrap();
    });
    assert_eq!(change(&mut monitor).events().len(), 35_001);
}

#[test]
fn an_oversized_transaction_still_names_its_process() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let options = MonitorOptions {
        transaction: 10_000,
        ..MonitorOptions::default()
    };
    let mut monitor = watch_with(&sandbox, options);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        for number in 0..500 {
            tx.add(&Chain::new(IP, "t", format!("c{number}"))).unwrap();
        }
    });
    let reported = lost(&mut monitor);
    assert_eq!(reported.through.number(), reported.after.number() + 1);
    let Cause::TooLarge { events, limit, .. } = reported.cause else {
        panic!("{reported}");
    };
    assert_eq!((events, limit), (501, 10_000));
    committed(&mut nft, |tx| {
        tx.add(&Chain::new(IP, "t", "one more")).unwrap();
    });
    assert_eq!(change(&mut monitor).events().len(), 1);
}

/// The kernel's message for an event has a fixed size. A larger rule causes no event, but is not ignored.
#[test]
fn a_too_large_rule_is_reported_as_lost() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut monitor = watch(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
    });
    change(&mut monitor);
    let mut rule = Rule::new(IP, "t", "c");
    for _ in 0..60 {
        rule.push(&Match::new("comment", 0, &[0; 256]));
    }
    committed(&mut nft, |tx| {
        tx.add(&rule).unwrap();
    });
    let reported = lost(&mut monitor);
    is_same_generation(reported.through, nft.generation().unwrap());
    committed(&mut nft, |tx| {
        tx.add(&Rule::new(IP, "t", "c")).unwrap();
    });
    assert_eq!(change(&mut monitor).events().len(), 1);
}

#[test]
fn commits_of_four_writers_never_mix() {
    const WRITERS: u32 = 4;
    const COMMITS: u32 = 150;
    let sandbox = sandbox();
    let mut monitor = watch(&sandbox);
    let start = monitor.reported().number();
    let mut ports = BTreeMap::new();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let mut nft = connect(&sandbox);
            scope.spawn(move || {
                let name = format!("t{writer}");
                for number in 0..COMMITS {
                    committed(&mut nft, |tx| {
                        // The number of events depends on the writer, and is large enough for several datagrams.
                        tx.add(&Table::new(IP, &*name)).unwrap();
                        for chain in 0..(writer + 1) * 60 {
                            tx.add(&Chain::new(IP, &*name, format!("c{number}-{chain}")))
                                .unwrap();
                        }
                    });
                    if number % 10 == 9 {
                        committed(&mut nft, |tx| {
                            tx.delete(&Table::new(IP, &*name)).unwrap();
                        });
                    }
                }
            });
        }
        let all = WRITERS * (COMMITS + COMMITS / 10);
        for number in 1..=all {
            let item = monitor.receive().unwrap();
            let Item::Change(change) = item else {
                panic!("{item:?}");
            };
            assert_eq!(change.generation().number(), start + number);
            let tables: BTreeSet<_> = change
                .events()
                .map(|event| event.operation().path[0].clone())
                .collect();
            let [table] = &tables.into_iter().collect::<Vec<_>>()[..] else {
                panic!("{change:?}");
            };
            assert_eq!(ports.entry(change.port()).or_insert(table.clone()), table);
            let writer = u32::from(table[1] - b'0');
            let chains = (writer as usize + 1) * 60;
            let deleted = change.events().all(|event| event.is_deletion());
            let expected = match (deleted, change.events().len() - chains) {
                (false, 0 | 1) => true,
                (true, rest) => rest == chains * 9 + 1,
                _ => false,
            };
            assert!(expected, "{table}: {}", change.events().len());
        }
    });
    assert_eq!(ports.len(), WRITERS as usize);
    assert_eq!(monitor.try_receive().unwrap(), None);
}

/// A monitor that is opened while others write starts with a complete transaction.
#[test]
fn a_new_monitor_starts_with_a_complete_transaction() {
    let sandbox = sandbox();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        let mut nft = connect(&sandbox);
        scope.spawn(|| {
            let mut nft = connect(&sandbox);
            while !stop.load(Ordering::Relaxed) {
                committed(&mut nft, |tx| {
                    tx.add(&Table::new(IP, "t")).unwrap();
                    for number in 0..200 {
                        tx.add(&Chain::new(IP, "t", format!("c{number}"))).unwrap();
                    }
                });
                committed(&mut nft, |tx| {
                    tx.delete(&Table::new(IP, "t")).unwrap();
                });
            }
        });
        for _ in 0..200 {
            let mut monitor = watch(&sandbox);
            let reported = monitor.reported();
            let item = monitor.receive().unwrap();
            let Item::Change(change) = item else {
                panic!("{item:?}");
            };
            assert_eq!(change.generation().number(), reported.number() + 1);
            assert_eq!(change.events().len(), 201);
        }
        assert!(nft.generation().unwrap().number() > 200);
    });
}

#[test]
fn waiting_ends_with_an_event_or_the_time() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut monitor = watch(&sandbox);
    let is_readable = |monitor: &Monitor| {
        let mut polled = [PollFd::new(monitor.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::ZERO).unwrap() > 0
    };
    assert!(!is_readable(&monitor));
    assert_eq!(monitor.receive_within(Duration::ZERO).unwrap(), None);
    let deadline = Instant::now() + Duration::from_millis(20);
    assert_eq!(monitor.receive_until(deadline).unwrap(), None);
    assert!(Instant::now() >= deadline);
    thread::scope(|scope| {
        scope.spawn(|| {
            committed(&mut nft, |tx| {
                tx.add(&Table::new(IP, "t")).unwrap();
            });
        });
        let first = monitor.by_ref().next().unwrap().unwrap();
        assert!(matches!(first, Item::Change(_)), "{first:?}");
    });
    committed(&mut nft, |tx| {
        tx.delete(&Table::new(IP, "t")).unwrap();
    });
    assert!(is_readable(&monitor));
    let item = monitor.receive_within(Duration::MAX).unwrap();
    assert!(matches!(item, Some(Item::Change(_))), "{item:?}");
    assert!(!is_readable(&monitor));
}

#[test]
fn a_depleted_quota_is_reported_outside_of_a_transaction() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut monitor = watch(&sandbox);
    let quota = Quota {
        bytes: Some(50),
        flags: Some(QuotaFlags::INV),
        ..Quota::default()
    };
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        tx.add(&StatefulObject::new(IP, "t", "q", quota)).unwrap();
        tx.add(&Chain::new(IP, "t", "out").with_hook("filter", OUTPUT, 0))
            .unwrap();
        let rule = Rule::new(IP, "t", "out");
        tx.add(&rule.with(&Objref::named(ObjectType::QUOTA, "q")))
            .unwrap();
    });
    change(&mut monitor);
    sandbox
        .run(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.send_to(&[0; 100], "127.0.0.1:9").unwrap();
        })
        .unwrap();
    let item = match monitor.try_receive().unwrap() {
        Some(item) => item,
        None => {
            println!(
                "{}separate notifications: it sends them with the next transaction",
                kernel::LACKS
            );
            committed(&mut nft, |tx| {
                tx.add(&Table::new(IP, "another")).unwrap();
            });
            next(&mut monitor)
        }
    };
    let Item::OutOfBand(event) = item else {
        panic!(
            "expected an event outside of a transaction, got {item:?} {:?}",
            monitor.try_receive()
        );
    };
    let _ = monitor.try_receive().unwrap();
    assert_eq!(event.event().to_string(), "add quota ip t q handle 1");
    is_same_generation(monitor.reported(), nft.generation().unwrap());
}

#[cfg(feature = "tokio")]
#[test]
fn changes_are_a_stream() {
    use tokio_stream::StreamExt;

    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let monitor = watch(&sandbox);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let mut stream = monitor.into_stream().unwrap();
        // A cancelled wait loses nothing.
        let none = tokio::time::timeout(Duration::from_millis(20), stream.next()).await;
        assert!(none.is_err());
        let start = stream.reported().number();
        let writer = thread::spawn(move || {
            for number in 0..100 {
                committed(&mut nft, |tx| {
                    tx.add(&Table::new(IP, format!("t{number}"))).unwrap();
                });
            }
        });
        for number in 1..=50 {
            let Item::Change(change) = stream.next().await.unwrap() else {
                panic!("expected a change");
            };
            assert_eq!(change.generation().number(), start + number);
        }
        let rest: Vec<_> = StreamExt::take(&mut stream, 50).collect().await;
        let last = rest.last().unwrap().as_ref().unwrap();
        assert!(
            matches!(last, Item::Change(change) if change.generation().number() == start + 100)
        );
        writer.join().unwrap();
        assert_eq!(stream.into_inner().try_receive().unwrap(), None);
    });
}

/// A process with `CAP_NET_ADMIN` may send to every socket of the namespace, and to groups. A monitor and a
/// connection accept only what the kernel sends.
#[test]
fn messages_of_other_sockets_are_ignored() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut monitor = watch(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
    });
    let made = change(&mut monitor);
    let port = sandbox
        .run(|| getsockname::<NetlinkAddr>(monitor.as_fd().as_raw_fd()))
        .unwrap()
        .unwrap()
        .pid();
    let forger = sandbox
        .run(|| {
            socket(
                AddressFamily::Netlink,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                SockProtocol::NetlinkNetFilter,
            )
        })
        .unwrap()
        .unwrap();
    // The same again, but for the next generation: everything else is unchanged, so it would be a change.
    let mut forged = made.as_bytes().to_vec();
    let generation = made.generation().number().to_be_bytes();
    let ends: Vec<usize> = (0..forged.len() - 4)
        .filter(|&at| forged[at..at + 4] == generation)
        .collect();
    let &end = ends.last().expect("the datagram contains no generation");
    forged[end + 3] += 1;
    let group = 1 << (NFNLGRP_NFTABLES - 1);
    for (to, groups) in [(port, 0), (0, group), (nft.port(), 0)] {
        let address = NetlinkAddr::new(to, groups);
        let sent = sendto(forger.as_raw_fd(), &forged, &address, MsgFlags::empty());
        // Messages to port 0 also reach the kernel, which ignores what is no request.
        assert_eq!(sent, Ok(forged.len()), "to {to}, {groups}");
    }
    assert_eq!(monitor.try_receive().unwrap(), None);
    assert_eq!(monitor.reported(), made.generation());
    is_same_generation(nft.generation().unwrap(), made.generation());
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "u")).unwrap();
    });
    let next = change(&mut monitor);
    let [line] = &lines(&next)[..] else {
        panic!("{next:?}");
    };
    assert!(line.starts_with("add table ip u handle "), "{line}");
}
