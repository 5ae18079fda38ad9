//! How each version of iptables-nft reads a rule: not what it means, but what that version takes it for.
//!
//! | | 1.8.7 | 1.8.8 | 1.8.9 and newer |
//! |---|---|---|---|
//! | expressions that hide the table | all but those of the next line | likewise, and | likewise |
//! | those that do not | `match`, `target`, `payload`, `meta`, `cmp`, `bitwise`, `counter`, `immediate`, `lookup`, plain `limit` | `range`, `log group` | likewise |
//! | what a comparison is about | the last load, once | the last load of the header again and again | what is in its register |
//! | transport header, `meta mark` | passed over | read | read |
//! | time to live, `meta pkttype`, ICMP | passed over | passed over | read |
//! | `meta mark set` | passed over | passed over | fails; from 1.8.10 on read |
//! | anything else of `meta` or the network header | passed over | passed over | fails |
//! | `lookup`: sets and maps | passed over | passed over | passed over |
//!
//! From 1.8.7, 1.8.9, 1.8.10, 1.8.11 and 1.8.13 this was taken by watching: `tests/data/encodings/read-*.txt` has
//! what they read, and a test compares. 1.8.8 is put together from what is known of it.

use std::net::IpAddr;

use bstr::ByteSlice;

use super::encode::NO_INTERFACE;
use super::{Encoded, fields, header};
use crate::iptables::forecast::Version;
use crate::iptables::{Address, Interface, Protocol, Rule, Target};
use crate::nft;
use crate::nft::expr::{
    self, CmpOp, Data, Decoded, LimitType, MetaKey, PayloadBase, RangeOp, Register, Verdict,
};
use crate::xt::matches::comment::Comment;
use crate::xt::matches::mark::Mark as MarkMatch;
use crate::xt::matches::tcp::{Tcp, TcpFlags, TcpFlagsTest};
use crate::xt::matches::udp::Udp;
use crate::xt::matches::{PortRange, SpiRange};
use crate::xt::{self, Compared, Family};

