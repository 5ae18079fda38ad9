//! Everything at once: writers, a snapshotter, a mirror, a reconciler. Every snapshot shows one generation, no
//! commit is lost, and undeclared objects stay unchanged.
//!
//! `STRESS_SECONDS=60` and `RECONCILES=1000` are the full lengths.

use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::compare_mirror::{is_current, lines};
use crate::common::random::Random;
use crate::common::tools::Tools;
use crate::common::{OnDrop, committed, connect, report, sandbox};
use chainwright::Retry;
use chainwright::nft::expr::{Counter, Immediate};
use chainwright::nft::live::{Mirror, MonitorOptions, Update};
use chainwright::nft::{
    Chain, Connection, DataType, Element, ElementFilter, Family, Plan, PlanOptions, Rule, Scope,
    Set, SetId, Snapshot, SnapshotOptions, Table, Transaction,
};
use chainwright_testing::Sandbox;

const IP: Family = Family::IP;
const INET: Family = Family::INET;
/// Each writer has its own table of this name, and objects of these names in the shared one.
const WRITERS: [&str; 4] = ["w0", "w1", "w2", "w3"];
const SHARED: &str = "shared";
/// The chain in which all count their commits together: a writer that adds one has read the number before.
const COUNT: &str = "count";
/// The reconciler's table.
const KEPT: &str = "kept";
/// Long enough for a busy machine.
const PATIENT: Retry = Retry::within(Duration::from_secs(300));

fn number(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |given| given.parse().unwrap())
}

// ---------------------------------------------------------------------------------------------
// The writers.

/// Writes the same stamp to a chain's rule and a set's element.
fn stamp(tx: &mut Transaction, family: Family, table: &'static str, names: [&str; 2], stamp: u32) {
    let [chain, set] = names;
    tx.add(&Chain::new(family, table, chain)).unwrap();
    tx.flush_chain(family, table, chain).unwrap();
    let mut rule = Rule::new(family, table, chain).with(&Counter::new(0, 0));
    rule.userdata = Some(stamp.to_be_bytes().to_vec().into());
    tx.add(&rule).unwrap();
    tx.add(&Set::new(family, table, set, DataType::INTEGER, 4))
        .unwrap();
    let set = SetId::new(family, table, set);
    tx.flush_set(&set).unwrap();
    tx.add_elements(&set, [Element::new(&stamp.to_be_bytes())])
        .unwrap();
}

/// The stamps in a chain's rules and in a set's elements.
fn stamps(snapshot: &Snapshot, family: Family, table: &str, names: [&str; 2]) -> Vec<u32> {
    let [chain, set] = names;
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let Some(table) = snapshot.table(family, table) else {
        return Vec::new();
    };
    let rules = table.chain(chain).into_iter().flat_map(|c| c.rules());
    let rules = rules.map(|rule| number(rule.userdata().unwrap()));
    let elements = table.set(set).into_iter().flat_map(|set| set.elements());
    let elements = elements.map(|element| number(element.key_bytes().unwrap()));
    rules.chain(elements).collect()
}

/// Checks the invariant of a writer's commits: the same stamp twice in the shared table, and four times in the
/// writer's own table if that exists. Returns the stamp.
#[track_caller]
fn stamp_of(snapshot: &Snapshot, writer: &str) -> Option<u32> {
    let shared = stamps(snapshot, INET, SHARED, [writer, writer]);
    let own: Vec<_> = [["a", "s"], ["b", "t"]]
        .into_iter()
        .flat_map(|names| stamps(snapshot, IP, writer, names))
        .collect();
    let Some(&first) = shared.first() else {
        assert!(own.is_empty(), "{writer}: {own:?}");
        return None;
    };
    // In the rule, and in the element if those were read.
    let each = if snapshot.lacks_elements() { 1 } else { 2 };
    assert_eq!(shared, vec![first; each], "{writer}");
    match snapshot.table(IP, writer) {
        Some(_) => assert_eq!(own, vec![first; 2 * each], "{writer}"),
        None => assert!(own.is_empty(), "{writer}: {own:?}"),
    }
    Some(first)
}

