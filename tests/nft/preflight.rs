//! Reports what a kernel lacks for a transaction before anything is changed.

use std::collections::BTreeMap;

use crate::common::kernel::LACKS;
use crate::common::report;
use crate::common::rulesets::{OF_CLIENTS, Ruleset, loaded_data};
use caps::{CapSet, Capability};
use chainwright::Error;
use chainwright::nft::expr::{
    Bitwise, Byteorder, Cmp, Connlimit, Counter, Ct, CtKey, Decoded, Dup, Dynset, Expressions,
    Exthdr, ExthdrOp, Fib, FibFlags, FibResult, FlowOffload, Fwd, Hash, Immediate, Inner, Last,
    Limit, Log, Lookup, Masq, Match, Meta, MetaKey, NAMES, Nat, NatType, Notrack, Numgen,
    ObjectType, Objref, Opaque, Osf, OsfTtl, Payload, PayloadBase, Queue, Quota, Range, Redir,
    Register, Reject, Rt, RtKey, Socket, SocketKey, Synproxy, SynproxyFlags, Target, Tproxy,
    Tunnel, TunnelKey, TunnelMode, Xfrm, XfrmDirection, XfrmKey,
};
use chainwright::nft::{
    Bytes, Chain, Connection, DataType, Devices, Element, Elements, ExtensionKind, Family,
    Flowtable, Missing, Requirement, Rule, Scope, Set, SetFlags, Snapshot, StatefulObject, Table,
    Transaction,
};
use chainwright_testing::FakeKernel;

