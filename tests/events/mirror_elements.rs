//! A mirror that plans repeatedly for the same ruleset reads only the elements that were touched, and gives the same
//! plan as a fresh snapshot, whose elements are all read.

use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use crate::common::compare_mirror::is_current;
use crate::common::kernel::{catches_all, numbers_namespaces};
use crate::common::random::Random;
use crate::common::{committed, connect, report, sandbox};
use allocation_counter::measure;
use chainwright::netlink::Messages;
use chainwright::nft::expr::{Counter, Verdict};
use chainwright::nft::live::{Mirror, MirrorOptions};
use chainwright::nft::{
    Chain, Connection, DataType, Element, ElementFilter, ElementRef, ElementsRef, Family, Plan,
    PlanOptions, Scope, Set, SetFlags, SetId, Snapshot, SnapshotOptions, Table, Transaction,
};
use chainwright_sys::nf_tables::{NFT_MSG_DELSETELEM, NFT_MSG_NEWSETELEM};
use chainwright_testing::Sandbox;

const IP: Family = Family::IP;
const HOUR: Duration = Duration::from_secs(3600);
/// Number of keys: few, so that the same ones are removed and added again.
const KEYS: usize = 60;

/// A set of each kind.
const SETS: [&str; 10] = [
    "plain", "sized", "map", "verdicts", "tree", "tree_map", "ranges", "passing", "dynamic",
    "counted",
];

fn set(name: &'static str) -> Set<'static> {
    let plain = Set::new(IP, "t", name, DataType::IPV4_ADDR, 4);
    match name {
        "sized" => plain.with_size(24),
        "map" => plain.with_data(DataType::IPV4_ADDR, 4),
        "verdicts" => plain.with_verdicts(),
        "tree" => plain.with_interval(),
        "tree_map" => plain.with_interval().with_data(DataType::IPV4_ADDR, 4),
        "ranges" => {
            plain.with_interval_fields(&[(DataType::IPV4_ADDR, 4), (DataType::INET_SERVICE, 2)])
        }
        "passing" => plain.with_timeout(Some(HOUR)),
        "dynamic" => plain
            .with_timeout(Some(HOUR))
            .with_flags(SetFlags::EVAL)
            .with_size(1000),
        "counted" => plain.with_expression(&Counter::new(0, 0)),
        _ => plain,
    }
}

/// The elements of one key, or range, with one of several values.
fn elements(name: &str, key: usize, value: usize) -> Vec<Element<'static>> {
    let address = |number: usize| (0x0a00_0000 + number as u32).to_be_bytes().to_vec();
    let data = vec![192, 0, 2, value as u8];
    let one = Element::new(address(key));
    match name {
        "map" if key == 0 && catches_all() => vec![Element::catch_all().with_data(data)],
        "plain" | "passing" if key == 0 && catches_all() => vec![Element::catch_all()],
        "map" => vec![one.with_data(data)],
        "verdicts" if value == 0 => vec![one.with_verdict(Verdict::Drop)],
        "verdicts" => vec![one.with_verdict(Verdict::Goto(format!("c{value}").into()))],
        "tree" | "tree_map" => {
            // They may be adjacent.
            let start = 4 * key;
            let end = start + [2, 3, 4, 4][value];
            let [start, end] = Element::interval(address(start), address(end));
            match name {
                "tree" => vec![start, end],
                _ => vec![start.with_data(data), end],
            }
        }
        "ranges" => {
            let part = |key: usize, port: u8| [&address(key)[..], &[0, port, 0, 0]].concat();
            let last = 8 * key + [1, 3, 5, 7][value];
            vec![Element::range(part(8 * key, 1), part(last, 200))]
        }
        "passing" | "dynamic" if value > 0 => vec![one.with_timeout(HOUR * value as u32)],
        "plain" => {
            let mut one = one;
            // An element with another comment is a different element.
            one.userdata = (value > 0).then(|| vec![0, 2, b'0' + value as u8, 0].into());
            vec![one]
        }
        _ => vec![one],
    }
}

