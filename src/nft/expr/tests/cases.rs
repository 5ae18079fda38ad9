//! Captured expressions as data: `tests/data/expr/NAME.case` has the cases of the expression NAME.
//! The README next to them describes the format.

use std::fmt::Debug;

use super::*;
use crate::nft::captured::{
    Case, EXPRESSION, File, Origin, Wire, dump, hex, lay_out, lay_out_list, names_in,
};

/// The directory of the files.
const DIRECTORY: &str = "expr";

/// Returns the encoded list element of a case. If the file has only the attributes, this wraps the element around
/// them.
fn element_of(case: &Case, name: &str) -> Vec<u8> {
    if is_whole(case) {
        case.bytes.clone()
    } else {
        element(name, &case.bytes)
    }
}

/// Returns `true` if the file has the whole list element of a case.
fn is_whole(case: &Case) -> bool {
    case.layout.starts_with("NFTA_LIST_ELEM ")
}

/// Asserts that the bytes of a case decode to the expression that the JSON and the text have, and that this
/// expression encodes to the bytes.
fn check(case: &Case, name: &str) {
    let place = &case.place;
    // A failed test shows it, whatever fails below.
    println!("{place}");
    let element = element_of(case, name);
    let expression = only(&element);
    assert_eq!(expression.name, name, "{place}");
    let mut layout = String::new();
    if is_whole(case) {
        lay_out_list(&mut layout, &element, EXPRESSION);
    } else {
        let names = expression.attribute_names();
        lay_out(&mut layout, expression.attributes, names);
    }
    assert!(
        layout == case.layout,
        "{place}: the layout is\n{layout}\nnot\n{}",
        case.layout
    );

    let decoded = expression
        .decode()
        .unwrap_or_else(|error| panic!("{place}: {error}"));
    let mut list = Expressions::new();
    list.push_decoded(&decoded);
    if case.origin == Some(Origin::Listed) {
        assert_eq!(list.as_bytes().len(), element.len(), "{place}");
        assert_eq!(
            only(list.as_bytes()).decode().as_ref(),
            Ok(&decoded),
            "{place}"
        );
    } else {
        assert_eq!(dump(list.as_bytes()), dump(&element), "{place}");
    }
    if let Some(text) = &case.text {
        assert_eq!(&decoded.to_string(), text, "{place}");
    }
    #[cfg(feature = "serde")]
    {
        assert_eq!(
            serde_json::to_string(&decoded).unwrap(),
            case.json,
            "{place}"
        );
        // Nested attributes that a kernel listed are written with `NLA_F_NESTED` again.
        let again: Decoded<'_> = serde_json::from_str(&case.json).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), case.json, "{place}");
        assert!(
            again == decoded || case.origin == Some(Origin::Listed),
            "{place}: {again:?}"
        );
        if case.origin == Some(Origin::Listed) {
            let request = expression.to_request();
            let request = request.map(|request| serde_json::to_string(&request).unwrap());
            assert_eq!(request, case.request, "{place}");
        }
    }
    assert_truncations(&element);
    assert_unknown_is_preserved(&expression);
}

/// Every expression has a file, every file an expression, and all of their cases hold.
#[test]
fn every_case_holds() {
    assert_eq!(names_in(DIRECTORY), NAMES);
    for &name in NAMES {
        let file = File::read(DIRECTORY, name);
        assert_layout(name, &file.attributes);
        file.cases.iter().for_each(|case| check(case, name));
    }
}

/// Asserts that `built` is the expression of the case with this title.
pub(in crate::nft::expr) fn assert_built<'a, E: Expression + Into<Decoded<'a>> + Debug>(
    title: &str,
    built: E,
) {
    let file = File::read(DIRECTORY, E::NAME);
    let case = file.case(title);
    let element = element_of(case, E::NAME);
    let decoded = only(&element).decode();
    assert_eq!(decoded, Ok(built.into()), "{}", case.place);
}

/// Returns the only expression of a list.
fn only(list: &[u8]) -> ExpressionRef<'_> {
    let mut all = elements(list);
    let expression = all.next().unwrap().unwrap();
    assert!(all.next().is_none());
    assert_eq!(dump(expression.raw), dump(list));
    expression
}

/// Asserts that truncated bytes are parsed as far as they are complete, or refused.
fn assert_truncations(list: &[u8]) {
    let whole = only(list);
    for end in 0..whole.attributes.len() {
        let cut = expression(
            std::str::from_utf8(whole.name).unwrap(),
            &whole.attributes[..end],
        );
        let complete = Attributes::new(cut.attributes).all(|item| item.is_ok());
        assert_eq!(cut.decode().is_ok(), complete, "cut at {end}: {cut:?}");
    }
    for end in 0..list.len() {
        let mut cut = elements(&list[..end]);
        match cut.next() {
            None => assert_eq!(end, 0),
            // Only padding remains.
            Some(Ok(expression)) => assert_eq!(expression.attributes, whole.attributes),
            Some(Err(_)) => assert!(cut.next().is_none()),
        }
    }
}

