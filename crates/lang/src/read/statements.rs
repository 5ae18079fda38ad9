//! Decodes statements.

use super::compare::{is_address, range};
use super::context::Layer;
use super::registers::{Content, Registers};
use super::rule::{Reader, value};
use crate::dialect::Form;
use crate::syntax::{Expr, Statement, Translation, Value};
use crate::types;
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{self, NatRangeFlags, NatType, QueueFlags, Register, RejectType};
use chainwright::nft::{DataType, Family};

impl Reader<'_, '_> {
    /// Returns the value of a register as one of this type.
    pub(crate) fn typed(&mut self, register: Register, data_type: DataType) -> Option<Expr> {
        self.typed_in(register, data_type, types::order(data_type))
    }

    /// Like [`typed`](Self::typed), with the byte order for integers whose type does not determine
    /// it.
    pub(crate) fn typed_in(
        &mut self,
        register: Register,
        data_type: DataType,
        order: ByteOrder,
    ) -> Option<Expr> {
        let loaded = self.registers.get(register)?.clone();
        let order = match data_type {
            DataType::INTEGER | DataType::VALUE | types::RAW => order,
            data_type => types::order(data_type),
        };
        match loaded.expr {
            Content::Expr(expr) => Some(self.resolve(expr)),
            Content::Bytes(bytes) => {
                let value = value(&bytes, order, data_type)?;
                Some(Expr::Value(value))
            }
        }
    }

    pub(crate) fn address(&mut self, register: Register, family: Family) -> Option<Expr> {
        let data_type = match family {
            Family::IP => DataType::IPV4_ADDR,
            Family::IP6 => DataType::IPV6_ADDR,
            _ => return None,
        };
        self.typed(register, data_type)
    }

    pub(crate) fn ports(
        &mut self,
        from: Option<Register>,
        to: Option<Register>,
    ) -> Option<Option<Expr>> {
        // nft 1.0 does not omit the protocol match before a translated port.
        if !self.version.has(Form::ImpliedByPort) {
            self.context.keep_transport();
        }
        let mut port = |register: Register| self.typed(register, DataType::INET_SERVICE);
        let Some(from_register) = from else {
            return Some(None);
        };
        let first = port(from_register)?;
        match to.filter(|to| *to != from_register) {
            None => Some(Some(first)),
            Some(to) => Some(Some(limits(first, port(to)?))),
        }
    }

    pub(crate) fn nat(&mut self, nat: &expr::Nat) -> Option<()> {
        let family = Family(nat.family? as u8);
        let flags = nat.flags.unwrap_or_default();
        let kind = match nat.nat_type? {
            NatType::SNAT => Translation::Source,
            NatType::DNAT => Translation::Destination,
            _ => return None,
        };
        let mut word = None;
        let mut address = None;
        let mut with_port = false;
        if let Some(min) = nat.addr_min {
            let loaded = self.registers.get(min)?;
            let map = match &loaded.expr {
                Content::Expr(Expr::Map(_, _)) => Some(loaded.length),
                _ => None,
            };
            let first = self.address(min, family)?;
            let width = match family {
                Family::IP => 4,
                _ => 16,
            };
            let is_wide = map.is_some_and(|length| length > width);
            if let (true, Some(length)) = (is_wide, map) {
                // Address and port must all come from the map.
                let others = [nat.addr_max, nat.proto_min, nat.proto_max];
                let is_of_map = |other: &Register| Registers::is_within(*other, min, length);
                others.iter().flatten().all(is_of_map).then_some(())?;
            }
            with_port = is_wide;
            if is_wide || self.family() == Family::INET {
                word = family.name();
            }
            address = Some(match nat.addr_max.filter(|max| *max != min) {
                Some(max) if !is_wide => limits(first, self.address(max, family)?),
                _ => first,
            });
        }
        let port = match with_port {
            true => None,
            false => self.ports(nat.proto_min, nat.proto_max)?,
        };
        self.push(Statement::Translate {
            kind,
            family: word,
            prefix: flags.contains(NatRangeFlags::NETMAP),
            address,
            port,
            flags: nat_flags(flags)?,
        })
    }

