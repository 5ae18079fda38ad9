//! Number generators and hashes.

use super::{Continuation, Evaluator, needed};
use crate::path_state::Undetermined;
use crate::registers::Order;
use crate::value::Value;
use crate::value_set::ones;
use chainwright::nft::expr::{HashRef, HashType, NumgenRef, NumgenType};

impl<'s> Evaluator<'_, 's> {
    pub(super) fn numgen(
        &mut self,
        numgen: &NumgenRef<'s>,
    ) -> Result<Continuation<'s>, Undetermined> {
        let register = needed(numgen.dreg())?;
        let modulus = needed(numgen.modulus())?;
        let from = numgen.offset().unwrap_or_default();
        let (description, uniform) = match needed(numgen.numgen_type())? {
            NumgenType::RANDOM => ("a random number", true),
            NumgenType::INCREMENTAL => ("an incremental number", false),
            _ => {
                return Err(Undetermined::unknown(
                    "it generates numbers in an unsupported way",
                ));
            }
        };
        let value = self.drawn(description, modulus, from, uniform);
        self.store(register, &value, Order::Host)
    }

    /// Creates an unknown in `from..from + modulus`.
    fn drawn(&mut self, description: &str, modulus: u32, from: u32, uniform: bool) -> Value {
        let (from, count) = (u128::from(from), u128::from(modulus.max(1)));
        let last = from + count - 1;
        let ranges = match last <= ones(32) {
            true => vec![(from, last)],
            false => vec![(from, ones(32)), (0, last & ones(32))],
        };
        self.path_state
            .new_unknown(description, 32, ranges, uniform)
    }

    pub(super) fn hash(&mut self, hash: &HashRef<'s>) -> Result<Continuation<'s>, Undetermined> {
        let register = needed(hash.dreg())?;
        let modulus = needed(hash.modulus())?;
        let from = hash.offset().unwrap_or_default();
        if hash.hash_type().unwrap_or(HashType::JENKINS) == HashType::JENKINS {
            let source = needed(hash.sreg())?;
            let length = needed(hash.len())? as usize;
            let key = self
                .registers
                .known(self.path_state, source, length.min(64));
            if let (Some(key), Some(seed)) = (key, hash.seed()) {
                let scaled = (u64::from(jhash(&key, seed)) * u64::from(modulus)) >> 32;
                let number = (scaled as u32).wrapping_add(from);
                let value = Value::known(number.into(), 32);
                return self.store(register, &value, Order::Host);
            }
        }
        let value = self.drawn("a hash with an unknown seed or key", modulus, from, true);
        self.store(register, &value, Order::Host)
    }
}

/// Computes Bob Jenkins' hash function lookup3, as the kernel applies it to bytes. Whole blocks are words in host byte
/// order; only the result for the remaining bytes is the same on all machines.
fn jhash(key: &[u8], seed: u32) -> u32 {
    const START: u32 = 0xdead_beef;
    let word = |bytes: &[u8]| {
        let bytes = bytes.iter().rev();
        bytes.fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
    };
    let native = |bytes: &[u8]| match cfg!(target_endian = "little") {
        true => word(bytes),
        false => word(bytes).swap_bytes(),
    };
    let start = START.wrapping_add(key.len() as u32).wrapping_add(seed);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = key;
    while rest.len() > 12 {
        a = a.wrapping_add(native(&rest[..4]));
        b = b.wrapping_add(native(&rest[4..8]));
        c = c.wrapping_add(native(&rest[8..12]));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    let part = |at: usize| {
        let from = at.min(rest.len());
        word(&rest[from..(at + 4).min(rest.len())])
    };
    a = a.wrapping_add(part(0));
    b = b.wrapping_add(part(4));
    c = c.wrapping_add(part(8));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks `jhash` of `linux/jhash.h` against published values of lookup3: the hash of the empty key is the start
    /// value plus the seed.
    #[test]
    fn hashes() {
        assert_eq!(jhash(b"", 0), 0xdead_beef);
        assert_eq!(jhash(b"", 0xdead_beef), 0xbd5b_7dde);
    }

    /// Values of lookup3.c (`driver5`) for seeds 0 and 1. They depend on the byte order.
    #[test]
    #[cfg(target_endian = "little")]
    fn hashes_of_blocks() {
        let text = b"Four score and seven years ago";
        assert_eq!(jhash(text, 0), 0x1777_0551);
        assert_eq!(jhash(text, 1), 0xcd62_8161);
    }
}