/// Asserts that unknown attributes do not affect the result, and are written after all others.
fn assert_unknown_is_preserved(expression: &ExpressionRef<'_>) {
    let before = written(|writer| _ = writer.bytes(60, &[1, 2, 3]));
    let behind = written(|writer| {
        writer.nested(61, |writer| {
            writer.be32(1, 0);
        });
    });
    let more = [&before[..], expression.attributes, &behind].concat();
    let more = ExpressionRef {
        attributes: &more,
        ..*expression
    };
    let decoded = more.decode().unwrap();
    assert!(expression.decode().unwrap().unknown().is_empty());
    assert_eq!(decoded.unknown().iter().count(), 2);
    let (mut plain, mut kept) = (Expressions::new(), Expressions::new());
    plain.push_decoded(&expression.decode().unwrap());
    kept.push_decoded(&decoded);
    assert_eq!(
        dump(only(kept.as_bytes()).attributes),
        dump(&[only(plain.as_bytes()).attributes, &before, &behind].concat()),
    );
}

/// Asserts that the attributes are those of `layout` (number, name, payload), written in this order, and that
/// attributes that are too short or incorrectly nested are refused by name.
fn assert_layout(of: &str, layout: &[(u16, String, Wire)]) {
    let named: Vec<_> = layout
        .iter()
        .map(|(kind, name, _)| (*kind, &name[..]))
        .collect();
    let declared = expression(of, &[]).attribute_names();
    let declared = declared.iter().filter(|(_, name)| !name.ends_with("_PAD"));
    assert!(
        declared.eq(&named),
        "{of}.case has the attributes {named:?}"
    );
    for (kind, name, wire) in layout {
        let kind = *kind;
        let wrap = |payload: &[u8]| written(|writer| _ = writer.bytes(kind, payload));
        // Decodes and encodes the attribute after an unknown one, which comes last in the output.
        let copy = |payload: &[u8]| {
            let unknown = written(|writer| _ = writer.be32(60, 0));
            let attributes = [&unknown[..], &wrap(payload)].concat();
            let mut list = Expressions::new();
            list.push_decoded(&expression(of, &attributes).decode()?);
            let copied = only(list.as_bytes()).attributes;
            let known = copied
                .strip_suffix(&unknown[..])
                .expect("the unknown attribute is missing");
            Ok::<_, Malformed>(known.to_vec())
        };
        let same = |payload: &[u8], expected: Vec<u8>| {
            let copied = copy(payload).map(|copied| dump(&copied));
            assert_eq!(copied, Ok(dump(&expected)), "{of}.case: {name}");
        };
        let refused = |payload: &[u8]| {
            let malformed = copy(payload).map_err(|malformed| (malformed.what, malformed.offset));
            assert_eq!(malformed, Err((&name[..], 8)), "{of}.case: {name}");
        };
        let same_nested = |payload: &str| {
            let payload = hex(payload);
            let mut nested = wrap(&payload);
            nested[3] |= 0x80; // NLA_F_NESTED
            same(&payload, nested);
        };
        let number = |length: usize| {
            let payload = &[0xf1, 2, 3, 4, 5, 6, 7, 8][..length];
            same(payload, wrap(payload));
            (0..length).for_each(|short| refused(&payload[..short]));
        };
        match wire {
            Wire::U8 => number(1),
            Wire::Be16 => number(2),
            Wire::Be32 => number(4),
            Wire::Be64 => number(8),
            Wire::Text => {
                same(b"", wrap(b"\0"));
                same(b"abc\0", wrap(b"abc\0"));
                same(b"abc", wrap(b"abc\0"));
            }
            Wire::EndMissing => {
                same(b"", wrap(b"\0"));
                same(b"abc\0", wrap(b"abc"));
                same(b"abc", wrap(b"abc"));
            }
            Wire::Bytes => {
                same(b"", wrap(b""));
                same(b"abc", wrap(b"abc"));
            }
            Wire::Data => {
                for good in [
                    "05000100 07000000",
                    "0c000280 08000100 00000001",
                    // Neither a value nor a verdict; a verdict without a code.
                    "08000300 00000000",
                    "04000280",
                ] {
                    same_nested(good);
                }
                for bad in [
                    // Not nested: nothing, a bare number, a length that does not fit.
                    "",
                    "00000001",
                    "ffff0100 00000000",
                ] {
                    refused(&hex(bad));
                }
            }
            Wire::Expression => {
                for good in [
                    // A name; a name and data; data before a name, and without `NLA_F_NESTED`.
                    "06000100 61000000",
                    "06000100 61000000 04000280",
                    "08000200 00000000 06000100 61000000",
                ] {
                    same_nested(good);
                }
                // Nothing, no name, a length that does not fit.
                for bad in ["", "04000280", "ffff0100 61000000"] {
                    refused(&hex(bad));
                }
            }
            Wire::Expressions => {
                for good in ["", "0c000180 06000100 61000000", "00000001", "ffff0100"] {
                    same_nested(good);
                }
            }
        }
    }
}
