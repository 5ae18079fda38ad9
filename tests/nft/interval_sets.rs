//! Sets of intervals, which the kernel stores as trees. An interval is a start and an end, and a program may delete
//! only one of them: a plan leads from each state that the kernel accepts to each other one.
//!
//! `TREES` sets the number of plans (60 by default; `CHAINWRIGHT_THOROUGH` multiplies it).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::common::random::Random;
use crate::common::{commit, committed, connect, report, sandbox, tick};
use chainwright::netlink::Messages;
use chainwright::nft::expr::Verdict;
use chainwright::nft::{
    Connection, DataType, Element, ElementsRef, Family, Outcome, Plan, PlanOptions, Scope, Set,
    SetFlags, SetId, Snapshot, Table, Transaction,
};
use chainwright_sys::nf_tables::{NFT_MSG_DELSETELEM, NFT_MSG_NEWSETELEM};

const IP: Family = Family::IP;
const SETS: [&str; 6] = ["plain", "sized", "map", "verdicts", "commented", "passing"];
/// So few that random changes collide; they include the first and the last value.
const KEYS: [u32; 14] = [
    0,
    1,
    2,
    0x0100,
    0x0101,
    0x0a00_0000,
    0x0a00_0001,
    0x0a00_0002,
    0x0a00_0004,
    0x0a00_0008,
    0x0aff_ffff,
    0xc000_0000,
    0xffff_fffe,
    0xffff_ffff,
];

fn set(name: &'static str) -> Set<'static> {
    let tree = Set::new(IP, "t", name, DataType::IPV4_ADDR, 4).with_interval();
    match name {
        "sized" => tree.with_size(6),
        "map" => tree.with_data(DataType::IPV4_ADDR, 4),
        "verdicts" => tree.with_verdicts(),
        "passing" => tree.with_flags(SetFlags::TIMEOUT),
        _ => tree,
    }
}

fn start(name: &str, random: &mut Random, key: u32) -> Element<'static> {
    let mut start = Element::new(key.to_be_bytes().to_vec());
    match name {
        "map" => start = start.with_data(vec![192, 0, 2, random.below(2) as u8]),
        "verdicts" => start = start.with_verdict(random.pick(&[Verdict::Drop, Verdict::Accept])),
        "commented" if random.once_in(3) => {
            start.userdata = Some(vec![0, 2, b'0' + random.below(2) as u8, 0].into());
        }
        "passing" if random.once_in(2) => {
            start = start.with_timeout(Duration::from_secs(3600 * (1 + random.below(2) as u64)));
        }
        _ => {}
    }
    start
}

fn end(key: u32) -> Element<'static> {
    Element::end(key.to_be_bytes().to_vec())
}

/// Changes a tree; the kernel may refuse this, without effect.
fn change(nft: &mut Connection, random: &mut Random, name: &'static str) {
    let id = SetId::new(IP, "t", name);
    let (one, other) = (random.pick(&KEYS), random.pick(&KEYS));
    let (low, high) = (one.min(other), one.max(other));
    let start = start(name, random, low);
    let mut tx = Transaction::new();
    match random.below(12) {
        0..=3 => _ = tx.add_elements(&id, [start, end(high)]).unwrap(),
        4 => _ = tx.add_elements(&id, [start]).unwrap(),
        5 => _ = tx.add_elements(&id, [end(high)]).unwrap(),
        6 => {
            let mut other = Element::catch_all();
            (other.data, other.timeout) = (start.data, start.timeout);
            tx.add_elements(&id, [other]).unwrap();
        }
        7 => _ = tx.delete_elements(&id, [Element::catch_all()]).unwrap(),
        8 | 9 => {
            // An existing element.
            let now = nft.snapshot(Scope::all()).unwrap();
            let there = now.table(IP, "t").and_then(|table| table.set(name));
            let there: Vec<_> = there.iter().flat_map(|set| set.elements()).collect();
            if there.is_empty() {
                return;
            }
            let gone = random.of(&there).to_builder();
            tx.delete_elements(&id, [gone]).unwrap();
        }
        10 => _ = tx.delete_elements(&id, [start, end(high)]).unwrap(),
        _ => _ = tx.flush_set(&id).unwrap(),
    }
    if let Err(error) = nft.commit(&tx) {
        assert_eq!(error.outcome, Outcome::NothingApplied, "{}", report(&error));
    }
}

fn damage(nft: &mut Connection, random: &mut Random) {
    for name in SETS {
        for _ in 0..random.pick(&[0, 0, 1, 3, 12]) {
            change(nft, random, name);
        }
    }
}

fn with_sets(nft: &mut Connection) {
    committed(nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        for name in SETS {
            tx.add(&set(name)).unwrap();
        }
    });
}

/// An element: its key, `None` for the catch-all; whether it is a start; everything else that matters.
type Shown = (Option<Vec<u8>>, bool, String);

