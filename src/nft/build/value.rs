//! Values that fields are compared with.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use super::BuildError;
use super::named::{
    AddressType, CtState, CtStatus, EtherType, IcmpType, Icmpv6Type, PacketType, Protocol, TcpFlags,
};
use super::sets::SetName;
use crate::nft::expr::{CmpOp, CtDirection};
use crate::nft::{DataType, Family, Set};

/// Byte order of a field in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The machine's byte order: metadata and connection tracking.
    Host,
    /// Network byte order: packet headers.
    Network,
}

/// A value as encoded in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoded {
    bytes: [u8; 16],
    length: u8,
    /// Whether the value is shorter than the compared field and matches its start.
    pub(super) partial: bool,
}

impl Encoded {
    pub(super) fn new<const N: usize>(value: [u8; N]) -> Self {
        let mut bytes = [0; 16];
        bytes[..N].copy_from_slice(&value);
        Self {
            bytes,
            length: N as u8, // at most 16, or the line above panics: N is 1, 2, 4, 6 or 16
            partial: false,
        }
    }

    pub(in crate::nft) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns the mask of a prefix of `bits` bits, at most all, and clears the bits of `self`
    /// outside it.
    pub(super) fn mask(&mut self, bits: u8) -> Self {
        let mut mask = Self { ..*self };
        let mut left = bits;
        for index in 0..usize::from(self.length) {
            let here = left.min(8);
            mask.bytes[index] = (0xff00_u16 >> here) as u8;
            self.bytes[index] &= mask.bytes[index];
            left -= here;
        }
        mask
    }

    /// Sets all bits outside the mask: the last address of a prefix.
    pub(super) fn with_ones(mut self, mask: &Self) -> Self {
        for index in 0..usize::from(self.length) {
            self.bytes[index] |= !mask.bytes[index];
        }
        self
    }
}

mod sealed {
    use super::{BuildError, ByteOrder, Encoded};

    pub trait Encode {
        /// Encodes the value as stored in a register.
        fn in_register(self, order: ByteOrder) -> Result<Encoded, BuildError>;
    }
}
pub(super) use sealed::Encode;

/// A value that a field can be compared with: an address, a port, a number, a set of flags.
pub trait Value: Copy + Encode {
    /// Data type of a set of such values.
    const TYPE: DataType;
    /// Whether it is a set of flags, of which any one matches.
    const FLAGS: bool = false;
}

/// A condition on a field. It is usually converted from a value:
///
/// | Rust | nft |
/// |---|---|
/// | `22` | `22` |
/// | `22..=80` | `22-80` |
/// | `(Ipv4Addr::new(10, 0, 0, 0), 8)` | `10.0.0.0/8` |
/// | `"eth0"`, `"eth*"` | `"eth0"`, `"eth*"` |
/// | [`not`]`(22)` | `!= 22` |
/// | [`less_than`]`(22)`, [`at_least`]`(22)`, … | `< 22`, `>= 22`, … |
/// | [`in_set`]`("ports")`, `not(in_set("ports"))` | `@ports`, `!= @ports` |
/// | [`&AnonymousSet`](super::AnonymousSet) | `{ 22, 80 }` |
/// | `CtState::NEW \| CtState::RELATED` | `new,related`: any one of them |
/// | `not(CtState::NEW)` | `! new`: none of them |
/// | [`equals`]`(TcpFlags::SYN)` | `== syn`: this one and no other |
/// | [`masked`]`(0x4000, 0xff00)` | `& 0xff00 == 0x4000` |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match<'a, T> {
    pub(super) test: Test<'a, T>,
    pub(super) not: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Test<'a, T> {
    Value(T),
    Exactly(T),
    AnyOf(T),
    Masked(T, T),
    Prefix(T, u8),
    Range(T, T),
    Compare(CmpOp, T),
    Set(SetName<'a>),
}

impl<'a, T> Match<'a, T> {
    const fn of(test: Test<'a, T>) -> Self {
        Self { test, not: false }
    }
}

impl<'a, T: Value> Match<'a, T> {
    /// Encodes the values for a field of this byte order. Values of ranges and ordered
    /// comparisons are always encoded in network byte order.
    pub(super) fn encode(self, order: ByteOrder) -> Result<Match<'a, Encoded>, BuildError> {
        let here = |value: T| value.in_register(order);
        let ordered = |value: T| value.in_register(ByteOrder::Network);
        let test = match self.test {
            Test::Value(value) if T::FLAGS => Test::AnyOf(here(value)?),
            Test::Value(value) | Test::Exactly(value) => Test::Value(here(value)?),
            Test::AnyOf(value) => Test::AnyOf(here(value)?),
            Test::Masked(value, mask) => Test::Masked(here(value)?, here(mask)?),
            Test::Prefix(value, length) => Test::Prefix(here(value)?, length),
            Test::Range(from, to) => Test::Range(ordered(from)?, ordered(to)?),
            Test::Compare(op, value) => Test::Compare(op, ordered(value)?),
            Test::Set(set) => Test::Set(set),
        };
        let not = self.not;
        Ok(Match { test, not })
    }
}

