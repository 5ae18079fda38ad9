//! Properties of all declared types; for tests only.
//!
//! A declaration ([`attributes!`](super::declare::attributes), [`object!`](super::declare::object), …)
//! generates a strategy for arbitrary values of the type ([`Arbitrary`]), and a test with the type's
//! name that runs [`attributes`] or [`object`] below. So every declared type is tested.
//!
//! This is one file, because the strategies for values, bytes and damage depend on one another.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Debug;

use bstr::ByteSlice;
use chainwright_sys::netlink::NLA_F_NESTED;
use chainwright_sys::nf_tables::{
    NFTA_DATA_VALUE, NFTA_DATA_VERDICT, NFTA_DEVICE_NAME, NFTA_DEVICE_PREFIX, NFTA_VERDICT_CHAIN,
    NFTA_VERDICT_CHAIN_ID, NFTA_VERDICT_CODE,
};
use proptest::collection::vec;
use proptest::prelude::{Just, any};
use proptest::prop_oneof;
use proptest::sample::Index;
use proptest::strategy::{BoxedStrategy, Strategy, Union};
use proptest::test_runner::{Config, TestRunner};

use super::declare::Field;
use super::expr::{
    Counter, Data, Decoded, ExpressionRef, Expressions, NestedExpression, Opaque, Verdict,
};
use super::set::SetField;
use super::stateful::{
    HostMilliseconds, Timeouts, TunnelErspan, TunnelGeneve, TunnelOption, TunnelOptions,
    TunnelVxlan,
};
use super::{
    Bytes, Device, Devices, Element, ElementList, Family, Name, ObjectData, SetFields,
    StatefulObject, UnknownAttributes,
};
use crate::netlink::{Attributes, Malformed, MessageWriter};

// ---------------------------------------------------------------------------------------------
// Arbitrary values.

/// A type with a strategy for arbitrary values.
pub(super) trait Arbitrary {
    /// The type without borrows.
    type Value: Clone + Debug + 'static;

    /// Returns a strategy for arbitrary values, with expressions nested at most `depth` deep. If a value
    /// can be encoded in several ways, it has the form that parsing produces.
    fn arbitrary(depth: u32) -> BoxedStrategy<Self::Value>;
}

/// Maximum depth of nested expressions here.
pub const DEPTH: u32 = 2;

/// Returns a strategy that sometimes yields a value. The type parameter has the value's strategy, so that macros need
/// not name it.
pub(super) fn maybe<T: Arbitrary>(depth: u32) -> BoxedStrategy<Option<T::Value>> {
    proptest::option::of(T::arbitrary(depth)).boxed()
}

/// Returns a strategy that always yields a value.
pub(super) fn always<T: Arbitrary>(depth: u32) -> BoxedStrategy<Option<T::Value>> {
    T::arbitrary(depth).prop_map(Some).boxed()
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Arbitrary for $number {
            type Value = Self;
            fn arbitrary(_: u32) -> BoxedStrategy<Self> {
                prop_oneof![2 => any::<$number>(), 2 => 0..32 as $number, 1 => Just(<$number>::MAX)]
                    .boxed()
            }
        }
    )*};
}
numbers! { u8 u16 u32 i32 u64 }

impl Arbitrary for Name<'_> {
    type Value = Name<'static>;
    fn arbitrary(_: u32) -> BoxedStrategy<Name<'static>> {
        prop_oneof![
            6 => "[a-zA-Z0-9_/.-]{1,20}".prop_map(Name::from),
            2 => "[ -~]{0,10}".prop_map(Name::from), // backslashes, quotes, braces
            1 => "\\PC{0,10}".prop_map(Name::from),
            1 => vec(1u8.., 0..20).prop_map(|bytes| Name::from(&bytes[..]).into_owned()),
            1 => vec(1u8.., 255).prop_map(|bytes| Name::from(&bytes[..]).into_owned()),
        ]
        .boxed()
    }
}

impl Arbitrary for Bytes<'_> {
    type Value = Bytes<'static>;
    fn arbitrary(_: u32) -> BoxedStrategy<Bytes<'static>> {
        prop_oneof![9 => vec(any::<u8>(), 0..20), 1 => vec(any::<u8>(), 200..300)]
            .prop_map(Into::into)
            .boxed()
    }
}

