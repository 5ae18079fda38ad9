//! Sets, maps and their elements against the kernel, with `nft` as the oracle.

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use chainwright::netlink::Error;
use chainwright::nft::expr::{
    Counter, Data, Decoded, Limit, Lookup, ObjectType, Payload, PayloadBase, Quota, Register,
    Verdict,
};
use chainwright::nft::{
    Chain, CommitError, Connection, DataType, Element, ElementFlags, Family, Filter, Milliseconds,
    Outcome, Rule, Set, SetFlags, SetId, StatefulObject, Table, Transaction, concatenation,
};
use common::tools::Tools;
use common::{connect, kernel, report, sandbox};
use serde_json::{Value, json};

const IP: Family = Family::IP;

#[track_caller]
fn committed(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) {
    let mut tx = Transaction::new();
    fill(&mut tx);
    if let Err(error) = nft.commit(&tx) {
        panic!("{}", report(&error));
    }
}

/// Commits what `fill` adds to a transaction, which must fail and change nothing: the lines of its
/// failures.
#[track_caller]
fn refused(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) -> Vec<String> {
    let mut tx = Transaction::new();
    fill(&mut tx);
    let error: CommitError = nft.commit(&tx).unwrap_err();
    assert_eq!(error.outcome, Outcome::NothingApplied, "{error}");
    error.failures.iter().map(ToString::to_string).collect()
}

/// All elements of a set as builders, sorted by key.
#[track_caller]
fn elements(nft: &mut Connection, set: &str) -> Vec<Element<'static>> {
    let mut all = Vec::new();
    let mut listing = nft.elements(IP, "t", set).unwrap();
    while let Some(element) = listing.next().unwrap() {
        all.push(element.to_builder().into_owned());
    }
    drop(listing);
    let mut again = 0;
    nft.elements(IP, "t", set)
        .unwrap()
        .for_each(|_| again += 1)
        .unwrap();
    assert_eq!(again, all.len());
    let key = |element: &Element<'_>| {
        let bytes = element
            .key
            .as_ref()
            .and_then(Data::as_value)
            .map(<[u8]>::to_vec);
        (bytes, element.flags.map(|flags| flags.bits()))
    };
    all.sort_by_key(key);
    all
}

/// The elements of a set as `nft -j` lists them.
#[track_caller]
fn oracle(tools: &Tools<'_>, kind: &str, set: &str) -> Value {
    let objects = tools.nft_json(&format!("list {kind} ip t {set}"));
    let found = objects.iter().find_map(|object| object.get(kind));
    found.unwrap_or_else(|| panic!("nft lists no {kind}: {objects:?}"))["elem"].clone()
}

/// A table `t` with the sets.
#[track_caller]
fn with_sets(nft: &mut Connection, sets: &[Set<'_>]) {
    committed(nft, |tx| {
        tx.add(&Table::new(IP, "t")).unwrap();
        for set in sets {
            tx.add(set).unwrap();
        }
    });
}

/// Has nft load a text, without the catch-all element in it where the kernel has none.
#[track_caller]
fn load(tools: &Tools<'_>, catch_all: bool, text: &str) {
    let without = text.replace(", * : drop", "");
    assert_ne!(text, without, "there is one");
    tools.run_with("nft -f -", if catch_all { text } else { &without });
}

fn id(set: &str) -> SetId<'_> {
    SetId::new(IP, "t", set)
}

/// Whether a failure is this, at this element of the message. Linux 5.10 does not point at elements: there it
/// is said that it does not.
#[track_caller]
fn is_at(failure: &str, what: &str, element: &str, hint: &str) -> bool {
    if !failure.contains(", at ") {
        println!(
            "this kernel lacks pointers at the elements that it refuses: the error names the operation"
        );
        return failure.starts_with(what) && failure.contains(hint);
    }
    failure.starts_with(what)
        && failure.contains(&format!(", at NFTA_SET_ELEM_LIST_ELEMENTS, {element}"))
        && failure.contains(hint)
}

/// Whether the kernel counts the elements of a set in the set's own message; where it does not there is no
/// number, rather than a wrong one.
fn counted(nft: &mut Connection, set: &str, count: u32) {
    match nft.set(IP, "t", set).unwrap().unwrap().count() {
        Some(counted) => assert_eq!(counted, count),
        None => {
            println!("this kernel lacks the number of elements of a set, there since Linux 6.16")
        }
    }
}

fn addresses(name: &str) -> Set<'_> {
    Set::new(IP, "t", name, DataType::IPV4_ADDR, 4)
}

