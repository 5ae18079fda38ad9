//! Properties for any bytes and values: reading never panics and always ends, and written objects are
//! read back.

mod bytes;

use bytes::{damage, damaged, datagram};
use chainwright::netlink::{Message, Messages};
use chainwright::nft::expr::{
    Cmp, CmpOp, Connlimit, Counter, Dynset, Immediate, Limit, Lookup, Match, Meta, MetaKey,
    ObjectType, Objref, Payload, PayloadBase, Register,
};
use chainwright::nft::{
    Chain, ChainRef, DataType, Device, Devices, Element, Elements, ElementsRef, Family, Flowtable,
    FlowtableRef, Object, Policy, Rule, RuleRef, Set, SetRef, StatefulObject, StatefulObjectRef,
    Table, TableRef, Transaction,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// `NLMSG_ERROR` and `NLMSG_DONE` of `linux/netlink.h`.
const NLMSG_ERROR: u16 = 2;

const NLMSG_DONE: u16 = 3;

/// This number of cases, or the one in the environment (`PROPTEST_CASES`).
fn config(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    config
}

// ---------------------------------------------------------------------------------------------
// Objects as a user makes them. Tests inside the crate, one per declaration, check that any value of
// each declared type is read as it was written.

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{1,40}", "\\PC{1,10}"]
}

fn family() -> impl Strategy<Value = Family> {
    prop_oneof![
        4 => proptest::sample::select(vec![Family::IP, Family::IP6, Family::INET, Family::NETDEV]),
        1 => any::<u8>().prop_map(Family),
    ]
}

fn rule() -> impl Strategy<Value = Rule<'static>> {
    let register = any::<u8>().prop_map(|number| Register::word(number.into()));
    let values = (name(), vec(any::<u8>(), 0..40), any::<u32>(), register);
    let expression = (0..12u8, values);
    (family(), name(), name(), vec(expression, 0..8)).prop_map(
        |(family, table, chain, expressions)| {
            let mut rule = Rule {
                handle: Some(7),
                ..Rule::new(family, table, chain)
            };
            for (which, (name, bytes, number, register)) in &expressions {
                match which {
                    0 => rule.push(&Counter::new(u64::from(*number), 9)),
                    1 => rule.push(&Cmp::new(*register, CmpOp(*number % 8), bytes)),
                    2 => rule.push(&Meta::load(MetaKey(*number % 40), *register)),
                    3 => rule.push(&Payload::load(PayloadBase::NETWORK, *number, 4, *register)),
                    4 => rule.push(&Immediate::jump(name)),
                    5 => rule.push(&Immediate::value(*register, bytes)),
                    6 => rule.push(&Match::new(name, *number, bytes)),
                    7 => rule.push(&Lookup::map(*register, name, Register::VERDICT)),
                    8 => rule.push(&Limit::packets(u64::from(*number), 60, 5)),
                    9 => rule.push(&Objref::named(ObjectType::COUNTER, name)),
                    10 => rule.push(
                        &Dynset::add(name, *register).with_expression(&Connlimit::over(*number)),
                    ),
                    _ => rule.push(&Immediate::drop()),
                };
            }
            rule
        },
    )
}

fn element() -> impl Strategy<Value = Element<'static>> {
    let bytes = || vec(any::<u8>(), 0..64);
    (0..6u8, bytes(), bytes(), name(), any::<u32>()).prop_map(
        |(which, key, other, name, number)| match which {
            0 => Element::new(key),
            1 => Element::new(key).with_data(other),
            2 => Element::range(key, other)
                .with_timeout(std::time::Duration::from_millis(number.into())),
            3 => Element::new(key).with_object(name),
            4 => Element::new(key).with_expression(&Counter::new(number.into(), 2)),
            _ => Element::catch_all(),
        },
    )
}

