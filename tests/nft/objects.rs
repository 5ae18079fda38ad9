//! Stateful objects, flowtables, devices, comments and counters, tested with the kernel, with `nft`
//! as the oracle.

mod counting;
mod devices;
mod tunnels;

use std::net::UdpSocket;

use crate::common::tools::Tools;
use crate::common::{committed, connect, kernel, sandbox};
use chainwright::netlink::Error;
use chainwright::nft::expr::{
    Connlimit, Counter, Immediate, Limit, ObjectType, Quota, QuotaFlags, Synproxy, SynproxyFlags,
};
use chainwright::nft::stateful::{CtExpect, CtHelper, CtTimeout};
use chainwright::nft::{
    Chain, ChainId, CommitError, Connection, DataType, Devices, Element, Family, Flowtable,
    FlowtableId, ObjectData, ObjectFilter, ObjectId, Outcome, Policy, Reference, Rule, RuleFilter,
    RuleId, Scope, Set, SetId, StatefulObject, Table, TableId, Transaction,
};
use chainwright_testing::{FakeKernel, Sandbox};
use serde_json::Value;

const INET: Family = Family::INET;

/// `NF_INET_LOCAL_OUT` of `linux/netfilter.h`.
const OUTPUT: u32 = 3;

const TCP: u8 = libc::IPPROTO_TCP as u8;

/// Commits what `fill` adds to a transaction, which must fail and change nothing. Returns the text of
/// its one failure.
#[track_caller]
fn refused(nft: &mut Connection, fill: impl FnOnce(&mut Transaction)) -> String {
    let mut tx = Transaction::new();
    fill(&mut tx);
    let error: CommitError = nft.commit(&tx).unwrap_err();
    assert_eq!(error.outcome, Outcome::NothingApplied, "{error}");
    assert_eq!(error.failures.len(), 1, "{error}");
    error.failures[0].to_string()
}

fn object<'a>(name: &'a str, data: impl Into<ObjectData<'a>>) -> StatefulObject<'a> {
    StatefulObject::new(INET, "t", name, data)
}

/// The objects with this key in `nft -j list ruleset`.
#[track_caller]
fn oracle(tools: &Tools<'_>, kind: &str) -> Vec<Value> {
    let objects = tools.nft_json("list ruleset");
    let of_kind = objects.into_iter().filter_map(|object| {
        let inner = object.get(kind)?.clone();
        Some(inner)
    });
    of_kind.collect()
}

/// The objects in table `t`.
#[track_caller]
fn listed(nft: &mut Connection) -> Vec<StatefulObject<'static>> {
    let mut all = Vec::new();
    let mut objects = nft.objects(Scope::table(INET, "t")).unwrap();
    while let Some(object) = objects.try_next().unwrap() {
        all.push(object.to_builder().into_owned());
    }
    all
}

/// Sends datagrams to the sandbox's loopback.
#[track_caller]
fn send(sandbox: &Sandbox, datagrams: usize) {
    sandbox
        .run(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            for _ in 0..datagrams {
                socket.send_to(&[0; 10], "127.0.0.1:9").unwrap();
            }
        })
        .unwrap();
}