/// A negated match: see [`not`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Not<M>(M);

/// Negates a match: `!=`. For a set of flags, matches if none of them is set (nft's `!`). nft's
/// `!=` matches every other combination of flags, and several connection states are always
/// another one: [`not`]`(`[`equals`]`(…))`.
pub const fn not<M>(what: M) -> Not<M> {
    Not(what)
}

impl<'a, T, M: Into<Match<'a, T>>> From<Not<M>> for Match<'a, T> {
    fn from(Not(what): Not<M>) -> Self {
        let Match { test, not } = what.into();
        match test {
            Test::Compare(op, value) => Self::of(Test::Compare(
                match op {
                    CmpOp::LT => CmpOp::GTE,
                    CmpOp::LTE => CmpOp::GT,
                    CmpOp::GT => CmpOp::LTE,
                    _ => CmpOp::LT,
                },
                value,
            )),
            test => Self { test, not: !not },
        }
    }
}

/// A value and a mask: see [`masked`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masked<T>(T, T);

/// Matches if, of the bits in `mask`, exactly those in `value` are set: `& mask == value`.
pub const fn masked<T>(value: T, mask: T) -> Masked<T> {
    Masked(value, mask)
}

impl<T> From<Masked<T>> for Match<'_, T> {
    fn from(Masked(value, mask): Masked<T>) -> Self {
        Self::of(Test::Masked(value, mask))
    }
}

/// A set of flags: see [`equals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Equals<T>(T);

/// Matches if these flags are set and no others: `==`.
pub const fn equals<T>(flags: T) -> Equals<T> {
    Equals(flags)
}

impl<T> From<Equals<T>> for Match<'_, T> {
    fn from(Equals(flags): Equals<T>) -> Self {
        Self::of(Test::Exactly(flags))
    }
}

/// An ordered comparison: see [`less_than`], [`at_most`], [`greater_than`], [`at_least`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison<T>(CmpOp, T);

/// Matches if the field is less than a value: `<`.
pub const fn less_than<T>(value: T) -> Comparison<T> {
    Comparison(CmpOp::LT, value)
}

/// Matches if the field is at most a value: `<=`.
pub const fn at_most<T>(value: T) -> Comparison<T> {
    Comparison(CmpOp::LTE, value)
}

/// Matches if the field is greater than a value: `>`.
pub const fn greater_than<T>(value: T) -> Comparison<T> {
    Comparison(CmpOp::GT, value)
}

/// Matches if the field is at least a value: `>=`.
pub const fn at_least<T>(value: T) -> Comparison<T> {
    Comparison(CmpOp::GTE, value)
}

impl<T> From<Comparison<T>> for Match<'_, T> {
    fn from(Comparison(op, value): Comparison<T>) -> Self {
        Self::of(Test::Compare(op, value))
    }
}

impl<T> From<RangeInclusive<T>> for Match<'_, T> {
    fn from(range: RangeInclusive<T>) -> Self {
        let (from, to) = range.into_inner();
        Self::of(Test::Range(from, to))
    }
}

/// A lookup in a set: see [`in_set`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InSet<'a>(SetName<'a>);

/// Matches if the field is in a set, given by name or as a set of the same transaction: `@set`.
pub fn in_set<'a>(set: impl Into<SetName<'a>>) -> InSet<'a> {
    InSet(set.into())
}

impl<'a, T> From<InSet<'a>> for Match<'a, T> {
    fn from(InSet(set): InSet<'a>) -> Self {
        Self::of(Test::Set(set))
    }
}

impl<'a, T> From<&'a Set<'_>> for Match<'a, T> {
    fn from(set: &'a Set<'_>) -> Self {
        Self::of(Test::Set(set.into()))
    }
}

impl<'a, T> From<&'a super::AnonymousSet<'_>> for Match<'a, T> {
    fn from(set: &'a super::AnonymousSet<'_>) -> Self {
        Self::of(Test::Set(set.into()))
    }
}

/// Implements the encoding and the set type of value types.
macro_rules! value {
    ($($Type:ty: $DATA:ident $(, $flags:literal)?, |$value:ident, $order:ident| $encode:expr;)*) => {$(
        impl Encode for $Type {
            #[inline]
            fn in_register(self, $order: ByteOrder) -> Result<Encoded, BuildError> {
                let $value = self;
                Ok($encode)
            }
        }

        impl Value for $Type {
            const TYPE: DataType = DataType::$DATA;
            $(const FLAGS: bool = $flags;)?
        }

        impl From<$Type> for Match<'_, $Type> {
            fn from(value: $Type) -> Self {
                Self::of(Test::Value(value))
            }
        }
    )*};
}

