//! A mirror shows the same as a listing, whatever is committed.
//!
//! All of it is in one file, because every test makes a change and compares the mirror with a listing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::compare_mirror::is_current;
use crate::common::kernel::is_same_generation;
use crate::common::random::Random;
use crate::common::rulesets::Ruleset;
use crate::common::tools::Tools;
use crate::common::{OnDrop, committed, connect, kernel, report, sandbox};
use caps::{CapSet, Capability};
use chainwright::Retry;
use chainwright::nft::expr::{Counter, Immediate, Lookup, Payload, PayloadBase, Register};
use chainwright::nft::live::{Mirror, MirrorOptions, MonitorOptions, Update};
use chainwright::nft::{
    Chain, Connection, DataType, Element, ElementFilter, Family, Hook, PlanOptions, Policy,
    Priority, Rule, Scope, Set, SetFlags, SetId, Snapshot, SnapshotOptions, StatefulObject, Table,
    TableFlags, Transaction,
};
use chainwright_testing::Sandbox;

#[track_caller]
fn mirror_of(sandbox: &Sandbox, scope: &Scope<'_>) -> Mirror {
    mirror_with(sandbox, scope, MonitorOptions::default())
}

#[track_caller]
fn mirror_with(sandbox: &Sandbox, scope: &Scope<'_>, options: impl Into<MirrorOptions>) -> Mirror {
    match Mirror::open_with(connect(sandbox), scope, options) {
        Ok(mirror) => mirror,
        Err(error) => panic!("cannot open a mirror: {}", report(&error)),
    }
}

#[track_caller]
fn updated(mirror: &mut Mirror) -> Vec<Update> {
    match mirror.update() {
        Ok(updates) => updates,
        Err(error) => panic!("{}", report(&error)),
    }
}

#[test]
fn every_ruleset_is_shown_while_added_and_deleted() {
    for ruleset in Ruleset::all() {
        let Some(sandbox) = ruleset.prepare() else {
            continue;
        };
        let mut nft = connect(&sandbox);
        let mut mirror = mirror_of(&sandbox, &Scope::all());
        ruleset.load_into(&sandbox).unwrap();
        assert!(!updated(&mut mirror).is_empty(), "{}", ruleset.name);
        is_current(&mirror, &mut nft, &ruleset.name);
        // Twice: existing objects are changed, or stay.
        if ruleset.load_into(&sandbox).is_ok() {
            updated(&mut mirror);
            is_current(&mirror, &mut nft, &ruleset.name);
        }
        Tools::new(&sandbox).run("nft flush ruleset");
        updated(&mut mirror);
        is_current(&mirror, &mut nft, &ruleset.name);
        assert_eq!(mirror.snapshot().tables().len(), 0);
    }
}