#[test]
fn objects_of_every_type_of_this_kernel() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    let quota = Quota {
        bytes: Some(1000),
        flags: Some(QuotaFlags::INV),
        consumed: Some(7),
        ..Quota::default()
    };
    let connlimit = Connlimit {
        count: Some(3),
        ..Connlimit::default()
    };
    let synproxy = Synproxy {
        mss: Some(1460),
        wscale: Some(7),
        flags: Some(SynproxyFlags::from_bits_retain(3)),
        ..Synproxy::default()
    };
    let helper = CtHelper {
        l3proto: Some(2),
        ..CtHelper::new("ftp", TCP)
    };
    let timeout = CtTimeout {
        l3proto: Some(2),
        ..CtTimeout::new(TCP, &[(3, 132), (8, 13)])
    };
    let expect = CtExpect {
        l3proto: Some(2),
        ..CtExpect::new(TCP, 5432, 3_600_000, 12)
    };
    let objects = [
        object("counter", Counter::new(3, 4)),
        object("quota", quota),
        object("limit", Limit::packets(400, 60, 7)),
        object("connlimit", connlimit),
        object("helper", helper),
        object("timeout", timeout),
        object("expectation", expect),
        object("synproxy", synproxy),
    ];
    committed(&mut nft, |tx| {
        tx.add(&Table::new(INET, "t")).unwrap();
        for object in &objects {
            tx.create(object).unwrap();
        }
    });
    let found = listed(&mut nft);
    assert_eq!(found.len(), objects.len());
    for (sent, found) in objects.iter().zip(&found) {
        assert_eq!(sent.name, found.name);
        assert_eq!(sent.object_type, found.object_type);
        assert!(found.handle.is_some());
        assert_eq!(found.references, Some(0));
        let (sent, data) = (sent.data.as_ref().unwrap(), found.data.as_ref().unwrap());
        match (sent, data) {
            // The kernel fills in its own values for the others.
            (ObjectData::CtTimeout(_), ObjectData::CtTimeout(found)) => {
                let timeouts = found.timeouts.as_ref().unwrap();
                assert_eq!((timeouts.get(3), timeouts.get(8)), (Some(132), Some(13)));
                assert!(timeouts.get(1).is_some_and(|seconds| seconds > 0));
            }
            (ObjectData::Connlimit(sent), ObjectData::Connlimit(found)) => {
                assert_eq!(sent.count, found.count);
            }
            (sent, found) => assert_eq!(sent, found),
        }
        // Individual lookups give the same.
        let object_type = found.object_type.unwrap();
        let name = found.name.clone().unwrap();
        let one = nft.object(INET, "t", object_type, name).unwrap().unwrap();
        assert_eq!(&one.to_builder(), found);
    }
    // nft 1.0.6 does not support such objects: it aborts when it lists one.
    let connlimit = StatefulObject::named(INET, "t", ObjectType::CONNLIMIT, "connlimit");
    committed(&mut nft, |tx| {
        tx.delete(&connlimit).unwrap();
    });
    let timeout = &oracle(&tools, "ct timeout")[0];
    assert_eq!(timeout["policy"]["established"], 132);
    assert_eq!(oracle(&tools, "ct helper")[0]["type"], "ftp");
    assert_eq!(oracle(&tools, "ct expectation")[0]["dport"], 5432);
    assert_eq!(oracle(&tools, "counter")[0]["packets"], 3);
    assert_eq!(oracle(&tools, "quota")[0]["bytes"], 1000);
    assert_eq!(oracle(&tools, "quota")[0]["used"], 7);
    assert_eq!(oracle(&tools, "limit")[0]["rate"], 400);
    assert_eq!(oracle(&tools, "synproxy")[0]["mss"], 1460);

    // Names are separate for each type.
    let other = ObjectType::QUOTA;
    assert!(nft.object(INET, "t", other, "counter").unwrap().is_none());
    committed(&mut nft, |tx| {
        tx.add(&object("counter", Limit::packets(1, 1, 1))).unwrap();
        tx.delete(&StatefulObject::named(
            INET,
            "t",
            ObjectType::LIMIT,
            "counter",
        ))
        .unwrap();
    });
    let mut tx = Transaction::new();
    for object in &objects {
        tx.destroy(object).unwrap(); // one of them no longer exists
    }
    if !kernel::commit_if_supported(&mut nft, &mut tx, &["`destroy`"]) {
        committed(&mut nft, |tx| {
            let there = objects
                .iter()
                .filter(|object| object.name != connlimit.name);
            for object in there {
                tx.delete(object).unwrap();
            }
        });
    }
    assert_eq!(listed(&mut nft), []);
    // Objects that were read can be written.
    committed(&mut nft, |tx| {
        for object in &found {
            tx.add(&StatefulObject {
                handle: None,
                references: None,
                ..object.clone()
            })
            .unwrap();
        }
    });
    let again = listed(&mut nft);
    for (one, two) in found.iter().zip(&again) {
        assert_eq!(one.data, two.data);
    }
    committed(&mut nft, |tx| {
        // By handle, as they were read.
        tx.delete(&again[0]).unwrap();
        tx.delete(&again[1]).unwrap();
    });
    let mut tx = Transaction::new();
    tx.destroy(&again[1]).unwrap();
    let _ = kernel::commit_if_supported(&mut nft, &mut tx, &["`destroy`"]);
    assert_eq!(listed(&mut nft).len(), again.len() - 2);
}