#[test]
fn elements_are_added_looked_up_and_deleted() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    with_sets(
        &mut nft,
        &[addresses("s").with_comment("of addresses").unwrap()],
    );
    let (one, two) = (Element::new(&[10, 0, 0, 1]), Element::new(&[10, 0, 0, 2]));
    let one = one.with_comment("the first").unwrap();
    committed(&mut nft, |tx| {
        tx.add_elements(&id("s"), [&two, &one]).unwrap();
    });
    assert_eq!(elements(&mut nft, "s"), [one.clone(), two.clone()]);
    let mut listed = oracle(&tools, "set", "s");
    listed
        .as_array_mut()
        .unwrap()
        .sort_by_key(ToString::to_string);
    assert_eq!(
        listed,
        json!(["10.0.0.2", {"elem": {"val": "10.0.0.1", "comment": "the first"}}])
    );
    let set = &tools.nft_json("list set ip t s")[1]["set"];
    assert_eq!(set["comment"], "of addresses");
    assert_eq!(set["type"], "ipv4_addr");

    // Adding them again changes nothing; creating them fails and says which.
    committed(&mut nft, |tx| {
        tx.add_elements(&id("s"), [&two, &one]).unwrap();
    });
    let failures = refused(&mut nft, |tx| {
        tx.create_elements(&id("s"), [&Element::new(&[10, 0, 0, 9]), &two])
            .unwrap();
    });
    assert_eq!(failures.len(), 1);
    assert!(
        is_at(
            &failures[0],
            "create element ip t s #0: EEXIST (File exists)",
            "element 1 (0a000002)",
            "an element with this key"
        ),
        "{failures:?}"
    );

    let found = nft.element(IP, "t", "s", &one).unwrap().unwrap();
    assert_eq!(found.comment(), Some("the first".into()));
    assert_eq!(found.key_bytes(), Some(&[10, 0, 0, 1][..]));
    let absent = Element::new(&[10, 0, 0, 3]);
    assert!(nft.element(IP, "t", "s", &absent).unwrap().is_none());
    assert!(nft.element(IP, "t", "no", &one).unwrap().is_none());
    assert!(nft.element(IP, "no", "s", &one).unwrap().is_none());
    // A key of another length is an error, not an absent element.
    let error = nft
        .element(IP, "t", "s", &Element::new(&[1, 2]))
        .unwrap_err();
    assert_eq!(error.errno().unwrap().name(), "EINVAL", "{error}");

    let failures = refused(&mut nft, |tx| {
        tx.delete_elements(&id("s"), [&one, &absent]).unwrap();
    });
    assert!(
        is_at(
            &failures[0],
            "delete element ip t s #0: ENOENT (No such file or directory)",
            "element 1 (0a000003)",
            "its set does not exist, or an element is not in it"
        ),
        "{failures:?}"
    );
    let mut tx = Transaction::new();
    tx.destroy_elements(&id("s"), [&one, &absent]).unwrap();
    if !kernel::commit_if_known(&mut nft, &mut tx, &["`destroy`"]) {
        committed(&mut nft, |tx| {
            tx.delete_elements(&id("s"), [&one]).unwrap();
        });
    }
    assert_eq!(elements(&mut nft, "s"), [two]);
    committed(&mut nft, |tx| {
        tx.flush_set(&id("s")).unwrap();
    });
    assert_eq!(elements(&mut nft, "s"), []);

    // A deletion without elements deletes nothing.
    committed(&mut nft, |tx| {
        tx.add_elements(&id("s"), [&one]).unwrap();
    });
    let none: [Element<'_>; 0] = [];
    committed(&mut nft, |tx| {
        tx.delete_elements(&id("s"), &none).unwrap();
        tx.delete(&chainwright::nft::Elements {
            family: IP,
            table: Some("t".into()),
            set: Some("s".into()),
            ..Default::default()
        })
        .unwrap();
    });
    assert_eq!(elements(&mut nft, "s"), [one]);
}

#[test]
fn sets_are_listed_and_looked_up() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    with_sets(&mut nft, &[addresses("a"), addresses("b").with_size(7)]);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(Family::IP6, "t")).unwrap();
        tx.add(&Set::new(Family::IP6, "t", "c", DataType::IPV6_ADDR, 16))
            .unwrap();
        tx.add(&Table::new(IP, "u")).unwrap();
        tx.add(&Set::new(IP, "u", "d", DataType::INET_SERVICE, 2))
            .unwrap();
    });
    for (filter, expected) in [
        (Filter::all(), "abdc"),
        (Filter::family(IP), "abd"),
        (Filter::table(IP, "t"), "ab"),
        (Filter::table(Family::UNSPEC, "t"), "abc"),
        (Filter::table(IP, "u"), "d"),
        (Filter::table(IP, "no"), ""),
        (Filter::table(Family::ARP, "t"), ""),
    ] {
        let mut names = Vec::new();
        let mut sets = nft.sets(filter.clone()).unwrap();
        while let Some(set) = sets.next().unwrap() {
            names.push(set.name().to_string());
        }
        drop(sets);
        names.sort();
        let mut expected: Vec<_> = expected.chars().map(String::from).collect();
        expected.sort();
        assert_eq!(names, expected, "{filter:?}");
    }
    counted(&mut nft, "b", 0);
    let set = nft.set(IP, "t", "b").unwrap().unwrap();
    assert_eq!(set.description().unwrap().size, Some(7));
    let builder = set.to_builder().into_owned();
    assert!(nft.set(IP, "t", "c").unwrap().is_none());
    assert!(nft.set(IP, "no", "c").unwrap().is_none());
    // What was read can be written: as what is there already, and elsewhere.
    committed(&mut nft, |tx| {
        tx.add(&Set {
            handle: None,
            ..builder.clone()
        })
        .unwrap();
        tx.create(&Set {
            handle: None,
            name: Some("e".into()),
            ..builder.clone()
        })
        .unwrap();
        tx.delete(&builder).unwrap();
    });
    assert!(nft.set(IP, "t", "b").unwrap().is_none());
    assert!(nft.set(IP, "t", "e").unwrap().is_some());

    let Err(Error::Refused { errno, .. }) = nft.elements(IP, "t", "no").unwrap().next() else {
        panic!("the elements of a set that is not there");
    };
    assert_eq!(errno.name(), "ENOENT");
}

