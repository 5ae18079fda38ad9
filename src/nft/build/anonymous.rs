//! Sets and maps without a name, which belong to a single rule: `{ 22, 80 }`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

use super::value::{ByteOrder, Match, Test};
use super::{BuildError, Protocol, Value};
use crate::netlink::MessageError;
use crate::nft::expr::{Data, Verdict};
use crate::nft::userdata::{HOST_ENDIAN, SET_KEY_BYTE_ORDER, put};
use crate::nft::{Bytes, DataType, Element, Family, Set, Transaction, concatenation};

/// An anonymous set or map with its elements, for one rule.
///
/// Add it to a transaction with [`add_to`](Self::add_to) before the rule that uses it. The kernel names the set, and
/// deletes it together with the rule. Within the transaction the rule refers to the set by an id, which must be unique
/// among the sets of that transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct AnonymousSet<'a> {
    set: Set<'a>,
    elements: Vec<Element<'a>>,
}

const SET: &str = "__set%d";
const MAP: &str = "__map%d";

impl<'a> AnonymousSet<'a> {
    /// Creates a set of values, prefixes and ranges. Of the variants of [`Match`], sets, negations and comparisons are
    /// not allowed.
    ///
    /// ```
    /// use std::net::Ipv4Addr;
    /// use chainwright::nft::build::AnonymousSet;
    /// use chainwright::nft::Family;
    ///
    /// // { 10.0.0.0/8, 192.168.0.0/16 }
    /// let private = AnonymousSet::of::<Ipv4Addr>(Family::IP, "filter", 1, [
    ///     (Ipv4Addr::new(10, 0, 0, 0), 8),
    ///     (Ipv4Addr::new(192, 168, 0, 0), 16),
    /// ])?;
    /// # Ok::<(), chainwright::nft::build::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// [`BuildError::Element`] for other kinds of matches and if `elements` is empty, [`BuildError::Range`] and
    /// [`BuildError::Prefix`] for invalid ranges and prefixes.
    pub fn of<T: Value>(
        family: Family,
        table: &'a str,
        id: u32,
        elements: impl IntoIterator<Item = impl Into<Match<'a, T>>>,
    ) -> Result<Self, BuildError> {
        let order = match T::TYPE {
            DataType::MARK
            | DataType::INTEGER
            | DataType::CT_STATE
            | DataType::CT_STATUS
            | DataType::FIB_ADDRTYPE => ByteOrder::Host,
            _ => ByteOrder::Network,
        };
        let (mut values, mut ranges) = (Vec::new(), false);
        for element in elements {
            let Match { test, not } = element.into();
            // A set of flags is an element with exactly that value.
            let test = match test {
                Test::Value(value) => Test::Exactly(value),
                test => test,
            };
            let element = Match { test, not }.encode(order)?;
            let (first, last) = match element.test {
                _ if element.not => return Err(BuildError::Element),
                Test::Value(value) if !value.partial => (value, value),
                Test::Range(first, last) if order == ByteOrder::Network => (first, last),
                Test::Prefix(mut value, bits) => {
                    let max = (value.as_bytes().len() * 8) as u8; // an address: 32 or 128
                    if bits > max {
                        let (what, length) = ("an element", bits);
                        return Err(BuildError::Prefix { what, length, max });
                    }
                    let mask = value.mask(bits);
                    (value, value.with_ones(&mask))
                }
                _ => return Err(BuildError::Element),
            };
            if first.as_bytes() > last.as_bytes() {
                return Err(BuildError::Range { what: "an element" });
            }
            ranges |= first != last;
            values.push((first, last));
        }
        let Some((first, _)) = values.first() else {
            return Err(BuildError::Element);
        };
        let length = first.as_bytes().len();
        let set = Set::anonymous(family, table, SET, id, T::TYPE, length as u32);
        let mut elements = Vec::with_capacity(values.len() * 2);
        for (first, last) in &values {
            let first = first.as_bytes().to_vec();
            if !ranges {
                elements.push(Element::new(first));
                continue;
            }
            match successor(last.as_bytes()) {
                Some(end) => elements.extend(Element::interval(first, end)),
                None => elements.push(Element::open_interval(first)),
            }
        }
        let set = if ranges { set.with_interval() } else { set };
        Ok(Self::new(set, elements))
    }

    fn new(set: Set<'a>, elements: Vec<Element<'a>>) -> Self {
        let size = elements.len() as u32; // a set's size is 32 bits
        let set = set.with_size(size);
        Self { set, elements }
    }

