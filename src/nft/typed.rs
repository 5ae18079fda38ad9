//! Sets and maps with Rust types as keys and values: wrong order or number of fields does not compile, and
//! data types, lengths and byte orders follow from the Rust types.
//!
//! ```
//! use std::net::Ipv4Addr;
//! use chainwright::nft::build::{Build, Protocol, ip, meta, th};
//! use chainwright::nft::expr::Verdict;
//! use chainwright::nft::typed::TypedMap;
//! use chainwright::nft::{Chain, Connection, Family, Table, Transaction};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let sandbox = chainwright_testing::Sandbox::new()?; sandbox.run(|| {
//! // type ipv4_addr . inet_proto . inet_service : verdict
//! let services = TypedMap::<(Ipv4Addr, Protocol, u16), Verdict<'_>>::new(Family::IP, "proxy", "services");
//! let web = (Ipv4Addr::new(10, 96, 0, 1), Protocol::TCP, 80);
//!
//! let mut tx = Transaction::new();
//! tx.add(&Table::new(Family::IP, "proxy"))?;
//! tx.add(&Chain::new(Family::IP, "proxy", "dispatch"))?;
//! tx.add(&Chain::new(Family::IP, "proxy", "web"))?;
//! tx.add(services.set())?;
//! tx.add_elements(&services.id(), [services.element(&web, &Verdict::Goto("web".into()))])?;
//! // ip daddr . meta l4proto . th dport vmap @services
//! let dispatch = Build::new(Family::IP, "proxy", "dispatch")
//!     .vmap(&[ip::DADDR, meta::L4PROTO, th::DPORT], services.set())
//!     .finish()?;
//! tx.add(&dispatch)?;
//! let mut nft = Connection::open()?;
//! nft.commit(&tx)?;
//!
//! let mut listed = nft.elements(Family::IP, "proxy", "services")?;
//! let element = listed.try_next()?.expect("it was added");
//! assert_eq!(services.key(&element), Some(web));
//! # drop(listed);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.map_err(|e| e as Box<dyn std::error::Error>)?;
//! # Ok(())
//! # }
//! ```
//!
//! Sets of ranges take keys, ranges and prefixes: see [`TypedSet::ranges`]. For other features change the underlying
//! [`Set`] ([`TypedSet::modify_set`]) and use the constructors of [`Element`]. The types are those of this program: an
//! existing set with the same name may have other types, and if their lengths are equal the kernel silently accepts the
//! elements.

use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use super::build::{EtherType, IcmpType, Icmpv6Type, MacAddress, Protocol, Value};
use super::element::SetId;
use super::expr::{Data, Verdict};
use super::name::Name;
use super::ranges::{highest, number};
use super::{DataType, Element, ElementRef, Family, Set};

/// A field of a key or a value.
pub trait Field: Sized {
    /// The data type.
    const TYPE: DataType;
    /// The length in bytes; a concatenation pads each field to four.
    const LENGTH: u32;

    /// Appends the encoded bytes, [`LENGTH`](Self::LENGTH) of them.
    fn put(&self, bytes: &mut Vec<u8>);

    /// Decodes the bytes.
    fn take(bytes: &[u8]) -> Option<Self>;
}

