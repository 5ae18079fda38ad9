//! Resolves packet bytes to fields.

use super::context::Context;
use super::rule::Reader;
use super::tunnel::written_type;
use crate::dialect::{Form, NftVersion};
use crate::protocols;
use crate::syntax::{Expr, Operator, OptionField, Payload, Value};
use crate::types;
use chainwright::nft::DataType;
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{ExthdrOp, Register};

impl Reader<'_, '_> {
    /// Adds the field at this position, if there is one.
    pub(crate) fn completed(&self, place: Payload) -> Payload {
        Payload {
            field: self
                .context_in(place.tunnel)
                .field(place.base, place.offset, place.bits),
            ..place
        }
    }

    /// Returns the field that consists of the masked bits, and its distance from the last bit of `place`.
    pub(crate) fn trimmed(&self, place: &Payload, mask: u128) -> Option<(Payload, u32)> {
        if mask == 0 {
            return None;
        }
        let shift = mask.trailing_zeros();
        let length = u128::BITS - mask.leading_zeros() - shift;
        (mask >> shift == Value::ones(length)).then_some(())?;
        let offset = place.offset + place.bits.checked_sub(shift + length)?;
        let context = self.context_in(place.tunnel);
        let field = context.field(place.base, offset, length)?;
        let payload = Payload {
            offset,
            bits: length,
            field: Some(field),
            ..*place
        };
        Some((payload, shift))
    }

    /// Returns the field that contains all of these bits, and its distance from the last bit of `place`.
    pub(crate) fn around(&self, place: &Payload, bits: u128) -> Option<(Payload, u32)> {
        let context = self.context_in(place.tunnel);
        let (protocol, offset) = context.protocol(place.base, place.offset)?;
        let end = offset + place.bits;
        protocol
            .fields
            .iter()
            .enumerate()
            .find_map(|(index, field)| {
                let ends = field.offset.checked_add(field.bits)?;
                (field.offset >= offset && ends <= end && field.bits < place.bits).then_some(())?;
                let shift = end - ends;
                (bits & !(Value::ones(field.bits) << shift) == 0).then_some(())?;
                let at = place.offset + field.offset - offset;
                let known = context.field(place.base, at, field.bits)?;
                (known == (protocol, index)).then_some(())?;
                let payload = Payload {
                    offset: at,
                    bits: field.bits,
                    field: Some(known),
                    ..*place
                };
                Some((payload, shift))
            })
    }

    /// Like [`trimmed`](Self::trimmed), for the field of an option.
    pub(crate) fn trimmed_option(option: &OptionField, mask: u128) -> Option<(OptionField, u32)> {
        if mask == 0 {
            return None;
        }
        let shift = mask.trailing_zeros();
        let bits = u128::BITS - mask.leading_zeros() - shift;
        (mask >> shift == Value::ones(bits)).then_some(())?;
        let offset = option.offset + option.bits.checked_sub(shift + bits)?;
        let kind = option.extension.kind;
        let trimmed = OptionField {
            extension: protocols::extension(kind, option.number, offset, bits)?,
            offset,
            bits,
            ..*option
        };
        trimmed.field()?;
        Some((trimmed, shift))
    }

    pub(crate) fn take_for_option(&mut self, option: &OptionField) {
        let protocol = match option.extension.kind {
            ExthdrOp::IPV6 => "ip6",
            ExthdrOp::IPV4 => "ip",
            ExthdrOp::SCTP => "sctp",
            ExthdrOp::DCCP => "dccp",
            _ => "tcp",
        };
        self.context.take_protocol(protocol, &mut self.statements);
    }

    /// Resolves the fields in an expression, and removes implicit matches of their protocols.
    pub(crate) fn resolve(&mut self, expr: Expr) -> Expr {
        match expr {
            Expr::Payload(place) => {
                let payload = self.completed(place);
                self.remove_implicit(&payload);
                Expr::Payload(payload)
            }
            Expr::Option(option) => {
                self.take_for_option(&option);
                Expr::Option(option)
            }
            // A field of some bits, right-aligned in its bytes.
            Expr::Binary(Operator::RightShift, left, right) => {
                if let (Expr::Binary(Operator::And, inner, mask), Expr::Value(count)) =
                    (&*left, &*right)
                    && let Some((field, shift)) = self.masked(inner, mask)
                    && u128::from(shift) == count.number
                {
                    return self.resolved_field(field);
                }
                let left = self.resolve(*left);
                Expr::Binary(Operator::RightShift, Box::new(left), right)
            }
            Expr::Binary(Operator::And, left, mask) => match self.masked(&left, &mask) {
                Some((field, _)) => self.resolved_field(field),
                None => {
                    let left = self.resolve(*left);
                    let mask = self.resolve(*mask);
                    typed_operation(Operator::And, left, mask, self.version)
                }
            },
            Expr::Binary(operator, left, right) => {
                let left = self.resolve(*left);
                let right = self.resolve(*right);
                typed_operation(operator, left, right, self.version)
            }
            Expr::Map(key, map) => {
                let (Expr::Concat(parts), Expr::Reference(name)) = (*key, *map) else {
                    return Expr::Reference(String::new()); // maps are not resolved twice
                };
                match self.looked_up(parts, name.as_bytes()) {
                    Some((key, set)) => Expr::Map(Box::new(key), Box::new(set)),
                    None => {
                        self.is_lost = true;
                        Expr::Reference(name)
                    }
                }
            }
            Expr::Hash {
                key: Some(key),
                modulus,
                seed,
                offset,
            } => {
                let Expr::Concat(parts) = *key else {
                    return Expr::Reference(String::new());
                };
                let (key, _) = self.resolve_key(parts);
                Expr::Hash {
                    key: Some(Box::new(key)),
                    modulus,
                    seed,
                    offset,
                }
            }
            other => other,
        }
    }