    pub(crate) fn tproxy(&mut self, tproxy: &expr::Tproxy) -> Option<()> {
        let family = Family(tproxy.family.unwrap_or_default() as u8);
        let address = match tproxy.reg_addr {
            Some(register) => Some(self.address(register, family)?),
            None => None,
        };
        let port = match tproxy.reg_port {
            Some(register) => Some(self.typed(register, DataType::INET_SERVICE)?),
            None => None,
        };
        let is_inet = self.family() == Family::INET && family != Family::UNSPEC;
        self.push(Statement::Tproxy {
            family: family.name().filter(|_| is_inet),
            address,
            port,
        })
    }

    pub(crate) fn queue(&mut self, queue: &expr::Queue) -> Option<()> {
        let set = queue.flags.unwrap_or_default();
        let mut flags = Vec::new();
        if set.contains(QueueFlags::BYPASS) {
            flags.push("bypass");
        }
        if set.contains(QueueFlags::CPU_FANOUT) {
            flags.push("fanout");
        }
        let numbers = match (queue.sreg_qnum, queue.num) {
            (Some(register), _) => self.typed(register, DataType::INTEGER)?,
            (None, first) => {
                let first = first.unwrap_or_default();
                let number = |number: u16| Value {
                    data_type: DataType::INTEGER,
                    bits: 16,
                    number: number.into(),
                };
                let last = first.checked_add(queue.total.unwrap_or(1).max(1) - 1)?;
                match first == last {
                    true => Expr::Value(number(first)),
                    false => range(number(first), number(last)),
                }
            }
        };
        self.push(Statement::Queue {
            numbers: Some(numbers),
            flags,
        })
    }

    pub(crate) fn reject(&mut self, reject: &expr::Reject) -> Option<()> {
        let code = reject.icmp_code.unwrap_or_default();
        let value = |data_type| Value {
            data_type,
            bits: 8,
            number: code.into(),
        };
        let family = self.family();
        let words = match reject.reject_type? {
            RejectType::TCP_RST => {
                if matches!(family, Family::IP | Family::IP6) {
                    self.context.take_protocol("tcp", &mut self.statements);
                }
                Some(("tcp reset", None))
            }
            RejectType::ICMPX_UNREACH if code == 1 => None,
            RejectType::ICMPX_UNREACH => Some(("icmpx", Some(value(DataType::ICMPX_CODE)))),
            RejectType::ICMP_UNREACH => {
                let version = match family {
                    Family::IP | Family::IP6 => family,
                    _ => self.version()?,
                };
                let (word, data_type, usual) = match version {
                    Family::IP => ("icmp", DataType::ICMP_CODE, 3),
                    _ => ("icmpv6", DataType::ICMPV6_CODE, 4),
                };
                self.context.take(Layer::Network, &mut self.statements);
                let is_usual = code == usual && family == version;
                (!is_usual).then_some((word, Some(value(data_type))))
            }
            _ => return None,
        };
        self.push(Statement::Reject(words))
    }
}

/// Converts to a range, or to a prefix if the addresses form one.
pub(crate) fn limits(from: Expr, to: Expr) -> Expr {
    if let (Expr::Value(first), Expr::Value(last)) = (&from, &to) {
        let is_address = is_address(first.data_type);
        if let Some(prefix) = first.prefix_to(last).filter(|_| is_address) {
            return Expr::Prefix(Box::new(from), prefix);
        }
    }
    Expr::Range(Box::new(from), Box::new(to))
}

/// Returns the keywords of NAT flags; `None` if one has no keyword.
pub(crate) fn nat_flags(flags: NatRangeFlags) -> Option<Vec<&'static str>> {
    let mut words = Vec::new();
    for (flag, word) in [
        (NatRangeFlags::PROTO_RANDOM, "random"),
        (NatRangeFlags::PROTO_RANDOM_FULLY, "fully-random"),
        (NatRangeFlags::PERSISTENT, "persistent"),
    ] {
        if flags.contains(flag) {
            words.push(word);
        }
    }
    let supported = NatRangeFlags::PROTO_RANDOM
        | NatRangeFlags::PROTO_RANDOM_FULLY
        | NatRangeFlags::PERSISTENT
        | NatRangeFlags::MAP_IPS
        | NatRangeFlags::PROTO_SPECIFIED
        | NatRangeFlags::NETMAP;
    supported.contains(flags).then_some(words)
}