fn described(element: &chainwright::nft::ElementRef<'_>) -> Shown {
    let mut all = element.to_builder();
    all.expiration = None;
    let key = element.key_bytes().map(<[u8]>::to_vec);
    (key, !element.is_interval_end(), format!("{all:?}"))
}

fn elements_of(snapshot: &Snapshot, name: &str) -> BTreeSet<Shown> {
    let table = snapshot.table(IP, "t").unwrap();
    let set = table.set(name).unwrap();
    set.elements().map(|element| described(&element)).collect()
}

/// A short form of a set's elements: `[0a000000 0a000004)`.
fn brief(snapshot: &Snapshot, name: &str) -> String {
    let elements = elements_of(snapshot, name);
    let words = elements.iter().map(|(key, is_start, _)| {
        let key = key.iter().flatten().map(|byte| format!("{byte:02x}"));
        let key = key.collect::<String>();
        match is_start {
            true => format!(" [{key}"),
            false => format!(" {key})"),
        }
    });
    words.collect()
}

/// Removes ends without a start, which a plan may omit if they are missing.
fn that_matter(name: &str, elements: BTreeSet<Shown>) -> Vec<Shown> {
    let mut elements: Vec<_> = elements.into_iter().collect();
    // In sets with timeouts the start of any end may be gone.
    let mut ended = name == "passing";
    elements.retain(|(key, is_start, _)| {
        let is_first = key.as_deref() == Some(&[0; 4]);
        let ends_nothing = !is_start && ended && !is_first;
        if key.is_some() {
            ended = !is_start;
        }
        !ends_nothing
    });
    elements
}

/// Complete intervals.
fn intervals(elements: &BTreeSet<Shown>) -> BTreeSet<(Shown, Shown)> {
    let elements: Vec<_> = elements.iter().filter(|(key, ..)| key.is_some()).collect();
    let pairs = elements.windows(2).filter(|pair| pair[0].1 && !pair[1].1);
    pairs
        .map(|pair| (pair[0].clone(), pair[1].clone()))
        .collect()
}

/// Whether a start is not followed by an end, or an end has no start before it; except for the end below all others and
/// the start of an interval up to the last value.
fn has_halves(elements: &BTreeSet<Shown>) -> bool {
    let bounds: Vec<_> = elements.iter().filter(|(key, ..)| key.is_some()).collect();
    let is_first_end = |(key, is_start, _): &Shown| !is_start && key.as_deref() == Some(&[0; 4]);
    let first = bounds.first();
    let starts_with_end = first.is_some_and(|first| !first.1 && !is_first_end(first));
    starts_with_end || bounds.windows(2).any(|pair| pair[0].1 == pair[1].1)
}

/// The elements that a plan touches: set, key, and whether it is a start.
fn touched(plan: &Plan) -> BTreeSet<(String, Option<Vec<u8>>, bool)> {
    let mut touched = BTreeSet::new();
    for message in Messages::new(plan.transaction().as_bytes()) {
        let message = message.unwrap();
        if [NFT_MSG_NEWSETELEM, NFT_MSG_DELSETELEM].contains(&(message.kind as u8)) {
            let list = ElementsRef::parse(&message).unwrap();
            for element in list.elements().into_iter().flatten() {
                let (key, is_start, _) = described(&element.unwrap());
                touched.insert((list.set().to_string(), key, is_start));
            }
        }
    }
    touched
}

/// Use `TREES=10000` for the long run.
fn rounds() -> usize {
    crate::common::from_env("TREES", 60)
}

#[test]
fn a_plan_leads_from_each_state_to_each() {
    let rounds = rounds();
    let sandbox = sandbox();
    let (mut nft, mut random) = (connect(&sandbox), Random::new());
    with_sets(&mut nft);
    let mut states = Vec::<Arc<Snapshot>>::new();
    let (mut replaced, mut flushes, mut halves) = (0, 0, 0);
    for round in 0..rounds {
        damage(&mut nft, &mut random);
        tick();
        let now = Arc::new(nft.snapshot(Scope::all()).unwrap());
        match states.len() {
            ..20 => states.push(Arc::clone(&now)),
            count => states[random.below(count)] = Arc::clone(&now),
        }
        let desired = Arc::clone(random.of(&states));
        let plan = now.plan(&desired, PlanOptions::default()).unwrap();
        let what = || {
            let sets = SETS.map(|name| (name, brief(&now, name), brief(&desired, name)));
            format!("round {round}: {plan}{sets:#?}")
        };
        if let Err(error) = nft.commit(plan.transaction()) {
            panic!("{}: {}", report(&error), what());
        }
        let after = nft.snapshot(Scope::all()).unwrap();
        let left = after.plan(&desired, PlanOptions::default()).unwrap();
        assert!(left.is_empty(), "{left} remains of {}", what());
        let touched = touched(&plan);
        for name in SETS {
            let (was, is, wanted) = (
                elements_of(&now, name),
                elements_of(&after, name),
                elements_of(&desired, name),
            );
            let pairs = (intervals(&was), intervals(&wanted));
            halves += usize::from(has_halves(&was));
            assert_eq!(
                that_matter(name, is),
                that_matter(name, wanted),
                "{name} {}",
                what()
            );
            if plan
                .replaced
                .iter()
                .any(|one| one.kind == "set" && one.name == name)
            {
                assert_eq!(name, "sized", "{}", what());
                replaced += 1;
                continue;
            }
            let flushed = plan
                .to_string()
                .contains(&format!("flush element ip t {name} "));
            if flushed {
                assert_eq!(name, "passing", "{}", what());
                flushes += 1;
                continue;
            }
            for (start, end) in pairs.0.intersection(&pairs.1) {
                for (key, is_start, _) in [start, end] {
                    let one = (name.to_owned(), key.clone(), *is_start);
                    assert!(!touched.contains(&one), "{one:?} {}", what());
                }
            }
        }
    }
    println!("{halves} trees with halves, {replaced} replaced, {flushes} flushed");
    // Kernels that count the ends of intervals report a full set more often.
    assert!(halves > rounds / 10 && replaced < 2 * rounds / 3);
}

