//! Parses and writes every expression as tools send it and the kernel lists it.
//!
//! Captured bytes are in `tests/data/expr`, which `cases` reads.

#[cfg(target_endian = "little")]
pub(super) mod cases;

use chainwright_sys::nf_tables::{NFTA_LIST_ELEM, NFTA_RULE_EXPRESSIONS};
use chainwright_sys::nf_tables_compat::NFTA_MATCH_INFO;
use proptest::prelude::{Strategy, prop, prop_oneof};

use super::*;
use crate::netlink::MessageErrorKind;
use crate::nft::declare::Padded;
use crate::nft::name::Bytes;
use crate::nft::properties::{
    Arbitrary, DEPTH, arbitrary_attributes, assert_serial, assert_serial_if_at_all, damage,
    damaged, run,
};
use crate::nft::{Family, Rule, Transaction};

/// Returns the output of [`MessageWriter`] without a message header.
fn written(content: impl FnOnce(&mut MessageWriter<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::bare(&mut bytes);
    content(&mut writer);
    writer.finish_bare().unwrap();
    bytes
}

/// Encodes an element of a list of expressions.
fn element(name: &str, attributes: &[u8]) -> Vec<u8> {
    written(|writer| {
        writer.nested(NFTA_LIST_ELEM, |writer| {
            writer
                .string(NFTA_EXPR_NAME, name.as_bytes())
                .nested(NFTA_EXPR_DATA, |writer| {
                    writer.encoded(attributes);
                });
        });
    })
}

/// Iterates over the expressions of an encoded list.
fn elements(list: &[u8]) -> ExpressionIter<'_> {
    ExpressionIter::new(list)
}

/// Creates an expression with these attributes, without a list.
fn expression<'a>(name: &'a str, attributes: &'a [u8]) -> ExpressionRef<'a> {
    ExpressionRef::new(name.into(), attributes)
}

#[test]
fn opaque_expressions_are_preserved() {
    // An expression of a newer kernel, between two known ones.
    let attributes = written(|writer| {
        writer.be32(1, 3).nested(2, |writer| {
            writer.bytes(1, b"abc");
        });
    });
    let unknown = element("of tomorrow", &attributes);
    let known = element("counter", &[]);
    let bytes = [&known[..], &unknown, &known].concat();
    let list = Expressions::decode(&bytes).unwrap();
    let (mut raw, mut decoded) = (Expressions::new(), Expressions::new());
    for expression in list.iter() {
        let expression = expression.unwrap();
        raw.push_raw(&expression);
        decoded.push_decoded(&expression.decode().unwrap());
    }
    assert_eq!(raw.as_bytes(), bytes);
    assert_eq!(decoded.as_bytes(), bytes);
    let opaque = list.iter().nth(1).unwrap().unwrap();
    assert!(opaque.attribute_names().is_empty());
    assert_eq!(
        opaque.decode(),
        Ok(Decoded::Opaque(Opaque {
            name: "of tomorrow".into(),
            attributes: (&attributes).into(),
        }))
    );
    assert!(format!("{raw:?}").contains("of tomorrow"));
    assert_eq!(
        opaque.decode().unwrap().to_string(),
        format!("[ of tomorrow 0x{} ]", Bytes::from(attributes)),
    );

    // In a rule, all of it is the payload of one attribute.
    let rule = Rule {
        expressions: Some(raw),
        ..Rule::new(Family::IP, "t", "c")
    };
    let mut tx = Transaction::new();
    tx.add(&rule).unwrap();
    assert!(tx.operations().ends_with(&bytes));
}

#[test]
fn a_list_is_in_the_order_in_which_it_was_filled() {
    let mut list = Expressions::new();
    assert_eq!(list, Expressions::default());
    assert!(list.iter().next().is_none());
    list.push(&Counter::new(1, 2))
        .push(&Meta::load(MetaKey::MARK, Register::R1))
        .push(&Immediate::accept());
    let names: Vec<_> = list.iter().map(|e| e.unwrap().name.to_string()).collect();
    assert_eq!(names, ["counter", "meta", "immediate"]);
    let first = list.iter().next().unwrap().unwrap();
    assert!(first.is::<Counter>() && !first.is::<Meta>());
    assert_eq!(first.decode(), Ok(Decoded::Counter(Counter::new(1, 2))));
    assert_eq!(first.attribute_names(), Counter::ATTRIBUTES);

    // The concatenated bytes of the elements are the list.
    let raw: Vec<_> = list.iter().map(|e| e.unwrap().raw).collect();
    assert_eq!(raw.concat(), list.as_bytes());
    assert_eq!(list.clone().into_static(), list);

    list.clear();
    assert_eq!(list.as_bytes(), b"");
    assert_eq!(format!("{list:?}"), "[]");
}