fn with_rule(family: Family, fill: impl FnOnce(&mut Rule<'_>)) -> Transaction {
    let mut tx = Transaction::new();
    tx.add(&Table::new(family, "t")).unwrap();
    tx.add(&Chain::new(family, "t", "c")).unwrap();
    let mut rule = Rule::new(family, "t", "c");
    fill(&mut rule);
    tx.add(&rule).unwrap();
    tx
}

/// An expression of this name without attributes.
fn named(name: &'static str) -> Decoded<'static> {
    Decoded::Opaque(Opaque {
        name: name.into(),
        ..Opaque::default()
    })
}

fn list(name: &'static str) -> Expressions<'static> {
    let mut list = Expressions::new();
    list.push_decoded(&named(name));
    list
}

fn needs(missing: &[Missing]) -> Vec<&Requirement> {
    missing.iter().map(|missing| &missing.requirement).collect()
}

/// A valid expression of this name in a table of this family; `None` for a name without one.
fn of_use(family: Family, name: &str) -> Option<Decoded<'static>> {
    const R1: Register = Register::R1;
    let protocol = match family {
        Family::IP6 => Family::IP6,
        _ => Family::IP,
    };
    Some(match name {
        "bitwise" => Decoded::Bitwise(Bitwise::mask_xor(R1, &[0xff; 4], &[0; 4])),
        "byteorder" => Decoded::Byteorder(Byteorder::hton(R1, R1, 2, 2)),
        "cmp" => Decoded::Cmp(Cmp::eq(R1, &[0; 4])),
        "connlimit" => Decoded::Connlimit(Connlimit::at_most(3)),
        "counter" => Decoded::Counter(Counter::new(0, 0)),
        "ct" => Decoded::Ct(Ct::load(CtKey::STATE, R1)),
        "dup" if family == Family::NETDEV => Decoded::Dup(Dup::to_device(R1)),
        "dup" => Decoded::Dup(Dup::to_address(R1)),
        "dynset" => Decoded::Dynset(Dynset::add("s", R1)),
        "exthdr" => Decoded::Exthdr(Exthdr::present(ExthdrOp::TCPOPT, 2, R1)),
        "fib" => Decoded::Fib(Fib::new(FibFlags::DADDR, FibResult::ADDRTYPE, R1)),
        "flow_offload" => Decoded::FlowOffload(FlowOffload::new("f")),
        "fwd" => Decoded::Fwd(Fwd::to_device(R1)),
        "hash" => Decoded::Hash(Hash::jenkins(R1, 4, 10, Register::R2)),
        "immediate" => Decoded::Immediate(Immediate::accept()),
        "inner" => {
            let inside = Payload::load(PayloadBase::NETWORK, 12, 4, R1);
            Decoded::Inner(Inner::vxlan(&inside))
        }
        "last" => Decoded::Last(Last::never()),
        "limit" => Decoded::Limit(Limit::packets(10, 1, 5)),
        "log" => Decoded::Log(Log::prefix("x")),
        "lookup" => Decoded::Lookup(Lookup::set(R1, "s")),
        "masq" => Decoded::Masq(Masq::default()),
        "match" => Decoded::Match(Match::new("comment", 0, vec![0; 256])),
        "meta" => Decoded::Meta(Meta::load(MetaKey::MARK, R1)),
        "nat" => Decoded::Nat(Nat {
            nat_type: Some(NatType::SNAT),
            family: Some(u32::from(protocol.0)),
            addr_min: Some(R1),
            ..Nat::default()
        }),
        "notrack" => Decoded::Notrack(Notrack::new()),
        "numgen" => Decoded::Numgen(Numgen::incremental(10, R1)),
        "objref" => Decoded::Objref(Objref::named(ObjectType::COUNTER, "o")),
        "osf" => Decoded::Osf(Osf::name(OsfTtl::NOCHECK, R1)),
        "payload" => Decoded::Payload(Payload::load(PayloadBase::NETWORK, 0, 1, R1)),
        "queue" => Decoded::Queue(Queue::to(0)),
        "quota" => Decoded::Quota(Quota::until(1000)),
        "range" => Decoded::Range(Range::within(R1, &[0; 4], &[9; 4])),
        "redir" => Decoded::Redir(Redir::default()),
        "reject" => Decoded::Reject(Reject::tcp_reset()),
        "rt" => Decoded::Rt(Rt::load(RtKey::CLASSID, R1)),
        "socket" => Decoded::Socket(Socket::load(SocketKey::TRANSPARENT, R1)),
        "synproxy" => Decoded::Synproxy(Synproxy::new(1460, 7, SynproxyFlags::MSS)),
        "target" => Decoded::Target(Target::new("MARK", 2, vec![0; 8])),
        "tproxy" => Decoded::Tproxy(Tproxy::to_port(protocol, R1)),
        "tunnel" => Decoded::Tunnel(Tunnel::load(TunnelKey::ID, TunnelMode::NONE, R1)),
        "xfrm" => {
            let address = XfrmKey::DADDR_IP4;
            Decoded::Xfrm(Xfrm::load(address, XfrmDirection::IN, 0, R1))
        }
        _ => return None,
    })
}

/// A transaction with a rule with such an expression, in a table with the objects that it refers to; and the index
/// of that rule.
fn in_use(nft: &mut Connection, family: Family, name: &str) -> Option<(Transaction, usize)> {
    let mut tx = Transaction::new();
    tx.add(&Table::new(family, "t")).unwrap();
    let flowtable = Flowtable::new(family, "t", "f", 0, Devices::new(["lo"]));
    if name == "flow_offload" {
        tx.add(&flowtable).unwrap();
        // Without flowtables there is nothing to refer to.
        if nft.check(&tx).is_err() {
            return None;
        }
    }
    tx.add(&Chain::new(family, "t", "c")).unwrap();
    let set = Set::new(family, "t", "s", DataType::IPV4_ADDR, 4);
    tx.add(&set.with_flags(SetFlags::EVAL).with_size(8))
        .unwrap();
    tx.add(&StatefulObject::new(family, "t", "o", Counter::new(0, 0)))
        .unwrap();
    // A register must be loaded before it is read.
    let mut expressions = Expressions::new();
    expressions.push(&Immediate::value(Register::R1, &[0; 16]));
    expressions.push_decoded(&of_use(family, name)?);
    let mut rule = Rule::new(family, "t", "c");
    rule.expressions = Some(expressions);
    let at = tx.len();
    tx.add(&rule).unwrap();
    Some((tx, at))
}

/// Determines what is missing by trying, not by the kernel's version.
fn tried(nft: &mut Connection, tx: &Transaction) -> Vec<Missing> {
    let mut missing = nft.preflight(tx).unwrap().missing;
    missing.retain(|missing| !matches!(missing.requirement, Requirement::Feature(_)));
    missing
}

/// The result is right for this kernel: each expression is tried alone, and in a valid rule.
#[test]
fn single_expressions_are_checked() {
    let sandbox = crate::common::sandbox();
    let mut nft = crate::common::connect(&sandbox);
    let (mut has, mut lacks) = (Vec::new(), Vec::new());
    let mut uses = BTreeMap::new();
    for family in Family::WITH_TABLES {
        for &name in NAMES.iter().chain(&["no_such"]) {
            let tx = with_rule(family, |rule| rule.expressions = Some(list(name)));
            let missing = nft.preflight(&tx).unwrap().missing;
            // Without attributes most are refused; an unknown one with this error.
            let is_unknown = match nft.check(&tx) {
                Ok(()) => false,
                Err(error) => error.failures[0].errno.name() == "ENOENT",
            };
            let need = Requirement::Expression(family, name.into());
            // A supported expression in a valid rule is accepted, or refused for its use there.
            if let Some((tx, rule)) = in_use(&mut nft, family, name) {
                let lacks = needs(&missing).contains(&&need);
                match nft.check(&tx) {
                    Ok(()) => {
                        assert!(
                            !lacks,
                            "{family} {name} was accepted, but reported as missing"
                        );
                        assert_eq!(tried(&mut nft, &tx), [], "{family} {name}");
                        *uses.entry(name).or_insert(0) += 1;
                    }
                    Err(error) => {
                        let [failure] = &error.failures[..] else {
                            panic!("{family} {name}: {}", report(&error));
                        };
                        let operation = failure.operation.as_ref().unwrap();
                        assert_eq!(operation.index, rule, "{family} {name}: {}", report(&error));
                        let errno = failure.errno.name();
                        // The expression is missing, or an extension that it calls.
                        let named = tried(&mut nft, &tx);
                        let is_absent = errno == "ENOENT";
                        assert_eq!(is_absent, !named.is_empty(), "{family} {name}: {errno}");
                        let is_extension = |missing: &Missing| {
                            matches!(missing.requirement, Requirement::Extension { .. })
                        };
                        assert_eq!(
                            lacks,
                            is_absent && !named.iter().all(is_extension),
                            "{family} {name}: {errno}"
                        );
                    }
                }
            }
            match is_unknown {
                true => {
                    assert_eq!(needs(&missing), [&need]);
                    assert_eq!(missing[0].operation.index, 2);
                    lacks.push(need);
                }
                false => {
                    assert!(missing.is_empty(), "{family} {name}: {missing:?}");
                    has.push(need);
                }
            }
        }
    }
    println!("missing: {lacks:?}; number of families that have each: {uses:?}");
    for name in NAMES {
        let is_it = |need: &&Requirement| matches!(need, Requirement::Expression(_, lacking) if lacking == name);
        let everywhere = lacks.iter().filter(is_it).count() == Family::WITH_TABLES.len();
        let in_use = uses.contains_key(name);
        assert!(
            in_use || everywhere || *name == "flow_offload",
            "{name} was accepted in no rule"
        );
    }
    assert!(lacks.len() >= Family::WITH_TABLES.len() && has.len() > 100);
    assert_eq!(
        nft.generation().unwrap().number(),
        1,
        "nothing should change"
    );
    assert_eq!(nft.snapshot(Scope::all()).unwrap().tables().count(), 0);
}

/// Existing rulesets need nothing that the kernel lacks.
#[test]
fn existing_rulesets_lack_no_features() {
    let mut checked = 0;
    let data = OF_CLIENTS.into_iter().map(loaded_data);
    let rulesets = Ruleset::all()
        .into_iter()
        .filter_map(|ruleset| ruleset.load());
    for sandbox in rulesets.chain(data) {
        let there = crate::common::connect(&sandbox)
            .snapshot(Scope::all())
            .unwrap();
        let nothing = Snapshot::default();
        let plan = nothing.plan(&there, Default::default()).unwrap();
        let mut nft = crate::common::connect(&sandbox);
        let before = nft.generation().unwrap();
        let missing = nft.preflight(plan.transaction()).unwrap().missing;
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(nft.generation().unwrap().number(), before.number());
        checked += 1;
    }
    assert!(checked > 80, "{checked}");
}

#[test]
fn each_kind_of_need_is_named_once_by_its_first_operation() {
    let sandbox = crate::common::sandbox();
    let mut nft = crate::common::connect(&sandbox);
    let of_match = |revision| Match {
        name: Some("no_such".into()),
        revision: Some(revision),
        info: Some(Bytes::from(&[0; 4][..])),
        ..Match::default()
    };
    let mut tx = with_rule(Family::IP, |rule| {
        rule.push(&of_match(0)).push(&Counter::new(0, 0));
        rule.push(&of_match(0));
    });
    tx.add(&Chain::new(Family::IP, "t", "b").with_hook("no_such", 1, 0))
        .unwrap();
    let mut set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4);
    set = set.with_flags(SetFlags::EVAL | SetFlags::EXPR);
    set.expressions = Some(list("no_such"));
    tx.add(&set).unwrap();
    let mut object = StatefulObject::new(Family::IP, "t", "o", Counter::new(0, 0));
    object.object_type = Some(ObjectType(99));
    tx.add(&object).unwrap();
    let mut again = Rule::new(Family::IP, "t", "c");
    again.push(&of_match(0)).push(&of_match(1));
    again
        .expressions
        .as_mut()
        .unwrap()
        .push_decoded(&named("no_such"));
    tx.add(&again).unwrap();

    let missing = nft.preflight(&tx).unwrap().missing;
    let extension = |revision| Requirement::Extension {
        family: Family::IP,
        kind: ExtensionKind::Match,
        name: "no_such".into(),
        revision,
    };
    let expected = [
        (extension(0), 2),
        (Requirement::ChainType(Family::IP, "no_such".into()), 3),
        (Requirement::Expression(Family::IP, "no_such".into()), 4),
        (Requirement::ObjectType(Family::IP, ObjectType(99)), 5),
        (extension(1), 6),
    ];
    let mut found: Vec<_> = missing
        .iter()
        .map(|missing| (missing.requirement.clone(), missing.operation.index))
        .collect();
    found.retain(|(need, operation)| match need {
        Requirement::Feature(feature) => {
            assert_eq!(
                (feature.name(), *operation),
                ("several statements in an element", 4)
            );
            println!("{LACKS}{feature}");
            false
        }
        _ => true,
    });
    assert_eq!(found, expected);
    let text = missing[0].to_string();
    assert_eq!(
        text,
        "add rule ip t c #2: this kernel lacks the match `no_such` in ip, revision 0 (modprobe ipt_no_such)"
    );
}

/// Extensions in tables of each family: those that a rule can have there, and others.
#[test]
fn extensions_in_every_family() {
    let sandbox = crate::common::sandbox();
    let mut nft = crate::common::connect(&sandbox);
    let (mut has, mut lacks) = (0, 0);
    for family in Family::WITH_TABLES {
        // `struct xt_comment_info`, `struct xt_mark_mtinfo1`, `struct ipt_ttl_info`, `struct xt_tcp`.
        for (name, revision, size) in [
            ("comment", 0, 256),
            ("mark", 1, 16),
            ("mark", 9, 16),
            ("ttl", 0, 8),
            ("no_such", 0, 8),
        ] {
            let tx = with_rule(family, |rule| {
                rule.push(&Match::new(name, revision, vec![0; size]));
            });
            let missing = nft.preflight(&tx).unwrap().missing;
            let refused = nft.check(&tx).err();
            let refused = refused.map(|error| error.failures[0].errno.name());
            match refused.as_deref() {
                Some("ENOENT") => {
                    lacks += 1;
                    let name: String = name.into();
                    let need = Requirement::Extension {
                        family,
                        kind: ExtensionKind::Match,
                        name: name.into(),
                        revision: revision as u8,
                    };
                    assert_eq!(needs(&missing), [&need]);
                }
                _ => {
                    has += 1;
                    assert!(
                        missing.is_empty(),
                        "{family} {name} {refused:?} {missing:?}"
                    );
                }
            }
        }
    }
    assert!(has >= 10 && lacks >= 12, "{has} {lacks}");
}

/// If a kernel is built without flowtables, the result reports it and names the option.
#[test]
fn missing_flowtable_support_is_reported() {
    let sandbox = crate::common::sandbox();
    let mut nft = crate::common::connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::INET, "t")).unwrap();
    let devices = Devices::new(["lo"]);
    tx.add(&Flowtable::new(Family::INET, "t", "f", 0, devices))
        .unwrap();
    let missing = nft.preflight(&tx).unwrap().missing;
    match nft.check(&tx) {
        Ok(()) => assert!(missing.is_empty(), "{missing:?}"),
        Err(_) => {
            assert_eq!(needs(&missing), [&Requirement::Flowtable(Family::INET)]);
            assert_eq!(
                missing[0].requirement.config(),
                Some("CONFIG_NF_FLOW_TABLE_INET")
            );
            println!("{}", missing[0]);
        }
    }
}

