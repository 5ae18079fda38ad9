//! What compares registers with values.

use super::{Machine, Went, needed};
use crate::nft::expr::{CmpOp, CmpRef, RangeOp, RangeRef};
use crate::walk::flow::Open;
use crate::walk::registers::bits_of;
use crate::walk::value::{Bit, Test, Value};

impl<'s> Machine<'_, 's> {
    pub(super) fn cmp(&mut self, cmp: &CmpRef<'s>) -> Result<Went<'s>, Open> {
        let (register, op) = (needed(cmp.sreg())?, needed(cmp.op())?);
        let data = needed(cmp.data())?;
        let wanted = needed(data.as_value())?;
        let is = match self.registers.known(self.flow, register, wanted.len()) {
            Some(bytes) => match op {
                CmpOp::EQ => &*bytes == wanted,
                CmpOp::NEQ => &*bytes != wanted,
                CmpOp::LT => &*bytes < wanted,
                CmpOp::LTE => &*bytes <= wanted,
                CmpOp::GT => &*bytes > wanted,
                CmpOp::GTE => &*bytes >= wanted,
                _ => return Err(Open::unknown("it compares in a way that is not known here")),
            },
            None => {
                let bits = needed(self.registers.bits(register, wanted.len()))?;
                match op {
                    CmpOp::EQ => self.equal(&bits, wanted)?,
                    CmpOp::NEQ => !self.equal(&bits, wanted)?,
                    CmpOp::LT => self.is_below(&bits, wanted, false)?,
                    CmpOp::GTE => !self.is_below(&bits, wanted, false)?,
                    CmpOp::LTE => self.is_below(&bits, wanted, true)?,
                    CmpOp::GT => !self.is_below(&bits, wanted, true)?,
                    _ => return Err(Open::unknown("it compares in a way that is not known here")),
                }
            }
        };
        Ok(Went::on_if(is))
    }

    fn equal(&mut self, bits: &[Bit], wanted: &[u8]) -> Result<bool, Open> {
        let wanted = bits_of(wanted).map(|bit| bit == Bit::Known(true));
        self.flow.ask_each(bits.iter().copied().zip(wanted))
    }

    /// Whether bits are below a value, or below or equal to it.
    fn is_below(&mut self, bits: &[Bit], end: &[u8], inclusive: bool) -> Result<bool, Open> {
        let end = number(end)?;
        let last = match inclusive {
            true => Some(end),
            false => end.checked_sub(1),
        };
        match last {
            Some(last) => self.flow.ask(&Value::of_bits(bits), Test::Within(0, last)),
            None => Ok(false),
        }
    }

    pub(super) fn range(&mut self, range: &RangeRef<'s>) -> Result<Went<'s>, Open> {
        let (register, op) = (needed(range.sreg())?, needed(range.op())?);
        let (from, to) = (needed(range.from_data())?, needed(range.to_data())?);
        let (from, to) = (needed(from.as_value())?, needed(to.as_value())?);
        let within = match self.registers.known(self.flow, register, from.len()) {
            Some(bytes) => from <= &*bytes && &*bytes <= to,
            None => {
                let bits = needed(self.registers.bits(register, from.len()))?;
                let (from, to) = (number(from)?, number(to)?);
                let value = Value::of_bits(&bits);
                self.flow.ask(&value, Test::Within(from, to))?
            }
        };
        let is = match op {
            RangeOp::EQ => within,
            RangeOp::NEQ => !within,
            _ => return Err(Open::unknown("it compares in a way that is not known here")),
        };
        Ok(Went::on_if(is))
    }
}

/// Bytes as a number, the first on top.
fn number(bytes: &[u8]) -> Result<u128, Open> {
    if bytes.len() > 16 {
        return Err(Open::unknown(
            "it compares more than sixteen bytes by their order",
        ));
    }
    Ok(bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u128::from(*byte)))
}
