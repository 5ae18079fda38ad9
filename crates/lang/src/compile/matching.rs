//! Compiles matches.

use super::bits::not_constant;
use super::constant::ExpectedType;
use super::protocols::Protocols;
use super::rule_builder::RuleBuilder;
use super::sets::kernel_type;
use crate::dialect::Form;
use crate::parse::{Diagnostic, number};
use crate::protocols::GRE;
use crate::syntax::{Element, Expr, Operator, Relation, Statement, Value};
use crate::types::{self, HOUR};
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{
    Cmp, CmpOp, FibFlags, FibResult, MetaKey, Payload as Load, Range, Register,
};
use chainwright::nft::{DataType, Family, concatenation};

/// Returns the kernel operation of a relational operator.
const fn operation(relation: Relation) -> CmpOp {
    match relation {
        Relation::Less => CmpOp::LT,
        Relation::LessOrEqual => CmpOp::LTE,
        Relation::Greater => CmpOp::GT,
        Relation::GreaterOrEqual => CmpOp::GTE,
        Relation::NotEqual => CmpOp::NEQ,
        Relation::Implicit | Relation::Equal | Relation::None => CmpOp::EQ,
    }
}

/// Returns the value of a set with one element without options.
fn only(elements: &[Element]) -> Option<&Expr> {
    match elements {
        [
            Element {
                key: Some(key),
                statements,
                timeout: None,
                expires: None,
                comment: None,
                data: None,
            },
        ] if statements.is_empty() && !matches!(key, Expr::Concat(_)) => Some(key),
        _ => None,
    }
}

/// Returns `true` if a comparison tests for existence.
fn is_presence_test(right: &Expr) -> bool {
    matches!(right, Expr::Symbol(symbol) if matches!(&*symbol.text, "exists" | "missing"))
}

/// Returns `true` if only versions of nft that use a `range` expression for ranges support this
/// selector.
fn is_newer(left: &Expr) -> bool {
    match left {
        Expr::Payload(payload) => {
            payload.tunnel.is_some() || payload.field.is_some_and(|(protocol, _)| *protocol == GRE)
        }
        Expr::Binary(_, left, _) => is_newer(left),
        left => matches!(left, Expr::Tunnel(_)),
    }
}

impl RuleBuilder<'_, '_> {
    /// Returns `true` if all packets of the table have the matched protocol (`meta protocol ip` in a table of IPv4).
    pub(crate) fn is_redundant(&self, statement: &Statement) -> bool {
        let number = match self.family {
            Family::IP => 0x0800,
            Family::IP6 => 0x86dd,
            _ => return false,
        };
        let Statement::Match {
            left: left @ Expr::Meta(MetaKey::PROTOCOL),
            relation: Relation::Implicit | Relation::Equal,
            right,
        } = statement
        else {
            return false;
        };
        let right = match right {
            Expr::Set(elements) => only(elements).unwrap_or(right),
            right => right,
        };
        let value = self.compiler.value(right, self.expected_type(left));
        value.is_ok_and(|value| value.number == number)
    }

    /// Compiles a match.
    pub(crate) fn matches(
        &mut self,
        left: &Expr,
        relation: Relation,
        right: &Expr,
    ) -> Result<(), Diagnostic> {
        if let Expr::Fib(flags, FibResult::OIF) = left
            && is_presence_test(right)
            && !flags.contains(FibFlags::PRESENT)
        {
            let left = Expr::Fib(*flags | FibFlags::PRESENT, FibResult::OIF);
            return self.matches(&left, relation, right);
        }
        if matches!(left, Expr::Meta(MetaKey::SECMARK)) {
            let message =
                "a security mark can only be set, not compared: no version of nft can list that";
            return Err(self.error(message));
        }
        if let Some(other) = not_constant(left) {
            let message = "bits of the left-hand side can only be changed by constants";
            return Err(self.compiler.diagnostic(other, message));
        }
        self.add_dependency(left)?;
        if let (Expr::Set(elements), false) = (right, matches!(left, Expr::Concat(_)))
            && let Some(one) = only(elements)
        {
            return self.compare(left, relation, one);
        }
        match right {
            Expr::Reference(_) | Expr::Set(_) => {
                let not = match relation {
                    Relation::Implicit | Relation::Equal => false,
                    Relation::NotEqual => true,
                    _ => {
                        let message = "a set can only be compared with `==` and `!=`";
                        return Err(self.compiler.diagnostic(right, message));
                    }
                };
                self.is_in(left, right, not)
            }
            Expr::Masked(value, mask) => {
                let loaded = self.load(left, 0)?;
                let mask = self.compiler.value(mask, loaded.expected_type)?.number;
                let value = self.compiler.value(value, loaded.expected_type)?.number;
                let (length, order) = (loaded.length, loaded.expected_type.order);
                self.mask_xor(0, mask << loaded.shift, 0, length, order);
                self.compare_bytes(operation(relation), &loaded.bytes(value));
                Ok(())
            }
            right => self.compare(left, relation, right),
        }
    }

