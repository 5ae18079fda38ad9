//! Numbers that are drawn, counted or computed.

use super::{Machine, Went, needed};
use crate::domain::ones;
use crate::flow::Open;
use crate::registers::Order;
use crate::value::Value;
use chainwright::nft::expr::{HashRef, HashType, NumgenRef, NumgenType};

impl<'s> Machine<'_, 's> {
    pub(super) fn numgen(&mut self, numgen: &NumgenRef<'s>) -> Result<Went<'s>, Open> {
        let register = needed(numgen.dreg())?;
        let modulus = needed(numgen.modulus())?;
        let from = numgen.offset().unwrap_or_default();
        let (words, uniform) = match needed(numgen.numgen_type())? {
            NumgenType::RANDOM => ("a random number", true),
            NumgenType::INCREMENTAL => ("a number that counts packets", false),
            _ => return Err(Open::unknown("numbers are made in a way not known here")),
        };
        let value = self.drawn(words, modulus, from, uniform);
        self.store(register, &value, Order::Host)
    }

    /// A number from `from` on, of as many as `modulus` says.
    fn drawn(&mut self, words: &str, modulus: u32, from: u32, uniform: bool) -> Value {
        let (from, count) = (u128::from(from), u128::from(modulus.max(1)));
        let last = from + count - 1;
        let ranges = match last <= ones(32) {
            true => vec![(from, last)],
            false => vec![(from, ones(32)), (0, last & ones(32))],
        };
        self.flow.fresh(words, 32, ranges, uniform)
    }

    pub(super) fn hash(&mut self, hash: &HashRef<'s>) -> Result<Went<'s>, Open> {
        let register = needed(hash.dreg())?;
        let modulus = needed(hash.modulus())?;
        let from = hash.offset().unwrap_or_default();
        if hash.hash_type().unwrap_or(HashType::JENKINS) == HashType::JENKINS {
            let source = needed(hash.sreg())?;
            let length = needed(hash.len())? as usize;
            let key = self.registers.known(self.flow, source, length.min(64));
            if let (Some(key), Some(seed)) = (key, hash.seed()) {
                let scaled = (u64::from(jhash(&key, seed)) * u64::from(modulus)) >> 32;
                let number = (scaled as u32).wrapping_add(from);
                let value = Value::known(number.into(), 32);
                return self.store(register, &value, Order::Host);
            }
        }
        let value = self.drawn("a hash whose seed or key is not known", modulus, from, true);
        self.store(register, &value, Order::Host)
    }
}

/// The hash function of Bob Jenkins (lookup3), as the kernel has it for bytes: whole blocks are words in host byte order, and
/// only what is left is the same everywhere.
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

    /// Of `jhash` in Linux's `linux/jhash.h`, as its users' own tests and lookup3's published values have it: the
    /// empty key gives the start value, with its seed.
    #[test]
    fn hashes() {
        assert_eq!(jhash(b"", 0), 0xdead_beef);
        assert_eq!(jhash(b"", 0xdead_beef), 0xbd5b_7dde);
        // lookup3.c, its driver5: hashlittle of this text with seeds 0 and 1.
    }

    /// On machines of the other order its blocks give other values.
    #[test]
    #[cfg(target_endian = "little")]
    fn hashes_of_blocks() {
        let text = b"Four score and seven years ago";
        assert_eq!(jhash(text, 0), 0x1777_0551);
        assert_eq!(jhash(text, 1), 0xcd62_8161);
    }
}