macro_rules! fields {
    ($($(#[$meta:meta])* $Type:ty: $length:literal, $put:expr, $take:expr;)*) => {$(
        $(#[$meta])*
        impl Field for $Type {
            const TYPE: DataType = <$Type as Value>::TYPE;
            const LENGTH: u32 = $length;

            fn put(&self, bytes: &mut Vec<u8>) {
                let put: fn(Self) -> [u8; $length] = $put;
                bytes.extend_from_slice(&put(*self));
            }

            fn take(bytes: &[u8]) -> Option<Self> {
                let take: fn([u8; $length]) -> Self = $take;
                bytes.try_into().ok().map(take)
            }
        }
    )*};
}

fields! {
    Ipv4Addr: 4, |address| address.octets(), Ipv4Addr::from;
    Ipv6Addr: 16, |address| address.octets(), Ipv6Addr::from;
    /// A port, in network order.
    u16: 2, u16::to_be_bytes, u16::from_be_bytes;
    /// A mark, in host order.
    u32: 4, u32::to_ne_bytes, u32::from_ne_bytes;
    Protocol: 1, |protocol| [protocol.0], |[number]| Protocol(number);
    MacAddress: 6, |address| address.0, MacAddress;
    EtherType: 2, |kind| kind.0.to_be_bytes(), |bytes| EtherType(u16::from_be_bytes(bytes));
    IcmpType: 1, |kind| [kind.0], |[number]| IcmpType(number);
    Icmpv6Type: 1, |kind| [kind.0], |[number]| Icmpv6Type(number);
}

/// A field that can have ranges, because its bytes are in network order.
pub trait RangeField: Field {}

impl RangeField for Ipv4Addr {}
impl RangeField for Ipv6Addr {}
impl RangeField for u16 {}
impl RangeField for Protocol {}
impl RangeField for MacAddress {}
impl RangeField for EtherType {}
impl RangeField for IcmpType {}
impl RangeField for Icmpv6Type {}

/// A range of keys: one key, `first..=last`, or, with the feature `ipnet`, a prefix. It is empty if its first key is
/// above its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyRange<K> {
    first: K,
    last: K,
}

impl<K: RangeField> KeyRange<K> {
    /// Returns the first and the last key as numbers.
    fn bounds(&self) -> (u128, u128) {
        let [first, last] = [&self.first, &self.last].map(|key| {
            let mut bytes = Vec::new();
            key.put(&mut bytes);
            number(&bytes)
        });
        (first, last)
    }
}

impl<K: Copy> From<K> for KeyRange<K> {
    fn from(key: K) -> Self {
        Self {
            first: key,
            last: key,
        }
    }
}

impl<K> From<RangeInclusive<K>> for KeyRange<K> {
    fn from(range: RangeInclusive<K>) -> Self {
        let (first, last) = range.into_inner();
        Self { first, last }
    }
}

#[cfg(feature = "ipnet")]
impl From<ipnet::Ipv4Net> for KeyRange<Ipv4Addr> {
    fn from(prefix: ipnet::Ipv4Net) -> Self {
        (prefix.network()..=prefix.broadcast()).into()
    }
}

#[cfg(feature = "ipnet")]
impl From<ipnet::Ipv6Net> for KeyRange<Ipv6Addr> {
    fn from(prefix: ipnet::Ipv6Net) -> Self {
        (prefix.network()..=prefix.broadcast()).into()
    }
}

/// Returns the elements of a range of keys of this type.
fn elements_of<K: Field>((first, last): (u128, u128)) -> Vec<Element<'static>> {
    let length = K::LENGTH as usize;
    let key = |number: u128| number.to_be_bytes()[16 - length..].to_vec();
    match last {
        _ if first > last => Vec::new(),
        _ if last == highest(length) => vec![Element::open_interval(key(first))],
        _ => Element::interval(key(first), key(last + 1)).into(),
    }
}

/// A key, or a map's value: a [`Field`], or a concatenation as a tuple of up to five.
pub trait Fields: Sized {
    /// Returns the data type.
    fn data_type() -> DataType;

    /// Returns the type and length of each field.
    fn fields() -> Vec<(DataType, u32)>;

    /// Encodes the fields as stored by the kernel.
    fn encode(&self) -> Vec<u8>;

    /// Decodes the fields; `None` if the length differs.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

impl<T: Field> Fields for T {
    fn data_type() -> DataType {
        T::TYPE
    }

    fn fields() -> Vec<(DataType, u32)> {
        vec![(T::TYPE, T::LENGTH)]
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        T::take(bytes)
    }
}

macro_rules! tuples {
    ($(($($Type:ident $place:tt),+);)*) => {$(
        impl<$($Type: Field),+> Fields for ($($Type,)+) {
            fn data_type() -> DataType {
                DataType::concatenation([$($Type::TYPE),+])
            }

            fn fields() -> Vec<(DataType, u32)> {
                vec![$(($Type::TYPE, $Type::LENGTH)),+]
            }

            fn encode(&self) -> Vec<u8> {
                let mut bytes = Vec::new();
                $(
                    self.$place.put(&mut bytes);
                    bytes.resize(bytes.len().next_multiple_of(4), 0);
                )+
                bytes
            }

            fn decode(mut bytes: &[u8]) -> Option<Self> {
                let read = ($({
                    let length = $Type::LENGTH as usize;
                    let field = bytes.get(..length)?;
                    bytes = bytes.get(length.next_multiple_of(4)..)?;
                    $Type::take(field)?
                },)+);
                bytes.is_empty().then_some(read)
            }
        }
    )*};
}

tuples! {
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
}

/// The data of a map: [`Fields`], or a [`Verdict`].
pub trait MapData: Sized {
    /// Makes the set a map to such data.
    fn declare(set: Set<'_>) -> Set<'_>;

    /// Adds the data to an element.
    fn put<'e>(&self, element: Element<'e>) -> Element<'e>;