    fn values<T: Value + Into<Match<'a, T>>>(
        family: Family,
        table: &'a str,
        id: u32,
        length: u32,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let elements = values.into_iter().filter_map(|value| {
            // No value of these types fails to encode.
            let encoded = value.in_register(ByteOrder::Network).ok()?;
            Some(Element::new(encoded.as_bytes().to_vec()))
        });
        let elements = elements.collect();
        let set = Set::anonymous(family, table, SET, id, T::TYPE, length);
        Self::new(set, elements)
    }

    /// Creates a set of ports: `{ 22, 80 }`.
    pub fn ports(
        family: Family,
        table: &'a str,
        id: u32,
        ports: impl IntoIterator<Item = u16>,
    ) -> Self {
        Self::values(family, table, id, 2, ports)
    }

    /// Creates a set of IPv4 addresses.
    pub fn addresses(
        family: Family,
        table: &'a str,
        id: u32,
        addresses: impl IntoIterator<Item = Ipv4Addr>,
    ) -> Self {
        Self::values(family, table, id, 4, addresses)
    }

    /// Creates a set of IPv6 addresses.
    pub fn addresses6(
        family: Family,
        table: &'a str,
        id: u32,
        addresses: impl IntoIterator<Item = Ipv6Addr>,
    ) -> Self {
        Self::values(family, table, id, 16, addresses)
    }

    /// Creates a set of protocols: `{ tcp, udp }`.
    pub fn protocols(
        family: Family,
        table: &'a str,
        id: u32,
        protocols: impl IntoIterator<Item = Protocol>,
    ) -> Self {
        Self::values(family, table, id, 1, protocols)
    }

    /// Creates a set of concatenations: `{ tcp . 22, udp . 53 }`. `fields` has the type and the length in bytes of each
    /// field; each element lists the values of its fields.
    pub fn concatenations<'f>(
        family: Family,
        table: &'a str,
        id: u32,
        fields: &[(DataType, u32)],
        elements: impl IntoIterator<Item = impl IntoIterator<Item = &'f [u8]>>,
    ) -> Self {
        let (data_type, length) = types(fields);
        let set = Set::anonymous(family, table, SET, id, data_type, length);
        let elements = elements.into_iter().map(concatenation).map(Element::new);
        let elements = elements.collect();
        Self::new(set, elements)
    }

    /// Creates a map from values to verdicts: `{ 22 : accept, 80 : jump web }`.
    ///
    /// # Errors
    /// The error of a value that cannot be encoded.
    pub fn verdicts<T: Value>(
        family: Family,
        table: &'a str,
        id: u32,
        order: ByteOrder,
        elements: impl IntoIterator<Item = (T, Verdict<'a>)>,
    ) -> Result<Self, BuildError> {
        let mut made = Vec::new();
        let mut length = 0;
        for (key, verdict) in elements {
            let key = key.in_register(order)?;
            length = key.as_bytes().len() as u32; // at most 16
            made.push(Element::new(key.as_bytes().to_vec()).with_verdict(verdict));
        }
        let set = Set::anonymous(family, table, MAP, id, T::TYPE, length).with_verdicts();
        Ok(Self::new(set, made))
    }

    /// Creates a map from the numbers `first`, `first + 1`, … to verdicts, for lookups of generated numbers:
    /// `{ 0 : goto a, 1 : goto b }`.
    pub fn numbered_verdicts(
        family: Family,
        table: &'a str,
        id: u32,
        first: u32,
        verdicts: impl IntoIterator<Item = Verdict<'a>>,
    ) -> Self {
        let set = numbered(family, table, id).with_verdicts();
        let verdicts = verdicts.into_iter().map(Data::Verdict);
        Self::new(set, numbers(first, verdicts))
    }

    /// Creates a map from the numbers `first`, `first + 1`, … to IPv4 addresses.
    pub fn numbered_addresses(
        family: Family,
        table: &'a str,
        id: u32,
        first: u32,
        addresses: impl IntoIterator<Item = Ipv4Addr>,
    ) -> Self {
        let set = numbered(family, table, id).with_data(DataType::IPV4_ADDR, 4);
        let addresses = addresses.into_iter().map(|a| value(a.octets().to_vec()));
        Self::new(set, numbers(first, addresses))
    }

    /// Creates a map from the numbers `first`, `first + 1`, … to IPv6 addresses.
    pub fn numbered_addresses6(
        family: Family,
        table: &'a str,
        id: u32,
        first: u32,
        addresses: impl IntoIterator<Item = Ipv6Addr>,
    ) -> Self {
        let set = numbered(family, table, id).with_data(DataType::IPV6_ADDR, 16);
        let addresses = addresses.into_iter().map(|a| value(a.octets().to_vec()));
        Self::new(set, numbers(first, addresses))
    }

    /// Creates a map from the numbers `first`, `first + 1`, … to IPv4 addresses with ports: `{ 0 : 10.0.0.4 . 8080 }`.
    pub fn numbered_addresses_with_ports(
        family: Family,
        table: &'a str,
        id: u32,
        first: u32,
        to: impl IntoIterator<Item = SocketAddrV4>,
    ) -> Self {
        let fields = [(DataType::IPV4_ADDR, 4), (DataType::INET_SERVICE, 2)];
        let (data_type, length) = types(&fields);
        let set = numbered(family, table, id).with_data(data_type, length);
        let to = to.into_iter().map(|to| {
            let (ip, port) = (to.ip().octets(), to.port().to_be_bytes());
            value(concatenation([&ip[..], &port[..]]))
        });
        Self::new(set, numbers(first, to))
    }

    /// Creates a map from the numbers `first`, `first + 1`, … to IPv6 addresses with ports.
    pub fn numbered_addresses6_with_ports(
        family: Family,
        table: &'a str,
        id: u32,
        first: u32,
        to: impl IntoIterator<Item = SocketAddrV6>,
    ) -> Self {
        let fields = [(DataType::IPV6_ADDR, 16), (DataType::INET_SERVICE, 2)];
        let (data_type, length) = types(&fields);
        let set = numbered(family, table, id).with_data(data_type, length);
        let to = to.into_iter().map(|to| {
            let (ip, port) = (to.ip().octets(), to.port().to_be_bytes());
            value(concatenation([&ip[..], &port[..]]))
        });
        Self::new(set, numbers(first, to))
    }

    /// Combines any set or map created by [`Set::anonymous`] with its elements.
    pub fn with_elements(set: Set<'a>, elements: impl IntoIterator<Item = Element<'a>>) -> Self {
        let elements = elements.into_iter().collect();
        Self { set, elements }
    }

    /// Returns the set.
    #[must_use]
    pub const fn set(&self) -> &Set<'a> {
        &self.set
    }

    /// Returns the elements.
    #[must_use]
    pub fn elements(&self) -> &[Element<'a>] {
        &self.elements
    }

    /// Adds the set and its elements to a transaction. The rule that uses the set must follow in the same transaction.
    ///
    /// # Errors
    /// [`MessageError`] if a name does not fit into its attribute.
    pub fn add_to(&self, tx: &mut Transaction) -> Result<(), MessageError> {
        tx.add(&self.set)?;
        tx.add_elements(&self.set.set_id(), &self.elements)?;
        Ok(())
    }
}