/// All of them together are restored to an empty ruleset.
#[test]
fn each_state_is_restored() {
    let (from, to) = (sandbox(), sandbox());
    let (mut from, mut to) = (connect(&from), connect(&to));
    let mut random = Random::new();
    with_sets(&mut from);
    let (rounds, mut halves) = (rounds() / 6, 0);
    for round in 0..rounds {
        damage(&mut from, &mut random);
        let state = from.snapshot(Scope::all()).unwrap();
        tick();
        if let Err(error) = state.restore(&mut to) {
            let sets = SETS.map(|name| (name, brief(&state, name)));
            panic!("round {round}: {}: {sets:#?}", report(&error));
        }
        let restored = to.snapshot(Scope::all()).unwrap();
        for name in SETS {
            let (is, was) = (elements_of(&restored, name), elements_of(&state, name));
            halves += usize::from(has_halves(&was));
            assert_eq!(
                that_matter(name, is),
                that_matter(name, was),
                "{name} in round {round}"
            );
        }
    }
    println!("{halves} trees with halves");
    assert!(2 * halves > rounds, "{halves} in {rounds} rounds");
}

/// Leftover ends of intervals in a set with timeouts: if one is in the way of an addition, the set is flushed and
/// filled again, which the kernel accepts; otherwise it stays.
#[test]
fn blocking_end_elements_are_flushed() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let id = SetId::new(IP, "t", "passing");
    let key = |key: u32| key.to_be_bytes().to_vec();
    let interval = |low, high| [Element::new(key(low)), Element::end(key(high))];
    // The desired interval, and whether the end 20 is in its way.
    let cases = [
        ((30, 40), false),
        ((5, 15), true),
        ((15, 30), true),
        ((20, 30), false),
        ((10, 20), false),
    ];
    for ((low, high), is_flushed) in cases {
        let what = format!("[{low}, {high})");
        committed(&mut nft, |tx| {
            tx.flush_ruleset(Family::UNSPEC).unwrap();
            tx.add(&Table::new(IP, "t")).unwrap();
            tx.add(&set("passing")).unwrap();
            tx.add_elements(&id, interval(low, high)).unwrap();
        });
        let desired = nft.snapshot(Scope::all()).unwrap();
        committed(&mut nft, |tx| {
            tx.flush_set(&id).unwrap();
            tx.add_elements(&id, interval(10, 20)).unwrap();
        });
        committed(&mut nft, |tx| {
            tx.delete_elements(&id, [Element::new(key(10))]).unwrap();
        });
        tick();
        let now = nft.snapshot(Scope::all()).unwrap();
        assert_eq!(brief(&now, "passing"), " 00000014)", "{what}");
        let plan = now.plan(&desired, PlanOptions::default()).unwrap();
        let flushes = plan.to_string().contains("flush element ip t passing ");
        assert_eq!(flushes, is_flushed, "{what}: {plan}");
        let replaced: Vec<_> = plan.replaced.iter().map(ToString::to_string).collect();
        let expected: &[&str] = if flushes {
            &["elements ip t passing"]
        } else {
            &[]
        };
        assert_eq!(replaced, expected, "{what}");
        commit(&mut nft, plan.transaction());
        let after = nft.snapshot(Scope::all()).unwrap();
        let is = elements_of(&after, "passing");
        let wanted = elements_of(&desired, "passing");
        assert_eq!(intervals(&is), intervals(&wanted), "{what}: {plan}");
        assert_eq!(is == wanted, is_flushed || high == 20, "{what}: {plan}");
        let left = after.plan(&desired, PlanOptions::default()).unwrap();
        assert!(left.is_empty(), "{what}: {left}");
    }
}