    /// Returns the value of a register with raw payload expressions instead of fields, as nft prints it in some
    /// places.
    pub(crate) fn unresolved(&mut self, register: Register, data_type: DataType) -> Option<Expr> {
        let without_protocols = Context::without_protocols(self.family());
        let known = std::mem::replace(&mut self.context, without_protocols);
        let found = self.typed_in(register, data_type, ByteOrder::Network);
        self.context = known;
        found
    }

    /// Returns the field that a mask selects.
    pub(crate) fn masked(&self, left: &Expr, mask: &Expr) -> Option<(Expr, u32)> {
        let Expr::Value(mask) = mask else {
            return None;
        };
        match left {
            Expr::Payload(place) => {
                // A mask on a whole field stays an operation.
                if self
                    .context_in(place.tunnel)
                    .field(place.base, place.offset, place.bits)
                    .is_some()
                {
                    return None;
                }
                let (field, shift) = self.trimmed(place, mask.number)?;
                Some((Expr::Payload(field), shift))
            }
            Expr::Option(option) if option.field().is_none() => {
                let (field, shift) = Self::trimmed_option(option, mask.number)?;
                Some((Expr::Option(field), shift))
            }
            _ => None,
        }
    }

    pub(crate) fn resolved_field(&mut self, field: Expr) -> Expr {
        match &field {
            Expr::Payload(payload) => self.remove_implicit(payload),
            Expr::Option(option) => self.take_for_option(option),
            _ => {}
        }
        field
    }

    /// Returns the address field that starts with these bytes.
    pub(crate) fn begins_field(&self, place: &Payload) -> Option<Payload> {
        let context = self.context_in(place.tunnel);
        let (protocol, offset) = context.protocol(place.base, place.offset)?;
        let is_it = |field: &protocols::Field| {
            field.offset == offset
                && field.bits > place.bits
                && matches!(field.data_type, DataType::IPV4_ADDR | DataType::IPV6_ADDR)
        };
        let field = protocol.fields.iter().position(is_it)?;
        Some(Payload {
            bits: protocol.fields[field].bits,
            field: Some((protocol, field)),
            ..*place
        })
    }

    /// Splits these bytes into contiguous fields.
    pub(crate) fn fields_within(&self, place: &Payload) -> Option<Vec<Payload>> {
        let context = self.context_in(place.tunnel);
        let (protocol, mut offset) = context.protocol(place.base, place.offset)?;
        let start = place.offset - offset;
        let end = offset + place.bits;
        let mut fields = Vec::new();
        while offset < end {
            let is_next = |f: &protocols::Field| f.offset == offset && offset + f.bits <= end;
            let field = context.field_of(protocol, is_next)?;
            let bits = protocol.fields[field].bits;
            fields.push(Payload {
                offset: start + offset,
                bits,
                field: Some((protocol, field)),
                ..*place
            });
            offset += bits;
        }
        Some(fields)
    }

    /// Splits these bytes into several fields, if all but the last consist of whole 32-bit words.
    pub(crate) fn fields_of(&self, place: &Payload) -> Option<Vec<Payload>> {
        let is_known = self.context_in(place.tunnel).is_known(place.base);
        if self.completed(*place).field.is_some() || !is_known {
            return None;
        }
        let fields = self.fields_within(place)?;
        let (_, before) = fields.split_last()?;
        before
            .iter()
            .all(|field| field.bits % 32 == 0)
            .then_some(fields)
    }
}

/// Creates an operation; its right side has the type of the left.
pub(crate) fn typed_operation(
    operator: Operator,
    left: Expr,
    right: Expr,
    version: NftVersion,
) -> Expr {
    let right = match right {
        Expr::Value(value) => {
            let data_type = match operator {
                Operator::LeftShift | Operator::RightShift => DataType::INTEGER,
                // A number that is combined with shifted bits has no names; in nft 1.0 also one that is longer than the
                // loaded value.
                _ if is_moved(&left) => types::RAW,
                _ if !version.has(Form::LongOperands) && is_longer(&value, left.data_type()) => {
                    types::RAW
                }
                _ => written_type(&left),
            };
            Expr::Value(Value { data_type, ..value })
        }
        right => right,
    };
    Expr::Binary(operator, Box::new(left), Box::new(right))
}

/// Returns `true` if a number is longer than values of this type.
fn is_longer(value: &Value, data_type: DataType) -> bool {
    let bits = types::info(data_type).map_or(0, |info| info.bits);
    bits > 0 && value.bits > bits.next_multiple_of(8)
}

/// Returns `true` if the bits of a value with a non-numeric format are shifted.
fn is_moved(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(Operator::LeftShift | Operator::RightShift, left, _) => {
            let data_type = left.data_type();
            let is_number = matches!(
                data_type,
                DataType::MARK | DataType::INTEGER | DataType::VALUE | DataType::INET_SERVICE
            );
            !is_number && data_type != types::RAW
        }
        Expr::Binary(_, left, _) => is_moved(left),
        _ => false,
    }
}

/// Assigns types in a tree of operations.
pub(crate) fn typed_tree(expr: Expr, version: NftVersion) -> Expr {
    match expr {
        Expr::Binary(operator, left, right) => {
            typed_operation(operator, typed_tree(*left, version), *right, version)
        }
        other => other,
    }
}