#[test]
fn appending_after_missing_padding_stays_aligned() {
    // The name ends the element; its padding is missing, and not counted.
    let mut bytes = written(|writer| {
        writer.nested(NFTA_LIST_ELEM, |writer| {
            writer.string(NFTA_EXPR_NAME, b"abcd");
        });
    });
    bytes.truncate(bytes.len() - 3);
    bytes[..2].copy_from_slice(&13u16.to_ne_bytes());
    let list = Expressions::decode(&bytes).unwrap();
    let first = list.iter().next().unwrap().unwrap();
    let mut raw = list.clone();
    raw.push_raw(&first).push_raw(&first);
    let mut typed = list.clone();
    typed.push(&Counter::default());
    for (list, names) in [(raw, &["abcd"; 3][..]), (typed, &["abcd", "counter"][..])] {
        let found: Vec<_> = list.iter().map(|e| e.unwrap().name.to_string()).collect();
        assert_eq!(found, names);
        assert_eq!(list.as_bytes().len() % 4, 0);
    }
}

#[test]
fn an_element_without_a_name_ends_the_list() {
    let unnamed = written(|writer| {
        writer.nested(NFTA_LIST_ELEM, |writer| {
            writer.nested(NFTA_EXPR_DATA, |writer| _ = writer.be32(1, 1));
        });
    });
    let empty = written(|writer| {
        writer.nested(NFTA_LIST_ELEM, |_| {});
    });
    // A length that fits into the element but not its content.
    let broken = written(|writer| {
        writer.nested(NFTA_LIST_ELEM, |writer| {
            writer.encoded(&[0xff; 4]);
        });
    });
    let good = element("counter", &[]);
    for bad in [unnamed, empty, broken] {
        let bytes = [&good[..], &bad, &good].concat();
        let items: Vec<_> = elements(&bytes).collect();
        assert_eq!(items.len(), 2);
        assert!(items[0].is_ok() && items[1].is_err());
        assert!(format!("{:?}", Expressions::decode(&bytes)).contains("Malformed"));
    }
}

#[test]
fn unknown_list_attributes_are_skipped() {
    let bytes = written(|writer| {
        writer
            .be32(NFTA_LIST_ELEM + 1, 7)
            .nested(NFTA_LIST_ELEM, |writer| {
                writer
                    .be32(NFTA_EXPR_DATA + 1, 7)
                    .string(NFTA_EXPR_NAME, b"masq")
                    .bytes(NFTA_EXPR_DATA + 2, &[1]);
            })
            .bytes(99, b"x");
    });
    let items: Vec<_> = elements(&bytes).collect();
    assert_eq!(items.len(), 1);
    let masq = items[0].unwrap();
    assert_eq!(masq.decode(), Ok(Decoded::Masq(Masq::default())));
    // But the element is preserved completely.
    assert_eq!(masq.raw, &bytes[8..bytes.len() - 8]);
}

#[test]
fn the_last_of_duplicate_attributes_wins() {
    let attributes = written(|writer| {
        writer.be64(1, 1).be64(2, 2).be64(1, 3);
    });
    let decoded = expression("counter", &attributes).decode();
    assert_eq!(decoded, Ok(Decoded::Counter(Counter::new(2, 3))));
}

