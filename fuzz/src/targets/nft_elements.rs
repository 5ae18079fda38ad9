//! The elements of a set: keys, data, user data, expressions.

use chainwright::nft::userdata::UserData;
use chainwright::nft::{Element, ElementList, Elements, ElementsRef, Family};

use super::nft_objects::assert_same;
use crate::Target;
use crate::mutate::InputFormat;

/// The target: the payload of `NFTA_SET_ELEM_LIST_ELEMENTS`; and the same bytes as user data.
pub const TARGET: Target = Target {
    name: "nft_elements",
    input_format: InputFormat::Attributes(0),
    run,
};

fn run(input: &[u8]) {
    let mut entries = 0;
    for entry in UserData::new(input) {
        let _ = format!("{entry:?}");
        entries += 1;
    }
    assert!(entries <= input.len() / 2 + 1);
    for kind in 0..8 {
        let _ = UserData::new(input).number(kind);
        assert!(
            UserData::new(input)
                .comment(kind)
                .is_none_or(|comment| comment.len() < 256)
        );
    }
    let list = ElementList::of_bytes(input);
    let elements = Elements {
        family: Family::IP,
        table: Some("t".into()),
        set: Some("s".into()),
        elements: Some(list),
        ..Elements::empty()
    };
    // The typed form of arbitrary bytes may be written differently, but is stable from then on.
    let typed: Vec<Element<'static>> = (elements.elements.iter())
        .flat_map(|list| list.iter())
        .map_while(Result::ok)
        .map(|element| {
            let _ = format!("{element:?} {element}");
            element.to_builder().into_owned()
        })
        .collect();
    for element in &typed {
        let _ = format!("{element:?}");
    }
    let typed = Elements {
        elements: Some(typed.into_iter().collect()),
        ..elements
    };
    assert_same(&typed.into_owned(), |message| {
        Some(ElementsRef::parse(message).ok()?.to_builder().into_owned())
    });
}
