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
//! let element = listed.next()?.expect("it was added");
//! assert_eq!(services.key(&element), Some(web));
//! # drop(listed);
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(()) })?.map_err(|e| e as Box<dyn std::error::Error>)?;
//! # Ok(())
//! # }
//! ```
//!
//! For other features, such as ranges, change the underlying [`Set`] ([`TypedSet::modify_set`]) and use the
//! constructors of [`Element`]. The types are those of this program: an existing set with the same name may
//! have other types, and if their lengths are equal the kernel silently accepts the elements.

use std::marker::PhantomData;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::build::{EtherType, IcmpType, Icmpv6Type, MacAddress, Protocol, Value};
use super::element::SetId;
use super::expr::{Data, Verdict};
use super::name::Name;
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

    /// Returns the key of a listed element; `None` if its length differs, as in another program's set with the
    /// same name.
    #[must_use]
    pub fn key(&self, element: &ElementRef<'_>) -> Option<K> {
        element.key_bytes().and_then(K::decode)
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
}
