//! Properties of all that is declared; for tests only.
//!
//! From a declaration ([`attributes!`](super::declare::attributes), [`object!`](super::declare::object),
//! …) comes a strategy for any values of the type ([`Arbitrary`]), and a test with the type's name
//! which runs [`attributes`] or [`object`] below. So nothing that is declared goes without.
//!
//! One file: strategies for values, for bytes and for damage are made of one another.

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
// Any values.

/// A type of which there are any values.
pub(super) trait Arbitrary {
    /// The type with nothing borrowed.
    type Value: Clone + Debug + 'static;

    /// Any values, in which expressions stand in one another at most this deep. They are such as
    /// are read: what can be written in several ways is in the form that reading gives it.
    fn arbitrary(depth: u32) -> BoxedStrategy<Self::Value>;
}

/// How deep expressions stand in one another here.
pub const DEPTH: u32 = 2;

/// Now and then a value. Type names what has the strategy, so that macros need not.
pub(super) fn now_and_then<T: Arbitrary>(depth: u32) -> BoxedStrategy<Option<T::Value>> {
    proptest::option::of(T::arbitrary(depth)).boxed()
}

/// Always a value.
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

/// Attributes that are not among `known`, nearly always none.
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
            // Queues, and numbers that mean nothing; not those that have a name.
            prop_oneof![2i32..=i32::MAX, i32::MIN..-5].prop_map(|code| Verdict::Other { code }),
        ]
        .boxed()
    }
}

impl Arbitrary for Data<'_> {
    type Value = Data<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<Data<'static>> {
        let kinds = [NFTA_DATA_VALUE, NFTA_DATA_VERDICT, 3];
        let opaque = soup(&kinds)
            .prop_map(|bytes| Data::decode(&bytes).map(Field::into_static))
            .prop_filter_map("another shape", |data| {
                data.filter(|data| matches!(data, Data::Opaque(_)))
            });
        // A jump without a chain, a code with one, both kinds of chain, ...
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
        let attributes = prop_oneof![soup(&[]), vec(any::<u8>(), 0..20)];
        (name, attributes)
            .prop_map(|(name, attributes)| Opaque {
                name,
                attributes: attributes.into(),
            })
            .boxed()
    }
}

/// Any expression, and all kinds of them alike.
impl Arbitrary for Decoded<'_> {
    type Value = Decoded<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<Decoded<'static>> {
        let strategies = Decoded::strategies(depth);
        Union::new(strategies.into_iter().map(|(_, strategy)| strategy)).boxed()
    }
}

/// What stands in another expression, of which `depth` more may stand in one another.
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
                    let name = &name[..name.len().min(15)]; // no device has a longer one
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
        let any = soup(&[1, 2, 3]).prop_filter_map("attributes", |bytes| {
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

/// What any type of object holds, and all types alike.
impl Arbitrary for ObjectData<'_> {
    type Value = ObjectData<'static>;
    fn arbitrary(depth: u32) -> BoxedStrategy<ObjectData<'static>> {
        Union::new(ObjectData::strategies(depth)).boxed()
    }
}

/// An object one of whose attributes says what another one is.
pub(super) trait Fit {
    /// Makes the one fit the other.
    fn fit(&mut self);
}

impl Fit for StatefulObject<'static> {
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
// Any bytes.