/// What a version makes of a rule.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "it is looked at at once and kept nowhere, and nearly always a rule"
)]
pub(in crate::iptables) enum Read {
    /// A rule.
    As {
        /// The rule that its save prints.
        rule: Rule,
        /// Whether it passed over a condition, or the target.
        lost: bool,
        /// Whether it looks up the name of an interface where it reads, which is left out here.
        looks_up: bool,
    },
    /// Nothing: its save ends there.
    Failed(&'static str),
    /// Nothing: it does not show the table.
    Hidden(&'static str),
}

/// What a version reads.
pub(in crate::iptables) fn read(encoded: &Encoded<'_>, version: Version) -> Read {
    let family = match encoded.family {
        nft::Family::IP6 => Family::Ipv6,
        _ => Family::Ipv4,
    };
    for expression in encoded.expressions() {
        if let Some(why) = expression.map_or(Some("malformed"), |one| hides(&one, version)) {
            return Read::Hidden(why);
        }
    }
    let mut reader = Reader::new(family, version);
    for expression in encoded.expressions() {
        let decoded = expression.and_then(|expression| expression.decode());
        if let Some(why) = decoded.ok().and_then(|decoded| reader.take(&decoded).err()) {
            return Read::Failed(why);
        }
    }
    if let Some(comment) = encoded.userdata.and_then(comment) {
        reader.rule.matches.push(xt::Match::Comment(comment));
    }
    reader.finish()
}

/// Whether a version takes a table with this expression to be none of its own, and what it is.
fn hides(expression: &expr::ExpressionRef<'_>, version: Version) -> Option<&'static str> {
    let newer = version > Version::V1_8_7;
    match expression.name.as_bytes() {
        b"match" | b"target" | b"payload" | b"meta" | b"cmp" | b"bitwise" | b"counter"
        | b"immediate" | b"lookup" => None,
        b"range" if newer => None,
        b"range" => Some("a range of ports by nf_tables' own expression"),
        b"limit" => {
            let plain = matches!(
                expression.decode(),
                Ok(Decoded::Limit(expr::Limit { limit_type: None | Some(LimitType::PACKETS), flags, .. }))
                    if flags.is_none_or(|flags| flags.is_empty())
            );
            (!plain).then_some("a limit of another kind than iptables'")
        }
        b"log" => {
            let grouped = matches!(
                expression.decode(),
                Ok(Decoded::Log(expr::Log { group: Some(_), .. }))
            );
            match (newer, grouped) {
                (true, true) => None,
                (_, true) => Some("NFLOG by nf_tables' own expression"),
                (_, false) => Some("a log expression"),
            }
        }
        b"ct" => Some("a ct expression"),
        b"nat" | b"masq" | b"redir" => Some("NAT by nf_tables' own expression"),
        b"reject" => Some("reject by nf_tables' own expression"),
        b"fib" => Some("a fib expression"),
        b"objref" => Some("a named counter, quota or other object"),
        _ => Some("an expression that iptables does not use"),
    }
}

/// Up to 16 bytes of a comparison, and how many it had. What is not there is 0.
#[derive(Debug, Clone, Copy)]
struct Value {
    bytes: [u8; 16],
    length: usize,
}

impl Value {
    fn new(value: &[u8]) -> Self {
        let mut bytes = [0; 16];
        let length = value.len().min(16);
        bytes[..length].copy_from_slice(&value[..length]);
        Self { bytes, length }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The first four bytes as a number.
    fn number(&self) -> u32 {
        let [a, b, c, d, ..] = self.bytes;
        u32::from_ne_bytes([a, b, c, d])
    }
}

#[derive(Debug, Clone, Copy)]
struct Payload {
    base: Option<PayloadBase>,
    offset: u32,
    length: u32,
}

/// What a register holds, as far as 1.8.9 and newer look.
#[derive(Debug, Clone, Copy)]
enum Held {
    Meta(MetaKey),
    Payload(Payload),
    Constant(Value),
}

/// The registers of the versions from 1.8.9 on, and the memory of those before them, which know one register only.
#[derive(Debug, Default)]
struct Memory {
    /// With the mask that it was combined with.
    registers: [Option<(Held, Option<Value>)>; 16],
    last: Last,
}

/// What 1.8.7 and 1.8.8 remember.
#[derive(Debug, Default)]
struct Last {
    register: Option<Register>,
    meta: Option<MetaKey>,
    payload: Option<Payload>,
    mask: Option<Value>,
    constant: Option<(Register, Value)>,
}

/// An address with what it is compared under. Negations stay, also when something else comes to stand there.
#[derive(Debug, Clone, Copy, Default)]
struct Net {
    address: [u8; 16],
    mask: [u8; 16],
    invert: bool,
}

/// Why a version gives up.
type Failure = &'static str;

struct Reader {
    family: Family,
    version: Version,
    memory: Memory,
    rule: Rule,
    source: Net,
    destination: Net,
    protocol: (u8, bool),
    /// Whether something was passed over.
    lost: bool,
    looks_up: bool,
    /// Where the match is that ports and flags are put into.
    transport: Option<usize>,
}

impl Reader {
    fn new(family: Family, version: Version) -> Self {
        Self {
            family,
            version,
            memory: Memory::default(),
            rule: Rule::default(),
            source: Net::default(),
            destination: Net::default(),
            protocol: (0, false),
            lost: false,
            looks_up: false,
            transport: None,
        }
    }

    /// Whether it follows each register.
    fn follows(&self) -> bool {
        self.version >= Version::V1_8_9
    }

    fn take(&mut self, expression: &Decoded<'_>) -> Result<(), Failure> {
        match expression {
            Decoded::Payload(expr::Payload {
                dreg: Some(register),
                base,
                offset,
                len,
                ..
            }) => {
                let payload = Payload {
                    base: *base,
                    offset: offset.unwrap_or(0),
                    length: len.unwrap_or(0),
                };
                self.load(*register, Held::Payload(payload));
            }
            Decoded::Meta(expr::Meta {
                key: Some(key),
                sreg: Some(sreg),
                ..
            }) => return self.set_meta(*key, *sreg),
            Decoded::Meta(expr::Meta {
                key: Some(key),
                dreg: Some(dreg),
                ..
            }) => self.load(*dreg, Held::Meta(*key)),
            Decoded::Bitwise(bitwise) => self.mask(bitwise),
            Decoded::Cmp(expr::Cmp {
                sreg: Some(sreg),
                op: Some(op),
                data: Some(Data::Value(value)),
                ..
            }) => return self.compare(*sreg, *op, Value::new(value)),
            Decoded::Range(expr::Range {
                sreg: Some(sreg),
                op: Some(op),
                from_data: Some(Data::Value(from)),
                to_data: Some(Data::Value(to)),
                ..
            }) => return self.range(*sreg, *op, Value::new(from), Value::new(to)),
            // No version looks at it.
            Decoded::Lookup(_) => self.lost = true,
            Decoded::Match(expr::Match {
                name: Some(name),
                revision: Some(revision),
                info: Some(info),
                ..
            }) => {
                if let (Ok(name), Ok(revision)) = (name.to_str(), u8::try_from(*revision)) {
                    let read = xt::Match::read(self.family, name, revision, info);
                    self.rule.matches.push(read);
                }
            }
            Decoded::Target(expr::Target {
                name: Some(name),
                revision: Some(revision),
                info: Some(info),
                ..
            }) => {
                if let (Ok(name), Ok(revision)) = (name.to_str(), u8::try_from(*revision)) {
                    let read = xt::Target::read(self.family, name, revision, info);
                    self.rule.target = Target::Extension(read);
                }
            }
            Decoded::Limit(expr::Limit {
                rate: Some(rate),
                unit: Some(unit),
                burst,
                ..
            }) => {
                let burst = burst.unwrap_or(0);
                match xt::matches::limit::Limit::with_rate(*rate, *unit, burst) {
                    Some(limit) => self.rule.matches.push(xt::Match::Limit(limit)),
                    None => self.lost = true,
                }
            }
            Decoded::Log(log) => {
                let prefix = log.prefix.as_ref();
                self.extension(xt::Target::Nflog(xt::targets::nflog::Nflog {
                    prefix: prefix.map_or_else(Default::default, |prefix| prefix.as_bytes().into()),
                    group: log.group.unwrap_or(0),
                    length: log.snaplen.unwrap_or(0),
                    cut: log.snaplen.is_some(),
                    threshold: log.queue_threshold.unwrap_or(0),
                }));
            }
            Decoded::Immediate(expr::Immediate {
                data: Some(Data::Verdict(verdict)),
                ..
            }) => self.verdict(verdict),
            Decoded::Immediate(expr::Immediate {
                dreg: Some(dreg),
                data: Some(Data::Value(value)),
                ..
            }) => self.load(*dreg, Held::Constant(Value::new(value))),
            Decoded::Counter(_) => {}
            _ => self.lost = true,
        }
        Ok(())
    }

    fn extension(&mut self, target: xt::Target) {
        self.rule.target = Target::Extension(target);
    }

    fn verdict(&mut self, verdict: &Verdict<'_>) {
        let target = match verdict {
            Verdict::Accept => Target::Accept,
            Verdict::Drop => Target::Drop,
            Verdict::Return => Target::Return,
            Verdict::Jump(chain) => Target::Jump(chain.as_bytes().into()),
            Verdict::Goto(chain) => Target::Goto(chain.as_bytes().into()),
            _ => {
                self.lost = true;
                return;
            }
        };
        if !matches!(self.rule.target, Target::Extension(_)) {
            self.rule.target = target;
        }
    }

    /// Takes in what puts something into a register.
    fn load(&mut self, register: Register, held: Held) {
        if let Some(slot) = slot(register).and_then(|slot| self.memory.registers.get_mut(slot)) {
            *slot = Some((held, None));
        }
        let last = &mut self.memory.last;
        match held {
            Held::Meta(key) => {
                last.register = Some(register);
                last.meta = Some(key);
            }
            Held::Payload(payload) => {
                last.register = Some(register);
                last.payload = Some(payload);
            }
            Held::Constant(value) => last.constant = Some((register, value)),
        }
    }

    fn mask(&mut self, bitwise: &expr::Bitwise<'_>) {
        let mask = bitwise.mask.as_ref().and_then(Data::as_value);
        let (Some(sreg), Some(dreg), Some(mask)) = (bitwise.sreg, bitwise.dreg, mask) else {
            self.lost = true;
            return;
        };
        let mask = Value::new(mask);
        let held = slot(sreg).and_then(|slot| *self.memory.registers.get(slot)?);
        if let (Some((held, _)), Some(to)) = (held, slot(dreg))
            && let Some(to) = self.memory.registers.get_mut(to)
        {
            *to = Some((held, Some(mask)));
        }
        let last = &mut self.memory.last;
        if last.register.is_none_or(|register| register == sreg) {
            last.mask = Some(mask);
        }
    }

    fn compare(&mut self, register: Register, op: CmpOp, value: Value) -> Result<(), Failure> {
        if self.follows() {
            let held = slot(register).and_then(|slot| *self.memory.registers.get(slot)?);
            return match held {
                Some((Held::Meta(key), mask)) => self.meta(key, mask, op, value),
                Some((Held::Payload(payload), mask)) => self.payload(payload, mask, op, value),
                Some((Held::Constant(_), _)) | None => {
                    Err("it compares a register in which nothing is")
                }
            };
        }
        let last = &mut self.memory.last;
        if last.register.is_some_and(|before| before != register) {
            self.lost = true;
            return Ok(());
        }
        let (meta, mask) = (last.meta.take(), last.mask);
        let payload = match self.version {
            Version::V1_8_7 => last.payload.take(),
            // It stays, and what is compared next is taken to be it, too.
            _ => last.payload,
        };
        if let Some(key) = meta {
            self.meta(key, mask, op, value)?;
        }
        let mask = self.memory.last.mask;
        if let Some(payload) = payload {
            self.payload(payload, mask, op, value)?;
        }
        Ok(())
    }

    /// What a mask was for is done; the old versions would use it again.
    const fn used_mask(&mut self) {
        self.memory.last.mask = None;
    }

    fn meta(
        &mut self,
        key: MetaKey,
        mask: Option<Value>,
        op: CmpOp,
        value: Value,
    ) -> Result<(), Failure> {
        let invert = op == CmpOp::NEQ;
        match key {
            MetaKey::L4PROTO => {
                self.protocol = (value.bytes[0], self.protocol.1 || invert);
            }
            MetaKey::IIFNAME | MetaKey::OIFNAME => {
                let slot = match key {
                    MetaKey::IIFNAME => &mut self.rule.in_interface,
                    _ => &mut self.rule.out_interface,
                };
                let before = slot.as_ref().is_some_and(|before| before.invert);
                *slot = interface(&value, before || invert);
            }
            MetaKey::IIF | MetaKey::OIF => self.looks_up = true,
            MetaKey::MARK if self.version >= Version::V1_8_8 => {
                let mark = MarkMatch {
                    value: value.number(),
                    mask: mask.map_or(u32::MAX, |mask| mask.number()),
                    invert,
                };
                self.rule.matches.push(xt::Match::Mark(mark));
                self.used_mask();
            }
            MetaKey::PKTTYPE if self.follows() => {
                let read = fields::packet_type(value.as_slice(), invert);
                self.rule
                    .matches
                    .push(read.ok_or("it compares with no type of packets")?);
            }
            _ if self.follows() => return Err("it has no words for what `meta` loads"),
            _ => self.lost = true,
        }
        Ok(())
    }

    fn payload(
        &mut self,
        payload: Payload,
        mask: Option<Value>,
        op: CmpOp,
        value: Value,
    ) -> Result<(), Failure> {
        let everywhere = self.version == Version::V1_8_7;
        match payload.base {
            Some(PayloadBase::NETWORK) => self.network(payload, mask, op, value),
            // It does not look at which header it is.
            _ if everywhere => self.network(payload, mask, op, value),
            Some(PayloadBase::TRANSPORT) => {
                self.transport(payload, mask, op, value);
                Ok(())
            }
            _ => {
                self.lost = true;
                Ok(())
            }
        }
    }

    fn network(
        &mut self,
        payload: Payload,
        mask: Option<Value>,
        op: CmpOp,
        value: Value,
    ) -> Result<(), Failure> {
        let header = header(self.family);
        let offset = payload.offset;
        let invert = op == CmpOp::NEQ;
        let width = header.address_length as usize;
        if offset == header.source || offset == header.destination {
            // What is no equality is taken for one.
            self.lost |= !matches!(op, CmpOp::EQ | CmpOp::NEQ);
            let net = match offset == header.source {
                true => &mut self.source,
                false => &mut self.destination,
            };
            net.address = value.bytes;
            match mask {
                Some(mask) => net.mask = mask.bytes,
                None => {
                    let length = (payload.length as usize).min(width);
                    net.mask[..length].fill(0xff);
                }
            }
            net.invert |= invert;
            if mask.is_some() {
                self.used_mask();
            }
        } else if header.protocol == Some(offset) {
            self.protocol = (value.bytes[0], self.protocol.1 || invert);
        } else if self.family == Family::Ipv6 && offset == NEXT_HEADER {
            self.protocol = (value.bytes[0], self.protocol.1 || invert);
            // It goes on as if it were the next field.
            if self.follows() {
                self.hops(op, value)?;
            }
        } else if header.fragment == Some(offset) {
            let head = mask.is_some() && op == CmpOp::EQ;
            self.rule.fragment = Some(!(head || self.rule.fragment == Some(false)));
            self.used_mask();
        } else if offset == header.hops && self.follows() {
            self.hops(op, value)?;
        } else if self.follows() {
            return Err("it has no words for this place of the header");
        } else {
            self.lost = true;
        }
        Ok(())
    }

    fn hops(&mut self, op: CmpOp, value: Value) -> Result<(), Failure> {
        let read = fields::hops(self.family, op, &value.bytes[..1]);
        self.rule
            .matches
            .push(read.ok_or("it has no words for how hops are compared")?);
        Ok(())
    }

    /// Only of a transport header it is known whose, by the protocol that was compared before.
    fn transport(&mut self, payload: Payload, mask: Option<Value>, op: CmpOp, value: Value) {
        let [a, b, c, d, ..] = value.bytes;
        let (first, second) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let is_icmp = match self.family {
            Family::Ipv4 => i32::from(self.protocol.0) == libc::IPPROTO_ICMP,
            Family::Ipv6 => i32::from(self.protocol.0) == libc::IPPROTO_ICMPV6,
        };
        match (payload.offset, value.length) {
            (0, 1 | 2) if is_icmp && self.follows() => {
                match fields::icmp(self.family, value.as_slice(), op == CmpOp::NEQ) {
                    Some(read) => self.rule.matches.push(read),
                    None => self.lost = true,
                }
            }
            (0, 2) => self.ports(Some((op, first)), None),
            (0, 4) => self.ports(Some((op, first)), Some((op, second))),
            (2, 2) => self.ports(None, Some((op, first))),
            (13, 1) if i32::from(self.protocol.0) == libc::IPPROTO_TCP => {
                let flags = TcpFlagsTest {
                    mask: TcpFlags::from_bits_truncate(mask.map_or(0xff, |mask| mask.bytes[0])),
                    comp: TcpFlags::from_bits_truncate(a),
                    invert: op == CmpOp::NEQ,
                };
                self.used_mask();
                self.tcp(|tcp| tcp.flags = flags);
            }
            _ => self.lost = true,
        }
    }

    fn ports(&mut self, source: Option<(CmpOp, u16)>, destination: Option<(CmpOp, u16)>) {
        let put = |ports: &mut PortRange, compared: Option<(CmpOp, u16)>| {
            let Some((op, port)) = compared else { return };
            match op {
                CmpOp::EQ => (ports.first, ports.last) = (port, port),
                CmpOp::NEQ => *ports = PortRange::from(port).not(),
                CmpOp::LT => ports.last = port.saturating_sub(1).max(1),
                CmpOp::LTE => ports.last = port,
                CmpOp::GT => ports.first = port.saturating_add(1),
                CmpOp::GTE => ports.first = port,
                _ => {}
            }
        };
        self.both_ports(|from, to| {
            put(from, source);
            put(to, destination);
        });
    }

    /// Changes the ports of the one match that it keeps them in.
    fn both_ports(&mut self, change: impl FnOnce(&mut PortRange, &mut PortRange)) {
        match i32::from(self.protocol.0) {
            libc::IPPROTO_TCP => {
                self.tcp(|tcp| change(&mut tcp.source, &mut tcp.destination));
            }
            libc::IPPROTO_UDP => {
                self.udp(|udp| change(&mut udp.source, &mut udp.destination));
            }
            _ => self.lost = true,
        }
    }

    fn tcp(&mut self, change: impl FnOnce(&mut Tcp)) {
        let at = self.transport;
        if let Some(xt::Match::Tcp(tcp)) = at.and_then(|at| self.rule.matches.get_mut(at)) {
            return change(tcp);
        }
        let mut tcp = Tcp::default();
        change(&mut tcp);
        self.transport = Some(self.rule.matches.len());
        self.rule.matches.push(xt::Match::Tcp(tcp));
    }

    fn udp(&mut self, change: impl FnOnce(&mut Udp)) {
        let at = self.transport;
        if let Some(xt::Match::Udp(udp)) = at.and_then(|at| self.rule.matches.get_mut(at)) {
            return change(udp);
        }
        let mut udp = Udp::default();
        change(&mut udp);
        self.transport = Some(self.rule.matches.len());
        self.rule.matches.push(xt::Match::Udp(udp));
    }

    fn range(
        &mut self,
        register: Register,
        op: RangeOp,
        from: Value,
        to: Value,
    ) -> Result<(), Failure> {
        let payload = if self.follows() {
            let held = slot(register).and_then(|slot| *self.memory.registers.get(slot)?);
            match held {
                Some((Held::Payload(payload), _)) => Some(payload),
                _ => return Err("it has no words for the range of anything but ports"),
            }
        } else {
            self.memory.last.payload
        };
        let Some(Payload {
            base: Some(PayloadBase::TRANSPORT),
            offset: offset @ (0 | 2),
            ..
        }) = payload
        else {
            if self.follows() {
                return Err("it has no words for the range of anything but ports");
            }
            self.lost = true;
            return Ok(());
        };
        let port = |value: Value| u16::from_be_bytes([value.bytes[0], value.bytes[1]]);
        let range = PortRange {
            first: port(from),
            last: port(to),
            invert: op == RangeOp::NEQ,
        };
        self.both_ports(|source, destination| match offset {
            0 => *source = range,
            _ => *destination = range,
        });
        Ok(())
    }

    /// Takes in what sets something of the packet.
    fn set_meta(&mut self, key: MetaKey, register: Register) -> Result<(), Failure> {
        let constant = if self.follows() {
            let held = slot(register).and_then(|slot| *self.memory.registers.get(slot)?);
            match held {
                Some((Held::Constant(value), _)) => Some(value),
                _ => return Err("it has no words for setting what is not a constant"),
            }
        } else {
            let constant = self.memory.last.constant.take();
            constant.and_then(|(held, value)| (held == register).then_some(value))
        };
        match (key, constant) {
            (MetaKey::NFTRACE, Some(value)) if value.bytes[0] != 0 => {
                self.extension(xt::Target::Trace(xt::targets::trace::Trace));
            }
            (MetaKey::NFTRACE, Some(_)) => self.lost = true,
            (MetaKey::MARK, Some(value)) if self.version >= Version::V1_8_10 => {
                self.extension(xt::Target::Mark(xt::targets::mark::Mark {
                    value: value.number(),
                    mask: u32::MAX,
                }));
            }
            _ if self.follows() => return Err("it has no words for what `meta` sets"),
            _ => self.lost = true,
        }
        Ok(())
    }

    /// The rule that it prints.
    fn finish(mut self) -> Read {
        self.rule.source = address(self.family, &self.source);
        self.rule.destination = address(self.family, &self.destination);
        let (number, invert) = self.protocol;
        self.rule.protocol = (number != 0).then_some(Protocol { number, invert });
        if self.version <= Version::V1_8_8 {
            self.rule.matches.iter_mut().for_each(forget_newer_chunks);
        }
        if self.version <= Version::V1_8_10 {
            self.rule.matches.iter_mut().for_each(forget_what_is_never);
        }
        if self.version <= Version::V1_8_8
            && let Target::Extension(xt::Target::Redirect(redirect)) = &mut self.rule.target
            && redirect.ports.is_none()
        {
            redirect.random = false;
        }
        Read::As {
            rule: self.rule,
            lost: self.lost,
            looks_up: self.looks_up,
        }
    }
}

/// Where the type of the next header is in IPv6's (RFC 8200, section 3).
const NEXT_HEADER: u32 = 6;

/// A register's place among those of 4 bytes.
fn slot(register: Register) -> Option<usize> {
    let long = [Register::R1, Register::R2, Register::R3, Register::R4];
    let short = |slot: usize| Register::word(slot as u32) == register;
    long.iter()
        .position(|known| *known == register)
        .map(|known| known * 4)
        .or_else(|| (0..16).find(|slot| short(*slot)))
}

/// The name as they print it.
fn interface(value: &Value, invert: bool) -> Option<Interface> {
    let bytes = value.as_slice();
    if bytes.is_empty() {
        return None;
    }
    let prefix = !bytes.ends_with(&[0]);
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    if bytes == NO_INTERFACE && !invert {
        // Whether it is said so or as `! -i +`, there is no such interface.
        return Some(Interface {
            name: Default::default(),
            prefix: true,
            invert: true,
        });
    }
    Some(Interface {
        name: name.into(),
        prefix,
        invert,
    })
}

/// The address as they print it.
fn address(family: Family, net: &Net) -> Option<Address> {
    let ip = |bytes: [u8; 16]| match family {
        Family::Ipv4 => IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]]),
        Family::Ipv6 => IpAddr::from(bytes),
    };
    let address = Address::masked(ip(net.address), ip(net.mask), net.invert);
    (!address.is_everything()).then_some(address)
}

/// Takes out the types of chunks for which there is no name: they are left out of the list.
fn forget_newer_chunks(one: &mut xt::Match) {
    if let xt::Match::Sctp(sctp) = one
        && let Some(chunks) = &mut sctp.chunks
        && let Some(types) = &mut chunks.types
    {
        types.retain(|chunk| !NEWER_CHUNKS.contains(&chunk.kind));
    }
}

/// Types of SCTP's chunks that have names since 1.8.9: `I_DATA`, `RE_CONFIG`, `PAD`, `I_FORWARD_TSN`.
const NEWER_CHUNKS: [u8; 4] = [64, 130, 132, 194];

/// Takes out what up to 1.8.10 is not printed: what is negated and everything.
fn forget_what_is_never(one: &mut xt::Match) {
    let forget = |ports: &mut PortRange| {
        if *ports == PortRange::ANY.not() {
            *ports = PortRange::ANY;
        }
    };
    let forget_spis = |spis: &mut SpiRange| {
        if spis.invert && (spis.first, spis.last) == (0, u32::MAX) {
            *spis = SpiRange::ANY;
        }
    };
    let is_never =
        |compared: &Compared<(u32, u32)>| compared.invert && compared.value == (0, u32::MAX);
    match one {
        xt::Match::Tcp(tcp) => {
            forget(&mut tcp.source);
            forget(&mut tcp.destination);
        }
        xt::Match::Udp(udp) => {
            forget(&mut udp.source);
            forget(&mut udp.destination);
        }
        xt::Match::Ah(ah) => forget_spis(&mut ah.spis),
        xt::Match::Esp(esp) => forget_spis(&mut esp.spis),
        xt::Match::Ipcomp(ipcomp) => forget_spis(&mut ipcomp.spis),
        xt::Match::Frag(frag) => frag.ids = frag.ids.filter(|ids| !is_never(ids)),
        xt::Match::Rt(rt) => {
            rt.segments_left = rt.segments_left.filter(|left| !is_never(left));
        }
        xt::Match::Mh(mh) if (mh.first, mh.last) == (0, u8::MAX) => mh.invert = false,
        _ => {}
    }
}

/// The comment in a rule's user data: records of type, length and bytes, of which type 0 is a comment with its NUL.
fn comment(userdata: &[u8]) -> Option<Comment> {
    let mut rest = userdata;
    while let &[kind, length, ref more @ ..] = rest {
        let (value, next) = more.split_at_checked(length.into())?;
        if kind == 0 {
            return Comment::new(value.strip_suffix(&[0])?);
        }
        rest = next;
    }
    None
}
