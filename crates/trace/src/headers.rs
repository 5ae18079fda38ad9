//! Maps header bytes to fields.

use super::field::{Field, PacketOption};
use super::path_state::{PathState, Undetermined};
use super::value::{Test, Value};
use super::value_set::ones;
use chainwright::nft::expr::{ExthdrOp, PayloadBase};
use chainwright::xt::Family;

/// Source of a header byte: a field and the lowest of its eight bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Field(Field, u32),
    /// IPv4: version and header length.
    Version4,
    /// IPv6: version and upper half of the traffic class.
    Version6,
    /// IPv6: lower half of the traffic class and upper bits of the flow label.
    Class6,
    /// IPv6: byte of the payload length.
    Length6(u32),
    /// Byte of the UDP length.
    LengthUdp(u32),
}

pub(super) const TCP: u128 = 6;
const UDP: u128 = 17;
const DCCP: u128 = 33;
const SCTP: u128 = 132;
/// Protocols whose headers begin with two ports; the last is UDP-Lite.
const WITH_PORTS: [(u128, u128); 5] = [
    (TCP, TCP),
    (UDP, UDP),
    (DCCP, DCCP),
    (SCTP, SCTP),
    (136, 136),
];
/// ICMP and ICMPv6.
pub(super) const ICMP: [(u128, u128); 2] = [(1, 1), (58, 58)];

/// TCP flags.
pub(super) const FIN: u128 = 1;
pub(super) const SYN: u128 = 2;
pub(super) const RST: u128 = 4;
pub(super) const ACK: u128 = 0x10;
pub(super) const ECE: u128 = 0x40;
pub(super) const CWR: u128 = 0x80;

/// Offset bits of the fragment field.
const OFFSET: u128 = 0x1fff;

/// Returns `true` if a protocol's header begins with two ports.
pub(super) fn has_ports(protocol: u8) -> bool {
    Test::Among(&WITH_PORTS).holds(protocol.into())
}

impl PathState {
    /// Returns the length of the network header without options and extension headers.
    pub(super) const fn network_header(&self) -> u32 {
        match self.family {
            Family::Ipv4 => 20,
            Family::Ipv6 => 40,
        }
    }