/// One round of a writer.
fn write(nft: &mut Connection, writer: &'static str, round: u32) {
    committed(nft, |tx| {
        let own = Table::new(IP, writer);
        match round % 32 {
            // Deletes its table, which returns in the next round.
            31 => _ = tx.delete(&own).unwrap(),
            kind => {
                tx.add(&own).unwrap();
                if kind == 15 {
                    // Or in the same transaction.
                    tx.delete(&own).unwrap();
                    tx.add(&own).unwrap();
                }
                stamp(tx, IP, writer, ["a", "s"], round);
                stamp(tx, IP, writer, ["b", "t"], round);
                // Chains are added and removed, too.
                let more = Chain::new(IP, writer, format!("{}", round % 5));
                tx.add(&more).unwrap();
                tx.add(&Rule::new(IP, writer, "a").with(&Immediate::jump("b")))
                    .unwrap();
                tx.flush_chain(IP, writer, "a").unwrap();
                stamp(tx, IP, writer, ["a", "s"], round);
                if round.is_multiple_of(3) {
                    tx.delete(&more).unwrap();
                }
            }
        }
        stamp(tx, INET, SHARED, [writer, writer], round);
        // Damages the reconciler's table.
        if round.is_multiple_of(29) {
            let foreign = Chain::new(IP, KEPT, format!("{writer}-{}", round % 4));
            tx.add(&foreign).unwrap();
            tx.flush_chain(IP, KEPT, "c0").unwrap();
        }
    });
}

/// Increments the count after reading it, under a guard, which makes it start again if another writer was
/// faster.
fn count(nft: &mut Connection) {
    loop {
        let mut guard = nft.guard(&[Scope::table(IP, COUNT)]).unwrap();
        let Some(counted) = counted(nft) else {
            continue;
        };
        let mut tx = Transaction::new();
        tx.flush_chain(IP, COUNT, "c").unwrap();
        let mut rule = Rule::new(IP, COUNT, "c");
        rule.userdata = Some((counted + 1).to_be_bytes().to_vec().into());
        tx.add(&rule).unwrap();
        match guard.commit(nft, &mut tx) {
            Ok(()) => return,
            Err(error) => assert!(error.generation_moved(), "{}", report(&error)),
        }
    }
}

/// The count; `None` if it changed while it was read.
fn counted(nft: &mut Connection) -> Option<u32> {
    let mut counted = None;
    let rules = nft.rules(Scope::table(IP, COUNT)).unwrap();
    let listed = rules.for_each(|rule| {
        let bytes = rule.userdata().unwrap();
        counted = Some(u32::from_be_bytes(bytes[..].try_into().unwrap()));
    });
    counted.filter(|_| listed.is_ok())
}

// ---------------------------------------------------------------------------------------------
// The reconciler.

/// One of the desired states of the reconciler's table.
fn desired_state(state: u32) -> Snapshot {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, KEPT)).unwrap();
        for number in 0..20 {
            tx.add(&Chain::new(IP, KEPT, format!("c{number}"))).unwrap();
        }
        for number in 0..20 {
            let chain = format!("c{number}");
            for rule in 0..3 {
                let mut rule = match rule {
                    0 if number > 0 => Rule::new(IP, KEPT, &chain)
                        .with(&Immediate::jump(format!("c{}", number - 1))),
                    _ => Rule::new(IP, KEPT, &chain).with(&Immediate::accept()),
                };
                rule.userdata = Some((state % (number + 2)).to_be_bytes().to_vec().into());
                tx.add(&rule).unwrap();
            }
        }
        let set = Set::new(IP, KEPT, "s", DataType::IPV4_ADDR, 4);
        tx.add(&set).unwrap();
        let keys: Vec<_> = (0..50)
            .map(|key: u32| (key * (state + 1)).to_be_bytes())
            .collect();
        tx.add_elements(&SetId::new(IP, KEPT, "s"), keys.iter().map(Element::new))
            .unwrap();
    });
    nft.snapshot(Scope::table(IP, KEPT)).unwrap()
}

#[derive(Debug, Default)]
struct Figures {
    rounds: u32,
    snapshots: u32,
    updates: u32,
    changes: u32,
    losses: u32,
    reconciliations: u32,
    operations: usize,
}