/// Returns a strategy for attributes that are not among `known`, usually none.
pub(super) fn unknown(known: &'static [(u16, &'static str)]) -> BoxedStrategy<UnknownAttributes> {
    let kind = prop_oneof![3 => 0..40u16, 1 => 0..0x4000u16];
    let attribute = (kind, any::<bool>(), vec(any::<u8>(), 0..9));
    let some = vec(attribute, 1..3).prop_map(|attributes| {
        let bytes = written(|writer| {
            for (kind, nested, payload) in &attributes {
                let flag = if *nested { NLA_F_NESTED } else { 0 };
                writer.bytes(kind | flag, payload);
            }
        });
        UnknownAttributes::of(Attributes::new(&bytes.unwrap()), known)
    });
    prop_oneof![3 => Just(UnknownAttributes::NONE), 1 => some].boxed()
}

impl Arbitrary for Verdict<'_> {
    type Value = Verdict<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<Verdict<'static>> {
        prop_oneof![
            Just(Verdict::Accept),
            Just(Verdict::Drop),
            Just(Verdict::Continue),
            Just(Verdict::Break),
            Just(Verdict::Return),
            Name::arbitrary(depth).prop_map(Verdict::Jump),
            Name::arbitrary(depth).prop_map(Verdict::Goto),
            any::<u32>().prop_map(Verdict::JumpId),
            any::<u32>().prop_map(Verdict::GotoId),
            // Queues and invalid numbers, without the named verdicts.
            prop_oneof![2i32..=i32::MAX, i32::MIN..-5].prop_map(|code| Verdict::Other { code }),
        ]
        .boxed()
    }
}

impl Arbitrary for Data<'_> {
    type Value = Data<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<Data<'static>> {
        let kinds = [NFTA_DATA_VALUE, NFTA_DATA_VERDICT, 3];
        let opaque = arbitrary_attributes(&kinds)
            .prop_map(|bytes| Data::decode(&bytes).map(Field::into_static))
            .prop_filter_map("another shape", |data| {
                data.filter(|data| matches!(data, Data::Opaque(_)))
            });
        // A jump without a chain, a code with one, both kinds of chain, …
        let kinds = [
            NFTA_VERDICT_CODE,
            NFTA_VERDICT_CHAIN,
            NFTA_VERDICT_CHAIN_ID,
            4,
        ];
        let strange = vec(
            (proptest::sample::select(kinds.to_vec()), any::<i8>()),
            0..4,
        )
        .prop_filter_map("another shape", |attributes| {
            let bytes = written(|writer| {
                writer.nested(NFTA_DATA_VERDICT, |writer| {
                    for (kind, number) in &attributes {
                        writer.be32(*kind, i32::from(*number).cast_unsigned());
                    }
                });
            });
            let data = Data::decode(&bytes?).map(Field::into_static);
            data.filter(|data| matches!(data, Data::Opaque(_)))
        });
        prop_oneof![
            4 => vec(any::<u8>(), 0..=64).prop_map(|bytes| Data::Value(bytes.into())),
            4 => Verdict::arbitrary(depth).prop_map(Data::Verdict),
            1 => opaque,
            1 => strange,
        ]
        .boxed()
    }
}

impl Arbitrary for Opaque<'_> {
    type Value = Opaque<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<Opaque<'static>> {
        let name = Name::arbitrary(depth).prop_filter("a known name", |name| {
            let expression = ExpressionRef::new(name, &[]);
            matches!(expression.decode(), Ok(Decoded::Opaque(_)))
        });
        let attributes = prop_oneof![arbitrary_attributes(&[]), vec(any::<u8>(), 0..20)];
        (name, attributes)
            .prop_map(|(name, attributes)| Opaque {
                name,
                attributes: attributes.into(),
            })
            .boxed()
    }
}

/// Arbitrary expressions, all kinds equally often.
impl Arbitrary for Decoded<'_> {
    type Value = Decoded<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<Decoded<'static>> {
        let strategies = Decoded::strategies(depth);
        Union::new(strategies.into_iter().map(|(_, strategy)| strategy)).boxed()
    }
}

/// Returns a strategy for an expression within another, with up to `depth` more levels.
fn inner(depth: u32) -> BoxedStrategy<Decoded<'static>> {
    match depth.checked_sub(1) {
        Some(depth) => Decoded::arbitrary(depth),
        None => prop_oneof![
            Counter::arbitrary(0).prop_map(Decoded::Counter),
            Opaque::arbitrary(0).prop_map(Decoded::Opaque),
        ]
        .boxed(),
    }
}

