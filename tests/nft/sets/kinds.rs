//! Kinds of sets: maps, ranges, several values at once, timeouts, counters.

use std::collections::BTreeMap;
use std::time::Duration;

use chainwright::nft::expr::{Counter, Decoded, Limit, Quota, Verdict};
use chainwright::nft::{Milliseconds, StatefulObject, concatenation};

use super::*;

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
    // Without it the rest of the test covers the others.
    let known = kernel::commit_if_supported(&mut nft, &mut tx, &["catch-all elements"]);
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

    // Other data for an existing key.
    let failures = refused(&mut nft, |tx| {
        let other = Element::new(&[10, 0, 0, 1]).with_data(&[9; 4]);
        tx.add_elements(&id("m"), [other]).unwrap();
    });
    assert!(
        failures[0].contains("EEXIST") && failures[0].contains("with other data"),
        "{failures:?}"
    );
    // Jumps to a missing chain.
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
fn range_elements_round_trip() {
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
    // Unsorted, two of them adjacent, one up to the last value.
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

    // A lookup of a key in a range returns its start, or its end if requested.
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
    // nft's additions are read as ranges, too.
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
            // The user data contains what `typeof` would print.
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
fn timeouts_round_trip() {
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
    // An almost expired one can be added.
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
fn element_counters_are_reset() {
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
    let several =
        kernel::commit_if_supported(&mut nft, &mut tx, &["several statements in an element"]);
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
    if let Some(before) = kernel::if_supported(reset) {
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
    if kernel::if_supported(reset).is_some() {
        assert_eq!(before.into_values().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(counts(&mut nft), [0, 0]);
    } else {
        assert_eq!(counts(&mut nft), [1, 2]); // refused, with nothing reset
    }

    // Expressions that do not match the set's.
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
