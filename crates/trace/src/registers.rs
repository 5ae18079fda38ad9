//! The registers of nf_tables: bytes, as far as they are known.

use super::flow::Flow;
use super::value::{Bit, Value};
use chainwright::nft::expr::Register;
use chainwright_sys::nf_tables::{NFT_REG_4, NFT_REG32_00, NFT_REG32_15};

/// In which order the bytes of a number stand in a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The highest byte first.
    Network,
    /// As this machine keeps numbers.
    Host,
}

/// How many words the registers have.
pub(super) const WORDS: usize = 16;

/// Four bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Known([u8; 4]),
    /// Their bits, each byte's highest first.
    Open(Box<[Bit; 32]>),
}

/// All registers but the verdict's.
#[derive(Debug, Clone)]
pub(super) struct Registers([Word; WORDS]);

/// Bytes of registers that are known: no more than all of them.
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

/// The word that a register begins with; `None` if there is no such register.
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

    /// The words that so many bytes from a register on are in.
    fn words(register: Register, length: usize) -> Option<std::ops::Range<usize>> {
        let first = word(register)?;
        let behind = first + length.div_ceil(4);
        (behind <= WORDS && length > 0).then_some(first..behind)
    }

    /// The bytes from a register on, if they are known by now.
    pub(super) fn known(
        &self,
        flow: &Flow,
        register: Register,
        length: usize,
    ) -> Option<KnownBytes> {
        let words = Self::words(register, length)?;
        let mut bytes = [0; 64];
        for (word, room) in self.0[words].iter().zip(bytes.chunks_exact_mut(4)) {
            match word {
                Word::Known(known) => room.copy_from_slice(known),
                Word::Open(bits) => {
                    for (byte, bits) in room.iter_mut().zip(bits.chunks_exact(8)) {
                        *byte = flow.known(&Value::of_bits(bits))? as u8;
                    }
                }
            }
        }
        Some(KnownBytes { bytes, length })
    }

    /// The bits of the bytes from a register on, each byte's highest first.
    pub(super) fn bits(&self, register: Register, length: usize) -> Option<Vec<Bit>> {
        let words = Self::words(register, length)?;
        let mut bits = Vec::with_capacity(words.len() * 32);
        for word in &self.0[words] {
            match word {
                Word::Known(bytes) => bits.extend(bits_of(bytes)),
                Word::Open(open) => bits.extend_from_slice(&open[..]),
            }
        }
        bits.truncate(length * 8);
        Some(bits)
    }

    /// The number that so many bytes from a register on are, at most 16.
    pub(super) fn value(&self, register: Register, length: usize, order: Order) -> Option<Value> {
        let bits = self.bits(register, length)?;
        Some(Value::of_bits(&ordered(bits, order)))
    }

    /// Puts bytes into a register.
    pub(super) fn store_bytes(&mut self, register: Register, bytes: &[u8]) -> Option<()> {
        let words = Self::words(register, bytes.len())?;
        for (word, bytes) in self.0[words].iter_mut().zip(bytes.chunks(4)) {
            let mut filled = [0; 4];
            filled[..bytes.len()].copy_from_slice(bytes);
            *word = Word::Known(filled);
        }
        Some(())
    }

    /// Puts bits, each byte's highest first, into a register.
    pub(super) fn store_bits(&mut self, register: Register, bits: &[Bit]) -> Option<()> {
        let words = Self::words(register, bits.len() / 8)?;
        for (word, bits) in self.0[words].iter_mut().zip(bits.chunks(32)) {
            let mut filled = [Bit::Known(false); 32];
            filled[..bits.len()].copy_from_slice(bits);
            *word = match Value::of_bits(&filled) {
                Value::Known { number, .. } => Word::Known((number as u32).to_be_bytes()),
                Value::Open(_) => Word::Open(Box::new(filled)),
            };
        }
        Some(())
    }

    /// Puts a number into a register.
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
            Value::Open(_) => self.store_bits(register, &ordered(value.to_bits(), order)),
        }
    }
}

/// The bits of bytes, each one's highest first.
pub(super) fn bits_of(bytes: &[u8]) -> impl Iterator<Item = Bit> {
    let bits = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1));
    bits.map(|bit| Bit::Known(bit != 0))
}

/// The bits of a number from those of its bytes, or the other way round.
pub(super) fn ordered(bits: Vec<Bit>, order: Order) -> Vec<Bit> {
    if order == Order::Network || cfg!(target_endian = "big") {
        return bits;
    }
    bits.chunks(8).rev().flatten().copied().collect()
}