impl Arbitrary for NestedExpression<'_> {
    type Value = NestedExpression<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<NestedExpression<'static>> {
        inner(depth)
            .prop_map(|expression| NestedExpression::of_decoded(&expression))
            .boxed()
    }
}

impl Arbitrary for Expressions<'_> {
    type Value = Expressions<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<Expressions<'static>> {
        vec(inner(depth), 0..4)
            .prop_map(|typed| {
                let mut list = Expressions::new();
                typed.iter().for_each(|expression| {
                    list.push_decoded(expression);
                });
                list
            })
            .boxed()
    }
}

impl Arbitrary for Devices<'_> {
    type Value = Devices<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<Devices<'static>> {
        let kinds = [NFTA_DEVICE_NAME, NFTA_DEVICE_PREFIX, 7];
        let entry = (
            proptest::sample::select(kinds.to_vec()),
            Name::arbitrary(depth),
        );
        vec(entry, 0..4)
            .prop_map(|entries| {
                let mut devices = Devices::default();
                for (kind, name) in &entries {
                    let name = &name[..name.len().min(15)]; // device names are not longer
                    devices.push(match *kind {
                        NFTA_DEVICE_NAME => Device::Name(name.as_bstr()),
                        NFTA_DEVICE_PREFIX => Device::Prefix(name.as_bstr()),
                        kind => Device::Unknown {
                            kind,
                            payload: name,
                        },
                    });
                }
                devices
            })
            .boxed()
    }
}

impl Arbitrary for SetFields {
    type Value = Self;
    fn arbitrary(depth: u32) -> BoxedStrategy<Self> {
        vec(SetField::arbitrary(depth), 0..4)
            .prop_map(SetFields)
            .boxed()
    }
}

impl Arbitrary for ElementList<'_> {
    type Value = ElementList<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<ElementList<'static>> {
        vec(Element::arbitrary(depth), 0..4)
            .prop_map(|elements| elements.into_iter().collect())
            .boxed()
    }
}

impl Arbitrary for HostMilliseconds {
    type Value = Self;
    fn arbitrary(depth: u32) -> BoxedStrategy<Self> {
        u32::arbitrary(depth).prop_map(HostMilliseconds).boxed()
    }
}

impl Arbitrary for Timeouts<'_> {
    type Value = Timeouts<'static>;
    fn arbitrary(_: u32) -> BoxedStrategy<Timeouts<'static>> {
        let timeouts = vec((0..16u16, any::<u32>()), 0..4);
        let any = arbitrary_attributes(&[1, 2, 3]).prop_filter_map("attributes", |bytes| {
            Timeouts::decode(&bytes).map(Field::into_static)
        });
        prop_oneof![3 => timeouts.prop_map(|timeouts| Timeouts::new(&timeouts)), 1 => any].boxed()
    }
}

impl Arbitrary for TunnelOptions<'_> {
    type Value = TunnelOptions<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<TunnelOptions<'static>> {
        let unknown = (4..40u16, vec(any::<u8>(), 0..9)).prop_map(|(kind, payload)| {
            let bytes = written(|writer| _ = writer.bytes(kind, &payload));
            TunnelOption::Unknown(UnknownAttributes::of(Attributes::new(&bytes.unwrap()), &[]))
        });
        let option = prop_oneof![
            TunnelVxlan::arbitrary(depth).prop_map(TunnelOption::Vxlan),
            TunnelErspan::arbitrary(depth).prop_map(TunnelOption::Erspan),
            TunnelGeneve::arbitrary(depth).prop_map(TunnelOption::Geneve),
            unknown,
        ];
        vec(option, 0..4).prop_map(TunnelOptions).boxed()
    }
}

/// The data of arbitrary objects, all types equally often.
impl Arbitrary for ObjectData<'_> {
    type Value = ObjectData<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<ObjectData<'static>> {
        Union::new(ObjectData::strategies(depth)).boxed()
    }
}

/// An object with an attribute that determines another one.
pub(super) trait MakeConsistent {
    /// Makes the attributes consistent.
    fn fit(&mut self);
}

