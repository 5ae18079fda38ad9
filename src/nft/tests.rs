//! Tests of all objects beyond [`properties`](super::properties), and of their JSON.

use std::collections::BTreeSet;
use std::fmt::Display;

use proptest::collection::vec;

use super::properties::{
    Arbitrary, DEPTH, Declared, arbitrary_attributes, assert_serial, damage, damaged, nearly_valid,
    noise, payload, run, written,
};
use super::*;
use crate::netlink::{Attributes, Message};

/// Checks that the object can be formatted, and that arbitrary bytes can be formatted if they can
/// be parsed as this object.
fn shown<T: Declared>(show: fn(&[u8]) -> Option<String>) {
    let noise = vec(noise(T::KINDS), 3);
    run(48, (T::arbitrary(DEPTH), noise), |(value, noise)| {
        let Some(bytes) = written(|writer| value.write(writer)) else {
            return;
        };
        let text = show(&payload(value.family(), &bytes)).expect("cannot read the written message");
        assert!(!text.is_empty());
        for noise in &noise {
            show(&payload(value.family(), &nearly_valid(&bytes, noise)));
        }
    });
}

fn text(view: &impl Display) -> String {
    view.to_string()
}

#[test]
fn any_parsed_object_can_be_formatted() {
    shown::<Chain<'static>>(|bytes| ChainRef::of_payload(bytes).ok().as_ref().map(text));
    shown::<Rule<'static>>(|bytes| {
        let rule = RuleRef::of_payload(bytes).ok()?;
        let _ = (Compat::of(&rule), rule.comment());
        assert!(!rule.to_builder().to_string().is_empty());
        Some(rule.to_string())
    });
    shown::<Set<'static>>(|bytes| SetRef::of_payload(bytes).ok().as_ref().map(text));
    shown::<Flowtable<'static>>(|bytes| FlowtableRef::of_payload(bytes).ok().as_ref().map(text));
    shown::<StatefulObject<'static>>(|bytes| {
        let object = StatefulObjectRef::of_payload(bytes).ok()?;
        Some(object.to_string())
    });
    shown::<Elements<'static>>(|bytes| {
        let elements = ElementsRef::of_payload(bytes).ok()?;
        let all = elements.elements().into_iter().flatten();
        let texts: String = all.flatten().map(|element| element.to_string()).collect();
        Some(format!("{:?} {texts}", elements.to_builder()))
    });
}

/// Checks that every operation is described by its object, each byte of its message belongs to a
/// named attribute, and a damaged message causes no panic.
fn described<T: Declared + Object>() {
    let damages = vec(damage(), 2);
    run(24, (T::arbitrary(DEPTH), damages), |(object, damages)| {
        let mut tx = Transaction::new();
        let verbs = ["add", "create", "delete", "destroy"];
        let all = tx.add(&object).and_then(|tx| {
            tx.create(&object)?.delete(&object)?.destroy(&object)?;
            Ok(())
        });
        if all.is_err() {
            return; // too long
        }
        let messages: Vec<Vec<u8>> = tx.datagram(|datagram| {
            let all = crate::netlink::Messages::new(datagram);
            all.map(|message| message.unwrap().raw.to_vec()).collect()
        });
        for (verb, bytes) in verbs.iter().zip(&messages[1..]) {
            let (message, _) = Message::split(bytes).unwrap();
            let operation = explain::describe(7, &message);
            assert_eq!((operation.verb, operation.index), (*verb, 7), "{object:?}");
            assert_eq!(operation.family, Declared::family(&object));
            let typed = operation.kind == T::MESSAGES.kind || T::MESSAGES.kind == "object";
            assert!(typed && !operation.path.is_empty(), "{operation}");
            let mut at = 20; // after header and nfgenmsg
            for attribute in message.attributes().unwrap().flatten() {
                let name = explain::attribute_at(&message, at).unwrap();
                match T::KINDS.iter().find(|(kind, _)| *kind == attribute.kind) {
                    Some((_, known)) => assert_eq!(name, *known),
                    None => assert_eq!(name, format!("attribute {}", attribute.kind)),
                }
                at += attribute.raw.len() as u32;
            }
            for damages in &damages {
                let bytes = [&bytes[..16], &damaged(bytes[16..].to_vec(), damages)].concat();
                let mut bytes = bytes;
                let length = u32::try_from(bytes.len()).unwrap().to_ne_bytes();
                bytes[..4].copy_from_slice(&length);
                let (message, _) = Message::split(&bytes).unwrap();
                let operation = explain::describe(0, &message);
                let _ = format!("{operation} {operation:?}");
                // The kernel may report any offset.
                for offset in (0..bytes.len() as u32 + 8).step_by(3).chain([u32::MAX]) {
                    let _ = explain::attribute_at(&message, offset);
                }
            }
        }
    });
}