/// Changes received before a failed read are returned by the next update.
#[test]
fn received_events_survive_an_error() {
    let sandbox = sandbox();
    let reported = sandbox.run(|| {
        let mut nft = Connection::open().unwrap();
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        tx.add(&Chain::new(Family::IP, "t", "old")).unwrap();
        nft.commit(&tx).unwrap();
        let handle = nft.chain(Family::IP, "t", "old").unwrap().unwrap().handle();
        let mut mirror = Mirror::open(Connection::open().unwrap(), &Scope::all()).unwrap();

        // An added chain is applied; for a new name the table is read again, which fails without the
        // capability.
        let chain = Chain::new(Family::IP, "t", "more");
        let mut renamed = Chain::new(Family::IP, "t", "new");
        renamed.handle = Some(handle);
        let mut made = Vec::new();
        for chain in [chain, renamed] {
            let mut tx = Transaction::new();
            tx.add(&chain).unwrap();
            nft.commit(&tx).unwrap();
            made.push(nft.generation().unwrap());
        }
        caps::drop(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        let failed = mirror.update().is_err();
        caps::raise(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        let updates = mirror.update().unwrap();
        let reported = updates.iter().filter_map(|update| match update {
            Update::Change(change) => Some(change.generation()),
            _ => None,
        });
        let reported: Vec<_> = reported.collect();
        is_current(&mirror, &mut nft, "after an error");
        (failed, reported, made)
    });
    let (failed, reported, made) = reported.unwrap();
    assert!(failed);
    assert_eq!(reported.len(), made.len());
    for (reported, made) in reported.into_iter().zip(made) {
        is_same_generation(reported, made);
    }
}

/// Names and handles of existing objects, to be changed.
struct There {
    tables: Vec<(Family, String)>,
    chains: Vec<(usize, String, u64)>,
    rules: Vec<(usize, String, u64)>,
    sets: Vec<(usize, String)>,
}

impl There {
    fn of(snapshot: &Snapshot) -> Self {
        let mut there = Self {
            tables: Vec::new(),
            chains: Vec::new(),
            rules: Vec::new(),
            sets: Vec::new(),
        };
        for (number, table) in snapshot.tables().enumerate() {
            let view = table.table();
            there.tables.push((view.family(), view.name().to_string()));
            for chain in table.chains() {
                let view = chain.chain();
                there
                    .chains
                    .push((number, view.name().to_string(), view.handle()));
                for rule in chain.rules() {
                    there
                        .rules
                        .push((number, view.name().to_string(), rule.handle()));
                }
            }
            for set in table.sets() {
                let flags = set.set().flags().unwrap_or_default();
                if !flags.contains(SetFlags::ANONYMOUS) {
                    there.sets.push((number, set.set().name().to_string()));
                }
            }
        }
        there
    }
}

const FAMILIES: [Family; 3] = [Family::IP, Family::IP6, Family::INET];

fn rule_with(random: &mut Random, there: &There, table: usize, chain: &str) -> Rule<'static> {
    let (family, name) = there.tables[table].clone();
    let mut rule = Rule::new(family, name, chain.to_owned());
    if random.once_in(2) {
        rule = rule.with(&Counter::new(0, 0));
    }
    let targets: Vec<_> = there
        .chains
        .iter()
        .filter(|c| c.0 == table && c.1 != chain)
        .collect();
    rule = match random.below(3) {
        0 if !targets.is_empty() => rule.with(&Immediate::jump(random.of(&targets).1.clone())),
        1 => rule.with(&Immediate::accept()),
        _ => rule,
    };
    let bytes = random.bytes(1 + there.rules.len() % 20);
    rule.userdata = Some(bytes.into());
    rule
}

/// One operation of any kind; the kernel may refuse it.
fn add_operation(tx: &mut Transaction, random: &mut Random, there: &There) {
    let name = |random: &mut Random, kind: &str| format!("{kind}{}", random.below(6));
    let count = there.tables.len();
    if count == 0 || random.once_in(24) {
        let table = Table {
            flags: random.once_in(3).then_some(TableFlags::DORMANT),
            ..Table::new(random.pick(&FAMILIES), name(random, "t"))
        };
        tx.add(&table).unwrap();
        return;
    }
    let table = random.below(count);
    let (family, table_name) = there.tables[table].clone();
    let chains: Vec<_> = there
        .chains
        .iter()
        .filter(|chain| chain.0 == table)
        .collect();
    let rules: Vec<_> = there.rules.iter().filter(|rule| rule.0 == table).collect();
    let sets: Vec<_> = there.sets.iter().filter(|set| set.0 == table).collect();
    match random.below(22) {
        0 => {
            let chain = Chain::new(family, table_name, name(random, "c"));
            tx.add(&chain).unwrap();
        }
        1 => {
            let chain = Chain {
                policy: Some(random.pick(&[Policy::ACCEPT, Policy::DROP])),
                ..Chain::new(family, table_name, name(random, "b")).with_hook(
                    "filter",
                    Hook::INPUT,
                    Priority::FILTER,
                )
            };
            tx.add(&chain).unwrap();
        }
        2..=7 if !chains.is_empty() => {
            let chain = random.of(&chains).1.clone();
            let mut rule = rule_with(random, there, table, &chain);
            let before: Vec<_> = rules.iter().filter(|rule| rule.1 == chain).collect();
            if !before.is_empty() && random.once_in(2) {
                rule.position = Some(random.of(&before).2);
            }
            match random.once_in(2) {
                true => tx.add(&rule).unwrap(),
                false => tx.insert(&rule).unwrap(),
            };
        }
        8 | 9 if !rules.is_empty() => {
            let (_, chain, handle) = random.pick(&rules).clone();
            let mut rule = rule_with(random, there, table, &chain);
            rule.handle = Some(handle);
            tx.replace(&rule).unwrap();
        }
        10..=12 if !rules.is_empty() => {
            let (_, chain, handle) = random.pick(&rules).clone();
            let mut rule = Rule::new(family, table_name, chain);
            rule.handle = Some(handle);
            tx.delete(&rule).unwrap();
        }
        13 if !chains.is_empty() => {
            let chain = random.of(&chains).1.clone();
            if random.once_in(2) {
                tx.flush_chain(family, table_name.clone(), chain.clone())
                    .unwrap();
            }
            tx.delete(&Chain::new(family, table_name, chain)).unwrap();
        }
        14 if !chains.is_empty() && random.once_in(4) => {
            let (_, _, handle) = random.pick(&chains).clone();
            let renamed = Chain {
                handle: Some(handle),
                ..Chain::new(family, table_name, name(random, "renamed"))
            };
            tx.add(&renamed).unwrap();
        }
        15 => {
            let flags = random.pick(&[SetFlags::empty(), SetFlags::INTERVAL, SetFlags::TIMEOUT]);
            let set = Set::new(
                family,
                table_name,
                name(random, "s"),
                DataType::IPV4_ADDR,
                4,
            );
            tx.add(&set.with_flags(flags)).unwrap();
        }
        16..=18 if !sets.is_empty() => {
            let set = SetId::new(family, table_name, random.of(&sets).1.clone());
            let keys: BTreeSet<_> = (0..1 + random.below(40))
                .map(|_| random.below(200) as u32)
                .collect();
            let keys: Vec<_> = keys.into_iter().map(u32::to_be_bytes).collect();
            let elements = keys.iter().map(Element::new);
            match random.below(5) {
                0 => tx.flush_set(&set).unwrap(),
                1 => tx.delete_elements(&set, elements.take(2)).unwrap(),
                _ => tx.add_elements(&set, elements).unwrap(),
            };
        }
        19 if !sets.is_empty() => {
            tx.delete(&Set::named(family, table_name, random.of(&sets).1.clone()))
                .unwrap();
        }
        20 if !chains.is_empty() => {
            // An anonymous set of the rule.
            let chain = random.of(&chains).1.clone();
            let set = Set::anonymous(
                family,
                table_name.clone(),
                "__set%d",
                0,
                DataType::IPV4_ADDR,
                4,
            );
            let set = tx.add_anonymous(&set).unwrap();
            let keys: Vec<_> = (0..1 + random.below(3) as u32)
                .map(u32::to_be_bytes)
                .collect();
            tx.add_elements(&set, keys.iter().map(Element::new))
                .unwrap();
            let lookup = Lookup {
                set: Some(set.set.clone()),
                set_id: set.id,
                sreg: Some(Register::R1),
                ..Lookup::default()
            };
            let payload = Payload {
                dreg: Some(Register::R1),
                base: Some(PayloadBase::NETWORK),
                offset: Some(12),
                len: Some(4),
                ..Payload::default()
            };
            let rule = Rule::new(family, table_name, chain)
                .with(&payload)
                .with(&lookup);
            tx.add(&rule).unwrap();
        }
        21 if random.once_in(8) => _ = tx.flush_table(family, table_name).unwrap(),
        21 if random.once_in(8) => _ = tx.delete(&Table::new(family, table_name)).unwrap(),
        _ => {
            let object =
                StatefulObject::new(family, table_name, name(random, "o"), Counter::new(0, 0));
            match random.once_in(3) {
                true => tx.destroy(&object).unwrap(),
                false => tx.add(&object).unwrap(),
            };
        }
    }
}

/// Use `MIRROR_COMMITS=100000` for the long run.
fn commits() -> usize {
    crate::common::from_env("MIRROR_COMMITS", 250)
}

/// Changes of every kind, several in each transaction; the mirror shows those that the kernel accepts.
#[test]
fn every_commit_is_mirrored() {
    mirrors_commits(commits(), ElementFilter::all());
}

/// The same with elements left out.
#[test]
fn every_commit_is_mirrored_except_omitted_elements() {
    let choices = (0..ElementFilter::all().bits()).map(ElementFilter::from_bits_retain);
    choices.for_each(|elements| mirrors_commits(commits() / 7, elements));
}

fn mirrors_commits(commits: usize, elements: ElementFilter) {
    let sandbox = sandbox();
    let (mut nft, mut random) = (connect(&sandbox), Random::new());
    let options = SnapshotOptions { elements };
    let mut mirror = mirror_with(&sandbox, &Scope::all(), options);
    let (mut done, mut refused, mut reported) = (0, 0, 0);
    let mut there = There::of(mirror.snapshot());
    while done < commits {
        let mut tx = Transaction::new();
        for _ in 0..1 + random.below(6) {
            add_operation(&mut tx, &mut random, &there);
        }
        match nft.commit(&tx) {
            Ok(()) => done += 1,
            Err(_) => {
                refused += 1;
                continue;
            }
        }
        // Also several transactions at once.
        if random.once_in(3) {
            reported += updated(&mut mirror).len();
            is_current(&mirror, &mut nft, &format!("after {done}: {tx:?}"));
            there = There::of(mirror.snapshot());
        }
    }
    assert!(done > refused / 20, "{done} {refused}");
    println!("{done} commits, {refused} refused, {reported} reported");
}

/// Two writers that hardly ever pause, each in its own table and in a shared one.
#[test]
fn a_mirror_has_one_generation_despite_concurrent_commits() {
    const WRITERS: [&str; 2] = ["w0", "w1"];
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let stop = AtomicBool::new(false);
    let mut mirror = thread::scope(|scope| {
        for writer in WRITERS {
            let (mut nft, stop) = (connect(&sandbox), &stop);
            scope.spawn(move || {
                let mut round = 0_u32;
                while !stop.load(Ordering::Relaxed) {
                    round += 1;
                    // The same number in both tables.
                    committed(&mut nft, |tx| {
                        for (family, table) in [(Family::IP, writer), (Family::INET, "all")] {
                            tx.add(&Table::new(family, table)).unwrap();
                            tx.add(&Chain::new(family, table, writer)).unwrap();
                            tx.flush_chain(family, table, writer).unwrap();
                            let mut rule = Rule::new(family, table, writer);
                            rule.userdata = Some(round.to_be_bytes().to_vec().into());
                            tx.add(&rule).unwrap();
                            // Chains are added and removed, too.
                            let more = Chain::new(family, table, format!("{writer}-{}", round % 3));
                            tx.add(&more).unwrap();
                            tx.delete(&more).unwrap();
                            tx.add(&more).unwrap();
                        }
                    });
                    // A mirror is read during a pause.
                    if round % 16 == 15 {
                        thread::sleep(Duration::from_millis(1));
                    }
                    if round % 50 == 49 {
                        committed(&mut nft, |tx| {
                            tx.delete(&Table::new(Family::IP, writer)).unwrap();
                        });
                    }
                }
            });
        }
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        while nft
            .chain(Family::INET, "all", WRITERS[0])
            .unwrap()
            .is_none()
        {
            thread::yield_now();
        }
        // The writers may be faster than the mirror: lost events make it read again.
        let options = MonitorOptions {
            receive_buffer: 16 << 20,
            ..MonitorOptions::default()
        };
        // Reading a ruleset that constantly changes takes a pause, and time on a busy machine.
        let patient = connect(&sandbox).with_retry(Retry::within(Duration::from_secs(120)));
        let mut mirror = Mirror::open_with(patient, &Scope::all(), options).unwrap();
        let (mut generations, mut changes, mut lost) = (BTreeSet::new(), 0, 0);
        while generations.len() < 30 {
            for update in updated(&mut mirror) {
                match update {
                    Update::Change(_) => changes += 1,
                    _ => lost += 1,
                }
            }
            let snapshot = mirror.snapshot();
            generations.insert(snapshot.generation().unwrap().number());
            // A writer's transaction is visible completely or not at all.
            for writer in WRITERS {
                let numbers = |family, table| -> Vec<_> {
                    let rules = snapshot.chain(family, table, writer);
                    let rules = rules.into_iter().flat_map(|chain| chain.rules());
                    rules
                        .map(|rule| rule.userdata().unwrap().to_vec())
                        .collect()
                };
                let (own, all) = (numbers(Family::IP, writer), numbers(Family::INET, "all"));
                assert!(
                    all.len() <= 1 && (own == all || own.is_empty()),
                    "{own:?} {all:?}"
                );
            }
        }
        println!(
            "{changes} changes and {lost} losses in {} updates",
            generations.len()
        );
        mirror
    });
    while !updated(&mut mirror).is_empty() {}
    is_current(&mirror, &mut nft, "at the end");
}

/// With a receive buffer that is deliberately too small.
#[test]
fn lost_changes_are_reread_and_reported() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        tx.add(&Chain::new(Family::IP, "t", "c")).unwrap();
    });
    let options = MonitorOptions {
        receive_buffer: 1,
        ..MonitorOptions::default()
    };
    let mut mirror = mirror_with(&sandbox, &Scope::all(), options);
    let (mut lost, mut changes) = (0, 0);
    for round in 0..40 {
        for number in 0..=round {
            committed(&mut nft, |tx| {
                let name = format!("c{round}-{number}");
                tx.add(&Chain::new(Family::IP, "t", name)).unwrap();
            });
        }
        for update in updated(&mut mirror) {
            match update {
                Update::Change(_) => changes += 1,
                Update::Reread(_) => lost += 1,
                other => panic!("{other:?}"),
            }
        }
        is_current(&mirror, &mut nft, "after a possible loss");
    }
    assert!(lost > 0 && changes > 0, "{lost} {changes}");
}