#[test]
fn a_full_set_and_keys_of_another_length_are_named() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    with_sets(&mut nft, &[addresses("s").with_size(2)]);
    let keys: Vec<_> = (1..=3u8).map(|n| [10, 0, 0, n]).collect();
    let failures = refused(&mut nft, |tx| {
        tx.add_elements(&id("s"), keys.iter().map(Element::new))
            .unwrap();
    });
    assert!(
        is_at(
            &failures[0],
            "add element ip t s #0: ENFILE",
            "element 2 (0a000003)",
            "the set is full"
        ),
        "{failures:?}"
    );
    assert!(failures[0].contains("the set is full"), "{failures:?}");
    let failures = refused(&mut nft, |tx| {
        tx.add_elements(&id("s"), [Element::new(&[1; 6])]).unwrap();
    });
    assert!(
        is_at(
            &failures[0],
            "add element ip t s #0: EINVAL",
            "element 0 (010101010101)",
            "a key or data of another length"
        ),
        "{failures:?}"
    );
    let failures = refused(&mut nft, |tx| {
        tx.add_elements(&id("no"), [Element::new(&[1; 4])]).unwrap();
    });
    assert!(
        failures[0].starts_with("add element ip t no #0: ENOENT"),
        "{failures:?}"
    );
    // An anonymous set that no rule uses.
    let failures = refused(&mut nft, |tx| {
        let set = Set::anonymous(IP, "t", "__set%d", 5, DataType::IPV4_ADDR, 4);
        tx.add(&set).unwrap();
    });
    assert!(
        failures[0].contains("EINVAL") && failures[0].contains("anonymous set"),
        "{failures:?}"
    );
}

#[test]
fn maps_of_values_and_verdicts_and_a_catch_all() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    with_sets(
        &mut nft,
        &[
            addresses("m").with_data(DataType::MARK, 4),
            addresses("v").with_verdicts(),
        ],
    );
    let marks = [
        Element::new(&[10, 0, 0, 1]).with_data(&5u32.to_ne_bytes()),
        Element::new(&[10, 0, 0, 2]).with_data(&6u32.to_ne_bytes()),
    ]
    .map(Element::into_owned);
    let verdicts = [
        Element::catch_all().with_verdict(Verdict::Drop),
        Element::new(&[10, 0, 0, 1]).with_verdict(Verdict::Jump("c".into())),
        Element::new(&[10, 0, 0, 2]).with_verdict(Verdict::Accept),
        Element::new(&[10, 0, 0, 3]).with_verdict(Verdict::Goto("c".into())),
    ];
    committed(&mut nft, |tx| {
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        tx.add_elements(&id("m"), &marks).unwrap();
        tx.add_elements(&id("v"), &verdicts[1..]).unwrap();
    });
    let mut tx = Transaction::new();
    tx.add_elements(&id("v"), &verdicts[..1]).unwrap();
    // Without it the rest of the test is about the others.
    let known = kernel::commit_if_known(&mut nft, &mut tx, &["catch-all elements"]);
    let first = usize::from(!known);
    assert_eq!(elements(&mut nft, "m"), marks);
    assert_eq!(elements(&mut nft, "v"), verdicts[first..]);
    let mut listed = oracle(&tools, "map", "v");
    listed
        .as_array_mut()
        .unwrap()
        .sort_by_key(ToString::to_string);
    let expected = [
        json!(["*", {"drop": null}]),
        json!(["10.0.0.1", {"jump": {"target": "c"}}]),
        json!(["10.0.0.2", {"accept": null}]),
        json!(["10.0.0.3", {"goto": {"target": "c"}}]),
    ];
    assert_eq!(listed, json!(expected[first..]));
    let mut listed = oracle(&tools, "map", "m");
    listed
        .as_array_mut()
        .unwrap()
        .sort_by_key(ToString::to_string);
    assert_eq!(listed, json!([["10.0.0.1", 5], ["10.0.0.2", 6]]));

    // Other data for a key that is there.
    let failures = refused(&mut nft, |tx| {
        let other = Element::new(&[10, 0, 0, 1]).with_data(&[9; 4]);
        tx.add_elements(&id("m"), [other]).unwrap();
    });
    assert!(
        failures[0].contains("EEXIST") && failures[0].contains("with other data"),
        "{failures:?}"
    );
    // Jumps to where there is nothing.
    let failures = refused(&mut nft, |tx| {
        let nowhere = Element::new(&[9; 4]).with_verdict(Verdict::Jump("no".into()));
        tx.add_elements(&id("v"), [nowhere]).unwrap();
    });
    assert!(failures[0].contains("ENOENT"), "{failures:?}");
    if known {
        let rest = nft.element(IP, "t", "v", &Element::catch_all()).unwrap();
        assert!(rest.unwrap().is_catch_all());
    }
    committed(&mut nft, |tx| {
        tx.delete_elements(&id("v"), &verdicts[first..2]).unwrap();
    });
    assert_eq!(elements(&mut nft, "v"), verdicts[2..]);
    committed(&mut nft, |tx| {
        // The chain is in use by what is deleted before it.
        tx.flush_set(&id("v")).unwrap();
        tx.delete(&Chain::new(IP, "t", "c")).unwrap();
    });
}

