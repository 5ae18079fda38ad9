//! Decodes the expressions that any version of iptables wrote for a rule.
//!
//! The module is long because it is one pass over the expressions: the meaning of each depends on those before it.

use std::net::IpAddr;

use bstr::ByteSlice;

use super::encode::NO_INTERFACE;
use super::{Encoded, FRAGMENT_OFFSET, fields, header, ports};
use crate::iptables::{
    Address, Counters, Entry, Interface, NotExpressible, Protocol, Target, expressible,
};
use crate::nft::expr::{
    self, Bitwise, BitwiseOp, Cmp, CmpOp, Data, Decoded, Immediate, Limit, LimitType, Log, Meta,
    MetaKey, Payload, PayloadBase, Range, Register, Verdict,
};
use crate::nft::{self, RuleRef};
use crate::xt::matches::comment::Comment;
use crate::xt::matches::mark::Mark as MarkMatch;
use crate::xt::targets::mark::Mark as MarkTarget;
use crate::xt::{self, Family};

/// Decodes a rule that iptables-nft wrote, of any version.
///
/// # Errors
/// [`NotExpressible`], if a [`Rule`](crate::iptables::Rule) cannot express all of it: such a rule must not be read as
/// another.
pub fn decode(encoded: &RuleRef<'_>) -> Result<Entry, NotExpressible> {
    let mut entry = Entry::default();
    decode_as(encoded, &mut entry, false)?;
    Ok(entry)
}

/// Like [`decode`], for a rule of a table whose chains are known. Overwrites `entry` and reuses its memory.
///
/// # Errors
/// The errors of [`decode`]; the content of `entry` is then undefined.
pub(in crate::iptables) fn decode_into(
    encoded: &RuleRef<'_>,
    entry: &mut Entry,
) -> Result<(), NotExpressible> {
    decode_as(encoded, entry, true)
}

/// Decodes a rule; `declared` if a text declares the chain to which the rule jumps.
fn decode_as(
    encoded: &RuleRef<'_>,
    entry: &mut Entry,
    declared: bool,
) -> Result<(), NotExpressible> {
    let family = decode_all(&encoded.into(), entry, false)?;
    let (table, chain) = (encoded.table(), encoded.chain());
    let checked = expressible::rule(family, table, chain, &entry.rule, declared);
    checked.map_err(|reason| NotExpressible {
        expression: None,
        reason,
    })
}

/// Decodes the meaning of the expressions, even if iptables' text would be parsed as another rule.
///
/// # Errors
/// [`NotExpressible`], if a rule cannot express all of it.
pub(in crate::iptables) fn meaning(encoded: &Encoded<'_>) -> Result<Entry, NotExpressible> {
    let mut entry = Entry::default();
    decode_all(encoded, &mut entry, true)?;
    Ok(entry)
}

/// Decodes all expressions and the user data. `with_overlooked` allows comparisons that never hold and that iptables
/// overlooks in text.
fn decode_all(
    encoded: &Encoded<'_>,
    entry: &mut Entry,
    with_overlooked: bool,
) -> Result<Family, NotExpressible> {
    entry.rule.clear();
    entry.counters = Counters::default();
    let family = match encoded.family {
        nft::Family::IP => Family::Ipv4,
        nft::Family::IP6 => Family::Ipv6,
        _ => {
            return Err(NotExpressible {
                expression: None,
                reason: "its family is not IPv4 or IPv6",
            });
        }
    };
    let mut decoder = Decoder {
        family,
        entry,
        registers: [None; 4],
        word: None,
        fixed: false,
        counted: false,
        ended: false,
    };
    for (position, expression) in encoded.expressions().enumerate() {
        let taken = match expression.as_ref().map(|expression| expression.decode()) {
            Ok(Ok(expression)) => decoder.take(expression),
            _ => Err("malformed rule"),
        };
        taken.map_err(|reason| NotExpressible {
            expression: Some(position),
            reason,
        })?;
    }
    if let Some(userdata) = encoded.userdata {
        let comment = comment(userdata).ok_or(NotExpressible {
            expression: None,
            reason: "its user data has more than a comment",
        })?;
        decoder.entry.rule.matches.push(xt::Match::Comment(comment));
    }
    let finished = decoder.finish(with_overlooked);
    finished.map_err(|reason| NotExpressible {
        expression: None,
        reason,
    })?;
    Ok(family)
}

