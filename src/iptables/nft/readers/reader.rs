//! Reads expressions one after the other.

use std::mem::discriminant;

use bstr::ByteSlice;

use super::Read;
use super::output::{Net, address, interface, remove_negated_any, remove_unnamed_chunks};
use super::state::{Payload, RegisterContent, RegisterState, Value};
use crate::iptables::compat::Version;
use crate::iptables::nft::{fields, header};
use crate::iptables::{Protocol, Rule, Target};
use crate::nft::expr::{
    self, CmpOp, Data, Decoded, MetaKey, PayloadBase, RangeOp, Register, Verdict,
};
use crate::xt::matches::PortRange;
use crate::xt::matches::mark::Mark as MarkMatch;
use crate::xt::matches::tcp::{Tcp, TcpFlags, TcpFlagsTest};
use crate::xt::matches::udp::Udp;
use crate::xt::{self, Family};

/// The reason why a version fails.
pub(super) type Failure = &'static str;

/// A version's state after the expressions so far.
pub(super) struct Reader {
    family: Family,
    version: Version,
    state: RegisterState,
    pub(super) rule: Rule,
    source: Net,
    destination: Net,
    protocol: (u8, bool),
    /// Whether an expression was ignored.
    lost: bool,
    resolves_interface: bool,
    /// Index of the match for ports and flags.
    transport: Option<usize>,
}

impl Reader {
    pub(super) fn new(family: Family, version: Version) -> Self {
        Self {
            family,
            version,
            state: RegisterState::default(),
            rule: Rule::default(),
            source: Net::default(),
            destination: Net::default(),
            protocol: (0, false),
            lost: false,
            resolves_interface: false,
            transport: None,
        }
    }

    /// Returns `true` if the version tracks each register.
    fn tracks_registers(&self) -> bool {
        self.version >= Version::V1_8_9
    }