#[test]
fn maps_of_objects() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    let counter = StatefulObject::new(IP, "t", "n", Counter::new(0, 0));
    with_sets(
        &mut nft,
        &[addresses("o").with_objects(ObjectType::COUNTER)],
    );
    let element = Element::new(&[10, 0, 0, 1]).with_object("n");
    committed(&mut nft, |tx| {
        tx.add(&counter).unwrap();
        tx.add_elements(&id("o"), [&element]).unwrap();
    });
    assert_eq!(elements(&mut nft, "o"), std::slice::from_ref(&element));
    assert_eq!(oracle(&tools, "map", "o"), json!([["10.0.0.1", "n"]]));
    let failures = refused(&mut nft, |tx| {
        tx.add_elements(&id("o"), [Element::new(&[9; 4]).with_object("no")])
            .unwrap();
    });
    assert!(failures[0].contains("ENOENT"), "{failures:?}");
    let failures = refused(&mut nft, |tx| {
        tx.delete(&counter).unwrap();
    });
    assert!(
        failures[0].starts_with("delete counter ip t n #0: EBUSY"),
        "{failures:?}"
    );
    let object = nft.object(IP, "t", ObjectType::COUNTER, "n").unwrap();
    assert_eq!(object.unwrap().references(), Some(1));
    committed(&mut nft, |tx| {
        tx.delete_elements(&id("o"), [&element]).unwrap();
        tx.delete(&counter).unwrap();
    });
}

#[test]
fn ranges() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    with_sets(
        &mut nft,
        &[
            addresses("i").with_interval(),
            addresses("im")
                .with_interval()
                .with_data(DataType::INET_SERVICE, 2),
        ],
    );
    // Not in order, two of them side by side, one to the end.
    let mut ranges = Vec::new();
    ranges.extend(Element::interval(&[10, 0, 1, 0], &[10, 0, 2, 0]));
    ranges.extend(Element::interval(&[10, 0, 0, 0], &[10, 0, 1, 0]));
    ranges.extend(Element::interval(&[192, 168, 0, 1], &[192, 168, 0, 10]));
    ranges.push(Element::open_interval(&[255, 255, 255, 0]));
    let [start, end] = Element::interval(&[10, 0, 0, 0], &[10, 0, 1, 0]);
    let maps = [start.with_data(&[0, 80]), end];
    committed(&mut nft, |tx| {
        tx.add_elements(&id("i"), &ranges).unwrap();
        tx.add_elements(&id("im"), &maps).unwrap();
    });
    assert_eq!(
        oracle(&tools, "set", "i"),
        json!([
            {"prefix": {"addr": "10.0.0.0", "len": 24}},
            {"prefix": {"addr": "10.0.1.0", "len": 24}},
            {"range": ["192.168.0.1", "192.168.0.9"]},
            {"prefix": {"addr": "255.255.255.0", "len": 24}},
        ])
    );
    assert_eq!(
        oracle(&tools, "map", "im"),
        json!([[{"prefix": {"addr": "10.0.0.0", "len": 24}}, 80]])
    );
    assert_eq!(elements(&mut nft, "im"), maps);
    let listed = elements(&mut nft, "i");
    assert_eq!(listed.len(), ranges.len());

    // A key in a range leads to its start, and to its end if that is asked for.
    let inside = Element::new(&[192, 168, 0, 5]);
    let start = nft.element(IP, "t", "i", &inside).unwrap().unwrap();
    assert_eq!(start.key_bytes(), Some(&[192, 168, 0, 1][..]));
    let inside = Element::end(&[192, 168, 0, 5]);
    let end = nft.element(IP, "t", "i", &inside).unwrap().unwrap();
    assert_eq!(end.key_bytes(), Some(&[192, 168, 0, 10][..]));
    assert!(end.is_interval_end());
    let outside = Element::new(&[192, 168, 0, 10]);
    assert!(nft.element(IP, "t", "i", &outside).unwrap().is_none());

    let failures = refused(&mut nft, |tx| {
        let overlapping = Element::interval(&[10, 0, 0, 128], &[10, 0, 3, 0]);
        tx.add_elements(&id("i"), overlapping).unwrap();
    });
    assert!(failures[0].contains("EEXIST"), "{failures:?}");

    committed(&mut nft, |tx| {
        tx.delete_elements(&id("i"), &ranges[..2]).unwrap();
    });
    assert_eq!(
        oracle(&tools, "set", "i")[0],
        json!({"prefix": {"addr": "10.0.0.0", "len": 24}})
    );
    assert_eq!(elements(&mut nft, "i").len(), ranges.len() - 2);
    // What nft adds reads as ranges, too.
    tools.run("nft add element ip t i { 172.16.0.0/12 }");
    let inside = Element::new(&[172, 31, 0, 5]);
    let start = nft.element(IP, "t", "i", &inside).unwrap().unwrap();
    assert_eq!(start.key_bytes(), Some(&[172, 16, 0, 0][..]));
    tools.run("nft delete element ip t i { 10.0.0.0/24 }");
}

