//! Loads of packet data into registers, and writes back.

use super::{Continuation, Evaluator, needed};
use crate::field::{Field, PacketOption};
use crate::headers::{SYN, TCP};
use crate::path_state::Undetermined;
use crate::registers::Order;
use crate::steps::Action;
use crate::value::{Test, Value};
use crate::value_set::ones;
use chainwright::nft::expr::{
    CtKey, CtRef, Decoded, ExthdrFlags, ExthdrOp, ExthdrRef, FibFlags, FibRef, FibResult, InnerRef,
    MetaKey, MetaRef, OsfRef, PayloadRef, Register, RtKey, RtRef, SocketKey, SocketRef, TunnelKey,
    TunnelRef, XfrmKey, XfrmRef,
};

impl<'s> Evaluator<'_, 's> {
    pub(super) fn payload(
        &mut self,
        payload: &PayloadRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let (base, offset) = (needed(payload.base())?, needed(payload.offset())?);
        let length = needed(payload.len())?;
        if let Some(register) = payload.sreg() {
            if length > 16 {
                return Err(Undetermined::unknown(
                    "it writes more than sixteen bytes at once",
                ));
            }
            let value = needed(
                self.registers
                    .value(register, length as usize, Order::Network),
            )?;
            if !self.path_state.write_header(base, offset, &value)? {
                return Ok(Continuation::Break);
            }
            let shown = match self.path_state.known(&value) {
                Some(number) => format!("{number:#x}"),
                None => "an unknown value".to_owned(),
            };
            let base = base.name().unwrap_or("unknown");
            self.path_state.record_action(Action::Other(format!(
                "{length} bytes at offset {offset} of the {base} header set to {shown}"
            )));
            return Ok(Continuation::On);
        }
        let register = needed(payload.dreg())?;
        if length > 16 {
            let mut bits = Vec::with_capacity(length.min(64) as usize * 8);
            for at in (0..length.min(64)).step_by(16) {
                let some = (length - at).min(16);
                match self
                    .path_state
                    .header(base, offset.saturating_add(at), some)?
                {
                    Some(value) => bits.extend(value.to_bits()),
                    None => return Ok(Continuation::Break),
                }
            }
            needed(self.registers.store_bits(register, &bits))?;
            return Ok(Continuation::On);
        }
        match self.path_state.header(base, offset, length)? {
            Some(value) => self.store(register, &value, Order::Network),
            None => Ok(Continuation::Break),
        }
    }

    pub(super) fn meta(&mut self, meta: &MetaRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let key = needed(meta.key())?;
        if let Some(register) = meta.sreg() {
            return self.set_meta(key, register);
        }
        let register = needed(meta.dreg())?;
        match self.path_state.meta(key)? {
            Some(value) => self.store(register, &value, meta_order(key)),
            None => Ok(Continuation::Break),
        }
    }

    fn set_meta(
        &mut self,
        key: MetaKey,
        register: Register,
    ) -> Result<Continuation<'s>, Undetermined> {
        let (field, length) = match key {
            MetaKey::MARK => (Field::Mark, 4),
            MetaKey::NFTRACE | MetaKey::PKTTYPE | MetaKey::BRI_BROUTE => (Field::Meta(key), 1),
            _ => (Field::Meta(key), 4),
        };
        let value = needed(self.registers.value(register, length, Order::Host))?;
        self.path_state.give(field, &value);
        Ok(Continuation::On)
    }

    pub(super) fn ct(&mut self, ct: &CtRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let key = needed(ct.key())?;
        if let Some(register) = ct.sreg() {
            return self.set_ct(key, register);
        }
        let register = needed(ct.dreg())?;
        let direction = ct.direction().map(|direction| direction.0);
        match self.path_state.ct(key, direction)? {
            Some(value) => self.store(register, &value, ct_order(key)),
            None => Ok(Continuation::Break),
        }
    }

    fn set_ct(&mut self, key: CtKey, register: Register) -> Result<Continuation<'s>, Undetermined> {
        let (field, length) = match key {
            CtKey::MARK => (Field::CtMark, 4),
            CtKey::LABELS => (Field::Ct(key, None), 16),
            CtKey::ZONE => (Field::Ct(key, None), 2),
            CtKey::SECMARK | CtKey::EVENTMASK => (Field::Ct(key, None), 4),
            _ => {
                return Err(Undetermined::unknown("it sets an unsupported `ct` key"));
            }
        };
        // The zone is set before connection tracking sees the packet.
        if key != CtKey::ZONE && !self.path_state.has_connection()? {
            return Ok(Continuation::On);
        }
        let mut value = needed(self.registers.value(register, length, Order::Host))?;
        if key == CtKey::LABELS {
            // Labels are added to existing ones.
            let before = self.path_state.connection_labels()?;
            if let (Some(before), Some(more)) = (before, self.path_state.known(&value)) {
                value = before.masked(!more, more);
            }
        }
        self.path_state.give(field, &value);
        Ok(Continuation::On)
    }

    pub(super) fn exthdr(
        &mut self,
        exthdr: &ExthdrRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let op = exthdr.op().unwrap_or(ExthdrOp::IPV6);
        let option = PacketOption {
            of: op.0 as u8,
            kind: needed(exthdr.header_type())?,
        };
        let offset = exthdr.offset().unwrap_or_default();
        let length = exthdr.len().unwrap_or_default();
        let is_present = self.path_state.has_option(option)?;
        let Some(register) = exthdr.dreg() else {
            if is_present {
                let verb = match exthdr.sreg() {
                    Some(_) => "changed",
                    None => "removed",
                };
                self.path_state
                    .record_action(Action::Other(format!("{option} {verb}")));
                let changed = |field| matches!(field, Field::OptionByte(of, _) if of == option);
                self.path_state.forget_if(changed);
                if exthdr.sreg().is_none() {
                    self.path_state.set_number(Field::Has(option), 0);
                }
            } else if exthdr.sreg().is_some() {
                return Ok(Continuation::Break);
            }
            return Ok(Continuation::On);
        };
        let flags = exthdr.flags().unwrap_or_default();
        if flags.contains(ExthdrFlags::PRESENT) {
            let value = Value::known(is_present.into(), 8);
            return self.store(register, &value, Order::Host);
        }
        if !is_present {
            return Ok(Continuation::Break);
        }
        let mut bits = Vec::new();
        for at in offset..offset.saturating_add(length.min(64)) {
            let byte = self.path_state.get(Field::OptionByte(option, at as u16));
            bits.extend(byte.to_bits());
        }
        needed(self.registers.store_bits(register, &bits))?;
        Ok(Continuation::On)
    }

    /// Creates an unknown with this many bits.
    pub(super) fn new_unknown(&mut self, description: &str, bits: u32) -> Value {
        self.path_state
            .new_unknown(description, bits, vec![(0, ones(bits))], false)
    }

    pub(super) fn fib(&mut self, fib: &FibRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let flags = needed(fib.flags())?;
        let (result, register) = (needed(fib.result())?, needed(fib.dreg())?);
        let value = self.path_state.fib(flags, result);
        let is_name = result == FibResult::OIFNAME && !flags.contains(FibFlags::PRESENT);
        let order = match is_name {
            true => Order::Network,
            false => Order::Host,
        };
        self.store(register, &value, order)
    }

    pub(super) fn route(&mut self, rt: &RtRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let key = needed(rt.key())?;
        let Some(value) = self.path_state.route(key) else {
            return Ok(Continuation::Break);
        };
        let order = match key {
            RtKey::NEXTHOP4 | RtKey::NEXTHOP6 => Order::Network,
            _ => Order::Host,
        };
        self.store(needed(rt.dreg())?, &value, order)
    }

    pub(super) fn socket(
        &mut self,
        socket: &SocketRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let key = needed(socket.key())?;
        if !self.path_state.is(Field::HasSocket, Test::Is(1))? {
            return Ok(Continuation::Break);
        }
        let level = match key {
            SocketKey::CGROUPV2 => socket.level().unwrap_or_default(),
            _ => 0,
        };
        let value = self.path_state.socket(key, level);
        self.store(needed(socket.dreg())?, &value, Order::Host)
    }

    pub(super) fn osf(&mut self, osf: &OsfRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        if !self.path_state.is(Field::Protocol, Test::Is(TCP))?
            || !self.path_state.has_tcp_flags(SYN)?
        {
            return Ok(Continuation::Break);
        }
        let value = self.new_unknown("the operating system guessed from its SYN", 128);
        self.store(needed(osf.dreg())?, &value, Order::Network)
    }

    pub(super) fn tunnel(
        &mut self,
        tunnel: &TunnelRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let key = needed(tunnel.key())?;
        let is_present = self.path_state.always("the packet has tunnel metadata")?;
        let value = match (key, is_present) {
            (TunnelKey::PATH, _) => Value::known(is_present.into(), 8),
            (_, false) => return Ok(Continuation::Break),
            (_, true) => self.new_unknown("the tunnel id", 32),
        };
        self.store(needed(tunnel.dreg())?, &value, Order::Host)
    }

    pub(super) fn xfrm(&mut self, xfrm: &XfrmRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let key = needed(xfrm.key())?;
        if !self.path_state.always("the packet is processed by IPsec")? {
            return Ok(Continuation::Break);
        }
        let (bits, order) = match key {
            XfrmKey::DADDR_IP4 | XfrmKey::SADDR_IP4 => (32, Order::Network),
            XfrmKey::DADDR_IP6 | XfrmKey::SADDR_IP6 => (128, Order::Network),
            _ => (32, Order::Host),
        };
        let value = self.new_unknown("a value of its IPsec state", bits);
        self.store(needed(xfrm.dreg())?, &value, order)
    }

    pub(super) fn inner(&mut self, inner: &InnerRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        if !self
            .path_state
            .always("its tunnel has a packet that rules can read")?
        {
            return Ok(Continuation::Break);
        }
        let nested = needed(inner.expr())?;
        let (register, bits) = match nested.decode() {
            Ok(Decoded::Payload(payload)) => (payload.dreg, payload.len.unwrap_or_default() * 8),
            Ok(Decoded::Meta(meta)) => {
                let key = meta.key.unwrap_or_default();
                let field = Field::Meta(key);
                (meta.dreg, field.bits(self.path_state.family))
            }
            _ => (None, 0),
        };
        let register = needed(register)?;
        if bits == 0 || bits > 128 {
            return Err(Undetermined::unknown("it reads inside a tunnel"));
        }
        let value = self.new_unknown("the contents of its tunnel", bits);
        self.store(register, &value, Order::Network)
    }
}

/// Returns the byte order in which the kernel stores a `meta` key in a register.
pub(crate) const fn meta_order(key: MetaKey) -> Order {
    match key {
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
    }
}

/// Returns the byte order in which the kernel stores a `ct` key in a register.
pub(crate) const fn ct_order(key: CtKey) -> Order {
    match key {
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
    }
}