/// Attributes of these types and any others, nested in one another, some with names and numbers in
/// them, some too short, and some without their padding where they are the last ones.
pub(super) fn soup(kinds: &[u16]) -> BoxedStrategy<Vec<u8>> {
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

/// Attributes given by type, whether they have `NLA_F_NESTED`, and payload; now and then the last one
/// is without its padding.
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

/// These attributes, the last one without its padding.
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

/// The same attributes without the padding of the last one, at every depth: netlink does not ask for
/// it. What is not attributes stays as it is.
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

/// A change to some bytes: one is replaced, or one bit of it turned, or the rest is cut off.
pub(super) type Damage = (Index, Option<u8>);

/// Some changes.
pub(super) fn damage() -> impl Strategy<Value = Vec<Damage>> {
    vec(
        (any::<Index>(), proptest::option::weighted(0.8, any::<u8>())),
        0..4,
    )
}

/// The bytes with these changes.
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
// What holds for all.

/// Bytes that [`MessageWriter`] wrote, with no message around them; `None` if that was too long.
pub(super) fn written(content: impl FnOnce(&mut MessageWriter<'_>)) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = MessageWriter::bare(&mut bytes);
    content(&mut writer);
    writer.finish_bare().ok()?;
    Some(bytes)
}

/// Runs this many cases, or as many as the environment says (`PROPTEST_CASES`).
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

/// What can be written as JSON and read from it, where the feature is on.
#[cfg(feature = "serde")]
pub(super) trait Serial: serde::Serialize + serde::de::DeserializeOwned {}
#[cfg(feature = "serde")]
impl<T: serde::Serialize + serde::de::DeserializeOwned> Serial for T {}
#[cfg(not(feature = "serde"))]
pub(super) trait Serial {}
#[cfg(not(feature = "serde"))]
impl<T> Serial for T {}

/// JSON and back is the same.
pub(super) fn assert_serial<T: Serial + PartialEq + Debug>(value: &T) {
    #[cfg(all(test, feature = "serde"))]
    {
        let json = serde_json::to_string(value).unwrap();
        let again: T = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
        assert_eq!(&again, value, "{json}");
    }
    let _ = value;
}

/// Of what was read from any bytes: there is no JSON for it, or that is read as what has the same.
pub(super) fn assert_serial_if_at_all<T: Serial>(value: &T) {
    #[cfg(all(test, feature = "serde"))]
    if let Ok(json) = serde_json::to_string(value) {
        let again: T = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
        assert_eq!(serde_json::to_string(&again).unwrap(), json);
    }
    let _ = value;
}

/// The types of attributes that were met, to find out whether all were.
struct Met(RefCell<BTreeSet<u16>>, RefCell<usize>);

impl Met {
    /// Of these types, each of which must be one of its own.
    fn new(known: &[(u16, &str)]) -> Self {
        let kinds: BTreeSet<u16> = known.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds.len(), known.len(), "a type stands twice: {known:?}");
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
        // Each is there in three of four cases.
        if *self.1.borrow() >= 16 {
            // Padding is read and never written.
            for (kind, name) in known.iter().filter(|(_, name)| !name.ends_with("_PAD")) {
                assert!(met.contains(kind), "{name} was never there");
            }
        }
    }
}

/// Of a group of attributes: what is written is read as the same, any bytes are read or refused, and
/// what is read is written as what is read as the same.
pub(super) fn attributes<T>(known: &[(u16, &'static str)], read: fn(&[u8]) -> Option<T>)
where
    T: Field<'static> + Arbitrary<Value = T> + Clone + PartialEq + Debug + Serial,
{
    const KIND: u16 = 77;
    let write = |value: &T| written(|writer| value.encode(writer, KIND));
    let met = Met::new(known);
    let kinds: Vec<u16> = known.iter().map(|(kind, _)| *kind).collect();
    let noise = vec((any::<bool>(), soup(&kinds), damage()), 3);
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
        for (valid, soup, damage) in noise {
            others.push(if valid {
                damaged(attribute.payload.to_vec(), &damage)
            } else {
                damaged(soup, &damage[..damage.len() / 2])
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

/// What [`object!`](super::declare::object) declares.
pub(super) trait Declared:
    Arbitrary<Value = Self> + Clone + PartialEq + Debug + Serial
{
    const KINDS: &'static [(u16, &'static str)];
    fn family(&self) -> Family;
    fn write(&self, writer: &mut MessageWriter<'_>);
    /// Without what means something else in a listing.
    fn without_listed(self) -> Self;
    fn has_unknown(&self) -> bool;
    /// Reads a message's payload as a view, and takes that for a builder.
    fn read(payload: &[u8]) -> Result<Self, Malformed>;
}

/// What follows the header of an object's message.
pub(super) fn payload(family: Family, attributes: &[u8]) -> Vec<u8> {
    [&[family.0, 0, 0, 0], attributes].concat()
}

/// What comes between the attributes of an object: others, where each is put and whether it takes
/// the payload's place of the one there, and damage.
pub(super) type Noise = (Vec<u8>, Vec<(Index, bool)>, Vec<Damage>);

/// Attributes of which a message is made that nearly is an object: its own ones, each now and then
/// with another payload, and others before, between and behind them.
pub(super) fn nearly(attributes: &[u8], (others, places, damages): &Noise) -> Vec<u8> {
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

/// What [`nearly`] takes, for these types of attributes.
pub(super) fn noise(known: &[(u16, &'static str)]) -> impl Strategy<Value = Noise> {
    let kinds: Vec<u16> = known.iter().map(|(kind, _)| *kind).collect();
    let places = vec((any::<Index>(), any::<bool>()), 0..4);
    (soup(&kinds), places, damage())
}

/// Of an object: what is written is read as the same, in whichever order, any bytes are read or
/// refused, and what is read is written as what is read as the same.
pub(super) fn object<T: Declared>() {
    let write = |value: &T| written(|writer| value.write(writer));
    let met = Met::new(T::KINDS);
    let noise = vec(noise(T::KINDS), 3);
    run(48, (T::arbitrary(DEPTH), noise), |(value, noise)| {
        assert_serial(&value);
        let Some(bytes) = write(&value) else { return };
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
        others.extend(noise.iter().map(|noise| nearly(&bytes, noise)));
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
