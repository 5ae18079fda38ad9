//! Decodes comparisons.

use super::fields::{typed_operation, typed_tree};
use super::registers::Content;
use super::rule::{Reader, value};
use super::tunnel::{compared_type, written_type};
use crate::dialect::{Form, NftVersion};
use crate::protocols;
use crate::syntax::{Expr, Operator, Payload, Relation, Statement, Value};
use crate::types;
use chainwright::nft::DataType;
use chainwright::nft::expr::{CmpOp, FibFlags, Register};

impl Reader<'_, '_> {
    /// Returns the left side of a comparison and its value.
    pub(crate) fn compared(&mut self, sreg: Register, bytes: &[u8]) -> Option<(Expr, Value)> {
        let loaded = self.registers.get(sreg)?;
        let Content::Expr(left) = loaded.expr.clone() else {
            return None;
        };
        let order = loaded.order;
        let data_type = left.data_type();
        (!bytes.is_empty()).then_some(())?;
        // Existence of a route: nft 1.1 compares one byte; earlier versions compare a word.
        let is_short = matches!(&left, Expr::Fib(flags, _) if flags.contains(FibFlags::PRESENT))
            && bytes.len() == 1;
        let bytes = match bytes.get(..loaded.length) {
            None if is_short => bytes,
            // Booleans are compared as a whole word.
            Some(first) if bytes[loaded.length..].iter().all(|byte| *byte == 0) => first,
            // iptables compares names including the terminating NUL.
            None if types::is_string(data_type) && bytes.ends_with(&[0]) => {
                let mut whole = bytes.to_vec();
                whole.resize(loaded.length, 0);
                return Some((left, value(&whole, order, data_type)?));
            }
            None if types::is_string(data_type) || is_address(data_type) => bytes,
            _ => return None,
        };
        Some((left, value(bytes, order, data_type)?))
    }

    pub(crate) fn compare(&mut self, sreg: Register, op: CmpOp, bytes: &[u8]) -> Option<()> {
        let (left, right) = self.compared(sreg, bytes)?;
        let relation = match op {
            CmpOp::EQ => Relation::Implicit,
            CmpOp::NEQ => Relation::NotEqual,
            CmpOp::LT => Relation::Less,
            CmpOp::LTE => Relation::LessOrEqual,
            CmpOp::GT => Relation::Greater,
            CmpOp::GTE => Relation::GreaterOrEqual,
            _ => return None,
        };
        let is_equality = matches!(relation, Relation::Implicit | Relation::NotEqual);
        match left {
            Expr::Payload(place) => self.compare_payload(place, relation, right),
            Expr::Option(option) => {
                self.take_for_option(&option);
                let left = Expr::Option(option);
                let right = Value {
                    data_type: left.data_type(),
                    ..right
                };
                self.matched(left, relation, Expr::Value(right))
            }
            Expr::Binary(Operator::And, inner, mask) => {
                let Expr::Value(mask) = *mask else {
                    return None;
                };
                self.compare_masked(*inner, mask, relation, right)
            }
            left if is_address(left.data_type()) && right.bits < left.bits() => {
                // nft compares the leading bytes for a prefix of whole bytes.
                is_equality.then_some(())?;
                let prefix = right.bits;
                let right = Value {
                    number: right.number << (left.bits() - right.bits),
                    bits: left.bits(),
                    ..right
                };
                let right = Expr::Prefix(Box::new(Expr::Value(right)), prefix);
                let left = self.resolve(left);
                self.matched(left, relation, right)
            }
            left if types::is_string(left.data_type()) && right.bits < left.bits() => {
                // nft compares the leading characters for a name with a trailing asterisk.
                is_equality.then_some(())?;
                let wide = Value {
                    number: right.number << (left.bits() - right.bits),
                    bits: left.bits(),
                    ..right
                };
                self.matched(left, relation, Expr::Beginning(wide, right.bits))
            }
            left => {
                let left = self.resolve(left);
                let right = Value {
                    data_type: written_type(&left),
                    ..right
                };
                self.matched(left, relation, Expr::Value(right))
            }
        }
    }

