//! Variables: the packet data that the rules of a chain read.

use std::collections::{BTreeSet, HashMap};

use bstr::BString;
use chainwright::nft::Family;
use chainwright::nft::expr::{CtKey, MetaKey, PayloadBase};

use crate::field::Field;
use crate::packet::State;
use crate::value::Bit;
use crate::value_set::Domain;
use chainwright::xt::Family as IpFamily;

/// What a rule reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Bytes of a header: its number, the offset and the length.
    Payload(u32, u32, u32),
    Meta(MetaKey),
    Ct(CtKey, Option<u8>),
    /// Another load, by its text without the register.
    Other(String),
    /// Whether a set has a key: the name of a set, or the contents of an anonymous one.
    Contains(BString, Vec<Bit>),
    /// A value about which nothing is known.
    Unknown(u32),
}

/// Changes of packet data by the rules so far. Data that a rule may have changed are another variable.
#[derive(Debug, Clone, Default)]
struct Epochs {
    all: u32,
    ct: u32,
    meta: HashMap<u32, u32>,
    any: u32,
}

/// Packet data that a rule may change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Writes {
    /// Everything.
    pub(super) all: bool,
    /// The connection.
    pub(super) ct: bool,
    /// Keys of `meta`.
    pub(super) meta: BTreeSet<u32>,
}

impl Writes {
    pub(super) fn is_empty(&self) -> bool {
        !self.all && !self.ct && self.meta.is_empty()
    }

    /// Adds the changes of another rule; returns `true` if it has more.
    pub(super) fn add(&mut self, other: &Self) -> bool {
        let before = (self.all, self.ct, self.meta.len());
        self.all |= other.all;
        self.ct |= other.ct;
        self.meta.extend(&other.meta);
        before != (self.all, self.ct, self.meta.len())
    }
}

/// Version of a variable.
type Version = (u32, u32);

/// Variables of a chain.
#[derive(Debug, Default)]
pub(super) struct Variables {
    numbers: HashMap<(Key, Version), u32>,
    /// Key, version and number of bits of each.
    all: Vec<(Key, Version, u32)>,
    epochs: Epochs,
    unknown: u32,
}

impl Variables {
    fn version(&self, key: &Key) -> Version {
        let Epochs { all, ct, meta, any } = &self.epochs;
        match key {
            Key::Payload(..) => (*all, 0),
            Key::Meta(key) => (*all, meta.get(&key.0).copied().unwrap_or_default()),
            Key::Ct(..) => (*all, *ct),
            Key::Other(_) => (*any, 0),
            // Its bits have versions.
            Key::Contains(..) | Key::Unknown(_) => (0, 0),
        }
    }

    /// Returns the variable of this key.
    pub(super) fn number(&mut self, key: Key, bits: u32) -> u32 {
        let version = self.version(&key);
        let next = self.all.len() as u32;
        let number = *self.numbers.entry((key.clone(), version)).or_insert(next);
        if number == next {
            self.all.push((key, version, bits));
        }
        number
    }

    /// Creates a variable about which nothing is known.
    pub(super) fn unknown(&mut self, bits: u32) -> u32 {
        self.unknown += 1;
        self.number(Key::Unknown(self.unknown), bits)
    }

    pub(super) fn bits(&self, number: u32) -> u32 {
        self.all[number as usize].2
    }

    /// Returns the values that a variable can have.
    pub(super) fn domain(&self, number: u32) -> Domain {
        let (key, _, bits) = &self.all[number as usize];
        match key {
            // Exactly one state.
            Key::Ct(CtKey::STATE, _) => {
                let states = State::ALL.map(|state| (state.bit(), state.bit()));
                Domain::within(*bits, states.to_vec())
            }
            _ => Domain::any(*bits),
        }
    }

    pub(super) fn key(&self, number: u32) -> &Key {
        &self.all[number as usize].0
    }

    /// Returns `true` if later rules can read this variable.
    pub(super) fn is_current(&self, number: u32) -> bool {
        let (key, version, _) = &self.all[number as usize];
        match key {
            Key::Contains(_, bits) => bits.iter().all(|bit| match bit {
                Bit::Known(_) => true,
                Bit::Of { unknown, .. } => self.is_current(*unknown),
            }),
            Key::Unknown(_) => false,
            _ => self.version(key) == *version,
        }
    }