#[test]
fn an_oversized_expression_leaves_the_transaction_unchanged() {
    let mut tx = Transaction::new();
    let rule = |expressions| Rule {
        expressions: Some(expressions),
        ..Rule::new(Family::IP, "t", "c")
    };
    let mut list = Expressions::new();
    list.push(&Counter::default());
    let counter = list.as_bytes().to_vec();
    tx.add(&rule(list.clone())).unwrap();
    let before = tx.operations().to_vec();

    // 65,531 bytes fit into one attribute, but not into its parents: name, revision and a header precede them in
    // `NFTA_EXPR_DATA`, which the expression's name precedes in the element.
    let data = 8 + 8 + 4;
    for (length, attribute, too_long) in [
        (70_000, NFTA_MATCH_INFO, 70_000),
        (65_531, NFTA_EXPR_DATA, data + 65_532),
        (65_508, NFTA_LIST_ELEM, 12 + 4 + data + 65_508),
    ] {
        let info = vec![0; length];
        list.push(&Match::new("abc", 0, &info[..]));
        // The list omits it, and accepts further expressions.
        assert_eq!(list.as_bytes(), counter);
        list.push(&Counter::default());
        assert_eq!(list.as_bytes(), counter.repeat(2));

        for list in [list.clone(), list.clone().into_static()] {
            let error = tx.add(&rule(list)).map(|_| ()).unwrap_err();
            assert_eq!(error.attribute, attribute);
            assert_eq!(
                error.error_kind,
                MessageErrorKind::TooLong { length: too_long }
            );
            assert_eq!((tx.len(), tx.operations()), (1, &before[..]));
        }
        list.clear();
        list.push(&Counter::default());
        tx.clone().add(&rule(list.clone())).unwrap();
    }

    // Each of them fits, but not all together.
    let info = vec![0; 40_000];
    list.push(&Match::new("abc", 0, &info[..]))
        .push(&Match::new("abc", 0, &info[..]));
    assert_eq!(list.iter().count(), 3);
    let error = tx.add(&rule(list)).map(|_| ()).unwrap_err();
    assert_eq!(error.attribute, NFTA_RULE_EXPRESSIONS);
    assert_eq!((tx.len(), tx.operations()), (1, &before[..]));
}

#[test]
fn the_registry_knows_every_name() {
    assert_eq!(NAMES.len(), 40);
    for &name in NAMES.iter().chain(&["of tomorrow"]) {
        let decoded = expression(name, &[]).decode().unwrap();
        let opaque = matches!(decoded, Decoded::Opaque(_));
        assert_eq!(opaque, name == "of tomorrow", "{name}");
        assert_eq!(decoded.name(), name);
        let mut list = Expressions::new();
        list.push_decoded(&decoded);
        let mut expected = element(name, &[]);
        if name == "notrack" {
            // It has no attributes and so no `NFTA_EXPR_DATA`.
            expected = written(|writer| {
                writer.nested(NFTA_LIST_ELEM, |writer| {
                    writer.string(NFTA_EXPR_NAME, b"notrack");
                });
            });
        }
        assert_eq!(list.as_bytes(), expected, "{name}");
    }
}

/// Every expression, with any of its attributes, survives an encoding and decoding, in a list and in an attribute.
#[test]
fn every_expression_round_trips() {
    let strategies = Decoded::strategies(DEPTH);
    let names: Vec<_> = strategies.iter().map(|(name, _)| *name).collect();
    assert_eq!(names[..names.len() - 1], *NAMES);
    for (name, strategy) in strategies {
        run(24, strategy, |typed| {
            if !name.is_empty() {
                assert_eq!(typed.name(), name);
            }
            let mut list = Expressions::new();
            list.push_decoded(&typed);
            let Ok(raw) = list.iter().next().expect("no expression") else {
                panic!("{typed:?}")
            };
            assert_eq!(raw.raw, list.as_bytes());
            assert_eq!(raw.decode().as_ref(), Ok(&typed));
            assert_eq!(raw.decode().unwrap().into_owned(), typed);
            let mut again = Expressions::new();
            again.push_decoded(&raw.decode().unwrap()).push_raw(&raw);
            assert_eq!(again.as_bytes(), list.as_bytes().repeat(2));
            // The line of bytecode.
            let line = typed.to_string();
            assert!(line.starts_with("[ ") && line.ends_with(" ]"), "{line}");
            assert_serial(&typed);

            let nested = NestedExpression::of_decoded(&typed);
            assert_eq!(nested.decode().as_ref(), Ok(&typed));
            let attribute = written(|writer| nested.encode(writer, 1));
            assert_eq!(
                <NestedExpression<'_> as Field<'_>>::decode(&attribute[4..]).as_ref(),
                Some(&nested)
            );
        });
    }
}

