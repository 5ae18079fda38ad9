//! Captured objects as data: `tests/data/object/NAME.case` has the cases of one kind of object. The README next to them
//! describes the format.

use std::fmt::Debug;

use chainwright_sys::nf_tables::NFTA_OBJ_DATA;

use super::{AttributeNames, Case, File, Origin, lay_out, lay_out_list, names_in, spaced};
use crate::netlink::{Attributes, MessageWriter};
use crate::nft::declare::Field as _;
use crate::nft::expr::ObjectType;
use crate::nft::name::Bytes;
use crate::nft::object::Written as _;
use crate::nft::properties::{Serial, assert_serial_if_at_all};
use crate::nft::{
    Element, ElementList, ElementRef, Elements, ElementsRef, Family, Flowtable, FlowtableRef,
    ObjectData, Rule, RuleRef, Set, SetRef, StatefulObject, StatefulObjectRef,
};

/// The directory of the files.
const DIRECTORY: &str = "object";

/// The label of a message's first line: the header of its payload (`struct nfgenmsg`).
const HEADER: &str = "nfgenmsg";

/// Length of this header.
const HEADER_LEN: usize = 4;

/// A value that the bytes of a case contain.
pub(in crate::nft) trait Captured: Serial + PartialEq + Debug + Sized {
    /// Reads the value and its text, if it has one; asserts that other ways to read or write it agree.
    fn read(case: &Case, kind: &str) -> (Self, Option<String>);

    /// Lays out the bytes of a case.
    fn layout(out: &mut String, case: &Case, kind: &str);

    /// Asserts that the case contains the value with its JSON and text, in its layout.
    fn check(case: &Case, kind: &str) {
        let place = &case.place;
        // A failed test shows it, whatever fails below.
        println!("{place}");
        let mut layout = String::new();
        Self::layout(&mut layout, case, kind);
        assert!(
            layout == case.layout,
            "{place}: the layout is\n{layout}\nnot\n{}",
            case.layout
        );
        let (value, text) = Self::read(case, kind);
        if case.text.is_some() {
            assert_eq!(text, case.text, "{place}");
        }
        #[cfg(feature = "serde")]
        {
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(json, case.json, "{place}");
            // Nested attributes that a kernel listed are written with `NLA_F_NESTED` again.
            let again: Self = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&again).unwrap(), json, "{place}");
            let listed = case.origin == Some(Origin::Listed);
            assert!(again == value || listed, "{place}: {again:?}");
        }
        let _ = value;
    }
}

/// Asserts that `built` is the value of the case with this title.
#[track_caller]
pub(in crate::nft) fn assert_built<T: Captured>(kind: &str, title: &str, built: &T) {
    let file = File::read(DIRECTORY, kind);
    let case = file.case(title);
    assert_eq!(&T::read(case, kind).0, built, "{}", case.place);
}

/// Returns the bytes of the case with this title.
pub(in crate::nft) fn bytes_of(kind: &str, title: &str) -> Vec<u8> {
    File::read(DIRECTORY, kind).case(title).bytes.clone()
}

/// Returns the output of [`MessageWriter`] without a message header.
fn written(content: impl FnOnce(&mut MessageWriter<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::bare(&mut bytes);
    content(&mut writer);
    writer.finish_bare().unwrap();
    bytes
}

/// Returns the same attributes in the reverse order.
fn reversed(attributes: &[u8]) -> Vec<u8> {
    let all: Vec<_> = Attributes::new(attributes)
        .map(|attribute| attribute.unwrap().raw)
        .collect();
    all.into_iter().rev().flatten().copied().collect()
}

/// Clears `NLA_F_NESTED` of these attributes: nft does not set it for every nested one.
fn without_flags(attributes: &[u8]) -> Vec<u8> {
    let all = Attributes::new(attributes).map(|attribute| attribute.unwrap());
    all.flat_map(|attribute| {
        let mut raw = attribute.raw.to_vec();
        raw[2..4].copy_from_slice(&attribute.kind.to_ne_bytes());
        raw
    })
    .collect()
}

/// Asserts that these bytes are equal.
fn assert_bytes(actual: &[u8], expected: &[u8], place: &str) {
    assert_eq!(spaced(actual), spaced(expected), "{place}");
}

/// Returns the attributes of a message. Only listed ones have a header.
fn attributes_of(case: &Case) -> &[u8] {
    match case.origin {
        Some(Origin::Listed) => &case.bytes[HEADER_LEN..],
        _ => &case.bytes,
    }
}

/// Lays out a message, with its header if it has one.
fn lay_out_message(out: &mut String, case: &Case, names: AttributeNames) {
    let attributes = attributes_of(case);
    let header = &case.bytes[..case.bytes.len() - attributes.len()];
    if !header.is_empty() {
        *out = format!("{HEADER:<34}{}\n", spaced(header));
    }
    lay_out(out, attributes, names);
}

/// Implements [`Captured`] for objects that have messages of their own. Requests have the family `ip`.
macro_rules! messages {
    ($($Object:ident as $View:ident,)*) => {$(
        impl Captured for $Object<'static> {
            fn read(case: &Case, _: &str) -> (Self, Option<String>) {
                let (place, attributes) = (&case.place, attributes_of(case));
                if case.origin != Some(Origin::Listed) {
                    let object = $Object::from_attributes(Family::IP, attributes).unwrap();
                    let encoded = without_flags(&written(|writer| object.write(writer)));
                    assert_bytes(&encoded, &without_flags(attributes), place);
                    return (object.into_owned(), None);
                }
                let view = $View::of_payload(&case.bytes).unwrap();
                let object = view.to_builder();
                let one_pass = $View::in_order(view.family(), attributes);
                assert!(one_pass.is_some(), "{place}: reading should take one pass");
                let reversed = [&case.bytes[..HEADER_LEN], &reversed(attributes)].concat();
                let again = $View::of_payload(&reversed).unwrap();
                assert_eq!(again.to_builder(), object, "{place}");
                for end in 0..case.bytes.len() {
                    // No panic.
                    let _ = $View::of_payload(&case.bytes[..end]).map(|view| format!("{view:?}"));
                }
                (object.clone().into_owned(), messages!(@text $Object view))
            }

            fn layout(out: &mut String, case: &Case, _: &str) {
                lay_out_message(out, case, Self::NAMES);
            }
        }
    )*};
    (@text Elements $view:ident) => { None };
    (@text $Object:ident $view:ident) => { Some($view.to_string()) };
}

