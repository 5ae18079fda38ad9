//! A small nf_tables machine for this test: the effect of a rule on a packet, as an ordered list of
//! events. It does not use the library's decoder.
//!
//! In the normal form, two encodings of the same thing are equal:
//!
//! - xtables' `tcp`, `udp`, `icmp`, `icmp6`, `ttl`, `hl`, `pkttype` and `mark` compare what their structs
//!   contain; `comment` does nothing;
//! - `limit` and the targets NFLOG, MARK and TRACE are the same events as nf_tables' `limit`, `log
//!   group`, `meta set mark` and `meta set nftrace`;
//! - the result of any other extension depends on its name, revision and bytes: it is the same only for
//!   the same bytes; if the extension has state, its evaluation is an event;
//! - a missing counter counts as one after the conditions: iptables writes one in each rule;
//! - user data has no effect on packets.

use chainwright::nft::expr::{
    Bitwise, BitwiseOp, Cmp, CmpOp, Data, Decoded, Immediate, Limit, LimitType, Log, Match, Meta,
    MetaKey, Payload, PayloadBase, Range, RangeOp, Register, Target, Verdict,
};
use chainwright::xt::Family;

/// The input of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) family: Family,
    pub(crate) network: [u8; 40],
    pub(crate) transport: [u8; 24],
    pub(crate) protocol: u8,
    pub(crate) in_name: [u8; 16],
    pub(crate) out_name: [u8; 16],
    pub(crate) mark: u32,
    pub(crate) kind: u8,
    pub(crate) length: u32,
    /// Seed of the extensions' results.
    pub(crate) seed: u64,
}

impl Packet {
    /// Whether it is not the first fragment, and so has no transport header.
    fn is_fragment(&self) -> bool {
        self.family == Family::Ipv4
            && (u16::from_be_bytes([self.network[6], self.network[7]]) & 0x1fff) != 0
    }

    fn base(&self, base: PayloadBase) -> Option<&[u8]> {
        match base {
            PayloadBase::NETWORK => Some(match self.family {
                Family::Ipv4 => &self.network[..20],
                Family::Ipv6 => &self.network,
            }),
            PayloadBase::TRANSPORT if !self.is_fragment() => Some(&self.transport),
            _ => None,
        }
    }

    /// Makes dependent fields consistent: terminates the names of interfaces, and copies IPv4's protocol
    /// to the header.
    pub(crate) fn make_consistent(&mut self) {
        for name in [&mut self.in_name, &mut self.out_name] {
            let end = name
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(15)
                .min(15);
            name[end..].fill(0);
        }
        if self.family == Family::Ipv4 {
            self.network[9] = self.protocol;
        }
    }
}

/// A visible effect of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Counted,
    MatchEvaluated(String, Vec<u8>),
    Limited(u64, u64, u32),
    Verdict(String),
    Marked(u32),
    Traced,
    Logged(Vec<u8>, u16, Option<u32>, u16),
    Done(String, u32, Vec<u8>),
    /// Something that this machine does not know.
    Unknown(String),
}

/// Registers: words of four bytes; the first four contain the verdict.
struct Registers([u8; 80]);

impl Registers {
    fn at(register: Register) -> usize {
        let number = register.0 as usize;
        // NFT_REG_1 … NFT_REG_4 have 16 bytes, NFT_REG32_00 … 4.
        if number < 8 {
            number * 16
        } else {
            16 + (number - 8) * 4
        }
    }

    fn put(&mut self, register: Register, bytes: &[u8]) -> Option<()> {
        let at = Self::at(register);
        let whole = bytes.len().next_multiple_of(4);
        let slot = self.0.get_mut(at..at + whole)?;
        slot.fill(0);
        slot[..bytes.len()].copy_from_slice(bytes);
        Some(())
    }

    fn get(&self, register: Register, length: usize) -> Option<&[u8]> {
        let at = Self::at(register);
        self.0.get(at..at + length)
    }
}

/// A hash of an extension's input and the packet (FNV-1a).
fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.iter()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^ (hash >> 29)
}

/// Extensions without state.
const PURE: [&str; 9] = [
    "addrtype",
    "conntrack",
    "length",
    "multiport",
    "dscp",
    "tos",
    "iprange",
    "owner",
    "state",
];

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn port(transport: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([transport[at], transport[at + 1]])
}

