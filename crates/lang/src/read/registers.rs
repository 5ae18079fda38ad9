//! Register contents while a rule is read.

use crate::syntax::Expr;
use chainwright::nft::build::ByteOrder;
use chainwright::nft::expr::Register;

/// Number of 4-byte words.
const WORDS: usize = 16;

/// Value that an expression loaded into a register.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) expr: Content,
    /// Length in bytes.
    pub(crate) length: usize,
    pub(crate) order: ByteOrder,
}

/// Content of a register.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Expr(Expr),
    /// Constant bytes; their type depends on where they are used.
    Bytes(Vec<u8>),
}

/// All registers, as words.
#[derive(Debug, Default)]
pub(crate) struct Registers([Option<Loaded>; WORDS]);

/// Returns the first word of a register.
fn word(register: Register) -> Option<usize> {
    match register.0 {
        number @ 1..=4 => Some((number as usize - 1) * 4),
        number @ 8..=23 => Some(number as usize - 8),
        _ => None,
    }
}

impl Registers {
    pub(crate) fn put(&mut self, register: Register, loaded: Loaded) -> Option<()> {
        let word = word(register)?;
        let words = loaded.length.div_ceil(4).max(1);
        // Remove values that are overwritten.
        for at in word..(word + words).min(WORDS) {
            self.0[at] = None;
        }
        self.0[word] = Some(loaded);
        Some(())
    }

    /// Returns `true` if a register is part of `length` bytes that start at register `first`.
    pub(crate) fn is_within(register: Register, first: Register, length: usize) -> bool {
        match (word(register), word(first)) {
            (Some(word), Some(first)) => (first..first + length.div_ceil(4)).contains(&word),
            _ => false,
        }
    }

    pub(crate) fn get(&self, register: Register) -> Option<&Loaded> {
        self.0.get(word(register)?)?.as_ref()
    }

    /// Returns the consecutive values in `length` bytes that start at this register.
    pub(crate) fn many(&self, register: Register, length: usize) -> Option<Vec<&Loaded>> {
        let mut found = Vec::new();
        let mut at = word(register)?;
        let end = at + length.div_ceil(4);
        while at < end {
            let loaded = self.0.get(at)?.as_ref()?;
            found.push(loaded);
            at += loaded.length.div_ceil(4).max(1);
        }
        (at == end).then_some(found)
    }
}
