//! Helpers shared by the tests of all types.

use super::*;
use crate::nft::captured::hex;

/// Asserts that `sent`, the attribute `NFTA_OBJ_DATA`, is parsed as `data`, encoded back, and
/// printed as `line`.
#[track_caller]
pub(super) fn assert_data<'a>(data: impl Into<ObjectData<'a>>, sent: &str, line: &str) {
    let data = data.into();
    let sent = hex(sent);
    let object_type = data.object_type().unwrap();
    let mut written = Vec::new();
    let mut writer = MessageWriter::bare(&mut written);
    data.encode(&mut writer, NFTA_OBJ_DATA);
    writer.finish_bare().unwrap();
    assert_eq!(written, sent, "{data:?}\n{written:02x?}");
    assert_eq!(ObjectData::read(object_type, &sent[4..]), data);
    assert_eq!(data.to_string(), line);
    assert_eq!(data.clone().into_static(), data);
    for end in 4..sent.len() {
        // No panic: truncated data is opaque, or lacks an attribute or padding.
        let _ = ObjectData::read(object_type, &sent[4..end]);
    }
    // Data of an unknown type is opaque, and encoded unchanged.
    let opaque = ObjectData::read(ObjectType(99), &sent[4..]);
    assert_eq!(opaque, ObjectData::Opaque(Bytes::borrowed(&sent[4..])));
    assert_eq!(opaque.object_type(), None);
    #[cfg(feature = "serde")]
    {
        let json = serde_json::to_string(&data).unwrap();
        assert_eq!(serde_json::from_str::<ObjectData<'_>>(&json).unwrap(), data);
    }
}

/// Asserts that `listed`, the payload of a listed message, contains `data` and is printed as
/// `line`.
#[track_caller]
pub(super) fn assert_listed<'a>(
    data: impl Into<ObjectData<'a>>,
    listed: &str,
    line: &str,
) -> StatefulObject<'static> {
    let data = data.into();
    let listed = hex(listed);
    let view = StatefulObjectRef::of_payload(&listed).unwrap();
    assert_eq!(Some(view.object_type()), data.object_type());
    assert_eq!(view.data(), Some(data));
    assert_eq!(view.to_string(), line);
    let object = view.to_builder().into_owned();
    #[cfg(feature = "serde")]
    {
        let json = serde_json::to_string(&object).unwrap();
        assert_eq!(
            serde_json::from_str::<StatefulObject<'_>>(&json).unwrap(),
            object
        );
    }
    object
}