impl MakeConsistent for StatefulObject<'static> {
    fn fit(&mut self) {
        let Some(data) = &self.data else { return };
        if let Some(object_type) = data.object_type() {
            self.object_type = Some(object_type);
        } else if let (Some(object_type), ObjectData::Opaque(bytes)) = (self.object_type, data)
            && ObjectData::read(object_type, bytes) != *data
        {
            self.object_type = Some(super::expr::ObjectType(1000));
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Arbitrary bytes.

/// Returns a strategy for attributes of these and other types, nested, some with names and numbers, some too short, and
/// some without the padding of the last attribute.
pub(super) fn arbitrary_attributes(kinds: &[u16]) -> BoxedStrategy<Vec<u8>> {
    let kind = match kinds {
        [] => (0..8u16).boxed(),
        kinds => prop_oneof![9 => proptest::sample::select(kinds.to_vec()), 1 => 0..64u16].boxed(),
    };
    let small = prop_oneof![9 => 1..4u16, 1 => 0..16u16];
    let payload = prop_oneof![
        2 => vec(any::<u8>(), 0..12),
        2 => (0..8u32).prop_map(|number| number.to_be_bytes().to_vec()),
        1 => any::<i8>().prop_map(|number| i32::from(number).to_be_bytes().to_vec()),
        1 => any::<u64>().prop_map(|number| number.to_be_bytes().to_vec()),
        1 => proptest::sample::select(vec!["counter\0", "cmp\0", "lo\0", "x\0"])
            .prop_map(|name| name.as_bytes().to_vec()),
    ];
    let payload = payload.prop_recursive(4, 16, 4, move |payload| {
        list(vec((small.clone(), any::<bool>(), payload), 0..4))
    });
    list(vec((kind, any::<bool>(), payload), 0..6)).boxed()
}

/// Returns a strategy for attributes given by type, `NLA_F_NESTED` flag and payload; sometimes without the padding of
/// the last one.
fn list(
    attributes: impl Strategy<Value = Vec<(u16, bool, Vec<u8>)>>,
) -> impl Strategy<Value = Vec<u8>> {
    (attributes, any::<bool>()).prop_map(|(attributes, padded)| {
        let mut bytes = encoded(attributes);
        if padded {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    })
}

/// Encodes these attributes, the last one without padding.
fn encoded(attributes: Vec<(u16, bool, Vec<u8>)>) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for (kind, nested, payload) in attributes {
        let flag = if nested { NLA_F_NESTED } else { 0 };
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend((payload.len() as u16 + 4).to_ne_bytes());
        bytes.extend((kind | flag).to_ne_bytes());
        bytes.extend(payload);
    }
    bytes
}

/// Removes the padding of the last attribute at every depth, which netlink does not require. Keeps bytes
/// that are not attributes.
pub(super) fn unpadded(bytes: &[u8]) -> Vec<u8> {
    if Attributes::new(bytes).any(|attribute| attribute.is_err()) {
        return bytes.to_vec();
    }
    let mut all = Vec::new();
    for attribute in Attributes::new(bytes).flatten() {
        let kind = u16::from_ne_bytes([attribute.raw[2], attribute.raw[3]]);
        let payload = match kind & NLA_F_NESTED {
            0 => attribute.payload.to_vec(),
            _ => unpadded(attribute.payload),
        };
        all.push((kind & !NLA_F_NESTED, kind & NLA_F_NESTED != 0, payload));
    }
    encoded(all)
}

/// A change to some bytes: replaces a byte, flips a bit, or truncates the rest.
pub(super) type Damage = (Index, Option<u8>);

/// Returns a strategy for a few changes.
pub(super) fn damage() -> impl Strategy<Value = Vec<Damage>> {
    vec(
        (any::<Index>(), proptest::option::weighted(0.8, any::<u8>())),
        0..4,
    )
}

/// Applies these changes to the bytes.
pub(super) fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for (index, byte) in damages {
        if bytes.is_empty() {
            break;
        }
        let at = index.index(bytes.len());
        match byte {
            Some(byte) if byte % 2 == 0 => bytes[at] ^= 1 << (byte / 2 % 8),
            Some(byte) => bytes[at] = *byte,
            None => bytes.truncate(at),
        }
    }
    bytes
}

// ---------------------------------------------------------------------------------------------
// Common properties.

/// Returns the bytes written by [`MessageWriter`], without a message header; `None` if they are too
/// long.
pub(super) fn written(content: impl FnOnce(&mut MessageWriter<'_>)) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::bare(&mut bytes);
    content(&mut writer);
    writer.finish_bare().ok()?;
    Some(bytes)
}

/// Runs this many cases, or the number in the environment variable `PROPTEST_CASES`.
pub(super) fn run<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value)) {
    let mut config = Config {
        failure_persistence: None,
        ..Config::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    let mut runner = TestRunner::new(config);
    let result = runner.run(&strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}\n{runner}");
    }
}

