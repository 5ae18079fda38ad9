//! nf_tables' expressions, evaluated on what is known of a packet.

use std::sync::Arc;

use bstr::{BStr, ByteSlice};

use super::domain::ones;
use super::field::{Field, PacketOption};
use super::flow::{Bit, Effect, Flow, Open, Test, Value};
use super::nat::Translation;
use super::packet::{Direction, Hook, State};
use super::registers::{Order, Registers, bits_of, ordered};
use super::rules::TableOfRules;
use super::sets::{Found, Set, SetChange, data_bits};
use super::steps::Action;
use super::xt as extensions;
use crate::nft::ObjectData;
use crate::nft::expr::{
    BitwiseOp, BitwiseRef, ByteorderOp, CmpOp, CmpRef, ConnlimitFlags, CtKey, CtRef, Data, Decoded,
    DynsetFlags, DynsetOp, DynsetRef, ExpressionRef, ExpressionView, ExthdrFlags, ExthdrOp,
    ExthdrRef, FibFlags, FibResult, HashRef, HashType, LimitFlags, LimitType, LookupFlags,
    LookupRef, MetaKey, MetaRef, NatRangeFlags, NatRef, NatType, NumgenRef, NumgenType, ObjectType,
    ObjrefRef, PayloadRef, QueueFlags, QuotaFlags, RangeOp, RangeRef, Register, RejectRef,
    RejectType, SocketKey, TproxyRef, Verdict,
};
use crate::xt;
use crate::xt::Family;

/// How a rule goes on behind an expression.
#[derive(Debug)]
pub(super) enum Went<'s> {
    /// With the next expression.
    On,
    /// Not: the packet is not one that the rule is for.
    Break,
    /// It is over, with this verdict.
    Verdict(Verdict<'s>),
    /// It is over, with this.
    Effect(Effect),
}

/// What expressions work on.
pub(super) struct Machine<'b, 's> {
    pub(super) flow: &'b mut Flow,
    pub(super) registers: &'b mut Registers,
    pub(super) changes: &'b mut Vec<SetChange>,
    pub(super) table: &'b TableOfRules<'s>,
}

/// An attribute that there must be.
fn needed<T>(attribute: Option<T>) -> Result<T, Open> {
    attribute.ok_or_else(|| Open::unknown("an attribute is missing, or of another form"))
}

const TCP: u128 = 6;
const SYN: u128 = 2;
const ACK: u128 = 0x10;