#[test]
fn a_mirror_of_one_table_contains_only_that_table() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let scope = Scope::table(Family::IP, "mine");
    let mut mirror = mirror_of(&sandbox, &scope);
    assert_eq!(mirror.snapshot().tables().len(), 0);
    for (family, table) in [
        (Family::IP, "other"),
        (Family::IP6, "mine"),
        (Family::IP, "mine"),
    ] {
        committed(&mut nft, |tx| {
            tx.add(&Table::new(family, table)).unwrap();
            tx.add(&Chain::new(family, table, "c")).unwrap();
            tx.add(&Rule::new(family, table, "c").with(&Immediate::accept()))
                .unwrap();
        });
        assert_eq!(updated(&mut mirror).len(), 1);
        is_current(&mirror, &mut nft, table);
    }
    assert_eq!(mirror.snapshot().tables().len(), 1);
    committed(&mut nft, |tx| _ = tx.flush_ruleset(Family::UNSPEC).unwrap());
    updated(&mut mirror);
    assert_eq!(mirror.snapshot().tables().len(), 0);
}

/// Changes that events do not describe completely: new names, devices.
#[test]
fn incomplete_events_cause_a_reload() {
    let sandbox = sandbox();
    let (tools, mut nft) = (Tools::new(&sandbox), connect(&sandbox));
    tools.run("ip link add d0 type veth peer name d1");
    let ruleset = "table inet t {
            chain a { counter accept; }
            chain b { ip saddr { 192.0.2.1, 192.0.2.2 } jump a; jump a; }
        }
        table netdev n {
            chain i { type filter hook ingress devices = { d0 } priority 0; }
        }";
    tools.run_with("nft -f -", ruleset);
    let mut mirror = mirror_of(&sandbox, &Scope::all());
    is_current(&mirror, &mut nft, "before");
    for command in [
        "rename chain inet t a other",
        "add rule inet t b jump other",
        "add chain netdev n i { type filter hook ingress devices = { d1 } priority 0; }",
        "add rule netdev n i accept",
        "delete chain netdev n i",
        "rename chain inet t other a; rename chain inet t b c",
        "delete table inet t",
    ] {
        if let Err(refusal) = tools.takes("nft -f -", command) {
            let is_devices = command.contains("devices") && refusal.contains("File exists");
            assert!(is_devices, "{command}: {refusal}");
            let what = "more devices for a netdev chain, available since Linux 6.4";
            println!("{}{what}", kernel::LACKS);
        }
        updated(&mut mirror);
        is_current(&mirror, &mut nft, command);
    }
    let flowtable = "table inet t { flowtable f { hook ingress priority 0; devices = { d0 }; }; }";
    if let Err(refusal) = tools.takes("nft -f -", flowtable) {
        assert!(refusal.contains("No such file or directory"), "{refusal}");
        println!("{}flowtables", kernel::LACKS);
        return;
    }
    for command in [
        "add flowtable inet t f { devices = { d1 }; }",
        "delete flowtable inet t f { devices = { d0 }; }",
        "delete flowtable inet t f",
    ] {
        updated(&mut mirror);
        is_current(&mirror, &mut nft, "flowtables");
        tools.run_with("nft -f -", command);
    }
    updated(&mut mirror);
    is_current(&mirror, &mut nft, "flowtables");
}

