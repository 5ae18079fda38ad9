//! State that changes without a transaction, compared with the kernel: elements that time out, counters that are reset.

use std::collections::BTreeMap;
use std::time::Duration;

use chainwright::netlink::Error;
use chainwright::nft::expr::{
    Counter, Decoded, Dynset, Last, Limit, ObjectType, Payload, PayloadBase, Quota, QuotaFlags,
    Register, Verdict,
};
use chainwright::nft::live::{Item, Monitor, MonitorOptions};
use chainwright::nft::{
    Chain, Connection, DataType, Element, ElementFilter, ElementListing, Family, Listing,
    ObjectFilter, Rule, RuleFilter, Scope, Set, StatefulObject, Table, Transaction,
};
use chainwright_testing::FakeKernel;

const INET: Family = Family::INET;
const HOUR: Duration = Duration::from_secs(3600);

/// A connection to this machine's kernel and one to the fake.
fn kernel_and_fake() -> (FakeKernel, [Connection; 2]) {
    let fake = FakeKernel::new();
    let connected = fake.connect().unwrap();
    (
        fake,
        [crate::common::connect(&crate::common::sandbox()), connected],
    )
}

fn commit(nft: &mut Connection, write: impl FnOnce(&mut Transaction)) {
    let mut tx = Transaction::new();
    write(&mut tx);
    nft.commit(&tx).unwrap();
}

fn ports(name: &str) -> Set<'_> {
    Set::new(INET, "t", name, DataType::INET_SERVICE, 2)
}

fn port(port: u16) -> Element<'static> {
    Element::new(port.to_be_bytes().to_vec())
}