fn add(tx: &mut Transaction, random: &mut Random, name: &'static str, most: usize) {
    let keys: BTreeSet<_> = (0..1 + random.below(most))
        .map(|_| random.below(KEYS))
        .collect();
    for key in keys {
        let elements = elements(name, key, random.below(4));
        tx.add_elements(&SetId::new(IP, "t", name), elements)
            .unwrap();
    }
}

/// A table with some elements, but none of those that rules add.
fn state(random: &mut Random) -> Arc<Snapshot> {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        for chain in 1..4 {
            tx.add(&Chain::new(IP, "t", format!("c{chain}"))).unwrap();
        }
        for name in SETS {
            tx.add(&set(name)).unwrap();
        }
    });
    for name in SETS.into_iter().filter(|&name| name != "dynamic") {
        // No more than `sized` can contain.
        committed(&mut nft, |tx| add(tx, random, name, 24));
    }
    Arc::new(nft.snapshot(Scope::all()).unwrap())
}

/// Changes elements like a program that ignores the desired state.
fn damage(nft: &mut Connection, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let now = nft.snapshot(Scope::all()).unwrap();
        let name = random.pick(&SETS);
        let id = SetId::new(IP, "t", name);
        let there = now.table(IP, "t").and_then(|table| table.set(name));
        let there: Vec<_> = there.iter().flat_map(|set| set.elements()).collect();
        // For a range in a tree this may be only one end.
        let some: Vec<_> = there
            .iter()
            .filter(|_| random.once_in(4))
            .map(|element| element.to_builder())
            .collect();
        let mut tx = Transaction::new();
        match random.below(12) {
            0..=3 => add(&mut tx, random, name, 6),
            4 | 5 if !some.is_empty() => _ = tx.delete_elements(&id, some).unwrap(),
            6 if !some.is_empty() => {
                // Removes and adds the same ones.
                tx.delete_elements(&id, some.clone()).unwrap();
                tx.add_elements(&id, some.into_iter().map(without_kernel_state))
                    .unwrap();
            }
            7 | 8 => {
                // Replaces these by others.
                let key = random.below(KEYS);
                let gone = (0..4).find_map(|value| {
                    let gone = elements(name, key, value);
                    let mut named = gone.iter();
                    let is_there = named.all(|gone| there.iter().any(|one| is_named_as(one, gone)));
                    is_there.then_some(gone)
                });
                if let Some(gone) = gone {
                    tx.delete_elements(&id, gone).unwrap();
                }
                tx.add_elements(&id, elements(name, key, random.below(4)))
                    .unwrap();
            }
            9 => _ = tx.flush_set(&id).unwrap(),
            10 => {
                // Replaces the set by another one of the same name.
                tx.delete(&Set::named(IP, "t", name)).unwrap();
                tx.add(&set(name)).unwrap();
                add(&mut tx, random, name, 12);
            }
            _ => {
                let chain = Chain::new(IP, "t", format!("x{}", random.below(4)));
                tx.add(&chain).unwrap();
            }
        }
        // A refused transaction changes nothing.
        let _ = nft.commit(&tx);
    }
}