    fn compare_bytes(&mut self, operation: CmpOp, bytes: &[u8]) {
        self.push(&Cmp::new(Register::R1, operation, bytes));
    }

    fn compare(&mut self, left: &Expr, relation: Relation, right: &Expr) -> Result<(), Diagnostic> {
        if let (Expr::Concat(parts), Expr::Concat(values)) = (left, right) {
            if parts.len() != values.len() {
                let message = format!("expected {} values, one for each field", parts.len());
                return Err(self.compiler.diagnostic(right, message));
            }
            let fields = self.load_key(left, 0, false, &[])?;
            let mut bytes = Vec::new();
            for (field, value) in fields.iter().zip(values) {
                let value = self.compiler.value(value, field.expected_type)?;
                bytes.push(field.bytes(value.number));
            }
            let bytes = concatenation(bytes.iter().map(Vec::as_slice));
            self.compare_bytes(operation(relation), &bytes);
            return Ok(());
        }
        if !right.is_constant() {
            let message = "a field can only be compared with constants and sets";
            return Err(self.compiler.diagnostic(right, message));
        }
        let expected_type = self.expected_type(left);
        let is_flags = types::is_bitmask(expected_type.data_type)
            && !matches!(left, Expr::Binary(..))
            && !matches!(right, Expr::Range(..) | Expr::Prefix(..));
        if is_flags && matches!(relation, Relation::Implicit | Relation::None) {
            let flags = self.compiler.value(right, expected_type)?.number;
            let loaded = self.load(left, 0)?;
            self.mask(&loaded, flags);
            let operation = match relation {
                Relation::Implicit => CmpOp::NEQ,
                _ => CmpOp::EQ,
            };
            self.compare_bytes(operation, &loaded.bytes(0));
            return Ok(());
        }
        if relation == Relation::None {
            let message = "`!` needs an expression with flags";
            return Err(self.compiler.diagnostic(right, message));
        }
        // Results of operations are numbers.
        if let (Expr::Binary(..), Expr::Symbol(symbol)) = (left, right)
            && let Some(number) = number(&symbol.text)
            && number <= Value::ones(expected_type.bits)
        {
            return self.compare_value(left, relation, expected_type.value(number));
        }
        if let (Expr::Range(from, to), HOUR) = (right, expected_type.data_type)
            && let (from, to) = (
                self.compiler.value(from, expected_type)?,
                self.compiler.value(to, expected_type)?,
            )
            && from.number > to.number
        {
            // Range across midnight in UTC: the inverse of the range between the two.
            let other = match relation {
                Relation::Implicit | Relation::Equal => Relation::NotEqual,
                Relation::NotEqual => Relation::Implicit,
                relation => relation,
            };
            let between = Expr::Range(Box::new(Expr::Value(to)), Box::new(Expr::Value(from)));
            return self.compare(left, other, &between);
        }
        match self.compiler.constant(right, expected_type)? {
            Expr::Value(value) => self.compare_value(left, relation, value),
            Expr::Range(from, to) => {
                let (Expr::Value(from), Expr::Value(to)) = (*from, *to) else {
                    return Err(self
                        .compiler
                        .diagnostic(right, "expected a range of values"));
                };
                let mut loaded = self.load(left, 0)?;
                self.turn_to_network(&mut loaded, 0);
                let (from, to) = (loaded.bytes(from.number), loaded.bytes(to.number));
                match relation {
                    Relation::Implicit | Relation::Equal
                        if is_newer(left) || self.compiler.version.has(Form::RangeExpression) =>
                    {
                        self.push(&Range::within(Register::R1, &from, &to));
                    }
                    Relation::Implicit | Relation::Equal => {
                        self.compare_bytes(CmpOp::GTE, &from);
                        self.compare_bytes(CmpOp::LTE, &to);
                    }
                    Relation::NotEqual => self.push(&Range::outside(Register::R1, &from, &to)),
                    _ => {
                        let message = "a range can only be compared with `==` and `!=`";
                        return Err(self.compiler.diagnostic(right, message));
                    }
                }
                Ok(())
            }
            Expr::Prefix(value, bits) => {
                let Expr::Value(value) = *value else {
                    return Err(self
                        .compiler
                        .diagnostic(right, "expected the prefix of a value"));
                };
                if !matches!(
                    relation,
                    Relation::Implicit | Relation::Equal | Relation::NotEqual
                ) {
                    let message = "a prefix can only be compared with `==` and `!=`";
                    return Err(self.compiler.diagnostic(right, message));
                }
                self.compare_prefix(left, relation, value, bits)
            }
            Expr::Beginning(value, bits) => {
                let loaded = self.load(left, 0)?;
                let bytes = loaded.bytes(value.number);
                let bytes = &bytes[..(bits / 8) as usize];
                match relation {
                    Relation::Implicit | Relation::Equal | Relation::NotEqual => {
                        self.compare_bytes(operation(relation), bytes);
                        Ok(())
                    }
                    _ => {
                        let message = "a name prefix can only be compared with `==` and `!=`";
                        Err(self.compiler.diagnostic(right, message))
                    }
                }
            }
            other => Err(self.compiler.diagnostic(&other, "expected a constant")),
        }
    }

