//! Statements.

use super::{Continuation, Evaluator, needed};
use crate::field::Field;
use crate::headers::{ACK, SYN, TCP};
use crate::nat::Translation;
use crate::path_state::{Effect, Undetermined};
use crate::registers::Order;
use crate::reject::RejectReply;
use crate::steps::Action;
use crate::value::{Test, Value};
use chainwright::nft::Family as NftFamily;
use chainwright::nft::expr::{
    DupRef, MasqRef, NatRangeFlags, NatRef, NatType, QueueFlags, QueueRef, RedirRef, Register,
    RejectIcmpxCode, RejectRef, RejectType, TproxyRef,
};
use chainwright::xt::Family;

impl<'s> Evaluator<'_, 's> {
    /// Returns the ends of a range in registers.
    fn ends(
        &self,
        first: Option<Register>,
        last: Option<Register>,
        length: usize,
    ) -> Result<Option<(Value, Value)>, Undetermined> {
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
    ) -> Result<Option<(Value, Value)>, Undetermined> {
        self.ends(first, last, 2)
    }

    pub(super) fn nat(&mut self, nat: &NatRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        // Without a family, the statement is for both: it only has ports.
        if only(nat.family()).is_some_and(|family| family != self.path_state.family) {
            return Ok(Continuation::On);
        }
        let flags = nat.flags().unwrap_or_default();
        let destination = match needed(nat.nat_type())? {
            NatType::DNAT => true,
            NatType::SNAT => false,
            _ => {
                return Err(Undetermined::unknown("it translates in an unsupported way"));
            }
        };
        let length = self.path_state.address_bits() as usize / 8;
        let translation = Translation {
            addresses: self.ends(nat.addr_min(), nat.addr_max(), length)?,
            ports: self.ports(nat.proto_min(), nat.proto_max())?,
            netmap: flags.contains(NatRangeFlags::NETMAP),
            random: is_random(Some(flags)),
            ..Translation::new(destination, if destination { "dnat" } else { "snat" })
        };
        self.path_state
            .translate(&translation)
            .map(Continuation::Effect)
    }

    pub(super) fn masq(&mut self, masq: &MasqRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let ports = self.ports(masq.proto_min(), masq.proto_max())?;
        let random = is_random(masq.flags());
        self.path_state
            .masquerade(ports, random)
            .map(Continuation::Effect)
    }

    pub(super) fn redir(&mut self, redir: &RedirRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let ports = self.ports(redir.proto_min(), redir.proto_max())?;
        let random = is_random(redir.flags());
        self.path_state
            .redirect(ports, random)
            .map(Continuation::Effect)
    }

    pub(super) fn reject(
        &mut self,
        reject: &RejectRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let code = reject.icmp_code().unwrap_or_default();
        let answer = match needed(reject.reject_type())? {
            RejectType::TCP_RST => RejectReply::TcpReset,
            RejectType::ICMPX_UNREACH => {
                match RejectReply::of_both(RejectIcmpxCode(code), self.path_state.family) {
                    Some(answer) => answer,
                    None => return Err(Undetermined::unknown("it rejects in an unsupported way")),
                }
            }
            RejectType::ICMP_UNREACH => RejectReply::Icmp(code),
            _ => return Err(Undetermined::unknown("it rejects in an unsupported way")),
        };
        Ok(Continuation::Effect(Effect::Reject(
            answer.description(self.path_state.family),
        )))
    }

    pub(super) fn queue(&mut self, queue: &QueueRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let (first, queues) = match queue.sreg_qnum() {
            None => {
                let queues = queue.total().unwrap_or(1).max(1);
                (queue.num().unwrap_or_default(), queues)
            }
            Some(register) => {
                let number = needed(self.registers.value(register, 4, Order::Host))?;
                let Some((first, last)) = self.path_state.ends_of(&number.part(0, 16)) else {
                    return Err(Undetermined::unknown("its queue number is unknown"));
                };
                (first as u16, (last - first + 1).min(0xffff) as u16)
            }
        };
        let flags = queue.flags().unwrap_or_default();
        Ok(Continuation::Effect(Effect::Queue {
            first,
            queues,
            bypass: flags.contains(QueueFlags::BYPASS),
        }))
    }

    pub(super) fn dup(&mut self, dup: &DupRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let to = match dup.sreg_addr() {
            Some(register) => {
                let length = self.path_state.address_bits() as usize / 8;
                let value = needed(self.registers.value(register, length, Order::Network))?;
                self.path_state.description(Field::Destination, &value)
            }
            None => "a device".to_owned(),
        };
        self.path_state
            .record_action(Action::Other(format!("a copy is sent to {to}")));
        Ok(Continuation::On)
    }

    pub(super) fn synproxy(&mut self) -> Result<Continuation<'s>, Undetermined> {
        if !self.path_state.is(Field::Protocol, Test::Is(TCP))?
            || self.path_state.is_later_fragment()?
        {
            return Ok(Continuation::Break);
        }
        Ok(
            if self.path_state.has_tcp_flags(SYN)? || self.path_state.has_tcp_flags(ACK)? {
                Continuation::Effect(Effect::Stolen("answered by synproxy".to_owned()))
            } else {
                Continuation::On
            },
        )
    }

    pub(super) fn tproxy(
        &mut self,
        tproxy: &TproxyRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        const WITH_SOCKETS: [(u128, u128); 2] = [(6, 6), (17, 17)];
        if only(tproxy.family()).is_some_and(|family| family != self.path_state.family)
            || !self
                .path_state
                .is(Field::Protocol, Test::Among(&WITH_SOCKETS))?
            || self.path_state.is_later_fragment()?
        {
            return Ok(Continuation::Break);
        }
        let port = match tproxy.reg_port() {
            Some(register) => needed(self.registers.value(register, 2, Order::Network))?,
            None => self.path_state.get(Field::DestinationPort),
        };
        let port = self.path_state.description(Field::DestinationPort, &port);
        let description = format!("a transparent socket listens on port {port}");
        if !self.path_state.always(description)? {
            return Ok(Continuation::Break);
        }
        self.path_state.record_action(Action::Other(format!(
            "assigned to the transparent socket on port {port}"
        )));
        self.path_state
            .note("a packet for a transparent socket is only delivered if a route makes its address local");
        Ok(Continuation::On)
    }
}

fn is_random(flags: Option<NatRangeFlags>) -> bool {
    flags
        .unwrap_or_default()
        .intersects(NatRangeFlags::PROTO_RANDOM | NatRangeFlags::PROTO_RANDOM_FULLY)
}

/// Returns the IP version that a statement is limited to, if any (`NFPROTO_*`).
fn only(family: Option<u32>) -> Option<Family> {
    match NftFamily(u8::try_from(family?).ok()?) {
        NftFamily::IP => Some(Family::Ipv4),
        NftFamily::IP6 => Some(Family::Ipv6),
        _ => None,
    }
}