/// Up to 16 bytes, the size of a register.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Short {
    bytes: [u8; 16],
    length: usize,
}

impl Short {
    fn new(value: &[u8]) -> Option<Self> {
        let mut bytes = [0; 16];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self {
            bytes,
            length: value.len(),
        })
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The content of a register.
#[derive(Clone, Copy)]
struct Loaded {
    what: Part,
    /// `value & mask ^ xor`, unless it is the unmodified part.
    masked: Option<(Short, Short)>,
    /// Whether it has been compared or set.
    used: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Network {
        offset: u32,
        length: u32,
    },
    Transport {
        offset: u32,
        length: u32,
    },
    Protocol,
    InInterface,
    OutInterface,
    Mark,
    PacketType,
    /// A constant of the rule.
    Constant(Short),
}

/// The reason why an expression cannot be decoded.
type Reason = &'static str;

const OTHER: Reason = "iptables has no such expression";
const UNKNOWN: Reason = "it compares something that iptables does not";
const NEVER: Reason = "it compares with an impossible value";
const TWICE: Reason = "it compares the same part again";
const UNUSED: Reason =
    "it loads an unused value, and the rule does not match if that value does not exist";
const LATE: Reason =
    "it compares what iptables compares first, after a match that may have side effects";
const COUNTED: Reason = "it compares after the counter";

/// The registers of 16 bytes.
const LONG: [Register; 4] = [Register::R1, Register::R2, Register::R3, Register::R4];

struct Decoder<'e> {
    family: Family,
    entry: &'e mut Entry,
    /// The registers of 16 bytes.
    registers: [Option<Loaded>; 4],
    /// The register of 4 bytes that was loaded last. It shares memory with the registers of 16 bytes, so
    /// a load of one kind invalidates the other.
    word: Option<(Register, Loaded)>,
    /// Whether there was a match after which no header condition may come: it has side effects, or may end
    /// the packet's evaluation.
    fixed: bool,
    /// Whether the counter has occurred.
    counted: bool,
    /// Whether the target has occurred.
    ended: bool,
}

