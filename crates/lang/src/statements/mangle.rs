//! `ct mark set 1`: changes a field of the packet, its metadata, or its connection's. JSON calls it `mangle`.

use super::prelude::*;
use crate::compile::constant::ExpectedType;
use crate::dialect::Form;
#[cfg(feature = "json")]
use crate::json::flags;
use crate::protocols::{self, Protocol};
use crate::syntax::{self, Value};
use crate::types::CT_EVENT;
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{
    ChecksumFlags, Ct, CtKey, Exthdr, ExthdrOp, Meta, Payload, PayloadBase, Register,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mangle {
    pub(crate) target: Expr,
    pub(crate) value: Expr,
}

impl Mangle {
    pub(crate) const fn new(target: Expr, value: Expr) -> Self {
        Self { target, value }
    }
}

impl Text for Mangle {
    /// It begins with an expression.
    const WORDS: &'static [&'static str] = &[];

    fn print<W: Write>(&self, printer: &mut Printer<'_, W>) -> fmt::Result {
        printer.expr(&self.target)?;
        printer.out.write_str(" set ")?;
        match (&self.target, &self.value) {
            // Several events are printed as a list.
            (Expr::Ct(CtKey::EVENTMASK, ..), Expr::Value(events)) => printer.flags(events, ","),
            (_, value) => printer.expr(value),
        }
    }
}

impl Linearize for Mangle {
    /// Without the target, nothing is changed, and the rule continues.
    fn rule_end(&self) -> RuleEnd {
        end_by_operands(&[&self.value])
    }

    fn operands(&self) -> Vec<&Expr> {
        vec![&self.target, &self.value]
    }

    fn linearize(&self, rule: &mut RuleBuilder<'_, '_>) -> Result<(), Diagnostic> {
        rule.set_to(&self.target, &self.value)
    }
}

impl RuleBuilder<'_, '_> {
    /// Compiles an assignment to packet bytes or metadata.
    pub(crate) fn set_to(&mut self, target: &Expr, to: &Expr) -> Result<(), Diagnostic> {
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
    fn write(&mut self, payload: &syntax::Payload, to: &Expr) -> Result<(), Diagnostic> {
        let protocol = payload.field.map(|(protocol, _)| protocol);
        let start = self.start_of(payload)?;
        let checksum = protocol.and_then(protocols::checksum_of);
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
            self.push(&Payload::load(payload.base, first, length, Register::R1));
            self.mask_xor(0, kept, xor << shift, length as usize, ByteOrder::Network);
        }
        let by_flag = |protocol: &Protocol| {
            *protocol == protocols::UDP && self.compiler.version.has(Form::UdpChecksums)
        };
        let checksum = checksum.filter(|_| !protocol.is_some_and(by_flag));
        // The transport checksum also covers these bytes.
        let is_pseudo = match payload.field {
            Some((protocol, _)) if by_flag(protocol) => true,
            Some((protocol, field)) => {
                protocols::is_in_pseudo_header(protocol, &protocol.fields[field])
            }
            None => payload.base == PayloadBase::INNER,
        };
        self.push(&Payload {
            sreg: Some(Register::R1),
            base: Some(payload.base),
            offset: Some(first),
            len: Some(behind - first),
            checksum_type: checksum.map(|(checksum_type, _)| checksum_type),
            checksum_offset: checksum.map(|(_, offset)| offset),
            checksum_flags: is_pseudo.then_some(ChecksumFlags::L4_PSEUDOHDR),
            ..Payload::default()
        });
        Ok(())
    }
}

#[cfg(feature = "json")]
impl Json for Mangle {
    const KEYS: &'static [&'static str] = &["mangle"];

    fn read(reader: JsonReader, _: &Key<'_>, node: &Node<'_>) -> Result<Self, Diagnostic> {
        let fields = Fields::new(node, "a mangle statement", &["key", "value"])?;
        Ok(Self {
            target: reader.left(fields.need("key")?)?,
            value: reader.expr(fields.need("value")?)?,
        })
    }

    fn json(&self, writer: Writer<'_>) -> Expression<'_> {
        let value = match (&self.target, &self.value) {
            // Several events are a list.
            (Expr::Ct(CtKey::EVENTMASK, ..), Expr::Value(events))
                if events.number.count_ones() > 1 =>
            {
                Expression::List(flags(events, writer.options).collect())
            }
            (_, value) => writer.expr(value),
        };
        let record = Record::new().field("key", writer.expr(&self.target));
        record.field("value", value).into()
    }
}