    /// Returns the data of an element; `None` if it is of another kind.
    fn take(data: &Data<'_>) -> Option<Self>;
}

impl<T: Fields> MapData for T {
    fn declare(set: Set<'_>) -> Set<'_> {
        let lengths = T::fields().into_iter().map(|(_, length)| length);
        let length = match lengths.len() {
            1 => lengths.sum(),
            _ => lengths.map(|length| length.next_multiple_of(4)).sum(),
        };
        set.with_data(T::data_type(), length)
    }

    fn put<'e>(&self, element: Element<'e>) -> Element<'e> {
        element.with_data(self.encode())
    }

    fn take(data: &Data<'_>) -> Option<Self> {
        T::decode(data.as_value()?)
    }
}

impl MapData for Verdict<'_> {
    fn declare(set: Set<'_>) -> Set<'_> {
        set.with_verdicts()
    }

    fn put<'e>(&self, element: Element<'e>) -> Element<'e> {
        element.with_verdict(self.clone().into_owned())
    }

    fn take(data: &Data<'_>) -> Option<Self> {
        match data {
            Data::Verdict(verdict) => Some(verdict.clone().into_owned()),
            _ => None,
        }
    }
}

/// A set with keys of type `K`.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedSet<'a, K> {
    set: Set<'a>,
    keys: PhantomData<fn(K) -> K>,
}

impl<'a, K: Fields> TypedSet<'a, K> {
    /// Creates a set with this name.
    pub fn new(family: Family, table: impl Into<Name<'a>>, name: impl Into<Name<'a>>) -> Self {
        let fields = K::fields();
        let set = match fields[..] {
            [(data_type, length)] => Set::new(family, table, name, data_type, length),
            _ => Set::new(family, table, name, DataType::VALUE, 0).with_fields(&fields),
        };
        let keys = PhantomData;
        Self { set, keys }
    }

    /// Changes the underlying [`Set`]: its timeout, size or flags.
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    /// use chainwright::nft::Family;
    /// use chainwright::nft::typed::TypedSet;
    ///
    /// let seen = TypedSet::<Ipv4Addr>::new(Family::IP, "filter", "seen")
    ///     .modify_set(|set| set.with_updates(65_536));
    /// # drop(seen);
    /// ```
    #[must_use]
    pub fn modify_set(mut self, adjust: impl FnOnce(Set<'a>) -> Set<'a>) -> Self {
        self.set = adjust(self.set);
        self
    }

    /// Returns the set, for adding and lookups.
    #[must_use]
    pub const fn set(&self) -> &Set<'a> {
        &self.set
    }

    /// Returns the identification of the set for operations on its elements.
    #[must_use]
    pub fn id(&self) -> SetId<'_> {
        self.set.set_id()
    }

    /// Creates an element with this key.
    #[must_use]
    pub fn element(&self, key: &K) -> Element<'static> {
        Element::new(key.encode())
    }

    /// Creates the element of the range between two keys, both included, in which each field ranges separately, for a
    /// set with [interval fields](Set::with_interval_fields).
    #[must_use]
    pub fn element_range(&self, first: &K, last: &K) -> Element<'static> {
        Element::range(first.encode(), last.encode())
    }

    /// Returns the key of a listed element; `None` if its length differs, as in another program's set with the
    /// same name.
    #[must_use]
    pub fn key(&self, element: &ElementRef<'_>) -> Option<K> {
        element.key_bytes().and_then(K::decode)
    }
}