impl<'s> Machine<'_, 's> {
    /// Carries out an expression.
    ///
    /// # Errors
    /// The branch splits, or what the expression does cannot be said.
    pub(super) fn carry_out(&mut self, expression: &ExpressionRef<'s>) -> Result<Went<'s>, Open> {
        let Ok(view) = expression.view() else {
            return Err(Open::unknown("an expression is malformed"));
        };
        match view {
            ExpressionView::Payload(payload) => self.payload(&payload),
            ExpressionView::Cmp(cmp) => self.cmp(&cmp),
            ExpressionView::Meta(meta) => self.meta(&meta),
            ExpressionView::Lookup(lookup) => self.lookup(&lookup),
            ExpressionView::Immediate(immediate) => {
                let register = needed(immediate.dreg())?;
                self.store_data(register, &needed(immediate.data())?)
            }
            ExpressionView::Bitwise(bitwise) => self.bitwise(&bitwise),
            ExpressionView::Byteorder(byteorder) => {
                let length = needed(byteorder.len())? as usize;
                let size = needed(byteorder.size())? as usize;
                let (source, dreg) = (needed(byteorder.sreg())?, needed(byteorder.dreg())?);
                // Either way the bytes are turned round where the two orders differ.
                let known = [ByteorderOp::NTOH, ByteorderOp::HTON];
                if !known.contains(&needed(byteorder.op())?) || !matches!(size, 2 | 4 | 8) {
                    return Err(Open::unknown(
                        "it turns bytes round in a way not known here",
                    ));
                }
                let bits = needed(self.registers.bits(source, length))?;
                let turned: Vec<Bit> = bits
                    .chunks(size * 8)
                    .flat_map(|chunk| ordered(chunk.to_vec(), Order::Host))
                    .collect();
                needed(self.registers.store_bits(dreg, &turned))?;
                Ok(Went::On)
            }
            ExpressionView::Range(range) => self.range(&range),
            ExpressionView::Ct(ct) => self.ct(&ct),
            ExpressionView::Counter(_) | ExpressionView::Last(_) => Ok(Went::On),
            ExpressionView::Numgen(numgen) => self.numgen(&numgen),
            ExpressionView::Hash(hash) => self.hash(&hash),
            ExpressionView::Nat(nat) => self.nat(&nat),
            ExpressionView::Masq(masq) => {
                let ports = self.ports(masq.proto_min(), masq.proto_max())?;
                let random = is_random(masq.flags());
                self.flow.masquerade(ports, random).map(Went::Effect)
            }
            ExpressionView::Redir(redir) => {
                let ports = self.ports(redir.proto_min(), redir.proto_max())?;
                let random = is_random(redir.flags());
                self.flow.redirect(ports, random).map(Went::Effect)
            }
            ExpressionView::Reject(reject) => {
                Ok(Went::Effect(Effect::Reject(self.reject(&reject))))
            }
            ExpressionView::Log(log) => {
                let prefix = log.prefix().unwrap_or_default();
                self.flow.does(Action::Log(prefix.to_owned()));
                Ok(Went::On)
            }
            ExpressionView::Limit(limit) => {
                let flags = limit.flags().unwrap_or_default();
                let words = rate(
                    limit.rate().unwrap_or_default(),
                    limit.unit().unwrap_or_default(),
                    limit.limit_type() == Some(LimitType::BYTES),
                );
                self.bounded(words, flags.contains(LimitFlags::INV))
            }
            ExpressionView::Quota(quota) => {
                let flags = quota.flags().unwrap_or_default();
                let words = quota_words(quota.bytes().unwrap_or_default());
                self.bounded(words, flags.contains(QuotaFlags::INV))
            }
            ExpressionView::Connlimit(connlimit) => {
                let flags = connlimit.flags().unwrap_or_default();
                let words = connections(connlimit.count().unwrap_or_default());
                self.bounded(words, flags.contains(ConnlimitFlags::INV))
            }
            ExpressionView::Dynset(dynset) => self.dynset(&dynset),
            ExpressionView::Exthdr(exthdr) => self.exthdr(&exthdr),
            ExpressionView::Fib(fib) => {
                let flags = needed(fib.flags())?;
                let (result, register) = (needed(fib.result())?, needed(fib.dreg())?);
                let value = self.flow.fib(flags, result);
                let is_name = result == FibResult::OIFNAME && !flags.contains(FibFlags::PRESENT);
                let order = match is_name {
                    true => Order::Network,
                    false => Order::Host,
                };
                self.store(register, &value, order)
            }
            ExpressionView::Rt(rt) => {
                let key = needed(rt.key())?;
                match self.flow.route(key) {
                    None => Ok(Went::Break),
                    Some(value) => {
                        use crate::nft::expr::RtKey;
                        let order = match key {
                            RtKey::NEXTHOP4 | RtKey::NEXTHOP6 => Order::Network,
                            _ => Order::Host,
                        };
                        self.store(needed(rt.dreg())?, &value, order)
                    }
                }
            }
            ExpressionView::Socket(socket) => {
                let key = needed(socket.key())?;
                let field = Field::Socket(key.0, socket.level().unwrap_or_default());
                if !self.flow.is(Field::HasSocket, Test::Is(1))? {
                    return Ok(Went::Break);
                }
                if matches!(key, SocketKey::TRANSPARENT | SocketKey::WILDCARD)
                    && self.flow.peek(field).is_none()
                {
                    self.flow.limit(field, vec![(0, 1)]);
                }
                let value = self.flow.get(field);
                self.store(needed(socket.dreg())?, &value, Order::Host)
            }
            ExpressionView::Queue(queue) => {
                let queues = queue.total().unwrap_or(1).max(1);
                let first = match queue.sreg_qnum() {
                    None => queue.num().unwrap_or_default(),
                    Some(register) => {
                        let value = needed(self.registers.value(register, 2, Order::Host))?;
                        self.flow.known(&value).unwrap_or_default() as u16
                    }
                };
                let flags = queue.flags().unwrap_or_default();
                Ok(Went::Effect(Effect::Queue {
                    first,
                    queues,
                    bypass: flags.contains(QueueFlags::BYPASS),
                }))
            }
            ExpressionView::Objref(objref) => self.objref(&objref),
            ExpressionView::Notrack(_) => {
                self.flow.do_not_track();
                Ok(Went::On)
            }
            ExpressionView::Tproxy(tproxy) => self.tproxy(&tproxy),
            ExpressionView::Dup(dup) => {
                let to = match dup.sreg_addr() {
                    Some(register) => {
                        let length = self.flow.address_bits() as usize / 8;
                        let value = needed(self.registers.value(register, length, Order::Network))?;
                        self.flow.words(Field::Destination, &value)
                    }
                    None => "a device".to_owned(),
                };
                self.flow
                    .does(Action::Other(format!("a copy goes to {to}")));
                Ok(Went::On)
            }
            ExpressionView::Fwd(_) => Ok(Went::Effect(Effect::Stolen(
                "sent out by another device at once".to_owned(),
            ))),
            ExpressionView::FlowOffload(offload) => {
                let name = offload.table_name().unwrap_or_default();
                self.flow
                    .does(Action::Other(format!("its flow is offloaded to {name}")));
                Ok(Went::On)
            }
            ExpressionView::Synproxy(_) => self.synproxy(),
            ExpressionView::Osf(osf) => {
                if !self.flow.is(Field::Protocol, Test::Is(TCP))? || !self.has_flags(SYN)? {
                    return Ok(Went::Break);
                }
                let value = self.made("the operating system that its SYN looks like", 128);
                self.store(needed(osf.dreg())?, &value, Order::Network)
            }
            ExpressionView::Tunnel(tunnel) => {
                use crate::nft::expr::TunnelKey;
                let key = needed(tunnel.key())?;
                let is_there = self
                    .flow
                    .always("the packet has the metadata of a tunnel")?;
                let value = match (key, is_there) {
                    (TunnelKey::PATH, _) => Value::known(is_there.into(), 8),
                    (_, false) => return Ok(Went::Break),
                    (_, true) => self.made("the number of the tunnel", 32),
                };
                self.store(needed(tunnel.dreg())?, &value, Order::Host)
            }
            ExpressionView::Xfrm(xfrm) => {
                use crate::nft::expr::XfrmKey;
                let key = needed(xfrm.key())?;
                if !self.flow.always("the packet goes through IPsec")? {
                    return Ok(Went::Break);
                }
                let (bits, order) = match key {
                    XfrmKey::DADDR_IP4 | XfrmKey::SADDR_IP4 => (32, Order::Network),
                    XfrmKey::DADDR_IP6 | XfrmKey::SADDR_IP6 => (128, Order::Network),
                    _ => (32, Order::Host),
                };
                let value = self.made("what its IPsec state says", bits);
                self.store(needed(xfrm.dreg())?, &value, order)
            }
            ExpressionView::Inner(inner) => self.inner(&inner),
            ExpressionView::Match(found) => {
                let (Some(family), Ok(name)) =
                    (Some(self.flow.family), needed(found.name())?.to_str())
                else {
                    return Err(Open::unknown("the name of a match is not text"));
                };
                if name == "comment" {
                    return Ok(Went::On);
                }
                let info = found.info().unwrap_or_default();
                let revision = found.revision().unwrap_or_default() as u8;
                let read = xt::Match::read(family, name, revision, info);
                let answer = extensions::matches(&read, self.flow);
                let is = decided(self.flow, answer, &read)?;
                Ok(match is {
                    true => Went::On,
                    false => Went::Break,
                })
            }
            ExpressionView::Target(found) => {
                let family = self.flow.family;
                let Ok(name) = needed(found.name())?.to_str() else {
                    return Err(Open::unknown("the name of a target is not text"));
                };
                let info = found.info().unwrap_or_default();
                let revision = found.revision().unwrap_or_default() as u8;
                let read = xt::Target::read(family, name, revision, info);
                Ok(match extensions::target(&read, self.flow)? {
                    Effect::Continue => Went::On,
                    effect => Went::Effect(effect),
                })
            }
            ExpressionView::Opaque(opaque) => Err(Open::unknown(format!(
                "the expression `{}` is not known here",
                opaque.name
            ))),
        }
    }

    fn store(&mut self, register: Register, value: &Value, order: Order) -> Result<Went<'s>, Open> {
        needed(self.registers.store(register, value, order))?;
        Ok(Went::On)
    }

    /// Something that is not known, as wide as said.
    fn made(&mut self, words: &str, bits: u32) -> Value {
        self.flow.fresh(words, bits, vec![(0, ones(bits))], false)
    }

    fn store_data(&mut self, register: Register, data: &Data<'s>) -> Result<Went<'s>, Open> {
        match data {
            Data::Value(bytes) => {
                needed(self.registers.store_bytes(register, bytes))?;
                Ok(Went::On)
            }
            Data::Verdict(verdict) => Ok(match verdict {
                Verdict::Continue => Went::On,
                Verdict::Break => Went::Break,
                verdict => Went::Verdict(verdict.clone()),
            }),
            Data::Opaque(_) => Err(Open::unknown("a value is of a form that is not known here")),
        }
    }

    fn payload(&mut self, payload: &PayloadRef<'s>) -> Result<Went<'s>, Open> {
        let (base, offset) = (needed(payload.base())?, needed(payload.offset())?);
        let length = needed(payload.len())?;
        if let Some(register) = payload.sreg() {
            if length > 16 {
                return Err(Open::unknown("it writes more than sixteen bytes at once"));
            }
            let value = needed(
                self.registers
                    .value(register, length as usize, Order::Network),
            )?;
            if !self.flow.write_header(base, offset, &value)? {
                return Ok(Went::Break);
            }
            let shown = match self.flow.known(&value) {
                Some(number) => format!("{number:#x}"),
                None => "what is not known".to_owned(),
            };
            let base = base.name().unwrap_or("unknown");
            self.flow.does(Action::Other(format!(
                "{length} bytes of the {base} header, from {offset} on, set to {shown}"
            )));
            return Ok(Went::On);
        }
        let register = needed(payload.dreg())?;
        if length > 16 {
            let mut bits = Vec::with_capacity(length.min(64) as usize * 8);
            for at in (0..length.min(64)).step_by(16) {
                let some = (length - at).min(16);
                match self.flow.header(base, offset.saturating_add(at), some)? {
                    Some(value) => bits.extend(value.to_bits()),
                    None => return Ok(Went::Break),
                }
            }
            needed(self.registers.store_bits(register, &bits))?;
            return Ok(Went::On);
        }
        match self.flow.header(base, offset, length)? {
            Some(value) => self.store(register, &value, Order::Network),
            None => Ok(Went::Break),
        }
    }

    fn cmp(&mut self, cmp: &CmpRef<'s>) -> Result<Went<'s>, Open> {
        let (register, op) = (needed(cmp.sreg())?, needed(cmp.op())?);
        let data = needed(cmp.data())?;
        let wanted = needed(data.as_value())?;
        let is = match self.registers.known(self.flow, register, wanted.len()) {
            Some(bytes) => match op {
                CmpOp::EQ => &*bytes == wanted,
                CmpOp::NEQ => &*bytes != wanted,
                CmpOp::LT => &*bytes < wanted,
                CmpOp::LTE => &*bytes <= wanted,
                CmpOp::GT => &*bytes > wanted,
                CmpOp::GTE => &*bytes >= wanted,
                _ => return Err(Open::unknown("it compares in a way that is not known here")),
            },
            None => {
                let bits = needed(self.registers.bits(register, wanted.len()))?;
                match op {
                    CmpOp::EQ => self.equal(&bits, wanted)?,
                    CmpOp::NEQ => !self.equal(&bits, wanted)?,
                    CmpOp::LT => self.from(&bits, wanted, false)?.is_below(),
                    CmpOp::GTE => !self.from(&bits, wanted, false)?.is_below(),
                    CmpOp::LTE => self.from(&bits, wanted, true)?.is_below(),
                    CmpOp::GT => !self.from(&bits, wanted, true)?.is_below(),
                    _ => return Err(Open::unknown("it compares in a way that is not known here")),
                }
            }
        };
        Ok(match is {
            true => Went::On,
            false => Went::Break,
        })
    }

    fn equal(&mut self, bits: &[Bit], wanted: &[u8]) -> Result<bool, Open> {
        let wanted = bits_of(wanted).map(|bit| bit == Bit::Known(true));
        self.flow.ask_each(bits.iter().copied().zip(wanted))
    }

    /// Whether bits are below a value, or below or equal to it.
    fn from(&mut self, bits: &[Bit], end: &[u8], inclusive: bool) -> Result<Side, Open> {
        let end = number(end)?;
        let last = match inclusive {
            true => Some(end),
            false => end.checked_sub(1),
        };
        let Some(last) = last else {
            return Ok(Side::Above);
        };
        let value = Value::of_bits(bits);
        Ok(match self.flow.ask(&value, Test::Within(0, last))? {
            true => Side::Below,
            false => Side::Above,
        })
    }

    fn range(&mut self, range: &RangeRef<'s>) -> Result<Went<'s>, Open> {
        let (register, op) = (needed(range.sreg())?, needed(range.op())?);
        let (from, to) = (needed(range.from_data())?, needed(range.to_data())?);
        let (from, to) = (needed(from.as_value())?, needed(to.as_value())?);
        let within = match self.registers.known(self.flow, register, from.len()) {
            Some(bytes) => from <= &*bytes && &*bytes <= to,
            None => {
                let bits = needed(self.registers.bits(register, from.len()))?;
                let (from, to) = (number(from)?, number(to)?);
                let value = Value::of_bits(&bits);
                self.flow.ask(&value, Test::Within(from, to))?
            }
        };
        let is = match op {
            RangeOp::EQ => within,
            RangeOp::NEQ => !within,
            _ => return Err(Open::unknown("it compares in a way that is not known here")),
        };
        Ok(match is {
            true => Went::On,
            false => Went::Break,
        })
    }

    fn bitwise(&mut self, bitwise: &BitwiseRef<'s>) -> Result<Went<'s>, Open> {
        let (source, dreg) = (needed(bitwise.sreg())?, needed(bitwise.dreg())?);
        let length = needed(bitwise.len())? as usize;
        let op = bitwise.op().unwrap_or(BitwiseOp::MASK_XOR);
        let known = self.registers.known(self.flow, source, length);
        let bits = needed(self.registers.bits(source, length))?;
        let changed: Vec<Bit> = match op {
            BitwiseOp::MASK_XOR => {
                let (mask, xor) = (needed(bitwise.mask())?, needed(bitwise.xor())?);
                let (mask, xor) = (needed(mask.as_value())?, needed(xor.as_value())?);
                if mask.len() < length || xor.len() < length {
                    return Err(Open::unknown("a mask is too short"));
                }
                if let Some(bytes) = known {
                    let mut written = [0; 64];
                    for (index, byte) in bytes.iter().enumerate() {
                        written[index] = byte & mask[index] ^ xor[index];
                    }
                    needed(self.registers.store_bytes(dreg, &written[..length]))?;
                    return Ok(Went::On);
                }
                let masks = bits_of(mask).zip(bits_of(xor));
                let one = |(bit, (mask, xor)): (&Bit, (Bit, Bit))| {
                    let bit = match mask == Bit::Known(true) {
                        true => *bit,
                        false => Bit::Known(false),
                    };
                    turned(bit, xor == Bit::Known(true))
                };
                bits.iter().zip(masks).map(one).collect()
            }
            BitwiseOp::LSHIFT | BitwiseOp::RSHIFT => {
                let data = needed(bitwise.data())?;
                let by = match needed(data.as_value())?.first_chunk::<4>() {
                    Some(bytes) => u32::from_ne_bytes(*bytes) as usize,
                    None => return Err(Open::unknown("a shift is too short")),
                };
                // Word by word as this machine keeps numbers, the first word on top.
                let words = |bits: &[Bit]| -> Vec<Bit> {
                    let words = bits.chunks(32);
                    words
                        .flat_map(|word| ordered(word.to_vec(), Order::Host))
                        .collect()
                };
                let mut filled = bits.clone();
                filled.resize(length.next_multiple_of(4) * 8, Bit::Known(false));
                let all = words(&filled);
                let zeros = std::iter::repeat_n(Bit::Known(false), by.min(all.len()));
                let shifted: Vec<Bit> = match op {
                    BitwiseOp::LSHIFT => all.iter().copied().skip(by).chain(zeros).collect(),
                    _ => zeros.chain(all.iter().copied()).take(all.len()).collect(),
                };
                let mut back = words(&shifted);
                back.truncate(length * 8);
                back
            }
            BitwiseOp::AND | BitwiseOp::OR | BitwiseOp::XOR => {
                let other = match bitwise.sreg2() {
                    Some(register) => needed(self.registers.bits(register, length))?,
                    None => data_bits(&needed(bitwise.data())?),
                };
                if other.len() < bits.len() {
                    return Err(Open::unknown("a value is too short"));
                }
                let mut joined = Vec::with_capacity(bits.len());
                for (one, other) in bits.iter().zip(other) {
                    let bit = match (op, *one, other) {
                        (_, Bit::Known(one), Bit::Known(other)) => Bit::Known(match op {
                            BitwiseOp::AND => one & other,
                            BitwiseOp::OR => one | other,
                            _ => one ^ other,
                        }),
                        (BitwiseOp::AND, open, Bit::Known(set))
                        | (BitwiseOp::AND, Bit::Known(set), open) => match set {
                            true => open,
                            false => Bit::Known(false),
                        },
                        (BitwiseOp::OR, open, Bit::Known(set))
                        | (BitwiseOp::OR, Bit::Known(set), open) => match set {
                            true => Bit::Known(true),
                            false => open,
                        },
                        (_, open, Bit::Known(set)) | (_, Bit::Known(set), open) => {
                            turned(open, set)
                        }
                        _ => {
                            let words = "two values that are not known, taken together";
                            self.made(words, 1).bit(0)
                        }
                    };
                    joined.push(bit);
                }
                joined
            }
            _ => {
                return Err(Open::unknown(
                    "it changes bits in a way that is not known here",
                ));
            }
        };
        needed(self.registers.store_bits(dreg, &changed))?;
        Ok(Went::On)
    }

    fn meta(&mut self, meta: &MetaRef<'s>) -> Result<Went<'s>, Open> {
        let key = needed(meta.key())?;
        if let Some(register) = meta.sreg() {
            return self.set_meta(key, register);
        }
        let register = needed(meta.dreg())?;
        let order = match key {
            MetaKey::PROTOCOL
            | MetaKey::BRI_IIFVPROTO
            | MetaKey::IIFNAME
            | MetaKey::OIFNAME
            | MetaKey::IIFKIND
            | MetaKey::OIFKIND
            | MetaKey::SDIFNAME
            | MetaKey::BRI_IIFNAME
            | MetaKey::BRI_OIFNAME
            | MetaKey::BRI_IIFHWADDR => Order::Network,
            _ => Order::Host,
        };
        match self.flow.meta(key)? {
            Some(value) => self.store(register, &value, order),
            None => Ok(Went::Break),
        }
    }

    fn set_meta(&mut self, key: MetaKey, register: Register) -> Result<Went<'s>, Open> {
        let (field, length) = match key {
            MetaKey::MARK => (Field::Mark, 4),
            MetaKey::NFTRACE | MetaKey::PKTTYPE | MetaKey::BRI_BROUTE => (Field::Meta(key), 1),
            _ => (Field::Meta(key), 4),
        };
        let value = needed(self.registers.value(register, length, Order::Host))?;
        let value = self.flow.settled(&value);
        let words = self.flow.words(field, &value);
        self.flow.does(Action::Set {
            field,
            value: words,
        });
        self.flow.set(field, value);
        Ok(Went::On)
    }

    fn ct(&mut self, ct: &CtRef<'s>) -> Result<Went<'s>, Open> {
        let key = needed(ct.key())?;
        if let Some(register) = ct.sreg() {
            return self.set_ct(key, register);
        }
        let register = needed(ct.dreg())?;
        let direction = ct.direction().map(|direction| direction.0);
        let order = match key {
            CtKey::SRC
            | CtKey::DST
            | CtKey::SRC_IP
            | CtKey::DST_IP
            | CtKey::SRC_IP6
            | CtKey::DST_IP6
            | CtKey::PROTO_SRC
            | CtKey::PROTO_DST
            | CtKey::HELPER => Order::Network,
            _ => Order::Host,
        };
        match self.flow.ct(key, direction)? {
            Some(value) => self.store(register, &value, order),
            None => Ok(Went::Break),
        }
    }

    fn set_ct(&mut self, key: CtKey, register: Register) -> Result<Went<'s>, Open> {
        let (field, length) = match key {
            CtKey::MARK => (Field::CtMark, 4),
            CtKey::LABELS => (Field::Ct(key, None), 16),
            CtKey::ZONE => (Field::Ct(key, None), 2),
            CtKey::SECMARK | CtKey::EVENTMASK => (Field::Ct(key, None), 4),
            _ => {
                return Err(Open::unknown(
                    "it sets a key of `ct` that is not known here",
                ));
            }
        };
        // A zone is given before connection tracking sees the packet.
        if key != CtKey::ZONE && !self.flow.has_connection()? {
            return Ok(Went::On);
        }
        let mut value = needed(self.registers.value(register, length, Order::Host))?;
        if key == CtKey::LABELS {
            // Bits are added to those that are there.
            let before = self.flow.connection_labels()?;
            if let (Some(before), Some(more)) = (before, self.flow.known(&value)) {
                value = before.masked(!more, more);
            }
        }
        let value = self.flow.settled(&value);
        let words = self.flow.words(field, &value);
        self.flow.does(Action::Set {
            field,
            value: words,
        });
        self.flow.set(field, value);
        Ok(Went::On)
    }

    fn numgen(&mut self, numgen: &NumgenRef<'s>) -> Result<Went<'s>, Open> {
        let register = needed(numgen.dreg())?;
        let modulus = needed(numgen.modulus())?;
        let from = numgen.offset().unwrap_or_default();
        let (words, uniform) = match needed(numgen.numgen_type())? {
            NumgenType::RANDOM => ("a random number", true),
            NumgenType::INCREMENTAL => ("a number that counts packets", false),
            _ => return Err(Open::unknown("numbers are made in a way not known here")),
        };
        let value = self.drawn(words, modulus, from, uniform);
        self.store(register, &value, Order::Host)
    }

    /// A number from `from` on, of as many as `modulus` says.
    fn drawn(&mut self, words: &str, modulus: u32, from: u32, uniform: bool) -> Value {
        let (from, count) = (u128::from(from), u128::from(modulus.max(1)));
        let last = from + count - 1;
        let ranges = match last <= ones(32) {
            true => vec![(from, last)],
            false => vec![(from, ones(32)), (0, last & ones(32))],
        };
        self.flow.fresh(words, 32, ranges, uniform)
    }

    fn hash(&mut self, hash: &HashRef<'s>) -> Result<Went<'s>, Open> {
        let register = needed(hash.dreg())?;
        let modulus = needed(hash.modulus())?;
        let from = hash.offset().unwrap_or_default();
        if hash.hash_type().unwrap_or(HashType::JENKINS) == HashType::JENKINS {
            let source = needed(hash.sreg())?;
            let length = needed(hash.len())? as usize;
            let key = self.registers.known(self.flow, source, length.min(64));
            if let (Some(key), Some(seed)) = (key, hash.seed()) {
                let scaled = (u64::from(jhash(&key, seed)) * u64::from(modulus)) >> 32;
                let number = (scaled as u32).wrapping_add(from);
                let value = Value::known(number.into(), 32);
                return self.store(register, &value, Order::Host);
            }
        }
        let value = self.drawn("a hash whose seed or key is not known", modulus, from, true);
        self.store(register, &value, Order::Host)
    }

    /// The ends of a range in registers.
    fn ends(
        &self,
        first: Option<Register>,
        last: Option<Register>,
        length: usize,
    ) -> Result<Option<(Value, Value)>, Open> {
        let Some(register) = first else {
            return Ok(None);
        };
        let first = needed(self.registers.value(register, length, Order::Network))?;
        let last = match last {
            Some(register) => needed(self.registers.value(register, length, Order::Network))?,
            None => first.clone(),
        };
        Ok(Some((first, last)))
    }

    fn ports(
        &self,
        first: Option<Register>,
        last: Option<Register>,
    ) -> Result<Option<(Value, Value)>, Open> {
        self.ends(first, last, 2)
    }

    fn nat(&mut self, nat: &NatRef<'s>) -> Result<Went<'s>, Open> {
        const IPV4: u32 = 2;
        const IPV6: u32 = 10;
        let of = match nat.family() {
            Some(IPV4) => Family::Ipv4,
            Some(IPV6) => Family::Ipv6,
            // Of both: ports alone.
            _ => self.flow.family,
        };
        if of != self.flow.family {
            return Ok(Went::On);
        }
        let flags = nat.flags().unwrap_or_default();
        let destination = match needed(nat.nat_type())? {
            NatType::DNAT => true,
            NatType::SNAT => false,
            _ => {
                return Err(Open::unknown(
                    "it translates in a way that is not known here",
                ));
            }
        };
        let length = self.flow.address_bits() as usize / 8;
        let translation = Translation {
            addresses: self.ends(nat.addr_min(), nat.addr_max(), length)?,
            ports: self.ports(nat.proto_min(), nat.proto_max())?,
            netmap: flags.contains(NatRangeFlags::NETMAP),
            random: is_random(Some(flags)),
            ..Translation::new(destination, if destination { "dnat" } else { "snat" })
        };
        self.flow.translate(&translation).map(Went::Effect)
    }

    fn reject(&self, reject: &RejectRef<'s>) -> String {
        let code = reject.icmp_code().unwrap_or_default();
        match reject.reject_type() {
            Some(RejectType::TCP_RST) => "tcp reset".to_owned(),
            Some(RejectType::ICMPX_UNREACH) => {
                use crate::nft::expr::RejectIcmpxCode;
                match RejectIcmpxCode(code).name() {
                    Some(name) => format!("icmpx {name}"),
                    None => format!("icmpx code {code}"),
                }
            }
            _ => {
                let (protocol, names): (_, &[&str]) = match self.flow.family {
                    Family::Ipv4 => (
                        "icmp",
                        &[
                            "net-unreachable",
                            "host-unreachable",
                            "prot-unreachable",
                            "port-unreachable",
                        ],
                    ),
                    Family::Ipv6 => (
                        "icmpv6",
                        &[
                            "no-route",
                            "admin-prohibited",
                            "beyond-scope",
                            "addr-unreachable",
                            "port-unreachable",
                        ],
                    ),
                };
                match names.get(usize::from(code)) {
                    Some(name) => format!("{protocol} {name}"),
                    None => format!("{protocol} code {code}"),
                }
            }
        }
    }

    /// Goes on below a bound, or beyond it if that is turned round.
    fn bounded(&mut self, words: String, inverted: bool) -> Result<Went<'s>, Open> {
        Ok(match self.flow.once(words, None)? != inverted {
            true => Went::Break,
            false => Went::On,
        })
    }

    /// The set of this name.
    fn set(&self, name: &BStr) -> Result<Arc<Set<'s>>, Open> {
        let set = self.table.set(name);
        set.ok_or_else(|| Open::unknown(format!("there is no set {name}")))
    }

    fn lookup(&mut self, lookup: &LookupRef<'s>) -> Result<Went<'s>, Open> {
        let set = self.set(needed(lookup.set())?)?;
        let register = needed(lookup.sreg())?;
        let inverted = lookup
            .flags()
            .unwrap_or_default()
            .contains(LookupFlags::INV);
        let found = self
            .flow
            .lookup(self.registers, self.changes, self.table, &set, register)?;
        let Some(found) = found else {
            return Ok(match inverted {
                true => Went::On,
                false => Went::Break,
            });
        };
        if inverted {
            return Ok(Went::Break);
        }
        if let Found::Element(element) = &found {
            let one = element.expression();
            let one = one.as_ref().and_then(|one| one.decode().ok());
            let several = element.expressions().into_iter().flatten();
            let several = several.filter_map(|one| one.and_then(|one| one.decode()).ok());
            for expression in one.into_iter().chain(several) {
                if let Went::Break = self.of_element(&expression)? {
                    return Ok(Went::Break);
                }
            }
        }
        let Some(dreg) = lookup.dreg() else {
            return Ok(Went::On);
        };
        match found {
            Found::Element(element) => self.store_data(dreg, &needed(element.data())?),
            Found::Added(bits) if bits.is_empty() => Err(Open::unknown(format!(
                "what {} has for the key is not known",
                set.name
            ))),
            Found::Added(bits) => {
                needed(self.registers.store_bits(dreg, &bits))?;
                Ok(Went::On)
            }
        }
    }

    /// An expression that goes with an element.
    fn of_element(&mut self, expression: &Decoded<'_>) -> Result<Went<'s>, Open> {
        match expression {
            Decoded::Limit(limit) => {
                let words = rate(
                    limit.rate.unwrap_or_default(),
                    limit.unit.unwrap_or_default(),
                    limit.limit_type == Some(LimitType::BYTES),
                );
                let flags = limit.flags.unwrap_or_default();
                self.bounded(
                    format!("{words} for this element"),
                    flags.contains(LimitFlags::INV),
                )
            }
            Decoded::Quota(quota) => {
                let words = quota_words(quota.bytes.unwrap_or_default());
                let flags = quota.flags.unwrap_or_default();
                self.bounded(
                    format!("{words} for this element"),
                    flags.contains(QuotaFlags::INV),
                )
            }
            Decoded::Connlimit(connlimit) => {
                let words = connections(connlimit.count.unwrap_or_default());
                let flags = connlimit.flags.unwrap_or_default();
                self.bounded(
                    format!("{words} for this element"),
                    flags.contains(ConnlimitFlags::INV),
                )
            }
            Decoded::Counter(_) | Decoded::Last(_) => Ok(Went::On),
            other => Err(Open::unknown(format!(
                "the expression `{}` of an element is not known here",
                other.name()
            ))),
        }
    }

    fn dynset(&mut self, dynset: &DynsetRef<'s>) -> Result<Went<'s>, Open> {
        let set = self.set(needed(dynset.set_name())?)?;
        let key_register = needed(dynset.sreg_key())?;
        let delete = match needed(dynset.op())? {
            DynsetOp::ADD | DynsetOp::UPDATE => false,
            DynsetOp::DELETE => true,
            _ => return Err(Open::unknown("it changes a set in a way not known here")),
        };
        let flags = dynset.flags().unwrap_or_default();
        let key = needed(self.registers.bits(key_register, set.key_length))?;
        let data = match dynset.sreg_data() {
            None => Vec::new(),
            Some(register) => {
                let held = self.table.table.set(set.name);
                let length = held.and_then(|held| held.set().data_length());
                needed(
                    self.registers
                        .bits(register, length.unwrap_or_default() as usize),
                )?
            }
        };
        let one = dynset.expr();
        let one = one.as_ref().and_then(|one| one.decode().ok());
        let several = dynset.expressions().into_iter().flatten();
        let several = several.filter_map(|one| one.and_then(|one| one.decode()).ok());
        let mut goes_on = true;
        if !delete {
            for expression in one.into_iter().chain(several) {
                if let Went::Break = self.of_element(&expression)? {
                    goes_on = false;
                    break;
                }
            }
        }
        let words = set.key_words(self.flow, &key);
        self.flow.does(Action::Update {
            set: set.name.to_owned(),
            key: words,
            delete,
        });
        self.changes.push(SetChange {
            table: self.table.number,
            set: set.name.to_owned(),
            key: key.into(),
            data: data.into(),
            delete,
        });
        // Inverted, it goes on only where the set took nothing.
        if flags.contains(DynsetFlags::INV) {
            goes_on = false;
        }
        Ok(match goes_on {
            true => Went::On,
            false => Went::Break,
        })
    }

    fn exthdr(&mut self, exthdr: &ExthdrRef<'s>) -> Result<Went<'s>, Open> {
        let op = exthdr.op().unwrap_or(ExthdrOp::IPV6);
        let option = PacketOption {
            of: op.0 as u8,
            kind: needed(exthdr.header_type())?,
        };
        let offset = exthdr.offset().unwrap_or_default();
        let length = exthdr.len().unwrap_or_default();
        let is_there = self.flow.has_option(option)?;
        let Some(register) = exthdr.dreg() else {
            if is_there {
                let verb = match exthdr.sreg() {
                    Some(_) => "changed",
                    None => "taken out",
                };
                self.flow.does(Action::Other(format!("{option} {verb}")));
                let changed = |field| matches!(field, Field::OptionByte(of, _) if of == option);
                self.flow.forget_if(changed);
            } else if exthdr.sreg().is_some() {
                return Ok(Went::Break);
            }
            return Ok(Went::On);
        };
        let flags = exthdr.flags().unwrap_or_default();
        if flags.contains(ExthdrFlags::PRESENT) {
            let value = Value::known(is_there.into(), 8);
            return self.store(register, &value, Order::Host);
        }
        if !is_there {
            return Ok(Went::Break);
        }
        let mut bits = Vec::new();
        for at in offset..offset.saturating_add(length.min(64)) {
            let byte = self.flow.get(Field::OptionByte(option, at as u16));
            bits.extend(byte.to_bits());
        }
        needed(self.registers.store_bits(register, &bits))?;
        Ok(Went::On)
    }

    fn objref(&mut self, objref: &ObjrefRef<'s>) -> Result<Went<'s>, Open> {
        let (kind, name) = match objref.set_sreg() {
            None => (needed(objref.imm_type())?, needed(objref.imm_name())?),
            Some(register) => {
                let name = needed(objref.set_name())?;
                let set = self.set(name)?;
                let found =
                    self.flow
                        .lookup(self.registers, self.changes, self.table, &set, register)?;
                let element = match found {
                    None => return Ok(Went::Break),
                    Some(Found::Element(element)) => element,
                    Some(Found::Added(_)) => {
                        return Err(Open::unknown(format!(
                            "which object {name} has for the key is not known"
                        )));
                    }
                };
                let held = needed(self.table.table.set(name))?;
                (needed(held.set().object_type())?, needed(element.object())?)
            }
        };
        let object = self.table.table.object(kind, name);
        let data = object.as_ref().and_then(|object| object.data());
        match (kind, data) {
            (ObjectType::COUNTER, _) => Ok(Went::On),
            (ObjectType::QUOTA, Some(ObjectData::Quota(quota))) => {
                let flags = quota.flags.unwrap_or_default();
                let words = quota_words(quota.bytes.unwrap_or_default());
                self.bounded(format!("{words} ({name})"), flags.contains(QuotaFlags::INV))
            }
            (ObjectType::LIMIT, Some(ObjectData::Limit(limit))) => {
                let words = rate(
                    limit.rate.unwrap_or_default(),
                    limit.unit.unwrap_or_default(),
                    limit.limit_type == Some(LimitType::BYTES),
                );
                let flags = limit.flags.unwrap_or_default();
                self.bounded(format!("{words} ({name})"), flags.contains(LimitFlags::INV))
            }
            (ObjectType::CONNLIMIT, Some(ObjectData::Connlimit(connlimit))) => {
                let flags = connlimit.flags.unwrap_or_default();
                let words = connections(connlimit.count.unwrap_or_default());
                self.bounded(
                    format!("{words} ({name})"),
                    flags.contains(ConnlimitFlags::INV),
                )
            }
            (ObjectType::SYNPROXY, _) => self.synproxy(),
            (
                ObjectType::CT_HELPER
                | ObjectType::CT_TIMEOUT
                | ObjectType::CT_EXPECT
                | ObjectType::SECMARK
                | ObjectType::TUNNEL,
                _,
            ) => {
                let kind = kind.name().unwrap_or("object");
                self.flow
                    .does(Action::Other(format!("{kind} {name} is given to it")));
                Ok(Went::On)
            }
            _ => Err(Open::unknown(format!(
                "the object {name} is not there, or of a type that is not known here"
            ))),
        }
    }

    fn has_flags(&mut self, flags: u128) -> Result<bool, Open> {
        if self.flow.is_later_fragment()? {
            return Ok(false);
        }
        let test = Test::Masked {
            mask: flags,
            value: flags,
        };
        self.flow.is(Field::TcpFlags, test)
    }

    fn synproxy(&mut self) -> Result<Went<'s>, Open> {
        if !self.flow.is(Field::Protocol, Test::Is(TCP))? || self.flow.is_later_fragment()? {
            return Ok(Went::Break);
        }
        Ok(if self.has_flags(SYN)? || self.has_flags(ACK)? {
            Went::Effect(Effect::Stolen("answered by synproxy".to_owned()))
        } else {
            Went::On
        })
    }

    fn tproxy(&mut self, tproxy: &TproxyRef<'s>) -> Result<Went<'s>, Open> {
        const WITH_SOCKETS: [(u128, u128); 2] = [(6, 6), (17, 17)];
        let family = match tproxy.family() {
            Some(2) => Some(Family::Ipv4),
            Some(10) => Some(Family::Ipv6),
            _ => None,
        };
        if family.is_some_and(|family| family != self.flow.family)
            || !self.flow.is(Field::Protocol, Test::Among(&WITH_SOCKETS))?
            || self.flow.is_later_fragment()?
        {
            return Ok(Went::Break);
        }
        let port = match tproxy.reg_port() {
            Some(register) => needed(self.registers.value(register, 2, Order::Network))?,
            None => self.flow.get(Field::DestinationPort),
        };
        let port = self.flow.words(Field::DestinationPort, &port);
        let words = format!("a transparent socket listens on port {port}");
        if !self.flow.always(words)? {
            return Ok(Went::Break);
        }
        self.flow.does(Action::Other(format!(
            "given to the transparent socket on port {port}"
        )));
        self.flow.note(
            "a packet for a transparent socket is delivered only where the routes have it so",
        );
        Ok(Went::On)
    }

    fn inner(&mut self, inner: &crate::nft::expr::InnerRef<'s>) -> Result<Went<'s>, Open> {
        if !self
            .flow
            .always("a packet that rules know is inside its tunnel")?
        {
            return Ok(Went::Break);
        }
        let nested = needed(inner.expr())?;
        let (register, bits) = match nested.decode() {
            Ok(Decoded::Payload(payload)) => (payload.dreg, payload.len.unwrap_or_default() * 8),
            Ok(Decoded::Meta(meta)) => {
                let key = meta.key.unwrap_or_default();
                let field = Field::Meta(key);
                (meta.dreg, field.bits(self.flow.family))
            }
            _ => (None, 0),
        };
        let register = needed(register)?;
        if bits == 0 || bits > 128 {
            return Err(Open::unknown("it reads what is inside a tunnel"));
        }
        let value = self.made("what is inside its tunnel", bits);
        self.store(register, &value, Order::Network)
    }
}

/// The answer of a match, or both where it cannot be evaluated: which is named.
pub(super) fn decided(
    flow: &mut Flow,
    answer: Result<bool, Open>,
    read: &xt::Match,
) -> Result<bool, Open> {
    match answer {
        Err(Open::Unknown(why)) => {
            let name = read.name();
            flow.always(format!("unknown: the match `{name}` says yes ({why})"))
        }
        answer => answer,
    }
}

enum Side {
    Below,
    Above,
}

impl Side {
    const fn is_below(&self) -> bool {
        matches!(self, Self::Below)
    }
}

const fn turned(bit: Bit, turn: bool) -> Bit {
    match bit {
        Bit::Known(set) => Bit::Known(set != turn),
        Bit::Of { unknown, bit, not } => Bit::Of {
            unknown,
            bit,
            not: not != turn,
        },
    }
}

/// Bytes as a number, the first on top.
fn number(bytes: &[u8]) -> Result<u128, Open> {
    if bytes.len() > 16 {
        return Err(Open::unknown(
            "it compares more than sixteen bytes by their order",
        ));
    }
    Ok(bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte)))
}

fn is_random(flags: Option<NatRangeFlags>) -> bool {
    flags
        .unwrap_or_default()
        .intersects(NatRangeFlags::PROTO_RANDOM | NatRangeFlags::PROTO_RANDOM_FULLY)
}

fn rate(rate: u64, seconds: u64, bytes: bool) -> String {
    let what = if bytes { "bytes" } else { "packets" };
    let unit = match seconds {
        1 => "second".to_owned(),
        60 => "minute".to_owned(),
        3600 => "hour".to_owned(),
        86400 => "day".to_owned(),
        604_800 => "week".to_owned(),
        other => format!("{other} seconds"),
    };
    format!("the rate of {rate} {what} a {unit} is exceeded")
}

fn quota_words(bytes: u64) -> String {
    format!("the quota of {bytes} bytes is used up")
}

fn connections(count: u32) -> String {
    format!("there are more than {count} connections")
}

/// The hash function of Bob Jenkins (lookup3), as the kernel has it for bytes.
fn jhash(key: &[u8], seed: u32) -> u32 {
    const START: u32 = 0xdead_beef;
    let word = |bytes: &[u8]| {
        let bytes = bytes.iter().rev();
        bytes.fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
    };
    let start = START.wrapping_add(key.len() as u32).wrapping_add(seed);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = key;
    while rest.len() > 12 {
        a = a.wrapping_add(word(&rest[..4]));
        b = b.wrapping_add(word(&rest[4..8]));
        c = c.wrapping_add(word(&rest[8..12]));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    let part = |at: usize| {
        let from = at.min(rest.len());
        word(&rest[from..(at + 4).min(rest.len())])
    };
    a = a.wrapping_add(part(0));
    b = b.wrapping_add(part(4));
    c = c.wrapping_add(part(8));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

impl Flow {
    /// Whether the packet has an option, an extension header or a chunk.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn has_option(&mut self, option: PacketOption) -> Result<bool, Open> {
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
            ExthdrOp::SCTP => 132,
            ExthdrOp::DCCP => 33,
            _ => return Err(Open::unknown("it reads an option of a kind not known here")),
        };
        if !self.is(Field::Protocol, Test::Is(protocol))? || self.is_later_fragment()? {
            return Ok(false);
        }
        self.is(Field::Has(option), Test::Is(1))
    }

    /// What a key of `meta` says; `None` where the rule goes no further.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn meta(&mut self, key: MetaKey) -> Result<Option<Value>, Open> {
        let is_ipv4 = self.family == Family::Ipv4;
        let (has_in, has_out) = (self.has_in(), self.has_out());
        let value = match key {
            MetaKey::LEN => self.get(Field::Length),
            MetaKey::PROTOCOL => Value::known(if is_ipv4 { 0x0800 } else { 0x86dd }, 16),
            MetaKey::NFPROTO => Value::known(if is_ipv4 { 2 } else { 10 }, 8),
            MetaKey::L4PROTO => self.get(Field::Protocol),
            MetaKey::MARK => self.get(Field::Mark),
            MetaKey::IIF if has_in => self.get(Field::InIndex),
            MetaKey::OIF if has_out => self.get(Field::OutIndex),
            MetaKey::IIFNAME if has_in => self.get(Field::InName),
            MetaKey::OIFNAME if has_out => self.get(Field::OutName),
            MetaKey::IIF | MetaKey::OIF => Value::known(0, 32),
            MetaKey::IIFNAME | MetaKey::OIFNAME => Value::known(0, 128),
            MetaKey::IIFTYPE | MetaKey::IIFGROUP | MetaKey::IIFKIND if !has_in => return Ok(None),
            MetaKey::OIFTYPE | MetaKey::OIFGROUP | MetaKey::OIFKIND if !has_out => return Ok(None),
            MetaKey::SKUID | MetaKey::SKGID => {
                if !self.has_sender()? {
                    return Ok(None);
                }
                self.get(Field::Meta(key))
            }
            MetaKey::RTCLASSID if self.hook == Hook::Prerouting && !self.tracking.looped => {
                return Ok(None);
            }
            MetaKey::PKTTYPE => self.packet_type(),
            MetaKey::PRANDOM => self.fresh("a random number", 32, vec![(0, ones(32))], true),
            MetaKey::SECPATH => {
                if self.peek(Field::Meta(key)).is_none() {
                    self.limit(Field::Meta(key), vec![(0, 1)]);
                }
                self.get(Field::Meta(key))
            }
            MetaKey::NFTRACE => {
                if self.peek(Field::Meta(key)).is_none() {
                    self.set_number(Field::Meta(key), 0);
                }
                self.get(Field::Meta(key))
            }
            MetaKey::TIME_DAY => {
                if self.peek(Field::Meta(key)).is_none() {
                    self.limit(Field::Meta(key), vec![(0, 6)]);
                }
                self.get(Field::Meta(key))
            }
            MetaKey::TIME_HOUR => {
                if self.peek(Field::Meta(key)).is_none() {
                    self.limit(Field::Meta(key), vec![(0, 86399)]);
                }
                self.get(Field::Meta(key))
            }
            // Of bridges' own chains.
            MetaKey::BRI_IIFNAME
            | MetaKey::BRI_OIFNAME
            | MetaKey::BRI_IIFPVID
            | MetaKey::BRI_IIFVPROTO
            | MetaKey::BRI_IIFHWADDR => return Ok(None),
            _ if key.name().is_none() => {
                return Err(Open::unknown(
                    "it reads a key of `meta` that is not known here",
                ));
            }
            _ => self.get(Field::Meta(key)),
        };
        Ok(Some(value))
    }

    /// Whether the packet's sender is a socket of this machine that rules see here.
    ///
    /// # Errors
    /// The branch splits.
    pub(super) fn has_sender(&mut self) -> Result<bool, Open> {
        let from_here = matches!(self.place.direction, Direction::Out | Direction::Local);
        match (from_here, self.hook) {
            (true, Hook::Output | Hook::Postrouting) => {
                let known = |flow: &Self| {
                    [MetaKey::SKUID, MetaKey::SKGID]
                        .iter()
                        .any(|key| flow.peek(Field::Meta(*key)).is_some())
                };
                if known(self) && self.peek(Field::HasSender).is_none() {
                    self.set_number(Field::HasSender, 1);
                }
                self.is(Field::HasSender, Test::Is(1))
            }
            // A socket may take it early.
            (false, Hook::Input) => match self.state_is(State::New)? {
                true => Ok(false),
                false => self.is(Field::HasSender, Test::Is(1)),
            },
            _ => Ok(false),
        }
    }

    /// The packet's kind on its link (`PACKET_*`).
    pub(super) fn packet_type(&mut self) -> Value {
        const TYPE: Field = Field::Meta(MetaKey::PKTTYPE);
        const OTHER_HOST: u128 = 3;
        if self.peek(TYPE).is_none() {
            let sent = matches!(self.place.direction, Direction::Out | Direction::Local);
            let to_host = match self.number(Field::Destination) {
                Some(number) => {
                    let address = super::route::address(self.family, number);
                    !address.is_multicast() && number != ones(32)
                }
                None => false,
            };
            // What goes on to another machine was for this one on its link.
            if sent || self.place.direction == Direction::Forwarded && to_host {
                self.set_number(TYPE, 0);
            } else {
                self.limit(TYPE, vec![(0, OTHER_HOST)]);
            }
        }
        self.get(TYPE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of `jhash` in Linux's `linux/jhash.h`, as its users' own tests and lookup3's published values have it: the
    /// empty key gives the start value, with its seed.
    #[test]
    fn hashes() {
        assert_eq!(jhash(b"", 0), 0xdead_beef);
        assert_eq!(jhash(b"", 0xdead_beef), 0xbd5b_7dde);
        // lookup3.c, its driver5: hashlittle of this text with seeds 0 and 1.
        let text = b"Four score and seven years ago";
        assert_eq!(jhash(text, 0), 0x1777_0551);
        assert_eq!(jhash(text, 1), 0xcd62_8161);
    }

    /// Any expression of each kind, on packets of which everything or nothing is known: it is carried out, or it splits the
    /// branch into parts that there can be, in which it is carried out in the end, or it says why it cannot be.
    #[cfg(feature = "model")]
    #[test]
    fn no_expression_is_passed_over() {
        use proptest::strategy::{Strategy, ValueTree};
        use proptest::test_runner::TestRunner;

        use crate::nft::expr::{Expressions, NAMES};
        use crate::nft::live::Model;
        use crate::nft::{Connection, Family as NftFamily, Scope, Table, Transaction};
        use crate::walk::flow::Place;
        use crate::walk::{Node, Packet, Rules};

        let mut nft: Connection = Model::new().connect().unwrap();
        let mut tx = Transaction::new();
        tx.add(&Table::new(NftFamily::INET, "t")).unwrap();
        nft.commit(&tx).unwrap();
        let snapshot = nft.snapshot(Scope::all()).unwrap();
        let mut runner = TestRunner::deterministic();
        let kinds = Decoded::strategies(1);
        assert_eq!(kinds.len(), NAMES.len() + 1);
        let mut unknown = 0;
        for (kind, strategy) in kinds {
            for turn in 0..24 {
                let decoded = strategy.new_tree(&mut runner).unwrap().current();
                let mut list = Expressions::new();
                list.push_decoded(&decoded);
                let Some(Ok(expression)) = list.iter().next() else {
                    continue; // too long for a rule
                };
                let rules = Rules::new().with_nft(&snapshot);
                let (family, addresses) = match turn % 2 {
                    0 => (Family::Ipv4, ["192.0.2.1:1", "192.0.2.2:80"]),
                    _ => (Family::Ipv6, ["[2001:db8::1]:1", "[2001:db8::2]:80"]),
                };
                let hook = Hook::ALL[turn % 5];
                let direction = match hook {
                    Hook::Output | Hook::Postrouting => Direction::Out,
                    _ => Direction::In,
                };
                let place = Place {
                    node: Node::default(),
                    direction,
                    sets_may_differ: true,
                };
                let mut flow = Flow::new(family, hook, Arc::new(place));
                if turn % 4 < 2 {
                    let [from, to] = addresses.map(|address| address.parse().unwrap());
                    let packet = Packet::tcp(direction, from, to);
                    super::super::engine::enter(&mut flow, &packet);
                    flow.track();
                }
                let mut parts = vec![(flow, Registers::new(), Vec::new())];
                let mut carried_out = 0;
                while let Some((mut flow, mut registers, mut changes)) = parts.pop() {
                    flow.begin();
                    let mut machine = Machine {
                        flow: &mut flow,
                        registers: &mut registers,
                        changes: &mut changes,
                        table: &rules.tables()[0],
                    };
                    match machine.carry_out(&expression) {
                        Ok(_) => {}
                        Err(Open::Unknown(why)) => {
                            assert!(!why.is_empty(), "{kind}");
                            unknown += 1;
                        }
                        Err(Open::Split(ways)) => {
                            assert!(ways.len() > 1, "{kind}: {decoded}");
                            for way in ways {
                                let mut part = flow.clone();
                                assert!(part.take(&way), "{kind}: {decoded}: {way:?}");
                                parts.push((part, registers.clone(), changes.clone()));
                            }
                        }
                    }
                    carried_out += 1;
                    assert!(carried_out < 10_000, "{kind}: {decoded}");
                }
            }
        }
        assert!(unknown > 0);
    }
}