/// `struct xt_tcp`: spts, dpts, option, flg_mask, flg_cmp, invflags.
fn tcp(packet: &Packet, info: &[u8]) -> Option<bool> {
    let Some(transport) = packet.base(PayloadBase::TRANSPORT) else {
        return Some(false);
    };
    let inverted = *info.get(11)?;
    let within = |at, of, flag| {
        let port = port(transport, of);
        let within = (number(info, at)?..=number(info, at + 2)?).contains(&port);
        Some(within != (inverted & flag != 0))
    };
    let flags = (transport[13] & info[9] == info[10]) != (inverted & 4 != 0);
    // This machine's packets have no options.
    let option = info[8] == 0 || inverted & 8 != 0;
    Some(within(0, 0, 1)? && within(4, 2, 2)? && flags && option && inverted & 0xf0 == 0)
}

/// `struct xt_udp`: spts, dpts, invflags.
fn udp(packet: &Packet, info: &[u8]) -> Option<bool> {
    let Some(transport) = packet.base(PayloadBase::TRANSPORT) else {
        return Some(false);
    };
    let inverted = *info.get(8)?;
    let within = |at, of, flag| {
        let port = port(transport, of);
        let within = (number(info, at)?..=number(info, at + 2)?).contains(&port);
        Some(within != (inverted & flag != 0))
    };
    Some(within(0, 0, 1)? && within(4, 2, 2)? && inverted & 0xfc == 0)
}