    /// Applies the changes of a rule.
    pub(super) fn change(&mut self, writes: &Writes) {
        if writes.is_empty() {
            return;
        }
        self.epochs.any += 1;
        self.epochs.all += u32::from(writes.all);
        self.epochs.ct += u32::from(writes.ct);
        for key in &writes.meta {
            *self.epochs.meta.entry(*key).or_default() += 1;
        }
    }
}

/// Layout of the network header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Ipv4,
    Ipv6,
    Arp,
    Unknown,
}

impl Layout {
    pub(super) const fn of(family: Family) -> Self {
        match family {
            Family::IP => Self::Ipv4,
            Family::IP6 => Self::Ipv6,
            Family::ARP => Self::Arp,
            _ => Self::Unknown,
        }
    }

    /// Returns the layout that a value of `meta nfproto`, `meta protocol` or the type of an Ethernet frame selects.
    pub(super) fn selected_by(key: &Key, value: u128) -> Option<Self> {
        match (key, value) {
            (Key::Meta(MetaKey::NFPROTO), 2) => Some(Self::Ipv4),
            (Key::Meta(MetaKey::NFPROTO), 10) => Some(Self::Ipv6),
            (Key::Meta(MetaKey::PROTOCOL) | Key::Payload(0, 12, 2), 0x0800) => Some(Self::Ipv4),
            (Key::Meta(MetaKey::PROTOCOL) | Key::Payload(0, 12, 2), 0x86dd) => Some(Self::Ipv6),
            (Key::Meta(MetaKey::PROTOCOL) | Key::Payload(0, 12, 2), 0x0806) => Some(Self::Arp),
            _ => None,
        }
    }

    /// Returns the length of the header that every packet has at the hooks of the IP families.
    pub(super) const fn header(self) -> u32 {
        match self {
            Self::Ipv4 => 20,
            Self::Ipv6 => 40,
            Self::Arp | Self::Unknown => 0,
        }
    }
}

/// Returns the offset and the length of the field with this byte. Which bytes form a field only matters for ranges of
/// values: it decides which comparisons can be expressed.
pub(super) const fn field(base: PayloadBase, layout: Layout, at: u32) -> (u32, u32) {
    match base {
        PayloadBase::NETWORK => match (layout, at) {
            (Layout::Ipv4, 2..=7) => (at & !1, 2),
            (Layout::Ipv4, 12..=19) => (at & !3, 4),
            (Layout::Ipv6, 0..=3) => (0, 4),
            (Layout::Ipv6, 4 | 5) => (4, 2),
            (Layout::Ipv6, 8..=23) => (8, 16),
            (Layout::Ipv6, 24..=39) => (24, 16),
            (Layout::Arp, 0..=3 | 6 | 7) => (at & !1, 2),
            (Layout::Arp, 8..=13) => (8, 6),
            (Layout::Arp, 14..=17) => (14, 4),
            (Layout::Arp, 18..=23) => (18, 6),
            (Layout::Arp, 24..=27) => (24, 4),
            _ => (at, 1),
        },
        PayloadBase::TRANSPORT => match at {
            0..=3 => (at & !1, 2),
            4..=11 => (at & !3, 4),
            12 | 13 => (at, 1),
            _ => (at & !1, 2),
        },
        PayloadBase::LINK => match at {
            0..=5 => (0, 6),
            6..=11 => (6, 6),
            12..=17 => (at & !1, 2),
            _ => (at, 1),
        },
        _ => (at, 1),
    }
}

/// Returns the number of bits of a `meta` key.
pub(super) fn meta_bits(key: MetaKey) -> u32 {
    Field::Meta(key).bits(IpFamily::Ipv4)
}

/// Returns the number of bits of a `ct` key; `None` if it depends on the packet.
pub(super) fn ct_bits(key: CtKey) -> Option<u32> {
    match key {
        CtKey::SRC | CtKey::DST => None,
        CtKey::SRC_IP | CtKey::DST_IP => Some(32),
        _ => Some(Field::Ct(key, None).bits(IpFamily::Ipv4)),
    }
}
