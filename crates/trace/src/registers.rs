//! Registers of nf_tables, with partially known contents.

use super::path_state::PathState;
use super::value::{Bit, Value};
use chainwright::nft::expr::Register;
use chainwright_sys::nf_tables::{NFT_REG_4, NFT_REG32_00, NFT_REG32_15};

/// Byte order of a number in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Most significant byte first.
    Network,
    /// Byte order of this machine.
    Host,
}

/// Number of 4-byte words.
pub(super) const WORDS: usize = 16;

/// Four bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Known([u8; 4]),
    /// Bits, most significant first in each byte.
    Undetermined(Box<[Bit; 32]>),
}

/// All registers except the verdict register.
#[derive(Debug, Clone)]
pub(super) struct Registers([Word; WORDS]);

/// Known bytes of consecutive registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownBytes {
    bytes: [u8; 64],
    length: usize,
}

impl std::ops::Deref for KnownBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Returns the first word of a register; `None` for an invalid register.
pub(super) const fn word(register: Register) -> Option<usize> {
    match register.0 {
        number @ 1..=NFT_REG_4 => Some((number as usize - 1) * 4),
        number @ NFT_REG32_00..=NFT_REG32_15 => Some((number - NFT_REG32_00) as usize),
        _ => None,
    }
}

impl Registers {
    pub(super) const fn new() -> Self {
        Self([const { Word::Known([0; 4]) }; WORDS])
    }

    /// Returns the words of `length` bytes from a register on.
    fn words(register: Register, length: usize) -> Option<std::ops::Range<usize>> {
        let first = word(register)?;
        let behind = first + length.div_ceil(4);
        (behind <= WORDS && length > 0).then_some(first..behind)
    }

    /// Returns the bytes from a register on if they are known by now.
    pub(super) fn known(
        &self,
        path_state: &PathState,
        register: Register,
        length: usize,
    ) -> Option<KnownBytes> {
        let words = Self::words(register, length)?;
        let mut bytes = [0; 64];
        for (word, chunk) in self.0[words].iter().zip(bytes.chunks_exact_mut(4)) {
            match word {
                Word::Known(known) => chunk.copy_from_slice(known),
                Word::Undetermined(bits) => {
                    for (byte, bits) in chunk.iter_mut().zip(bits.chunks_exact(8)) {
                        *byte = path_state.known(&Value::of_bits(bits))? as u8;
                    }
                }
            }
        }
        Some(KnownBytes { bytes, length })
    }

    /// Returns the bits from a register on, most significant first in each byte.
    pub(super) fn bits(&self, register: Register, length: usize) -> Option<Vec<Bit>> {
        let words = Self::words(register, length)?;
        let mut bits = Vec::with_capacity(words.len() * 32);
        for word in &self.0[words] {
            match word {
                Word::Known(bytes) => bits.extend(bits_of(bytes)),
                Word::Undetermined(open) => bits.extend_from_slice(&open[..]),
            }
        }
        bits.truncate(length * 8);
        Some(bits)
    }

    /// Returns a number of at most 16 bytes.
    pub(super) fn value(&self, register: Register, length: usize, order: Order) -> Option<Value> {
        let bits = self.bits(register, length)?;
        Some(Value::of_bits(&ordered(bits, order)))
    }

    /// Stores bytes.
    pub(super) fn store_bytes(&mut self, register: Register, bytes: &[u8]) -> Option<()> {
        let words = Self::words(register, bytes.len())?;
        for (word, bytes) in self.0[words].iter_mut().zip(bytes.chunks(4)) {
            let mut filled = [0; 4];
            filled[..bytes.len()].copy_from_slice(bytes);
            *word = Word::Known(filled);
        }
        Some(())
    }

    /// Stores bits, most significant first in each byte.
    pub(super) fn store_bits(&mut self, register: Register, bits: &[Bit]) -> Option<()> {
        let words = Self::words(register, bits.len() / 8)?;
        for (word, bits) in self.0[words].iter_mut().zip(bits.chunks(32)) {
            let mut filled = [Bit::Known(false); 32];
            filled[..bits.len()].copy_from_slice(bits);
            *word = match Value::of_bits(&filled) {
                Value::Known { number, .. } => Word::Known((number as u32).to_be_bytes()),
                Value::Undetermined(_) => Word::Undetermined(Box::new(filled)),
            };
        }
        Some(())
    }

    /// Stores a number.
    pub(super) fn store(&mut self, register: Register, value: &Value, order: Order) -> Option<()> {
        match value {
            Value::Known { number, bits } => {
                let length = (*bits as usize).div_ceil(8);
                let mut bytes = number.to_be_bytes();
                let bytes = &mut bytes[16 - length..];
                if order == Order::Host && cfg!(target_endian = "little") {
                    bytes.reverse();
                }
                self.store_bytes(register, bytes)
            }
            Value::Undetermined(_) => self.store_bits(register, &ordered(value.to_bits(), order)),
        }
    }
}

/// Returns the bits of bytes, most significant first in each byte.
pub(super) fn bits_of(bytes: &[u8]) -> impl Iterator<Item = Bit> {
    let bits = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1));
    bits.map(|bit| Bit::Known(bit != 0))
}

/// Converts between the bits of a number and those of its bytes, in either direction.
pub(super) fn ordered(bits: Vec<Bit>, order: Order) -> Vec<Bit> {
    if order == Order::Network || cfg!(target_endian = "big") {
        return bits;
    }
    bits.chunks(8).rev().flatten().copied().collect()
}