impl Decoder<'_> {
    /// Decodes an expression.
    fn take(&mut self, expression: Decoded<'_>) -> Result<(), Reason> {
        if self.ended {
            return Err("it comes after the target");
        }
        if !expression.unknown().is_empty() {
            return Err("it has unknown attributes");
        }
        match expression {
            Decoded::Payload(Payload {
                dreg: Some(dreg),
                base: Some(PayloadBase::NETWORK),
                offset: Some(offset),
                len: Some(length),
                ..
            }) if length <= 16 => self.load(dreg, Part::Network { offset, length }),
            Decoded::Payload(Payload {
                dreg: Some(dreg),
                base: Some(PayloadBase::TRANSPORT),
                offset: Some(offset),
                len: Some(length),
                ..
            }) if length <= 16 => self.load(dreg, Part::Transport { offset, length }),
            Decoded::Meta(Meta {
                key: Some(key),
                dreg: Some(dreg),
                sreg: None,
                unknown: _,
            }) => {
                let part = match key {
                    MetaKey::L4PROTO => Part::Protocol,
                    MetaKey::IIFNAME => Part::InInterface,
                    MetaKey::OIFNAME => Part::OutInterface,
                    MetaKey::MARK => Part::Mark,
                    MetaKey::PKTTYPE => Part::PacketType,
                    _ => return Err(UNKNOWN),
                };
                self.load(dreg, part)
            }
            Decoded::Meta(Meta {
                key: Some(key),
                dreg: None,
                sreg: Some(sreg),
                unknown: _,
            }) => self.set_meta(key, sreg),
            Decoded::Bitwise(bitwise) => self.mask(&bitwise),
            Decoded::Cmp(Cmp {
                sreg: Some(sreg),
                op: Some(op),
                data: Some(Data::Value(value)),
                unknown: _,
            }) => {
                let loaded = self.register(sreg)?;
                self.before_match()?;
                self.decode_comparison(&loaded, op, &value)
            }
            Decoded::Range(Range {
                sreg: Some(sreg),
                op: Some(op),
                from_data: Some(Data::Value(from)),
                to_data: Some(Data::Value(to)),
                unknown: _,
            }) => {
                let loaded = self.register(sreg)?;
                self.before_match()?;
                let Loaded {
                    what: Part::Transport { offset, length },
                    masked: None,
                    ..
                } = loaded
                else {
                    return Err(UNKNOWN);
                };
                let protocol = self.transport_protocol()?;
                let matches = &mut self.entry.rule.matches;
                ports::within(matches, protocol, (offset, length), op, &from, &to).ok_or(UNKNOWN)
            }
            Decoded::Match(expr::Match {
                name: Some(name),
                revision: Some(revision),
                info: Some(info),
                unknown: _,
            }) => {
                self.before_match()?;
                let (name, revision) = extension(&name, revision)?;
                let read = xt::Match::read(self.family, name, revision, &info);
                if !matches!(read, xt::Match::Comment(_)) {
                    self.require_loads_used()?;
                }
                self.entry.rule.matches.push(read);
                Ok(())
            }
            Decoded::Target(expr::Target {
                name: Some(name),
                revision: Some(revision),
                info: Some(info),
                unknown: _,
            }) => {
                let (name, revision) = extension(&name, revision)?;
                let read = xt::Target::read(self.family, name, revision, &info);
                self.end(Target::Extension(read))
            }
            Decoded::Limit(Limit {
                rate: Some(rate),
                unit: Some(unit),
                burst,
                limit_type: None | Some(LimitType::PACKETS),
                flags,
                unknown: _,
            }) if flags.is_none_or(|flags| flags.is_empty()) => {
                self.before_match()?;
                self.require_loads_used()?;
                let limit = xt::matches::limit::Limit::with_rate(rate, unit, burst.unwrap_or(0));
                let limit = limit.ok_or("the match limit cannot express this rate")?;
                self.entry.rule.matches.push(xt::Match::Limit(limit));
                Ok(())
            }
            Decoded::Log(Log {
                prefix,
                group: Some(group),
                snaplen,
                queue_threshold,
                level: None,
                flags: None,
                unknown: _,
            }) => self.end(Target::Extension(xt::Target::Nflog(
                xt::targets::nflog::Nflog {
                    prefix: prefix.map_or_else(Default::default, |prefix| prefix.as_bytes().into()),
                    group,
                    length: snaplen.unwrap_or(0),
                    cut: snaplen.is_some(),
                    threshold: queue_threshold.unwrap_or(0),
                },
            ))),
            Decoded::Counter(counter) => {
                self.require_loads_used()?;
                if std::mem::replace(&mut self.counted, true) {
                    return Err("it has a second counter");
                }
                self.entry.counters = (&counter).into();
                Ok(())
            }
            Decoded::Immediate(Immediate {
                dreg: Some(Register::VERDICT),
                data: Some(Data::Verdict(verdict)),
                unknown: _,
            }) => self.end(match verdict {
                Verdict::Accept => Target::Accept,
                Verdict::Drop => Target::Drop,
                Verdict::Return => Target::Return,
                Verdict::Jump(chain) => Target::Jump(chain.as_bytes().into()),
                Verdict::Goto(chain) => Target::Goto(chain.as_bytes().into()),
                _ => return Err("iptables has no such verdict"),
            }),
            Decoded::Immediate(Immediate {
                dreg: Some(dreg),
                data: Some(Data::Value(value)),
                unknown: _,
            }) => {
                let value = Short::new(&value).ok_or(OTHER)?;
                self.load(dreg, Part::Constant(value))
            }
            _ => Err(OTHER),
        }
    }

    fn end(&mut self, target: Target) -> Result<(), Reason> {
        self.entry.rule.target = target;
        self.ended = true;
        Ok(())
    }

    /// Completes the rule after all expressions.
    fn finish(mut self, with_overlooked: bool) -> Result<(), Reason> {
        self.require_loads_used()?;
        let rule = &mut self.entry.rule;
        if !with_overlooked && rule.matches.iter().any(ports::is_ignored_by_versions) {
            return Err(
                "iptables 1.8.8 and newer ignore a comparison in its text that can never match",
            );
        }
        // Conditions that match every address are not printed.
        rule.source = rule.source.filter(|address| !address.is_everything());
        rule.destination = rule.destination.filter(|address| !address.is_everything());
        Ok(())
    }

    /// Checks, before anything with possible side effects, that every load that could end the rule has been used.
    fn require_loads_used(&mut self) -> Result<(), Reason> {
        let word = self.word.map(|(_, loaded)| loaded);
        if self.registers.iter().any(is_unused) || is_unused(&word) {
            return Err(UNUSED);
        }
        self.fixed = true;
        Ok(())
    }

    /// Checks, before any comparison, that no counter precedes it: the counter must count what the whole rule matches.
    const fn before_match(&self) -> Result<(), Reason> {
        if self.counted { Err(COUNTED) } else { Ok(()) }
    }

    /// Checks, before a header comparison, that nothing precedes it that follows header comparisons in iptables'
    /// language.
    const fn before_header(&self) -> Result<(), Reason> {
        if self.fixed { Err(LATE) } else { Ok(()) }
    }

    /// Returns the content of a register and marks it as used.
    fn register(&mut self, register: Register) -> Result<Loaded, Reason> {
        let loaded = match LONG.iter().position(|known| *known == register) {
            Some(position) => self.registers[position].as_mut(),
            None => self
                .word
                .as_mut()
                .filter(|(word, _)| *word == register)
                .map(|(_, loaded)| loaded),
        };
        let loaded = loaded.ok_or("its register has an unknown value")?;
        loaded.used = true;
        Ok(*loaded)
    }

    fn set_register(&mut self, register: Register, loaded: Loaded) -> Result<(), Reason> {
        let word = self.word.take().map(|(_, loaded)| loaded);
        let mut unused = is_unused(&word);
        match LONG.iter().position(|known| *known == register) {
            Some(position) => unused |= is_unused(&self.registers[position].replace(loaded)),
            None => {
                unused |= self.registers.iter().any(is_unused);
                self.registers = [None; 4];
                self.word = Some((register, loaded));
            }
        }
        if unused { Err(UNUSED) } else { Ok(()) }
    }

    /// Decodes a load.
    fn load(&mut self, register: Register, what: Part) -> Result<(), Reason> {
        let (masked, used) = (None, false);
        self.set_register(register, Loaded { what, masked, used })
    }

    /// Decodes `dreg = sreg & mask ^ xor`.
    fn mask(&mut self, bitwise: &Bitwise<'_>) -> Result<(), Reason> {
        let (Some(sreg), Some(dreg), Some(mask), Some(xor)) =
            (bitwise.sreg, bitwise.dreg, &bitwise.mask, &bitwise.xor)
        else {
            return Err(OTHER);
        };
        let plain = bitwise.op.is_none_or(|op| op == BitwiseOp::MASK_XOR);
        let short = |data: &Data<'_>| data.as_value().and_then(Short::new).ok_or(OTHER);
        let (mask, xor) = (short(mask)?, short(xor)?);
        let loaded = self.register(sreg)?;
        if !plain || loaded.masked.is_some() || mask.length != xor.length {
            return Err(OTHER);
        }
        let masked = Some((mask, xor));
        let (what, used) = (loaded.what, false);
        self.set_register(dreg, Loaded { what, masked, used })
    }

    /// Decodes a comparison.
    fn decode_comparison(
        &mut self,
        loaded: &Loaded,
        op: CmpOp,
        value: &[u8],
    ) -> Result<(), Reason> {
        let mask = match &loaded.masked {
            None => None,
            Some((mask, xor)) if xor.as_slice().iter().all(|byte| *byte == 0) => Some(mask),
            Some(_) => return Err(UNKNOWN),
        };
        if mask.is_some_and(|mask| mask.length != value.len()) {
            return Err(OTHER);
        }
        if let (Part::Network { offset, length: 1 }, None) = (loaded.what, mask)
            && offset == header(self.family).hops
        {
            let hops = fields::hops(self.family, op, value).ok_or(UNKNOWN)?;
            self.entry.rule.matches.push(hops);
            return Ok(());
        }
        if let Part::Transport { offset, length } = loaded.what
            && self.transport_protocol()? != icmp(self.family)
        {
            let protocol = self.transport_protocol()?;
            let mask = mask.map(Short::as_slice);
            let matches = &mut self.entry.rule.matches;
            return ports::decode_comparison(matches, protocol, (offset, length), mask, op, value)
                .ok_or(UNKNOWN);
        }
        let invert = match op {
            CmpOp::EQ => false,
            CmpOp::NEQ => true,
            _ => return Err(UNKNOWN),
        };
        match loaded.what {
            Part::Network { offset, length } => self.network(offset, length, mask, value, invert),
            Part::Protocol => self.protocol(mask, value, invert),
            Part::InInterface | Part::OutInterface => {
                self.interface(loaded.what, mask, value, invert)
            }
            Part::Mark => {
                let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_ne_bytes);
                let mark = MarkMatch {
                    value: number(value).ok_or(OTHER)?,
                    mask: mask
                        .map_or(Some(u32::MAX), |mask| number(mask.as_slice()))
                        .ok_or(OTHER)?,
                    invert,
                };
                self.entry.rule.matches.push(xt::Match::Mark(mark));
                Ok(())
            }
            Part::Transport { offset: 0, length } if length as usize == value.len() => {
                // ICMP: the other transport headers were handled above.
                let read = fields::icmp(self.family, value, invert).filter(|_| mask.is_none());
                self.entry.rule.matches.push(read.ok_or(UNKNOWN)?);
                Ok(())
            }
            Part::PacketType => {
                let read = fields::packet_type(value, invert).filter(|_| mask.is_none());
                self.entry.rule.matches.push(read.ok_or(UNKNOWN)?);
                Ok(())
            }
            Part::Transport { .. } | Part::Constant(_) => Err(UNKNOWN),
        }
    }

    /// Returns the protocol that the rule requires: without one, the type of the transport header is unknown.
    fn transport_protocol(&self) -> Result<u8, Reason> {
        match self.entry.rule.protocol {
            Some(Protocol {
                number,
                invert: false,
            }) => Ok(number),
            _ => Err("it reads the transport header, but the rule has no protocol"),
        }
    }

    fn network(
        &mut self,
        offset: u32,
        length: u32,
        mask: Option<&Short>,
        value: &[u8],
        invert: bool,
    ) -> Result<(), Reason> {
        self.before_header()?;
        let header = header(self.family);
        if value.len() != length as usize {
            return Err(OTHER);
        }
        if header.protocol == Some(offset) && length == 1 {
            return self.protocol(mask, value, invert);
        }
        if header.fragment == Some(offset) && length == 2 {
            let offset_only = mask.is_some_and(|mask| mask.as_slice() == FRAGMENT_OFFSET);
            if !offset_only || value != [0; 2] {
                return Err(UNKNOWN);
            }
            let twice = self.entry.rule.fragment.replace(invert).is_some();
            return if twice { Err(TWICE) } else { Ok(()) };
        }
        if length > header.address_length {
            return Err(UNKNOWN);
        }
        let mask = match mask {
            Some(mask) => *mask,
            None => Short {
                bytes: [0xff; 16],
                length: value.len(),
            },
        };
        if value
            .iter()
            .zip(&mask.bytes)
            .any(|(byte, mask)| byte & !mask != 0)
        {
            return Err(NEVER); // the mask has cleared these bits
        }
        let read = Address::masked(
            address(self.family, value).ok_or(OTHER)?,
            address(self.family, mask.as_slice()).ok_or(OTHER)?,
            invert,
        );
        if read.is_nothing() {
            return Err(NEVER); // iptables-nft does not load `! -s 0.0.0.0/0`
        }
        let slot = if offset == header.source {
            &mut self.entry.rule.source
        } else if offset == header.destination {
            &mut self.entry.rule.destination
        } else {
            return Err(UNKNOWN);
        };
        if slot.replace(read).is_some() {
            return Err(TWICE);
        }
        Ok(())
    }

    fn protocol(&mut self, mask: Option<&Short>, value: &[u8], invert: bool) -> Result<(), Reason> {
        self.before_header()?;
        let (&[number], None) = (value, mask) else {
            return Err(UNKNOWN);
        };
        let slot = &mut self.entry.rule.protocol;
        if slot.replace(Protocol { number, invert }).is_some() {
            return Err(TWICE);
        }
        Ok(())
    }

    fn interface(
        &mut self,
        which: Part,
        mask: Option<&Short>,
        value: &[u8],
        invert: bool,
    ) -> Result<(), Reason> {
        self.before_header()?;
        let end = value.find_byte(0).unwrap_or(value.len());
        let (name, padding) = value.split_at(end);
        if mask.is_some() || value.len() > 16 {
            return Err(OTHER);
        }
        if padding.iter().any(|byte| *byte != 0) || end == 16 {
            return Err(NEVER);
        }
        let none = value == NO_INTERFACE;
        if end == 0 || (none && invert) {
            return Err(NEVER); // or always, which iptables does not write this way
        }
        let read = Interface {
            name: if none { b"" } else { name }.into(),
            prefix: none || padding.is_empty(),
            invert: none || invert,
        };
        let slot = if which == Part::InInterface {
            &mut self.entry.rule.in_interface
        } else {
            &mut self.entry.rule.out_interface
        };
        if slot.replace(read).is_some() {
            return Err(TWICE);
        }
        Ok(())
    }

    /// Decodes a write to a packet's metadata.
    fn set_meta(&mut self, key: MetaKey, sreg: Register) -> Result<(), Reason> {
        let loaded = self.register(sreg)?;
        let number = |short: &Short| short.as_slice().try_into().ok().map(u32::from_ne_bytes);
        match (key, loaded.what, &loaded.masked) {
            (MetaKey::NFTRACE, Part::Constant(value), None) if value.as_slice() == [1] => self.end(
                Target::Extension(xt::Target::Trace(xt::targets::trace::Trace)),
            ),
            (MetaKey::MARK, Part::Constant(value), None) => {
                let value = number(&value).ok_or(OTHER)?;
                let mark = MarkTarget {
                    value,
                    mask: u32::MAX,
                };
                self.end(Target::Extension(xt::Target::Mark(mark)))
            }
            (MetaKey::MARK, Part::Mark, Some((mask, xor))) => {
                let mark = MarkTarget {
                    value: number(xor).ok_or(OTHER)?,
                    mask: !number(mask).ok_or(OTHER)?,
                };
                self.end(Target::Extension(xt::Target::Mark(mark)))
            }
            _ => Err(OTHER),
        }
    }
}

