//! Sets, maps and their elements, tested with the kernel, with `nft` as the oracle.

mod as_nft;
mod kinds;
mod many;
mod ranges;
mod types;

use crate::common::tools::Tools;
use crate::common::{committed, connect, kernel, sandbox};
use chainwright::netlink::Error;
use chainwright::nft::expr::{Data, Lookup, ObjectType, Payload, PayloadBase, Register};
use chainwright::nft::{
    Chain, CommitError, Connection, DataType, Element, Family, Outcome, Rule, Scope, Set, SetFlags,
    SetId, Table, Transaction,
};
use serde_json::{Value, json};

const IP: Family = Family::IP;

/// Commits what `fill` adds to a transaction, which must fail and change nothing. Returns the texts of its
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
    while let Some(element) = listing.try_next().unwrap() {
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
    found.unwrap_or_else(|| panic!("nft lists no {kind} of that name: {objects:?}"))["elem"].clone()
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

fn id(set: &str) -> SetId<'_> {
    SetId::new(IP, "t", set)
}

/// Whether a failure has this text, at this element of the message. Linux 5.10 does not point at elements:
/// there the error reports that.
#[track_caller]
fn is_at(failure: &str, what: &str, element: &str, hint: &str) -> bool {
    if !failure.contains(", at ") {
        println!(
            "this kernel lacks positions of rejected elements: the error only identifies the operation"
        );
        return failure.starts_with(what) && failure.contains(hint);
    }
    failure.starts_with(what)
        && failure.contains(&format!(", at NFTA_SET_ELEM_LIST_ELEMENTS, {element}"))
        && failure.contains(hint)
}

/// Checks whether the kernel reports the number of elements in the set's message; otherwise there is no
/// number, instead of a wrong one.
fn counted(nft: &mut Connection, set: &str, count: u32) {
    match nft.set(IP, "t", set).unwrap().unwrap().count() {
        Some(counted) => assert_eq!(counted, count),
        None => {
            println!(
                "this kernel lacks the number of elements of a set, available since Linux 6.16"
            )
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

    // Adding them again changes nothing; creating them fails and names the element.
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
            "the set s already contains the element"
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
            "the set s does not have the element"
        ),
        "{failures:?}"
    );
    let mut tx = Transaction::new();
    tx.destroy_elements(&id("s"), [&one, &absent]).unwrap();
    if !kernel::commit_if_supported(&mut nft, &mut tx, &["`destroy`"]) {
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
            ..chainwright::nft::Elements::empty()
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
        (Scope::all(), "abdc"),
        (Scope::family(IP), "abd"),
        (Scope::table(IP, "t"), "ab"),
        (Scope::table(Family::UNSPEC, "t"), "abc"),
        (Scope::table(IP, "u"), "d"),
        (Scope::table(IP, "no"), ""),
        (Scope::table(Family::ARP, "t"), ""),
    ] {
        let mut names = Vec::new();
        let mut sets = nft.sets(filter.clone()).unwrap();
        while let Some(set) = sets.try_next().unwrap() {
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
    // What was read can be written: over the existing set, and elsewhere.
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

    let Err(Error::Refused { errno, .. }) = nft.elements(IP, "t", "no").unwrap().try_next() else {
        panic!("listing a missing set should fail");
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
            "the set s is full"
        ),
        "{failures:?}"
    );
    assert!(failures[0].contains("the set s is full"), "{failures:?}");
    let failures = refused(&mut nft, |tx| {
        tx.add_elements(&id("s"), [Element::new(&[1; 6])]).unwrap();
    });
    assert!(
        is_at(
            &failures[0],
            "add element ip t s #0: EINVAL",
            "element 0 (010101010101)",
            "the key 010101010101 has 6 bytes, but the keys of s have 4"
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
    // An anonymous set without a rule that uses it.
    let failures = refused(&mut nft, |tx| {
        let set = Set::anonymous(IP, "t", "__set%d", 5, DataType::IPV4_ADDR, 4);
        tx.add(&set).unwrap();
    });
    assert!(
        failures[0].contains("EINVAL")
            && failures[0].contains("no rule of the transaction uses it"),
        "{failures:?}"
    );
}

#[test]
fn an_anonymous_set_is_deleted_with_its_rule() {
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

/// The transaction assigns numbers: each once, whatever the sets contain.
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