fn expires_in(element: Element<'static>, time: Duration) -> Element<'static> {
    Element {
        expiration: Some(time.into()),
        ..element.with_timeout(HOUR)
    }
}

/// Each element, with its remaining time rounded up to hours.
fn elements(nft: &mut Connection, sets: &[&str]) -> BTreeMap<String, Vec<String>> {
    let all = sets.iter().map(|&set| {
        let mut elements = Vec::new();
        let listing = nft.elements(INET, "t", set).unwrap();
        let each = listing.for_each(|element| {
            let hours = |time: Duration| time.as_millis().div_ceil(HOUR.as_millis());
            let (timeout, rest) = (element.timeout(), element.expiration().map(hours));
            elements.push(format!("{element} timeout {timeout:?} expires {rest:?}"));
        });
        each.unwrap();
        elements.sort();
        (set.to_owned(), elements)
    });
    all.collect()
}

fn events(monitor: &mut Monitor) -> Vec<String> {
    let mut events = Vec::new();
    while let Some(item) = monitor.try_receive().unwrap() {
        match item {
            Item::Change(change) => events.extend(change.events().map(|event| event.to_string())),
            other => panic!("{other:?}"),
        }
    }
    events
}

/// Elements of each kind of set expire as in the kernel: the same remain, without an event, and what they refer to is
/// free again.
#[test]
fn elements_expire_like_in_the_kernel() {
    let soon = Duration::from_millis(40);
    let [hash, tree, map, ranges] = ["hash", "tree", "map", "ranges"];
    let (fake, mut pair) = kernel_and_fake();
    let mut monitors = pair
        .each_ref()
        .map(|nft| MonitorOptions::default().open_in_namespace_of(nft).unwrap());
    let fields = [(DataType::INET_SERVICE, 2), (DataType::INET_SERVICE, 2)];
    let pairs = |from: u8, to: u8| {
        Element::range(
            vec![0, from, 0, 0, 0, from, 0, 0],
            vec![0, to, 0, 0, 0, to, 0, 0],
        )
    };
    for nft in &mut pair {
        commit(nft, |tx| {
            tx.add(&Table::new(INET, "t")).unwrap();
            tx.add(&Chain::new(INET, "t", "c")).unwrap();
            for set in [
                ports(hash).with_timeout(Some(HOUR)),
                ports(tree).with_timeout(None).with_interval(),
                ports(map).with_timeout(None).with_verdicts(),
                ports(ranges)
                    .with_timeout(Some(HOUR))
                    .with_interval_fields(&fields),
            ] {
                tx.add(&set).unwrap();
            }
            let jump = || Verdict::Jump("c".into());
            for (set, elements) in [
                (
                    hash,
                    vec![
                        port(1),
                        expires_in(port(2), soon),
                        port(3).with_timeout(soon),
                        port(4).with_timeout(Duration::ZERO),
                    ],
                ),
                (
                    tree,
                    vec![
                        expires_in(port(1), soon),
                        Element::end(&[0, 5]),
                        port(5),
                        Element::end(&[0, 9]),
                        port(30).with_timeout(HOUR),
                        Element::end(&[0, 40]),
                        expires_in(port(50), soon),
                    ],
                ),
                (
                    map,
                    vec![
                        expires_in(port(1), soon).with_verdict(jump()),
                        port(2).with_verdict(jump()),
                        Element::catch_all().with_timeout(soon).with_verdict(jump()),
                    ],
                ),
                (ranges, vec![expires_in(pairs(1, 5), soon), pairs(7, 9)]),
            ] {
                tx.add_elements(&ports(set).set_id(), elements).unwrap();
            }
        });
    }
    let sets = [hash, tree, map, ranges];
    let [kernel, of_fake] = &mut pair;
    fake.advance(soon);
    // The kernel removes expired elements of some sets only when the set changes.
    let touch = |nft: &mut Connection| {
        let probes = [
            (tree, vec![port(10), Element::end(&[0, 12])]),
            (ranges, vec![pairs(100, 100)]),
        ];
        for (set, probe) in &probes {
            commit(nft, |tx| {
                _ = tx.add_elements(&ports(set).set_id(), probe).unwrap()
            });
            commit(nft, |tx| {
                _ = tx.delete_elements(&ports(set).set_id(), probe).unwrap()
            });
        }
    };
    touch(of_fake);
    let state = |nft: &mut Connection| {
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let uses = nft.chain(INET, "t", "c").unwrap().unwrap().references();
        let counts = sets.map(|set| nft.set(INET, "t", set).unwrap().unwrap().count());
        drop(snapshot);
        (elements(nft, &sets), uses, counts)
    };
    let by_fake = state(of_fake);
    let mut by_kernel = state(kernel);
    for _ in 0..1000 {
        if by_kernel == by_fake {
            break;
        }
        touch(kernel);
        crate::common::tick();
        by_kernel = state(kernel);
    }
    assert_eq!(by_fake, by_kernel, "fake kernel (left) and kernel (right)");
    assert_eq!(by_fake.0[tree].len(), 4);
    let [by_kernel, by_fake] = monitors.each_mut().map(events);
    let mut of_kernel = by_kernel.clone();
    of_kernel.truncate(by_fake.len());
    assert_eq!(by_fake, of_kernel);
    // More events of the kernel are those of more probes.
    let probes = &by_fake[by_fake.len() - 6..];
    assert!(
        by_kernel[by_fake.len()..]
            .iter()
            .all(|event| probes.contains(event)),
        "{by_kernel:#?}"
    );
}

/// A new timeout or expiration of an element, and a new default of the set, change the same as in the kernel.
#[test]
fn timeouts_change_like_in_the_kernel() {
    let (fake, mut pair) = kernel_and_fake();
    let set = |hours| ports("s").with_timeout(Some(HOUR * hours));
    let first = Element {
        expiration: Some((HOUR * 2).into()),
        ..port(1).with_timeout(HOUR * 5)
    };
    let steps: [(&str, Set<'_>, Element<'static>); 11] = [
        ("new", set(3), first),
        ("again", set(3), port(1).with_timeout(HOUR * 5)),
        ("the default", set(3), port(1)),
        ("never", set(3), port(1).with_timeout(Duration::ZERO)),
        ("again never", set(3), port(1).with_timeout(Duration::ZERO)),
        (
            "expiration",
            set(3),
            Element {
                expiration: Some(HOUR.into()),
                ..port(1).with_timeout(HOUR * 4)
            },
        ),
        ("another default", set(6), port(1).with_timeout(HOUR * 4)),
        ("that default", set(6), port(1)),
        (
            "less",
            set(6),
            Element {
                expiration: Some(HOUR.into()),
                ..port(1)
            },
        ),
        (
            "no expiration again",
            set(6),
            Element {
                expiration: Some(Duration::ZERO.into()),
                ..port(1)
            },
        ),
        (
            "no expiration",
            set(6),
            Element {
                expiration: Some(Duration::ZERO.into()),
                ..port(2)
            },
        ),
    ];
    for (title, set, element) in steps {
        let [by_kernel, by_fake] = pair.each_mut().map(|nft| {
            commit(nft, |tx| {
                tx.add(&Table::new(INET, "t")).unwrap().add(&set).unwrap();
                tx.add_elements(&set.set_id(), [&element]).unwrap();
            });
            elements(nft, &["s"])
        });
        assert_eq!(
            by_fake, by_kernel,
            "{title}: fake kernel (left) and kernel (right)"
        );
    }
    // Time passes in milliseconds, also in smaller steps.
    let rest = |nft: &mut Connection| {
        let element = nft.element(INET, "t", "s", &port(1)).unwrap();
        element.map(|element| element.expiration().unwrap())
    };
    let of_fake = &mut pair[1];
    let before = rest(of_fake).unwrap();
    for _ in 0..4 {
        fake.advance(Duration::from_micros(500));
    }
    assert_eq!(rest(of_fake), Some(before - Duration::from_millis(2)));
    fake.advance(Duration::MAX);
    assert_eq!(rest(of_fake), None);
}

/// Each kind of reset returns the state and then changes it as in the kernel.
#[test]
fn counters_are_reset_like_in_the_kernel() {
    let (_, mut pair) = kernel_and_fake();
    let quota = |consumed, flags| Quota {
        bytes: Some(100),
        consumed: Some(consumed),
        flags: Some(flags),
        ..Quota::default()
    };
    let full = quota(100, QuotaFlags::INV);
    let some = quota(7, QuotaFlags::empty());
    let rule = |chain| Rule::new(INET, "t", chain);
    let log = ports("log").with_updates(10);
    let template = Dynset {
        expr: Some(chainwright::nft::expr::NestedExpression::new(
            &Counter::new(5, 6),
        )),
        ..Dynset::add("log", Register::R1)
    };
    for nft in &mut pair {
        commit(nft, |tx| {
            tx.add(&Table::new(INET, "t")).unwrap();
            for chain in ["c", "d"] {
                tx.add(&Chain::new(INET, "t", chain)).unwrap();
            }
            tx.add(&log).unwrap();
            tx.add(&rule("c").with(&Counter::new(1, 2)).with(&full))
                .unwrap();
            tx.add(
                &rule("c")
                    .with(&some)
                    .with(&Limit::packets(5, 1, 5))
                    .with(&Last::never()),
            )
            .unwrap();
            tx.add(
                &rule("c")
                    .with(&Payload::load(PayloadBase::TRANSPORT, 2, 2, Register::R1))
                    .with(&template),
            )
            .unwrap();
            tx.add(&rule("d").with(&Counter::new(3, 4))).unwrap();
            for (set, with) in [("one", Counter::new(0, 0)), ("other", Counter::new(0, 0))] {
                let set = ports(set).with_expression(&with);
                tx.add(&set).unwrap();
                let elements =
                    [1, 2].map(|n: u16| port(n).with_expression(&Counter::new(n.into(), 9)));
                tx.add_elements(&set.set_id(), elements).unwrap();
            }
            for name in ["x", "y"] {
                tx.add(&StatefulObject::new(INET, "t", name, Counter::new(7, 8)))
                    .unwrap();
            }
            tx.add(&StatefulObject::new(
                INET,
                "t",
                "x",
                full.clone().into_request(),
            ))
            .unwrap();
        });
    }
    type Reset = (&'static str, fn(&mut Connection) -> Vec<String>);
    let resets: [Reset; 9] = [
        ("a rule", |nft| {
            let mut rules = nft.rules(RuleFilter::chain(INET, "t", "c")).unwrap();
            let handle = rules.try_next().unwrap().unwrap().handle();
            drop(rules);
            let table = Scope::table(INET, "t");
            nft.reset_rule(&table, "c".into(), handle, ElementFilter::all())
                .unwrap()
                .unwrap();
            Vec::new()
        }),
        ("rules of a chain", |nft| {
            rules(nft.reset_rules(RuleFilter::chain(INET, "t", "c")))
        }),
        ("all rules", |nft| rules(nft.reset_rules(Scope::all()))),
        ("an element", |nft| {
            let element = nft.reset_element(INET, "t", "one", &port(1)).unwrap();
            vec![format!("{:?}", element.unwrap().to_builder())]
        }),
        ("elements", |nft| {
            elements_of(nft.reset_elements(INET, "t", "one"))
        }),
        ("a counter", |nft| {
            let object = nft
                .reset_object(INET, "t", ObjectType::COUNTER, "x")
                .unwrap();
            vec![format!("{:?}", object.unwrap().to_builder())]
        }),
        ("quotas", |nft| {
            objects(nft.reset_objects(ObjectFilter::of_type(Scope::all(), ObjectType::QUOTA)))
        }),
        ("all objects", |nft| {
            objects(nft.reset_objects(Scope::all()))
        }),
        ("nothing left", |nft| rules(nft.reset_rules(Scope::all()))),
    ];
    let state = |nft: &mut Connection| {
        let mut all = rules(nft.rules(Scope::all()));
        all.extend(objects(nft.objects(Scope::all())));
        all.extend(
            ["one", "other"]
                .iter()
                .flat_map(|&set| elements_of(nft.elements(INET, "t", set))),
        );
        all
    };
    let mut states = vec![pair.each_mut().map(state)];
    for (title, reset) in resets {
        let [by_kernel, by_fake] = pair.each_mut().map(reset);
        assert_eq!(
            by_fake, by_kernel,
            "{title}: reply of the fake kernel (left) and of the kernel (right)"
        );
        let [by_kernel, by_fake] = pair.each_mut().map(state);
        assert_eq!(
            by_fake, by_kernel,
            "after {title}: fake kernel (left) and kernel (right)"
        );
        states.push([by_kernel, by_fake]);
    }
    // Each reset but the last changed something.
    let changed = states.windows(2).map(|pair| pair[0] != pair[1]);
    assert_eq!(changed.filter(|&changed| changed).count(), 8);
    assert!(
        pair[1]
            .reset_element(INET, "t", "one", &port(9))
            .unwrap()
            .is_none()
    );
}

/// The kernel does not reset the time of the last packet.
#[test]
fn times_of_packets_remain() {
    let (fake, mut pair) = kernel_and_fake();
    for nft in &mut pair {
        commit(nft, |tx| {
            tx.add(&Table::new(INET, "t")).unwrap();
            tx.add(&Chain::new(INET, "t", "c")).unwrap();
            for last in [Last::ago(3_600_000), Last::never()] {
                tx.add(&Rule::new(INET, "t", "c").with(&last)).unwrap();
            }
        });
    }
    let hours = |nft: &mut Connection| {
        let mut hours = Vec::new();
        let each = nft.reset_rules(Scope::all()).unwrap().for_each(|rule| {
            let expression = rule.expressions().unwrap().next().unwrap().unwrap();
            match expression.decode() {
                Ok(Decoded::Last(last)) => hours.push((last.set, last.msecs.unwrap() / 3_600_000)),
                other => panic!("{other:?}"),
            }
        });
        each.unwrap();
        hours
    };
    for _ in 0..2 {
        assert_eq!(
            pair.each_mut().map(hours),
            [[(Some(1), 1), (Some(0), 0)]; 2]
        );
    }
    fake.advance(HOUR);
    assert_eq!(hours(&mut pair[1]), [(Some(1), 2), (Some(0), 0)]);
}

fn rules(listing: Result<Listing<'_, Rule<'static>>, Error>) -> Vec<String> {
    let mut rules = Vec::new();
    let each = listing
        .unwrap()
        .for_each(|rule| rules.push(format!("{:?}", rule.to_builder())));
    each.unwrap();
    rules
}

fn objects(listing: Result<Listing<'_, StatefulObject<'static>>, Error>) -> Vec<String> {
    let mut objects = Vec::new();
    let each = listing
        .unwrap()
        .for_each(|object| objects.push(format!("{:?}", object.to_builder())));
    each.unwrap();
    objects
}

fn elements_of(listing: Result<ElementListing<'_>, Error>) -> Vec<String> {
    let mut elements = Vec::new();
    let each = listing
        .unwrap()
        .for_each(|element| elements.push(format!("{:?}", element.to_builder())));
    each.unwrap();
    elements.sort();
    elements
}
