//! Elements as listed by the kernel and as sent to it.

use super::*;
use crate::nft::captured::hex;
use crate::nft::expr::{Counter, Decoded, Limit};
use crate::nft::object::Identified as _;

fn written(element: &Element<'_>, kind: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::bare(&mut bytes);
    element.encode(&mut writer, kind);
    writer.finish_bare().unwrap();
    bytes
}

/// Asserts that `sent`, an element in nft's list, is parsed as `element` and encoded back.
#[track_caller]
fn assert_sent(element: &Element<'_>, sent: &str) {
    let sent = hex(sent);
    let kind = u16::from_ne_bytes([sent[2], sent[3]]) & 0x7fff; // nft numbers the elements
    assert_eq!(written(element, kind), sent, "{element:?}");
    assert_eq!(Element::decode(&sent[4..]).as_ref(), Some(element));
    // A view parses the attributes in any order.
    let view = ElementRef::parse(&sent[4..]).unwrap();
    assert_eq!(&view.to_builder(), element);
}

/// Asserts that `listed`, an element in the kernel's list, is parsed as `element` in one pass and
/// printed as `line`.
#[track_caller]
fn assert_listed(element: &Element<'_>, listed: &str, line: &str) {
    let listed = hex(listed);
    assert!(
        ElementRef::in_order((), &listed[4..]).is_some(),
        "encoding should take one pass"
    );
    let view = ElementRef::parse(&listed[4..]).unwrap();
    assert_eq!(&view.to_builder(), element);
    assert_eq!(&view.to_builder().into_owned(), element);
    assert_eq!(view.to_string(), line);
    assert_eq!(element.to_string(), line);
    let list: ElementList<'_> = [element.clone()].into_iter().collect();
    let again = list.iter().next().unwrap().unwrap();
    assert_eq!(&again.to_builder(), element);
    for end in 0..listed.len() - 4 {
        let cut = &listed[4..4 + end];
        let whole = Attributes::new(cut).all(|attribute| attribute.is_ok());
        match ElementRef::parse(cut) {
            Ok(view) => assert!(whole, "{view:?}"),
            Err(_) => assert!(!whole || Element::decode(cut).is_none()),
        }
    }
    #[cfg(feature = "serde")]
    {
        let json = serde_json::to_string(element).unwrap();
        assert_eq!(
            &serde_json::from_str::<Element<'_>>(&json).unwrap(),
            element
        );
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(
            serde_json::from_str::<ElementList<'_>>(&json).unwrap(),
            list
        );
    }
}

/// nft 1.0.6: `add element ip t plain { 10.0.0.1 comment "one", 10.0.0.2 }`.
#[test]
fn plain() {
    let one = Element::new(&[10, 0, 0, 1]).with_comment("one").unwrap();
    assert_sent(
        &one,
        "
                1c000180
                0c000180 08000100 0a000001   ; NFTA_SET_ELEM_KEY
                0a000600 00046f6e 65000000   ; NFTA_SET_ELEM_USERDATA
            ",
    );
    assert_sent(
        &Element::new(&[10, 0, 0, 2]),
        "10000280 0c000180 08000100 0a000002",
    );
    assert_listed(
        &one,
        "1c000100 0c000100 08000100 0a000001 0a000600 00046f6e 65000000",
        r"element 0100000a  : 0 [end]  userdata = { \x00\x04one\x00 }",
    );
    let listed = hex("1c000100 0c000100 08000100 0a000001 0a000600 00046f6e 65000000");
    let view = ElementRef::parse(&listed[4..]).unwrap();
    assert_eq!(view.comment(), Some("one".into()));
    assert_eq!(view.key_bytes(), Some(&[10, 0, 0, 1][..]));
    assert_eq!((view.data(), view.is_interval_end()), (None, false));
}

/// nft 1.0.6: `add element ip t m { 10.0.0.1 : 5 }`, `… v { 10.0.0.1 : jump c, * : drop }`,
/// `… o { 10.0.0.1 timeout 30s comment "x" : "c" }`.
#[test]
fn maps() {
    let value = Element::new(&[10, 0, 0, 1]).with_data(&[5, 0, 0, 0]);
    let sent = "1c000180 0c000180 08000100 0a000001 0c000280 08000100 05000000";
    assert_sent(&value, sent);
    assert_listed(
        &value,
        "1c000100 0c000100 08000100 0a000001 0c000200 08000100 05000000",
        "element 0100000a  : 00000005 0 [end]",
    );
    let jump = Element::new(&[10, 0, 0, 1]).with_verdict(Verdict::Jump("c".into()));
    assert_sent(
        &jump,
        "
                28000180 0c000180 08000100 0a000001
                18000280 14000280 08000100 fffffffd 06000200 63000000
            ",
    );
    assert_listed(
        &jump,
        "
                28000100 0c000100 08000100 0a000001
                18000200 14000200 08000100 fffffffd 06000200 63000000
            ",
        "element 0100000a  : jump -> c 0 [end]",
    );
    let rest = Element::catch_all().with_verdict(Verdict::Drop);
    assert_sent(
        &rest,
        "1c000280 08000300 00000002 10000280 0c000280 08000100 00000000",
    );
    assert_listed(
        &rest,
        "1c000100 10000200 0c000200 08000100 00000000 08000300 00000002",
        "element  : drop 2 [end]",
    );
    let object = Element::new(&[10, 0, 0, 1])
        .with_object("c")
        .with_timeout(Duration::from_secs(30))
        .with_comment("x")
        .unwrap();
    assert_sent(
        &object,
        "
                2c000180 0c000400 00000000 00007530 0c000180 08000100 0a000001 08000600
                00027800 06000900 63000000
            ",
    );
    assert_listed(
        &Element {
            expiration: Some(Milliseconds(0x748c)),
            ..object
        },
        "
                38000100 0c000100 08000100 0a000001 06000900 63000000 0c000400 00000000
                00007530 0c000500 00000000 0000748c 08000600 00027800
            ",
        r"element 0100000a  : 0 [end]  userdata = { \x00\x02x\x00 }",
    );
}