/// Any object.
#[derive(Debug, Clone)]
enum Any {
    Table(Table<'static>),
    Chain(Chain<'static>),
    Rule(Rule<'static>),
    Set(Set<'static>),
    Elements(Elements<'static>),
    Object(StatefulObject<'static>),
    Flowtable(Flowtable<'static>),
}

/// The same expression for any of the objects.
macro_rules! each {
    ($any:expr, $object:ident => $do:expr) => {
        match $any {
            Any::Table($object) => $do,
            Any::Chain($object) => $do,
            Any::Rule($object) => $do,
            Any::Set($object) => $do,
            Any::Elements($object) => $do,
            Any::Object($object) => $do,
            Any::Flowtable($object) => $do,
        }
    };
}

use each;

fn object() -> impl Strategy<Value = Any> {
    let names = || (family(), name(), name(), any::<u32>());
    let table = names().prop_map(|(family, name, comment, number)| Table {
        handle: Some(1),
        references: Some(number),
        userdata: Some(comment.into_bytes().into()),
        ..Table::new(family, name)
    });
    let chain = names().prop_map(|(family, table, name, number)| {
        let mut devices = Devices::new(["eth0"]);
        devices.push(Device::Prefix("veth".into()));
        let chain = Chain {
            handle: Some(2),
            ..Chain::new(family, table, name)
        };
        match number % 2 {
            0 => chain,
            _ => chain
                .with_hook("filter", number, -1)
                .with_devices(devices)
                .with_policy(Policy(number)),
        }
    });
    let set = names().prop_map(|(family, table, name, number)| {
        let set = Set::new(family, table, name, DataType(number), 4);
        let set = match number % 3 {
            0 => set.with_interval_fields(&[(DataType::IPV4_ADDR, 4), (DataType::MARK, 4)]),
            1 => set.with_objects(ObjectType::QUOTA).with_size(number),
            _ => set.with_verdicts().with_expression(&Counter::new(0, 0)),
        };
        Set {
            handle: Some(3),
            id: Some(number), // one is written in any case
            ..set
        }
    });
    let elements =
        (names(), vec(element(), 0..6)).prop_map(|((family, table, set, _), elements)| Elements {
            family,
            table: Some(table.into()),
            set: Some(set.into()),
            elements: Some(elements.into_iter().collect()),
            ..Elements::empty()
        });
    let stateful = names().prop_map(|(family, table, name, number)| StatefulObject {
        handle: Some(4),
        ..match number % 2 {
            0 => StatefulObject::new(family, table, name, Counter::new(number.into(), 1)),
            _ => StatefulObject::new(family, table, name, Limit::packets(number.into(), 1, 5)),
        }
    });
    let flowtable = names().prop_map(|(family, table, name, number)| Flowtable {
        handle: Some(5),
        ..Flowtable::new(family, table, name, number as i32, Devices::new(["a", "b"]))
    });
    prop_oneof![
        table.prop_map(Any::Table),
        chain.prop_map(Any::Chain),
        rule().prop_map(Any::Rule),
        set.prop_map(Any::Set),
        elements.prop_map(Any::Elements),
        stateful.prop_map(Any::Object),
        flowtable.prop_map(Any::Flowtable),
    ]
}

/// The messages of a transaction, without begin and end.
fn messages(tx: &mut Transaction) -> Vec<Vec<u8>> {
    tx.datagram(|datagram| {
        let all: Result<Vec<_>, _> = Messages::new(datagram).collect();
        let all = all.unwrap();
        // NFNL_MSG_BATCH_BEGIN and NFNL_MSG_BATCH_END.
        assert_eq!((all[0].kind, all[all.len() - 1].kind), (0x10, 0x11));
        let inner = &all[1..all.len() - 1];
        let whole = |message: &Message<'_>| {
            let mut bytes = message.raw.to_vec();
            // The last one requests an acknowledgement (NLM_F_ACK), whichever it is.
            let flags = message.flags & !4;
            bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
            bytes
        };
        inner.iter().map(whole).collect()
    })
}

/// The message that adds an object.
fn written(object: &impl Object) -> Vec<u8> {
    let mut tx = Transaction::new();
    tx.add(object).unwrap();
    messages(&mut tx).remove(0)
}

// ---------------------------------------------------------------------------------------------
// Transactions.

/// Reads a message of the kernel as this kind of object.
fn read(kind: &Any, message: &Message<'_>) -> Any {
    match kind {
        Any::Table(_) => Any::Table(TableRef::parse(message).unwrap().to_builder().into_owned()),
        Any::Chain(_) => Any::Chain(ChainRef::parse(message).unwrap().to_builder().into_owned()),
        Any::Rule(_) => Any::Rule(RuleRef::parse(message).unwrap().to_builder().into_owned()),
        Any::Set(_) => Any::Set(SetRef::parse(message).unwrap().to_builder().into_owned()),
        Any::Elements(_) => Any::Elements(
            ElementsRef::parse(message)
                .unwrap()
                .to_builder()
                .into_owned(),
        ),
        Any::Object(_) => Any::Object(
            StatefulObjectRef::parse(message)
                .unwrap()
                .to_builder()
                .into_owned(),
        ),
        Any::Flowtable(_) => Any::Flowtable(
            FlowtableRef::parse(message)
                .unwrap()
                .to_builder()
                .into_owned(),
        ),
    }
}

proptest! {
    #![proptest_config(config(100))]

    /// A transaction contains the objects that were added, in order and numbered, each time it is
    /// read; and its operations can be moved to another one.
    #[test]
    fn transactions_contain_the_added_objects_in_order(
        objects in vec((object(), 0..4u8), 0..8), before in 0..3usize,
    ) {
        let mut tx = Transaction::new();
        for (object, verb) in &objects {
            each!(object, object => match verb {
                0 | 1 => tx.add(object),
                2 => tx.delete(object),
                _ => tx.destroy(object),
            })
            .unwrap();
        }
        prop_assert_eq!(tx.len(), objects.len());
        let all = messages(&mut tx);
        prop_assert_eq!(all.len(), objects.len());
        prop_assert_eq!(all.concat().len(), tx.byte_length());
        for (index, (bytes, (object, verb))) in all.iter().zip(&objects).enumerate() {
            let (message, rest) = Message::split(bytes).unwrap();
            prop_assert!(rest.is_empty());
            prop_assert_eq!(message.sequence as usize, index + 1);
            let family = each!(object, object => object.family);
            prop_assert_eq!(message.nfgenmsg().unwrap().0.family, family.0);
            if *verb < 2 {
                let again = format!("{:?}", read(object, &message));
                prop_assert_eq!(again, format!("{object:?}"));
                let written = each!(&read(object, &message), object => written(object));
                prop_assert_eq!(&written[16..], &bytes[16..]);
            } else {
                // Never everything: an attribute identifies the object.
                prop_assert!(message.attributes().unwrap().count() > 0);
            }
        }
        prop_assert_eq!(messages(&mut tx), all.clone());

        let mut other = Transaction::new();
        for number in 0..before {
            other.add(&Table::new(Family::IP, format!("{number}"))).unwrap();
        }
        other.append(&all.concat()).unwrap();
        let moved = messages(&mut other);
        prop_assert_eq!(moved.len(), before + all.len());
        for (moved, bytes) in moved[before..].iter().zip(&all) {
            prop_assert_eq!(&moved[..8], &bytes[..8]);
            prop_assert_eq!(&moved[16..], &bytes[16..]);
        }
    }

    /// Any bytes are operations or are refused, and then the transaction contains nothing of them.
    #[test]
    fn any_bytes_are_appended_whole_or_not_at_all(
        bytes in datagram(), objects in vec(object(), 0..3), damages in damage(),
    ) {
        let mut tx = Transaction::new();
        for object in &objects {
            each!(object, object => tx.add(object)).unwrap();
        }
        let before = messages(&mut tx);
        for bytes in [bytes, damaged(before.concat(), &damages)] {
            let mut copy = tx.clone();
            match copy.append(&bytes).map(drop) {
                Ok(()) => {
                    let added = Messages::new(&bytes).count();
                    prop_assert_eq!(copy.len(), tx.len() + added);
                    prop_assert_eq!(&messages(&mut copy)[..before.len()], &before[..]);
                }
                Err(_) => prop_assert_eq!(messages(&mut copy), before.clone()),
            }
        }
    }

    /// Elements are written completely and in order, in as many messages as needed.
    #[test]
    fn all_elements_are_stored(elements in vec(element(), 0..12), times in 0..150usize) {
        let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4);
        let many: Vec<_> = elements.iter().cycle().take(elements.len() * times).collect();
        let mut tx = Transaction::new();
        tx.add_elements(&set.set_id(), many.iter().copied()).unwrap();
        let mut found = 0;
        for bytes in messages(&mut tx) {
            let (message, _) = Message::split(&bytes).unwrap();
            for element in ElementsRef::parse(&message).unwrap().elements().unwrap() {
                prop_assert_eq!(&element.unwrap().to_builder(), many[found]);
                found += 1;
            }
        }
        prop_assert_eq!(found, many.len());
    }
}
