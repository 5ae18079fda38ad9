//! Descriptions of operations, and paths of the attributes reported by the kernel.

use super::*;
use crate::nft::Transaction;
use crate::nft::expr::Verdict;
use crate::nft::expr::{Cmp, Immediate, Meta, MetaKey, Register};

fn described(tx: &Transaction) -> Vec<String> {
    crate::netlink::Messages::new(tx.operations())
        .enumerate()
        .map(|(i, m)| describe(i, &m.unwrap()).to_string())
        .collect()
}

#[test]
fn hints_match_the_reported_attribute() {
    let mut tx = Transaction::new();
    tx.add(&Rule::new(Family::IP, "nat", "missing")).unwrap();
    tx.add(&Chain::new(Family::IP, "nat", "odd")).unwrap();
    let mut messages = crate::netlink::Messages::new(tx.operations());
    let rule = describe(0, &messages.next().unwrap().unwrap());
    let chain = describe(1, &messages.next().unwrap().unwrap());
    for (errno, operation, attribute, expected) in [
        (
            libc::ENOENT,
            &rule,
            Some("NFTA_RULE_TABLE"),
            "the table does not exist",
        ),
        (
            libc::ENOENT,
            &rule,
            Some("NFTA_RULE_CHAIN"),
            "the table has no such chain",
        ),
        (
            libc::ENOENT,
            &rule,
            Some("NFTA_RULE_EXPRESSIONS, expression 0 (lookup)"),
            "that the expression refers to does not exist",
        ),
        (
            libc::ENOENT,
            &rule,
            None,
            "its table, chain, a chain that it jumps to",
        ),
        (
            libc::ENOENT,
            &chain,
            Some("NFTA_CHAIN_TYPE"),
            "no chains of this type",
        ),
        (
            libc::ENOENT,
            &chain,
            Some("NFTA_CHAIN_TABLE"),
            "its table does not exist",
        ),
        (libc::EOPNOTSUPP, &chain, None, "no hook of this number"),
    ] {
        let hint = hint(Errno::new(errno), Some(operation), attribute).unwrap();
        assert!(hint.contains(expected), "{attribute:?}: {hint}");
    }
}

#[test]
fn every_verb_is_named() {
    let table = Table::new(Family::IP, "nat");
    let chain = Chain::new(Family::IP, "nat", "KUBE-SERVICES");
    let mut rule = Rule::new(Family::IP, "nat", "KUBE-SERVICES");
    let mut tx = Transaction::new();
    tx.add(&table).unwrap();
    tx.create(&chain).unwrap();
    tx.add(&rule).unwrap();
    tx.insert(&rule).unwrap();
    rule.handle = Some(5);
    tx.replace(&rule).unwrap();
    tx.delete(&rule).unwrap();
    tx.flush_chain(Family::IP, "nat", "KUBE-SERVICES").unwrap();
    tx.flush_table(Family::IP, "nat").unwrap();
    tx.destroy(&chain).unwrap();
    tx.flush_ruleset(Family::UNSPEC).unwrap();
    assert_eq!(
        described(&tx),
        [
            "add table ip nat #0",
            "create chain ip nat KUBE-SERVICES #1",
            "add rule ip nat KUBE-SERVICES #2",
            "insert rule ip nat KUBE-SERVICES #3",
            "replace rule ip nat KUBE-SERVICES handle 5 #4",
            "delete rule ip nat KUBE-SERVICES handle 5 #5",
            "flush rule ip nat KUBE-SERVICES #6",
            "flush rule ip nat #7",
            "destroy chain ip nat KUBE-SERVICES #8",
            "flush table all #9",
        ]
    );
}

#[test]
fn sets_elements_and_objects_are_named() {
    use crate::nft::expr::Counter;
    use crate::nft::stateful::CtHelper;
    use crate::nft::{DataType, Devices};
    let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4);
    let element = Element::new(&[10, 0, 0, 1]);
    let counter = StatefulObject::new(Family::IP, "t", "n", Counter::new(0, 0));
    let helper = StatefulObject::new(Family::IP, "t", "h", CtHelper::new("ftp", 6));
    let mut tx = Transaction::new();
    tx.add(&set).unwrap();
    tx.destroy(&set).unwrap();
    tx.add_elements(&set.set_id(), [&element]).unwrap();
    tx.create_elements(&set.set_id(), [&element]).unwrap();
    tx.delete_elements(&set.set_id(), [&element]).unwrap();
    tx.destroy_elements(&set.set_id(), [&element]).unwrap();
    tx.flush_set(&set.set_id()).unwrap();
    tx.add(&counter).unwrap();
    tx.delete(&helper).unwrap();
    tx.delete(&StatefulObject::named(Family::IP, "t", ObjectType(99), "x"))
        .unwrap();
    tx.create(&Flowtable::new(
        Family::IP,
        "t",
        "f",
        0,
        Devices::new(["lo"]),
    ))
    .unwrap();
    assert_eq!(
        described(&tx),
        [
            "add set ip t s #0",
            "destroy set ip t s #1",
            "add element ip t s #2",
            "create element ip t s #3",
            "delete element ip t s #4",
            "destroy element ip t s #5",
            "flush element ip t s #6",
            "add counter ip t n #7",
            "delete ct helper ip t h #8",
            "delete object ip t x #9",
            "create flowtable ip t f #10",
        ]
    );
}