/// Found by the fake kernel: the kernel lists an element's timeout only if it differs from the set's.
#[test]
fn the_timeout_of_a_set_changes() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let set = |seconds| {
        Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4)
            .with_timeout(Some(Duration::from_secs(seconds)))
    };
    committed(&mut nft, |tx| {
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        tx.add(&set(3600)).unwrap();
        let element = Element::new(vec![10, 0, 0, 1]);
        tx.add_elements(&set(3600).set_id(), [element]).unwrap();
    });
    let mut mirror = mirror_of(&sandbox, &Scope::all());
    committed(&mut nft, |tx| _ = tx.add(&set(7200)).unwrap());
    updated(&mut mirror);
    is_current(&mirror, &mut nft, "another timeout");
}

/// A chain is read for an earlier event when it already has another name.
#[test]
fn a_renamed_chain_is_not_lost() {
    let sandbox = sandbox();
    let (tools, mut nft) = (Tools::new(&sandbox), connect(&sandbox));
    let ruleset = "table ip t { chain a { accept; drop; }; chain b { accept; drop; }; }";
    tools.run_with("nft -f -", ruleset);
    for (name, other) in [("b", "x"), ("a", "y"), ("x", "z")] {
        let mut mirror = mirror_of(&sandbox, &Scope::all());
        let chain = mirror.snapshot().chain(Family::IP, "t", name).unwrap();
        let last = chain.rules().last().unwrap().handle();
        committed(&mut nft, |tx| {
            let mut rule = Rule::new(Family::IP, "t", name);
            rule.handle = Some(last);
            tx.delete(&rule).unwrap();
            let rule = Rule::new(Family::IP, "t", name).with(&Counter::new(0, 0));
            tx.insert(&rule).unwrap();
        });
        tools.run_with("nft -f -", &format!("rename chain ip t {name} {other}"));
        updated(&mut mirror);
        is_current(&mirror, &mut nft, name);
    }
}

