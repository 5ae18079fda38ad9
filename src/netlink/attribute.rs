//! Attributes: type-length-value triples, aligned to four bytes.
//!
//! Layout of one attribute (`struct nlattr`, `linux/netlink.h`), host byte order:
//!
//! ```text
//!  0         2         4
//! +---------+---------+-----------------+---------+
//! | nla_len | nla_type| payload         | padding |
//! +---------+---------+-----------------+---------+
//! ```
//!
//! `nla_len` counts header and payload, not the padding. The two top bits of `nla_type` are the
//! flags `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`.

use chainwright_sys::netlink::NLA_TYPE_MASK;

use super::Malformed;

/// Length of `struct nlattr`.
pub(super) const HEADER: usize = 4;

/// `length` rounded up to the alignment of messages and attributes.
#[inline]
pub(super) const fn align(length: usize) -> usize {
    (length + 3) & !3
}

/// One attribute, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// `nla_type` without its flag bits.
    pub kind: u16,
    /// The payload, without padding.
    pub payload: &'a [u8],
    /// Header, payload and padding, as they stand in the message.
    pub raw: &'a [u8],
}

/// The attributes of a message or of a nested attribute, in order.
///
/// Total on hostile bytes: an attribute whose length does not fit ends the iteration with one
/// [`Malformed`].
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
    /// Where the next attribute starts; beyond the end where the last one lacks its padding.
    at: usize,
}

impl<'a> Attributes<'a> {
    /// The attributes that `bytes` consists of.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes were passed so far: where the next attribute starts.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at.min(self.bytes.len())
    }

    /// The payload of the first attribute of this type, if there is one before any malformed
    /// attribute.
    #[must_use]
    pub fn find(self, kind: u16) -> Option<&'a [u8]> {
        self.map_while(Result::ok)
            .find(|attribute| attribute.kind == kind)
            .map(|attribute| attribute.payload)
    }

    /// The bytes from here to where `other`, a later state of the same cursor, is.
    #[inline(always)]
    pub(crate) fn up_to(&self, other: &Self) -> &'a [u8] {
        self.bytes.get(self.at..other.offset()).unwrap_or_default()
    }

    /// Whether all attributes were passed.
    #[inline(always)]
    pub(crate) const fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Type and payload of the next attribute; type 0, which no attribute has, at the end.
    // A listing spends most of its instructions here: one load for the header, one comparison for
    // both ends of the length (a length below the header's own wraps around), one addition.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> Result<(u16, &'a [u8]), Malformed> {
        if self.at_end() {
            return Ok((0, &[]));
        }
        let Some((head, behind)) = self.bytes[self.at..].split_first_chunk::<HEADER>() else {
            return Err(malformed(self.at));
        };
        let word = u32::from_ne_bytes(*head);
        let (length, kind) = if cfg!(target_endian = "little") {
            (word as u16, (word >> 16) as u16)
        } else {
            ((word >> 16) as u16, word as u16)
        };
        let length = usize::from(length);
        let Some(payload) = behind.get(..length.wrapping_sub(HEADER)) else {
            return Err(malformed(self.at));
        };
        self.at += align(length);
        Ok((kind & NLA_TYPE_MASK, payload))
    }
}

// By value, so that the cursor can stay in registers.
#[cold]
const fn malformed(offset: usize) -> Malformed {
    Malformed {
        what: "netlink attribute",
        offset,
        reason: "its length does not fit into the bytes that hold it",
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at_end() {
            return None;
        }
        let start = self.at;
        let item = self.advance().map(|(kind, payload)| Attribute {
            kind,
            payload,
            raw: &self.bytes[start..self.offset()],
        });
        if item.is_err() {
            self.at = self.bytes.len();
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `NFTA_CHAIN_TABLE "nat"`, an unknown type 200 with one byte, `NFTA_CHAIN_USE` 2.
    #[cfg(target_endian = "little")]
    const SAMPLE: &[u8] = &[
        8, 0, 1, 0, b'n', b'a', b't', 0, // table
        5, 0, 200, 0x80, 7, 0, 0, 0, // unknown, with NLA_F_NESTED
        8, 0, 6, 0, 0, 0, 0, 2, // use
    ];
    /// The same as a big-endian machine has it.
    #[cfg(target_endian = "big")]
    const SAMPLE: &[u8] = &[
        0, 8, 0, 1, b'n', b'a', b't', 0, // table
        0, 5, 0x80, 200, 7, 0, 0, 0, // unknown, with NLA_F_NESTED
        0, 8, 0, 6, 0, 0, 0, 2, // use
    ];

    #[test]
    fn walks_all_attributes() {
        let all: Vec<_> = Attributes::new(SAMPLE).map(Result::unwrap).collect();
        assert_eq!(all.len(), 3);
        assert_eq!(all[0].payload, b"nat\0");
        assert_eq!((all[1].kind, all[1].payload), (200, &[7][..]));
        assert_eq!(all[1].raw.len(), 8);
        assert_eq!(Attributes::new(SAMPLE).find(6), Some(&[0, 0, 0, 2][..]));
        assert_eq!(Attributes::new(SAMPLE).find(5), None);
    }

    #[test]
    fn every_truncation_is_an_error_or_shorter() {
        for end in 0..SAMPLE.len() {
            let cut = &SAMPLE[..end];
            let mut items = Attributes::new(cut);
            let good = items.by_ref().take_while(Result::is_ok).count();
            assert!(good <= 3);
            assert!(items.next().is_none(), "an error ends the iteration");
        }
        // A length below the header's own would never advance.
        assert!(Attributes::new(&[0, 0, 1, 0]).next().unwrap().is_err());
    }
}