#[test]
fn several_values_at_once() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    let fields = [(DataType::IPV4_ADDR, 4), (DataType::INET_SERVICE, 2)];
    let set = |name| Set::new(IP, "t", name, DataType::VALUE, 0);
    with_sets(
        &mut nft,
        &[
            set("c").with_fields(&fields),
            set("r").with_interval_fields(&fields),
        ],
    );
    let key = |address: [u8; 4], port: u16| concatenation([&address[..], &port.to_be_bytes()]);
    let range = Element::range(key([10, 0, 0, 0], 80), key([10, 0, 0, 255], 90));
    committed(&mut nft, |tx| {
        tx.add_elements(&id("c"), [Element::new(key([10, 0, 0, 1], 443))])
            .unwrap();
        tx.add_elements(&id("r"), [&range]).unwrap();
    });
    assert_eq!(
        oracle(&tools, "set", "c"),
        json!([{"concat": ["10.0.0.1", 443]}])
    );
    assert_eq!(
        oracle(&tools, "set", "r"),
        json!([{"concat": [{"prefix": {"addr": "10.0.0.0", "len": 24}}, {"range": [80, 90]}]}])
    );
    assert_eq!(elements(&mut nft, "r"), std::slice::from_ref(&range));
    let inside = Element::new(key([10, 0, 0, 77], 85));
    let found = nft.element(IP, "t", "r", &inside).unwrap().unwrap();
    assert_eq!(found.to_builder(), range);
    assert_eq!(found.key_end_bytes(), Some(&key([10, 0, 0, 255], 90)[..]));
    let outside = Element::new(key([10, 0, 0, 77], 95));
    assert!(nft.element(IP, "t", "r", &outside).unwrap().is_none());
    // nft makes the same sets.
    tools.run("nft add set ip t nc { type ipv4_addr . inet_service; }");
    tools.run("nft add set ip t nr { type ipv4_addr . inet_service; flags interval; }");
    for (ours, theirs) in [("c", "nc"), ("r", "nr")] {
        let mut sets = [ours, theirs].map(|name| {
            let set = nft.set(IP, "t", name).unwrap().unwrap();
            set.to_builder().into_owned()
        });
        for set in &mut sets {
            // The user data holds what `typeof` would print.
            (set.name, set.handle, set.userdata) = (None, None, None);
        }
        assert_eq!(sets[0], sets[1]);
    }
    committed(&mut nft, |tx| {
        tx.delete_elements(&id("r"), [&range]).unwrap();
    });
    assert_eq!(elements(&mut nft, "r"), []);
}

#[test]
fn timeouts() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    with_sets(
        &mut nft,
        &[
            addresses("s").with_timeout(Some(Duration::from_secs(3_600))),
            addresses("no"),
        ],
    );
    let element = |n: u8| Element::new(vec![10, 0, 0, n]);
    committed(&mut nft, |tx| {
        let own = element(1).with_timeout(Duration::from_secs(60));
        let begun = Element {
            expiration: Some(Milliseconds(30_000)),
            ..element(2).with_timeout(Duration::from_secs(60))
        };
        tx.add_elements(&id("s"), [own, begun, element(3)]).unwrap();
    });
    let listed = elements(&mut nft, "s");
    let timeouts: Vec<_> = listed.iter().map(|element| element.timeout).collect();
    let minute = Some(Milliseconds(60_000));
    assert_eq!(timeouts, [minute, minute, None]);
    for (element, above, most) in [
        (&listed[0], 30_000, 60_000),
        (&listed[1], 10_000, 30_000),
        (&listed[2], 3_000_000, 3_600_000),
    ] {
        let Milliseconds(left) = element.expiration.unwrap();
        assert!((above..=most).contains(&left), "{element:?}");
    }
    let set = nft.set(IP, "t", "s").unwrap().unwrap();
    assert_eq!(set.timeout(), Some(Duration::from_secs(3_600)));
    let json = tools.nft_json("list set ip t s");
    assert_eq!(json[1]["set"]["timeout"], 3600);
    assert_eq!(json[1]["set"]["elem"].as_array().unwrap().len(), 3);
    // One that has almost gone, goes.
    committed(&mut nft, |tx| {
        tx.add_elements(
            &id("s"),
            [element(4).with_timeout(Duration::from_millis(20))],
        )
        .unwrap();
    });
    std::thread::sleep(std::time::Duration::from_millis(60));
    assert!(nft.element(IP, "t", "s", &element(4)).unwrap().is_none());
    let failures = refused(&mut nft, |tx| {
        tx.add_elements(
            &id("no"),
            [element(1).with_timeout(Duration::from_millis(5))],
        )
        .unwrap();
    });
    assert!(failures[0].contains("EINVAL"), "{failures:?}");
}