/// Objects that nft created are read, and printed as nft prints them.
#[test]
fn reads_objects_created_by_nft() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    let printed = tools.run_with(
        "nft --debug=netlink -f -",
        r#"
        add table inet t
        add counter inet t cnt { packets 3 bytes 4; comment "c"; }
        add quota inet t q { over 25 mbytes used 10 bytes; }
        add limit inet t l { rate over 400/minute burst 7 packets; }
        add ct helper inet t h { type "ftp" protocol tcp; l3proto ip; }
        add ct timeout inet t tu { protocol udp; l3proto ip6; policy = { unreplied: 13, replied: 23 }; }
        add ct expectation inet t ex { protocol tcp; dport 5432; timeout 1h; size 12; l3proto ip; }
        add synproxy inet t sp { mss 1460; wscale 7; timestamp sack-perm; }
        "#,
    );
    // nft does not set the names in libnftnl when it prints.
    let real: Vec<_> = printed
        .lines()
        .filter(|line| line.starts_with("table (null) name (null)"))
        .map(|line| line.trim_end().to_owned())
        .collect();
    let mut chainwright = Vec::new();
    let mut comments = Vec::new();
    let mut objects = nft.objects(Scope::family(INET)).unwrap();
    while let Some(object) = objects.try_next().unwrap() {
        let name = format!("table t name {} ", object.name());
        let line = object.to_string();
        chainwright.push(line.replace(&name, "table (null) name (null) "));
        comments.extend(object.comment().map(ToString::to_string));
        assert_ne!(object.object_type().name(), None);
    }
    drop(objects);
    assert_eq!(chainwright, real);
    assert_eq!(comments, ["c"]);

    // Objects of one type; the kernel filters out the others.
    let mut types = std::collections::BTreeMap::<u32, usize>::new();
    let listed = nft.objects(Scope::table(INET, "t")).unwrap();
    listed
        .for_each(|object| *types.entry(object.object_type().0).or_default() += 1)
        .unwrap();
    assert!(types.len() > 1);
    for (number, count) in types {
        for scope in [Scope::all(), Scope::family(INET), Scope::table(INET, "t")] {
            let filter = ObjectFilter::of_type(scope, ObjectType(number));
            let mut found = 0;
            nft.objects(filter)
                .unwrap()
                .for_each(|object| {
                    assert_eq!(object.object_type().0, number);
                    found += 1;
                })
                .unwrap();
            assert_eq!(found, count);
        }
    }
}

#[test]
fn rejections_are_described() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        tx.add(&Table::new(INET, "t")).unwrap();
    });
    let failure = refused(&mut nft, |tx| {
        let helper = CtHelper::new("no such helper", TCP);
        tx.add(&object("h", helper)).unwrap();
    });
    assert!(
        failure.starts_with("add ct helper inet t h #0: ENOENT") && failure.contains("helper"),
        "{failure}"
    );
    // If the table is missing, the error names the table, not the kernel.
    let failure = refused(&mut nft, |tx| {
        tx.add(&object("c", Counter::new(0, 0))).unwrap();
        let mut other = object("c", Counter::new(0, 0));
        other.table = Some("no".into());
        tx.add(&other).unwrap();
    });
    assert!(
        failure.starts_with("add counter inet no c #1: ENOENT"),
        "{failure}"
    );
}

#[test]
fn objects_are_filtered() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    committed(&mut nft, |tx| {
        for (family, table, name) in [
            (INET, "t", "a"),
            (INET, "u", "b"),
            (Family::IP, "t", "c"),
            (Family::IP, "u", "d"),
        ] {
            tx.add(&Table::new(family, table)).unwrap();
            tx.add(&StatefulObject::new(
                family,
                table,
                name,
                Counter::new(0, 0),
            ))
            .unwrap();
        }
    });
    for (filter, expected) in [
        (Scope::all(), "abcd"),
        (Scope::family(INET), "ab"),
        (Scope::table(INET, "t"), "a"),
        (Scope::table(Family::UNSPEC, "t"), "ac"),
        (Scope::table(INET, "no"), ""),
    ] {
        let mut names = Vec::new();
        let objects = nft.objects(filter.clone()).unwrap();
        objects
            .for_each(|object| names.push(object.name().to_string()))
            .unwrap();
        names.sort();
        assert_eq!(names.concat(), expected, "{filter:?}");
    }
}

/// The comments of all kinds of objects agree with nft's, in both directions.
#[test]
fn comments_match_nft() {
    let sandbox = sandbox();
    let mut nft = connect(&sandbox);
    let tools = Tools::new(&sandbox);
    let longest = "x".repeat(128);
    let table = Table::new(INET, "t").with_comment("of a table").unwrap();
    let chain = Chain::new(INET, "t", "c")
        .with_comment("of a chain")
        .unwrap();
    let rule = Rule::new(INET, "t", "c")
        .with(&Immediate::accept())
        .with_comment(&longest)
        .unwrap();
    let set = Set::new(INET, "t", "s", DataType::IPV4_ADDR, 4)
        .with_comment("of a set")
        .unwrap();
    let element = Element::new(&[10, 0, 0, 1])
        .with_comment("of an element")
        .unwrap();
    let counter = object("n", Counter::new(0, 0))
        .with_comment("of a counter: grüße")
        .unwrap();
    committed(&mut nft, |tx| {
        tx.add(&table).unwrap();
        tx.add(&chain).unwrap();
        tx.add(&set).unwrap();
        tx.add(&counter).unwrap();
        tx.add(&rule).unwrap();
        tx.add_elements(&set.set_id(), [&element]).unwrap();
    });
    // This version of nft's JSON lacks the comments of tables, chains and sets.
    let text = tools.run("nft list ruleset");
    for comment in [
        "of a table",
        "of a chain",
        &longest,
        "of a set",
        "of an element",
        "of a counter: grüße",
    ] {
        assert!(text.contains(&format!("comment \"{comment}\"")), "{text}");
    }
    // Loaded by nft they read the same.
    tools.run("nft flush ruleset");
    tools.run_with("nft -f -", &text);
    let comment =
        |comment: Option<&bstr::BStr>| comment.map(ToString::to_string).unwrap_or_default();
    let table = nft.table(INET, "t").unwrap().unwrap();
    assert_eq!(comment(table.comment()), "of a table");
    let chain = nft.chain(INET, "t", "c").unwrap().unwrap();
    assert_eq!(comment(chain.comment()), "of a chain");
    let set = nft.set(INET, "t", "s").unwrap().unwrap();
    assert_eq!(comment(set.comment()), "of a set");
    let counter = nft.object(INET, "t", ObjectType::COUNTER, "n").unwrap();
    assert_eq!(comment(counter.unwrap().comment()), "of a counter: grüße");
    let element = nft.element(INET, "t", "s", &element).unwrap().unwrap();
    assert_eq!(comment(element.comment()), "of an element");
    let mut rules = nft.rules(Scope::table(INET, "t")).unwrap();
    let rule = rules.try_next().unwrap().unwrap();
    assert_eq!(comment(rule.comment()), longest);
}