/// A type that can be converted to and from JSON, if the feature is enabled.
#[cfg(feature = "serde")]
pub(super) trait Serial: serde::Serialize + serde::de::DeserializeOwned {}
#[cfg(feature = "serde")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> Serial for T {}
#[cfg(not(feature = "serde"))]
pub(super) trait Serial {}
#[cfg(not(feature = "serde"))]
impl<T> Serial for T {}

/// Asserts that a value survives the conversion to JSON and back.
pub(super) fn assert_serial<T: Serial + PartialEq + Debug>(value: &T) {
    #[cfg(all(test, feature = "serde"))]
    {
        let json = serde_json::to_string(value).unwrap();
        let again: T = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
        assert_eq!(&again, value, "{json}");
    }
    let _ = value;
}

/// Asserts the same of the JSON of a value parsed from arbitrary bytes, if it has any.
pub(super) fn assert_serial_if_at_all<T: Serial>(value: &T) {
    #[cfg(all(test, feature = "serde"))]
    if let Ok(json) = serde_json::to_string(value) {
        let again: T = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
        assert_eq!(serde_json::to_string(&again).unwrap(), json);
    }
    let _ = value;
}

/// The attribute types that occurred, to check that all did, and the number of cases.
struct SeenKinds(RefCell<BTreeSet<u16>>, RefCell<usize>);

impl SeenKinds {
    /// Checks that these types are valid and unique.
    fn new(known: &[(u16, &str)]) -> Self {
        let kinds: BTreeSet<u16> = known.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds.len(), known.len(), "duplicate type: {known:?}");
        assert!(kinds.iter().all(|kind| (1..0x4000).contains(kind)));
        Self(RefCell::default(), RefCell::default())
    }

    fn count(&self, bytes: &[u8]) {
        *self.1.borrow_mut() += 1;
        let kinds = Attributes::new(bytes).flatten().map(|this| this.kind);
        self.0.borrow_mut().extend(kinds);
    }

    fn assert_all(&self, known: &[(u16, &str)]) {
        let met = self.0.borrow();
        // Each occurs in three of four cases.
        if *self.1.borrow() >= 16 {
            // Padding is parsed, but never written.
            for (kind, name) in known.iter().filter(|(_, name)| !name.ends_with("_PAD")) {
                assert!(met.contains(kind), "{name} never occurred");
            }
        }
    }
}