impl<K: RangeField> TypedSet<'_, K> {
    /// Creates the elements of a range, for a set [with intervals](Set::with_interval): the first key, and the end of
    /// the range if it does not reach to the last value of the type.
    #[must_use]
    pub fn range(&self, range: impl Into<KeyRange<K>>) -> Vec<Element<'static>> {
        elements_of::<K>(range.into().bounds())
    }

    /// Creates the elements of ranges, for a set [with intervals](Set::with_interval). Overlapping and adjacent ranges
    /// become one, because the kernel rejects a range that overlaps another one of the set.
    ///
    /// ```
    /// # #[cfg(feature = "ipnet")] {
    /// use std::net::Ipv4Addr;
    ///
    /// use chainwright::nft::Family;
    /// use chainwright::nft::typed::TypedSet;
    /// use ipnet::Ipv4Net;
    ///
    /// let blocked = TypedSet::<Ipv4Addr>::new(Family::IP, "filter", "blocked")
    ///     .modify_set(|set| set.with_interval());
    /// let prefixes: [Ipv4Net; 3] =
    ///     ["192.0.2.0/25", "192.0.2.128/25", "10.0.0.0/8"].map(|prefix| prefix.parse().unwrap());
    /// let [ten, ten_end, documentation, documentation_end] = &blocked.ranges(prefixes)[..] else {
    ///     panic!("two ranges of two elements");
    /// };
    /// # let _ = (ten, ten_end, documentation, documentation_end);
    /// # }
    /// ```
    pub fn ranges<R: Into<KeyRange<K>>>(
        &self,
        ranges: impl IntoIterator<Item = R>,
    ) -> Vec<Element<'static>> {
        let mut bounds: Vec<_> = (ranges.into_iter())
            .map(|range| range.into().bounds())
            .filter(|(first, last)| first <= last)
            .collect();
        bounds.sort_unstable();
        bounds.dedup_by(|(first, last), (_, before)| {
            let is_next = *first <= before.saturating_add(1);
            if is_next {
                *before = (*before).max(*last);
            }
            is_next
        });
        bounds.into_iter().flat_map(elements_of::<K>).collect()
    }
}

/// A map with keys of type `K` and values or verdicts of type `V`.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedMap<'a, K, V> {
    keys: TypedSet<'a, K>,
    data: PhantomData<fn(V) -> V>,
}

impl<'a, K: Fields, V: MapData> TypedMap<'a, K, V> {
    /// Creates a map with this name.
    pub fn new(family: Family, table: impl Into<Name<'a>>, name: impl Into<Name<'a>>) -> Self {
        let keys = TypedSet::new(family, table, name).modify_set(V::declare);
        let data = PhantomData;
        Self { keys, data }
    }

    /// Changes the underlying [`Set`]: see [`TypedSet::modify_set`].
    #[must_use]
    pub fn modify_set(mut self, adjust: impl FnOnce(Set<'a>) -> Set<'a>) -> Self {
        self.keys = self.keys.modify_set(adjust);
        self
    }

    /// Returns the map, for adding and lookups.
    #[must_use]
    pub const fn set(&self) -> &Set<'a> {
        self.keys.set()
    }

    /// Returns the identification of the map for operations on its elements.
    #[must_use]
    pub fn id(&self) -> SetId<'_> {
        self.keys.id()
    }

    /// Creates an element with this key and value.
    #[must_use]
    pub fn element(&self, key: &K, value: &V) -> Element<'static> {
        value.put(self.keys.element(key))
    }

    /// Returns the key of a listed element: see [`TypedSet::key`].
    #[must_use]
    pub fn key(&self, element: &ElementRef<'_>) -> Option<K> {
        self.keys.key(element)
    }

    /// Returns the value of a listed element; `None` if it is of another kind or length.
    #[must_use]
    pub fn value(&self, element: &ElementRef<'_>) -> Option<V> {
        V::take(&element.data()?)
    }
}

