//! Packet data loaded by rules that have no form in iptables' syntax.

use std::net::IpAddr;

use bstr::{BString, ByteSlice};

use super::piece::{Piece, adjacent};
use crate::registers::{WORDS, word};
use chainwright::iptables::Address;
use chainwright::nft::Family as NftFamily;
use chainwright::nft::expr::{MetaKey, PayloadBase, Register};

/// Kind of data in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loaded {
    Source(u32),
    Destination(u32),
    Protocol,
    SourcePort,
    DestinationPort,
    In,
    Out,
    Mark,
    State,
    Family,
}

impl Loaded {
    pub(super) fn of_payload(base: Option<PayloadBase>, offset: u32, length: u32) -> Option<Self> {
        Some(match (base?, offset, length) {
            (PayloadBase::NETWORK, 12, 4) => Self::Source(4),
            (PayloadBase::NETWORK, 16, 4) => Self::Destination(4),
            (PayloadBase::NETWORK, 8, 16) => Self::Source(16),
            (PayloadBase::NETWORK, 24, 16) => Self::Destination(16),
            (PayloadBase::NETWORK, 9, 1) => Self::Protocol,
            (PayloadBase::TRANSPORT, 0, 2) => Self::SourcePort,
            (PayloadBase::TRANSPORT, 2, 2) => Self::DestinationPort,
            // A prefix of whole bytes is loaded partially.
            (PayloadBase::NETWORK, 12, 1..4) => Self::Source(4),
            (PayloadBase::NETWORK, 16, 1..4) => Self::Destination(4),
            // A single byte at offset 8 would be IPv4's TTL.
            (PayloadBase::NETWORK, 8, 2..16) => Self::Source(16),
            (PayloadBase::NETWORK, 24, 1..16) => Self::Destination(16),
            _ => return None,
        })
    }

    pub(super) fn of_meta(key: MetaKey) -> Option<Self> {
        Some(match key {
            MetaKey::L4PROTO => Self::Protocol,
            MetaKey::IIFNAME => Self::In,
            MetaKey::OIFNAME => Self::Out,
            MetaKey::MARK => Self::Mark,
            MetaKey::NFPROTO => Self::Family,
            _ => return None,
        })
    }

    /// Returns the length in bytes.
    const fn length(self) -> usize {
        match self {
            Self::Source(length) | Self::Destination(length) => length as usize,
            Self::Protocol | Self::Family => 1,
            Self::SourcePort | Self::DestinationPort => 2,
            Self::In | Self::Out => 16,
            Self::Mark | Self::State => 4,
        }
    }

    /// Sets this data of a piece.
    pub(super) fn set(self, piece: &mut Piece, value: &[u8]) {
        let number = || Some(u32::from_ne_bytes(*value.first_chunk()?));
        let port = || Some(u16::from_be_bytes(*value.first_chunk()?));
        match self {
            Self::Source(length) => piece.source = address(length, value).or(piece.source),
            Self::Destination(length) => {
                piece.destination = address(length, value).or(piece.destination);
            }
            Self::Protocol => piece.protocol = value.first().copied(),
            Self::SourcePort => piece.source_port = port(),
            Self::DestinationPort => piece.destination_port = port(),
            Self::In => piece.in_interface = Some(name(value)),
            Self::Out => piece.out_interface = Some(name(value)),
            Self::Mark => piece.mark = number(),
            Self::State => piece.state = number().map(|bits| bits as u8),
            Self::Family => {
                piece.ipv6 = value
                    .first()
                    .map(|family| NftFamily(*family) == NftFamily::IP6);
            }
        }
    }

    /// Returns pieces with the neighbors of this value, or of the network with this prefix length.
    pub(super) fn adjacent(self, value: &[u8], prefix: u32) -> Vec<Piece> {
        let mut whole = Piece::default();
        self.set(&mut whole, value);
        let mut pieces = Vec::new();
        if let Some(port) = whole.source_port.or(whole.destination_port) {
            for near in [port.saturating_sub(1), port.saturating_add(1)] {
                let mut piece = Piece::default();
                self.set(&mut piece, &near.to_be_bytes());
                pieces.push(piece);
            }
        }
        if let Some(whole) = whole.source.or(whole.destination) {
            for near in adjacent(&Address::network(whole, prefix)) {
                let mut piece = Piece::default();
                match self {
                    Self::Source(_) => piece.source = Some(near),
                    _ => piece.destination = Some(near),
                }
                pieces.push(piece);
            }
        }
        pieces
    }
}

/// Reads an address whose last bytes may be missing.
fn address(length: u32, value: &[u8]) -> Option<IpAddr> {
    if value.is_empty() {
        return None;
    }
    let mut bytes = [0; 16];
    let given = value.get(..value.len().min(length as usize))?;
    bytes[..given.len()].copy_from_slice(given);
    Some(match length {
        4 => IpAddr::from(*bytes.first_chunk::<4>()?),
        _ => IpAddr::from(bytes),
    })
}

/// Reads an interface name whose trailing NULs may be missing.
fn name(value: &[u8]) -> BString {
    let end = value.find_byte(0).unwrap_or(value.len());
    value[..end].into()
}

/// Registers, by 4-byte words.
#[derive(Debug, Default)]
pub(super) struct Registers([Option<RegisterContent>; WORDS]);

/// Content of a register.
#[derive(Debug, Clone, Copy)]
pub(super) struct RegisterContent {
    pub(super) what: Loaded,
    /// Prefix length of a mask that was applied.
    prefix: Option<u32>,
}

impl RegisterContent {
    /// Returns pieces with the neighbors of this value.
    pub(super) fn adjacent(self, value: &[u8]) -> Vec<Piece> {
        let whole = 8 * u32::try_from(value.len()).unwrap_or(16);
        self.what
            .adjacent(value, self.prefix.unwrap_or(whole).min(whole))
    }
}

impl Registers {
    pub(super) fn get(&self, register: Option<Register>) -> Option<RegisterContent> {
        self.0.get(word(register?)?).copied().flatten()
    }

    pub(super) fn put(&mut self, register: Option<Register>, what: Option<Loaded>) {
        self.set_content(
            register,
            what.map(|what| RegisterContent { what, prefix: None }),
        );
    }

    /// Applies a mask to the content of a register.
    pub(super) fn mask(
        &mut self,
        register: Option<Register>,
        content: Option<RegisterContent>,
        mask: &[u8],
    ) {
        let first = mask.iter().position(|byte| *byte != 0xff);
        let prefix = match first {
            Some(place) => 8 * place as u32 + mask[place].leading_ones(),
            None => 8 * mask.len() as u32,
        };
        let prefix = Some(prefix);
        self.set_content(
            register,
            content.map(|content| RegisterContent { prefix, ..content }),
        );
    }

    fn set_content(&mut self, register: Option<Register>, content: Option<RegisterContent>) {
        let slot = register.and_then(word);
        if let Some(slot) = slot.and_then(|word| self.0.get_mut(word)) {
            *slot = content;
        }
    }

    /// Sets the fields of a piece from a key whose first field is in this register.
    pub(super) fn set_key(&self, piece: &mut Piece, register: Option<Register>, key: &[u8]) {
        let Some(start) = register.and_then(word) else {
            return;
        };
        let mut at = 0;
        while let Some(content) = self.0.get(start + at / 4).copied().flatten() {
            let Some(rest) = key.get(at..).filter(|rest| !rest.is_empty()) else {
                return;
            };
            let length = content.what.length();
            content.what.set(piece, &rest[..length.min(rest.len())]);
            at += length.next_multiple_of(4);
        }
    }
}