    /// Returns whether the packet's protocol has ports.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn has_ports(&mut self) -> Result<bool, Undetermined> {
        self.is(Field::Protocol, Test::Among(&WITH_PORTS))
    }

    /// Returns whether all of these TCP flags are set.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn has_tcp_flags(&mut self, flags: u128) -> Result<bool, Undetermined> {
        if self.is_later_fragment()? {
            return Ok(false);
        }
        let (mask, value) = (flags, flags);
        self.is(Field::TcpFlags, Test::Masked { mask, value })
    }

    /// Returns whether the packet has an option, an extension header or a chunk.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn has_option(&mut self, option: PacketOption) -> Result<bool, Undetermined> {
        let of = ExthdrOp(option.of.into());
        let protocol = match of {
            ExthdrOp::IPV6 | ExthdrOp::IPV4 => {
                let wanted = match of {
                    ExthdrOp::IPV6 => Family::Ipv6,
                    _ => Family::Ipv4,
                };
                if self.family != wanted || !self.is(Field::HasOptions, Test::Is(1))? {
                    return Ok(false);
                }
                return self.is(Field::Has(option), Test::Is(1));
            }
            ExthdrOp::TCPOPT => TCP,
            ExthdrOp::SCTP => SCTP,
            ExthdrOp::DCCP => DCCP,
            _ => {
                return Err(Undetermined::unknown(
                    "it reads an unsupported kind of option",
                ));
            }
        };
        if !self.is(Field::Protocol, Test::Is(protocol))? || self.is_later_fragment()? {
            return Ok(false);
        }
        self.is(Field::Has(option), Test::Is(1))
    }

    /// Returns whether the packet is a fragment other than the first, which has no transport
    /// header.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn is_later_fragment(&mut self) -> Result<bool, Undetermined> {
        Ok(!self.is(
            Field::Fragment,
            Test::Masked {
                mask: OFFSET,
                value: 0,
            },
        )?)
    }

    /// Returns header bytes from an offset on as a number; `None` if the header does not exist.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn header(
        &mut self,
        base: PayloadBase,
        offset: u32,
        length: u32,
    ) -> Result<Option<Value>, Undetermined> {
        if !self.has_header(base)? {
            return Ok(None);
        }
        // Common case: a whole field.
        if base == PayloadBase::NETWORK && length * 8 == self.address_bits() {
            let whole = match (self.family, offset) {
                (Family::Ipv4, 12) | (Family::Ipv6, 8) => Some(Field::Source),
                (Family::Ipv4, 16) | (Family::Ipv6, 24) => Some(Field::Destination),
                _ => None,
            };
            if let Some(field) = whole {
                return Ok(Some(self.get(field)));
            }
        }
        let mut all: Option<Value> = None;
        for at in offset..offset.saturating_add(length) {
            let byte = match self.source(base, at)? {
                Source::Field(field, low) => self.get(field).part(low, 8),
                Source::Version4 => match self.plain()? {
                    true => Value::known(0x45, 8),
                    false => {
                        let rest = self.get(Field::Network(0)).part(0, 4);
                        Value::known(0x40, 8).with_part(0, &rest)
                    }
                },
                Source::Version6 => {
                    let class = self.get(Field::Tos).part(4, 4);
                    Value::known(0x60, 8).with_part(0, &class)
                }
                Source::Class6 => {
                    let class = self.get(Field::Tos).part(0, 4);
                    let label = self.get(Field::Network(1)).part(0, 4);
                    Value::known(0, 8).with_part(4, &class).with_part(0, &label)
                }
                Source::LengthUdp(low) => {
                    let header = u128::from(self.network_header());
                    let length = self.number(Field::Length).unwrap_or_default();
                    Value::known(length.saturating_sub(header) >> low & 0xff, 8)
                }
                Source::Length6(low) => match self.number(Field::Length) {
                    Some(length) => Value::known(length.saturating_sub(40) >> low & 0xff, 8),
                    None => self.get(Field::Network(if low == 8 { 4 } else { 5 })),
                },
            };
            all = Some(match all {
                None => byte,
                Some(before) => joined(&before, &byte),
            });
        }
        Ok(all)
    }

    /// Writes header bytes; returns `false` if the header does not exist.
    ///
    /// # Errors
    /// The branch splits, or the bytes cannot be represented.
    pub(super) fn write_header(
        &mut self,
        base: PayloadBase,
        offset: u32,
        value: &Value,
    ) -> Result<bool, Undetermined> {
        if !self.has_header(base)? {
            return Ok(false);
        }
        let length = value.bits() / 8;
        // Determine all positions first, because the branch may split there.
        let mut places = Vec::new();
        for index in 0..length {
            let at = offset.saturating_add(index);
            let place = self.source(base, at)?;
            // Bytes of computed fields can only be written unchanged.
            if matches!(place, Source::Version4 | Source::Length6(_)) {
                let byte = value.part((length - 1 - index) * 8, 8);
                let now = self.header(base, at, 1)?;
                if now.map(|now| self.resolved(&now)) != Some(self.resolved(&byte)) {
                    return Err(Undetermined::unknown(
                        "it writes the version or length of a network header",
                    ));
                }
            }
            places.push(place);
        }
        for (index, place) in places.into_iter().enumerate() {
            let byte = value.part((length - 1 - index as u32) * 8, 8);
            match place {
                Source::Field(field, low) => {
                    let written = self.get(field).with_part(low, &byte);
                    self.set(field, written);
                    self.rewritten(field);
                }
                Source::Version6 => {
                    let class = self.get(Field::Tos).with_part(4, &byte.part(0, 4));
                    self.set(Field::Tos, class);
                }
                Source::Class6 => {
                    let class = self.get(Field::Tos).with_part(0, &byte.part(4, 4));
                    self.set(Field::Tos, class);
                    let label = self.get(Field::Network(1)).with_part(0, &byte.part(0, 4));
                    self.set(Field::Network(1), label);
                }
                Source::LengthUdp(low) => {
                    let at = if low == 8 { 4 } else { 5 };
                    self.set(Field::Transport(at), byte);
                }
                // Unchanged.
                Source::Version4 | Source::Length6(_) => {}
            }
        }
        Ok(true)
    }

    /// Returns whether rules can read this header.
    fn has_header(&mut self, base: PayloadBase) -> Result<bool, Undetermined> {
        match base {
            PayloadBase::LINK => Ok(self.has_link_header()),
            PayloadBase::TRANSPORT | PayloadBase::INNER => Ok(!self.is_later_fragment()?),
            PayloadBase::NETWORK => Ok(true),
            _ => Err(Undetermined::unknown("it reads an unsupported header")),
        }
    }

    /// Returns whether there are no IPv4 options or IPv6 extension headers.
    fn plain(&mut self) -> Result<bool, Undetermined> {
        Ok(!self.is(Field::HasOptions, Test::Is(1))?)
    }

    fn source(&mut self, base: PayloadBase, at: u32) -> Result<Source, Undetermined> {
        let field = |field, low| Ok(Source::Field(field, low));
        let narrow = at.min(u32::from(u16::MAX)) as u16;
        match base {
            PayloadBase::NETWORK => match (self.family, at) {
                (Family::Ipv4, 0) => Ok(Source::Version4),
                (Family::Ipv4, 1) => field(Field::Tos, 0),
                (Family::Ipv4, 2 | 3) => field(Field::Length, (3 - at) * 8),
                (Family::Ipv4, 6 | 7) => field(Field::Fragment, (7 - at) * 8),
                (Family::Ipv4, 8) => field(Field::Ttl, 0),
                (Family::Ipv4, 9) => field(Field::Protocol, 0),
                (Family::Ipv4, 12..=15) => field(Field::Source, (15 - at) * 8),
                (Family::Ipv4, 16..=19) => field(Field::Destination, (19 - at) * 8),
                (Family::Ipv6, 0) => Ok(Source::Version6),
                (Family::Ipv6, 1) => Ok(Source::Class6),
                (Family::Ipv6, 4 | 5) => Ok(Source::Length6((5 - at) * 8)),
                (Family::Ipv6, 6) => match self.plain()? {
                    true => field(Field::Protocol, 0),
                    false => field(Field::NextHeader, 0),
                },
                (Family::Ipv6, 7) => field(Field::Ttl, 0),
                (Family::Ipv6, 8..=23) => field(Field::Source, (23 - at) * 8),
                (Family::Ipv6, 24..=39) => field(Field::Destination, (39 - at) * 8),
                _ => field(Field::Network(narrow), 0),
            },
            PayloadBase::TRANSPORT => match at {
                0..=3 if self.has_ports()? => match at {
                    0 | 1 => field(Field::SourcePort, (1 - at) * 8),
                    _ => field(Field::DestinationPort, (3 - at) * 8),
                },
                0 | 1 if self.is(Field::Protocol, Test::Among(&ICMP))? => match at {
                    0 => field(Field::IcmpType, 0),
                    _ => field(Field::IcmpCode, 0),
                },
                // Derived from the packet length, as long as no rule has written it.
                4 | 5
                    if self.peek(Field::Transport(narrow)).is_none()
                        && self.number(Field::Length).is_some()
                        && self.is(Field::Protocol, Test::Is(UDP))?
                        && self.plain()?
                        && !self.is_later_fragment()? =>
                {
                    Ok(Source::LengthUdp((5 - at) * 8))
                }
                13 if self.is(Field::Protocol, Test::Is(TCP))? => field(Field::TcpFlags, 0),
                _ => field(Field::Transport(narrow), 0),
            },
            PayloadBase::INNER => field(Field::Payload(narrow), 0),
            _ => field(Field::Link(narrow), 0),
        }
    }
}

/// Concatenates two values.
fn joined(first: &Value, second: &Value) -> Value {
    match (first, second) {
        (
            Value::Known { number, bits },
            Value::Known {
                number: more,
                bits: length,
            },
        ) if bits + length <= 128 => {
            Value::known(number << length | more & ones(*length), bits + length)
        }
        _ => {
            let mut bits = first.to_bits();
            bits.extend(second.to_bits());
            Value::of_bits(&bits)
        }
    }
}