/// Checks the properties of a group of attributes: written values are parsed as the same values, arbitrary bytes are
/// parsed or rejected, and values parsed from them survive writing and parsing.
pub(super) fn attributes<T>(known: &[(u16, &'static str)], read: fn(&[u8]) -> Option<T>)
where
    T: Field<'static> + Arbitrary<Value = T> + Clone + PartialEq + Debug + Serial,
{
    const KIND: u16 = 77;
    let write = |value: &T| written(|writer| value.encode(writer, KIND));
    let met = SeenKinds::new(known);
    let kinds: Vec<u16> = known.iter().map(|(kind, _)| *kind).collect();
    let noise = vec((any::<bool>(), arbitrary_attributes(&kinds), damage()), 3);
    run(24, (T::arbitrary(DEPTH), noise), |(value, noise)| {
        let Some(bytes) = write(&value) else { return };
        let attribute = Attributes::new(&bytes).next().unwrap().unwrap();
        assert_eq!((attribute.kind, attribute.raw.len()), (KIND, bytes.len()));
        met.count(attribute.payload);
        let again = read(attribute.payload);
        assert_eq!(again.as_ref(), Some(&value));
        assert_eq!(write(&again.unwrap()).unwrap(), bytes);
        assert_serial(&value);

        let unpadded = unpadded(attribute.payload);
        assert!(read(&unpadded).is_some());
        let mut others = vec![unpadded];
        for (valid, arbitrary_attributes, damage) in noise {
            others.push(if valid {
                damaged(attribute.payload.to_vec(), &damage)
            } else {
                damaged(arbitrary_attributes, &damage[..damage.len() / 2])
            });
        }
        for bytes in others {
            let Some(value) = read(&bytes) else { continue };
            let _ = format!("{value:?} {value:#?}");
            assert_serial_if_at_all(&value);
            let Some(bytes) = write(&value) else { continue };
            assert_eq!(read(&bytes[4..]), Some(value));
        }
    });
    met.assert_all(known);
}

/// A type declared by [`object!`](super::declare::object).
pub(super) trait Declared:
    Arbitrary<Value = Self> + Clone + PartialEq + Debug + Serial
{
    const KINDS: &'static [(u16, &'static str)];
    fn family(&self) -> Family;
    fn write(&self, writer: &mut MessageWriter<'_>);
    /// Clears attributes that mean something else in a listing.
    fn without_listed(self) -> Self;
    fn has_unknown(&self) -> bool;
    /// Parses a message's payload as a view, and converts that to a builder.
    fn read(payload: &[u8]) -> Result<Self, Malformed>;
}

/// Returns the payload of an object's message, after the message header.
pub(super) fn payload(family: Family, attributes: &[u8]) -> Vec<u8> {
    [&[family.0, 0, 0, 0], attributes].concat()
}

/// Changes to the attributes of an object: other attributes, where each is inserted and whether it
/// replaces the payload there, and damage.
pub(super) type Noise = (Vec<u8>, Vec<(Index, bool)>, Vec<Damage>);

/// Returns the attributes of an almost valid object: its own ones, some with another payload, and others
/// before, between and after them.
pub(super) fn nearly_valid(attributes: &[u8], (others, places, damages): &Noise) -> Vec<u8> {
    let mut list: Vec<(u16, Vec<u8>)> = Vec::new();
    let all = |bytes| Attributes::new(bytes).flatten();
    list.extend(all(attributes).map(|this| (this.kind, this.payload.to_vec())));
    for (other, (place, replace)) in all(others).zip(places) {
        let at = place.index(list.len() + 1);
        match list.get_mut(at) {
            Some((_, payload)) if *replace => *payload = other.payload.to_vec(),
            _ => list.insert(at, (other.kind, other.payload.to_vec())),
        }
    }
    let bytes = written(|writer| {
        for (kind, payload) in &list {
            writer.bytes(*kind, payload);
        }
    });
    damaged(bytes.unwrap_or_default(), damages)
}

/// Returns a strategy for the noise that [`nearly_valid`] needs, for these attribute types.
pub(super) fn noise(known: &[(u16, &'static str)]) -> impl Strategy<Value = Noise> {
    let kinds: Vec<u16> = known.iter().map(|(kind, _)| *kind).collect();
    let places = vec((any::<Index>(), any::<bool>()), 0..4);
    (arbitrary_attributes(&kinds), places, damage())
}

/// Checks the properties of an object: written values are parsed as the same values, in any order of attributes;
/// arbitrary bytes are parsed or rejected; and values parsed from them survive writing and parsing.
pub(super) fn object<T: Declared>() {
    let write = |value: &T| written(|writer| value.write(writer));
    let met = SeenKinds::new(T::KINDS);
    let noise = vec(noise(T::KINDS), 3);
    run(48, (T::arbitrary(DEPTH), noise), |(value, noise)| {
        let Some(bytes) = write(&value) else { return };
        assert_serial(&value);
        met.count(&bytes);
        let again = T::read(&payload(value.family(), &bytes)).unwrap();
        let same = value.clone().without_listed();
        assert_eq!(again, same);
        assert_eq!(write(&again), write(&same));
        if !value.has_unknown() {
            let mut list: Vec<_> = Attributes::new(&bytes).flatten().collect();
            list.reverse();
            let reversed: Vec<u8> = list.iter().flat_map(|this| this.raw).copied().collect();
            let again = T::read(&payload(value.family(), &reversed)).unwrap();
            assert_eq!(again, same);
        }

        let unpadded = unpadded(&bytes);
        assert!(T::read(&payload(value.family(), &unpadded)).is_ok());
        let mut others = vec![unpadded];
        others.extend(noise.iter().map(|noise| nearly_valid(&bytes, noise)));
        for bytes in others {
            let Ok(value) = T::read(&payload(value.family(), &bytes)) else {
                continue;
            };
            let _ = format!("{value:?} {value:#?}");
            assert_serial_if_at_all(&value);
            let Some(bytes) = write(&value) else { continue };
            assert_eq!(T::read(&payload(value.family(), &bytes)), Ok(value));
        }
    });
    met.assert_all(T::KINDS);
}