#[test]
fn counters_of_elements_are_set_back() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    with_sets(
        &mut nft,
        &[addresses("s").with_expression(&Counter::default())],
    );
    let mut tx = Transaction::new();
    let two = addresses("two")
        .with_updates(100)
        .with_expression(&Counter::default())
        .with_expression(&Limit::packets(5, 1, 5));
    tx.add(&two).unwrap();
    let several = kernel::commit_if_known(&mut nft, &mut tx, &["several statements in an element"]);
    let element =
        |n: u8| Element::new(vec![10, 0, 0, n]).with_expression(&Counter::new(n.into(), 100));
    let both = element(7).with_expression(&Limit::packets(5, 1, 5));
    committed(&mut nft, |tx| {
        tx.add_elements(&id("s"), [element(1), element(2)]).unwrap();
        if several {
            tx.add_elements(&id("two"), [&both]).unwrap();
        }
    });
    let packets = |element: &Element<'_>| match element.expression.as_ref().unwrap().decode() {
        Ok(Decoded::Counter(counter)) => counter.packets.unwrap(),
        other => panic!("{other:?}"),
    };
    let counts =
        |nft: &mut Connection| -> Vec<_> { elements(nft, "s").iter().map(packets).collect() };
    assert_eq!(counts(&mut nft), [1, 2]);
    assert_eq!(
        oracle(&tools, "set", "s")[0]["elem"]["counter"]["bytes"],
        100
    );
    if several {
        let listed = elements(&mut nft, "two");
        let expressions = listed[0].expressions.as_ref().unwrap();
        let decoded: Vec<_> = expressions
            .iter()
            .map(|expression| expression.unwrap().decode().unwrap())
            .collect();
        assert_eq!(decoded[0], Decoded::Counter(Counter::new(7, 100)));
        assert!(matches!(decoded[1], Decoded::Limit(_)));
        assert_eq!(
            nft.set(IP, "t", "two").unwrap().unwrap().flags(),
            Some(SetFlags::EVAL | SetFlags::EXPR)
        );
    }

    let one = Element::new(&[10, 0, 0, 1]);
    let reset = nft.reset_element(IP, "t", "s", &one);
    if let Some(before) = kernel::if_known(reset) {
        assert_eq!(packets(&before.unwrap().to_builder()), 1);
        assert_eq!(counts(&mut nft), [0, 2]);
    }
    let mut before = BTreeMap::new();
    let reset = nft
        .reset_elements(IP, "t", "s")
        .unwrap()
        .for_each(|element| {
            let key = element.key_bytes().unwrap().to_vec();
            before.insert(key, packets(&element.to_builder()));
        });
    if kernel::if_known(reset).is_some() {
        assert_eq!(before.into_values().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(counts(&mut nft), [0, 0]);
    } else {
        assert_eq!(counts(&mut nft), [1, 2]); // refused, not half done
    }

    // Expressions that are not the set's.
    let failures = refused(&mut nft, |tx| {
        let quota = Element::new(&[9; 4]).with_expression(&Quota {
            bytes: Some(5),
            ..Quota::default()
        });
        tx.add_elements(&id("s"), [quota]).unwrap();
    });
    assert!(
        is_at(
            &failures[0],
            "add element ip t s #0: ",
            "element 0 (09090909)",
            ""
        ),
        "{failures:?}"
    );
}

#[test]
fn an_anonymous_set_goes_with_its_rule() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    with_sets(&mut nft, &[]);
    let set = Set::anonymous(IP, "t", "__set%d", 5, DataType::IPV4_ADDR, 4).with_size(2);
    let lookup = Lookup {
        set_id: Some(5),
        ..Lookup::set(Register::R1, "__set%d")
    };
    let rule = Rule::new(IP, "t", "c")
        .with(&Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1))
        .with(&lookup);
    committed(&mut nft, |tx| {
        tx.add(&Chain::new(IP, "t", "c")).unwrap();
        tx.add(&set).unwrap();
        let keys = [[1, 1, 1, 1], [2, 2, 2, 2]];
        tx.add_elements(&set.set_id(), keys.iter().map(Element::new))
            .unwrap();
        tx.add(&rule).unwrap();
    });
    let text = tools.run("nft list chain ip t c");
    assert!(text.contains("ip saddr { 1.1.1.1, 2.2.2.2 }"), "{text}");
    let set = nft.set(IP, "t", "__set0").unwrap().unwrap();
    assert_eq!(set.flags(), Some(SetFlags::ANONYMOUS | SetFlags::CONSTANT));
    committed(&mut nft, |tx| {
        tx.flush_chain(IP, "t", "c").unwrap();
    });
    assert!(nft.set(IP, "t", "__set0").unwrap().is_none());
}

/// Numbers that the transaction gives: none twice, whatever the sets say themselves.
#[test]
fn a_transaction_numbers_its_anonymous_sets() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    with_sets(&mut nft, &[]);
    let set = Set::anonymous(IP, "t", "__set%d", 5, DataType::IPV4_ADDR, 4).with_size(2);
    let mut tx = Transaction::new();
    tx.add(&Chain::new(IP, "t", "c")).unwrap();
    for last in [1, 2, 3] {
        let id = tx.add_anonymous(&set).unwrap();
        tx.add_elements(&id, [Element::new(&[10, 0, 0, last])])
            .unwrap();
        let lookup = Lookup {
            set_id: id.id,
            ..Lookup::set(Register::R1, "__set%d")
        };
        let rule = Rule::new(IP, "t", "c")
            .with(&Payload::load(PayloadBase::NETWORK, 12, 4, Register::R1))
            .with(&lookup);
        tx.add(&rule).unwrap();
    }
    nft.commit(&tx).unwrap_or_else(|error| panic!("{error}"));
    let text = tools.run("nft list chain ip t c");
    for last in [1, 2, 3] {
        let rule = format!("ip saddr {{ 10.0.0.{last} }}");
        assert!(text.contains(&rule), "{text}");
    }
}