/// nft 1.0.6: `add element ip t im { 10.0.0.0/24 : 80 }`, `… iv { 255.255.255.0/24 }`, `… cc {
/// 10.0.0.0/24 . 80-90 }`.
#[test]
fn ranges() {
    let [start, end] = Element::interval(&[10, 0, 0, 0], &[10, 0, 1, 0]);
    assert_sent(
        &start.clone().with_data(&[0, 80]),
        "1c000180 0c000180 08000100 0a000000 0c000280 06000100 00500000",
    );
    assert_sent(
        &end,
        "18000280 08000300 00000001 0c000180 08000100 0a000100",
    );
    assert_listed(
        &end,
        "18000100 0c000100 08000100 0a000100 08000300 00000001",
        "element 0001000a  : 1 [end]",
    );
    let open = Element::open_interval(&[255, 255, 255, 0]);
    let sent = "1c000680 0c000180 08000100 ffffff00 0a000600 01040100 00000000";
    assert_sent(&open, sent);
    let sent = hex(sent);
    let view = ElementRef::parse(&sent[4..]).unwrap();
    assert!(view.is_open_interval());
    assert_eq!(
        view.to_string(),
        r"element 00ffffff  : 0 [end]  userdata = { \x01\x04\x01\x00\x00\x00 }"
    );

    let from = concatenation([&[10, 0, 0, 0][..], &[0, 80]]);
    let to = concatenation([&[10, 0, 0, 255][..], &[0, 90]]);
    let range = Element::range(&from, &to);
    assert_sent(
        &range,
        "
                24000180 10000180 0c000100 0a000000 00500000 10000a80 0c000100 0a0000ff
                005a0000
            ",
    );
    assert_listed(
        &range,
        "
                24000100 10000100 0c000100 0a000000 00500000 10000a00 0c000100 0a0000ff
                005a0000
            ",
        "element 0000000a 00005000  - ff00000a 00005a00  : 0 [end]",
    );
}

/// nft 1.0.6: `add element ip t dyn { 10.0.0.1 counter packets 5 bytes 10 }`, and `… two`
/// followed by `limit rate 5/second`.
#[test]
fn expressions() {
    let one = Element::new(&[10, 0, 0, 1]).with_expression(&Counter::new(5, 10));
    assert_sent(
        &one,
        "
                3c000180 0c000180 08000100 0a000001
                2c000780 0c000100 636f756e 74657200
                1c000280 0c000100 00000000 0000000a 0c000200 00000000 00000005
            ",
    );
    let two = one.clone().with_expression(&Limit::packets(5, 1, 5));
    assert_sent(
        &two,
        "
                84000180 0c000180 08000100 0a000001
                74000b80
                2c000180 0c000100 636f756e 74657200
                1c000280 0c000100 00000000 0000000a 0c000200 00000000 00000005
                44000180 0a000100 6c696d69 74000000 34000280 0c000100 00000000 00000005
                0c000200 00000000 00000001 08000300 00000005 08000400 00000000 08000500 00000000
            ",
    );
    let listed = hex("
                84000100 0c000100 08000100 0a000001 74000b00 2c000100 0c000100 636f756e
                74657200 1c000200 0c000100 00000000 0000000a 0c000200 00000000 00000005
                44000100 0a000100 6c696d69 74000000 34000200 0c000100 00000000 00000005
                0c000200 00000000 00000001 08000300 00000005 08000400 00000000 08000500
                00000000
            ");
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

/// Listed after nft 1.0.6: `add element ip t v { 10.0.0.1 : jump c, * : drop }`. The catch-all
/// element has a message of its own, and listings of other sets end with a message without
/// elements.
#[test]
fn messages() {
    let message = hex("
                02000002 06000100 74000000 06000200 76000000 2c000300 28000100 0c000100
                08000100 0a000001 18000200 14000200 08000100 fffffffd 06000200 63000000
            ");
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

    let empty = hex("02000002 06000100 74000000 06000200 6d000000 04000300");
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
