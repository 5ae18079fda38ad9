//! Plans for the objects of one program, in tables that others use as well: objects with the program's tag reach the
//! desired state, and nothing else is touched.
//!
//! `TAGGED` sets the number of random plans (20 by default; `CHAINWRIGHT_THOROUGH` multiplies it), `SEED` selects them.

use std::collections::BTreeSet;

use crate::common::plan_rulesets::{operations, with};
use crate::common::random::Random;
use crate::common::{connect, report, sandbox};
use chainwright::nft::expr::{Counter, Immediate};
use chainwright::nft::live::Mirror;
use chainwright::nft::{
    Chain, CommitError, Connection, DataType, Element, Family, NotOwned, OwnerTag, Plan,
    PlanOptions, Policy, Rule, Scope, Set, Snapshot, StatefulObject, Table, Transaction,
    WriteError,
};
use chainwright_testing::FakeKernel;

const IP: Family = Family::IP;
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn tag() -> OwnerTag {
    OwnerTag::new("agent").unwrap()
}

fn of_tag() -> PlanOptions {
    let mut options = PlanOptions::default();
    options.owner_tag = Some(tag());
    options
}

fn snapshot(nft: &mut Connection) -> Snapshot {
    nft.snapshot(Scope::all())
        .unwrap_or_else(|error| panic!("{}", report(&error)))
}

/// The ruleset that `nft -f` makes of a text.
fn desired(text: &str) -> Snapshot {
    snapshot(&mut connect(&with(text)))
}

#[track_caller]
fn planned(nft: &mut Connection, desired: &Snapshot) -> Plan {
    match snapshot(nft).plan(desired, of_tag()) {
        Ok(plan) => plan,
        Err(error) => panic!("{}", report(&error)),
    }
}