#[test]
fn any_operation_is_described() {
    described::<Table<'static>>();
    described::<Chain<'static>>();
    described::<Rule<'static>>();
    described::<Set<'static>>();
    described::<Elements<'static>>();
    described::<StatefulObject<'static>>();
    described::<Flowtable<'static>>();
}

/// An element's view, which tries the kernel's order first, parses the same as its builder.
#[test]
fn elements_are_read_alike_by_view_and_builder() {
    let kinds: Vec<u16> = Element::ATTRIBUTES.iter().map(|(kind, _)| *kind).collect();
    let noise = vec(
        (
            noise(Element::ATTRIBUTES),
            arbitrary_attributes(&kinds),
            damage(),
        ),
        3,
    );
    run(
        96,
        (Element::arbitrary(DEPTH), noise),
        |(element, noise)| {
            let Some(bytes) = written(|writer| element.write_attributes(writer)) else {
                return;
            };
            assert_eq!(ElementRef::parse(&bytes).unwrap().to_builder(), element);
            let mut many = vec![bytes.clone()];
            for (noise, arbitrary_attributes, damages) in &noise {
                many.push(nearly_valid(&bytes, noise));
                many.push(damaged(arbitrary_attributes.clone(), damages));
            }
            for bytes in many {
                let view = ElementRef::parse(&bytes);
                let builder = Element::from_attributes(&bytes);
                // For duplicate attributes a view checks both, a builder only the last one.
                let all = Attributes::new(&bytes).flatten().map(|this| this.kind);
                let types: BTreeSet<u16> = all.clone().collect();
                if types.len() == all.count() {
                    assert_eq!(view.is_ok(), builder.is_ok(), "{view:?} {builder:?}");
                }
                let (Ok(view), Ok(builder)) = (view, builder) else {
                    continue;
                };
                let _ = format!("{view} {view:?} {:?}", view.comment());
                assert_eq!(view.to_builder(), builder);
                let key = builder.key.as_ref().and_then(|key| key.as_value());
                assert_eq!(view.key_bytes(), key);
            }
        },
    );
}

/// For each type of stateful object, written data is parsed as the same data for an object of that
/// type, and as opaque for an object of another type.
#[test]
fn every_type_of_object_round_trips() {
    let mut types = BTreeSet::new();
    for strategy in ObjectData::strategies(DEPTH) {
        let met = std::cell::Cell::new(None);
        run(24, strategy, |data| {
            met.set(data.object_type());
            let object = StatefulObject {
                handle: Some(1),
                ..StatefulObject::new(Family::INET, "t", "o", data.clone())
            };
            let Some(object_type) = object.object_type else {
                return; // opaque
            };
            assert!(
                ObjectData::attribute_names(object_type)
                    .iter()
                    .all(|(kind, _)| *kind > 0)
            );
            let Some(bytes) = written(|writer| object.write_attributes(writer)) else {
                return;
            };
            let bytes = payload(object.family, &bytes);
            let view = StatefulObjectRef::of_payload(&bytes).unwrap();
            assert_eq!(view.data().as_ref(), Some(&data));
            assert_eq!(view.to_builder().into_owned(), object);
            let line = data.to_string();
            assert!(line.starts_with('[') && line.ends_with(']'), "{line}");
            assert_serial(&object);
        });
        types.extend(met.get().map(|met| met.name().unwrap()));
    }
    let all = [
        "connlimit",
        "counter",
        "ct expectation",
        "ct helper",
        "ct timeout",
        "limit",
        "quota",
        "secmark",
        "synproxy",
        "tunnel",
    ];
    assert_eq!(types.into_iter().collect::<Vec<_>>(), all);
}

#[cfg(feature = "serde")]
mod json {
    use proptest::strategy::Strategy;
    use serde_json::{Value, from_value, json, to_value};

    use super::super::properties::Serial;
    use super::*;
    use crate::nft::expr::{
        Cmp, Counter, Data, Decoded, Immediate, Limit, Masq, Match, Meta, MetaKey, Opaque, Payload,
        PayloadBase, Register, Verdict,
    };

    /// Asserts the JSON of a value, which omits fields that are not set.
    #[track_caller]
    fn assert_json<T: Serial + PartialEq + std::fmt::Debug>(value: &T, expected: Value) {
        assert_eq!(to_value(value).unwrap(), expected, "{value:?}");
        assert_eq!(&from_value::<T>(expected).unwrap(), value);
        assert_serial(value);
    }

