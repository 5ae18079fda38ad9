//! Compiles statements.

use super::constant::ExpectedType;
use super::rule_builder::{RuleBuilder, register};
use super::sets::{Data, SetSpec, SetUserData, noted_order, with_keys};
use crate::headers;
use crate::parse::Diagnostic;
use crate::syntax::{Element, Expr, Payload, Statement, Target, Translation, Value, Verdict};
use crate::types::CT_EVENT;
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{
    self, ChecksumFlags, Ct, CtKey, Dup, Dynset, DynsetFlags, DynsetOp, Exthdr, ExthdrOp,
    FlowOffload, Fwd, Immediate, Masq, Meta, MetaKey, Nat, NatRangeFlags, NatType, Notrack,
    ObjectType, Objref, Payload as Load, PayloadBase, Queue, QueueFlags, Redir, Register, Reject,
    RejectType, Tproxy,
};
use chainwright::nft::{DataType, Family, Milliseconds, Set, SetFlags, SetId};

/// 4-byte words in a 16-byte register.
const REGISTER: u32 = 4;

/// Default reject codes for ICMP, ICMPv6 and ICMPX.
const PORT_UNREACHABLE: u8 = 3;
const PORT_UNREACHABLE_V6: u8 = 4;
const PORT_UNREACHABLE_EITHER: u8 = 1;

