//! Elements as listed by the kernel and as sent to it: built elements, and views.

use super::*;
use crate::nft::captured::hex;
use crate::nft::captured::objects::{assert_built, bytes_of};
use crate::nft::expr::{Counter, Decoded, Limit};
use crate::nft::object::Identified as _;

/// Asserts that a case of elements contains this one.
#[track_caller]
fn assert_element(title: &str, element: &Element<'static>) {
    assert_built("element", title, element);
}

#[test]
fn plain() {
    let one = Element::new(&[10, 0, 0, 1]).with_comment("one").unwrap();
    assert_element("a key with a comment", &one);
    assert_element("a key with a comment, listed", &one);
    assert_element("a key", &Element::new(&[10, 0, 0, 2]));
    let listed = bytes_of("element", "a key with a comment, listed");
    let view = ElementRef::parse(&listed[4..]).unwrap();
    assert_eq!(view.comment(), Some("one".into()));
    assert_eq!(view.key_bytes(), Some(&[10, 0, 0, 1][..]));
    assert_eq!((view.data(), view.is_interval_end()), (None, false));
}

#[test]
fn maps() {
    let value = Element::new(&[10, 0, 0, 1]).with_data(&[5, 0, 0, 0]);
    assert_element("a value", &value);
    assert_element("a value, listed", &value);
    let jump = Element::new(&[10, 0, 0, 1]).with_verdict(Verdict::Jump("c".into()));
    assert_element("a jump", &jump);
    assert_element("a jump, listed", &jump);
    let rest = Element::catch_all().with_verdict(Verdict::Drop);
    assert_element("a catch-all element", &rest);
    assert_element("a catch-all element, listed", &rest);
    let object = Element::new(&[10, 0, 0, 1])
        .with_object("c")
        .with_timeout(Duration::from_secs(30))
        .with_comment("x")
        .unwrap();
    assert_element("an object, with a timeout", &object);
    let expiration = Some(Milliseconds(0x748c));
    let listed = Element {
        expiration,
        ..object
    };
    assert_element("an object, with a timeout, listed", &listed);
}

#[test]
fn ranges() {
    let [start, end] = Element::interval(&[10, 0, 0, 0], &[10, 0, 1, 0]);
    assert_element("the start of an interval", &start.with_data(&[0, 80]));
    assert_element("the end of an interval", &end);
    assert_element("the end of an interval, listed", &end);
    let open = Element::open_interval(&[255, 255, 255, 0]);
    assert_element("an interval without an end", &open);
    let sent = bytes_of("element", "an interval without an end");
    assert!(ElementRef::parse(&sent[4..]).unwrap().is_open_interval());

    let from = concatenation([&[10, 0, 0, 0][..], &[0, 80]]);
    let to = concatenation([&[10, 0, 0, 255][..], &[0, 90]]);
    let range = Element::range(&from, &to).into_owned();
    assert_element("a range of a concatenation", &range);
    assert_element("a range of a concatenation, listed", &range);
}

#[test]
fn expressions() {
    let one = Element::new(&[10, 0, 0, 1]).with_expression(&Counter::new(5, 10));
    assert_element("one expression", &one);
    let two = one.with_expression(&Limit::packets(5, 1, 5));
    assert_element("two expressions", &two);
    let listed = bytes_of("element", "two expressions, listed");
    let view = ElementRef::parse(&listed[4..]).unwrap();
    let decoded: Vec<_> = view
        .expressions()
        .unwrap()
        .map(|expression| expression.unwrap().decode().unwrap())
        .collect();
    let limit = Limit::packets(5, 1, 5);
    assert_eq!(
        decoded,
        [Decoded::Counter(Counter::new(5, 10)), Decoded::Limit(limit)]
    );
    assert_eq!(view.expression(), None);
}

#[test]
fn messages() {
    let message = bytes_of("elements", "one element, listed");
    let view = ElementsRef::of_payload(&message).unwrap();
    assert_eq!((view.table(), view.set()), ("t".into(), "v".into()));
    let elements: Vec<_> = view.elements().unwrap().map(Result::unwrap).collect();
    assert_eq!(elements.len(), 1);
    let span = span_of_list(&message).unwrap();
    assert_eq!(&message[span.clone()][..4], [0x28, 0, 1, 0]);
    assert_eq!(span.end, message.len());
    let built = view.to_builder();
    assert_eq!(built.elements.as_ref().unwrap().iter().count(), 1);

    let mut identity = Vec::new();
    let mut writer = MessageWriter::bare(&mut identity);
    built.write_identity(&mut writer);
    writer.finish_bare().unwrap();
    assert_eq!(
        identity,
        hex("
                06000100 74000000 06000200 76000000 14000380 10000180 0c000180 08000100 0a000001
            ")
    );

    let empty = bytes_of("elements", "no elements, listed");
    let view = ElementsRef::of_payload(&empty).unwrap();
    assert_eq!(view.elements().unwrap().count(), 0);
    assert_eq!(span_of_list(&empty).unwrap().len(), 0);

    // Without a list, a deletion would mean all elements.
    let none = Elements {
        table: Some("t".into()),
        set: Some("v".into()),
        ..Elements::empty()
    };
    let mut identity = Vec::new();
    let mut writer = MessageWriter::bare(&mut identity);
    none.write_identity(&mut writer);
    writer.finish_bare().unwrap();
    assert_eq!(
        identity,
        hex("06000100 74000000 06000200 76000000 04000380")
    );
}

#[test]
fn a_malformed_element_ends_the_list() {
    for bad in [
        "0c000100 08000100 0a00",          // the key is truncated
        "08000100 0c000100 0a000001",      // its value is longer than the key
        "06000300 0001",                   // flags of two bytes
        "0b000400 00000000 000075",        // a timeout of seven bytes
        "0c000100 08000100 0a000001 0100", // a truncated header after it
    ] {
        let bad = hex(bad);
        assert!(ElementRef::parse(&bad).is_err(), "{bad:02x?}");
        let mut list = hex("10000100 0c000100 08000100 0a000001");
        let length = (bad.len() as u16 + 4).to_ne_bytes();
        list.extend_from_slice(&[length[0], length[1], 1, 0]);
        list.extend_from_slice(&bad);
        let mut elements = ElementIter(Attributes::new(&list));
        assert!(elements.next().unwrap().is_ok());
        assert!(elements.next().unwrap().is_err());
        assert!(elements.next().is_none());
    }
    // An element without attributes is valid.
    assert!(ElementRef::parse(&[]).unwrap().key().is_none());
}