/// Returns `true` if the content was loaded and never used, and its load ends the rule for packets that lack the field.
fn is_unused(loaded: &Option<Loaded>) -> bool {
    loaded.is_some_and(|loaded| {
        let always = matches!(
            loaded.what,
            Part::InInterface
                | Part::OutInterface
                | Part::Mark
                | Part::PacketType
                | Part::Constant(_)
        );
        !loaded.used && !always
    })
}

/// Returns the name and revision of an extension.
fn extension<'n>(name: &'n nft::Name<'_>, revision: u32) -> Result<(&'n str, u8), Reason> {
    match (name.to_str(), u8::try_from(revision)) {
        (Ok(name), Ok(revision)) => Ok((name, revision)),
        _ => Err("no extension has this name or revision"),
    }
}

/// Returns the protocol number of the family's own ICMP.
const fn icmp(family: Family) -> u8 {
    match family {
        Family::Ipv4 => libc::IPPROTO_ICMP as u8,
        Family::Ipv6 => libc::IPPROTO_ICMPV6 as u8,
    }
}

/// Returns the address with these leading bytes; the rest are 0.
fn address(family: Family, bytes: &[u8]) -> Option<IpAddr> {
    let mut whole = [0; 16];
    whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(match family {
        Family::Ipv4 => IpAddr::from([whole[0], whole[1], whole[2], whole[3]]),
        Family::Ipv6 => IpAddr::from(whole),
    })
}

/// Decodes the comment in a rule's user data: records of type, length and bytes, of which type 0 is a
/// comment with its NUL (libnftnl's layout). Anything besides a comment is rejected.
fn comment(userdata: &[u8]) -> Option<Comment> {
    let &[0, length, ref rest @ ..] = userdata else {
        return None;
    };
    if rest.len() != usize::from(length) {
        return None;
    }
    Comment::new(rest.strip_suffix(&[0])?)
}