/// In a table that others use, only the tagged objects reach the desired state, and missing ones are created.
#[test]
fn in_a_foreign_table_only_tagged_objects_change() {
    let sandbox = with(
        "table ip shared {
            comment \"everybody's\"
            counter theirs { }
            counter gone { comment \"agent\" }
            set blocked { type ipv4_addr; comment \"agent: by policy\"; elements = { 192.0.2.1, 192.0.2.2 } }
            set allowed { type ipv4_addr; elements = { 192.0.2.9 } }
            chain input {
                type filter hook input priority 0; policy drop;
                tcp dport 22 accept
                ip saddr @blocked drop comment \"agent\"
                tcp dport 53 accept comment \"agent: dns\"
                tcp dport 80 accept
            }
            chain old { comment \"agent\"; accept; }
            chain theirs { tcp dport 1 drop; }
        }
        table ip other { comment \"agent\"; chain c { accept; }; }",
    );
    let mut nft = connect(&sandbox);
    let before = snapshot(&mut nft);
    let wanted = desired(
        "table ip shared {
            counter mine { comment \"agent\" }
            set blocked { type ipv4_addr; comment \"agent: by policy\"; elements = { 192.0.2.2, 192.0.2.3 } }
            set allowed { type ipv4_addr; elements = { 192.0.2.77 } }
            chain input {
                type filter hook input priority 0; policy accept;
                ip saddr @blocked drop comment \"agent\"
                tcp dport 5353 accept comment \"agent: dns\"
                tcp dport 99 accept
            }
            chain new { comment \"agent\"; accept; }
            chain output { type filter hook output priority 0; counter comment \"agent\"; }
        }",
    );
    let plan = planned(&mut nft, &wanted);
    assert_eq!(
        operations(&plan.to_string()),
        [
            "flush rule ip shared old",
            "delete rule ip shared input",
            "delete element ip shared blocked",
            "delete chain ip shared old",
            "delete counter ip shared gone",
            "add counter ip shared mine",
            "add chain ip shared new",
            "add chain ip shared output",
            "add element ip shared blocked",
            "add rule ip shared new",
            "add rule ip shared output",
            "add rule ip shared input",
        ]
    );
    assert_eq!((plan.kept_rules, plan.replaced.len()), (1, 0));
    nft.commit(plan.transaction()).unwrap();
    let after = snapshot(&mut nft);
    assert!(after.plan(&wanted, of_tag()).unwrap().is_empty());
    // The only new object without the tag is the chain for a rule.
    assert!(others(&before).is_subset(&others(&after)));
    assert_eq!(others(&before).len() + 1, others(&after).len());
    let table = after.table(IP, "shared").unwrap();
    let input = table.chain("input").unwrap();
    assert_eq!(input.chain().policy(), Some(Policy::DROP));
    let comments: Vec<_> = input
        .rules()
        .map(|rule| rule.comment().map(ToString::to_string))
        .collect();
    // The new one is at the end: no tagged rule follows it.
    let tagged = |text: &str| Some(text.to_owned());
    assert_eq!(
        comments,
        [None, tagged("agent"), None, tagged("agent: dns")]
    );

    // Other tables with the tag are removed only on request, and those without it never.
    let mut options = of_tag();
    options.remove_other_tables = true;
    let plan = after.plan(&wanted, options).unwrap();
    assert_eq!(operations(&plan.to_string()), ["delete table ip other"]);
}

/// A chain, a set or a table with the tag belongs to the program with all of its content.
#[test]
fn a_tagged_object_is_owned_with_its_content() {
    let sandbox = with(
        "table ip shared {
            chain mine { comment \"agent\"; accept; drop comment \"somebody's\"; }
         }
         table ip mine { comment \"agent\"; chain theirs { accept; }; }",
    );
    let mut nft = connect(&sandbox);
    let wanted = desired(
        "table ip shared { chain mine { comment \"agent\"; accept; }; }
         table ip mine { comment \"agent\"; }",
    );
    let plan = planned(&mut nft, &wanted);
    assert_eq!(
        operations(&plan.to_string()),
        [
            "delete rule ip shared mine",
            "flush rule ip mine theirs",
            "delete chain ip mine theirs",
        ]
    );
    nft.commit(plan.transaction()).unwrap();
    assert!(planned(&mut nft, &wanted).is_empty());
}

/// An object of another program under a desired name is left alone, and an error is returned.
#[test]
fn a_foreign_object_is_an_error() {
    let sandbox = with(
        "table ip t {
            counter o { }
            set s { type ipv4_addr; }
            chain c { accept; }
         }",
    );
    let mut nft = connect(&sandbox);
    let before = nft.generation().unwrap();
    for (text, object) in [
        ("table ip t { comment \"agent\"; }", "table ip t"),
        (
            "table ip t { counter o { comment \"agent\"; }; }",
            "object ip t o",
        ),
        (
            "table ip t { set s { type ipv4_addr; comment \"agent\"; }; }",
            "set ip t s",
        ),
        (
            "table ip t { chain c { comment \"agent\"; }; }",
            "chain ip t c",
        ),
    ] {
        let wanted = desired(text);
        let refused = snapshot(&mut nft).plan(&wanted, of_tag()).unwrap_err();
        let expected = NotOwned {
            object: object.to_owned(),
            tag: tag(),
        };
        assert_eq!(refused, WriteError::NotOwned(expected));
        let error = nft.reconcile(&wanted, of_tag()).unwrap_err();
        let text = error.to_string();
        assert_eq!(
            text,
            format!("{object} exists without the tag agent: it belongs to another program")
        );
    }
    assert_eq!(nft.generation().unwrap(), before);
    // Without a tag everything is changed.
    let wanted = desired("table ip t { comment \"agent\"; }");
    nft.reconcile(&wanted, PlanOptions::default()).unwrap();
    assert_eq!(
        snapshot(&mut nft).table(IP, "t").unwrap().chains().count(),
        0
    );
}

/// An object that others' rules refer to is not removed: the kernel refuses, and nothing is changed.
#[test]
fn objects_used_by_others_are_kept() {
    let sandbox = with(
        "table ip t {
            chain mine { comment \"agent\"; }
            chain also { comment \"agent\"; }
            chain theirs { jump mine; }
         }",
    );
    let mut nft = connect(&sandbox);
    let before = snapshot(&mut nft);
    let plan = planned(&mut nft, &desired("table ip t { }"));
    assert_eq!(
        operations(&plan.to_string()),
        ["delete chain ip t mine", "delete chain ip t also"]
    );
    let error: CommitError = nft.commit(plan.transaction()).unwrap_err();
    assert_eq!(error.failures[0].errno.name(), "EBUSY");
    assert_eq!(all(&snapshot(&mut nft)), all(&before));
}

/// Everything, byte for byte, except for the table's number of objects.
fn all(snapshot: &Snapshot) -> BTreeSet<String> {
    formatted(snapshot, |_| true)
}

/// The objects that are not the agent's.
fn others(snapshot: &Snapshot) -> BTreeSet<String> {
    formatted(snapshot, |own| !own)
}

/// The agent's objects, without handles.
fn own(snapshot: &Snapshot) -> BTreeSet<String> {
    formatted(snapshot, |own| own)
        .into_iter()
        .map(|line| line.split("handle").next().unwrap().to_owned())
        .collect()
}

fn formatted(snapshot: &Snapshot, wanted: impl Fn(bool) -> bool) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    let mut line = |is_own: bool, text: String| {
        if wanted(is_own) {
            assert!(lines.insert(text.clone()), "listed twice: {text}");
        }
    };
    for table in snapshot.tables() {
        let view = table.table();
        let name = view.name().to_owned();
        let whole = tag().is_in(view.comment());
        line(
            whole,
            format!("table {name} {:?} {:?}", view.comment(), view.flags()),
        );
        for object in table.objects() {
            let is_own = whole || tag().is_in(object.comment());
            let (of, comment) = (object.name(), object.comment());
            line(
                is_own,
                format!("object {name} {of} {comment:?} handle {}", object.handle()),
            );
        }
        for set in table.sets() {
            let view = set.set();
            let is_own = whole || tag().is_in(view.comment());
            let (of, comment) = (view.name(), view.comment());
            line(
                is_own,
                format!("set {name} {of} {comment:?} handle {}", view.handle()),
            );
            for element in set.elements() {
                line(
                    is_own,
                    format!("element {name} {of} {:?}", element.key_bytes()),
                );
            }
        }
        for chain in table.chains() {
            let view = chain.chain();
            let is_own = whole || tag().is_in(view.comment());
            let (of, comment) = (view.name(), view.comment());
            let hook = (view.hook().map(|hook| hook.number), view.policy());
            line(
                is_own,
                format!(
                    "chain {name} {of} {comment:?} {hook:?} handle {}",
                    view.handle()
                ),
            );
            let (mut mine, mut theirs) = (0, 0);
            for rule in chain.rules() {
                let is_own = is_own || tag().is_in(rule.comment());
                let number = match is_own {
                    true => &mut mine,
                    false => &mut theirs,
                };
                *number += 1;
                let text = rule.to_string();
                let text = text.split_once('\n').map_or("", |(_, text)| text);
                let comment = rule.comment();
                line(
                    is_own,
                    format!(
                        "rule {name} {of} {number} {comment:?} {text} handle {}",
                        rule.handle()
                    ),
                );
            }
        }
    }
    lines
}

/// A table with few names, some of whose objects belong to the agent.
fn fill(random: &mut Random, theirs: bool, mine: bool) -> Snapshot {
    let mut nft = FakeKernel::new().connect().unwrap();
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "t").with_comment("everybody's").unwrap())
        .unwrap();
    // A name never changes its owner: the first ones belong to others.
    for (number, name) in NAMES.into_iter().enumerate() {
        let is_own = number >= 2;
        if !(if is_own { mine } else { theirs }) || random.once_in(3) {
            continue;
        }
        let comment = if is_own {
            tag().comment(random.pick(&["", "words"]))
        } else {
            "theirs".to_owned()
        };
        let mut chain = Chain::new(IP, "t", name).with_comment(&comment).unwrap();
        if random.once_in(3) {
            chain = chain.with_hook("filter", random.pick(&[1, 3]), 0);
        }
        tx.add(&chain).unwrap();
        let data = if random.once_in(2) { 4 } else { 2 };
        let kind = if data == 4 {
            DataType::IPV4_ADDR
        } else {
            DataType::INET_SERVICE
        };
        let set = Set::new(IP, "t", name, kind, data)
            .with_comment(&comment)
            .unwrap();
        tx.add(&set).unwrap();
        for key in 0..random.below(6) as u8 {
            if random.once_in(2) {
                let key = [vec![0; data as usize - 1], vec![key]].concat();
                tx.add_elements(&set.set_id(), &[Element::new(key)])
                    .unwrap();
            }
        }
        let object = StatefulObject::new(IP, "t", name, Counter::new(0, 0));
        tx.add(&object.with_comment(&comment).unwrap()).unwrap();
    }
    nft.commit(&tx).unwrap();
    // Rules of both in chains of others.
    let there = snapshot(&mut nft);
    let mut tx = Transaction::new();
    for chain in there.table(IP, "t").unwrap().chains() {
        let name = chain.chain().name();
        for _ in 0..random.below(5) {
            let is_own = random.once_in(2);
            if !(if is_own { mine } else { theirs }) && !tag().is_in(chain.chain().comment()) {
                continue;
            }
            let mut rule = Rule::new(IP, "t", name);
            match random.below(3) {
                0 => rule.push(&Immediate::accept()),
                1 => rule.push(&Counter::new(0, 0)),
                _ => rule.push(&Immediate::drop()),
            };
            let comment = if is_own { "agent: rule" } else { "theirs" };
            tx.add(&rule.with_comment(comment).unwrap()).unwrap();
        }
    }
    nft.commit(&tx).unwrap();
    snapshot(&mut nft)
}

/// From any state to any other: the agent's objects are as desired, and no others are touched.
#[test]
fn random_plans_keep_foreign_objects() {
    let rounds = crate::common::from_env("TAGGED", 20);
    let mut random = Random::new();
    let (mut changes, mut kept) = (0, 0);
    for _ in 0..rounds {
        let sandbox = sandbox();
        let mut kernel = connect(&sandbox);
        let start = fill(&mut random, true, true);
        let mut tx = Transaction::new();
        start.write_to(&mut tx).unwrap();
        kernel.commit(&tx).unwrap();
        let mut mirror = Mirror::open(connect(&sandbox), &Scope::all());
        for _ in 0..3 {
            // Only the agent's objects are desired; or others' too, which are not compared.
            let theirs = random.once_in(2);
            let wanted = fill(&mut random, theirs, true);
            let before = snapshot(&mut kernel);
            let plan = before.plan(&wanted, of_tag()).unwrap();
            kernel
                .commit(plan.transaction())
                .unwrap_or_else(|error| panic!("{}\n{plan}", report(&error)));
            let after = snapshot(&mut kernel);
            assert!(after.plan(&wanted, of_tag()).unwrap().is_empty(), "{plan}");
            let lost: Vec<_> = others(&before)
                .difference(&others(&after))
                .cloned()
                .collect();
            assert!(lost.is_empty(), "{lost:#?}\n{plan}");
            assert!(own(&after).is_superset(&own(&wanted)), "{plan}");
            changes += plan.transaction().len();
            kept += plan.kept_rules;
            // A mirror gives the same plan.
            if let Ok(mirror) = &mut mirror {
                mirror.update().unwrap();
                let wanted = std::sync::Arc::new(wanted);
                assert!(mirror.plan(&wanted, of_tag()).unwrap().is_empty());
            }
        }
    }
    println!("{rounds} rounds, {changes} operations, {kept} rules kept");
    assert!(changes > rounds * 5 && kept > rounds / 4);
}