/// Removes what only the kernel sets: the rest of a timeout, counters.
fn without_kernel_state(mut element: Element<'_>) -> Element<'_> {
    element.expiration = None;
    element.expression = None;
    element.expressions = None;
    element
}

fn is_named_as(one: &ElementRef<'_>, other: &Element<'_>) -> bool {
    let one = one.to_builder();
    let end = |element: &Element<'_>| element.flags.unwrap_or_default();
    one.key == other.key && one.key_end == other.key_end && end(&one) == end(other)
}

/// The operations of a plan, one per element, in an order that is independent of the listing's.
fn operations(plan: &Plan) -> Vec<String> {
    let mut operations = Vec::new();
    let bytes = plan.transaction().as_bytes();
    for message in Messages::new(bytes).map(Result::unwrap) {
        let kind = message.kind as u8;
        if kind == NFT_MSG_NEWSETELEM || kind == NFT_MSG_DELSETELEM {
            let list = ElementsRef::parse(&message).unwrap();
            for element in list.elements().into_iter().flatten().map(Result::unwrap) {
                operations.push(format!("{kind} {} {element:?}", list.set()));
            }
            continue;
        }
        operations.push(format!("{kind} {:?}", message.payload));
    }
    operations.sort();
    operations
}

/// Makes the mirror's connection fail and be replaced.
fn fail_once(sandbox: &Sandbox, nft: &mut Connection, mirror: &mut Mirror) {
    // Without numbers of namespaces it is unknown whether another connection belongs to the same one.
    if !numbers_namespaces() {
        return;
    }
    let nothing = std::fs::File::open("/dev/null").unwrap();
    let descriptor = mirror.connection().as_raw_fd();
    // SAFETY: both descriptors are open, and the second one keeps its owner; only the file behind it changes.
    let result = unsafe { libc::dup2(nothing.as_raw_fd(), descriptor) };
    assert_eq!(result, descriptor);
    // A new name makes the mirror read a table again.
    committed(nft, |tx| {
        tx.add(&Chain::new(IP, "t", "one")).unwrap();
    });
    let handle = nft.chain(IP, "t", "one").unwrap().unwrap().handle();
    committed(nft, |tx| {
        let renamed = Chain {
            handle: Some(handle),
            ..Chain::new(IP, "t", "other")
        };
        tx.add(&renamed).unwrap();
    });
    mirror.update().unwrap_err();
    assert_eq!(mirror.snapshot().generation(), None);
    *mirror.connection() = connect(sandbox);
    committed(nft, |tx| {
        tx.delete(&Chain::new(IP, "t", "other")).unwrap();
    });
}

/// Use `MIRROR_PLANS=5000` for the long run.
fn rounds() -> usize {
    crate::common::from_env("MIRROR_PLANS", 100)
}

#[test]
fn a_plan_from_changed_elements_matches_one_from_all() {
    plans_are_the_same(ElementFilter::all(), rounds());
}

/// The same without the elements that rules add.
#[test]
fn a_plan_from_changed_elements_matches_without_dynamic_elements() {
    plans_are_the_same(ElementFilter::all() - ElementFilter::DYNAMIC, rounds() / 3);
}

fn plans_are_the_same(of: ElementFilter, rounds: usize) {
    let sandbox = sandbox();
    let (mut nft, mut random) = (connect(&sandbox), Random::new());
    let states: Vec<_> = (0..3).map(|_| state(&mut random)).collect();
    let mut exact = PlanOptions::default();
    exact.remove_dynamic_elements = true;
    let choices = match of.is_all() {
        true => vec![PlanOptions::default(), exact],
        // It cannot plan to remove what it has not read.
        false => vec![PlanOptions::default()],
    };
    let read = SnapshotOptions { elements: of };
    nft.reconcile(&*states[0], PlanOptions::default()).unwrap();
    let opened = Mirror::open_with(connect(&sandbox), &Scope::all(), MirrorOptions::from(read));
    let mut mirror = opened.unwrap();
    let mut desired = Arc::clone(&states[0]);
    let mut options = PlanOptions::default();
    let (mut planned, mut changed) = (0, 0);
    for round in 0..rounds {
        match random.below(40) {
            0 => desired = Arc::clone(random.of(&states)),
            1 => options = random.pick(&choices),
            2 => drop(mirror.reread().unwrap()),
            3 if of.is_all() => {
                // The current state is desired, so snapshot and mirror share parts.
                mirror.update().unwrap();
                desired = Arc::new(mirror.snapshot().clone());
            }
            4 => fail_once(&sandbox, &mut nft, &mut mirror),
            _ => {
                damage(&mut nft, &mut random);
                crate::common::tick();
            }
        }
        mirror.update().unwrap();
        if round % 20 == 0 {
            is_current(&mirror, &mut nft, &format!("round {round}"));
        }
        let fresh = nft.snapshot_with(Scope::all(), read).unwrap();
        let whole = fresh.plan(&desired, options).unwrap();
        let plan = mirror.plan(&desired, options).unwrap();
        assert_eq!(operations(&plan), operations(&whole), "round {round}");
        assert_eq!(plan.replaced, whole.replaced, "round {round}");
        planned += u32::from(!plan.is_empty());
        // What is not committed remains to be done; some plans are committed only in part.
        if random.once_in(2) {
            let done = mirror.connection().commit(plan.transaction());
            done.unwrap_or_else(|error| panic!("round {round}: {}\n{plan}", report(&error)));
            changed += u32::from(!plan.is_empty());
            if random.once_in(2) {
                mirror.update().unwrap();
                let left = mirror.plan(&desired, options).unwrap();
                assert!(left.is_empty(), "round {round}: {left}");
            }
        }
    }
    println!("{planned} plans of {rounds}, {changed} committed");
    assert!(planned as usize > rounds / 8 && changed as usize > rounds / 16);
}

/// The cost of a plan depends on the touched elements: for a map four times as large it is the same, unlike that of a
/// plan that reads everything.
#[test]
fn a_plan_takes_no_more_of_a_larger_map() {
    const TOUCHED: u32 = 50;
    let planned = |elements: u32| {
        let sandbox = sandbox();
        let mut nft = connect(&sandbox);
        let map = Set::new(IP, "t", "m", DataType::IPV4_ADDR, 4).with_data(DataType::IPV4_ADDR, 4);
        let element = |key: u32, value: u8| {
            Element::new(key.to_be_bytes().to_vec()).with_data(vec![192, 0, 2, value])
        };
        committed(&mut nft, |tx| {
            tx.add(&Table::new(IP, "t")).unwrap();
            tx.add(&map).unwrap();
        });
        let keys: Vec<u32> = (0..elements).collect();
        // Transactions of a user without privileges are limited.
        for keys in keys.chunks(2000) {
            let some = keys.iter().map(|&key| element(key, 1));
            committed(&mut nft, |tx| {
                _ = tx.add_elements(&map.set_id(), some).unwrap()
            });
        }
        let mut mirror = Mirror::open(connect(&sandbox), &Scope::all()).unwrap();
        let desired = Arc::new(mirror.snapshot().clone());
        let mut costs = Vec::new();
        // The first plan reads everything, and the first one after touched elements records their positions.
        for value in 2..6 {
            let touched = || (0..TOUCHED).map(|number| number * (elements / TOUCHED));
            committed(&mut nft, |tx| {
                let gone = touched().map(|key| element(key, value - 1));
                tx.delete_elements(&map.set_id(), gone).unwrap();
                let come = touched().map(|key| element(key, value));
                tx.add_elements(&map.set_id(), come).unwrap();
            });
            assert_eq!(mirror.update().unwrap().len(), 1);
            let mut plan = None;
            let taken = measure(|| {
                plan = Some(mirror.plan(&desired, PlanOptions::default()).unwrap());
            });
            let plan = plan.unwrap();
            let [deleted, added] = [NFT_MSG_DELSETELEM, NFT_MSG_NEWSETELEM].map(|kind| {
                let start = format!("{kind} ");
                let operations = operations(&plan);
                operations
                    .iter()
                    .filter(|one| one.starts_with(&start))
                    .count()
            });
            assert_eq!((deleted, added), (TOUCHED as usize, TOUCHED as usize));
            costs.push(taken);
        }
        let whole = measure(|| {
            let plan = mirror.snapshot().plan(&desired, PlanOptions::default());
            assert!(!plan.unwrap().is_empty());
        });
        println!("{elements}: {costs:?}, of all {whole:?}");
        let last = costs.pop().unwrap();
        [last, whole].map(|taken| taken.bytes_total)
    };
    let ([few, _], [many, all_of_many]) = (planned(10_000), planned(40_000));
    assert!(
        many < 2 * few,
        "{few} bytes, then {many} of four times as much"
    );
    // The plan that reads everything proves that the measurement works.
    assert!(many < all_of_many, "{many} bytes of {all_of_many}");
}