/// The effect of the rule on the packet, and whether all its conditions held.
pub(crate) fn run(rule: &[Decoded<'_>], packet: &Packet) -> (Vec<Event>, bool) {
    let mut events = Vec::new();
    let whole = steps(rule, packet, &mut events).is_some();
    if whole && !rule.iter().any(|one| matches!(one, Decoded::Counter(_))) {
        // Before the final effect of the rule.
        let ends = |event: &Event| {
            !matches!(
                event,
                Event::MatchEvaluated(..) | Event::Limited(..) | Event::Counted
            )
        };
        let at = events.iter().position(ends).unwrap_or(events.len());
        events.insert(at, Event::Counted);
    }
    (events, whole)
}

fn steps(rule: &[Decoded<'_>], packet: &Packet, events: &mut Vec<Event>) -> Option<()> {
    let mut registers = Registers([0; 80]);
    for one in rule {
        step(one, packet, &mut registers, events)?;
        let last = events.last();
        if matches!(last, Some(Event::Verdict(_))) && matches!(one, Decoded::Immediate(_)) {
            return Some(()); // the rest after a verdict is never reached
        }
    }
    Some(())
}

fn step(
    one: &Decoded<'_>,
    packet: &Packet,
    registers: &mut Registers,
    events: &mut Vec<Event>,
) -> Option<()> {
    match one {
        Decoded::Payload(Payload {
            dreg: Some(dreg),
            base: Some(base),
            offset: Some(offset),
            len: Some(length),
            ..
        }) => {
            let (offset, length) = (*offset as usize, *length as usize);
            let bytes = packet.base(*base)?.get(offset..offset + length)?;
            registers.put(*dreg, bytes)
        }
        Decoded::Meta(Meta {
            key: Some(key),
            dreg: Some(dreg),
            sreg: None,
            ..
        }) => match *key {
            MetaKey::L4PROTO => registers.put(*dreg, &[packet.protocol]),
            MetaKey::IIFNAME => registers.put(*dreg, &packet.in_name),
            MetaKey::OIFNAME => registers.put(*dreg, &packet.out_name),
            MetaKey::MARK => registers.put(*dreg, &packet.mark.to_ne_bytes()),
            MetaKey::PKTTYPE => registers.put(*dreg, &[packet.kind]),
            MetaKey::LEN => registers.put(*dreg, &packet.length.to_ne_bytes()),
            other => {
                events.push(Event::Unknown(format!("{other:?}")));
                registers.put(*dreg, &packet.seed.to_ne_bytes()[..4])
            }
        },
        Decoded::Meta(Meta {
            key: Some(key),
            dreg: None,
            sreg: Some(sreg),
            ..
        }) => {
            events.push(match *key {
                MetaKey::MARK => Event::Marked(word(registers.get(*sreg, 4)?, 0)?),
                MetaKey::NFTRACE if registers.get(*sreg, 1)? == [1] => Event::Traced,
                other => Event::Unknown(format!("set {other:?} {:?}", registers.get(*sreg, 4)?)),
            });
            Some(())
        }
        Decoded::Bitwise(Bitwise {
            sreg: Some(sreg),
            dreg: Some(dreg),
            op,
            mask: Some(Data::Value(mask)),
            xor: Some(Data::Value(xor)),
            ..
        }) if op.is_none_or(|op| op == BitwiseOp::MASK_XOR) && mask.len() == xor.len() => {
            let value = registers.get(*sreg, mask.len())?.to_vec();
            let pairs = value.iter().zip(mask.iter().zip(xor.iter()));
            let bytes: Vec<u8> = pairs
                .map(|(value, (mask, xor))| value & mask ^ xor)
                .collect();
            registers.put(*dreg, &bytes)
        }
        Decoded::Cmp(Cmp {
            sreg: Some(sreg),
            op: Some(op),
            data: Some(Data::Value(value)),
            ..
        }) => {
            let found = registers.get(*sreg, value.len())?;
            let holds = match *op {
                CmpOp::EQ => found == &value[..],
                CmpOp::NEQ => found != &value[..],
                CmpOp::LT => found < &value[..],
                CmpOp::LTE => found <= &value[..],
                CmpOp::GT => found > &value[..],
                CmpOp::GTE => found >= &value[..],
                _ => return None,
            };
            holds.then_some(())
        }
        Decoded::Range(Range {
            sreg: Some(sreg),
            op: Some(op),
            from_data: Some(Data::Value(from)),
            to_data: Some(Data::Value(to)),
            ..
        }) => {
            let found = registers.get(*sreg, from.len())?;
            let within = found >= &from[..] && found <= &to[..];
            (within == (*op == RangeOp::EQ)).then_some(())
        }
        Decoded::Match(Match {
            name: Some(name),
            revision: Some(revision),
            info: Some(info),
            ..
        }) => {
            let info = &info[..];
            let name = name.to_string();
            match (name.as_str(), revision) {
                ("comment", 0) => Some(()),
                ("tcp", 0) => tcp(packet, info)?.then_some(()),
                ("udp", 0) => udp(packet, info)?.then_some(()),
                ("mark", 1) => {
                    let same = packet.mark & word(info, 4)? == word(info, 0)?;
                    // As in the kernel: a value other than 0 and 1 is always true.
                    ((u8::from(same) ^ *info.get(8)?) != 0).then_some(())
                }
                ("icmp" | "icmp6", 0) => {
                    let (found, &[kind, first, last, inverted, ..]) =
                        (packet.base(PayloadBase::TRANSPORT)?, info)
                    else {
                        return None;
                    };
                    let same = found[0] == kind && (first..=last).contains(&found[1]);
                    let any = kind == 0xff && name == "icmp";
                    ((any || same) != (inverted & 1 != 0)).then_some(())
                }
                ("ttl" | "hl", 0) => {
                    let at = if name == "ttl" { 8 } else { 7 };
                    let (found, hops) = (packet.network[at], *info.get(1)?);
                    let holds = match info[0] {
                        0 => found == hops,
                        1 => found != hops,
                        2 => found < hops,
                        3 => found > hops,
                        _ => false,
                    };
                    holds.then_some(())
                }
                ("pkttype", 0) => {
                    let same = u32::from(packet.kind) == word(info, 0)?;
                    ((u32::from(same) ^ word(info, 4)?) != 0).then_some(())
                }
                ("limit", 0) => {
                    let (period, burst) = (word(info, 0)?, word(info, 4)?);
                    events.push(Event::Limited(period.into(), 0, burst));
                    Some(())
                }
                _ => {
                    let bytes = normal(&name, info);
                    let seed = packet.seed.to_ne_bytes();
                    let answer = hash(&[name.as_bytes(), &[*revision as u8], &bytes, &seed]);
                    if !PURE.contains(&name.as_str()) {
                        events.push(Event::MatchEvaluated(name, bytes));
                    }
                    (!answer.is_multiple_of(4)).then_some(())
                }
            }
        }
        Decoded::Target(Target {
            name: Some(name),
            revision: Some(revision),
            info: Some(info),
            ..
        }) => {
            let info = &info[..];
            let name = name.to_string();
            events.push(match (name.as_str(), revision) {
                ("TRACE", 0) => Event::Traced,
                ("MARK", 2) => {
                    let (mark, mask) = (word(info, 0)?, word(info, 4)?);
                    Event::Marked((packet.mark & !mask) ^ mark)
                }
                ("NFLOG", 0) => nflog(info)?,
                _ => Event::Done(name, *revision, info.to_vec()),
            });
            Some(())
        }
        Decoded::Limit(Limit {
            rate: Some(rate),
            unit: Some(unit),
            burst,
            limit_type: None | Some(LimitType::PACKETS),
            flags,
            ..
        }) if flags.is_none_or(|flags| flags.is_empty()) => {
            // In xtables' ten-thousandths of a second, and the rate itself if they cannot express it.
            let period = unit * 10_000 / (*rate).max(1);
            let rest = if period == 0 { *rate } else { 0 };
            events.push(Event::Limited(period, rest, burst.unwrap_or(5)));
            Some(())
        }
        Decoded::Log(Log {
            prefix,
            group: Some(group),
            snaplen,
            queue_threshold,
            level: None,
            flags: None,
            ..
        }) => {
            let prefix = prefix.as_ref().map_or(&b""[..], |prefix| &prefix[..]);
            let threshold = queue_threshold.unwrap_or(0);
            events.push(Event::Logged(prefix.to_vec(), *group, *snaplen, threshold));
            Some(())
        }
        Decoded::Counter(_) => {
            events.push(Event::Counted);
            Some(())
        }
        Decoded::Immediate(Immediate {
            dreg: Some(dreg),
            data: Some(data),
            ..
        }) => match data {
            Data::Value(value) => registers.put(*dreg, value),
            Data::Verdict(Verdict::Continue) => Some(()),
            Data::Verdict(Verdict::Break) => None,
            Data::Verdict(verdict) => {
                events.push(Event::Verdict(format!("{verdict:?}")));
                Some(())
            }
            other => {
                events.push(Event::Unknown(format!("{other:?}")));
                Some(())
            }
        },
        other => {
            events.push(Event::Unknown(format!("{other:?}")));
            Some(())
        }
    }
}

/// An extension's data without unused bytes.
fn normal(name: &str, info: &[u8]) -> Vec<u8> {
    let mut bytes = info.to_vec();
    if name == "statistic" && bytes.len() >= 16 {
        bytes[12..16].fill(0); // a count that the kernel does not use
    }
    bytes
}

/// `struct xt_nflog_info`: len, group, threshold, flags, pad, prefix[64].
fn nflog(info: &[u8]) -> Option<Event> {
    let prefix = info.get(12..76)?.split(|byte| *byte == 0).next()?;
    let cut = number(info, 8)? & 1 != 0;
    Some(Event::Logged(
        prefix.to_vec(),
        number(info, 4)?,
        if cut { Some(word(info, 0)?) } else { None },
        number(info, 6)?,
    ))
}

/// Changes the packet so that the rule's conditions hold, as far as possible.
pub(crate) fn satisfy(rule: &[Decoded<'_>], packet: &mut Packet) {
    let mut loaded: Vec<Loaded> = Vec::new();
    for one in rule {
        match one {
            Decoded::Payload(Payload {
                dreg: Some(dreg),
                base: Some(base),
                offset: Some(offset),
                ..
            }) => loaded.push((
                Registers::at(*dreg),
                Place::Payload(*base, *offset as usize),
                None,
            )),
            Decoded::Meta(Meta {
                key: Some(key),
                dreg: Some(dreg),
                ..
            }) => loaded.push((Registers::at(*dreg), Place::Meta(*key), None)),
            Decoded::Bitwise(Bitwise {
                sreg: Some(sreg),
                dreg: Some(dreg),
                mask: Some(Data::Value(mask)),
                xor: Some(Data::Value(xor)),
                ..
            }) => {
                let at = Registers::at(*sreg);
                if let Some((_, place, _)) = loaded.iter().rev().find(|(other, ..)| *other == at) {
                    let masked = Some((mask.to_vec(), xor.to_vec()));
                    loaded.push((Registers::at(*dreg), *place, masked));
                }
            }
            Decoded::Cmp(Cmp {
                sreg: Some(sreg),
                op: Some(op),
                data: Some(Data::Value(value)),
                ..
            }) => {
                let mut value = value.to_vec();
                if let Some(last) = value.last_mut() {
                    match *op {
                        CmpOp::NEQ | CmpOp::GT => *last = last.wrapping_add(1),
                        CmpOp::LT => *last = last.wrapping_sub(1),
                        _ => {}
                    }
                }
                set(&loaded, *sreg, &value, packet);
            }
            Decoded::Range(Range {
                sreg: Some(sreg),
                op: Some(op),
                from_data: Some(Data::Value(from)),
                to_data: Some(Data::Value(to)),
                ..
            }) => {
                let mut value = from.to_vec();
                if *op == RangeOp::NEQ {
                    value = to.to_vec();
                    if let Some(last) = value.last_mut() {
                        *last = last.wrapping_add(1);
                    }
                }
                set(&loaded, *sreg, &value, packet);
            }
            Decoded::Match(Match {
                name: Some(name),
                info: Some(info),
                ..
            }) => match name.to_string().as_str() {
                "tcp" | "udp" if info.len() >= 12 => {
                    for (at, of, flag) in [(0, 0, 1), (4, 2, 2)] {
                        let inverted = info[if *name == "tcp" { 11 } else { 8 }] & flag != 0;
                        let (first, last) = (number(info, at), number(info, at + 2));
                        let port = if inverted {
                            last.map(|last| last.wrapping_add(1))
                        } else {
                            first
                        };
                        let port = port.unwrap_or(0).to_be_bytes();
                        packet.transport[of..of + 2].copy_from_slice(&port);
                    }
                    if *name == "tcp" {
                        packet.transport[13] = (packet.transport[13] & !info[9]) | info[10];
                    }
                }
                "mark" => packet.mark = word(info, 0).unwrap_or(0),
                _ => {}
            },
            _ => {}
        }
    }
    packet.make_consistent();
}

/// Register, source, and the mask and bits to flip that were applied.
type Loaded = (usize, Place, Option<(Vec<u8>, Vec<u8>)>);

#[derive(Clone, Copy)]
enum Place {
    Payload(PayloadBase, usize),
    Meta(MetaKey),
}

fn set(loaded: &[Loaded], register: Register, value: &[u8], packet: &mut Packet) {
    let at = Registers::at(register);
    let Some((_, place, masked)) = loaded.iter().rev().find(|(other, ..)| *other == at) else {
        return;
    };
    let put = |slot: Option<&mut [u8]>| {
        for (at, byte) in slot.into_iter().flatten().enumerate() {
            let Some(value) = value.get(at) else { break };
            match masked {
                Some((mask, xor)) => {
                    let mask = mask.get(at).copied().unwrap_or(0xff);
                    let xor = xor.get(at).copied().unwrap_or(0);
                    *byte = (*byte & !mask) | ((value ^ xor) & mask);
                }
                None => *byte = *value,
            }
        }
    };
    match place {
        Place::Payload(PayloadBase::NETWORK, offset) => {
            put(packet.network.get_mut(*offset..));
            if packet.family == Family::Ipv4 {
                packet.protocol = packet.network[9];
            }
        }
        Place::Payload(PayloadBase::TRANSPORT, offset) => put(packet.transport.get_mut(*offset..)),
        Place::Meta(MetaKey::L4PROTO) => put(Some(std::slice::from_mut(&mut packet.protocol))),
        Place::Meta(MetaKey::IIFNAME) => put(Some(&mut packet.in_name)),
        Place::Meta(MetaKey::OIFNAME) => put(Some(&mut packet.out_name)),
        Place::Meta(MetaKey::PKTTYPE) => put(Some(std::slice::from_mut(&mut packet.kind))),
        Place::Meta(MetaKey::MARK) => {
            let mut bytes = packet.mark.to_ne_bytes();
            put(Some(&mut bytes));
            packet.mark = u32::from_ne_bytes(bytes);
        }
        _ => {}
    }
}
