//! Identifies the expression of a list element by its first sixteen bytes.
//!
//! ```text
//!  0         2         4                   8                              16
//! +---------+---------+-------------------+-------------------------------+--
//! | nla_len | nla_type| name, its NUL and the padding, at most eleven bytes of name
//! +---------+---------+-------------------+-------------------------------+--
//! ```
//!
//! The first eight of them (the length of the attribute and the first four bytes of the name) are different for all
//! names. A multiplication maps them to a slot of a table with the only possible name; then both words are compared.

use bstr::BStr;
use chainwright_sys::nf_tables::NFTA_EXPR_NAME;

/// Number of a known expression, in the order of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind(u8);

impl Kind {
    /// An unknown expression.
    pub(super) const UNKNOWN: Self = Self(u8::MAX);

    #[inline(always)]
    pub(super) const fn number(self) -> usize {
        self.0 as usize
    }
}

/// The first bytes of an element with this name.
#[derive(Clone, Copy)]
struct NamePrefix {
    name: &'static str,
    head: u64,
    /// The bytes of the second word that belong to the name.
    mask: u64,
    tail: u64,
    /// Length of the attribute with its padding.
    padded_length: usize,
}

/// The beginnings of all names.
pub(super) struct Names<const N: usize> {
    prefixes: [NamePrefix; N],
    factor: u64,
    slots: [Kind; 256],
}

const LENGTH: usize = 16;

impl<const N: usize> Names<N> {
    /// Builds the table for these names, in the order of the registry.
    pub(super) const fn new(names: [&'static str; N]) -> Self {
        assert!(N < u8::MAX as usize);
        let mut prefixes = [NamePrefix::of(""); N];
        let mut at = 0;
        while at < N {
            prefixes[at] = NamePrefix::of(names[at]);
            at += 1;
        }
        // The first multiplier without collisions of slots.
        let mut factor: u64 = 0x9e37_79b9_7f4a_7c15;
        loop {
            if let Some(slots) = slots(&prefixes, factor) {
                return Self {
                    prefixes,
                    factor,
                    slots,
                };
            }
            factor = factor.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(2);
        }
    }

    /// Returns the kind of the element's expression, its name, and the bytes after the name, if the element starts like
    /// the kernel writes it.
    #[inline(always)]
    pub(super) fn find<'e>(&self, element: &'e [u8]) -> Option<(Kind, &'static BStr, &'e [u8])> {
        let (first, _) = element.split_first_chunk::<LENGTH>()?;
        let (head, tail) = words(first);
        let kind = self.slots[slot(head, self.factor)];
        let prefix = self.prefixes.get(kind.number())?;
        if head != prefix.head || tail & prefix.mask != prefix.tail {
            return None;
        }
        let behind = element.get(prefix.padded_length..)?;
        Some((kind, BStr::new(prefix.name.as_bytes()), behind))
    }

    /// Returns the kind of the expression with this name.
    pub(super) fn kind(&self, name: &[u8]) -> Kind {
        let known = |prefix: &NamePrefix| prefix.name.as_bytes() == name;
        match self.prefixes.iter().position(known) {
            Some(number) => Kind(number as u8),
            None => Kind::UNKNOWN,
        }
    }
}

impl NamePrefix {
    const fn of(name: &'static str) -> Self {
        let bytes = name.as_bytes();
        let length = 4 + bytes.len() + 1;
        let padded_length = length.next_multiple_of(4);
        let (mut first, mut mask) = ([0; LENGTH], [0; LENGTH]);
        [first[0], first[1]] = (length as u16).to_ne_bytes();
        [first[2], first[3]] = NFTA_EXPR_NAME.to_ne_bytes();
        let mut at = 4;
        while at < LENGTH {
            if at - 4 < bytes.len() {
                first[at] = bytes[at - 4];
            }
            if at < padded_length {
                mask[at] = 0xff;
            }
            at += 1;
        }
        let (mut head, tail) = words(&first);
        if padded_length > LENGTH {
            head = 0; // matches no element: these are found by name
        }
        Self {
            name,
            head,
            mask: words(&mask).1,
            tail,
            padded_length,
        }
    }
}

