//! What a version remembers of the expressions that it has seen.

use crate::nft::expr::{MetaKey, PayloadBase, Register};

/// Up to 16 bytes of a comparison, and how many it had. What is not there is 0.
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

    /// The first four bytes as a number.
    pub(super) fn number(&self) -> u32 {
        let [a, b, c, d, ..] = self.bytes;
        u32::from_ne_bytes([a, b, c, d])
    }
}

/// What a `payload` expression loads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Payload {
    pub(super) base: Option<PayloadBase>,
    pub(super) offset: u32,
    pub(super) length: u32,
}

/// What a register holds, as far as 1.8.9 and newer look.
#[derive(Debug, Clone, Copy)]
pub(super) enum Held {
    Meta(MetaKey),
    Payload(Payload),
    Constant(Value),
}

/// The registers of the versions from 1.8.9 on, and the memory of those before them, which know one register only.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// With the mask that it was combined with.
    registers: [Option<(Held, Option<Value>)>; 16],
    pub(super) last: Last,
}

/// What 1.8.7 and 1.8.8 remember.
#[derive(Debug, Default)]
pub(super) struct Last {
    pub(super) register: Option<Register>,
    pub(super) meta: Option<MetaKey>,
    pub(super) payload: Option<Payload>,
    pub(super) mask: Option<Value>,
    pub(super) constant: Option<(Register, Value)>,
}

impl Memory {
    /// What a register holds, and the mask that it was combined with.
    pub(super) fn held(&self, register: Register) -> Option<(Held, Option<Value>)> {
        *self.registers.get(slot(register)?)?
    }

    /// Takes in what puts something into a register.
    pub(super) fn load(&mut self, register: Register, held: Held) {
        self.hold(register, held, None);
        let last = &mut self.last;
        match held {
            Held::Meta(key) => {
                last.register = Some(register);
                last.meta = Some(key);
            }
            Held::Payload(payload) => {
                last.register = Some(register);
                last.payload = Some(payload);
            }
            Held::Constant(value) => last.constant = Some((register, value)),
        }
    }

    /// Takes in that what a register holds is masked, into another one or the same.
    pub(super) fn mask(&mut self, from: Register, to: Register, mask: Value) {
        if let Some((held, _)) = self.held(from) {
            self.hold(to, held, Some(mask));
        }
        let last = &mut self.last;
        if last.register.is_none_or(|register| register == from) {
            last.mask = Some(mask);
        }
    }

    fn hold(&mut self, register: Register, held: Held, mask: Option<Value>) {
        if let Some(slot) = slot(register).and_then(|slot| self.registers.get_mut(slot)) {
            *slot = Some((held, mask));
        }
    }
}

/// A register's place among those of 4 bytes.
fn slot(register: Register) -> Option<usize> {
    let long = [Register::R1, Register::R2, Register::R3, Register::R4];
    let short = |slot: usize| Register::word(slot as u32) == register;
    long.iter()
        .position(|known| *known == register)
        .map(|known| known * 4)
        .or_else(|| (0..16).find(|slot| short(*slot)))
}