fn nat_flags(words: &[&'static str]) -> NatRangeFlags {
    let mut flags = NatRangeFlags::empty();
    for word in words {
        flags |= match *word {
            "random" => NatRangeFlags::PROTO_RANDOM,
            "fully-random" => NatRangeFlags::PROTO_RANDOM_FULLY,
            "persistent" => NatRangeFlags::PERSISTENT,
            _ => NatRangeFlags::empty(),
        };
    }
    flags
}

/// Returns the family of a keyword.
fn family_of(word: &str) -> Option<Family> {
    match word {
        "ip" => Some(Family::IP),
        "ip6" => Some(Family::IP6),
        _ => None,
    }
}

fn address(family: Family) -> ExpectedType {
    ExpectedType::of(match family {
        Family::IP6 => DataType::IPV6_ADDR,
        _ => DataType::IPV4_ADDR,
    })
}

fn port() -> ExpectedType {
    ExpectedType::of(DataType::INET_SERVICE)
}

/// Returns `true` if a statement is terminal.
pub(crate) const fn ends_rule(statement: &Statement) -> bool {
    match statement {
        Statement::Verdict(Expr::Verdict(verdict)) => !matches!(verdict, Verdict::Continue),
        Statement::Reject(_) | Statement::Translate { .. } | Statement::Queue { .. } => true,
        _ => false,
    }
}

impl RuleBuilder<'_, '_> {
    /// Compiles a statement. `is_last` means that no other follows in the rule.
    pub(crate) fn statement(
        &mut self,
        statement: &Statement,
        is_last: bool,
    ) -> Result<(), Diagnostic> {
        if self.is_over {
            return Err(self.error("unreachable statement: the previous statement ends the rule"));
        }
        // Omitted, as nft does.
        if !is_last && self.is_redundant(statement) {
            return Ok(());
        }
        self.is_over = statement.ends_rule();
        if let Some(expression) = statement.expression() {
            self.push_decoded(&expression);
            return Ok(());
        }
        match statement {
            Statement::Match {
                left,
                relation,
                right,
            } => return self.matches(left, *relation, right),
            Statement::VerdictMap(key, map) => self.verdict_map(key, map)?,
            _ => {
                statement.add_dependencies(self)?;
                self.flush_pending();
                statement.linearize(self)?;
            }
        }
        self.flush_pending();
        Ok(())
    }

    pub(crate) fn other_dependencies(&mut self, statement: &Statement) -> Result<(), Diagnostic> {
        if let Statement::Reject(words) = statement {
            return self.first(|this| this.add_reject_dependencies(words.as_ref()));
        }
        let mut operands = statement.operands().into_iter();
        operands.try_for_each(|operand| self.add_dependency(operand))
    }

    /// Restricts the rule to packets of this protocol.
    fn add_protocol_dependency(
        &mut self,
        protocol: &'static headers::Protocol,
    ) -> Result<(), Diagnostic> {
        let field = protocol.fields.first();
        let payload = Payload {
            base: protocol.base,
            offset: 0,
            bits: field.map_or(0, |field| field.bits),
            field: Some((protocol, 0)),
            tunnel: None,
        };
        self.add_dependency(&Expr::Payload(payload))
    }

    fn add_reject_dependencies(
        &mut self,
        words: Option<&(&'static str, Option<Value>)>,
    ) -> Result<(), Diagnostic> {
        match words {
            Some(("tcp reset", _)) => self.add_protocol_dependency(&headers::TCP),
            Some(("icmp", _)) => self.add_protocol_dependency(&headers::IP),
            Some(("icmpv6", _)) => self.add_protocol_dependency(&headers::IP6),
            _ => Ok(()),
        }
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.compiler.span, message)
    }

    pub(crate) fn act(&mut self, statement: &Statement) -> Result<(), Diagnostic> {
        match statement {
            Statement::Verdict(Expr::Verdict(verdict)) => {
                let verdict = self.jump(verdict)?;
                self.push(&Immediate::verdict(verdict));
            }
            Statement::Reject(words) => self.reject(words.as_ref())?,
            Statement::Translate {
                kind,
                family,
                prefix,
                address,
                port,
                flags,
            } => match kind {
                Translation::Source | Translation::Destination => {
                    let nat_type = match kind {
                        Translation::Source => NatType::SNAT,
                        _ => NatType::DNAT,
                    };
                    let to = (address.as_ref(), port.as_ref());
                    self.nat(nat_type, *family, *prefix, to, nat_flags(flags))?;
                }
                Translation::Masquerade | Translation::Redirect => {
                    let mut flags = nat_flags(flags);
                    let mut word = 0;
                    let ports = match port {
                        Some(port) => {
                            flags |= NatRangeFlags::PROTO_SPECIFIED;
                            self.ports(port, &mut word)?
                        }
                        None => (None, None),
                    };
                    let flags = (!flags.is_empty()).then_some(flags);
                    match kind {
                        Translation::Masquerade => self.push(&Masq {
                            flags,
                            proto_min: ports.0,
                            proto_max: ports.1,
                            ..Masq::default()
                        }),
                        _ => self.push(&Redir {
                            flags,
                            proto_min: ports.0,
                            proto_max: ports.1,
                            ..Redir::default()
                        }),
                    }
                }
            },
            Statement::Tproxy {
                family,
                address: to,
                port: at,
            } => {
                let family = match family.and_then(family_of) {
                    Some(family) => family,
                    None if self.family == Family::INET => match to {
                        Some(to) => self.family_of_address(to),
                        None => Family::UNSPEC,
                    },
                    None => self.family,
                };
                let mut word = 0;
                let mut reg_addr = None;
                if let Some(to) = to {
                    self.put(to, &[address(family)], word)?;
                    reg_addr = Some(register(word));
                    word += REGISTER;
                }
                let mut reg_port = None;
                if let Some(at) = at {
                    self.put(at, &[port()], word)?;
                    reg_port = Some(register(word));
                }
                self.push(&Tproxy {
                    family: Some(family.0.into()),
                    reg_addr,
                    reg_port,
                    ..Tproxy::default()
                });
            }
            Statement::Queue { numbers, flags } => self.queue(numbers.as_ref(), flags)?,
            Statement::Set(target, to) => self.set_to(target, to)?,
            Statement::Reset(Expr::Option(option)) => {
                self.push(&Exthdr::reset_tcp_option(option.number));
            }
            Statement::Notrack => self.push(&Notrack::new()),
            Statement::FlowAdd(name) => self.push(&FlowOffload::new(name.clone())),
            Statement::Duplicate {
                address: to,
                device,
            } => {
                let mut dup = Dup::default();
                let mut word = 0;
                if let Some(to) = to {
                    self.put(to, &[address(self.family)], word)?;
                    dup.sreg_addr = Some(register(word));
                    word += REGISTER;
                }
                if let Some(device) = device {
                    self.put(device, &[ExpectedType::of(DataType::IFACE_INDEX)], word)?;
                    dup.sreg_dev = Some(register(word));
                }
                self.push(&dup);
            }
            Statement::Forward {
                family,
                address: to,
                device,
            } => {
                let mut fwd = Fwd::default();
                self.put(device, &[ExpectedType::of(DataType::IFACE_INDEX)], 0)?;
                fwd.sreg_dev = Some(register(0));
                if let Some(to) = to {
                    let family = family.and_then(family_of);
                    let family = family.unwrap_or_else(|| self.family_of_address(to));
                    self.put(to, &[address(family)], REGISTER)?;
                    fwd.sreg_addr = Some(register(REGISTER));
                    fwd.nfproto = Some(family.0.into());
                }
                self.push(&fwd);
            }
            Statement::Update { word, set, element } => {
                let op = match *word {
                    "add" => DynsetOp::ADD,
                    "delete" => DynsetOp::DELETE,
                    _ => DynsetOp::UPDATE,
                };
                let known =
                    self.compiler
                        .set(self.family, &self.table, set, element.data.is_some())?;
                self.dynset(op, &self.named(set), element, Some(&known))?;
            }
            Statement::Meter {
                name,
                size,
                element,
            } => self.meter(name, *size, element)?,
            Statement::Object(object_type, object) => self.object(*object_type, object)?,
            Statement::Extension(kind, name) => {
                let message = format!(
                    "`xt {kind} \"{name}\"` was written by iptables-nft: its options are not in this text, so it cannot be \
                     recreated"
                );
                return Err(self.error(message));
            }
            _ => return Err(self.error("this statement is not allowed here")),
        }
        Ok(())
    }

    fn jump(&mut self, verdict: &Verdict) -> Result<expr::Verdict<'static>, Diagnostic> {
        match verdict {
            Verdict::Jump(Target::Rules(rules)) => {
                let id = self.compiler.bound_chain(self.family, &self.table, rules)?;
                Ok(expr::Verdict::JumpId(id))
            }
            Verdict::Goto(Target::Rules(rules)) => {
                let id = self.compiler.bound_chain(self.family, &self.table, rules)?;
                Ok(expr::Verdict::GotoId(id))
            }
            verdict => self.compiler.verdict(verdict),
        }
    }

    fn reject(&mut self, words: Option<&(&'static str, Option<Value>)>) -> Result<(), Diagnostic> {
        let code = |value: Option<Value>, usual| match value {
            Some(value) => value.number as u8, // of 8 bits
            None => usual,
        };
        let version = match self.family {
            Family::IP | Family::IP6 => Some(self.family),
            _ => self.protocols.version(),
        };
        let reject = match words {
            Some(("tcp reset", _)) => Reject {
                icmp_code: Some(0),
                ..Reject::tcp_reset()
            },
            Some(("icmp", value)) => Reject::icmp(code(*value, PORT_UNREACHABLE)),
            Some(("icmpv6", value)) => Reject::icmp(code(*value, PORT_UNREACHABLE_V6)),
            Some(_) if matches!(self.family, Family::IP | Family::IP6) => {
                let message =
                    "`icmpx` is for packets of either IP version: use `icmp` or `icmpv6` here";
                return Err(self.error(message));
            }
            Some((_, value)) => Reject {
                reject_type: Some(RejectType::ICMPX_UNREACH),
                icmp_code: Some(code(*value, PORT_UNREACHABLE_EITHER)),
                ..Reject::default()
            },
            None => match version {
                Some(Family::IP) => Reject::icmp(PORT_UNREACHABLE),
                Some(Family::IP6) => Reject::icmp(PORT_UNREACHABLE_V6),
                _ => Reject {
                    reject_type: Some(RejectType::ICMPX_UNREACH),
                    icmp_code: Some(PORT_UNREACHABLE_EITHER),
                    ..Reject::default()
                },
            },
        };
        self.push(&reject);
        Ok(())
    }

    /// Returns the IP version of an address.
    fn family_of_address(&self, address: &Expr) -> Family {
        match self.family {
            Family::IP | Family::IP6 => return self.family,
            _ => {}
        }
        if let Some(version) = self.protocols.version() {
            return version;
        }
        let is_v6 = |expr: &Expr| match expr {
            Expr::Symbol(symbol) => symbol.text.contains(':'),
            Expr::Value(value) => value.data_type == DataType::IPV6_ADDR,
            _ => false,
        };
        let first = match address {
            Expr::Range(from, _) => from,
            Expr::Prefix(value, _) => value,
            other => other,
        };
        match is_v6(first) {
            true => Family::IP6,
            false => Family::IP,
        }
    }

    fn nat(
        &mut self,
        nat_type: NatType,
        family: Option<&'static str>,
        prefix: bool,
        (to, ports): (Option<&Expr>, Option<&Expr>),
        mut flags: NatRangeFlags,
    ) -> Result<(), Diagnostic> {
        let mut nat = Nat {
            nat_type: Some(nat_type),
            ..Nat::default()
        };
        let mut word = 0;
        let mut version = self.family;
        if let Some(to) = to {
            let known = match self.family {
                Family::IP | Family::IP6 => Some(self.family),
                _ => self.protocols.version(),
            };
            version = match (family.and_then(family_of), known) {
                (Some(family), Some(known)) if family != known => {
                    let message =
                        format!("{known} packets cannot be translated to {family} addresses");
                    return Err(self.error(message));
                }
                (Some(family), _) => family,
                (None, None) if matches!(to, Expr::Map(..)) => {
                    let message = "the IP version of the map's addresses is unknown";
                    let hint = "specify it: `ip to` or `ip6 to`";
                    return Err(self.error(message).with_hint(hint));
                }
                (None, _) => self.family_of_address(to),
            };
            let expected_type = address(version);
            nat.addr_min = Some(register(word));
            match to {
                Expr::Map(key, map) => {
                    let (fields, is_interval) =
                        self.nat_data(map, expected_type, ports.is_some())?;
                    self.map(key, map, &fields, word)?;
                    let behind = expected_type.bits / 32;
                    if fields.len() > 1 {
                        self.check_transport(Some(key))?;
                        nat.proto_min = Some(register(word + behind));
                    }
                    if is_interval {
                        let whole: u32 = fields.iter().map(|field| field.bits.div_ceil(32)).sum();
                        nat.addr_max = Some(register(word + whole));
                        if fields.len() > 1 {
                            nat.proto_max = Some(register(word + whole + behind));
                        }
                    }
                    word += REGISTER;
                }
                to if to.is_constant() => {
                    let (from, last) = match self.compiler.constant(to, expected_type)? {
                        Expr::Value(value) => (value.number, None),
                        Expr::Range(from, to) => match (*from, *to) {
                            (Expr::Value(from), Expr::Value(to)) => (from.number, Some(to.number)),
                            _ => return Err(self.error("expected a range of addresses")),
                        },
                        Expr::Prefix(value, bits) => match *value {
                            Expr::Value(value) => {
                                let last = value.number | Value::ones(expected_type.bits - bits);
                                (value.number, Some(last))
                            }
                            _ => return Err(self.error("expected an address prefix")),
                        },
                        _ => return Err(self.error("expected an address")),
                    };
                    let mut put = |number: u128| {
                        let bytes = expected_type.bytes(number, expected_type.length());
                        let into = register(word);
                        self.push(&Immediate::value(into, &bytes));
                        word += REGISTER;
                        into
                    };
                    nat.addr_min = Some(put(from));
                    nat.addr_max = last.map(&mut put);
                }
                to => {
                    self.put(to, &[expected_type], word)?;
                    word += REGISTER;
                }
            }
            if prefix {
                flags |= NatRangeFlags::NETMAP;
            }
        }
        if let Some(ports) = ports {
            (nat.proto_min, nat.proto_max) = self.ports(ports, &mut word)?;
            flags |= NatRangeFlags::PROTO_SPECIFIED;
        }
        nat.family = Some(version.0.into());
        nat.flags = (!flags.is_empty()).then_some(flags);
        self.push(&nat);
        Ok(())
    }

    /// Returns the types of a NAT map's data: address, with or without port; and whether they are intervals.
    fn nat_data(
        &self,
        map: &Expr,
        address: ExpectedType,
        has_port: bool,
    ) -> Result<(Vec<ExpectedType>, bool), Diagnostic> {
        match map {
            Expr::Reference(name) => match self.data_of(name)? {
                Data::Values {
                    fields,
                    is_interval,
                } => match fields.len() > 1 && !has_port {
                    true => Ok((vec![address, port()], is_interval)),
                    false => Ok((vec![address], is_interval)),
                },
                _ => Err(self.error(format!("`{name}` does not map to addresses"))),
            },
            Expr::Set(elements) => {
                let data = elements.iter().filter_map(|element| element.data.as_ref());
                let has_ports = data
                    .clone()
                    .any(|data| matches!(data, Expr::Concat(parts) if parts.len() > 1));
                let is_interval = data.clone().any(Expr::is_interval);
                let fields = match has_ports {
                    true => vec![address, port()],
                    false => vec![address],
                };
                Ok((fields, is_interval))
            }
            _ => Ok((vec![address], false)),
        }
    }

    /// Checks that packets have ports, because of an established protocol or the key of a map.
    fn check_transport(&self, key: Option<&Expr>) -> Result<(), Diagnostic> {
        let determines_transport = |expr: &Expr| match expr {
            Expr::Meta(MetaKey::L4PROTO) => true,
            Expr::Payload(payload) => payload.field.is_some_and(|(protocol, field)| {
                let is_key = protocol.key == Some(protocol.fields[field].name);
                protocol.base == PayloadBase::NETWORK && is_key && payload.tunnel.is_none()
            }),
            _ => false,
        };
        let is_transport_known = match key {
            Some(Expr::Concat(parts)) => parts.iter().any(determines_transport),
            Some(key) => determines_transport(key),
            None => false,
        };
        match is_transport_known || self.protocols.has_transport() {
            true => Ok(()),
            false => Err(self.error(
                "a port requires a protocol that has ports: match the protocol first (`meta l4proto tcp`)",
            )),
        }
    }

    /// Loads a port, or both ends of a port range, into registers.
    fn ports(
        &mut self,
        ports: &Expr,
        word: &mut u32,
    ) -> Result<(Option<Register>, Option<Register>), Diagnostic> {
        let key = match ports {
            Expr::Map(key, _) => Some(&**key),
            _ => None,
        };
        self.check_transport(key)?;
        let expected_type = port();
        if ports.is_constant()
            && let Expr::Range(from, to) = self.compiler.constant(ports, expected_type)?
        {
            let first = register(*word);
            self.put(&from, &[expected_type], *word)?;
            *word += REGISTER;
            let last = register(*word);
            self.put(&to, &[expected_type], *word)?;
            *word += REGISTER;
            return Ok((Some(first), Some(last)));
        }
        let only = register(*word);
        self.put(ports, &[expected_type], *word)?;
        *word += REGISTER;
        Ok((Some(only), None))
    }

    fn queue(&mut self, numbers: Option<&Expr>, words: &[&'static str]) -> Result<(), Diagnostic> {
        let mut flags = QueueFlags::empty();
        for word in words {
            flags |= match *word {
                "bypass" => QueueFlags::BYPASS,
                _ => QueueFlags::CPU_FANOUT,
            };
        }
        let expected_type = ExpectedType {
            data_type: DataType::INTEGER,
            bits: 16,
            order: ByteOrder::Host,
        };
        let queue = match numbers {
            None => Queue::spread(0, 1),
            Some(numbers) if numbers.is_constant() => {
                let number = |value: &Value| value.number as u16; // of 16 bits
                match self.compiler.constant(numbers, expected_type)? {
                    Expr::Value(value) => Queue::to(number(&value)),
                    Expr::Range(from, to) => match (&*from, &*to) {
                        (Expr::Value(from), Expr::Value(to)) => {
                            let (first, last) = (number(from), number(to));
                            let total = (last - first).saturating_add(1);
                            Queue::spread(first, total)
                        }
                        _ => return Err(self.error("expected a range of queues")),
                    },
                    _ => return Err(self.error("expected a queue number")),
                }
            }
            Some(numbers) => {
                let mut expected_type = ExpectedType {
                    bits: 32,
                    ..expected_type
                };
                if let Expr::Map(_, map) = numbers
                    && let Expr::Reference(name) = &**map
                    && let Data::Values { fields, .. } = self.data_of(name)?
                    && let [number] = fields[..]
                {
                    expected_type.bits = number.bits.min(32);
                }
                self.put(numbers, &[expected_type], 0)?;
                Queue::register(Register::R1)
            }
        };
        let queue = match flags.is_empty() {
            true => queue,
            false => queue.with_flags(flags),
        };
        self.push(&queue);
        Ok(())
    }

    /// Compiles an assignment to packet bytes or metadata.
    fn set_to(&mut self, target: &Expr, to: &Expr) -> Result<(), Diagnostic> {
        match target {
            Expr::Meta(key) => {
                self.put(to, &[self.expected_type(target)], 0)?;
                self.push(&Meta::set(*key, Register::R1));
            }
            Expr::Ct(key, direction, _) => {
                let mut expected_type = self.expected_type(target);
                if *key == CtKey::EVENTMASK {
                    expected_type = ExpectedType::of(CT_EVENT);
                }
                self.put(to, &[expected_type], 0)?;
                self.push(&Ct {
                    direction: *direction,
                    ..Ct::set(*key, Register::R1)
                });
            }
            Expr::Option(option) if option.extension.kind == ExthdrOp::TCPOPT => {
                let expected_type = self.expected_type(target);
                self.put(to, &[expected_type], 0)?;
                let (offset, length) = (option.offset / 8, option.bits.div_ceil(8));
                self.push(&Exthdr::set_tcp_option(
                    option.number,
                    offset,
                    length,
                    Register::R1,
                ));
            }
            Expr::Payload(payload) if payload.tunnel.is_some() => {
                return Err(self.error("fields inside a tunnel cannot be set"));
            }
            Expr::Payload(payload) => self.write(payload, to)?,
            _ => return Err(self.error("this cannot be set")),
        }
        Ok(())
    }

    /// Writes packet bytes: 16-bit units if a checksum must be updated.
    fn write(&mut self, payload: &Payload, to: &Expr) -> Result<(), Diagnostic> {
        let protocol = payload.field.map(|(protocol, _)| protocol);
        let start = self.start_of(payload)?;
        let checksum = protocol.and_then(headers::checksum_of);
        let unit = if checksum.is_some() { 16 } else { 8 };
        let expected_type = self.expected_type(&Expr::Payload(*payload));
        let is_whole = start.is_multiple_of(unit) && payload.bits.is_multiple_of(unit);
        let (mut first, mut behind) = (start / 8, (start + payload.bits).div_ceil(8));
        if is_whole {
            self.put(to, &[expected_type], 0)?;
        } else {
            if checksum.is_some() && (behind - first) % 2 == 1 {
                match first % 2 {
                    1 => first -= 1,
                    _ => behind += 1,
                }
            }
            let (mask, xor) = self.changed(payload, to, expected_type)?;
            let length = behind - first;
            let shift = behind * 8 - (start + payload.bits);
            let changed = Value::ones(payload.bits) & !mask;
            let kept = Value::ones(length * 8) & !(changed << shift);
            self.push(&Load::load(payload.base, first, length, Register::R1));
            self.mask_xor(0, kept, xor << shift, length as usize, ByteOrder::Network);
        }
        // The transport checksum also covers these bytes.
        let is_pseudo = match payload.field {
            Some((protocol, field)) => {
                headers::is_in_pseudo_header(protocol, &protocol.fields[field])
            }
            None => payload.base == PayloadBase::INNER,
        };
        self.push(&Load {
            sreg: Some(Register::R1),
            base: Some(payload.base),
            offset: Some(first),
            len: Some(behind - first),
            checksum_type: checksum.map(|(checksum_type, _)| checksum_type),
            checksum_offset: checksum.map(|(_, offset)| offset),
            checksum_flags: is_pseudo.then_some(ChecksumFlags::L4_PSEUDOHDR),
            ..Load::default()
        });
        Ok(())
    }

    fn dynset(
        &mut self,
        op: DynsetOp,
        set: &SetId<'static>,
        element: &Element,
        set_spec: Option<&SetSpec>,
    ) -> Result<(), Diagnostic> {
        let Some(key) = &element.key else {
            return Err(self.error("an element needs a key"));
        };
        if element.comment.is_some() {
            return Err(self.error("an element that a rule adds cannot have a comment"));
        }
        if element.timeout == Some(0) {
            let message = "a rule cannot add an element that never times out: the kernel applies the set's timeout";
            return Err(self.error(message));
        }
        let words = match set_spec {
            // A key that is the same for all packets.
            Some(set_spec) if key.is_constant() => self.put(key, &set_spec.keys, 0)?,
            _ => {
                let of_set = set_spec.map_or(&[][..], |set_spec| &set_spec.keys);
                if let Some(set_spec) = set_spec {
                    let types = self.expected_types_in(key, of_set);
                    self.check(set_spec, &types, true, None, key)?;
                }
                let mut fields = self.load_key(key, 0, false, of_set)?;
                if let ([field], Some(DataType::MARK)) =
                    (&mut fields[..], set_spec.map(|set_spec| set_spec.key_type))
                {
                    self.turn_to_mark(field, 0);
                }
                fields.iter().map(super::load::Loaded::words).sum()
            }
        };
        let mut dynset = Dynset {
            sreg_key: Some(Register::R1),
            op: Some(op),
            set_name: Some(set.set.clone()),
            set_id: set.id,
            timeout: element.timeout.map(Milliseconds),
            ..Dynset::default()
        };
        let data = set_spec.and_then(|set_spec| set_spec.data.as_ref());
        if let (Some(value), Some(Data::Values { fields, .. })) = (&element.data, data) {
            let word = words.next_multiple_of(REGISTER);
            self.put(value, fields, word)?;
            dynset.sreg_data = Some(register(word));
        }
        match &element.statements[..] {
            [] => {}
            [one] => dynset.expr = Some(self.compiler.nested(one)?),
            several => {
                dynset.expressions = Some(self.compiler.all_nested(several)?);
                dynset.flags = Some(DynsetFlags::EXPR);
            }
        }
        self.push(&dynset);
        Ok(())
    }

    /// Creates the set of a `meter` statement.
    fn meter(
        &mut self,
        name: &str,
        size: Option<u32>,
        element: &Element,
    ) -> Result<(), Diagnostic> {
        let Some(key) = &element.key else {
            return Err(self.error("a meter needs a key"));
        };
        let expected_types: Vec<ExpectedType> = match key {
            Expr::Concat(parts) => parts.iter().map(|part| self.expected_type(part)).collect(),
            key => vec![self.expected_type(key)],
        };
        let mut flags = SetFlags::ANONYMOUS | SetFlags::EVAL;
        let op = match element.timeout {
            Some(_) => {
                flags |= SetFlags::TIMEOUT;
                DynsetOp::UPDATE
            }
            None => DynsetOp::ADD,
        };
        self.compiler.anonymous += 1;
        let id = self.compiler.anonymous;
        let set = Set {
            family: self.family,
            table: Some(self.table.clone()),
            name: Some(name.to_owned().into()),
            id: Some(id),
            flags: Some(flags),
            ..Set::empty()
        };
        let mut set = with_keys(set, &expected_types, false);
        let notes = SetUserData {
            key_order: noted_order(&expected_types),
            ..SetUserData::default()
        };
        let noted = notes.write(&mut set);
        noted.map_err(|error| self.error(error.to_string()))?;
        if let Some(size) = size {
            set = set.with_size(size);
        }
        self.compiler.add(&set)?;
        let set = SetId {
            id: Some(id),
            ..SetId::new(self.family, self.table.clone(), name.to_owned())
        };
        self.dynset(op, &set, element, None)
    }

    fn object(&mut self, object_type: ObjectType, object: &Expr) -> Result<(), Diagnostic> {
        match object {
            Expr::Object(name) => self.push(&Objref::named(object_type, name.clone())),
            Expr::Symbol(symbol) => {
                self.push(&Objref::named(object_type, symbol.text.to_string()));
            }
            Expr::Map(key, map) => {
                let data = Data::Object(object_type);
                let set = self.sought(key, map, 0, Some(&data))?;
                self.push(&Objref {
                    set_id: set.id,
                    ..Objref::mapped(Register::R1, set.set)
                });
            }
            other => {
                return Err(self.compiler.diagnostic(other, "expected an object name"));
            }
        }
        Ok(())
    }
}

impl super::Compiler<'_> {
    /// Converts a verdict, except jumps to anonymous chains.
    pub(crate) fn verdict(&self, verdict: &Verdict) -> Result<expr::Verdict<'static>, Diagnostic> {
        Ok(match verdict {
            Verdict::Accept => expr::Verdict::Accept,
            Verdict::Drop => expr::Verdict::Drop,
            Verdict::Continue => expr::Verdict::Continue,
            Verdict::Break => expr::Verdict::Break,
            Verdict::Return => expr::Verdict::Return,
            Verdict::Jump(Target::Chain(name)) => expr::Verdict::Jump(name.clone().into()),
            Verdict::Goto(Target::Chain(name)) => expr::Verdict::Goto(name.clone().into()),
            Verdict::Jump(_) | Verdict::Goto(_) => {
                let message = "rules in braces are not allowed here: use a named chain";
                return Err(Diagnostic::new(self.span, message));
            }
        })
    }
}
