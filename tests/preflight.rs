//! What a kernel lacks for a transaction, told before anything is changed.

mod common;

use caps::{CapSet, Capability};
use chainwright::Error;
use chainwright::nft::expr::{
    Counter, Decoded, Dynset, Expressions, Match, NAMES, ObjectType, Opaque,
};
use chainwright::nft::live::Model;
use chainwright::nft::{
    Bytes, Chain, Connection, DataType, Devices, ExtensionKind, Family, Flowtable, Missing, Need,
    Rule, Scope, Set, SetFlags, Snapshot, StatefulObject, Table, Transaction,
};
use common::kernel::LACKS;
use common::rulesets::{OF_CLIENTS, Ruleset, loaded_data};

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

fn needs(missing: &[Missing]) -> Vec<&Need> {
    missing.iter().map(|missing| &missing.need).collect()
}

/// What this kernel has it has, and what it has not is named: each expression, tried by itself.
#[test]
fn it_says_what_a_rule_by_itself_is_refused_for() {
    let sandbox = common::sandbox();
    let mut nft = common::connect(&sandbox);
    let (mut has, mut lacks) = (Vec::new(), Vec::new());
    for family in Family::WITH_TABLES {
        for &name in NAMES.iter().chain(&["no_such"]) {
            let tx = with_rule(family, |rule| rule.expressions = Some(list(name)));
            let missing = nft.preflight(&tx).unwrap();
            // Without attributes most are refused; an unknown one with this error.
            let is_unknown = match nft.check(&tx) {
                Ok(()) => false,
                Err(error) => error.failures[0].errno.name() == "ENOENT",
            };
            let need = Need::Expression(family, name.into());
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
    println!("lacks {lacks:?}");
    assert!(lacks.len() >= Family::WITH_TABLES.len() && has.len() > 100);
    assert_eq!(nft.generation().unwrap().number(), 1, "nothing was changed");
    assert_eq!(nft.snapshot(Scope::all()).unwrap().tables().count(), 0);
}

/// Real rulesets that are there need nothing that is not.
#[test]
fn rulesets_that_are_there_lack_nothing() {
    let mut asked = 0;
    let data = OF_CLIENTS.into_iter().map(loaded_data);
    let rulesets = Ruleset::all()
        .into_iter()
        .filter_map(|ruleset| ruleset.load());
    for sandbox in rulesets.chain(data) {
        let there = common::connect(&sandbox).snapshot(Scope::all()).unwrap();
        let nothing = Snapshot::default();
        let plan = nothing.plan(&there, Default::default()).unwrap();
        let mut nft = common::connect(&sandbox);
        let before = nft.generation().unwrap();
        let missing = nft.preflight(plan.transaction()).unwrap();
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(nft.generation().unwrap().number(), before.number());
        asked += 1;
    }
    assert!(asked > 80, "{asked}");
}

#[test]
fn each_kind_of_need_is_named_once_by_its_first_operation() {
    let sandbox = common::sandbox();
    let mut nft = common::connect(&sandbox);
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

    let missing = nft.preflight(&tx).unwrap();
    let extension = |revision| Need::Extension {
        family: Family::IP,
        kind: ExtensionKind::Match,
        name: "no_such".into(),
        revision,
    };
    let expected = [
        (extension(0), 2),
        (Need::ChainType(Family::IP, "no_such".into()), 3),
        (Need::Expression(Family::IP, "no_such".into()), 4),
        (Need::ObjectType(Family::IP, ObjectType(99)), 5),
        (extension(1), 6),
    ];
    let mut found: Vec<_> = missing
        .iter()
        .map(|missing| (missing.need.clone(), missing.operation.index))
        .collect();
    found.retain(|(need, operation)| match need {
        Need::Feature(feature) => {
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

/// Extensions in tables of each family: those that a rule can have there, and those that it cannot.
#[test]
fn extensions_in_every_family() {
    let sandbox = common::sandbox();
    let mut nft = common::connect(&sandbox);
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
            let missing = nft.preflight(&tx).unwrap();
            let refused = nft.check(&tx).err();
            let refused = refused.map(|error| error.failures[0].errno.name());
            match refused.as_deref() {
                Some("ENOENT") => {
                    lacks += 1;
                    let name: String = name.into();
                    let need = Need::Extension {
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

/// Where a kernel is built without flowtables that is said, and how it is built with them.
#[test]
fn flowtables() {
    let sandbox = common::sandbox();
    let mut nft = common::connect(&sandbox);
    let mut tx = Transaction::new();
    tx.add(&Table::new(Family::INET, "t")).unwrap();
    let devices = Devices::new(["lo"]);
    tx.add(&Flowtable::new(Family::INET, "t", "f", 0, devices))
        .unwrap();
    let missing = nft.preflight(&tx).unwrap();
    match nft.check(&tx) {
        Ok(()) => assert!(missing.is_empty(), "{missing:?}"),
        Err(_) => {
            assert_eq!(needs(&missing), [&Need::Flowtable(Family::INET)]);
            assert_eq!(missing[0].need.config(), Some("CONFIG_NF_FLOW_TABLE_INET"));
            println!("{}", missing[0]);
        }
    }
}

/// An expression in an expression.
#[test]
fn what_stands_inside_is_asked_for_too() {
    let sandbox = common::sandbox();
    let mut nft = common::connect(&sandbox);
    let tx = with_rule(Family::INET, |rule| {
        rule.push(&Dynset {
            set_name: Some("s".into()),
            expressions: Some(list("no_such")),
            ..Dynset::default()
        });
    });
    let missing = nft.preflight(&tx).unwrap();
    assert_eq!(
        needs(&missing),
        [&Need::Expression(Family::INET, "no_such".into())]
    );
}

/// The model has everything.
#[test]
fn the_model_answers_as_well() {
    let mut nft = Model::new().connect().unwrap();
    let tx = with_rule(Family::IP, |rule| _ = rule.push(&Counter::new(0, 0)));
    assert!(nft.preflight(&tx).unwrap().is_empty());
    let tx = with_rule(Family::IP, |rule| rule.expressions = Some(list("no_such")));
    assert_eq!(nft.preflight(&tx).unwrap().len(), 1);
}

/// Who may not make tables is not told that the kernel has them.
#[test]
fn without_privileges_there_is_no_answer() {
    let sandbox = common::sandbox();
    let answered = sandbox.run(|| {
        let mut nft = Connection::open().unwrap();
        // On a thread of its own, whose capabilities go with it.
        caps::drop(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        let tx = with_rule(Family::IP, |rule| _ = rule.push(&Counter::new(0, 0)));
        nft.preflight(&tx).map(drop)
    });
    let Err(Error::Commit(error)) = answered.unwrap() else {
        panic!("it was answered");
    };
    assert_eq!(error.failures[0].errno.name(), "EPERM");
}