    fn compare_value(
        &mut self,
        left: &Expr,
        relation: Relation,
        value: Value,
    ) -> Result<(), Diagnostic> {
        match relation {
            Relation::Implicit | Relation::Equal | Relation::NotEqual => {
                // An xor on the left side is applied to the value instead.
                if let Expr::Binary(Operator::Xor, inner, bits) = left {
                    let expected_type = self.expected_type(left);
                    let bits = self.compiler.value(bits, expected_type)?.number;
                    let value = Value {
                        number: value.number ^ bits,
                        ..value
                    };
                    return self.compare_value(inner, relation, value);
                }
                if relation == Relation::NotEqual {
                    let loaded = self.load(left, 0)?;
                    self.compare_bytes(CmpOp::NEQ, &loaded.bytes(value.number));
                    return Ok(());
                }
                self.equals(left, value.number)?;
                self.record_match(left, &value);
            }
            relation => {
                let mut loaded = self.load(left, 0)?;
                self.turn_to_network(&mut loaded, 0);
                self.compare_bytes(operation(relation), &loaded.bytes(value.number));
            }
        }
        Ok(())
    }

    fn compare_prefix(
        &mut self,
        left: &Expr,
        relation: Relation,
        value: Value,
        bits: u32,
    ) -> Result<(), Diagnostic> {
        let is_whole = matches!(left, Expr::Payload(payload)
            if payload.offset.is_multiple_of(8) && payload.bits.is_multiple_of(8));
        if let (Expr::Payload(payload), true) =
            (left, is_whole && bits > 0 && bits.is_multiple_of(8))
        {
            // Only the leading bytes.
            let offset = self.start_of(payload)? / 8;
            let expected_type = self.expected_type(left);
            let bytes = expected_type.bytes(value.number, expected_type.length());
            let length = bits / 8;
            let load = Load::load(payload.base, offset, length, Register::R1);
            self.push_at(payload.tunnel, &load);
            self.compare_bytes(operation(relation), &bytes[..length as usize]);
            return Ok(());
        }
        let loaded = self.load(left, 0)?;
        if bits > 0
            && bits.is_multiple_of(8)
            && loaded.expected_type.order == ByteOrder::Network
            && loaded.shift == 0
        {
            let bytes = loaded.bytes(value.number);
            self.compare_bytes(operation(relation), &bytes[..(bits / 8) as usize]);
            return Ok(());
        }
        let mask = Value::ones(value.bits) & !Value::ones(value.bits - bits);
        self.mask(&loaded, mask);
        self.compare_bytes(operation(relation), &loaded.bytes(value.number));
        Ok(())
    }

    /// Compiles a set lookup.
    fn is_in(&mut self, left: &Expr, right: &Expr, not: bool) -> Result<(), Diagnostic> {
        let set = self.sought(left, right, 0, None)?;
        self.look_up(&set, None, not);
        if let (false, Expr::Set(elements)) = (not, right)
            && Protocols::establishes_protocols(left)
        {
            let expected_type = self.expected_type(left);
            let keys = elements.iter().filter_map(|element| element.key.as_ref());
            let values = keys.map(|key| self.compiler.value(key, expected_type).ok());
            let values: Vec<_> = values.collect();
            let single: Vec<_> = values.iter().copied().flatten().collect();
            let or_other = single.len() < values.len();
            self.protocols_in(left.tunnel())
                .record_matches(left, &single, or_other);
        }
        Ok(())
    }
}

/// Returns the type number of a value or a concatenation in the kernel.
pub(crate) fn type_of(expected_types: impl IntoIterator<Item = ExpectedType>) -> DataType {
    let to_kernel_type = |expected_type: ExpectedType| kernel_type(expected_type.data_type);
    let types: Vec<DataType> = expected_types.into_iter().map(to_kernel_type).collect();
    match types[..] {
        [one] => one,
        _ => DataType::concatenation(types),
    }
}
