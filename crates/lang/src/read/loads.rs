//! Decodes loads into registers, and statements that write them.

use super::registers::{Content, Loaded};
use super::rule::{Reader, is_place, value};
use crate::dialect::Form;
use crate::protocols;
use crate::selectors;
use crate::statements::mangle::Mangle;
use crate::statements::reset::Reset;
use crate::syntax::{Expr, Operator, OptionField, Payload, Statement, Value};
use crate::tunnels::Tunnel;
use crate::types;
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{
    self, BitwiseOp, CtKey, Data, ExthdrFlags, ExthdrOp, HashType, PayloadBase, Register,
};
use chainwright::nft::{DataType, Family};

impl Reader<'_, '_> {
    pub(crate) fn meta(&mut self, meta: &expr::Meta) -> Option<()> {
        let selector = Expr::Meta(meta.key?);
        let data_type = selectors::of(&selector)?.data_type;
        if let Some(sreg) = meta.sreg {
            self.check_mark(sreg, data_type)?;
            let to = self.typed_in(sreg, data_type, ByteOrder::Host)?;
            return self.push(Statement::Mangle(Mangle::new(selector, to)));
        }
        self.load(meta.dreg?, selector)
    }

    /// Checks that the byte order of a mark is the one that parsing the printed text gives: host order, and in older
    /// versions the packet's order for 32-bit integers without a type of their own. Like nft, newer versions also print
    /// the rules of older ones.
    fn check_mark(&self, register: Register, data_type: DataType) -> Option<()> {
        let loaded = self.registers.get(register)?;
        let Content::Expr(expr) = &loaded.expr else {
            return Some(());
        };
        if data_type != DataType::MARK || loaded.length == 1 || matches!(expr, Expr::Map(..)) {
            return Some(());
        }
        let is_number = matches!(
            self.completed_type(expr),
            DataType::INTEGER | DataType::VALUE | types::RAW
        );
        let is_untyped = is_number && expr.bits() == 32;
        let is_host = loaded.order == ByteOrder::Host;
        let is_listed = match is_untyped {
            true => {
                loaded.order == order_of(expr) || (is_host && self.version.has(Form::MarkOrder))
            }
            false => is_host,
        };
        is_listed.then_some(())
    }

    /// Returns the type of an expression once its field is resolved.
    fn completed_type(&self, expr: &Expr) -> DataType {
        match expr {
            Expr::Payload(place) => Expr::Payload(self.completed(*place)).data_type(),
            Expr::Binary(_, left, _) => self.completed_type(left),
            other => other.data_type(),
        }
    }

    pub(crate) fn payload(&mut self, payload: &expr::Payload) -> Option<()> {
        let place = self.place(payload, None)?;
        // nft does not support writes to tunnel headers.
        (place.base != PayloadBase::TUNNEL).then_some(())?;
        match payload.sreg {
            Some(sreg) if sreg != Register::VERDICT => self.write(place, sreg),
            _ => self.load(payload.dreg?, Expr::Payload(place)),
        }
    }

    /// Returns the position of a payload expression, in the packet or inside a tunnel.
    pub(crate) fn place(
        &self,
        payload: &expr::Payload,
        tunnel: Option<&'static Tunnel>,
    ) -> Option<Payload> {
        let place = Payload {
            base: payload.base?,
            offset: payload.offset?.checked_mul(8)?,
            bits: payload.len?.checked_mul(8)?,
            field: None,
            tunnel,
        };
        let is_known = place.base.name().is_some() && is_place(place.offset, place.bits);
        is_known.then_some(place)
    }

    /// Decodes `payload set value`.
    pub(crate) fn write(&mut self, place: Payload, sreg: Register) -> Option<()> {
        let loaded = self.registers.get(sreg)?.clone();
        // A part of a byte is changed by reading, masking and writing.
        if let Content::Expr(Expr::Binary(..)) = &loaded.expr
            && let Some((field, to)) = self.bits_set(&place, &loaded)
        {
            self.remove_implicit(&field);
            return self.push(Statement::Mangle(Mangle::new(Expr::Payload(field), to)));
        }
        let place = match self.context.is_outside(place.base, place.offset) {
            true => place,
            false => self.completed(place),
        };
        self.remove_implicit(&place);
        let target = Expr::Payload(place);
        let to = self.typed_in(sreg, target.data_type(), ByteOrder::Network)?;
        let (target, to) = self.listed(target, to);
        self.push(Statement::Mangle(Mangle::new(target, to)))
    }

