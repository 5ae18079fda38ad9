//! Bitwise operations and byte order conversions.

use super::{Continuation, Evaluator, needed};
use crate::path_state::Undetermined;
use crate::registers::{Order, bits_of, ordered};
use crate::sets::data_bits;
use crate::value::Bit;
use chainwright::nft::expr::{BitwiseOp, BitwiseRef, ByteorderOp, ByteorderRef};

impl<'s> Evaluator<'_, 's> {
    /// Converts the byte order: in both directions, bytes are swapped if the byte orders differ.
    pub(super) fn byteorder(
        &mut self,
        byteorder: &ByteorderRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let length = needed(byteorder.len())? as usize;
        let size = needed(byteorder.size())? as usize;
        let (source, dreg) = (needed(byteorder.sreg())?, needed(byteorder.dreg())?);
        let known = [ByteorderOp::NTOH, ByteorderOp::HTON];
        if !known.contains(&needed(byteorder.op())?) || !matches!(size, 2 | 4 | 8) {
            return Err(Undetermined::unknown(
                "it converts the byte order in an unsupported way",
            ));
        }
        let bits = needed(self.registers.bits(source, length))?;
        let turned: Vec<Bit> = bits
            .chunks(size * 8)
            .flat_map(|chunk| ordered(chunk.to_vec(), Order::Host))
            .collect();
        needed(self.registers.store_bits(dreg, &turned))?;
        Ok(Continuation::On)
    }

    pub(super) fn bitwise(
        &mut self,
        bitwise: &BitwiseRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let (source, dreg) = (needed(bitwise.sreg())?, needed(bitwise.dreg())?);
        let length = needed(bitwise.len())? as usize;
        let op = bitwise.op().unwrap_or(BitwiseOp::MASK_XOR);
        let bits = needed(self.registers.bits(source, length))?;
        let changed = match op {
            BitwiseOp::MASK_XOR => {
                let (mask, xor) = (needed(bitwise.mask())?, needed(bitwise.xor())?);
                let (mask, xor) = (needed(mask.as_value())?, needed(xor.as_value())?);
                if mask.len() < length || xor.len() < length {
                    return Err(Undetermined::unknown("a mask is too short"));
                }
                if let Some(known) = self.registers.known(self.path_state, source, length) {
                    let both = mask.iter().zip(xor);
                    let bytes = known.iter().zip(both);
                    let bytes: Vec<u8> =
                        bytes.map(|(byte, (mask, xor))| byte & mask ^ xor).collect();
                    needed(self.registers.store_bytes(dreg, &bytes))?;
                    return Ok(Continuation::On);
                }
                masked(&bits, mask, xor)
            }
            BitwiseOp::LSHIFT | BitwiseOp::RSHIFT => {
                let data = needed(bitwise.data())?;
                let by = match needed(data.as_value())?.first_chunk::<4>() {
                    Some(bytes) => u32::from_ne_bytes(*bytes) as usize,
                    None => return Err(Undetermined::unknown("a shift is too short")),
                };
                shifted(bits, op == BitwiseOp::LSHIFT, by)
            }
            BitwiseOp::AND | BitwiseOp::OR | BitwiseOp::XOR => {
                let other = match bitwise.sreg2() {
                    Some(register) => needed(self.registers.bits(register, length))?,
                    None => data_bits(&needed(bitwise.data())?),
                };
                if other.len() < bits.len() {
                    return Err(Undetermined::unknown("a value is too short"));
                }
                let both = bits.into_iter().zip(other);
                both.map(|(one, other)| self.taken_together(op, one, other))
                    .collect()
            }
            _ => {
                return Err(Undetermined::unknown(
                    "it changes bits in an unsupported way",
                ));
            }
        };
        needed(self.registers.store_bits(dreg, &changed))?;
        Ok(Continuation::On)
    }

    /// Combines two bits. If both are unknown, the result is a new unknown.
    fn taken_together(&mut self, op: BitwiseOp, one: Bit, other: Bit) -> Bit {
        let (open, set) = match (one, other) {
            (Bit::Known(one), Bit::Known(other)) => {
                return Bit::Known(match op {
                    BitwiseOp::AND => one & other,
                    BitwiseOp::OR => one | other,
                    _ => one ^ other,
                });
            }
            (open, Bit::Known(set)) | (Bit::Known(set), open) => (open, set),
            _ => {
                let words = "a combination of two unknown values";
                return self.new_unknown(words, 1).bit(0);
            }
        };
        match (op, set) {
            (BitwiseOp::AND, false) => Bit::Known(false),
            (BitwiseOp::OR, true) => Bit::Known(true),
            (BitwiseOp::AND, true) | (BitwiseOp::OR, false) => open,
            _ => open.turned(set),
        }
    }
}

/// Applies a mask and an xor.
pub(crate) fn masked(bits: &[Bit], mask: &[u8], xor: &[u8]) -> Vec<Bit> {
    let masks = bits_of(mask).zip(bits_of(xor));
    let one = |(bit, (mask, xor)): (&Bit, (Bit, Bit))| {
        let kept = match mask == Bit::Known(true) {
            true => *bit,
            false => Bit::Known(false),
        };
        kept.turned(xor == Bit::Known(true))
    };
    bits.iter().zip(masks).map(one).collect()
}

/// Shifts bits left (`up`) or right. Words are in host byte order, the first one is the most significant.
pub(crate) fn shifted(mut bits: Vec<Bit>, up: bool, by: usize) -> Vec<Bit> {
    let words = |bits: &[Bit]| -> Vec<Bit> {
        let words = bits.chunks(32);
        words
            .flat_map(|word| ordered(word.to_vec(), Order::Host))
            .collect()
    };
    let length = bits.len();
    bits.resize(length.next_multiple_of(32), Bit::Known(false));
    let all = words(&bits);
    let zeros = std::iter::repeat_n(Bit::Known(false), by.min(all.len()));
    let moved: Vec<Bit> = match up {
        true => all.iter().copied().skip(by).chain(zeros).collect(),
        false => zeros.chain(all.iter().copied()).take(all.len()).collect(),
    };
    let mut back = words(&moved);
    back.truncate(length);
    back
}
