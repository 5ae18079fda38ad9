//! Objects and expressions from JSON: accepted input is written, and read as the same. And libnftables' JSON,
//! whose documents become transactions or are refused with a reason.

use chainwright::netlink::Message;
use chainwright::nft::expr::Decoded;
use chainwright::nft::{
    Chain, ChainRef, Elements, ElementsRef, Flowtable, FlowtableRef, Object, Rule, RuleRef, Set,
    SetRef, StatefulObject, StatefulObjectRef, Table, TableRef,
};
use chainwright_lang::Script;
use serde::de::DeserializeOwned;

use super::nft_objects::encode;
use crate::Target;
use crate::mutate::InputFormat;

/// The target.
pub const TARGET: Target = Target {
    name: "nft_json",
    input_format: InputFormat::Text,
    run,
};

/// Accepted input is written as JSON that is read as the same.
fn json_round_trip<T: DeserializeOwned + serde::Serialize + PartialEq + std::fmt::Debug>(
    input: &[u8],
) -> Option<T> {
    let value: T = serde_json::from_slice(input).ok()?;
    let json = serde_json::to_string(&value).unwrap_or_else(|e| panic!("{e}: {value:?}"));
    let again: T = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
    assert_eq!(again, value, "{json}");
    Some(value)
}

/// It is also written as a message to the kernel, which a view reads without errors.
fn object<T>(input: &[u8], read: impl Fn(&Message<'_>) -> Option<T>)
where
    T: Object + DeserializeOwned + serde::Serialize + PartialEq + std::fmt::Debug,
{
    let Some(value) = json_round_trip::<T>(input) else {
        return;
    };
    let Some(bytes) = encode(&value) else { return };
    let (message, _) = Message::split(&bytes).unwrap();
    // Without attributes that the kernel always sends there is no view.
    let Some(once) = read(&message) else { return };
    let Some(bytes) = encode(&once) else { return };
    let (message, _) = Message::split(&bytes).unwrap();
    assert_eq!(read(&message), Some(once));
}

/// A document becomes a transaction, or the error contains the position.
fn document(input: &[u8]) {
    let error = match Script::parse_json("input", input) {
        Err(error) => error,
        Ok(script) => match script.transaction(None) {
            Ok(change) => {
                assert!(change.transaction().len() < 1 << 20);
                return;
            }
            Err(error) => error,
        },
    };
    assert!(error.line >= 1 && error.column >= 1, "{error:?}");
    let shown = error.to_string();
    let is_harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!shown.contains(is_harmful), "{shown:?}");
}

fn run(input: &[u8]) {
    document(input);
    json_round_trip::<Decoded<'static>>(input);
    object::<Table<'static>>(input, |m| {
        Some(TableRef::parse(m).ok()?.to_builder().into_owned())
    });
    object::<Chain<'static>>(input, |m| {
        Some(ChainRef::parse(m).ok()?.to_builder().into_owned())
    });
    object::<Rule<'static>>(input, |m| {
        Some(RuleRef::parse(m).ok()?.to_builder().into_owned())
    });
    object::<Set<'static>>(input, |m| {
        Some(SetRef::parse(m).ok()?.to_builder().into_owned())
    });
    object::<Elements<'static>>(input, |m| {
        Some(ElementsRef::parse(m).ok()?.to_builder().into_owned())
    });
    object::<StatefulObject<'static>>(input, |m| {
        Some(StatefulObjectRef::parse(m).ok()?.to_builder().into_owned())
    });
    object::<Flowtable<'static>>(input, |m| {
        Some(FlowtableRef::parse(m).ok()?.to_builder().into_owned())
    });
}