/// More than fit into 24 messages of the transaction, and into as many of the listing; with a
/// listing that is given up half-way, and one that `next` begins and `for_each` ends.
#[test]
fn a_hundred_thousand_elements_in_one_transaction() {
    const COUNT: u32 = 100_000;
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    with_sets(&mut nft, &[addresses("s")]);
    let mut tx = Transaction::new();
    let keys: Vec<_> = (0..COUNT).map(u32::to_be_bytes).collect();
    tx.add_elements(&id("s"), keys.iter().map(Element::new))
        .unwrap();
    assert_eq!(tx.len(), 25);
    let fits = kernel::commit_if_it_fits(&mut nft, &mut tx);
    if !fits {
        for piece in keys.chunks(10_000) {
            committed(&mut nft, |tx| {
                tx.add_elements(&id("s"), piece.iter().map(Element::new))
                    .unwrap();
            });
        }
    }
    counted(&mut nft, "s", COUNT);
    // The kernel rebuilds the grown hash table in the background, and a dump meanwhile repeats elements:
    // a snapshot waits for a listing without any.
    nft.snapshot(Filter::all()).unwrap();
    let mut seen = vec![false; COUNT as usize];
    let mark = |seen: &mut Vec<bool>, key: &[u8]| {
        let key = u32::from_be_bytes(key.try_into().unwrap());
        assert!(!std::mem::replace(&mut seen[key as usize], true), "{key}");
    };
    let mut listing = nft.elements(IP, "t", "s").unwrap();
    for _ in 0..5_000 {
        let element = listing.next().unwrap().unwrap();
        mark(&mut seen, element.key_bytes().unwrap());
    }
    listing
        .for_each(|element| mark(&mut seen, element.key_bytes().unwrap()))
        .unwrap();
    assert!(seen.iter().all(|seen| *seen));

    let mut listing = nft.elements(IP, "t", "s").unwrap();
    for _ in 0..3_000 {
        listing.next().unwrap().unwrap();
    }
    drop(listing);
    for piece in keys[1..].chunks(if fits { keys.len() } else { 10_000 }) {
        committed(&mut nft, |tx| {
            tx.delete_elements(&id("s"), piece.iter().map(Element::new))
                .unwrap();
        });
    }
    let snapshot = nft.snapshot(Filter::all()).unwrap(); // while the hash table shrinks again
    let set = snapshot.table(IP, "t").unwrap().set("s").unwrap();
    let left: Vec<_> = set.elements().map(|element| element.to_builder()).collect();
    assert_eq!(left, [Element::new(&keys[0])]);
}

/// The error of one element among many is the only one, and it names the message and the element.
#[test]
fn one_bad_element_among_many_is_named() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    with_sets(&mut nft, &[addresses("s")]);
    committed(&mut nft, |tx| {
        tx.add_elements(&id("s"), [Element::new(&9_000u32.to_be_bytes())])
            .unwrap();
    });
    let keys: Vec<_> = (0..10_000u32).map(u32::to_be_bytes).collect();
    let failures = refused(&mut nft, |tx| {
        tx.create_elements(&id("s"), keys.iter().map(Element::new))
            .unwrap();
    });
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(
        is_at(
            &failures[0],
            "create element ip t s #2: EEXIST (File exists)",
            "element 810 (00002328)",
            "an element with this key"
        ),
        "{failures:?}"
    );
}

