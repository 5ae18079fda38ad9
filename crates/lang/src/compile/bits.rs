//! Compiles bitwise operations.

use super::constant::ExpectedType;
use super::load::Loaded;
use super::rule_builder::{RuleBuilder, register};
use crate::parse::{Diagnostic, number};
use crate::syntax::{Expr, Operator, Payload, Value};
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::{Bitwise, BitwiseOp, Byteorder, Data};

/// 4-byte words in a 16-byte register.
const REGISTER: u32 = 4;
/// 4-byte words in all registers.
const WORDS: u32 = 16;

const fn is_shift(operator: Operator) -> bool {
    matches!(operator, Operator::LeftShift | Operator::RightShift)
}

/// Sequence of operations with constants, the last one first, and their operand.
struct Chain<'e> {
    pending: Vec<(Operator, &'e Expr)>,
    of: &'e Expr,
}

/// Splits an expression into such a sequence, which may be empty.
fn chain(expr: &Expr) -> Chain<'_> {
    let mut chain = Chain {
        pending: Vec::new(),
        of: expr,
    };
    while let Expr::Binary(operator, left, right) = chain.of {
        if is_shift(*operator) || !right.is_constant() {
            break;
        }
        chain.pending.push((*operator, right));
        chain.of = left;
    }
    chain
}

impl RuleBuilder<'_, '_> {
    /// Compiles an operation. A sequence of bitwise operations with constants becomes one expression.
    pub(crate) fn operation(
        &mut self,
        operator: Operator,
        operation: &Expr,
        (left, right): (&Expr, &Expr),
        word: u32,
    ) -> Result<Loaded, Diagnostic> {
        if is_shift(operator) {
            return self.shifted(operator, left, right, word);
        }
        let chain = chain(operation);
        if chain.pending.is_empty() {
            return self.of_two(operator, left, right, word);
        }
        // Bits at the end of the bytes are masked together with the operation.
        let mut loaded = match self.wide {
            None => self.load_bytes(chain.of, word)?,
            Some(_) => self.load(chain.of, word)?,
        };
        if loaded.shift > 0 && self.wide.is_none() {
            if loaded.length > 1 {
                // The bits keep their position: nft cannot list shifted values of several bytes.
                let (mask, xor) = self.folded(chain.pending, loaded.expected_type)?;
                let (mask, xor) = (mask << loaded.shift, xor << loaded.shift);
                self.mask_xor(word, mask, xor, loaded.length, loaded.expected_type.order);
                return Ok(loaded);
            }
            self.trim(&loaded, word);
        }
        self.bring_down(&mut loaded, word)?;
        self.widen(&mut loaded, word);
        let expected_type = loaded.expected_type;
        let ones = Value::ones(loaded.length as u32 * 8); // at most 16 bytes
        let (mask, xor) = self.folded(chain.pending, expected_type)?;
        self.mask_xor(
            word,
            mask & ones,
            xor & ones,
            loaded.length,
            expected_type.order,
        );
        Ok(loaded)
    }

    /// Combines a sequence of operations with constants into a mask and an xor value.
    fn folded(
        &self,
        pending: Vec<(Operator, &Expr)>,
        expected_type: ExpectedType,
    ) -> Result<(u128, u128), Diagnostic> {
        let (mut mask, mut xor) = (Value::ones(expected_type.bits), 0);
        for (operator, right) in pending.into_iter().rev() {
            let number = self.compiler.operand(right, expected_type)?;
            match operator {
                Operator::And => {
                    mask &= number;
                    xor &= number;
                }
                Operator::Or => {
                    mask &= !number;
                    xor = (xor & !number) | number;
                }
                _ => xor ^= number,
            }
        }
        Ok((mask, xor))
    }

    /// Returns the mask and xor value that change a field to `to`: a constant, or the field itself with bitwise
    /// operations.
    pub(crate) fn changed(
        &self,
        field: &Payload,
        to: &Expr,
        expected_type: ExpectedType,
    ) -> Result<(u128, u128), Diagnostic> {
        if to.is_constant() {
            return Ok((0, self.compiler.value(to, expected_type)?.number));
        }
        let chain = chain(to);
        match chain.of {
            Expr::Payload(of) if of == field => self.folded(chain.pending, expected_type),
            _ => {
                let message = "part of a byte can only be set to a constant, or to its old value with some bits changed";
                Err(self.compiler.diagnostic(to, message))
            }
        }
    }

    /// Compiles a shift.
    fn shifted(
        &mut self,
        operator: Operator,
        left: &Expr,
        right: &Expr,
        word: u32,
    ) -> Result<Loaded, Diagnostic> {
        let mut loaded = self.load(left, word)?;
        if loaded.shift > 0 && self.wide.is_none() {
            self.trim(&loaded, word);
        }
        self.bring_down(&mut loaded, word)?;
        self.widen(&mut loaded, word);
        let expected_type = loaded.expected_type;
        let count = self.compiler.shift_count(right, expected_type)?;
        let op = match operator {
            Operator::LeftShift => BitwiseOp::LSHIFT,
            _ => BitwiseOp::RSHIFT,
        };
        // The kernel shifts in host byte order.
        if matches!(loaded.length, 2 | 4 | 8) {
            self.turn_to_host(&mut loaded, word);
        }
        if count > 0 {
            self.shift(word, op, count, loaded.length);
        }
        Ok(loaded)
    }