    /// Returns the field that a masked write changes, with its new value.
    fn bits_set(&self, place: &Payload, loaded: &Loaded) -> Option<(Payload, Expr)> {
        let Content::Expr(expr) = &loaded.expr else {
            return None;
        };
        let ones = Value::ones(place.bits);
        let (mut kept, mut set, mut turned, mut at) = (ones, 0, 0, expr);
        loop {
            match at {
                Expr::Binary(operator, left, right) => {
                    let Expr::Value(mask) = &**right else {
                        return None;
                    };
                    match operator {
                        Operator::And => kept &= mask.number,
                        Operator::Or => set |= mask.number,
                        Operator::Xor => turned |= mask.number,
                        _ => return None,
                    }
                    at = left;
                }
                Expr::Payload(read) if read == place => break,
                _ => return None,
            }
        }
        let of_field = |field: &Payload, number| Value {
            data_type: Expr::Payload(*field).data_type(),
            bits: field.bits,
            number,
        };
        if turned == 0
            && let Some((field, shift)) = self.trimmed(place, (!kept & ones) | set)
        {
            return Some((field, Expr::Value(of_field(&field, set >> shift))));
        }
        // Operations on the previous value of the field.
        let (field, shift) = self.around(place, (!kept & ones) | set | turned)?;
        let within = Value::ones(field.bits);
        let mut to = Expr::Payload(field);
        for (operator, number, neutral) in [
            (Operator::And, kept, within),
            (Operator::Xor, turned, 0),
            (Operator::Or, set, 0),
        ] {
            let number = number >> shift & within;
            if number != neutral {
                let value = Expr::Value(of_field(&field, number));
                to = Expr::Binary(operator, Box::new(to), Box::new(value));
            }
        }
        Some((field, to))
    }

    pub(crate) fn exthdr(&mut self, exthdr: &expr::Exthdr) -> Option<()> {
        let kind = exthdr.op.unwrap_or_default();
        let number = exthdr.header_type?;
        let flags = exthdr.flags.unwrap_or_default();
        let option = OptionField {
            extension: protocols::extension(
                kind,
                number,
                exthdr.offset.unwrap_or_default().checked_mul(8)?,
                exthdr.len.unwrap_or_default().checked_mul(8)?,
            )
            .or_else(|| protocols::nameless(kind))?,
            number,
            offset: exthdr.offset.unwrap_or_default().checked_mul(8)?,
            bits: exthdr.len.unwrap_or_default().checked_mul(8)?,
            presence: flags.contains(ExthdrFlags::PRESENT),
        };
        if kind == ExthdrOp::DCCP && !option.presence {
            return None;
        }
        (option.presence || option.bits == 0 || is_place(option.offset, option.bits))
            .then_some(())?;
        match (exthdr.sreg, exthdr.dreg) {
            (Some(sreg), _) => {
                let target = Expr::Option(option);
                let to = self.unresolved(sreg, target.data_type())?;
                self.push(Statement::Mangle(Mangle::new(target, to)))
            }
            (None, Some(dreg)) => self.load(dreg, Expr::Option(option)),
            (None, None) if kind == ExthdrOp::TCPOPT => {
                self.push(Statement::Reset(Reset::new(option)))
            }
            (None, None) => None,
        }
    }

    pub(crate) fn ct(&mut self, ct: &expr::Ct) -> Option<()> {
        let key = ct.key?;
        if let Some(sreg) = ct.sreg {
            let target = Expr::Ct(key, ct.direction, None);
            let data_type = selectors::of(&target)?.data_type;
            self.check_mark(sreg, data_type)?;
            let to = self.typed_in(sreg, data_type, ByteOrder::Host)?;
            return self.push(Statement::Mangle(Mangle::new(target, to)));
        }
        // Addresses that do not imply an IP version have that of the table.
        let version = match key {
            CtKey::SRC | CtKey::DST => Some(self.version()?),
            _ => None,
        };
        self.load(ct.dreg?, Expr::Ct(key, ct.direction, version))
    }