/// Expressions in a list don't affect each other.
#[test]
fn expression_lists_round_trip() {
    let expressions = prop::collection::vec(Decoded::arbitrary(1), 0..6);
    run(64, expressions, |typed| {
        let mut list = Expressions::new();
        for expression in &typed {
            list.push_decoded(expression);
        }
        let read: Result<Vec<_>, _> = list.iter().map(|e| e.and_then(|e| e.decode())).collect();
        assert_eq!(read, Ok(typed));
        let mut copy = Expressions::new();
        for expression in list.iter().flatten() {
            copy.push_raw(&expression);
        }
        assert_eq!(copy, list);
        assert_serial(&list);
    });
}

/// Any attributes of any expression are parsed or refused. Parsed ones can be formatted, and survive an encoding and
/// decoding; and the conversion to the kernel's form is idempotent.
#[test]
fn any_attributes_are_read_or_refused() {
    assert_eq!(NAMES.len(), 40);
    for &name in NAMES.iter().chain(&["of tomorrow"]) {
        let known = expression(name, &[]).attribute_names();
        let kinds: Vec<u16> = known.iter().map(|(kind, _)| *kind).collect();
        run(
            48,
            (arbitrary_attributes(&kinds), damage()),
            |(bytes, damages)| {
                // Half of them are unchanged outputs of the attributes' strategies.
                let bytes = damaged(bytes, &damages[..damages.len() / 2]);
                let bare = expression(name, &bytes);
                let nested = written(|writer| {
                    writer.string(NFTA_EXPR_NAME, name.as_bytes());
                    writer.bytes(NFTA_EXPR_DATA, &bytes);
                });
                let nested = <NestedExpression<'_> as Field<'_>>::decode(&nested).unwrap();
                // Missing padding changes the offset of malformed attributes.
                let place = |malformed: Malformed| (malformed.what, malformed.reason);
                assert_eq!(nested.decode().map_err(place), bare.decode().map_err(place));
                let _ = format!("{bare:?} {nested:?}");
                let Ok(decoded) = bare.decode() else { return };
                let _ = format!("{decoded} {decoded:?} {decoded:#?}");
                let mut list = Expressions::new();
                list.push_decoded(&decoded);
                let Some(again) = list.iter().next() else {
                    // An invalid name.
                    let error_kind = list.error.as_deref().map(|error| &error.error_kind);
                    assert!(matches!(
                        error_kind,
                        Some(MessageErrorKind::Nul { .. } | MessageErrorKind::LongName { .. })
                    ));
                    return;
                };
                let again = again.unwrap();
                assert_eq!(again.decode().as_ref(), Ok(&decoded));
                if let Some(request) = again.to_request() {
                    let mut list = Expressions::new();
                    list.push_decoded(&request);
                    let again = list.iter().next().unwrap().unwrap();
                    assert_eq!(again.to_request(), None, "{request:?}");
                }
                assert_serial_if_at_all(&decoded);
            },
        );
    }
}

/// Any bytes are a list whose iteration ends; parsed expressions can be formatted.
#[test]
fn any_list_ends() {
    let expression = (
        prop::sample::select(NAMES),
        arbitrary_attributes(&[1, 2, 3, 4]),
    );
    let elements = prop::collection::vec(expression, 0..4).prop_map(|expressions| {
        let elements = expressions.iter().map(|(name, bytes)| element(name, bytes));
        elements.collect::<Vec<_>>().concat()
    });
    let bytes = prop_oneof![4 => elements, 1 => arbitrary_attributes(&[NFTA_LIST_ELEM])];
    run(128, (bytes, damage()), |(bytes, damages)| {
        let bytes = damaged(bytes, &damages);
        let list = Expressions::decode(&bytes).unwrap();
        let _ = format!("{list:?}");
        let mut all = list.iter();
        let read = all.by_ref().take_while(Result::is_ok).count();
        assert!(read * 4 <= bytes.len());
        assert!(all.next().is_none());
        // It is written unchanged, except for padding.
        let attribute = written(|writer| list.encode(writer, 4));
        let stripped = Padded::Expressions.without_padding(&bytes);
        let bytes = stripped.as_deref().unwrap_or(&bytes);
        assert_eq!(attribute[4..4 + bytes.len()], *bytes);
        let attribute = Attributes::new(&attribute).next().unwrap().unwrap();
        assert_eq!(Expressions::decode(attribute.payload), Some(list.clone()));
        assert_serial_if_at_all(&list);
    });
}