    /// Returns the error for invalid JSON.
    #[track_caller]
    fn refused<T: Serial + std::fmt::Debug>(value: Value) -> String {
        // Parsed from text, as given by a user.
        let error = serde_json::from_str::<T>(&value.to_string()).unwrap_err();
        error
            .to_string()
            .split(" at line")
            .next()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn tables_and_chains() {
        let table = Table {
            flags: Some(TableFlags::DORMANT | TableFlags::from_bits_retain(0x100)),
            ..Table::new(Family::INET, "t")
        };
        assert_json(
            &table,
            json!({"family": "inet", "name": "t", "flags": "DORMANT | 0x100"}),
        );
        let chain = Chain::new(Family::NETDEV, "t", "c")
            .with_hook("filter", 0, -10)
            .with_devices(Devices::new(["eth0"]))
            .with_policy(Policy::DROP);
        assert_json(
            &chain,
            json!({
                "family": "netdev",
                "table": "t",
                "name": "c",
                "hook": {"number": 0, "priority": -10, "devices": [{"name": "eth0"}]},
                "policy": "drop",
                "chain_type": "filter",
            }),
        );
        let chain = Chain {
            family: Family(99),
            handle: Some(u64::MAX),
            policy: Some(Policy(7)),
            userdata: Some(Bytes::borrowed(&[0, 2, b'a', 0])),
            ..Chain::empty()
        };
        assert_json(
            &chain,
            json!({"family": 99, "handle": u64::MAX, "policy": 7, "userdata": "00026100"}),
        );
    }

    #[test]
    fn a_rule_with_expressions() {
        let mut rule = Rule::new(Family::IP, "nat", "KUBE-POSTROUTING")
            .with(&Payload::load(PayloadBase::NETWORK, 16, 4, Register::R1))
            .with(&Cmp::eq(Register::R1, &[10, 96, 0, 1]))
            .with(&Meta::load(MetaKey::MARK, Register::word(0)))
            .with(&Match::new("comment", 0, &[0x61, 0]))
            .with(&Counter::new(1, 2))
            .with(&Limit::packets(10, 1, 5))
            .with(&Masq::default())
            .with(&Immediate::jump("KUBE-MARK-MASQ"))
            .with(&Immediate::drop());
        let opaque = Opaque {
            name: "tomorrow".into(),
            attributes: Bytes::borrowed(&[8, 0, 1, 0, 0, 0, 0, 1]),
        };
        rule.expressions
            .as_mut()
            .unwrap()
            .push_decoded(&Decoded::Opaque(opaque));
        assert_json(
            &rule,
            json!({
                "family": "ip",
                "table": "nat",
                "chain": "KUBE-POSTROUTING",
                "expressions": [
                    {"payload": {"dreg": "1", "base": "network", "offset": 16, "len": 4}},
                    {"cmp": {"sreg": "1", "op": "eq", "data": {"value": "0a600001"}}},
                    {"meta": {"key": "mark", "dreg": 8}},
                    {"match": {"name": "comment", "revision": 0, "info": "6100"}},
                    {"counter": {"bytes": 2, "packets": 1}},
                    {"limit": {
                        "rate": 10, "unit": 1, "burst": 5, "limit_type": "packets", "flags": "",
                    }},
                    {"masq": {}},
                    {"immediate": {
                        "dreg": "verdict", "data": {"verdict": {"jump": "KUBE-MARK-MASQ"}},
                    }},
                    {"immediate": {"dreg": "verdict", "data": {"verdict": "drop"}}},
                    {"opaque": {"name": "tomorrow", "attributes": "0800010000000001"}},
                ],
            }),
        );
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn sets_and_elements() {
        let fields = [(DataType::IPV4_ADDR, 4), (DataType::INET_SERVICE, 2)];
        let set = Set::new(Family::IP, "t", "s", DataType::IPV4_ADDR, 4)
            .with_interval_fields(&fields)
            .with_verdicts()
            .with_expression(&Counter::new(0, 0));
        assert_json(
            &set,
            json!({
                "family": "ip",
                "table": "t",
                "name": "s",
                "flags": "INTERVAL | MAP | CONCAT",
                "key_type": (7 << 6) + 13,
                "key_length": 8,
                "data_type": "verdict",
                "data_length": 0,
                "userdata": "000402000000",
                "description": {"fields": [{"length": 4}, {"length": 2}]},
                "expression": {"counter": {"bytes": 0, "packets": 0}},
            }),
        );
        let elements: Elements<'_> = Elements {
            family: Family::IP,
            table: Some("t".into()),
            set: Some("s".into()),
            elements: Some(
                [
                    Element::new(&[10, 0, 0, 1]).with_verdict(Verdict::Goto("c".into())),
                    Element::new(&[10, 0, 0, 2])
                        .with_data(&[0, 80])
                        .with_timeout(std::time::Duration::from_secs(30)),
                    Element::catch_all().with_object("o"),
                ]
                .into_iter()
                .collect(),
            ),
            ..Elements::empty()
        };
        assert_json(
            &elements,
            json!({
                "family": "ip",
                "table": "t",
                "set": "s",
                "elements": [
                    {"key": {"value": "0a000001"}, "data": {"verdict": {"goto": "c"}}},
                    {"key": {"value": "0a000002"}, "data": {"value": "0050"}, "timeout": 30000},
                    {"flags": "CATCHALL", "object": "o"},
                ],
            }),
        );
        let object = StatefulObject::new(Family::IP, "t", "o", Counter::new(3, 4));
        assert_json(
            &object,
            json!({
                "family": "ip",
                "table": "t",
                "name": "o",
                "object_type": "counter",
                "data": {"counter": {"bytes": 4, "packets": 3}},
            }),
        );
    }

    /// Unknown attributes of a newer kernel are preserved as bytes.
    #[test]
    #[cfg(target_endian = "little")]
    fn unknown_attributes() {
        let bytes = [8, 0, 60, 0, 1, 2, 3, 4];
        let counter = Counter::from_attributes(&bytes).unwrap();
        assert_json(&counter, json!({"unknown": "08003c0001020304"}));
        assert_eq!(
            refused::<Counter>(json!({"unknown": "08003c00010203"})),
            "malformed netlink attribute at byte 0: its length exceeds the remaining \
             bytes"
        );
    }

    /// Names need not be UTF-8.
    #[test]
    fn names() {
        for (name, json) in [
            (&b"plain"[..], "plain"),
            ("übung \u{1f980}".as_bytes(), "übung \u{1f980}"),
            (b"a\\b", r"a\\b"),
            (br"\xff", r"\\xff"),
            (b"\xff\xfe!", r"\xFF\xFE!"),
            (b"\xff\\", r"\xFF\\"),
            (b"tab\there", "tab\there"),
            (b"\"quoted\"", "\"quoted\""),
            (b"", ""),
        ] {
            assert_json(&Name::from(name).into_owned(), json!(json));
        }
        run(256, Name::arbitrary(0), |name| assert_serial(&name));
        run(256, vec(1u8.., 0..255), |bytes| {
            assert_serial(&Name::from(&bytes[..]).into_owned())
        });
        let backslashes = vec(proptest::sample::select(b"\\x0f\xffn".to_vec()), 0..9);
        run(
            256,
            backslashes.prop_map(|b| Name::from(&b[..]).into_owned()),
            |name| {
                assert_serial(&name);
            },
        );
    }

    #[test]
    fn invalid_json_is_rejected_with_a_reason() {
        for (error, expected) in [
            (
                refused::<Table<'static>>(json!({"family": "ip", "nmae": "t"})),
                "unknown field `nmae`, expected one of `family`, `name`, `handle`, `flags`",
            ),
            (
                refused::<Rule<'static>>(json!({"expressions": [{"cmpp": {}}]})),
                "unknown variant `cmpp`, expected one of `bitwise`, `byteorder`",
            ),
            (
                refused::<Rule<'static>>(json!({"expressions": [{"cmp": {"srge": "1"}}]})),
                "unknown field `srge`, expected one of `sreg`, `op`, `data`, `unknown`",
            ),
            (
                refused::<Opaque<'static>>(json!({"name": "x", "attributes": "", "more": 1})),
                "unknown field `more`",
            ),
            (
                refused::<Verdict<'static>>(json!({"other": {"code": 3, "cdoe": 4}})),
                "unknown field `cdoe`",
            ),
            (
                refused::<SetId<'static>>(
                    json!({"family": "ip", "table": "t", "set": "s", "x": 1}),
                ),
                "unknown field `x`",
            ),
            (
                refused::<Data<'static>>(json!({"value": "0a0"})),
                "`0a0` is not pairs of hexadecimal digits",
            ),
            (
                refused::<Data<'static>>(json!({"value": "0x0a"})),
                "`0x0a` is not pairs of hexadecimal digits",
            ),
            (
                refused::<Data<'static>>(json!({"value": "ää"})),
                "`ää` is not pairs of hexadecimal digits",
            ),
            (
                refused::<Family>(json!("ipv4")),
                "`ipv4` is not the name of a value of Family",
            ),
            (
                refused::<Policy>(json!(-1)),
                "data did not match any variant",
            ),
            (
                refused::<TableFlags>(json!("DORMANT | SLEEPY")),
                "unrecognized named flag",
            ),
        ] {
            assert!(error.starts_with(expected), "{error}");
        }
    }

    /// Data without a JSON form is rejected, so that no rule loses an expression.
    #[test]
    fn a_list_that_is_malformed_has_no_json() {
        for bytes in [
            &[4, 0, 1, 0][..], // an expression without a name
            &[4, 0, 9, 0],     // not an expression
            &[9, 0, 1],        // half a header
        ] {
            let rule = Rule {
                expressions: Some(crate::nft::expr::Expressions::of_bytes(bytes)),
                ..Rule::empty()
            };
            assert!(to_value(&rule).is_err(), "{rule:?}");
        }
    }
}