/// An expression inside an expression.
#[test]
fn nested_expressions_are_checked() {
    let sandbox = crate::common::sandbox();
    let mut nft = crate::common::connect(&sandbox);
    let tx = with_rule(Family::INET, |rule| {
        rule.push(&Dynset {
            set_name: Some("s".into()),
            expressions: Some(list("no_such")),
            ..Dynset::default()
        });
    });
    let missing = nft.preflight(&tx).unwrap().missing;
    assert_eq!(
        needs(&missing),
        [&Requirement::Expression(Family::INET, "no_such".into())]
    );
}

/// The fake kernel supports everything.
#[test]
fn the_fake_supports_preflight_checks() {
    let mut nft = FakeKernel::new().connect().unwrap();
    let tx = with_rule(Family::IP, |rule| _ = rule.push(&Counter::new(0, 0)));
    assert!(nft.preflight(&tx).unwrap().missing.is_empty());
    let tx = with_rule(Family::IP, |rule| rule.expressions = Some(list("no_such")));
    assert_eq!(nft.preflight(&tx).unwrap().missing.len(), 1);
}

/// Many sets in a table, many bitmaps, and a large set of several fields with ranges are reported; less is not.
#[test]
fn costs_are_reported() {
    let named = |tx: &mut Transaction, table: &str, numbers: std::ops::Range<u32>| {
        for number in numbers {
            let name = format!("s{number}");
            let set = Set::new(Family::IP, table, name, DataType::IPV4_ADDR, 4);
            tx.add(&set).unwrap();
        }
    };
    let anonymous = |tx: &mut Transaction, number: u32, interval: bool| {
        for id in 0..number {
            let port = DataType::INET_SERVICE;
            let set = Set::anonymous(Family::IP, "t", "__set%d", id, port, 2);
            tx.add(&if interval { set.with_interval() } else { set })
                .unwrap();
        }
    };
    let concatenation = |tx: &mut Transaction, elements: u32, ranges: bool| {
        let fields = [(DataType::IPV4_ADDR, 4), (DataType::INET_SERVICE, 2)];
        let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4);
        let set = match ranges {
            true => set.with_interval_fields(&fields),
            false => set.with_fields(&fields),
        };
        tx.add(&set).unwrap();
        let keys: Vec<_> = (0..elements)
            .map(|number| [number.to_be_bytes(), [0, 80, 0, 0]].concat())
            .collect();
        for keys in keys.chunks(500) {
            let elements = keys.iter().map(|key| match ranges {
                true => Element::range(&key[..], &key[..]),
                false => Element::new(&key[..]),
            });
            tx.add(&Elements {
                family: Family::IP,
                table: Some("t".into()),
                set: Some("s".into()),
                elements: Some(elements.collect()),
                ..Elements::empty()
            })
            .unwrap();
        }
    };
    type Fill<'f> = &'f dyn Fn(&mut Transaction);
    let cases: [(u32, Fill<'_>, &[&str]); 10] = [
        (
            0,
            &|tx| named(tx, "t", 0..5_000),
            &["5000 new sets in addition to 0 in ip t: "],
        ),
        (0, &|tx| named(tx, "t", 0..4_900), &[]),
        (
            0,
            &|tx| (0..10).for_each(|table| named(tx, &format!("t{table}"), 0..1_000)),
            &[],
        ),
        (
            13_000,
            &|tx| named(tx, "t", 13_000..14_000),
            &["1000 new sets in addition to 13000 in ip t: "],
        ),
        (13_000, &|tx| named(tx, "t", 13_000..13_500), &[]),
        (
            0,
            &|tx| anonymous(tx, 1_000, false),
            &["1000 new sets with keys of two bytes in ip t: "],
        ),
        (0, &|tx| anonymous(tx, 999, false), &[]),
        (0, &|tx| anonymous(tx, 1_000, true), &[]),
        (
            0,
            &|tx| concatenation(tx, 50_000, true),
            &["50000 new elements of ip t s, a set of 2 fields with ranges: "],
        ),
        (0, &|tx| concatenation(tx, 50_000, false), &[]),
    ];
    for (existing, fill, expected) in cases {
        let mut nft = FakeKernel::new().connect().unwrap();
        let mut tx = Transaction::new();
        tx.add(&Table::new(Family::IP, "t")).unwrap();
        named(&mut tx, "t", 0..existing);
        nft.commit(&tx).unwrap();
        tx.clear();
        fill(&mut tx);
        let costs = nft.preflight(&tx).unwrap().costs;
        let costs: Vec<_> = costs.iter().map(ToString::to_string).collect();
        assert_eq!(costs.len(), expected.len(), "{expected:?}: {costs:?}");
        for (cost, expected) in costs.iter().zip(expected) {
            assert!(cost.starts_with(expected), "{cost}");
        }
    }
}

/// A process that may not create tables gets an error, not a positive result.
#[test]
fn preflight_fails_without_privileges() {
    let sandbox = crate::common::sandbox();
    let answered = sandbox.run(|| {
        let mut nft = Connection::open().unwrap();
        // On a separate thread, whose capabilities end with it.
        caps::drop(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        let tx = with_rule(Family::IP, |rule| _ = rule.push(&Counter::new(0, 0)));
        nft.preflight(&tx).map(drop)
    });
    let Err(Error::Commit(error)) = answered.unwrap() else {
        panic!("preflight should fail without privileges");
    };
    assert_eq!(error.failures[0].errno.name(), "EPERM");
}