    /// Returns the IP version, if established.
    pub(crate) fn version(&self) -> Option<Family> {
        let (protocol, _) = self.context.protocol(PayloadBase::NETWORK, 0)?;
        match protocol.name {
            "ip" => Some(Family::IP),
            "ip6" => Some(Family::IP6),
            _ => None,
        }
    }

    pub(crate) fn hash(&mut self, hash: &expr::Hash<'_>) -> Option<()> {
        let key = match hash.hash_type.unwrap_or_default() {
            HashType::JENKINS => {
                let key = self.key(hash.sreg?, hash.len? as usize)?;
                Some(Box::new(Expr::Concat(key)))
            }
            HashType::SYM => None,
            _ => return None,
        };
        let loaded = Expr::Hash {
            seed: hash.seed.filter(|_| key.is_some()),
            key,
            modulus: hash.modulus?,
            offset: hash.offset.unwrap_or_default(),
        };
        self.load(hash.dreg?, loaded)
    }

    pub(crate) fn bitwise(&mut self, bitwise: &expr::Bitwise<'_>) -> Option<()> {
        let Loaded {
            expr: Content::Expr(mut expr),
            length,
            order,
        } = self.registers.get(bitwise.sreg?)?.clone()
        else {
            return None;
        };
        // If the operation is longer than the loaded value, the value is extended with zeros.
        let all = bitwise.len.unwrap_or_default() as usize;
        let is_longer = (length..=16).contains(&all) && all > length;
        let is_number = order == ByteOrder::Host || length == 1;
        let (length, order) = match is_longer && is_number {
            true => (all, ByteOrder::Host),
            false => (length, order),
        };
        let bits = length as u32 * 8; // at most the length of the registers
        let constant = |data: &Option<Data<'_>>| match data {
            Some(Data::Value(bytes)) if bytes.len() <= length.next_multiple_of(4) => {
                let bytes = bytes.get(..length).unwrap_or(bytes);
                value(bytes, order, DataType::INTEGER).map(|value| Value { bits, ..value })
            }
            _ => None,
        };
        let binary = |operator, left, number| {
            let value = Value {
                data_type: DataType::INTEGER,
                bits,
                number,
            };
            Expr::Binary(operator, Box::new(left), Box::new(Expr::Value(value)))
        };
        match bitwise.op.unwrap_or_default() {
            BitwiseOp::MASK_XOR => {
                let (mask, xor) = (
                    constant(&bitwise.mask)?.number,
                    constant(&bitwise.xor)?.number,
                );
                let (set, turned) = (xor & !mask, xor & mask);
                let kept = mask | set;
                if kept != Value::ones(bits) {
                    expr = binary(Operator::And, expr, kept);
                }
                if turned != 0 {
                    expr = binary(Operator::Xor, expr, turned);
                }
                if set != 0 {
                    expr = binary(Operator::Or, expr, set);
                }
            }
            operation @ (BitwiseOp::LSHIFT | BitwiseOp::RSHIFT) => {
                let Some(Data::Value(count)) = &bitwise.data else {
                    return None;
                };
                let count = u32::from_ne_bytes((**count).try_into().ok()?);
                let operator = match operation {
                    BitwiseOp::LSHIFT => Operator::LeftShift,
                    _ => Operator::RightShift,
                };
                expr = binary(operator, expr, count.into());
            }
            operation => {
                let operator = match operation {
                    BitwiseOp::AND => Operator::And,
                    BitwiseOp::OR => Operator::Or,
                    BitwiseOp::XOR => Operator::Xor,
                    _ => return None,
                };
                let other = self.registers.get(bitwise.sreg2?)?;
                let Content::Expr(right) = other.expr.clone() else {
                    return None;
                };
                // A single byte has no order.
                let fits = other.order == order || other.length == 1 || length == 1;
                fits.then_some(())?;
                expr = Expr::Binary(operator, Box::new(expr), Box::new(right));
            }
        }
        let loaded = Loaded {
            expr: Content::Expr(expr),
            length,
            order,
        };
        self.registers.put(bitwise.dreg?, loaded)
    }
}

/// Returns the byte order of a loaded expression; shifts operate on host order.
fn order_of(expr: &Expr) -> ByteOrder {
    match expr {
        Expr::Binary(Operator::LeftShift | Operator::RightShift, ..) => ByteOrder::Host,
        Expr::Binary(_, left, _) => order_of(left),
        other => other.order(),
    }
}