#[test]
fn a_mirror_waits_and_can_be_reloaded() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let mut mirror = mirror_of(&sandbox, &Scope::all());
    assert_eq!(mirror.wait(Duration::from_millis(1)).unwrap(), []);
    let updates = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            committed(&mut nft, |tx| {
                _ = tx.add(&Table::new(Family::IP, "t")).unwrap()
            });
        });
        mirror.wait(Duration::from_secs(60)).unwrap()
    });
    let [Update::Change(change)] = &updates[..] else {
        panic!("{updates:?}");
    };
    assert_eq!(change.events().next().unwrap().table().unwrap(), "t");
    assert_eq!(mirror.snapshot().generation(), Some(change.generation()));
    // The mirror's own connection commits, too, and knows the generations.
    let mut tx = Transaction::new();
    tx.add(&Chain::new(Family::IP, "t", "c")).unwrap();
    tx.expect_generation(change.generation());
    mirror.connection().commit(&tx).unwrap();
    mirror.reread().unwrap();
    is_current(&mirror, &mut nft, "after a reload");
    assert_eq!(updated(&mut mirror), []);
}

/// Sets that change often take no more memory.
#[test]
fn removed_elements_take_no_memory() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        tx.add(&Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4))
            .unwrap();
    });
    let set = SetId::new(Family::IP, "t", "s");
    let keys: Vec<_> = (0..20_000_u32).map(u32::to_be_bytes).collect();
    committed(&mut nft, |tx| {
        let elements = keys.iter().map(Element::new);
        tx.add_elements(&set, elements).unwrap();
    });
    let mut mirror = mirror_of(&sandbox, &Scope::all());
    let listed = nft.snapshot(Scope::all()).unwrap().byte_length();
    let mut random = Random::new();
    for round in 0..400 {
        let first = random.below(19_800);
        let some = &keys[first..first + 200];
        committed(&mut nft, |tx| {
            _ = tx
                .delete_elements(&set, some.iter().map(Element::new))
                .unwrap()
        });
        committed(&mut nft, |tx| {
            _ = tx
                .add_elements(&set, some.iter().map(Element::new))
                .unwrap()
        });
        updated(&mut mirror);
        if round % 50 == 49 {
            is_current(&mirror, &mut nft, "elements");
        }
    }
    is_current(&mirror, &mut nft, "elements");
    let (bytes, memory) = (mirror.snapshot().byte_length(), mirror.snapshot().memory());
    println!("{listed} bytes listed, {bytes} kept, {memory} of memory");
    // Memory is allocated in pieces of 4 MiB.
    assert!(
        bytes < 2 * listed && memory < 2 * listed + (8 << 20),
        "{listed} {bytes} {memory}"
    );
}

/// A plan does not treat objects outside the mirror's scope as missing.
#[test]
fn a_plan_beyond_the_mirrors_scope_reads_from_the_kernel() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        for table in ["a", "b"] {
            tx.add(&Table::new(Family::INET, table)).unwrap();
            tx.add(&Chain::new(Family::INET, table, "c")).unwrap();
            tx.add(&Rule::new(Family::INET, table, "c")).unwrap();
        }
    });
    let desired = Arc::new(nft.snapshot(Scope::all()).unwrap());
    let mut mirror = mirror_of(&sandbox, &Scope::table(Family::INET, "a"));
    for _ in 0..2 {
        let plan = mirror.plan(&desired, PlanOptions::default()).unwrap();
        assert_eq!(plan.to_string(), "");
    }
    committed(&mut nft, |tx| {
        tx.flush_chain(Family::INET, "b", "c").unwrap();
    });
    let plan = mirror.plan(&desired, PlanOptions::default()).unwrap();
    assert_eq!(plan.to_string(), "add rule inet b c #0\n");
}