    pub(super) fn take(&mut self, expression: &Decoded<'_>) -> Result<(), Failure> {
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
                self.state
                    .load(*register, RegisterContent::Payload(payload));
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
            }) => self.state.load(*dreg, RegisterContent::Meta(*key)),
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
            }) => self
                .state
                .load(*dreg, RegisterContent::Constant(Value::new(value))),
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

    fn mask(&mut self, bitwise: &expr::Bitwise<'_>) {
        let mask = bitwise.mask.as_ref().and_then(Data::as_value);
        let (Some(sreg), Some(dreg), Some(mask)) = (bitwise.sreg, bitwise.dreg, mask) else {
            self.lost = true;
            return;
        };
        self.state.mask(sreg, dreg, Value::new(mask));
    }

    fn compare(&mut self, register: Register, op: CmpOp, value: Value) -> Result<(), Failure> {
        if self.tracks_registers() {
            return match self.state.content(register) {
                Some((RegisterContent::Meta(key), mask)) => self.meta(key, mask, op, value),
                Some((RegisterContent::Payload(payload), mask)) => {
                    self.payload(payload, mask, op, value)
                }
                Some((RegisterContent::Constant(_), _)) | None => {
                    Err("it compares an empty register")
                }
            };
        }
        let last = &mut self.state.last;
        if last.register.is_some_and(|before| before != register) {
            self.lost = true;
            return Ok(());
        }
        let (meta, mask) = (last.meta.take(), last.mask);
        let payload = match self.version {
            Version::V1_8_7 => last.payload.take(),
            // The load is kept, and the next comparison refers to it, too.
            _ => last.payload,
        };
        if let Some(key) = meta {
            self.meta(key, mask, op, value)?;
        }
        let mask = self.state.last.mask;
        if let Some(payload) = payload {
            self.payload(payload, mask, op, value)?;
        }
        Ok(())
    }

    /// Clears the mask after its use; the old versions would use it again.
    const fn used_mask(&mut self) {
        self.state.last.mask = None;
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
            MetaKey::IIF | MetaKey::OIF => self.resolves_interface = true,
            MetaKey::MARK if self.version >= Version::V1_8_8 => {
                let mark = MarkMatch {
                    value: value.number(),
                    mask: mask.map_or(u32::MAX, |mask| mask.number()),
                    invert,
                };
                self.rule.matches.push(xt::Match::Mark(mark));
                self.used_mask();
            }
            MetaKey::PKTTYPE if self.tracks_registers() => {
                let read = fields::packet_type(value.as_slice(), invert);
                self.rule
                    .matches
                    .push(read.ok_or("it compares with an unknown packet type")?);
            }
            _ if self.tracks_registers() => return Err("it cannot express what `meta` loads"),
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
            // These versions do not check which header it is.
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
            // Any comparison other than `neq` is read as equality.
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
            // The version then continues as if it were the next field.
            if self.tracks_registers() {
                self.hops(op, value)?;
            }
        } else if header.fragment == Some(offset) {
            let head = mask.is_some() && op == CmpOp::EQ;
            self.rule.fragment = Some(!(head || self.rule.fragment == Some(false)));
            self.used_mask();
        } else if offset == header.hops && self.tracks_registers() {
            self.hops(op, value)?;
        } else if self.tracks_registers() {
            return Err("it cannot express this position in the header");
        } else {
            self.lost = true;
        }
        Ok(())
    }

    fn hops(&mut self, op: CmpOp, value: Value) -> Result<(), Failure> {
        let read = fields::hops(self.family, op, &value.bytes[..1]);
        self.rule
            .matches
            .push(read.ok_or("it cannot express this comparison of the hop limit")?);
        Ok(())
    }

    /// Reads a transport header only if an earlier comparison of the protocol determines its type.
    fn transport(&mut self, payload: Payload, mask: Option<Value>, op: CmpOp, value: Value) {
        let [a, b, c, d, ..] = value.bytes;
        let (first, second) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let is_icmp = match self.family {
            Family::Ipv4 => i32::from(self.protocol.0) == libc::IPPROTO_ICMP,
            Family::Ipv6 => i32::from(self.protocol.0) == libc::IPPROTO_ICMPV6,
        };
        match (payload.offset, value.length) {
            (0, 1 | 2) if is_icmp && self.tracks_registers() => {
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
                if let Some(xt::Match::Tcp(tcp)) = self.kept(xt::Match::Tcp(Tcp::default())) {
                    tcp.flags = flags;
                }
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

    /// Changes the ports of the single match that holds them.
    fn both_ports(&mut self, change: impl FnOnce(&mut PortRange, &mut PortRange)) {
        let new = match i32::from(self.protocol.0) {
            libc::IPPROTO_TCP => Some(xt::Match::Tcp(Tcp::default())),
            libc::IPPROTO_UDP => Some(xt::Match::Udp(Udp::default())),
            _ => None,
        };
        match new.and_then(|new| self.kept(new)) {
            Some(xt::Match::Tcp(tcp)) => change(&mut tcp.source, &mut tcp.destination),
            Some(xt::Match::Udp(udp)) => change(&mut udp.source, &mut udp.destination),
            _ => self.lost = true,
        }
    }

    /// Returns the match that holds ports and flags; this one, if there is none of its kind yet.
    fn kept(&mut self, new: xt::Match) -> Option<&mut xt::Match> {
        let matches = &mut self.rule.matches;
        let is_same = |at: &usize| {
            let kept = matches.get(*at);
            kept.is_some_and(|kept| discriminant(kept) == discriminant(&new))
        };
        let at = self.transport.filter(is_same).unwrap_or_else(|| {
            matches.push(new);
            matches.len() - 1
        });
        self.transport = Some(at);
        matches.get_mut(at)
    }

    fn range(
        &mut self,
        register: Register,
        op: RangeOp,
        from: Value,
        to: Value,
    ) -> Result<(), Failure> {
        let payload = if self.tracks_registers() {
            match self.state.content(register) {
                Some((RegisterContent::Payload(payload), _)) => Some(payload),
                _ => return Err("it can only express ranges of ports"),
            }
        } else {
            self.state.last.payload
        };
        let Some(Payload {
            base: Some(PayloadBase::TRANSPORT),
            offset: offset @ (0 | 2),
            ..
        }) = payload
        else {
            if self.tracks_registers() {
                return Err("it can only express ranges of ports");
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

    /// Reads a write to a packet's metadata.
    fn set_meta(&mut self, key: MetaKey, register: Register) -> Result<(), Failure> {
        let constant = if self.tracks_registers() {
            match self.state.content(register) {
                Some((RegisterContent::Constant(value), _)) => Some(value),
                _ => return Err("it can only set constants"),
            }
        } else {
            let constant = self.state.last.constant.take();
            constant.and_then(|(content, value)| (content == register).then_some(value))
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
            _ if self.tracks_registers() => return Err("it cannot express what `meta` sets"),
            _ => self.lost = true,
        }
        Ok(())
    }

    /// Returns the rule that the version prints.
    pub(super) fn finish(mut self) -> Read {
        self.rule.source = address(self.family, &self.source);
        self.rule.destination = address(self.family, &self.destination);
        let (number, invert) = self.protocol;
        self.rule.protocol = (number != 0).then_some(Protocol { number, invert });
        if self.version <= Version::V1_8_8 {
            self.rule.matches.iter_mut().for_each(remove_unnamed_chunks);
        }
        if self.version <= Version::V1_8_10 {
            self.rule.matches.iter_mut().for_each(remove_negated_any);
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
            resolves_interface: self.resolves_interface,
        }
    }
}

/// Offset of the next header's type in the IPv6 header (RFC 8200, section 3).
const NEXT_HEADER: u32 = 6;