#[inline(always)]
const fn words(bytes: &[u8; LENGTH]) -> (u64, u64) {
    let both = u128::from_ne_bytes(*bytes);
    if cfg!(target_endian = "little") {
        (both as u64, (both >> 64) as u64)
    } else {
        ((both >> 64) as u64, both as u64)
    }
}

#[inline(always)]
const fn slot(head: u64, factor: u64) -> usize {
    (head.wrapping_mul(factor) >> 56) as usize
}

/// Fills the slots; `None` if two names share one.
const fn slots<const N: usize>(prefixes: &[NamePrefix; N], factor: u64) -> Option<[Kind; 256]> {
    let mut slots = [Kind::UNKNOWN; 256];
    let mut at = 0;
    while at < N {
        let slot = slot(prefixes[at].head, factor);
        if prefixes[at].head != 0 {
            if slots[slot].0 != Kind::UNKNOWN.0 {
                return None;
            }
            slots[slot] = Kind(at as u8);
        }
        at += 1;
    }
    Some(slots)
}

#[cfg(test)]
mod tests {
    use bstr::ByteSlice;
    use chainwright_sys::nf_tables::{NFTA_EXPR_DATA, NFTA_LIST_ELEM};

    use super::*;
    use crate::netlink::MessageWriter;
    use crate::nft::expr::{ExpressionIter, ExpressionRef, KINDS};

    /// Encodes a list of one element like the kernel.
    fn listed(name: &[u8], data: &[u8]) -> Vec<u8> {
        let (mut element, mut list) = (Vec::new(), Vec::new());
        let mut writer = MessageWriter::bare(&mut element);
        writer.string(NFTA_EXPR_NAME, name);
        writer.bytes(NFTA_EXPR_DATA, data);
        writer.finish_bare().unwrap();
        let mut writer = MessageWriter::bare(&mut list);
        writer.bytes(NFTA_LIST_ELEM, &element);
        writer.finish_bare().unwrap();
        list
    }

    fn read(list: &[u8]) -> Option<ExpressionRef<'_>> {
        ExpressionIter::new(list).next()?.ok()
    }

    #[test]
    fn every_name_is_found_by_its_prefix() {
        let data = [8, 0, 1, 0, 0, 0, 0, 1];
        for (number, prefix) in KINDS.prefixes.iter().enumerate() {
            let name = prefix.name.as_bytes();
            let list = listed(name, &data);
            let found = KINDS.find(&list[4..]);
            assert_eq!(found.is_some(), name.len() < 12, "{}", prefix.name);
            assert!(found.is_none_or(|(kind, ..)| kind.number() == number));
            let expression = read(&list).unwrap();
            assert_eq!(
                expression,
                ExpressionRef {
                    raw: &list,
                    ..ExpressionRef::new(name.into(), &data)
                }
            );
            assert_eq!(expression.kind.number(), number);
        }
    }

    /// An altered element yields its own name, and only known names are identified.
    #[test]
    fn only_known_names_are_identified() {
        for prefix in &KINDS.prefixes {
            let list = listed(prefix.name.as_bytes(), &[0; 8]);
            for bit in 8 * 4..8 * (8 + prefix.padded_length) {
                let mut other = list.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                let Some(expression) = read(&other) else {
                    continue; // a length, or a type
                };
                assert_eq!(expression.kind, KINDS.kind(expression.name));
                if bit >= 8 * 8 && bit < 8 * (8 + prefix.name.len()) {
                    let other_name = &other[8..8 + prefix.name.len()];
                    assert_eq!(expression.name, other_name.as_bstr());
                }
            }
        }
    }
}