/// A listing of objects that a change interrupts ends in an error.
#[test]
fn a_concurrent_change_interrupts_a_listing() {
    let sandbox = sandbox();
    let (mut nft, mut rival) = (connect(&sandbox), connect(&sandbox));
    // In pieces that fit into the send buffer of a user without privileges.
    for piece in 0..3 {
        committed(&mut nft, |tx| {
            tx.add(&Table::new(INET, "t")).unwrap();
            for n in 0..1_000 {
                let name = format!("c{piece}-{n}");
                tx.add(&object(&name, Counter::new(0, 0))).unwrap();
                tx.add(&Set::new(INET, "t", &name, DataType::IPV4_ADDR, 4))
                    .unwrap();
            }
        });
    }
    let mut objects = nft.objects(Scope::all()).unwrap();
    objects.try_next().unwrap().unwrap();
    committed(&mut rival, |tx| {
        tx.add(&object("new", Counter::new(0, 0))).unwrap();
    });
    let error = loop {
        match objects.try_next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the interrupted listing ended without an error"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Interrupted), "{error}");
    drop(objects);
    let mut sets = nft.sets(Scope::all()).unwrap();
    sets.try_next().unwrap().unwrap();
    committed(&mut rival, |tx| {
        tx.add(&object("newer", Counter::new(0, 0))).unwrap();
    });
    let error = loop {
        match sets.try_next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the interrupted listing ended without an error"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Interrupted), "{error}");
}

/// A reference to each kind of object finds it and deletes it, in the kernel and in the fake, which has flowtables in
/// any case.
#[test]
fn references_identify_objects() {
    fn check<R: Reference>(nft: &mut Connection, reference: &R) {
        assert!(nft.exists(reference).unwrap());
        let mut tx = Transaction::new();
        tx.delete(reference).unwrap();
        nft.commit(&tx).unwrap();
        assert!(!nft.exists(reference).unwrap());
    }
    let sandbox = sandbox();
    let kernel = sandbox.run(Connection::open).unwrap().unwrap();
    let fake = FakeKernel::new().connect().unwrap();
    for (mut nft, has_flowtables) in [(kernel, false), (fake, true)] {
        let mut tx = Transaction::new();
        tx.add(&Table::new(INET, "t")).unwrap();
        tx.add(&Chain::new(INET, "t", "c")).unwrap();
        tx.add(&Rule::new(INET, "t", "c")).unwrap();
        tx.add(&Set::new(INET, "t", "s", DataType::IPV4_ADDR, 4))
            .unwrap();
        tx.add(&StatefulObject::new(INET, "t", "o", Counter::new(0, 0)))
            .unwrap();
        if has_flowtables {
            tx.add(&Flowtable::new(INET, "t", "f", 0, Devices::default()))
                .unwrap();
        }
        nft.commit(&tx).unwrap();
        let handle = (nft.rules(RuleFilter::chain(INET, "t", "c")).unwrap())
            .try_next()
            .unwrap()
            .unwrap()
            .handle();
        check(&mut nft, &RuleId::new(INET, "t", "c", handle));
        check(&mut nft, &ChainId::new(INET, "t", "c"));
        check(&mut nft, &SetId::new(INET, "t", "s"));
        check(
            &mut nft,
            &ObjectId::new(INET, "t", ObjectType::COUNTER, "o"),
        );
        if has_flowtables {
            check(&mut nft, &FlowtableId::new(INET, "t", "f"));
        }
        check(&mut nft, &TableId::new(INET, "t"));
    }
}