/// A listing that a change runs across ends in an error, and stays one.
#[test]
fn a_listing_that_a_change_runs_across_is_interrupted() {
    let sandbox = sandbox();
    let (mut nft, mut rival) = (connect(&sandbox), connect(&sandbox));
    with_sets(&mut nft, &[addresses("s")]);
    let keys: Vec<_> = (0..20_000u32).map(u32::to_be_bytes).collect();
    committed(&mut nft, |tx| {
        tx.add_elements(&id("s"), keys.iter().map(Element::new))
            .unwrap();
    });
    let mut listing = nft.elements(IP, "t", "s").unwrap();
    listing.next().unwrap().unwrap();
    committed(&mut rival, |tx| {
        tx.add_elements(&id("s"), [Element::new(&[255; 4])])
            .unwrap();
    });
    let error = loop {
        match listing.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the listing ended as if it were whole"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Interrupted), "{error}");
    assert!(matches!(listing.next(), Err(Error::Interrupted)));
    drop(listing);
    let mut count = 0;
    nft.elements(IP, "t", "s")
        .unwrap()
        .for_each(|_| count += 1)
        .unwrap();
    assert_eq!(count, 20_001);
}

/// What `nft --debug=netlink list ruleset` prints for sets is what `Display` prints.
#[test]
fn lines_are_those_of_nft() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    let catch_all = kernel::has(&mut nft, "catch-all elements");
    load(
        &tools,
        catch_all,
        r#"
        table ip t {
            chain c { }
            counter n { }
            set s { type ipv4_addr; elements = { 10.0.0.1 comment "one two", 10.0.0.2 } }
            set p { type inet_service; elements = { 80 } }
            set e { type ether_addr; elements = { 00:11:22:33:44:55 } }
            set f { type ifname; elements = { "eth0" } }
            map m { type ipv4_addr : mark; elements = { 10.0.0.1 : 5 } }
            map v { type ipv4_addr : verdict; elements = { 10.0.0.1 : jump c, 10.0.0.2 : goto c,
                10.0.0.3 : accept, 10.0.0.4 : return, 10.0.0.5 : continue, * : drop } }
            map o { type ipv4_addr : counter; elements = { 10.0.0.1 : "n" } }
            set i { type ipv4_addr; flags interval; elements = { 10.0.0.0/24, 255.0.0.0/8 } }
            set r { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/24 . 80-90 } }
            set d { type ipv4_addr; counter; elements = { 10.0.0.1 counter packets 1 bytes 2 } }
        }
        "#,
    );
    let printed = tools.run("nft --debug=netlink list ruleset");
    let end = printed.find("table ip t {").unwrap();
    let theirs: Vec<_> = printed[..end]
        .lines()
        .filter(|line| line.contains(" @") || line.starts_with("\telement"))
        .collect();
    let mut ours = Vec::new();
    let mut sets = Vec::new();
    let mut listing = nft.sets(Filter::table(IP, "t")).unwrap();
    while let Some(set) = listing.next().unwrap() {
        sets.push((set.to_string(), set.name().to_string()));
    }
    drop(listing);
    for (line, name) in sets {
        ours.push(line);
        let mut elements = nft.elements(IP, "t", &name).unwrap();
        while let Some(element) = elements.next().unwrap() {
            ours.push(format!("\t{element}"));
        }
    }
    ours.sort();
    let mut theirs: Vec<_> = theirs
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect();
    theirs.sort();
    let ours: Vec<_> = ours.iter().map(|line| line.trim_end().to_owned()).collect();
    assert_eq!(ours, theirs);
    assert!(ours.len() > 20);
}

/// What the kernel lists of sets that nft made is written to another table byte for byte, and lists
/// the same there.
#[test]
fn what_is_read_can_be_written() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    let catch_all = kernel::has(&mut nft, "catch-all elements");
    load(
        &tools,
        catch_all,
        r#"
        table ip t {
            chain c { }
            counter n { comment "kept" }
            set s { type ipv4_addr; size 100; comment "a set"
                elements = { 10.0.0.1 comment "one", 10.0.0.2 } }
            map v { type ipv4_addr : verdict; elements = { 10.0.0.1 : jump c, * : drop } }
            map o { type ipv4_addr : counter; elements = { 10.0.0.1 : "n" } }
            set i { type ipv4_addr; flags interval; auto-merge; elements = { 10.0.0.0/24, 255.0.0.0/8 } }
            set r { type ipv4_addr . inet_service; flags interval; elements = { 10.0.0.0/24 . 80-90 } }
            map w { type inet_service : mark; flags interval; elements = { 80-90 : 7, 100 : 8 } }
            set d { type ipv4_addr; counter; elements = { 10.0.0.1 counter packets 1 bytes 2 } }
            set l { typeof ip daddr; elements = { 1.2.3.4 } }
        }
        "#,
    );
    let mut sets = Vec::new();
    let mut listing = nft.sets(Filter::table(IP, "t")).unwrap();
    while let Some(set) = listing.next().unwrap() {
        sets.push(set.to_builder().into_owned());
    }
    drop(listing);
    let mut tx = Transaction::new();
    tx.add(&Table::new(IP, "u")).unwrap();
    tx.add(&Chain::new(IP, "u", "c")).unwrap();
    let counter = nft
        .object(IP, "t", ObjectType::COUNTER, "n")
        .unwrap()
        .unwrap();
    let mut counter = counter.to_builder().into_owned();
    (counter.table, counter.handle) = (Some("u".into()), None);
    tx.add(&counter).unwrap();
    for mut set in sets {
        let mut all = Vec::new();
        let name = set.name.clone().unwrap();
        let mut listing = nft.elements(IP, "t", &name).unwrap();
        while let Some(element) = listing.next().unwrap() {
            all.push(element.to_builder().into_owned());
        }
        drop(listing);
        (set.table, set.handle) = (Some("u".into()), None);
        tx.add(&set).unwrap();
        tx.add_elements(&set.set_id(), &all).unwrap();
    }
    nft.commit(&tx).unwrap();
    let (one, two) = (
        tools.run("nft list table ip t"),
        tools.run("nft list table ip u"),
    );
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(
        sorted(&one.replace("table ip t", "table ip u")),
        sorted(&two)
    );
    let flags = nft.set(IP, "u", "i").unwrap().unwrap().flags();
    assert_eq!(flags, Some(SetFlags::INTERVAL));
    assert_eq!(ElementFlags::CATCHALL.bits(), 2);
}
