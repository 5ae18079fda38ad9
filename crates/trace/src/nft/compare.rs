//! Comparisons of registers.

use super::{Continuation, Evaluator, needed};
use crate::path_state::Undetermined;
use crate::registers::bits_of;
use crate::value::{Bit, Test, Value};
use chainwright::nft::expr::{CmpOp, CmpRef, ExpressionView, RangeOp, RangeRef, Register};

impl<'s> Evaluator<'_, 's> {
    pub(super) fn cmp(&mut self, cmp: &CmpRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let (register, op) = (needed(cmp.sreg())?, needed(cmp.op())?);
        let data = needed(cmp.data())?;
        let wanted = needed(data.as_value())?;
        let is = match self
            .registers
            .known(self.path_state, register, wanted.len())
        {
            Some(bytes) => match op {
                CmpOp::EQ => &*bytes == wanted,
                CmpOp::NEQ => &*bytes != wanted,
                CmpOp::LT => &*bytes < wanted,
                CmpOp::LTE => &*bytes <= wanted,
                CmpOp::GT => &*bytes > wanted,
                CmpOp::GTE => &*bytes >= wanted,
                _ => return Err(Undetermined::unknown("it compares in an unsupported way")),
            },
            None => {
                let bits = needed(self.registers.bits(register, wanted.len()))?;
                match op {
                    CmpOp::EQ => self.equal(&bits, wanted)?,
                    CmpOp::NEQ => !self.equal(&bits, wanted)?,
                    _ => {
                        let (low, high) = self.bounds(cmp)?;
                        let value = Value::of_bits(&bits);
                        self.path_state
                            .test_value(&value, Test::Within(low, high))?
                    }
                }
            }
        };
        Ok(Continuation::on_if(is))
    }

    fn equal(&mut self, bits: &[Bit], wanted: &[u8]) -> Result<bool, Undetermined> {
        let wanted = bits_of(wanted).map(|bit| bit == Bit::Known(true));
        self.path_state.test_each(bits.iter().copied().zip(wanted))
    }

    /// Returns the range of numbers that pass an ordered comparison and all directly following ones of the same bytes:
    /// `tcp dport 10-20` is two comparisons. They are evaluated as one query, so that a branch splits into inside and
    /// outside, not also into below and above.
    fn bounds(&self, first: &CmpRef<'s>) -> Result<(u128, u128), Undetermined> {
        let (bytes, (mut low, mut high)) = accepted(first)?;
        for (_, expression) in self.rest.clone() {
            let Ok(Ok(ExpressionView::Cmp(next))) = expression.map(|next| next.view()) else {
                break;
            };
            match accepted(&next) {
                Ok((same, (from, to))) if same == bytes => {
                    (low, high) = (low.max(from), high.min(to));
                }
                _ => break, // another query
            }
        }
        Ok((low, high))
    }

    pub(super) fn range(&mut self, range: &RangeRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let (register, op) = (needed(range.sreg())?, needed(range.op())?);
        let (from, to) = (needed(range.from_data())?, needed(range.to_data())?);
        let (from, to) = (needed(from.as_value())?, needed(to.as_value())?);
        let within = match self.registers.known(self.path_state, register, from.len()) {
            Some(bytes) => from <= &*bytes && &*bytes <= to,
            None => {
                let bits = needed(self.registers.bits(register, from.len()))?;
                let (from, to) = (number(from)?, number(to)?);
                let value = Value::of_bits(&bits);
                self.path_state.test_value(&value, Test::Within(from, to))?
            }
        };
        let is = match op {
            RangeOp::EQ => within,
            RangeOp::NEQ => !within,
            _ => return Err(Undetermined::unknown("it compares in an unsupported way")),
        };
        Ok(Continuation::on_if(is))
    }
}

/// Register and length of the compared bytes.
type Bytes = (Register, usize);

/// Returns the bytes of an ordered comparison and the range that it accepts, which is empty if the first number
/// exceeds the last.
fn accepted(cmp: &CmpRef<'_>) -> Result<(Bytes, (u128, u128)), Undetermined> {
    const NONE: (u128, u128) = (1, 0);
    let (register, data) = (needed(cmp.sreg())?, needed(cmp.data())?);
    let end = needed(data.as_value())?;
    let (length, end) = (end.len(), number(end)?);
    let range = match needed(cmp.op())? {
        CmpOp::LT => end.checked_sub(1).map_or(NONE, |last| (0, last)),
        CmpOp::LTE => (0, end),
        CmpOp::GT => end.checked_add(1).map_or(NONE, |first| (first, u128::MAX)),
        CmpOp::GTE => (end, u128::MAX),
        _ => return Err(Undetermined::unknown("it compares in an unsupported way")),
    };
    Ok(((register, length), range))
}

/// Converts big-endian bytes to a number.
fn number(bytes: &[u8]) -> Result<u128, Undetermined> {
    if bytes.len() > 16 {
        return Err(Undetermined::unknown(
            "it compares the order of more than sixteen bytes",
        ));
    }
    Ok(bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte)))
}