/// Creates a map whose keys are numbers generated by the kernel.
fn numbered<'a>(family: Family, table: &'a str, id: u32) -> Set<'a> {
    let mut set = Set::anonymous(family, table, MAP, id, DataType::INTEGER, 4);
    let order = HOST_ENDIAN.to_ne_bytes();
    put(&mut set.userdata, SET_KEY_BYTE_ORDER, &order);
    set
}

fn numbers<'a>(first: u32, data: impl IntoIterator<Item = Data<'a>>) -> Vec<Element<'a>> {
    // The kernel generates no numbers beyond 32 bits.
    (first..=u32::MAX)
        .zip(data)
        .map(|(number, data)| Element {
            data: Some(data),
            ..Element::new(number.to_ne_bytes().to_vec())
        })
        .collect()
}

fn value<'a>(bytes: Vec<u8>) -> Data<'a> {
    Data::Value(Bytes::from(bytes))
}

/// Returns the type and the length of a concatenation of these fields.
fn types(fields: &[(DataType, u32)]) -> (DataType, u32) {
    let data_type = DataType::concatenation(fields.iter().map(|(data_type, _)| *data_type));
    let lengths = fields.iter().map(|(_, length)| length.next_multiple_of(4));
    (data_type, lengths.sum())
}

/// Returns the big-endian number plus one, or `None` if it overflows.
fn successor(number: &[u8]) -> Option<Vec<u8>> {
    let mut next = number.to_vec();
    for byte in next.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return Some(next);
        }
    }
    None
}