    /// Decodes a comparison of packet bytes, which may be several fields or the start of one.
    pub(crate) fn compare_payload(
        &mut self,
        place: Payload,
        relation: Relation,
        right: Value,
    ) -> Option<()> {
        let is_equality = matches!(relation, Relation::Implicit | Relation::NotEqual);
        let payload = self.completed(place);
        if payload.field.is_some() || !self.context_in(place.tunnel).is_known(place.base) {
            // `vlan type ip` follows the match of the ether type for a VLAN tag.
            let is_tag = payload
                .field
                .is_some_and(|(protocol, _)| protocol.name == "vlan");
            let is_implied = place.bits == 16 && relation == Relation::Implicit;
            if !(is_tag && is_implied) {
                self.remove_implicit(&payload);
            }
            let left = Expr::Payload(payload);
            let right = Value {
                data_type: compared_type(&left, relation),
                ..right
            };
            return self.matched(left, relation, Expr::Value(right));
        }
        if let Some(whole) = self.begins_field(&place).filter(|_| is_equality) {
            self.remove_implicit(&whole);
            let left = Expr::Payload(whole);
            let right = Value {
                data_type: left.data_type(),
                bits: whole.bits,
                number: right.number << (whole.bits - place.bits),
            };
            let right = Expr::Prefix(Box::new(Expr::Value(right)), place.bits);
            return self.matched(left, relation, right);
        }
        if relation == Relation::Implicit
            && let Some(fields) = self.fields_within(&place)
        {
            let mut left_over = place.bits;
            for field in fields {
                left_over -= field.bits;
                let payload = Expr::Payload(field);
                let value = Value {
                    data_type: payload.data_type(),
                    bits: field.bits,
                    number: right.number >> left_over & Value::ones(field.bits),
                };
                self.remove_implicit(&field);
                self.matched(payload, relation, Expr::Value(value))?;
            }
            return Some(());
        }
        self.matched(Expr::Payload(place), relation, Expr::Value(right))
    }

    pub(crate) fn compare_masked(
        &mut self,
        left: Expr,
        mask: Value,
        relation: Relation,
        right: Value,
    ) -> Option<()> {
        let is_equality = matches!(relation, Relation::Implicit | Relation::NotEqual);
        if let Some((field, shift)) = self.masked(&left, &Expr::Value(mask)) {
            let field = self.resolved_field(field);
            let right = Value {
                data_type: field.data_type(),
                bits: field.bits(),
                number: right.number >> shift,
            };
            return self.matched(field, relation, Expr::Value(right));
        }
        let left = match left {
            // nft 1.0 does not look up fields below further operations on their bits.
            left @ Expr::Binary(Operator::RightShift, ..)
                if !self.version.has(Form::BitOffsets) =>
            {
                typed_tree(left, self.version)
            }
            left => self.resolve(left),
        };
        let data_type = written_type(&left);
        if let Some((place, shift)) = self.adjacent(&left, mask) {
            let right = Value {
                data_type,
                bits: place.bits,
                number: right.number >> shift,
            };
            return self.matched(Expr::Payload(place), relation, Expr::Value(right));
        }
        let mask = Value { data_type, ..mask };
        let right = Value { data_type, ..right };
        if types::is_bitmask(data_type) && is_equality {
            let several = mask.number.count_ones() > 1;
            return match (right.number, relation) {
                (0, Relation::NotEqual) => self.matched(left, Relation::Implicit, any_of(mask)),
                (0, _) => self.matched(left, Relation::None, any_of(mask)),
                _ if several && !self.version.has(Form::FlagMasks) => {
                    let masked = Expr::Masked(Box::new(flags(right)), Box::new(flags(mask)));
                    self.matched(left, relation, masked)
                }
                _ => self.matched(
                    typed_operation(Operator::And, left, Expr::Value(mask), self.version),
                    relation,
                    Expr::Value(right),
                ),
            };
        }
        let has_prefixes = types::has_prefixes(data_type, self.version);
        if let Some(prefix) = mask.prefix_of_mask().filter(|_| has_prefixes) {
            let right = Expr::Prefix(Box::new(Expr::Value(right)), prefix);
            return self.matched(left, relation, right);
        }
        let left = typed_operation(Operator::And, left, Expr::Value(mask), self.version);
        self.matched(left, relation, Expr::Value(right))
    }

    /// Returns the bits of bytes without a name that a mask selects, if they are adjacent, and the number of bits after
    /// them.
    fn adjacent(&self, left: &Expr, mask: Value) -> Option<(Payload, u32)> {
        let Expr::Payload(place @ Payload { field: None, .. }) = left else {
            return None;
        };
        let is_listed = self.version.has(Form::BitOffsets) && place.tunnel.is_none();
        let shift = mask.number.trailing_zeros();
        let bits = mask.number.count_ones();
        let is_adjacent = is_listed && bits > 0 && mask.number >> shift == Value::ones(bits);
        let before = place.bits.checked_sub(bits + shift)?;
        // nft keeps a mask of the first bits.
        (is_adjacent && before > 0).then_some((
            Payload {
                offset: place.offset + before,
                bits,
                ..*place
            },
            shift,
        ))
    }

    /// Decodes a range comparison of a register.
    pub(crate) fn limits(
        &mut self,
        left: Expr,
        relation: Relation,
        from: Value,
        to: Value,
    ) -> Option<()> {
        let left = match left {
            Expr::Binary(Operator::And, inner, mask) => match self.masked(&inner, &mask) {
                Some((field, shift)) => {
                    let field = self.resolved_field(field);
                    let turned = |value: Value| Value {
                        data_type: field.data_type(),
                        bits: field.bits(),
                        number: value.number >> shift,
                    };
                    let range = range(turned(from), turned(to));
                    return self.matched(field, relation, range);
                }
                None => self.resolve(Expr::Binary(Operator::And, inner, mask)),
            },
            left => self.resolve(left),
        };
        let data_type = written_type(&left);
        let (from, to) = (Value { data_type, ..from }, Value { data_type, ..to });
        // Hours that are not between two others are those from the second to the first.
        if data_type == types::HOUR
            && relation == Relation::NotEqual
            && self.version.has(Form::HourRanges)
        {
            return self.matched(left, Relation::Implicit, range(to, from));
        }
        self.matched(left, relation, range(from, to))
    }