    /// Compiles an operation on two non-constant values (Linux 6.13).
    fn of_two(
        &mut self,
        operator: Operator,
        left: &Expr,
        right: &Expr,
        word: u32,
    ) -> Result<Loaded, Diagnostic> {
        let second = word + REGISTER;
        if second >= WORDS {
            let message = "too many values: out of registers";
            return Err(self.compiler.diagnostic(right, message));
        }
        let [one, other] = [(left, word), (right, second)].map(|(expr, word)| {
            let mut loaded = self.load(expr, word)?;
            self.bring_down(&mut loaded, word)?;
            self.widen(&mut loaded, word);
            Ok(loaded)
        });
        let (one, mut other) = (one?, other?);
        if one.length != other.length {
            let message = format!(
                "bitwise operands have different lengths: {} and {} bytes",
                one.length, other.length
            );
            return Err(self.compiler.diagnostic(right, message));
        }
        match one.expected_type.order {
            ByteOrder::Host => self.turn_to_host(&mut other, second),
            ByteOrder::Network => self.turn_to_network(&mut other, second),
        }
        self.push(&Bitwise {
            sreg: Some(register(word)),
            sreg2: Some(register(second)),
            dreg: Some(register(word)),
            op: Some(match operator {
                Operator::And => BitwiseOp::AND,
                Operator::Or => BitwiseOp::OR,
                _ => BitwiseOp::XOR,
            }),
            len: Some(one.length as u32), // at most 16
            ..Bitwise::default()
        });
        Ok(one)
    }

    /// Right-aligns the bits of a field. If the value is part of a wider number, the result is in host byte order.
    pub(crate) fn bring_down(&mut self, loaded: &mut Loaded, word: u32) -> Result<(), Diagnostic> {
        match self.wide {
            Some(_) => self.shift_in_host_order(loaded, word),
            None => self.shift_down(loaded, word),
        }
    }

    /// Extends a shorter value to the length that the statement needs. The register has zeros in the added bits.
    pub(crate) fn widen(&mut self, loaded: &mut Loaded, word: u32) {
        let Some(bits) = self.wide else {
            return;
        };
        if matches!(loaded.length, 1 | 2) && loaded.length as u32 * 8 < bits {
            self.turn_to_host(loaded, word);
            loaded.length = bits as usize / 8;
            loaded.expected_type.bits = bits;
        }
    }

    /// Converts a value from network to host byte order.
    pub(crate) fn turn_to_host(&mut self, loaded: &mut Loaded, word: u32) {
        if loaded.expected_type.order == ByteOrder::Network {
            loaded.expected_type.order = ByteOrder::Host;
            if loaded.length > 1 {
                let (register, length) = (register(word), loaded.length as u32); // at most 16
                let unit = length.min(8);
                self.push(&Byteorder::ntoh(register, register, length, unit));
            }
        }
    }

    /// Right-aligns bits and restores their byte order. Bytes without bits of the value are dropped.
    pub(crate) fn shift_down(&mut self, loaded: &mut Loaded, word: u32) -> Result<(), Diagnostic> {
        if loaded.shift == 0 {
            return Ok(());
        }
        let order = loaded.expected_type.order;
        self.shift_in_host_order(loaded, word)?;
        if loaded.expected_type.length() == 1 && cfg!(target_endian = "little") {
            loaded.length = 1;
        }
        if order == ByteOrder::Network {
            self.turn_to_network(loaded, word);
        }
        Ok(())
    }

    /// Right-aligns bits. The kernel shifts in host byte order, so values of several bytes are converted first.
    fn shift_in_host_order(&mut self, loaded: &mut Loaded, word: u32) -> Result<(), Diagnostic> {
        if loaded.shift == 0 {
            return Ok(());
        }
        if !matches!(loaded.length, 1 | 2 | 4) {
            let message = "the kernel can only shift packet fields of 1, 2 or 4 bytes";
            return Err(self.error(message));
        }
        self.turn_to_host(loaded, word);
        self.shift(word, BitwiseOp::RSHIFT, loaded.shift, loaded.length);
        loaded.shift = 0;
        Ok(())
    }

    fn shift(&mut self, word: u32, op: BitwiseOp, count: u32, length: usize) {
        let count = count.to_ne_bytes();
        self.push(&Bitwise {
            sreg: Some(register(word)),
            dreg: Some(register(word)),
            op: Some(op),
            len: Some(length as u32), // at most 16
            data: Some(Data::value(&count)),
            ..Bitwise::default()
        });
    }
}

impl super::Compiler<'_> {
    /// Evaluates the constant operand of a bitwise operation: a number for any type, or a constant of the type.
    fn operand(&self, expr: &Expr, expected_type: ExpectedType) -> Result<u128, Diagnostic> {
        if let Expr::Symbol(symbol) = expr
            && let Some(number) = number(&symbol.text)
        {
            return self.fitting(number, expected_type, expr);
        }
        Ok(self.value(expr, expected_type)?.number)
    }
}

/// Returns an operand that is not a constant, if there is one.
pub(crate) fn not_constant(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Binary(_, left, right) if right.is_constant() => not_constant(left),
        Expr::Binary(_, _, right) => Some(right),
        Expr::Concat(parts) => parts.iter().find_map(not_constant),
        _ => None,
    }
}
