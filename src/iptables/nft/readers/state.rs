//! A version's memory of the previous expressions.

use crate::nft::expr::{MetaKey, PayloadBase, Register};

/// Up to 16 bytes of a comparison, and their number. The rest are 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value {
    pub(super) bytes: [u8; 16],
    pub(super) length: usize,
}

impl Value {
    pub(super) fn new(value: &[u8]) -> Self {
        let mut bytes = [0; 16];
        let length = value.len().min(16);
        bytes[..length].copy_from_slice(&value[..length]);
        Self { bytes, length }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Returns the first four bytes as a number.
    pub(super) fn number(&self) -> u32 {
        let [a, b, c, d, ..] = self.bytes;
        u32::from_ne_bytes([a, b, c, d])
    }
}

/// The field that a `payload` expression loads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Payload {
    pub(super) base: Option<PayloadBase>,
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// The content of a register, as far as 1.8.9 and newer track it.
#[derive(Debug, Clone, Copy)]
pub(super) enum RegisterContent {
    Meta(MetaKey),
    Payload(Payload),
    Constant(Value),
}

/// The registers of versions since 1.8.9, and the memory of older ones, which know only one register.
#[derive(Debug, Default)]
pub(super) struct RegisterState {
    /// Content, and the mask applied to it.
    registers: [Option<(RegisterContent, Option<Value>)>; 16],
    pub(super) last: Last,
}

/// The memory of 1.8.7 and 1.8.8.
#[derive(Debug, Default)]
pub(super) struct Last {
    pub(super) register: Option<Register>,
    pub(super) meta: Option<MetaKey>,
    pub(super) payload: Option<Payload>,
    pub(super) mask: Option<Value>,
    pub(super) constant: Option<(Register, Value)>,
}

impl RegisterState {
    /// Returns the content of a register, and the mask applied to it.
    pub(super) fn content(&self, register: Register) -> Option<(RegisterContent, Option<Value>)> {
        *self.registers.get(slot(register)?)?
    }

    /// Records a load into a register.
    pub(super) fn load(&mut self, register: Register, content: RegisterContent) {
        self.set_content(register, content, None);
        let last = &mut self.last;
        match content {
            RegisterContent::Meta(key) => {
                last.register = Some(register);
                last.meta = Some(key);
            }
            RegisterContent::Payload(payload) => {
                last.register = Some(register);
                last.payload = Some(payload);
            }
            RegisterContent::Constant(value) => last.constant = Some((register, value)),
        }
    }

    /// Records a mask of a register's content, into another register or the same.
    pub(super) fn mask(&mut self, from: Register, to: Register, mask: Value) {
        if let Some((content, _)) = self.content(from) {
            self.set_content(to, content, Some(mask));
        }
        let last = &mut self.last;
        if last.register.is_none_or(|register| register == from) {
            last.mask = Some(mask);
        }
    }

    fn set_content(&mut self, register: Register, content: RegisterContent, mask: Option<Value>) {
        if let Some(slot) = slot(register).and_then(|slot| self.registers.get_mut(slot)) {
            *slot = Some((content, mask));
        }
    }
}

/// Returns a register's index in units of 4 bytes.
fn slot(register: Register) -> Option<usize> {
    let long = [Register::R1, Register::R2, Register::R3, Register::R4];
    let short = |slot: usize| Register::word(slot as u32) == register;
    long.iter()
        .position(|known| *known == register)
        .map(|known| known * 4)
        .or_else(|| (0..16).find(|slot| short(*slot)))
}