messages! {
    Elements as ElementsRef,
    Flowtable as FlowtableRef,
    Rule as RuleRef,
    Set as SetRef,
    StatefulObject as StatefulObjectRef,
}

impl Captured for Element<'static> {
    fn read(case: &Case, _: &str) -> (Self, Option<String>) {
        let place = &case.place;
        let attribute = Attributes::new(&case.bytes).next().unwrap().unwrap();
        let bytes = attribute.payload;
        let element = Element::decode(bytes).unwrap();
        let view = ElementRef::parse(bytes).unwrap();
        assert_eq!(view.to_builder(), element, "{place}");
        assert_eq!(view.to_string(), element.to_string(), "{place}");
        if case.origin == Some(Origin::Listed) {
            let one_pass = ElementRef::in_order((), bytes);
            assert!(one_pass.is_some(), "{place}: reading should take one pass");
        } else {
            let encoded = written(|writer| element.encode(writer, attribute.kind));
            assert_bytes(&encoded, &case.bytes, place);
        }
        let list: ElementList<'_> = [element.clone()].into_iter().collect();
        let again = list.iter().next().unwrap().unwrap();
        assert_eq!(again.to_builder(), element, "{place}");
        assert_serial_if_at_all(&list);
        for end in 0..bytes.len() {
            let cut = &bytes[..end];
            let whole = Attributes::new(cut).all(|attribute| attribute.is_ok());
            match ElementRef::parse(cut) {
                Ok(view) => assert!(whole, "{place}: {view:?}"),
                Err(_) => assert!(!whole || Element::decode(cut).is_none(), "{place}: {end}"),
            }
        }
        (element.clone().into_owned(), Some(element.to_string()))
    }

    fn layout(out: &mut String, case: &Case, _: &str) {
        lay_out_list(out, &case.bytes, Element::ATTRIBUTES);
    }
}

/// Returns the type of stateful objects with this name of a file.
fn object_type(kind: &str) -> ObjectType {
    let all = (0..=u8::MAX).map(|number| ObjectType(number.into()));
    let named = |one: &ObjectType| {
        one.name()
            .is_some_and(|name| name.replace(' ', "_") == kind)
    };
    all.into_iter()
        .find(named)
        .unwrap_or_else(|| panic!("no kind of objects: {kind}"))
}

/// The attributes in `NFTA_OBJ_DATA`.
impl Captured for ObjectData<'static> {
    fn read(case: &Case, kind: &str) -> (Self, Option<String>) {
        let place = &case.place;
        let object_type = object_type(kind);
        let data = ObjectData::read(object_type, &case.bytes);
        assert_eq!(data.object_type(), Some(object_type), "{place}");
        let encoded = written(|writer| data.encode(writer, NFTA_OBJ_DATA));
        assert_bytes(&encoded[4..], &case.bytes, place);
        for end in 0..case.bytes.len() {
            // No panic: truncated data is opaque, or lacks an attribute or padding.
            let _ = ObjectData::read(object_type, &case.bytes[..end]);
        }
        // Data of an unknown type is opaque, and encoded unchanged.
        let opaque = ObjectData::read(ObjectType(99), &case.bytes);
        let unchanged = ObjectData::Opaque(Bytes::borrowed(&case.bytes));
        assert_eq!(opaque, unchanged, "{place}");
        assert_eq!(opaque.object_type(), None, "{place}");
        (data.clone().into_static(), Some(data.to_string()))
    }

    fn layout(out: &mut String, case: &Case, kind: &str) {
        lay_out(
            out,
            &case.bytes,
            ObjectData::attribute_names(object_type(kind)),
        );
    }
}

/// All cases of all files hold, and every type of stateful objects has a file.
#[test]
fn every_case_holds() {
    let mut types = Vec::new();
    for kind in names_in(DIRECTORY) {
        let check: fn(&Case, &str) = match kind.as_str() {
            "element" => Element::check,
            "elements" => Elements::check,
            "flowtable" => Flowtable::check,
            "rule" => Rule::check,
            "set" => Set::check,
            _ => {
                types.push(object_type(&kind));
                check_stateful
            }
        };
        let file = File::read(DIRECTORY, &kind);
        file.cases.iter().for_each(|case| check(case, &kind));
    }
    types.sort_by_key(|object_type| object_type.0);
    let all = (0..=u8::MAX).map(|number| ObjectType(number.into()));
    let named: Vec<_> = all.filter(|one| one.name().is_some()).collect();
    assert_eq!(types, named);
}

/// Checks a case of a stateful object: a listed message, or the data that a tool sent.
fn check_stateful(case: &Case, kind: &str) {
    if case.origin == Some(Origin::Listed) {
        let view = StatefulObjectRef::of_payload(&case.bytes).unwrap();
        assert_eq!(view.object_type(), object_type(kind), "{}", case.place);
        StatefulObject::check(case, kind);
    } else {
        ObjectData::check(case, kind);
    }
}