impl<K: RangeField, V: MapData> TypedMap<'_, K, V> {
    /// Creates the elements of a range of keys with this value: see [`TypedSet::range`].
    #[must_use]
    pub fn range(&self, range: impl Into<KeyRange<K>>, value: &V) -> Vec<Element<'static>> {
        let mut elements = self.keys.range(range);
        if let Some(first) = elements.first_mut() {
            *first = value.put(std::mem::take(first));
        }
        elements
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nft::build::ByteOrder;

    #[test]
    fn types_and_lengths_follow_from_the_fields() {
        let set = TypedSet::<u16>::new(Family::INET, "t", "ports");
        let plain = Set::new(Family::INET, "t", "ports", DataType::INET_SERVICE, 2);
        assert_eq!(*set.set(), plain);

        type Key = (Ipv4Addr, Protocol, u16);
        let map = TypedMap::<Key, (Ipv6Addr, u16)>::new(Family::IP, "t", "m");
        let fields = [
            (DataType::IPV4_ADDR, 4),
            (DataType::INET_PROTO, 1),
            (DataType::INET_SERVICE, 2),
        ];
        let value = DataType::concatenation([DataType::IPV6_ADDR, DataType::INET_SERVICE]);
        let plain = Set::new(Family::IP, "t", "m", DataType::VALUE, 0).with_fields(&fields);
        assert_eq!(*map.set(), plain.with_data(value, 20));
        assert_eq!(map.set().key_length, Some(12));
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        let key = (Ipv4Addr::new(10, 96, 0, 1), Protocol::TCP, 80_u16);
        let bytes = [10, 96, 0, 1, 6, 0, 0, 0, 0, 80, 0, 0];
        assert_eq!(key.encode(), bytes);
        assert_eq!(Fields::decode(&bytes), Some(key));
        for length in 0..bytes.len() {
            assert_eq!(<(Ipv4Addr, Protocol, u16)>::decode(&bytes[..length]), None);
        }
        assert_eq!(<(Ipv4Addr, u16)>::decode(&bytes), None);
        assert_eq!(u32::decode(&0x4000_u32.to_ne_bytes()), Some(0x4000));
        assert_eq!(Ipv6Addr::decode(&[0; 15]), None);
    }

    /// Fields are encoded as the values that rules of [`build`](crate::nft::build) compare with.
    #[test]
    fn fields_are_encoded_as_in_rules() {
        fn check<T: Field + Value>(value: T, order: ByteOrder) {
            let mut bytes = Vec::new();
            value.put(&mut bytes);
            assert_eq!(bytes.len(), T::LENGTH as usize);
            assert_eq!(value.in_register(order).unwrap().as_bytes(), bytes);
        }
        check(Ipv4Addr::new(10, 0, 0, 1), ByteOrder::Network);
        check(Ipv6Addr::LOCALHOST, ByteOrder::Network);
        check(80_u16, ByteOrder::Network);
        check(0x4000_u32, ByteOrder::Host);
        check(Protocol::TCP, ByteOrder::Network);
        check(MacAddress([1, 2, 3, 4, 5, 6]), ByteOrder::Network);
        check(EtherType::ARP, ByteOrder::Network);
        check(IcmpType(8), ByteOrder::Network);
        check(Icmpv6Type(128), ByteOrder::Network);
    }

    #[test]
    fn ranges_are_merged_and_end_before_the_next_key() {
        let ports = TypedSet::<u16>::new(Family::IP, "t", "s");
        let key = |port: u16| port.to_be_bytes().to_vec();
        let interval = |first, end| Element::interval(key(first), key(end)).to_vec();
        let open = |first| vec![Element::open_interval(key(first))];
        assert_eq!(ports.range(80), interval(80, 81));
        assert_eq!(ports.range(80..=u16::MAX), open(80));
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = 81..=80;
        assert_eq!(ports.range(reversed.clone()), []);
        let merged = |ranges: &[RangeInclusive<u16>]| ports.ranges(ranges.iter().cloned());
        assert_eq!(merged(&[]), []);
        assert_eq!(merged(&[reversed]), []);
        assert_eq!(merged(&[5..=9, 1..=4]), interval(1, 10));
        assert_eq!(merged(&[1..=9, 2..=3, 9..=9]), interval(1, 10));
        assert_eq!(
            merged(&[6..=9, 1..=4]),
            [interval(1, 5), interval(6, 10)].concat()
        );
        assert_eq!(
            merged(&[u16::MAX..=u16::MAX, 0..=0, 7..=u16::MAX]),
            [interval(0, 1), open(7)].concat()
        );
        let map = TypedMap::<u16, u32>::new(Family::IP, "t", "m");
        let [first, end] = &map.range(1..=2, &7)[..] else {
            panic!("a range has two elements");
        };
        assert_eq!(
            first,
            &Element::new(key(1)).with_data(7_u32.to_ne_bytes().to_vec())
        );
        assert_eq!(end, &Element::end(key(3)));
    }

    #[cfg(feature = "ipnet")]
    #[test]
    fn prefixes_are_ranges() {
        let set = TypedSet::<Ipv4Addr>::new(Family::IP, "t", "s");
        let prefix = |text: &str| set.range(text.parse::<ipnet::Ipv4Net>().unwrap());
        assert_eq!(
            prefix("192.0.2.7/24"),
            Element::interval([192, 0, 2, 0].to_vec(), [192, 0, 3, 0].to_vec())
        );
        assert_eq!(
            prefix("0.0.0.0/0"),
            [Element::open_interval([0; 4].to_vec())]
        );
        let set = TypedSet::<Ipv6Addr>::new(Family::IP6, "t", "s");
        let all = set.range("::/0".parse::<ipnet::Ipv6Net>().unwrap());
        assert_eq!(all, [Element::open_interval([0; 16].to_vec())]);
    }
}