/// Returns the paths of all attributes of a transaction's first message.
fn named(tx: &Transaction) -> Vec<String> {
    let (message, _) = Message::split(tx.operations()).unwrap();
    (20..message.raw.len() as u32)
        .step_by(4)
        .filter_map(|at| attribute_at(&message, at))
        .collect()
}

#[test]
fn path_of_an_attribute_in_an_element() {
    let keys: Vec<_> = (0..20u8).map(|n| [10, 0, 0, n]).collect();
    let elements = keys.iter().map(|key| Element::new(key).with_data(&[1; 4]));
    let mut tx = Transaction::new();
    let set = crate::nft::SetId::new(Family::IP, "t", "m");
    tx.add_elements(&set, elements.chain([Element::catch_all()]))
        .unwrap();
    let named = named(&tx);
    for wanted in [
        "NFTA_SET_ELEM_LIST_SET",
        "NFTA_SET_ELEM_LIST_ELEMENTS",
        "NFTA_SET_ELEM_LIST_ELEMENTS, element 0 (0a000000)",
        "NFTA_SET_ELEM_LIST_ELEMENTS, element 17 (0a000011), NFTA_SET_ELEM_KEY",
        "NFTA_SET_ELEM_LIST_ELEMENTS, element 19 (0a000013), NFTA_SET_ELEM_DATA",
        "NFTA_SET_ELEM_LIST_ELEMENTS, element 20, NFTA_SET_ELEM_FLAGS",
    ] {
        assert!(
            named.iter().any(|n| n == wanted),
            "{wanted} is not in {named:#?}"
        );
    }
}

#[test]
fn path_of_an_attribute_in_an_object() {
    use crate::nft::expr::Counter;
    let mut tx = Transaction::new();
    tx.add(&StatefulObject::new(
        Family::IP,
        "t",
        "n",
        Counter::new(1, 2),
    ))
    .unwrap();
    let named = named(&tx);
    for wanted in ["NFTA_OBJ_TYPE", "NFTA_OBJ_DATA, NFTA_COUNTER_PACKETS"] {
        assert!(
            named.iter().any(|n| n == wanted),
            "{wanted} is not in {named:#?}"
        );
    }
}

#[test]
fn path_of_an_attribute_in_an_expression() {
    let mark = 0x8000u32.to_ne_bytes();
    let rule = Rule::new(Family::IP, "nat", "A")
        .with(&Meta::load(MetaKey::MARK, Register::R1))
        .with(&Cmp::eq(Register::R1, &mark))
        .with(&Immediate::verdict(Verdict::Jump("B".into())));
    let mut tx = Transaction::new();
    tx.add(&rule).unwrap();
    let (message, _) = Message::split(tx.operations()).unwrap();
    let named: Vec<_> = (20..message.raw.len() as u32)
        .step_by(4)
        .filter_map(|at| attribute_at(&message, at))
        .collect();
    assert_eq!(named[0], "NFTA_RULE_TABLE");
    for wanted in [
        "NFTA_RULE_CHAIN",
        "NFTA_RULE_EXPRESSIONS",
        "NFTA_RULE_EXPRESSIONS, expression 0 (meta), NFTA_META_KEY",
        "NFTA_RULE_EXPRESSIONS, expression 1 (cmp), NFTA_CMP_DATA",
        "NFTA_RULE_EXPRESSIONS, expression 2 (immediate), NFTA_IMMEDIATE_DATA",
    ] {
        assert!(
            named.iter().any(|n| n == wanted),
            "{wanted} is not in {named:#?}"
        );
    }
    assert_eq!(attribute_at(&message, 4), None);
    assert_eq!(attribute_at(&message, 9999), None);
}