const fn u16_in(order: ByteOrder, number: u16) -> [u8; 2] {
    match order {
        ByteOrder::Host => number.to_ne_bytes(),
        ByteOrder::Network => number.to_be_bytes(),
    }
}

const fn u32_in(order: ByteOrder, number: u32) -> [u8; 4] {
    match order {
        ByteOrder::Host => number.to_ne_bytes(),
        ByteOrder::Network => number.to_be_bytes(),
    }
}

const fn u64_in(order: ByteOrder, number: u64) -> [u8; 8] {
    match order {
        ByteOrder::Host => number.to_ne_bytes(),
        ByteOrder::Network => number.to_be_bytes(),
    }
}

value! {
    u8: INTEGER, |value, _order| Encoded::new([value]);
    u16: INET_SERVICE, |value, order| Encoded::new(u16_in(order, value));
    u32: MARK, |value, order| Encoded::new(u32_in(order, value));
    u64: INTEGER, |value, order| Encoded::new(u64_in(order, value));
    bool: BOOLEAN, |value, _order| Encoded::new([value.into()]);
    Ipv4Addr: IPV4_ADDR, |value, _order| Encoded::new(value.octets());
    Ipv6Addr: IPV6_ADDR, |value, _order| Encoded::new(value.octets());
    MacAddress: ETHER_ADDR, |value, _order| Encoded::new(value.0);
    Protocol: INET_PROTO, |value, _order| Encoded::new([value.0]);
    EtherType: ETHER_TYPE, |value, _order| Encoded::new(value.0.to_be_bytes());
    IcmpType: ICMP_TYPE, |value, _order| Encoded::new([value.0]);
    Icmpv6Type: ICMPV6_TYPE, |value, _order| Encoded::new([value.0]);
    PacketType: PKT_TYPE, |value, _order| Encoded::new([value.0]);
    AddressType: FIB_ADDRTYPE, |value, order| Encoded::new(u32_in(order, value.0));
    Family: NF_PROTO, |value, _order| Encoded::new([value.0]);
    CtDirection: CT_DIR, |value, _order| Encoded::new([value.0]);
    TcpFlags: TCP_FLAG, true, |value, _order| Encoded::new([value.bits()]);
    CtState: CT_STATE, true, |value, order| Encoded::new(u32_in(order, value.bits()));
    CtStatus: CT_STATUS, true, |value, order| Encoded::new(u32_in(order, value.bits()));
}

impl From<(Ipv4Addr, u8)> for Match<'_, Ipv4Addr> {
    fn from((address, length): (Ipv4Addr, u8)) -> Self {
        Self::of(Test::Prefix(address, length))
    }
}

impl From<(Ipv6Addr, u8)> for Match<'_, Ipv6Addr> {
    fn from((address, length): (Ipv6Addr, u8)) -> Self {
        Self::of(Test::Prefix(address, length))
    }
}

/// An interface name, or the common start of several: `eth*`. A `\\` before a trailing `*`
/// makes the `*` part of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface<'n>(pub &'n str);

impl Encode for Interface<'_> {
    fn in_register(self, _: ByteOrder) -> Result<Encoded, BuildError> {
        let (name, star, partial) = match self.0.as_bytes() {
            [name @ .., b'\\', b'*'] => (name, &b"*"[..], false),
            [name @ .., b'*'] => (name, &b""[..], true),
            name => (name, &b""[..], false),
        };
        let length = name.len() + star.len();
        if length == 0 || length > 15 || name.contains(&0) {
            return Err(BuildError::InterfaceName);
        }
        let mut encoded = Encoded::new([0; 16]);
        encoded.bytes[..name.len()].copy_from_slice(name);
        encoded.bytes[name.len()..length].copy_from_slice(star);
        if partial {
            encoded.length = length as u8; // at most 15
            encoded.partial = true;
        }
        Ok(encoded)
    }
}

impl Value for Interface<'_> {
    const TYPE: DataType = DataType::IFNAME;
}

impl<'n> From<&'n str> for Match<'n, Interface<'n>> {
    fn from(name: &'n str) -> Self {
        Self::of(Test::Value(Interface(name)))
    }
}

impl<'n> From<&'n String> for Match<'n, Interface<'n>> {
    fn from(name: &'n String) -> Self {
        Self::of(Test::Value(Interface(name)))
    }
}

impl<'n> From<Interface<'n>> for Match<'n, Interface<'n>> {
    fn from(name: Interface<'n>) -> Self {
        Self::of(Test::Value(name))
    }
}

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MacAddress(pub [u8; 6]);