/// Four writers, a snapshotter, a mirror and a reconciler, all at once.
#[test]
fn concurrent_users_do_not_interfere() {
    let time = Duration::from_secs(number("STRESS_SECONDS", 3).into());
    let sandbox = sandbox();
    let mut nft = connect(&sandbox).with_retry(PATIENT);
    let states: Vec<_> = (0..6).map(desired_state).collect();
    committed(&mut nft, |tx| {
        tx.add(&Table::new(INET, SHARED)).unwrap();
        tx.add(&Table::new(IP, COUNT)).unwrap();
        tx.add(&Chain::new(IP, COUNT, "c")).unwrap();
        let mut rule = Rule::new(IP, COUNT, "c");
        rule.userdata = Some(vec![0; 4].into());
        tx.add(&rule).unwrap();
    });
    nft.reconcile(&states[0], PlanOptions::default()).unwrap();
    let begun = Instant::now();
    let (stop, writing) = (AtomicBool::new(false), AtomicBool::new(true));
    let mut figures = Figures::default();
    // The writers' last stamps, in their order.
    let mut last = Vec::new();
    let mut mirror = thread::scope(|scope| {
        let _stop = OnDrop(|| stop.store(true, Ordering::Relaxed));
        let writers = WRITERS.map(|writer| {
            let (mut nft, stop) = (connect(&sandbox), &stop);
            scope.spawn(move || {
                let mut round = 0;
                while !stop.load(Ordering::Relaxed) {
                    round += 1;
                    write(&mut nft, writer, round);
                    count(&mut nft);
                    // Gives others a turn.
                    thread::sleep(Duration::from_micros(500));
                }
                round
            })
        });
        let (mut nft, is_over) = (connect(&sandbox).with_retry(PATIENT), &writing);
        let snapshotter = scope.spawn(move || {
            let mut snapshots = 0;
            let mut before = [None; 4];
            while is_over.load(Ordering::Relaxed) {
                // Every other one without elements.
                let elements = match snapshots % 2 {
                    0 => ElementFilter::all(),
                    _ => ElementFilter::empty(),
                };
                let snapshot = nft.snapshot_with(Scope::all(), SnapshotOptions { elements });
                let snapshot = snapshot.unwrap_or_else(|error| panic!("{}", report(&error)));
                assert!(snapshot.generation().is_some());
                let now = WRITERS.map(|writer| stamp_of(&snapshot, writer));
                // No older than the previous one.
                assert!(before.iter().zip(&now).all(|(before, now)| before <= now));
                before = now;
                snapshots += 1;
            }
            snapshots
        });
        let (mut nft, states) = (connect(&sandbox).with_retry(PATIENT), &states);
        let reconciler = scope.spawn(move || {
            let (mut reconciliations, mut operations) = (0, 0);
            while is_over.load(Ordering::Relaxed) {
                let desired = &states[reconciliations as usize % states.len()];
                let plan = nft.reconcile(desired, PlanOptions::default());
                let plan = plan.unwrap_or_else(|error| panic!("{}", report(&error)));
                reconciliations += 1;
                operations += plan.transaction().len();
                thread::sleep(Duration::from_millis(1));
            }
            (reconciliations, operations)
        });
        // The writers may be faster than the mirror: lost events make it read again.
        let options = MonitorOptions {
            receive_buffer: 16 << 20,
            ..MonitorOptions::default()
        };
        let patient = connect(&sandbox).with_retry(PATIENT);
        let mut mirror = Mirror::open_with(patient, &Scope::all(), options).unwrap();
        while begun.elapsed() < time || figures.updates < 10 {
            receive_changes(&mut mirror, &mut figures);
            for writer in WRITERS {
                stamp_of(mirror.snapshot(), writer);
            }
            // Threads that panicked are joined below.
            if snapshotter.is_finished() || reconciler.is_finished() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        last.extend(writers.map(|writer| writer.join().unwrap()));
        writing.store(false, Ordering::Relaxed);
        figures.snapshots = snapshotter.join().unwrap();
        (figures.reconciliations, figures.operations) = reconciler.join().unwrap();
        mirror
    });
    // Nothing was lost: each writer's last stamp exists, and the count is complete.
    let now = nft.snapshot(Scope::all()).unwrap();
    for (&writer, &round) in WRITERS.iter().zip(&last) {
        assert_eq!(stamp_of(&now, writer), Some(round), "{writer}");
        figures.rounds.add_assign(round);
    }
    assert_eq!(counted(&mut nft), Some(figures.rounds));
    // A reconciliation loses nothing either; afterwards its table is as desired.
    let desired = &states[figures.reconciliations as usize % states.len()];
    nft.reconcile(desired, PlanOptions::default()).unwrap();
    let now = nft.snapshot(Scope::table(IP, KEPT)).unwrap();
    let mut exact = PlanOptions::default();
    exact.remove_other_tables = true;
    exact.remove_dynamic_elements = true;
    assert!(now.plan(desired, exact).unwrap().is_empty());
    assert!(desired.plan(&now, exact).unwrap().is_empty());
    assert_eq!(counted(&mut nft), Some(figures.rounds));

    while receive_changes(&mut mirror, &mut figures) > 0 {}
    is_current(&mirror, &mut nft, "at the end");
    println!("{:?}: {figures:?}", begun.elapsed());
    assert!(figures.snapshots > 0 && figures.reconciliations > 0);
}

/// Makes the mirror receive pending changes. Returns their number.
fn receive_changes(mirror: &mut Mirror, figures: &mut Figures) -> usize {
    let updates = mirror.update();
    let updates = updates.unwrap_or_else(|error| panic!("{}", report(&error)));
    figures.updates += 1;
    for update in &updates {
        match update {
            Update::Change(_) => figures.changes += 1,
            _ => figures.losses += 1,
        }
    }
    updates.len()
}

// ---------------------------------------------------------------------------------------------
// Undeclared objects.

/// Other tables, of every family that needs no device and with objects of every kind.
const FOREIGN: &str = "
table ip nat {
    set hosts { type ipv4_addr; flags interval; elements = { 192.0.2.0/25, 198.51.100.1 }; }
    map ports { type inet_service : verdict; elements = { 80 : jump web, 443 : jump web }; }
    counter hits { packets 3 bytes 144; }
    chain web { counter name \"hits\" accept; ip saddr { 192.0.2.1, 192.0.2.9 } return; }
    chain pre { type nat hook prerouting priority -100; policy accept; tcp dport vmap @ports; }
}
table ip kept2 {
    chain c0 { accept; }
    chain c1 { jump c0; }
}
table ip6 kept { chain c0 { ip6 saddr 2001:db8::/32 drop; }; }
table inet kept {
    chain c0 { ct state established accept; }
    set s { type ipv4_addr; elements = { 192.0.2.7 }; }
}
table arp filter { chain input { type filter hook input priority 0; arp operation 1 accept; }; }
table bridge b { chain forward { type filter hook forward priority 0; }; }
";

/// Every object of the other tables, with all bytes, including handles.
fn foreign(nft: &mut Connection) -> Vec<String> {
    let snapshot = nft.snapshot(Scope::all()).unwrap();
    let foreign = snapshot.tables().filter(|table| {
        let view = table.table();
        !Scope::table(IP, KEPT).admits(view.family(), view.name())
    });
    foreign.flat_map(|table| lines(&table, true)).collect()
}

/// Changes the declared table like a program that ignores the declaration.
fn damage(nft: &mut Connection, random: &mut Random) {
    let now = nft.snapshot(Scope::table(IP, KEPT)).unwrap();
    let Some(table) = now.tables().next() else {
        return;
    };
    let chains: Vec<_> = table.chains().collect();
    for _ in 0..1 + random.below(4) {
        let mut tx = Transaction::new();
        let chain = chains.get(random.below(chains.len()));
        let name = chain.map_or("c0".into(), |chain| chain.chain().name().to_string());
        match random.below(7) {
            0 => _ = tx.flush_chain(IP, KEPT, &name).unwrap(),
            1 => _ = tx.delete(&Chain::new(IP, KEPT, &name)).unwrap(),
            2 => {
                let more = Chain::new(IP, KEPT, format!("x{}", random.below(9)));
                tx.add(&more).unwrap();
            }
            3 => {
                let rule = Rule::new(IP, KEPT, &name).with(&Immediate::drop());
                tx.insert(&rule).unwrap();
            }
            4 => _ = tx.delete(&Set::named(IP, KEPT, "s")).unwrap(),
            5 => {
                let set = SetId::new(IP, KEPT, "s");
                let key = (random.below(400) as u32).to_be_bytes();
                tx.add_elements(&set, [Element::new(&key)]).unwrap();
            }
            _ => _ = tx.delete(&Table::new(IP, KEPT)).unwrap(),
        }
        // A refused transaction changes nothing.
        let _ = nft.commit(&tx);
    }
}

/// Undeclared tables are not touched, whatever their names, and whatever happens to the declared one.
/// (Undeclared objects in that one are removed: a reconciliation covers whole tables.)
#[test]
fn undeclared_tables_are_unchanged() {
    let sandbox = sandbox();
    let (mut nft, mut random) = (connect(&sandbox), Random::new());
    // nft requires the end of a statement before a brace.
    Tools::new(&sandbox).run_with("nft -f -", &FOREIGN.replace(" }", "\n}"));
    let states: Vec<_> = (0..6).map(desired_state).collect();
    let (before, text) = (foreign(&mut nft), others(&sandbox));
    assert!(before.len() > 30 && text.contains("table bridge b"));
    let mut exact = PlanOptions::default();
    exact.remove_other_tables = true;
    exact.remove_dynamic_elements = true;
    exact.counters = true;
    let mut operations = 0;
    for round in 0..number("RECONCILES", 60) {
        damage(&mut nft, &mut random);
        assert_eq!(
            foreign(&mut nft),
            before,
            "round {round}: the damage affects undeclared tables"
        );
        let desired = random.of(&states);
        // The declaration covers only this table, so no other one is removed either.
        let options = random.pick(&[PlanOptions::default(), exact]);
        let plan = nft.reconcile(desired, options);
        let plan = plan.unwrap_or_else(|error| panic!("round {round}: {}", report(&error)));
        operations += plan.transaction().len();
        assert_eq!(foreign(&mut nft), before, "round {round}: {plan}");
        let now = nft.snapshot(Scope::table(IP, KEPT)).unwrap();
        assert!(
            now.plan(desired, exact).unwrap().is_empty(),
            "round {round}"
        );
    }
    assert_eq!(others(&sandbox), text);
    println!("{operations} operations");
}

/// `nft`'s listing of the other tables. (Not of all: nft 1.0.6 prints the user data of the declared table's rules
/// as comments, which are not text.)
#[track_caller]
fn others(sandbox: &Sandbox) -> String {
    let tools = Tools::new(sandbox);
    let mut others = String::new();
    for line in tools.run("nft list tables").lines() {
        if line != format!("table ip {KEPT}") {
            others += &tools.run(&format!("nft -a list {line}"));
        }
    }
    others
}

// ---------------------------------------------------------------------------------------------
// Plans from a mirror.

/// The operations of a plan without their numbers, in any order.
fn operations(plan: &Plan) -> Vec<String> {
    let text = plan.to_string();
    let lines = text.lines().map(|line| match line.rfind(" #") {
        Some(end) => line[..end].to_owned(),
        None => line.to_owned(),
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

/// A mirror that plans repeatedly for the same ruleset reads only what was touched, and gives the same plan as
/// one that reads everything.
#[test]
fn a_mirror_plans_the_same_as_its_snapshot() {
    let sandbox = sandbox();
    let (mut nft, mut random) = (connect(&sandbox), Random::new());
    let states: Vec<_> = (0..3).map(|state| Arc::new(desired_state(state))).collect();
    let mut exact = PlanOptions::default();
    exact.remove_dynamic_elements = true;
    nft.reconcile(&*states[0], exact).unwrap();
    let mut mirror = Mirror::open(connect(&sandbox), &Scope::all()).unwrap();
    let (mut desired, mut options) = (&states[0], exact);
    let (mut partly, mut planned) = (0, 0);
    for round in 0..number("PLANS", 300) {
        match random.below(20) {
            0 => desired = random.of(&states),
            1 => options = random.pick(&[PlanOptions::default(), exact]),
            2 => drop(mirror.reread().unwrap()),
            3 => committed(&mut nft, |tx| {
                // Not in the declared tables.
                tx.add(&Table::new(IP, "other")).unwrap();
                tx.add(&Chain::new(IP, "other", "c")).unwrap();
            }),
            _ => damage(&mut nft, &mut random),
        }
        mirror.update().unwrap();
        let whole = mirror.snapshot().plan(desired, options).unwrap();
        let plan = mirror.plan(desired, options).unwrap();
        assert_eq!(operations(&plan), operations(&whole), "round {round}");
        assert_eq!(plan.replaced, whole.replaced, "round {round}");
        partly += u32::from(plan.kept_rules < whole.kept_rules);
        planned += u32::from(!plan.is_empty());
        // What is not committed remains to be done.
        if random.once_in(2) {
            let done = mirror.connection().commit(plan.transaction());
            done.unwrap_or_else(|error| panic!("round {round}: {}\n{plan}", report(&error)));
            // Until the mirror has received its own events, a plan may repeat the operations.
            mirror.update().unwrap();
            let remaining = mirror.plan(desired, options).unwrap();
            assert!(remaining.is_empty(), "round {round}: {remaining}");
            assert!(mirror.snapshot().plan(desired, options).unwrap().is_empty());
        }
    }
    println!("{planned} plans; {partly} plans read only touched elements");
    assert!(planned > 50 && partly > 50, "{planned} {partly}");
}