    /// Gives the values of both sides the type in whose form they are listed.
    pub(crate) fn listed(&self, left: Expr, right: Expr) -> (Expr, Expr) {
        match listed_type(&left, self.version) {
            Some(data_type) => (with_type(left, data_type), with_type(right, data_type)),
            None => (left, right),
        }
    }

    /// Adds a match, or merges it with the previous one into a range.
    pub(crate) fn matched(&mut self, left: Expr, relation: Relation, right: Expr) -> Option<()> {
        let (left, right) = self.listed(left, right);
        if let (Relation::LessOrEqual, Expr::Value(to), Some(Some(last))) =
            (relation, &right, self.statements.last())
            && let Statement::Match {
                left: before,
                relation: Relation::GreaterOrEqual,
                right: Expr::Value(from),
            } = last
            && *before == left
        {
            let range = range(*from, *to);
            self.statements.pop();
            return self.matched(left, Relation::Implicit, range);
        }
        let is_flags = matches!(&right, Expr::Value(_)) && left.is_bitmask();
        let is_binary = matches!(left, Expr::Binary(..));
        let relation = match relation {
            Relation::Implicit if is_binary => Relation::Equal,
            Relation::Implicit if is_flags => Relation::Equal,
            relation => relation,
        };
        let implied = match (&right, relation) {
            (Expr::Value(value), Relation::Implicit | Relation::Equal) => Some(*value),
            _ => None,
        };
        if let Some(value) = implied {
            self.record_match(&left, &value);
        }
        if matches!((&right, relation), (Expr::Set(_), Relation::Implicit)) {
            self.record_matches(&left);
        }
        if let (Expr::Set(_), Relation::Implicit) = (&right, relation) {
            self.context.record_matches(&left);
        }
        self.push(Statement::Match {
            left,
            relation,
            right,
        })
    }
}

/// Returns the type in whose form values of an expression are listed, if it is not the expression's own.
pub(crate) fn listed_type(expr: &Expr, version: NftVersion) -> Option<DataType> {
    match expr {
        Expr::Payload(payload) => {
            let (protocol, field) = payload.field?;
            let is_it = *protocol == protocols::IP && protocol.fields[field].name == "frag-off";
            (is_it && version.has(Form::FragOffset)).then_some(types::RAW)
        }
        Expr::Option(option) if option.is("mptcp", "subtype") => version
            .has(Form::MptcpSubtypes)
            .then_some(types::MPTCP_SUBTYPE),
        Expr::Option(option) if option.is_address_of_ipv4() => version
            .has(Form::OptionAddresses)
            .then_some(DataType::IPV4_ADDR),
        Expr::Binary(_, left, _) => listed_type(left, version),
        _ => None,
    }
}

/// Gives the values of a comparison this type.
fn with_type(expr: Expr, data_type: DataType) -> Expr {
    let boxed = |expr: Box<Expr>| Box::new(with_type(*expr, data_type));
    match expr {
        Expr::Value(value) => Expr::Value(Value { data_type, ..value }),
        Expr::Range(from, to) => Expr::Range(boxed(from), boxed(to)),
        Expr::Binary(operator @ (Operator::And | Operator::Or | Operator::Xor), left, right) => {
            Expr::Binary(operator, boxed(left), boxed(right))
        }
        other => other,
    }
}

/// Returns the flags of a value, for a comparison that matches if any of them is set.
pub(crate) fn any_of(value: Value) -> Expr {
    match flags(value) {
        Expr::Value(one) => Expr::Flags(vec![Expr::Value(one)]),
        flags => flags,
    }
}

/// Splits a value into its flags, if it has several.
pub(crate) fn flags(value: Value) -> Expr {
    let mut flags = Vec::new();
    let mut left = value.number;
    while left != 0 {
        let flag = left & left.wrapping_neg();
        left &= left - 1;
        flags.push(Expr::Value(Value {
            number: flag,
            ..value
        }));
    }
    match flags.len() {
        0 | 1 => Expr::Value(value),
        _ => Expr::Flags(flags),
    }
}

pub(crate) fn range(from: Value, to: Value) -> Expr {
    Expr::Range(Box::new(Expr::Value(from)), Box::new(Expr::Value(to)))
}

pub(crate) const fn is_address(data_type: DataType) -> bool {
    matches!(data_type, DataType::IPV4_ADDR | DataType::IPV6_ADDR)
}
