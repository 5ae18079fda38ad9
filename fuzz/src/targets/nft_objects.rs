//! Messages of listings: every view can be formatted, converted to an owned object, written, and read as
//! the same again.

use std::fmt::Debug;

use chainwright::netlink::{Message, MessageWriter, Messages, NfGenMsg};
use chainwright::nft::live::TraceRef;
use chainwright::nft::{
    ChainRef, Compat, ElementsRef, FlowtableRef, GenerationRef, Object, RuleRef, SetRef,
    StatefulObjectRef, TableRef,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Target;
use crate::mutate::InputFormat;

/// The target.
pub const TARGET: Target = Target {
    name: "nft_objects",
    input_format: InputFormat::Messages,
    run,
};

/// The payload of the message that adds the object, preceded by its header, as the kernel lists it.
pub(super) fn encode(object: &impl Object) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let header = NfGenMsg {
        family: object.family().0,
        resource: 0,
    };
    let mut writer = MessageWriter::nfnetlink(&mut bytes, 0xa00, 0, 1, header);
    object.write(&mut writer);
    writer.finish().ok()?;
    Some(bytes)
}

/// An object's own message is read as the same object; so is its JSON, for objects with a JSON form.
pub(super) fn assert_same<T>(object: &T, read: impl Fn(&Message<'_>) -> Option<T>)
where
    T: Object + PartialEq + Debug + Serialize + DeserializeOwned,
{
    let _ = format!("{object:?}");
    if let Ok(json) = serde_json::to_string(object) {
        let again: T = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
        assert_eq!(serde_json::to_string(&again).unwrap(), json);
    }
    let Some(bytes) = encode(object) else { return };
    let (message, _) = Message::split(&bytes).unwrap();
    assert_eq!(read(&message).as_ref(), Some(object));
}

fn run(input: &[u8]) {
    for message in Messages::new(input).flatten() {
        one(&message);
    }
}

macro_rules! view {
    ($message:ident as $View:ident, |$view:ident| $look:expr $(, always $field:ident)?) => {
        if let Ok($view) = $View::parse($message) {
            let _ = $look;
            #[allow(unused_mut)]
            let mut builder = $view.to_builder().into_owned();
            $(builder.$field.get_or_insert_default();)?
            assert_same(&builder, |message| {
                Some($View::parse(message).ok()?.to_builder().into_owned())
            });
        }
    };
}

pub(super) fn one(message: &Message<'_>) {
    view!(message as TableRef, |table| format!(
        "{table:?} {:?} {:?}",
        table.owner(),
        table.comment()
    ));
    view!(message as ChainRef, |chain| {
        assert!(chain.hook().is_none() || chain.is_base());
        format!(
            "{chain:?} {chain} {:?} {:?}",
            chain.counters(),
            chain.comment()
        )
    });
    view!(message as RuleRef, |rule| format!(
        "{rule:?} {rule} {:?} {:?}",
        Compat::of(&rule),
        rule.comment()
    ));
    view!(message as SetRef, |set| format!(
        "{set:?} {set} {:?} {:?}",
        set.description(),
        set.comment()
    ), always id);
    view!(message as ElementsRef, |elements| {
        for element in elements.elements().into_iter().flatten().flatten() {
            let _ = format!("{element:?} {element} {:?}", element.comment());
            let _ = (
                element.key_bytes(),
                element.data_bytes(),
                element.is_open_interval(),
            );
        }
        format!("{elements:?}")
    });
    view!(message as StatefulObjectRef, |object| format!(
        "{object:?} {object} {:?} {:?}",
        object.data(),
        object.comment()
    ));
    view!(message as FlowtableRef, |flowtable| format!(
        "{flowtable:?} {flowtable} {:?}",
        flowtable.hook()
    ));
    if let Ok(step) = TraceRef::parse(message) {
        let packet = step.packet().map(|packet| packet.to_string());
        let _ = format!("{step:?} {step} {packet:?}");
    }
    if let Ok(generation) = GenerationRef::parse(message) {
        let _ = format!("{generation:?} {:?}", generation.thread_name());
    }
}
